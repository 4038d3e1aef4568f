//! Conditions in parts: what each of them says of a side that an outer join fills with nulls, what an OR over several
//! tables asks of each of them, and which of them are keys of a join.

use super::columns::{ColSet, refers, within};
use super::node::Key;
use basalt_expr::functions::Function;
use basalt_expr::resolve::resolve_operator;
use basalt_expr::tree::{Expr, Truth};
use basalt_types::{CompareOp, DataType, Datum};

/// Conjuncts among which a twin is looked for: of more, it takes longer to find it than to ask it again.
const TWINS_AMONG: usize = 64;

/// The conjuncts of conditions, without those that are always true.
pub fn split(conditions: impl IntoIterator<Item = Expr>) -> Vec<Expr> {
    let all = conditions.into_iter().flat_map(Expr::conditions);
    let mut out: Vec<Expr> = Vec::new();
    for conjunct in all.filter(|conjunct| *conjunct != Expr::bool(true)) {
        if !out.iter().take(TWINS_AMONG).any(|other| *other == conjunct) {
            out.push(conjunct);
        }
    }
    out
}

/// Whether a condition is false or null whatever the row.
pub fn is_never_true(condition: &Expr) -> bool {
    matches!(condition, Expr::Const { value, .. } if *value != Datum::Bool(true))
}

/// Whether a condition is false or null wherever all of these columns are null.
pub fn rejects_nulls(condition: &Expr, columns: &ColSet) -> bool {
    match condition {
        Expr::Const { value, .. } => *value != Datum::Bool(true),
        Expr::And(args) => args.iter().any(|arg| rejects_nulls(arg, columns)),
        Expr::Or(args) => args.iter().all(|arg| rejects_nulls(arg, columns)),
        Expr::AnyAll { left, all: false, .. } => is_null_of(left, columns),
        Expr::IsNotNull(inner) => is_null_of(inner, columns),
        Expr::BoolTest { expr, truth: Truth::True, negated: false } => rejects_nulls(expr, columns),
        Expr::BoolTest { expr, truth: Truth::False, negated: false } => is_null_of(expr, columns),
        Expr::BoolTest { expr, truth: Truth::Unknown, negated: true } => is_null_of(expr, columns),
        other => is_null_of(other, columns),
    }
}

/// Whether an expression is null wherever all of these columns are.
fn is_null_of(expr: &Expr, columns: &ColSet) -> bool {
    match expr {
        Expr::Hole { id, .. } => columns.contains(id),
        Expr::Const { value, .. } => value.is_null(),
        Expr::Call { function, args, .. } => function.strict && args.iter().any(|arg| is_null_of(arg, columns)),
        Expr::Cast { expr, to, .. } => !matches!(to, DataType::Domain(_)) && is_null_of(expr, columns),
        Expr::Not(inner) => is_null_of(inner, columns),
        Expr::InList { expr, list, .. } => !list.is_empty() && is_null_of(expr, columns),
        Expr::NullIf { left, .. } => is_null_of(left, columns),
        Expr::Coalesce { args, .. } | Expr::Extreme { args, .. } => args.iter().all(|arg| is_null_of(arg, columns)),
        _ => false,
    }
}

/// What an OR asks of these columns alone, if each of its alternatives asks something of them.
pub fn implied(condition: &Expr, columns: &ColSet) -> Option<Expr> {
    let Expr::Or(alternatives) = condition else { return None };
    let part = |alternative: &Expr| {
        let own = alternative.clone().split_and().into_iter().filter(|part| has_only(part, columns));
        let own: Vec<Expr> = own.collect();
        (!own.is_empty()).then(|| Expr::and(own))
    };
    let mut parts: Vec<Expr> = Vec::with_capacity(alternatives.len());
    for alternative in alternatives {
        let part = part(alternative)?;
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    match parts.len() {
        1 => parts.pop(),
        _ => Some(Expr::Or(parts)),
    }
}

fn has_only(expr: &Expr, columns: &ColSet) -> bool {
    refers(expr, columns) && within(expr, columns)
}

/// The two sides of an equality, and what decides it; `true` where a null equals a null.
pub fn equality(condition: &Expr) -> Option<(&Expr, &Expr, &'static Function, bool)> {
    match condition {
        Expr::Call { function, args, .. } if function.comparison() == Some(CompareOp::Eq) => match args.as_slice() {
            [left, right] => Some((left, right, function, false)),
            _ => None,
        },
        Expr::IsDistinct { left, right, equal, negated: true } => Some((left, right, equal, true)),
        _ => None,
    }
}

/// The condition as a key of a join between columns of two sides.
pub fn key_of(condition: &Expr, left: &ColSet, right: &ColSet) -> Option<Key> {
    comparison_of(condition, left, right).filter(|key| refers(&key.left, left))
}

/// The same, whose left side may also be a constant.
pub fn comparison_of(condition: &Expr, left: &ColSet, right: &ColSet) -> Option<Key> {
    let (a, b, equal, null_safe) = equality(condition)?;
    let (a, b) = match () {
        () if within(a, left) && has_only(b, right) => (a, b),
        () if has_only(a, right) && within(b, left) => (b, a),
        () => return None,
    };
    if a.ty() == b.ty() {
        return Some(Key { left: a.clone(), right: b.clone(), equal, null_safe });
    }
    let ty = common_type(&a.ty(), &b.ty())?;
    let equal = equality_of(&ty)?;
    Some(Key { left: cast(a, &ty), right: cast(b, &ty), equal, null_safe })
}

/// Two sides compared with each other as values of one type of which neither loses anything.
fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::*;
    match (a, b) {
        (Int2, Int4) | (Int4, Int2) => Some(Int4),
        (Int2 | Int4, Int8) | (Int8, Int2 | Int4) => Some(Int8),
        (Numeric(_), Numeric(_)) => Some(Numeric(None)),
        (Text | Varchar(_), Text | Varchar(_)) => Some(Text),
        _ => None,
    }
}

fn cast(expr: &Expr, to: &DataType) -> Expr {
    match expr.ty() == *to {
        true => expr.clone(),
        false => Expr::Cast { expr: Box::new(expr.clone()), to: to.clone(), explicit: false },
    }
}

/// The `=` of a type, if it is one of that very type.
pub fn equality_of(ty: &DataType) -> Option<&'static Function> {
    let found = resolve_operator("=", Some(ty), ty).ok()?;
    let fits = |arg: &DataType| arg.base() == ty.base() || matches!(ty, DataType::Varchar(_));
    found.arg_types.iter().all(fits).then_some(found.function)
}
