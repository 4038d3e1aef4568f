//! Privileges in catalogs: `aclitem`s as text, and `pg_default_acl`.

use super::relations::{self, Relation};
use super::rows::{Rows, oid, text, texts, yes_no};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use crate::session::names::quote_identifier;
use basalt_engine::Catalog;
use basalt_engine::catalog::Namespace;
use basalt_engine::privilege::{AclItem, AclKey, NAMES, ObjectClass, Privileges, SELECT, default_acl};
use basalt_types::{Datum, ObjectId};

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "pg_default_acl" => pg_default_acl,
        _ => return None,
    })
}

/// information_schema's views of grants.
pub(super) fn fill_of_information(name: &str) -> Option<Fill> {
    Some(match name {
        "table_privileges" => |system, rows| table_grants(system, rows, true),
        "role_table_grants" => |system, rows| table_grants(system, rows, false),
        "column_privileges" => |system, rows| column_grants(system, rows, true),
        "role_column_grants" => |system, rows| column_grants(system, rows, false),
        _ => return None,
    })
}

/// One privilege of one entry, by names.
pub(super) struct Grant {
    pub grantor: String,
    pub grantee: String,
    privilege: Privileges,
    name: &'static str,
    pub grantable: bool,
}

/// What the user may see of some entries: grants by or to roles that it is in, and with `public` those to everybody.
pub(super) fn grants(
    system: &SystemContext,
    items: &[AclItem],
    owner: &str,
    all: Privileges,
    public: bool,
) -> Vec<Grant> {
    let catalog = &system.catalog;
    let user = catalog.role_named(&system.user);
    let is_in = |id: ObjectId| user.is_some_and(|user| user.superuser || catalog.acts_as(user.id).contains(&id));
    let name = |id: ObjectId| catalog.roles.get(&id).map(|role| role.name.clone()).unwrap_or_default();
    let owner = catalog.role_named(owner).map(|owner| owner.id);
    let mut found = Vec::new();
    for item in items {
        let is_seen = is_in(item.grantor) || item.grantee.map_or(public, is_in);
        if !is_seen {
            continue;
        }
        for (privilege, _, privilege_name) in NAMES {
            if item.privileges & privilege & all == 0 {
                continue;
            }
            let of_owner =
                item.grantee.zip(owner).is_some_and(|(grantee, owner)| catalog.acts_as(grantee).contains(&owner));
            found.push(Grant {
                grantor: name(item.grantor),
                grantee: item.grantee.map_or("PUBLIC".to_string(), name),
                privilege,
                name: privilege_name,
                grantable: of_owner || item.grantable & privilege != 0,
            });
        }
    }
    found
}

fn owned<'a>(system: &'a SystemContext) -> impl Iterator<Item = (Relation<'a>, AclKey, String)> {
    relations::all(system).filter_map(|relation| {
        let owner = match &relation {
            Relation::Table(table) if table.materialized.is_none() => table.owner.clone(),
            Relation::View(view) => view.owner.clone(),
            _ => return None,
        };
        let key = AclKey::of(ObjectClass::Table, ObjectId(relation.oid()));
        Some((relation, key, owner))
    })
}

fn schema_of(system: &SystemContext, relation: &Relation) -> Datum {
    let schema = system.catalog.namespaces.get(&relation.namespace());
    schema.map_or(Datum::Null, |schema| text(&schema.name))
}

fn table_grants(system: &SystemContext, rows: &mut Rows, public: bool) -> Result<(), SqlError> {
    for (relation, key, owner) in owned(system) {
        for grant in grants(system, &system.catalog.acl(key, &owner), &owner, key.class.all(), public) {
            rows.push([
                ("grantor", text(&grant.grantor)),
                ("grantee", text(&grant.grantee)),
                ("table_catalog", text(&system.database)),
                ("table_schema", schema_of(system, &relation)),
                ("table_name", text(relation.name())),
                ("privilege_type", text(grant.name)),
                ("is_grantable", yes_no(grant.grantable)),
                ("with_hierarchy", yes_no(grant.privilege == SELECT)),
            ])?;
        }
    }
    Ok(())
}

fn column_grants(system: &SystemContext, rows: &mut Rows, public: bool) -> Result<(), SqlError> {
    let all = ObjectClass::Column.all();
    for (relation, key, owner) in owned(system) {
        let whole = grants(system, &system.catalog.acl(key, &owner), &owner, all, public);
        for column in relation.columns().iter().filter(|column| !column.dropped) {
            let own = AclKey { class: ObjectClass::Column, object: key.object, column: column.number };
            let own = system.catalog.acls.get(own).map_or(&[][..], |items| items);
            for grant in whole.iter().chain(&grants(system, own, &owner, all, public)) {
                rows.push([
                    ("grantor", text(&grant.grantor)),
                    ("grantee", text(&grant.grantee)),
                    ("table_catalog", text(&system.database)),
                    ("table_schema", schema_of(system, &relation)),
                    ("table_name", text(relation.name())),
                    ("column_name", text(column.name)),
                    ("privilege_type", text(grant.name)),
                    ("is_grantable", yes_no(grant.grantable)),
                ])?;
            }
        }
    }
    Ok(())
}

/// The entries of an object, null where nobody changed them.
pub(super) fn of(catalog: &Catalog, class: ObjectClass, object: ObjectId, column: i16) -> Datum {
    let items = catalog.acls.get(AclKey { class, object, column });
    items.map_or(Datum::Null, |items| listed(catalog, items))
}

/// The same of a schema: PostgreSQL writes down what everybody may do in `public`, and pg_dump builds on that.
pub(super) fn of_schema(catalog: &Catalog, schema: &Namespace) -> Datum {
    match of(catalog, ObjectClass::Schema, schema.id, 0) {
        Datum::Null if schema.name == "public" => {
            listed(catalog, &catalog.acl(AclKey::of(ObjectClass::Schema, schema.id), &schema.owner))
        }
        items => items,
    }
}

fn listed(catalog: &Catalog, items: &[AclItem]) -> Datum {
    texts(items.iter().map(|item| shown(catalog, item)))
}

/// `grantee=arw*/grantor`.
fn shown(catalog: &Catalog, item: &AclItem) -> String {
    let name = |id: ObjectId| match catalog.roles.get(&id) {
        Some(role) => quote_identifier(&role.name),
        None => id.0.to_string(),
    };
    let mut letters = String::new();
    for (bit, letter, _) in NAMES {
        if item.privileges & bit != 0 {
            letters.push(letter);
        }
        if item.grantable & bit != 0 {
            letters.push('*');
        }
    }
    format!("{}={letters}/{}", item.grantee.map(name).unwrap_or_default(), name(item.grantor))
}

/// `acldefault(kind, owner)`: what an object of a kind begins with. XX000 for no kind.
pub(super) fn default_of(catalog: &Catalog, args: &[Datum]) -> basalt_expr::Result<Datum> {
    let (Some(Datum::Bytes(kind)), Some(Datum::I64(owner))) = (args.first(), args.get(1)) else {
        return Ok(Datum::Null);
    };
    let owner = ObjectId(*owner as u32);
    let kind = kind.first().copied().unwrap_or(b' ');
    let class = match kind {
        b'c' => ObjectClass::Column,
        b'r' => ObjectClass::Table,
        b's' => ObjectClass::Sequence,
        b'd' => ObjectClass::Database,
        b'f' => ObjectClass::Function,
        b'T' => ObjectClass::Type,
        b'n' => ObjectClass::Schema,
        // Kinds whose objects have no privileges here: languages, parameters, large objects, tablespaces, foreign data.
        b'l' | b'p' | b'L' | b't' | b'F' | b'S' => {
            let name = catalog.roles.get(&owner).map_or(owner.0.to_string(), |role| quote_identifier(&role.name));
            let own = |letters: &str| format!("{name}={letters}/{name}");
            let all: Vec<String> = match kind {
                b'l' => vec![format!("=U/{name}"), own("U")],
                b'p' => vec![own("sA")],
                b'L' => vec![own("rw")],
                b't' => vec![own("C")],
                _ => vec![own("U")],
            };
            return Ok(texts(all));
        }
        other => {
            let message = format!("unrecognized objtype abbreviation: {}", char::from(other));
            return Err(basalt_expr::Error::new("XX000", message));
        }
    };
    Ok(listed(catalog, &default_acl(class, owner, false)))
}

fn pg_default_acl(system: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    let here = relations::database_oid(system);
    for (at, (key, items)) in system.catalog.acls.defaults().enumerate().filter(|(_, (key, _))| key.database == here) {
        let kind = match key.class {
            ObjectClass::Sequence => "S",
            ObjectClass::Function => "f",
            ObjectClass::Type => "T",
            ObjectClass::Schema => "n",
            _ => "r",
        };
        rows.push([
            ("oid", oid(1 << 30 | at as u32)),
            ("defaclrole", oid(key.role.0)),
            ("defaclnamespace", oid(key.schema.map_or(0, |schema| schema.0))),
            ("defaclobjtype", text(kind)),
            ("defaclacl", listed(&system.catalog, items)),
        ])?;
    }
    Ok(())
}
