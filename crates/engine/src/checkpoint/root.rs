//! The root: the one mutable file of a data directory, replaced atomically.
//!
//! ```text
//! magic "BASALTRT" | format u32 | epoch u32 | checkpoint file u64 (all ones: none) | replay start u64 | crc32c u32
//! ```

use crate::{Error, Result};
use basalt_sched::Os;
use basalt_types::{Epoch, FileId, Lsn};
use std::path::Path;

const MAGIC: &[u8; 8] = b"BASALTRT";
/// Version of the whole data directory's format.
pub const FORMAT: u32 = 1;
const BYTES: usize = 36;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root {
    /// The last start: made durable here before anything of that start is written.
    pub epoch: Epoch,
    pub checkpoint: Option<FileId>,
    pub replay_start: Lsn,
}

impl Root {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BYTES);
        out.extend_from_slice(MAGIC);
        out.extend(FORMAT.to_le_bytes());
        out.extend(self.epoch.0.to_le_bytes());
        out.extend(self.checkpoint.map_or(u64::MAX, FileId::to_u64).to_le_bytes());
        out.extend(self.replay_start.0.to_le_bytes());
        out.extend(crc32c::crc32c(&out).to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8], path: &Path) -> Result<Root> {
        let corrupt = |what: String| Error::Corrupt(format!("{}: {what}", path.display()));
        if bytes.len() < 12 || &bytes[..8] != MAGIC {
            return Err(corrupt(format!("not a Basalt root: it starts with {:02x?}", &bytes[..bytes.len().min(8)])));
        }
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if word(8) > FORMAT {
            let found = word(8);
            return Err(Error::Directory(format!(
                "{} has format {found}, written by a newer version of Basalt; this one reads formats up to {FORMAT}",
                path.display()
            )));
        }
        if bytes.len() != BYTES {
            return Err(corrupt(format!("{} bytes long, expected {BYTES}", bytes.len())));
        }
        let computed = crc32c::crc32c(&bytes[..BYTES - 4]);
        if word(BYTES - 4) != computed {
            let stored = word(BYTES - 4);
            return Err(corrupt(format!("checksum mismatch: stored {stored:#010x}, computed {computed:#010x}")));
        }
        let checkpoint = (long(16) != u64::MAX).then(|| FileId::from_u64(long(16)));
        Ok(Root { epoch: Epoch(word(12)), checkpoint, replay_start: Lsn(long(24)) })
    }

    /// Replaces the root; durable on return.
    pub fn write(&self, os: &Os, data_dir: &Path) -> Result<()> {
        let path = data_dir.join("root");
        os.fs.write_atomically(&path, &self.encode()).map_err(|error| match error.kind() {
            std::io::ErrorKind::StorageFull => Error::NoSpace { what: "root file" },
            _ => Error::Io(format!("cannot write {}: {error}", path.display())),
        })
    }

    /// `None`: the directory has none.
    pub fn read(os: &Os, data_dir: &Path) -> Result<Option<Root>> {
        let path = data_dir.join("root");
        match os.fs.read(&path) {
            Ok(bytes) => Root::decode(&bytes, &path).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Io(format!("cannot read {}: {error}", path.display()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_byte_is_noticed() {
        let root =
            Root { epoch: Epoch(7), checkpoint: Some(FileId { epoch: Epoch(6), serial: 9 }), replay_start: Lsn(4096) };
        let bytes = root.encode();
        let path = Path::new("root");
        assert_eq!(Root::decode(&bytes, path).unwrap(), root);
        for i in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[i] ^= 1;
            assert!(Root::decode(&bad, path).is_err(), "byte {i}");
            assert!(Root::decode(&bytes[..i], path).is_err(), "cut at {i}");
        }
        let mut newer = root.encode();
        newer[8] = 2;
        assert!(Root::decode(&newer, path).unwrap_err().to_string().contains("newer version"));
    }
}
