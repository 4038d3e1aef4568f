//! Answers are a PostgreSQL 15 server's, over the same five rows.

use crate::context::EvalContext;
use crate::eval::vector::{from_values, value_at};
use crate::io;
use crate::resolve::resolve_aggregate;
use basalt_types::{DataType, Datum};

/// The aggregate over `values` (null where `None`), in one go and as two merged halves.
fn aggregate(name: &str, ty: DataType, values: &[Option<&str>]) -> String {
    let ctx = EvalContext::at(0);
    let resolved = resolve_aggregate(name, &[ty]).unwrap();
    let arg = &resolved.arg_types[0];
    let data: Vec<Datum> = values
        .iter()
        .map(|value| value.map_or(Datum::Null, |text| io::text::parse(&arg.base(), text, &ctx).unwrap()))
        .map(|value| {
            if value.is_null() {
                value
            } else {
                crate::cast::cast_datum(&arg.base(), arg, &value, false, &ctx).unwrap()
            }
        })
        .collect();
    let run = |data: &[Datum]| {
        let mut accumulator = resolved.accumulator();
        let column = from_values(arg, data.iter(), data.len()).unwrap();
        accumulator.update(&vec![1; data.len()], &[column], None, 2).unwrap();
        accumulator
    };
    let shown = |value: Datum| {
        let mut out = Vec::new();
        if value.is_null() {
            return "NULL".to_string();
        }
        io::text::format(&resolved.ty, &value, &ctx, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let mut whole = run(&data);
    let result = whole.evaluate().unwrap();
    assert_eq!(result.len(), 2);
    let (left, right) = data.split_at(data.len() / 2);
    let mut merged = resolved.accumulator();
    for part in [left, right] {
        let states = run(part).state().unwrap();
        merged.merge(&[0, 1], &states, 2).unwrap();
    }
    let merged = merged.evaluate().unwrap();
    let (one, two) = (value_at(&resolved.ty, result.as_ref(), 1), value_at(&resolved.ty, merged.as_ref(), 1));
    // Floats may differ in the last digits, depending on the order of additions.
    let digits = if resolved.ty == DataType::Float8 { 14 } else { usize::MAX };
    let cut = |text: String| text.chars().take(digits).collect::<String>();
    assert_eq!(cut(shown(one.clone())), cut(shown(two)), "{name}: merged halves differ");
    shown(one)
}

const VALUES: [Option<&str>; 5] = [Some("3"), Some("1"), None, Some("4"), Some("2")];

#[test]
fn integers() {
    let over = |name: &str| aggregate(name, DataType::Int4, &VALUES);
    assert_eq!(over("count"), "4");
    assert_eq!(over("sum"), "10");
    assert_eq!(over("avg"), "2.5000000000000000");
    assert_eq!(over("min"), "1");
    assert_eq!(over("max"), "4");
    assert_eq!(over("variance"), "1.6666666666666667");
    assert_eq!(over("var_pop"), "1.2500000000000000");
    assert_eq!(over("stddev"), "1.2909944487358056");
    assert_eq!(over("stddev_pop"), "1.1180339887498948");
    let wide = ["1000003", "2000006", "3000009", "4000012", "5000015"].map(Some);
    assert_eq!(aggregate("stddev", DataType::Int8, &wide), "1581143.5735");
    assert_eq!(over("bit_and"), "0");
    assert_eq!(over("bit_or"), "7");
    assert_eq!(over("array_agg"), "{3,1,NULL,4,2}");
}

#[test]
fn other_types() {
    let scaled = DataType::Numeric(Some((15, 2)));
    assert_eq!(aggregate("sum", scaled.clone(), &VALUES), "10.00");
    assert_eq!(aggregate("avg", scaled.clone(), &VALUES), "2.5000000000000000");
    assert_eq!(aggregate("max", scaled, &VALUES), "4.00");
    assert_eq!(aggregate("sum", DataType::Numeric(None), &[Some("1.5"), Some("NaN")]), "NaN");
    assert_eq!(aggregate("sum", DataType::Int8, &[Some("9223372036854775807"), Some("1")]), "9223372036854775808");
    assert_eq!(aggregate("sum", DataType::Float8, &[Some("1.5"), Some("2")]), "3.5");
    assert_eq!(aggregate("stddev", DataType::Float8, &VALUES), "1.2909944487358054");
    assert_eq!(aggregate("min", DataType::Text, &[Some("b"), Some("a"), None]), "a");
    assert_eq!(aggregate("bool_and", DataType::Bool, &[Some("t"), None, Some("f")]), "f");
    assert_eq!(aggregate("sum", DataType::Interval, &[Some("1 day"), Some("2 hours")]), "1 day 02:00:00");
    assert_eq!(aggregate("avg", DataType::Interval, &[Some("1 day"), Some("2 hours")]), "13:00:00");
    assert_eq!(aggregate("sum", DataType::Int4, &[None, None]), "NULL");
}
