use super::*;
use basalt_types::vector::{IntValues, Ints};

fn column(values: &[i128]) -> Operand {
    let values = match values.iter().all(|value| i32::try_from(*value).is_ok()) {
        true => IntValues::I32(values.iter().map(|value| *value as i32).collect()),
        false => IntValues::I64(values.iter().map(|value| *value as i64).collect()),
    };
    Operand::Column(Ints::measured(values, None))
}

#[test]
fn results_are_those_of_wide_arithmetic() {
    let small: Vec<i128> = (-50..50).map(|i| i * 7).collect();
    let large: Vec<i128> = (0..100).map(|i| (i - 50) * 0x1234_5678_9abc).collect();
    let exact = |op, a: i128, b: i128| match op {
        Op::Add => a + b,
        Op::Sub | Op::Elapsed => a - b,
        Op::Mul => a * b,
        Op::Div | Op::Rem => panic!("by constants alone"),
    };
    for op in [Op::Add, Op::Sub, Op::Mul, Op::Elapsed] {
        for (a, b) in [(&small, &small), (&small, &large), (&large, &small), (&large, &large)] {
            let ints = apply(op, &column(a), &column(b), None).unwrap();
            for (row, (a, b)) in a.iter().zip(b).enumerate() {
                assert_eq!(ints.values.get(row), exact(op, *a, *b), "{op:?} row {row}");
                assert!((ints.min..=ints.max).contains(&ints.values.get(row)));
            }
            for constant in [-3, 0, 1 << 40, i128::from(i32::MIN)] {
                let right = apply(op, &column(a), &Operand::Const(constant), None).unwrap();
                let left = apply(op, &Operand::Const(constant), &column(a), None).unwrap();
                for (row, a) in a.iter().enumerate() {
                    assert_eq!(right.values.get(row), exact(op, *a, constant), "{op:?} {constant}");
                    assert_eq!(left.values.get(row), exact(op, constant, *a), "{op:?} {constant}");
                }
            }
        }
    }
}

#[test]
fn nothing_is_elapsed_since_what_is_infinite() {
    let finite = column(&[1, TIMESTAMP_MIN.into(), TIMESTAMP_MAX.into()]);
    assert!(apply(Op::Elapsed, &finite, &Operand::Const(0), None).is_some());
    for infinite in [i64::MIN, i64::MAX].map(i128::from) {
        assert!(apply(Op::Elapsed, &finite, &Operand::Const(infinite), None).is_none());
        assert!(apply(Op::Elapsed, &Operand::Const(0), &column(&[5, infinite]), None).is_none());
        assert!(apply(Op::Elapsed, &column(&[infinite]), &column(&[infinite]), None).is_none());
    }
}

#[test]
fn what_bounds_do_not_prove_is_refused() {
    let a = column(&[1, i128::from(i32::MAX)]);
    let limits = Some((i128::from(i32::MIN), i128::from(i32::MAX)));
    assert!(apply(Op::Add, &a, &Operand::Const(0), limits).is_some());
    assert!(apply(Op::Add, &a, &Operand::Const(1), limits).is_none());
    assert!(apply(Op::Add, &a, &Operand::Const(1), None).is_some());
    assert!(apply(Op::Mul, &a, &Operand::Const(i128::MAX), None).is_none());
}

#[test]
fn integers_are_divided_as_wide_ones() {
    let edges = [0, 1, 2, 3, 7, 100, 65_535, 1_000_000_007, i128::from(i32::MAX), i128::from(i32::MAX) + 1];
    let wide = [1 << 40, (1 << 53) - 1, (1 << 62) + 3, i128::from(i64::MAX) - 1, i128::from(i64::MAX)];
    let all: Vec<i128> = edges.into_iter().chain(wide).collect();
    let signed =
        |values: &[i128]| values.iter().flat_map(|value| [*value, -*value, -*value - 1]).collect::<Vec<i128>>();
    let (narrow, wide) = (signed(&edges[..9]), signed(&all));
    assert!(narrow.contains(&i32::MIN.into()) && wide.contains(&i64::MIN.into()));
    for by in all.iter().copied().filter(|by| *by > 0).chain([1 << 70]) {
        for values in [&narrow, &wide, &narrow[..1].to_vec()] {
            for (op, exact) in [(Op::Div, (|a, b| a / b) as fn(i128, i128) -> i128), (Op::Rem, |a, b| a % b)] {
                let Some(ints) = apply(op, &column(values), &Operand::Const(by), None) else {
                    assert!(by > i64::MAX.into(), "{op:?} by {by}");
                    continue;
                };
                for (row, value) in values.iter().enumerate() {
                    assert_eq!(ints.values.get(row), exact(*value, by), "{value} {op:?} {by}");
                    assert!((ints.min..=ints.max).contains(&ints.values.get(row)), "{value} {op:?} {by}");
                }
            }
        }
    }
    for by in [0, -1] {
        assert!(apply(Op::Rem, &column(&narrow), &Operand::Const(by), None).is_none());
    }
}
