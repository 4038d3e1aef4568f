use super::*;
use crate::data_file::DataFile;
use crate::tablet::EntryStamps;
use arrow_array::Int64Array;
use basalt_cold::{
    BlockCache, DeleteMap, Files, KeySpec, RowFileWriter, SegmentColumn, SegmentOptions, SegmentSchema, SegmentWriter,
};
use basalt_meta::FileKind;
use basalt_types::{Epoch, Rid, Version, ViewNo};

const PLENTY: u64 = 1 << 30;
const HASHES: [fn(&[u8]) -> u64; 3] = [basalt_cold::key_hash, |_| 7, |key| u64::from(key[7] % 3) << 40];

struct Fixture {
    files: Files,
    cache: Arc<BlockCache>,
    serial: u32,
}

impl Fixture {
    fn new() -> Fixture {
        let store = Arc::new(object_store::memory::InMemory::new());
        Fixture { files: Files::new(store), cache: Arc::new(BlockCache::new(1 << 20, 1 << 24)), serial: 0 }
    }

    /// A file of hidden keys, ascending; one may come twice. Every third is a row file.
    fn file(&mut self, ids: impl IntoIterator<Item = i64>) -> Arc<FileEntry> {
        self.serial += 1;
        let id = FileId { epoch: Epoch(1), serial: self.serial };
        let (kind, bytes) = match self.serial.is_multiple_of(3) {
            true => (FileKind::RowFile, self.write_rows(id, ids)),
            false => (FileKind::Segment, self.write_segment(id, ids)),
        };
        let data = DataFile::open(&self.files, &self.cache, id, kind).unwrap();
        Arc::new(FileEntry { data, deletes: DeleteMap::new(), stamps: EntryStamps::PerRow, bytes })
    }

    fn write_rows(&self, id: FileId, ids: impl IntoIterator<Item = i64>) -> u64 {
        let mut writer = RowFileWriter::create(&self.files, id).unwrap();
        for (id, version) in ids.into_iter().zip((1..1000).rev()) {
            writer.push(key(id).as_bytes(), Rid(id as u64), Some(Version(version)), Some(b"row")).unwrap();
        }
        writer.finish().unwrap().bytes
    }

    fn write_segment(&self, id: FileId, ids: impl IntoIterator<Item = i64>) -> u64 {
        let schema = SegmentSchema { columns: vec![SegmentColumn::hidden_key()], key: KeySpec::Hidden };
        let mut writer = SegmentWriter::create(&self.files, id, schema, SegmentOptions::default()).unwrap();
        writer.push(&[Arc::new(Int64Array::from_iter_values(ids))], basalt_cold::Stamps::Uniform).unwrap();
        writer.finish().unwrap().bytes
    }
}

fn view(files: &[Arc<FileEntry>]) -> Arc<ReadView> {
    Arc::new(ReadView::new(ViewNo(1), files.to_vec()))
}

fn budget(bytes: u64) -> Arc<LocatorBudget> {
    Arc::new(LocatorBudget::new(bytes))
}

fn fill(locate: &Locate, files: &[Arc<FileEntry>], budget: &Arc<LocatorBudget>) {
    let view = view(files);
    locate.fill(&|| view.clone(), budget, &|| false).unwrap();
}

fn key(id: i64) -> Key {
    Key::hidden(Rid(id as u64))
}

/// As by somebody who has not asked before.
fn places(locate: &Locate, current: &ReadView, id: i64) -> Vec<(FileId, u32)> {
    let (key, fresh) = (key(id), view(&current.files));
    let found = locate.places(&fresh, key.as_bytes());
    found.map(|place| place.map(|(position, ordinal)| (fresh.files[position].id(), ordinal)).unwrap()).collect()
}

/// As by asking every file.
fn expected(view: &ReadView, id: i64) -> Vec<(FileId, u32)> {
    let of_file = |file: &Arc<FileEntry>| {
        let found = file.data.find(key(id).as_bytes()).unwrap();
        found.into_iter().map(|ordinal| (file.id(), ordinal)).collect::<Vec<_>>()
    };
    view.files.iter().rev().flat_map(of_file).collect()
}

/// Files that a lookup asks, or compares a row of.
fn probes(locate: &Locate, view: &ReadView, id: i64) -> usize {
    locate.asks(view, key(id).as_bytes()).len()
}

/// Whatever was found before is found again, also by who stopped early, and by who asks a later view.
#[test]
fn what_is_remembered_of_a_view_is_what_its_files_have() {
    let mut fixture = Fixture::new();
    let files = [fixture.file(0..300), fixture.file(100..200), fixture.file(150..250)];
    let locate = Locate::default();
    let (both, all) = (view(&files[..2]), view(&files));
    for id in [120, 160, 299, 300] {
        for view in [&both, &all, &both] {
            for looked_at in 0..4 {
                let key = key(id);
                let some: Vec<_> = locate.places(view, key.as_bytes()).take(looked_at).collect();
                assert!(some.len() <= looked_at);
                let all = locate.places(view, key.as_bytes()).map(|place| place.unwrap());
                let all: Vec<_> = all.map(|(position, ordinal)| (view.files[position].id(), ordinal)).collect();
                assert_eq!(all, expected(view, id), "row {id}");
            }
        }
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn every_place_of_a_key_is_found_newest_first_however_much_is_filled() {
    for seed in 0..36u64 {
        let mut state = seed;
        let mut fixture = Fixture::new();
        let locate = Locate::hashing(HASHES[seed as usize % HASHES.len()]);
        let budget = budget([PLENTY, 100 << 10, 250 << 10][(seed / 3) as usize % 3]);
        let mut listed: Vec<Arc<FileEntry>> = Vec::new();
        let mut views = vec![view(&listed)];
        for _ in 0..30 {
            if listed.len() > 2 && random(&mut state).is_multiple_of(4) {
                listed.remove(random(&mut state) as usize % listed.len());
            }
            let (from, step) = (random(&mut state) as i64 % 300, 1 + random(&mut state) as i64 % 20);
            let ids = (0..random(&mut state) as i64 % 120).map(|i| from + i * step / 2);
            listed.push(fixture.file(ids));
            views.push(view(&listed));
            if random(&mut state).is_multiple_of(3) {
                fill(&locate, &listed, &budget);
            }
            if views.len() > 4 {
                views.remove(random(&mut state) as usize % 4);
            }
            for view in &views {
                for _ in 0..20 {
                    let id = random(&mut state) as i64 % 400;
                    assert_eq!(places(&locate, view, id), expected(view, id), "seed {seed}, key {id}");
                }
            }
        }
        assert!(budget.bytes() <= budget.bytes_max());
    }
}

#[test]
fn a_lookup_over_many_overlapping_files_is_about_one_probe() {
    let mut fixture = Fixture::new();
    let files: Vec<_> = (0..64).map(|file| fixture.file((0..50).map(|i| i * 64 + file))).collect();
    let (locate, budget, current) = (Locate::default(), budget(PLENTY), view(&files));
    assert!((64..3000).all(|id| probes(&locate, &current, id) == 64), "without entries every file is asked");
    locate.fill(&|| current.clone(), &budget, &|| false).unwrap();
    assert_eq!(budget.entries(), 63 * 50, "one of the files needs no entries");
    for id in 0..3200 {
        assert_eq!(places(&locate, &current, id), expected(&current, id));
        assert!(probes(&locate, &current, id) <= 2);
    }
}

#[test]
fn files_with_disjoint_ranges_need_no_entries() {
    let mut fixture = Fixture::new();
    let mut files: Vec<_> = (0..100i64).rev().map(|file| fixture.file(file * 100..file * 100 + 50)).collect();
    let (locate, budget) = (Locate::default(), budget(PLENTY));
    fill(&locate, &files, &budget);
    assert_eq!((budget.bytes(), budget.entries()), (0, 0));
    for id in (0..10_000).step_by(7) {
        assert_eq!(probes(&locate, &view(&files), id), usize::from(id % 100 < 50));
        assert_eq!(places(&locate, &view(&files), id), expected(&view(&files), id));
    }
    // A small file over all of them: it gets entries, they do not.
    files.push(fixture.file((0..20).map(|i| i * 500)));
    fill(&locate, &files, &budget);
    assert_eq!(budget.entries(), 20);
    assert_eq!(places(&locate, &view(&files), 500), expected(&view(&files), 500));
    assert_eq!(probes(&locate, &view(&files), 501), 1);
}

#[test]
fn old_views_find_what_newer_ones_have_replaced_and_what_nobody_reads_is_given_up() {
    let mut fixture = Fixture::new();
    let mut inputs: Vec<_> = (0..8).map(|_| fixture.file(0..100)).collect();
    let (locate, budget) = (Locate::default(), budget(PLENTY));
    fill(&locate, &inputs, &budget);
    assert_eq!(budget.entries(), 700);
    let old = view(&inputs);
    inputs.clear();
    let merged = vec![fixture.file(0..100), fixture.file(50..150)];
    fill(&locate, &merged, &budget);
    assert_eq!(places(&locate, &old, 60), expected(&old, 60));
    assert_eq!(places(&locate, &view(&merged), 60), expected(&view(&merged), 60));
    assert_eq!(budget.entries(), 800);
    drop(old);
    fill(&locate, &merged, &budget);
    assert_eq!(budget.entries(), 100);
    assert_eq!(places(&locate, &view(&merged), 60), expected(&view(&merged), 60));
    drop(locate);
    assert_eq!((budget.bytes(), budget.entries()), (0, 0));
}

#[test]
fn without_room_lookups_ask_the_files() {
    let mut fixture = Fixture::new();
    let mut files: Vec<_> = (0..40).map(|file| fixture.file((0..500).map(|i| i * 40 + file))).collect();
    for bytes in [0, 1000, 50 << 10, 400 << 10] {
        let (locate, budget) = (Locate::default(), budget(bytes));
        fill(&locate, &files, &budget);
        assert!(budget.bytes() <= bytes, "{} of {bytes}", budget.bytes());
        assert!(budget.entries() < 39 * 500);
        assert_eq!(budget.entries() > 0, bytes > 100 << 10);
        for id in (0..20_000).step_by(13) {
            assert_eq!(places(&locate, &view(&files), id), expected(&view(&files), id));
        }
    }
    // Room that becomes free is used.
    let (locate, budget) = (Locate::default(), budget(400 << 10));
    fill(&locate, &files, &budget);
    let few: Vec<_> = files.drain(..).skip(30).collect();
    fill(&locate, &few, &budget);
    assert_eq!(budget.entries(), 9 * 500);
}

#[test]
fn a_fill_that_is_interrupted_leaves_nothing_half_done() {
    let mut fixture = Fixture::new();
    let files = [fixture.file(0..150_000), fixture.file((0..140_000).map(|i| i + 5)), fixture.file(100..200)];
    for steps in 1..4 {
        let (locate, budget) = (Locate::default(), budget(PLENTY));
        let asked = AtomicU64::new(0);
        let current = view(&files);
        let halted = || asked.fetch_add(1, Ordering::Relaxed) >= steps;
        locate.fill(&|| current.clone(), &budget, &halted).unwrap();
        for id in [3, 70_000, 139_999, 150_003] {
            assert_eq!(places(&locate, &current, id), expected(&current, id), "after {steps} steps");
        }
        locate.fill(&|| current.clone(), &budget, &|| false).unwrap();
        assert_eq!(budget.entries(), 140_100);
        assert_eq!(places(&locate, &current, 139_999), expected(&current, 139_999));
    }
}

#[test]
fn a_damaged_file_fails_the_fill_and_is_asked_as_before() {
    let mut fixture = Fixture::new();
    let files = [fixture.file(0..200), fixture.file(0..100), fixture.file(0..100)];
    let path = Files::path(files[1].id(), basalt_cold::FileKind::Segment);
    let mut bytes = fixture.files.read(&path, 0..files[1].bytes).unwrap().to_vec();
    bytes[9] ^= 1;
    fixture.files.put(&path, bytes).unwrap();
    let (locate, budget) = (Locate::default(), budget(PLENTY));
    let current = view(&files);
    let error = locate.fill(&|| current.clone(), &budget, &|| false).unwrap_err();
    assert_eq!(error.kind(), basalt_types::ErrorKind::Corrupt);
    let found: Vec<_> = locate.places(&current, key(7).as_bytes()).map(|place| place.is_ok()).collect();
    assert_eq!(found, [true, false, true]);
}

#[test]
fn runs_are_disjoint_and_the_first_is_the_heaviest() {
    for seed in 0..500u64 {
        let mut state = seed;
        let count = 1 + random(&mut state) as usize % 9;
        let ranges: Vec<(Key, Key, u64)> = (0..count)
            .map(|_| {
                let least = random(&mut state) as i64 % 40;
                let greatest = least + random(&mut state) as i64 % 12;
                (key(least), key(greatest), 1 + random(&mut state) % 50)
            })
            .collect();
        let mut files = Vec::new();
        for (position, (least, greatest, rows)) in (0..).zip(&ranges) {
            files.push(Ranged { position, rows: *rows, least, greatest });
        }
        let runs = runs(files);
        let mut all: Vec<u32> = runs.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..count as u32), "seed {seed}: every file is in one run");
        let disjoint = |run: &[u32]| run.windows(2).all(|two| ranges[two[0] as usize].1 < ranges[two[1] as usize].0);
        assert!(runs.iter().all(|run| disjoint(run)), "seed {seed}: {runs:?}");
        let rows = |run: &[u32]| run.iter().map(|file| ranges[*file as usize].2).sum::<u64>();
        let mut by_least: Vec<u32> = (0..count as u32).collect();
        by_least.sort_by_key(|file| &ranges[*file as usize].0);
        let subsets = (0..1u32 << count)
            .map(|bits| by_least.iter().copied().filter(|file| bits >> file & 1 == 1).collect::<Vec<u32>>());
        let heaviest = subsets.filter(|run| disjoint(run)).map(|run| rows(&run)).max();
        assert_eq!(Some(rows(&runs[0])), heaviest, "seed {seed}: {runs:?}");
        // The rest has as many runs as files meet in one key.
        let rest: Vec<u32> = runs[1..].concat();
        let depth = |at: &Key| {
            rest.iter().filter(|file| ranges[**file as usize].0 <= *at && *at <= ranges[**file as usize].1).count()
        };
        let deepest = rest.iter().map(|file| depth(&ranges[*file as usize].0)).max().unwrap_or(0);
        assert_eq!(runs.len() - 1, deepest, "seed {seed}: {runs:?}");
    }
}
