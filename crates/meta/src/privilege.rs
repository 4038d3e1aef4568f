//! Privileges on objects (PostgreSQL manual 5.7): who may do what with a relation, a column, a schema, a database or a
//! type, beside owners and superusers.
//!
//! An object without an entry has the privileges that it began with: all for its owner, and for everybody what
//! [`default_acl`] says. The first GRANT or REVOKE writes them down.

use crate::catalog::Catalog;
use basalt_types::ObjectId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A set of privileges, one bit each.
pub type Privileges = u32;

pub const INSERT: Privileges = 1;
pub const SELECT: Privileges = 1 << 1;
pub const UPDATE: Privileges = 1 << 2;
pub const DELETE: Privileges = 1 << 3;
pub const TRUNCATE: Privileges = 1 << 4;
pub const REFERENCES: Privileges = 1 << 5;
pub const TRIGGER: Privileges = 1 << 6;
pub const EXECUTE: Privileges = 1 << 7;
pub const USAGE: Privileges = 1 << 8;
pub const CREATE: Privileges = 1 << 9;
pub const TEMPORARY: Privileges = 1 << 10;
pub const CONNECT: Privileges = 1 << 11;

/// Letters of `aclitem`, in its order, and names.
pub const NAMES: [(Privileges, char, &str); 12] = [
    (INSERT, 'a', "INSERT"),
    (SELECT, 'r', "SELECT"),
    (UPDATE, 'w', "UPDATE"),
    (DELETE, 'd', "DELETE"),
    (TRUNCATE, 'D', "TRUNCATE"),
    (REFERENCES, 'x', "REFERENCES"),
    (TRIGGER, 't', "TRIGGER"),
    (EXECUTE, 'X', "EXECUTE"),
    (USAGE, 'U', "USAGE"),
    (CREATE, 'C', "CREATE"),
    (TEMPORARY, 'T', "TEMPORARY"),
    (CONNECT, 'c', "CONNECT"),
];

/// The name of the first of some privileges.
pub fn name_of(privileges: Privileges) -> &'static str {
    NAMES.iter().find(|(bit, ..)| privileges & bit != 0).map_or("", |(_, _, name)| name)
}

/// What privileges are on. The names are those of errors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum ObjectClass {
    /// Tables and views.
    Table,
    Sequence,
    Column,
    Schema,
    Database,
    Type,
    Function,
}

impl ObjectClass {
    pub fn all(self) -> Privileges {
        match self {
            ObjectClass::Table => INSERT | SELECT | UPDATE | DELETE | TRUNCATE | REFERENCES | TRIGGER,
            ObjectClass::Column => INSERT | SELECT | UPDATE | REFERENCES,
            ObjectClass::Sequence => USAGE | SELECT | UPDATE,
            ObjectClass::Schema => USAGE | CREATE,
            ObjectClass::Database => CREATE | TEMPORARY | CONNECT,
            ObjectClass::Type => USAGE,
            ObjectClass::Function => EXECUTE,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ObjectClass::Table => "table",
            ObjectClass::Column => "column",
            ObjectClass::Sequence => "sequence",
            ObjectClass::Schema => "schema",
            ObjectClass::Database => "database",
            ObjectClass::Type => "type",
            ObjectClass::Function => "function",
        }
    }

    /// What everybody may do before anything is granted.
    pub fn for_public(self) -> Privileges {
        match self {
            ObjectClass::Database => TEMPORARY | CONNECT,
            ObjectClass::Type => USAGE,
            ObjectClass::Function => EXECUTE,
            _ => 0,
        }
    }
}

/// An object, or one column of a table or view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct AclKey {
    pub class: ObjectClass,
    pub object: ObjectId,
    /// A column's number; otherwise 0.
    pub column: i16,
}

impl AclKey {
    pub fn of(class: ObjectClass, object: ObjectId) -> AclKey {
        AclKey { class, object, column: 0 }
    }
}

/// What one role was granted by another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AclItem {
    /// `None`: everybody (PUBLIC).
    pub grantee: Option<ObjectId>,
    pub grantor: ObjectId,
    pub privileges: Privileges,
    /// Those among them that the grantee may grant.
    pub grantable: Privileges,
}

/// What objects that a role makes in a database begin with, in one schema or (`None`) in all: ALTER DEFAULT PRIVILEGES.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct DefaultKey {
    #[serde(default = "any_database")]
    pub database: ObjectId,
    pub role: ObjectId,
    pub schema: Option<ObjectId>,
    pub class: ObjectClass,
}

/// Of keys that programs wrote which knew of no database: what the catalog that reads them replaces.
pub(crate) const ANY_DATABASE: ObjectId = ObjectId(0);

fn any_database() -> ObjectId {
    ANY_DATABASE
}

impl DefaultKey {
    /// What stands there before anything is granted or revoked.
    pub fn begins(self) -> Vec<AclItem> {
        match self.schema {
            Some(_) => Vec::new(),
            None => default_acl(self.class, self.role, false),
        }
    }

    /// The items of an entry; `None` where they are what it began with, so that none is needed.
    pub fn entry(self, items: Vec<AclItem>) -> Option<Vec<AclItem>> {
        let begins = self.begins();
        let same = items.len() == begins.len() && begins.iter().all(|item| items.contains(item));
        (!same).then_some(items)
    }
}

/// Kept as lists: JSON maps have texts as keys.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Lists", into = "Lists")]
pub struct Acls {
    objects: BTreeMap<AclKey, Vec<AclItem>>,
    defaults: BTreeMap<DefaultKey, Vec<AclItem>>,
}

#[derive(Serialize, Deserialize)]
struct Lists {
    objects: Vec<(AclKey, Vec<AclItem>)>,
    #[serde(default)]
    defaults: Vec<(DefaultKey, Vec<AclItem>)>,
}

impl From<Lists> for Acls {
    fn from(lists: Lists) -> Acls {
        Acls { objects: lists.objects.into_iter().collect(), defaults: lists.defaults.into_iter().collect() }
    }
}

impl From<Acls> for Lists {
    fn from(acls: Acls) -> Lists {
        Lists { objects: acls.objects.into_iter().collect(), defaults: acls.defaults.into_iter().collect() }
    }
}

impl Acls {
    pub fn get(&self, key: AclKey) -> Option<&Vec<AclItem>> {
        self.objects.get(&key)
    }

    pub fn set(&mut self, key: AclKey, items: Option<Vec<AclItem>>) {
        match items {
            Some(items) => self.objects.insert(key, items),
            None => self.objects.remove(&key),
        };
    }

    /// Columns of a relation that have entries, with them.
    pub fn columns_of(&self, relation: ObjectId) -> impl Iterator<Item = (i16, &Vec<AclItem>)> {
        let first = AclKey { class: ObjectClass::Column, object: relation, column: i16::MIN };
        let last = AclKey { column: i16::MAX, ..first };
        self.objects.range(first..=last).map(|(key, items)| (key.column, items))
    }

    pub fn objects(&self) -> impl Iterator<Item = (&AclKey, &Vec<AclItem>)> {
        self.objects.iter()
    }

    pub fn defaults(&self) -> impl Iterator<Item = (&DefaultKey, &Vec<AclItem>)> {
        self.defaults.iter()
    }

    pub fn default_of(&self, key: DefaultKey) -> Option<&Vec<AclItem>> {
        self.defaults.get(&key)
    }

    pub fn set_default(&mut self, key: DefaultKey, items: Option<Vec<AclItem>>) {
        match items {
            Some(items) => self.defaults.insert(key, items),
            None => self.defaults.remove(&key),
        };
    }

    /// The object is gone.
    pub fn forget(&mut self, object: ObjectId) {
        self.objects.retain(|key, _| key.object != object);
        self.defaults.retain(|key, _| key.schema != Some(object) && key.database != object);
    }

    pub fn knows(&self, object: ObjectId) -> bool {
        self.objects.keys().any(|key| key.object == object)
            || self.defaults.keys().any(|key| key.schema == Some(object) || key.database == object)
    }

    /// What was granted to a role or by it: the kind of object and the object; `None` of default privileges.
    pub fn mentions(&self, role: ObjectId) -> Option<(ObjectClass, Option<ObjectId>)> {
        let is_of = |item: &AclItem| item.grantee == Some(role) || item.grantor == role;
        let object = self.objects.iter().find(|(_, items)| items.iter().any(is_of));
        let by_default = || {
            let found = self.defaults.iter().find(|(key, items)| key.role == role || items.iter().any(is_of));
            found.map(|(key, _)| (key.class, None))
        };
        object.map(|(key, _)| (key.class, Some(key.object))).or_else(by_default)
    }

    /// An object has another owner, who takes the place of the one before.
    pub fn change_owner(&mut self, object: ObjectId, from: ObjectId, to: ObjectId) {
        for (_, items) in self.objects.iter_mut().filter(|(key, _)| key.object == object) {
            for item in items.iter_mut() {
                if item.grantor == from {
                    item.grantor = to;
                }
                if item.grantee == Some(from) {
                    item.grantee = Some(to);
                }
            }
            let mut merged: Vec<AclItem> = Vec::with_capacity(items.len());
            for item in items.drain(..) {
                match merged.iter_mut().find(|known| (known.grantee, known.grantor) == (item.grantee, item.grantor)) {
                    Some(known) => {
                        known.privileges |= item.privileges;
                        known.grantable |= item.grantable;
                    }
                    None => merged.push(item),
                }
            }
            *items = merged;
        }
    }
}

/// What an object of this class begins with.
pub fn default_acl(class: ObjectClass, owner: ObjectId, is_public_schema: bool) -> Vec<AclItem> {
    let mut items = Vec::new();
    let public = if is_public_schema { USAGE } else { class.for_public() };
    if public != 0 {
        items.push(AclItem { grantee: None, grantor: owner, privileges: public, grantable: 0 });
    }
    if class != ObjectClass::Column {
        items.push(AclItem { grantee: Some(owner), grantor: owner, privileges: class.all(), grantable: 0 });
    }
    items
}

impl Catalog {
    /// Roles whose privileges a role has: itself, and those that it is in, as far as roles on the way inherit.
    pub fn acts_as(&self, role: ObjectId) -> Vec<ObjectId> {
        let (mut known, mut at) = (vec![role], 0);
        while let Some(id) = known.get(at).copied() {
            at += 1;
            let Some(role) = self.roles.get(&id).filter(|role| role.inherit) else { continue };
            let more = role.member_of.iter().map(|member| member.role);
            let more: Vec<ObjectId> = more.filter(|id| !known.contains(id)).collect();
            known.extend(more);
        }
        known
    }

    /// The entries of an object, those that it began with if nobody changed them.
    pub fn acl(&self, key: AclKey, owner: &str) -> Vec<AclItem> {
        if let Some(items) = self.acls.get(key) {
            return items.clone();
        }
        let owner = self.role_named(owner).map_or(crate::catalog::SUPERUSER, |role| role.id);
        let is_open = |schema: &&std::sync::Arc<crate::catalog::Namespace>| {
            ["public", "pg_catalog", "information_schema", "basalt"].contains(&schema.name.as_str())
        };
        let is_public = key.class == ObjectClass::Schema && self.namespaces.get(&key.object).filter(is_open).is_some();
        default_acl(key.class, owner, is_public)
    }

    /// Which privileges a role has on an object, and which of them it may grant. A name that is no role's has what
    /// everybody has.
    pub fn privileges(&self, role: &str, key: AclKey, owner: &str) -> (Privileges, Privileges) {
        let all = key.class.all();
        let roles = match self.role_named(role) {
            Some(role) if role.superuser => return (all, all),
            Some(role) => self.acts_as(role.id),
            None => Vec::new(),
        };
        let (mut has, mut may_grant) = (0, 0);
        for item in self.acl(key, owner) {
            if item.grantee.is_none_or(|grantee| roles.contains(&grantee)) {
                has |= item.privileges;
                may_grant |= item.grantable;
            }
        }
        if self.role_named(owner).is_some_and(|owner| roles.contains(&owner.id)) {
            may_grant |= all;
        }
        (has, may_grant)
    }
}

#[cfg(test)]
mod tests;
