//! Masks: one byte per row, 1 where the row counts.

use arrow_buffer::{BooleanBuffer, NullBuffer};
use basalt_types::widest;

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
    /// Clears the rows whose code stands for nothing that passes.
    pub fn lookup(mask: &mut [u8], codes: &[u32], passes: &[u8]) {
        mask.iter_mut().zip(codes).for_each(|(mask, code)| *mask &= passes[*code as usize]);
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

widest! {
    /// Positions of the rows that count, ascending.
    pub fn rows(mask: &[u8]) -> Vec<u32> {
        // Eight are written at a time, of which the next step keeps those that count.
        let mut rows = vec![0; count(mask) + 8];
        let mut found = 0;
        let (words, rest) = mask.as_chunks::<8>();
        for (at, word) in words.iter().enumerate() {
            // The lowest bits of eight bytes, side by side in the highest byte of the product.
            let set = (u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56) as usize;
            let (own, many) = &OF_EIGHT[set];
            let out = &mut rows[found..found + 8];
            out.iter_mut().zip(own).for_each(|(out, row)| *out = row + at as u32 * 8);
            found += many;
        }
        for (counts, row) in rest.iter().zip(words.len() as u32 * 8..) {
            rows[found] = row;
            found += usize::from(*counts);
        }
        rows.truncate(found);
        rows
    }
}

#[cfg(test)]
mod tests;
