//! Containment and existence: `@>`, `<@`, `?`, `?|`, `?&` (manual 8.14.3), and the functions behind
//! comparisons.

use super::strings;
use crate::error::Result;
use crate::functions::Kernel;
use crate::functions::arg::*;
use crate::io::json::{DEPTH_MAX, too_deep};
use ahash::AHashSet;
use basalt_types::Datum;
use basalt_types::jsonb::{self, Kind};

/// From here on the elements of an array are found by hash.
const HASHED_FROM: usize = 8;

pub(super) fn bind(name: &str) -> Option<Kernel> {
    Some(match name {
        "jsonb_contains" => kernel!(|a: Txt, b: Txt| -> Bit { contains(a, b) }),
        "jsonb_contained" => kernel!(|a: Txt, b: Txt| -> Bit { contains(b, a) }),
        "jsonb_exists" => kernel!(|json: Txt, key: Txt| -> Bit { Ok(has_key(json, key)) }),
        "jsonb_exists_any" => scalar!(|args, info| {
            let (json, keys) = (Txt::of(&args[0], &info.arg_types[0])?, keys_of(&args[1], &info.arg_types[1])?);
            Ok(Datum::Bool(count_of(json, &keys) > 0))
        }),
        "jsonb_exists_all" => scalar!(|args, info| {
            let (json, keys) = (Txt::of(&args[0], &info.arg_types[0])?, keys_of(&args[1], &info.arg_types[1])?);
            Ok(Datum::Bool(count_of(json, &keys) == keys.len()))
        }),
        "jsonb_cmp" => kernel!(|a: Txt, b: Txt| -> I4 { Ok(jsonb::compare(a, b) as i32) }),
        "jsonb_eq" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(jsonb::compare(a, b).is_eq()) }),
        "jsonb_ne" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(jsonb::compare(a, b).is_ne()) }),
        "jsonb_lt" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(jsonb::compare(a, b).is_lt()) }),
        "jsonb_le" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(jsonb::compare(a, b).is_le()) }),
        "jsonb_gt" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(jsonb::compare(a, b).is_gt()) }),
        "jsonb_ge" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(jsonb::compare(a, b).is_ge()) }),
        _ => return None,
    })
}

fn keys_of(array: &Datum, ty: &basalt_types::DataType) -> Result<AHashSet<String>> {
    Ok(strings(array, ty)?.into_iter().flatten().collect())
}

/// The strings that `?` sees: an object's keys, an array's string elements, a string alone.
fn top_strings(json: &str) -> impl Iterator<Item = &str> {
    let kind = jsonb::kind(json);
    let alone = (kind == Kind::String).then_some(json);
    let elements = jsonb::elements(json).filter(|element| element.starts_with('"'));
    jsonb::members(json).map(|(key, _)| key).chain(elements).chain(alone)
}

fn has_key(json: &str, key: &str) -> bool {
    match jsonb::kind(json) {
        Kind::Object => jsonb::member(json, key).is_some(),
        _ => top_strings(json).any(|found| jsonb::unquote(found) == key),
    }
}

/// How many of the keys are there.
fn count_of(json: &str, keys: &AHashSet<String>) -> usize {
    let mut found: AHashSet<&str> = AHashSet::new();
    for quoted in top_strings(json) {
        if let Some(key) = keys.get(&*jsonb::unquote(quoted)) {
            found.insert(key);
        }
    }
    found.len()
}

/// `left @> right`. An array contains a scalar alone as if it were an array of it.
/// 54001 if both are nested too deep.
fn contains(left: &str, right: &str) -> Result<bool> {
    match (jsonb::kind(left), jsonb::kind(right)) {
        (Kind::Array, kind) if kind.is_scalar() => array_contains(left, std::iter::once(right), 0),
        (a, b) if a.is_scalar() && b.is_scalar() => Ok(same_scalar(left, right)),
        _ => deep_contains(left, right, 0),
    }
}

/// `depth`: the containers around each.
fn deep_contains(left: &str, right: &str, depth: usize) -> Result<bool> {
    // No document is so deep, unless it was made before that was checked.
    if depth >= DEPTH_MAX && !jsonb::kind(right).is_scalar() {
        return Err(too_deep());
    }
    match (jsonb::kind(left), jsonb::kind(right)) {
        (Kind::Object, Kind::Object) => object_contains(left, right, depth),
        (Kind::Array, Kind::Array) => array_contains(left, jsonb::elements(right), depth),
        (a, b) => Ok(a == b && a.is_scalar() && same_scalar(left, right)),
    }
}

fn same_scalar(left: &str, right: &str) -> bool {
    left == right || (jsonb::kind(left) == Kind::Number && jsonb::compare(left, right).is_eq())
}

/// Both sides' keys stand in one order, so that one pass over each is enough.
fn object_contains(left: &str, right: &str, depth: usize) -> Result<bool> {
    let mut members = jsonb::members(left);
    for (wanted_key, wanted) in jsonb::members(right) {
        let wanted_key = jsonb::unquote(wanted_key);
        let found = members.find_map(|(key, value)| match jsonb::compare_keys(&jsonb::unquote(key), &wanted_key) {
            std::cmp::Ordering::Less => None,
            order => Some(order.is_eq().then_some(value)),
        });
        let Some(Some(value)) = found else { return Ok(false) };
        if !deep_contains(value, wanted, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn array_contains<'a>(left: &str, wanted: impl Iterator<Item = &'a str> + Clone, depth: usize) -> Result<bool> {
    let many = wanted.clone().nth(HASHED_FROM).is_some();
    let key_of = |scalar: &str| {
        let mut key = Vec::with_capacity(scalar.len() + 2);
        jsonb::encode_key(scalar, &mut key);
        key
    };
    let scalars: AHashSet<Vec<u8>> = match many {
        true => jsonb::elements(left).filter(|element| jsonb::kind(element).is_scalar()).map(key_of).collect(),
        false => AHashSet::new(),
    };
    let containers: Vec<&str> = jsonb::elements(left).filter(|element| !jsonb::kind(element).is_scalar()).collect();
    for wanted in wanted {
        let is_found = match jsonb::kind(wanted).is_scalar() {
            true if many => scalars.contains(&key_of(wanted)),
            true => jsonb::elements(left).any(|element| same_scalar(element, wanted)),
            false => any_contains(&containers, wanted, depth + 1)?,
        };
        if !is_found {
            return Ok(false);
        }
    }
    Ok(true)
}

fn any_contains(containers: &[&str], wanted: &str, depth: usize) -> Result<bool> {
    for found in containers {
        if deep_contains(found, wanted, depth)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
