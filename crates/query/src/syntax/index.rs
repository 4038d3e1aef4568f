//! CREATE INDEX, ALTER INDEX, REINDEX and SET CONSTRAINTS.

use super::keys::nulls_not_distinct;
use super::{Name, Reader};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

#[derive(Clone, Debug)]
pub struct CreateIndex {
    pub name: Option<String>,
    pub table: Name,
    pub unique: bool,
    pub concurrently: bool,
    pub if_not_exists: bool,
    pub method: String,
    pub elements: Vec<IndexElement>,
    pub include: Vec<String>,
    pub nulls_not_distinct: bool,
    pub options: Vec<(String, String)>,
    pub predicate: Option<ast::Expr>,
}

#[derive(Clone, Debug)]
pub struct IndexElement {
    pub of: ElementOf,
    pub collation: Option<String>,
    pub opclass: Option<String>,
    pub descending: bool,
    /// As written; otherwise nulls are greater than everything else.
    pub nulls_first: Option<bool>,
}

#[derive(Clone, Debug)]
pub enum ElementOf {
    Column(String),
    Expression(Box<ast::Expr>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReindexTarget {
    Index(Name),
    Table(Name),
    Schema(String),
    Database(Option<String>),
}

/// `SET CONSTRAINTS`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetConstraints {
    /// None: ALL.
    pub names: Option<Vec<Name>>,
    pub deferred: bool,
}

/// After `CREATE`, if UNIQUE or INDEX is next.
pub(super) fn create_opt(reader: &mut Reader<'_>) -> Result<Option<CreateIndex>> {
    let is_unique = reader.sees("unique") && reader.sees_nth(1, "index");
    if !is_unique && !reader.sees("index") {
        return Ok(None);
    }
    let unique = reader.word("unique");
    reader.expect_word("index")?;
    let concurrently = reader.word("concurrently");
    let if_not_exists = reader.if_not_exists();
    let name = match reader.sees("on") {
        true if if_not_exists => return Err(reader.error_here()),
        true => None,
        false => Some(reader.name()?),
    };
    reader.expect_word("on")?;
    reader.word("only");
    let table = reader.object_name()?;
    let method = match reader.word("using") {
        true => reader.ident()?,
        false => "btree".to_string(),
    };
    reader.expect_token(&Token::LParen)?;
    let elements = reader.list(element)?;
    reader.expect_token(&Token::RParen)?;
    let include = match reader.word("include") {
        true => reader.names_in_parens()?,
        false => Vec::new(),
    };
    let nulls_not_distinct = nulls_not_distinct(reader);
    let options = match reader.word("with") {
        true => index_options(reader)?,
        false => Vec::new(),
    };
    if reader.word("tablespace") {
        tablespace(reader)?;
    }
    let predicate = match reader.word("where") {
        true => Some(reader.expr()?),
        false => None,
    };
    Ok(Some(CreateIndex {
        name,
        table,
        unique,
        concurrently,
        if_not_exists,
        method,
        elements,
        include,
        nulls_not_distinct,
        options,
        predicate,
    }))
}

/// Whether an expression is written as a call of a function, which needs no parentheses of its own.
fn is_call(expr: &ast::Expr) -> bool {
    use ast::Expr::{Cast, Ceil, Extract, Floor, Function, Overlay, Position, Substring, Trim};
    match expr {
        Cast { kind, .. } => *kind == ast::CastKind::Cast,
        Function(_) | Extract { .. } | Position { .. } | Substring { .. } | Trim { .. } | Overlay { .. } => true,
        Ceil { .. } | Floor { .. } => true,
        _ => false,
    }
}

fn element(reader: &mut Reader<'_>) -> Result<IndexElement> {
    let is_name = matches!(reader.peek(), Token::Word(_)) && !reader.nth_is_left_paren(1);
    let mut collation = None;
    let of = if is_name {
        ElementOf::Column(reader.ident()?)
    } else if reader.token(&Token::LParen) {
        let expr = reader.expr()?;
        reader.expect_token(&Token::RParen)?;
        match expr {
            ast::Expr::Identifier(ident) => ElementOf::Column(super::fold(&ident.value, ident.quote_style.is_some())),
            expr => ElementOf::Expression(Box::new(expr)),
        }
    } else {
        match reader.expr()? {
            ast::Expr::Collate { expr, collation: name } => {
                collation = last_part(&name);
                ElementOf::Expression(expr)
            }
            expr if is_call(&expr) => ElementOf::Expression(Box::new(expr)),
            other => {
                return Err(SqlError::syntax(format!("syntax error at or near \"{other}\""))
                    .with_hint("Expressions in an index stand in parentheses."));
            }
        }
    };
    if reader.word("collate") {
        collation = Some(reader.object_name()?.name);
    }
    let ends = |reader: &Reader<'_>| {
        matches!(reader.peek(), Token::Comma | Token::RParen)
            || ["asc", "desc", "nulls"].iter().any(|word| reader.sees(word))
    };
    let mut opclass = None;
    if !ends(reader) {
        opclass = Some(reader.object_name()?.name);
        if matches!(reader.peek(), Token::LParen) {
            index_options(reader)?;
        }
    }
    let descending = reader.one_of(&["asc", "desc"]) == Some("desc");
    let nulls_first = match reader.word("nulls") {
        true => match reader.one_of(&["first", "last"]) {
            Some(word) => Some(word == "first"),
            None => return Err(reader.error_here()),
        },
        false => None,
    };
    Ok(IndexElement { of, collation, opclass, descending, nulls_first })
}

fn last_part(name: &ast::ObjectName) -> Option<String> {
    name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone())
}

/// `(name value, …)`, where `value` reads what follows the name; a name alone means true.
fn options(
    reader: &mut Reader<'_>,
    value: fn(&mut Reader<'_>) -> Result<Option<String>>,
) -> Result<Vec<(String, String)>> {
    reader.expect_token(&Token::LParen)?;
    let options = reader.list(|reader| Ok((reader.ident()?, value(reader)?.unwrap_or_else(|| "true".to_string()))))?;
    reader.expect_token(&Token::RParen)?;
    Ok(options)
}

/// `(name = value, …)`.
pub(super) fn index_options(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>> {
    options(reader, |reader| match reader.token(&Token::Eq) {
        false => Ok(None),
        true => match reader.string_opt().or_else(|| reader.number_opt()) {
            Some(value) => Ok(Some(value)),
            None => reader.ident().map(Some),
        },
    })
}

/// There is one place for indexes. 42704 for any other.
pub(super) fn tablespace(reader: &mut Reader<'_>) -> Result<()> {
    match reader.ident()?.as_str() {
        "pg_default" => Ok(()),
        "pg_global" => Err(SqlError::new("22023", "only shared relations can be placed in pg_global tablespace")),
        name => Err(SqlError::new("42704", format!("tablespace \"{name}\" does not exist"))),
    }
}

/// `(name [value], …)`.
fn reindex_options(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>> {
    options(reader, |reader| {
        if matches!(reader.peek(), Token::Comma | Token::RParen) {
            return Ok(None);
        }
        let literal = reader.string_opt().or_else(|| reader.number_opt());
        match literal.or_else(|| reader.one_of(&["true", "false", "on"]).map(str::to_string)) {
            Some(value) => Ok(Some(value)),
            None => reader.ident().map(Some),
        }
    })
}

/// After `REINDEX`: what, and whether CONCURRENTLY.
pub(super) fn reindex(reader: &mut Reader<'_>) -> Result<(ReindexTarget, bool)> {
    let mut concurrently = false;
    if matches!(reader.peek(), Token::LParen) {
        for (name, value) in reindex_options(reader)? {
            match (name.as_str(), crate::settings::value::bool_of(&value)) {
                ("concurrently", Some(on)) => concurrently = on,
                ("verbose" | "tablespace", _) => {}
                ("concurrently", None) => return Err(SqlError::syntax("concurrently requires a Boolean value")),
                _ => return Err(SqlError::syntax(format!("unrecognized REINDEX option \"{name}\""))),
            }
        }
    }
    let what = reader.one_of(&["index", "table", "schema", "database", "system"]);
    concurrently |= reader.word("concurrently");
    let target = match what {
        Some("index") => ReindexTarget::Index(reader.object_name()?),
        Some("table") => ReindexTarget::Table(reader.object_name()?),
        Some("schema") => ReindexTarget::Schema(reader.ident()?),
        Some("system") if concurrently => {
            return Err(SqlError::not_supported("cannot reindex system catalogs concurrently"));
        }
        Some(_) => ReindexTarget::Database(if reader.at_end() { None } else { Some(reader.ident()?) }),
        None => return Err(reader.error_here()),
    };
    Ok((target, concurrently))
}

/// After `SET CONSTRAINTS`.
pub(super) fn set_constraints(reader: &mut Reader<'_>) -> Result<SetConstraints> {
    let names = match reader.word("all") {
        true => None,
        false => Some(reader.list(Reader::object_name)?),
    };
    match reader.one_of(&["deferred", "immediate"]) {
        Some(word) => Ok(SetConstraints { names, deferred: word == "deferred" }),
        None => Err(reader.error_here()),
    }
}
