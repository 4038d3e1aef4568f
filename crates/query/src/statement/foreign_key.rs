//! FOREIGN KEY constraints (PostgreSQL manual 5.4.5): what they may refer to, and whether rows that are there do.

use super::checks;
use super::columns::free_name;
use super::references;
use super::resolve::{self, Relation, no_relation};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::ForeignKeyClause;
use basalt_engine::{Catalog, TableLock};
use basalt_expr::cast::CastContext;
use basalt_types::schema::{ForeignKey, ReferentialAction};
use basalt_types::{ColumnId, DataType, ObjectId, TableDef};
use std::sync::Arc;

/// Locks the referenced table, and adds the constraint to the definition of `table`, whose rows are not looked at.
pub(crate) async fn declare(
    session: &mut Session,
    table: &mut TableDef,
    clause: &ForeignKeyClause,
) -> Result<Arc<ForeignKey>> {
    let own = &*table;
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let parent = match resolve::find(session, catalog, &clause.parent)? {
            Some(Relation::Table(parent)) if parent.materialized.is_none() => {
                Some(parent).filter(|parent| parent.id != own.id)
            }
            Some(_) => {
                let message = format!("referenced relation \"{}\" is not a table", clause.parent.name);
                return Err(SqlError::new("42809", message));
            }
            // A table that refers to itself as it is made.
            None if is_own_name(catalog, own, clause) => None,
            None => return Err(no_relation("relation", &clause.parent)),
        };
        let wanted = parent.iter().map(|parent| parent.id).collect();
        Ok(((catalog.clone(), parent), wanted))
    };
    let (catalog, parent) = session.lock_planned(TableLock::ShareRowExclusive, plan).await?;
    if let Some(parent) = &parent {
        let key = parent.primary_key.iter().flat_map(|key| &key.columns).map(|id| id.0 as i16);
        let named: Vec<i16> = match clause.parent_columns.is_empty() {
            true => key.collect(),
            false => {
                clause.parent_columns.iter().filter_map(|name| Some(parent.column_named(name)?.id.0 as i16)).collect()
            }
        };
        session.require_on(parent.id, basalt_engine::privilege::REFERENCES, &named)?;
        check_persistence(&catalog, table, parent)?;
    }
    let own = Arc::new(table.clone());
    let parent = parent.unwrap_or(own);
    let columns = referencing(table, &clause.columns)?;
    let (parent_columns, parent_index) = referenced(&parent, clause)?;
    if columns.len() != parent_columns.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(SqlError::new("42830", message));
    }
    let name = match &clause.constraint {
        Some(name) if checks::has_constraint(table, name) => {
            let message = format!("constraint \"{name}\" for relation \"{}\" already exists", table.name);
            return Err(SqlError::new("42710", message));
        }
        Some(name) => name.clone(),
        None => {
            let taken =
                |name: &str| checks::has_constraint(table, name) || checks::is_taken(&catalog, table.namespace, name);
            free_name(&table.name, Some(&clause.columns.join("_")), "fkey", taken)
        }
    };
    for (column, other) in columns.iter().zip(&parent_columns) {
        check_types(table, *column, &parent, *other, &name)?;
    }
    check_generated(table, &columns, clause)?;
    let mut set_columns = Vec::new();
    for name in &clause.set_columns {
        let id = named(table, name)?;
        if !columns.contains(&id) {
            let message = format!("column \"{name}\" referenced in ON DELETE SET action must be part of foreign key");
            return Err(SqlError::new("42P10", message));
        }
        set_columns.push(id);
    }
    let key = Arc::new(ForeignKey {
        id: session.db.engine().next_object_id(),
        name,
        columns,
        parent: parent.id,
        parent_columns,
        parent_index,
        on_delete: clause.on_delete,
        on_update: clause.on_update,
        set_columns,
        match_full: clause.match_full,
        deferrable: clause.deferral.deferrable,
        initially_deferred: clause.deferral.initially_deferred,
        validated: !clause.not_valid,
    });
    table.foreign_keys.push(key.clone());
    Ok(key)
}

fn is_own_name(catalog: &Catalog, table: &TableDef, clause: &ForeignKeyClause) -> bool {
    let schema = catalog.namespaces.get(&table.namespace).map(|namespace| namespace.name.as_str());
    clause.parent.name == table.name && clause.parent.schema.as_deref().is_none_or(|named| Some(named) == schema)
}

fn check_persistence(catalog: &Catalog, table: &TableDef, parent: &TableDef) -> Result<()> {
    let temporary = |table: &TableDef| resolve::is_temporary(catalog, table.namespace);
    match (temporary(table), temporary(parent)) {
        (true, false) => {
            Err(SqlError::new("42P16", "constraints on temporary tables may reference only temporary tables"))
        }
        (false, true) => {
            Err(SqlError::new("42P16", "constraints on permanent tables may reference only permanent tables"))
        }
        _ => Ok(()),
    }
}

fn named(table: &TableDef, name: &str) -> Result<ColumnId> {
    match table.column_named(name) {
        Some(column) => Ok(column.id),
        None if crate::bind::names::SYSTEM_COLUMNS.contains(&name) => {
            Err(SqlError::not_supported("system columns cannot be used in foreign keys"))
        }
        None => Err(SqlError::new(
            "42703",
            format!("column \"{name}\" referenced in foreign key constraint does not exist"),
        )),
    }
}

fn referencing(table: &TableDef, names: &[String]) -> Result<Vec<ColumnId>> {
    names.iter().map(|name| named(table, name)).collect()
}

/// The referenced columns, in the order of the clause, and the primary key constraint or unique index of them.
fn referenced(parent: &TableDef, clause: &ForeignKeyClause) -> Result<(Vec<ColumnId>, ObjectId)> {
    if clause.parent_columns.is_empty() {
        return match &parent.primary_key {
            Some(key) => Ok((key.columns.clone(), key.constraint_id)),
            None => match super::unique::indexed_primary_key(parent) {
                Some(index) if index.is_deferrable() => Err(SqlError::new(
                    "55000",
                    format!("cannot use a deferrable primary key for referenced table \"{}\"", parent.name),
                )),
                Some(index) => Ok((index.plain_columns().unwrap_or_default(), index.id)),
                None => Err(SqlError::new(
                    "42704",
                    format!("there is no primary key for referenced table \"{}\"", parent.name),
                )),
            },
        };
    }
    let columns = referencing(parent, &clause.parent_columns)?;
    let mut sorted = columns.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(SqlError::new("42830", "foreign key referenced-columns list must not contain duplicates"));
    }
    let same = |other: &[ColumnId]| {
        let mut other = other.to_vec();
        other.sort_unstable();
        other == sorted
    };
    if let Some(key) = parent.primary_key.as_ref().filter(|key| same(&key.columns)) {
        return Ok((columns, key.constraint_id));
    }
    let keys = parent.valid_indexes().filter(|index| index.is_key());
    let matching: Vec<_> = keys.filter(|index| index.plain_columns().is_some_and(|of| same(&of))).collect();
    match matching.iter().find(|index| !index.is_deferrable()) {
        Some(index) => Ok((columns, index.id)),
        None if matching.is_empty() => Err(SqlError::new(
            "42830",
            format!("there is no unique constraint matching given keys for referenced table \"{}\"", parent.name),
        )),
        None => Err(SqlError::new(
            "55000",
            format!("cannot use a deferrable unique constraint for referenced table \"{}\"", parent.name),
        )),
    }
}

/// Whether a value of one type can be compared with a key of another, as PostgreSQL's operator families say.
pub(crate) fn are_compatible(child: &DataType, parent: &DataType) -> bool {
    use DataType::*;
    let (child, parent) = (child.base(), parent.base());
    let is_int = |ty: &DataType| matches!(ty, Int2 | Int4 | Int8);
    let is_float = |ty: &DataType| matches!(ty, Float4 | Float8);
    let is_text = |ty: &DataType| matches!(ty, Text | Varchar(_) | Name);
    child == parent
        || (is_int(&child) && is_int(&parent))
        || (is_float(&child) && is_float(&parent))
        || (is_text(&child) && is_text(&parent))
        || basalt_expr::cast::find_cast(&child, &parent) == Some(CastContext::Implicit)
}

/// What foreign keys ask of a column's new type, in `table` as it will be. `before` is its type so far; `keeps`:
/// without a USING that computes other values. 42804 where the types do not go together, 0A000 where rows would have to
/// be compared anew.
pub(crate) fn check_retyped(
    catalog: &Catalog,
    table: &TableDef,
    column: ColumnId,
    before: &DataType,
    keeps: bool,
) -> Result<()> {
    use DataType::*;
    let now = &table.column(column).ty;
    let same_values = |of: fn(&DataType) -> bool| of(before) && of(now);
    let keeps = keeps
        && (before == now
            || same_values(|ty| matches!(ty, Int2 | Int4 | Int8))
            || same_values(|ty| matches!(ty, Text | Varchar(_))));
    let own = table.foreign_keys.iter().map(|key| {
        let parent =
            if key.parent == table.id { Some(table) } else { catalog.tables.get(&key.parent).map(|parent| &**parent) };
        (Some(table), key, parent)
    });
    let others = catalog.references_to(table.id).filter(|(child, _)| child.id != table.id);
    let others = others.map(|(child, key)| (Some(&**child), key, Some(table)));
    for (child, key, parent) in own.chain(others) {
        let (Some(child), Some(parent)) = (child, parent) else { continue };
        for (of_child, of_parent) in key.columns.iter().zip(&key.parent_columns) {
            let is_child = child.id == table.id && *of_child == column;
            let is_parent = parent.id == table.id && *of_parent == column;
            if !(is_child || is_parent) {
                continue;
            }
            check_types(child, *of_child, parent, *of_parent, &key.name)?;
            if !keeps {
                let message = format!("cannot change values of a column of foreign key \"{}\"", key.name);
                return Err(SqlError::not_supported(message)
                    .with_hint("Drop the constraint, change the type, and add the constraint again."));
            }
        }
    }
    Ok(())
}

fn check_types(table: &TableDef, column: ColumnId, parent: &TableDef, other: ColumnId, name: &str) -> Result<()> {
    let (child, parent) = (table.column(column), parent.column(other));
    let of_arrays = [&child.ty, &parent.ty].iter().any(|ty| matches!(ty.underlying(), DataType::Array(_)));
    let fits = !of_arrays || child.ty.underlying() == parent.ty.underlying();
    if are_compatible(&child.ty, &parent.ty) && fits && *child.ty.underlying() != DataType::Json {
        return Ok(());
    }
    let detail = format!(
        "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
        child.name,
        parent.name,
        child.ty.sql_name(),
        parent.ty.sql_name()
    );
    Err(SqlError::new("42804", format!("foreign key constraint \"{name}\" cannot be implemented")).with_detail(detail))
}

/// Actions cannot write what is computed.
fn check_generated(table: &TableDef, columns: &[ColumnId], clause: &ForeignKeyClause) -> Result<()> {
    use ReferentialAction::{Cascade, SetDefault, SetNull};
    if !columns.iter().any(|id| table.column(*id).generated.is_some()) {
        return Ok(());
    }
    let wrong = |event: &str| {
        let message = format!("invalid ON {event} action for foreign key constraint containing generated column");
        Err(SqlError::syntax(message))
    };
    if matches!(clause.on_update, SetNull | SetDefault | Cascade) {
        return wrong("UPDATE");
    }
    if matches!(clause.on_delete, SetNull | SetDefault) {
        return wrong("DELETE");
    }
    Ok(())
}

/// 23503 unless every row that is there refers to one of the referenced table.
pub(crate) async fn validate(session: &mut Session, table: &Arc<TableDef>, key: &Arc<ForeignKey>) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    let (table, key) = (table.clone(), key.clone());
    session
        .off_thread(move |txn| Box::pin(async move { references::check_all(txn, &catalog, &table, &key, &eval).await }))
        .await
}
