//! The real file system with something in the way of some calls: for tests that watch, hold up or break them.

use super::real::RealFs;
use super::{DirEntry, File, FileSystem, OpenMode};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What is in the way. A call goes through unless its method says otherwise.
pub trait Hooks: Send + Sync + 'static {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        RealFs.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealFs.rename(from, to)
    }

    fn write_at(&self, file: &dyn File, buf: &[u8], offset: u64) -> io::Result<()> {
        file.write_at(buf, offset)
    }

    fn sync(&self, file: &dyn File) -> io::Result<()> {
        file.sync()
    }

    fn write_out(&self, file: &dyn File, offset: u64, bytes: u64) -> io::Result<()> {
        file.write_out(offset, bytes)
    }

    fn will_read(&self, file: &dyn File, offset: u64, bytes: u64) {
        file.will_read(offset, bytes);
    }
}

/// The file system that these hooks are in the way of.
pub fn hooked(hooks: impl Hooks) -> Arc<dyn FileSystem> {
    Arc::new(HookedFs(Arc::new(hooks)))
}

struct HookedFs<H>(Arc<H>);

struct HookedFile<H> {
    file: Arc<dyn File>,
    hooks: Arc<H>,
}

impl<H: Hooks> FileSystem for HookedFs<H> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(HookedFile { file: self.0.open(path, mode)?, hooks: self.0.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealFs.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        RealFs.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealFs.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealFs.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        RealFs.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        RealFs.free_bytes(path)
    }
}

impl<H: Hooks> File for HookedFile<H> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.hooks.write_at(&*self.file, buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.hooks.sync(&*self.file)
    }

    fn begin_write_out(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.file.begin_write_out(offset, bytes)
    }

    fn write_out(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.hooks.write_out(&*self.file, offset, bytes)
    }

    fn give_back(&self) -> io::Result<()> {
        self.file.give_back()
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.hooks.will_read(&*self.file, offset, bytes);
    }
}
