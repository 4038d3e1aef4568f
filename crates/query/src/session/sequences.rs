//! What a session remembers of sequences: the values that `currval` and `lastval` tell, values that it has drawn ahead
//! (CACHE), and how far the log must be durable before the end of its transaction is told.

use basalt_engine::SequenceDef;
use basalt_types::{Lsn, ObjectId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(crate) struct SequenceUse {
    known: Mutex<Known>,
    /// Leases that values of the running transaction came from end here.
    logged: AtomicU64,
}

#[derive(Default)]
struct Known {
    by_sequence: HashMap<ObjectId, OfSequence>,
    last_used: Option<ObjectId>,
}

#[derive(Default)]
struct OfSequence {
    current: Option<i64>,
    ahead: Option<Ahead>,
}

/// Values up to `last` that are this session's.
struct Ahead {
    state: ObjectId,
    increment: i64,
    given: i64,
    last: i64,
}

impl SequenceUse {
    /// The next of the values that were drawn ahead.
    pub fn next_ahead(&self, sequence: &SequenceDef) -> Option<i64> {
        let mut known = self.known.lock();
        let of = known.by_sequence.get_mut(&sequence.id)?;
        let ahead = of.ahead.as_mut()?;
        let usable = ahead.state == sequence.state && ahead.increment == sequence.increment;
        if !usable || ahead.given == ahead.last {
            return None;
        }
        let next = ahead.given.checked_add(ahead.increment)?;
        ahead.given = next;
        of.current = Some(next);
        known.last_used = Some(sequence.id);
        Some(next)
    }

    /// Notes values `first` to `last`, the first of which is given now.
    pub fn note_drawn(&self, sequence: &SequenceDef, first: i64, last: i64, logged: Lsn) {
        let mut known = self.known.lock();
        let of = known.by_sequence.entry(sequence.id).or_default();
        of.current = Some(first);
        let (state, increment) = (sequence.state, sequence.increment);
        of.ahead = (first != last).then_some(Ahead { state, increment, given: first, last });
        known.last_used = Some(sequence.id);
        self.note_logged(logged);
    }

    /// `setval`: `current` if the value counts as given.
    pub fn note_set(&self, sequence: ObjectId, current: Option<i64>, logged: Lsn) {
        let mut known = self.known.lock();
        let of = known.by_sequence.entry(sequence).or_default();
        of.ahead = None;
        if current.is_some() {
            of.current = current;
        }
        self.note_logged(logged);
    }

    pub fn current(&self, sequence: ObjectId) -> Option<i64> {
        self.known.lock().by_sequence.get(&sequence)?.current
    }

    /// The sequence that gave this session's last value, and the value.
    pub fn last(&self) -> Option<(ObjectId, i64)> {
        let known = self.known.lock();
        let id = known.last_used?;
        Some((id, known.by_sequence.get(&id)?.current?))
    }

    /// ALTER SEQUENCE.
    pub fn forget_cached(&self, sequence: ObjectId) {
        if let Some(of) = self.known.lock().by_sequence.get_mut(&sequence) {
            of.ahead = None;
        }
    }

    /// DISCARD SEQUENCES.
    pub fn forget_all(&self) {
        *self.known.lock() = Known::default();
    }

    fn note_logged(&self, lsn: Lsn) {
        self.logged.fetch_max(lsn.0, Ordering::Relaxed);
    }

    /// What the end of the transaction waits for, once.
    pub fn take_logged(&self) -> Lsn {
        Lsn(self.logged.swap(0, Ordering::Relaxed))
    }
}
