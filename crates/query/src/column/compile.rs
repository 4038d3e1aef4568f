//! From a bound plan to one of the column engine: column ids become positions.

use crate::plan::{AggregateCall, ColId, Plan, Query, SortKey, row_count};
use crate::run::RunContext;
use basalt_engine::ScanSpec;
use basalt_exec::plan as exec;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;

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

/// An operator of the engine and which column of it holds what.
struct Compiled {
    plan: exec::Plan,
    columns: Vec<ColId>,
}

/// What the column engine runs for a query; `None`: the fallback does.
pub(crate) fn column_plan(query: &Query, ctx: &RunContext) -> Option<exec::Plan> {
    let plain = query.subqueries.is_empty() && query.ctes.is_empty() && query.row_locks.is_empty() && !ctx.inner;
    (plain && takes_in_all(&query.plan)).then_some(())?;
    let compiled = Compiled::of(&query.plan, ctx)?;
    let outputs = query.columns.iter().map(|column| compiled.column(column.id, &column.ty));
    let exprs = outputs.collect::<Option<Vec<_>>>()?;
    // What fails for constants fails without rows, too: the fallback says how.
    query.first_fault(&ctx.eval).is_none().then_some(())?;
    Some(exec::Plan::Project { input: Box::new(compiled.plan), exprs })
}

/// Whether rows are grouped, so that none leaves before all were seen.
fn takes_in_all(plan: &Plan) -> bool {
    match plan {
        Plan::Aggregate { .. } | Plan::Distinct { .. } => true,
        Plan::Project { input, .. }
        | Plan::Filter { input, .. }
        | Plan::Sort { input, .. }
        | Plan::Limit { input, .. } => takes_in_all(input),
        _ => false,
    }
}

impl Compiled {
    fn of(plan: &Plan, ctx: &RunContext) -> Option<Compiled> {
        match plan {
            Plan::Scan { table, columns, identity: None, .. } if table.is_populated() => {
                let spec = ScanSpec {
                    table: table.clone(),
                    columns: columns.iter().map(|(_, column)| *column).collect(),
                    predicates: Vec::new(),
                    with_identity: false,
                };
                let columns = columns.iter().map(|(id, _)| *id).collect();
                Some(Compiled { plan: exec::Plan::Scan { spec }, columns })
            }
            Plan::Filter { input, condition } => {
                let Compiled { plan, columns } = Compiled::of(input, ctx)?;
                let conjuncts = condition.clone().split_and();
                let conditions = conjuncts.iter().map(|conjunct| placed(conjunct, &columns));
                let conditions = conditions.collect::<Option<Vec<_>>>()?;
                Some(Compiled { plan: exec::Plan::Filter { input: Box::new(plan), conditions }, columns })
            }
            Plan::Project { input, exprs } => {
                let Compiled { plan, columns } = Compiled::of(input, ctx)?;
                let placed_exprs = exprs.iter().map(|(_, expr)| placed(expr, &columns));
                let placed_exprs = placed_exprs.collect::<Option<Vec<_>>>()?;
                let plan = exec::Plan::Project { input: Box::new(plan), exprs: placed_exprs };
                Some(Compiled { plan, columns: exprs.iter().map(|(id, _)| *id).collect() })
            }
            Plan::Aggregate { input, groups, aggregates, sets: None } => {
                let Compiled { plan, columns } = Compiled::of(input, ctx)?;
                let keys = groups.iter().map(|(_, group)| placed(group, &columns)).collect::<Option<Vec<_>>>()?;
                let calls = aggregates.iter().map(|(_, call)| aggregate(call, &columns));
                let calls = calls.collect::<Option<Vec<_>>>()?;
                let ids = groups.iter().map(|(id, _)| *id).chain(aggregates.iter().map(|(id, _)| *id)).collect();
                let plan = exec::Plan::Aggregate { input: Box::new(plan), groups: keys, calls };
                Some(Compiled { plan, columns: ids })
            }
            Plan::Distinct { input, on: None } => {
                let types = input.columns();
                let Compiled { plan, columns } = Compiled::of(input, ctx)?;
                let keys = types.iter().map(|(id, ty)| placed(&Expr::Hole { id: *id, ty: ty.clone() }, &columns));
                let groups = keys.collect::<Option<Vec<_>>>()?;
                // Without columns there would be a row even if there is none.
                (!groups.is_empty()).then_some(())?;
                let plan = exec::Plan::Aggregate { input: Box::new(plan), groups, calls: Vec::new() };
                Some(Compiled { plan, columns: types.into_iter().map(|(id, _)| id).collect() })
            }
            Plan::Sort { input, keys } => {
                let Compiled { plan, columns } = Compiled::of(input, ctx)?;
                let keys = keys.iter().map(|key| sort_key(key, &columns)).collect::<Option<Vec<_>>>()?;
                Some(Compiled { plan: exec::Plan::Sort { input: Box::new(plan), keys }, columns })
            }
            Plan::Limit { input, limit, offset, ties: false } => {
                let Compiled { plan, columns } = Compiled::of(input, ctx)?;
                let count = |expr: &Option<Expr>, place| match expr {
                    Some(expr) => count(expr, place, ctx),
                    None => Some(None),
                };
                let (limit, offset) = (count(limit, row_count::LIMIT)?, count(offset, row_count::OFFSET)?);
                let plan = exec::Plan::Limit { input: Box::new(plan), offset: offset.unwrap_or(0), limit };
                Some(Compiled { plan, columns })
            }
            _ => None,
        }
    }

    fn column(&self, id: ColId, ty: &basalt_types::DataType) -> Option<Expr> {
        placed(&Expr::Hole { id, ty: ty.clone() }, &self.columns)
    }
}

/// An expression with positions for ids; `None` if it asks for something else, or is volatile.
fn placed(expr: &Expr, columns: &[ColId]) -> Option<Expr> {
    if expr.volatility() == Volatility::Volatile {
        return None;
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
    known.then_some(placed)
}

fn aggregate(call: &AggregateCall, columns: &[ColId]) -> Option<exec::AggregateCall> {
    let name = call.resolved.aggregate.name.as_str();
    let plain = !call.distinct && call.order_by.is_empty() && call.resolved.orders.is_empty();
    (plain && UNORDERED.contains(&name)).then_some(())?;
    let args = call.args.iter().map(|arg| placed(arg, columns)).collect::<Option<Vec<_>>>()?;
    let filter = match &call.filter {
        Some(filter) => Some(placed(filter, columns)?),
        None => None,
    };
    Some(exec::AggregateCall { resolved: call.resolved.clone(), args, filter })
}

fn sort_key(key: &SortKey, columns: &[ColId]) -> Option<exec::SortKey> {
    let SortKey { expr, descending, nulls_first } = key;
    Some(exec::SortKey { expr: placed(expr, columns)?, descending: *descending, nulls_first: *nulls_first })
}

/// LIMIT's or OFFSET's number of rows; the inner `None` is no limit.
fn count(expr: &Expr, place: row_count::CountPlace, ctx: &RunContext) -> Option<Option<usize>> {
    let value = expr.eval_scalar(&[], &ctx.eval).ok()?;
    match row_count::row_count(&value, place).ok()? {
        Some(rows) => Some(Some(usize::try_from(rows).ok()?)),
        None => Some(None),
    }
}
