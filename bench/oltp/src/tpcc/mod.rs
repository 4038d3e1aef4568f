//! TPC-C, revision 5.11: population, terminals, consistency conditions. Terminals have no think time, so what is
//! reported are New-Orders per minute and not tpmC.

pub mod check;
pub mod input;
pub mod load;
mod pipelined;
pub mod population;
pub mod tables;
mod terminal;
mod transactions;

use crate::address::Address;
use crate::terminals::{self, Load, round};
use crate::wire::Connection;
use anyhow::Result;
use input::Inputs;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use terminal::Terminal;

/// Warehouses are counted, not asked for: those that are loaded.
pub fn run(address: &Address, load: &Load, pipelined: bool) -> Result<Map<String, Value>> {
    let mut connection = Connection::open(address)?;
    let warehouses = connection.simple("SELECT count(*) FROM warehouse")?.one()?.int(0)?;
    anyhow::ensure!(warehouses > 0, "no warehouses: load tpcc first");
    let rolled_back = AtomicU64::new(0);
    let statements = transactions::statements();
    let mut result = terminals::run(address, load, &statements, |client| {
        Terminal::new(Inputs::new(client, warehouses, load.seed), pipelined, &rolled_back)
    })?;
    let count = result["kinds"]["new_order"]["count"].as_u64().unwrap_or(0);
    result.insert("new_orders_per_minute".to_string(), json!(round(count as f64 / load.seconds * 60.0)));
    result.insert("rolled_back".to_string(), json!(rolled_back.load(Ordering::Relaxed)));
    result.insert("warehouses".to_string(), json!(warehouses));
    Ok(result)
}
