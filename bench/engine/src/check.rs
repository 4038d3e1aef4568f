//! Consistency conditions 1 to 4 (clause 3.3.2), by scans of the tables that they name.

use crate::session::all;
use crate::tables::Table;
use anyhow::Result;
use basalt_engine::Engine;
use basalt_types::Datum;
use std::collections::HashMap;
use std::sync::Arc;

/// Of numbers of one district.
#[derive(Default)]
struct District {
    next: i64,
    last_order: i64,
    orders_lines: i64,
    lines: i64,
    open_least: Option<i64>,
    open_last: i64,
    open: i64,
}

/// What breaks each condition.
pub fn check(engine: &Arc<Engine>, tables: &HashMap<&'static str, Arc<Table>>) -> Result<Vec<String>> {
    let mut paid: HashMap<i64, (i64, i64)> = HashMap::new();
    let mut districts: HashMap<(i64, i64), District> = HashMap::new();
    let read = |name: &str, columns: [&str; 3], take: &mut dyn FnMut([i64; 3])| {
        let table = &tables[name];
        let ids = table.columns(columns);
        let mut ascending = ids.to_vec();
        ascending.sort();
        ascending.dedup();
        all(engine, table, &ascending, |row| {
            take(ids.map(|id| {
                let at = ascending.iter().position(|other| *other == id).expect("one of them");
                match row[at] {
                    Datum::I32(value) => i64::from(value),
                    Datum::I64(value) => value,
                    ref other => panic!("{other:?} is no number of a key or a sum"),
                }
            }));
        })
    };
    read("warehouse", ["w_id", "w_id", "w_ytd"], &mut |[id, _, ytd]| paid.entry(id).or_default().0 = ytd)?;
    read("district", ["d_w_id", "d_id", "d_ytd"], &mut |[warehouse, _, ytd]| {
        paid.entry(warehouse).or_default().1 += ytd;
    })?;
    read("district", ["d_w_id", "d_id", "d_next_o_id"], &mut |[warehouse, id, next]| {
        districts.entry((warehouse, id)).or_default().next = next;
    })?;
    read("orders", ["o_w_id", "o_d_id", "o_id"], &mut |[warehouse, district, id]| {
        let district = districts.entry((warehouse, district)).or_default();
        district.last_order = district.last_order.max(id);
    })?;
    read("orders", ["o_w_id", "o_d_id", "o_ol_cnt"], &mut |[warehouse, district, lines]| {
        districts.entry((warehouse, district)).or_default().orders_lines += lines;
    })?;
    read("order_line", ["ol_w_id", "ol_d_id", "ol_number"], &mut |[warehouse, district, _]| {
        districts.entry((warehouse, district)).or_default().lines += 1;
    })?;
    read("new_order", ["no_w_id", "no_d_id", "no_o_id"], &mut |[warehouse, district, id]| {
        let district = districts.entry((warehouse, district)).or_default();
        district.open_last = district.open_last.max(id);
        district.open_least = Some(district.open_least.map_or(id, |least| least.min(id)));
        district.open += 1;
    })?;
    let mut broken = Vec::new();
    for (id, (ytd, of_districts)) in paid {
        if ytd != of_districts {
            broken.push(format!("1: warehouse {id} was paid {ytd}, its districts {of_districts}"));
        }
    }
    for (id, district) in districts {
        let District { next, last_order, orders_lines, lines, open_least, open_last, open } = district;
        if next - 1 != last_order || open > 0 && next - 1 != open_last {
            broken.push(format!("2: district {id:?} goes on with {next}, after {last_order} and {open_last}"));
        }
        if open_least.is_some_and(|least| open_last - least + 1 != open) {
            broken.push(format!("3: district {id:?} has {open} open orders from {open_least:?} to {open_last}"));
        }
        if orders_lines != lines {
            broken.push(format!("4: district {id:?} has orders of {orders_lines} lines and {lines} lines"));
        }
    }
    Ok(broken)
}
