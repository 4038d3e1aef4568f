//! TPC-C's population (clause 4.3.3) by COPY, warehouse by warehouse, on as many connections as asked for.
//!
//! Each row is drawn from a generator that its key seeds, so that every server gets the same rows whatever the order,
//! and the lines of an order need not be kept while orders are written. One thing is not as in the specification:
//! orders are dated an hour apart up to the end of 2025, so that CH-benCHmark's queries have dates to choose from.

use super::tables::*;
use crate::random::Random;
use crate::terminals::round;
use crate::wire::{Address, Connection, Copy};
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

/// What seeds rows of different tables differently.
#[derive(Clone, Copy)]
enum Of {
    Item,
    Warehouse,
    Stock,
    District,
    Customer,
    CustomersOfOrders,
    Order,
    OrderLine,
    Supplier,
}

fn seeded(of: Of, key: &[i64]) -> Random {
    let parts: Vec<u64> = std::iter::once(of as u64).chain(key.iter().map(|part| *part as u64)).collect();
    Random::of(&parts)
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

fn load_common(connection: &mut Connection) -> Result<u64> {
    let mut rows = 0;
    let mut copy = connection.copy("COPY item FROM STDIN")?;
    for item in 1..=ITEMS {
        let mut random = seeded(Of::Item, &[item]);
        copy.int(item).int(random.between(1, 10_000));
        letters(&mut copy, &mut random, 14, 24);
        copy.cents(random.between(100, 10_000));
        original(&mut copy, &mut random);
        copy.end_row()?;
    }
    rows += copy.finish()?;
    let mut copy = connection.copy("COPY region FROM STDIN")?;
    for (key, name) in REGIONS.iter().enumerate() {
        copy.int(key as i64).text(name).text("of the world").end_row()?;
    }
    rows += copy.finish()?;
    let mut copy = connection.copy("COPY nation FROM STDIN")?;
    for ((name, region), key) in NATIONS.iter().zip(NATION_KEYS) {
        copy.int(i64::from(*key)).text(name).int(*region as i64).text("of its region").end_row()?;
    }
    rows += copy.finish()?;
    let mut copy = connection.copy("COPY supplier FROM STDIN")?;
    for key in 0..SUPPLIERS {
        let mut random = seeded(Of::Supplier, &[key]);
        copy.int(key).text(format!("Supplier#{key:09}"));
        letters(&mut copy, &mut random, 10, 40);
        copy.int(i64::from(NATION_KEYS[random.below(62) as usize]));
        copy.fill(|out| random.digits(15, out));
        copy.cents(random.between(-99_999, 999_999));
        // One in a hundred is talked about.
        let talk = if random.percent(1) { " bad " } else { " " };
        copy.fill(|out| {
            random.letters(20, out);
            out.extend_from_slice(talk.as_bytes());
            random.letters(40, out);
        });
        copy.end_row()?;
    }
    Ok(rows + copy.finish()?)
}

fn load_warehouse(connection: &mut Connection, warehouse: i64) -> Result<u64> {
    let mut rows = 0;
    let mut copy = connection.copy("COPY warehouse FROM STDIN")?;
    let mut random = seeded(Of::Warehouse, &[warehouse]);
    copy.int(warehouse);
    letters(&mut copy, &mut random, 6, 10);
    place(&mut copy, &mut random);
    fraction(&mut copy, random.between(0, 2000)).cents(30_000_000).end_row()?;
    rows += copy.finish()?;

    let mut copy = connection.copy("COPY district FROM STDIN")?;
    for district in 1..=DISTRICTS {
        let mut random = seeded(Of::District, &[warehouse, district]);
        copy.int(district).int(warehouse);
        letters(&mut copy, &mut random, 6, 10);
        place(&mut copy, &mut random);
        fraction(&mut copy, random.between(0, 2000)).cents(3_000_000).int(ORDERS + 1).end_row()?;
    }
    rows += copy.finish()?;
    rows += load_stock(connection, warehouse)?;
    rows += load_customers(connection, warehouse)?;
    Ok(rows + load_orders(connection, warehouse)?)
}

fn load_stock(connection: &mut Connection, warehouse: i64) -> Result<u64> {
    let mut copy = connection.copy("COPY stock FROM STDIN")?;
    for item in 1..=ITEMS {
        let mut random = seeded(Of::Stock, &[warehouse, item]);
        copy.int(item).int(warehouse).int(random.between(10, 100));
        for _ in 0..DISTRICTS {
            copy.fill(|out| random.letters(24, out));
        }
        copy.int(0).int(0).int(0);
        original(&mut copy, &mut random);
        copy.end_row()?;
    }
    copy.finish()
}

fn load_customers(connection: &mut Connection, warehouse: i64) -> Result<u64> {
    let populated = timestamp(ORDERS);
    let mut copy = connection.copy("COPY customer FROM STDIN")?;
    for (district, customer) in pairs(CUSTOMERS) {
        let mut random = seeded(Of::Customer, &[warehouse, district, customer]);
        let name = if customer <= 1000 { customer - 1 } else { random.skewed(255, LAST_NAME_LOADED, 0, 999) };
        copy.int(customer).int(district).int(warehouse);
        letters(&mut copy, &mut random, 8, 16);
        copy.text("OE").text(last_name(name));
        place(&mut copy, &mut random);
        copy.fill(|out| random.digits(16, out)).text(&populated);
        copy.text(if random.percent(10) { "BC" } else { "GC" }).cents(5_000_000);
        fraction(&mut copy, random.between(0, 5000)).cents(-1000).cents(1000).int(1).int(0);
        letters(&mut copy, &mut random, 300, 500);
        copy.end_row()?;
    }
    let rows = copy.finish()?;
    let mut copy = connection.copy("COPY history FROM STDIN")?;
    for (district, customer) in pairs(CUSTOMERS) {
        let mut random = seeded(Of::Customer, &[warehouse, district, customer, 1]);
        copy.int(customer).int(district).int(warehouse).int(district).int(warehouse).text(&populated).cents(1000);
        letters(&mut copy, &mut random, 12, 24);
        copy.end_row()?;
    }
    Ok(rows + copy.finish()?)
}

fn load_orders(connection: &mut Connection, warehouse: i64) -> Result<u64> {
    let mut copy = connection.copy("COPY orders FROM STDIN")?;
    for district in 1..=DISTRICTS {
        for (order, customer) in (1..).zip(customers_of_orders(warehouse, district)) {
            let mut random = seeded(Of::Order, &[warehouse, district, order]);
            let lines = random.between(5, 15);
            copy.int(order).int(district).int(warehouse).int(customer).text(timestamp(order));
            if order <= DELIVERED {
                copy.int(random.between(1, 10))
            } else {
                copy.null()
            };
            copy.int(lines).int(1).end_row()?;
        }
    }
    let mut rows = copy.finish()?;
    let mut copy = connection.copy("COPY order_line FROM STDIN")?;
    for (district, order) in pairs(ORDERS) {
        let lines = seeded(Of::Order, &[warehouse, district, order]).between(5, 15);
        let mut random = seeded(Of::OrderLine, &[warehouse, district, order]);
        let entered = timestamp(order);
        for line in 1..=lines {
            copy.int(order).int(district).int(warehouse).int(line).int(random.between(1, ITEMS)).int(warehouse);
            if order <= DELIVERED {
                copy.text(&entered)
            } else {
                copy.null()
            };
            copy.int(5).cents(if order <= DELIVERED { 0 } else { random.between(1, 999_999) });
            copy.fill(|out| random.letters(24, out)).end_row()?;
        }
    }
    rows += copy.finish()?;
    let mut copy = connection.copy("COPY new_order FROM STDIN")?;
    for (district, order) in pairs(ORDERS).filter(|(_, order)| *order > DELIVERED) {
        copy.int(order).int(district).int(warehouse).end_row()?;
    }
    Ok(rows + copy.finish()?)
}

/// Each district with each number, in the order of keys.
fn pairs(count: i64) -> impl Iterator<Item = (i64, i64)> {
    (1..=DISTRICTS).flat_map(move |district| (1..=count).map(move |number| (district, number)))
}

/// A permutation of a district's customers.
fn customers_of_orders(warehouse: i64, district: i64) -> Vec<i64> {
    let mut random = seeded(Of::CustomersOfOrders, &[warehouse, district]);
    let mut customers: Vec<i64> = (1..=CUSTOMERS).collect();
    for last in (1..customers.len()).rev() {
        customers.swap(last, random.below(last as u64 + 1) as usize);
    }
    customers
}

fn letters(copy: &mut Copy, random: &mut Random, least: i64, most: i64) {
    let count = random.between(least, most) as usize;
    copy.fill(|out| random.letters(count, out));
}

/// Two streets, a city, a state and a zip code (clause 4.3.2.7).
fn place(copy: &mut Copy, random: &mut Random) {
    for _ in 0..3 {
        letters(copy, random, 10, 20);
    }
    copy.fill(|out| random.letters(2, out));
    copy.fill(|out| {
        random.digits(4, out);
        out.extend_from_slice(b"11111");
    });
}

/// 26 to 50 letters, in one of ten cases with ORIGINAL somewhere among them.
fn original(copy: &mut Copy, random: &mut Random) {
    let count = random.between(26, 50) as usize;
    let original = random.percent(10);
    let place = random.below(count as u64 - 7) as usize;
    copy.fill(|out| {
        let begin = out.len();
        random.letters(count, out);
        if original {
            out[begin + place..begin + place + 8].copy_from_slice(b"ORIGINAL");
        }
    });
}

/// Four decimals.
fn fraction<'a, 'c>(copy: &'a mut Copy<'c>, ten_thousandths: i64) -> &'a mut Copy<'c> {
    copy.text(format!("0.{ten_thousandths:04}"))
}

/// When an order of the population was entered: the last one in the last hour of 2025, each an hour after the one
/// before it.
fn timestamp(order: i64) -> String {
    let hours = 24 * 365 - 1 - (ORDERS - order);
    let (mut day, hour) = (hours / 24, hours % 24);
    for (month, days) in (1..).zip([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
        if day < days {
            return format!("2025-{month:02}-{:02} {hour:02}:00:00", day + 1);
        }
        day -= days;
    }
    unreachable!("all orders are of one year")
}
