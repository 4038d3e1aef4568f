//! Sweeping: removing versions that nobody needs any more, against the set of live snapshots.
//!
//! A decided version is seen by the snapshots from its stamp up to the next newer decided stamp. It stays
//! while a live snapshot, or one that may yet be taken, is among them; so an old reader keeps what it can
//! see and nothing else. Below the newest decided version, the end of a chain also goes where a reader
//! that falls off it gets the same answer from the files: a moved version that every view finds there, and
//! a deletion that every snapshot sees. Undecided versions stay, and what is under them stays for rollback.
//!
//! Work is by page: pages with marks wait in a queue, one round visits each once, and slots say which keys
//! are marked. The latch is taken per page. A page that keeps something for an old snapshot remembers what
//! that depended on, and is passed over until it changes: old readers cost memory, not sweeping.

use crate::Swept;
use crate::page::{Header, Page};
use crate::slab::NONE;
use crate::store::{Place, Store};
use basalt_types::{Version, ViewNo};
use std::num::NonZeroU64;

/// Who may still read.
pub struct Live<'a> {
    /// Ascending; the last is the newest published version, which later snapshots are at least.
    pub snapshots: &'a [Version],
    pub oldest_view: ViewNo,
}

impl Live<'_> {
    /// Whether a live or later snapshot sees a version stamped `from` whose successor is stamped `until`.
    fn sees_between(&self, from: Version, until: Version) -> bool {
        if from >= until {
            return false;
        }
        let published = *self.snapshots.last().expect("checked at the door");
        let next = self.snapshots.partition_point(|snapshot| *snapshot < from);
        until > published || self.snapshots.get(next).is_some_and(|snapshot| *snapshot < until)
    }

    /// A digest of all that a sweep of a page depends on besides the page: the snapshots below its stamps,
    /// and the oldest view. `None`: it depends on commits to come. Equal digests of unequal causes delay a
    /// sweep, no more.
    fn digest(&self, page: &Page) -> Option<NonZeroU64> {
        let published = *self.snapshots.last().expect("checked at the door");
        let greatest = page.greatest().filter(|greatest| *greatest <= published)?;
        let below = &self.snapshots[..self.snapshots.partition_point(|snapshot| *snapshot < greatest)];
        let mix = |digest: u64, part: u64| (digest.rotate_left(5) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let digest = below.iter().fold(self.oldest_view.0, |digest, snapshot| mix(digest, snapshot.0));
        Some(NonZeroU64::new(digest).unwrap_or(NonZeroU64::MIN))
    }

    /// Whether hot may fall silent about a decided version with nothing below it.
    fn replaced_by_files(&self, header: &Header) -> bool {
        if let Some(moved_at) = header.moved_at {
            return moved_at <= self.oldest_view;
        }
        header.deleted && header.stamp.as_version().is_some_and(|version| version <= self.snapshots[0])
    }
}

impl Store {
    /// Visits the next page of the round. False: the round is over.
    pub fn sweep_page(&mut self, live: &Live<'_>, swept: &mut Swept) -> bool {
        let Some(at) = self.queue.pop() else { return false };
        if self.is_quiet(at, live) {
            self.queue.push(at);
            return true;
        }
        let mut from = 0;
        while let Some(slot) = self.pages[at].next_marked(from) {
            let place = Place { page: at, slot };
            let header = self.prune(place, live, swept);
            let alone = header.undo == NONE && header.stamp.as_version().is_some();
            if alone && live.replaced_by_files(&header) {
                // The last key of a page may take the page along; its number then names an empty one.
                self.remove(place);
                swept.keys += 1;
            } else {
                from = slot + 1;
            }
        }
        if self.pages[at].has_marks() {
            self.queue.push(at);
        }
        if self.pages[at].len() > 0 && self.tidy(at) {
            let page = &mut self.pages[at];
            page.swept_for = live.digest(page);
        }
        true
    }

    /// Whether a sweep of the page would find what the last one left.
    fn is_quiet(&self, at: u32, live: &Live<'_>) -> bool {
        let page = &self.pages[at];
        page.swept_for.is_some() && page.swept_for == live.digest(page)
    }

    /// Prunes the undo of a key; returns its newest version as it is then.
    fn prune(&mut self, place: Place, live: &Live<'_>, swept: &mut Swept) -> Header {
        let newest = self.pages[place.page].header(place.slot);
        let mut kept: Vec<u32> = Vec::new();
        // Kept versions that must stay whatever they are: up to and including the newest decided one.
        let mut fixed = 0;
        let mut newer = newest.stamp.as_version();
        let before = swept.versions;
        let mut at = newest.undo;
        while at != NONE {
            let header = self.undo[at].header;
            let stays = match (header.stamp.as_version(), newer) {
                (Some(version), Some(newer)) => live.sees_between(version, newer),
                _ => true,
            };
            if stays {
                kept.push(at);
            } else {
                self.take_undo(at);
                swept.versions += 1;
            }
            if newer.is_none() {
                fixed = kept.len();
            }
            newer = header.stamp.as_version().or(newer);
            at = header.undo;
        }
        while kept.len() > fixed && live.replaced_by_files(&self.undo[kept[kept.len() - 1]].header) {
            self.take_undo(kept.pop().expect("not empty"));
            swept.versions += 1;
        }
        if swept.versions == before {
            return newest;
        }
        for (i, &at) in kept.iter().enumerate() {
            self.undo[at].header.undo = kept.get(i + 1).copied().unwrap_or(NONE);
        }
        let newest = Header { undo: kept.first().copied().unwrap_or(NONE), ..newest };
        self.edit(place.page, |page| page.set_header(place.slot, newest));
        newest
    }
}

#[cfg(test)]
mod tests;
