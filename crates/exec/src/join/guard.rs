//! Which integers occur among the keys of a held side: a bit for each between the least and the greatest. It rules most
//! rows out that have no partner before a hash is computed.

use crate::error::Result;
use crate::kernels::occur::{clear_absent_i32, clear_absent_i64};
use crate::stop::check;
use basalt_types::vector::{IntValues, Ints, Vector};

/// Bits per row that it is worth, and those that are always worth it.
pub const BITS_PER_ROW_MAX: usize = 1024;
const BITS_MIN: usize = 1 << 16;
pub const BITS_MAX: usize = 1 << 30;

pub struct Guard {
    least: i64,
    /// One more word at the end, which is 0.
    words: Vec<u64>,
}

impl Guard {
    /// `None` if keys are no integers, or lie too far from each other.
    pub fn new<'p>(keys: impl Iterator<Item = &'p Vector> + Clone, rows: usize) -> Result<Option<Guard>> {
        let Some((least, bits)) = Guard::bits(keys.clone(), rows) else { return Ok(None) };
        let mut words = vec![0u64; bits.div_ceil(64) + 1];
        for key in keys {
            let Vector::Ints(ints) = key else { return Ok(None) };
            check()?;
            for row in 0..ints.values.len() {
                if ints.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                    let bit = (ints.values.get(row) - i128::from(least)) as usize;
                    words[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
        Ok(Some(Guard { least, words }))
    }

    /// The least key, and how many integers there are from it to the greatest.
    fn bits<'p>(keys: impl Iterator<Item = &'p Vector>, rows: usize) -> Option<(i64, usize)> {
        let ints = |key: &'p Vector| if let Vector::Ints(ints) = key { Some(ints) } else { None };
        let mut range: Option<(i128, i128)> = None;
        for key in keys {
            let ints = ints(key)?;
            range = Some(range.map_or((ints.min, ints.max), |(min, max)| (min.min(ints.min), max.max(ints.max))));
        }
        let (min, max) = range?;
        let (least, most) = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
        let bits = usize::try_from(most.checked_sub(least)?).ok()?.checked_add(1)?;
        (bits <= BITS_MIN.max(rows.saturating_mul(BITS_PER_ROW_MAX)).min(BITS_MAX)).then_some((least, bits))
    }

    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Clears the rows of the mask that have no partner.
    pub fn pass(&self, keys: &Ints, mask: &mut [u8]) {
        match &keys.values {
            IntValues::I32(values) => clear_absent_i32(values, self.least, &self.words, mask),
            IntValues::I64(values) => clear_absent_i64(values, self.least, &self.words, mask),
            // Rare enough to be looked up.
            IntValues::I128(_) => {}
        }
    }
}
