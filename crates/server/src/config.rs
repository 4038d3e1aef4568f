//! Where a server listens, and its limits (DESIGN rule 7).

use std::net::SocketAddr;
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
    /// HTTP requests served at once.
    pub http_requests_max: usize,
}

impl ServerConfig {
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
            http_requests_max: 64,
        }
    }
}
