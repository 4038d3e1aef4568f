//! The two servers, as child processes that end with the test whatever happens to it.

mod basalt;
mod postgres;

pub use basalt::{Basalt, BasaltOptions};
pub use postgres::Postgres;

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports of a process of tests: below those that systems give out themselves.
const FIRST_PORT: u16 = 12_000;
const BLOCKS: u16 = 40;
const PORTS_PER_BLOCK: u16 = 500;

/// An address on loopback that nobody listens on. It stays free while its server is down: no other process of tests
/// is given it, and this one only after hundreds of others.
pub fn free_addr() -> Result<SocketAddr> {
    static BLOCK: OnceLock<Option<(File, u16)>> = OnceLock::new();
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let block = BLOCK.get_or_init(|| (0..BLOCKS).find_map(|block| Some((claim(block)?, block))));
    let (_, block) = block.as_ref().context("every block of ports is taken by tests that run")?;
    for _ in 0..PORTS_PER_BLOCK {
        let port = FIRST_PORT + block * PORTS_PER_BLOCK + NEXT.fetch_add(1, Ordering::Relaxed) % PORTS_PER_BLOCK;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(listener.local_addr()?);
        }
    }
    bail!("no port of block {block} is free")
}

/// The lock of a block of ports, held until the process ends.
fn claim(block: u16) -> Option<File> {
    let file = File::create(std::env::temp_dir().join(format!("basalt-it-ports-{block}"))).ok()?;
    file.try_lock().ok()?;
    Some(file)
}
