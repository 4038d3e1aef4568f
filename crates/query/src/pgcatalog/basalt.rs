//! Schema basalt: the engine's own state (DESIGN section 12).

use super::relations;
use super::rows::{Rows, int4, int8, oid, text};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use basalt_types::schema::Distribution;

type Result = std::result::Result<(), SqlError>;

/// As in `shapes.txt`. Oids are of the range that no user object gets.
pub(super) const SHAPES: &str = "\
basalt tablets 13101 v tablet:int8,table_oid:oid,schema_name:name,table_name:name,partition_name:name,distribution:text,position:int4
basalt counters 13108 v name:text,value:int8
";

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "tablets" => tablets,
        "counters" => counters,
        _ => return None,
    })
}

fn tablets(system: &SystemContext, rows: &mut Rows) -> Result {
    for table in relations::user_tables(system) {
        let schema = system.catalog.namespaces.get(&table.namespace).map_or("", |namespace| &namespace.name);
        let distribution = match &table.distribution {
            Distribution::Range => "range",
            Distribution::Hash(_) => "hash",
        };
        for partition in &table.partitions {
            for (position, tablet) in partition.tablets.iter().enumerate() {
                rows.push([
                    ("tablet", int8(u64::from(tablet.0))),
                    ("table_oid", oid(table.id.0)),
                    ("schema_name", text(schema)),
                    ("table_name", text(&table.name)),
                    ("partition_name", text(&partition.name)),
                    ("distribution", text(distribution)),
                    ("position", int4(position as i32)),
                ])?;
            }
        }
    }
    Ok(())
}

fn counters(system: &SystemContext, rows: &mut Rows) -> Result {
    for (name, value) in system.db.stats().list() {
        rows.push([("name", text(name)), ("value", int8(value))])?;
    }
    Ok(())
}
