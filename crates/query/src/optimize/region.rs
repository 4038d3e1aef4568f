//! Joins that may change places: relations, and the conditions between them.
//!
//! A region is what lies below a node down to whatever is no join, filter or projection. Projections dissolve: what
//! they compute is put in the place of their columns, and computed above the region. Of outer, semi, anti, mark and
//! single joins the left side belongs to the region; the right side is a relation of its own that is *linked* to it: it
//! comes in as the right side of its join, as soon as all columns of the join's condition are there. Such joins
//! pass each other and inner joins, as none of them changes a left row but by dropping it.

use super::columns::{ColSet, Definitions, hole, output, refers, substitute, within};
use super::conjuncts::{implied, rejects_nulls, split};
use super::node::{JoinKind, Key, Node, Op};
use crate::plan::ColId;
use basalt_expr::tree::Expr;

/// Nodes of expressions that dissolving projections may make; one that would make more stays.
const EXPANDED_MAX: usize = 4000;

#[derive(Default)]
pub struct Region {
    pub relations: Vec<Relation>,
    /// Conditions on all that is joined.
    pub conjuncts: Vec<Expr>,
    /// What the region's dissolved columns are, over those of its relations.
    pub definitions: Definitions,
}

pub struct Relation {
    pub node: Node,
    /// `None`: it takes part in inner joins.
    pub link: Option<Link>,
}

/// How a relation is joined that is linked to others.
pub struct Link {
    pub kind: JoinKind,
    /// Of a join that heeds nulls.
    pub key: Option<Key>,
    pub condition: Vec<Expr>,
}

impl Region {
    /// The region whose top is this node, under these conditions.
    pub fn of(node: Node, conjuncts: Vec<Expr>) -> Region {
        let mut region = Region { conjuncts: split(conjuncts), ..Region::default() };
        region.gather(node);
        region.conjuncts = split(std::mem::take(&mut region.conjuncts));
        region.derive();
        region
    }

    fn gather(&mut self, node: Node) {
        match node.op {
            Op::Filter { input, conjuncts } => {
                self.conjuncts.extend(split(conjuncts));
                self.gather(*input);
            }
            Op::Project { input, exprs } => {
                let is_new = |(id, expr): &(ColId, Expr)| !matches!(expr, Expr::Hole { id: own, .. } if own == id);
                let new = exprs.iter().filter(|output| is_new(output)).cloned();
                let new: Definitions = new.collect();
                // One is dissolved at least: a region of a projection alone would never end.
                if !self.definitions.is_empty() && self.size() > EXPANDED_MAX {
                    let node = Node::new(Op::Project { input, exprs });
                    return self.relations.push(Relation { node, link: None });
                }
                self.dissolve(new);
                self.gather(*input);
            }
            Op::Join { left, right, kind, keys, residual, .. } if kind != JoinKind::Full => {
                self.join(*left, *right, kind, keys, residual);
            }
            op => self.relations.push(Relation { node: Node::new(op), link: None }),
        }
    }

    fn join(&mut self, left: Node, right: Node, kind: JoinKind, mut keys: Vec<Key>, residual: Vec<Expr>) {
        let becomes_inner = kind == JoinKind::Inner || kind == JoinKind::Left && self.rejects_nulls_of(&output(&right));
        if becomes_inner {
            self.conjuncts.extend(split(residual));
            self.gather(left);
            return self.gather(right);
        }
        let mut condition = split(residual);
        if kind == JoinKind::Semi {
            // What it asks of left rows alone, it asks of all that leave it.
            let of_right = output(&right);
            let (joint, own): (Vec<Expr>, Vec<Expr>) = condition.into_iter().partition(|one| refers(one, &of_right));
            condition = joint;
            self.conjuncts.extend(own);
        }
        let at = self.relations.len();
        let link = Link { kind, key: keys.pop(), condition };
        self.relations.push(Relation { node: right, link: Some(link) });
        self.gather(left);
        // What is linked comes behind what it is linked to.
        let linked = self.relations.remove(at);
        self.relations.push(linked);
    }

    /// Whether a condition that every row has to fulfil is not true where these columns are null.
    fn rejects_nulls_of(&self, columns: &ColSet) -> bool {
        let of_semi_joins = self.relations.iter().filter_map(|relation| match &relation.link {
            Some(link) if link.kind == JoinKind::Semi => Some(&link.condition),
            _ => None,
        });
        of_semi_joins.flatten().chain(&self.conjuncts).any(|conjunct| rejects_nulls(conjunct, columns))
    }

    fn dissolve(&mut self, definitions: Definitions) {
        let change = |expr: &mut Expr| {
            let taken = std::mem::replace(expr, Expr::bool(false));
            *expr = substitute(taken, &definitions);
        };
        self.conjuncts.iter_mut().for_each(change);
        self.definitions.values_mut().for_each(change);
        for link in self.relations.iter_mut().filter_map(|relation| relation.link.as_mut()) {
            link.condition.iter_mut().for_each(change);
            link.key.iter_mut().for_each(|key| change(&mut key.left));
        }
        self.definitions.extend(definitions);
    }

    fn size(&self) -> usize {
        let mut size = 0;
        for expr in self.conjuncts.iter().chain(self.definitions.values()) {
            expr.walk(&mut |_| {
                size += 1;
                true
            });
        }
        size
    }

    /// Adds what ORs over several relations ask of each of them.
    fn derive(&mut self) {
        let columns: Vec<ColSet> =
            self.relations.iter().filter(|one| one.link.is_none()).map(|one| output(&one.node)).collect();
        let spans = |conjunct: &Expr| columns.iter().all(|own| !within(conjunct, own));
        let wide = self.conjuncts.iter().filter(|conjunct| spans(conjunct));
        let derived = wide.flat_map(|conjunct| columns.iter().filter_map(move |own| implied(conjunct, own)));
        let derived: Vec<Expr> = derived.collect();
        self.conjuncts.extend(split(derived));
    }

    /// The outputs of the whole, if some of them are computed.
    pub fn outputs(&self, columns: &[(ColId, basalt_types::DataType)]) -> Option<Vec<(ColId, Expr)>> {
        if !columns.iter().any(|(id, _)| self.definitions.contains_key(id)) {
            return None;
        }
        let output = |(id, ty): &(ColId, basalt_types::DataType)| {
            (*id, self.definitions.get(id).cloned().unwrap_or_else(|| hole(*id, ty.clone())))
        };
        Some(columns.iter().map(output).collect())
    }
}
