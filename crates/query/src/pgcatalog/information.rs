//! information_schema (SQL:2016 part 11, as PostgreSQL narrows it): what the session's database holds.

mod domains;
mod facets;
mod usage;

use super::definitions;
use super::indexes;
use super::relations::{self, Column, Relation};
use super::rows::{Rows, int4, opt_text, text, yes_no};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use crate::session::names::TEMP_PREFIX;
use basalt_engine::privilege::{AclKey, ObjectClass};
use basalt_engine::{CheckOption, SequenceDef, SequenceOwner, ViewDef};
use basalt_types::schema::ForeignKey;
use basalt_types::{ColumnId, DataType, Datum, ObjectId, TableDef};
use facets::{facets, numeric_shape};
use std::collections::BTreeSet;
use std::sync::Arc;

type Result = std::result::Result<(), SqlError>;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "information_schema_catalog_name" => catalog_name,
        "schemata" => schemata,
        "tables" => tables,
        "columns" => columns,
        "views" => views,
        "table_constraints" => table_constraints,
        "key_column_usage" => key_column_usage,
        "constraint_column_usage" => constraint_column_usage,
        "constraint_table_usage" => constraint_table_usage,
        "referential_constraints" => referential_constraints,
        "check_constraints" => check_constraints,
        "sequences" => sequences,
        "column_column_usage" => column_column_usage,
        "enabled_roles" => enabled_roles,
        "character_sets" => character_sets,
        _ => return domains::fill_of(name).or_else(|| usage::fill_of(name)),
    })
}

fn catalog(system: &SystemContext) -> Datum {
    text(&system.database)
}

fn schema(system: &SystemContext, namespace: ObjectId) -> Datum {
    opt_text(system.catalog.namespaces.get(&namespace).map(|namespace| namespace.name.as_str()))
}

fn catalog_name(system: &SystemContext, rows: &mut Rows) -> Result {
    rows.push([("catalog_name", catalog(system))])
}

fn schemata(system: &SystemContext, rows: &mut Rows) -> Result {
    for namespace in relations::namespaces(system) {
        rows.push([
            ("catalog_name", catalog(system)),
            ("schema_name", text(&namespace.name)),
            ("schema_owner", text(&namespace.owner)),
        ])?;
    }
    Ok(())
}

/// Tables and views that the user may do something with, virtual ones too.
fn listed(system: &SystemContext) -> impl Iterator<Item = Relation<'_>> {
    relations::all(system).filter(|relation| matches!(relation.kind(), "r" | "v") && is_seen(system, relation))
}

/// Whether the user owns a relation, or has a privilege on it or on one of its columns.
fn is_seen(system: &SystemContext, relation: &Relation) -> bool {
    let owner = match relation {
        Relation::Table(table) => &table.owner,
        Relation::View(view) => &view.owner,
        _ => return true,
    };
    let catalog = &system.catalog;
    let id = ObjectId(relation.oid());
    let of_column = |column| AclKey { class: ObjectClass::Column, object: id, column };
    *owner == system.user
        || catalog.privileges(&system.user, AclKey::of(ObjectClass::Table, id), owner).0 != 0
        || catalog
            .acls
            .columns_of(id)
            .any(|(column, _)| catalog.privileges(&system.user, of_column(column), owner).0 != 0)
}

/// Which columns of a relation the user owns, or has a privilege on.
fn column_filter<'a>(system: &'a SystemContext, relation: &Relation<'a>) -> impl Fn(i16) -> bool + 'a {
    let owner = match relation {
        Relation::Table(table) => Some(&table.owner),
        Relation::View(view) => Some(&view.owner),
        _ => None,
    };
    let object = ObjectId(relation.oid());
    let has = move |class: ObjectClass, column: i16, owner: &str| {
        let (has, may_grant) = system.catalog.privileges(&system.user, AclKey { class, object, column }, owner);
        // Who acts as the owner may grant what he has not.
        (has | may_grant) & ObjectClass::Column.all() != 0
    };
    let all = owner.is_none_or(|owner| has(ObjectClass::Table, 0, owner));
    move |column| all || owner.is_some_and(|owner| has(ObjectClass::Column, column, owner))
}

/// A type, or what a domain is over.
fn true_type(ty: &DataType) -> &DataType {
    match ty {
        DataType::Domain(domain) => &domain.base,
        ty => ty,
    }
}

fn tables(system: &SystemContext, rows: &mut Rows) -> Result {
    for relation in listed(system) {
        let view = relation.kind() == "v";
        rows.push([
            ("table_catalog", catalog(system)),
            ("table_schema", schema(system, relation.namespace())),
            ("table_name", text(relation.name())),
            (
                "table_type",
                text(match view {
                    true => "VIEW",
                    false if is_temporary(system, &relation) => "LOCAL TEMPORARY",
                    false => "BASE TABLE",
                }),
            ),
            ("is_insertable_into", yes_no(takes_rows(system, &relation))),
            ("is_typed", yes_no(false)),
            (
                "commit_action",
                match is_temporary(system, &relation) {
                    true => text("PRESERVE"),
                    false => Datum::Null,
                },
            ),
        ])?;
    }
    Ok(())
}

fn columns(system: &SystemContext, rows: &mut Rows) -> Result {
    for relation in listed(system) {
        let is_seen = column_filter(system, &relation);
        for column in relation.columns().iter().filter(|column| !column.dropped && is_seen(column.number)) {
            push_column(system, &relation, column, rows)?;
        }
    }
    Ok(())
}

fn push_column(system: &SystemContext, relation: &Relation, column: &Column, rows: &mut Rows) -> Result {
    // A domain shows as what it is over.
    let ty = true_type(&column.ty);
    let domain = if let DataType::Domain(domain) = &column.ty { Some(domain) } else { None };
    let is_not_null = column.not_null || domain.is_some_and(|domain| domain.not_null);
    let typmod = domain.map_or(column.typmod, |domain| domain.time_modifier.unwrap_or_else(|| ty.typmod()));
    let has_c = *ty == DataType::Name;
    let collation = |name: &str| if has_c { text(name) } else { Datum::Null };
    let expression = column.default.map(|kept| match relation {
        Relation::Table(table) => match table.columns.iter().find(|known| known.id.0 as i16 == column.number) {
            Some(known) => definitions::default_text(system, table, known, false),
            None => definitions::expression(system, kept),
        },
        _ => definitions::expression(system, kept),
    });
    let (default, generated) = if column.generated { (None, expression) } else { (expression, None) };
    let sequence = identity_sequence(system, relation, column);
    let number = |value: Option<i64>| value.map_or(Datum::Null, |value| text(&value.to_string()));
    let head = [
        ("table_catalog", catalog(system)),
        ("table_schema", schema(system, relation.namespace())),
        ("table_name", text(relation.name())),
        ("column_name", text(column.name)),
        ("ordinal_position", int4(i32::from(column.number))),
        ("column_default", default.map_or(Datum::Null, |default| text(&default))),
        ("is_nullable", yes_no(!is_not_null)),
        ("data_type", text(&type_name(ty))),
    ];
    let rest = [
        ("collation_catalog", if has_c { catalog(system) } else { Datum::Null }),
        ("collation_schema", collation("pg_catalog")),
        ("collation_name", collation("C")),
        ("domain_catalog", domain.map_or(Datum::Null, |_| catalog(system))),
        ("domain_schema", opt_text(domain.map(|domain| domain.schema.as_str()))),
        ("domain_name", opt_text(domain.map(|domain| domain.name.as_str()))),
        ("udt_catalog", catalog(system)),
        ("udt_schema", text(&udt_schema(ty))),
        ("udt_name", text(&udt_name(ty))),
        ("dtd_identifier", text(&column.number.to_string())),
        ("is_self_referencing", yes_no(false)),
        ("is_identity", yes_no(column.identity.is_some())),
        ("identity_generation", opt_text(column.identity.map(|always| if always { "ALWAYS" } else { "BY DEFAULT" }))),
        ("identity_start", number(sequence.map(|sequence| sequence.start))),
        ("identity_increment", number(sequence.map(|sequence| sequence.increment))),
        ("identity_maximum", number(sequence.map(|sequence| sequence.max))),
        ("identity_minimum", number(sequence.map(|sequence| sequence.min))),
        ("identity_cycle", yes_no(sequence.is_some_and(|sequence| sequence.cycle))),
        ("is_generated", text(if column.generated { "ALWAYS" } else { "NEVER" })),
        ("generation_expression", generated.map_or(Datum::Null, |generated| text(&generated))),
        ("is_updatable", yes_no(takes_values(system, relation, column.number))),
    ];
    rows.push(head.into_iter().chain(facets(ty, typmod)).chain(rest))
}

fn is_temporary(system: &SystemContext, relation: &Relation) -> bool {
    let namespace = system.catalog.namespaces.get(&relation.namespace());
    namespace.is_some_and(|namespace| namespace.name.starts_with(TEMP_PREFIX))
}

fn identity_sequence<'a>(
    system: &'a SystemContext,
    relation: &Relation,
    column: &Column,
) -> Option<&'a Arc<SequenceDef>> {
    let of = |owner: &SequenceOwner| owner.internal && i32::from(owner.column.0) == i32::from(column.number);
    column.identity?;
    system.catalog.sequences_of(ObjectId(relation.oid())).find(|sequence| sequence.owned_by.as_ref().is_some_and(of))
}

fn udt_schema(ty: &DataType) -> String {
    match ty.element().unwrap_or(ty) {
        DataType::Composite(def) => def.schema.clone(),
        DataType::Enum(def) => def.schema.clone(),
        DataType::Domain(def) => def.schema.clone(),
        _ => "pg_catalog".to_string(),
    }
}

/// The catalog's name of a type.
fn udt_name(ty: &DataType) -> String {
    match ty {
        DataType::Array(element) => format!("_{}", crate::bind::typname(element)),
        ty => crate::bind::typname(ty),
    }
}

/// The type without its modifier; arrays are all called ARRAY, types of users USER-DEFINED.
fn type_name(ty: &DataType) -> String {
    match ty {
        DataType::Array(_) => "ARRAY".to_string(),
        DataType::Composite(_) | DataType::Enum(_) | DataType::Domain(_) => "USER-DEFINED".to_string(),
        other => other.base().sql_name(),
    }
}

fn views(system: &SystemContext, rows: &mut Rows) -> Result {
    for view in relations::user_views(system) {
        rows.push([
            ("table_catalog", catalog(system)),
            ("table_schema", schema(system, view.namespace)),
            ("table_name", text(&view.name)),
            ("view_definition", text(&definitions::view_body(system, view))),
            ("check_option", text(check_option(view.check_option))),
            ("is_updatable", yes_no(is_updatable(system, view))),
            ("is_insertable_into", yes_no(is_updatable(system, view))),
            ("is_trigger_updatable", yes_no(false)),
            ("is_trigger_deletable", yes_no(false)),
            ("is_trigger_insertable_into", yes_no(false)),
        ])?;
    }
    Ok(())
}

fn check_option(option: CheckOption) -> &'static str {
    match option {
        CheckOption::None => "NONE",
        CheckOption::Local => "LOCAL",
        CheckOption::Cascaded => "CASCADED",
    }
}

/// Whether a view's rows are those of one table, through other views perhaps.
fn is_updatable(system: &SystemContext, view: &ViewDef) -> bool {
    let mut base = crate::bind::updatable_base(&view.sql);
    for _ in 0..VIEWS_DEEP_MAX {
        let Some(id) = base else { return false };
        match system.catalog.views.get(&id) {
            Some(view) => base = crate::bind::updatable_base(&view.sql),
            None => return true,
        }
    }
    false
}

/// Whether INSERT takes a relation.
fn takes_rows(system: &SystemContext, relation: &Relation) -> bool {
    match relation {
        Relation::Table(table) => table.materialized.is_none(),
        Relation::View(view) => is_updatable(system, view),
        _ => false,
    }
}

/// Whether UPDATE may set a column: through a view, if it is one of a table's.
fn takes_values(system: &SystemContext, relation: &Relation, number: i16) -> bool {
    let Relation::View(view) = relation else { return matches!(relation, Relation::Table(_)) };
    let (mut view, mut number) = (*view, number);
    for _ in 0..VIEWS_DEEP_MAX {
        let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let Some((base, columns)) = crate::bind::updatable_columns(&view.sql) else { return false };
        let Some(below) = columns.get(at).copied().flatten() else { return false };
        match system.catalog.views.get(&base) {
            Some(next) => (view, number) = (next, below),
            None => return true,
        }
    }
    false
}

/// Views on views that are followed.
const VIEWS_DEEP_MAX: usize = 64;

/// A constraint over columns: its table, name, kind, columns, and those of a foreign key's parent.
struct KeyUse<'a> {
    table: &'a TableDef,
    name: &'a str,
    kind: &'static str,
    columns: Vec<ColumnId>,
    deferrable: bool,
    deferred: bool,
    foreign: Option<&'a ForeignKey>,
}

fn keys(system: &SystemContext) -> impl Iterator<Item = KeyUse<'_>> {
    relations::user_tables(system).flat_map(|table| {
        let unique = indexes::of(table).filter_map(move |index| {
            let constraint = index.constraint()?;
            let ids = index.numbers().into_iter().take(index.key_columns());
            Some(KeyUse {
                table,
                name: index.name(),
                kind: if constraint.primary { "PRIMARY KEY" } else { "UNIQUE" },
                columns: ids.map(|number| ColumnId(number as u16)).collect(),
                deferrable: constraint.deferrable,
                deferred: constraint.deferred,
                foreign: None,
            })
        });
        let foreign = table.foreign_keys.iter().map(move |key| KeyUse {
            table,
            name: &key.name,
            kind: "FOREIGN KEY",
            columns: key.columns.clone(),
            deferrable: key.deferrable,
            deferred: key.initially_deferred,
            foreign: Some(key),
        });
        unique.chain(foreign)
    })
}

/// Position of each of a foreign key's columns in the key that it refers to, from 1.
fn referenced_position(system: &SystemContext, key: &ForeignKey, at: usize) -> Option<i32> {
    let parent = system.catalog.table(key.parent)?;
    let index = indexes::of(parent).find(|index| index.oid() == key.parent_index.0)?;
    let wanted = key.parent_columns.get(at)?.0 as i16;
    index.numbers().iter().position(|number| *number == wanted).map(|at| at as i32 + 1)
}

fn referential_constraints(system: &SystemContext, rows: &mut Rows) -> Result {
    for (table, key) in keys(system).filter_map(|used| Some((used.table, used.foreign?))) {
        let parent = system.catalog.table(key.parent);
        let index = parent.and_then(|parent| {
            indexes::of(parent).find(|index| index.oid() == key.parent_index.0 && index.constraint().is_some())
        });
        let unique_schema = index.and(parent).map_or(Datum::Null, |parent| schema(system, parent.namespace));
        rows.push([
            ("constraint_catalog", catalog(system)),
            ("constraint_schema", schema(system, table.namespace)),
            ("constraint_name", text(&key.name)),
            ("unique_constraint_catalog", index.map_or(Datum::Null, |_| catalog(system))),
            ("unique_constraint_schema", unique_schema),
            ("unique_constraint_name", opt_text(index.map(|index| index.name()))),
            ("match_option", text(if key.match_full { "FULL" } else { "NONE" })),
            ("update_rule", text(key.on_update.sql())),
            ("delete_rule", text(key.on_delete.sql())),
        ])?;
    }
    Ok(())
}

fn constraint_table_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for used in keys(system) {
        let of = match used.foreign {
            Some(key) => system.catalog.table(key.parent).map(|parent| &**parent),
            None => Some(used.table),
        };
        let Some(of) = of else { continue };
        rows.push([
            ("table_catalog", catalog(system)),
            ("table_schema", schema(system, of.namespace)),
            ("table_name", text(&of.name)),
            ("constraint_catalog", catalog(system)),
            ("constraint_schema", schema(system, used.table.namespace)),
            ("constraint_name", text(used.name)),
        ])?;
    }
    Ok(())
}

/// Primary keys, and each NOT NULL column as the check that PostgreSQL makes of it.
fn table_constraints(system: &SystemContext, rows: &mut Rows) -> Result {
    let mut push = |table: &TableDef, name: &str, kind: &str, deferrable: bool, deferred: bool| {
        let index = table.indexes.iter().find(|index| index.name == name);
        let nulls_distinct = index.filter(|_| kind == "UNIQUE").map(|index| !index.nulls_not_distinct);
        rows.push([
            ("constraint_catalog", catalog(system)),
            ("constraint_schema", schema(system, table.namespace)),
            ("constraint_name", text(name)),
            ("table_catalog", catalog(system)),
            ("table_schema", schema(system, table.namespace)),
            ("table_name", text(&table.name)),
            ("constraint_type", text(kind)),
            ("is_deferrable", yes_no(deferrable)),
            ("initially_deferred", yes_no(deferred)),
            ("enforced", yes_no(true)),
            ("nulls_distinct", nulls_distinct.map_or(Datum::Null, yes_no)),
        ])
    };
    for used in keys(system) {
        push(used.table, used.name, used.kind, used.deferrable, used.deferred)?;
    }
    for table in relations::user_tables(system) {
        for check in &table.checks {
            push(table, &check.name, "CHECK", false, false)?;
        }
        for column in table.live_columns().filter(|column| column.not_null) {
            let name = format!("{}_{}_{}_not_null", table.namespace.0, table.id.0, column.id.0);
            push(table, &name, "CHECK", false, false)?;
        }
    }
    Ok(())
}

fn key_column_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for used in keys(system) {
        let table = used.table;
        for (at, column) in used.columns.iter().enumerate() {
            let position = used.foreign.and_then(|key| referenced_position(system, key, at));
            rows.push([
                ("constraint_catalog", catalog(system)),
                ("constraint_schema", schema(system, table.namespace)),
                ("constraint_name", text(used.name)),
                ("table_catalog", catalog(system)),
                ("table_schema", schema(system, table.namespace)),
                ("table_name", text(&table.name)),
                ("column_name", text(&table.column(*column).name)),
                ("ordinal_position", int4(at as i32 + 1)),
                ("position_in_unique_constraint", position.map_or(Datum::Null, int4)),
            ])?;
        }
    }
    Ok(())
}

fn constraint_column_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for used in keys(system) {
        let (of, columns) = match used.foreign {
            Some(key) => (system.catalog.table(key.parent).map(|parent| &**parent), &key.parent_columns),
            None => (Some(used.table), &used.columns),
        };
        let Some(of) = of else { continue };
        for column in columns {
            rows.push([
                ("table_catalog", catalog(system)),
                ("table_schema", schema(system, of.namespace)),
                ("table_name", text(&of.name)),
                ("column_name", text(&of.column(*column).name)),
                ("constraint_catalog", catalog(system)),
                ("constraint_schema", schema(system, used.table.namespace)),
                ("constraint_name", text(used.name)),
            ])?;
        }
    }
    for table in relations::user_tables(system) {
        for check in &table.checks {
            for number in definitions::check_columns(system, table, check) {
                let Some(column) = table.columns.iter().find(|column| column.id.0 as i16 == number) else { continue };
                rows.push([
                    ("table_catalog", catalog(system)),
                    ("table_schema", schema(system, table.namespace)),
                    ("table_name", text(&table.name)),
                    ("column_name", text(&column.name)),
                    ("constraint_catalog", catalog(system)),
                    ("constraint_schema", schema(system, table.namespace)),
                    ("constraint_name", text(&check.name)),
                ])?;
            }
        }
    }
    Ok(())
}

/// Each once: tables may have constraints of one name and condition.
fn check_constraints(system: &SystemContext, rows: &mut Rows) -> Result {
    let mut all: BTreeSet<(ObjectId, String, String)> = BTreeSet::new();
    for table in relations::user_tables(system) {
        let checks = table.checks.iter().map(|check| {
            (check.name.clone(), format!("({})", definitions::check_text(system, table, &check.sql, false)))
        });
        let not_null = table.live_columns().filter(|column| column.not_null).map(|column| {
            let name = format!("{}_{}_{}_not_null", table.namespace.0, table.id.0, column.id.0);
            (name, format!("{} IS NOT NULL", column.name))
        });
        all.extend(checks.chain(not_null).map(|(name, clause)| (table.namespace, name, clause)));
    }
    all.extend(domains::checks(system));
    for (namespace, name, clause) in all {
        rows.push([
            ("constraint_catalog", catalog(system)),
            ("constraint_schema", schema(system, namespace)),
            ("constraint_name", text(&name)),
            ("check_clause", text(&clause)),
        ])?;
    }
    Ok(())
}

/// Identity columns' sequences are not listed, as in PostgreSQL.
fn sequences(system: &SystemContext, rows: &mut Rows) -> Result {
    let internal = |sequence: &SequenceDef| sequence.owned_by.is_some_and(|owner| owner.internal);
    for sequence in relations::user_sequences(system).filter(|sequence| !internal(sequence)) {
        let (precision, _, _) = numeric_shape(&sequence.ty);
        let number = |value: i64| text(&value.to_string());
        rows.push([
            ("sequence_catalog", catalog(system)),
            ("sequence_schema", schema(system, sequence.namespace)),
            ("sequence_name", text(&sequence.name)),
            ("data_type", text(&type_name(&sequence.ty))),
            ("numeric_precision", precision.map_or(Datum::Null, int4)),
            ("numeric_precision_radix", int4(2)),
            ("numeric_scale", int4(0)),
            ("start_value", number(sequence.start)),
            ("minimum_value", number(sequence.min)),
            ("maximum_value", number(sequence.max)),
            ("increment", number(sequence.increment)),
            ("cycle_option", yes_no(sequence.cycle)),
        ])?;
    }
    Ok(())
}

/// Which columns generated ones are computed from.
fn column_column_usage(system: &SystemContext, rows: &mut Rows) -> Result {
    for table in relations::user_tables(system) {
        for column in table.live_columns() {
            let Some(sql) = &column.generated else { continue };
            for number in definitions::generated_columns(system, table, column, sql) {
                let Some(from) = table.columns.iter().find(|from| from.id.0 as i16 == number) else { continue };
                rows.push([
                    ("table_catalog", catalog(system)),
                    ("table_schema", schema(system, table.namespace)),
                    ("table_name", text(&table.name)),
                    ("column_name", text(&from.name)),
                    ("dependent_column", text(&column.name)),
                ])?;
            }
        }
    }
    Ok(())
}

fn enabled_roles(system: &SystemContext, rows: &mut Rows) -> Result {
    let user = system.catalog.role_named(&system.user);
    let acts_as = user.map(|user| system.catalog.acts_as(user.id)).unwrap_or_default();
    let superuser = user.is_some_and(|role| role.superuser);
    for role in system.catalog.roles.values().filter(|role| superuser || acts_as.contains(&role.id)) {
        rows.push([("role_name", text(&role.name))])?;
    }
    Ok(())
}

fn character_sets(system: &SystemContext, rows: &mut Rows) -> Result {
    rows.push([
        ("character_set_name", text("UTF8")),
        ("character_repertoire", text("UCS")),
        ("form_of_use", text("UTF8")),
        ("default_collate_catalog", catalog(system)),
    ])
}
