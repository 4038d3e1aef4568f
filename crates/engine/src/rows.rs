//! Rows in row format (`types::row`) as values and as columns, and back.

use crate::bulk::hidden_keys_of;
use arrow_array::ArrayRef;
use basalt_hot::Rows;
use basalt_types::batch::RowEncoder;
use basalt_types::row::{Field, RowRef, decode_value};
use basalt_types::{ColumnBuilder, ColumnId, Datum, PhysType, TableDef};

/// All columns of a row in column-id order. `None`: its bytes do not fit the table.
pub(crate) fn decode(table: &TableDef, bytes: &[u8]) -> Option<Vec<Datum>> {
    decode_where(table, bytes, |_| true)
}

/// The same of some columns, which ascend; the others are null.
pub(crate) fn decode_columns(table: &TableDef, bytes: &[u8], columns: &[ColumnId]) -> Option<Vec<Datum>> {
    let mut wanted = columns.iter().peekable();
    decode_where(table, bytes, |at| wanted.next_if(|column| column.position() == at).is_some())
}

fn decode_where(table: &TableDef, bytes: &[u8], mut is_wanted: impl FnMut(usize) -> bool) -> Option<Vec<Datum>> {
    let row = RowRef::new(bytes)?;
    if row.column_count() > table.columns.len() {
        return None;
    }
    let mut values = Vec::with_capacity(table.columns.len());
    let mut fields = row.fields_of(table.each_phys_type());
    for (column, ty) in table.columns.iter().zip(table.each_phys_type()) {
        let (wanted, field) = (is_wanted(values.len()), fields.next());
        values.push(match field {
            Some(field) => match field? {
                Field::Value(bytes) if wanted => decode_value(ty, bytes)?,
                Field::Value(_) | Field::Null => Datum::Null,
            },
            None if wanted => column.missing.clone(),
            None => Datum::Null,
        });
    }
    Some(values)
}

/// Rows as a segment's columns (`file_schema`). `None`: the bytes of one do not fit the table.
pub(crate) fn segment_columns(table: &TableDef, rows: &Rows) -> Option<Vec<ArrayRef>> {
    let types: Vec<PhysType> = table.phys_types();
    let mut builders: Vec<ColumnBuilder> = types.iter().map(|ty| ColumnBuilder::new(*ty, rows.len())).collect();
    for row in rows.iter() {
        let row = RowRef::new(row.row)?;
        for (builder, field) in builders.iter_mut().zip(row.fields(&types)) {
            match field? {
                Field::Null => builder.push_null(),
                Field::Value(bytes) => builder.push_bytes(bytes).then_some(())?,
            }
        }
        for (builder, column) in builders.iter_mut().zip(&table.columns).skip(row.column_count()) {
            builder.push(&column.missing).then_some(())?;
        }
    }
    let mut columns = Vec::with_capacity(types.len() + 1);
    if table.primary_key.is_none() {
        columns.push(hidden_keys_of(rows.iter().map(|row| row.rid)));
    }
    for (builder, column) in builders.iter_mut().zip(&table.columns) {
        if !column.dropped {
            columns.push(builder.finish());
        }
    }
    Some(columns)
}

/// Gives rows of a segment's columns, the hidden key apart, in row format.
pub(crate) fn encoder<'c>(table: &TableDef, live: &'c [ArrayRef]) -> RowEncoder<'c> {
    let mut arrays = live.iter();
    let cells = table.columns.iter().zip(table.each_phys_type()).map(|(column, ty)| match column.dropped {
        true => None,
        false => Some((ty, arrays.next().expect("one array per live column"))),
    });
    RowEncoder::new(cells)
}
