//! Randomness from a seed (SplitMix64: Steele, Lea, Flood, OOPSLA 2014).

use basalt_sched::Random;
use std::sync::atomic::{AtomicU64, Ordering};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A sequence that its seed determines.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(mix(seed.wrapping_add(STEP)))
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Another sequence, independent of what is drawn from this one later.
    pub fn fork(&mut self) -> Rng {
        Rng::new(self.next_u64())
    }
}

/// [`Random`] from a seed.
pub struct SimRandom {
    state: AtomicU64,
}

impl SimRandom {
    pub fn new(seed: u64) -> SimRandom {
        SimRandom { state: AtomicU64::new(mix(seed ^ STEP)) }
    }
}

impl Random for SimRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = mix(self.state.fetch_add(STEP, Ordering::Relaxed)).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
