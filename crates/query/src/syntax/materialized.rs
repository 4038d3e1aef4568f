//! CREATE and REFRESH MATERIALIZED VIEW (PostgreSQL manual, under these names). ALTER, DROP and COMMENT are read with
//! those of other relations.

use super::{Definition, Name, Reader, table};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

#[derive(Clone, Debug)]
pub struct CreateMaterialized {
    pub name: Name,
    pub if_not_exists: bool,
    /// Names of columns, as far as they are given.
    pub columns: Vec<String>,
    pub options: Vec<(String, String)>,
    pub query: Box<ast::Query>,
    /// Not WITH NO DATA.
    pub with_data: bool,
}

/// Behind `CREATE [UNLOGGED] MATERIALIZED`.
pub(super) fn create(reader: &mut Reader<'_>, unlogged: bool) -> Result<Definition> {
    reader.expect_word("view")?;
    let if_not_exists = reader.if_not_exists();
    let name = reader.object_name()?;
    let columns = match reader.peek() {
        Token::LParen => reader.names_in_parens()?,
        _ => Vec::new(),
    };
    let mut options = Vec::new();
    if reader.word("using") {
        table::access_method(reader)?;
    }
    if reader.word("with") {
        options = table::options(reader)?;
    }
    if reader.word("tablespace") {
        table::tablespace(reader)?;
    }
    reader.expect_word("as")?;
    if ["insert", "update", "delete", "merge"].iter().any(|verb| reader.sees(verb)) {
        return Err(reader.error_here());
    }
    let query = reader.query()?;
    let with_data = with_data(reader);
    if unlogged {
        return Err(SqlError::not_supported("materialized views cannot be unlogged"));
    }
    let create = CreateMaterialized { name, if_not_exists, columns, options, query, with_data };
    Ok(Definition::CreateMaterialized(Box::new(create)))
}

fn with_data(reader: &mut Reader<'_>) -> bool {
    if reader.words(&["with", "no", "data"]) {
        return false;
    }
    reader.words(&["with", "data"]);
    true
}

/// Behind `REFRESH`.
pub(super) fn refresh(reader: &mut Reader<'_>) -> Result<Definition> {
    reader.expect_word("materialized")?;
    reader.expect_word("view")?;
    let concurrently = reader.word("concurrently");
    let name = reader.object_name()?;
    Ok(Definition::RefreshMaterialized { name, concurrently, with_data: with_data(reader) })
}
