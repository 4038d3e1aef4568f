use super::*;

const DRAWS: u64 = 200_000;

/// How often each of the first numbers is drawn, in proportion to how often it should be.
fn shares(zipfian: &Zipfian, zeta: f64) -> Vec<f64> {
    let mut random = Random::new(7);
    let mut counts = [0u64; 3];
    for _ in 0..DRAWS {
        if let Some(count) = counts.get_mut(zipfian.draw(&mut random) as usize) {
            *count += 1;
        }
    }
    (1..).zip(counts).map(|(rank, count)| count as f64 / DRAWS as f64 * zeta * f64::powf(rank as f64, THETA)).collect()
}

#[test]
fn first_numbers_come_as_often_as_zipf_has_it() {
    let grown = {
        let mut zipfian = Zipfian::new(10);
        zipfian.grow(100_000);
        zipfian
    };
    for zipfian in [Zipfian::of_ten_billion(), Zipfian::new(100_000), grown] {
        let shares = shares(&zipfian, zipfian.zeta);
        // Gray's formula is exact for the first two, and near for the others.
        assert!((shares[0] - 1.0).abs() < 0.05 && (shares[1] - 1.0).abs() < 0.05, "{shares:?}");
        assert!((shares[2] - 1.0).abs() < 0.5, "{shares:?}");
    }
}

#[test]
fn numbers_stay_within_their_bounds() {
    let mut random = Random::new(3);
    for _ in 0..100_000 {
        assert!((5..=15).contains(&random.between(5, 15)));
        assert!((1..=3000).contains(&random.skewed(1023, 259, 1, 3000)));
        assert!(Zipfian::new(2).draw(&mut random) < 2);
    }
}
