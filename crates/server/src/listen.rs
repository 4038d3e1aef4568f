//! Accepting connections, counting them, and ending them in order.
//!
//! A shutdown has three steps: no new connections and idle ones end (57P01); running statements get
//! `drain_timeout`; then they are dropped where they wait, which rolls them back.

use crate::pg::{self, Output, Peer};
use crate::reactors::Reactors;
use crate::wire::Wire;
use crate::{Error, ServerConfig, http, tls};
use basalt_query::{Database, SqlError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

const BACKLOG: u32 = 1024;
/// Far fewer than the threads that a reactor may have.
const LONG_TEXTS_MAX: usize = 64;
/// How long a stopped connection may take to say so.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Rest after an accept that failed (no file descriptors left): trying at once would only spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    Serving,
    /// Idle connections end; running statements go on.
    Draining,
    /// Everything ends.
    Stopped,
}

/// Waits until the server is at least so far. If its sender is gone, it is.
pub async fn reached(stage: &mut watch::Receiver<Stage>, least: Stage) {
    let _ = stage.wait_for(|stage| *stage >= least).await;
}

/// What all connections see.
pub struct Shared {
    pub db: Arc<Database>,
    pub config: ServerConfig,
    pub tls: Option<TlsAcceptor>,
    pub stage: watch::Receiver<Stage>,
    /// Makes the salts of roles that do not exist.
    pub mock_secret: [u8; 32],
    pub half_open: Arc<Semaphore>,
    /// Requests for /sql that may be served at once.
    pub http_requests: Arc<Semaphore>,
    /// Statements that may hold a thread of their own, since their texts are long.
    pub long_texts: Semaphore,
    pub reactors: Reactors,
}

/// A running server.
pub struct Server {
    addr: SocketAddr,
    http: Option<SocketAddr>,
    stop: oneshot::Sender<()>,
    accepting: JoinHandle<()>,
    unix_path: Option<PathBuf>,
    db: Arc<Database>,
}

impl Server {
    /// Binds every address and starts to accept. Call inside of the runtime that shall serve.
    pub async fn start(db: Arc<Database>, config: ServerConfig) -> Result<Server, Error> {
        require_password(&db, config.listen)?;
        if let Some(http) = config.http {
            require_password(&db, http)?;
        }
        let os = db.os().clone();
        let acceptor = config.tls.as_ref().map(|files| tls::acceptor(&*os.fs, files)).transpose()?;
        let tcp = listen(config.listen)?;
        let addr = tcp.local_addr().map_err(|source| Error::Listen { addr: config.listen, source })?;
        let unix_path = config.socket_dir.as_ref().map(|dir| dir.join(format!(".s.PGSQL.{}", addr.port())));
        let unix = match &unix_path {
            Some(path) => Some(listen_unix(&db, path).await?),
            None => None,
        };
        let http_listener = config.http.map(listen).transpose()?;
        let http = http_listener.as_ref().and_then(|listener| listener.local_addr().ok());

        let (stage_sender, stage) = watch::channel(Stage::Serving);
        let (stop, stopped) = oneshot::channel();
        let mut mock_secret = [0; 32];
        os.random.fill(&mut mock_secret);
        let half_open = Arc::new(Semaphore::new(config.half_open_max));
        let http_requests = Arc::new(Semaphore::new(config.http_requests_max));
        let long_texts = Semaphore::new(LONG_TEXTS_MAX);
        let reactors = Reactors::start().map_err(Error::Threads)?;
        let shared = Arc::new(Shared {
            db: db.clone(),
            config,
            tls: acceptor,
            stage,
            mock_secret,
            half_open,
            http_requests,
            long_texts,
            reactors,
        });
        let http_task = http_listener.map(|listener| tokio::spawn(http::serve(listener, shared.clone())));
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            let (alive, mut all_ended) = mpsc::channel(1);
            accept_until(stopped, tcp, unix, &shared, &mut connections, alive).await;
            drain(stage_sender, connections, shared.config.drain_timeout).await;
            // Tasks of reactors that were told to end, and have not come to it yet.
            let _ = all_ended.recv().await;
            if let Some(task) = http_task {
                let _ = timeout(STOP_TIMEOUT, task).await;
            }
        });
        Ok(Server { addr, http, stop, accepting, unix_path, db })
    }

    /// Where PostgreSQL clients connect, with the port that the system chose if 0 was asked for.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Ends all connections, running statements after at most `drain_timeout`.
    pub async fn shutdown(self) {
        // The task is gone only if it panicked; then there is nothing left to stop.
        let _ = self.stop.send(());
        let _ = self.accepting.await;
        if let Some(path) = &self.unix_path
            && let Err(error) = self.db.os().fs.remove(path)
        {
            tracing::warn!("cannot remove {}: {error}", path.display());
        }
    }
}

/// Nobody shall reach a passwordless superuser from elsewhere, not even by mistake.
fn require_password(db: &Database, addr: SocketAddr) -> Result<(), Error> {
    if addr.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let catalog = db.engine().catalog();
    match catalog.roles.values().find(|role| role.superuser && role.login && role.password.is_none()) {
        Some(role) => Err(Error::NoPassword { addr, role: role.name.clone() }),
        None => Ok(()),
    }
}

fn listen(addr: SocketAddr) -> Result<TcpListener, Error> {
    let bind = || {
        let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        // Accepted sockets inherit it: a client whose machine died is noticed some day.
        socket.set_keepalive(true)?;
        socket.bind(addr)?;
        socket.listen(BACKLOG)
    };
    bind().map_err(|source| Error::Listen { addr, source })
}

/// Takes over a socket file that nobody listens on any more.
async fn listen_unix(db: &Database, path: &Path) -> Result<UnixListener, Error> {
    let failed = |source| Error::ListenUnix { path: path.to_path_buf(), source };
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if UnixStream::connect(path).await.is_ok() {
                return Err(failed(error));
            }
            db.os().fs.remove(path).map_err(failed)?;
            UnixListener::bind(path).map_err(failed)
        }
        other => other.map_err(failed),
    }
}

async fn accept_until(
    mut stopped: oneshot::Receiver<()>,
    tcp: TcpListener,
    unix: Option<UnixListener>,
    shared: &Arc<Shared>,
    connections: &mut JoinSet<()>,
    alive: mpsc::Sender<()>,
) {
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => return,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = tcp.accept() => accepted.map(|(stream, addr)| (Wire::Tcp(stream), Peer::Tcp(addr))),
            accepted = accept_unix(unix.as_ref()) => accepted.map(|stream| (Wire::Unix(stream), Peer::Unix)),
        };
        let (wire, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Wire::Tcp(stream) = &wire
            && let Err(error) = stream.set_nodelay(true)
        {
            tracing::debug!(?peer, "connection lost before it began: {error}");
            continue;
        }
        match shared.half_open.clone().try_acquire_owned() {
            Ok(permit) => {
                connections.spawn(pg::serve(wire, peer, shared.clone(), permit, alive.clone()));
            }
            Err(_) => refuse(wire),
        }
    }
}

async fn accept_unix(unix: Option<&UnixListener>) -> io::Result<UnixStream> {
    match unix {
        Some(unix) => unix.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

/// 53300 at once, without reading what the client wants and without waiting for it.
fn refuse(wire: Wire) {
    let mut out = Output::default();
    out.error(&SqlError::fatal("53300", "sorry, too many clients are logging in already"));
    let write = |stream: &TcpStream| stream.try_write(out.bytes_ref());
    let written = match &wire {
        Wire::Tcp(stream) => write(stream),
        Wire::Unix(stream) => stream.try_write(out.bytes_ref()),
        Wire::Tls(_) => return,
    };
    if let Err(error) = written {
        tracing::debug!("cannot refuse a connection: {error}");
    }
}

async fn drain(stage: watch::Sender<Stage>, mut connections: JoinSet<()>, limit: Duration) {
    stage.send_replace(Stage::Draining);
    let all_gone = async |connections: &mut JoinSet<()>| while connections.join_next().await.is_some() {};
    if timeout(limit, all_gone(&mut connections)).await.is_err() {
        tracing::warn!("{} connections are still busy after {limit:?}: their statements end now", connections.len());
    }
    stage.send_replace(Stage::Stopped);
    if timeout(STOP_TIMEOUT, all_gone(&mut connections)).await.is_err() {
        tracing::warn!("{} connections did not end by themselves", connections.len());
        connections.abort_all();
        all_gone(&mut connections).await;
    }
}

#[cfg(test)]
mod tests;
