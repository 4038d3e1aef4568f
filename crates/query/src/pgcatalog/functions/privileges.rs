//! Who may do what. Privileges are not granted one by one yet: whoever connects may use everything, so the
//! inquiries about them say yes.

use super::{system, text_arg};
use crate::statement::set::is_member;
use crate::system::SystemContext;
use basalt_engine::Role;
use basalt_expr::functions::{CallInfo, ScalarKernel};
use basalt_expr::{Error, Result};
use basalt_types::{DataType, Datum, ObjectId};

pub(super) fn bind(name: &str, _: &str) -> Option<ScalarKernel> {
    Some(match name {
        "has_table_privilege"
        | "has_column_privilege"
        | "has_any_column_privilege"
        | "has_schema_privilege"
        | "has_database_privilege"
        | "has_function_privilege"
        | "has_type_privilege"
        | "has_tablespace_privilege"
        | "has_sequence_privilege"
        | "has_language_privilege"
        | "has_parameter_privilege" => |_, _| Ok(Datum::Bool(true)),
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
    let of = role(system, args, last.saturating_sub(1), info)?;
    let who = match last {
        2 => role(system, args, 0, info)?.map(|role| role.name.clone()),
        _ => Some(system.user.clone()),
    };
    Ok(Datum::Bool(of.zip(who).is_some_and(|(of, who)| is_member(&system.catalog, &who, of.id))))
}
