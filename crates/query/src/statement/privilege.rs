//! GRANT, REVOKE and ALTER DEFAULT PRIVILEGES (PostgreSQL manual 5.7): entries are the sum of what each grantor gave
//! each grantee, as `aclitem` shows them.

use super::resolve::{self, Relation, no_relation};
use crate::error::{Result, Severity, SqlError};
use crate::session::Session;
use crate::syntax::{DefaultPrivileges, Name, PrivilegeClause, PrivilegeGrant, PrivilegeTarget};
use basalt_engine::privilege::{self, AclItem, AclKey, DefaultKey, ObjectClass, Privileges};
use basalt_engine::{Catalog, CatalogEdit};
use basalt_types::ObjectId;

/// Something that privileges are granted on.
struct Object {
    key: AclKey,
    name: String,
    owner: String,
    /// Numbers and names of a relation's columns.
    columns: Vec<(i16, String)>,
}

pub(crate) fn run(session: &mut Session, grant: &PrivilegeGrant) -> Result<()> {
    let catalog = session.txn()?.catalog();
    check_kinds(grant)?;
    let objects = objects(session, &catalog, grant)?;
    let grantees = grantees(session, &catalog, grant)?;
    if let Some(by) = &grant.granted_by
        && resolve::role(session, &catalog, by)? != session.user
    {
        return Err(SqlError::not_supported("grantor must be current user"));
    }
    let mut edits = Vec::new();
    for object in &objects {
        change(session, &catalog, grant, object, &grantees, &mut edits)?;
    }
    if edits.is_empty() {
        return Ok(());
    }
    Ok(session.txn()?.edit_catalog_over(&catalog, edits)?)
}

fn class_of(target: &PrivilegeTarget) -> ObjectClass {
    match target {
        PrivilegeTarget::Objects { class, .. } | PrivilegeTarget::AllInSchemas { class, .. } => *class,
        PrivilegeTarget::Foreign { .. } => ObjectClass::Function,
    }
}

/// 0LP01 for privileges that the kind of object does not have.
fn check_kinds(grant: &PrivilegeGrant) -> Result<()> {
    let class = class_of(&grant.target);
    if matches!(grant.target, PrivilegeTarget::Foreign { .. }) {
        return Ok(());
    }
    for clause in &grant.privileges {
        let invalid = |class: &str| {
            let name = privilege::name_of(clause.kind.unwrap_or_default());
            Err(SqlError::new("0LP01", format!("invalid privilege type {name} for {class}")))
        };
        if !clause.columns.is_empty() {
            if class != ObjectClass::Table {
                return Err(SqlError::new("0LP01", "column privileges are only valid for relations"));
            }
            if clause.kind.is_some_and(|kind| kind & ObjectClass::Column.all() == 0) {
                return invalid("column");
            }
            continue;
        }
        // A table's form may name sequences.
        let all = match class {
            ObjectClass::Table => class.all() | privilege::USAGE,
            other => other.all(),
        };
        if clause.kind.is_some_and(|kind| kind & all == 0) {
            return invalid(if class == ObjectClass::Table { "relation" } else { class.name() });
        }
    }
    Ok(())
}

fn grantees(session: &Session, catalog: &Catalog, grant: &PrivilegeGrant) -> Result<Vec<Option<ObjectId>>> {
    let mut found = Vec::with_capacity(grant.grantees.len());
    for name in &grant.grantees {
        found.push(match name {
            None if grant.option && !grant.revoke => {
                return Err(SqlError::new("0LP01", "grant options can only be granted to roles"));
            }
            None => None,
            Some(name) => {
                let name = resolve::role(session, catalog, name)?;
                catalog.role_named(&name).map(|role| role.id)
            }
        });
    }
    Ok(found)
}

fn objects(session: &mut Session, catalog: &Catalog, grant: &PrivilegeGrant) -> Result<Vec<Object>> {
    match &grant.target {
        PrivilegeTarget::Foreign { kind, names } => {
            let name = names.first().map(Name::to_string).unwrap_or_default();
            match *kind {
                "function" | "procedure" | "routine" => {
                    Err(SqlError::not_supported("privileges on functions are not supported")
                        .with_hint("Functions are Basalt's own: everybody may call them."))
                }
                "language" | "tablespace" | "large object" | "foreign-data wrapper" | "server" => {
                    Err(SqlError::new("42704", format!("{kind} \"{name}\" does not exist")))
                }
                kind => Err(SqlError::not_supported(format!("privileges on a {kind} are not supported"))
                    .with_hint("Only superusers set them.")),
            }
        }
        PrivilegeTarget::AllInSchemas { class, schemas } => {
            let mut all = Vec::new();
            for schema in schemas {
                let namespace = resolve::namespace(session, catalog, schema)?.id;
                all_in(catalog, *class, namespace, &mut all);
            }
            Ok(all)
        }
        PrivilegeTarget::Objects { class, names, is_domain } => {
            let mut found = Vec::with_capacity(names.len());
            for name in names {
                found.push(match class {
                    ObjectClass::Schema => schema_object(session, catalog, &name.name)?,
                    ObjectClass::Database => match catalog.database_named(&name.name) {
                        Some(database) => Object {
                            key: AclKey::of(*class, database.id),
                            name: database.name.clone(),
                            owner: database.owner.clone(),
                            columns: Vec::new(),
                        },
                        None => {
                            let message = format!("database \"{}\" does not exist", name.name);
                            return Err(SqlError::new("3D000", message));
                        }
                    },
                    ObjectClass::Type => type_object(session, catalog, name, *is_domain)?,
                    _ => match resolve::find(session, catalog, name)? {
                        Some(relation) => relation_object(&relation, *class)?,
                        None if name
                            .schema
                            .as_deref()
                            .is_some_and(|schema| catalog.namespace_named(session.database.id, schema).is_none()) =>
                        {
                            let schema = name.schema.as_deref().unwrap_or_default();
                            return Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist")));
                        }
                        None => return Err(no_relation("relation", name)),
                    },
                });
            }
            Ok(found)
        }
    }
}

fn schema_object(session: &Session, catalog: &Catalog, name: &str) -> Result<Object> {
    let namespace = resolve::namespace(session, catalog, name)?;
    Ok(Object {
        key: AclKey::of(ObjectClass::Schema, namespace.id),
        name: namespace.name.clone(),
        owner: namespace.owner.clone(),
        columns: Vec::new(),
    })
}

fn type_object(session: &mut Session, catalog: &Catalog, name: &Name, is_domain: bool) -> Result<Object> {
    let missing = || SqlError::new("42704", format!("type \"{name}\" does not exist"));
    let schemas = match &name.schema {
        Some(schema) => vec![schema.clone()],
        None => session.lookup_path(catalog),
    };
    for schema in schemas {
        let Some(namespace) = catalog.namespace_named(session.database.id, &schema) else { continue };
        let Some(def) = catalog.type_def_named(namespace.id, &name.name) else { continue };
        if is_domain && !matches!(def.kind, basalt_engine::TypeKind::Domain { .. }) {
            return Err(SqlError::new("42809", format!("\"{}\" is not a domain", def.name)));
        }
        return Ok(Object {
            key: AclKey::of(ObjectClass::Type, def.id),
            name: def.name.clone(),
            owner: def.owner.clone(),
            columns: Vec::new(),
        });
    }
    let built_in = basalt_expr::functions::pattern_types::type_named(&name.name);
    match built_in {
        Some(ty) if !is_domain => Ok(Object {
            key: AclKey::of(ObjectClass::Type, ObjectId(ty.oid())),
            name: name.name.clone(),
            owner: catalog
                .roles
                .get(&basalt_engine::catalog::SUPERUSER)
                .map_or(String::new(), |role| role.name.clone()),
            columns: Vec::new(),
        }),
        _ => Err(missing()),
    }
}

fn relation_object(relation: &Relation, class: ObjectClass) -> Result<Object> {
    Ok(match relation {
        Relation::Sequence(sequence) => Object {
            key: AclKey::of(ObjectClass::Sequence, sequence.id),
            name: sequence.name.clone(),
            owner: sequence.owner.clone(),
            columns: Vec::new(),
        },
        Relation::Table(table) if class == ObjectClass::Table => Object {
            key: AclKey::of(class, table.id),
            name: table.name.clone(),
            owner: table.owner.clone(),
            columns: table.live_columns().map(|column| (column.id.0 as i16, column.name.clone())).collect(),
        },
        Relation::View(view) if class == ObjectClass::Table => Object {
            key: AclKey::of(class, view.id),
            name: view.name.clone(),
            owner: view.owner.clone(),
            columns: (1..).zip(view.columns.iter().map(|(name, _)| name.clone())).collect(),
        },
        Relation::Table(table) => return Err(SqlError::new("42809", format!("\"{}\" is not a sequence", table.name))),
        Relation::View(view) => return Err(SqlError::new("42809", format!("\"{}\" is not a sequence", view.name))),
    })
}

fn all_in(catalog: &Catalog, class: ObjectClass, namespace: ObjectId, out: &mut Vec<Object>) {
    match class {
        ObjectClass::Table => {
            let tables = catalog.tables.values().filter(|table| table.namespace == namespace);
            out.extend(tables.filter_map(|table| relation_object(&Relation::Table(table.clone()), class).ok()));
            let views = catalog.views.values().filter(|view| view.namespace == namespace);
            out.extend(views.filter_map(|view| relation_object(&Relation::View(view.clone()), class).ok()));
        }
        ObjectClass::Sequence => {
            let sequences = catalog.sequences.values().filter(|sequence| sequence.namespace == namespace);
            out.extend(
                sequences.filter_map(|sequence| relation_object(&Relation::Sequence(sequence.clone()), class).ok()),
            );
        }
        _ => {}
    }
}

/// What one clause asks for on an object as a whole; 0LP01 for what a sequence does not have.
fn wanted_of(clause: &PrivilegeClause, class: ObjectClass) -> Result<Privileges> {
    match clause.kind {
        None => Ok(class.all()),
        Some(kind) if kind & class.all() != 0 => Ok(kind),
        Some(kind) => {
            let message = format!("invalid privilege type {} for {}", privilege::name_of(kind), class.name());
            Err(SqlError::new("0LP01", message))
        }
    }
}

fn change(
    session: &mut Session,
    catalog: &Catalog,
    grant: &PrivilegeGrant,
    object: &Object,
    grantees: &[Option<ObjectId>],
    edits: &mut Vec<CatalogEdit>,
) -> Result<()> {
    let class = object.key.class;
    let mut whole: Privileges = 0;
    let mut of_columns: Vec<(i16, Privileges)> = Vec::new();
    for clause in &grant.privileges {
        if clause.columns.is_empty() {
            whole |= wanted_of(clause, class)?;
            continue;
        }
        if class != ObjectClass::Table {
            return Err(SqlError::new("0LP01", "column privileges are only valid for relations"));
        }
        for name in &clause.columns {
            let found = object.columns.iter().find(|(_, known)| known == name);
            let Some((number, _)) = found else {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist", object.name);
                return Err(SqlError::new("42703", message));
            };
            let wanted = clause.kind.unwrap_or_else(|| ObjectClass::Column.all());
            match of_columns.iter_mut().find(|(known, _)| known == number) {
                Some((_, known)) => *known |= wanted,
                None => of_columns.push((*number, wanted)),
            }
        }
    }
    // Revoked from a relation, they go from its columns too.
    if grant.revoke && whole != 0 && class == ObjectClass::Table {
        for (number, _) in catalog.acls.columns_of(object.key.object) {
            let wanted = whole & ObjectClass::Column.all();
            match of_columns.iter_mut().find(|(known, _)| *known == number) {
                Some((_, known)) => *known |= wanted,
                None => of_columns.push((number, wanted)),
            }
        }
    }
    let keys = (whole != 0).then_some((object.key, whole, object.name.clone()));
    let columns = of_columns.into_iter().map(|(column, wanted)| {
        let key = AclKey { class: ObjectClass::Column, object: object.key.object, column };
        (key, wanted, object.name.clone())
    });
    for (key, wanted, name) in keys.into_iter().chain(columns) {
        let (grantor, granting) = grantor(session, catalog, grant, object, key, wanted, &name)?;
        if granting == 0 && !grant.revoke {
            continue;
        }
        let mut items = catalog.acl(key, &object.owner);
        let before = items.clone();
        let ownership = catalog.role_named(&object.owner).map(|role| role.id);
        for grantee in grantees {
            match grant.revoke {
                false => add(&mut items, *grantee, grantor, granting, if grant.option { granting } else { 0 }),
                true => revoke(&mut items, (*grantee, grantor), wanted, grant.option, grant.cascade, ownership)?,
            }
        }
        items.retain(|item| item.privileges != 0);
        let is_empty_column = key.class == ObjectClass::Column && items.is_empty();
        if is_empty_column {
            edits.push(CatalogEdit::SetAcl { key, items: None });
        } else if items != before || catalog.acls.get(key).is_none() {
            edits.push(CatalogEdit::SetAcl { key, items: Some(items) });
        }
    }
    Ok(())
}

/// In whose name the user grants, and how much of what is wanted that role may grant. 42501 for one that has nothing
/// on the object.
fn grantor(
    session: &mut Session,
    catalog: &Catalog,
    grant: &PrivilegeGrant,
    object: &Object,
    key: AclKey,
    wanted: Privileges,
    name: &str,
) -> Result<(ObjectId, Privileges)> {
    let user = catalog.role_named(&session.user).map_or(basalt_engine::catalog::SUPERUSER, |role| role.id);
    let owner = catalog.role_named(&object.owner).map_or(basalt_engine::catalog::SUPERUSER, |role| role.id);
    if session.superuser || catalog.acts_as(user).contains(&owner) {
        return Ok((owner, wanted));
    }
    let (mut has, mut may) = catalog.privileges(&session.user, key, &object.owner);
    if key.class == ObjectClass::Column {
        let whole = catalog.privileges(&session.user, object.key, &object.owner);
        (has, may) = (has | whole.0, may | whole.1);
    }
    let granting = wanted & may;
    if may == 0 && has == 0 {
        let kind = if key.class == ObjectClass::Column { "table" } else { key.class.name() };
        return Err(SqlError::new("42501", format!("permission denied for {kind} {name}")));
    }
    let verb = if grant.revoke { "could be revoked" } else { "were granted" };
    let sqlstate = if grant.revoke { "01006" } else { "01007" };
    let asked_for_all = grant.privileges.iter().all(|clause| clause.kind.is_none());
    let warning = match granting {
        0 => Some(format!("no privileges {verb} for \"{name}\"")),
        some if some != wanted && !asked_for_all => Some(format!("not all privileges {verb} for \"{name}\"")),
        _ => None,
    };
    if let Some(warning) = warning {
        session.notice(SqlError::notice(Severity::Warning, sqlstate, warning));
    }
    Ok((user, granting))
}

fn add(
    items: &mut Vec<AclItem>,
    grantee: Option<ObjectId>,
    grantor: ObjectId,
    privileges: Privileges,
    grantable: Privileges,
) {
    match items.iter_mut().find(|item| (item.grantee, item.grantor) == (grantee, grantor)) {
        Some(item) => {
            item.privileges |= privileges;
            item.grantable |= grantable;
        }
        None => items.push(AclItem { grantee, grantor, privileges, grantable }),
    }
}

/// Takes what a grantor gave, or only the right to grant it. What the grantee granted on goes along with CASCADE;
/// otherwise 2BP01.
pub(super) fn revoke(
    items: &mut Vec<AclItem>,
    (grantee, grantor): (Option<ObjectId>, ObjectId),
    privileges: Privileges,
    option_only: bool,
    cascade: bool,
    owner: Option<ObjectId>,
) -> Result<()> {
    let Some(item) = items.iter_mut().find(|item| (item.grantee, item.grantor) == (grantee, grantor)) else {
        return Ok(());
    };
    let lost = item.grantable & privileges;
    item.grantable &= !privileges;
    if !option_only {
        item.privileges &= !privileges;
    }
    let Some(grantee) = grantee.filter(|grantee| Some(*grantee) != owner && lost != 0) else { return Ok(()) };
    // Another may have given the same right.
    let kept = items.iter().filter(|item| item.grantee == Some(grantee)).fold(0, |kept, item| kept | item.grantable);
    let lost = lost & !kept;
    let dependent: Vec<(Option<ObjectId>, Privileges)> = items
        .iter()
        .filter(|item| item.grantor == grantee && item.privileges & lost != 0)
        .map(|item| (item.grantee, item.privileges & lost))
        .collect();
    if dependent.is_empty() {
        return Ok(());
    }
    if !cascade {
        return Err(SqlError::new("2BP01", "dependent privileges exist").with_hint("Use CASCADE to revoke them too."));
    }
    for (next, privileges) in dependent {
        revoke(items, (next, grantee), privileges, false, true, owner)?;
    }
    Ok(())
}

pub(crate) fn run_defaults(session: &mut Session, defaults: &DefaultPrivileges) -> Result<()> {
    let catalog = session.txn()?.catalog();
    check_kinds(&defaults.grant)?;
    let class = class_of(&defaults.grant.target);
    if class == ObjectClass::Schema && !defaults.schemas.is_empty() {
        return Err(SqlError::new("0LP01", "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS"));
    }
    let grantees = grantees(session, &catalog, &defaults.grant)?;
    let names = match defaults.roles.is_empty() {
        true => vec![session.user.clone()],
        false => defaults.roles.clone(),
    };
    let mut edits = Vec::new();
    for name in names {
        let name = resolve::role(session, &catalog, &name)?;
        let Some(of) = catalog.role_named(&name) else { continue };
        if !session.superuser && !super::set::is_member(&catalog, &session.user, of.id) {
            return Err(SqlError::new("42501", "permission denied to change default privileges"));
        }
        let mut schemas = Vec::new();
        for schema in &defaults.schemas {
            schemas.push(Some(resolve::namespace(session, &catalog, schema)?.id));
        }
        if schemas.is_empty() {
            schemas.push(None);
        }
        for schema in schemas {
            let key = DefaultKey { database: session.database.id, role: of.id, schema, class };
            let mut items = catalog.acls.default_of(key).cloned().unwrap_or_else(|| key.begins());
            for clause in &defaults.grant.privileges {
                let wanted = wanted_of(clause, class)?;
                for grantee in &grantees {
                    match defaults.grant.revoke {
                        false => {
                            add(&mut items, *grantee, of.id, wanted, if defaults.grant.option { wanted } else { 0 })
                        }
                        true => {
                            revoke(&mut items, (*grantee, of.id), wanted, defaults.grant.option, true, Some(of.id))?
                        }
                    }
                }
            }
            items.retain(|item| item.privileges != 0);
            edits.push(CatalogEdit::SetDefaultAcl { key, items: key.entry(items) });
        }
    }
    Ok(session.txn()?.edit_catalog_over(&catalog, edits)?)
}
