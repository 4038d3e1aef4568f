//! Views of texts (Arrow columnar format, "Variable-size Binary View Layout"): length, then all bytes of a short one, or
//! the first four of a longer one, the number of its buffer and its offset there.

use super::INLINE_BYTES_MAX;

/// The view of bytes that lie at `offset` of buffer number `buffer`, unless they are so few that they are in it.
#[inline]
pub fn view(bytes: &[u8], buffer: u32, offset: u32) -> u128 {
    let inside = if bytes.len() > INLINE_BYTES_MAX {
        u128::from(first_four(bytes)) | u128::from(buffer) << 32 | u128::from(offset) << 64
    } else {
        few(bytes)
    };
    inside << 32 | u128::from(bytes.len() as u32)
}

/// Twelve bytes at most, the first one lowest. What is read from both ends overlaps, and is the same there.
#[inline]
fn few(bytes: &[u8]) -> u128 {
    match bytes {
        [] => 0,
        [first, ..] if bytes.len() < 4 => {
            let (middle, last) = (bytes.len() / 2, bytes.len() - 1);
            u128::from(*first) | u128::from(bytes[middle]) << (8 * middle) | u128::from(bytes[last]) << (8 * last)
        }
        _ if bytes.len() < 8 => {
            let behind = bytes.len() - 4;
            u128::from(first_four(bytes)) | u128::from(first_four(&bytes[behind..])) << (8 * behind)
        }
        _ => {
            let behind = bytes.len() - 8;
            u128::from(first_eight(bytes)) | u128::from(first_eight(&bytes[behind..])) << (8 * behind)
        }
    }
}

#[inline]
fn first_four(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("there are four"))
}

#[inline]
fn first_eight(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("there are eight"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::make_view;

    #[test]
    fn views_are_those_of_arrow() {
        let bytes: Vec<u8> = (1..=40).map(|byte| byte * 6).collect();
        for length in 0..bytes.len() {
            for from in 0..bytes.len() - length {
                let some = &bytes[from..from + length];
                assert_eq!(view(some, 7, u32::MAX - 3), make_view(some, 7, u32::MAX - 3), "{some:?}");
            }
        }
    }
}
