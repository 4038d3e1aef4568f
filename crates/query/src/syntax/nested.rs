//! Queries in parentheses where sqlparser looks for `(SELECT` alone (PostgreSQL manual 4.2.11, 9.23): a set
//! operation whose first query has parentheses of its own, VALUES, and subqueries that begin a list of IN. COLLATE
//! may follow whatever is an operand, a cast as well as a name.

use super::reader::is_word;
use sqlparser::ast::Expr;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What a parenthesis holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    /// `SELECT …`, `WITH …`
    Plain,
    /// A query that begins with VALUES or another parenthesis, and goes on behind that.
    Query,
    /// A query in parentheses, as a part of something else: an operand, the first of a list.
    Operand,
    Other,
}

/// Parentheses that are looked into before a query.
const PARENS_MAX: usize = 300;

/// `kind` gives the token at a place; the parenthesis stands at `open`.
fn content<'t>(kind: &dyn Fn(usize) -> &'t Token, open: usize) -> Content {
    let mut first = open + 1;
    while *kind(first) == Token::LParen && first - open < PARENS_MAX {
        first += 1;
    }
    let starts = |word: &str| is_word(kind(first), word);
    if !["select", "with", "values"].iter().any(|word| starts(word)) {
        return Content::Other;
    }
    if first == open + 1 {
        return if starts("values") { Content::Query } else { Content::Plain };
    }
    let Some(close) = closing(kind, open + 1) else { return Content::Other };
    const GOES_ON: [&str; 8] = ["union", "intersect", "except", "order", "limit", "offset", "fetch", "for"];
    match kind(close + 1) {
        Token::RParen => content(kind, open + 1),
        next if GOES_ON.iter().any(|word| is_word(next, word)) => Content::Query,
        _ => Content::Operand,
    }
}

/// The parenthesis that closes the one at `open`.
fn closing<'t>(kind: &dyn Fn(usize) -> &'t Token, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for at in open.. {
        match kind(at) {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            Token::EOF => return None,
            _ => {}
        }
    }
    None
}

/// A subquery that is an operand and does not begin with SELECT.
pub(super) fn operand(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    if parser.peek_token_ref().token != Token::LParen {
        return None;
    }
    let may_be = match &parser.peek_nth_token_ref(1).token {
        Token::LParen => true,
        word => is_word(word, "values"),
    };
    if !may_be || content(&|at| &parser.peek_nth_token_ref(at).token, 0) != Content::Query {
        return None;
    }
    if parser.peek_nth_token_ref(1).token == Token::LParen
        && closing(&|at| &parser.peek_nth_token_ref(at).token, 1)
            .is_some_and(|close| parser.peek_nth_token_ref(close + 1).token == Token::RParen)
    {
        // Parentheses around what is read when its turn comes.
        return None;
    }
    let mut read = || {
        parser.expect_token(&Token::LParen)?;
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::Subquery(query))
    };
    Some(read())
}

/// `x IN ((SELECT …), y)`, and COLLATE.
pub(super) fn behind(parser: &mut Parser, left: &Expr) -> Option<Result<Expr, ParserError>> {
    let sees = |at: usize, word: &str| is_word(&parser.peek_nth_token_ref(at).token, word);
    if sees(0, "collate") {
        parser.next_token();
        let collation = parser.parse_object_name(false);
        return Some(collation.map(|collation| Expr::Collate { expr: Box::new(left.clone()), collation }));
    }
    let negated = sees(0, "not");
    let open = if negated { 2 } else { 1 };
    if !sees(open - 1, "in") || parser.peek_nth_token_ref(open + 1).token != Token::LParen {
        return None;
    }
    let kind = |at: usize| &parser.peek_nth_token_ref(at).token;
    if *kind(open) != Token::LParen || content(&kind, open) != Content::Operand {
        return None;
    }
    (0..=open).for_each(|_| drop(parser.next_token()));
    let mut read = || {
        let list = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::InList { expr: Box::new(left.clone()), list, negated })
    };
    Some(read())
}

/// `ANY (VALUES …)` as `ANY (SELECT * FROM (VALUES …) AS "any")`: of one statement's tokens.
pub(super) fn written(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let kind = |at: usize| tokens.get(at).map_or(&Token::EOF, |token| &token.token);
    let is_one = |at: usize| {
        ["any", "some", "all"].iter().any(|word| is_word(kind(at), word))
            && *kind(at + 1) == Token::LParen
            && content(&kind, at + 1) == Content::Query
            && at > 0
            && is_operator(kind(at - 1))
    };
    let places: Vec<usize> = (0..tokens.len()).filter(|at| is_one(*at)).collect();
    if places.is_empty() {
        return tokens;
    }
    let mut ends: Vec<usize> = Vec::new();
    let mut out = Vec::with_capacity(tokens.len() + 8 * places.len());
    for (at, token) in tokens.iter().enumerate() {
        let put = |token_type: Token| TokenWithSpan::new(token_type, token.span);
        if ends.last() == Some(&at) {
            ends.pop();
            out.extend([Token::RParen, Token::make_keyword("AS"), Token::make_word("any", Some('"'))].map(put));
        }
        out.push(token.clone());
        let Some(open) = at.checked_sub(1).filter(|open| places.contains(open)) else { continue };
        let Some(close) = closing(&kind, open + 1) else { continue };
        out.extend([Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM"), Token::LParen].map(put));
        ends.push(close);
    }
    out
}

fn is_operator(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
        || matches!(token, Token::Word(_)) && ["like", "ilike"].iter().any(|word| is_word(token, word))
        || matches!(token, Token::Tilde | Token::CustomBinaryOperator(_) | Token::DoubleTilde)
}
