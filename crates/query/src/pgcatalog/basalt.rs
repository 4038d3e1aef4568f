//! Schema basalt: the engine's own state (DESIGN section 12).

use super::relations;
use super::rows::{Rows, int4, int8, oid, opt_text, text, yes};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use basalt_types::schema::Distribution;
use basalt_types::{Datum, ObjectId, TabletId};
use std::collections::HashMap;

type Result = std::result::Result<(), SqlError>;

/// As in `shapes.txt`. Oids are of the range that no user object gets.
pub(super) const SHAPES: &str = "\
basalt files 13101 v schema_name:name,table_name:name,table_oid:oid,tablet:int8,file:text,kind:text,rows:int8,deleted_rows:int8,bytes:int8
basalt tablets 13102 v schema_name:name,table_name:name,table_oid:oid,partition_name:name,position:int4,tablet:int8,distribution:text,view:int8,hot_rows:int8,hot_bytes:int8,undo_versions:int8,files:int8
basalt pins 13103 v version:int8,reason:text,age_ms:int8
basalt memory 13104 v name:text,bytes:int8,limit_bytes:int8
basalt freshness 13105 v view_name:name,version:int8,lag_ms:int8
basalt query_log 13106 v started_at:timestamptz,user_name:name,database_name:name,pid:int4,engine:text,duration_us:int8,planning_us:int8,rows:int8,bytes_read:int8,bytes_spilled:int8,memory_bytes:int8,sqlstate:text,query:text
basalt ingest_jobs 13107 v job:int8,table_oid:oid,source:text,state:text,rows:int8,bytes:int8,started:timestamptz,error:text
basalt counters 13108 v name:text,value:int8,kind:text,description:text
basalt background 13109 v doing:text,paused:bool,rounds:int8,frozen_rows:int8,evicted_rows:int8,compactions:int8,checkpoints:int8,errors:int8,panics:int8,failing:text
basalt query_groups 13110 v name:name,share:int4,statements:int8,active:int8,queued:int8,refused:int8,cpu_us:int8
";

/// `freshness` and `ingest_jobs` are empty until their parts report here.
pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "files" => files,
        "tablets" => tablets,
        "pins" => pins,
        "memory" => memory,
        "query_log" => query_log,
        "counters" => counters,
        "query_groups" => query_groups,
        "background" => background,
        _ => return None,
    })
}

/// Schema and name of a table of the session's database.
fn names_of(system: &SystemContext, table: ObjectId) -> Option<(&str, &str)> {
    let table = relations::user_tables(system).find(|candidate| candidate.id == table)?;
    let schema = system.catalog.namespaces.get(&table.namespace).map_or("", |namespace| &namespace.name);
    Some((schema, &table.name))
}

fn files(system: &SystemContext, rows: &mut Rows) -> Result {
    for file in system.engine.file_list() {
        let Some((schema, table)) = names_of(system, file.table) else { continue };
        rows.push([
            ("schema_name", text(schema)),
            ("table_name", text(table)),
            ("table_oid", oid(file.table.0)),
            ("tablet", int8(u64::from(file.tablet.0))),
            ("file", text(&file.file.to_string())),
            ("kind", text(file.kind.name())),
            ("rows", int8(file.rows)),
            ("deleted_rows", int8(file.deleted)),
            ("bytes", int8(file.bytes)),
        ])?;
    }
    Ok(())
}

fn tablets(system: &SystemContext, rows: &mut Rows) -> Result {
    let lines: HashMap<TabletId, _> = system.engine.tablet_list().into_iter().map(|line| (line.tablet, line)).collect();
    for table in relations::user_tables(system) {
        let schema = system.catalog.namespaces.get(&table.namespace).map(|namespace| namespace.name.as_str());
        let distribution = match &table.distribution {
            Distribution::Range => "range",
            Distribution::Hash(_) => "hash",
        };
        for partition in &table.partitions {
            for (position, tablet) in partition.tablets.iter().enumerate() {
                let line = lines.get(tablet);
                let number = |value: Option<u64>| value.map_or(Datum::Null, int8);
                rows.push([
                    ("schema_name", opt_text(schema)),
                    ("table_name", text(&table.name)),
                    ("table_oid", oid(table.id.0)),
                    ("partition_name", text(&partition.name)),
                    ("position", int4(position as i32)),
                    ("tablet", int8(u64::from(tablet.0))),
                    ("distribution", text(distribution)),
                    ("view", number(line.map(|line| line.view.0))),
                    ("hot_rows", number(line.map(|line| line.hot_rows))),
                    ("hot_bytes", number(line.map(|line| line.hot_bytes))),
                    ("undo_versions", number(line.map(|line| line.undo_versions))),
                    ("files", number(line.map(|line| line.files))),
                ])?;
            }
        }
    }
    Ok(())
}

fn pins(system: &SystemContext, rows: &mut Rows) -> Result {
    let now = system.db.os().clock.monotonic();
    for pin in system.engine.pinned() {
        rows.push([
            ("version", int8(pin.version.0)),
            ("reason", text(pin.reason)),
            ("age_ms", int8(now.saturating_sub(pin.since).as_millis() as u64)),
        ])?;
    }
    Ok(())
}

fn memory(system: &SystemContext, rows: &mut Rows) -> Result {
    let limit = system.engine.config().memory_bytes_max;
    rows.push([("name", text("hot rows")), ("bytes", int8(system.engine.hot_bytes())), ("limit_bytes", int8(limit))])?;
    let stats = system.engine.stats();
    rows.push([
        ("name", text("locators")),
        ("bytes", int8(stats.locator_bytes)),
        ("limit_bytes", int8(stats.locator_bytes_max)),
    ])?;
    rows.push([
        ("name", text("row cache")),
        ("bytes", int8(stats.row_cache.bytes)),
        ("limit_bytes", int8(stats.row_cache.bytes_max)),
    ])?;
    rows.push([
        ("name", text("columns of hot rows")),
        ("bytes", int8(stats.mirror_bytes)),
        ("limit_bytes", int8(stats.mirror_bytes_max)),
    ])?;
    rows.push([("name", text("queries")), ("limit_bytes", int8(system.db.config().query_memory_bytes_max))])
}

/// The oldest statement first. What others did is shown to superusers alone, as in `pg_stat_activity`.
fn query_log(system: &SystemContext, rows: &mut Rows) -> Result {
    let superuser = system.catalog.role_named(&system.user).is_some_and(|role| role.superuser);
    for statement in system.db.query_log().list() {
        let visible = superuser || statement.user == system.user;
        let shown = |value: Datum| if visible { value } else { Datum::Null };
        let query = if visible { &statement.query } else { "<insufficient privilege>" };
        rows.push([
            ("started_at", Datum::I64(statement.started_micros)),
            ("user_name", text(&statement.user)),
            ("database_name", text(&statement.database)),
            ("pid", int4(statement.pid)),
            ("engine", shown(opt_text(statement.engine))),
            ("duration_us", shown(int8(statement.took.as_micros() as u64))),
            ("planning_us", shown(int8(statement.planning.as_micros() as u64))),
            ("rows", shown(statement.rows.map_or(Datum::Null, int8))),
            ("bytes_read", shown(int8(statement.bytes_read))),
            ("bytes_spilled", shown(int8(statement.bytes_spilled))),
            ("memory_bytes", shown(int8(statement.memory_bytes_max))),
            ("sqlstate", shown(opt_text(statement.sqlstate))),
            ("query", text(query)),
        ])?;
    }
    Ok(())
}

fn counters(system: &SystemContext, rows: &mut Rows) -> Result {
    for counter in crate::counters::list(&system.db) {
        rows.push([
            ("name", text(counter.name)),
            ("value", int8(counter.value)),
            ("kind", text(counter.kind.name())),
            ("description", text(counter.description)),
        ])?;
    }
    Ok(())
}

fn query_groups(system: &SystemContext, rows: &mut Rows) -> Result {
    for group in system.db.query_group_list() {
        rows.push([
            ("name", text(&group.name)),
            ("share", int4(group.share as i32)),
            ("statements", int8(group.statements as u64)),
            ("active", int8(group.admission.active as u64)),
            ("queued", int8(group.admission.queued as u64)),
            ("refused", int8(group.admission.refused)),
            ("cpu_us", int8(group.spent.as_micros() as u64)),
        ])?;
    }
    Ok(())
}

fn background(system: &SystemContext, rows: &mut Rows) -> Result {
    let status = system.engine.background().status();
    rows.push([
        ("doing", text(&status.doing)),
        ("paused", yes(status.paused)),
        ("rounds", int8(status.rounds)),
        ("frozen_rows", int8(status.frozen_rows)),
        ("evicted_rows", int8(status.evicted_rows)),
        ("compactions", int8(status.compactions)),
        ("checkpoints", int8(status.checkpoints)),
        ("errors", int8(status.errors)),
        ("panics", int8(status.panics)),
        ("failing", opt_text(failing(&status).as_deref())),
    ])
}

/// Work that keeps failing, if there is any.
fn failing(status: &basalt_engine::BackgroundStatus) -> Option<String> {
    let lines = status.failing.iter().map(ToString::to_string).collect::<Vec<_>>();
    (!lines.is_empty()).then(|| lines.join("; "))
}
