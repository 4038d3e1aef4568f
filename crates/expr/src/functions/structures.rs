//! What the grammar of rows and subscripts becomes: calls that no name in SQL reaches (manual 4.2.3, 4.2.4,
//! 4.2.12, 4.2.13, 8.16.3 to 8.16.5).

use super::arg::*;
use super::{CallInfo, Function, Kernel, TypePattern, VectorKernel, Volatility, array_columns, json};
use crate::array_value::{self, ArrayValue, Dimension};
use crate::error::{Error, Result};
use crate::record_value;
use crate::tree::Expr;
use basalt_types::{CompositeDef, DataType, Datum};
use std::sync::{Arc, LazyLock};

fn internal(name: &str, strict: bool, scalar: super::ScalarKernel) -> &'static Function {
    internal_with(name, strict, Kernel::Native { scalar, vector: None })
}

fn internal_with(name: &str, strict: bool, kernel: Kernel) -> &'static Function {
    Box::leak(Box::new(Function {
        oid: 0,
        name: name.to_string(),
        args: vec![TypePattern::Any],
        variadic: true,
        optional: 0,
        ret: TypePattern::Any,
        returns_set: false,
        strict,
        volatility: Volatility::Immutable,
        kernel,
    }))
}

static ROW: LazyLock<&Function> =
    LazyLock::new(|| internal("row", false, |args, info| record_value::encode(record_value::def_of(info.ty)?, args)));

static FIELD: LazyLock<&Function> = LazyLock::new(|| {
    internal("row_field", true, |args, info| {
        let mut fields = record_value::decode(record_value::def_of(&info.arg_types[0])?, &args[0])?;
        match &args[1] {
            Datum::I32(at) if (*at as usize) < fields.len() => Ok(fields.swap_remove(*at as usize)),
            other => Err(mismatch(&DataType::Int4, other)),
        }
    })
});

static SET_FIELD: LazyLock<&Function> = LazyLock::new(|| {
    internal("row_set_field", false, |args, info| {
        let composite = record_value::def_of(info.ty)?;
        let mut fields = match &args[0] {
            Datum::Null => vec![Datum::Null; composite.attributes.len()],
            value => record_value::decode(composite, value)?,
        };
        match &args[1] {
            Datum::I32(at) if (*at as usize) < fields.len() => fields[*at as usize] = args[2].clone(),
            other => return Err(mismatch(&DataType::Int4, other)),
        }
        record_value::encode(composite, &fields)
    })
});

/// A row is null if it or all its fields are, not null if it is there and none of its fields is null.
fn null_test(args: &[Datum], info: &CallInfo, wanted: bool) -> Result<Datum> {
    if args[0].is_null() {
        return Ok(Datum::Bool(wanted));
    }
    let composite = record_value::def_of(&info.arg_types[0])?;
    let fields = record_value::decode(composite, &args[0])?;
    Ok(Datum::Bool(composite.live().all(|(at, _)| fields[at].is_null() == wanted)))
}

static IS_NULL: LazyLock<&Function> =
    LazyLock::new(|| internal("row_is_null", false, |args, info| null_test(args, info, true)));
static IS_NOT_NULL: LazyLock<&Function> =
    LazyLock::new(|| internal("row_is_not_null", false, |args, info| null_test(args, info, false)));

fn subscript_of(value: &Datum) -> Result<i32> {
    match value {
        Datum::I32(value) => Ok(*value),
        other => Err(mismatch(&DataType::Int4, other)),
    }
}

fn array_of(value: &Datum, ty: &DataType) -> Result<ArrayValue> {
    match (value, ty.element()) {
        (Datum::Null, Some(_)) => Ok(ArrayValue::default()),
        (Datum::Bytes(bytes), Some(element)) => array_value::decode(element, bytes),
        (other, _) => Err(mismatch(ty, other)),
    }
}

/// Where subscripts point in storage order; `None` outside of the array.
fn offset_of(dimensions: &[Dimension], subscripts: &[i32]) -> Option<usize> {
    let mut offset = 0usize;
    for (dimension, subscript) in dimensions.iter().zip(subscripts) {
        let at = u32::try_from(i64::from(*subscript) - i64::from(dimension.lower)).ok()?;
        if at >= dimension.length {
            return None;
        }
        offset = offset * dimension.length as usize + at as usize;
    }
    Some(offset)
}

fn element_at(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let mut array = array_of(&args[0], &info.arg_types[0])?;
    let subscripts = args[1..].iter().map(subscript_of).collect::<Result<Vec<_>>>()?;
    if subscripts.len() != array.dimensions.len() {
        return Ok(Datum::Null);
    }
    let at = offset_of(&array.dimensions, &subscripts);
    Ok(at.map_or(Datum::Null, |at| array.elements.swap_remove(at)))
}

static SUBSCRIPT: LazyLock<&Function> = LazyLock::new(|| {
    let vector: Option<VectorKernel> = Some(array_columns::subscript);
    internal_with("array_subscript", true, Kernel::Native { scalar: element_at, vector })
});

/// The bounds of a slice: bit 2n of `given` says that the nth lower bound is given, the next one the upper.
struct Bounds {
    lower: Option<i32>,
    upper: Option<i32>,
}

fn bounds_of(given: &Datum, args: &[Datum]) -> Result<Vec<Bounds>> {
    let given = subscript_of(given)?;
    let pairs = args.chunks_exact(2).enumerate();
    pairs
        .map(|(nth, pair)| {
            let bound = |at: usize| match given >> (2 * nth + at) & 1 {
                1 => subscript_of(&pair[at]).map(Some),
                _ => Ok(None),
            };
            Ok(Bounds { lower: bound(0)?, upper: bound(1)? })
        })
        .collect()
}

/// Visits the storage offsets of a box inside an array, in order. `spans` are (first, count) per dimension.
fn each_offset(dimensions: &[Dimension], spans: &[(usize, usize)], visit: &mut impl FnMut(usize)) {
    fn descend(dimensions: &[Dimension], spans: &[(usize, usize)], base: usize, visit: &mut impl FnMut(usize)) {
        let (Some((dimension, dimensions)), Some(((first, count), spans))) =
            (dimensions.split_first(), spans.split_first())
        else {
            return visit(base);
        };
        for at in *first..first + count {
            descend(dimensions, spans, base * dimension.length as usize + at, visit);
        }
    }
    descend(dimensions, spans, 0, visit);
}

static SLICE: LazyLock<&Function> = LazyLock::new(|| {
    internal("array_slice", true, |args, info| {
        let array = array_of(&args[0], &info.arg_types[0])?;
        let bounds = bounds_of(&args[1], &args[2..])?;
        let element = element_of(info.ty)?;
        array_value::encode_shaped(element, &slice(&array, &bounds)?)
    })
});

fn slice(array: &ArrayValue, bounds: &[Bounds]) -> Result<ArrayValue> {
    if array.dimensions.len() < bounds.len() {
        return Ok(ArrayValue::default());
    }
    let mut spans = Vec::with_capacity(array.dimensions.len());
    for (nth, dimension) in array.dimensions.iter().enumerate() {
        let (lower, upper) = bounds.get(nth).map_or((None, None), |bounds| (bounds.lower, bounds.upper));
        let lower = lower.unwrap_or(dimension.lower).max(dimension.lower);
        let upper = upper.unwrap_or(dimension.upper()).min(dimension.upper());
        if lower > upper {
            return Ok(ArrayValue::default());
        }
        let first = (i64::from(lower) - i64::from(dimension.lower)) as usize;
        spans.push((first, (i64::from(upper) - i64::from(lower) + 1) as usize));
    }
    let mut elements = Vec::with_capacity(spans.iter().map(|(_, count)| count).product());
    each_offset(&array.dimensions, &spans, &mut |at| elements.push(array.elements[at].clone()));
    let dimensions = spans.iter().map(|(_, count)| Dimension { lower: 1, length: *count as u32 }).collect();
    Ok(ArrayValue { dimensions, elements })
}

/// `array[…] := value`: array, value, subscripts.
static SET_ELEMENT: LazyLock<&Function> = LazyLock::new(|| {
    internal("array_set_element", false, |args, info| {
        let element = element_of(info.ty)?;
        let mut array = array_of(&args[0], info.ty)?;
        let subscripts = given_subscripts(&args[2..])?;
        set_element(&mut array, &subscripts, args[1].clone())?;
        array_value::encode_shaped(element, &array)
    })
});

fn given_subscripts(args: &[Datum]) -> Result<Vec<i32>> {
    if args.iter().any(Datum::is_null) {
        return Err(Error::new("22004", "array subscript in assignment must not be null"));
    }
    args.iter().map(subscript_of).collect()
}

fn element_of(ty: &DataType) -> Result<&DataType> {
    ty.element().ok_or_else(|| Error::internal(format!("{} is no array", ty.sql_name())))
}

fn wrong_subscripts() -> Error {
    Error::new("2202E", "wrong number of array subscripts")
}

fn out_of_range() -> Error {
    Error::new("2202E", "array subscript out of range")
}

fn set_element(array: &mut ArrayValue, subscripts: &[i32], value: Datum) -> Result<()> {
    if array.dimensions.is_empty() {
        array.dimensions = subscripts.iter().map(|lower| Dimension { lower: *lower, length: 1 }).collect();
        array.elements = vec![value];
        return Ok(());
    }
    if array.dimensions.len() != subscripts.len() {
        return Err(wrong_subscripts());
    }
    if let [subscript] = subscripts {
        let at = make_room(array, *subscript, *subscript)?;
        array.elements[at] = value;
        return Ok(());
    }
    let at = offset_of(&array.dimensions, subscripts).ok_or_else(out_of_range)?;
    array.elements[at] = value;
    Ok(())
}

/// Lengthens an array of one dimension so that it has these subscripts; where the first of them lies.
fn make_room(array: &mut ArrayValue, first: i32, last: i32) -> Result<usize> {
    let dimension = &mut array.dimensions[0];
    let (lower, upper) = (i64::from(dimension.lower), i64::from(dimension.upper()));
    let (first, last) = (i64::from(first), i64::from(last));
    let (new_lower, new_upper) = (lower.min(first), upper.max(last));
    let length = u32::try_from(new_upper - new_lower + 1).map_err(|_| array_value::too_large())?;
    if length as usize > array_value::ELEMENTS_MAX || new_upper >= i64::from(i32::MAX) {
        return Err(array_value::too_large());
    }
    let before = vec![Datum::Null; (lower - new_lower) as usize];
    array.elements.splice(0..0, before);
    array.elements.resize(length as usize, Datum::Null);
    *dimension = Dimension { lower: new_lower as i32, length };
    Ok((first - new_lower) as usize)
}

/// `array[…:…] := values`: array, values, which bounds are given, bounds.
static SET_SLICE: LazyLock<&Function> = LazyLock::new(|| {
    internal("array_set_slice", false, |args, info| {
        let element = element_of(info.ty)?;
        if args[3..].iter().any(Datum::is_null) {
            return Err(Error::new("22004", "array subscript in assignment must not be null"));
        }
        let mut array = array_of(&args[0], info.ty)?;
        if args[1].is_null() {
            return Ok(args[0].clone());
        }
        let source = array_of(&args[1], &info.arg_types[1])?;
        let bounds = bounds_of(&args[2], &args[3..])?;
        set_slice(&mut array, &bounds, source)?;
        array_value::encode_shaped(element, &array)
    })
});

fn set_slice(array: &mut ArrayValue, bounds: &[Bounds], source: ArrayValue) -> Result<()> {
    let reversed = || Error::new("2202E", "upper bound cannot be less than lower bound");
    let length_of = |lower: i32, upper: i32| i64::from(upper) - i64::from(lower) + 1;
    let small = || Error::new("2202E", "source array too small");
    if array.dimensions.is_empty() {
        let mut dimensions = Vec::with_capacity(bounds.len());
        let mut count = 1usize;
        for bounds in bounds {
            let (Some(lower), Some(upper)) = (bounds.lower, bounds.upper) else {
                return Err(Error::new("2202E", "array slice subscript must provide both boundaries").with_detail(
                    "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
                ));
            };
            if lower > upper {
                return Err(reversed());
            }
            let length = u32::try_from(length_of(lower, upper)).map_err(|_| array_value::too_large())?;
            count = count.checked_mul(length as usize).ok_or_else(array_value::too_large)?;
            dimensions.push(Dimension { lower, length });
        }
        if source.elements.len() < count {
            return Err(small());
        }
        array.elements = source.elements.into_iter().take(count).collect();
        array.dimensions = dimensions;
        return Ok(());
    }
    if array.dimensions.len() < bounds.len() {
        return Err(wrong_subscripts());
    }
    let mut spans = Vec::with_capacity(array.dimensions.len());
    let is_single = array.dimensions.len() == 1;
    for (nth, dimension) in array.dimensions.clone().into_iter().enumerate() {
        let (lower, upper) = bounds.get(nth).map_or((None, None), |bounds| (bounds.lower, bounds.upper));
        let (lower, upper) = (lower.unwrap_or(dimension.lower), upper.unwrap_or(dimension.upper()));
        if lower > upper {
            return Err(reversed());
        }
        let count = length_of(lower, upper);
        if is_single {
            if source.elements.len() < usize::try_from(count).map_err(|_| small())? {
                return Err(small());
            }
            spans.push((make_room(array, lower, upper)?, count as usize));
        } else if lower < dimension.lower || upper > dimension.upper() {
            return Err(out_of_range());
        } else {
            spans.push(((i64::from(lower) - i64::from(dimension.lower)) as usize, count as usize));
        }
    }
    if source.elements.len() < spans.iter().map(|(_, count)| count).product() {
        return Err(small());
    }
    let dimensions = array.dimensions.clone();
    let mut values = source.elements.into_iter();
    each_offset(&dimensions, &spans, &mut |at| array.elements[at] = values.next().unwrap_or(Datum::Null));
    Ok(())
}

/// `ROW(…)` of a composite type: one expression per attribute that ever was.
pub fn row(composite: Arc<CompositeDef>, fields: Vec<Expr>) -> Expr {
    Expr::Call { function: *ROW, args: fields, ty: DataType::Composite(composite) }
}

/// The fields of a row constructor that is still one.
pub fn row_fields(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Call { function, args, .. } if *function == *ROW => Some(args),
        _ => None,
    }
}

/// The attribute at a position of a composite value.
pub fn field(value: Expr, at: usize) -> Expr {
    if let Some(fields) = row_fields(&value) {
        return fields[at].clone();
    }
    let ty = value.ty().composite().map_or(DataType::Unknown, |composite| composite.attributes[at].ty.clone());
    Expr::Call { function: *FIELD, args: vec![value, Expr::int4(at as i32)], ty }
}

/// `value` with another attribute at a position; a null value has nulls for the rest.
pub fn set_field(value: Expr, at: usize, field: Expr) -> Expr {
    let ty = value.ty();
    Expr::Call { function: *SET_FIELD, args: vec![value, Expr::int4(at as i32), field], ty }
}

/// `IS [NOT] NULL` of a composite value.
pub fn null_test_of(value: Expr, wanted: bool) -> Expr {
    Expr::Call { function: if wanted { *IS_NULL } else { *IS_NOT_NULL }, args: vec![value], ty: DataType::Bool }
}

/// `array[…][…]`; the subscripts are integers.
pub fn subscript(array: Expr, subscripts: Vec<Expr>) -> Expr {
    let ty = array.ty().element().cloned().unwrap_or(DataType::Unknown);
    Expr::Call { function: *SUBSCRIPT, args: std::iter::once(array).chain(subscripts).collect(), ty }
}

/// Bounds as arguments: which are given, then all of them.
fn bound_args(bounds: Vec<(Option<Expr>, Option<Expr>)>) -> impl Iterator<Item = Expr> {
    let mut given = 0;
    let mut args = Vec::with_capacity(2 * bounds.len());
    for (at, bound) in bounds.into_iter().flat_map(|(lower, upper)| [lower, upper]).enumerate() {
        given |= i32::from(bound.is_some()) << at;
        args.push(bound.unwrap_or_else(|| Expr::int4(0)));
    }
    std::iter::once(Expr::int4(given)).chain(args)
}

/// `array[…:…]`, a bound that is left out being the array's own.
pub fn array_slice(array: Expr, bounds: Vec<(Option<Expr>, Option<Expr>)>) -> Expr {
    let ty = array.ty().underlying().clone();
    Expr::Call { function: *SLICE, args: std::iter::once(array).chain(bound_args(bounds)).collect(), ty }
}

/// An array with another element, which is of the element type.
pub fn set_array_element(array: Expr, subscripts: Vec<Expr>, value: Expr) -> Expr {
    let ty = array.ty();
    Expr::Call { function: *SET_ELEMENT, args: [array, value].into_iter().chain(subscripts).collect(), ty }
}

/// An array with other elements in a slice; `values` is of the array's type.
pub fn set_array_slice(array: Expr, bounds: Vec<(Option<Expr>, Option<Expr>)>, values: Expr) -> Expr {
    let ty = array.ty();
    Expr::Call { function: *SET_SLICE, args: [array, values].into_iter().chain(bound_args(bounds)).collect(), ty }
}

static ONE: LazyLock<&Function> = LazyLock::new(|| {
    Box::leak(Box::new(Function {
        oid: 0,
        name: "set_of_one".into(),
        args: vec![TypePattern::Any],
        variadic: false,
        optional: 0,
        ret: TypePattern::Any,
        returns_set: true,
        strict: false,
        volatility: Volatility::Immutable,
        kernel: Kernel::Set(|args, _| Ok(Box::new(std::iter::once(Ok(args[0].clone()))))),
    }))
});

/// A value as a set of one row.
pub fn set_of_one(value: Expr) -> Expr {
    let ty = value.ty();
    Expr::Call { function: *ONE, args: vec![value], ty }
}

static JSON_SUBSCRIPT: LazyLock<&Function> = LazyLock::new(|| internal("jsonb_subscript", true, json::subscript));
static JSON_ASSIGN: LazyLock<&Function> = LazyLock::new(|| internal("jsonb_assign", false, json::assign));

/// `document[…][…]`; the subscripts are integers or text.
pub fn json_subscript(document: Expr, subscripts: Vec<Expr>) -> Expr {
    let args = std::iter::once(document).chain(subscripts).collect();
    Expr::Call { function: *JSON_SUBSCRIPT, args, ty: DataType::Jsonb }
}

/// A document with another value at its subscripts.
pub fn set_json_element(document: Expr, subscripts: Vec<Expr>, value: Expr) -> Expr {
    let args = [document, value].into_iter().chain(subscripts).collect();
    Expr::Call { function: *JSON_ASSIGN, args, ty: DataType::Jsonb }
}
