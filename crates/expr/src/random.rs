//! The generator behind `random()` once `setseed` was called: xoroshiro128**, seeded through splitmix64
//! (Blackman and Vigna), which is what PostgreSQL 15 draws from; the same seed gives the same numbers.

/// State of one session's generator.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    s0: u64,
    s1: u64,
}

impl Generator {
    /// From `setseed`'s argument, -1 to 1.
    pub fn seeded(seed: f64) -> Generator {
        let mut state = (((1u64 << 52) - 1) as f64 * seed) as i64 as u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Generator { s0: next(), s1: next() }
    }

    fn next(&mut self) -> u64 {
        let (first, mixed) = (self.s0, self.s1 ^ self.s0);
        let result = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.s0 = first.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.s1 = mixed.rotate_left(37);
        result
    }

    /// Uniform in [0, 1), with 52 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 12) as f64 / (1u64 << 52) as f64
    }
}
