//! CREATE MATERIALIZED VIEW and REFRESH MATERIALIZED VIEW (PostgreSQL manual 41.3).
//!
//! A materialized view is a table whose definition keeps a query. REFRESH deletes its rows and writes those that the
//! query gives now, in one transaction and in the same tablets: snapshots from before see what was there before. WITH NO
//! DATA gives it new tablets, as TRUNCATE does, and says that it may not be read.

use super::create_table::{add_query_columns, bind_rows, fill, is_there};
use super::resolve::{self, Relation, no_relation};
use super::row_path::RowPath;
use super::{cursor, table_options, truncate};
use crate::bind::{self, ParamTypes, pinned};
use crate::error::{Result, SqlError};
use crate::plan::{OutputColumn, Query};
use crate::session::Session;
use crate::session::names::quote_identifier;
use crate::session::params::Given;
use crate::session::prepared::Bound;
use crate::syntax::{CreateMaterialized, Name, Rows, Statement, parse_query_text};
use crate::system::SystemContext;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use basalt_engine::{Catalog, CatalogEdit, RowLock, ScanBatch, ScanSpec, TableLock, WaitPolicy};
use basalt_exec::{Scan, Stop};
use basalt_expr::EvalContext;
use basalt_types::schema::{ColumnDef, Materialized, PartitionDef};
use basalt_types::{Key, ObjectId, TableDef, TabletId, row};
use sqlparser::ast;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Batches of rows found, and not yet deleted.
const BATCHES_AHEAD_MAX: usize = 4;
/// Rows that are compared with each other, to say why they cannot be unique.
const ROWS_COMPARED_MAX: usize = 1_000_000;

/// The number of rows, if they are wanted.
pub(crate) async fn create(session: &mut Session, create: &CreateMaterialized, sql: &Arc<str>) -> Result<Option<u64>> {
    refuse_query(&create.query)?;
    super::view::lock_read(session, &create.query, sql).await?;
    let namespace = resolve::creation_namespace_of(session, &create.name, false)?;
    let catalog = session.txn()?.catalog();
    if resolve::is_temporary(&catalog, namespace.id) {
        return Err(SqlError::not_supported("materialized views cannot be temporary")
            .with_hint("Use CREATE TEMPORARY TABLE … AS."));
    }
    if is_there(session, &catalog, namespace.id, &create.name.name, create.if_not_exists)? {
        return Ok(None);
    }
    let (query, params) = bind_rows(session, &Rows::Query(create.query.clone()), sql, Given::default()).await?;
    let catalog = session.txn()?.catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    let kept = pinned::query(&session.bind_context(&catalog, sql, &eval), &create.query)?;
    let named = pinned::relations_in(&*parse_query_text(&kept)?);
    if named.into_iter().chain(query.tables.iter().copied()).any(|id| is_temporary(&catalog, id)) {
        return Err(SqlError::not_supported("materialized views must not use temporary tables or views"));
    }
    let mut table = TableDef {
        owner: session.user.clone(),
        options: table_options::check(&create.options)?,
        materialized: Some(Materialized { sql: kept, populated: create.with_data }),
        ..TableDef::new(session.db.engine().next_object_id(), namespace.id, &create.name.name)
    };
    add_query_columns(&mut table, &query, &create.columns)?;
    table.distribution = table_options::distribution(&table)?;
    let tablets = (0..table_options::tablet_count(&table.options)).map(|_| session.db.engine().next_tablet_id());
    table.partitions = vec![PartitionDef { name: String::new(), tablets: tablets.collect() }];
    let table = Arc::new(table);
    session.lock_table(table.id, TableLock::AccessExclusive, false).await?;
    session.txn()?.edit_catalog(vec![CatalogEdit::PutTable(table.clone())])?;
    match create.with_data {
        true => {
            let eval = session.eval_context(params, &session.catalog_now());
            Ok(Some(fill(session, &table, query, &eval).await?))
        }
        false => Ok(None),
    }
}

fn is_temporary(catalog: &Catalog, relation: ObjectId) -> bool {
    let table = catalog.table(relation).map(|table| table.namespace);
    let view = || catalog.views.get(&relation).map(|view| view.namespace);
    table.or_else(view).is_some_and(|namespace| resolve::is_temporary(catalog, namespace))
}

/// 0A000 for queries that change rows, and for SELECT INTO.
fn refuse_query(query: &ast::Query) -> Result<()> {
    if bind::writes(query) {
        return Err(SqlError::not_supported("materialized views must not use data-modifying statements in WITH"));
    }
    match &*query.body {
        ast::SetExpr::Select(select) if select.into.is_some() => {
            Err(SqlError::syntax("CREATE MATERIALIZED VIEW ... AS cannot specify INTO"))
        }
        _ => Ok(()),
    }
}

pub(crate) async fn refresh(session: &mut Session, name: &Name, concurrently: bool, with_data: bool) -> Result<()> {
    if concurrently && !with_data {
        return Err(SqlError::syntax("CONCURRENTLY and WITH NO DATA options cannot be used together"));
    }
    let mode = if concurrently { TableLock::Exclusive } else { TableLock::AccessExclusive };
    let catalog = session.txn()?.catalog();
    match resolve::find(session, &catalog, name)? {
        Some(Relation::Table(table)) => resolve::require_owner(session, table.kind_word(), &table.name, &table.owner)?,
        Some(_) => {
            return Err(SqlError::new("42809", format!("\"{}\" is not a table or materialized view", name.name)));
        }
        None if super::index::find(session, &catalog, name)?.is_some() => {
            return Err(SqlError::new("42809", format!("\"{}\" is not a table or materialized view", name.name)));
        }
        None => return Err(no_relation("relation", name)),
    }
    let table = resolve::lock_table(session, name, mode, false).await?;
    resolve::require_owner(session, table.kind_word(), &table.name, &table.owner)?;
    let Some(kept) = table.materialized.clone() else {
        return Err(SqlError::not_supported(format!("\"{}\" is not a materialized view", table.name)));
    };
    cursor::refuse_in_use(session, &table, "REFRESH MATERIALIZED VIEW")?;
    // Rows of those who had the lock before are seen.
    session.next_statement()?;
    if concurrently {
        check_concurrently(session, &table, &kept)?;
    }
    if !with_data {
        let emptied = TableDef {
            materialized: Some(Materialized { populated: false, ..kept }),
            ..truncate::emptied(session, &table)
        };
        return Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutTable(Arc::new(emptied))])?);
    }
    if session.block.isolation.has_one_snapshot() {
        // Rows that came after the snapshot would stay.
        return Err(SqlError::not_supported(
            "REFRESH MATERIALIZED VIEW is not supported in REPEATABLE READ and SERIALIZABLE transactions",
        )
        .with_hint("Refresh it in a transaction of its own, or at READ COMMITTED."));
    }
    let (query, eval) = planned(session, &table, &kept.sql).await?;
    let table = match kept.populated {
        true => {
            delete_all(session, &table, &eval).await?;
            table
        }
        false => {
            let materialized = Some(Materialized { populated: true, ..kept });
            let populated = Arc::new(TableDef { materialized, ..TableDef::clone(&table) });
            session.txn()?.edit_catalog(vec![CatalogEdit::PutTable(populated.clone())])?;
            populated
        }
    };
    match fill(session, &table, query.clone(), &eval).await {
        Ok(_) => Ok(()),
        Err(error) if concurrently && error.sqlstate == "23505" => {
            Err(match has_duplicates(session, &query, &table, &eval).await {
                Ok(true) => SqlError::new(
                    "21000",
                    format!(
                        "new data for materialized view \"{}\" contains duplicate rows without any null columns",
                        table.name
                    ),
                ),
                _ => error,
            })
        }
        Err(error) => Err(error),
    }
}

/// What CONCURRENTLY asks for. 0A000, 55000.
fn check_concurrently(session: &Session, table: &TableDef, kept: &Materialized) -> Result<()> {
    if !kept.populated {
        let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
        return Err(SqlError::not_supported(message));
    }
    let is_whole = |index: &&Arc<basalt_types::schema::IndexDef>| {
        index.unique && index.predicate.is_none() && index.plain_columns().is_some()
    };
    if table.valid_indexes().any(|index| is_whole(&index)) {
        return Ok(());
    }
    let schema = session.catalog_now().namespaces.get(&table.namespace).map(|schema| schema.name.clone());
    let shown = format!("{}.{}", quote_identifier(&schema.unwrap_or_default()), quote_identifier(&table.name));
    Err(SqlError::new("55000", format!("cannot refresh materialized view \"{shown}\" concurrently"))
        .with_hint("Create a unique index with no WHERE clause on one or more columns of the materialized view."))
}

/// The query, run as the owner, with as many columns as the table has.
async fn planned(session: &mut Session, table: &TableDef, sql: &str) -> Result<(Arc<Query>, Arc<EvalContext>)> {
    let statement = Statement::Query(parse_query_text(sql)?);
    let text: Arc<str> = sql.into();
    let (bound, eval, _) = session
        .plan_as(&table.owner, &statement, &text, Vec::new(), ParamTypes::none())
        .await
        .map_err(|error| SqlError { position: None, ..error })?;
    let Bound::Query(query) = bound else { return Err(SqlError::internal("a kept query changes rows")) };
    // `(value).*` of a composite type that has other attributes since.
    let is_same = |(now, then): (&OutputColumn, &ColumnDef)| now.ty.oid() == then.ty.oid();
    if query.columns.len() != table.live_columns().count()
        || !query.columns.iter().zip(table.live_columns()).all(is_same)
    {
        let message = format!("the query of materialized view \"{}\" has other columns than the view", table.name);
        return Err(SqlError::not_supported(message).with_hint("Drop the view and create it again."));
    }
    let system = eval.system.clone().and_then(|system| system.downcast::<SystemContext>().ok());
    // What the query asks the session to set is its owner's wish, not that of whoever refreshes.
    let asked = Arc::default();
    let system =
        system.map(|system| Arc::new(SystemContext { user: table.owner.clone(), asked, ..(*system).clone() }) as _);
    Ok((query, Arc::new(EvalContext { system, ..(*eval).clone() })))
}

/// Deletes every row that the snapshot sees: nobody else writes to the table meanwhile.
async fn delete_all(session: &mut Session, table: &Arc<TableDef>, eval: &Arc<EvalContext>) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let path = RowPath::new(table, &Arc::default(), &catalog, eval);
    let spec = ScanSpec { table: table.clone(), columns: Vec::new(), predicates: Vec::new(), with_identity: true };
    let stop = Stop::default();
    let scan = Scan::start(&session.txn()?.read(), spec, stop.clone())?;
    let (sender, mut found) = mpsc::channel::<Vec<(TabletId, Key)>>(BATCHES_AHEAD_MAX);
    let search = session.db.runtime().spawn_blocking(stop, move || -> Result<()> {
        let mut worker = scan.worker();
        while let Some(batch) = worker.next_batch()? {
            if sender.blocking_send(identities(&batch)).is_err() {
                break;
            }
        }
        Ok(())
    });
    session
        .off_thread(move |txn| {
            Box::pin(async move {
                while let Some(rows) = found.recv().await {
                    for (tablet, key) in rows {
                        let locked = txn.lock_row(&path.table, tablet, &key, RowLock::Update, WaitPolicy::Fail).await?;
                        if let Some(current) = locked.row() {
                            path.delete(txn, &current, &current.values).await?;
                        }
                    }
                }
                Ok(())
            })
        })
        .await?;
    search.wait().await
}

/// Which rows a batch of identities names.
fn identities(batch: &ScanBatch) -> Vec<(TabletId, Key)> {
    let (tablets, keys) = (batch.columns[0].as_primitive::<Int64Type>(), batch.columns[1].as_binary_view());
    (0..batch.rows).map(|row| (TabletId(tablets.value(row) as u32), Key::from(keys.value(row)))).collect()
}

/// Whether the query gives rows without nulls twice, as far as it is looked at.
async fn has_duplicates(
    session: &mut Session,
    query: &Arc<Query>,
    table: &TableDef,
    eval: &Arc<EvalContext>,
) -> Result<bool> {
    let mut stream = super::lock_rows::start(session, query, eval).await?;
    let types = table.phys_types();
    let mut seen: ahash::AHashSet<Vec<u8>> = ahash::AHashSet::new();
    while let Some(rows) = stream.next().await? {
        if seen.len() > ROWS_COMPARED_MAX {
            break;
        }
        let stored = super::batch::stored(table, rows.columns());
        for row in 0..rows.num_rows() {
            let values = super::batch::stored_row(table, &stored, row);
            if values.contains(&basalt_types::Datum::Null) {
                continue;
            }
            let mut bytes = Vec::new();
            row::encode(&types, &values, &mut bytes);
            if !seen.insert(bytes) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
