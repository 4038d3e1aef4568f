//! Functions and operators of ranges and multiranges (manual 9.20).

use super::{CallInfo, Function, Kernel, SetRows, TypePattern, Volatility};
use crate::cast;
use crate::datetime::{
    DATE_INFINITY, DATE_NEG_INFINITY, POSTGRES_EPOCH_DAYS, POSTGRES_EPOCH_MICROS, TIMESTAMP_INFINITY,
    TIMESTAMP_NEG_INFINITY,
};
use crate::error::{Error, Result};
use crate::functions::arg::scalar;
use crate::numeric::Numeric;
use crate::operators::compare_datums;
use crate::range_value::{self, Pair, contains_value, hull, make, normalized, spans};
use crate::tree::Expr;
use basalt_types::range::{Bound, RangeKind, RangeValue, Span, encode_multirange, encode_range};
use basalt_types::{DataType, Datum};
use std::sync::LazyLock;

/// A range of two.
macro_rules! range_result {
    (|$pair:ident| $body:expr) => {
        scalar!(|args, info| with_pair(args, info, |$pair| Ok(encode_range($pair.kind, &$body?))))
    };
}

/// A multirange of two.
macro_rules! multirange_result {
    (|$pair:ident| $body:expr) => {
        scalar!(|args, info| with_pair(args, info, |$pair| Ok(encode_multirange($pair.kind, &$body?))))
    };
}

/// The kind of a range or multirange type.
pub(crate) fn kind_of(ty: &DataType) -> Result<RangeKind> {
    match ty.underlying() {
        DataType::Range(kind) | DataType::Multirange(kind) => Ok(*kind),
        ty => Err(Error::internal(format!("{} is no range type", ty.sql_name()))),
    }
}

fn is_range(name: &str) -> bool {
    RangeKind::ALL.iter().any(|kind| kind.range_name() == name)
}

fn is_multirange(name: &str) -> bool {
    RangeKind::ALL.iter().any(|kind| kind.multirange_name() == name)
}

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    if is_range(name) {
        return Some(scalar!(construct));
    }
    if is_multirange(name) {
        return Some(scalar!(|args, info| of_ranges(args, kind_of(info.ty)?)));
    }
    if let Some(kernel) = accessor(name, args) {
        return Some(kernel);
    }
    Some(match (name, args) {
        ("range_cmp" | "multirange_cmp", _) => {
            scalar!(|args, info| Ok(Datum::I32(compare_datums(&info.arg_types[0], &args[0], &args[1]) as i32)))
        }
        ("multirange", "anyrange") => {
            scalar!(|args, info| Ok(encode_multirange(kind_of(info.ty)?, &spans(&info.arg_types[0], &args[0])?)))
        }
        ("range_merge", "anyrange,anyrange") => range_result!(|pair| Ok::<_, Error>(pair.merged())),
        ("range_merge", _) => {
            scalar!(|args, info| Ok(encode_range(kind_of(info.ty)?, &hull(&spans(&info.arg_types[0], &args[0])?))))
        }
        ("unnest", "anymultirange") => Kernel::Set(unnest),
        ("int4range_canonical" | "int8range_canonical" | "daterange_canonical", _) => {
            scalar!(|args, _| Ok(args[0].clone()))
        }
        (
            "int4range_subdiff" | "int8range_subdiff" | "numrange_subdiff" | "daterange_subdiff" | "tsrange_subdiff"
            | "tstzrange_subdiff",
            _,
        ) => scalar!(distance),
        _ => return None,
    })
}

/// Bounds of ranges and multiranges, and whether there are any.
fn accessor(name: &str, args: &str) -> Option<Kernel> {
    if !matches!(args, "anyrange" | "anymultirange") {
        return None;
    }
    fn whole(args: &[Datum], info: &CallInfo) -> Result<RangeValue> {
        Ok(hull(&spans(&info.arg_types[0], &args[0])?))
    }
    fn of(range: RangeValue, holds: impl Fn(&Span) -> bool) -> Result<Datum> {
        Ok(Datum::Bool(range.as_ref().is_some_and(holds)))
    }
    Some(match name {
        "lower" => {
            scalar!(|args, info| Ok(whole(args, info)?.and_then(|span| span.lower.value).unwrap_or(Datum::Null)))
        }
        "upper" => {
            scalar!(|args, info| Ok(whole(args, info)?.and_then(|span| span.upper.value).unwrap_or(Datum::Null)))
        }
        "isempty" => scalar!(|args, info| Ok(Datum::Bool(whole(args, info)?.is_none()))),
        "lower_inc" => scalar!(|args, info| of(whole(args, info)?, |span| span.lower.inclusive)),
        "upper_inc" => scalar!(|args, info| of(whole(args, info)?, |span| span.upper.inclusive)),
        "lower_inf" => scalar!(|args, info| of(whole(args, info)?, |span| span.lower.value.is_none())),
        "upper_inf" => scalar!(|args, info| of(whole(args, info)?, |span| span.upper.value.is_none())),
        _ => return None,
    })
}

macro_rules! relation {
    ($method:ident) => {
        scalar!(|args, info| with_pair(args, info, |pair| Ok(Datum::Bool(pair.$method()))))
    };
}

/// Code behind an operator, by the name of its function.
pub(crate) fn operator(function: &str) -> Option<Kernel> {
    Some(match function {
        "range_contains_elem" | "multirange_contains_elem" => scalar!(|args, info| contains(args, info, 0)),
        "elem_contained_by_range" | "elem_contained_by_multirange" => scalar!(|args, info| contains(args, info, 1)),
        "range_union" => range_result!(|pair| pair.range_union()),
        "range_minus" => range_result!(|pair| pair.range_difference()),
        "range_intersect" | "range_intersect_agg_transfn" => {
            range_result!(|pair| pair.intersection().map(|spans| spans.into_iter().next()))
        }
        "multirange_union" => {
            multirange_result!(|pair| Ok::<_, Error>(normalized(pair.kind, [pair.left, pair.right].concat())))
        }
        "multirange_minus" => multirange_result!(|pair| pair.difference()),
        "multirange_intersect" | "multirange_intersect_agg_transfn" => multirange_result!(|pair| pair.intersection()),
        function => {
            let (first, relation) = function.split_once('_')?;
            if !matches!(first, "range" | "multirange") {
                return None;
            }
            match relation.trim_end_matches("_multirange").trim_end_matches("_range") {
                "overlaps" => relation!(overlaps),
                "contains" => relation!(contains),
                "contained_by" => scalar!(|args, info| {
                    with_pair(args, info, |pair| {
                        let turned = Pair { kind: pair.kind, left: pair.right, right: pair.left };
                        Ok(Datum::Bool(turned.contains()))
                    })
                }),
                "before" => relation!(is_before),
                "after" => relation!(is_after),
                "overleft" => relation!(extends_not_right),
                "overright" => relation!(extends_not_left),
                "adjacent" => relation!(is_adjacent),
                _ => return None,
            }
        }
    })
}

fn with_pair<T>(args: &[Datum], info: &CallInfo, body: impl Fn(Pair) -> Result<T>) -> Result<T> {
    let (left, right) = (spans(&info.arg_types[0], &args[0])?, spans(&info.arg_types[1], &args[1])?);
    body(Pair { kind: kind_of(&info.arg_types[0])?, left: &left, right: &right })
}

/// `lower`, `upper` and flags; without flags `[)`.
fn construct(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let kind = kind_of(info.ty)?;
    let flags = match args.get(2) {
        None => "[)",
        Some(Datum::Bytes(flags)) => std::str::from_utf8(flags).unwrap_or_default(),
        Some(_) => return Err(Error::new("22000", "range constructor flags argument must not be null")),
    };
    let (lower_inclusive, upper_inclusive) = match flags {
        "[]" => (true, true),
        "[)" => (true, false),
        "(]" => (false, true),
        "()" => (false, false),
        _ => {
            return Err(Error::new("42601", "invalid range bound flags")
                .with_hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\"."));
        }
    };
    let bound = |at: usize, inclusive: bool| -> Result<Bound> {
        // Numerics come in any physical form.
        let value = match &args[at] {
            Datum::Null => None,
            value => Some(cast::cast_datum(&info.arg_types[at], &kind.subtype(), value, false, info.ctx)?),
        };
        Ok(Bound { value, inclusive, is_lower: at == 0 })
    };
    Ok(encode_range(kind, &make(kind, bound(0, lower_inclusive)?, bound(1, upper_inclusive)?)?))
}

/// The multirange of these ranges. 22004 if one is null.
fn of_ranges(ranges: &[Datum], kind: RangeKind) -> Result<Datum> {
    let mut all = Vec::new();
    for range in ranges {
        if range.is_null() {
            return Err(Error::new("22004", "multirange values cannot contain null members"));
        }
        all.extend(spans(&DataType::Range(kind), range)?);
    }
    Ok(encode_multirange(kind, &normalized(kind, all)))
}

/// `int4multirange(VARIADIC array)` and its kin, of an array of ranges.
pub fn multirange_of_array(array: Expr, kind: RangeKind) -> Expr {
    static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
        let kernel = scalar!(|args, info| {
            let kind = kind_of(info.ty)?;
            let Datum::Bytes(bytes) = &args[0] else { return Ok(Datum::Null) };
            let array = crate::array_value::decode(&DataType::Range(kind), bytes)?;
            if array.dimensions.len() > 1 {
                return Err(Error::new("21000", "multiranges cannot be constructed from multidimensional arrays"));
            }
            of_ranges(&array.elements, kind)
        });
        let function = |kind: &RangeKind| Function {
            oid: 0,
            name: kind.multirange_name().to_string(),
            args: vec![TypePattern::Exact(DataType::Array(Box::new(DataType::Range(*kind))))],
            variadic: false,
            optional: 0,
            ret: TypePattern::Exact(DataType::Multirange(*kind)),
            returns_set: false,
            strict: true,
            volatility: Volatility::Immutable,
            kernel: kernel.clone(),
        };
        RangeKind::ALL.iter().map(function).collect()
    });
    let functions: &'static [Function] = &FUNCTIONS;
    let at = RangeKind::ALL.iter().position(|known| *known == kind).unwrap_or(0);
    Expr::Call { function: &functions[at], args: vec![array], ty: DataType::Multirange(kind) }
}

/// Whether a value is in the range or multirange that is argument `at`.
fn contains(args: &[Datum], info: &CallInfo, at: usize) -> Result<Datum> {
    let ty = &info.arg_types[at];
    Ok(Datum::Bool(contains_value(kind_of(ty)?, &spans(ty, &args[at])?, &args[1 - at])))
}

fn unnest(args: &[Datum], info: &CallInfo) -> Result<SetRows> {
    let kind = kind_of(&info.arg_types[0])?;
    let spans = range_value::spans(&info.arg_types[0], &args[0])?;
    Ok(Box::new(spans.into_iter().map(move |span| Ok(encode_range(kind, &Some(span))))))
}

/// How far two bounds are from one another: days, seconds, or their difference.
fn distance(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    // Infinite bounds are far from the epoch that PostgreSQL counts from.
    let days = |days: i32| match days {
        DATE_INFINITY | DATE_NEG_INFINITY => f64::from(days),
        days => f64::from(days) - f64::from(POSTGRES_EPOCH_DAYS),
    };
    let micros = |micros: i64| match micros {
        TIMESTAMP_INFINITY | TIMESTAMP_NEG_INFINITY => micros as f64,
        micros => (micros - POSTGRES_EPOCH_MICROS) as f64,
    };
    Ok(Datum::F64(match (args, info.arg_types) {
        ([Datum::I32(a), Datum::I32(b)], [DataType::Date, _]) => days(*a) - days(*b),
        ([Datum::I32(a), Datum::I32(b)], _) => f64::from(*a) - f64::from(*b),
        ([Datum::I64(a), Datum::I64(b)], [DataType::Int8, _]) => *a as f64 - *b as f64,
        ([Datum::I64(a), Datum::I64(b)], [DataType::Timestamp | DataType::TimestampTz, _]) => {
            (micros(*a) - micros(*b)) / 1e6
        }
        ([a, b], [left, right]) => Numeric::from_datum(a, left)?.sub(&Numeric::from_datum(b, right)?)?.to_f64()?,
        _ => return Err(Error::internal("a distance is between two values")),
    }))
}
