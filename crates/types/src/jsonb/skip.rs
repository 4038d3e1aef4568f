//! Behind a string, a word, a whole value: what is passed is looked at in blocks, of whose bytes each is a bit of a mask
//! (the idea is that of Langdale and Lemire, "Parsing Gigabytes of JSON per Second", VLDB Journal 2019, section 3.1).

/// Bytes of a block, and bits of a mask.
const BLOCK: usize = 64;
/// Strings and words are short.
const PIECE: usize = 16;

#[inline]
pub(super) fn after_blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Behind the string whose opening quote is at `at`.
#[inline]
pub(super) fn after_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(piece) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let found = masks::ends_of_string(piece);
        if found == 0 {
            at += PIECE;
            continue;
        }
        at += found.trailing_zeros() as usize;
        match bytes[at] {
            b'"' => return at + 1,
            _ => at += 2,
        }
    }
    loop {
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return bytes.len(),
        }
    }
}

/// Behind the value that starts at `at`, which is no blank.
#[inline]
pub(super) fn after_value(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => after_string(bytes, at),
        Some(b'{' | b'[') => after_container(bytes, at),
        _ => after_word(bytes, at),
    }
}

/// Behind a number, `true`, `false` or `null`.
#[inline]
pub(super) fn after_word(bytes: &[u8], mut at: usize) -> usize {
    while let Some(piece) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let found = masks::ends_of_word(piece);
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += PIECE;
    }
    while bytes.get(at).is_some_and(|byte| !ends_word(*byte)) {
        at += 1;
    }
    at.min(bytes.len())
}

fn ends_word(byte: u8) -> bool {
    matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\t' | b'\n' | b'\r')
}

/// What a block's bytes are, a bit each.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Masks {
    quotes: u64,
    escapes: u64,
    opens: u64,
    closes: u64,
}

/// Behind the array or object that starts at `at`.
fn after_container(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    // What holds at a block's start: the first byte is in a string, is escaped.
    let (mut in_string, mut is_escaped) = (false, false);
    while at < bytes.len() {
        let Masks { mut quotes, escapes, opens, closes } = match bytes[at..].first_chunk() {
            Some(block) => masks::of(block),
            None => masks::of(&last_block(&bytes[at..])),
        };
        if escapes != 0 || is_escaped {
            quotes &= !escaped(escapes, &mut is_escaped);
        }
        let strings = from_each_to_the_next(quotes) ^ if in_string { u64::MAX } else { 0 };
        in_string = strings >> (BLOCK - 1) != 0;
        let mut brackets = (opens | closes) & !strings;
        while brackets != 0 {
            let bit = brackets & brackets.wrapping_neg();
            brackets ^= bit;
            if opens & bit != 0 {
                depth += 1;
                continue;
            }
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + bit.trailing_zeros() as usize + 1;
            }
        }
        at += BLOCK;
    }
    bytes.len()
}

fn last_block(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Which bytes an escape precedes that is not escaped itself. `carried`: of the first byte, from the block before; then
/// of the next block's first.
fn escaped(mut escapes: u64, carried: &mut bool) -> u64 {
    let mut found = u64::from(*carried);
    escapes &= !found;
    *carried = false;
    while escapes != 0 {
        let next = (escapes & escapes.wrapping_neg()) << 1;
        escapes &= escapes - 1;
        escapes &= !next;
        found |= next;
        *carried = next == 0;
    }
    found
}

/// Bits from each set one up to before the next set one, of pairs of them.
fn from_each_to_the_next(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(target_arch = "x86_64")]
mod masks {
    use super::{BLOCK, Masks, PIECE};
    use std::arch::x86_64::*;

    /// `[` and `{`, and their closing ones, differ in this bit alone.
    const CURLY: u8 = 0x20;

    #[inline]
    pub fn of(block: &[u8; BLOCK]) -> Masks {
        let mut found = Masks { quotes: 0, escapes: 0, opens: 0, closes: 0 };
        for (at, piece) in block.as_chunks().0.iter().enumerate() {
            let (piece, shift) = (load(piece), at * PIECE);
            let curly = either(piece, splat(CURLY));
            found.quotes |= u64::from(equal(piece, b'"')) << shift;
            found.escapes |= u64::from(equal(piece, b'\\')) << shift;
            found.opens |= u64::from(equal(curly, b'{')) << shift;
            found.closes |= u64::from(equal(curly, b'}')) << shift;
        }
        found
    }

    #[inline]
    pub fn ends_of_string(piece: &[u8; PIECE]) -> u32 {
        let piece = load(piece);
        equal(piece, b'"') | equal(piece, b'\\')
    }

    #[inline]
    pub fn ends_of_word(piece: &[u8; PIECE]) -> u32 {
        let piece = load(piece);
        let curly = either(piece, splat(CURLY));
        let blanks = equal(piece, b' ') | equal(piece, b'\t') | equal(piece, b'\n') | equal(piece, b'\r');
        equal(piece, b',') | equal(curly, b'}') | equal(piece, b':') | blanks
    }

    // SAFETY: SSE2 is part of x86-64.
    macro_rules! sse2 {
        ($call:expr) => {{
            #[allow(unsafe_code, unused_unsafe)]
            unsafe {
                $call
            }
        }};
    }

    #[inline]
    fn load(piece: &[u8; PIECE]) -> __m128i {
        sse2!(_mm_loadu_si128(piece.as_ptr().cast()))
    }

    #[inline]
    fn splat(byte: u8) -> __m128i {
        sse2!(_mm_set1_epi8(byte as i8))
    }

    #[inline]
    fn either(left: __m128i, right: __m128i) -> __m128i {
        sse2!(_mm_or_si128(left, right))
    }

    /// Bytes that are this one.
    #[inline]
    fn equal(piece: __m128i, byte: u8) -> u32 {
        sse2!(_mm_movemask_epi8(_mm_cmpeq_epi8(piece, splat(byte)))) as u32
    }
}

#[cfg(any(not(target_arch = "x86_64"), test))]
mod portable {
    use super::{BLOCK, Masks, PIECE, ends_word};

    pub fn of(block: &[u8; BLOCK]) -> Masks {
        Masks {
            quotes: bits(block, |byte| byte == b'"'),
            escapes: bits(block, |byte| byte == b'\\'),
            opens: bits(block, |byte| matches!(byte, b'[' | b'{')),
            closes: bits(block, |byte| matches!(byte, b']' | b'}')),
        }
    }

    pub fn ends_of_string(piece: &[u8; PIECE]) -> u32 {
        bits(piece, |byte| matches!(byte, b'"' | b'\\')) as u32
    }

    pub fn ends_of_word(piece: &[u8; PIECE]) -> u32 {
        bits(piece, ends_word) as u32
    }

    fn bits(bytes: &[u8], is: impl Fn(u8) -> bool) -> u64 {
        bytes.iter().rev().fold(0, |bits, byte| bits << 1 | u64::from(is(*byte)))
    }
}
#[cfg(not(target_arch = "x86_64"))]
use portable as masks;

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte at a time.
    fn plainly_after_container(bytes: &[u8], mut at: usize) -> usize {
        let mut depth = 0_usize;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at += 1;
                    while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        bytes.len()
    }

    /// Pieces of these one after another, by a generator of Knuth's (MMIX).
    fn mixed(pieces: &[&[u8]], count: usize, mut state: u64) -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            pieces[(state >> 33) as usize % pieces.len()]
        };
        (0..count).flat_map(|_| next().iter().copied()).collect()
    }

    #[test]
    fn masks_are_those_of_single_bytes() {
        for seed in 0..200 {
            let letters: Vec<&[u8]> = b"\"\\[]{}:, \t\n\r\x01\x1b\x1d\x7f\x80\xff;<ab0".chunks(1).collect();
            let bytes = mixed(&letters, BLOCK, seed);
            let block = bytes.first_chunk().unwrap();
            assert_eq!(masks::of(block), portable::of(block));
            let piece = bytes.first_chunk().unwrap();
            assert_eq!(masks::ends_of_string(piece), portable::ends_of_string(piece));
            assert_eq!(masks::ends_of_word(piece), portable::ends_of_word(piece));
        }
        let all: Vec<u8> = (0..=255).collect();
        for block in all.as_chunks().0 {
            assert_eq!(masks::of(block), portable::of(block));
        }
    }

    #[test]
    fn containers_end_where_they_end_byte_by_byte() {
        let strings: [&[u8]; 7] = [
            br#""""#,
            br#""\\""#,
            br#""\"""#,
            br#""\\\"[{""#,
            br#""}]""#,
            br#""\\\\\\""#,
            br#""long enough to lie in two blocks""#,
        ];
        let brackets: [&[u8]; 5] = [b"[", b"]", b"{", b"}", b", 12: "];
        for seed in 0..3000 {
            // Few brackets, and many.
            let times = 1 + seed as usize % 3;
            let pieces = [strings.as_slice(), &brackets.repeat(times)].concat();
            let mut bytes = mixed(&pieces, 1 + seed as usize % 60, seed);
            bytes.insert(0, b'[');
            for cut in [bytes.len(), bytes.len() * 2 / 3] {
                let bytes = &bytes[..cut];
                assert_eq!(after_container(bytes, 0), plainly_after_container(bytes, 0), "{}", bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn strings_and_words_end_at_their_ends() {
        for length in 0..70 {
            let text = format!("\"{}\": {}, ", "x".repeat(length), "1".repeat(length + 1));
            assert_eq!(after_string(text.as_bytes(), 0), length + 2);
            assert_eq!(after_word(text.as_bytes(), length + 4), text.len() - 2);
            let escaped = format!("\"{}\\\"{}\"", "x".repeat(length), "y".repeat(70 - length));
            assert_eq!(after_string(escaped.as_bytes(), 0), escaped.len());
            // Cut short.
            let open = &text[..length + 1];
            assert_eq!(after_string(open.as_bytes(), 0), open.len());
            assert_eq!(after_word("1".repeat(length).as_bytes(), 0), length);
        }
        assert_eq!(after_string(b"\"\\", 0), 2);
    }
}
