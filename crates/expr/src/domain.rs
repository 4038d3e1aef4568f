//! Domains (manual 8.18): a value that becomes one of a domain is checked first.

use crate::context::EvalContext;
use crate::error::{Error, RefusedBy, Result};
use crate::functions::casts::fit_time;
use crate::tree::Expr;
use basalt_types::{DataType, Datum, DomainDef};
use std::sync::Arc;

/// The conditions of a domain's own CHECKs by name, over the value as column 0 in the domain's base type.
pub type DomainConditions = Arc<Vec<(String, Expr)>>;

/// 23502 if the domain, or one that it is over, takes no null; 23514 if a CHECK is false, of the domain at the bottom
/// first. Types other than domains take everything.
pub fn check(ty: &DataType, value: &Datum, ctx: &EvalContext) -> Result<()> {
    let DataType::Domain(domain) = ty else { return Ok(()) };
    if value.is_null() && takes_no_null(domain) {
        return Err(refused(ty, None));
    }
    check_conditions(domain, ty, value, ctx)
}

/// What a domain is over at the bottom: values are read as this, or cast to it, before they become the domain's
/// ([`fit`]).
pub(crate) fn bottom(domain: &DomainDef) -> &DataType {
    match &domain.base {
        DataType::Domain(below) if !domain.base.is_vector() => bottom(below),
        base => base,
    }
}

fn takes_no_null(domain: &DomainDef) -> bool {
    domain.not_null || matches!(&domain.base, DataType::Domain(below) if takes_no_null(below))
}

/// `ty`: the domain that the value is to be of, which is the one that is told, whichever below it refuses.
fn check_conditions(domain: &DomainDef, ty: &DataType, value: &Datum, ctx: &EvalContext) -> Result<()> {
    if let DataType::Domain(below) = &domain.base {
        check_conditions(below, ty, value, ctx)?;
    }
    if domain.checks.is_empty() {
        return Ok(());
    }
    for (name, condition) in conditions(domain, ctx)?.iter() {
        if condition.eval_scalar(std::slice::from_ref(value), ctx)? == Datum::Bool(false) {
            return Err(refused(ty, Some(name.clone())));
        }
    }
    Ok(())
}

fn refused(ty: &DataType, constraint: Option<String>) -> Error {
    let DataType::Domain(domain) = ty else { unreachable!("only domains refuse") };
    let error = match &constraint {
        Some(name) => {
            Error::new("23514", format!("value for domain {} violates check constraint \"{name}\"", ty.sql_name()))
        }
        None => Error::new("23502", format!("domain {} does not allow null values", ty.sql_name())),
    };
    let (schema, domain) = (domain.schema.clone(), domain.name.clone());
    Error { refused_by: Some(Box::new(RefusedBy { schema, domain, constraint })), ..error }
}

/// A value of what a domain is over at the bottom as one of the domain: cut to its modifier, then checked.
pub(crate) fn fit(domain: &DomainDef, ty: &DataType, value: Datum, ctx: &EvalContext) -> Result<Datum> {
    let value = cut(domain, value)?;
    check(ty, &value, ctx)?;
    Ok(value)
}

fn cut(domain: &DomainDef, value: Datum) -> Result<Datum> {
    let value = match &domain.base {
        DataType::Domain(below) => cut(below, value)?,
        _ => value,
    };
    match domain.time_modifier {
        Some(modifier) => fit_time(&domain.base, modifier, value),
        None => Ok(value),
    }
}

fn conditions(domain: &DomainDef, ctx: &EvalContext) -> Result<DomainConditions> {
    match &ctx.names {
        Some(names) => names.domain_conditions(domain),
        None => Err(Error::internal(format!("the checks of domain {} need a catalog", domain.name))),
    }
}
