//! What is left of a disk when the power fails.

use crate::Rng;
use crate::content::{Content, Fate};
use crate::disk::{Dir, Disk, Node};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The disk that is found after a cut of `disk`, which stays off.
pub fn after_power_cut(disk: &mut Disk, seed: u64) -> Disk {
    disk.powered = false;
    let mut rng = Rng::new(seed);
    let mut after = Disk::new(rng.next_u64());
    // One in eight cuts loses everything unsynced, one in eight nothing; the others decide file by file.
    let whole = match rng.below(8) {
        0 => Some(Fate::Lost),
        1 => Some(Fate::Kept),
        _ => None,
    };
    let mut torn: HashMap<*const Mutex<Content>, Node> = HashMap::new();
    for (path, dir) in &disk.dirs {
        let mut names = BTreeMap::new();
        for (name, node) in names_after_cut(dir, whole, &mut rng) {
            let left = torn.entry(Arc::as_ptr(&node)).or_insert_with(|| {
                let fate = whole.unwrap_or_else(|| Fate::draw(&mut rng));
                Arc::new(Mutex::new(Content::resting(node.lock().after_cut(fate, &mut rng))))
            });
            names.insert(name, left.clone());
        }
        after.dirs.insert(path.clone(), Dir { now: names.clone(), synced: names, pending: Vec::new() });
    }
    after.used_bytes = torn.values().map(|node| node.lock().space()).sum();
    after.capacity_bytes = disk.capacity_bytes;
    after.lies_about_sync = disk.lies_about_sync;
    after.sync_delay = disk.sync_delay;
    after
}

/// Each unsynced change of a directory happened or did not: all, none, the first so many (as a journal
/// does it), or each for itself.
fn names_after_cut(dir: &Dir, whole: Option<Fate>, rng: &mut Rng) -> BTreeMap<String, Node> {
    let mut names = dir.synced.clone();
    let all = dir.pending.len();
    let first = match whole {
        Some(Fate::Lost) => Some(0),
        Some(_) => Some(all),
        None if rng.one_in(2) => Some(rng.below(all as u64 + 1) as usize),
        None => None,
    };
    for (i, change) in dir.pending.iter().enumerate() {
        let happened = match first {
            Some(first) => i < first,
            None => rng.one_in(2),
        };
        if happened {
            change.apply(&mut names);
        }
    }
    names
}
