//! Queries that need more memory than there is write to disk, on the engine that they run on anyway.

use anyhow::{Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::Wire;

const QUERIES: [&str; 11] = [
    "SELECT id, name, amount FROM facts ORDER BY name, id DESC",
    "SELECT id, name FROM facts ORDER BY amount DESC NULLS LAST, id OFFSET 150000 LIMIT 40000",
    "SELECT name, count(*), sum(amount), max(day), count(DISTINCT amount) FROM facts GROUP BY name ORDER BY name",
    "SELECT other, avg(amount), bool_and(id > 5) FROM facts GROUP BY other ORDER BY other NULLS FIRST",
    "SELECT a.id, b.name, b.amount FROM facts a JOIN facts b ON a.other = b.id WHERE a.amount > b.amount ORDER BY a.id",
    "SELECT a.id, b.name FROM facts a LEFT JOIN facts b ON a.other = b.id AND b.name LIKE '%7%' ORDER BY a.id, b.name",
    "SELECT a.* FROM facts a WHERE NOT EXISTS (SELECT FROM facts b WHERE b.other = a.id AND b.amount < a.amount) ORDER BY id",
    "SELECT id, name, row_number() OVER (PARTITION BY day ORDER BY name, id), sum(amount) OVER (PARTITION BY day ORDER BY id)
     FROM facts ORDER BY id",
    // Partitions that are more than memory holds.
    "SELECT id, name, row_number() OVER (ORDER BY name, id) FROM facts ORDER BY id",
    "SELECT id, rank() OVER w, dense_rank() OVER w, sum(amount) OVER w, avg(amount) FILTER (WHERE id % 3 = 0) OVER w,
            max(name) OVER w, row_number() OVER (PARTITION BY id % 2 ORDER BY name, id)
     FROM facts WINDOW w AS (PARTITION BY id % 2 ORDER BY name) ORDER BY id",
    "SELECT sum(a), count(DISTINCT r), max(c) FROM (SELECT sum(amount) OVER w AS a, row_number() OVER w AS r,
            count(other) OVER w AS c, name || id AS t FROM facts WINDOW w AS (ORDER BY name, id ROWS UNBOUNDED PRECEDING)) s",
];

fn filled(options: BasaltOptions) -> Result<(Basalt, Wire)> {
    let server = Basalt::start_with(options)?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE facts (id int PRIMARY KEY, other int, name text NOT NULL, amount numeric(12,2), day date NOT NULL)")?;
    wire.run(
        "INSERT INTO facts SELECT i, nullif((i * 7919) % 260000, 13), 'the name of ' || (i * 31) % 150000,
                nullif(i * 37 % 100003, 5) * 0.01, date '2020-01-01' + i % 2000
         FROM generate_series(1, 200000) i",
    )?;
    wire.run("VACUUM")?;
    Ok((server, wire))
}

#[test]
fn queries_without_memory_give_the_same_from_disk() -> Result<()> {
    let (_roomy, mut roomy) = filled(BasaltOptions::default())?;
    let (_tight, mut tight) = filled(BasaltOptions::default().set("basalt.query_memory_limit=16MB"))?;
    for sql in QUERIES {
        ensure!(roomy.run(sql)?.rows == tight.run(sql)?.rows, "{sql}");
        let log = format!(
            "SELECT engine, bytes_spilled FROM basalt.query_log WHERE query = '{}' ORDER BY started_at DESC LIMIT 1",
            sql.replace('\'', "''")
        );
        let reply = tight.run(&log)?;
        ensure!(reply.text(0, 0) == Some("column"), "{sql}: {reply:?}");
        ensure!(reply.text(0, 1).is_some_and(|bytes| bytes != "0"), "{sql} did spill: {reply:?}");
        ensure!(roomy.run(&log)?.text(0, 1) == Some("0"), "{sql}: there is room");
    }
    let told = tight.run(&format!("EXPLAIN (ANALYZE) {}", QUERIES[0]))?;
    let lines = (0..told.rows.len()).filter_map(|row| told.text(row, 0));
    ensure!(lines.filter(|line| line.trim().starts_with("Spilled:")).count() >= 2, "{told:?}");
    Ok(())
}

/// The fallback, too: what sorts leaves room to those who merge what has been sorted.
#[test]
fn sorts_of_the_fallback_end_with_little_memory() -> Result<()> {
    let (_roomy, mut roomy) = filled(BasaltOptions::default())?;
    for limit in ["24MB", "32MB"] {
        let (_tight, mut tight) = filled(BasaltOptions::default().set(&format!("basalt.query_memory_limit={limit}")))?;
        tight.run("SET basalt.enable_column_engine = off")?;
        for sql in [
            "SELECT count(*), max(length(h)) FROM (SELECT name || id AS h FROM facts ORDER BY h OFFSET 5) s",
            "SELECT id, name, amount FROM facts ORDER BY name, id DESC",
            "SELECT sum(r) FROM (SELECT row_number() OVER (PARTITION BY day ORDER BY name) AS r, id FROM facts) s",
        ] {
            ensure!(roomy.run(sql)?.rows == tight.run(sql)?.rows, "{sql}");
        }
    }
    Ok(())
}
