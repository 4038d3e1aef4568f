//! Reading the log back: where it ends, what it says, and whether what it lost may be lost.
//!
//! Blocks are taken in order from the start of the file that holds `from`. A block is believed as a whole:
//! header, content checksum, place and epoch. The first one that is not to be believed, at position X, is
//! judged by evidence: all later pages of this file and the files behind it are searched for headers of
//! blocks, and
//!
//! * if one of them, or one before X, says that more than X was durable, or a later epoch began above X,
//!   an acknowledged byte is gone: [`Error::Corrupt`];
//! * otherwise X is in the torn tail of the last flush, and the log ends there.
//!
//! A file is read up to the first LSN of the next, no further. A start always begins a file at the end it
//! found, so what lies behind a torn tail is cut off for ever, even where its checksums are right. A record
//! that was cut by the end of its epoch is dropped: its last bytes were never durable.

use crate::directory::{FoundFile, live_files};
use crate::error::{Error, Result};
use crate::format::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockHeader, FileHeader, Flaw, PAGE_BYTES, RECORD_BYTES_MAX,
    RECORD_HEADER_BYTES, decode_record_header, record_crc,
};
use basalt_sched::{File, OpenMode, Os};
use basalt_types::{Epoch, Lsn};
use std::path::Path;
use std::sync::Arc;

#[cfg(test)]
mod tests;

const READ_BYTES: usize = 4 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub done_bytes: u64,
    /// At most this much: the last file is counted in full until its end is found.
    pub total_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayEnd {
    /// Where the log ends and [`crate::Log::open`] must go on.
    pub end: Lsn,
    /// Records visited.
    pub records: u64,
    /// Bytes of unacknowledged blocks and records that were begun but are not whole.
    pub torn_bytes: u64,
    /// Greatest durable LSN that a block or a later epoch vouches for.
    pub durable: Lsn,
    /// Greatest epoch in a file header.
    pub epoch: Option<Epoch>,
}

/// Takes position and payload of a record.
pub type Visit<'v, E> = dyn FnMut(Lsn, &[u8]) -> Result<(), E> + 'v;

/// Calls `visit` with position and payload of every record that starts at `from` or behind it, in order.
///
/// `from` must have been durable (or be 0). Nothing that follows from a visit may be made durable or told to
/// anyone before [`crate::Log::open`] has returned: the last records may not be on disk yet.
pub fn replay<E: From<Error>>(
    os: &Os,
    dir: &Path,
    from: Lsn,
    progress: &mut dyn FnMut(Progress),
    visit: &mut Visit<'_, E>,
) -> Result<ReplayEnd, E> {
    let files = live_files(os, dir)?;
    let Some(oldest) = files.first() else {
        if from > Lsn(0) {
            return Err(Error::EndsEarly { from, end: Lsn(0) }.into());
        }
        return Ok(ReplayEnd { end: from, records: 0, torn_bytes: 0, durable: from, epoch: None });
    };
    if oldest.header.first > from.0 {
        return Err(Error::Missing { from, first: Lsn(oldest.header.first) }.into());
    }
    let start = files.iter().rposition(|file| file.header.first <= from.0).expect("the oldest file is one");
    let end = Scan::new(os, &files[start..])?.run(from, progress, visit)?;
    if end.end < from {
        return Err(Error::EndsEarly { from, end: end.end }.into());
    }
    Ok(end)
}

/// What [`verify`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verified {
    pub files: usize,
    pub records: u64,
    pub first: Lsn,
    pub end: Lsn,
    pub torn_bytes: u64,
}

/// Reads the whole log and checks everything. The log must not be in use.
pub fn verify(os: &Os, dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Verified> {
    let files = live_files(os, dir)?;
    let first = files.first().map_or(Lsn(0), |file| Lsn(file.header.first));
    let end = replay(os, dir, first, progress, &mut |_, _| Ok::<(), Error>(()))?;
    Ok(Verified { files: files.len(), records: end.records, first, end: end.end, torn_bytes: end.torn_bytes })
}

/// Checks that each file goes on where its predecessor stops.
fn check_chain(files: &[FoundFile]) -> Result<()> {
    for pair in files.windows(2) {
        let (a, b) = (&pair[0].header, &pair[1].header);
        let broken = |what: String| Err(Error::BrokenChain { path: pair[1].path.clone(), what });
        if b.sequence != a.sequence + 1 {
            return broken(format!(
                "log files {:016x} to {:016x} are missing before it",
                a.sequence + 1,
                b.sequence - 1
            ));
        }
        if b.epoch < a.epoch {
            return broken(format!("it is of {}, its predecessor of {}", b.epoch, a.epoch));
        }
        if b.epoch == a.epoch && (b.first != a.end() || b.salt != a.salt) {
            return broken(format!("it starts at {}, its predecessor of the same epoch ends at {}", b.first, a.end()));
        }
        if b.first <= a.first || b.first > a.end() {
            return broken(format!("it starts at {}, its predecessor spans {} to {}", b.first, a.first, a.end()));
        }
    }
    Ok(())
}

/// A window over one file. Bytes behind the end of the file are missing, not an error.
struct Window {
    file: Arc<dyn File>,
    bytes: Vec<u8>,
    at: u64,
}

impl Window {
    fn open(os: &Os, found: &FoundFile) -> Result<Window> {
        let file = os.fs.open(&found.path, OpenMode::Read).map_err(Error::io("open", &found.path))?;
        Ok(Window { file, bytes: Vec::new(), at: 0 })
    }

    /// Up to `count` bytes from `offset` on; fewer only at the end of the file.
    fn get(&mut self, found: &FoundFile, offset: u64, count: usize) -> Result<&[u8]> {
        let inside = offset >= self.at && offset + count as u64 <= self.at + self.bytes.len() as u64;
        if !inside {
            self.bytes.resize(READ_BYTES.max(count), 0);
            let mut filled = 0;
            while filled < self.bytes.len() {
                let read = self.file.read_at(&mut self.bytes[filled..], offset + filled as u64);
                match read.map_err(Error::io("read", &found.path))? {
                    0 => break,
                    n => filled += n,
                }
            }
            self.bytes.truncate(filled);
            self.at = offset;
        }
        let begin = ((offset - self.at) as usize).min(self.bytes.len());
        Ok(&self.bytes[begin..self.bytes.len().min(begin + count)])
    }
}

/// A record whose first bytes were in earlier blocks.
struct Partial {
    lsn: u64,
    bytes: Vec<u8>,
}

struct Scan<'a> {
    os: &'a Os,
    files: &'a [FoundFile],
    /// Greatest durable LSN met so far.
    durable: u64,
    partial: Option<Partial>,
    /// Still inside a record that began before the first file read here.
    skipping: bool,
}

/// How far the believable blocks of one file go.
enum Stop {
    AtLimit,
    At { lsn: u64, flaw: Flaw },
}

impl<'a> Scan<'a> {
    fn new(os: &'a Os, files: &'a [FoundFile]) -> Result<Scan<'a>> {
        check_chain(files)?;
        let durable = files.first().map_or(0, |file| file.header.first);
        Ok(Scan { os, files, durable, partial: None, skipping: true })
    }

    /// End of the part of file `index` that counts.
    fn limit(&self, index: usize) -> u64 {
        self.files.get(index + 1).map_or(self.files[index].header.end(), |next| next.header.first)
    }

    fn run<E: From<Error>>(
        mut self,
        from: Lsn,
        progress: &mut dyn FnMut(Progress),
        visit: &mut Visit<'_, E>,
    ) -> Result<ReplayEnd, E> {
        let first = self.files[0].header.first;
        let total_bytes = self.limit(self.files.len() - 1) - first;
        let mut records = 0;
        let mut visit_from = |lsn: Lsn, payload: &[u8]| {
            if lsn < from {
                return Ok(());
            }
            records += 1;
            visit(lsn, payload)
        };
        let mut end = first;
        let mut torn_bytes = 0;
        for index in 0..self.files.len() {
            let mut advance = |lsn: u64| progress(Progress { done_bytes: lsn - first, total_bytes });
            match self.read_file(index, &mut advance, &mut visit_from)? {
                Stop::AtLimit => end = self.limit(index),
                Stop::At { lsn, flaw } => {
                    torn_bytes = self.judge(index, lsn, flaw)?;
                    end = lsn;
                    break;
                }
            }
        }
        torn_bytes += self.partial.map_or(0, |partial| partial.bytes.len() as u64);
        progress(Progress { done_bytes: total_bytes, total_bytes });
        let epoch = self.files.last().map(|file| file.header.epoch);
        Ok(ReplayEnd { end: Lsn(end), records, torn_bytes, durable: Lsn(self.durable), epoch })
    }

    fn read_file<E: From<Error>>(
        &mut self,
        index: usize,
        advance: &mut dyn FnMut(u64),
        visit: &mut Visit<'_, E>,
    ) -> Result<Stop, E> {
        let files = self.files;
        let found = &files[index];
        let header = &found.header;
        if index > 0 && files[index - 1].header.epoch != header.epoch {
            // All below was there when the epoch began; a record cut by that is gone.
            self.durable = self.durable.max(header.first);
            self.partial = None;
            self.skipping = false;
        }
        let mut window = Window::open(self.os, found)?;
        let (mut lsn, limit) = (header.first, self.limit(index));
        let mut told = lsn;
        while lsn < limit {
            let (block, content) = match believe(&mut window, found, lsn, limit, &mut self.durable)? {
                Ok(block) => block,
                Err(flaw) => return Ok(Stop::At { lsn, flaw }),
            };
            self.take_block(found, &block, content, visit)?;
            lsn = block.end();
            if lsn - told >= READ_BYTES as u64 {
                told = lsn;
                advance(lsn);
            }
        }
        Ok(Stop::AtLimit)
    }

    /// Splits a block into records. Its checksum is right, so anything odd here is never a torn write.
    fn take_block<E: From<Error>>(
        &mut self,
        found: &FoundFile,
        block: &BlockHeader,
        content: &[u8],
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        let (head, mut body) = content.split_at(block.first_record as usize);
        let durable = self.durable;
        let corrupt = |lsn: u64, flaw: Flaw| -> E { corrupt(found, lsn, durable, flaw).into() };
        match self.partial.take() {
            Some(mut partial) => {
                partial.bytes.extend_from_slice(head);
                match whole_record(&partial.bytes) {
                    Some(count) if count == partial.bytes.len() => {
                        let payload = check_record(&found.header, partial.lsn, &partial.bytes)
                            .map_err(|flaw| corrupt(partial.lsn.max(found.header.first), flaw))?;
                        visit(Lsn(partial.lsn), payload)?;
                    }
                    None if body.is_empty() && partial.bytes.len() <= RECORD_BYTES_MAX + RECORD_HEADER_BYTES => {
                        self.partial = Some(partial);
                    }
                    _ => return Err(corrupt(block.lsn, Flaw::RecordContinuation)),
                }
            }
            None if !head.is_empty() && !self.skipping => {
                return Err(corrupt(block.lsn, Flaw::RecordContinuation));
            }
            None => {}
        }
        self.skipping &= body.is_empty();
        let mut lsn = block.lsn + (BLOCK_HEADER_BYTES + head.len()) as u64;
        while !body.is_empty() {
            let Some(count) = whole_record(body).filter(|count| *count <= body.len()) else {
                self.partial = Some(Partial { lsn, bytes: body.to_vec() });
                break;
            };
            let (record, rest) = body.split_at(count);
            let payload = check_record(&found.header, lsn, record).map_err(|flaw| corrupt(lsn, flaw))?;
            visit(Lsn(lsn), payload)?;
            lsn += count as u64;
            body = rest;
        }
        Ok(())
    }

    /// Decides whether the log may end at `lsn` in file `index`; gives the torn bytes.
    fn judge(&mut self, index: usize, lsn: u64, flaw: Flaw) -> Result<u64> {
        let mut torn_end = lsn;
        for (later, found) in self.files.iter().enumerate().skip(index) {
            let header = &found.header;
            if header.epoch != self.files[index].header.epoch {
                self.durable = self.durable.max(header.first);
                break;
            }
            let mut window = Window::open(self.os, found)?;
            let mut at = if later == index { lsn } else { header.first };
            while at < self.limit(later) {
                let bytes = window.get(found, header.offset_of(at), BLOCK_HEADER_BYTES)?;
                if bytes.is_empty() {
                    break;
                }
                if let Ok(block) = BlockHeader::decode(bytes, header, at) {
                    self.durable = self.durable.max(block.durable);
                    torn_end = torn_end.max(block.end());
                }
                at += PAGE_BYTES;
            }
        }
        if self.durable > lsn {
            return Err(corrupt(&self.files[index], lsn, self.durable, flaw));
        }
        Ok(torn_end - lsn)
    }
}

fn corrupt(found: &FoundFile, lsn: u64, durable: u64, flaw: Flaw) -> Error {
    let offset = found.header.offset_of(lsn);
    Error::Corrupt { path: found.path.clone(), offset, lsn: Lsn(lsn), durable: Lsn(durable), flaw }
}

/// The block at `lsn` and its content, if they are to be believed. The durable LSN of a sound header counts
/// even if the content is torn.
fn believe<'w>(
    window: &'w mut Window,
    found: &FoundFile,
    lsn: u64,
    limit: u64,
    durable: &mut u64,
) -> Result<std::result::Result<(BlockHeader, &'w [u8]), Flaw>> {
    let header = &found.header;
    let offset = header.offset_of(lsn);
    let block = match BlockHeader::decode(window.get(found, offset, BLOCK_HEADER_BYTES)?, header, lsn) {
        Ok(block) => block,
        Err(flaw) => return Ok(Err(flaw)),
    };
    *durable = block.durable.max(*durable);
    if block.end() > limit {
        let bytes_max = (limit - lsn).min(BLOCK_BYTES_MAX as u64);
        return Ok(Err(Flaw::BlockLength { bytes: block.end() - lsn, bytes_max }));
    }
    let count = BLOCK_HEADER_BYTES + block.content_bytes as usize;
    let bytes = window.get(found, offset, count)?;
    if bytes.len() < count {
        return Ok(Err(Flaw::Short { missing_bytes: (count - bytes.len()) as u64 }));
    }
    let content = &bytes[BLOCK_HEADER_BYTES..];
    let computed = crc32c::crc32c(content);
    if computed != block.content_crc {
        return Ok(Err(Flaw::ContentSum { stored: block.content_crc, computed }));
    }
    Ok(Ok((block, content)))
}

/// Length with header of the record that starts here, once its header is complete.
fn whole_record(bytes: &[u8]) -> Option<usize> {
    let (payload_bytes, _) = decode_record_header(bytes)?;
    let count = RECORD_HEADER_BYTES + payload_bytes as usize;
    (bytes.len() >= count).then_some(count)
}

fn check_record<'r>(file: &FileHeader, lsn: u64, record: &'r [u8]) -> Result<&'r [u8], Flaw> {
    let (payload_bytes, stored) =
        decode_record_header(record).ok_or(Flaw::RecordLength { bytes: record.len() as u64 })?;
    let payload = &record[RECORD_HEADER_BYTES..];
    let computed = record_crc(crc32c::crc32c(payload), lsn, file.epoch, file.salt, payload_bytes);
    if computed != stored {
        return Err(Flaw::RecordSum { stored, computed });
    }
    Ok(payload)
}

/// Where the log ends, found by reading only from the file that holds the byte before `start`; with the
/// number of that file in `files` and the greatest durable LSN known.
pub(crate) fn find_end(os: &Os, files: &[FoundFile], start: Lsn) -> Result<(Option<usize>, ReplayEnd)> {
    let tail = files.iter().rposition(|file| file.header.first < start.0);
    let from = tail.unwrap_or(0);
    let first = Lsn(files[from].header.first);
    let end = Scan::new(os, &files[from..])?.run(first, &mut |_| {}, &mut |_, _| Ok::<(), Error>(()))?;
    Ok((tail, end))
}
