//! What terminals send (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1, 2.8.1, 5.2.3).

use super::tables::{CUSTOMER, CUSTOMERS, DISTRICTS, ITEM, ITEMS, LAST_NAME_RUN, last_name};
use crate::random::Random;

/// Of transactions, as [`Inputs::draw`] numbers them.
pub const KINDS: &[&str] = &["new_order", "payment", "order_status", "delivery", "stock_level"];

#[derive(Clone, Copy)]
pub struct Line {
    pub item: i32,
    pub supplier: i32,
    pub quantity: i32,
}

pub enum Who {
    Id(i32),
    Name(String),
}

pub struct NewOrder {
    pub warehouse: i32,
    pub district: i32,
    pub customer: i32,
    pub lines: Vec<Line>,
}

pub struct Payment {
    pub warehouse: i32,
    pub district: i32,
    pub customer_warehouse: i32,
    pub customer_district: i32,
    pub who: Who,
    pub cents: i64,
}

pub enum Input {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus { warehouse: i32, district: i32, who: Who },
    Delivery { warehouse: i32, carrier: i32 },
    StockLevel { warehouse: i32, district: i32, threshold: i32 },
}

/// Draws what one terminal sends.
pub struct Inputs {
    random: Random,
    warehouses: i32,
    /// Of this terminal (clause 2.8.1.1: the district is Stock-Level's).
    warehouse: i32,
    district: i32,
}

impl Payment {
    /// Clause 2.5.2.2: the payment goes before what is known of a customer of bad credit, of which 500 letters are kept.
    pub fn noted(&self, customer: i32, data: &str) -> String {
        let mut kept = format!(
            "{customer} {} {} {} {} {}.{:02} {data}",
            self.customer_district,
            self.customer_warehouse,
            self.district,
            self.warehouse,
            self.cents / 100,
            self.cents % 100
        );
        kept.truncate(500);
        kept
    }
}

/// Of n customers of one name, that at n / 2, rounded up.
pub fn middle<T>(customers: &[T]) -> Option<&T> {
    customers.get(customers.len().div_ceil(2).checked_sub(1)?)
}

impl Inputs {
    pub fn new(client: usize, warehouses: i32, seed: u64) -> Inputs {
        let client = client as i32;
        Inputs {
            random: Random::of(&[seed, client as u64]),
            warehouses,
            warehouse: client % warehouses + 1,
            district: client / warehouses % DISTRICTS as i32 + 1,
        }
    }

    /// The next transaction, and its place in [`KINDS`].
    pub fn draw(&mut self) -> (usize, Input) {
        match self.random.below(100) {
            0..45 => (0, Input::NewOrder(self.new_order())),
            45..88 => (1, Input::Payment(self.payment())),
            88..92 => {
                let district = self.any_district();
                (2, Input::OrderStatus { warehouse: self.warehouse, district, who: self.who() })
            }
            92..96 => (3, Input::Delivery { warehouse: self.warehouse, carrier: self.random.between(1, 10) as i32 }),
            _ => {
                let threshold = self.random.between(10, 20) as i32;
                (4, Input::StockLevel { warehouse: self.warehouse, district: self.district, threshold })
            }
        }
    }

    fn any_district(&mut self) -> i32 {
        self.random.between(1, DISTRICTS) as i32
    }

    fn any_customer(&mut self) -> i32 {
        self.random.skewed(1023, CUSTOMER, 1, CUSTOMERS) as i32
    }

    /// 60 of 100 are asked for by last name.
    fn who(&mut self) -> Who {
        if self.random.percent(60) {
            Who::Name(last_name(self.random.skewed(255, LAST_NAME_RUN, 0, 999)))
        } else {
            Who::Id(self.any_customer())
        }
    }

    fn other_warehouse(&mut self) -> i32 {
        let drawn = self.random.between(1, i64::from(self.warehouses) - 1) as i32;
        if drawn < self.warehouse { drawn } else { drawn + 1 }
    }

    fn new_order(&mut self) -> NewOrder {
        let (district, customer) = (self.any_district(), self.any_customer());
        let count = self.random.between(5, 15);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| {
                let remote = self.warehouses > 1 && self.random.percent(1);
                Line {
                    item: self.random.skewed(8191, ITEM, 1, ITEMS) as i32,
                    supplier: if remote { self.other_warehouse() } else { self.warehouse },
                    quantity: self.random.between(1, 10) as i32,
                }
            })
            .collect();
        // Terminals that lock stock in one order do not wait for each other in a circle; which line comes first is
        // the terminal's choice.
        lines.sort_by_key(|line| (line.supplier, line.item));
        if self.random.percent(1) {
            lines[count as usize - 1].item = ITEMS as i32 + 1;
        }
        NewOrder { warehouse: self.warehouse, district, customer, lines }
    }

    fn payment(&mut self) -> Payment {
        let district = self.any_district();
        let remote = self.warehouses > 1 && self.random.percent(15);
        let (customer_warehouse, customer_district) =
            if remote { (self.other_warehouse(), self.any_district()) } else { (self.warehouse, district) };
        Payment {
            warehouse: self.warehouse,
            district,
            customer_warehouse,
            customer_district,
            who: self.who(),
            cents: self.random.between(100, 500_000),
        }
    }
}
