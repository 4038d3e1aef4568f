//! DROP OWNED and REASSIGN OWNED: all that a role has in the session's database.

use super::{drop, resolve};
use crate::error::{Result, SqlError};
use crate::session::Session;
use basalt_engine::privilege::{AclItem, AclKey, DefaultKey};
use basalt_engine::{Catalog, CatalogEdit, Database, Namespace, SequenceDef, TableLock, TypeDef, ViewDef};
use basalt_types::{ObjectId, TableDef};
use std::sync::Arc;

/// The roles by name. 42501 for one that the user is not in.
fn roles(session: &Session, catalog: &Catalog, names: &[String], what: &str) -> Result<Vec<(ObjectId, String)>> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let name = resolve::role(session, catalog, name)?;
        let Some(role) = catalog.role_named(&name) else { continue };
        if !session.superuser && !super::set::is_member(catalog, &session.user, role.id) {
            return Err(SqlError::new("42501", format!("permission denied to {what} objects")));
        }
        if role.id == basalt_engine::catalog::SUPERUSER {
            let message =
                format!("cannot {what} objects owned by role {name} because they are required by the database system");
            return Err(SqlError::new("2BP01", message));
        }
        found.push((role.id, name));
    }
    Ok(found)
}

fn is_here(session: &Session, catalog: &Catalog, namespace: ObjectId) -> bool {
    catalog.namespaces.get(&namespace).is_some_and(|schema| schema.database == session.database.id)
}

/// Tables, views and sequences of roles, in the order in which they are locked.
fn relations_of(session: &Session, catalog: &Catalog, roles: &[(ObjectId, String)]) -> Vec<ObjectId> {
    let is_theirs = |owner: &str, namespace: ObjectId| {
        roles.iter().any(|(_, name)| name == owner) && is_here(session, catalog, namespace)
    };
    let tables = catalog.tables.values().map(|table| (table.id, &table.owner, table.namespace));
    let views = catalog.views.values().map(|view| (view.id, &view.owner, view.namespace));
    let sequences = catalog.sequences.values().map(|it| (it.id, &it.owner, it.namespace));
    let theirs = tables.chain(views).chain(sequences).filter(|(_, owner, namespace)| is_theirs(owner, *namespace));
    let mut found: Vec<ObjectId> = theirs.map(|(id, ..)| id).collect();
    found.sort_unstable();
    found
}

pub(crate) async fn drop_all(session: &mut Session, names: &[String], cascade: bool) -> Result<()> {
    let asked = |session: &mut Session, catalog: &Arc<Catalog>| dropped(session, catalog, names);
    drop::apply_asked(session, Some(cascade), asked).await
}

/// What DROP OWNED takes away.
fn dropped(session: &mut Session, catalog: &Arc<Catalog>, names: &[String]) -> Result<drop::Asked> {
    let roles = roles(session, catalog, names, "drop")?;
    let is_owner = |owner: &str| roles.iter().any(|(_, name)| name == owner);
    let mut edits = Vec::new();
    let mut gone = Vec::new();
    for view in catalog.views.values().filter(|view| is_owner(&view.owner) && is_here(session, catalog, view.namespace))
    {
        gone.push(view.id);
        edits.push(CatalogEdit::DropView(view.id));
    }
    for table in catalog.tables.values() {
        if is_owner(&table.owner) && is_here(session, catalog, table.namespace) {
            gone.push(table.id);
            edits.extend(catalog.sequences_of(table.id).map(|sequence| CatalogEdit::DropSequence(sequence.id)));
            edits.push(CatalogEdit::DropTable(table.id));
        }
    }
    for sequence in catalog.sequences.values() {
        let goes_along = sequence.owned_by.is_some_and(|owner| gone.contains(&owner.table));
        if is_owner(&sequence.owner) && !goes_along && is_here(session, catalog, sequence.namespace) {
            gone.push(sequence.id);
            edits.push(CatalogEdit::DropSequence(sequence.id));
        }
    }
    for def in catalog.types.values().filter(|def| is_owner(&def.owner) && is_here(session, catalog, def.namespace)) {
        gone.push(def.id);
        edits.push(CatalogEdit::DropType(def.id));
    }
    for schema in catalog.namespaces.values() {
        if is_owner(&schema.owner) && schema.database == session.database.id {
            refuse_filled(catalog, schema, &gone)?;
            gone.push(schema.id);
            edits.push(CatalogEdit::DropNamespace(schema.id));
        }
    }
    let ids: Vec<ObjectId> = roles.iter().map(|(id, _)| *id).collect();
    let mut notices = Vec::new();
    for edit in revoked(catalog, session.database.id, &ids, &gone)? {
        match &edit {
            // What a role was granted, only its grantor's kind takes away.
            CatalogEdit::SetAcl { key, .. } if !may_revoke(session, catalog, *key) => {
                let name = super::allowed::name_of(catalog, key.object).unwrap_or_default();
                let warning = format!("no privileges could be revoked for \"{name}\"");
                notices.push(SqlError::notice(crate::error::Severity::Warning, "01006", warning));
            }
            _ => edits.push(edit),
        }
    }
    let names: Vec<&str> = roles.iter().map(|(_, name)| name.as_str()).collect();
    let what = format!("drop objects owned by role {}", names.join(", "));
    let first = relations_of(session, catalog, &roles);
    Ok(drop::Asked { edits, first, what, notices, ..drop::Asked::default() })
}

/// 2BP01 for a schema with objects of others.
fn refuse_filled(catalog: &Catalog, schema: &Namespace, gone: &[ObjectId]) -> Result<()> {
    let tables = catalog.tables.values().map(|it| (it.namespace, it.id, &it.name));
    let views = catalog.views.values().map(|it| (it.namespace, it.id, &it.name));
    let types = catalog.types.values().map(|it| (it.namespace, it.id, &it.name));
    // Those that go with a column's table are not told.
    let alone = |it: &&Arc<SequenceDef>| it.owned_by.is_none_or(|owner| !gone.contains(&owner.table));
    let sequences = catalog.sequences.values().filter(alone).map(|it| (it.namespace, it.id, &it.name));
    let mut all = tables.chain(views).chain(types).chain(sequences);
    match all.find(|(namespace, id, _)| *namespace == schema.id && !gone.contains(id)) {
        None => Ok(()),
        Some((_, _, name)) => {
            let message = "cannot drop desired object(s) because other objects depend on them";
            Err(SqlError::new("2BP01", message)
                .with_detail(format!("{name} depends on schema {}", schema.name))
                .with_hint("Drop or move what others have in the schema first."))
        }
    }
}

fn may_revoke(session: &Session, catalog: &Catalog, key: AclKey) -> bool {
    let Some(owner) = catalog.owner_of(key.object) else { return true };
    session.superuser || catalog.privileges(&session.user, key, owner).1 != 0
}

/// Privileges in a database, and on what all share, without what some roles were granted; and the defaults there.
fn revoked(catalog: &Catalog, database: ObjectId, roles: &[ObjectId], gone: &[ObjectId]) -> Result<Vec<CatalogEdit>> {
    let is_of = |item: &AclItem| item.grantee.is_some_and(|grantee| roles.contains(&grantee));
    // What they granted on goes along.
    let kept = |items: &[AclItem], owner: Option<ObjectId>| {
        let mut kept = items.to_vec();
        for item in items.iter().filter(|item| is_of(item)) {
            let all = item.privileges | item.grantable;
            super::privilege::revoke(&mut kept, (item.grantee, item.grantor), all, false, true, owner)?;
        }
        kept.retain(|item| item.privileges != 0);
        Ok::<_, SqlError>(kept)
    };
    let mut edits = Vec::new();
    for (key, items) in catalog.acls.objects() {
        let key: AclKey = *key;
        let is_elsewhere = || catalog.database_of(key.object).is_some_and(|of| of != database);
        if items.iter().any(is_of) && !gone.contains(&key.object) && !is_elsewhere() {
            let owner = catalog.owner_of(key.object).and_then(|owner| catalog.role_named(owner));
            edits.push(CatalogEdit::SetAcl { key, items: Some(kept(items, owner.map(|owner| owner.id))?) });
        }
    }
    for (key, items) in catalog.acls.defaults().filter(|(key, _)| key.database == database) {
        let key: DefaultKey = *key;
        if roles.contains(&key.role) {
            edits.push(CatalogEdit::SetDefaultAcl { key, items: None });
        } else if items.iter().any(is_of) {
            edits.push(CatalogEdit::SetDefaultAcl { key, items: key.entry(kept(items, Some(key.role))?) });
        }
    }
    Ok(edits)
}

pub(crate) async fn reassign(session: &mut Session, names: &[String], to: &str) -> Result<()> {
    let catalog = session.txn()?.catalog();
    resolve::new_owner(session, &catalog, to, None)?;
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let roles = roles(session, catalog, names, "reassign")?;
        let wanted = relations_of(session, catalog, &roles);
        Ok(((catalog.clone(), roles), wanted))
    };
    let (catalog, roles) = session.lock_planned(TableLock::AccessExclusive, plan).await?;
    let owner = resolve::new_owner(session, &catalog, to, None)?;
    let is_owner = |owner: &str| roles.iter().any(|(_, name)| name == owner);
    let here = |namespace| is_here(session, &catalog, namespace);
    let mut edits = Vec::new();
    for table in catalog.tables.values().filter(|table| is_owner(&table.owner) && here(table.namespace)) {
        edits.push(CatalogEdit::PutTable(Arc::new(TableDef { owner: owner.clone(), ..TableDef::clone(table) })));
    }
    for view in catalog.views.values().filter(|view| is_owner(&view.owner) && here(view.namespace)) {
        edits.push(CatalogEdit::PutView(ViewDef { owner: owner.clone(), ..ViewDef::clone(view) }));
    }
    for it in catalog.sequences.values().filter(|it| is_owner(&it.owner) && here(it.namespace)) {
        edits.push(CatalogEdit::PutSequence(SequenceDef { owner: owner.clone(), ..SequenceDef::clone(it) }));
    }
    for def in catalog.types.values().filter(|def| is_owner(&def.owner) && here(def.namespace)) {
        edits.push(CatalogEdit::PutType(Arc::new(TypeDef { owner: owner.clone(), ..TypeDef::clone(def) })));
    }
    for schema in catalog.namespaces.values().filter(|schema| is_owner(&schema.owner) && here(schema.id)) {
        session.require_on_database(&catalog, basalt_engine::privilege::CREATE, "permission denied for database {}")?;
        edits.push(CatalogEdit::PutNamespace(Namespace { owner: owner.clone(), ..Namespace::clone(schema) }));
    }
    // What all databases share.
    for database in catalog.databases.values().filter(|database| is_owner(&database.owner)) {
        edits.push(CatalogEdit::PutDatabase(Database { owner: owner.clone(), ..Database::clone(database) }));
    }
    if edits.is_empty() {
        return Ok(());
    }
    Ok(session.txn()?.edit_catalog(edits)?)
}
