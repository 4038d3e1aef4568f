//! From a plan to pipelines.

use super::prune;
use super::sort::{Form, Key, Order};
use super::{Notes, Pipeline, Sink, Start, Step};
use crate::aggregate::{Call, Spec};
use crate::join;
use crate::plan::{AggregateCall, JoinKind, Plan, SortKey};
use crate::program::{Condition, Field, Place, Program, fused};
use basalt_expr::context::EvalContext;
use basalt_expr::tree::Expr;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A pipeline without its end.
struct Open {
    start: Start,
    program: Program,
    steps: Vec<Step>,
    notes: Notes,
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
    open.is_storable(&open.columns).then_some(())?;
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
            Plan::Join {
                left,
                right,
                kind: kind @ (JoinKind::Semi | JoinKind::Anti),
                keys,
                payload,
                residual,
                hold_left: true,
            } => self.marked(left, right, *kind, keys, payload, residual),
            Plan::Join { left, right, kind, keys, payload, residual, .. } => {
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
            Plan::Limit { input, offset, limit } => match input.unnoted() {
                (Plan::Sort { input, keys }, note) => {
                    let open = self.open(input)?.unlimited()?;
                    let mut open = self.sorted(open, keys, *offset, *limit)?;
                    note.into_iter().for_each(|note| self.note(&mut open, note));
                    Some(open)
                }
                _ => {
                    let mut open = self.open(input)?.unlimited()?;
                    // Workers that share a table would each give as many.
                    (!matches!(open.start, Start::Table(_))).then_some(())?;
                    open.window = Some((*offset, *limit));
                    Some(open)
                }
            },
            Plan::Noted { input, note } => {
                let mut open = self.open(input)?;
                self.note(&mut open, *note);
                Some(open)
            }
        }
    }

    /// Gives its number to what the operator that was compiled last became, the pipelines that were made for it
    /// included.
    fn note(&mut self, open: &mut Open, note: usize) {
        let made = match (open.steps.last(), &open.start) {
            (Some(Step::Probe(probe)), _) => vec![open.tables[probe.join]],
            (None, Start::Made(by)) => vec![*by],
            (None, Start::Chosen { table, marks, .. }) => vec![*table, *marks],
            _ => Vec::new(),
        };
        made.into_iter().for_each(|by| self.done[by].notes.sink.push(note));
        open.notes.steps.resize_with(open.steps.len(), Vec::new);
        open.notes.steps.last_mut().unwrap_or(&mut open.notes.start).push(note);
    }

    /// Ends a pipeline; its number.
    fn close(&mut self, open: Open, sink: Sink) -> usize {
        let Open { start, program, steps, mut notes, tables, .. } = open;
        notes.steps.resize_with(steps.len(), Vec::new);
        self.done.push(Pipeline { start, program: Arc::new(program), steps, tables, sink, notes });
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
        let right_keys = built.keys(keys.iter().map(|key| &key.1), self.ctx);
        let payload = payload.iter().map(|at| built.columns[*at]);
        let payload: Vec<(Place, Field)> = payload.map(|place| (place, built.program.fields[place].clone())).collect();
        let fields: Vec<Field> = payload.iter().map(|(_, field)| field.clone()).collect();
        let wanted = if kind.gives_partners() || !residual.is_empty() { payload } else { Vec::new() };
        let held_keys: Vec<Field> = right_keys.iter().map(|(_, field)| field.clone()).collect();
        let sink = Sink::Build(Arc::new(join::Spec::new(right_keys, wanted)?));
        let table = self.close(built, sink);

        let mut open = self.open(left)?.unlimited()?;
        let left_keys = open.keys(keys.iter().map(|key| &key.0), self.ctx);
        are_alike(&left_keys, &held_keys).then_some(())?;
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
        let conditions = open.conditions(residual, self.ctx);
        let keys = left_keys.into_iter().map(|(place, _)| place).collect();
        let read = open.program.read(&conditions).into_iter().filter(|place| *place < before).collect();
        open.steps.push(Step::Probe(join::Probe { join: at, kind, keys, residual: conditions, read }));
        if !kind.gives_partners() {
            open.columns = own;
        }
        Some(open)
    }

    /// A semi or anti join whose left side is held, and marked by what the right side meets. `asked`: the right columns
    /// that the residual counts.
    fn marked(
        &mut self,
        left: &Plan,
        right: &Plan,
        kind: JoinKind,
        keys: &[(Expr, Expr)],
        asked: &[usize],
        residual: &[Expr],
    ) -> Option<Open> {
        let mut held = self.open(left)?.unlimited()?;
        let left_keys = held.keys(keys.iter().map(|key| &key.0), self.ctx);
        let payload: Vec<(Place, Field)> =
            held.columns.iter().map(|place| (*place, held.program.fields[*place].clone())).collect();
        let fields: Vec<Field> = payload.iter().map(|(_, field)| field.clone()).collect();
        let held_keys: Vec<Field> = left_keys.iter().map(|(_, field)| field.clone()).collect();
        let sink = Sink::Build(Arc::new(join::Spec::new(left_keys, payload)?));
        let table = self.close(held, sink);

        let mut open = self.open(right)?.unlimited()?;
        let right_keys = open.keys(keys.iter().map(|key| &key.1), self.ctx);
        are_alike(&right_keys, &held_keys).then_some(())?;
        let at = open.tables.len();
        open.tables.push(table);
        let before = open.program.defs.len();
        // The residual counts left columns first.
        let partners = fields.iter().cloned().enumerate();
        let mut columns: Vec<Place> = partners.map(|(column, field)| open.program.payload(at, column, field)).collect();
        columns.extend(asked.iter().map(|at| open.columns[*at]));
        open.columns = columns;
        let conditions = open.conditions(residual, self.ctx);
        let read = open.program.read(&conditions).into_iter().filter(|place| *place < before).collect();
        let keys = right_keys.into_iter().map(|(place, _)| place).collect();
        let probe = join::Probe { join: at, kind: JoinKind::Inner, keys, residual: conditions, read };
        let marks = self.close(open, Sink::Mark(probe));
        Some(Open::new(Start::Chosen { table, marks, met: kind == JoinKind::Semi }, fields))
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
                ("sum" | "avg", [arg]) if !call.distinct => {
                    let (place, digits) = open.program.define_summand(&open.placed(arg), ctx);
                    (vec![place], digits)
                }
                (_, args) => (args.iter().map(|arg| open.define(arg, ctx)).collect::<Vec<Place>>(), None),
            };
            let filter = call.filter.as_ref().map(|filter| open.placed(filter));
            let filter = filter.map(|filter| open.program.condition(&filter, ctx));
            open.is_storable(&args).then_some(())?;
            compiled.push(Call { resolved: call.resolved.clone(), args, digits, filter, distinct: call.distinct });
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
        open.is_storable(&open.columns).then_some(())?;
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
        let (steps, tables) = (Vec::new(), Vec::new());
        Open { start, program, steps, notes: Notes::default(), tables, columns, window: None }
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

    /// Whether columns are of types that can be held.
    fn is_storable(&self, columns: &[Place]) -> bool {
        columns.iter().all(|place| self.program.fields[*place].held().phys().is_some())
    }

    fn define(&mut self, expr: &Expr, ctx: &EvalContext) -> Place {
        let expr = self.placed(expr);
        self.program.define(&expr, ctx)
    }

    /// The columns of join keys and how they are held.
    fn keys<'e>(&mut self, keys: impl Iterator<Item = &'e Expr>, ctx: &EvalContext) -> Vec<(Place, Field)> {
        let places: Vec<Place> = keys.map(|key| self.define(key, ctx)).collect();
        places.into_iter().map(|place| (place, self.program.fields[place].clone())).collect()
    }

    fn conditions(&mut self, exprs: &[Expr], ctx: &EvalContext) -> Vec<Condition> {
        let placed: Vec<Expr> = exprs.iter().map(|expr| self.placed(expr)).collect();
        placed.iter().map(|expr| self.program.condition(expr, ctx)).collect()
    }

    fn filter(&mut self, expr: &Expr, ctx: &EvalContext) {
        let expr = self.placed(expr);
        let conditions = match self.program.condition(&expr, ctx) {
            Condition::All(conditions) => conditions,
            condition => vec![condition],
        };
        if let Start::Table(spec) = &mut self.start {
            let skips = conditions.iter().flat_map(|condition| prune::predicates(condition, &self.program, spec));
            let skips: Vec<_> = skips.chain(prune::text_predicate(&expr, &self.program, spec, ctx)).collect();
            spec.predicates.extend(skips);
        }
        match self.steps.last_mut() {
            Some(Step::Filter(earlier)) => *earlier = fused(earlier.drain(..).chain(conditions).collect()),
            _ => self.steps.push(Step::Filter(conditions)),
        }
    }
}

/// Whether integers are compared as they are held.
fn are_alike(keys: &[(Place, Field)], held: &[Field]) -> bool {
    keys.iter().zip(held).all(|((_, key), held)| key.kind() == held.kind())
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
