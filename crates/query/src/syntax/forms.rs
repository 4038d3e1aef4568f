//! PostgreSQL's syntax that sqlparser does not read, in marked forms that it does. The binder takes them apart
//! again; a mark is a name or an operator that no text of a user can give.
//!
//! | PostgreSQL | what sqlparser reads |
//! |---|---|
//! | `JOIN … USING (a) AS j` | `USING (a, "␁as".j)` |
//! | `ROWS FROM (f(1), g(2))` | `"␁rows from"(f(1), g(2))` |
//! | `f(VARIADIC x)` | `f("␁variadic" => x)` |
//! | `a BETWEEN SYMMETRIC b AND c` | `a BETWEEN !! b AND c` |
//! | `FROM ONLY t` | `FROM t` |
//! | `ORDER BY a USING >` | `ORDER BY a DESC` |
//! | `FETCH FIRST n ROWS ONLY` | `LIMIT n` |

use super::reader::is_word;
use sqlparser::ast::{self, Expr, UnaryOperator};
use sqlparser::tokenizer::{Token, TokenWithSpan};

pub const USING_ALIAS: &str = "\u{1}as";
pub const ROWS_FROM: &str = "\u{1}rows from";
pub const VARIADIC: &str = "\u{1}variadic";

/// The tokens of one statement with all such syntax in its marked form.
pub(super) fn marked(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const WORDS: [&str; 7] = ["using", "rows", "row", "variadic", "symmetric", "asymmetric", "only"];
    let is_marked = |token: &TokenWithSpan| WORDS.iter().any(|word| is_word(&token.token, word));
    if !tokens.iter().any(is_marked) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let next = tokens.get(at + 1).map(|next| &next.token);
        let mark = |name: &str| TokenWithSpan::new(Token::make_word(name, Some('"')), token.span);
        if is_word(&token.token, "using")
            && let Some(end) = name_list(&tokens, at + 1)
            && sees(&tokens, end, "as")
            && let Some(alias) = tokens.get(end + 1).filter(|alias| matches!(alias.token, Token::Word(_)))
        {
            out.extend_from_slice(&tokens[at..end - 1]);
            let comma = TokenWithSpan::new(Token::Comma, token.span);
            let period = TokenWithSpan::new(Token::Period, token.span);
            out.extend([comma, mark(USING_ALIAS), period, alias.clone(), tokens[end - 1].clone()]);
            at = end + 2;
        } else if is_word(&token.token, "using") && matches!(next, Some(Token::Lt | Token::Gt)) {
            let direction = if next == Some(&Token::Gt) { "DESC" } else { "ASC" };
            out.push(TokenWithSpan::new(Token::make_keyword(direction), token.span));
            at += 2;
        } else if at > 0
            && is_word(&token.token, "fetch")
            && let Some((count, end)) = fetch_only(&tokens, at)
        {
            out.push(TokenWithSpan::new(Token::make_keyword("LIMIT"), token.span));
            match count.is_empty() {
                true => out.push(TokenWithSpan::new(Token::Number("1".to_string(), false), token.span)),
                false => out.extend_from_slice(count),
            }
            at = end;
        } else if is_word(&token.token, "rows")
            && sees(&tokens, at + 1, "from")
            && matches!(tokens.get(at + 2).map(|next| &next.token), Some(Token::LParen))
        {
            out.push(mark(ROWS_FROM));
            at += 2;
        } else if is_word(&token.token, "only") && out.last().is_some_and(|last| begins_table(&last.token)) {
            // No table has children here.
            match (next, tokens.get(at + 2), tokens.get(at + 3).map(|after| &after.token)) {
                (Some(Token::LParen), Some(table), Some(Token::RParen)) => {
                    out.push(table.clone());
                    at += 4;
                }
                (Some(Token::Word(_)), ..) => at += 1,
                _ => {
                    out.push(token.clone());
                    at += 1;
                }
            }
        } else if is_word(&token.token, "variadic") && opens_argument(out.last()) && next.is_some_and(starts_value) {
            out.extend([mark(VARIADIC), TokenWithSpan::new(Token::RArrow, token.span)]);
            at += 1;
        } else if is_word(&token.token, "symmetric") && out.last().is_some_and(|last| is_word(&last.token, "between")) {
            out.push(TokenWithSpan::new(Token::DoubleExclamationMark, token.span));
            at += 1;
        } else if is_word(&token.token, "asymmetric") && out.last().is_some_and(|last| is_word(&last.token, "between"))
        {
            at += 1;
        } else {
            out.push(token.clone());
            at += 1;
        }
    }
    out
}

fn sees(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    tokens.get(at).is_some_and(|token| is_word(&token.token, word))
}

/// The count of `FETCH FIRST count ROWS ONLY` that starts here, and what is behind it.
fn fetch_only(tokens: &[TokenWithSpan], start: usize) -> Option<(&[TokenWithSpan], usize)> {
    if !sees(tokens, start + 1, "first") && !sees(tokens, start + 1, "next") {
        return None;
    }
    let from = start + 2;
    let is_row = |at: usize| sees(tokens, at, "row") || sees(tokens, at, "rows");
    let mut depth = 0;
    let mut at = from;
    while depth > 0 || !is_row(at) {
        match tokens.get(at)?.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return None,
            Token::RParen => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    sees(tokens, at + 1, "only").then(|| (&tokens[from..at], at + 2))
}

/// Behind `(a, b)`, if that is what starts here.
fn name_list(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    if tokens.get(start)?.token != Token::LParen {
        return None;
    }
    let mut at = start + 1;
    loop {
        match tokens.get(at)?.token {
            Token::RParen => return Some(at + 1),
            Token::Word(_) | Token::Comma => at += 1,
            _ => return None,
        }
    }
}

/// Whether a table may be named behind this token.
fn begins_table(before: &Token) -> bool {
    *before == Token::Comma || ["from", "join", "update"].iter().any(|word| is_word(before, word))
}

fn opens_argument(before: Option<&TokenWithSpan>) -> bool {
    matches!(before.map(|token| &token.token), Some(Token::LParen | Token::Comma))
}

/// A word that names an argument has something else behind it.
fn starts_value(next: &Token) -> bool {
    matches!(
        next,
        Token::Word(_)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::Placeholder(_)
            | Token::Number(..)
            | Token::LParen
    )
}

/// The lower bound of `BETWEEN SYMMETRIC` without its mark; `None` for a plain BETWEEN.
pub fn symmetric_bound(low: &Expr) -> Option<Expr> {
    let mut bound = low.clone();
    let mut place = &mut bound;
    loop {
        match place {
            Expr::UnaryOp { op: UnaryOperator::PGPrefixFactorial, expr } => {
                let inner = std::mem::replace(
                    &mut **expr,
                    Expr::Wildcard(ast::helpers::attached_token::AttachedToken::empty()),
                );
                *place = inner;
                return Some(bound);
            }
            Expr::BinaryOp { left, .. } => place = left,
            Expr::Cast { expr, .. } | Expr::Collate { expr, .. } | Expr::IsNull(expr) | Expr::IsNotNull(expr) => {
                place = expr;
            }
            Expr::AtTimeZone { timestamp, .. } => place = timestamp,
            Expr::CompoundFieldAccess { root, .. } => place = root,
            _ => return None,
        }
    }
}
