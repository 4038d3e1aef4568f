//! Masks: one byte per row, 1 where the row counts.

use super::widest::widest;
use arrow_buffer::{BooleanBuffer, NullBuffer};

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

/// Positions of the rows that count, ascending.
pub fn rows(mask: &[u8]) -> Vec<u32> {
    let mut rows = vec![0; mask.len()];
    let mut found = 0;
    for (row, counts) in mask.iter().enumerate() {
        rows[found] = row as u32;
        found += usize::from(*counts);
    }
    rows.truncate(found);
    rows
}

#[cfg(test)]
mod tests;
