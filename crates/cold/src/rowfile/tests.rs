use super::*;
use crate::{BlockCache, Error, FileKind, Files, Result};
use basalt_types::Epoch;
use object_store::memory::InMemory;
use std::sync::Arc;

const ID: FileId = FileId { epoch: Epoch(1), serial: 9 };

fn files() -> Files {
    Files::new(Arc::new(InMemory::new()))
}

fn cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(1 << 20, 0))
}

/// Every key twice, every third entry a tombstone.
fn entries(count: u64) -> Vec<RowEntry> {
    let entry = |i: u64| RowEntry {
        key: Key::from(&(i / 2 * 10).to_be_bytes()[..]),
        rid: Rid(i * 3),
        version: Version(1000 - i % 50),
        row: (!i.is_multiple_of(3)).then(|| vec![i as u8; (i % 90) as usize].into()),
    };
    (0..count).map(entry).collect()
}

fn write(files: &Files, entries: &[RowEntry]) -> RowFileMeta {
    let mut writer = RowFileWriter::create(files, ID).unwrap();
    for entry in entries {
        writer.push(entry.key.as_bytes(), entry.rid, Some(entry.version), entry.row.as_deref()).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn entries_are_found_by_key_by_ordinal_and_in_order() {
    let (files, entries) = (files(), entries(20_001));
    let meta = write(&files, &entries);
    let file = RowFile::open(&files, ID, &cache()).unwrap();
    assert_eq!(file.meta(), &meta);
    assert_eq!(meta.stamp_range, Some((Version(951), Version(1000))));
    let all: Vec<RowEntry> = file.iter(0).map(|entry| entry.unwrap().1).collect();
    assert_eq!(all, entries);
    assert_eq!(file.iter(20_000).count(), 1);
    assert_eq!(file.iter(20_001).count(), 0);
    for (i, entry) in entries.iter().enumerate() {
        let first = i / 2 * 2;
        let expected: Vec<u32> = (first..(first + 2).min(entries.len())).map(|i| i as u32).collect();
        assert_eq!(file.find(entry.key.as_bytes()).unwrap(), expected);
        assert_eq!(file.lower_bound(entry.key.as_bytes()).unwrap() as usize, first);
        if i % 97 == 0 {
            assert_eq!(&file.entry_at(i as u32).unwrap(), entry);
            assert_eq!(file.key_at(i as u32).unwrap(), entry.key);
            assert_eq!(file.stamp_at(i as u32).unwrap(), Some(entry.version));
        }
    }
    assert_eq!(file.find(&5u64.to_be_bytes()).unwrap(), Vec::<u32>::new());
    assert_eq!(file.lower_bound(&u64::MAX.to_be_bytes()).unwrap(), 20_001);
    for range in [0..0, 3..4, 100..900, 19_990..20_001] {
        let expected = &entries[range.start as usize..range.end as usize];
        let keys = file.keys(range.clone()).unwrap();
        assert!(keys.iter().eq(expected.iter().map(|entry| entry.key.as_bytes())), "{range:?}");
        let mut visited = Vec::new();
        file.visit(range.clone(), |ordinal, entry| visited.push((ordinal, entry.to_owned()))).unwrap();
        assert!(visited.into_iter().eq(range.zip(expected.iter().cloned())));
    }
    // Of every third key the next one, which nobody has, and some before and behind all.
    let wanted: Vec<Vec<u8>> = std::iter::once(Vec::new())
        .chain(
            (0..10_002u64).flat_map(|i| [i * 10, i * 10 + u64::from(i % 3 == 0)]).map(|key| key.to_be_bytes().to_vec()),
        )
        .collect();
    let mut wanted: Vec<&[u8]> = wanted.iter().map(Vec::as_slice).collect();
    wanted.dedup();
    let mut found = Vec::new();
    file.find_many(&wanted, &mut |position, ordinal| found.push((position, ordinal))).unwrap();
    let expected = wanted
        .iter()
        .enumerate()
        .flat_map(|(position, key)| file.find(key).unwrap().into_iter().map(move |ordinal| (position, ordinal)));
    assert!(found.iter().copied().eq(expected));
    assert_eq!(found.len(), 20_001);
    let some: Vec<u32> = (0..20_001).filter(|ordinal| ordinal % 7 == 3 || ordinal / 500 == 20).collect();
    let mut visited = Vec::new();
    file.visit_at(&some, |entry| visited.push(entry.to_owned())).unwrap();
    assert!(visited.iter().eq(some.iter().map(|ordinal| &entries[*ordinal as usize])));
    assert!(matches!(file.visit_at(&[20_000, 20_001], |_| {}), Err(Error::OrdinalOutOfRange { .. })));
    let held = file.hold_at(&some).unwrap();
    assert_eq!(held.len(), some.len());
    assert!((0..held.len()).all(|at| held.get(at).to_owned() == visited[at]));
    assert!(file.hold_at(&[]).unwrap().is_empty());
    assert!(matches!(file.hold_at(&[20_000, 20_001]), Err(Error::OrdinalOutOfRange { .. })));
    assert!(matches!(file.entry_at(20_001), Err(Error::OrdinalOutOfRange { .. })));
    assert!(matches!(file.keys(20_000..20_002), Err(Error::OrdinalOutOfRange { .. })));
    file.verify().unwrap();
}

#[test]
fn an_empty_file_is_a_file_and_disorder_is_refused() {
    let files = files();
    assert_eq!(write(&files, &[]).key_range, None);
    let file = RowFile::open(&files, ID, &cache()).unwrap();
    assert_eq!(file.find(b"x").unwrap(), Vec::<u32>::new());
    assert_eq!((file.iter(0).count(), file.lower_bound(b"x").unwrap()), (0, 0));
    file.verify().unwrap();
    let mut writer = RowFileWriter::create(&files, ID).unwrap();
    writer.push(b"b", Rid(1), Some(Version(1)), None).unwrap();
    assert!(matches!(writer.push(b"a", Rid(1), Some(Version(1)), None), Err(Error::OutOfOrder { .. })));
}

#[test]
fn damage_is_an_error_or_harmless_never_a_wrong_answer() {
    let (files, entries) = (files(), entries(150));
    write(&files, &entries);
    let path = Files::path(ID, FileKind::Row);
    let bytes = files.read(&path, 0..files.bytes(&path).unwrap()).unwrap();
    let read = |damaged: Vec<u8>| -> Result<()> {
        files.put(&path, damaged)?;
        let file = RowFile::open(&files, ID, &cache())?;
        let all = file.iter(0).map(|entry| Ok(entry?.1)).collect::<Result<Vec<RowEntry>>>()?;
        assert_eq!(all, entries);
        assert_eq!(file.find(entries[70].key.as_bytes())?.len(), 2);
        file.verify()
    };
    read(bytes.to_vec()).unwrap();
    for cut in 0..bytes.len() {
        assert!(read(bytes[..cut].to_vec()).is_err(), "cut at {cut}");
    }
    let mut harmless = 0;
    for at in 0..bytes.len() {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1 << (at % 8);
        harmless += usize::from(read(flipped).is_ok());
    }
    assert_eq!(harmless, 8, "the magic at the start alone is not read");
}

#[test]
fn files_of_format_1_are_read() {
    let files = files();
    files.put(&Files::path(ID, FileKind::Row), include_bytes!("../../fixtures/rowfile-1.row").to_vec()).unwrap();
    let file = RowFile::open(&files, ID, &cache()).unwrap();
    let all: Vec<RowEntry> = file.iter(0).map(|entry| entry.unwrap().1).collect();
    assert_eq!(all, entries(1_000));
    file.verify().unwrap();
}

#[test]
fn entries_without_versions_carry_none() {
    let files = files();
    let mut writer = RowFileWriter::create(&files, ID).unwrap();
    for i in 0..1_000u64 {
        writer.push(&i.to_be_bytes(), Rid(i), None, Some(&[7; 40])).unwrap();
    }
    assert_eq!(writer.finish().unwrap().stamp_range, None);
    let file = RowFile::open(&files, ID, &cache()).unwrap();
    assert_eq!((file.stamp_at(500).unwrap(), file.entry_at(500).unwrap().version), (None, Version::ZERO));
    file.verify().unwrap();
    let mut writer = RowFileWriter::create(&files, FileId { serial: 10, ..ID }).unwrap();
    writer.push(b"a", Rid(1), None, None).unwrap();
    assert!(matches!(writer.push(b"b", Rid(1), Some(Version(1)), None), Err(Error::SchemaMismatch { .. })));
}
