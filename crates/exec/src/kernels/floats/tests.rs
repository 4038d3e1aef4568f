use super::*;
use arrow_array::{Float32Array, Float64Array};
use basalt_types::CompareOp;
use std::cmp::Ordering;
use std::sync::Arc;

const VALUES: [f64; 11] =
    [f64::NEG_INFINITY, f64::MIN, -1.5, -f64::MIN_POSITIVE, -0.0, 0.0, 5e-324, 1.5, f64::MAX, f64::INFINITY, f64::NAN];

/// As SQL orders them.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

#[test]
fn comparisons_are_those_of_sql() {
    let ops = [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
    let wide: ArrayRef = Arc::new(Float64Array::from(VALUES.to_vec()));
    let narrow: ArrayRef = Arc::new(VALUES.iter().map(|value| Some(*value as f32)).collect::<Float32Array>());
    for op in ops {
        for constant in VALUES {
            let span = Span::compared(op, ordered(constant).into());
            for array in [&wide, &narrow] {
                let all = values(array).unwrap();
                let mut mask = vec![1; VALUES.len()];
                assert!(within(array, span, &mut mask));
                for (value, passes) in all.iter().zip(mask) {
                    assert_eq!(passes == 1, op.holds(order(*value, constant)), "{value} {op:?} {constant}");
                }
            }
        }
    }
}

#[test]
fn nulls_and_rows_that_are_out_pass_no_comparison() {
    let some: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(2.0), Some(3.0)]));
    let mut mask = vec![1, 1, 1, 0];
    assert!(within(&some, Span::compared(CompareOp::Gt, ordered(1.5).into()), &mut mask));
    assert_eq!(mask, [0, 0, 1, 0]);
    let texts: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["1"]));
    assert!(!within(&texts, Span::compared(CompareOp::Gt, 0), &mut [1]));
}

#[test]
fn the_reach_is_that_of_numbers() {
    assert_eq!(reach(&[1.0, -3.0, f64::NAN, 2.0]), 3.0);
    assert_eq!(reach(&[1.0, f64::NEG_INFINITY]), f64::INFINITY);
    assert_eq!(reach(&[]), 0.0);
}
