//! A terminal: three of TPC-C's transactions (clauses 2.4.2, 2.5.2, 2.7.4), prepared and sent statement by statement.
//!
//! They keep the consistency conditions at every level: what is read to be written is locked when it is read, or
//! written and read at once.

use super::tables::{CUSTOMERS, DISTRICTS, ITEMS, WAREHOUSES};
use anyhow::{Result, bail, ensure};
use basalt_it::wire::{Reply, Wire};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::fmt::Display;

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

const STATEMENTS: &[(&str, &str)] = &[
    (
        "number",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1",
    ),
    ("order", "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt) VALUES ($1, $2, $3, $4, $5)"),
    ("new order", "INSERT INTO new_order VALUES ($1, $2, $3)"),
    (
        "stock",
        "UPDATE stock SET s_quantity = s_quantity - $3 + CASE WHEN s_quantity < $3 + 10 THEN 91 ELSE 0 END,
         s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1 WHERE s_w_id = $1 AND s_i_id = $2",
    ),
    (
        "line",
        "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_quantity, ol_amount)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    ),
    ("pay warehouse", "UPDATE warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2"),
    ("pay district", "UPDATE district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3"),
    (
        "pay customer",
        "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1,
         c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
    ),
    ("history", "INSERT INTO history VALUES ($1, $2, $3, $4, $5, $6, $7)"),
    ("oldest", "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE"),
    ("not new", "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3"),
    ("carrier", "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id"),
    ("delivered", "UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3"),
    ("amount", "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3"),
    (
        "deliver",
        "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    ),
];

/// Warehouse, district, number.
pub type Order = (u32, u32, u32);

/// A transaction with its input.
#[derive(Clone, Debug)]
pub enum Input {
    NewOrder {
        warehouse: u32,
        district: u32,
        customer: u32,
        items: Vec<u32>,
        rolls_back: bool,
    },
    Payment {
        warehouse: u32,
        district: u32,
        /// Of any warehouse and district.
        customer: (u32, u32, u32),
        amount: u32,
    },
    Delivery {
        warehouse: u32,
        carrier: u32,
    },
}

/// What a transaction has done that was acknowledged.
pub enum Done {
    RolledBack,
    Ordered { order: Order, lines: usize },
    Paid,
    Delivered { orders: Vec<Order>, carrier: u32 },
}

pub enum Failure {
    /// The server was killed.
    Broken,
    /// 40001 or 40P01.
    Conflict,
    Said(String),
}

/// What a terminal has to tell when its connection is broken.
pub struct Told {
    pub done: Vec<Done>,
    pub under_way: Input,
}

pub struct Terminal {
    pub id: usize,
    random: StdRng,
}

impl Terminal {
    pub fn new(id: usize, seed: u64) -> Terminal {
        Terminal { id, random: StdRng::seed_from_u64(seed * 1000 + id as u64) }
    }

    /// Works until the connection, on which all is prepared, breaks.
    pub fn work(&mut self, mut wire: Wire) -> Result<Told> {
        let mut done = Vec::new();
        loop {
            let input = self.draw();
            match self.perform(&mut wire, &input) {
                Ok(outcome) => done.push(outcome),
                Err(Failure::Broken) => return Ok(Told { done, under_way: input }),
                Err(Failure::Said(what)) => bail!("terminal {}: {input:?}: {what}", self.id),
                // The server may be killed meanwhile: the next transaction will tell.
                Err(Failure::Conflict) => drop(wire.simple("ROLLBACK", None)),
            }
        }
    }

    pub fn draw(&mut self) -> Input {
        let random = &mut self.random;
        let (warehouse, district) = (random.random_range(1..=WAREHOUSES), random.random_range(1..=DISTRICTS));
        match random.random_range(0..100) {
            0..50 => {
                let mut items: Vec<u32> =
                    (0..random.random_range(5..=15)).map(|_| random.random_range(1..=ITEMS)).collect();
                // Terminals that lock stock in one order do not wait for each other in a circle.
                items.sort_unstable();
                let customer = random.random_range(1..=CUSTOMERS);
                Input::NewOrder { warehouse, district, customer, items, rolls_back: random.random_ratio(1, 20) }
            }
            50..90 => {
                let own = random.random_ratio(85, 100);
                let of = if own { (warehouse, district) } else { (WAREHOUSES + 1 - warehouse, district) };
                let customer = (of.0, of.1, random.random_range(1..=CUSTOMERS));
                Input::Payment { warehouse, district, customer, amount: random.random_range(1..=5000) }
            }
            _ => Input::Delivery { warehouse, carrier: random.random_range(1..=10) },
        }
    }

    pub fn perform(&self, wire: &mut Wire, input: &Input) -> Result<Done, Failure> {
        let level = LEVELS[self.id % LEVELS.len()];
        said(wire.simple(&format!("BEGIN ISOLATION LEVEL {level}"), None))?;
        let done = match input {
            Input::NewOrder { warehouse, district, customer, items, .. } => {
                let order = new_order(wire, *warehouse, *district, *customer, items)?;
                Done::Ordered { order, lines: items.len() }
            }
            Input::Payment { warehouse, district, customer, amount } => {
                pay(wire, (*warehouse, *district), *customer, *amount, self.id)?;
                Done::Paid
            }
            Input::Delivery { warehouse, carrier } => {
                Done::Delivered { orders: deliver(wire, *warehouse, *carrier)?, carrier: *carrier }
            }
        };
        if matches!(input, Input::NewOrder { rolls_back: true, .. }) {
            said(wire.simple("ROLLBACK", None))?;
            return Ok(Done::RolledBack);
        }
        said(wire.simple("COMMIT", None))?;
        Ok(done)
    }
}

pub fn prepare(wire: &mut Wire) -> Result<()> {
    for (name, sql) in STATEMENTS {
        let answer = wire.prepare(name, sql)?;
        ensure!(answer.error().is_none(), "{sql}: {:?}", answer.error());
    }
    Ok(())
}

fn new_order(wire: &mut Wire, w: u32, d: u32, customer: u32, items: &[u32]) -> Result<Order, Failure> {
    let number: u32 = value(&run(wire, "number", &[&w, &d])?)?;
    run(wire, "order", &[&w, &d, &number, &customer, &items.len()])?;
    run(wire, "new order", &[&w, &d, &number])?;
    for (line, item) in (1..).zip(items) {
        let quantity = 1 + item % 10;
        run(wire, "stock", &[&w, item, &quantity])?;
        run(wire, "line", &[&w, &d, &number, &line, item, &quantity, &(quantity * 3)])?;
    }
    Ok((w, d, number))
}

fn pay(wire: &mut Wire, (w, d): (u32, u32), of: (u32, u32, u32), amount: u32, by: usize) -> Result<(), Failure> {
    run(wire, "pay warehouse", &[&amount, &w])?;
    run(wire, "pay district", &[&amount, &w, &d])?;
    run(wire, "pay customer", &[&amount, &of.0, &of.1, &of.2])?;
    run(wire, "history", &[&of.0, &of.1, &of.2, &w, &d, &amount, &by])?;
    Ok(())
}

fn deliver(wire: &mut Wire, w: u32, carrier: u32) -> Result<Vec<Order>, Failure> {
    let mut delivered = Vec::new();
    for d in 1..=DISTRICTS {
        let oldest = run(wire, "oldest", &[&w, &d])?;
        if oldest.rows.is_empty() {
            continue;
        }
        let number: u32 = value(&oldest)?;
        run(wire, "not new", &[&w, &d, &number])?;
        let customer: u32 = value(&run(wire, "carrier", &[&w, &d, &number, &carrier])?)?;
        run(wire, "delivered", &[&w, &d, &number])?;
        let amount: String = value(&run(wire, "amount", &[&w, &d, &number])?)?;
        run(wire, "deliver", &[&w, &d, &customer, &amount])?;
        delivered.push((w, d, number));
    }
    Ok(delivered)
}

fn run(wire: &mut Wire, name: &str, values: &[&dyn Display]) -> Result<Reply, Failure> {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    let reply = said(wire.execute(name, &values))?;
    // Changes are of rows that are there; whatever else there is, a delivery asks for itself.
    let changed = reply.tag.as_deref().and_then(|tag| tag.rsplit(' ').next());
    if changed == Some("0") && name != "oldest" {
        return Err(Failure::Said(format!("{name} {values:?} found no row")));
    }
    Ok(reply)
}

fn said(answer: Result<basalt_it::wire::Answer>) -> Result<Reply, Failure> {
    let mut answer = answer.map_err(|_| Failure::Broken)?;
    match answer.error() {
        Some(error) if matches!(error.sqlstate(), "40001" | "40P01") => Err(Failure::Conflict),
        Some(error) => Err(Failure::Said(format!("{} {}", error.sqlstate(), error.message()))),
        None => answer.replies.pop().ok_or_else(|| Failure::Said("no reply".into())),
    }
}

fn value<T: std::str::FromStr>(reply: &Reply) -> Result<T, Failure> {
    let text = reply.text(0, 0).ok_or_else(|| Failure::Said("no value".into()))?;
    text.parse().map_err(|_| Failure::Said(format!("{text} is no value of its type")))
}
