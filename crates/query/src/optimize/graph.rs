//! The join graph of a region, and what orders of its joins cost.
//!
//! Leaves are numbered; sets of them are bits. A set has one expected number of rows, whichever order it came about in,
//! and the cheapest order that was found. Costs count rows: those that a join gives, those that it holds in memory
//! (twice), and pairs of rows that it compares: all of them where it has no key, those with equal keys where a semi, anti
//! or outer join has another condition.
//!
//! A join is looked at some thousand times, in one order and another: what that asks of columns, classes and conditions is
//! looked up before, when the graph is made.

use super::classes::Classes;
use super::columns::{ColSet, columns_of};
use super::conjuncts::{equality, implied, key_of};
use super::node::{JoinKind, Key};
use super::place::Placed;
use super::profile::ColumnProfile;
use super::region::Link;
use super::selectivity;
use crate::plan::ColId;
use ahash::AHashMap;
use basalt_expr::functions::Function;
use basalt_expr::tree::Expr;
use basalt_types::{CompareOp, DataType};

/// Leaves by their numbers.
pub type Set = u64;

pub const LEAVES_MAX: usize = 64;

pub struct Leaf {
    pub placed: Placed,
    /// Its columns, with the mark that it makes.
    pub columns: ColSet,
    pub link: Option<Linked>,
}

/// A leaf that comes in as the right side of a join, once its partners are there.
pub struct Linked {
    pub kind: JoinKind,
    pub keys: Vec<Key>,
    pub residual: Vec<Expr>,
    /// Leaves whose columns the condition names.
    pub needs: Set,
    /// Rows of the join for each left row.
    pub factor: f64,
    /// Partners by the keys alone that each left row is compared with.
    pub compared: f64,
}

/// Equal columns of several leaves.
pub struct Equal {
    pub members: Vec<Member>,
    pub set: Set,
    pub ty: DataType,
    pub equal: &'static Function,
}

#[derive(Clone, Copy)]
pub struct Member {
    pub leaf: usize,
    pub id: ColId,
    /// How many values it has, and whether that is more than a guess.
    distinct: Option<(f64, bool)>,
}

/// A condition between leaves.
#[derive(Clone, Copy)]
pub struct Predicate {
    /// Which of the graph's conditions it is.
    pub at: usize,
    pub set: Set,
    share: f64,
    /// Whether a join can find its partners by it.
    is_key: bool,
}

/// A key of a leaf whose columns are all in classes: which these are, and how many rows it tells apart.
struct Covered {
    classes: Vec<usize>,
    rows: f64,
}

pub struct Graph {
    pub leaves: Vec<Leaf>,
    pub classes: Vec<Equal>,
    pub conditions: Vec<Expr>,
    pub predicates: Vec<Predicate>,
    /// Of each leaf those that a condition connects with it alone.
    pub adjacent: Vec<Set>,
    /// Pairs of sets that a condition connects, of which one has several leaves.
    pub hyperedges: Vec<(Set, Set)>,
    pub table: AHashMap<Set, Entry>,
    /// Which leaf has a column.
    owners: AHashMap<ColId, usize>,
    /// By leaf.
    keys: Vec<Vec<Covered>>,
    /// Leaves that are linked.
    linked: Set,
}

/// The best that is known of a set.
#[derive(Clone, Copy)]
pub struct Entry {
    pub rows: f64,
    pub cost: f64,
    /// What it is joined from; 0 for a leaf.
    pub left: Set,
    pub right: Set,
}

impl Leaf {
    pub fn new(placed: Placed, link: Option<Link>, mut columns: ColSet) -> Leaf {
        let link = link.map(|link| {
            if let JoinKind::Mark { id, .. } = link.kind {
                columns.insert(id);
            }
            let (mut keys, mut residual): (Vec<Key>, Vec<Expr>) = (link.key.into_iter().collect(), Vec::new());
            for condition in link.condition {
                let left: ColSet = columns_of(&condition).difference(&columns).copied().collect();
                match key_of(&condition, &left, &columns) {
                    Some(key) => keys.push(key),
                    None => residual.push(condition),
                }
            }
            Linked { kind: link.kind, keys, residual, needs: 0, factor: 1.0, compared: 0.0 }
        });
        Leaf { placed, columns, link }
    }
}

impl Graph {
    /// `None` if there are too many leaves, or a condition names a column of none.
    pub fn new(leaves: Vec<Leaf>, classes: Classes, conditions: Vec<Expr>) -> Option<Graph> {
        if leaves.len() > LEAVES_MAX {
            return None;
        }
        let mut graph = Graph::of_leaves(leaves);
        for class in classes.all {
            let members = class.members.iter().map(|id| graph.member(*id)).collect::<Option<Vec<_>>>()?;
            let set = members.iter().fold(0, |set, member| set | 1 << member.leaf);
            graph.classes.push(Equal { members, set, ty: class.ty, equal: class.equal });
        }
        for (at, expr) in conditions.iter().enumerate() {
            let (set, share) = (graph.set_of(expr)?, graph.share_of(expr));
            graph.predicates.push(Predicate { at, set, share, is_key: equality(expr).is_some() });
        }
        graph.conditions = conditions;
        graph.keys = graph.leaves.iter().map(|leaf| graph.covered_keys(leaf)).collect();
        graph.link()?;
        graph.connect();
        Some(graph)
    }

    fn of_leaves(leaves: Vec<Leaf>) -> Graph {
        let (mut owners, mut table, mut linked) = (AHashMap::new(), AHashMap::new(), 0);
        for (at, leaf) in leaves.iter().enumerate() {
            leaf.columns.iter().for_each(|id| {
                owners.entry(*id).or_insert(at);
            });
            table.insert(1 << at, Entry { rows: leaf.placed.profile.rows, cost: 0.0, left: 0, right: 0 });
            linked |= Set::from(leaf.link.is_some()) << at;
        }
        let adjacent = vec![0; leaves.len()];
        let (classes, conditions, predicates, hyperedges, keys) = Default::default();
        Graph { leaves, classes, conditions, predicates, adjacent, hyperedges, table, owners, keys, linked }
    }

    fn member(&self, id: ColId) -> Option<Member> {
        let leaf = self.leaf_of(id)?;
        let distinct = self.column(id).map(|column| (column.distinct, column.known));
        Some(Member { leaf, id, distinct })
    }

    fn leaf_of(&self, id: ColId) -> Option<usize> {
        self.owners.get(&id).copied()
    }

    fn set_of(&self, expr: &Expr) -> Option<Set> {
        columns_of(expr).into_iter().try_fold(0, |set, id| Some(set | 1 << self.leaf_of(id)?))
    }

    pub fn column(&self, id: ColId) -> Option<&ColumnProfile> {
        self.leaves[self.leaf_of(id)?].placed.profile.columns.get(&id)
    }

    /// Of a condition between leaves, beyond what it asks of each of them.
    fn share_of(&self, expr: &Expr) -> f64 {
        let known = |id| self.column(id);
        let parts = self.leaves.iter().filter(|leaf| leaf.link.is_none());
        let parts = parts.filter_map(|leaf| implied(expr, &leaf.columns));
        let asked: f64 = parts.map(|part| selectivity::of(&part, &known)).product();
        (selectivity::of(expr, &known) / asked).clamp(1e-7, 1.0)
    }

    /// Settles what linked leaves need, and how many rows their joins give.
    fn link(&mut self) -> Option<()> {
        for at in 0..self.leaves.len() {
            let Some(link) = &self.leaves[at].link else { continue };
            let mut needs = 0;
            for expr in link.keys.iter().map(|key| &key.left).chain(&link.residual) {
                needs |= self.set_of(expr)?;
            }
            let (factor, compared) = self.factor(&self.leaves[at], link);
            let link = self.leaves[at].link.as_mut()?;
            (link.needs, link.factor, link.compared) = (needs & !(1 << at), factor, compared);
        }
        Some(())
    }

    /// [`Linked::factor`] and [`Linked::compared`].
    fn factor(&self, leaf: &Leaf, link: &Linked) -> (f64, f64) {
        let right = &leaf.placed.profile;
        let distinct = |expr: &Expr| match expr {
            Expr::Hole { id, .. } => self.column(*id).map_or(right.rows, |column| column.distinct),
            _ => right.rows,
        };
        let of_left = link.keys.iter().map(|key| distinct(&key.left)).product::<f64>().max(1.0);
        let of_right = right.combinations(link.keys.iter().map(|key| distinct(&key.right)));
        let present = (of_right / of_left).min(1.0);
        let of_key = right.rows / of_right;
        // A value that has to differ is mostly the row's own, which is among those of its key: any other one counts.
        let (differ, others): (Vec<Expr>, Vec<Expr>) = link.residual.iter().cloned().partition(is_inequality);
        let share = selectivity::of_all(&others, &|id| self.column(id));
        let partners = of_key * share;
        let found = match differ.is_empty() {
            true => 1.0 - (1.0 - share).powf(of_key),
            // Keys have as many rows as chance gives them.
            false => 1.0 - (-(of_key - 1.0).max(0.1) * share).exp(),
        };
        let matched = present * found;
        let compared = if link.residual.is_empty() { 0.0 } else { present * of_key };
        let factor = match link.kind {
            JoinKind::Semi => matched.max(1e-6),
            JoinKind::Anti | JoinKind::NullAwareAnti => (1.0 - matched).max(0.05),
            JoinKind::Left => (matched * partners.max(1.0)).max(1.0),
            _ => 1.0,
        };
        (factor, compared)
    }

    fn connect(&mut self) {
        let mut edges: Vec<(Set, Set)> = Vec::new();
        for class in &self.classes {
            for member in &class.members {
                self.adjacent[member.leaf] |= class.set & !(1 << member.leaf);
            }
        }
        for predicate in self.predicates.iter().filter(|predicate| predicate.set & self.linked == 0) {
            let sides = match equality(&self.conditions[predicate.at]) {
                Some((left, right, ..)) => (self.set_of(left).unwrap_or(0), self.set_of(right).unwrap_or(0)),
                None => (0, 0),
            };
            match predicate.set.count_ones() {
                2 => edges.push((lowest(predicate.set), predicate.set & !lowest(predicate.set))),
                _ if sides.0 != 0 && sides.1 != 0 && sides.0 & sides.1 == 0 => edges.push(sides),
                _ => {}
            }
        }
        for (at, leaf) in self.leaves.iter().enumerate() {
            edges.extend(leaf.link.iter().filter(|link| link.needs != 0).map(|link| (link.needs, 1 << at)));
        }
        edges.sort_unstable();
        edges.dedup();
        for (u, v) in edges {
            match u.count_ones() == 1 && v.count_ones() == 1 {
                true => {
                    self.adjacent[u.trailing_zeros() as usize] |= v;
                    self.adjacent[v.trailing_zeros() as usize] |= u;
                }
                false => self.hyperedges.push((u, v)),
            }
        }
    }

    pub fn all(&self) -> Set {
        Set::MAX >> (LEAVES_MAX - self.leaves.len())
    }

    /// How a leaf is joined that is a set of its own.
    pub fn linked(&self, set: Set) -> Option<&Linked> {
        let is_one = set & self.linked != 0 && set.count_ones() == 1;
        is_one.then(|| self.leaves[set.trailing_zeros() as usize].link.as_ref())?
    }

    /// Leaves that are connected with one of these alone.
    pub fn around(&self, set: Set) -> Set {
        leaves_of(set).fold(0, |around, leaf| around | self.adjacent[leaf])
    }

    pub fn connects(&self, a: Set, b: Set) -> bool {
        let (few, others) = if a.count_ones() < b.count_ones() { (a, b) } else { (b, a) };
        let spans = |(u, v): &(Set, Set)| is_in(*u, a) && is_in(*v, b) || is_in(*u, b) && is_in(*v, a);
        leaves_of(few).any(|leaf| self.adjacent[leaf] & others != 0) || self.hyperedges.iter().any(spans)
    }

    /// Looks at the join of two sets, if there is one. Gives the rows of both together.
    pub fn consider(&mut self, a: Set, b: Set) -> Option<f64> {
        #[cfg(test)]
        LOOKED.set(LOOKED.get() + 1);
        let (left, right) = match (self.linked(a), self.linked(b)) {
            (Some(_), Some(_)) => return None,
            (Some(_), None) => (b, a),
            _ => (a, b),
        };
        let (of_left, of_right) = (*self.table.get(&left)?, *self.table.get(&right)?);
        let has_key;
        let (mut sides, mut compared) = ((left, right), 0.0);
        match self.linked(right) {
            Some(link) if !is_in(link.needs, left) => return None,
            Some(link) => (has_key, compared) = (!link.keys.is_empty(), of_left.rows * link.compared),
            None => {
                // The smaller side is held in memory.
                if of_left.rows < of_right.rows {
                    sides = (right, left);
                }
                has_key = self.has_key(left, right);
            }
        }
        let known = self.table.get(&(left | right)).copied();
        let rows = known.map_or_else(|| self.rows(left, right, of_left.rows, of_right.rows), |entry| entry.rows);
        let held = of_left.rows.min(of_right.rows);
        let pairs = if has_key { compared } else { of_left.rows * of_right.rows };
        let cost = of_left.cost + of_right.cost + rows + 2.0 * held + pairs;
        if known.is_none_or(|known| cost < known.cost) {
            self.table.insert(left | right, Entry { rows, cost, left: sides.0, right: sides.1 });
        }
        Some(rows)
    }

    fn has_key(&self, left: Set, right: Set) -> bool {
        self.classes.iter().any(|class| class.set & left != 0 && class.set & right != 0)
            || self.applied(left, right).any(|predicate| predicate.is_key)
    }

    /// Conditions that can be checked where two sets meet, and could not before.
    pub fn applied(&self, left: Set, right: Set) -> impl Iterator<Item = &Predicate> {
        // What is linked has its columns only once it is joined.
        let linked = self.linked(right).is_some();
        self.predicates.iter().filter(move |predicate| {
            let set = predicate.set;
            is_in(set, left | right) && !is_in(set, left) && (linked || !is_in(set, right))
        })
    }

    fn rows(&self, left: Set, right: Set, of_left: f64, of_right: f64) -> f64 {
        let share: f64 = self.applied(left, right).map(|predicate| predicate.share).product();
        let joined = match self.linked(right) {
            Some(link) => of_left * link.factor,
            None => of_left * of_right * self.share_of_keys(left, right),
        };
        (joined * share).max(1e-3)
    }

    /// Of the pairs of rows of two sets those that are equal in all classes that both have members of. Each key value
    /// of the side with fewer has a partner (containment); a key of a leaf is found once.
    fn share_of_keys(&self, left: Set, right: Set) -> f64 {
        let is_crossing = |at: &usize| self.classes[*at].set & left != 0 && self.classes[*at].set & right != 0;
        let crossing: Vec<usize> = (0..self.classes.len()).filter(is_crossing).collect();
        // What is known counts for more than a guess: columns that are compared refer to the same things.
        let share_of = |at: usize| {
            let class = &self.classes[at];
            let values = match (class.distinct(left), class.distinct(right)) {
                ((known, true), (_, false)) | ((_, false), (known, true)) => known,
                ((a, _), (b, _)) => a.max(b),
            };
            1.0 / values.max(1.0)
        };
        if crossing.len() > 1
            && let Some((rows, covered)) = self.covered_key(left | right, &crossing)
        {
            let others = crossing.iter().filter(|at| !covered.contains(at));
            return others.map(|at| share_of(*at)).product::<f64>() / rows.max(1.0);
        }
        let most = |side: Set| {
            let of_classes = crossing.iter().fold(0, |set, at| set | self.classes[*at].set);
            leaves_of(of_classes & side).map(|leaf| self.leaves[leaf].placed.profile.rows).fold(1.0, f64::max)
        };
        let product = crossing.iter().map(|at| share_of(*at)).product::<f64>();
        match crossing.len() {
            0 | 1 => product,
            _ => product.max(1.0 / most(left).max(most(right))),
        }
    }

    /// The key of a leaf that these classes fix: how many rows it tells apart, and which of the classes it takes.
    fn covered_key(&self, set: Set, crossing: &[usize]) -> Option<(f64, &[usize])> {
        let keys = leaves_of(set).flat_map(|leaf| &self.keys[leaf]);
        let found = keys.filter(|key| key.classes.iter().all(|class| crossing.contains(class)));
        let best = found.max_by(|a, b| a.classes.len().cmp(&b.classes.len()).then(b.rows.total_cmp(&a.rows)));
        best.map(|key| (key.rows, key.classes.as_slice()))
    }

    /// Keys of several columns that classes may fix.
    fn covered_keys(&self, leaf: &Leaf) -> Vec<Covered> {
        let class = |id: &ColId| self.classes.iter().position(|class| class.members.iter().any(|own| own.id == *id));
        let keys = leaf.placed.profile.keys.iter().filter(|key| key.columns.len() > 1);
        let covered = keys.filter_map(|key| {
            Some(Covered { classes: key.columns.iter().map(class).collect::<Option<Vec<_>>>()?, rows: key.rows })
        });
        covered.collect()
    }
}

impl Equal {
    /// The fewest values that a column of one side has, and whether that is more than a guess. What is known goes first.
    fn distinct(&self, side: Set) -> (f64, bool) {
        let (mut known, mut guessed) = (f64::INFINITY, f64::INFINITY);
        for member in self.members.iter().filter(|member| side >> member.leaf & 1 == 1) {
            match member.distinct {
                Some((distinct, true)) => known = known.min(distinct),
                Some((distinct, false)) => guessed = guessed.min(distinct),
                None => {}
            }
        }
        if known.is_finite() { (known, true) } else { (guessed, false) }
    }
}

#[cfg(test)]
std::thread_local! {
    /// How many joins this thread has looked at.
    static LOOKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub fn looked() -> usize {
    LOOKED.get()
}

fn is_inequality(expr: &Expr) -> bool {
    matches!(expr, Expr::Call { function, .. } if function.comparison() == Some(CompareOp::NotEq))
}

/// The leaves of a set, by number.
pub fn leaves_of(set: Set) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let leaf = (rest != 0).then(|| rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
        leaf
    })
}

pub fn is_in(part: Set, whole: Set) -> bool {
    part & !whole == 0
}

pub fn lowest(set: Set) -> Set {
    set & set.wrapping_neg()
}
