//! CREATE TABLE … (LIKE table INCLUDING …): columns of another table, and what is asked for with them.

use super::columns::{Columns, free_name};
use super::comment::{PG_CLASS, PG_CONSTRAINT};
use super::index::{self, IndexParts};
use super::resolve::{self, Relation, no_relation};
use super::{checks, create_table};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{KeyClause, LikeClause};
use basalt_engine::{Catalog, CatalogEdit, CommentKey, privilege};
use basalt_types::schema::{CheckDef, IndexColumn, IndexConstraint, IndexDef, IndexSource};
use basalt_types::{ColumnDef, ColumnId, TableDef};
use std::sync::Arc;

/// What is done when all columns are there.
#[derive(Default)]
pub(crate) struct Later {
    pub key: Option<KeyClause>,
    pub comments: Vec<CatalogEdit>,
}

pub(crate) fn add(
    columns: &mut Columns<'_>,
    session: &Session,
    catalog: &Catalog,
    table: &mut TableDef,
    clause: &LikeClause,
) -> Result<Later> {
    let source = match resolve::find(session, catalog, &clause.table)? {
        Some(Relation::Table(source)) => {
            session.require_on(source.id, privilege::SELECT, &[])?;
            source
        }
        Some(Relation::View(view)) => {
            session.require_on(view.id, privilege::SELECT, &[])?;
            for (name, ty) in &view.columns {
                create_table::push_column(table, name, ty.clone(), false, None)?;
            }
            return Ok(Later::default());
        }
        Some(Relation::Sequence(_)) => {
            let message = format!("relation \"{}\" is invalid in LIKE clause", clause.table.name);
            return Err(SqlError::new("42809", message).with_detail("This operation is not supported for sequences."));
        }
        None => return Err(no_relation("relation", &clause.table)),
    };
    let mut later = Later::default();
    for column in source.live_columns() {
        copy_column(columns, catalog, table, column, clause)?;
        let id = table.columns.last().map_or(column.id, |column| column.id);
        let comment = catalog.comments.get(PG_CLASS, source.id, i32::from(column.id.0));
        if let (true, Some(text)) = (clause.comments, comment) {
            let key = CommentKey { class: PG_CLASS, object: table.id, part: i32::from(id.0) };
            later.comments.push(CatalogEdit::SetComment { key, text: Some(text.to_string()) });
        }
    }
    if clause.constraints {
        for check in &source.checks {
            let id = session.db.engine().next_object_id();
            checks::insert(table, CheckDef { id, ..check.clone() });
            let comment = catalog.comments.get(PG_CONSTRAINT, check.id, 0);
            if let (true, Some(text)) = (clause.comments, comment) {
                let key = CommentKey { class: PG_CONSTRAINT, object: id, part: 0 };
                later.comments.push(CatalogEdit::SetComment { key, text: Some(text.to_string()) });
            }
        }
    }
    if clause.indexes {
        copy_indexes(session, catalog, &source, table);
    }
    if let (true, Some(key)) = (clause.indexes, &source.primary_key) {
        let names = |columns: &[ColumnId]| -> Vec<String> {
            columns.iter().map(|id| source.column(*id).name.clone()).collect()
        };
        let (columns, include) = (names(&key.columns), names(&key.include));
        later.key = Some(KeyClause { constraint: None, columns, include, place: None });
    }
    Ok(later)
}

fn copy_column(
    columns: &mut Columns<'_>,
    catalog: &Catalog,
    table: &mut TableDef,
    column: &ColumnDef,
    clause: &LikeClause,
) -> Result<()> {
    let default = column.default.clone().filter(|_| clause.defaults);
    create_table::push_column(table, &column.name, column.ty.clone(), column.not_null, default)?;
    let Some(copy) = table.columns.last_mut() else { return Ok(()) };
    copy.time_modifier = column.time_modifier;
    copy.generated = column.generated.clone().filter(|_| clause.generated);
    let id = copy.id;
    if let (true, Some(identity)) = (clause.identity, column.identity)
        && let Some(sequence) = catalog.sequences.get(&identity.sequence)
    {
        columns.copy_identity(table, id, sequence, identity.always)?;
    }
    Ok(())
}

/// Indexes and unique constraints, under names of their own. Columns have come in the order of their kind.
fn copy_indexes(session: &Session, catalog: &Catalog, source: &TableDef, table: &mut TableDef) {
    let moved = |id: ColumnId| {
        let name = &source.column(id).name;
        table.column_named(name).map_or(id, |column| column.id)
    };
    let mut copies = Vec::new();
    for index in &source.indexes {
        let columns = index.columns.iter().map(|column| IndexColumn {
            source: match &column.source {
                IndexSource::Column(id) => IndexSource::Column(moved(*id)),
                expression => expression.clone(),
            },
            ..column.clone()
        });
        let columns: Vec<IndexColumn> = columns.collect();
        let include: Vec<ColumnId> = index.include.iter().map(|id| moved(*id)).collect();
        let included = index.include.iter().map(|id| source.column(*id).name.as_str());
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).chain(included).collect();
        let taken = |name: &str| {
            catalog.relation_exists(table.namespace, name)
                || copies.iter().any(|copy: &Arc<IndexDef>| copy.name == name)
                || table.indexes.iter().any(|other| other.name == name)
        };
        let is_primary = index.constraint.is_some_and(|constraint| constraint.primary);
        let label = match index.constraint {
            Some(_) if is_primary => "pkey",
            Some(_) => "key",
            None => "idx",
        };
        let listed = names.join("_");
        let parts = IndexParts {
            name: free_name(&table.name, (!is_primary).then_some(&*listed), label, taken),
            method: index.method.clone(),
            columns,
            include,
            unique: index.unique,
            nulls_not_distinct: index.nulls_not_distinct,
            predicate: index.predicate.clone(),
            options: index.options.clone(),
            constraint: index
                .constraint
                .map(|constraint| IndexConstraint { id: session.db.engine().next_object_id(), ..constraint }),
        };
        copies.push(index::make(session, table, parts));
    }
    table.indexes.extend(copies);
}
