//! The functions behind `min`, `max` and B-trees: the larger or smaller of two values, and how they compare.

use super::arg::scalar;
use super::{CallInfo, Kernel};
use crate::error::Result;
use crate::numeric::Numeric;
use crate::operators::compare_datums;
use basalt_types::Datum;
use std::cmp::Ordering;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    let (left, right) = args.split_once(',')?;
    if left != right {
        return None;
    }
    Some(match name {
        "numeric_cmp" => scalar!(|args, info| Ok(Datum::I32(numerics(args, info)? as i32))),
        "numeric_larger" => scalar!(|args, info| one_of(args, info, numerics(args, info)?.is_gt())),
        "numeric_smaller" => scalar!(|args, info| one_of(args, info, numerics(args, info)?.is_lt())),
        "btint4cmp" | "btint8cmp" | "btfloat4cmp" | "btfloat8cmp" | "btarraycmp" | "cash_cmp" | "date_cmp"
        | "enum_cmp" | "macaddr_cmp" | "macaddr8_cmp" | "pg_lsn_cmp" | "xid8cmp" | "interval_cmp" | "time_cmp"
        | "timestamp_cmp" | "timestamptz_cmp" | "timetz_cmp" => {
            scalar!(|args, info| Ok(Datum::I32(compare_datums(&info.arg_types[0], &args[0], &args[1]) as i32)))
        }
        // Their difference.
        "btint2cmp" => scalar!(|args, _| match args {
            [Datum::I16(a), Datum::I16(b)] => Ok(Datum::I32(i32::from(*a) - i32::from(*b))),
            _ => Ok(Datum::Null),
        }),
        _ if name.trim_end_matches("larger").ends_with('_') || is_short(name, "larger") => {
            scalar!(|args, info| {
                let is_first = compare_datums(&info.arg_types[0], &args[0], &args[1]).is_gt();
                Ok(args[usize::from(!is_first)].clone())
            })
        }
        _ if name.trim_end_matches("smaller").ends_with('_') || is_short(name, "smaller") => {
            scalar!(|args, info| {
                let is_first = compare_datums(&info.arg_types[0], &args[0], &args[1]).is_lt();
                Ok(args[usize::from(!is_first)].clone())
            })
        }
        _ => return None,
    })
}

/// Numerics come in any physical form.
fn numerics(args: &[Datum], info: &CallInfo) -> Result<Ordering> {
    let (left, right) = (&info.arg_types[0], &info.arg_types[1]);
    Ok(Numeric::from_datum(&args[0], left)?.cmp(&Numeric::from_datum(&args[1], right)?))
}

fn one_of(args: &[Datum], info: &CallInfo, first: bool) -> Result<Datum> {
    let at = usize::from(!first);
    Numeric::from_datum(&args[at], &info.arg_types[at])?.to_datum(info.ty)
}

/// `int4larger`, `cashsmaller` and their kin.
fn is_short(name: &str, which: &str) -> bool {
    let ty = name.strip_suffix(which);
    ty.is_some_and(|ty| ["int2", "int4", "int8", "float4", "float8", "cash", "oid"].contains(&ty))
}
