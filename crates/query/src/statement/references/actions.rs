//! ON DELETE and ON UPDATE: what becomes of the rows that refer to a key that is gone.

use super::{Change, Children, Enforcer, convert};
use crate::error::{Result, SqlError};
use crate::session::interrupt::Pace;
use basalt_engine::{CurrentRow, Locked, RowLock, Txn};
use basalt_types::schema::{ForeignKey, ReferentialAction};
use basalt_types::{ColumnId, Datum, TableDef};
use std::sync::Arc;

/// Values of a parent's columns as its child's columns have them; None where they cannot.
pub(super) fn as_child(
    enforcer: &Enforcer,
    table: &TableDef,
    key: &ForeignKey,
    values: &[Datum],
) -> Option<Vec<Datum>> {
    let parent = enforcer.catalog.table(key.parent)?;
    let columns = key.columns.iter().zip(&key.parent_columns).zip(values);
    let converted = columns.map(|((child, column), value)| {
        convert(&parent.column(*column).ty, &table.column(*child).ty, value, &enforcer.eval)
    });
    converted.collect()
}

/// Acts on all rows that refer to the old keys. Deletions and updates of one constraint have their own actions.
pub(super) async fn apply(
    enforcer: &Enforcer,
    txn: &mut Txn,
    table: &Arc<TableDef>,
    key: &Arc<ForeignKey>,
    changes: &[Change],
) -> Result<()> {
    for action in [
        ReferentialAction::Restrict,
        ReferentialAction::Cascade,
        ReferentialAction::SetNull,
        ReferentialAction::SetDefault,
    ] {
        for deletes in [true, false] {
            let of_kind = |change: &&Change| change.new.is_none() == deletes && change.action(key) == action;
            let these: Vec<Change> = changes.iter().filter(of_kind).cloned().collect();
            if these.is_empty() {
                continue;
            }
            if action == ReferentialAction::Restrict {
                enforcer.refuse_children(txn, table, key, &these, false).await?;
                continue;
            }
            act(enforcer, txn, table, key, &these, action).await?;
            if action == ReferentialAction::SetDefault {
                // A default that is the key that went changes nothing, and so would not be checked.
                enforcer.refuse_children(txn, table, key, &these, true).await?;
            }
        }
    }
    Ok(())
}

async fn act(
    enforcer: &Enforcer,
    txn: &mut Txn,
    table: &Arc<TableDef>,
    key: &Arc<ForeignKey>,
    changes: &[Change],
    action: ReferentialAction,
) -> Result<()> {
    let path = enforcer.paths.get(&table.id).ok_or_else(|| SqlError::internal("an action's table was not bound"))?;
    let children = Children::find(txn, enforcer, table, key, changes).await?;
    let mut pace = Pace::default();
    for child in children.rows {
        let change = &changes[child.of];
        let deletes = change.new.is_none() && action == ReferentialAction::Cascade;
        let changes_key = deletes || path.moves_key(key.columns.iter().copied());
        let mode = if changes_key { RowLock::Update } else { RowLock::NoKeyUpdate };
        let locked = txn.lock_row(table, child.tablet, &child.key, mode, enforcer.wait).await?;
        let Locked::Row(row) = locked else { continue };
        if children.keys.position(key, &row.values) != Some(child.of) {
            continue;
        }
        if deletes {
            path.delete(txn, &row, &row.values).await?;
        } else {
            let mut values = row.values.clone();
            for (column, value) in new_values(enforcer, table, key, change, action)? {
                values[column.position()] = value;
            }
            write(path, txn, &row, values).await?;
        }
        pace.step().await;
    }
    Ok(())
}

async fn write(path: &super::RowPath, txn: &mut Txn, row: &CurrentRow, mut values: Vec<Datum>) -> Result<()> {
    path.complete(&mut values)?;
    path.update(txn, row, &row.values, &values).await
}

fn new_values(
    enforcer: &Enforcer,
    table: &TableDef,
    key: &ForeignKey,
    change: &Change,
    action: ReferentialAction,
) -> Result<Vec<(ColumnId, Datum)>> {
    let columns: &[ColumnId] = match change.new.is_none() && !key.set_columns.is_empty() {
        true => &key.set_columns,
        false => &key.columns,
    };
    match (action, &change.new) {
        (ReferentialAction::Cascade, Some(new)) => {
            let Some(parent) = enforcer.catalog.table(key.parent) else { return Ok(Vec::new()) };
            let values = key.columns.iter().zip(&key.parent_columns).zip(new).map(|((column, of), value)| {
                let (from, to) = (&parent.column(*of).ty, &table.column(*column).ty);
                Ok((*column, basalt_expr::cast::cast_datum(from, to, value, false, &enforcer.eval)?))
            });
            values.collect()
        }
        (ReferentialAction::SetDefault, _) => {
            let value = |column: &ColumnId| match enforcer.defaults.get(&(table.id, *column)) {
                Some(default) => Ok((*column, default.eval_scalar(&[], &enforcer.eval)?)),
                None => Ok((*column, Datum::Null)),
            };
            columns.iter().map(value).collect()
        }
        _ => Ok(columns.iter().map(|column| (*column, Datum::Null)).collect()),
    }
}
