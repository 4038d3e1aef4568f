//! How much reactors and clients have to do, and where a connection were better served.
//!
//! Reactors that rest most of the time cost more than one that rests less: waking one up is the work of several
//! answers. So there are no more at work than needed. Where all who ask do so from one processor at a time, which most
//! likely is one thread, one is enough as long as an answer costs the client as much as the server: the system keeps the
//! two on different processors, and a second reactor would take turns with the client. But the system also puts two threads
//! of clients on one processor where a reactor keeps the other one busy. So one that hardly rests while a processor
//! has nothing to do gets help, whoever asks.
//!
//! Among those at work, an answer counts twice: for the reactor that gives it and for the processor of the client that
//! asked. It is about the same work for both.

use basalt_sched::threads::Usage;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const WINDOW: Duration = Duration::from_millis(50);
/// Who works less than this share of a processor's time, all together, leaves connections where they are.
const WORTHWHILE: f64 = 0.05;
/// A reactor that works at least that much, and rests less often in a second, has too much to do. If so have all, or
/// nearly so, one more helps.
const MUCH: f64 = 0.1;
const RESTS: u64 = 60;
const CROWDED: f64 = 0.6;
/// One that works more than this share of the time, while processors are idle for more than the other one, all together,
/// could be helped by them.
const NEARLY_ALL: f64 = 0.8;
const IDLE: f64 = 0.2;
/// It is looked how long they were idle over so long: the system counts in 10 ms.
const IDLE_WINDOW: Duration = Duration::from_millis(200);
/// One less will do if the others have at most this much each then.
const SPARE: f64 = 0.5;
/// It is tried whether one less will do after so long, and each time later if that was in vain.
const TRY_AFTER: Duration = Duration::from_secs(1);
const TRY_AFTER_MAX: Duration = Duration::from_secs(300);
/// In vain: one more was needed again so soon.
const TRIED: Duration = Duration::from_secs(2);
/// Answers that cost more than this are not worth being brought together: waking up is nothing beside them.
const HEAVY: Duration = Duration::from_micros(100);
/// A window in which a thread that asks for several connections hardly changes its processor.
const GLIMPSE: Duration = Duration::from_millis(5);
/// Answers that cost more than this are worth two processors, whoever asks for them.
const LIGHT: Duration = Duration::from_micros(25);

/// Answers per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rate(u64);

impl Rate {
    pub fn of(answers: u32, took: Duration) -> Rate {
        Rate(u64::from(answers) * 1_000_000 / (took.as_micros() as u64).max(1))
    }
}

pub struct Balance {
    places: Vec<Place>,
    window: Mutex<Window>,
    /// Reactors, the first ones, that share the work.
    active: AtomicUsize,
    glimpse: Mutex<Glimpse>,
    /// Whether one thread seems to ask for all.
    one_asks: AtomicBool,
    /// Whether several reactors are at work, even so, because processors were idle beside fewer.
    helps: AtomicBool,
    /// Whether a reactor with too much to do may give a connection away: one in a window, to see what that helps.
    may_give: AtomicBool,
}

#[derive(Default)]
struct Window {
    began: Duration,
    /// Share of one processor's time that all reactors take, and whether they have too much to do (0 to 1): moving
    /// averages.
    busy: f64,
    crowded: f64,
    /// Whether processors are idle beside one that works nearly always, likewise.
    starved: f64,
    /// When the number of reactors at work changed last, and when one less is to be tried.
    changed: Duration,
    try_after: Duration,
    idle: Idle,
}

/// How much of the machine had nothing to do.
#[derive(Default)]
struct Idle {
    since: Duration,
    /// What [`threads::idle`] said then.
    then: Option<Duration>,
    /// Processors, in the time before.
    processors: f64,
}

#[derive(Default)]
struct Place {
    served: Counted,
    asked: Counted,
    /// Microseconds of processor time.
    spent: Counted,
    rests: Counted,
}

/// Who asked within a few milliseconds.
#[derive(Default)]
struct Glimpse {
    began: Duration,
    /// By place, and of clients that have none.
    asked: Vec<u64>,
    elsewhere: u64,
    /// How many of the last ones had one place only: a moving average from 0 to 1.
    single: f64,
}

/// Answers of this window, and per second in the one before.
#[derive(Default)]
struct Counted {
    now: AtomicU64,
    rate: AtomicU64,
}

impl Counted {
    fn rate(&self) -> u64 {
        self.rate.load(Ordering::Relaxed)
    }

    fn turn(&self, took: Duration) {
        let count = self.now.swap(0, Ordering::Relaxed);
        self.rate.store(count * 1_000_000 / took.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Balance {
    pub fn new(places: usize) -> Balance {
        let glimpse = Mutex::new(Glimpse { asked: vec![0; places], ..Glimpse::default() });
        let places = (0..places).map(|_| Place::default()).collect();
        Balance {
            places,
            window: Mutex::default(),
            active: AtomicUsize::new(1),
            glimpse,
            one_asks: AtomicBool::new(false),
            helps: AtomicBool::new(false),
            may_give: AtomicBool::new(false),
        }
    }

    /// Notes answers of a reactor, and what it has taken for them, to a client whose processor is `home`'s.
    /// `idle` says for how long processors were idle.
    pub fn note(
        &self,
        at: usize,
        home: Option<usize>,
        answers: u32,
        taken: Usage,
        now: Duration,
        idle: impl FnOnce() -> Option<Duration>,
    ) {
        let answers = u64::from(answers);
        let place = &self.places[at];
        place.served.now.fetch_add(answers, Ordering::Relaxed);
        place.spent.now.fetch_add(taken.spent.as_micros() as u64, Ordering::Relaxed);
        place.rests.now.fetch_add(taken.rests, Ordering::Relaxed);
        if let Some(home) = home {
            self.places[home].asked.now.fetch_add(answers, Ordering::Relaxed);
        }
        // Who finds it locked is counted by the next one.
        if let Some(mut glimpse) = self.glimpse.try_lock() {
            let one_asks = glimpse.note(home, answers, now, self.one_asks.load(Ordering::Relaxed));
            self.one_asks.store(one_asks, Ordering::Relaxed);
        }
        let Some(mut window) = self.window.try_lock() else { return };
        let took = now.saturating_sub(window.began);
        if took >= WINDOW {
            window.began = now;
            let counts = self.places.iter().flat_map(|place| [&place.served, &place.asked, &place.spent, &place.rests]);
            counts.for_each(|count| count.turn(took));
            let before = self.active();
            let is_starved = self.is_starved() && window.idle.beside(now, idle) > IDLE;
            let wants_help = window.wants_help(is_starved);
            let is_crowded = is_starved || self.is_crowded();
            let active = window.needed(before, self.places.len(), self.spent(), is_crowded);
            self.active.store(active, Ordering::Relaxed);
            let helps = active > 1 && (wants_help || self.helps.load(Ordering::Relaxed));
            self.helps.store(helps, Ordering::Relaxed);
            self.may_give.store(true, Ordering::Relaxed);
        }
    }

    /// Share of one processor's time that all reactors took.
    fn spent(&self) -> f64 {
        self.places.iter().map(|place| place.spent.rate()).sum::<u64>() as f64 / 1e6
    }

    /// How many reactors share the work of those who ask much.
    fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    fn served(&self) -> u64 {
        self.places.iter().map(|place| place.served.rate()).sum()
    }

    /// Whether reactors shall be where their processors are: if there are several at work, or if they follow a client
    /// with so many answers. One for all is better put by the system, which knows what else goes on.
    pub fn keeps_places(&self, Rate(own): Rate) -> bool {
        self.active() > 1 || is_alone(own, self.served())
    }

    /// How many get connections now.
    fn used(&self) -> usize {
        let cost = Duration::from_secs_f64(self.spent() / self.served().max(1) as f64);
        if cost >= HEAVY {
            self.places.len()
        } else if cost < LIGHT && self.one_asks.load(Ordering::Relaxed) && !self.helps.load(Ordering::Relaxed) {
            1
        } else {
            self.active()
        }
    }

    fn is_full(&self, at: usize) -> bool {
        let place = &self.places[at];
        place.spent.rate() as f64 > MUCH * 1e6 && place.rests.rate() < RESTS
    }

    /// Of those at work, the one that works least, if that is clearly less than `at`.
    fn spare(&self, at: usize, active: usize) -> Option<usize> {
        let spent = |place: usize| self.places[place].spent.rate();
        (0..active).min_by_key(|place| spent(*place)).filter(|least| spent(*least) * 5 < spent(at) * 4)
    }

    /// Whether one works nearly always, and none of those that get connections could take something from it.
    fn is_starved(&self) -> bool {
        let active = self.used();
        (0..active).any(|at| self.places[at].spent.rate() as f64 > NEARLY_ALL * 1e6 && self.spare(at, active).is_none())
    }

    fn is_crowded(&self) -> bool {
        let active = self.active();
        (0..active).any(|at| self.is_full(at) && self.spare(at, active).is_none())
    }

    fn work(&self, at: usize) -> u64 {
        self.places[at].served.rate() + self.places[at].asked.rate()
    }

    /// Where a connection were better served that has `own` answers per second.
    pub fn better(&self, at: usize, home: Option<usize>, Rate(own): Rate) -> Option<usize> {
        let served = self.served();
        if self.spent() < WORTHWHILE {
            return None;
        }
        if is_alone(own, served) {
            // A client that waits for each answer is best served where it is.
            return home.filter(|home| *home != at);
        }
        let active = self.used();
        let idle = (0..active).min_by_key(|place| self.work(*place))?;
        if at >= active {
            return Some(idle);
        }
        // What is uneven by more than that is made even; less than that may become uneven for a client's sake.
        let even = served / active as u64;
        let (least, most) = ((even / 4).max(2 * own), (even / 2).max(3 * own));
        let here = self.work(at);
        // Of one that never rests, answers do not tell how much more there is to do.
        if self.is_full(at)
            && let Some(spare) = self.spare(at, active).filter(|spare| self.work(*spare) <= here)
            && self.may_give.load(Ordering::Relaxed)
        {
            return Some(spare);
        }
        if here > self.work(idle) + most {
            return Some(idle);
        }
        home.filter(|home| *home != at && *home < active && self.work(*home) + 2 * own <= here + least)
    }

    /// A connection moves: who asks next shall know.
    pub fn moves(&self, from: usize, to: usize, Rate(own): Rate) {
        let less = |rate: u64| Some(rate.saturating_sub(own));
        self.may_give.store(false, Ordering::Relaxed);
        // The closure gives a value always.
        let _ = self.places[from].served.rate.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.places[to].served.rate.fetch_add(own, Ordering::Relaxed);
    }
}

/// Whether a connection gets most of all answers.
fn is_alone(own: u64, served: u64) -> bool {
    3 * own > 2 * served
}

impl Idle {
    /// To be asked in each window as long as somebody wants to know.
    fn beside(&mut self, now: Duration, idle: impl FnOnce() -> Option<Duration>) -> f64 {
        let took = now.saturating_sub(self.since);
        if took >= IDLE_WINDOW {
            let idle = idle();
            self.processors = match (idle, self.then) {
                // Nobody wanted to know for a while.
                _ if took > 2 * IDLE_WINDOW => 0.0,
                (Some(idle), Some(then)) => idle.saturating_sub(then).as_secs_f64() / took.as_secs_f64(),
                _ => 0.0,
            };
            (self.since, self.then) = (now, idle);
        }
        self.processors
    }
}

impl Window {
    fn wants_help(&mut self, now: bool) -> bool {
        self.starved += (if now { 1.0 } else { 0.0 } - self.starved) / 8.0;
        self.starved > CROWDED
    }

    /// How many reactors shall work, of `all`, after `active` did.
    fn needed(&mut self, active: usize, all: usize, spent: f64, is_crowded: bool) -> usize {
        self.busy += (spent - self.busy) / 8.0;
        self.crowded += (if is_crowded { 1.0 } else { 0.0 } - self.crowded) / 8.0;
        let now = self.began;
        let since = now.saturating_sub(self.changed);
        let wanted = if active < all && self.crowded > CROWDED {
            self.try_after = if since < TRIED { self.try_after * 2 } else { TRY_AFTER };
            self.try_after = self.try_after.clamp(TRY_AFTER, TRY_AFTER_MAX);
            active + 1
        } else if active > 1 && (self.busy < SPARE * (active - 1) as f64 || since > self.try_after) {
            active - 1
        } else {
            return active;
        };
        self.changed = now;
        // What was seen before says nothing of the new number.
        self.crowded = 0.0;
        wanted
    }
}

impl Glimpse {
    /// Whether one thread seems to ask, after what seemed so before.
    fn note(&mut self, home: Option<usize>, answers: u64, now: Duration, before: bool) -> bool {
        match home {
            Some(home) => self.asked[home] += answers,
            None => self.elsewhere += answers,
        }
        if now.saturating_sub(self.began) < GLIMPSE {
            return before;
        }
        self.began = now;
        let total = self.asked.iter().sum::<u64>() + self.elsewhere;
        let most = self.asked.iter().max().copied().unwrap_or_default();
        let is_single = if most * 10 >= total * 9 { 1.0 } else { 0.0 };
        self.single += (is_single - self.single) / 16.0;
        self.asked.fill(0);
        self.elsewhere = 0;
        // What has been settled takes more to be upset.
        self.single > if before { 0.6 } else { 0.8 }
    }
}

#[cfg(test)]
mod tests;
