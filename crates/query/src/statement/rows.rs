//! Rows on their way into a table: constraint errors with their evidence, and RETURNING.

use super::lock_rows::Means;
use crate::bind::{Bound, Returning};
use crate::error::{ErrorObject, Result, SqlError};
use crate::plan::HeldRows;
use crate::session::outcome::{Outcome, ResultColumn, RowSource, RowStream};
use crate::session::params;
use crate::system::SystemContext;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use basalt_engine::{Catalog, Txn};
use basalt_expr::EvalContext;
use basalt_types::schema::{ColumnDef, IndexDef, IndexSource};
use basalt_types::{ColumnBuilder, ColumnId, DataType, Datum, Key, ObjectId, TableDef, batch};
use std::sync::Arc;

/// Rows per batch of computed results.
const BATCH_ROWS: usize = 8_192;
/// So many rows are kept as they are: columns of so few cost more to make than the rows themselves.
const FEW_ROWS: usize = 16;

/// What a data-changing statement did.
pub(crate) struct Written {
    pub rows: u64,
    pub returning: Option<Returned>,
}

impl Written {
    pub fn outcome(self, bound: &Bound, verb: &'static str) -> Result<Outcome> {
        Ok(match (self.returning, bound.columns()) {
            (Some(rows), Some(columns)) => {
                Outcome::Rows(RowStream::new(columns, RowSource::ready(rows.into_batches()?), verb))
            }
            _ => Outcome::Command { tag: format!("{verb} {}", self.rows) },
        })
    }
}

/// What RETURNING has given.
pub(crate) enum Returned {
    Few(FewRows),
    Batches(Vec<RecordBatch>),
}

impl Returned {
    pub fn into_batches(self) -> Result<Vec<RecordBatch>> {
        match self {
            Returned::Few(few) => few.into_builder()?.finish(),
            Returned::Batches(batches) => Ok(batches),
        }
    }
}

/// Rows as they came.
pub(crate) struct FewRows {
    types: Vec<DataType>,
    pub rows: Vec<Vec<Datum>>,
}

impl FewRows {
    fn into_builder(self) -> Result<RowsBuilder> {
        let mut builder = RowsBuilder::new(self.types)?;
        self.rows.iter().try_for_each(|row| builder.push(row))?;
        Ok(builder)
    }
}

/// Rows as columns of given types.
pub(crate) struct RowsBuilder {
    types: Vec<DataType>,
    builders: Vec<ColumnBuilder>,
    rows: usize,
    batches: Vec<RecordBatch>,
}

impl RowsBuilder {
    pub fn new(types: Vec<DataType>) -> Result<RowsBuilder> {
        let builders = types.iter().map(|ty| {
            let phys = ty.phys().ok_or_else(|| not_storable(ty))?;
            Ok(ColumnBuilder::new(phys, 0))
        });
        Ok(RowsBuilder { builders: builders.collect::<Result<_>>()?, types, rows: 0, batches: Vec::new() })
    }

    pub fn push(&mut self, values: &[Datum]) -> Result<()> {
        for ((value, builder), ty) in values.iter().zip(&mut self.builders).zip(&self.types) {
            if !builder.push(value) {
                return Err(SqlError::internal(format!("a value of type {} has another form", ty.sql_name())));
            }
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let arrays = self.types.iter().zip(&mut self.builders);
        let arrays = arrays.map(|(ty, builder)| batch::to_logical(ty, &builder.finish())).collect();
        self.batches.push(record_batch(arrays, self.rows)?);
        self.rows = 0;
        Ok(())
    }

    pub fn finish(mut self) -> Result<Vec<RecordBatch>> {
        if self.rows > 0 {
            self.flush()?;
        }
        Ok(self.batches)
    }
}

fn not_storable(ty: &DataType) -> SqlError {
    SqlError::not_supported(format!("a result of type {} is not supported here", ty.sql_name()))
}

/// Unnamed columns side by side.
pub(crate) fn record_batch(arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let fields: Vec<Field> = arrays
        .iter()
        .enumerate()
        .map(|(i, array)| Field::new(i.to_string(), array.data_type().clone(), true))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|error| SqlError::internal(error.to_string()))
}

/// Text rows, for SHOW and EXPLAIN.
pub(crate) fn text_rows(columns: Vec<ResultColumn>, rows: &[Vec<String>], verb: &'static str) -> Result<Outcome> {
    let mut builder = RowsBuilder::new(vec![DataType::Text; columns.len()])?;
    for row in rows {
        let values: Vec<Datum> = row.iter().map(|text| Datum::text(text)).collect();
        builder.push(&values)?;
    }
    Ok(Outcome::Rows(RowStream::new(columns, RowSource::ready(builder.finish()?), verb)))
}

/// Collects RETURNING's rows, if there is such a clause.
pub(crate) struct ReturningRows<'a> {
    clause: Option<(&'a Returning, Gathered)>,
    table: &'a TableDef,
}

enum Gathered {
    Few(FewRows),
    Many(RowsBuilder),
}

impl Gathered {
    fn push(&mut self, row: Vec<Datum>) -> Result<()> {
        match self {
            Gathered::Few(few) if few.rows.len() < FEW_ROWS => few.rows.push(row),
            Gathered::Few(few) => {
                let few = FewRows { types: std::mem::take(&mut few.types), rows: std::mem::take(&mut few.rows) };
                let mut builder = few.into_builder()?;
                builder.push(&row)?;
                *self = Gathered::Many(builder);
            }
            Gathered::Many(builder) => builder.push(&row)?,
        }
        Ok(())
    }

    fn returned(self) -> Result<Returned> {
        Ok(match self {
            Gathered::Few(few) => Returned::Few(few),
            Gathered::Many(builder) => Returned::Batches(builder.finish()?),
        })
    }
}

impl<'a> ReturningRows<'a> {
    /// `extra`: types of what follows the row's own columns.
    pub fn new(
        returning: &'a Option<Returning>,
        table: &'a TableDef,
        extra: Vec<DataType>,
    ) -> Result<ReturningRows<'a>> {
        let clause = match returning {
            Some(returning) => {
                let types: Vec<DataType> = match &returning.query {
                    Some(_) => table.live_columns().map(|column| column.ty.clone()).chain(extra).collect(),
                    None => returning.exprs.iter().map(|expr| expr.ty()).collect(),
                };
                if let Some(ty) = types.iter().find(|ty| ty.phys().is_none()) {
                    return Err(not_storable(ty));
                }
                Some((returning, Gathered::Few(FewRows { types, rows: Vec::new() })))
            }
            None => None,
        };
        Ok(ReturningRows { clause, table })
    }

    pub fn is_some(&self) -> bool {
        self.clause.is_some()
    }

    /// `row` in column-id order, with a search's extra values behind.
    pub fn push(&mut self, row: &[Datum], eval: &EvalContext) -> Result<()> {
        let Some((returning, gathered)) = &mut self.clause else { return Ok(()) };
        if returning.query.is_some() {
            let own = self.table.live_columns().map(|column| row[column.id.position()].clone());
            let extra = row[self.table.columns.len()..].iter().cloned();
            return gathered.push(own.chain(extra).collect());
        }
        let values = returning.exprs.iter().map(|expr| Ok(expr.eval_scalar(row, eval)?));
        gathered.push(values.collect::<Result<_>>()?)
    }

    /// The outputs. Subqueries see the statement's snapshot, without what it has written.
    pub async fn finish(self, txn: &Txn, means: Option<&Means>) -> Result<Option<Returned>> {
        let Some((returning, gathered)) = self.clause else { return Ok(None) };
        let returned = gathered.returned()?;
        let Some(query) = &returning.query else { return Ok(Some(returned)) };
        let Some(means) = means else { return Err(SqlError::internal("RETURNING has nothing to run with")) };
        let query = query.with_written(&HeldRows { batches: returned.into_batches()?, memory: None });
        let mut stream = means.run(txn, query);
        let mut outputs = Vec::new();
        while let Some(batch) = stream.next().await? {
            outputs.push(batch);
        }
        Ok(Some(Returned::Batches(outputs)))
    }
}

pub(crate) fn object_of(table: &TableDef, catalog: &Catalog) -> ErrorObject {
    ErrorObject {
        schema: catalog.namespaces.get(&table.namespace).map(|namespace| namespace.name.clone()),
        table: Some(table.name.clone()),
        ..ErrorObject::default()
    }
}

/// 23502 for the first column that is null and must not be.
pub(crate) fn check_not_null(table: &TableDef, row: &[Datum], catalog: &Catalog, eval: &EvalContext) -> Result<()> {
    let missing = table.live_columns().find(|column| column.not_null && row[column.id.position()].is_null());
    match missing {
        None => Ok(()),
        Some(column) => Err(not_null_violation(table, &column.name, row, catalog, eval)),
    }
}

#[cold]
fn not_null_violation(
    table: &TableDef,
    column: &str,
    row: &[Datum],
    catalog: &Catalog,
    eval: &EvalContext,
) -> SqlError {
    let message =
        format!("null value in column \"{column}\" of relation \"{}\" violates not-null constraint", table.name);
    SqlError::new("23502", message)
        .with_detail_if(failing_row(table, row, eval))
        .with_object(ErrorObject { column: Some(column.to_string()), ..object_of(table, catalog) })
}

/// The detail that shows a row that violates a constraint, as far as the user may read it.
pub(crate) fn failing_row(table: &TableDef, row: &[Datum], eval: &EvalContext) -> Option<String> {
    let live: Vec<&ColumnDef> = table.live_columns().collect();
    let readable: Vec<&ColumnDef> = live.iter().copied().filter(|column| may_show(table, column.id, eval)).collect();
    let shown: Vec<String> = (readable.iter())
        .map(|column| match &row[column.id.position()] {
            Datum::Null => "null".to_string(),
            value => shorten(params::show(&column.ty, value, eval)),
        })
        .collect();
    let names = match readable.len() == live.len() {
        true => String::new(),
        false => {
            let names: Vec<&str> = readable.iter().map(|column| column.name.as_str()).collect();
            format!("({}) = ", names.join(", "))
        }
    };
    let is_seen = live.is_empty() || !readable.is_empty();
    is_seen.then(|| format!("Failing row contains {names}({}).", shown.join(", ")))
}

/// Whether errors may show values of a column: to those who may read it.
fn may_show(table: &TableDef, id: ColumnId, eval: &EvalContext) -> bool {
    SystemContext::of(eval).is_none_or(|system| system.may_read(table, table.column(id)))
}

/// The same of a key.
pub(crate) fn may_show_all(table: &TableDef, ids: &[ColumnId], eval: &EvalContext) -> bool {
    ids.iter().all(|id| may_show(table, *id, eval))
}

/// An expression tells of columns that it does not name here: for those who may read all.
fn may_show_index(table: &TableDef, index: &IndexDef, eval: &EvalContext) -> bool {
    let of_key: Option<Vec<ColumnId>> = (index.columns.iter())
        .map(|column| match column.source {
            IndexSource::Column(id) => Some(id),
            IndexSource::Expression(_) => None,
        })
        .collect();
    let ids = of_key.unwrap_or_else(|| table.live_columns().map(|column| column.id).collect());
    may_show_all(table, &ids, eval)
}

/// Values in details are cut, as PostgreSQL does.
fn shorten(mut text: String) -> String {
    const BYTES_MAX: usize = 64;
    if text.len() > BYTES_MAX {
        text.truncate(text.floor_char_boundary(BYTES_MAX));
        text.push_str("...");
    }
    text
}

/// 23505 for a row that a live row keeps out of the primary key or (if one is named) a unique index.
#[cold]
pub(crate) fn duplicate_row(
    table: &Arc<TableDef>,
    index: Option<ObjectId>,
    row: &[Datum],
    txn: &Txn,
    eval: &EvalContext,
) -> SqlError {
    let catalog = txn.catalog();
    let Some(index) = index.and_then(|index| table.index(index)) else {
        let key = table.primary_key.iter().flat_map(|key| &key.columns);
        let values = key.map(|id| params::show(&table.column(*id).ty, &row[id.position()], eval)).collect();
        return duplicate(table, values, &catalog, eval);
    };
    match txn.engine().index_values(table, index, row) {
        Ok(values) => {
            let values: Vec<Option<Datum>> = values.unwrap_or_default().into_iter().map(Some).collect();
            duplicate_in(table, index, &values, &catalog, eval)
        }
        Err(error) => error.into(),
    }
}

/// 23505 where only the encoded key is known.
#[cold]
pub(crate) fn duplicate_key(table: &TableDef, key: &Key, catalog: &Catalog, eval: &EvalContext) -> SqlError {
    let mut rest = key.as_bytes();
    let ids = table.primary_key.iter().flat_map(|key| &key.columns);
    let values = ids.map(|id| {
        let ty = &table.column(*id).ty;
        let value = basalt_types::key::take_column(ty, &mut rest);
        value.map_or_else(|| "?".to_string(), |value| params::show(ty, &value, eval))
    });
    duplicate(table, values.collect(), catalog, eval)
}

fn duplicate(table: &TableDef, values: Vec<String>, catalog: &Catalog, eval: &EvalContext) -> SqlError {
    let Some(key) = &table.primary_key else { return SqlError::internal("a table without a key has a duplicate") };
    let names: Vec<&str> = key.columns.iter().map(|id| table.column(*id).name.as_str()).collect();
    let detail = || format!("Key ({})=({}) already exists.", names.join(", "), values.join(", "));
    let detail = may_show_all(table, &key.columns, eval).then(detail);
    violation("23505", table, &key.constraint_name, catalog).with_detail_if(detail)
}

/// 23505 of a unique index. A value that is `None` is not known.
#[cold]
pub(crate) fn duplicate_in(
    table: &TableDef,
    index: &IndexDef,
    values: &[Option<Datum>],
    catalog: &Catalog,
    eval: &EvalContext,
) -> SqlError {
    let detail = may_show_index(table, index, eval).then(|| shown_key(table, index, values, eval));
    violation("23505", table, &index.name, catalog).with_detail_if(detail.map(|key| format!("{key} already exists.")))
}

/// `Key (columns)=(values)` as details have it.
pub(crate) fn shown_key(table: &TableDef, index: &IndexDef, values: &[Option<Datum>], eval: &EvalContext) -> String {
    let names: Vec<String> = (index.columns.iter())
        .map(|column| match &column.source {
            IndexSource::Column(id) => table.column(*id).name.clone(),
            IndexSource::Expression(sql) => sql.clone(),
        })
        .collect();
    let values: Vec<String> = (index.columns.iter().zip(values))
        .map(|(column, value)| match value {
            Some(Datum::Null) => "null".to_string(),
            Some(value) => params::show(&column.ty, value, eval),
            None => "?".to_string(),
        })
        .collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}

fn violation(sqlstate: &'static str, table: &TableDef, constraint: &str, catalog: &Catalog) -> SqlError {
    SqlError::new(sqlstate, format!("duplicate key value violates unique constraint \"{constraint}\""))
        .with_object(ErrorObject { constraint: Some(constraint.to_string()), ..object_of(table, catalog) })
}

/// An engine's error, with a duplicate key told as PostgreSQL tells it.
pub(crate) fn explain_error(
    error: basalt_engine::Error,
    table: &TableDef,
    catalog: &Catalog,
    eval: &EvalContext,
) -> SqlError {
    match &error {
        basalt_engine::Error::DuplicateKey { table: of, key } => match table.index(*of) {
            Some(index) => {
                let values = index.values_of_key(key).unwrap_or_default();
                duplicate_in(table, index, &values, catalog, eval)
            }
            None => duplicate_key(table, key, catalog, eval),
        },
        _ => error.into(),
    }
}
