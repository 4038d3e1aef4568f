//! How many groups meet a condition on what they have together.
//!
//! Rows are taken to fall into groups by chance, so that sizes scatter as Poisson's numbers do, and values to lie evenly
//! between the bounds of their column: sums and averages are then about normal. Real groups scatter more widely; no
//! share is taken to be nearer to none or to all than [`SHARE_MIN`].

use super::columns::column;
use super::profile::{Profile, number};
use super::selectivity;
use crate::plan::{AggregateCall, ColId};
use basalt_expr::tree::Expr;
use basalt_types::CompareOp;

const SHARE_MIN: f64 = 1e-4;
/// Where nothing is known: who asks for groups by what they have together asks for exceptions.
const GUESS_MAX: f64 = 0.1;
/// Sizes of more rows on average are normal, too.
const COUNTED_MAX: f64 = 200.0;

/// The share of groups for which all conjuncts hold. `found`: what is known of the groups.
pub fn share(
    conjuncts: &[Expr],
    groups: &[(ColId, Expr)],
    aggregates: &[(ColId, AggregateCall)],
    input: &Profile,
    found: &Profile,
) -> f64 {
    let is_known = |expr: &Expr| column(expr).and_then(|id| input.columns.get(&id)).is_some_and(|known| known.known);
    let sized = groups.iter().all(|(_, expr)| is_known(expr));
    let groups = Groups { aggregates, input, size: input.rows / found.rows };
    let (mut share, mut others) = (1.0, Vec::new());
    for conjunct in conjuncts {
        match groups.share(conjunct).filter(|_| sized) {
            Some(own) => share *= own,
            None => others.push(conjunct.clone()),
        }
    }
    if others.is_empty() {
        return share;
    }
    share * selectivity::of_all(&others, &|id| found.columns.get(&id)).min(GUESS_MAX)
}

/// The groups of an input, and what is computed of each.
struct Groups<'g> {
    aggregates: &'g [(ColId, AggregateCall)],
    input: &'g Profile,
    /// Rows per group.
    size: f64,
}

impl Groups<'_> {
    /// The share of groups for which a condition holds; `None` if it says nothing of an aggregate alone.
    fn share(&self, conjunct: &Expr) -> Option<f64> {
        let Expr::Call { function, args, .. } = conjunct else { return None };
        let [left, right] = args.as_slice() else { return None };
        let op = function.comparison()?;
        let (id, value, op) = match (column(left), column(right)) {
            (Some(id), None) => (id, right, op),
            (None, Some(id)) => (id, left, op.mirrored()),
            _ => return None,
        };
        let Expr::Const { value, ty } = value else { return None };
        let value = number(ty, value)?;
        let (_, call) = self.aggregates.iter().find(|(own, _)| *own == id)?;
        let share = self.of(call, op, value)?;
        share.is_finite().then(|| share.clamp(SHARE_MIN, 1.0 - SHARE_MIN))
    }

    fn of(&self, call: &AggregateCall, op: CompareOp, value: f64) -> Option<f64> {
        let name = call.resolved.aggregate.name.as_str();
        if call.filter.is_some() || call.distinct && !matches!(name, "min" | "max") {
            return None;
        }
        // No group is empty.
        let (size, more) = (self.size.max(1.0), (self.size - 1.0).max(0.0));
        if name == "count" {
            return Some(match op {
                CompareOp::Eq => up_to(more, value) - up_to(more, value - 1.0),
                CompareOp::NotEq => 1.0 - up_to(more, value) + up_to(more, value - 1.0),
                CompareOp::LtEq => up_to(more, value),
                CompareOp::Lt => up_to(more, value.ceil() - 1.0),
                CompareOp::Gt => 1.0 - up_to(more, value),
                CompareOp::GtEq => 1.0 - up_to(more, value.ceil() - 1.0),
            });
        }
        let known = self.input.columns.get(&column(call.args.first()?)?)?;
        let (least, greatest) = known.bounds.filter(|(least, greatest)| greatest > least)?;
        let (mean, scatter) = ((least + greatest) / 2.0, (greatest - least).powi(2) / 12.0);
        let below = match name {
            "sum" => normal(value, size * mean, size * scatter + more * mean * mean),
            "avg" => normal(value, mean, scatter / size),
            "max" => ((value - least) / (greatest - least)).clamp(0.0, 1.0).powf(size),
            "min" => 1.0 - ((greatest - value) / (greatest - least)).clamp(0.0, 1.0).powf(size),
            _ => return None,
        };
        match op {
            CompareOp::Lt | CompareOp::LtEq => Some(below),
            CompareOp::Gt | CompareOp::GtEq => Some(1.0 - below),
            CompareOp::Eq | CompareOp::NotEq => None,
        }
    }
}

/// How probable it is that a group has no more than so many rows, if `more` than one are expected.
fn up_to(more: f64, rows: f64) -> f64 {
    let rows = rows.floor();
    if rows < 1.0 {
        return 0.0;
    }
    if more > COUNTED_MAX {
        return normal(rows + 0.5, more + 1.0, more);
    }
    let (mut term, mut sum, mut at) = ((-more).exp(), 0.0, 0.0);
    // Beyond that nothing is left to add.
    while at < rows.min(COUNTED_MAX * 4.0) {
        sum += term;
        at += 1.0;
        term *= more / at;
    }
    f64::min(sum, 1.0)
}

/// How probable it is that something normal is below a value.
fn normal(value: f64, mean: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return if mean < value { 1.0 } else { 0.0 };
    }
    0.5 * libm::erfc((mean - value) / (2.0 * variance).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_scatter_as_poissons_numbers() {
        assert_eq!(up_to(0.0, 0.0), 0.0);
        assert_eq!(up_to(0.0, 1.0), 1.0);
        // One and none, one or two more, of one more on average: 1/e each, and half of it.
        assert!((up_to(1.0, 3.0) - 2.5 / std::f64::consts::E).abs() < 1e-12);
        assert!((up_to(150.0, 151.0) - 0.5).abs() < 0.05 && (up_to(1e6, 1e6) - 0.5).abs() < 0.05);
        assert!(up_to(150.0, 1e18) > 0.999_999);
    }

    #[test]
    fn sums_are_about_normal() {
        assert!((normal(10.0, 10.0, 4.0) - 0.5).abs() < 1e-12);
        assert!((normal(12.0, 10.0, 4.0) - 0.841_345).abs() < 1e-6);
        assert!((normal(16.0, 10.0, 4.0) - 0.998_650).abs() < 1e-6);
        assert_eq!((normal(1.0, 2.0, 0.0), normal(3.0, 2.0, 0.0)), (0.0, 1.0));
    }
}
