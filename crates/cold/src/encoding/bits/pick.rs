//! Values at some places in whole blocks of up to 32 bits a value.
//!
//! Blocks follow each other without a gap, so that a row's word and bit follow from the row alone: with `r = row / 32`,
//! its lane is `row % 32`, and its bits begin at bit `r * width` of the lane, whose words are 32 words apart.

use super::{LANES_32, mask_32};
use basalt_types::prefetch::Ahead;
#[cfg(target_arch = "x86_64")]
use basalt_types::widest::{Machine, machine};

/// Values that are handed over at once.
const RUN: usize = 64;

/// Hands the values at some rows to `sink`, in runs of up to 64.
///
/// # Panics
/// If the width is none of 1 to 32, or a row lies beyond the blocks.
pub(crate) fn pick((packed, ahead): (&[u8], Ahead<'_>), width: u8, rows: &[u32], mut sink: impl FnMut(&[u32])) {
    assert!((1..=32).contains(&width), "{width} bits");
    let words = packed.as_chunks::<4>().0;
    let mut picked = [0; RUN];
    let runs = rows.len().div_ceil(RUN);
    for (at, rows) in rows.chunks(RUN).enumerate() {
        ahead.part(at, runs);
        let picked = &mut picked[..rows.len()];
        gather(words, u32::from(width), rows, picked);
        sink(picked);
    }
}

fn gather(words: &[[u8; 4]], width: u32, rows: &[u32], out: &mut [u32]) {
    let last = rows.iter().fold(0, |last, row| last.max(*row)) as usize;
    // The words of a block end with those of its last row.
    assert!(last / super::BLOCK < words.len() / (width as usize * LANES_32), "row {last}");
    #[cfg(target_arch = "x86_64")]
    if machine() == Machine::Avx512 && i32::try_from(words.len()).is_ok() {
        // SAFETY: the machine has these instructions, and all rows lie in blocks that are here as a whole.
        #[allow(unsafe_code)]
        return unsafe { gather_sixteens(words, width, rows, out) };
    }
    gather_each(words, width, rows, out);
}

fn gather_each(words: &[[u8; 4]], width: u32, rows: &[u32], out: &mut [u32]) {
    let mask = mask_32(width as usize);
    for (row, out) in rows.iter().zip(out) {
        let (bit, lane) = (row / LANES_32 as u32 * width, row % LANES_32 as u32);
        let (low, shift) = ((bit & !31) + lane, bit & 31);
        // Where all bits are in the first word it is read twice: no branch, and no other line of memory.
        let high = low + if shift + width > 32 { LANES_32 as u32 } else { 0 };
        let word = |at: u32| u64::from(u32::from_le_bytes(words[at as usize]));
        *out = ((word(high) << 32 | word(low)) >> shift) as u32 & mask;
    }
}

/// # Safety
/// All rows lie in whole blocks of `words`, which are no more than fit into 31 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[allow(unsafe_code)]
unsafe fn gather_sixteens(words: &[[u8; 4]], width: u32, rows: &[u32], out: &mut [u32]) {
    use std::arch::x86_64::*;
    let of = |value: u32| _mm512_set1_epi32(value as i32);
    let (widths, thirty_two, lanes) = (of(width), of(32), of(31));
    let values = of(mask_32(width as usize));
    for (rows, out) in rows.chunks(16).zip(out.chunks_mut(16)) {
        let wanted = (u32::MAX >> (32 - rows.len())) as __mmask16;
        // SAFETY: lanes that are not wanted are neither read nor written.
        let rows = unsafe { _mm512_maskz_loadu_epi32(wanted, rows.as_ptr().cast()) };
        let bits = _mm512_mullo_epi32(_mm512_srli_epi32::<5>(rows), widths);
        let shifts = _mm512_and_si512(bits, lanes);
        let at = _mm512_or_si512(_mm512_andnot_si512(lanes, bits), _mm512_and_si512(rows, lanes));
        let in_two = _mm512_mask_cmpgt_epu32_mask(wanted, _mm512_add_epi32(shifts, widths), thirty_two);
        let zero = _mm512_setzero_si512();
        // SAFETY: a row's first word lies in its block, and so does the second where its bits go on there.
        let (low, high) = unsafe {
            let from = words.as_ptr().cast();
            let low = _mm512_mask_i32gather_epi32::<4>(zero, wanted, at, from);
            (low, _mm512_mask_i32gather_epi32::<4>(zero, in_two, _mm512_add_epi32(at, thirty_two), from))
        };
        // What is shifted by 32 is 0.
        let high = _mm512_sllv_epi32(high, _mm512_sub_epi32(thirty_two, shifts));
        let found = _mm512_and_si512(_mm512_or_si512(_mm512_srlv_epi32(low, shifts), high), values);
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), wanted, found) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BLOCK, get, greatest, pack};
    use super::*;

    #[test]
    fn each_way_gives_what_get_gives() {
        let mut random = 1u64;
        for width in 1..=32u8 {
            let values = std::iter::repeat_with(|| {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                random >> 20 & greatest(width)
            });
            let values: Vec<u64> = values.take(3 * BLOCK).collect();
            let mut packed = Vec::new();
            pack(&values, width, &mut packed);
            for step in [1, 3, 31, 32, 97, 1000] {
                let rows: Vec<u32> = (step as u32 % 7..3 * BLOCK as u32).step_by(step).collect();
                let expected: Vec<u32> =
                    rows.iter().map(|row| get(&packed, values.len(), width, *row as usize) as u32).collect();
                let mut picked = Vec::new();
                pick((&packed, Ahead::default()), width, &rows, |run| picked.extend_from_slice(run));
                assert_eq!(picked, expected, "{width} bits, every {step}th");
                let mut each = vec![0; rows.len()];
                gather_each(packed.as_chunks::<4>().0, width.into(), &rows, &mut each);
                assert_eq!(each, expected, "{width} bits, every {step}th, one by one");
            }
        }
    }

    #[test]
    #[should_panic = "row 1024"]
    fn rows_beyond_the_blocks_are_refused() {
        let mut packed = Vec::new();
        pack(&[1; BLOCK], 3, &mut packed);
        // What follows the blocks is no block.
        packed.extend_from_slice(&[0; 100]);
        pick((&packed, Ahead::default()), 3, &[5, BLOCK as u32], |_| ());
    }
}
