//! Names, oids and columns of the virtual tables.
//!
//! `shapes.txt` holds PostgreSQL 15's, one per line: `schema name oid r|v column:type,…`. Schema basalt's
//! are in [`super::basalt`].

use super::{VirtualTable, basalt, fill_of};
use basalt_expr::functions::pattern_types::type_named;
use basalt_types::DataType;
use std::collections::HashMap;
use std::sync::LazyLock;

pub(super) struct Shapes {
    tables: &'static [VirtualTable],
    by_name: HashMap<(&'static str, &'static str), usize>,
    by_oid: HashMap<u32, usize>,
}

impl Shapes {
    pub fn tables(&self) -> &'static [VirtualTable] {
        self.tables
    }

    pub fn by_name(&self, schema: &str, name: &str) -> Option<&'static VirtualTable> {
        self.by_name.get(&(schema, name)).map(|index| &self.tables[*index])
    }

    pub fn by_oid(&self, oid: u32) -> Option<&'static VirtualTable> {
        self.by_oid.get(&oid).map(|index| &self.tables[*index])
    }
}

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let lines = include_str!("shapes.txt").lines().chain(basalt::SHAPES.lines());
    let tables: Vec<VirtualTable> = lines.filter_map(read).collect();
    let tables: &'static [VirtualTable] = Vec::leak(tables);
    let by_name = tables.iter().enumerate().map(|(index, table)| ((table.schema, table.name), index)).collect();
    let by_oid = tables.iter().enumerate().map(|(index, table)| (table.oid, index)).collect();
    Shapes { tables, by_name, by_oid }
});

pub(super) fn all() -> &'static Shapes {
    &SHAPES
}

fn read(line: &'static str) -> Option<VirtualTable> {
    let mut words = line.split(' ');
    let (schema, name, oid, kind) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let columns: Vec<super::ColumnShape> = words
        .next()?
        .split(',')
        .map(|column| column.split_once(':').and_then(|(name, ty)| Some((name, maker(ty)?))))
        .collect::<Option<_>>()?;
    Some(VirtualTable {
        schema,
        name,
        oid: oid.parse().ok()?,
        columns: Vec::leak(columns),
        is_view: kind == "v",
        fill: fill_of(schema, name).unwrap_or(|_, _| Ok(())),
    })
}

/// A plain function that makes the type: the plan asks for types where nothing can be captured.
fn maker(name: &str) -> Option<fn() -> DataType> {
    macro_rules! named {
        ($($name:literal)*) => {
            match name {
                $($name => (|| type_named($name).expect("listed in the catalogue of types")) as fn() -> DataType,)*
                _ => return None,
            }
        };
    }
    Some(named!(
        "bool" "bytea" "char" "date" "float4" "float8" "int2" "int4" "inet" "int8" "interval" "name" "numeric" "oid"
        "pg_lsn" "regproc" "regtype" "text" "timestamp" "timestamptz" "uuid" "varchar" "xid" "jsonb"
        "int2vector" "oidvector" "_bool" "_char" "_float4" "_float8" "_int2" "_int4" "_int8" "_name" "_oid" "_regtype" "_text"
    ))
}
