//! Privileges in catalogs: `aclitem`s as text, and `pg_default_acl`.

use super::rows::{Rows, oid, text, texts};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use crate::session::names::quote_identifier;
use basalt_engine::Catalog;
use basalt_engine::privilege::{AclItem, AclKey, NAMES, ObjectClass};
use basalt_types::{Datum, ObjectId};

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "pg_default_acl" => pg_default_acl,
        _ => return None,
    })
}

/// The entries of an object, null where nobody changed them.
pub(super) fn of(catalog: &Catalog, class: ObjectClass, object: ObjectId, column: i16) -> Datum {
    let items = catalog.acls.get(AclKey { class, object, column });
    items.map_or(Datum::Null, |items| listed(catalog, items))
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

fn pg_default_acl(system: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    for (at, (key, items)) in system.catalog.acls.defaults().enumerate() {
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
