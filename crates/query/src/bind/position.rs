//! Where in the statement's text a piece of syntax stands, for the cursor of error messages.

use sqlparser::ast::{Expr, Ident, ObjectName, Spanned};
use sqlparser::tokenizer::{Location, Span};

/// Characters before and including `location`; `None` for syntax that has no place in the text.
pub fn of_location(sql: &str, location: Location) -> Option<u32> {
    if location.line == 0 || location.column == 0 {
        return None;
    }
    let mut before = 0usize;
    for (index, line) in sql.split('\n').enumerate() {
        if index as u64 + 1 == location.line {
            return u32::try_from(before + location.column as usize).ok();
        }
        before += line.chars().count() + 1;
    }
    None
}

pub fn of_span(sql: &str, span: Span) -> Option<u32> {
    of_location(sql, span.start)
}

pub fn of_ident(sql: &str, ident: &Ident) -> Option<u32> {
    of_span(sql, ident.span)
}

pub fn of_name(sql: &str, name: &ObjectName) -> Option<u32> {
    of_span(sql, name.span())
}

/// Where PostgreSQL points for an expression: the operator, the function's name, or its beginning.
pub fn of_expr(sql: &str, expr: &Expr) -> Option<u32> {
    match expr {
        Expr::BinaryOp { left, op, .. } => {
            let end = of_location(sql, left.span().end)? as usize - 1;
            let text = op.to_string();
            let rest: String = sql.chars().skip(end).collect();
            let found = rest.to_ascii_uppercase().find(&text.to_ascii_uppercase())?;
            u32::try_from(end + rest[..found].chars().count() + 1).ok()
        }
        Expr::Function(function) => of_name(sql, &function.name),
        other => of_span(sql, other.span()),
    }
}
