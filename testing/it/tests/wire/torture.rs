//! kill -9 at random moments under load, ten times, or 500 times with BASALT_TORTURE=1.
//!
//! Each client keeps outside the server what was acknowledged to it. After each restart, what it finds must be
//! exactly that, and of the one operation that was under way either all or nothing.

use anyhow::{Context, Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::Wire;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::time::Duration;

const CLIENTS: usize = 4;
const BATCH_ROWS_MAX: u32 = 3000;

/// One operation of a client: what rows (client, seq, part) there must be.
#[derive(Clone, Debug)]
enum Op {
    /// Rows in `ledger`, by one statement or by several in a block.
    Rows {
        seq: u32,
        parts: u32,
        block: bool,
    },
    /// Rows in `batches` by COPY, over four tablets.
    Batch {
        seq: u32,
        parts: u32,
    },
    /// All rows of an earlier one.
    Delete {
        seq: u32,
    },
    /// The client's row in `counters`.
    Count {
        value: u32,
    },
    /// A table of its own: made with a row, or dropped.
    Create {
        name: u32,
    },
    Drop {
        name: u32,
    },
}

/// What a client knows to be in the database.
#[derive(Clone, Default, PartialEq, Debug)]
struct State {
    ledger: BTreeMap<u32, u32>,
    batches: BTreeMap<u32, u32>,
    counter: u32,
    tables: Vec<u32>,
}

impl State {
    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Rows { seq, parts, .. } => drop(self.ledger.insert(seq, parts)),
            Op::Batch { seq, parts } => drop(self.batches.insert(seq, parts)),
            Op::Delete { seq } => drop(self.ledger.remove(&seq)),
            Op::Count { value } => self.counter = value,
            Op::Create { name } => self.tables.push(name),
            Op::Drop { name } => self.tables.retain(|table| *table != name),
        }
    }
}

struct Client {
    id: usize,
    next: u32,
    random: StdRng,
    state: State,
    acknowledged: usize,
}

impl Client {
    /// Works until the connection breaks; the operation that was under way then.
    fn work(&mut self, mut wire: Wire) -> Result<Op> {
        loop {
            let op = self.choose();
            match self.perform(&mut wire, &op) {
                Ok(()) => {
                    self.state.apply(&op);
                    self.acknowledged += 1;
                }
                Err(Failure::Broken) => return Ok(op),
                Err(Failure::Said(what)) => anyhow::bail!("client {}: {op:?}: {what}", self.id),
            }
        }
    }

    fn choose(&mut self) -> Op {
        self.next += 1;
        let seq = self.next;
        let earlier = self.state.ledger.keys().next().copied();
        match self.random.random_range(0..100) {
            0..45 => Op::Rows { seq, parts: 1, block: false },
            45..65 => Op::Rows { seq, parts: self.random.random_range(2..8), block: self.random.random() },
            65..75 => Op::Count { value: seq },
            75..85 => match earlier {
                Some(seq) => Op::Delete { seq },
                None => Op::Count { value: seq },
            },
            85..94 => Op::Batch { seq, parts: self.random.random_range(1..BATCH_ROWS_MAX) },
            _ if self.state.tables.len() < 2 => Op::Create { name: seq },
            _ => Op::Drop { name: self.state.tables[0] },
        }
    }

    fn perform(&mut self, wire: &mut Wire, op: &Op) -> Result<(), Failure> {
        let id = self.id;
        match op {
            Op::Rows { seq, parts, block: false } => {
                let values: Vec<String> = (0..*parts).map(|part| format!("({id}, {seq}, {part}, {parts})")).collect();
                command(wire, &format!("INSERT INTO ledger VALUES {}", values.join(", ")))
            }
            Op::Rows { seq, parts, block: true } => {
                command(wire, "BEGIN")?;
                for part in 0..*parts {
                    command(wire, &format!("INSERT INTO ledger VALUES ({id}, {seq}, {part}, {parts})"))?;
                }
                command(wire, "COMMIT")
            }
            Op::Batch { seq, parts } => {
                let data: String = (0..*parts).map(|part| format!("{id},{seq},{part},{parts}\n")).collect();
                let answer = wire.simple("COPY batches FROM STDIN (FORMAT csv)", Some(data.as_bytes()));
                said(answer.map_err(|_| Failure::Broken)?)
            }
            Op::Delete { seq } => command(wire, &format!("DELETE FROM ledger WHERE client = {id} AND seq = {seq}")),
            Op::Count { value } => command(wire, &format!("UPDATE counters SET value = {value} WHERE client = {id}")),
            Op::Create { name } => command(wire, &format!("CREATE TABLE own_{id}_{name} AS SELECT {name} AS a")),
            Op::Drop { name } => command(wire, &format!("DROP TABLE own_{id}_{name}")),
        }
    }

    /// What the server has of this client, and that none of it is torn.
    fn found(&self, wire: &mut Wire) -> Result<State> {
        let mut state = State::default();
        for (table, map) in [("ledger", &mut state.ledger), ("batches", &mut state.batches)] {
            let sql = format!(
                "SELECT seq, count(*), count(DISTINCT part), min(part), max(part), min(total), max(total)
                 FROM {table} WHERE client = {} GROUP BY seq ORDER BY seq",
                self.id
            );
            let reply = wire.run(&sql)?;
            for row in 0..reply.rows.len() {
                let number = |column| -> Result<u32> { Ok(reply.text(row, column).context("null")?.parse()?) };
                let (seq, count) = (number(0)?, number(1)?);
                let whole = [number(2)?, number(3)? + count, number(4)? + 1, number(5)?, number(6)?];
                ensure!(
                    whole == [count; 5],
                    "{table}: client {}, operation {seq} is torn: {count} rows, {whole:?}",
                    self.id
                );
                map.insert(seq, count);
            }
        }
        let counter = wire.run(&format!("SELECT value FROM counters WHERE client = {}", self.id))?;
        ensure!(counter.rows.len() == 1, "client {} has {} counters", self.id, counter.rows.len());
        state.counter = counter.text(0, 0).unwrap_or_default().parse()?;
        let tables = wire.run(&format!(
            "SELECT relname FROM pg_class WHERE relname LIKE 'own\\_{}\\_%' AND relkind = 'r' ORDER BY oid",
            self.id
        ))?;
        for row in 0..tables.rows.len() {
            let name = tables.text(row, 0).unwrap_or_default();
            let number: u32 = name.rsplit('_').next().unwrap_or_default().parse()?;
            let inside = wire.run(&format!("SELECT a FROM {name}"))?;
            ensure!(inside.rows.len() == 1 && inside.text(0, 0) == Some(&number.to_string()), "{name} is torn");
            state.tables.push(number);
        }
        state.tables.sort();
        Ok(state)
    }

    /// Takes what was found if it is what was acknowledged, with or without the operation under way.
    fn settle(&mut self, wire: &mut Wire, under_way: &Op) -> Result<()> {
        let found = self.found(wire)?;
        let mut without = self.state.clone();
        without.tables.sort();
        let mut with = without.clone();
        with.apply(under_way);
        with.tables.sort();
        if found != without && found != with {
            let difference = difference(&without, &found);
            anyhow::bail!(
                "client {}: acknowledged and found differ, {under_way:?} was under way: {difference}",
                self.id
            );
        }
        // Keys answer as scans do.
        for (seq, parts) in found.ledger.iter().rev().take(20) {
            let sql =
                format!("SELECT total FROM ledger WHERE client = {} AND seq = {seq} AND part = {}", self.id, parts - 1);
            ensure!(
                wire.run(&sql)?.text(0, 0) == Some(&parts.to_string()),
                "client {}, operation {seq} by key",
                self.id
            );
        }
        self.state = found;
        Ok(())
    }
}

fn difference(known: &State, found: &State) -> String {
    let maps = |known: &BTreeMap<u32, u32>, found: &BTreeMap<u32, u32>| {
        let lost: Vec<_> = known.iter().filter(|(seq, parts)| found.get(seq) != Some(parts)).take(5).collect();
        let new: Vec<_> = found.iter().filter(|(seq, parts)| known.get(seq) != Some(parts)).take(5).collect();
        format!("lost {lost:?}, unknown {new:?}")
    };
    format!(
        "ledger: {}; batches: {}; counter {} → {}; tables {:?} → {:?}",
        maps(&known.ledger, &found.ledger),
        maps(&known.batches, &found.batches),
        known.counter,
        found.counter,
        known.tables,
        found.tables
    )
}

enum Failure {
    /// The server was killed.
    Broken,
    Said(String),
}

fn command(wire: &mut Wire, sql: &str) -> Result<(), Failure> {
    said(wire.simple(sql, None).map_err(|_| Failure::Broken)?)
}

fn said(answer: basalt_it::wire::Answer) -> Result<(), Failure> {
    match answer.error() {
        Some(error) => Err(Failure::Said(format!("{} {}", error.sqlstate(), error.message()))),
        None => Ok(()),
    }
}

/// Moves rows between hot and cold, cuts the log and scans a table, all the while.
fn disturb(mut wire: Wire, table: &str) {
    let scan = format!("SELECT count(*) FROM {table}");
    for sql in ["VACUUM", "CHECKPOINT", "VACUUM FULL", &scan].iter().cycle() {
        if wire.simple(sql, None).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(40));
    }
}

/// Settings with which rows move and the log is cut within seconds.
pub(crate) fn options() -> BasaltOptions {
    BasaltOptions::default()
        .set("basalt.bulk_rows_min=200")
        .set("basalt.cool_after=100ms")
        .set("basalt.freeze_rows_min=500")
        .set("basalt.checkpoint_log_size=4MB")
}

/// `many` kills and the seed that it names with BASALT_TORTURE, else `few`.
pub(crate) fn kills_and_seed(few: u32, many: u32) -> (u32, u64) {
    match std::env::var("BASALT_TORTURE") {
        Ok(seed) => (many, seed.parse().unwrap_or(1)),
        Err(_) => (few, 1),
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_kills() -> Result<()> {
    let (kills, seed) = kills_and_seed(10, 500);
    let mut server = Basalt::start_with(options())?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE ledger (client int, seq int, part int, total int, PRIMARY KEY (client, seq, part))")?;
    wire.run(
        "CREATE TABLE batches (client int, seq int, part int, total int, PRIMARY KEY (client, seq, part))
         WITH (tablets = 4)",
    )?;
    wire.run("CREATE TABLE counters (client int PRIMARY KEY, value int)")?;
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|id| {
            let random = StdRng::seed_from_u64(seed * 1000 + id as u64);
            Client { id, next: 0, random, state: State::default(), acknowledged: 0 }
        })
        .collect();
    for client in &clients {
        wire.run(&format!("INSERT INTO counters VALUES ({}, 0)", client.id))?;
    }
    let mut random = StdRng::seed_from_u64(seed);
    for kill in 0..kills {
        one_kill(&mut server, &mut clients, random.random_range(50..1200))
            .with_context(|| format!("seed {seed}, kill {kill}; the server's log ends:\n{}", server.log_tail()))?;
    }
    let acknowledged: usize = clients.iter().map(|client| client.acknowledged).sum();
    println!("{kills} kills, {acknowledged} acknowledged operations, none lost, torn or doubled");
    Ok(())
}

fn one_kill(server: &mut Basalt, clients: &mut [Client], after_ms: u64) -> Result<()> {
    let mut work = Vec::new();
    for client in clients.iter_mut() {
        let wire = server.connect()?;
        work.push(move || client.work(wire));
    }
    let under_way = until_killed(server, work, after_ms, "ledger")?;
    let mut wire = server.connect()?;
    for (client, op) in clients.iter_mut().zip(&under_way) {
        client.settle(&mut wire, op)?;
    }
    Ok(())
}

/// Clients work, each on a thread of its own, beside one that moves rows and scans `table`, until the server is
/// killed; it is started again. What each client gave back when its connection broke.
pub(crate) fn until_killed<T: Send>(
    server: &mut Basalt,
    work: Vec<impl FnOnce() -> Result<T> + Send>,
    after_ms: u64,
    table: &'static str,
) -> Result<Vec<T>> {
    let disturbing = server.connect()?;
    let disturbing = std::thread::spawn(move || disturb(disturbing, table));
    let given = std::thread::scope(|scope| -> Result<Vec<T>> {
        let working: Vec<_> = work.into_iter().map(|work| scope.spawn(work)).collect();
        std::thread::sleep(Duration::from_millis(after_ms));
        server.kill()?;
        working.into_iter().map(|client| client.join().expect("the client lives")).collect()
    })?;
    disturbing.join().expect("it ends with its connection");
    server.start_again()?;
    Ok(given)
}
