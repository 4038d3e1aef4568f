//! EXPLAIN and its options (PostgreSQL manual, EXPLAIN).

use super::{Definition, Reader, Statement, Utility};
use crate::error::{Result, SqlError};
use sqlparser::tokenizer::Token;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExplainOptions {
    pub analyze: bool,
    pub verbose: bool,
    pub format: ExplainFormat,
    /// What is expected; `None`: it is told.
    pub costs: Option<bool>,
    /// Times of the operators; `None`: with ANALYZE.
    pub timing: Option<bool>,
    /// Times of the whole; `None`: with ANALYZE.
    pub summary: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExplainFormat {
    #[default]
    Text,
    Json,
    Xml,
    Yaml,
}

/// Behind `EXPLAIN`.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Statement> {
    let mut options = ExplainOptions::default();
    if matches!(reader.peek(), Token::LParen) && !reader.sees_nth(1, "select") && !reader.sees_nth(1, "values") {
        reader.skip();
        let mut wal = false;
        loop {
            wal |= option(reader, &mut options)?;
            if !reader.token(&Token::Comma) {
                break;
            }
        }
        reader.expect_token(&Token::RParen)?;
        for (name, given) in [("WAL", wal), ("TIMING", options.timing == Some(true))] {
            if given && !options.analyze {
                return Err(SqlError::new("22023", format!("EXPLAIN option {name} requires ANALYZE")));
            }
        }
    } else {
        options.analyze = reader.word("analyze") || reader.word("analyse");
        options.verbose = reader.word("verbose");
    }
    let before = reader.error_here();
    let statement = Box::new(super::parse_statement(reader)?);
    match &*statement {
        explained if explained.has_plan() => {}
        Statement::Utility(utility) if matches!(**utility, Utility::Declare(_) | Utility::Execute { .. }) => {}
        Statement::Define(definition) if creates_as(definition) => {}
        _ => return Err(before),
    }
    Ok(Statement::Explain { options, statement })
}

fn creates_as(definition: &Definition) -> bool {
    match definition {
        Definition::CreateTable(create) => create.query.is_some(),
        Definition::CreateMaterialized(_) | Definition::RefreshMaterialized { .. } => true,
        _ => false,
    }
}

/// One option; true for WAL.
fn option(reader: &mut Reader<'_>, options: &mut ExplainOptions) -> Result<bool> {
    let name = reader.ident()?;
    let value = match reader.peek() {
        Token::Comma | Token::RParen => None,
        _ => Some(match reader.string_opt().or_else(|| reader.number_opt()) {
            Some(value) => value,
            None => reader.ident()?,
        }),
    };
    if name == "format" {
        let Some(value) = value else { return Err(SqlError::syntax("format requires a parameter")) };
        match value.to_ascii_lowercase().as_str() {
            "text" => options.format = ExplainFormat::Text,
            "json" => options.format = ExplainFormat::Json,
            "xml" => options.format = ExplainFormat::Xml,
            "yaml" => options.format = ExplainFormat::Yaml,
            _ => {
                let message = format!("unrecognized value for EXPLAIN option \"format\": \"{value}\"");
                return Err(SqlError::new("22023", message));
            }
        }
        return Ok(false);
    }
    let known = ["analyze", "verbose", "costs", "settings", "buffers", "wal", "timing", "summary"];
    if !known.contains(&name.as_str()) {
        return Err(SqlError::syntax(format!("unrecognized EXPLAIN option \"{name}\"")));
    }
    let flag = crate::settings::value::bool_of(value.as_deref().unwrap_or("on"));
    let flag = flag.ok_or_else(|| SqlError::syntax(format!("{name} requires a Boolean value")))?;
    match name.as_str() {
        "analyze" => options.analyze = flag,
        "verbose" => options.verbose = flag,
        "costs" => options.costs = Some(flag),
        "timing" => options.timing = Some(flag),
        "summary" => options.summary = Some(flag),
        _ => {}
    }
    Ok(name == "wal" && flag)
}
