use super::*;

fn bound(value: Option<Datum>, inclusive: bool, is_lower: bool) -> Bound {
    Bound { value, inclusive, is_lower }
}

/// `[` or `(` before, `]` or `)` behind.
fn ints(lower: Option<i32>, upper: Option<i32>, flags: &str) -> RangeValue {
    let lower = bound(lower.map(Datum::I32), flags.starts_with('['), true);
    Some(Span { lower, upper: bound(upper.map(Datum::I32), flags.ends_with(']'), false) })
}

fn number(digit: u16, display_scale: u16) -> Datum {
    let digits = vec![digit];
    let parts = numeric::Parts { class: numeric::CLASS_POSITIVE, weight: 0, digits, display_scale };
    let mut out = Vec::new();
    numeric::encode(&parts, &mut out);
    Datum::Bytes(out.into())
}

fn bytes(value: Datum) -> Vec<u8> {
    match value {
        Datum::Bytes(bytes) => bytes.to_vec(),
        other => panic!("ranges rest as bytes: {other:?}"),
    }
}

#[test]
fn bytes_compare_as_ranges_do() {
    let ascending = [
        None,
        ints(None, Some(0), "()"),
        ints(None, None, "()"),
        ints(Some(-5), Some(0), "[)"),
        ints(Some(-5), Some(0), "[]"),
        ints(Some(-5), Some(1), "[)"),
        ints(Some(-5), None, "[)"),
        ints(Some(-5), Some(0), "()"),
        ints(Some(3), Some(4), "[)"),
    ];
    let stored = ascending.each_ref().map(|range| bytes(encode_range(RangeKind::Int4, range)));
    stored.windows(2).for_each(|pair| assert!(pair[0] < pair[1], "{pair:?}"));
    for (range, stored) in ascending.iter().zip(&stored) {
        assert_eq!(decode_range(RangeKind::Int4, stored).as_ref(), Some(range));
        for cut in 0..stored.len() {
            assert_eq!(decode_range(RangeKind::Int4, &stored[..cut]), None);
        }
    }
    let (one, two) = (ints(Some(1), Some(2), "[)"), ints(Some(5), None, "[)"));
    let multi = |ranges: &[&RangeValue]| {
        let spans: Vec<Span> = ranges.iter().filter_map(|range| (*range).clone()).collect();
        bytes(encode_multirange(RangeKind::Int4, &spans))
    };
    let multis = [multi(&[]), multi(&[&one]), multi(&[&one, &two]), multi(&[&two])];
    multis.windows(2).for_each(|pair| assert!(pair[0] < pair[1], "{pair:?}"));
    assert_eq!(decode_multirange(RangeKind::Int4, &multis[2]), Some(vec![one.unwrap(), two.unwrap()]));
}

#[test]
fn display_scales_are_kept_and_are_no_part_of_the_key() {
    let span = |scale: u16| Span {
        lower: bound(Some(number(1, scale)), true, true),
        upper: bound(Some(number(2, 0)), false, false),
    };
    let stored = |scale: u16| bytes(encode_range(RangeKind::Numeric, &Some(span(scale))));
    assert_ne!(stored(0), stored(2));
    assert_eq!(range_key(RangeKind::Numeric, &stored(0)), range_key(RangeKind::Numeric, &stored(2)));
    assert_eq!(decode_range(RangeKind::Numeric, &stored(2)), Some(Some(span(2))));
    let multi = bytes(encode_multirange(RangeKind::Numeric, &[span(3)]));
    assert_eq!(decode_multirange(RangeKind::Numeric, &multi), Some(vec![span(3)]));
    let key = multirange_key(RangeKind::Numeric, &multi);
    let restored = take_multirange_key(RangeKind::Numeric, &mut { key });
    assert_eq!(
        restored.map(bytes).as_deref(),
        Some(bytes(encode_multirange(RangeKind::Numeric, &[span(0)])).as_slice())
    );
}
