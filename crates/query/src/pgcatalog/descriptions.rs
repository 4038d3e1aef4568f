//! Comments: `pg_description`, and the functions that look into it.

use super::relations::{self, Relation};
use super::rows::{Rows, int4, oid, text};
use super::{Fill, SystemContext, find};
use crate::error::SqlError;
use crate::statement::comment::{PG_AUTHID, PG_CLASS, PG_DATABASE};
use basalt_types::ObjectId;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    match name {
        "pg_description" => Some(pg_description),
        "pg_shdescription" => Some(pg_shdescription),
        _ => None,
    }
}

fn class_oid(name: &str) -> u32 {
    find("pg_catalog", name).map_or(0, |table| table.oid)
}

fn pg_description(system: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    let (classes, namespaces) = (class_oid("pg_class"), class_oid("pg_namespace"));
    let mut push = |object: u32, class: u32, part: i32, description: &str| {
        rows.push([
            ("objoid", oid(object)),
            ("classoid", oid(class)),
            ("objsubid", int4(part)),
            ("description", text(description)),
        ])
    };
    for namespace in relations::namespaces(system) {
        if let Some(comment) = &namespace.comment {
            push(namespace.id.0, namespaces, 0, comment)?;
        }
    }
    for relation in relations::all(system) {
        if let Some(comment) = relation.comment() {
            push(relation.oid(), classes, 0, comment)?;
        }
    }
    for (key, comment) in system.catalog.comments.iter().filter(|(key, _)| !is_shared(key.class)) {
        push(key.object.0, key.class, key.part, comment)?;
    }
    Ok(())
}

/// Databases and roles, which all databases share.
fn is_shared(class: u32) -> bool {
    matches!(class, PG_DATABASE | PG_AUTHID)
}

fn pg_shdescription(system: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    for (key, comment) in system.catalog.comments.iter().filter(|(key, _)| is_shared(key.class)) {
        rows.push([("objoid", oid(key.object.0)), ("classoid", oid(key.class)), ("description", text(comment))])?;
    }
    Ok(())
}

/// The comment on a column.
pub(super) fn of_column(system: &SystemContext, relation: u32, column: i32) -> Option<&str> {
    system.catalog.comments.get(PG_CLASS, ObjectId(relation), column)
}

/// The comment on a database or role.
pub(super) fn of_shared<'a>(system: &'a SystemContext, object: u32, class: &str) -> Option<&'a str> {
    system.catalog.comments.get(class_oid(class), ObjectId(object), 0)
}

/// The comment on an object of a catalog.
pub(super) fn of_object<'a>(system: &'a SystemContext, object: u32, class: &str) -> Option<&'a str> {
    match class {
        "pg_class" => {
            let own = relations::by_oid(&system.catalog, object).as_ref().and_then(Relation::comment);
            own.or_else(|| system.catalog.comments.get(PG_CLASS, ObjectId(object), 0))
        }
        "pg_namespace" => system.catalog.namespaces.get(&ObjectId(object))?.comment.as_deref(),
        class => system.catalog.comments.get(class_oid(class), ObjectId(object), 0),
    }
}
