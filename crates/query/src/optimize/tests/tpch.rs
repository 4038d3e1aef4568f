//! TPC-H's queries with the statistics of one gigabyte: no subquery is left, and what selects much comes first.

use super::answers::{Outcome, compare};
use super::database::Place;
use super::interpret::Interpreter;
use super::show::show;
use crate::optimize::facts::{ColumnFacts, TableFacts};
use crate::optimize::node::{Node, Op};
use basalt_expr::EvalContext;
use basalt_types::Datum;

/// Few rows, of which the queries find some.
const ROWS: &str = include_str!("tpch_rows.sql");

const TABLES: &str = include_str!("../../../../basalt/src/demo/tpch/tables.sql");

/// Columns and their different values.
type Distinct = &'static [(&'static str, f64)];

/// Rows, and the different values of some columns.
const FACTS: [(&str, f64, Distinct); 8] = [
    ("region", 5.0, &[("r_name", 5.0)]),
    ("nation", 25.0, &[("n_name", 25.0), ("n_regionkey", 5.0)]),
    ("supplier", 1e4, &[("s_nationkey", 25.0)]),
    ("customer", 1.5e5, &[("c_nationkey", 25.0), ("c_mktsegment", 5.0)]),
    ("part", 2e5, &[("p_brand", 25.0), ("p_type", 150.0), ("p_size", 50.0), ("p_container", 40.0), ("p_mfgr", 5.0)]),
    ("partsupp", 8e5, &[("ps_partkey", 2e5), ("ps_suppkey", 1e4)]),
    ("orders", 1.5e6, &[("o_custkey", 1e5), ("o_orderstatus", 3.0), ("o_orderdate", 2406.0), ("o_orderpriority", 5.0)]),
    (
        "lineitem",
        6e6,
        &[
            ("l_orderkey", 1.5e6),
            ("l_partkey", 2e5),
            ("l_suppkey", 1e4),
            ("l_linenumber", 7.0),
            ("l_quantity", 50.0),
            ("l_returnflag", 3.0),
            ("l_linestatus", 2.0),
            ("l_shipmode", 7.0),
            ("l_shipinstruct", 4.0),
            ("l_shipdate", 2526.0),
        ],
    ),
];

/// 1992-01-01 and 1998-12-31 in days.
const DATES: (i32, i32) = (8035, 10591);

pub fn place() -> Place {
    let mut place = Place::new(TABLES);
    for (name, rows, columns) in FACTS {
        let table = place.table(name);
        let mut facts = TableFacts { rows, ..TableFacts::default() };
        for column in table.live_columns() {
            let distinct = columns.iter().find(|(known, _)| *known == column.name).map(|(_, distinct)| *distinct);
            let is_date = column.ty == basalt_types::DataType::Date;
            let bounds = is_date.then_some((Datum::I32(DATES.0), Datum::I32(DATES.1)));
            facts.columns.insert(column.id, ColumnFacts { distinct, bounds, nulls: Some(0.0) });
        }
        place.statistics.tables.insert(table.id, facts);
    }
    place
}

pub fn text(number: usize) -> String {
    let path = format!("{}/../../testing/it/tpch/q{number:02}.sql", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn trees_give_what_queries_give() {
    let mut place = place();
    place.run(ROWS).unwrap();
    let names: Vec<&str> = FACTS.iter().map(|(name, ..)| *name).collect();
    let interpreter = Interpreter { tables: place.contents(&names), eval: EvalContext::at(0) };
    for number in 1..=22 {
        let outcome = compare(&mut place, &interpreter, &text(number));
        assert!(matches!(outcome, Outcome::Same), "q{number}");
    }
}

/// Rows that the joins of a tree give together.
fn joined(node: &Node) -> f64 {
    let own = if matches!(node.op, Op::Join { .. }) { node.rows } else { 0.0 };
    node.inputs().into_iter().map(joined).fold(own, |sum, rows| sum + rows)
}

/// Of the queries in turn: how many rows their joins give, in thousands, and a fifth more.
const JOINED_MAX: [f64; 22] = [
    0.0, 195.0, 522.0, 65.0, 437.0, 0.0, 324.0, 84.0, 828.0, 216.0, 91.0, 33.0, 1710.0, 85.0, 0.003, 282.0, 9.9,
    3600.0, 0.08, 65.0, 173.0, 2.9,
];

#[test]
fn few_rows_are_joined() {
    let place = place();
    let mut wrong = Vec::new();
    for (number, most) in (1..).zip(JOINED_MAX) {
        let tree = place.optimize(&text(number)).unwrap_or_else(|why| panic!("q{number} has no tree: {why}"));
        let rows = joined(&tree) / 1e3;
        if rows > most {
            wrong.push(format!("q{number} joins {rows} thousand rows\n{}", show(&tree)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
