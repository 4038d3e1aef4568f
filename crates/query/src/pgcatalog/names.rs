//! Names of catalog objects: what text means along the search path, and what PostgreSQL would print.

use super::relations::{self, Relation};
use super::{find, procs, signatures, typing, user_types};
use crate::session::names::{named_schema, quote_identifier, searched};
use crate::system::SystemContext;
use basalt_engine::{Catalog, TypeKind};
use basalt_expr::{Error, Result};
use basalt_types::names::names_of;
use basalt_types::{DataType, ObjectId};

/// Where names are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub catalog: &'a Catalog,
    pub database: ObjectId,
    /// Existing schemas in order; `pg_catalog` comes first unless it is listed.
    pub search_path: &'a [String],
}

impl<'a> Scope<'a> {
    pub fn of(system: &'a SystemContext) -> Scope<'a> {
        Scope { catalog: &system.catalog, database: relations::database_oid(system), search_path: &system.lookup_path }
    }

    pub fn path(self) -> impl Iterator<Item = &'a str> {
        searched(self.search_path)
    }

    fn relation_in(self, schema: &str, name: &str) -> Option<u32> {
        if let Some(table) = find(schema, name) {
            return Some(table.oid);
        }
        let schema = named_schema(self.search_path, schema);
        let namespace = self.catalog.namespace_named(self.database, schema)?.id;
        if let Some(id) = self.catalog.relation_named(namespace, name) {
            return Some(id.0);
        }
        if let Some(def) = self.catalog.type_def_named(namespace, name)
            && matches!(def.kind, TypeKind::Composite(_))
        {
            return Some(def.id.0);
        }
        let keys = self.catalog.tables.values().filter(|table| table.namespace == namespace);
        let mut keys = keys.filter_map(|table| table.primary_key.as_ref());
        keys.find(|key| key.constraint_name == name).map(|key| key.constraint_id.0)
    }

    /// The relation that an unqualified name means.
    fn relation_on_path(self, name: &str) -> Option<u32> {
        self.path().find_map(|schema| self.relation_in(schema, name))
    }

    /// Whether the unqualified name of a relation means it; `None` if there is no such relation.
    pub fn relation_is_visible(self, oid: u32) -> Option<bool> {
        let relation = relations::by_oid(self.catalog, oid)?;
        Some(self.relation_on_path(relation.name()) == Some(oid))
    }

    fn relation_text(self, relation: &Relation) -> Option<String> {
        let name = quote_identifier(relation.name());
        if self.relation_on_path(relation.name()) == Some(relation.oid()) {
            return Some(name);
        }
        let schema = &self.catalog.namespaces.get(&relation.namespace())?.name;
        Some(format!("{}.{name}", quote_identifier(schema)))
    }
}

/// Splits `a.b`, with quotes; folded.
pub(super) fn parts(text: &str) -> Result<Vec<String>> {
    let invalid = || Error::new("42602", format!("invalid name syntax: \"{text}\""));
    let dotted = split_dots(text).ok_or_else(invalid)?;
    let mut parts = Vec::new();
    for part in dotted {
        let mut names = names_of(&part).ok_or_else(invalid)?;
        match (names.pop(), names.is_empty()) {
            (Some(name), true) => parts.push(name),
            _ => return Err(invalid()),
        }
    }
    Ok(parts)
}

fn split_dots(text: &str) -> Option<Vec<String>> {
    let (mut parts, mut part, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                part.push(c);
            }
            '.' if !quoted => parts.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
    }
    parts.push(part);
    (!quoted).then_some(parts)
}

/// The object of a reg type that text names, or PostgreSQL's error that it does not exist.
pub(crate) fn oid_of(scope: Scope, ty: &DataType, text: &str) -> Result<u32> {
    let missing = |sqlstate, what: &str, name: &str| Error::new(sqlstate, format!("{what} \"{name}\" does not exist"));
    match ty {
        DataType::Regclass => {
            let parts = parts(text)?;
            let found = match parts.as_slice() {
                [name] => scope.relation_on_path(name),
                [schema, name] | [_, schema, name] => {
                    let found = scope.relation_in(schema, name);
                    let known = named_schema(scope.search_path, schema);
                    if found.is_none() && scope.catalog.namespace_named(scope.database, known).is_none() {
                        return Err(missing("3F000", "schema", schema));
                    }
                    found
                }
                _ => {
                    let message = format!("improper relation name (too many dotted names): {}", parts.join("."));
                    return Err(Error::new("42601", message));
                }
            };
            found.ok_or_else(|| missing("42P01", "relation", &parts.join(".")))
        }
        DataType::Regnamespace => {
            let name = parts(text)?.join(".");
            if relations::is_system_name(&name) {
                return Ok(relations::system_namespace(&name).0);
            }
            let found = scope.catalog.namespace_named(scope.database, &name).map(|namespace| namespace.id.0);
            found.ok_or_else(|| missing("3F000", "schema", &name))
        }
        DataType::Regrole => {
            let name = parts(text)?.join(".");
            let found = scope.catalog.role_named(&name).map(|role| role.id.0);
            found.ok_or_else(|| missing("42704", "role", &name))
        }
        DataType::Regtype => match typing::oid_of(text) {
            Some(oid) => Ok(oid),
            None => {
                let (name, is_array) = match text.trim().strip_suffix("[]") {
                    Some(element) => (element, true),
                    None => (text, false),
                };
                let found = user_types::oid_of(scope, &parts(name.trim())?);
                let found = found.map(|oid| if is_array { basalt_types::usertype::array_oid(oid) } else { oid });
                found.ok_or_else(|| missing("42704", "type", text))
            }
        },
        DataType::Regproc => {
            let parts = parts(text)?;
            let name = match parts.as_slice() {
                [name] => name,
                [schema, name] if schema == "pg_catalog" => name,
                _ => return Err(missing("42883", "function", &parts.join("."))),
            };
            match procs::named(name).as_slice() {
                [oid] => Ok(*oid),
                [] => Err(missing("42883", "function", name)),
                _ => Err(Error::new("42725", format!("more than one function named \"{name}\""))),
            }
        }
        DataType::Regprocedure => signatures::procedure(scope, text),
        DataType::Regoper => signatures::operator_named(scope, text),
        DataType::Regoperator => signatures::operator(scope, text),
        DataType::Regcollation => signatures::collation(scope, text),
        other => Err(Error::not_supported(format!("names of type {} are not supported", other.sql_name()))),
    }
}

/// The name of a type, built-in or not, with its modifier if one is given.
pub(crate) fn format_type(scope: Scope, oid: u32, typmod: Option<i32>) -> Option<String> {
    typing::format_type(oid, typmod).or_else(|| user_types::format_type(scope, oid))
}

/// An object of a reg type as PostgreSQL prints it: quoted and qualified where needed.
pub(crate) fn name_of(scope: Scope, ty: &DataType, oid: u32) -> Option<String> {
    match ty {
        DataType::Regclass => scope.relation_text(&relations::by_oid(scope.catalog, oid)?),
        DataType::Regnamespace => {
            scope.catalog.namespaces.get(&ObjectId(oid)).map(|namespace| quote_identifier(&namespace.name))
        }
        DataType::Regrole => scope.catalog.roles.get(&ObjectId(oid)).map(|role| quote_identifier(&role.name)),
        DataType::Regtype => format_type(scope, oid, None),
        DataType::Regproc => {
            let name = procs::name_of(oid)?;
            let quoted = quote_identifier(name);
            // Without its arguments a name is found only if it is the only one.
            Some(if procs::named(name).len() > 1 { format!("pg_catalog.{quoted}") } else { quoted })
        }
        DataType::Regprocedure => signatures::procedure_text(scope, oid),
        DataType::Regoper => signatures::operator_name(oid),
        DataType::Regoperator => signatures::operator_text(scope, oid),
        DataType::Regcollation => typing::collation_name(oid).map(quote_identifier),
        _ => None,
    }
}
