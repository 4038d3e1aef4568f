//! All joins without cross products, each pair of connected sets once (Moerkotte and Neumann, "Dynamic Programming
//! Strikes Back", SIGMOD 2008, section 3).
//!
//! Conditions over more than two leaves are hyperedges; of the set on their far side the lowest leaf stands for all in a
//! neighbourhood. Pairs are found before anything is computed of them, so that to find out that there are too many costs
//! next to nothing.

use super::graph::{Graph, Set, is_in, lowest};
use ahash::AHashSet;

/// Pairs that are worth being looked at.
const PAIRS_MAX: usize = 12_000;
/// Sets that are tried, whether they are connected or not.
const STEPS_MAX: usize = 50_000;

struct Enumeration<'g> {
    graph: &'g Graph,
    /// Both ways.
    hyperedges: Vec<(Set, Set)>,
    connected: AHashSet<Set>,
    pairs: Vec<(Set, Set)>,
    steps: usize,
}

/// The pairs of sets that may be joined, each behind those that its sets are joined from; `None` if they are too many.
pub fn pairs(graph: &Graph) -> Option<Vec<(Set, Set)>> {
    let hyperedges = graph.hyperedges.iter().flat_map(|(u, v)| [(*u, *v), (*v, *u)]).collect();
    let leaves = graph.leaves.len();
    let connected = (0..leaves).map(|at| 1 << at).collect();
    let mut work = Enumeration { graph, hyperedges, connected, pairs: Vec::new(), steps: 0 };
    for at in (0..leaves).rev() {
        let set = 1 << at;
        work.emit(set)?;
        work.grow(set, up_to(set))?;
    }
    Some(work.pairs)
}

/// The leaf and those with lower numbers.
fn up_to(leaf: Set) -> Set {
    leaf | (leaf - 1)
}

impl Enumeration<'_> {
    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= STEPS_MAX).then_some(())
    }

    fn pair(&mut self, set: Set, other: Set) -> Option<()> {
        if self.graph.connects(set, other) {
            self.connected.insert(set | other);
            self.pairs.push((set, other));
        }
        (self.pairs.len() <= PAIRS_MAX).then_some(())
    }

    fn neighbours(&self, set: Set, excluded: Set) -> Set {
        let closed = set | excluded;
        let mut out = self.graph.around(set) & !closed;
        for (u, v) in &self.hyperedges {
            if is_in(*u, set) && v & closed == 0 && v & out == 0 {
                out |= lowest(*v);
            }
        }
        out
    }

    /// Larger connected sets around this one, and what they can be joined with.
    fn grow(&mut self, set: Set, excluded: Set) -> Option<()> {
        let around = self.neighbours(set, excluded);
        for part in subsets(around) {
            self.step()?;
            if self.connected.contains(&(set | part)) {
                self.emit(set | part)?;
            }
        }
        subsets(around).try_for_each(|part| self.grow(set | part, excluded | around))
    }

    /// Everything that a set can be joined with.
    fn emit(&mut self, set: Set) -> Option<()> {
        let excluded = set | up_to(lowest(set));
        let around = self.neighbours(set, excluded);
        let mut rest = around;
        while rest != 0 {
            let leaf = 1 << (Set::BITS - 1 - rest.leading_zeros());
            rest &= !leaf;
            self.step()?;
            self.pair(set, leaf)?;
            self.grow_other(set, leaf, excluded | around & up_to(leaf))?;
        }
        Some(())
    }

    /// Larger connected sets around the other side.
    fn grow_other(&mut self, set: Set, other: Set, excluded: Set) -> Option<()> {
        let around = self.neighbours(other, excluded);
        for part in subsets(around) {
            self.step()?;
            if self.connected.contains(&(other | part)) {
                self.pair(set, other | part)?;
            }
        }
        subsets(around).try_for_each(|part| self.grow_other(set, other | part, excluded | around))
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
