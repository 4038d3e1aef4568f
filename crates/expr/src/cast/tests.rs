mod cases;

use super::*;
use crate::datetime::TimeZone;
use crate::io::{LogicalBuilder, datum_at};

fn printed(ty: &DataType, value: &Datum, ctx: &EvalContext) -> String {
    let mut out = Vec::new();
    text::format(ty, value, ctx, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn casts_agree_with_postgresql_one_by_one_and_in_vectors() {
    let ctx = EvalContext { timezone: TimeZone::parse("Europe/Berlin").unwrap(), ..EvalContext::at(0) };
    let mut wrong = Vec::new();
    for (from, input, to, expected) in cases::cases() {
        let value = text::parse(&from, input, &ctx).unwrap();
        let mut vector = LogicalBuilder::new(&from, 2);
        vector.push(&value).unwrap();
        vector.push_null();
        let one = cast_datum(&from, &to, &value, true, &ctx).map(|cast| printed(&to, &cast, &ctx));
        let many = cast_array(&from, &to, &vector.finish(), true, &ctx).map(|cast| {
            assert!(cast.is_null(1), "{from:?} to {to:?}");
            printed(&to, &datum_at(&to, &cast, 0), &ctx)
        });
        for got in [one, many] {
            let got = got.unwrap_or_else(|error| format!("ERROR {}: {}", error.sqlstate, error.message));
            if got != expected {
                wrong.push(format!("{input:?} from {from:?} to {to:?}: expected {expected:?}, got {got:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
