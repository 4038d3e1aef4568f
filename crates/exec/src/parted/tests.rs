use super::*;
use crate::stop::Stop;

/// Numbers that differ, in orders of all kinds.
fn orders(rows: usize) -> Vec<Vec<u64>> {
    let of = |number: &dyn Fn(u64) -> u64| (0..rows as u64).map(|row| number(row) << 32 | row).collect::<Vec<u64>>();
    let mixed = |row: u64| crate::aggregate::keys::mixed(row) >> 40;
    vec![
        of(&mixed),
        of(&|row| row),
        of(&|row| rows as u64 - row),
        of(&|_| 7),
        of(&|row| row % 10),
        of(&|row| row.min(rows as u64 - row)),
        of(&|row| if row + 1 == rows as u64 { 0 } else { row }),
    ]
}

#[test]
fn rows_are_sorted_whatever_their_order() {
    for rows in [0, 1, 2, ROWS_MAX, ROWS_MAX + 1, 100_000] {
        for order in orders(rows) {
            let (mut own, mut expected) = (order.clone(), order);
            sort(&mut own, &u64::cmp).unwrap();
            expected.sort_unstable();
            assert!(own == expected, "{rows} rows");
        }
    }
}

#[test]
fn the_first_rows_are_selected() {
    for order in orders(50_000) {
        for count in [1, 10, 4096, 25_000, 49_999] {
            let (mut own, mut expected) = (order.clone(), order.clone());
            select(&mut own, count, &u64::cmp).unwrap();
            own[..count].sort_unstable();
            expected.sort_unstable();
            assert!(own[..count] == expected[..count], "{count}");
        }
    }
}

#[test]
fn it_ends_when_it_is_stopped() {
    let stop = Stop::default();
    let mut rows = orders(200_000).swap_remove(0);
    let compared = std::cell::Cell::new(0usize);
    let compare = |a: &u64, b: &u64| {
        compared.set(compared.get() + 1);
        if compared.get() == 500_000 {
            stop.set();
        }
        a.cmp(b)
    };
    assert!(stop.watched(|| sort(&mut rows, &compare)).is_err());
    assert!(compared.get() < 500_000 + 100_000, "{} comparisons", compared.get());
}
