//! Numbers by a template (manual table 9.29): `to_char(number, text)`.

use super::{Node, nodes, ordinal_suffix};
use crate::error::{Error, Result};
use crate::functions::Kernel;
use crate::functions::arg::*;
use crate::numeric::Numeric;

/// Longer ones before those that they begin with.
const PATTERNS: [&str; 36] = [
    ",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP", "S", "TH", "V", "b",
    "c", "d", "eeee", "fm", "g", "l", "mi", "pl", "pr", "rn", "sg", "sp", "s", "th", "v",
];

/// Digits that a `real` and a `double precision` have.
const FLOAT4_DIGITS: usize = 6;
const FLOAT8_DIGITS: usize = 15;
const ROMAN_WIDTH: usize = 15;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) enum LocaleSign {
    #[default]
    None,
    Before,
    After,
}

/// What a template asks for as a whole.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Shape {
    /// Digit positions before and after the decimal point, and those behind `V`.
    pub before: usize,
    pub after: usize,
    pub shift: usize,
    pub sign: LocaleSign,
    /// Digit positions before the first `S`.
    pub before_sign: usize,
    /// The first and last position that a `0` stands for, counted from 1.
    pub zero_start: usize,
    pub zero_end: usize,
    pub decimal: bool,
    pub fill: bool,
    pub locale_sign: bool,
    pub bracket: bool,
    pub minus: bool,
    pub plus: bool,
    pub roman: bool,
    pub multiplied: bool,
    pub exponent: bool,
    pub zero: bool,
    blank: bool,
}

fn invalid(message: &str) -> Error {
    Error::new("42601", message)
}

impl Shape {
    /// A template's nodes and shape; 42601 for patterns that exclude one another.
    pub fn read(template: &str) -> Result<(Vec<Node>, Shape)> {
        let nodes = nodes(template, &PATTERNS, false);
        let mut shape = Shape::default();
        for node in &nodes {
            if let Node::Pattern { name, .. } = node {
                shape.meet(&name.to_ascii_uppercase())?;
            }
        }
        Ok((nodes, shape))
    }

    fn meet(&mut self, pattern: &str) -> Result<()> {
        if self.exponent && pattern != "EEEE" {
            return Err(invalid("\"EEEE\" must be the last pattern used"));
        }
        match pattern {
            "9" | "0" if self.bracket => return Err(invalid(&format!("\"{pattern}\" must be ahead of \"PR\""))),
            "9" if self.multiplied => self.shift += 1,
            "9" => self.count_digit(),
            "0" => {
                if !self.zero && !self.decimal {
                    self.zero = true;
                    self.zero_start = self.before + 1;
                }
                self.count_digit();
                self.zero_end = self.before + self.after;
            }
            "B" => self.blank |= self.before == 0 && self.after == 0 && !self.zero,
            "D" | "." => {
                if self.decimal {
                    return Err(invalid("multiple decimal points"));
                }
                if self.multiplied {
                    return Err(invalid("cannot use \"V\" and decimal point together"));
                }
                self.decimal = true;
            }
            "FM" => self.fill = true,
            "S" | "MI" | "PL" | "SG" | "PR" => self.meet_sign(pattern)?,
            "RN" => self.roman = true,
            "V" if self.decimal => return Err(invalid("cannot use \"V\" and decimal point together")),
            "V" => self.multiplied = true,
            "EEEE" => self.meet_exponent()?,
            _ => {}
        }
        Ok(())
    }

    fn count_digit(&mut self) {
        if self.decimal { self.after += 1 } else { self.before += 1 }
    }

    fn meet_sign(&mut self, pattern: &str) -> Result<()> {
        if pattern == "S" {
            if self.locale_sign {
                return Err(invalid("cannot use \"S\" twice"));
            }
            if self.plus || self.minus || self.bracket {
                return Err(invalid("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
            }
            self.locale_sign = true;
            if self.decimal {
                self.sign = LocaleSign::After;
            } else {
                self.sign = LocaleSign::Before;
                self.before_sign = self.before;
            }
            return Ok(());
        }
        if pattern == "PR" {
            if self.locale_sign || self.plus || self.minus {
                return Err(invalid("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            self.bracket = true;
            return Ok(());
        }
        if self.locale_sign {
            return Err(invalid(&format!("cannot use \"S\" and \"{pattern}\" together")));
        }
        self.minus |= pattern != "PL";
        self.plus |= pattern != "MI";
        Ok(())
    }

    fn meet_exponent(&mut self) -> Result<()> {
        if self.exponent {
            return Err(invalid("cannot use \"EEEE\" twice"));
        }
        let others =
            [self.blank, self.fill, self.locale_sign, self.bracket, self.minus, self.plus, self.roman, self.multiplied];
        if others.contains(&true) {
            return Err(invalid("\"EEEE\" is incompatible with other formats")
                .with_detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
        }
        self.exponent = true;
        Ok(())
    }

    /// `#` where a number is too large for its positions.
    fn overflow(&self) -> String {
        format!("{}.{}", "#".repeat(self.before), "#".repeat(self.after))
    }

    fn no_exponent(&self) -> String {
        format!(" {}.{}", "#".repeat(self.before), "#".repeat((self.after + 4).max(4)))
    }
}

pub(super) fn bind(args: &str) -> Option<Kernel> {
    Some(match args {
        "int4,text" => kernel!(|value: I4, template: Txt| -> Txt { of_integer(i64::from(value), template, true) }),
        "int8,text" => kernel!(|value: I8, template: Txt| -> Txt { of_integer(value, template, false) }),
        "numeric,text" => kernel!(|value: Num, template: Txt| -> Txt { of_numeric(&value, template) }),
        "float4,text" => {
            kernel!(|value: F4, template: Txt| -> Txt { of_float(f64::from(value), template, FLOAT4_DIGITS) })
        }
        "float8,text" => kernel!(|value: F8, template: Txt| -> Txt { of_float(value, template, FLOAT8_DIGITS) }),
        _ => return None,
    })
}

fn roman(value: i64) -> String {
    const LETTERS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..=3999).contains(&value) {
        return "#".repeat(ROMAN_WIDTH);
    }
    let (mut rest, mut out) = (value, String::new());
    for (worth, letters) in LETTERS {
        while rest >= worth {
            out.push_str(letters);
            rest -= worth;
        }
    }
    out
}

/// A number's text without sign, fitted to the template's positions, and the blanks before it.
fn fitted(text: &str, shape: &Shape) -> (String, usize, char) {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', text),
    };
    let whole = digits.find('.').unwrap_or(digits.len());
    match whole > shape.before {
        true => (shape.overflow(), 0, sign),
        false => (digits.to_string(), shape.before - whole, sign),
    }
}

fn of_integer(value: i64, template: &str, int4: bool) -> Result<String> {
    if template.is_empty() {
        return Ok(String::new());
    }
    let (nodes, mut shape) = Shape::read(template)?;
    if shape.roman {
        if i32::try_from(value).is_err() {
            return Err(Error::out_of_range("integer"));
        }
        return Ok(write(&nodes, shape, &roman(value), 0, '+'));
    }
    if shape.exponent {
        let text = match int4 {
            true => float_scientific(value as f64, shape.after),
            false => scientific(&Numeric::from(value), shape.after)?,
        };
        return Ok(if text.starts_with('-') { text } else { format!(" {text}") });
    }
    let mut shifted = value;
    if shape.multiplied {
        let product = 10i64.checked_pow(shape.shift as u32).and_then(|factor| value.checked_mul(factor));
        let fits = |value: &i64| !int4 || i32::try_from(*value).is_ok();
        shifted = product.filter(fits).ok_or_else(|| Error::out_of_range(if int4 { "integer" } else { "bigint" }))?;
        shape.before += shape.shift;
    }
    let mut text = shifted.to_string();
    if shape.after > 0 {
        text.push('.');
        text.push_str(&"0".repeat(shape.after));
    }
    let (text, blanks, sign) = fitted(&text, &shape);
    Ok(write(&nodes, shape, &text, blanks, sign))
}

fn text_of(value: &Numeric) -> String {
    let mut out = Vec::new();
    value.write_text(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// `d.ddde+xx` with so many decimals.
fn scientific(value: &Numeric, decimals: usize) -> Result<String> {
    let plain = text_of(&value.clone().abs());
    let digits: String = plain.chars().filter(char::is_ascii_digit).collect();
    let whole = plain.find('.').unwrap_or(plain.len());
    let lead = digits.find(|digit| digit != '0');
    let exponent = lead.map_or(0, |lead| whole as i32 - lead as i32 - 1);
    let power = Numeric::from(10i64).power(&Numeric::from(i64::from(exponent.abs())))?;
    let power = power.trunc(0)?;
    let significand = if exponent >= 0 {
        value.div_at(&power, decimals as i32)?
    } else {
        value.mul(&power)?.round(decimals as i32)?
    };
    let sign = if exponent < 0 { '-' } else { '+' };
    Ok(format!("{}e{sign}{:02}", text_of(&significand), exponent.abs()))
}

fn of_numeric(value: &Numeric, template: &str) -> Result<String> {
    if template.is_empty() {
        return Ok(String::new());
    }
    let (nodes, mut shape) = Shape::read(template)?;
    if shape.roman {
        let whole = i64::from(value.round(0)?.to_i32()?);
        return Ok(write(&nodes, shape, &roman(whole), 0, '+'));
    }
    if shape.exponent {
        if !value.is_finite() {
            return Ok(shape.no_exponent());
        }
        let text = scientific(value, shape.after)?;
        return Ok(if text.starts_with('-') { text } else { format!(" {text}") });
    }
    let mut shifted = value.clone();
    if shape.multiplied {
        let factor = Numeric::from(10i64).power(&Numeric::from(shape.shift as i64))?;
        shifted = value.mul(&factor)?;
        shape.before += shape.shift;
    }
    let text = text_of(&shifted.round(shape.after as i32)?);
    let (text, blanks, sign) = fitted(&text, &shape);
    Ok(write(&nodes, shape, &text, blanks, sign))
}

/// C's `%.{decimals}e`.
fn float_scientific(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// C's `%.{decimals}f`.
fn float_fixed(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        "NaN".to_string()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string()
    } else {
        format!("{value:.decimals$}")
    }
}

fn of_float(value: f64, template: &str, digits: usize) -> Result<String> {
    if template.is_empty() {
        return Ok(String::new());
    }
    let (nodes, mut shape) = Shape::read(template)?;
    if shape.roman {
        let whole = value.round_ties_even();
        return Ok(write(&nodes, shape, &roman(if whole.is_nan() { 0 } else { whole as i64 }), 0, '+'));
    }
    if shape.exponent {
        if !value.is_finite() {
            return Ok(shape.no_exponent());
        }
        let text = float_scientific(value, shape.after);
        return Ok(if text.starts_with('-') { text } else { format!(" {text}") });
    }
    let mut shifted = value;
    if shape.multiplied {
        shifted *= 10f64.powi(shape.shift as i32);
        shape.before += shape.shift;
    }
    if digits == FLOAT4_DIGITS {
        shifted = f64::from(shifted as f32);
    }
    let whole = float_fixed(shifted.abs(), 0).len();
    shape.after = shape.after.min(digits.saturating_sub(whole));
    let (text, blanks, sign) = fitted(&float_fixed(shifted, shape.after), &shape);
    Ok(write(&nodes, shape, &text, blanks, sign))
}

/// Puts a number into its template's places.
struct Writer<'a> {
    shape: Shape,
    number: &'a [u8],
    /// The next digit.
    at: usize,
    /// Digit position in the template.
    position: usize,
    positions: usize,
    blanks: usize,
    sign: char,
    sign_written: bool,
    /// The last character of the number that `FM` keeps.
    last_relevant: Option<usize>,
    /// Whether the last pattern wrote a digit.
    in_number: bool,
    /// Where the text ends whatever follows: at a point that a number without decimals lacks.
    end: Option<usize>,
    out: String,
}

/// `number` has no sign; `blanks` positions stay empty before it.
fn write(nodes: &[Node], shape: Shape, number: &str, blanks: usize, sign: char) -> String {
    let mut writer = Writer::new(shape, number, blanks, sign);
    for node in nodes {
        match node {
            Node::Pattern { name, .. } => writer.pattern(name),
            Node::Space(char) | Node::Separator(char) | Node::Char(char) => writer.out.push(*char),
        }
    }
    let end = writer.end.unwrap_or(writer.out.len());
    writer.out.truncate(end);
    writer.out
}

impl Writer<'_> {
    fn new(mut shape: Shape, number: &str, blanks: usize, sign: char) -> Writer<'_> {
        if shape.roman {
            shape = Shape { fill: shape.fill, roman: true, ..Shape::default() };
        }
        shape.zero_start = shape.zero_start.saturating_sub(1);
        let sign_written = if shape.plus || shape.minus {
            shape.minus
        } else {
            if sign != '-' && shape.fill {
                shape.bracket = false;
            }
            if shape.sign == LocaleSign::Before && shape.before == shape.before_sign {
                shape.sign = LocaleSign::After;
            }
            sign == '+' && shape.fill && !shape.locale_sign
        };
        let mut last_relevant = None;
        if shape.fill && shape.decimal {
            last_relevant = number.find('.').map(|dot| {
                let tail = number[dot..].trim_end_matches('0').len().max(1);
                dot + tail - 1
            });
            if let Some(last) = &mut last_relevant
                && shape.zero_end > blanks
            {
                *last = (*last).max((number.len() - 1).min(shape.zero_end - blanks));
            }
        }
        let positions = (shape.before + shape.after) as i64 - 1 + i64::from(!sign_written && blanks == 0);
        Writer {
            shape,
            number: number.as_bytes(),
            at: 0,
            position: 0,
            positions: positions.max(0) as usize,
            blanks,
            sign,
            sign_written,
            last_relevant,
            in_number: false,
            end: None,
            out: String::with_capacity(number.len() + 8),
        }
    }

    fn pattern(&mut self, name: &str) {
        let fill = self.shape.fill;
        let sign_or_blank = |wanted: bool, sign: char| if wanted { Some(sign) } else { (!fill).then_some(' ') };
        match name {
            "9" | "0" | "." | "D" | "d" => self.digit(name == "0"),
            "," | "G" | "g" if self.in_number => self.out.push(','),
            "," | "G" | "g" => self.out.extend((!fill).then_some(' ')),
            "L" | "l" => self.out.push(' '),
            "RN" | "rn" => {
                let text = String::from_utf8_lossy(self.number);
                let text = if name == "rn" { text.to_lowercase() } else { text.into_owned() };
                self.out.push_str(&if fill { text } else { format!("{text:>ROMAN_WIDTH$}") });
            }
            "TH" | "th" => {
                let digits = String::from_utf8_lossy(self.number);
                let none = self.shape.roman || digits.starts_with('#') || self.sign == '-' || self.shape.decimal;
                self.out.push_str(if none { "" } else { ordinal_suffix(&digits, name == "TH") });
            }
            "MI" | "mi" => self.out.extend(sign_or_blank(self.sign == '-', '-')),
            "PL" | "pl" => self.out.extend(sign_or_blank(self.sign == '+', '+')),
            "SG" | "sg" => self.out.push(self.sign),
            _ => {}
        }
    }

    /// At the digit before the point, which is 0 and not asked for by a `0`.
    fn before_point(&self) -> bool {
        !self.shape.zero && self.at == 0 && self.number.first() == Some(&b'0') && self.shape.after != 0
    }

    fn ends_in_point(&self) -> bool {
        self.last_relevant.is_some_and(|last| self.number.get(last) == Some(&b'.'))
    }

    fn digit(&mut self, zero: bool) {
        if self.shape.roman {
            return;
        }
        self.in_number = false;
        let starts = self.position >= self.blanks || (self.shape.zero && self.shape.zero_start == self.position);
        if !self.sign_written && starts && (!self.before_point() || self.ends_in_point()) {
            self.leading_sign();
        }
        if self.position < self.blanks && (self.shape.zero_start > self.position || !self.shape.zero) {
            self.out.extend((!self.shape.fill).then_some(' '));
        } else if self.shape.zero && self.position < self.blanks {
            self.out.push('0');
            self.in_number = true;
        } else {
            self.take_digit(zero);
        }
        let mut end = self.positions + usize::from(self.blanks > 0) + usize::from(self.shape.decimal);
        if self.last_relevant == Some(self.at) {
            end = self.position;
        }
        if self.position + 1 == end {
            self.trailing_sign();
        }
        self.position += 1;
    }

    fn leading_sign(&mut self) {
        if self.shape.locale_sign {
            if self.shape.sign == LocaleSign::Before {
                self.out.push(self.sign);
                self.sign_written = true;
            }
            return;
        }
        self.sign_written = true;
        if self.shape.bracket {
            self.out.push(if self.sign == '+' { ' ' } else { '<' });
        } else if self.sign == '-' {
            self.out.push('-');
        } else if !self.shape.fill {
            self.out.push(' ');
        }
    }

    fn take_digit(&mut self, zero: bool) {
        match self.number.get(self.at) {
            Some(b'.') => {
                let shown = !self.ends_in_point() || self.shape.fill;
                self.out.extend(shown.then_some('.'));
            }
            _ if self.last_relevant.is_some_and(|last| self.at > last) && !zero => {}
            _ if self.before_point() => {
                if !self.shape.fill {
                    self.out.push(' ');
                } else if self.ends_in_point() {
                    self.out.push('0');
                }
            }
            Some(digit) => {
                self.out.push(char::from(*digit));
                self.in_number = true;
            }
            None => self.end = self.end.or(Some(self.out.len())),
        }
        self.at = (self.at + 1).min(self.number.len());
    }

    fn trailing_sign(&mut self) {
        if self.sign_written && self.shape.bracket {
            self.out.push(if self.sign == '+' { ' ' } else { '>' });
        } else if self.shape.locale_sign && self.shape.sign == LocaleSign::After {
            self.out.push(self.sign);
        }
    }
}
