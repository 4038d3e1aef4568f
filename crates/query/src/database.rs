//! What all sessions share: the engine, settings, the runtime that queries run on, and who is connected.

use crate::advisory::AdvisoryLocks;
use crate::column::Observed;
use crate::error::{Result, SqlError};
use crate::notify::Notifications;
use crate::pgcatalog;
use crate::plans::PlanCache;
use crate::plans::queries::KnownQueries;
use crate::query_groups::QueryGroups;
use crate::query_log::QueryLog;
use crate::run::{QueryRuntime, RuntimeConfig};
use crate::session::interrupt::Interrupt;
use crate::settings::{Settings, takes_a_restart};
use crate::system::SessionInfo;
use basalt_engine::{Catalog, Engine, Role};
use basalt_expr::functions::Registry;
use basalt_sched::Os;
use basalt_sched::admission;
use basalt_sched::fair::{GroupReport, Scheduler};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a database can be told at start.
#[derive(Clone, Debug)]
pub struct DatabaseConfig {
    /// For operators that spill; made if missing.
    pub temp_dir: PathBuf,
    /// What running queries may hold together.
    pub query_memory_bytes_max: u64,
    /// What they may spill to disk together; `None` is half of what is free at start.
    pub temp_bytes_max: Option<u64>,
    /// Threads of the query runtime.
    pub query_workers: usize,
    /// How many queries of a query group run at once, and how many wait for that.
    pub admission: admission::Limits,
    pub connections_max: usize,
    /// Of these, kept for superusers.
    pub superuser_reserved_connections: usize,
    /// Values of settings from flags, which go before those of the environment.
    pub settings: Vec<(String, String)>,
    /// From environment variables, which go before the catalog's (`ALTER SYSTEM SET`).
    pub environment_settings: Vec<(String, String)>,
    /// Values from the configuration file, which the catalog's go before.
    pub file_settings: Vec<(String, String)>,
}

impl DatabaseConfig {
    pub fn new(temp_dir: impl Into<PathBuf>) -> DatabaseConfig {
        DatabaseConfig {
            temp_dir: temp_dir.into(),
            query_memory_bytes_max: 2 << 30,
            temp_bytes_max: None,
            query_workers: 2,
            admission: admission::Limits { active_max: 100, queued_max: 1000 },
            connections_max: 500,
            superuser_reserved_connections: 3,
            settings: Vec::new(),
            environment_settings: Vec::new(),
            file_settings: Vec::new(),
        }
    }
}

/// Counters since start, for metrics.
#[derive(Default, Debug)]
pub struct Stats {
    pub statements: AtomicU64,
    pub errors: AtomicU64,
    pub commits: AtomicU64,
    pub rollbacks: AtomicU64,
    pub rows_returned: AtomicU64,
    pub rows_written: AtomicU64,
    pub sessions_opened: AtomicU64,
    pub cancels: AtomicU64,
    pub deadlocks: AtomicU64,
    pub serialization_failures: AtomicU64,
    /// Locks that were not to be had, or not in time.
    pub locks_refused: AtomicU64,
    /// By request or by a timeout.
    pub statements_canceled: AtomicU64,
    /// Statements that met damaged data (XX001).
    pub corruption_errors: AtomicU64,
    /// Statements that met a broken invariant of Basalt's own (XX000).
    pub internal_errors: AtomicU64,
    /// Statements that ran by the plan that is known of their text but for its literals.
    pub plan_cache_hits: AtomicU64,
    /// Time from a statement's start to its end, rows sent included.
    pub statement_micros: AtomicU64,
}

impl Stats {
    /// Name, meaning and value of each counter.
    pub(crate) fn list(&self) -> [(&'static str, &'static str, u64); 16] {
        [
            ("statements", "Statements that ended, well or not.", &self.statements),
            ("errors", "Statements and commits that failed.", &self.errors),
            (
                "commits",
                "Transactions that committed: single statements, too, unless they touch no table.",
                &self.commits,
            ),
            ("rollbacks", "Transactions that were rolled back, those of VACUUM included.", &self.rollbacks),
            ("rows_returned", "Rows that clients were given.", &self.rows_returned),
            ("rows_written", "Rows that statements inserted, changed or deleted.", &self.rows_written),
            ("sessions_opened", "Sessions that were opened: one for each request of HTTP, too.", &self.sessions_opened),
            ("cancels", "Cancel requests of the protocol that met a running statement.", &self.cancels),
            ("deadlocks", "Statements that were refused for a deadlock (40P01).", &self.deadlocks),
            (
                "serialization_failures",
                "Statements and commits that have to be tried again (40001).",
                &self.serialization_failures,
            ),
            ("locks_refused", "Statements that did not get a lock, or not in time (55P03).", &self.locks_refused),
            (
                "statements_canceled",
                "Statements that were canceled by somebody or by a timeout (57014).",
                &self.statements_canceled,
            ),
            ("corruption_errors", "Statements that met damaged data (XX001).", &self.corruption_errors),
            (
                "internal_errors",
                "Statements that met a broken invariant of the server's own (XX000).",
                &self.internal_errors,
            ),
            (
                "plan_cache_hits",
                "Statements that ran by the plan that is known of their text but for its literals.",
                &self.plan_cache_hits,
            ),
            (
                "statement_micros",
                "Microseconds that statements took, their rows sent included.",
                &self.statement_micros,
            ),
        ]
        .map(|(name, description, counter)| (name, description, counter.load(Ordering::Relaxed)))
    }

    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// What others may see of a session, and how they reach it.
pub(crate) struct SessionEntry {
    pub interrupt: Arc<Interrupt>,
    pub secret: i32,
    pub info: Arc<Mutex<SessionInfo>>,
}

#[derive(Default)]
struct Sessions {
    by_pid: BTreeMap<i32, SessionEntry>,
    last_pid: i32,
}

pub struct Database {
    engine: Arc<Engine>,
    os: Os,
    config: DatabaseConfig,
    runtime: Arc<QueryRuntime>,
    registry: Arc<Registry>,
    plans: PlanCache,
    queries: KnownQueries,
    observed: Arc<Observed>,
    stats: Stats,
    advisory: AdvisoryLocks,
    notifications: Notifications,
    query_log: QueryLog,
    query_groups: QueryGroups,
    /// The latest damage that a statement met.
    damage: Mutex<Option<String>>,
    sessions: Mutex<Sessions>,
    /// What `ALTER SYSTEM` had set by then.
    settings_at_start: BTreeMap<String, String>,
    started_micros: i64,
}

const QUERY_GROUPS: &str = "basalt.query_groups";

/// Values as all that was given has them; `altered` is what `ALTER SYSTEM` gave.
fn settings_of<'a>(config: &'a DatabaseConfig, altered: impl Iterator<Item = (&'a String, &'a String)>) -> Settings {
    let of = |source, list: &'a [(String, String)]| list.iter().map(move |(name, value)| (source, name, value));
    Settings::new(
        of("configuration file", &config.file_settings)
            .chain(altered.map(|(name, value)| ("configuration file", name, value)))
            .chain(of("environment variable", &config.environment_settings))
            .chain(of("command line", &config.settings)),
    )
}

impl Database {
    pub(crate) fn advisory(&self) -> &AdvisoryLocks {
        &self.advisory
    }

    pub(crate) fn observed(&self) -> &Arc<Observed> {
        &self.observed
    }

    pub(crate) fn plans(&self) -> &PlanCache {
        &self.plans
    }

    pub(crate) fn queries(&self) -> &KnownQueries {
        &self.queries
    }

    pub(crate) fn notifications(&self) -> &Notifications {
        &self.notifications
    }

    pub(crate) fn query_log(&self) -> &QueryLog {
        &self.query_log
    }

    /// Starts the query runtime over an open engine. 58030 if its threads or its directory cannot be made.
    pub fn new(engine: Arc<Engine>, os: Os, config: DatabaseConfig) -> Result<Arc<Database>> {
        // The log and the files are on that disk, too: no query may fill it.
        let free = || config.temp_dir.ancestors().find_map(|dir| os.fs.free_bytes(dir).ok());
        let temp_bytes_max = config.temp_bytes_max.or_else(|| Some(free()? / 2)).unwrap_or(u64::MAX);
        let limits = RuntimeConfig {
            temp_bytes_max,
            workers: config.query_workers,
            memory_bytes_max: config.query_memory_bytes_max,
            temp_dir: config.temp_dir.clone(),
        };
        let runtime = QueryRuntime::new(limits, os.fs.clone())?;
        let registry = pgcatalog::registry().clone();
        crate::statement::index_values::install(&engine, &registry);
        let started_micros = os.clock.unix_micros();
        crate::session::temp::drop_left_behind(&engine)?;
        let settings_at_start = engine.catalog().settings.clone();
        let altered = settings_at_start.get(QUERY_GROUPS);
        let settings = settings_of(&config, settings_at_start.iter());
        let query_groups =
            QueryGroups::new(config.query_workers, config.admission, &settings.show(QUERY_GROUPS)?, altered);
        Ok(Arc::new(Database {
            engine,
            os,
            config,
            runtime,
            registry,
            plans: PlanCache::default(),
            queries: KnownQueries::default(),
            observed: Arc::default(),
            advisory: AdvisoryLocks::default(),
            notifications: Notifications::default(),
            query_log: QueryLog::default(),
            query_groups,
            stats: Stats::default(),
            damage: Mutex::default(),
            sessions: Mutex::default(),
            settings_at_start,
            started_micros,
        }))
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Microseconds since 1970-01-01 UTC.
    pub fn started_micros(&self) -> i64 {
        self.started_micros
    }

    pub fn os(&self) -> &Os {
        &self.os
    }

    pub fn config(&self) -> &DatabaseConfig {
        &self.config
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The latest damage that a statement met since start; the message names the file. It does not heal: somebody
    /// must look.
    pub fn damage(&self) -> Option<String> {
        self.damage.lock().clone()
    }

    /// An error that a client was told. Those that no client can be blamed for are logged: the operator must hear
    /// of them, whatever becomes of the client.
    pub(crate) fn note_error(&self, error: &SqlError, statement: &str) {
        Stats::add(&self.stats.errors, 1);
        let what = match error.sqlstate {
            "XX001" => {
                Stats::add(&self.stats.corruption_errors, 1);
                *self.damage.lock() = Some(error.message.clone());
                "a statement met damaged data"
            }
            "XX000" => {
                Stats::add(&self.stats.internal_errors, 1);
                "a statement met an internal error"
            }
            "40P01" => return Stats::add(&self.stats.deadlocks, 1),
            "40001" => return Stats::add(&self.stats.serialization_failures, 1),
            "55P03" => return Stats::add(&self.stats.locks_refused, 1),
            "57014" => return Stats::add(&self.stats.statements_canceled, 1),
            _ => return,
        };
        let statement = &statement[..statement.floor_char_boundary(1024)];
        tracing::error!(sqlstate = error.sqlstate, error = %error.message, statement, "{what}");
    }

    pub fn runtime(&self) -> &Arc<QueryRuntime> {
        &self.runtime
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What a new session starts from.
    pub(crate) fn initial_settings(&self) -> Settings {
        let catalog = self.engine.catalog();
        let now = catalog.settings.iter().filter(|(name, _)| !takes_a_restart(name));
        let then = self.settings_at_start.iter().filter(|(name, _)| takes_a_restart(name));
        let mut settings = settings_of(&self.config, now.chain(then));
        let data_dir = &self.engine.config().data_dir;
        let data_dir = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.clone());
        settings.set_base("data_directory", &data_dir.display().to_string());
        settings
    }

    /// The slots of the query runtime, in groups as they are set now.
    pub(crate) fn query_groups(&self) -> &Arc<Scheduler> {
        let catalog = self.engine.catalog();
        let setting = || self.initial_settings().show(QUERY_GROUPS).unwrap_or_default();
        self.query_groups.current(catalog.settings.get(QUERY_GROUPS), setting)
    }

    /// What the query groups had, by name.
    pub fn query_group_list(&self) -> Vec<GroupReport> {
        self.query_groups().report()
    }

    /// Whether `ALTER SYSTEM` gave the setting a value that the next start will use.
    pub(crate) fn is_pending(&self, catalog: &Catalog, name: &str) -> bool {
        let given = self.config.settings.iter().chain(&self.config.environment_settings);
        let below = self.config.file_settings.iter().rfind(|(given, _)| given == name).map(|(_, value)| value.as_str());
        let below = below.or_else(|| crate::settings::default_of(name));
        let value = |set: &BTreeMap<String, String>| set.get(name).map(String::as_str).or(below).map(str::to_string);
        takes_a_restart(name)
            && value(&catalog.settings) != value(&self.settings_at_start)
            && !given.into_iter().any(|(given, _)| given == name)
    }

    /// Ends the running statement of a session with 57014 if the secret is right; otherwise nothing.
    pub fn cancel(&self, pid: i32, secret: i32) {
        let sessions = self.sessions.lock();
        if let Some(entry) = sessions.by_pid.get(&pid)
            && entry.secret == secret
            && entry.interrupt.cancel()
        {
            Stats::add(&self.stats.cancels, 1);
        }
    }

    /// How to end a session or its statement, and who logged in there.
    pub(crate) fn backend(&self, pid: i32) -> Option<(Arc<Interrupt>, String)> {
        let sessions = self.sessions.lock();
        sessions.by_pid.get(&pid).map(|entry| (entry.interrupt.clone(), entry.info.lock().user.clone()))
    }

    pub fn role(&self, name: &str) -> Option<Role> {
        self.engine.catalog().role_named(name).map(|role| (**role).clone())
    }

    /// Sessions open now.
    pub fn session_count(&self) -> usize {
        self.sessions.lock().by_pid.len()
    }

    /// Who is connected and what they do, by process id.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.sessions.lock().by_pid.values().map(|entry| entry.info.lock().clone()).collect()
    }

    /// Nothing if the session is gone.
    pub(crate) fn change_info(&self, pid: i32, change: impl FnOnce(&mut SessionInfo)) {
        let info = self.sessions.lock().by_pid.get(&pid).map(|entry| entry.info.clone());
        if let Some(info) = info {
            change(&mut info.lock());
        }
    }

    /// Takes a session in and draws its process id. 53300 beyond the limit.
    pub(crate) fn enter(&self, superuser: bool, make: impl FnOnce(i32) -> SessionEntry) -> Result<i32> {
        let mut sessions = self.sessions.lock();
        let reserved = if superuser { 0 } else { self.config.superuser_reserved_connections };
        if sessions.by_pid.len() + reserved >= self.config.connections_max {
            let message = match superuser {
                true => "sorry, too many clients already",
                false => "remaining connection slots are reserved for non-replication superuser connections",
            };
            return Err(SqlError::fatal("53300", message)
                .with_hint(format!("max_connections is {}.", self.config.connections_max)));
        }
        let mut pid = sessions.last_pid;
        loop {
            pid = if pid == i32::MAX { 1 } else { pid + 1 };
            if !sessions.by_pid.contains_key(&pid) {
                break;
            }
        }
        sessions.last_pid = pid;
        sessions.by_pid.insert(pid, make(pid));
        Stats::add(&self.stats.sessions_opened, 1);
        Ok(pid)
    }

    pub(crate) fn leave(&self, pid: i32) {
        self.sessions.lock().by_pid.remove(&pid);
    }
}
