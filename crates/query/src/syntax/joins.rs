//! Joins inside of joins without parentheses (PostgreSQL manual 7.2.1.1): `a JOIN b JOIN c ON … ON …` is
//! `a JOIN (b JOIN c ON …) ON …`. What stands between a join and its own condition is its right side.

use super::reader::is_word;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A join whose condition has not come yet.
struct Open {
    /// Where its right side begins.
    right: usize,
    nests: bool,
}

/// The tokens of one statement with such parentheses written out.
pub(super) fn written(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if tokens.iter().filter(|token| is_word(&token.token, "join")).count() < 2 {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    let mut levels: Vec<Vec<Open>> = vec![Vec::new()];
    for token in tokens {
        let span = token.span;
        match &token.token {
            Token::LParen => levels.push(Vec::new()),
            Token::RParen if levels.len() > 1 => drop(levels.pop()),
            word if is_word(word, "join") => {
                let level = levels.last_mut().expect("never empty");
                if let Some(open) = level.last_mut() {
                    open.nests = true;
                }
                if has_condition(&out) {
                    level.push(Open { right: out.len() + 1, nests: false });
                }
            }
            word if is_word(word, "on") || is_word(word, "using") => {
                let open = levels.last_mut().and_then(Vec::pop);
                if let Some(Open { right, nests: true }) = open {
                    out.push(TokenWithSpan::new(Token::RParen, span));
                    out.insert(right, TokenWithSpan::new(Token::LParen, span));
                }
            }
            _ => {}
        }
        out.push(token);
    }
    out
}

/// Whether the JOIN behind these tokens is neither CROSS nor NATURAL.
fn has_condition(before: &[TokenWithSpan]) -> bool {
    let kinds = ["inner", "left", "right", "full", "outer"];
    let kind = before.iter().rev().find(|token| !kinds.iter().any(|word| is_word(&token.token, word)));
    !kind.is_some_and(|token| is_word(&token.token, "cross") || is_word(&token.token, "natural"))
}
