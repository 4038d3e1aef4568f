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
//! While a sync runs for all, nobody works. Where that leaves processors idle, and committers work longer than a sync
//! takes, the writer waits for half of them only: two groups, one of which works while the other's sync runs
//! ([`Groups`]; docs/decisions/0031).

use crate::log::{Shared, State, WriterState};
use crate::writer::EAGER_BYTES;
use basalt_sched::ProcessorTimes;
use basalt_sched::os::Load;
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
    groups: Groups,
}

impl Gather {
    pub fn synced(&mut self, end: Duration, latency: Duration) {
        self.sync_end = end;
        self.sync_latency = latency;
        self.groups.syncs += 1;
        self.groups.syncing += latency;
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
        let crowd = self.groups.part_of(self.seen_of_late).min(FULL_ENOUGH);
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
        let target = self.groups.part_of(self.seen_at_once);
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
    pub fn saw(&mut self, waiting: usize, served: usize, load: &dyn Load) {
        let at_once = waiting.max(served);
        self.seen_at_once = at_once;
        self.seen_of_late = at_once.max(self.seen_of_late - self.seen_of_late.div_ceil(8));
        self.groups.served += served;
        self.groups.look(self.sync_end, self.seen_of_late, || load.times());
    }

    /// A gathering pays if those who came save more time (a sync each) than the others lost.
    fn weigh(&mut self, before: usize, after: usize, delay: Duration) {
        let gained = self.sync_latency.as_nanos() * after.saturating_sub(before) as u128;
        let lost = delay.as_nanos() * before.max(1) as u128;
        self.backoff.note(gained > lost);
    }
}

/// Whether committers come in two groups, by what was seen over some time.
#[derive(Default)]
struct Groups {
    /// When that time began, and what processors had done by then.
    since: Option<(Duration, ProcessorTimes)>,
    served: usize,
    syncs: u32,
    syncing: Duration,
    state: Grouping,
    /// The processors' times are not to be had.
    is_blind: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Grouping {
    /// Two groups are not tried for so many looks.
    One { barred: u32 },
    /// As many as one of two groups has; commits a second when there was one group, and looks since.
    Two { half: usize, rate_before: f64, looks: u32 },
}

impl Default for Grouping {
    fn default() -> Grouping {
        Grouping::One { barred: 0 }
    }
}

impl Groups {
    /// So long is looked at: processors' times are told in hundredths of a second.
    const LOOK_EVERY: Duration = Duration::from_millis(200);
    /// Behind a longer pause nobody knows what was idle when.
    const LOOK_MAX: Duration = Duration::from_millis(400);
    /// With one group, processors are idle for at least so much of the time; with two, they would still be.
    const IDLE_MIN: f64 = 0.15;
    const IDLE_MIN_OF_TWO: f64 = 0.05;
    /// Fewer are no groups.
    const CROWD_MIN: usize = 3;
    /// With two groups, fewer are seen at once, and nobody knows how many there are. So, after so many looks, one group
    /// is tried again; and two groups, after they got less done than one.
    const LOOKS_MAX: u32 = 25;
    /// Less than so much of it is less.
    const RATE_MIN: f64 = 0.9;

    /// How many of a crowd to wait for.
    fn part_of(&self, crowd: usize) -> usize {
        match self.state {
            Grouping::One { .. } => crowd,
            Grouping::Two { half, .. } => half.max(crowd / 2).min(crowd),
        }
    }

    fn look(&mut self, now: Duration, crowd: usize, times: impl FnOnce() -> Option<ProcessorTimes>) {
        let is_early = self.since.is_some_and(|(begin, _)| now < begin + Self::LOOK_EVERY);
        if is_early || self.is_blind || crowd < 2 {
            return;
        }
        let Some(times) = times() else {
            *self = Groups { is_blind: true, ..Groups::default() };
            return;
        };
        let last = std::mem::replace(self, Groups { since: Some((now, times)), ..Groups::default() });
        let Some((begin, before)) = last.since else { return };
        let took = now.saturating_sub(begin);
        self.state = match took <= Self::LOOK_MAX && last.served > 0 && last.syncs > 0 {
            true => last.decided(crowd, took.as_secs_f64(), times.idle_since(before)),
            false => last.state,
        };
    }

    fn decided(&self, crowd: usize, took: f64, idle: f64) -> Grouping {
        let rate = self.served as f64 / took;
        match self.state {
            Grouping::One { barred: 0 } => {
                // Until as many as the crowd have committed.
                let round = crowd as f64 / rate;
                let sync = self.syncing.as_secs_f64() / f64::from(self.syncs);
                match crowd >= Self::CROWD_MIN && idle >= Self::IDLE_MIN && round > 2.0 * sync {
                    true => Grouping::Two { half: crowd.div_ceil(2), rate_before: rate, looks: 0 },
                    false => Grouping::One { barred: 0 },
                }
            }
            Grouping::One { barred } => Grouping::One { barred: barred - 1 },
            Grouping::Two { .. } if idle < Self::IDLE_MIN_OF_TWO => Grouping::One { barred: 0 },
            Grouping::Two { rate_before, .. } if rate < rate_before * Self::RATE_MIN => {
                Grouping::One { barred: Self::LOOKS_MAX }
            }
            Grouping::Two { half, rate_before, looks } => match looks + 1 < Self::LOOKS_MAX {
                true => Grouping::Two { half, rate_before, looks: looks + 1 },
                false => Grouping::One { barred: 0 },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Duration = Duration::from_secs(50);
    const BEFORE: ProcessorTimes = ProcessorTimes { idle: 300, all: 1000 };
    const SYNCS: u32 = 200;

    /// What is decided after a look's time with so many commits of a crowd, by syncs of 300 µs.
    fn after(state: Grouping, crowd: usize, idle: f64, commits: usize) -> Grouping {
        let syncing = Duration::from_micros(300) * SYNCS;
        let since = Some((SINCE, BEFORE));
        let mut groups = Groups { since, served: commits, syncs: SYNCS, syncing, state, is_blind: false };
        let times = ProcessorTimes { idle: BEFORE.idle + (1000.0 * idle) as u64, all: BEFORE.all + 1000 };
        groups.look(SINCE + Groups::LOOK_EVERY, crowd, || Some(times));
        groups.state
    }

    const ONE: Grouping = Grouping::One { barred: 0 };

    fn two(commits: usize, looks: u32) -> Grouping {
        Grouping::Two { half: 8, rate_before: commits as f64 / Groups::LOOK_EVERY.as_secs_f64(), looks }
    }

    #[test]
    fn two_groups_are_for_idle_processors_and_long_work() {
        // 1,000 rounds a second: 0.7 ms beside the sync of each.
        assert_eq!(after(ONE, 16, 0.3, 3200), two(3200, 0));
        assert_eq!(after(ONE, 16, 0.1, 3200), ONE, "all is busy");
        // 2,000: 0.2 ms, less than a sync takes.
        assert_eq!(after(ONE, 16, 0.4, 6400), ONE);
        assert_eq!(after(ONE, 2, 0.4, 400), ONE, "a crowd of two is no crowd");
        assert_eq!(after(Grouping::One { barred: 2 }, 16, 0.3, 3200), Grouping::One { barred: 1 });
    }

    #[test]
    fn two_groups_stay_while_they_pay() {
        // A little less idle than they began for.
        assert_eq!(after(two(3200, 0), 16, 0.1, 3700), two(3200, 1));
        assert_eq!(after(two(3200, 0), 16, 0.02, 3700), ONE, "all is busy");
        assert_eq!(after(two(3200, 7), 16, 0.3, 2800), Grouping::One { barred: Groups::LOOKS_MAX }, "less gets done");
        assert_eq!(after(two(3200, Groups::LOOKS_MAX - 1), 16, 0.3, 3700), ONE, "to count the crowd again");
    }

    #[test]
    fn a_pause_says_nothing() {
        for state in [ONE, two(3200, 3)] {
            let mut groups = Groups { since: Some((SINCE, BEFORE)), served: 10, syncs: 9, state, ..Groups::default() };
            let times = ProcessorTimes { idle: BEFORE.idle + 900, all: BEFORE.all + 1000 };
            groups.look(SINCE + Duration::from_secs(1), 16, || Some(times));
            assert_eq!((groups.state, groups.served), (state, 0));
        }
    }

    #[test]
    fn one_group_where_nothing_is_known() {
        let mut groups = Groups { state: two(3200, 3), ..Groups::default() };
        groups.look(SINCE, 1, || panic!("asked for one alone"));
        groups.look(SINCE, 16, || Some(BEFORE));
        groups.look(SINCE + Groups::LOOK_EVERY / 2, 16, || panic!("asked too early"));
        groups.look(SINCE + Groups::LOOK_EVERY, 16, || None);
        assert_eq!(groups.state, ONE);
        groups.look(SINCE + Groups::LOOK_EVERY * 9, 16, || panic!("asked in vain"));
    }

    #[test]
    fn half_of_a_crowd_is_waited_for() {
        let groups = Groups { state: two(3200, 0), ..Groups::default() };
        // More may have come than were counted.
        assert_eq!([1, 3, 9, 16, 40].map(|crowd| groups.part_of(crowd)), [1, 3, 8, 8, 20]);
        assert_eq!(Groups::default().part_of(16), 16);
    }
}
