use super::*;

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
