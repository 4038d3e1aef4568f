//! The extended protocol: Parse, Bind, Describe, Execute and Close in a pipeline that ends with Sync.
//!
//! Answers stay in the send buffer until Sync or Flush. The first error is sent at once, and then every
//! message up to Sync is skipped.

use super::connection::Connection;
use super::frontend::{Frontend, Target};
use super::inline::answer;
use super::{Fault, Output};
use basalt_query::{Ended, Session, SqlError};
use std::pin::pin;

impl Connection {
    /// Does what a message says (or reports why it could not be read).
    pub(super) async fn extended(&mut self, message: Result<Frontend<'_>, SqlError>) -> Result<(), Fault> {
        let result = match message {
            Ok(message) => self.extended_step(message).await,
            Err(error) => Err(error.into()),
        };
        match result {
            Err(Fault::Statement(error)) => {
                self.refuse(&error);
                self.flushed().await
            }
            other => other,
        }
    }

    /// Reports an error: what follows up to Sync is skipped.
    pub(super) fn refuse(&mut self, error: &SqlError) {
        self.session.fail();
        self.skipping = true;
        self.report(error);
    }

    async fn extended_step(&mut self, message: Frontend<'_>) -> Result<(), Fault> {
        match message {
            Frontend::Parse { statement, sql, param_oids } => {
                self.session.prepare(statement, sql, &param_oids).await?;
                self.client.out.parse_complete();
            }
            Frontend::Execute { portal, max_rows } => {
                let outcome = self.client.unless_gone(pin!(self.session.execute(portal, max_rows))).await?;
                let done = self.deliver(outcome, false).await?;
                self.complete(done);
            }
            other => {
                if !answer(&mut self.session, &mut self.client.out, &other)? {
                    unreachable!("{other:?} is no message of the extended protocol");
                }
            }
        }
        // A client that sends without end and never says Sync must not fill the buffer.
        Ok(self.client.flush_if_full().await?)
    }

    /// Ends the pipeline and its implicit transaction.
    pub(super) async fn sync(&mut self) -> Result<(), Fault> {
        self.skipping = false;
        match self.session.sync().await.map_err(Fault::from) {
            Ok(()) => {}
            Err(Fault::Statement(error)) => self.report(&error),
            Err(fault) => return Err(fault),
        }
        self.ready();
        Ok(())
    }
}

impl Output {
    pub(super) fn notices(&mut self, session: &mut Session) {
        for notice in session.take_notices() {
            self.error(&notice);
        }
    }

    pub(super) fn ended(&mut self, session: &mut Session, Ended { verb, rows }: &Ended) {
        self.notices(session);
        match rows {
            Some(rows) => self.command_complete_rows(verb, *rows),
            None => self.command_complete(verb),
        }
    }

    pub(super) fn describe(&mut self, session: &mut Session, target: Target, name: &str) -> Result<(), SqlError> {
        let columns = match target {
            Target::Statement => {
                let (params, columns) = session.describe_statement(name)?;
                self.parameter_description(&params);
                columns
            }
            Target::Portal => session.describe_portal(name)?,
        };
        match columns {
            Some(columns) => self.row_description(&columns),
            None => self.no_data(),
        }
        Ok(())
    }
}
