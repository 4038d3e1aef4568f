//! Work with the session's transaction that takes long: it runs on the query runtime, and the connection's
//! thread, which serves others too, only waits.
//!
//! A task owns the transaction while it works, and the session keeps it as [`Lent`]. A statement that fails or is
//! canceled no longer wants the work; the task sees that at its next await. What it has done is then [`Undoing`],
//! back to the last savepoint or to nothing. The error may be told meanwhile, but not that the session is ready:
//! [`Session::settle`] comes first, so that no client meets the remains of its own statement.

use super::Session;
use crate::error::{Result, SqlError};
use basalt_engine::{Savepoint, Txn};
use basalt_types::Version;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A transaction at work. Dropping it ends the work at its next await, and then the transaction.
pub(crate) struct Lent {
    task: JoinHandle<(Txn, Result<u64>)>,
    wanted: oneshot::Sender<()>,
}

/// A transaction on its way back to a savepoint; `None` comes of one that went with its task.
pub(crate) type Undoing = JoinHandle<Option<Undone>>;

/// What is left of a transaction that was taken back.
pub(crate) struct Undone {
    /// `None`: it was rolled back whole.
    txn: Option<Txn>,
    /// [`Txn::met`]: what it was told of others is seen by whatever the session does next.
    met: Version,
}

impl Session {
    /// Runs `work` with the transaction; it gives a count. Wait for it with [`Session::take_back`].
    pub(crate) fn lend(
        &mut self,
        work: impl for<'a> FnOnce(&'a mut Txn) -> BoxFuture<'a, Result<u64>> + Send + 'static,
    ) -> Result<()> {
        let mut txn = self.take_txn()?;
        let (wanted, unwanted) = oneshot::channel::<()>();
        let task = self.db.runtime().handle().spawn(async move {
            let worked = tokio::select! {
                biased;
                _ = unwanted => Err(SqlError::canceled()),
                worked = work(&mut txn) => worked,
            };
            (txn, worked)
        });
        self.block.lent = Some(Lent { task, wanted });
        Ok(())
    }

    /// Waits for the work; the transaction is back afterwards.
    pub(crate) async fn take_back(&mut self) -> Result<u64> {
        let Some(lent) = &mut self.block.lent else { return Err(SqlError::internal("the transaction is not at work")) };
        let joined = (&mut lent.task).await;
        self.block.lent = None;
        let (txn, worked) = joined.map_err(|error| SqlError::internal(format!("a task failed: {error}")))?;
        self.block.txn = Some(txn);
        worked
    }

    /// Runs `work` with the transaction and waits for what it gives.
    pub(crate) async fn off_thread<T: Send + 'static>(
        &mut self,
        work: impl for<'a> FnOnce(&'a mut Txn) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (done, result) = oneshot::channel();
        self.lend(move |txn| {
            Box::pin(async move {
                let value = work(txn).await?;
                // Nobody waits for the value of a statement that was canceled.
                done.send(value).map(|()| 0).map_err(|_| SqlError::canceled())
            })
        })?;
        self.take_back().await?;
        result.await.map_err(|_| SqlError::internal("a task ended without its result"))
    }

    /// Takes back what the transaction has changed, since a savepoint or all: at once if that is little,
    /// otherwise elsewhere.
    pub(crate) fn undo(&mut self, to: Option<Savepoint>) {
        let handle = self.db.runtime().handle().clone();
        if let Some(Lent { task, wanted }) = self.block.lent.take() {
            drop(wanted);
            self.block.undoing = Some(handle.clone().spawn(async move {
                // Of a task that panicked, the transaction went with it.
                let (txn, _) = task.await.ok()?;
                handle.spawn_blocking(move || undone(txn, to)).await.ok()
            }));
        } else if let Some(txn) = self.block.txn.take() {
            match txn.is_long() {
                true => self.block.undoing = Some(handle.spawn_blocking(move || Some(undone(txn, to)))),
                false => self.take_undone(undone(txn, to)),
            }
        }
    }

    /// Waits until the transaction is undone as far as it will be.
    pub(crate) async fn settle(&mut self) {
        let Some(undoing) = &mut self.block.undoing else { return };
        // A panic in there has been logged.
        let undone = undoing.await.ok().flatten();
        self.block.undoing = None;
        if let Some(undone) = undone {
            self.take_undone(undone);
        }
    }

    fn take_undone(&mut self, Undone { txn, met }: Undone) {
        self.block.txn = txn;
        self.version = self.version.max(met);
    }
}

fn undone(mut txn: Txn, to: Option<Savepoint>) -> Undone {
    let met = txn.met();
    // What cannot be undone in part is undone whole: ROLLBACK TO then finds no transaction.
    match to.map(|savepoint| txn.rollback_to(savepoint)) {
        Some(Ok(())) => Undone { txn: Some(txn), met },
        Some(Err(_)) | None => {
            txn.rollback();
            Undone { txn: None, met }
        }
    }
}
