//! PostgreSQL's protocol, version 3.0 (manual chapter 55).
//!
//! A connection is one task at a time, on one reactor after the other. It reads a message, lets the session
//! do what the message says, and writes the answer into its send buffer, which goes out at Sync, Flush, the
//! end of a simple query, or when it is full. Nothing is read while a statement runs, so a client that sends
//! without reading meets TCP's back-pressure; that the client has closed its side is noticed all the same, and
//! ends the statement.

mod connection;
mod copy;
mod extended;
mod frontend;
mod inline;
mod input;
mod login;
mod output;
mod rows;
mod scram;
mod simple;
mod startup;

pub use connection::serve;
pub use output::Output;

use basalt_query::{Severity, SqlError};
use input::Input;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Why a message was not answered as the client hoped.
#[derive(Debug)]
pub enum Fault {
    /// Reported; the connection goes on.
    Statement(SqlError),
    /// Reported; the connection ends.
    Fatal(SqlError),
    /// The client has gone, with or without Terminate.
    Closed,
    Io(io::Error),
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Fault {
        match error.severity {
            Severity::Fatal => Fault::Fatal(error),
            _ => Fault::Statement(error),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}

/// Where a client connects from.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    Tcp(SocketAddr),
    Unix,
}

impl Peer {
    pub fn addr(&self) -> Option<SocketAddr> {
        match self {
            Peer::Tcp(addr) => Some(*addr),
            Peer::Unix => None,
        }
    }

    /// On this machine: roles without a password are trusted.
    pub fn is_local(&self) -> bool {
        match self {
            Peer::Tcp(addr) => addr.ip().to_canonical().is_loopback(),
            Peer::Unix => true,
        }
    }
}

/// The two directions of one connection's bytes.
pub struct Client {
    pub wire: crate::wire::Wire,
    pub input: Input,
    pub out: Output,
}

impl Client {
    pub fn new(wire: crate::wire::Wire) -> Client {
        // Nothing that comes before login is large.
        Client { wire, input: Input::new(65_535), out: Output::default() }
    }

    pub async fn flush(&mut self) -> io::Result<()> {
        self.out.flush(&mut self.wire).await
    }

    pub async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.out.is_full() {
            self.flush().await?;
            // A client that takes all at once would keep the thread from others.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Waits for the session; [`Fault::Closed`] if the client goes away meanwhile, which drops the work.
    pub async fn unless_gone<T>(&self, work: impl Future<Output = Result<T, SqlError>>) -> Result<T, Fault> {
        const CHECK_EVERY: Duration = Duration::from_secs(1);
        let gone = async {
            while !self.wire.is_closed() {
                tokio::time::sleep(CHECK_EVERY).await;
            }
        };
        tokio::select! {
            biased;
            result = work => Ok(result?),
            () = gone => Err(Fault::Closed),
        }
    }

    /// Sends what is in the buffer and hangs up. Bytes that the client sent meanwhile are read away:
    /// closing a socket with unread bytes resets it, and the client would lose our last message.
    pub async fn hang_up(mut self) {
        const PATIENCE: Duration = Duration::from_secs(1);
        let farewell = async {
            self.flush().await?;
            self.wire.shutdown().await?;
            let mut rest = [0; 4096];
            while self.wire.read(&mut rest).await? > 0 {}
            io::Result::Ok(())
        };
        // Whether the client hears it is up to the client.
        let _ = tokio::time::timeout(PATIENCE, farewell).await;
    }
}
