//! Whether a statement is allowed what it needs (PostgreSQL manual 5.7). Every way to a relation's rows comes by here:
//! `session::dispatch` for all that is bound to a plan, COPY, TRUNCATE and LOCK by themselves. A prepared statement is
//! bound anew when the catalog or a setting (so also the role) has changed since, and so it is checked anew; what was
//! checked under the same catalog stays allowed.

use super::resolve::Relation;
use crate::bind::{Need, Needs};
use crate::error::{Result, SqlError};
use crate::session::Session;
use basalt_engine::privilege::{self, AclKey, ObjectClass, Privileges};
use basalt_engine::{Catalog, Namespace};
use basalt_types::ObjectId;

/// A relation as its privileges see it.
struct Known {
    name: String,
    owner: String,
    class: ObjectClass,
    kind: &'static str,
}

fn known(catalog: &Catalog, id: ObjectId) -> Option<Known> {
    if let Some(table) = catalog.tables.get(&id) {
        let (name, owner) = (table.name.clone(), table.owner.clone());
        return Some(Known { name, owner, class: ObjectClass::Table, kind: table.kind_word() });
    }
    if let Some(view) = catalog.views.get(&id) {
        let (name, owner) = (view.name.clone(), view.owner.clone());
        return Some(Known { name, owner, class: ObjectClass::Table, kind: "view" });
    }
    let sequence = catalog.sequences.get(&id)?;
    let (name, owner) = (sequence.name.clone(), sequence.owner.clone());
    Some(Known { name, owner, class: ObjectClass::Sequence, kind: "sequence" })
}

/// The name of an object that may have privileges.
pub(crate) fn name_of(catalog: &Catalog, id: ObjectId) -> Option<String> {
    let of_schema = || catalog.namespaces.get(&id).map(|schema| schema.name.clone());
    let of_database = || catalog.databases.get(&id).map(|database| database.name.clone());
    let of_type = || catalog.types.get(&id).map(|def| def.name.clone());
    known(catalog, id).map(|known| known.name).or_else(of_schema).or_else(of_database).or_else(of_type)
}

#[cold]
fn denied(kind: &str, name: &str) -> SqlError {
    SqlError::new("42501", format!("permission denied for {kind} {name}"))
}

/// 42501 for the first relation that is not allowed.
pub(crate) fn check(catalog: &Catalog, user: &str, needs: &Needs) -> Result<()> {
    let mut list: Vec<&Need> = needs.list.iter().collect();
    list.sort_by_key(|need| need.level);
    for need in list {
        let role = need.acting.as_deref().unwrap_or(user);
        let Some(relation) = known(catalog, need.relation) else { continue };
        let key = AclKey::of(relation.class, need.relation);
        let read = need.columns_read(&needs.used);
        let mut wanted = need.wanted;
        // Through a view the table is read if the view is.
        let named = need.target.and_then(|target| needs.list.iter().rev().find(|need| need.target == Some(target)));
        if named.is_some_and(|named| !named.columns_read(&needs.used).is_empty()) {
            wanted |= privilege::SELECT;
        }
        let missing = wanted & !catalog.privileges(role, key, &relation.owner).0;
        if missing != 0 && !columns_allow(catalog, role, need, &relation, missing, &read) {
            return Err(denied(relation.kind, &relation.name));
        }
    }
    Ok(())
}

/// Whether privileges on columns make up for those that are missing on the relation.
fn columns_allow(
    catalog: &Catalog,
    role: &str,
    need: &Need,
    relation: &Known,
    missing: Privileges,
    read: &[i16],
) -> bool {
    if missing & !ObjectClass::Column.all() != 0 || relation.class != ObjectClass::Table {
        return false;
    }
    let has = |column: i16, wanted: Privileges| {
        let key = AclKey { class: ObjectClass::Column, object: need.relation, column };
        catalog.acls.get(key).is_some() && catalog.privileges(role, key, &relation.owner).0 & wanted == wanted
    };
    let any = |wanted| catalog.acls.columns_of(need.relation).any(|(column, _)| has(column, wanted));
    let all = |columns: &[i16], wanted| match columns.is_empty() {
        true => any(wanted),
        false => columns.iter().all(|column| has(*column, wanted)),
    };
    let written = |by: Privileges| -> Vec<i16> {
        need.written.iter().filter(|(kind, _)| *kind == by).map(|(_, column)| *column).collect()
    };
    (missing & privilege::SELECT == 0 || all(read, privilege::SELECT))
        && (missing & privilege::INSERT == 0 || all(&written(privilege::INSERT), privilege::INSERT))
        && (missing & privilege::UPDATE == 0 || all(&written(privilege::UPDATE), privilege::UPDATE))
        && missing & privilege::REFERENCES == 0
}

impl Session {
    /// 42501 unless the user has one of these privileges on a relation, or all of them on each of the columns.
    pub(crate) fn require_on(&self, id: ObjectId, one_of: Privileges, columns: &[i16]) -> Result<()> {
        if self.superuser {
            return Ok(());
        }
        let catalog = self.catalog_now();
        let Some(relation) = known(&catalog, id) else { return Ok(()) };
        let has = catalog.privileges(&self.user, AclKey::of(relation.class, id), &relation.owner).0;
        let of_column = |column: &i16| {
            let key = AclKey { class: ObjectClass::Column, object: id, column: *column };
            catalog.acls.get(key).is_some() && catalog.privileges(&self.user, key, &relation.owner).0 & one_of != 0
        };
        match has & one_of != 0 || (!columns.is_empty() && columns.iter().all(of_column)) {
            true => Ok(()),
            false => Err(denied(relation.kind, &relation.name)),
        }
    }

    /// 42501 unless the user may make objects in a schema.
    pub(crate) fn require_create(&self, catalog: &Catalog, schema: &Namespace) -> Result<()> {
        match self.may(catalog, AclKey::of(ObjectClass::Schema, schema.id), &schema.owner, privilege::CREATE) {
            true => Ok(()),
            false => Err(denied("schema", &schema.name)),
        }
    }

    /// Whether names in a schema are found.
    pub(crate) fn may_use(&self, catalog: &Catalog, schema: &Namespace) -> bool {
        self.may(catalog, AclKey::of(ObjectClass::Schema, schema.id), &schema.owner, privilege::USAGE)
    }

    /// 42501 without a privilege on the session's database.
    pub(crate) fn require_on_database(&self, catalog: &Catalog, wanted: Privileges, message: &str) -> Result<()> {
        let Some(database) = catalog.databases.get(&self.database.id) else { return Ok(()) };
        match self.may(catalog, AclKey::of(ObjectClass::Database, database.id), &database.owner, wanted) {
            true => Ok(()),
            false => Err(SqlError::new("42501", message.replace("{}", &database.name))),
        }
    }

    fn may(&self, catalog: &Catalog, key: AclKey, owner: &str, wanted: Privileges) -> bool {
        self.superuser || catalog.privileges(&self.user, key, owner).0 & wanted != 0
    }

    /// 42501 unless the user has one of these privileges on a relation that LOCK or TRUNCATE names.
    pub(crate) fn require_relation(&self, relation: &Relation, one_of: Privileges) -> Result<()> {
        let id = match relation {
            Relation::Table(table) => table.id,
            Relation::View(view) => view.id,
            Relation::Sequence(sequence) => sequence.id,
        };
        self.require_on(id, one_of, &[])
    }
}
