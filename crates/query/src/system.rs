//! What system tables and system functions can ask for.

use crate::database::Database;
use crate::error::SqlError;
use crate::notify::Pending;
use crate::session::sequences::SequenceUse;
use crate::settings::Settings;
use crate::syntax::Isolation;
use basalt_engine::privilege::{self, AclKey, ObjectClass};
use basalt_engine::{Catalog, Engine, Role};
use basalt_expr::EvalContext;
use basalt_types::TableDef;
use basalt_types::schema::ColumnDef;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The database and one session of it, as they are at the start of a statement.
#[derive(Clone)]
pub struct SystemContext {
    pub catalog: Arc<Catalog>,
    pub engine: Arc<Engine>,
    /// Sessions, counters, configuration.
    pub db: Arc<Database>,
    pub user: String,
    pub session_user: String,
    /// Who has logged in.
    pub login: Arc<Role>,
    pub database: String,
    /// Schemas searched for unqualified names, in order: those that exist, `"$user"` replaced.
    pub search_path: Vec<String>,
    /// The same, with the session's temporary schema where it is searched.
    pub lookup_path: Vec<String>,
    pub backend_pid: i32,
    pub client_addr: Option<SocketAddr>,
    pub settings: Settings,
    pub prepared: Vec<PreparedInfo>,
    /// Open cursors and portals.
    pub cursors: Vec<CursorInfo>,
    pub(crate) sequences: Arc<SequenceUse>,
    /// What `pg_notify` adds to.
    pub(crate) outgoing: Arc<Pending>,
    /// The transaction may not write.
    pub read_only: bool,
    /// Of the transaction, or of the next one.
    pub isolation: Isolation,
    /// What `set_config` asked for: the session does it when the statement has run.
    pub asked: Arc<Mutex<Vec<AskedSetting>>>,
    /// What functions have to say beside their results.
    pub notices: Arc<Mutex<Vec<SqlError>>>,
    /// How many statements of the session have failed: one that waits looks whether its own did.
    pub failed: Arc<AtomicU64>,
}

/// A setting that a running statement asked its session to change.
#[derive(Clone, Debug)]
pub struct AskedSetting {
    pub name: String,
    pub value: String,
    /// Until the end of the transaction.
    pub local: bool,
}

impl SystemContext {
    /// That of the session which evaluates; `None` outside of sessions.
    pub(crate) fn of(eval: &EvalContext) -> Option<&SystemContext> {
        eval.system.as_deref()?.downcast_ref()
    }

    /// Whether the user may read a column.
    pub(crate) fn may_read(&self, table: &TableDef, column: &ColumnDef) -> bool {
        let key = |class, column| AclKey { class, object: table.id, column };
        let keys = [key(ObjectClass::Table, 0), key(ObjectClass::Column, column.id.0 as i16)];
        let may = |key| self.catalog.privileges(&self.user, key, &table.owner).0 & privilege::SELECT != 0;
        keys.into_iter().any(may)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn ask_to_set(&self, name: &str, value: &str, local: bool) {
        self.asked.lock().push(AskedSetting { name: name.to_string(), value: value.to_string(), local });
    }
}

/// One row of `pg_prepared_statements`.
#[derive(Clone, Debug)]
pub struct PreparedInfo {
    pub name: String,
    pub sql: Arc<str>,
    /// Oids of its parameters' types.
    pub types: Vec<u32>,
    pub from_sql: bool,
    pub made_micros: i64,
}

/// One row of `pg_cursors`.
#[derive(Clone, Debug)]
pub struct CursorInfo {
    pub name: String,
    pub sql: Arc<str>,
    pub holds: bool,
    pub binary: bool,
    pub scrolls: bool,
    pub made_micros: i64,
}

/// One row of `pg_stat_activity`.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    pub pid: i32,
    pub user: String,
    pub database: String,
    pub application_name: String,
    pub client_addr: Option<SocketAddr>,
    /// Microseconds since 1970-01-01 UTC, as the two below.
    pub started_micros: i64,
    pub transaction_micros: Option<i64>,
    pub statement_micros: Option<i64>,
    /// `active`, `idle`, `idle in transaction`, `idle in transaction (aborted)`.
    pub state: &'static str,
    /// The running statement, or the last one.
    pub query: String,
    /// Queries of it that wait until their query group admits them.
    pub queries_queued: usize,
}
