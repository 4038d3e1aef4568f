//! The latest statements and what they took, in memory: `basalt.query_log`.
//!
//! A ring, so that it never grows and a start begins with an empty one. Short statements are not kept
//! (`basalt.query_log_min_duration`): for them a comparison is all that it costs.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::Duration;

/// Of a statement's text.
pub const TEXT_BYTES_MAX: usize = 1024;

/// A statement that has ended.
#[derive(Clone, Debug)]
pub struct LoggedStatement {
    pub pid: i32,
    /// Who logged in, or whom that made the session's user.
    pub user: String,
    pub database: String,
    /// Microseconds since 1970-01-01 UTC.
    pub started_micros: i64,
    pub took: Duration,
    /// Of this, until it was known what to run.
    pub planning: Duration,
    /// What ran it; `None`: it is resumed, or ended before that was known.
    pub engine: Option<&'static str>,
    /// Given or changed.
    pub rows: Option<u64>,
    /// Of segments, as they are encoded.
    pub bytes_read: u64,
    /// Written to temporary files by the column engine.
    pub bytes_spilled: u64,
    /// The most that it held at once of the queries' memory.
    pub memory_bytes_max: u64,
    pub sqlstate: Option<&'static str>,
    /// The first [`TEXT_BYTES_MAX`] bytes of it.
    pub query: Box<str>,
}

#[derive(Default)]
pub struct QueryLog {
    statements: Mutex<VecDeque<LoggedStatement>>,
}

impl QueryLog {
    /// Takes a statement in; the oldest beyond `statements_max` go.
    pub fn push(&self, statement: LoggedStatement, statements_max: usize) {
        let mut statements = self.statements.lock();
        statements.push_back(statement);
        let surplus = statements.len().saturating_sub(statements_max);
        statements.drain(..surplus);
    }

    /// The oldest first.
    pub fn list(&self) -> Vec<LoggedStatement> {
        self.statements.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(pid: i32) -> LoggedStatement {
        LoggedStatement {
            pid,
            user: "ann".into(),
            database: "basalt".into(),
            started_micros: 0,
            took: Duration::ZERO,
            planning: Duration::ZERO,
            engine: None,
            rows: None,
            bytes_read: 0,
            bytes_spilled: 0,
            memory_bytes_max: 0,
            sqlstate: None,
            query: "select 1".into(),
        }
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let log = QueryLog::default();
        let pids = |log: &QueryLog| log.list().iter().map(|statement| statement.pid).collect::<Vec<_>>();
        (0..5).for_each(|pid| log.push(statement(pid), 3));
        assert_eq!(pids(&log), [2, 3, 4]);
        log.push(statement(5), 1);
        assert_eq!(pids(&log), [5]);
        log.push(statement(6), 0);
        assert!(pids(&log).is_empty());
    }
}
