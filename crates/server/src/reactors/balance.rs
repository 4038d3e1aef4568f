//! How much reactors and clients have to do, and where a connection were better served.
//!
//! An answer is work for the reactor that gives it and for the processor of the client that asked: about the same for
//! both. What each has to do is counted in windows of time.
//!
//! Where all who ask do so from one processor at a time, it is most likely one thread. Answers that cost it as much as
//! the server then come quickest from one reactor, which the system keeps on another processor: two would take turns
//! with the client.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const WINDOW: Duration = Duration::from_millis(50);
/// Who answers less than this, all together, leaves connections where they are.
const WORTHWHILE: Rate = Rate(5_000);
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
    began: Mutex<Duration>,
    glimpse: Mutex<Glimpse>,
    /// Whether one thread seems to ask for all.
    one_asks: AtomicBool,
}

#[derive(Default)]
struct Place {
    served: Counted,
    asked: Counted,
    /// Microseconds of processor time.
    spent: Counted,
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
        Balance { places, began: Mutex::default(), glimpse, one_asks: AtomicBool::new(false) }
    }

    /// Notes answers of a reactor, which took it so long, to a client whose processor is `home`'s.
    pub fn note(&self, at: usize, home: Option<usize>, answers: u32, spent: Duration, now: Duration) {
        let answers = u64::from(answers);
        let place = &self.places[at];
        place.served.now.fetch_add(answers, Ordering::Relaxed);
        place.spent.now.fetch_add(spent.as_micros() as u64, Ordering::Relaxed);
        if let Some(home) = home {
            self.places[home].asked.now.fetch_add(answers, Ordering::Relaxed);
        }
        // Who finds it locked is counted by the next one.
        if let Some(mut glimpse) = self.glimpse.try_lock() {
            let one_asks = glimpse.note(home, answers, now, self.one_asks.load(Ordering::Relaxed));
            self.one_asks.store(one_asks, Ordering::Relaxed);
        }
        let Some(mut began) = self.began.try_lock() else { return };
        let took = now.saturating_sub(*began);
        if took >= WINDOW {
            *began = now;
            let counts = self.places.iter().flat_map(|place| [&place.served, &place.asked, &place.spent]);
            counts.for_each(|count| count.turn(took));
        }
    }

    fn work(&self, at: usize) -> u64 {
        self.places[at].served.rate() + self.places[at].asked.rate()
    }

    /// Where a connection were better served that has `own` answers per second.
    pub fn better(&self, at: usize, home: Option<usize>, Rate(own): Rate) -> Option<usize> {
        let all = || 0..self.places.len();
        let served: u64 = self.places.iter().map(|place| place.served.rate()).sum();
        if Rate(served) < WORTHWHILE {
            return None;
        }
        let spent: u64 = self.places.iter().map(|place| place.spent.rate()).sum();
        let is_light = spent < served * LIGHT.as_micros() as u64;
        // A client that waits for each answer is best served where it is.
        if self.one_asks.load(Ordering::Relaxed) && is_light && 3 * own < served {
            return all().max_by_key(|place| self.places[*place].served.rate()).filter(|most| *most != at);
        }
        let here = self.work(at);
        // What is uneven by more than that is made even; less than that may become uneven for a client's sake.
        let even = served / self.places.len() as u64;
        let (least, most) = ((even / 4).max(2 * own), (even / 2).max(3 * own));
        let idle = all().min_by_key(|place| self.work(*place))?;
        if here > self.work(idle) + most {
            return Some(idle);
        }
        home.filter(|home| *home != at && self.work(*home) + 2 * own <= here + least)
    }

    /// A connection moves: who asks next shall know.
    pub fn moves(&self, from: usize, to: usize, Rate(own): Rate) {
        let less = |rate: u64| Some(rate.saturating_sub(own));
        // The closure gives a value always.
        let _ = self.places[from].served.rate.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.places[to].served.rate.fetch_add(own, Ordering::Relaxed);
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
