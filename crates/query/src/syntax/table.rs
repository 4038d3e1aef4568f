//! CREATE TABLE and ALTER TABLE: columns, constraints and what may be done to them.

use super::ddl::{Definition, cascade};
use super::keys::{self, Deferral, KeyConstraint, UniqueClause};
use super::sequence::{self, SequenceOptions};
use super::{Name, Reader};
use crate::error::{Result, SqlError};
use basalt_types::schema::OnCommit;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

#[derive(Clone, Debug)]
pub struct ColumnClause {
    pub name: String,
    pub ty: ast::DataType,
    pub not_null: bool,
    /// NULL was said.
    pub null: bool,
    pub default: Option<ast::Expr>,
    /// The constraint's name, if it has one.
    pub primary_key: Option<Option<String>>,
    /// Where that is said.
    pub key_place: Option<u32>,
    pub ty_place: Option<u32>,
    pub identity: Option<IdentityClause>,
    /// `GENERATED ALWAYS AS (…) STORED`.
    pub generated: Option<ast::Expr>,
    pub checks: Vec<CheckClause>,
    /// UNIQUE and REFERENCES.
    pub constraints: Vec<KeyConstraint>,
}

#[derive(Clone, Debug)]
pub struct IdentityClause {
    pub always: bool,
    pub options: SequenceOptions,
}

#[derive(Clone, Debug)]
pub struct CheckClause {
    pub constraint: Option<String>,
    pub condition: ast::Expr,
    pub no_inherit: bool,
    /// Rows that are there are not looked at.
    pub not_valid: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyClause {
    pub constraint: Option<String>,
    pub columns: Vec<String>,
    pub include: Vec<String>,
    /// In the statement.
    pub place: Option<u32>,
}

/// `LIKE table INCLUDING …`, where it stands among the columns.
#[derive(Clone, Debug)]
pub struct LikeClause {
    pub table: Name,
    /// Columns before it.
    pub at: usize,
    pub comments: bool,
    pub constraints: bool,
    pub defaults: bool,
    pub generated: bool,
    pub identity: bool,
    pub indexes: bool,
}

#[derive(Clone, Debug)]
pub struct CreateTable {
    pub name: Name,
    pub if_not_exists: bool,
    pub temporary: bool,
    pub columns: Vec<ColumnClause>,
    pub likes: Vec<LikeClause>,
    pub keys: Vec<KeyClause>,
    pub checks: Vec<CheckClause>,
    /// UNIQUE and FOREIGN KEY.
    pub constraints: Vec<KeyConstraint>,
    pub on_commit: Option<OnCommit>,
    /// Storage parameters as written.
    pub options: Vec<(String, String)>,
    /// `AS query`, with the column names given before it, and whether its rows are wanted.
    pub query: Option<(Rows, Vec<String>, bool)>,
}

/// Where CREATE TABLE AS has its rows from.
#[derive(Clone, Debug)]
pub enum Rows {
    Query(Box<ast::Query>),
    /// A prepared statement and its arguments.
    Execute(String, Vec<ast::Expr>),
}

#[derive(Clone, Debug)]
pub enum AlterAction {
    AddColumn {
        column: Box<ColumnClause>,
        if_not_exists: bool,
    },
    DropColumn {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    AddKey(KeyClause),
    AlterConstraint(String, Deferral),
    AddConstraint(KeyConstraint),
    AddCheck(CheckClause),
    ValidateConstraint(String),
    DropConstraint {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    SetNotNull(String),
    DropNotNull(String),
    SetDefault(String, ast::Expr),
    DropDefault(String),
    SetType {
        name: String,
        ty: ast::DataType,
        using: Option<ast::Expr>,
    },
    AddIdentity(String, IdentityClause),
    SetIdentity {
        name: String,
        always: Option<bool>,
        options: SequenceOptions,
    },
    DropIdentity {
        name: String,
        if_exists: bool,
    },
    DropExpression {
        name: String,
        if_exists: bool,
    },
    /// What is accepted for a column, and without effect here.
    Hint(String),
    SetOptions(Vec<(String, String)>),
    ResetOptions(Vec<String>),
    OwnerTo(String),
    RenameColumn(String, String),
    RenameConstraint(String, String),
    RenameTo(String),
    SetSchema(String),
    /// ENABLE or DISABLE TRIGGER ALL: those that check foreign keys are the only ones.
    AllTriggers {
        enable: bool,
    },
    /// ENABLE or DISABLE TRIGGER of one, which cannot be there.
    Trigger(String),
    /// Accepted, and without effect here.
    Nothing,
}

pub(super) fn create(reader: &mut Reader<'_>, temporary: bool) -> Result<Definition> {
    let if_not_exists = reader.if_not_exists();
    let name = reader.object_name()?;
    let mut table = CreateTable {
        name,
        if_not_exists,
        temporary,
        columns: Vec::new(),
        likes: Vec::new(),
        keys: Vec::new(),
        checks: Vec::new(),
        constraints: Vec::new(),
        on_commit: None,
        options: Vec::new(),
        query: None,
    };
    let mut names = Vec::new();
    if reader.words(&["partition", "of"]) || reader.word("of") {
        return Err(SqlError::not_supported("partitions are not supported").with_hint("Use WITH (tablets = n)."));
    }
    if matches!(reader.peek(), Token::LParen) {
        // `(a, b) AS query` names columns, anything else defines them.
        if reader.nth_is_list_item_end(2) {
            names = reader.names_in_parens()?;
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
        let query = match reader.word("execute") {
            true => {
                let (name, args) = super::utility::execution(reader)?;
                Rows::Execute(name, args)
            }
            false => Rows::Query(reader.query()?),
        };
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
            access_method(reader)?;
        } else if reader.sees("with") && !reader.sees_nth(1, "data") && !reader.sees_nth(1, "no") {
            reader.skip();
            table.options = options(reader)?;
        } else if reader.words(&["without", "oids"]) {
        } else if reader.words(&["on", "commit"]) {
            table.on_commit = Some(match reader.one_of(&["preserve", "delete", "drop"]) {
                Some("drop") => OnCommit::Drop,
                Some(word) => {
                    reader.expect_word("rows")?;
                    if word == "delete" { OnCommit::DeleteRows } else { OnCommit::PreserveRows }
                }
                None => return Err(reader.error_here()),
            });
            if !table.temporary {
                return Err(SqlError::new("42P16", "ON COMMIT can only be used on temporary tables"));
            }
        } else if reader.word("tablespace") {
            tablespace(reader)?;
        } else {
            return Ok(());
        }
    }
}

/// There is one place for tables. 42704 for any other, as for a tablespace that nobody made.
pub(super) fn tablespace(reader: &mut Reader<'_>) -> Result<()> {
    match reader.ident()?.as_str() {
        "pg_default" => Ok(()),
        "pg_global" => Err(SqlError::new("22023", "only shared relations can be placed in pg_global tablespace")),
        name => Err(SqlError::new("42704", format!("tablespace \"{name}\" does not exist"))),
    }
}

/// `(name = value, …)`; a name alone means true.
pub(super) fn options(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>> {
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
    if reader.word("like") {
        table.likes.push(like(reader, table.columns.len())?);
        return Ok(());
    }
    if let Some(check) = check_opt(reader)? {
        table.checks.push(check);
        return Ok(());
    }
    match keys::table_constraint_opt(reader)? {
        Some(constraint) => match primary_key(constraint)? {
            Ok(key) => table.keys.push(key),
            Err(constraint) => table.constraints.push(constraint),
        },
        None if reader.sees("constraint") || reader.sees("exclude") => return Err(no_constraint(reader)),
        None => {
            let column = column(reader, &table.name.name)?;
            table.columns.push(column);
        }
    }
    Ok(())
}

/// A primary key of columns apart from all else; one that can be deferred is a unique constraint with another name.
fn primary_key(constraint: KeyConstraint) -> Result<Result<KeyClause, KeyConstraint>> {
    match constraint {
        KeyConstraint::Unique(clause) if clause.primary && clause.using_index.is_none() => {
            match clause.deferral.deferrable {
                true => Ok(Err(KeyConstraint::Unique(clause))),
                false => {
                    let UniqueClause { constraint, columns, include, place, .. } = clause;
                    Ok(Ok(KeyClause { constraint, columns, include, place }))
                }
            }
        }
        other => Ok(Err(other)),
    }
}

fn no_constraint(reader: &mut Reader<'_>) -> SqlError {
    if reader.sees("exclude") || reader.sees_nth(2, "exclude") {
        return SqlError::not_supported("EXCLUDE constraints are not supported")
            .with_hint("Use UNIQUE where the operators are all =.");
    }
    if reader.word("constraint") {
        let _ = reader.ident();
    }
    reader.error_here()
}

fn like(reader: &mut Reader<'_>, at: usize) -> Result<LikeClause> {
    let table = reader.object_name()?;
    let mut like = LikeClause {
        table,
        at,
        comments: false,
        constraints: false,
        defaults: false,
        generated: false,
        identity: false,
        indexes: false,
    };
    while let Some(word) = reader.one_of(&["including", "excluding"]) {
        let on = word == "including";
        let what = reader.one_of(&[
            "all",
            "comments",
            "compression",
            "constraints",
            "defaults",
            "generated",
            "identity",
            "indexes",
            "statistics",
            "storage",
        ]);
        match what {
            Some("comments") => like.comments = on,
            Some("constraints") => like.constraints = on,
            Some("defaults") => like.defaults = on,
            Some("generated") => like.generated = on,
            Some("identity") => like.identity = on,
            Some("indexes") => like.indexes = on,
            Some("all") => {
                (like.comments, like.constraints, like.defaults) = (on, on, on);
                (like.generated, like.identity, like.indexes) = (on, on, on);
            }
            Some(_) => {}
            None => return Err(reader.error_here()),
        }
    }
    Ok(like)
}

/// `[CONSTRAINT name] CHECK (…)`, if it is next.
fn check_opt(reader: &mut Reader<'_>) -> Result<Option<CheckClause>> {
    let named = reader.sees("constraint") && reader.sees_nth(2, "check");
    if !named && !reader.sees("check") {
        return Ok(None);
    }
    let constraint = match reader.word("constraint") {
        true => Some(reader.name()?),
        false => None,
    };
    reader.expect_word("check")?;
    reader.expect_token(&Token::LParen)?;
    let condition = reader.expr()?;
    reader.expect_token(&Token::RParen)?;
    let mut check = CheckClause { constraint, condition, no_inherit: false, not_valid: false };
    loop {
        let place = reader.position();
        if reader.words(&["no", "inherit"]) {
            check.no_inherit = true;
        } else if reader.words(&["not", "valid"]) {
            check.not_valid = true;
        } else if reader.word("deferrable") || reader.words(&["initially", "deferred"]) {
            return Err(SqlError::syntax("CHECK constraints cannot be marked DEFERRABLE").at(place));
        } else if !reader.words(&["not", "deferrable"]) && !reader.words(&["initially", "immediate"]) {
            return Ok(Some(check));
        }
    }
}

fn column(reader: &mut Reader<'_>, table: &str) -> Result<ColumnClause> {
    let name = reader.name()?;
    let ty_place = reader.position();
    let ty = reader.data_type()?;
    let mut column = ColumnClause {
        name,
        ty,
        not_null: false,
        null: false,
        default: None,
        primary_key: None,
        key_place: None,
        ty_place,
        identity: None,
        generated: None,
        checks: Vec::new(),
        constraints: Vec::new(),
    };
    let (mut null, mut not_null) = (false, false);
    loop {
        let place = reader.position();
        if let Some(check) = check_opt(reader)? {
            column.checks.push(check);
            continue;
        }
        if let Some(constraint) = keys::column_constraint_opt(reader, &column.name)? {
            match primary_key(constraint)? {
                Ok(key) => (column.primary_key, column.key_place) = (Some(key.constraint), place),
                Err(constraint) => column.constraints.push(constraint),
            }
            continue;
        }
        let constraint = match reader.word("constraint") {
            true => Some(reader.ident()?),
            false => None,
        };
        let again = |what: &str| {
            let name = &column.name;
            SqlError::syntax(format!("multiple {what} for column \"{name}\" of table \"{table}\"")).at(place)
        };
        if reader.word("null") {
            null = true;
        } else if reader.words(&["not", "null"]) {
            not_null = true;
        } else if reader.word("generated") {
            match generated(reader)? {
                Generated::Identity(_) if column.identity.is_some() => {
                    return Err(again("identity specifications"));
                }
                Generated::Identity(identity) => column.identity = Some(identity),
                Generated::Expression(_) if column.generated.is_some() => {
                    return Err(again("generation clauses specified"));
                }
                Generated::Expression(expr) => column.generated = Some(expr),
            }
        } else if let Some(word) = reader.one_of(&["storage", "compression"]) {
            let _ = (word, reader.ident()?);
        } else if let Some(option) = reader.column_option()? {
            match option {
                ast::ColumnOption::Default(_) if column.default.is_some() => {
                    return Err(again("default values specified"));
                }
                ast::ColumnOption::Default(expr) => column.default = Some(expr),
                ast::ColumnOption::Collation(name) => check_collation(&name).map_err(|error| error.at(place))?,
                other => {
                    return Err(SqlError::not_supported(format!("this column option is not supported: {other}")));
                }
            }
        } else if constraint.is_some() {
            return Err(reader.error_here());
        } else {
            break;
        }
        let of = format!("column \"{}\" of table \"{table}\"", column.name);
        if null && (not_null || column.identity.is_some()) {
            let message = format!("conflicting NULL/NOT NULL declarations for {of}");
            return Err(SqlError::syntax(message).at(place));
        }
        let both = match (&column.default, &column.identity, &column.generated) {
            (Some(_), Some(_), _) => Some("default and identity"),
            (Some(_), None, Some(_)) => Some("default and generation expression"),
            (None, Some(_), Some(_)) => Some("identity and generation expression"),
            _ => None,
        };
        if let Some(both) = both {
            return Err(SqlError::syntax(format!("both {both} specified for {of}")).at(place));
        }
    }
    column.not_null = not_null || column.identity.is_some();
    column.null = null;
    Ok(column)
}

enum Generated {
    Identity(IdentityClause),
    Expression(ast::Expr),
}

/// After `GENERATED`.
fn generated(reader: &mut Reader<'_>) -> Result<Generated> {
    let always = match reader.word("always") {
        true => true,
        false if reader.words(&["by", "default"]) => false,
        false => return Err(reader.error_here()),
    };
    reader.expect_word("as")?;
    if reader.word("identity") {
        let mut options = SequenceOptions::default();
        if reader.token(&Token::LParen) {
            options = sequence::options(reader)?;
            reader.expect_token(&Token::RParen)?;
        }
        return Ok(Generated::Identity(IdentityClause { always, options }));
    }
    let place = reader.position();
    reader.expect_token(&Token::LParen)?;
    let expr = reader.expr()?;
    reader.expect_token(&Token::RParen)?;
    if !always {
        return Err(SqlError::syntax("for a generated column, GENERATED ALWAYS must be specified").at(place));
    }
    reader.expect_word("stored")?;
    Ok(Generated::Expression(expr))
}

fn check_collation(name: &ast::ObjectName) -> Result<()> {
    let last = name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone()).unwrap_or_default();
    match last.as_str() {
        "C" | "default" | "POSIX" | "ucs_basic" | "C.UTF-8" => Ok(()),
        _ => Err(SqlError::not_supported(format!("collation \"{last}\" is not supported"))
            .with_hint("Text is compared in the C collation.")),
    }
}

pub(super) fn rename(reader: &mut Reader<'_>) -> Result<AlterAction> {
    if reader.word("to") {
        return Ok(AlterAction::RenameTo(reader.name()?));
    }
    if reader.word("constraint") {
        let old = reader.name()?;
        reader.expect_word("to")?;
        return Ok(AlterAction::RenameConstraint(old, reader.name()?));
    }
    reader.word("column");
    let old = reader.name()?;
    reader.expect_word("to")?;
    Ok(AlterAction::RenameColumn(old, reader.name()?))
}

pub(super) fn alter_action(reader: &mut Reader<'_>, table: &str) -> Result<AlterAction> {
    Ok(
        match reader.one_of(&[
            "add", "drop", "alter", "set", "reset", "owner", "enable", "disable", "replica", "validate", "inherit",
            "no", "attach", "detach", "cluster", "of", "not", "force",
        ]) {
            Some("add") => alter_add(reader, table)?,
            Some("drop") if reader.word("constraint") => {
                let if_exists = reader.if_exists();
                let name = reader.name()?;
                AlterAction::DropConstraint { name, if_exists, cascade: cascade(reader) }
            }
            Some("drop") => {
                reader.word("column");
                let if_exists = reader.if_exists();
                let name = reader.name()?;
                AlterAction::DropColumn { name, if_exists, cascade: cascade(reader) }
            }
            Some("alter") if reader.word("constraint") => {
                AlterAction::AlterConstraint(reader.name()?, keys::deferral(reader, &mut |_| false)?)
            }
            Some("alter") => alter_column(reader)?,
            Some("set") if reader.word("schema") => AlterAction::SetSchema(reader.ident()?),
            Some("set") if reader.word("logged") || reader.word("unlogged") => AlterAction::Nothing,
            Some("set") if reader.words(&["without", "oids"]) => AlterAction::Nothing,
            Some("set") if reader.words(&["without", "cluster"]) => AlterAction::Nothing,
            Some("set") if reader.word("tablespace") => {
                tablespace(reader)?;
                AlterAction::Nothing
            }
            Some("set") if reader.words(&["access", "method"]) => {
                access_method(reader)?;
                AlterAction::Nothing
            }
            Some("set") => AlterAction::SetOptions(options(reader)?),
            Some("reset") => AlterAction::ResetOptions(reader.list_in_parens(Reader::ident)?),
            Some("owner") => {
                reader.expect_word("to")?;
                AlterAction::OwnerTo(reader.ident()?)
            }
            Some("validate") => {
                reader.expect_word("constraint")?;
                AlterAction::ValidateConstraint(reader.name()?)
            }
            Some("cluster") => {
                reader.expect_word("on")?;
                reader.ident()?;
                AlterAction::Nothing
            }
            Some("inherit" | "no" | "attach" | "detach" | "of" | "not") => {
                return Err(SqlError::not_supported("table inheritance and partitions are not supported")
                    .with_hint("Use WITH (tablets = n, distribution_key = '…')."));
            }
            Some(verb @ ("enable" | "disable")) if reader.word("trigger") => match reader.one_of(&["all", "user"]) {
                Some("all") => AlterAction::AllTriggers { enable: verb == "enable" },
                // Nobody can make one.
                Some(_) => AlterAction::Nothing,
                None => AlterAction::Trigger(reader.name()?),
            },
            Some("enable") if reader.words(&["always", "trigger"]) || reader.words(&["replica", "trigger"]) => {
                AlterAction::Trigger(reader.name()?)
            }
            Some("replica") => {
                reader.expect_word("identity")?;
                reader.ident()?;
                AlterAction::Nothing
            }
            Some(other) => {
                return Err(SqlError::not_supported(format!(
                    "ALTER TABLE … {} is not supported",
                    other.to_uppercase()
                )));
            }
            None => return Err(reader.error_here()),
        },
    )
}

fn alter_add(reader: &mut Reader<'_>, table: &str) -> Result<AlterAction> {
    if let Some(check) = check_opt(reader)? {
        return Ok(AlterAction::AddCheck(check));
    }
    if let Some(constraint) = keys::table_constraint_opt(reader)? {
        return Ok(match primary_key(constraint)? {
            Ok(key) => AlterAction::AddKey(key),
            Err(constraint) => AlterAction::AddConstraint(constraint),
        });
    }
    if reader.sees("constraint") || reader.sees("exclude") {
        return Err(no_constraint(reader));
    }
    reader.word("column");
    let if_not_exists = reader.if_not_exists();
    Ok(AlterAction::AddColumn { column: Box::new(column(reader, table)?), if_not_exists })
}

fn alter_column(reader: &mut Reader<'_>) -> Result<AlterAction> {
    reader.word("column");
    if let Some(number) = reader.number_opt() {
        // Of an index, whose columns are numbered.
        return match reader.words(&["set", "statistics"]) {
            true => reader.integer().map(|_| AlterAction::Hint(number)),
            false => Err(reader.error_here()),
        };
    }
    let name = reader.name()?;
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
        Ok(AlterAction::Hint(name))
    } else if reader.words(&["set", "storage"]) || reader.words(&["set", "compression"]) {
        reader.ident()?;
        Ok(AlterAction::Hint(name))
    } else if reader.words(&["add", "generated"]) {
        match generated(reader)? {
            Generated::Identity(identity) => Ok(AlterAction::AddIdentity(name, identity)),
            Generated::Expression(_) => Err(SqlError::not_supported("a column cannot become a generated one")
                .with_hint("Drop it, and add a generated column.")),
        }
    } else if reader.words(&["drop", "identity"]) {
        Ok(AlterAction::DropIdentity { name, if_exists: reader.if_exists() })
    } else if reader.words(&["drop", "expression"]) {
        Ok(AlterAction::DropExpression { name, if_exists: reader.if_exists() })
    } else if reader.word("type") || reader.words(&["set", "data", "type"]) {
        let ty = reader.data_type()?;
        if reader.word("collate") {
            check_collation(&reader.sql_name()?)?;
        }
        let using = if reader.word("using") { Some(reader.expr()?) } else { None };
        Ok(AlterAction::SetType { name, ty, using })
    } else {
        set_identity(reader, name)
    }
}

/// `SET GENERATED …`, `SET sequence_option` and `RESTART`, as many as there are.
fn set_identity(reader: &mut Reader<'_>, name: String) -> Result<AlterAction> {
    let (mut always, mut options, mut any) = (None, SequenceOptions::default(), false);
    loop {
        if matches!(reader.peek(), Token::Word(_)) && reader.sees("restart") {
            sequence::option(reader, &mut options)?;
        } else if reader.word("set") {
            if reader.word("generated") {
                let now = match reader.word("always") {
                    true => true,
                    false if reader.words(&["by", "default"]) => false,
                    false => return Err(reader.error_here()),
                };
                if always.replace(now).is_some() {
                    return Err(SqlError::syntax("conflicting or redundant options"));
                }
            } else if matches!(reader.peek(), Token::LParen) && !any {
                self::options(reader)?;
                return Ok(AlterAction::Hint(name));
            } else if !sequence::option(reader, &mut options)? {
                return Err(reader.error_here());
            }
        } else if !any && reader.word("reset") {
            reader.names_in_parens()?;
            return Ok(AlterAction::Hint(name));
        } else if any {
            return Ok(AlterAction::SetIdentity { name, always, options });
        } else {
            return Err(reader.error_here());
        }
        any = true;
    }
}

pub(super) fn access_method(reader: &mut Reader<'_>) -> Result<()> {
    match reader.ident()?.as_str() {
        "heap" => Ok(()),
        method => Err(SqlError::new("42704", format!("access method \"{method}\" does not exist"))),
    }
}
