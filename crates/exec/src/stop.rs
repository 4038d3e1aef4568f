//! How a running statement is told to end: one flag that whatever works for it looks at between its steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by all parts of one execution. Once set it stays set.
#[derive(Clone, Default, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
