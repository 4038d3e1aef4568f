//! Window functions.

use super::{Lowerer, name_of};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, FrameBound, FrameUnits, Plan, WindowCall, WindowFunction};
use basalt_expr::tree::Expr;
use basalt_types::Datum;
use datafusion::common::{Column, ScalarValue};
use datafusion::functions_window::cume_dist::cume_dist_udwf;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::functions_window::nth_value::{first_value_udwf, last_value_udwf, nth_value_udwf};
use datafusion::functions_window::ntile::ntile_udwf;
use datafusion::functions_window::rank::{dense_rank_udwf, percent_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction as DfWindow, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition as Definition, cast,
};

impl Lowerer<'_> {
    pub(super) fn window(&mut self, input: &Plan, calls: &[(ColId, WindowCall)]) -> Result<LogicalPlan> {
        let passed = input.columns();
        let lowered = self.plan(input)?;
        let mut exprs = Vec::with_capacity(calls.len());
        let mut names = Vec::with_capacity(calls.len());
        for (_, call) in calls {
            let expr = self.window_call(call)?;
            names.push(expr.schema_name().to_string());
            // The same call twice is computed once.
            if !exprs.contains(&expr) {
                exprs.push(expr);
            }
        }
        let mut outputs = passed.iter().map(|(id, ty)| self.column(*id, ty)).collect::<Result<Vec<_>>>()?;
        for ((id, call), name) in calls.iter().zip(names) {
            // DataFusion counts in unsigned integers.
            let value = DfExpr::Column(Column::new_unqualified(name));
            outputs.push(cast(value, call.ty.to_arrow()).alias(name_of(*id)));
        }
        let windowed = LogicalPlanBuilder::window_plan(lowered, exprs)?;
        calls.iter().for_each(|(id, call)| self.define(*id, &call.ty));
        Ok(LogicalPlanBuilder::from(windowed).project(outputs)?.build()?)
    }

    fn window_call(&mut self, call: &WindowCall) -> Result<DfExpr> {
        let mut filter = None;
        let (fun, args) = match &call.function {
            WindowFunction::RowNumber => (Definition::WindowUDF(row_number_udwf()), Vec::new()),
            WindowFunction::Rank => (Definition::WindowUDF(rank_udwf()), Vec::new()),
            WindowFunction::DenseRank => (Definition::WindowUDF(dense_rank_udwf()), Vec::new()),
            WindowFunction::PercentRank => (Definition::WindowUDF(percent_rank_udwf()), Vec::new()),
            WindowFunction::CumeDist => (Definition::WindowUDF(cume_dist_udwf()), Vec::new()),
            WindowFunction::Ntile(count) => {
                let count = self.whole_number(count, "22014", "argument of ntile must be greater than zero")?;
                (Definition::WindowUDF(ntile_udwf()), vec![DfExpr::Literal(ScalarValue::Int64(Some(count)), None)])
            }
            WindowFunction::FirstValue(value) => (Definition::WindowUDF(first_value_udwf()), vec![self.expr(value)?]),
            WindowFunction::LastValue(value) => (Definition::WindowUDF(last_value_udwf()), vec![self.expr(value)?]),
            WindowFunction::NthValue(value, nth) => {
                let nth = self.whole_number(nth, "22016", "argument of nth_value must be greater than zero")?;
                let nth = DfExpr::Literal(ScalarValue::Int64(Some(nth)), None);
                (Definition::WindowUDF(nth_value_udwf()), vec![self.expr(value)?, nth])
            }
            WindowFunction::Lag { value, offset, default, lead } => {
                let mut args = vec![self.expr(value)?];
                let offset = match offset {
                    Some(offset) => self.number(offset)?,
                    None => 1,
                };
                args.push(DfExpr::Literal(ScalarValue::Int64(Some(offset)), None));
                if let Some(default) = default {
                    args.push(self.expr(default)?);
                }
                (Definition::WindowUDF(if *lead { lead_udwf() } else { lag_udwf() }), args)
            }
            WindowFunction::Aggregate(call) => {
                filter = call.filter.as_ref().map(|filter| self.expr(filter)).transpose()?.map(Box::new);
                let (udf, args, _) = self.aggregate_udf(call)?;
                (Definition::AggregateUDF(udf), args)
            }
        };
        let partition_by = call.partition_by.iter().map(|expr| self.keyed(expr)).collect::<Result<Vec<_>>>()?;
        let order_by = self.sort_keys(&call.order_by)?;
        let window_frame = self.frame(call)?;
        let params = WindowFunctionParams {
            args,
            partition_by,
            order_by,
            window_frame,
            filter,
            null_treatment: None,
            distinct: false,
        };
        Ok(DfExpr::from(DfWindow { fun, params }))
    }

    fn frame(&mut self, call: &WindowCall) -> Result<WindowFrame> {
        // Without an order all rows are peers: the frame up to the current row is the whole partition.
        if call.order_by.is_empty() && call.units == FrameUnits::Range {
            return Ok(WindowFrame::new(None));
        }
        let units = match call.units {
            FrameUnits::Rows => WindowFrameUnits::Rows,
            FrameUnits::Range => WindowFrameUnits::Range,
            FrameUnits::Groups => WindowFrameUnits::Groups,
        };
        let start = self.frame_bound(&call.start)?;
        let end = self.frame_bound(&call.end)?;
        Ok(WindowFrame::new_bounds(units, start, end))
    }

    fn frame_bound(&mut self, bound: &FrameBound) -> Result<WindowFrameBound> {
        Ok(match bound {
            FrameBound::UnboundedPreceding => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
            FrameBound::UnboundedFollowing => WindowFrameBound::Following(ScalarValue::UInt64(None)),
            FrameBound::CurrentRow => WindowFrameBound::CurrentRow,
            FrameBound::Preceding(rows) => WindowFrameBound::Preceding(self.rows(rows)?),
            FrameBound::Following(rows) => WindowFrameBound::Following(self.rows(rows)?),
        })
    }

    fn rows(&mut self, expr: &Expr) -> Result<ScalarValue> {
        let rows = self.number(expr)?;
        match u64::try_from(rows) {
            Ok(rows) => Ok(ScalarValue::UInt64(Some(rows))),
            Err(_) => Err(SqlError::new("22013", "frame offset must not be negative")),
        }
    }

    fn whole_number(&mut self, expr: &Expr, sqlstate: &'static str, message: &str) -> Result<i64> {
        match self.number(expr)? {
            number if number > 0 => Ok(number),
            _ => Err(SqlError::new(sqlstate, message)),
        }
    }

    fn number(&mut self, expr: &Expr) -> Result<i64> {
        if expr.any(&mut |node| matches!(node, Expr::Hole { .. })) {
            return Err(SqlError::not_supported("this argument of a window function must be a constant"));
        }
        match expr.eval_scalar(&[], &self.ctx.eval)? {
            Datum::I32(number) => Ok(i64::from(number)),
            Datum::I64(number) => Ok(number),
            _ => Err(SqlError::new("22004", "this argument of a window function must not be null")),
        }
    }
}
