use super::*;
use std::alloc::System;
use std::collections::HashSet;

const BEHIND: Recycling<System> = Recycling(System);

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

/// Runs in a thread of its own: what is kept is a thread's.
fn apart(run: impl FnOnce() + Send + 'static) {
    std::thread::spawn(run).join().unwrap();
}

fn kept_bytes() -> usize {
    with_kept(|kept| kept.bytes)
}

#[test]
fn classes_are_quarters_of_powers_and_hold_what_is_asked() {
    let mut before = 0;
    for class in 0..CLASSES {
        let bytes = bytes_of(class);
        assert!(bytes > before && bytes % ALIGNS[1] == 0, "{bytes} after {before}");
        assert_eq!(class_of(layout(bytes, 8)), Some((0, class)), "the most that it holds");
        let least = if class == 0 { BYTES_MIN } else { before + 1 };
        assert_eq!(class_of(layout(least, 8)), Some((0, class)), "the least that it holds");
        assert!(class == 0 || bytes * 4 <= before * 5, "no more than a quarter is wasted");
        before = bytes;
    }
    assert_eq!(before, BYTES_MAX);
    for other in [layout(BYTES_MIN - 1, 8), layout(BYTES_MAX + 1, 8), layout(0, 1), layout(4096, 256)] {
        assert_eq!(class_of(other), None, "{other:?}");
    }
}

#[test]
fn the_block_that_was_freed_last_comes_first() {
    apart(|| unsafe {
        begin();
        let (a, b) = (BEHIND.alloc(layout(32_768, 8)), BEHIND.alloc(layout(32_768, 8)));
        BEHIND.dealloc(a, layout(32_768, 8));
        BEHIND.dealloc(b, layout(32_768, 8));
        assert_eq!(BEHIND.alloc(layout(30_000, 4)), b, "of the same class");
        assert_eq!(BEHIND.alloc(layout(32_768, 8)), a);
        // Other classes and alignments have blocks of their own.
        BEHIND.dealloc(b, layout(30_000, 4));
        let wide = BEHIND.alloc(layout(32_768, 128));
        assert!(wide != b && wide as usize % 128 == 0);
        let large = BEHIND.alloc(layout(40_000, 8));
        assert_ne!(large, b);
        for (block, layout) in [(a, layout(32_768, 8)), (wide, layout(32_768, 128)), (large, layout(40_000, 8))] {
            BEHIND.dealloc(block, layout);
        }
        assert_eq!(kept_bytes(), 3 * 32_768 + 40_960);
        end();
        assert_eq!(kept_bytes(), 0);
    });
}

#[test]
fn zeroed_blocks_are_zero_and_grown_ones_keep_what_they_hold() {
    apart(|| unsafe {
        begin();
        let block = BEHIND.alloc(layout(5_000, 8));
        block.write_bytes(7, 5_000);
        BEHIND.dealloc(block, layout(5_000, 8));
        let zeroed = BEHIND.alloc_zeroed(layout(5_000, 8));
        assert_eq!(zeroed, block);
        assert!(std::slice::from_raw_parts(zeroed, 5_000).iter().all(|byte| *byte == 0));
        // From below the kept sizes, within a class, through them, above them, and back.
        let mut at = BEHIND.alloc(layout(100, 8));
        at.write_bytes(3, 100);
        let mut had = 100;
        for wanted in [1_024, 1_100, 1_200, 70_000, 300_000, 1_000_000, 2_000, 100] {
            at = BEHIND.realloc(at, layout(had, 8), wanted);
            let same = std::slice::from_raw_parts(at, 100);
            assert!(same.iter().all(|byte| *byte == 3), "from {had} to {wanted}");
            had = wanted;
        }
        BEHIND.dealloc(at, layout(had, 8));
        BEHIND.dealloc(zeroed, layout(5_000, 8));
        end();
    });
}

#[test]
fn no_more_is_kept_than_caches_hold_and_nothing_unless_asked() {
    apart(|| unsafe {
        let all = |bytes: usize, count: usize| {
            let blocks: Vec<_> = (0..count).map(|_| BEHIND.alloc(layout(bytes, 8))).collect();
            assert_eq!(blocks.iter().collect::<HashSet<_>>().len(), count, "each has one owner");
            blocks.into_iter().for_each(|block| BEHIND.dealloc(block, layout(bytes, 8)));
        };
        all(8_192, 4);
        assert_eq!(kept_bytes(), 0, "this thread has not begun");
        begin();
        all(8_192, DEPTH + 5);
        assert_eq!(kept_bytes(), DEPTH * 8_192);
        all(BYTES_MAX, 40);
        assert!(kept_bytes() <= KEPT_BYTES_MAX);
        all(BYTES_MAX, 40);
        end();
        all(8_192, 4);
        assert_eq!(kept_bytes(), 0, "nor after its end");
    });
}
