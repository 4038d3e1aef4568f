//! A batch on its way into a table, written by a task of the query runtime.
//!
//! The task owns the session's transaction while it runs, because a batch borrows it (`session/offload.rs`). Producers
//! (COPY's parser, INSERT's query) hand blocks over a bounded channel: that is the back-pressure.

use super::row_path::RowPath;
use crate::bind::BoundInsert;
use crate::error::{Result, SqlError};
use crate::session::Session;
use arrow_array::ArrayRef;
use basalt_engine::Txn;
use basalt_types::{Datum, TableDef, batch};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Blocks waiting between producer and writer.
const BLOCKS_MAX: usize = 2;

pub(crate) enum Block {
    /// One array per column in column-id order, in stored form; completed by [`RowPath::complete_block`].
    Rows(Vec<ArrayRef>),
    /// All rows were sent. A channel that closes without it means that the batch is given up.
    End,
}

impl Session {
    /// Hands the transaction to a writer. Send blocks, then [`Block::End`], then call
    /// [`Session::finish_batch`].
    pub(crate) fn start_batch(&mut self, path: &Arc<RowPath>) -> Result<mpsc::Sender<Block>> {
        let (sender, receiver) = mpsc::channel(BLOCKS_MAX);
        let path = path.clone();
        self.lend(move |txn| Box::pin(write(txn, path, receiver)))?;
        Ok(sender)
    }

    /// Waits for the writer; the transaction is back afterwards. The number of rows.
    pub(crate) async fn finish_batch(&mut self) -> Result<u64> {
        self.take_back().await
    }
}

async fn write(txn: &mut Txn, path: Arc<RowPath>, mut blocks: mpsc::Receiver<Block>) -> Result<u64> {
    let result = write_blocks(txn, &path.table, &mut blocks).await;
    result.map_err(|error| match error {
        Failure::Engine(error) => path.explain(error),
        Failure::GivenUp => SqlError::canceled(),
    })
}

enum Failure {
    Engine(basalt_engine::Error),
    GivenUp,
}

impl From<basalt_engine::Error> for Failure {
    fn from(error: basalt_engine::Error) -> Failure {
        Failure::Engine(error)
    }
}

async fn write_blocks(
    txn: &mut Txn,
    table: &Arc<TableDef>,
    blocks: &mut mpsc::Receiver<Block>,
) -> Result<u64, Failure> {
    let mut insert = txn.bulk_insert(table)?;
    loop {
        match blocks.recv().await {
            Some(Block::Rows(columns)) => insert.push(&columns).await?,
            Some(Block::End) => return Ok(insert.finish().await?),
            None => return Err(Failure::GivenUp),
        }
    }
}

/// Logical columns (one per column of the table, in column-id order) in stored form.
pub(crate) fn stored(table: &TableDef, columns: &[ArrayRef]) -> Vec<ArrayRef> {
    table.columns.iter().zip(columns).map(|(column, array)| batch::to_stored(&column.ty, array)).collect()
}

/// The same as a block to write, completed.
pub(crate) fn stored_block(path: &RowPath, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    path.complete_block(stored(&path.table, columns))
}

/// One row out of stored columns.
pub(crate) fn stored_row(table: &TableDef, stored: &[ArrayRef], row: usize) -> Vec<Datum> {
    let types = table.phys_types();
    types.iter().zip(stored).map(|(ty, array)| batch::datum_at(*ty, array, row)).collect()
}

/// Whether a statement can go through a batch: nothing asks about single rows.
pub(crate) fn is_plain(insert: &BoundInsert) -> bool {
    insert.on_conflict.is_none() && insert.returning.is_none() && insert.rules.view_checks.is_empty()
}
