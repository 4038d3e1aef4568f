//! The five transactions as a program over a driver that pipelines sends them: what waits for no answer goes out with what
//! is before it. A New-Order takes two round trips instead of 27 to 67.
//!
//! Two things differ from the other script besides round trips: a New-Order that names an unused item is rolled back
//! before its order and lines are written, and a Delivery goes through its steps for all districts at once, so that it
//! holds customers for less long.

use super::input::{Input, NewOrder, Payment, Who, middle};
use super::tables::ITEMS;
use super::transactions::*;
use crate::terminals::{BEGIN, COMMIT, ROLLBACK};
use crate::wire::Connection;
use crate::wire::Param::{Cents, Int, Text, Time};
use anyhow::{Context as _, Result};
use std::sync::atomic::{AtomicU64, Ordering};

pub async fn run(connection: &mut Connection, input: &Input, rolled_back: &AtomicU64) -> Result<()> {
    match input {
        Input::NewOrder(order) => new_order(connection, order, rolled_back).await,
        Input::Payment(payment) => pay(connection, payment).await,
        Input::OrderStatus { warehouse, district, who } => order_status(connection, *warehouse, *district, who).await,
        Input::Delivery { warehouse, carrier } => deliver(connection, *warehouse, *carrier).await,
        Input::StockLevel { warehouse, district, threshold } => {
            stock_level(connection, *warehouse, *district, *threshold).await
        }
    }
}

async fn new_order(connection: &mut Connection, order: &NewOrder, rolled_back: &AtomicU64) -> Result<()> {
    let (warehouse, district, customer) = (Int(order.warehouse), Int(order.district), Int(order.customer));
    let of_district = STOCK + order.district as usize - 1;
    let mut asked = connection
        .batch()
        .add(BEGIN, &[])
        .add(WAREHOUSE_TAX, &[warehouse])
        .add(NEXT_ORDER, &[warehouse, district])
        .add(CUSTOMER_DISCOUNT, &[warehouse, district, customer]);
    for line in &order.lines {
        let stock = [Int(line.supplier), Int(line.item)];
        asked = asked.add(ITEM, &[Int(line.item)]).add(of_district, &stock);
    }
    let mut sets = asked.send().await?.sets();
    sets.another()?;
    let warehouse_tax = fraction(sets.another()?.one()?.get(0))?;
    let number = sets.another()?.one()?;
    let (id, tax) = (number.int(0)? - 1, warehouse_tax + fraction(number.get(1))?);
    let discount = fraction(sets.another()?.one()?.get(0))?;
    // Of each line what it costs, what is left of its stock, and the district's information.
    let mut known: Vec<(i64, i32, [u8; 24])> = Vec::with_capacity(order.lines.len());
    for (place, line) in order.lines.iter().enumerate() {
        let (item, stock) = (sets.another()?.first(), sets.another()?);
        let Some(item) = item else {
            anyhow::ensure!(line.item > ITEMS as i32, "item {} is not there", line.item);
            rolled_back.fetch_add(1, Ordering::Relaxed);
            connection.run(ROLLBACK, &[]).await?;
            return Ok(());
        };
        let stock = stock.one()?;
        // Lines are sorted: one of the same stock comes right before this one, and has not been written when both are read.
        let before = place.checked_sub(1).map(|before| (&order.lines[before], known[before].1));
        let quantity = match before {
            Some((before, left)) if (before.supplier, before.item) == (line.supplier, line.item) => left,
            _ => stock.int(0)?,
        };
        let cents = item.cents(0)? * i64::from(line.quantity);
        known.push((cents, left_of(quantity, line), district_info(stock)?));
    }
    let total: i64 = known.iter().map(|(cents, ..)| cents).sum();
    // What the terminal would show.
    std::hint::black_box(total as f64 * (1.0 - discount) * (1.0 + tax));

    let all_local = order.lines.iter().all(|line| line.supplier == order.warehouse);
    let count = Int(order.lines.len() as i32);
    let row = [Int(id), district, warehouse, customer, Time(now_us()), count, Int(i32::from(all_local))];
    let mut written = connection.batch().add(INSERT_ORDER, &row).add(INSERT_NEW_ORDER, &[Int(id), district, warehouse]);
    for ((place, line), (cents, left, district_info)) in (1..).zip(&order.lines).zip(&known) {
        let (supplier, item, quantity) = (Int(line.supplier), Int(line.item), Int(line.quantity));
        let remote = Int(i32::from(line.supplier != order.warehouse));
        let cents = Cents(*cents);
        let row = [Int(id), district, warehouse, Int(place), item, supplier, quantity, cents, Text(district_info)];
        written = written.add(UPDATE_STOCK, &[Int(*left), quantity, remote, supplier, item]).add(INSERT_LINE, &row);
    }
    written.add(COMMIT, &[]).send().await?;
    Ok(())
}

async fn pay(connection: &mut Connection, payment: &Payment) -> Result<()> {
    let (warehouse, district, amount) = (Int(payment.warehouse), Int(payment.district), Cents(payment.cents));
    let (of_warehouse, of_district) = (Int(payment.customer_warehouse), Int(payment.customer_district));
    let asked = connection
        .batch()
        .add(BEGIN, &[])
        .add(PAY_WAREHOUSE, &[amount, warehouse])
        .add(PAY_DISTRICT, &[amount, warehouse, district]);
    let asked = match &payment.who {
        Who::Id(id) => asked.add(LOCK_CUSTOMER, &[of_warehouse, of_district, Int(*id)]),
        Who::Name(last) => asked.add(CUSTOMERS_BY_NAME, &[of_warehouse, of_district, Text(last.as_bytes())]),
    };
    let mut sets = asked.send().await?.sets();
    sets.another()?;
    let mut name = || Ok::<_, anyhow::Error>(sets.another()?.one()?.get(0).unwrap_or_default().to_string());
    let data = format!("{}    {}", name()?, name()?);
    let found = sets.another()?;
    let (id, bad_credit) = match &payment.who {
        Who::Id(id) => (*id, found.one()?.get(0) == Some("BC")),
        Who::Name(_) => {
            let ids = found.iter().map(|row| row.int(0)).collect::<Result<Vec<_>>>()?;
            let id = *middle(&ids).context("no such name")?;
            let locked = connection.run(LOCK_CUSTOMER, &[of_warehouse, of_district, Int(id)]).await?;
            (id, locked.one()?.get(0) == Some("BC"))
        }
    };
    let customer = Int(id);
    let noted = match bad_credit {
        true => {
            let row = connection.run(CUSTOMER_DATA, &[of_warehouse, of_district, customer]).await?.one()?;
            Some(payment.noted(id, row.get(0).unwrap_or_default()))
        }
        false => None,
    };
    let paid = connection.batch();
    let paid = match &noted {
        Some(noted) => {
            paid.add(PAY_CUSTOMER_DATA, &[amount, of_warehouse, of_district, customer, Text(noted.as_bytes())])
        }
        None => paid.add(PAY_CUSTOMER, &[amount, of_warehouse, of_district, customer]),
    };
    let at = Time(now_us());
    let row = [customer, of_district, of_warehouse, district, warehouse, at, amount, Text(data.as_bytes())];
    paid.add(INSERT_HISTORY, &row).add(COMMIT, &[]).send().await?;
    Ok(())
}

async fn order_status(connection: &mut Connection, warehouse: i32, district: i32, who: &Who) -> Result<()> {
    let (warehouse, district) = (Int(warehouse), Int(district));
    let asked = connection.batch().add(BEGIN, &[]);
    let order = match who {
        Who::Id(id) => {
            let customer = [warehouse, district, Int(*id)];
            let mut sets = asked.add(BALANCE, &customer).add(LAST_ORDER, &customer).send().await?.sets();
            sets.another()?;
            sets.another()?.one()?;
            sets.another()?.one()?.int(0)?
        }
        Who::Name(last) => {
            let last = [warehouse, district, Text(last.as_bytes())];
            let mut sets = asked.add(BALANCES_BY_NAME, &last).send().await?.sets();
            sets.another()?;
            let ids = sets.another()?.iter().map(|row| row.int(0)).collect::<Result<Vec<_>>>()?;
            let id = *middle(&ids).context("no such name")?;
            connection.run(LAST_ORDER, &[warehouse, district, Int(id)]).await?.one()?.int(0)?
        }
    };
    let asked = connection.batch().add(LINES, &[warehouse, district, Int(order)]).add(COMMIT, &[]);
    let lines = asked.send().await?.sets().another()?.iter().count();
    anyhow::ensure!((5..=15).contains(&lines), "order {order} has {lines} lines");
    Ok(())
}

async fn deliver(connection: &mut Connection, warehouse: i32, carrier: i32) -> Result<()> {
    let warehouse = Int(warehouse);
    let mut asked = connection.batch().add(BEGIN, &[]);
    for district in 1..=10 {
        asked = asked.add(OLDEST_NEW_ORDER, &[warehouse, Int(district)]);
    }
    let mut sets = asked.send().await?.sets();
    sets.another()?;
    // Clause 2.7.4.2: in some districts there may be nothing to deliver.
    let mut oldest: Vec<(i32, i32)> = Vec::with_capacity(10);
    for district in 1..=10 {
        if let Some(row) = sets.another()?.first() {
            oldest.push((district, row.int(0)?));
        }
    }
    let mut asked = connection.batch();
    for (district, order) in &oldest {
        let (district, order) = (Int(*district), Int(*order));
        let key = [warehouse, district, order];
        asked = asked
            .add(DELETE_NEW_ORDER, &key)
            .add(SET_CARRIER, &[Int(carrier), warehouse, district, order])
            .add(SET_DELIVERED, &[Time(now_us()), warehouse, district, order])
            .add(ORDER_AMOUNT, &key);
    }
    let mut sets = asked.send().await?.sets();
    let mut delivered: Vec<(i32, i32, i64)> = Vec::with_capacity(10);
    for (district, order) in &oldest {
        let deleted = sets.another()?.affected();
        anyhow::ensure!(deleted == 1, "order {order} was locked, and {deleted} rows of it deleted");
        let customer = sets.another()?.one()?.int(0)?;
        let lines = sets.another()?.affected();
        anyhow::ensure!((5..=15).contains(&lines), "order {order} has {lines} lines");
        delivered.push((*district, customer, sets.another()?.one()?.cents(0)?));
    }
    let mut asked = connection.batch();
    for (district, customer, cents) in delivered {
        asked = asked.add(DELIVER_CUSTOMER, &[Cents(cents), warehouse, Int(district), Int(customer)]);
    }
    asked.add(COMMIT, &[]).send().await?;
    Ok(())
}

async fn stock_level(connection: &mut Connection, warehouse: i32, district: i32, threshold: i32) -> Result<()> {
    let (warehouse, district) = (Int(warehouse), Int(district));
    let asked = connection.batch().add(BEGIN, &[]).add(NEXT_ORDER_OF_DISTRICT, &[warehouse, district]);
    let mut sets = asked.send().await?.sets();
    sets.another()?;
    let order = sets.another()?.one()?.int(0)?;
    let row = [warehouse, district, Int(order - 20), Int(order), Int(threshold)];
    let asked = connection.batch().add(LOW_STOCK, &row).add(COMMIT, &[]);
    asked.send().await?.sets().another()?.one()?.int(0)?;
    Ok(())
}
