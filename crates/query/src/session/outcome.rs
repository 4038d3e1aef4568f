//! What a statement gives back: a tag, rows, or one of COPY's two directions.

use super::Session;
use crate::error::Result;
use arrow_array::RecordBatch;
use basalt_types::DataType;
use bytes::Bytes;

/// One column of a result, as RowDescription tells it.
#[derive(Clone, PartialEq, Debug)]
pub struct ResultColumn {
    pub name: String,
    pub ty: DataType,
    /// Of the table column that it is, or 0.
    pub table_oid: u32,
    pub column_no: i16,
    /// 0 text, 1 binary.
    pub format: i16,
}

pub enum Outcome {
    /// An empty statement.
    Empty,
    Command {
        tag: String,
    },
    Rows(RowStream),
    CopyIn(CopyIn),
    CopyOut(CopyOut),
}

/// Rows of a running query. Ask for the next until `None`, then for the tag.
pub struct RowStream {
    pub columns: Vec<ResultColumn>,
    pub(crate) rows: u64,
    pub(crate) suspended: bool,
}

impl RowStream {
    /// Batches of at most 8,192 rows; one column per entry of `columns`, in `DataType::to_arrow` form.
    pub async fn next(&mut self, session: &mut Session) -> Result<Option<RecordBatch>> {
        let _ = session;
        Ok(None)
    }

    /// The command tag, once `next` has given `None`.
    pub fn tag(&self) -> String {
        format!("SELECT {}", self.rows)
    }

    /// The portal's row limit was reached with rows left: PortalSuspended instead of a tag.
    pub fn suspended(&self) -> bool {
        self.suspended
    }
}

/// A COPY FROM STDIN that waits for data: feed it through [`Session::copy_data`].
pub struct CopyIn {
    /// 0 text, 1 binary, for CopyInResponse.
    pub format: i16,
    pub columns: usize,
}

/// A COPY TO STDOUT: chunks for CopyData, whole rows each.
pub struct CopyOut {
    pub format: i16,
    pub columns: usize,
    pub(crate) rows: u64,
}

impl CopyOut {
    pub async fn next(&mut self, session: &mut Session) -> Result<Option<Bytes>> {
        let _ = session;
        Ok(None)
    }

    pub fn tag(&self) -> String {
        format!("COPY {}", self.rows)
    }
}
