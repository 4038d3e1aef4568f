//! Rows in row format (`types::row`) as values and as columns, and back.

use crate::bulk::hidden_keys_of;
use arrow_array::ArrayRef;
use basalt_hot::Rows;
use basalt_types::batch::RowEncoder;
use basalt_types::row::{Field, RowRef, decode_value};
use basalt_types::{ColumnBuilder, ColumnId, Datum, PhysType, TableDef};

/// All columns of a row in column-id order. `None`: its bytes do not fit the table.
pub(crate) fn decode(table: &TableDef, bytes: &[u8]) -> Option<Vec<Datum>> {
    let row = RowRef::new(bytes)?;
    let mut values = Vec::with_capacity(table.columns.len());
    row.each(
        |at| table.phys_type(at),
        0..table.columns.len(),
        |field| {
            values.push(match field {
                Field::Value(bytes) => decode_value(table.phys_type(values.len()), bytes)?,
                Field::Null => Datum::Null,
            });
            Some(())
        },
    )?;
    values.extend(table.columns.get(row.column_count()..)?.iter().map(|column| column.missing.clone()));
    Some(values)
}

/// The same of some columns, which ascend; the others are null.
pub(crate) fn decode_columns(table: &TableDef, bytes: &[u8], columns: &[ColumnId]) -> Option<Vec<Datum>> {
    let row = RowRef::new(bytes)?;
    if row.column_count() > table.columns.len() {
        return None;
    }
    let mut values = vec![Datum::Null; table.columns.len()];
    let mut wanted = columns.iter().map(|column| column.position());
    row.each(
        |at| table.phys_type(at),
        wanted.clone(),
        |field| {
            let at = wanted.next()?;
            if let Field::Value(bytes) = field {
                values[at] = decode_value(table.phys_type(at), bytes)?;
            }
            Some(())
        },
    )?;
    for at in wanted {
        values[at] = table.columns[at].missing.clone();
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
