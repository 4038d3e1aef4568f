//! Domains (manual 8.18): a value that becomes one of a domain is checked first.

use crate::context::EvalContext;
use crate::error::{Error, RefusedBy, Result};
use crate::functions::casts::fit_time;
use crate::tree::Expr;
use basalt_types::{DataType, Datum, DomainDef};
use std::sync::Arc;

/// The conditions of a domain's own CHECKs by name, over the value as column 0 in the domain's base type.
pub type DomainConditions = Arc<Vec<(String, Expr)>>;

/// 23502 if the domain, or one that it is over, takes no null; 23514 if a CHECK is false. Types other than
/// domains take everything.
pub fn check(ty: &DataType, value: &Datum, ctx: &EvalContext) -> Result<()> {
    let DataType::Domain(domain) = ty else { return Ok(()) };
    check(&domain.base, value, ctx)?;
    if domain.not_null && value.is_null() {
        let message = format!("domain {} does not allow null values", ty.sql_name());
        return Err(refused(domain, None, Error::new("23502", message)));
    }
    if domain.checks.is_empty() {
        return Ok(());
    }
    for (name, condition) in conditions(domain, ctx)?.iter() {
        if condition.eval_scalar(std::slice::from_ref(value), ctx)? == Datum::Bool(false) {
            let message = format!("value for domain {} violates check constraint \"{name}\"", ty.sql_name());
            return Err(refused(domain, Some(name), Error::new("23514", message)));
        }
    }
    Ok(())
}

fn refused(domain: &DomainDef, constraint: Option<&String>, error: Error) -> Error {
    let refused_by =
        RefusedBy { schema: domain.schema.clone(), domain: domain.name.clone(), constraint: constraint.cloned() };
    Error { refused_by: Some(Box::new(refused_by)), ..error }
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
