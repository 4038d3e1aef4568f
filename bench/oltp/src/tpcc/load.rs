//! TPC-C's population by COPY, warehouse by warehouse, on as many connections as asked for.

use super::population::{Rows, Tables, load_common, load_warehouse, timestamp};
use super::tables::{INDEXES, TABLES};
use crate::address::Address;
use crate::terminals::round;
use crate::wire::{Connection, Copy};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

#[derive(clap::Args)]
pub struct Options {
    #[arg(long)]
    warehouses: i64,
    /// Connections that load at the same time
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Storage parameters of the tables: `orientation = 'row'`
    #[arg(long = "with")]
    storage: Option<String>,
}

pub fn load(address: &Address, options: &Options) -> Result<Map<String, Value>> {
    let began = Instant::now();
    let mut connection = Connection::open(address)?;
    for (name, columns) in TABLES {
        connection.simple(&format!("DROP TABLE IF EXISTS {name}"))?;
        connection.simple(&format!("CREATE TABLE {name} ({columns}){}", crate::with_clause(&options.storage)))?;
    }
    // Warehouse 0 stands for what belongs to none.
    let next = AtomicI64::new(0);
    let rows = std::thread::scope(|scope| {
        let work = || -> Result<u64> {
            let mut connection = Connection::open(address)?;
            let mut rows = 0;
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    0 => rows += load_common(&mut connection)?,
                    warehouse if warehouse <= options.warehouses => rows += load_warehouse(&mut connection, warehouse)?,
                    _ => return Ok(rows),
                }
            }
        };
        let threads: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a loading thread panicked")).sum::<Result<u64>>()
    })?;
    let copied = began.elapsed().as_secs_f64();
    for (name, columns) in INDEXES {
        connection.simple(&format!("CREATE INDEX {name} ON {columns}"))?;
    }
    let mut result = Map::new();
    result.insert("warehouses".to_string(), json!(options.warehouses));
    result.insert("rows".to_string(), json!(rows));
    result.insert("copy_s".to_string(), json!(round(copied)));
    result.insert("index_s".to_string(), json!(round(began.elapsed().as_secs_f64() - copied)));
    Ok(result)
}

impl Tables for Connection {
    fn table(&mut self, name: &str) -> Result<impl Rows> {
        self.copy(&format!("COPY {name} FROM STDIN"))
    }
}

impl Rows for Copy<'_> {
    fn int(&mut self, value: i64) -> &mut Self {
        Copy::int(self, value)
    }

    fn cents(&mut self, value: i64) -> &mut Self {
        Copy::cents(self, value)
    }

    fn ten_thousandths(&mut self, value: i64) -> &mut Self {
        self.text(format!("0.{value:04}"))
    }

    fn hour(&mut self, hour: i64) -> &mut Self {
        self.text(timestamp(hour))
    }

    fn fill(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        Copy::fill(self, write)
    }

    fn null(&mut self) -> &mut Self {
        Copy::null(self)
    }

    fn end_row(&mut self) -> Result<()> {
        Copy::end_row(self)
    }

    fn finish(self) -> Result<u64> {
        Copy::finish(self)
    }
}
