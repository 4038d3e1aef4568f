//! Rows of a virtual table while they are put in, and the cells that they are made of.

use super::VirtualTable;
use crate::error::SqlError;
use arrow_array::ArrayRef;
use basalt_expr::inet::Inet;
use basalt_types::array::{ArrayValue, Dimension};
use basalt_types::{ColumnBuilder, DataType, Datum, PhysType, batch};
use std::net::IpAddr;

/// Collects rows as columns.
pub(super) struct Rows {
    table: &'static VirtualTable,
    builders: Vec<ColumnBuilder>,
}

impl Rows {
    pub fn new(table: &'static VirtualTable) -> Rows {
        let builders = table.columns.iter().map(|(_, ty)| ColumnBuilder::new(phys(&ty()), 64)).collect();
        Rows { table, builders }
    }

    /// Adds a row. Cells come in the table's column order; columns left out are null.
    pub fn push<'a>(&mut self, cells: impl IntoIterator<Item = (&'a str, Datum)>) -> Result<(), SqlError> {
        let mut cells = cells.into_iter().peekable();
        for ((name, _), builder) in self.table.columns.iter().zip(&mut self.builders) {
            match cells.next_if(|(cell, _)| cell == name) {
                None => builder.push_null(),
                Some((_, value)) if builder.push(&value) => {}
                Some((_, value)) => {
                    return Err(SqlError::internal(format!("{:?}.{name} cannot hold {value:?}", self.table)));
                }
            }
        }
        match cells.next() {
            None => Ok(()),
            Some((name, _)) => Err(SqlError::internal(format!("{:?} has no column {name} there", self.table))),
        }
    }

    pub fn finish(mut self) -> Vec<ArrayRef> {
        let columns = self.table.columns.iter().zip(&mut self.builders);
        columns.map(|((_, ty), builder)| batch::to_logical(&ty(), &builder.finish())).collect()
    }
}

fn phys(ty: &DataType) -> PhysType {
    ty.phys().expect("virtual tables have storable types")
}

pub(super) fn oid(id: u32) -> Datum {
    Datum::I64(i64::from(id))
}

pub(super) fn text(text: &str) -> Datum {
    Datum::text(text)
}

pub(super) fn opt_text(text: Option<&str>) -> Datum {
    text.map_or(Datum::Null, Datum::text)
}

/// A host's address.
pub(super) fn inet(ip: Option<IpAddr>) -> Datum {
    ip.map_or(Datum::Null, |ip| Datum::Bytes(Inet::of_ip(ip).encode().into()))
}

pub(super) fn yes(yes: bool) -> Datum {
    Datum::Bool(yes)
}

/// information_schema's booleans.
pub(super) fn yes_no(yes: bool) -> Datum {
    Datum::text(if yes { "YES" } else { "NO" })
}

pub(super) fn int2(value: i16) -> Datum {
    Datum::I16(value)
}

pub(super) fn int4(value: i32) -> Datum {
    Datum::I32(value)
}

pub(super) fn int8(value: u64) -> Datum {
    Datum::I64(i64::try_from(value).unwrap_or(i64::MAX))
}

pub(super) fn float4(value: f32) -> Datum {
    Datum::F32(value)
}

/// A moment in microseconds since 1970.
pub(super) fn micros(value: Option<i64>) -> Datum {
    value.map_or(Datum::Null, Datum::I64)
}

fn array(element: PhysType, values: &[Datum]) -> Datum {
    let mut out = Vec::new();
    basalt_types::row::encode(&vec![element; values.len()], values, &mut out);
    Datum::Bytes(out.into())
}

pub(super) fn int2s(values: impl IntoIterator<Item = i16>) -> Datum {
    array(PhysType::I16, &values.into_iter().map(Datum::I16).collect::<Vec<_>>())
}

pub(super) fn oids(values: impl IntoIterator<Item = u32>) -> Datum {
    array(PhysType::I64, &values.into_iter().map(oid).collect::<Vec<_>>())
}

/// An array that counts from 0.
fn vector(element: PhysType, elements: Vec<Datum>) -> Datum {
    let dimensions = vec![Dimension { lower: 0, length: elements.len() as u32 }];
    ArrayValue { dimensions, elements }.encode(element)
}

pub(super) fn int2_vector(values: impl IntoIterator<Item = i16>) -> Datum {
    vector(PhysType::I16, values.into_iter().map(Datum::I16).collect())
}

pub(super) fn oid_vector(values: impl IntoIterator<Item = u32>) -> Datum {
    vector(PhysType::I64, values.into_iter().map(oid).collect())
}

pub(super) fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Datum {
    array(PhysType::Bytes, &values.into_iter().map(|value| Datum::text(value.as_ref())).collect::<Vec<_>>())
}
