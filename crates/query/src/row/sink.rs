//! Where rows go.

use crate::error::Result;
use crate::session::ResultColumn;

/// Takes rows cell by cell, in the form in which a client gets them.
pub trait RowSink: Send {
    /// What the rows to come look like.
    fn describe(&mut self, columns: &[ResultColumn]);

    /// A place to go back to.
    fn mark(&self) -> usize;

    /// Takes back what came since.
    fn back_to(&mut self, mark: usize);

    fn begin_row(&mut self, cells: usize);

    /// Begins the next cell of the row: its value is what the caller appends until [`RowSink::end_cell`].
    fn begin_cell(&mut self) -> &mut Vec<u8>;

    /// 54000 if the value is longer than can be told.
    fn end_cell(&mut self) -> Result<()>;

    /// A cell without a value.
    fn null(&mut self);

    /// 54000 if the row is longer than can be told.
    fn end_row(&mut self) -> Result<()>;

    /// Takes back the row that was begun and not ended.
    fn drop_row(&mut self);
}
