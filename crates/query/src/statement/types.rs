//! CREATE, ALTER, DROP and COMMENT ON of types and domains.

use super::define::{skipped, skipping};
use super::resolve;
use crate::bind::{self, pinned};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::statement::type_users::{self, TypeUse};
use crate::syntax::{
    AttributeAction, AttributeClause, DomainAction, DomainRule, Name, Neighbor, TypeAction, TypeCommand,
};
use basalt_engine::{Catalog, CatalogEdit, CommentKey, TypeDef, TypeKind};
use basalt_types::{Attribute, DataType, DomainCheck, EnumLabel, ObjectId, Revision};
use sqlparser::ast;
use std::sync::Arc;

const LABEL_BYTES_MAX: usize = 63;
const ATTRIBUTES_MAX: usize = 1600;
/// Oids of the catalogs that comments are about.
const PG_TYPE: u32 = 1247;
const PG_CONSTRAINT: u32 = 2606;

pub(crate) async fn run(session: &mut Session, command: &TypeCommand, sql: &Arc<str>) -> Result<()> {
    match command {
        TypeCommand::CreateComposite { name, attributes } => create_composite(session, name, attributes, sql),
        TypeCommand::CreateEnum { name, labels } => create_enum(session, name, labels),
        TypeCommand::CreateDomain { name, base, default, rules } => {
            create_domain(session, name, base, default.as_deref(), rules, sql)
        }
        TypeCommand::Alter { name, domain, action } => alter(session, name, *domain, action, sql).await,
        TypeCommand::Drop { names, domain, if_exists, cascade } => {
            drop(session, names, *domain, *if_exists, *cascade).await
        }
        TypeCommand::Comment { name, domain, text } => {
            let object = match find(session, name)? {
                Some(Found::Other(DataType::Composite(row))) if !domain => ObjectId(row.oid),
                _ => owned(session, name, *domain)?.id,
            };
            set_comment(session, PG_TYPE, object, text)
        }
        TypeCommand::CommentConstraint { constraint, domain, text } => {
            let def = owned(session, domain, true)?;
            let TypeKind::Domain { checks, .. } = &def.kind else { return Err(no_constraint(constraint, &def.name)) };
            let check = checks.iter().find(|check| check.name == *constraint);
            let check = check.ok_or_else(|| no_constraint(constraint, &def.name))?;
            set_comment(session, PG_CONSTRAINT, ObjectId(check.oid), text)
        }
    }
}

fn set_comment(session: &mut Session, class: u32, object: ObjectId, text: &Option<String>) -> Result<()> {
    let text = text.clone().filter(|text| !text.is_empty());
    let key = CommentKey { class, object, part: 0 };
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::SetComment { key, text }])?)
}

fn put(session: &mut Session, def: TypeDef) -> Result<()> {
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutType(Arc::new(def))])?)
}

/// The new type's definition without its kind: 42710 if the name is taken, 42P07 by a relation.
fn create(session: &mut Session, name: &Name, kind: TypeKind) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let namespace = resolve::creation_namespace(session, &catalog, name)?;
    check_free(&catalog, namespace.id, &name.name)?;
    let def = TypeDef {
        id: session.db.engine().next_object_id(),
        namespace: namespace.id,
        name: name.name.clone(),
        owner: session.user.clone(),
        kind,
        revision: Revision::NEW,
    };
    put(session, def)
}

fn check_free(catalog: &Catalog, namespace: ObjectId, name: &str) -> Result<()> {
    let is_taken = catalog.type_def_named(namespace, name).is_some()
        || catalog.table_named(namespace, name).is_some()
        || catalog.view_named(namespace, name).is_some();
    match is_taken {
        true => Err(SqlError::new("42710", format!("type \"{name}\" already exists"))),
        false => Ok(()),
    }
}

/// 42710 (42P07 for a composite type) if a new relation's name is that of a type.
pub(crate) fn check_relation_name(catalog: &Catalog, namespace: ObjectId, name: &str) -> Result<()> {
    match catalog.type_def_named(namespace, name).map(|def| &def.kind) {
        None => Ok(()),
        Some(TypeKind::Composite(_)) => {
            Err(SqlError::new("42P07", format!("relation \"{name}\" already exists")))
        }
        Some(_) => Err(SqlError::new("42710", format!("type \"{name}\" already exists")).with_hint(
            "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.",
        )),
    }
}

fn bind_type(session: &mut Session, ty: &ast::DataType, sql: &Arc<str>) -> Result<(DataType, Option<i32>)> {
    let catalog = session.txn()?.catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    bind::bind_column_type(&session.bind_context(&catalog, sql, &eval), ty)
}

fn create_composite(session: &mut Session, name: &Name, clauses: &[AttributeClause], sql: &Arc<str>) -> Result<()> {
    let mut attributes = Vec::with_capacity(clauses.len());
    for clause in clauses {
        add_attribute(session, &mut attributes, &name.name, clause, sql)?;
    }
    create(session, name, TypeKind::Composite(attributes))
}

fn add_attribute(
    session: &mut Session,
    attributes: &mut Vec<Attribute>,
    type_name: &str,
    clause: &AttributeClause,
    sql: &Arc<str>,
) -> Result<()> {
    let (ty, time_modifier) = bind_type(session, &clause.ty, sql)?;
    if attributes.iter().any(|known| !known.dropped && known.name == clause.name) {
        let message = match type_name.is_empty() {
            true => format!("column \"{}\" specified more than once", clause.name),
            false => format!("column \"{}\" of relation \"{type_name}\" already exists", clause.name),
        };
        return Err(SqlError::new("42701", message));
    }
    if ty.phys().is_none() {
        let message = format!("column \"{}\" has pseudo-type {}", clause.name, ty.sql_name());
        return Err(SqlError::new("42P16", message));
    }
    if attributes.len() == ATTRIBUTES_MAX {
        return Err(SqlError::new("54011", format!("composite types can have at most {ATTRIBUTES_MAX} columns")));
    }
    attributes.push(Attribute { time_modifier, ..Attribute::new(clause.name.clone(), ty) });
    Ok(())
}

fn check_label(label: &str) -> Result<()> {
    match label.len() {
        0..=LABEL_BYTES_MAX => Ok(()),
        _ => Err(SqlError::new("42602", format!("invalid enum label \"{label}\""))
            .with_detail(format!("Labels must be {LABEL_BYTES_MAX} bytes or less."))),
    }
}

fn create_enum(session: &mut Session, name: &Name, names: &[String]) -> Result<()> {
    let mut labels: Vec<EnumLabel> = Vec::with_capacity(names.len());
    for (at, label) in names.iter().enumerate() {
        check_label(label)?;
        if labels.iter().any(|known| known.label == *label) {
            let message = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
            return Err(SqlError::new("23505", message).with_detail(format!("Label \"{label}\" is there twice.")));
        }
        labels.push(EnumLabel {
            oid: session.db.engine().next_object_id().0,
            label: label.clone(),
            position: at as f64 + 1.0,
            sort_order: at as f32 + 1.0,
        });
    }
    create(session, name, TypeKind::Enum(labels))
}

fn create_domain(
    session: &mut Session,
    name: &Name,
    base: &ast::DataType,
    default: Option<&ast::Expr>,
    rules: &[DomainRule],
    sql: &Arc<str>,
) -> Result<()> {
    let (base, time_modifier) = bind_type(session, base, sql)?;
    if base.phys().is_none() {
        let message = format!("\"{}\" is not a valid base type for a domain", base.sql_name());
        return Err(SqlError::new("42804", message));
    }
    let default = match default {
        Some(expr) => check_default(session, expr, &base, sql)?,
        // It begins with that of the domain that it is over.
        None => bind::domain_default(&base).map(str::to_string),
    };
    let (mut not_null, mut checks) = (None, Vec::new());
    for rule in rules {
        let is_not_null = match rule {
            DomainRule::NotNull => true,
            DomainRule::Null => false,
            DomainRule::Check { name: given, condition } => {
                add_check(session, &mut checks, &name.name, &base, given.as_deref(), condition, sql)?;
                continue;
            }
        };
        if not_null.replace(is_not_null).is_some_and(|before| before != is_not_null) {
            return Err(SqlError::syntax("conflicting NULL/NOT NULL constraints"));
        }
    }
    let not_null = not_null == Some(true);
    create(session, name, TypeKind::Domain { base, not_null, checks, default, time_modifier })
}

fn check_default(session: &mut Session, expr: &ast::Expr, base: &DataType, sql: &Arc<str>) -> Result<Option<String>> {
    let catalog = session.txn()?.catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    super::columns::check_default(&session.bind_context(&catalog, sql, &eval), expr, "", base)
}

#[allow(clippy::too_many_arguments)]
fn add_check(
    session: &mut Session,
    checks: &mut Vec<DomainCheck>,
    domain: &str,
    base: &DataType,
    name: Option<&str>,
    condition: &ast::Expr,
    sql: &Arc<str>,
) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    let ctx = session.bind_context(&catalog, sql, &eval);
    bind::bind_domain_check(&ctx, base, condition)?;
    let text =
        pinned::expression(&ctx, None, condition, &|ctx, expr| bind::bind_domain_check(ctx, base, expr).map(|_| ()))?;
    let is_taken = |name: &str| checks.iter().any(|known| known.name == name);
    let name = match name {
        Some(name) if is_taken(name) => {
            let message = format!("constraint \"{name}\" for domain \"{domain}\" already exists");
            return Err(SqlError::new("42710", message));
        }
        Some(name) => name.to_string(),
        None => {
            let candidates = std::iter::once(String::new()).chain((1..).map(|number: u32| number.to_string()));
            let mut names = candidates.map(|number| format!("{domain}_check{number}"));
            names.find(|name| !is_taken(name)).unwrap_or_default()
        }
    };
    let oid = session.db.engine().next_object_id().0;
    checks.push(DomainCheck { oid, name, sql: text, not_valid: false });
    Ok(())
}

fn no_type(name: &Name) -> SqlError {
    SqlError::new("42704", format!("type \"{name}\" does not exist"))
}

fn no_constraint(constraint: &str, domain: &str) -> SqlError {
    SqlError::new("42704", format!("constraint \"{constraint}\" of domain \"{domain}\" does not exist"))
}

/// What a type's name means to a definition.
enum Found {
    Def(Arc<TypeDef>),
    /// A built-in type, or that of a table's or view's rows.
    Other(DataType),
}

fn find(session: &mut Session, name: &Name) -> Result<Option<Found>> {
    let catalog = session.txn()?.catalog();
    let schemas = match &name.schema {
        Some(schema) => vec![schema.clone()],
        None => session.search_path(&catalog),
    };
    if name.schema.as_deref().is_none_or(|schema| schema == "pg_catalog")
        && let Some(ty) = basalt_expr::functions::pattern_types::type_named(&name.name)
    {
        return Ok(Some(Found::Other(ty)));
    }
    for schema in schemas {
        let Some(namespace) = catalog.namespace_named(session.database.id, &schema) else { continue };
        if let Some(def) = catalog.type_def_named(namespace.id, &name.name) {
            return Ok(Some(Found::Def(def.clone())));
        }
        if let Some(ty) = catalog.type_named(namespace.id, &name.name) {
            return Ok(Some(Found::Other(ty)));
        }
    }
    Ok(None)
}

/// A type that the session's user may change. 42704, 42809 for a type that is no domain (where one is wanted) or
/// whose definition is elsewhere, 42501.
fn owned(session: &mut Session, name: &Name, domain: bool) -> Result<Arc<TypeDef>> {
    match find(session, name)? {
        None => Err(no_type(name)),
        Some(Found::Def(def)) => {
            if domain && !matches!(def.kind, TypeKind::Domain { .. }) {
                return Err(SqlError::new("42809", format!("{} is not a domain", def.name)));
            }
            let catalog = session.txn()?.catalog();
            let shown = super::drop::shown(session, &catalog, def.namespace, &def.name);
            resolve::require_owner(session, "type", &shown, &def.owner)?;
            Ok(def)
        }
        Some(Found::Other(ty)) if domain => Err(SqlError::new("42809", format!("{} is not a domain", ty.sql_name()))),
        Some(Found::Other(DataType::Composite(row))) => {
            Err(SqlError::new("42809", format!("{} is a table's row type", row.name))
                .with_hint("Use ALTER TABLE instead."))
        }
        Some(Found::Other(ty)) => Err(SqlError::new("42501", format!("must be owner of type {}", ty.sql_name()))),
    }
}

async fn alter(session: &mut Session, name: &Name, domain: bool, action: &TypeAction, sql: &Arc<str>) -> Result<()> {
    let def = owned(session, name, domain)?;
    let mut def = TypeDef::clone(&def);
    let catalog = session.txn()?.catalog();
    match action {
        TypeAction::Rename(to) => {
            let is_composite = |def: &Arc<TypeDef>| matches!(def.kind, TypeKind::Composite(_));
            let is_relation = catalog.relation_exists(def.namespace, to)
                || catalog.type_def_named(def.namespace, to).is_some_and(is_composite);
            if matches!(def.kind, TypeKind::Composite(_)) && is_relation {
                return Err(SqlError::new("42P07", format!("relation \"{to}\" already exists")));
            }
            check_free(&catalog, def.namespace, to)?;
            def.name.clone_from(to);
            put(session, def)
        }
        TypeAction::SetSchema(schema) => {
            let namespace = resolve::new_schema(session, &catalog, def.namespace, schema)?;
            if namespace != def.namespace {
                check_free(&catalog, namespace, &def.name)?;
            }
            def.namespace = namespace;
            put(session, def)
        }
        TypeAction::OwnerTo(owner) => {
            def.owner = resolve::new_owner(session, &catalog, owner, Some(def.namespace))?;
            put(session, def)
        }
        TypeAction::AddValue { label, if_not_exists, place } => {
            add_value(session, def, label, *if_not_exists, place.as_ref())
        }
        TypeAction::RenameValue { from, to } => {
            check_label(to)?;
            let TypeKind::Enum(labels) = &mut def.kind else { return Err(not_enum(&def.name)) };
            let at = labels.iter().position(|known| known.label == *from);
            let missing = || SqlError::new("22023", format!("\"{from}\" is not an existing enum label"));
            let at = at.ok_or_else(missing)?;
            if labels.iter().any(|known| known.label == *to) {
                return Err(SqlError::new("42710", format!("enum label \"{to}\" already exists")));
            }
            labels[at].label.clone_from(to);
            put(session, def)
        }
        TypeAction::RenameAttribute { from, to } => {
            let name = def.name.clone();
            let TypeKind::Composite(attributes) = &mut def.kind else {
                return Err(SqlError::new("42P01", format!("relation \"{name}\" does not exist")));
            };
            let taken = attributes.iter().any(|known| !known.dropped && known.name == *to);
            let attribute = attributes.iter_mut().find(|known| !known.dropped && known.name == *from);
            let Some(attribute) = attribute else {
                return Err(SqlError::new("42703", format!("column \"{from}\" does not exist")));
            };
            if taken {
                let message = format!("column \"{to}\" of relation \"{name}\" already exists");
                return Err(SqlError::new("42701", message));
            }
            attribute.name.clone_from(to);
            put(session, def)
        }
        TypeAction::Attributes { actions, cascade } => attributes(session, def, actions, *cascade, sql),
        TypeAction::Domain(action) => alter_domain(session, def, action, sql).await,
    }
}

fn not_enum(name: &str) -> SqlError {
    SqlError::new("42809", format!("{name} is not an enum"))
}

/// A new label gets a position between its neighbours, so that stored values stay in order.
fn add_value(
    session: &mut Session,
    mut def: TypeDef,
    label: &str,
    if_not_exists: bool,
    place: Option<&Neighbor>,
) -> Result<()> {
    check_label(label)?;
    let name = def.name.clone();
    let TypeKind::Enum(labels) = &mut def.kind else { return Err(not_enum(&name)) };
    if labels.iter().any(|known| known.label == label) {
        let what = format!("enum label \"{label}\" already exists");
        if if_not_exists {
            skipping(session, "42710", what);
            return Ok(());
        }
        return Err(SqlError::new("42710", what));
    }
    let at = match place {
        None => labels.len(),
        Some(Neighbor::Before(neighbor) | Neighbor::After(neighbor)) => {
            let at = labels.iter().position(|known| known.label == *neighbor);
            let at =
                at.ok_or_else(|| SqlError::new("22023", format!("\"{neighbor}\" is not an existing enum label")))?;
            at + usize::from(matches!(place, Some(Neighbor::After(_))))
        }
    };
    let (before, after) = (at.checked_sub(1).map(|at| labels[at].clone()), labels.get(at).cloned());
    let (position, mut sort_order) = match (&before, &after) {
        (None, None) => (1.0, 1.0),
        (Some(before), None) => (before.position.floor() + 1.0, before.sort_order + 1.0),
        (None, Some(after)) => (after.position.ceil() - 1.0, after.sort_order - 1.0),
        (Some(before), Some(after)) => {
            ((before.position + after.position) / 2.0, (before.sort_order + after.sort_order) / 2.0)
        }
    };
    let is_between = before.as_ref().is_none_or(|before| before.position < position)
        && after.as_ref().is_none_or(|after| position < after.position);
    if !is_between {
        return Err(SqlError::new("54000", format!("there is no room between two labels of enum {name}"))
            .with_hint("Create a new type with all labels, and copy the values."));
    }
    // As PostgreSQL does when a float4 has no value between the two.
    let exhausted = before.as_ref().is_some_and(|before| before.sort_order == sort_order)
        || after.as_ref().is_some_and(|after| after.sort_order == sort_order);
    if exhausted {
        labels.iter_mut().enumerate().for_each(|(at, label)| label.sort_order = at as f32 + 1.0);
        sort_order = at as f32 + 0.5;
    }
    let oid = session.db.engine().next_object_id().0;
    labels.insert(at, EnumLabel { oid, label: label.to_string(), position, sort_order });
    put(session, def)
}

fn attributes(
    session: &mut Session,
    mut def: TypeDef,
    actions: &[AttributeAction],
    cascade: bool,
    sql: &Arc<str>,
) -> Result<()> {
    let _ = cascade;
    let (id, name) = (def.id, def.name.clone());
    let TypeKind::Composite(attributes) = &mut def.kind else {
        return Err(SqlError::new("42P01", format!("relation \"{name}\" does not exist")));
    };
    type_users::check_keys(&session.txn()?.catalog(), id.0, &format!("type \"{name}\""))?;
    for action in actions {
        match action {
            AttributeAction::Add(clause) => {
                add_attribute(session, attributes, &name, clause, sql)?;
                let ty = &attributes[attributes.len() - 1].ty;
                if Catalog::mentions(ty, id.0) {
                    let message = format!("composite type {name} cannot be made a member of itself");
                    return Err(SqlError::new("42P16", message));
                }
            }
            AttributeAction::Drop { name: attribute, if_exists } => {
                let found = attributes.iter_mut().find(|known| !known.dropped && known.name == *attribute);
                let what = format!("column \"{attribute}\" of relation \"{name}\" does not exist");
                match found {
                    Some(found) => found.dropped = true,
                    None if *if_exists => skipping(session, "00000", what),
                    None => return Err(SqlError::new("42703", what)),
                }
            }
            AttributeAction::SetType(clause) => {
                let (ty, time_modifier) = bind_type(session, &clause.ty, sql)?;
                let catalog = session.txn()?.catalog();
                let found = attributes.iter_mut().find(|known| !known.dropped && known.name == clause.name);
                let what = format!("column \"{}\" of relation \"{name}\" does not exist", clause.name);
                let found = found.ok_or_else(|| SqlError::new("42703", what))?;
                if ty.phys().is_none() {
                    let message = format!("column \"{}\" has pseudo-type {}", clause.name, ty.sql_name());
                    return Err(SqlError::new("42P16", message));
                }
                if let Some(user) = type_users::stored_column(&catalog, id.0) {
                    let message = format!("cannot alter type \"{name}\" because column \"{user}\" uses it");
                    return Err(SqlError::not_supported(message));
                }
                (found.ty, found.time_modifier) = (ty, time_modifier);
            }
        }
    }
    put(session, def)
}

async fn alter_domain(session: &mut Session, mut def: TypeDef, action: &DomainAction, sql: &Arc<str>) -> Result<()> {
    let domain = def.name.clone();
    let TypeKind::Domain { base, not_null, checks, default, .. } = &mut def.kind else {
        return Err(SqlError::new("42809", format!("{domain} is not a domain")));
    };
    match action {
        DomainAction::SetDefault(None) => *default = None,
        DomainAction::SetDefault(Some(expr)) => *default = check_default(session, expr, base, sql)?,
        DomainAction::SetNotNull(wanted) => {
            if *wanted && !*not_null {
                type_users::check_stored(session, def.id.0, &domain, TypeUse::NotNull).await?;
            }
            *not_null = *wanted;
        }
        DomainAction::AddRule { rule: DomainRule::Check { name, condition }, valid } => {
            add_check(session, checks, &domain, base, name.as_deref(), condition, sql)?;
            let added = checks.len() - 1;
            checks[added].not_valid = !valid;
            if *valid {
                let condition = checks[added].sql.clone();
                type_users::check_stored(session, def.id.0, &domain, TypeUse::Condition(condition)).await?;
            }
        }
        DomainAction::AddRule { .. } => {
            return Err(SqlError::syntax("only CHECK constraints can be added to a domain")
                .with_hint("Use ALTER DOMAIN ... SET NOT NULL."));
        }
        DomainAction::DropConstraint { name, if_exists } => {
            let before = checks.len();
            checks.retain(|check| check.name != *name);
            if checks.len() == before {
                if !if_exists {
                    return Err(no_constraint(name, &domain));
                }
                let what = format!("constraint \"{name}\" of domain \"{domain}\" does not exist");
                skipping(session, "00000", what);
                return Ok(());
            }
        }
        DomainAction::RenameConstraint(from, to) => {
            if checks.iter().any(|check| check.name == *to) {
                let message = format!("constraint \"{to}\" for domain {domain} already exists");
                return Err(SqlError::new("42710", message));
            }
            match checks.iter_mut().find(|check| check.name == *from) {
                Some(check) => check.name.clone_from(to),
                None => {
                    let message = format!("constraint \"{from}\" for domain {domain} does not exist");
                    return Err(SqlError::new("42704", message));
                }
            }
        }
        DomainAction::Validate(name) => {
            let missing = || no_constraint(name, &domain);
            let check = checks.iter_mut().find(|check| check.name == *name).ok_or_else(missing)?;
            if check.not_valid {
                let condition = check.sql.clone();
                check.not_valid = false;
                type_users::check_stored(session, def.id.0, &domain, TypeUse::Condition(condition)).await?;
            }
        }
    }
    put(session, def)
}

async fn drop(session: &mut Session, names: &[Name], domain: bool, if_exists: bool, cascade: bool) -> Result<()> {
    let what = if domain { "domain" } else { "type" };
    let asked = |session: &mut Session, catalog: &Arc<Catalog>| {
        let mut asked = super::drop::Asked::default();
        for name in names {
            match find(session, name)? {
                None if if_exists => {
                    let schema = name.schema.as_deref();
                    let is_there = |schema: &str| catalog.namespace_named(session.database.id, schema).is_some();
                    let missing = match schema.filter(|schema| !is_there(schema)) {
                        Some(schema) => format!("schema \"{schema}\" does not exist"),
                        None => format!("type \"{name}\" does not exist"),
                    };
                    asked.notices.push(skipped("00000", &missing));
                }
                None => return Err(no_type(name)),
                Some(Found::Other(ty)) if !domain => return Err(not_alone(&ty)),
                Some(_) => asked.add(CatalogEdit::DropType(owned(session, name, domain)?.id)),
            }
        }
        let names: Vec<String> = names.iter().map(Name::to_string).collect();
        asked.what = format!("drop {what} {}", names.join(", "));
        Ok(asked)
    };
    super::drop::apply_asked(session, Some(cascade), asked).await
}

/// 2BP01: a type that goes with what it is of, or not at all.
fn not_alone(ty: &DataType) -> SqlError {
    match ty {
        DataType::Composite(row) => {
            let message = format!("cannot drop type {0} because table {0} requires it", row.name);
            SqlError::new("2BP01", message).with_hint(format!("You can drop table {} instead.", row.name))
        }
        DataType::Array(element) => {
            let message = format!("cannot drop type {0}[] because type {0} requires it", element.sql_name());
            SqlError::new("2BP01", message)
        }
        ty => {
            let message = format!("cannot drop type {} because it is required by the database system", ty.sql_name());
            SqlError::new("2BP01", message)
        }
    }
}
