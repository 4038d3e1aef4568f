//! Functions and operators with the types of their arguments, as `regprocedure` and `regoperator` name them
//! (`abs(integer)`, `-(NONE,integer)`), operators alone, and collations.

use super::names::{self, Scope, parts};
use super::{functions, procs, typing};
use crate::session::names::{named_schema, quote_identifier};
use basalt_expr::functions::Operator;
use basalt_expr::{Error, Result};
use basalt_types::DataType;

const CATALOG: &str = "pg_catalog";

fn malformed(what: &str) -> Error {
    Error::new("22P02", format!("expected a {what}"))
}

/// A name and the types behind it; `NONE` is 0 where operators may have it.
fn split(scope: Scope, text: &str, allows_none: bool) -> Result<(String, Vec<u32>)> {
    let mut quoted = false;
    let open = text.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '(' && !quoted
    });
    let (open, _) = open.ok_or_else(|| malformed("left parenthesis"))?;
    let inside = text[open + 1..].trim_end().strip_suffix(')').ok_or_else(|| malformed("right parenthesis"))?;
    let mut types = Vec::new();
    let pieces = arguments(inside);
    if !(pieces.len() == 1 && pieces[0].is_empty()) {
        for piece in pieces {
            types.push(match piece {
                "" => return Err(malformed("type name")),
                none if allows_none && none.eq_ignore_ascii_case("none") => 0,
                name => names::oid_of(scope, &DataType::Regtype, name)?,
            });
        }
    }
    Ok((text[..open].trim().to_string(), types))
}

/// What stands between the commas that are in no quotes and no parentheses.
fn arguments(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                pieces.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(text[start..].trim());
    pieces
}

/// The last part of a name if it is in `pg_catalog`, where all functions and operators are; 3F000 for a schema that is
/// not there.
fn in_catalog(scope: Scope, name: &str) -> Result<Option<String>> {
    let mut parts = parts(name)?;
    let last = parts.pop();
    match parts.as_slice() {
        [] => Ok(last),
        [schema] | [_, schema] if schema == CATALOG => Ok(last),
        [schema] | [_, schema] => {
            check_schema(scope, schema)?;
            Ok(None)
        }
        _ => Err(Error::new("42601", format!("improper qualified name (too many dotted names): {name}"))),
    }
}

fn check_schema(scope: Scope, schema: &str) -> Result<()> {
    let known = named_schema(scope.search_path, schema);
    match scope.catalog.namespace_named(scope.database, known) {
        Some(_) => Ok(()),
        None if schema == "information_schema" => Ok(()),
        None => Err(Error::new("3F000", format!("schema \"{schema}\" does not exist"))),
    }
}

/// The function that a signature names; 42883 if there is none.
pub(super) fn procedure(scope: Scope, text: &str) -> Result<u32> {
    let (name, types) = split(scope, text, false)?;
    let found = in_catalog(scope, &name)?.and_then(|name| procs::with_args(&name, &types));
    found.ok_or_else(|| Error::new("42883", format!("function \"{text}\" does not exist")))
}

/// A function as it must be named: `abs(integer)`.
pub(super) fn procedure_text(scope: Scope, oid: u32) -> Option<String> {
    let proc = procs::by_oid(oid)?;
    Some(format!("{}({})", quote_identifier(proc.name), type_names(scope, &proc.args)))
}

fn type_names(scope: Scope, types: &[u32]) -> String {
    let name = |oid: &u32| match oid {
        0 => "NONE".to_string(),
        oid => names::format_type(scope, *oid, None).unwrap_or_else(|| "???".to_string()),
    };
    types.iter().map(name).collect::<Vec<_>>().join(",")
}

fn signature(operator: &Operator) -> [u32; 2] {
    [operator.left.as_ref().map_or(0, typing::pattern_oid), typing::pattern_oid(&operator.right)]
}

fn no_operator(text: &str) -> Error {
    Error::new("42883", format!("operator does not exist: {text}"))
}

/// The only operator of a name; 42883 if there is none, 42725 if there are more.
pub(super) fn operator_named(scope: Scope, text: &str) -> Result<u32> {
    let symbol = in_catalog(scope, text)?.ok_or_else(|| no_operator(text))?;
    match functions::registry().operators(&symbol) {
        [operator] => Ok(operator.oid),
        [] => Err(no_operator(text)),
        _ => Err(Error::new("42725", format!("more than one operator named {text}"))),
    }
}

/// The operator that a signature names; 42883 if there is none.
pub(super) fn operator(scope: Scope, text: &str) -> Result<u32> {
    let (name, types) = split(scope, text, true)?;
    let types: [u32; 2] = types.try_into().map_err(|types: Vec<u32>| match types.len() {
        1 => Error::new("42P02", "missing argument")
            .with_hint("Use NONE to denote the missing argument of a unary operator."),
        _ => Error::new("54023", "too many arguments").with_hint("Provide two argument types for operator."),
    })?;
    // A schema that is not there has no operators.
    let symbol = in_catalog(scope, &name).ok().flatten().ok_or_else(|| no_operator(text))?;
    let operators = functions::registry().operators(&symbol);
    let found = operators.iter().find(|operator| signature(operator) == types);
    found.map(|operator| operator.oid).ok_or_else(|| no_operator(text))
}

fn by_oid(oid: u32) -> Option<&'static Operator> {
    functions::registry().all_operators().find(|operator| operator.oid == oid)
}

/// An operator's name, with its schema unless it is the only one of the name.
pub(super) fn operator_name(oid: u32) -> Option<String> {
    let symbol = &by_oid(oid)?.symbol;
    match functions::registry().operators(symbol).len() {
        1 => Some(symbol.clone()),
        _ => Some(format!("{CATALOG}.{symbol}")),
    }
}

/// An operator with its types: `+(integer,integer)`.
pub(super) fn operator_text(scope: Scope, oid: u32) -> Option<String> {
    let operator = by_oid(oid)?;
    Some(format!("{}({})", operator.symbol, type_names(scope, &signature(operator))))
}

/// The collation of a name; 42704 if there is none.
pub(super) fn collation(scope: Scope, text: &str) -> Result<u32> {
    let missing = || {
        let name = parts(text).map_or_else(|_| text.to_string(), |parts| parts.join("."));
        Error::new("42704", format!("collation \"{name}\" for encoding \"UTF8\" does not exist"))
    };
    in_catalog(scope, text)?.and_then(|name| typing::collation_named(&name)).ok_or_else(missing)
}
