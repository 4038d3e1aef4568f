//! The five transactions (clauses 2.4.2 to 2.8.2), statement by statement as a program over a driver sends them.
//!
//! They keep the consistency conditions at READ COMMITTED: what is read to be written is locked when it is read (FOR
//! UPDATE) or written and read at once (UPDATE … RETURNING).

use super::input::{Line, NewOrder, Payment, Who, middle};
use super::tables::ITEMS;
use crate::terminals::{BEGIN, COMMIT, ROLLBACK, transaction_control};
use crate::wire::Param::{Cents, Int, Text, Time};
use crate::wire::{Connection, Row, Statement, statement};
use anyhow::{Context as _, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Places in `statements()`.
pub(super) const WAREHOUSE_TAX: usize = 3;
pub(super) const CUSTOMER_DISCOUNT: usize = 4;
pub(super) const NEXT_ORDER: usize = 5;
pub(super) const INSERT_ORDER: usize = 6;
pub(super) const INSERT_NEW_ORDER: usize = 7;
pub(super) const ITEM: usize = 8;
pub(super) const UPDATE_STOCK: usize = 9;
pub(super) const INSERT_LINE: usize = 10;
pub(super) const PAY_WAREHOUSE: usize = 11;
pub(super) const PAY_DISTRICT: usize = 12;
pub(super) const CUSTOMERS_BY_NAME: usize = 13;
pub(super) const LOCK_CUSTOMER: usize = 14;
pub(super) const PAY_CUSTOMER: usize = 15;
pub(super) const CUSTOMER_DATA: usize = 16;
pub(super) const PAY_CUSTOMER_DATA: usize = 17;
pub(super) const INSERT_HISTORY: usize = 18;
pub(super) const BALANCES_BY_NAME: usize = 19;
pub(super) const BALANCE: usize = 20;
pub(super) const LAST_ORDER: usize = 21;
pub(super) const LINES: usize = 22;
pub(super) const OLDEST_NEW_ORDER: usize = 23;
pub(super) const DELETE_NEW_ORDER: usize = 24;
pub(super) const SET_CARRIER: usize = 25;
pub(super) const SET_DELIVERED: usize = 26;
pub(super) const ORDER_AMOUNT: usize = 27;
pub(super) const DELIVER_CUSTOMER: usize = 28;
pub(super) const NEXT_ORDER_OF_DISTRICT: usize = 29;
pub(super) const LOW_STOCK: usize = 30;
/// Ten of them, one for each district.
pub(super) const STOCK: usize = 31;

pub fn statements() -> Vec<Statement> {
    let mut all = transaction_control();
    let own = [
        ("SELECT w_tax FROM warehouse WHERE w_id = $1", "i"),
        ("SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3", "iii"),
        (
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
             RETURNING d_next_o_id, d_tax",
            "ii",
        ),
        (
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            "iiiitii",
        ),
        ("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)", "iii"),
        ("SELECT i_price, i_name, i_data FROM item WHERE i_id = $1", "i"),
        (
            "UPDATE stock SET s_quantity = $1, s_ytd = s_ytd + $2, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + $3 WHERE s_w_id = $4 AND s_i_id = $5",
            "iiiii",
        ),
        (
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
             ol_amount, ol_dist_info) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            "iiiiiiins",
        ),
        (
            "UPDATE warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2 \
             RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
            "ni",
        ),
        (
            "UPDATE district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3 \
             RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
            "nii",
        ),
        ("SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first", "iis"),
        (
            "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
             c_since, c_credit_lim, c_discount, c_balance FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 FOR UPDATE",
            "iii",
        ),
        (
            "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, \
             c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
            "niii",
        ),
        ("SELECT c_data FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3", "iii"),
        (
            "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, \
             c_payment_cnt = c_payment_cnt + 1, c_data = $5 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
            "niiis",
        ),
        (
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            "iiiiitns",
        ),
        (
            "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
            "iis",
        ),
        (
            "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            "iii",
        ),
        (
            "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
             ORDER BY o_id DESC LIMIT 1",
            "iii",
        ),
        (
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
             WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            "iii",
        ),
        ("SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE", "ii"),
        ("DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3", "iii"),
        (
            "UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4 RETURNING o_c_id",
            "iiii",
        ),
        ("UPDATE order_line SET ol_delivery_d = $1 WHERE ol_w_id = $2 AND ol_d_id = $3 AND ol_o_id = $4", "tiii"),
        ("SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3", "iii"),
        (
            "UPDATE customer SET c_balance = c_balance + $1, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
            "niii",
        ),
        ("SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2", "ii"),
        (
            "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id AND s_w_id = ol_w_id \
             WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4 AND s_quantity < $5",
            "iiiii",
        ),
    ];
    all.extend(own.map(|(sql, types)| statement(sql, types)));
    all.extend((1..=10).map(|district| {
        let sql = format!(
            "SELECT s_quantity, s_data, s_dist_{district:02} FROM stock WHERE s_w_id = $1 AND s_i_id = $2 FOR UPDATE"
        );
        statement(sql, "ii")
    }));
    all
}

pub async fn new_order(connection: &mut Connection, order: &NewOrder, rolled_back: &AtomicU64) -> Result<()> {
    let (warehouse, district, customer) = (Int(order.warehouse), Int(order.district), Int(order.customer));
    connection.run(BEGIN, &[]).await?;
    let warehouse_tax = fraction(connection.run(WAREHOUSE_TAX, &[warehouse]).await?.one()?.get(0))?;
    let next = connection.run(NEXT_ORDER, &[warehouse, district]).await?.one()?;
    let (number, tax) = (next.int(0)? - 1, warehouse_tax + fraction(next.get(1))?);
    let asked = connection.run(CUSTOMER_DISCOUNT, &[warehouse, district, customer]);
    let discount = fraction(asked.await?.one()?.get(0))?;
    let all_local = order.lines.iter().all(|line| line.supplier == order.warehouse);
    let count = order.lines.len() as i32;
    let id = Int(number);
    let row = [id, district, warehouse, customer, Time(now_us()), Int(count), Int(i32::from(all_local))];
    connection.run(INSERT_ORDER, &row).await?;
    connection.run(INSERT_NEW_ORDER, &[id, district, warehouse]).await?;
    let mut total = 0;
    for (place, line) in (1..).zip(&order.lines) {
        let Some(cents) = order_line(connection, order, number, place, line).await? else {
            rolled_back.fetch_add(1, Ordering::Relaxed);
            connection.run(ROLLBACK, &[]).await?;
            return Ok(());
        };
        total += cents;
    }
    // What the terminal would show.
    std::hint::black_box(total as f64 * (1.0 - discount) * (1.0 + tax));
    connection.run(COMMIT, &[]).await?;
    Ok(())
}

/// The line's amount in cents, or nothing where there is no such item.
async fn order_line(
    connection: &mut Connection,
    order: &NewOrder,
    number: i32,
    place: i32,
    line: &Line,
) -> Result<Option<i64>> {
    let found = connection.run(ITEM, &[Int(line.item)]).await?;
    let Some(item) = found.first() else {
        anyhow::ensure!(line.item > ITEMS as i32, "item {} is not there", line.item);
        return Ok(None);
    };
    let cents = item.cents(0)? * i64::from(line.quantity);
    let stock = STOCK + order.district as usize - 1;
    let stock = connection.run(stock, &[Int(line.supplier), Int(line.item)]).await?.one()?;
    let (left, district_info) = (left_of(stock.int(0)?, line), district_info(stock)?);
    let remote = i32::from(line.supplier != order.warehouse);
    let row = [Int(left), Int(line.quantity), Int(remote), Int(line.supplier), Int(line.item)];
    connection.run(UPDATE_STOCK, &row).await?;
    let row = [
        Int(number),
        Int(order.district),
        Int(order.warehouse),
        Int(place),
        Int(line.item),
        Int(line.supplier),
        Int(line.quantity),
        Cents(cents),
        Text(&district_info),
    ];
    connection.run(INSERT_LINE, &row).await?;
    Ok(Some(cents))
}

/// What is left of a stock when a line is taken (clause 2.4.2.2).
pub(super) fn left_of(quantity: i32, line: &Line) -> i32 {
    let left = quantity - line.quantity;
    if left >= 10 { left } else { left + 91 }
}

/// `s_dist_xx`, 24 letters.
pub(super) fn district_info(stock: Row) -> Result<[u8; 24]> {
    let letters = stock.get(2).context("s_dist is null")?.as_bytes();
    letters.try_into().with_context(|| format!("s_dist of {} letters", letters.len()))
}

pub async fn payment(connection: &mut Connection, payment: &Payment) -> Result<()> {
    let (warehouse, district, amount) = (Int(payment.warehouse), Int(payment.district), Cents(payment.cents));
    connection.run(BEGIN, &[]).await?;
    let name = |text: Option<&str>| text.unwrap_or_default().to_string();
    let paid = connection.run(PAY_WAREHOUSE, &[amount, warehouse]).await?.one()?;
    let warehouse_name = name(paid.get(0));
    let paid = connection.run(PAY_DISTRICT, &[amount, warehouse, district]).await?.one()?;
    let district_name = name(paid.get(0));
    let (of_warehouse, of_district) = (Int(payment.customer_warehouse), Int(payment.customer_district));
    let id = match &payment.who {
        Who::Id(id) => *id,
        Who::Name(last) => {
            let asked = connection.run(CUSTOMERS_BY_NAME, &[of_warehouse, of_district, Text(last.as_bytes())]);
            *middle(&asked.await?.iter().map(|row| row.int(0)).collect::<Result<Vec<_>>>()?).context("no such name")?
        }
    };
    let key = [of_warehouse, of_district, Int(id)];
    let bad_credit = connection.run(LOCK_CUSTOMER, &key).await?.one()?.get(0) == Some("BC");
    let [key_warehouse, key_district, key_customer] = key;
    if bad_credit {
        let row = connection.run(CUSTOMER_DATA, &key).await?.one()?;
        let data = payment.noted(id, row.get(0).unwrap_or_default());
        let row = [amount, key_warehouse, key_district, key_customer, Text(data.as_bytes())];
        connection.run(PAY_CUSTOMER_DATA, &row).await?;
    } else {
        connection.run(PAY_CUSTOMER, &[amount, key_warehouse, key_district, key_customer]).await?;
    }
    let data = format!("{warehouse_name}    {district_name}");
    let at = Time(now_us());
    let row = [key_customer, key_district, key_warehouse, district, warehouse, at, amount, Text(data.as_bytes())];
    connection.run(INSERT_HISTORY, &row).await?;
    connection.run(COMMIT, &[]).await?;
    Ok(())
}

pub async fn order_status(connection: &mut Connection, warehouse: i32, district: i32, who: &Who) -> Result<()> {
    let (warehouse, district) = (Int(warehouse), Int(district));
    connection.run(BEGIN, &[]).await?;
    let id = match who {
        Who::Id(id) => connection.run(BALANCE, &[warehouse, district, Int(*id)]).await?.one()?.int(0)?,
        Who::Name(last) => {
            let asked = connection.run(BALANCES_BY_NAME, &[warehouse, district, Text(last.as_bytes())]);
            *middle(&asked.await?.iter().map(|row| row.int(0)).collect::<Result<Vec<_>>>()?).context("no such name")?
        }
    };
    let order = connection.run(LAST_ORDER, &[warehouse, district, Int(id)]).await?.one()?.int(0)?;
    let lines = connection.run(LINES, &[warehouse, district, Int(order)]).await?.iter().count();
    anyhow::ensure!((5..=15).contains(&lines), "order {order} has {lines} lines");
    connection.run(COMMIT, &[]).await?;
    Ok(())
}

pub async fn delivery(connection: &mut Connection, warehouse: i32, carrier: i32) -> Result<()> {
    let warehouse = Int(warehouse);
    connection.run(BEGIN, &[]).await?;
    for district in (1..=10).map(Int) {
        let oldest = connection.run(OLDEST_NEW_ORDER, &[warehouse, district]).await?.first();
        let Some(order) = oldest.map(|row| row.int(0)).transpose()? else {
            // Clause 2.7.4.2: nothing to deliver in this district.
            continue;
        };
        let key = [warehouse, district, Int(order)];
        let deleted = connection.run(DELETE_NEW_ORDER, &key).await?.affected();
        anyhow::ensure!(deleted == 1, "order {order} was locked, and {deleted} rows of it deleted");
        let row = [Int(carrier), warehouse, district, Int(order)];
        let customer = connection.run(SET_CARRIER, &row).await?.one()?.int(0)?;
        let row = [Time(now_us()), warehouse, district, Int(order)];
        let lines = connection.run(SET_DELIVERED, &row).await?.affected();
        anyhow::ensure!((5..=15).contains(&lines), "order {order} has {lines} lines");
        let cents = connection.run(ORDER_AMOUNT, &key).await?.one()?.cents(0)?;
        connection.run(DELIVER_CUSTOMER, &[Cents(cents), warehouse, district, Int(customer)]).await?;
    }
    connection.run(COMMIT, &[]).await?;
    Ok(())
}

pub async fn stock_level(connection: &mut Connection, warehouse: i32, district: i32, threshold: i32) -> Result<()> {
    let (warehouse, district) = (Int(warehouse), Int(district));
    connection.run(BEGIN, &[]).await?;
    let next = connection.run(NEXT_ORDER_OF_DISTRICT, &[warehouse, district]).await?.one()?.int(0)?;
    let row = [warehouse, district, Int(next - 20), Int(next), Int(threshold)];
    connection.run(LOW_STOCK, &row).await?.one()?.int(0)?;
    connection.run(COMMIT, &[]).await?;
    Ok(())
}

pub(super) fn fraction(text: Option<&str>) -> Result<f64> {
    Ok(text.context("no fraction")?.parse()?)
}

/// Microseconds since 2000-01-01, as the protocol has timestamps.
pub(super) fn now_us() -> i64 {
    const UNIX_SECONDS_AT_2000: u64 = 946_684_800;
    let epoch = SystemTime::UNIX_EPOCH + Duration::from_secs(UNIX_SECONDS_AT_2000);
    SystemTime::now().duration_since(epoch).map_or(0, |since| since.as_micros() as i64)
}
