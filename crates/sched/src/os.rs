//! Files, clock, randomness and load as injected parts.
//!
//! Two implementations of each run today: [`real`] here and the simulated one in `testing/sim`, which
//! drops or tears what was not synced. The contract is POSIX's on a power cut: bytes written survive only
//! after [`File::sync`]; a created, renamed or removed name survives only after [`FileSystem::sync_dir`]
//! of its directory. A failed sync must never be retried (DESIGN rule 2): the page cache may have dropped
//! the dirty pages already.

pub mod hooked;
pub mod real;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How [`FileSystem::open`] opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// Must exist.
    Read,
    /// Must exist; opened for reading and writing.
    Write,
    /// Must not exist.
    CreateNew,
}

/// An open file. Positions are explicit, so that one handle serves many threads.
pub trait File: Send + Sync {
    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `buf`, growing the file where needed.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    fn len(&self) -> io::Result<u64>;

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes sure that writing up to `len` bytes cannot fail for lack of space (ENOSPC now, not later).
    /// The file reads as zeros where nothing was written.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Data (and length) durable on return. After an error the file must not be trusted or synced again.
    fn sync(&self) -> io::Result<()>;

    /// Begins to write these bytes to the device. Does not wait for them.
    fn begin_write_out(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    /// Has these bytes written to the device, and waits until they are there. They are not durable by that; but a sync
    /// that comes later has little left to write, and syncs of other files do not wait behind it. An error means what
    /// one of [`sync`](File::sync) means, and a sync need not tell it again.
    fn write_out(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    /// Gives back the room of a file that has no name any more, in steps, so that syncs of other files do not wait for all
    /// of it. A file that has another name stays as it is.
    fn give_back(&self) -> io::Result<()> {
        Ok(())
    }

    /// Says that these bytes will be read soon. Does not wait for them: reading has begun, or nothing comes of it.
    fn will_read(&self, _offset: u64, _bytes: u64) {}

    /// `read_at` until the buffer is full; `UnexpectedEof` where the file ends before.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => {
                    buf = &mut buf[n..];
                    offset += n as u64;
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    pub name: String,
    pub bytes: u64,
    pub is_dir: bool,
}

/// Names and files. Paths are absolute or relative to the process; all are given by the caller.
pub trait FileSystem: Send + Sync {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Atomic; replaces `to`. Durable after `sync_dir` of the directory.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Entries of a directory, by name.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;
    /// Creates the directory and its parents, durably.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes an exclusive lock on a file (made if missing) until the guard is dropped;
    /// `WouldBlock` if another process has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
    /// Bytes free to this user on the file system that holds `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.open(path, OpenMode::Read) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, OpenMode::Read)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).map_err(|_| io::ErrorKind::OutOfMemory)?];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Puts `bytes` at `path` so that after a power cut either the old or the new content is there:
    /// temporary file, sync, rename, sync of the directory.
    fn write_atomically(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary: PathBuf = path.with_extension("tmp");
        match self.remove(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.open(&temporary, OpenMode::CreateNew)?;
        file.write_at(bytes, 0)?;
        file.sync()?;
        self.rename(&temporary, path)?;
        self.sync_dir(path.parent().unwrap_or(Path::new(".")))
    }
}

pub trait Clock: Send + Sync {
    /// Monotonic time since an arbitrary start.
    fn monotonic(&self) -> Duration;
    /// Microseconds since 1970-01-01 UTC.
    fn unix_micros(&self) -> i64;
    /// Blocks this thread.
    fn sleep(&self, duration: Duration);
}

pub trait Random: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);

    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// How busy the machine is.
pub trait Load: Send + Sync {
    /// Whether every processor has something to do, the calling thread apart. A guess of this moment; false where
    /// nobody knows.
    fn is_full(&self) -> bool;
}

/// A machine of which nobody knows how busy it is.
pub struct UnknownLoad;

impl Load for UnknownLoad {
    fn is_full(&self) -> bool {
        false
    }
}

/// The injected machine, handed from the binary (or a test) to every part that needs it.
#[derive(Clone)]
pub struct Os {
    pub fs: Arc<dyn FileSystem>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub load: Arc<dyn Load>,
}

impl Os {
    /// The machine that this process runs on.
    pub fn real() -> Os {
        Os {
            fs: Arc::new(real::RealFs),
            clock: Arc::new(real::RealClock::new()),
            random: Arc::new(real::RealRandom),
            load: Arc::new(real::RealLoad::new()),
        }
    }
}
