//! `TABLE name` is short for `SELECT * FROM name` wherever a query may stand (PostgreSQL manual, SELECT, "TABLE
//! Command"). sqlparser takes three tokens for the name, so it is written out before.

use super::reader::is_word;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The tokens of one statement with every TABLE command written out.
pub(super) fn written_out(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if tokens.first().is_some_and(|first| is_word(&first.token, "reindex")) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    let inserts = tokens.first().is_some_and(|first| is_word(&first.token, "insert"));
    for at in 0..tokens.len() {
        let token = &tokens[at];
        let named = matches!(tokens.get(at + 1).map(|next| &next.token), Some(Token::Word(_)));
        if named && is_word(&token.token, "table") && starts_query(out.last().map(|last| &last.token), inserts) {
            let word = |text| TokenWithSpan::new(Token::make_word(text, None), token.span);
            out.extend([word("SELECT"), TokenWithSpan::new(Token::Mul, token.span), word("FROM")]);
        } else {
            out.push(token.clone());
        }
    }
    out
}

/// Whether a query may follow this token; of INSERT, its columns or its table.
fn starts_query(before: Option<&Token>, inserts: bool) -> bool {
    const WORDS: [&str; 10] =
        ["union", "intersect", "except", "all", "distinct", "as", "for", "explain", "analyze", "verbose"];
    match before {
        None | Some(Token::LParen | Token::RParen) => true,
        Some(Token::Word(_)) if inserts => true,
        Some(word) => WORDS.iter().any(|known| is_word(word, known)),
    }
}
