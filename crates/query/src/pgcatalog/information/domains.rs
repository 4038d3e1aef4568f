//! information_schema's views of domains, types of users, and of what is declared of which type.

use super::facets::facets;
use super::{Result, catalog, is_seen, listed, schema, true_type, type_name, udt_name, udt_schema};
use crate::pgcatalog::relations::{self, Relation};
use crate::pgcatalog::rows::{Rows, int4, opt_text, text, yes_no};
use crate::pgcatalog::{Fill, SystemContext, definitions};
use basalt_engine::privilege::{AclItem, AclKey, ObjectClass, USAGE};
use basalt_engine::{TypeDef, TypeKind};
use basalt_types::{DataType, DomainCheck, ObjectId};
use std::sync::Arc;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "domains" => domains,
        "domain_constraints" => domain_constraints,
        "column_domain_usage" => column_domain_usage,
        "domain_udt_usage" => domain_udt_usage,
        "column_udt_usage" => column_udt_usage,
        "element_types" => element_types,
        "attributes" => attributes,
        "user_defined_types" => user_defined_types,
        "usage_privileges" => usage_privileges,
        "udt_privileges" => udt_privileges,
        _ => return None,
    })
}

/// A domain's definition and its parts.
struct Domain<'a> {
    def: &'a Arc<TypeDef>,
    base: &'a DataType,
    default: Option<&'a str>,
    typmod: i32,
    checks: &'a [DomainCheck],
}

fn types(system: &SystemContext) -> impl Iterator<Item = &Arc<TypeDef>> {
    let here = relations::database_oid(system);
    system.catalog.types.values().filter(move |def| {
        system.catalog.namespaces.get(&def.namespace).is_some_and(|namespace| namespace.database == here)
    })
}

fn all(system: &SystemContext) -> impl Iterator<Item = Domain<'_>> {
    types(system).filter_map(|def| match &def.kind {
        TypeKind::Domain { base, checks, default, time_modifier, .. } => Some(Domain {
            def,
            base,
            default: default.as_deref(),
            typmod: time_modifier.unwrap_or_else(|| base.typmod()),
            checks,
        }),
        _ => None,
    })
}

fn domains(system: &SystemContext, rows: &mut Rows) -> Result {
    for domain in all(system) {
        let ty = domain.base;
        let default = domain.default.map(|sql| definitions::domain_default_text(system, ty, sql));
        // Of arrays this view has the name, where columns' has ARRAY.
        let shown = match ty {
            DataType::Array(_) => ty.base().sql_name().to_string(),
            ty => type_name(ty),
        };
        let head = [
            ("domain_catalog", catalog(system)),
            ("domain_schema", schema(system, domain.def.namespace)),
            ("domain_name", text(&domain.def.name)),
            ("data_type", text(&shown)),
        ];
        let rest = [
            ("domain_default", opt_text(default.as_deref())),
            ("udt_catalog", catalog(system)),
            ("udt_schema", text(&udt_schema(ty))),
            ("udt_name", text(&udt_name(ty))),
            ("dtd_identifier", text("1")),
        ];
        rows.push(head.into_iter().chain(facets(ty, domain.typmod)).chain(rest))?;
    }
    Ok(())
}

fn domain_constraints(system: &SystemContext, rows: &mut Rows) -> Result {
    for domain in all(system) {
        for check in domain.checks {
            rows.push([
                ("constraint_catalog", catalog(system)),
                ("constraint_schema", schema(system, domain.def.namespace)),
                ("constraint_name", text(&check.name)),
                ("domain_catalog", catalog(system)),
                ("domain_schema", schema(system, domain.def.namespace)),
                ("domain_name", text(&domain.def.name)),
                ("is_deferrable", yes_no(false)),
                ("initially_deferred", yes_no(false)),
            ])?;
        }
    }
    Ok(())
}

/// Names and conditions of domains' checks, with their schemas.
pub(super) fn checks(system: &SystemContext) -> Vec<(ObjectId, String, String)> {
    let of = |domain: Domain| {
        let clause = |check: &DomainCheck| definitions::domain_check_text(system, domain.base, &check.sql, false);
        let checks = domain.checks.iter();
        checks
            .map(|check| (domain.def.namespace, check.name.clone(), format!("({})", clause(check))))
            .collect::<Vec<_>>()
    };
    all(system).flat_map(of).collect()
}

fn column_domain_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for relation in listed(system) {
        for column in relation.columns().iter().filter(|column| !column.dropped) {
            let DataType::Domain(domain) = &column.ty else { continue };
            rows.push([
                ("domain_catalog", catalog(system)),
                ("domain_schema", text(&domain.schema)),
                ("domain_name", text(&domain.name)),
                ("table_catalog", catalog(system)),
                ("table_schema", schema(system, relation.namespace())),
                ("table_name", text(relation.name())),
                ("column_name", text(column.name)),
            ])?;
        }
    }
    Ok(())
}

fn domain_udt_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for domain in all(system) {
        rows.push([
            ("udt_catalog", catalog(system)),
            ("udt_schema", text(&udt_schema(domain.base))),
            ("udt_name", text(&udt_name(domain.base))),
            ("domain_catalog", catalog(system)),
            ("domain_schema", schema(system, domain.def.namespace)),
            ("domain_name", text(&domain.def.name)),
        ])?;
    }
    Ok(())
}

fn column_udt_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for relation in listed(system) {
        for column in relation.columns().iter().filter(|column| !column.dropped) {
            let ty = true_type(&column.ty);
            rows.push([
                ("udt_catalog", catalog(system)),
                ("udt_schema", text(&udt_schema(ty))),
                ("udt_name", text(&udt_name(ty))),
                ("table_catalog", catalog(system)),
                ("table_schema", schema(system, relation.namespace())),
                ("table_name", text(relation.name())),
                ("column_name", text(column.name)),
            ])?;
        }
    }
    Ok(())
}

/// Arrays: of columns, of domains over arrays, of attributes.
fn element_types(system: &SystemContext, rows: &mut Rows) -> Result {
    let mut push = |namespace: ObjectId, name: &str, kind: &str, id: i16, ty: &DataType| {
        let DataType::Array(element) = true_type(ty) else { return Ok(()) };
        rows.push([
            ("object_catalog", catalog(system)),
            ("object_schema", schema(system, namespace)),
            ("object_name", text(name)),
            ("object_type", text(kind)),
            ("collection_type_identifier", text(&id.to_string())),
            ("data_type", text(&type_name(element))),
            ("udt_catalog", catalog(system)),
            ("udt_schema", text(&udt_schema(element))),
            ("udt_name", text(&udt_name(element))),
            ("dtd_identifier", text(&format!("a{id}"))),
        ])
    };
    for relation in listed(system) {
        for column in relation.columns().iter().filter(|column| !column.dropped) {
            push(relation.namespace(), relation.name(), "TABLE", column.number, &column.ty)?;
        }
    }
    for domain in all(system) {
        push(domain.def.namespace, &domain.def.name, "DOMAIN", 1, domain.base)?;
    }
    for def in types(system) {
        let TypeKind::Composite(attributes) = &def.kind else { continue };
        for (at, attribute) in attributes.iter().enumerate().filter(|(_, attribute)| !attribute.dropped) {
            push(def.namespace, &def.name, "USER-DEFINED TYPE", at as i16 + 1, &attribute.ty)?;
        }
    }
    Ok(())
}

fn attributes(system: &SystemContext, rows: &mut Rows) -> Result {
    for def in types(system) {
        let TypeKind::Composite(attributes) = &def.kind else { continue };
        for (at, attribute) in attributes.iter().enumerate().filter(|(_, attribute)| !attribute.dropped) {
            let ty = true_type(&attribute.ty);
            let typmod = attribute.time_modifier.unwrap_or_else(|| ty.typmod());
            let is_not_null = matches!(&attribute.ty, DataType::Domain(domain) if domain.not_null);
            let head = [
                ("udt_catalog", catalog(system)),
                ("udt_schema", schema(system, def.namespace)),
                ("udt_name", text(&def.name)),
                ("attribute_name", text(&attribute.name)),
                ("ordinal_position", int4(at as i32 + 1)),
                ("is_nullable", yes_no(!is_not_null)),
                ("data_type", text(&type_name(ty))),
            ];
            let rest = [
                ("attribute_udt_catalog", catalog(system)),
                ("attribute_udt_schema", text(&udt_schema(ty))),
                ("attribute_udt_name", text(&udt_name(ty))),
                ("dtd_identifier", text(&(at + 1).to_string())),
                ("is_derived_reference_attribute", yes_no(false)),
            ];
            rows.push(head.into_iter().chain(facets(ty, typmod)).chain(rest))?;
        }
    }
    Ok(())
}

fn user_defined_types(system: &SystemContext, rows: &mut Rows) -> Result {
    for def in types(system).filter(|def| matches!(def.kind, TypeKind::Composite(_))) {
        rows.push([
            ("user_defined_type_catalog", catalog(system)),
            ("user_defined_type_schema", schema(system, def.namespace)),
            ("user_defined_type_name", text(&def.name)),
            ("user_defined_type_category", text("STRUCTURED")),
            ("is_instantiable", yes_no(true)),
        ])?;
    }
    Ok(())
}

/// Who may use what; as PostgreSQL, sequences only where somebody granted it.
fn usage_privileges(system: &SystemContext, rows: &mut Rows) -> Result {
    let mut push = |namespace: ObjectId, name: &str, kind: &str, items: &[AclItem], owner: &str| {
        for grant in super::super::acls::grants(system, items, owner, USAGE, true) {
            rows.push([
                ("grantor", text(&grant.grantor)),
                ("grantee", text(&grant.grantee)),
                ("object_catalog", catalog(system)),
                ("object_schema", schema(system, namespace)),
                ("object_name", text(name)),
                ("object_type", text(kind)),
                ("privilege_type", text("USAGE")),
                ("is_grantable", yes_no(grant.grantable)),
            ])?;
        }
        Ok::<(), crate::error::SqlError>(())
    };
    for domain in all(system) {
        let items = system.catalog.acl(AclKey::of(ObjectClass::Type, domain.def.id), &domain.def.owner);
        push(domain.def.namespace, &domain.def.name, "DOMAIN", &items, &domain.def.owner)?;
    }
    for sequence in relations::user_sequences(system) {
        let granted = system.catalog.acls.get(AclKey::of(ObjectClass::Sequence, sequence.id));
        if let Some(items) = granted {
            push(sequence.namespace, &sequence.name, "SEQUENCE", items, &sequence.owner)?;
        }
    }
    Ok(())
}

/// Of types with attributes: those of tables and views are among them.
fn udt_privileges(system: &SystemContext, rows: &mut Rows) -> Result {
    let mut push = |namespace: ObjectId, name: &str, items: &[AclItem], owner: &str| {
        for grant in super::super::acls::grants(system, items, owner, USAGE, true) {
            rows.push([
                ("grantor", text(&grant.grantor)),
                ("grantee", text(&grant.grantee)),
                ("udt_catalog", catalog(system)),
                ("udt_schema", schema(system, namespace)),
                ("udt_name", text(name)),
                ("privilege_type", text("TYPE USAGE")),
                ("is_grantable", yes_no(grant.grantable)),
            ])?;
        }
        Ok::<(), crate::error::SqlError>(())
    };
    for def in types(system).filter(|def| matches!(def.kind, TypeKind::Composite(_))) {
        let items = system.catalog.acl(AclKey::of(ObjectClass::Type, def.id), &def.owner);
        push(def.namespace, &def.name, &items, &def.owner)?;
    }
    for relation in listed(system).filter(|relation| is_seen(system, relation)) {
        let owner = match &relation {
            Relation::Table(table) => &table.owner,
            Relation::View(view) => &view.owner,
            _ => continue,
        };
        let items = system.catalog.acl(AclKey::of(ObjectClass::Type, ObjectId(relation.oid())), owner);
        push(relation.namespace(), relation.name(), &items, owner)?;
    }
    Ok(())
}
