//! Conditions on items: comparisons, `starts with`, `like_regex`.

use super::exec::{Execution, Failure, Truth};
use super::value::Item;
use super::{CompareOp, Pattern};
use crate::pattern::are;
use basalt_types::jsonb::Kind;
use std::cmp::Ordering;

/// Unknown for items of different kinds (but null differs from everything else) and for containers.
pub(super) fn compare(
    op: CompareOp,
    left: &Item<'_>,
    right: &Item<'_>,
    execution: &Execution<'_>,
) -> Result<Truth, Failure> {
    let (a, b) = (left.kind(), right.kind());
    if a != b {
        let one_is_null = a == Some(Kind::Null) || b == Some(Kind::Null);
        return Ok(one_is_null.then_some(op == CompareOp::NotEqual));
    }
    let order = match (left, right) {
        (Item::DateTime(left), Item::DateTime(right)) => left.compare(right, execution)?,
        _ => scalars(left, right),
    };
    Ok(order.map(|order| match op {
        CompareOp::Equal => order.is_eq(),
        CompareOp::NotEqual => order.is_ne(),
        CompareOp::Less => order.is_lt(),
        CompareOp::LessOrEqual => order.is_le(),
        CompareOp::Greater => order.is_gt(),
        CompareOp::GreaterOrEqual => order.is_ge(),
    }))
}

/// Two of one kind.
fn scalars(left: &Item<'_>, right: &Item<'_>) -> Option<Ordering> {
    match left.kind()? {
        Kind::Null => Some(Ordering::Equal),
        Kind::Bool => Some(left.part()?.text().len().cmp(&right.part()?.text().len()).reverse()),
        Kind::Number => Some(left.as_number()?.cmp(&right.as_number()?)),
        Kind::String => Some(left.as_string()?.as_bytes().cmp(right.as_string()?.as_bytes())),
        Kind::Array | Kind::Object => None,
    }
}

pub(super) fn starts_with(whole: &Item<'_>, start: &Item<'_>) -> Truth {
    Some(whole.as_string()?.starts_with(&*start.as_string()?))
}

pub(super) fn like_regex(item: &Item<'_>, pattern: &Pattern) -> Result<Truth, Failure> {
    let Some(text) = item.as_string() else { return Ok(None) };
    are::cached(&pattern.text, pattern.flags(), |regex| regex.is_match(&text)).map(Some).map_err(Failure::Hard)
}
