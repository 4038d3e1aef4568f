//! TPC-C across kills: terminals order, pay and deliver while the server is killed at random moments, eight times, or a
//! hundred times with BASALT_TORTURE=1.
//!
//! After each start the specification's consistency conditions must hold, and all that was acknowledged must be there:
//! every order with its lines, every payment, every delivery, and of what was under way all or nothing.

mod tables;
mod terminal;

use crate::torture::{kills_and_seed, options, until_killed};
use anyhow::{Context, Result, bail, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::{Reply, Wire};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use tables::{broken, populate};
use terminal::{Done, Failure, Input, Order, Terminal, prepare};

const TERMINALS: usize = 6;

#[derive(Clone, Copy, Default)]
struct Known {
    /// Unknown of an order whose delivery was acknowledged and not the order itself.
    lines: Option<usize>,
    carrier: Option<u32>,
}

/// What is known to be in the database.
#[derive(Clone, Default)]
struct Ledger {
    orders: BTreeMap<Order, Known>,
    /// By terminal.
    payments: BTreeMap<usize, usize>,
}

impl Ledger {
    fn read(wire: &mut Wire) -> Result<Ledger> {
        let orders = wire.run("SELECT o_w_id, o_d_id, o_id, o_ol_cnt, o_carrier_id FROM orders")?;
        let payments = wire.run("SELECT h_data, count(*) FROM history WHERE h_data <> 'loaded' GROUP BY h_data")?;
        let mut ledger = Ledger::default();
        for row in 0..orders.rows.len() {
            let key = (number(&orders, row, 0)?, number(&orders, row, 1)?, number(&orders, row, 2)?);
            let carrier = orders.text(row, 4).map(str::parse).transpose()?;
            let earlier = ledger.orders.insert(key, Known { lines: Some(number(&orders, row, 3)?), carrier });
            ensure!(earlier.is_none(), "order {key:?} is there twice");
        }
        for row in 0..payments.rows.len() {
            ledger.payments.insert(number(&payments, row, 0)?, number(&payments, row, 1)?);
        }
        Ok(ledger)
    }

    fn enter(&mut self, terminal: usize, done: &Done) -> Result<()> {
        match done {
            Done::RolledBack => {}
            Done::Ordered { order, lines } => {
                let earlier = self.orders.entry(*order).or_default().lines.replace(*lines);
                ensure!(earlier.is_none(), "order {order:?} was given out twice");
            }
            Done::Paid => *self.payments.entry(terminal).or_default() += 1,
            Done::Delivered { orders, carrier } => {
                for order in orders {
                    let earlier = self.orders.entry(*order).or_default().carrier.replace(*carrier);
                    ensure!(earlier.is_none(), "order {order:?} was delivered twice");
                }
            }
        }
        Ok(())
    }

    /// Whether `found` is this, with or without what each terminal had under way.
    fn agrees_with(&self, found: &Ledger, under_way: &[Input]) -> Result<()> {
        for (order, Known { lines, carrier }) in &self.orders {
            let Some(there) = found.orders.get(order) else { bail!("order {order:?} is lost") };
            ensure!(
                lines.is_none() || there.lines == *lines,
                "order {order:?}: {lines:?} lines became {:?}",
                there.lines
            );
            let delivering = carrier.is_none() && under_way.iter().any(|input| delivers(input, *order, there.carrier));
            ensure!(there.carrier == *carrier || delivering, "order {order:?}: {carrier:?} became {:?}", there.carrier);
        }
        let mut ordering: Vec<_> = under_way.iter().collect();
        for (order, there) in found.orders.iter().filter(|(order, _)| !self.orders.contains_key(order)) {
            let place = ordering.iter().position(|input| orders(input, *order, there.lines));
            ordering.swap_remove(place.with_context(|| format!("nobody asked for order {order:?}"))?);
        }
        for (terminal, input) in under_way.iter().enumerate() {
            let of = |ledger: &Ledger| ledger.payments.get(&terminal).copied().unwrap_or_default();
            let more =
                of(found).checked_sub(of(self)).with_context(|| format!("terminal {terminal}: payments are lost"))?;
            let paying = usize::from(matches!(input, Input::Payment { .. }));
            ensure!(more <= paying, "terminal {terminal}: {more} payments that it has not made");
        }
        Ok(())
    }
}

fn number<T: std::str::FromStr>(reply: &Reply, row: usize, column: usize) -> Result<T> {
    let text = reply.text(row, column).context("null")?;
    text.parse().ok().with_context(|| format!("{text} is no number"))
}

fn orders(input: &Input, (w, d, _): Order, lines: Option<usize>) -> bool {
    matches!(input, Input::NewOrder { warehouse, district, items, rolls_back: false, .. }
        if (*warehouse, *district, Some(items.len())) == (w, d, lines))
}

fn delivers(input: &Input, (w, ..): Order, by: Option<u32>) -> bool {
    matches!(input, Input::Delivery { warehouse, carrier } if (*warehouse, Some(*carrier)) == (w, by))
}

#[test]
fn conditions_hold_across_kills_and_nothing_acknowledged_is_lost() -> Result<()> {
    let (kills, seed) = kills_and_seed(8, 100);
    let mut server = Basalt::start_with(options())?;
    let mut wire = server.connect()?;
    populate(&mut wire)?;
    let mut ledger = Ledger::read(&mut wire)?;
    let mut terminals: Vec<Terminal> = (0..TERMINALS).map(|id| Terminal::new(id, seed)).collect();
    let mut random = StdRng::seed_from_u64(seed);
    let mut acknowledged = 0;
    for kill in 0..kills {
        acknowledged += one_kill(&mut server, &mut terminals, &mut ledger, random.random_range(100..2000))
            .with_context(|| format!("seed {seed}, kill {kill}; the server's log ends:\n{}", server.log_tail()))?;
    }
    println!("{kills} kills, {acknowledged} acknowledged transactions, {} orders", ledger.orders.len());
    Ok(())
}

/// How many transactions were acknowledged.
fn one_kill(server: &mut Basalt, terminals: &mut [Terminal], ledger: &mut Ledger, after_ms: u64) -> Result<usize> {
    let mut work = Vec::new();
    for terminal in terminals {
        let mut wire = server.connect()?;
        prepare(&mut wire)?;
        work.push(move || terminal.work(wire));
    }
    let told = until_killed(server, work, after_ms, "order_line")?;
    for (terminal, told) in told.iter().enumerate() {
        told.done.iter().try_for_each(|done| ledger.enter(terminal, done))?;
    }
    let mut wire = server.connect()?;
    let conditions = broken(&mut wire)?;
    ensure!(conditions.is_empty(), "conditions {conditions:?} are broken");
    let found = Ledger::read(&mut wire)?;
    let under_way: Vec<Input> = told.iter().map(|told| told.under_way.clone()).collect();
    ledger.agrees_with(&found, &under_way).with_context(|| format!("under way: {under_way:?}"))?;
    *ledger = found;
    Ok(told.iter().map(|told| told.done.len()).sum())
}

/// Damage, and the conditions that it breaks.
const DAMAGE: &[(&str, &[u32])] = &[
    ("UPDATE warehouse SET w_ytd = w_ytd - 1 WHERE w_id = 1", &[1, 8]),
    ("UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 1", &[1, 9]),
    ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 1", &[2]),
    (
        "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1
         AND no_o_id = (SELECT min(no_o_id) + 1 FROM new_order WHERE no_w_id = 1 AND no_d_id = 1)",
        &[3, 5],
    ),
    ("DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1", &[4, 6]),
    ("UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1", &[5, 7]),
    ("UPDATE customer SET c_balance = c_balance + 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1", &[12]),
    ("DELETE FROM history WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 1 AND h_data = 'loaded'", &[8, 9]),
];

/// Takes an order away so that every condition holds.
const UNNOTICED: &str = "
    DELETE FROM orders USING district WHERE d_id = 1 AND (o_w_id, o_d_id, o_id) = (d_w_id, d_id, d_next_o_id - 1);
    DELETE FROM new_order USING district
    WHERE d_id = 1 AND (no_w_id, no_d_id, no_o_id) = (d_w_id, d_id, d_next_o_id - 1);
    DELETE FROM order_line USING district
    WHERE d_id = 1 AND (ol_w_id, ol_d_id, ol_o_id) = (d_w_id, d_id, d_next_o_id - 1);
    UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 1";

#[test]
fn what_breaks_a_condition_or_is_lost_is_noticed() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    populate(&mut wire)?;
    prepare(&mut wire)?;
    let mut ledger = Ledger::read(&mut wire)?;
    let mut terminal = Terminal::new(0, 1);
    for _ in 0..100 {
        let input = terminal.draw();
        match terminal.perform(&mut wire, &input) {
            Ok(done) => ledger.enter(0, &done)?,
            Err(Failure::Said(what)) => bail!("{input:?}: {what}"),
            Err(_) => bail!("{input:?}: a conflict with nobody, or no server"),
        }
    }
    ensure!(broken(&mut wire)?.is_empty(), "conditions {:?} are broken", broken(&mut wire)?);
    ledger.agrees_with(&Ledger::read(&mut wire)?, &[])?;
    for (damage, conditions) in DAMAGE {
        wire.run("BEGIN")?;
        wire.run(damage)?;
        let found = broken(&mut wire)?;
        ensure!(found == *conditions, "{damage}: conditions {found:?} are broken and not {conditions:?}");
        wire.run("ROLLBACK")?;
    }
    wire.run(UNNOTICED)?;
    ensure!(broken(&mut wire)?.is_empty(), "conditions {:?} are broken", broken(&mut wire)?);
    let found = Ledger::read(&mut wire)?;
    ensure!(ledger.agrees_with(&found, &[]).is_err(), "orders are gone, and nobody says so");
    Ok(())
}
