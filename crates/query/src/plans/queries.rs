//! Queries by their whole text, as they were bound, for all sessions in the same surroundings: what plans of the column
//! engine and of the fallback are made of, and what a plan of the column engine is kept with ([`crate::column::KeptPlan`]).
//!
//! A text is kept when it comes a second time, and if binding it another time would give the same: the catalog and the
//! surroundings are part of the key, and a literal that says a moment, as `date 'today'`, is noticed
//! (`EvalContext::asked_moment`). Calls like `now()` and `nextval` are bound as calls. Of texts that came once no more is
//! kept than a hash.

use super::TEXT_BYTES_MAX;
use crate::plan::Query;
use crate::syntax::Parsed;
use ahash::RandomState;
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

/// Entries, or bytes of their texts, beyond which half of them go.
const ENTRIES_MAX: usize = 512;
const BYTES_MAX: usize = 1 << 20;
/// Texts that came once are remembered until another takes their place.
const SEEN: usize = 4096;

/// A query that was bound in one version of the catalog.
pub(crate) struct KnownQuery {
    pub text: Box<str>,
    /// [`crate::session::Session`]'s surroundings, in words.
    pub around: Arc<str>,
    pub catalog_version: u64,
    pub parsed: Arc<Parsed>,
    pub query: Arc<Query>,
}

/// What there is to say of a text.
pub(crate) enum Coming {
    First,
    /// It is worth keeping.
    Again,
    Known(Arc<KnownQuery>),
}

pub(crate) struct KnownQueries {
    hasher: RandomState,
    seen: Box<[AtomicU64]>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the hash of text and surroundings: of two with one hash, the later.
    entries: HashMap<u64, (u64, Arc<KnownQuery>), RandomState>,
    bytes: usize,
    clock: u64,
    /// The newest version of the catalog that an entry is of: there is none of another.
    version: u64,
}

impl Default for KnownQueries {
    fn default() -> KnownQueries {
        let seen = (0..SEEN).map(|_| AtomicU64::new(0)).collect();
        KnownQueries { hasher: RandomState::new(), seen, known: Mutex::default() }
    }
}

impl KnownQueries {
    pub fn look_up(&self, text: &str, around: &Arc<str>, catalog_version: u64) -> Coming {
        if text.len() > TEXT_BYTES_MAX || !may_be_query(text) {
            return Coming::First;
        }
        let hash = self.hash(text, around);
        let mut known = self.known.lock();
        known.clock += 1;
        let now = known.clock;
        if let Some((used, entry)) = known.entries.get_mut(&hash)
            && entry.catalog_version == catalog_version
            && *entry.text == *text
            && (Arc::ptr_eq(&entry.around, around) || entry.around == *around)
        {
            *used = now;
            return Coming::Known(entry.clone());
        }
        drop(known);
        match self.seen[hash as usize % SEEN].swap(hash, atomic::Ordering::Relaxed) == hash {
            true => Coming::Again,
            false => Coming::First,
        }
    }

    pub fn keep(&self, query: KnownQuery) {
        let hash = self.hash(&query.text, &query.around);
        let mut known = self.known.lock();
        match query.catalog_version.cmp(&known.version) {
            // An older one is of a transaction that began before a change.
            Ordering::Less => return,
            Ordering::Equal => known.remove(hash),
            Ordering::Greater => {
                known.entries.clear();
                (known.bytes, known.version) = (0, query.catalog_version);
            }
        }
        if known.entries.len() >= ENTRIES_MAX || known.bytes + query.text.len() > BYTES_MAX {
            known.halve();
        }
        known.bytes += query.text.len();
        let now = known.clock;
        known.entries.insert(hash, (now, Arc::new(query)));
    }

    fn hash(&self, text: &str, around: &Arc<str>) -> u64 {
        self.hasher.hash_one((text, &**around))
    }
}

impl Known {
    fn remove(&mut self, hash: u64) {
        if let Some((_, gone)) = self.entries.remove(&hash) {
            self.bytes -= gone.text.len();
        }
    }

    /// Those stay that were used last.
    fn halve(&mut self) {
        let mut all: Vec<(u64, u64)> = self.entries.iter().map(|(hash, (used, _))| (*used, *hash)).collect();
        all.sort_unstable();
        all.truncate(all.len().div_ceil(2));
        all.into_iter().for_each(|(_, hash)| self.remove(hash));
    }
}

/// Whether a text may begin with a query: others are not looked up.
fn may_be_query(text: &str) -> bool {
    let first = text.trim_ascii_start().as_bytes().first();
    first.is_some_and(|first| matches!(first.to_ascii_lowercase(), b's' | b'w' | b'v' | b't' | b'(' | b'-' | b'/'))
}

#[cfg(test)]
mod tests;
