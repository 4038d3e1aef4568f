//! Parameters of what is no plan by itself, portals across savepoints, and prepared statements that have to be made anew.

use anyhow::{Context, Result, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::{Reply, Wire};

fn with_value(wire: &mut Wire, sql: &str, value: &str) -> Result<Reply> {
    let mut answer = wire.with_values(sql, &[value.to_string()])?;
    if let Some(error) = answer.error() {
        anyhow::bail!("{sql}: {} {}", error.sqlstate(), error.message());
    }
    answer.replies.pop().context("no reply")
}

fn filled(server: &Basalt) -> Result<Wire> {
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE emp (id int PRIMARY KEY, name text)")?;
    wire.run("INSERT INTO emp SELECT i, 'n' || i FROM generate_series(1, 9) i")?;
    Ok(wire)
}

fn text(wire: &mut Wire, sql: &str) -> Result<String> {
    Ok(wire.run(sql)?.text(0, 0).unwrap_or_default().to_string())
}

#[test]
fn create_table_as_and_cursors_take_parameters() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    let reply = with_value(&mut wire, "CREATE TABLE a AS SELECT id, $1 + 1 AS n FROM emp WHERE id < $1", "3")?;
    assert_eq!(reply.tag.as_deref(), Some("SELECT 2"));
    assert_eq!(text(&mut wire, "SELECT string_agg(id || ':' || n, ',' ORDER BY id) FROM a")?, "1:4,2:4");
    let reply = with_value(&mut wire, "SELECT id, $1::text AS t INTO TEMP b FROM emp WHERE id = 1", "x")?;
    assert_eq!(reply.tag.as_deref(), Some("SELECT 1"));
    assert_eq!(text(&mut wire, "SELECT t FROM b")?, "x");
    wire.run("BEGIN")?;
    with_value(&mut wire, "DECLARE c SCROLL CURSOR FOR SELECT id FROM emp WHERE id > $1 ORDER BY id", "6")?;
    assert_eq!(wire.run("FETCH 2 c")?.rows.len(), 2);
    assert_eq!(text(&mut wire, "FETCH LAST c")?, "9");
    wire.run("COMMIT")?;
    let plan = with_value(&mut wire, "EXPLAIN ANALYZE CREATE TABLE d AS SELECT id FROM emp WHERE id < $1", "5")?;
    ensure!(!plan.rows.is_empty(), "no plan");
    assert_eq!(text(&mut wire, "SELECT count(*) FROM d")?, "4");
    let again = wire.prepare("p", "CREATE TEMP TABLE e AS SELECT id FROM emp WHERE name = $1")?;
    ensure!(again.error().is_none(), "{again:?}");
    for name in ["n1", "n2"] {
        ensure!(wire.execute("p", &[name.to_string()])?.error().is_none(), "{name}");
        assert_eq!(text(&mut wire, "SELECT id FROM e")?, name[1..]);
        wire.run("DROP TABLE e")?;
    }
    Ok(())
}

#[test]
fn what_is_kept_takes_no_parameters() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    let kept = "CREATE MATERIALIZED VIEW m AS SELECT id FROM emp WHERE id < $1";
    assert_eq!(wire.with_values(kept, &["3".to_string()])?.sqlstate(), Some("0A000"));
    assert_eq!(wire.simple("CREATE TABLE a AS SELECT $1 AS x", None)?.sqlstate(), Some("42P02"));
    assert_eq!(wire.simple("DECLARE c CURSOR WITH HOLD FOR SELECT $1", None)?.sqlstate(), Some("42P02"));
    assert_eq!(wire.with_values("CREATE TABLE a AS SELECT nothing", &[])?.sqlstate(), Some("42703"));
    Ok(())
}

#[test]
fn a_changed_result_type_is_told_as_drivers_expect_it() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    wire.prepare("p", "SELECT * FROM emp WHERE id = $1")?;
    wire.run("ALTER TABLE emp ADD extra int")?;
    let answer = wire.execute("p", &["1".to_string()])?;
    let error = answer.error().context("no error")?;
    assert_eq!((error.sqlstate(), error.get(b'R')), ("0A000", "RevalidateCachedQuery"));
    Ok(())
}

/// Bind and Execute of a portal for some rows; Sync.
fn bound(wire: &mut Wire, portal: &str, statement: &str, rows: u8) -> Result<()> {
    let bind = [portal.as_bytes(), b"\0", statement.as_bytes(), b"\0\0\0\0\0\0\0"].concat();
    wire.send(b'B', &bind)?;
    fetched(wire, portal, rows)
}

fn fetched(wire: &mut Wire, portal: &str, rows: u8) -> Result<()> {
    wire.send(b'E', &[portal.as_bytes(), &[0, 0, 0, 0, rows]].concat())?;
    wire.send(b'S', &[])
}

/// How many rows come until ReadyForQuery, and the SQLSTATE of an error.
fn outcome(wire: &mut Wire) -> Result<(usize, Option<String>)> {
    let (mut rows, mut sqlstate) = (0, None);
    loop {
        let (kind, body) = wire.receive()?;
        match kind {
            b'D' => rows += 1,
            b'E' => {
                let fields = body.split(|byte| *byte == 0);
                let code = fields.filter_map(|field| field.strip_prefix(b"C")).next();
                sqlstate = code.map(|code| String::from_utf8_lossy(code).into_owned());
            }
            b'Z' => return Ok((rows, sqlstate)),
            _ => {}
        }
    }
}

#[test]
fn portals_from_before_a_savepoint_outlive_errors_behind_it() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    wire.prepare("all", "SELECT id FROM emp ORDER BY id")?;
    wire.run("BEGIN")?;
    bound(&mut wire, "outer", "all", 2)?;
    assert_eq!(outcome(&mut wire)?, (2, None));
    wire.run("SAVEPOINT s")?;
    bound(&mut wire, "inner", "all", 1)?;
    assert_eq!(outcome(&mut wire)?, (1, None));
    assert_eq!(wire.simple("SELECT 1 / 0", None)?.sqlstate(), Some("22012"));
    fetched(&mut wire, "outer", 2)?;
    assert_eq!(outcome(&mut wire)?, (0, Some("25P02".to_string())));
    wire.run("ROLLBACK TO s")?;
    fetched(&mut wire, "inner", 1)?;
    assert_eq!(outcome(&mut wire)?, (0, Some("34000".to_string())));
    wire.run("ROLLBACK TO s")?;
    fetched(&mut wire, "outer", 3)?;
    assert_eq!(outcome(&mut wire)?, (3, None));
    wire.run("ROLLBACK")?;
    fetched(&mut wire, "outer", 1)?;
    assert_eq!(outcome(&mut wire)?, (0, Some("34000".to_string())));
    Ok(())
}

/// Their locks are given back: others may have changed the rows that were not handed over yet.
#[test]
fn rows_of_a_portal_made_behind_a_savepoint_go_with_it() -> Result<()> {
    let server = Basalt::start()?;
    let (mut wire, mut other) = (filled(&server)?, server.connect()?);
    other.run("SET lock_timeout = '5s'")?;
    wire.prepare("locked", "SELECT id FROM emp ORDER BY id FOR UPDATE")?;
    wire.run("BEGIN")?;
    wire.send(b'B', b"outer\0locked\0\0\0\0\0\0\0")?;
    wire.send(b'S', &[])?;
    assert_eq!(outcome(&mut wire)?, (0, None));
    wire.run("SAVEPOINT s")?;
    fetched(&mut wire, "outer", 2)?;
    assert_eq!(outcome(&mut wire)?, (2, None));
    wire.run("ROLLBACK TO s")?;
    other.run("UPDATE emp SET id = id + 1000")?;
    fetched(&mut wire, "outer", 2)?;
    assert_eq!(outcome(&mut wire)?, (0, Some("34000".to_string())));
    wire.run("ROLLBACK")?;
    Ok(())
}
