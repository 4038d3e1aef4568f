//! Writers beside the queries, whose transactions leave every table as it was: no answer may show them.

use super::Table;
use crate::wire::Wire;
use anyhow::Result;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What is added to the keys of rows that go before anybody sees them.
const BEYOND: u64 = 1_000_000_000;

pub struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Writers {
    pub fn start(addr: SocketAddr, tables: &[Table], seed: u64) -> Writers {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..2).map(|number| {
            let (stop, tables) = (stop.clone(), tables.to_vec());
            std::thread::spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed ^ (number + 1) << 32);
                let mut wire = Wire::connect(addr, "basalt", "basalt")?;
                while !stop.load(Ordering::Relaxed) {
                    for sql in transaction(&mut rng, &tables) {
                        // A conflict with the other writer ends the transaction, and that is all.
                        wire.simple(&sql, None)?;
                    }
                }
                Ok(())
            })
        });
        Writers { threads: threads.collect(), stop }
    }

    /// Waits for the transactions that run.
    pub fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        Ok(())
    }
}

fn transaction(rng: &mut StdRng, tables: &[Table]) -> Vec<String> {
    let table = tables.choose(rng).expect("tables");
    let (name, step) = (&table.name, rng.random_range(5..60));
    let some = format!("id % {step} = {}", rng.random_range(0..5));
    match rng.random_range(0..12) {
        0 => vec![["VACUUM", "VACUUM FULL", "CHECKPOINT"][rng.random_range(0..3)].into()],
        1..=4 => {
            let column = &table.columns.choose(rng).expect("columns").sql;
            vec![format!("UPDATE {name} SET {column} = {column} WHERE {some}")]
        }
        5..=8 => {
            let columns: Vec<&str> = table.columns[1..].iter().map(|column| column.sql.as_str()).collect();
            let rows = format!("SELECT id + {BEYOND}, {} FROM {name} WHERE {some}", columns.join(", "));
            let end = if rng.random() {
                format!("DELETE FROM {name} WHERE id > {BEYOND}; COMMIT")
            } else {
                "ROLLBACK".into()
            };
            vec!["BEGIN".into(), format!("INSERT INTO {name} {rows}"), end]
        }
        _ => vec!["BEGIN".into(), format!("DELETE FROM {name} WHERE {some}"), "ROLLBACK".into()],
    }
}
