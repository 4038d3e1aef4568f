//! One YCSB client: which operation on which key comes next.

use super::{Distribution, FIELD_LETTERS, FIELDS, INSERT, LOCK, READ, SCAN, UPDATE, Workload, write_key};
use crate::random::{Random, Zipfian, fnv};
use crate::terminals::{BEGIN, COMMIT, Script};
use crate::wire::{Connection, Param};
use anyhow::Result;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of rows: those below `acknowledged` are all there.
pub struct Inserted {
    next: AtomicU64,
    acknowledged: AtomicU64,
    /// Acknowledged before one with a lower number was.
    early: Mutex<BTreeSet<u64>>,
}

impl Inserted {
    pub fn new(rows: u64) -> Inserted {
        Inserted { next: AtomicU64::new(rows), acknowledged: AtomicU64::new(rows), early: Mutex::default() }
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Acquire)
    }

    fn acknowledge(&self, number: u64) {
        let mut early = self.early.lock().expect("a client's thread panicked");
        early.insert(number);
        let mut end = self.acknowledged();
        while early.first() == Some(&end) {
            early.pop_first();
            end += 1;
        }
        self.acknowledged.store(end, Ordering::Release);
    }
}

#[derive(Clone, Copy)]
enum Operation {
    Read,
    Update,
    Scan { rows: i32 },
    Insert { number: u64 },
    ReadModifyWrite,
}

pub struct Ycsb<'a> {
    workload: Workload,
    distribution: Distribution,
    zipfian: Zipfian,
    random: Random,
    inserted: &'a Inserted,
    operation: Operation,
    key: Vec<u8>,
    /// What an update or an insert writes, and which field an update.
    letters: Vec<u8>,
    field: usize,
}

/// Rows of a scan are uniform from one to this.
const SCAN_ROWS_MAX: i64 = 100;

impl<'a> Ycsb<'a> {
    pub fn new(workload: Workload, asked: Option<Distribution>, random: Random, inserted: &'a Inserted) -> Ycsb<'a> {
        let own = if matches!(workload, Workload::D) { Distribution::Latest } else { Distribution::Zipfian };
        let distribution = asked.unwrap_or(own);
        let zipfian = match distribution {
            Distribution::Latest => Zipfian::new(inserted.acknowledged()),
            _ => Zipfian::of_ten_billion(),
        };
        Ycsb {
            workload,
            distribution,
            zipfian,
            random,
            inserted,
            operation: Operation::Read,
            key: Vec::new(),
            letters: Vec::new(),
            field: 0,
        }
    }

    fn any_number(&mut self) -> u64 {
        let rows = self.inserted.acknowledged();
        match self.distribution {
            Distribution::Uniform => self.random.below(rows),
            Distribution::Zipfian => fnv(self.zipfian.draw(&mut self.random)) % rows,
            Distribution::Latest => {
                self.zipfian.grow(rows);
                rows - 1 - self.zipfian.draw(&mut self.random)
            }
        }
    }

    fn insert(&self) -> Operation {
        Operation::Insert { number: self.inserted.next.fetch_add(1, Ordering::Relaxed) }
    }

    async fn update(&self, connection: &mut Connection) -> Result<()> {
        let params = [Param::Text(&self.letters), Param::Text(&self.key)];
        let changed = connection.run(UPDATE + self.field, &params).await?.affected();
        anyhow::ensure!(changed == 1, "{} rows have key {}", changed, String::from_utf8_lossy(&self.key));
        Ok(())
    }

    async fn read(&self, connection: &mut Connection, statement: usize) -> Result<()> {
        let found = connection.run(statement, &[Param::Text(&self.key)]).await?.iter().count();
        anyhow::ensure!(found == 1, "{} rows have key {}", found, String::from_utf8_lossy(&self.key));
        Ok(())
    }
}

impl Script for Ycsb<'_> {
    const KINDS: &'static [&'static str] = &["read", "update", "scan", "insert", "read_modify_write"];

    fn draw(&mut self) -> usize {
        let share = self.random.below(100);
        self.operation = match self.workload {
            Workload::A if share < 50 => Operation::Update,
            Workload::B if share < 5 => Operation::Update,
            Workload::W => Operation::Update,
            Workload::D if share < 5 => self.insert(),
            Workload::E if share < 5 => self.insert(),
            Workload::E => Operation::Scan { rows: self.random.between(1, SCAN_ROWS_MAX) as i32 },
            Workload::F if share < 50 => Operation::ReadModifyWrite,
            _ => Operation::Read,
        };
        let (number, fields, kind) = match self.operation {
            Operation::Read => (self.any_number(), 0, 0),
            Operation::Update => (self.any_number(), 1, 1),
            Operation::Scan { .. } => (self.any_number(), 0, 2),
            Operation::Insert { number } => (number, FIELDS, 3),
            Operation::ReadModifyWrite => (self.any_number(), 1, 4),
        };
        self.key.clear();
        write_key(number, &mut self.key);
        self.letters.clear();
        self.random.letters(fields * FIELD_LETTERS, &mut self.letters);
        self.field = self.random.below(FIELDS as u64) as usize;
        kind
    }

    async fn attempt(&mut self, connection: &mut Connection) -> Result<()> {
        match self.operation {
            Operation::Read => self.read(connection, READ).await,
            Operation::Update => self.update(connection).await,
            Operation::Scan { rows } => {
                let params = [Param::Text(&self.key), Param::Int(rows)];
                let found = connection.run(SCAN, &params).await?.iter().count();
                // Fewer only at the end of the table.
                anyhow::ensure!((1..=rows as usize).contains(&found), "a scan of {rows} rows found {found}");
                Ok(())
            }
            Operation::Insert { number } => {
                let mut params = [Param::Text(&self.key); FIELDS + 1];
                for (param, letters) in params[1..].iter_mut().zip(self.letters.chunks_exact(FIELD_LETTERS)) {
                    *param = Param::Text(letters);
                }
                connection.run(INSERT, &params).await?;
                self.inserted.acknowledge(number);
                Ok(())
            }
            Operation::ReadModifyWrite => {
                connection.run(BEGIN, &[]).await?;
                self.read(connection, LOCK).await?;
                self.update(connection).await?;
                connection.run(COMMIT, &[]).await?;
                Ok(())
            }
        }
    }
}
