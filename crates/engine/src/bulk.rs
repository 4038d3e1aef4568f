//! Batches: rows that arrive together and become visible together (Karst's protocol, one process).

use crate::{Result, Txn};
use arrow_array::ArrayRef;

pub struct BulkInsert<'a> {
    #[allow(unused)]
    txn: &'a mut Txn,
}

impl BulkInsert<'_> {
    /// Appends rows: one array per column of the table in column-id order, in stored form
    /// (`types::batch::to_stored`), not-null and types checked by the caller.
    /// `Error::DuplicateKey` ends the statement.
    pub async fn push(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let _ = columns;
        Ok(())
    }

    /// Writes what is buffered and checks the keys. Returns the number of rows.
    pub async fn finish(self) -> Result<u64> {
        Ok(0)
    }
}
