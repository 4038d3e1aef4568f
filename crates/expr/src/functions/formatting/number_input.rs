//! `to_number(text, text)`: the digits of a text, found by a template.

use super::Node;
use super::numbers::{LocaleSign, Shape};
use crate::error::{Error, Result};
use crate::functions::Kernel;
use crate::functions::arg::*;
use crate::numeric::Numeric;

pub(super) fn bind(args: &str) -> Option<Kernel> {
    (args == "text,text").then(|| kernel!(|text: Txt, template: Txt| -> Opt<Num> { to_number(text, template) }))
}

/// Walks over the input; positions are in bytes.
struct Reader<'a> {
    shape: &'a Shape,
    input: &'a [u8],
    at: usize,
    sign: Option<u8>,
    number: Vec<u8>,
    read_before: usize,
    read_after: usize,
    read_point: bool,
}

fn to_number(text: &str, template: &str) -> Result<Option<Numeric>> {
    if template.is_empty() {
        return Ok(None);
    }
    let (nodes, shape) = Shape::read(template)?;
    let refused = if shape.exponent { Some("EEEE") } else { shape.roman.then_some("RN") };
    if let Some(pattern) = refused {
        return Err(Error::not_supported(format!("\"{pattern}\" not supported for input")));
    }
    let mut reader = Reader {
        shape: &shape,
        input: text.as_bytes(),
        at: 0,
        sign: None,
        number: Vec::new(),
        read_before: 0,
        read_after: 0,
        read_point: false,
    };
    for node in &nodes {
        if reader.at >= reader.input.len() {
            break;
        }
        match node {
            Node::Pattern { name, .. } => reader.pattern(name),
            // Whatever stands there is left out.
            _ => reader.skip_char(),
        }
    }
    let mut digits = reader.number;
    if digits.last() == Some(&b'.') {
        digits.pop();
    }
    let mut written = vec![reader.sign.unwrap_or(b' ')];
    written.extend(digits);
    let scale = reader.read_after;
    let precision = shape.before + shape.shift + scale;
    let value = Numeric::parse(&String::from_utf8_lossy(&written))?;
    let value = match u16::try_from(precision) {
        Ok(precision) => value.with_typmod(precision, scale as i16)?,
        Err(_) => value,
    };
    if !shape.multiplied {
        return Ok(Some(value));
    }
    let factor = Numeric::from(10i64).power(&Numeric::from(-(shape.shift as i64)))?;
    value.mul(&factor).map(Some)
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn skip_char(&mut self) {
        self.at += 1;
        while self.peek().is_some_and(|byte| byte & 0xc0 == 0x80) {
            self.at += 1;
        }
    }

    /// Passes up to `count` characters that can be no part of a number.
    fn skip_other(&mut self, count: usize) {
        for _ in 0..count {
            match self.peek() {
                Some(byte) if !b"0123456789.,+-".contains(&byte) => self.skip_char(),
                _ => return,
            }
        }
    }

    fn pattern(&mut self, name: &str) {
        match name {
            "9" | "0" | "." | "D" | "d" => {
                self.digit(matches!(name, "9" | "0"));
                self.at += 1;
            }
            "," | "G" | "g" if self.shape.fill => {}
            "," | "G" | "g" => self.at += usize::from(self.peek() == Some(b',')),
            "L" | "l" => self.skip_other(1),
            "TH" | "th" => self.skip_other(if self.sign == Some(b'-') || self.shape.decimal { 0 } else { 2 }),
            "MI" | "mi" => self.sign_at(b"-"),
            "PL" | "pl" => self.sign_at(b"+"),
            "SG" | "sg" => self.sign_at(b"+-"),
            _ => {}
        }
    }

    fn sign_at(&mut self, signs: &[u8]) {
        match self.peek() {
            Some(sign) if signs.contains(&sign) => {
                self.sign = Some(sign);
                self.at += 1;
            }
            _ => self.skip_other(1),
        }
    }

    /// One digit or the point, with a sign before or after. Stops on what it has read last.
    fn digit(&mut self, is_digit: bool) {
        if self.peek() == Some(b' ') {
            self.at += 1;
        }
        if self.sign.is_none() && is_digit && self.read_before + self.read_after == 0 {
            let before = self.shape.locale_sign && self.shape.sign == LocaleSign::Before;
            match self.peek() {
                Some(sign @ (b'-' | b'+'))
                    if before || !self.shape.locale_sign || self.shape.sign != LocaleSign::None =>
                {
                    self.sign = Some(sign);
                    self.at += 1;
                }
                Some(b'<') if self.shape.bracket => {
                    self.sign = Some(b'-');
                    self.at += 1;
                }
                _ => {}
            }
        }
        let mut has_read = false;
        match self.peek() {
            None => return,
            Some(digit @ b'0'..=b'9') => {
                if self.read_point && self.read_after == self.shape.after {
                    return;
                }
                self.number.push(digit);
                if self.read_point {
                    self.read_after += 1
                } else {
                    self.read_before += 1
                }
                has_read = true;
            }
            Some(b'.') if self.shape.decimal && !self.read_point => {
                self.number.push(b'.');
                self.read_point = true;
                has_read = true;
            }
            Some(_) => {}
        }
        if self.sign.is_some() || self.read_before + self.read_after == 0 {
            return;
        }
        let next = self.input.get(self.at + 1).copied();
        if self.shape.locale_sign && has_read && next.is_some_and(|byte| !byte.is_ascii_digit()) {
            if let Some(sign @ (b'-' | b'+')) = next {
                self.at += 1;
                self.sign = Some(sign);
            }
        } else if let Some(sign @ (b'-' | b'+')) = self.peek()
            && !has_read
            && !self.shape.locale_sign
            && (self.shape.plus || self.shape.minus)
        {
            self.sign = Some(sign);
        }
    }
}
