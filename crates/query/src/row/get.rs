//! One row by its whole primary key.

use super::{RowRun, RowSink};
use crate::bind::point::PointQuery;
use crate::error::{Result, SqlError};
use basalt_engine::SeenRow;
use basalt_expr::tree::Expr;
use basalt_expr::{EvalContext, io};
use basalt_types::row::{Field, RowRef};
use basalt_types::{ColumnId, DataType, Datum, PhysType, TableDef, TabletId, key};
use smallvec::SmallVec;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Get {
    table: Arc<TableDef>,
    /// In key order, each of its column's type.
    key: Vec<KeyPart>,
    /// What the key does not settle. Over the row.
    filter: Option<Expr>,
    outputs: Vec<Output>,
    /// Columns that are looked at, ascending.
    columns: Vec<ColumnId>,
    /// Of the table's columns up to the last that is looked at.
    types: Vec<PhysType>,
    /// Where something is computed from the row, not only passed on: that may take long, and is done with a copy.
    computes: bool,
    /// Whether constants may fail where there is no row.
    checks_constants: bool,
}

#[derive(Debug)]
struct KeyPart {
    value: Expr,
    ty: DataType,
}

#[derive(Debug)]
enum Output {
    Column { position: usize, ty: DataType },
    Computed { expr: Expr, ty: DataType },
}

/// A longer row is copied before it is written: nobody waits for a latch so long.
const LOOK_BYTES_MAX: usize = 16 << 10;

/// Fields of a row, as far as a plan looks.
type Fields<'r> = SmallVec<[Field<'r>; 32]>;

impl Get {
    pub fn of(point: PointQuery) -> Option<Get> {
        let table = point.table;
        let primary_key = table.primary_key.as_ref()?;
        let key = point.access.key.into_iter().zip(&primary_key.columns);
        let key: Vec<KeyPart> = key.map(|(value, id)| KeyPart { value, ty: table.column(*id).ty.clone() }).collect();
        let filter = residual(point.filter, primary_key.columns.len());
        let outputs = point.outputs.into_iter().map(|expr| match expr {
            Expr::Column { index, ty } => Output::Column { position: index, ty },
            expr => Output::Computed { ty: expr.ty(), expr },
        });
        let outputs: Vec<Output> = outputs.collect();
        let mut used = vec![false; table.columns.len()];
        let computed = |output: &Output| match output {
            Output::Computed { expr, .. } => Some(expr.clone()),
            Output::Column { .. } => None,
        };
        let exprs: Vec<Expr> = outputs.iter().filter_map(computed).chain(filter.clone()).collect();
        for expr in &exprs {
            expr.walk(&mut |node| {
                if let Expr::Column { index, .. } = node {
                    used[*index] = true;
                }
                true
            });
        }
        for output in &outputs {
            if let Output::Column { position, .. } = output {
                used[*position] = true;
            }
        }
        let width = used.iter().rposition(|used| *used).map_or(0, |last| last + 1);
        let types = table.columns[..width].iter().map(|column| column.ty.phys()).collect::<Option<_>>()?;
        let columns = table.columns.iter().zip(&used).filter(|(_, used)| **used).map(|(column, _)| column.id);
        let is_call = |node: &Expr| !matches!(node, Expr::Const { .. } | Expr::Param { .. } | Expr::Column { .. });
        Some(Get {
            columns: columns.collect(),
            computes: !exprs.is_empty(),
            checks_constants: exprs.iter().any(|expr| expr.any(&mut |node| is_call(node))),
            key,
            filter,
            outputs,
            types,
            table,
        })
    }

    pub fn run(&self, run: RowRun<'_>, sink: &mut dyn RowSink) -> Result<u64> {
        let RowRun { engine, at, eval, formats, scratch } = run;
        scratch.key.clear();
        for part in &self.key {
            if !part.encode(eval, &mut scratch.key)? {
                return self.nothing(eval);
            }
        }
        let tablets: SmallVec<[TabletId; 1]> = match engine.tablet_of(&self.table, &scratch.key) {
            Some(tablet) => SmallVec::from_buf([tablet]),
            None => self.table.tablets().collect(),
        };
        let mut rows = 0;
        for tablet in tablets {
            let seen = engine.look(&self.table, tablet, &scratch.key, at, &self.columns, |row| match row {
                SeenRow::Encoded(bytes) if self.computes || bytes.len() > LOOK_BYTES_MAX => Err(bytes.to_vec()),
                row => Ok(self.write(row, eval, formats, sink)),
            });
            let written = match seen? {
                Some(Ok(written)) => written?,
                Some(Err(bytes)) => self.write(SeenRow::Encoded(&bytes), eval, formats, sink)?,
                None => false,
            };
            rows += u64::from(written);
        }
        if rows == 0 { self.nothing(eval) } else { Ok(rows) }
    }

    /// Errors of constants come even where there is no row.
    fn nothing(&self, eval: &EvalContext) -> Result<u64> {
        if self.checks_constants {
            let computed = self.outputs.iter().filter_map(|output| match output {
                Output::Computed { expr, .. } => Some(expr),
                Output::Column { .. } => None,
            });
            self.filter.iter().chain(computed).try_for_each(|expr| expr.check_constants(eval))?;
        }
        Ok(0)
    }

    /// Whether the row passes.
    fn write(&self, row: SeenRow<'_>, eval: &EvalContext, formats: &[i16], sink: &mut dyn RowSink) -> Result<bool> {
        let values;
        let (fields, datums): (Fields<'_>, &[Datum]) = match &row {
            SeenRow::Encoded(bytes) => {
                let fields = self.fields(bytes)?;
                values = if self.computes { self.decoded(&fields)? } else { Vec::new() };
                (fields, &values)
            }
            SeenRow::Values(values) => (Fields::new(), values),
        };
        if let Some(filter) = &self.filter
            && filter.eval_scalar(datums, eval)? != Datum::Bool(true)
        {
            return Ok(false);
        }
        sink.begin_row(self.outputs.len());
        let written = self.outputs.iter().zip(formats).try_for_each(|(output, format)| match output {
            Output::Column { position, ty } => match fields.get(*position) {
                Some(Field::Value(bytes)) => stored_cell(ty, self.types[*position], bytes, *format, eval, sink),
                Some(Field::Null) => {
                    sink.null();
                    Ok(())
                }
                None => {
                    let missing = &self.table.columns[*position].missing;
                    cell(ty, datums.get(*position).unwrap_or(missing), *format, eval, sink)
                }
            },
            Output::Computed { expr, ty } => cell(ty, &expr.eval_scalar(datums, eval)?, *format, eval, sink),
        });
        match written.and_then(|()| sink.end_row()) {
            Ok(()) => Ok(true),
            Err(error) => {
                sink.drop_row();
                Err(error)
            }
        }
    }

    /// Those that the row has: it may be older than columns of its table.
    fn fields<'r>(&'r self, bytes: &'r [u8]) -> Result<Fields<'r>> {
        let damaged = || SqlError::from(basalt_engine::Error::Corrupt(format!("a row of {}", self.table.name)));
        let row = RowRef::new(bytes).ok_or_else(damaged)?;
        row.fields(&self.types).collect::<Option<Fields<'r>>>().ok_or_else(damaged)
    }

    /// The row as values, null where nobody looks.
    fn decoded(&self, fields: &Fields<'_>) -> Result<Vec<Datum>> {
        let mut values = vec![Datum::Null; self.table.columns.len()];
        for id in &self.columns {
            let at = id.position();
            values[at] = match fields.get(at) {
                Some(Field::Value(bytes)) => basalt_types::row::decode_value(self.types[at], bytes)
                    .ok_or_else(|| SqlError::internal(format!("a value of {} has another form", self.table.name)))?,
                Some(Field::Null) => Datum::Null,
                None => self.table.columns[at].missing.clone(),
            };
        }
        Ok(values)
    }
}

impl KeyPart {
    /// False: null, which no key is.
    fn encode(&self, eval: &EvalContext, out: &mut Vec<u8>) -> Result<bool> {
        let computed;
        let value = match &self.value {
            Expr::Param { index, .. } => eval.params.get(*index).unwrap_or(&Datum::Null),
            Expr::Const { value, .. } => value,
            expr => {
                computed = expr.eval_scalar(&[], eval)?;
                &computed
            }
        };
        if value.is_null() {
            return Ok(false);
        }
        key::encode_column(&self.ty, value, out);
        Ok(true)
    }
}

/// What of the condition is left once every key column equals its part. A condition of exactly as many equalities as
/// the key has columns is those.
fn residual(filter: Expr, key_columns: usize) -> Option<Expr> {
    let equalities = filter.clone().split_and();
    match equalities.len() == key_columns {
        true => None,
        false => Some(filter),
    }
}

fn cell(ty: &DataType, value: &Datum, format: i16, eval: &EvalContext, sink: &mut dyn RowSink) -> Result<()> {
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
    sink: &mut dyn RowSink,
) -> Result<()> {
    // Text looks the same everywhere.
    if matches!(ty, DataType::Text | DataType::Varchar(_)) {
        sink.begin_cell().extend_from_slice(bytes);
        return sink.end_cell();
    }
    let value = basalt_types::row::decode_value(phys, bytes)
        .ok_or_else(|| SqlError::internal(format!("a value of type {} has another form", ty.sql_name())))?;
    cell(ty, &value, format, eval, sink)
}
