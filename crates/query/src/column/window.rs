//! Windows for the column engine: calls are gathered by what they are over, one sort for each.

use super::compile::{Compiled, Compiling, Taken, aggregate, placed, sort_key};
use crate::plan::{ColId, SortKey, WindowCall, WindowFunction};
use basalt_exec::plan as exec;
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_expr::window::{Offset, Units};

/// What calls have in common that one sort serves.
#[derive(PartialEq)]
struct Over<'c> {
    partition_by: &'c [Expr],
    order_by: &'c [SortKey],
    arrival: &'c [SortKey],
}

impl Compiled {
    pub(super) fn windowed(
        self,
        calls: &[(ColId, WindowCall)],
        rows: Option<f64>,
        how: &mut Compiling<'_>,
    ) -> Taken<Compiled> {
        let mut overs: Vec<(Over<'_>, Vec<&(ColId, WindowCall)>)> = Vec::new();
        for entry in calls {
            let WindowCall { partition_by, order_by, arrival, .. } = &entry.1;
            let over = Over { partition_by, order_by, arrival };
            match overs.iter_mut().find(|(known, _)| *known == over) {
                Some((_, calls)) => calls.push(entry),
                None => overs.push((over, vec![entry])),
            }
        }
        overs.sort_by_key(|(over, _)| std::cmp::Reverse((over.partition_by.len(), over.order_by.len())));
        // Without an order of its own a window has its rows as the one before had them.
        for (over, _) in overs.iter_mut().skip(1) {
            if over.partition_by.is_empty() && over.order_by.is_empty() {
                over.arrival = &[];
            }
        }
        for (_, call) in calls {
            call.offsets.iter().flatten().for_each(|offset| how.holds_value_of(offset));
            if call.frame.units == Units::Range && call.offsets.iter().any(Option::is_some) {
                how.is_for_one_execution();
            }
        }
        overs.into_iter().try_fold(self, |compiled, (over, calls)| {
            let compiled = compiled.over(&over, &calls, &how.ctx.eval)?;
            Ok(compiled.noted(how, rows, |notes| notes.window(&calls)))
        })
    }

    fn over(self, over: &Over<'_>, calls: &[&(ColId, WindowCall)], ctx: &EvalContext) -> Taken<Compiled> {
        let Compiled { plan, mut columns } = self;
        let keys = |keys: &[SortKey]| keys.iter().map(|key| sort_key(key, &columns)).collect::<Taken<Vec<_>>>();
        let partition = over.partition_by.iter().map(|expr| placed(expr, &columns)).collect::<Taken<Vec<_>>>()?;
        let (order, arrival) = (keys(over.order_by)?, keys(over.arrival)?);
        let compiled = calls.iter().map(|(_, call)| window_call(call, &columns, ctx)).collect::<Taken<Vec<_>>>()?;
        columns.extend(calls.iter().map(|(id, _)| *id));
        let plan = exec::Plan::Window { input: Box::new(plan), partition, order, arrival, calls: compiled };
        Ok(Compiled { plan, columns })
    }
}

fn window_call(call: &WindowCall, columns: &[ColId], ctx: &EvalContext) -> Taken<exec::WindowCall> {
    let column = |expr: &Expr| placed(expr, columns);
    let optional = |expr: &Option<Expr>| expr.as_ref().map(column).transpose();
    let function = match &call.function {
        WindowFunction::Ranking(ranking) => exec::WindowFunction::Ranking(*ranking),
        WindowFunction::Ntile(buckets) => exec::WindowFunction::Ntile(column(buckets)?),
        WindowFunction::Lag { value, offset, default, lead } => exec::WindowFunction::Shifted {
            value: column(value)?,
            offset: optional(offset)?,
            default: optional(default)?,
            lead: *lead,
        },
        WindowFunction::Edge(edge, value) => exec::WindowFunction::Edge(*edge, column(value)?),
        WindowFunction::NthValue(value, nth) => exec::WindowFunction::NthValue(column(value)?, column(nth)?),
        WindowFunction::Aggregate(call) => {
            let compiled = aggregate(call, columns)?;
            if compiled.heeds_order {
                return Err("a window's aggregate in an order of its own".into());
            }
            // What fails may fail for rows that the filter leaves out.
            let is_total = compiled.filter.is_none() || compiled.args.iter().all(Expr::is_total);
            match is_total && !compiled.distinct {
                true => exec::WindowFunction::Aggregate(compiled),
                false => return Err("a window's FILTER before what may fail".into()),
            }
        }
    };
    use exec::WindowFunction::{Aggregate, Edge, NthValue};
    let frame = match function {
        Aggregate(_) | Edge(..) | NthValue(..) => {
            Some(frame(call, ctx).ok_or("a frame whose offsets are wrong or vary")?)
        }
        _ => None,
    };
    Ok(exec::WindowCall { function, ty: call.ty.clone(), frame })
}

/// `None` for offsets that are no constants or wrong.
fn frame(call: &WindowCall, ctx: &EvalContext) -> Option<exec::WindowFrame> {
    let offset = |expr: &Option<Expr>| match expr {
        None => Some(None),
        Some(expr) if expr.any(&mut |node| matches!(node, Expr::Hole { .. })) => None,
        Some(expr) => Some(Some(Offset { value: expr.eval_scalar(&[], ctx).ok()?, ty: expr.ty() })),
    };
    let offsets = [offset(&call.offsets[0])?, offset(&call.offsets[1])?];
    let values = offsets.each_ref().map(|offset| offset.as_ref().map(|offset| &offset.value));
    call.frame.check_offsets(values).ok()?;
    Some(exec::WindowFrame { spec: call.frame, offsets })
}
