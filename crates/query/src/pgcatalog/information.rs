//! information_schema (SQL:2016 part 11, as PostgreSQL narrows it): what the session's database holds.

use super::definitions;
use super::relations::{self, Column, Relation};
use super::rows::{Rows, int4, opt_text, text, yes_no};
use super::typing;
use super::{Fill, SystemContext};
use crate::error::SqlError;
use basalt_types::schema::PrimaryKey;
use basalt_types::{DataType, Datum, ObjectId, TableDef};

type Result = std::result::Result<(), SqlError>;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "information_schema_catalog_name" => catalog_name,
        "schemata" => schemata,
        "tables" => tables,
        "columns" => columns,
        "views" => views,
        "table_constraints" => table_constraints,
        "key_column_usage" => key_column_usage,
        "constraint_column_usage" => constraint_column_usage,
        "enabled_roles" => enabled_roles,
        "character_sets" => character_sets,
        _ => return None,
    })
}

fn catalog(system: &SystemContext) -> Datum {
    text(&system.database)
}

fn schema(system: &SystemContext, namespace: ObjectId) -> Datum {
    opt_text(system.catalog.namespaces.get(&namespace).map(|namespace| namespace.name.as_str()))
}

fn catalog_name(system: &SystemContext, rows: &mut Rows) -> Result {
    rows.push([("catalog_name", catalog(system))])
}

fn schemata(system: &SystemContext, rows: &mut Rows) -> Result {
    for namespace in relations::namespaces(system) {
        rows.push([
            ("catalog_name", catalog(system)),
            ("schema_name", text(&namespace.name)),
            ("schema_owner", text(&namespace.owner)),
        ])?;
    }
    Ok(())
}

/// Tables and views, virtual ones too.
fn listed(system: &SystemContext) -> impl Iterator<Item = Relation<'_>> {
    relations::all(system).filter(|relation| relation.kind() != "i")
}

fn tables(system: &SystemContext, rows: &mut Rows) -> Result {
    for relation in listed(system) {
        let view = relation.kind() == "v";
        rows.push([
            ("table_catalog", catalog(system)),
            ("table_schema", schema(system, relation.namespace())),
            ("table_name", text(relation.name())),
            ("table_type", text(if view { "VIEW" } else { "BASE TABLE" })),
            ("is_insertable_into", yes_no(matches!(relation, Relation::Table(_)))),
            ("is_typed", yes_no(false)),
        ])?;
    }
    Ok(())
}

fn columns(system: &SystemContext, rows: &mut Rows) -> Result {
    for relation in listed(system) {
        for column in relation.columns().iter().filter(|column| !column.dropped) {
            push_column(system, &relation, column, rows)?;
        }
    }
    Ok(())
}

fn push_column(system: &SystemContext, relation: &Relation, column: &Column, rows: &mut Rows) -> Result {
    let ty = &column.ty;
    let optional = |value: Option<i32>| value.map_or(Datum::Null, int4);
    let length = character_length(ty);
    let (precision, radix, scale) = numeric_shape(ty);
    rows.push([
        ("table_catalog", catalog(system)),
        ("table_schema", schema(system, relation.namespace())),
        ("table_name", text(relation.name())),
        ("column_name", text(column.name)),
        ("ordinal_position", int4(i32::from(column.number))),
        ("column_default", opt_text(column.default)),
        ("is_nullable", yes_no(!column.not_null)),
        ("data_type", text(&type_name(ty))),
        ("character_maximum_length", optional(length)),
        ("character_octet_length", optional(octet_length(ty, length))),
        ("numeric_precision", optional(precision)),
        ("numeric_precision_radix", optional(radix)),
        ("numeric_scale", optional(scale)),
        ("datetime_precision", optional(datetime_precision(ty))),
        ("udt_catalog", catalog(system)),
        ("udt_schema", text("pg_catalog")),
        ("udt_name", opt_text(typing::fact(ty.oid()).map(|fact| fact.name))),
        ("dtd_identifier", text(&column.number.to_string())),
        ("is_self_referencing", yes_no(false)),
        ("is_identity", yes_no(false)),
        ("identity_cycle", yes_no(false)),
        ("is_generated", text("NEVER")),
        ("is_updatable", yes_no(matches!(relation, Relation::Table(_)))),
    ])
}

/// The type without its modifier; arrays are all called ARRAY.
fn type_name(ty: &DataType) -> String {
    match ty {
        DataType::Array(_) => "ARRAY".to_string(),
        other => other.base().sql_name(),
    }
}

fn character_length(ty: &DataType) -> Option<i32> {
    match ty {
        DataType::Varchar(Some(length)) | DataType::Bpchar(Some(length)) => i32::try_from(*length).ok(),
        _ => None,
    }
}

/// Bytes at most: four per character of UTF-8, 2^30 where characters are not bounded.
fn octet_length(ty: &DataType, length: Option<i32>) -> Option<i32> {
    match ty {
        DataType::Varchar(_) | DataType::Bpchar(_) | DataType::Text => {
            Some(length.map_or(1 << 30, |length| length.saturating_mul(4)))
        }
        _ => None,
    }
}

/// Precision, radix and scale.
fn numeric_shape(ty: &DataType) -> (Option<i32>, Option<i32>, Option<i32>) {
    match ty {
        DataType::Int2 => (Some(16), Some(2), Some(0)),
        DataType::Int4 => (Some(32), Some(2), Some(0)),
        DataType::Int8 => (Some(64), Some(2), Some(0)),
        DataType::Float4 => (Some(24), Some(2), None),
        DataType::Float8 => (Some(53), Some(2), None),
        DataType::Numeric(Some((precision, scale))) => (Some(i32::from(*precision)), Some(10), Some(i32::from(*scale))),
        DataType::Numeric(None) => (None, Some(10), None),
        _ => (None, None, None),
    }
}

fn datetime_precision(ty: &DataType) -> Option<i32> {
    match ty {
        DataType::Date => Some(0),
        DataType::Time | DataType::TimeTz | DataType::Timestamp | DataType::TimestampTz | DataType::Interval => Some(6),
        _ => None,
    }
}

fn views(system: &SystemContext, rows: &mut Rows) -> Result {
    for view in relations::user_views(system) {
        rows.push([
            ("table_catalog", catalog(system)),
            ("table_schema", schema(system, view.namespace)),
            ("table_name", text(&view.name)),
            ("view_definition", text(&definitions::view_body(view))),
            ("check_option", text("NONE")),
            ("is_updatable", yes_no(false)),
            ("is_insertable_into", yes_no(false)),
            ("is_trigger_updatable", yes_no(false)),
            ("is_trigger_deletable", yes_no(false)),
            ("is_trigger_insertable_into", yes_no(false)),
        ])?;
    }
    Ok(())
}

fn keys(system: &SystemContext) -> impl Iterator<Item = (&TableDef, &PrimaryKey)> {
    relations::user_tables(system).filter_map(|table| Some((&**table, table.primary_key.as_ref()?)))
}

/// Primary keys, and each NOT NULL column as the check that PostgreSQL makes of it.
fn table_constraints(system: &SystemContext, rows: &mut Rows) -> Result {
    for table in relations::user_tables(system) {
        let key = table.primary_key.iter().map(|key| (key.constraint_name.clone(), "PRIMARY KEY"));
        let not_null = table
            .live_columns()
            .filter(|column| column.not_null)
            .map(|column| (format!("{}_{}_{}_not_null", table.namespace.0, table.id.0, column.id.0), "CHECK"));
        for (name, kind) in key.chain(not_null) {
            rows.push([
                ("constraint_catalog", catalog(system)),
                ("constraint_schema", schema(system, table.namespace)),
                ("constraint_name", text(&name)),
                ("table_catalog", catalog(system)),
                ("table_schema", schema(system, table.namespace)),
                ("table_name", text(&table.name)),
                ("constraint_type", text(kind)),
                ("is_deferrable", yes_no(false)),
                ("initially_deferred", yes_no(false)),
                ("enforced", yes_no(true)),
            ])?;
        }
    }
    Ok(())
}

fn key_column_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for (table, key) in keys(system) {
        for (index, column) in key.columns.iter().enumerate() {
            rows.push([
                ("constraint_catalog", catalog(system)),
                ("constraint_schema", schema(system, table.namespace)),
                ("constraint_name", text(&key.constraint_name)),
                ("table_catalog", catalog(system)),
                ("table_schema", schema(system, table.namespace)),
                ("table_name", text(&table.name)),
                ("column_name", text(&table.column(*column).name)),
                ("ordinal_position", int4(index as i32 + 1)),
            ])?;
        }
    }
    Ok(())
}

fn constraint_column_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for (table, key) in keys(system) {
        for column in &key.columns {
            rows.push([
                ("table_catalog", catalog(system)),
                ("table_schema", schema(system, table.namespace)),
                ("table_name", text(&table.name)),
                ("column_name", text(&table.column(*column).name)),
                ("constraint_catalog", catalog(system)),
                ("constraint_schema", schema(system, table.namespace)),
                ("constraint_name", text(&key.constraint_name)),
            ])?;
        }
    }
    Ok(())
}

fn enabled_roles(system: &SystemContext, rows: &mut Rows) -> Result {
    let superuser = system.catalog.role_named(&system.user).is_some_and(|role| role.superuser);
    for role in system.catalog.roles.values().filter(|role| superuser || role.name == system.user) {
        rows.push([("role_name", text(&role.name))])?;
    }
    Ok(())
}

fn character_sets(system: &SystemContext, rows: &mut Rows) -> Result {
    rows.push([
        ("character_set_name", text("UTF8")),
        ("character_repertoire", text("UCS")),
        ("form_of_use", text("UTF8")),
        ("default_collate_catalog", catalog(system)),
        ("default_collate_schema", text("pg_catalog")),
        ("default_collate_name", text(super::cluster::LOCALE)),
    ])
}
