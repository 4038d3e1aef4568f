//! Forms of function calls that sqlparser does not read, in forms that it does: `trim(leading from x)`, and
//! `current_schema` without parentheses (PostgreSQL manual 9.4 and 9.26).

use super::reader::is_word;
use sqlparser::tokenizer::{Token, TokenWithSpan};

pub(super) fn plain(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        if is_word(&token.token, "from") && opens_trim(&out) {
            continue;
        }
        out.push(token.clone());
        let called = matches!(tokens.get(at + 1).map(|next| &next.token), Some(Token::LParen));
        if is_word(&token.token, "current_schema") && !called {
            let parens = [Token::LParen, Token::RParen];
            out.extend(parens.map(|paren| TokenWithSpan::new(paren, token.span)));
        }
    }
    out
}

/// Whether these end in `trim (`, perhaps with a side.
fn opens_trim(before: &[TokenWithSpan]) -> bool {
    let side = |token: &Token| ["leading", "trailing", "both"].iter().any(|side| is_word(token, side));
    let before = match before {
        [rest @ .., last] if side(&last.token) => rest,
        all => all,
    };
    matches!(before, [.., name, paren] if paren.token == Token::LParen && is_word(&name.token, "trim"))
}
