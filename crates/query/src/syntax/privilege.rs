//! GRANT and REVOKE of privileges, and ALTER DEFAULT PRIVILEGES (PostgreSQL manual, the pages of the three).

use super::Reader;
use super::ddl::Definition;
use super::reader::Name;
use crate::error::{Result, SqlError};
use basalt_engine::privilege::{self, ObjectClass, Privileges};
use sqlparser::tokenizer::Token;

/// One kind of privilege; on the columns that are named, if some are.
#[derive(Clone, Debug)]
pub struct PrivilegeClause {
    /// `None`: ALL.
    pub kind: Option<Privileges>,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum PrivilegeTarget {
    /// Without TABLE or SEQUENCE in front a table's form is taken for sequences too.
    Objects {
        class: ObjectClass,
        names: Vec<Name>,
        is_domain: bool,
    },
    AllInSchemas {
        class: ObjectClass,
        schemas: Vec<String>,
    },
    /// Objects of a kind that nobody can make here: the kind, and the names.
    Foreign {
        kind: &'static str,
        names: Vec<Name>,
    },
}

#[derive(Clone, Debug)]
pub struct PrivilegeGrant {
    /// Empty: ALL.
    pub privileges: Vec<PrivilegeClause>,
    pub target: PrivilegeTarget,
    /// `None`: PUBLIC.
    pub grantees: Vec<Option<String>>,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    pub revoke: bool,
    pub cascade: bool,
    pub granted_by: Option<String>,
}

#[derive(Clone, Debug)]
pub struct DefaultPrivileges {
    /// Empty: the user's own objects.
    pub roles: Vec<String>,
    pub schemas: Vec<String>,
    /// Its target has a class and no names.
    pub grant: PrivilegeGrant,
}

/// Behind GRANT or REVOKE (and what stands before the privileges), if privileges on objects are meant.
pub(super) fn grant(reader: &mut Reader<'_>, revoke: bool, option: bool) -> Result<Definition> {
    let privileges = clauses(reader)?;
    reader.expect_word("on")?;
    let target = target(reader)?;
    Ok(Definition::GrantPrivileges(Box::new(rest(reader, privileges, target, revoke, option)?)))
}

/// Whether the privileges of GRANT or REVOKE begin here, and not names of roles.
pub(super) fn begins(reader: &Reader<'_>) -> bool {
    let mut at = 0;
    let mut depth = 0;
    loop {
        if reader.nth_is_end(at) || (depth == 0 && (reader.sees_nth(at, "to") || reader.sees_nth(at, "from"))) {
            return false;
        }
        if depth == 0 && reader.sees_nth(at, "on") {
            return true;
        }
        if reader.nth_is_left_paren(at) {
            depth += 1;
        } else if depth > 0 && reader.nth_is_right_paren(at) {
            depth -= 1;
        }
        at += 1;
    }
}

fn clauses(reader: &mut Reader<'_>) -> Result<Vec<PrivilegeClause>> {
    if reader.word("all") {
        reader.word("privileges");
        let columns = columns(reader)?;
        return Ok(vec![PrivilegeClause { kind: None, columns }]);
    }
    reader.list(|reader| {
        let name = reader.ident()?;
        let wanted = if name == "temp" { "temporary" } else { &name };
        let found = privilege::NAMES.iter().find(|(_, _, known)| known.eq_ignore_ascii_case(wanted));
        let Some((kind, ..)) = found else {
            return Err(SqlError::syntax(format!("unrecognized privilege type \"{name}\"")));
        };
        Ok(PrivilegeClause { kind: Some(*kind), columns: columns(reader)? })
    })
}

fn columns(reader: &mut Reader<'_>) -> Result<Vec<String>> {
    match reader.peek() {
        Token::LParen => reader.names_in_parens(),
        _ => Ok(Vec::new()),
    }
}

fn target(reader: &mut Reader<'_>) -> Result<PrivilegeTarget> {
    if reader.word("all") {
        let class = class_of_many(reader)?;
        reader.expect_word("in")?;
        reader.expect_word("schema")?;
        return Ok(PrivilegeTarget::AllInSchemas { class, schemas: reader.list(Reader::ident)? });
    }
    let foreign = [
        (&["foreign", "data", "wrapper"][..], "foreign-data wrapper"),
        (&["foreign", "server"][..], "server"),
        (&["large", "object"][..], "large object"),
        (&["language"][..], "language"),
        (&["tablespace"][..], "tablespace"),
        (&["parameter"][..], "parameter"),
        (&["function"][..], "function"),
        (&["procedure"][..], "procedure"),
        (&["routine"][..], "routine"),
    ];
    for (words, kind) in foreign {
        if reader.words(words) {
            let names = reader.list(|reader| {
                if let Some(number) = reader.number_opt() {
                    return Ok(Name { schema: None, name: number });
                }
                let name = reader.other_name()?;
                arguments(reader)?;
                Ok(name)
            })?;
            return Ok(PrivilegeTarget::Foreign { kind, names });
        }
    }
    let (class, is_domain) = match reader.one_of(&["table", "sequence", "schema", "database", "type", "domain"]) {
        Some("sequence") => (ObjectClass::Sequence, false),
        Some("schema") => (ObjectClass::Schema, false),
        Some("database") => (ObjectClass::Database, false),
        Some("type") => (ObjectClass::Type, false),
        Some("domain") => (ObjectClass::Type, true),
        _ => (ObjectClass::Table, false),
    };
    Ok(PrivilegeTarget::Objects { class, names: reader.list(Reader::object_name)?, is_domain })
}

/// The argument types of a function's name.
fn arguments(reader: &mut Reader<'_>) -> Result<()> {
    if !reader.token(&Token::LParen) {
        return Ok(());
    }
    let mut depth = 1;
    while depth > 0 && !reader.at_end() {
        match reader.take_token() {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    Ok(())
}

fn class_of_many(reader: &mut Reader<'_>) -> Result<ObjectClass> {
    match reader.one_of(&["tables", "sequences", "functions", "procedures", "routines", "types", "schemas"]) {
        Some("tables") => Ok(ObjectClass::Table),
        Some("sequences") => Ok(ObjectClass::Sequence),
        Some("types") => Ok(ObjectClass::Type),
        Some("schemas") => Ok(ObjectClass::Schema),
        Some(_) => Ok(ObjectClass::Function),
        None => Err(reader.error_here()),
    }
}

/// From TO or FROM on.
fn rest(
    reader: &mut Reader<'_>,
    privileges: Vec<PrivilegeClause>,
    target: PrivilegeTarget,
    revoke: bool,
    mut option: bool,
) -> Result<PrivilegeGrant> {
    reader.expect_word(if revoke { "from" } else { "to" })?;
    let grantees = reader.list(|reader| {
        reader.word("group");
        let is_public = reader.sees("public");
        let name = reader.ident()?;
        Ok((!is_public).then_some(name))
    })?;
    if !revoke && reader.words(&["with", "grant", "option"]) {
        option = true;
    }
    let granted_by = if reader.words(&["granted", "by"]) { Some(reader.ident()?) } else { None };
    let cascade = revoke && reader.word("cascade");
    if revoke && !cascade {
        reader.word("restrict");
    }
    Ok(PrivilegeGrant { privileges, target, grantees, option, revoke, cascade, granted_by })
}

/// Behind ALTER DEFAULT PRIVILEGES.
pub(super) fn defaults(reader: &mut Reader<'_>) -> Result<Definition> {
    let (mut roles, mut schemas) = (Vec::new(), Vec::new());
    loop {
        if reader.words(&["in", "schema"]) {
            schemas.extend(reader.list(Reader::ident)?);
        } else if reader.words(&["for", "role"]) || reader.words(&["for", "user"]) {
            roles.extend(reader.list(Reader::ident)?);
        } else {
            break;
        }
    }
    let Some(verb) = reader.one_of(&["grant", "revoke"]) else { return Err(reader.error_here()) };
    let revoke = verb == "revoke";
    let option = revoke && reader.words(&["grant", "option", "for"]);
    let privileges = clauses(reader)?;
    reader.expect_word("on")?;
    let class = class_of_many(reader)?;
    let target = PrivilegeTarget::AllInSchemas { class, schemas: Vec::new() };
    let grant = rest(reader, privileges, target, revoke, option)?;
    Ok(Definition::DefaultPrivileges(Box::new(DefaultPrivileges { roles, schemas, grant })))
}
