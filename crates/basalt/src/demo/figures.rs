//! What is known of the running demonstration: written by the stream and the watchers, read by the view.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Freshness is told of so many last measurements: some ten seconds.
const FRESHNESS_MAX: usize = 64;
/// Rates are told of so many last seconds.
const RATES_MAX: usize = 300;

pub struct Shared {
    figures: Mutex<Figures>,
    stop: AtomicBool,
    paused: AtomicBool,
}

#[derive(Clone, Default, Debug)]
pub struct Figures {
    pub rows_in: u64,
    pub transactions: u64,
    /// Rows of each past second.
    pub rates: VecDeque<u64>,
    rows_at_last_second: u64,
    /// From the generation of a row until another connection's query sees it.
    pub freshness: VecDeque<Duration>,
    /// The greatest key that is visible.
    pub key: i64,
    /// How often the source has begun again.
    pub round: u64,
    pub storage: Storage,
    pub answers: Vec<Answer>,
    /// Why the demonstration cannot go on.
    pub failed: Option<String>,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct Storage {
    pub hot_rows: u64,
    pub hot_bytes: u64,
    pub cold_rows: u64,
    pub files: u64,
    pub file_bytes: u64,
}

/// The last answer to one of the scene's queries.
#[derive(Clone, Default, Debug)]
pub struct Answer {
    pub latency: Option<Duration>,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub error: Option<String>,
}

impl Shared {
    pub fn new(queries: usize) -> Shared {
        let figures = Figures { answers: vec![Answer::default(); queries], ..Figures::default() };
        Shared { figures: Mutex::new(figures), stop: AtomicBool::new(false), paused: AtomicBool::new(false) }
    }

    pub fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    pub fn toggle_pause(&self) {
        self.paused.fetch_xor(true, Ordering::Relaxed);
    }

    /// Ends the demonstration; the first reason counts.
    pub fn fail(&self, error: &anyhow::Error) {
        let mut figures = self.figures();
        if !self.stopped() {
            figures.failed.get_or_insert_with(|| format!("{error:#}"));
        }
        drop(figures);
        self.stop();
    }
}

impl Figures {
    /// To be called each second.
    pub fn end_of_second(&mut self) {
        push_bounded(&mut self.rates, self.rows_in - self.rows_at_last_second, RATES_MAX);
        self.rows_at_last_second = self.rows_in;
    }

    pub fn rate(&self) -> u64 {
        self.rates.back().copied().unwrap_or(0)
    }

    pub fn add_freshness(&mut self, freshness: Duration) {
        push_bounded(&mut self.freshness, freshness, FRESHNESS_MAX);
    }

    /// Median and worst of the last measurements.
    pub fn freshness(&self) -> Option<(Duration, Duration)> {
        let mut sorted: Vec<Duration> = self.freshness.iter().copied().collect();
        sorted.sort_unstable();
        Some((*sorted.get(sorted.len() / 2)?, *sorted.last()?))
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, value: T, len_max: usize) {
    if queue.len() == len_max {
        queue.pop_front();
    }
    queue.push_back(value);
}

/// `1,234,567`
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `12.3 MB`
pub fn bytes(number: u64) -> String {
    let (mut value, mut unit) = (number as f64, "B");
    for next in ["kB", "MB", "GB", "TB"] {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    if unit == "B" { format!("{number} B") } else { format!("{value:.1} {unit}") }
}

/// `0.42 ms`, `12.3 ms`, `1.23 s`
pub fn latency(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1000.0;
    match ms {
        ..10.0 => format!("{ms:.2} ms"),
        ..1000.0 => format!("{ms:.1} ms"),
        _ => format!("{:.2} s", ms / 1000.0),
    }
}

#[cfg(test)]
mod tests;
