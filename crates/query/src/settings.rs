//! Settings of a session: what they are, which values they take, and when a value ends.
//!
//! A value comes from the last of: default, configuration file, `ALTER SYSTEM SET`, flag or environment,
//! startup packet, SET, SET LOCAL. SET and SET LOCAL end with a transaction that rolls back; a mark taken
//! at its start (or at a savepoint) is one `Arc`.

pub mod definitions;
pub mod value;

use crate::database::Database;
use crate::error::{Result, SqlError};
use crate::syntax::Isolation;
use basalt_expr::context::{ByteaOutput, DateFormat, DateOrder, IntervalStyle};
use basalt_expr::datetime::TimeZone;
use basalt_types::ObjectId;
use definitions::{Context, DEFINITIONS, Definition, Kind};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What `server_version` and `version()` tell: drivers look at the number.
pub const SERVER_VERSION: &str = concat!("15.0 (Basalt ", env!("CARGO_PKG_VERSION"), ")");

type Values = BTreeMap<String, String>;

#[derive(Clone, Default, Debug)]
struct Overrides {
    session: Values,
    /// Until the end of the transaction.
    local: Values,
}

/// Who the session is: not among the settings that RESET ALL goes back on, and no value that is set as others are
/// (`statement::set::set_user`).
const IDENTITY: [&str; 2] = ["session_authorization", "role"];
/// The ids of those roles, beside their names, which may become others'. No client can give a setting such a name.
const IDENTITY_IDS: [&str; 2] = ["session_authorization id", "role id"];

/// Of a name as [`Settings::name_of`] gives it.
pub(crate) fn is_identity(name: &str) -> bool {
    IDENTITY.contains(&name)
}

fn is_of_identity(key: &str) -> bool {
    is_identity(key) || IDENTITY_IDS.contains(&key)
}

/// Values as other parts of the crate use them.
#[derive(Clone, Debug)]
pub struct Effective {
    /// As set, `"$user"` included.
    pub search_path: Vec<String>,
    pub timezone: TimeZone,
    pub date_format: DateFormat,
    pub date_order: DateOrder,
    pub interval_style: IntervalStyle,
    pub bytea_output: ByteaOutput,
    pub extra_float_digits: i32,
    pub statement_timeout: Option<Duration>,
    pub lock_timeout: Option<Duration>,
    /// How long an advisory lock is waited for before circles through other locks are looked for; others are found at once.
    pub deadlock_timeout: Duration,
    pub idle_in_transaction_timeout: Option<Duration>,
    pub idle_session_timeout: Option<Duration>,
    pub synchronous_commit: bool,
    pub default_isolation: Isolation,
    pub default_read_only: bool,
    /// `Some(ZERO)`: every statement.
    pub log_min_duration: Option<Duration>,
    pub log_all_statements: bool,
    /// As the above; failures are kept however long they took.
    pub query_log_min_duration: Option<Duration>,
    pub query_log_entries: usize,
    pub query_group: String,
    /// Engines that the planner may use beside the fallback.
    pub column_engine: bool,
    pub row_engine: bool,
    /// Plans are not kept for later executions, as far as the column engine runs them.
    pub plans_anew: bool,
    /// `warning`, `notice` and so on, least severe that the client wants.
    pub client_min_messages: String,
}

/// All values of one moment; cheap to clone.
#[derive(Clone, Debug)]
pub struct Settings {
    base: Arc<Values>,
    /// Where the values of `base` come from, in the words of `pg_settings.source`.
    sources: Arc<BTreeMap<String, &'static str>>,
    overrides: Arc<Overrides>,
    effective: Arc<Effective>,
    /// What knows which query groups there are; nobody, where values are only read.
    db: Weak<Database>,
}

/// A place to go back to.
#[derive(Clone, Debug)]
pub struct SettingsMark(Arc<Overrides>);

/// One row of `pg_settings`.
#[derive(Clone, Debug)]
pub struct SettingRow {
    pub name: String,
    pub setting: String,
    pub unit: Option<&'static str>,
    pub category: &'static str,
    pub description: &'static str,
    pub context: &'static str,
    pub vartype: &'static str,
    pub source: &'static str,
    pub min: Option<String>,
    pub max: Option<String>,
    pub enum_values: Option<&'static [&'static str]>,
    pub boot: Option<String>,
    pub reset: String,
    /// As SHOW prints it.
    pub shown: String,
}

/// The name under which a value is kept: the definition's, or a custom `class.name` in lower case.
fn key_of(name: &str) -> Result<(String, Option<&'static Definition>)> {
    match definitions::find(name) {
        Some(definition) => Ok((definition.name.to_string(), Some(definition))),
        None if name.contains('.') && !name.to_ascii_lowercase().starts_with("basalt.") => {
            Ok((name.to_ascii_lowercase(), None))
        }
        None => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> SqlError {
    SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\""))
}

/// Checks a name and a value for `ALTER SYSTEM`, flags and files; gives the canonical pair.
pub fn check_system_value(name: &str, text: &str) -> Result<(String, String)> {
    let (key, definition) = key_of(name)?;
    match definition {
        Some(definition) if definition.context == Context::Internal || is_identity(&key) => {
            Err(SqlError::new("55P02", format!("parameter \"{key}\" cannot be changed")))
        }
        Some(definition) => Ok((key, value::canonical(definition, text)?)),
        None => Ok((key, text.to_string())),
    }
}

pub(crate) fn default_of(name: &str) -> Option<&'static str> {
    definitions::find(name).map(|definition| definition.default)
}

/// Whether a new value is used from the next start on.
pub fn takes_a_restart(name: &str) -> bool {
    definitions::find(name).is_some_and(|definition| definition.context == Context::Postmaster)
}

impl Settings {
    /// The values that every session starts from; layers later in the list win. Values that do not parse
    /// are left out: they were checked when they were given.
    pub fn new<'a>(layers: impl IntoIterator<Item = (&'static str, &'a String, &'a String)>) -> Settings {
        let (mut base, mut sources) = (Values::new(), BTreeMap::new());
        for (source, name, text) in layers {
            if let Ok((name, value)) = check_system_value(name, text) {
                sources.insert(name.clone(), source);
                base.insert(name, value);
            }
        }
        let effective = Arc::new(Effective::of(&|name| base.get(name).cloned()));
        Settings {
            effective,
            base: Arc::new(base),
            sources: Arc::new(sources),
            overrides: Arc::default(),
            db: Weak::new(),
        }
    }

    /// From now on names of query groups are checked.
    pub(crate) fn of_database(mut self, db: &Arc<Database>) -> Settings {
        self.db = Arc::downgrade(db);
        self
    }

    /// 22023 if it names a query group that does not exist.
    pub(crate) fn check_group(&self, key: &str, value: &str) -> Result<()> {
        match self.db.upgrade() {
            Some(db) if key == "basalt.query_group" => crate::query_groups::require(db.query_groups(), value),
            _ => Ok(()),
        }
    }

    /// Sets a value that RESET goes back to and that no client chose.
    pub fn set_base(&mut self, name: &str, value: &str) {
        self.set_base_from("override", name, value);
    }

    fn set_base_from(&mut self, source: &'static str, name: &str, value: &str) {
        Arc::make_mut(&mut self.base).insert(name.to_string(), value.to_string());
        Arc::make_mut(&mut self.sources).insert(name.to_string(), source);
        self.refresh();
    }

    /// A value from the startup packet: as SET, but RESET returns to it.
    pub fn set_startup(&mut self, name: &str, text: &str, superuser: bool) -> Result<()> {
        let (key, value) = self.check(name, text, superuser)?;
        self.set_base_from("client", &key, &value);
        Ok(())
    }

    pub fn effective(&self) -> &Arc<Effective> {
        &self.effective
    }

    fn get(&self, key: &str) -> Option<&str> {
        let overridden = self.overrides.local.get(key).or_else(|| self.overrides.session.get(key));
        let default = || definitions::find(key).map(|definition| definition.default);
        overridden.or_else(|| self.base.get(key)).map(String::as_str).or_else(default)
    }

    /// As SHOW prints it; 42704 without such a setting, 42501 for one that is not for everybody.
    pub fn show(&self, name: &str) -> Result<String> {
        let (key, definition) = key_of(name).map_err(|_| unknown(name))?;
        if !self.may_see(&key) {
            let message = format!("must be superuser or have privileges of pg_read_all_settings to examine \"{key}\"");
            return Err(SqlError::new("42501", message));
        }
        let value = self.get(&key).ok_or_else(|| unknown(name))?;
        Ok(definition.map_or_else(|| value.to_string(), |definition| value::shown(definition, value)))
    }

    fn may_see(&self, key: &str) -> bool {
        key != "data_directory" || self.get("is_superuser") == Some("on")
    }

    /// The name as it is defined, for SHOW's column.
    pub fn name_of(name: &str) -> String {
        key_of(name).map_or_else(|_| name.to_string(), |(key, _)| key)
    }

    /// 42501 for a setting that is the superusers'. One that is not known any more is anybody's.
    pub(crate) fn may_set(name: &str, superuser: bool) -> Result<()> {
        match definitions::find(name) {
            Some(definition) if definition.context == Context::Superuser && !superuser => {
                Err(SqlError::new("42501", format!("permission denied to set parameter \"{}\"", definition.name)))
            }
            _ => Ok(()),
        }
    }

    /// 0A000 for who the session is, where other values may be given.
    pub(crate) fn refuse_identity(key: &str) -> Result<()> {
        match is_identity(key) {
            false => Ok(()),
            true => Err(SqlError::not_supported(format!("parameter \"{key}\" cannot be set here"))
                .with_hint("Use SET ROLE or SET SESSION AUTHORIZATION.")),
        }
    }

    fn check(&self, name: &str, text: &str, superuser: bool) -> Result<(String, String)> {
        let (key, definition) = key_of(name)?;
        let Some(definition) = definition else { return Ok((key, text.to_string())) };
        Settings::refuse_identity(&key)?;
        Settings::may_set(&key, superuser)?;
        match definition.context {
            Context::User | Context::Superuser => {}
            Context::Sighup => {
                return Err(SqlError::new("55P02", format!("parameter \"{key}\" cannot be changed now"))
                    .with_hint("Use ALTER SYSTEM SET; sessions that begin later see it."));
            }
            Context::Postmaster => {
                return Err(SqlError::new(
                    "55P02",
                    format!("parameter \"{key}\" cannot be changed without restarting the server"),
                )
                .with_hint("Use ALTER SYSTEM SET and restart, or set it when starting."));
            }
            Context::Internal => {
                return Err(SqlError::new("55P02", format!("parameter \"{key}\" cannot be changed")));
            }
        }
        if let Kind::DateStyle = definition.kind {
            // What the value does not say stays.
            let before = (self.effective.date_format, self.effective.date_order);
            return Ok((key, value::canonical_date_style(definition, text, before)?));
        }
        let value = value::canonical(definition, text)?;
        self.check_group(&key, &value)?;
        Ok((key, value))
    }

    /// SET, or SET LOCAL.
    pub fn set(&mut self, name: &str, text: &str, local: bool, superuser: bool) -> Result<()> {
        let (key, value) = self.check(name, text, superuser)?;
        let overrides = Arc::make_mut(&mut self.overrides);
        if local {
            overrides.local.insert(key, value);
        } else {
            overrides.local.remove(&key);
            overrides.session.insert(key, value);
        }
        self.refresh();
        Ok(())
    }

    /// The items of `SET name TO a, b` as one value.
    pub fn join_items(name: &str, items: &[String]) -> Result<String> {
        match (definitions::find(name).map(|definition| definition.kind), items) {
            (Some(Kind::Names), items) => {
                let quoted: Vec<String> =
                    items.iter().map(|item| crate::session::names::quote_identifier(item)).collect();
                Ok(quoted.join(", "))
            }
            (_, [item]) => Ok(item.clone()),
            (Some(Kind::DateStyle | Kind::QueryGroups), items) => Ok(items.join(", ")),
            _ => Err(SqlError::new("22023", format!("SET {name} takes only one argument"))),
        }
    }

    /// A value that nobody may give directly (who the session is), with the life of SET or SET LOCAL. `None` ends it.
    pub(crate) fn set_unchecked(&mut self, key: &str, value: Option<&str>, local: bool) {
        let overrides = Arc::make_mut(&mut self.overrides);
        let value = value.map(str::to_string);
        match (local, value) {
            (true, value) => {
                overrides.local.insert(key.to_string(), value.unwrap_or_default());
            }
            (false, value) => {
                overrides.local.remove(key);
                match value {
                    Some(value) => overrides.session.insert(key.to_string(), value),
                    None => overrides.session.remove(key),
                };
            }
        }
        self.refresh();
    }

    /// Who the session shall be from now on; `None` ends it. Nobody's id is 0.
    pub(crate) fn set_identity(&mut self, key: &str, role: Option<(&str, ObjectId)>, local: bool) {
        self.set_unchecked(key, role.map(|(name, _)| name), local);
        let id = role.map(|(_, id)| id.0.to_string());
        self.set_unchecked(&format!("{key} id"), id.as_deref(), local);
    }

    /// What [`Settings::set_identity`] gave.
    pub(crate) fn identity(&self, key: &str) -> Option<(&str, ObjectId)> {
        let id_key = format!("{key} id");
        let value = |key: &str| self.overrides.local.get(key).or_else(|| self.overrides.session.get(key));
        let id = value(&id_key)?.parse().ok().filter(|id| *id != 0)?;
        Some((value(key)?, ObjectId(id)))
    }

    /// A value that comes with a role or a database, which SET and the startup packet go before.
    pub(crate) fn set_of_role(&mut self, source: &'static str, name: &str, text: &str) -> Result<()> {
        let (key, value) = self.check(name, text, true)?;
        self.set_base_from(source, &key, &value);
        Ok(())
    }

    /// RESET, or SET … TO DEFAULT.
    pub fn reset(&mut self, name: &str, local: bool, superuser: bool) -> Result<()> {
        let (key, definition) = key_of(name)?;
        if definition.is_none() && self.get(&key).is_some() && !self.base.contains_key(&key) {
            // A custom setting that was given once stays, without a value.
            Arc::make_mut(&mut self.base).insert(key.clone(), String::new());
        }
        let reset = self.base.get(&key).cloned().or_else(|| definition.map(|found| found.default.to_string()));
        if let (Some(definition), Some(reset)) = (definition, &reset)
            && definition.context != Context::User
        {
            self.check(name, reset, superuser)?;
        }
        let overrides = Arc::make_mut(&mut self.overrides);
        match (local, reset) {
            (true, Some(reset)) => {
                overrides.local.insert(key, reset);
            }
            _ => {
                overrides.local.remove(&key);
                overrides.session.remove(&key);
            }
        }
        self.refresh();
        Ok(())
    }

    /// RESET ALL, which leaves it at who the session is.
    pub fn reset_all(&mut self) {
        let is_kept = |key: &String| is_of_identity(key);
        let overrides = Arc::make_mut(&mut self.overrides);
        overrides.session.retain(|key, _| is_kept(key));
        overrides.local.retain(|key, _| is_kept(key));
        self.refresh();
    }

    pub fn mark(&self) -> SettingsMark {
        SettingsMark(self.overrides.clone())
    }

    /// Rollback. Whether values have changed.
    pub fn restore(&mut self, mark: SettingsMark) -> bool {
        let changes = !Arc::ptr_eq(&self.overrides, &mark.0);
        if changes {
            self.overrides = mark.0;
            self.refresh();
        }
        changes
    }

    /// Commit: SET LOCAL ends. Whether there was any.
    pub fn end_local(&mut self) -> bool {
        let changes = !self.overrides.local.is_empty();
        if changes {
            let overrides = Arc::make_mut(&mut self.overrides);
            let ended = std::mem::take(&mut overrides.local);
            let custom = ended.into_keys().filter(|key| definitions::find(key).is_none() && !is_of_identity(key));
            let custom: Vec<String> = custom.filter(|key| !self.overrides.session.contains_key(key)).collect();
            if !custom.is_empty() {
                // A custom setting that was given once stays, without a value.
                let base = Arc::make_mut(&mut self.base);
                for key in custom {
                    base.entry(key).or_default();
                }
            }
            self.refresh();
        }
        changes
    }

    fn refresh(&mut self) {
        self.effective = Arc::new(Effective::of(&|name| self.get(name).map(str::to_string)));
    }

    /// Settings that ParameterStatus reports.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        let reported = DEFINITIONS.iter().filter(|definition| definition.reported);
        reported
            .map(|definition| (definition.name, self.get(definition.name).unwrap_or_default().to_string()))
            .collect()
    }

    /// Everything, by name.
    pub fn rows(&self) -> Vec<SettingRow> {
        let mut rows: Vec<SettingRow> =
            DEFINITIONS.iter().filter(|found| self.may_see(found.name)).map(|found| self.row(found)).collect();
        let custom = self.overrides.session.iter().chain(&self.overrides.local).chain(self.base.iter());
        let custom = custom.filter(|(name, _)| definitions::find(name).is_none() && !is_of_identity(name));
        let custom: BTreeMap<&String, &String> = custom.collect::<Vec<_>>().into_iter().rev().collect();
        for (name, setting) in custom {
            rows.push(SettingRow {
                name: name.clone(),
                setting: setting.clone(),
                unit: None,
                category: "Customized Options",
                description: "",
                context: "user",
                vartype: "string",
                source: self.source_of(name),
                min: None,
                max: None,
                enum_values: None,
                boot: None,
                reset: self.base.get(name).cloned().unwrap_or_default(),
                shown: setting.clone(),
            });
        }
        rows
    }

    fn source_of(&self, key: &str) -> &'static str {
        match self.overrides.session.contains_key(key) || self.overrides.local.contains_key(key) {
            true => "session",
            false => self.sources.get(key).copied().unwrap_or("default"),
        }
    }

    fn row(&self, definition: &'static Definition) -> SettingRow {
        let setting = self.get(definition.name).unwrap_or_default().to_string();
        let reset = self.base.get(definition.name).map_or(definition.default, String::as_str).to_string();
        let (vartype, min, max, enum_values) = match definition.kind {
            Kind::Bool => ("bool", None, None, None),
            Kind::Int { min, max, .. } => ("integer", Some(min.to_string()), Some(max.to_string()), None),
            Kind::Real { min, max } => ("real", Some(min.to_string()), Some(max.to_string()), None),
            Kind::Enum(words) => ("enum", None, None, Some(words)),
            _ => ("string", None, None, None),
        };
        let key = definition.name;
        SettingRow {
            name: key.to_string(),
            shown: value::shown(definition, &setting),
            setting,
            unit: value::unit_of(definition),
            category: definition.category,
            description: definition.description,
            context: definition.context.name(),
            vartype,
            source: self.source_of(key),
            min,
            max,
            enum_values,
            boot: Some(definition.default.to_string()),
            reset,
        }
    }
}

impl Effective {
    fn of(get: &dyn Fn(&str) -> Option<String>) -> Effective {
        let text = |name: &str| {
            let default = || definitions::find(name).map(|definition| definition.default.to_string());
            get(name).or_else(default).unwrap_or_default()
        };
        let number = |name: &str| text(name).parse::<i64>().unwrap_or(0);
        let timeout = |name: &str| match number(name) {
            ms if ms > 0 => Some(Duration::from_millis(ms as u64)),
            _ => None,
        };
        let at_least = |name: &str| match number(name) {
            ms if ms >= 0 => Some(Duration::from_millis(ms as u64)),
            _ => None,
        };
        let query_log_entries = usize::try_from(number("basalt.query_log_entries")).unwrap_or(0);
        let dates = value::date_style(&text("DateStyle"), (DateFormat::Iso, DateOrder::Mdy));
        let (date_format, date_order) = dates.unwrap_or_default();
        Effective {
            search_path: basalt_types::names::names_of(&text("search_path")).unwrap_or_default(),
            timezone: TimeZone::parse(&text("TimeZone")).unwrap_or(TimeZone::UTC),
            date_format,
            date_order,
            interval_style: match text("IntervalStyle").as_str() {
                "postgres_verbose" => IntervalStyle::PostgresVerbose,
                "sql_standard" => IntervalStyle::SqlStandard,
                "iso_8601" => IntervalStyle::Iso8601,
                _ => IntervalStyle::Postgres,
            },
            bytea_output: if text("bytea_output") == "escape" { ByteaOutput::Escape } else { ByteaOutput::Hex },
            extra_float_digits: number("extra_float_digits") as i32,
            statement_timeout: timeout("statement_timeout"),
            lock_timeout: timeout("lock_timeout"),
            deadlock_timeout: timeout("deadlock_timeout").unwrap_or_default(),
            idle_in_transaction_timeout: timeout("idle_in_transaction_session_timeout"),
            idle_session_timeout: timeout("idle_session_timeout"),
            synchronous_commit: text("synchronous_commit") != "off",
            default_isolation: Isolation::named(&text("default_transaction_isolation"))
                .unwrap_or(Isolation::ReadCommitted),
            default_read_only: text("default_transaction_read_only") == "on",
            log_min_duration: at_least("log_min_duration_statement"),
            log_all_statements: text("log_statement") == "all",
            query_log_min_duration: at_least("basalt.query_log_min_duration").filter(|_| query_log_entries > 0),
            query_log_entries,
            query_group: text("basalt.query_group"),
            column_engine: text("basalt.enable_column_engine") == "on",
            row_engine: text("basalt.enable_row_engine") == "on",
            plans_anew: text("plan_cache_mode") == "force_custom_plan",
            client_min_messages: text("client_min_messages"),
        }
    }
}

#[cfg(test)]
mod tests;
