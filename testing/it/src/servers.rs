//! The two servers, as child processes that end with the test whatever happens to it.

mod basalt;
mod postgres;

pub use basalt::{Basalt, BasaltOptions};
pub use postgres::Postgres;

use anyhow::Result;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// An address on loopback that nobody listens on.
pub fn free_addr() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
