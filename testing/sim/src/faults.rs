//! What goes wrong on demand, and what was done.

use std::io;

/// Kinds of operations that change the disk, and reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    Read,
    Create,
    Write,
    /// `set_len` and `allocate`.
    Resize,
    Sync,
    Rename,
    Remove,
    SyncDir,
}

/// One planned failure.
#[derive(Clone, Debug)]
pub struct Fault {
    pub op: Op,
    /// Applies to paths that contain this; empty: to all.
    pub path_contains: String,
    /// So many matching operations pass first.
    pub after: u64,
    /// So many fail then.
    pub times: u64,
    pub error: io::ErrorKind,
}

impl Fault {
    /// The `nth` (from 0) operation of a kind fails, once.
    pub fn nth(op: Op, nth: u64) -> Fault {
        Fault { op, path_contains: String::new(), after: nth, times: 1, error: io::ErrorKind::Other }
    }

    /// All operations of a kind fail.
    pub fn every(op: Op) -> Fault {
        Fault { times: u64::MAX, ..Fault::nth(op, 0) }
    }

    pub fn on(self, path_contains: &str) -> Fault {
        Fault { path_contains: path_contains.into(), ..self }
    }

    /// Whether this operation fails; counts it.
    pub(crate) fn strikes(&mut self, op: Op, path: &str) -> Option<io::Error> {
        if op != self.op || self.times == 0 || !path.contains(&self.path_contains) {
            return None;
        }
        if self.after > 0 {
            self.after -= 1;
            return None;
        }
        self.times -= 1;
        Some(io::Error::new(self.error, format!("injected fault: {op:?} of {path}")))
    }
}

/// Operations asked for since the disk was made, failed ones included.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpCounts {
    pub reads: u64,
    pub creates: u64,
    pub writes: u64,
    pub resizes: u64,
    pub syncs: u64,
    pub renames: u64,
    pub removes: u64,
    pub dir_syncs: u64,
}

impl OpCounts {
    pub(crate) fn count(&mut self, op: Op) {
        *match op {
            Op::Read => &mut self.reads,
            Op::Create => &mut self.creates,
            Op::Write => &mut self.writes,
            Op::Resize => &mut self.resizes,
            Op::Sync => &mut self.syncs,
            Op::Rename => &mut self.renames,
            Op::Remove => &mut self.removes,
            Op::SyncDir => &mut self.dir_syncs,
        } += 1;
    }

    /// All but reads.
    pub fn changes(&self) -> u64 {
        self.creates + self.writes + self.resizes + self.syncs + self.renames + self.removes + self.dir_syncs
    }
}
