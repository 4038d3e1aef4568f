//! LEB128 lengths, as rows and records use them.

/// Appends `value` in 1 to 10 bytes.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a value off the front of `input`; `None` if it is cut short or longer than 64 bits.
#[inline]
pub fn take(input: &mut &[u8]) -> Option<u64> {
    match input {
        [byte, rest @ ..] if *byte < 0x80 => {
            let value = u64::from(*byte);
            *input = rest;
            Some(value)
        }
        _ => take_long(input),
    }
}

fn take_long(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in input.iter().enumerate().take(10) {
        if i == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            *input = &input[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Takes `count` bytes off the front.
#[inline]
pub fn take_bytes<'a>(input: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    if input.len() < count {
        return None;
    }
    let (head, tail) = input.split_at(count);
    *input = tail;
    Some(head)
}

/// Appends a length and the bytes.
pub fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes what [`put_slice`] wrote.
#[inline]
pub fn take_slice<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take(input)?).ok()?;
    take_bytes(input, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip_and_truncation_is_noticed() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(take(&mut out.as_slice()), Some(value));
            assert_eq!(take(&mut &out[..out.len() - 1]), None);
        }
        assert_eq!(take(&mut [0xff; 11].as_slice()), None);
    }
}
