//! Kept expressions that name what goes: defaults, conditions, generated columns, indexes, and what domains ask.

use super::{Dependent, shown};
use crate::bind::pinned;
use crate::session::Session;
use basalt_engine::{Catalog, CatalogEdit, TypeDef, TypeKind};
use basalt_types::schema::IndexSource;
use basalt_types::usertype::{array_oid, row_type_oid};
use basalt_types::{ColumnId, ObjectId, TableDef};
use std::sync::Arc;

/// What an edit takes away: oids under which a text may name it, and what it is called.
struct Gone {
    oids: Vec<u32>,
    name: String,
}

fn gone(session: &Session, before: &Catalog, after: &Catalog) -> Vec<Gone> {
    let mut all = Vec::new();
    let mut relation = |id: ObjectId, namespace, kind: &str, name: &str| {
        let row = row_type_oid(id);
        let name = format!("{kind} {}", shown(session, before, namespace, name));
        all.push(Gone { oids: vec![id.0, row, array_oid(row)], name });
    };
    for it in before.tables.values().filter(|it| !after.tables.contains_key(&it.id)) {
        relation(it.id, it.namespace, it.kind_word(), &it.name);
    }
    for it in before.views.values().filter(|it| !after.views.contains_key(&it.id)) {
        relation(it.id, it.namespace, "view", &it.name);
    }
    for it in before.sequences.values().filter(|it| !after.sequences.contains_key(&it.id)) {
        relation(it.id, it.namespace, "sequence", &it.name);
    }
    for it in before.types.values().filter(|it| !after.types.contains_key(&it.id)) {
        let name = format!("type {}", shown(session, before, it.namespace, &it.name));
        all.push(Gone { oids: vec![it.id.0, array_oid(it.id.0)], name });
    }
    all
}

/// The first of these that a text names.
fn cause<'g>(gone: &'g [Gone], sql: &str) -> Option<&'g str> {
    let names = |gone: &&Gone| gone.oids.iter().any(|oid| pinned::names_object(sql, *oid));
    gone.iter().find(names).map(|gone| gone.name.as_str())
}

/// Generated columns that name what goes: they go as any column does.
pub(super) fn generated(session: &Session, before: &Catalog, after: &Catalog) -> Vec<(ObjectId, ColumnId, Dependent)> {
    let gone = gone(session, before, after);
    let mut found = Vec::new();
    for table in after.tables.values().filter(|_| !gone.is_empty()) {
        for column in table.live_columns() {
            let Some(on) = column.generated.as_deref().and_then(|sql| cause(&gone, sql)) else { continue };
            let name = shown(session, after, table.namespace, &table.name);
            let what = format!("column {} of table {name}", column.name);
            found.push((table.id, column.id, Dependent { what, on: on.to_string(), edits: Vec::new() }));
        }
    }
    found
}

/// All that would be left without what it names, but for [`generated`] columns.
pub(super) fn left(session: &Session, before: &Catalog, after: &Catalog) -> Vec<Dependent> {
    let gone = gone(session, before, after);
    let mut dependents = Vec::new();
    if gone.is_empty() {
        return dependents;
    }
    for table in after.tables.values() {
        let (changed, mut found) = without(session, after, table, &gone);
        if let Some(last) = found.last_mut() {
            last.edits.push(CatalogEdit::PutTable(Arc::new(changed)));
        }
        dependents.extend(found);
    }
    for def in after.types.values() {
        let mut changed = TypeDef::clone(def);
        let TypeKind::Domain { checks, default, .. } = &mut changed.kind else { continue };
        let broken = default.as_deref().and_then(|sql| cause(&gone, sql));
        let broken = broken.or_else(|| checks.iter().find_map(|check| cause(&gone, &check.sql)));
        let Some(on) = broken.map(str::to_string) else { continue };
        checks.retain(|check| cause(&gone, &check.sql).is_none());
        default.take_if(|sql| cause(&gone, sql).is_some());
        dependents.push(Dependent {
            what: format!("type {}", shown(session, after, def.namespace, &def.name)),
            on,
            edits: vec![CatalogEdit::PutType(Arc::new(changed))],
        });
    }
    dependents
}

/// A table without what names something that goes, and what that was.
fn without(session: &Session, after: &Catalog, table: &TableDef, gone: &[Gone]) -> (TableDef, Vec<Dependent>) {
    let mut changed = table.clone();
    let name = shown(session, after, table.namespace, &table.name);
    let mut found = Vec::new();
    let mut note = |what: String, on: &str| found.push(Dependent { what, on: on.to_string(), edits: Vec::new() });
    for column in changed.columns.iter_mut().filter(|column| !column.dropped) {
        if let Some(on) = column.default.as_deref().and_then(|sql| cause(gone, sql)) {
            note(format!("default value for column {} of table {name}", column.name), on);
            column.default = None;
        }
    }
    changed.checks.retain(|check| match cause(gone, &check.sql) {
        Some(on) => {
            note(format!("constraint {} on table {name}", check.name), on);
            false
        }
        None => true,
    });
    changed.indexes.retain(|index| {
        let of_column = |source: &IndexSource| match source {
            IndexSource::Expression(sql) => cause(gone, sql),
            IndexSource::Column(_) => None,
        };
        let predicate = index.predicate.as_deref().and_then(|sql| cause(gone, sql));
        match predicate.or_else(|| index.columns.iter().find_map(|column| of_column(&column.source))) {
            Some(on) => {
                note(format!("index {}", index.name), on);
                false
            }
            None => true,
        }
    });
    (changed, found)
}
