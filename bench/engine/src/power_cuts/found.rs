//! What is in the tables, and whether it is whole: consistency conditions 5 to 10 and 12 (clause 3.3.2), stock against
//! the lines that took of it, and every index against its table. Conditions 1 to 4 are in check.rs.

use crate::session::{Open, Session, all};
use crate::tables::{Mode, Table};
use anyhow::{Context as _, Result, bail};
use basalt_engine::{Direction, Engine};
use basalt_types::Datum;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::Arc;

/// Warehouse, district, number.
type Key = [i32; 3];

#[derive(Default)]
pub struct Order {
    pub customer: i32,
    pub carrier: Option<i32>,
    /// As the order has it.
    lines_count: i64,
    /// Item, supplier and quantity by line.
    pub lines: BTreeMap<i32, [i32; 3]>,
    lines_delivered: i64,
    cents: i64,
}

/// Of a customer's row.
struct Customer {
    last_name: Datum,
    /// Balance, payments, their count, the count of deliveries.
    sums: [i64; 4],
}

#[derive(Default)]
pub struct Found {
    pub orders: BTreeMap<Key, Order>,
    /// Customer, where it was paid, cents.
    pub payments: Vec<(Key, [i32; 2], i64)>,
    customers: BTreeMap<Key, Customer>,
    open: BTreeMap<Key, i64>,
    /// Year-to-date sums of warehouses and districts.
    paid: [BTreeMap<Vec<i32>, i64>; 2],
    /// Quantity, lines, lines of other warehouses' orders, by supplier and item.
    stock: BTreeMap<[i32; 2], [i64; 3]>,
}

struct Reader<'a> {
    engine: &'a Arc<Engine>,
    tables: &'a HashMap<&'static str, Arc<Table>>,
}

impl Reader<'_> {
    /// Columns, which ascend, of all rows of a table.
    fn rows<const N: usize>(&self, name: &str, columns: [&str; N]) -> Result<Vec<[Datum; N]>> {
        let table = &self.tables[name];
        let mut rows = Vec::new();
        all(self.engine, table, &table.columns(columns), |row| rows.push(std::array::from_fn(|at| row[at].clone())))?;
        Ok(rows)
    }

    fn numbers<const N: usize>(&self, name: &str, columns: [&str; N]) -> Result<Vec<[i64; N]>> {
        self.rows(name, columns)?.iter().map(|row| numbers(row.each_ref())).collect()
    }
}

fn number(value: &Datum) -> Result<i64> {
    match value {
        Datum::I32(value) => Ok(i64::from(*value)),
        Datum::I64(value) => Ok(*value),
        other => bail!("{other:?} is no number"),
    }
}

fn numbers<const N: usize>(values: [&Datum; N]) -> Result<[i64; N]> {
    let mut found = [0; N];
    for (found, value) in found.iter_mut().zip(values) {
        *found = number(value)?;
    }
    Ok(found)
}

/// A key of a row whose columns are the other way round.
fn key<const N: usize>(mut columns: [i64; N]) -> [i32; N] {
    columns.reverse();
    columns.map(|column| column as i32)
}

impl Found {
    pub fn read(engine: &Arc<Engine>, tables: &HashMap<&'static str, Arc<Table>>) -> Result<Found> {
        let reader = Reader { engine, tables };
        let mut found = Found::default();
        found.read_orders(&reader)?;
        found.read_customers(&reader)?;
        for [warehouse, ytd] in reader.numbers("warehouse", ["w_id", "w_ytd"])? {
            found.paid[0].insert(vec![warehouse as i32], ytd);
        }
        for [district, warehouse, ytd] in reader.numbers("district", ["d_id", "d_w_id", "d_ytd"])? {
            found.paid[1].insert(key([district, warehouse]).to_vec(), ytd);
        }
        let columns = ["s_i_id", "s_w_id", "s_ytd", "s_order_cnt", "s_remote_cnt"];
        for [item, warehouse, sums @ ..] in reader.numbers("stock", columns)? {
            found.stock.insert(key([item, warehouse]), sums);
        }
        Ok(found)
    }

    fn read_orders(&mut self, reader: &Reader<'_>) -> Result<()> {
        let columns = ["o_id", "o_d_id", "o_w_id", "o_c_id", "o_carrier_id", "o_ol_cnt"];
        for [id, district, warehouse, customer, carrier, lines] in reader.rows("orders", columns)? {
            let [id, district, warehouse, customer, lines_count] =
                numbers([&id, &district, &warehouse, &customer, &lines])?;
            let carrier = if carrier.is_null() { None } else { Some(number(&carrier)? as i32) };
            let order = Order { customer: customer as i32, carrier, lines_count, ..Order::default() };
            let twice = self.orders.insert(key([id, district, warehouse]), order);
            anyhow::ensure!(twice.is_none(), "order {id} of {district} of {warehouse} is there twice");
        }
        let columns = [
            "ol_o_id",
            "ol_d_id",
            "ol_w_id",
            "ol_number",
            "ol_i_id",
            "ol_supply_w_id",
            "ol_delivery_d",
            "ol_quantity",
            "ol_amount",
        ];
        for [id, district, warehouse, line, item, supplier, delivered, quantity, cents] in
            reader.rows("order_line", columns)?
        {
            // Lines of no order make one of no lines.
            let order = self.orders.entry(key(numbers([&id, &district, &warehouse])?)).or_default();
            order.cents += number(&cents)?;
            order.lines_delivered += i64::from(!delivered.is_null());
            let values = numbers([&item, &supplier, &quantity])?.map(|value| value as i32);
            let twice = order.lines.insert(number(&line)? as i32, values);
            anyhow::ensure!(twice.is_none(), "line {line:?} of {id:?} of {district:?} is there twice");
        }
        for columns in reader.numbers("new_order", ["no_o_id", "no_d_id", "no_w_id"])? {
            *self.open.entry(key(columns)).or_default() += 1;
        }
        Ok(())
    }

    fn read_customers(&mut self, reader: &Reader<'_>) -> Result<()> {
        let columns =
            ["c_id", "c_d_id", "c_w_id", "c_last", "c_balance", "c_ytd_payment", "c_payment_cnt", "c_delivery_cnt"];
        for [id, district, warehouse, last_name, balance, paid, payments, deliveries] in
            reader.rows("customer", columns)?
        {
            let sums = numbers([&balance, &paid, &payments, &deliveries])?;
            self.customers.insert(key(numbers([&id, &district, &warehouse])?), Customer { last_name, sums });
        }
        let columns = ["h_c_id", "h_c_d_id", "h_c_w_id", "h_d_id", "h_w_id", "h_amount"];
        for [customer, of_district, of_warehouse, district, warehouse, cents] in reader.numbers("history", columns)? {
            let customer = key([customer, of_district, of_warehouse]);
            self.payments.push((customer, key([district, warehouse]), cents));
        }
        Ok(())
    }

    /// What breaks each condition.
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let orders = |of: fn(&Order) -> i64| self.orders.iter().map(|(key, order)| (*key, of(order))).collect();
        compare("5", &orders(|order| i64::from(order.carrier.is_none())), self.open.clone(), &mut broken);
        compare("6", &orders(|order| order.lines_count), orders(|order| order.lines.len() as i64), &mut broken);
        let to_deliver = orders(|order| if order.carrier.is_some() { order.lines_count } else { 0 });
        compare("7", &to_deliver, orders(|order| order.lines_delivered), &mut broken);

        let mut paid: [BTreeMap<Vec<i32>, i64>; 2] = Default::default();
        let mut customers: BTreeMap<Key, [i64; 4]> = BTreeMap::new();
        for (customer, district, cents) in &self.payments {
            *paid[0].entry(district[..1].to_vec()).or_default() += cents;
            *paid[1].entry(district.to_vec()).or_default() += cents;
            add(customers.entry(*customer).or_default(), [-cents, *cents, 1, 0]);
        }
        let [of_warehouses, of_districts] = paid;
        compare("8", &self.paid[0], of_warehouses, &mut broken);
        compare("9", &self.paid[1], of_districts, &mut broken);

        let mut stock: BTreeMap<[i32; 2], [i64; 3]> = BTreeMap::new();
        for ([warehouse, district, _], order) in &self.orders {
            if order.carrier.is_some() {
                add(customers.entry([*warehouse, *district, order.customer]).or_default(), [order.cents, 0, 0, 1]);
            }
            for [item, supplier, quantity] in order.lines.values() {
                let sums = [i64::from(*quantity), 1, i64::from(supplier != warehouse)];
                add(stock.entry([*supplier, *item]).or_default(), sums);
            }
        }
        let said = self.customers.iter().map(|(key, customer)| (*key, customer.sums)).collect();
        compare("10 and 12", &said, customers, &mut broken);
        compare("stock", &self.stock, stock, &mut broken);
        broken
    }

    /// Where the primary key or an index leads elsewhere than a scan of the table.
    pub fn misled(
        &self,
        engine: &Arc<Engine>,
        tables: &HashMap<&'static str, Arc<Table>>,
        mode: Mode,
    ) -> Result<Vec<String>> {
        let open = Session::new(engine, tables, mode, true).begin();
        let mut misled = Vec::new();
        let (mut of_customers, mut by_customer) = (BTreeMap::new(), BTreeMap::new());
        let (mut of_names, mut by_name) = (BTreeMap::new(), BTreeMap::new());
        for (key, order) in &self.orders {
            let carrier = open.get(&tables["orders"], key, &tables["orders"].columns(["o_carrier_id"]))?;
            if carrier != Some(vec![order.carrier.map_or(Datum::Null, Datum::I32)]) {
                misled.push(format!("orders_pkey: {key:?} has carrier {carrier:?} and not {:?}", order.carrier));
            }
            of_customers.entry([key[0], key[1], order.customer]).or_insert_with(Vec::new).push(key[2]);
        }
        for (key, Customer { last_name, .. }) in &self.customers {
            let [warehouse, district, customer] = key.map(Datum::I32);
            let values = [warehouse.clone(), district.clone(), customer];
            by_customer.insert(*key, through(&open, &tables["orders"], "orders_by_customer", &values, "o_id")?);
            let Datum::Bytes(name) = last_name else { bail!("customer {key:?} has name {last_name:?}") };
            let values = [warehouse, district, last_name.clone()];
            let (at, index) = ((key[0], key[1], name.clone()), "customer_by_name");
            by_name.insert(at.clone(), through(&open, &tables["customer"], index, &values, "c_id")?);
            of_names.entry(at).or_insert_with(Vec::new).push(key[2]);
        }
        compare("orders_by_customer", &by_customer, of_customers, &mut misled);
        compare("customer_by_name", &by_name, of_names, &mut misled);
        open.rollback();
        Ok(misled)
    }
}

/// Numbers of rows that an index has under these values, in their own order.
fn through(open: &Open<'_>, table: &Table, index: &str, values: &[Datum], id: &str) -> Result<Vec<i32>> {
    let places = open.by_index(table.index(index), values, Direction::Ascending, usize::MAX)?;
    let mut ids = Vec::new();
    for place in &places {
        let cells =
            open.cells_of(table, place, &table.columns([id])).with_context(|| format!("{index}: {values:?}"))?;
        ids.push(number(&cells[0])? as i32);
    }
    ids.sort();
    Ok(ids)
}

fn add<const N: usize>(sums: &mut [i64; N], more: [i64; N]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

/// What is said for each key against what it comes to; what is not there is nothing.
fn compare<K, V>(condition: &str, said: &BTreeMap<K, V>, mut sums: BTreeMap<K, V>, broken: &mut Vec<String>)
where
    K: Ord + Debug,
    V: Default + PartialEq + Debug,
{
    for (key, said) in said {
        let sum = sums.remove(key).unwrap_or_default();
        if *said != sum {
            broken.push(format!("{condition}: {key:?} says {said:?}, and it is {sum:?}"));
        }
    }
    broken.extend(sums.iter().map(|(key, sum)| format!("{condition}: {key:?} is nowhere, and it is {sum:?}")));
}
