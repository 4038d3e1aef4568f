//! Messages that are answered on the spot: whatever has arrived is served in one go, without waiting for anything, and
//! what it gives goes out together. A message that may have to wait is left to [`Connection::step`].

use super::connection::{Connection, LONG_BYTES};
use super::frontend::{self, Frontend, Target};
use super::input::{Input, Message};
use super::{Client, Fault, Output};
use basalt_query::{AtOnceQuery, Ended, Session, SqlError};

/// Where the messages that have arrived end.
pub(super) enum Arrived {
    /// All are served.
    Nothing,
    /// This one may have to wait.
    Message(Message),
    /// The transaction of a simple query is to be ended.
    Commit(Result<Ended, SqlError>),
}

impl Connection {
    /// Serves the messages that have arrived, up to one that may have to wait.
    pub(super) fn serve_arrived(&mut self) -> Result<Arrived, Fault> {
        loop {
            let Connection { client: Client { input, out, .. }, session, skipping, .. } = self;
            let Some((tag, body)) = input.peek()? else { return Ok(Arrived::Nothing) };
            if *skipping || out.is_full() || body.len() >= LONG_BYTES {
                return arrived(input);
            }
            let served = serve(session, out, tag, body);
            let body_bytes = body.len();
            match served {
                Ok(Served::Done) => input.pass(body_bytes),
                Ok(Served::Ready) => {
                    input.pass(body_bytes);
                    self.ready();
                }
                Ok(Served::Commit(ended)) => {
                    input.pass(body_bytes);
                    return Ok(Arrived::Commit(ended));
                }
                Ok(Served::Not) => return arrived(input),
                Err(error) => {
                    input.pass(body_bytes);
                    match Fault::from(error) {
                        Fault::Statement(error) => self.refuse(&error),
                        fault => return Err(fault),
                    }
                }
            }
        }
    }
}

fn arrived(input: &mut Input) -> Result<Arrived, Fault> {
    Ok(Arrived::Message(input.take()?))
}

enum Served {
    Done,
    /// The end of an answer.
    Ready,
    /// The end of an answer that is given once its transaction has ended.
    Commit(Result<Ended, SqlError>),
    /// Nothing has happened: it may have to wait.
    Not,
}

fn serve(session: &mut Session, out: &mut Output, tag: u8, body: &[u8]) -> Result<Served, SqlError> {
    if !matches!(tag, b'P' | b'B' | b'D' | b'E' | b'C' | b'S' | b'Q') {
        return Ok(Served::Not);
    }
    // What is no message is told in the usual way.
    let Ok(message) = frontend::parse(tag, body) else { return Ok(Served::Not) };
    match message {
        Frontend::Parse { statement, sql, param_oids } => match session.prepare_known(statement, sql, &param_oids) {
            Some(known) => {
                known?;
                out.parse_complete();
                Ok(Served::Done)
            }
            None => Ok(Served::Not),
        },
        Frontend::Execute { portal, max_rows: 0 } => match session.execute_inline(portal, out) {
            Some(ended) => {
                out.ended(session, &ended?);
                Ok(Served::Done)
            }
            None => Ok(Served::Not),
        },
        Frontend::Query { sql } => match session.query_inline(sql, out) {
            Some(AtOnceQuery { ended, commits: true }) => Ok(Served::Commit(ended)),
            Some(AtOnceQuery { ended, commits: false }) => {
                out.ended(session, &ended?);
                Ok(Served::Ready)
            }
            None => Ok(Served::Not),
        },
        Frontend::Sync if session.sync_inline() => Ok(Served::Ready),
        other if answer(session, out, &other)? => Ok(Served::Done),
        _ => Ok(Served::Not),
    }
}

/// Answers a message of the extended protocol that never waits. False: it is none.
pub(super) fn answer(session: &mut Session, out: &mut Output, message: &Frontend<'_>) -> Result<bool, SqlError> {
    match message {
        Frontend::Bind(bind) => {
            session.bind(bind.portal, bind.statement, &bind.params, &bind.param_formats, &bind.result_formats)?;
            out.bind_complete();
        }
        Frontend::Describe { target, name } => out.describe(session, *target, name)?,
        Frontend::Close { target, name } => {
            match target {
                Target::Statement => session.close_statement(name),
                Target::Portal => session.close_portal(name),
            }
            out.close_complete();
        }
        _ => return Ok(false),
    }
    Ok(true)
}
