//! Indexes that rest in files: they are there when CREATE INDEX returns, take part in scans, and outlive the process.

use anyhow::{Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::Wire;

fn lines(wire: &mut Wire, sql: &str) -> Result<Vec<String>> {
    let reply = wire.run(sql)?;
    Ok((0..reply.rows.len()).map(|row| reply.text(row, 0).unwrap_or_default().to_string()).collect())
}

/// How many rows bitmaps have chosen for a condition; `None`: they took no part.
fn chosen(wire: &mut Wire, condition: &str) -> Result<Option<u64>> {
    let told = lines(wire, &format!("EXPLAIN ANALYZE SELECT count(*), sum(id) FROM t WHERE {condition}"))?;
    let found = told.iter().find_map(|line| line.trim().strip_prefix("Rows Chosen by Bitmaps: "));
    Ok(found.map(str::parse).transpose()?)
}

const CONDITIONS: [&str; 6] = [
    "kind = 7",
    "kind IN (3, 5, 5000)",
    "name = 'n 12'",
    "kind = 7 AND name >= 'n 1' AND name < 'n 11'",
    "ratio BETWEEN 1 AND 1.5 AND kind = 7",
    "kind IS NULL",
];

fn answers(wire: &mut Wire) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for condition in CONDITIONS {
        all.extend(lines(wire, &format!("SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM t WHERE {condition}"))?);
    }
    Ok(all)
}

fn filled(wire: &mut Wire) -> Result<()> {
    wire.run("CREATE TABLE t (id int PRIMARY KEY, kind int, name text, ratio float8)")?;
    wire.run(
        "INSERT INTO t SELECT i, CASE WHEN i > 199900 THEN NULL ELSE i * 7919 % 100 END, 'n ' || i * 31 % 500, i % 1000 / 16.0
         FROM generate_series(1, 200000) i",
    )?;
    wire.run("VACUUM t")?;
    Ok(())
}

#[test]
fn bitmaps_take_part_as_soon_as_they_are_made_and_after_a_kill() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Basalt::start_on(&dir.path().join("data"), &dir.path().join("log"), BasaltOptions::default())?;
    let mut wire = server.connect()?;
    filled(&mut wire)?;
    let expected = answers(&mut wire)?;
    ensure!(chosen(&mut wire, "kind = 7")?.is_none(), "there are none yet");
    // In a block the index is there at once, and its files in the background.
    wire.run("BEGIN")?;
    wire.run("CREATE INDEX ON t USING bitmap (ratio)")?;
    wire.run("ROLLBACK")?;
    wire.run("CREATE INDEX bits ON t USING bitmap (kind, name, ratio)")?;
    let take_part = |wire: &mut Wire| {
        for condition in CONDITIONS {
            let rows = lines(wire, &format!("SELECT count(*) FROM t WHERE {condition}"))?[0].parse::<u64>()?;
            let chosen = chosen(wire, condition)?;
            ensure!(chosen == Some(rows), "{condition}: {chosen:?} of {rows}");
        }
        ensure!(chosen(wire, "kind + 0 = 7")?.is_none(), "a condition on no column");
        ensure!(chosen(wire, "kind >= 0")?.is_none(), "nearly all rows");
        Ok(())
    };
    take_part(&mut wire)?;
    ensure!(answers(&mut wire)? == expected, "{:?}", answers(&mut wire)?);
    server.kill_and_start()?;
    wire = server.connect()?;
    take_part(&mut wire)?;
    ensure!(answers(&mut wire)? == expected, "after a restart");
    // Rows that are deleted, moved and new are seen as they are.
    wire.run("DELETE FROM t WHERE kind = 7 AND id % 3 = 0")?;
    wire.run("UPDATE t SET kind = 7 WHERE kind = 8 AND id % 3 = 0")?;
    wire.run("INSERT INTO t VALUES (0, 7, 'n 12', 1.25), (-1, NULL, NULL, 'NaN')")?;
    let with = answers(&mut wire)?;
    wire.run("DROP INDEX bits")?;
    ensure!(chosen(&mut wire, "kind = 7")?.is_none(), "of an index that is gone nothing is asked");
    ensure!(with == answers(&mut wire)?, "{with:?}");
    wire.run("CREATE INDEX CONCURRENTLY bits ON t USING bitmap (kind, name, ratio)")?;
    wire.run("VACUUM t")?;
    ensure!(chosen(&mut wire, "kind = 7")?.is_some());
    ensure!(with == answers(&mut wire)?, "{with:?}");
    Ok(())
}

#[test]
fn files_of_before_get_them_in_the_background() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    filled(&mut wire)?;
    let expected = answers(&mut wire)?;
    wire.run("BEGIN")?;
    wire.run("CREATE INDEX bits ON t USING bitmap (kind, name, ratio)")?;
    wire.run("COMMIT")?;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while chosen(&mut wire, "kind = 7")?.is_none() {
        ensure!(std::time::Instant::now() < until, "no file has been rewritten");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    ensure!(answers(&mut wire)? == expected, "{:?}", answers(&mut wire)?);
    Ok(())
}

/// A filter that is asked for is there where nobody would have made one: of few values, and of few rows.
#[test]
fn filters_are_made_where_they_are_asked_for() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, part int, noise int)")?;
    // Every third value is missing, and all row groups have the same bounds.
    wire.run("INSERT INTO t SELECT i, i * 7919 % 1000 * 3, i FROM generate_series(1, 100000) i")?;
    wire.run("VACUUM t")?;
    let filtered = |wire: &mut Wire| {
        let told = lines(wire, "EXPLAIN ANALYZE SELECT count(*) FROM t WHERE part = 1501")?;
        Ok::<bool, anyhow::Error>(told.iter().any(|line| line.trim() == "Row Groups Pruned by Filters: 2"))
    };
    ensure!(!filtered(&mut wire)?, "a filter without an index would make this test say nothing");
    wire.run("CREATE INDEX ON t USING bloom (part)")?;
    ensure!(filtered(&mut wire)?, "{:?}", lines(&mut wire, "EXPLAIN ANALYZE SELECT count(*) FROM t WHERE part = 1501"));
    ensure!(lines(&mut wire, "SELECT count(*) FROM t WHERE part = 1500")? == ["100"]);
    Ok(())
}
