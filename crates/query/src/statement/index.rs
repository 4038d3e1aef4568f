//! CREATE INDEX, DROP INDEX, ALTER INDEX and REINDEX (PostgreSQL manual chapter 11). An index is part of its table's
//! definition; the engine keeps its entries (`docs/decisions/0006-indexes-are-tables.md`).

pub(crate) mod concurrently;
pub(crate) mod in_files;

use super::columns::free_name;
use super::define::{exists, skipped, skipping};
use super::resolve::{self, Relation, no_relation};
use super::rows::shown_key;
use crate::bind::{self, BindContext, ParamTypes, pinned};
use crate::error::{ErrorObject, Result, Severity, SqlError};
use crate::session::Session;
use crate::syntax::{AlterAction, CreateIndex, ElementOf, IndexElement, Name, ObjectKind, ReindexTarget};
use basalt_engine::{Catalog, CatalogEdit, TableLock};
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::schema::{IndexColumn, IndexConstraint, IndexDef, IndexSource, IndexState, rests_in_files};
use basalt_types::{ColumnId, DataType, ObjectId, TableDef};
use sqlparser::ast;
use std::sync::Arc;

/// As PostgreSQL's.
const COLUMNS_MAX: usize = 32;

/// What an index is made of, but for its identity.
pub(crate) struct IndexParts {
    pub name: String,
    pub method: String,
    pub columns: Vec<IndexColumn>,
    pub include: Vec<ColumnId>,
    pub unique: bool,
    pub nulls_not_distinct: bool,
    pub predicate: Option<String>,
    pub options: Vec<(String, String)>,
    pub constraint: Option<IndexConstraint>,
}

/// A new index, empty.
pub(crate) fn make(session: &Session, table: &TableDef, parts: IndexParts) -> Arc<IndexDef> {
    let engine = session.db.engine();
    let id = engine.next_object_id();
    let included = IndexDef::types_to_include(table, &parts.include);
    let entries = IndexDef::entries_table(id, table.namespace, &parts.name, engine.next_tablet_id(), included);
    let IndexParts { name, method, columns, include, unique, nulls_not_distinct, predicate, options, constraint } =
        parts;
    let state = state_of_new(&method);
    Arc::new(IndexDef {
        id,
        name,
        method,
        columns,
        include,
        unique,
        nulls_not_distinct,
        predicate,
        options,
        constraint,
        state,
        entries,
    })
}

/// Whoever keeps entries must leave an index alone that rests in files.
fn state_of_new(method: &str) -> IndexState {
    if rests_in_files(method) { IndexState::Dead } else { IndexState::Valid }
}

/// The same index without entries, in a tablet of its own. All rows' entries are written there before it is seen.
pub(crate) fn emptied(session: &Session, table: &TableDef, index: &IndexDef) -> Arc<IndexDef> {
    let tablet = session.db.engine().next_tablet_id();
    let included = IndexDef::types_to_include(table, &index.include);
    let entries = IndexDef::entries_table(index.id, table.namespace, &index.name, tablet, included);
    Arc::new(IndexDef { state: state_of_new(&index.method), entries, ..index.clone() })
}

pub(crate) async fn create(session: &mut Session, create: &CreateIndex, sql: &Arc<str>) -> Result<()> {
    let Some((table, index)) = declared(session, create, TableLock::Share, sql).await? else { return Ok(()) };
    if index.rests_in_files() {
        return in_files::create(session, &table, &index);
    }
    session.txn()?.edit_catalog(vec![CatalogEdit::PutIndex { table: table.id, index: index.clone() }])?;
    fill(session, &table, &index).await
}

/// Locks the table, and makes the index, which the catalog does not have yet. `None`: one of the name is there.
async fn declared(
    session: &mut Session,
    create: &CreateIndex,
    lock: TableLock,
    sql: &Arc<str>,
) -> Result<Option<(Arc<TableDef>, Arc<IndexDef>)>> {
    let catalog = session.txn()?.catalog();
    let other = match resolve::find(session, &catalog, &create.table)? {
        Some(Relation::View(_)) => Some("views"),
        Some(Relation::Sequence(_)) => Some("sequences"),
        _ => None,
    };
    if let Some(other) = other {
        let message = format!("cannot create index on relation \"{}\"", create.table.name);
        return Err(
            SqlError::new("42809", message).with_detail(format!("This operation is not supported for {other}."))
        );
    }
    resolve::require_own_table(session, &create.table)?;
    let table = resolve::lock_table(session, &create.table, lock, false).await?;
    resolve::require_owner(session, table.kind_word(), &table.name, &table.owner)?;
    let catalog = session.txn()?.catalog();
    resolve::require_create_in(session, &catalog, table.namespace)?;
    if let Some(name) = create.name.as_ref().filter(|name| catalog.relation_exists(table.namespace, name)) {
        if create.if_not_exists {
            skipping(session, "42P07", format!("relation \"{name}\" already exists"));
            return Ok(None);
        }
        return Err(exists("42P07", "relation", name));
    }
    let eval = session.eval_context(Vec::new(), &catalog);
    let ctx = session.bind_context(&catalog, sql, &eval);
    let parts = parts(&ctx, &table, create, &catalog)?;
    let index = make(session, &table, parts);
    Ok(Some((table, index)))
}

/// Fills an index whose table nobody writes to. 23505 if it cannot be unique.
pub(crate) async fn fill(session: &mut Session, table: &Arc<TableDef>, index: &Arc<IndexDef>) -> Result<()> {
    if index.rests_in_files() {
        return Ok(());
    }
    let catalog = session.txn()?.catalog();
    let (table_of, index_of) = (table.clone(), index.clone());
    let built =
        session.off_thread(move |txn| Box::pin(async move { Ok(txn.build_index(&table_of, &index_of).await) })).await?;
    built.map_err(|error| build_error(session, &catalog, table, index, error))?;
    // Entries of a deferrable constraint never collide.
    session.after_build().await.map_err(|error| as_build_error(table, index, &catalog, error))
}

/// What a build that failed says: 23505 if rows that are there have the same values.
fn build_error(
    session: &Session,
    catalog: &Arc<Catalog>,
    table: &TableDef,
    index: &IndexDef,
    error: basalt_engine::Error,
) -> SqlError {
    let basalt_engine::Error::DuplicateKey { key, .. } = error else { return error.into() };
    let values = index.values_of_key(&key).unwrap_or_default();
    let eval = session.eval_context(Vec::new(), catalog);
    not_unique(table, index, &shown_key(table, index, &values, &eval), catalog)
}

/// 23505: rows that are there have the same values.
pub(crate) fn not_unique(table: &TableDef, index: &IndexDef, key: &str, catalog: &Catalog) -> SqlError {
    SqlError::new("23505", format!("could not create unique index \"{}\"", index.name))
        .with_detail(format!("{key} is duplicated."))
        .with_object(ErrorObject { constraint: Some(index.name.clone()), ..super::rows::object_of(table, catalog) })
}

fn as_build_error(table: &TableDef, index: &IndexDef, catalog: &Catalog, error: SqlError) -> SqlError {
    match (error.sqlstate, error.detail.as_deref().and_then(|detail| detail.strip_suffix(" already exists."))) {
        ("23505", Some(key)) => not_unique(table, index, key, catalog),
        _ => error,
    }
}

fn parts(ctx: &BindContext, table: &Arc<TableDef>, create: &CreateIndex, catalog: &Catalog) -> Result<IndexParts> {
    check_method(create)?;
    if create.elements.len() + create.include.len() > COLUMNS_MAX {
        return Err(SqlError::new("54011", format!("cannot use more than {COLUMNS_MAX} columns in an index")));
    }
    let mut columns: Vec<IndexColumn> = Vec::new();
    for element in &create.elements {
        let column = column(ctx, table, element, create)?;
        columns.push(named_apart(column, &columns));
    }
    let mut include = Vec::new();
    for name in &create.include {
        include.push(column_named(table, name)?);
    }
    check_options(&create.options)?;
    let predicate = create.predicate.as_ref().map(|predicate| condition(ctx, table, predicate)).transpose()?;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let included = include.iter().map(|id| table.column(*id).name.as_str());
    let joined = names.into_iter().chain(included).collect::<Vec<_>>().join("_");
    let taken = |name: &str| catalog.relation_exists(table.namespace, name);
    let name = create.name.clone().unwrap_or_else(|| free_name(&table.name, Some(&joined), "idx", taken));
    Ok(IndexParts {
        name,
        method: create.method.clone(),
        columns,
        include,
        unique: create.unique,
        nulls_not_distinct: create.nulls_not_distinct && create.unique,
        predicate,
        options: create.options.clone(),
        constraint: None,
    })
}

fn check_method(create: &CreateIndex) -> Result<()> {
    let cannot = |what: &str| {
        Err(SqlError::not_supported(format!("access method \"{}\" does not support {what}", create.method)))
    };
    match create.method.as_str() {
        "btree" => Ok(()),
        "hash" if create.unique => cannot("unique indexes"),
        "hash" if !create.include.is_empty() => cannot("included columns"),
        "hash" if create.elements.len() > 1 => cannot("multicolumn indexes"),
        "hash" if create.elements.iter().any(|element| element.descending) => cannot("ASC/DESC options"),
        "hash" if create.elements.iter().any(|element| element.nulls_first.is_some()) => {
            cannot("NULLS FIRST/LAST options")
        }
        "hash" => Ok(()),
        method if rests_in_files(method) => in_files::check(create),
        "gist" | "gin" | "brin" | "spgist" => {
            Err(SqlError::not_supported(format!("access method \"{}\" is not supported", create.method)).with_hint(
                "Leave the index out: scans skip by each column's bounds. Equality is helped by btree, conditions on \
                     several columns by bitmap.",
            ))
        }
        method => Err(SqlError::new("42704", format!("access method \"{method}\" does not exist"))),
    }
}

fn column_named(table: &TableDef, name: &str) -> Result<ColumnId> {
    match table.column_named(name) {
        Some(column) => Ok(column.id),
        None if crate::bind::names::SYSTEM_COLUMNS.contains(&name) => {
            Err(SqlError::not_supported("index creation on system columns is not supported"))
        }
        None => Err(SqlError::new("42703", format!("column \"{name}\" does not exist"))),
    }
}

fn column(
    ctx: &BindContext,
    table: &Arc<TableDef>,
    element: &IndexElement,
    create: &CreateIndex,
) -> Result<IndexColumn> {
    let (source, name, ty) = match &element.of {
        ElementOf::Column(name) => {
            let id = column_named(table, name)?;
            (IndexSource::Column(id), name.clone(), table.column(id).ty.clone())
        }
        ElementOf::Expression(expr) => expression(ctx, table, expr)?,
    };
    check_collation(element.collation.as_deref(), &ty)?;
    let opclass = operator_class(element.opclass.as_deref(), &ty, &create.method)?;
    if opclass.is_none() {
        check_indexable(&ty, &create.method)?;
    }
    let nulls_first = element.nulls_first.unwrap_or(element.descending);
    let collation = element.collation.clone().filter(|name| name != "default");
    Ok(IndexColumn { source, name, ty, descending: element.descending, nulls_first, opclass, collation })
}

fn expression(ctx: &BindContext, table: &Arc<TableDef>, expr: &ast::Expr) -> Result<(IndexSource, String, DataType)> {
    let bound = bind::bind_row_expr(ctx, table, expr, None, &mut ParamTypes::none()).map_err(in_index)?;
    check_immutable([&bound], None)?;
    let ty = bound.ty();
    if ty.phys().is_none() {
        return Err(SqlError::new("42P16", format!("column \"expr\" has pseudo-type {}", ty.sql_name())));
    }
    Ok((IndexSource::Expression(kept(ctx, table, expr)?), bind::index_column_name(expr), ty))
}

fn kept(ctx: &BindContext, table: &Arc<TableDef>, expr: &ast::Expr) -> Result<String> {
    pinned::expression(ctx, Some(table), expr, &|ctx, expr| {
        bind::bind_row_expr(ctx, table, expr, None, &mut ParamTypes::none()).map(|_| ())
    })
}

fn in_index(error: SqlError) -> SqlError {
    match error.message.strip_suffix("in WHERE") {
        Some(start) => SqlError { message: format!("{start}in index expressions"), ..error },
        None => error,
    }
}

fn condition(ctx: &BindContext, table: &Arc<TableDef>, predicate: &ast::Expr) -> Result<String> {
    let bound = bind::bind_row_expr(ctx, table, predicate, None, &mut ParamTypes::none())?;
    let ty = bound.ty();
    if ty != DataType::Bool && ty != DataType::Unknown {
        let message = format!("argument of WHERE must be type boolean, not type {}", ty.sql_name());
        return Err(SqlError::new("42804", message));
    }
    check_immutable([], Some(&bound))?;
    kept(ctx, table, predicate)
}

/// 42P17 for what settings may change.
pub(crate) fn check_immutable<'e>(
    expressions: impl IntoIterator<Item = &'e Expr>,
    predicate: Option<&Expr>,
) -> Result<()> {
    let changes = |expr: &Expr| expr.volatility() != Volatility::Immutable;
    let what = match predicate {
        _ if expressions.into_iter().any(changes) => "expression",
        Some(predicate) if changes(predicate) => "predicate",
        _ => return Ok(()),
    };
    Err(SqlError::new("42P17", format!("functions in index {what} must be marked IMMUTABLE")))
}

/// PostgreSQL numbers columns of one name.
fn named_apart(mut column: IndexColumn, before: &[IndexColumn]) -> IndexColumn {
    let base = column.name.clone();
    let mut number = 0;
    while before.iter().any(|other| other.name == column.name) {
        number += 1;
        column.name = format!("{base}{number}");
    }
    column
}

fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Text | DataType::Varchar(_) | DataType::Bpchar(_) | DataType::Name)
}

fn check_collation(name: Option<&str>, ty: &DataType) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    if !is_text(ty) {
        return Err(SqlError::new("42804", format!("collations are not supported by type {}", ty.sql_name())));
    }
    match name {
        "C" | "default" | "POSIX" | "ucs_basic" | "C.UTF-8" => Ok(()),
        _ => Err(SqlError::not_supported(format!("collation \"{name}\" is not supported"))
            .with_hint("Text is compared in the C collation.")),
    }
}

/// The class if it is not the type's own.
fn operator_class(name: Option<&str>, ty: &DataType, method: &str) -> Result<Option<String>> {
    let Some(name) = name else { return Ok(None) };
    let own = match ty.base() {
        DataType::Varchar(_) | DataType::Text => "text_ops",
        DataType::Bpchar(_) => "bpchar_ops",
        DataType::Numeric(_) => "numeric_ops",
        DataType::Array(_) => "array_ops",
        DataType::Range(_) => "range_ops",
        DataType::Multirange(_) => "multirange_ops",
        DataType::Inet | DataType::Cidr => "inet_ops",
        _ => "",
    };
    let own = match own {
        "" => format!("{}_ops", bind::typname(ty)),
        own => own.to_string(),
    };
    let pattern: &[&str] = match ty.base() {
        DataType::Text | DataType::Varchar(_) => &["text_pattern_ops", "varchar_pattern_ops", "varchar_ops"],
        DataType::Bpchar(_) => &["bpchar_pattern_ops"],
        DataType::Inet | DataType::Cidr => &["cidr_ops"],
        _ => &[],
    };
    if name == own {
        return Ok(None);
    }
    if pattern.contains(&name) {
        return Ok(Some(name.to_string()));
    }
    match name.ends_with("_ops") && OPERATOR_CLASSES.contains(&name) {
        true => Err(SqlError::new(
            "42804",
            format!("operator class \"{name}\" does not accept data type {}", ty.sql_name()),
        )),
        false => Err(SqlError::new(
            "42704",
            format!("operator class \"{name}\" does not exist for access method \"{method}\""),
        )),
    }
}

/// PostgreSQL's for B-trees.
const OPERATOR_CLASSES: &[&str] = &[
    "array_ops",
    "bit_ops",
    "bool_ops",
    "bpchar_ops",
    "bpchar_pattern_ops",
    "bytea_ops",
    "char_ops",
    "cidr_ops",
    "date_ops",
    "enum_ops",
    "float4_ops",
    "float8_ops",
    "inet_ops",
    "int2_ops",
    "int4_ops",
    "int8_ops",
    "interval_ops",
    "jsonb_ops",
    "macaddr8_ops",
    "macaddr_ops",
    "money_ops",
    "name_ops",
    "numeric_ops",
    "oid_ops",
    "pg_lsn_ops",
    "range_ops",
    "record_ops",
    "text_ops",
    "text_pattern_ops",
    "time_ops",
    "timestamp_ops",
    "timestamptz_ops",
    "timetz_ops",
    "uuid_ops",
    "varchar_ops",
    "varchar_pattern_ops",
    "xid8_ops",
];

/// 42704 for types without an order.
pub(crate) fn check_indexable(ty: &DataType, method: &str) -> Result<()> {
    let no_class = || {
        let name = ty.sql_name();
        SqlError::new("42704", format!("data type {name} has no default operator class for access method \"{method}\""))
    };
    match ty {
        ty if rests_in_files(method) => match basalt_engine::has_file_index(ty, method) {
            true => Ok(()),
            false => Err(no_class()),
        },
        DataType::Xid if method == "hash" => Ok(()),
        DataType::Json | DataType::JsonPath | DataType::Xid | DataType::PgSnapshot | DataType::TxidSnapshot => {
            let hint = "You must specify an operator class for the index or define a default operator class for the \
                        data type.";
            Err(no_class().with_hint(hint))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_options(options: &[(String, String)]) -> Result<()> {
    for (name, value) in options {
        match name.as_str() {
            "fillfactor" => match value.parse::<i64>() {
                Ok(10..=100) => {}
                Ok(_) => {
                    let message = format!("value {value} out of bounds for option \"fillfactor\"");
                    return Err(
                        SqlError::new("22023", message).with_detail("Valid values are between \"10\" and \"100\".")
                    );
                }
                Err(_) => {
                    let message = format!("invalid value for integer option \"fillfactor\": {value}");
                    return Err(SqlError::new("22023", message));
                }
            },
            "deduplicate_items" if crate::settings::value::bool_of(value).is_some() => {}
            "deduplicate_items" => {
                let message = format!("invalid value for boolean option \"deduplicate_items\": {value}");
                return Err(SqlError::new("22023", message));
            }
            _ => return Err(SqlError::new("22023", format!("unrecognized parameter \"{name}\""))),
        }
    }
    Ok(())
}

/// An index by name.
pub(crate) fn find(
    session: &Session,
    catalog: &Catalog,
    name: &Name,
) -> Result<Option<(Arc<TableDef>, Arc<IndexDef>)>> {
    let schemas = match &name.schema {
        Some(schema) => vec![resolve::namespace(session, catalog, schema)?.name.clone()],
        None => session.lookup_path(catalog),
    };
    for schema in schemas {
        let Some(namespace) = catalog.namespace_named(session.database.id, &schema) else { continue };
        if let Some((table, index)) = catalog.index_named(namespace.id, &name.name) {
            return Ok(Some((table.clone(), index.clone())));
        }
        if catalog.relation_exists(namespace.id, &name.name) {
            return Ok(None);
        }
    }
    Ok(None)
}

/// The primary key whose index has the name.
pub(super) fn primary_key_named(session: &Session, catalog: &Catalog, name: &Name) -> Option<Arc<TableDef>> {
    let schemas = name.schema.clone().map_or_else(|| session.lookup_path(catalog), |schema| vec![schema]);
    schemas.iter().find_map(|schema| {
        let namespace = catalog.namespace_named(session.database.id, schema)?;
        let has = |table: &&Arc<TableDef>| {
            table.namespace == namespace.id
                && table.primary_key.as_ref().is_some_and(|key| key.constraint_name == name.name)
        };
        catalog.tables.values().find(has).cloned()
    })
}

/// What to say of an index that is not there, and whether nothing else has its name: 42704 for DROP and 42P01 else, or
/// 42809.
fn no_index(session: &Session, catalog: &Catalog, name: &Name, drops: bool) -> (SqlError, bool) {
    match resolve::find(session, catalog, name) {
        Ok(None) if drops => (SqlError::new("42704", format!("index \"{}\" does not exist", name.name)), true),
        Ok(None) => (no_relation("relation", name), true),
        Ok(Some(found)) => {
            let error = SqlError::new("42809", format!("\"{}\" is not an index", name.name));
            let error = match found {
                _ if !drops => error,
                Relation::Table(_) => error.with_hint("Use DROP TABLE to remove a table."),
                Relation::View(_) => error.with_hint("Use DROP VIEW to remove a view."),
                Relation::Sequence(_) => error.with_hint("Use DROP SEQUENCE to remove a sequence."),
            };
            (error, false)
        }
        Err(error) => (error, false),
    }
}

/// Passes over an ALTER of an index that is not there where IF EXISTS says so.
fn skip_absent(session: &mut Session, catalog: &Catalog, name: &Name, if_exists: bool) -> Result<()> {
    match no_index(session, catalog, name, false) {
        (_, true) if if_exists => {
            skipping(session, "00000", format!("relation \"{}\" does not exist", name.name));
            Ok(())
        }
        (error, _) => Err(error),
    }
}

/// What DROP INDEX names; nothing where there is no such index and that is no error.
pub(crate) fn to_drop(
    session: &Session,
    catalog: &Catalog,
    name: &Name,
    if_exists: bool,
    notices: &mut Vec<SqlError>,
) -> Result<Option<(Arc<TableDef>, Arc<IndexDef>)>> {
    if let (true, Some(schema)) = (if_exists, resolve::missing_schema(session, catalog, name)) {
        notices.push(skipped("00000", &format!("schema \"{schema}\" does not exist")));
        return Ok(None);
    }
    if let Some(table) = primary_key_named(session, catalog, name) {
        return Err(required(&name.name, &name.name, &table.name));
    }
    let Some((table, index)) = find(session, catalog, name)? else {
        let (error, is_absent) = no_index(session, catalog, name, true);
        if if_exists && is_absent {
            notices.push(skipped("00000", &error.message));
            return Ok(None);
        }
        return Err(error);
    };
    resolve::require_owner(session, "index", &name.name, &table.owner)?;
    match index.constraint.is_some() {
        true => Err(required(&index.name, &index.name, &table.name)),
        false => Ok(Some((table, index))),
    }
}

fn required(index: &str, constraint: &str, table: &str) -> SqlError {
    let message = format!("cannot drop index {index} because constraint {constraint} on table {table} requires it");
    SqlError::new("2BP01", message).with_hint(format!("You can drop constraint {constraint} on table {table} instead."))
}

/// ALTER INDEX; and ALTER TABLE of an index.
pub(crate) async fn alter(
    session: &mut Session,
    name: &Name,
    if_exists: bool,
    actions: &[AlterAction],
    sql: &Arc<str>,
) -> Result<()> {
    let catalog = session.txn()?.catalog();
    if if_exists && resolve::missing_schema(session, &catalog, name).is_some() {
        skipping(session, "00000", format!("relation \"{}\" does not exist", name.name));
        return Ok(());
    }
    if primary_key_named(session, &catalog, name).is_some() {
        return alter_primary_key(session, name, if_exists, actions).await;
    }
    // As PostgreSQL has it, ALTER INDEX gives any relation another name.
    if let [AlterAction::RenameTo(_)] = actions
        && let Ok(Some(relation)) = resolve::find(session, &catalog, name)
    {
        return match relation {
            Relation::View(_) => super::view::alter(session, name, if_exists, actions).await,
            _ => Box::pin(super::alter_table::run(session, name, if_exists, ObjectKind::Table, actions, sql)).await,
        };
    }
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let Some((table, index)) = find(session, catalog, name)? else {
            skip_absent(session, catalog, name, if_exists)?;
            return Ok((None, Vec::new()));
        };
        resolve::require_owner(session, "index", &name.name, &table.owner)?;
        let wanted = vec![table.id];
        Ok((Some((catalog.clone(), table, index)), wanted))
    };
    let planned = session.lock_planned(TableLock::AccessExclusive, plan).await?;
    let Some((catalog, table, index)) = planned else { return Ok(()) };
    let mut changed = IndexDef::clone(&index);
    for action in actions {
        match action {
            AlterAction::RenameTo(new) => {
                check_free(&catalog, &table, new)?;
                resolve::require_create_in(session, &catalog, table.namespace)?;
                changed.name = new.clone();
            }
            AlterAction::SetOptions(options) => {
                check_options(options)?;
                changed.options.retain(|(name, _)| !options.iter().any(|(given, _)| given == name));
                changed.options.extend(options.iter().cloned());
            }
            AlterAction::ResetOptions(names) => changed.options.retain(|(name, _)| !names.contains(name)),
            AlterAction::OwnerTo(owner) => {
                let owner = resolve::role(session, &catalog, owner)?;
                if owner != table.owner {
                    let warning = format!("cannot change owner of index \"{}\"", index.name);
                    let warning = SqlError::notice(crate::error::Severity::Warning, "42809", warning);
                    session.notice(warning.with_hint("Change the ownership of the index's table, instead."));
                }
            }
            AlterAction::Nothing | AlterAction::Hint(_) => {}
            _ => {
                let message = format!("ALTER action cannot be performed on relation \"{}\"", name.name);
                return Err(SqlError::new("42809", message).with_detail("This operation is not supported for indexes."));
            }
        }
    }
    let edit = CatalogEdit::PutIndex { table: table.id, index: Arc::new(changed) };
    Ok(session.txn()?.edit_catalog(vec![edit])?)
}

async fn alter_primary_key(session: &mut Session, name: &Name, if_exists: bool, actions: &[AlterAction]) -> Result<()> {
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let Some(table) = primary_key_named(session, catalog, name) else {
            skip_absent(session, catalog, name, if_exists)?;
            return Ok((None, Vec::new()));
        };
        resolve::require_owner(session, "index", &name.name, &table.owner)?;
        let wanted = vec![table.id];
        Ok((Some((catalog.clone(), table)), wanted))
    };
    let planned = session.lock_planned(TableLock::AccessExclusive, plan).await?;
    let Some((catalog, table)) = planned else { return Ok(()) };
    let mut changed = TableDef::clone(&table);
    for action in actions {
        match action {
            AlterAction::RenameTo(new) => {
                check_free(&catalog, &table, new)?;
                resolve::require_create_in(session, &catalog, table.namespace)?;
                if let Some(key) = &mut changed.primary_key {
                    key.constraint_name = new.clone();
                }
            }
            AlterAction::SetOptions(options) => check_options(options)?,
            AlterAction::ResetOptions(_) | AlterAction::Nothing | AlterAction::Hint(_) => {}
            _ => return Err(SqlError::new("42809", "this operation is not supported for indexes")),
        }
    }
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutTable(Arc::new(changed))])?)
}

fn check_free(catalog: &Catalog, table: &TableDef, name: &str) -> Result<()> {
    match catalog.relation_exists(table.namespace, name) {
        true => Err(exists("42P07", "relation", name)),
        false => Ok(()),
    }
}

/// What REINDEX names: tables, each with the one index that is meant, or all.
fn reindex_wanted(session: &mut Session, target: &ReindexTarget) -> Result<Vec<(ObjectId, Option<ObjectId>)>> {
    let catalog = session.txn()?.catalog();
    let mut wanted: Vec<(ObjectId, Option<ObjectId>)> = Vec::new();
    match target {
        ReindexTarget::Index(name) => match find(session, &catalog, name)? {
            Some((table, index)) => {
                resolve::require_owner(session, "index", &name.name, &table.owner)?;
                wanted.push((table.id, Some(index.id)));
            }
            None if let Some(table) = primary_key_named(session, &catalog, name) => {
                resolve::require_owner(session, "index", &name.name, &table.owner)?;
            }
            None => return Err(no_index(session, &catalog, name, false).0),
        },
        ReindexTarget::Table(name) => match resolve::find(session, &catalog, name)? {
            Some(Relation::Table(table)) => {
                resolve::require_owner(session, "table", &table.name, &table.owner)?;
                wanted.push((table.id, None));
            }
            Some(_) => {
                return Err(SqlError::new("42809", format!("\"{}\" is not a table or materialized view", name.name)));
            }
            None => return Err(no_relation("relation", name)),
        },
        ReindexTarget::Schema(name) => {
            let namespace = resolve::namespace(session, &catalog, name)?;
            resolve::require_owner(session, "schema", name, &namespace.owner)?;
            let namespace = namespace.id;
            let tables = catalog.tables.values().filter(|table| table.namespace == namespace);
            wanted.extend(tables.map(|table| (table.id, None)));
        }
        ReindexTarget::Database(name) => {
            if name.as_ref().is_some_and(|name| *name != session.database.name) {
                return Err(SqlError::not_supported("can only reindex the currently open database"));
            }
            resolve::require_owner(session, "database", &session.database.name, &session.database.owner)?;
            let own = |namespace: &ObjectId| {
                catalog.namespaces.get(namespace).is_some_and(|found| found.database == session.database.id)
            };
            wanted.extend(catalog.tables.values().filter(|table| own(&table.namespace)).map(|table| (table.id, None)));
        }
    }
    Ok(wanted)
}

/// Fills indexes anew, each in a new tablet.
pub(crate) async fn reindex(session: &mut Session, target: &ReindexTarget) -> Result<()> {
    let mut indexed = 0;
    for (table, only) in reindex_wanted(session, target)? {
        session.lock_table(table, TableLock::Share, false).await?;
        let catalog = session.txn()?.catalog();
        let Some(table) = catalog.table(table).cloned() else { continue };
        for index in table.indexes.iter().filter(|index| only.is_none_or(|only| only == index.id)) {
            indexed += 1;
            // Files do not change. A program that does not know such indexes may have given this one entries.
            if index.rests_in_files() && index.state == IndexState::Dead {
                continue;
            }
            let index = emptied(session, &table, index);
            session.txn()?.edit_catalog(vec![CatalogEdit::PutIndex { table: table.id, index: index.clone() }])?;
            fill(session, &table, &index).await?;
        }
        indexed += usize::from(table.primary_key.is_some());
    }
    if let (ReindexTarget::Table(name), 0) = (target, indexed) {
        let notice = format!("table \"{}\" has no indexes to reindex", name.name);
        session.notice(SqlError::notice(Severity::Notice, "00000", notice));
    }
    Ok(())
}
