//! A batch on its way into a table, written by a task of the query runtime.
//!
//! The task owns the session's transaction while it runs, because a batch borrows it (`session/offload.rs`). Producers
//! (COPY's parser, INSERT's query) hand blocks over a bounded channel: that is the back-pressure.

use crate::bind::Returning;
use crate::error::{Result, SqlError};
use crate::session::Session;
use arrow_array::{Array, ArrayRef};
use basalt_engine::{Catalog, Txn};
use basalt_expr::EvalContext;
use basalt_types::{Datum, TableDef, batch};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Blocks waiting between producer and writer.
const BLOCKS_MAX: usize = 2;

pub(crate) enum Block {
    /// One array per column in column-id order, in stored form; not-null checked.
    Rows(Vec<ArrayRef>),
    /// All rows were sent. A channel that closes without it means that the batch is given up.
    End,
}

impl Session {
    /// Hands the transaction to a writer. Send blocks, then [`Block::End`], then call
    /// [`Session::finish_batch`].
    pub(crate) fn start_batch(
        &mut self,
        table: &Arc<TableDef>,
        catalog: &Arc<Catalog>,
        eval: &Arc<EvalContext>,
    ) -> Result<mpsc::Sender<Block>> {
        let (sender, receiver) = mpsc::channel(BLOCKS_MAX);
        let (table, catalog, eval) = (table.clone(), catalog.clone(), eval.clone());
        self.lend(move |txn| Box::pin(write(txn, table, catalog, eval, receiver)))?;
        Ok(sender)
    }

    /// Waits for the writer; the transaction is back afterwards. The number of rows.
    pub(crate) async fn finish_batch(&mut self) -> Result<u64> {
        self.take_back().await
    }
}

async fn write(
    txn: &mut Txn,
    table: Arc<TableDef>,
    catalog: Arc<Catalog>,
    eval: Arc<EvalContext>,
    mut blocks: mpsc::Receiver<Block>,
) -> Result<u64> {
    let result = write_blocks(txn, &table, &mut blocks).await;
    result.map_err(|error| match error {
        Failure::Engine(error) => super::rows::explain_error(error, &table, &catalog, &eval),
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

/// Logical columns of a query (one per column of the table, in column-id order) as a block, not-null
/// checked.
pub(crate) fn stored_block(
    table: &TableDef,
    columns: &[ArrayRef],
    catalog: &Catalog,
    eval: &EvalContext,
) -> Result<Vec<ArrayRef>> {
    let stored: Vec<ArrayRef> =
        table.columns.iter().zip(columns).map(|(column, array)| batch::to_stored(&column.ty, array)).collect();
    check_block(table, &stored, catalog, eval)?;
    Ok(stored)
}

/// 23502 with the first failing row.
pub(crate) fn check_block(table: &TableDef, stored: &[ArrayRef], catalog: &Catalog, eval: &EvalContext) -> Result<()> {
    for column in table.live_columns().filter(|column| column.not_null) {
        let array = &stored[column.id.position()];
        if array.null_count() > 0 {
            let row = (0..array.len()).find(|row| array.is_null(*row)).unwrap_or(0);
            let values = stored_row(table, stored, row);
            return Err(super::rows::not_null_violation(table, &column.name, &values, catalog, eval));
        }
    }
    Ok(())
}

/// One row out of stored columns.
pub(crate) fn stored_row(table: &TableDef, stored: &[ArrayRef], row: usize) -> Vec<Datum> {
    let types = table.phys_types();
    types.iter().zip(stored).map(|(ty, array)| batch::datum_at(*ty, array, row)).collect()
}

/// Whether a statement can go through a batch: nothing asks about single rows.
pub(crate) fn is_plain(on_conflict: bool, returning: &Option<Returning>) -> bool {
    !on_conflict && returning.is_none()
}
