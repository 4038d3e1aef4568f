//! How large things are.

use super::about::stored_table;
use super::{oid_arg, system, text_arg};
use crate::pgcatalog::relations::{self, Relation};
use basalt_expr::functions::{CallInfo, ScalarKernel};
use basalt_expr::{Error, Result};
use basalt_types::{Datum, ObjectId};

pub(super) fn bind(name: &str, args: &str) -> Option<ScalarKernel> {
    Some(match (name, args) {
        // Primary keys live in their table: it alone has a size.
        ("pg_relation_size" | "pg_total_relation_size" | "pg_table_size", _) => |args, info| {
            Ok(match stored_table(args, info)? {
                Some(Relation::Table(table)) => bytes(system(info)?.engine.table_bytes(table)),
                Some(_) => Datum::I64(0),
                None => Datum::Null,
            })
        },
        ("pg_indexes_size", _) => |_, _| Ok(Datum::I64(0)),
        ("pg_database_size", "name") => |args, info| {
            let name = text_arg(args, 0)?;
            let Some(database) = system(info)?.catalog.database_named(name) else {
                return Err(Error::new("3D000", format!("database \"{name}\" does not exist")));
            };
            database_bytes(database.id, info)
        },
        ("pg_database_size", _) => |args, info| database_bytes(ObjectId(oid_arg(args, 0)?), info),
        ("pg_tablespace_size", _) => |_, info| {
            let system = system(info)?;
            Ok(bytes(system.catalog.tables.values().map(|table| system.engine.table_bytes(table)).sum()))
        },
        ("pg_size_pretty", "int8") => |args, _| match args {
            [Datum::I64(bytes)] => Ok(Datum::text(&pretty(*bytes))),
            other => Err(Error::internal(format!("no size: {other:?}"))),
        },
        ("pg_column_size", _) => |args, _| {
            Ok(Datum::I32(match &args[0] {
                Datum::Null => return Ok(Datum::Null),
                Datum::Bool(_) => 1,
                Datum::I16(_) => 2,
                Datum::I32(_) | Datum::F32(_) => 4,
                Datum::I64(_) | Datum::F64(_) => 8,
                Datum::I128(_) | Datum::Fixed16(_) => 16,
                Datum::Bytes(bytes) => i32::try_from(bytes.len()).unwrap_or(i32::MAX),
            }))
        },
        _ => return None,
    })
}

fn bytes(count: u64) -> Datum {
    Datum::I64(i64::try_from(count).unwrap_or(i64::MAX))
}

fn database_bytes(database: ObjectId, info: &CallInfo) -> Result<Datum> {
    let system = system(info)?;
    let tables = system.catalog.tables.values().filter(|table| {
        let namespace = system.catalog.namespaces.get(&table.namespace);
        !relations::is_system(table.namespace) && namespace.is_some_and(|namespace| namespace.database == database)
    });
    Ok(bytes(tables.map(|table| system.engine.table_bytes(table)).sum()))
}

/// As PostgreSQL: a unit is left when ten thousand of it are reached, halves round away from zero.
fn pretty(bytes: i64) -> String {
    const LIMIT: u64 = 10 * 1024;
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    let sign = if bytes < 0 { "-" } else { "" };
    let mut size = bytes.unsigned_abs();
    if size < LIMIT {
        return format!("{sign}{size} bytes");
    }
    // One bit more than the unit is kept, to round by.
    size >>= 9;
    for unit in UNITS {
        if size < LIMIT * 2 - 1 || unit == "PB" {
            return format!("{sign}{} {unit}", size.div_ceil(2));
        }
        size >>= 10;
    }
    unreachable!("the last unit takes all")
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn sizes_are_told_as_postgresql_tells_them() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (10239, "10239 bytes"),
            (10240, "10 kB"),
            (-10240, "-10 kB"),
            (8192 * 957, "7656 kB"),
            (10485247, "10239 kB"),
            (10485248, "10 MB"),
            (i64::MAX, "8192 PB"),
        ] {
            assert_eq!(pretty(bytes), text, "{bytes}");
        }
    }
}
