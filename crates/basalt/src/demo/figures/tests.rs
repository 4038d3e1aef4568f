use super::*;

#[test]
fn numbers_are_for_people() {
    assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([999, 1500, 2_000_000_000].map(bytes), ["999 B", "1.5 kB", "2.0 GB"]);
    assert_eq!([420, 12_300, 1_230_000].map(|us| latency(Duration::from_micros(us))), ["0.42 ms", "12.3 ms", "1.23 s"]);
}

#[test]
fn rates_are_of_seconds_and_freshness_of_the_last_measurements() {
    let mut figures = Figures { rows_in: 10, ..Figures::default() };
    figures.end_of_second();
    figures.rows_in = 35;
    figures.end_of_second();
    assert_eq!((figures.rates.len(), figures.rate()), (2, 25));
    assert_eq!(figures.freshness(), None);
    for ms in (1..=3).chain([1000]).chain(1..=FRESHNESS_MAX as u64) {
        figures.add_freshness(Duration::from_millis(ms));
    }
    let (median, worst) = figures.freshness().unwrap();
    assert_eq!((median.as_millis(), worst.as_millis()), (33, FRESHNESS_MAX as u128));
}

#[test]
fn the_first_failure_counts_and_none_after_the_end() {
    let shared = Shared::new(0);
    shared.fail(&anyhow::anyhow!("first"));
    shared.fail(&anyhow::anyhow!("second"));
    assert_eq!(shared.figures().failed.as_deref(), Some("first"));
    let shared = Shared::new(0);
    shared.stop();
    shared.fail(&anyhow::anyhow!("the connection was closed"));
    assert_eq!(shared.figures().failed, None);
}
