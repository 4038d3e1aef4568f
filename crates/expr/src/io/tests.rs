mod text_cases;

use super::{LogicalBuilder, binary, datum_at, text};
use crate::context::EvalContext;
use crate::datetime::TimeZone;
use crate::error::{Error, Result};
use basalt_types::{DataType, Datum};

fn berlin() -> EvalContext {
    EvalContext { timezone: TimeZone::parse("Europe/Berlin").unwrap(), ..EvalContext::at(1_700_000_000_000_000) }
}

fn shown(result: Result<String>) -> String {
    result.unwrap_or_else(|Error { sqlstate, message, .. }| format!("ERROR {sqlstate}: {message}"))
}

fn print(ty: &DataType, value: &Datum, ctx: &EvalContext) -> Result<String> {
    let mut out = Vec::new();
    text::format(ty, value, ctx, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn text_reads_and_prints_as_postgresql_does() {
    let ctx = berlin();
    let mut wrong = Vec::new();
    for (ty, cases) in text_cases::cases() {
        for (input, expected) in cases {
            let got = shown(text::parse(&ty, input, &ctx).and_then(|value| print(&ty, &value, &ctx)));
            if got != *expected {
                wrong.push(format!("{} {input:?}: expected {expected:?}, got {got:?}", ty.sql_name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// Everything that reads goes through vectors and the binary form unchanged.
#[test]
fn values_survive_vectors_and_the_binary_form() {
    let ctx = berlin();
    for (ty, cases) in text_cases::cases() {
        let mut builder = LogicalBuilder::new(&ty, cases.len());
        let mut values = Vec::new();
        for (input, expected) in cases {
            let Ok(value) = text::parse(&ty, input, &ctx) else {
                assert!(text::parse_into(input.as_bytes(), &mut builder, &ctx).is_err(), "{ty:?} {input:?}");
                continue;
            };
            text::parse_into(input.as_bytes(), &mut builder, &ctx).unwrap();
            let mut wire = Vec::new();
            binary::format(&ty, &value, &ctx, &mut wire).unwrap();
            let back = binary::parse(&ty, &wire, &ctx).unwrap();
            assert_eq!(print(&ty, &back, &ctx).unwrap(), print(&ty, &value, &ctx).unwrap(), "{ty:?} {expected}");
            values.push((value, wire));
        }
        builder.push_null();
        let array = builder.finish();
        assert_eq!(array.len(), values.len() + 1);
        for (row, (value, wire)) in values.iter().enumerate() {
            let at = datum_at(&ty, &array, row);
            assert_eq!(print(&ty, &at, &ctx).unwrap(), print(&ty, value, &ctx).unwrap(), "{ty:?}");
            let (mut cell, mut binary_cell) = (Vec::new(), Vec::new());
            assert!(text::format_cell(&ty, &array, row, &ctx, &mut cell).unwrap());
            assert_eq!(String::from_utf8(cell).unwrap(), print(&ty, value, &ctx).unwrap(), "{ty:?}");
            assert!(binary::format_cell(&ty, &array, row, &ctx, &mut binary_cell).unwrap());
            assert_eq!(&binary_cell, wire, "{ty:?}");
        }
        let mut cell = Vec::new();
        assert!(!text::format_cell(&ty, &array, values.len(), &ctx, &mut cell).unwrap());
        assert!(cell.is_empty());
    }
}
