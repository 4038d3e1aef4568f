//! What catalog objects are called, how they are defined and described, and whether names find them.

use super::{Other, oid_arg, system, text_arg, text_or_null};
use crate::pgcatalog::names::{self, Scope};
use crate::pgcatalog::{definitions, descriptions, relations, user_types};
use basalt_expr::functions::{CallInfo, ScalarKernel};
use basalt_expr::{Error, Result};
use basalt_types::{DataType, Datum, ObjectId};

pub(super) fn bind(name: &str, args: &str) -> Option<ScalarKernel> {
    Some(match name {
        "format_type" => |args, info| {
            let typmod = match args.get(1) {
                Some(Datum::I32(typmod)) => Some(*typmod),
                _ => None,
            };
            let Some(Datum::I64(oid)) = args.first() else { return Ok(Datum::Null) };
            let name = if *oid == 0 { "-".to_string() } else { type_name(*oid as u32, typmod, info)? };
            Ok(Datum::text(&name))
        },
        "pg_get_userbyid" => |args, info| {
            let oid = oid_arg(args, 0)?;
            let role = system(info)?.catalog.roles.get(&ObjectId(oid));
            Ok(Datum::text(&role.map_or_else(|| format!("unknown (OID={oid})"), |role| role.name.clone())))
        },
        "pg_table_is_visible" => |args, info| {
            let visible = Scope::of(system(info)?).relation_is_visible(oid_arg(args, 0)?);
            Ok(visible.map_or(Datum::Null, Datum::Bool))
        },
        "pg_type_is_visible" => |args, info| {
            let visible = user_types::is_visible(Scope::of(system(info)?), oid_arg(args, 0)?);
            Ok(Datum::Bool(visible.unwrap_or(true)))
        },
        "pg_function_is_visible"
        | "pg_operator_is_visible"
        | "pg_opclass_is_visible"
        | "pg_opfamily_is_visible"
        | "pg_collation_is_visible"
        | "pg_conversion_is_visible"
        | "pg_statistics_obj_is_visible"
        | "pg_ts_config_is_visible"
        | "pg_ts_dict_is_visible"
        | "pg_ts_parser_is_visible"
        | "pg_ts_template_is_visible" => |_, _| Ok(Datum::Bool(true)),
        "to_regclass" => |args, info| to_reg(&DataType::Regclass, args, info),
        "to_regtype" => |args, info| to_reg(&DataType::Regtype, args, info),
        "to_regproc" => |args, info| to_reg(&DataType::Regproc, args, info),
        "to_regprocedure" => |args, info| to_reg(&DataType::Regprocedure, args, info),
        "to_regoper" => |args, info| to_reg(&DataType::Regoper, args, info),
        "to_regoperator" => |args, info| to_reg(&DataType::Regoperator, args, info),
        "to_regcollation" => |args, info| to_reg(&DataType::Regcollation, args, info),
        "to_regnamespace" => |args, info| to_reg(&DataType::Regnamespace, args, info),
        "to_regrole" => |args, info| to_reg(&DataType::Regrole, args, info),
        "pg_get_indexdef" => |args, info| {
            let column = match args.get(1) {
                Some(Datum::I32(column)) => *column,
                _ => 0,
            };
            let pretty = matches!(args.get(2), Some(Datum::Bool(true)));
            Ok(text_or_null(definitions::index(system(info)?, oid_arg(args, 0)?, column, pretty)))
        },
        "pg_get_constraintdef" => |args, info| {
            let (system, constraint) = (system(info)?, oid_arg(args, 0)?);
            let pretty = matches!(args.get(1), Some(Datum::Bool(true)));
            let of_domain = || user_types::constraint_text(system, constraint, pretty);
            Ok(text_or_null(definitions::constraint(system, constraint, pretty).or_else(of_domain)))
        },
        "pg_get_viewdef" if args.starts_with("text") => |args, info| {
            let scope = Scope::of(system(info)?);
            let oid = names::oid_of(scope, &DataType::Regclass, text_arg(args, 0)?)?;
            Ok(text_or_null(definitions::view(system(info)?, oid)))
        },
        "pg_get_viewdef" => |args, info| Ok(text_or_null(definitions::view(system(info)?, oid_arg(args, 0)?))),
        "pg_get_function_result" => |args, _| Ok(text_or_null(definitions::function_result(oid_arg(args, 0)?))),
        "pg_get_function_arguments" | "pg_get_function_identity_arguments" => {
            |args, _| Ok(text_or_null(definitions::function_arguments(oid_arg(args, 0)?)))
        }
        "pg_get_functiondef" => |_, _| Err(Error::not_supported("built-in functions have no SQL definition")),
        "pg_get_ruledef"
        | "pg_get_triggerdef"
        | "pg_get_partkeydef"
        | "pg_get_statisticsobjdef"
        | "pg_get_statisticsobjdef_columns"
        | "pg_get_function_sqlbody"
        | "pg_get_function_arg_default"
        | "pg_get_partition_constraintdef"
        | "pg_describe_object" => |_, _| Ok(Datum::Null),
        "col_description" => |args, info| {
            let Some(Datum::I32(column)) = args.get(1) else { return Ok(Datum::Null) };
            Ok(text_or_null(descriptions::of_column(system(info)?, oid_arg(args, 0)?, *column)))
        },
        "obj_description" => |args, info| {
            let class = if args.len() > 1 { text_arg(args, 1)? } else { "pg_class" };
            Ok(text_or_null(descriptions::of_object(system(info)?, oid_arg(args, 0)?, class)))
        },
        "shobj_description" => {
            |args, info| Ok(text_or_null(descriptions::of_shared(system(info)?, oid_arg(args, 0)?, text_arg(args, 1)?)))
        }
        "pg_relation_is_publishable" => |_, _| Ok(Datum::Bool(false)),
        "pg_tablespace_location" => |_, _| Ok(Datum::text("")),
        "pg_encoding_to_char" => |args, _| {
            Ok(Datum::text(match args.first() {
                Some(Datum::I32(0)) => "SQL_ASCII",
                Some(Datum::I32(6)) => "UTF8",
                Some(Datum::I32(8)) => "LATIN1",
                _ => "",
            }))
        },
        "pg_char_to_encoding" => |args, _| {
            Ok(Datum::I32(match text_arg(args, 0)?.to_ascii_uppercase().replace('-', "").as_str() {
                "SQL_ASCII" => 0,
                "UTF8" | "UNICODE" => 6,
                "LATIN1" | "ISO88591" => 8,
                _ => -1,
            }))
        },
        "pg_filenode_relation" => |_, _| Ok(Datum::Null),
        "pg_relation_filenode" => |args, info| {
            let oid = oid_arg(args, 0)?;
            let stored = system(info)?.catalog.tables.contains_key(&ObjectId(oid));
            Ok(if stored { Datum::I64(i64::from(oid)) } else { Datum::Null })
        },
        _ => return None,
    })
}

/// Expressions rest as text, which is their `pg_node_tree` too.
pub(super) fn others() -> Vec<Other> {
    use DataType::{Array, Bool, Char, Oid, Text};
    vec![
        (1716, "pg_get_expr", vec![Text, Oid], Text, expression),
        (3943, "acldefault", vec![Char, Oid], Array(Box::new(Text)), |args, info| {
            super::super::acls::default_of(&system(info)?.catalog, args)
        }),
        (2509, "pg_get_expr", vec![Text, Oid, Bool], Text, expression),
    ]
}

fn expression(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let pretty = matches!(args.get(2), Some(Datum::Bool(true)));
    Ok(Datum::text(&definitions::node_text(system(info)?, text_arg(args, 0)?, pretty)))
}

fn type_name(oid: u32, typmod: Option<i32>, info: &CallInfo) -> Result<String> {
    let name = names::format_type(Scope::of(system(info)?), oid, typmod);
    Ok(name.unwrap_or_else(|| "???".to_string()))
}

/// The object of a name, null if there is none.
fn to_reg(ty: &DataType, args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let has_types = matches!(ty, DataType::Regprocedure | DataType::Regoperator);
    match names::oid_of(Scope::of(system(info)?), ty, text_arg(args, 0)?) {
        Ok(oid) => Ok(Datum::I64(i64::from(oid))),
        // The whole need not be there, types of arguments must.
        Err(error) => match error.sqlstate {
            "42883" | "42725" | "3F000" | "42P01" => Ok(Datum::Null),
            "42704" if !has_types => Ok(Datum::Null),
            _ => Err(error),
        },
    }
}

/// The table of an argument of type regclass, if it is one that has storage.
pub(super) fn stored_table<'a>(args: &[Datum], info: &'a CallInfo) -> Result<Option<relations::Relation<'a>>> {
    Ok(relations::by_oid(&system(info)?.catalog, oid_arg(args, 0)?))
}
