//! COMMENT ON.

use super::resolve::{self, Relation, no_relation};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{Name, ObjectKind};
use basalt_engine::{CatalogEdit, CommentKey, Namespace, SequenceDef, TableLock, ViewDef};
use basalt_types::{ObjectId, TableDef};
use std::sync::Arc;

/// Oids of the system catalogs that list what a comment is about.
pub(crate) const PG_CLASS: u32 = 1259;
pub(crate) const PG_DATABASE: u32 = 1262;
pub(crate) const PG_AUTHID: u32 = 1260;
pub(crate) const PG_CONSTRAINT: u32 = 2606;

pub(crate) async fn run(
    session: &mut Session,
    kind: ObjectKind,
    name: &Name,
    part: Option<&str>,
    text: Option<String>,
) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let text = text.filter(|text| !text.is_empty());
    let found = match kind {
        ObjectKind::Schema | ObjectKind::Database | ObjectKind::Role => None,
        ObjectKind::Index => None,
        _ => match resolve::find(session, &catalog, name)? {
            Some(found) => Some(found),
            None => return Err(no_relation("relation", name)),
        },
    };
    let set = |class: u32, object: ObjectId, part: i32| CatalogEdit::SetComment {
        key: CommentKey { class, object, part },
        text: text.clone(),
    };
    let edit = match (kind, found) {
        (ObjectKind::Table | ObjectKind::MaterializedView, Some(Relation::Table(found)))
            if found.materialized.is_some() == (kind == ObjectKind::MaterializedView) =>
        {
            let table = resolve::lock_table(session, name, TableLock::ShareUpdateExclusive, false).await?;
            resolve::require_owner(session, table.kind_word(), &table.name, &table.owner)?;
            CatalogEdit::PutTable(Arc::new(TableDef { comment: text, ..TableDef::clone(&table) }))
        }
        (ObjectKind::View, Some(Relation::View(view))) => {
            resolve::require_owner(session, "view", &view.name, &view.owner)?;
            CatalogEdit::PutView(ViewDef { comment: text, ..ViewDef::clone(&view) })
        }
        (ObjectKind::Sequence, Some(Relation::Sequence(sequence))) => {
            resolve::require_owner(session, "sequence", &sequence.name, &sequence.owner)?;
            CatalogEdit::PutSequence(SequenceDef { comment: text, ..SequenceDef::clone(&sequence) })
        }
        (ObjectKind::Column, Some(found)) => {
            let part = part.unwrap_or_default();
            let (object, number) = column(session, &found, part)?;
            let number = number.ok_or_else(|| {
                SqlError::new("42703", format!("column \"{part}\" of relation \"{}\" does not exist", name.name))
            })?;
            set(PG_CLASS, object, number)
        }
        (ObjectKind::Constraint, Some(Relation::Table(table))) => {
            resolve::require_owner(session, "table", &table.name, &table.owner)?;
            let part = part.unwrap_or_default();
            let check = table.checks.iter().find(|check| check.name == part).map(|check| check.id);
            let key = table.primary_key.as_ref().filter(|key| key.constraint_name == part);
            let foreign = table.foreign_keys.iter().find(|key| key.name == part).map(|key| key.id);
            let unique = table.indexes.iter().filter(|index| index.name == part).find_map(|index| index.constraint);
            let other = foreign.or(unique.map(|unique| unique.id));
            let id = check.or(key.map(|key| key.constraint_id)).or(other).ok_or_else(|| {
                SqlError::new("42704", format!("constraint \"{part}\" for table \"{}\" does not exist", table.name))
            })?;
            set(PG_CONSTRAINT, id, 0)
        }
        (ObjectKind::Index, _) => {
            let namespaces: Vec<ObjectId> = match &name.schema {
                Some(schema) => vec![resolve::namespace(session, &catalog, schema)?.id],
                None => session
                    .lookup_path(&catalog)
                    .iter()
                    .filter_map(|schema| catalog.namespace_named(session.database.id, schema))
                    .map(|namespace| namespace.id)
                    .collect(),
            };
            let mut tables = catalog.tables.values().filter(|table| namespaces.contains(&table.namespace));
            let found = tables.find_map(|table| {
                let index = table.indexes.iter().find(|index| index.name == name.name).map(|index| index.id);
                let key = table.primary_key.as_ref().filter(|key| key.constraint_name == name.name);
                Some((table, index.or(key.map(|key| key.constraint_id))?))
            });
            let (table, id) = match (found, resolve::find(session, &catalog, name)?) {
                (Some(found), _) => found,
                (None, None) => return Err(no_relation("relation", name)),
                (None, Some(_)) => return Err(SqlError::new("42809", format!("\"{}\" is not an index", name.name))),
            };
            resolve::require_owner(session, "index", &name.name, &table.owner)?;
            set(PG_CLASS, id, 0)
        }
        (ObjectKind::Schema, _) => {
            let namespace = resolve::namespace(session, &catalog, &name.name)?;
            resolve::require_owner(session, "schema", &name.name, &namespace.owner)?;
            CatalogEdit::PutNamespace(Namespace { comment: text, ..Namespace::clone(namespace) })
        }
        (ObjectKind::Database, _) => {
            let Some(database) = catalog.database_named(&name.name) else {
                let warning = format!("database \"{}\" does not exist", name.name);
                session.notice(SqlError::notice(crate::error::Severity::Warning, "3D000", warning));
                return Ok(());
            };
            resolve::require_owner(session, "database", &name.name, &database.owner)?;
            set(PG_DATABASE, database.id, 0)
        }
        (ObjectKind::Role, _) => {
            let Some(role) = catalog.role_named(&name.name) else {
                return Err(SqlError::new("42704", format!("role \"{}\" does not exist", name.name)));
            };
            session.require_superuser("must be superuser to comment on roles")?;
            set(PG_AUTHID, role.id, 0)
        }
        (kind, _) => return Err(SqlError::new("42809", format!("\"{}\" is not a {}", name.name, kind.word()))),
    };
    Ok(session.txn()?.edit_catalog(vec![edit])?)
}

/// The relation and number of a column; 42809 for relations whose columns bear no comments.
fn column(session: &Session, found: &Relation, name: &str) -> Result<(ObjectId, Option<i32>)> {
    match found {
        Relation::Table(table) => {
            resolve::require_owner(session, table.kind_word(), &table.name, &table.owner)?;
            Ok((table.id, table.column_named(name).map(|column| i32::from(column.id.0))))
        }
        Relation::View(view) => {
            resolve::require_owner(session, "view", &view.name, &view.owner)?;
            let number = view.columns.iter().position(|(column, _)| column == name).map(|at| at as i32 + 1);
            Ok((view.id, number))
        }
        Relation::Sequence(sequence) => {
            Err(SqlError::new("42809", format!("cannot set comment on relation \"{}\"", sequence.name))
                .with_detail("This operation is not supported for sequences."))
        }
    }
}
