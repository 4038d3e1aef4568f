//! The wait graph: who waits for whom, searched for a cycle when a new wait begins.

use super::{Object, Owner, Table};
use std::collections::HashSet;

/// Owners of a cycle that `start`'s wait closes, if there is one. Every cycle runs through the newest
/// wait, since all earlier waits were searched when they began.
pub(super) fn cycle_through(table: &Table, start: Owner) -> Option<Vec<Owner>> {
    let mut path = Vec::new();
    let mut done = HashSet::new();
    search(table, start, start, &mut path, &mut done).then_some(path)
}

/// Depth first from `at`; true when `goal` is met again, with the members in `path`.
fn search(table: &Table, at: Owner, goal: Owner, path: &mut Vec<Owner>, done: &mut HashSet<Owner>) -> bool {
    let Some(object) = table.waiting.get(&at) else { return false };
    path.push(at);
    for next in blockers(table, at, object) {
        if next == goal {
            return true;
        }
        if done.insert(next) && search(table, next, goal, path, done) {
            return true;
        }
    }
    path.pop();
    false
}

/// Those whose end `owner` waits for: conflicting holders, and conflicting waiters ahead of it.
fn blockers(table: &Table, owner: Owner, object: &Object) -> Vec<Owner> {
    let Some(entry) = table.entries.get(object) else { return Vec::new() };
    let Some(at) = entry.queue.iter().position(|waiter| waiter.owner == owner) else { return Vec::new() };
    let mode = entry.queue[at].mode;
    let holders = entry.holders.iter().filter(|(_, held)| held.conflicts_with(mode)).map(|(holder, _)| *holder);
    let ahead = entry.queue.iter().take(at).filter(|waiter| waiter.mode.conflicts_with(mode)).map(|w| w.owner);
    holders.chain(ahead).filter(|other| *other != owner).collect()
}
