//! A row of one table on its way to the client: the columns that are looked at, what is left of the condition, the
//! results.

use super::{Cells, RowOut};
use crate::bind::point::columns_of;
use crate::error::{Result, SqlError};
use basalt_engine::SeenRow;
use basalt_expr::tree::Expr;
use basalt_expr::{EvalContext, io};
use basalt_types::row::{Field, RowRef, decode_value};
use basalt_types::{ColumnId, DataType, Datum, PhysType, TableDef};
use smallvec::SmallVec;
use std::sync::Arc;

/// Some columns of a table's rows.
#[derive(PartialEq, Debug)]
pub(super) struct Lens {
    pub table: Arc<TableDef>,
    /// Ascending.
    pub columns: Vec<ColumnId>,
    /// Of the table's columns up to the last of them.
    types: Vec<PhysType>,
}

/// Fields of a row, of the columns that are looked at and that it has: it may be older than columns of its table.
type Fields<'r> = SmallVec<[Field<'r>; 16]>;

impl Lens {
    /// `None`: one of the columns has a type that rows do not hold.
    pub fn new(table: Arc<TableDef>, mut columns: Vec<ColumnId>) -> Option<Lens> {
        columns.sort_unstable();
        columns.dedup();
        let width = columns.last().map_or(0, |last| last.position() + 1);
        let types = table.columns[..width].iter().map(|column| column.ty.phys()).collect::<Option<_>>()?;
        Some(Lens { columns, types, table })
    }

    /// Calls `visit` with the fields of the columns that are looked at, one after the other.
    fn each<'r>(&self, bytes: &'r [u8], visit: impl FnMut(Field<'r>) -> Option<()>) -> Result<()> {
        let positions = self.columns.iter().map(|column| column.position());
        let visited = RowRef::new(bytes).and_then(|row| row.each(|at| self.types[at], positions, visit));
        visited.ok_or_else(|| basalt_engine::Error::Corrupt(format!("a row of {}", self.table.name)).into())
    }

    /// The row in column-id order, null where nobody looks.
    fn decoded(&self, bytes: &[u8]) -> Result<Vec<Datum>> {
        let mut values = vec![Datum::Null; self.table.columns.len()];
        let mut wanted = self.columns.iter().map(|column| column.position());
        self.each(bytes, |field| {
            let at = wanted.next()?;
            values[at] = decoded(self.types[at], field)?;
            Some(())
        })?;
        for at in wanted {
            values[at] = self.table.columns[at].missing.clone();
        }
        Ok(values)
    }

    /// The columns that are looked at, one after the other.
    pub fn read(&self, row: &SeenRow<'_>, out: &mut [Datum]) -> Result<()> {
        match row {
            SeenRow::Values(values) => {
                for (id, slot) in self.columns.iter().zip(out) {
                    *slot = values[id.position()].clone();
                }
            }
            SeenRow::Encoded(bytes) => {
                let mut slots = self.columns.iter().zip(out);
                self.each(bytes, |field| {
                    let (id, slot) = slots.next()?;
                    *slot = decoded(self.types[id.position()], field)?;
                    Some(())
                })?;
                slots.for_each(|(id, slot)| *slot = self.table.columns[id.position()].missing.clone());
            }
        }
        Ok(())
    }
}

fn decoded(ty: PhysType, field: Field<'_>) -> Option<Datum> {
    match field {
        Field::Value(bytes) => decode_value(ty, bytes),
        Field::Null => Some(Datum::Null),
    }
}

/// Results from one row of one table.
#[derive(PartialEq, Debug)]
pub(super) struct Shape {
    pub lens: Lens,
    /// Over the row in column-id order.
    pub filter: Option<Expr>,
    pub outputs: Vec<Output>,
    /// Where something is computed from the row, not only passed on: that may take long, and is done with a copy.
    pub computes: bool,
    /// Whether constants may fail, whatever rows there are.
    checks_constants: bool,
}

#[derive(PartialEq, Debug)]
pub(super) enum Output {
    /// `place`: among the columns that are looked at.
    Column {
        position: usize,
        place: usize,
        ty: DataType,
    },
    Computed {
        expr: Expr,
        ty: DataType,
    },
}

impl Output {
    pub fn computed(&self) -> Option<&Expr> {
        match self {
            Output::Computed { expr, .. } => Some(expr),
            Output::Column { .. } => None,
        }
    }
}

impl Shape {
    /// Expressions are over the row in column-id order.
    pub fn new(table: Arc<TableDef>, filter: Option<Expr>, outputs: Vec<Expr>) -> Option<Shape> {
        let lens = Lens::new(table, columns_of(outputs.iter().chain(&filter)))?;
        let place_of = |index| lens.columns.binary_search(&ColumnId::from_position(index)).ok();
        let outputs = outputs.into_iter().map(|expr| match expr {
            Expr::Column { index, ty } => Some(Output::Column { position: index, place: place_of(index)?, ty }),
            expr => Some(Output::Computed { ty: expr.ty(), expr }),
        });
        let outputs = outputs.collect::<Option<Vec<Output>>>()?;
        let mut shape = Shape { lens, filter, outputs, computes: false, checks_constants: false };
        let computes = shape.exprs().next().is_some();
        let checks_constants = shape.exprs().any(Expr::has_constants);
        (shape.computes, shape.checks_constants) = (computes, checks_constants);
        Some(shape)
    }

    /// What is computed; constants in this order.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.outputs.iter().filter_map(Output::computed).chain(&self.filter)
    }

    pub fn outputs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.outputs.iter_mut().filter_map(|output| match output {
            Output::Computed { expr, .. } => Some(expr),
            Output::Column { .. } => None,
        })
    }

    /// Errors of constants come before all rows.
    pub fn check_constants(&self, eval: &EvalContext) -> Result<()> {
        if self.checks_constants {
            self.exprs().try_for_each(|expr| expr.check_constants(eval))?;
        }
        Ok(())
    }

    /// Whether the row passes. Its results are computed, and not given.
    pub fn skip(&self, row: &SeenRow<'_>, eval: &EvalContext) -> Result<bool> {
        let decoded;
        let values: &[Datum] = match row {
            SeenRow::Encoded(bytes) => {
                decoded = self.lens.decoded(bytes)?;
                &decoded
            }
            SeenRow::Values(values) => values,
        };
        if let Some(filter) = &self.filter
            && filter.eval_scalar(values, eval)? != Datum::Bool(true)
        {
            return Ok(false);
        }
        let computed = self.outputs.iter().filter_map(Output::computed);
        computed.into_iter().try_for_each(|expr| expr.eval_scalar(values, eval).map(drop))?;
        Ok(true)
    }

    /// Gives the row, if it passes.
    pub fn write(&self, row: &SeenRow<'_>, eval: &EvalContext, out: &mut RowOut<'_>) -> Result<bool> {
        let decoded;
        let mut fields = Fields::new();
        let values: &[Datum] = match row {
            SeenRow::Encoded(bytes) if self.computes || matches!(out, RowOut::Batches(_)) => {
                decoded = self.lens.decoded(bytes)?;
                &decoded
            }
            SeenRow::Encoded(bytes) => {
                self.lens.each(bytes, |field| {
                    fields.push(field);
                    Some(())
                })?;
                &[]
            }
            SeenRow::Values(values) => values,
        };
        if let Some(filter) = &self.filter
            && filter.eval_scalar(values, eval)? != Datum::Bool(true)
        {
            return Ok(false);
        }
        let (sink, formats) = match out {
            RowOut::Cells(Cells { sink, formats }) => (&mut **sink, *formats),
            RowOut::Batches(builder) => {
                let values = self.outputs.iter().map(|output| match output {
                    Output::Column { position, .. } => Ok(values[*position].clone()),
                    Output::Computed { expr, .. } => Ok(expr.eval_scalar(values, eval)?),
                });
                builder.push(&values.collect::<Result<Vec<Datum>>>()?)?;
                return Ok(true);
            }
        };
        sink.begin_row(self.outputs.len());
        let written = self.outputs.iter().zip(formats).try_for_each(|(output, format)| match output {
            Output::Column { position, place, ty } => match fields.get(*place) {
                Some(Field::Value(bytes)) => stored_cell(ty, self.lens.types[*position], bytes, *format, eval, sink),
                Some(Field::Null) => {
                    sink.null();
                    Ok(())
                }
                None => {
                    let missing = &self.lens.table.columns[*position].missing;
                    cell(ty, values.get(*position).unwrap_or(missing), *format, eval, sink)
                }
            },
            Output::Computed { expr, ty } => cell(ty, &expr.eval_scalar(values, eval)?, *format, eval, sink),
        });
        ended(written, sink)?;
        Ok(true)
    }
}

/// Ends a row, or takes it back.
pub(super) fn ended(written: Result<()>, sink: &mut dyn super::RowSink) -> Result<()> {
    written.and_then(|()| sink.end_row()).inspect_err(|_| sink.drop_row())
}

pub(super) fn cell(
    ty: &DataType,
    value: &Datum,
    format: i16,
    eval: &EvalContext,
    sink: &mut dyn super::RowSink,
) -> Result<()> {
    if value.is_null() {
        sink.null();
        return Ok(());
    }
    let out = sink.begin_cell();
    match format {
        0 => io::text::format(ty, value, eval, out)?,
        _ => io::binary::format(ty, value, eval, out)?,
    }
    sink.end_cell()
}

/// The same for a value as rows store it.
fn stored_cell(
    ty: &DataType,
    phys: PhysType,
    bytes: &[u8],
    format: i16,
    eval: &EvalContext,
    sink: &mut dyn super::RowSink,
) -> Result<()> {
    // Text looks the same everywhere.
    if matches!(ty, DataType::Text | DataType::Varchar(_)) {
        sink.begin_cell().extend_from_slice(bytes);
        return sink.end_cell();
    }
    let value = decode_value(phys, bytes)
        .ok_or_else(|| SqlError::internal(format!("a value of type {} has another form", ty.sql_name())))?;
    cell(ty, &value, format, eval, sink)
}
