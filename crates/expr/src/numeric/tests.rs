mod cases;

use super::*;
use proptest::prelude::*;

fn shown(result: Result<Numeric>) -> String {
    match result {
        Ok(value) => value.to_string(),
        Err(error) => format!("ERROR {}", error.sqlstate),
    }
}

fn number(text: &str) -> Numeric {
    Numeric::parse(text).unwrap()
}

fn float_text(result: Result<f64>, single: bool) -> String {
    let mut out = Vec::new();
    match result {
        Err(error) => return format!("ERROR {}", error.sqlstate),
        Ok(value) if single => crate::io::write_f32(value as f32, 1, &mut out),
        Ok(value) => crate::io::write_f64(value, 1, &mut out),
    }
    String::from_utf8(out).unwrap()
}

fn report(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn operators_agree_with_postgresql() {
    let mut wrong = Vec::new();
    for (operator, left, right, expected) in cases::BINARY {
        let (a, b) = (number(left), number(right));
        let got = shown(match *operator {
            "+" => a.add(&b),
            "-" => a.sub(&b),
            "*" => a.mul(&b),
            "/" => a.div(&b),
            "%" => a.rem(&b),
            _ => a.div_trunc(&b),
        });
        if got != *expected {
            wrong.push(format!("{left} {operator} {right}: expected {expected}, got {got}"));
        }
    }
    report(wrong);
}

#[test]
fn functions_agree_with_postgresql() {
    let mut wrong = Vec::new();
    for (function, argument, expected) in cases::UNARY {
        let value = number(argument);
        let integer = |result: Result<i64>| result.map(Numeric::from);
        let got = match *function {
            "ceil" => shown(value.ceil()),
            "floor" => shown(value.floor()),
            "sign" => shown(Ok(value.sign())),
            "abs" => shown(Ok(value.abs())),
            "round0" => shown(value.round(0)),
            "round2" => shown(value.round(2)),
            "round-2" => shown(value.round(-2)),
            "trunc1" => shown(value.trunc(1)),
            "trunc-3" => shown(value.trunc(-3)),
            "trim" => shown(Ok(value.trim_scale())),
            "int4" => shown(integer(value.to_i32().map(i64::from))),
            "int8" => shown(integer(value.to_i64())),
            "float8" => float_text(value.to_f64(), false),
            "float4" => float_text(value.to_f32().map(f64::from), true),
            "neg" => shown(Ok(-value)),
            "sqrt" => shown(value.sqrt()),
            "exp" => shown(value.exp()),
            "ln" => shown(value.ln()),
            _ => shown(value.log10()),
        };
        if got != *expected {
            wrong.push(format!("{function}({argument}): expected {expected}, got {got}"));
        }
    }
    for (function, left, right, expected) in cases::POWER {
        let (a, b) = (number(left), number(right));
        let got = shown(if *function == "power" { a.power(&b) } else { a.log(&b) });
        if got != *expected {
            wrong.push(format!("{function}({left}, {right}): expected {expected}, got {got}"));
        }
    }
    report(wrong);
}

/// Coefficients of all sizes, so that both representations and their border are met.
fn any_numeric() -> impl Strategy<Value = Numeric> {
    let small = (any::<i128>(), 0u32..127, 0u16..40)
        .prop_map(|(value, shift, scale)| Numeric::from_scaled(value >> shift, scale));
    let big = ("-?[1-9][0-9]{30,60}", 0usize..20).prop_map(|(digits, scale)| number(&format!("{digits}e-{scale}")));
    prop_oneof![4 => small, 1 => big]
}

proptest! {
    #[test]
    fn stored_form_round_trips_and_sorts(a in any_numeric(), b in any_numeric()) {
        let left = a.encoded();
        let back = Numeric::decode(&left).unwrap();
        prop_assert_eq!(back.to_string(), a.to_string());
        let parts = basalt_types::numeric::decode(&left).unwrap();
        let mut again = Vec::new();
        basalt_types::numeric::encode(&parts, &mut again);
        prop_assert_eq!(&again, &left);
        prop_assert_eq!(a.cmp(&b), a.key().cmp(&b.key()));
        let mut text = Vec::new();
        write_stored(&left, &mut text).unwrap();
        prop_assert_eq!(String::from_utf8(text).unwrap(), a.to_string());
    }

    #[test]
    fn text_round_trips(a in any_numeric()) {
        prop_assert_eq!(number(&a.to_string()).to_string(), a.to_string());
    }

    #[test]
    fn arithmetic_agrees_with_big_integers(a in any_numeric(), b in any_numeric()) {
        let scale = i32::from(a.scale.max(b.scale));
        let sum = a.add(&b).unwrap();
        prop_assert_eq!(sum.big_at(scale), a.big_at(scale) + b.big_at(scale));
        prop_assert_eq!(sum.sub(&b).unwrap(), a.clone());
        let product = a.mul(&b).unwrap();
        prop_assert_eq!(product.big(), a.big() * b.big());
        if !b.is_zero() {
            let whole = a.div_trunc(&b).unwrap();
            prop_assert_eq!(whole.mul(&b).unwrap().add(&a.rem(&b).unwrap()).unwrap(), a.clone());
            let quotient = a.div(&b).unwrap();
            let shift = i32::from(quotient.scale) + i32::from(b.scale) - i32::from(a.scale);
            let exact = div_round_big(&(a.big() * big_power_of_ten(shift as u32)), &b.big());
            prop_assert_eq!(quotient.big(), exact);
        }
    }

    #[test]
    fn sums_do_not_depend_on_order_or_grouping(values in prop::collection::vec(any_numeric(), 1..20), cut in 0usize..20) {
        let (mut all, mut left, mut right) = (NumericSum::default(), NumericSum::default(), NumericSum::default());
        let mut plain = Numeric::ZERO;
        for (i, value) in values.iter().enumerate() {
            all.add(value).unwrap();
            plain = plain.add(value).unwrap();
            if i < cut { left.add(value).unwrap() } else { right.add(value).unwrap() }
        }
        let mut bytes = Vec::new();
        right.to_bytes(&mut bytes);
        left.merge(&NumericSum::from_bytes(&bytes).unwrap()).unwrap();
        let sum = all.sum().unwrap().unwrap();
        prop_assert_eq!(sum.to_string(), plain.to_string());
        prop_assert_eq!(left.sum().unwrap().unwrap().to_string(), sum.to_string());
        prop_assert_eq!(left.count(), values.len() as u64);
    }
}
