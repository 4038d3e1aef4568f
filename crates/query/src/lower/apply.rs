//! Subqueries run once per distinct outer row: the way out where no join can stand for them.
//!
//! The subquery's plan gets the outer values as constants and is run to its end inside the call. Results
//! are remembered by outer values.

use super::Lowerer;
use super::shared::{SharedOwner, SharedTables};
use crate::column::KeptPlan;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, CteId, Kept, OutputColumn, Plan, Query, Subquery, SubqueryKind, is_volatile};
use crate::run::{QueryRuntime, RunContext};
use ahash::{AHashMap, AHashSet};
use arrow_array::RecordBatch;
use arrow_schema::DataType as ArrowType;
use basalt_expr::eval::vector::{from_values, value_at};
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_sched::fair;
use basalt_types::batch::bytes_of;
use basalt_types::{DataType, Datum};
use datafusion::common::ScalarValue;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::{
    ColumnarValue, Expr as DfExpr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility as DfVolatility,
};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
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

    pub(super) fn runtime(&self) -> Weak<QueryRuntime> {
        self.runtime.clone()
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
        let Subquery { kind, plan } = query.subqueries[&id].clone();
        let (value, kind) = match kind {
            SubqueryKind::Any { condition, .. } => (Some(condition), Kind::Any),
            SubqueryKind::All { condition, .. } => (Some(condition), Kind::All),
            SubqueryKind::Exists => (None, Kind::Exists),
            SubqueryKind::Scalar { column, ty } => (Some(Expr::Hole { id: column, ty }), Kind::Scalar),
        };
        let plan = with_constants(plan, ctx)?;
        let mut volatile = is_volatile(&plan, &query.subqueries);
        let held = match (kind, &value) {
            (Kind::Any | Kind::All, Some(condition)) => Held::new(query, &plan, condition),
            _ => None,
        };
        let (plan, columns) = match value {
            Some(condition) if held.is_some() => {
                volatile = condition.volatility() == Volatility::Volatile;
                let columns = plan.columns().into_iter().map(|(id, ty)| OutputColumn::computed(id, ty)).collect();
                (plan, columns)
            }
            Some(expr) => {
                let column = OutputColumn::computed(usize::MAX, expr.ty());
                (project_above(plan, usize::MAX, expr), vec![column])
            }
            None => (plan, Vec::new()),
        };
        let runtime = self.runtime.upgrade().ok_or_else(|| SqlError::new("57P01", "shutting down"))?;
        let udf = ApplyUdf {
            applier: self.clone(),
            query: part(query, plan, columns),
            kind,
            remembers: !volatile,
            memory: runtime.reservation("results of a subquery"),
            ctx: ctx.clone(),
            id,
            ty: ty.clone(),
            outer: outer.to_vec(),
            signature: super::udf::any_types(args.len(), DfVolatility::Volatile),
            held,
            known: Mutex::new(AHashMap::new()),
            only: Mutex::new(None),
        };
        Ok(ScalarUDF::new_from_impl(udf).call(args))
    }
}

/// The plan with its constants computed, before the values of outer rows stand beside them: what fails here fails
/// without a row.
fn with_constants(mut plan: Plan, ctx: &RunContext) -> Result<Plan> {
    if ctx.inner {
        return Ok(plan);
    }
    fn fold(plan: &mut Plan, ctx: &RunContext) -> Result<()> {
        for expr in plan.exprs_mut() {
            let taken = std::mem::replace(expr, Expr::bool(false));
            *expr = taken.fold_strict(&ctx.eval)?;
        }
        plan.inputs_mut().into_iter().try_for_each(|input| fold(input, ctx))
    }
    fold(&mut plan, ctx)?;
    Ok(plan)
}

struct ApplyUdf {
    applier: Arc<Applier>,
    query: Query,
    kind: Kind,
    /// Equal outer values give an equal result.
    remembers: bool,
    /// For what is remembered.
    memory: MemoryReservation,
    ctx: RunContext,
    id: ColId,
    ty: DataType,
    outer: Vec<(ColId, DataType)>,
    signature: Signature,
    /// Results by encoded outer values.
    known: Mutex<AHashMap<Vec<u8>, Datum>>,
    /// Of `op ANY` and `op ALL` over a subquery without outer columns.
    held: Option<Held>,
    /// The result without outer columns.
    only: Mutex<Option<Datum>>,
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
        if rows > 0 && self.outer.is_empty() {
            let value = from_values(&self.ty, [self.only_value()?].iter(), 1).map_err(SqlError::from)?;
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&value, 0)?));
        }
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
        let mut encoded = Vec::new();
        basalt_types::row::put_datum(&value, &mut encoded);
        let size = key.len() + encoded.len() + 64;
        // Without memory it is computed anew each time.
        if self.remembers && self.memory.try_grow(size).is_ok() {
            self.known.lock().insert(key, value.clone());
        }
        Ok(value)
    }

    /// Without outer columns it runs once, for the first row that asks for it, be it volatile or not.
    fn only_value(&self) -> Result<Datum> {
        let mut only = locked(&self.only);
        if let Some(value) = &*only {
            return Ok(value.clone());
        }
        let value = self.compute(&[])?;
        *only = Some(value.clone());
        Ok(value)
    }

    fn compute(&self, outer: &[Datum]) -> Result<Datum> {
        if let Some(held) = &self.held {
            let batches = self.held_rows(held)?;
            return held.fold(self.kind, &batches, &self.outer, outer, &self.ctx);
        }
        let runtime = self.applier.runtime.upgrade().ok_or_else(|| SqlError::new("57P01", "shutting down"))?;
        let (query, ctx) = given(&self.query, &self.ctx, &self.outer, outer);
        let _owner = SharedOwner(ctx.shared.clone());
        let batches = runtime.run_inline(&query, &ctx)?;
        let ty = query.columns.first().map_or(DataType::Bool, |column| column.ty.clone());
        self.kind.fold(&ty, &batches)
    }
}

/// Others that wait for it must not keep a thread from what it is waiting for.
fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.try_lock().unwrap_or_else(|| fair::pause(|| tokio::task::block_in_place(|| of.lock())))
}

impl ApplyUdf {
    /// The subquery's rows, which do not depend on the outer row: they are computed once.
    fn held_rows(&self, held: &Held) -> Result<Arc<Vec<RecordBatch>>> {
        let mut rows = locked(&held.rows);
        if let Some(batches) = &*rows {
            return Ok(batches.clone());
        }
        let runtime = self.applier.runtime.upgrade().ok_or_else(|| SqlError::new("57P01", "shutting down"))?;
        let (query, ctx) = given(&self.query, &self.ctx, &[], &[]);
        let _owner = SharedOwner(ctx.shared.clone());
        let batches = Arc::new(runtime.run_inline(&query, &ctx)?);
        self.memory.try_grow(batches.iter().map(|batch| bytes_of(batch.columns())).sum())?;
        *rows = Some(batches.clone());
        Ok(batches)
    }
}

/// The condition of `op ANY` and `op ALL`, checked over rows at hand.
struct Held {
    /// The subquery's columns are [`Expr::Column`] in it.
    condition: Expr,
    rows: Mutex<Option<Arc<Vec<RecordBatch>>>>,
}

impl Held {
    /// `None` if the rows depend on the outer row, or the condition holds a subquery.
    fn new(query: &Query, plan: &Plan, condition: &Expr) -> Option<Held> {
        let nested = |node: &Expr| matches!(node, Expr::Hole { id, .. } if query.subqueries.contains_key(id));
        if !outer_columns(query, plan, None).is_empty() || condition.any(&mut |node| nested(node)) {
            return None;
        }
        let columns = plan.columns();
        let condition = condition.clone().rewrite(&mut |node| match node {
            Expr::Hole { id, ty } => match columns.iter().position(|(known, _)| *known == id) {
                Some(index) => Expr::Column { index, ty },
                None => Expr::Hole { id, ty },
            },
            other => other,
        });
        Some(Held { condition, rows: Mutex::new(None) })
    }

    fn fold(
        &self,
        kind: Kind,
        batches: &[RecordBatch],
        outer: &[(ColId, DataType)],
        values: &[Datum],
        ctx: &RunContext,
    ) -> Result<Datum> {
        let condition = self.condition.clone().rewrite(&mut |node| match node {
            Expr::Hole { id, ty } => match outer.iter().position(|(known, _)| *known == id) {
                Some(index) => Expr::Const { value: values[index].clone(), ty },
                None => Expr::Hole { id, ty },
            },
            other => other,
        });
        let mut unknown = false;
        for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
            let found = condition.eval(batch.columns(), batch.num_rows(), &ctx.eval)?;
            let found = (0..batch.num_rows()).map(|row| value_at(&DataType::Bool, found.as_ref(), row));
            match quantified(found, matches!(kind, Kind::Any)) {
                Datum::Null => unknown = true,
                Datum::Bool(value) if value == matches!(kind, Kind::Any) => return Ok(Datum::Bool(value)),
                _ => {}
            }
        }
        Ok(if unknown { Datum::Null } else { Datum::Bool(!matches!(kind, Kind::Any)) })
    }
}

/// What a call of a function of DataFusion's costs, if it runs a subquery: nothing if that is done once.
pub(super) fn cost_of(function: &ScalarUDF) -> Option<f64> {
    /// In calls of simple functions: more than any condition beside it.
    const PER_ROW: f64 = 1000.0;
    let udf = function.inner().downcast_ref::<ApplyUdf>()?;
    Some(if udf.outer.is_empty() { 0.0 } else { PER_ROW })
}

/// Whether a call of a function of DataFusion's runs a subquery anew for each row.
pub(super) fn is_volatile_call(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<ApplyUdf>().is_some_and(|udf| !udf.remembers && !udf.outer.is_empty())
}

/// A query that may be run for rows of an outer one, with what it needs of that one's WITH queries and subqueries.
pub(super) fn part(query: &Query, plan: Plan, columns: Vec<OutputColumn>) -> Query {
    let mut reach = Reachable::default();
    reach.plan(query, &plan);
    let subqueries = reach.subqueries.iter().map(|id| (*id, query.subqueries[id].clone())).collect();
    let ctes = reach.ctes.iter().filter_map(|id| Some((*id, query.ctes.get(id)?.clone()))).collect();
    let (row, columnar, aliases) = (Kept::default(), KeptPlan::default(), BTreeMap::new());
    Query { plan, columns, subqueries, ctes, tables: Vec::new(), aliases, row_locks: Vec::new(), row, columnar }
}

/// The query with values in the place of outer columns, and what it runs with.
pub(super) fn given(
    query: &Query,
    ctx: &RunContext,
    outer: &[(ColId, DataType)],
    values: &[Datum],
) -> (Query, RunContext) {
    let mut own = AHashSet::new();
    for (id, cte) in &query.ctes {
        if !outer_columns(query, &cte.plan, None).is_empty() {
            own.insert(*id);
        }
    }
    let mut query = query.clone();
    let mut constant = |node: Expr| match node {
        Expr::Hole { id, ty } => match outer.iter().position(|(known, _)| *known == id) {
            Some(index) => Expr::Const { value: values[index].clone(), ty },
            None => Expr::Hole { id, ty },
        },
        other => other,
    };
    query.plan.rewrite_exprs(&mut constant);
    recursions(&query.plan, &mut own);
    for subquery in query.subqueries.values_mut() {
        subquery.plan.rewrite_exprs(&mut constant);
        recursions(&subquery.plan, &mut own);
        if let SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } = &mut subquery.kind {
            let taken = std::mem::replace(condition, Expr::bool(false));
            *condition = taken.rewrite(&mut constant);
        }
    }
    for cte in query.ctes.values_mut() {
        cte.plan.rewrite_exprs(&mut constant);
    }
    let shared = SharedTables::inside(&ctx.shared, own);
    (query, RunContext { shared, inner: true, ..ctx.clone() })
}

/// Recursions whose working tables belong to the run of this plan.
fn recursions(plan: &Plan, own: &mut AHashSet<CteId>) {
    if let Plan::Recursive { cte, .. } = plan {
        own.insert(*cte);
    }
    plan.inputs().into_iter().for_each(|input| recursions(input, own));
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
}

impl Kind {
    fn fold(self, ty: &DataType, batches: &[RecordBatch]) -> Result<Datum> {
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

/// Columns that a plan takes from outside, with the subqueries and WITH queries that it uses. `beside` is an
/// expression that belongs to it.
pub(super) fn outer_columns(query: &Query, plan: &Plan, beside: Option<&Expr>) -> Vec<(ColId, DataType)> {
    let mut reach = Reachable::default();
    reach.plan(query, plan);
    if let Some(expr) = beside {
        reach.expr(query, expr);
    }
    let Reachable { own, mut used, .. } = reach;
    used.retain(|(id, _)| !own.contains(id));
    used
}

/// What a plan defines, uses and refers to, and what that does in turn.
#[derive(Default)]
struct Reachable {
    own: AHashSet<ColId>,
    used: Vec<(ColId, DataType)>,
    subqueries: AHashSet<ColId>,
    ctes: AHashSet<CteId>,
}

impl Reachable {
    fn plan(&mut self, query: &Query, plan: &Plan) {
        super::defined(plan, &mut self.own);
        let mut holes = Vec::new();
        plan.clone().rewrite_exprs(&mut |node| {
            if let Expr::Hole { id, ty } = &node {
                holes.push((*id, ty.clone()));
            }
            node
        });
        holes.into_iter().for_each(|(id, ty)| self.hole(query, id, ty));
        self.references(query, plan);
    }

    fn references(&mut self, query: &Query, plan: &Plan) {
        if let Plan::Shared { cte, .. } = plan
            && self.ctes.insert(*cte)
            && let Some(cte) = query.ctes.get(cte)
        {
            self.plan(query, &cte.plan);
        }
        plan.inputs().into_iter().for_each(|input| self.references(query, input));
    }

    fn expr(&mut self, query: &Query, expr: &Expr) {
        expr.walk(&mut |node| {
            if let Expr::Hole { id, ty } = node {
                self.hole(query, *id, ty.clone());
            }
            true
        });
    }

    fn hole(&mut self, query: &Query, id: ColId, ty: DataType) {
        let Some(subquery) = query.subqueries.get(&id) else {
            if !self.used.iter().any(|(known, _)| *known == id) {
                self.used.push((id, ty));
            }
            return;
        };
        if self.subqueries.insert(id) {
            self.plan(query, &subquery.plan);
            if let SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } = &subquery.kind {
                self.expr(query, condition);
            }
        }
    }
}

/// A lateral join anywhere in the plan.
fn is_lateral(plan: &Plan) -> bool {
    matches!(plan, Plan::Join { lateral: true, .. }) || plan.inputs().into_iter().any(is_lateral)
}

impl Lowerer<'_> {
    /// Whether any part of the statement refers to columns outside of itself.
    pub fn is_correlated(query: &Query) -> bool {
        let plans = query.subqueries.values().map(|subquery| &subquery.plan);
        let mut plans = plans.chain(query.ctes.values().map(|cte| &cte.plan)).chain([&query.plan]);
        plans.any(is_lateral)
            || query.ctes.values().any(|cte| !outer_columns(query, &cte.plan, None).is_empty())
            || query.subqueries.values().any(|subquery| {
                let condition = match &subquery.kind {
                    SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } => Some(condition),
                    _ => None,
                };
                !outer_columns(query, &subquery.plan, condition).is_empty()
            })
    }
}
