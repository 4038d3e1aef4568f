//! YCSB's core workloads A to F (Cooper et al., SoCC 2010) over one table of ten fields of 100 letters, and W, which only
//! writes: it shows what indexes cost.
//!
//! Keys are `user` and a hash of the row's number, so that neighbours in number are none in key. F reads, locks and
//! writes in one transaction. Every row that is asked for has been acknowledged before: one that is not found is an
//! error.

mod script;

use crate::address::Address;
use crate::random::Random;
use crate::terminals::{self, Load, round, transaction_control};
use crate::wire::{Connection, Statement, statement};
use anyhow::Result;
use script::{Inserted, Ycsb};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub const FIELDS: usize = 10;
pub const FIELD_LETTERS: usize = 100;

#[derive(clap::Args)]
pub struct Options {
    #[arg(long)]
    rows: u64,
    /// Secondary indexes, on the first of the ten fields
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=FIELDS as u64))]
    indexes: u64,
    /// Connections that load at the same time
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Storage parameters of the tables: `orientation = 'row'`
    #[arg(long = "with")]
    storage: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Workload {
    /// Half reads, half updates
    A,
    /// 95 of 100 reads, the rest updates
    B,
    /// Reads
    C,
    /// 95 of 100 reads of the latest rows, the rest inserts
    D,
    /// 95 of 100 short scans, the rest inserts
    E,
    /// Half reads, half reads that write what they have read
    F,
    /// Updates
    W,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum Distribution {
    Zipfian,
    Latest,
    Uniform,
}

/// Places in `statements()`.
pub const READ: usize = 3;
pub const LOCK: usize = 4;
pub const SCAN: usize = 5;
pub const INSERT: usize = 6;
/// Ten of them, one for each field.
pub const UPDATE: usize = 7;

fn statements() -> Vec<Statement> {
    let mut all = transaction_control();
    all.push(statement("SELECT * FROM usertable WHERE ycsb_key = $1", "s"));
    all.push(statement("SELECT * FROM usertable WHERE ycsb_key = $1 FOR UPDATE", "s"));
    all.push(statement("SELECT * FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2", "si"));
    all.push(statement("INSERT INTO usertable VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", "sssssssssss"));
    let update = |field| statement(format!("UPDATE usertable SET field{field} = $1 WHERE ycsb_key = $2"), "ss");
    all.extend((0..FIELDS).map(update));
    all
}

/// Of row `number`.
pub fn write_key(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"user");
    crate::wire::write_decimal(crate::random::fnv(number), out);
}

pub fn load(address: &Address, options: &Options) -> Result<Map<String, Value>> {
    /// Rows per COPY.
    const SHARE: u64 = 50_000;
    let began = Instant::now();
    let mut connection = Connection::open(address)?;
    connection.simple("DROP TABLE IF EXISTS usertable")?;
    let fields: String = (0..FIELDS).map(|field| format!(", field{field} varchar({FIELD_LETTERS})")).collect();
    let with = crate::with_clause(&options.storage);
    connection.simple(&format!("CREATE TABLE usertable (ycsb_key varchar(64) PRIMARY KEY{fields}){with}"))?;
    let next = AtomicU64::new(0);
    let rows = std::thread::scope(|scope| {
        let work = || -> Result<u64> {
            let mut connection = Connection::open(address)?;
            let mut rows = 0;
            loop {
                let first = next.fetch_add(SHARE, Ordering::Relaxed);
                if first >= options.rows {
                    return Ok(rows);
                }
                rows += copy_rows(&mut connection, first, options.rows.min(first + SHARE))?;
            }
        };
        let threads: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a loading thread panicked")).sum::<Result<u64>>()
    })?;
    let copied = began.elapsed().as_secs_f64();
    for field in 0..options.indexes {
        connection.simple(&format!("CREATE INDEX usertable_field{field} ON usertable (field{field})"))?;
    }
    let mut result = Map::new();
    result.insert("rows".to_string(), json!(rows));
    result.insert("copy_s".to_string(), json!(round(copied)));
    result.insert("index_s".to_string(), json!(round(began.elapsed().as_secs_f64() - copied)));
    Ok(result)
}

fn copy_rows(connection: &mut Connection, first: u64, end: u64) -> Result<u64> {
    let mut copy = connection.copy("COPY usertable FROM STDIN")?;
    for number in first..end {
        let mut random = Random::of(&[number]);
        copy.fill(|out| write_key(number, out));
        for _ in 0..FIELDS {
            copy.fill(|out| random.letters(FIELD_LETTERS, out));
        }
        copy.end_row()?;
    }
    copy.finish()
}

pub fn run(
    address: &Address,
    workload: Workload,
    distribution: Option<Distribution>,
    load: &Load,
) -> Result<Map<String, Value>> {
    let mut connection = Connection::open(address)?;
    let rows = connection.simple("SELECT count(*) FROM usertable")?.one()?.int(0)? as u64;
    anyhow::ensure!(rows > 0, "no rows: load ycsb first");
    // Numbers are dense: a client ends the insert that it has begun.
    let inserted = Inserted::new(rows);
    let mut result = terminals::run(address, load, &statements(), |client| {
        Ycsb::new(workload, distribution, Random::of(&[load.seed, client as u64, rows]), &inserted)
    })?;
    result.insert("rows".to_string(), json!(inserted.acknowledged()));
    Ok(result)
}
