//! TPC-C's population (clause 4.3.3), whoever takes it.
//!
//! Each row is drawn from a generator that its key seeds, so that every server gets the same rows whatever the order,
//! and the lines of an order need not be kept while orders are written. One thing is not as in the specification:
//! orders are dated an hour apart up to the end of 2025, so that CH-benCHmark's queries have dates to choose from.

use super::tables::*;
use crate::random::Random;
use anyhow::Result;

/// Where tables are filled.
pub trait Tables {
    /// Begins to fill a table.
    fn table(&mut self, name: &str) -> Result<impl Rows>;
}

/// Takes the rows of one table, value by value in the order of its columns.
pub trait Rows {
    fn int(&mut self, value: i64) -> &mut Self;

    /// A numeric with two decimals.
    fn cents(&mut self, value: i64) -> &mut Self;

    /// A numeric from 0 to 1, without 1, with four decimals.
    fn ten_thousandths(&mut self, value: i64) -> &mut Self;

    /// A timestamp, in hours since 2025 began.
    fn hour(&mut self, hour: i64) -> &mut Self;

    /// Text of letters and digits.
    fn fill(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self;

    fn text(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        self.fill(|out| out.extend_from_slice(value.as_ref()))
    }

    fn null(&mut self) -> &mut Self;

    fn end_row(&mut self) -> Result<()>;

    /// How many rows have been taken.
    fn finish(self) -> Result<u64>;
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

/// What belongs to no warehouse. Gives how many rows it was.
pub fn load_common(tables: &mut impl Tables) -> Result<u64> {
    let mut rows = 0;
    let mut out = tables.table("item")?;
    for item in 1..=ITEMS {
        let mut random = seeded(Of::Item, &[item]);
        out.int(item).int(random.between(1, 10_000));
        letters(&mut out, &mut random, 14, 24);
        out.cents(random.between(100, 10_000));
        original(&mut out, &mut random);
        out.end_row()?;
    }
    rows += out.finish()?;
    let mut out = tables.table("region")?;
    for (key, name) in REGIONS.iter().enumerate() {
        out.int(key as i64).text(name).text("of the world").end_row()?;
    }
    rows += out.finish()?;
    let mut out = tables.table("nation")?;
    for ((name, region), key) in NATIONS.iter().zip(NATION_KEYS) {
        out.int(i64::from(*key)).text(name).int(*region as i64).text("of its region").end_row()?;
    }
    rows += out.finish()?;
    let mut out = tables.table("supplier")?;
    for key in 0..SUPPLIERS {
        let mut random = seeded(Of::Supplier, &[key]);
        out.int(key).text(format!("Supplier#{key:09}"));
        letters(&mut out, &mut random, 10, 40);
        out.int(i64::from(NATION_KEYS[random.below(62) as usize]));
        out.fill(|text| random.digits(15, text));
        out.cents(random.between(-99_999, 999_999));
        // One in a hundred is talked about.
        let talk = if random.percent(1) { " bad " } else { " " };
        out.fill(|text| {
            random.letters(20, text);
            text.extend_from_slice(talk.as_bytes());
            random.letters(40, text);
        });
        out.end_row()?;
    }
    Ok(rows + out.finish()?)
}

pub fn load_warehouse(tables: &mut impl Tables, warehouse: i64) -> Result<u64> {
    let mut rows = 0;
    let mut out = tables.table("warehouse")?;
    let mut random = seeded(Of::Warehouse, &[warehouse]);
    out.int(warehouse);
    letters(&mut out, &mut random, 6, 10);
    place(&mut out, &mut random);
    out.ten_thousandths(random.between(0, 2000)).cents(30_000_000).end_row()?;
    rows += out.finish()?;

    let mut out = tables.table("district")?;
    for district in 1..=DISTRICTS {
        let mut random = seeded(Of::District, &[warehouse, district]);
        out.int(district).int(warehouse);
        letters(&mut out, &mut random, 6, 10);
        place(&mut out, &mut random);
        out.ten_thousandths(random.between(0, 2000)).cents(3_000_000).int(ORDERS + 1).end_row()?;
    }
    rows += out.finish()?;
    rows += load_stock(tables, warehouse)?;
    rows += load_customers(tables, warehouse)?;
    Ok(rows + load_orders(tables, warehouse)?)
}

fn load_stock(tables: &mut impl Tables, warehouse: i64) -> Result<u64> {
    let mut out = tables.table("stock")?;
    for item in 1..=ITEMS {
        let mut random = seeded(Of::Stock, &[warehouse, item]);
        out.int(item).int(warehouse).int(random.between(10, 100));
        for _ in 0..DISTRICTS {
            out.fill(|text| random.letters(24, text));
        }
        out.int(0).int(0).int(0);
        original(&mut out, &mut random);
        out.end_row()?;
    }
    out.finish()
}

fn load_customers(tables: &mut impl Tables, warehouse: i64) -> Result<u64> {
    let populated = hour(ORDERS);
    let mut out = tables.table("customer")?;
    for (district, customer) in pairs(CUSTOMERS) {
        let mut random = seeded(Of::Customer, &[warehouse, district, customer]);
        let name = if customer <= 1000 { customer - 1 } else { random.skewed(255, LAST_NAME_LOADED, 0, 999) };
        out.int(customer).int(district).int(warehouse);
        letters(&mut out, &mut random, 8, 16);
        out.text("OE").text(last_name(name));
        place(&mut out, &mut random);
        out.fill(|text| random.digits(16, text)).hour(populated);
        out.text(if random.percent(10) { "BC" } else { "GC" }).cents(5_000_000);
        out.ten_thousandths(random.between(0, 5000)).cents(-1000).cents(1000).int(1).int(0);
        letters(&mut out, &mut random, 300, 500);
        out.end_row()?;
    }
    let rows = out.finish()?;
    let mut out = tables.table("history")?;
    for (district, customer) in pairs(CUSTOMERS) {
        let mut random = seeded(Of::Customer, &[warehouse, district, customer, 1]);
        out.int(customer).int(district).int(warehouse).int(district).int(warehouse).hour(populated).cents(1000);
        letters(&mut out, &mut random, 12, 24);
        out.end_row()?;
    }
    Ok(rows + out.finish()?)
}

fn load_orders(tables: &mut impl Tables, warehouse: i64) -> Result<u64> {
    let mut out = tables.table("orders")?;
    for district in 1..=DISTRICTS {
        for (order, customer) in (1..).zip(customers_of_orders(warehouse, district)) {
            let mut random = seeded(Of::Order, &[warehouse, district, order]);
            let lines = random.between(5, 15);
            out.int(order).int(district).int(warehouse).int(customer).hour(hour(order));
            if order <= DELIVERED {
                out.int(random.between(1, 10))
            } else {
                out.null()
            };
            out.int(lines).int(1).end_row()?;
        }
    }
    let mut rows = out.finish()?;
    let mut out = tables.table("order_line")?;
    for (district, order) in pairs(ORDERS) {
        let lines = seeded(Of::Order, &[warehouse, district, order]).between(5, 15);
        let mut random = seeded(Of::OrderLine, &[warehouse, district, order]);
        let entered = hour(order);
        for line in 1..=lines {
            out.int(order).int(district).int(warehouse).int(line).int(random.between(1, ITEMS)).int(warehouse);
            if order <= DELIVERED {
                out.hour(entered)
            } else {
                out.null()
            };
            out.int(5).cents(if order <= DELIVERED { 0 } else { random.between(1, 999_999) });
            out.fill(|text| random.letters(24, text)).end_row()?;
        }
    }
    rows += out.finish()?;
    let mut out = tables.table("new_order")?;
    for (district, order) in pairs(ORDERS).filter(|(_, order)| *order > DELIVERED) {
        out.int(order).int(district).int(warehouse).end_row()?;
    }
    Ok(rows + out.finish()?)
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

fn letters(rows: &mut impl Rows, random: &mut Random, least: i64, most: i64) {
    let count = random.between(least, most) as usize;
    rows.fill(|out| random.letters(count, out));
}

/// Two streets, a city, a state and a zip code (clause 4.3.2.7).
fn place(rows: &mut impl Rows, random: &mut Random) {
    for _ in 0..3 {
        letters(rows, random, 10, 20);
    }
    rows.fill(|text| random.letters(2, text));
    rows.fill(|text| {
        random.digits(4, text);
        text.extend_from_slice(b"11111");
    });
}

/// 26 to 50 letters, in one of ten cases with ORIGINAL somewhere among them.
fn original(rows: &mut impl Rows, random: &mut Random) {
    let count = random.between(26, 50) as usize;
    let original = random.percent(10);
    let place = random.below(count as u64 - 7) as usize;
    rows.fill(|text| {
        let begin = text.len();
        random.letters(count, text);
        if original {
            text[begin + place..begin + place + 8].copy_from_slice(b"ORIGINAL");
        }
    });
}

/// When an order of the population was entered, in hours since 2025 began: the last one in the last hour of that year, each
/// an hour after the one before it.
fn hour(order: i64) -> i64 {
    24 * 365 - 1 - (ORDERS - order)
}

/// An hour of 2025.
pub fn timestamp(hour: i64) -> String {
    let (mut day, hour) = (hour / 24, hour % 24);
    for (month, days) in (1..).zip([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
        if day < days {
            return format!("2025-{month:02}-{:02} {hour:02}:00:00", day + 1);
        }
        day -= days;
    }
    unreachable!("all orders are of one year")
}
