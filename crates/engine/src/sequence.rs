//! States of sequences: the values given so far, which no transaction takes back.
//!
//! Values are given from memory. Before the first of them is, a *lease* is logged: the last value that may be
//! given without another record. What a client is told waits until that record is durable (whoever draws
//! values waits for [`Drawn::logged`] when its transaction ends), so after a crash a sequence goes on behind
//! every value that anybody was told of; the rest of the lease is a gap. `docs/format/records.md`. A lease may lie
//! beyond the bounds that ALTER SEQUENCE sets: what changes bounds or steps logs the last value itself first.
//!
//! One lock covers all states, and the log is appended to under it: a checkpoint that takes it sees for every
//! state either what a record says or a log that ends before the record.

use crate::{Engine, Error, Result, record};
use basalt_meta::{Catalog, CatalogEdit, SequenceDef, SequenceValue};
use basalt_types::{Lsn, ObjectId};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Values that a lease holds beyond those asked for, as in PostgreSQL.
pub const LEASE_VALUES: i64 = 32;

/// What is known of one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct State {
    pub value: SequenceValue,
    /// Values left of the lease.
    pub left: i64,
    /// What the lease was counted by; with others it is void.
    steps: Option<Steps>,
    /// What the log says, and where it ends saying so.
    pub logged: SequenceValue,
    pub logged_at: Lsn,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Steps {
    min: i64,
    max: i64,
    increment: i64,
}

impl Steps {
    fn of(sequence: &SequenceDef) -> Steps {
        Steps { min: sequence.min, max: sequence.max, increment: sequence.increment }
    }
}

impl State {
    pub fn new(value: SequenceValue, logged_at: Lsn) -> State {
        State { value, left: 0, steps: None, logged: value, logged_at }
    }
}

#[derive(Default)]
pub(crate) struct Sequences {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    states: HashMap<ObjectId, State>,
    /// A state was logged since the last checkpoint.
    changed: bool,
    /// Nothing is given any more: the shutdown's checkpoint holds exact values.
    closed: bool,
}

/// Values drawn: `first`, and on to `last` in steps of the increment (around the end of a cycle there are none
/// but the first).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drawn {
    pub first: i64,
    pub last: i64,
    /// The lease's record ends here.
    pub logged: Lsn,
}

/// What `SELECT * FROM sequence` shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequenceState {
    pub value: SequenceValue,
    pub leased: i64,
}

impl Sequences {
    pub fn new(states: HashMap<ObjectId, State>) -> Sequences {
        Sequences { inner: Mutex::new(Inner { states, changed: false, closed: false }) }
    }

    /// Makes room for a state that a catalog edit names.
    pub fn enter(&self, sequence: &SequenceDef) {
        self.inner.lock().states.entry(sequence.state).or_insert_with(|| State::new(sequence.begins, Lsn(0)));
    }

    pub fn forget(&self, state: ObjectId) {
        self.inner.lock().states.remove(&state);
    }

    /// For a checkpoint: every state as it may have to be taken up again, and the end of the log at that
    /// moment.
    pub fn capture(&self, log_end: impl FnOnce() -> Lsn) -> (Vec<(ObjectId, SequenceValue, Lsn)>, Lsn) {
        let mut inner = self.inner.lock();
        inner.changed = false;
        let closed = inner.closed;
        let resumed = |state: &State| if closed { state.value } else { state.logged };
        let states = inner.states.iter().map(|(id, state)| (*id, resumed(state), state.logged_at));
        let mut states: Vec<_> = states.collect();
        states.sort_unstable_by_key(|(id, _, _)| *id);
        (states, log_end())
    }

    pub fn has_changed(&self) -> bool {
        self.inner.lock().changed
    }

    pub fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        inner.changed |= inner.states.values().any(|state| state.value != state.logged);
    }
}

impl Inner {
    fn state(&mut self, sequence: &SequenceDef) -> Result<&mut State> {
        if self.closed {
            return Err(Error::ShuttingDown);
        }
        self.states.get_mut(&sequence.state).ok_or(Error::TableGone(sequence.id))
    }
}

/// The value after `value`; `None` at the end of a sequence that does not cycle.
fn after(sequence: &SequenceDef, value: i64) -> Option<i64> {
    let next = value.checked_add(sequence.increment).filter(|next| (sequence.min..=sequence.max).contains(next));
    match next {
        Some(next) => Some(next),
        None if sequence.cycle && sequence.increment > 0 => Some(sequence.min),
        None if sequence.cycle => Some(sequence.max),
        None => None,
    }
}

/// The same, but never around the end of a cycle: leases and what sessions keep stop there.
fn onward(sequence: &SequenceDef, value: i64) -> Option<i64> {
    after(sequence, value).filter(|next| (*next > value) == (sequence.increment > 0))
}

impl Engine {
    /// Draws the next values, at most as many as the sequence caches. `None`: it has come to its end.
    pub fn draw(&self, sequence: &SequenceDef) -> Result<Option<Drawn>> {
        self.check_writable()?;
        let mut inner = self.sequences.inner.lock();
        let state = inner.state(sequence)?;
        let first = match state.value {
            SequenceValue { last, is_called: false } => Some(last),
            SequenceValue { last, is_called: true } => after(sequence, last),
        };
        let Some(first) = first else { return Ok(None) };
        let (mut last, mut count) = (first, 1);
        while count < sequence.cache {
            let Some(next) = onward(sequence, last) else { break };
            (last, count) = (next, count + 1);
        }
        let steps = Some(Steps::of(sequence));
        let fresh = !state.value.is_called || state.steps != steps;
        let mut left = if fresh { -count } else { state.left - count };
        let mut logged = None;
        if left < 0 {
            // From the last value on, as far as the sequence goes.
            let mut end = last;
            left = 0;
            while left < LEASE_VALUES {
                let Some(next) = onward(sequence, end) else { break };
                (end, left) = (next, left + 1);
            }
            let value = SequenceValue { last: end, is_called: true };
            logged = Some((value, self.log_sequence(sequence, value)?));
        }
        let state = inner.state(sequence)?;
        if let Some((value, at)) = logged {
            (state.logged, state.logged_at) = (value, at);
        }
        state.value = SequenceValue { last, is_called: true };
        (state.left, state.steps) = (left, steps);
        let drawn = Drawn { first, last, logged: state.logged_at };
        inner.changed |= logged.is_some();
        Ok(Some(drawn))
    }

    /// `setval`. Where the record ends that says so.
    pub fn set_sequence(&self, sequence: &SequenceDef, value: SequenceValue) -> Result<Lsn> {
        self.check_writable()?;
        let mut inner = self.sequences.inner.lock();
        inner.state(sequence)?;
        let at = self.log_sequence(sequence, value)?;
        *inner.state(sequence)? = State::new(value, at);
        inner.changed = true;
        Ok(at)
    }

    /// Appends a commit's record. Sequences to which the commit gives other bounds or steps go on behind their last
    /// value from there on, not behind a lease by the old ones; nobody draws, and so leases, in between.
    pub(crate) fn append_settled(&self, edits: &[CatalogEdit], append: impl FnOnce() -> Result<Lsn>) -> Result<Lsn> {
        let put = edits.iter().filter_map(|edit| match edit {
            CatalogEdit::PutSequence(sequence) => Some(sequence),
            _ => None,
        });
        let mut put = put.peekable();
        if put.peek().is_none() {
            return append();
        }
        let mut inner = self.sequences.inner.lock();
        for sequence in put {
            let Some(state) = inner.states.get(&sequence.state).copied() else { continue };
            if state.value != state.logged && state.steps != Some(Steps::of(sequence)) {
                let at = self.log_sequence(sequence, state.value)?;
                inner.states.insert(sequence.state, State::new(state.value, at));
                inner.changed = true;
            }
        }
        append()
    }

    fn log_sequence(&self, sequence: &SequenceDef, value: SequenceValue) -> Result<Lsn> {
        let mut bytes = Vec::with_capacity(24);
        record::sequence(&mut bytes, sequence.state, value);
        self.append(&bytes)
    }

    pub fn sequence_state(&self, sequence: &SequenceDef) -> Option<SequenceState> {
        let inner = self.sequences.inner.lock();
        inner.states.get(&sequence.state).map(|state| SequenceState { value: state.value, leased: state.left })
    }

    /// Waits until everything logged below `lsn` is durable.
    pub async fn wait_logged(&self, lsn: Lsn) -> Result<()> {
        self.wait_durable(lsn).await
    }

    /// States that `earlier` names and the committed catalog does not.
    pub(crate) fn forget_sequences<'a>(&self, earlier: impl Iterator<Item = &'a SequenceDef>, now: &Catalog) {
        for sequence in earlier {
            if now.sequences.get(&sequence.id).is_none_or(|kept| kept.state != sequence.state) {
                self.sequences.forget(sequence.state);
            }
        }
    }
}
