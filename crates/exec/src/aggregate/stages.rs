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
            let at = groups.len() + 1 + inner.len();
            let (args, counts) = match call.resolved.aggregate.name.as_str() {
                "count" => (Vec::new(), Some(at)),
                "avg" => (vec![at], Some(at + 1)),
                _ => (vec![at], None),
            };
            inner.extend(first_of(program, call, ctx)?);
            outer.push(Call { args, counts, filter: None, ..call.clone() });
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

/// What the first stage has to know of a call; `None` if that is not known.
fn first_of(program: &Program, call: &Call, ctx: &EvalContext) -> Option<Vec<Call>> {
    if call.digits.is_some() {
        return None;
    }
    let kind = |place: &Place| program.fields[*place].kind();
    match (call.resolved.aggregate.name.as_str(), call.args.as_slice()) {
        ("count", _) => Some(vec![call.clone()]),
        ("sum", [arg]) => matches!(kind(arg), Some(Kind::Whole | Kind::Scaled(_))).then(|| vec![call.clone()]),
        ("avg", [arg]) => {
            matches!(kind(arg), Some(Kind::Whole | Kind::Scaled(_))).then_some(())?;
            let part = |name: &str| {
                let column = Expr::Column { index: *arg, ty: program.fields[*arg].ty.clone() };
                let (resolved, _) = resolve::aggregate(Registry::builtin(), name, vec![column], ctx).ok()?;
                Some(Call { resolved, ..call.clone() })
            };
            Some(vec![part("sum")?, part("count")?])
        }
        // Of texts there would be one for each value of a group.
        ("min" | "max", [arg]) => kind(arg).is_some().then(|| vec![call.clone()]),
        _ => None,
    }
}
