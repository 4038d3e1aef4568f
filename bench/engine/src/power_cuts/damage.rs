//! What is damaged or lost is noticed, by each condition for itself.

use super::found::Found;
use super::ledger::{Entry, Ledger, entries};
use super::{Controls, Share, Tables, Trial, config, look, open, population, runtime};
use crate::session::Session;
use crate::tables::Mode;
use basalt_engine::{Engine, TableLock};
use basalt_sim::Machine;
use basalt_types::Datum;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// So many that some orders of the population are delivered, and far from all.
const TRANSACTIONS: usize = 100;
/// An order of the population that is not delivered by then, as neither is the next.
const OPEN_ORDER: i32 = population::CUSTOMERS - 1;

enum Damage {
    Add(&'static str, i64),
    Clear(&'static str),
    Delete,
}

/// A row by its key, and the conditions that its damage breaks.
const DAMAGE: &[(&str, &[i32], Damage, &[&str])] = &[
    ("warehouse", &[1], Damage::Add("w_ytd", -1), &["1", "8"]),
    ("district", &[1, 1], Damage::Add("d_ytd", 1), &["1", "9"]),
    ("district", &[1, 1], Damage::Add("d_next_o_id", 1), &["2"]),
    ("new_order", &[1, 1, OPEN_ORDER], Damage::Delete, &["3", "5"]),
    ("order_line", &[1, 1, OPEN_ORDER, 1], Damage::Delete, &["4", "6", "stock"]),
    ("order_line", &[1, 1, 1, 1], Damage::Clear("ol_delivery_d"), &["7"]),
    ("orders", &[1, 1, 1], Damage::Clear("o_carrier_id"), &["5", "7", "10 and 12"]),
    ("customer", &[1, 1, 1], Damage::Add("c_balance", 1), &["10 and 12"]),
    ("stock", &[1, 1], Damage::Add("s_ytd", 1), &["stock"]),
];

impl Damage {
    fn inflict(&self, engine: &Arc<Engine>, tables: &Tables, table: &str, key: &[i32]) {
        let table = &tables[table];
        let mut session = Session::new(engine, tables, Mode::InPlace, true);
        let done = runtime().block_on(async {
            let mut open = session.begin();
            open.statement(table, TableLock::RowExclusive).await?;
            let row = open.lock(table, key).await?;
            match self {
                Damage::Delete => open.delete(table, &row).await?,
                Damage::Clear(name) => {
                    open.update(table, row, |row| row[table.column(name).position()] = Datum::Null).await?;
                }
                Damage::Add(name, more) => {
                    let change = |row: &mut [Datum]| match &mut row[table.column(name).position()] {
                        Datum::I32(value) => *value += *more as i32,
                        Datum::I64(value) => *value += more,
                        other => panic!("{name} is {other:?}"),
                    };
                    open.update(table, row, change).await?;
                }
            }
            session.commit(open).await
        });
        done.unwrap_or_else(|error| panic!("{} {key:?}: {error:#}", table.def.name));
    }
}

/// A database after some transactions, with what they were.
fn worked() -> Trial {
    let mut trial = Trial::begin(1, Mode::InPlace, Controls::default()).expect("no fault is planned");
    let engine = open(&trial.machine, config()).expect("no fault is planned");
    let stop = AtomicBool::new(false);
    let share =
        Share { engine: &engine, machine: &trial.machine, tables: &trial.tables, mode: trial.mode, stop: &stop };
    let mut terminal = share.terminal(true);
    for _ in 0..TRANSACTIONS {
        let input = population::within(trial.inputs[0].draw().1);
        let end = runtime().block_on(terminal.attempt(&input)).expect("nobody else is there");
        entries(&input, &end).into_iter().for_each(|entry| trial.ledger.enter(entry));
    }
    engine.shutdown().expect("no fault is planned");
    trial
}

fn reopened(trial: &Trial) -> Arc<Engine> {
    open(&Machine::with_disk(trial.machine.fs.copy(), 1), config()).expect("no fault is planned")
}

#[test]
fn each_condition_notices_damage() {
    let trial = worked();
    let (found, wrong) = look(&reopened(&trial), &trial.tables, trial.mode).expect("readable");
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(trial.ledger.clone().settle(&Ledger::of(&found), Vec::new()), (0, Vec::new()));
    for (table, key, damage, conditions) in DAMAGE {
        let engine = reopened(&trial);
        damage.inflict(&engine, &trial.tables, table, key);
        let (_, wrong) = look(&engine, &trial.tables, trial.mode).expect("readable");
        let broken: BTreeSet<&str> = wrong.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(broken, conditions.iter().copied().collect(), "{table} {key:?}: {wrong:?}");
    }
}

#[test]
fn what_an_index_does_not_lead_to_is_noticed() {
    let trial = worked();
    let engine = reopened(&trial);
    let misled = |change: fn(&mut Found)| {
        let mut found = Found::read(&engine, &trial.tables).expect("readable");
        change(&mut found);
        found.misled(&engine, &trial.tables, trial.mode).expect("readable").join("; ")
    };
    assert_eq!(misled(|_| {}), "");
    let other_customer = misled(|found| found.orders.get_mut(&[1, 1, 1]).expect("populated").customer += 1);
    assert!(other_customer.contains("orders_by_customer: [1, 1, 1]"), "{other_customer}");
    let no_carrier = misled(|found| found.orders.get_mut(&[1, 1, 1]).expect("populated").carrier = None);
    assert!(no_carrier.contains("orders_pkey: [1, 1, 1]"), "{no_carrier}");
}

#[test]
fn what_is_lost_torn_or_never_asked_for_is_noticed() {
    let delivery = |number: i32| Entry::Delivery { order: [1, number, 7], carrier: 3 };
    let ledger = |numbers: &[i32]| {
        let mut ledger = Ledger::default();
        numbers.iter().for_each(|number| ledger.enter(delivery(*number)));
        ledger
    };
    let check = |acknowledged: &[i32], found: &[i32], under_way: &[i32]| {
        let under_way = vec![under_way.iter().copied().map(delivery).collect()];
        let (survived, wrong) = ledger(acknowledged).settle(&ledger(found), under_way);
        (survived, wrong.iter().filter_map(|line| line.split(':').next()).collect::<Vec<_>>().join(", "))
    };
    assert_eq!(check(&[1], &[1], &[2, 3]), (0, String::new()));
    assert_eq!(check(&[1], &[1, 2, 3], &[2, 3]), (1, String::new()));
    assert_eq!(check(&[1, 4], &[1], &[2, 3]), (0, "lost".to_string()));
    assert_eq!(check(&[1, 1], &[1], &[2, 3]), (0, "lost".to_string()));
    assert_eq!(check(&[1], &[1, 2], &[2, 3]), (0, "torn or never asked for".to_string()));
    assert_eq!(check(&[1], &[1, 2, 3, 4], &[2, 3]), (1, "torn or never asked for".to_string()));
}
