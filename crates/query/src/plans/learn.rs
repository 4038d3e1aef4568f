//! Whether a text with parameters means what the text with its literals means.

use super::text::{Literal, Literals, statement_of};
use super::{Known, PlanKey};
use crate::bind::point::{PointQuery, point_query};
use crate::bind::{self, BindContext, Bound, Needs, ParamTypes};
use crate::row::RowPlan;
use crate::session::{Columns, Session};
use crate::statement::allowed;
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
        Literal::Text(_) => DataType::Unknown,
    };
    let (plain, _) = bound(session, catalog, sql, ParamTypes::none(), &eval)?;
    let open = ParamTypes::open(literals.iter().map(of_literals).collect());
    let (shaped, types) = bound(session, catalog, statement_of(&key.text)?, open, &eval)?;
    let values = values(literals, &types, &eval)?;
    let columns = |bound: &Bound| bound.columns().map(Columns::from);
    let columns = columns(&plain).filter(|plain| Some(plain) == columns(&shaped).as_ref())?;
    let (Bound::Query(plain), Bound::Query(query)) = (&plain, &shaped) else { return None };
    let shaped_point = point_query(query, &eval).filter(is_plain)?;
    let same = same(point_query(plain, &eval)?, shaped_point, &values, &eval);
    let plan = RowPlan::of(&shaped, &eval).filter(|_| same)?;
    Some(Arc::new(Known::new(key.clone(), catalog.version, plan, columns, types)))
}

/// Whether parameters stand in comparisons alone, as they are. Elsewhere (in casts, in functions named as types, in
/// outputs) what a literal means may depend on how it is written.
fn is_plain(point: &PointQuery) -> bool {
    let has_params = |expr: &Expr| expr.any(&mut |node| matches!(node, Expr::Param { .. }));
    !point.outputs.iter().any(has_params)
        && point.access.key.iter().all(|part| is_value(part) || !has_params(part))
        && point.filter.clone().split_and().iter().all(|condition| match condition {
            Expr::Call { function, args, ty: DataType::Bool } if function.volatility == Volatility::Immutable => {
                args.iter().all(|arg| is_value(arg) || !has_params(arg))
            }
            other => !has_params(other),
        })
}

/// A parameter, negated or made one of a wider type.
fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Param { .. } => true,
        Expr::Cast { expr, explicit: false, .. } => is_value(expr),
        Expr::Call { function, args, .. } => {
            matches!(function.name.as_str(), "int4um" | "int8um") && args.iter().all(is_value)
        }
        _ => false,
    }
}

/// Literals as values of the parameters' types.
pub(crate) fn values(literals: &Literals<'_>, types: &[DataType], eval: &EvalContext) -> Option<Vec<Datum>> {
    let value = |(literal, ty): (&Literal<'_>, &DataType)| match literal {
        Literal::Int4(value) => (*ty == DataType::Int4).then_some(Datum::I32(*value)),
        Literal::Int8(value) => (*ty == DataType::Int8).then_some(Datum::I64(*value)),
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

/// Whether the second, with `values` for its parameters, is the first.
fn same(plain: PointQuery, shaped: PointQuery, values: &[Datum], eval: &EvalContext) -> bool {
    let given = |expr: Expr| {
        let expr = expr.rewrite(&mut |node| match node {
            Expr::Param { index, ty } => match values.get(index) {
                Some(value) => Expr::Const { value: value.clone(), ty },
                None => Expr::Param { index, ty },
            },
            other => other,
        });
        expr.fold(eval, false)
    };
    let parts = |query: PointQuery| -> Vec<Expr> {
        let exprs = query.access.key.into_iter().chain(query.outputs).chain([query.filter]);
        exprs.map(given).collect()
    };
    Arc::ptr_eq(&plain.table, &shaped.table)
        && plain.lock.is_none()
        && shaped.lock.is_none()
        && parts(plain) == parts(shaped)
}
