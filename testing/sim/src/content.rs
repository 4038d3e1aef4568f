//! One file's bytes: as programs see them, as the disk has them, and what is in between.
//!
//! The changes since the last sync are kept in order. The kernel may have written any page back at any of
//! its states since then, and the length at any of its own: so after a cut each page has a prefix of the
//! changes that touched it, and the length is what it was after some prefix of all.

use crate::Rng;

#[derive(Debug)]
enum Change {
    Write { offset: usize, bytes: Box<[u8]> },
    Len(usize),
}

#[derive(Default, Debug)]
pub struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
    pending: Vec<Change>,
    /// Bytes promised by `allocate`.
    reserved: usize,
}

/// What becomes of unsynced bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Lost,
    Kept,
    /// Each page of this many bytes for itself.
    Torn {
        page_bytes: usize,
    },
}

impl Fate {
    pub fn draw(rng: &mut Rng) -> Fate {
        match rng.below(8) {
            0 => Fate::Lost,
            1 => Fate::Kept,
            n if n < 5 => Fate::Torn { page_bytes: 512 },
            _ => Fate::Torn { page_bytes: 4096 },
        }
    }
}

impl Content {
    /// A file that rests on the disk as it is.
    pub fn resting(bytes: Vec<u8>) -> Content {
        Content { now: bytes.clone(), synced: bytes, pending: Vec::new(), reserved: 0 }
    }

    pub fn now(&self) -> &[u8] {
        &self.now
    }

    /// Bytes that the file takes of the disk.
    pub fn space(&self) -> u64 {
        self.now.len().max(self.reserved) as u64
    }

    /// What it would take after a write up to `end`.
    pub fn space_up_to(&self, end: u64) -> u64 {
        self.space().max(end)
    }

    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        apply(&mut self.now, offset, bytes);
        self.pending.push(Change::Write { offset, bytes: bytes.into() });
    }

    pub fn set_len(&mut self, len: usize) {
        if len < self.now.len() {
            self.reserved = self.reserved.min(len);
        }
        self.now.resize(len, 0);
        self.pending.push(Change::Len(len));
    }

    pub fn allocate(&mut self, len: usize) {
        self.reserved = self.reserved.max(len);
        if len > self.now.len() {
            self.set_len(len);
        }
    }

    pub fn sync(&mut self) {
        for change in self.pending.drain(..) {
            match change {
                Change::Write { offset, bytes } => apply(&mut self.synced, offset, &bytes),
                Change::Len(len) => self.synced.resize(len, 0),
            }
        }
    }

    /// A sync that fails: some pages have reached the disk, and the kernel forgets that the others did not.
    /// Programs go on reading what they wrote; a later sync brings none of it to the disk.
    pub fn fail_sync(&mut self, rng: &mut Rng) {
        self.synced = self.after_cut(Fate::draw(rng), rng);
        self.pending.clear();
    }

    /// Damage that is there for good.
    pub fn flip(&mut self, byte: usize, mask: u8) {
        self.now[byte] ^= mask;
        if let Some(synced) = self.synced.get_mut(byte) {
            *synced ^= mask;
        }
    }

    /// What is on the disk after a power cut.
    pub fn after_cut(&self, fate: Fate, rng: &mut Rng) -> Vec<u8> {
        let all = self.pending.len();
        let (page_bytes, len_changes) = match fate {
            Fate::Lost => return self.synced.clone(),
            Fate::Kept => (4096, all),
            Fate::Torn { page_bytes } => (page_bytes, rng.below(all as u64 + 1) as usize),
        };
        let mut pages = std::collections::HashMap::new();
        let mut bytes = self.synced.clone();
        let mut len = self.synced.len();
        for (i, change) in self.pending.iter().enumerate() {
            match change {
                Change::Write { offset, bytes: written } => {
                    let end = offset + written.len();
                    let mut at = *offset;
                    while at < end {
                        let until = (at / page_bytes + 1) * page_bytes;
                        let until = until.min(end);
                        let kept = *pages.entry(at / page_bytes).or_insert_with(|| match fate {
                            Fate::Kept => all,
                            _ => changes_kept(rng, all),
                        });
                        if i < kept {
                            apply(&mut bytes, at, &written[at - offset..until - offset]);
                        }
                        at = until;
                    }
                    if i < len_changes {
                        len = len.max(end);
                    }
                }
                Change::Len(to) if i < len_changes => {
                    let end = bytes.len();
                    if *to < end {
                        bytes[*to..].fill(0);
                    }
                    len = *to;
                }
                Change::Len(_) => {}
            }
        }
        bytes.resize(len, 0);
        bytes
    }
}

/// How many of the changes a page has: none, all, or some.
fn changes_kept(rng: &mut Rng, all: usize) -> usize {
    match rng.below(3) {
        0 => 0,
        1 => all,
        _ => rng.below(all as u64 + 1) as usize,
    }
}

fn apply(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    let end = offset + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(written);
}
