use super::*;

fn of(values: impl Iterator<Item = i64>) -> Sketch {
    let mut sketch = Sketch::default();
    values.for_each(|value| sketch.add(int_hash(value)));
    sketch
}

fn again(sketch: &Sketch) -> Sketch {
    let mut bytes = Vec::new();
    sketch.put(&mut bytes);
    assert!(bytes.len() <= 2 * FEW_MAX * 4, "{} bytes", bytes.len());
    Sketch::take(&bytes).unwrap()
}

#[test]
fn few_values_are_counted_and_many_are_estimated_within_four_errors() {
    for count in [0, 1, 2, 25, 256] {
        let sketch = of((0..3 * count).map(|i| i % count));
        assert_eq!(sketch.estimate(), count as f64);
        assert_eq!(again(&sketch), sketch);
    }
    for count in [257, 1_000, 5_000, 20_000, 1_000_000] {
        for (first, step) in [(0, 1), (-77, 1_000_003), (1 << 40, 1 << 20)] {
            let sketch = of((0..count).map(|i| first + i * step));
            let off = sketch.estimate() / count as f64 - 1.0;
            assert!(off.abs() < 4.0 * 0.023, "{count} from {first} by {step}: {off:+.3}");
            assert_eq!(again(&sketch), sketch);
        }
    }
}

#[test]
fn a_union_is_what_all_values_together_give() {
    for (a, b) in [(0..100, 50..120), (0..100, 90..5_000), (0..9_000, 8_000..8_010), (0..9_000, 4_000..70_000)] {
        let mut merged = of(a.clone());
        merged.merge(&of(b.clone()));
        // Ranks of hashes that were cut to a half are those of whole ones unless 21 bits are 0.
        let together = of(a.start.min(b.start)..a.end.max(b.end));
        assert_eq!(merged.estimate(), together.estimate(), "{a:?} and {b:?}");
    }
}

#[test]
fn integers_of_a_short_span_give_what_one_by_one_gives() {
    for (least, count, step) in [(0i64, 50_000i64, 7i64), (i64::MIN, 3_000, 1), (i64::MAX - 700, 700, 1), (-5, 9, 100)]
    {
        let values: Vec<i64> = (0..count).map(|i| least.wrapping_add(i * i % 9973 % (count * step))).collect();
        let bounds = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        let mut sketch = Sketch::default();
        sketch.add_ints(&values, bounds);
        assert_eq!(sketch, of(values.iter().copied()));
    }
}

#[test]
fn damaged_sketches_are_refused() {
    let mut bytes = Vec::new();
    of(0..1_000).put(&mut bytes);
    for cut in 0..bytes.len() {
        assert!(Sketch::take(&bytes[..cut]).is_err(), "{cut} bytes");
    }
    assert!(Sketch::take(&[FEW, 2, 0, 0, 0, 1, 0, 0, 0]).is_err(), "out of order");
    assert!(Sketch::take(&[FEW, 2, 0, 0, 0, 1]).is_err(), "cut inside of a hash");
    assert!(Sketch::take(&[7]).is_err(), "unknown");
}
