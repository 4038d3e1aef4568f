use super::*;

fn holds(op: CompareOp, a: i128, b: i128) -> bool {
    match op {
        CompareOp::Eq => a == b,
        CompareOp::NotEq => a != b,
        CompareOp::Lt => a < b,
        CompareOp::LtEq => a <= b,
        CompareOp::Gt => a > b,
        CompareOp::GtEq => a >= b,
    }
}

const OPS: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];

fn ints(nulls: bool) -> Ints {
    let values = IntValues::I32((0..200).map(|i| i % 21 - 10).collect());
    Ints::measured(values, nulls.then(|| (0..200).map(|i| i % 3 != 0).collect()))
}

#[test]
fn constants_inside_and_outside_of_the_bounds() {
    for nulls in [false, true] {
        let column = ints(nulls);
        for value in [i128::from(i64::MIN), -11, -10, 0, 3, 10, 11, 1 << 80] {
            for op in OPS {
                let mut mask: Vec<u8> = (0..200).map(|row| u8::from(row % 5 != 0)).collect();
                within(&column, Span::compared(op, value), &mut mask);
                for (row, passes) in mask.iter().enumerate() {
                    let valid = !nulls || row % 3 != 0;
                    let expected = row % 5 != 0 && valid && holds(op, column.values.get(row), value);
                    assert_eq!(*passes == 1, expected, "{op:?} {value} row {row}");
                }
            }
        }
    }
}

#[test]
fn columns_of_different_width() {
    let a = ints(true);
    let b = Ints::measured(IntValues::I64((0..200).map(|i| i64::from(i % 7) - 3).collect()), None);
    for op in OPS {
        let mut mask = vec![1; 200];
        columns(op, &a, &b, &mut mask);
        for (row, passes) in mask.iter().enumerate() {
            let expected = row % 3 != 0 && holds(op, a.values.get(row), b.values.get(row));
            assert_eq!(*passes == 1, expected, "{op:?} row {row}");
        }
    }
}
