//! Window functions: calls are gathered by what they are over, each group one [`exec::WindowAgg`], which
//! [`exec::WindowExec`] runs over sorted rows. All that a call needs is computed below as columns.

mod exec;
mod spec;
use super::node::{Node, as_column, with_computed};
use super::{Lowerer, name_of};
use crate::error::Result;
use crate::plan::{ColId, Plan, SortKey, WindowCall, WindowFunction};
use arrow::compute::SortOptions;
use arrow_schema::{DataType as ArrowType, Field};
use basalt_expr::tree::Expr;
use basalt_expr::window::Ranking;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, ident};
use exec::WindowAgg;
use spec::{Argument, Call, Function, RangeOrder, Spec};
use std::sync::Arc;

/// What calls have in common that one node computes.
#[derive(Clone, PartialEq)]
struct Over {
    partition_by: Vec<Expr>,
    order_by: Vec<SortKey>,
    arrival: Vec<SortKey>,
}

impl Over {
    fn order(&self) -> Vec<SortKey> {
        let partitions = self.partition_by.iter();
        let keys = partitions.map(|expr| SortKey { expr: expr.clone(), descending: false, nulls_first: false });
        keys.chain(self.order_by.iter().cloned()).chain(self.arrival.iter().cloned()).collect()
    }
}

/// The inputs of one node while they are gathered: all become columns of a projection below it.
#[derive(Default)]
struct Inputs {
    columns: Vec<DfExpr>,
    /// What is not a column yet, under its name.
    computed: Vec<DfExpr>,
}

impl Inputs {
    fn add(&mut self, lowerer: &mut Lowerer<'_>, expr: DfExpr) -> usize {
        self.columns.push(as_column(expr, &mut self.computed, || lowerer.fresh_name("w")));
        self.columns.len() - 1
    }
}

fn node(input: LogicalPlan, inputs: Inputs, spec: Spec) -> Result<LogicalPlan> {
    let input = with_computed(input, inputs.computed)?;
    Ok(Node::over(Arc::new(WindowAgg(Arc::new(spec))), inputs.columns, input)?)
}

impl Lowerer<'_> {
    pub(super) fn window(&mut self, input: &Plan, calls: &[(ColId, WindowCall)]) -> Result<LogicalPlan> {
        let passed = input.columns();
        let mut lowered = self.plan(input)?;
        let mut overs: Vec<(Over, Vec<&(ColId, WindowCall)>)> = Vec::new();
        for call in calls {
            let WindowCall { partition_by, order_by, arrival, .. } = call.1.clone();
            let over = Over { partition_by, order_by, arrival };
            match overs.iter_mut().find(|(known, _)| *known == over) {
                Some((_, calls)) => calls.push(call),
                None => overs.push((over, vec![call])),
            }
        }
        // The longest orders first: rows sorted for them are sorted for their beginnings.
        overs.sort_by_key(|(over, _)| std::cmp::Reverse((over.partition_by.len(), over.order_by.len())));
        // Without an order of its own a window has its rows as the one before had them.
        for at in 1..overs.len() {
            if overs[at].0.partition_by.is_empty() && overs[at].0.order_by.is_empty() {
                overs[at].0.arrival = overs[at - 1].0.order();
            }
        }
        for (over, calls) in overs {
            lowered = self.window_node(lowered, &over, &calls)?;
        }
        let mut outputs = passed.iter().map(|(id, ty)| self.column(*id, ty)).collect::<Result<Vec<_>>>()?;
        for (id, call) in calls {
            self.define(*id, &call.ty);
            outputs.push(self.column(*id, &call.ty)?);
        }
        Ok(LogicalPlanBuilder::from(lowered).project(outputs)?.build()?)
    }

    fn window_node(&mut self, input: LogicalPlan, over: &Over, calls: &[&(ColId, WindowCall)]) -> Result<LogicalPlan> {
        let mut inputs = Inputs::default();
        let mut partitions = 0;
        for expr in &over.partition_by {
            if self.is_constant(expr) {
                continue;
            }
            partitions += 1;
            let key = self.keyed(expr)?;
            inputs.add(self, key);
        }
        let order = self.ordering(&over.order_by, &mut inputs)?;
        let arrival = self.ordering(&over.arrival, &mut inputs)?;
        let (mut specs, mut added) = (Vec::with_capacity(calls.len()), Vec::with_capacity(calls.len()));
        for (id, call) in calls {
            specs.push(self.window_call(call, &mut inputs)?);
            added.push(Arc::new(Field::new(name_of(*id), call.ty.to_arrow(), true)));
        }
        let spec = Spec {
            partitions,
            order,
            arrival,
            calls: specs,
            added,
            eval: self.ctx.eval.clone(),
            stop: self.ctx.stop.clone(),
        };
        node(input, inputs, spec)
    }

    fn ordering(&mut self, keys: &[SortKey], inputs: &mut Inputs) -> Result<Vec<SortOptions>> {
        let mut order = Vec::with_capacity(keys.len());
        for key in keys.iter().filter(|key| !self.is_constant(&key.expr)).collect::<Vec<_>>() {
            let lowered = self.keyed(&key.expr)?;
            inputs.add(self, lowered);
            order.push(SortOptions { descending: key.descending, nulls_first: key.nulls_first });
        }
        Ok(order)
    }

    /// Adds each row's number among its equals in `keys`, in the order given, as a bigint column `name`.
    pub(super) fn numbered(
        &mut self,
        input: LogicalPlan,
        keys: Vec<DfExpr>,
        order_by: &[SortKey],
        name: &str,
    ) -> Result<LogicalPlan> {
        let mut inputs = Inputs::default();
        let partitions = keys.len();
        for key in keys {
            inputs.add(self, key);
        }
        let order = self.ordering(order_by, &mut inputs)?;
        let call = Call { function: Function::Ranking(Ranking::RowNumber), frame: None };
        let field = Arc::new(Field::new(name, ArrowType::Int64, true));
        let (eval, stop) = (self.ctx.eval.clone(), self.ctx.stop.clone());
        node(
            input,
            inputs,
            Spec { partitions, order, arrival: Vec::new(), calls: vec![call], added: vec![field], eval, stop },
        )
    }

    fn window_call(&mut self, call: &WindowCall, inputs: &mut Inputs) -> Result<Call> {
        let function = match &call.function {
            WindowFunction::Ranking(ranking) => Function::Ranking(*ranking),
            WindowFunction::Ntile(buckets) => Function::Ntile(self.argument(buckets, inputs)?),
            WindowFunction::Edge(edge, value) => Function::Edge(*edge, self.argument(value, inputs)?),
            WindowFunction::NthValue(value, nth) => {
                Function::NthValue(self.argument(value, inputs)?, self.argument(nth, inputs)?)
            }
            WindowFunction::Lag { value, offset, default, lead } => Function::Shifted {
                value: self.argument(value, inputs)?,
                offset: offset.as_ref().map(|offset| self.argument(offset, inputs)).transpose()?,
                default: default.as_ref().map(|default| self.argument(default, inputs)).transpose()?,
                lead: *lead,
            },
            WindowFunction::Aggregate(call) => Function::Aggregate {
                call: call.resolved.clone(),
                args: call
                    .args
                    .iter()
                    .map(|arg| self.argument(&self.fed(arg, call.filter.as_ref()), inputs))
                    .collect::<Result<_>>()?,
                filter: call.filter.as_ref().map(|filter| self.argument(filter, inputs)).transpose()?,
            },
        };
        if !function.has_frame() {
            return Ok(Call { function, frame: None });
        }
        // Constants are looked at though no row may come.
        let constant = |offset: &Expr| match offset.any(&mut |node| matches!(node, Expr::Hole { .. })) {
            true => Ok(None),
            false => offset.eval_scalar(&[], &self.ctx.eval).map(Some),
        };
        let known = call.offsets.each_ref().map(|offset| offset.as_ref().map_or(Ok(None), constant));
        let [start, end] = known;
        call.frame.check_offsets([start?.as_ref(), end?.as_ref()])?;
        let mut offsets = [None, None];
        for (place, offset) in offsets.iter_mut().zip(&call.offsets) {
            *place = offset.as_ref().map(|offset| self.argument(offset, inputs)).transpose()?;
        }
        let range = match (call.order_by.as_slice(), call.offsets.iter().any(Option::is_some)) {
            ([key], true) => Some(RangeOrder {
                value: self.argument(&key.expr, inputs)?,
                descending: key.descending,
                nulls_first: key.nulls_first,
            }),
            _ => None,
        };
        Ok(Call { function, frame: Some(spec::Frame { spec: call.frame, offsets, range }) })
    }

    fn argument(&mut self, expr: &Expr, inputs: &mut Inputs) -> Result<Argument> {
        let lowered = self.expr(expr)?;
        let index = inputs.add(self, lowered);
        Ok(Argument { index, ty: expr.ty() })
    }
}

/// The first row of each group: see [`Lowerer::numbered`].
pub(super) fn is_first(name: &str) -> DfExpr {
    ident(name).eq(DfExpr::Literal(datafusion::common::ScalarValue::Int64(Some(1)), None))
}
