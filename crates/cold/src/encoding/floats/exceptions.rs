//! Values that a form cannot say: their positions, which ascend, and what stands there instead.
//!
//! `count varint | (unless 0) frame of positions | frame of values`

use crate::encoding::linear::{self, Linear};
use crate::encoding::{Damage, Decoded, take_varint};
use basalt_types::varint;

pub(super) struct Exceptions<'a>(Option<(Linear<'a>, Linear<'a>)>);

impl<'a> Exceptions<'a> {
    /// Of `count` values.
    pub fn parse(input: &mut &'a [u8], count: usize) -> Decoded<Exceptions<'a>> {
        let exceptions = take_varint(input, "number of exceptions")?;
        if exceptions > count as u64 {
            return Err(Damage("more exceptions than values"));
        }
        if exceptions == 0 {
            return Ok(Exceptions(None));
        }
        let positions = Linear::parse(input, exceptions as usize)?;
        Ok(Exceptions(Some((positions, Linear::parse(input, exceptions as usize)?))))
    }

    /// What stands in the place of a value.
    pub fn find(&self, index: usize) -> Option<u64> {
        let (positions, values) = self.0.as_ref()?;
        let (mut low, mut high) = (0, positions.count);
        while low < high {
            let middle = low.midpoint(high);
            if (positions.get(middle) as u64) < index as u64 { low = middle + 1 } else { high = middle }
        }
        (low < positions.count && positions.get(low) as u64 == index as u64).then(|| values.get(low) as u64)
    }

    /// Changes decoded values to what stands in their places.
    pub fn patch<T>(&self, decoded: &mut [T], mut change: impl FnMut(&mut T, u64)) -> Decoded<()> {
        let Some((positions, values)) = &self.0 else { return Ok(()) };
        let (mut at, mut instead) = (Vec::<i64>::new(), Vec::<i64>::new());
        positions.decode(&mut at);
        values.decode(&mut instead);
        let mut from = 0;
        for (at, instead) in at.into_iter().zip(instead) {
            let place = usize::try_from(at).ok().filter(|at| *at >= from);
            let value = place.and_then(|at| decoded.get_mut(at)).ok_or(Damage("exceptions do not ascend"))?;
            change(value, instead as u64);
            from = at as usize + 1;
        }
        Ok(())
    }
}

/// Appends exceptions; positions ascend.
pub(super) fn encode(positions: &[i64], values: &[i64], out: &mut Vec<u8>) {
    varint::put(out, positions.len() as u64);
    if !positions.is_empty() {
        linear::encode_any(positions, out);
        linear::encode_any(values, out);
    }
}
