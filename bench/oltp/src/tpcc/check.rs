//! TPC-C's consistency conditions (clause 3.3.2): each as a query that counts what breaks it.

use crate::address::Address;
use crate::terminals::round;
use crate::wire::Connection;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::time::Instant;

const LINES: &str = "SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS lines, count(ol_delivery_d) AS delivered, \
                     sum(ol_amount) AS amount FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id";
const PAID: &str = "SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history GROUP BY 1, 2, 3";

/// What customers owe for orders that have been delivered.
fn delivered() -> String {
    format!(
        "SELECT o_w_id, o_d_id, o_c_id, sum(amount) AS delivered FROM orders JOIN ({LINES}) l \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE o_carrier_id IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id"
    )
}

fn conditions() -> Vec<(usize, String)> {
    vec![
        (
            1,
            "SELECT count(*) FROM warehouse JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM district GROUP BY d_w_id) d \
             ON d_w_id = w_id WHERE w_ytd <> ytd"
                .to_string(),
        ),
        (
            2,
            "SELECT count(*) FROM district \
             JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM orders GROUP BY o_w_id, o_d_id) o \
             ON o_w_id = d_w_id AND o_d_id = d_id \
             LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last FROM new_order GROUP BY no_w_id, no_d_id) n \
             ON no_w_id = d_w_id AND no_d_id = d_id \
             WHERE d_next_o_id - 1 <> o.last OR d_next_o_id - 1 <> n.last"
                .to_string(),
        ),
        (
            3,
            "SELECT count(*) FROM (SELECT max(no_o_id) - min(no_o_id) + 1 - count(*) AS gap FROM new_order \
             GROUP BY no_w_id, no_d_id) n WHERE gap <> 0"
                .to_string(),
        ),
        (
            4,
            "SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS lines FROM orders GROUP BY o_w_id, o_d_id) o \
             FULL JOIN (SELECT ol_w_id, ol_d_id, count(*) AS lines FROM order_line GROUP BY ol_w_id, ol_d_id) l \
             ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE o.lines IS DISTINCT FROM l.lines"
                .to_string(),
        ),
        (
            5,
            "SELECT count(*) FROM orders FULL JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
             WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)"
                .to_string(),
        ),
        (
            6,
            format!(
                "SELECT count(*) FROM orders FULL JOIN ({LINES}) l \
                 ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_ol_cnt IS DISTINCT FROM lines"
            ),
        ),
        (
            7,
            format!(
                "SELECT count(*) FROM orders JOIN ({LINES}) l \
                 ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                 WHERE delivered <> CASE WHEN o_carrier_id IS NULL THEN 0 ELSE lines END"
            ),
        ),
        (
            8,
            "SELECT count(*) FROM warehouse JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) h \
             ON h_w_id = w_id WHERE w_ytd <> paid"
                .to_string(),
        ),
        (
            9,
            "SELECT count(*) FROM district \
             JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) h \
             ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> paid"
                .to_string(),
        ),
        (
            10,
            format!(
                "SELECT count(*) FROM customer \
                 LEFT JOIN ({PAID}) h ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                 LEFT JOIN ({}) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                 WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)",
                delivered()
            ),
        ),
        // As the specification has it for the population; what has been delivered since is counted with customers.
        (
            11,
            "SELECT count(*) FROM (SELECT o_w_id, o_d_id, count(*) AS orders FROM orders GROUP BY o_w_id, o_d_id) o \
             JOIN (SELECT no_w_id, no_d_id, count(*) AS open FROM new_order GROUP BY no_w_id, no_d_id) n \
             ON no_w_id = o_w_id AND no_d_id = o_d_id \
             JOIN (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS delivered FROM customer GROUP BY c_w_id, c_d_id) c \
             ON c_w_id = o_w_id AND c_d_id = o_d_id WHERE orders - open <> 2100 + delivered"
                .to_string(),
        ),
        (
            12,
            format!(
                "SELECT count(*) FROM customer \
                 LEFT JOIN ({}) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                 WHERE c_balance + c_ytd_payment <> coalesce(delivered, 0)",
                delivered()
            ),
        ),
    ]
}

/// What breaks each condition, and whether anything does.
pub fn check(address: &Address) -> Result<(Map<String, Value>, bool)> {
    let mut connection = Connection::open(address)?;
    let (mut broken, mut seconds) = (Map::new(), Map::new());
    for (number, sql) in conditions() {
        let began = Instant::now();
        let count = connection.simple(&sql)?.one()?.int(0)?;
        seconds.insert(number.to_string(), json!(round(began.elapsed().as_secs_f64())));
        if count != 0 {
            eprintln!("condition {number}: {count} rows break it: {sql}");
            broken.insert(number.to_string(), json!(count));
        }
    }
    let failed = !broken.is_empty();
    let mut result = Map::new();
    result.insert("consistent".to_string(), json!(!failed));
    result.insert("broken".to_string(), Value::Object(broken));
    result.insert("seconds".to_string(), Value::Object(seconds));
    Ok((result, failed))
}
