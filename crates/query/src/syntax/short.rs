//! What PostgreSQL lets a statement leave out, written for sqlparser:
//!
//! | PostgreSQL | what sqlparser reads |
//! |---|---|
//! | `SELECT`, `EXISTS (SELECT WHERE …)` | `SELECT "␁nothing"`, `EXISTS (SELECT "␁nothing" WHERE …)` |
//! | `CUBE ((a)::date, b)` | `CUBE (((a)::date), b)` |
//! | `FROM t*` | `FROM t` |
//! | `t.user`, `s.order` | a name whatever the word is |
//! | `WHERE CURRENT OF c` | `WHERE "␁current of"('c')` |
//!
//! And what it does not let: 42601 for calls without arguments that need some, `DISTINCT *`.

use super::reader::{is_word, position_of};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

const NOTHING: &str = "\u{1}nothing";
const CURRENT_OF: &str = "\u{1}current of";

/// The cursor of WHERE CURRENT OF.
pub fn cursor_of(condition: &ast::Expr) -> Option<String> {
    match super::marked(condition, CURRENT_OF)?.as_slice() {
        [ast::Expr::Value(value)] => value.value.clone().into_string(),
        _ => None,
    }
}

/// What may follow a select list, but FROM.
const CLAUSES: [&str; 13] = [
    "union",
    "intersect",
    "except",
    "where",
    "group",
    "having",
    "window",
    "order",
    "limit",
    "offset",
    "fetch",
    "for",
    "into",
];

fn ends_list(next: Option<&Token>) -> bool {
    matches!(next, None | Some(Token::RParen))
}

/// Whether a select list is empty where sqlparser wants an expression.
pub(crate) fn is_nothing(item: &ast::SelectItem) -> bool {
    matches!(item, ast::SelectItem::UnnamedExpr(ast::Expr::Identifier(ident)) if ident.value == NOTHING)
}

/// 42601 for what sqlparser takes and PostgreSQL does not.
pub(super) fn check(tokens: &[TokenWithSpan], sql: &str) -> Result<()> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    let kind = |at: usize| tokens.get(at).map(|token| &token.token);
    let changes = ["update", "delete"].iter().any(|verb| (0..tokens.len()).any(|at| is(at, verb)));
    for at in 0..tokens.len() {
        if let Some(Token::Word(word)) = kind(at)
            && word.value.is_empty()
        {
            let message = "zero-length delimited identifier at or near \"\"\"\"";
            return Err(SqlError::syntax(message).at(position_of(sql, tokens[at].span.start)));
        }
        let wrong = if is(at, "current") && at > 0 && is(at - 1, "where") && is(at + 1, "of") {
            match changes {
                true => (!is(at + 3, "returning") && kind(at + 3) != Some(&Token::RParen)).then_some(at + 3),
                false => Some(at + 1),
            }
        } else if ["coalesce", "greatest", "least"].iter().any(|word| is(at, word)) {
            let called = kind(at + 1) == Some(&Token::LParen) && kind(at + 2) == Some(&Token::RParen);
            (called && !is_qualified(tokens, at)).then_some(at + 2)
        } else if (is(at, "distinct") || is(at, "all")) && at > 0 {
            let in_call = kind(at - 1) == Some(&Token::LParen) && kind(at + 1) == Some(&Token::Mul);
            let of_nothing = is(at - 1, "select")
                && is(at, "distinct")
                && (is(at + 1, "from") || ends_list(kind(at + 1)) || CLAUSES.iter().any(|word| is(at + 1, word)));
            (in_call || of_nothing).then_some(at + 1)
        } else {
            None
        };
        if let Some(token) = wrong.and_then(|wrong| tokens.get(wrong)) {
            let message = format!("syntax error at or near \"{}\"", token.token);
            return Err(SqlError::syntax(message).at(position_of(sql, token.span.start)));
        }
    }
    Ok(())
}

fn is_qualified(tokens: &[TokenWithSpan], at: usize) -> bool {
    at > 0 && tokens[at - 1].token == Token::Period
}

/// Words behind a period are names, also those that are calls or clauses elsewhere.
fn named_behind_periods(tokens: &mut [TokenWithSpan]) {
    for at in 1..tokens.len() {
        let (before, this) = tokens.split_at_mut(at);
        if before[at - 1].token == Token::Period
            && let Token::Word(word) = &mut this[0].token
        {
            word.keyword = Keyword::NoKeyword;
        }
    }
}

/// The tokens of one statement in the forms above.
pub(super) fn written(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    named_behind_periods(&mut tokens);
    const WORDS: [&str; 8] = ["select", "cube", "rollup", "from", "join", "update", "into", "current"];
    if !tokens.iter().any(|token| WORDS.iter().any(|word| is_word(&token.token, word))) {
        return tokens;
    }
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    let is_any = |at: usize, words: &[&str]| words.iter().any(|word| is(at, word));
    let kind = |at: usize| tokens.get(at).map(|token| &token.token);
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    // Where a parenthesis is added.
    let mut added: Vec<(usize, Token)> = Vec::new();
    // Of each open parenthesis, whether FROM in it belongs to a call.
    let mut calls: Vec<bool> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        while let Some(place) = added.iter().position(|(place, _)| *place == at) {
            out.push(TokenWithSpan::new(added.remove(place).1, token.span));
        }
        if is(at, "current")
            && at > 0
            && is(at - 1, "where")
            && is(at + 1, "of")
            && let Some(Token::Word(name)) = kind(at + 2)
        {
            let name = super::fold(&name.value, name.quote_style.is_some());
            let mark = Token::make_word(CURRENT_OF, Some('"'));
            let call = [mark, Token::LParen, Token::SingleQuotedString(name), Token::RParen];
            out.extend(call.map(|part| TokenWithSpan::new(part, token.span)));
            at += 3;
            continue;
        }
        out.push(token.clone());
        match &token.token {
            Token::LParen => calls
                .push(at > 0 && is_any(at - 1, &["extract", "substring", "overlay", "trim", "position", "normalize"])),
            Token::RParen => drop(calls.pop()),
            word if is_word(word, "select") && !is_qualified(&tokens, at) => {
                let behind = if is(at + 1, "all") { at + 2 } else { at + 1 };
                let ends = ends_list(kind(behind)) || is_any(behind, &CLAUSES);
                // A word behind AS is a name, unless AS begins what a command makes.
                let is_label = at > 0 && is(at - 1, "as") && !is_any(0, &["create", "prepare", "explain"]);
                if ends && !is_label && !(at > 0 && is_any(at - 1, &["grant", "revoke", "for"])) {
                    out.extend_from_slice(&tokens[at + 1..behind]);
                    out.push(TokenWithSpan::new(Token::make_word(NOTHING, Some('"')), token.span));
                    at = behind;
                    continue;
                }
            }
            word if (is_word(word, "cube") || is_word(word, "rollup")) && kind(at + 1) == Some(&Token::LParen) => {
                added.extend(items_to_wrap(&tokens, at + 1));
            }
            word if ["from", "join", "update", "into", "only"].iter().any(|known| is_word(word, known)) => {
                let in_call = calls.last() == Some(&true) || (at > 0 && is(at - 1, "distinct"));
                let end = name_end(&tokens, at + 1);
                if !in_call && end > at + 1 && kind(end) == Some(&Token::Mul) {
                    out.extend_from_slice(&tokens[at + 1..end]);
                    at = end + 1;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    out
}

/// Behind the dotted name that starts here.
fn name_end(tokens: &[TokenWithSpan], start: usize) -> usize {
    let is_name = |at: usize| matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(_)));
    if !is_name(start) {
        return start;
    }
    let mut end = start + 1;
    while tokens.get(end).is_some_and(|token| token.token == Token::Period) && is_name(end + 1) {
        end += 2;
    }
    end
}

/// Parentheses around those items of the list at `open` that begin with one and do not end with it.
fn items_to_wrap(tokens: &[TokenWithSpan], open: usize) -> Vec<(usize, Token)> {
    let mut found = Vec::new();
    let (mut start, mut depth, mut closed) = (open + 1, 0usize, None);
    for (at, token) in tokens.iter().enumerate().skip(open + 1) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth > 0 => {
                depth -= 1;
                if depth == 0 && closed.is_none() {
                    closed = Some(at);
                }
            }
            Token::Comma | Token::RParen if depth == 0 => {
                let wraps = tokens[start].token == Token::LParen && closed.is_some_and(|closed| closed + 1 < at);
                if wraps {
                    found.extend([(start, Token::LParen), (at, Token::RParen)]);
                }
                (start, closed) = (at + 1, None);
                if token.token == Token::RParen {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}
