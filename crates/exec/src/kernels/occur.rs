//! Which integers occur: a bit for each from the least one on, in words of which the last one is 0.
#![allow(unsafe_code)]

use basalt_types::widest;

/// Clears the rows of the mask whose key does not occur. There is a word at least.
pub fn clear_absent_i32(keys: &[i32], least: i64, words: &[u64], mask: &mut [u8]) {
    // Distances of keys are less than 32 bits wide, and none of a key below is taken for that of one above, if all
    // integers that have bits are as wide as keys are.
    let all = i64::try_from(words.len() - 1).ok().and_then(|words| words.checked_mul(64)?.checked_add(least));
    match (i32::try_from(least), all.map(i32::try_from)) {
        (Ok(least), Some(Ok(_))) if cfg!(target_endian = "little") => narrow(keys, least, halves(words), mask),
        _ => wide_i32(keys, least, words, mask),
    }
}

/// The same of wider keys.
pub fn clear_absent_i64(keys: &[i64], least: i64, words: &[u64], mask: &mut [u8]) {
    assert!(!words.is_empty(), "the last word is 0");
    wide_i64(keys, least, words, mask);
}

/// Words as halves, the lower one first where the machine has it so.
fn halves(words: &[u64]) -> &[u32] {
    // SAFETY: two halves lie where a word does, and any bits are numbers.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 2) }
}

widest! {
    fn narrow(keys: &[i32], least: i32, halves: &[u32], mask: &mut [u8]) {
        let end = halves.len() as u32 - 1;
        for (mask, key) in mask.iter_mut().zip(keys) {
            let bit = key.wrapping_sub(least) as u32;
            // SAFETY: no place behind the end is asked for.
            let half = unsafe { *halves.get_unchecked((bit / 32).min(end) as usize) };
            *mask &= (half >> (bit % 32) & 1) as u8;
        }
    }
}

macro_rules! wide {
    ($name:ident, $native:ty) => {
        widest! {
            fn $name(keys: &[$native], least: i64, words: &[u64], mask: &mut [u8]) {
                let end = words.len() as u64 - 1;
                for (mask, key) in mask.iter_mut().zip(keys) {
                    let bit = i64::from(*key).wrapping_sub(least) as u64;
                    // SAFETY: no place behind the end is asked for.
                    let word = unsafe { *words.get_unchecked((bit / 64).min(end) as usize) };
                    *mask &= (word >> (bit % 64) & 1) as u8;
                }
            }
        }
    };
}

wide!(wide_i32, i32);
wide!(wide_i64, i64);

#[cfg(test)]
mod tests;
