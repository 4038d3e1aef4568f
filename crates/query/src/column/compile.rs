//! From the optimizer's tree to a plan of the column engine: column ids become positions.

use crate::column::facts;
use crate::column::kept::{Expected, Lasting, Sizes};
use crate::column::notes::{Notes, What};
use crate::column::ordered::heeds_order;
use crate::optimize::columns::{ColSet, add_columns_of};
use crate::optimize::node::{JoinKind, Key, Node, Op, SharedColumn, Side};
use crate::optimize::optimize;
use crate::plan::{AggregateCall, ColId, CteId, Plan, Query, SetColumn, SetOp, SortKey, row_count};
use crate::run::RunContext;
use basalt_engine::ScanSpec;
use basalt_exec::pipeline::Pipelines;
use basalt_exec::plan as exec;
use basalt_expr::aggregates::FOLDING;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnBuilder, ColumnId, DataType, TableDef};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Of these the ones to which a value that comes again says nothing new.
const IDEMPOTENT: [&str; 7] = ["min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or"];

/// An operator of the engine and which column of it holds what.
#[derive(Clone)]
pub(super) struct Compiled {
    pub plan: exec::Plan,
    pub columns: Vec<ColId>,
}

/// Why the engine does not run a query.
pub(crate) type Refusal = Cow<'static, str>;
pub(super) type Taken<T> = Result<T, Refusal>;

/// Of constants of pipelines that are kept.
const CONSTANT_BYTES_MAX: usize = 64 << 10;
/// What is said of plans that compile, but not into pipelines.
const UNSUPPORTED: Refusal = Cow::Borrowed("types or expressions that it does not hold");
const OUT_OF_TURN: Refusal = Cow::Borrowed("a volatile call, or a column of another query level");

/// A plan that is computed once: its number, and which column of it holds what.
type Once = (usize, Arc<exec::Plan>, Vec<ColId>);

/// How a tree is compiled.
pub(super) struct Compiling<'c> {
    pub ctx: &'c RunContext,
    /// Of a plan that is told.
    pub notes: Option<Notes>,
    /// Of each WITH query that is computed once, the columns that its references read.
    read: BTreeMap<CteId, ColSet>,
    /// Those that have been compiled.
    shared: BTreeMap<CteId, Once>,
    /// Numbers of what is computed once that have been given.
    numbers: usize,
    /// Whether the plan is the same for every execution.
    lasts: bool,
    /// What it is made of, as far as executions will see whether it is so.
    expected: Vec<Expected>,
}

impl<'c> Compiling<'c> {
    fn new(node: &Node, ctx: &'c RunContext, notes: Option<Notes>) -> Compiling<'c> {
        let mut read = BTreeMap::new();
        add_read(node, &mut read);
        Compiling { ctx, notes, read, shared: BTreeMap::new(), numbers: 0, lasts: true, expected: Vec::new() }
    }

    /// A plan that several places read.
    fn once(&mut self, plan: exec::Plan) -> exec::Plan {
        exec::Plan::Shared { number: self.number(), plan: Arc::new(plan) }
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    /// Lets executions tell for how many rows of a large table conditions hold.
    fn watch(
        &mut self,
        table: &Arc<TableDef>,
        columns: &[(ColId, ColumnId)],
        conditions: &[Expr],
        expected: f64,
    ) -> Option<exec::Watch> {
        let rows = self.ctx.read.engine().estimated_rows(table);
        if conditions.is_empty() || rows < facts::SAMPLED_ROWS_MIN {
            return None;
        }
        let observed = self.ctx.system.db.observed().clone();
        let key = observed.key(table, columns, conditions, &self.ctx.eval)?;
        self.expected.push(Expected { key, table: table.clone(), rows: expected });
        Some(exec::Watch(Arc::new(move |passed| observed.put(key, rows, passed))))
    }

    /// The plan depends on what is set in a session.
    pub fn is_for_one_execution(&mut self) {
        self.lasts = false;
    }

    /// The plan holds what this comes to.
    pub fn holds_value_of(&mut self, expr: &Expr) {
        self.lasts &=
            expr.volatility() == Volatility::Immutable && !expr.any(&mut |node| matches!(node, Expr::Param { .. }));
    }
}

/// Notes what references read of WITH queries.
fn add_read(node: &Node, read: &mut BTreeMap<CteId, ColSet>) {
    match &node.op {
        Op::Shared { cte, plan, columns } => {
            read.entry(*cte).or_default().extend(columns.iter().map(|column| column.source));
            add_read(plan, read);
        }
        Op::Recursive { base, step, .. } => [base, step].into_iter().for_each(|part| add_read(part, read)),
        _ => {}
    }
    node.inputs().into_iter().for_each(|input| add_read(input, read));
}

/// What the column engine runs for a query, or why the fallback does.
pub(crate) fn column_pipelines(query: &Query, ctx: &RunContext) -> Taken<Pipelines> {
    check_taken(query, ctx)?;
    let keeps = !ctx.system.settings.effective().plans_anew;
    match query.columnar.get(ctx).filter(|_| keeps) {
        Some(Lasting::Pipelines(kept)) => return Ok(kept),
        Some(Lasting::Plan(plan)) => {
            // Constants without parameters have been looked at.
            if !ctx.eval.params.is_empty() {
                check_constants(query, ctx)?;
            }
            return pipelines(&plan, ctx);
        }
        None => {}
    }
    let sizes = Sizes::of(query, ctx);
    let node = tree(query, ctx)?;
    let mut how = Compiling::new(&node, ctx, None);
    let plan = compiled(query, &node, &mut how)?;
    let made = pipelines(&plan, ctx)?;
    let is_timeless = query.is_timeless();
    if how.lasts && keeps && (is_timeless || !facts::are_sampled(query, ctx)) {
        // Constants that were computed may be much larger than what they are computed of.
        let lasting = match is_timeless && made.constant_bytes() <= CONSTANT_BYTES_MAX {
            true => Lasting::Pipelines(made.clone()),
            false => Lasting::Plan(Arc::new(plan)),
        };
        query.columnar.keep(lasting, sizes, how.expected);
    }
    Ok(made)
}

/// The same with what there is to say of its operators.
pub(crate) fn noted_pipelines(query: &Query, ctx: &RunContext) -> Taken<(Pipelines, Notes)> {
    check_taken(query, ctx)?;
    let node = tree(query, ctx)?;
    let notes = Notes::new(&node, query, &ctx.system);
    let mut how = Compiling::new(&node, ctx, Some(notes));
    let plan = compiled(query, &node, &mut how)?;
    Ok((pipelines(&plan, ctx)?, how.notes.expect("it is kept")))
}

fn pipelines(plan: &exec::Plan, ctx: &RunContext) -> Taken<Pipelines> {
    Pipelines::of(plan, &ctx.eval).ok_or(UNSUPPORTED)
}

/// Why the engine would not run a query, before it is looked at closely.
fn check_taken(query: &Query, ctx: &RunContext) -> Taken<()> {
    if !ctx.system.settings.effective().column_engine {
        return Err("basalt.enable_column_engine is off".into());
    }
    if !query.row_locks.is_empty() {
        return Err("rows are locked".into());
    }
    if ctx.inner {
        return Err("it runs once for each row of another".into());
    }
    if !is_worth_it(query) {
        return Err("a table's rows are passed on as they are".into());
    }
    Ok(())
}

fn tree(query: &Query, ctx: &RunContext) -> Taken<Node> {
    optimize(query, &facts::of(query, ctx)).map_err(Refusal::from)
}

fn compiled(query: &Query, node: &Node, how: &mut Compiling<'_>) -> Taken<exec::Plan> {
    let needed = query.columns.iter().map(|column| column.id).collect();
    let compiled = Compiled::of(node, &needed, how)?;
    let outputs = query.columns.iter().map(|column| placed(&hole(column.id, &column.ty), &compiled.columns));
    let exprs = outputs.collect::<Taken<Vec<_>>>()?;
    check_constants(query, how.ctx)?;
    Ok(exec::Plan::Project { input: Box::new(compiled.plan), exprs })
}

fn check_constants(query: &Query, ctx: &RunContext) -> Taken<()> {
    match query.first_fault(&ctx.eval) {
        Some(_) => Err("a constant fails, which the fallback tells".into()),
        None => Ok(()),
    }
}

/// Whether a query does more than to pass on rows of a table.
fn is_worth_it(query: &Query) -> bool {
    fn does_more(plan: &Plan) -> bool {
        match plan {
            Plan::Project { input, .. } | Plan::Limit { input, .. } => does_more(input),
            Plan::SetOp { op: SetOp::Union, all: true, left, right, .. } => does_more(left) && does_more(right),
            Plan::Scan { .. } | Plan::Unit | Plan::Values { .. } => false,
            _ => true,
        }
    }
    !query.subqueries.is_empty() || does_more(&query.plan)
}

/// Whether a node gives what a table holds, computed again or not.
fn passes_on(node: &Node) -> bool {
    match &node.op {
        Op::Scan { .. } => true,
        Op::Filter { input, .. } | Op::Project { input, .. } => passes_on(input),
        _ => false,
    }
}

/// What the inputs of a node have to give.
fn needed_below(node: &Node, needed: &ColSet) -> ColSet {
    let mut below = match &node.op {
        // They give nothing but what they define.
        Op::Project { .. } | Op::Aggregate { .. } => ColSet::new(),
        _ => needed.clone(),
    };
    node.exprs().into_iter().for_each(|expr| add_columns_of(expr, &mut below));
    below
}

fn hole(id: ColId, ty: &DataType) -> Expr {
    Expr::Hole { id, ty: ty.clone() }
}

impl Compiling<'_> {
    fn limit(&mut self, expr: &Option<Expr>, place: row_count::CountPlace) -> Taken<Option<usize>> {
        expr.iter().for_each(|expr| self.holds_value_of(expr));
        expr.as_ref().map_or(Ok(None), |expr| count(expr, place, self.ctx))
    }
}

impl Compiled {
    /// `needed`: the columns that somebody above reads.
    fn of(node: &Node, needed: &ColSet, how: &mut Compiling<'_>) -> Taken<Compiled> {
        let below = needed_below(node, needed);
        let rows = Some(node.rows);
        match &node.op {
            Op::Scan { table, columns, filter } => {
                let engine = how.ctx.read.engine().clone();
                let all = how.notes.is_some().then(|| engine.estimated_rows(table) as f64);
                let scan = Compiled::scan(table, columns)?.noted(how, all, |notes| notes.scan(table, columns));
                let watch = how.watch(table, columns, filter, node.rows);
                scan.filtered(filter, rows, watch, how)
            }
            Op::Values { columns, rows: values } => {
                Ok(Compiled::values(columns, values, how)?.noted(how, rows, |notes| notes.values(columns)))
            }
            Op::UnionAll { left, right, columns } => {
                let columns: Vec<&SetColumn> = columns.iter().filter(|column| needed.contains(&column.id)).collect();
                let left = Compiled::side(left, &columns, |column| column.left, how)?;
                let right = Compiled::side(right, &columns, |column| column.right, how)?;
                Ok(left.and(right).noted(how, rows, |notes| notes.union(&columns)))
            }
            Op::Shared { cte, plan, columns } => Compiled::reference(*cte, plan, columns, how),
            Op::Recursive { cte, base, step, distinct, columns: defined } => {
                let all: Vec<&SetColumn> = defined.iter().collect();
                let base = Compiled::side(base, &all, |column| column.left, how)?;
                let step = Compiled::side(step, &all, |column| column.right, how)?;
                let (base, step) = (Box::new(base.plan), Box::new(step.plan));
                let plan = exec::Plan::Recursive { number: *cte, base, step, distinct: *distinct };
                let columns = defined.iter().map(|column| column.id).collect();
                Ok(Compiled { plan, columns }.noted(how, rows, |notes| notes.recursion(defined)))
            }
            Op::Working { cte, columns } => {
                how.notes.iter_mut().for_each(|notes| notes.working(columns));
                let columns = columns.iter().map(|(id, _)| *id).collect();
                Ok(Compiled { plan: exec::Plan::Working { number: *cte }, columns })
            }
            Op::Filter { input, conjuncts } => Compiled::of(input, &below, how)?.filtered(conjuncts, rows, None, how),
            Op::Project { input, exprs } => Compiled::of(input, &below, how)?.projected(exprs, how),
            Op::Join { left, right, kind, keys, residual, build } => {
                let (left, right) = (Compiled::of(left, &below, how)?, Compiled::of(right, &below, how)?);
                if *kind == JoinKind::Full {
                    return left.full(right, node, keys, residual, how);
                }
                let compiled = Compiled::join(left, right, *kind, keys, residual, needed)?.holding(*build);
                Ok(compiled.noted(how, rows, |notes| notes.join(*kind, keys, residual)))
            }
            Op::Aggregate { input, groups, dependent, aggregates } => {
                let input = Compiled::of(input, &below, how)?;
                let compiled = input.aggregated(groups, dependent, aggregates, how)?;
                Ok(compiled.noted(how, rows, |notes| notes.aggregate(groups, aggregates)))
            }
            Op::Sort { input, keys } => {
                let Compiled { plan, columns } = Compiled::of(input, &below, how)?;
                let placed = keys.iter().map(|key| sort_key(key, &columns)).collect::<Taken<Vec<_>>>()?;
                let plan = exec::Plan::Sort { input: Box::new(plan), keys: placed };
                Ok(Compiled { plan, columns }.noted(how, rows, |notes| notes.sort(keys)))
            }
            Op::Window { input, calls } => Compiled::of(input, &below, how)?.windowed(calls, rows, how),
            Op::ProjectSet { input, sets, ordinality, keep_empty } => {
                let compiled = Compiled::of(input, &below, how)?.with_sets(sets, *ordinality, *keep_empty)?;
                let compiled = compiled.noted(how, rows, |notes| notes.sets(sets, *ordinality));
                // An array that was taken apart goes no further, unless somebody asks for it.
                let types = node.columns().into_iter().filter(|(id, _)| needed.contains(id));
                let kept: Vec<(ColId, Expr)> = types.map(|(id, ty)| (id, hole(id, &ty))).collect();
                compiled.placing(&kept)
            }
            Op::Limit { input, .. } if input.gives_by_rounds() => Err("a LIMIT, which may end WITH RECURSIVE".into()),
            Op::Limit { input, limit, offset } => {
                let Compiled { plan, columns } = Compiled::of(input, &below, how)?;
                let (limit, offset) = (how.limit(limit, row_count::LIMIT)?, how.limit(offset, row_count::OFFSET)?);
                let plan = exec::Plan::Limit { input: Box::new(plan), offset: offset.unwrap_or(0), limit };
                Ok(Compiled { plan, columns }.noted(how, rows, |_| What::Limit))
            }
        }
    }

    /// With a note, if the plan is told.
    pub fn noted(self, how: &mut Compiling<'_>, rows: Option<f64>, what: impl FnOnce(&mut Notes) -> What) -> Compiled {
        let Some(notes) = &mut how.notes else { return self };
        let what = what(notes);
        Compiled { plan: self.plan.noted(notes.take(rows, what)), ..self }
    }

    fn values(columns: &[(ColId, DataType)], rows: &[Vec<Expr>], how: &mut Compiling<'_>) -> Taken<Compiled> {
        rows.iter().flatten().for_each(|expr| how.holds_value_of(expr));
        let ctx = how.ctx;
        let column = |(at, (_, ty)): (usize, &(ColId, DataType))| {
            let mut values = ColumnBuilder::new(ty.phys()?, rows.len());
            for row in rows {
                let value = row[at].eval_scalar(&[], &ctx.eval).ok()?;
                (row[at].ty() == *ty && values.push(&value)).then_some(())?;
            }
            Some((ty.clone(), values.finish()))
        };
        let values = columns.iter().enumerate().map(column).collect::<Option<Vec<_>>>();
        let columns = columns.iter().map(|(id, _)| *id).collect();
        let values = values.ok_or("rows of constants that cannot be held, or that fail")?;
        Ok(Compiled { plan: exec::Plan::Values { columns: values, rows: rows.len() }, columns })
    }

    /// A WITH query that several places read.
    fn reference(cte: CteId, plan: &Node, columns: &[SharedColumn], how: &mut Compiling<'_>) -> Taken<Compiled> {
        let exprs: Vec<(ColId, Expr)> =
            columns.iter().map(|column| (column.id, hole(column.source, &column.ty))).collect();
        // What is read as fast as it is held is not held.
        if passes_on(plan) {
            let sources = columns.iter().map(|column| column.source).collect();
            return Compiled::of(plan, &sources, how)?.projected(&exprs, how);
        }
        let (number, plan, columns) = match how.shared.get(&cte) {
            Some(known) => known.clone(),
            None => {
                let read = how.read.get(&cte).cloned().unwrap_or_default();
                let held: Vec<(ColId, Expr)> = (plan.columns().iter())
                    .filter(|(id, _)| read.contains(id))
                    .map(|(id, ty)| (*id, hole(*id, ty)))
                    .collect();
                let Compiled { plan, columns } = Compiled::of(plan, &read, how)?.projected(&held, how)?;
                let compiled = (how.number(), Arc::new(plan), columns);
                how.shared.insert(cte, compiled.clone());
                compiled
            }
        };
        Compiled { plan: exec::Plan::Shared { number, plan }, columns }.projected(&exprs, how)
    }

    /// One side of a union.
    fn side(
        node: &Node,
        columns: &[&SetColumn],
        of: fn(&SetColumn) -> ColId,
        how: &mut Compiling<'_>,
    ) -> Taken<Compiled> {
        let types: BTreeMap<ColId, DataType> = node.columns().into_iter().collect();
        if columns.iter().any(|column| types.get(&of(column)) != Some(&column.ty)) {
            return Err("a union of several types".into());
        }
        let exprs: Vec<(ColId, Expr)> =
            columns.iter().map(|column| (column.id, hole(of(column), &column.ty))).collect();
        Compiled::of(node, &columns.iter().map(|column| of(column)).collect(), how)?.placing(&exprs)
    }

    /// The rows of both.
    fn and(self, other: Compiled) -> Compiled {
        let Compiled { plan, columns } = self;
        let mut inputs = match plan.without_note() {
            exec::Plan::Union { inputs } => inputs,
            plan => vec![plan],
        };
        inputs.push(other.plan);
        Compiled { plan: exec::Plan::Union { inputs }, columns }
    }

    /// A full join: a left join, and the right rows that nobody meets. `node`: the join.
    fn full(
        self,
        right: Compiled,
        node: &Node,
        keys: &[Key],
        residual: &[Expr],
        how: &mut Compiling<'_>,
    ) -> Taken<Compiled> {
        let types: BTreeMap<ColId, DataType> = node.columns().into_iter().collect();
        let of_right: ColSet = right.columns.iter().copied().collect();
        let mut once = |side: Compiled| Compiled { plan: how.once(side.plan), columns: side.columns };
        let (left, right) = (once(self), once(right));
        let all: ColSet = left.columns.iter().chain(&right.columns).copied().collect();
        let met = Compiled::join(left.clone(), right.clone(), JoinKind::Left, keys, residual, &all)?;
        let met = met.noted(how, None, |notes| notes.join(JoinKind::Left, keys, residual));
        let swapped: Vec<Key> = keys.iter().cloned().map(Key::swapped).collect();
        let lonely = Compiled::join(right, left, JoinKind::Anti, &swapped, residual, &all)?.holding(Side::Left);
        let lonely = lonely.noted(how, None, |notes| notes.join(JoinKind::Anti, &swapped, residual));
        let values = met.columns.iter().map(|id| {
            let ty = types.get(id)?;
            Some((*id, if of_right.contains(id) { hole(*id, ty) } else { Expr::null(ty.clone()) }))
        });
        let values = values.collect::<Option<Vec<_>>>().ok_or("FULL JOIN of columns that are not known")?;
        Ok(met.and(lonely.placing(&values)?).noted(how, Some(node.rows), |_| What::Union))
    }

    fn scan(table: &Arc<TableDef>, columns: &[(ColId, ColumnId)]) -> Taken<Compiled> {
        let spec = scan_of(table, columns).ok_or("a materialized view that has not been populated")?;
        Ok(Compiled { plan: exec::Plan::Scan { spec }, columns: columns.iter().map(|(id, _)| *id).collect() })
    }

    fn filtered(
        self,
        conjuncts: &[Expr],
        rows: Option<f64>,
        watch: Option<exec::Watch>,
        how: &mut Compiling<'_>,
    ) -> Taken<Compiled> {
        if conjuncts.is_empty() {
            return Ok(self);
        }
        let Compiled { plan, columns } = self;
        let conditions = conjuncts.iter().map(|conjunct| placed(conjunct, &columns)).collect::<Taken<Vec<_>>>()?;
        let plan = exec::Plan::Filter { input: Box::new(plan), conditions, watch };
        Ok(Compiled { plan, columns }.noted(how, rows, |notes| notes.filter(conjuncts)))
    }

    /// Expressions, and what they are called.
    fn projected(self, exprs: &[(ColId, Expr)], how: &mut Compiling<'_>) -> Taken<Compiled> {
        let compiled = self.placing(exprs)?;
        how.notes.iter_mut().for_each(|notes| notes.name(exprs));
        Ok(compiled)
    }

    fn placing(self, exprs: &[(ColId, Expr)]) -> Taken<Compiled> {
        let Compiled { plan, columns } = self;
        let values = exprs.iter().map(|(_, expr)| placed(expr, &columns)).collect::<Taken<Vec<_>>>()?;
        let is_passed = |(at, value): (usize, &Expr)| matches!(value, Expr::Column { index, .. } if *index == at);
        let renames = values.len() == columns.len() && values.iter().enumerate().all(is_passed);
        let plan = match renames {
            true => plan,
            false => exec::Plan::Project { input: Box::new(plan), exprs: values },
        };
        Ok(Compiled { plan, columns: exprs.iter().map(|(id, _)| *id).collect() })
    }

    fn join(
        left: Compiled,
        right: Compiled,
        kind: JoinKind,
        keys: &[Key],
        residual: &[Expr],
        needed: &ColSet,
    ) -> Taken<Compiled> {
        let mark = if let JoinKind::Mark { id, .. } = kind { Some(id) } else { None };
        let kind = match kind {
            JoinKind::Inner => exec::JoinKind::Inner,
            JoinKind::Left => exec::JoinKind::Left,
            JoinKind::Semi => exec::JoinKind::Semi,
            JoinKind::Anti => exec::JoinKind::Anti,
            JoinKind::NullAwareAnti => exec::JoinKind::NullAwareAnti,
            JoinKind::Single => exec::JoinKind::Single,
            JoinKind::Mark { null_aware, .. } => exec::JoinKind::Mark { null_aware },
            JoinKind::Full => return Err("FULL JOIN".into()),
        };
        let pair = |key: &Key| {
            let null_safe = key.null_safe;
            let (left, right) = (placed(&key.left, &left.columns)?, placed(&key.right, &right.columns)?);
            match left.ty() == right.ty() {
                true => Ok(exec::JoinKey { left, right, null_safe }),
                false => Err(Refusal::from("a join of two types")),
            }
        };
        let keys = keys.iter().map(pair).collect::<Taken<Vec<_>>>()?;
        // Of partners only what is asked for is held.
        let asked: ColSet = residual.iter().fold(needed.clone(), |mut asked, condition| {
            add_columns_of(condition, &mut asked);
            asked
        });
        let kept = right.columns.iter().enumerate().filter(|(_, id)| asked.contains(id));
        let (payload, partners): (Vec<usize>, Vec<ColId>) = kept.unzip();
        let both: Vec<ColId> = left.columns.iter().chain(&partners).copied().collect();
        let residual = residual.iter().map(|condition| placed(condition, &both)).collect::<Taken<Vec<_>>>()?;
        let columns = match kind.gives_partners() {
            true => both,
            false => left.columns.into_iter().chain(mark).collect(),
        };
        let (left, right) = (Box::new(left.plan), Box::new(right.plan));
        Ok(Compiled {
            plan: exec::Plan::Join { left, right, kind, keys, payload, hold_left: false, residual },
            columns,
        })
    }

    /// With the side of a join held that the optimizer would hold.
    fn holding(mut self, side: Side) -> Compiled {
        if let exec::Plan::Join { hold_left, .. } = &mut self.plan {
            *hold_left = side == Side::Left;
        }
        self
    }

    /// A row for each value of set-returning calls.
    fn with_sets(self, sets: &[(ColId, Expr)], ordinality: Option<ColId>, keep_empty: bool) -> Taken<Compiled> {
        let Compiled { plan, mut columns } = self;
        let calls = sets.iter().map(|(_, call)| placed(call, &columns)).collect::<Taken<Vec<_>>>()?;
        columns.extend(sets.iter().map(|(id, _)| *id).chain(ordinality));
        let (input, ordinality) = (Box::new(plan), ordinality.is_some());
        Ok(Compiled { plan: exec::Plan::ProjectSet { input, calls, ordinality, keep_empty }, columns })
    }

    fn aggregated(
        self,
        groups: &[(ColId, Expr)],
        dependent: &[usize],
        aggregates: &[(ColId, AggregateCall)],
        how: &mut Compiling<'_>,
    ) -> Taken<Compiled> {
        let ids = groups.iter().map(|(id, _)| *id).chain(aggregates.iter().map(|(id, _)| *id)).collect();
        let dependent = dependent.to_vec();
        if aggregates.iter().any(|(_, call)| heeds_order(call)) {
            let (Compiled { plan, .. }, groups, calls) = self.in_order_of(groups, aggregates, how)?;
            let plan = exec::Plan::Aggregate { input: Box::new(plan), groups, dependent, calls };
            return Ok(Compiled { plan, columns: ids });
        }
        let Compiled { plan, columns } = self;
        let groups = groups.iter().map(|(_, group)| placed(group, &columns)).collect::<Taken<Vec<_>>>()?;
        let calls = aggregates.iter().map(|(_, call)| aggregate(call, &columns)).collect::<Taken<Vec<_>>>()?;
        let plan = exec::Plan::Aggregate { input: Box::new(plan), groups, dependent, calls };
        Ok(Compiled { plan, columns: ids })
    }
}

/// A scan of columns in this order; `None` if the table may not be read as it is.
pub(super) fn scan_of(table: &Arc<TableDef>, columns: &[(ColId, ColumnId)]) -> Option<ScanSpec> {
    table.is_populated().then_some(())?;
    let columns = columns.iter().map(|(_, column)| *column).collect();
    Some(ScanSpec { table: table.clone(), columns, predicates: Vec::new(), with_identity: false })
}

/// An expression with positions for ids, unless it asks for something else, or is volatile.
pub(super) fn placed(expr: &Expr, columns: &[ColId]) -> Taken<Expr> {
    if expr.volatility() == Volatility::Volatile {
        return Err(OUT_OF_TURN);
    }
    let mut known = true;
    let placed = expr.clone().rewrite(&mut |node| match node {
        Expr::Hole { id, ty } => match columns.iter().position(|column| *column == id) {
            Some(index) => Expr::Column { index, ty },
            None => {
                known = false;
                Expr::Hole { id, ty }
            }
        },
        other => other,
    });
    if known { Ok(placed) } else { Err(OUT_OF_TURN) }
}

fn check_unordered(call: &AggregateCall) -> Taken<()> {
    let name = call.resolved.aggregate.name.as_str();
    if heeds_order(call) || call.resolved.is_indifferent_to_order() {
        return Ok(());
    }
    match FOLDING.contains(&name) && call.resolved.orders.is_empty() && call.order_by.is_empty() {
        true => Ok(()),
        false => Err(format!("{name}, which depends on the order of rows").into()),
    }
}

pub(super) fn aggregate(call: &AggregateCall, columns: &[ColId]) -> Taken<exec::AggregateCall> {
    check_unordered(call)?;
    let distinct = call.distinct && !IDEMPOTENT.contains(&call.resolved.aggregate.name.as_str());
    let heeds_order = heeds_order(call);
    if distinct && call.args.len() != 1 && !heeds_order {
        return Err("a DISTINCT aggregate of several values".into());
    }
    // Their order is that of the values.
    let is_float = |arg: &Expr| matches!(arg.ty().underlying(), DataType::Float4 | DataType::Float8);
    if distinct && call.resolved.aggregate.name != "count" && call.args.iter().any(is_float) {
        return Err("DISTINCT floats, whose sum depends on their order".into());
    }
    let args = call.args.iter().map(|arg| placed(arg, columns)).collect::<Taken<Vec<_>>>()?;
    let filter = call.filter.as_ref().map(|filter| placed(filter, columns)).transpose()?;
    Ok(exec::AggregateCall { resolved: call.resolved.clone(), args, filter, distinct, heeds_order })
}

pub(super) fn sort_key(key: &SortKey, columns: &[ColId]) -> Taken<exec::SortKey> {
    let SortKey { expr, descending, nulls_first } = key;
    Ok(exec::SortKey { expr: placed(expr, columns)?, descending: *descending, nulls_first: *nulls_first })
}

/// LIMIT's or OFFSET's number of rows; `None` is no limit.
fn count(expr: &Expr, place: row_count::CountPlace, ctx: &RunContext) -> Taken<Option<usize>> {
    const FAILS: Refusal = Cow::Borrowed("a LIMIT or OFFSET that fails, which the fallback tells");
    let value = expr.eval_scalar(&[], &ctx.eval).map_err(|_| FAILS)?;
    let rows = row_count::row_count(&value, place).map_err(|_| FAILS)?;
    rows.map(|rows| usize::try_from(rows).map_err(|_| FAILS)).transpose()
}
