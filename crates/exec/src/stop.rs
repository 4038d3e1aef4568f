//! How a running statement is told to end: one flag that whatever works for it looks at between its steps.
//!
//! What puts together what workers made (sorts, windows, groups, tables of joins) computes for seconds in loops far below
//! whoever has the flag. So a thread knows the flag of the statement that it works for just now, and such loops ask
//! [`check`] once in [`ROWS`] rows: a statement that is told to end takes no processor for longer than these take. Whoever
//! looks also gives way to threads that are due on its processor.

use crate::error::{Error, Result};
use basalt_sched::threads::give_way;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows after which a loop that does little for each looks at the flag: a millisecond at most, as a rule.
pub const ROWS: usize = 32 << 10;

/// Shared by all parts of one execution. Once set it stays set.
#[derive(Clone, Default, Debug)]
pub struct Stop(Arc<AtomicBool>);

std::thread_local! {
    static CURRENT: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

impl Stop {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        #[cfg(test)]
        gaps::look();
        self.0.load(Ordering::Relaxed)
    }

    /// Runs what looks at this flag by [`check`].
    pub fn watched<T>(&self, run: impl FnOnce() -> T) -> T {
        let _before = Before(CURRENT.replace(Some(self.clone())));
        run()
    }
}

/// The flag that the thread looked at before.
struct Before(Option<Stop>);

impl Drop for Before {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// [`Error::Stopped`] if the statement that this thread works for has been told to end.
pub fn check() -> Result<()> {
    give_way();
    let is_set = CURRENT.with_borrow(|stop| stop.as_ref().is_some_and(Stop::is_set));
    if is_set { Err(Error::Stopped) } else { Ok(()) }
}

/// So many rows, some at a time, with a look at the flag before each.
pub fn pieces(rows: usize) -> impl Iterator<Item = Result<Range<usize>>> {
    (0..rows).step_by(ROWS).map(move |from| check().map(|()| from..rows.min(from + ROWS)))
}

/// How long nobody looked.
#[cfg(test)]
pub mod gaps {
    use super::Stop;
    use cpu_time::ThreadTime;
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    std::thread_local! {
        static LAST: Cell<Option<ThreadTime>> = const { Cell::new(None) };
        static LONGEST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
        static LOOKS: Cell<usize> = const { Cell::new(0) };
        /// The flag that is set after so many looks.
        static SET: RefCell<Option<(usize, Stop)>> = const { RefCell::new(None) };
    }

    pub fn look() {
        LOOKS.set(LOOKS.get() + 1);
        if let Some(last) = LAST.get() {
            LONGEST.set(LONGEST.get().max(last.elapsed()));
            LAST.set(Some(ThreadTime::now()));
        }
        SET.with_borrow_mut(|set| {
            if let Some((_, stop)) = set.take_if(|(after, _)| *after <= LOOKS.get()) {
                stop.set();
            }
        });
    }

    /// The longest time that this thread computed without a look at the flag.
    pub fn longest(run: impl FnOnce()) -> Duration {
        LONGEST.set(Duration::ZERO);
        LOOKS.set(0);
        LAST.set(Some(ThreadTime::now()));
        run();
        LAST.set(None);
        LONGEST.get()
    }

    /// Looks of the last [`longest`].
    pub fn looks() -> usize {
        LOOKS.get()
    }

    /// Sets the flag at that look of the next [`longest`].
    pub fn set_after(looks: usize, stop: &Stop) {
        SET.set(Some((looks, stop.clone())));
    }
}
