//! Clients that ask, wait and ask again, many of them on few threads.
//!
//! Each client is a future over its own connection. A thread waits with epoll for all of its clients' sockets and polls
//! the future whose socket has become readable; nothing else ever wakes one. A statement costs one write, one read and
//! a share of one epoll_wait.

use crate::address::Address;
use crate::latency::Latencies;
use crate::wire::{Connection, ServerError, Statement, statement};
use anyhow::{Context as _, Result};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// One kind of client: what it does, transaction by transaction.
// Its futures stay on the thread that made them.
#[allow(async_fn_in_trait)]
pub trait Script {
    /// The kinds of transactions, by which latencies are told apart.
    const KINDS: &'static [&'static str];

    /// Draws the next transaction with all its input and says of which kind it is: a retry repeats the same.
    fn draw(&mut self) -> usize;

    async fn attempt(&mut self, connection: &mut Connection) -> Result<()>;
}

pub const BEGIN: usize = 0;
pub const COMMIT: usize = 1;
pub const ROLLBACK: usize = 2;

/// What every script has before its own statements.
pub fn transaction_control() -> Vec<Statement> {
    vec![statement("BEGIN", ""), statement("COMMIT", ""), statement("ROLLBACK", "")]
}

#[derive(clap::Args, Clone)]
pub struct Load {
    /// Connections, each with one transaction at a time
    #[arg(long, default_value_t = 16)]
    pub clients: usize,
    /// Threads that share them
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Seconds that count
    #[arg(long, default_value_t = 60.0)]
    pub seconds: f64,
    /// Seconds before that do not
    #[arg(long, default_value_t = 10.0)]
    pub warmup: f64,
    /// Of all transactions
    #[arg(long, default_value = "read committed")]
    pub isolation: String,
    /// Tell each statement's latency, too
    #[arg(long)]
    pub by_statement: bool,
    /// Of what is drawn
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A client that meets this many errors has met them all.
const ERRORS_MAX: u64 = 100;

#[derive(Clone, Copy)]
struct Window {
    begin: Instant,
    end: Instant,
}

/// What one client has seen; those of all clients add up.
#[derive(Default)]
struct Tally {
    latencies: Vec<Latencies>,
    /// Of each statement, warm-up and all, if asked for.
    statements: Vec<Latencies>,
    retries: Vec<u64>,
    /// By SQLSTATE, with an example.
    errors: BTreeMap<String, (u64, String)>,
    /// With those of the warm-up.
    committed: u64,
}

impl Tally {
    fn new(kinds: usize) -> Tally {
        Tally { latencies: vec![Latencies::default(); kinds], retries: vec![0; kinds], ..Tally::default() }
    }

    fn merge(&mut self, other: Tally) {
        self.committed += other.committed;
        for (sum, part) in self.latencies.iter_mut().zip(&other.latencies) {
            sum.merge(part);
        }
        self.statements.resize(self.statements.len().max(other.statements.len()), Latencies::default());
        for (sum, part) in self.statements.iter_mut().zip(&other.statements) {
            sum.merge(part);
        }
        for (sum, part) in self.retries.iter_mut().zip(&other.retries) {
            *sum += part;
        }
        for (sqlstate, (count, example)) in other.errors {
            self.errors.entry(sqlstate).or_insert((0, example)).0 += count;
        }
    }
}

/// Runs the scripts that `script` makes, one per client, and says how it went.
pub fn run<S, M>(address: &Address, load: &Load, statements: &[Statement], script: M) -> Result<Map<String, Value>>
where
    S: Script,
    M: Fn(usize) -> S + Sync,
{
    let mut connections = Vec::new();
    for _ in 0..load.clients {
        let mut connection = Connection::open(address)?;
        connection.simple(&format!("SET default_transaction_isolation = '{}'", load.isolation))?;
        connection.prepare(statements)?;
        if load.by_statement {
            connection.time_statements();
        }
        connections.push(connection);
    }
    let begin = Instant::now() + Duration::from_secs_f64(load.warmup);
    let window = Window { begin, end: begin + Duration::from_secs_f64(load.seconds) };
    let mut shares: Vec<Vec<(usize, Connection)>> = (0..load.threads.max(1)).map(|_| Vec::new()).collect();
    for (client, connection) in connections.into_iter().enumerate() {
        let share = client % shares.len();
        shares[share].push((client, connection));
    }
    let cpu_before = cpu_seconds()?;
    let tallies = std::thread::scope(|scope| {
        let script = &script;
        let threads: Vec<_> =
            shares.into_iter().map(|share| scope.spawn(move || run_share(share, window, script))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a client's thread panicked")).collect::<Vec<_>>()
    });
    let mut sum = Tally::new(S::KINDS.len());
    for tally in tallies {
        sum.merge(tally?);
    }
    let mut result = report::<S>(load, &sum, cpu_seconds()? - cpu_before);
    if load.by_statement {
        let line = |(timed, statement): (&Latencies, &Statement)| {
            let mut line = quantiles(timed);
            line.insert("sql".to_string(), json!(statement.sql));
            Value::Object(line)
        };
        result.insert("statements".to_string(), sum.statements.iter().zip(statements).map(line).collect());
    }
    Ok(result)
}

type Client<'s> = Pin<Box<dyn Future<Output = Result<Tally>> + 's>>;

/// One thread's clients.
fn run_share<S, M>(share: Vec<(usize, Connection)>, window: Window, script: &M) -> Result<Tally>
where
    S: Script,
    M: Fn(usize) -> S,
{
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(share.len().max(1));
    let mut clients: Vec<Option<Client>> = Vec::new();
    for (place, (client, mut connection)) in share.into_iter().enumerate() {
        connection.stop_blocking()?;
        let socket = connection.socket().as_raw_fd();
        poll.registry().register(&mut SourceFd(&socket), Token(place), Interest::READABLE)?;
        clients.push(Some(Box::pin(serve(script(client), connection, window))));
    }
    let mut sum = Tally::new(S::KINDS.len());
    let mut running = clients.len();
    let mut context = Context::from_waker(Waker::noop());
    let mut wake = |client: &mut Option<Client>, running: &mut usize| -> Result<()> {
        if let Some(future) = client
            && let std::task::Poll::Ready(tally) = future.as_mut().poll(&mut context)
        {
            *client = None;
            *running -= 1;
            sum.merge(tally?);
        }
        Ok(())
    };
    for client in &mut clients {
        wake(client, &mut running)?;
    }
    while running > 0 {
        if let Err(error) = poll.poll(&mut events, None)
            && error.kind() != std::io::ErrorKind::Interrupted
        {
            return Err(error.into());
        }
        for event in &events {
            wake(&mut clients[event.token().0], &mut running)?;
        }
    }
    Ok(sum)
}

async fn serve<S: Script>(mut script: S, mut connection: Connection, window: Window) -> Result<Tally> {
    let mut tally = Tally::new(S::KINDS.len());
    let mut began = Instant::now();
    while began < window.end {
        let kind = script.draw();
        let committed = repeat(&mut script, &mut connection, kind, &mut tally, window).await?;
        let ended = Instant::now();
        if committed {
            tally.committed += 1;
            if ended >= window.begin && ended < window.end {
                tally.latencies[kind].add((ended - began).as_micros() as u64);
            }
        }
        began = ended;
    }
    tally.statements = connection.timings().to_vec();
    Ok(tally)
}

/// Repeats a transaction until it has ended or cannot: whether it has.
async fn repeat<S: Script>(
    script: &mut S,
    connection: &mut Connection,
    kind: usize,
    tally: &mut Tally,
    window: Window,
) -> Result<bool> {
    while let Err(error) = script.attempt(connection).await {
        let failed = error.downcast::<ServerError>().context("a client gives up")?;
        if connection.in_transaction() {
            connection.run(ROLLBACK, &[]).await?;
        }
        if !failed.is_conflict() {
            let errors = tally.errors.entry(failed.sqlstate.clone()).or_insert((0, failed.to_string()));
            errors.0 += 1;
            return if errors.0 < ERRORS_MAX { Ok(false) } else { Err(failed.into()) };
        }
        tally.retries[kind] += 1;
        if Instant::now() >= window.end {
            return Ok(false);
        }
    }
    Ok(true)
}

fn report<S: Script>(load: &Load, sum: &Tally, client_cpu_s: f64) -> Map<String, Value> {
    let mut kinds = Map::new();
    let mut all = Latencies::default();
    for (place, name) in S::KINDS.iter().enumerate() {
        if sum.latencies[place].count() > 0 || sum.retries[place] > 0 {
            let mut line = quantiles(&sum.latencies[place]);
            line.insert("retries".to_string(), json!(sum.retries[place]));
            kinds.insert(name.to_string(), Value::Object(line));
        }
        all.merge(&sum.latencies[place]);
    }
    let mut result = quantiles(&all);
    result.insert("per_s".to_string(), json!(round(all.count() as f64 / load.seconds)));
    result.insert("retries".to_string(), json!(sum.retries.iter().sum::<u64>()));
    let errors: Map<_, _> = sum
        .errors
        .iter()
        .map(|(sqlstate, (count, example))| (sqlstate.clone(), json!({"count": count, "example": example})))
        .collect();
    result.insert("errors".to_string(), Value::Object(errors));
    result.insert("with_warmup".to_string(), json!(sum.committed));
    result.insert("client_cpu_us".to_string(), json!(round(client_cpu_s * 1e6 / sum.committed.max(1) as f64)));
    result.insert("kinds".to_string(), Value::Object(kinds));
    result
}

fn quantiles(latencies: &Latencies) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("count".to_string(), json!(latencies.count()));
    for (name, ms) in [
        ("mean_ms", latencies.mean_ms()),
        ("p50_ms", latencies.quantile_ms(0.5)),
        ("p90_ms", latencies.quantile_ms(0.9)),
        ("p99_ms", latencies.quantile_ms(0.99)),
        ("p999_ms", latencies.quantile_ms(0.999)),
        ("max_ms", latencies.max_ms()),
    ] {
        line.insert(name.to_string(), json!(round(ms)));
    }
    line
}

pub fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// User and system time of this process, as the kernel counts: in hundredths of a second (proc(5), stat).
fn cpu_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / 100.0)
}
