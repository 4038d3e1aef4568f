//! Better orders of joins than the greedy one, where there are too many to look at all: a line of leaves is drawn, and of
//! all trees whose joins each put two neighbouring stretches of it together the cheapest is found (as Neumann and
//! Radke do, "Adaptive Optimization of Very Large Join Queries", SIGMOD 2018, section 4; they draw another line).
//!
//! The line is that of the leaves of the tree that is known, from left to right: it is among the trees that are looked at,
//! so what is found is never worse. A better tree draws another line.

use super::graph::{Graph, Set};

/// Lines that are drawn at most.
const LINES_MAX: usize = 3;
/// A better tree that costs hardly less is not worth another line.
const SHARE_MAX: f64 = 0.99;

/// Looks for a better order of all leaves than the one that is known.
pub fn improve(graph: &mut Graph) {
    let all = graph.all();
    let cost = |graph: &Graph| graph.table.get(&all).map_or(0.0, |entry| entry.cost);
    for _ in 0..LINES_MAX {
        let before = cost(graph);
        let mut line = Vec::with_capacity(graph.leaves.len());
        draw(graph, all, &mut line);
        join_stretches(graph, &line);
        if cost(graph) >= before * SHARE_MAX {
            break;
        }
    }
}

/// The leaves of a set's best tree.
fn draw(graph: &Graph, set: Set, line: &mut Vec<Set>) {
    match graph.table.get(&set) {
        Some(entry) if entry.left != 0 => {
            draw(graph, entry.left, line);
            draw(graph, entry.right, line);
        }
        _ => line.push(set),
    }
}

fn join_stretches(graph: &mut Graph, line: &[Set]) {
    let leaves = line.len();
    // Of the first leaves of the line.
    let mut first: Vec<Set> = vec![0];
    line.iter().for_each(|leaf| first.push(first[first.len() - 1] | leaf));
    for length in 2..=leaves {
        for from in 0..=leaves - length {
            for cut in from + 1..from + length {
                let (left, right) = (first[cut] & !first[from], first[from + length] & !first[cut]);
                if graph.connects(left, right) {
                    graph.consider(left, right);
                }
            }
        }
    }
}
