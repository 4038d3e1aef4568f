//! Who holds what, and who waits for whom: for `pg_locks`, `pg_blocking_pids` and what a deadlock's error says.

use super::{Locks, Mode, Object, Owner, Table};
use std::collections::HashSet;
use std::fmt;

/// A lock that somebody has, or waits for, in one of its modes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockReport {
    pub owner: Owner,
    pub object: Object,
    /// As `pg_locks` calls it.
    pub mode: &'static str,
    pub granted: bool,
}

/// A session that waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWaiter {
    pub session: i32,
    pub object: Object,
    pub mode: &'static str,
    /// Sessions in the way; 0 for one that nobody has.
    pub blocked_by: Vec<i32>,
}

/// Somebody is in the way of somebody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWait {
    pub session: i32,
    pub object: Object,
    /// The object as users know it.
    pub name: String,
    pub mode: &'static str,
    pub blocked_by: i32,
}

impl fmt::Display for LockWait {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LockWait { session, mode, name, blocked_by, .. } = self;
        write!(out, "Process {session} waits for {mode} on {name}; blocked by process {blocked_by}.")
    }
}

impl Mode {
    /// PostgreSQL's names of the modes within; a row's are those that it takes of a tuple.
    fn names(self) -> impl Iterator<Item = &'static str> {
        const TABLE: [&str; 8] = [
            "AccessShareLock",
            "RowShareLock",
            "RowExclusiveLock",
            "ShareUpdateExclusiveLock",
            "ShareLock",
            "ShareRowExclusiveLock",
            "ExclusiveLock",
            "AccessExclusiveLock",
        ];
        const ROW: [&str; 4] = ["AccessShareLock", "RowShareLock", "ExclusiveLock", "AccessExclusiveLock"];
        let names = TABLE.into_iter().chain(ROW).enumerate();
        names.filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| name)
    }

    /// A transaction's lock on itself excludes whoever waits for its end.
    fn names_on(self, object: &Object) -> Vec<&'static str> {
        match object {
            Object::Table(_) | Object::Row(..) | Object::Values(..) => self.names().collect(),
            Object::Txn(_) | Object::Owner(_) if self == Mode::RUNNING => vec!["ExclusiveLock"],
            Object::Txn(_) | Object::Owner(_) => vec!["ShareLock"],
        }
    }
}

impl Locks {
    /// What is held, but rows and values that nobody waits for, and what is waited for. Not of one moment: others take and release
    /// locks during the call.
    pub fn report(&self) -> Vec<LockReport> {
        let (mut reports, owners, contended) = {
            let table = self.table.lock();
            let contended: HashSet<Object> = table.waiting.values().cloned().collect();
            let mut reports = Vec::new();
            for object in &contended {
                let queue = table.entries.get(object).into_iter().flat_map(|entry| &entry.queue);
                reports.extend(queue.flat_map(|waiter| of_one(waiter.owner, object, waiter.mode, false)));
            }
            let owners: Vec<Owner> = table.held.keys().copied().collect();
            (reports, owners, contended)
        };
        for owner in owners {
            self.each_chunk(owner, |table, chunk| {
                let is_one_of_many = |held: &Object| matches!(held, Object::Row(..) | Object::Values(..));
                for object in chunk.iter().filter(|held| !is_one_of_many(held) || contended.contains(held)) {
                    let holders = table.entries.get(object).map_or(&[][..], |entry| &entry.holders);
                    let held = holders.iter().find(|(holder, _)| *holder == owner);
                    reports.extend(held.into_iter().flat_map(|(_, mode)| of_one(owner, object, *mode, true)));
                }
            });
        }
        reports.sort_by_key(|report| (report.owner, !report.granted));
        reports
    }

    /// What a session waits for.
    pub fn waits(&self) -> Vec<(i32, Object)> {
        self.table.lock().waiting.iter().map(|(owner, object)| (owner.session, object.clone())).collect()
    }

    /// Sessions in the way of what a session waits for: holders, and who asked before.
    pub fn blockers(&self, session: i32) -> Vec<i32> {
        let table = self.table.lock();
        let waiting = table.waiting.keys().filter(|owner| owner.session == session);
        let mut blockers: Vec<i32> =
            waiting.flat_map(|owner| table.in_the_way(*owner)).map(|blocker| blocker.session).collect();
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// All who wait, and for whom: of one moment.
    pub fn waiters(&self) -> Vec<LockWaiter> {
        let table = self.table.lock();
        let waiter = |(owner, object): (&Owner, &Object)| LockWaiter {
            session: owner.session,
            object: object.clone(),
            mode: table.mode_name_of(*owner, object),
            blocked_by: table.in_the_way(*owner).into_iter().map(|blocker| blocker.session).collect(),
        };
        table.waiting.iter().map(waiter).collect()
    }
}

impl Table {
    /// The mode that a waiting owner asks for.
    fn asked(&self, owner: Owner, object: &Object) -> Option<Mode> {
        let queue = &self.entries.get(object)?.queue;
        queue.iter().find(|waiter| waiter.owner == owner).map(|waiter| waiter.mode)
    }

    /// How the mode is called that a waiting owner asks for.
    fn mode_name_of(&self, owner: Owner, object: &Object) -> &'static str {
        self.asked(owner, object).and_then(|mode| mode.names_on(object).pop()).unwrap_or_default()
    }

    /// Whom an owner waits for, holders first.
    fn in_the_way(&self, owner: Owner) -> Vec<Owner> {
        let Some(object) = self.waiting.get(&owner) else { return Vec::new() };
        let (Some(entry), Some(mode)) = (self.entries.get(object), self.asked(owner, object)) else {
            return Vec::new();
        };
        let holders = entry.holders.iter().map(|(holder, held)| (*holder, *held));
        let ahead = entry.queue.iter().take_while(|waiter| waiter.owner != owner);
        let all = holders.chain(ahead.map(|waiter| (waiter.owner, waiter.mode)));
        all.filter(|(other, held)| *other != owner && held.conflicts_with(mode)).map(|(other, _)| other).collect()
    }
}

fn of_one(owner: Owner, object: &Object, mode: Mode, granted: bool) -> impl Iterator<Item = LockReport> {
    mode.names_on(object).into_iter().map(move |mode| LockReport { owner, object: object.clone(), mode, granted })
}

/// How the owners of a circle wait, from one on. Objects have no names yet.
pub(super) fn waits_of(table: &Table, cycle: &[Owner], first: Owner) -> Vec<LockWait> {
    let mut waits = Vec::new();
    let mut seen = HashSet::new();
    let mut owner = first;
    while seen.insert(owner) {
        let blocker = table.in_the_way(owner).into_iter().find(|other| cycle.contains(other));
        let (Some(object), Some(blocker)) = (table.waiting.get(&owner), blocker) else { break };
        waits.push(LockWait {
            session: owner.session,
            object: object.clone(),
            name: object.to_string(),
            mode: table.mode_name_of(owner, object),
            blocked_by: blocker.session,
        });
        owner = blocker;
    }
    waits
}
