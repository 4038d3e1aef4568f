//! PostgreSQL's readable views over its catalogs: `pg_tables`, `pg_views`, `pg_indexes`, statistics.

use super::definitions;
use super::indexes;
use super::relations::{self, Relation};
use super::rows::{Rows, float4, int4, int8, oid, text, yes};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use basalt_engine::ViewDef;
use basalt_types::{ColumnDef, ObjectId};

type Result = std::result::Result<(), SqlError>;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "pg_tables" => pg_tables,
        "pg_views" => pg_views,
        "pg_matviews" => pg_matviews,
        "pg_indexes" => pg_indexes,
        "pg_stat_user_tables" | "pg_stat_all_tables" => pg_stat_tables,
        "pg_stats" => pg_stats,
        "pg_stat_user_indexes" | "pg_stat_all_indexes" => pg_stat_indexes,
        _ => return None,
    })
}

fn schema_name(system: &SystemContext, namespace: ObjectId) -> &str {
    system.catalog.namespaces.get(&namespace).map_or("", |namespace| &namespace.name)
}

fn pg_tables(system: &SystemContext, rows: &mut Rows) -> Result {
    for relation in relations::all(system).filter(|relation| relation.kind() == "r") {
        let (owner, has_index, has_triggers) = match &relation {
            Relation::Table(table) => {
                let has_index = indexes::of(table).next().is_some();
                (table.owner.as_str(), has_index, super::class::has_foreign_keys(system, table))
            }
            _ => (superuser(system), false, false),
        };
        rows.push([
            ("schemaname", text(schema_name(system, relation.namespace()))),
            ("tablename", text(relation.name())),
            ("tableowner", text(owner)),
            ("hasindexes", yes(has_index)),
            ("hasrules", yes(false)),
            ("hastriggers", yes(has_triggers)),
            ("rowsecurity", yes(false)),
        ])?;
    }
    Ok(())
}

/// The role that owns the catalog.
fn superuser(system: &SystemContext) -> &str {
    system.catalog.roles.get(&basalt_engine::catalog::SUPERUSER).map_or("", |role| &role.name)
}

fn pg_views(system: &SystemContext, rows: &mut Rows) -> Result {
    for view in relations::user_views(system) {
        rows.push([
            ("schemaname", text(schema_name(system, view.namespace))),
            ("viewname", text(&view.name)),
            ("viewowner", text(&view.owner)),
            ("definition", text(&definitions::view_body(system, view))),
        ])?;
    }
    Ok(())
}

fn pg_matviews(system: &SystemContext, rows: &mut Rows) -> Result {
    for table in relations::user_tables(system) {
        let Some(view) = ViewDef::of_materialized(table) else { continue };
        rows.push([
            ("schemaname", text(schema_name(system, table.namespace))),
            ("matviewname", text(&table.name)),
            ("matviewowner", text(&table.owner)),
            ("hasindexes", yes(indexes::of(table).next().is_some())),
            ("ispopulated", yes(table.is_populated())),
            ("definition", text(&definitions::view_body(system, &view))),
        ])?;
    }
    Ok(())
}

fn pg_indexes(system: &SystemContext, rows: &mut Rows) -> Result {
    for (table, index) in indexes::all(system) {
        rows.push([
            ("schemaname", text(schema_name(system, table.namespace))),
            ("tablename", text(&table.name)),
            ("indexname", text(index.name())),
            ("indexdef", text(&index.definition(system, table, true, false))),
        ])?;
    }
    Ok(())
}

fn pg_stat_tables(system: &SystemContext, rows: &mut Rows) -> Result {
    for table in relations::user_tables(system) {
        rows.push([
            ("relid", oid(table.id.0)),
            ("schemaname", text(schema_name(system, table.namespace))),
            ("relname", text(&table.name)),
            ("n_live_tup", int8(system.engine.estimated_rows(table))),
        ])?;
    }
    Ok(())
}

/// What files know of columns that the user may read.
fn pg_stats(system: &SystemContext, rows: &mut Rows) -> Result {
    for table in relations::user_tables(system) {
        let live = system.engine.estimated_rows(table) as f64;
        let statistics = system.engine.statistics_of(table);
        for column in table.live_columns().filter(|column| system.may_read(table, column)) {
            let known = statistics.column(column.id);
            let is_key = table.primary_key.as_ref().is_some_and(|key| key.columns == [column.id]);
            let distinct = if is_key { Some(live) } else { known.distinct.map(|distinct| distinct.min(live)) };
            let (Some(nulls), Some(distinct)) = (known.nulls, distinct) else { continue };
            // A share of the rows, below 0, where the number is expected to grow with them (`pg_statistic.h`).
            let grows = distinct > live * 0.1;
            rows.push([
                ("schemaname", text(schema_name(system, table.namespace))),
                ("tablename", text(&table.name)),
                ("attname", text(&column.name)),
                ("inherited", yes(false)),
                ("null_frac", float4(nulls as f32)),
                ("avg_width", width(column).map_or(basalt_types::Datum::Null, int4)),
                ("n_distinct", float4(if grows { -distinct / live } else { distinct.round() } as f32)),
            ])?;
        }
    }
    Ok(())
}

/// Of a value, if all have the same.
fn width(column: &ColumnDef) -> Option<i32> {
    column.ty.phys()?.fixed_width().map(|bytes| bytes as i32)
}

fn pg_stat_indexes(system: &SystemContext, rows: &mut Rows) -> Result {
    for (table, index) in indexes::all(system) {
        rows.push([
            ("relid", oid(table.id.0)),
            ("indexrelid", oid(index.oid())),
            ("schemaname", text(schema_name(system, table.namespace))),
            ("relname", text(&table.name)),
            ("indexrelname", text(index.name())),
        ])?;
    }
    Ok(())
}
