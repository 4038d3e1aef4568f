//! Aggregates of distinct values in two stages: first each value of a group is a group of its own, then groups are made of
//! those. What is aggregated beside them goes through both: counts are added up, least values are the least of the least.
//!
//! It is worth it for texts: those of several workers are put together by all of them, and sets of texts by one. Sets of
//! numbers take less than a second aggregation.

use super::Call;
use super::keys::is_text;
use crate::program::{Kind, Place, Program};
use basalt_expr::context::EvalContext;
use basalt_expr::functions::Registry;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;

/// Calls that each value of a group has a state for.
const BESIDE_MAX: usize = 6;

pub(crate) struct Stages {
    /// What the first stage groups by: the groups, and the value behind them.
    pub values: Vec<Place>,
    pub inner: Vec<Call>,
    /// Over the groups of the first stage, of which columns are numbered: keys, then calls.
    pub outer: Vec<Call>,
}

impl Stages {
    /// `None` where one stage has to do: values of several columns, of some rows alone, or of numbers, aggregates that two
    /// stages do not give, or too many of them.
    pub fn of(program: &Program, groups: &[Place], calls: &[Call], ctx: &EvalContext) -> Option<Stages> {
        let value = only_value(program, calls)?;
        let (mut inner, mut outer) = (Vec::new(), Vec::new());
        for call in calls {
            if call.distinct {
                outer.push(Call { args: vec![groups.len()], distinct: false, ..call.clone() });
                continue;
            }
            let (first, second) = both_of(program, call, groups.len() + 1 + inner.len(), ctx)?;
            inner.extend(first);
            outer.push(second);
        }
        (inner.len() <= BESIDE_MAX).then_some(())?;
        Some(Stages { values: groups.iter().copied().chain([value]).collect(), inner, outer })
    }
}

/// The value of which all distinct calls take each once.
fn only_value(program: &Program, calls: &[Call]) -> Option<Place> {
    let mut distinct = calls.iter().filter(|call| call.distinct);
    let &[value] = distinct.next()?.args.as_slice() else { return None };
    let are_alike = calls.iter().filter(|call| call.distinct).all(|call| call.args == [value] && call.filter.is_none());
    (are_alike && is_text(program.fields[value].ty.underlying())).then_some(value)
}

/// What the first stage computes of a call, in columns from number `at` on, and what the second makes of them; `None` if two
/// stages do not give it.
fn both_of(program: &Program, call: &Call, at: Place, ctx: &EvalContext) -> Option<(Vec<Call>, Call)> {
    if call.digits.is_some() {
        return None;
    }
    let kind = |place: &Place| program.fields[*place].kind();
    let is_summed = |place: &Place| matches!(kind(place), Some(Kind::Whole | Kind::Scaled(_)));
    let second = |args: Vec<Place>, counts: Option<Place>| Call { args, counts, filter: None, ..call.clone() };
    match (call.resolved.aggregate.name.as_str(), call.args.as_slice()) {
        ("count", _) => Some((vec![call.clone()], second(Vec::new(), Some(at)))),
        ("sum", [arg]) if is_summed(arg) => Some((vec![call.clone()], second(vec![at], None))),
        ("avg", [arg]) if is_summed(arg) => {
            let part = |name: &str| {
                let column = Expr::Column { index: *arg, ty: program.fields[*arg].ty.clone() };
                let (resolved, _) = resolve::aggregate(Registry::builtin(), name, vec![column], ctx).ok()?;
                Some(Call { resolved, ..call.clone() })
            };
            Some((vec![part("sum")?, part("count")?], second(vec![at], Some(at + 1))))
        }
        // Of texts there would be one for each value of a group.
        ("min" | "max", [arg]) if kind(arg).is_some() => Some((vec![call.clone()], second(vec![at], None))),
        _ => None,
    }
}
