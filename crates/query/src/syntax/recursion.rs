//! SEARCH and CYCLE behind a query of WITH RECURSIVE (PostgreSQL manual 7.8.2.1 and 7.8.2.2). sqlparser does not know
//! them: they travel as text in a name that it reads there, `… ) FROM "␁search depth first by a set b"`.

use super::Reader;
use super::reader::is_word;
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// No name begins with it.
const MARK: char = '\u{1}';

#[derive(Clone, Debug)]
pub struct SearchClause {
    pub breadth: bool,
    pub columns: Vec<String>,
    pub sequence: String,
}

#[derive(Clone, Debug)]
pub struct CycleClause {
    pub columns: Vec<String>,
    pub mark: String,
    /// What the mark is where a row was met again, and where not; `None`: true and false.
    pub values: Option<(ast::Expr, ast::Expr)>,
    pub path: String,
}

#[derive(Clone, Debug, Default)]
pub struct RecursionClauses {
    pub search: Option<SearchClause>,
    pub cycle: Option<CycleClause>,
}

/// The tokens of one statement with the clauses in their marked form.
pub(super) fn marked(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let has = |word| tokens.iter().any(|token| is_word(&token.token, word));
    if !has("with") || !(has("search") || has("cycle")) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        out.push(tokens[at].clone());
        if matches!(tokens[at].token, Token::RParen)
            && let Some(end) = clauses_end(&tokens, at + 1)
        {
            let text: Vec<String> = tokens[at + 1..end].iter().map(|token| token.token.to_string()).collect();
            let span = tokens[at + 1].span;
            out.push(TokenWithSpan::new(Token::make_keyword("FROM"), span));
            let name = format!("{MARK}{}", text.join(" "));
            out.push(TokenWithSpan::new(Token::make_word(&name, Some('"')), span));
            at = end;
            continue;
        }
        at += 1;
    }
    out
}

fn sees(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    tokens.get(at).is_some_and(|token| is_word(&token.token, word))
}

/// Behind the clauses that start here, if there are some.
fn clauses_end(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let is_name = |at: usize| tokens.get(at).is_some_and(|token| matches!(token.token, Token::Word(_)));
    let behind = |from: usize, word: &str| {
        let end = (from..tokens.len()).find(|at| sees(tokens, *at, word) || tokens[*at].token == Token::SemiColon)?;
        sees(tokens, end, word).then_some(end)
    };
    let mut end = start;
    let kind = sees(tokens, end + 1, "depth") || sees(tokens, end + 1, "breadth");
    if sees(tokens, end, "search") && kind && sees(tokens, end + 2, "first") {
        end = behind(end, "set")? + 2;
    }
    if sees(tokens, end, "cycle") && is_name(end + 1) {
        end = behind(end, "using")? + 2;
    }
    (end > start && end <= tokens.len()).then_some(end)
}

/// The clauses that a name in the place of WITH's FROM stands for; `None` for any other.
pub(crate) fn clauses_of(name: &ast::Ident) -> Option<Result<RecursionClauses>> {
    let text = name.value.strip_prefix(MARK)?;
    Some(parse(text))
}

fn constant(reader: &mut Reader<'_>) -> Result<ast::Expr> {
    let here = SqlError { position: None, ..reader.error_here() };
    match reader.expr()? {
        constant @ (ast::Expr::Value(_) | ast::Expr::TypedString(_) | ast::Expr::Interval(_)) => Ok(constant),
        _ => Err(here),
    }
}

fn parse(text: &str) -> Result<RecursionClauses> {
    let tokens = super::tokens(text)?.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut reader = Reader::new(tokens.collect(), text);
    let mut clauses = RecursionClauses::default();
    if reader.word("search") {
        let breadth = reader.one_of(&["depth", "breadth"]) == Some("breadth");
        reader.expect_word("first")?;
        reader.expect_word("by")?;
        let columns = reader.list(Reader::ident)?;
        reader.expect_word("set")?;
        clauses.search = Some(SearchClause { breadth, columns, sequence: reader.ident()? });
    }
    if reader.word("cycle") {
        let columns = reader.list(Reader::ident)?;
        reader.expect_word("set")?;
        let mark = reader.ident()?;
        let values = match reader.word("to") {
            true => {
                let to = constant(&mut reader)?;
                reader.expect_word("default")?;
                Some((to, constant(&mut reader)?))
            }
            false => None,
        };
        reader.expect_word("using")?;
        clauses.cycle = Some(CycleClause { columns, mark, values, path: reader.ident()? });
    }
    match reader.at_end() {
        true => Ok(clauses),
        false => Err(SqlError { position: None, ..reader.error_here() }),
    }
}
