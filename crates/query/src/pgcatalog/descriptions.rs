//! Comments: `pg_description`, and the functions that look into it.

use super::relations::{self, Relation};
use super::rows::{Rows, int4, oid, text};
use super::{Fill, SystemContext, find};
use crate::error::SqlError;
use basalt_types::ObjectId;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    (name == "pg_description").then_some(pg_description as Fill)
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
    Ok(())
}

/// The comment on an object of a catalog.
pub(super) fn of_object<'a>(system: &'a SystemContext, object: u32, class: &str) -> Option<&'a str> {
    match class {
        "pg_class" => relations::by_oid(&system.catalog, object).as_ref().and_then(Relation::comment),
        "pg_namespace" => system.catalog.namespaces.get(&ObjectId(object))?.comment.as_deref(),
        _ => None,
    }
}
