//! From the optimizer's tree to a plan of the column engine: column ids become positions.

use crate::column::facts;
use crate::column::notes::{Notes, What};
use crate::optimize::columns::{ColSet, add_columns_of};
use crate::optimize::node::{JoinKind, Key, Node, Op, Side};
use crate::optimize::optimize;
use crate::optimize::reduce::is_repeatable;
use crate::plan::{AggregateCall, ColId, Plan, Query, SortKey, row_count};
use crate::run::RunContext;
use basalt_engine::ScanSpec;
use basalt_exec::plan as exec;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, DataType, TableDef};
use std::borrow::Cow;
use std::sync::Arc;

/// Aggregates whose result does not depend on the order of rows.
const UNORDERED: [&str; 25] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "every",
    "bit_and",
    "bit_or",
    "bit_xor",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var_pop",
    "var_samp",
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_count",
    "regr_slope",
    "regr_intercept",
    "regr_avgx",
    "regr_avgy",
];

/// Of these the ones to which a value that comes again says nothing new.
const IDEMPOTENT: [&str; 7] = ["min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or"];

/// An operator of the engine and which column of it holds what.
struct Compiled {
    plan: exec::Plan,
    columns: Vec<ColId>,
}

/// Why the engine does not run a query.
pub(crate) type Refusal = Cow<'static, str>;
type Taken<T> = Result<T, Refusal>;

const OUT_OF_TURN: Refusal = Cow::Borrowed("a volatile call, or a column of another query level");

/// How a tree is compiled.
struct Compiling<'c> {
    ctx: &'c RunContext,
    /// Of a plan that is told.
    notes: Option<Notes>,
}

/// What the column engine runs for a query, or why the fallback does.
pub(crate) fn column_plan(query: &Query, ctx: &RunContext) -> Taken<exec::Plan> {
    let node = tree(query, ctx)?;
    compiled(query, &node, &mut Compiling { ctx, notes: None })
}

/// The same with what there is to say of its operators.
pub(crate) fn noted_plan(query: &Query, ctx: &RunContext) -> Taken<(exec::Plan, Notes)> {
    let node = tree(query, ctx)?;
    let notes = Notes::new(&node, &ctx.system);
    let mut how = Compiling { ctx, notes: Some(notes) };
    let plan = compiled(query, &node, &mut how)?;
    Ok((plan, how.notes.expect("it is kept")))
}

fn tree(query: &Query, ctx: &RunContext) -> Taken<Node> {
    if !query.row_locks.is_empty() {
        return Err("rows are locked".into());
    }
    if ctx.inner {
        return Err("it runs once for each row of another".into());
    }
    if !takes_in_all(&query.plan) {
        return Err("rows leave before all were seen".into());
    }
    optimize(query, &facts::of(query, ctx)).map_err(Refusal::from)
}

fn compiled(query: &Query, node: &Node, how: &mut Compiling<'_>) -> Taken<exec::Plan> {
    let needed = query.columns.iter().map(|column| column.id).collect();
    let compiled = Compiled::of(node, &needed, how)?;
    let outputs = query.columns.iter().map(|column| placed(&hole(column.id, &column.ty), &compiled.columns));
    let exprs = outputs.collect::<Taken<Vec<_>>>()?;
    if query.first_fault(&how.ctx.eval).is_some() {
        return Err("a constant fails, which the fallback tells".into());
    }
    Ok(exec::Plan::Project { input: Box::new(compiled.plan), exprs })
}

/// Whether no row leaves before all were seen.
fn takes_in_all(plan: &Plan) -> bool {
    match plan {
        Plan::Aggregate { .. } | Plan::Distinct { .. } | Plan::Sort { .. } => true,
        Plan::Project { input, .. } | Plan::Filter { input, .. } | Plan::Limit { input, .. } => takes_in_all(input),
        _ => false,
    }
}

/// What the inputs of a node have to give.
fn needed_below(node: &Node, needed: &ColSet) -> ColSet {
    let mut below = match &node.op {
        // They give nothing but what they define.
        Op::Project { .. } | Op::Aggregate { .. } => ColSet::new(),
        _ => needed.clone(),
    };
    node.exprs().into_iter().for_each(|expr| add_columns_of(expr, &mut below));
    below
}

fn hole(id: ColId, ty: &DataType) -> Expr {
    Expr::Hole { id, ty: ty.clone() }
}

impl Compiling<'_> {
    fn limit(&self, expr: &Option<Expr>, place: row_count::CountPlace) -> Taken<Option<usize>> {
        expr.as_ref().map_or(Ok(None), |expr| count(expr, place, self.ctx))
    }
}

impl Compiled {
    /// `needed`: the columns that somebody above reads.
    fn of(node: &Node, needed: &ColSet, how: &mut Compiling<'_>) -> Taken<Compiled> {
        let below = needed_below(node, needed);
        let rows = Some(node.rows);
        match &node.op {
            Op::Scan { table, columns, filter } => {
                let engine = how.ctx.read.engine().clone();
                let all = how.notes.is_some().then(|| engine.estimated_rows(table) as f64);
                let scan = Compiled::scan(table, columns)?.noted(how, all, |notes| notes.scan(table, columns));
                scan.filtered(filter, rows, how)
            }
            Op::Values { .. } => Err("rows of constants".into()),
            Op::UnionAll { .. } => Err("UNION".into()),
            // Computed for each reference, which have to agree.
            Op::Shared { plan, columns, .. } => {
                if !is_repeatable(plan) {
                    return Err("a WITH query that may give other rows when it is run again".into());
                }
                let exprs: Vec<(ColId, Expr)> =
                    columns.iter().map(|column| (column.id, hole(column.source, &column.ty))).collect();
                let sources = columns.iter().map(|column| column.source).collect();
                Compiled::of(plan, &sources, how)?.projected(&exprs, how)
            }
            Op::Filter { input, conjuncts } => Compiled::of(input, &below, how)?.filtered(conjuncts, rows, how),
            Op::Project { input, exprs } => Compiled::of(input, &below, how)?.projected(exprs, how),
            Op::Join { left, right, kind, keys, residual, build } => {
                let (left, right) = (Compiled::of(left, &below, how)?, Compiled::of(right, &below, how)?);
                let compiled = Compiled::join(left, right, *kind, keys, residual, needed)?.holding(*build);
                Ok(compiled.noted(how, rows, |notes| notes.join(keys, residual)))
            }
            Op::Aggregate { input, groups, dependent, aggregates } => {
                let input = Compiled::of(input, &below, how)?;
                let compiled = input.aggregated(groups, dependent, aggregates)?;
                Ok(compiled.noted(how, rows, |notes| notes.aggregate(groups, aggregates)))
            }
            Op::Sort { input, keys } => {
                let Compiled { plan, columns } = Compiled::of(input, &below, how)?;
                let placed = keys.iter().map(|key| sort_key(key, &columns)).collect::<Taken<Vec<_>>>()?;
                let plan = exec::Plan::Sort { input: Box::new(plan), keys: placed };
                Ok(Compiled { plan, columns }.noted(how, rows, |notes| notes.sort(keys)))
            }
            Op::Limit { input, limit, offset } => {
                let sorts = matches!(input.op, Op::Sort { .. });
                let Compiled { plan, columns } = Compiled::of(input, &below, how)?;
                let (limit, offset) = (how.limit(limit, row_count::LIMIT)?, how.limit(offset, row_count::OFFSET)?);
                let plan = exec::Plan::Limit { input: Box::new(plan), offset: offset.unwrap_or(0), limit };
                let compiled = Compiled { plan, columns };
                // One without a sort is no operator: it ends the last pipeline.
                Ok(if sorts { compiled.noted(how, rows, |_| What::Limit) } else { compiled })
            }
        }
    }

    /// With a note, if the plan is told.
    fn noted(self, how: &mut Compiling<'_>, rows: Option<f64>, what: impl FnOnce(&mut Notes) -> What) -> Compiled {
        let Some(notes) = &mut how.notes else { return self };
        let what = what(notes);
        Compiled { plan: self.plan.noted(notes.take(rows, what)), ..self }
    }

    fn scan(table: &Arc<TableDef>, columns: &[(ColId, ColumnId)]) -> Taken<Compiled> {
        let spec = scan_of(table, columns).ok_or("a materialized view that has not been populated")?;
        Ok(Compiled { plan: exec::Plan::Scan { spec }, columns: columns.iter().map(|(id, _)| *id).collect() })
    }

    fn filtered(self, conjuncts: &[Expr], rows: Option<f64>, how: &mut Compiling<'_>) -> Taken<Compiled> {
        if conjuncts.is_empty() {
            return Ok(self);
        }
        let Compiled { plan, columns } = self;
        let conditions = conjuncts.iter().map(|conjunct| placed(conjunct, &columns)).collect::<Taken<Vec<_>>>()?;
        let plan = exec::Plan::Filter { input: Box::new(plan), conditions };
        Ok(Compiled { plan, columns }.noted(how, rows, |notes| notes.filter(conjuncts)))
    }

    fn projected(self, exprs: &[(ColId, Expr)], how: &mut Compiling<'_>) -> Taken<Compiled> {
        let Compiled { plan, columns } = self;
        let values = exprs.iter().map(|(_, expr)| placed(expr, &columns)).collect::<Taken<Vec<_>>>()?;
        let plan = exec::Plan::Project { input: Box::new(plan), exprs: values };
        how.notes.iter_mut().for_each(|notes| notes.name(exprs));
        Ok(Compiled { plan, columns: exprs.iter().map(|(id, _)| *id).collect() })
    }

    fn join(
        left: Compiled,
        right: Compiled,
        kind: JoinKind,
        keys: &[Key],
        residual: &[Expr],
        needed: &ColSet,
    ) -> Taken<Compiled> {
        let kind = match kind {
            JoinKind::Inner => exec::JoinKind::Inner,
            JoinKind::Left => exec::JoinKind::Left,
            JoinKind::Semi => exec::JoinKind::Semi,
            JoinKind::Anti => exec::JoinKind::Anti,
            JoinKind::NullAwareAnti => exec::JoinKind::NullAwareAnti,
            JoinKind::Single => exec::JoinKind::Single,
            JoinKind::Full => return Err("FULL JOIN".into()),
            JoinKind::Mark { .. } => return Err("a subquery among the values, or under OR".into()),
        };
        let pair = |key: &Key| {
            let sides = (placed(&key.left, &left.columns)?, placed(&key.right, &right.columns)?);
            match !key.null_safe && sides.0.ty() == sides.1.ty() {
                true => Ok(sides),
                false => Err(Refusal::from("a join in which nulls match")),
            }
        };
        let keys = keys.iter().map(pair).collect::<Taken<Vec<_>>>()?;
        // Of partners only what is asked for is held.
        let asked: ColSet = residual.iter().fold(needed.clone(), |mut asked, condition| {
            add_columns_of(condition, &mut asked);
            asked
        });
        let kept = right.columns.iter().enumerate().filter(|(_, id)| asked.contains(id));
        let (payload, partners): (Vec<usize>, Vec<ColId>) = kept.unzip();
        let both: Vec<ColId> = left.columns.iter().chain(&partners).copied().collect();
        let residual = residual.iter().map(|condition| placed(condition, &both)).collect::<Taken<Vec<_>>>()?;
        let columns = if kind.gives_partners() { both } else { left.columns };
        let (left, right) = (Box::new(left.plan), Box::new(right.plan));
        Ok(Compiled {
            plan: exec::Plan::Join { left, right, kind, keys, payload, hold_left: false, residual },
            columns,
        })
    }

    /// With the side of a join held that the optimizer would hold.
    fn holding(mut self, side: Side) -> Compiled {
        if let exec::Plan::Join { hold_left, .. } = &mut self.plan {
            *hold_left = side == Side::Left;
        }
        self
    }

    fn aggregated(
        self,
        groups: &[(ColId, Expr)],
        dependent: &[usize],
        aggregates: &[(ColId, AggregateCall)],
    ) -> Taken<Compiled> {
        let ids = groups.iter().map(|(id, _)| *id).chain(aggregates.iter().map(|(id, _)| *id)).collect();
        let Compiled { plan, columns } = self;
        let groups = groups.iter().map(|(_, group)| placed(group, &columns)).collect::<Taken<Vec<_>>>()?;
        let calls = aggregates.iter().map(|(_, call)| aggregate(call, &columns)).collect::<Taken<Vec<_>>>()?;
        let dependent = dependent.to_vec();
        let plan = exec::Plan::Aggregate { input: Box::new(plan), groups, dependent, calls };
        Ok(Compiled { plan, columns: ids })
    }
}

/// A scan of columns in this order; `None` if the table may not be read as it is.
pub(super) fn scan_of(table: &Arc<TableDef>, columns: &[(ColId, ColumnId)]) -> Option<ScanSpec> {
    table.is_populated().then_some(())?;
    let columns = columns.iter().map(|(_, column)| *column).collect();
    Some(ScanSpec { table: table.clone(), columns, predicates: Vec::new(), with_identity: false })
}

/// An expression with positions for ids, unless it asks for something else, or is volatile.
pub(super) fn placed(expr: &Expr, columns: &[ColId]) -> Taken<Expr> {
    if expr.volatility() == Volatility::Volatile {
        return Err(OUT_OF_TURN);
    }
    let mut known = true;
    let placed = expr.clone().rewrite(&mut |node| match node {
        Expr::Hole { id, ty } => match columns.iter().position(|column| *column == id) {
            Some(index) => Expr::Column { index, ty },
            None => {
                known = false;
                Expr::Hole { id, ty }
            }
        },
        other => other,
    });
    if known { Ok(placed) } else { Err(OUT_OF_TURN) }
}

fn check_unordered(call: &AggregateCall) -> Taken<()> {
    let name = call.resolved.aggregate.name.as_str();
    match UNORDERED.contains(&name) && call.resolved.orders.is_empty() && call.order_by.is_empty() {
        true => Ok(()),
        false => Err(format!("{name}, which depends on the order of rows").into()),
    }
}

fn aggregate(call: &AggregateCall, columns: &[ColId]) -> Taken<exec::AggregateCall> {
    check_unordered(call)?;
    let distinct = call.distinct && !IDEMPOTENT.contains(&call.resolved.aggregate.name.as_str());
    if distinct && call.args.len() != 1 {
        return Err("a DISTINCT aggregate of several values".into());
    }
    // Their order is that of the values.
    let is_float = |arg: &Expr| matches!(arg.ty().underlying(), DataType::Float4 | DataType::Float8);
    if distinct && call.resolved.aggregate.name != "count" && call.args.iter().any(is_float) {
        return Err("DISTINCT floats, whose sum depends on their order".into());
    }
    let args = call.args.iter().map(|arg| placed(arg, columns)).collect::<Taken<Vec<_>>>()?;
    let filter = call.filter.as_ref().map(|filter| placed(filter, columns)).transpose()?;
    Ok(exec::AggregateCall { resolved: call.resolved.clone(), args, filter, distinct })
}

fn sort_key(key: &SortKey, columns: &[ColId]) -> Taken<exec::SortKey> {
    let SortKey { expr, descending, nulls_first } = key;
    Ok(exec::SortKey { expr: placed(expr, columns)?, descending: *descending, nulls_first: *nulls_first })
}

/// LIMIT's or OFFSET's number of rows; `None` is no limit.
fn count(expr: &Expr, place: row_count::CountPlace, ctx: &RunContext) -> Taken<Option<usize>> {
    const FAILS: Refusal = Cow::Borrowed("a LIMIT or OFFSET that fails, which the fallback tells");
    let value = expr.eval_scalar(&[], &ctx.eval).map_err(|_| FAILS)?;
    let rows = row_count::row_count(&value, place).map_err(|_| FAILS)?;
    rows.map(|rows| usize::try_from(rows).map_err(|_| FAILS)).transpose()
}
