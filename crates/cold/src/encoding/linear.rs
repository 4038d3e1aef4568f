//! Frame of reference: `value = base + factor × packed`, in wrapping 64-bit arithmetic.
//!
//! The factor is the greatest common divisor of all distances from the base: whole amounts in a column of
//! cents, whole seconds in microseconds. Width 0 is a constant.
//!
//! `base i64 | factor varint | width u8 | bit-packed`; the count is known from outside.

use super::bits::{self, PackedSpan, Unpacked, packed_bytes, width_of};
use super::{Damage, Decoded, take, take_array, take_varint};
use basalt_types::prefetch::Ahead;
use basalt_types::span::{Span, Verdict};
use basalt_types::varint;
use basalt_types::widest;
#[cfg(target_arch = "x86_64")]
use basalt_types::widest::{Machine, machine};
use std::ops::Range;

/// Values of a block that are looked up one by one as fast as the whole block is unpacked, which may have to be fetched
/// from memory for that.
const UNPACK_MIN: usize = 64;

/// An integer that wraps: decoding computes modulo its width.
pub(crate) trait Word: Copy + Default {
    fn from_u64(value: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// Each value becomes the sum of those up to it.
    fn add_up(run: &mut [Self]);
}

fn add_up_each<T: Word>(run: &mut [T]) {
    let mut sum = T::default();
    for value in run {
        sum = sum.plus(*value);
        *value = sum;
    }
}

/// Sixteen sums at a time, each value moved up by one, two, four and eight places, and what lies below added to all.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[allow(unsafe_code)]
fn add_up_sixteen(run: &mut [i32]) {
    use std::arch::x86_64::*;
    let (sixteens, rest) = run.as_chunks_mut::<16>();
    let zero = _mm512_setzero_si512();
    let mut below = zero;
    for values in sixteens.iter_mut() {
        // SAFETY: sixteen values of 32 bits are read, and written below.
        let mut sums = unsafe { _mm512_loadu_si512(values.as_ptr().cast()) };
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<15>(sums, zero));
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<14>(sums, zero));
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<12>(sums, zero));
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero));
        sums = _mm512_add_epi32(sums, below);
        below = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums);
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), sums) };
    }
    let mut sum = sixteens.last().map_or(0, |values| values[15]);
    for value in rest {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
}

/// By such instructions where the machine has them.
fn add_up_narrow(run: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    if machine() == Machine::Avx512 {
        // SAFETY: the machine has these instructions.
        #[allow(unsafe_code)]
        return unsafe { add_up_sixteen(run) };
    }
    add_up_each(run);
}

macro_rules! word {
    ($($ty:ty, $add_up:path;)*) => {$(
        impl Word for $ty {
            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                value as $ty
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn add_up(run: &mut [Self]) {
                $add_up(run);
            }
        }
    )*};
}

word!(i16, add_up_each; i32, add_up_narrow; i64, add_up_each; u32, add_up_each;);

#[derive(Clone, Copy)]
pub(crate) struct Linear<'a> {
    pub count: usize,
    base: u64,
    factor: u64,
    width: u8,
    packed: &'a [u8],
    /// What is read next.
    pub ahead: Ahead<'a>,
}

impl<'a> Linear<'a> {
    pub fn parse(input: &mut &'a [u8], count: usize) -> Decoded<Linear<'a>> {
        let base = u64::from_le_bytes(take_array(input, "base of a frame")?);
        let factor = take_varint(input, "factor of a frame")?;
        let [width] = take_array(input, "width of a frame")?;
        if width > 64 {
            return Err(Damage("a frame wider than 64 bits"));
        }
        let packed = take(input, packed_bytes(count, width), "packed values")?;
        Ok(Linear { count, base, factor, width, packed, ahead: Ahead::default() })
    }

    pub fn is_constant(&self) -> bool {
        self.width == 0
    }

    /// # Panics
    /// If `index` is not below the count.
    #[inline]
    pub fn get(&self, index: usize) -> i64 {
        let packed = bits::get(self.packed, self.count, self.width, index);
        self.base.wrapping_add(self.factor.wrapping_mul(packed)) as i64
    }

    /// The sum of values `range`, wrapping.
    pub fn sum(&self, range: Range<usize>) -> i64 {
        let values = range.len() as u64;
        let packed = bits::sum(self.packed, self.count, self.width, range);
        self.base.wrapping_mul(values).wrapping_add(self.factor.wrapping_mul(packed)) as i64
    }

    /// Appends the values at some positions, which ascend, truncated to `T`.
    ///
    /// # Panics
    /// If a position is not below the count.
    pub fn pick<T: Word>(&self, rows: &[u32], out: &mut Vec<T>) {
        let (base, factor) = (T::from_u64(self.base), T::from_u64(self.factor));
        let value = |packed: u32| base.plus(factor.times(T::from_u64(u64::from(packed))));
        let in_blocks = if (1..=32).contains(&self.width) { bits::in_blocks(self.count) } else { 0 };
        let (rows, others) = rows.split_at(rows.partition_point(|row| (*row as usize) < in_blocks));
        if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
            let block_of = |row: &u32| *row as usize / bits::BLOCK;
            if rows.len() < (block_of(last) - block_of(first) + 1) * UNPACK_MIN {
                bits::pick((self.packed, self.ahead), self.width, rows, |picked| {
                    out.extend(picked.iter().map(|packed| value(*packed)))
                });
            } else {
                let mut unpacked = [0; bits::BLOCK];
                for of_block in rows.chunk_by(|a, b| block_of(a) == block_of(b)) {
                    bits::unpack_block(self.packed, self.width, block_of(&of_block[0]), &mut unpacked);
                    out.extend(of_block.iter().map(|row| value(unpacked[*row as usize % bits::BLOCK])));
                }
            }
        }
        out.extend(others.iter().map(|row| T::from_u64(self.get(*row as usize) as u64)));
    }

    /// Clears the mask where the value lies outside of the span; a byte per value.
    pub fn test(&self, span: Span, mask: &mut [u8]) {
        let base = i128::from(self.base as i64);
        let (factor, greatest) = (i128::from(self.factor), i128::from(bits::greatest(self.width)));
        match span.verdict((base, base.saturating_add(factor.saturating_mul(greatest)))) {
            Verdict::All => return self.ahead.part(0, 1),
            Verdict::None => {
                self.ahead.part(0, 1);
                return mask.fill(0);
            }
            Verdict::Depends => {}
        }
        // From here on the factor is not 0. Which packed values stand for some between the bounds.
        let low = span.low.saturating_sub(base).max(0) as u128;
        let low = low.div_ceil(factor as u128).min(u128::from(u64::MAX)) as u64;
        let high = span.high.saturating_sub(base).div_euclid(factor).min(greatest);
        if high < i128::from(low) {
            return if span.inside {
                mask.fill(0)
            };
        }
        let span = PackedSpan { low, width: (high as u64) - low, inside: span.inside };
        bits::test((self.packed, self.ahead), self.width, span, mask);
    }

    /// Base and factor as doubles, if values computed with them are exact: bases and values below 2^53.
    pub fn in_doubles(&self) -> Option<(f64, f64)> {
        const EXACT: i128 = 1 << 53;
        let (base, factor) = (i128::from(self.base as i64), i128::from(self.factor));
        let distance = factor.saturating_mul(bits::greatest(self.width).into());
        let is_exact = base.abs() <= EXACT && factor <= EXACT && distance <= EXACT && base + distance <= EXACT;
        is_exact.then_some((base as f64, factor as f64))
    }

    /// Hands what is packed to `sink` in order, in runs of up to 1,024.
    pub fn for_each_run(&self, sink: impl FnMut(Unpacked<'_>)) {
        bits::unpack((self.packed, self.ahead), self.count, self.width, sink);
    }

    /// Appends all values, truncated to `T`.
    pub fn decode<T: Word>(&self, out: &mut Vec<T>) {
        let (base, factor) = (T::from_u64(self.base), T::from_u64(self.factor));
        if self.width == 0 {
            out.resize(out.len() + self.count, base);
            return;
        }
        out.reserve(self.count);
        let unit = self.factor == 1;
        bits::unpack((self.packed, self.ahead), self.count, self.width, |run| match run {
            Unpacked::Narrow(run) if unit => shifted(run, base, out),
            Unpacked::Narrow(run) => scaled(run, base, factor, out),
            Unpacked::Wide(run) => out.extend(run.iter().map(|v| base.plus(factor.times(T::from_u64(*v))))),
        });
    }
}

widest! {
    fn shifted[T: Word](run: &[u32], base: T, out: &mut Vec<T>) {
        out.extend(run.iter().map(|value| base.plus(T::from_u64(u64::from(*value)))));
    }
}

widest! {
    fn scaled[T: Word](run: &[u32], base: T, factor: T, out: &mut Vec<T>) {
        out.extend(run.iter().map(|value| base.plus(factor.times(T::from_u64(u64::from(*value))))));
    }
}

/// Appends values known to lie in `min..=max`.
pub(crate) fn encode(values: &[i64], min: i64, max: i64, out: &mut Vec<u8>) {
    let distance = |value: i64| value.wrapping_sub(min) as u64;
    let span = distance(max);
    let factor = common_factor(values, min, span);
    out.extend_from_slice(&min.to_le_bytes());
    varint::put(out, factor);
    let width = width_of(span / factor);
    out.push(width);
    if width == 0 {
        return;
    }
    let packed: Vec<u64> = if factor == 1 {
        values.iter().map(|value| distance(*value)).collect()
    } else {
        values.iter().map(|value| distance(*value) / factor).collect()
    };
    bits::pack(&packed, width, out);
}

/// Appends values of unknown bounds.
pub(crate) fn encode_any(values: &[i64], out: &mut Vec<u8>) {
    let min = values.iter().copied().min().unwrap_or(0);
    let max = values.iter().copied().max().unwrap_or(0);
    encode(values, min, max, out);
}

/// The greatest common divisor of all distances from `min`, 1 if they are all 0 or too narrow to gain.
fn common_factor(values: &[i64], min: i64, span: u64) -> u64 {
    let mut factor = span;
    if span < 2 {
        return 1;
    }
    for value in values {
        let distance = value.wrapping_sub(min) as u64;
        if !divides(factor, distance) {
            factor = gcd(factor, distance);
            if factor == 1 {
                break;
            }
        }
    }
    factor.max(1)
}

#[inline]
fn divides(factor: u64, value: u64) -> bool {
    match (u32::try_from(factor), u32::try_from(value)) {
        (Ok(factor), Ok(value)) => value.is_multiple_of(factor),
        _ => value.is_multiple_of(factor),
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_add_up_alike_one_by_one_and_many_at_a_time() {
        for len in [0, 1, 15, 16, 17, 127, 128, 8192] {
            let values: Vec<i32> = (0..len).map(|at: i32| at.wrapping_mul(1_103_515_245).wrapping_add(12345)).collect();
            let (mut one_by_one, mut many) = (values.clone(), values);
            add_up_each(&mut one_by_one);
            i32::add_up(&mut many);
            assert_eq!(many, one_by_one, "{len} values");
        }
    }
}
