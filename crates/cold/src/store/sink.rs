//! One file being written: buffered into parts, streamed to the store, visible when finished.

use super::failed;
use crate::Result;
use futures::executor::block_on;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use std::sync::Arc;

/// S3 takes no part below 5 MiB but the last.
const PART_BYTES: usize = 8 << 20;

/// Dropped without [`finish`](FileSink::finish), it leaves nothing behind.
#[derive(Debug)]
pub struct FileSink {
    path: Path,
    upload: Box<dyn MultipartUpload>,
    part: Vec<u8>,
    sent_bytes: u64,
    finished: bool,
}

impl FileSink {
    pub(super) fn create(store: &Arc<dyn ObjectStore>, path: Path) -> Result<FileSink> {
        let upload = block_on(store.put_multipart(&path)).map_err(|source| failed("create", &path, source))?;
        Ok(FileSink { path, upload, part: Vec::new(), sent_bytes: 0, finished: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written so far: where the next byte will stand.
    pub fn position(&self) -> u64 {
        self.sent_bytes + self.part.len() as u64
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.part.extend_from_slice(bytes);
        if self.part.len() >= PART_BYTES { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<()> {
        let part = std::mem::take(&mut self.part);
        self.sent_bytes += part.len() as u64;
        let sent = block_on(self.upload.put_part(PutPayload::from(part)));
        sent.map_err(|source| failed("write", &self.path, source))
    }

    /// Makes the file durable and visible; returns its size.
    pub fn finish(mut self) -> Result<u64> {
        if !self.part.is_empty() {
            self.send()?;
        }
        block_on(self.upload.complete()).map_err(|source| failed("finish", &self.path, source))?;
        self.finished = true;
        Ok(self.sent_bytes)
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Err(error) = block_on(self.upload.abort()) {
            tracing::warn!(path = %self.path, %error, "an unfinished file was left behind");
        }
    }
}
