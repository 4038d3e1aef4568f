//! The disk as a file system.

use crate::content::Content;
use crate::disk::{Disk, NameChange, Node, split};
use crate::{Fault, Op, OpCounts, cut};
use basalt_sched::os::real::RealClock;
use basalt_sched::os::{Clock, DirEntry, File, FileSystem, OpenMode};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub struct SimFs {
    disk: Arc<Mutex<Disk>>,
}

struct SimFile {
    disk: Arc<Mutex<Disk>>,
    node: Node,
    path: PathBuf,
    writable: bool,
}

impl SimFs {
    pub fn new(seed: u64) -> Arc<SimFs> {
        Arc::new(SimFs { disk: Arc::new(Mutex::new(Disk::new(seed))) })
    }

    /// Cuts the power: every operation of this disk fails from now on. Returns the disk that is found when
    /// it comes back; nothing on it is in flight any more, and no fault is planned.
    pub fn power_cut(&self, seed: u64) -> Arc<SimFs> {
        let after = cut::after_power_cut(&mut self.disk.lock(), seed);
        Arc::new(SimFs { disk: Arc::new(Mutex::new(after)) })
    }

    /// The power will fail by itself at the `nth` change from now on (1 is the next).
    pub fn power_off_after(&self, nth: u64) {
        let mut disk = self.disk.lock();
        disk.off_at = Some(disk.counts.changes() + nth);
    }

    pub fn is_powered(&self) -> bool {
        self.disk.lock().powered
    }

    pub fn inject(&self, fault: Fault) {
        self.disk.lock().faults.push(fault);
    }

    pub fn clear_faults(&self) {
        self.disk.lock().faults.clear();
    }

    /// Bytes that files may take in all; `None`: any number.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk.lock().capacity_bytes = bytes;
    }

    pub fn used_bytes(&self) -> u64 {
        self.disk.lock().used_bytes
    }

    /// Syncs, of files and directories, say that all is well and do nothing. A control: whoever checks for
    /// lost writes must notice.
    pub fn lie_about_sync(&self, lies: bool) {
        self.disk.lock().lies_about_sync = lies;
    }

    /// Each sync takes this long in real time.
    pub fn set_sync_delay(&self, delay: Duration) {
        self.disk.lock().sync_delay = delay;
    }

    /// Flips bits of one byte, for good.
    pub fn flip(&self, path: &Path, byte: u64, mask: u8) -> io::Result<()> {
        let disk = self.disk.lock();
        let node = disk.node(path)?;
        let mut content = node.lock();
        if byte >= content.now().len() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        content.flip(byte as usize, mask);
        Ok(())
    }

    /// All files with their sizes, by path.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let disk = self.disk.lock();
        let in_dir = |(path, dir): (&PathBuf, &crate::disk::Dir)| -> Vec<(PathBuf, u64)> {
            dir.now.iter().map(|(name, node)| (path.join(name), node.lock().now().len() as u64)).collect()
        };
        disk.dirs.iter().flat_map(in_dir).collect()
    }

    pub fn counts(&self) -> OpCounts {
        self.disk.lock().counts
    }

    /// The same disk as a killed process leaves it: everything written is there, nothing is in flight.
    pub fn copy(&self) -> Arc<SimFs> {
        let disk = self.disk.lock();
        let mut copy = Disk::new(0);
        for (path, dir) in &disk.dirs {
            let resting = |node: &Node| Arc::new(Mutex::new(Content::resting(node.lock().now().to_vec())));
            let names: std::collections::BTreeMap<String, Node> =
                dir.now.iter().map(|(name, node)| (name.clone(), resting(node))).collect();
            let dir = crate::disk::Dir { now: names.clone(), synced: names, pending: Vec::new() };
            copy.dirs.insert(path.clone(), dir);
        }
        copy.used_bytes = disk.used_bytes;
        Arc::new(SimFs { disk: Arc::new(Mutex::new(copy)) })
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.disk.lock();
        disk.step(Op::Read, &self.path)?;
        let content = self.node.lock();
        let bytes = content.now();
        let begin = bytes.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let count = buf.len().min(bytes.len() - begin);
        buf[..count].copy_from_slice(&bytes[begin..begin + count]);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        self.check_writable()?;
        let outcome = disk.step(Op::Write, &self.path);
        let mut content = self.node.lock();
        let offset = offset as usize;
        if let Err(error) = outcome {
            // A write that fails may have been done in part.
            let done = disk.rng.below(buf.len() as u64 + 1) as usize;
            let had = content.space();
            if disk.take_space(had, content.space_up_to((offset + done) as u64)).is_ok() {
                content.write(offset, &buf[..done]);
            }
            return Err(error);
        }
        disk.take_space(content.space(), content.space_up_to((offset + buf.len()) as u64))?;
        content.write(offset, buf);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.disk.lock().check_power()?;
        Ok(self.node.lock().now().len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        self.check_writable()?;
        disk.step(Op::Resize, &self.path)?;
        let mut content = self.node.lock();
        let had = content.space();
        disk.take_space(had, len)?;
        content.set_len(len as usize);
        disk.give_space(had.saturating_sub(content.space()));
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        self.check_writable()?;
        disk.step(Op::Resize, &self.path)?;
        let mut content = self.node.lock();
        disk.take_space(content.space(), len)?;
        content.allocate(len as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let delay = self.disk.lock().sync_delay;
        if !delay.is_zero() {
            RealClock::new().sleep(delay);
        }
        let mut disk = self.disk.lock();
        let outcome = disk.step(Op::Sync, &self.path);
        let mut content = self.node.lock();
        match outcome {
            Ok(()) if disk.lies_about_sync => Ok(()),
            Ok(()) => {
                content.sync();
                Ok(())
            }
            Err(error) => {
                // A sync that the power failed in leaves its writes to the cut.
                if disk.powered {
                    content.fail_sync(&mut disk.rng);
                }
                Err(error)
            }
        }
    }
}

impl SimFile {
    fn check_writable(&self) -> io::Result<()> {
        match self.writable {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "opened for reading")),
        }
    }
}

impl FileSystem for SimFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut disk = self.disk.lock();
        disk.check_power()?;
        let node = match (disk.node(path), mode) {
            (Ok(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(node), _) => node,
            (Err(_), OpenMode::CreateNew) => {
                disk.step(Op::Create, path)?;
                let (dir, name) = split(path)?;
                let node = Node::default();
                disk.dir(dir)?.change(NameChange::Link { name: name.into(), node: node.clone() });
                node
            }
            (Err(error), _) => return Err(error),
        };
        let writable = mode != OpenMode::Read;
        Ok(Arc::new(SimFile { disk: self.disk.clone(), node, path: path.to_path_buf(), writable }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.step(Op::Rename, to)?;
        let node = disk.node(from)?;
        let ((from_dir, from_name), (to_dir, to_name)) = (split(from)?, split(to)?);
        let (from_name, to_name) = (from_name.to_string(), to_name.to_string());
        let replaced = disk.dir(to_dir)?.now.get(&to_name).map(|node| node.lock().space());
        if from_dir == to_dir {
            disk.dir(to_dir)?.change(NameChange::Rename { from: from_name, to: to_name, node });
        } else {
            disk.dir(to_dir)?.change(NameChange::Link { name: to_name, node });
            disk.dir(from_dir)?.change(NameChange::Unlink { name: from_name });
        }
        disk.give_space(replaced.unwrap_or(0));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.step(Op::Remove, path)?;
        let space = disk.node(path)?.lock().space();
        let (dir, name) = split(path)?;
        disk.dir(dir)?.change(NameChange::Unlink { name: name.into() });
        disk.give_space(space);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut disk = self.disk.lock();
        disk.check_power()?;
        if disk.node(dir).is_ok() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let files = disk.dir(dir)?.now.iter().map(|(name, node)| DirEntry {
            name: name.clone(),
            bytes: node.lock().now().len() as u64,
            is_dir: false,
        });
        let mut entries: Vec<DirEntry> = files.collect();
        let below = disk.dirs.keys().filter(|path| path.parent() == Some(dir));
        entries.extend(below.filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some(DirEntry { name, bytes: 0, is_dir: true })
        }));
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.check_power()?;
        for dir in dir.ancestors() {
            disk.dirs.entry(dir.to_path_buf()).or_default();
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.step(Op::SyncDir, dir)?;
        let lies = disk.lies_about_sync;
        let dir = disk.dir(dir)?;
        if !lies {
            dir.sync();
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut disk = self.disk.lock();
        disk.check_power()?;
        if !disk.locks.insert(path.to_path_buf()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if disk.node(path).is_err() {
            let (dir, name) = split(path)?;
            disk.dir(dir)?.change(NameChange::Link { name: name.into(), node: Node::default() });
        }
        Ok(Box::new(LockGuard { disk: self.disk.clone(), path: path.to_path_buf() }))
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        let disk = self.disk.lock();
        disk.check_power()?;
        Ok(disk.capacity_bytes.map_or(u64::MAX, |capacity| capacity.saturating_sub(disk.used_bytes)))
    }
}

struct LockGuard {
    disk: Arc<Mutex<Disk>>,
    path: PathBuf,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.disk.lock().locks.remove(&self.path);
    }
}
