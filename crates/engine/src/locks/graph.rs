//! The wait graph: who waits for whom, searched for a cycle when a new wait begins.
//!
//! An owner waits in one queue. Those ahead of it in that queue wait for nothing else, so a cycle leaves an
//! object through its holders only: one walk from the owner's place to the front of the queue finds all whom
//! it waits for, directly or through others ahead.

use super::{Entry, Mode, Object, Owner, Table};
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
    let Some(queue) = Ahead::of(table, at, object) else { return false };
    if let Some(met) = queue.owners.iter().position(|ahead| ahead.owner == goal && at != goal) {
        path.push(at);
        queue.push_chain(queue.owners[met].behind, path);
        return true;
    }
    for (holder, held) in &queue.entry.holders {
        let Some(waiter) = queue.blocked_by(*held) else { continue };
        let leads_on = || table.waiting.contains_key(holder) && !done.contains(holder);
        if *holder == at || (*holder != goal && !leads_on()) {
            continue;
        }
        let before = path.len();
        path.push(at);
        queue.push_chain(waiter, path);
        if *holder == goal {
            return true;
        }
        done.insert(*holder);
        if search(table, *holder, goal, path, done) {
            return true;
        }
        path.truncate(before);
    }
    false
}

/// An owner's queue, from its own place to the front: those whom it waits for.
struct Ahead<'a> {
    entry: &'a Entry,
    /// The owner itself first.
    owners: Vec<Waits>,
    /// Per mode, who of them first asks for it.
    first: [Option<usize>; MODES],
    modes: Mode,
}

struct Waits {
    owner: Owner,
    /// Who of the owners waits for this one.
    behind: usize,
}

const MODES: usize = u16::BITS as usize;

impl<'a> Ahead<'a> {
    fn of(table: &'a Table, owner: Owner, object: &Object) -> Option<Ahead<'a>> {
        let entry = table.entries.get(object)?;
        let at = entry.queue.iter().position(|waiter| waiter.owner == owner)?;
        let mut ahead = Ahead { entry, owners: Vec::new(), first: [None; MODES], modes: Mode(0) };
        ahead.push(owner, entry.queue[at].mode, 0);
        for waiter in entry.queue.iter().take(at).rev() {
            if let Some(behind) = ahead.blocked_by(waiter.mode) {
                ahead.push(waiter.owner, waiter.mode, behind);
            }
        }
        Some(ahead)
    }

    fn push(&mut self, owner: Owner, mode: Mode, behind: usize) {
        let index = self.owners.len();
        self.owners.push(Waits { owner, behind });
        self.modes = self.modes.with(mode);
        for (bit, first) in self.first.iter_mut().enumerate() {
            if mode.0 >> bit & 1 == 1 {
                first.get_or_insert(index);
            }
        }
    }

    /// Who of the owners, if any, cannot go on while somebody has `mode` or is ahead with it.
    fn blocked_by(&self, mode: Mode) -> Option<usize> {
        let asked = mode.conflicts().0 & self.modes.0;
        (0..MODES).filter(|bit| asked >> bit & 1 == 1).filter_map(|bit| self.first[bit]).min()
    }

    /// The owners between the first one (left out) and this one.
    fn push_chain(&self, mut to: usize, path: &mut Vec<Owner>) {
        while to > 0 {
            path.push(self.owners[to].owner);
            to = self.owners[to].behind;
        }
    }
}
