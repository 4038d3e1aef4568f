//! Locks on tables, rows, values and transactions: fair queues, one wait graph, deadlock detection.
//!
//! Every wait in the engine is a wait for a lock held here, so the graph of waits is complete: a row, a
//! table, values that one row may have, or a transaction (held by the transaction itself, asked for by whoever
//! must know how it ends; of one that has written nothing, the owner stands for it).
//! Requests of one object are granted in the order they came; a request that the owner already covers, or
//! an upgrade by a holder, goes ahead of the queue. When a request must wait, the graph is searched for a
//! cycle through it; the youngest owner in the cycle is refused with a deadlock.
//!
//! One mutex guards the whole table. Critical sections are at most a chunk of hash operations long, or a walk
//! over the queues that a new waiter may close a cycle through; nothing is awaited and no other lock is taken
//! inside.

mod graph;
mod report;
#[cfg(test)]
mod tests;

pub use report::{LockReport, LockWait, LockWaiter};

use crate::{Error, Result};
use basalt_types::{Key, ObjectId, TabletId, TxnId};
use hashbrown::hash_map::EntryRef;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// PostgreSQL's table lock modes (manual 13.3.1), weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TableLock {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

/// PostgreSQL's row lock modes (manual 13.3.2), weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RowLock {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitPolicy {
    /// Waits at most this long (`lock_timeout`); `None`: for ever.
    Wait(Option<Duration>),
    /// `NOWAIT`.
    Fail,
    /// `SKIP LOCKED`.
    Skip,
}

/// Who holds locks: one per transaction, ascending with its start, so the greatest is the youngest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Owner {
    number: u64,
    /// Whose transaction it is, as reports tell it; 0 for nobody's.
    pub session: i32,
}

impl Owner {
    pub fn new(number: u64, session: i32) -> Owner {
        Owner { number, session }
    }
}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// What can be locked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Object {
    Table(ObjectId),
    /// The key, which several places of the table keep.
    Row(TabletId, Arc<[u8]>),
    /// Of a deferrable constraint: by its index, which keeps its id when it gets another tablet.
    Values(ObjectId, Arc<[u8]>),
    Txn(TxnId),
    /// Held by the owner itself, once somebody waits for its end.
    Owner(Owner),
}

/// How strongly: one bit per mode of the object's kind, several for a holder that asked several times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode(u16);

/// The key of an entry that is made where none was found.
impl From<&Object> for Object {
    fn from(object: &Object) -> Object {
        object.clone()
    }
}

impl Object {
    pub fn row(tablet: TabletId, key: &Key) -> Object {
        Object::Row(tablet, key.as_bytes().into())
    }
}

impl fmt::Display for Object {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Table(id) => write!(out, "relation {id}"),
            Object::Row(tablet, _) => write!(out, "row in tablet {tablet}"),
            Object::Values(index, _) => write!(out, "values in relation {index}"),
            Object::Txn(txn) => write!(out, "transaction {txn}"),
            Object::Owner(owner) => write!(out, "transaction of owner {}", owner.number),
        }
    }
}

impl From<TableLock> for Mode {
    fn from(mode: TableLock) -> Mode {
        Mode(1 << mode as u16)
    }
}

impl From<RowLock> for Mode {
    fn from(mode: RowLock) -> Mode {
        Mode(1 << (8 + mode as u16))
    }
}

impl Mode {
    /// Of a transaction on itself.
    pub const RUNNING: Mode = Mode(1 << 7);
    /// Of whoever waits for its end.
    pub const ENDED: Mode = Mode(1 << 0);

    /// The modes that conflict with any of `self`'s.
    fn conflicts(self) -> Mode {
        // Rows of manual tables 13.2 and 13.3 as bit sets, bit i = mode i.
        const TABLE: [u16; 8] =
            [0b1000_0000, 0b1100_0000, 0b1111_0000, 0b1111_1000, 0b1110_1100, 0b1111_1100, 0b1111_1110, 0b1111_1111];
        const ROW: [u16; 4] = [0b1000, 0b1100, 0b1110, 0b1111];
        let mut set = 0;
        for (i, row) in TABLE.iter().enumerate() {
            set |= if self.0 >> i & 1 == 1 { *row } else { 0 };
        }
        for (i, row) in ROW.iter().enumerate() {
            set |= if self.0 >> (8 + i) & 1 == 1 { *row << 8 } else { 0 };
        }
        Mode(set)
    }

    fn conflicts_with(self, other: Mode) -> bool {
        self.conflicts().0 & other.0 != 0
    }

    /// Whether holding `self` makes asking for `wanted` superfluous: it conflicts with at least as much.
    pub fn covers(self, wanted: Mode) -> bool {
        wanted.conflicts().0 & !self.conflicts().0 == 0
    }

    /// Whether no other mode of the same kind goes with it.
    fn excludes_all(self) -> bool {
        matches!(self.conflicts().0, 0x00ff | 0x0f00)
    }

    fn with(self, other: Mode) -> Mode {
        Mode(self.0 | other.0)
    }
}

/// Locks that one hold of the table looks at.
const CHUNK_LOCKS: usize = 1024;

#[derive(Default)]
struct Entry {
    /// Mostly one: it costs no allocation.
    holders: SmallVec<[(Owner, Mode); 1]>,
    queue: VecDeque<Waiter>,
}

struct Waiter {
    owner: Owner,
    mode: Mode,
    wake: oneshot::Sender<Result<()>>,
}

/// What an owner holds, in the order in which it was taken.
#[derive(Default)]
struct Held {
    objects: Vec<Object>,
    /// What was taken more strongly later, with the mode before.
    upgrades: Vec<(Object, Mode)>,
}

impl Held {
    fn strengthen(&mut self, object: &Object, held: &mut Mode, mode: Mode) {
        let before = std::mem::replace(held, held.with(mode));
        self.upgrades.push((object.clone(), before));
    }
}

/// How much an owner had taken at some time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LockPosition {
    objects: usize,
    upgrades: usize,
}

#[derive(Default)]
struct Table {
    entries: hashbrown::HashMap<Object, Entry, ahash::RandomState>,
    held: HashMap<Owner, Held, ahash::RandomState>,
    /// What each waiting owner waits for: an owner waits for one thing at a time.
    waiting: HashMap<Owner, Object, ahash::RandomState>,
    held_count: usize,
    /// Who has a table alone, or asks for one.
    excluding: HashSet<Owner, ahash::RandomState>,
    /// Why nobody may wait any more.
    stopped: Option<Error>,
}

pub struct Locks {
    table: Mutex<Table>,
    held_max: usize,
    /// The size of `excluding`.
    excluding_count: AtomicUsize,
}

/// What [`Locks::acquire`] came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acquired {
    /// The owner's first of the object, at once.
    Granted,
    /// The owner's first of the object, after waiting: what the caller read before may have changed.
    Waited,
    /// The owner had one of the object before. It may have waited for a stronger one.
    Held,
    /// Not acquired ([`WaitPolicy::Skip`]).
    Skipped,
}

impl Acquired {
    pub fn is_first(self) -> bool {
        matches!(self, Acquired::Granted | Acquired::Waited)
    }
}

enum Grant {
    First,
    Held,
    Blocked,
}

impl Locks {
    pub fn new(held_max: usize) -> Locks {
        Locks { table: Mutex::default(), held_max, excluding_count: AtomicUsize::new(0) }
    }

    /// Takes a lock until [`Locks::release_all`]. Dropping the future leaves the queue.
    pub async fn acquire(&self, owner: Owner, object: &Object, mode: Mode, policy: WaitPolicy) -> Result<Acquired> {
        let excludes = self.exclude(owner, object, mode);
        let acquired = self.request(owner, object, mode, policy).await?;
        if acquired != Acquired::Skipped {
            // Counted until the end.
            std::mem::forget(excludes);
        }
        Ok(acquired)
    }

    /// Counts whoever asks for a table alone, if it is not counted yet.
    fn exclude(&self, owner: Owner, object: &Object, mode: Mode) -> Option<Excludes<'_>> {
        let alone = matches!(object, Object::Table(_)) && mode.excludes_all();
        let counts = alone && self.table.lock().excluding.insert(owner);
        counts.then(|| {
            self.excluding_count.fetch_add(1, Ordering::SeqCst);
            Excludes { locks: self, owner }
        })
    }

    async fn request(&self, owner: Owner, object: &Object, mode: Mode, policy: WaitPolicy) -> Result<Acquired> {
        let (receiver, acquired) = {
            let mut table = self.table.lock();
            match table.try_grant(owner, object, mode, self.held_max)? {
                Grant::First => return Ok(Acquired::Granted),
                Grant::Held => return Ok(Acquired::Held),
                Grant::Blocked => {}
            }
            match policy {
                WaitPolicy::Fail => return Err(Error::LockNotAvailable(object.to_string())),
                WaitPolicy::Skip => return Ok(Acquired::Skipped),
                WaitPolicy::Wait(_) => {}
            }
            if let Some(error) = &table.stopped {
                return Err(error.clone());
            }
            table.enqueue(owner, object, mode)?
        };
        let leave = LeaveQueue { locks: self, owner, object };
        let outcome = match policy {
            WaitPolicy::Wait(Some(limit)) => match timeout(limit, receiver).await {
                Some(outcome) => outcome,
                None => {
                    drop(leave);
                    return Err(Error::LockTimeout(limit));
                }
            },
            _ => receiver.await,
        };
        std::mem::forget(leave);
        match outcome {
            Ok(Ok(())) => Ok(acquired),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::ShuttingDown),
        }
    }

    /// Takes a lock if nobody is in the way. Not for a table alone.
    pub fn try_acquire(&self, owner: Owner, object: &Object, mode: Mode) -> Result<bool> {
        Ok(!matches!(self.table.lock().try_grant(owner, object, mode, self.held_max)?, Grant::Blocked))
    }

    /// Whether anybody has, or waits for, a table alone: whoever reads without a lock must not now.
    pub fn is_table_excluded(&self) -> bool {
        self.excluding_count.load(Ordering::SeqCst) > 0
    }

    /// Takes a lock that cannot be contended: on an object nobody else can name yet.
    pub fn acquire_new(&self, owner: Owner, object: &Object, mode: Mode) -> Result<()> {
        match self.table.lock().try_grant(owner, object, mode, self.held_max)? {
            Grant::First => Ok(()),
            Grant::Held | Grant::Blocked => Err(Error::Internal(format!("{object} is new but already locked"))),
        }
    }

    /// Owners other than `owner` that hold a row of this tablet for writing, with the key. For bulk loads,
    /// which check their keys against row locks instead of taking a lock per key.
    ///
    /// Locks that are taken during the call may be missed: who takes one looks at the files afterwards.
    pub fn foreign_row_locks(&self, owner: Owner, tablet: TabletId) -> Vec<Key> {
        let others: Vec<Owner> = self.table.lock().held.keys().copied().filter(|other| *other != owner).collect();
        let mut keys = Vec::new();
        for other in others {
            self.each_chunk(other, |_, chunk| {
                keys.extend(chunk.iter().filter_map(|object| match object {
                    Object::Row(of, key) if *of == tablet => Some(Key::from(&key[..])),
                    _ => None,
                }));
            });
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Looks at what an owner holds, so many locks at a time that others come to the table in between.
    fn each_chunk(&self, owner: Owner, mut look: impl FnMut(&Table, &[Object])) {
        let mut from = 0;
        loop {
            let table = self.table.lock();
            // An owner's locks keep their places until all go at once: those that go before were taken last.
            let Some(chunk) = table.held.get(&owner).and_then(|held| held.objects.get(from..)) else { return };
            let chunk = &chunk[..chunk.len().min(CHUNK_LOCKS)];
            look(&table, chunk);
            from += chunk.len();
            if chunk.len() < CHUNK_LOCKS {
                return;
            }
        }
    }

    /// Which of these objects other owners have locked, however weakly.
    pub fn locked_by_others(&self, owner: Owner, objects: &[Object]) -> Vec<bool> {
        let mut locked = Vec::with_capacity(objects.len());
        for chunk in objects.chunks(CHUNK_LOCKS) {
            let table = self.table.lock();
            let is_locked = |object| {
                let holders = table.entries.get(object).map_or(&[][..], |entry| &entry.holders);
                holders.iter().any(|(holder, _)| *holder != owner)
            };
            locked.extend(chunk.iter().map(is_locked));
        }
        locked
    }

    /// Lets go of one lock: most likely the one that was taken last.
    pub fn release(&self, owner: Owner, object: &Object) {
        let mut table = self.table.lock();
        let Some(held) = table.held.get_mut(&owner) else { return };
        let Some(at) = held.objects.iter().rposition(|held| held == object) else { return };
        held.objects.remove(at);
        if held.objects.is_empty() {
            table.held.remove(&owner);
        }
        table.give_back(owner, object);
    }

    /// How much an owner has taken so far.
    pub fn position(&self, owner: Owner) -> LockPosition {
        let table = self.table.lock();
        table.held.get(&owner).map_or(LockPosition::default(), |held| LockPosition {
            objects: held.objects.len(),
            upgrades: held.upgrades.len(),
        })
    }

    /// Gives back what an owner has taken since, and holds what it has taken more strongly as it did before. Waiters are
    /// granted in order. What stands for the owner itself stays; and whoever has had a table alone stays counted.
    pub fn release_since(&self, owner: Owner, position: LockPosition) {
        let mut kept = Vec::new();
        loop {
            let mut table = self.table.lock();
            let Some(held) = table.held.get_mut(&owner) else { return };
            let from = held.objects.len().saturating_sub(CHUNK_LOCKS).max(position.objects);
            if from >= held.objects.len() {
                held.objects.append(&mut kept);
                break;
            }
            for object in held.objects.split_off(from) {
                match object {
                    Object::Table(_) | Object::Row(..) | Object::Values(..) => table.give_back(owner, &object),
                    Object::Txn(_) | Object::Owner(_) => kept.push(object),
                }
            }
        }
        loop {
            let mut table = self.table.lock();
            let Some(held) = table.held.get_mut(&owner) else { return };
            let from = held.upgrades.len().saturating_sub(CHUNK_LOCKS).max(position.upgrades);
            if from >= held.upgrades.len() {
                return;
            }
            for (object, before) in held.upgrades.split_off(from).into_iter().rev() {
                table.weaken(owner, &object, before);
            }
        }
    }

    /// Lets go of everything; waiters are granted in order. Others take and release locks in between.
    pub fn release_all(&self, owner: Owner) {
        let held = {
            let mut table = self.table.lock();
            if !table.excluding.is_empty() && table.excluding.remove(&owner) {
                self.excluding_count.fetch_sub(1, Ordering::SeqCst);
            }
            table.held.remove(&owner)
        };
        let Some(held) = held else { return };
        for chunk in held.objects.chunks(CHUNK_LOCKS) {
            let mut table = self.table.lock();
            chunk.iter().for_each(|object| table.give_back(owner, object));
        }
    }

    /// Lets go of everything but tables: the owner goes on with them.
    pub fn release_all_but_tables(&self, owner: Owner) {
        let mut table = self.table.lock();
        let Some(held) = table.held.get_mut(&owner) else { return };
        held.upgrades.clear();
        let gone: Vec<Object> = held.objects.extract_if(.., |object| !matches!(object, Object::Table(_))).collect();
        gone.iter().for_each(|object| table.give_back(owner, object));
    }

    /// Who, other than `owner`, holds a lock that does not go with `mode`.
    pub fn holders_against(&self, owner: Owner, object: &Object, mode: Mode) -> Vec<Owner> {
        let table = self.table.lock();
        let holders = table.entries.get(object).into_iter().flat_map(|entry| &entry.holders);
        let others = holders.filter(|(holder, held)| *holder != owner && held.conflicts_with(mode));
        others.map(|(holder, _)| *holder).collect()
    }

    /// Waits until another owner lets go of what it holds now. Dropping the future ends the wait.
    pub async fn wait_for_end(&self, owner: Owner, of: Owner, policy: WaitPolicy) -> Result<()> {
        let object = Object::Owner(of);
        self.table.lock().stand_for(of, &object);
        self.acquire(owner, &object, Mode::ENDED, policy).await?;
        self.release(owner, &object);
        Ok(())
    }

    /// Refuses all who wait, now and later: holders may never let go.
    pub fn stop(&self, error: Error) {
        let mut table = self.table.lock();
        table.waiting.clear();
        for entry in table.entries.values_mut() {
            for waiter in entry.queue.drain(..) {
                // The receiver may be gone: its future was dropped.
                let _ = waiter.wake.send(Err(error.clone()));
            }
        }
        table.stopped = Some(error);
    }

    pub fn holds(&self, owner: Owner, object: &Object) -> bool {
        let table = self.table.lock();
        table.entries.get(object).is_some_and(|entry| entry.holders.iter().any(|(holder, _)| *holder == owner))
    }

    pub fn held_count(&self) -> usize {
        self.table.lock().held_count
    }

    pub fn held_by(&self, owner: Owner) -> usize {
        self.table.lock().held.get(&owner).map_or(0, |held| held.objects.len())
    }

    pub fn waiting_count(&self) -> usize {
        self.table.lock().waiting.len()
    }
}

impl Table {
    fn try_grant(&mut self, owner: Owner, object: &Object, mode: Mode, held_max: usize) -> Result<Grant> {
        let entry = self.entries.entry_ref(object).or_default();
        let blocked = entry.holders.iter().any(|(holder, held)| *holder != owner && held.conflicts_with(mode));
        if let Some((_, held)) = entry.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            if held.covers(mode) {
                return Ok(Grant::Held);
            }
            if blocked {
                return Ok(Grant::Blocked);
            }
            self.held.entry(owner).or_default().strengthen(object, held, mode);
            return Ok(Grant::Held);
        }
        let behind = entry.queue.iter().any(|waiter| waiter.mode.conflicts_with(mode));
        if blocked || behind {
            return Ok(Grant::Blocked);
        }
        if self.held_count >= held_max {
            if entry.holders.is_empty() && entry.queue.is_empty() {
                self.entries.remove(object);
            }
            return Err(Error::TooManyLocks { limit: held_max });
        }
        entry.holders.push((owner, mode));
        self.held.entry(owner).or_default().objects.push(object.clone());
        self.held_count += 1;
        Ok(Grant::First)
    }

    /// An owner holds this no more, and has taken it off its list.
    fn give_back(&mut self, owner: Owner, object: &Object) {
        self.held_count -= 1;
        if let EntryRef::Occupied(mut entry) = self.entries.entry_ref(object) {
            entry.get_mut().holders.retain(|(holder, _)| *holder != owner);
            match entry.get() {
                Entry { queue, .. } if !queue.is_empty() => self.serve(object),
                Entry { holders, .. } if !holders.is_empty() => {}
                _ => drop(entry.remove()),
            }
        }
    }

    /// An owner that still holds this holds it in the mode that it had before.
    fn weaken(&mut self, owner: Owner, object: &Object, before: Mode) {
        let Some(entry) = self.entries.get_mut(object) else { return };
        if let Some((_, held)) = entry.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            *held = before;
            self.serve(object);
        }
    }

    /// Has an owner hold the lock that stands for it, if it holds anything.
    fn stand_for(&mut self, owner: Owner, object: &Object) {
        let Some(held) = self.held.get_mut(&owner) else { return };
        let entry = self.entries.entry_ref(object).or_default();
        if !entry.holders.iter().any(|(holder, _)| *holder == owner) {
            entry.holders.push((owner, Mode::RUNNING));
            held.objects.push(object.clone());
            self.held_count += 1;
        }
    }

    /// Gives also what the lock will be when it is granted.
    fn enqueue(
        &mut self,
        owner: Owner,
        object: &Object,
        mode: Mode,
    ) -> Result<(oneshot::Receiver<Result<()>>, Acquired)> {
        let (wake, receiver) = oneshot::channel();
        let entry = self.entries.get_mut(object).expect("a request that must wait found holders or a queue");
        let upgrade = entry.holders.iter().any(|(holder, _)| *holder == owner);
        let waiter = Waiter { owner, mode, wake };
        // A holder that wants more goes first: those in the queue wait for it anyway.
        let acquired = match upgrade {
            true => {
                entry.queue.push_front(waiter);
                Acquired::Held
            }
            false => {
                entry.queue.push_back(waiter);
                Acquired::Waited
            }
        };
        self.waiting.insert(owner, object.clone());
        while let Some(cycle) = graph::cycle_through(self, owner) {
            let victim = *cycle.iter().max().expect("a cycle has members");
            let error = Error::Deadlock(report::waits_of(self, &cycle, victim));
            if victim == owner {
                self.leave(owner, object);
                return Err(error);
            }
            let object = self.waiting.get(&victim).expect("members of a cycle wait").clone();
            self.refuse(victim, &object, error);
        }
        Ok((receiver, acquired))
    }

    /// Takes a waiter out of its queue and serves those behind it.
    fn leave(&mut self, owner: Owner, object: &Object) {
        self.waiting.remove(&owner);
        if let Some(entry) = self.entries.get_mut(object) {
            entry.queue.retain(|waiter| waiter.owner != owner);
        }
        self.serve(object);
    }

    fn refuse(&mut self, owner: Owner, object: &Object, error: Error) {
        self.waiting.remove(&owner);
        if let Some(entry) = self.entries.get_mut(object)
            && let Some(at) = entry.queue.iter().position(|waiter| waiter.owner == owner)
            && let Some(waiter) = entry.queue.remove(at)
        {
            // The receiver may be gone: its future was dropped and is about to leave the queue.
            let _ = waiter.wake.send(Err(error));
        }
        self.serve(object);
    }

    /// Grants, in order, every waiter that conflicts with no holder and no waiter ahead of it: exactly those
    /// for which the wait graph has no edge.
    fn serve(&mut self, object: &Object) {
        let Some(entry) = self.entries.get_mut(object) else { return };
        let mut ahead = Mode(0);
        let mut at = 0;
        while let Some(waiter) = entry.queue.get(at) {
            let (owner, mode) = (waiter.owner, waiter.mode);
            let held = entry.holders.iter().any(|(holder, held)| *holder != owner && held.conflicts_with(mode));
            if held || ahead.conflicts_with(mode) {
                ahead = ahead.with(mode);
                if ahead.excludes_all() {
                    break;
                }
                at += 1;
                continue;
            }
            let waiter = entry.queue.remove(at).expect("just seen");
            self.waiting.remove(&owner);
            if waiter.wake.send(Ok(())).is_err() {
                continue;
            }
            match entry.holders.iter_mut().find(|(holder, _)| *holder == owner) {
                Some((_, held)) => self.held.entry(owner).or_default().strengthen(object, held, mode),
                None => {
                    entry.holders.push((owner, mode));
                    self.held.entry(owner).or_default().objects.push(object.clone());
                    self.held_count += 1;
                }
            }
        }
        if entry.holders.is_empty() && entry.queue.is_empty() {
            self.entries.remove(object);
        }
    }
}

/// Whoever asked for a table alone for the first time, and has not got it yet: in vain if this is dropped so.
struct Excludes<'a> {
    locks: &'a Locks,
    owner: Owner,
}

impl Drop for Excludes<'_> {
    fn drop(&mut self) {
        if self.locks.table.lock().excluding.remove(&self.owner) {
            self.locks.excluding_count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

struct LeaveQueue<'a> {
    locks: &'a Locks,
    owner: Owner,
    object: &'a Object,
}

impl Drop for LeaveQueue<'_> {
    fn drop(&mut self) {
        self.locks.table.lock().leave(self.owner, self.object);
    }
}

/// `None` when the time is up.
async fn timeout<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(limit, pin!(future)).await.ok()
}
