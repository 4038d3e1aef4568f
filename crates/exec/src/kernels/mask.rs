//! Masks: one byte per row, 1 where the row counts.

use arrow_buffer::{BooleanBuffer, NullBuffer};
use basalt_types::widest;
#[cfg(target_arch = "x86_64")]
use basalt_types::widest::{Machine, machine};

/// Bytes that are set at once: for more of them than two thousand or so the C library takes an instruction that is slow
/// to begin.
const SET_AT_ONCE: usize = 1024;

/// All rows count.
pub fn all(rows: usize) -> Vec<u8> {
    let mut mask = Vec::with_capacity(rows);
    while mask.len() < rows {
        mask.resize(rows.min(mask.len() + SET_AT_ONCE), 1);
    }
    mask
}

widest! {
    /// How many rows count.
    pub fn count(mask: &[u8]) -> usize {
        mask.chunks(128).map(|part| usize::from(part.iter().sum::<u8>())).sum()
    }
}

widest! {
    pub fn or(mask: &mut [u8], other: &[u8]) {
        mask.iter_mut().zip(other).for_each(|(mask, other)| *mask |= other);
    }
}

widest! {
    pub fn and(mask: &mut [u8], other: &[u8]) {
        mask.iter_mut().zip(other).for_each(|(mask, other)| *mask &= other);
    }
}

widest! {
    /// Clears the rows whose number is 0.
    pub fn clear_zeros(mask: &mut [u8], numbers: &[u32]) {
        mask.iter_mut().zip(numbers).for_each(|(mask, number)| *mask &= u8::from(*number != 0));
    }
}

widest! {
    /// Clears the rows whose number is not 0.
    pub fn keep_zeros(mask: &mut [u8], numbers: &[u32]) {
        mask.iter_mut().zip(numbers).for_each(|(mask, number)| *mask &= u8::from(*number == 0));
    }
}

widest! {
    fn lookup_each(mask: &mut [u8], codes: &[u32], passes: &[u8]) {
        mask.iter_mut().zip(codes).for_each(|(mask, code)| *mask &= passes[*code as usize]);
    }
}

widest! {
    fn lookup_bits_32(mask: &mut [u8], codes: &[u32], passes: u32) {
        mask.iter_mut().zip(codes).for_each(|(mask, code)| *mask &= (passes >> (*code & 31)) as u8 & 1);
    }
}

widest! {
    fn lookup_bits_64(mask: &mut [u8], codes: &[u32], passes: u64) {
        mask.iter_mut().zip(codes).for_each(|(mask, code)| *mask &= (passes >> (*code & 63)) as u8 & 1);
    }
}

/// Clears the rows whose code stands for nothing that passes.
pub fn lookup(mask: &mut [u8], codes: &[u32], passes: &[u8]) {
    if passes.len() > 64 {
        return lookup_each(mask, codes, passes);
    }
    // Few fit into a register, whose bits are looked up many at a time.
    let bits = passes.iter().rev().fold(0u64, |bits, passes| bits << 1 | u64::from(*passes));
    match u32::try_from(bits) {
        Ok(bits) if passes.len() <= 32 => lookup_bits_32(mask, codes, bits),
        _ => lookup_bits_64(mask, codes, bits),
    }
}

/// Clears the rows that have no value.
pub fn clear_nulls(nulls: Option<&NullBuffer>, mask: &mut [u8]) {
    if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
        clear_unset(nulls.inner(), mask);
    }
}

/// Clears the rows whose bit is not set.
pub fn clear_unset(bits: &BooleanBuffer, mask: &mut [u8]) {
    for (chunk, bits) in mask.chunks_mut(64).zip(bits.bit_chunks().iter_padded()) {
        if bits != u64::MAX {
            chunk.iter_mut().enumerate().for_each(|(at, mask)| *mask &= (bits >> at & 1) as u8);
        }
    }
}

/// For each set of eight rows, a bit each, the positions of those that count, and how many they are.
const OF_EIGHT: [([u32; 8], usize); 256] = {
    let mut all = [([0; 8], 0); 256];
    let mut set = 0;
    while set < 256 {
        let mut row = 0;
        while row < 8 {
            if set >> row & 1 == 1 {
                let found = all[set].1;
                all[set].0[found] = row;
                all[set].1 += 1;
            }
            row += 1;
        }
        set += 1;
    }
    all
};

/// One bit per row of 64.
#[inline(always)]
fn bits(mask: &[u8; 64]) -> u64 {
    // The lowest bits of eight bytes, side by side in the highest byte of the product.
    let of_eight = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    mask.as_chunks::<8>().0.iter().enumerate().fold(0, |bits, (at, bytes)| bits | of_eight(bytes) << (at * 8))
}

/// Of 64 rows, up to how many that count are written one by one.
const FEW_MAX: u32 = 12;

/// Positions of the rows that count, ascending.
pub fn rows(mask: &[u8]) -> Vec<u32> {
    #[cfg(target_arch = "x86_64")]
    if machine() == Machine::Avx512 && is_x86_feature_detected!("avx512vbmi2") {
        // SAFETY: the machine has these instructions.
        #[allow(unsafe_code)]
        return unsafe { compressed(mask) };
    }
    found(mask)
}

/// The same by instructions that move the bytes that a mask chooses to the front: of 64 rows, few of which count as a
/// rule, sixteen are written whether they are so many or not, without a branch that nobody could foresee.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
#[allow(unsafe_code)]
fn compressed(mask: &[u8]) -> Vec<u32> {
    use std::arch::x86_64::*;
    const LANES: usize = 16;
    const PLACES: [u8; 64] = {
        let mut places = [0; 64];
        let mut at = 0;
        while at < 64 {
            places[at] = at as u8;
            at += 1;
        }
        places
    };
    // Sixteen are written at a time, of which the next step keeps those that count.
    let (chunks, rest) = mask.as_chunks::<64>();
    let set_of = |chunk: &[u8; 64]| {
        // SAFETY: a chunk has 64 bytes.
        let bytes = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
        _mm512_test_epi8_mask(bytes, bytes)
    };
    let room = chunks.iter().map(|chunk| set_of(chunk).count_ones() as usize).sum::<usize>() + rest.len() + LANES;
    let mut rows: Vec<u32> = Vec::with_capacity(room);
    let mut found = 0;
    // SAFETY: they are 64 bytes.
    let places = unsafe { _mm512_loadu_si512(PLACES.as_ptr().cast()) };
    for (from, chunk) in (0..).step_by(64).zip(chunks) {
        let set = set_of(chunk);
        let chosen = _mm512_maskz_compress_epi8(set, places);
        let end = found + set.count_ones() as usize;
        let from = _mm512_set1_epi32(from);
        let mut put = |part: __m128i, at: usize| {
            debug_assert!(at + LANES <= room);
            // SAFETY: fewer lie before this place than there are, and there is room for sixteen more.
            unsafe {
                let out = rows.as_mut_ptr().add(at).cast();
                _mm512_storeu_si512(out, _mm512_add_epi32(from, _mm512_cvtepu8_epi32(part)));
            }
        };
        put(_mm512_castsi512_si128(chosen), found);
        if end > found + LANES {
            put(_mm512_extracti32x4_epi32::<1>(chosen), found + LANES);
            if end > found + 2 * LANES {
                put(_mm512_extracti32x4_epi32::<2>(chosen), found + 2 * LANES);
            }
            if end > found + 3 * LANES {
                put(_mm512_extracti32x4_epi32::<3>(chosen), found + 3 * LANES);
            }
        }
        found = end;
    }
    // SAFETY: so many were written.
    unsafe { rows.set_len(found) };
    for (counts, row) in rest.iter().zip(chunks.len() as u32 * 64..) {
        if *counts != 0 {
            rows.push(row);
        }
    }
    rows
}

widest! {
    fn found(mask: &[u8]) -> Vec<u32> {
        // Eight are written at a time, of which the next step keeps those that count.
        let mut rows = vec![0; count(mask) + 8];
        let mut found = 0;
        let (chunks, rest) = mask.as_chunks::<64>();
        for (from, chunk) in (0..).step_by(64).zip(chunks) {
            let mut set = bits(chunk);
            if set.count_ones() <= FEW_MAX {
                while set != 0 {
                    rows[found] = from + set.trailing_zeros();
                    found += 1;
                    set &= set - 1;
                }
                continue;
            }
            for (from, set) in (from..).step_by(8).zip(set.to_le_bytes()) {
                let (own, many) = &OF_EIGHT[usize::from(set)];
                let out = &mut rows[found..found + 8];
                out.iter_mut().zip(own).for_each(|(out, row)| *out = row + from);
                found += many;
            }
        }
        for (counts, row) in rest.iter().zip(chunks.len() as u32 * 64..) {
            rows[found] = row;
            found += usize::from(*counts);
        }
        rows.truncate(found);
        rows
    }
}

#[cfg(test)]
mod tests;
