//! In which order conditions are checked, and which of them may be checked early.
//!
//! PostgreSQL sorts the conditions of a plan's node by what they cost and keeps the order of the text among equals
//! (`order_qual_clauses`); a row that fails one is not shown to the next. Who checks conditions of a batch together has
//! to know which of them may fail for a row that is not theirs: [`Expr::is_total`] is true only of what cannot.

use crate::functions::{Function, TypePattern, Volatility};
use crate::tree::Expr;
use basalt_types::{DataType, Datum};

/// From as many constants on PostgreSQL hashes the list of `IN`.
const HASHED_LIST_MIN: usize = 9;
/// How long PostgreSQL takes an array to be that it does not see.
const ARRAY_LENGTH: usize = 10;

impl Expr {
    /// The conditions of a WHERE, each of which a row has to fulfil. NOT goes to the operands of OR, as in PostgreSQL.
    pub fn conditions(self) -> Vec<Expr> {
        match self {
            Expr::And(args) => args.into_iter().flat_map(Expr::conditions).collect(),
            Expr::Or(args) => alternatives(args),
            Expr::Not(inner) => match *inner {
                Expr::Or(args) => args.into_iter().flat_map(|arg| Expr::Not(Box::new(arg)).conditions()).collect(),
                Expr::Not(inner) => inner.conditions(),
                Expr::And(args) if args.iter().any(|arg| matches!(arg, Expr::Not(_))) => {
                    let negated = args.into_iter().map(|arg| match arg {
                        Expr::Not(inner) => *inner,
                        arg => Expr::Not(Box::new(arg)),
                    });
                    vec![Expr::Or(negated.collect())]
                }
                inner => vec![Expr::Not(Box::new(inner))],
            },
            other => vec![other],
        }
    }

    /// What one evaluation costs, in the calls of simple functions that PostgreSQL counts (`cost_qual_eval`). Holes
    /// cost nothing.
    pub fn cost(&self) -> f64 {
        let own = match self {
            Expr::Call { function, .. } => call_cost(&function.name),
            Expr::Cast { expr, to, .. } => cast_cost(&expr.ty(), to),
            Expr::IsDistinct { .. } | Expr::NullIf { .. } | Expr::Extreme { .. } => 1.0,
            Expr::InList { list, .. } => {
                let constants = list.iter().filter(|item| matches!(item, Expr::Const { .. })).count();
                let listed = match constants {
                    0 => 0.0,
                    1 => 1.0,
                    few if few < HASHED_LIST_MIN => few as f64 * 0.5,
                    _ => 2.0,
                };
                listed + (list.len() - constants) as f64
            }
            Expr::AnyAll { array, .. } => match &**array {
                Expr::ArrayLiteral { elements, .. } => elements.len() as f64 * 0.5,
                _ => ARRAY_LENGTH as f64 * 0.5,
            },
            _ => 0.0,
        };
        self.children().into_iter().map(Expr::cost).fold(own, |sum, cost| sum + cost)
    }

    /// Whether no value of its operands makes it fail. Says nothing about holes, whatever is behind them.
    pub fn is_total(&self) -> bool {
        let own = match self {
            Expr::Call { function, args, .. } => is_total_call(function, args),
            Expr::Cast { expr, to, .. } => is_total_cast(&expr.ty(), to),
            Expr::IsDistinct { equal, .. } | Expr::NullIf { equal, .. } | Expr::InList { equal, .. } => {
                is_comparison(equal)
            }
            Expr::AnyAll { function, .. } => is_comparison(function),
            Expr::Extreme { ty, .. } => !matches!(ty.underlying(), DataType::Array(_) | DataType::Composite(_)),
            _ => true,
        };
        own && self.children().into_iter().all(Expr::is_total)
    }

    /// Whether it may be evaluated for rows that do not ask for it.
    pub fn is_harmless(&self) -> bool {
        self.is_total() && self.volatility() < Volatility::Volatile
    }
}

/// What all operands of an OR ask for is a condition of its own, before what is left of the OR (as in PostgreSQL): a
/// join by keys that stands in each of them stays one.
fn alternatives(args: Vec<Expr>) -> Vec<Expr> {
    let parts = |arg: &Expr| match arg {
        Expr::And(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let mut branches: Vec<Vec<Expr>> = args.iter().map(parts).collect();
    let mut common: Vec<Expr> = Vec::new();
    for part in branches.first().cloned().unwrap_or_default() {
        let everywhere = branches.iter().all(|branch| branch.contains(&part));
        if everywhere && part.volatility() < Volatility::Volatile && !common.contains(&part) {
            common.push(part);
        }
    }
    if common.is_empty() {
        return vec![Expr::Or(args)];
    }
    branches.iter_mut().for_each(|branch| branch.retain(|part| !common.contains(part)));
    if branches.iter().all(|branch| !branch.is_empty()) {
        let left = branches.into_iter().map(|mut branch| match branch.len() {
            1 => branch.swap_remove(0),
            _ => Expr::And(branch),
        });
        common.push(Expr::Or(left.collect()));
    }
    common
}

fn call_cost(name: &str) -> f64 {
    match name.starts_with("has_") || name == "pg_has_role" {
        true => 10.0,
        false => 1.0,
    }
}

fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Text | DataType::Varchar(_) | DataType::Bpchar(_) | DataType::Name | DataType::Unknown)
}

/// Strings turn into other types by an output and an input function.
fn cast_cost(from: &DataType, to: &DataType) -> f64 {
    match (is_text(from), is_text(to)) {
        (true, true) => f64::from(!matches!(to, DataType::Text | DataType::Varchar(None))),
        (false, false) => 1.0,
        _ => 2.0,
    }
}

/// A comparison of two values of simple types.
pub(crate) fn is_comparison(function: &Function) -> bool {
    let name = function.name.as_str();
    let compares = function.ret == TypePattern::Exact(DataType::Bool) && function.args.len() == 2;
    let ends = |name: &str| ["eq", "ne", "lt", "le", "gt", "ge"].iter().any(|end| name.ends_with(end));
    // `date_le_timestamp`
    let mixed = ["_timestamp", "_timestamptz", "_date"].iter().find_map(|other| name.strip_suffix(other));
    // Elements and fields may have no equality.
    let nested = ["array_", "record_", "has_"].iter().any(|start| name.starts_with(start));
    let other = name.contains("regex") || name.contains("like") || name.ends_with("range");
    compares && !nested && !other && (ends(name) || mixed.is_some_and(ends))
}

fn is_total_call(function: &Function, args: &[Expr]) -> bool {
    if is_comparison(function) {
        return true;
    }
    match function.name.as_str() {
        "length" | "char_length" | "character_length" | "octet_length" | "lower" | "upper" | "textcat" | "btrim"
        | "ltrim" | "rtrim" | "starts_with" | "md5" | "reverse" | "ascii" | "isfinite" | "isempty" => true,
        "jsonb_object_field"
        | "jsonb_object_field_text"
        | "jsonb_array_element"
        | "jsonb_array_element_text"
        | "jsonb_typeof"
        | "jsonb_contains"
        | "jsonb_contained"
        | "jsonb_extract_path"
        | "jsonb_extract_path_text"
        | "jsonb_exists" => true,
        "cardinality" | "array_length" | "array_lower" | "array_upper" | "array_ndims" | "array_subscript" => true,
        // A length must not be negative.
        "substring" | "substr" => match args {
            [text, start] => is_text(&text.ty()) && start.ty() == DataType::Int4,
            [text, _, Expr::Const { value: Datum::I32(length), .. }] => is_text(&text.ty()) && *length >= 0,
            _ => false,
        },
        name if name.ends_with("like") => match args {
            // A pattern must not end in its escape.
            [_, Expr::Const { value, .. }] => !matches!(value, Datum::Bytes(pattern) if pattern.ends_with(b"\\")),
            _ => false,
        },
        _ => false,
    }
}

fn is_total_cast(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    if from == to {
        return true;
    }
    let plain = |ty: &DataType| {
        matches!(ty, Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric(_) | Date | Uuid | Oid | Name)
    };
    match (from, to) {
        (from, Text | Varchar(None) | Bpchar(None)) => is_text(from) || plain(from),
        (Int2, Int4 | Int8) | (Int4, Int8) | (Float4, Float8) => true,
        (Int2 | Int4 | Int8, Float4 | Float8 | Numeric(None)) | (Numeric(_), Numeric(None)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
