//! From a parsed statement to the file of its verb.

use super::Session;
use super::interrupt::guard;
use super::outcome::{Columns, Outcome, RowSource, RowStream};
use super::params::Given;
use super::prepared::{Bound, CachedPlan, Prepared};
use crate::bind::{self, BindContext, Needs, ParamTypes, RowSource as ModifySource, Write};
use crate::error::{Result, SqlError};
use crate::plan::Query;
use crate::row::{RowOut, RowPlan};
use crate::statement;
use crate::statement::at_once::AtOnce;
use crate::statement::rows::RowsBuilder;
use crate::syntax::{Statement, TransactionVerb, strength_name};
use basalt_engine::{Catalog, TableLock, WaitPolicy};
use basalt_expr::EvalContext;
use basalt_types::{DataType, Datum, ObjectId};
use parking_lot::Mutex;
use sqlparser::ast;
use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;

/// Times that a statement is bound again because the catalog changed while it waited for its locks.
const REBINDS_MAX: usize = 100;

impl Session {
    /// Runs a statement without parameters.
    pub(crate) async fn dispatch(&mut self, statement: &Statement, sql: &Arc<str>) -> Result<Outcome> {
        self.dispatch_given(statement, sql, Given::default()).await
    }

    async fn dispatch_given(&mut self, statement: &Statement, sql: &Arc<str>, given: Given) -> Result<Outcome> {
        self.runs(statement);
        if let Statement::Transaction(verb) = statement {
            return self.end_or_begin(verb).await;
        }
        self.refuse_if_failed()?;
        self.ensure_block();
        let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
        guard(&interrupt, deadline, pin!(self.dispatch_guarded(statement, sql, given))).await
    }

    async fn end_or_begin(&mut self, verb: &TransactionVerb) -> Result<Outcome> {
        let tag = self.run_transaction(verb).await?;
        Ok(Outcome::Command { tag: tag.to_string() })
    }

    async fn dispatch_guarded(&mut self, statement: &Statement, sql: &Arc<str>, given: Given) -> Result<Outcome> {
        match statement {
            statement if statement.has_plan() => {
                self.check_writes(statement)?;
                self.next_statement()?;
                let (bound, eval, _) = self.plan(statement, sql, Vec::new(), ParamTypes::none()).await?;
                self.run_bound(&bound, &eval).await
            }
            Statement::Explain { options, statement } => {
                Box::pin(statement::explain::run(self, options, statement, sql, given)).await
            }
            // What comes seldom is kept apart: others' futures stay small.
            Statement::Copy(copy) => Box::pin(statement::copy::run(self, copy, sql)).await,
            Statement::Define(definition) => {
                self.refuse_if_read_only(definition.tag())?;
                Box::pin(statement::define::run(self, definition, sql, given)).await
            }
            Statement::Utility(utility) => Box::pin(statement::utility::run(self, utility, sql, given)).await,
            other => Err(SqlError::internal(format!("{} is handled before", other.verb()))),
        }
    }

    /// Runs a prepared statement.
    pub(crate) async fn dispatch_prepared(&mut self, prepared: &Arc<Prepared>, params: Vec<Datum>) -> Result<Outcome> {
        let Some(statement) = prepared.statement() else { return Ok(Outcome::Empty) };
        self.runs(statement);
        match statement {
            statement if statement.has_plan() => {
                self.refuse_if_failed()?;
                self.ensure_block();
                let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
                guard(&interrupt, deadline, pin!(self.run_prepared(prepared, statement, params))).await
            }
            Statement::Explain { options, statement } => {
                self.refuse_if_failed()?;
                self.ensure_block();
                let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
                let given = Given { values: params, types: prepared.types.clone(), style: prepared.style };
                let run = statement::explain::run(self, options, statement, &prepared.sql, given);
                guard(&interrupt, deadline, Box::pin(run)).await
            }
            Statement::Transaction(verb) => self.end_or_begin(verb).await,
            other => {
                let given = Given { values: params, types: prepared.types.clone(), style: prepared.style };
                Box::pin(self.dispatch_given(other, &prepared.sql, given)).await
            }
        }
    }

    async fn run_prepared(
        &mut self,
        prepared: &Arc<Prepared>,
        statement: &Statement,
        params: Vec<Datum>,
    ) -> Result<Outcome> {
        self.check_writes(statement)?;
        self.next_statement()?;
        let cached = prepared.plan.lock().as_ref().and_then(|plan| {
            let is_current = Arc::ptr_eq(&plan.settings, self.settings.effective());
            is_current.then(|| (plan.bound.clone(), plan.catalog_version))
        });
        if let Some((bound, version)) = cached
            && let Some(catalog) = self.take_up(&bound, version).await?
        {
            let eval = self.eval_context(params, &catalog);
            return self.run_bound(&bound, &eval).await;
        }
        let (bound, eval, catalog) = self.plan(statement, &prepared.sql, params, prepared.params()).await?;
        prepared.check_columns(bound.columns().as_deref())?;
        if bind::current_of(statement).is_some() || self.txn()?.edits_catalog() {
            return self.run_bound(&bound, &eval).await;
        }
        *prepared.plan.lock() = Some(CachedPlan {
            catalog_version: catalog.version,
            settings: self.settings.effective().clone(),
            row: RowPlan::of(&bound, &eval).map(Arc::new),
            at_once: AtOnce::of(&bound, locks_of(&bound), &catalog, &eval).map(Arc::new),
            bound: bound.clone(),
        });
        self.run_bound(&bound, &eval).await
    }

    /// Locks the tables of what was bound in a version of the catalog. `None` if that is not the statement's.
    pub(super) async fn take_up(&mut self, bound: &Bound, version: u64) -> Result<Option<Arc<Catalog>>> {
        let txn = self.txn()?;
        let catalog = txn.catalog();
        // Versions number catalogs that were committed.
        if catalog.version != version || !txn.sees(&catalog) || txn.edits_catalog() {
            return Ok(None);
        }
        if self.lock_tables(bound).await? {
            self.next_statement()?;
        }
        Ok((self.txn()?.catalog_version() == version).then_some(catalog))
    }

    /// 25006 for writes in a read-only transaction.
    pub(crate) fn check_writes(&self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::Query(query) if !bind::writes(query) => Ok(()),
            other => self.refuse_if_read_only(other.verb()),
        }
    }

    /// Binds, locks the tables, and binds again if the catalog changed while waiting.
    pub(crate) async fn plan(
        &mut self,
        statement: &Statement,
        sql: &Arc<str>,
        params: Vec<Datum>,
        types: ParamTypes,
    ) -> Result<(Bound, Arc<EvalContext>, Arc<Catalog>)> {
        let user = self.user.clone();
        self.plan_as(&user, statement, sql, params, types).await
    }

    /// The same with the privileges of a role.
    pub(crate) async fn plan_as(
        &mut self,
        role: &str,
        statement: &Statement,
        sql: &Arc<str>,
        params: Vec<Datum>,
        types: ParamTypes,
    ) -> Result<(Bound, Arc<EvalContext>, Arc<Catalog>)> {
        let began = self.db.os().clock.monotonic();
        for _ in 0..REBINDS_MAX {
            let catalog = self.txn()?.catalog();
            if !self.txn()?.sees(&catalog) {
                self.next_statement()?;
                continue;
            }
            let eval = types.reading(self.eval_context(params.clone(), &catalog));
            let superuser = match role == self.user {
                true => self.superuser,
                false => catalog.role_named(role).is_some_and(|role| role.superuser),
            };
            let needs = Arc::new(Mutex::new(Needs::of(superuser, role)));
            let current = statement::cursor::current(self, statement)?;
            let ctx = BindContext { needs: Some(needs.clone()), current, ..self.bind_context(&catalog, sql, &eval) };
            let bound = bind::bind_statement(&ctx, statement, &mut types.clone())?;
            statement::allowed::check(&catalog, role, &needs.lock())?;
            refuse_materialized(&bound)?;
            let waited = self.lock_tables(&bound).await?;
            if self.txn()?.catalog_version() == catalog.version {
                if waited {
                    // What was committed meanwhile is seen.
                    self.next_statement()?;
                }
                self.took_binding(began);
                return Ok((bound, eval, catalog));
            }
            self.next_statement()?;
        }
        Err(SqlError::new("55P03", "the catalog changes faster than the statement can be planned"))
    }

    /// Binds without locks; gives the parameters' types too.
    pub(crate) fn bind_against(
        &self,
        statement: &Statement,
        sql: &Arc<str>,
        catalog: &Arc<Catalog>,
        eval: &Arc<EvalContext>,
        mut types: ParamTypes,
    ) -> Result<(Bound, ParamTypes)> {
        let ctx = self.bind_context(catalog, sql, eval);
        let bound = bind::bind_statement(&ctx, statement, &mut types)?;
        Ok((bound, types))
    }

    /// Whether it took long enough for others to commit.
    pub(crate) async fn lock_tables(&mut self, bound: &Bound) -> Result<bool> {
        if let Some((_, strength)) = parts_of(bound).1.iter().find_map(|query| query.row_locks.first()) {
            self.refuse_if_read_only(&format!("SELECT {}", strength_name(*strength)))?;
        }
        let mut waited = false;
        for (table, mode) in locks_of(bound) {
            waited |= self.lock_table(table, mode, false).await?;
        }
        Ok(waited)
    }

    /// Whether it was waited for.
    pub(crate) async fn lock_table(&mut self, table: ObjectId, mode: TableLock, nowait: bool) -> Result<bool> {
        let wait = self.wait_policy();
        let txn = self.txn()?;
        match txn.lock_table(table, mode, WaitPolicy::Fail).await {
            Err(basalt_engine::Error::LockNotAvailable(_)) if !nowait => {}
            taken => {
                taken?;
                return Ok(false);
            }
        }
        txn.lock_table(table, mode, wait).await?;
        Ok(true)
    }

    /// Locks the relations that a plan asks for, in its order, and plans anew where those who were waited for have changed
    /// the catalog, until a plan asks for no more.
    pub(crate) async fn lock_planned<P>(
        &mut self,
        mode: TableLock,
        plan: impl Fn(&mut Session, &Arc<Catalog>) -> Result<(P, Vec<ObjectId>)>,
    ) -> Result<P> {
        let mut locked: HashSet<ObjectId> = HashSet::new();
        'plans: loop {
            let catalog = self.txn()?.catalog();
            let (planned, wanted) = plan(self, &catalog)?;
            let mut is_new = false;
            for id in wanted {
                if locked.insert(id) {
                    is_new = true;
                    let waited = self.lock_table(id, mode, false).await?;
                    if waited && self.txn()?.catalog_version() != catalog.version {
                        continue 'plans;
                    }
                }
            }
            if !is_new || self.txn()?.catalog_version() == catalog.version {
                return Ok(planned);
            }
        }
    }

    pub(crate) fn wait_policy(&self) -> WaitPolicy {
        WaitPolicy::Wait(self.settings.effective().lock_timeout)
    }

    pub(crate) async fn run_bound(&mut self, bound: &Bound, eval: &Arc<EvalContext>) -> Result<Outcome> {
        self.runs_bound();
        let outcome = self.run_plan(bound, eval).await?;
        self.after_statement().await?;
        Ok(outcome)
    }

    async fn run_plan(&mut self, bound: &Bound, eval: &Arc<EvalContext>) -> Result<Outcome> {
        match bound {
            Bound::Query(query) => {
                let columns = super::prepared::result_columns(&query.columns);
                if let Some(point) = bind::point::point_query(query, eval) {
                    let mut rows = RowsBuilder::new(point.outputs.iter().map(|output| output.ty()).collect())?;
                    statement::point_get::run(self, &point, eval, &mut RowOut::Batches(&mut rows)).await?;
                    return Ok(Outcome::Rows(RowStream::new(columns, RowSource::ready(rows.finish()?), "SELECT")));
                }
                if let Some(rows) = statement::row_query::run(self, query, eval).await? {
                    return Ok(Outcome::Rows(RowStream::new(columns, RowSource::ready(rows), "SELECT")));
                }
                let rows = Box::pin(statement::lock_rows::rows(self, query, eval)).await?;
                Ok(Outcome::Rows(RowStream::new(columns, rows, "SELECT")))
            }
            Bound::Write(write) => {
                let written = statement::write::run(self, write, eval, None).await?;
                written.outcome(bound, write.tag())
            }
            Bound::With(with) => Box::pin(statement::write::run_with(self, with, eval)).await,
        }
    }

    /// Types of the result and parameters of a statement that may have both.
    pub(crate) fn describe(
        &mut self,
        statement: &Statement,
        sql: &Arc<str>,
        types: Vec<DataType>,
    ) -> Result<(Vec<DataType>, Option<Columns>)> {
        match statement {
            statement if statement.has_plan() => {
                let catalog = self.current_catalog();
                let eval = self.eval_context(Vec::new(), &catalog);
                let (bound, types) = self.bind_against(statement, sql, &catalog, &eval, ParamTypes::open(types))?;
                Ok((types.finish()?, bound.columns().map(Columns::from)))
            }
            Statement::Explain { options, statement } => {
                let (types, _) = self.describe(statement, sql, types)?;
                Ok((types, Some(statement::explain::columns(options).into())))
            }
            Statement::Utility(utility) if utility.query().is_none() => {
                Ok((types, statement::utility::columns(self, utility)?))
            }
            Statement::Utility(_) | Statement::Define(_) => {
                let Some(query) = query_within(statement) else { return Ok((types, None)) };
                let (types, _) = self.describe(&Statement::Query(Box::new(query.clone())), sql, types)?;
                if matches!(statement, Statement::Define(kept) if kept.keeps_query()) && !types.is_empty() {
                    let message = "materialized views may not be defined using bound parameters";
                    return Err(SqlError::not_supported(message));
                }
                Ok((types, None))
            }
            _ => Ok((types, None)),
        }
    }

    /// The catalog of the open transaction, or the committed one.
    pub(crate) fn current_catalog(&mut self) -> Arc<Catalog> {
        match self.txn() {
            Ok(txn) => txn.catalog(),
            Err(_) => self.db.engine().catalog(),
        }
    }
}

/// The query whose rows a definition or a cursor takes, where that may have parameters.
fn query_within(statement: &Statement) -> Option<&ast::Query> {
    match statement {
        Statement::Utility(utility) => utility.query(),
        Statement::Define(definition) => definition.query(),
        _ => None,
    }
}

/// 42809 for a command that would change a materialized view.
fn refuse_materialized(bound: &Bound) -> Result<()> {
    let written = parts_of(bound).0.into_iter().filter_map(|write| write.table());
    match written.into_iter().find(|table| table.materialized.is_some()) {
        Some(table) => Err(SqlError::new("42809", format!("cannot change materialized view \"{}\"", table.name))),
        None => Ok(()),
    }
}

/// The commands of a statement, and the queries that they and the statement run.
fn parts_of(bound: &Bound) -> (Vec<&Write>, Vec<&Query>) {
    let (mut writes, mut queries): (Vec<&Write>, Vec<&Query>) = match bound {
        Bound::Query(query) => (Vec::new(), vec![query]),
        Bound::Write(write) => (vec![write], Vec::new()),
        Bound::With(with) => {
            let (mut writes, queries) = parts_of(&with.main);
            writes.extend(&with.writes);
            (writes, queries)
        }
    };
    for write in &mut writes {
        queries.extend(write.queries());
        if let Write::Update(modify) | Write::Delete(modify) | Write::Merge(modify) = write
            && let ModifySource::Search(search) = &modify.source
        {
            queries.push(&search.query);
        }
    }
    (writes, queries)
}

/// Which locks a plan needs; written tables first.
pub(crate) fn locks_of(bound: &Bound) -> Vec<(ObjectId, TableLock)> {
    let (writes, queries) = parts_of(bound);
    let written: Vec<ObjectId> = writes.iter().filter_map(|write| write.table()).map(|table| table.id).collect();
    let read = queries.into_iter().flat_map(|query| {
        let mode = |table| match query.row_locks.iter().any(|(locked, _)| *locked == table) {
            true => TableLock::RowShare,
            false => TableLock::AccessShare,
        };
        query.tables.iter().map(move |table| (*table, mode(*table)))
    });
    let read: Vec<(ObjectId, TableLock)> = read.filter(|(table, _)| !written.contains(table)).collect();
    written.into_iter().map(|table| (table, TableLock::RowExclusive)).chain(read).collect()
}
