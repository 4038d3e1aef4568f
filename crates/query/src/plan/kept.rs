//! What is made of a part of a plan when it is first run, and kept with it.

use std::sync::OnceLock;

/// A copy of the plan, which may be changed, begins without.
#[derive(Debug)]
pub struct Kept<T>(OnceLock<T>);

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(OnceLock::new())
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Kept<T> {
        Kept::default()
    }
}

impl<T> Kept<T> {
    /// If it has been made.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(make)
    }
}
