//! Composite values in expressions: their fields, their comparison (manual 9.24.5 and 9.24.6) and their casts.

use crate::cast::cast_datum;
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::functions::casts::fit_time;
use crate::operators::{cast_to_compare, compare_datums};
use basalt_types::{CompositeDef, DataType, Datum};
use std::cmp::Ordering;

/// The value of these fields, one per attribute that ever was, each cut to its attribute's modifier.
pub fn encode(composite: &CompositeDef, fields: &[Datum]) -> Result<Datum> {
    if composite.attributes.iter().any(|attribute| attribute.time_modifier.is_some()) {
        let fitted = composite.attributes.iter().zip(fields).map(|(attribute, value)| match attribute.time_modifier {
            Some(modifier) => fit_time(&attribute.ty, modifier, value.clone()),
            None => Ok(value.clone()),
        });
        let fitted = fitted.collect::<Result<Vec<Datum>>>()?;
        return encoded(composite, &fitted);
    }
    encoded(composite, fields)
}

fn encoded(composite: &CompositeDef, fields: &[Datum]) -> Result<Datum> {
    composite.encode(fields).ok_or_else(|| Error::internal(format!("{fields:?} are no fields of {}", composite.name)))
}

/// The fields of a value, one per attribute that ever was; XX001 if its bytes are damaged.
pub fn decode(composite: &CompositeDef, value: &Datum) -> Result<Vec<Datum>> {
    let Datum::Bytes(bytes) = value else {
        return Err(Error::internal(format!("{value:?} is no value of {}", composite.name)));
    };
    composite.decode(bytes).ok_or_else(|| {
        Error::new("XX001", format!("stored row of {} bytes of type {} is damaged", bytes.len(), composite.name))
    })
}

/// The composite type of an argument; an error of ours if it is none.
pub fn def_of(ty: &DataType) -> Result<&CompositeDef> {
    match ty.composite() {
        Some(composite) => Ok(composite),
        None => Err(Error::internal(format!("{} is no composite type", ty.sql_name()))),
    }
}

/// A type's fields that are there, with their values.
fn live_fields<'a>(ty: &'a DataType, value: &Datum) -> Result<Vec<(&'a DataType, Datum)>> {
    let composite = def_of(ty)?;
    let mut fields = decode(composite, value)?;
    let mut live = Vec::with_capacity(fields.len());
    for (at, attribute) in composite.live() {
        live.push((&attribute.ty, std::mem::replace(&mut fields[at], Datum::Null)));
    }
    Ok(live)
}

/// Compares two composite values field by field; the first that differ decide. Nulls are equal to each other
/// and greater than anything else. 42804 if the types have different fields.
pub fn compare(left: (&DataType, &Datum), right: (&DataType, &Datum), ctx: &EvalContext) -> Result<Ordering> {
    let (a, b) = (live_fields(left.0, left.1)?, live_fields(right.0, right.1)?);
    for (at, ((a_ty, a), (b_ty, b))) in a.iter().zip(&b).enumerate() {
        if a_ty.underlying().base() != b_ty.underlying().base() && !both_composite(a_ty, b_ty) {
            let message = format!(
                "cannot compare dissimilar column types {} and {} at record column {}",
                a_ty.base().sql_name(),
                b_ty.base().sql_name(),
                at + 1
            );
            return Err(Error::new("42804", message));
        }
        let ordering = match (a.is_null(), b.is_null()) {
            (false, false) => compare_fields((a_ty, a), (b_ty, b), ctx)?,
            (a, b) => a.cmp(&b),
        };
        if ordering.is_ne() {
            return Ok(ordering);
        }
    }
    match a.len() == b.len() {
        true => Ok(Ordering::Equal),
        false => Err(Error::new("42804", "cannot compare record types with different numbers of columns")),
    }
}

fn both_composite(a: &DataType, b: &DataType) -> bool {
    a.composite().is_some() && b.composite().is_some()
}

fn compare_fields(a: (&DataType, &Datum), b: (&DataType, &Datum), ctx: &EvalContext) -> Result<Ordering> {
    if both_composite(a.0, b.0) {
        return compare(a, b, ctx);
    }
    crate::operators::compare::check_comparable(a.0, "=")?;
    if a.0 == b.0 {
        return Ok(compare_datums(a.0, a.1, b.1));
    }
    // One type in two forms: numerics of other precisions.
    let (x, y) = (cast_to_compare(a.0, a.1, ctx)?, cast_to_compare(b.0, b.1, ctx)?);
    Ok(compare_datums(&a.0.underlying().base(), &x, &y))
}

/// Casts a value field by field. 42846 where the types have different fields.
pub fn cast(from: &CompositeDef, to: &CompositeDef, value: &Datum, explicit: bool, ctx: &EvalContext) -> Result<Datum> {
    let fields = decode(from, value)?;
    let mut out = vec![Datum::Null; to.attributes.len()];
    let mut sources = from.live();
    for (at, target) in to.live() {
        let Some((source_at, source)) = sources.next() else {
            return Err(cannot_cast(from, to, "Input has too few columns."));
        };
        out[at] = cast_datum(&source.ty, &target.ty, &fields[source_at], explicit, ctx)?;
    }
    match sources.next() {
        Some(_) => Err(cannot_cast(from, to, "Input has too many columns.")),
        None => encode(to, &out),
    }
}

#[cold]
pub fn cannot_cast(from: &CompositeDef, to: &CompositeDef, detail: &str) -> Error {
    let name = |composite: &CompositeDef| DataType::Composite(composite.clone().into()).sql_name();
    Error::cannot_cast(&name(from), &name(to)).with_detail(detail)
}
