//! CREATE TABLE, and CREATE TABLE … AS.

use super::batch::{self, Block};
use super::columns::{Columns, check_generated};
use super::define::{exists, skipping};
use super::row_path::RowPath;
use super::{checks, foreign_key, like, resolve, table_options, unique};
use crate::bind;
use crate::error::{Result, SqlError};
use crate::plan::Query;
use crate::session::Session;
use crate::session::params::Given;
use crate::syntax::{CheckClause, CreateTable, ForeignKeyClause, KeyClause, KeyConstraint, Rows, Statement};
use basalt_engine::{Catalog, CatalogEdit, TableLock};
use basalt_expr::EvalContext;
use basalt_types::schema::{PartitionDef, PrimaryKey};
use basalt_types::{ColumnDef, ColumnId, DataType, Datum, ObjectId, TableDef};
use std::sync::Arc;

/// As PostgreSQL's.
pub(crate) const COLUMNS_MAX: usize = 1600;

/// Whether IF NOT EXISTS passes over a relation that has the name, with its notice. 42P07 without it, 42710 for a type's
/// name.
pub(crate) fn is_there(
    session: &mut Session,
    catalog: &Catalog,
    namespace: ObjectId,
    name: &str,
    if_not_exists: bool,
) -> Result<bool> {
    super::types::check_relation_name(catalog, namespace, name)?;
    let found = catalog.relation_exists(namespace, name);
    if found && !if_not_exists {
        return Err(exists("42P07", "relation", name));
    }
    if found {
        skipping(session, "42P07", format!("relation \"{name}\" already exists"));
    }
    Ok(found)
}

/// The rows that `AS query` gave, if there is one.
pub(crate) async fn run(
    session: &mut Session,
    create: &CreateTable,
    sql: &Arc<str>,
    given: Given,
) -> Result<Option<u64>> {
    let namespace = resolve::creation_namespace_of(session, &create.name, create.temporary)?;
    let catalog = session.txn()?.catalog();
    if create.on_commit.is_some() && !resolve::is_temporary(&catalog, namespace.id) {
        return Err(SqlError::new("42P16", "ON COMMIT can only be used on temporary tables"));
    }
    if is_there(session, &catalog, namespace.id, &create.name.name, create.if_not_exists)? {
        return Ok(None);
    }
    let query = match &create.query {
        Some((rows, _, _)) => Some(bind_rows(session, rows, sql, given).await?),
        None => None,
    };
    let mut table = TableDef {
        owner: session.user.clone(),
        options: table_options::check(&create.options)?,
        on_commit: create.on_commit.unwrap_or_default(),
        ..TableDef::new(session.db.engine().next_object_id(), namespace.id, &create.name.name)
    };
    let mut edits = match (&query, &create.query) {
        (Some((query, _)), Some((_, names, _))) => {
            add_query_columns(&mut table, query, names)?;
            Vec::new()
        }
        _ => add_columns(session, &mut table, create, &catalog, sql)?,
    };
    for constraint in create.columns.iter().flat_map(|column| &column.constraints).chain(&create.constraints) {
        add_constraint(session, &mut table, constraint, &catalog).await?;
    }
    table.distribution = table_options::distribution(&table)?;
    let tablets = (0..table_options::tablet_count(&table.options)).map(|_| session.db.engine().next_tablet_id());
    table.partitions = vec![PartitionDef { name: String::new(), tablets: tablets.collect() }];
    let table = Arc::new(table);
    session.lock_table(table.id, TableLock::AccessExclusive, false).await?;
    edits.push(CatalogEdit::PutTable(table.clone()));
    session.txn()?.edit_catalog(edits)?;
    match (query, &create.query) {
        (_, Some((Rows::Execute(..), _, false))) => Ok(Some(0)),
        (Some((query, params)), Some((_, _, true))) => {
            let eval = session.eval_context(params, &session.catalog_now());
            Ok(Some(fill(session, &table, query, &eval).await?))
        }
        _ => Ok(None),
    }
}

/// The query that gives the rows, and its parameters.
pub(crate) async fn bind_rows(
    session: &mut Session,
    rows: &Rows,
    sql: &Arc<str>,
    given: Given,
) -> Result<(Arc<Query>, Vec<Datum>)> {
    let (bound, params) = match rows {
        Rows::Query(query) => {
            let statement = Statement::Query(query.clone());
            (session.plan(&statement, sql, given.values.clone(), given.param_types()).await?.0, given.values)
        }
        Rows::Execute(name, args) => {
            let (prepared, params) = super::utility::arguments(session, name, args, sql)?;
            let not_rows = || SqlError::new("42809", "prepared statement is not a SELECT");
            let statement = prepared.statement().ok_or_else(not_rows)?;
            if !matches!(statement, Statement::Query(_)) {
                return Err(not_rows());
            }
            (session.plan(statement, &prepared.sql, params.clone(), prepared.params()).await?.0, params)
        }
    };
    match bound {
        crate::session::prepared::Bound::Query(query) => Ok((query, params)),
        _ => Err(SqlError::not_supported("CREATE TABLE AS of data-modifying statements is not supported yet")),
    }
}

/// Writes what a query gives into a table.
pub(crate) async fn fill(
    session: &mut Session,
    table: &Arc<TableDef>,
    query: Arc<Query>,
    eval: &Arc<EvalContext>,
) -> Result<u64> {
    let catalog = session.txn()?.catalog();
    let mut stream = super::lock_rows::start(session, &query, eval).await?;
    let rules = bind::bind_row_rules(&session.bind_context(&catalog, &Arc::from(""), eval), table)?;
    let path = RowPath::new(table, &rules, &catalog, eval);
    let sender = session.start_batch(&path)?;
    while let Some(rows) = stream.next().await? {
        let stored = batch::stored_block(&path, rows.columns())?;
        if sender.send(Block::Rows(stored)).await.is_err() {
            break;
        }
    }
    let _ = sender.send(Block::End).await;
    session.finish_batch().await
}

pub(crate) fn add_query_columns(table: &mut TableDef, query: &Query, names: &[String]) -> Result<()> {
    if names.len() > query.columns.len() {
        return Err(SqlError::new("42601", "too many column names were specified"));
    }
    for (at, column) in query.columns.iter().enumerate() {
        let name = names.get(at).unwrap_or(&column.name);
        let ty = match &column.ty {
            DataType::Unknown => DataType::Text,
            ty => ty.clone(),
        };
        super::view::refuse_pseudo_type(name, &ty)?;
        let time_modifier = bind::time_modifier_of(column);
        push_column(table, name, ty, false, None)?;
        if let Some(last) = table.columns.last_mut() {
            last.time_modifier = time_modifier;
        }
    }
    Ok(())
}

/// Columns and constraints of a definition; edits that come with them.
fn add_columns(
    session: &Session,
    table: &mut TableDef,
    create: &CreateTable,
    catalog: &Arc<Catalog>,
    sql: &Arc<str>,
) -> Result<Vec<CatalogEdit>> {
    let mut keys: Vec<KeyClause> = create.keys.clone();
    let mut columns = Columns { session, catalog, sql, sequences: Vec::new() };
    let mut comments = Vec::new();
    let mut likes = create.likes.iter().peekable();
    for at in 0..=create.columns.len() {
        while let Some(clause) = likes.next_if(|like| like.at == at) {
            let later = like::add(&mut columns, session, catalog, table, clause)?;
            keys.extend(later.key);
            comments.extend(later.comments);
        }
        let Some(clause) = create.columns.get(at) else { continue };
        columns.push(table, clause)?;
        if let Some(constraint) = &clause.primary_key {
            keys.push(KeyClause {
                constraint: constraint.clone(),
                columns: vec![clause.name.clone()],
                include: Vec::new(),
                place: clause.key_place,
            });
        }
    }
    columns.set_defaults(table, &create.columns)?;
    let ctx = columns.context();
    let generated = create.columns.iter().filter_map(|clause| Some((clause, clause.generated.as_ref()?)));
    let generated: Vec<_> = generated.collect();
    // All are marked before any is checked: none may read another.
    for (clause, expr) in &generated {
        let id = table.column_named(&clause.name).map(|column| column.id);
        if let Some(id) = id {
            table.columns[id.position()].generated = Some(expr.to_string());
        }
    }
    for (clause, expr) in generated {
        if let Some(id) = table.column_named(&clause.name).map(|column| column.id) {
            let text = check_generated(&ctx, table, id, expr)?;
            table.columns[id.position()].generated = Some(text);
        }
    }
    for clause in create.columns.iter().flat_map(|column| &column.checks).chain(&create.checks) {
        // Nothing is there that could violate it.
        checks::add(session, &ctx, table, &CheckClause { not_valid: false, ..clause.clone() })?;
    }
    let mut edits = columns.sequences;
    edits.extend(comments);
    match keys.as_slice() {
        [] => {}
        [key] => {
            let made = match unique::is_kept_by_index(table, &key.columns) {
                true => unique::declare(session, catalog, table, &unique::clause_of(key)).map(|_| ()),
                false => {
                    let mut key = key.clone();
                    if key.constraint.is_none() {
                        let taken = |name: &str| {
                            checks::is_taken(catalog, table.namespace, name)
                                || catalog.relation_exists(table.namespace, name)
                        };
                        key.constraint = Some(super::columns::free_name(&table.name, None, "pkey", taken));
                    }
                    if let Some(name) = key
                        .constraint
                        .as_deref()
                        .filter(|name| *name == table.name || catalog.relation_exists(table.namespace, name))
                    {
                        return Err(exists("42P07", "relation", name));
                    }
                    set_key(table, &key, session.db.engine().next_object_id())
                }
            };
            made.map_err(|error| error.at(key.place))?;
        }
        [_, second, ..] => return Err(many_keys(&table.name).at(second.place)),
    }
    Ok(edits)
}

/// Adds UNIQUE or FOREIGN KEY to a table without rows.
async fn add_constraint(
    session: &mut Session,
    table: &mut TableDef,
    constraint: &KeyConstraint,
    catalog: &Arc<Catalog>,
) -> Result<()> {
    match constraint {
        KeyConstraint::Unique(clause) if clause.using_index.is_some() => {
            Err(SqlError::syntax("syntax error at or near \"USING\""))
        }
        KeyConstraint::Unique(clause) => {
            unique::declare(session, catalog, table, clause).map(|_| ()).map_err(|error| error.at(clause.place))
        }
        KeyConstraint::ForeignKey(clause) => {
            // Nothing is there that could violate it.
            let clause = ForeignKeyClause { not_valid: false, ..clause.clone() };
            foreign_key::declare(session, table, &clause).await.map(|_| ())
        }
    }
}

pub(crate) fn many_keys(table: &str) -> SqlError {
    SqlError::new("42P16", format!("multiple primary keys for table \"{table}\" are not allowed"))
}

/// Appends a column. 42701, 42P16 (not storable), 54011.
pub(crate) fn push_column(
    table: &mut TableDef,
    name: &str,
    ty: DataType,
    not_null: bool,
    default: Option<String>,
) -> Result<()> {
    if table.column_named(name).is_some() {
        return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
    }
    if bind::names::SYSTEM_COLUMNS.contains(&name) {
        return Err(SqlError::new("42701", format!("column name \"{name}\" conflicts with a system column name")));
    }
    if table.columns.len() >= COLUMNS_MAX {
        return Err(SqlError::new("54011", format!("tables can have at most {COLUMNS_MAX} columns"))
            .with_detail("Dropped columns count."));
    }
    if ty.phys().is_none() {
        return Err(SqlError::new("42P16", format!("column \"{name}\" has pseudo-type {}", ty.sql_name())));
    }
    let id = ColumnId::from_position(table.columns.len());
    let column = ColumnDef { not_null, default, ..ColumnDef::new(id, name, ty) };
    table.columns.push(column);
    Ok(())
}

/// Declares the primary key; its columns become NOT NULL. 42703, 42701.
pub(crate) fn set_key(table: &mut TableDef, key: &KeyClause, constraint_id: ObjectId) -> Result<()> {
    let mut columns: Vec<ColumnId> = Vec::new();
    for name in &key.columns {
        let Some(column) = table.column_named(name) else {
            return Err(SqlError::new("42703", format!("column \"{name}\" named in key does not exist")));
        };
        if columns.contains(&column.id) {
            return Err(SqlError::new("42701", format!("column \"{name}\" appears twice in primary key constraint")));
        }
        super::index::check_indexable(&column.ty, "btree")?;
        columns.push(column.id);
    }
    let mut include = Vec::new();
    for name in &key.include {
        let Some(column) = table.column_named(name) else {
            return Err(SqlError::new("42703", format!("column \"{name}\" named in key does not exist")));
        };
        include.push(column.id);
    }
    for id in &columns {
        table.columns[id.position()].not_null = true;
    }
    let constraint_name = key.constraint.clone().unwrap_or_else(|| format!("{}_pkey", table.name));
    table.primary_key = Some(PrimaryKey { constraint_id, constraint_name, columns, include });
    Ok(())
}
