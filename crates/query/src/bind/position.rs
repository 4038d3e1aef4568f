//! Where in the statement's text a piece of syntax stands, for the cursor of error messages.

use crate::error::SqlError;
use sqlparser::ast::{CastKind, Expr, Ident, ObjectName, Query, Spanned, UnaryOperator};
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

/// Where an expression begins.
pub fn of_start(sql: &str, expr: &Expr) -> Option<u32> {
    of_span(sql, expr.span())
}

/// Where PostgreSQL points for an expression: the operator, the function's name, or its beginning.
pub fn of_expr(sql: &str, expr: &Expr) -> Option<u32> {
    match expr {
        Expr::BinaryOp { left, op, .. } => behind(sql, left, &op.to_string()),
        Expr::AnyOp { left, compare_op, .. } | Expr::AllOp { left, compare_op, .. } => {
            behind(sql, left, &compare_op.to_string())
        }
        Expr::UnaryOp { op, expr } if *op != UnaryOperator::Not => before(sql, expr, &[&op.to_string()]),
        Expr::Ceil { expr, .. } => before(sql, expr, &["ceil"]),
        Expr::Floor { expr, .. } => before(sql, expr, &["floor"]),
        Expr::Function(function) => of_name(sql, &function.name),
        Expr::Subquery(query) => of_query(sql, query),
        Expr::InSubquery { expr, .. }
        | Expr::InList { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::AtTimeZone { timestamp: expr, .. }
        | Expr::IsDistinctFrom(expr, _)
        | Expr::IsNotDistinctFrom(expr, _) => after_operand(sql, expr),
        other => of_span(sql, other.span()),
    }
}

/// Where `text` stands first behind an expression.
pub fn behind(sql: &str, expr: &Expr, text: &str) -> Option<u32> {
    let end = of_location(sql, expr.span().end)? as usize - 1;
    u32::try_from(find(&characters(sql), end, text)? + 1).ok()
}

/// Where one of `texts` stands that only blanks and parentheses part from an expression behind it.
fn before(sql: &str, expr: &Expr, texts: &[&str]) -> Option<u32> {
    let start = of_start(sql, expr)? as usize - 1;
    let characters = characters(sql);
    let blank = |c: &char| c.is_whitespace() || *c == '(';
    let end = start - characters.get(..start)?.iter().rev().take_while(|c| blank(c)).count();
    let text = texts.iter().find(|text| is_at(&characters, end.checked_sub(text.chars().count()), text))?;
    u32::try_from(end - text.chars().count() + 1).ok()
}

/// Of a cast, where its `::` or CAST stands, and where the type does.
pub fn of_cast(sql: &str, cast: &Expr) -> Option<(u32, u32)> {
    let characters = characters(sql);
    let Expr::Cast { kind, expr, .. } = cast else { return None };
    let (place, ty) = match kind {
        CastKind::DoubleColon => {
            let at = colons(sql, &characters, cast)?;
            (at, at + 2)
        }
        _ => {
            let start = of_start(sql, expr)? as usize - 1;
            let place = (0..start).rev().find(|at| is_at(&characters, Some(*at), "cast"))?;
            let end = of_location(sql, expr.span().end)? as usize - 1;
            (place, find(&characters, end, "as ")? + 3)
        }
    };
    let ty = ty + characters[ty..].iter().take_while(|c| c.is_whitespace()).count();
    Some((u32::try_from(place + 1).ok()?, u32::try_from(ty + 1).ok()?))
}

/// Where the `::` of a cast stands. In `type 'literal'::other` the first of two casts has none.
fn colons(sql: &str, characters: &[char], cast: &Expr) -> Option<usize> {
    let Expr::Cast { kind: CastKind::DoubleColon, expr, .. } = cast else { return None };
    let mut inner = &**expr;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    match colons(sql, characters, inner) {
        Some(at) => find(characters, at + 2, "::").or(Some(at)),
        None => find(characters, of_location(sql, inner.span().end)? as usize - 1, "::"),
    }
}

fn characters(sql: &str) -> Vec<char> {
    sql.chars().collect()
}

fn is_at(characters: &[char], at: Option<usize>, text: &str) -> bool {
    let Some(rest) = at.and_then(|at| characters.get(at..)) else { return false };
    let mut wanted = 0;
    let same = text.chars().zip(rest).all(|(wanted_char, have)| {
        wanted += 1;
        wanted_char.eq_ignore_ascii_case(have)
    });
    same && wanted == text.chars().count()
}

fn find(characters: &[char], from: usize, text: &str) -> Option<usize> {
    (from..characters.len()).find(|at| is_at(characters, Some(*at), text))
}

/// Where a subquery's parenthesis stands.
pub fn of_query(sql: &str, query: &Query) -> Option<u32> {
    of_span(sql, query.span()).map(|start| opening(sql, start))
}

/// The parenthesis before the query that begins at `start`, if one is there.
fn opening(sql: &str, start: u32) -> u32 {
    let before: Vec<char> = sql.chars().take(start as usize - 1).collect();
    match before.iter().rposition(|char| !char.is_whitespace()) {
        Some(at) if before[at] == '(' => at as u32 + 1,
        _ => start,
    }
}

/// What follows an expression and the parentheses around it.
fn after_operand(sql: &str, expr: &Expr) -> Option<u32> {
    let end = of_location(sql, expr.span().end)? as usize - 1;
    let rest = sql.chars().skip(end).take_while(|char| char.is_whitespace() || *char == ')').count();
    u32::try_from(end + rest + 1).ok()
}

/// Where PostgreSQL points for an error of an expression: at the literal that cannot be read, else at the expression.
pub fn of_error(sql: &str, expr: &Expr, error: &SqlError) -> Option<u32> {
    of_literal(sql, expr.span().start, error).or_else(|| of_expr(sql, expr))
}

/// The literal behind `start` that an error of class 22 is about.
pub fn of_literal(sql: &str, start: Location, error: &SqlError) -> Option<u32> {
    if !error.sqlstate.starts_with("22") {
        return None;
    }
    let (_, quoted) = error.message.split_once('"')?;
    let (text, _) = quoted.rsplit_once('"')?;
    let literal = format!("'{}'", text.replace('\'', "''"));
    let first = of_location(sql, start)? as usize - 1;
    let rest: String = sql.chars().skip(first).collect();
    let found = rest.find(&literal)?;
    u32::try_from(first + rest[..found].chars().count() + 1).ok()
}

/// The character, counted from 1, of the first of `words` behind the character `from`, and behind white space the
/// one that follows it.
pub fn of_word(sql: &str, from: u32, word: &str) -> Option<(u32, u32)> {
    let chars: Vec<char> = sql.chars().collect();
    let wanted: Vec<char> = word.chars().collect();
    let is_part = |at: Option<&char>| at.is_some_and(|char| char.is_alphanumeric() || *char == '_');
    let at = (from as usize..chars.len()).find(|at| {
        let end = at + wanted.len();
        end <= chars.len()
            && chars[*at..end].iter().zip(&wanted).all(|(a, b)| a.eq_ignore_ascii_case(b))
            && !is_part(at.checked_sub(1).and_then(|before| chars.get(before)))
            && !is_part(chars.get(end))
    })?;
    let end = at + wanted.len();
    let blank = chars[end..].iter().take_while(|char| char.is_whitespace()).count();
    Some((u32::try_from(at + 1).ok()?, u32::try_from(end + blank + 1).ok()?))
}
