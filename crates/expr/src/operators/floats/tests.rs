use super::*;
use crate::context::EvalContext;
use crate::functions::Registry;
use crate::resolve;
use crate::tree::Expr;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_buffer::NullBuffer;
use basalt_types::DataType;

const VALUES: [f64; 12] = [
    0.0,
    -0.0,
    1.5,
    -3.0,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    1e-200,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

#[test]
fn what_is_not_doubtful_is_not_in_error() {
    for op in [Op::Add, Op::Sub, Op::Mul, Op::Div] {
        for a in VALUES {
            for b in VALUES {
                let checked = op.checked(a, b);
                assert!(checked.is_ok() || op.is_doubtful(a, b, op.of(a, b)), "{a} {op:?} {b}: {checked:?}");
            }
        }
    }
}

#[test]
fn vectors_of_all_forms_are_computed_alike() {
    let pairs: Vec<(f64, f64)> = VALUES.iter().flat_map(|a| VALUES.iter().map(|b| (*a, *b))).collect();
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    for op in [Op::Add, Op::Sub, Op::Mul, Op::Div] {
        let (results, _) = computed(op, pairs.len(), Side::Each(&left), Side::Each(&right));
        for ((a, b), result) in pairs.iter().zip(&results) {
            assert!(same(*result, op.of(*a, *b)), "{a} {op:?} {b}");
        }
        for constant in VALUES {
            let (behind, doubtful) = computed(op, VALUES.len(), Side::Each(&VALUES), Side::Same(constant));
            let (before, _) = computed(op, VALUES.len(), Side::Same(constant), Side::Each(&VALUES));
            let any = VALUES.iter().any(|value| op.is_doubtful(*value, constant, op.of(*value, constant)));
            assert_eq!(doubtful, any);
            for (row, value) in VALUES.iter().enumerate() {
                assert!(same(behind[row], op.of(*value, constant)), "{value} {op:?} {constant}");
                assert!(same(before[row], op.of(constant, *value)), "{constant} {op:?} {value}");
            }
        }
    }
}

/// An operation over two columns, the second of which has garbage where it is null.
fn called(symbol: &str, left: &[f64], right: &[Option<f64>], garbage: f64) -> Result<Vec<Option<f64>>> {
    let ctx = EvalContext::at(0);
    let column = |index| Expr::Column { index, ty: DataType::Float8 };
    let expr = resolve::operator(Registry::builtin(), symbol, Some(column(0)), column(1), &ctx)?;
    let nulls: NullBuffer = right.iter().map(Option::is_some).collect();
    let values: Vec<f64> = right.iter().map(|value| value.unwrap_or(garbage)).collect();
    let left: ArrayRef = Arc::new(Float64Array::from(left.to_vec()));
    let right: ArrayRef = Arc::new(Float64Array::new(values.into(), Some(nulls)));
    let rows = left.len();
    let values = expr.eval(&[left, right], rows, &ctx)?;
    Ok(values.as_primitive::<Float64Type>().iter().collect())
}

#[test]
fn the_first_row_in_error_decides_and_nulls_are_none() {
    let fine = called("/", &[1.0, 6.0, 3.0], &[None, Some(2.0), None], 0.0).unwrap();
    assert_eq!(fine, [None, Some(3.0), None]);
    let fine = called("+", &[1.0, f64::MAX], &[Some(f64::INFINITY), None], f64::MAX).unwrap();
    assert_eq!(fine, [Some(f64::INFINITY), None]);
    let state = |result: Result<Vec<Option<f64>>>| result.unwrap_err().sqlstate;
    assert_eq!(state(called("/", &[1e300, 1.0], &[Some(1e-300), Some(0.0)], 1.0)), "22003");
    assert_eq!(state(called("/", &[1.0, 1e300], &[Some(0.0), Some(1e-300)], 1.0)), "22012");
    assert_eq!(state(called("*", &[1e-200], &[Some(1e-200)], 1.0)), "22003");
    assert_eq!(state(called("-", &[f64::MAX], &[Some(f64::MIN)], 1.0)), "22003");
}
