//! Functions about values themselves, and identifiers. What belongs to a session or the catalog is
//! registered by the crate that owns it.

use super::Kernel;
use super::arg::*;
use basalt_types::Datum;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("gen_random_uuid", "-") => scalar!(|_, info| {
            let mut uuid = [0; 16];
            (info.ctx.random)(&mut uuid);
            // Version 4, variant 1 (RFC 4122).
            uuid[6] = uuid[6] & 0x0f | 0x40;
            uuid[8] = uuid[8] & 0x3f | 0x80;
            Ok(Datum::Fixed16(uuid))
        }),
        ("pg_typeof", "any") => scalar!(|_, info| Ok(Datum::I64(i64::from(info.arg_types[0].oid())))),
        ("num_nulls", "any") => {
            scalar!(|args, _| Ok(Datum::I32(args.iter().filter(|value| value.is_null()).count() as i32)))
        }
        ("num_nonnulls", "any") => {
            scalar!(|args, _| Ok(Datum::I32(args.iter().filter(|value| !value.is_null()).count() as i32)))
        }
        ("like", "text,text") => return crate::pattern::bind("textlike"),
        ("notlike", "text,text") => return crate::pattern::bind("textnlike"),
        ("like_escape", "text,text") => {
            kernel!(|pattern: Txt, escape: Txt| -> Txt { crate::pattern::with_backslash_escape(pattern, escape) })
        }
        ("similar_to_escape", "text") => {
            kernel!(|pattern: Txt| -> Txt { crate::pattern::similar_to_regex(pattern, Some('\\')) })
        }
        ("textcat", "text,text") => return crate::operators::bind_function(name, args),
        _ => return None,
    })
}
