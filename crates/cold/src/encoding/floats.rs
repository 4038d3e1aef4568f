//! Floats by their bits: as integers, as decimals ([`alp`]), or cut in two ([`alp_rd`]), page by page what is smallest.
//!
//! ```text
//! 0 to 2   integers: the bits
//! 3        decimals: ALP
//! 4        a few bits of each by a dictionary, the others as they are: ALP for real doubles
//! ```
//!
//! All forms give back every bit. What a form cannot say stands beside it ([`exceptions`]).
//!
//! Source: Afroozeh, Kuffo, Boncz: ALP: Adaptive Lossless floating-Point Compression, SIGMOD 2024. Other than there,
//! digits of decimals rest in whichever form of [`ints`] is smallest, a pair of exponents is for a page, and singles are
//! computed in doubles, in which hardly any decimal comes out wrong.

pub(crate) mod alp;
mod alp_rd;
mod exceptions;

use super::ints::{self, Ints};
use super::linear::Word;
use super::{Decoded, take_array};
use alp::{Alp, Exponents};
use alp_rd::{AlpRd, Cut};

const ALP: u8 = 3;
const ALP_RD: u8 = 4;
/// What a form that decodes slower than frames must save, of the bytes of the integers: a sixteenth.
const GAIN_MIN: usize = 16;
/// Fewer chosen values than one of so many are looked up one by one.
const PICK_PART: usize = 32;

/// A float by its bits: i32 is an f32, i64 an f64.
pub(crate) trait Bits: Word {
    const BITS: u32;
    fn double(self) -> f64;
    /// The nearest float.
    fn of_double(value: f64) -> Self;
    fn to_u64(self) -> u64;
    /// Without a branch: this for 0, the other for 1.
    fn or(self, other: Self, choice: u32) -> Self;
}

impl Bits for i32 {
    const BITS: u32 = 32;
    #[inline(always)]
    fn double(self) -> f64 {
        f64::from(f32::from_bits(self as u32))
    }
    #[inline(always)]
    fn of_double(value: f64) -> i32 {
        (value as f32).to_bits() as i32
    }
    #[inline(always)]
    fn to_u64(self) -> u64 {
        u64::from(self as u32)
    }
    #[inline(always)]
    fn or(self, other: i32, choice: u32) -> i32 {
        self ^ ((self ^ other) & (choice as i32).wrapping_neg())
    }
}

impl Bits for i64 {
    const BITS: u32 = 64;
    #[inline(always)]
    fn double(self) -> f64 {
        f64::from_bits(self as u64)
    }
    #[inline(always)]
    fn of_double(value: f64) -> i64 {
        value.to_bits() as i64
    }
    #[inline(always)]
    fn to_u64(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn or(self, other: i64, choice: u32) -> i64 {
        self ^ ((self ^ other) & i64::from(choice).wrapping_neg())
    }
}

pub(crate) enum Floats<'a> {
    Ints(Ints<'a>),
    Alp(Alp<'a>),
    AlpRd(AlpRd<'a>),
}

impl<'a> Floats<'a> {
    /// `bits` of each value: 32 or 64.
    pub fn parse(input: &mut &'a [u8], count: usize, bits: u32) -> Decoded<Floats<'a>> {
        let mut behind = *input;
        match take_array(&mut behind, "encoding of floats")? {
            [ALP] => {
                *input = behind;
                Ok(Floats::Alp(Alp::parse(input, count)?))
            }
            [ALP_RD] => {
                *input = behind;
                Ok(Floats::AlpRd(AlpRd::parse(input, count, bits)?))
            }
            _ => Ok(Floats::Ints(Ints::parse(input, count)?)),
        }
    }

    /// # Panics
    /// If `index` is not below the count.
    pub fn get<T: Bits>(&self, index: usize) -> T {
        match self {
            Floats::Ints(ints) => T::from_u64(ints.get(index) as u64),
            Floats::Alp(alp) => alp.get(index),
            Floats::AlpRd(alp_rd) => alp_rd.get(index),
        }
    }

    /// Appends all values.
    pub fn decode<T: Bits>(&self, out: &mut Vec<T>) -> Decoded<()> {
        match self {
            Floats::Ints(ints) => ints.decode(out),
            Floats::Alp(alp) => alp.decode(out),
            Floats::AlpRd(alp_rd) => alp_rd.decode(out),
        }
    }

    /// Appends the values at some positions, which ascend, of `count`.
    ///
    /// # Panics
    /// If a position is not below the count.
    pub fn pick<T: Bits>(&self, rows: &[u32], count: usize, out: &mut Vec<T>) -> Decoded<()> {
        match self {
            Floats::Ints(Ints::Frame(frame)) if rows.len() < count => frame.pick(rows, out),
            _ if rows.len() * PICK_PART < count => out.extend(rows.iter().map(|row| self.get::<T>(*row as usize))),
            _ => {
                let mut all = Vec::<T>::with_capacity(count);
                self.decode(&mut all)?;
                out.extend(rows.iter().map(|row| all[*row as usize]));
            }
        }
        Ok(())
    }
}

/// How the pages of a chunk of floats may be encoded, as far as a sample of all of them tells.
pub(crate) struct Encoder {
    bits: u32,
    exponents: Vec<Exponents>,
}

impl Encoder {
    /// `bits` of each value: 32 or 64.
    pub fn new(bits: u32, values: &[i64]) -> Encoder {
        let exponents = match bits {
            32 => alp::candidates(&sample::<i32>(values, alp::SAMPLE_OF_CHUNK)),
            _ => alp::candidates(&sample::<i64>(values, alp::SAMPLE_OF_CHUNK)),
        };
        Encoder { bits, exponents }
    }

    /// Appends values in their smallest form.
    pub fn encode(&self, values: &[i64], out: &mut Vec<u8>) {
        match self.bits {
            32 => self.encode_as::<i32>(values, out),
            _ => self.encode_as::<i64>(values, out),
        }
    }

    fn encode_as<T: Bits>(&self, values: &[i64], out: &mut Vec<u8>) {
        let mut best = Vec::new();
        ints::encode(values, &mut best);
        if let Some(exponents) = alp::best_of(&self.exponents, &sample::<T>(values, alp::SAMPLE_OF_PAGE)) {
            keep_smaller(&mut best, ALP, |out| alp::encode::<T>(values, exponents, out));
        }
        let (bits, cut) = Cut::best_of(&sample::<T>(values, alp_rd::SAMPLE));
        if bits * values.len() / 8 < best.len() {
            keep_smaller(&mut best, ALP_RD, |out| alp_rd::encode::<T>(values, &cut, out));
        }
        out.append(&mut best);
    }
}

fn keep_smaller(best: &mut Vec<u8>, form: u8, encode: impl FnOnce(&mut Vec<u8>)) {
    let mut other = vec![form];
    encode(&mut other);
    if other.len() + other.len() / GAIN_MIN < best.len() {
        *best = other;
    }
}

/// So many values, or all, from all over the page or chunk.
fn sample<T: Bits>(values: &[i64], count: usize) -> Vec<T> {
    // An odd step does not keep time with values that come round.
    let step = (values.len() / count) | 1;
    values.iter().step_by(step).map(|value| T::from_u64(*value as u64)).collect()
}

#[cfg(test)]
mod tests;
