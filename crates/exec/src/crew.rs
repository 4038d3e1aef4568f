//! Jobs of one moment that several threads share: whoever is free takes the next one.
//!
//! Who has the jobs does them, too, and waits for nobody who has not begun: helpers may come late, or not at all.

use crate::error::Result;
use crate::stop::Stop;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Threads that have nothing else to do.
pub trait Helpers: Send + Sync {
    /// Has some of them call this, each when its turn comes.
    fn call(&self, help: Arc<dyn Fn() + Send + Sync>);
}

/// Nobody.
pub struct Nobody;

impl Helpers for Nobody {
    fn call(&self, _: Arc<dyn Fn() + Send + Sync>) {}
}

pub(crate) type Job<T> = Box<dyn FnOnce() -> Result<T> + Send>;

struct Jobs<T> {
    state: Mutex<State<T>>,
    /// The last one has ended.
    ended: Condvar,
    stop: Stop,
}

struct State<T> {
    open: std::iter::Enumerate<std::vec::IntoIter<Job<T>>>,
    results: Vec<Option<Result<T>>>,
    /// Jobs that have not ended.
    left: usize,
}

/// Does all jobs, with whoever helps. Their results in their order, or the first error.
pub(crate) fn all<T: Send + 'static>(helpers: &dyn Helpers, stop: &Stop, jobs: Vec<Job<T>>) -> Result<Vec<T>> {
    let left = jobs.len();
    let results = std::iter::repeat_with(|| None).take(left).collect();
    let state = Mutex::new(State { open: jobs.into_iter().enumerate(), results, left });
    let jobs = Arc::new(Jobs { state, ended: Condvar::new(), stop: stop.clone() });
    if left > 1 {
        let shared = jobs.clone();
        helpers.call(Arc::new(move || shared.run()));
    }
    jobs.run();
    let mut state = jobs.state();
    while state.left > 0 {
        state = jobs.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    let results = std::mem::take(&mut state.results);
    results.into_iter().map(|result| result.expect("no job of a query panics")).collect()
}

impl<T> Jobs<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does jobs until none is open.
    fn run(&self) {
        loop {
            let next = self.state().open.next();
            let Some((at, job)) = next else { return };
            let mut ended = Ended { jobs: self, at, result: None };
            ended.result = Some(self.stop.watched(job));
        }
    }
}

/// Tells that a job has ended, even if by a panic.
struct Ended<'j, T> {
    jobs: &'j Jobs<T>,
    at: usize,
    result: Option<Result<T>>,
}

impl<T> Drop for Ended<'_, T> {
    fn drop(&mut self) {
        let mut state = self.jobs.state();
        // Whoever waited may have ended by a panic, too, and taken them.
        if let Some(place) = state.results.get_mut(self.at) {
            *place = self.result.take();
        }
        state.left -= 1;
        if state.left == 0 {
            self.jobs.ended.notify_all();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Error;
    use std::thread;
    use std::time::Duration;

    /// So many threads for each call.
    pub struct Threads(pub usize);

    impl Helpers for Threads {
        fn call(&self, help: Arc<dyn Fn() + Send + Sync>) {
            for _ in 0..self.0 {
                let help = help.clone();
                thread::spawn(move || help());
            }
        }
    }

    fn jobs(count: usize) -> Vec<Job<usize>> {
        let job = |at: usize| -> Job<usize> {
            Box::new(move || {
                thread::sleep(Duration::from_micros((at * 7 % 5) as u64 * 100));
                Ok(at)
            })
        };
        (0..count).map(job).collect()
    }

    #[test]
    fn results_come_in_the_order_of_jobs() {
        for count in [0, 1, 2, 40] {
            for helpers in [&Nobody as &dyn Helpers, &Threads(1), &Threads(3)] {
                let found = all(helpers, &Stop::default(), jobs(count)).unwrap();
                assert_eq!(found, (0..count).collect::<Vec<usize>>());
            }
        }
    }

    #[test]
    fn errors_and_panics_of_helpers_are_those_of_whoever_asks() {
        let mut failing = jobs(20);
        failing[7] = Box::new(|| Err(Error::Stopped));
        assert!(matches!(all(&Threads(2), &Stop::default(), failing), Err(Error::Stopped)));
        let panicking: Vec<Job<()>> = (0..8).map(|_| -> Job<()> { Box::new(|| panic!("a job")) }).collect();
        let asked = thread::spawn(move || all(&Threads(2), &Stop::default(), panicking));
        assert!(asked.join().is_err(), "it does not wait for ever");
    }
}
