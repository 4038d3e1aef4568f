//! From a plan to pipelines.

use super::prune;
use super::sort::{Form, Key, Order};
use super::{Pipeline, Sink, Start, Step};
use crate::aggregate::{Call, Spec};
use crate::join;
use crate::plan::{AggregateCall, JoinKind, Plan, SortKey};
use crate::program::{Condition, Field, Place, Program};
use basalt_expr::context::EvalContext;
use basalt_expr::tree::Expr;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A pipeline without its end.
struct Open {
    start: Start,
    program: Program,
    steps: Vec<Step>,
    /// The pipelines whose tables its joins look into.
    tables: Vec<usize>,
    /// Where the columns of the operator that was compiled last are.
    columns: Vec<Place>,
    /// Rows to be passed over and given, of the rows in order; no operator that takes in all rows may follow.
    window: Option<(usize, Option<usize>)>,
}

struct Compiler<'c> {
    ctx: &'c EvalContext,
    /// Those that are whole, each behind what it reads.
    done: Vec<Pipeline>,
}

/// `None` if an operator is not supported.
pub(super) fn pipelines(plan: &Plan, ctx: &EvalContext) -> Option<Vec<Pipeline>> {
    let mut compiler = Compiler { ctx, done: Vec::new() };
    let open = compiler.open(plan)?;
    let (offset, limit) = open.window.unwrap_or((0, None));
    let sink = Sink::Give { columns: open.columns.clone(), offset, limit };
    compiler.close(open, sink);
    Some(compiler.done)
}

impl Compiler<'_> {
    fn open(&mut self, plan: &Plan) -> Option<Open> {
        match plan {
            Plan::Scan { spec } => {
                let field = |id| {
                    let column = spec.table.column(id);
                    Field::new(column.ty.clone(), !column.not_null)
                };
                let fields = spec.columns.iter().map(|id| field(*id)).collect();
                Some(Open::new(Start::Table(spec.clone()), fields))
            }
            Plan::Filter { input, conditions } => {
                let mut open = self.open(input)?.unlimited()?;
                conditions.iter().for_each(|condition| open.filter(condition, self.ctx));
                Some(open)
            }
            Plan::Project { input, exprs } => {
                let mut open = self.open(input)?;
                let exprs: Vec<Expr> = exprs.iter().map(|expr| open.placed(expr)).collect();
                open.columns = exprs.iter().map(|expr| open.program.define(expr, self.ctx)).collect();
                Some(open)
            }
            Plan::Join { left, right, kind, keys, payload, residual } => {
                self.join(left, right, *kind, keys, payload, residual)
            }
            Plan::Aggregate { input, groups, dependent, calls } => {
                let open = self.open(input)?.unlimited()?;
                self.aggregated(open, groups, dependent, calls)
            }
            Plan::Sort { input, keys } => {
                let open = self.open(input)?.unlimited()?;
                self.sorted(open, keys, 0, None)
            }
            Plan::Limit { input, offset, limit } => match &**input {
                Plan::Sort { input, keys } => {
                    let open = self.open(input)?.unlimited()?;
                    self.sorted(open, keys, *offset, *limit)
                }
                input => {
                    let mut open = self.open(input)?.unlimited()?;
                    // Workers that share a table would each give as many.
                    matches!(open.start, Start::Made(_)).then_some(())?;
                    open.window = Some((*offset, *limit));
                    Some(open)
                }
            },
        }
    }

    /// Ends a pipeline; its number.
    fn close(&mut self, open: Open, sink: Sink) -> usize {
        let Open { start, program, steps, tables, .. } = open;
        self.done.push(Pipeline { start, program: Arc::new(program), steps, tables, sink });
        self.done.len() - 1
    }

    fn join(
        &mut self,
        left: &Plan,
        right: &Plan,
        kind: JoinKind,
        keys: &[(Expr, Expr)],
        payload: &[usize],
        residual: &[Expr],
    ) -> Option<Open> {
        let mut built = self.open(right)?.unlimited()?;
        let keys_of = |open: &mut Open, ctx: &EvalContext, side: fn(&(Expr, Expr)) -> &Expr| {
            let places = keys.iter().map(|key| open.define(side(key), ctx));
            places
                .collect::<Vec<Place>>()
                .into_iter()
                .map(|place| (place, open.program.fields[place].clone()))
                .collect::<Vec<_>>()
        };
        let right_keys = keys_of(&mut built, self.ctx, |key| &key.1);
        let payload = payload.iter().map(|at| built.columns[*at]);
        let payload: Vec<(Place, Field)> = payload.map(|place| (place, built.program.fields[place].clone())).collect();
        let fields: Vec<Field> = payload.iter().map(|(_, field)| field.clone()).collect();
        let wanted = if kind.gives_partners() || !residual.is_empty() { payload } else { Vec::new() };
        let held_keys: Vec<Field> = right_keys.iter().map(|(_, field)| field.clone()).collect();
        let sink = Sink::Build(Arc::new(join::Spec::new(right_keys, wanted)?));
        let table = self.close(built, sink);

        let mut open = self.open(left)?.unlimited()?;
        let left_keys = keys_of(&mut open, self.ctx, |key| &key.0);
        // Integers are compared as they are held.
        let alike = |(left, right): (&(Place, Field), &Field)| left.1.kind() == right.kind();
        left_keys.iter().zip(&held_keys).all(alike).then_some(())?;
        let null = left_keys.iter().any(|(_, field)| field.nullable) || held_keys.iter().any(|field| field.nullable);
        let kind = match kind {
            JoinKind::NullAwareAnti if !null => JoinKind::Anti,
            JoinKind::NullAwareAnti if keys.len() > 1 || !residual.is_empty() => return None,
            kind => kind,
        };
        let at = open.tables.len();
        open.tables.push(table);
        let before = open.program.defs.len();
        let mut columns = open.columns.clone();
        if kind.gives_partners() || !residual.is_empty() {
            let field = |field: Field| Field { nullable: field.nullable || kind != JoinKind::Inner, ..field };
            let partners = fields.into_iter().enumerate();
            let partners: Vec<Place> =
                partners.map(|(column, own)| open.program.payload(at, column, field(own))).collect();
            columns.extend(partners);
        }
        let own = std::mem::replace(&mut open.columns, columns);
        let conditions: Vec<Condition> = residual
            .iter()
            .map(|condition| {
                let condition = open.placed(condition);
                open.program.condition(&condition, self.ctx)
            })
            .collect();
        let keys = left_keys.into_iter().map(|(place, _)| place).collect();
        let read = open.program.read(&conditions).into_iter().filter(|place| *place < before).collect();
        open.steps.push(Step::Probe(join::Probe { join: at, kind, keys, residual: conditions, read }));
        if !kind.gives_partners() {
            open.columns = own;
        }
        Some(open)
    }

    fn aggregated(
        &mut self,
        mut open: Open,
        groups: &[Expr],
        dependent: &[usize],
        calls: &[AggregateCall],
    ) -> Option<Open> {
        let ctx = self.ctx;
        let groups: Vec<Place> = groups.iter().map(|group| open.define(group, ctx)).collect();
        let mut compiled = Vec::with_capacity(calls.len());
        for call in calls {
            let (args, digits) = match (call.resolved.aggregate.name.as_str(), call.args.as_slice()) {
                ("sum" | "avg", [arg]) => {
                    let (place, digits) = open.program.define_summand(&open.placed(arg), ctx);
                    (vec![place], digits)
                }
                (_, args) => (args.iter().map(|arg| open.define(arg, ctx)).collect(), None),
            };
            let filter = call.filter.as_ref().map(|filter| open.placed(filter));
            let filter = filter.map(|filter| open.program.condition(&filter, ctx));
            compiled.push(Call { resolved: call.resolved.clone(), args, digits, filter });
        }
        let spec = Arc::new(Spec::new(&open.program, &groups, dependent, compiled)?);
        let fields = spec.fields();
        let made = self.close(open, Sink::Aggregate(spec));
        Some(Open::new(Start::Made(made), fields))
    }

    fn sorted(&mut self, mut open: Open, keys: &[SortKey], offset: usize, limit: Option<usize>) -> Option<Open> {
        let mut placed = Vec::with_capacity(keys.len());
        for SortKey { expr, descending, nulls_first } in keys {
            let place = open.define(expr, self.ctx);
            let form = Form::of(&open.program.fields[place])?;
            placed.push(Key { place, descending: *descending, nulls_first: *nulls_first, form });
        }
        let fields = Order::fields(&open.program, &open.columns);
        let order = Arc::new(Order { keys: placed, fields: fields.clone(), offset, limit });
        let sink = Sink::Sort { columns: open.columns.clone(), order };
        let made = self.close(open, sink);
        Some(Open::new(Start::Made(made), fields))
    }
}

impl Open {
    fn new(start: Start, fields: Vec<Field>) -> Open {
        let columns = (0..fields.len()).collect();
        let program = Program::new(fields);
        Open { start, program, steps: Vec::new(), tables: Vec::new(), columns, window: None }
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

    fn define(&mut self, expr: &Expr, ctx: &EvalContext) -> Place {
        let expr = self.placed(expr);
        self.program.define(&expr, ctx)
    }

    fn filter(&mut self, expr: &Expr, ctx: &EvalContext) {
        let expr = self.placed(expr);
        let condition = self.program.condition(&expr, ctx);
        if let Start::Table(spec) = &mut self.start {
            let skips = prune::predicate(&condition, &self.program, spec);
            let skips = skips.or_else(|| prune::text_predicate(&expr, &self.program, spec, ctx));
            spec.predicates.extend(skips);
        }
        match self.steps.last_mut() {
            Some(Step::Filter(conditions)) => conditions.push(condition),
            _ => self.steps.push(Step::Filter(vec![condition])),
        }
    }
}

impl Program {
    /// Columns that conditions ask for, and those that these are computed from.
    fn read(&self, conditions: &[Condition]) -> BTreeSet<Place> {
        let mut open: Vec<Place> = conditions.iter().flat_map(Condition::places).collect();
        let mut all = BTreeSet::new();
        while let Some(place) = open.pop() {
            if all.insert(place) {
                open.extend(self.defs[place].places());
            }
        }
        all
    }
}
