use super::*;
use basalt_types::Epoch;

fn file(serial: u32) -> FileId {
    FileId { epoch: Epoch(1), serial }
}

fn at(serial: u32, ordinal: u32) -> Location {
    Location { file: file(serial), ordinal }
}

fn hash(i: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes())
}

fn hashes(rows: std::ops::Range<u64>) -> Vec<u64> {
    rows.map(hash).collect()
}

fn budget(bytes_max: u64) -> Arc<LocatorBudget> {
    Arc::new(LocatorBudget::new(bytes_max))
}

fn sorted(mut found: Vec<Location>) -> Vec<Location> {
    found.sort();
    found
}

#[test]
fn entries_are_found_until_their_file_is_forgotten() {
    let locator = Locator::new(&budget(1 << 30)).unwrap();
    assert!(locator.insert_rows(file(1), 0, &hashes(0..3000)));
    assert!(locator.insert_rows(file(1), 3000, &hashes(3000..5000)));
    assert!(locator.insert_rows(file(2), 100, &hashes(0..10)));
    assert!(locator.insert_rows(file(3), 9, &[hash(3)]));
    assert_eq!(sorted(locator.candidates(hash(3))), [at(1, 3), at(2, 103), at(3, 9)]);
    assert_eq!(locator.candidates(hash(4000)), [at(1, 4000)]);
    assert_eq!(locator.candidates(hash(9999)), []);
    assert_eq!(locator.len(), 5011);
    locator.forget(file(1));
    assert_eq!(sorted(locator.candidates(hash(3))), [at(2, 103), at(3, 9)]);
    assert_eq!(locator.candidates(hash(4000)), []);
    assert_eq!(locator.len(), 11, "most entries were dead");
    // The slot of the forgotten file serves again.
    assert!(locator.insert_rows(file(4), 1, &[hash(4000)]));
    assert_eq!(locator.candidates(hash(4000)), [at(4, 1)]);
}

#[test]
fn entries_of_forgotten_files_are_no_candidates_while_they_wait_for_a_walk() {
    let locator = Locator::new(&budget(1 << 30)).unwrap();
    assert!(locator.insert_rows(file(1), 0, &hashes(0..1000)));
    assert!(locator.insert_rows(file(2), 0, &hashes(0..10)));
    locator.forget(file(2));
    assert_eq!(locator.len(), 1010);
    assert_eq!(locator.candidates(hash(3)), [at(1, 3)]);
    assert!(locator.insert_rows(file(3), 0, &hashes(0..10)), "which must not take over the dead slot");
    assert_eq!(sorted(locator.candidates(hash(3))), [at(1, 3), at(3, 3)]);
    locator.remove_dead();
    assert_eq!(locator.len(), 1010);
    assert_eq!(sorted(locator.candidates(hash(3))), [at(1, 3), at(3, 3)]);
}

#[test]
fn equal_hashes_are_all_candidates() {
    let locator = Locator::new(&budget(1 << 30)).unwrap();
    for serial in 1..=50 {
        assert!(locator.insert_rows(file(serial), 0, &[7; 20]));
    }
    let expected: Vec<Location> = (1..=50).flat_map(|serial| (0..20).map(move |ordinal| at(serial, ordinal))).collect();
    assert_eq!(sorted(locator.candidates(7)), expected);
    assert_eq!(locator.candidates(8), []);
}

#[test]
fn the_budget_bounds_all_locators_together_and_gets_everything_back() {
    let budget = budget(1 << 20);
    let (first, second) = (Locator::new(&budget).unwrap(), Locator::new(&budget).unwrap());
    let mut files = 0;
    while first.insert_rows(file(files + 1), 0, &hashes(u64::from(files) * 1000..u64::from(files + 1) * 1000)) {
        files += 1;
        assert!(budget.bytes() <= budget.bytes_max());
    }
    assert!(files >= 10, "{files} times a thousand entries of about 40 bytes fit into a megabyte");
    assert_eq!(budget.bytes(), first.memory_bytes() + second.memory_bytes());
    assert_eq!(budget.entries(), first.len());
    assert!(!second.insert_rows(file(1000), 0, &hashes(0..100_000)));
    second.forget(file(1000));
    first.forget(file(files + 1));
    first.remove_dead();
    for serial in 0..files {
        let row = u64::from(serial) * 1000 + 7;
        assert_eq!(first.candidates(hash(row)), [at(serial + 1, 7)], "what was in before is still found");
    }
    assert_eq!(first.len(), u64::from(files) * 1000);
    assert_eq!(second.len(), 0);
    drop((first, second));
    assert_eq!((budget.bytes(), budget.entries()), (0, 0));
    assert!(Locator::new(&LocatorBudget::new(1000).into()).is_none());
}

#[test]
fn growth_is_not_underestimated() {
    let budget = budget(1 << 30);
    let locator = Locator::new(&budget).unwrap();
    for (round, rows) in [1u64, 1000, 50_000, 3, 200_000].into_iter().enumerate() {
        let (expected, before) = (locator.growth_bytes(rows), locator.memory_bytes());
        let from = round as u64 * 1_000_000;
        assert!(locator.insert_rows(file(round as u32), 0, &hashes(from..from + rows)));
        let grown = locator.memory_bytes() - before;
        assert!(grown <= expected, "{rows} rows: {grown} bytes after an estimate of {expected}");
    }
}
