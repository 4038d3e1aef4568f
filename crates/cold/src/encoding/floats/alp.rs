//! ALP: decimals as integers and a pair of exponents. A value is `digits × 10^factor × 10^−exponent`, computed in doubles
//! in this order (and for singles rounded once more), with the doubles nearest to both powers.
//!
//! `exponent u8 | factor u8 | integers: digits | exceptions: bits of the values that this is not`
//!
//! The factor makes up for powers below one, which are not exact: 0.35 is not 35 × 10^−2, but 35 × 10^12 × 10^−14. Which
//! pair is best depends on little but the column: a sample of a chunk leaves a few, one of each page chooses among them
//! (ALP, sections 3.1 and 3.2).

use super::Bits;
use super::exceptions::{self, Exceptions};
use crate::encoding::bits::{Unpacked, width_of};
use crate::encoding::ints::{self, Ints};
use crate::encoding::{Damage, Decoded, take_array};
use basalt_types::widest;

/// Doubles hold every integer up to 2^51 and the half behind it, so that adding [`ROUNDING`] rounds.
const DIGITS_MAX: f64 = (1u64 << 51) as f64;
/// Added to a double of less than 2^51 and taken away again, it leaves the nearest integer.
const ROUNDING: f64 = (3u64 << 51) as f64;
const EXPONENT_MAX: u8 = 18;
/// Singles have seven digits, doubles seventeen.
const EXPONENT_MAX_OF_SINGLES: u8 = 10;
const POWERS: [f64; EXPONENT_MAX as usize + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];
const INVERSES: [f64; EXPONENT_MAX as usize + 1] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17,
    1e-18,
];
const CANDIDATES_MAX: usize = 5;
pub(super) const SAMPLE_OF_CHUNK: usize = 256;
pub(super) const SAMPLE_OF_PAGE: usize = 64;
/// A page of which more than one of so many values is an exception is not tried.
const EXCEPTIONS_PART: usize = 3;
/// An exception has its bits, and its position.
const POSITION_BITS: usize = 13;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Exponents {
    exponent: u8,
    factor: u8,
}

impl Exponents {
    /// What digits are multiplied by, the one after the other.
    fn powers(self) -> (f64, f64) {
        (POWERS[usize::from(self.factor)], INVERSES[usize::from(self.exponent)])
    }

    /// The digits that a value may have; any number if it has none.
    #[inline(always)]
    fn digits_of(self, value: f64) -> f64 {
        let scaled = value * POWERS[usize::from(self.exponent)] * INVERSES[usize::from(self.factor)];
        (scaled + ROUNDING) - ROUNDING
    }
}

#[inline(always)]
fn value_of<T: Bits>(digits: f64, (up, down): (f64, f64)) -> T {
    T::of_double(digits * up * down)
}

pub(crate) struct Alp<'a> {
    powers: (f64, f64),
    digits: Ints<'a>,
    exceptions: Exceptions<'a>,
}

impl<'a> Alp<'a> {
    pub fn parse(input: &mut &'a [u8], count: usize) -> Decoded<Alp<'a>> {
        let [exponent, factor] = take_array(input, "exponents of decimals")?;
        if exponent > EXPONENT_MAX || factor > exponent {
            return Err(Damage("exponents of decimals out of range"));
        }
        let powers = Exponents { exponent, factor }.powers();
        let digits = Ints::parse(input, count)?;
        Ok(Alp { powers, digits, exceptions: Exceptions::parse(input, count)? })
    }

    pub fn get<T: Bits>(&self, index: usize) -> T {
        match self.exceptions.find(index) {
            Some(bits) => T::from_u64(bits),
            None => value_of(self.digits.get(index) as f64, self.powers),
        }
    }

    /// Appends all values.
    pub fn decode<T: Bits>(&self, out: &mut Vec<T>) -> Decoded<()> {
        let from = out.len();
        match &self.digits {
            Ints::Frame(frame) if let Some(line) = frame.in_doubles() => {
                out.reserve(frame.count);
                frame.for_each_run(|run| match run {
                    Unpacked::Narrow(run) => narrow(run, line, self.powers, out),
                    Unpacked::Wide(run) => wide(run, line, self.powers, out),
                });
            }
            digits => {
                let mut all = Vec::<i64>::new();
                digits.decode(&mut all)?;
                whole(&all, self.powers, out);
            }
        }
        self.exceptions.patch(&mut out[from..], |value, bits| *value = T::from_u64(bits))
    }
}

widest! {
    fn narrow[T: Bits](run: &[u32], line: (f64, f64), powers: (f64, f64), out: &mut Vec<T>) {
        out.extend(run.iter().map(|packed| value_of::<T>(line.0 + line.1 * f64::from(*packed), powers)));
    }
}

widest! {
    fn wide[T: Bits](run: &[u64], line: (f64, f64), powers: (f64, f64), out: &mut Vec<T>) {
        out.extend(run.iter().map(|packed| value_of::<T>(line.0 + line.1 * *packed as f64, powers)));
    }
}

widest! {
    fn whole[T: Bits](digits: &[i64], powers: (f64, f64), out: &mut Vec<T>) {
        out.extend(digits.iter().map(|digits| value_of::<T>(*digits as f64, powers)));
    }
}

/// Digits that would not be exact, or would be those of another value, make an exception.
#[inline(always)]
fn says<T: Bits>(digits: f64, value: T, powers: (f64, f64)) -> bool {
    digits.abs() <= DIGITS_MAX && value_of::<T>(digits, powers).to_u64() == value.to_u64()
}

/// What a sample says of a pair: exceptions, and bits that all its values take.
fn cost<T: Bits>(exponents: Exponents, values: &[T]) -> (usize, usize) {
    let (mut least, mut most, mut exceptions) = (f64::MAX, f64::MIN, 0);
    for value in values {
        let digits = exponents.digits_of(value.double());
        if says(digits, *value, exponents.powers()) {
            least = least.min(digits);
            most = most.max(digits);
        } else {
            exceptions += 1;
        }
    }
    let width = if least <= most { usize::from(width_of((most - least) as u64)) } else { 0 };
    (exceptions, values.len() * width + exceptions * (T::BITS as usize + POSITION_BITS))
}

/// The few pairs that suit a sample of a chunk best. Of two that do equally well the greater ones come first: more of the
/// other values are theirs.
pub(super) fn candidates<T: Bits>(sample: &[T]) -> Vec<Exponents> {
    let exponent_max = if T::BITS == 32 { EXPONENT_MAX_OF_SINGLES } else { EXPONENT_MAX };
    let pairs =
        (0..=exponent_max).rev().flat_map(|exponent| (0..=exponent).rev().map(move |factor| (exponent, factor)));
    let mut costs: Vec<(usize, Exponents)> = pairs
        .filter_map(|(exponent, factor)| {
            let exponents = Exponents { exponent, factor };
            let (exceptions, bits) = cost(exponents, sample);
            (exceptions < sample.len()).then_some((bits, exponents))
        })
        .collect();
    costs.sort_by_key(|(bits, _)| *bits);
    costs.into_iter().take(CANDIDATES_MAX).map(|(_, exponents)| exponents).collect()
}

/// The pair that suits a sample of a page best, if one does.
pub(super) fn best_of<T: Bits>(candidates: &[Exponents], sample: &[T]) -> Option<Exponents> {
    let costs = candidates.iter().map(|exponents| (cost(*exponents, sample), *exponents));
    let ((exceptions, _), exponents) = costs.min_by_key(|((_, bits), _)| *bits)?;
    (exceptions * EXCEPTIONS_PART <= sample.len()).then_some(exponents)
}

widest! {
    /// The digits of values, and whether they say what these are.
    fn scale[T: Bits](values: &[T], exponents: Exponents, digits: &mut [i64], said: &mut [bool]) {
        let powers = exponents.powers();
        for ((value, digits), said) in values.iter().zip(digits).zip(said) {
            let rounded = exponents.digits_of(value.double());
            *said = says(rounded, *value, powers);
            *digits = rounded as i64;
        }
    }
}

/// Appends values, behind the form.
pub(super) fn encode<T: Bits>(values: &[i64], exponents: Exponents, out: &mut Vec<u8>) {
    let floats: Vec<T> = values.iter().map(|value| T::from_u64(*value as u64)).collect();
    let (mut digits, mut said) = (vec![0; values.len()], vec![false; values.len()]);
    scale(&floats, exponents, &mut digits, &mut said);
    let (mut positions, mut bits) = (Vec::new(), Vec::new());
    // In the place of an exception stand the digits before it, which cost the least in every form.
    let mut last = said.iter().position(|said| *said).map_or(0, |first| digits[first]);
    for (at, (digits, said)) in digits.iter_mut().zip(&said).enumerate() {
        if *said {
            last = *digits;
        } else {
            *digits = last;
            positions.push(at as i64);
            bits.push(values[at]);
        }
    }
    out.extend_from_slice(&[exponents.exponent, exponents.factor]);
    ints::encode(&digits, out);
    exceptions::encode(&positions, &bits, out);
}
