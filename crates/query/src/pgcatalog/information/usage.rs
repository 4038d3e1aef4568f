//! information_schema's views of what views read, of roles in roles, and of collations.

use super::{Result, catalog, schema};
use crate::bind::{self, Needs, ParamTypes};
use crate::pgcatalog::relations::{self, Relation};
use crate::pgcatalog::rows::{Rows, text, yes_no};
use crate::pgcatalog::{Fill, SystemContext, definitions, rewrite};
use basalt_engine::ViewDef;
use basalt_types::ObjectId;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "view_table_usage" => view_table_usage,
        "view_column_usage" => view_column_usage,
        "applicable_roles" => |system, rows| role_members(system, rows, false),
        "administrable_role_authorizations" => |system, rows| role_members(system, rows, true),
        "collations" => collations,
        "collation_character_set_applicability" => collation_sets,
        _ => return None,
    })
}

/// A table or view, not a sequence.
fn table_or_view(system: &SystemContext, id: ObjectId) -> Option<(ObjectId, String)> {
    match relations::by_oid(&system.catalog, id.0)? {
        Relation::Table(table) => Some((table.namespace, table.name.clone())),
        Relation::View(view) => Some((view.namespace, view.name.clone())),
        _ => None,
    }
}

fn view_table_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for view in relations::user_views(system) {
        for (namespace, name) in rewrite::relations_of(view).into_iter().filter_map(|id| table_or_view(system, id)) {
            rows.push([
                ("view_catalog", catalog(system)),
                ("view_schema", schema(system, view.namespace)),
                ("view_name", text(&view.name)),
                ("table_catalog", catalog(system)),
                ("table_schema", schema(system, namespace)),
                ("table_name", text(&name)),
            ])?;
        }
    }
    Ok(())
}

/// Relations and numbers of their columns that a view's own text reads.
fn columns_read(system: &SystemContext, view: &ViewDef) -> BTreeSet<(ObjectId, i16)> {
    let needs = Arc::new(Mutex::new(Needs::of(false, "")));
    let ctx = bind::BindContext { needs: Some(needs.clone()), ..definitions::bind_context(system) };
    let mut read = BTreeSet::new();
    if let Ok(query) = bind::parse_query(&view.sql) {
        let _ = bind::bind_query(&ctx, &query, &mut ParamTypes::none());
        let needs = needs.lock();
        for need in needs.list.iter().filter(|need| need.level == 0) {
            read.extend(need.columns_read(&needs.used).into_iter().map(|number| (need.relation, number)));
        }
    }
    read
}

fn view_column_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for view in relations::user_views(system) {
        for (id, number) in columns_read(system, view) {
            let Some((namespace, name)) = table_or_view(system, id) else { continue };
            let Some(relation) = relations::by_oid(&system.catalog, id.0) else { continue };
            let columns = relation.columns();
            let Some(column) = columns.iter().find(|column| column.number == number && !column.dropped) else {
                continue;
            };
            rows.push([
                ("view_catalog", catalog(system)),
                ("view_schema", schema(system, view.namespace)),
                ("view_name", text(&view.name)),
                ("table_catalog", catalog(system)),
                ("table_schema", schema(system, namespace)),
                ("table_name", text(&name)),
                ("column_name", text(column.name)),
            ])?;
        }
    }
    Ok(())
}

/// Grants of roles to roles that the user is in.
fn role_members(system: &SystemContext, rows: &mut Rows, only_admin: bool) -> Result {
    let catalog = &system.catalog;
    let user = catalog.role_named(&system.user);
    let is_in = |id: ObjectId| user.is_some_and(|user| user.superuser || catalog.acts_as(user.id).contains(&id));
    for member in catalog.roles.values().filter(|role| is_in(role.id)) {
        for membership in member.member_of.iter().filter(|membership| membership.admin || !only_admin) {
            let Some(of) = catalog.roles.get(&membership.role) else { continue };
            rows.push([
                ("grantee", text(&member.name)),
                ("role_name", text(&of.name)),
                ("is_grantable", yes_no(membership.admin)),
            ])?;
        }
    }
    Ok(())
}

const COLLATIONS: [&str; 4] = ["default", "C", "POSIX", "ucs_basic"];

fn collations(system: &SystemContext, rows: &mut Rows) -> Result {
    each_collation(system, rows, ("pad_attribute", "NO PAD"))
}

fn collation_sets(system: &SystemContext, rows: &mut Rows) -> Result {
    each_collation(system, rows, ("character_set_name", "UTF8"))
}

/// A row for each collation, with what all of them have in one more column.
fn each_collation(system: &SystemContext, rows: &mut Rows, (column, value): (&str, &str)) -> Result {
    for name in COLLATIONS {
        rows.push([
            ("collation_catalog", catalog(system)),
            ("collation_schema", text("pg_catalog")),
            ("collation_name", text(name)),
            (column, text(value)),
        ])?;
    }
    Ok(())
}
