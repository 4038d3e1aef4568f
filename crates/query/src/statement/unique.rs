//! UNIQUE constraints: each has an index (PostgreSQL manual 5.4.3).

use super::checks;
use super::columns::free_name;
use super::create_table;
use super::define::exists;
use super::index::{self, IndexParts};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{KeyClause, UniqueClause};
use basalt_engine::Catalog;
use basalt_types::schema::{IndexColumn, IndexConstraint, IndexDef, IndexSource};
use basalt_types::{ColumnId, DataType, TableDef};
use std::sync::Arc;

/// Adds the constraint's index, empty, to the table's definition. None: the table has the same constraint from the same
/// statement already.
pub(crate) fn declare(
    session: &Session,
    catalog: &Catalog,
    table: &mut TableDef,
    clause: &UniqueClause,
) -> Result<Option<Arc<IndexDef>>> {
    if clause.primary && has_primary_key(table) {
        return Err(create_table::many_keys(&table.name));
    }
    let kind = if clause.primary { "primary key" } else { "unique" };
    let mut columns: Vec<IndexColumn> = Vec::new();
    for name in &clause.columns {
        let Some(column) = table.column_named(name) else {
            return Err(SqlError::new("42703", format!("column \"{name}\" named in key does not exist")));
        };
        if columns.iter().any(|other| other.name == *name) {
            return Err(SqlError::new("42701", format!("column \"{name}\" appears twice in {kind} constraint")));
        }
        index::check_indexable(&column.ty, "btree")?;
        columns.push(plain_column(table, column.id));
    }
    let mut include = Vec::new();
    for name in &clause.include {
        let Some(column) = table.column_named(name) else {
            return Err(SqlError::new("42703", format!("column \"{name}\" named in key does not exist")));
        };
        include.push(column.id);
    }
    index::check_options(&clause.options)?;
    let ids: Vec<ColumnId> = clause.columns.iter().filter_map(|name| table.column_named(name)).map(|c| c.id).collect();
    if is_repeated(table, clause, &ids) {
        return Ok(None);
    }
    let name = match &clause.constraint {
        Some(name) if is_taken(catalog, table, name) => return Err(exists("42P07", "relation", name)),
        Some(name) if checks::has_constraint(table, name) => {
            let message = format!("constraint \"{name}\" for relation \"{}\" already exists", table.name);
            return Err(SqlError::new("42710", message));
        }
        Some(name) => name.clone(),
        None => {
            let included = include.iter().map(|id| table.column(*id).name.as_str());
            let joined: Vec<&str> = clause.columns.iter().map(String::as_str).chain(included).collect();
            let taken = |name: &str| {
                checks::has_constraint(table, name)
                    || checks::is_taken(catalog, table.namespace, name)
                    || is_taken(catalog, table, name)
            };
            match clause.primary {
                true => free_name(&table.name, None, "pkey", taken),
                false => free_name(&table.name, Some(&joined.join("_")), "key", taken),
            }
        }
    };
    let constraint = IndexConstraint {
        id: session.db.engine().next_object_id(),
        deferrable: clause.deferral.deferrable,
        initially_deferred: clause.deferral.initially_deferred,
        primary: clause.primary,
    };
    for id in ids.iter().filter(|_| clause.primary) {
        table.columns[id.position()].not_null = true;
    }
    let made = index::make(
        session,
        table,
        IndexParts {
            name,
            method: "btree".into(),
            columns,
            include,
            unique: true,
            nulls_not_distinct: clause.nulls_not_distinct,
            predicate: None,
            options: clause.options.clone(),
            constraint: Some(constraint),
        },
    );
    table.indexes.push(made.clone());
    Ok(Some(made))
}

/// Whether a primary key of these columns is kept by an index alone, and names no rows: files know values of such types
/// by their bytes only, and equal ones may have different bytes.
pub(crate) fn is_kept_by_index(table: &TableDef, columns: &[String]) -> bool {
    let mut types = columns.iter().filter_map(|name| table.column_named(name)).map(|column| &column.ty);
    types.any(names_no_rows)
}

pub(crate) fn names_no_rows(ty: &DataType) -> bool {
    matches!(ty.underlying(), DataType::Array(_) | DataType::Composite(_))
}

/// The clause of a primary key that [`is_kept_by_index`].
pub(crate) fn clause_of(key: &KeyClause) -> UniqueClause {
    UniqueClause {
        constraint: key.constraint.clone(),
        primary: true,
        columns: key.columns.clone(),
        include: key.include.clone(),
        place: key.place,
        ..UniqueClause::default()
    }
}

/// Whether a table has a primary key, one that an index keeps included.
pub(crate) fn has_primary_key(table: &TableDef) -> bool {
    table.primary_key.is_some() || indexed_primary_key(table).is_some()
}

pub(crate) fn indexed_primary_key(table: &TableDef) -> Option<&Arc<IndexDef>> {
    table.indexes.iter().find(|index| index.constraint.is_some_and(|constraint| constraint.primary))
}

fn is_taken(catalog: &Catalog, table: &TableDef, name: &str) -> bool {
    catalog.relation_exists(table.namespace, name)
        || table.name == name
        || table.indexes.iter().any(|index| index.name == name)
}

fn is_repeated(table: &TableDef, clause: &UniqueClause, ids: &[ColumnId]) -> bool {
    if clause.constraint.is_some() || clause.deferral.deferrable || !clause.include.is_empty() {
        return false;
    }
    let key = table.primary_key.as_ref().is_some_and(|key| key.columns == ids && key.include.is_empty());
    let same = |index: &Arc<IndexDef>| {
        index.plain_columns().as_deref() == Some(ids)
            && index.include.is_empty()
            && index.constraint.is_some_and(|constraint| !constraint.deferrable)
            && index.nulls_not_distinct == clause.nulls_not_distinct
    };
    key || table.indexes.iter().any(same)
}

pub(crate) fn plain_column(table: &TableDef, id: ColumnId) -> IndexColumn {
    let column = table.column(id);
    IndexColumn {
        source: IndexSource::Column(id),
        name: column.name.clone(),
        ty: column.ty.clone(),
        descending: false,
        nulls_first: false,
        opclass: None,
        collation: None,
    }
}

/// `ADD CONSTRAINT … USING INDEX`: the index that becomes the constraint's, as it is now.
pub(crate) fn index_for(table: &TableDef, catalog: &Catalog, name: &str) -> Result<Arc<IndexDef>> {
    let Some(index) = table.indexes.iter().find(|index| index.name == name) else {
        return Err(match catalog.index_named(table.namespace, name) {
            Some(_) => SqlError::new("55000", format!("index \"{name}\" does not belong to table \"{}\"", table.name)),
            None => SqlError::new("42704", format!("index \"{name}\" does not exist")),
        });
    };
    let detail = "Cannot create a primary key or unique constraint using such an index.";
    let wrong = |message: String| Err(SqlError::new("42809", message).with_detail(detail));
    if index.constraint.is_some() {
        return Err(SqlError::new("55000", format!("index \"{name}\" is already associated with a constraint")));
    }
    if !index.is_valid() && !index.rests_in_files() {
        return Err(SqlError::new("55000", format!("index \"{name}\" is not valid")));
    }
    if !index.unique {
        return wrong(format!("\"{name}\" is not a unique index"));
    }
    if index.plain_columns().is_none() {
        return wrong(format!("index \"{name}\" contains expressions"));
    }
    if index.predicate.is_some() {
        return wrong(format!("\"{name}\" is a partial index"));
    }
    let odd = |column: &IndexColumn| column.descending || column.nulls_first || column.opclass.is_some();
    if let Some(at) = index.columns.iter().position(odd) {
        return wrong(format!("index \"{name}\" column number {} does not have default sorting behavior", at + 1));
    }
    Ok(index.clone())
}
