//! A population of a few thousand rows, and input that stays within it.
//!
//! Otherwise than in the specification every order is yet to be delivered, and every sum is what its parts say from
//! the beginning.

use crate::load::Loader;
use crate::tables::Table;
use anyhow::Result;
use basalt_bench::random::Random;
use basalt_bench::tpcc::input::{Input, Who};
use basalt_bench::tpcc::population::{Rows, Tables};
use basalt_bench::tpcc::tables::{DISTRICTS, ITEMS, last_name};
use basalt_engine::Engine;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub const WAREHOUSES: i32 = 2;
/// Per district, each with one order of the same number.
pub const CUSTOMERS: i32 = 15;
/// Last names in a district.
pub const NAMES: i32 = 5;
const ITEMS_USED: i32 = 80;
/// What each customer has paid.
const PAID_CENTS: i64 = 1000;

/// Rows rest in memory and in the log, of which nobody has waited for the end.
pub fn populate(engine: &Arc<Engine>, tables: &HashMap<&'static str, Arc<Table>>) -> Result<()> {
    let mut loader = Loader::new(engine, tables)?;
    let mut random = Random::new(1);
    let mut out = loader.table("item")?;
    for item in 1..=ITEMS_USED {
        out.int(item.into()).int(1).text("an item").cents(random.between(100, 10_000)).text("its data").end_row()?;
    }
    out.finish()?;
    for warehouse in 1..=i64::from(WAREHOUSES) {
        let of_district = PAID_CENTS * i64::from(CUSTOMERS);
        let mut out = loader.table("warehouse")?;
        place(out.int(warehouse).text("w"));
        out.ten_thousandths(1000).cents(of_district * DISTRICTS).end_row()?;
        out.finish()?;
        let mut out = loader.table("district")?;
        for district in 1..=DISTRICTS {
            place(out.int(district).int(warehouse).text("d"));
            out.ten_thousandths(1000).cents(of_district).int(i64::from(CUSTOMERS) + 1).end_row()?;
        }
        out.finish()?;
        customers(&mut loader, warehouse, &mut random)?;
        let ordered = orders(&mut loader, warehouse, &mut random)?;
        stock(&mut loader, warehouse, &ordered, &mut random)?;
    }
    Ok(())
}

fn place<R: Rows>(out: &mut R) -> &mut R {
    out.text("street").text("street").text("city").text("st").text("123411111")
}

fn each_customer() -> impl Iterator<Item = (i64, i64)> {
    (1..=DISTRICTS).flat_map(|district| (1..=i64::from(CUSTOMERS)).map(move |customer| (district, customer)))
}

fn customers(loader: &mut Loader<'_>, warehouse: i64, random: &mut Random) -> Result<()> {
    let mut out = loader.table("customer")?;
    for (district, customer) in each_customer() {
        out.int(customer).int(district).int(warehouse).fill(|text| random.letters(12, text)).text("OE");
        place(out.text(last_name(customer % i64::from(NAMES))));
        out.text("0123456789abcdef").hour(0).text(if customer % 3 == 0 { "BC" } else { "GC" });
        out.cents(5_000_000).ten_thousandths(100).cents(-PAID_CENTS).cents(PAID_CENTS).int(1).int(0);
        out.fill(|text| random.letters(300, text)).end_row()?;
    }
    out.finish()?;
    let mut out = loader.table("history")?;
    for (district, customer) in each_customer() {
        out.int(customer).int(district).int(warehouse).int(district).int(warehouse);
        out.hour(0).cents(PAID_CENTS).text("of the population").end_row()?;
    }
    out.finish()?;
    Ok(())
}

/// Gives quantity and lines by item.
fn orders(loader: &mut Loader<'_>, warehouse: i64, random: &mut Random) -> Result<BTreeMap<i32, [i64; 2]>> {
    let count = |order: i64| 5 + order % 11;
    let mut out = loader.table("orders")?;
    for (district, order) in each_customer() {
        out.int(order).int(district).int(warehouse).int(order).hour(order).null().int(count(order)).int(1).end_row()?;
    }
    out.finish()?;
    let mut ordered: BTreeMap<i32, [i64; 2]> = BTreeMap::new();
    let mut out = loader.table("order_line")?;
    for (district, order) in each_customer() {
        for line in 1..=count(order) {
            let (item, quantity) = (random.between(1, ITEMS_USED.into()), random.between(1, 10));
            out.int(order).int(district).int(warehouse).int(line).int(item).int(warehouse).null();
            out.int(quantity).cents(random.between(1, 999_999)).fill(|text| random.letters(24, text)).end_row()?;
            let [sum, lines] = ordered.entry(item as i32).or_default();
            (*sum, *lines) = (*sum + quantity, *lines + 1);
        }
    }
    out.finish()?;
    let mut out = loader.table("new_order")?;
    for (district, order) in each_customer() {
        out.int(order).int(district).int(warehouse).end_row()?;
    }
    out.finish()?;
    Ok(ordered)
}

fn stock(
    loader: &mut Loader<'_>,
    warehouse: i64,
    ordered: &BTreeMap<i32, [i64; 2]>,
    random: &mut Random,
) -> Result<()> {
    let mut out = loader.table("stock")?;
    for item in 1..=ITEMS_USED {
        let [quantity, lines] = ordered.get(&item).copied().unwrap_or_default();
        out.int(item.into()).int(warehouse).int(random.between(10, 100));
        for _ in 0..DISTRICTS {
            out.fill(|text| random.letters(24, text));
        }
        out.int(quantity).int(lines).int(0).text("its data").end_row()?;
    }
    out.finish()?;
    Ok(())
}

/// Input of a full population, for this one.
pub fn within(mut input: Input) -> Input {
    match &mut input {
        Input::NewOrder(order) => {
            order.customer = folded(order.customer, CUSTOMERS);
            // One that is not there stays so.
            for line in order.lines.iter_mut().filter(|line| i64::from(line.item) <= ITEMS) {
                line.item = folded(line.item, ITEMS_USED);
            }
            // As terminals do, so that they do not wait for each other in a circle.
            order.lines.sort_by_key(|line| (line.supplier, line.item));
        }
        Input::Payment(payment) => fold_who(&mut payment.who),
        Input::OrderStatus { who, .. } => fold_who(who),
        Input::Delivery { .. } | Input::StockLevel { .. } => {}
    }
    input
}

/// From 1 to `most`.
fn folded(number: i32, most: i32) -> i32 {
    (number - 1) % most + 1
}

fn fold_who(who: &mut Who) {
    *who = match who {
        Who::Id(id) => Who::Id(folded(*id, CUSTOMERS)),
        Who::Name(name) => Who::Name(last_name(name.bytes().map(i64::from).sum::<i64>() % i64::from(NAMES))),
    };
}
