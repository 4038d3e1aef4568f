//! Array functions (manual 9.19).

use super::arg::*;
use super::strings::text_of;
use super::{CallInfo, Kernel, array_columns, array_elements};
use crate::array_value::{self, ArrayValue, DIMENSIONS_MAX, Dimension};
use crate::error::{Error, Result};
use crate::eval::room::check_longer;
use crate::operators::{check_comparable, equal_datums};
use basalt_types::{DataType, Datum};

pub(crate) fn bind(name: &str, args: &str) -> Option<Kernel> {
    sizes(name).or_else(|| changes(name)).or_else(|| tests(name)).or_else(|| texts(name, args))
}

/// The elements of an array argument.
fn elements(args: &[Datum], at: usize, info: &CallInfo) -> Result<Vec<Datum>> {
    Ok(shaped(args, at, info)?.elements)
}

/// An array argument; null is one without elements.
fn shaped(args: &[Datum], at: usize, info: &CallInfo) -> Result<ArrayValue> {
    match (&args[at], info.arg_types[at].element()) {
        (Datum::Null, _) => Ok(ArrayValue::default()),
        (Datum::Bytes(bytes), Some(element)) => array_value::decode(element, bytes),
        (other, _) => Err(mismatch(&info.arg_types[at], other)),
    }
}

/// 42883 if there are elements, and no equality for them.
fn comparable_elements(array: &ArrayValue, ty: &DataType) -> Result<()> {
    if array.elements.is_empty() { Ok(()) } else { check_comparable(ty, "=") }
}

fn element_type(ty: &DataType) -> &DataType {
    ty.element().unwrap_or(ty)
}

fn encode(info: &CallInfo, array: &ArrayValue) -> Result<Datum> {
    array_value::encode_shaped(element_type(info.ty), array)
}

/// The dimension that a second argument names, counted from 1.
fn dimension(args: &[Datum], info: &CallInfo) -> Result<Option<Dimension>> {
    let Datum::I32(number) = args[1] else { return Ok(None) };
    let at = usize::try_from(i64::from(number) - 1).ok();
    at.and_then(|at| shaped(args, 0, info).map(|array| array.dimensions.get(at).copied()).transpose()).transpose()
}

fn sizes(name: &str) -> Option<Kernel> {
    Some(match name {
        "cardinality" => Kernel::Native {
            scalar: |args, info| Ok(Datum::I32(elements(args, 0, info)?.len() as i32)),
            vector: Some(array_columns::cardinality),
        },
        "array_length" => Kernel::Native {
            scalar: |args, info| {
                Ok(dimension(args, info)?.map_or(Datum::Null, |dimension| Datum::I32(dimension.length as i32)))
            },
            vector: Some(array_columns::length),
        },
        "array_upper" => scalar!(|args, info| {
            Ok(dimension(args, info)?.map_or(Datum::Null, |dimension| Datum::I32(dimension.upper())))
        }),
        "array_lower" => scalar!(|args, info| {
            Ok(dimension(args, info)?.map_or(Datum::Null, |dimension| Datum::I32(dimension.lower)))
        }),
        "array_ndims" => scalar!(|args, info| {
            let count = shaped(args, 0, info)?.dimensions.len();
            Ok(if count == 0 { Datum::Null } else { Datum::I32(count as i32) })
        }),
        "array_dims" => scalar!(|args, info| {
            let array = shaped(args, 0, info)?;
            let bounds = array.dimensions.iter().map(|bound| format!("[{}:{}]", bound.lower, bound.upper()));
            Ok(if array.dimensions.is_empty() { Datum::Null } else { Datum::text(&bounds.collect::<String>()) })
        }),
        _ => return None,
    })
}

/// 0A000 for an array of more than one dimension.
fn flat(array: &ArrayValue, what: &str) -> Result<()> {
    match array.dimensions.len() {
        0 | 1 => Ok(()),
        _ => Err(Error::not_supported(format!("{what} multidimensional arrays is not supported"))),
    }
}

/// The array with one element more, at its end or its start.
fn grown(mut array: ArrayValue, value: &Datum, at_end: bool) -> Result<ArrayValue> {
    match array.dimensions.as_mut_slice() {
        [] => return Ok(ArrayValue::plain(vec![value.clone()])),
        [dimension] => {
            let bound = if at_end { dimension.upper().checked_add(1) } else { dimension.lower.checked_sub(1) };
            bound.ok_or_else(|| Error::out_of_range("integer"))?;
            dimension.length += 1;
        }
        _ => return Err(Error::new("22000", "argument must be empty or one-dimensional array")),
    }
    let at = if at_end { array.elements.len() } else { 0 };
    array.elements.insert(at, value.clone());
    Ok(array)
}

/// `left || right` of arrays: of one number of dimensions, or one an element of the other.
fn concatenated(left: ArrayValue, right: ArrayValue) -> Result<ArrayValue> {
    if left.dimensions.is_empty() {
        return Ok(right);
    }
    if right.dimensions.is_empty() {
        return Ok(left);
    }
    let misfit = |detail: String| Error::new("2202E", "cannot concatenate incompatible arrays").with_detail(detail);
    let (ranks, inner) = ((left.dimensions.len(), right.dimensions.len()), "Arrays with differing element dimensions");
    let (mut dimensions, fits) = match ranks.0 as i64 - ranks.1 as i64 {
        0 => {
            let mut dimensions = left.dimensions.clone();
            dimensions[0].length += right.dimensions[0].length;
            (dimensions, left.dimensions[1..] == right.dimensions[1..])
        }
        -1 => (right.dimensions.clone(), left.dimensions == right.dimensions[1..]),
        1 => (left.dimensions.clone(), left.dimensions[1..] == right.dimensions),
        _ => {
            let detail =
                format!("Arrays of {} and {} dimensions are not compatible for concatenation.", ranks.0, ranks.1);
            return Err(misfit(detail));
        }
    };
    if !fits {
        return Err(misfit(format!("{inner} are not compatible for concatenation.")));
    }
    if ranks.0 != ranks.1 {
        dimensions[0].length += 1;
    }
    Ok(ArrayValue { dimensions, elements: [left.elements, right.elements].concat() })
}

fn changes(name: &str) -> Option<Kernel> {
    Some(match name {
        "array_append" => scalar!(|args, info| encode(info, &grown(shaped(args, 0, info)?, &args[1], true)?)),
        "array_prepend" => scalar!(|args, info| encode(info, &grown(shaped(args, 1, info)?, &args[0], false)?)),
        "array_cat" => scalar!(|args, info| match (&args[0], &args[1]) {
            (Datum::Null, other) | (other, Datum::Null) => Ok(other.clone()),
            _ => encode(info, &concatenated(shaped(args, 0, info)?, shaped(args, 1, info)?)?),
        }),
        "array_remove" => scalar!(|args, info| {
            if args[0].is_null() {
                return Ok(Datum::Null);
            }
            let ty = element_type(info.ty);
            let mut array = shaped(args, 0, info)?;
            flat(&array, "removing elements from")?;
            comparable_elements(&array, ty)?;
            array.elements.retain(|value| !equal_datums(ty, value, &args[1]));
            match array.dimensions.first_mut() {
                Some(dimension) => dimension.length = array.elements.len() as u32,
                None => return Ok(args[0].clone()),
            }
            if array.elements.is_empty() { encode(info, &ArrayValue::default()) } else { encode(info, &array) }
        }),
        "array_replace" => scalar!(|args, info| {
            if args[0].is_null() {
                return Ok(Datum::Null);
            }
            let ty = element_type(info.ty);
            let mut all = shaped(args, 0, info)?;
            comparable_elements(&all, ty)?;
            let found = all.elements.iter_mut().filter(|value| equal_datums(ty, value, &args[1]));
            found.for_each(|value| *value = args[2].clone());
            encode(info, &all)
        }),
        "array_fill" => scalar!(filled),
        "array_larger" => scalar!(|args, info| Ok(extreme(args, info, std::cmp::Ordering::Less))),
        "array_smaller" => scalar!(|args, info| Ok(extreme(args, info, std::cmp::Ordering::Greater))),
        "trim_array" => scalar!(|args, info| {
            let mut array = shaped(args, 0, info)?;
            let Datum::I32(count) = args[1] else { return Ok(Datum::Null) };
            let length = array.dimensions.first().map_or(0, |dimension| dimension.length);
            let kept = u32::try_from(count).ok().and_then(|count| length.checked_sub(count));
            let Some(kept) = kept else {
                let message = format!("number of elements to trim must be between 0 and {length}");
                return Err(Error::new("2202E", message));
            };
            if kept == 0 {
                return encode(info, &ArrayValue::default());
            }
            array.elements.truncate(array.elements.len() / length as usize * kept as usize);
            array.dimensions[0].length = kept;
            array.dimensions.iter_mut().for_each(|dimension| dimension.lower = 1);
            encode(info, &array)
        }),
        _ => return None,
    })
}

/// The second array if the first compares with it as said, else the first.
fn extreme(args: &[Datum], info: &CallInfo, second: std::cmp::Ordering) -> Datum {
    let ordering = crate::operators::compare_datums(&info.arg_types[0], &args[0], &args[1]);
    args[usize::from(ordering == second)].clone()
}

/// `array_fill(value, lengths [, lower bounds])`.
fn filled(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    if args[1..].iter().any(Datum::is_null) {
        return Err(Error::new("22004", "dimension array or low bound array cannot be null"));
    }
    let numbers = |at: usize| -> Result<Vec<i32>> {
        let array = shaped(args, at, info)?;
        if array.dimensions.len() > 1 {
            let error = Error::new("2202E", "wrong number of array subscripts");
            return Err(error.with_detail("Dimension array must be one dimensional."));
        }
        let number = |value: &Datum| match value {
            Datum::I32(number) => Ok(*number),
            _ => Err(Error::new("22004", "dimension values cannot be null")),
        };
        array.elements.iter().map(number).collect()
    };
    let lengths = numbers(1)?;
    if lengths.len() > DIMENSIONS_MAX {
        return Err(array_value::too_many_dimensions(lengths.len()));
    }
    let lowers = if args.len() > 2 { numbers(2)? } else { vec![1; lengths.len()] };
    if lowers.len() != lengths.len() {
        let error = Error::new("2202E", "wrong number of array subscripts");
        return Err(error.with_detail("Low bound array has different size than dimensions array."));
    }
    let mut count = usize::from(!lengths.is_empty());
    let mut dimensions = Vec::with_capacity(lengths.len());
    for (length, lower) in lengths.iter().zip(lowers) {
        let length = u32::try_from(*length).map_err(|_| array_value::too_large())?;
        count = count.checked_mul(length as usize).ok_or_else(array_value::too_large)?;
        dimensions.push(Dimension { lower, length });
    }
    if count > array_value::ELEMENTS_MAX {
        return Err(array_value::too_large());
    }
    if count == 0 {
        return encode(info, &ArrayValue::default());
    }
    array_value::encode_filled(element_type(info.ty), &dimensions, &args[0])
}

fn has_all(ty: &DataType, left: &[Datum], right: &[Datum]) -> bool {
    right
        .iter()
        .all(|wanted| !wanted.is_null() && left.iter().any(|found| !found.is_null() && equal_datums(ty, found, wanted)))
}

fn tests(name: &str) -> Option<Kernel> {
    Some(match name {
        "arraycontains" => Kernel::Native {
            scalar: |args, info| {
                let ty = element_type(&info.arg_types[0]);
                Ok(Datum::Bool(has_all(ty, &elements(args, 0, info)?, &elements(args, 1, info)?)))
            },
            vector: Some(array_elements::contains),
        },
        "arraycontained" => Kernel::Native {
            scalar: |args, info| {
                let ty = element_type(&info.arg_types[0]);
                Ok(Datum::Bool(has_all(ty, &elements(args, 1, info)?, &elements(args, 0, info)?)))
            },
            vector: Some(array_elements::contained),
        },
        "arrayoverlap" => Kernel::Native {
            scalar: |args, info| {
                let ty = element_type(&info.arg_types[0]);
                let (left, right) = (elements(args, 0, info)?, elements(args, 1, info)?);
                let shared = |value: &Datum| {
                    !value.is_null() && right.iter().any(|other| !other.is_null() && equal_datums(ty, value, other))
                };
                Ok(Datum::Bool(left.iter().any(shared)))
            },
            vector: Some(array_elements::overlaps),
        },
        "array_position" => scalar!(|args, info| {
            if args[0].is_null() {
                return Ok(Datum::Null);
            }
            let ty = element_type(&info.arg_types[0]);
            let array = shaped(args, 0, info)?;
            flat(&array, "searching for elements in")?;
            comparable_elements(&array, ty)?;
            if array.elements.is_empty() || (args[1].is_null() && !array.elements.iter().any(Datum::is_null)) {
                return Ok(Datum::Null);
            }
            let lower = array.dimensions.first().map_or(1, |dimension| i64::from(dimension.lower));
            let start = match args.get(2) {
                Some(Datum::I32(start)) => usize::try_from(i64::from(*start) - lower).unwrap_or(0),
                Some(_) => return Err(Error::new("22004", "initial position must not be null")),
                None => 0,
            };
            let found = array.elements.iter().skip(start).position(|value| equal_datums(ty, value, &args[1]));
            Ok(found.map_or(Datum::Null, |at| Datum::I32((lower + (at + start) as i64) as i32)))
        }),
        "array_positions" => scalar!(|args, info| {
            if args[0].is_null() {
                return Ok(Datum::Null);
            }
            let ty = element_type(&info.arg_types[0]);
            let array = shaped(args, 0, info)?;
            flat(&array, "searching for elements in")?;
            comparable_elements(&array, ty)?;
            let lower = array.dimensions.first().map_or(1, |dimension| i64::from(dimension.lower));
            let all = array.elements.into_iter().enumerate();
            let found: Vec<Datum> = all
                .filter(|(_, value)| equal_datums(ty, value, &args[1]))
                .map(|(at, _)| Datum::I32((lower + at as i64) as i32))
                .collect();
            array_value::encode(&DataType::Int4, &found)
        }),
        _ => return None,
    })
}

fn to_text(args: &[Datum], info: &CallInfo, null: Option<&str>) -> Result<Datum> {
    let delimiter = Txt::of(&args[1], &info.arg_types[1])?;
    let types = [element_type(&info.arg_types[0]).clone()];
    let one = CallInfo { arg_types: &types, ..*info };
    let mut pieces = Vec::new();
    let mut bytes = 0;
    for value in elements(args, 0, info)? {
        match (value.is_null(), null) {
            (true, None) => continue,
            (true, Some(null)) => pieces.push(null.to_string()),
            (false, _) => pieces.push(text_of(&value, 0, &one)?.into_owned()),
        }
        let more = pieces.last().map_or(0, String::len) + delimiter.len();
        check_longer(bytes, more)?;
        bytes += more;
    }
    Ok(Datum::text(&pieces.join(delimiter)))
}

/// The pieces of a text: characters without a delimiter, one piece for an empty one.
pub(super) fn pieces(args: &[Datum], info: &CallInfo) -> Result<Option<Vec<Datum>>> {
    let text = |at: usize| match args.get(at) {
        None | Some(Datum::Null) => Ok(None),
        Some(value) => Txt::of(value, &info.arg_types[at]).map(Some),
    };
    let (Some(whole), delimiter, null) = (text(0)?, text(1)?, text(2)?) else { return Ok(None) };
    let made = |piece: &str| if Some(piece) == null { Datum::Null } else { Datum::text(piece) };
    Ok(Some(match delimiter {
        _ if whole.is_empty() => Vec::new(),
        None => whole.chars().map(|char| made(char.encode_utf8(&mut [0; 4]))).collect(),
        Some("") => vec![made(whole)],
        Some(delimiter) => whole.split(delimiter).map(made).collect(),
    }))
}

fn texts(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("array_to_string", "anyarray,text") => scalar!(|args, info| to_text(args, info, None)),
        ("array_to_string", _) => scalar!(|args, info| match (&args[0], &args[1], &args[2]) {
            (Datum::Null, ..) | (_, Datum::Null, _) => Ok(Datum::Null),
            (_, _, Datum::Null) => to_text(args, info, None),
            (_, _, null) => to_text(args, info, Some(Txt::of(null, &info.arg_types[2])?)),
        }),
        ("string_to_array", _) => scalar!(|args, info| match pieces(args, info)? {
            Some(pieces) => array_value::encode(&DataType::Text, &pieces),
            None => Ok(Datum::Null),
        }),
        _ => return None,
    })
}
