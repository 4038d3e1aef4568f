//! TPC-H instead of a history: its eight tables, loaded by COPY, then orders with their line items without end.
//!
//! New orders are TPC-H's own, generated again and moved to keys above all that are there, so that the three
//! queries meet them: their dates, prices and customers are as the specification has them.

use super::scene::{Batch, Copy, Query, Scene, Source};
use crate::connect::describe;
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use futures::SinkExt;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Display;
use std::io::Write;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_postgres::Client;
use tpchgen::generators::{
    CustomerGenerator, LineItem, LineItemGenerator, NationGenerator, Order, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen::q_and_a::queries::{Q1, Q3, Q6};

const TABLES: &str = include_str!("tpch/tables.sql");
/// In the order of loading.
const NAMES: [&str; 8] = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];
const COPY_ORDERS: &str = "COPY orders FROM STDIN (DELIMITER '|')";
const COPY_LINEITEM: &str = "COPY lineitem FROM STDIN (DELIMITER '|')";
/// Orders are generated in parts of this many, so that a part is never far away.
const ORDERS_PER_PART: i64 = 10_000;
/// Every order has one to seven line items.
const ROWS_PER_ORDER: u64 = 5;
const PIECE_BYTES: usize = 1 << 18;
const PIECES_WAITING: usize = 8;

/// Makes and loads what is not there yet.
pub async fn prepare(client: &Client, scale_factor: f64) -> Result<Scene> {
    client.batch_execute(TABLES).await.map_err(|error| anyhow!("{}", describe(&error)))?;
    for name in NAMES {
        load(client, name, scale_factor).await.with_context(|| format!("loading {name}"))?;
    }
    let last = client.query_one("SELECT max(o_orderkey) FROM orders", &[]).await;
    let last_key: i64 = last.map_err(|error| anyhow!("{}", describe(&error)))?.get(0);
    let query = |name, title, sql: String| Query { name, title, sql };
    let q3 = Q3.trim().trim_end_matches(';').replace(":1", "BUILDING").replace(":2", "1995-03-15");
    let q6 = Q6.trim().replace(":1", "1994-01-01").replace(":2", "0.06").replace(":3", "24");
    Ok(Scene {
        title: format!("TPC-H, scale factor {scale_factor}"),
        probe: "SELECT 1 FROM orders WHERE o_orderkey = $1",
        queries: vec![
            query("q1", "Q1, pricing summary", Q1.trim().replace("interval ':1' day (3)", "interval '90' day")),
            query("q3", "Q3, shipping priority", format!("{q3} LIMIT 5")),
            query("q6", "Q6, forecasting revenue change", q6),
        ],
        source: Box::new(NewOrders::new(scale_factor, last_key)),
    })
}

/// One table in one transaction, unless it has rows.
async fn load(client: &Client, name: &'static str, scale_factor: f64) -> Result<()> {
    let failed = |error: tokio_postgres::Error| anyhow!("{}", describe(&error));
    if client.query_opt(&format!("SELECT 1 FROM {name} LIMIT 1"), &[]).await.map_err(failed)?.is_some() {
        return Ok(());
    }
    let bar = progress(name, row_count(name, scale_factor));
    let sink = client.copy_in(&format!("COPY {name} FROM STDIN (DELIMITER '|')")).await.map_err(failed)?;
    let mut sink = std::pin::pin!(sink);
    let (pieces, mut received): (_, Receiver<(Bytes, u64)>) = channel(PIECES_WAITING);
    std::thread::spawn(move || generate(name, scale_factor, pieces));
    while let Some((bytes, rows)) = received.recv().await {
        if let Err(error) = sink.send(bytes).await {
            // What the server objects to comes with the end of the copy.
            bail!(failed(sink.finish().await.err().unwrap_or(error)));
        }
        bar.inc(rows);
    }
    sink.finish().await.map_err(failed)?;
    bar.finish();
    Ok(())
}

fn progress(name: &str, rows: u64) -> ProgressBar {
    let template = "{prefix:<9} {wide_bar} {human_pos:>11} of {human_len} rows  {per_sec:>16}  {eta:>4} left";
    let style = ProgressStyle::with_template(template).expect("the template is constant");
    ProgressBar::new(rows).with_style(style).with_prefix(name.to_string())
}

/// About: the number of line items is known only when they are generated.
fn row_count(name: &str, scale_factor: f64) -> u64 {
    let rows = |generator: fn(f64, i32, i32) -> i64| generator(scale_factor, 1, 1);
    let rows = match name {
        "region" => 5,
        "nation" => 25,
        "supplier" => rows(SupplierGenerator::calculate_row_count),
        "customer" => rows(CustomerGenerator::calculate_row_count),
        "part" => rows(PartGenerator::calculate_row_count),
        "partsupp" => rows(PartSuppGenerator::calculate_row_count),
        "orders" => rows(OrderGenerator::calculate_row_count),
        _ => rows(OrderGenerator::calculate_row_count) * 4,
    };
    rows as u64
}

fn generate(name: &str, scale_factor: f64, pieces: Sender<(Bytes, u64)>) {
    match name {
        "region" => send(RegionGenerator::new(scale_factor, 1, 1).iter(), &pieces),
        "nation" => send(NationGenerator::new(scale_factor, 1, 1).iter(), &pieces),
        "supplier" => send(SupplierGenerator::new(scale_factor, 1, 1).iter(), &pieces),
        "customer" => send(CustomerGenerator::new(scale_factor, 1, 1).iter(), &pieces),
        "part" => send(PartGenerator::new(scale_factor, 1, 1).iter(), &pieces),
        "partsupp" => send(PartSuppGenerator::new(scale_factor, 1, 1).iter(), &pieces),
        "orders" => send(OrderGenerator::new(scale_factor, 1, 1).iter(), &pieces),
        _ => send(LineItemGenerator::new(scale_factor, 1, 1).iter(), &pieces),
    }
}

/// Ends early when nobody listens any more.
fn send(rows: impl Iterator<Item = impl Display>, pieces: &Sender<(Bytes, u64)>) {
    let (mut piece, mut count) = (Vec::with_capacity(PIECE_BYTES), 0);
    for row in rows {
        push_row(&mut piece, &row);
        count += 1;
        if piece.len() >= PIECE_BYTES {
            let bytes = std::mem::replace(&mut piece, Vec::with_capacity(PIECE_BYTES));
            if pieces.blocking_send((bytes.into(), std::mem::take(&mut count))).is_err() {
                return;
            }
        }
    }
    // The last piece may have nobody to listen either.
    let _ = pieces.blocking_send((piece.into(), count));
}

/// TPC-H's own form ends a row with one more separator. No value has a character that COPY would escape.
fn push_row(out: &mut Vec<u8>, row: &impl Display) {
    // Writing to memory does not fail.
    let _ = write!(out, "{row}");
    if out.last() == Some(&b'|') {
        out.pop();
    }
    out.push(b'\n');
}

/// Orders and their line items above the keys that are there.
pub struct NewOrders {
    scale_factor: f64,
    parts: i32,
    next_part: i32,
    /// Added to generated keys in this round through the parts.
    offset: i64,
    last_key: i64,
    waiting: Option<Waiting>,
}

/// What is left of a part.
struct Waiting {
    orders: Box<dyn Iterator<Item = Order<'static>> + Send>,
    items: std::iter::Peekable<Box<dyn Iterator<Item = LineItem<'static>> + Send>>,
}

impl NewOrders {
    pub fn new(scale_factor: f64, last_key: i64) -> NewOrders {
        let orders = OrderGenerator::calculate_row_count(scale_factor, 1, 1);
        let parts = i32::try_from(orders / ORDERS_PER_PART).unwrap_or(i32::MAX).max(1);
        NewOrders { scale_factor, parts, next_part: 1, offset: last_key, last_key, waiting: None }
    }

    fn part(&mut self) -> &mut Waiting {
        let (scale_factor, parts) = (self.scale_factor, self.parts);
        self.waiting.get_or_insert_with(|| {
            if self.next_part > parts {
                self.next_part = 1;
                self.offset = self.last_key;
            }
            let part = self.next_part;
            self.next_part += 1;
            let items: Box<dyn Iterator<Item = _> + Send> =
                Box::new(LineItemGenerator::new(scale_factor, part, parts).iter());
            let orders = Box::new(OrderGenerator::new(scale_factor, part, parts).iter());
            Waiting { orders, items: items.peekable() }
        })
    }
}

impl Source for NewOrders {
    fn next_batch(&mut self, rows: u64) -> Result<Batch> {
        let (mut orders, mut items) = (Vec::new(), Vec::new());
        let (mut order_rows, mut item_rows) = (0, 0);
        while order_rows < rows.div_ceil(ROWS_PER_ORDER).max(1) {
            let waiting = self.part();
            let Some(mut order) = waiting.orders.next() else {
                self.waiting = None;
                continue;
            };
            let generated_key = order.o_orderkey;
            let mut of_order = Vec::new();
            while let Some(item) = waiting.items.next_if(|item| item.l_orderkey == generated_key) {
                of_order.push(item);
            }
            let key = generated_key + self.offset;
            order.o_orderkey = key;
            push_row(&mut orders, &order);
            order_rows += 1;
            for mut item in of_order {
                item.l_orderkey = key;
                push_row(&mut items, &item);
                item_rows += 1;
            }
            self.last_key = key;
        }
        let orders = Copy { sql: COPY_ORDERS, rows: order_rows, bytes: orders.into() };
        let items = Copy { sql: COPY_LINEITEM, rows: item_rows, bytes: items.into() };
        Ok(Batch { copies: vec![orders, items], key: self.last_key, round: 0 })
    }
}

#[cfg(test)]
mod tests;
