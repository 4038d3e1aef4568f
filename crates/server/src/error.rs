//! Why a server cannot start; the system's reason is each error's source. What goes wrong on one connection is that client's business (`pg::Fault`).

use basalt_types::ErrorKind;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(thiserror::Error, Debug)]
pub enum Error {
    #[error("cannot listen on {addr}")]
    Listen { addr: SocketAddr, source: io::Error },
    #[error("cannot listen on socket {path}")]
    ListenUnix { path: PathBuf, source: io::Error },
    #[error(
        "refusing to listen on {addr}, which other machines can reach, while superuser \"{role}\" has no password \
         (connect locally and run: ALTER ROLE \"{role}\" PASSWORD '…')"
    )]
    NoPassword { addr: SocketAddr, role: String },
    #[error("cannot start the reactor threads")]
    Threads(#[source] io::Error),
    #[error("cannot read {path}")]
    TlsFile { path: PathBuf, source: io::Error },
    #[error("{path} holds no usable PEM {what}: {reason}")]
    TlsContent { path: PathBuf, what: &'static str, reason: String },
}

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::NoPassword { .. } | Error::TlsContent { .. } => ErrorKind::Invalid,
            Error::Listen { .. } | Error::ListenUnix { .. } | Error::Threads(_) | Error::TlsFile { .. } => {
                ErrorKind::Internal
            }
        }
    }
}
