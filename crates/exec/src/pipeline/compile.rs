//! From a plan to pipelines.

use super::prune;
use super::rounds::Loop;
use super::sets::Sets;
use super::sort::{Form, Key, Order};
use super::window::{self, Frame, Function};
use super::{Notes, Pipeline, Sink, Start, Step};
use crate::aggregate::keys::Form as KeyForm;
use crate::aggregate::{Call, Spec, Stages};
use crate::join;
use crate::plan::{AggregateCall, JoinKey, JoinKind, Plan, SortKey, Watch, WindowCall, WindowFrame, WindowFunction};
use crate::program::{Condition, Def, Field, Place, Program, fuse};
use arrow_array::Array;
use basalt_expr::context::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::vector::{Ints, Vector};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A pipeline without its end.
pub(super) struct Open {
    start: Start,
    pub program: Program,
    pub steps: Vec<Step>,
    notes: Notes,
    /// Who learns how many rows pass the first filter.
    watch: Option<Watch>,
    /// The pipelines whose tables its joins look into.
    tables: Vec<usize>,
    /// Where the columns of the operator that was compiled last are.
    pub columns: Vec<Place>,
    /// Rows to be passed over and given, of the rows as they come.
    window: Option<(usize, Option<usize>)>,
}

/// A table by what it is made of.
struct Built {
    of: String,
    payload: Vec<Place>,
    by: usize,
}

struct Compiler<'c> {
    ctx: &'c EvalContext,
    /// Those that are whole, each behind what it reads.
    done: Vec<Pipeline>,
    /// Tables by what they are built of: what is built a second time is the same.
    built: Vec<Built>,
    /// By number, the pipelines of what several places read, and how they hold it.
    shared: BTreeMap<usize, (usize, Vec<Field>)>,
    /// By number, the pipelines that make the first rows of recursions, and how they hold them.
    working: BTreeMap<usize, (usize, Vec<Field>)>,
    loops: Vec<Loop>,
    /// Whether what is compiled runs in rounds.
    in_step: bool,
}

/// `None` if an operator is not supported.
pub(super) fn pipelines(plan: &Plan, ctx: &EvalContext) -> Option<(Vec<Pipeline>, Vec<Loop>)> {
    let mut compiler = Compiler {
        ctx,
        done: Vec::new(),
        built: Vec::new(),
        shared: BTreeMap::new(),
        working: BTreeMap::new(),
        loops: Vec::new(),
        in_step: false,
    };
    let open = compiler.open(plan)?;
    let (offset, limit) = open.window.unwrap_or((0, None));
    open.is_storable(&open.columns).then_some(())?;
    if let Start::Made(by) = &open.start
        && let [by] = by.as_slice()
        // Nobody else reads it.
        && by + 1 == compiler.done.len()
        && let Some(turn) = compiler.loops.iter_mut().find(|turn| turn.gives(*by))
    {
        // Once rows have left, no other engine can run what this one does not.
        turn.streams = !compiler.done.iter().any(|pipeline| pipeline.sink.has_float_keys());
    }
    let sink = Sink::Give { columns: open.columns.clone(), offset, limit };
    compiler.close(open, sink);
    Some((compiler.done, compiler.loops))
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
            Plan::Values { columns, rows } => {
                let fields = columns.iter().map(|(ty, _)| Field::new(ty.clone(), true)).collect();
                let columns = columns.iter().map(|(_, values)| Vector::measured(values.clone())).collect();
                Some(Open::new(Start::Values(columns, *rows), fields))
            }
            Plan::Filter { input, conditions, watch } => {
                let mut open = self.whole(input)?;
                conditions.iter().for_each(|condition| open.filter(condition, self.ctx));
                match input.unnoted().0 {
                    Plan::Aggregate { .. } => self.have(&open),
                    Plan::Scan { .. } => open.watch.clone_from(watch),
                    _ => {}
                }
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
                let open = self.whole(input)?;
                self.aggregated(open, groups, dependent, calls)
            }
            Plan::Sort { input, keys } => {
                let open = self.whole(input)?;
                self.sorted(open, keys, 0, None)
            }
            Plan::Limit { input, offset, limit } => match input.unnoted() {
                (Plan::Sort { input, keys }, note) => {
                    let open = self.whole(input)?;
                    let mut open = self.sorted(open, keys, *offset, *limit)?;
                    note.into_iter().for_each(|note| self.note(&mut open, note));
                    Some(open)
                }
                _ => {
                    let mut open = self.whole(input)?;
                    open.window = Some((*offset, *limit));
                    Some(open)
                }
            },
            Plan::Noted { input, note } => {
                let mut open = self.open(input)?;
                self.note(&mut open, *note);
                Some(open)
            }
            Plan::Window { input, partition, order, arrival, calls } => {
                let open = self.whole(input)?;
                self.windowed(open, partition, order, arrival, calls)
            }
            Plan::ProjectSet { input, calls, ordinality, keep_empty } => {
                let mut open = self.whole(input)?;
                let sets = Sets::compile(&mut open, calls, *ordinality, *keep_empty, self.ctx)?;
                open.steps.push(Step::Sets(sets));
                Some(open)
            }
            Plan::Union { inputs } => self.union(inputs),
            Plan::Shared { number, plan } => self.shared(*number, plan),
            Plan::Recursive { number, base, step, distinct } => self.recursive(*number, base, step, *distinct),
            Plan::Working { number } => {
                let (made, fields) = self.working.get(number)?;
                Some(Open::new(Start::Made(vec![*made]), fields.clone()))
            }
        }
    }

    /// Rounds do not run within rounds.
    fn recursive(&mut self, number: usize, base: &Plan, step: &Plan, distinct: bool) -> Option<Open> {
        (!self.in_step).then_some(())?;
        let base = self.whole(base)?;
        let (base, fields) = self.round(base, distinct)?;
        self.working.insert(number, (base, fields.clone()));
        self.in_step = true;
        let step = self.whole(step);
        self.in_step = false;
        let (last, own) = self.round(step?, distinct)?;
        (own == fields).then_some(())?;
        let forms = match distinct {
            true => Some(fields.iter().map(KeyForm::of).collect::<Option<Vec<_>>>()?),
            false => None,
        };
        let turn = Loop::new(&self.done, base, fields.clone(), forms);
        // What depends on these rounds is none of others'.
        self.shared.retain(|_, (made, _)| !turn.varies(*made));
        self.loops.push(turn);
        Some(Open::new(Start::Made(vec![last]), fields))
    }

    /// Ends a pipeline whose rows are those of a round, held in the same way in each.
    fn round(&mut self, mut open: Open, distinct: bool) -> Option<(usize, Vec<Field>)> {
        (!open.columns.is_empty() && open.is_storable(&open.columns)).then_some(())?;
        let plain: Vec<Place> = open.columns.iter().map(|place| open.program.plain_of(*place)).collect();
        let fields = Order::fields(&open.program, &plain);
        let fields: Vec<Field> = fields.into_iter().map(|field| Field { nullable: true, ..field }).collect();
        let sink = if distinct {
            Sink::Aggregate(Arc::new(Spec::new(&open.program, &plain, &[], Vec::new())?))
        } else {
            let payload = plain.iter().copied().zip(fields.iter().cloned()).collect();
            let mut spec = join::Spec::new(Vec::new(), Vec::new(), payload)?;
            spec.any_order = true;
            Sink::Build(Arc::new(spec))
        };
        Some((self.close(open, sink), fields))
    }

    fn shared(&mut self, number: usize, plan: &Plan) -> Option<Open> {
        if !self.shared.contains_key(&number) {
            let open = self.whole(plan)?;
            let gathered = self.gathered(open)?;
            self.shared.insert(number, gathered);
        }
        let (made, fields) = self.shared.get(&number)?;
        Some(Open::new(Start::Made(vec![*made]), fields.clone()))
    }

    fn union(&mut self, inputs: &[Plan]) -> Option<Open> {
        let mut opens = inputs.iter().map(|input| self.whole(input)).collect::<Option<Vec<Open>>>()?;
        let columns = opens.first()?.columns.len();
        for at in 0..columns {
            let held = |open: &Open| open.program.fields[open.columns[at]].held();
            let first = held(&opens[0]);
            if opens.iter().any(|open| held(open) != first) {
                opens.iter_mut().for_each(|open| open.columns[at] = open.program.plain_of(open.columns[at]));
            }
            let first = held(&opens[0]);
            opens.iter().all(|open| held(open) == first).then_some(())?;
        }
        let mut made = Vec::with_capacity(opens.len());
        let mut fields: Option<Vec<Field>> = None;
        for open in opens {
            let (by, own) = self.gathered(open)?;
            made.push(by);
            match &mut fields {
                None => fields = Some(own),
                Some(fields) => fields.iter_mut().zip(own).for_each(|(field, own)| field.nullable |= own.nullable),
            }
        }
        Some(Open::new(Start::Made(made), fields?))
    }

    /// Holds the rows of a pipeline: the number of the one that does, and how.
    fn gathered(&mut self, open: Open) -> Option<(usize, Vec<Field>)> {
        let fields = Order::fields(&open.program, &open.columns);
        if let Start::Made(by) = &open.start
            && let ([by], true) = (by.as_slice(), open.passes_on())
        {
            return Some((*by, fields));
        }
        let payload = open.columns.iter().copied().zip(fields.iter().cloned()).collect();
        let sink = Sink::Build(Arc::new(join::Spec::new(Vec::new(), Vec::new(), payload)?));
        Some((self.close(open, sink), fields))
    }

    /// For operators that take in all rows: those of a limit are gathered first.
    fn whole(&mut self, plan: &Plan) -> Option<Open> {
        let mut open = self.open(plan)?;
        match open.window.take() {
            None => Some(open),
            Some((offset, limit)) => self.sorted(open, &[], offset, limit),
        }
    }

    /// Gives its number to what the operator that was compiled last became, the pipelines that were made for it
    /// included.
    fn note(&mut self, open: &mut Open, note: usize) {
        // A limit is not a step: it is where the pipeline ends, this one or another that the rows are gathered for.
        if open.window.is_some() {
            return open.notes.sink.push(note);
        }
        let made = match (open.steps.last(), &open.start) {
            (Some(Step::Probe(probe)), _) => vec![open.tables[probe.join]],
            // What a union reads was made by operators with notes of their own.
            (None, Start::Made(by)) if by.len() == 1 => by.clone(),
            (None, Start::Chosen { table, marks, .. }) => vec![*table, *marks],
            _ => Vec::new(),
        };
        made.into_iter().for_each(|by| self.done[by].notes.sink.push(note));
        open.notes.steps.resize_with(open.steps.len(), Vec::new);
        open.notes.steps.last_mut().unwrap_or(&mut open.notes.start).push(note);
    }

    /// Ends a pipeline that builds a table, or finds one that builds the same or more: nothing that an engine runs is
    /// volatile.
    fn built(&mut self, open: Open, spec: join::Spec) -> usize {
        // Without the notes, in which equal pipelines differ.
        let Open { start, program, steps, tables, .. } = &open;
        let join::Spec { keys, null_safe, payload, .. } = &spec;
        let of = format!("{start:?} {program:?} {steps:?} {tables:?} {keys:?} {null_safe:?}");
        // The text of an array leaves values in the middle out.
        let has_same_values = |known: &Built| match (&self.done[known.by].start, start) {
            (Start::Values(known, _), Start::Values(own, _)) => known.iter().zip(own).all(|(a, b)| is_same(a, b)),
            _ => true,
        };
        let is_enough = |known: &&Built| {
            known.of == of && (payload.is_empty() || known.payload == *payload) && has_same_values(known)
        };
        if let Some(Built { by, .. }) = self.built.iter().find(is_enough) {
            return *by;
        }
        let payload = payload.clone();
        let by = self.close(open, Sink::Build(Arc::new(spec)));
        self.built.push(Built { of, payload, by });
        by
    }

    /// Has the rows of a table's keys in the order of a column, unless they are in that of another.
    fn is_ordered_by(&mut self, table: usize, column: usize) -> bool {
        let Sink::Build(spec) = &mut self.done[table].sink else { return false };
        Arc::get_mut(spec).is_some_and(|spec| *spec.ordered_by.get_or_insert(column) == column)
    }

    /// Ends a pipeline; its number.
    fn close(&mut self, open: Open, sink: Sink) -> usize {
        let Open { start, program, steps, mut notes, watch, tables, .. } = open;
        notes.steps.resize_with(steps.len(), Vec::new);
        self.done.push(Pipeline { start, program: Arc::new(program), steps, tables, sink, notes, watch });
        self.done.len() - 1
    }

    fn join(
        &mut self,
        left: &Plan,
        right: &Plan,
        kind: JoinKind,
        keys: &[JoinKey],
        payload: &[usize],
        residual: &[Expr],
    ) -> Option<Open> {
        let mut built = self.whole(right)?;
        let right_keys = built.keys(keys.iter().map(|key| &key.right), self.ctx);
        let payload = payload.iter().map(|at| built.columns[*at]);
        let payload: Vec<(Place, Field)> = payload.map(|place| (place, built.program.fields[place].clone())).collect();
        let fields: Vec<Field> = payload.iter().map(|(_, field)| field.clone()).collect();
        let wanted = if kind.gives_partners() || !residual.is_empty() { payload } else { Vec::new() };
        let held_keys: Vec<Field> = right_keys.iter().map(|(_, field)| field.clone()).collect();
        let table = self.built(built, join::Spec::new(right_keys, null_safe(keys), wanted)?);

        let mut open = self.whole(left)?;
        let left_keys = open.keys(keys.iter().map(|key| &key.left), self.ctx);
        are_alike(&left_keys, &held_keys).then_some(())?;
        let null = left_keys.iter().any(|(_, field)| field.nullable) || held_keys.iter().any(|field| field.nullable);
        let kind = match kind {
            JoinKind::NullAwareAnti if !null => JoinKind::Anti,
            JoinKind::Mark { .. } if !null => JoinKind::Mark { null_aware: false },
            JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true } if keys.len() > 1 || !residual.is_empty() => {
                return None;
            }
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
        let between = join::Between::of(&conditions, &open.program, at);
        let between = between.filter(|between| self.is_ordered_by(table, between.column));
        open.steps.push(Step::Probe(join::Probe { join: at, kind, keys, residual: conditions, between, read }));
        if !kind.gives_partners() {
            open.columns = own;
        }
        if let JoinKind::Mark { null_aware } = kind {
            let mark = open.program.mark(at, null_aware);
            open.columns.push(mark);
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
        keys: &[JoinKey],
        asked: &[usize],
        residual: &[Expr],
    ) -> Option<Open> {
        let mut held = self.whole(left)?;
        let left_keys = held.keys(keys.iter().map(|key| &key.left), self.ctx);
        let payload: Vec<(Place, Field)> =
            held.columns.iter().map(|place| (*place, held.program.fields[*place].clone())).collect();
        let fields: Vec<Field> = payload.iter().map(|(_, field)| field.clone()).collect();
        let held_keys: Vec<Field> = left_keys.iter().map(|(_, field)| field.clone()).collect();
        let sink = Sink::Build(Arc::new(join::Spec::new(left_keys, null_safe(keys), payload)?));
        let table = self.close(held, sink);

        let mut open = self.whole(right)?;
        let right_keys = open.keys(keys.iter().map(|key| &key.right), self.ctx);
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
        let probe = join::Probe { join: at, kind: JoinKind::Inner, keys, residual: conditions, between: None, read };
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
            let (resolved, distinct, counts) = (call.resolved.clone(), call.distinct, None);
            compiled.push(Call { resolved, args, digits, filter, distinct, counts });
        }
        let heeds_order = calls.iter().any(|call| call.heeds_order);
        if !heeds_order && let Some(stages) = Stages::of(&open.program, &groups, &compiled, ctx) {
            // Each value of a group is a group of its own first: those are put together by all workers, and sets of values
            // by one.
            let Stages { values, inner, outer } = stages;
            let values = self.grouped(open, &values, dependent, inner, false)?;
            let groups: Vec<Place> = (0..groups.len()).collect();
            return self.grouped(values, &groups, dependent, outer, false);
        }
        self.grouped(open, &groups, dependent, compiled, heeds_order)
    }

    fn grouped(
        &mut self,
        open: Open,
        groups: &[Place],
        dependent: &[usize],
        calls: Vec<Call>,
        heeds_order: bool,
    ) -> Option<Open> {
        let mut spec = Spec::new(&open.program, groups, dependent, calls)?;
        if heeds_order {
            spec.heed_order();
        }
        let spec = Arc::new(spec);
        let fields = spec.fields();
        let made = self.close(open, Sink::Aggregate(spec));
        Some(Open::new(Start::Made(vec![made]), fields))
    }

    /// Tells an aggregation what is asked of its groups by the filter behind it.
    fn have(&mut self, open: &Open) {
        let (Start::Made(by), [Step::Filter(conditions)]) = (&open.start, open.steps.as_slice()) else { return };
        if let [by] = by.as_slice()
            && let Sink::Aggregate(spec) = &mut self.done[*by].sink
        {
            Arc::make_mut(spec).have(&open.program, conditions);
        }
    }

    fn windowed(
        &mut self,
        mut open: Open,
        partition: &[Expr],
        order: &[SortKey],
        arrival: &[SortKey],
        calls: &[WindowCall],
    ) -> Option<Open> {
        let mut columns = open.columns.clone();
        let passed = columns.len();
        let partition: Vec<SortKey> =
            (partition.iter().cloned()).map(|expr| SortKey { expr, descending: false, nulls_first: false }).collect();
        let mut keys = Vec::new();
        let mut told_apart = Vec::new();
        for key in partition.iter().chain(order).chain(arrival) {
            let place = open.define(&key.expr, self.ctx);
            let form = Form::of(&open.program.fields[place])?;
            let column = Some(columns.len());
            keys.push(Key { place, column, descending: key.descending, nulls_first: key.nulls_first, form });
            told_apart.push((columns.len(), form));
            columns.push(place);
        }
        told_apart.truncate(partition.len() + order.len());
        let along = match (calls.iter().any(WindowCall::measures), order) {
            (false, _) => None,
            (true, [key]) => {
                let place = open.define(&key.expr, self.ctx);
                columns.push(open.program.plain_of(place));
                let (column, ctx) = (columns.len() - 1, self.ctx.clone());
                Some(window::Along { column, descending: key.descending, nulls_first: key.nulls_first, ctx })
            }
            (true, _) => return None,
        };
        let order = told_apart.split_off(partition.len());
        let mut compiled = Vec::with_capacity(calls.len());
        for call in calls {
            let function = self.window_function(&mut open, &mut columns, &call.function);
            let frame = call.frame.clone().map(|WindowFrame { spec, offsets }| Frame { spec, offsets });
            compiled.push(window::Call { function, ty: call.ty.clone(), frame });
        }
        let is_storable = |call: &WindowCall| call.ty.phys().is_some();
        (open.is_storable(&columns) && calls.iter().all(is_storable)).then_some(())?;
        let fields = Order::fields(&open.program, &columns);
        let sorting = Arc::new(Order { keys, fields: fields.clone(), offset: 0, limit: None });
        let window = Arc::new(window::Spec { passed, fields, partition: told_apart, order, along, calls: compiled });
        let leaving = window.leaving();
        let made = self.close(open, Sink::Window { columns, order: sorting, window });
        Some(Open::new(Start::Made(vec![made]), leaving))
    }

    /// With its arguments among the columns.
    fn window_function(&self, open: &mut Open, columns: &mut Vec<Place>, function: &WindowFunction) -> Function {
        let mut column = |expr: &Expr| {
            let place = open.define(expr, self.ctx);
            let place = open.program.plain_of(place);
            columns.push(place);
            columns.len() - 1
        };
        match function {
            WindowFunction::Ranking(ranking) => Function::Ranking(*ranking),
            WindowFunction::Ntile(buckets) => Function::Ntile(column(buckets)),
            WindowFunction::Shifted { value, offset, default, lead } => Function::Shifted {
                value: column(value),
                offset: offset.as_ref().map(&mut column),
                default: default.as_ref().map(&mut column),
                lead: *lead,
            },
            WindowFunction::Edge(edge, value) => Function::Edge(*edge, column(value)),
            WindowFunction::NthValue(value, nth) => Function::NthValue(column(value), column(nth)),
            WindowFunction::Aggregate(call) => Function::Aggregate {
                resolved: call.resolved.clone(),
                args: call.args.iter().map(&mut column).collect(),
                filter: call.filter.as_ref().map(&mut column),
            },
        }
    }

    fn sorted(&mut self, mut open: Open, keys: &[SortKey], offset: usize, limit: Option<usize>) -> Option<Open> {
        let mut placed = Vec::with_capacity(keys.len());
        for SortKey { expr, descending, nulls_first } in keys {
            let place = open.define(expr, self.ctx);
            let form = Form::of(&open.program.fields[place])?;
            let column = open.columns.iter().position(|column| *column == place);
            placed.push(Key { place, column, descending: *descending, nulls_first: *nulls_first, form });
        }
        open.is_storable(&open.columns).then_some(())?;
        let fields = Order::fields(&open.program, &open.columns);
        let order = Arc::new(Order { keys: placed, fields: fields.clone(), offset, limit });
        let sink = Sink::Sort { columns: open.columns.clone(), order };
        let made = self.close(open, sink);
        Some(Open::new(Start::Made(vec![made]), fields))
    }
}

impl Open {
    fn new(start: Start, fields: Vec<Field>) -> Open {
        let columns = (0..fields.len()).collect();
        let program = Program::new(fields);
        let (steps, tables) = (Vec::new(), Vec::new());
        Open { start, program, steps, notes: Notes::default(), watch: None, tables, columns, window: None }
    }

    /// Whether it gives what it is given and nothing else.
    fn passes_on(&self) -> bool {
        let is_given = |(at, place): (usize, &Place)| {
            *place == at && matches!(self.program.defs[at], Def::Given(column) if column == at)
        };
        let given = self.columns.len() == self.program.defs.len() && self.columns.iter().enumerate().all(is_given);
        given && self.steps.is_empty() && self.window.is_none()
    }

    /// An expression over the operator's columns as one over the program's.
    fn placed(&self, expr: &Expr) -> Expr {
        expr.clone().rewrite(&mut |node| match node {
            Expr::Column { index, ty } => Expr::Column { index: self.columns[index], ty },
            other => other,
        })
    }

    /// Whether columns are of types that can be held.
    pub fn is_storable(&self, columns: &[Place]) -> bool {
        columns.iter().all(|place| self.program.fields[*place].held().phys().is_some())
    }

    pub fn define(&mut self, expr: &Expr, ctx: &EvalContext) -> Place {
        let expr = self.placed(expr);
        self.program.define(&expr, ctx)
    }

    /// The columns of join keys and how they are held.
    fn keys<'e>(&mut self, keys: impl Iterator<Item = &'e Expr>, ctx: &EvalContext) -> Vec<(Place, Field)> {
        let places: Vec<Place> = keys.map(|key| self.define(key, ctx)).collect();
        places.into_iter().map(|place| (place, self.program.fields[place].clone())).collect()
    }

    /// What has to be true of each pair, one after the other: no pair that fails one is asked the next.
    fn conditions(&mut self, exprs: &[Expr], ctx: &EvalContext) -> Vec<Condition> {
        let placed: Vec<Expr> = exprs.iter().flat_map(|expr| self.placed(expr).split_and()).collect();
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
            let mut skips: Vec<_> = skips.collect();
            if let (true, Some((plain, _))) =
                (skips.is_empty(), prune::plain_predicates(&expr, &self.program, spec, ctx))
            {
                skips = plain;
            }
            spec.predicates.extend(skips);
        }
        match self.steps.last_mut() {
            Some(Step::Filter(earlier)) => {
                fuse(earlier, conditions);
                self.watch = None;
            }
            _ => self.steps.push(Step::Filter(conditions)),
        }
    }
}

/// Whether two columns of constants hold the same.
fn is_same(a: &Vector, b: &Vector) -> bool {
    match (a, b) {
        (Vector::Ints(a), Vector::Ints(b)) => {
            let value = |ints: &Ints, row: usize| {
                let valid = ints.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                valid.then(|| ints.values.get(row))
            };
            a.values.len() == b.values.len() && (0..a.values.len()).all(|row| value(a, row) == value(b, row))
        }
        // Zeros of both signs are equal, but not the same.
        (Vector::Flat(a), Vector::Flat(b)) => !a.data_type().is_floating() && a == b,
        _ => false,
    }
}

fn null_safe(keys: &[JoinKey]) -> Vec<bool> {
    keys.iter().map(|key| key.null_safe).collect()
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

#[cfg(test)]
mod tests;
