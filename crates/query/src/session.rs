//! One connection's state and verbs, without any wire format.
//!
//! The server calls the methods in the order of the client's messages. Every method that may wait is
//! async and may be dropped at any await: dropping the session rolls back.
//!
//! A statement's life: [`Session::statement_begins`] (clock, cancel flag, deadline), `dispatch` (one file
//! per verb in `statement`), then `statement_done` or `statement_failed`. A statement that returns rows is
//! done when its stream ends.

mod at_once;
mod block;
mod catalog_names;
pub(crate) mod constraints;
mod context;
mod dispatch;
mod extended;
mod inline;
pub mod interrupt;
pub mod names;
mod offload;
pub mod outcome;
pub(crate) mod params;
mod parsed;
mod portals;
pub(crate) mod prepared;
mod running;
pub(crate) mod sequences;
mod simple;
mod surroundings;
pub(crate) mod temp;

pub use crate::syntax::Parsed;
pub use block::Scope;
pub(crate) use dispatch::locks_of;
pub use inline::{AtOnceQuery, Ended};
pub use outcome::{Columns, CopyIn, CopyOut, Outcome, ResultColumn, RowStream};
pub use simple::SimpleStatement;

use crate::database::{Database, SessionEntry};
use crate::error::{Result, SqlError};
use crate::notify::{Arrival, Pending};
use crate::plans::Known;
use crate::row::Scratch;
use crate::settings::{Settings, is_identity};
use crate::statement::set;
use crate::syntax::SetValue;
use crate::system::{AskedSetting, SessionInfo};
use basalt_engine::RollingSnapshot;
use basalt_engine::privilege::{self, AclKey, ObjectClass};
use basalt_expr::EvalContext;
use basalt_types::Version;
use block::Block;
use interrupt::{Deadline, Interrupt};
use parking_lot::Mutex;
use portals::Portals;
use prepared::Prepared;
use running::RunningStatement;
use sequences::SequenceUse;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use surroundings::Around;

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

/// Of a statement's text, what is told of it at most.
const TOLD_BYTES_MAX: usize = 8192;
/// Notices kept until the server takes them.
const NOTICES_MAX: usize = 1_000;

pub struct Session {
    pub(crate) db: Arc<Database>,
    pid: i32,
    secret: i32,
    /// `current_user`: the session's user unless SET ROLE changed it.
    pub(crate) user: String,
    pub(crate) session_user: String,
    pub(crate) superuser: bool,
    /// Who logged in.
    pub(crate) login: Arc<basalt_engine::Role>,
    /// Who has logged in, the session's role and the current one, as they were looked up last: those that are there.
    roles: Vec<Arc<basalt_engine::Role>>,
    /// The catalog in which they were looked up last.
    followed: Option<Arc<basalt_engine::Catalog>>,
    /// How often it was found out who the session is.
    identity: u64,
    around: Mutex<Around>,
    /// Whether a statement has asked for the moment ([`EvalContext::asked_moment`]).
    asked_moment: Arc<AtomicBool>,
    pub(crate) database: Arc<basalt_engine::Database>,
    client_addr: Option<SocketAddr>,
    pub(crate) settings: Settings,
    /// What ParameterStatus last told, and when it was looked.
    reported: Vec<(&'static str, String)>,
    reported_of: Arc<crate::settings::Effective>,
    pub(crate) block: Block,
    pub(crate) statements: HashMap<String, Arc<Prepared>, ahash::RandomState>,
    pub(crate) portals: Portals,
    pub(crate) notices: Vec<SqlError>,
    /// What binding statements found worth a warning.
    pub(crate) bind_warnings: crate::bind::Warnings,
    /// The greatest version that this session has met.
    pub(crate) version: Version,
    /// The greatest version that an error rests on which its client has not been told yet.
    pub(crate) answers: Version,
    pub(crate) interrupt: Arc<Interrupt>,
    pub(crate) deadline: Deadline,
    /// The statement reads at a snapshot of its transaction.
    pub(crate) reads: bool,
    pub(crate) info: Arc<Mutex<SessionInfo>>,
    /// What `set_config` asked for in the running statement.
    pub(crate) asked: Arc<Mutex<Vec<AskedSetting>>>,
    /// What functions of the running statement have to say.
    pub(crate) told: Arc<Mutex<Vec<SqlError>>>,
    /// How many statements have failed.
    pub(crate) failed: Arc<std::sync::atomic::AtomicU64>,
    /// What `setseed` started.
    pub(crate) generator: Arc<std::sync::Mutex<Option<basalt_expr::random::Generator>>>,
    pub(crate) sequences: Arc<SequenceUse>,
    /// What the transaction says when it commits.
    pub(crate) outgoing: Arc<Pending>,
    /// Told when a notification comes.
    pub(crate) arrival: Arc<Arrival>,
    /// `statement_timestamp()`.
    pub(crate) statement_micros: i64,
    running: Option<RunningStatement>,
    /// For rows that are read outside of transactions.
    snapshot: RollingSnapshot,
    scratch: Scratch,
    /// The statement has just been tried by the row engine.
    pub(crate) took_too_much: bool,
    /// For texts whose literals are taken out; the plans of those that were run last, by the texts' hashes.
    text: Vec<u8>,
    text_hasher: ahash::RandomState,
    recent: Vec<Option<Arc<Known>>>,
    /// Of unnamed statements, likewise.
    parsed: Vec<Option<parsed::Parsed>>,
}

impl Session {
    /// 3D000 without such a database, 28000 without such a role, 53300 beyond the connection limit.
    pub fn open(db: &Arc<Database>, params: StartupParams) -> Result<Session> {
        let catalog = db.engine().catalog();
        let role = catalog.role_named(&params.user).filter(|role| role.login);
        let Some(role) = role.cloned() else {
            let message = match catalog.role_named(&params.user) {
                Some(_) => format!("role \"{}\" is not permitted to log in", params.user),
                None => format!("role \"{}\" does not exist", params.user),
            };
            return Err(SqlError::fatal("28000", message));
        };
        let name = if params.database.is_empty() { &params.user } else { &params.database };
        let Some(database) = catalog.database_named(name).cloned() else {
            return Err(SqlError::fatal("3D000", format!("database \"{name}\" does not exist")));
        };
        let key = AclKey::of(ObjectClass::Database, database.id);
        if catalog.privileges(&role.name, key, &database.owner).0 & privilege::CONNECT == 0 {
            let message = format!("permission denied for database \"{}\"", database.name);
            return Err(SqlError::fatal("42501", message).with_detail("User does not have CONNECT privilege."));
        }
        let mut settings = db.initial_settings().of_database(db);
        crate::statement::role::settings_of(&catalog, role.id, database.id, &mut settings);
        settings.set_base("is_superuser", if role.superuser { "on" } else { "off" });
        settings.set_base("session_authorization", &role.name);
        let fatal = |error: SqlError| SqlError { severity: crate::error::Severity::Fatal, ..error };
        let (identity, options): (Vec<_>, Vec<_>) =
            params.options.iter().partition(|(name, _)| is_identity(&Settings::name_of(name)));
        for (name, value) in options {
            settings.set_startup(name, value, role.superuser).map_err(fatal)?;
        }
        let of_role = db.sessions().iter().filter(|other| other.user == role.name).count();
        let limit = usize::try_from(role.connections_max).unwrap_or(usize::MAX);
        if of_role >= limit && !role.superuser {
            return Err(SqlError::fatal("53300", format!("too many connections for role \"{}\"", role.name)));
        }
        let started_micros = db.os().clock.unix_micros();
        let info = Arc::new(Mutex::new(SessionInfo {
            pid: 0,
            user: role.name.clone(),
            database: database.name.clone(),
            application_name: settings.show("application_name")?,
            client_addr: params.client_addr,
            started_micros,
            transaction_micros: None,
            statement_micros: None,
            state: "idle",
            query: String::new(),
            queries_queued: 0,
        }));
        let interrupt = Arc::<Interrupt>::default();
        let secret = db.os().random.next_u64() as i32;
        let pid = db.enter(role.superuser, |pid| {
            info.lock().pid = pid;
            SessionEntry { interrupt: interrupt.clone(), secret, info: info.clone() }
        })?;
        let mut session = Session {
            db: db.clone(),
            pid,
            secret,
            user: role.name.clone(),
            session_user: role.name.clone(),
            superuser: role.superuser,
            roles: vec![role.clone(); 3],
            followed: None,
            identity: 0,
            around: Mutex::default(),
            asked_moment: Arc::default(),
            login: role,
            database,
            client_addr: params.client_addr,
            reported: settings.reported(),
            reported_of: settings.effective().clone(),
            settings,
            block: Block::default(),
            statements: HashMap::default(),
            portals: Portals::default(),
            notices: Vec::new(),
            bind_warnings: Arc::default(),
            version: Version::ZERO,
            answers: Version::ZERO,
            interrupt,
            deadline: Deadline::default(),
            reads: false,
            info,
            asked: Arc::default(),
            told: Arc::default(),
            failed: Arc::default(),
            generator: Arc::default(),
            sequences: Arc::default(),
            outgoing: Arc::default(),
            arrival: Arc::default(),
            statement_micros: started_micros,
            running: None,
            snapshot: RollingSnapshot::new(db.engine()),
            scratch: Scratch::default(),
            took_too_much: false,
            text: Vec::new(),
            text_hasher: ahash::RandomState::new(),
            recent: Vec::new(),
            parsed: Vec::new(),
        };
        for (name, value) in identity {
            let value = SetValue::Items(vec![value.clone()]);
            set::set(&mut session, name, &value, false).map_err(fatal)?;
        }
        Ok(session)
    }

    pub fn database(&self) -> &Arc<Database> {
        &self.db
    }

    pub(crate) fn login(&self) -> &basalt_engine::Role {
        &self.login
    }

    /// Process id and secret, for CancelRequest.
    pub fn backend_key(&self) -> (i32, i32) {
        (self.pid, self.secret)
    }

    /// Waits until somebody ends this session (`pg_terminate_backend`); gives what its client is told. Whoever
    /// serves the session then drops it.
    pub fn terminated(&self) -> impl Future<Output = SqlError> + Send + use<> {
        let interrupt = self.interrupt.clone();
        async move { interrupt.terminated().await }
    }

    /// What ParameterStatus reports after login.
    pub fn parameter_status(&self) -> Vec<(&'static str, String)> {
        self.settings.reported()
    }

    /// Reported settings that changed since the last call.
    pub fn take_parameter_changes(&mut self) -> Vec<(String, String)> {
        if Arc::ptr_eq(&self.reported_of, self.settings.effective()) {
            return Vec::new();
        }
        self.reported_of = self.settings.effective().clone();
        let now = self.settings.reported();
        let changed = now.iter().zip(&self.reported).filter(|(now, before)| now != before);
        let changes: Vec<_> = changed.map(|((name, value), _)| (name.to_string(), value.clone())).collect();
        self.reported = now;
        if let Some((_, name)) = changes.iter().find(|(name, _)| name == "application_name") {
            self.info.lock().application_name = name.clone();
        }
        changes
    }

    pub fn take_notices(&mut self) -> Vec<SqlError> {
        let mut warnings = std::mem::take(&mut *self.bind_warnings.lock());
        // A statement may be bound more than once.
        warnings.dedup_by(|a, b| a.message == b.message);
        warnings.into_iter().for_each(|warning| self.notice(warning));
        std::mem::take(&mut self.notices)
    }

    pub(crate) fn notice(&mut self, notice: SqlError) {
        use crate::error::Severity;
        let least = match self.settings.effective().client_min_messages.as_str() {
            "error" | "fatal" | "panic" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Info,
        };
        if self.notices.len() < NOTICES_MAX && notice.severity >= least {
            self.notices.push(notice);
        }
    }

    /// Whether garbage collection has waited for all that the statement has read in its transaction so far (72000).
    pub(crate) fn check_age(&self) -> Result<()> {
        match &self.block.txn {
            Some(txn) if self.reads => Ok(txn.check_age()?),
            _ => Ok(()),
        }
    }

    /// Ends the implicit transaction: commits it, or rolls it back after an error. Send CommandComplete of
    /// the last statement only after it succeeded.
    pub async fn finish_simple(&mut self) -> Result<()> {
        self.end_implicit().await.inspect_err(|error| self.commit_failed(error))
    }

    /// Waits until no power cut undoes what the errors rest on that the client is to be told now (a key that is taken, a
    /// row that has changed).
    pub async fn settle_answers(&mut self) {
        let answers = std::mem::take(&mut self.answers);
        if answers > Version::ZERO
            && self.settings.effective().synchronous_commit
            && let Err(error) = self.db.engine().wait_published(answers).await
        {
            // The log has failed: the client hears of that next.
            tracing::warn!(%error, "an error is told that rests on a commit which is not durable");
        }
    }

    /// How long the client may now be silent, and what it is told after that
    /// (`idle_session_timeout`, `idle_in_transaction_session_timeout`).
    pub fn idle_timeout(&self) -> Option<IdleLimit> {
        let effective = self.settings.effective();
        let (after, sqlstate, message) = match self.block.scope {
            Scope::None => {
                (effective.idle_session_timeout?, "57P05", "terminating connection due to idle-session timeout")
            }
            // Its Sync is still to come: such a client is not idle.
            Scope::Implicit => return None,
            Scope::Explicit => (
                effective.idle_in_transaction_timeout?,
                "25P03",
                "terminating connection due to idle-in-transaction timeout",
            ),
        };
        Some(IdleLimit { after, error: SqlError::fatal(sqlstate, message) })
    }

    /// What the text of results depends on: DateStyle, TimeZone, `bytea_output` and their kin.
    pub fn formats(&self) -> Arc<EvalContext> {
        self.eval_context(Vec::new(), &self.db.engine().catalog())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.failed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.undo(None);
        self.db.advisory().release_since(self.pid, 0);
        self.db.advisory().release_session(self.pid);
        self.db.notifications().leave(&self.speaker());
        self.drop_temp_schema();
        self.db.leave(self.pid);
    }
}

pub(crate) fn no_portal(name: &str) -> SqlError {
    SqlError::new("34000", format!("portal \"{name}\" does not exist"))
}

/// 55000 for a portal that has run, or has failed.
pub(crate) fn spent_portal(name: &str) -> SqlError {
    SqlError::new("55000", format!("portal \"{name}\" cannot be run"))
}

#[cfg(test)]
mod tests;
