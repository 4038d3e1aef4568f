//! CHECK constraints (PostgreSQL manual 5.4.1): their names, and whether rows that are there satisfy a new one.

use super::columns::free_name;
use crate::bind::{self, BindContext, pinned};
use crate::error::{ErrorObject, Result, SqlError};
use crate::session::Session;
use crate::syntax::CheckClause;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use basalt_engine::{Catalog, ScanSpec};
use basalt_exec::{Scan, Stop};
use basalt_expr::tree::Expr;
use basalt_types::schema::CheckDef;
use basalt_types::{ObjectId, TableDef};
use std::sync::Arc;

/// Whether a constraint of the schema has the name.
pub(crate) fn is_taken(catalog: &Catalog, namespace: ObjectId, name: &str) -> bool {
    catalog.tables.values().filter(|table| table.namespace == namespace).any(|table| has_constraint(table, name))
}

pub(crate) fn has_constraint(table: &TableDef, name: &str) -> bool {
    table.checks.iter().any(|check| check.name == name)
        || table.primary_key.as_ref().is_some_and(|key| key.constraint_name == name)
        || table.foreign_keys.iter().any(|key| key.name == name)
        || table.indexes.iter().any(|index| index.constraint.is_some() && index.name == name)
}

/// Adds a constraint to the table's definition; rows are not looked at. 42710 if its name is taken.
pub(crate) fn add(
    session: &Session,
    ctx: &BindContext,
    table: &mut TableDef,
    clause: &CheckClause,
) -> Result<CheckDef> {
    let shared = Arc::new(table.clone());
    let bound = bind::bind_check(ctx, &shared, &clause.condition)?;
    let name = match &clause.constraint {
        Some(name) if has_constraint(table, name) => {
            let message = format!("constraint \"{name}\" for relation \"{}\" already exists", table.name);
            return Err(SqlError::new("42710", message));
        }
        Some(name) => name.clone(),
        None => {
            let columns = bind::columns_of(&bound);
            let column = match columns.as_slice() {
                [id] => Some(table.column(*id).name.clone()),
                _ => None,
            };
            let taken = |name: &str| has_constraint(table, name) || is_taken(&ctx.catalog, table.namespace, name);
            free_name(&table.name, column.as_deref(), "check", taken)
        }
    };
    let check = CheckDef {
        id: session.db.engine().next_object_id(),
        name,
        sql: pinned::expression(ctx, Some(table), &clause.condition, &|ctx, expr| {
            bind::bind_check(ctx, &shared, expr).map(|_| ())
        })?,
        validated: !clause.not_valid,
        no_inherit: clause.no_inherit,
    };
    insert(table, check.clone());
    Ok(check)
}

/// Keeps name order.
pub(crate) fn insert(table: &mut TableDef, check: CheckDef) {
    table.checks.push(check);
    table.checks.sort_by(|a, b| a.name.cmp(&b.name));
}

/// 23514 if a row that is there does not satisfy the constraint.
pub(crate) async fn refuse_violations(
    session: &mut Session,
    table: &Arc<TableDef>,
    check: &CheckDef,
    sql: &Arc<str>,
) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    let ctx = session.bind_context(&catalog, sql, &eval);
    let condition = bind::bind_check(&ctx, table, &crate::syntax::parse_expr_text(&check.sql)?)?;
    let violated = any_false(session, table, condition, eval).await?;
    if !violated {
        return Ok(());
    }
    let message = format!("check constraint \"{}\" of relation \"{}\" is violated by some row", check.name, table.name);
    let schema = catalog.namespaces.get(&table.namespace).map(|namespace| namespace.name.clone());
    Err(SqlError::new("23514", message).with_object(ErrorObject {
        schema,
        table: Some(table.name.clone()),
        constraint: Some(check.name.clone()),
        ..ErrorObject::default()
    }))
}

/// Reads the table beside the connection's thread.
async fn any_false(
    session: &mut Session,
    table: &Arc<TableDef>,
    condition: Expr,
    eval: Arc<basalt_expr::EvalContext>,
) -> Result<bool> {
    let columns = bind::columns_of(&condition);
    let place = |index: usize| columns.iter().position(|id| id.position() == index).unwrap_or(index);
    let condition = condition.clone().rewrite(&mut |node| match node {
        Expr::Column { index, ty } => Expr::Column { index: place(index), ty },
        node => node,
    });
    let spec =
        ScanSpec { table: table.clone(), columns: columns.clone(), predicates: Vec::new(), with_identity: false };
    let stop = Stop::default();
    let scan = Scan::start(&session.txn()?.latest(), spec, stop.clone())?;
    let search = session.db.runtime().spawn_blocking(stop, move || {
        let mut worker = scan.worker();
        while let Some(batch) = worker.next_batch()? {
            let kept: ArrayRef = condition.eval(&batch.columns, batch.rows, &eval)?;
            let kept = kept.as_boolean();
            if (0..kept.len()).any(|row| kept.is_valid(row) && !kept.value(row)) {
                return Ok(true);
            }
        }
        Ok(false)
    });
    search.wait().await
}
