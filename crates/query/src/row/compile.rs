//! From a bound statement to a row plan, if it has one.

use super::access::Access;
use super::gather::{Gathered, Relation, Way, are_repeatable, needs};
use super::get::Get;
use super::nested::{Nested, Step, Top};
use super::shape::{Lens, Shape};
use super::totals::{Totals, extreme};
use super::{Body, RowPlan, is_enabled, replace};
use crate::bind::Bound;
use crate::bind::point::point_query;
use crate::plan::{AggregateCall, ColId, Plan, Query, SortKey};
use basalt_expr::EvalContext;
use basalt_expr::functions::Volatility;
use basalt_expr::operators::SortOrder;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, ObjectId, PhysType};
use std::collections::{BTreeMap, BTreeSet};

/// Tables that a plan joins at most.
const RELATIONS_MAX: usize = 8;

impl RowPlan {
    /// `eval` decides nothing that another execution of the same plan could see otherwise.
    pub fn of(bound: &Bound, eval: &EvalContext) -> Option<RowPlan> {
        let Bound::Query(query) = bound else { return None };
        match point_query(query, eval) {
            Some(point) if point.lock.is_some() => None,
            Some(point) => {
                let table = point.table.id;
                RowPlan::compiled(Body::Get(Get::of(point)?), vec![table], eval)
            }
            None => RowPlan::of_more(query, eval),
        }
    }

    /// For a query that is known to be no get of one row.
    pub fn of_more(query: &Query, eval: &EvalContext) -> Option<RowPlan> {
        if !is_enabled(eval) {
            return None;
        }
        let (body, tables) = nested(query)?;
        RowPlan::compiled(body, tables, eval)
    }

    fn compiled(body: Body, tables: Vec<ObjectId>, eval: &EvalContext) -> Option<RowPlan> {
        let mut plan = RowPlan::new(tables, body);
        plan.rewrite(&mut |expr| expr.fold_deciding(eval));
        let volatility = plan.exprs().into_iter().map(|expr| expr.volatility()).max();
        plan.timeless = volatility.is_none_or(|volatility| volatility == Volatility::Immutable);
        (volatility != Some(Volatility::Volatile)).then_some(plan)
    }
}

/// What stands above tables and joins.
struct Peeled<'p> {
    below: &'p Plan,
    outputs: Vec<Expr>,
    sort: Vec<SortKey>,
    totals: Option<Vec<(ColId, AggregateCall)>>,
    limit: Option<Expr>,
    offset: Option<Expr>,
}

impl Peeled<'_> {
    /// The columns that it is computed from.
    fn needs(&self) -> BTreeSet<ColId> {
        let calls = self.totals.iter().flatten().flat_map(|(_, call)| call.exprs());
        let given = self.outputs.iter().chain(self.sort.iter().map(|key| &key.expr));
        calls.chain(given).flat_map(needs).collect()
    }

    /// The same over other columns: what is summed, or else what is given and what it is sorted by.
    fn rewrite(&mut self, change: &mut impl FnMut(Expr) -> Expr) {
        match &mut self.totals {
            Some(calls) => {
                let exprs = calls.iter_mut().flat_map(|(_, call)| call.exprs_mut());
                exprs.for_each(|expr| replace(expr, change));
            }
            None => {
                let keys = self.sort.iter_mut().map(|key| &mut key.expr);
                self.outputs.iter_mut().chain(keys).for_each(|expr| replace(expr, change));
            }
        }
    }
}

fn peeled(query: &Query) -> Option<Peeled<'_>> {
    let outputs = query.columns.iter().map(|column| Expr::Hole { id: column.id, ty: column.ty.clone() }).collect();
    let mut out = Peeled { below: &query.plan, outputs, sort: Vec::new(), totals: None, limit: None, offset: None };
    if let Plan::Limit { input, limit, offset, ties: false } = out.below {
        (out.below, out.limit, out.offset) = (input, limit.clone(), offset.clone());
    }
    loop {
        out.below = match out.below {
            Plan::Sort { input, keys } if out.sort.is_empty() && out.totals.is_none() => {
                out.sort.clone_from(keys);
                input
            }
            // Below sums the order of rows is nothing, but a key may fail.
            Plan::Sort { input, keys } if out.totals.is_some() => {
                if !keys.iter().all(SortKey::is_column) {
                    return None;
                }
                input
            }
            Plan::Project { input, exprs } if are_repeatable(exprs) => {
                let defined: BTreeMap<ColId, &Expr> = exprs.iter().map(|(id, expr)| (*id, expr)).collect();
                out.rewrite(&mut |expr| {
                    expr.rewrite(&mut |node| match node {
                        Expr::Hole { id, ty } => defined.get(&id).map_or(Expr::Hole { id, ty }, |expr| (*expr).clone()),
                        other => other,
                    })
                });
                input
            }
            Plan::Aggregate { input, groups, aggregates, sets: None } if groups.is_empty() && out.totals.is_none() => {
                // One row needs no order, but a key may fail.
                if !out.sort.drain(..).all(|key| key.is_column()) {
                    return None;
                }
                out.totals = Some(aggregates.clone());
                input
            }
            Plan::Filter { .. } | Plan::Join { .. } | Plan::Scan { .. } | Plan::Unit => return Some(out),
            _ => return None,
        };
    }
}

fn nested(query: &Query) -> Option<(Body, Vec<ObjectId>)> {
    if !query.subqueries.is_empty() || !query.ctes.is_empty() || !query.row_locks.is_empty() {
        return None;
    }
    if query.columns.iter().any(|column| column.ty.phys().is_none()) {
        return None;
    }
    let mut top = peeled(query)?;
    let gathered = Gathered::of(top.below)?;
    if gathered.relations.len() > RELATIONS_MAX {
        return None;
    }
    top.rewrite(&mut |expr| gathered.over_tables(expr));
    let is_counted = |count: &Option<Expr>| count.as_ref().is_none_or(|count| needs(count).is_empty());
    if !is_counted(&top.limit) || !is_counted(&top.offset) {
        return None;
    }
    let tables: Vec<ObjectId> = gathered.relations.iter().map(|relation| relation.table.id).collect();
    let body = Compiler::new(gathered, top.needs()).body(top)?;
    Some((body, tables))
}

struct Compiler {
    relations: Vec<Relation>,
    /// What is needed of them above all conditions.
    needed: BTreeSet<ColId>,
    /// Not placed yet.
    conditions: Vec<Expr>,
    known: BTreeSet<ColId>,
    /// Of columns, in the frame.
    registers: BTreeMap<ColId, usize>,
    width: usize,
    steps: Vec<Step>,
    sorted: bool,
}

impl Compiler {
    fn new(gathered: Gathered, needed: BTreeSet<ColId>) -> Compiler {
        Compiler {
            relations: gathered.relations,
            needed,
            conditions: gathered.conditions,
            known: BTreeSet::new(),
            registers: BTreeMap::new(),
            width: 0,
            steps: Vec::new(),
            sorted: false,
        }
    }

    fn body(mut self, top: Peeled<'_>) -> Option<Body> {
        let single = self.relations.len() == 1;
        let extreme = top.totals.as_deref().filter(|_| single).and_then(extreme);
        let orders: Vec<SortKey> = match &extreme {
            Some(key) => vec![key.clone()],
            None => top.sort.clone(),
        };
        let ordered_for = |compiler: &Compiler| if compiler.steps.is_empty() { orders.as_slice() } else { &[] };
        // The least or greatest of all is at an end of its order. Of some, it is wherever they are.
        let ends_early = top.limit.is_some() && top.totals.is_none() || extreme.is_some() && self.conditions.is_empty();
        let mut direct = None;
        while !self.relations.is_empty() {
            let keys = ordered_for(&self).to_vec();
            let (at, way, in_order) = self.next_way(&keys, ends_early)?;
            if self.steps.is_empty() {
                self.sorted = in_order;
            }
            let relation = self.relations.remove(at);
            if single && relation.identity.is_none() && top.totals.is_none() && (top.sort.is_empty() || self.sorted) {
                direct = Some(self.shape(&relation, &way, &top.outputs)?);
            }
            self.place(relation, way)?;
        }
        // A condition of no table at all.
        if !self.conditions.is_empty() {
            return None;
        }
        let resolve = |expr: Expr| over_registers(expr, &self.registers);
        let sort = if self.sorted { Vec::new() } else { top.sort };
        let top_node = match (direct, top.totals) {
            (Some(shape), _) => Top::Direct(shape),
            (None, Some(calls)) => {
                let ids: BTreeMap<ColId, usize> = calls.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
                let outputs = top.outputs.into_iter().map(|expr| over_registers(expr, &ids));
                let mut totals = Totals::of(calls, outputs.collect::<Option<_>>()?, &resolve)?;
                totals.first_is_all = extreme.is_some() && self.sorted;
                Top::Totals(totals)
            }
            (None, None) => Top::Rows {
                types: top.outputs.iter().map(Expr::ty).collect(),
                outputs: top.outputs.into_iter().map(resolve).collect::<Option<_>>()?,
                orders: sort
                    .iter()
                    .map(|key| SortOrder { descending: key.descending, nulls_first: key.nulls_first })
                    .collect(),
                key_types: sort.iter().map(|key| key.expr.ty()).collect(),
                keys: sort.into_iter().map(|key| resolve(key.expr)).collect::<Option<_>>()?,
            },
        };
        let mut nested = Nested {
            steps: self.steps,
            top: top_node,
            registers: self.width,
            limit: top.limit,
            offset: top.offset,
            checks_constants: false,
        };
        nested.cover();
        nested.checks_constants = nested.exprs().into_iter().any(Expr::has_constants);
        // Where no row is to be found, whoever waits for others' rows is not to wait for a long computation.
        if nested.steps.is_empty() && !nested.exprs().into_iter().all(is_brief) {
            return None;
        }
        Some(Body::Nested(Box::new(nested)))
    }

    /// The table that comes next, and whether its rows are in the order of `keys`.
    fn next_way(&self, keys: &[SortKey], limited: bool) -> Option<(usize, Way, bool)> {
        let mut best: Option<(usize, Way, bool)> = None;
        for (at, relation) in self.relations.iter().enumerate() {
            let conditions = relation.optional.as_ref().unwrap_or(&self.conditions);
            // A left join's other side comes once all that it needs is there.
            let ready = match &relation.optional {
                None => true,
                Some(own) => {
                    own.iter().all(|condition| {
                        needs(condition).iter().all(|id| self.known.contains(id) || relation.defines(*id))
                    }) && (!self.steps.is_empty())
                }
            };
            if !ready {
                continue;
            }
            for mut way in relation.ways(conditions, &self.known) {
                let alone = self.relations.len() == 1 && self.steps.is_empty();
                let in_order = !keys.is_empty() && way.order_as(keys, relation, alone);
                let first_ones = in_order && limited && alone;
                if !way.is_bounded() && !first_ones {
                    continue;
                }
                let better = best.as_ref().is_none_or(|(at, known, ordered)| {
                    let of_best = &self.relations[*at];
                    // What comes in order need not be sorted; but a whole key finds one row.
                    let weight = |relation: &Relation, way: &Way, ordered: bool| {
                        (!way.is_whole() && limited && !ordered, way.rank, !relation.is_covered(way))
                    };
                    weight(relation, &way, in_order) < weight(of_best, known, *ordered)
                });
                if better {
                    best = Some((at, way, in_order));
                }
            }
        }
        best
    }

    /// A single table's rows, straight to the client.
    fn shape(&self, relation: &Relation, way: &Way, outputs: &[Expr]) -> Option<Shape> {
        let places: BTreeMap<ColId, usize> =
            relation.columns.iter().map(|(id, column)| (*id, column.position())).collect();
        let rest = self.conditions.iter().enumerate().filter(|(at, _)| !way.settled.contains(at));
        let rest = rest.map(|(_, condition)| over_registers(condition.clone(), &places)).collect::<Option<Vec<_>>>()?;
        let filter = (!rest.is_empty()).then(|| Expr::and(rest));
        let outputs = outputs.iter().map(|expr| over_registers(expr.clone(), &places)).collect::<Option<_>>()?;
        Shape::new(relation.table.clone(), filter, outputs)
    }

    /// Makes the table the next step.
    fn place(&mut self, relation: Relation, way: Way) -> Option<()> {
        let mut access: Access = way.access;
        for expr in access.exprs_mut() {
            let taken = std::mem::replace(expr, Expr::bool(false));
            *expr = over_registers(taken, &self.registers)?;
        }
        let optional = relation.optional.is_some();
        let own = match relation.optional {
            Some(own) => unsettled(own, &way.settled),
            None => {
                self.conditions = unsettled(std::mem::take(&mut self.conditions), &way.settled);
                Vec::new()
            }
        };
        let base = self.width;
        let needed = self.needed_of(&relation.columns, &own);
        let mut columns: Vec<ColumnId> = needed.iter().map(|(_, column)| *column).collect();
        columns.sort_unstable();
        columns.dedup();
        for (id, column) in &needed {
            self.registers.insert(*id, base + columns.binary_search(column).ok()?);
        }
        self.known.extend(relation.columns.iter().map(|(id, _)| *id));
        self.width += columns.len();
        for id in relation.identity.iter().flatten() {
            self.registers.insert(*id, self.width);
            self.known.insert(*id);
            self.width += 1;
        }
        let lens = Lens::new(relation.table.clone(), columns)?;
        let (ready, later): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut self.conditions)
            .into_iter()
            .partition(|condition| needs(condition).is_subset(&self.known));
        self.conditions = later;
        let joined = |conditions: Vec<Expr>| {
            let resolved = conditions.into_iter().map(|condition| over_registers(condition, &self.registers));
            let resolved = resolved.collect::<Option<Vec<_>>>()?;
            Some((!resolved.is_empty()).then(|| Expr::and(resolved)))
        };
        let (matches, passes) = (joined(own)?, joined(ready)?);
        let mut step = Step::new(access, lens, base, optional, matches, passes)?;
        step.identified = relation.identity.is_some();
        self.steps.push(step);
        Some(())
    }
}

impl Compiler {
    /// Of a table's columns those that somebody needs once its rows are found: what is given, its `own` conditions, all
    /// that are not settled yet, and those of tables to come.
    fn needed_of(&self, columns: &[(ColId, ColumnId)], own: &[Expr]) -> Vec<(ColId, ColumnId)> {
        let to_come = self.relations.iter().flat_map(|relation| relation.optional.iter().flatten());
        let conditions = self.conditions.iter().chain(own).chain(to_come);
        let of_conditions: BTreeSet<ColId> = conditions.flat_map(needs).collect();
        let is_needed = |id: &ColId| self.needed.contains(id) || of_conditions.contains(id);
        columns.iter().filter(|(id, _)| is_needed(id)).copied().collect()
    }
}

/// Whether an expression takes no time worth speaking of: what it computes with has a fixed size.
fn is_brief(expr: &Expr) -> bool {
    let is_fixed = |expr: &Expr| expr.ty().phys().is_some_and(|phys| phys != PhysType::Bytes);
    !expr.any(&mut |node| match node {
        Expr::Column { .. } | Expr::Param { .. } | Expr::Const { .. } => false,
        Expr::Call { args, .. } if args.is_empty() => false,
        node => !is_fixed(node),
    })
}

fn unsettled(conditions: Vec<Expr>, settled: &[usize]) -> Vec<Expr> {
    conditions.into_iter().enumerate().filter(|(at, _)| !settled.contains(at)).map(|(_, condition)| condition).collect()
}

/// Column ids as places. `None`: one has no place.
fn over_registers(expr: Expr, registers: &BTreeMap<ColId, usize>) -> Option<Expr> {
    let mut complete = true;
    let resolved = expr.rewrite(&mut |node| match node {
        Expr::Hole { id, ty } => match registers.get(&id) {
            Some(index) => Expr::Column { index: *index, ty },
            None => {
                complete = false;
                Expr::Hole { id, ty }
            }
        },
        other => other,
    });
    complete.then_some(resolved)
}
