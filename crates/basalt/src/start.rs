//! `basalt start`: recover, serve, and end in order at SIGTERM or SIGINT.

use crate::cli::StartArgs;
use crate::config::{Settings, StartConfig};
use crate::telemetry;
use anyhow::{Context, Result, anyhow};
use basalt_engine::{Engine, EngineConfig, RecoveryProgress};
use basalt_query::Database;
use basalt_sched::Os;
use basalt_server::Server;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Recovery is silent for this long, then says how far it is, as often.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
/// Threads that accept connections and serve HTTP. Connections (`basalt_server`) and queries have their own.
const FRONT_THREADS: usize = 2;

pub fn run(args: StartArgs) -> Result<()> {
    let os = Os::real();
    let config = StartConfig::read(args, std::env::vars(), &*os.fs)?;
    telemetry::init(&config.log, config.log_format)?;
    if let Ok(place) = std::env::var("BASALT_FAILPOINT")
        && !basalt_sched::failpoint::arm(&place)
    {
        anyhow::bail!("BASALT_FAILPOINT: write NAME or NAME:HIT, not \"{place}\"");
    }
    if let Ok(check) = std::env::var("BASALT_WEAKEN") {
        if !basalt_sched::failpoint::weaken(&check) {
            anyhow::bail!("BASALT_WEAKEN: write one of {}", basalt_sched::failpoint::CHECKS.join(", "));
        }
        tracing::warn!(check, "a check of isolation is left out: BASALT_WEAKEN is for tests of tests");
    }
    // Before anything is made that the refusal would leave behind.
    config.server().check(&*os.fs)?;
    let began = os.clock.monotonic();
    let (engine, catalog) = open_engine(&os, &config)?;
    crate::allocator::keep_freed_memory(config.engine(&catalog).memory_bytes_max);
    if config.huge_pages(&catalog) {
        match basalt_sched::code_pages::move_code() {
            Ok(bytes) => tracing::debug!(bytes, "code on huge pages"),
            Err(error) => tracing::warn!(%error, "the code stays on small pages"),
        }
    }
    let database = Database::new(engine.clone(), os.clone(), config.database(&catalog))
        .map_err(|error| anyhow!("{}", error.message))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // Deeply nested statements are parsed and bound on it.
        .thread_stack_size(32 << 20)
        .worker_threads(FRONT_THREADS)
        .thread_name("basalt-front")
        .enable_all()
        .build()
        .context("cannot start the front threads")?;
    let took = os.clock.monotonic() - began;
    let served = runtime.block_on(serve(&config, database, took));
    runtime.shutdown_timeout(Duration::from_secs(5));
    // Whatever ended the server: what was written gets its checkpoint.
    let closed = engine.shutdown().context("closing the data directory");
    served?;
    closed?;
    tracing::info!("stopped");
    Ok(())
}

/// Opens the data directory. Settings of `ALTER SYSTEM SET` that the engine starts from are in the catalog,
/// which only an open engine can read: if they change anything it is opened a second time.
fn open_engine(os: &Os, config: &StartConfig) -> Result<(Arc<Engine>, Settings)> {
    let known = config.engine(&Settings::new());
    let engine = open(os, known.clone())?;
    let catalog = engine.catalog().settings.clone();
    let wanted = config.engine(&catalog);
    if format!("{known:?}") == format!("{wanted:?}") {
        return Ok((engine, catalog));
    }
    engine.shutdown().context("closing the data directory to open it with its own settings")?;
    drop(engine);
    Ok((open(os, wanted)?, catalog))
}

fn open(os: &Os, config: EngineConfig) -> Result<Arc<Engine>> {
    let clock = os.clock.clone();
    let last_said = AtomicU64::new(clock.monotonic().as_millis() as u64);
    let progress = move |progress: RecoveryProgress| {
        let now = clock.monotonic().as_millis() as u64;
        let due = last_said.load(Ordering::Relaxed) + PROGRESS_INTERVAL.as_millis() as u64;
        if now >= due {
            last_said.store(now, Ordering::Relaxed);
            let percent = progress.done_bytes * 100 / progress.total_bytes.max(1);
            tracing::info!(records = progress.records, "recovering: {percent} % of {} bytes", progress.total_bytes);
        }
    };
    Engine::open(os.clone(), config, &progress).map_err(|error| anyhow!("{error}"))
}

async fn serve(config: &StartConfig, database: Arc<Database>, took: Duration) -> Result<()> {
    // Before the server can be found, so that no signal is missed.
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let server = Server::start(database, config.server()).await?;
    tracing::info!(data_dir = %config.data_dir.display(), addr = %server.addr(), "ready after {took:?}");
    println!("Basalt {} is ready: postgresql://basalt@{}/basalt", env!("CARGO_PKG_VERSION"), local(server.addr()));
    if let Some(http) = server.http_addr() {
        println!("HTTP: http://{}/health", local(http));
    }
    let signal = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!("{signal}: stopping; a second one stops at once");
    tokio::select! {
        () = server.shutdown() => Ok(()),
        _ = terminate.recv() => Err(anyhow!("stopped at once by a second signal")),
        _ = interrupt.recv() => Err(anyhow!("stopped at once by a second signal")),
    }
}

/// Where a client on this machine connects: "all addresses" is none that can be connected to.
fn local(mut addr: SocketAddr) -> SocketAddr {
    match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => addr.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => addr.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    addr
}
