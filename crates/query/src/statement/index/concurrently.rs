//! CREATE INDEX, REINDEX and DROP INDEX, each CONCURRENTLY: several transactions under one table lock, between which
//! writers of an earlier state end. The states, and why so many: `docs/decisions/0020-indexes-built-online.md`.
//!
//! Whatever ends such a statement early leaves an index that is not valid, and that can be dropped or built anew.

use super::super::columns::free_name;
use super::super::{drop, resolve};
use super::{IndexParts, build_error, declared, make, reindex_wanted, to_drop};
use crate::error::{Result, Severity, SqlError};
use crate::session::Session;
use crate::session::names::quote_identifier;
use crate::syntax::{CreateIndex, Definition, Name, ReindexTarget};
use basalt_engine::{Catalog, CatalogEdit, TableLock};
use basalt_types::schema::{IndexDef, IndexState};
use basalt_types::{ObjectId, TableDef};
use std::sync::Arc;

/// Keeps out what would alter or drop the table, and other builds; neither readers nor writers.
const LOCK: TableLock = TableLock::ShareUpdateExclusive;

pub(crate) async fn run(session: &mut Session, definition: &Definition, sql: &Arc<str>) -> Result<()> {
    match definition {
        Definition::CreateIndex(create) => create_index(session, create, sql).await?,
        Definition::Reindex { target, .. } => reindex(session, target).await?,
        Definition::Drop { names, if_exists, cascade, .. } => drop_index(session, names, *if_exists, *cascade).await?,
        other => return Err(SqlError::internal(format!("{} is one transaction", other.tag()))),
    }
    session.commit_alone().await
}

async fn create_index(session: &mut Session, create: &CreateIndex, sql: &Arc<str>) -> Result<()> {
    let catalog = session.txn()?.catalog();
    // Nobody else writes to a temporary table.
    if let Some(resolve::Relation::Table(table)) = resolve::find(session, &catalog, &create.table)?
        && resolve::is_temporary(&catalog, table.namespace)
    {
        return super::create(session, create, sql).await;
    }
    let Some((table, index)) = declared(session, create, LOCK, sql).await? else { return Ok(()) };
    if index.rests_in_files() {
        return super::in_files::create(session, &table, &index);
    }
    begin(session, table.id, &index)?;
    build(session, table.id, index.id).await?;
    let (_, index) = found(session, index.id)?;
    put(session, table.id, IndexDef { state: IndexState::Valid, ..index })
}

/// The newest definition of an index whose table is locked.
fn found(session: &mut Session, id: ObjectId) -> Result<(Arc<TableDef>, IndexDef)> {
    let catalog = session.txn()?.catalog();
    let (table, index) = catalog.index_of(id).ok_or_else(|| SqlError::internal(format!("index {id} is gone")))?;
    Ok((table.clone(), IndexDef::clone(index)))
}

fn put(session: &mut Session, table: ObjectId, index: IndexDef) -> Result<()> {
    let edit = CatalogEdit::PutIndex { table, index: Arc::new(index) };
    Ok(session.txn()?.edit_catalog(vec![edit])?)
}

/// Commits, and goes on under the same table lock.
fn chain(session: &mut Session) -> Result<()> {
    session.txn()?.commit_and_chain()?;
    session.next_statement().map(|_| ())
}

/// Waits until all have ended whose lock does not go with `mode`.
async fn others_end(session: &mut Session, table: ObjectId, mode: TableLock) -> Result<()> {
    let wait = session.wait_policy();
    Ok(session.txn()?.wait_for_lockers(table, mode, wait).await?)
}

/// Enters a new index.
fn begin(session: &mut Session, table: ObjectId, index: &IndexDef) -> Result<()> {
    put(session, table, IndexDef { state: IndexState::DeleteOnly, ..index.clone() })?;
    chain(session)
}

/// From delete-only up to where every row has its entry. 23505 if the index cannot be unique.
async fn build(session: &mut Session, table: ObjectId, id: ObjectId) -> Result<()> {
    others_end(session, table, TableLock::Share).await?;
    let (_, index) = found(session, id)?;
    put(session, table, IndexDef { state: IndexState::WriteOnly, ..index })?;
    chain(session)?;
    others_end(session, table, TableLock::Share).await?;
    let (table, index) = found(session, id)?;
    let index = Arc::new(index);
    let (table_of, index_of) = (table.clone(), index.clone());
    let brought = session
        .off_thread(move |txn| Box::pin(async move { Ok(txn.bring_entries(&table_of, &index_of).await) }))
        .await?;
    let catalog = session.txn()?.catalog();
    brought.map_err(|error| build_error(session, &catalog, &table, &index, error))?;
    session.next_statement().map(|_| ())
}

async fn drop_index(session: &mut Session, names: &[Name], if_exists: bool, cascade: bool) -> Result<()> {
    let refused = |what: &str| SqlError::not_supported(format!("DROP INDEX CONCURRENTLY does not support {what}"));
    let [name] = names else { return Err(refused("dropping multiple objects")) };
    if cascade {
        return Err(refused("CASCADE"));
    }
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let mut notices = Vec::new();
        let found = to_drop(session, catalog, name, if_exists, &mut notices)?;
        let wanted = found.iter().map(|(table, _)| table.id).collect();
        Ok(((found, notices), wanted))
    };
    let (found, notices) = session.lock_planned(LOCK, plan).await?;
    notices.into_iter().for_each(|notice| session.notice(notice));
    let Some((table, index)) = found else { return Ok(()) };
    let (table, index, what) = (table.id, index.id, format!("drop index {name}"));
    let edits = vec![CatalogEdit::DropIndex { table, index }];
    // What depends on it says so before anything has happened.
    let before = session.txn()?.position();
    drop::apply(session, edits.clone(), &what, Some(false)).await?;
    session.txn()?.undo_to(before)?;
    retire(session, table, index).await?;
    drop::apply(session, edits, &what, Some(false)).await
}

/// Down to where nobody knows the index any more.
async fn retire(session: &mut Session, table: ObjectId, id: ObjectId) -> Result<()> {
    let steps = [
        (IndexState::WriteOnly, None),
        (IndexState::DeleteOnly, Some(TableLock::AccessExclusive)),
        (IndexState::Dead, Some(TableLock::Share)),
    ];
    for (state, ended) in steps {
        let (_, index) = found(session, id)?;
        if index.state <= state {
            continue;
        }
        if let Some(mode) = ended {
            others_end(session, table, mode).await?;
        }
        put(session, table, IndexDef { state, ..index })?;
        chain(session)?;
    }
    others_end(session, table, TableLock::Share).await?;
    session.next_statement().map(|_| ())
}

async fn reindex(session: &mut Session, target: &ReindexTarget) -> Result<()> {
    let mut indexed = 0;
    for (id, only) in reindex_wanted(session, target)? {
        session.lock_table(id, LOCK, false).await?;
        let catalog = session.txn()?.catalog();
        let Some(table) = catalog.table(id).cloned() else { continue };
        if resolve::is_temporary(&catalog, table.namespace) {
            let name = Name { schema: None, name: table.name.clone() };
            super::reindex(session, &ReindexTarget::Table(name)).await?;
            continue;
        }
        indexed += usize::from(table.primary_key.is_some());
        for index in table.indexes.iter().filter(|index| only.is_none_or(|only| only == index.id)) {
            if index.rests_in_files() {
                indexed += 1;
                continue;
            }
            if only.is_none() && !index.is_valid() {
                skip_invalid(session, &catalog, &table, index);
                continue;
            }
            rebuild(session, id, index.id).await?;
            indexed += 1;
        }
        // The table's lock goes before the next one's is taken.
        session.commit_alone().await?;
        session.next_statement()?;
    }
    if let (ReindexTarget::Table(name), 0) = (target, indexed) {
        let notice = format!("table \"{}\" has no indexes that can be reindexed concurrently", name.name);
        session.notice(SqlError::notice(Severity::Notice, "00000", notice));
    }
    Ok(())
}

fn skip_invalid(session: &mut Session, catalog: &Catalog, table: &TableDef, index: &IndexDef) {
    let schema = catalog.namespaces.get(&table.namespace).map_or("", |namespace| &namespace.name);
    let shown = format!("{}.{}", quote_identifier(schema), quote_identifier(&index.name));
    let warning = format!("cannot reindex invalid index \"{shown}\" concurrently, skipping");
    session.notice(SqlError::notice(Severity::Warning, "0A000", warning));
}

/// Builds a twin, changes the two's tablets, and drops the twin with the old one.
async fn rebuild(session: &mut Session, table: ObjectId, id: ObjectId) -> Result<()> {
    let (of, index) = found(session, id)?;
    let name = twin_name(session, &of, &index, "ccnew")?;
    let twin = make(session, &of, twin_parts(&index, name));
    begin(session, table, &twin)?;
    build(session, table, twin.id).await?;
    let ((_, index), (of, twin)) = (found(session, id)?, found(session, twin.id)?);
    let name = twin_name(session, &of, &index, "ccold")?;
    let old = IndexDef {
        entries: IndexDef::entries_table(twin.id, of.namespace, &name, index.tablet(), index.included_types()),
        state: index.state.min(IndexState::WriteOnly),
        name,
        ..twin.clone()
    };
    let old_id = old.id;
    put(session, table, old)?;
    let entries = IndexDef::entries_table(id, of.namespace, &index.name, twin.tablet(), twin.included_types());
    put(session, table, IndexDef { entries, state: IndexState::Valid, ..index })?;
    chain(session)?;
    retire(session, table, old_id).await?;
    session.txn()?.edit_catalog(vec![CatalogEdit::DropIndex { table, index: old_id }])?;
    chain(session)
}

fn twin_name(session: &mut Session, table: &TableDef, index: &IndexDef, label: &str) -> Result<String> {
    let catalog = session.txn()?.catalog();
    Ok(free_name(&index.name, None, label, |name| catalog.relation_exists(table.namespace, name)))
}

/// What a deferrable constraint allows for a while, the twin allows always: the constraint goes on to check it.
fn twin_parts(index: &IndexDef, name: String) -> IndexParts {
    IndexParts {
        name,
        method: index.method.clone(),
        columns: index.columns.clone(),
        include: index.include.clone(),
        unique: index.unique && !index.is_deferrable(),
        nulls_not_distinct: index.nulls_not_distinct,
        predicate: index.predicate.clone(),
        options: index.options.clone(),
        constraint: None,
    }
}
