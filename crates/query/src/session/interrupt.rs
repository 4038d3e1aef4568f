//! How a running statement, or its session, is ended from outside: cancel requests, timeouts, `pg_terminate_backend`.

use crate::error::{Result, SqlError};
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const CANCELED: u8 = 2;

/// Shared between a session and whoever may end its statement or itself.
#[derive(Default)]
pub struct Interrupt {
    state: AtomicU8,
    terminated: AtomicBool,
    /// What the client is told, if not that an administrator did it.
    reason: Mutex<Option<SqlError>>,
    notify: Notify,
}

impl Interrupt {
    /// A statement starts: requests that came before are forgotten, as in PostgreSQL.
    pub fn start(&self) {
        self.state.store(RUNNING, Ordering::SeqCst);
    }

    /// The same where none runs; whether it does.
    pub fn start_if_idle(&self) -> bool {
        self.state.compare_exchange(IDLE, RUNNING, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub fn stop(&self) {
        self.state.store(IDLE, Ordering::SeqCst);
    }

    /// False if no statement runs.
    pub fn cancel(&self) -> bool {
        let was_running = self.state.compare_exchange(RUNNING, CANCELED, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        self.notify.notify_waiters();
        was_running
    }

    /// For good: the statement ends, and whoever serves the session hangs up ([`Interrupt::terminated`]).
    pub fn terminate(&self) {
        self.terminated.store(true, Ordering::SeqCst);
        self.notify.notify_waiters();
    }

    /// The same with what the client is told.
    pub fn terminate_because(&self, reason: SqlError) {
        self.reason.lock().get_or_insert(reason);
        self.terminate();
    }

    #[cfg(test)]
    pub fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::SeqCst)
    }

    /// Waits until the session is to end; gives what its client is told.
    pub async fn terminated(&self) -> SqlError {
        loop {
            let notified = self.notify.notified();
            if self.terminated.load(Ordering::SeqCst) {
                return self.told();
            }
            notified.await;
        }
    }

    /// What has ended the statement already. Work that is always ready meets it here.
    fn look(&self, deadline: Deadline) -> Result<()> {
        if self.terminated.load(Ordering::SeqCst) {
            return Err(self.told());
        }
        if self.state.load(Ordering::SeqCst) == CANCELED {
            return Err(SqlError::canceled());
        }
        match deadline.0.is_some_and(|at| Instant::now() >= at) {
            true => Err(timed_out()),
            false => Ok(()),
        }
    }

    fn told(&self) -> SqlError {
        let administrator = || SqlError::fatal("57P01", "terminating connection due to administrator command");
        self.reason.lock().clone().unwrap_or_else(administrator)
    }

    async fn canceled(&self) -> SqlError {
        loop {
            let notified = self.notify.notified();
            if self.state.load(Ordering::SeqCst) == CANCELED {
                return SqlError::canceled();
            }
            notified.await;
        }
    }
}

/// When a statement must have ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    pub fn after(timeout: Option<Duration>) -> Deadline {
        Deadline(timeout.map(|timeout| Instant::now() + timeout))
    }
}

/// Drives `work` until it ends, the session ends (57P01), it is canceled (57014), or the deadline passes (57014).
///
/// Most work has ended when it was polled once: then there is nobody to wait for.
pub async fn guard<T>(interrupt: &Interrupt, deadline: Deadline, work: impl Future<Output = Result<T>>) -> Result<T> {
    interrupt.look(deadline)?;
    let mut work = std::pin::pin!(work);
    if let Poll::Ready(result) = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
        return result;
    }
    let timeout = async {
        match deadline.0 {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        error = interrupt.terminated() => Err(error),
        error = interrupt.canceled() => Err(error),
        () = timeout => Err(timed_out()),
        result = work => result,
    }
}

fn timed_out() -> SqlError {
    SqlError::new("57014", "canceling statement due to statement timeout")
}

/// Lets loops over many rows be interrupted and share their thread: await it once per row.
#[derive(Default)]
pub struct Pace {
    rows: u32,
}

impl Pace {
    const ROWS: u32 = 128;

    pub async fn step(&mut self) {
        self.rows += 1;
        if self.rows >= Pace::ROWS {
            self.rows = 0;
            tokio::task::yield_now().await;
        }
    }
}
