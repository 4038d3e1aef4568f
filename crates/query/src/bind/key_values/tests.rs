use super::*;
use basalt_types::key::encode_column;

fn numeric_of(text: &str) -> Datum {
    Decimal::parse(text).unwrap().to_datum(&DataType::Numeric(None)).unwrap()
}

/// What stands at, before and behind a value agrees with comparisons.
#[test]
fn numbers_stand_among_those_of_a_column_where_comparisons_say() {
    use Fit::*;
    let any = DataType::Numeric(None);
    let cents = DataType::Numeric(Some((8, 2)));
    let cases = [
        (numeric_of("1.000"), &any, DataType::Int4, At(Datum::I32(1))),
        (numeric_of("1.5"), &any, DataType::Int4, Behind(Datum::I32(1))),
        (numeric_of("-1.5"), &any, DataType::Int4, Behind(Datum::I32(-2))),
        (numeric_of("1.005"), &any, cents.clone(), Behind(Datum::I64(100))),
        (numeric_of("-1.005"), &any, cents.clone(), Behind(Datum::I64(-101))),
        (numeric_of("1.1"), &any, cents.clone(), At(Datum::I64(110))),
        (numeric_of("NaN"), &any, cents.clone(), AboveAll),
        (numeric_of("-Infinity"), &any, DataType::Int8, BelowAll),
        (numeric_of("1e300"), &any, cents, AboveAll),
        (Datum::I64(1 << 40), &DataType::Int8, DataType::Int4, AboveAll),
        (Datum::I64(-40_000), &DataType::Int8, DataType::Int2, BelowAll),
        (Datum::F64(2.5), &DataType::Float8, DataType::Int4, Behind(Datum::I32(2))),
        (Datum::F64(-0.5), &DataType::Float8, DataType::Int2, Behind(Datum::I16(-1))),
        (Datum::F64(f64::NAN), &DataType::Float8, DataType::Int4, AboveAll),
        (Datum::F64(f64::NEG_INFINITY), &DataType::Float8, DataType::Int4, BelowAll),
        (Datum::F64(0.5), &DataType::Float8, DataType::Float4, At(Datum::F32(0.5))),
        (Datum::F64(1e300), &DataType::Float8, DataType::Float4, Behind(Datum::F32(f32::MAX))),
        (Datum::F64(-1e300), &DataType::Float8, DataType::Float4, Behind(Datum::F32(f32::NEG_INFINITY))),
    ];
    for (value, from, column, expected) in cases {
        assert_eq!(fit(value.clone(), from, &column).unwrap(), expected, "{value:?} in {column:?}");
    }
}

#[test]
fn a_double_between_two_reals_is_behind_the_lesser() {
    for value in [1.1_f64, -1.1, 0.1, -0.1, 1e-300, -1e-300] {
        let Ok(Fit::Behind(Datum::F32(least))) = fit(Datum::F64(value), &DataType::Float8, &DataType::Float4) else {
            panic!("{value} is no real");
        };
        assert!(f64::from(least) < value && f64::from(least.next_up()) > value, "{value}: {least}");
    }
}

#[test]
fn days_and_moments_stand_between_each_other() {
    let at = |micros| fit(Datum::I64(micros), &DataType::Timestamp, &DataType::Date).unwrap();
    assert_eq!(at(0), Fit::At(Datum::I32(0)));
    assert_eq!(at(-1), Fit::Behind(Datum::I32(-1)));
    assert_eq!(at(i64::MAX), Fit::At(Datum::I32(i32::MAX)));
    let far = fit(Datum::I32(i32::MAX - 1), &DataType::Date, &DataType::Timestamp).unwrap();
    assert_eq!(far, Fit::Behind(Datum::I64(i64::MAX - 1)));
}

#[test]
fn casts_that_lose_something_are_no_comparisons_of_keys() {
    let column = Expr::Hole { id: 1, ty: DataType::Int8 };
    let cast = |to: DataType| Expr::Cast { expr: Box::new(column.clone()), to, explicit: false };
    let is_term = |expr: &Expr| *expr == column;
    assert_eq!(compared_as(&cast(DataType::Numeric(None)), &is_term), Some(DataType::Numeric(None)));
    assert_eq!(compared_as(&cast(DataType::Float8), &is_term), None);
    assert_eq!(compared_as(&cast(DataType::Int4), &is_term), None);
    assert_eq!(fitting(&DataType::Float8, &DataType::Int8, &DataType::Int8), None);
}

#[test]
fn blank_padded_keys_are_found_by_texts_without_trailing_blanks() {
    let column = DataType::Bpchar(Some(4));
    assert_eq!(fitting(&DataType::Text, &DataType::Text, &column), Some(Fitting::Equality));
    let found = fit(Datum::text("ab"), &DataType::Text, &column).unwrap();
    let Fit::At(found) = found else { panic!("{found:?}") };
    let key = |value: &Datum| {
        let mut out = Vec::new();
        encode_column(&column, value, &mut out);
        out
    };
    assert_eq!(key(&found), key(&Datum::text("ab  ")));
    assert!(matches!(fit(Datum::text("ab "), &DataType::Text, &column).unwrap(), Fit::Behind(_)));
}
