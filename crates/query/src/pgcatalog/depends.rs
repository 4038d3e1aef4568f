//! `pg_depend`, as far as clients ask for it: which column a sequence goes with, which defaults
//! need a sequence, and what views read.
//!
//! Schema `basalt` with its views is that of an extension in the catalogs, so that pg_dump leaves it out.

use super::class::default_oid;
use super::relations;
use super::rewrite::{PG_REWRITE, relations_of, rule_oid};
use super::rows::{Rows, int4, oid, text, yes};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use crate::statement::comment::PG_CLASS;
use basalt_engine::catalog::{BASALT_SCHEMA, SUPERUSER};

const PG_ATTRDEF: u32 = 2604;
const PG_NAMESPACE: u32 = 2615;
const PG_EXTENSION: u32 = 3079;
/// Below the ids of users' objects, as all that comes with the server.
const EXTENSION: u32 = 13002;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    match name {
        "pg_depend" => Some(pg_depend),
        "pg_extension" => Some(pg_extension),
        _ => None,
    }
}

fn pg_extension(_: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    rows.push([
        ("oid", oid(EXTENSION)),
        ("extname", text("basalt")),
        ("extowner", oid(SUPERUSER.0)),
        ("extnamespace", oid(BASALT_SCHEMA.0)),
        ("extrelocatable", yes(false)),
        ("extversion", text(env!("CARGO_PKG_VERSION"))),
    ])
}

/// Object, and what it needs: class, id, part.
type Object = (u32, u32, i32);

fn pg_depend(system: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    let mut push = |object: Object, on: Object, kind: &str| {
        rows.push([
            ("classid", oid(object.0)),
            ("objid", oid(object.1)),
            ("objsubid", int4(object.2)),
            ("refclassid", oid(on.0)),
            ("refobjid", oid(on.1)),
            ("refobjsubid", int4(on.2)),
            ("deptype", text(kind)),
        ])
    };
    for view in relations::kept_queries(system) {
        let rule = (PG_REWRITE, rule_oid(&view), 0);
        push(rule, (PG_CLASS, view.id.0, 0), "i")?;
        if system.catalog.table(view.id).is_some() {
            // By such rows pg_dump finds materialized views that read others, and refreshes those first.
            push((PG_CLASS, view.id.0, 0), (PG_NAMESPACE, view.namespace.0, 0), "n")?;
        }
        for read in relations_of(&view) {
            push(rule, (PG_CLASS, read.0, 0), "n")?;
        }
    }
    let extension = (PG_EXTENSION, EXTENSION, 0);
    push((PG_NAMESPACE, BASALT_SCHEMA.0, 0), extension, "e")?;
    for table in super::tables().iter().filter(|table| table.schema == "basalt") {
        push((PG_CLASS, table.oid, 0), extension, "e")?;
    }
    for sequence in relations::user_sequences(system) {
        let Some(owner) = sequence.owned_by else { continue };
        let column = (PG_CLASS, owner.table.0, i32::from(owner.column.0));
        push((PG_CLASS, sequence.id.0, 0), column, if owner.internal { "i" } else { "a" })?;
    }
    for table in relations::user_tables(system) {
        for column in table.live_columns() {
            let Some(sql) = column.generated.as_ref().or(column.default.as_ref()) else { continue };
            let own = (PG_ATTRDEF, default_oid(table, column.id.0), 0);
            push(own, (PG_CLASS, table.id.0, i32::from(column.id.0)), "a")?;
            for sequence in relations::user_sequences(system) {
                if sql.to_ascii_lowercase().contains(&format!("'{}'::regclass", sequence.id.0)) {
                    push(own, (PG_CLASS, sequence.id.0, 0), "n")?;
                }
            }
        }
    }
    Ok(())
}
