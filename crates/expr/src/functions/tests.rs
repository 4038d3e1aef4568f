//! Cases in `tests/*.txt` are `expression => text | NULL | ERROR sqlstate message`, as a PostgreSQL 15
//! server answered `SELECT (expression)::text` in the time zone UTC. Each is evaluated over single values
//! and over vectors, both of which must agree with the server.

use crate::cast::CastContext;
use crate::context::EvalContext;
use crate::error::Error;
use crate::functions::{Registry, pattern_types::type_named};
use crate::io;
use crate::resolve;
use crate::tree::Expr;
use basalt_types::{DataType, Datum};

/// What both ways of evaluation gave.
fn answer(expr: &Expr, ctx: &EvalContext) -> String {
    let ty = expr.ty();
    let single = shown(expr.eval_scalar(&[], ctx), &ty, ctx);
    let (columns, over_columns) = columnar(expr);
    let vector = over_columns.eval(&columns, 3, ctx).map(|array| crate::eval::vector::value_at(&ty, array.as_ref(), 1));
    let vector = shown(vector, &ty, ctx);
    if single == vector { single } else { format!("single {single}, vector {vector}") }
}

/// The constants as columns of three rows, the first of which is null.
fn columnar(expr: &Expr) -> (Vec<arrow_array::ArrayRef>, Expr) {
    let mut columns = Vec::new();
    let over = expr.clone().rewrite(&mut |node| match node {
        Expr::Const { value, ty } => {
            let values = [Datum::Null, value.clone(), value];
            columns.push(crate::eval::vector::from_values(&ty, values.iter(), 3).expect("a constant is of its type"));
            Expr::Column { index: columns.len() - 1, ty }
        }
        node => node,
    });
    (columns, over)
}

fn shown(result: Result<Datum, Error>, ty: &DataType, ctx: &EvalContext) -> String {
    match result {
        Ok(Datum::Null) => "NULL".to_string(),
        Ok(Datum::Bool(value)) => value.to_string(),
        Ok(value) => {
            let mut out = Vec::new();
            io::text::format(ty, &value, ctx, &mut out).expect("a value of its type");
            String::from_utf8_lossy(&out).into_owned()
        }
        Err(error) => format!("ERROR {} {}", error.sqlstate, error.message),
    }
}

/// `type 'text'`, `'text'` or `null::type`.
fn literal(text: &str, ctx: &EvalContext) -> Result<Expr, Error> {
    let text = text.trim();
    if let Some(ty) = text.strip_prefix("null::") {
        return Ok(Expr::null(named(ty)));
    }
    let (ty, quoted) = text.split_once('\'').unwrap_or_else(|| panic!("no literal: {text}"));
    let value = quoted.trim_end().strip_suffix('\'').unwrap_or_else(|| panic!("no end: {text}")).replace("''", "'");
    match ty.trim() {
        "" => Ok(Expr::unknown(&value)),
        ty => resolve::coerce(Expr::unknown(&value), &named(ty), CastContext::Explicit, ctx),
    }
}

fn named(ty: &str) -> DataType {
    match ty.trim().split_once('(') {
        Some(("numeric", modifier)) => {
            let (p, s) = modifier.trim_end_matches(')').split_once(',').expect("precision and scale");
            DataType::Numeric(Some((p.parse().expect("precision"), s.parse().expect("scale"))))
        }
        _ => match ty.trim().strip_suffix("[]") {
            Some(element) => DataType::Array(Box::new(named(element))),
            None => type_named(ty.trim()).unwrap_or_else(|| panic!("no type {ty}")),
        },
    }
}

/// Splits at `separator` outside quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut from, mut quoted) = (Vec::new(), 0, false);
    for (at, char) in text.char_indices() {
        if char == '\'' {
            quoted = !quoted;
        } else if char == separator && !quoted {
            parts.push(&text[from..at]);
            from = at + 1;
        }
    }
    parts.push(&text[from..]);
    parts
}

/// `name(literal, …)`, `literal op literal` or `op literal`.
fn bind(text: &str, ctx: &EvalContext) -> Result<Expr, Error> {
    let registry = Registry::builtin();
    let head = text.split(['(', '\'', ' ']).next().unwrap_or("");
    let is_call = text.ends_with(')') && text[head.len()..].starts_with('(') && type_named(head).is_none();
    if is_call {
        let inner = &text[head.len() + 1..text.len() - 1];
        let args = split(inner, ',').into_iter().filter(|arg| !arg.trim().is_empty());
        let args = args.map(|arg| literal(arg, ctx)).collect::<Result<Vec<_>, _>>()?;
        return resolve::call(registry, head, args, ctx);
    }
    let words: Vec<&str> = split(text, ' ');
    let is_operator = |word: &str| !word.is_empty() && word.chars().all(|char| "+-*/<>=~!@#%^&|?".contains(char));
    let at = words.iter().position(|word| is_operator(word)).unwrap_or_else(|| panic!("no operator: {text}"));
    let left = words[..at].join(" ");
    let left = if left.is_empty() { None } else { Some(literal(&left, ctx)?) };
    resolve::operator(registry, words[at], left, literal(&words[at + 1..].join(" "), ctx)?, ctx)
}

pub(crate) fn check(cases: &str) {
    let ctx = EvalContext::at(1_700_000_000_000_000);
    let mut wrong = Vec::new();
    for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (expression, expected) = line.split_once(" => ").unwrap_or_else(|| panic!("no answer: {line}"));
        let got = match bind(expression, &ctx) {
            Ok(expr) => answer(&expr, &ctx),
            Err(error) => format!("ERROR {} {}", error.sqlstate, error.message),
        };
        if got != expected {
            wrong.push(format!("{expression}\n    expected {expected}\n    got      {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn functions_answer_as_postgresql() {
    check(include_str!("tests/cases.txt"));
}
