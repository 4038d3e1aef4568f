//! Types that users define, and the types of tables' rows, in the system catalogs: `pg_type`, `pg_enum`, the
//! constraints of domains, and their names in text.

use super::names::Scope;
use super::relations;
use super::rows::{Rows, float4, int2, int4, oid, opt_text, text, yes};
use super::typing;
use super::{Fill, SystemContext, acls};
use crate::error::SqlError;
use crate::session::names::quote_identifier;
use basalt_engine::privilege::ObjectClass;
use basalt_engine::{TypeDef, TypeKind};
use basalt_types::usertype::{array_oid, row_type_oid};
use basalt_types::{DataType, Datum, DomainCheck, ObjectId};
use std::sync::Arc;

type Result = std::result::Result<(), SqlError>;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "pg_enum" => pg_enum,
        _ => return None,
    })
}

pub(super) fn in_database(system: &SystemContext) -> impl Iterator<Item = &Arc<TypeDef>> {
    let database = relations::database_oid(system);
    system.catalog.types.values().filter(move |def| {
        let namespace = system.catalog.namespaces.get(&def.namespace);
        namespace.is_some_and(|namespace| namespace.database == database)
    })
}

/// Composite types, which have rows in `pg_class` too.
pub(super) fn composites(system: &SystemContext) -> impl Iterator<Item = &Arc<TypeDef>> {
    in_database(system).filter(|def| matches!(def.kind, TypeKind::Composite(_)))
}

/// What a row of `pg_type` says beside what all types of its kind have alike.
struct TypeRow<'a> {
    id: u32,
    name: &'a str,
    namespace: ObjectId,
    owner: u32,
    relation: u32,
    ty: DataType,
}

/// The types themselves, each followed by its arrays.
pub(super) fn types(system: &SystemContext, rows: &mut Rows) -> Result {
    let catalog = &system.catalog;
    for table in relations::user_tables(system) {
        let row = TypeRow {
            id: row_type_oid(table.id),
            name: &table.name,
            namespace: table.namespace,
            owner: relations::role_oid(catalog, &table.owner),
            relation: table.id.0,
            ty: DataType::Composite(catalog.row_type(table)),
        };
        put(system, &row, rows)?;
    }
    for view in relations::user_views(system) {
        let row = TypeRow {
            id: row_type_oid(view.id),
            name: &view.name,
            namespace: view.namespace,
            owner: relations::role_oid(catalog, &view.owner),
            relation: view.id.0,
            ty: DataType::Composite(catalog.view_row_type(view)),
        };
        put(system, &row, rows)?;
    }
    for def in in_database(system) {
        let row = TypeRow {
            id: def.id.0,
            name: &def.name,
            namespace: def.namespace,
            owner: relations::role_oid(catalog, &def.owner),
            relation: if matches!(def.kind, TypeKind::Composite(_)) { def.id.0 } else { 0 },
            ty: catalog.data_type(def),
        };
        put(system, &row, rows)?;
    }
    Ok(())
}

fn put(system: &SystemContext, row: &TypeRow, rows: &mut Rows) -> Result {
    let base = match &row.ty {
        DataType::Domain(domain) => Some(domain),
        _ => None,
    };
    let default = base.and_then(|domain| {
        let sql = domain.default.as_deref()?;
        Some(super::definitions::domain_default_text(system, &domain.base, sql))
    });
    let fact = typing::fact(row.ty.underlying().oid());
    let (kind, category, input) = match &row.ty {
        DataType::Domain(domain) => ("d", fact.map_or(category_of(&domain.base), |fact| fact.category), 2597),
        DataType::Enum(_) => ("e", "E", 3506),
        _ => ("c", "C", 2290),
    };
    let (output, receive, send) = match &row.ty {
        DataType::Domain(_) => {
            (fact.map_or(0, |fact| fact.functions[1].0), 2598, fact.map_or(0, |fact| fact.functions[3].0))
        }
        DataType::Enum(_) => (3507, 3532, 3533),
        _ => (2291, 2402, 2403),
    };
    let (len, by_value, align, storage) = match &row.ty {
        DataType::Enum(_) => (4, true, "i", "p"),
        DataType::Domain(_) => {
            fact.map_or((-1, false, "i", "x"), |fact| (fact.len, fact.by_value, fact.align, fact.storage))
        }
        _ => (-1, false, "d", "x"),
    };
    rows.push([
        ("oid", oid(row.id)),
        ("typname", text(row.name)),
        ("typnamespace", oid(row.namespace.0)),
        ("typowner", oid(row.owner)),
        ("typlen", int2(len)),
        ("typbyval", yes(by_value)),
        ("typtype", text(kind)),
        ("typcategory", text(category)),
        ("typispreferred", yes(false)),
        ("typisdefined", yes(true)),
        ("typdelim", text(",")),
        ("typrelid", oid(row.relation)),
        ("typsubscript", oid(0)),
        ("typelem", oid(0)),
        ("typarray", oid(array_oid(row.id))),
        ("typinput", oid(input)),
        ("typoutput", oid(output)),
        ("typreceive", oid(receive)),
        ("typsend", oid(send)),
        ("typmodin", oid(0)),
        ("typmodout", oid(0)),
        ("typanalyze", oid(0)),
        ("typalign", text(align)),
        ("typstorage", text(storage)),
        ("typnotnull", yes(base.is_some_and(|domain| domain.not_null))),
        ("typbasetype", oid(base.map_or(0, |domain| domain.base.oid()))),
        ("typtypmod", int4(base.map_or(-1, |domain| domain.time_modifier.unwrap_or_else(|| domain.base.typmod())))),
        ("typndims", int4(i32::from(base.is_some_and(|domain| matches!(domain.base, DataType::Array(_)))))),
        ("typcollation", oid(fact.filter(|_| base.is_some()).map_or(0, |fact| fact.collation))),
        ("typdefaultbin", opt_text(default.as_deref())),
        ("typdefault", opt_text(default.as_deref())),
        ("typacl", acls::of(&system.catalog, ObjectClass::Type, ObjectId(row.id), 0)),
    ])?;
    rows.push([
        ("oid", oid(array_oid(row.id))),
        ("typname", text(&format!("_{}", row.name))),
        ("typnamespace", oid(row.namespace.0)),
        ("typowner", oid(row.owner)),
        ("typlen", int2(-1)),
        ("typbyval", yes(false)),
        ("typtype", text("b")),
        ("typcategory", text("A")),
        ("typispreferred", yes(false)),
        ("typisdefined", yes(true)),
        ("typdelim", text(",")),
        ("typrelid", oid(0)),
        ("typsubscript", oid(6179)),
        ("typelem", oid(row.id)),
        ("typarray", oid(0)),
        ("typinput", oid(750)),
        ("typoutput", oid(751)),
        ("typreceive", oid(2400)),
        ("typsend", oid(2401)),
        ("typmodin", oid(0)),
        ("typmodout", oid(0)),
        ("typanalyze", oid(3816)),
        ("typalign", text(if align == "d" { "d" } else { "i" })),
        ("typstorage", text("x")),
        ("typnotnull", yes(false)),
        ("typbasetype", oid(0)),
        ("typtypmod", int4(-1)),
        ("typndims", int4(0)),
        ("typcollation", oid(0)),
        ("typdefaultbin", Datum::Null),
    ])
}

fn category_of(ty: &DataType) -> &'static str {
    match ty.underlying() {
        DataType::Enum(_) => "E",
        DataType::Composite(_) => "C",
        DataType::Array(_) => "A",
        _ => "U",
    }
}

fn pg_enum(system: &SystemContext, rows: &mut Rows) -> Result {
    for def in in_database(system) {
        let TypeKind::Enum(labels) = &def.kind else { continue };
        for label in labels {
            rows.push([
                ("oid", oid(label.oid)),
                ("enumtypid", oid(def.id.0)),
                ("enumsortorder", float4(label.sort_order)),
                ("enumlabel", text(&label.label)),
            ])?;
        }
    }
    Ok(())
}

/// The rows of `pg_constraint` for domains.
pub(super) fn constraints(system: &SystemContext, rows: &mut Rows) -> Result {
    for def in in_database(system) {
        let TypeKind::Domain { checks, .. } = &def.kind else { continue };
        for check in checks {
            rows.push([
                ("oid", oid(check.oid)),
                ("conname", text(&check.name)),
                ("connamespace", oid(def.namespace.0)),
                ("contype", text("c")),
                ("condeferrable", yes(false)),
                ("condeferred", yes(false)),
                ("convalidated", yes(!check.not_valid)),
                ("conrelid", oid(0)),
                ("contypid", oid(def.id.0)),
                ("conindid", oid(0)),
                ("conparentid", oid(0)),
                ("confrelid", oid(0)),
                ("confupdtype", text(" ")),
                ("confdeltype", text(" ")),
                ("confmatchtype", text(" ")),
                ("conislocal", yes(true)),
                ("coninhcount", int4(0)),
                ("connoinherit", yes(false)),
                ("conbin", text(&super::definitions::Node::Check(check.oid).text())),
            ])?;
        }
    }
    Ok(())
}

/// `CHECK (…)` of a domain's constraint.
pub(super) fn constraint_text(system: &SystemContext, constraint: u32, pretty: bool) -> Option<String> {
    let (base, check) = check_of(system, constraint)?;
    Some(format!(
        "CHECK ({}){}",
        super::definitions::domain_check_text(system, base, &check.sql, pretty),
        if check.not_valid { " NOT VALID" } else { "" }
    ))
}

/// The condition of a domain's constraint.
pub(super) fn check_text(system: &SystemContext, constraint: u32, pretty: bool) -> Option<String> {
    let (base, check) = check_of(system, constraint)?;
    Some(super::definitions::domain_check_text(system, base, &check.sql, pretty))
}

fn check_of(system: &SystemContext, constraint: u32) -> Option<(&DataType, &DomainCheck)> {
    in_database(system).find_map(|def| match &def.kind {
        TypeKind::Domain { checks, base, .. } => {
            checks.iter().find(|check| check.oid == constraint).map(|check| (base, check))
        }
        _ => None,
    })
}

/// The name of a user's type as it must be written here: qualified unless the search path finds it.
pub(super) fn format_type(scope: Scope, id: u32) -> Option<String> {
    match scope.catalog.type_of_oid(id)? {
        DataType::Array(element) => Some(format!("{}[]", format_type(scope, element.oid())?)),
        ty => {
            let (schema, name) = schema_and_name(&ty)?;
            let is_visible = oid_of(scope, std::slice::from_ref(&name)) == Some(id);
            let name = quote_identifier(&name);
            Some(if is_visible { name } else { format!("{}.{name}", quote_identifier(&schema)) })
        }
    }
}

fn schema_and_name(ty: &DataType) -> Option<(String, String)> {
    Some(match ty {
        DataType::Composite(def) if !def.is_anonymous() => (def.schema.clone(), def.name.clone()),
        DataType::Enum(def) => (def.schema.clone(), def.name.clone()),
        DataType::Domain(def) => (def.schema.clone(), def.name.clone()),
        _ => return None,
    })
}

/// Whether an unqualified name means the type; `None` if there is no such type of a user.
pub(super) fn is_visible(scope: Scope, id: u32) -> Option<bool> {
    let ty = scope.catalog.type_of_oid(id)?;
    let (_, name) = schema_and_name(ty.element().unwrap_or(&ty))?;
    let name = if ty.element().is_some() { format!("_{name}") } else { name };
    Some(oid_of(scope, &[name]) == Some(id))
}

/// The user's type, or the type of a relation's rows, that a dotted name means.
pub(super) fn oid_of(scope: Scope, parts: &[String]) -> Option<u32> {
    let named = |schema: &str, name: &str| {
        let namespace = scope.catalog.namespace_named(scope.database, schema)?;
        scope.catalog.type_named(namespace.id, name)
    };
    let found = match parts {
        [name] => scope.path().find_map(|schema| named(schema, name)),
        [schema, name] | [_, schema, name] => named(schema, name),
        _ => None,
    };
    found.map(|ty| ty.oid())
}
