//! What trials of a system on a simulated machine have in common.

use basalt_sched::os::Random;
use basalt_sched::os::real::RealRandom;

/// What a trial is weakened by, to show that it would notice.
#[derive(Clone, Copy, Default)]
pub struct Controls {
    pub lying_sync: bool,
    pub early_acknowledgement: bool,
}

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} = {text:?} is not a number")),
        Err(_) => default,
    }
}

/// `BASALT_SEED`, or one that was never used.
pub fn seed() -> u64 {
    let seed = setting("BASALT_SEED", RealRandom.next_u64() >> 1);
    println!("BASALT_SEED={seed}");
    seed
}
