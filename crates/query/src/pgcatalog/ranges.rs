//! `pg_range`: range types, what they are over, and the functions that know their values.

use super::rows::{Rows, oid};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use basalt_types::{DataType, RangeKind};

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    (name == "pg_range").then_some(pg_range as Fill)
}

/// Oids of the subtype's operator class, the function that makes values canonical (0: none), and the one that says
/// how far two bounds are apart.
fn facts(kind: RangeKind) -> [u32; 3] {
    match kind {
        RangeKind::Int4 => [1978, 3914, 3922],
        RangeKind::Numeric => [3125, 0, 3924],
        RangeKind::Timestamp => [3128, 0, 3929],
        RangeKind::TimestampTz => [3127, 0, 3930],
        RangeKind::Date => [3122, 3915, 3925],
        RangeKind::Int8 => [3124, 3928, 3923],
    }
}

fn pg_range(_: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    for kind in RangeKind::ALL {
        let [class, canonical, distance] = facts(kind);
        rows.push([
            ("rngtypid", oid(DataType::Range(kind).oid())),
            ("rngsubtype", oid(kind.subtype().oid())),
            ("rngmultitypid", oid(DataType::Multirange(kind).oid())),
            ("rngcollation", oid(0)),
            ("rngsubopc", oid(class)),
            ("rngcanonical", oid(canonical)),
            ("rngsubdiff", oid(distance)),
        ])?;
    }
    Ok(())
}
