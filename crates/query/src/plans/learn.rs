//! Whether a text with parameters means what the text with its literals means.

use super::text::{Literal, Literals, statement_of};
use super::{Known, KnownPlan, PlanKey};
use crate::bind::point::PointQuery;
use crate::bind::{self, BindContext, Bound, Needs, ParamTypes, Write};
use crate::plan::Plan;
use crate::row::{Role, RowPlan};
use crate::session::{Columns, Session, locks_of};
use crate::statement::allowed;
use crate::statement::at_once::{AtOnce, Kind, may_be_repeated};
use crate::syntax;
use basalt_engine::Catalog;
use basalt_expr::EvalContext;
use basalt_expr::functions::Volatility;
use basalt_expr::io::text;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};
use parking_lot::Mutex;
use std::sync::Arc;

/// Binds `sql` as it is and with parameters (`key`). `None`: there is no row plan for it, or it would mean something
/// else, or it fails.
pub(crate) fn learn(
    session: &Session,
    catalog: &Arc<Catalog>,
    sql: &str,
    key: &PlanKey,
    literals: &Literals<'_>,
) -> Option<Arc<Known>> {
    let eval = session.eval_context(Vec::new(), catalog);
    let of_literals = |literal: &Literal<'_>| match literal {
        Literal::Int4(_) => DataType::Int4,
        Literal::Int8(_) => DataType::Int8,
        Literal::Decimal(_) => DataType::Numeric(None),
        Literal::Text(_) => DataType::Unknown,
    };
    let (plain, _) = bound(session, catalog, sql, ParamTypes::none(), &eval)?;
    let open = ParamTypes::open(literals.iter().map(of_literals).collect());
    let (shaped, types) = bound(session, catalog, statement_of(&key.text)?, open, &eval)?;
    let values = values(literals, &types, &eval)?;
    let columns = |bound: &Bound| bound.columns().map(Columns::from);
    let columns = Some(columns(&plain)).filter(|plain| *plain == columns(&shaped))?;
    let plan = match (&plain, shaped) {
        (Bound::Write(plain), Bound::Write(shaped)) => {
            let at_once = at_once(catalog, &eval, plain, &shaped, &values)?;
            KnownPlan::AtOnce { at_once, bound: Bound::Write(shaped) }
        }
        (Bound::Query(query), shaped) if !query.row_locks.is_empty() || matches!(query.plan, Plan::LockRows(_)) => {
            let at_once = locked(catalog, &eval, &plain, &shaped, &values)?;
            KnownPlan::AtOnce { at_once, bound: shaped }
        }
        (_, shaped) => {
            let plan = RowPlan::of(&shaped, &eval).filter(is_plain)?;
            let example = given(RowPlan::of(&shaped, &eval)?, &values, &eval);
            let as_written = given(RowPlan::of(&plain, &eval)?, &[], &eval);
            KnownPlan::Read(Some(plan).filter(|_| example.is_same(&as_written))?)
        }
    };
    Some(Arc::new(Known::new(key.clone(), catalog.version, plan, columns, types)))
}

/// A write that runs where its message is read, and that is, with the literals for its parameters, the one with literals.
fn at_once(catalog: &Catalog, eval: &EvalContext, plain: &Write, shaped: &Write, values: &[Datum]) -> Option<AtOnce> {
    let of = |write: &Write| {
        let bound = Bound::Write(write.clone());
        AtOnce::of(&bound, locks_of(&bound), catalog, eval)
    };
    of(plain)?;
    let at_once = of(shaped)?;
    let (as_written, with_parameters) = (plain.exprs(), shaped.exprs());
    let is_alike = std::mem::discriminant(plain) == std::mem::discriminant(shaped)
        && as_written.len() == with_parameters.len()
        && plain.places() == shaped.places();
    let mut both = as_written.into_iter().zip(&with_parameters);
    let is_same = |(plain, shaped): (&Expr, &&Expr)| {
        plain.clone().fold(eval, false) == with_values((*shaped).clone(), values).fold(eval, false)
    };
    (is_alike && with_parameters.iter().all(|expr| is_plain_value(expr)) && both.all(is_same)).then_some(at_once)
}

/// The same of a SELECT that locks one row by its key. What fails is run again by who tells the error.
fn locked(catalog: &Catalog, eval: &EvalContext, plain: &Bound, shaped: &Bound, values: &[Datum]) -> Option<AtOnce> {
    let of = |bound: &Bound| AtOnce::of(bound, locks_of(bound), catalog, eval);
    let (as_written, at_once) = (of(plain)?, of(shaped)?);
    let (Kind::Locked(plain), Kind::Locked(shaped)) = (&as_written.kind, &at_once.kind) else { return None };
    let lock = |point: &PointQuery| point.lock.as_ref().map(|lock| (lock.strength, lock.on_locked));
    let is_alike = plain.table.id == shaped.table.id
        && lock(plain) == lock(shaped)
        && plain.columns == shaped.columns
        && plain.outputs == shaped.outputs;
    let means_the_same = is_alike
        && shaped.outputs.iter().all(|output| !has_params(output) && may_be_repeated(output))
        && shaped.access.key.iter().all(|value| is_value(value) || !has_params(value))
        && shaped.filter.clone().split_and().iter().all(is_plain_condition);
    let exprs = |point: &PointQuery| point.access.key.iter().chain([&point.filter]).cloned().collect::<Vec<_>>();
    let (plain, shaped) = (exprs(plain), exprs(shaped));
    let is_same =
        |(plain, shaped): (Expr, Expr)| plain.fold(eval, false) == with_values(shaped, values).fold(eval, false);
    (means_the_same && plain.len() == shaped.len() && plain.into_iter().zip(shaped).all(is_same)).then_some(at_once)
}

/// Whether a new value or a condition on the row means the same however its literals are written: they stand alone, or
/// beside what the row has.
fn is_plain_value(expr: &Expr) -> bool {
    match expr {
        expr if is_value(expr) || !has_params(expr) => true,
        Expr::And(args) => args.iter().all(is_plain_value),
        Expr::Cast { expr, explicit: false, .. } => is_plain_value(expr),
        Expr::Call { function, args, .. } => {
            function.volatility == Volatility::Immutable
                && expr.any(&mut |node| matches!(node, Expr::Column { .. }))
                && args.iter().all(is_plain_value)
        }
        _ => false,
    }
}

fn has_params(expr: &Expr) -> bool {
    expr.any(&mut |node| matches!(node, Expr::Param { .. }))
}

/// Whether parameters stand in comparisons alone, as they are. Elsewhere (in casts, in functions named as types, in
/// outputs) what a literal means may depend on how it is written.
fn is_plain(plan: &RowPlan) -> bool {
    plan.parts().into_iter().all(|(role, expr)| match role {
        Role::Value => is_value(expr) || !has_params(expr),
        Role::Condition => expr.clone().split_and().iter().all(is_plain_condition),
        Role::Output => !has_params(expr),
    })
}

fn is_plain_condition(condition: &Expr) -> bool {
    match condition {
        Expr::Call { function, args, ty: DataType::Bool } if function.volatility == Volatility::Immutable => {
            args.iter().all(|arg| is_value(arg) || !has_params(arg))
        }
        other => !has_params(other),
    }
}

/// A parameter, negated or made one of a wider type.
fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Param { .. } => true,
        Expr::Cast { expr, explicit: false, .. } => is_value(expr),
        Expr::Call { function, args, .. } => {
            matches!(function.name.as_str(), "int4um" | "int8um" | "numeric_uminus") && args.iter().all(is_value)
        }
        _ => false,
    }
}

/// Literals as values of the parameters' types.
pub(crate) fn values(literals: &Literals<'_>, types: &[DataType], eval: &EvalContext) -> Option<Vec<Datum>> {
    let value = |(literal, ty): (&Literal<'_>, &DataType)| match literal {
        Literal::Int4(value) => (*ty == DataType::Int4).then_some(Datum::I32(*value)),
        Literal::Int8(value) => (*ty == DataType::Int8).then_some(Datum::I64(*value)),
        Literal::Decimal(written) if *ty == DataType::Numeric(None) => text::parse(ty, written, eval).ok(),
        Literal::Decimal(_) => None,
        Literal::Text(written) if written.contains('\'') => text::parse(ty, &written.replace("''", "'"), eval).ok(),
        Literal::Text(written) => text::parse(ty, written, eval).ok(),
    };
    (literals.len() == types.len()).then(|| literals.iter().zip(types).map(value).collect())?
}

fn bound(
    session: &Session,
    catalog: &Arc<Catalog>,
    sql: &str,
    mut types: ParamTypes,
    eval: &Arc<EvalContext>,
) -> Option<(Bound, Vec<DataType>)> {
    let mut parsed = syntax::parse(sql).ok()?;
    let statement = parsed.pop().filter(|statement| parsed.is_empty() && statement.statement.has_plan())?;
    let needs = Arc::new(Mutex::new(Needs::of(session.superuser, &session.user)));
    let ctx = BindContext {
        needs: Some(needs.clone()),
        // What is worth a warning is told on the ordinary path.
        warnings: Arc::default(),
        ..session.bind_context(catalog, &statement.sql, eval)
    };
    let bound = bind::bind_statement(&ctx, &statement.statement, &mut types).ok()?;
    let warned = !ctx.warnings.lock().is_empty();
    allowed::check(catalog, &session.user, &needs.lock()).ok()?;
    let types = types.finish().ok()?;
    (!warned).then_some((bound, types))
}

/// The plan with `values` for its parameters.
fn given(mut plan: RowPlan, values: &[Datum], eval: &EvalContext) -> RowPlan {
    plan.rewrite(&mut |expr| with_values(expr, values).fold(eval, false));
    plan
}

fn with_values(expr: Expr, values: &[Datum]) -> Expr {
    expr.rewrite(&mut |node| match node {
        Expr::Param { index, ty } => match values.get(index) {
            Some(value) => Expr::Const { value: value.clone(), ty },
            None => Expr::Param { index, ty },
        },
        other => other,
    })
}
