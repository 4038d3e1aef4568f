//! Text and binary forms of arrays (manual 8.15.2, 8.15.6).

use super::{binary, text};
use crate::array_value::{self, ArrayValue, DIMENSIONS_MAX, Dimension};
use crate::context::EvalContext;
use crate::error::{Error, Result};
use basalt_types::{DataType, Datum};

#[cold]
fn malformed(text: &str, detail: &str) -> Error {
    Error::new("22P02", format!("malformed array literal: \"{text}\"")).with_detail(detail)
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Reads `{…}`, with `[lower:upper]…=` before it or not.
pub(super) fn parse(element: &DataType, whole: &str, ctx: &EvalContext) -> Result<Datum> {
    let mut reader =
        Reader { whole, rest: whole, element, ctx, lengths: Vec::new(), is_deepest: false, elements: Vec::new() };
    reader.skip_blanks();
    let bounds = reader.bounds()?;
    if !reader.take(b'{') {
        return Err(malformed(
            whole,
            match bounds {
                Some(_) => "Array contents must start with \"{\".",
                None => "Array value must start with \"{\" or dimension information.",
            },
        ));
    }
    reader.level(0)?;
    reader.skip_blanks();
    if !reader.rest.is_empty() {
        return Err(malformed(whole, "Junk after closing right brace."));
    }
    let Reader { lengths, elements, .. } = reader;
    if let Some(bounds) = &bounds
        && !(bounds.len() == lengths.len()
            && bounds.iter().zip(&lengths).all(|(bound, length)| bound.length == *length))
    {
        return Err(malformed(whole, "Specified array dimensions do not match array contents."));
    }
    if elements.is_empty() {
        return array_value::encode(element, &[]);
    }
    let plain = || lengths.iter().map(|length| Dimension { lower: 1, length: *length }).collect();
    let dimensions = bounds.unwrap_or_else(plain);
    array_value::encode_shaped(element, &ArrayValue { dimensions, elements })
}

struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
    element: &'a DataType,
    ctx: &'a EvalContext,
    /// Per dimension, what its first part had.
    lengths: Vec<u32>,
    /// An element was met: there are no more dimensions than `lengths`.
    is_deepest: bool,
    elements: Vec<Datum>,
}

impl Reader<'_> {
    fn fail<T>(&self, detail: &str) -> Result<T> {
        Err(malformed(self.whole, detail))
    }

    fn peek(&self) -> Option<u8> {
        self.rest.as_bytes().first().copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii() && is_blank(c as u8));
    }

    /// `[lower:upper]` or `[length]`, repeated, and `=`.
    fn bounds(&mut self) -> Result<Option<Vec<Dimension>>> {
        let mut bounds = Vec::new();
        while self.take(b'[') {
            if bounds.len() == DIMENSIONS_MAX {
                return Err(array_value::too_many_dimensions(bounds.len() + 1));
            }
            let first = self.bound()?;
            let (lower, upper) = if self.take(b':') { (first, self.bound()?) } else { (1, first) };
            if !self.take(b']') {
                return self.fail("Missing \"]\" after array dimensions.");
            }
            if upper < lower {
                return Err(Error::new("2202E", "upper bound cannot be less than lower bound"));
            }
            let length = u32::try_from(i64::from(upper) - i64::from(lower) + 1);
            let length = length.map_err(|_| array_value::too_large())?;
            bounds.push(Dimension { lower, length });
            self.skip_blanks();
        }
        if bounds.is_empty() {
            return Ok(None);
        }
        if !self.take(b'=') {
            return self.fail("Missing \"=\" after array dimensions.");
        }
        self.skip_blanks();
        Ok(Some(bounds))
    }

    fn bound(&mut self) -> Result<i32> {
        let signed = usize::from(matches!(self.peek(), Some(b'-' | b'+')));
        let digits = self.rest.as_bytes()[signed..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return self.fail("Missing array dimension value.");
        }
        let (number, rest) = self.rest.split_at(signed + digits);
        self.rest = rest;
        match number.parse::<i64>().map(i32::try_from) {
            Ok(Ok(bound)) => Ok(bound),
            _ => Err(Error::new("22003", "array bound is out of integer range")),
        }
    }

    /// What follows a left brace, to its right brace.
    fn level(&mut self, depth: usize) -> Result<()> {
        if depth >= DIMENSIONS_MAX {
            return Err(array_value::too_many_dimensions(depth + 1));
        }
        let is_first = self.lengths.len() == depth;
        if is_first {
            if self.is_deepest {
                return self.fail("Unexpected \"{\" character.");
            }
            self.lengths.push(0);
        }
        let mut count = 0u32;
        self.skip_blanks();
        if self.take(b'}') {
            if depth > 0 {
                return self.fail("Unexpected \"}\" character.");
            }
        } else {
            loop {
                self.skip_blanks();
                if self.take(b'{') {
                    self.level(depth + 1)?;
                } else {
                    if self.lengths.len() > depth + 1 {
                        return self.fail("Unexpected array element.");
                    }
                    self.is_deepest = true;
                    let item = self.item()?;
                    self.elements.push(match item {
                        Some(item) => text::parse(self.element, &item, self.ctx)?,
                        None => Datum::Null,
                    });
                }
                count += 1;
                self.skip_blanks();
                if self.take(b',') {
                    continue;
                }
                if self.take(b'}') {
                    break;
                }
                return match self.peek() {
                    None => self.fail("Unexpected end of input."),
                    Some(b'{') => self.fail("Unexpected \"{\" character."),
                    Some(_) => self.fail("Unexpected array element."),
                };
            }
        }
        if is_first {
            self.lengths[depth] = count;
        } else if self.lengths[depth] != count {
            return self.fail("Multidimensional arrays must have sub-arrays with matching dimensions.");
        }
        Ok(())
    }

    /// One element up to its comma or brace. `None` is an unquoted NULL.
    fn item(&mut self) -> Result<Option<String>> {
        let mut item = String::new();
        // Length of the item without unquoted blanks at its end.
        let mut kept = 0;
        let mut is_quoted = false;
        let mut chars = self.rest.char_indices();
        let end = || malformed(self.whole, "Unexpected end of input.");
        loop {
            let (at, c) = chars.next().ok_or_else(end)?;
            match c {
                '"' if is_quoted || !item.is_empty() => return self.fail("Unexpected array element."),
                '"' => {
                    is_quoted = true;
                    loop {
                        match chars.next().ok_or_else(end)?.1 {
                            '"' => break,
                            '\\' => item.push(chars.next().ok_or_else(end)?.1),
                            c => item.push(c),
                        }
                    }
                    kept = item.len();
                }
                ',' | '}' => {
                    if !is_quoted && kept == 0 {
                        return self.fail(&format!("Unexpected \"{c}\" character."));
                    }
                    item.truncate(kept);
                    self.rest = &self.rest[at..];
                    let is_null = !is_quoted && item.eq_ignore_ascii_case("null");
                    return Ok((!is_null).then_some(item));
                }
                '{' => return self.fail("Unexpected \"{\" character."),
                c if c.is_ascii() && is_blank(c as u8) => {
                    if !is_quoted {
                        item.push(c);
                    }
                }
                _ if is_quoted => return self.fail("Unexpected array element."),
                '\\' => {
                    item.push(chars.next().ok_or_else(end)?.1);
                    kept = item.len();
                }
                c => {
                    item.push(c);
                    kept = item.len();
                }
            }
        }
    }
}

/// Appends `{…}`, with the bounds before it if one does not start at 1.
pub(super) fn format(element: &DataType, bytes: &[u8], ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    let array = array_value::decode(element, bytes)?;
    if array.dimensions.iter().any(|dimension| dimension.lower != 1) {
        for dimension in &array.dimensions {
            out.extend_from_slice(format!("[{}:{}]", dimension.lower, dimension.upper()).as_bytes());
        }
        out.push(b'=');
    }
    if array.elements.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    let mut scratch = Vec::new();
    let lengths: Vec<usize> = array.dimensions.iter().map(|dimension| dimension.length as usize).collect();
    let last = lengths.len() - 1;
    for (at, value) in array.elements.iter().enumerate() {
        // Dimensions whose part starts, and those whose part ends, at this element.
        let parts = |at: usize| {
            let mut size = 1;
            lengths
                .iter()
                .rev()
                .take_while(|length| {
                    size *= **length;
                    at.is_multiple_of(size)
                })
                .count()
        };
        if at > 0 {
            out.push(b',');
        }
        out.extend(std::iter::repeat_n(b'{', parts(at)));
        scratch.clear();
        match value {
            Datum::Null => out.extend_from_slice(b"NULL"),
            value => {
                text::format(element, value, ctx, &mut scratch)?;
                put_item(&scratch, out);
            }
        }
        out.extend(std::iter::repeat_n(b'}', parts(at + 1)));
        debug_assert!(parts(at) <= last + 1);
    }
    Ok(())
}

fn put_item(item: &[u8], out: &mut Vec<u8>) {
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',') || is_blank(*byte);
    if !(item.is_empty() || item.eq_ignore_ascii_case(b"null") || item.iter().any(special)) {
        out.extend_from_slice(item);
        return;
    }
    out.push(b'"');
    for byte in item {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

pub(super) fn parse_binary(element: &DataType, mut bytes: &[u8], ctx: &EvalContext) -> Result<Datum> {
    let bytes = &mut bytes;
    let (count, _has_nulls, oid) = (binary::take_i32(bytes)?, binary::take_i32(bytes)?, binary::take_i32(bytes)?);
    let count = match usize::try_from(count) {
        Ok(count) if count <= DIMENSIONS_MAX => count,
        Ok(count) => return Err(array_value::too_many_dimensions(count)),
        Err(_) => return Err(Error::invalid_binary(format!("invalid number of dimensions: {count}"))),
    };
    if oid as u32 != element.oid() {
        let expected = element.oid();
        let message = format!("binary data has array element type {} instead of expected {expected}", oid as u32);
        return Err(Error::new("42804", message));
    }
    let mut dimensions = Vec::with_capacity(count);
    let mut items = usize::from(count > 0);
    for _ in 0..count {
        let (length, lower) = (binary::take_i32(bytes)?, binary::take_i32(bytes)?);
        let length = u32::try_from(length).map_err(|_| array_value::too_large())?;
        items = items.checked_mul(length as usize).ok_or_else(array_value::too_large)?;
        dimensions.push(Dimension { lower, length });
    }
    // Every element takes four bytes at least.
    if items > bytes.len() / 4 {
        return Err(Error::short_binary());
    }
    let mut elements = Vec::with_capacity(items);
    for _ in 0..items {
        elements.push(binary::take_value(element, bytes, ctx)?);
    }
    if !bytes.is_empty() {
        return Err(Error::invalid_binary("incorrect binary data format"));
    }
    if elements.is_empty() {
        dimensions.clear();
    }
    array_value::encode_shaped(element, &ArrayValue { dimensions, elements })
}

pub(super) fn format_binary(element: &DataType, bytes: &[u8], ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    let array = array_value::decode(element, bytes)?;
    let has_nulls = i32::from(array.elements.iter().any(Datum::is_null));
    for word in [array.dimensions.len() as i32, has_nulls, element.oid() as i32] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    for dimension in &array.dimensions {
        out.extend_from_slice(&dimension.length.to_be_bytes());
        out.extend_from_slice(&dimension.lower.to_be_bytes());
    }
    array.elements.iter().try_for_each(|value| binary::put_value(element, value, ctx, out))
}

/// Reads `1 2`, as vectors are written.
pub(super) fn parse_vector(array: &DataType, text: &str, ctx: &EvalContext) -> Result<Datum> {
    let element = array.element().unwrap_or(&DataType::Unknown);
    let words = text.split_ascii_whitespace().map(|word| super::text::parse(element, word, ctx));
    let elements = words.collect::<Result<Vec<_>>>()?;
    let dimensions = vec![Dimension { lower: 0, length: elements.len() as u32 }];
    array_value::encode_shaped(element, &ArrayValue { dimensions, elements })
}

pub(super) fn format_vector(vector: &DataType, bytes: &[u8], ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    let element = vector.element().unwrap_or(&DataType::Unknown);
    for (at, value) in array_value::elements(element, bytes)?.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        super::text::format(element, value, ctx, out)?;
    }
    Ok(())
}
