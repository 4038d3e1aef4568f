//! What a statement of this session is bound and run with.

use super::Session;
use super::names::TEMP_PREFIX;
use crate::bind::BindContext;
use crate::error::{Result, SqlError};
use crate::run::RunContext;
use crate::system::{CursorInfo, PreparedInfo, SystemContext};
use basalt_engine::{Catalog, Role};
use basalt_expr::EvalContext;
use basalt_expr::context::LiteralStyle;
use basalt_types::{DataType, ObjectId};
use std::sync::Arc;

/// Who has logged in, the session's role, and the current one.
const ROLES: usize = 3;

impl Session {
    /// Schemas that exist, in search order, `"$user"` replaced. The schema of system views is never
    /// anybody's own, although the superuser bears its name.
    pub(crate) fn search_path(&self, catalog: &Catalog) -> Vec<String> {
        let names = &self.settings.effective().search_path;
        let own = (self.user != "basalt").then(|| self.user.clone());
        let named = names.iter().filter_map(|name| if name == "$user" { own.clone() } else { Some(name.clone()) });
        let temporary = self.temp_schema();
        let named = named.map(|name| if name == "pg_temp" { temporary.clone() } else { name });
        let others = |name: &String| !name.starts_with(TEMP_PREFIX) || *name == temporary;
        let found = |name: &String| match catalog.namespace_named(self.database.id, name) {
            Some(schema) => *name == temporary || self.may_use(catalog, schema),
            None => false,
        };
        named.filter(others).filter(found).collect()
    }

    /// The schemas that relations are looked for in: the session's temporary one comes first unless it is listed.
    pub(crate) fn lookup_path(&self, catalog: &Catalog) -> Vec<String> {
        let mut path = self.search_path(catalog);
        let temporary = self.temp_schema();
        if !path.contains(&temporary) && catalog.namespace_named(self.database.id, &temporary).is_some() {
            path.insert(0, temporary);
        }
        path
    }

    /// The catalog of the open transaction, or the committed one.
    pub(crate) fn catalog_now(&self) -> Arc<Catalog> {
        self.block.txn.as_ref().map_or_else(|| self.db.engine().catalog(), |txn| txn.catalog())
    }

    /// What literals are read by now.
    pub(crate) fn literal_style(&self) -> LiteralStyle {
        let settings = self.settings.effective();
        LiteralStyle {
            timezone: settings.timezone,
            date_order: settings.date_order,
            interval_style: settings.interval_style,
        }
    }

    /// Start of the transaction, and of the statement.
    pub(crate) fn moments(&self) -> (i64, i64) {
        let statement_micros = self.statement_micros;
        (if self.block.now_micros == 0 { statement_micros } else { self.block.now_micros }, statement_micros)
    }

    pub(crate) fn bind_context(&self, catalog: &Arc<Catalog>, sql: &Arc<str>, eval: &Arc<EvalContext>) -> BindContext {
        BindContext {
            catalog: catalog.clone(),
            database: self.database.id,
            search_path: self.surroundings(catalog).names.search_path.clone(),
            registry: self.db.registry().clone(),
            eval: eval.clone(),
            sql: sql.clone(),
            warnings: self.bind_warnings.clone(),
            needs: None,
            fields: None,
            current: None,
        }
    }

    /// For plans, which may read system tables.
    pub(crate) fn system_context(&self, catalog: &Arc<Catalog>) -> Arc<SystemContext> {
        let prepared = self.statements.values().filter(|prepared| !prepared.name.is_empty());
        let prepared = prepared.map(|prepared| PreparedInfo {
            name: prepared.name.clone(),
            sql: prepared.sql.clone(),
            types: prepared.types.iter().map(DataType::oid).collect(),
            from_sql: prepared.from_sql,
            made_micros: prepared.made_micros,
        });
        let cursors = self.portals.iter().map(|(name, portal)| CursorInfo {
            name: name.to_string(),
            sql: portal.prepared.sql.clone(),
            holds: portal.hold,
            binary: portal.cursor.as_ref().is_some_and(|cursor| cursor.binary),
            scrolls: portal.cursor.as_ref().is_some_and(|cursor| cursor.scrolls),
            made_micros: portal.made_micros,
        });
        let around = self.surroundings(catalog);
        Arc::new(SystemContext {
            prepared: prepared.collect(),
            cursors: cursors.collect(),
            ..SystemContext::clone(&around.system)
        })
    }

    /// For running a plan in the current transaction.
    pub(crate) fn run_context(&mut self, eval: &Arc<EvalContext>) -> Result<RunContext> {
        let txn = self.txn()?;
        let (read, catalog) = (txn.read(), txn.catalog());
        let system = self.system_context(&catalog);
        Ok(RunContext { stats: self.run_stats(), ..RunContext::new(read, eval.clone(), system) })
    }

    /// Who the session is, as its settings have it: they end with transactions as all settings do.
    pub(crate) fn refresh_identity(&mut self) {
        self.identify();
        self.settings.set_base("is_superuser", if self.superuser { "on" } else { "off" });
    }

    fn identify(&mut self) {
        self.identity += 1;
        let catalog = self.catalog_now();
        if let Some(login) = catalog.roles.get(&self.login.id) {
            self.login = login.clone();
        }
        // By its id, whatever its name is now. One that is dropped is nobody, whoever may have its name.
        let resolved = |(name, id): (&str, ObjectId)| match catalog.roles.get(&id) {
            Some(role) => (role.name.clone(), Some(role.clone())),
            None if catalog.role_named(name).is_some() => (format!("unknown (OID={})", id.0), None),
            None => (name.to_string(), None),
        };
        let given = |key: &str| self.settings.identity(key).map(resolved);
        let session = given("session_authorization").unwrap_or_else(|| resolved((&self.login.name, self.login.id)));
        let (user, role) = given("role").unwrap_or_else(|| session.clone());
        self.superuser = role.as_ref().is_some_and(|role| role.superuser);
        (self.session_user, self.user) = (session.0, user);
        self.roles = [Some(self.login.clone()), session.1, role].into_iter().flatten().collect();
    }

    /// Anybody may have changed, renamed or dropped the session's roles since its last statement.
    pub(super) fn follow_roles(&mut self) {
        let is_known = |catalog: &Arc<Catalog>| self.followed.as_ref().is_some_and(|known| Arc::ptr_eq(known, catalog));
        let follows = match self.block.txn.as_ref().filter(|txn| txn.edits_catalog()) {
            Some(txn) => is_known(&txn.catalog()),
            None => is_known(&self.db.engine().catalog_at_hand()),
        };
        if follows {
            return;
        }
        let catalog = self.catalog_now();
        let is_current = |role: &Arc<Role>| catalog.roles.get(&role.id).is_some_and(|now| Arc::ptr_eq(now, role));
        if self.roles.len() < ROLES || !self.roles.iter().all(is_current) {
            self.identify();
        }
        self.followed = Some(catalog);
    }

    /// 42501 unless the session's user is a superuser.
    pub(crate) fn require_superuser(&self, message: &str) -> Result<()> {
        if self.superuser { Ok(()) } else { Err(SqlError::new("42501", message)) }
    }

    /// 42501 unless the user's role has an attribute, or is a superuser.
    pub(crate) fn require_attribute(
        &self,
        catalog: &Catalog,
        has: impl FnOnce(&Role) -> bool,
        message: &str,
    ) -> Result<()> {
        match catalog.role_named(&self.user).is_some_and(|role| has(role)) {
            true => Ok(()),
            false => self.require_superuser(message),
        }
    }
}
