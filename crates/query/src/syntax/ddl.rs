//! Definitions: tables, views, schemas, roles, databases, comments.

use super::index::{self, CreateIndex, ReindexTarget};
use super::role::{self, DatabaseChange, RoleGrant, RoleOptions, RoleSettingClause};
use super::sequence::{self, SequenceOptions};
use super::table::{self, AlterAction, CreateTable, Rows};
use super::{Absent, Name, Reader, absent, materialized, types, utility};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    Table,
    View,
    MaterializedView,
    Sequence,
    Schema,
    Column,
    Constraint,
    Index,
    Database,
    Role,
}

impl ObjectKind {
    /// As messages name it.
    pub fn word(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::View => "view",
            ObjectKind::MaterializedView => "materialized view",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Schema => "schema",
            ObjectKind::Column => "column",
            ObjectKind::Constraint => "constraint",
            ObjectKind::Index => "index",
            ObjectKind::Database => "database",
            ObjectKind::Role => "role",
        }
    }
}

#[derive(Clone, Debug)]
pub enum Definition {
    CreateTable(CreateTable),
    CreateIndex(Box<CreateIndex>),
    Reindex {
        target: ReindexTarget,
        concurrently: bool,
    },
    AlterTable {
        name: Name,
        if_exists: bool,
        kind: ObjectKind,
        actions: Vec<AlterAction>,
    },
    CreateSequence {
        name: Name,
        if_not_exists: bool,
        temporary: bool,
        options: SequenceOptions,
    },
    AlterSequence {
        name: Name,
        if_exists: bool,
        options: SequenceOptions,
    },
    CreateView {
        name: Name,
        or_replace: bool,
        temporary: bool,
        columns: Vec<String>,
        query: Box<ast::Query>,
        /// `WITH (…)` and `WITH CHECK OPTION`.
        options: Vec<(String, String)>,
    },
    CreateMaterialized(Box<super::CreateMaterialized>),
    RefreshMaterialized {
        name: Name,
        concurrently: bool,
        /// Not WITH NO DATA.
        with_data: bool,
    },
    CreateSchema {
        name: String,
        if_not_exists: bool,
        owner: Option<String>,
        /// What is made in it by the same statement.
        elements: Vec<Definition>,
    },
    AlterSchema {
        name: String,
        rename: Option<String>,
        owner: Option<String>,
    },
    Drop {
        kind: ObjectKind,
        names: Vec<Name>,
        if_exists: bool,
        cascade: bool,
        /// Of indexes.
        concurrently: bool,
    },
    Truncate {
        names: Vec<Name>,
        restart: bool,
        cascade: bool,
    },
    Comment {
        kind: ObjectKind,
        name: Name,
        column: Option<String>,
        text: Option<String>,
    },
    CreateRole {
        name: String,
        user: bool,
        options: RoleOptions,
    },
    AlterRole {
        name: String,
        options: RoleOptions,
        rename: Option<String>,
    },
    /// ALTER GROUP … ADD and DROP USER come as this too.
    GrantRole {
        grant: RoleGrant,
        alter: bool,
    },
    GrantPrivileges(Box<super::PrivilegeGrant>),
    DefaultPrivileges(Box<super::DefaultPrivileges>),
    Absent(Absent),
    DropOwned {
        roles: Vec<String>,
        cascade: bool,
    },
    ReassignOwned {
        roles: Vec<String>,
        to: String,
    },
    RoleSetting(RoleSettingClause),
    CreateDatabase {
        name: String,
        owner: Option<String>,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
        /// Whether sessions in it are ended.
        force: bool,
    },
    AlterDatabase {
        name: String,
        change: DatabaseChange,
    },
    Type(Box<super::TypeCommand>),
}

impl Definition {
    /// The query that it is made of at once, and which may have parameters.
    pub fn query(&self) -> Option<&ast::Query> {
        match self {
            Definition::CreateTable(create) => match &create.query {
                Some((Rows::Query(query), ..)) => Some(query),
                _ => None,
            },
            Definition::CreateMaterialized(create) => Some(&create.query),
            _ => None,
        }
    }

    /// Whether that query is kept, and so may have none.
    pub fn keeps_query(&self) -> bool {
        matches!(self, Definition::CreateMaterialized(_))
    }

    /// What a definition is called that is several transactions, and no part of one.
    pub fn concurrent_verb(&self) -> Option<&'static str> {
        match self {
            Definition::CreateIndex(create) if create.concurrently => Some("CREATE INDEX CONCURRENTLY"),
            Definition::Reindex { concurrently: true, .. } => Some("REINDEX CONCURRENTLY"),
            Definition::Drop { concurrently: true, .. } => Some("DROP INDEX CONCURRENTLY"),
            _ => None,
        }
    }

    pub fn tag(&self) -> &'static str {
        match self {
            Definition::CreateTable(table) if table.query.is_some() => "CREATE TABLE AS",
            Definition::CreateTable(_) => "CREATE TABLE",
            Definition::CreateIndex(_) => "CREATE INDEX",
            Definition::Reindex { .. } => "REINDEX",
            Definition::AlterTable { kind: ObjectKind::View, .. } => "ALTER VIEW",
            Definition::AlterTable { kind: ObjectKind::MaterializedView, .. } => "ALTER MATERIALIZED VIEW",
            Definition::AlterTable { kind: ObjectKind::Sequence, .. } => "ALTER SEQUENCE",
            Definition::AlterTable { kind: ObjectKind::Index, .. } => "ALTER INDEX",
            Definition::AlterTable { .. } => "ALTER TABLE",
            Definition::CreateSequence { .. } => "CREATE SEQUENCE",
            Definition::AlterSequence { .. } => "ALTER SEQUENCE",
            Definition::CreateView { .. } => "CREATE VIEW",
            Definition::CreateMaterialized(_) => "CREATE MATERIALIZED VIEW",
            Definition::RefreshMaterialized { .. } => "REFRESH MATERIALIZED VIEW",
            Definition::CreateSchema { .. } => "CREATE SCHEMA",
            Definition::AlterSchema { .. } => "ALTER SCHEMA",
            Definition::Drop { kind, .. } => match kind {
                ObjectKind::Table | ObjectKind::Column | ObjectKind::Constraint => "DROP TABLE",
                ObjectKind::View => "DROP VIEW",
                ObjectKind::MaterializedView => "DROP MATERIALIZED VIEW",
                ObjectKind::Sequence => "DROP SEQUENCE",
                ObjectKind::Index => "DROP INDEX",
                ObjectKind::Schema => "DROP SCHEMA",
                ObjectKind::Database => "DROP DATABASE",
                ObjectKind::Role => "DROP ROLE",
            },
            Definition::Truncate { .. } => "TRUNCATE TABLE",
            Definition::Comment { .. } => "COMMENT",
            Definition::CreateRole { .. } => "CREATE ROLE",
            Definition::AlterRole { .. } | Definition::GrantRole { alter: true, .. } => "ALTER ROLE",
            Definition::GrantPrivileges(grant) if grant.revoke => "REVOKE",
            Definition::GrantPrivileges(_) => "GRANT",
            Definition::DefaultPrivileges(_) => "ALTER DEFAULT PRIVILEGES",
            Definition::DropOwned { .. } => "DROP OWNED",
            Definition::Absent(absent) => absent.tag,
            Definition::ReassignOwned { .. } => "REASSIGN OWNED",
            Definition::GrantRole { grant: RoleGrant { revoke: true, .. }, .. } => "REVOKE ROLE",
            Definition::GrantRole { .. } => "GRANT ROLE",
            Definition::RoleSetting(RoleSettingClause { of_database: true, .. }) => "ALTER DATABASE",
            Definition::RoleSetting(_) => "ALTER ROLE",
            Definition::AlterDatabase { .. } => "ALTER DATABASE",
            Definition::CreateDatabase { .. } => "CREATE DATABASE",
            Definition::DropDatabase { .. } => "DROP DATABASE",
            Definition::Type(command) => command.tag(),
        }
    }
}

/// `None` if the next word begins no definition.
pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Option<Definition>> {
    if reader.words(&["reassign", "owned", "by"]) {
        let roles = reader.list(Reader::ident)?;
        reader.expect_word("to")?;
        return Ok(Some(Definition::ReassignOwned { roles, to: reader.ident()? }));
    }
    Ok(Some(match reader.one_of(&["create", "alter", "drop", "truncate", "reindex", "refresh", "comment"]) {
        Some("refresh") => materialized::refresh(reader)?,
        Some("create") => create(reader)?,
        Some("alter") => alter(reader)?,
        Some("drop") => drop(reader)?,
        Some("truncate") => truncate(reader)?,
        Some("reindex") => {
            let (target, concurrently) = index::reindex(reader)?;
            Definition::Reindex { target, concurrently }
        }
        Some(_) => comment(reader)?,
        None => return Ok(None),
    }))
}

fn create(reader: &mut Reader<'_>) -> Result<Definition> {
    if let Some(command) = types::create(reader)? {
        return Ok(Definition::Type(Box::new(command)));
    }
    let or_replace = reader.words(&["or", "replace"]);
    let _ = reader.one_of(&["global", "local"]);
    let temporary = reader.one_of(&["temp", "temporary"]).is_some();
    if reader.word("recursive") {
        reader.expect_word("view")?;
        return create_view(reader, or_replace, temporary, true);
    }
    if reader.word("view") {
        return create_view(reader, or_replace, temporary, false);
    }
    if or_replace {
        return Err(unsupported(reader, "CREATE OR REPLACE"));
    }
    let unlogged = reader.word("unlogged");
    if !temporary && reader.word("materialized") {
        return materialized::create(reader, unlogged);
    }
    if reader.word("table") {
        return table::create(reader, temporary);
    }
    if reader.word("sequence") {
        let if_not_exists = reader.if_not_exists();
        let name = reader.object_name()?;
        return Ok(Definition::CreateSequence { name, if_not_exists, temporary, options: sequence::options(reader)? });
    }
    if temporary || unlogged {
        return Err(reader.error_here());
    }
    if let Some(create) = index::create_opt(reader)? {
        return Ok(Definition::CreateIndex(Box::new(create)));
    }
    if reader.word("schema") {
        let if_not_exists = reader.if_not_exists();
        let mut owner = None;
        let name = if reader.word("authorization") {
            let role = reader.ident()?;
            owner = Some(role.clone());
            role
        } else {
            reader.name()?
        };
        if reader.word("authorization") {
            owner = Some(reader.ident()?);
        }
        let mut elements = Vec::new();
        while reader.word("create") {
            elements.push(create(reader)?);
        }
        if if_not_exists && !elements.is_empty() {
            return Err(SqlError::not_supported("CREATE SCHEMA IF NOT EXISTS cannot include schema elements"));
        }
        return Ok(Definition::CreateSchema { name, if_not_exists, owner, elements });
    }
    if reader.sees("user") && reader.sees_nth(1, "mapping") {
        return Err(SqlError::not_supported("user mappings are not supported"));
    }
    if let Some(kind) = reader.one_of(&["role", "user", "group"]) {
        let name = reader.ident()?;
        return Ok(Definition::CreateRole { name, user: kind == "user", options: role::options(reader)? });
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
    const KINDS: [&str; 43] = [
        "ACCESS",
        "AGGREGATE",
        "CAST",
        "COLLATION",
        "CONSTRAINT",
        "CONVERSION",
        "DATABASE",
        "DEFAULT",
        "DOMAIN",
        "EVENT",
        "EXTENSION",
        "FOREIGN",
        "FUNCTION",
        "GLOBAL",
        "GROUP",
        "INDEX",
        "LANGUAGE",
        "LARGE",
        "LOCAL",
        "OPERATOR",
        "OWNED",
        "POLICY",
        "PROCEDURAL",
        "PROCEDURE",
        "PUBLICATION",
        "ROLE",
        "ROUTINE",
        "RULE",
        "SCHEMA",
        "SEQUENCE",
        "SERVER",
        "STATISTICS",
        "SUBSCRIPTION",
        "TABLE",
        "TABLESPACE",
        "TEMP",
        "TEMPORARY",
        "TEXT",
        "TRANSFORM",
        "TRIGGER",
        "TRUSTED",
        "TYPE",
        "UNIQUE",
    ];
    if !KINDS.contains(&what.as_str()) && !["USER", "VIEW", "COLUMN"].contains(&what.as_str()) {
        return reader.error_here();
    }
    let what = match what.as_str() {
        "FOREIGN" if reader.sees_nth(1, "table") => "FOREIGN TABLE",
        what => what,
    };
    let error = SqlError::not_supported(format!("{verb} {what} is not supported"));
    match what {
        "EXTENSION" => error.with_hint("Basalt has what it has built in."),
        _ => error,
    }
}

fn create_view(reader: &mut Reader<'_>, or_replace: bool, temporary: bool, recursive: bool) -> Result<Definition> {
    let name = reader.object_name()?;
    let mut columns = Vec::new();
    if matches!(reader.peek(), Token::LParen) {
        columns = reader.names_in_parens()?;
    }
    let mut options = Vec::new();
    if reader.word("with") {
        options = super::table::options(reader)?;
    }
    reader.expect_word("as")?;
    let mut query = reader.query()?;
    if recursive {
        if columns.is_empty() {
            return Err(reader.error_here());
        }
        query = recursive_query(&name, &columns, &query)?;
    }
    if reader.words(&["with", "check", "option"]) || reader.words(&["with", "cascaded", "check", "option"]) {
        options.push(("check_option".to_string(), "cascaded".to_string()));
    } else if reader.words(&["with", "local", "check", "option"]) {
        options.push(("check_option".to_string(), "local".to_string()));
    }
    Ok(Definition::CreateView { name, or_replace, temporary, columns, query, options })
}

/// `CREATE RECURSIVE VIEW v (a) AS …` is a view of WITH RECURSIVE (PostgreSQL manual, CREATE VIEW).
fn recursive_query(name: &Name, columns: &[String], query: &ast::Query) -> Result<Box<ast::Query>> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let list = columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ");
    let own = quoted(&name.name);
    utility::parse_query_text(&format!("WITH RECURSIVE {own} ({list}) AS ({query}) SELECT {list} FROM {own}"))
}

/// Options of CREATE DATABASE that PostgreSQL knows, and of which not all values are supported.
const DATABASE_OPTIONS: [&str; 11] = [
    "allow_connections",
    "collation_version",
    "connection",
    "icu_locale",
    "is_template",
    "lc_collate",
    "lc_ctype",
    "locale",
    "locale_provider",
    "oid",
    "strategy",
];

fn create_database(reader: &mut Reader<'_>) -> Result<Definition> {
    let name = reader.name()?;
    let mut owner = None;
    reader.word("with");
    while !reader.at_end() {
        let place = reader.position();
        let option = reader.ident()?;
        reader.token(&Token::Eq);
        let value = match reader.string_opt().or_else(|| reader.number_opt()) {
            Some(value) => value,
            // What it is anyway.
            None if reader.word("default") => continue,
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
            "template" => {
                return Err(SqlError::not_supported(format!("template {value} is not supported"))
                    .with_hint("Leave TEMPLATE out, and restore a dump of that database."));
            }
            _ if !DATABASE_OPTIONS.contains(&option.as_str()) => {
                return Err(SqlError::syntax(format!("option \"{option}\" not recognized")).at(place));
            }
            _ => {
                return Err(SqlError::not_supported(format!("CREATE DATABASE … {option} = {value} is not supported"))
                    .with_hint("Leave the option out: databases are UTF8 in the C collation."));
            }
        }
    }
    Ok(Definition::CreateDatabase { name, owner })
}

fn alter(reader: &mut Reader<'_>) -> Result<Definition> {
    if reader.words(&["default", "privileges"]) {
        return super::privilege::defaults(reader);
    }
    if let Some(absent) = absent::alter(reader)? {
        return Ok(Definition::Absent(absent));
    }
    if let Some(command) = types::alter(reader)? {
        return Ok(Definition::Type(Box::new(command)));
    }
    let materialized = reader.sees("materialized") && reader.sees_nth(1, "view") && reader.word("materialized");
    if let Some(kind) = reader.one_of(&["table", "view", "sequence", "index"]) {
        let if_exists = reader.if_exists();
        reader.word("only");
        let name = reader.object_name()?;
        if kind == "table" {
            reader.token(&Token::Mul);
        }
        let kind = match kind {
            "view" if materialized => ObjectKind::MaterializedView,
            "view" => ObjectKind::View,
            "sequence" => ObjectKind::Sequence,
            "index" => ObjectKind::Index,
            _ => ObjectKind::Table,
        };
        if reader.word("rename") {
            return Ok(Definition::AlterTable { name, if_exists, kind, actions: vec![table::rename(reader)?] });
        }
        let is_option = kind == ObjectKind::Sequence
            && !reader.sees("owner")
            && !(reader.sees("set") && (reader.sees_nth(1, "schema") || reader.sees_nth(1, "logged")))
            && !reader.sees_nth(1, "unlogged");
        if is_option {
            let options = sequence::options(reader)?;
            if options.is_empty() {
                return Err(reader.error_here());
            }
            return Ok(Definition::AlterSequence { name, if_exists, options });
        }
        let actions = reader.list(|reader| table::alter_action(reader, &name.name))?;
        return Ok(Definition::AlterTable { name, if_exists, kind, actions });
    }
    if reader.word("schema") {
        let name = reader.name()?;
        return Ok(if reader.words(&["rename", "to"]) {
            Definition::AlterSchema { name, rename: Some(reader.ident()?), owner: None }
        } else if reader.words(&["owner", "to"]) {
            Definition::AlterSchema { name, rename: None, owner: Some(reader.ident()?) }
        } else {
            return Err(reader.error_here());
        });
    }
    if reader.sees("user") && reader.sees_nth(1, "mapping") {
        return Err(SqlError::not_supported("user mappings are not supported"));
    }
    if let Some(kind) = reader.one_of(&["role", "user", "group"]) {
        return role::alter(reader, kind == "group");
    }
    if reader.word("database") {
        return role::alter_database(reader);
    }
    Err(unsupported(reader, "ALTER"))
}

pub(super) fn cascade(reader: &mut Reader<'_>) -> bool {
    let cascade = reader.word("cascade");
    reader.word("restrict");
    cascade
}

fn drop(reader: &mut Reader<'_>) -> Result<Definition> {
    if reader.words(&["owned", "by"]) {
        let roles = reader.list(Reader::ident)?;
        let cascade = reader.word("cascade");
        reader.word("restrict");
        return Ok(Definition::DropOwned { roles, cascade });
    }
    if let Some(absent) = absent::drop(reader)? {
        return Ok(Definition::Absent(absent));
    }
    if let Some(command) = types::drop(reader)? {
        return Ok(Definition::Type(Box::new(command)));
    }
    let materialized = reader.sees("materialized") && reader.sees_nth(1, "view") && reader.word("materialized");
    let kind =
        match reader.one_of(&["table", "view", "sequence", "index", "schema", "database", "role", "user", "group"]) {
            Some("table") => ObjectKind::Table,
            Some("sequence") => ObjectKind::Sequence,
            Some("view") if materialized => ObjectKind::MaterializedView,
            Some("view") => ObjectKind::View,
            Some("index") => ObjectKind::Index,
            Some("schema") => ObjectKind::Schema,
            Some("database") => ObjectKind::Database,
            Some(_) => ObjectKind::Role,
            None => return Err(unsupported(reader, "DROP")),
        };
    let concurrently = kind == ObjectKind::Index && reader.word("concurrently");
    let if_exists = reader.if_exists();
    if kind == ObjectKind::Database {
        return drop_database(reader, if_exists);
    }
    let names = match kind {
        ObjectKind::Role => reader.list(Reader::other_name)?,
        _ => reader.list(Reader::object_name)?,
    };
    Ok(Definition::Drop { kind, names, if_exists, cascade: cascade(reader), concurrently })
}

fn drop_database(reader: &mut Reader<'_>, if_exists: bool) -> Result<Definition> {
    let name = reader.ident()?;
    let mut force = false;
    let with = reader.word("with");
    if with || reader.peek() == &Token::LParen {
        reader.expect_token(&Token::LParen)?;
        loop {
            reader.expect_word("force")?;
            force = true;
            if !reader.token(&Token::Comma) {
                break;
            }
        }
        reader.expect_token(&Token::RParen)?;
    }
    Ok(Definition::DropDatabase { name, if_exists, force })
}

fn truncate(reader: &mut Reader<'_>) -> Result<Definition> {
    reader.word("table");
    let names = reader.list(|reader| {
        reader.word("only");
        let name = reader.object_name()?;
        reader.token(&Token::Mul);
        Ok(name)
    })?;
    let restart = reader.words(&["restart", "identity"]);
    reader.words(&["continue", "identity"]);
    Ok(Definition::Truncate { names, restart, cascade: cascade(reader) })
}

fn comment(reader: &mut Reader<'_>) -> Result<Definition> {
    reader.expect_word("on")?;
    if let Some(command) = types::comment(reader)? {
        return Ok(Definition::Type(Box::new(command)));
    }
    let materialized = reader.sees("materialized") && reader.sees_nth(1, "view") && reader.word("materialized");
    let kind = match reader.one_of(&[
        "table",
        "view",
        "sequence",
        "schema",
        "column",
        "constraint",
        "index",
        "database",
        "role",
    ]) {
        Some("table") => ObjectKind::Table,
        Some("sequence") => ObjectKind::Sequence,
        Some("index") => ObjectKind::Index,
        Some("constraint") => {
            let constraint = reader.ident()?;
            reader.expect_word("on")?;
            if reader.word("domain") {
                return Err(SqlError::not_supported("a comment on a domain's constraint is not supported")
                    .with_hint("Comment on the domain."));
            }
            let name = reader.object_name()?;
            let text = comment_text(reader)?;
            return Ok(Definition::Comment { kind: ObjectKind::Constraint, name, column: Some(constraint), text });
        }
        Some("view") if materialized => ObjectKind::MaterializedView,
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
    let text = comment_text(reader)?;
    Ok(Definition::Comment { kind, name, column, text })
}

fn comment_text(reader: &mut Reader<'_>) -> Result<Option<String>> {
    reader.expect_word("is")?;
    if reader.word("null") { Ok(None) } else { reader.string().map(Some) }
}

/// `ALTER SYSTEM …` is no definition, but begins like one.
pub(super) fn alter_system(reader: &mut Reader<'_>) -> Result<Option<utility::Utility>> {
    if reader.words(&["alter", "system"]) { utility::alter_system(reader).map(Some) } else { Ok(None) }
}
