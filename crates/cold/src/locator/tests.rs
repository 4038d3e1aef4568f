use super::*;
use basalt_types::Epoch;

fn file(serial: u32) -> FileId {
    FileId { epoch: Epoch(1), serial }
}

#[test]
fn entries_are_found_until_removed_singly_or_with_their_file() {
    let locator = Locator::new();
    let hash = |i: u64| xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes());
    locator.insert_file(file(1), 0, (0..5000).map(hash));
    locator.insert_file(file(2), 100, (0..10).map(hash));
    locator.insert(hash(3), Location { file: file(3), ordinal: 9 });
    let mut found = locator.candidates(hash(3));
    found.sort();
    let expected = [(1, 3), (2, 103), (3, 9)].map(|(serial, ordinal)| Location { file: file(serial), ordinal });
    assert_eq!(found, expected);
    assert_eq!(locator.len(), 5011);
    assert!(locator.memory_bytes() > 5011 * 16);
    assert!(locator.remove(hash(3), expected[1]));
    assert!(!locator.remove(hash(3), expected[1]));
    locator.remove_file(file(1));
    assert_eq!(locator.candidates(hash(3)), [expected[2]]);
    assert_eq!(locator.candidates(hash(4000)), []);
    assert_eq!(locator.len(), 10);
    locator.insert(hash(4000), Location { file: file(4), ordinal: 1 });
    assert_eq!(locator.candidates(hash(4000)), [Location { file: file(4), ordinal: 1 }]);
}
