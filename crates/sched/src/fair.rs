//! Who computes next: fair shares of the threads that run queries (Hologres, section 4.5; Krypton, section 4.4).
//!
//! There are as many *slots* as threads. A worker of a statement computes only while its [`Turn`] holds a slot. After each
//! step, of a millisecond or so, it says how much time it took, and goes on unless somebody waits who had less.
//!
//! What one had is its *virtual runtime*. Of a group: the time of all its statements, divided by its share. Of a statement:
//! the time of all its workers, so that many workers get no more than few. A free slot goes to the group that had least,
//! and in it to the statement that had least. Who has nothing to do takes part in no comparison, so its share is everybody
//! else's at once; who comes (back) starts with what the least of those has had that are there: time that was not used is
//! not saved up, and a statement that begins does not wait behind those that run. A group may have had little less, so that
//! a moment between two queries costs it nothing.
//!
//! Invariants: a slot is either free or held by one turn, and none is free while a turn waits. A turn that is dropped
//! gives back what it has, a slot or its place. Wakers are called without the lock. Choosing takes logarithmic time in
//! groups and statements.
//!
//! What an executor polls stands in line from the moment at which it is woken ([`TaskTurn`]).
//!
//! No clock or executor is known here: whoever computes says for how long ([`Turn::compute`] does).
//!
//! How many statements of a group begin to compute at all is the group's [`admission`](crate::admission).

mod computing;
mod task_turn;

pub use computing::{computes_for, is_computing, is_overdue, pause, wait};
pub use task_turn::TaskTurn;

use crate::admission::{self, Admission, Limits, Permit, QueueFull};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A slot does not change hands before it was held for so long.
pub const TURN_MIN: Duration = Duration::from_millis(1);
/// What a group that was idle still owes of time that it took beyond its share: more would keep it waiting for seconds.
const OWED_MAX: Duration = Duration::from_millis(100);
/// What a group that was idle may have to its credit of time that it did not take of its share.
const CREDIT_MAX: Duration = Duration::from_millis(10);
/// Parts of a nanosecond that virtual runtimes of groups are counted in.
const SCALE: u128 = 1 << 20;

type GroupId = u32;
type StatementId = u64;
type Ticket = u64;

/// The slots, and who waits for them.
pub struct Scheduler {
    state: Mutex<State>,
    /// Of each group.
    limits: Limits,
    /// Turns that wait: a hint for those who compute.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    free: usize,
    groups: BTreeMap<GroupId, Group>,
    statements: HashMap<StatementId, Entry>,
    /// Groups with a turn that waits, and with one that waits or computes, by virtual runtime.
    ready: BTreeSet<(u128, GroupId)>,
    active: BTreeSet<(u128, GroupId)>,
    /// The least virtual runtime that an active group had so far; it only grows.
    floor: u128,
    ids: u64,
}

struct Group {
    name: Arc<str>,
    share: u32,
    admission: Arc<Admission>,
    /// One that is not goes when its last statement has ended.
    listed: bool,
    statements: usize,
    spent: Duration,
    vruntime: u128,
    /// As the state has them of groups.
    ready: BTreeSet<(u128, StatementId)>,
    active: BTreeSet<(u128, StatementId)>,
    floor: u128,
}

/// A statement.
struct Entry {
    group: GroupId,
    /// Nanoseconds.
    vruntime: u128,
    waiting: BTreeMap<Ticket, Option<Waker>>,
    /// Turns that hold a slot.
    computing: usize,
}

/// What a group is and had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupReport {
    pub name: Arc<str>,
    pub share: u32,
    /// That have begun and not ended.
    pub statements: usize,
    pub spent: Duration,
    pub admission: admission::Report,
}

/// A statement as the scheduler knows it, from its beginning to its end.
pub struct Statement {
    scheduler: Arc<Scheduler>,
    id: StatementId,
    admission: Arc<Admission>,
    /// Until it is given back.
    permit: Mutex<Option<Permit>>,
}

/// One worker's place among those who compute or wait.
pub struct Turn {
    statement: Arc<Statement>,
    /// Of its place, or of its slot.
    ticket: Option<Ticket>,
    /// Since it was given the slot.
    held: Duration,
}

impl Scheduler {
    /// `groups`: names and shares, at least one. The first is for whoever asks for one that does not exist.
    pub fn new(slots: usize, groups: &[(String, u32)], limits: Limits) -> Arc<Scheduler> {
        let state = State { free: slots.max(1), ..State::default() };
        let scheduler = Scheduler { state: Mutex::new(state), limits, waiting: AtomicUsize::new(0) };
        scheduler.set_groups(groups);
        Arc::new(scheduler)
    }

    /// Changes names and shares. Statements stay where they are; what is no more listed goes with its last one.
    pub fn set_groups(&self, groups: &[(String, u32)]) {
        let mut state = self.state.lock();
        state.groups.values_mut().for_each(|group| group.listed = false);
        for (name, share) in groups {
            match state.groups.values_mut().find(|group| *group.name == **name) {
                Some(group) => (group.share, group.listed) = ((*share).max(1), true),
                None => {
                    let id = state.next_id() as GroupId;
                    state.groups.insert(id, Group::new(name, *share, self.limits));
                }
            }
        }
        state.groups.retain(|_, group| group.listed || group.statements > 0);
    }

    pub fn has_group(&self, name: &str) -> bool {
        self.state.lock().groups.values().any(|group| group.listed && *group.name == *name)
    }

    /// By name. Without those that only wait for their last statements to end.
    pub fn report(&self) -> Vec<GroupReport> {
        let state = self.state.lock();
        let listed = state.groups.values().filter(|group| group.listed);
        let mut groups: Vec<GroupReport> = listed.map(Group::report).collect();
        groups.sort_by(|one, other| one.name.cmp(&other.name));
        groups
    }

    /// A statement of a group that begins.
    pub fn statement(self: &Arc<Self>, group: &str) -> Arc<Statement> {
        let mut state = self.state.lock();
        let id = state.next_id();
        let listed = || state.groups.iter().filter(|(_, group)| group.listed);
        let named = listed().find(|(_, known)| *known.name == *group).or_else(|| listed().next());
        let group = *named.expect("there is always a group").0;
        let entry = Entry { group, vruntime: 0, waiting: BTreeMap::new(), computing: 0 };
        state.statements.insert(id, entry);
        let group = state.groups.get_mut(&group).expect("found");
        group.statements += 1;
        let (admission, permit) = (group.admission.clone(), Mutex::default());
        Arc::new(Statement { scheduler: self.clone(), id, admission, permit })
    }

    /// Whether somebody waits for a slot: not for long, unless all slots are held.
    pub fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Gives free slots away, and wakes who got them.
    fn dispatch(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        let mut wakers = Vec::new();
        while state.free > 0
            && let Some(waker) = state.grant()
        {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            wakers.extend(waker);
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.report()).finish()
    }
}

impl Group {
    fn new(name: &str, share: u32, limits: Limits) -> Group {
        Group {
            name: name.into(),
            share: share.max(1),
            admission: Admission::new(limits),
            listed: true,
            statements: 0,
            spent: Duration::ZERO,
            vruntime: 0,
            ready: BTreeSet::new(),
            active: BTreeSet::new(),
            floor: 0,
        }
    }

    fn report(&self) -> GroupReport {
        GroupReport {
            name: self.name.clone(),
            share: self.share,
            statements: self.statements,
            spent: self.spent,
            admission: self.admission.report(),
        }
    }
}

impl Entry {
    fn is_active(&self) -> bool {
        self.computing > 0 || !self.waiting.is_empty()
    }
}

impl State {
    fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Changes a statement and, with it, its group, and puts both where they belong then.
    fn change(&mut self, id: StatementId, work: impl FnOnce(&mut Entry, &mut Group)) {
        let entry = self.statements.get_mut(&id).expect("statements live as long as their turns");
        let group = self.groups.get_mut(&entry.group).expect("groups live as long as their statements");
        let was_active = entry.is_active();
        self.ready.remove(&(group.vruntime, entry.group));
        self.active.remove(&(group.vruntime, entry.group));
        group.ready.remove(&(entry.vruntime, id));
        group.active.remove(&(entry.vruntime, id));
        let group_was_active = was_active || !group.active.is_empty();
        work(entry, group);
        if entry.is_active() && !was_active {
            let least = group.active.first().map_or(0, |(least, _)| *least);
            entry.vruntime = entry.vruntime.max(group.floor).max(least);
        }
        if entry.is_active() && !group_was_active {
            let least = self.active.first().map_or(0, |(least, _)| *least).max(self.floor);
            let credit_most = CREDIT_MAX.as_nanos() * SCALE / u128::from(group.share);
            let owed_most = OWED_MAX.as_nanos() * SCALE / u128::from(group.share);
            group.vruntime = group.vruntime.clamp(least.saturating_sub(credit_most), least + owed_most);
        }
        if !entry.waiting.is_empty() {
            group.ready.insert((entry.vruntime, id));
        }
        // The floors follow the time that was taken by those who end as well.
        group.active.insert((entry.vruntime, id));
        group.floor = group.floor.max(group.active.first().map_or(0, |(least, _)| *least));
        if !entry.is_active() {
            group.active.remove(&(entry.vruntime, id));
        }
        if !group.ready.is_empty() {
            self.ready.insert((group.vruntime, entry.group));
        }
        self.active.insert((group.vruntime, entry.group));
        self.floor = self.floor.max(self.active.first().map_or(0, |(least, _)| *least));
        if group.active.is_empty() {
            self.active.remove(&(group.vruntime, entry.group));
        }
    }

    /// Gives a free slot to the turn whose it is. `None` if nobody waits.
    fn grant(&mut self) -> Option<Option<Waker>> {
        let (_, group) = self.ready.first()?;
        let (_, id) = *self.groups[group].ready.first().expect("somebody waits in a ready group");
        let mut granted = None;
        self.change(id, |entry, _| {
            granted = entry.waiting.pop_first();
            entry.computing += 1;
        });
        self.free -= 1;
        granted.map(|(_, waker)| waker)
    }

    /// Whether a statement had more than somebody who waits.
    fn is_behind(&self, id: StatementId) -> bool {
        let own = &self.statements[&id];
        let Some((least, first)) = self.ready.first() else { return false };
        match *first == own.group {
            true => self.groups[first].ready.first().is_some_and(|(least, _)| *least < own.vruntime),
            false => *least < self.groups[&own.group].vruntime,
        }
    }
}

impl Statement {
    /// A place for one more worker, which has no slot yet.
    pub fn turn(self: &Arc<Self>) -> Turn {
        Turn { statement: self.clone(), ticket: None, held: Duration::ZERO }
    }

    /// Whether somebody waits for a slot.
    pub fn is_waited_for(&self) -> bool {
        self.scheduler.is_waited_for()
    }

    /// Asks its group for a permit to run; whether it was granted at once. It is kept until it is given back.
    pub fn enter(&self) -> Result<bool, QueueFull> {
        let permit = self.admission.enter()?;
        let granted = permit.is_granted();
        *self.permit.lock() = Some(permit);
        Ok(granted)
    }

    /// Waits for the permit that was asked for.
    pub async fn admitted(&self) {
        let asked =
            |cx: &mut Context<'_>| self.permit.lock().as_ref().map_or(Poll::Ready(()), |it| it.poll_granted(cx));
        poll_fn(asked).await;
    }

    /// For good: what the statement does from now on is not counted. Harmless without a permit.
    pub fn give_back_permit(&self) {
        let permit = self.permit.lock().take();
        // It wakes another.
        drop(permit);
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        let mut state = self.scheduler.state.lock();
        let Some(entry) = state.statements.remove(&self.id) else { return };
        if let Some(group) = state.groups.get_mut(&entry.group) {
            group.statements -= 1;
            if !group.listed && group.statements == 0 {
                state.groups.remove(&entry.group);
            }
        }
    }
}

impl Turn {
    /// Does work of a statement when its turn has come.
    pub async fn take<T>(mut self, work: impl FnOnce() -> T) -> T {
        self.ready().await;
        self.compute(work)
    }

    /// Waits until a slot is held.
    pub async fn ready(&mut self) {
        poll_fn(|cx| self.poll_ready(cx)).await;
    }

    /// Once asked for, a slot may come at any time, until the turn is asked again: whoever asks no more rests or drops it.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let scheduler = &self.statement.scheduler;
        let mut state = scheduler.state.lock();
        let Some(ticket) = self.ticket else {
            let ticket = state.next_id();
            (self.ticket, self.held) = (Some(ticket), Duration::ZERO);
            // Who waits came before.
            if state.free > 0 {
                state.free -= 1;
                state.change(self.statement.id, |entry, _| entry.computing += 1);
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            state.change(self.statement.id, |entry, _| drop(entry.waiting.insert(ticket, Some(waker))));
            scheduler.waiting.fetch_add(1, Ordering::Relaxed);
            return Poll::Pending;
        };
        let entry = state.statements.get_mut(&self.statement.id).expect("it lives as long as its turns");
        match entry.waiting.get_mut(&ticket) {
            Some(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// The turn with what it has; an empty one stays.
    fn take_out(&mut self) -> Turn {
        let empty = self.statement.turn();
        std::mem::replace(self, empty)
    }

    /// Notes time that was taken with the slot, and gives the slot up if it is somebody else's turn.
    pub fn spent(&mut self, time: Duration) {
        let scheduler = &self.statement.scheduler;
        let mut state = scheduler.state.lock();
        state.change(self.statement.id, |entry, group| {
            entry.vruntime += time.as_nanos();
            group.vruntime += time.as_nanos() * SCALE / u128::from(group.share);
            group.spent += time;
        });
        self.held += time;
        let ends = self.held >= TURN_MIN && state.is_behind(self.statement.id);
        drop(state);
        if ends {
            self.rest();
        }
    }

    /// Gives back the slot, or the place.
    pub fn rest(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let scheduler = &self.statement.scheduler;
        let mut state = scheduler.state.lock();
        let mut waited = false;
        state.change(self.statement.id, |entry, _| {
            waited = entry.waiting.remove(&ticket).is_some();
            if !waited {
                entry.computing -= 1;
            }
        });
        if waited {
            scheduler.waiting.fetch_sub(1, Ordering::Relaxed);
        } else {
            state.free += 1;
        }
        scheduler.dispatch(state);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.rest();
    }
}

#[cfg(test)]
mod tests;
