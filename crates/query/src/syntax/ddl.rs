//! Definitions: tables, views, schemas, roles, databases, comments.

use super::{Name, Reader, utility};
use crate::error::{Result, SqlError};
use basalt_engine::CheckOption;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

#[derive(Clone, Debug)]
pub struct ColumnClause {
    pub name: String,
    pub ty: ast::DataType,
    pub not_null: bool,
    pub default: Option<ast::Expr>,
    /// The constraint's name, if it has one.
    pub primary_key: Option<Option<String>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyClause {
    pub constraint: Option<String>,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct CreateTable {
    pub name: Name,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnClause>,
    pub keys: Vec<KeyClause>,
    /// Storage parameters as written.
    pub options: Vec<(String, String)>,
    /// `AS query`, with the column names given before it, and whether its rows are wanted.
    pub query: Option<(Box<ast::Query>, Vec<String>, bool)>,
}

#[derive(Clone, Debug)]
pub enum AlterAction {
    AddColumn {
        column: ColumnClause,
        if_not_exists: bool,
    },
    DropColumn {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    AddKey(KeyClause),
    DropConstraint {
        name: String,
        if_exists: bool,
    },
    SetNotNull(String),
    DropNotNull(String),
    SetDefault(String, ast::Expr),
    DropDefault(String),
    SetOptions(Vec<(String, String)>),
    ResetOptions(Vec<String>),
    OwnerTo(String),
    RenameColumn(String, String),
    RenameConstraint(String, String),
    RenameTo(String),
    SetSchema(String),
    /// Accepted, and without effect here.
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    Table,
    View,
    Schema,
    Column,
    Database,
    Role,
}

#[derive(Clone, Debug, Default)]
pub struct RoleOptions {
    pub superuser: Option<bool>,
    pub login: Option<bool>,
    /// `Some(None)`: `PASSWORD NULL`.
    pub password: Option<Option<String>>,
}

#[derive(Clone, Debug)]
pub enum Definition {
    CreateTable(CreateTable),
    AlterTable { name: Name, if_exists: bool, view: bool, actions: Vec<AlterAction> },
    CreateView { name: Name, or_replace: bool, columns: Vec<String>, query: Box<ast::Query>, check: CheckOption },
    CreateSchema { name: String, if_not_exists: bool, owner: Option<String> },
    AlterSchema { name: String, rename: Option<String>, owner: Option<String> },
    Drop { kind: ObjectKind, names: Vec<Name>, if_exists: bool, cascade: bool },
    Truncate(Vec<Name>),
    Comment { kind: ObjectKind, name: Name, column: Option<String>, text: Option<String> },
    CreateRole { name: String, user: bool, options: RoleOptions },
    AlterRole { name: String, options: RoleOptions, rename: Option<String> },
    CreateDatabase { name: String, owner: Option<String> },
}

impl Definition {
    pub fn tag(&self) -> &'static str {
        match self {
            Definition::CreateTable(table) if table.query.is_some() => "SELECT",
            Definition::CreateTable(_) => "CREATE TABLE",
            Definition::AlterTable { view: false, .. } => "ALTER TABLE",
            Definition::AlterTable { view: true, .. } => "ALTER VIEW",
            Definition::CreateView { .. } => "CREATE VIEW",
            Definition::CreateSchema { .. } => "CREATE SCHEMA",
            Definition::AlterSchema { .. } => "ALTER SCHEMA",
            Definition::Drop { kind, .. } => match kind {
                ObjectKind::Table | ObjectKind::Column => "DROP TABLE",
                ObjectKind::View => "DROP VIEW",
                ObjectKind::Schema => "DROP SCHEMA",
                ObjectKind::Database => "DROP DATABASE",
                ObjectKind::Role => "DROP ROLE",
            },
            Definition::Truncate(_) => "TRUNCATE TABLE",
            Definition::Comment { .. } => "COMMENT",
            Definition::CreateRole { .. } => "CREATE ROLE",
            Definition::AlterRole { .. } => "ALTER ROLE",
            Definition::CreateDatabase { .. } => "CREATE DATABASE",
        }
    }
}

/// `None` if the next word begins no definition.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Option<Definition>> {
    Ok(Some(match reader.one_of(&["create", "alter", "drop", "truncate", "comment"]) {
        Some("create") => create(reader)?,
        Some("alter") => alter(reader)?,
        Some("drop") => drop(reader)?,
        Some("truncate") => truncate(reader)?,
        Some(_) => comment(reader)?,
        None => return Ok(None),
    }))
}

fn create(reader: &mut Reader<'_>) -> Result<Definition> {
    let or_replace = reader.words(&["or", "replace"]);
    if reader.word("view") {
        return create_view(reader, or_replace);
    }
    if or_replace {
        return Err(unsupported(reader, "CREATE OR REPLACE"));
    }
    if reader.word("unlogged") || reader.sees("table") {
        reader.expect_word("table")?;
        return create_table(reader);
    }
    if reader.sees("temp") || reader.sees("temporary") || reader.sees("global") || reader.sees("local") {
        return Err(SqlError::not_supported("temporary tables are not supported")
            .with_hint("Create an ordinary table, and drop it when it is no longer needed."));
    }
    if reader.word("schema") {
        let if_not_exists = reader.if_not_exists();
        let mut owner = None;
        let name = if reader.word("authorization") {
            let role = reader.ident()?;
            owner = Some(role.clone());
            role
        } else {
            reader.ident()?
        };
        if reader.word("authorization") {
            owner = Some(reader.ident()?);
        }
        return Ok(Definition::CreateSchema { name, if_not_exists, owner });
    }
    if let Some(kind) = reader.one_of(&["role", "user", "group"]) {
        let name = reader.ident()?;
        return Ok(Definition::CreateRole { name, user: kind == "user", options: role_options(reader)? });
    }
    if reader.word("database") {
        return create_database(reader);
    }
    Err(unsupported(reader, "CREATE"))
}

fn unsupported(reader: &Reader<'_>, verb: &str) -> SqlError {
    let what = match reader.peek() {
        Token::Word(word) => word.value.to_uppercase(),
        _ => return reader.error_here(),
    };
    let what = match what.as_str() {
        "UNIQUE" => "UNIQUE INDEX",
        "MATERIALIZED" => "MATERIALIZED VIEW",
        "FOREIGN" if reader.sees_nth(1, "table") => "FOREIGN TABLE",
        what => what,
    };
    let error = SqlError::not_supported(format!("{verb} {what} is not supported"));
    match what {
        "INDEX" | "UNIQUE INDEX" => {
            error.with_hint("Declare a primary key; scans skip by each column's bounds without an index.")
        }
        "SEQUENCE" => error.with_hint("Draw keys in the client, or use gen_random_uuid()."),
        "MATERIALIZED VIEW" => error.with_hint("Use CREATE VIEW, or CREATE TABLE … AS."),
        "EXTENSION" => error.with_hint("Basalt has what it has built in."),
        _ => error,
    }
}

fn create_view(reader: &mut Reader<'_>, or_replace: bool) -> Result<Definition> {
    let name = reader.object_name()?;
    let mut columns = Vec::new();
    if matches!(reader.peek(), Token::LParen) {
        columns = reader.idents_in_parens()?;
    }
    let mut check = CheckOption::None;
    if reader.word("with") {
        check = view_options(reader)?;
    }
    reader.expect_word("as")?;
    let query = reader.query()?;
    if reader.words(&["with", "check", "option"]) || reader.words(&["with", "cascaded", "check", "option"]) {
        check = CheckOption::Cascaded;
    } else if reader.words(&["with", "local", "check", "option"]) {
        check = CheckOption::Local;
    }
    Ok(Definition::CreateView { name, or_replace, columns, query, check })
}

/// `(check_option = local, …)`.
fn view_options(reader: &mut Reader<'_>) -> Result<CheckOption> {
    let mut check = CheckOption::None;
    reader.expect_token(&Token::LParen)?;
    loop {
        let option = reader.ident()?;
        let value = match reader.token(&Token::Eq) {
            true => match reader.string_opt() {
                Some(value) => value,
                None => reader.ident()?,
            },
            false => "true".to_string(),
        };
        match (option.as_str(), value.as_str()) {
            ("check_option", "local") => check = CheckOption::Local,
            ("check_option", "cascaded") => check = CheckOption::Cascaded,
            ("check_option", _) => {
                return Err(SqlError::new(
                    "22023",
                    "invalid value for enum option \"check_option\": ".to_string() + &value,
                )
                .with_detail("Valid values are \"local\" and \"cascaded\"."));
            }
            ("security_barrier" | "security_invoker", "true" | "false" | "on" | "off" | "1" | "0") => {}
            (other, _) => {
                return Err(SqlError::new("22023", format!("unrecognized parameter \"{other}\"")));
            }
        }
        if !reader.token(&Token::Comma) {
            break;
        }
    }
    reader.expect_token(&Token::RParen)?;
    Ok(check)
}

fn create_database(reader: &mut Reader<'_>) -> Result<Definition> {
    let name = reader.ident()?;
    let mut owner = None;
    reader.word("with");
    while !reader.at_end() {
        let option = reader.ident()?;
        reader.token(&Token::Eq);
        let value = match reader.string_opt().or_else(|| reader.number_opt()) {
            Some(value) => value,
            None => reader.ident()?,
        };
        match option.as_str() {
            "owner" => owner = Some(value),
            "encoding" if value.eq_ignore_ascii_case("utf8") || value.eq_ignore_ascii_case("utf-8") => {}
            "template" if matches!(value.as_str(), "template0" | "template1") => {}
            "lc_collate" | "lc_ctype" | "locale" if matches!(value.as_str(), "C" | "C.UTF-8") => {}
            "tablespace" if value == "pg_default" => {}
            "tablespace" => return Err(SqlError::new("42704", format!("tablespace \"{value}\" does not exist"))),
            "encoding" => {
                return Err(SqlError::not_supported(format!("encoding {value} is not supported"))
                    .with_hint("Databases are UTF8: leave ENCODING out. Clients too send and receive UTF8."));
            }
            _ => {
                return Err(SqlError::not_supported(format!("CREATE DATABASE … {option} = {value} is not supported"))
                    .with_hint("Leave the option out: databases are UTF8 in the C collation."));
            }
        }
    }
    Ok(Definition::CreateDatabase { name, owner })
}

fn create_table(reader: &mut Reader<'_>) -> Result<Definition> {
    let if_not_exists = reader.if_not_exists();
    let name = reader.object_name()?;
    let mut table =
        CreateTable { name, if_not_exists, columns: Vec::new(), keys: Vec::new(), options: Vec::new(), query: None };
    let mut names = Vec::new();
    if reader.words(&["partition", "of"]) || reader.word("of") {
        return Err(SqlError::not_supported("partitions are not supported").with_hint("Use WITH (tablets = n)."));
    }
    if matches!(reader.peek(), Token::LParen) {
        // `(a, b) AS query` names columns, anything else defines them.
        if reader.nth_is_list_item_end(2) {
            names = reader.idents_in_parens()?;
        } else {
            reader.skip();
            if !reader.token(&Token::RParen) {
                reader.list(|reader| table_element(reader, &mut table))?;
                reader.expect_token(&Token::RParen)?;
            }
        }
    }
    table_tail(reader, &mut table)?;
    if reader.word("as") {
        let query = if reader.sees("execute") { return Err(reader.error_here()) } else { reader.query()? };
        let empty = reader.words(&["with", "no", "data"]);
        reader.words(&["with", "data"]);
        table.query = Some((query, names, !empty));
    } else if !names.is_empty() {
        return Err(reader.error_here());
    }
    Ok(Definition::CreateTable(table))
}

fn table_tail(reader: &mut Reader<'_>, table: &mut CreateTable) -> Result<()> {
    loop {
        if reader.word("inherits") {
            return Err(SqlError::not_supported("table inheritance is not supported"));
        } else if reader.words(&["partition", "by"]) {
            return Err(SqlError::not_supported("PARTITION BY is not supported")
                .with_hint("Use WITH (tablets = n, distribution_key = '…')."));
        } else if reader.word("using") {
            let method = reader.ident()?;
            if method != "heap" {
                return Err(SqlError::new("42704", format!("access method \"{method}\" does not exist")));
            }
        } else if reader.sees("with") && !reader.sees_nth(1, "data") && !reader.sees_nth(1, "no") {
            reader.skip();
            table.options = options(reader)?;
        } else if reader.words(&["without", "oids"]) {
        } else if reader.words(&["on", "commit"]) {
            return Err(SqlError::not_supported("ON COMMIT is only for temporary tables"));
        } else if reader.word("tablespace") {
            tablespace(reader)?;
        } else {
            return Ok(());
        }
    }
}

/// There is one place for tables. 42704 for any other, as for a tablespace that nobody made.
fn tablespace(reader: &mut Reader<'_>) -> Result<()> {
    match reader.ident()?.as_str() {
        "pg_default" => Ok(()),
        "pg_global" => Err(SqlError::new("22023", "only shared relations can be placed in pg_global tablespace")),
        name => Err(SqlError::new("42704", format!("tablespace \"{name}\" does not exist"))),
    }
}

/// `(name = value, …)`; a name alone means true.
fn options(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>> {
    reader.expect_token(&Token::LParen)?;
    let options = reader.list(|reader| {
        let mut name = reader.ident()?;
        while reader.token(&Token::Period) {
            name = format!("{name}.{}", reader.ident()?);
        }
        let value = if reader.token(&Token::Eq) {
            match reader.string_opt().or_else(|| reader.number_opt()) {
                Some(value) => value,
                None => reader.ident()?,
            }
        } else {
            "true".to_string()
        };
        Ok((name, value))
    })?;
    reader.expect_token(&Token::RParen)?;
    Ok(options)
}

fn table_element(reader: &mut Reader<'_>, table: &mut CreateTable) -> Result<()> {
    if reader.sees("like") {
        return Err(SqlError::not_supported("CREATE TABLE … (LIKE …) is not supported")
            .with_hint("Use CREATE TABLE … AS SELECT * FROM … WITH NO DATA."));
    }
    let constraint =
        ["constraint", "primary", "unique", "check", "foreign", "exclude"].iter().any(|word| reader.sees(word));
    if constraint {
        table.keys.push(table_constraint(reader)?);
    } else {
        table.columns.push(column(reader)?);
    }
    Ok(())
}

fn table_constraint(reader: &mut Reader<'_>) -> Result<KeyClause> {
    match reader.table_constraint()? {
        Some(ast::TableConstraint::PrimaryKey(key)) => {
            let columns = key.columns.iter().map(|column| match &column.column.expr {
                ast::Expr::Identifier(ident) => Ok(super::fold(&ident.value, ident.quote_style.is_some())),
                other => Err(SqlError::syntax(format!("a primary key lists columns, not \"{other}\""))),
            });
            Ok(KeyClause { constraint: key.name.as_ref().map(ident_name), columns: columns.collect::<Result<_>>()? })
        }
        Some(ast::TableConstraint::Unique(_)) => Err(no_constraint("UNIQUE")),
        Some(ast::TableConstraint::ForeignKey(_)) => Err(no_constraint("FOREIGN KEY")),
        Some(ast::TableConstraint::Check(_)) => Err(no_constraint("CHECK")),
        Some(other) => Err(SqlError::not_supported(format!("this constraint is not supported: {other}"))),
        None => Err(reader.error_here()),
    }
}

fn no_constraint(kind: &str) -> SqlError {
    let error = SqlError::not_supported(format!("{kind} constraints are not supported"));
    match kind {
        "UNIQUE" => error.with_hint("Make the columns the primary key."),
        "FOREIGN KEY" => error.with_hint("Leave the constraint out, and check references when writing."),
        _ => error.with_hint("Leave the constraint out, and check values when writing."),
    }
}

fn ident_name(ident: &ast::Ident) -> String {
    super::fold(&ident.value, ident.quote_style.is_some())
}

fn column(reader: &mut Reader<'_>) -> Result<ColumnClause> {
    let parsed = reader.column_def()?;
    let mut column = ColumnClause {
        name: ident_name(&parsed.name),
        ty: parsed.data_type,
        not_null: false,
        default: None,
        primary_key: None,
    };
    for option in parsed.options {
        match option.option {
            ast::ColumnOption::Null => {}
            ast::ColumnOption::NotNull => column.not_null = true,
            ast::ColumnOption::Default(expr) => column.default = Some(expr),
            ast::ColumnOption::PrimaryKey(_) => column.primary_key = Some(option.name.as_ref().map(ident_name)),
            ast::ColumnOption::Collation(name) => check_collation(&name)?,
            ast::ColumnOption::Unique(_) => return Err(no_constraint("UNIQUE")),
            ast::ColumnOption::ForeignKey(_) => return Err(no_constraint("FOREIGN KEY")),
            ast::ColumnOption::Check(_) => return Err(no_constraint("CHECK")),
            ast::ColumnOption::Identity(_) => return Err(no_identity()),
            // `GENERATED … AS (expression)` has one, `GENERATED … AS IDENTITY` has none.
            ast::ColumnOption::Generated { generation_expr: None, .. } => return Err(no_identity()),
            ast::ColumnOption::Generated { .. } => {
                return Err(SqlError::not_supported("generated columns are not supported")
                    .with_hint("Give the column a DEFAULT, or compute it in a view."));
            }
            other => return Err(SqlError::not_supported(format!("this column option is not supported: {other}"))),
        }
    }
    Ok(column)
}

fn no_identity() -> SqlError {
    SqlError::not_supported("identity columns are not supported")
        .with_hint("Draw keys in the client, or use uuid with DEFAULT gen_random_uuid().")
}

fn check_collation(name: &ast::ObjectName) -> Result<()> {
    let last = name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone()).unwrap_or_default();
    match last.as_str() {
        "C" | "default" | "POSIX" | "ucs_basic" | "C.UTF-8" => Ok(()),
        _ => Err(SqlError::not_supported(format!("collation \"{last}\" is not supported"))
            .with_hint("Text is compared in the C collation.")),
    }
}

fn alter(reader: &mut Reader<'_>) -> Result<Definition> {
    if let Some(kind) = reader.one_of(&["table", "view"]) {
        let if_exists = reader.if_exists();
        reader.word("only");
        let name = reader.object_name()?;
        let actions = if reader.word("rename") { vec![rename(reader)?] } else { reader.list(alter_action)? };
        return Ok(Definition::AlterTable { name, if_exists, view: kind == "view", actions });
    }
    if reader.word("schema") {
        let name = reader.ident()?;
        return Ok(if reader.words(&["rename", "to"]) {
            Definition::AlterSchema { name, rename: Some(reader.ident()?), owner: None }
        } else if reader.words(&["owner", "to"]) {
            Definition::AlterSchema { name, rename: None, owner: Some(reader.ident()?) }
        } else {
            return Err(reader.error_here());
        });
    }
    if reader.one_of(&["role", "user", "group"]).is_some() {
        let name = reader.ident()?;
        if reader.words(&["rename", "to"]) {
            return Ok(Definition::AlterRole { name, options: RoleOptions::default(), rename: Some(reader.ident()?) });
        }
        if reader.sees("set") || reader.sees("reset") || reader.sees("in") {
            return Err(SqlError::not_supported("settings per role are not supported")
                .with_hint("Use SET in the session, or ALTER SYSTEM SET."));
        }
        return Ok(Definition::AlterRole { name, options: role_options(reader)?, rename: None });
    }
    Err(unsupported(reader, "ALTER"))
}

fn rename(reader: &mut Reader<'_>) -> Result<AlterAction> {
    if reader.word("to") {
        return Ok(AlterAction::RenameTo(reader.ident()?));
    }
    if reader.word("constraint") {
        let old = reader.ident()?;
        reader.expect_word("to")?;
        return Ok(AlterAction::RenameConstraint(old, reader.ident()?));
    }
    reader.word("column");
    let old = reader.ident()?;
    reader.expect_word("to")?;
    Ok(AlterAction::RenameColumn(old, reader.ident()?))
}

fn alter_action(reader: &mut Reader<'_>) -> Result<AlterAction> {
    Ok(match reader.one_of(&["add", "drop", "alter", "set", "reset", "owner", "enable", "disable", "replica"]) {
        Some("add") => alter_add(reader)?,
        Some("drop") if reader.word("constraint") => {
            let if_exists = reader.if_exists();
            let name = reader.ident()?;
            cascade(reader);
            AlterAction::DropConstraint { name, if_exists }
        }
        Some("drop") => {
            reader.word("column");
            let if_exists = reader.if_exists();
            let name = reader.ident()?;
            AlterAction::DropColumn { name, if_exists, cascade: cascade(reader) }
        }
        Some("alter") => alter_column(reader)?,
        Some("set") if reader.word("schema") => AlterAction::SetSchema(reader.ident()?),
        Some("set") if reader.word("logged") || reader.word("unlogged") => AlterAction::Nothing,
        Some("set") if reader.words(&["without", "oids"]) => AlterAction::Nothing,
        Some("set") => AlterAction::SetOptions(options(reader)?),
        Some("reset") => {
            let names = reader.idents_in_parens()?;
            AlterAction::ResetOptions(names)
        }
        Some("owner") => {
            reader.expect_word("to")?;
            AlterAction::OwnerTo(reader.ident()?)
        }
        Some("replica") => {
            reader.expect_word("identity")?;
            reader.ident()?;
            AlterAction::Nothing
        }
        Some(other) => {
            return Err(SqlError::not_supported(format!("ALTER TABLE … {} is not supported", other.to_uppercase())));
        }
        None => return Err(reader.error_here()),
    })
}

fn alter_add(reader: &mut Reader<'_>) -> Result<AlterAction> {
    if ["constraint", "primary", "unique", "check", "foreign", "exclude"].iter().any(|word| reader.sees(word)) {
        return Ok(AlterAction::AddKey(table_constraint(reader)?));
    }
    reader.word("column");
    let if_not_exists = reader.if_not_exists();
    Ok(AlterAction::AddColumn { column: column(reader)?, if_not_exists })
}

fn alter_column(reader: &mut Reader<'_>) -> Result<AlterAction> {
    reader.word("column");
    let name = reader.ident()?;
    if reader.words(&["set", "not", "null"]) {
        Ok(AlterAction::SetNotNull(name))
    } else if reader.words(&["drop", "not", "null"]) {
        Ok(AlterAction::DropNotNull(name))
    } else if reader.words(&["set", "default"]) {
        Ok(AlterAction::SetDefault(name, reader.expr()?))
    } else if reader.words(&["drop", "default"]) {
        Ok(AlterAction::DropDefault(name))
    } else if reader.words(&["set", "statistics"]) {
        reader.integer()?;
        Ok(AlterAction::Nothing)
    } else if reader.words(&["set", "storage"]) {
        reader.ident()?;
        Ok(AlterAction::Nothing)
    } else if reader.word("type") || reader.words(&["set", "data", "type"]) {
        Err(SqlError::not_supported("ALTER COLUMN … TYPE is not supported")
            .with_hint("Add a column of the new type, UPDATE it from the old one, drop that, and rename."))
    } else {
        Err(reader.error_here())
    }
}

fn cascade(reader: &mut Reader<'_>) -> bool {
    let cascade = reader.word("cascade");
    reader.word("restrict");
    cascade
}

fn drop(reader: &mut Reader<'_>) -> Result<Definition> {
    let kind = match reader.one_of(&["table", "view", "schema", "database", "role", "user", "group"]) {
        Some("table") => ObjectKind::Table,
        Some("view") => ObjectKind::View,
        Some("schema") => ObjectKind::Schema,
        Some("database") => ObjectKind::Database,
        Some(_) => ObjectKind::Role,
        None => return Err(unsupported(reader, "DROP")),
    };
    let if_exists = reader.if_exists();
    let names = reader.list(Reader::object_name)?;
    Ok(Definition::Drop { kind, names, if_exists, cascade: cascade(reader) })
}

fn truncate(reader: &mut Reader<'_>) -> Result<Definition> {
    reader.word("table");
    let names = reader.list(|reader| {
        reader.word("only");
        let name = reader.object_name()?;
        reader.token(&Token::Mul);
        Ok(name)
    })?;
    let _ = reader.words(&["restart", "identity"]) || reader.words(&["continue", "identity"]);
    cascade(reader);
    Ok(Definition::Truncate(names))
}

fn comment(reader: &mut Reader<'_>) -> Result<Definition> {
    reader.expect_word("on")?;
    let kind = match reader.one_of(&["table", "view", "schema", "column", "database", "role"]) {
        Some("table") => ObjectKind::Table,
        Some("view") => ObjectKind::View,
        Some("schema") => ObjectKind::Schema,
        Some("column") => ObjectKind::Column,
        Some("database") => ObjectKind::Database,
        Some(_) => ObjectKind::Role,
        None => return Err(unsupported(reader, "COMMENT ON")),
    };
    let mut parts = vec![reader.ident()?];
    while reader.token(&Token::Period) {
        parts.push(reader.ident()?);
    }
    let column = if kind == ObjectKind::Column { parts.pop() } else { None };
    let Some(name) = parts.pop() else { return Err(SqlError::syntax("column name must be qualified")) };
    let name = Name { schema: parts.pop(), name };
    reader.expect_word("is")?;
    let text = if reader.word("null") { None } else { Some(reader.string()?) };
    Ok(Definition::Comment { kind, name, column, text })
}

fn role_options(reader: &mut Reader<'_>) -> Result<RoleOptions> {
    let mut options = RoleOptions::default();
    reader.word("with");
    while !reader.at_end() {
        match reader.ident()?.as_str() {
            "superuser" => options.superuser = Some(true),
            "nosuperuser" => options.superuser = Some(false),
            "login" => options.login = Some(true),
            "nologin" => options.login = Some(false),
            "encrypted" => {}
            "password" => {
                options.password = Some(if reader.word("null") { None } else { Some(reader.string()?) });
            }
            "inherit" | "noinherit" | "createdb" | "nocreatedb" | "createrole" | "nocreaterole" | "noreplication"
            | "nobypassrls" => {}
            "connection" => {
                reader.expect_word("limit")?;
                if reader.integer()? != -1 {
                    return Err(SqlError::not_supported("connection limits per role are not supported")
                        .with_hint("Set max_connections."));
                }
            }
            option => {
                return Err(SqlError::not_supported(format!("role option {} is not supported", option.to_uppercase())));
            }
        }
    }
    Ok(options)
}

/// `ALTER SYSTEM …` is no definition, but begins like one.
pub(super) fn alter_system(reader: &mut Reader<'_>) -> Result<Option<utility::Utility>> {
    if reader.words(&["alter", "system"]) { utility::alter_system(reader).map(Some) } else { Ok(None) }
}
