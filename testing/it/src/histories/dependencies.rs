//! Which transaction depends on which, and by what (Adya, Liskov and O'Neil, section 4.4):
//! *ww* the next value of a list is the other's, *wr* it has read the other's value as the last one, *rw* (an
//! anti-dependency) it has read the list as it was before the other's value.

use super::show::name;
use super::versions::Versions;
use super::{Key, Reading, Seen, Value};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum By {
    Ww,
    Wr,
    Rw,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Dependency {
    pub by: By,
    pub from: usize,
    pub to: usize,
    pub key: Key,
    /// What `from` has appended (ww, wr), or `to` (rw).
    pub value: Value,
    /// What `to` has appended next (ww only).
    pub next: Value,
    /// Of the reader: which statement it was, and how it read.
    pub statement: u32,
    pub by_range: bool,
    /// Whether the reader kept the row locked, so that nobody could change it before the reader's end.
    pub locked: bool,
}

impl Dependency {
    pub fn why(&self) -> String {
        let (from, to) = (name(self.from), name(self.to));
        let (key, value, next) = (self.key.0, self.value.0, self.next.0);
        let how = if self.by_range { "within a range, " } else { "" };
        match self.by {
            By::Ww => format!("{from} →ww {to}: key {key} has {value} of {from}, then {next} of {to}"),
            By::Wr => format!("{from} →wr {to}: {how}{to} read key {key} up to {value}, which {from} appended"),
            By::Rw => {
                format!("{from} →rw {to}: {how}{from} read key {key} without {value}, which {to} appended next")
            }
        }
    }
}

/// All of them between different committed transactions. Lists that contradict the key's order are left out.
pub(super) fn dependencies(versions: &Versions) -> Vec<Dependency> {
    let mut found = Vec::new();
    let writer = |key: Key, value: Value| {
        let writer = versions.writer.get(&(key, value)).copied();
        writer.filter(|at| versions.alive[*at])
    };
    for (key, order) in &versions.order {
        let written = order.iter().filter_map(|value| Some((*value, writer(*key, *value)?)));
        let written: Vec<(Value, usize)> = written.collect();
        for pair in written.windows(2).filter(|pair| pair[0].1 != pair[1].1) {
            let [(value, from), (next, to)] = [pair[0], pair[1]];
            let (statement, by_range, locked) = (0, false, false);
            found.push(Dependency { by: By::Ww, from, to, key: *key, value, next, statement, by_range, locked });
        }
    }
    for (reader, seen) in versions.reads() {
        let order = versions.order[&seen.key];
        // What a transaction sees behind its own appends says no more than that they come next.
        if !order.starts_with(seen.list) || versions.is_own(reader, &seen) {
            continue;
        }
        let of_read = |by, from, to, value| Dependency {
            by,
            from,
            to,
            key: seen.key,
            value,
            next: value,
            statement: seen.statement,
            by_range: seen.by_range,
            locked: is_locked(&seen),
        };
        let last = seen.list.iter().rev().find_map(|value| Some((*value, writer(seen.key, *value)?)));
        if let Some((value, from)) = last {
            found.push(of_read(By::Wr, from, reader, value));
        }
        let next = order[seen.list.len()..].iter().find_map(|value| Some((*value, writer(seen.key, *value)?)));
        if let Some((value, to)) = next.filter(|(_, to)| *to != reader) {
            found.push(of_read(By::Rw, reader, to, value));
        }
    }
    found
}

/// There is nothing to lock where there is no row.
fn is_locked(seen: &Seen) -> bool {
    seen.reading == Reading::Locked && !seen.list.is_empty()
}
