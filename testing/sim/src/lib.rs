//! A simulated machine: disk, clock and randomness behind the traits of `sched::os`, all from one seed.
//!
//! The disk keeps what POSIX promises on a power cut and nothing more. What was written and not synced is
//! kept, dropped or torn, page by page; names that were created, renamed or removed and whose directory was
//! not synced are kept or not, each for itself. Faults are injected by kind of operation and path.
//!
//! One thread at a time sees the same faults for the same seed. With several threads the order of their
//! operations is the scheduler's; the seed still fixes what each thread asks for and how a cut tears.

mod clock;
mod content;
mod cut;
mod disk;
mod faults;
mod fs;
mod rng;
#[cfg(test)]
mod tests;
mod trial;

pub use clock::SimClock;
pub use faults::{Fault, Op, OpCounts};
pub use fs::SimFs;
pub use rng::{Rng, SimRandom};
pub use trial::{Controls, seed, setting};

use basalt_sched::Os;
use basalt_sched::os::UnknownLoad;
use std::sync::Arc;

/// Disk, clock and randomness of one seed.
#[derive(Clone)]
pub struct Machine {
    pub fs: Arc<SimFs>,
    pub clock: Arc<SimClock>,
    pub random: Arc<SimRandom>,
}

impl Machine {
    /// An empty disk.
    pub fn new(seed: u64) -> Machine {
        Machine::with_disk(SimFs::new(seed), seed)
    }

    /// A machine that starts with what is on a disk, as after a power cut.
    pub fn with_disk(fs: Arc<SimFs>, seed: u64) -> Machine {
        Machine { fs, clock: Arc::new(SimClock::new(seed)), random: Arc::new(SimRandom::new(seed)) }
    }

    /// What the engine takes.
    pub fn os(&self) -> Os {
        Os { fs: self.fs.clone(), clock: self.clock.clone(), random: self.random.clone(), load: Arc::new(UnknownLoad) }
    }

    /// Cuts the power: from now on every operation of this machine's disk fails. Returns the machine that
    /// is switched on afterwards.
    pub fn power_cut(&self, seed: u64) -> Machine {
        Machine::with_disk(self.fs.power_cut(seed), seed)
    }
}
