//! Things of different lengths that lie one behind the other: bytes of strings, elements of arrays.
//!
//! `lengths frame | (unless all are equal) start of every 128th, u32 each`: where one begins is a sum of at most 127 lengths.

use super::linear::{self, Linear};
use super::{Damage, Decoded, RESTART, take};
use std::ops::Range;

#[derive(Clone, Copy)]
pub(crate) struct Spans<'a> {
    pub lengths: Linear<'a>,
    /// Empty if all lengths are equal.
    starts: &'a [u8],
}

impl<'a> Spans<'a> {
    pub fn parse(input: &mut &'a [u8], count: usize) -> Decoded<Spans<'a>> {
        let lengths = Linear::parse(input, count)?;
        let restarts = if lengths.is_constant() { 0 } else { count.div_ceil(RESTART) };
        Ok(Spans { lengths, starts: take(input, restarts * 4, "starts of spans")? })
    }

    /// `None` if it lies beyond all memory. Nobody has looked yet whether there is as much.
    ///
    /// # Panics
    /// If `index` is not below the count.
    pub fn range(&self, index: usize) -> Option<Range<usize>> {
        let length = self.lengths.get(index) as u64 as usize;
        let start = if self.starts.is_empty() {
            index.checked_mul(length)?
        } else {
            let restart = index / RESTART;
            let start = u32::from_le_bytes(self.starts[restart * 4..][..4].try_into().expect("4 bytes"));
            (start as usize).wrapping_add(self.lengths.sum(restart * RESTART..index) as usize)
        };
        Some(start..start.checked_add(length)?)
    }

    /// All lengths, whose sum is to be `total`.
    pub fn all(&self, total: usize) -> Decoded<Vec<u32>> {
        const DAMAGE: Damage = Damage("lengths of another sum");
        let mut lengths = Vec::<i64>::new();
        self.lengths.decode(&mut lengths);
        let mut sum = 0usize;
        let length = |length: i64| {
            let length = u32::try_from(length).map_err(|_| DAMAGE)?;
            sum = sum.checked_add(length as usize).ok_or(DAMAGE)?;
            Ok(length)
        };
        let lengths = lengths.into_iter().map(length).collect::<Decoded<Vec<u32>>>()?;
        if sum == total { Ok(lengths) } else { Err(DAMAGE) }
    }
}

pub(crate) fn encode(lengths: &[i64], out: &mut Vec<u8>) {
    linear::encode_any(lengths, out);
    if lengths.iter().all(|length| *length == lengths[0]) {
        return;
    }
    let mut start = 0u32;
    for run in lengths.chunks(RESTART) {
        out.extend_from_slice(&start.to_le_bytes());
        start += run.iter().sum::<i64>() as u32;
    }
}
