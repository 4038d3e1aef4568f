//! The five transactions (clauses 2.4.2 to 2.8.2), with the statements of `basalt_bench::tpcc::transactions`.

use crate::session::{Open, Place, Session};
use crate::tables::Table;
use anyhow::{Context as _, Result, bail};
use basalt_bench::tpcc::input::{Input, NewOrder, Payment, Who, middle};
use basalt_bench::tpcc::tables::{DISTRICTS, ITEMS};
use basalt_engine::{CurrentRow, Direction, TableLock};
use basalt_types::{ColumnId, Datum};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const READ: TableLock = TableLock::AccessShare;
const WRITE: TableLock = TableLock::RowExclusive;

/// Tables and the places of the columns that transactions name.
pub struct Terminal<'a> {
    session: Session<'a>,
    warehouse: Arc<Table>,
    district: Arc<Table>,
    customer: Arc<Table>,
    history: Arc<Table>,
    new_order: Arc<Table>,
    orders: Arc<Table>,
    order_line: Arc<Table>,
    item: Arc<Table>,
    stock: Arc<Table>,
}

/// How a transaction ended that did not fail, with what its input does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The order's number.
    Ordered(i32),
    /// The customer's.
    Paid(i32),
    /// Numbers of orders, by district; none where nothing was left to deliver.
    Delivered([Option<i32>; DISTRICTS as usize]),
    /// It had nothing to change.
    Looked,
    /// A New-Order that names an unused item.
    RolledBack,
}

/// Of a transaction whose commit failed: it would have ended so, and may have. Context of the error.
#[derive(Debug)]
pub struct Unanswered(pub End);

impl std::fmt::Display for Unanswered {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the commit of {:?} was not answered", self.0)
    }
}

fn int(value: &Datum) -> Result<i32> {
    match value {
        Datum::I32(value) => Ok(*value),
        other => bail!("{other:?} is no int"),
    }
}

fn big(value: &Datum) -> Result<i64> {
    match value {
        Datum::I64(value) => Ok(*value),
        other => bail!("{other:?} is no numeric"),
    }
}

fn text(value: &Datum) -> Result<&[u8]> {
    match value {
        Datum::Bytes(bytes) => Ok(bytes),
        other => bail!("{other:?} is no text"),
    }
}

/// Of a row that is being changed.
fn add_int(row: &mut [Datum], column: ColumnId, more: i32) {
    if let Datum::I32(value) = &mut row[column.position()] {
        *value += more;
    }
}

fn add(row: &mut [Datum], column: ColumnId, more: i64) {
    if let Datum::I64(value) = &mut row[column.position()] {
        *value += more;
    }
}

fn now() -> Datum {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Datum::I64(since.unwrap_or(Duration::ZERO).as_micros() as i64)
}

impl<'a> Terminal<'a> {
    pub fn new(session: Session<'a>) -> Terminal<'a> {
        let table = |name: &str| session.tables[name].clone();
        Terminal {
            warehouse: table("warehouse"),
            district: table("district"),
            customer: table("customer"),
            history: table("history"),
            new_order: table("new_order"),
            orders: table("orders"),
            order_line: table("order_line"),
            item: table("item"),
            stock: table("stock"),
            session,
        }
    }

    /// One transaction; what fails is rolled back.
    pub async fn attempt(&mut self, input: &Input) -> Result<End> {
        match input {
            Input::NewOrder(order) => self.new_order(order).await,
            Input::Payment(payment) => self.payment(payment).await,
            Input::OrderStatus { warehouse, district, who } => self.order_status(*warehouse, *district, who).await,
            Input::Delivery { warehouse, carrier } => self.delivery(*warehouse, *carrier).await,
            Input::StockLevel { warehouse, district, threshold } => {
                self.stock_level(*warehouse, *district, *threshold).await
            }
        }
    }

    async fn commit(&mut self, open: Open<'_>, end: End) -> Result<End> {
        self.session.commit(open).await.context(Unanswered(end))?;
        Ok(end)
    }

    async fn new_order(&mut self, order: &NewOrder) -> Result<End> {
        let mut open = self.session.begin();
        open.statement(&self.warehouse, READ).await?;
        let tax = self.warehouse.columns(["w_tax"]);
        let warehouse_tax = open.get(&self.warehouse, &[order.warehouse], &tax)?.context("no warehouse")?;

        open.statement(&self.district, WRITE).await?;
        let row = open.lock(&self.district, &[order.warehouse, order.district]).await?;
        let next = self.district.column("d_next_o_id");
        let number = int(&row.values[next.position()])?;
        let district_tax = row.values[self.district.column("d_tax").position()].clone();
        open.update(&self.district, row, |row| add_int(row, next, 1)).await?;

        open.statement(&self.customer, READ).await?;
        let wanted = self.customer.columns(["c_last", "c_credit", "c_discount"]);
        let key = [order.warehouse, order.district, order.customer];
        let customer = open.get(&self.customer, &key, &wanted)?.context("no customer")?;

        let [id, district, warehouse] = [number, order.district, order.warehouse].map(Datum::I32);
        let all_local = order.lines.iter().all(|line| line.supplier == order.warehouse);
        open.statement(&self.orders, WRITE).await?;
        let row = [
            id.clone(),
            district.clone(),
            warehouse.clone(),
            Datum::I32(order.customer),
            now(),
            Datum::Null,
            Datum::I32(order.lines.len() as i32),
            Datum::I32(i32::from(all_local)),
        ];
        open.insert(&self.orders, &row).await?;
        open.statement(&self.new_order, WRITE).await?;
        open.insert(&self.new_order, &[id.clone(), district.clone(), warehouse.clone()]).await?;

        let mut total = 0;
        for (place, line) in (1..).zip(&order.lines) {
            open.statement(&self.item, READ).await?;
            let wanted = self.item.columns(["i_name", "i_price", "i_data"]);
            let Some(item) = open.get(&self.item, &[line.item], &wanted)? else {
                anyhow::ensure!(line.item > ITEMS as i32, "item {} is not there", line.item);
                open.rollback();
                return Ok(End::RolledBack);
            };
            let cents = big(&item[1])? * i64::from(line.quantity);

            open.statement(&self.stock, WRITE).await?;
            let row = open.lock(&self.stock, &[line.supplier, line.item]).await?;
            let [quantity, first_info, ytd, count, remote] =
                self.stock.columns(["s_quantity", "s_dist_01", "s_ytd", "s_order_cnt", "s_remote_cnt"]);
            let info = row.values[first_info.position() + order.district as usize - 1].clone();
            let left = int(&row.values[quantity.position()])? - line.quantity;
            let left = if left >= 10 { left } else { left + 91 };
            let is_remote = i32::from(line.supplier != order.warehouse);
            let change = |row: &mut [Datum]| {
                row[quantity.position()] = Datum::I32(left);
                add_int(row, ytd, line.quantity);
                add_int(row, count, 1);
                add_int(row, remote, is_remote);
            };
            open.update(&self.stock, row, change).await?;

            open.statement(&self.order_line, WRITE).await?;
            let row = [
                id.clone(),
                district.clone(),
                warehouse.clone(),
                Datum::I32(place),
                Datum::I32(line.item),
                Datum::I32(line.supplier),
                Datum::Null,
                Datum::I32(line.quantity),
                Datum::I64(cents),
                info,
            ];
            open.insert(&self.order_line, &row).await?;
            total += cents;
        }
        // What the terminal would show.
        std::hint::black_box((total, warehouse_tax, district_tax, customer));
        self.commit(open, End::Ordered(number)).await
    }

    /// Customers of one name, in the order of their first names.
    fn named(&self, open: &Open<'_>, warehouse: i32, district: i32, last: &str) -> Result<Place> {
        let values = [Datum::I32(warehouse), Datum::I32(district), Datum::text(last)];
        let index = self.customer.index("customer_by_name");
        let found = open.by_index(index, &values, Direction::Ascending, usize::MAX)?;
        middle(&found).cloned().context("no such name")
    }

    async fn lock_customer(&self, open: &mut Open<'_>, payment: &Payment) -> Result<CurrentRow> {
        let (warehouse, district) = (payment.customer_warehouse, payment.customer_district);
        let id = match &payment.who {
            Who::Id(id) => *id,
            Who::Name(last) => {
                let place = self.named(open, warehouse, district, last)?;
                let id = open.cells_of(&self.customer, &place, &self.customer.columns(["c_id"]))?;
                open.statement(&self.customer, WRITE).await?;
                int(&id[0])?
            }
        };
        open.lock(&self.customer, &[warehouse, district, id]).await
    }

    async fn payment(&mut self, payment: &Payment) -> Result<End> {
        let mut open = self.session.begin();
        open.statement(&self.warehouse, WRITE).await?;
        let row = open.lock(&self.warehouse, &[payment.warehouse]).await?;
        let warehouse_name = row.values[self.warehouse.column("w_name").position()].clone();
        let ytd = self.warehouse.column("w_ytd");
        open.update(&self.warehouse, row, |row| add(row, ytd, payment.cents)).await?;

        open.statement(&self.district, WRITE).await?;
        let row = open.lock(&self.district, &[payment.warehouse, payment.district]).await?;
        let district_name = row.values[self.district.column("d_name").position()].clone();
        let ytd = self.district.column("d_ytd");
        open.update(&self.district, row, |row| add(row, ytd, payment.cents)).await?;

        open.statement(&self.customer, WRITE).await?;
        let row = self.lock_customer(&mut open, payment).await?;
        let [id, credit, balance, paid, count, data] =
            self.customer.columns(["c_id", "c_credit", "c_balance", "c_ytd_payment", "c_payment_cnt", "c_data"]);
        let customer = int(&row.values[id.position()])?;
        let noted = match text(&row.values[credit.position()])? {
            b"BC" => Some(payment.noted(customer, str::from_utf8(text(&row.values[data.position()])?)?)),
            _ => None,
        };
        let change = |row: &mut [Datum]| {
            add(row, balance, -payment.cents);
            add(row, paid, payment.cents);
            add_int(row, count, 1);
            if let Some(noted) = noted {
                row[data.position()] = Datum::text(&noted);
            }
        };
        open.update(&self.customer, row, change).await?;

        open.statement(&self.history, WRITE).await?;
        let data = [text(&warehouse_name)?, b"    ", text(&district_name)?].concat();
        let [of_district, of_warehouse] = [payment.customer_district, payment.customer_warehouse].map(Datum::I32);
        let [district, warehouse] = [payment.district, payment.warehouse].map(Datum::I32);
        let row = [
            Datum::I32(customer),
            of_district,
            of_warehouse,
            district,
            warehouse,
            now(),
            Datum::I64(payment.cents),
            Datum::Bytes(data.into()),
        ];
        open.insert(&self.history, &row).await?;
        self.commit(open, End::Paid(customer)).await
    }

    async fn order_status(&mut self, warehouse: i32, district: i32, who: &Who) -> Result<End> {
        let mut open = self.session.begin();
        open.statement(&self.customer, READ).await?;
        let wanted = self.customer.columns(["c_id", "c_first", "c_middle", "c_last", "c_balance"]);
        let customer = match who {
            Who::Id(id) => open.get(&self.customer, &[warehouse, district, *id], &wanted)?.context("no customer")?,
            Who::Name(last) => {
                let place = self.named(&open, warehouse, district, last)?;
                open.cells_of(&self.customer, &place, &wanted)?
            }
        };
        open.statement(&self.orders, READ).await?;
        let values = [Datum::I32(warehouse), Datum::I32(district), customer[0].clone()];
        let index = self.orders.index("orders_by_customer");
        let last = open.by_index(index, &values, Direction::Descending, 1)?;
        let wanted = self.orders.columns(["o_id", "o_entry_d", "o_carrier_id"]);
        let order = open.cells_of(&self.orders, last.first().context("no order")?, &wanted)?;
        open.statement(&self.order_line, READ).await?;
        let wanted =
            self.order_line.columns(["ol_i_id", "ol_supply_w_id", "ol_delivery_d", "ol_quantity", "ol_amount"]);
        let prefix = [warehouse, district, int(&order[0])?];
        let lines = open.range(&self.order_line, &prefix, None, usize::MAX, &wanted)?;
        anyhow::ensure!((5..=15).contains(&lines.len()), "order {order:?} has {} lines", lines.len());
        self.commit(open, End::Looked).await
    }

    async fn delivery(&mut self, warehouse: i32, carrier: i32) -> Result<End> {
        let mut open = self.session.begin();
        let mut delivered = [None; DISTRICTS as usize];
        for (district, taken) in (1..).zip(&mut delivered) {
            // Clause 2.7.4.2: there may be nothing to deliver in this district.
            *taken = self.take_oldest(&mut open, warehouse, district).await?;
            if let Some(order) = *taken {
                self.deliver(&mut open, [warehouse, district, order], carrier).await?;
            }
        }
        self.commit(open, End::Delivered(delivered)).await
    }

    /// Locks and deletes the oldest order of a district that is not delivered.
    async fn take_oldest(&self, open: &mut Open<'_>, warehouse: i32, district: i32) -> Result<Option<i32>> {
        loop {
            open.statement(&self.new_order, WRITE).await?;
            let wanted = self.new_order.columns(["no_o_id"]);
            let oldest = open.range(&self.new_order, &[warehouse, district], None, 1, &wanted)?;
            let Some((place, row)) = oldest.first() else { return Ok(None) };
            if let Some(locked) = open.lock_at(&self.new_order, place).await? {
                open.statement(&self.new_order, WRITE).await?;
                open.delete(&self.new_order, &locked).await?;
                return Ok(Some(int(&row[0])?));
            }
        }
    }

    async fn deliver(&self, open: &mut Open<'_>, key: [i32; 3], carrier: i32) -> Result<()> {
        open.statement(&self.orders, WRITE).await?;
        let row = open.lock(&self.orders, &key).await?;
        let [customer, carried_by] = self.orders.columns(["o_c_id", "o_carrier_id"]);
        let customer = int(&row.values[customer.position()])?;
        open.update(&self.orders, row, |row| row[carried_by.position()] = Datum::I32(carrier)).await?;

        open.statement(&self.order_line, WRITE).await?;
        let [delivered] = self.order_line.columns(["ol_delivery_d"]);
        let lines = open.range(&self.order_line, &key, None, usize::MAX, &[])?;
        anyhow::ensure!((5..=15).contains(&lines.len()), "order {key:?} has {} lines", lines.len());
        let at = now();
        for (place, _) in &lines {
            let row = open.lock_at(&self.order_line, place).await?.context("a line is gone")?;
            open.update(&self.order_line, row, |row| row[delivered.position()] = at.clone()).await?;
        }
        open.statement(&self.order_line, READ).await?;
        let wanted = self.order_line.columns(["ol_amount"]);
        let mut cents = 0;
        for (_, row) in open.range(&self.order_line, &key, None, usize::MAX, &wanted)? {
            cents += big(&row[0])?;
        }

        open.statement(&self.customer, WRITE).await?;
        let row = open.lock(&self.customer, &[key[0], key[1], customer]).await?;
        let [balance, count] = self.customer.columns(["c_balance", "c_delivery_cnt"]);
        let change = |row: &mut [Datum]| {
            add(row, balance, cents);
            add_int(row, count, 1);
        };
        open.update(&self.customer, row, change).await
    }

    async fn stock_level(&mut self, warehouse: i32, district: i32, threshold: i32) -> Result<End> {
        let mut open = self.session.begin();
        open.statement(&self.district, READ).await?;
        let wanted = self.district.columns(["d_next_o_id"]);
        let next = int(&open.get(&self.district, &[warehouse, district], &wanted)?.context("no district")?[0])?;
        open.statement(&self.order_line, READ).await?;
        let wanted = self.order_line.columns(["ol_i_id"]);
        let bounds = Some((next - 20, next));
        let mut items = HashSet::new();
        for (_, line) in open.range(&self.order_line, &[warehouse, district], bounds, usize::MAX, &wanted)? {
            items.insert(int(&line[0])?);
        }
        let wanted = self.stock.columns(["s_quantity"]);
        let mut low = 0;
        for item in items {
            let stock = open.get(&self.stock, &[warehouse, item], &wanted)?.context("no stock")?;
            low += i32::from(int(&stock[0])? < threshold);
        }
        std::hint::black_box(low);
        self.commit(open, End::Looked).await
    }
}
