//! A terminal: sends what it draws, statement by statement, or together what waits for no answer.

use super::input::{Input, Inputs, KINDS};
use super::{pipelined, transactions};
use crate::terminals::Script;
use crate::wire::Connection;
use anyhow::Result;
use std::sync::atomic::AtomicU64;

pub struct Terminal<'a> {
    inputs: Inputs,
    input: Input,
    pipelined: bool,
    /// New-Orders that name an unused item.
    rolled_back: &'a AtomicU64,
}

impl Terminal<'_> {
    pub fn new(inputs: Inputs, pipelined: bool, rolled_back: &AtomicU64) -> Terminal<'_> {
        Terminal { inputs, input: Input::Delivery { warehouse: 1, carrier: 1 }, pipelined, rolled_back }
    }
}

impl Script for Terminal<'_> {
    const KINDS: &'static [&'static str] = KINDS;

    fn draw(&mut self) -> usize {
        let (kind, input) = self.inputs.draw();
        self.input = input;
        kind
    }

    async fn attempt(&mut self, connection: &mut Connection) -> Result<()> {
        if self.pipelined {
            return pipelined::run(connection, &self.input, self.rolled_back).await;
        }
        match &self.input {
            Input::NewOrder(order) => transactions::new_order(connection, order, self.rolled_back).await,
            Input::Payment(payment) => transactions::payment(connection, payment).await,
            Input::OrderStatus { warehouse, district, who } => {
                transactions::order_status(connection, *warehouse, *district, who).await
            }
            Input::Delivery { warehouse, carrier } => transactions::delivery(connection, *warehouse, *carrier).await,
            Input::StockLevel { warehouse, district, threshold } => {
                transactions::stock_level(connection, *warehouse, *district, *threshold).await
            }
        }
    }
}
