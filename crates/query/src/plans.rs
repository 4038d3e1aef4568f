//! The plan cache: row plans by the text of their statements, literals left out, shared by all sessions; and statements
//! that write a row or few, or lock one, where their message is read.
//!
//! A text is looked at when it comes a second time: most that come once never come again. Its literals become
//! parameters ([`text`]); it is bound in both forms, and only if the plan with parameters, given the literals, is the
//! plan with literals, it is kept ([`learn`]). What fails in any way is left to the ordinary path, which tells errors.
//!
//! A plan is good for one version of the catalog and for sessions that are in the same surroundings: role, database,
//! settings. The cache is bounded: of too many entries those go that were not used for the longest time.

mod learn;
pub(crate) mod queries;
pub(crate) mod text;

pub(crate) use learn::{learn, values};

use crate::bind::Bound;
use crate::row::RowPlan;
use crate::session::Columns;
use crate::statement::at_once::AtOnce;
use ahash::RandomState;
use basalt_types::DataType;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries beyond which half of them go.
const ENTRIES_MAX: usize = 4096;
/// A longer text is not looked at.
pub(crate) const TEXT_BYTES_MAX: usize = 8 << 10;

/// What the plan of a text is for.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PlanKey {
    /// The text with parameters, and what they are.
    pub text: Arc<[u8]>,
    /// [`crate::session::Session`]'s surroundings, in words.
    pub around: Arc<str>,
}

/// A statement that the row engine can run, whatever its literals are.
pub(crate) struct Known {
    pub key: PlanKey,
    pub catalog_version: u64,
    pub plan: KnownPlan,
    /// `None`: it gives no rows.
    pub columns: Option<Columns>,
    /// Of the parameters.
    pub types: Vec<DataType>,
    used: AtomicU64,
}

pub(crate) enum KnownPlan {
    Read(RowPlan),
    /// It writes, or locks.
    AtOnce {
        at_once: AtOnce,
        bound: Bound,
    },
}

impl Known {
    pub fn new(
        key: PlanKey,
        catalog_version: u64,
        plan: KnownPlan,
        columns: Option<Columns>,
        types: Vec<DataType>,
    ) -> Known {
        Known { key, catalog_version, plan, columns, types, used: AtomicU64::new(0) }
    }

    /// Whether it is for these surroundings.
    pub fn is_around(&self, around: &Arc<str>) -> bool {
        Arc::ptr_eq(&self.key.around, around) || self.key.around == *around
    }
}

enum Entry {
    /// Came once.
    Seen {
        used: u64,
    },
    /// Has no row plan in this version of the catalog.
    Refused {
        catalog_version: u64,
        used: u64,
    },
    Known(Arc<Known>),
}

/// What the cache says of a text.
pub(crate) enum Advice {
    /// Nothing to gain.
    Leave,
    /// Bind it and tell.
    Learn,
    Known(Arc<Known>),
}

#[derive(Default)]
pub(crate) struct PlanCache {
    entries: Mutex<HashMap<PlanKey, Entry, RandomState>>,
    clock: AtomicU64,
}

impl PlanCache {
    pub fn advise(&self, key: &PlanKey, catalog_version: u64) -> Advice {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.lock();
        match entries.get_mut(key) {
            Some(Entry::Known(known)) if known.catalog_version == catalog_version => {
                known.used.store(now, Ordering::Relaxed);
                Advice::Known(known.clone())
            }
            Some(Entry::Refused { catalog_version: of, used }) if *of == catalog_version => {
                *used = now;
                Advice::Leave
            }
            Some(_) => Advice::Learn,
            None => {
                make_room(&mut entries);
                entries.insert(key.clone(), Entry::Seen { used: now });
                Advice::Leave
            }
        }
    }

    /// A session has it at hand and uses it.
    pub fn note_use(&self, known: &Known) {
        known.used.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// What came of [`Advice::Learn`].
    pub fn tell(&self, key: PlanKey, catalog_version: u64, known: Option<Arc<Known>>) {
        let used = self.clock.load(Ordering::Relaxed);
        let entry = match known {
            Some(known) => {
                known.used.store(used, Ordering::Relaxed);
                Entry::Known(known)
            }
            None => Entry::Refused { catalog_version, used },
        };
        let mut entries = self.entries.lock();
        make_room(&mut entries);
        entries.insert(key, entry);
    }
}

fn make_room(entries: &mut HashMap<PlanKey, Entry, RandomState>) {
    if entries.len() < ENTRIES_MAX {
        return;
    }
    let used = |entry: &Entry| match entry {
        Entry::Seen { used } | Entry::Refused { used, .. } => *used,
        Entry::Known(known) => known.used.load(Ordering::Relaxed),
    };
    let mut all: Vec<u64> = entries.values().map(used).collect();
    let (_, middle, _) = all.select_nth_unstable(ENTRIES_MAX / 2);
    let middle = *middle;
    entries.retain(|_, entry| used(entry) > middle);
}

#[cfg(test)]
mod tests;
