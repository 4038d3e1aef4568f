//! The operating system itself. The only place that calls it directly.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use super::{Clock, DirEntry, File, FileSystem, Load, OpenMode, Random};
use std::fs;
use std::io;
use std::num::NonZeroU64;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Linux's own window of read-ahead, where nobody has set another.
const ADVISED_BYTES: u64 = 128 << 10;

/// Of a file without a name, at once.
const GIVE_BACK_BYTES: u64 = 8 << 20;

pub struct RealFs;

struct RealFile(fs::File);

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(buf, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => return other,
            }
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, len) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.0.set_len(len.max(self.len()?)),
            other => Ok(other?),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn begin_write_out(&self, offset: u64, bytes: u64) -> io::Result<()> {
        write_out(&self.0, offset, bytes, false)
    }

    fn write_out(&self, offset: u64, bytes: u64) -> io::Result<()> {
        write_out(&self.0, offset, bytes, true)
    }

    fn give_back(&self) -> io::Result<()> {
        let metadata = self.0.metadata()?;
        let mut bytes = if metadata.nlink() == 0 { metadata.len() } else { 0 };
        while bytes > GIVE_BACK_BYTES {
            bytes = (bytes - 1) / GIVE_BACK_BYTES * GIVE_BACK_BYTES;
            self.0.set_len(bytes)?;
        }
        Ok(())
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        // Of a longer run Linux begins with no more than a device's window.
        for from in (offset..offset + bytes).step_by(ADVISED_BYTES as usize) {
            let bytes = NonZeroU64::new((offset + bytes - from).min(ADVISED_BYTES));
            // Advice: who reads meets what is wrong with the file.
            let _ = rustix::fs::fadvise(&self.0, from, bytes, rustix::fs::Advice::WillNeed);
        }
    }
}

/// Whether the process may call it: no error of writing is taken by asking.
#[cfg(target_os = "linux")]
fn may_write_out(file: &fs::File) -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| sync_file_range(file, 0, 0, 0).is_ok())
}

/// Where the process may not, the next sync writes.
#[cfg(target_os = "linux")]
fn write_out(file: &fs::File, offset: u64, bytes: u64, waits: bool) -> io::Result<()> {
    const WAIT: libc::c_uint = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    if bytes == 0 || !may_write_out(file) {
        return Ok(());
    }
    sync_file_range(file, offset, bytes, libc::SYNC_FILE_RANGE_WRITE | if waits { WAIT } else { 0 })
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn sync_file_range(file: &fs::File, offset: u64, bytes: u64, flags: libc::c_uint) -> io::Result<()> {
    let (offset, bytes) = (i64::try_from(offset), i64::try_from(bytes));
    let (Ok(offset), Ok(bytes)) = (offset, bytes) else { return Err(io::ErrorKind::InvalidInput.into()) };
    // SAFETY: no memory is handed over, and the file is open.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn write_out(_: &fs::File, _: u64, _: u64, _: bool) -> io::Result<()> {
    Ok(())
}

impl FileSystem for RealFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        Ok(Arc::new(RealFile(options.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            entries.push(DirEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                bytes: metadata.len(),
                is_dir: metadata.is_dir(),
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        let parent = match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        self.create_dir_all(parent)?;
        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        self.sync_dir(parent)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        fs::File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Box::new(file)),
            Err(error) => Err(error.into()),
        }
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail * stat.f_frsize)
    }
}

pub struct RealClock {
    start: Instant,
}

impl RealClock {
    pub fn new() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        RealClock::new()
    }
}

impl Clock for RealClock {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_micros(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_micros() as i64,
            Err(before) => -(before.duration().as_micros() as i64),
        }
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

pub struct RealRandom;

impl Random for RealRandom {
    fn fill(&self, bytes: &mut [u8]) {
        use rand::RngCore;
        rand::rng().fill_bytes(bytes);
    }
}

/// By what Linux says of threads that run or are ready to (proc(5), /proc/loadavg, fourth field). They are those of the
/// whole machine: a process that has a part of it does not know.
pub struct RealLoad {
    /// `None`: another system, or a part of one.
    threads: Option<fs::File>,
    processors: usize,
}

impl RealLoad {
    pub fn new() -> RealLoad {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let has_all = online(&fs::read_to_string("/proc/stat").unwrap_or_default()) == processors;
        RealLoad { threads: fs::File::open("/proc/loadavg").ok().filter(|_| has_all), processors }
    }

    /// The caller's own among them.
    fn runnable(&self) -> Option<usize> {
        let mut bytes = [0; 128];
        let read = self.threads.as_ref()?.read_at(&mut bytes, 0).ok()?;
        runnable(std::str::from_utf8(&bytes[..read]).ok()?)
    }
}

/// Of `0.20 0.18 0.12 1/80 11206`. The caller runs: who tells of none knows nothing.
fn runnable(loadavg: &str) -> Option<usize> {
    let runnable = loadavg.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()?;
    (runnable > 0).then_some(runnable)
}

/// Processors that are there: each has a line `cpu0 …` in /proc/stat.
fn online(stat: &str) -> usize {
    let of_one =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    stat.lines().filter(of_one).count()
}

impl Default for RealLoad {
    fn default() -> Self {
        RealLoad::new()
    }
}

impl Load for RealLoad {
    fn is_full(&self) -> bool {
        self.runnable().is_some_and(|runnable| runnable > self.processors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_ready_are_told() {
        assert_eq!(runnable("0.48 1.37 1.74 2/137 10918\n"), Some(2));
        for odd in ["", "0.48 1.37 1.74", "0.48 1.37 1.74 2 10918", "0.48 1.37 1.74 x/137 10918", "0.0 0.0 0.0 0/0 0"] {
            assert_eq!(runnable(odd), None, "{odd}");
        }
        assert_eq!(online("cpu  1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\ncpufreq 1\n"), 2);
    }

    #[test]
    fn a_machine_is_full_while_all_processors_have_something_to_do() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let load = RealLoad::new();
        if load.runnable().is_none() {
            return;
        }
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..load.processors * 2 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let mut is_full = false;
            for _ in 0..1000 {
                is_full |= load.is_full();
                if is_full {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            ended.store(true, Ordering::Relaxed);
            assert!(is_full, "{} threads run", load.processors * 2);
        });
    }
}
