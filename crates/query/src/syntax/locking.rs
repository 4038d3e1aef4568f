//! The locking clauses of SELECT (PostgreSQL manual, SELECT, "The Locking Clause").
//!
//! sqlparser knows two of the four strengths, one table per clause, and no LIMIT behind one. So the tokens of
//! every clause are written in one form before it reads them, `FOR UPDATE OF "for no key update".a.b NOWAIT`
//! (the strength first, then the tables), and a LIMIT, OFFSET or FETCH that follows goes before it.
//! [`LockingClause::of`] takes that form apart again.

#[cfg(test)]
mod tests;

use super::fold;
use super::reader::is_word;
use crate::plan::OnLocked;
use basalt_engine::RowLock;
use sqlparser::ast;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockingClause {
    pub strength: RowLock,
    pub on_locked: OnLocked,
    /// Relations as FROM names them; empty: all.
    pub of: Vec<String>,
}

const STRENGTHS: [(RowLock, &str); 4] = [
    (RowLock::Update, "FOR UPDATE"),
    (RowLock::NoKeyUpdate, "FOR NO KEY UPDATE"),
    (RowLock::Share, "FOR SHARE"),
    (RowLock::KeyShare, "FOR KEY SHARE"),
];

/// A strength as SQL spells it.
pub fn strength_name(strength: RowLock) -> &'static str {
    STRENGTHS.iter().find(|(known, _)| *known == strength).map_or("", |(_, name)| name)
}

impl LockingClause {
    pub fn of(clause: &ast::LockClause) -> LockingClause {
        let parts = clause.of.iter().flat_map(|name| &name.0).filter_map(ast::ObjectNamePart::as_ident);
        let mut parts = parts.peekable();
        let strength = parts.peek().and_then(|first| STRENGTHS.iter().find(|(_, name)| *name == first.value));
        let strength = strength.map(|(strength, _)| *strength);
        if strength.is_some() {
            parts.next();
        }
        LockingClause {
            strength: strength.unwrap_or(match clause.lock_type {
                ast::LockType::Update => RowLock::Update,
                ast::LockType::Share => RowLock::Share,
            }),
            on_locked: match clause.nonblock {
                None => OnLocked::Wait,
                Some(ast::NonBlock::SkipLocked) => OnLocked::Skip,
                Some(ast::NonBlock::Nowait) => OnLocked::Fail,
            },
            of: parts.map(|part| fold(&part.value, part.quote_style.is_some())).collect(),
        }
    }
}

/// The tokens of one statement with its locking clauses in the form that sqlparser reads.
pub(super) fn canonical(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !(0..tokens.len()).any(|at| strength_at(&tokens, at).is_some() || is_read_only(&tokens, at)) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 8);
    let mut at = 0;
    while at < tokens.len() {
        let mut clauses = Vec::new();
        loop {
            if let Some(end) = clause(&tokens, at, &mut clauses) {
                at = end;
            } else if let (false, Some(end)) = (clauses.is_empty(), limit_end(&tokens, at)) {
                out.extend_from_slice(&tokens[at..end]);
                at = end;
            } else {
                break;
            }
        }
        out.append(&mut clauses);
        out.extend(tokens.get(at).cloned());
        at += 1;
    }
    out
}

fn sees(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    words.iter().enumerate().all(|(n, word)| tokens.get(at + n).is_some_and(|found| is_word(&found.token, word)))
}

fn is_read_only(tokens: &[TokenWithSpan], at: usize) -> bool {
    sees(tokens, at, &["for", "read", "only"])
}

/// The strength of a clause that starts here, and the tokens that say it.
fn strength_at(tokens: &[TokenWithSpan], at: usize) -> Option<(&'static str, usize)> {
    STRENGTHS.iter().find_map(|(_, name)| {
        let words: Vec<&str> = name.split(' ').collect();
        sees(tokens, at, &words).then_some((*name, words.len()))
    })
}

/// Writes the clause that starts at `start`, if one does; gives where it ends.
fn clause(tokens: &[TokenWithSpan], start: usize, out: &mut Vec<TokenWithSpan>) -> Option<usize> {
    if is_read_only(tokens, start) {
        return Some(start + 3);
    }
    let (name, words) = strength_at(tokens, start)?;
    if let Some(Token::Word(first)) = tokens.get(start + words + 1).map(|token| &token.token)
        && first.quote_style.is_some()
        && STRENGTHS.iter().any(|(_, name)| *name == first.value)
    {
        // Written so already: a view's text.
        out.extend_from_slice(&tokens[start..start + words + 2]);
        return Some(start + words + 2);
    }
    let span = tokens[start].span;
    let mut at = start + words;
    out.extend([word("FOR", None, span), word("UPDATE", None, span), word("OF", None, span)]);
    out.push(word(name, Some('"'), span));
    let mut between = sees(tokens, at, &["of"]);
    while between {
        // A clause that ends here is left to sqlparser's error.
        out.push(TokenWithSpan::new(Token::Period, span));
        let relation = tokens.get(at + 1).filter(|token| matches!(token.token, Token::Word(_)));
        out.extend(relation.cloned());
        at += 1 + usize::from(relation.is_some());
        if matches!(tokens.get(at).map(|token| &token.token), Some(Token::Period)) {
            // So is a qualified name, which would read as two.
            out.push(TokenWithSpan::new(Token::Period, span));
        }
        between = relation.is_some() && matches!(tokens.get(at).map(|token| &token.token), Some(Token::Comma));
    }
    let nonblock =
        if sees(tokens, at, &["nowait"]) { 1 } else { 2 * usize::from(sees(tokens, at, &["skip", "locked"])) };
    out.extend_from_slice(&tokens[at..at + nonblock]);
    Some(at + nonblock)
}

fn word(text: &str, quote: Option<char>, span: Span) -> TokenWithSpan {
    TokenWithSpan::new(Token::make_word(text, quote), span)
}

/// Where a LIMIT, OFFSET or FETCH that starts here ends.
fn limit_end(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let starts = |at| ["limit", "offset", "fetch"].iter().any(|word| sees(tokens, at, &[word]));
    if !starts(start) {
        return None;
    }
    let mut depth = 0;
    let mut at = start + 1;
    while let Some(token) = tokens.get(at) {
        let ends = ["for", "returning", "on", "with"].iter().any(|word| is_word(&token.token, word));
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            _ if depth == 0 && ends => break,
            _ => {}
        }
        at += 1;
    }
    Some(at)
}
