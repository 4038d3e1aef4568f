//! The tree of the cheapest order of joins, and the profile of its rows.

use super::columns::{ColSet, columns_of, hole};
use super::conjuncts::key_of;
use super::graph::{Graph, Leaf, Linked, Set};
use super::keys::is_never_null;
use super::node::{JoinKind, Key, Node, Op, Side};
use super::place::Placed;
use super::profile::{Dependency, Profile, UniqueKey};
use super::{dphyp, greedy, linear};
use basalt_expr::tree::Expr;

impl Graph {
    /// Orders the joins. `None`: no order was found.
    pub fn join(mut self) -> Option<Placed> {
        let all = self.all();
        // A single leaf is there already.
        if !self.table.contains_key(&all) {
            let pairs = dphyp::pairs(&self);
            let is_small = pairs.is_some();
            for (a, b) in pairs.into_iter().flatten() {
                self.consider(a, b);
            }
            if !self.table.contains_key(&all) {
                greedy::enumerate(&mut self)?;
            }
            if !is_small {
                linear::improve(&mut self);
            }
        }
        let profile = self.profile(all)?;
        let node = self.build(all)?;
        Some(Placed { node, profile })
    }

    fn build(&mut self, set: Set) -> Option<Node> {
        let entry = *self.table.get(&set)?;
        if entry.left == 0 {
            let leaf = self.leaves.get_mut(set.trailing_zeros() as usize)?;
            return Some(std::mem::replace(&mut leaf.placed.node, Node::unit()));
        }
        let (of_left, of_right) = (self.columns(entry.left), self.columns(entry.right));
        let conditions: Vec<Expr> =
            self.applied(entry.left, entry.right).map(|predicate| self.conditions[predicate.at].clone()).collect();
        let (left, right) = (self.build(entry.left)?, self.build(entry.right)?);
        if self.linked(entry.right).is_some() {
            return self.build_linked(entry.right, left, right, conditions, entry.rows);
        }
        let mut keys = self.class_keys(entry.left, entry.right);
        let mut residual = Vec::new();
        for condition in conditions {
            match key_of(&condition, &of_left, &of_right) {
                Some(key) => keys.push(key),
                None => residual.push(condition),
            }
        }
        let (left, right) = (Box::new(left), Box::new(right));
        let op = Op::Join { left, right, kind: JoinKind::Inner, keys, residual, build: Side::Right };
        Some(Node { op, rows: entry.rows })
    }

    fn build_linked(&mut self, set: Set, left: Node, right: Node, above: Vec<Expr>, rows: f64) -> Option<Node> {
        let link = self.leaves[set.trailing_zeros() as usize].link.take()?;
        let build = if left.rows < right.rows { Side::Left } else { Side::Right };
        let joined = left.rows * link.factor;
        let (left, right) = (Box::new(left), Box::new(right));
        let op = Op::Join { left, right, kind: link.kind, keys: link.keys, residual: link.residual, build };
        let mut node = Node { op, rows: joined }.filter(above);
        node.rows = rows;
        Some(node)
    }

    /// One key for each class that has members on both sides.
    fn class_keys(&self, left: Set, right: Set) -> Vec<Key> {
        let mut keys = Vec::new();
        for class in &self.classes {
            let member = |side: Set| class.members.iter().find(|member| side >> member.leaf & 1 == 1);
            if let (Some(a), Some(b)) = (member(left), member(right)) {
                let (left, right) = (hole(a.id, class.ty.clone()), hole(b.id, class.ty.clone()));
                keys.push(Key { left, right, equal: class.equal, null_safe: false });
            }
        }
        keys
    }

    fn columns(&self, set: Set) -> ColSet {
        let leaves = self.leaves.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        leaves.flat_map(|(_, leaf)| leaf.columns.iter().copied()).collect()
    }

    fn profile(&self, all: Set) -> Option<Profile> {
        let mut profile = Profile { rows: self.table.get(&all)?.rows, ..Profile::default() };
        for leaf in &self.leaves {
            let own = &leaf.placed.profile;
            match &leaf.link {
                Some(link) if !link.kind.gives_right() => continue,
                Some(link) => {
                    profile.dependencies.extend(by_link(leaf, link));
                    // Rows without a partner have nulls there, as perhaps others have.
                    let is_told =
                        |one: &&Dependency| one.determinant.iter().any(|id| is_never_null(&leaf.placed.node, *id));
                    profile.dependencies.extend(own.dependencies.iter().filter(is_told).cloned());
                }
                None => profile.dependencies.extend(own.dependencies.iter().cloned()),
            }
            profile.columns.extend(own.columns.clone());
        }
        for class in &self.classes {
            let members: Vec<_> = class.members.iter().map(|member| member.id).collect();
            let alike = members.iter().map(|id| Dependency { determinant: vec![*id], dependent: members.clone() });
            profile.dependencies.extend(alike);
        }
        let multiplies = |leaf: &&Leaf| match &leaf.link {
            None => true,
            Some(link) => link.kind == JoinKind::Left,
        };
        for leaf in self.leaves.iter().filter(multiplies) {
            for key in &leaf.placed.profile.keys {
                let closure = profile.closure(key.columns.iter().copied().collect());
                let is_found = |leaf: &Leaf| {
                    leaf.placed.profile.keys.iter().any(|key| key.columns.iter().all(|id| closure.contains(id)))
                };
                if self.leaves.iter().filter(multiplies).all(is_found) && leaf.link.is_none() {
                    profile.keys.push(key.clone());
                }
            }
        }
        Some(profile)
    }
}

/// Where the keys are a key of the partners, a left row decides its partner: by all of its columns that the join asks.
fn by_link(leaf: &Leaf, link: &Linked) -> Option<Dependency> {
    let compared = link.keys.iter().filter(|key| !key.null_safe);
    let compared: ColSet = compared.flat_map(|key| columns_of(&key.right)).collect();
    let mut asked = ColSet::new();
    for expr in link.keys.iter().map(|key| &key.left).chain(&link.residual) {
        asked.extend(columns_of(expr));
    }
    asked.retain(|id| !leaf.columns.contains(id));
    let is_plain = |key: &Key| matches!(key.right, Expr::Hole { .. });
    let is_covered = |key: &UniqueKey| key.columns.iter().all(|id| compared.contains(id));
    let decides = link.keys.iter().all(is_plain) && leaf.placed.profile.keys.iter().any(is_covered);
    decides.then(|| Dependency {
        determinant: asked.into_iter().collect(),
        dependent: leaf.columns.iter().copied().collect(),
    })
}
