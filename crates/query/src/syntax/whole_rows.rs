//! `t.*` where it is a value, the row of `t`, and not a list of its columns (PostgreSQL manual 8.16.5). A list it is
//! only as a whole item of SELECT, RETURNING, VALUES or ROW. As a value its star becomes a marked name, since sqlparser
//! reads it nowhere else; parentheses around an item, which change nothing, go.

use super::reader::is_word;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Stands for the star of a row that is a value.
pub(crate) const WHOLE_ROW: &str = "\u{1}row";

/// What holds the tokens between two parentheses or brackets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Arguments, elements and what else is a value each.
    Values,
    /// Items of a row, which stars add several to.
    Row,
    /// `OPERATOR(schema.*)`, which is no star.
    Operator,
    /// Nothing of these, or a subquery.
    Other,
}

/// Of a statement at some depth, the part that the scan is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    Items,
    By,
    Rows,
    Other,
}

#[derive(Clone, Copy)]
struct Level {
    around: Around,
    part: Part,
}

pub(super) fn marked(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_star = |pair: &[TokenWithSpan]| pair[0].token == Token::Period && pair[1].token == Token::Mul;
    if !tokens.windows(2).any(is_star) {
        return tokens;
    }
    let mut gone: Vec<usize> = Vec::new();
    let mut levels = vec![Level { around: Around::Other, part: Part::None }];
    for at in 0..tokens.len() {
        let depth = levels.len() - 1;
        match &tokens[at].token {
            Token::LParen => {
                let around = around(&tokens, at, levels[depth]);
                levels.push(Level { around, part: Part::None });
            }
            Token::LBracket => levels.push(Level { around: Around::Values, part: Part::None }),
            Token::RParen | Token::RBracket if depth > 0 => drop(levels.pop()),
            Token::Word(_) => {
                if let Some(part) = part_of(&tokens, at) {
                    levels[depth].part = part;
                }
            }
            Token::Mul if at > 1 && tokens[at - 1].token == Token::Period => {
                if let Some(Star { is_value, parens }) = star(&tokens, at, &levels) {
                    match is_value {
                        true => tokens[at].token = Token::make_word(WHOLE_ROW, Some('"')),
                        false => gone.extend(parens),
                    }
                }
            }
            _ => {}
        }
    }
    if gone.is_empty() {
        return tokens;
    }
    let kept = tokens.into_iter().enumerate().filter(|(at, _)| !gone.contains(at));
    kept.map(|(_, token)| token).collect()
}

struct Star {
    is_value: bool,
    /// Around nothing but the name and its star.
    parens: Vec<usize>,
}

/// What the star at a place is; `None` if no name is before it.
fn star(tokens: &[TokenWithSpan], at: usize, levels: &[Level]) -> Option<Star> {
    let is_name = |at: usize| matches!(tokens[at].token, Token::Word(_));
    let mut first = at - 2;
    if !is_name(first) || levels.last().is_some_and(|level| level.around == Around::Operator) {
        return None;
    }
    while first >= 2 && tokens[first - 1].token == Token::Period && is_name(first - 2) {
        first -= 2;
    }
    let (mut before, mut after) = (first.checked_sub(1), at + 1);
    let mut parens = Vec::new();
    let mut depth = levels.len() - 1;
    while let Some(open) = before
        && tokens[open].token == Token::LParen
        && tokens.get(after).is_some_and(|next| next.token == Token::RParen)
        && levels[depth].around == Around::Other
    {
        parens.extend([open, after]);
        (before, after) = (open.checked_sub(1), after + 1);
        depth = depth.saturating_sub(1);
    }
    let is_nested = !parens.is_empty();
    let next = tokens.get(after).map(|next| &next.token);
    let is_operand = next.is_some_and(|next| follows_value(next) || (is_nested && *next == Token::Period))
        || before.is_some_and(|before| precedes_value(tokens, before));
    let level = levels[depth];
    let in_list = match level.part {
        Part::Items | Part::Rows => false,
        Part::By => true,
        Part::None | Part::Other => level.around == Around::Values,
    };
    Some(Star { is_value: is_operand || in_list, parens })
}

/// What a parenthesis opens.
fn around(tokens: &[TokenWithSpan], at: usize, outside: Level) -> Around {
    let Some(before) = at.checked_sub(1).map(|before| &tokens[before].token) else { return Around::Other };
    if outside.part == Part::Rows && (*before == Token::Comma || is_word(before, "values")) {
        return Around::Row;
    }
    let Token::Word(name) = before else { return Around::Other };
    let is = |words: &[&str]| name.quote_style.is_none() && words.iter().any(|word| is_word(before, word));
    if is(&["row"]) {
        return Around::Row;
    }
    if is(&["operator"]) {
        return Around::Operator;
    }
    if is(&["in", "any", "all", "some"]) {
        return Around::Values;
    }
    match is(&[
        "select",
        "distinct",
        "where",
        "and",
        "or",
        "not",
        "by",
        "having",
        "when",
        "then",
        "else",
        "case",
        "as",
        "from",
        "using",
        "returning",
        "is",
        "between",
        "like",
        "ilike",
        "limit",
        "offset",
        "set",
        "into",
        "over",
        "filter",
        "within",
        "union",
        "except",
        "intersect",
        "exists",
        "with",
        "array",
        "join",
        "lateral",
        "end",
        "default",
        "check",
        "to",
        "symmetric",
        "escape",
    ]) {
        true => Around::Other,
        false => Around::Values,
    }
}

/// The part of a statement that a word begins.
fn part_of(tokens: &[TokenWithSpan], at: usize) -> Option<Part> {
    let is = |words: &[&str]| words.iter().any(|word| is_word(&tokens[at].token, word));
    let before = at.checked_sub(1).map(|before| &tokens[before].token);
    if before == Some(&Token::Period) {
        return None;
    }
    if is(&["select", "returning"]) {
        Some(Part::Items)
    } else if is(&["by"]) {
        Some(Part::By)
    } else if is(&["values"]) {
        Some(Part::Rows)
    } else if is(&["where", "having", "limit", "offset", "set"])
        || is(&["from"]) && !before.is_some_and(|before| is_word(before, "distinct"))
    {
        Some(Part::Other)
    } else {
        None
    }
}

fn is_comparison(token: &Token) -> bool {
    use Token::*;
    matches!(token, Eq | Neq | Lt | Gt | LtEq | GtEq | StringConcat)
}

/// What makes `t.*` a value: an operator behind it.
fn follows_value(next: &Token) -> bool {
    *next == Token::DoubleColon
        || is_comparison(next)
        || ["is", "in", "between", "not"].iter().any(|word| is_word(next, word))
}

/// Or one before it.
fn precedes_value(tokens: &[TokenWithSpan], at: usize) -> bool {
    const WORDS: [&str; 13] =
        ["and", "or", "not", "when", "then", "else", "case", "between", "in", "on", "where", "having", "symmetric"];
    let is_distinct_from =
        || is_word(&tokens[at].token, "from") && at > 0 && is_word(&tokens[at - 1].token, "distinct");
    is_comparison(&tokens[at].token) || WORDS.iter().any(|word| is_word(&tokens[at].token, word)) || is_distinct_from()
}
