//! Orders of joins where there are too many to look at all: again and again the two sets are joined that give the
//! fewest rows (Fegaras's greedy operator ordering). Sets that no condition connects are crossed when nothing else is
//! left.

use super::graph::{Graph, Set};

/// `None` if a leaf finds no place.
pub fn enumerate(graph: &mut Graph) -> Option<()> {
    let mut parts: Vec<Set> = components(graph);
    while parts.len() > 1 {
        let (a, b) = cheapest(graph, &parts, true).or_else(|| cheapest(graph, &parts, false))?;
        parts.retain(|part| *part != a && *part != b);
        parts.push(a | b);
    }
    Some(())
}

/// Connected sets for which an order is known already, single leaves of the others.
fn components(graph: &Graph) -> Vec<Set> {
    let mut sets: Vec<Set> = (0..graph.leaves.len()).map(|at| 1 << at).collect();
    for (u, v) in &graph.edges {
        let (joined, mut others): (Vec<Set>, Vec<Set>) = sets.into_iter().partition(|set| set & (u | v) != 0);
        others.push(joined.into_iter().fold(0, |all, set| all | set));
        sets = others;
    }
    let leaves = |set: Set| (0..graph.leaves.len()).map(|at| 1 << at).filter(move |leaf| set & leaf != 0);
    let known = |set: Set| graph.table.contains_key(&set) && graph.linked(set).is_none();
    sets.into_iter().flat_map(|set| if known(set) { vec![set] } else { leaves(set).collect() }).collect()
}

fn cheapest(graph: &mut Graph, parts: &[Set], connected: bool) -> Option<(Set, Set)> {
    let mut best: Option<(f64, Set, Set)> = None;
    for (at, a) in parts.iter().enumerate() {
        for b in &parts[at + 1..] {
            if connected && !graph.connects(*a, *b) {
                continue;
            }
            if let Some(rows) = graph.consider(*a, *b)
                && best.is_none_or(|(least, ..)| rows < least)
            {
                best = Some((rows, *a, *b));
            }
        }
    }
    best.map(|(_, a, b)| (a, b))
}
