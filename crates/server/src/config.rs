//! Where a server listens, and its limits (DESIGN rule 7).

use crate::{Error, tls};
use basalt_sched::FileSystem;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

/// A certificate chain and its key, both PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub listen: SocketAddr,
    /// Health, metrics and SQL over HTTP; `None`: no HTTP.
    pub http: Option<SocketAddr>,
    /// Directory of a Unix socket named as libpq expects it, `.s.PGSQL.<port>`.
    pub socket_dir: Option<PathBuf>,
    /// Encryption is offered if set.
    pub tls: Option<TlsFiles>,
    /// A client that has not logged in after this long is disconnected.
    pub authentication_timeout: Duration,
    /// Connections that may be logging in at once, besides those that are logged in.
    pub half_open_max: usize,
    /// Longest message of a client that has logged in.
    pub message_bytes_max: usize,
    /// How long a shutdown waits for running statements.
    pub drain_timeout: Duration,
    /// HTTP connections open at once.
    pub http_connections_max: usize,
    /// Of their requests, those for /sql that are served at once.
    pub http_requests_max: usize,
}

impl ServerConfig {
    /// Whether a server could start with it now: certificate and key are usable, the addresses are free.
    pub fn check(&self, fs: &dyn FileSystem) -> Result<(), Error> {
        if let Some(files) = &self.tls {
            tls::acceptor(fs, files)?;
        }
        for addr in [Some(self.listen), self.http].into_iter().flatten() {
            TcpListener::bind(addr).map_err(|source| Error::Listen { addr, source })?;
        }
        Ok(())
    }

    pub fn new(listen: SocketAddr) -> ServerConfig {
        ServerConfig {
            listen,
            http: None,
            socket_dir: None,
            tls: None,
            authentication_timeout: Duration::from_secs(60),
            half_open_max: 128,
            message_bytes_max: 256 << 20,
            drain_timeout: Duration::from_secs(10),
            http_connections_max: 256,
            http_requests_max: 64,
        }
    }
}
