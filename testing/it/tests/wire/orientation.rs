//! `WITH (orientation = …)`: which files a table has, and that they say the same.

use anyhow::{Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::Wire;
use std::time::{Duration, Instant};

fn texts(wire: &mut Wire, sql: &str) -> Result<Vec<String>> {
    let reply = wire.run(sql)?;
    let text = |row: &Vec<Option<Vec<u8>>>| String::from_utf8_lossy(row[0].as_deref().unwrap_or_default()).into_owned();
    Ok(reply.rows.iter().map(text).collect())
}

fn kinds(wire: &mut Wire) -> Result<Vec<String>> {
    texts(wire, "SELECT DISTINCT kind FROM basalt.files WHERE table_name = 't' ORDER BY 1")
}

/// What is read by key, by index, in key order, and by a scan.
fn answers(wire: &mut Wire) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for sql in [
        "SELECT x || coalesce(more::text, '-') FROM t WHERE id = 4321",
        "SELECT id FROM t WHERE x = 'text 77' ORDER BY id",
        "SELECT x FROM t WHERE id BETWEEN 100 AND 120 ORDER BY id DESC",
        "SELECT x FROM t WHERE id = ANY ('{5, 4999, 17, 100000, 2500}') ORDER BY id",
        "SELECT count(*) || ' ' || sum(id) || ' ' || min(x) || ' ' || count(more) FROM t",
    ] {
        all.extend(texts(wire, sql)?);
    }
    Ok(all)
}

#[test]
fn a_tables_files_are_what_it_says_and_change_when_it_does() -> Result<()> {
    let options = BasaltOptions::default().set("basalt.bulk_rows_min=1000").set("basalt.cool_after=1s");
    let dir = tempfile::tempdir()?;
    let mut server = Basalt::start_on(&dir.path().join("data"), &dir.path().join("log"), options)?;
    let mut wire = server.connect()?;
    let refused = wire.simple("CREATE TABLE t (id int) WITH (orientation = 'diagonal')", None)?;
    ensure!(refused.sqlstate() == Some("22023"), "{refused:?}");
    wire.run("CREATE TABLE t (id int PRIMARY KEY, x text, gone int) WITH (orientation = 'row')")?;
    wire.run("CREATE INDEX ON t (x)")?;
    wire.run("INSERT INTO t SELECT g, 'text ' || g % 1000, g FROM generate_series(1, 5000) g")?;
    wire.run("ALTER TABLE t DROP COLUMN gone")?;
    wire.run("ALTER TABLE t ADD COLUMN more int DEFAULT 9")?;
    wire.run("UPDATE t SET more = id WHERE id % 100 = 21")?;
    wire.run("DELETE FROM t WHERE id % 100 = 22")?;
    ensure!(kinds(&mut wire)? == ["row file"], "{:?}", kinds(&mut wire)?);
    let expected = answers(&mut wire)?;
    ensure!(expected.len() == 1 + 5 + 21 + 4 + 1, "{expected:?}");
    for (orientation, kind) in [("row,column", "segment and row file"), ("column", "segment"), ("row", "row file")] {
        wire.run(&format!("ALTER TABLE t SET (orientation = '{orientation}')"))?;
        ensure!(answers(&mut wire)? == expected, "{orientation}, at once");
        wire.run("VACUUM FULL t")?;
        ensure!(kinds(&mut wire)? == [kind], "{orientation}: {:?}", kinds(&mut wire)?);
        ensure!(answers(&mut wire)? == expected, "{orientation}");
        server.kill_and_start()?;
        wire = server.connect()?;
        ensure!(answers(&mut wire)? == expected, "{orientation}, after a restart");
        wire.run("UPDATE t SET x = x WHERE id % 7 = 0")?;
        ensure!(answers(&mut wire)? == expected, "{orientation}, hot in part");
    }
    wire.run("ALTER TABLE t RESET (orientation)")?;
    let until = Instant::now() + Duration::from_secs(30);
    while kinds(&mut wire)? != ["segment"] {
        ensure!(Instant::now() < until, "nobody has rewritten {:?}", kinds(&mut wire)?);
        std::thread::sleep(Duration::from_millis(50));
    }
    ensure!(answers(&mut wire)? == expected, "rewritten in the background");
    Ok(())
}

/// Rows of transactions that began before the files were to be others, and end behind that.
#[test]
fn files_change_beside_those_who_write() -> Result<()> {
    let options = BasaltOptions::default().set("basalt.bulk_rows_min=1000").set("basalt.cool_after=1s");
    let dir = tempfile::tempdir()?;
    let mut server = Basalt::start_on(&dir.path().join("data"), &dir.path().join("log"), options)?;
    let (mut wire, mut writer) = (server.connect()?, server.connect()?);
    wire.run("SET lock_timeout = '10s'")?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, x text, more int)")?;
    wire.run("CREATE INDEX ON t (x)")?;
    wire.run("CREATE INDEX ON t ((more + 1)) WHERE more > 0")?;
    wire.run("INSERT INTO t SELECT g, 'text ' || g % 1000, g FROM generate_series(1, 5000) g")?;
    let sum = "SELECT count(*) || ' ' || sum(id) || ' ' || sum(more) FROM t";
    let indexed = "SELECT count(*) FROM t WHERE more > 0 AND more + 1 = 3";
    let mut rows = 5000;
    for change in ["orientation = 'row'", "clustering_key = 'x'", "orientation = 'column'", "compression = 'zstd'"] {
        let before = texts(&mut wire, sum)?;
        writer.run("BEGIN")?;
        writer.run(&format!(
            "INSERT INTO t SELECT g, 'new', 1 FROM generate_series({}, {}) g",
            rows + 1,
            rows + 2000
        ))?;
        writer.run("UPDATE t SET more = more + 1")?;
        wire.run(&format!("ALTER TABLE t SET ({change})"))?;
        ensure!(texts(&mut wire, sum)? == before, "{change}: what is not committed is seen");
        wire.run("INSERT INTO t VALUES (0, 'beside', 0)")?;
        writer.run(&format!("INSERT INTO t VALUES ({}, 'after', 2)", rows + 2001))?;
        writer.run("COMMIT")?;
        wire.run("DELETE FROM t WHERE id = 0")?;
        rows += 2001;
        let seen = texts(&mut wire, sum)?;
        ensure!(seen[0].starts_with(&format!("{rows} ")), "{change}: {seen:?}");
        let by_index = texts(&mut wire, indexed)?;
        wire.run("VACUUM FULL t")?;
        ensure!(texts(&mut wire, sum)? == seen, "{change}, all rewritten");
        server.kill_and_start()?;
        (wire, writer) = (server.connect()?, server.connect()?);
        ensure!(texts(&mut wire, sum)? == seen, "{change}, after a restart");
        ensure!(texts(&mut wire, indexed)? == by_index, "{change}");
    }
    // Where rows are to be elsewhere, or a column is to be another, nobody may write meanwhile.
    writer.run("BEGIN")?;
    writer.run("UPDATE t SET more = 0 WHERE id = 1")?;
    wire.run("SET lock_timeout = '100ms'")?;
    for change in
        ["SET (tablets = 2)", "SET (fillfactor = 70), ALTER x SET DEFAULT 'y'", "SET (distribution_key = 'id')"]
    {
        let refused = wire.simple(&format!("ALTER TABLE t {change}"), None)?;
        ensure!(refused.sqlstate() == Some("55P03"), "{change}: {refused:?}");
    }
    writer.run("ROLLBACK")?;
    wire.run("ALTER TABLE t SET (tablets = 2)")?;
    Ok(())
}
