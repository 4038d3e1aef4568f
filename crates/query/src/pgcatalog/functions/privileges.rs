//! Who may do what (PostgreSQL manual 9.26.2, "Access Privilege Inquiry Functions").

use super::{system, text_arg};
use crate::pgcatalog::names::{self, Scope};
use crate::statement::set::is_member;
use crate::system::SystemContext;
use basalt_engine::Role;
use basalt_engine::privilege::{self, AclKey, ObjectClass, Privileges};
use basalt_expr::functions::{CallInfo, ScalarKernel};
use basalt_expr::{Error, Result};
use basalt_types::{DataType, Datum, ObjectId};

pub(super) fn bind(name: &str, _: &str) -> Option<ScalarKernel> {
    Some(match name {
        "has_table_privilege" => |args, info| inquire(args, info, ObjectClass::Table, 2, relation),
        "has_any_column_privilege" => |args, info| inquire(args, info, ObjectClass::Table, 2, any_column),
        "has_column_privilege" => |args, info| inquire(args, info, ObjectClass::Column, 3, column),
        "has_sequence_privilege" => |args, info| inquire(args, info, ObjectClass::Sequence, 2, sequence),
        "has_schema_privilege" => |args, info| inquire(args, info, ObjectClass::Schema, 2, schema),
        "has_database_privilege" => |args, info| inquire(args, info, ObjectClass::Database, 2, database),
        "has_type_privilege" => |args, info| inquire(args, info, ObjectClass::Type, 2, type_),
        // Of what is Basalt's own, everybody may use all.
        "has_function_privilege" => |args, info| inquire(args, info, ObjectClass::Function, 2, function),
        "has_tablespace_privilege" | "has_parameter_privilege" => of_superuser,
        "has_language_privilege" => |_, _| Ok(Datum::Bool(true)),
        "has_server_privilege" => |args, _| none_of("server", args),
        "has_foreign_data_wrapper_privilege" => |args, _| none_of("foreign-data wrapper", args),
        "pg_has_role" => member,
        "row_security_active" => |_, _| Ok(Datum::Bool(false)),
        _ => return None,
    })
}

/// A role by name or oid.
fn role<'a>(system: &'a SystemContext, args: &[Datum], at: usize, info: &CallInfo) -> Result<Option<&'a Role>> {
    if let (Some(Datum::I64(oid)), Some(DataType::Oid)) = (args.get(at), info.arg_types.get(at)) {
        return Ok(system.catalog.roles.get(&ObjectId(*oid as u32)).map(|role| &**role));
    }
    let name = text_arg(args, at)?;
    match system.catalog.role_named(name) {
        Some(role) => Ok(Some(role)),
        None => Err(Error::new("42704", format!("role \"{name}\" does not exist"))),
    }
}

/// Who is asked for, what for, and whether the right to grant it is meant.
struct Inquiry<'a> {
    system: &'a SystemContext,
    role: String,
    wanted: Vec<(Privileges, bool)>,
}

impl Inquiry<'_> {
    fn has(&self, key: AclKey, owner: &str) -> bool {
        let (has, may_grant) = self.system.catalog.privileges(&self.role, key, owner);
        self.wanted.iter().any(|(wanted, grant)| if *grant { may_grant } else { has } & wanted != 0)
    }
}

/// What an object is found by, behind the role and before the privileges; `None` if there is none of this oid.
type Find = fn(&Inquiry<'_>, &[Datum], &CallInfo) -> Result<Option<bool>>;

fn inquire(args: &[Datum], info: &CallInfo, class: ObjectClass, least: usize, find: Find) -> Result<Datum> {
    let system = system(info)?;
    let with_role = args.len() > least;
    let name = match with_role {
        // `public` has no name of its own as a role.
        true if matches!(&args[0], Datum::Bytes(name) if &**name == b"public") => Some(String::new()),
        true => role(system, args, 0, info)?.map(|role| role.name.clone()),
        false => Some(system.user.clone()),
    };
    let wanted = wanted_of(text_arg(args, args.len().saturating_sub(1))?, class)?;
    let Some(role) = name else { return Ok(Datum::Null) };
    let inquiry = Inquiry { system, role, wanted };
    let first = usize::from(with_role);
    let inner = CallInfo { function: info.function, arg_types: &info.arg_types[first..], ty: info.ty, ctx: info.ctx };
    let found = find(&inquiry, &args[first..], &inner)?;
    Ok(found.map_or(Datum::Null, Datum::Bool))
}

fn wanted_of(text: &str, class: ObjectClass) -> Result<Vec<(Privileges, bool)>> {
    let mut wanted = Vec::new();
    for part in text.split(',') {
        let upper = part.trim().to_ascii_uppercase();
        let (name, grant) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(name) => (name.trim().to_string(), true),
            None => (upper, false),
        };
        let name = if name == "TEMP" { "TEMPORARY" } else { &name };
        let known = privilege::NAMES.iter().find(|(bit, _, known)| *known == name && bit & class.all() != 0);
        match known {
            Some((bit, ..)) => wanted.push((*bit, grant)),
            None => return Err(Error::new("22023", format!("unrecognized privilege type: \"{}\"", part.trim()))),
        }
    }
    Ok(wanted)
}

/// An object by oid, or by a name of a reg type.
fn oid_of(inquiry: &Inquiry, args: &[Datum], info: &CallInfo, ty: &DataType) -> Result<u32> {
    match (args.first(), info.arg_types.first()) {
        (Some(Datum::I64(oid)), _) => Ok(*oid as u32),
        _ => names::oid_of(Scope::of(inquiry.system), ty, text_arg(args, 0)?),
    }
}

/// The owner of a table, view or sequence, and what it is.
fn owner_of(system: &SystemContext, oid: u32) -> Option<(AclKey, String)> {
    let (catalog, id) = (&system.catalog, ObjectId(oid));
    if let Some(table) = catalog.tables.get(&id) {
        return Some((AclKey::of(ObjectClass::Table, id), table.owner.clone()));
    }
    if let Some(view) = catalog.views.get(&id) {
        return Some((AclKey::of(ObjectClass::Table, id), view.owner.clone()));
    }
    let sequence = catalog.sequences.get(&id)?;
    Some((AclKey::of(ObjectClass::Sequence, id), sequence.owner.clone()))
}

/// What everybody may do with system catalogs; `None` if there is none of this oid.
fn of_catalog(inquiry: &Inquiry, oid: u32) -> Option<bool> {
    let relation = crate::pgcatalog::relations::by_oid(&inquiry.system.catalog, oid)?;
    let superuser = inquiry.system.catalog.role_named(&inquiry.role).is_some_and(|role| role.superuser);
    let is_hidden = ["pg_authid", "pg_shadow", "pg_statistic"].contains(&relation.name());
    let reads = inquiry.wanted.iter().any(|(wanted, grant)| *wanted == privilege::SELECT && !grant);
    Some(superuser || (reads && !is_hidden))
}

fn relation(inquiry: &Inquiry<'_>, args: &[Datum], info: &CallInfo) -> Result<Option<bool>> {
    let oid = oid_of(inquiry, args, info, &DataType::Regclass)?;
    Ok(match owner_of(inquiry.system, oid) {
        Some((key, owner)) => Some(inquiry.has(key, &owner)),
        None => of_catalog(inquiry, oid),
    })
}

fn any_column(inquiry: &Inquiry<'_>, args: &[Datum], info: &CallInfo) -> Result<Option<bool>> {
    let oid = oid_of(inquiry, args, info, &DataType::Regclass)?;
    let Some((key, owner)) = owner_of(inquiry.system, oid) else { return Ok(of_catalog(inquiry, oid)) };
    let of_columns = inquiry.system.catalog.acls.columns_of(key.object);
    let mut of_columns =
        of_columns.map(|(column, _)| AclKey { class: ObjectClass::Column, object: key.object, column });
    Ok(Some(inquiry.has(key, &owner) || of_columns.any(|key| inquiry.has(key, &owner))))
}

fn column(inquiry: &Inquiry<'_>, args: &[Datum], info: &CallInfo) -> Result<Option<bool>> {
    let oid = oid_of(inquiry, args, info, &DataType::Regclass)?;
    let Some(relation) = crate::pgcatalog::relations::by_oid(&inquiry.system.catalog, oid) else { return Ok(None) };
    let columns = relation.columns();
    let found = match args.get(1) {
        Some(Datum::I16(number)) => columns.iter().find(|column| column.number == *number && !column.dropped),
        _ => {
            let name = text_arg(args, 1)?;
            let found = columns.iter().find(|column| column.name == name && !column.dropped);
            if found.is_none() {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist", relation.name());
                return Err(Error::new("42703", message));
            }
            found
        }
    };
    let Some(column) = found else { return Ok(None) };
    let Some((key, owner)) = owner_of(inquiry.system, oid) else { return Ok(of_catalog(inquiry, oid)) };
    let own = AclKey { class: ObjectClass::Column, object: key.object, column: column.number };
    Ok(Some(inquiry.has(key, &owner) || inquiry.has(own, &owner)))
}

fn sequence(inquiry: &Inquiry<'_>, args: &[Datum], info: &CallInfo) -> Result<Option<bool>> {
    let oid = oid_of(inquiry, args, info, &DataType::Regclass)?;
    match owner_of(inquiry.system, oid) {
        Some((key, owner)) if key.class == ObjectClass::Sequence => Ok(Some(inquiry.has(key, &owner))),
        None => Ok(None),
        Some(_) => {
            let name = crate::pgcatalog::relations::by_oid(&inquiry.system.catalog, oid);
            let name = name.map(|relation| relation.name().to_string()).unwrap_or_default();
            Err(Error::new("42809", format!("\"{name}\" is not a sequence")))
        }
    }
}

fn schema(inquiry: &Inquiry<'_>, args: &[Datum], info: &CallInfo) -> Result<Option<bool>> {
    let oid = oid_of(inquiry, args, info, &DataType::Regnamespace)?;
    let found = inquiry.system.catalog.namespaces.get(&ObjectId(oid));
    Ok(found.map(|schema| inquiry.has(AclKey::of(ObjectClass::Schema, schema.id), &schema.owner)))
}

fn database(inquiry: &Inquiry<'_>, args: &[Datum], _: &CallInfo) -> Result<Option<bool>> {
    let catalog = &inquiry.system.catalog;
    let found = match args.first() {
        Some(Datum::I64(oid)) => catalog.databases.get(&ObjectId(*oid as u32)),
        _ => {
            let name = text_arg(args, 0)?;
            let found = catalog.database_named(name);
            if found.is_none() {
                return Err(Error::new("3D000", format!("database \"{name}\" does not exist")));
            }
            found
        }
    };
    Ok(found.map(|database| inquiry.has(AclKey::of(ObjectClass::Database, database.id), &database.owner)))
}

fn type_(inquiry: &Inquiry<'_>, args: &[Datum], info: &CallInfo) -> Result<Option<bool>> {
    let oid = oid_of(inquiry, args, info, &DataType::Regtype)?;
    let catalog = &inquiry.system.catalog;
    let key = AclKey::of(ObjectClass::Type, ObjectId(oid));
    let owner = match catalog.types.get(&ObjectId(oid)) {
        Some(def) => def.owner.clone(),
        None if catalog.type_of_oid(oid).is_some() => {
            catalog.roles.get(&basalt_engine::catalog::SUPERUSER).map_or(String::new(), |role| role.name.clone())
        }
        None => return Ok(None),
    };
    Ok(Some(inquiry.has(key, &owner)))
}

/// `pg_has_role([member,] role, privilege)`.
fn member(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let system = system(info)?;
    let last = args.len().saturating_sub(1);
    let known = [
        "member",
        "usage",
        "member with admin option",
        "member with grant option",
        "usage with admin option",
        "usage with grant option",
    ];
    let privilege = text_arg(args, last)?.trim().to_ascii_lowercase();
    if privilege.split(',').any(|word| !known.contains(&word.trim())) {
        return Err(Error::new("22023", format!("unrecognized privilege type: \"{}\"", text_arg(args, last)?)));
    }
    let inherits = privilege.split(',').all(|word| word.trim().starts_with("usage"));
    let of = role(system, args, last.saturating_sub(1), info)?;
    let who = match last {
        2 => role(system, args, 0, info)?.map(|role| role.name.clone()),
        _ => Some(system.user.clone()),
    };
    let (Some(of), Some(who)) = (of, who) else { return Ok(Datum::Bool(false)) };
    let catalog = &system.catalog;
    let found = catalog.role_named(&who);
    // USAGE: as whom the role acts without SET ROLE.
    let uses = found.is_some_and(|role| role.superuser || catalog.acts_as(role.id).contains(&of.id));
    let admin = privilege.contains("option");
    let administers = || {
        let own = found.map(|role| catalog.acts_as(role.id)).unwrap_or_default();
        let roles = own.iter().filter_map(|id| catalog.roles.get(id));
        let mut members = roles.flat_map(|role| &role.member_of);
        found.is_some_and(|role| role.superuser) || members.any(|member| member.role == of.id && member.admin)
    };
    Ok(Datum::Bool(match (admin, inherits) {
        (true, _) => administers(),
        (false, true) => uses,
        (false, false) => is_member(catalog, &who, of.id),
    }))
}

/// Everybody may call every function there is. 42883.
fn function(inquiry: &Inquiry<'_>, args: &[Datum], _: &CallInfo) -> Result<Option<bool>> {
    let known = match args.first() {
        Some(Datum::I64(oid)) => return Ok(crate::pgcatalog::procs::by_oid(*oid as u32).map(|_| may_call(inquiry))),
        _ => text_arg(args, 0)?,
    };
    let name = known.split('(').next().unwrap_or_default().trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    match crate::pgcatalog::procs::named(name).is_empty() {
        true => Err(Error::new("42883", format!("function \"{known}\" does not exist"))),
        false => Ok(Some(may_call(inquiry))),
    }
}

fn may_call(inquiry: &Inquiry<'_>) -> bool {
    let superuser = inquiry.system.catalog.role_named(&inquiry.role).is_some_and(|role| role.superuser);
    superuser || inquiry.wanted.iter().any(|(_, grant)| !grant)
}

/// What superusers alone may do.
fn of_superuser(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let system = system(info)?;
    let role = match args.len() > 2 {
        true => role(system, args, 0, info)?.cloned(),
        false => system.catalog.role_named(&system.user).map(|role| Role::clone(role)),
    };
    Ok(role.map_or(Datum::Null, |role| Datum::Bool(role.superuser)))
}

/// An inquiry about objects of a kind that there is not. 42704.
fn none_of(kind: &str, args: &[Datum]) -> Result<Datum> {
    match args.get(args.len().saturating_sub(2)) {
        Some(Datum::Bytes(name)) => {
            let name = String::from_utf8_lossy(name);
            Err(Error::new("42704", format!("{kind} \"{name}\" does not exist")))
        }
        _ => Ok(Datum::Null),
    }
}
