use super::*;
use basalt_types::DataType::*;

fn numeric(p: u16, s: i16) -> DataType {
    Numeric(Some((p, s)))
}

#[test]
fn scaled_arithmetic_keeps_a_scale_while_it_can() {
    let price = numeric(15, 2);
    let one = numeric(1, 0);
    let factor = decimal_result_type(DecimalOp::Sub, &one, &price);
    assert_eq!(factor, numeric(16, 2));
    let discounted = decimal_result_type(DecimalOp::Mul, &price, &factor);
    assert_eq!(discounted, numeric(31, 4));
    assert_eq!(decimal_result_type(DecimalOp::Mul, &discounted, &factor), Numeric(None));
    assert_eq!(decimal_result_type(DecimalOp::Mul, &numeric(38, 0), &one), Numeric(None));
    assert_eq!(decimal_result_type(DecimalOp::Add, &price, &Numeric(None)), Numeric(None));
}

#[test]
fn literals_take_the_least_scaled_type() {
    assert_eq!(decimal::type_of_literal("0.05"), numeric(3, 2));
    assert_eq!(decimal::type_of_literal("-100"), numeric(3, 0));
    assert_eq!(decimal::type_of_literal("NaN"), Numeric(None));
    assert_eq!(decimal::type_of_literal(&"9".repeat(39)), Numeric(None));
}

#[test]
fn common_types_follow_section_10_5() {
    let common = |types: &[DataType]| resolve_common_type("UNION", types);
    assert_eq!(common(&[Unknown, Unknown]), Ok(Text));
    assert_eq!(common(&[Int4, Unknown]), Ok(Int4));
    assert_eq!(common(&[Int4, Int8]), Ok(Int8));
    assert_eq!(common(&[Int8, Float8]), Ok(Float8));
    assert_eq!(common(&[Int4, numeric(15, 2)]), Ok(Numeric(None)));
    assert_eq!(common(&[numeric(15, 2), numeric(12, 2)]), Ok(numeric(15, 2)));
    assert_eq!(common(&[Varchar(Some(3)), Text]), Ok(Varchar(None)));
    assert_eq!(common(&[Text, Varchar(Some(3))]), Ok(Text));
    assert_eq!(common(&[Date, TimestampTz]), Ok(TimestampTz));
    let error = common(&[Int4, Text]).unwrap_err();
    assert_eq!((error.sqlstate, error.message.as_str()), ("42804", "UNION types integer and text cannot be matched"));
}

#[test]
fn aggregates_have_their_result_types() {
    let ty = |name: &str, args: &[DataType]| resolve_aggregate(name, args).map(|resolved| resolved.ty);
    assert_eq!(ty("sum", &[Int4]), Ok(Int8));
    assert_eq!(ty("sum", &[Int8]), Ok(Numeric(None)));
    assert_eq!(ty("sum", &[Float4]), Ok(Float4));
    assert_eq!(ty("avg", &[Int4]), Ok(Numeric(None)));
    assert_eq!(ty("avg", &[Float4]), Ok(Float8));
    assert_eq!(ty("max", &[numeric(15, 2)]), Ok(numeric(15, 2)));
    assert_eq!(ty("max", &[Varchar(Some(10))]), Ok(Text));
    assert_eq!(ty("count", &[]), Ok(Int8));
    assert_eq!(ty("array_agg", &[Int4]), Ok(Array(Box::new(Int4))));
    assert_eq!(ty("sum", &[Text]).unwrap_err().message, "function sum(text) does not exist");
}

#[test]
fn errors_name_types_and_give_hints() {
    let error = resolve_operator("+", Some(&Date), &Bool).unwrap_err();
    assert_eq!(error.message, "operator does not exist: date + boolean");
    assert_eq!(
        error.hint.as_deref(),
        Some("No operator matches the given name and argument types. You might need to add explicit type casts.")
    );
}
