//! Orders of joins where there are too many to look at all: again and again the two sets are joined that give the
//! fewest rows (Fegaras's greedy operator ordering). Sets that no condition connects are crossed when nothing else is
//! left.
//!
//! What two sets give does not change while others are joined, so after each join only those with the new set are looked
//! at.

use super::graph::{Graph, Set};

/// A join of two sets and its rows.
type Candidate = (f64, Set, Set);

/// `None` if a leaf finds no place.
pub fn enumerate(graph: &mut Graph) -> Option<()> {
    let mut parts: Vec<Set> = components(graph);
    let mut candidates: Vec<Candidate> = Vec::new();
    for at in 1..parts.len() {
        look(graph, &parts[..at], parts[at], &mut candidates);
    }
    while parts.len() > 1 {
        let (_, a, b) = fewest(&candidates).or_else(|| crossed(graph, &parts))?;
        parts.retain(|part| *part != a && *part != b);
        candidates.retain(|(_, one, other)| (one | other) & (a | b) == 0);
        look(graph, &parts, a | b, &mut candidates);
        parts.push(a | b);
    }
    Some(())
}

/// Connected sets for which an order is known already, single leaves of the others.
fn components(graph: &Graph) -> Vec<Set> {
    let mut sets: Vec<Set> = (0..graph.leaves.len()).map(|at| 1 << at).collect();
    let simple = graph.adjacent.iter().enumerate().map(|(at, around)| 1 << at | around);
    for edge in simple.chain(graph.hyperedges.iter().map(|(u, v)| u | v)) {
        let (joined, mut others): (Vec<Set>, Vec<Set>) = sets.into_iter().partition(|set| set & edge != 0);
        others.push(joined.into_iter().fold(0, |all, set| all | set));
        sets = others;
    }
    let leaves = |set: Set| (0..graph.leaves.len()).map(|at| 1 << at).filter(move |leaf| set & leaf != 0);
    let known = |set: Set| graph.table.contains_key(&set) && graph.linked(set).is_none();
    sets.into_iter().flat_map(|set| if known(set) { vec![set] } else { leaves(set).collect() }).collect()
}

/// The joins of a set with others that a condition connects with it.
fn look(graph: &mut Graph, others: &[Set], set: Set, candidates: &mut Vec<Candidate>) {
    for other in others {
        if graph.connects(*other, set)
            && let Some(rows) = graph.consider(*other, set)
        {
            candidates.push((rows, *other, set));
        }
    }
}

fn fewest(candidates: &[Candidate]) -> Option<Candidate> {
    candidates.iter().copied().reduce(|best, one| if one.0 < best.0 { one } else { best })
}

/// The join of two sets that no condition connects.
fn crossed(graph: &mut Graph, parts: &[Set]) -> Option<Candidate> {
    let mut candidates = Vec::new();
    for (at, a) in parts.iter().enumerate() {
        for b in &parts[at + 1..] {
            candidates.extend(graph.consider(*a, *b).map(|rows| (rows, *a, *b)));
        }
    }
    fewest(&candidates)
}
