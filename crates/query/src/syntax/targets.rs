//! What INSERT and SET assign to: a column, or by fields and subscripts a part of one (manual 8.14.5, 8.15.4,
//! 8.16.4). sqlparser reads dotted names there; a subscript becomes a part of the name, its text behind a mark:
//! `SET a.b[1]['x']` is read as `SET a.b."␁[1]"."␁['x']"`.

use super::reader::is_word;
use super::spelling;
use crate::error::{Result, SqlError};
use sqlparser::ast::{self, AccessExpr, ObjectNamePart};
use sqlparser::tokenizer::{Token, TokenWithSpan};

const MARK: char = '\u{1}';

/// A step from a column into a part of it.
#[derive(Clone, Debug)]
pub enum TargetStep {
    Field(String),
    /// Subscripts that follow each other.
    Subscripts(Vec<AccessExpr>),
}

/// The steps behind the column that a target names.
pub fn target_steps(name: &ast::ObjectName) -> Result<Vec<TargetStep>> {
    let mut steps: Vec<TargetStep> = Vec::new();
    for part in name.0.iter().skip(1) {
        let ObjectNamePart::Identifier(ident) = part else {
            return Err(SqlError::syntax("a name is expected here"));
        };
        let Some(text) = ident.value.strip_prefix(MARK) else {
            let is_quoted = ident.quote_style.is_some();
            steps.push(TargetStep::Field(super::fold(&ident.value, is_quoted)));
            continue;
        };
        let ast::Expr::CompoundFieldAccess { access_chain, .. } = super::parse_expr_text(&format!("x{text}"))? else {
            return Err(SqlError::syntax(format!("syntax error at or near \"{text}\"")));
        };
        match steps.last_mut() {
            Some(TargetStep::Subscripts(known)) => known.extend(access_chain),
            _ => steps.push(TargetStep::Subscripts(access_chain)),
        }
    }
    Ok(steps)
}

/// The tokens of one statement with the subscripts of its targets as names.
pub(super) fn written(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let has = |words: &[&str]| tokens.iter().any(|token| words.iter().any(|word| is_word(&token.token, word)));
    if !tokens.iter().any(|token| token.token == Token::LBracket) || !has(&["update", "insert", "merge"]) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        out.push(tokens[at].clone());
        at += 1;
        let before = &tokens[..at];
        if ends_with(before, "set") && at > 1 {
            at = assignments(&tokens, at, &mut out);
        } else if names_columns(&tokens, at)
            && let Some((names, end)) = list(&tokens, at)
        {
            out.extend(names);
            at = end;
        }
    }
    out
}

fn ends_with(tokens: &[TokenWithSpan], word: &str) -> bool {
    tokens.last().is_some_and(|token| is_word(&token.token, word))
}

/// Whether INSERT's columns start here: `INSERT (`, `INTO t (`, `INTO s.t AS x (`.
fn names_columns(tokens: &[TokenWithSpan], at: usize) -> bool {
    if tokens.get(at).map(|token| &token.token) != Some(&Token::LParen) || ends_with(&tokens[..at], "values") {
        return false;
    }
    let mut start = at;
    while start > 0 && at - start < 7 {
        start -= 1;
        match &tokens[start].token {
            word if is_word(word, "into") => return start + 1 < at,
            word if is_word(word, "insert") => return start + 1 == at,
            Token::Word(_) | Token::Period => {}
            _ => return false,
        }
    }
    false
}

/// SET's assignments, which start at `at`; gives where to go on.
fn assignments(tokens: &[TokenWithSpan], start: usize, out: &mut Vec<TokenWithSpan>) -> usize {
    let mut at = start;
    loop {
        let named = match tokens.get(at).map(|token| &token.token) {
            Some(Token::LParen) => list(tokens, at),
            _ => target(tokens, at),
        };
        if let Some((names, end)) = named
            && tokens.get(end).is_some_and(|token| token.token == Token::Eq)
        {
            out.extend(names);
            at = end;
        }
        // The value, up to the comma before the next target.
        let mut depth = 0;
        loop {
            let Some(token) = tokens.get(at) else { return at };
            match &token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket if depth == 0 => return at,
                Token::RParen | Token::RBracket => depth -= 1,
                word if depth == 0 && ends_assignments(word, &tokens[..at]) => return at,
                _ => {}
            }
            out.push(token.clone());
            at += 1;
            if token.token == Token::Comma && depth == 0 {
                break;
            }
        }
    }
}

fn ends_assignments(word: &Token, before: &[TokenWithSpan]) -> bool {
    let is_from = is_word(word, "from") && !ends_with(before, "distinct");
    is_from || ["where", "returning", "when"].iter().any(|end| is_word(word, end)) && !in_case(before)
}

/// Whether a CASE is open behind these tokens.
fn in_case(before: &[TokenWithSpan]) -> bool {
    let count = |word: &str| before.iter().filter(|token| is_word(&token.token, word)).count();
    count("case") > count("end")
}

/// `(a, b[1])`: its tokens and what is behind it.
fn list(tokens: &[TokenWithSpan], start: usize) -> Option<(Vec<TokenWithSpan>, usize)> {
    let mut out = vec![tokens.get(start)?.clone()];
    let mut at = start + 1;
    loop {
        let (names, end) = target(tokens, at)?;
        out.extend(names);
        let delimiter = tokens.get(end)?;
        out.push(delimiter.clone());
        at = end + 1;
        match delimiter.token {
            Token::Comma => {}
            Token::RParen => return Some((out, at)),
            _ => return None,
        }
    }
}

/// One target and what is behind it.
fn target(tokens: &[TokenWithSpan], start: usize) -> Option<(Vec<TokenWithSpan>, usize)> {
    let is_name = |at: usize| matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(_)));
    if !is_name(start) {
        return None;
    }
    let mut out = vec![tokens[start].clone()];
    let mut at = start + 1;
    loop {
        match tokens.get(at).map(|token| &token.token) {
            Some(Token::Period) if is_name(at + 1) => {
                out.extend_from_slice(&tokens[at..at + 2]);
                at += 2;
            }
            Some(Token::LBracket) => {
                let end = end_of(tokens, at)?;
                let text = spelling::text_of(&tokens[at..end]);
                let span = tokens[at].span;
                out.push(TokenWithSpan::new(Token::Period, span));
                out.push(TokenWithSpan::new(Token::make_word(&format!("{MARK}{text}"), Some('"')), span));
                at = end;
            }
            _ => return Some((out, at)),
        }
    }
}

/// Behind the bracket that closes the one at `start`.
fn end_of(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.token {
            Token::LBracket => depth += 1,
            Token::RBracket => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}
