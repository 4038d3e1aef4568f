//! CREATE TABLE, and CREATE TABLE … AS.

use super::batch::{self, Block};
use super::define::{exists, skipping};
use super::row_path::RowPath;
use super::{resolve, table_options};
use crate::bind::{self, ParamTypes};
use crate::error::{Result, SqlError};
use crate::plan::Query;
use crate::session::Session;
use crate::syntax::{ColumnClause, CreateTable, KeyClause, Statement};
use basalt_engine::{Catalog, CatalogEdit, TableLock};
use basalt_types::schema::{Distribution, OnCommit, PartitionDef, PrimaryKey};
use basalt_types::{ColumnDef, ColumnId, DataType, ObjectId, TableDef};
use sqlparser::ast;
use std::sync::Arc;

/// As PostgreSQL's.
pub(crate) const COLUMNS_MAX: usize = 1600;

/// The rows that `AS query` gave, if there is one.
pub(crate) async fn run(session: &mut Session, create: &CreateTable, sql: &Arc<str>) -> Result<Option<u64>> {
    let catalog = session.txn()?.catalog();
    let namespace = resolve::creation_namespace(session, &catalog, &create.name)?;
    if catalog.relation_exists(namespace.id, &create.name.name) {
        if create.if_not_exists {
            skipping(session, "42P07", format!("relation \"{}\" already exists", create.name.name));
            return Ok(create.query.as_ref().map(|_| 0));
        }
        return Err(exists("42P07", "relation", &create.name.name));
    }
    let query = match &create.query {
        Some((query, _, _)) => Some(bind_query(session, query, sql).await?),
        None => None,
    };
    let mut table = TableDef {
        id: session.db.engine().next_object_id(),
        namespace: namespace.id,
        name: create.name.name.clone(),
        owner: session.user.clone(),
        columns: Vec::new(),
        primary_key: None,
        partitions: Vec::new(),
        distribution: Distribution::Range,
        options: table_options::check(&create.options)?,
        comment: None,
        checks: Vec::new(),
        on_commit: OnCommit::PreserveRows,
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
    };
    match (&query, &create.query) {
        (Some(query), Some((_, names, _))) => add_query_columns(&mut table, query, names)?,
        _ => add_columns(session, &mut table, create, &catalog, sql)?,
    }
    table.distribution = table_options::distribution(&table)?;
    let tablets = (0..table_options::tablet_count(&table.options)).map(|_| session.db.engine().next_tablet_id());
    table.partitions = vec![PartitionDef { name: String::new(), tablets: tablets.collect() }];
    let table = Arc::new(table);
    session.lock_table(table.id, TableLock::AccessExclusive, false).await?;
    session.txn()?.edit_catalog(vec![CatalogEdit::PutTable(table.clone())])?;
    match (query, &create.query) {
        (Some(query), Some((_, _, true))) => Ok(Some(fill(session, &table, query).await?)),
        (Some(_), _) => Ok(Some(0)),
        (None, _) => Ok(None),
    }
}

async fn bind_query(session: &mut Session, query: &ast::Query, sql: &Arc<str>) -> Result<Arc<Query>> {
    let statement = Statement::Query(Box::new(query.clone()));
    match session.plan(&statement, sql, Vec::new(), ParamTypes::none()).await?.0 {
        crate::session::prepared::Bound::Query(query) => Ok(query),
        _ => Err(SqlError::not_supported("CREATE TABLE AS of data-modifying statements is not supported yet")),
    }
}

async fn fill(session: &mut Session, table: &Arc<TableDef>, query: Arc<Query>) -> Result<u64> {
    let catalog = session.txn()?.catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    let mut stream = super::lock_rows::start(session, &query, &eval).await?;
    let rules = bind::bind_row_rules(&session.bind_context(&catalog, &Arc::from(""), &eval), table)?;
    let path = RowPath::new(table, &rules, &catalog, &eval);
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

fn add_query_columns(table: &mut TableDef, query: &Query, names: &[String]) -> Result<()> {
    if names.len() > query.columns.len() {
        return Err(SqlError::new("42601", "too many column names were specified"));
    }
    for (at, column) in query.columns.iter().enumerate() {
        let name = names.get(at).unwrap_or(&column.name);
        let ty = match &column.ty {
            DataType::Unknown => DataType::Text,
            ty => ty.clone(),
        };
        push_column(table, name, ty, false, None)?;
    }
    Ok(())
}

fn add_columns(
    session: &Session,
    table: &mut TableDef,
    create: &CreateTable,
    catalog: &Arc<Catalog>,
    sql: &Arc<str>,
) -> Result<()> {
    let mut keys: Vec<KeyClause> = create.keys.clone();
    for clause in &create.columns {
        let (ty, default) = column_parts(session, clause, catalog, sql)?;
        push_column(table, &clause.name, ty, clause.not_null, default)?;
        if let Some(constraint) = &clause.primary_key {
            keys.push(KeyClause { constraint: constraint.clone(), columns: vec![clause.name.clone()] });
        }
    }
    match keys.as_slice() {
        [] => Ok(()),
        [key] => set_key(table, key, session.db.engine().next_object_id()),
        _ => Err(many_keys(&table.name)),
    }
}

pub(crate) fn many_keys(table: &str) -> SqlError {
    SqlError::new("42P16", format!("multiple primary keys for table \"{table}\" are not allowed"))
}

/// The type of a column clause and the text of its default, both checked.
pub(crate) fn column_parts(
    session: &Session,
    clause: &ColumnClause,
    catalog: &Arc<Catalog>,
    sql: &Arc<str>,
) -> Result<(DataType, Option<String>)> {
    let eval = session.eval_context(Vec::new(), catalog);
    let ctx = session.bind_context(catalog, sql, &eval);
    let ty = match bind::bind_type(&ctx, &clause.ty) {
        Ok(ty) => ty,
        Err(error) => {
            let name = clause.ty.to_string().trim_end_matches("[]").trim_matches('"').to_lowercase();
            if matches!(name.as_str(), "serial" | "bigserial" | "smallserial" | "serial4" | "serial8" | "serial2") {
                return Err(SqlError::not_supported(format!("type {name} is not supported"))
                    .with_hint("Use an integer type and draw keys in the client, or uuid with gen_random_uuid()."));
            }
            return Err(error);
        }
    };
    let default = match &clause.default {
        Some(expr) => Some(check_default(&ctx, expr, &ty)?),
        None => None,
    };
    Ok((ty, default))
}

/// The text of a default that binds to the column's type.
pub(crate) fn check_default(ctx: &bind::BindContext, expr: &ast::Expr, ty: &DataType) -> Result<String> {
    bind::bind_scalar(ctx, expr, Some(ty), &mut ParamTypes::none())?;
    Ok(expr.to_string())
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
        if let DataType::Json = column.ty {
            return Err(SqlError::new("42704", "data type json has no default operator class for a key"));
        }
        if let DataType::Array(_) | DataType::Jsonb = column.ty {
            return Err(SqlError::not_supported(format!("a key of type {} is not supported", column.ty.sql_name())));
        }
        columns.push(column.id);
    }
    for id in &columns {
        table.columns[id.position()].not_null = true;
    }
    let constraint_name = key.constraint.clone().unwrap_or_else(|| format!("{}_pkey", table.name));
    table.primary_key = Some(PrimaryKey { constraint_id, constraint_name, columns });
    Ok(())
}
