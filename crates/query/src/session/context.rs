//! What a statement of this session is bound and run with.

use super::Session;
use super::catalog_names::SessionNames;
use crate::bind::BindContext;
use crate::error::{Result, SqlError};
use crate::run::RunContext;
use crate::system::{PreparedInfo, SystemContext};
use basalt_engine::Catalog;
use basalt_expr::EvalContext;
use basalt_types::Datum;
use std::sync::Arc;

impl Session {
    /// Schemas that exist, in search order, `"$user"` replaced. The schema of system views is never
    /// anybody's own, although the superuser bears its name.
    pub(crate) fn search_path(&self, catalog: &Catalog) -> Vec<String> {
        let names = &self.settings.effective().search_path;
        let own = (self.user != "basalt").then(|| self.user.clone());
        let named = names.iter().filter_map(|name| if name == "$user" { own.clone() } else { Some(name.clone()) });
        named.filter(|name| catalog.namespace_named(self.database.id, name).is_some()).collect()
    }

    /// Parameters, clock and formats of the current statement.
    pub(crate) fn eval_context(&self, params: Vec<Datum>, catalog: &Arc<Catalog>) -> Arc<EvalContext> {
        let effective = self.settings.effective();
        let (clock, random) = (self.db.os().clock.clone(), self.db.os().random.clone());
        let statement_micros = self.statement_micros;
        Arc::new(EvalContext {
            params,
            timezone: effective.timezone,
            now_micros: if self.block.now_micros == 0 { statement_micros } else { self.block.now_micros },
            statement_micros,
            clock: Arc::new(move || clock.unix_micros()),
            random: Arc::new(move |bytes| random.fill(bytes)),
            generator: self.generator.clone(),
            date_format: effective.date_format,
            date_order: effective.date_order,
            interval_style: effective.interval_style,
            bytea_output: effective.bytea_output,
            extra_float_digits: effective.extra_float_digits,
            names: Some(Arc::new(SessionNames {
                catalog: catalog.clone(),
                database: self.database.id,
                search_path: self.search_path(catalog),
            })),
            system: Some(self.system_context(catalog)),
        })
    }

    pub(crate) fn bind_context(&self, catalog: &Arc<Catalog>, sql: &Arc<str>, eval: &Arc<EvalContext>) -> BindContext {
        BindContext {
            catalog: catalog.clone(),
            database: self.database.id,
            search_path: self.search_path(catalog),
            registry: self.db.registry().clone(),
            eval: eval.clone(),
            sql: sql.clone(),
        }
    }

    pub(crate) fn system_context(&self, catalog: &Arc<Catalog>) -> Arc<SystemContext> {
        let prepared = self.statements.values().filter(|prepared| !prepared.name.is_empty());
        Arc::new(SystemContext {
            catalog: catalog.clone(),
            engine: self.db.engine().clone(),
            db: self.db.clone(),
            user: self.user.clone(),
            session_user: self.session_user.clone(),
            database: self.database.name.clone(),
            search_path: self.search_path(catalog),
            backend_pid: self.pid,
            client_addr: self.client_addr,
            settings: self.settings.clone(),
            prepared: prepared
                .map(|prepared| PreparedInfo { name: prepared.name.clone(), sql: prepared.sql.to_string() })
                .collect(),
            asked: self.asked.clone(),
        })
    }

    /// For running a plan in the current transaction.
    pub(crate) fn run_context(&mut self, eval: &Arc<EvalContext>) -> Result<RunContext> {
        let txn = self.txn()?;
        let (read, catalog) = (txn.read(), txn.catalog());
        Ok(RunContext::new(read, eval.clone(), self.system_context(&catalog)))
    }

    /// 42501 unless the session's user is a superuser.
    pub(crate) fn require_superuser(&self, message: &str) -> Result<()> {
        if self.superuser { Ok(()) } else { Err(SqlError::new("42501", message)) }
    }
}
