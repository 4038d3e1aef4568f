//! From text to statements.
//!
//! sqlparser reads queries, expressions, column definitions and the three data-changing verbs. The rest
//! of the grammar, which is PostgreSQL's own, is read here: `utility` and `ddl` and `copy`.

mod absent;
pub(crate) mod chains;
mod clauses;
mod column_lists;
mod copy;
mod ddl;
mod dialect;
mod dml;
mod escapes;
mod explain;
pub(crate) mod forms;
mod index;
mod joins;
mod keys;
mod literals;
mod locking;
mod materialized;
mod nested;
mod operators;
mod privilege;
mod reader;
mod recursion;
mod role;
mod sequence;
mod short;
mod spelling;
mod table;
mod table_query;
mod targets;
mod types;
mod utility;
mod whole_rows;
mod written;

pub use absent::Absent;
pub(crate) use clauses::{
    EMPTY_SET, GROUP_BY_DISTINCT, GROUPING_SETS, REPEATABLE, TABLESAMPLE, USING_OPERATOR, WITH_TIES, exclude_marker,
    marked,
};
pub(crate) use column_lists::{columns_of_item, is_unnamed};
pub use copy::{CopyFormat, CopyOptions, CopySource, CopyStatement, CopyTarget, ForceColumns, HeaderChoice};
pub use ddl::*;
pub(crate) use dialect::Postgres15;
pub use dml::{ConflictElement, conflict_element, is_merge_default_values, is_merge_nothing, merge_values};
pub use explain::{ExplainFormat, ExplainOptions};
pub use index::{CreateIndex, ElementOf, IndexElement, ReindexTarget, SetConstraints};
pub use keys::{Deferral, ForeignKeyClause, KeyConstraint, UniqueClause};
pub use locking::{LockingClause, strength_name};
pub use materialized::CreateMaterialized;
pub use privilege::{DefaultPrivileges, PrivilegeClause, PrivilegeGrant, PrivilegeTarget};
pub use reader::{Name, Reader, fold};
pub(crate) use recursion::{CycleClause, RecursionClauses, clauses_of};
pub use role::*;
pub use sequence::SequenceOptions;
pub use short::cursor_of;
pub(crate) use short::is_nothing;
pub use spelling::{all_fields_mark, quantified};
pub use table::*;
pub use targets::{TargetStep, target_steps};
pub use types::*;
pub use utility::*;
pub(crate) use whole_rows::WHOLE_ROW;
pub use written::as_written;

use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};
use std::sync::Arc;

/// Longest text of one message.
pub const SQL_BYTES_MAX: usize = 256 << 20;

/// One statement of a text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The whole text, which error positions refer to.
    pub sql: Arc<str>,
    pub statement: Statement,
}

#[derive(Clone, Debug)]
pub enum Statement {
    Query(Box<ast::Query>),
    Insert(Box<ast::Insert>),
    Update(Box<ast::Update>),
    Delete(Box<ast::Delete>),
    Merge(Box<ast::Merge>),
    Copy(Box<CopyStatement>),
    Define(Box<Definition>),
    Transaction(TransactionVerb),
    Utility(Box<Utility>),
    Explain { options: ExplainOptions, statement: Box<Statement> },
}

impl Statement {
    /// Whether it is bound to a plan: a query or a command that changes rows.
    pub fn has_plan(&self) -> bool {
        matches!(
            self,
            Statement::Query(_)
                | Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::Merge(_)
        )
    }

    /// As command tags and log lines name it.
    pub fn verb(&self) -> &'static str {
        match self {
            Statement::Query(query) => match &*query.body {
                ast::SetExpr::Insert(_) => "INSERT",
                ast::SetExpr::Update(_) => "UPDATE",
                ast::SetExpr::Delete(_) => "DELETE",
                ast::SetExpr::Merge(_) => "MERGE",
                _ => "SELECT",
            },
            Statement::Insert(_) => "INSERT",
            Statement::Update(_) => "UPDATE",
            Statement::Delete(_) => "DELETE",
            Statement::Merge(_) => "MERGE",
            Statement::Copy(_) => "COPY",
            Statement::Define(definition) => definition.tag(),
            Statement::Transaction(verb) => verb.tag(),
            Statement::Utility(utility) => utility.tag(),
            Statement::Explain { .. } => "EXPLAIN",
        }
    }
}

/// The statements of a text; empty ones are left out. 42601 with the position.
pub fn parse(sql: &str) -> Result<Vec<Parsed>> {
    if sql.len() > SQL_BYTES_MAX {
        return Err(SqlError::new("54000", format!("a statement is longer than {SQL_BYTES_MAX} bytes")));
    }
    if sql.contains('\0') {
        return Err(SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    parse_kept(sql)
}

/// The same of texts that rest in the catalog: they hold NULs (`bind::pinned`).
fn parse_kept(sql: &str) -> Result<Vec<Parsed>> {
    let tokens = tokens(sql)?;
    let is_empty = |token: &&TokenWithSpan| matches!(&token.token, Token::Word(word) if word.quote_style == Some('"') && word.value.is_empty());
    if let Some(token) = tokens.iter().find(is_empty) {
        let place = reader::position_of(sql, token.span.start);
        return Err(SqlError::syntax("zero-length delimited identifier at or near \"\"\"\"").at(place));
    }
    literals::check_numbers(&tokens, sql)?;
    let tokens = operators::whole(literals::joined(tokens, sql)?, sql);
    let text: Arc<str> = sql.into();
    let mut statements = Vec::new();
    for tokens in split(tokens) {
        short::check(&tokens, sql)?;
        chains::check(&tokens)?;
        let mut reader = Reader::new(canonical(tokens), sql);
        let statement = parse_statement(&mut reader)?;
        reader.expect_end()?;
        statements.push(Parsed { sql: text.clone(), statement });
    }
    Ok(statements)
}

/// One statement's tokens in forms that sqlparser reads.
fn canonical(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let tokens = joins::written(nested::written(short::written(tokens)));
    let tokens = operators::split(clauses::written(column_lists::written(tokens)));
    let tokens = recursion::marked(spelling::plain(whole_rows::marked(forms::marked(tokens))));
    targets::written(locking::canonical(dml::plain(table_query::written_out(tokens))))
}

pub(crate) fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>> {
    let read = |text: &str| Tokenizer::new(&Postgres15, text).tokenize_with_location();
    let of_string =
        |error: &TokenizerError| error.message.contains("encoded string") || error.message.contains("unicode");
    let mut tokens = read(sql);
    if let Err(error) = &tokens
        && of_string(error)
        && let Some(paired) = escapes::paired(sql)
    {
        tokens = read(&paired.text);
        match &mut tokens {
            Ok(tokens) => paired.restore(tokens),
            Err(error) => error.location = paired.before(error.location),
        }
    }
    tokens.map_err(|error| {
        let near = reader::position_of(sql, error.location).map_or(0, |position| position as usize - 1);
        let fault = of_string(&error).then(|| escapes::fault(sql, near)).flatten();
        fault.unwrap_or_else(|| reader::parse_error(error.into(), sql))
    })
}

/// Cuts at semicolons; leaves white space, comments and empty statements out.
fn split(tokens: Vec<TokenWithSpan>) -> Vec<Vec<TokenWithSpan>> {
    let mut statements = vec![Vec::new()];
    for token in tokens {
        match token.token {
            Token::SemiColon => statements.push(Vec::new()),
            Token::Whitespace(_) | Token::EOF => {}
            _ => statements.last_mut().expect("never empty").push(token),
        }
    }
    statements.retain(|statement| !statement.is_empty());
    statements
}

pub(crate) fn parse_statement(reader: &mut Reader<'_>) -> Result<Statement> {
    for word in ["select", "values", "with", "table"] {
        if reader.sees(word) {
            return Ok(Statement::Query(reader.query()?));
        }
    }
    if matches!(reader.peek(), Token::LParen) {
        return Ok(Statement::Query(reader.query()?));
    }
    if ["insert", "update", "delete", "merge"].iter().any(|word| reader.sees(word)) {
        return match reader.statement()? {
            ast::Statement::Insert(insert) => Ok(Statement::Insert(Box::new(insert))),
            ast::Statement::Update(update) => Ok(Statement::Update(Box::new(update))),
            ast::Statement::Delete(delete) => Ok(Statement::Delete(Box::new(delete))),
            ast::Statement::Merge(merge) => Ok(Statement::Merge(Box::new(merge))),
            other => Err(SqlError::not_supported(format!("this form of statement is not supported: {other}"))),
        };
    }
    if reader.word("copy") {
        return Ok(Statement::Copy(Box::new(copy::parse(reader)?)));
    }
    if reader.word("explain") {
        return explain::parse(reader);
    }
    if let Some(verb) = utility::parse_transaction(reader)? {
        return Ok(Statement::Transaction(verb));
    }
    if let Some(grant) = role::grant(reader)? {
        return Ok(Statement::Define(Box::new(grant)));
    }
    if let Some(utility) = ddl::alter_system(reader)? {
        return Ok(Statement::Utility(Box::new(utility)));
    }
    if let Some(definition) = ddl::parse(reader)? {
        return Ok(Statement::Define(Box::new(definition)));
    }
    match utility::parse(reader)? {
        Some(utility) => Ok(Statement::Utility(Box::new(utility))),
        None => Err(reader.error_here()),
    }
}

#[cfg(test)]
mod tests;
