//! The disk's state: names, files, space, faults, power. One lock over all of it, so that a cut is one
//! instant.

use crate::content::Content;
use crate::{Fault, Op, OpCounts, Rng};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A file, whatever its name. Locked only under the disk's lock.
pub type Node = Arc<Mutex<Content>>;

/// A change of a directory that is not synced.
#[derive(Clone)]
pub enum NameChange {
    Link { name: String, node: Node },
    Unlink { name: String },
    Rename { from: String, to: String, node: Node },
}

#[derive(Default)]
pub struct Dir {
    pub now: BTreeMap<String, Node>,
    pub synced: BTreeMap<String, Node>,
    pub pending: Vec<NameChange>,
}

impl Dir {
    pub fn change(&mut self, change: NameChange) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    pub fn sync(&mut self) {
        self.pending.clear();
        self.synced = self.now.clone();
    }
}

impl NameChange {
    pub fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            NameChange::Link { name, node } => {
                names.insert(name.clone(), node.clone());
            }
            NameChange::Unlink { name } => {
                names.remove(name);
            }
            NameChange::Rename { from, to, node } => {
                names.remove(from);
                names.insert(to.clone(), node.clone());
            }
        }
    }
}

pub struct Disk {
    pub dirs: BTreeMap<PathBuf, Dir>,
    pub locks: HashSet<PathBuf>,
    pub powered: bool,
    /// The power fails at this many changes.
    pub off_at: Option<u64>,
    pub counts: OpCounts,
    pub faults: Vec<Fault>,
    pub capacity_bytes: Option<u64>,
    pub used_bytes: u64,
    pub lies_about_sync: bool,
    pub sync_delay: Duration,
    pub rng: Rng,
}

impl Disk {
    pub fn new(seed: u64) -> Disk {
        Disk {
            dirs: BTreeMap::from([(PathBuf::from("/"), Dir::default())]),
            locks: HashSet::new(),
            powered: true,
            off_at: None,
            counts: OpCounts::default(),
            faults: Vec::new(),
            capacity_bytes: None,
            used_bytes: 0,
            lies_about_sync: false,
            sync_delay: Duration::ZERO,
            rng: Rng::new(seed),
        }
    }

    pub fn check_power(&self) -> io::Result<()> {
        match self.powered {
            true => Ok(()),
            false => Err(io::Error::other("the power is off")),
        }
    }

    /// Counts an operation and lets faults strike. The operation that the power fails at fails, too, having
    /// done nothing that is not undone or redone at random anyway.
    pub fn step(&mut self, op: Op, path: &Path) -> io::Result<()> {
        self.check_power()?;
        self.counts.count(op);
        if op != Op::Read && self.off_at.is_some_and(|at| self.counts.changes() >= at) {
            self.powered = false;
            return self.check_power();
        }
        let path = path.to_string_lossy();
        match self.faults.iter_mut().find_map(|fault| fault.strikes(op, &path)) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub fn dir(&mut self, dir: &Path) -> io::Result<&mut Dir> {
        self.dirs.get_mut(dir).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{}", dir.display())))
    }

    pub fn node(&self, path: &Path) -> io::Result<Node> {
        let (dir, name) = split(path)?;
        let found = self.dirs.get(dir).and_then(|dir| dir.now.get(name)).cloned();
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{}", path.display())))
    }

    /// Takes space, or says that there is none.
    pub fn take_space(&mut self, had: u64, needs: u64) -> io::Result<()> {
        let more = needs.saturating_sub(had);
        if more > 0 && self.capacity_bytes.is_some_and(|capacity| self.used_bytes + more > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.used_bytes += more;
        Ok(())
    }

    pub fn give_space(&mut self, bytes: u64) {
        self.used_bytes = self.used_bytes.saturating_sub(bytes);
    }
}

/// Directory and name. Paths are taken as they are: no `..`, no links.
pub fn split(path: &Path) -> io::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    match (path.parent(), name) {
        (Some(dir), Some(name)) => Ok((dir, name)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} names no file", path.display()))),
    }
}
