use super::*;
use basalt_types::Epoch;

fn file(serial: u32) -> FileId {
    FileId { epoch: Epoch(1), serial }
}

fn block(bytes: usize) -> Bytes {
    Bytes::from(vec![7; bytes])
}

#[test]
fn a_scan_does_not_push_out_what_is_read_again_and_again() {
    let cache = BlockCache::new(0, 16 * 100 * 1024);
    let hot: Vec<u64> = (0..200).collect();
    for round in 0..4 {
        for &offset in &hot {
            if cache.get(BlockKind::Column, file(1), offset).is_none() {
                cache.insert(BlockKind::Column, file(1), offset, block(1000));
            }
        }
        assert!(round < 2 || hot.iter().all(|o| cache.get(BlockKind::Column, file(1), *o).is_some()));
    }
    for offset in 0..20_000 {
        if cache.get(BlockKind::Column, file(2), offset).is_none() {
            cache.insert(BlockKind::Column, file(2), offset, block(1000));
        }
    }
    let kept = hot.iter().filter(|o| cache.get(BlockKind::Column, file(1), **o).is_some()).count();
    assert!(kept > 190, "{kept} of 200 hot blocks survived the scan");
}

#[test]
fn bytes_stay_below_the_bound_and_files_can_be_dropped() {
    let cache = BlockCache::new(1 << 20, 1 << 20);
    for offset in 0..10_000 {
        cache.insert(BlockKind::Row, file((offset % 3) as u32), offset, block(512));
        assert!(cache.stats(BlockKind::Row).bytes <= 1 << 20);
    }
    cache.remove_file(file(0));
    assert!((0..10_000).all(|o| o % 3 != 0 || cache.get(BlockKind::Row, file(0), o).is_none()));
    cache.resize(BlockKind::Row, 1 << 16);
    let stats = cache.stats(BlockKind::Row);
    assert!(stats.bytes <= 1 << 16 && stats.blocks > 0, "{stats:?}");
    cache.remove_file(file(1));
    cache.remove_file(file(2));
    let stats = cache.stats(BlockKind::Row);
    assert_eq!((stats.bytes, stats.blocks), (0, 0));
    assert_eq!(cache.stats(BlockKind::Column).blocks, 0);
}

/// What slots lead to is kept like what is asked for by name, and is gone when the cache has dropped it.
#[test]
fn slots_lead_to_blocks_until_they_are_dropped() {
    let cache = BlockCache::new(0, 16 * 100 * 1024);
    let hot: Vec<(u64, Slot<CachedBlock>)> = (0..200).map(|offset| (offset, Slot::default())).collect();
    for (offset, slot) in &hot {
        assert!(cache.get_from(BlockKind::Column, slot).is_none());
        slot.put(&cache.insert(BlockKind::Column, file(1), *offset, block(1000)));
        let found = cache.get_from(BlockKind::Column, slot).expect("it was just inserted");
        assert_eq!(found.bytes(), &block(1000));
    }
    assert_eq!(cache.stats(BlockKind::Column).hits, 200);
    for round in 0..20_000 {
        cache.insert(BlockKind::Column, file(2), round, block(1000));
        if round % 100 == 0 {
            hot.iter().for_each(|(_, slot)| drop(cache.get_from(BlockKind::Column, slot)));
        }
    }
    let kept = hot.iter().filter(|(_, slot)| cache.get_from(BlockKind::Column, slot).is_some()).count();
    assert!(kept > 190, "{kept} of 200 hot blocks survived the scan");
    cache.remove_file(file(1));
    assert!(hot.iter().all(|(_, slot)| cache.get_from(BlockKind::Column, slot).is_none()));
    let huge = cache.insert(BlockKind::Column, file(3), 0, block(1 << 20));
    let slot = Slot::default();
    slot.put(&huge);
    assert!(slot.get().is_some(), "a reader has it");
    drop(huge);
    assert!(slot.get().is_none(), "too large to be kept");
}
