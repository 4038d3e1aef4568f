//! Subqueries run once per distinct outer row: the way out where no join can stand for them.
//!
//! The subquery's plan gets the outer values as constants and is run to its end inside the call. Results
//! are remembered by outer values.

use super::Lowerer;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, OutputColumn, Plan, Query, Subquery, SubqueryKind};
use crate::run::{QueryRuntime, RunContext};
use ahash::{AHashMap, AHashSet};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType as ArrowType;
use basalt_expr::eval::vector::{from_values, value_at};
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};
use datafusion::logical_expr::{
    ColumnarValue, Expr as DfExpr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use parking_lot::Mutex;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

/// Runs subqueries for the plans of one execution.
pub struct Applier {
    runtime: Weak<QueryRuntime>,
}

impl Applier {
    pub fn new(runtime: &Arc<QueryRuntime>) -> Arc<Applier> {
        Arc::new(Applier { runtime: Arc::downgrade(runtime) })
    }

    /// A call that gives the subquery's value for the outer columns in `args`.
    pub(super) fn call(
        self: &Arc<Applier>,
        query: &Query,
        ctx: &RunContext,
        id: ColId,
        ty: &DataType,
        outer: &[(ColId, DataType)],
        args: Vec<DfExpr>,
    ) -> Result<DfExpr> {
        let udf = ApplyUdf {
            applier: self.clone(),
            query: query.clone(),
            ctx: ctx.clone(),
            id,
            ty: ty.clone(),
            outer: outer.to_vec(),
            signature: super::udf::any_types(args.len(), Volatility::Volatile),
            known: Mutex::new(AHashMap::new()),
        };
        Ok(ScalarUDF::new_from_impl(udf).call(args))
    }
}

struct ApplyUdf {
    applier: Arc<Applier>,
    query: Query,
    ctx: RunContext,
    id: ColId,
    ty: DataType,
    outer: Vec<(ColId, DataType)>,
    signature: Signature,
    /// Results by encoded outer values.
    known: Mutex<AHashMap<Vec<u8>, Datum>>,
}

impl std::fmt::Debug for ApplyUdf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "subquery {}", self.id)
    }
}

impl PartialEq for ApplyUdf {
    fn eq(&self, other: &ApplyUdf) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.applier, &other.applier)
    }
}

impl Eq for ApplyUdf {}

impl Hash for ApplyUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl ScalarUDFImpl for ApplyUdf {
    fn name(&self) -> &str {
        "subquery"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[ArrowType]) -> datafusion::error::Result<ArrowType> {
        Ok(self.ty.to_arrow())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion::error::Result<ColumnarValue> {
        let rows = args.number_rows;
        let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<datafusion::error::Result<Vec<_>>>()?;
        let mut out = Vec::with_capacity(rows);
        for row in 0..rows {
            let values: Vec<Datum> =
                columns.iter().zip(&self.outer).map(|(column, (_, ty))| value_at(ty, column.as_ref(), row)).collect();
            out.push(self.value(&values)?);
        }
        let array = from_values(&self.ty, out.iter(), rows).map_err(SqlError::from)?;
        Ok(ColumnarValue::Array(array))
    }
}

impl ApplyUdf {
    fn value(&self, outer: &[Datum]) -> Result<Datum> {
        let mut key = Vec::new();
        outer.iter().for_each(|value| basalt_types::row::put_datum(value, &mut key));
        if let Some(value) = self.known.lock().get(&key) {
            return Ok(value.clone());
        }
        let value = self.compute(outer)?;
        self.known.lock().insert(key, value.clone());
        Ok(value)
    }

    fn compute(&self, outer: &[Datum]) -> Result<Datum> {
        let runtime = self.applier.runtime.upgrade().ok_or_else(|| SqlError::new("57P01", "shutting down"))?;
        let Subquery { kind, mut plan } = self.query.subqueries[&self.id].clone();
        let mut subqueries = self.query.subqueries.clone();
        let mut constant = |node: Expr| match node {
            Expr::Hole { id, ty } => match self.outer.iter().position(|(known, _)| *known == id) {
                Some(index) => Expr::Const { value: outer[index].clone(), ty },
                None => Expr::Hole { id, ty },
            },
            other => other,
        };
        let (column, kind) = match kind {
            SubqueryKind::Any { condition, .. } => (Some(condition.rewrite(&mut constant)), Kind::Any),
            SubqueryKind::All { condition, .. } => (Some(condition.rewrite(&mut constant)), Kind::All),
            SubqueryKind::Exists => (None, Kind::Exists),
            SubqueryKind::Scalar { column, ty } => (Some(Expr::Hole { id: column, ty }), Kind::Scalar),
            SubqueryKind::Array { column, ty } => match ty {
                DataType::Array(element) => (Some(Expr::Hole { id: column, ty: *element }), Kind::Array),
                _ => return Err(SqlError::internal("ARRAY of a subquery is no array")),
            },
        };
        plan.rewrite_exprs(&mut constant);
        for subquery in subqueries.values_mut() {
            subquery.plan.rewrite_exprs(&mut constant);
            if let SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } = &mut subquery.kind {
                let taken = std::mem::replace(condition, Expr::bool(false));
                *condition = taken.rewrite(&mut constant);
            }
        }
        let id = usize::MAX;
        let mut columns = Vec::new();
        if let Some(expr) = column {
            let ty = expr.ty();
            columns.push(OutputColumn {
                id,
                name: String::new(),
                ty: ty.clone(),
                typmod: -1,
                table_oid: 0,
                column_no: 0,
            });
            plan = project_above(plan, id, expr);
        }
        let ty = columns.first().map_or(DataType::Bool, |column| column.ty.clone());
        let query = Query { plan, columns, subqueries, tables: Vec::new(), row_locks: Vec::new() };
        let batches = runtime.run_inline(&query, &self.ctx)?;
        kind.fold(&ty, &self.ty, &batches)
    }
}

/// Adds a computed column under a sort or limit's order, which a projection keeps.
fn project_above(plan: Plan, id: ColId, expr: Expr) -> Plan {
    Plan::Project { input: Box::new(plan), exprs: vec![(id, expr)] }
}

#[derive(Clone, Copy)]
enum Kind {
    Scalar,
    Exists,
    Any,
    All,
    Array,
}

impl Kind {
    fn fold(self, ty: &DataType, result: &DataType, batches: &[RecordBatch]) -> Result<Datum> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let values = || {
            batches.iter().flat_map(move |batch| {
                let column = batch.column(0).clone();
                (0..batch.num_rows()).map(move |row| value_at(ty, column.as_ref(), row))
            })
        };
        Ok(match self {
            Kind::Exists => Datum::Bool(rows > 0),
            Kind::Scalar if rows > 1 => {
                return Err(SqlError::new("21000", "more than one row returned by a subquery used as an expression"));
            }
            Kind::Scalar => values().next().unwrap_or(Datum::Null),
            Kind::Any => quantified(values(), true),
            Kind::All => quantified(values(), false),
            Kind::Array => array_of(result, batches)?,
        })
    }
}

/// OR over all values (`decisive` true) or AND (false), with SQL's nulls.
fn quantified(values: impl Iterator<Item = Datum>, decisive: bool) -> Datum {
    let mut result = Datum::Bool(!decisive);
    for value in values {
        match value {
            Datum::Bool(value) if value == decisive => return Datum::Bool(decisive),
            Datum::Bool(_) => {}
            _ => result = Datum::Null,
        }
    }
    result
}

fn array_of(ty: &DataType, batches: &[RecordBatch]) -> Result<Datum> {
    let ArrowType::List(item) = ty.to_arrow() else {
        return Err(SqlError::internal(format!("{} is no array", ty.sql_name())));
    };
    let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
    let values = match parts.is_empty() {
        true => arrow_array::new_empty_array(item.data_type()),
        false => arrow::compute::concat(&parts).map_err(|error| SqlError::internal(error.to_string()))?,
    };
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([values.len()]);
    let list = arrow_array::ListArray::new(item, offsets, values, None);
    Ok(value_at(ty, &list, 0))
}

/// What a subquery defines and what it uses, nested subqueries included.
pub(super) fn collect(query: &Query, id: ColId, own: &mut AHashSet<ColId>, used: &mut Vec<(ColId, DataType)>) {
    let Some(subquery) = query.subqueries.get(&id) else { return };
    let mut plan = subquery.plan.clone();
    super::defined(&plan, own);
    let mut nested = Vec::new();
    let mut note = |node: Expr| {
        if let Expr::Hole { id, ty } = &node {
            if query.subqueries.contains_key(id) {
                nested.push(*id);
            } else if !used.iter().any(|(known, _)| known == id) {
                used.push((*id, ty.clone()));
            }
        }
        node
    };
    plan.rewrite_exprs(&mut note);
    if let SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } = &subquery.kind {
        let _ = condition.clone().rewrite(&mut note);
    }
    for id in nested {
        collect(query, id, own, used);
    }
}

impl Lowerer<'_> {
    /// Whether any subquery of the statement refers to columns outside of itself.
    pub fn is_correlated(query: &Query) -> bool {
        query.subqueries.keys().any(|id| {
            let (mut own, mut used) = (AHashSet::new(), Vec::new());
            collect(query, *id, &mut own, &mut used);
            used.iter().any(|(id, _)| !own.contains(id))
        })
    }
}
