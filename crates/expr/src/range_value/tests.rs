use super::*;
use crate::context::EvalContext;
use crate::io::{binary, text};
use basalt_types::range::{encode_multirange, encode_range};
use proptest::prelude::*;

/// The numbers of a small line that are in these ranges.
fn members(kind: RangeKind, spans: &[Span]) -> Vec<i32> {
    let value = |number: i32| match kind {
        RangeKind::Int8 => Datum::I64(i64::from(number)),
        _ => Datum::I32(number),
    };
    (-2..40).filter(|number| contains_value(kind, spans, &value(*number))).collect()
}

fn span(kind: RangeKind, lower: Option<i32>, upper: Option<i32>, flags: (bool, bool)) -> RangeValue {
    let value = |number: i32| match kind {
        RangeKind::Int8 => Datum::I64(i64::from(number)),
        _ => Datum::I32(number),
    };
    let lower = Bound { value: lower.map(value), inclusive: flags.0, is_lower: true };
    let upper = Bound { value: upper.map(value), inclusive: flags.1, is_lower: false };
    make(kind, lower, upper).expect("bounds are in order")
}

/// Up to five ranges over 0 to 30, of which the outer ones may have no bound.
fn multirange() -> impl Strategy<Value = Vec<Span>> {
    let part = (0..30i32, 0..8i32, any::<(bool, bool)>(), 0..12u8).prop_map(|(start, length, flags, open)| {
        let lower = (open != 0).then_some(start);
        span(RangeKind::Int4, lower, (open != 1).then_some(start + length), flags)
    });
    prop::collection::vec(part, 0..5)
        .prop_map(|parts| normalized(RangeKind::Int4, parts.into_iter().flatten().collect()))
}

fn is_normal(spans: &[Span]) -> bool {
    spans.windows(2).all(|pair| {
        compare_bounds(RangeKind::Int4, &pair[0].upper, &pair[1].lower).is_lt()
            && !meet(RangeKind::Int4, &pair[0].upper, &pair[1].lower)
    })
}

proptest! {
    #[test]
    fn operations_are_those_of_sets(a in multirange(), b in multirange()) {
        let kind = RangeKind::Int4;
        let pair = Pair { kind, left: &a, right: &b };
        let (left, right) = (members(kind, &a), members(kind, &b));
        let within = |number: &&i32| right.contains(number);
        let both: Vec<i32> = left.iter().filter(within).copied().collect();
        let rest: Vec<i32> = left.iter().filter(|number| !within(number)).copied().collect();
        let (intersection, difference) = (pair.intersection().unwrap(), pair.difference().unwrap());
        prop_assert_eq!(members(kind, &intersection), both.clone());
        prop_assert_eq!(members(kind, &difference), rest);
        prop_assert!(is_normal(&a) && is_normal(&intersection) && is_normal(&difference));
        let union = normalized(kind, [a.clone(), b.clone()].concat());
        let mut all = [left.clone(), right.clone()].concat();
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(members(kind, &union), all);
        prop_assert_eq!(pair.overlaps(), !both.is_empty());
        prop_assert_eq!(pair.contains(), right.iter().all(|number| left.contains(number)));
        if let (Some(least), Some(greatest)) = (right.first(), left.last()) {
            prop_assert_eq!(pair.is_before(), greatest < least);
        }
    }

    #[test]
    fn text_and_binary_forms_come_back(a in multirange()) {
        let ctx = EvalContext::at(0);
        let ty = DataType::Multirange(RangeKind::Int4);
        let value = encode_multirange(RangeKind::Int4, &a);
        let mut out = Vec::new();
        text::format(&ty, &value, &ctx, &mut out).unwrap();
        prop_assert_eq!(&text::parse(&ty, std::str::from_utf8(&out).unwrap(), &ctx).unwrap(), &value);
        out.clear();
        binary::format(&ty, &value, &ctx, &mut out).unwrap();
        prop_assert_eq!(&binary::parse(&ty, &out, &ctx).unwrap(), &value);
        for cut in 0..out.len() {
            prop_assert!(binary::parse(&ty, &out[..cut], &ctx).is_err());
        }
    }

    #[test]
    fn any_bytes_and_any_text_are_a_range_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        written in r#"[\[({]?[\[(empty1-9,"\\ ]{0,12}[\])}]{0,2}"#,
    ) {
        let ctx = EvalContext::at(0);
        for kind in RangeKind::ALL {
            for ty in [DataType::Range(kind), DataType::Multirange(kind)] {
                let read = [binary::parse(&ty, &bytes, &ctx), text::parse(&ty, &written, &ctx)];
                for value in read.into_iter().flatten() {
                    text::format(&ty, &value, &ctx, &mut Vec::new()).unwrap();
                }
            }
        }
    }
}

#[test]
fn bounds_at_the_end_of_a_type_are_refused() {
    let bound = |value: Datum, is_lower: bool| Bound { value: Some(value), inclusive: !is_lower, is_lower };
    let full = |kind, value: Datum| {
        let open = Bound { value: None, inclusive: false, is_lower: true };
        make(kind, open, bound(value, false)).map_err(|error| error.sqlstate)
    };
    assert_eq!(full(RangeKind::Int4, Datum::I32(i32::MAX)), Err("22003"));
    assert_eq!(full(RangeKind::Int8, Datum::I64(i64::MAX)), Err("22003"));
    assert_eq!(full(RangeKind::Date, Datum::I32(DATE_MAX)), Err("22008"));
    assert_eq!(encode_range(RangeKind::Int4, &None), encode_range(RangeKind::Date, &None));
}
