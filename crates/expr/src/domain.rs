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
        return Err(refused(domain, ty, None));
    }
    check_conditions(domain, value, ctx).map_err(|error| above(domain, ty, error))
}

fn takes_no_null(domain: &DomainDef) -> bool {
    domain.not_null || matches!(&domain.base, DataType::Domain(below) if takes_no_null(below))
}

fn check_conditions(domain: &Arc<DomainDef>, value: &Datum, ctx: &EvalContext) -> Result<()> {
    if let DataType::Domain(below) = &domain.base {
        check_conditions(below, value, ctx)?;
    }
    if domain.checks.is_empty() {
        return Ok(());
    }
    for (name, condition) in conditions(domain, ctx)?.iter() {
        if condition.eval_scalar(std::slice::from_ref(value), ctx)? == Datum::Bool(false) {
            return Err(refused(domain, &DataType::Domain(domain.clone()), Some(name.clone())));
        }
    }
    Ok(())
}

fn refused(domain: &DomainDef, ty: &DataType, constraint: Option<String>) -> Error {
    let error = match &constraint {
        Some(name) => {
            Error::new("23514", format!("value for domain {} violates check constraint \"{name}\"", ty.sql_name()))
        }
        None => Error::new("23502", format!("domain {} does not allow null values", ty.sql_name())),
    };
    let (schema, domain) = (domain.schema.clone(), domain.name.clone());
    Error { refused_by: Some(Box::new(RefusedBy { schema, domain, constraint })), ..error }
}

/// What a domain below has refused, this one refuses, as PostgreSQL tells it; not what a field or an element has.
pub(crate) fn above(domain: &DomainDef, ty: &DataType, error: Error) -> Error {
    let Some(by) = &error.refused_by else { return error };
    let mut base = &domain.base;
    while let DataType::Domain(below) = base {
        if by.domain == below.name && by.schema == below.schema {
            return refused(domain, ty, by.constraint.clone());
        }
        base = &below.base;
    }
    error
}

/// A value of a domain's base as one of the domain: cut to its modifier, then checked.
pub(crate) fn fit(domain: &DomainDef, ty: &DataType, value: Datum, ctx: &EvalContext) -> Result<Datum> {
    let value = match domain.time_modifier {
        Some(modifier) => fit_time(&domain.base, modifier, value)?,
        None => value,
    };
    check(ty, &value, ctx)?;
    Ok(value)
}

fn conditions(domain: &DomainDef, ctx: &EvalContext) -> Result<DomainConditions> {
    match &ctx.names {
        Some(names) => names.domain_conditions(domain),
        None => Err(Error::internal(format!("the checks of domain {} need a catalog", domain.name))),
    }
}
