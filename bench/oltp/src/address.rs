//! Where a server is, and the socket that leads there.

use anyhow::{Context as _, Result, bail};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// `postgresql://user@host:port/database`: what the harness passes. No password, no TLS. A host that begins with `%2F`
/// is the folder of a Unix socket, percent-encoded (PostgreSQL manual, "Connection URIs").
#[derive(Clone, Debug)]
pub struct Address {
    pub user: String,
    pub database: String,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Tcp(String),
    Unix(PathBuf),
}

impl std::str::FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(url: &str) -> Result<Address> {
        let rest = url.strip_prefix("postgresql://").context("it does not begin with postgresql://")?;
        let (user, rest) = rest.split_once('@').context("it names no user")?;
        let (host, database) = rest.split_once('/').context("it names no database")?;
        let (host, port) = host.split_once(':').unwrap_or((host, "5432"));
        let host = decoded(host)?;
        let place = if host.starts_with('/') {
            Place::Unix(PathBuf::from(host).join(format!(".s.PGSQL.{port}")))
        } else {
            Place::Tcp(format!("{host}:{port}"))
        };
        Ok(Address { user: user.to_string(), database: database.to_string(), place })
    }
}

/// Percent-encoding undone (RFC 3986, 2.1).
fn decoded(text: &str) -> Result<String> {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).context("% without two digits")?;
        out.push(u8::from_str_radix(digits, 16).with_context(|| format!("%{digits} is no byte"))?);
        out.extend_from_slice(rest.as_bytes());
    }
    match String::from_utf8(out) {
        Ok(text) => Ok(text),
        Err(_) => bail!("the host is not UTF-8"),
    }
}

#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub fn connect(address: &Address) -> Result<Socket> {
        match &address.place {
            Place::Tcp(host) => {
                let stream = TcpStream::connect(host).with_context(|| format!("cannot connect to {host}"))?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Place::Unix(path) => {
                let connected = UnixStream::connect(path);
                Ok(Socket::Unix(connected.with_context(|| format!("cannot connect to {}", path.display()))?))
            }
        }
    }

    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_nonblocking(true),
            Socket::Unix(stream) => stream.set_nonblocking(true),
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Socket::Tcp(stream) => stream.as_raw_fd(),
            Socket::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(into),
            Socket::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    /// Nothing is kept back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
