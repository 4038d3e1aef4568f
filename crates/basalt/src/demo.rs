//! `basalt demo`: a server, rows that keep streaming into it, and what queries see of them meanwhile.
//!
//! Everything goes through the PostgreSQL protocol, as a user's programs would. The flow: a [`scene`] says what
//! is shown ([`history`] of a git repository, or [`tpch`]); [`stream`] generates and sends its rows; [`watch`]
//! asks its queries; [`view`] shows the [`figures`].

mod args;
mod figures;
mod git;
mod history;
mod scene;
mod server;
mod stream;
mod tpch;
mod view;
mod watch;

pub use args::DemoArgs;

use crate::cli::ConnectArgs;
use crate::connect;
use anyhow::{Context, Result, anyhow, bail};
use basalt_sched::Os;
use figures::Shared;
use scene::Scene;
use server::Server;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_postgres::Client;
use view::About;

const PLAIN_SECONDS: u64 = 30;
/// For what is under way at the end: a batch that is being sent, a query.
const END_TIMEOUT: Duration = Duration::from_secs(10);

pub fn run(args: DemoArgs) -> Result<()> {
    let os = Os::real();
    // Before anything is started: this is what most often is not there.
    let repository = match args.tpch {
        Some(_) => None,
        None => Some(git::Repository::open(args.repo.as_deref().unwrap_or(Path::new(".")))?),
    };
    let data_dir = match &args.data_dir {
        Some(dir) => dir.clone(),
        None => temporary_dir(&os)?,
    };
    let mut server = Server::start(&data_dir, &args.listen, &args.http)?;
    println!("Basalt keeps its data in {}", data_dir.display());
    println!("Query it while it runs: psql {}", server.url);
    let runtime = connect::runtime()?;
    let result = show(&os, &runtime, &args, &server.url, repository);
    runtime.shutdown_timeout(END_TIMEOUT);
    let ended = server.ended();
    let stopped = if ended.is_none() { server.stop(&os) } else { Ok(()) };
    match (result, ended) {
        (Err(error), Some(ended)) => bail!("{error:#}\n{ended}"),
        (result, _) => result?,
    }
    stopped?;
    println!("The data stays in {} (remove the folder when you are done).", data_dir.display());
    let program = std::env::args().next().unwrap_or_else(|| "basalt".into());
    println!("A server on it: {program} start --data-dir {}", data_dir.display());
    Ok(())
}

fn temporary_dir(os: &Os) -> Result<PathBuf> {
    let dir = std::env::temp_dir().join(format!("basalt-demo-{:08x}", os.random.next_u64() as u32));
    os.fs.create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}

fn show(os: &Os, runtime: &Runtime, args: &DemoArgs, url: &str, repository: Option<git::Repository>) -> Result<()> {
    let prepared = runtime.block_on(async {
        tokio::select! {
            scene = prepare(args, url, repository) => scene.map(Some),
            _ = interrupted()? => Ok(None),
        }
    });
    let Some(scene) = prepared? else { return Ok(()) };
    let shared = Arc::new(Shared::new(scene.queries.len()));
    let live = !args.plain && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let began = os.clock.monotonic();
    let seconds = args.seconds.or((!live).then_some(PLAIN_SECONDS));
    let about = About {
        title: scene.title.clone(),
        url: url.to_string(),
        queries: scene.queries.iter().map(|query| (query.name, query.title)).collect(),
        rate: args.rate,
        began,
        ends: seconds.map(|seconds| began + Duration::from_secs(seconds)),
    };
    runtime.block_on(start(os, &shared, url, scene, args.rate))?;
    let shown = if live { view::live(os, &shared, &about) } else { view::plain(os, &shared, &about) };
    shared.stop();
    shown?;
    let figures = shared.figures();
    if let Some(failed) = &figures.failed {
        bail!("{failed}");
    }
    println!("{} rows in {} transactions", figures::count(figures.rows_in), figures::count(figures.transactions));
    let errors = figures
        .answers
        .iter()
        .zip(&about.queries)
        .filter_map(|(answer, (name, _))| answer.error.as_ref().map(|error| format!("query {name}: {error}")));
    match errors.collect::<Vec<_>>() {
        errors if errors.is_empty() => Ok(()),
        errors => bail!("{}", errors.join("\n")),
    }
}

async fn prepare(args: &DemoArgs, url: &str, repository: Option<git::Repository>) -> Result<Scene> {
    let client = connect(url).await?;
    // "already exists, skipping" is no news.
    let quiet = client.batch_execute("SET client_min_messages = warning").await;
    quiet.map_err(|error| anyhow!("{}", connect::describe(&error)))?;
    match (repository, args.tpch) {
        (Some(repository), _) => history::prepare(&client, repository).await,
        (None, scale_factor) => tpch::prepare(&client, scale_factor.unwrap_or(1.0)).await,
    }
}

async fn connect(url: &str) -> Result<Client> {
    connect::connect(&ConnectArgs { url: url.to_string() }).await
}

/// Starts the stream and everyone who watches it.
async fn start(os: &Os, shared: &Arc<Shared>, url: &str, scene: Scene, rate: u64) -> Result<()> {
    let (batches, received) = stream::queue();
    let (probes, probed) = tokio::sync::watch::channel(stream::Probe::default());
    tokio::spawn(stream::send(shared.clone(), connect(url).await?, received));
    tokio::spawn(watch::freshness(os.clone(), shared.clone(), connect(url).await?, scene.probe, probed));
    tokio::spawn(watch::storage(shared.clone(), connect(url).await?));
    for (at, query) in scene.queries.into_iter().enumerate() {
        tokio::spawn(watch::ask(os.clone(), shared.clone(), connect(url).await?, query, at));
    }
    let stop = interrupted()?;
    tokio::spawn({
        let shared = shared.clone();
        async move {
            stop.await;
            shared.stop();
        }
    });
    let (os, shared) = (os.clone(), shared.clone());
    std::thread::spawn(move || stream::generate(&os, &shared, scene.source, rate, batches, probes));
    Ok(())
}

/// Ends at a signal that asks this process to end.
fn interrupted() -> Result<impl Future<Output = ()> + Send> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
