//! ALP for real doubles: each value is cut in two. Of its left bits (sign, exponent, and a few more) few patterns occur,
//! which are codes; its right bits, which nothing predicts, are packed as they are (ALP, section 3.4).
//!
//! ```text
//! right bits u8 | code bits u8 | left parts, u16 each, one for every code
//! | packed codes | packed right parts | exceptions: left parts without a code
//! ```

use super::Bits;
use super::exceptions::{self, Exceptions};
use crate::encoding::bits::{self, Unpacked, packed_bytes};
use crate::encoding::{Damage, Decoded, take, take_array};
use basalt_types::prefetch::Ahead;
use basalt_types::widest;

const LEFT_BITS_MAX: u32 = 16;
const CODE_BITS_MAX: u8 = 3;
const CODES_MAX: usize = 1 << CODE_BITS_MAX;
pub(super) const SAMPLE: usize = 256;
/// An exception has its left bits and its position.
const EXCEPTION_BITS: usize = 16 + 13;

pub(crate) struct AlpRd<'a> {
    count: usize,
    right_bits: u8,
    code_bits: u8,
    /// Where they stand in a value.
    lefts: [u64; CODES_MAX],
    codes: &'a [u8],
    rights: &'a [u8],
    exceptions: Exceptions<'a>,
}

impl<'a> AlpRd<'a> {
    /// `bits` of each value: 32 or 64.
    pub fn parse(input: &mut &'a [u8], count: usize, bits: u32) -> Decoded<AlpRd<'a>> {
        let [right_bits, code_bits] = take_array(input, "widths of cut floats")?;
        if u32::from(right_bits) >= bits || u32::from(right_bits) + LEFT_BITS_MAX < bits || code_bits > CODE_BITS_MAX {
            return Err(Damage("widths of cut floats out of range"));
        }
        let mut lefts = [0; CODES_MAX];
        for left in &mut lefts[..1 << code_bits] {
            *left = u64::from(u16::from_le_bytes(take_array(input, "left parts of floats")?)) << right_bits;
        }
        let codes = take(input, packed_bytes(count, code_bits), "codes of left parts")?;
        let rights = take(input, packed_bytes(count, right_bits), "right parts of floats")?;
        let exceptions = Exceptions::parse(input, count)?;
        Ok(AlpRd { count, right_bits, code_bits, lefts, codes, rights, exceptions })
    }

    pub fn get<T: Bits>(&self, index: usize) -> T {
        let left = match self.exceptions.find(index) {
            Some(left) => left << self.right_bits,
            None => self.lefts[bits::get(self.codes, self.count, self.code_bits, index) as usize],
        };
        T::from_u64(left | bits::get(self.rights, self.count, self.right_bits, index))
    }

    /// Appends all values.
    pub fn decode<T: Bits>(&self, out: &mut Vec<T>) -> Decoded<()> {
        let mut codes = Vec::<u32>::with_capacity(self.count);
        bits::unpack((self.codes, Ahead::default()), self.count, self.code_bits, |run| match run {
            Unpacked::Narrow(run) => codes.extend_from_slice(run),
            Unpacked::Wide(run) => codes.extend(run.iter().map(|code| *code as u32)),
        });
        let from = out.len();
        out.resize(from + self.count, T::default());
        let lefts = self.lefts.map(T::from_u64);
        let (mut codes, mut rest) = (codes.as_slice(), &mut out[from..]);
        bits::unpack((self.rights, Ahead::default()), self.count, self.right_bits, |run| {
            let (of_run, others) = codes.split_at(run.len());
            codes = others;
            let (own, others) = std::mem::take(&mut rest).split_at_mut(run.len());
            rest = others;
            match run {
                Unpacked::Narrow(run) => join_narrow(of_run, lefts, run, own),
                Unpacked::Wide(run) => join_wide(of_run, lefts, run, own),
            }
        });
        let right_bits = (1 << self.right_bits) - 1;
        self.exceptions.patch(&mut out[from..], |value, left| {
            *value = T::from_u64(left << self.right_bits | value.to_u64() & right_bits);
        })
    }
}

/// Without a lookup, which vectors do slowly: one bit of the code after the other halves what is left.
#[inline(always)]
fn left_of<T: Bits>(code: u32, [a, b, c, d, e, f, g, h]: [T; CODES_MAX]) -> T {
    let (first, second, third) = (code & 1, code >> 1 & 1, code >> 2 & 1);
    let low = a.or(b, first).or(c.or(d, first), second);
    low.or(e.or(f, first).or(g.or(h, first), second), third)
}

widest! {
    fn join_narrow[T: Bits](codes: &[u32], lefts: [T; CODES_MAX], rights: &[u32], out: &mut [T]) {
        for ((out, code), right) in out.iter_mut().zip(codes).zip(rights) {
            *out = left_of(*code, lefts).plus(T::from_u64(u64::from(*right)));
        }
    }
}

widest! {
    fn join_wide[T: Bits](codes: &[u32], lefts: [T; CODES_MAX], rights: &[u64], out: &mut [T]) {
        for ((out, code), right) in out.iter_mut().zip(codes).zip(rights) {
            *out = left_of(*code, lefts).plus(T::from_u64(*right));
        }
    }
}

/// Where values are cut, and which left parts have codes.
pub(super) struct Cut {
    right_bits: u8,
    lefts: Vec<u16>,
}

impl Cut {
    /// The best one for a sample, and the bits that a value of it takes.
    pub fn best_of<T: Bits>(sample: &[T]) -> (usize, Cut) {
        let mut sample: Vec<u64> = sample.iter().map(|value| value.to_u64()).collect();
        sample.sort_unstable();
        let cuts = (T::BITS - LEFT_BITS_MAX..T::BITS).map(|right_bits| Cut::at(right_bits as u8, &sample));
        let (bits, cut) = cuts.min_by_key(|(bits, _)| *bits).expect("several cuts");
        (bits / sample.len().max(1), cut)
    }

    /// Bits that an ascending sample takes, and with which left parts.
    fn at(right_bits: u8, sample: &[u64]) -> (usize, Cut) {
        let runs = sample.chunk_by(|a, b| a >> right_bits == b >> right_bits);
        let mut lefts: Vec<(usize, u16)> = runs.map(|run| (run.len(), (run[0] >> right_bits) as u16)).collect();
        lefts.sort_unstable_by(|a, b| b.cmp(a));
        let bits_with = |code_bits: u8| {
            let with_code: usize = lefts.iter().take(1 << code_bits).map(|(count, _)| count).sum();
            let each = usize::from(right_bits + code_bits);
            (sample.len() * each + (sample.len() - with_code) * EXCEPTION_BITS, code_bits)
        };
        let (bits, code_bits) = (0..=CODE_BITS_MAX).map(bits_with).min().expect("several widths");
        lefts.truncate(1 << code_bits);
        (bits, Cut { right_bits, lefts: lefts.into_iter().map(|(_, left)| left).collect() })
    }
}

/// Appends values, behind the form.
pub(super) fn encode<T: Bits>(values: &[i64], cut: &Cut, out: &mut Vec<u8>) {
    let right_bits = cut.right_bits;
    let code_bits = cut.lefts.len().next_power_of_two().ilog2() as u8;
    let (mut codes, mut rights) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
    let (mut positions, mut exceptions) = (Vec::new(), Vec::new());
    for (at, value) in values.iter().enumerate() {
        let value = T::from_u64(*value as u64).to_u64();
        let left = (value >> right_bits) as u16;
        let code = cut.lefts.iter().position(|known| *known == left);
        if code.is_none() {
            positions.push(at as i64);
            exceptions.push(i64::from(left));
        }
        codes.push(code.unwrap_or(0) as u64);
        rights.push(value & ((1 << right_bits) - 1));
    }
    out.extend_from_slice(&[right_bits, code_bits]);
    for code in 0..1 << code_bits {
        out.extend_from_slice(&cut.lefts.get(code).copied().unwrap_or(0).to_le_bytes());
    }
    bits::pack(&codes, code_bits, out);
    bits::pack(&rights, right_bits, out);
    exceptions::encode(&positions, &exceptions, out);
}
