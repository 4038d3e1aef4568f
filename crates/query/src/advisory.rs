//! Advisory locks (manual 13.3.5 and 9.27.10): locks on numbers that mean what the application says.
//!
//! A session may hold a lock many times, for itself and for its transaction, and gives back one hold at a time. Who
//! must wait stands in a queue per lock; nobody overtakes a request that it conflicts with, unless it holds the lock
//! already. Sessions that wait for one another in a circle are told so at once: the one that closes it is refused
//! (40P01). A circle that goes through rows or tables, too, whose locks are the engine's, is found by one of those in it who wait
//! for an advisory lock, after `deadlock_timeout`. Whoever finds it leaves the queue under the mutex, so that one alone
//! is refused.

use crate::error::{Result, SqlError};
use basalt_engine::{LockObject, LockWaiter};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque, hash_map};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What is locked: a number of 64 bits, or two of 32, in one database.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AdvisoryKey {
    pub database: u32,
    pub high: u32,
    pub low: u32,
    pub is_pair: bool,
}

/// Who asks, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdvisoryRequest {
    pub pid: i32,
    pub exclusive: bool,
    /// Until the transaction ends.
    pub transactional: bool,
}

/// Holds of one session.
#[derive(Default)]
struct Holder {
    pid: i32,
    /// By exclusiveness, then by whether the transaction's end gives them back.
    counts: [[u32; 2]; 2],
}

impl Holder {
    fn is_exclusive(&self) -> bool {
        self.counts[1] != [0, 0]
    }
}

struct Waiter {
    ticket: u64,
    pid: i32,
    exclusive: bool,
}

#[derive(Default)]
struct Entry {
    holders: Vec<Holder>,
    queue: VecDeque<Waiter>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<AdvisoryKey, Entry>,
    /// What each session's transaction holds, in the order taken.
    transactional: HashMap<i32, Vec<(AdvisoryKey, bool)>>,
    tickets: u64,
}

/// A session that waits for another one.
#[derive(Clone, PartialEq, Eq)]
struct Wait {
    from: i32,
    what: What,
    by: i32,
}

#[derive(Clone, PartialEq, Eq)]
enum What {
    /// Exclusively or not.
    Here(AdvisoryKey, bool),
    /// In a mode.
    Elsewhere(LockObject, &'static str),
}

impl Wait {
    fn told(&self, name_of: &dyn Fn(&LockObject) -> String) -> String {
        let (mode, name) = match &self.what {
            What::Here(key, exclusive) => (mode_name(*exclusive), key.to_string()),
            What::Elsewhere(object, mode) => (*mode, name_of(object)),
        };
        format!("Process {} waits for {mode} on {name}; blocked by process {}.", self.from, self.by)
    }
}

/// How long somebody waits, and what it looks at meanwhile.
pub struct AdvisoryWait<'a> {
    /// `lock_timeout`.
    pub limit: Option<Duration>,
    /// When circles through other locks are looked for, and how often.
    pub deadlock_timeout: Duration,
    /// Whether the statement that asks has ended.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// Who waits for rows, tables and transactions.
    pub elsewhere: &'a (dyn Fn() -> Vec<LockWaiter> + Sync),
    /// How these are called.
    pub name_of: &'a (dyn Fn(&LockObject) -> String + Sync),
}

/// All of a database server. One mutex guards it; nothing is awaited inside.
#[derive(Default)]
pub struct AdvisoryLocks {
    table: Mutex<Table>,
    /// Holds of all transactions: where there are none, the ends of transactions pass the mutex by.
    transactional: AtomicUsize,
    changed: Notify,
}

/// How often a waiter looks whether its statement has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Entry {
    /// Sessions that stand in the way of a request, which waits as `ticket` or is new.
    fn blockers(&self, pid: i32, exclusive: bool, ticket: u64) -> Vec<i32> {
        let held = self.holders.iter().any(|holder| holder.pid == pid);
        let holders = self.holders.iter().filter(|holder| exclusive || holder.is_exclusive()).map(|holder| holder.pid);
        let ahead = self
            .queue
            .iter()
            .filter(|waiter| !held && waiter.ticket < ticket && (exclusive || waiter.exclusive))
            .map(|waiter| waiter.pid);
        holders.chain(ahead).filter(|other| *other != pid).collect()
    }

    /// Of those who stand in the way of a waiter so many that all others are behind them: holders, and whoever comes
    /// before it up to one that nobody passes.
    fn nearest_blockers(&self, at: usize, mut meet: impl FnMut(i32)) {
        let Waiter { pid, exclusive, .. } = self.queue[at];
        let holds = |pid: i32| self.holders.iter().any(|holder| holder.pid == pid);
        let holders = self.holders.iter().filter(|holder| holder.pid != pid && (exclusive || holder.is_exclusive()));
        holders.for_each(|holder| meet(holder.pid));
        // Whoever holds the lock passes the queue.
        if holds(pid) {
            return;
        }
        for ahead in self.queue.range(..at).rev().filter(|ahead| ahead.pid != pid && (exclusive || ahead.exclusive)) {
            meet(ahead.pid);
            if ahead.exclusive && !holds(ahead.pid) {
                return;
            }
        }
    }
}

impl Table {
    fn grant(&mut self, key: AdvisoryKey, request: AdvisoryRequest) {
        let entry = self.entries.entry(key).or_default();
        let at = entry.holders.iter().position(|holder| holder.pid == request.pid).unwrap_or_else(|| {
            entry.holders.push(Holder { pid: request.pid, ..Holder::default() });
            entry.holders.len() - 1
        });
        entry.holders[at].counts[usize::from(request.exclusive)][usize::from(request.transactional)] += 1;
        if request.transactional {
            self.transactional.entry(request.pid).or_default().push((key, request.exclusive));
        }
    }

    /// Takes one hold away; false if there is none.
    fn release(&mut self, key: AdvisoryKey, request: AdvisoryRequest) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        let Some(at) = entry.holders.iter().position(|holder| holder.pid == request.pid) else { return false };
        let count = &mut entry.holders[at].counts[usize::from(request.exclusive)][usize::from(request.transactional)];
        if *count == 0 {
            return false;
        }
        *count -= 1;
        if entry.holders[at].counts == [[0, 0], [0, 0]] {
            entry.holders.swap_remove(at);
        }
        self.forget_if_free(key);
        true
    }

    fn forget_if_free(&mut self, key: AdvisoryKey) {
        if self.entries.get(&key).is_some_and(|entry| entry.holders.is_empty() && entry.queue.is_empty()) {
            self.entries.remove(&key);
        }
    }

    /// Whether `pid` waits, over any number of others, for itself; if so, how those wait who are in between, it first.
    /// `elsewhere`: who waits for locks that are not here.
    fn circle_through(&self, pid: i32, elsewhere: &[LockWaiter]) -> Option<Vec<Wait>> {
        let mut waits: HashMap<i32, Vec<(AdvisoryKey, &Entry, usize)>> = HashMap::new();
        for (key, entry) in &self.entries {
            for (at, waiter) in entry.queue.iter().enumerate() {
                waits.entry(waiter.pid).or_default().push((*key, entry, at));
            }
        }
        let mut others: HashMap<i32, Vec<&LockWaiter>> = HashMap::new();
        for waiter in elsewhere {
            others.entry(waiter.session).or_default().push(waiter);
        }
        // How each session was met.
        let mut met: HashMap<i32, Wait> = HashMap::new();
        let mut open = vec![pid];
        while let Some(from) = open.pop() {
            let mut meet = |by: i32, what: &dyn Fn() -> What| {
                if let hash_map::Entry::Vacant(new) = met.entry(by) {
                    new.insert(Wait { from, what: what(), by });
                    open.push(by);
                }
            };
            for (key, entry, at) in waits.get(&from).into_iter().flatten() {
                let exclusive = entry.queue[*at].exclusive;
                entry.nearest_blockers(*at, |by| meet(by, &|| What::Here(*key, exclusive)));
            }
            for waiter in others.get(&from).into_iter().flatten() {
                let known = waiter.blocked_by.iter().filter(|by| **by != 0);
                known.for_each(|by| meet(*by, &|| What::Elsewhere(waiter.object.clone(), waiter.mode)));
            }
            if met.contains_key(&pid) {
                break;
            }
        }
        let mut circle = Vec::new();
        let mut by = pid;
        loop {
            let wait = met.get(&by)?;
            circle.push(wait.clone());
            by = wait.from;
            if by == pid {
                circle.reverse();
                return Some(circle);
            }
        }
    }
}

/// A lock that a session has, or waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdvisoryReport {
    pub key: AdvisoryKey,
    pub pid: i32,
    pub exclusive: bool,
    pub granted: bool,
}

/// As `pg_locks` calls it.
pub fn mode_name(exclusive: bool) -> &'static str {
    if exclusive { "ExclusiveLock" } else { "ShareLock" }
}

impl fmt::Display for AdvisoryKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_pair { 2 } else { 1 };
        write!(out, "advisory lock [{},{},{},{kind}]", self.database, self.high, self.low)
    }
}

impl AdvisoryLocks {
    /// Who has and who waits for which lock, by session.
    pub fn report(&self) -> Vec<AdvisoryReport> {
        let table = self.table.lock();
        let mut reports = Vec::new();
        for (key, entry) in &table.entries {
            for holder in &entry.holders {
                let held =
                    [false, true].into_iter().filter(|exclusive| holder.counts[usize::from(*exclusive)] != [0, 0]);
                reports.extend(held.map(|exclusive| AdvisoryReport {
                    key: *key,
                    pid: holder.pid,
                    exclusive,
                    granted: true,
                }));
            }
            reports.extend(entry.queue.iter().map(|waiter| AdvisoryReport {
                key: *key,
                pid: waiter.pid,
                exclusive: waiter.exclusive,
                granted: false,
            }));
        }
        reports.sort_by_key(|told| (told.pid, !told.granted, told.key.high, told.key.low));
        reports
    }

    /// Sessions that wait.
    pub fn waiting(&self) -> Vec<i32> {
        let table = self.table.lock();
        table.entries.values().flat_map(|entry| entry.queue.iter().map(|waiter| waiter.pid)).collect()
    }

    /// Sessions in the way of what a session waits for.
    pub fn blockers(&self, pid: i32) -> Vec<i32> {
        let table = self.table.lock();
        let waits = |entry: &Entry| -> Vec<i32> {
            let waiting = entry.queue.iter().filter(|waiter| waiter.pid == pid);
            waiting.flat_map(|waiter| entry.blockers(pid, waiter.exclusive, waiter.ticket)).collect()
        };
        table.entries.values().flat_map(waits).collect()
    }

    /// Takes a lock if nobody is in the way.
    pub fn try_lock(&self, key: AdvisoryKey, request: AdvisoryRequest) -> bool {
        let mut table = self.table.lock();
        let free = table
            .entries
            .get(&key)
            .is_none_or(|entry| entry.blockers(request.pid, request.exclusive, u64::MAX).is_empty());
        if free {
            self.grant(&mut table, key, request);
        }
        free
    }

    /// Takes a lock, waiting for those in the way.
    pub async fn lock(&self, key: AdvisoryKey, request: AdvisoryRequest, wait: AdvisoryWait<'_>) -> Result<()> {
        if self.try_lock(key, request) {
            return Ok(());
        }
        let ticket = self.enqueue(key, request)?;
        let place = Place { locks: self, key, ticket };
        let until = wait.limit.map(|limit| Instant::now() + limit);
        let mut look_at = Instant::now() + wait.deadlock_timeout;
        let mut seen = None;
        loop {
            let changed = self.changed.notified();
            if (wait.is_over)() {
                return Err(SqlError::canceled());
            }
            if self.take_turn(key, request, ticket) {
                std::mem::forget(place);
                self.changed.notify_waiters();
                return Ok(());
            }
            let now = Instant::now();
            if until.is_some_and(|until| now >= until) {
                return Err(SqlError::new("55P03", "canceling statement due to lock timeout"));
            }
            if now >= look_at {
                // Waits here and elsewhere are not of one moment: a circle is one if it is there again.
                seen = self.look_for_circle(key, request.pid, ticket, &wait, seen)?;
                look_at = now + if seen.is_some() { LOOK_EVERY } else { wait.deadlock_timeout };
            }
            let look = until.map_or(LOOK_EVERY, |until| LOOK_EVERY.min(until.saturating_duration_since(now)));
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(look) => {}
            }
        }
    }

    fn enqueue(&self, key: AdvisoryKey, request: AdvisoryRequest) -> Result<u64> {
        let mut table = self.table.lock();
        table.tickets += 1;
        let ticket = table.tickets;
        let waiter = Waiter { ticket, pid: request.pid, exclusive: request.exclusive };
        table.entries.entry(key).or_default().queue.push_back(waiter);
        if let Some(circle) = table.circle_through(request.pid, &[]) {
            leave(&mut table, key, ticket);
            return Err(deadlock(&circle, &|object| object.to_string()));
        }
        Ok(ticket)
    }

    /// The circle through other locks that a waiting session is part of, if it is; it is refused if that was `seen` before.
    fn look_for_circle(
        &self,
        key: AdvisoryKey,
        pid: i32,
        ticket: u64,
        wait: &AdvisoryWait<'_>,
        seen: Option<Vec<Wait>>,
    ) -> Result<Option<Vec<Wait>>> {
        let elsewhere = (wait.elsewhere)();
        // A circle of advisory locks alone was found when it was closed.
        if elsewhere.is_empty() {
            return Ok(None);
        }
        let circle = {
            let mut table = self.table.lock();
            let circle = table.circle_through(pid, &elsewhere);
            if circle.is_none() || circle != seen {
                return Ok(circle);
            }
            leave(&mut table, key, ticket);
            circle.unwrap_or_default()
        };
        Err(deadlock(&circle, wait.name_of))
    }

    /// Grants the request that waits as `ticket` if it can be.
    fn take_turn(&self, key: AdvisoryKey, request: AdvisoryRequest, ticket: u64) -> bool {
        let mut table = self.table.lock();
        let free = table
            .entries
            .get(&key)
            .is_none_or(|entry| entry.blockers(request.pid, request.exclusive, ticket).is_empty());
        if free {
            leave(&mut table, key, ticket);
            self.grant(&mut table, key, request);
        }
        free
    }

    fn grant(&self, table: &mut Table, key: AdvisoryKey, request: AdvisoryRequest) {
        table.grant(key, request);
        self.transactional.fetch_add(usize::from(request.transactional), Ordering::Relaxed);
    }

    /// Gives one hold of the session back; false if it has none.
    pub fn unlock(&self, key: AdvisoryKey, request: AdvisoryRequest) -> bool {
        let released = self.table.lock().release(key, request);
        self.changed.notify_waiters();
        released
    }

    /// How many holds the session's transaction has: what [`AdvisoryLocks::release_since`] takes.
    pub fn mark(&self, pid: i32) -> usize {
        if self.transactional.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.table.lock().transactional.get(&pid).map_or(0, Vec::len)
    }

    /// Gives back what the transaction took since the mark; 0 for all.
    pub fn release_since(&self, pid: i32, mark: usize) {
        // Those of this session were counted before it came here.
        if self.transactional.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut table = self.table.lock();
        let Some(held) = table.transactional.get_mut(&pid) else { return };
        let given = held.split_off(mark.min(held.len()));
        self.transactional.fetch_sub(given.len(), Ordering::Relaxed);
        if held.is_empty() {
            table.transactional.remove(&pid);
        }
        for (key, exclusive) in given {
            table.release(key, AdvisoryRequest { pid, exclusive, transactional: true });
        }
        drop(table);
        self.changed.notify_waiters();
    }

    /// Gives back all that the session holds for itself.
    pub fn release_session(&self, pid: i32) {
        let mut table = self.table.lock();
        let keys: Vec<AdvisoryKey> = table.entries.keys().copied().collect();
        for key in keys {
            if let Some(entry) = table.entries.get_mut(&key) {
                for holder in entry.holders.iter_mut().filter(|holder| holder.pid == pid) {
                    holder.counts.iter_mut().for_each(|counts| counts[0] = 0);
                }
                entry.holders.retain(|holder| holder.counts != [[0, 0], [0, 0]]);
            }
            table.forget_if_free(key);
        }
        drop(table);
        self.changed.notify_waiters();
    }
}

fn deadlock(circle: &[Wait], name_of: &dyn Fn(&LockObject) -> String) -> SqlError {
    let lines: Vec<String> = circle.iter().map(|wait| wait.told(name_of)).collect();
    SqlError::new("40P01", "deadlock detected").with_detail(lines.join("\n"))
}

fn leave(table: &mut Table, key: AdvisoryKey, ticket: u64) {
    if let Some(entry) = table.entries.get_mut(&key) {
        entry.queue.retain(|waiter| waiter.ticket != ticket);
    }
    table.forget_if_free(key);
}

/// A place in the queue, given up when the waiter goes.
struct Place<'a> {
    locks: &'a AdvisoryLocks,
    key: AdvisoryKey,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        leave(&mut self.locks.table.lock(), self.key, self.ticket);
        self.locks.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
