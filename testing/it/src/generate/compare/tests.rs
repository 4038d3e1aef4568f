//! What counts as a difference.

use super::{BPCHAR, Verdict, compare, in_days, without_zeros};
use crate::wire::{Answer, Column, Fields, Reply};

fn rows(values: &[&str]) -> Answer {
    let columns = Some(vec![Column { name: "c0".into(), type_oid: 23, format: 0 }]);
    let rows = values.iter().map(|value| vec![Some(value.as_bytes().to_vec())]).collect();
    Answer { replies: vec![Reply { columns, rows, ..Reply::default() }], status: b'I' }
}

fn error(state: &str) -> Answer {
    let error = Some(Fields(vec![(b'C', state.into())]));
    Answer { replies: vec![Reply { error, ..Reply::default() }], status: b'I' }
}

#[test]
fn rows_compare_in_order_where_it_was_told() {
    assert_eq!(compare(&rows(&["1", "2"]), &rows(&["2", "1"]), false), Verdict::Same);
    assert!(matches!(compare(&rows(&["1", "2"]), &rows(&["2", "1"]), true), Verdict::Different(_)));
    assert!(matches!(compare(&rows(&["1"]), &rows(&["1", "1"]), false), Verdict::Different(_)));
}

#[test]
fn errors_compare_by_sqlstate() {
    assert_eq!(compare(&error("42601"), &error("42601"), false), Verdict::Same);
    assert_eq!(compare(&error("22012"), &error("22003"), false), Verdict::OrderOfEvaluation);
    assert!(matches!(compare(&error("42883"), &error("42601"), false), Verdict::Different(_)));
    let escape = Fields(vec![(b'C', "42601".into()), (b'M', "invalid Unicode escape".into())]);
    let escape = Answer { replies: vec![Reply { error: Some(escape), ..Reply::default() }], status: b'I' };
    assert_eq!(compare(&escape, &error("2201G"), false), Verdict::OrderOfEvaluation);
    assert!(matches!(compare(&rows(&["1"]), &error("22012"), false), Verdict::Different(_)));
    assert!(matches!(compare(&error("22012"), &rows(&["1"]), false), Verdict::Different(_)));
}

#[test]
fn which_row_fails_first_does_not_matter() {
    assert_eq!(compare(&error("22012"), &error("23514"), false), Verdict::OrderOfEvaluation);
    assert!(matches!(compare(&rows(&["1"]), &error("23514"), false), Verdict::Different(_)));
}

#[test]
fn sums_of_floats_may_differ_in_their_last_digit() {
    assert_eq!(compare(&rows(&["17"]), &rows(&["17.000000000000004"]), true), Verdict::Same);
    assert!(matches!(compare(&rows(&["17"]), &rows(&["17.0000000000000000004"]), true), Verdict::Different(_)));
    assert!(matches!(compare(&rows(&["17"]), &rows(&["17.4"]), true), Verdict::Different(_)));
}

#[test]
fn equal_intervals_are_equal() {
    assert_eq!(compare(&rows(&["30 days"]), &rows(&["1 mon"]), true), Verdict::Same);
    assert_eq!(in_days("x|1 year 2 mons -3 days 04:05:06|a day"), "x|417 days 04:05:06|a day");
    assert_eq!(
        in_days("-1 days +24:00:00|1 mon -30 days 00:00:01.5|-24:00:00"),
        "00:00:00|00:00:01.500000|-1 days 00:00:00"
    );
    assert_eq!(compare(&rows(&["8 days -20:41:30.5"]), &rows(&["7 days 03:18:29.5"]), true), Verdict::Same);
    assert!(matches!(compare(&rows(&["31 days"]), &rows(&["1 mon"]), true), Verdict::Different(_)));
}

#[test]
fn padded_texts_are_equal_whatever_their_length() {
    let texts = |values: &[&str], type_oid| {
        let mut answer = rows(values);
        answer.replies[0].columns = Some(vec![Column { name: "c0".into(), type_oid, format: 0 }]);
        answer
    };
    assert_eq!(compare(&texts(&["a  "], BPCHAR), &texts(&["a"], BPCHAR), true), Verdict::Same);
    assert!(matches!(compare(&texts(&["a  "], 25), &texts(&["a"], 25), true), Verdict::Different(_)));
    assert!(matches!(compare(&texts(&[" a"], BPCHAR), &texts(&["a"], BPCHAR), true), Verdict::Different(_)));
}

#[test]
fn sums_of_floats_are_equal_but_for_their_last_digits() {
    let (a, b) = (rows(&["x|57.295779513180285"]), rows(&["x|57.29577951318772"]));
    assert_eq!(compare(&a, &b, true), Verdict::Same);
    assert!(matches!(compare(&a, &rows(&["x|57.29577951"]), true), Verdict::Different(_)));
    assert!(matches!(compare(&rows(&["1.5"]), &rows(&["1.6"]), true), Verdict::Different(_)));
    assert!(matches!(compare(&a, &rows(&["y|57.29577951318772"]), true), Verdict::Different(_)));
}

#[test]
fn a_last_digit_may_move_a_row_past_others() {
    let exact = ["14.25|a", "14.25|b", "1|c"];
    let (low, high) = ("14.249999999999995|d", "14.250000000000002|d");
    let (a, b) = (rows(&[low, exact[0], exact[1], exact[2]]), rows(&[exact[0], exact[1], high, exact[2]]));
    for ordered in [false, true] {
        assert_eq!(compare(&a, &b, ordered), Verdict::Same);
        let another = rows(&[exact[0], exact[1], "14.250000000000002|e", exact[2]]);
        assert!(matches!(compare(&a, &another, ordered), Verdict::Different(_)));
    }
    let swapped = rows(&[exact[1], exact[0], high, exact[2]]);
    assert_eq!(compare(&a, &swapped, false), Verdict::Same);
    assert!(matches!(compare(&a, &swapped, true), Verdict::Different(_)));
}

#[test]
fn trailing_zeros_go() {
    assert_eq!(without_zeros("1.500|2.0|10|-0.00|a1.0b"), "1.5|2|10|0|a1b");
}

#[test]
fn a_difference_of_the_order_alone_is_told_as_such() {
    let Verdict::Different(what) = compare(&rows(&["1", "2"]), &rows(&["2", "1"]), true) else { panic!("equal") };
    assert!(what.starts_with(super::OTHER_ORDER), "{what}");
    let Verdict::Different(what) = compare(&rows(&["1", "3"]), &rows(&["2", "1"]), true) else { panic!("equal") };
    assert!(!what.starts_with(super::OTHER_ORDER), "{what}");
}
