//! The join graph of a region, and what orders of its joins cost.
//!
//! Leaves are numbered; sets of them are bits. A set has one expected number of rows, whichever order it came about in,
//! and the cheapest order that was found. Costs count rows: those that a join gives, those that it holds in memory
//! (twice), and pairs of rows where it has no key.

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
use basalt_types::DataType;

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
}

/// Equal columns of several leaves.
pub struct Equal {
    pub members: Vec<(usize, ColId)>,
    pub set: Set,
    pub ty: DataType,
    pub equal: &'static Function,
}

pub struct Predicate {
    pub expr: Expr,
    pub set: Set,
    pub share: f64,
}

pub struct Graph {
    pub leaves: Vec<Leaf>,
    pub classes: Vec<Equal>,
    pub predicates: Vec<Predicate>,
    /// Pairs of sets that a condition connects.
    pub edges: Vec<(Set, Set)>,
    pub table: AHashMap<Set, Entry>,
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
            Linked { kind: link.kind, keys, residual, needs: 0, factor: 1.0 }
        });
        Leaf { placed, columns, link }
    }
}

impl Graph {
    /// `None` if there are too many leaves, or a condition names a column of none.
    pub fn new(leaves: Vec<Leaf>, classes: Classes, conjuncts: Vec<Expr>) -> Option<Graph> {
        if leaves.len() > LEAVES_MAX {
            return None;
        }
        let mut graph =
            Graph { leaves, classes: Vec::new(), predicates: Vec::new(), edges: Vec::new(), table: AHashMap::new() };
        for class in classes.all {
            let members: Vec<(usize, ColId)> =
                class.members.iter().map(|id| Some((graph.leaf_of(*id)?, *id))).collect::<Option<Vec<_>>>()?;
            let set = members.iter().fold(0, |set, (leaf, _)| set | 1 << leaf);
            graph.classes.push(Equal { members, set, ty: class.ty, equal: class.equal });
        }
        for expr in conjuncts {
            let set = graph.set_of(&expr)?;
            let share = graph.share_of(&expr);
            graph.predicates.push(Predicate { expr, set, share });
        }
        graph.link()?;
        graph.connect();
        for (at, leaf) in graph.leaves.iter().enumerate() {
            let rows = leaf.placed.profile.rows;
            graph.table.insert(1 << at, Entry { rows, cost: 0.0, left: 0, right: 0 });
        }
        Some(graph)
    }

    fn leaf_of(&self, id: ColId) -> Option<usize> {
        self.leaves.iter().position(|leaf| leaf.columns.contains(&id))
    }

    fn set_of(&self, expr: &Expr) -> Option<Set> {
        columns_of(expr).into_iter().try_fold(0, |set, id| Some(set | 1 << self.leaf_of(id)?))
    }

    pub fn column(&self, id: ColId) -> Option<&ColumnProfile> {
        self.leaves.iter().find_map(|leaf| leaf.placed.profile.columns.get(&id))
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
            let factor = self.factor(&self.leaves[at], link);
            let link = self.leaves[at].link.as_mut()?;
            (link.needs, link.factor) = (needs & !(1 << at), factor);
        }
        Some(())
    }

    fn factor(&self, leaf: &Leaf, link: &Linked) -> f64 {
        let right = &leaf.placed.profile;
        let distinct = |expr: &Expr| match expr {
            Expr::Hole { id, .. } => self.column(*id).map_or(right.rows, |column| column.distinct),
            _ => right.rows,
        };
        let of_left = link.keys.iter().map(|key| distinct(&key.left)).product::<f64>().max(1.0);
        let of_right = right.combinations(link.keys.iter().map(|key| distinct(&key.right)));
        let share = selectivity::of_all(&link.residual, &|id| self.column(id));
        let partners = right.rows / of_right * share;
        let matched = (of_right / of_left).min(1.0) * partners.min(1.0);
        match link.kind {
            JoinKind::Semi => matched.max(1e-6),
            JoinKind::Anti | JoinKind::NullAwareAnti => (1.0 - matched).max(0.05),
            JoinKind::Left => (matched * partners.max(1.0)).max(1.0),
            _ => 1.0,
        }
    }

    fn connect(&mut self) {
        let mut edges = Vec::new();
        for class in &self.classes {
            for (at, (leaf, _)) in class.members.iter().enumerate() {
                let others = class.members[at + 1..].iter().filter(|(other, _)| other != leaf);
                edges.extend(others.map(|(other, _)| (1 << leaf, 1 << other)));
            }
        }
        for predicate in &self.predicates {
            let linked =
                (0..self.leaves.len()).any(|at| predicate.set >> at & 1 == 1 && self.leaves[at].link.is_some());
            let sides = match equality(&predicate.expr) {
                Some((left, right, ..)) => (self.set_of(left).unwrap_or(0), self.set_of(right).unwrap_or(0)),
                None => (0, 0),
            };
            match predicate.set.count_ones() {
                _ if linked => {}
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
        self.edges = edges;
    }

    pub fn all(&self) -> Set {
        Set::MAX >> (LEAVES_MAX - self.leaves.len())
    }

    /// How a leaf is joined that is a set of its own.
    pub fn linked(&self, set: Set) -> Option<&Linked> {
        (set.count_ones() == 1).then(|| self.leaves[set.trailing_zeros() as usize].link.as_ref())?
    }

    pub fn connects(&self, a: Set, b: Set) -> bool {
        let spans = |(u, v): &(Set, Set)| is_in(*u, a) && is_in(*v, b) || is_in(*u, b) && is_in(*v, a);
        self.edges.iter().any(spans)
    }

    /// Looks at the join of two sets, if there is one. Gives the rows of both together.
    pub fn consider(&mut self, a: Set, b: Set) -> Option<f64> {
        let (left, right) = match (self.linked(a), self.linked(b)) {
            (Some(_), Some(_)) => return None,
            (Some(_), None) => (b, a),
            _ => (a, b),
        };
        let (of_left, of_right) = (*self.table.get(&left)?, *self.table.get(&right)?);
        let has_key;
        let mut sides = (left, right);
        match self.linked(right) {
            Some(link) if !is_in(link.needs, left) => return None,
            Some(link) => has_key = !link.keys.is_empty(),
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
        let pairs = if has_key { 0.0 } else { of_left.rows * of_right.rows };
        let cost = of_left.cost + of_right.cost + rows + 2.0 * held + pairs;
        if known.is_none_or(|known| cost < known.cost) {
            self.table.insert(left | right, Entry { rows, cost, left: sides.0, right: sides.1 });
        }
        Some(rows)
    }

    fn has_key(&self, left: Set, right: Set) -> bool {
        let is_key = |predicate: &&Predicate| equality(&predicate.expr).is_some();
        self.classes.iter().any(|class| class.set & left != 0 && class.set & right != 0)
            || self.applied(left, right).any(|predicate| is_key(&predicate))
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
        let crossing: Vec<&Equal> =
            self.classes.iter().filter(|class| class.set & left != 0 && class.set & right != 0).collect();
        let distinct = |class: &Equal, side: Set| {
            let members = class.members.iter().filter(|(leaf, _)| side >> leaf & 1 == 1);
            let columns: Vec<&ColumnProfile> = members.filter_map(|(_, id)| self.column(*id)).collect();
            let least = |known: bool| {
                let counted = columns.iter().filter(|column| column.known == known);
                counted.map(|column| column.distinct).reduce(f64::min)
            };
            least(true).map_or((least(false).unwrap_or(f64::INFINITY), false), |least| (least, true))
        };
        // What is known counts for more than a guess: columns that are compared refer to the same things.
        let share_of = |class: &Equal| {
            let values = match (distinct(class, left), distinct(class, right)) {
                ((known, true), (_, false)) | ((_, false), (known, true)) => known,
                ((a, _), (b, _)) => a.max(b),
            };
            1.0 / values.max(1.0)
        };
        if crossing.len() > 1
            && let Some((rows, covered)) = self.covered_key(left | right, &crossing)
        {
            let others = crossing.iter().enumerate().filter(|(at, _)| !covered.contains(at));
            return others.map(|(_, class)| share_of(class)).product::<f64>() / rows.max(1.0);
        }
        let most = |side: Set| {
            let members = crossing.iter().flat_map(|class| &class.members).filter(|(leaf, _)| side >> leaf & 1 == 1);
            members.map(|(leaf, _)| self.leaves[*leaf].placed.profile.rows).fold(1.0, f64::max)
        };
        let product = crossing.iter().map(|class| share_of(class)).product::<f64>();
        match crossing.len() {
            0 | 1 => product,
            _ => product.max(1.0 / most(left).max(most(right))),
        }
    }

    /// The key of a leaf that the classes fix: how many rows it tells apart, and which of the classes it takes.
    fn covered_key(&self, set: Set, crossing: &[&Equal]) -> Option<(f64, Vec<usize>)> {
        let leaves = self.leaves.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        let keys = leaves.flat_map(|(_, leaf)| &leaf.placed.profile.keys).filter(|key| key.columns.len() > 1);
        let covers = |id: &ColId| crossing.iter().position(|class| class.members.iter().any(|(_, own)| own == id));
        let found =
            keys.filter_map(|key| Some((key.rows, key.columns.iter().map(covers).collect::<Option<Vec<_>>>()?)));
        found.max_by(|a, b| a.1.len().cmp(&b.1.len()).then(b.0.total_cmp(&a.0)))
    }
}

pub fn is_in(part: Set, whole: Set) -> bool {
    part & !whole == 0
}

pub fn lowest(set: Set) -> Set {
    set & set.wrapping_neg()
}
