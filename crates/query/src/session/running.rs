//! The statement that a session runs: from its beginning to what becomes known of it at its end, in counters, the server's
//! log and `basalt.query_log`.

use super::interrupt::Deadline;
use super::{Outcome, Scope, Session, TOLD_BYTES_MAX};
use crate::database::Stats;
use crate::error::{Result, Severity, SqlError};
use crate::query_log::{LoggedStatement, TEXT_BYTES_MAX};
use crate::run::stats::RunStats;
use crate::statement::set;
use crate::syntax::Statement;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) struct RunningStatement {
    /// Monotonic.
    started: Duration,
    sql: Arc<str>,
    /// What runs it, as far as that goes without a plan.
    engine: Option<&'static str>,
    /// Given or changed so far.
    rows: Option<u64>,
    /// Binding took so long.
    binding: Duration,
    /// Of the plans that it runs, if there are any.
    stats: Option<Arc<RunStats>>,
}

/// What runs a statement that has no plan.
fn engine_of(statement: &Statement) -> Option<&'static str> {
    match statement {
        statement if statement.has_plan() => None,
        Statement::Define(_) => Some("ddl"),
        Statement::Copy(_) => Some("copy"),
        _ => Some("utility"),
    }
}

/// The number at the end of a command's tag.
fn rows_of_tag(tag: &str) -> Option<u64> {
    tag.rsplit(' ').next()?.parse().ok()
}

impl Session {
    pub(crate) fn statement_begins(&mut self, sql: &Arc<str>) {
        self.follow_roles();
        self.reads = false;
        let effective = self.settings.effective();
        self.interrupt.start();
        self.deadline = Deadline::after(effective.statement_timeout);
        self.statement_micros = self.db.os().clock.unix_micros();
        self.running = Some(RunningStatement {
            started: self.db.os().clock.monotonic(),
            sql: sql.clone(),
            engine: None,
            rows: None,
            binding: Duration::ZERO,
            stats: None,
        });
        let mut info = self.info.lock();
        info.state = "active";
        info.statement_micros = Some(self.statement_micros);
        info.query.clear();
        info.query.push_str(&sql[..sql.floor_char_boundary(1024)]);
    }

    /// What the plans of the running statement take.
    pub(crate) fn run_stats(&mut self) -> Arc<RunStats> {
        match &mut self.running {
            Some(running) => running.stats.get_or_insert_default().clone(),
            None => Arc::default(),
        }
    }

    pub(super) fn runs(&mut self, statement: &Statement) {
        if let Some(running) = &mut self.running {
            running.engine = engine_of(statement);
        }
    }

    /// It is bound and runs: on the row engine, unless another one says so in its plan's statistics.
    pub(super) fn runs_bound(&mut self) {
        if let Some(running) = &mut self.running {
            running.engine.get_or_insert("row");
        }
    }

    pub(super) fn took_binding(&mut self, since: Duration) {
        let now = self.db.os().clock.monotonic();
        if let Some(running) = &mut self.running {
            running.binding += now.saturating_sub(since);
        }
    }

    /// Rows that it has given or changed.
    pub(crate) fn note_rows(&mut self, rows: u64) {
        if let Some(running) = &mut self.running {
            running.rows = Some(rows);
        }
    }

    /// Settles a statement that has given its outcome; one with rows or data to come goes on.
    pub(super) fn note_end(&mut self, result: Result<Outcome>) -> Result<Outcome> {
        let result = result.and_then(|outcome| self.check_age().map(|()| outcome));
        match &result {
            Ok(Outcome::Empty) => self.statement_done(),
            Ok(Outcome::Command { tag }) => {
                rows_of_tag(tag).into_iter().for_each(|rows| self.note_rows(rows));
                self.statement_done();
            }
            Ok(_) => {}
            Err(error) => self.statement_failed(error),
        }
        result
    }

    pub(crate) fn statement_done(&mut self) {
        self.interrupt.stop();
        let told = std::mem::take(&mut *self.told.lock());
        told.into_iter().for_each(|notice| self.notice(notice));
        let all_asked = std::mem::take(&mut *self.asked.lock());
        for asked in all_asked {
            if let Err(error) = set::set_asked(self, asked) {
                self.notice(SqlError::notice(Severity::Warning, error.sqlstate, error.message));
            }
        }
        self.ended(None);
    }

    pub(crate) fn statement_failed(&mut self, error: &SqlError) {
        self.interrupt.stop();
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.forget_told();
        self.db.note_error(error, self.running.as_ref().map_or("", |running| &running.sql));
        self.fail_block();
        self.ended(Some(error));
    }

    /// What a statement has told and asked for does not count: it has failed, or begins again.
    pub(super) fn forget_told(&mut self) {
        self.told.lock().clear();
        self.asked.lock().clear();
    }

    fn ended(&mut self, error: Option<&SqlError>) {
        let Some(running) = self.running.take() else { return };
        Stats::add(&self.db.stats().statements, 1);
        let took = self.db.os().clock.monotonic().saturating_sub(running.started);
        Stats::add(&self.db.stats().statement_micros, took.as_micros() as u64);
        self.info.lock().state = match (self.block.scope, self.block.failed) {
            (Scope::Explicit, true) => "idle in transaction (aborted)",
            (Scope::Explicit, false) => "idle in transaction",
            _ => "idle",
        };
        let effective = self.settings.effective();
        if effective.query_log_min_duration.is_some_and(|limit| took >= limit || error.is_some()) {
            self.keep_in_query_log(&running, took, error);
        }
        let slow = effective.log_min_duration.is_some_and(|limit| took >= limit);
        if slow || effective.log_all_statements {
            tracing::info!(
                pid = self.pid,
                user = %self.user,
                database = %self.database.name,
                duration_ms = took.as_secs_f64() * 1e3,
                sqlstate = error.map(|error| error.sqlstate),
                statement = &running.sql[..running.sql.floor_char_boundary(TOLD_BYTES_MAX)],
                "statement"
            );
        }
    }

    fn keep_in_query_log(&self, running: &RunningStatement, took: Duration, error: Option<&SqlError>) {
        let stats = running.stats.as_deref();
        let sql = &running.sql;
        let statement = LoggedStatement {
            pid: self.pid,
            user: self.session_user.clone(),
            database: self.database.name.clone(),
            started_micros: self.statement_micros,
            took,
            planning: running.binding + stats.map_or(Duration::ZERO, RunStats::planning),
            engine: stats.and_then(RunStats::engine).or(running.engine),
            rows: running.rows,
            bytes_read: stats.map_or(0, RunStats::bytes_read),
            bytes_spilled: stats.map_or(0, RunStats::bytes_spilled),
            memory_bytes_max: stats.map_or(0, |stats| stats.held_bytes_max() as u64),
            sqlstate: error.map(|error| error.sqlstate),
            query: sql[..sql.floor_char_boundary(TEXT_BYTES_MAX)].into(),
        };
        self.db.query_log().push(statement, self.settings.effective().query_log_entries);
    }

    /// The server met an error of its own while it served this statement (text that is not UTF-8, a row too
    /// long for the wire): the transaction fails as if the statement had. Harmless after an error that came
    /// from here.
    pub fn fail(&mut self) {
        self.interrupt.stop();
        self.forget_told();
        let ended = self.running.take().is_some();
        Stats::add(&self.db.stats().statements, u64::from(ended));
        self.fail_block();
    }
}
