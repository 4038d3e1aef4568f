//! What the log's writer waits for before a sync.
//!
//! Group commit by itself: while one sync runs, commits pile up and the next sync takes them all. With many
//! committers in a closed loop that alone splits them in two groups, those in the running sync and those
//! that just missed it. So after a sync the writer may *gather*: wait until as many wait as were seen at
//! once, at most half of a sync and `gather_max`. One who commits alone is not delayed, because it is all
//! that was seen. A gathering that did not pay (fewer arrivals than the delay was worth) is not tried again
//! for 1, 2, 4, ... flushes.
//!
//! A sync takes a processor as well: some 40 µs of it, in the kernel. Where every processor has something to do,
//! a wait costs those who wait hardly anything, as others get on meanwhile, and a sync that is saved is time for
//! all: there the writer gathers for several times the time of a sync ([`FULL_SYNCS`]; docs/decisions/0023). If
//! nobody came, that is left out for 1, 2, 4, ... flushes, too.
//!
//! To wait for only a part of them, so that some work while others' sync runs, gained nothing (docs/decisions/0031).

use crate::log::{Shared, State, WriterState};
use crate::writer::EAGER_BYTES;
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

const SKIP_MAX: u32 = 64;
/// Where processors are busy and others may come, the next sync begins at the latest so many times the time of one, or
/// `gather_max` if that is less, behind the end of the last one. Half-way the writer asks again whether they still are.
const FULL_SYNCS: u32 = 16;
/// So many share the processor time of a sync that each has little of it.
const FULL_ENOUGH: usize = 24;

/// Whether as many wait, or there is another reason not to wait for more.
fn has_enough(waiters: usize, shared: &Shared, state: &State) -> bool {
    let is_much = state.image.bytes.len() >= EAGER_BYTES;
    shared.waiters.count() >= waiters || is_much || state.closing || shared.poison.get().is_some()
}

/// Until as many wait, or until then. False: there was nothing to wait for.
fn wait_for(waiters: usize, until: Duration, shared: &Shared, state: &mut MutexGuard<'_, State>) -> bool {
    let mut waited = false;
    state.writer = WriterState::Gathering(waiters);
    while !has_enough(waiters, shared, state) {
        let now = shared.os.clock.monotonic();
        if now >= until {
            break;
        }
        waited = true;
        if shared.writer_wakes.wait_for(state, until - now).timed_out() {
            break;
        }
    }
    state.writer = WriterState::Busy;
    waited
}

/// Until as many wait, or the second of two steps is over, or processors are not busy any more when one begins. `None`:
/// it is too late, or they are not busy. Else, whether anything was waited for.
fn gather_while_full(
    crowd: usize,
    steps: [Duration; 2],
    shared: &Shared,
    state: &mut MutexGuard<'_, State>,
) -> Option<bool> {
    let mut waited = None;
    for until in steps {
        if shared.os.clock.monotonic() >= until {
            continue;
        }
        // Asks the system.
        if !MutexGuard::unlocked(state, || shared.os.load.is_full()) {
            break;
        }
        let took_time = wait_for(crowd, until, shared, state);
        waited = Some(took_time || waited.unwrap_or_default());
        if has_enough(crowd, shared, state) {
            break;
        }
    }
    waited
}

/// Leaves out what did not pay: 1, 2, 4, ... times, at most [`SKIP_MAX`], until it does.
#[derive(Default)]
struct Backoff {
    /// Still to be left out, and how often it was last time.
    skip: u32,
    last: u32,
}

impl Backoff {
    fn is_over(&mut self) -> bool {
        let over = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        over
    }

    fn note(&mut self, paid: bool) {
        self.last = if paid { 0 } else { (self.last * 2).clamp(1, SKIP_MAX) };
        self.skip = self.last;
    }
}

#[derive(Default)]
pub struct Gather {
    /// Committers in the last sync and those who waited for the next one at its end.
    seen_at_once: usize,
    /// The same of some syncs before.
    seen_of_late: usize,
    sync_end: Duration,
    sync_latency: Duration,
    /// Of gathering, and of gathering where processors are busy.
    backoff: Backoff,
    full_backoff: Backoff,
}

impl Gather {
    pub fn synced(&mut self, end: Duration, latency: Duration) {
        self.sync_end = end;
        self.sync_latency = latency;
    }

    /// Waits, if that is worth it, until more committers wait.
    pub fn wait(&mut self, shared: &Shared, state: &mut MutexGuard<'_, State>) {
        if state.closing || state.image.bytes.len() >= EAGER_BYTES {
            return;
        }
        let begin = shared.os.clock.monotonic();
        let waiting = shared.waiters.count();
        let after = |wait: Duration| self.sync_end + wait;
        let gather_max = shared.config.gather_max;
        let crowd = self.seen_of_late.min(FULL_ENOUGH);
        if crowd > 1 && waiting < crowd && self.full_backoff.is_over() {
            let most = gather_max.min(self.sync_latency.saturating_mul(FULL_SYNCS));
            if let Some(waited) = gather_while_full(crowd, [after(most / 2), after(most)], shared, state) {
                let came = shared.waiters.count() > waiting;
                if waited || came {
                    self.full_backoff.note(came);
                }
                shared.counters.gathers.fetch_add(u64::from(waited), Ordering::Relaxed);
                return;
            }
        }
        let target = self.seen_at_once;
        if target <= 1 || waiting >= target || !self.backoff.is_over() {
            return;
        }
        if wait_for(target, after(gather_max.min(self.sync_latency / 2)), shared, state) {
            shared.counters.gathers.fetch_add(1, Ordering::Relaxed);
            let delay = shared.os.clock.monotonic().saturating_sub(begin);
            self.weigh(waiting, shared.waiters.count(), delay);
        }
    }

    /// At the end of a sync, how many waited and how many of them it served. Of a crowd before, most may come again.
    pub fn saw(&mut self, waiting: usize, served: usize) {
        let at_once = waiting.max(served);
        self.seen_at_once = at_once;
        self.seen_of_late = at_once.max(self.seen_of_late - self.seen_of_late.div_ceil(8));
    }

    /// A gathering pays if those who came save more time (a sync each) than the others lost.
    fn weigh(&mut self, before: usize, after: usize, delay: Duration) {
        let gained = self.sync_latency.as_nanos() * after.saturating_sub(before) as u128;
        let lost = delay.as_nanos() * before.max(1) as u128;
        self.backoff.note(gained > lost);
    }
}
