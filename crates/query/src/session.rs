//! One connection's state and verbs, without any wire format.
//!
//! The server calls the methods in the order of the client's messages. Every method that may wait is
//! async and may be dropped at any await: the statement's changes then stay undone at the next
//! statement's start or at the end of the session.

pub mod outcome;

pub use outcome::{CopyIn, CopyOut, Outcome, ResultColumn, RowStream};

use crate::database::Database;
use crate::error::{Result, SqlError};
use basalt_expr::EvalContext;
use basalt_types::DataType;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What a client asks for when it connects.
#[derive(Clone, Debug, Default)]
pub struct StartupParams {
    pub user: String,
    pub database: String,
    /// Settings from the startup packet, `options` already split.
    pub options: Vec<(String, String)>,
    pub client_addr: Option<SocketAddr>,
}

/// ReadyForQuery's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionStatus {
    Idle,
    InTransaction,
    Failed,
}

/// A bound on a client's silence.
pub struct IdleLimit {
    pub after: Duration,
    /// FATAL: 57P05 or 25P03.
    pub error: SqlError,
}

/// One statement of a simple query.
pub struct Parsed {
    pub sql: String,
}

pub struct Session {
    db: Arc<Database>,
}

impl Session {
    /// 3D000 without such a database, 28000 without such a role, 53300 beyond the connection limit.
    pub fn open(db: &Arc<Database>, params: StartupParams) -> Result<Session> {
        let _ = params;
        Ok(Session { db: db.clone() })
    }

    pub fn database(&self) -> &Arc<Database> {
        &self.db
    }

    /// Process id and secret, for CancelRequest.
    pub fn backend_key(&self) -> (i32, i32) {
        (0, 0)
    }

    /// What ParameterStatus reports after login.
    pub fn parameter_status(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Reported settings that changed since the last call.
    pub fn take_parameter_changes(&mut self) -> Vec<(String, String)> {
        Vec::new()
    }

    pub fn take_notices(&mut self) -> Vec<SqlError> {
        Vec::new()
    }

    pub fn status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// Splits and parses a simple query. On a syntax error call [`Session::finish_simple`] too.
    pub fn parse_simple(&mut self, sql: &str) -> Result<Vec<Parsed>> {
        let _ = sql;
        Ok(Vec::new())
    }

    /// Runs one statement; several of one message form one implicit transaction. After an error skip the
    /// rest and call [`Session::finish_simple`].
    pub async fn run_simple(&mut self, statement: &Parsed) -> Result<Outcome> {
        let _ = statement;
        Ok(Outcome::Empty)
    }

    /// Ends the implicit transaction: commits it, or rolls it back after an error. Send CommandComplete of
    /// the last statement only after it succeeded.
    pub async fn finish_simple(&mut self) -> Result<()> {
        Ok(())
    }

    pub async fn prepare(&mut self, name: &str, sql: &str, param_oids: &[u32]) -> Result<()> {
        let _ = (name, sql, param_oids);
        Ok(())
    }

    /// Parameter types and result columns (`None`: no rows).
    pub fn describe_statement(&self, name: &str) -> Result<(Vec<DataType>, Option<Vec<ResultColumn>>)> {
        let _ = name;
        Ok((Vec::new(), None))
    }

    /// Formats: none (all text), one (for all), or one each.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        params: &[Option<&[u8]>],
        param_formats: &[i16],
        result_formats: &[i16],
    ) -> Result<()> {
        let _ = (portal, statement, params, param_formats, result_formats);
        Ok(())
    }

    pub fn describe_portal(&self, portal: &str) -> Result<Option<Vec<ResultColumn>>> {
        let _ = portal;
        Ok(None)
    }

    /// Runs a portal, or resumes it; `max_rows` 0 means all.
    pub async fn execute(&mut self, portal: &str, max_rows: usize) -> Result<Outcome> {
        let _ = (portal, max_rows);
        Ok(Outcome::Empty)
    }

    pub fn close_statement(&mut self, name: &str) {
        let _ = name;
    }

    pub fn close_portal(&mut self, name: &str) {
        let _ = name;
    }

    /// Ends an implicit transaction of the extended protocol: commits it, or rolls it back after an error.
    pub async fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    /// The server met an error of its own while it served this statement (text that is not UTF-8, a row too
    /// long for the wire): the transaction fails as if the statement had. Harmless after an error that came
    /// from here.
    pub fn fail(&mut self) {}

    /// How long the client may now be silent, and what it is told after that
    /// (`idle_session_timeout`, `idle_in_transaction_session_timeout`).
    pub fn idle_timeout(&self) -> Option<IdleLimit> {
        None
    }

    /// What the text of results depends on: DateStyle, TimeZone, `bytea_output` and their kin.
    pub fn formats(&self) -> Arc<EvalContext> {
        Arc::new(EvalContext::at(0))
    }

    /// Takes a CopyData message in; waits while the pipeline behind it is full.
    pub async fn copy_data(&mut self, copy: &mut CopyIn, bytes: Bytes) -> Result<()> {
        let _ = (copy, bytes);
        Ok(())
    }

    /// CopyDone: finishes, and returns the tag.
    pub async fn copy_done(&mut self, copy: CopyIn) -> Result<String> {
        let _ = copy;
        Ok("COPY 0".to_string())
    }

    /// CopyFail: undoes the copy and returns the error to report (57014).
    pub async fn copy_fail(&mut self, copy: CopyIn, message: &str) -> SqlError {
        let _ = copy;
        SqlError::new("57014", format!("COPY from stdin failed: {message}"))
    }
}
