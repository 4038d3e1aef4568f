//! Randomness that costs little and can be repeated: a generator that a seed determines, TPC-C's non-uniform numbers
//! (clause 2.1.6), YCSB's distributions (Gray et al., "Quickly Generating Billion-Record Synthetic Databases",
//! SIGMOD 1994, figure 3; YCSB's ScrambledZipfianGenerator and SkewedLatestGenerator).

/// wyrand: one multiplication for 64 bits.
#[derive(Clone)]
pub struct Random(u64);

/// 64 of them, so that six bits choose one; two letters come twice as often.
const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZae";

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.bits();
        random
    }

    /// Depends on all parts, so that what is drawn for one row does not depend on which rows came before.
    pub fn of(parts: &[u64]) -> Random {
        Random::new(parts.iter().fold(0xcbf2_9ce4_8422_2325, |hash, part| fnv(hash ^ part)))
    }

    /// 64 of them.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        (product >> 64) as u64 ^ product as u64
    }

    /// From 0 to `bound`, without it.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Both ends are among them.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.below((most - least + 1) as u64) as i64
    }

    /// From 0 to 1, without it.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn percent(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }

    pub fn letters(&mut self, count: usize, out: &mut Vec<u8>) {
        let mut left = count;
        while left > 0 {
            let mut bits = self.bits();
            for _ in 0..left.min(10) {
                out.push(LETTERS[(bits & 63) as usize]);
                bits >>= 6;
            }
            left -= left.min(10);
        }
    }

    pub fn digits(&mut self, count: usize, out: &mut Vec<u8>) {
        for _ in 0..count {
            out.push(b'0' + self.below(10) as u8);
        }
    }

    /// NURand(a, least, most) with the constant `c`.
    pub fn skewed(&mut self, a: i64, c: i64, least: i64, most: i64) -> i64 {
        (((self.between(0, a) | self.between(least, most)) + c) % (most - least + 1)) + least
    }
}

/// FNV-1a of the eight bytes of a number: spreads what is drawn often over all keys.
pub fn fnv(value: u64) -> u64 {
    value
        .to_le_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

const THETA: f64 = 0.99;

/// Numbers from 0, of which number n comes in proportion to 1 / (n + 1)^0.99.
#[derive(Clone)]
pub struct Zipfian {
    items: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    pub fn new(items: u64) -> Zipfian {
        let mut zipfian = Zipfian { items: 0, zeta: 0.0, eta: 0.0 };
        zipfian.grow(items);
        zipfian
    }

    /// Over ten billion numbers, as YCSB has it whatever the number of rows: the sum would take minutes.
    pub fn of_ten_billion() -> Zipfian {
        let (items, zeta) = (10_000_000_000, 26.469_028_201_783_02);
        Zipfian { items, zeta, eta: eta(items, zeta) }
    }

    /// Adds to the sum what is new: rows that are inserted cost little.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zeta += (self.items..items).map(|item| 1.0 / ((item + 1) as f64).powf(THETA)).sum::<f64>();
            self.items = items;
            self.eta = eta(items, self.zeta);
        }
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        let uniform = random.fraction();
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1.min(self.items - 1);
        }
        let drawn = self.items as f64 * (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        (drawn as u64).min(self.items - 1)
    }
}

fn eta(items: u64, zeta: f64) -> f64 {
    let zeta_of_two = 1.0 + 0.5f64.powf(THETA);
    (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta_of_two / zeta)
}

#[cfg(test)]
mod tests;
