//! A disk in memory that fails on demand and can lose power, for the tests of this crate.

use crate::format::log_name;
use crate::{Appended, Error, Log, LogConfig, ReplayEnd, Result, replay};
use basalt_sched::os::{Clock, DirEntry, File, FileSystem, OpenMode, Os, Random, UnknownLoad, real};
use basalt_types::{Epoch, Lsn};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[derive(Default)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Ranges that the next sync brings to the disk. A failed sync forgets them, as page caches do.
    dirty: Vec<Range<usize>>,
    /// The end of what was ever written, rather than merely allocated.
    written: usize,
}

#[derive(Default)]
struct Disk {
    now: BTreeMap<PathBuf, Arc<Mutex<Content>>>,
    synced: BTreeMap<PathBuf, Arc<Mutex<Content>>>,
}

/// What goes wrong, and what was done.
pub struct Faults {
    /// Bytes that files may have in all.
    pub room_bytes: AtomicU64,
    pub fail_syncs: AtomicBool,
    pub fail_writes: AtomicBool,
    pub sync_micros: AtomicU64,
    /// Long writes of zeros wait until this is false again.
    pub hold_zeros: AtomicBool,
    /// One has waited.
    pub holds_zeros: AtomicBool,
    /// What the test was told is durable, and what it gave up.
    pub acknowledged: AtomicU64,
    pub released: AtomicU64,
    /// Power cuts after every operation, when wanted.
    pub cuts: Mutex<Option<Vec<Cut>>>,
}

/// A disk after a power cut, and what the test knew then.
pub struct Cut {
    pub fs: Arc<FaultFs>,
    pub acknowledged: Lsn,
    pub released: Lsn,
}

pub struct FaultFs {
    disk: Arc<Mutex<Disk>>,
    pub faults: Arc<Faults>,
}

struct FaultFile {
    content: Arc<Mutex<Content>>,
    disk: Arc<Mutex<Disk>>,
    faults: Arc<Faults>,
}

impl FaultFs {
    pub fn new() -> Arc<FaultFs> {
        let faults = Faults {
            room_bytes: AtomicU64::new(u64::MAX),
            fail_syncs: AtomicBool::new(false),
            fail_writes: AtomicBool::new(false),
            sync_micros: AtomicU64::new(0),
            hold_zeros: AtomicBool::new(false),
            holds_zeros: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            released: AtomicU64::new(0),
            cuts: Mutex::new(None),
        };
        Arc::new(FaultFs { disk: Arc::default(), faults: Arc::new(faults) })
    }

    pub fn os(self: &Arc<FaultFs>) -> Os {
        let random: Arc<dyn Random> = Arc::new(real::RealRandom);
        let clock: Arc<dyn Clock> = Arc::new(real::RealClock::new());
        Os { fs: self.clone(), clock, random, load: Arc::new(UnknownLoad) }
    }

    /// Everything that was not synced is gone, in the copy that is returned. Open files stay with the old one.
    pub fn after_power_cut(&self) -> Arc<FaultFs> {
        let cut = FaultFs::new();
        for (path, content) in &self.disk.lock().synced {
            cut.put(path, content.lock().synced.clone());
        }
        cut
    }

    /// Of what was not synced, `pick` decides sector by sector.
    pub fn after_torn_power_cut(&self, pick: &mut dyn FnMut() -> bool) -> Arc<FaultFs> {
        let cut = FaultFs::new();
        for (path, content) in &self.disk.lock().synced {
            let content = content.lock();
            let mut bytes = content.synced.clone();
            bytes.resize(content.now.len().max(bytes.len()), 0);
            for (old, new) in bytes.chunks_mut(512).zip(content.now.chunks(512)) {
                if old[..new.len()] != *new && pick() {
                    old[..new.len()].copy_from_slice(new);
                }
            }
            cut.put(path, bytes);
        }
        cut
    }

    /// The disk as a killed process leaves it.
    pub fn snapshot(&self) -> Arc<FaultFs> {
        let copy = FaultFs::new();
        for (path, content) in &self.disk.lock().now {
            copy.put(path, content.lock().now.clone());
        }
        copy
    }

    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        let content =
            Arc::new(Mutex::new(Content { now: bytes.clone(), synced: bytes, dirty: Vec::new(), written: 0 }));
        let mut disk = self.disk.lock();
        disk.now.insert(path.to_path_buf(), content.clone());
        disk.synced.insert(path.to_path_buf(), content);
    }

    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        self.disk.lock().now[path].lock().now.clone()
    }

    /// Where the last byte ends that was ever written to the file, whatever is allocated behind it; `None` if there is no
    /// such file.
    pub fn written(&self, path: &Path) -> Option<u64> {
        Some(self.disk.lock().now.get(path)?.lock().written as u64)
    }

    pub fn names(&self) -> Vec<String> {
        self.disk.lock().now.keys().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }
}

/// Records two cuts: unsynced names lost, and kept. Unsynced content is lost in both.
fn record_cuts(disk: &Disk, faults: &Faults) {
    let mut cuts = faults.cuts.lock();
    let Some(cuts) = cuts.as_mut() else { return };
    for names in [&disk.synced, &disk.now] {
        let fs = FaultFs::new();
        for (path, content) in names {
            fs.put(path, content.lock().synced.clone());
        }
        let acknowledged = Lsn(faults.acknowledged.load(Ordering::SeqCst));
        cuts.push(Cut { fs, acknowledged, released: Lsn(faults.released.load(Ordering::SeqCst)) });
    }
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.lock();
        let begin = (offset as usize).min(content.now.len());
        let count = buf.len().min(content.now.len() - begin);
        buf[..count].copy_from_slice(&content.now[begin..begin + count]);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        if self.faults.fail_writes.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected write error"));
        }
        if buf.len() > 100_000 && buf.iter().all(|byte| *byte == 0) {
            while self.faults.hold_zeros.load(Ordering::SeqCst) {
                self.faults.holds_zeros.store(true, Ordering::SeqCst);
                real::RealClock::new().sleep(Duration::from_millis(1));
            }
        }
        let _one_instant = self.disk.lock();
        let mut content = self.content.lock();
        let end = offset as usize + buf.len();
        if content.now.len() < end {
            content.now.resize(end, 0);
        }
        content.now[offset as usize..end].copy_from_slice(buf);
        content.dirty.push(offset as usize..end);
        content.written = content.written.max(end);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().now.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.content.lock().now.resize(len as usize, 0);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let used: u64 = self.disk.lock().now.values().map(|content| content.lock().now.len() as u64).sum();
        let more = len.saturating_sub(self.len()?);
        if used + more > self.faults.room_bytes.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.set_len(len.max(self.len()?))
    }

    fn sync(&self) -> io::Result<()> {
        let micros = self.faults.sync_micros.load(Ordering::SeqCst);
        if micros > 0 {
            real::RealClock::new().sleep(Duration::from_micros(micros));
        }
        let disk = self.disk.lock();
        let mut guard = self.content.lock();
        let content = &mut *guard;
        let dirty = std::mem::take(&mut content.dirty);
        if self.faults.fail_syncs.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected sync error"));
        }
        content.synced.resize(content.now.len(), 0);
        for range in dirty {
            content.synced[range.clone()].copy_from_slice(&content.now[range]);
        }
        drop(guard);
        record_cuts(&disk, &self.faults);
        Ok(())
    }
}

impl FileSystem for FaultFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut disk = self.disk.lock();
        let content = match (disk.now.get(path).cloned(), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (None, OpenMode::CreateNew) => disk.now.entry(path.to_path_buf()).or_default().clone(),
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
            (Some(content), _) => content,
        };
        Ok(Arc::new(FaultFile { content, disk: self.disk.clone(), faults: self.faults.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let content = disk.now.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.now.insert(to.to_path_buf(), content);
        record_cuts(&disk, &self.faults);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.now.remove(path).ok_or(io::ErrorKind::NotFound)?;
        record_cuts(&disk, &self.faults);
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<DirEntry>> {
        let disk = self.disk.lock();
        let entry = |(path, content): (&PathBuf, &Arc<Mutex<Content>>)| DirEntry {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            bytes: content.lock().now.len() as u64,
            is_dir: false,
        };
        Ok(disk.now.iter().map(entry).collect())
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.synced = disk.now.clone();
        record_cuts(&disk, &self.faults);
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.faults.room_bytes.load(Ordering::SeqCst))
    }
}

pub const DIR: &str = "/log";
pub const FILE_BYTES: u64 = 64 << 10;

pub fn config() -> LogConfig {
    LogConfig { file_bytes: FILE_BYTES, ..LogConfig::new(DIR.into()) }
}

pub fn open_log(fs: &Arc<FaultFs>, epoch: u32, start: Lsn) -> Arc<Log> {
    Log::open(fs.os(), config(), Epoch(epoch), start, Box::new(|_| {})).unwrap()
}

pub fn path_of(sequence: u64) -> PathBuf {
    Path::new(DIR).join(log_name(sequence))
}

pub fn commit(log: &Log, payload: &[u8]) -> Appended {
    let appended = log.append(&[payload]).unwrap();
    log.wait_durable_blocking(appended.end).unwrap();
    appended
}

pub type Records = Vec<(Lsn, Vec<u8>)>;

pub fn try_read(fs: &Arc<FaultFs>, from: Lsn) -> Result<(Records, ReplayEnd)> {
    let mut records = Records::new();
    let end = replay(&fs.os(), Path::new(DIR), from, &mut |_| {}, &mut |lsn, payload| {
        records.push((lsn, payload.to_vec()));
        Ok::<(), Error>(())
    })?;
    assert_eq!(end.records, records.len() as u64);
    Ok((records, end))
}

pub fn read(fs: &Arc<FaultFs>) -> (Records, ReplayEnd) {
    try_read(fs, Lsn(0)).unwrap()
}

pub fn payloads(fs: &Arc<FaultFs>) -> Vec<Vec<u8>> {
    read(fs).0.into_iter().map(|(_, payload)| payload).collect()
}
