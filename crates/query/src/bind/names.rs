//! Identifiers: folded to lower case unless quoted, and looked up along the search path.

use super::BindContext;
use crate::error::{Result, SqlError};
use crate::pgcatalog::{self, VirtualTable};
use basalt_engine::{Namespace, SequenceDef, ViewDef};
use basalt_expr::words;
use basalt_types::TableDef;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use std::sync::Arc;

/// Names that every table has as system columns in PostgreSQL.
pub const SYSTEM_COLUMNS: &[&str] = &["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];

/// An identifier as the catalog knows it.
pub fn fold(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// 42601 for an unquoted word that names no column.
pub fn check_column(name: &ObjectName) -> Result<()> {
    match name.0.first().and_then(ObjectNamePart::as_ident) {
        Some(Ident { value, quote_style: None, .. }) if words::is_reserved(value) => {
            Err(SqlError::syntax(format!("syntax error at or near \"{value}\"")))
        }
        _ => Ok(()),
    }
}

/// The parts of a dotted name.
pub fn parts(name: &ObjectName) -> Result<Vec<String>> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) => Ok(fold(ident)),
            ObjectNamePart::Function(_) => Err(SqlError::syntax("a name is expected here")),
        })
        .collect()
}

/// What a relation name means.
#[derive(Clone)]
pub enum Relation {
    Table(Arc<TableDef>),
    View(Arc<ViewDef>),
    Sequence(Arc<SequenceDef>),
    Virtual(&'static VirtualTable),
}

impl Relation {
    pub fn oid(&self) -> u32 {
        match self {
            Relation::Table(table) => table.id.0,
            Relation::View(view) => view.id.0,
            Relation::Sequence(sequence) => sequence.id.0,
            Relation::Virtual(table) => table.oid,
        }
    }
}

impl BindContext {
    /// Schemas in the order of search, `pg_catalog` first unless the path lists it.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        crate::session::names::searched(&self.search_path)
    }

    pub fn namespace(&self, name: &str) -> Option<&Arc<Namespace>> {
        let name = crate::session::names::named_schema(&self.search_path, name);
        self.catalog.namespace_named(self.database, name)
    }

    fn relation_in(&self, schema: &str, name: &str) -> Option<Relation> {
        if let Some(table) = pgcatalog::find(schema, name) {
            return Some(Relation::Virtual(table));
        }
        let namespace = self.namespace(schema)?;
        if let Some(table) = self.catalog.table_named(namespace.id, name) {
            return Some(Relation::Table(table.clone()));
        }
        if let Some(view) = self.catalog.view_named(namespace.id, name) {
            return Some(Relation::View(view.clone()));
        }
        self.catalog.sequence_named(namespace.id, name).cloned().map(Relation::Sequence)
    }

    /// The relation that a name means, or 42P01 (3F000 is not raised for queries, as in PostgreSQL).
    pub fn relation(&self, name: &ObjectName) -> Result<Relation> {
        let parts = parts(name)?;
        if let Some((id, _)) = super::pinned::relation_marked(&parts) {
            return self.relation_by_id(id);
        }
        let found = match parts.as_slice() {
            [name] => self.schemas().find_map(|schema| self.relation_in(schema, name)),
            [schema, name] => self.relation_in(schema, name),
            [database, schema, name] => {
                if self.catalog.database_named(database).map(|database| database.id) != Some(self.database) {
                    return Err(SqlError::not_supported(format!(
                        "cross-database references are not implemented: \"{}\"",
                        parts.join(".")
                    )));
                }
                self.relation_in(schema, name)
            }
            _ => {
                return Err(SqlError::syntax(format!(
                    "improper relation name (too many dotted names): {}",
                    parts.join(".")
                )));
            }
        };
        found.ok_or_else(|| {
            SqlError::new("42P01", format!("relation \"{}\" does not exist", parts.join(".")))
                .at(super::position::of_name(&self.sql, name))
        })
    }
}
