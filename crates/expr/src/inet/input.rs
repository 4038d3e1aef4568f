//! Text to addresses. `inet` takes whole addresses, or the first octets of one with a length; `cidr` takes the octets
//! that a network has, and guesses its length by the classes that networks once had.

use super::Inet;
use crate::error::{Error, Result};

/// Reads an `inet`; 22P02 for what is none.
pub fn parse_inet(text: &str) -> Result<Inet> {
    let address = if text.contains(':') { parse_v6(text) } else { parse_v4(text) };
    address.ok_or_else(|| Error::invalid_text("inet", text))
}

/// Reads a `cidr`; 22P02 for what is none, or has bits set behind its network.
pub fn parse_cidr(text: &str) -> Result<Inet> {
    let network = if text.contains(':') { parse_v6(text) } else { parse_v4_network(text) };
    let network = network.ok_or_else(|| Error::invalid_text("cidr", text))?;
    if network.is_network() {
        return Ok(network);
    }
    let message = format!("invalid cidr value: \"{text}\"");
    Err(Error::new("22P02", message).with_detail("Value has bits set to right of mask."))
}

/// Takes the decimal digits off the front, up to 255.
fn take_octet(text: &mut &[u8]) -> Option<u8> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (taken, rest) = text.split_at(digits);
    if taken.is_empty() {
        return None;
    }
    *text = rest;
    taken.iter().try_fold(0u8, |value, digit| value.checked_mul(10)?.checked_add(digit - b'0'))
}

/// What stands behind the octets: nothing, or a length. Digits beyond an integer wrap around, as in PostgreSQL.
fn length_of_v4(rest: &[u8]) -> Option<Option<u8>> {
    match rest {
        [] => Some(None),
        [b'/', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            let value =
                digits.iter().fold(0i32, |value, digit| value.wrapping_mul(10).wrapping_add(i32::from(digit - b'0')));
            u8::try_from(value).ok().filter(|bits| *bits <= 32).map(Some)
        }
        _ => None,
    }
}

fn of_v4(mut octets: Vec<u8>, bits: u8) -> Inet {
    octets.resize(4, 0);
    Inet::from_octets(&octets, bits, false)
}

fn parse_v4(text: &str) -> Option<Inet> {
    let mut rest = text.as_bytes();
    let mut octets = Vec::new();
    while rest.first().is_some_and(u8::is_ascii_digit) {
        octets.push(take_octet(&mut rest)?);
        match rest {
            _ if octets.len() > 4 => return None,
            [] | [b'/', ..] => break,
            [b'.', after @ ..] => rest = after,
            _ => return None,
        }
    }
    if octets.is_empty() {
        return None;
    }
    let bits = match length_of_v4(rest)? {
        Some(bits) if usize::from(bits) / 8 <= octets.len() => bits,
        None if octets.len() == 4 => 32,
        _ => return None,
    };
    Some(of_v4(octets, bits))
}

fn parse_v4_network(text: &str) -> Option<Inet> {
    let mut rest = text.as_bytes();
    let mut octets = Vec::new();
    if let [b'0', b'x' | b'X', hexadecimal @ ..] = rest
        && hexadecimal.first().is_some_and(u8::is_ascii_hexdigit)
    {
        let digits = hexadecimal.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let nibble = |byte: &u8| (*byte as char).to_digit(16).unwrap_or(0) as u8;
        let pairs = hexadecimal[..digits].chunks(2);
        octets.extend(pairs.map(|pair| nibble(&pair[0]) << 4 | pair.get(1).map_or(0, nibble)));
        rest = &hexadecimal[digits..];
    } else {
        loop {
            octets.push(take_octet(&mut rest)?);
            match rest {
                [b'.', after @ ..] => rest = after,
                _ => break,
            }
        }
    }
    if octets.len() > 4 {
        return None;
    }
    let bits = match length_of_v4(rest)? {
        Some(bits) => bits,
        None => length_by_class(&octets),
    };
    Some(of_v4(octets, bits))
}

/// The length of a network that is told without one: that of its class, but at least all octets that are told.
fn length_by_class(octets: &[u8]) -> u8 {
    let first = octets.first().copied().unwrap_or(0);
    let of_class = match first {
        240.. => 32,
        224.. => 8,
        192.. => 24,
        128.. => 16,
        _ => 8,
    };
    match of_class.max(octets.len() as u8 * 8) {
        8 if first == 224 => 4,
        bits => bits,
    }
}

/// The digits of a length: no zero before others, at most 128.
fn length_of_v6(digits: &[u8]) -> Option<u8> {
    if digits.is_empty() || (digits.len() > 1 && digits[0] == b'0') || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().try_fold(0u8, |value, digit| value.checked_mul(10)?.checked_add(digit - b'0'))?;
    (value <= 128).then_some(value)
}

fn parse_v6(text: &str) -> Option<Inet> {
    let mut rest = text.as_bytes();
    if rest.first() == Some(&b':') {
        rest = &rest[1..];
        if rest.first() != Some(&b':') {
            return None;
        }
    }
    let mut octets: Vec<u8> = Vec::new();
    // Where the zeros that are left out stand.
    let mut gap = None;
    let mut bits = 128;
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (word, after) = rest.split_at(digits);
        let is_dotted = after.first() == Some(&b'.') && octets.len() <= 12;
        if is_dotted && let Some((tail, length)) = parse_v4_tail(rest) {
            octets.extend(tail);
            bits = length.unwrap_or(bits);
            break;
        }
        if digits > 4 {
            return None;
        }
        if digits > 0 {
            let word =
                word.iter().fold(0u16, |word, byte| word << 4 | (*byte as char).to_digit(16).unwrap_or(0) as u16);
            octets.extend(word.to_be_bytes());
        }
        match after {
            [] => break,
            [b':'] if digits > 0 => return None,
            [b':', next @ ..] => {
                if digits == 0 && gap.replace(octets.len()).is_some() {
                    return None;
                }
                rest = next;
            }
            [b'/', length @ ..] => {
                bits = length_of_v6(length)?;
                break;
            }
            _ => return None,
        }
        if octets.len() > 16 {
            return None;
        }
    }
    match gap {
        Some(at) if octets.len() < 16 => {
            let tail = octets.split_off(at);
            octets.resize(16 - tail.len(), 0);
            octets.extend(tail);
        }
        Some(_) => return None,
        None => {}
    }
    (octets.len() == 16).then(|| Inet::from_octets(&octets, bits, true))
}

/// Octets with dots at the end of an address of IPv6, and its length if there is one. An octet that is left out is 0,
/// as in PostgreSQL.
fn parse_v4_tail(text: &[u8]) -> Option<([u8; 4], Option<u8>)> {
    let (dotted, length) = match text.iter().position(|byte| *byte == b'/') {
        Some(at) => (&text[..at], Some(length_of_v6(&text[at + 1..])?)),
        None => (text, None),
    };
    let mut octets = [0; 4];
    let parts: Vec<&[u8]> = dotted.split(|byte| *byte == b'.').collect();
    if parts.len() > 4 || (length.is_none() && parts.last().is_some_and(|last| last.is_empty())) {
        return None;
    }
    for (octet, part) in octets.iter_mut().zip(&parts) {
        let has_zero_before = part.len() > 1 && part[0] == b'0';
        if has_zero_before || !part.iter().all(u8::is_ascii_digit) {
            return None;
        }
        *octet = part.iter().try_fold(0u8, |value, digit| value.checked_mul(10)?.checked_add(digit - b'0'))?;
    }
    Some((octets, length))
}
