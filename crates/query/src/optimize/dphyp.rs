//! All orders of joins without cross products, each pair of connected sets once (Moerkotte and Neumann, "Dynamic
//! Programming Strikes Back", SIGMOD 2008, section 3).
//!
//! Conditions over more than two leaves are hyperedges; of the set on their far side the lowest leaf stands for all in a
//! neighbourhood. The work is bounded: beyond [`STEPS_MAX`] the answer is "too many".

use super::graph::{Graph, Set, is_in, lowest};

/// Sets and pairs that are looked at.
const STEPS_MAX: usize = 12_000;

struct Enumeration<'g> {
    graph: &'g mut Graph,
    /// Edges both ways.
    edges: Vec<(Set, Set)>,
    /// Of each leaf those that a simple edge leads to.
    simple: Vec<Set>,
    steps: usize,
}

/// Fills the graph's table. False if that takes too long: the table is incomplete then.
pub fn enumerate(graph: &mut Graph) -> bool {
    let leaves = graph.leaves.len();
    let mut simple = vec![0; leaves];
    let mut edges = Vec::new();
    for (u, v) in graph.edges.iter().flat_map(|(u, v)| [(*u, *v), (*v, *u)]) {
        match u.count_ones() == 1 && v.count_ones() == 1 {
            true => simple[u.trailing_zeros() as usize] |= v,
            false => edges.push((u, v)),
        }
    }
    let mut work = Enumeration { graph, edges, simple, steps: 0 };
    for at in (0..leaves).rev() {
        let set = 1 << at;
        if !(work.emit(set) && work.grow(set, up_to(set))) {
            return false;
        }
    }
    true
}

/// The leaf and those with lower numbers.
fn up_to(leaf: Set) -> Set {
    leaf | (leaf - 1)
}

impl Enumeration<'_> {
    fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps <= STEPS_MAX
    }

    fn neighbours(&self, set: Set, excluded: Set) -> Set {
        let closed = set | excluded;
        let mut out = 0;
        let mut rest = set;
        while rest != 0 {
            out |= self.simple[rest.trailing_zeros() as usize];
            rest &= rest - 1;
        }
        out &= !closed;
        for (u, v) in &self.edges {
            if is_in(*u, set) && v & closed == 0 && v & out == 0 {
                out |= lowest(*v);
            }
        }
        out
    }

    /// Larger connected sets around this one, and what they can be joined with.
    fn grow(&mut self, set: Set, excluded: Set) -> bool {
        let around = self.neighbours(set, excluded);
        for part in subsets(around) {
            if !self.step() || self.graph.table.contains_key(&(set | part)) && !self.emit(set | part) {
                return false;
            }
        }
        subsets(around).all(|part| self.grow(set | part, excluded | around))
    }

    /// Everything that a set can be joined with.
    fn emit(&mut self, set: Set) -> bool {
        let excluded = set | up_to(lowest(set));
        let around = self.neighbours(set, excluded);
        let mut rest = around;
        while rest != 0 {
            let leaf = 1 << (Set::BITS - 1 - rest.leading_zeros());
            rest &= !leaf;
            if !self.step() {
                return false;
            }
            if self.graph.connects(set, leaf) {
                self.graph.consider(set, leaf);
            }
            if !self.grow_other(set, leaf, excluded | around & up_to(leaf)) {
                return false;
            }
        }
        true
    }

    /// Larger connected sets around the other side.
    fn grow_other(&mut self, set: Set, other: Set, excluded: Set) -> bool {
        let around = self.neighbours(other, excluded);
        for part in subsets(around) {
            if !self.step() {
                return false;
            }
            let grown = other | part;
            if self.graph.table.contains_key(&grown) && self.graph.connects(set, grown) {
                self.graph.consider(set, grown);
            }
        }
        subsets(around).all(|part| self.grow_other(set, other | part, excluded | around))
    }
}

/// All subsets but the empty one, smaller numbers first.
fn subsets(of: Set) -> impl Iterator<Item = Set> {
    let mut part: Set = 0;
    std::iter::from_fn(move || {
        part = part.wrapping_sub(of) & of;
        (part != 0).then_some(part)
    })
}
