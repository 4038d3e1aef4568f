//! INTERSECT ALL and EXCEPT ALL: equal rows of both sides are counted, and come as often as the counts say
//! (PostgreSQL manual 7.4). Takes memory for each different row, not for its copies.

use super::{Lowerer, name_of};
use crate::error::Result;
use crate::pgcatalog::registry;
use crate::plan::{AggregateCall, ColId, SetOp};
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder};

impl Lowerer<'_> {
    /// Both sides have the same columns, `outputs`. Of equal values that do not look alike the left's are shown.
    pub(super) fn copies(
        &mut self,
        op: SetOp,
        left: LogicalPlan,
        right: LogicalPlan,
        outputs: &[(ColId, DataType)],
    ) -> Result<LogicalPlan> {
        let marks = [self.fresh_column(), self.fresh_column()];
        let rank = self.fresh_name("s");
        let marked = |plan: LogicalPlan, side: usize| {
            let mark = |at: usize| ScalarValue::Int64((at == side).then_some(1));
            let ours = (0..2).map(|at| DfExpr::Literal(mark(at), None).alias(name_of(marks[at])));
            let ranked = DfExpr::Literal(ScalarValue::Int64(Some(side as i64)), None).alias(&rank);
            let all = plan.schema().columns().into_iter().map(DfExpr::Column).chain(ours).chain([ranked]);
            LogicalPlanBuilder::from(plan.clone()).project(all.collect::<Vec<_>>())?.build()
        };
        let both = LogicalPlanBuilder::from(marked(left, 0)?).union(marked(right, 1)?)?.build()?;
        marks.iter().for_each(|id| self.define(*id, &DataType::Int8));
        let groups: Vec<(ColId, Expr)> =
            outputs.iter().map(|(id, ty)| (*id, Expr::Hole { id: *id, ty: ty.clone() })).collect();
        let mut counts = Vec::with_capacity(2);
        for mark in marks {
            let arg = Expr::Hole { id: mark, ty: DataType::Int8 };
            let (resolved, args) = resolve::aggregate(registry(), "count", vec![arg], &self.ctx.eval)?;
            let call = AggregateCall { resolved, args, distinct: false, filter: None, order_by: Vec::new() };
            counts.push((self.fresh_column(), call));
        }
        let counted = self.grouped(both, &groups, &counts, Some(&rank))?;
        let [left, right] = [0, 1].map(|at: usize| Expr::Hole { id: counts[at].0, ty: DataType::Int8 });
        let times = match op {
            SetOp::Intersect => resolve::extreme(vec![left, right], false, &self.ctx.eval)?,
            _ => resolve::operator(registry(), "-", Some(left), right, &self.ctx.eval)?,
        };
        let one = Expr::Const { value: Datum::I64(1), ty: DataType::Int8 };
        let series = resolve::call(registry(), "generate_series", vec![one, times], &self.ctx.eval)?;
        let number = self.fresh_column();
        let repeated = self.set_rows(counted, &[(number, series)], None, false)?;
        let kept = outputs.iter().map(|(id, _)| DfExpr::Column(Column::new_unqualified(name_of(*id))));
        Ok(LogicalPlanBuilder::from(repeated).project(kept.collect::<Vec<_>>())?.build()?)
    }
}
