//! Where files rest: any `object_store` behind a blocking facade.
//!
//! [`LocalStore`] keeps them in a directory, durably; `object_store::memory::InMemory` is the other
//! implementation that runs today. The engine's I/O is synchronous, so [`Files`] drives each request to its
//! end on the calling thread; neither store ever waits for another task.

mod local;
mod sink;

#[cfg(test)]
mod tests;

pub use local::LocalStore;
pub use sink::FileSink;

use crate::{Error, Result};
use basalt_types::FileId;
use bytes::Bytes;
use futures::executor::block_on;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileKind {
    Segment,
    Row,
    /// A catalog and file lists; the engine's format.
    Checkpoint,
}

impl FileKind {
    fn extension(self) -> &'static str {
        match self {
            FileKind::Segment => "seg",
            FileKind::Row => "row",
            FileKind::Checkpoint => "ckpt",
        }
    }
}

/// A store that begins to read before anybody waits for it.
pub(crate) trait ReadAhead: fmt::Debug + Send + Sync {
    /// Does not wait for the bytes. Nothing may come of it, and whoever reads meets what is wrong with the object.
    fn will_read(&self, location: &Path, range: Range<u64>);
}

/// Immutable files by id, in `files/` of a store.
#[derive(Clone, Debug)]
pub struct Files {
    store: Arc<dyn ObjectStore>,
    ahead: Option<Arc<dyn ReadAhead>>,
}

impl Files {
    pub fn new(store: Arc<dyn ObjectStore>) -> Files {
        Files { store, ahead: None }
    }

    #[cfg(test)]
    pub(crate) fn with_read_ahead(store: Arc<dyn ObjectStore>, ahead: Arc<dyn ReadAhead>) -> Files {
        Files { store, ahead: Some(ahead) }
    }

    /// A directory of this machine, which reads ahead.
    pub fn local(store: LocalStore) -> Files {
        Files { store: Arc::new(store.clone()), ahead: Some(Arc::new(store)) }
    }

    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// `files/<epoch>-<serial>.<seg|row|ckpt>`.
    pub fn path(id: FileId, kind: FileKind) -> Path {
        Path::from(format!("files/{id}.{}", kind.extension()))
    }

    /// Starts a file that appears at its name, complete and durable, when the sink is finished.
    pub fn create(&self, id: FileId, kind: FileKind) -> Result<FileSink> {
        FileSink::create(&self.store, Files::path(id, kind))
    }

    /// Writes a whole small file, durably.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) -> Result<()> {
        let put = self.store.put(path, PutPayload::from(bytes));
        block_on(put).map(drop).map_err(|source| failed("write", path, source))
    }

    pub fn read(&self, path: &Path, range: Range<u64>) -> Result<Bytes> {
        let expected = range.end - range.start;
        let ranges = [range.clone()];
        let mut got = block_on(self.store.get_ranges(path, &ranges)).map_err(|source| failed("read", path, source))?;
        match got.pop() {
            Some(bytes) if bytes.len() as u64 == expected => Ok(bytes),
            _ => Err(Error::Damaged { path: path.to_string(), offset: range.start, what: "the file ends too early" }),
        }
    }

    /// Says that a part of a file will be read soon, as far as the store can do something about it without anybody
    /// waiting.
    pub fn will_read(&self, path: &Path, range: Range<u64>) {
        if let Some(ahead) = &self.ahead {
            ahead.will_read(path, range);
        }
    }

    pub fn bytes(&self, path: &Path) -> Result<u64> {
        let head = block_on(self.store.head(path)).map_err(|source| failed("look up", path, source))?;
        Ok(head.size)
    }

    /// Removes a file; one that is gone already is no error.
    pub fn delete(&self, id: FileId, kind: FileKind) -> Result<()> {
        let path = Files::path(id, kind);
        match block_on(self.store.delete(&path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(failed("delete", &path, source)),
        }
    }

    /// Every file in the store with its size. Names that no file of ours has are left out.
    pub fn list(&self) -> Result<Vec<(FileId, FileKind, u64)>> {
        let prefix = Path::from("files");
        let listed = self.store.list(Some(&prefix));
        let found = listed.map(|meta| meta.map(|meta| Some((parse_name(meta.location.filename()?)?, meta.size))));
        let found: Vec<_> = block_on(found.try_collect()).map_err(|source| failed("list", &prefix, source))?;
        Ok(found.into_iter().flatten().map(|((id, kind), bytes)| (id, kind, bytes)).collect())
    }
}

fn parse_name(name: &str) -> Option<(FileId, FileKind)> {
    let (stem, extension) = name.split_once('.')?;
    let kind = [FileKind::Segment, FileKind::Row, FileKind::Checkpoint]
        .into_iter()
        .find(|kind| kind.extension() == extension)?;
    let (epoch, serial) = stem.split_once('-')?;
    let number = |text: &str| (text.len() == 8).then(|| u32::from_str_radix(text, 16).ok()).flatten();
    Some((FileId { epoch: basalt_types::Epoch(number(epoch)?), serial: number(serial)? }, kind))
}

fn failed(action: &'static str, path: &Path, source: object_store::Error) -> Error {
    Error::Store { action, path: path.to_string(), source }
}
