//! Clients that make a history on a running server.
//!
//! Rows are `(id, code, grp, note, l)` in two tables: `id` is the key, `code` says the same under a unique index, `grp`
//! and `note` are the key's group, with and without an index, and `l` is the list. Clients ([`client`]) append to and
//! read a few hot groups in many ways ([`statement`]); a group that was appended to often makes room for a new one, and
//! its rows cool. Meanwhile the rows may be moved and the tables altered ([`disturb`]).

mod client;
mod disturb;
mod statement;

use super::{Fate, GROUP_KEYS, History, Key, Level, Operation, Reading, Step, Transaction, Value};
use crate::wire::{Reply, Wire};
use anyhow::{Context, Result};
use client::Client;
use rand::{Rng, rngs::StdRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Groups that clients choose from.
const HOT_GROUPS: usize = 3;
/// Appends after which a group makes room.
const GROUP_APPENDS_MAX: u32 = 60;
/// Rows that nobody appends to, so that files are worth something.
const FILLER_ROWS: u32 = 3000;
/// The same where memory shall be short: more of them, with as many values each, inserted by so many.
const HEAVY_ROWS: u32 = 5000;
const HEAVY_VALUES: u32 = 600;
const HEAVY_BATCH: u32 = 1000;
/// Ids of fillers lie above this one.
const FILLER_ID: u32 = 1_000_000_000;
/// Said where a statement gives a row twice, which a weakened server may.
pub const TWICE: &str = "came twice";
/// Groups that are read once more by their index when all is over.
const LAST_GROUPS: u32 = 60;

/// What happens to the tables meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// Nothing: rows stay hot.
    Hot,
    /// They are frozen and files merged all the time.
    Cold,
    /// The same now and then, and checkpoints, indexes that come and go, and ALTER TABLE.
    Mixed,
    /// Memory is short: rows that are warm leave it.
    Pressed,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub level: Level,
    /// To be committed.
    pub transactions: usize,
    pub clients: u32,
    pub seed: u64,
    pub rest: Rest,
    /// How many of a hundred appends read a list and write it back with the value behind it. At READ COMMITTED they
    /// may overwrite each other.
    pub client_writes: u32,
    pub is_postgres: bool,
}

pub struct Outcome {
    pub history: History,
    /// What ran how often: ways to read and write, SQLSTATEs of refusals, disturbances.
    pub counts: BTreeMap<String, usize>,
    pub committed: usize,
    /// Of Basalt.
    pub evicted_rows: u64,
    pub took: Duration,
}

/// What clients share.
struct Shared {
    options: Options,
    origin: Instant,
    groups: [AtomicU32; HOT_GROUPS],
    appends: [AtomicU32; HOT_GROUPS],
    next_group: AtomicU32,
    next_value: AtomicU32,
    committed: AtomicUsize,
    is_over: AtomicBool,
}

impl Shared {
    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.committed.load(Ordering::Relaxed) >= self.options.transactions
    }

    fn choose_group(&self, random: &mut StdRng) -> u32 {
        self.groups[random.random_range(0..HOT_GROUPS)].load(Ordering::Relaxed)
    }

    fn next_value(&self) -> Value {
        Value(self.next_value.fetch_add(1, Ordering::Relaxed))
    }

    fn note_append(&self, key: Key) {
        let group = key.0 / GROUP_KEYS;
        let Some(slot) = self.groups.iter().position(|hot| hot.load(Ordering::Relaxed) == group) else { return };
        if self.appends[slot].fetch_add(1, Ordering::Relaxed) == GROUP_APPENDS_MAX {
            self.groups[slot].store(self.next_group.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
            self.appends[slot].store(0, Ordering::Relaxed);
        }
    }
}

/// Runs until enough transactions have committed, and reads all lists at the end.
pub fn run(connect: &(dyn Fn() -> Result<Wire> + Sync), options: Options) -> Result<Outcome> {
    set_up(&mut connect()?, options)?;
    let shared = Shared {
        options,
        origin: Instant::now(),
        groups: std::array::from_fn(|slot| AtomicU32::new(slot as u32)),
        appends: Default::default(),
        next_group: AtomicU32::new(HOT_GROUPS as u32),
        next_value: AtomicU32::new(1),
        committed: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    };
    let clients: Vec<Client> = (0..options.clients)
        .map(|id| Ok(Client::new(id, connect_for(connect, options)?, &shared)))
        .collect::<Result<_>>()?;
    let mut disturbing = connect()?;
    let (mut records, mut counts) = (Vec::new(), BTreeMap::new());
    std::thread::scope(|scope| -> Result<()> {
        let clients: Vec<_> = clients.into_iter().map(|client| scope.spawn(|| client.work())).collect();
        let disturbing = scope.spawn(|| disturb::disturb(&mut disturbing, &shared));
        for client in clients {
            let done = client.join().expect("a client lives");
            // Who fails takes the others along.
            shared.is_over.fetch_or(done.is_err(), Ordering::Relaxed);
            let (of_client, counted) = done?;
            records.extend(of_client);
            add_counts(&mut counts, counted);
        }
        shared.is_over.store(true, Ordering::Relaxed);
        add_counts(&mut counts, disturbing.join().expect("it lives")?);
        Ok(())
    })?;
    let took = shared.origin.elapsed();
    let mut wire = connect_for(connect, options)?;
    records.extend(last_reads(&mut wire, &shared)?);
    records.sort_by_key(|record| record.began_ns);
    let committed = records.iter().filter(|record| record.fate == Fate::Committed).count();
    let evicted_rows = match options.is_postgres {
        true => 0,
        false => {
            let reply = wire.run("SELECT evicted_rows FROM basalt.background")?;
            reply.text(0, 0).context("null")?.parse()?
        }
    };
    Ok(Outcome { history: History { transactions: records }, counts, committed, evicted_rows, took })
}

fn add_counts(all: &mut BTreeMap<String, usize>, more: BTreeMap<String, usize>) {
    more.into_iter().for_each(|(what, count)| *all.entry(what).or_default() += count);
}

fn set_up(wire: &mut Wire, options: Options) -> Result<()> {
    for table in 0..2 {
        let rests = if options.is_postgres || table == 0 { "" } else { "WITH (tablets = 4, clustering_key = 'grp')" };
        wire.run(&format!("DROP TABLE IF EXISTS lists{table}"))?;
        wire.run(&format!(
            "CREATE TABLE lists{table} (id int PRIMARY KEY, code text NOT NULL UNIQUE, grp int NOT NULL,
             note text NOT NULL, l int[] NOT NULL) {rests}"
        ))?;
        let (rows, values, batch) = match options.rest {
            Rest::Pressed => (HEAVY_ROWS, HEAVY_VALUES, HEAVY_BATCH),
            _ => (FILLER_ROWS, 1, FILLER_ROWS),
        };
        for first in (1..=rows).step_by(batch as usize) {
            wire.run(&format!(
                "INSERT INTO lists{table}
                 SELECT {FILLER_ID} + g, 'filler ' || g, -1 - g, 'filler', ARRAY(SELECT generate_series(1, {values}))
                 FROM generate_series({first}, {first} + {batch} - 1) g"
            ))?;
        }
    }
    wire.run("CREATE INDEX lists0_grp ON lists0 (grp)")?;
    Ok(())
}

fn connect_for(connect: &(dyn Fn() -> Result<Wire> + Sync), options: Options) -> Result<Wire> {
    let mut wire = connect()?;
    let level = options.level.sql();
    wire.run(&format!("SET default_transaction_isolation = '{level}'"))?;
    wire.run("SET statement_timeout = '60s'")?;
    if options.is_postgres {
        wire.run("SET deadlock_timeout = '10ms'")?;
    }
    Ok(wire)
}

impl Level {
    pub fn sql(self) -> &'static str {
        match self {
            Level::ReadCommitted => "read committed",
            Level::RepeatableRead => "repeatable read",
            Level::Serializable => "serializable",
        }
    }
}

/// All lists by a scan, the newest groups by their index as well.
fn last_reads(wire: &mut Wire, shared: &Shared) -> Result<Vec<Transaction>> {
    let groups = shared.next_group.load(Ordering::Relaxed);
    let mut records = Vec::new();
    for (statement, by_index) in [(0, false), (1, true)] {
        let began_ns = shared.now_ns();
        let first = if by_index { groups.saturating_sub(LAST_GROUPS) } else { 0 };
        let mut rows = BTreeMap::new();
        for table in 0..2 {
            let condition = if by_index {
                let groups: Vec<String> = (first..groups).map(|group| group.to_string()).collect();
                format!("grp IN ({})", groups.join(", "))
            } else {
                "note <> 'filler'".to_string()
            };
            let reply = wire.run(&format!("SELECT id, l FROM lists{table} WHERE {condition}"))?;
            rows.extend(lists_of(&reply)?);
        }
        let of_group = |group: u32| {
            let (first, last) = (Key(group * GROUP_KEYS), Key((group + 1) * GROUP_KEYS - 1));
            let lists = rows.range(first..=last).map(|(key, list)| (*key, list.clone())).collect();
            // Nothing runs any more: what two statements read is of one snapshot.
            Operation { statement, reading: Reading::Snapshot, step: Step::Range { first, last, lists } }
        };
        let operations = (first..groups).map(of_group).collect();
        let client = shared.options.clients;
        let ended_ns = shared.now_ns();
        records.push(Transaction { client, began_ns, ended_ns, fate: Fate::Committed, operations });
    }
    Ok(records)
}

/// Rows of `id` and `l`: a list is written as an array or with spaces between its values. One row and column: all rows
/// of a group as `id:l;id:l`, or null.
fn lists_of(reply: &Reply) -> Result<BTreeMap<Key, Vec<Value>>> {
    let numbers = |text: &str| -> Result<Vec<u32>> {
        let words = text.split(|letter: char| !letter.is_ascii_digit()).filter(|word| !word.is_empty());
        words.map(|word| word.parse::<u32>().with_context(|| text.to_string())).collect()
    };
    let mut lists = BTreeMap::new();
    let is_joined = reply.columns.as_ref().is_some_and(|columns| columns.len() == 1);
    for row in 0..reply.rows.len() {
        let texts: Vec<String> = if is_joined {
            reply.text(row, 0).map(|text| text.split(';').map(str::to_string).collect()).unwrap_or_default()
        } else {
            vec![format!("{} {}", reply.text(row, 0).context("an id is null")?, reply.text(row, 1).context("null")?)]
        };
        for text in texts {
            let numbers = numbers(&text)?;
            let (id, list) = numbers.split_first().with_context(|| format!("a row without id: {text}"))?;
            let list = list.iter().map(|value| Value(*value)).collect();
            anyhow::ensure!(lists.insert(Key(*id), list).is_none(), "id {id} {TWICE}: {:?}", reply.rows);
        }
    }
    Ok(lists)
}
