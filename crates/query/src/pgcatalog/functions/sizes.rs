//! How large things are.

use super::about::stored_table;
use super::{oid_arg, system, text_arg};
use crate::pgcatalog::relations::{self, Relation};
use basalt_expr::functions::{CallInfo, ScalarKernel};
use basalt_expr::{Error, Numeric, Result};
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
        ("pg_size_pretty", _) => |args, info| {
            pretty_numeric(Numeric::from_datum(&args[0], &info.arg_types[0])?).map(|text| Datum::text(&text))
        },
        ("pg_size_bytes", _) => |args, _| size_bytes(text_arg(args, 0)?).map(Datum::I64),
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

/// As [`pretty`], for sizes of any length; fractions are told of bytes alone.
fn pretty_numeric(size: Numeric) -> Result<String> {
    let text = |size: &Numeric| {
        let mut out = Vec::new();
        size.write_text(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    let limit = |bytes: i64| Numeric::from(bytes);
    if size.clone().abs() < limit(10 * 1024) {
        return Ok(format!("{} bytes", text(&size)));
    }
    // One bit more than the unit is kept, to round by.
    let mut size = size.div_trunc(&Numeric::from(512i64))?;
    for unit in ["kB", "MB", "GB", "TB", "PB"] {
        if size.clone().abs() < limit(20 * 1024 - 1) || unit == "PB" {
            let away = Numeric::from(if size.signum() < 0 { -1i64 } else { 1 });
            return Ok(format!("{} {unit}", text(&size.add(&away)?.div_trunc(&Numeric::from(2i64))?)));
        }
        size = size.div_trunc(&Numeric::from(1024i64))?;
    }
    Ok(text(&size))
}

/// A number with a unit, as in `1.5 GB`, in bytes.
fn size_bytes(text: &str) -> Result<i64> {
    let invalid = || Error::invalid_parameter(format!("invalid size: \"{text}\""));
    let body = text.trim_start();
    let bytes = body.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let mut end = digits(start);
    let mut any = end > start;
    if bytes.get(end) == Some(&b'.') {
        let after = digits(end + 1);
        any |= after > end + 1;
        end = after;
    }
    if !any {
        return Err(invalid());
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let after = if sign <= bytes.len() { digits(sign) } else { sign };
        if after > sign {
            end = after;
        }
    }
    let number = Numeric::parse(&body[..end])?;
    let unit = body[end..].trim();
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "bytes" => 0,
        "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        "tb" => 40,
        "pb" => 50,
        _ => {
            return Err(invalid()
                .with_detail(format!("Invalid size unit: \"{unit}\"."))
                .with_hint("Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\"."));
        }
    };
    number.mul(&Numeric::from(1i64 << shift))?.to_i64()
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
