//! Puts conditions where their columns come from and joins in their order, from the top of a tree downwards.
//!
//! A condition passes projections, unions, sorts, aggregations (if it asks only for groups) and joins, as far as each
//! row that it drops would have been dropped anyway. What it has passed has a profile: the way back up estimates.

use super::classes::{Classes, carried_over};
use super::columns::{ColSet, Definitions, column, hole, output, substitute, within};
use super::conjuncts::{is_never_true, key_of, rejects_nulls, split};
use super::eager;
use super::facts::Statistics;
use super::graph::{Graph, Leaf};
use super::group_exprs;
use super::having;
use super::keys::without_known_nulls;
use super::node::{JoinKind, Node, Op, Side};
use super::profile::{ColumnProfile, Dependency, Profile, UniqueKey};
use super::region::{Link, Region, Relation};
use super::selectivity;
use crate::plan::{AggregateCall, ColId, SetColumn, WindowCall};
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};
use std::cell::Cell;

/// Values of a set, as nobody knows them.
const SET_ROWS: f64 = 4.0;
/// Different ones among all of them.
const SET_DISTINCT_SHARE: f64 = 0.1;

/// A tree in its final form.
pub struct Placed {
    pub node: Node,
    pub profile: Profile,
}

pub struct Placement<'s> {
    pub statistics: &'s Statistics,
    /// The id of the next new column.
    pub next_id: Cell<ColId>,
}

/// How many rounds a recursion is expected to take, each with as many rows as its base.
const ROUNDS: f64 = 10.0;
/// Rows that are expected of all rounds together for whoever joins them: a table that does not have more is held once, and
/// not read in each round.
const WORKING_ROWS: f64 = 1e6;

impl Placed {
    pub fn new(mut node: Node, profile: Profile) -> Placed {
        node.rows = profile.rows;
        Placed { node, profile }
    }

    /// Only rows for which the conjuncts hold.
    fn filter(self, conjuncts: Vec<Expr>) -> Placed {
        if conjuncts.is_empty() {
            return self;
        }
        let share = selectivity::of_all(&conjuncts, &|id| self.profile.columns.get(&id));
        self.filter_to(conjuncts, share)
    }

    /// The same, of which so many are expected.
    fn filter_to(self, conjuncts: Vec<Expr>, share: f64) -> Placed {
        let Placed { node, mut profile } = self;
        profile.rows *= share;
        Placed::new(node.filter(conjuncts), profile)
    }
}

impl Placement<'_> {
    fn fresh(&self) -> ColId {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        id
    }

    /// The node where the conjuncts hold. `None`: no order of its joins was found.
    pub fn place(&self, node: Node, conjuncts: Vec<Expr>) -> Option<Placed> {
        match node.op {
            Op::Filter { .. } | Op::Project { .. } => self.region(node, conjuncts),
            Op::Join { left, right, kind: JoinKind::Full, residual, .. } => {
                self.full(*left, *right, residual, split(conjuncts))
            }
            Op::Join { .. } => self.region(node, conjuncts),
            Op::Scan { table, columns, mut filter } => {
                filter.extend(split(conjuncts));
                let scan = Node::new(Op::Scan { table, columns, filter: Vec::new() });
                let filter = without_known_nulls(&scan, filter);
                if filter.iter().any(is_never_true) {
                    let (columns, rows) = (scan.columns(), Vec::new());
                    let profile = of_values(&columns, 0.0);
                    return Some(Placed::new(Node::new(Op::Values { columns, rows }), profile));
                }
                let Op::Scan { table, columns, .. } = scan.op else { panic!("it is a scan") };
                let mut profile = Profile::of_table(&table, &columns, self.statistics);
                let guess = selectivity::of_all(&filter, &|id| profile.columns.get(&id));
                let sampled = self.statistics.sampled(&table, &columns, &filter);
                profile.rows *= sampled.map_or(guess, |sampled| sampled.share(guess));
                Some(Placed::new(Node::new(Op::Scan { table, columns, filter }), profile))
            }
            Op::Values { columns, rows } => {
                let profile = of_values(&columns, rows.len() as f64);
                Some(Placed::new(Node::new(Op::Values { columns, rows }), profile).filter(split(conjuncts)))
            }
            Op::Shared { cte, plan, columns } => {
                let ids: Vec<_> = columns.iter().map(|column| (column.id, column.ty.clone())).collect();
                let profile = of_values(&ids, plan.rows);
                Some(Placed::new(Node::new(Op::Shared { cte, plan, columns }), profile).filter(split(conjuncts)))
            }
            Op::Recursive { ref base, ref columns, .. } => {
                let ids: Vec<_> = columns.iter().map(|column| (column.id, column.ty.clone())).collect();
                let profile = of_values(&ids, base.rows.max(1.0) * ROUNDS);
                Some(Placed::new(node, profile).filter(split(conjuncts)))
            }
            Op::Working { ref columns, .. } => {
                let profile = of_values(columns, WORKING_ROWS);
                Some(Placed::new(node, profile).filter(split(conjuncts)))
            }
            Op::Aggregate { input, groups, aggregates, .. } => self.aggregate(*input, groups, aggregates, conjuncts),
            Op::Sort { input, keys } => {
                let Placed { node, profile } = self.place(*input, conjuncts)?;
                Some(Placed::new(Node::new(Op::Sort { input: Box::new(node), keys }), profile))
            }
            Op::Window { input, calls } => self.window(*input, calls, conjuncts),
            Op::ProjectSet { .. } => self.sets(node, conjuncts),
            Op::Limit { input, limit, offset } => {
                let Placed { node, mut profile } = self.place(*input, Vec::new())?;
                if let Some(Expr::Const { value: Datum::I64(count), .. }) = &limit {
                    profile.rows = profile.rows.min(*count as f64).max(1.0);
                }
                let node = Node::new(Op::Limit { input: Box::new(node), limit, offset });
                Some(Placed::new(node, profile).filter(split(conjuncts)))
            }
            Op::UnionAll { left, right, columns } => self.union(*left, *right, columns, conjuncts),
        }
    }

    fn aggregate(
        &self,
        input: Node,
        groups: Vec<(ColId, Expr)>,
        aggregates: Vec<(ColId, AggregateCall)>,
        conjuncts: Vec<Expr>,
    ) -> Option<Placed> {
        let definitions: Definitions = groups.iter().cloned().collect();
        let ids: ColSet = definitions.keys().copied().collect();
        // Without groups there is a row even where the input has none.
        let (below, above): (Vec<Expr>, Vec<Expr>) =
            split(conjuncts).into_iter().partition(|conjunct| !groups.is_empty() && within(conjunct, &ids));
        let below = below.into_iter().map(|conjunct| substitute(conjunct, &definitions)).collect();
        let Placed { node, profile } = self.place(input, below)?;
        let (groups, computed) = group_exprs::computed_behind(groups);
        let above: Vec<Expr> = above.into_iter().map(|conjunct| substitute(conjunct, &computed)).collect();
        let kept: Vec<(ColId, DataType)> = groups.iter().map(|(id, expr)| (*id, expr.ty())).collect();
        let results: Vec<(ColId, DataType)> =
            aggregates.iter().map(|(id, call)| (*id, call.resolved.ty.clone())).collect();
        let dependent = dependent_groups(&groups, &profile);
        let of_groups = of_groups(&groups, &dependent, &aggregates, &profile);
        let share = having::share(&above, &groups, &aggregates, &profile, &of_groups);
        let early = eager::groups_below_joins(&node, &profile, &groups, &aggregates, || self.fresh());
        let node =
            early.unwrap_or_else(|| Node::new(Op::Aggregate { input: Box::new(node), groups, dependent, aggregates }));
        let found = Placed::new(node, of_groups).filter_to(above, share);
        if computed.is_empty() {
            return Some(found);
        }
        let Placed { node, mut profile } = found;
        let passed = kept.iter().chain(&results).map(|(id, ty)| (*id, hole(*id, ty.clone())));
        let exprs = passed.chain(computed.iter().map(|(id, expr)| (*id, expr.clone()))).collect();
        for id in computed.keys() {
            profile.columns.insert(*id, ColumnProfile::guessed(profile.rows));
        }
        Some(Placed::new(node.project(exprs), profile))
    }

    /// Whole partitions go, or none of their rows.
    fn window(&self, input: Node, calls: Vec<(ColId, WindowCall)>, conjuncts: Vec<Expr>) -> Option<Placed> {
        let is_key = |id: &ColId| {
            let is = |expr: &Expr| matches!(expr, Expr::Hole { id: own, .. } if own == id);
            calls.iter().all(|(_, call)| call.partition_by.iter().any(is))
        };
        let asks_keys = |conjunct: &Expr| {
            let columns = super::columns::columns_of(conjunct);
            !columns.is_empty() && columns.iter().all(is_key)
        };
        let (below, above): (Vec<Expr>, Vec<Expr>) = split(conjuncts).into_iter().partition(asks_keys);
        let Placed { node, mut profile } = self.place(input, below)?;
        let rows = profile.rows;
        profile.columns.extend(calls.iter().map(|(id, _)| (*id, ColumnProfile::guessed(rows))));
        let node = Node::new(Op::Window { input: Box::new(node), calls });
        Some(Placed::new(node, profile).filter(above))
    }

    /// What is asked of a row before its sets are made is asked there.
    fn sets(&self, mut node: Node, conjuncts: Vec<Expr>) -> Option<Placed> {
        let Op::ProjectSet { input, sets, ordinality, .. } = &mut node.op else { return None };
        let of_input = output(input);
        let (below, above): (Vec<Expr>, Vec<Expr>) =
            split(conjuncts).into_iter().partition(|conjunct| within(conjunct, &of_input));
        let Placed { node: placed, mut profile } = self.place(std::mem::replace(input, Node::unit()), below)?;
        **input = placed;
        profile.rows *= SET_ROWS;
        // Rows come several times; what decides what has not changed.
        profile.keys.clear();
        let added = sets.iter().map(|(id, _)| *id).chain(*ordinality);
        let rows = profile.rows;
        profile.columns.extend(added.map(|id| (id, ColumnProfile::guessed(rows * SET_DISTINCT_SHARE))));
        Some(Placed::new(node, profile).filter(above))
    }

    fn union(&self, left: Node, right: Node, columns: Vec<SetColumn>, conjuncts: Vec<Expr>) -> Option<Placed> {
        let conjuncts = split(conjuncts);
        let side = |node: Node, pick: fn(&SetColumn) -> ColId| {
            let definition = |column: &SetColumn| (column.id, Expr::Hole { id: pick(column), ty: column.ty.clone() });
            let definitions: Definitions = columns.iter().map(definition).collect();
            self.place(node, conjuncts.iter().map(|conjunct| substitute(conjunct.clone(), &definitions)).collect())
        };
        let (left, right) = (side(left, |column| column.left)?, side(right, |column| column.right)?);
        let mut profile = Profile { rows: left.profile.rows + right.profile.rows, ..Profile::default() };
        for column in &columns {
            let distinct = left.profile.distinct(column.left) + right.profile.distinct(column.right);
            profile.columns.insert(column.id, ColumnProfile::guessed(distinct));
        }
        let (left, right) = (Box::new(left.node), Box::new(right.node));
        Some(Placed::new(Node::new(Op::UnionAll { left, right, columns }), profile))
    }

    /// A full join drops no row; conditions that a side without a partner fails make it a left join.
    fn full(&self, left: Node, right: Node, residual: Vec<Expr>, conjuncts: Vec<Expr>) -> Option<Placed> {
        let (of_left, of_right) = (output(&left), output(&right));
        let rejects = |columns: &ColSet| conjuncts.iter().any(|conjunct| rejects_nulls(conjunct, columns));
        match (rejects(&of_left), rejects(&of_right)) {
            (true, true) => return self.region(left.join(right, JoinKind::Inner, residual), conjuncts),
            (true, false) => return self.region(left.join(right, JoinKind::Left, residual), conjuncts),
            (false, true) => return self.region(right.join(left, JoinKind::Left, residual), conjuncts),
            (false, false) => {}
        }
        let (left, right) = (self.place(left, Vec::new())?, self.place(right, Vec::new())?);
        let (mut keys, mut rest) = (Vec::new(), Vec::new());
        for condition in split(residual) {
            match key_of(&condition, &of_left, &of_right) {
                Some(key) => keys.push(key),
                None => rest.push(condition),
            }
        }
        let mut profile = left.profile;
        profile.rows = profile.rows.max(right.profile.rows);
        profile.columns.extend(right.profile.columns);
        (profile.keys, profile.dependencies) = (Vec::new(), Vec::new());
        let build = if left.node.rows < right.node.rows { Side::Left } else { Side::Right };
        let (left, right) = (Box::new(left.node), Box::new(right.node));
        let node = Node::new(Op::Join { left, right, kind: JoinKind::Full, keys, residual: rest, build });
        Some(Placed::new(node, profile).filter(conjuncts))
    }

    fn region(&self, node: Node, conjuncts: Vec<Expr>) -> Option<Placed> {
        let columns = node.columns();
        let mut region = Region::of(node, conjuncts);
        let outputs = region.outputs(&columns);
        let of_relations: Vec<ColSet> = region.relations.iter().map(|relation| output(&relation.node)).collect();
        let is_inner = |id: ColId| {
            let mut inner = region.relations.iter().zip(&of_relations).filter(|(relation, _)| relation.link.is_none());
            inner.any(|(_, own)| own.contains(&id))
        };
        let mut conjuncts = std::mem::take(&mut region.conjuncts);
        let classes = Classes::of(&mut conjuncts, is_inner);
        let carried = classes.carried(&conjuncts);
        conjuncts.extend(carried);
        let mut leaves = Vec::with_capacity(region.relations.len());
        for (at, relation) in region.relations.into_iter().enumerate() {
            let leaf = match relation.link {
                None => {
                    let mut own = classes.within(&of_relations[at]);
                    // What has no columns is asked of the first, as it may be asked of any.
                    conjuncts.retain(|conjunct| {
                        let belongs = within(conjunct, &of_relations[at]);
                        own.extend(belongs.then(|| conjunct.clone()));
                        !belongs
                    });
                    (self.place(relation.node, own)?, None)
                }
                Some(_) => self.linked(relation, &of_relations[at], &classes, &conjuncts)?,
            };
            leaves.push(Leaf::new(leaf.0, leaf.1, of_relations[at].clone()));
        }
        let Placed { node, mut profile } = Graph::new(leaves, classes, conjuncts)?.join()?;
        let Some(outputs) = outputs else { return Some(Placed { node, profile }) };
        for (id, expr) in &outputs {
            let known = match expr {
                Expr::Hole { id: source, .. } => profile.columns.get(source).cloned(),
                _ => None,
            };
            let of_rows = || ColumnProfile::guessed(distinct_of(expr, &profile));
            profile.columns.insert(*id, known.unwrap_or_else(of_rows));
            if let Expr::Hole { id: source, .. } = expr {
                profile.equate(*id, *source);
            }
        }
        Some(Placed::new(node.project(outputs), profile))
    }

    /// The right side of a join that is not inner: what its condition asks of it alone, it asks of it below.
    fn linked(
        &self,
        relation: Relation,
        own: &ColSet,
        classes: &Classes,
        conjuncts: &[Expr],
    ) -> Option<(Placed, Option<Link>)> {
        let Relation { node, link } = relation;
        let mut link = link?;
        let (mut below, condition): (Vec<Expr>, Vec<Expr>) =
            link.condition.into_iter().partition(|condition| within(condition, own));
        link.condition = condition;
        let left =
            |condition: &Expr| super::columns::columns_of(condition).difference(own).copied().collect::<ColSet>();
        let keys = link.condition.iter().filter_map(|condition| key_of(condition, &left(condition), own));
        let keys: Vec<_> = keys.collect();
        let mut known = classes.carried(conjuncts);
        known.extend(conjuncts.iter().cloned());
        below.extend(carried_over(&known, &keys));
        Some((self.place(node, below)?, Some(link)))
    }
}

fn of_values(columns: &[(ColId, basalt_types::DataType)], rows: f64) -> Profile {
    let column = |(id, _): &(ColId, basalt_types::DataType)| (*id, ColumnProfile::guessed(rows));
    Profile { rows, columns: columns.iter().map(column).collect(), ..Profile::default() }
}

/// The values of an expression: no more than its columns have together.
fn distinct_of(expr: &Expr, profile: &Profile) -> f64 {
    let columns = super::columns::columns_of(expr);
    profile.combinations(columns.iter().map(|id| profile.distinct(*id)))
}

/// Groups that the others decide, by position. Those at the end go first: what is written first is kept.
pub fn dependent_groups(groups: &[(ColId, Expr)], profile: &Profile) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    for (at, (_, expr)) in groups.iter().enumerate().rev() {
        let others = groups.iter().enumerate().filter(|(other, _)| *other != at && !out.contains(other));
        // Without any there would be a group even of no rows.
        let is_alone = others.clone().next().is_none();
        let others: ColSet = others.filter_map(|(_, (_, expr))| column(expr)).collect();
        let is_decided = match column(expr) {
            Some(id) => !profile.dependencies.is_empty() && profile.closure(others).contains(&id),
            None => !is_alone && group_exprs::follows_from(expr, &others),
        };
        if is_decided {
            out.push(at);
        }
    }
    out.reverse();
    out
}

pub fn of_groups(
    groups: &[(ColId, Expr)],
    dependent: &[usize],
    aggregates: &[(ColId, AggregateCall)],
    input: &Profile,
) -> Profile {
    let compared = groups.iter().enumerate().filter(|(at, _)| !dependent.contains(at)).map(|(_, group)| group);
    let compared: Vec<&(ColId, Expr)> = compared.collect();
    let rows = input.combinations(compared.iter().map(|(_, expr)| distinct_of(expr, input)));
    let mut profile = Profile { rows, ..Profile::default() };
    for (id, expr) in groups {
        let known = match expr {
            Expr::Hole { id, .. } => input.columns.get(id).cloned(),
            _ => None,
        };
        let known = known.unwrap_or_else(|| ColumnProfile::guessed(distinct_of(expr, input)));
        profile.columns.insert(*id, known);
    }
    for (id, _) in aggregates {
        profile.columns.insert(*id, ColumnProfile::guessed(rows));
    }
    let columns: Vec<ColId> = compared.iter().map(|(id, _)| *id).collect();
    if !columns.is_empty() {
        // A single group has as many values as there are groups.
        if let ([id], true) = (columns.as_slice(), rows < input.rows) {
            profile.columns.insert(*id, ColumnProfile { known: true, ..profile.columns[id].clone() });
        }
        let all = groups.iter().map(|(id, _)| *id).chain(aggregates.iter().map(|(id, _)| *id)).collect();
        profile.dependencies.push(Dependency { determinant: columns.clone(), dependent: all });
        profile.keys.push(UniqueKey { columns, rows });
    }
    profile
}
