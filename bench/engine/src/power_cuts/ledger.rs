//! What was acknowledged, against what is found.

use super::found::Found;
use crate::transactions::End;
use basalt_bench::tpcc::input::Input;
use std::collections::BTreeMap;

/// A change that stays for good. Keys are those of rows: warehouse, district, number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Entry {
    /// Lines are items, suppliers and quantities.
    Order {
        order: [i32; 3],
        customer: i32,
        lines: Vec<[i32; 3]>,
    },
    Delivery {
        order: [i32; 3],
        carrier: i32,
    },
    Payment {
        customer: [i32; 3],
        district: [i32; 2],
        cents: i64,
    },
}

/// How often each change was made.
#[derive(Clone, Default, Debug)]
pub struct Ledger(BTreeMap<Entry, usize>);

/// What a transaction changes for good.
pub fn entries(input: &Input, end: &End) -> Vec<Entry> {
    match (input, end) {
        (Input::NewOrder(new), End::Ordered(number)) => vec![Entry::Order {
            order: [new.warehouse, new.district, *number],
            customer: new.customer,
            lines: new.lines.iter().map(|line| [line.item, line.supplier, line.quantity]).collect(),
        }],
        (Input::Payment(payment), End::Paid(customer)) => vec![Entry::Payment {
            customer: [payment.customer_warehouse, payment.customer_district, *customer],
            district: [payment.warehouse, payment.district],
            cents: payment.cents,
        }],
        (Input::Delivery { warehouse, carrier }, End::Delivered(orders)) => {
            let taken = (1..).zip(orders).filter_map(|(district, number)| Some([*warehouse, district, (*number)?]));
            taken.map(|order| Entry::Delivery { order, carrier: *carrier }).collect()
        }
        _ => Vec::new(),
    }
}

impl Ledger {
    pub fn of(found: &Found) -> Ledger {
        let mut ledger = Ledger::default();
        for (order, there) in &found.orders {
            let lines = there.lines.values().copied().collect();
            ledger.enter(Entry::Order { order: *order, customer: there.customer, lines });
            if let Some(carrier) = there.carrier {
                ledger.enter(Entry::Delivery { order: *order, carrier });
            }
        }
        for (customer, district, cents) in &found.payments {
            ledger.enter(Entry::Payment { customer: *customer, district: *district, cents: *cents });
        }
        ledger
    }

    pub fn enter(&mut self, entry: Entry) {
        *self.0.entry(entry).or_default() += 1;
    }

    /// Compares what is found with what was entered. Transactions under way whose changes are found, which has to be all
    /// of them, are entered from now on. Gives how many these are, and what is wrong.
    pub fn settle(&mut self, found: &Ledger, under_way: Vec<Vec<Entry>>) -> (usize, Vec<String>) {
        let mut wrong = Vec::new();
        for (entry, count) in &self.0 {
            let there = found.count(entry);
            if there < *count {
                wrong.push(format!("lost: {entry:?}, {count} acknowledged, {there} found"));
            }
        }
        let mut more = found.clone();
        more.0.retain(|entry, count| {
            *count = count.saturating_sub(self.count(entry));
            *count > 0
        });
        let mut survived = 0;
        for entries in under_way {
            if entries.iter().all(|entry| more.0.contains_key(entry)) {
                survived += 1;
                for entry in entries {
                    more.take(&entry);
                    self.enter(entry);
                }
            }
        }
        let unasked = |(entry, count): (&Entry, &usize)| format!("torn or never asked for: {entry:?}, {count} times");
        wrong.extend(more.0.iter().map(unasked));
        (survived, wrong)
    }

    fn count(&self, entry: &Entry) -> usize {
        self.0.get(entry).copied().unwrap_or_default()
    }

    fn take(&mut self, entry: &Entry) {
        if let Some(count) = self.0.get_mut(entry) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(entry);
            }
        }
    }
}
