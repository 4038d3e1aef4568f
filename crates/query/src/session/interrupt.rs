//! How a running statement is ended from outside: cancel requests and timeouts.

use crate::error::{Result, SqlError};
use std::future::Future;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const CANCELED: u8 = 2;

/// Shared between a session and whoever may cancel its statement.
#[derive(Default)]
pub struct Interrupt {
    state: AtomicU8,
    notify: Notify,
}

impl Interrupt {
    /// A statement starts: requests that came before are forgotten, as in PostgreSQL.
    pub fn start(&self) {
        self.state.store(RUNNING, Ordering::SeqCst);
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

    pub fn is_canceled(&self) -> bool {
        self.state.load(Ordering::SeqCst) == CANCELED
    }

    async fn canceled(&self) {
        loop {
            let notified = self.notify.notified();
            if self.is_canceled() {
                return;
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

/// Drives `work` until it ends, is canceled (57014), or the deadline passes (57014).
pub async fn guard<T>(interrupt: &Interrupt, deadline: Deadline, work: impl Future<Output = Result<T>>) -> Result<T> {
    let timeout = async {
        match deadline.0 {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = interrupt.canceled() => Err(SqlError::canceled()),
        () = timeout => Err(SqlError::new("57014", "canceling statement due to statement timeout")),
        result = work => result,
    }
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
