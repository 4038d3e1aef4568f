//! A directory as an object store that survives a power cut.
//!
//! Everything is written to a file in `tmp/`, synced, renamed into place, and the directory synced, so an
//! object is there whole or not at all. A failed sync fails the write and is never retried: the temporary
//! file is dropped. What an earlier start left in `tmp/` is removed when the store is opened; whoever opens
//! it holds the data directory's lock.
//!
//! A large file is written out piece by piece, and its room is given back piece by piece: whoever syncs another file of the
//! same device, as the log does for every commit, need not wait for all of it (docs/decisions/0033).
//!
//! E-tags are taken from content, for objects of up to [`E_TAG_BYTES_MAX`]; larger ones have none and cannot
//! be updated conditionally. Modification times are not kept (1970).

use super::ReadAhead;
use async_trait::async_trait;
use basalt_sched::os::{File, FileSystem, OpenMode};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const E_TAG_BYTES_MAX: u64 = 1 << 20;
const OPEN_FILES_MAX: usize = 512;
/// Written to the system before it is written out to the device. No more than two such pieces are on their way.
const WRITE_OUT_BYTES: u64 = 1 << 20;
const TMP: &str = "tmp";

#[derive(Clone)]
pub struct LocalStore {
    inner: Arc<Inner>,
}

struct Inner {
    fs: Arc<dyn FileSystem>,
    root: PathBuf,
    next_temporary: AtomicU64,
    /// Held from a conditional put's check to its rename.
    publishing: Mutex<()>,
    open_files: Mutex<HashMap<Path, Arc<dyn File>>>,
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalStore({})", self.inner.root.display())
    }
}

impl fmt::Display for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalStore({})", self.inner.root.display())
    }
}

impl LocalStore {
    /// Opens (or makes) a store in `root` and removes unfinished writes of an earlier start.
    pub fn open(fs: Arc<dyn FileSystem>, root: impl Into<PathBuf>) -> io::Result<LocalStore> {
        let root = root.into();
        let tmp = root.join(TMP);
        fs.create_dir_all(&tmp)?;
        for entry in fs.list(&tmp)?.into_iter().filter(|entry| !entry.is_dir) {
            fs.remove(&tmp.join(entry.name))?;
        }
        let inner = Inner {
            fs,
            root,
            next_temporary: AtomicU64::new(0),
            publishing: Mutex::new(()),
            open_files: Mutex::new(HashMap::new()),
        };
        Ok(LocalStore { inner: Arc::new(inner) })
    }
}

impl ReadAhead for LocalStore {
    fn will_read(&self, location: &Path, range: Range<u64>) {
        if let Ok(file) = self.inner.open(location) {
            file.will_read(range.start, range.end - range.start);
        }
    }
}

impl Inner {
    fn file_path(&self, location: &Path) -> PathBuf {
        location.parts().fold(self.root.clone(), |path, part| path.join(part.as_ref()))
    }

    fn open(&self, location: &Path) -> Result<Arc<dyn File>> {
        if let Some(file) = self.open_files.lock().get(location) {
            return Ok(file.clone());
        }
        let opened = self.fs.open(&self.file_path(location), OpenMode::Read);
        let file = opened.map_err(|error| failed(location, error))?;
        let mut open_files = self.open_files.lock();
        if open_files.len() >= OPEN_FILES_MAX {
            open_files.clear();
        }
        open_files.insert(location.clone(), file.clone());
        Ok(file)
    }

    fn read(&self, location: &Path, range: Range<u64>) -> Result<Bytes> {
        let file = self.open(location)?;
        let len = file.len().map_err(|error| failed(location, error))?;
        let end = range.end.min(len);
        if range.start > end {
            let what = format!("range {range:?} of a file of {len} bytes");
            return Err(failed(location, io::Error::new(io::ErrorKind::UnexpectedEof, what)));
        }
        let mut bytes = vec![0; (end - range.start) as usize];
        file.read_exact_at(&mut bytes, range.start).map_err(|error| failed(location, error))?;
        Ok(bytes.into())
    }

    fn meta(&self, location: &Path) -> Result<ObjectMeta> {
        let size = self.open(location)?.len().map_err(|error| failed(location, error))?;
        let e_tag = match size {
            0..=E_TAG_BYTES_MAX => Some(e_tag(&self.read(location, 0..size)?)),
            _ => None,
        };
        Ok(ObjectMeta { e_tag, ..bare_meta(location.clone(), size) })
    }

    fn create_temporary(self: &Arc<Inner>) -> Result<Temporary> {
        loop {
            let serial = self.next_temporary.fetch_add(1, Ordering::Relaxed);
            let path = self.root.join(TMP).join(format!("{serial:016x}"));
            match self.fs.open(&path, OpenMode::CreateNew) {
                Ok(file) => {
                    return Ok(Temporary {
                        store: self.clone(),
                        path,
                        file,
                        bytes: 0,
                        written_out: 0,
                        begun: 0,
                        published: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed(&Path::from(TMP), error)),
            }
        }
    }

    fn check(&self, location: &Path, mode: &PutMode) -> Result<()> {
        let current = match self.meta(location) {
            Ok(meta) => Some(meta),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        match (mode, current) {
            (PutMode::Overwrite, _) | (PutMode::Create, None) => Ok(()),
            (PutMode::Create, Some(_)) => {
                Err(Error::AlreadyExists { path: location.to_string(), source: "it was to be created".into() })
            }
            (PutMode::Update(expected), current) => {
                let found = current.as_ref().and_then(|meta| meta.e_tag.as_deref());
                if current.is_some() && found.is_none() {
                    let what = format!("{location} has more than {E_TAG_BYTES_MAX} bytes: no conditional update");
                    return Err(Error::NotSupported { source: what.into() });
                }
                if found.is_some() && found == expected.e_tag.as_deref() {
                    return Ok(());
                }
                let what = format!("its e-tag is {found:?}, expected {:?}", expected.e_tag);
                Err(Error::Precondition { path: location.to_string(), source: what.into() })
            }
        }
    }

    /// The file has no readers any more. First its name goes, durably, and then what it holds.
    fn remove(&self, location: &Path) -> Result<()> {
        let path = self.file_path(location);
        self.open_files.lock().remove(location);
        // Who may remove a file need not be able to open it.
        let file = self.fs.open(&path, OpenMode::Write).ok();
        self.fs.remove(&path).map_err(|error| failed(location, error))?;
        let dir = path.parent().expect("a file is below the root");
        self.fs.sync_dir(dir).map_err(|error| failed(location, error))?;
        if let Some(file) = file {
            give_back(&*file, &path);
        }
        Ok(())
    }

    fn list(&self, prefix: Option<&Path>) -> Result<Vec<ObjectMeta>> {
        let mut found = Vec::new();
        let mut pending = vec![prefix.cloned().unwrap_or_default()];
        while let Some(dir) = pending.pop() {
            let entries = match self.fs.list(&self.file_path(&dir)) {
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                other => other.map_err(|error| failed(&dir, error))?,
            };
            for entry in entries {
                let location = dir.clone().join(entry.name.as_str());
                match entry.is_dir {
                    true if location.as_ref() == TMP => {}
                    true => pending.push(location),
                    false => found.push(bare_meta(location, entry.bytes)),
                }
            }
        }
        found.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(found)
    }
}

/// What is left is given back when the last one closes the file.
fn give_back(file: &dyn File, path: &std::path::Path) {
    if let Err(error) = file.give_back() {
        tracing::debug!(path = %path.display(), %error, "a removed file gives back its room at once");
    }
}

fn bare_meta(location: Path, size: u64) -> ObjectMeta {
    ObjectMeta { location, last_modified: chrono::DateTime::UNIX_EPOCH, size, e_tag: None, version: None }
}

fn e_tag(content: &[u8]) -> String {
    format!("{:x}-{:016x}", content.len(), xxhash_rust::xxh3::xxh3_64(content))
}

fn failed(location: &Path, error: io::Error) -> Error {
    let path = location.to_string();
    match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound { path, source: error.into() },
        _ => Error::Generic { store: "LocalStore", source: Box::new(Failed { path, error }) },
    }
}

/// Keeps what the file system said: a full disk is told apart ([`crate::Error::is_no_space`]).
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
struct Failed {
    path: String,
    #[source]
    error: io::Error,
}

/// A file in `tmp/`, removed on drop unless published.
struct Temporary {
    store: Arc<Inner>,
    path: PathBuf,
    file: Arc<dyn File>,
    bytes: u64,
    /// How far it is written out to the device, and how far that has begun.
    written_out: u64,
    begun: u64,
    published: bool,
}

impl Temporary {
    fn append(&mut self, payload: &PutPayload) -> io::Result<()> {
        for piece in payload.into_iter().flat_map(|bytes| bytes.chunks(WRITE_OUT_BYTES as usize)) {
            self.file.write_at(piece, self.bytes)?;
            self.bytes += piece.len() as u64;
            // Whole pieces: a page is not written twice.
            let whole = self.bytes - self.bytes % WRITE_OUT_BYTES;
            if whole > self.begun {
                self.file.begin_write_out(self.begun, whole - self.begun)?;
                self.file.write_out(self.written_out, self.begun - self.written_out)?;
                (self.written_out, self.begun) = (self.begun, whole);
            }
        }
        Ok(())
    }

    /// Sync, check, rename, sync of the directory: durable under its name on return.
    fn publish(&mut self, location: &Path, mode: &PutMode) -> Result<()> {
        let store = self.store.clone();
        self.file.sync().map_err(|error| failed(location, error))?;
        let path = store.file_path(location);
        let dir = path.parent().expect("a file is below the root");
        store.fs.create_dir_all(dir).map_err(|error| failed(location, error))?;
        let _publishing = store.publishing.lock();
        if *mode != PutMode::Overwrite {
            store.check(location, mode)?;
        }
        store.fs.rename(&self.path, &path).map_err(|error| failed(location, error))?;
        self.published = true;
        store.open_files.lock().remove(location);
        store.fs.sync_dir(dir).map_err(|error| failed(location, error))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.published {
            return;
        }
        match self.store.fs.remove(&self.path) {
            Ok(()) => give_back(&*self.file, &self.path),
            Err(error) => tracing::warn!(path = %self.path.display(), %error, "a temporary file was left behind"),
        }
    }
}

struct LocalUpload {
    location: Path,
    temporary: Option<Temporary>,
    /// A part that failed: the file must not be completed.
    broken: bool,
}

impl fmt::Debug for LocalUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalUpload({})", self.location)
    }
}

impl LocalUpload {
    fn closed(&self) -> Error {
        failed(&self.location, io::Error::other("the upload was finished, aborted or has failed before"))
    }
}

#[async_trait]
impl MultipartUpload for LocalUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let result = match &mut self.temporary {
            Some(temporary) if !self.broken => temporary.append(&data).map_err(|error| {
                self.broken = true;
                failed(&self.location, error)
            }),
            _ => Err(self.closed()),
        };
        Box::pin(std::future::ready(result))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        match self.temporary.take() {
            Some(mut temporary) if !self.broken => {
                temporary.publish(&self.location, &PutMode::Overwrite)?;
                Ok(PutResult { e_tag: None, version: None })
            }
            _ => Err(self.closed()),
        }
    }

    async fn abort(&mut self) -> Result<()> {
        self.temporary = None;
        Ok(())
    }
}

#[async_trait]
impl ObjectStore for LocalStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let mut temporary = self.inner.create_temporary()?;
        temporary.append(&payload).map_err(|error| failed(location, error))?;
        temporary.publish(location, &opts.mode)?;
        let e_tag = (temporary.bytes <= E_TAG_BYTES_MAX).then(|| e_tag(&Bytes::from(payload)));
        Ok(PutResult { e_tag, version: None })
    }

    async fn put_multipart_opts(&self, location: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let temporary = Some(self.inner.create_temporary()?);
        Ok(Box::new(LocalUpload { location: location.clone(), temporary, broken: false }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let meta = self.inner.meta(location)?;
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range
                .as_range(meta.size)
                .map_err(|error| failed(location, io::Error::new(io::ErrorKind::UnexpectedEof, error.to_string())))?,
            None => 0..meta.size,
        };
        let bytes = if options.head { Bytes::new() } else { self.inner.read(location, range.clone())? };
        let payload = GetResultPayload::Stream(stream::once(async move { Ok(bytes) }).boxed());
        Ok(GetResult { payload, meta, range, attributes: Default::default() })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| self.inner.read(location, range.clone())).collect()
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = self.inner.clone();
        locations
            .map(move |location| {
                let location = location?;
                store.remove(&location)?;
                Ok(location)
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.inner.list(prefix) {
            Ok(found) => stream::iter(found.into_iter().map(Ok)).boxed(),
            Err(error) => stream::once(async move { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let dir = prefix.cloned().unwrap_or_default();
        let mut result = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
        for meta in self.inner.list(prefix)? {
            let Some(mut below) = meta.location.prefix_match(&dir) else { continue };
            let Some(first) = below.next() else { continue };
            if below.next().is_none() {
                result.objects.push(meta.clone());
            } else {
                let common = dir.clone().join(first);
                if result.common_prefixes.last() != Some(&common) {
                    result.common_prefixes.push(common);
                }
            }
        }
        Ok(result)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let size = self.inner.meta(from)?.size;
        let payload = PutPayload::from(self.inner.read(from, 0..size)?);
        let mode = match options.mode {
            CopyMode::Overwrite => PutMode::Overwrite,
            CopyMode::Create => PutMode::Create,
        };
        self.put_opts(to, payload, PutOptions::from(mode)).await.map(drop)
    }
}
