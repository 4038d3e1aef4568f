//! TPC-H at scale 0.01: all 22 queries give PostgreSQL's answers, as text, in every state of the data.

use anyhow::{Context, Result, ensure};
use basalt_it::servers::{Basalt, Postgres};
use basalt_it::wire::Wire;
use std::fmt::{Display, Write};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

const SCALE: f64 = 0.01;

const TABLES: &[(&str, &str)] = &[
    ("region", "r_regionkey int PRIMARY KEY, r_name char(25), r_comment varchar(152)"),
    ("nation", "n_nationkey int PRIMARY KEY, n_name char(25), n_regionkey int, n_comment varchar(152)"),
    (
        "supplier",
        "s_suppkey int PRIMARY KEY, s_name char(25), s_address varchar(40), s_nationkey int, s_phone char(15),
         s_acctbal numeric(15,2), s_comment varchar(101)",
    ),
    (
        "customer",
        "c_custkey int PRIMARY KEY, c_name varchar(25), c_address varchar(40), c_nationkey int, c_phone char(15),
         c_acctbal numeric(15,2), c_mktsegment char(10), c_comment varchar(117)",
    ),
    (
        "part",
        "p_partkey int PRIMARY KEY, p_name varchar(55), p_mfgr char(25), p_brand char(10), p_type varchar(25),
         p_size int, p_container char(10), p_retailprice numeric(15,2), p_comment varchar(23)",
    ),
    (
        "partsupp",
        "ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost numeric(15,2), ps_comment varchar(199),
         PRIMARY KEY (ps_partkey, ps_suppkey)",
    ),
    (
        "orders",
        "o_orderkey bigint PRIMARY KEY, o_custkey int, o_orderstatus char(1), o_totalprice numeric(15,2),
         o_orderdate date, o_orderpriority char(15), o_clerk char(15), o_shippriority int, o_comment varchar(79)",
    ),
    (
        "lineitem",
        "l_orderkey bigint, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric(15,2),
         l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag char(1),
         l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct char(25),
         l_shipmode char(10), l_comment varchar(44), PRIMARY KEY (l_orderkey, l_linenumber)",
    ),
];

/// What both servers do to the data before it is read again.
const CHANGES: &[&str] = &[
    "UPDATE lineitem SET l_quantity = l_quantity + 1, l_discount = 0.05 WHERE l_orderkey % 10 = 3",
    "DELETE FROM lineitem WHERE l_orderkey % 10 = 7",
    "UPDATE orders SET o_totalprice = o_totalprice * 1.01, o_orderpriority = '1-URGENT' WHERE o_orderkey % 10 = 2",
    "DELETE FROM orders WHERE o_orderkey % 10 = 7",
    "UPDATE customer SET c_acctbal = c_acctbal + 100 WHERE c_custkey % 10 = 1",
    "DELETE FROM customer WHERE c_custkey % 10 = 9",
    "UPDATE partsupp SET ps_availqty = ps_availqty + 7 WHERE ps_partkey % 10 = 5",
];

#[test]
fn the_22_queries_answer_as_postgresql_in_every_state() -> Result<()> {
    let postgres = Postgres::start()?;
    postgres.empty_database()?;
    let mut basalt = Basalt::start()?;
    let (mut ours, mut theirs) = (basalt.connect()?, postgres.connect()?);
    for (table, columns) in TABLES {
        let data = generate(table);
        for wire in [&mut ours, &mut theirs] {
            wire.run(&format!("CREATE TABLE {table} ({columns})"))?;
            let copied = wire.simple(&format!("COPY {table} FROM STDIN (DELIMITER '|')"), Some(data.as_bytes()))?;
            ensure!(copied.error().is_none(), "COPY {table}: {:?}", copied.error());
        }
    }
    theirs.run("ANALYZE")?;
    let queries = queries()?;
    let mut failures = Vec::new();
    refuse_loops(&mut ours, &queries)?;
    let mut expected = answers(&mut theirs, &queries)?;
    compare("loaded", &mut ours, &queries, &expected, &mut failures)?;
    ours.run("VACUUM")?;
    compare("frozen", &mut ours, &queries, &expected, &mut failures)?;
    for change in CHANGES {
        let (a, b) = (ours.run(change)?.tag, theirs.run(change)?.tag);
        ensure!(a == b, "{change}: {a:?}, PostgreSQL: {b:?}");
    }
    theirs.run("VACUUM ANALYZE")?;
    expected = answers(&mut theirs, &queries)?;
    compare("changed", &mut ours, &queries, &expected, &mut failures)?;
    ours.run("VACUUM FULL")?;
    compare("compacted", &mut ours, &queries, &expected, &mut failures)?;
    basalt.kill_and_start()?;
    compare("restarted", &mut basalt.connect()?, &queries, &expected, &mut failures)?;
    ensure!(failures.is_empty(), "{} answers differ:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

/// Every subquery of these can be a join: none is run row by row.
fn refuse_loops(wire: &mut Wire, queries: &[(String, String)]) -> Result<()> {
    for (name, text) in queries {
        let plan = answer(wire, &format!("EXPLAIN {text}"))?;
        ensure!(plan.iter().any(|line| line.contains("Scan")), "EXPLAIN of {name} shows no scan: {plan:#?}");
        // Subqueries that are run once, before, are no loops.
        let is_loop = |line: &&String| {
            let line = line.replace("scalar_subquery(", "");
            ["Apply", "subquery(", "NestedLoop"].iter().any(|mark| line.contains(mark))
        };
        let loops = plan.iter().find(is_loop);
        ensure!(loops.is_none(), "{name} runs {loops:?} row by row:\n{}", plan.join("\n"));
    }
    Ok(())
}

/// Name and text.
fn queries() -> Result<Vec<(String, String)>> {
    let dir = basalt_it::own_path("tpch");
    (1..=22)
        .map(|number| {
            let path = dir.join(format!("q{number:02}.sql"));
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            Ok((format!("q{number:02}"), text))
        })
        .collect()
}

fn answers(wire: &mut Wire, queries: &[(String, String)]) -> Result<Vec<Vec<String>>> {
    queries.iter().map(|(name, text)| answer(wire, text).with_context(|| name.clone())).collect()
}

fn answer(wire: &mut Wire, text: &str) -> Result<Vec<String>> {
    let reply = wire.run(text)?;
    let types = reply.columns.iter().flatten().map(|column| format!("{}:{}", column.name, column.type_oid));
    let mut lines = vec![types.collect::<Vec<_>>().join("|")];
    for row in &reply.rows {
        let values = row.iter().map(|value| value.as_deref().map_or("NULL".into(), String::from_utf8_lossy));
        lines.push(values.collect::<Vec<_>>().join("|"));
    }
    Ok(lines)
}

fn compare(
    state: &str,
    wire: &mut Wire,
    queries: &[(String, String)],
    expected: &[Vec<String>],
    failures: &mut Vec<String>,
) -> Result<()> {
    for ((name, text), expected) in queries.iter().zip(expected) {
        match answer(wire, text) {
            Ok(found) if found == *expected => {}
            Ok(found) => {
                let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
                let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "(end)".into());
                failures.push(format!(
                    "{name}, {state}: {} lines, expected {}; line {at}:\n  - {}\n  + {}",
                    found.len(),
                    expected.len(),
                    line(expected),
                    line(&found)
                ));
            }
            Err(error) => failures.push(format!("{name}, {state}: {error:#}")),
        }
    }
    Ok(())
}

/// The table's rows in COPY's text format.
fn generate(table: &str) -> String {
    match table {
        "region" => lines(RegionGenerator::new(SCALE, 1, 1).iter()),
        "nation" => lines(NationGenerator::new(SCALE, 1, 1).iter()),
        "supplier" => lines(SupplierGenerator::new(SCALE, 1, 1).iter()),
        "customer" => lines(CustomerGenerator::new(SCALE, 1, 1).iter()),
        "part" => lines(PartGenerator::new(SCALE, 1, 1).iter()),
        "partsupp" => lines(PartSuppGenerator::new(SCALE, 1, 1).iter()),
        "orders" => lines(OrderGenerator::new(SCALE, 1, 1).iter()),
        _ => lines(LineItemGenerator::new(SCALE, 1, 1).iter()),
    }
}

fn lines(rows: impl Iterator<Item = impl Display>) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for row in rows {
        line.clear();
        let _ = write!(line, "{row}");
        // dbgen ends every field with a separator, COPY separates fields.
        out.push_str(line.strip_suffix('|').unwrap_or(&line));
        out.push('\n');
    }
    out
}
