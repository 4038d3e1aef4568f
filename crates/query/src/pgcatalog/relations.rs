//! Everything that `pg_class` lists: tables, views and primary key indexes of the session's database, and
//! the virtual tables themselves.

use super::indexes::{self, Index};
use super::{VirtualTable, shapes, tables};
use crate::system::SystemContext;
use basalt_engine::catalog::{BASALT_SCHEMA, INFORMATION_SCHEMA, PG_CATALOG, SUPERUSER};
use basalt_engine::{Catalog, Namespace, SequenceDef, TypeDef, TypeKind, ViewDef};
use basalt_types::{DataType, ObjectId, TableDef};
use std::sync::Arc;

pub(super) enum Relation<'a> {
    Table(&'a Arc<TableDef>),
    View(&'a Arc<ViewDef>),
    Sequence(&'a Arc<SequenceDef>),
    Index(&'a Arc<TableDef>, Index<'a>),
    Virtual(&'static VirtualTable),
    /// A composite type.
    Composite(&'a Arc<TypeDef>),
}

/// A column as `pg_attribute` tells it.
pub(super) struct Column<'a> {
    pub number: i16,
    pub name: &'a str,
    pub ty: DataType,
    /// `atttypmod`.
    pub typmod: i32,
    pub not_null: bool,
    pub default: Option<&'a str>,
    /// Of identity columns, whether ALWAYS.
    pub identity: Option<bool>,
    pub generated: bool,
    pub dropped: bool,
}

impl<'a> Relation<'a> {
    pub fn oid(&self) -> u32 {
        match self {
            Relation::Table(table) => table.id.0,
            Relation::View(view) => view.id.0,
            Relation::Sequence(sequence) => sequence.id.0,
            Relation::Index(_, index) => index.oid(),
            Relation::Virtual(table) => table.oid,
            Relation::Composite(def) => def.id.0,
        }
    }

    pub fn namespace(&self) -> ObjectId {
        match self {
            Relation::Table(table) | Relation::Index(table, _) => table.namespace,
            Relation::View(view) => view.namespace,
            Relation::Sequence(sequence) => sequence.namespace,
            Relation::Virtual(table) => system_namespace(table.schema),
            Relation::Composite(def) => def.namespace,
        }
    }

    pub fn name(&self) -> &'a str {
        match self {
            Relation::Table(table) => &table.name,
            Relation::View(view) => &view.name,
            Relation::Sequence(sequence) => &sequence.name,
            Relation::Index(_, index) => index.name(),
            Relation::Virtual(table) => table.name,
            Relation::Composite(def) => &def.name,
        }
    }

    pub fn owner(&self, catalog: &Catalog) -> u32 {
        match self {
            Relation::Table(table) | Relation::Index(table, _) => role_oid(catalog, &table.owner),
            Relation::View(view) => role_oid(catalog, &view.owner),
            Relation::Sequence(sequence) => role_oid(catalog, &sequence.owner),
            Relation::Virtual(_) => SUPERUSER.0,
            Relation::Composite(def) => role_oid(catalog, &def.owner),
        }
    }

    /// `relkind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Relation::Table(table) if table.materialized.is_some() => "m",
            Relation::Table(_) => "r",
            Relation::View(_) => "v",
            Relation::Sequence(_) => "S",
            Relation::Index(..) => "i",
            Relation::Virtual(table) if table.is_view => "v",
            Relation::Virtual(_) => "r",
            Relation::Composite(_) => "c",
        }
    }

    pub fn comment(&self) -> Option<&'a str> {
        match self {
            Relation::Table(table) => table.comment.as_deref(),
            Relation::View(view) => view.comment.as_deref(),
            Relation::Sequence(sequence) => sequence.comment.as_deref(),
            Relation::Index(..) | Relation::Virtual(_) | Relation::Composite(_) => None,
        }
    }

    pub fn columns(&self) -> Vec<Column<'a>> {
        match self {
            Relation::Table(table) => table.columns.iter().map(of_table).collect(),
            Relation::View(view) => {
                let columns = view.columns.iter().enumerate();
                let columns = columns.map(|(index, (name, ty))| {
                    let column = plain(index, name, ty.clone());
                    Column { typmod: view.time_modifier(index).unwrap_or(column.typmod), ..column }
                });
                columns.collect()
            }
            Relation::Sequence(_) => {
                let columns = super::SEQUENCE_COLUMNS.iter().enumerate();
                let columns = columns.map(|(index, (name, ty, _))| plain(index, name, ty.clone()));
                columns.map(|column| Column { not_null: true, ..column }).collect()
            }
            Relation::Index(table, index) => {
                let columns = index.columns(table).into_iter().enumerate();
                columns.map(|(at, (name, ty))| plain(at, name, ty)).collect()
            }
            Relation::Virtual(table) => {
                let columns = table.columns.iter().enumerate();
                columns.map(|(index, (name, ty))| plain(index, name, ty())).collect()
            }
            Relation::Composite(def) => {
                let TypeKind::Composite(attributes) = &def.kind else { return Vec::new() };
                let attributes = attributes.iter().enumerate();
                attributes
                    .map(|(index, attribute)| Column {
                        dropped: attribute.dropped,
                        typmod: attribute.time_modifier.unwrap_or_else(|| attribute.ty.typmod()),
                        ..plain(index, &attribute.name, attribute.ty.clone())
                    })
                    .collect()
            }
        }
    }
}

fn of_table(column: &basalt_types::ColumnDef) -> Column<'_> {
    Column {
        number: column.id.0 as i16,
        name: &column.name,
        ty: column.ty.clone(),
        typmod: column.typmod(),
        not_null: column.not_null,
        default: column.generated.as_deref().or(column.default.as_deref()),
        identity: column.identity.map(|identity| identity.always),
        generated: column.generated.is_some(),
        dropped: column.dropped,
    }
}

fn plain(index: usize, name: &str, ty: DataType) -> Column<'_> {
    Column {
        number: index as i16 + 1,
        name,
        typmod: ty.typmod(),
        ty,
        not_null: false,
        default: None,
        identity: None,
        generated: false,
        dropped: false,
    }
}

/// Schemas of the session's database, and those that every database has.
pub(super) fn namespaces(system: &SystemContext) -> impl Iterator<Item = &Arc<Namespace>> {
    let database = database_oid(system);
    system
        .catalog
        .namespaces
        .values()
        // The system's schemas are the cluster's; each database has them by name only.
        .filter(move |namespace| {
            is_system(namespace.id) || namespace.database == database && !is_system_name(&namespace.name)
        })
}

pub(super) fn is_system(namespace: ObjectId) -> bool {
    matches!(namespace, PG_CATALOG | INFORMATION_SCHEMA | BASALT_SCHEMA)
}

pub(super) fn is_system_name(schema: &str) -> bool {
    matches!(schema, "pg_catalog" | "information_schema" | "basalt")
}

pub(super) fn system_namespace(schema: &str) -> ObjectId {
    match schema {
        "pg_catalog" => PG_CATALOG,
        "information_schema" => INFORMATION_SCHEMA,
        _ => BASALT_SCHEMA,
    }
}

pub(super) fn database_oid(system: &SystemContext) -> ObjectId {
    system.catalog.database_named(&system.database).map_or(ObjectId(0), |database| database.id)
}

/// Tables of the session's database.
pub(super) fn user_tables(system: &SystemContext) -> impl Iterator<Item = &Arc<TableDef>> {
    system.catalog.tables.values().filter(|table| in_database(system, table.namespace))
}

/// Views of the session's database.
pub(super) fn user_views(system: &SystemContext) -> impl Iterator<Item = &Arc<ViewDef>> {
    system.catalog.views.values().filter(|view| in_database(system, view.namespace))
}

/// Views and materialized views of the session's database.
pub(super) fn kept_queries(system: &SystemContext) -> impl Iterator<Item = Arc<ViewDef>> {
    system.catalog.kept_queries().filter(|view| in_database(system, view.namespace))
}

/// Sequences of the session's database.
pub(super) fn user_sequences(system: &SystemContext) -> impl Iterator<Item = &Arc<SequenceDef>> {
    system.catalog.sequences.values().filter(|sequence| in_database(system, sequence.namespace))
}

fn in_database(system: &SystemContext, namespace: ObjectId) -> bool {
    let namespace = system.catalog.namespaces.get(&namespace);
    namespace.is_some_and(|namespace| namespace.database == database_oid(system))
}

/// All relations of the session's database, virtual ones last.
pub(super) fn all(system: &SystemContext) -> impl Iterator<Item = Relation<'_>> {
    let tables_and_keys = user_tables(system).flat_map(|table| {
        let indexes = indexes::of(table).map(move |index| Relation::Index(table, index));
        std::iter::once(Relation::Table(table)).chain(indexes)
    });
    let others = user_views(system).map(Relation::View).chain(user_sequences(system).map(Relation::Sequence));
    let others = others.chain(super::user_types::composites(system).map(Relation::Composite));
    tables_and_keys.chain(others).chain(tables().iter().map(Relation::Virtual))
}

/// The relation of an oid, in any database.
pub(super) fn by_oid(catalog: &Catalog, oid: u32) -> Option<Relation<'_>> {
    if let Some(table) = shapes::all().by_oid(oid) {
        return Some(Relation::Virtual(table));
    }
    let id = ObjectId(oid);
    if let Some(table) = catalog.tables.get(&id) {
        return Some(Relation::Table(table));
    }
    if let Some(view) = catalog.views.get(&id) {
        return Some(Relation::View(view));
    }
    if let Some(sequence) = catalog.sequences.get(&id) {
        return Some(Relation::Sequence(sequence));
    }
    if let Some(def) = catalog.types.get(&id).filter(|def| matches!(def.kind, TypeKind::Composite(_))) {
        return Some(Relation::Composite(def));
    }
    catalog.tables.values().find_map(|table| {
        let index = indexes::of(table).find(|index| index.oid() == oid)?;
        Some(Relation::Index(table, index))
    })
}

/// The oid of a role; the superuser's if it is gone.
pub(super) fn role_oid(catalog: &Catalog, name: &str) -> u32 {
    catalog.role_named(name).map_or(SUPERUSER.0, |role| role.id.0)
}
