//! `"char"` (manual 8.3): one byte.
//!
//! It rests as the character of that number (U+0080 for byte 128), the byte 0 as no character, so that texts sort as
//! bytes do. A byte beyond ASCII shows in octal.

/// A byte as it rests.
pub fn of_byte(byte: u8) -> String {
    if byte == 0 { String::new() } else { char::from(byte).to_string() }
}

/// The byte of what [`of_byte`] gave. Bytes beyond ASCII once rested as they are shown.
pub fn byte(stored: &[u8]) -> u8 {
    if let [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] = stored {
        return (a - b'0').wrapping_shl(6) | (b - b'0') << 3 | (c - b'0');
    }
    let first = std::str::from_utf8(stored).ok().and_then(|text| text.chars().next());
    first.and_then(|first| u8::try_from(u32::from(first)).ok()).unwrap_or(0)
}

/// Reads a byte: three octal digits behind a backslash, or the first byte of a text.
pub fn parse(text: &str) -> String {
    of_byte(match text.as_bytes() {
        [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
            (a - b'0').wrapping_shl(6) | (b - b'0') << 3 | (c - b'0')
        }
        [first, ..] => *first,
        [] => 0,
    })
}

/// Appends what a client sees.
pub fn write(stored: &[u8], out: &mut Vec<u8>) {
    match byte(stored) {
        0 => {}
        ascii @ 1..0x80 => out.push(ascii),
        byte => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back_and_sorts_as_it_is() {
        let stored: Vec<String> = (0..=u8::MAX).map(of_byte).collect();
        assert!(stored.is_sorted());
        for (number, stored) in (0..=u8::MAX).zip(&stored) {
            assert_eq!(byte(stored.as_bytes()), number);
            let mut shown = Vec::new();
            write(stored.as_bytes(), &mut shown);
            assert_eq!(parse(&String::from_utf8_lossy(&shown)), *stored);
        }
        assert_eq!(byte(b"\\351"), 0o351);
        assert_eq!(parse("\\400"), "");
        assert_eq!(parse("é"), "\u{c3}");
    }
}
