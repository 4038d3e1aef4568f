//! Steps that must happen whole: one that a panic cuts short stops the engine.
//!
//! Between a commit record and the last row restamped, or between a move's marks and its view, memory and
//! log disagree. Going on from there could acknowledge what a restart does not find. So the log is stopped,
//! as after a failed sync: reads go on, writes fail and say why, and a restart replays what is durable.

use crate::{Engine, Error};

/// Held during such a step.
pub(crate) struct Whole<'a> {
    engine: &'a Engine,
    step: &'static str,
    /// Entered by a destructor while its thread was unwinding already: that panic is not this step's.
    unwinding: bool,
}

impl Engine {
    /// The caller drops the guard when the step is done, or has failed in a way that left nothing behind.
    pub(crate) fn whole(&self, step: &'static str) -> Whole<'_> {
        Whole { engine: self, step, unwinding: std::thread::panicking() }
    }

    /// Why the engine takes no writes any more: its log has stopped.
    pub fn failure(&self) -> Option<Error> {
        self.log.stopped().map(Error::from)
    }
}

impl Drop for Whole<'_> {
    fn drop(&mut self) {
        if self.unwinding || !std::thread::panicking() {
            return;
        }
        self.engine.log.stop(&format!("a panic cut a {} short", self.step));
        self.engine.order.give_up();
        self.engine.locks.stop(self.engine.failure().unwrap_or(Error::ShuttingDown));
    }
}
