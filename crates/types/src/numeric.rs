//! The variable-length form of `numeric`: any precision, per-value scale, NaN and infinities.
//!
//! Bytes compare as values do, so that sorting, zone maps and keys need no decoding:
//!
//! ```text
//! class u8 | weight u16 BE (+0x8000) | digit u16 BE (+1) … | 0x0000 | display scale u16 BE
//! ```
//!
//! Digits are base 10,000, most significant first, without leading or trailing zero digits; the value is
//! Σ digit[i] · 10000^(weight − i). For negative values every byte between class and display scale is
//! complemented. Zero, NaN and the infinities are class and display scale alone. The display scale (the
//! number of decimals that PostgreSQL prints) is not part of the value: [`key_bytes`] leaves it out, so
//! 1.0 and 1.00 are one key. Arithmetic lives in `expr::numeric`.

pub const CLASS_NEG_INFINITY: u8 = 0x08;
pub const CLASS_NEGATIVE: u8 = 0x10;
pub const CLASS_ZERO: u8 = 0x20;
pub const CLASS_POSITIVE: u8 = 0x30;
pub const CLASS_INFINITY: u8 = 0x40;
pub const CLASS_NAN: u8 = 0x50;

/// A numeric taken apart. `digits` are base 10,000 without leading or trailing zeros.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    pub class: u8,
    pub weight: i16,
    pub digits: Vec<u16>,
    pub display_scale: u16,
}

/// The part of an encoded numeric that decides equality and order.
pub fn key_bytes(encoded: &[u8]) -> &[u8] {
    &encoded[..encoded.len().saturating_sub(2)]
}

pub fn encode(parts: &Parts, out: &mut Vec<u8>) {
    out.push(parts.class);
    let flip = match parts.class {
        CLASS_POSITIVE => 0,
        CLASS_NEGATIVE => 0xff,
        _ => {
            out.extend_from_slice(&parts.display_scale.to_be_bytes());
            return;
        }
    };
    let mut put = |word: u16| out.extend(word.to_be_bytes().map(|byte| byte ^ flip));
    put((parts.weight as u16) ^ 0x8000);
    for digit in &parts.digits {
        debug_assert!(*digit < 10_000);
        put(digit + 1);
    }
    put(0);
    out.extend_from_slice(&parts.display_scale.to_be_bytes());
}

/// `None` if the bytes are not what [`encode`] writes.
pub fn decode(encoded: &[u8]) -> Option<Parts> {
    let (&class, rest) = encoded.split_first()?;
    if rest.len() < 2 {
        return None;
    }
    let (body, scale) = rest.split_at(rest.len() - 2);
    let display_scale = u16::from_be_bytes([scale[0], scale[1]]);
    let flip = match class {
        CLASS_POSITIVE => 0,
        CLASS_NEGATIVE => 0xffff,
        CLASS_NEG_INFINITY | CLASS_ZERO | CLASS_INFINITY | CLASS_NAN if body.is_empty() => {
            return Some(Parts { class, weight: 0, digits: Vec::new(), display_scale });
        }
        _ => return None,
    };
    if body.len() < 4 || body.len() % 2 != 0 {
        return None;
    }
    let mut words = body.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]) ^ flip);
    let weight = (words.next()? ^ 0x8000) as i16;
    let mut digits: Vec<u16> = words.collect();
    if digits.pop() != Some(0) || digits.is_empty() {
        return None;
    }
    for digit in &mut digits {
        *digit = digit.checked_sub(1).filter(|digit| *digit < 10_000)?;
    }
    Some(Parts { class, weight, digits, display_scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(class: u8, weight: i16, digits: &[u16], display_scale: u16) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&Parts { class, weight, digits: digits.to_vec(), display_scale }, &mut out);
        out
    }

    #[test]
    fn bytes_sort_as_values() {
        let ascending = [
            number(CLASS_NEG_INFINITY, 0, &[], 0),
            number(CLASS_NEGATIVE, 1, &[1], 0),
            number(CLASS_NEGATIVE, 0, &[2, 5000], 1),
            number(CLASS_NEGATIVE, 0, &[2], 0),
            number(CLASS_NEGATIVE, -1, &[9999], 4),
            number(CLASS_ZERO, 0, &[], 3),
            number(CLASS_POSITIVE, -2, &[1], 8),
            number(CLASS_POSITIVE, 0, &[2], 0),
            number(CLASS_POSITIVE, 0, &[2, 1], 4),
            number(CLASS_POSITIVE, 1, &[1], 0),
            number(CLASS_INFINITY, 0, &[], 0),
            number(CLASS_NAN, 0, &[], 0),
        ];
        for pair in ascending.windows(2) {
            assert!(key_bytes(&pair[0]) < key_bytes(&pair[1]), "{pair:?}");
        }
        for encoded in &ascending {
            let mut again = Vec::new();
            encode(&decode(encoded).unwrap(), &mut again);
            assert_eq!(&again, encoded);
        }
    }

    #[test]
    fn garbage_is_refused() {
        for bad in [
            &[][..],
            &[0x30],
            &[0x30, 0, 0],
            &[0x99, 0, 0],
            &[0x30, 0x80, 0, 0, 0, 0, 0],
            &[0x30, 0x80, 0, 0xff, 0xff, 0, 0, 0, 0],
        ] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }
}
