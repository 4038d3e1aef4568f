//! Constant folding: computing what depends on no row.
//!
//! PostgreSQL computes immutable calls over constants when it plans, so that their errors come even where no row
//! would reach them; only what `CASE`, `AND`, `OR` and `COALESCE` rule out by constants before is spared.
//! [`Expr::fold_strict`] does so, [`Expr::fold`] leaves what fails as it is.

use crate::context::EvalContext;
use crate::error::Result;
use crate::functions::{Kernel, Volatility};
use crate::resolve::decimal::TOO_WIDE;
use crate::tree::{Expr, cast_volatility};
use basalt_types::{DataType, Datum};

#[derive(Clone, Copy)]
struct Folding<'a> {
    ctx: &'a EvalContext,
    /// Whether parameters are computed.
    params: bool,
    /// Whether stable functions are computed.
    stable: bool,
    /// Whether an immutable call that fails fails the folding.
    strict: bool,
}

impl Folding<'_> {
    /// What is not below this is not computed.
    fn limit(self) -> Volatility {
        if self.stable { Volatility::Volatile } else { Volatility::Stable }
    }

    /// Whether what these operands compute must be computed although the result is null without them. What is
    /// constant and was not folded fails, and must, unless it would have had to by now. Beside a null that only
    /// execution knows, everything is computed.
    fn may_fail(self, operands: &[Expr]) -> bool {
        let fails = |operand: &Expr| match self.stable {
            true => !matches!(operand, Expr::Const { .. } | Expr::Column { .. } | Expr::Hole { .. }),
            false => operand.any(&mut |node| node.is_over_constants(self)),
        };
        !self.strict && operands.iter().any(fails)
    }
}

impl Expr {
    /// Computes what can be computed now. `ctx` gives parameters and the session's settings; with
    /// `stable` false (plans that outlive the statement) neither parameters nor stable functions are
    /// touched. An operand whose computation fails stays as it is.
    pub fn fold(self, ctx: &EvalContext, stable: bool) -> Expr {
        // What is null before a stable call is computed spares its neighbours, as when PostgreSQL plans.
        let planned = self.leniently(Folding { ctx, params: stable, stable: false, strict: false });
        if stable { planned.fold_stable(ctx) } else { planned }
    }

    /// [`Expr::fold`] for plans that outlive the statement, where it matters to whoever evaluates row by row: a null,
    /// true or false that is known spares its neighbours.
    pub fn fold_deciding(self, ctx: &EvalContext) -> Expr {
        let decides = self.any(&mut |node| matches!(node, Expr::Const { value: Datum::Null | Datum::Bool(_), .. }));
        // A part that is computed now may come to decide.
        match decides || self.has_constants() {
            true => self.fold(ctx, false),
            false => self,
        }
    }

    /// What is left to compute of a planned expression when it is executed.
    fn fold_stable(self, ctx: &EvalContext) -> Expr {
        self.leniently(Folding { ctx, params: true, stable: true, strict: false })
    }

    fn leniently(self, how: Folding) -> Expr {
        self.folded(how).expect("only strict folding fails")
    }

    /// As [`Expr::fold`] for the execution at hand, with the errors that PostgreSQL meets while it plans.
    pub fn fold_strict(self, ctx: &EvalContext) -> Result<Expr> {
        // A failure over what a stable call gives comes when rows are computed, if they are.
        let planned = self.folded(Folding { ctx, params: true, stable: false, strict: true })?;
        Ok(planned.fold_stable(ctx))
    }

    /// The error that [`Expr::fold_strict`] meets, for expressions that may be computed for no row at all.
    pub fn check_constants(&self, ctx: &EvalContext) -> Result<()> {
        if self.has_constants() {
            self.clone().fold_strict(ctx)?;
        }
        Ok(())
    }

    /// Whether a part of it is computed before there are rows: a call without columns and other calls.
    pub fn has_constants(&self) -> bool {
        self.any(&mut |node| !node.children().is_empty() && node.is_fixed())
    }

    fn is_fixed(&self) -> bool {
        self.children().iter().all(|operand| matches!(operand, Expr::Const { .. } | Expr::Param { .. }))
    }

    fn folded(mut self, how: Folding) -> Result<Expr> {
        match self {
            Expr::Const { .. } | Expr::Column { .. } | Expr::Hole { .. } => return Ok(self),
            Expr::Param { .. } if !how.params => return Ok(self),
            Expr::And(args) => return Ok(logic(terms(args, false, how)?, false)),
            Expr::Or(args) => return Ok(logic(terms(args, true, how)?, true)),
            Expr::Case { branches, otherwise, ty } => return case(branches, otherwise, ty, how),
            Expr::Coalesce { args, ty } => return coalesce(args, ty, how),
            _ => {}
        }
        for child in self.children_mut() {
            let taken = std::mem::replace(child, Expr::Hole { id: usize::MAX, ty: DataType::Void });
            *child = taken.folded(how)?;
        }
        match self {
            Expr::Call { function, args, ty } if function.strict && args.iter().any(Expr::is_null_const) => {
                let keep = function.returns_set || how.may_fail(&args);
                Ok(if keep { Expr::Call { function, args, ty } } else { Expr::null(ty) })
            }
            Expr::Cast { expr, to, .. } if expr.is_null_const() && !matches!(to, DataType::Domain(_)) => {
                Ok(Expr::null(to))
            }
            // Null equals nothing.
            Expr::NullIf { left, right, equal } if left.is_null_const() || right.is_null_const() => {
                Ok(if how.may_fail(std::slice::from_ref(&*right)) {
                    Expr::NullIf { left, right, equal }
                } else {
                    *left
                })
            }
            node => node.value(how),
        }
    }

    /// The value of a node whose operands are constants.
    fn value(self, how: Folding) -> Result<Expr> {
        let limit = how.limit();
        let operands = self.children().into_iter().all(|child| matches!(child, Expr::Const { .. }));
        if matches!(&self, Expr::Call { function, .. } if !matches!(function.kernel, Kernel::Native { .. })) {
            return Ok(self);
        }
        let own = self.own_volatility();
        if !operands || own >= limit {
            return Ok(self);
        }
        match self.eval_scalar(&[], how.ctx) {
            Ok(value) => Ok(Expr::Const { value, ty: self.ty() }),
            Err(error) if how.strict && own == Volatility::Immutable && error.sqlstate != TOO_WIDE => Err(error),
            Err(_) => Ok(self),
        }
    }

    /// That of the node, whatever its operands are.
    fn own_volatility(&self) -> Volatility {
        match self {
            Expr::Call { function, .. } => function.volatility,
            Expr::Cast { expr, to, .. } => cast_volatility(&expr.ty(), to),
            _ => Volatility::Immutable,
        }
    }

    /// Whether it computes something from constants alone, that always comes to the same as far as this folding goes.
    fn is_over_constants(&self, how: Folding) -> bool {
        let operands = self.children();
        let is_constant = |operand: &&Expr| matches!(operand, Expr::Const { .. });
        // Parameters are as good as constants once they are known.
        let fails_perhaps = || operands.iter().all(is_constant) || !self.is_harmless();
        self.own_volatility() < how.limit() && !operands.is_empty() && self.is_fixed() && fails_perhaps()
    }

    /// Its value over a row, as of a plan that is made for this execution: where a parameter, or a constant, spares a part
    /// that fails, it is spared.
    pub fn eval_as_planned(&self, row: &[Datum], ctx: &EvalContext) -> Result<Datum> {
        self.eval_scalar(row, ctx).or_else(|error| match self.clone().fold(ctx, true) {
            same if same == *self => Err(error),
            planned => planned.eval_scalar(row, ctx),
        })
    }

    /// The same of a condition: whether it is true.
    pub fn holds_as_planned(&self, row: &[Datum], ctx: &EvalContext) -> Result<bool> {
        let value = self.eval_scalar(row, ctx).or_else(|error| match self.clone().fold(ctx, true).without_nulls() {
            same if same == *self => Err(error),
            planned => planned.eval_scalar(row, ctx),
        });
        Ok(value? == Datum::Bool(true))
    }

    /// A condition in which null stands for false, as in WHERE.
    fn without_nulls(self) -> Expr {
        let of_parts = |args: Vec<Expr>| args.into_iter().map(Expr::without_nulls).collect::<Vec<_>>();
        let is =
            |arg: &Expr, truth: bool| matches!(arg, Expr::Const { value: Datum::Bool(value), .. } if *value == truth);
        match self {
            Expr::And(args) => match of_parts(args) {
                args if args.iter().any(|arg| is(arg, false)) => Expr::bool(false),
                args => logic(args, false),
            },
            Expr::Or(args) => match of_parts(args) {
                args if args.iter().any(|arg| is(arg, true)) => Expr::bool(true),
                args => logic(args, true),
            },
            expr if expr.is_null_const() => Expr::bool(false),
            expr => expr,
        }
    }
}

/// The operands of AND (`decisive` false) or OR, folded up to the one that decides: it alone, unless what stands before it
/// fails first.
fn terms(args: Vec<Expr>, decisive: bool, how: Folding) -> Result<Vec<Expr>> {
    let fails = |before: &[Expr]| match how.stable {
        true => !before.iter().all(Expr::is_harmless),
        false => how.may_fail(before),
    };
    let mut out = Vec::with_capacity(args.len());
    for arg in args {
        let arg = arg.folded(how)?;
        let decides = matches!(arg, Expr::Const { value: Datum::Bool(value), .. } if value == decisive);
        if decides && !fails(&out) {
            return Ok(vec![arg]);
        }
        out.push(arg);
        if decides {
            break;
        }
    }
    Ok(out)
}

/// AND or OR of what [`terms`] gives.
fn logic(args: Vec<Expr>, decisive: bool) -> Expr {
    let mut kept = Vec::with_capacity(args.len());
    for arg in args {
        match arg {
            Expr::Const { value: Datum::Bool(value), .. } if value == decisive => kept.push(Expr::bool(decisive)),
            Expr::Const { value: Datum::Bool(_), .. } => {}
            Expr::And(inner) if !decisive => kept.extend(inner),
            Expr::Or(inner) if decisive => kept.extend(inner),
            other => kept.push(other),
        }
    }
    if !kept.is_empty() && kept.iter().all(Expr::is_null_const) {
        return Expr::null(DataType::Bool);
    }
    match (kept.len(), decisive) {
        (0, _) => Expr::bool(!decisive),
        (1, _) => kept.remove(0),
        (_, false) => Expr::And(kept),
        (_, true) => Expr::Or(kept),
    }
}

fn case(branches: Vec<(Expr, Expr)>, otherwise: Option<Box<Expr>>, ty: DataType, how: Folding) -> Result<Expr> {
    let mut kept = Vec::with_capacity(branches.len());
    let mut decided = None;
    for (condition, value) in branches {
        match condition.folded(how)? {
            Expr::Const { value: Datum::Bool(true), .. } => {
                decided = Some(value);
                break;
            }
            Expr::Const { .. } => {}
            condition => kept.push((condition, value.folded(how)?)),
        }
    }
    let otherwise = match decided.or(otherwise.map(|value| *value)) {
        Some(value) => Some(Box::new(value.folded(how)?)),
        None => None,
    };
    Ok(match (kept.is_empty(), otherwise) {
        (true, Some(value)) => *value,
        (true, None) => Expr::null(ty),
        (false, otherwise) => Expr::Case { branches: kept, otherwise, ty },
    })
}

fn coalesce(args: Vec<Expr>, ty: DataType, how: Folding) -> Result<Expr> {
    let mut kept = Vec::with_capacity(args.len());
    for arg in args {
        let arg = arg.folded(how)?;
        if arg.is_null_const() {
            continue;
        }
        let decides = matches!(arg, Expr::Const { .. });
        kept.push(arg);
        if decides {
            break;
        }
    }
    Ok(match kept.as_slice() {
        [] => Expr::null(ty),
        [Expr::Const { .. }] => kept.remove(0),
        _ => Expr::Coalesce { args: kept, ty },
    })
}
