use super::*;

const TABLET: TabletId = TabletId(7);

fn asked<'a>(key: &'a [u8], columns: &'a [ColumnId]) -> Asked<'a> {
    Asked { tablet: TABLET, view: 1, key, columns }
}

fn origin(ordinal: u32) -> Origin {
    Origin { position: 0, ordinal, stamp: None }
}

/// What is kept of a row, as a reader who sees all of them gets it.
fn kept(cache: &RowCache, asked: &Asked<'_>) -> Result<(Origin, Vec<u8>), Option<Admission>> {
    cache.look(asked, |origin, row| Some((origin, row.to_vec())))
}

/// Misses until the row is let in, and brings it.
fn bring(cache: &RowCache, asked: &Asked<'_>, origin: Origin, row: &[u8]) {
    for _ in 0..3 {
        if let Err(Some(admission)) = kept(cache, asked) {
            return cache.keep(asked, admission, Some((origin, row)));
        }
    }
    panic!("a key that is missed again and again is let in");
}

#[test]
fn a_row_is_let_in_when_it_is_missed_again() {
    let cache = RowCache::new(1 << 20);
    let columns = [ColumnId(1), ColumnId(3)];
    let row = asked(b"key", &columns);
    assert!(matches!(kept(&cache, &row), Err(None)));
    let Err(Some(admission)) = kept(&cache, &row) else { panic!("it was missed before") };
    assert_eq!(admission.columns.as_slice(), columns);
    cache.keep(&row, admission, Some((origin(5), b"row")));
    assert_eq!(kept(&cache, &row).ok(), Some((origin(5), b"row".to_vec())));
    let RowCacheStats { rows, hits, misses, .. } = cache.stats();
    assert_eq!((rows, hits, misses), (1, 1, 2));
}

#[test]
fn another_tablet_key_view_or_column_is_another_row() {
    let cache = RowCache::new(1 << 20);
    let columns = [ColumnId(2), ColumnId(4), ColumnId(6)];
    let row = asked(b"key", &columns);
    bring(&cache, &row, origin(5), b"row");
    let is_kept = |asked: &Asked<'_>| kept(&cache, asked).is_ok();
    for some in [&columns[..], &columns[1..], &columns[..1], &[]] {
        assert!(is_kept(&asked(b"key", some)), "{some:?}");
    }
    assert!(!is_kept(&asked(b"kex", &columns)));
    assert!(!is_kept(&Asked { tablet: TabletId(8), ..row }));
    let Err(Some(admission)) = kept(&cache, &Asked { view: 2, columns: &columns[1..2], ..row }) else {
        panic!("a view")
    };
    assert_eq!(admission.columns.as_slice(), &columns[1..2], "of another view nobody takes over what was asked for");
    for others in [&[ColumnId(1)][..], &[ColumnId(2), ColumnId(3)], &[ColumnId(6), ColumnId(7)]] {
        let Err(Some(admission)) = kept(&cache, &asked(b"key", others)) else { panic!("{others:?} are not all there") };
        let all: std::collections::BTreeSet<ColumnId> = columns.iter().chain(others).copied().collect();
        assert_eq!(admission.columns.to_vec(), all.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn who_does_not_see_a_row_searches() {
    let cache = RowCache::new(1 << 20);
    let row = asked(b"key", &[]);
    bring(&cache, &row, origin(5), b"row");
    assert!(matches!(cache.look(&row, |_, _| None::<()>), Err(None)));
    assert!(kept(&cache, &row).is_ok(), "others see it still");
}

#[test]
fn a_row_takes_the_place_of_an_older_one() {
    let cache = RowCache::new(1 << 20);
    let columns = [ColumnId(1)];
    let old = asked(b"key", &columns);
    bring(&cache, &old, origin(5), b"old");
    let new = Asked { view: 2, ..old };
    bring(&cache, &new, origin(9), b"newer");
    assert_eq!(kept(&cache, &new).ok(), Some((origin(9), b"newer".to_vec())));
    assert!(kept(&cache, &old).is_err());
    assert_eq!(cache.stats().rows, 1);
}

#[test]
fn memory_has_a_bound_and_rows_that_are_asked_for_stay() {
    let bytes_max = 4 * SHARD_BYTES as u64;
    let cache = RowCache::new(bytes_max);
    let keys: Vec<[u8; 4]> = (0..40_000u32).map(u32::to_be_bytes).collect();
    let (wanted, others) = keys.split_at(500);
    let row = [1; 100];
    for key in wanted {
        bring(&cache, &asked(key, &[]), origin(1), &row);
    }
    for others in others.chunks(100) {
        for key in others {
            bring(&cache, &asked(key, &[]), origin(2), &row);
        }
        for key in wanted {
            let _ = kept(&cache, &asked(key, &[]));
        }
        let stats = cache.stats();
        assert!(stats.bytes <= bytes_max, "{stats:?}");
    }
    let stats = cache.stats();
    assert!(stats.rows > 1000, "{stats:?}");
    let stayed = wanted.iter().filter(|key| kept(&cache, &asked(*key, &[])).is_ok()).count();
    assert!(stayed > 450, "{stayed} of 500 are there");
    // Each is where it says.
    for (key, of) in wanted.iter().map(|key| (key, 1)).chain(others.iter().map(|key| (key, 2))) {
        if let Ok((found, bytes)) = kept(&cache, &asked(key, &[])) {
            assert_eq!((found, bytes.as_slice()), (origin(of), row.as_slice()));
        }
    }
}

#[test]
fn a_walk_through_many_rows_lets_few_in() {
    let cache = RowCache::new(SHARD_BYTES as u64);
    for key in 0..20_000u32 {
        let key = key.to_be_bytes();
        if let Err(Some(admission)) = kept(&cache, &asked(&key, &[])) {
            cache.keep(&asked(&key, &[]), admission, Some((origin(0), b"row")));
        }
    }
    let stats = cache.stats();
    assert!(stats.rows < 100, "{stats:?}");
}

/// Room for some 600 rows that nobody asks for any more, and then another set of rows.
#[test]
fn what_nobody_asks_for_any_more_makes_room() {
    let cache = RowCache::new(SHARD_BYTES as u64);
    let row = [1; 100];
    for key in 0..2000u32 {
        bring(&cache, &asked(&key.to_be_bytes(), &[]), origin(1), &row);
    }
    let room = cache.stats().rows as u32;
    let mut hits = 0;
    for round in 0..20 {
        for key in 10_000..10_000 + room / 2 {
            let key = key.to_be_bytes();
            match kept(&cache, &asked(&key, &[])) {
                Ok(_) if round == 19 => hits += 1,
                Ok(_) | Err(None) => {}
                Err(Some(admission)) => cache.keep(&asked(&key, &[]), admission, Some((origin(2), &row))),
            }
        }
    }
    assert!(hits * 100 > room / 2 * 95, "{hits} of {} are there", room / 2);
}

/// Nothing is tried again and again.
#[test]
fn what_cannot_be_kept_is_remembered() {
    let cache = RowCache::new(1 << 20);
    let long = asked(b"long", &[]);
    bring(&cache, &long, origin(5), &[0; ROW_BYTES_MAX]);
    let absent = asked(b"absent", &[]);
    let _ = kept(&cache, &absent);
    let Err(Some(admission)) = kept(&cache, &absent) else { panic!("it was missed before") };
    cache.keep(&absent, admission, None);
    for _ in 0..5 {
        assert!(matches!(kept(&cache, &long), Err(None)));
        assert!(matches!(kept(&cache, &absent), Err(None)));
    }
    assert!(matches!(kept(&cache, &Asked { view: 2, ..absent }), Err(Some(_))), "it may be there now");
}

#[test]
fn a_cache_without_room_keeps_nothing() {
    let none = RowCache::new(0);
    for _ in 0..3 {
        assert!(matches!(kept(&none, &asked(b"key", &[])), Err(None)));
    }
    assert_eq!(none.stats(), RowCacheStats::default());
    // Less than an entry.
    let little = RowCache::new(2100);
    bring(&little, &asked(b"key", &[]), origin(5), b"row");
    assert_eq!(little.stats().rows, 0);
}

#[test]
fn more_columns_than_can_be_kept_leave_those_that_are() {
    let cache = RowCache::new(1 << 20);
    let (narrow, wide) = ([ColumnId(1)], [ColumnId(1), ColumnId(2)]);
    bring(&cache, &asked(b"key", &narrow), origin(5), b"row");
    let Err(Some(admission)) = kept(&cache, &asked(b"key", &wide)) else { panic!("a column is not there") };
    cache.keep(&asked(b"key", &wide), admission, Some((origin(5), &[0; ROW_BYTES_MAX])));
    assert!(kept(&cache, &asked(b"key", &narrow)).is_ok());
    assert!(matches!(kept(&cache, &asked(b"key", &wide)), Err(None)), "it was tried");
}
