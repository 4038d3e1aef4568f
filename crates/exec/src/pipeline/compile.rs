//! From a plan to pipelines.

use super::prune;
use super::sort::{Form, Key, Order};
use super::{Pipeline, Sink};
use crate::aggregate::{Call, Spec};
use crate::plan::{AggregateCall, Plan, SortKey};
use crate::program::{Condition, Field, Place, Program};
use basalt_engine::ScanSpec;
use basalt_expr::context::EvalContext;
use basalt_expr::tree::Expr;
use std::sync::Arc;

/// A pipeline without its end.
struct Open {
    /// Those before it.
    before: Vec<Pipeline>,
    table: Option<ScanSpec>,
    program: Program,
    conditions: Vec<Condition>,
    /// Where the columns of the operator that was compiled last are.
    columns: Vec<Place>,
    /// Rows to be passed over and given, of the rows in order; no operator that takes in all rows may follow.
    window: Option<(usize, Option<usize>)>,
}

/// `None` if an operator is not supported.
pub(super) fn pipelines(plan: &Plan, ctx: &EvalContext) -> Option<Vec<Pipeline>> {
    let open = Open::of(plan, ctx)?;
    let (offset, limit) = open.window.unwrap_or((0, None));
    let sink = Sink::Give { columns: open.columns.clone(), offset, limit };
    Some(open.closed(sink))
}

impl Open {
    fn of(plan: &Plan, ctx: &EvalContext) -> Option<Open> {
        match plan {
            Plan::Scan { spec } => {
                let field = |id| {
                    let column = spec.table.column(id);
                    Field::new(column.ty.clone(), !column.not_null)
                };
                let fields = spec.columns.iter().map(|id| field(*id)).collect();
                Some(Open::with(Vec::new(), Some(spec.clone()), fields))
            }
            Plan::Filter { input, conditions } => {
                let mut open = Open::of(input, ctx)?.unlimited()?;
                for condition in conditions {
                    open.filter(condition, ctx);
                }
                Some(open)
            }
            Plan::Project { input, exprs } => {
                let mut open = Open::of(input, ctx)?;
                let exprs: Vec<Expr> = exprs.iter().map(|expr| open.placed(expr)).collect();
                open.columns = exprs.iter().map(|expr| open.program.define(expr, ctx)).collect();
                Some(open)
            }
            Plan::Aggregate { input, groups, calls } => {
                Open::of(input, ctx)?.unlimited()?.aggregated(groups, calls, ctx)
            }
            Plan::Sort { input, keys } => Open::of(input, ctx)?.unlimited()?.sorted(keys, 0, None, ctx),
            Plan::Limit { input, offset, limit } => match &**input {
                Plan::Sort { input, keys } => Open::of(input, ctx)?.unlimited()?.sorted(keys, *offset, *limit, ctx),
                input => {
                    let mut open = Open::of(input, ctx)?.unlimited()?;
                    // Workers that share a table would each give as many.
                    open.table.is_none().then_some(())?;
                    open.window = Some((*offset, *limit));
                    Some(open)
                }
            },
        }
    }

    fn with(before: Vec<Pipeline>, table: Option<ScanSpec>, fields: Vec<Field>) -> Open {
        let columns = (0..fields.len()).collect();
        Open { before, table, program: Program::new(fields), conditions: Vec::new(), columns, window: None }
    }

    /// For operators that take in all rows.
    fn unlimited(self) -> Option<Open> {
        self.window.is_none().then_some(self)
    }

    /// An expression over the operator's columns as one over the program's.
    fn placed(&self, expr: &Expr) -> Expr {
        expr.clone().rewrite(&mut |node| match node {
            Expr::Column { index, ty } => Expr::Column { index: self.columns[index], ty },
            other => other,
        })
    }

    fn filter(&mut self, expr: &Expr, ctx: &EvalContext) {
        let expr = self.placed(expr);
        let condition = self.program.condition(&expr, ctx);
        if let Some(spec) = &mut self.table {
            let skips = prune::predicate(&condition, &self.program, spec);
            let skips = skips.or_else(|| prune::text_predicate(&expr, &self.program, spec, ctx));
            spec.predicates.extend(skips);
        }
        self.conditions.push(condition);
    }

    fn define(&mut self, expr: &Expr, ctx: &EvalContext) -> Place {
        let expr = self.placed(expr);
        self.program.define(&expr, ctx)
    }

    fn aggregated(mut self, groups: &[Expr], calls: &[AggregateCall], ctx: &EvalContext) -> Option<Open> {
        let groups = groups.iter().map(|group| self.define(group, ctx)).collect();
        let mut compiled = Vec::with_capacity(calls.len());
        for call in calls {
            let (args, digits) = match (call.resolved.aggregate.name.as_str(), call.args.as_slice()) {
                ("sum" | "avg", [arg]) => {
                    let (place, digits) = self.program.define_summand(&self.placed(arg), ctx);
                    (vec![place], digits)
                }
                (_, args) => (args.iter().map(|arg| self.define(arg, ctx)).collect(), None),
            };
            let filter = call.filter.as_ref().map(|filter| self.placed(filter));
            let filter = filter.map(|filter| self.program.condition(&filter, ctx));
            compiled.push(Call { resolved: call.resolved.clone(), args, digits, filter });
        }
        let spec = Arc::new(Spec::new(&self.program, groups, compiled)?);
        let fields = spec.fields();
        let before = self.closed(Sink::Aggregate(spec));
        Some(Open::with(before, None, fields))
    }

    fn sorted(mut self, keys: &[SortKey], offset: usize, limit: Option<usize>, ctx: &EvalContext) -> Option<Open> {
        let mut placed = Vec::with_capacity(keys.len());
        for SortKey { expr, descending, nulls_first } in keys {
            let place = self.define(expr, ctx);
            let form = Form::of(&self.program.fields[place])?;
            placed.push(Key { place, descending: *descending, nulls_first: *nulls_first, form });
        }
        let fields = Order::fields(&self.program, &self.columns);
        let order = Arc::new(Order { keys: placed, fields: fields.clone(), offset, limit });
        let sink = Sink::Sort { columns: self.columns.clone(), order };
        let before = self.closed(sink);
        Some(Open::with(before, None, fields))
    }

    fn closed(self, sink: Sink) -> Vec<Pipeline> {
        let Open { mut before, table, program, conditions, .. } = self;
        before.push(Pipeline { table, program: Arc::new(program), conditions, sink });
        before
    }
}
