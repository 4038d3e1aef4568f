//! Random work by several transactions against lists of versions, checked for random readers.
//!
//! `present` is what hot should hold, version by version; `history` never forgets, so that sweeping is
//! seen to change no answer.

use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, Debug)]
struct Kept {
    stamp: Stamp,
    seq: u32,
    rid: Rid,
    row: Option<Vec<u8>>,
    moved_at: Option<ViewNo>,
}

/// Oldest first.
type Versions = BTreeMap<Vec<u8>, Vec<Kept>>;

struct Writer {
    id: TxnId,
    seq: u32,
    keys: Vec<Vec<u8>>,
}

struct World {
    rng: StdRng,
    hot: HotTablet,
    table: Table,
    present: Versions,
    history: Versions,
    writers: Vec<Writer>,
    next_txn: u64,
    version: u64,
    published: u64,
    snapshots: Vec<u64>,
    view: u64,
    views: Vec<u64>,
    spots: Vec<Spot>,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            rng: StdRng::seed_from_u64(seed),
            hot: HotTablet::new(),
            table: Table::default(),
            present: Versions::new(),
            history: Versions::new(),
            writers: Vec::new(),
            next_txn: 1,
            version: 1,
            published: 1,
            snapshots: Vec::new(),
            view: 1,
            views: Vec::new(),
            spots: Vec::new(),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let n: u32 = self.rng.random_range(0..600);
        let mut key = if n.is_multiple_of(3) { b"shared/prefix/".to_vec() } else { Vec::new() };
        key.extend(n.to_be_bytes());
        key.truncate(key.len() - usize::from(n.is_multiple_of(7)));
        key
    }

    /// Where some key was, once: hints that mislead change nothing.
    fn spot(&mut self) -> Spot {
        match self.spots.len() {
            0 => Spot::UNKNOWN,
            known => self.spots[self.rng.random_range(0..known)],
        }
    }

    fn row(&mut self) -> Vec<u8> {
        let len = if self.rng.random_bool(0.03) { 700 } else { self.rng.random_range(0..60) };
        (0..len).map(|_| self.rng.random()).collect()
    }

    /// Whether `key` is free or `writer`'s: the row lock.
    fn may_write(&self, key: &[u8], writer: usize) -> bool {
        let newest = self.present.get(key).and_then(|versions| versions.last());
        newest.is_none_or(|newest| {
            newest.stamp.as_version().is_some() || newest.stamp == Stamp::txn(self.writers[writer].id)
        })
    }

    fn write(&mut self) {
        if self.writers.len() < 3 {
            self.writers.push(Writer { id: txn(self.next_txn), seq: 0, keys: Vec::new() });
            self.next_txn += 1;
        }
        let writer = self.rng.random_range(0..self.writers.len());
        self.writers[writer].seq += u32::from(self.rng.random_bool(0.3));
        let (id, seq) = (self.writers[writer].id, self.writers[writer].seq);
        let mut batch: Vec<(Vec<u8>, Option<Vec<u8>>, Rid)> = Vec::new();
        for _ in 0..self.rng.random_range(1..6) {
            let key = self.key();
            if self.may_write(&key, writer) {
                let row = self.rng.random_bool(0.75).then(|| self.row());
                batch.push((key, row, Rid(self.rng.random_range(0..1000))));
            }
        }
        for (key, row, rid) in &batch {
            let below = self.present.get(key).and_then(|versions| versions.last());
            let rid = if row.is_some() { *rid } else { below.map_or(Rid(0), |below| below.rid) };
            let kept = Kept { stamp: Stamp::txn(id), seq, rid, row: row.clone(), moved_at: None };
            for versions in [&mut self.present, &mut self.history] {
                versions.entry(key.clone()).or_default().push(kept.clone());
            }
            self.writers[writer].keys.push(key.clone());
        }
        if self.rng.random_bool(0.5) {
            let changes: Vec<Change<'_>> =
                batch.iter().map(|(key, row, rid)| Change { key, row: row.as_deref(), rid: *rid }).collect();
            self.hot.put_many(&changes, id, seq);
        } else {
            for (key, row, rid) in &batch {
                let spot = self.spot();
                self.spots.push(match row {
                    Some(row) => self.hot.put_at(spot, key, row, *rid, id, seq),
                    None => self.hot.delete_at(spot, key, id, seq),
                });
            }
        }
    }

    /// Undoes the last changes of a writer, perhaps all.
    fn roll_back(&mut self) {
        let Some(writer) = self.pick_writer() else { return };
        let all = self.rng.random_bool(0.5);
        let stay = if all { 0 } else { self.rng.random_range(0..=self.writers[writer].keys.len()) };
        let id = self.writers[writer].id;
        while self.writers[writer].keys.len() > stay {
            let key = self.writers[writer].keys.pop().unwrap();
            assert!(self.hot.rollback(&key, id));
            for versions in [&mut self.present, &mut self.history] {
                let list = versions.get_mut(&key).unwrap();
                list.pop();
                if list.is_empty() {
                    versions.remove(&key);
                }
            }
        }
        if all {
            self.table.0.lock().insert(id, TxnState::Aborted);
            self.writers.remove(writer);
        }
    }

    fn commit(&mut self) {
        let Some(writer) = self.pick_writer() else { return };
        let writer = self.writers.remove(writer);
        self.version += self.rng.random_range(1..3);
        let version = Version(self.version);
        self.table.0.lock().insert(writer.id, TxnState::Committed(version));
        // Between the commit and the new stamps readers ask the table.
        self.check_some();
        if self.rng.random_bool(0.5) {
            let keys: Vec<(Spot, &[u8])> = writer.keys.iter().map(|key| (self.spot(), key.as_slice())).collect();
            self.hot.restamp_many(&keys, writer.id, version);
        } else {
            writer.keys.iter().for_each(|key| self.hot.restamp(key, writer.id, version));
        }
        for versions in [&mut self.present, &mut self.history] {
            for kept in versions.values_mut().flatten().filter(|kept| kept.stamp == Stamp::txn(writer.id)) {
                kept.stamp = Stamp::version(version);
            }
        }
    }

    fn pick_writer(&mut self) -> Option<usize> {
        (!self.writers.is_empty()).then(|| self.rng.random_range(0..self.writers.len()))
    }

    fn pin(&mut self) {
        self.published = self.rng.random_range(self.published..=self.version);
        self.snapshots.push(self.published);
        self.views.push(self.view);
        if self.snapshots.len() > 3 {
            self.snapshots.remove(self.rng.random_range(0..4));
            self.views.remove(self.rng.random_range(0..4));
        }
    }

    fn freeze(&mut self) {
        let upto = Version(self.rng.random_range(0..=self.version));
        let mut out = Rows::new();
        let mut from = Bound::Unbounded;
        let mut last;
        while let Some(next) = self.hot.scan_settled(from, Bound::Unbounded, upto, 50, &mut out) {
            last = next;
            from = Bound::Excluded(last.as_bytes());
        }
        let expected: Vec<_> = self
            .present
            .iter()
            .map(|(key, versions)| (key, versions.last().unwrap()))
            .filter(|(_, newest)| newest.stamp.as_version().is_some_and(|at| at <= upto))
            .filter(|(_, newest)| newest.row.is_some() && newest.moved_at.is_none())
            .collect();
        assert_eq!(out.len(), expected.len());
        for (found, (key, newest)) in out.iter().zip(&expected) {
            assert_eq!((found.key, found.stamp, found.rid), (key.as_slice(), newest.stamp, newest.rid));
            assert_eq!(Some(found.row), newest.row.as_deref());
        }
        self.view += 1;
        let mut chosen: Vec<(Vec<u8>, Stamp)> = Vec::new();
        for (key, newest) in expected {
            if self.rng.random_bool(0.5) {
                chosen.push((key.clone(), newest.stamp));
            }
        }
        let rows: Vec<(&[u8], Stamp)> = chosen.iter().map(|(key, stamp)| (key.as_slice(), *stamp)).collect();
        assert!(self.hot.mark_moved(&rows, ViewNo(self.view)).into_iter().all(|moved| moved));
        for (key, _) in &chosen {
            for versions in [&mut self.present, &mut self.history] {
                versions.get_mut(key).unwrap().last_mut().unwrap().moved_at = Some(ViewNo(self.view));
            }
        }
    }

    fn sweep(&mut self) {
        let mut snapshots = self.snapshots.clone();
        snapshots.push(self.published);
        snapshots.sort_unstable();
        let snapshots: Vec<Version> = snapshots.into_iter().map(Version).collect();
        let oldest = ViewNo(self.views.iter().copied().min().unwrap_or(self.view));
        while self.hot.sweep(&snapshots, oldest).more {}
        // Later snapshots, one by one.
        let mut all = snapshots.clone();
        all.extend((self.published..=self.version + 1).map(Version));
        for versions in self.present.values_mut() {
            prune(versions, &all, oldest);
        }
        self.present.retain(|_, versions| !versions.is_empty());
        let undo: usize = self.present.values().map(|versions| versions.len() - 1).sum();
        assert_eq!(self.hot.undo_versions(), undo);
    }

    fn check_some(&mut self) {
        let at = match self.rng.random_range(0..3) {
            0 => self.rng.random_range(self.published..=self.version + 1),
            _ => self.pinned_snapshot(),
        };
        let own = self.pick_writer().filter(|_| self.rng.random_bool(0.5)).map(|writer| &self.writers[writer]);
        let at = ReadAt { snapshot: Version(at), own: own.map(|own| own.id), seq: own.map_or(0, |own| own.seq) };
        let at = ReadAt { seq: at.seq + u32::from(self.rng.random_bool(0.5)), ..at };
        let view = self.views.get(self.rng.random_range(0..4)).copied().unwrap_or(self.view);
        let reader = Reader { at, view: ViewNo(view), txns: &self.table };
        for _ in 0..20 {
            let n = self.rng.random_range(0..self.present.len().max(1));
            let Some(key) = self.present.keys().nth(n).cloned() else { break };
            check_key(&self.hot, &self.present, &self.history, &key, &reader);
        }
        check_scan(&self.hot, &self.present, &reader, &mut self.rng);
    }

    fn pinned_snapshot(&mut self) -> u64 {
        let n = self.rng.random_range(0..4);
        self.snapshots.get(n).copied().unwrap_or(self.published)
    }

    fn check_totals(&self) {
        assert_eq!(self.hot.keys(), self.present.len());
        let is_row = |versions: &&Vec<Kept>| {
            let newest = versions.last().unwrap();
            newest.row.is_some() && newest.moved_at.is_none()
        };
        assert_eq!(self.hot.rows(), self.present.values().filter(is_row).count());
        let (first, last) = (self.present.keys().next(), self.present.keys().next_back());
        assert_eq!(self.hot.min_key().as_ref().map(Key::as_bytes), first.map(Vec::as_slice));
        assert_eq!(self.hot.max_key().as_ref().map(Key::as_bytes), last.map(Vec::as_slice));
        self.hot.store.read().check();
    }
}

/// By trying every snapshot.
fn prune(versions: &mut Vec<Kept>, snapshots: &[Version], oldest_view: ViewNo) {
    let decided = |kept: &Kept| kept.stamp.as_version();
    let seen_by =
        |snapshot: &Version| versions.iter().rposition(|kept| decided(kept).is_some_and(|at| at <= *snapshot));
    let newest_decided = versions.iter().rposition(|kept| decided(kept).is_some());
    let seen: Vec<usize> = snapshots.iter().filter_map(seen_by).chain(newest_decided).collect();
    let last = versions.len() - 1;
    let stays: Vec<bool> =
        (0..=last).map(|i| i == last || decided(&versions[i]).is_none() || seen.contains(&i)).collect();
    let mut stay = stays.iter();
    versions.retain(|_| *stay.next().unwrap());
    while let Some(oldest) = versions.first() {
        let newer_decides = versions.len() == 1 || versions[1..].iter().any(|kept| decided(kept).is_some());
        let files_answer = match oldest.moved_at {
            Some(moved_at) => moved_at <= oldest_view,
            None => oldest.row.is_none() && decided(oldest).is_some_and(|at| snapshots.iter().all(|s| at <= *s)),
        };
        if decided(oldest).is_none() || !newer_decides || !files_answer {
            break;
        }
        versions.remove(0);
    }
}

fn expected(versions: Option<&Vec<Kept>>, reader: &Reader<'_>) -> Lookup {
    let sees = |kept: &&Kept| reader.at.sees(kept.stamp, kept.seq, reader.txns);
    match versions.and_then(|versions| versions.iter().rev().find(sees)) {
        None => Lookup::Absent,
        Some(kept) if kept.moved_at.is_some_and(|moved_at| moved_at <= reader.view) => Lookup::Elsewhere,
        Some(Kept { row: None, .. }) => Lookup::Deleted,
        Some(Kept { row: Some(row), stamp, seq, rid, .. }) => {
            Lookup::Row { row: row.clone(), stamp: *stamp, seq: *seq, rid: *rid }
        }
    }
}

fn check_key(hot: &HotTablet, present: &Versions, history: &Versions, key: &[u8], reader: &Reader<'_>) {
    let found = hot.get(key, reader);
    assert_eq!(found, expected(present.get(key), reader), "{key:?} {:?} {:?}", reader.at, reader.view);
    let whole = expected(history.get(key), reader);
    let may_be_silent = matches!(whole, Lookup::Deleted | Lookup::Elsewhere);
    assert!(found == whole || (may_be_silent && found == Lookup::Absent), "{key:?} {found:?} {whole:?}");
    let newest = present.get(key).and_then(|versions| versions.last()).map(|kept| Newest {
        stamp: kept.stamp,
        seq: kept.seq,
        rid: kept.rid,
        row: kept.row.clone(),
        moved_at: kept.moved_at,
    });
    assert_eq!(hot.newest(key), newest);
}

fn check_scan(hot: &HotTablet, present: &Versions, reader: &Reader<'_>, rng: &mut StdRng) {
    let bound = |rng: &mut StdRng| {
        let key = present.keys().nth(rng.random_range(0..present.len().max(1))).cloned().unwrap_or_default();
        match rng.random_range(0..3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(key),
            _ => Bound::Excluded(key),
        }
    };
    let (from, to) = (bound(rng), bound(rng));
    let in_range = |key: &Vec<u8>| {
        let above = match &from {
            Bound::Unbounded => true,
            Bound::Included(from) => key >= from,
            Bound::Excluded(from) => key > from,
        };
        let below = match &to {
            Bound::Unbounded => true,
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
        };
        above && below
    };
    let expected: Vec<(&[u8], Vec<u8>, Rid, Stamp)> = present
        .iter()
        .filter(|(key, _)| in_range(key))
        .filter_map(|(key, versions)| match expected(Some(versions), reader) {
            Lookup::Row { row, stamp, rid, .. } => Some((key.as_slice(), row, rid, stamp)),
            _ => None,
        })
        .collect();
    let rows_max = rng.random_range(1..200);
    let (mut out, mut chunk) = (Rows::new(), Rows::new());
    let mut next =
        hot.scan(from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice), reader, rows_max, &mut out);
    while let Some(last) = next {
        chunk.clear();
        let from = Bound::Excluded(last.as_bytes());
        next = hot.scan(from, to.as_ref().map(Vec::as_slice), reader, rows_max, &mut chunk);
        assert!(chunk.len() <= rows_max);
        chunk.iter().for_each(|row| out.push(row.key, row.row, row.rid, row.stamp));
    }
    let found: Vec<_> = out.iter().map(|row| (row.key, row.row.to_vec(), row.rid, row.stamp)).collect();
    assert_eq!(found, expected);
    let from = from.as_ref().map(Vec::as_slice);
    out.clear();
    let mut next = hot.scan_back(from, to.as_ref().map(Vec::as_slice), reader, rows_max, &mut out);
    while let Some(last) = next {
        chunk.clear();
        next = hot.scan_back(from, Bound::Excluded(last.as_bytes()), reader, rows_max, &mut chunk);
        assert!(chunk.len() <= rows_max);
        chunk.iter().for_each(|row| out.push(row.key, row.row, row.rid, row.stamp));
    }
    let mut found: Vec<_> = out.iter().map(|row| (row.key, row.row.to_vec(), row.rid, row.stamp)).collect();
    found.reverse();
    assert_eq!(found, expected);
}

#[test]
fn hot_answers_as_lists_of_versions_do() {
    for seed in 0..12 {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for step in 0..2500 {
            match world.rng.random_range(0..100) {
                0..60 => world.write(),
                60..70 => world.roll_back(),
                70..85 => world.commit(),
                85..93 => world.pin(),
                93..95 => world.freeze(),
                _ => world.sweep(),
            }
            if step % 5 == 0 {
                world.check_some();
                world.check_totals();
            }
        }
    }
}
