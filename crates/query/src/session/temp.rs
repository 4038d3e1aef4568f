//! Temporary objects: ordinary ones in a schema that is the session's own (`pg_temp_<process id>`), which is searched
//! first. They go with the session; what a crash leaves goes at the next start, before anybody connects.

use super::Session;
use super::names::TEMP_PREFIX;
use crate::error::{Result, SqlError};
use crate::statement::truncate::emptied;
use basalt_engine::{Catalog, CatalogEdit, Engine, Isolation, Namespace, TableLock, TxnOptions, WaitPolicy};
use basalt_types::schema::OnCommit;
use basalt_types::{ObjectId, Revision, Version};
use futures::FutureExt;
use std::sync::Arc;

/// What takes everything in a schema away; the schema itself stays.
pub(crate) fn contents(catalog: &Catalog, namespace: ObjectId) -> Vec<CatalogEdit> {
    let views = catalog.views.values().filter(|view| view.namespace == namespace);
    let sequences = catalog.sequences.values().filter(|sequence| sequence.namespace == namespace);
    let tables = catalog.tables.values().filter(|table| table.namespace == namespace);
    let types = catalog.types.values().filter(|def| def.namespace == namespace);
    views
        .map(|view| CatalogEdit::DropView(view.id))
        .chain(sequences.map(|sequence| CatalogEdit::DropSequence(sequence.id)))
        .chain(tables.map(|table| CatalogEdit::DropTable(table.id)))
        .chain(types.map(|def| CatalogEdit::DropType(def.id)))
        .collect()
}

impl Session {
    pub(crate) fn temp_schema(&self) -> String {
        format!("{TEMP_PREFIX}{}", self.pid)
    }

    fn temp_namespace(&self, catalog: &Catalog) -> Option<Arc<Namespace>> {
        catalog.namespace_named(self.database.id, &self.temp_schema()).cloned()
    }

    /// The schema of temporary objects, made at first use.
    pub(crate) fn enter_temp_schema(&mut self) -> Result<Arc<Namespace>> {
        let catalog = self.txn()?.catalog();
        if let Some(namespace) = self.temp_namespace(&catalog) {
            return Ok(namespace);
        }
        let namespace = Namespace {
            id: self.db.engine().next_object_id(),
            database: self.database.id,
            name: self.temp_schema(),
            owner: self.session_user.clone(),
            comment: None,
            revision: Revision::NEW,
        };
        self.txn()?.edit_catalog(vec![CatalogEdit::PutNamespace(namespace.clone())])?;
        Ok(Arc::new(namespace))
    }

    /// DISCARD TEMP.
    pub(crate) fn discard_temp(&mut self) -> Result<()> {
        let catalog = self.next_statement()?.catalog();
        let Some(namespace) = self.temp_namespace(&catalog) else { return Ok(()) };
        let edits = contents(&catalog, namespace.id);
        if !edits.is_empty() {
            self.txn()?.edit_catalog(edits)?;
        }
        Ok(())
    }

    /// ON COMMIT of temporary tables, as the last work of a transaction.
    pub(crate) fn temp_at_commit(&mut self) -> Result<()> {
        let Some(txn) = self.block.txn.as_ref().filter(|txn| txn.has_writes()) else { return Ok(()) };
        let catalog = txn.catalog();
        let Some(namespace) = self.temp_namespace(&catalog) else { return Ok(()) };
        let tables = catalog.tables.values().filter(|table| table.namespace == namespace.id);
        let mut edits = Vec::new();
        for table in tables {
            match table.on_commit {
                OnCommit::PreserveRows => {}
                OnCommit::DeleteRows if self.db.engine().estimated_rows(table) == 0 => {}
                OnCommit::DeleteRows => edits.push(CatalogEdit::PutTable(Arc::new(emptied(self, table)))),
                OnCommit::Drop => {
                    edits.extend(catalog.sequences_of(table.id).map(|owned| CatalogEdit::DropSequence(owned.id)));
                    edits.push(CatalogEdit::DropTable(table.id));
                }
            }
        }
        if !edits.is_empty() {
            self.txn()?.edit_catalog(edits)?;
        }
        Ok(())
    }

    /// The session ends.
    pub(super) fn drop_temp_schema(&mut self) {
        let engine = self.db.engine().clone();
        let Some(namespace) = self.temp_namespace(&engine.catalog()) else { return };
        self.db.runtime().handle().spawn(async move {
            if let Err(error) = drop_schema(&engine, namespace.id).await {
                tracing::warn!(%error, schema = namespace.name, "temporary objects stay until the next start");
            }
        });
    }
}

/// Waits for others that read the tables: superusers may.
async fn drop_schema(engine: &Arc<Engine>, namespace: ObjectId) -> Result<()> {
    let options = TxnOptions {
        isolation: Isolation::ReadCommitted,
        synchronous_commit: false,
        session_version: Version::ZERO,
        session: 0,
    };
    let mut txn = engine.begin(options);
    let tables = txn.catalog();
    let tables = tables.tables.values().filter(|table| table.namespace == namespace).map(|table| table.id);
    for table in tables {
        txn.lock_table(table, TableLock::AccessExclusive, WaitPolicy::Wait(None)).await?;
    }
    let mut edits = contents(&txn.catalog(), namespace);
    edits.push(CatalogEdit::DropNamespace(namespace));
    txn.edit_catalog(edits)?;
    txn.commit().await?;
    Ok(())
}

/// At a start: nobody's temporary objects.
pub(crate) fn drop_left_behind(engine: &Arc<Engine>) -> Result<()> {
    let catalog = engine.catalog();
    let left = catalog.namespaces.values().filter(|namespace| namespace.name.starts_with(TEMP_PREFIX));
    for namespace in left {
        // Nobody holds a lock, and an asynchronous commit does not wait: this ends at once.
        let dropped = drop_schema(engine, namespace.id).now_or_never();
        dropped.ok_or_else(|| SqlError::internal("dropping temporary objects at a start had to wait"))??;
    }
    Ok(())
}
