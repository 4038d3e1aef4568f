//! The simple protocol: one Query message, its statements in one implicit transaction, one ReadyForQuery.

use super::Fault;
use super::connection::Connection;
use basalt_query::{Ended, Outcome, RowStream, SqlError};
use std::pin::pin;

/// How a statement ended, as the client is told.
pub enum Done {
    Empty,
    Tag(String),
    Suspended,
}

impl Connection {
    /// Runs a Query message (or reports why it could not be read).
    pub(super) async fn simple_query(&mut self, sql: Result<&str, SqlError>) -> Result<(), Fault> {
        let result = match sql {
            Ok(sql) => self.run_statements(sql).await,
            Err(error) => Err(error.into()),
        };
        self.end_query(result).await
    }

    /// Commits what a query wrote that was run where its message was read, or rolls it back, and answers it.
    pub(super) async fn commit_query(&mut self, ended: Result<Ended, SqlError>) -> Result<(), Fault> {
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return self.end_query(Err(error.into())).await,
        };
        // Who waits for an answer to one before does not wait for this.
        if self.client.out.holds_answer() {
            self.flushed().await?;
        }
        let result = self.session.finish_simple().await.map_err(Fault::from);
        if result.is_ok() {
            self.client.out.ended(&mut self.session, &ended);
        }
        self.end_query(result).await
    }

    async fn end_query(&mut self, result: Result<(), Fault>) -> Result<(), Fault> {
        match result {
            Ok(()) => {}
            Err(Fault::Statement(error)) => {
                self.session.fail();
                self.report(&error);
                // The client may hear of it while it is undone.
                self.flushed().await?;
                // Rolls back; the statement's own error is what the client must hear.
                let _ = self.session.finish_simple().await;
            }
            Err(fault) => return Err(fault),
        }
        self.ready();
        Ok(())
    }

    async fn run_statements(&mut self, sql: &str) -> Result<(), Fault> {
        let statements = self.session.parse_simple(sql)?;
        let Some((last, others)) = statements.split_last() else {
            self.session.finish_simple().await?;
            self.client.out.empty_query();
            return Ok(());
        };
        for statement in others {
            let outcome = self.client.unless_gone(pin!(self.session.run_simple(statement))).await?;
            let done = self.deliver(outcome, true).await?;
            self.complete(done);
        }
        let outcome = self.client.unless_gone(pin!(self.session.run_simple(last))).await?;
        let done = self.deliver(outcome, true).await?;
        // CommandComplete of the last statement acknowledges the commit.
        self.session.finish_simple().await?;
        self.complete(done);
        Ok(())
    }

    pub(super) fn complete(&mut self, done: Done) {
        self.notices();
        match done {
            Done::Empty => self.client.out.empty_query(),
            Done::Tag(tag) => self.client.out.command_complete(&tag),
            Done::Suspended => self.client.out.portal_suspended(),
        }
    }

    /// Carries an outcome to its end; the simple protocol describes rows before it sends them.
    pub(super) async fn deliver(&mut self, outcome: Outcome, describe: bool) -> Result<Done, Fault> {
        match outcome {
            Outcome::Empty => Ok(Done::Empty),
            Outcome::Command { tag } => Ok(Done::Tag(tag)),
            Outcome::Rows(rows) => {
                if describe {
                    self.client.out.row_description(&rows.columns);
                }
                self.rows(rows).await
            }
            Outcome::CopyIn(copy) => self.copy_in(copy).await.map(Done::Tag),
            Outcome::CopyOut(copy) => self.copy_out(copy).await.map(Done::Tag),
        }
    }

    async fn rows(&mut self, mut rows: RowStream) -> Result<Done, Fault> {
        while let Some(batch) = self.client.unless_gone(rows.next(&mut self.session)).await? {
            let encoder = super::rows::Encoder::new(&batch, &rows.columns, self.session.formats());
            let mut row = 0;
            while row < batch.num_rows() {
                row = encoder.write(row, &mut self.client.out)?;
                self.client.flush_if_full().await?;
            }
        }
        Ok(if rows.suspended() { Done::Suspended } else { Done::Tag(rows.tag()) })
    }
}
