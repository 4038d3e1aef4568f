//! Work with the session's transaction that takes long: it runs on the query runtime, and the connection's
//! thread, which serves others too, only waits.
//!
//! The task owns the transaction while it works, as a batch's writer does, and the session keeps its handle.
//! A statement that is canceled drops its future; the task sees that at its next await, and rolls back or, if
//! there is a savepoint to go back to, hands the transaction over then.

use super::Session;
use crate::error::{Result, SqlError};
use basalt_engine::Txn;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

impl Session {
    pub(crate) async fn off_thread<T: Send + 'static>(
        &mut self,
        work: impl for<'a> FnOnce(&'a mut Txn) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let mut txn = self.take_txn()?;
        let (done, result) = oneshot::channel();
        let (waiting, canceled) = oneshot::channel::<()>();
        let task = self.db.runtime().handle().spawn(async move {
            let worked = tokio::select! {
                biased;
                _ = canceled => Err(SqlError::canceled()),
                worked = work(&mut txn) => worked,
            };
            let ended = match worked {
                // Nobody waits for the value of a statement that was canceled.
                Ok(value) => done.send(value).map(|()| 0).map_err(|_| SqlError::canceled()),
                Err(error) => Err(error),
            };
            (txn, ended)
        });
        self.park_batch(task);
        self.block.is_long = true;
        let ended = self.join_batch().await;
        drop(waiting);
        ended?;
        result.await.map_err(|_| SqlError::internal("a task ended without its result"))
    }

    /// Rolls a transaction back, elsewhere if it may have much to undo.
    pub(crate) fn undo(&mut self, txn: Txn) {
        if self.block.is_long {
            self.block.undoing = Some(self.db.runtime().handle().spawn_blocking(move || txn.rollback()));
        } else {
            txn.rollback();
        }
    }
}
