//! Random values: mostly small and harmless, now and then at the edge of their type.

use super::types::{Ty, Types};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

const WORDS: [&str; 18] = [
    "", "a", "b", "ab", "abc", "A", "Basalt", "lava", "cold", "x y", "0", "1", "-12", "3.5", "Zoë", "ß", "%a_",
    "q'uote",
];

/// A typed literal.
pub fn literal(types: &Types, ty: Ty, rng: &mut StdRng) -> String {
    let name = types.name(ty);
    if rng.random_ratio(1, 16) {
        return format!("NULL::{name}");
    }
    let text = value(types, ty, rng);
    match name {
        "int4" | "bool" if rng.random_bool(0.8) => match text.starts_with('-') {
            true => format!("({text})"),
            false => text,
        },
        "numeric" if rng.random_bool(0.5) && text != "NaN" && text.contains('.') && !text.starts_with('-') => text,
        "text" if rng.random_bool(0.6) => format!("{}::text", quoted(&text)),
        "date" | "timestamp" | "timestamptz" | "interval" | "time" if rng.random_bool(0.4) => {
            format!("{name} {}", quoted(&text))
        }
        _ => format!("{}::{name}", quoted(&text)),
    }
}

/// The harmless value that shrinking puts in an expression's place.
pub fn simple(types: &Types, ty: Ty) -> String {
    let text = match types.name(ty) {
        "bool" => "true",
        "int2" | "int4" | "int8" | "float4" | "float8" | "numeric" | "text" | "varchar" | "bpchar" | "json"
        | "jsonb" => "1",
        "bytea" => "a",
        "date" | "timestamp" | "timestamptz" => "2020-01-01",
        "time" | "timetz" => "12:00",
        "interval" => "1 day",
        "uuid" => "00000000-0000-0000-0000-000000000001",
        name if name.ends_with("[]") || name.ends_with("multirange") => "{}",
        name if name.ends_with("range") => "empty",
        _ => return types.info(ty).labels.first().map_or("NULL".into(), |label| quoted(label)),
    };
    format!("'{text}'::{}", types.name(ty))
}

pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The text of a value, without quotes; never null.
pub fn value(types: &Types, ty: Ty, rng: &mut StdRng) -> String {
    let info = types.info(ty);
    if let Some(label) = info.labels.choose(rng) {
        return label.clone();
    }
    if let Some(element) = info.element {
        return array(types, element, rng);
    }
    let edge = rng.random_ratio(1, 60);
    match info.name.as_str() {
        "bool" => if rng.random_bool(0.5) { "true" } else { "false" }.into(),
        "int2" if edge => (*["32767", "-32768"].choose(rng).expect("some")).into(),
        "int4" if edge => (*["2147483647", "-2147483648"].choose(rng).expect("some")).into(),
        "int8" if edge => (*["9223372036854775807", "-9223372036854775808"].choose(rng).expect("some")).into(),
        "int2" | "int4" | "int8" => match rng.random_bool(0.8) {
            true => rng.random_range(0..10_i32).to_string(),
            false => rng.random_range(-100..1000_i32).to_string(),
        },
        "float4" | "float8" if edge => (*["NaN", "Infinity", "-Infinity", "-0"].choose(rng).expect("some")).into(),
        // Sums of quarters are exact in any order.
        "float4" | "float8" => (f64::from(rng.random_range(-40..200_i32)) / 4.0).to_string(),
        "numeric" if edge => (*["NaN", "12345678901234567890.12345", "0.000000001"].choose(rng).expect("some")).into(),
        "numeric" => match rng.random_range(0..3) {
            0 => rng.random_range(-20..200_i32).to_string(),
            1 => format!("{}.{}", rng.random_range(-9..100_i32), rng.random_range(0..10_u32)),
            _ => format!("{}.{:03}", rng.random_range(0..1000_u32), rng.random_range(0..1000_u32)),
        },
        "text" | "varchar" | "bpchar" => (*WORDS.choose(rng).expect("some")).into(),
        "bytea" => {
            let bytes = (0..rng.random_range(0..4)).map(|_| format!("{:02x}", rng.random::<u8>()));
            format!("\\x{}", bytes.collect::<String>())
        }
        "date" if edge => (*["infinity", "-infinity", "0001-01-01", "1900-02-28 BC"].choose(rng).expect("some")).into(),
        "date" => date(rng),
        "time" => time(rng),
        "timetz" => format!("{}{:+03}", time(rng), rng.random_range(-11..12_i32)),
        "timestamp" | "timestamptz" if edge => {
            (*["infinity", "-infinity", "0044-03-15 10:00:00 BC"].choose(rng).expect("some")).into()
        }
        "timestamp" => format!("{} {}", date(rng), time(rng)),
        "timestamptz" => format!("{} {}+0{}", date(rng), time(rng), rng.random_range(0..9_u32)),
        "interval" => interval(rng),
        "uuid" => format!("{:08x}-0000-4000-8000-{:012x}", rng.random_range(0..6_u32), rng.random_range(0..4_u32)),
        "json" | "jsonb" => json(rng, 2),
        "int4range" => range(rng, false),
        "numrange" => range(rng, true),
        name @ ("int4multirange" | "nummultirange") => {
            let parts = (0..rng.random_range(0..4)).map(|_| range(rng, name == "nummultirange")).collect::<Vec<_>>();
            format!("{{{}}}", parts.join(", "))
        }
        other => unreachable!("no values of {other}"),
    }
}

/// Quarters or whole numbers between brackets or parentheses; now and then without a bound, or empty.
fn range(rng: &mut StdRng, quarters: bool) -> String {
    if rng.random_ratio(1, 12) {
        return "empty".into();
    }
    let (lower, length) = (rng.random_range(-5..30_i32), rng.random_range(0..12_i32));
    let mut bound = |value: i32| match (rng.random_ratio(1, 10), quarters) {
        (true, _) => String::new(),
        (_, true) => format!("{}", f64::from(value) / 4.0),
        _ => value.to_string(),
    };
    let bounds = format!("{},{}", bound(lower), bound(lower + length));
    let (open, close) = (if rng.random_bool(0.7) { '[' } else { '(' }, if rng.random_bool(0.3) { ']' } else { ')' });
    format!("{open}{bounds}{close}")
}

fn date(rng: &mut StdRng) -> String {
    let year = if rng.random_bool(0.8) { rng.random_range(2019..2025_u32) } else { rng.random_range(1890..2100) };
    format!("{year}-{:02}-{:02}", rng.random_range(1..13_u32), rng.random_range(1..29_u32))
}

fn time(rng: &mut StdRng) -> String {
    let (hour, minute) = (rng.random_range(0..24_u32), rng.random_range(0..60_u32));
    match rng.random_range(0..3) {
        0 => format!("{hour:02}:{minute:02}"),
        1 => format!("{hour:02}:{minute:02}:{:02}", rng.random_range(0..60_u32)),
        _ => format!("{hour:02}:{minute:02}:00.{}", rng.random_range(1..1_000_000_u32)),
    }
}

fn interval(rng: &mut StdRng) -> String {
    let parts = [
        format!("{} years", rng.random_range(-3..9_i32)),
        format!("{} mons", rng.random_range(-20..20_i32)),
        format!("{} days", rng.random_range(-40..40_i32)),
        format!(
            "{}:{:02}:{:02}.5",
            rng.random_range(0..30_u32),
            rng.random_range(0..60_u32),
            rng.random_range(0..60_u32)
        ),
    ];
    let count = rng.random_range(1..3);
    parts.choose_multiple(rng, count).cloned().collect::<Vec<_>>().join(" ")
}

fn array(types: &Types, element: Ty, rng: &mut StdRng) -> String {
    let count = rng.random_range(0..4);
    let values = (0..count).map(|_| match rng.random_ratio(1, 10) {
        true => "NULL".to_string(),
        false => format!("\"{}\"", value(types, element, rng).replace('\\', "\\\\").replace('"', "\\\"")),
    });
    format!("{{{}}}", values.collect::<Vec<_>>().join(","))
}

fn json(rng: &mut StdRng, depth: u32) -> String {
    let kinds = if depth == 0 { 4 } else { 7 };
    match rng.random_range(0..kinds) {
        0 => rng.random_range(-5..50_i32).to_string(),
        1 => format!("{}.{}", rng.random_range(0..9_u32), rng.random_range(0..99_u32)),
        2 => (*["true", "false", "null"].choose(rng).expect("some")).into(),
        3 => format!("\"{}\"", ["", "a", "b", "Zoë", "x\\ny"].choose(rng).expect("some")),
        4 => {
            let items = (0..rng.random_range(0..4)).map(|_| json(rng, depth - 1)).collect::<Vec<_>>();
            format!("[{}]", items.join(", "))
        }
        _ => {
            let count = rng.random_range(0..4);
            let keys = ["a", "b", "c", "key", "Zoë"].choose_multiple(rng, count).collect::<Vec<_>>();
            let items = keys.into_iter().map(|key| format!("\"{key}\": {}", json(rng, depth - 1)));
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
    }
}
