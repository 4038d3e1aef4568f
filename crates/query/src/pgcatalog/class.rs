//! `pg_class` and what hangs on it: attributes, defaults, indexes, constraints, schemas.

use super::definitions::Node;
use super::indexes;
use super::relations::{self, Column, Relation};
use super::rows::{Rows, float4, int2, int2_vector, int2s, int4, oid, oid_vector, opt_text, text, texts, yes};
use super::typing;
use super::{Fill, SystemContext, acls, definitions};
use crate::error::SqlError;
use basalt_engine::catalog::CheckOption;
use basalt_engine::privilege::ObjectClass;
use basalt_types::schema::ForeignKey;
use basalt_types::usertype::row_type_oid;
use basalt_types::{Datum, ObjectId, TableDef};

use std::sync::Arc;

type Result = std::result::Result<(), SqlError>;

/// PostgreSQL's oids of access methods.
pub(super) const HEAP: u32 = 2;
const BTREE: u32 = 403;
const HASH: u32 = 405;
/// PostgreSQL has no such methods, and gives these oids to nothing.
const BITMAP: u32 = 9_901;
const BLOOM: u32 = 9_902;
const BLOCK_BYTES: u64 = 8192;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "pg_class" => pg_class,
        "pg_attribute" => pg_attribute,
        "pg_attrdef" => pg_attrdef,
        "pg_index" => pg_index,
        "pg_constraint" => pg_constraint,
        "pg_namespace" => pg_namespace,
        "pg_sequence" => pg_sequence,
        "pg_sequences" => pg_sequences,
        _ => return None,
    })
}

/// Access methods of indexes.
pub(super) const METHODS: [(u32, &str); 4] = [(BTREE, "btree"), (HASH, "hash"), (BITMAP, "bitmap"), (BLOOM, "bloom")];

fn method_oid(name: &str) -> u32 {
    METHODS.iter().find(|(_, method)| *method == name).map_or(BTREE, |(id, _)| *id)
}

fn pg_class(system: &SystemContext, rows: &mut Rows) -> Result {
    for relation in relations::all(system) {
        let kind = relation.kind();
        let table = if let Relation::Table(table) = &relation { Some(*table) } else { None };
        let pages = table.map_or(0, |table| system.engine.table_bytes(table).div_ceil(BLOCK_BYTES));
        let tuples = table.map_or(if matches!(kind, "r" | "m") { -1.0 } else { 0.0 }, |table| {
            system.engine.estimated_rows(table) as f32
        });
        let access_method = match kind {
            "r" | "m" => HEAP,
            "i" => match &relation {
                Relation::Index(_, index) => method_oid(index.method()),
                _ => BTREE,
            },
            _ => 0,
        };
        let check_option = match &relation {
            Relation::View(view) if view.options.is_empty() => match view.check_option {
                CheckOption::None => None,
                CheckOption::Local => Some("check_option=local"),
                CheckOption::Cascaded => Some("check_option=cascaded"),
            },
            _ => None,
        };
        let given = match &relation {
            Relation::View(view) => Some(&view.options),
            _ => table.map(|table| &table.options),
        };
        let options = match given {
            _ if check_option.is_some() => texts(check_option),
            Some(options) if !options.is_empty() => {
                texts(options.iter().map(|(name, value)| format!("{name}={value}")))
            }
            _ => Datum::Null,
        };
        rows.push([
            ("oid", oid(relation.oid())),
            ("relname", text(relation.name())),
            ("relnamespace", oid(relation.namespace().0)),
            ("reltype", oid(row_type(&relation))),
            ("reloftype", oid(0)),
            ("relowner", oid(relation.owner(&system.catalog))),
            ("relam", oid(access_method)),
            ("relfilenode", oid(if table.is_some() { relation.oid() } else { 0 })),
            ("reltablespace", oid(0)),
            ("relpages", int4(i32::try_from(pages).unwrap_or(i32::MAX))),
            ("reltuples", float4(tuples)),
            ("relallvisible", int4(0)),
            ("reltoastrelid", oid(0)),
            ("relhasindex", yes(table.is_some_and(|table| indexes::of(table).next().is_some()))),
            ("relisshared", yes(false)),
            ("relpersistence", text(if is_temporary(system, &relation) { "t" } else { "p" })),
            ("relkind", text(kind)),
            ("relnatts", int2(relation.columns().len() as i16)),
            ("relchecks", int2(table.map_or(0, |table| table.checks.len() as i16))),
            ("relhasrules", yes(matches!(&relation, Relation::View(_)) || kind == "m")),
            ("relhastriggers", yes(table.is_some_and(|table| has_foreign_keys(system, table)))),
            ("relhassubclass", yes(false)),
            ("relrowsecurity", yes(false)),
            ("relforcerowsecurity", yes(false)),
            ("relispopulated", yes(table.is_none_or(|table| table.is_populated()))),
            ("relreplident", text(if table.is_some() { "d" } else { "n" })),
            ("relispartition", yes(false)),
            ("relrewrite", oid(0)),
            ("relfrozenxid", Datum::I64(0)),
            ("relminmxid", Datum::I64(0)),
            ("relacl", acls::of(&system.catalog, class_of(&relation), ObjectId(relation.oid()), 0)),
            ("reloptions", options),
        ])?;
    }
    Ok(())
}

/// Whether a table has foreign keys or is referred to by one: PostgreSQL's are kept by triggers.
pub(super) fn has_foreign_keys(system: &SystemContext, table: &TableDef) -> bool {
    !table.foreign_keys.is_empty() || system.catalog.references_to(table.id).next().is_some()
}

fn is_temporary(system: &SystemContext, relation: &Relation) -> bool {
    let namespace = system.catalog.namespaces.get(&relation.namespace());
    namespace.is_some_and(|namespace| namespace.name.starts_with(crate::session::names::TEMP_PREFIX))
}

fn class_of(relation: &Relation) -> ObjectClass {
    if let Relation::Sequence(_) = relation { ObjectClass::Sequence } else { ObjectClass::Table }
}

/// The type of a relation's rows.
fn row_type(relation: &Relation) -> u32 {
    match relation {
        Relation::Table(table) => row_type_oid(table.id),
        Relation::View(view) => row_type_oid(view.id),
        Relation::Composite(def) => def.id.0,
        _ => 0,
    }
}

fn pg_attribute(system: &SystemContext, rows: &mut Rows) -> Result {
    for relation in relations::all(system) {
        for column in relation.columns() {
            attribute(system, relation.oid(), &column, rows)?;
        }
    }
    Ok(())
}

fn attribute(system: &SystemContext, relation: u32, column: &Column, rows: &mut Rows) -> Result {
    // An enum is as wide as an oid.
    let fact = match column.ty.underlying() {
        basalt_types::DataType::Enum(_) => typing::fact(26),
        ty => typing::fact(ty.oid()),
    };
    let dropped = format!("........pg.dropped.{}........", column.number);
    let array = matches!(column.ty, basalt_types::DataType::Array(_));
    rows.push([
        ("attrelid", oid(relation)),
        ("attname", text(if column.dropped { &dropped } else { column.name })),
        ("atttypid", oid(if column.dropped { 0 } else { column.ty.oid() })),
        ("attstattarget", int4(-1)),
        ("attlen", int2(fact.map_or(-1, |fact| fact.len))),
        ("attnum", int2(column.number)),
        ("attndims", int4(i32::from(array))),
        ("attcacheoff", int4(-1)),
        ("atttypmod", int4(column.typmod)),
        ("attbyval", yes(fact.is_some_and(|fact| fact.by_value))),
        ("attalign", text(fact.map_or("i", |fact| fact.align))),
        ("attstorage", text(fact.map_or("x", |fact| fact.storage))),
        ("attcompression", text("")),
        ("attnotnull", yes(column.not_null && !column.dropped)),
        ("atthasdef", yes(column.default.is_some() && !column.dropped)),
        ("atthasmissing", yes(false)),
        (
            "attidentity",
            text(match column.identity {
                Some(_) if column.dropped => "",
                Some(true) => "a",
                Some(false) => "d",
                None => "",
            }),
        ),
        ("attgenerated", text(if column.generated && !column.dropped { "s" } else { "" })),
        ("attisdropped", yes(column.dropped)),
        ("attislocal", yes(true)),
        ("attinhcount", int4(0)),
        ("attcollation", oid(fact.map_or(0, |fact| fact.collation))),
        ("attacl", acls::of(&system.catalog, ObjectClass::Column, ObjectId(relation), column.number)),
    ])
}

fn pg_attrdef(system: &SystemContext, rows: &mut Rows) -> Result {
    for table in relations::user_tables(system) {
        for column in table.live_columns() {
            if column.generated.is_none() && column.default.is_none() {
                continue;
            }
            let default = Node::Default(table.id.0, column.id.0).text();
            rows.push([
                ("oid", oid(default_oid(table, column.id.0))),
                ("adrelid", oid(table.id.0)),
                ("adnum", int2(column.id.0 as i16)),
                ("adbin", text(&default)),
            ])?;
        }
    }
    Ok(())
}

/// Defaults are no objects of their own: their oids are made of the table's and the column's, apart from
/// the range that objects are numbered in.
pub(super) fn default_oid(table: &TableDef, column: u16) -> u32 {
    1 << 31 | (table.id.0 << 11 & 0x7fff_f800) | u32::from(column)
}

fn foreign_keys(system: &SystemContext) -> impl Iterator<Item = (&Arc<TableDef>, &Arc<ForeignKey>)> {
    relations::user_tables(system).flat_map(|table| table.foreign_keys.iter().map(move |key| (table, key)))
}

fn pg_index(system: &SystemContext, rows: &mut Rows) -> Result {
    for (table, index) in indexes::all(system) {
        let immediate = !index.constraint().is_some_and(|constraint| constraint.deferrable);
        let (numbers, state) = (index.numbers(), index.state());
        rows.push([
            ("indexrelid", oid(index.oid())),
            ("indrelid", oid(table.id.0)),
            ("indnatts", int2(numbers.len() as i16)),
            ("indnkeyatts", int2(index.key_columns() as i16)),
            ("indisunique", yes(index.is_unique())),
            ("indnullsnotdistinct", yes(index.nulls_not_distinct())),
            ("indisprimary", yes(index.constraint().is_some_and(|constraint| constraint.primary))),
            ("indisexclusion", yes(false)),
            ("indimmediate", yes(immediate)),
            ("indisclustered", yes(false)),
            ("indisvalid", yes(state.is_valid() || index.rests_in_files())),
            ("indcheckxmin", yes(false)),
            ("indisready", yes(state.takes_entries() || index.rests_in_files())),
            ("indislive", yes(state.loses_entries() || index.rests_in_files())),
            ("indisreplident", yes(false)),
            ("indkey", int2_vector(numbers)),
            ("indcollation", oid_vector(index.collations(table))),
            ("indclass", oid_vector((0..index.key_columns()).map(|_| 0))),
            ("indoption", int2_vector(index.sort_options())),
            (
                "indexprs",
                if index.expressions().is_empty() { Datum::Null } else { text(&Node::Index(index.oid()).text()) },
            ),
            ("indpred", opt_text(index.predicate().map(|_| Node::Predicate(index.oid()).text()).as_deref())),
        ])?;
    }
    Ok(())
}

fn pg_constraint(system: &SystemContext, rows: &mut Rows) -> Result {
    super::user_types::constraints(system, rows)?;
    for (table, index) in indexes::all(system) {
        let Some(constraint) = index.constraint() else { continue };
        let numbers = index.numbers();
        rows.push([
            ("oid", oid(constraint.oid)),
            ("conname", text(index.name())),
            ("connamespace", oid(table.namespace.0)),
            ("contype", text(if constraint.primary { "p" } else { "u" })),
            ("condeferrable", yes(constraint.deferrable)),
            ("condeferred", yes(constraint.deferred)),
            ("convalidated", yes(true)),
            ("conrelid", oid(table.id.0)),
            ("contypid", oid(0)),
            ("conindid", oid(index.oid())),
            ("conparentid", oid(0)),
            ("confrelid", oid(0)),
            ("confupdtype", text(" ")),
            ("confdeltype", text(" ")),
            ("confmatchtype", text(" ")),
            ("conislocal", yes(true)),
            ("coninhcount", int4(0)),
            ("connoinherit", yes(true)),
            ("conkey", int2s(numbers.into_iter().take(index.key_columns()))),
        ])?;
    }
    for (table, key) in foreign_keys(system) {
        let numbers = |ids: &[basalt_types::ColumnId]| int2s(ids.iter().map(|id| id.0 as i16));
        let set_columns = match key.set_columns.is_empty() {
            true => Datum::Null,
            false => numbers(&key.set_columns),
        };
        rows.push([
            ("oid", oid(key.id.0)),
            ("conname", text(&key.name)),
            ("connamespace", oid(table.namespace.0)),
            ("contype", text("f")),
            ("condeferrable", yes(key.deferrable)),
            ("condeferred", yes(key.initially_deferred)),
            ("convalidated", yes(key.validated)),
            ("conrelid", oid(table.id.0)),
            ("contypid", oid(0)),
            ("conindid", oid(key.parent_index.0)),
            ("conparentid", oid(0)),
            ("confrelid", oid(key.parent.0)),
            ("confupdtype", text(key.on_update.code())),
            ("confdeltype", text(key.on_delete.code())),
            ("confmatchtype", text(if key.match_full { "f" } else { "s" })),
            ("conislocal", yes(true)),
            ("coninhcount", int4(0)),
            ("connoinherit", yes(true)),
            ("conkey", numbers(&key.columns)),
            ("confkey", numbers(&key.parent_columns)),
            ("confdelsetcols", set_columns),
        ])?;
    }
    for table in relations::user_tables(system) {
        for check in &table.checks {
            let columns = definitions::check_columns(system, table, check);
            rows.push([
                ("oid", oid(check.id.0)),
                ("conname", text(&check.name)),
                ("connamespace", oid(table.namespace.0)),
                ("contype", text("c")),
                ("condeferrable", yes(false)),
                ("condeferred", yes(false)),
                ("convalidated", yes(check.validated)),
                ("conrelid", oid(table.id.0)),
                ("contypid", oid(0)),
                ("conindid", oid(0)),
                ("conparentid", oid(0)),
                ("confrelid", oid(0)),
                ("confupdtype", text(" ")),
                ("confdeltype", text(" ")),
                ("confmatchtype", text(" ")),
                ("conislocal", yes(true)),
                ("coninhcount", int4(0)),
                ("connoinherit", yes(check.no_inherit)),
                ("conkey", int2s(columns)),
                ("conbin", text(&Node::Check(check.id.0).text())),
            ])?;
        }
    }
    Ok(())
}

fn pg_sequence(system: &SystemContext, rows: &mut Rows) -> Result {
    for sequence in relations::user_sequences(system) {
        rows.push([
            ("seqrelid", oid(sequence.id.0)),
            ("seqtypid", oid(sequence.ty.oid())),
            ("seqstart", Datum::I64(sequence.start)),
            ("seqincrement", Datum::I64(sequence.increment)),
            ("seqmax", Datum::I64(sequence.max)),
            ("seqmin", Datum::I64(sequence.min)),
            ("seqcache", Datum::I64(sequence.cache)),
            ("seqcycle", yes(sequence.cycle)),
        ])?;
    }
    Ok(())
}

fn pg_sequences(system: &SystemContext, rows: &mut Rows) -> Result {
    for sequence in relations::user_sequences(system) {
        let state = system.engine.sequence_state(sequence).filter(|state| state.value.is_called);
        let schema = system.catalog.namespaces.get(&sequence.namespace);
        rows.push([
            ("schemaname", text(schema.map_or("", |schema| &schema.name))),
            ("sequencename", text(&sequence.name)),
            ("sequenceowner", text(&sequence.owner)),
            ("data_type", oid(sequence.ty.oid())),
            ("start_value", Datum::I64(sequence.start)),
            ("min_value", Datum::I64(sequence.min)),
            ("max_value", Datum::I64(sequence.max)),
            ("increment_by", Datum::I64(sequence.increment)),
            ("cycle", yes(sequence.cycle)),
            ("cache_size", Datum::I64(sequence.cache)),
            ("last_value", state.map_or(Datum::Null, |state| Datum::I64(state.value.last))),
        ])?;
    }
    Ok(())
}

fn pg_namespace(system: &SystemContext, rows: &mut Rows) -> Result {
    for namespace in relations::namespaces(system) {
        rows.push([
            ("oid", oid(namespace.id.0)),
            ("nspname", text(&namespace.name)),
            ("nspowner", oid(relations::role_oid(&system.catalog, &namespace.owner))),
            ("nspacl", acls::of_schema(&system.catalog, namespace)),
        ])?;
    }
    Ok(())
}
