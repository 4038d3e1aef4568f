//! Aggregates that heed the order of their rows (`array_agg(x ORDER BY y)`): the rows are sorted, and then come one after
//! the other.

use super::compile::{Compiled, Compiling, Taken, aggregate, placed, sort_key};
use crate::plan::arrival::IN_ORDER;
use crate::plan::{AggregateCall, ColId, SortKey};
use basalt_exec::plan as exec;
use basalt_expr::tree::Expr;

/// Whether a call's rows have to be in the order that it names.
pub(super) fn heeds_order(call: &AggregateCall) -> bool {
    !call.order_by.is_empty() && IN_ORDER.contains(&call.resolved.aggregate.name.as_str())
}

impl Compiled {
    /// Sorts the rows as calls want them; where each value counts once, leaves one row of each. What the groups and calls
    /// are over the rows that are left.
    pub(super) fn in_order_of(
        self,
        groups: &[(ColId, Expr)],
        aggregates: &[(ColId, AggregateCall)],
        how: &mut Compiling<'_>,
    ) -> Taken<(Compiled, Vec<Expr>, Vec<exec::AggregateCall>)> {
        let order = one_order(aggregates)?;
        let distinct = aggregates.iter().any(|(_, call)| call.distinct && heeds_order(call));
        let Compiled { mut plan, columns } = self;
        let mut placed_groups = groups.iter().map(|(_, group)| placed(group, &columns)).collect::<Taken<Vec<_>>>()?;
        let mut calls = aggregates.iter().map(|(_, call)| aggregate(call, &columns)).collect::<Taken<Vec<_>>>()?;
        let mut keys = order.iter().map(|key| sort_key(key, &columns)).collect::<Taken<Vec<_>>>()?;
        if distinct {
            let value = one_value(aggregates)?;
            let at = |index: usize, ty| Expr::Column { index, ty };
            let all = placed_groups.iter().cloned().chain([placed(value, &columns)?]).collect();
            plan =
                exec::Plan::Aggregate { input: Box::new(plan), groups: all, dependent: Vec::new(), calls: Vec::new() };
            let types = groups.iter().map(|(_, group)| group.ty()).enumerate();
            placed_groups = types.map(|(index, ty)| at(index, ty)).collect();
            calls.iter_mut().for_each(|call| {
                call.args[0] = at(groups.len(), value.ty());
                call.distinct = false;
            });
            keys.iter_mut().for_each(|key| key.expr = at(groups.len(), value.ty()));
        }
        let sorted = Compiled { plan: exec::Plan::Sort { input: Box::new(plan), keys }, columns };
        Ok((sorted.noted(how, None, |notes| notes.sort(order)), placed_groups, calls))
    }
}

/// The order that all calls want that want one.
fn one_order(aggregates: &[(ColId, AggregateCall)]) -> Taken<&[SortKey]> {
    let mut orders = aggregates.iter().filter(|(_, call)| heeds_order(call)).map(|(_, call)| call.order_by.as_slice());
    let first = orders.next().unwrap_or_default();
    match orders.all(|other| other == first) {
        true => Ok(first),
        false => Err("aggregates that want rows in different orders".into()),
    }
}

/// The value of which each counts once, for all calls, and by which they are ordered.
fn one_value(aggregates: &[(ColId, AggregateCall)]) -> Taken<&Expr> {
    let of = |call: &'_ AggregateCall| {
        let (value, rest) = call.args.split_first()?;
        let is_plain = call.distinct && call.filter.is_none() && heeds_order(call);
        let by_value = call.order_by.len() == 1 && call.order_by[0].expr == *value;
        (is_plain && by_value && rest.iter().all(|arg| matches!(arg, Expr::Const { .. }))).then(|| value.clone())
    };
    let first = aggregates.first().and_then(|(_, call)| call.args.first());
    match first.filter(|first| aggregates.iter().all(|(_, call)| of(call).as_ref() == Some(first))) {
        Some(value) => Ok(value),
        None => Err("DISTINCT values in order, beside others".into()),
    }
}
