//! Column definition lists of functions that return records (manual 7.2.1.4), in forms that sqlparser reads:
//!
//! | PostgreSQL | what sqlparser reads |
//! |---|---|
//! | `FROM f() AS (a int, b text)` | `FROM f() AS "␁columns" (a int, b text)` |
//! | `ROWS FROM (f() AS (a int, b text), …)` | `ROWS FROM (f(), "␁columns"(a => CAST(NULL AS int), b => CAST(NULL AS text)), …)` |
//!
//! sqlparser reads `AS x (a int)` as it is.

use super::reader::is_word;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

const COLUMNS: &str = "\u{1}columns";

/// Whether an alias stands for none, with columns behind it.
pub fn is_unnamed(alias: &ast::TableAlias) -> bool {
    alias.name.value == COLUMNS
}

/// Names and types of the columns that the item of ROWS FROM before this one is given.
pub fn columns_of_item(item: &ast::Expr) -> Option<Vec<(ast::Ident, ast::DataType)>> {
    let ast::Expr::Function(call) = item else { return None };
    match call.name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] if name.value == COLUMNS => {}
        _ => return None,
    }
    let ast::FunctionArguments::List(list) = &call.args else { return None };
    let column = |arg: &ast::FunctionArg| {
        let (name, value) = match arg {
            ast::FunctionArg::Named { name, arg: ast::FunctionArgExpr::Expr(value), .. } => (name.clone(), value),
            ast::FunctionArg::ExprNamed {
                name: ast::Expr::Identifier(name),
                arg: ast::FunctionArgExpr::Expr(value),
                ..
            } => (name.clone(), value),
            _ => return None,
        };
        match value {
            ast::Expr::Cast { data_type, .. } => Some((name, data_type.clone())),
            _ => None,
        }
    };
    list.args.iter().map(column).collect()
}

/// The tokens of one statement with such lists in the forms above.
pub(super) fn written(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let starts = |at: usize| is_list(&tokens, at);
    if !(0..tokens.len()).any(starts) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    // Of each open parenthesis, whether it is that of ROWS FROM.
    let mut open: Vec<bool> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        match token.token {
            Token::LParen => open.push(is_rows_from(&tokens[..at])),
            Token::RParen => drop(open.pop()),
            _ => {}
        }
        if !starts(at) {
            out.push(token.clone());
            at += 1;
            continue;
        }
        let mark = TokenWithSpan::new(Token::make_word(COLUMNS, Some('"')), token.span);
        let end = match open.last() {
            Some(true) => end_of(&tokens, at + 1),
            _ => None,
        };
        let Some(end) = end else {
            out.extend([token.clone(), mark]);
            at += 1;
            continue;
        };
        let as_token = |token_type: Token| TokenWithSpan::new(token_type, token.span);
        out.extend([as_token(Token::Comma), mark, as_token(Token::LParen)]);
        let (mut depth, mut is_name) = (0, true);
        for part in &tokens[at + 2..end - 1] {
            match part.token {
                Token::Comma if depth == 0 => {
                    out.extend([as_token(Token::RParen), part.clone()]);
                    is_name = true;
                    continue;
                }
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            out.push(part.clone());
            if std::mem::take(&mut is_name) {
                out.extend([as_token(Token::RArrow), as_token(Token::make_keyword("CAST"))]);
                out.extend([as_token(Token::LParen), as_token(Token::make_keyword("NULL"))]);
                out.push(as_token(Token::make_keyword("AS")));
            }
        }
        out.extend([as_token(Token::RParen), as_token(Token::RParen)]);
        at = end;
    }
    out
}

/// Whether `AS (name type` stands here, behind a call.
fn is_list(tokens: &[TokenWithSpan], at: usize) -> bool {
    const STARTS: [&str; 9] =
        ["select", "values", "with", "table", "insert", "update", "delete", "merge", "materialized"];
    let kind = |at: usize| tokens.get(at).map(|token| &token.token);
    let is_call = at > 0 && matches!(kind(at - 1), Some(Token::RParen));
    is_call
        && is_word(&tokens[at].token, "as")
        && kind(at + 1) == Some(&Token::LParen)
        && kind(at + 2)
            .is_some_and(|name| matches!(name, Token::Word(_)) && !STARTS.iter().any(|start| is_word(name, start)))
        && matches!(kind(at + 3), Some(Token::Word(_)))
}

/// Whether the parenthesis behind these tokens is that of ROWS FROM.
fn is_rows_from(before: &[TokenWithSpan]) -> bool {
    match before {
        [.., rows, from] => is_word(&rows.token, "rows") && is_word(&from.token, "from"),
        _ => false,
    }
}

/// Behind the parenthesis that closes the one at `start`.
fn end_of(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}
