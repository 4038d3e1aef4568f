//! CREATE, ALTER, DROP and COMMENT ON of types and domains.

use super::{Name, Reader};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

#[derive(Clone, Debug)]
pub struct AttributeClause {
    pub name: String,
    pub ty: ast::DataType,
}

/// `[CONSTRAINT name] CHECK (…)`, `NOT NULL`, `NULL`.
#[derive(Clone, Debug)]
pub enum DomainRule {
    Check { name: Option<String>, condition: Box<ast::Expr> },
    NotNull,
    Null,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Neighbor {
    Before(String),
    After(String),
}

#[derive(Clone, Debug)]
pub enum AttributeAction {
    Add(AttributeClause),
    Drop { name: String, if_exists: bool },
    SetType(AttributeClause),
}

#[derive(Clone, Debug)]
pub enum DomainAction {
    SetDefault(Option<Box<ast::Expr>>),
    SetNotNull(bool),
    AddRule { rule: DomainRule, valid: bool },
    DropConstraint { name: String, if_exists: bool },
    RenameConstraint(String, String),
    Validate(String),
}

#[derive(Clone, Debug)]
pub enum TypeAction {
    Attributes { actions: Vec<AttributeAction>, cascade: bool },
    RenameAttribute { from: String, to: String },
    AddValue { label: String, if_not_exists: bool, place: Option<Neighbor> },
    RenameValue { from: String, to: String },
    Rename(String),
    SetSchema(String),
    OwnerTo(String),
    Domain(Box<DomainAction>),
}

#[derive(Clone, Debug)]
pub enum TypeCommand {
    CreateComposite {
        name: Name,
        attributes: Vec<AttributeClause>,
    },
    CreateEnum {
        name: Name,
        labels: Vec<String>,
    },
    CreateDomain {
        name: Name,
        base: ast::DataType,
        default: Option<Box<ast::Expr>>,
        rules: Vec<DomainRule>,
    },
    Alter {
        name: Name,
        domain: bool,
        action: TypeAction,
    },
    Drop {
        names: Vec<Name>,
        domain: bool,
        if_exists: bool,
        cascade: bool,
    },
    Comment {
        name: Name,
        domain: bool,
        text: Option<String>,
    },
    /// On a domain's constraint.
    CommentConstraint {
        constraint: String,
        domain: Name,
        text: Option<String>,
    },
}

impl TypeCommand {
    pub fn tag(&self) -> &'static str {
        match self {
            TypeCommand::CreateComposite { .. } | TypeCommand::CreateEnum { .. } => "CREATE TYPE",
            TypeCommand::CreateDomain { .. } => "CREATE DOMAIN",
            TypeCommand::Alter { domain: false, .. } => "ALTER TYPE",
            TypeCommand::Alter { domain: true, .. } => "ALTER DOMAIN",
            TypeCommand::Drop { domain: false, .. } => "DROP TYPE",
            TypeCommand::Drop { domain: true, .. } => "DROP DOMAIN",
            TypeCommand::Comment { .. } | TypeCommand::CommentConstraint { .. } => "COMMENT",
        }
    }
}

/// After CREATE.
pub(super) fn create(reader: &mut Reader<'_>) -> Result<Option<TypeCommand>> {
    if reader.word("domain") {
        return create_domain(reader).map(Some);
    }
    if !reader.word("type") {
        return Ok(None);
    }
    let name = reader.object_name()?;
    if !reader.word("as") {
        return Err(SqlError::not_supported("base and shell types are not supported")
            .with_hint("Create a domain, an enum or a composite type."));
    }
    if reader.word("enum") {
        reader.expect_token(&Token::LParen)?;
        let mut labels = Vec::new();
        if !reader.token(&Token::RParen) {
            labels = reader.list(|reader| reader.string())?;
            reader.expect_token(&Token::RParen)?;
        }
        return Ok(Some(TypeCommand::CreateEnum { name, labels }));
    }
    if reader.word("range") {
        return Err(
            SqlError::not_supported("range types are not supported").with_hint("Keep the two bounds in two columns.")
        );
    }
    reader.expect_token(&Token::LParen)?;
    let mut attributes = Vec::new();
    if !reader.token(&Token::RParen) {
        attributes = reader.list(attribute)?;
        reader.expect_token(&Token::RParen)?;
    }
    Ok(Some(TypeCommand::CreateComposite { name, attributes }))
}

fn attribute(reader: &mut Reader<'_>) -> Result<AttributeClause> {
    let name = reader.name()?;
    let ty = reader.data_type()?;
    collation(reader)?;
    Ok(AttributeClause { name, ty })
}

fn collation(reader: &mut Reader<'_>) -> Result<()> {
    if !reader.word("collate") {
        return Ok(());
    }
    let name = reader.object_name()?;
    match name.name.as_str() {
        "default" | "C" | "POSIX" | "ucs_basic" => Ok(()),
        _ => Err(SqlError::new("42704", format!("collation \"{name}\" for encoding \"UTF8\" does not exist"))),
    }
}

fn create_domain(reader: &mut Reader<'_>) -> Result<TypeCommand> {
    let name = reader.object_name()?;
    reader.word("as");
    let base = reader.data_type()?;
    let mut default = None;
    let mut rules = Vec::new();
    while !reader.at_end() {
        if reader.sees("collate") {
            collation(reader)?;
        } else if reader.sees("default") {
            let Some(ast::ColumnOption::Default(value)) = reader.column_option()? else {
                return Err(reader.error_here());
            };
            if default.replace(Box::new(value)).is_some() {
                return Err(SqlError::syntax("multiple default expressions"));
            }
        } else {
            rules.push(rule(reader)?);
        }
    }
    Ok(TypeCommand::CreateDomain { name, base, default, rules })
}

fn rule(reader: &mut Reader<'_>) -> Result<DomainRule> {
    let name = if reader.word("constraint") { Some(reader.name()?) } else { None };
    if reader.words(&["not", "null"]) {
        return Ok(DomainRule::NotNull);
    }
    if reader.word("null") {
        return Ok(DomainRule::Null);
    }
    if reader.word("check") {
        reader.expect_token(&Token::LParen)?;
        let condition = Box::new(reader.expr()?);
        reader.expect_token(&Token::RParen)?;
        return Ok(DomainRule::Check { name, condition });
    }
    for (word, what) in [
        ("unique", "unique constraints not possible for domains"),
        ("primary", "primary key constraints not possible for domains"),
        ("references", "foreign key constraints not possible for domains"),
        ("exclude", "exclusion constraints not possible for domains"),
    ] {
        if reader.sees(word) {
            return Err(SqlError::syntax(what));
        }
    }
    Err(reader.error_here())
}

/// After ALTER.
pub(super) fn alter(reader: &mut Reader<'_>) -> Result<Option<TypeCommand>> {
    let domain = match reader.one_of(&["type", "domain"]) {
        Some(word) => word == "domain",
        None => return Ok(None),
    };
    let name = reader.object_name()?;
    let action = if reader.words(&["set", "schema"]) {
        TypeAction::SetSchema(reader.ident()?)
    } else if reader.words(&["owner", "to"]) {
        TypeAction::OwnerTo(reader.ident()?)
    } else if reader.words(&["rename", "to"]) {
        TypeAction::Rename(reader.ident()?)
    } else if domain {
        TypeAction::Domain(Box::new(domain_action(reader)?))
    } else {
        type_action(reader)?
    };
    Ok(Some(TypeCommand::Alter { name, domain, action }))
}

fn domain_action(reader: &mut Reader<'_>) -> Result<DomainAction> {
    if reader.words(&["set", "default"]) {
        return Ok(DomainAction::SetDefault(Some(Box::new(reader.expr()?))));
    }
    if reader.words(&["drop", "default"]) {
        return Ok(DomainAction::SetDefault(None));
    }
    if reader.words(&["set", "not", "null"]) {
        return Ok(DomainAction::SetNotNull(true));
    }
    if reader.words(&["drop", "not", "null"]) {
        return Ok(DomainAction::SetNotNull(false));
    }
    if reader.words(&["drop", "constraint"]) {
        let if_exists = reader.if_exists();
        let name = reader.name()?;
        let _ = reader.word("cascade") || reader.word("restrict");
        return Ok(DomainAction::DropConstraint { name, if_exists });
    }
    if reader.words(&["rename", "constraint"]) {
        let from = reader.name()?;
        reader.expect_word("to")?;
        return Ok(DomainAction::RenameConstraint(from, reader.name()?));
    }
    if reader.words(&["validate", "constraint"]) {
        return Ok(DomainAction::Validate(reader.name()?));
    }
    if reader.word("add") {
        let rule = rule(reader)?;
        let valid = !reader.words(&["not", "valid"]);
        return Ok(DomainAction::AddRule { rule, valid });
    }
    Err(reader.error_here())
}

fn type_action(reader: &mut Reader<'_>) -> Result<TypeAction> {
    if reader.words(&["add", "value"]) {
        let if_not_exists = reader.if_not_exists();
        let label = reader.string()?;
        let place = match reader.one_of(&["before", "after"]) {
            Some("before") => Some(Neighbor::Before(reader.string()?)),
            Some(_) => Some(Neighbor::After(reader.string()?)),
            None => None,
        };
        return Ok(TypeAction::AddValue { label, if_not_exists, place });
    }
    if reader.words(&["rename", "value"]) {
        let from = reader.string()?;
        reader.expect_word("to")?;
        return Ok(TypeAction::RenameValue { from, to: reader.string()? });
    }
    if reader.words(&["rename", "attribute"]) {
        let from = reader.ident()?;
        reader.expect_word("to")?;
        let to = reader.ident()?;
        let _ = reader.word("cascade") || reader.word("restrict");
        return Ok(TypeAction::RenameAttribute { from, to });
    }
    let mut cascade = false;
    let actions = reader.list(|reader| {
        let action = if reader.words(&["add", "attribute"]) {
            AttributeAction::Add(attribute(reader)?)
        } else if reader.words(&["drop", "attribute"]) {
            let if_exists = reader.if_exists();
            AttributeAction::Drop { name: reader.ident()?, if_exists }
        } else if reader.words(&["alter", "attribute"]) {
            let name = reader.ident()?;
            let _ = reader.words(&["set", "data"]);
            reader.expect_word("type")?;
            let ty = reader.data_type()?;
            collation(reader)?;
            AttributeAction::SetType(AttributeClause { name, ty })
        } else {
            return Err(reader.error_here());
        };
        cascade |= reader.word("cascade");
        reader.word("restrict");
        Ok(action)
    })?;
    Ok(TypeAction::Attributes { actions, cascade })
}

/// After DROP.
pub(super) fn drop(reader: &mut Reader<'_>) -> Result<Option<TypeCommand>> {
    let domain = match reader.one_of(&["type", "domain"]) {
        Some(word) => word == "domain",
        None => return Ok(None),
    };
    let if_exists = reader.if_exists();
    let names = reader.list(Reader::other_name)?;
    let cascade = reader.word("cascade");
    reader.word("restrict");
    Ok(Some(TypeCommand::Drop { names, domain, if_exists, cascade }))
}

/// After COMMENT ON.
pub(super) fn comment(reader: &mut Reader<'_>) -> Result<Option<TypeCommand>> {
    if reader.sees("constraint") && reader.sees_nth(2, "on") && reader.sees_nth(3, "domain") {
        reader.skip();
        let constraint = reader.ident()?;
        reader.words(&["on", "domain"]);
        let domain = reader.other_name()?;
        let text = comment_text(reader)?;
        return Ok(Some(TypeCommand::CommentConstraint { constraint, domain, text }));
    }
    let domain = match reader.one_of(&["type", "domain"]) {
        Some(word) => word == "domain",
        None => return Ok(None),
    };
    let name = reader.other_name()?;
    let text = comment_text(reader)?;
    Ok(Some(TypeCommand::Comment { name, domain, text }))
}

fn comment_text(reader: &mut Reader<'_>) -> Result<Option<String>> {
    reader.expect_word("is")?;
    if reader.word("null") { Ok(None) } else { Ok(Some(reader.string()?)) }
}
