//! `pg_depend`, as far as clients ask for it: which column a sequence goes with, and which defaults need a sequence.

use super::class::default_oid;
use super::relations;
use super::rows::{Rows, int4, oid, text};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use crate::statement::comment::PG_CLASS;

const PG_ATTRDEF: u32 = 2604;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    (name == "pg_depend").then_some(pg_depend as Fill)
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
