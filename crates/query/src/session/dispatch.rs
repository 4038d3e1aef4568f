//! From a parsed statement to the file of its verb.

use super::Session;
use super::interrupt::guard;
use super::outcome::{Outcome, RowSource, RowStream};
use super::prepared::{Bound, CachedPlan, Prepared};
use crate::bind::{self, InsertSource, ParamTypes, RowSource as ModifySource};
use crate::error::{Result, SqlError};
use crate::plan::Query;
use crate::statement;
use crate::syntax::{Statement, strength_name};
use basalt_engine::{Catalog, TableLock, WaitPolicy};
use basalt_expr::EvalContext;
use basalt_types::{DataType, Datum, ObjectId};
use std::sync::Arc;

/// Times that a statement is bound again because the catalog changed while it waited for its locks.
const REBINDS_MAX: usize = 100;

impl Session {
    /// Runs a statement without parameters.
    pub(crate) async fn dispatch(&mut self, statement: &Statement, sql: &Arc<str>) -> Result<Outcome> {
        if let Statement::Transaction(verb) = statement {
            let tag = self.run_transaction(verb).await?;
            return Ok(Outcome::Command { tag: tag.to_string() });
        }
        self.refuse_if_failed()?;
        self.ensure_block();
        let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
        guard(&interrupt, deadline, self.dispatch_guarded(statement, sql)).await
    }

    async fn dispatch_guarded(&mut self, statement: &Statement, sql: &Arc<str>) -> Result<Outcome> {
        match statement {
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                self.check_writes(statement)?;
                self.next_statement()?;
                let (bound, eval, _) = self.plan(statement, sql, Vec::new(), ParamTypes::none()).await?;
                self.run_bound(&bound, &eval).await
            }
            Statement::Explain { analyze, statement } => {
                statement::explain::run(self, *analyze, statement, sql, Vec::new()).await
            }
            Statement::Copy(copy) => statement::copy::run(self, copy, sql).await,
            Statement::Define(definition) => {
                self.refuse_if_read_only(definition.tag())?;
                statement::define::run(self, definition, sql).await
            }
            Statement::Utility(utility) => statement::utility::run(self, utility, sql).await,
            Statement::Transaction(_) => Err(SqlError::internal("transaction verbs are handled before")),
        }
    }

    /// Runs a prepared statement.
    pub(crate) async fn dispatch_prepared(&mut self, prepared: &Arc<Prepared>, params: Vec<Datum>) -> Result<Outcome> {
        let Some(statement) = &prepared.statement else { return Ok(Outcome::Empty) };
        match statement {
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                self.refuse_if_failed()?;
                self.ensure_block();
                let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
                guard(&interrupt, deadline, self.run_prepared(prepared, statement, params)).await
            }
            Statement::Explain { analyze, statement } => {
                self.refuse_if_failed()?;
                self.ensure_block();
                let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
                let run = statement::explain::run(self, *analyze, statement, &prepared.sql, params);
                guard(&interrupt, deadline, run).await
            }
            other => self.dispatch(other, &prepared.sql).await,
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
        let catalog = self.txn()?.catalog();
        let cached = prepared.plan.lock().as_ref().and_then(|plan| {
            let valid =
                plan.catalog_version == catalog.version && Arc::ptr_eq(&plan.settings, self.settings.effective());
            valid.then(|| plan.bound.clone())
        });
        if let Some(bound) = cached {
            self.lock_tables(&bound).await?;
            if self.txn()?.catalog().version == catalog.version {
                let eval = self.eval_context(params, &catalog);
                return self.run_bound(&bound, &eval).await;
            }
        }
        let types = ParamTypes::fixed(prepared.types.clone());
        let (bound, eval, catalog) = self.plan(statement, &prepared.sql, params, types).await?;
        if !same_columns(&bound, prepared) {
            return Err(SqlError::not_supported("cached plan must not change result type"));
        }
        *prepared.plan.lock() = Some(CachedPlan {
            catalog_version: catalog.version,
            settings: self.settings.effective().clone(),
            bound: bound.clone(),
        });
        self.run_bound(&bound, &eval).await
    }

    /// 25006 for writes in a read-only transaction.
    pub(crate) fn check_writes(&self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::Query(_) => Ok(()),
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
        for _ in 0..REBINDS_MAX {
            let catalog = self.txn()?.catalog();
            let eval = self.eval_context(params.clone(), &catalog);
            let (bound, _) = self.bind_against(statement, sql, &catalog, &eval, types.clone())?;
            self.lock_tables(&bound).await?;
            if self.txn()?.catalog().version == catalog.version {
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
        let bound = match statement {
            Statement::Query(query) => Bound::Query(Arc::new(bind::bind_query(&ctx, query, &mut types)?)),
            Statement::Insert(insert) => Bound::Insert(Arc::new(bind::bind_insert(&ctx, insert, &mut types)?)),
            Statement::Update(update) => Bound::Update(Arc::new(bind::bind_update(&ctx, update, &mut types)?)),
            Statement::Delete(delete) => Bound::Delete(Arc::new(bind::bind_delete(&ctx, delete, &mut types)?)),
            other => return Err(SqlError::internal(format!("{} has no plan", other.verb()))),
        };
        Ok((bound, types))
    }

    pub(crate) async fn lock_tables(&mut self, bound: &Bound) -> Result<()> {
        if let Some((_, strength)) = query_of(bound).and_then(|query| query.row_locks.first()) {
            self.refuse_if_read_only(&format!("SELECT {}", strength_name(*strength)))?;
        }
        for (table, mode) in locks_of(bound) {
            self.lock_table(table, mode, false).await?;
        }
        Ok(())
    }

    pub(crate) async fn lock_table(&mut self, table: ObjectId, mode: TableLock, nowait: bool) -> Result<()> {
        let wait = match nowait {
            true => WaitPolicy::Fail,
            false => self.wait_policy(),
        };
        Ok(self.txn()?.lock_table(table, mode, wait).await?)
    }

    pub(crate) fn wait_policy(&self) -> WaitPolicy {
        WaitPolicy::Wait(self.settings.effective().lock_timeout)
    }

    async fn run_bound(&mut self, bound: &Bound, eval: &Arc<EvalContext>) -> Result<Outcome> {
        match bound {
            Bound::Query(query) => {
                let columns = super::prepared::result_columns(&query.columns);
                if let Some(point) = bind::point::point_query(query, eval) {
                    let rows = statement::point_get::run(self, &point, eval).await?;
                    return Ok(Outcome::Rows(RowStream::new(columns, RowSource::ready(rows), "SELECT")));
                }
                let rows = statement::lock_rows::rows(self, query, eval).await?;
                Ok(Outcome::Rows(RowStream::new(columns, rows, "SELECT")))
            }
            Bound::Insert(insert) => {
                let written = statement::insert::run(self, insert, eval).await?;
                Ok(written.outcome(bound, "INSERT 0"))
            }
            Bound::Update(update) => {
                let written = statement::modify::update(self, update, eval).await?;
                Ok(written.outcome(bound, "UPDATE"))
            }
            Bound::Delete(delete) => {
                let written = statement::modify::delete(self, delete, eval).await?;
                Ok(written.outcome(bound, "DELETE"))
            }
        }
    }

    /// Types of the result and parameters of a statement that may have both.
    pub(crate) fn describe(
        &mut self,
        statement: &Statement,
        sql: &Arc<str>,
        types: Vec<DataType>,
    ) -> Result<(Vec<DataType>, Option<Vec<super::ResultColumn>>)> {
        match statement {
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                let catalog = self.current_catalog();
                let eval = self.eval_context(Vec::new(), &catalog);
                let (bound, types) = self.bind_against(statement, sql, &catalog, &eval, ParamTypes::open(types))?;
                Ok((types.finish()?, bound.columns()))
            }
            Statement::Explain { statement, .. } => {
                let (types, _) = self.describe(statement, sql, types)?;
                Ok((types, Some(vec![super::ResultColumn::text("QUERY PLAN")])))
            }
            Statement::Utility(utility) => Ok((types, statement::utility::columns(self, utility)?)),
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

fn same_columns(bound: &Bound, prepared: &Prepared) -> bool {
    match (bound.columns(), &prepared.columns) {
        (None, None) => true,
        (Some(now), Some(then)) => {
            now.len() == then.len()
                && now.iter().zip(then).all(|(now, then)| now.name == then.name && now.ty == then.ty)
        }
        _ => false,
    }
}

fn query_of(bound: &Bound) -> Option<&Query> {
    match bound {
        Bound::Query(query) => Some(query),
        Bound::Insert(insert) => match &insert.source {
            InsertSource::Query(query) => Some(query),
            InsertSource::Values(_) => None,
        },
        Bound::Update(modify) | Bound::Delete(modify) => match &modify.source {
            ModifySource::Query { query, .. } => Some(query),
            ModifySource::Point(_) => None,
        },
    }
}

/// Which locks a plan needs; the written table first.
fn locks_of(bound: &Bound) -> Vec<(ObjectId, TableLock)> {
    let target = match bound {
        Bound::Query(_) => None,
        Bound::Insert(insert) => Some(insert.table.id),
        Bound::Update(modify) | Bound::Delete(modify) => Some(modify.table.id),
    };
    let written = target.map(|table| (table, TableLock::RowExclusive));
    let read = query_of(bound).into_iter().flat_map(|query| {
        let mode = |table| match query.row_locks.iter().any(|(locked, _)| *locked == table) {
            true => TableLock::RowShare,
            false => TableLock::AccessShare,
        };
        query.tables.iter().map(move |table| (*table, mode(*table)))
    });
    written.into_iter().chain(read.filter(|(table, _)| Some(*table) != target)).collect()
}
