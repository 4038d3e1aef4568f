//! What the engine writes into the log: the bodies of `wal` records (`docs/format/records.md`).
//!
//! Row records are redo by key: (transaction, tablet, key, row). Nothing names a page or an ordinal, so
//! replay and replicas may keep rows elsewhere than the primary did. Replay gathers a transaction's records
//! and applies them at its commit record. File edits, inside commit records, do name ordinals: they were
//! appended under the tablet latch and mean the file list at their position. So do the marks of a large change, in
//! files that keep their places until the transaction has ended.

use basalt_meta::{CatalogEdit, FileInfo, FileStamps, SequenceValue, edit, filelist};
use basalt_types::{FileId, ObjectId, Rid, TabletId, TxnId, Version, varint};
use roaring::RoaringBitmap;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const BATCH: u8 = 3;
const VOID: u8 = 4;
const COMMIT: u8 = 5;
const ABORT: u8 = 6;
const SEQUENCE: u8 = 7;
const MARKS: u8 = 8;

/// One row of a [`Record::Batch`], borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PutRow<'a> {
    pub rid: Rid,
    pub key: &'a [u8],
    pub row: &'a [u8],
}

#[derive(Clone, PartialEq, Debug)]
pub enum Record<'a> {
    /// Insert or full after-image.
    Put {
        txn: TxnId,
        tablet: TabletId,
        row: PutRow<'a>,
    },
    Delete {
        txn: TxnId,
        tablet: TabletId,
        key: &'a [u8],
    },
    /// Deletes rows of a file, which stays listed until the transaction has ended.
    Marks {
        txn: TxnId,
        tablet: TabletId,
        file: FileId,
        ordinals: RoaringBitmap,
    },
    /// Several puts of one batch into one tablet.
    Batch {
        txn: TxnId,
        tablet: TabletId,
        rows: Vec<PutRow<'a>>,
    },
    /// The transaction's row operations from number `from` on (counted from 0) never happened.
    Void {
        txn: TxnId,
        from: u64,
    },
    /// Decides `txn` (none: background work) and carries catalog and file edits.
    Commit {
        txn: Option<TxnId>,
        version: Version,
        edits: Edits,
    },
    Abort {
        txn: TxnId,
    },
    /// Values up to this one may have been given, or the sequence was set to it. No transaction's.
    Sequence {
        state: ObjectId,
        value: SequenceValue,
    },
}

/// What a commit changes besides rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Edits {
    pub catalog: Vec<CatalogEdit>,
    pub files: Vec<FileEdit>,
}

impl Edits {
    pub fn is_empty(&self) -> bool {
        self.catalog.is_empty() && self.files.is_empty()
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum FileEdit {
    /// A bulk change set's file: its rows carry the version of this commit. The transaction's first
    /// `operations` row operations came before it; later ones may change its rows.
    Add { tablet: TabletId, file: FileInfo, next_rid: Rid, operations: u64 },
    /// Rows moved from hot into a new file (a segment, or a row file if they were evicted), except those at `stayed` (ascending ordinals), which had
    /// changed in hot meanwhile and are dead in the file.
    Freeze { tablet: TabletId, file: FileInfo, stayed: Vec<u32> },
    /// `inputs` are replaced by `outputs`, each with its delete map as of this record (empty: no deletions).
    Compact { tablet: TabletId, inputs: Vec<FileId>, outputs: Vec<(FileInfo, Vec<u8>)> },
}

/// All of a put but the row's bytes, which follow.
pub fn put_head(out: &mut Vec<u8>, txn: TxnId, tablet: TabletId, row: PutRow<'_>) {
    out.push(PUT);
    head(out, txn, tablet);
    put_row_head(out, row);
}

pub fn delete(out: &mut Vec<u8>, txn: TxnId, tablet: TabletId, key: &[u8]) {
    out.push(DELETE);
    head(out, txn, tablet);
    varint::put_slice(out, key);
}

pub fn marks(out: &mut Vec<u8>, txn: TxnId, tablet: TabletId, file: FileId, ordinals: &RoaringBitmap) {
    out.push(MARKS);
    head(out, txn, tablet);
    varint::put(out, file.to_u64());
    let mut bitmap = Vec::with_capacity(ordinals.serialized_size());
    ordinals.serialize_into(&mut bitmap).expect("a vector takes all bytes");
    varint::put_slice(out, &bitmap);
}

pub fn batch<'a>(out: &mut Vec<u8>, txn: TxnId, tablet: TabletId, rows: impl ExactSizeIterator<Item = PutRow<'a>>) {
    out.push(BATCH);
    head(out, txn, tablet);
    varint::put(out, rows.len() as u64);
    rows.for_each(|row| put_row(out, row));
}

pub fn void(out: &mut Vec<u8>, txn: TxnId, from: u64) {
    out.push(VOID);
    out.extend(txn.0.to_le_bytes());
    varint::put(out, from);
}

pub fn abort(out: &mut Vec<u8>, txn: TxnId) {
    out.push(ABORT);
    out.extend(txn.0.to_le_bytes());
}

pub fn sequence(out: &mut Vec<u8>, state: ObjectId, value: SequenceValue) {
    out.push(SEQUENCE);
    out.extend(u64::MAX.to_le_bytes());
    varint::put(out, u64::from(state.0));
    out.extend(value.last.to_le_bytes());
    out.push(u8::from(value.is_called));
}

/// A commit record without its file edits, which follow ([`file_edits`]).
pub fn commit(out: &mut Vec<u8>, txn: Option<TxnId>, version: Version, catalog: &[CatalogEdit]) {
    out.push(COMMIT);
    out.extend(txn.map_or(u64::MAX, |txn| txn.0).to_le_bytes());
    varint::put(out, version.0);
    match catalog.is_empty() {
        true => varint::put(out, 0),
        false => varint::put_slice(out, &edit::encode(catalog)),
    }
}

/// The end of a commit record.
pub fn file_edits(edits: &[FileEdit]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    varint::put(&mut out, edits.len() as u64);
    edits.iter().for_each(|edit| put_file_edit(&mut out, edit));
    out
}

fn head(out: &mut Vec<u8>, txn: TxnId, tablet: TabletId) {
    out.extend(txn.0.to_le_bytes());
    varint::put(out, u64::from(tablet.0));
}

fn put_row(out: &mut Vec<u8>, row: PutRow<'_>) {
    put_row_head(out, row);
    out.extend_from_slice(row.row);
}

fn put_row_head(out: &mut Vec<u8>, row: PutRow<'_>) {
    varint::put(out, row.rid.0);
    varint::put_slice(out, row.key);
    varint::put(out, row.row.len() as u64);
}

fn put_file_edit(out: &mut Vec<u8>, edit: &FileEdit) {
    let mut head = |tag: u8, tablet: &TabletId| {
        out.push(tag);
        varint::put(out, u64::from(tablet.0));
    };
    match edit {
        FileEdit::Add { tablet, file, next_rid, operations } => {
            head(1, tablet);
            put_file(out, file);
            varint::put(out, next_rid.0);
            varint::put(out, *operations);
        }
        FileEdit::Freeze { tablet, file, stayed } => {
            head(2, tablet);
            put_file(out, file);
            varint::put(out, stayed.len() as u64);
            let mut previous = 0;
            for ordinal in stayed {
                varint::put(out, u64::from(ordinal - previous));
                previous = *ordinal;
            }
        }
        FileEdit::Compact { tablet, inputs, outputs } => {
            head(3, tablet);
            varint::put(out, inputs.len() as u64);
            inputs.iter().for_each(|id| varint::put(out, id.to_u64()));
            varint::put(out, outputs.len() as u64);
            for (file, deletes) in outputs {
                put_file(out, file);
                varint::put_slice(out, deletes);
            }
        }
    }
}

fn put_file(out: &mut Vec<u8>, file: &FileInfo) {
    varint::put(out, file.id.to_u64());
    out.push(match file.kind {
        filelist::FileKind::Segment => 0,
        filelist::FileKind::RowFile => 1,
        filelist::FileKind::Pair => 2,
    });
    varint::put(out, file.rows);
    varint::put(out, file.bytes);
    match file.stamps {
        FileStamps::PerRow => varint::put(out, 0),
        FileStamps::Uniform(version) => varint::put(out, version.0 + 1),
    }
}

/// `None` if the bytes are not a record that this program knows.
pub fn decode(mut bytes: &[u8]) -> Option<Record<'_>> {
    let input = &mut bytes;
    let kind = varint::take_bytes(input, 1)?[0];
    let txn = TxnId(u64::from_le_bytes(varint::take_bytes(input, 8)?.try_into().ok()?));
    let record = match kind {
        PUT => Record::Put { txn, tablet: take_tablet(input)?, row: take_row(input)? },
        DELETE => Record::Delete { txn, tablet: take_tablet(input)?, key: varint::take_slice(input)? },
        BATCH => {
            let tablet = take_tablet(input)?;
            let rows = take_many(input, take_row)?;
            Record::Batch { txn, tablet, rows }
        }
        MARKS => {
            let (tablet, file) = (take_tablet(input)?, FileId::from_u64(varint::take(input)?));
            Record::Marks { txn, tablet, file, ordinals: take_bitmap(input)? }
        }
        VOID => Record::Void { txn, from: varint::take(input)? },
        ABORT => Record::Abort { txn },
        SEQUENCE => {
            let state = ObjectId(u32::try_from(varint::take(input)?).ok()?);
            let last = i64::from_le_bytes(varint::take_bytes(input, 8)?.try_into().ok()?);
            let is_called = match varint::take_bytes(input, 1)?[0] {
                0 => false,
                1 => true,
                _ => return None,
            };
            Record::Sequence { state, value: SequenceValue { last, is_called } }
        }
        COMMIT => {
            let version = Version(varint::take(input)?);
            let catalog = match varint::take_slice(input)? {
                [] => Vec::new(),
                bytes => edit::decode(bytes).ok()?,
            };
            let files = take_many(input, take_file_edit)?;
            let txn = (txn.0 != u64::MAX).then_some(txn);
            Record::Commit { txn, version, edits: Edits { catalog, files } }
        }
        _ => return None,
    };
    input.is_empty().then_some(record)
}

fn take_many<'a, T>(input: &mut &'a [u8], take: impl Fn(&mut &'a [u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = usize::try_from(varint::take(input)?).ok().filter(|count| *count <= input.len())?;
    (0..count).map(|_| take(input)).collect()
}

fn take_bitmap(input: &mut &[u8]) -> Option<RoaringBitmap> {
    let mut bytes = varint::take_slice(input)?;
    let bitmap = RoaringBitmap::deserialize_from(&mut bytes).ok()?;
    bytes.is_empty().then_some(bitmap)
}

fn take_tablet(input: &mut &[u8]) -> Option<TabletId> {
    Some(TabletId(u32::try_from(varint::take(input)?).ok()?))
}

fn take_row<'a>(input: &mut &'a [u8]) -> Option<PutRow<'a>> {
    let rid = Rid(varint::take(input)?);
    Some(PutRow { rid, key: varint::take_slice(input)?, row: varint::take_slice(input)? })
}

fn take_file_edit(input: &mut &[u8]) -> Option<FileEdit> {
    let tag = varint::take_bytes(input, 1)?[0];
    let tablet = take_tablet(input)?;
    Some(match tag {
        1 => {
            let (file, next_rid) = (take_file(input)?, Rid(varint::take(input)?));
            FileEdit::Add { tablet, file, next_rid, operations: varint::take(input)? }
        }
        2 => {
            let file = take_file(input)?;
            let distances = take_many(input, |input| u32::try_from(varint::take(input)?).ok())?;
            let mut at = 0u32;
            let stayed = distances.into_iter().map(|distance| {
                at = at.checked_add(distance)?;
                Some(at)
            });
            FileEdit::Freeze { tablet, file, stayed: stayed.collect::<Option<_>>()? }
        }
        3 => {
            let inputs = take_many(input, |input| Some(FileId::from_u64(varint::take(input)?)))?;
            let output = |input: &mut &[u8]| Some((take_file(input)?, varint::take_slice(input)?.to_vec()));
            FileEdit::Compact { tablet, inputs, outputs: take_many(input, output)? }
        }
        _ => return None,
    })
}

fn take_file(input: &mut &[u8]) -> Option<FileInfo> {
    let id = FileId::from_u64(varint::take(input)?);
    let kind = match varint::take_bytes(input, 1)?[0] {
        0 => filelist::FileKind::Segment,
        1 => filelist::FileKind::RowFile,
        2 => filelist::FileKind::Pair,
        _ => return None,
    };
    let rows = varint::take(input)?;
    let bytes = varint::take(input)?;
    let stamps = match varint::take(input)? {
        0 => FileStamps::PerRow,
        version => FileStamps::Uniform(Version(version - 1)),
    };
    Some(FileInfo { id, kind, rows, bytes, stamps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_types::Epoch;

    fn ordinals() -> RoaringBitmap {
        let mut ordinals: RoaringBitmap = (70_000..90_000).chain([3, 1 << 20]).collect();
        ordinals.optimize();
        ordinals
    }

    fn samples() -> Vec<Vec<u8>> {
        let txn = TxnId::new(Epoch(3), 77);
        let file = FileInfo {
            id: FileId { epoch: Epoch(3), serial: 9 },
            kind: filelist::FileKind::Segment,
            rows: 100,
            bytes: 4096,
            stamps: FileStamps::Uniform(Version(0)),
        };
        let row = PutRow { rid: Rid(5), key: b"key", row: b"row bytes" };
        let edits = Edits {
            catalog: vec![CatalogEdit::SetSetting { name: "a".into(), value: Some("b".into()) }],
            files: vec![
                FileEdit::Add { tablet: TabletId(1), file: file.clone(), next_rid: Rid(101), operations: 3 },
                FileEdit::Freeze { tablet: TabletId(2), file: file.clone(), stayed: vec![0, 1, 99] },
                FileEdit::Compact {
                    tablet: TabletId(1),
                    inputs: vec![file.id, file.id],
                    outputs: vec![(file, vec![1, 2, 3])],
                },
            ],
        };
        let mut out = vec![Vec::new(); 8];
        put_head(&mut out[0], txn, TabletId(1), row);
        out[0].extend_from_slice(row.row);
        delete(&mut out[1], txn, TabletId(300), b"gone");
        batch(&mut out[2], txn, TabletId(1), [row, row].into_iter());
        void(&mut out[3], txn, 12);
        commit(&mut out[4], Some(txn), Version(12), &edits.catalog);
        out[4].extend(file_edits(&edits.files));
        commit(&mut out[5], None, Version(13), &[]);
        out[5].extend(file_edits(&[]));
        sequence(&mut out[6], ObjectId(16400), SequenceValue { last: -7, is_called: true });
        let id = FileId { epoch: Epoch(3), serial: 9 };
        marks(&mut out[7], txn, TabletId(300), id, &ordinals());
        out
    }

    #[test]
    fn records_round_trip() {
        let all = samples();
        assert!(matches!(decode(&all[0]), Some(Record::Put { row: PutRow { rid: Rid(5), key: b"key", .. }, .. })));
        assert!(matches!(decode(&all[2]), Some(Record::Batch { rows, .. }) if rows.len() == 2));
        let Some(Record::Commit { edits, version: Version(12), .. }) = decode(&all[4]) else { panic!() };
        assert!(matches!(&edits.files[1], FileEdit::Freeze { stayed, .. } if stayed == &[0, 1, 99]));
        assert!(matches!(decode(&all[5]), Some(Record::Commit { txn: None, .. })));
        let value = SequenceValue { last: -7, is_called: true };
        assert_eq!(decode(&all[6]), Some(Record::Sequence { state: ObjectId(16400), value }));
        assert!(matches!(decode(&all[7]), Some(Record::Marks { tablet: TabletId(300), ordinals: read, file, .. })
            if read == ordinals() && file.serial == 9));
    }

    #[test]
    fn cut_records_are_refused() {
        for record in samples() {
            for cut in 0..record.len() {
                assert_eq!(decode(&record[..cut]), None, "cut at {cut} of {record:?}");
            }
        }
    }
}
