//! Functions and operators of bit strings (manual 9.6).

use super::Kernel;
use super::arg::*;
use crate::bits;
use crate::error::{Error, Result};
use basalt_types::{DataType, Datum};

/// Functions of `pg_proc`, by name and argument types.
pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("length" | "bit_length", "bit") => kernel!(|bits: Txt| -> I4 { Ok(bits.len() as i32) }),
        ("octet_length", "bit") => kernel!(|bits: Txt| -> I4 { Ok(bits.len().div_ceil(8) as i32) }),
        ("bit_count", "bit") => {
            kernel!(|bits: Txt| -> I8 { Ok(bits.bytes().filter(|bit| *bit == b'1').count() as i64) })
        }
        ("get_bit", "bit,int4") => {
            kernel!(|bits: Txt, index: I4| -> I4 { Ok(i32::from(bits.as_bytes()[checked(bits, index)?] == b'1')) })
        }
        ("set_bit", "bit,int4,int4") => kernel!(|bits: Txt, index: I4, bit: I4| -> Txt {
            let at = checked(bits, index)?;
            let new = match bit {
                0 => "0",
                1 => "1",
                _ => return Err(Error::invalid_parameter("new bit must be 0 or 1")),
            };
            Ok([&bits[..at], new, &bits[at + 1..]].concat())
        }),
        ("position", "bit,bit") => kernel!(|bits: Txt, wanted: Txt| -> I4 {
            let found = if bits.is_empty() { None } else { bits.find(wanted) };
            Ok(found.map_or(0, |at| at as i32 + 1))
        }),
        ("substring", "bit,int4,int4") => {
            kernel!(|bits: Txt, start: I4, length: I4| -> Txt {
                super::strings::substring(bits, start, Some(length)).map(str::to_string)
            })
        }
        ("substring", "bit,int4") => {
            kernel!(|bits: Txt, start: I4| -> Txt { super::strings::substring(bits, start, None).map(str::to_string) })
        }
        ("overlay", "bit,bit,int4,int4") => {
            kernel!(|bits: Txt, new: Txt, start: I4, count: I4| -> Txt {
                super::strings::overlay(bits, new, start, count)
            })
        }
        ("overlay", "bit,bit,int4") => kernel!(|bits: Txt, new: Txt, start: I4| -> Txt {
            super::strings::overlay(bits, new, start, new.len() as i32)
        }),
        ("bit", "int4,int4") => {
            kernel!(|value: I4, length: I4| -> Txt { Ok(bits::of_integer(i64::from(value), length.max(1) as u32)) })
        }
        ("bit", "int8,int4") => {
            kernel!(|value: I8, length: I4| -> Txt { Ok(bits::of_integer(value, length.max(1) as u32)) })
        }
        ("int4", "bit") => {
            kernel!(|bits: Txt| -> I4 { bits::to_integer(bits, 32, "integer").map(|value| value as i32) })
        }
        ("int8", "bit") => kernel!(|bits: Txt| -> I8 { bits::to_integer(bits, 64, "bigint") }),
        ("bit", "bit,int4,bool") => kernel!(|bits: Txt, length: I4, explicit: Bit| -> Txt {
            bits::fit(bits, &DataType::Bit(u32::try_from(length).ok().filter(|length| *length > 0)), explicit)
        }),
        ("varbit", "varbit,int4,bool") => kernel!(|bits: Txt, length: I4, explicit: Bit| -> Txt {
            bits::fit(bits, &DataType::Varbit(u32::try_from(length).ok().filter(|length| *length > 0)), explicit)
        }),
        _ => return operator(name),
    })
}

fn checked(bits: &str, index: i32) -> Result<usize> {
    usize::try_from(index).ok().filter(|at| *at < bits.len()).ok_or_else(|| {
        let last = bits.len() as i64 - 1;
        Error::new("2202E", format!("bit index {index} out of valid range (0..{last})"))
    })
}

fn combine(a: &str, b: &str, what: &str, keep: fn(bool, bool) -> bool) -> Result<String> {
    if a.len() != b.len() {
        return Err(Error::new("22026", format!("cannot {what} bit strings of different sizes")));
    }
    let pairs = a.bytes().zip(b.bytes());
    Ok(pairs.map(|(a, b)| if keep(a == b'1', b == b'1') { '1' } else { '0' }).collect())
}

/// [`combine`] for aggregates, where null is no value yet.
pub(crate) fn combine_datums(a: &Datum, b: &Datum, what: &str, keep: fn(bool, bool) -> bool) -> Result<Datum> {
    match (a, b) {
        (Datum::Bytes(_), Datum::Bytes(_)) => {
            let (a, b) = (Txt::of(a, &DataType::Bit(None))?, Txt::of(b, &DataType::Bit(None))?);
            combine(a, b, what, keep).map(|bits| Datum::text(&bits))
        }
        (Datum::Null, b) => Ok(b.clone()),
        (a, _) => Ok(a.clone()),
    }
}

/// Bits moved to the left, or to the right by a negative count; zeros come in.
fn shift(bits: &str, count: i64) -> String {
    let moved = usize::try_from(count.abs()).unwrap_or(usize::MAX).min(bits.len());
    let zeros = "0".repeat(moved);
    if count >= 0 { [&bits[moved..], &zeros].concat() } else { [&zeros, &bits[..bits.len() - moved]].concat() }
}

/// What an operator's function does.
pub(crate) fn operator(function: &str) -> Option<Kernel> {
    Some(match function {
        "bitand" => kernel!(|a: Txt, b: Txt| -> Txt { combine(a, b, "AND", |a, b| a && b) }),
        "bitor" => kernel!(|a: Txt, b: Txt| -> Txt { combine(a, b, "OR", |a, b| a || b) }),
        "bitxor" => kernel!(|a: Txt, b: Txt| -> Txt { combine(a, b, "XOR", |a, b| a != b) }),
        "bitnot" => {
            kernel!(|bits: Txt| -> Txt { Ok(bits.bytes().map(|bit| if bit == b'1' { '0' } else { '1' }).collect()) })
        }
        "bitshiftleft" => kernel!(|bits: Txt, count: I4| -> Txt { Ok(shift(bits, i64::from(count))) }),
        "bitshiftright" => kernel!(|bits: Txt, count: I4| -> Txt { Ok(shift(bits, -i64::from(count))) }),
        "bitcat" => kernel!(|a: Txt, b: Txt| -> Txt { Ok([a, b].concat()) }),
        _ => return None,
    })
}
