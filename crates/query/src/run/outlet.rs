//! Where the rows of a running plan go: to a bounded channel, whose other end may be slow, asleep or gone.

use crate::error::Result;
use arrow_array::RecordBatch;
use basalt_sched::fair;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

#[derive(Clone)]
pub(crate) struct Outlet {
    sender: mpsc::Sender<Result<RecordBatch>>,
    /// Whose permit to run is given back rather than kept while somebody is waited for.
    admitted: Option<Arc<fair::Statement>>,
}

impl Outlet {
    pub fn of_admitted(sender: mpsc::Sender<Result<RecordBatch>>, statement: &Arc<fair::Statement>) -> Outlet {
        Outlet { sender, admitted: Some(statement.clone()) }
    }

    /// Whose receiver is a part of the same task, and takes all at once.
    pub fn to_own_task(sender: mpsc::Sender<Result<RecordBatch>>) -> Outlet {
        Outlet { sender, admitted: None }
    }

    /// Whether somebody takes it.
    pub async fn send(&self, batch: Result<RecordBatch>) -> bool {
        let batch = match self.sender.try_send(batch) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(batch)) => batch,
        };
        if let Some(statement) = &self.admitted {
            statement.give_back_permit();
        }
        self.sender.send(batch).await.is_ok()
    }
}
