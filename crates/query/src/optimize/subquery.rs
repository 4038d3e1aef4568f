//! Subqueries and lateral sides as joins.
//!
//! A condition that is a subquery becomes a semi or an anti join; one that stands among others (under OR, in a select
//! list) a mark join, whose mark takes its place; a scalar one a column of a join. What a subquery takes from outer
//! rows leaves it first ([`super::pull`]).
//!
//! An aggregation without groups gives a row even where nothing is aggregated, its count then being 0 (the "count bug"
//! of Kim's transformation): it is grouped by what it is correlated by, joined with a left join, and what is computed
//! from it is computed above that join, with 0 for a missing count.

use super::columns::{ColSet, Definitions, columns_of, hole, output, substitute};
use super::conjuncts::{comparison_of, equality, equality_of, key_of, split};
use super::convert::Converter;
use super::keys::{is_never_null_expr, is_unique};
use super::limits;
use super::node::{JoinKind, Key, Node, Op};
use super::pull::decorrelated;
use crate::plan::{self, AggregateCall, ColId, Plan, Query, Subquery, SubqueryKind, never_fails};
use ahash::AHashMap;
use basalt_expr::tree::{Children, Expr, Truth};
use basalt_types::{CompareOp, DataType, Datum};

/// A node whose rows ask subqueries, and the joins above it that answer.
pub struct Asked {
    pub node: Node,
    /// Answers by the holes that they fill.
    known: AHashMap<ColId, Expr>,
}

impl Asked {
    pub fn new(node: Node) -> Asked {
        Asked { node, known: AHashMap::new() }
    }

    /// Puts the rows together with those of another node.
    fn join(&mut self, right: Node, kind: JoinKind, condition: Vec<Expr>) {
        let left = std::mem::replace(&mut self.node, Node::unit());
        self.node = left.join(right, kind, condition);
    }
}

/// Whether every row asks a subquery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    Always,
    Perhaps,
}

/// The subqueries of an expression, those first that every row asks: of CASE and COALESCE that is what comes first.
fn list_asked(query: &Query, expr: &Expr, asks: Asks, found: &mut Vec<(ColId, Asks)>) {
    let (always, perhaps): (Children<'_>, Children<'_>) = match expr {
        Expr::Hole { id, .. } if query.subqueries.contains_key(id) => return found.push((*id, asks)),
        Expr::Case { branches, otherwise, .. } => {
            let mut parts = branches.iter().flat_map(|(condition, value)| [condition, value]);
            (parts.next().into_iter().collect(), parts.chain(otherwise.as_deref()).collect())
        }
        Expr::Coalesce { args, .. } => (args.iter().take(1).collect(), args.iter().skip(1).collect()),
        other => (other.children(), Children::new()),
    };
    always.into_iter().for_each(|part| list_asked(query, part, asks, found));
    perhaps.into_iter().for_each(|part| list_asked(query, part, Asks::Perhaps, found));
    found.sort_by_key(|(_, asks)| *asks == Asks::Perhaps);
}

/// An aggregation without groups, and what is computed from it.
struct OneRow {
    input: Node,
    aggregates: Vec<(ColId, AggregateCall)>,
    /// Conditions on the row.
    having: Vec<Expr>,
    /// The outputs, over the aggregates.
    outputs: Vec<Expr>,
}

impl Converter<'_> {
    /// A conjunct of a filter: what is left of it once its subqueries are joins.
    pub fn condition(&mut self, asked: &mut Asked, conjunct: Expr) -> Option<Option<Expr>> {
        let (negated, inner) = match &conjunct {
            Expr::Not(inner) => (true, &**inner),
            other => (false, other),
        };
        let query = self.query;
        let found = match inner {
            Expr::Hole { id, .. } => query.subqueries.get(id),
            _ => None,
        };
        match found {
            Some(Subquery { kind: SubqueryKind::Exists, plan }) => self.exists(asked, plan, negated),
            Some(Subquery { kind: SubqueryKind::Any { columns, condition }, plan }) if !plan.is_one_row() => {
                self.quantified(asked, plan, columns, condition, negated).map(|()| None)
            }
            Some(Subquery { kind: SubqueryKind::All { columns, condition }, plan }) if !plan.is_one_row() => {
                let opposite = opposite(&self.settled(condition)?);
                self.quantified(asked, plan, columns, &opposite, !negated).map(|()| None)
            }
            _ => {
                let marked = self.positive(asked, conjunct)?;
                self.answer(asked, marked).map(Some)
            }
        }
    }

    /// Marks for the comparisons under AND and OR of a condition that nothing but true lets through: nobody has to tell
    /// false from null there. Others are left as they are.
    fn positive(&mut self, asked: &mut Asked, expr: Expr) -> Option<Expr> {
        let (negated, inner) = match expr {
            Expr::And(args) => return Some(Expr::And(self.all_positive(asked, args)?)),
            Expr::Or(args) => return Some(Expr::Or(self.all_positive(asked, args)?)),
            Expr::Not(inner) => (true, *inner),
            other => (false, other),
        };
        let given_back = |inner: Expr| if negated { Expr::Not(Box::new(inner)) } else { inner };
        let query = self.query;
        let found = match &inner {
            Expr::Hole { id, .. } => query.subqueries.get(id).filter(|subquery| !subquery.plan.is_one_row()),
            _ => None,
        };
        let (plan, columns, condition, of_all) = match found {
            Some(Subquery { kind: SubqueryKind::Any { columns, condition }, plan }) => {
                (plan, columns, self.settled(condition)?, negated)
            }
            Some(Subquery { kind: SubqueryKind::All { columns, condition }, plan }) => {
                (plan, columns, opposite(&self.settled(condition)?), !negated)
            }
            _ => return Some(given_back(inner)),
        };
        // A key that heeds nulls is better than none.
        if of_all && equality(&condition).is_some() {
            return Some(given_back(inner));
        }
        let (right, correlation, compared) = self.compared(asked, plan, columns, &condition)?;
        let compared = if of_all { not_false(compared) } else { compared };
        let id = self.fresh();
        let condition = split(correlation.into_iter().chain([compared]));
        asked.join(right, JoinKind::Mark { id, null_aware: false }, condition);
        let mark = hole(id, DataType::Bool);
        Some(if of_all { Expr::Not(Box::new(mark)) } else { mark })
    }

    fn all_positive(&mut self, asked: &mut Asked, args: Vec<Expr>) -> Option<Vec<Expr>> {
        args.into_iter().map(|arg| self.positive(asked, arg)).collect()
    }

    /// The expression with answers in the place of its subqueries, those included for which some rows do not ask.
    pub fn answer(&mut self, asked: &mut Asked, expr: Expr) -> Option<Expr> {
        let query = self.query;
        let mut open = Vec::new();
        list_asked(query, &expr, Asks::Always, &mut open);
        for (id, asks) in open {
            if asked.known.contains_key(&id) {
                continue;
            }
            let subquery = query.subqueries.get(&id)?;
            if asks == Asks::Perhaps && !never_fails(query, subquery) {
                return self.refuse("a subquery that may fail, inside of CASE or COALESCE");
            }
            let answer = self.value(asked, subquery, asks)?;
            asked.known.insert(id, answer);
        }
        Some(substitute(expr, &asked.known))
    }

    fn value(&mut self, asked: &mut Asked, subquery: &Subquery, asks: Asks) -> Option<Expr> {
        let plan = &subquery.plan;
        match &subquery.kind {
            SubqueryKind::Scalar { column, ty } => self.scalar(asked, plan, *column, ty, asks),
            SubqueryKind::Exists => {
                let right = self.part(plan)?;
                if always_has_a_row(&right) {
                    return Some(Expr::bool(true));
                }
                let right = without_limit(right);
                let (right, condition) = decorrelated(self, &asked.node, right, true)?;
                let id = self.fresh();
                asked.join(right, JoinKind::Mark { id, null_aware: false }, condition);
                Some(hole(id, DataType::Bool))
            }
            SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } if plan.is_one_row() => {
                self.compared_once(asked, plan, condition)
            }
            SubqueryKind::Any { columns, condition } => self.marked(asked, plan, columns, condition),
            SubqueryKind::All { columns, condition } => {
                let opposite = opposite(&self.settled(condition)?);
                let mark = self.marked(asked, plan, columns, &opposite)?;
                Some(Expr::Not(Box::new(mark)))
            }
        }
    }

    /// What is left to be asked.
    fn exists(&mut self, asked: &mut Asked, plan: &Plan, negated: bool) -> Option<Option<Expr>> {
        let right = self.part(plan)?;
        if always_has_a_row(&right) {
            return Some(negated.then(|| Expr::bool(false)));
        }
        let right = without_limit(right);
        let (right, condition) = decorrelated(self, &asked.node, right, true)?;
        asked.join(right, if negated { JoinKind::Anti } else { JoinKind::Semi }, condition);
        Some(None)
    }

    /// `op ANY` as a conjunct: rows for which the comparison is true of some row; negated, rows for which it is false
    /// of all.
    fn quantified(
        &mut self,
        asked: &mut Asked,
        plan: &Plan,
        columns: &[ColId],
        condition: &Expr,
        negated: bool,
    ) -> Option<()> {
        let (right, correlation, compared) = self.compared(asked, plan, columns, condition)?;
        if !negated {
            asked.join(right, JoinKind::Semi, split(correlation.into_iter().chain([compared])));
            return Some(());
        }
        match comparison_of(&compared, &output(&asked.node), &output(&right)) {
            Some(key) if !is_nullable(&asked.node, &right, &key) => {
                asked.join(right, JoinKind::Anti, split(correlation.into_iter().chain([compared])));
            }
            Some(key) if !key.null_safe && correlation.is_empty() => {
                asked.join(right, JoinKind::NullAwareAnti, Vec::new());
                set_key(&mut asked.node, key);
            }
            // Each row has values of its own to heed the nulls of.
            _ => {
                let condition = split(correlation.into_iter().chain([not_false(compared)]));
                asked.join(right, JoinKind::Anti, condition);
            }
        }
        Some(())
    }

    /// `op ANY` as a value, of which null is one.
    fn marked(&mut self, asked: &mut Asked, plan: &Plan, columns: &[ColId], condition: &Expr) -> Option<Expr> {
        let (right, correlation, compared) = self.compared(asked, plan, columns, condition)?;
        let key = comparison_of(&compared, &output(&asked.node), &output(&right))?;
        let id = self.fresh();
        if is_nullable(&asked.node, &right, &key) {
            if key.null_safe {
                return None;
            }
            asked.join(right, JoinKind::Mark { id, null_aware: true }, correlation);
            set_key(&mut asked.node, key);
        } else {
            let condition = split(correlation.into_iter().chain([compared]));
            asked.join(right, JoinKind::Mark { id, null_aware: false }, condition);
        }
        Some(hole(id, DataType::Bool))
    }

    /// The rows that a value is compared with, what makes them those of an outer row, and the comparison.
    fn compared(
        &mut self,
        asked: &mut Asked,
        plan: &Plan,
        columns: &[ColId],
        condition: &Expr,
    ) -> Option<(Node, Vec<Expr>, Expr)> {
        // The left operand may ask subqueries of its own.
        let condition = self.settled(condition)?;
        let condition = self.answer(asked, condition)?;
        let right = self.part(plan)?;
        let (mut right, correlation) = decorrelated(self, &asked.node, right, true)?;
        keep_columns(&mut right, columns)?;
        Some((right, correlation, condition))
    }

    /// `op ANY` and `op ALL` over a single row.
    fn compared_once(&mut self, asked: &mut Asked, plan: &Plan, condition: &Expr) -> Option<Expr> {
        let condition = self.settled(condition)?;
        let condition = self.answer(asked, condition)?;
        let right = self.part(plan)?;
        let columns = right.columns();
        let row = one_row(right, columns.iter().map(|(id, ty)| hole(*id, ty.clone())).collect()).ok()?;
        let values = self.only_row(asked, row)?;
        let definitions: Definitions = columns.into_iter().map(|(id, _)| id).zip(values).collect();
        Some(substitute(condition, &definitions))
    }

    /// A column of at most one row, null if there is none.
    fn scalar(&mut self, asked: &mut Asked, plan: &Plan, column: ColId, ty: &DataType, asks: Asks) -> Option<Expr> {
        let right = self.part(plan)?;
        match one_row(right, vec![hole(column, ty.clone())]) {
            Ok(row) => self.only_row(asked, row).map(|mut outputs| outputs.remove(0)),
            Err(right) => {
                let (right, condition) = decorrelated(self, &asked.node, *right, false)?;
                let kind = match has_one_partner(&asked.node, &right, &condition) {
                    true => JoinKind::Left,
                    false if asks == Asks::Always => JoinKind::Single,
                    false => return self.refuse("a subquery that may give several rows, inside of CASE or COALESCE"),
                };
                asked.join(right, kind, condition);
                Some(hole(column, ty.clone()))
            }
        }
    }

    /// Joins an aggregation without groups; what its outputs are then.
    fn only_row(&mut self, asked: &mut Asked, row: OneRow) -> Option<Vec<Expr>> {
        let OneRow { input, aggregates, having, outputs } = row;
        let outputs = match having.is_empty() {
            true => outputs,
            false => outputs.into_iter().map(|value| where_true(having.clone(), value)).collect(),
        };
        let grouped = input.clone().aggregate(Vec::new(), aggregates.clone());
        if super::columns::free_columns(&grouped).is_empty() {
            asked.join(grouped, JoinKind::Inner, Vec::new());
            return Some(outputs);
        }
        let mut counts = Definitions::new();
        for (id, call) in &aggregates {
            counts.extend(without_rows(call)?.map(|zero| {
                let value = hole(*id, call.resolved.ty.clone());
                (*id, Expr::Coalesce { args: vec![value, zero], ty: call.resolved.ty.clone() })
            }));
        }
        // As one that has groups already: what is pulled through it makes groups.
        let (grouped, condition) = super::pull::grouped(self, &asked.node, input, Vec::new(), aggregates)?;
        asked.join(grouped, JoinKind::Left, condition);
        Some(outputs.into_iter().map(|value| substitute(value, &counts)).collect())
    }

    /// A join whose right side refers to the left one's columns.
    pub fn lateral(
        &mut self,
        left: Node,
        right: &Plan,
        kind: plan::JoinKind,
        condition: Option<&Expr>,
    ) -> Option<Node> {
        let always = condition.is_none_or(|condition| *condition == Expr::bool(true));
        let mut columns: Vec<(ColId, Expr)> = as_holes(&left);
        let right = self.plan(right, false)?;
        let outputs = right.columns();
        let values = outputs.iter().map(|(id, ty)| hole(*id, ty.clone())).collect();
        let inner = kind == plan::JoinKind::Inner;
        let right = match one_row(right, values) {
            Ok(row) if row.having.is_empty() && (inner || always) => {
                let mut asked = Asked::new(left);
                let values = self.only_row(&mut asked, row)?;
                columns.extend(outputs.into_iter().map(|(id, _)| id).zip(values));
                let node = asked.node.project(columns);
                return match condition {
                    Some(condition) => self.filter(node, condition),
                    None => Some(node),
                };
            }
            Ok(_) => return None,
            Err(right) => *right,
        };
        let (right, mut pulled) = decorrelated(self, &left, right, false)?;
        match kind {
            plan::JoinKind::Inner => {
                let node = left.join(right, JoinKind::Inner, pulled);
                match condition {
                    Some(condition) => self.filter(node, condition),
                    None => Some(node),
                }
            }
            plan::JoinKind::Left => {
                let condition = match condition {
                    Some(condition) => self.settled(condition)?,
                    None => Expr::bool(true),
                };
                let asks =
                    |node: &Expr| matches!(node, Expr::Hole { id, .. } if self.query.subqueries.contains_key(id));
                if condition.any(&mut |node| asks(node)) {
                    return None;
                }
                pulled.push(condition);
                Some(left.join(right, JoinKind::Left, split(pulled)))
            }
            _ => None,
        }
    }
}

fn as_holes(node: &Node) -> Vec<(ColId, Expr)> {
    node.columns().into_iter().map(|(id, ty)| (id, hole(id, ty))).collect()
}

/// `NOT condition`: a comparison that is decided by an equality stays one.
fn opposite(condition: &Expr) -> Expr {
    if let Expr::Call { function, args, ty } = condition
        && function.comparison() == Some(CompareOp::NotEq)
        && let [left, right] = args.as_slice()
        && left.ty() == right.ty()
        && let Some(equal) = equality_of(&left.ty())
    {
        return Expr::Call { function: equal, args: args.clone(), ty: ty.clone() };
    }
    Expr::Not(Box::new(condition.clone()))
}

fn not_false(condition: Expr) -> Expr {
    Expr::BoolTest { expr: Box::new(condition), truth: Truth::False, negated: true }
}

fn set_key(node: &mut Node, key: Key) {
    if let Op::Join { keys, .. } = &mut node.op {
        keys.push(key);
    }
}

fn is_nullable(left: &Node, right: &Node, key: &Key) -> bool {
    !is_never_null_expr(left, &key.left) || !is_never_null_expr(right, &key.right)
}

/// What pulling took away of a subquery's columns.
fn keep_columns(right: &mut Node, columns: &[ColId]) -> Option<()> {
    let given = output(right);
    columns.iter().all(|id| given.contains(id)).then_some(())
}

/// Whether a left row finds one partner at most, by equalities with columns that tell the right rows apart.
fn has_one_partner(left: &Node, right: &Node, condition: &[Expr]) -> bool {
    let (of_left, of_right) = (output(left), output(right));
    let keys = condition.iter().filter_map(|conjunct| key_of(conjunct, &of_left, &of_right));
    let by: ColSet = keys.filter(|key| !key.null_safe).flat_map(|key| columns_of(&key.right)).collect();
    is_unique(right, &by)
}

/// An aggregation without groups has a row always.
fn always_has_a_row(node: &Node) -> bool {
    match &node.op {
        Op::Aggregate { groups, .. } => groups.is_empty(),
        Op::Project { input, .. } => always_has_a_row(input),
        _ => false,
    }
}

/// Whether there is a row does not depend on how many are wanted, as long as the first one is.
fn without_limit(node: Node) -> Node {
    match node.op {
        Op::Limit { input, limit, offset }
            if matches!(limits::wanted(limit.as_ref(), offset.as_ref()), Some((0, 1..))) =>
        {
            *input
        }
        op => Node { op, ..node },
    }
}

/// Takes apart what is computed from an aggregation without groups; gives the node back if it is something else.
fn one_row(node: Node, outputs: Vec<Expr>) -> Result<OneRow, Box<Node>> {
    if !ends_in_one_row(&node) {
        return Err(Box::new(node));
    }
    let (mut node, mut outputs, mut having) = (node, outputs, Vec::new());
    loop {
        node = match node.op {
            Op::Project { input, exprs } => {
                let definitions: Definitions = exprs.into_iter().collect();
                for expr in outputs.iter_mut().chain(&mut having) {
                    *expr = substitute(std::mem::replace(expr, Expr::bool(false)), &definitions);
                }
                *input
            }
            Op::Filter { input, conjuncts } => {
                having.extend(conjuncts);
                *input
            }
            Op::Aggregate { input, aggregates, .. } => {
                return Ok(OneRow { input: *input, aggregates, having, outputs });
            }
            op => return Err(Box::new(Node::new(op))),
        };
    }
}

fn ends_in_one_row(node: &Node) -> bool {
    match &node.op {
        Op::Aggregate { groups, .. } => groups.is_empty(),
        Op::Project { input, .. } | Op::Filter { input, .. } => ends_in_one_row(input),
        _ => false,
    }
}

fn where_true(conditions: Vec<Expr>, value: Expr) -> Expr {
    let ty = value.ty();
    Expr::Case { branches: vec![(Expr::and(conditions), value)], otherwise: None, ty }
}

/// What an aggregate gives without rows, if not null. The outer `None`: nobody knows.
pub fn without_rows(call: &AggregateCall) -> Option<Option<Expr>> {
    const NULL: [&str; 20] = [
        "sum",
        "avg",
        "min",
        "max",
        "bool_and",
        "bool_or",
        "every",
        "any_value",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "variance",
        "var_pop",
        "var_samp",
        "array_agg",
        "string_agg",
        "bit_and",
        "bit_or",
        "json_agg",
        "jsonb_agg",
    ];
    match call.resolved.aggregate.name.as_str() {
        "count" if call.resolved.ty == DataType::Int8 => {
            Some(Some(Expr::Const { value: Datum::I64(0), ty: DataType::Int8 }))
        }
        name if NULL.contains(&name) => Some(None),
        _ => None,
    }
}
