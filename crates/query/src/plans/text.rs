//! A statement's text with parameters in the place of its literals.
//!
//! Only literals that stand where a parameter may stand are taken out: behind an operator, a parenthesis, a comma or
//! one of a few words. Integers come as integers, decimals as decimals, strings as text of a type still to be found out,
//! as the binder sees them. Other numbers stay in the text. A text with a string elsewhere is left alone: it may be a moment (`date
//! 'today'`) or part of a type; so is one in which a number may stand for a group. What stands in an ORDER BY stays: a
//! number may be a column there.

use smallvec::SmallVec;
use std::io::Write;

/// A literal of a statement, as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Literal<'t> {
    Int4(i32),
    Int8(i64),
    /// Digits around a point.
    Decimal(&'t str),
    /// Between its quotes, in which two are one.
    Text(&'t str),
}

pub(crate) type Literals<'t> = SmallVec<[Literal<'t>; 8]>;

/// Words behind which an expression begins.
const BEFORE_VALUES: [&str; 14] = [
    "select", "where", "and", "or", "not", "like", "ilike", "between", "when", "then", "else", "limit", "offset",
    "having",
];

/// The words with which statements begin that may have row plans or write few rows.
const VERBS: [&str; 4] = ["select", "insert", "update", "delete"];

/// Words that make a text one to leave alone.
const STRANGE: [&str; 10] =
    ["group", "distinct", "union", "intersect", "except", "window", "over", "interval", "with", "into"];

/// The words that end an ORDER BY.
const BEHIND_ORDER: [&str; 4] = ["limit", "offset", "fetch", "for"];

/// `-2147483648` is of another type than this.
const INT4_BEYOND: i64 = 1 << 31;

/// Writes the text with parameters into `key`, then a zero byte and what each of them is. False: it is left alone
/// (several statements, comments, parameters of its own, unusual literals, nothing to do).
pub(crate) fn parametrize<'t>(sql: &'t str, key: &mut Vec<u8>, literals: &mut Literals<'t>) -> bool {
    key.clear();
    literals.clear();
    let bytes = sql.as_bytes();
    let mut at = skip_blanks(bytes, 0);
    let verb = word_at(bytes, at);
    if !VERBS.iter().any(|known| verb.eq_ignore_ascii_case(known.as_bytes())) {
        return false;
    }
    // INSERT INTO, where SELECT … INTO is something else.
    let mut may_be_into = verb.eq_ignore_ascii_case(b"insert");
    let mut takes_value = false;
    let (mut depth, mut ordered_at): (usize, Option<usize>) = (0, None);
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => {
                at = skip_blanks(bytes, at);
                if at < bytes.len() && bytes[at] != b';' {
                    key.push(b' ');
                }
                continue;
            }
            b';' => {
                // Nothing may follow.
                if skip_blanks(bytes, at + 1) < bytes.len() {
                    return false;
                }
                break;
            }
            b'\'' => {
                let Some(end) = end_of_string(bytes, at) else { return false };
                // Two strings that only blanks part are one.
                if bytes.get(skip_blanks(bytes, end)) == Some(&b'\'') {
                    return false;
                }
                if !takes_value {
                    return false;
                }
                put_parameter(key, literals, Literal::Text(&sql[at + 1..end - 1]));
                at = end;
                takes_value = false;
            }
            b'0'..=b'9' => {
                let end = at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let goes_on = matches!(bytes.get(end), Some(b'.' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..));
                let value = sql[at..end].parse::<i64>().ok();
                let value = value.filter(|value| takes_value && !goes_on && *value != INT4_BEYOND);
                let end = if goes_on { end_of_word(bytes, end) } else { end };
                match value {
                    Some(value) => {
                        let literal = i32::try_from(value).map_or(Literal::Int8(value), Literal::Int4);
                        put_parameter(key, literals, literal);
                    }
                    None if takes_value && is_decimal(&bytes[start..end]) => {
                        put_parameter(key, literals, Literal::Decimal(&sql[start..end]));
                    }
                    None => key.extend_from_slice(&bytes[start..end]),
                }
                at = end;
                takes_value = false;
            }
            b'"' => {
                let Some(end) = end_of_name(bytes, at) else { return false };
                key.extend_from_slice(&bytes[start..end]);
                at = end;
                takes_value = false;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {
                let end = end_of_word(bytes, at);
                let word = &bytes[start..end];
                // E'…', B'…', X'…', N'…', U&'…'.
                if matches!(bytes.get(end), Some(b'\'')) || matches!(word, b"U" | b"u") && bytes.get(end) == Some(&b'&')
                {
                    return false;
                }
                let is_into = word.eq_ignore_ascii_case(b"into") && std::mem::take(&mut may_be_into);
                if !is_into && STRANGE.iter().any(|strange| word.eq_ignore_ascii_case(strange.as_bytes())) {
                    return false;
                }
                // Behind a point it is a name, whatever it says.
                let is_name = key.iter().rev().find(|byte| **byte != b' ') == Some(&b'.');
                key.extend_from_slice(word);
                at = end;
                let is_one_of = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
                match ordered_at {
                    None if is_one_of(&["order"]) && !is_name => ordered_at = Some(depth),
                    // Within parentheses they belong to something else: `substring(a from 1 for 2)`.
                    Some(at) if at == depth && is_one_of(&BEHIND_ORDER) && !is_name => ordered_at = None,
                    _ => {}
                }
                takes_value = ordered_at.is_none() && is_one_of(&BEFORE_VALUES);
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => return false,
            b'/' if bytes.get(at + 1) == Some(&b'*') => return false,
            // Parameters of its own, strings between dollars, anything odd.
            b'$' | b'\\' | b'{' | b'}' | b'`' | 0..=0x1f => return false,
            byte => {
                key.push(byte);
                at += 1;
                match byte {
                    b'(' => depth += 1,
                    b')' => {
                        depth = depth.saturating_sub(1);
                        ordered_at = ordered_at.filter(|at| *at <= depth);
                    }
                    _ => {}
                }
                takes_value = ordered_at.is_none()
                    && matches!(
                        byte,
                        b'(' | b',' | b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'!' | b'~' | b'|' | b'&'
                    );
            }
        }
    }
    while key.last() == Some(&b' ') {
        key.pop();
    }
    key.push(0);
    key.extend(literals.iter().map(|literal| match literal {
        Literal::Int4(_) => b'4',
        Literal::Int8(_) => b'8',
        Literal::Decimal(_) => b'n',
        Literal::Text(_) => b't',
    }));
    true
}

/// The statement that a key stands for.
pub(crate) fn statement_of(key: &[u8]) -> Option<&str> {
    let end = key.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&key[..end]).ok()
}

/// Digits, a point, digits.
fn is_decimal(number: &[u8]) -> bool {
    let mut parts = number.split(|byte| *byte == b'.');
    let is_digits =
        |part: Option<&[u8]>| part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit));
    is_digits(parts.next()) && is_digits(parts.next()) && parts.next().is_none()
}

fn put_parameter<'t>(key: &mut Vec<u8>, literals: &mut Literals<'t>, literal: Literal<'t>) {
    literals.push(literal);
    write!(key, "${}", literals.len()).expect("a vector takes all");
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)).count()
}

fn word_at(bytes: &[u8], at: usize) -> &[u8] {
    &bytes[at..end_of_word(bytes, at)]
}

fn end_of_word(bytes: &[u8], at: usize) -> usize {
    let goes_on = |byte: &&u8| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' | b'$' | b'.' | 0x80..);
    at + bytes[at..].iter().take_while(goes_on).count()
}

/// Behind the closing quote of the string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += bytes[at..].iter().position(|byte| matches!(byte, b'\'' | b'\\'))?;
        match (bytes[at], bytes.get(at + 1)) {
            // What a backslash means is a setting.
            (b'\\', _) => return None,
            (_, Some(b'\'')) => at += 2,
            _ => return Some(at + 1),
        }
    }
}

fn end_of_name(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == b'"')?;
        match bytes.get(at + 1) {
            Some(b'"') => at += 2,
            _ => return Some(at + 1),
        }
    }
}
