//! A connection that also knows command tags and the state of its transaction, and how to cancel what it runs.

use super::tap::{Heard, Tap};
use crate::cli::ConnectArgs;
use crate::connect::{self, describe};
use anyhow::{Context, Result, anyhow, bail};
use basalt_sched::Os;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::config::Host;
use tokio_postgres::{CancelToken, Client, Config, NoTls};

/// A server that was just started may still be recovering.
const START_PATIENCE: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
const PORT_DEFAULT: u16 = 5433;

pub struct Session {
    pub client: Client,
    pub heard: Heard,
    place: Place,
}

#[derive(Clone)]
enum Place {
    Tcp(String, u16),
    Unix(PathBuf),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Place {
    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Place::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Place::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Tcp(host, port) => write!(f, "{host}:{port}"),
            Place::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Session {
    /// Waits a little for a server that does not listen yet.
    pub async fn open(os: &Os, args: &ConnectArgs) -> Result<Session> {
        let config = connect::config(args)?;
        let (place, stream) = reach(os, &places(&config)).await?;
        let heard = Heard::default();
        let stream = Tap::new(stream, heard.clone());
        let (client, connection) = config
            .connect_raw(stream, NoTls)
            .await
            .map_err(|error| anyhow!("cannot connect to {place}: {}", describe(&error)))?;
        tokio::spawn(connect::drive(connection));
        Ok(Session { client, heard, place })
    }

    pub fn canceler(&self) -> Canceler {
        Canceler { token: self.client.cancel_token(), place: self.place.clone() }
    }
}

pub struct Canceler {
    token: CancelToken,
    place: Place,
}

impl Canceler {
    /// Asks the server to end what runs. If that cannot be asked it is about to end anyway.
    pub async fn cancel(&self) {
        if let Ok(stream) = self.place.connect().await {
            let _ = self.token.cancel_query_raw(stream, NoTls).await;
        }
    }
}

/// In the order in which they are to be tried.
fn places(config: &Config) -> Vec<Place> {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT_DEFAULT);
    let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| match host {
        Host::Tcp(name) => Place::Tcp(name.clone(), port(at)),
        Host::Unix(dir) => Place::Unix(dir.join(format!(".s.PGSQL.{}", port(at)))),
    });
    let hosts: Vec<Place> = hosts.collect();
    if !hosts.is_empty() {
        return hosts;
    }
    let addrs = config.get_hostaddrs().iter().enumerate();
    addrs.map(|(at, addr)| Place::Tcp(addr.to_string(), port(at))).collect()
}

async fn reach(os: &Os, places: &[Place]) -> Result<(Place, Box<dyn Stream>)> {
    let until = os.clock.monotonic() + START_PATIENCE;
    let mut told = false;
    loop {
        let mut failed = None;
        for place in places {
            match place.connect().await {
                Ok(stream) => return Ok((place.clone(), stream)),
                Err(error) => failed = Some((place, error)),
            }
        }
        let Some((place, error)) = failed else { bail!("--url names no host") };
        if error.kind() != io::ErrorKind::ConnectionRefused || os.clock.monotonic() >= until {
            return Err(error).with_context(|| format!("cannot connect to {place}"));
        }
        if !std::mem::replace(&mut told, true) {
            eprintln!("basalt: nothing listens on {place} yet; waiting up to {} s", START_PATIENCE.as_secs());
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}
