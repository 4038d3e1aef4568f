//! Operators as PostgreSQL's lexer cuts them (manual 4.1.3), where sqlparser's differs: an operator does not end
//! in a sign unless it has one of `~ ! @ # % ^ & | ` ?` in it, so `1>-1` compares with a negative number; `==` is
//! an operator that does not exist; ISNULL is written behind its operand.

use super::dialect::Postgres15;
use super::reader::{is_word, position_of};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// An operator with one of these may end in a sign.
const ALLOW_SIGN: [char; 10] = ['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'];

pub(super) fn split(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_odd = |token: &TokenWithSpan| {
        matches!(token.token, Token::CustomBinaryOperator(_) | Token::DoubleEq)
            || token.token == Token::Assignment
            || is_word(&token.token, "isnull")
            || is_word(&token.token, "interval")
            || is_foreign(&token.token)
    };
    if !tokens.iter().any(is_odd) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let with = |token_kind| TokenWithSpan::new(token_kind, token.span);
        match &token.token {
            word if is_word(word, "interval") && names_interval(&out, tokens.peek()) => {
                out.push(with(Token::make_word("interval", Some('"'))));
            }
            Token::CustomBinaryOperator(text) => match signs_behind(text) {
                Some((operator, signs)) => {
                    out.push(with(operator));
                    out.extend(signs.into_iter().map(with));
                }
                None => out.push(token.clone()),
            },
            // `f(a := 1)` is the old spelling of `f(a => 1)`.
            Token::Assignment => out.push(with(Token::RArrow)),
            Token::DoubleEq => out.push(with(Token::CustomBinaryOperator("==".to_string()))),
            word if is_word(word, "isnull") && out.last().is_some_and(|last| ends_operand(&last.token)) => {
                out.push(with(Token::make_keyword("IS")));
                out.push(with(Token::make_keyword("NULL")));
            }
            Token::Word(word) if is_foreign(&token.token) => {
                out.push(with(Token::make_word(&word.value.to_lowercase(), Some('"'))));
            }
            _ => out.push(token.clone()),
        }
    }
    out
}

/// Runs of operator characters in one token each where one of them lets the run end in a sign, which sqlparser cuts
/// off: `2 ^-1` has the operator `^-`.
pub(super) fn whole(tokens: Vec<TokenWithSpan>, sql: &str) -> Vec<TokenWithSpan> {
    let follows = |before: &TokenWithSpan, after: &TokenWithSpan| {
        matches!(after.token, Token::Minus | Token::Plus)
            && before.span.end == after.span.start
            && before.span.end.line > 0
            && is_operator(&before.token)
    };
    if !tokens.windows(2).any(|pair| follows(&pair[0], &pair[1])) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let before = out.last().filter(|last| follows(last, &token)).map(|last| match last.token {
            Token::Neq if starts_with(sql, last.span.start, '!') => "!=".to_string(),
            ref other => other.to_string(),
        });
        match (before, out.last_mut()) {
            (Some(text), Some(last)) if text.contains(ALLOW_SIGN) => {
                let span = last.span.union(&token.span);
                *last = TokenWithSpan::new(Token::CustomBinaryOperator(format!("{text}{}", token.token)), span);
            }
            _ => out.push(token),
        }
    }
    out
}

fn starts_with(sql: &str, place: Location, first: char) -> bool {
    let position = position_of(sql, place).map_or(0, |position| position as usize);
    position > 0 && sql.chars().nth(position - 1) == Some(first)
}

fn is_operator(token: &Token) -> bool {
    let text = token.to_string();
    !text.is_empty() && text.chars().all(|char| "+-*/<>=~!@#%^&|`?".contains(char))
}

/// Whether INTERVAL is the name of a column: it stands where an expression begins, and no constant follows that it could
/// be the type of. sqlparser reads a literal of whatever follows.
fn names_interval(before: &[TokenWithSpan], next: Option<&TokenWithSpan>) -> bool {
    use Token::*;
    const WORDS: [&str; 28] = [
        "select",
        "distinct",
        "all",
        "where",
        "and",
        "or",
        "not",
        "by",
        "having",
        "on",
        "when",
        "then",
        "else",
        "case",
        "set",
        "from",
        "using",
        "returning",
        "in",
        "like",
        "ilike",
        "between",
        "limit",
        "offset",
        "values",
        "symmetric",
        "to",
        "any",
    ];
    const FIELDS: [&str; 6] = ["year", "month", "day", "hour", "minute", "second"];
    let Some(before) = before.last() else { return false };
    let begins = matches!(before.token, LParen | LBracket | Comma)
        || (before.token != DoubleColon && is_operator(&before.token))
        || WORDS.iter().any(|word| is_word(&before.token, word));
    let is_type = next.is_some_and(|next| match &next.token {
        SingleQuotedString(_) | EscapedStringLiteral(_) | UnicodeStringLiteral(_) | DollarQuotedString(_) | LParen => {
            true
        }
        word => FIELDS.iter().any(|field| is_word(word, field)),
    });
    begins && !is_type
}

/// Words that mean something to sqlparser, but are names like any other in PostgreSQL.
fn is_foreign(token: &Token) -> bool {
    use sqlparser::keywords::Keyword::*;
    match token {
        Token::Word(word) if word.quote_style.is_none() => matches!(
            word.keyword,
            TOP | MINUS
                | QUALIFY
                | PREWHERE
                | SETTINGS
                | STRAIGHT_JOIN
                | SEMI
                | ANTI
                | ASOF
                | PIVOT
                | UNPIVOT
                | FINAL
                | DISTRIBUTE
                | SORT
                | SAMPLE
        ),
        _ => false,
    }
}

/// The operator without the signs at its end, and those.
fn signs_behind(text: &str) -> Option<(Token, Vec<Token>)> {
    let operator = text.trim_end_matches(['+', '-']);
    if operator.is_empty() || operator.len() == text.len() || operator.contains(ALLOW_SIGN) {
        return None;
    }
    let mut known = Tokenizer::new(&Postgres15, operator).tokenize().ok()?;
    let operator = if known.len() == 1 { known.pop()? } else { return None };
    let signs = text[text.trim_end_matches(['+', '-']).len()..].chars();
    Some((operator, signs.map(|sign| if sign == '-' { Token::Minus } else { Token::Plus }).collect()))
}

/// Whether an expression may end in this token.
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => {
            word.quote_style.is_some()
                || !["select", "and", "or", "not", "where", "on", "when", "then", "else", "as", "by", "having"]
                    .iter()
                    .any(|keyword| is_word(token, keyword))
        }
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::RParen | Token::RBracket => {
            true
        }
        _ => false,
    }
}
