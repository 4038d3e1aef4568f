//! How many different values there are, told from a kilobyte: HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007) with
//! the estimator of Ertl (2017, "New cardinality estimation algorithms for HyperLogLog sketches", algorithm 6), which
//! needs no tables and no correction at either end.
//!
//! Up to [`FEW_MAX`] values the sketch holds the upper half of their hashes: then the count is exact, but for two values
//! of which these agree, one in half a million lists. Of more it has 2,048 registers, each the greatest rank, the place of
//! the first set bit, of the hashes that fall to it; the standard error is 1.04 / √2048, or 2.3 %. Both forms merge
//! without loss: the count of a table is that of the union of its files.

use crate::encoding::ints::{self, Ints};
use crate::encoding::{Damage, Decoded, take, take_array};
use crate::filter;

const INDEX_BITS: u32 = 11;
const REGISTERS: usize = 1 << INDEX_BITS;
/// Of hashes of 64 bits: all bits behind the index are 0.
const RANK_MAX: u8 = (64 - INDEX_BITS + 1) as u8;
/// Beyond so many hashes registers are smaller.
const FEW_MAX: usize = 256;

/// Keeps the hash of 0, which is 0, from a rank that no other value has.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sketch(Form);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    /// Upper halves of hashes, ascending.
    Few(Vec<u32>),
    Many(Box<[u8; REGISTERS]>),
}

/// Forms on disk.
const FEW: u8 = 0;
const MANY: u8 = 1;

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch(Form::Few(Vec::new()))
    }
}

/// The hash by which sketches know an integer.
#[inline]
pub(crate) fn int_hash(value: i64) -> u64 {
    filter::int_hash(value) ^ SALT
}

/// The same of bytes.
#[inline]
pub(crate) fn bytes_hash(value: &[u8]) -> u64 {
    filter::key_hash(value) ^ SALT
}

/// Values that are equal have equal bits: -0 is 0, all that are not numbers are one.
#[inline]
pub(crate) fn float_hash(value: f64) -> u64 {
    let value = if value == 0.0 { 0.0 } else { value };
    int_hash(if value.is_nan() { f64::NAN } else { value }.to_bits() as i64)
}

impl Sketch {
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        match &mut self.0 {
            Form::Many(registers) => raise(registers, hash),
            Form::Few(hashes) => {
                if let Err(at) = hashes.binary_search(&((hash >> 32) as u32)) {
                    hashes.insert(at, (hash >> 32) as u32);
                    if hashes.len() > FEW_MAX {
                        self.grow();
                    }
                }
            }
        }
    }

    fn grow(&mut self) {
        if let Form::Few(hashes) = &self.0 {
            let mut registers = Box::new([0; REGISTERS]);
            hashes.iter().for_each(|hash| raise(&mut registers, u64::from(*hash) << 32));
            self.0 = Form::Many(registers);
        }
    }

    /// Adds the values of another.
    pub fn merge(&mut self, other: &Sketch) {
        match &other.0 {
            Form::Few(hashes) => hashes.iter().for_each(|hash| self.add(u64::from(*hash) << 32)),
            Form::Many(others) => {
                self.grow();
                let Form::Many(registers) = &mut self.0 else { unreachable!("it has just grown") };
                registers.iter_mut().zip(others.iter()).for_each(|(own, other)| *own = (*own).max(*other));
            }
        }
    }

    /// The number of different values.
    pub fn estimate(&self) -> f64 {
        let registers = match &self.0 {
            Form::Few(hashes) => return hashes.len() as f64,
            Form::Many(registers) => registers,
        };
        let mut counts = [0u32; RANK_MAX as usize + 1];
        registers.iter().for_each(|rank| counts[usize::from(*rank)] += 1);
        let registers = REGISTERS as f64;
        let mut sum = registers * tau(1.0 - f64::from(counts[usize::from(RANK_MAX)]) / registers);
        for count in counts[1..usize::from(RANK_MAX)].iter().rev() {
            sum = 0.5 * (sum + f64::from(*count));
        }
        sum += registers * sigma(f64::from(counts[0]) / registers);
        registers * registers / (2.0 * std::f64::consts::LN_2 * sum)
    }

    /// `form u8 | hashes u32, ascending`, or `form u8 | registers as integers`.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Few(hashes) => {
                out.push(FEW);
                hashes.iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
            }
            Form::Many(registers) => {
                out.push(MANY);
                ints::encode(&registers.map(i64::from), out);
            }
        }
    }

    /// All of the bytes.
    pub(crate) fn take(mut input: &[u8]) -> Decoded<Sketch> {
        const WHAT: Damage = Damage("a sketch");
        match take_array(&mut input, WHAT.0)? {
            [FEW] => {
                let count = input.len() / 4;
                let hashes = take(&mut input, count * 4, WHAT.0)?.chunks_exact(4);
                let hashes: Vec<u32> =
                    hashes.map(|hash| u32::from_le_bytes(hash.try_into().expect("4 bytes"))).collect();
                let is_sound = input.is_empty() && count <= FEW_MAX && hashes.is_sorted_by(|a, b| a < b);
                if is_sound { Ok(Sketch(Form::Few(hashes))) } else { Err(WHAT) }
            }
            [MANY] => {
                let mut ranks: Vec<i64> = Vec::with_capacity(REGISTERS);
                Ints::parse(&mut input, REGISTERS)?.decode(&mut ranks)?;
                let mut registers = Box::new([0; REGISTERS]);
                if !input.is_empty() || ranks.len() != REGISTERS {
                    return Err(WHAT);
                }
                for (register, rank) in registers.iter_mut().zip(ranks) {
                    *register = u8::try_from(rank).ok().filter(|rank| *rank <= RANK_MAX).ok_or(WHAT)?;
                }
                Ok(Sketch(Form::Many(registers)))
            }
            _ => Err(Damage("unknown form of a sketch")),
        }
    }
}

#[inline]
fn raise(registers: &mut [u8; REGISTERS], hash: u64) {
    let rank = ((hash << INDEX_BITS) | 1 << (INDEX_BITS - 1)).leading_zeros() as u8 + 1;
    let register = &mut registers[(hash >> (64 - INDEX_BITS)) as usize];
    *register = (*register).max(rank);
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

/// Which of the integers of a short span have come.
const SPAN_MAX: u64 = 1 << 16;

impl Sketch {
    /// Adds integers that lie between two; each value is hashed once where these are near each other.
    pub(crate) fn add_ints(&mut self, values: &[i64], (least, greatest): (i64, i64)) {
        let span = greatest.wrapping_sub(least) as u64;
        if span >= SPAN_MAX || span as usize >= values.len() * 4 {
            return self.add_runs(values.iter().copied(), int_hash);
        }
        let mut met = vec![0u64; span as usize / 64 + 1];
        for value in values {
            let at = value.wrapping_sub(least) as u64;
            met[(at / 64) as usize] |= 1 << (at % 64);
        }
        for (word, mut bits) in (0i64..).zip(met) {
            while bits != 0 {
                self.add(int_hash(least.wrapping_add(word * 64 + i64::from(bits.trailing_zeros()))));
                bits &= bits - 1;
            }
        }
    }

    /// Adds values, of which equal ones may follow each other.
    pub(crate) fn add_runs<T: Copy + PartialEq>(&mut self, values: impl Iterator<Item = T>, hash: impl Fn(T) -> u64) {
        let mut last = None;
        for value in values {
            if last != Some(value) {
                self.add(hash(value));
                last = Some(value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
