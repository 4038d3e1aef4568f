//! TPC-C in small: the tables and columns that its transactions and consistency conditions need (clauses 1.3 and
//! 4.3.3), and what breaks a condition (clause 3.3.2).

use anyhow::{Context, Result};
use basalt_it::wire::Wire;

pub const WAREHOUSES: u32 = 2;
/// Of each warehouse.
pub const DISTRICTS: u32 = 3;
/// Of each district.
pub const CUSTOMERS: u32 = 20;
pub const ORDERS: u32 = 20;
/// Of these, the others are new.
const DELIVERED: u32 = 14;
pub const ITEMS: u32 = 100;
const LINES: u32 = 5;

const TABLES: &[&str] = &[
    "warehouse (w_id int PRIMARY KEY, w_ytd numeric(12,2))",
    "district (d_w_id int, d_id int, d_ytd numeric(12,2), d_next_o_id int, PRIMARY KEY (d_w_id, d_id))",
    "customer (c_w_id int, c_d_id int, c_id int, c_balance numeric(12,2), c_ytd_payment numeric(12,2),
     c_payment_cnt int, c_delivery_cnt int, PRIMARY KEY (c_w_id, c_d_id, c_id))",
    "history (h_c_w_id int, h_c_d_id int, h_c_id int, h_w_id int, h_d_id int,
     h_amount numeric(6,2), h_data varchar(24))",
    "new_order (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "orders (o_w_id int, o_d_id int, o_id int, o_c_id int, o_carrier_id int, o_ol_cnt int,
     PRIMARY KEY (o_w_id, o_d_id, o_id))",
    "order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int, ol_delivery_d timestamp,
     ol_quantity int, ol_amount numeric(6,2), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "stock (s_w_id int, s_i_id int, s_quantity int, s_ytd int, s_order_cnt int, PRIMARY KEY (s_w_id, s_i_id))",
];

/// Makes and fills them; those whose rows change one by one lie in row files.
pub fn populate(wire: &mut Wire) -> Result<()> {
    for table in TABLES {
        let by_row = ["warehouse", "district", "stock"].iter().any(|name| table.starts_with(name));
        let orientation = if by_row { "row" } else { "column" };
        wire.run(&format!("CREATE TABLE {table} WITH (orientation = '{orientation}')"))?;
    }
    wire.run("CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)")?;
    let warehouses = format!("generate_series(1, {WAREHOUSES}) w");
    let districts = format!("{warehouses}, generate_series(1, {DISTRICTS}) d");
    let orders = format!("{districts}, generate_series(1, {ORDERS}) o");
    for insert in [
        format!("warehouse SELECT w, {} FROM {warehouses}", 100 * DISTRICTS),
        format!("district SELECT w, d, 100, {} FROM {districts}", ORDERS + 1),
        format!("customer SELECT w, d, c, -5, 5, 1, 0 FROM {districts}, generate_series(1, {CUSTOMERS}) c"),
        format!("history SELECT w, d, c, w, d, 5, 'loaded' FROM {districts}, generate_series(1, {CUSTOMERS}) c"),
        format!("orders SELECT w, d, o, o, CASE WHEN o <= {DELIVERED} THEN 1 END, {LINES} FROM {orders}"),
        format!("new_order SELECT w, d, o FROM {orders} WHERE o > {DELIVERED}"),
        format!(
            "order_line SELECT w, d, o, l, 1 + (o + l) % {ITEMS}, CASE WHEN o <= {DELIVERED} THEN now() END, 5,
             CASE WHEN o <= {DELIVERED} THEN 0 ELSE l END FROM {orders}, generate_series(1, {LINES}) l"
        ),
        format!("stock SELECT w, i, 50, 0, 0 FROM {warehouses}, generate_series(1, {ITEMS}) i"),
    ] {
        wire.run(&format!("INSERT INTO {insert}"))?;
    }
    Ok(())
}

/// The specification's numbers, and a query of what breaks each.
const CONDITIONS: &[(u32, &str)] = &[
    (
        1,
        "SELECT w_id FROM warehouse
         WHERE w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)",
    ),
    (
        2,
        "SELECT d_w_id, d_id FROM district
         WHERE d_next_o_id - 1 <> (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id)
            OR d_next_o_id - 1 <> (SELECT max(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id)",
    ),
    (
        3,
        "SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id
         HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    ),
    (
        4,
        "SELECT w, d FROM (SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS counted FROM orders GROUP BY 1, 2) o
         FULL JOIN (SELECT ol_w_id AS w, ol_d_id AS d, count(*) AS found FROM order_line GROUP BY 1, 2) l USING (w, d)
         WHERE counted IS DISTINCT FROM found",
    ),
    (
        5,
        "SELECT o_id, no_o_id FROM orders FULL JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
         WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    ),
    (
        6,
        "SELECT o_id, ol_o_id FROM orders FULL JOIN
         (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS found FROM order_line GROUP BY 1, 2, 3) l
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_ol_cnt IS DISTINCT FROM found",
    ),
    (
        7,
        "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line
         JOIN orders ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
         WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (8, "SELECT w_id FROM warehouse WHERE w_ytd <> (SELECT sum(h_amount) FROM history WHERE h_w_id = w_id)"),
    (
        9,
        "SELECT d_w_id, d_id FROM district
         WHERE d_ytd <> (SELECT sum(h_amount) FROM history WHERE h_w_id = d_w_id AND h_d_id = d_id)",
    ),
    (
        12,
        "SELECT c_w_id, c_d_id, c_id FROM customer LEFT JOIN
         (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM orders
          JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
          WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
         WHERE c_balance + c_ytd_payment <> coalesce(delivered, 0)",
    ),
];

/// The numbers of the conditions that do not hold.
pub fn broken(wire: &mut Wire) -> Result<Vec<u32>> {
    let mut broken = Vec::new();
    for (number, breaches) in CONDITIONS {
        let count = wire.run(&format!("SELECT count(*) FROM ({breaches}) b"))?;
        if count.text(0, 0).context("no count")? != "0" {
            broken.push(*number);
        }
    }
    Ok(broken)
}
