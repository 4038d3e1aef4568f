//! The population, row by row into hot: transactions of a thousand rows each, as many at a time as there are threads.

use crate::tables::{Table, begin};
use anyhow::Result;
use basalt_bench::tpcc::population::{Rows, Tables, load_common, load_warehouse};
use basalt_engine::{Engine, Inserted};
use basalt_types::{Datum, PhysType, Version};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::runtime::Runtime;

const BATCH_ROWS: usize = 1000;
const MICROS_PER_HOUR: i64 = 3_600_000_000;
/// 2025-01-01, in seconds since 1970.
const YEAR_2025: i64 = 1_735_689_600;

/// Fills tables of an engine.
pub struct Loader<'a> {
    engine: &'a Arc<Engine>,
    tables: &'a HashMap<&'static str, Arc<Table>>,
    runtime: Runtime,
}

struct Loading<'a> {
    engine: &'a Arc<Engine>,
    table: &'a Table,
    runtime: &'a Runtime,
    row: Vec<Datum>,
    rows: Vec<Vec<Datum>>,
    taken: u64,
}

pub fn load(
    engine: &Arc<Engine>,
    tables: &HashMap<&'static str, Arc<Table>>,
    warehouses: i64,
    threads: usize,
) -> Result<u64> {
    // Warehouse 0 stands for what belongs to none.
    let next = AtomicI64::new(0);
    std::thread::scope(|scope| {
        let work = || -> Result<u64> {
            let mut loader = Loader::new(engine, tables)?;
            let mut rows = 0;
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    0 => rows += load_common(&mut loader)?,
                    warehouse if warehouse <= warehouses => rows += load_warehouse(&mut loader, warehouse)?,
                    _ => return Ok(rows),
                }
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a loading thread panicked")).sum()
    })
}

impl<'a> Loader<'a> {
    pub fn new(engine: &'a Arc<Engine>, tables: &'a HashMap<&'static str, Arc<Table>>) -> Result<Loader<'a>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(Loader { engine, tables, runtime })
    }
}

impl Tables for Loader<'_> {
    fn table(&mut self, name: &str) -> Result<impl Rows> {
        let (engine, table, runtime) = (self.engine, &*self.tables[name], &self.runtime);
        Ok(Loading { engine, table, runtime, row: Vec::new(), rows: Vec::new(), taken: 0 })
    }
}

impl Loading<'_> {
    fn push(&mut self, value: Datum) -> &mut Self {
        self.row.push(value);
        self
    }

    fn flush(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.taken += rows.len() as u64;
        self.runtime.block_on(async {
            let mut txn = begin(self.engine, false, Version::ZERO);
            for row in &rows {
                let inserted = txn.insert(&self.table.def, row).await?;
                anyhow::ensure!(inserted == Inserted::Done, "{} has a row twice: {row:?}", self.table.def.name);
            }
            txn.commit().await?;
            Ok(())
        })
    }
}

impl Rows for Loading<'_> {
    fn int(&mut self, value: i64) -> &mut Self {
        self.push(Datum::I32(value as i32))
    }

    fn cents(&mut self, value: i64) -> &mut Self {
        self.push(Datum::I64(value))
    }

    fn ten_thousandths(&mut self, value: i64) -> &mut Self {
        self.push(Datum::I64(value))
    }

    fn hour(&mut self, hour: i64) -> &mut Self {
        self.push(Datum::I64(YEAR_2025 * 1_000_000 + hour * MICROS_PER_HOUR))
    }

    fn fill(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        let mut text = Vec::new();
        write(&mut text);
        self.push(Datum::Bytes(text.into()))
    }

    fn null(&mut self) -> &mut Self {
        self.push(Datum::Null)
    }

    fn end_row(&mut self) -> Result<()> {
        let types = &self.table.def;
        anyhow::ensure!(self.row.len() == types.columns.len(), "{} has other columns than its rows", types.name);
        debug_assert!(self.row.iter().zip(types.each_phys_type()).all(|(value, ty)| fits(value, ty)));
        let columns = self.row.len();
        self.rows.push(std::mem::replace(&mut self.row, Vec::with_capacity(columns)));
        if self.rows.len() == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn finish(mut self) -> Result<u64> {
        self.flush()?;
        Ok(self.taken)
    }
}

fn fits(value: &Datum, ty: PhysType) -> bool {
    match value {
        Datum::I32(_) => ty == PhysType::I32,
        Datum::I64(_) => ty == PhysType::I64,
        Datum::Bytes(_) => ty == PhysType::Bytes,
        other => other.is_null(),
    }
}
