//! From the bound plan to the optimizer's tree: subqueries and lateral joins become joins on the way
//! ([`super::subquery`]), what no tree stands for gives `None`.

use super::columns::{ColSet, free_columns, hole};
use super::conjuncts::{equality_of, split};
use super::facts::Statistics;
use super::limits;
use super::node::{JoinKind, Node, Op, SharedColumn};
use super::subquery::Asked;
use crate::pgcatalog::registry;
use crate::plan::{self, AggregateCall, ColId, CteId, Plan, Query, SetColumn, SetOp, can_fail};
use ahash::AHashSet;
use basalt_expr::EvalContext;
use basalt_expr::functions::Volatility;
use basalt_expr::functions::set_columns::SetCall;
use basalt_expr::resolve::{self, resolve_operator};
use basalt_expr::tree::Expr;
use basalt_expr::window::{Bound, Exclude, FrameSpec, Ranking, Units};
use basalt_types::{DataType, Datum};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

pub struct Converter<'q> {
    pub query: &'q Query,
    statistics: &'q Statistics,
    pub next_id: ColId,
    /// WITH queries that several references read, ready to run.
    shared: BTreeMap<CteId, Arc<Node>>,
    /// For constants, which depend on no execution.
    eval: EvalContext,
    /// Nodes above the one that is converted.
    depth: usize,
    /// Where the plans are that stand in a place of their own, once they are converted.
    converted: AHashSet<*const Plan>,
    /// The first thing that no tree stands for.
    refusal: Cell<Option<&'static str>>,
}

/// A deeper plan has no tree: passes descend by recursion.
const DEPTH_MAX: usize = 200;

impl<'q> Converter<'q> {
    /// `None` if a cursor has columns added, whose ids leave none after them.
    pub fn new(query: &'q Query, statistics: &'q Statistics) -> Option<Converter<'q>> {
        let next_id = Some(greatest_id(query).saturating_add(1)).filter(|id| *id < ColId::MAX / 2)?;
        Some(Converter {
            query,
            statistics,
            next_id,
            shared: BTreeMap::new(),
            eval: EvalContext::at(0),
            depth: 0,
            converted: AHashSet::new(),
            refusal: Cell::new(None),
        })
    }

    pub fn fresh(&mut self) -> ColId {
        self.next_id += 1;
        self.next_id - 1
    }

    /// There is no tree, because of this.
    pub fn refuse<T>(&self, why: &'static str) -> Option<T> {
        self.refusal.set(self.refusal.get().or(Some(why)));
        None
    }

    /// Why there was none.
    pub fn refusal(&self) -> Option<&'static str> {
        self.refusal.get()
    }

    /// The whole query, not yet optimized.
    pub fn query(&mut self) -> Option<Node> {
        // One that reads another has the greater number.
        for (id, cte) in &self.query.ctes {
            // What is computed beforehand is computed whole.
            if (cte.materialized || cte.references > 1) && can_fail(self.query, &cte.plan) {
                return self.refuse("a WITH query that is computed whole and may fail");
            }
            if cte.references > 1 {
                let node = self.plan(&cte.plan, true)?;
                // A WITH query inside of a subquery may depend on outer rows.
                if !free_columns(&node).is_empty() {
                    return self.refuse("a WITH query that depends on outer rows");
                }
                let outputs = cte.columns.iter().map(|(id, _)| *id).collect();
                let ready = super::finish(node, outputs, self.statistics, &mut self.next_id)?;
                self.shared.insert(*id, Arc::new(ready));
            }
        }
        self.plan(&self.query.plan, true)
    }

    /// `ordered`: whether the order of the rows shows. Otherwise sorts are left out.
    pub fn plan(&mut self, plan: &Plan, ordered: bool) -> Option<Node> {
        if self.depth == DEPTH_MAX {
            return self.refuse("more levels than are optimized");
        }
        self.depth += 1;
        let node = self.node(plan, ordered);
        self.depth -= 1;
        node
    }

    /// The plan of a subquery, or of a WITH query in the place of its reference. Only once: ids are defined once.
    pub fn part(&mut self, plan: &Plan) -> Option<Node> {
        self.converted.insert(plan).then(|| self.plan(plan, false))?
    }

    fn node(&mut self, plan: &Plan, ordered: bool) -> Option<Node> {
        match plan {
            Plan::Unit => Some(Node::unit()),
            Plan::Scan { table, columns, identity: None, .. } => {
                Some(Node::new(Op::Scan { table: table.clone(), columns: columns.clone(), filter: Vec::new() }))
            }
            Plan::Values { columns, rows } => {
                let row = |row: &Vec<Expr>| row.iter().map(|expr| self.constant(expr)).collect::<Option<Vec<_>>>();
                let rows = rows.iter().map(row).collect::<Option<Vec<_>>>()?;
                Some(Node::new(Op::Values { columns: columns.clone(), rows }))
            }
            Plan::Project { input, exprs } => {
                let mut asked = Asked::new(self.plan(input, ordered)?);
                let exprs = self.outputs(&mut asked, exprs)?;
                Some(asked.node.project(exprs))
            }
            Plan::Filter { input, condition } => {
                let input = self.plan(input, ordered)?;
                self.filter(input, condition)
            }
            Plan::Join { left, right, kind, condition, lateral } => {
                let left = self.plan(left, false)?;
                match lateral {
                    true => self.lateral(left, right, *kind, condition.as_ref()),
                    false => self.join(left, right, *kind, condition.as_ref()),
                }
            }
            Plan::Aggregate { input, groups, aggregates, sets: None } => self.aggregate(input, groups, aggregates),
            Plan::Aggregate { input, groups, aggregates, sets: Some(sets) } => {
                self.grouping_sets(input, groups, aggregates, sets)
            }
            // What is sorted has been computed, even of rows that a join above leaves out.
            Plan::Sort { input, .. } if !ordered => (!can_fail(self.query, input)).then(|| self.plan(input, false))?,
            Plan::Sort { input, keys } => {
                let node = self.plan(input, false)?;
                let keys = self.sort_keys(keys)?;
                Some(Node::new(Op::Sort { input: Box::new(node), keys }))
            }
            Plan::Limit { input, limit, offset, ties: false } => {
                let input = Box::new(self.plan(input, true)?);
                let (limit, offset) = (self.count(limit.as_ref())?, self.count(offset.as_ref())?);
                let mut node = Node::new(Op::Limit { input, limit, offset });
                limits::through_unions(&mut node);
                Some(node)
            }
            Plan::Limit { input, limit, offset, ties: true } => self.with_ties(input, limit.as_ref(), offset.as_ref()),
            Plan::Window { input, calls } => {
                let mut asked = Asked::new(self.plan(input, false)?);
                let calls = self.window_calls(&mut asked, calls)?;
                Some(Node::new(Op::Window { input: Box::new(asked.node), calls }))
            }
            Plan::ProjectSet { input, sets, ordinality, keep_empty } => {
                let input = self.plan(input, ordered)?;
                self.project_set(input, sets, *ordinality, *keep_empty)
            }
            Plan::Distinct { input, on: Some(on) } => self.first_of_each(input, on, ordered),
            Plan::Distinct { input, on: None } => {
                let node = self.plan(input, false)?;
                Some(distinct(node))
            }
            Plan::SetOp { op: SetOp::Union, all, columns, .. } => {
                let mut parts = Vec::new();
                for (part, ids) in united(plan, *all) {
                    parts.push((self.plan(part, ordered && *all)?, ids));
                }
                let outputs = columns.iter().map(|column| (column.id, column.ty.clone())).collect();
                let node = self.union_all(parts, outputs)?;
                Some(if *all { node } else { distinct(node) })
            }
            Plan::SetOp { op, all: false, left, right, columns } => {
                let (left, right) = (self.plan(left, false)?, self.plan(right, false)?);
                let kind = if *op == SetOp::Except { JoinKind::Anti } else { JoinKind::Semi };
                compared_rows(left, right, kind, columns)
            }
            Plan::SetOp { op, all: true, left, right, columns } => {
                let (left, right) = (self.plan(left, false)?, self.plan(right, false)?);
                let kind = if *op == SetOp::Except { JoinKind::Anti } else { JoinKind::Semi };
                self.counted_rows(left, right, kind, columns)
            }
            Plan::Shared { cte, columns } => self.reference(*cte, columns),
            Plan::Recursive { cte, base, step, distinct, columns } => {
                let base = self.ready(base, columns.iter().map(|column| column.left).collect())?;
                let step = self.ready(step, columns.iter().map(|column| column.right).collect())?;
                let (base, step) = (Box::new(base), Box::new(step));
                let (cte, distinct, columns) = (*cte, *distinct, columns.clone());
                Some(Node::new(Op::Recursive { cte, base, step, distinct, columns }))
            }
            Plan::Working { cte, columns } => Some(Node::new(Op::Working { cte: *cte, columns: columns.clone() })),
            other => self.refuse(kind_of(other)),
        }
    }

    /// A part of a recursion, with everything in its place.
    fn ready(&mut self, plan: &Plan, outputs: ColSet) -> Option<Node> {
        let node = self.plan(plan, true)?;
        if !free_columns(&node).is_empty() {
            return self.refuse("a WITH query that depends on outer rows");
        }
        super::finish(node, outputs, self.statistics, &mut self.next_id)
    }

    fn reference(&mut self, cte: CteId, columns: &[(ColId, basalt_types::DataType)]) -> Option<Node> {
        let known = self.query.ctes.get(&cte)?;
        let pairs = columns.iter().zip(&known.columns);
        if let Some(plan) = self.shared.get(&cte) {
            let columns =
                pairs.map(|((id, ty), (source, _))| SharedColumn { id: *id, source: *source, ty: ty.clone() });
            return Some(Node::new(Op::Shared { cte, plan: plan.clone(), columns: columns.collect() }));
        }
        let exprs = pairs.map(|((id, ty), (source, _))| (*id, hole(*source, ty.clone()))).collect();
        Some(self.part(&known.plan)?.project(exprs))
    }

    /// An expression whose subqueries have not been looked at yet.
    pub fn settled(&self, expr: &Expr) -> Option<Expr> {
        let returns_set = |node: &Expr| matches!(node, Expr::Call { function, .. } if function.returns_set);
        if expr.volatility() == Volatility::Volatile {
            return self.refuse("a volatile function");
        }
        if expr.any(&mut |node| returns_set(node)) {
            return self.refuse("a set-returning function");
        }
        Some(expr.clone().fold(&self.eval, false))
    }

    /// An expression without subqueries.
    fn plain(&self, expr: &Expr) -> Option<Expr> {
        let asks = |node: &Expr| matches!(node, Expr::Hole { id, .. } if self.query.subqueries.contains_key(id));
        self.settled(expr).filter(|expr| !expr.any(&mut |node| asks(node)))
    }

    /// What rows are sorted by, without subqueries.
    fn sort_keys(&self, keys: &[plan::SortKey]) -> Option<Vec<plan::SortKey>> {
        keys.iter().map(|key| Some(plan::SortKey { expr: self.plain(&key.expr)?, ..key.clone() })).collect()
    }

    /// One without columns.
    fn constant(&self, expr: &Expr) -> Option<Expr> {
        self.settled(expr).filter(|expr| !expr.any(&mut |node| matches!(node, Expr::Hole { .. })))
    }

    /// Of LIMIT or OFFSET. The inner `None`: there is none.
    fn count(&self, expr: Option<&Expr>) -> Option<Option<Expr>> {
        expr.map_or(Some(None), |expr| self.constant(expr).map(Some))
    }

    fn outputs(&mut self, asked: &mut Asked, exprs: &[(ColId, Expr)]) -> Option<Vec<(ColId, Expr)>> {
        exprs.iter().map(|(id, expr)| Some((*id, self.asked(asked, expr)?))).collect()
    }

    fn asked(&mut self, asked: &mut Asked, expr: &Expr) -> Option<Expr> {
        let expr = self.settled(expr)?;
        self.answer(asked, expr)
    }

    /// Conditions without subqueries come first: subqueries are asked for fewer rows.
    pub fn filter(&mut self, input: Node, condition: &Expr) -> Option<Node> {
        let asks = |node: &Expr| matches!(node, Expr::Hole { id, .. } if self.query.subqueries.contains_key(id));
        let conjuncts = split([self.settled(condition)?]);
        let (asking, plain): (Vec<Expr>, Vec<Expr>) =
            conjuncts.into_iter().partition(|conjunct| conjunct.any(&mut |node| asks(node)));
        let mut asked = Asked::new(input.filter(plain));
        let mut above = Vec::new();
        for conjunct in asking {
            above.extend(self.condition(&mut asked, conjunct)?);
        }
        Some(asked.node.filter(above))
    }

    fn join(&mut self, left: Node, right: &Plan, kind: plan::JoinKind, condition: Option<&Expr>) -> Option<Node> {
        let right = self.plan(right, false)?;
        if kind == plan::JoinKind::Inner {
            let node = left.join(right, JoinKind::Inner, Vec::new());
            return match condition {
                Some(condition) => self.filter(node, condition),
                None => Some(node),
            };
        }
        let condition = match condition {
            Some(condition) => split([self.plain(condition)?]),
            None => Vec::new(),
        };
        Some(match kind {
            plan::JoinKind::Right => right.join(left, JoinKind::Left, condition),
            plan::JoinKind::Full => left.join(right, JoinKind::Full, condition),
            _ => left.join(right, JoinKind::Left, condition),
        })
    }

    fn aggregate(
        &mut self,
        input: &Plan,
        groups: &[(ColId, Expr)],
        aggregates: &[(ColId, AggregateCall)],
    ) -> Option<Node> {
        let (input, groups, calls) = self.aggregated(input, groups, aggregates)?;
        Some(input.aggregate(groups, calls))
    }

    fn window_calls(
        &mut self,
        asked: &mut Asked,
        calls: &[(ColId, plan::WindowCall)],
    ) -> Option<Vec<(ColId, plan::WindowCall)>> {
        let mut calls = calls.to_vec();
        for expr in calls.iter_mut().flat_map(|(_, call)| call.exprs_mut()) {
            *expr = self.asked(asked, expr)?;
        }
        Some(calls)
    }

    /// A row for each value of set-returning calls.
    fn project_set(
        &mut self,
        input: Node,
        sets: &[(ColId, Expr)],
        ordinality: Option<ColId>,
        keep_empty: bool,
    ) -> Option<Node> {
        if sets.is_empty() {
            // A function that returns one row has the ordinality 1.
            let Some(id) = ordinality else { return Some(input) };
            let columns = input.columns().into_iter().map(|(id, ty)| (id, hole(id, ty)));
            let one = Expr::Const { value: Datum::I64(1), ty: DataType::Int8 };
            let exprs = columns.chain([(id, one)]).collect();
            return Some(input.project(exprs));
        }
        let mut asked = Asked::new(input);
        let mut calls = Vec::with_capacity(sets.len());
        for (id, call) in sets {
            let (Expr::Call { function, args, ty }, Some(_)) = (call, SetCall::of(call)) else {
                return self.refuse("generate_series");
            };
            if function.volatility == Volatility::Volatile {
                return self.refuse("a volatile function");
            }
            let args = args.iter().map(|arg| self.asked(&mut asked, arg)).collect::<Option<Vec<_>>>()?;
            calls.push((*id, Expr::Call { function, args, ty: ty.clone() }));
        }
        let input = Box::new(asked.node);
        Some(Node::new(Op::ProjectSet { input, sets: calls, ordinality, keep_empty }))
    }

    /// `DISTINCT ON`: of rows that are equal in some expressions the first in the input's order.
    fn first_of_each(&mut self, input: &Plan, on: &[Expr], ordered: bool) -> Option<Node> {
        let (below, keys) = match input {
            Plan::Sort { input, keys } => (&**input, keys.as_slice()),
            other => (other, [].as_slice()),
        };
        let node = self.plan(below, false)?;
        let order_by = self.sort_keys(keys)?;
        let partition_by = on.iter().map(|expr| self.plain(expr)).collect::<Option<Vec<_>>>()?;
        let id = self.fresh();
        let call = ranked(Ranking::RowNumber, partition_by, order_by.clone());
        let first = equality(&DataType::Int8, hole(id, DataType::Int8), bigint(1))?;
        let outputs = node.columns().into_iter().map(|(id, ty)| (id, hole(id, ty))).collect();
        let numbered = Node::new(Op::Window { input: Box::new(node), calls: vec![(id, call)] });
        let firsts = numbered.filter(vec![first]).project(outputs);
        Some(match ordered && !order_by.is_empty() {
            true => Node::new(Op::Sort { input: Box::new(firsts), keys: order_by }),
            false => firsts,
        })
    }

    /// INTERSECT ALL and EXCEPT ALL: of equal left rows as many stay as there are on the right, or as there are more than on
    /// the right.
    fn counted_rows(&mut self, left: Node, right: Node, kind: JoinKind, columns: &[SetColumn]) -> Option<Node> {
        let (number, count) = (self.fresh(), self.fresh());
        let of_left = columns.iter().map(|column| hole(column.left, column.ty.clone())).collect();
        let numbering = (number, ranked(Ranking::RowNumber, of_left, Vec::new()));
        let left = Node::new(Op::Window { input: Box::new(left), calls: vec![numbering] });
        let groups: Vec<(ColId, Expr)> =
            columns.iter().map(|column| (column.right, hole(column.right, column.ty.clone()))).collect();
        let right = right.aggregate(groups, vec![(count, self.count_of_rows()?)]);
        let among = at_most(hole(number, DataType::Int8), hole(count, DataType::Int8))?;
        let outputs = columns.iter().map(|column| (column.id, hole(column.left, column.ty.clone()))).collect();
        Some(left.join(right, kind, [same_rows(columns)?, vec![among]].concat()).project(outputs))
    }

    fn count_of_rows(&self) -> Option<AggregateCall> {
        let (resolved, args) = resolve::aggregate(registry(), "count", Vec::new(), &self.eval).ok()?;
        Some(AggregateCall { resolved, args, distinct: false, filter: None, order_by: Vec::new() })
    }

    /// LIMIT with all rows that are equal to the last one in the input's order.
    fn with_ties(&mut self, input: &Plan, limit: Option<&Expr>, offset: Option<&Expr>) -> Option<Node> {
        const WHY: &str = "WITH TIES of a number of rows that varies or is wrong";
        let Plan::Sort { input, keys } = input else { return self.refuse(WHY) };
        let node = self.plan(input, false)?;
        let keys = self.sort_keys(keys)?;
        let number = |expr: Option<&Expr>| match expr {
            None => Some(0),
            Some(expr) => match self.constant(expr)? {
                Expr::Const { value: Datum::I64(rows @ 0..), .. } => Some(rows),
                _ => None,
            },
        };
        let (Some(limit), Some(offset)) = (limit.and_then(|limit| number(Some(limit))), number(offset)) else {
            return self.refuse(WHY);
        };
        let outputs: Vec<(ColId, Expr)> = node.columns().into_iter().map(|(id, ty)| (id, hole(id, ty))).collect();
        let (rank, row) = (self.fresh(), self.fresh());
        let calls = vec![
            (rank, ranked(Ranking::Rank, Vec::new(), keys.clone())),
            (row, ranked(Ranking::RowNumber, Vec::new(), keys.clone())),
        ];
        let ranks = Node::new(Op::Window { input: Box::new(node), calls });
        // No row is equal to the last one of none.
        let last = if limit == 0 { 0 } else { offset.saturating_add(limit) };
        let mut wanted = vec![at_most(hole(rank, DataType::Int8), bigint(last))?];
        if offset > 0 {
            wanted.push(at_most(bigint(offset.saturating_add(1)), hole(row, DataType::Int8))?);
        }
        let chosen = ranks.filter(wanted).project(outputs);
        Some(Node::new(Op::Sort { input: Box::new(chosen), keys }))
    }

    /// The input of an aggregation, and its expressions without subqueries.
    #[allow(clippy::type_complexity)]
    pub fn aggregated(
        &mut self,
        input: &Plan,
        groups: &[(ColId, Expr)],
        aggregates: &[(ColId, AggregateCall)],
    ) -> Option<(Node, Vec<(ColId, Expr)>, Vec<(ColId, AggregateCall)>)> {
        let mut asked = Asked::new(self.plan(input, false)?);
        let groups = self.outputs(&mut asked, groups)?;
        let mut calls = aggregates.to_vec();
        for expr in calls.iter_mut().flat_map(|(_, call)| call.exprs_mut()) {
            *expr = self.asked(&mut asked, expr)?;
        }
        Some((asked.node, groups, calls))
    }

    /// A node that several others read: computed once.
    pub fn shared_node(&mut self, node: Node) -> Option<(CteId, Arc<Node>)> {
        let outputs = node.columns().into_iter().map(|(id, _)| id).collect();
        let ready = super::finish(node, outputs, self.statistics, &mut self.next_id)?;
        let last = self.query.ctes.keys().chain(self.shared.keys()).max();
        let id = last.map_or(0, |last| last + 1);
        let ready = Arc::new(ready);
        self.shared.insert(id, ready.clone());
        Some((id, ready))
    }
}

/// The frame of functions that have none.
const WHOLE: FrameSpec = FrameSpec {
    units: Units::Rows,
    start: Bound::UnboundedPreceding,
    end: Bound::UnboundedFollowing,
    exclude: Exclude::NoOthers,
};

fn equality(ty: &DataType, left: Expr, right: Expr) -> Option<Expr> {
    Some(Expr::Call { function: equality_of(ty)?, args: vec![left, right], ty: DataType::Bool })
}

/// What of a plan has no tree, in words of SQL.
fn kind_of(plan: &Plan) -> &'static str {
    match plan {
        Plan::VirtualScan { .. } => "a system table",
        Plan::Sample { .. } => "TABLESAMPLE",
        Plan::Scan { .. } | Plan::LockRows(_) => "rows that are locked or changed",
        Plan::Given { .. } | Plan::Rows { .. } => "rows that the statement has come by before",
        _ => "a step without a counterpart",
    }
}

/// The distinct left rows that have, or lack, an equal on the right: INTERSECT and EXCEPT take nulls for equal.
fn compared_rows(left: Node, right: Node, kind: JoinKind, columns: &[SetColumn]) -> Option<Node> {
    let outputs = columns.iter().map(|column| (column.id, hole(column.left, column.ty.clone()))).collect();
    Some(distinct(left.join(right, kind, same_rows(columns)?).project(outputs)))
}

/// Whether two rows are the same, nulls included.
fn same_rows(columns: &[SetColumn]) -> Option<Vec<Expr>> {
    let same = |column: &SetColumn| {
        let side = |id: ColId| Box::new(hole(id, column.ty.clone()));
        let equal = equality_of(&column.ty)?;
        Some(Expr::IsDistinct { left: side(column.left), right: side(column.right), equal, negated: true })
    };
    columns.iter().map(same).collect()
}

pub fn bigint(value: i64) -> Expr {
    Expr::Const { value: Datum::I64(value), ty: DataType::Int8 }
}

/// `a <= b`, of bigints.
pub fn at_most(a: Expr, b: Expr) -> Option<Expr> {
    let found = resolve_operator("<=", Some(&DataType::Int8), &DataType::Int8).ok()?;
    Some(Expr::Call { function: found.function, args: vec![a, b], ty: DataType::Bool })
}

pub fn ranked(ranking: Ranking, partition_by: Vec<Expr>, order_by: Vec<plan::SortKey>) -> plan::WindowCall {
    plan::WindowCall {
        function: plan::WindowFunction::Ranking(ranking),
        ty: DataType::Int8,
        partition_by,
        order_by,
        arrival: Vec::new(),
        frame: WHOLE,
        offsets: [None, None],
    }
}

fn distinct(node: Node) -> Node {
    let groups = node.columns().into_iter().map(|(id, ty)| (id, hole(id, ty))).collect();
    node.aggregate(groups, Vec::new())
}

/// The greatest id that a query uses, of a column or a subquery.
fn greatest_id(query: &Query) -> ColId {
    let mut greatest = query.subqueries.keys().copied().max().unwrap_or(0);
    let subqueries = query.subqueries.values().map(|subquery| &subquery.plan);
    for plan in subqueries.chain(query.ctes.values().map(|cte| &cte.plan)).chain([&query.plan]) {
        greatest = greatest.max(greatest_in(plan));
    }
    greatest
}

fn greatest_in(plan: &Plan) -> ColId {
    let own = plan.columns().into_iter().map(|(id, _)| id).max().unwrap_or(0);
    plan.inputs().into_iter().map(greatest_in).fold(own, ColId::max)
}

/// What a chain of unions puts together, in its order, each with its columns in the order of the whole. A union without
/// duplicates (`all` false) takes the rows of those below as they come.
fn united(plan: &Plan, all: bool) -> Vec<(&Plan, Vec<ColId>)> {
    let mut parts = Vec::new();
    let mut rest = plan;
    let mut ids: Option<Vec<ColId>> = None;
    while let Plan::SetOp { op: SetOp::Union, all: own, left, right, columns } = rest {
        let place = |id: &ColId| columns.iter().find(|column| column.id == *id);
        let of = |pick: fn(&SetColumn) -> ColId| match &ids {
            None => Some(columns.iter().map(pick).collect::<Vec<ColId>>()),
            Some(ids) => ids.iter().map(|id| place(id).map(pick)).collect(),
        };
        let (true, Some(of_left), Some(of_right)) = (*own || !all, of(|column| column.left), of(|column| column.right))
        else {
            break;
        };
        parts.push((&**right, of_right));
        (rest, ids) = (left, Some(of_left));
    }
    parts.push((rest, ids.unwrap_or_default()));
    parts.reverse();
    parts
}
