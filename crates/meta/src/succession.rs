//! How a transaction's edits become the next committed catalog: only if they were made from definitions as they still
//! are.
//!
//! An edit carries a whole definition, made from one that its statement has read. If another transaction has committed
//! a definition of the same object since, this one would undo that, and where the other had given a table new tablets
//! (TRUNCATE), would take their rows away. Locks keep most such transactions apart; what they do not cover is refused here.
//!
//! Edits that carry no definition do not say over what they were made: [`Catalog::over`] tells that when they are made, and
//! [`Catalog::check_over`] compares at commit. Relations that go are not among them: whoever drops one has its lock.

use crate::privilege::AclItem;
use crate::{Catalog, CatalogEdit, Database, Error, Namespace, Result, Role};
use basalt_types::{ObjectId, Revision, TableDef};
use std::collections::HashSet;
use std::sync::Arc;

/// A definition: what it is of, and what has to be there for it to be.
struct Definition<'a> {
    id: ObjectId,
    what: &'static str,
    name: &'a str,
    /// Roles have none; nor has what nobody has to be asked for.
    owner: Option<&'a str>,
    namespace: Option<ObjectId>,
    revision: Revision,
}

/// What an edit without a definition was made over.
#[derive(Clone, Debug)]
pub struct Over {
    /// Of the object; `None` where it is not there, and of what has no revision.
    revision: Option<Revision>,
    /// Whether the object is there.
    exists: bool,
    /// The object's owner, whose own privileges are in the list.
    owner: Option<ObjectId>,
    /// The privileges in whose place others are put.
    items: Option<Vec<AclItem>>,
}

impl Over {
    fn is(&self, other: &Over) -> bool {
        let same_state = match (self.revision, other.revision) {
            (Some(one), Some(other)) => one.is(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        same_state && self.exists == other.exists && self.owner == other.owner && self.items == other.items
    }
}

macro_rules! definition {
    ($what:literal, $def:ident) => {
        Definition {
            owner: Some($def.owner.as_str()).filter(|owner| !owner.is_empty()),
            ..definition!($what, $def, unowned)
        }
    };
    ($what:literal, $def:ident, placed) => {
        Definition { namespace: Some($def.namespace), ..definition!($what, $def) }
    };
    ($what:literal, $def:ident, unowned) => {
        Definition { id: $def.id, what: $what, name: &$def.name, owner: None, namespace: None, revision: $def.revision }
    };
}

impl Catalog {
    /// The next committed catalog. Fails if an edit was made from another definition than that which is committed, or
    /// needs what is no longer there.
    pub fn succeed(&self, edits: &[CatalogEdit]) -> Result<Catalog> {
        self.check_current(edits)?;
        let mut next = self.edited(edits)?;
        next.revise(self);
        next.finish()?;
        next.check_belonging(self, edits)?;
        next.check_grants(self, edits)?;
        next.check_unique(self, edits)?;
        next.check_key_names(self, edits)?;
        Ok(next)
    }

    /// Fails if an edit puts a definition that was not made from the committed one.
    pub fn check_current(&self, edits: &[CatalogEdit]) -> Result<()> {
        for edit in edits {
            let Some((put, committed)) = self.put_by(edit) else { continue };
            let is_current = match committed {
                Some(committed) => put.revision.is(committed.revision),
                None => put.revision.is_new(),
            };
            if !is_current {
                return Err(Error::Changed { what: put.what, name: put.name.to_string() });
            }
        }
        Ok(())
    }

    /// What an edit without a definition is made over, if that has to be the same at commit.
    pub fn over(&self, edit: &CatalogEdit) -> Option<Over> {
        macro_rules! dropped {
            ($map:ident, $id:expr) => {{
                let revision = self.$map.get($id).map(|def| def.revision);
                Some(Over { revision, exists: revision.is_some(), owner: None, items: None })
            }};
        }
        // A change of the object itself is no matter to what is said of it.
        let said = |exists: bool, owner: Option<ObjectId>, items: Option<&Vec<AclItem>>| {
            Some(Over { revision: None, exists, owner, items: items.cloned() })
        };
        match edit {
            CatalogEdit::DropDatabase(id) => dropped!(databases, id),
            CatalogEdit::DropNamespace(id) => dropped!(namespaces, id),
            CatalogEdit::DropRole(id) => dropped!(roles, id),
            CatalogEdit::DropType(id) => dropped!(types, id),
            CatalogEdit::SetAcl { key, .. } => {
                said(self.has_object(key.object), self.owning_role(key.object), self.acls.get(*key))
            }
            CatalogEdit::SetDefaultAcl { key, .. } => {
                let exists = self.roles.contains_key(&key.role)
                    && key.schema.is_none_or(|schema| self.namespaces.contains_key(&schema));
                said(exists, None, self.acls.default_of(*key))
            }
            CatalogEdit::SetComment { key, .. } => said(self.has_object(key.object), None, None),
            _ => None,
        }
    }

    /// Fails if an edit was made over something else than what is committed; `over` has what each was made over.
    pub fn check_over(&self, edits: &[CatalogEdit], over: &[Option<Over>]) -> Result<()> {
        let is_over = |edit: &CatalogEdit, over: &Over| self.over(edit).is_some_and(|now| now.is(over));
        match edits.iter().zip(over).find(|(edit, over)| over.as_ref().is_some_and(|over| !is_over(edit, over))) {
            None => Ok(()),
            Some((edit, _)) => {
                let (what, id) = match edit {
                    CatalogEdit::DropDatabase(id) => ("database", *id),
                    CatalogEdit::DropNamespace(id) => ("schema", *id),
                    CatalogEdit::DropRole(id) => ("role", *id),
                    CatalogEdit::DropType(id) => ("type", *id),
                    CatalogEdit::SetAcl { key, .. } => (key.class.name(), key.object),
                    CatalogEdit::SetDefaultAcl { key, .. } => ("default privileges of role", key.role),
                    CatalogEdit::SetComment { key, .. } => ("object", key.object),
                    _ => ("object", ObjectId(0)),
                };
                Err(Error::Changed { what, name: self.object_name(id).unwrap_or_else(|| id.to_string()) })
            }
        }
    }

    fn object_name(&self, id: ObjectId) -> Option<String> {
        macro_rules! named {
            ($($map:ident)*) => { None$(.or_else(|| self.$map.get(&id).map(|def| def.name.clone())))* };
        }
        named!(databases namespaces tables views types sequences roles)
    }

    /// The name of the role that owns an object.
    pub fn owner_of(&self, id: ObjectId) -> Option<&str> {
        macro_rules! owner {
            ($($map:ident)*) => { None$(.or_else(|| self.$map.get(&id).map(|def| def.owner.as_str())))* };
        }
        owner!(databases namespaces tables views types sequences)
    }

    /// The database of an object; `None` of databases, and of what all of them share.
    pub fn database_of(&self, id: ObjectId) -> Option<ObjectId> {
        macro_rules! namespace {
            ($($map:ident)*) => { None$(.or_else(|| self.$map.get(&id).map(|def| def.namespace)))* };
        }
        let namespace = namespace!(tables views types sequences).unwrap_or(id);
        self.namespaces.get(&namespace).map(|schema| schema.database)
    }

    fn owning_role(&self, id: ObjectId) -> Option<ObjectId> {
        Some(self.role_named(self.owner_of(id)?)?.id)
    }

    /// Whether an object is there, or a part of a table that comments can be on.
    fn has_object(&self, id: ObjectId) -> bool {
        self.object_name(id).is_some()
            || self.tables.values().any(|table| crate::catalog::parts(table).any(|part| part == id))
            || self.types.values().any(|def| def.checks().any(|check| check == id))
    }

    /// What an edit puts, and what is there in its place.
    fn put_by<'a>(&'a self, edit: &'a CatalogEdit) -> Option<(Definition<'a>, Option<Definition<'a>>)> {
        macro_rules! put {
            ($what:literal, $def:ident in $map:ident $(, $how:ident)?) => {
                (
                    definition!($what, $def $(, $how)?),
                    self.$map.get(&$def.id).map(|before| definition!($what, before $(, $how)?)),
                )
            };
        }
        Some(match edit {
            CatalogEdit::PutDatabase(def) => put!("database", def in databases),
            CatalogEdit::PutNamespace(def) => put!("schema", def in namespaces),
            CatalogEdit::PutTable(def) => put!("table", def in tables, placed),
            CatalogEdit::PutView(def) => put!("view", def in views, placed),
            CatalogEdit::PutType(def) => put!("type", def in types, placed),
            CatalogEdit::PutSequence(def) => put!("sequence", def in sequences, placed),
            CatalogEdit::PutRole(def) => put!("role", def in roles, unowned),
            _ => return None,
        })
    }

    /// Fails if something was put whose owner or schema has gone meanwhile, or if these edits take away the owner or
    /// schema of what came meanwhile. What was so before is not to blame on them.
    fn check_belonging(&self, before: &Catalog, edits: &[CatalogEdit]) -> Result<()> {
        let drops = |edit: &CatalogEdit| matches!(edit, CatalogEdit::DropNamespace(_) | CatalogEdit::DropRole(_));
        let left = match edits.iter().any(drops) {
            true => {
                let known: HashSet<ObjectId> = before.orphans().map(|(def, _)| def.id).collect();
                self.orphans().find(|(def, _)| !known.contains(&def.id))
            }
            false => {
                let is_known = |def: &Definition| before.lacks(def).is_some();
                let put = edits.iter().filter_map(|edit| Some((self.put_by(edit)?.1?, before.put_by(edit)?.1)));
                let mut new = put.filter(|(_, was)| !was.as_ref().is_some_and(is_known));
                new.find_map(|(now, _)| Some((self.lacks(&now)?, now))).map(|(of, now)| (now, of))
            }
        };
        match left {
            Some((def, of)) => Err(Error::Orphan { what: def.what, name: def.name.to_string(), of }),
            None => Ok(()),
        }
    }

    /// Fails if privileges would be those of a role that is not there any more.
    fn check_grants(&self, before: &Catalog, edits: &[CatalogEdit]) -> Result<()> {
        let orphan = |name: &str| Error::Orphan { what: "grant to role", name: name.to_string(), of: "role" };
        for edit in edits {
            let items = match edit {
                CatalogEdit::SetAcl { items, .. } | CatalogEdit::SetDefaultAcl { items, .. } => items,
                CatalogEdit::PutRole(def) => {
                    let groups = |catalog: &Catalog| -> Vec<ObjectId> {
                        let role = catalog.roles.get(&def.id);
                        role.into_iter().flat_map(|role| &role.member_of).map(|group| group.role).collect()
                    };
                    let known = groups(before);
                    match groups(self).iter().find(|id| !self.roles.contains_key(id) && !known.contains(id)) {
                        Some(lost) => return Err(orphan(&lost.to_string())),
                        None => continue,
                    }
                }
                CatalogEdit::DropRole(id) if self.acls.mentions(*id).is_some() => {
                    return Err(orphan(before.roles.get(id).map_or("", |role| role.name.as_str())));
                }
                _ => continue,
            };
            let mut roles = items.iter().flatten().flat_map(|item| item.grantee.into_iter().chain([item.grantor]));
            let is_new = |id: &ObjectId| self.acls.mentions(*id).is_some() && before.acls.mentions(*id).is_none();
            let is_lost = |id: &ObjectId| !self.roles.contains_key(id) && is_new(id);
            if let Some(lost) = roles.find(is_lost) {
                return Err(orphan(&lost.to_string()));
            }
        }
        Ok(())
    }

    /// Fails if another transaction has given the name of a schema, a role or a database to another one meanwhile.
    /// (Relations and types: [`Catalog::apply`].)
    fn check_unique(&self, before: &Catalog, edits: &[CatalogEdit]) -> Result<()> {
        macro_rules! check {
            ($what:literal, $def:ident in $map:ident, $same:expr) => {{
                let Some(now) = self.$map.get(&$def.id) else { continue };
                let is_named = before.$map.get(&$def.id).is_none_or(|was| !$same(was, now));
                if is_named && self.$map.values().any(|other| other.id != now.id && $same(other, now)) {
                    return Err(Error::Exists { what: $what, name: now.name.clone() });
                }
            }};
        }
        for edit in edits {
            match edit {
                CatalogEdit::PutDatabase(def) => {
                    check!("database", def in databases, |one: &Database, other: &Database| one.name == other.name);
                }
                CatalogEdit::PutRole(def) => {
                    check!("role", def in roles, |one: &Role, other: &Role| one.name == other.name);
                }
                CatalogEdit::PutNamespace(def) => {
                    let same =
                        |one: &Namespace, other: &Namespace| one.name == other.name && one.database == other.database;
                    check!("schema", def in namespaces, same);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Fails if a new name of a relation is that of a primary key, or the other way round. What was so before is not to
    /// blame on these edits.
    fn check_key_names(&self, before: &Catalog, edits: &[CatalogEdit]) -> Result<()> {
        let names = |catalog: &Catalog, edit: &CatalogEdit| -> Vec<(ObjectId, String)> {
            let of_table = |id: &ObjectId| {
                let table = catalog.tables.get(id);
                let key = table.and_then(|table| table.primary_key.as_ref()).map(|key| &key.constraint_name);
                let indexes = table.iter().flat_map(|table| &table.indexes).map(|index| &index.name);
                let all = table.map(|table| &table.name).into_iter().chain(key).chain(indexes);
                all.map(|name| (table.map_or(*id, |table| table.namespace), name.clone())).collect()
            };
            match edit {
                CatalogEdit::PutTable(def) => of_table(&def.id),
                CatalogEdit::PutIndex { table, .. } => of_table(table),
                CatalogEdit::PutView(def) => {
                    catalog.views.get(&def.id).map(|def| (def.namespace, def.name.clone())).into_iter().collect()
                }
                CatalogEdit::PutSequence(def) => {
                    catalog.sequences.get(&def.id).map(|def| (def.namespace, def.name.clone())).into_iter().collect()
                }
                _ => Vec::new(),
            }
        };
        for edit in edits {
            let known = names(before, edit);
            for (namespace, name) in names(self, edit).into_iter().filter(|name| !known.contains(name)) {
                let is_key = |table: &&Arc<TableDef>| {
                    table.namespace == namespace
                        && table.primary_key.as_ref().is_some_and(|key| key.constraint_name == name)
                };
                let keys = self.tables.values().filter(is_key).count();
                if keys + usize::from(self.relation_named(namespace, &name).is_some()) > 1 {
                    return Err(Error::Exists { what: "relation", name });
                }
            }
        }
        Ok(())
    }

    /// What a definition needs and is not there.
    fn lacks(&self, def: &Definition) -> Option<&'static str> {
        let has_owner = def.owner.is_none_or(|owner| self.role_named(owner).is_some());
        self.lacks_beside(def, has_owner)
    }

    fn lacks_beside(&self, def: &Definition, has_owner: bool) -> Option<&'static str> {
        match def.namespace {
            Some(namespace) if !self.namespaces.contains_key(&namespace) => Some("schema"),
            _ => (!has_owner).then_some("owner"),
        }
    }

    /// Definitions without owner or schema.
    fn orphans(&self) -> impl Iterator<Item = (Definition<'_>, &'static str)> {
        let databases = self.databases.values().map(|def| definition!("database", def));
        let namespaces = self.namespaces.values().map(|def| definition!("schema", def));
        let tables = self.tables.values().map(|def| definition!("table", def, placed));
        let views = self.views.values().map(|def| definition!("view", def, placed));
        let types = self.types.values().map(|def| definition!("type", def, placed));
        let sequences = self.sequences.values().map(|def| definition!("sequence", def, placed));
        let all = databases.chain(namespaces).chain(tables).chain(views).chain(types).chain(sequences);
        let roles: HashSet<&str> = self.roles.values().map(|role| role.name.as_str()).collect();
        all.filter_map(move |def| {
            let has_owner = def.owner.is_none_or(|owner| roles.contains(owner));
            let of = self.lacks_beside(&def, has_owner)?;
            Some((def, of))
        })
    }

    /// Gives what these edits have changed its next revision.
    fn revise(&mut self, before: &Catalog) {
        macro_rules! revise {
            ($($map:ident)*) => {$(
                for (id, def) in &mut self.$map {
                    match before.$map.get(id) {
                        Some(was) if Arc::ptr_eq(was, def) => {}
                        was => Arc::make_mut(def).revision = was.map_or(Revision::NEW, |was| was.revision).next(),
                    }
                }
            )*};
        }
        revise!(databases namespaces tables views types sequences roles);
    }
}

#[cfg(test)]
mod tests;
