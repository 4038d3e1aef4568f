//! AND, OR, CASE and COALESCE inside of expressions: an operand is evaluated for the rows that reach it.
//!
//! DataFusion evaluates the operands of AND and OR for whole batches. Where a later one may fail, or calls something
//! volatile, they are one expression of our own evaluator, which looks at the rows that are left alone; with subqueries
//! between them they are DataFusion's CASE, which does so, too. The outermost AND of a condition does not come here: see
//! [`super::conditions`].

use super::Lowerer;
use crate::error::{Result, SqlError};
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Case, Expr as DfExpr, Operator, binary_expr};

impl Lowerer<'_> {
    pub(super) fn logic(&mut self, args: &[Expr], op: Operator) -> Result<DfExpr> {
        let mut done: Option<DfExpr> = None;
        // Operands without subqueries that stand together.
        let mut run: Vec<Expr> = Vec::new();
        for arg in args {
            if !self.has_subquery(arg) {
                run.push(arg.clone());
                continue;
            }
            done = self.with_run(done, std::mem::take(&mut run), op)?;
            let waits = done.is_some() && (!arg.is_harmless() || self.must_wait(arg));
            let lowered = if waits { self.reached(arg)? } else { self.lower_expr(arg)? };
            done = Some(self.combined(done, lowered, op, waits));
        }
        self.with_run(done, run, op)?.ok_or_else(|| SqlError::internal("AND or OR without operands"))
    }

    fn with_run(&mut self, done: Option<DfExpr>, run: Vec<Expr>, op: Operator) -> Result<Option<DfExpr>> {
        let Some((first, later)) = run.split_first() else { return Ok(done) };
        let later_fails = !later.iter().all(Expr::is_harmless);
        let waits = done.is_some() && (later_fails || !first.is_harmless());
        let lowered = match (later_fails, op) {
            (true, Operator::And) => self.opaque(&Expr::And(run))?,
            (true, _) => self.opaque(&Expr::Or(run))?,
            (false, _) => {
                let mut all = self.lower_expr(first)?;
                for arg in later {
                    all = binary_expr(all, op, self.lower_expr(arg)?);
                }
                all
            }
        };
        Ok(Some(self.combined(done, lowered, op, waits)))
    }

    /// `done op next`; where it `waits`, `next` is evaluated for the rows that `done` does not decide.
    fn combined(&self, done: Option<DfExpr>, next: DfExpr, op: Operator, waits: bool) -> DfExpr {
        let Some(done) = done else { return next };
        if !waits {
            return binary_expr(done, op, next);
        }
        let decisive = op == Operator::Or;
        if self.null_is_false {
            let (then, otherwise) = if decisive { (bool(Some(true)), next) } else { (next, bool(Some(false))) };
            return when(done, vec![(bool(Some(true)), then)], otherwise);
        }
        // After null the other operand decides, or it is null.
        let decided = (bool(Some(decisive)), bool(Some(decisive)));
        let after_null = when(next.clone(), vec![decided.clone()], bool(None));
        when(done, vec![decided, (bool(Some(!decisive)), next)], after_null)
    }

    /// What only some rows reach.
    fn reached(&mut self, expr: &Expr) -> Result<DfExpr> {
        let lazily = self.lazily || self.may_fail_early(expr);
        let outer = (std::mem::replace(&mut self.lazily, lazily), std::mem::replace(&mut self.in_filter, false));
        let lowered = self.lower_expr(expr);
        (self.lazily, self.in_filter) = outer;
        lowered
    }

    /// CASE whose branches are computed for the rows that take them.
    pub(super) fn lazy_case(
        &mut self,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        ty: &DataType,
    ) -> Result<DfExpr> {
        let outer = std::mem::replace(&mut self.null_is_false, false);
        let parts = branches
            .iter()
            .map(|(condition, value)| Ok((Box::new(self.reached(condition)?), Box::new(self.reached(value)?))));
        let parts = parts.collect::<Result<Vec<_>>>();
        let otherwise = otherwise.map(|value| self.reached(value).map(Box::new)).transpose();
        self.null_is_false = outer;
        let always = (*ty == DataType::Bool).then(|| Box::new(bool(Some(true))));
        Ok(DfExpr::Case(Case::new(always, parts?, otherwise?)))
    }

    /// COALESCE, each argument computed for the rows for which those before are null.
    pub(super) fn lazy_coalesce(&mut self, args: &[Expr], ty: &DataType) -> Result<DfExpr> {
        let Some((first, later)) = args.split_first() else { return Err(SqlError::internal("COALESCE of nothing")) };
        // It stands twice in the result.
        if self.calls_volatile(first) && !later.is_empty() {
            return self.call(&Expr::Coalesce { args: args.to_vec(), ty: ty.clone() });
        }
        let first = self.reached(first)?;
        if later.is_empty() {
            return Ok(first);
        }
        let later = self.lazy_coalesce(later, ty)?;
        Ok(DfExpr::Case(Case::new(
            (*ty == DataType::Bool).then(|| Box::new(bool(Some(true)))),
            vec![(Box::new(first.clone().is_not_null()), Box::new(first))],
            Some(Box::new(later)),
        )))
    }
}

fn bool(value: Option<bool>) -> DfExpr {
    DfExpr::Literal(ScalarValue::Boolean(value), None)
}

/// CASE with an operand: without one DataFusion makes AND and OR of what gives booleans.
fn when(operand: DfExpr, branches: Vec<(DfExpr, DfExpr)>, otherwise: DfExpr) -> DfExpr {
    let branches = branches.into_iter().map(|(value, then)| (Box::new(value), Box::new(then))).collect();
    DfExpr::Case(Case::new(Some(Box::new(operand)), branches, Some(Box::new(otherwise))))
}
