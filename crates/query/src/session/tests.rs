//! Statements end to end over an engine in a temporary directory.

use super::*;
use crate::database::DatabaseConfig;
use arrow_array::RecordBatch;
use basalt_engine::{Engine, EngineConfig};
use basalt_sched::Os;
use std::future::Future;

mod durable_answers;

struct Place {
    db: Arc<Database>,
    _dir: tempfile::TempDir,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(Os::real(), EngineConfig::new(dir.path().join("data")), &|_| {}).unwrap();
    let db = Database::new(engine, Os::real(), DatabaseConfig::new(dir.path().join("tmp"))).unwrap();
    Place { db, _dir: dir }
}

fn open(place: &Place) -> Session {
    let params = StartupParams { user: "basalt".into(), database: "basalt".into(), ..StartupParams::default() };
    Session::open(&place.db, params).unwrap()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn show(columns: &[ResultColumn], batch: &RecordBatch, eval: &EvalContext, out: &mut String) {
    for row in 0..batch.num_rows() {
        let cells: Vec<String> = columns
            .iter()
            .zip(batch.columns())
            .map(|(column, array)| {
                let mut text = Vec::new();
                match basalt_expr::io::text::format_cell(&column.ty, array, row, eval, &mut text).unwrap() {
                    true => String::from_utf8(text).unwrap(),
                    false => "null".into(),
                }
            })
            .collect();
        out.push_str(&format!("({}) ", cells.join(",")));
    }
}

/// Runs a message; rows, tags and notices, or the error.
async fn try_run(session: &mut Session, sql: &str) -> Result<String> {
    let mut out = String::new();
    let result = run_into(session, sql, &mut out).await;
    let ended = session.finish_simple().await;
    result.and(ended)?;
    for notice in session.take_notices() {
        out.push_str(&format!("{}: {} ", notice.severity.name(), notice.message));
    }
    Ok(out.trim_end().to_string())
}

async fn run_into(session: &mut Session, sql: &str, out: &mut String) -> Result<()> {
    for parsed in session.parse_simple(sql)? {
        match session.run_simple(&parsed).await? {
            Outcome::Empty => {}
            Outcome::Command { tag } => out.push_str(&format!("{tag} ")),
            Outcome::Rows(mut rows) => {
                let eval = session.formats();
                while let Some(batch) = rows.next(session).await? {
                    show(&rows.columns, &batch, &eval, out);
                }
                out.push_str(&format!("{} ", rows.tag()));
            }
            Outcome::CopyIn(copy) => {
                out.push_str(&format!("copy in {} ", copy.columns));
                session.copy_fail(copy, "no data").await;
            }
            Outcome::CopyOut(mut copy) => {
                while let Some(bytes) = copy.next(session).await? {
                    out.push_str(std::str::from_utf8(bytes.bytes()).unwrap());
                }
                out.push_str(&format!("{} ", copy.tag()));
            }
        }
    }
    Ok(())
}

async fn run(session: &mut Session, sql: &str) -> String {
    match try_run(session, sql).await {
        Ok(out) => out,
        Err(error) => match error.detail {
            Some(detail) => format!("{} {} | {detail}", error.sqlstate, error.message),
            None => format!("{} {}", error.sqlstate, error.message),
        },
    }
}

/// Each pair is a message and what it gives, in one session.
fn check(steps: &[(&str, &str)]) {
    let place = place();
    block_on(async {
        let mut session = open(&place);
        for (sql, expect) in steps {
            assert_eq!(run(&mut session, sql).await, *expect, "{sql}");
        }
    });
}

async fn copy_in(session: &mut Session, sql: &str, chunks: &[&str]) -> String {
    let parsed = session.parse_simple(sql).unwrap().remove(0);
    let mut copy = match session.run_simple(&parsed).await {
        Ok(Outcome::CopyIn(copy)) => copy,
        Ok(_) => panic!("{sql} takes no data"),
        Err(error) => return format!("{} {}", error.sqlstate, error.message),
    };
    let mut result = Ok(());
    for chunk in chunks {
        result = session.copy_data(&mut copy, Bytes::copy_from_slice(chunk.as_bytes())).await;
        if result.is_err() {
            break;
        }
    }
    let result = match result {
        Ok(()) => session.copy_done(copy).await,
        Err(error) => Err(error),
    };
    let ended = session.finish_simple().await;
    match result.and_then(|tag| ended.map(|()| tag)) {
        Ok(tag) => tag,
        Err(error) => format!("{} {} | {}", error.sqlstate, error.message, error.context.unwrap_or_default()),
    }
}

use bytes::Bytes;

#[test]
fn rows_are_inserted_changed_and_deleted() {
    check(&[
        ("CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, n numeric(8,2) DEFAULT 1.5)", "CREATE TABLE"),
        ("INSERT INTO t VALUES (1, 'a', 2), (2, 'b', DEFAULT)", "INSERT 0 2"),
        ("INSERT INTO t (id, name) VALUES (3, 'c')", "INSERT 0 1"),
        ("SELECT * FROM t ORDER BY id", "(1,a,2.00) (2,b,1.50) (3,c,1.50) SELECT 3"),
        (
            "INSERT INTO t VALUES (1, 'x', 0)",
            "23505 duplicate key value violates unique constraint \"t_pkey\" | Key (id)=(1) already exists.",
        ),
        (
            "INSERT INTO t VALUES (4, NULL, 0)",
            "23502 null value in column \"name\" of relation \"t\" violates not-null constraint | Failing row contains (4, null, 0.00).",
        ),
        ("UPDATE t SET n = n + 1 WHERE id = 1", "UPDATE 1"),
        ("UPDATE t SET name = name || '!' WHERE n < 2", "UPDATE 2"),
        ("DELETE FROM t WHERE id = 2", "DELETE 1"),
        ("DELETE FROM t WHERE id = 99", "DELETE 0"),
        ("SELECT * FROM t ORDER BY id", "(1,a,3.00) (3,c!,1.50) SELECT 2"),
        ("INSERT INTO t SELECT id + 10, name, n FROM t", "INSERT 0 2"),
        ("SELECT count(*) FROM t", "(4) SELECT 1"),
        ("TRUNCATE t", "TRUNCATE TABLE"),
        ("SELECT count(*) FROM t", "(0) SELECT 1"),
        ("DROP TABLE t; SELECT * FROM t", "42P01 relation \"t\" does not exist"),
    ]);
}

#[test]
fn transactions_follow_postgresql() {
    check(&[
        ("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE"),
        ("BEGIN; INSERT INTO t VALUES (1); ROLLBACK", "BEGIN INSERT 0 1 ROLLBACK"),
        ("SELECT count(*) FROM t", "(0) SELECT 1"),
        (
            "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)",
            "23505 duplicate key value violates unique constraint \"t_pkey\" | Key (id)=(1) already exists.",
        ),
        ("SELECT count(*) FROM t", "(0) SELECT 1"),
        ("BEGIN", "BEGIN"),
        ("BEGIN", "BEGIN WARNING: there is already a transaction in progress"),
        ("INSERT INTO t VALUES (1)", "INSERT 0 1"),
        ("SAVEPOINT a", "SAVEPOINT"),
        (
            "INSERT INTO t VALUES (1)",
            "23505 duplicate key value violates unique constraint \"t_pkey\" | Key (id)=(1) already exists.",
        ),
        ("SELECT 1", "25P02 current transaction is aborted, commands ignored until end of transaction block"),
        ("ROLLBACK TO a", "ROLLBACK"),
        ("INSERT INTO t VALUES (2)", "INSERT 0 1"),
        ("RELEASE a", "RELEASE"),
        ("COMMIT", "COMMIT"),
        ("COMMIT", "COMMIT WARNING: there is no transaction in progress"),
        ("SELECT id FROM t ORDER BY id", "(1) (2) SELECT 2"),
        ("BEGIN READ ONLY; DELETE FROM t", "25006 cannot execute DELETE in a read-only transaction"),
        ("COMMIT", "ROLLBACK"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE; SHOW transaction_isolation", "BEGIN (serializable) SHOW"),
        ("ROLLBACK", "ROLLBACK"),
        ("SAVEPOINT a", "25P01 SAVEPOINT can only be used in transaction blocks"),
        ("BEGIN; SET LOCAL statement_timeout = 5000; SHOW statement_timeout", "BEGIN SET (5s) SHOW"),
        ("COMMIT; SHOW statement_timeout", "COMMIT (0) SHOW"),
    ]);
}

#[test]
fn definitions_change_the_catalog() {
    check(&[
        ("CREATE TABLE t (a int, b text)", "CREATE TABLE"),
        ("CREATE TABLE t (a int)", "42P07 relation \"t\" already exists"),
        ("CREATE TABLE IF NOT EXISTS t (a int)", "CREATE TABLE NOTICE: relation \"t\" already exists, skipping"),
        ("CREATE TABLE u (a int) WITH (speed = 9)", "22023 unrecognized parameter \"speed\""),
        ("INSERT INTO t VALUES (2, 'x'), (1, 'y')", "INSERT 0 2"),
        ("ALTER TABLE t ADD COLUMN c int DEFAULT 7", "ALTER TABLE"),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", "ALTER TABLE"),
        ("SELECT * FROM t WHERE a = 1", "(1,y,7) SELECT 1"),
        (
            "INSERT INTO t VALUES (1, 'z')",
            "23505 duplicate key value violates unique constraint \"t_pkey\" | Key (a)=(1) already exists.",
        ),
        ("ALTER TABLE t DROP COLUMN b, RENAME COLUMN c TO d", "42601 syntax error at or near \"RENAME\""),
        ("ALTER TABLE t DROP COLUMN b", "ALTER TABLE"),
        ("SELECT * FROM t ORDER BY a", "(1,7) (2,7) SELECT 2"),
        ("CREATE VIEW v AS SELECT a FROM t", "CREATE VIEW"),
        ("SELECT * FROM v ORDER BY a", "(1) (2) SELECT 2"),
        ("DROP TABLE t", "2BP01 cannot drop table t because other objects depend on it | view v depends on table t"),
        ("DROP TABLE t CASCADE", "DROP TABLE NOTICE: drop cascades to view v"),
        ("DROP TABLE t", "42P01 table \"t\" does not exist"),
        ("DROP TABLE IF EXISTS t", "DROP TABLE NOTICE: table \"t\" does not exist, skipping"),
        ("CREATE SCHEMA s; CREATE TABLE s.x AS SELECT 1 AS one, 'b'::text AS two", "CREATE SCHEMA SELECT 1"),
        ("SELECT * FROM s.x", "(1,b) SELECT 1"),
        ("DROP SCHEMA s CASCADE", "DROP SCHEMA NOTICE: drop cascades to table s.x"),
        ("CREATE TABLE d (a int)", "CREATE TABLE"),
        ("INSERT INTO d VALUES (1), (1)", "INSERT 0 2"),
        (
            "ALTER TABLE d ADD PRIMARY KEY (a)",
            "23505 could not create unique index \"d_pkey\" | Key (a)=(1) is duplicated.",
        ),
        ("CREATE INDEX i ON d (a)", "CREATE INDEX"),
        ("CREATE ROLE r LOGIN PASSWORD 'x'", "CREATE ROLE"),
        ("DROP ROLE r", "DROP ROLE"),
        ("VACUUM d", "VACUUM"),
        ("CHECKPOINT", "CHECKPOINT"),
    ]);
}

#[test]
fn copy_goes_both_ways() {
    let place = place();
    block_on(async {
        let mut session = open(&place);
        run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, name text, n int DEFAULT 5)").await;
        assert_eq!(copy_in(&mut session, "COPY t (id, name) FROM STDIN", &["1\ta\n2", "\t\\N\n"]).await, "COPY 2");
        let bad = copy_in(&mut session, "COPY t (id, name) FROM STDIN CSV", &["3,c\nx,d\n"]).await;
        assert_eq!(bad, "22P02 invalid input syntax for type integer: \"x\" | COPY t, line 2, column id: \"x\"");
        assert!(copy_in(&mut session, "COPY t (id) FROM STDIN", &["4\n1\n"]).await.starts_with("23505 duplicate key"));
        assert_eq!(run(&mut session, "COPY t TO STDOUT").await, "1\ta\t5\n2\t\\N\t5\nCOPY 2");
        assert_eq!(
            run(&mut session, "COPY (SELECT id FROM t ORDER BY id DESC) TO STDOUT (FORMAT csv, HEADER)").await,
            "id\n2\n1\nCOPY 2"
        );
        assert_eq!(run(&mut session, "COPY t FROM STDIN").await, "copy in 3");
        assert_eq!(run(&mut session, "SELECT count(*) FROM t").await, "(2) SELECT 1");
    });
}

#[test]
fn prepared_statements_and_cursors_keep_their_rows() {
    check(&[
        ("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE"),
        ("INSERT INTO t VALUES (1), (2), (3)", "INSERT 0 3"),
        ("PREPARE q (int) AS SELECT id FROM t WHERE id >= $1 ORDER BY id", "PREPARE"),
        ("EXECUTE q (2)", "(2) (3) SELECT 2"),
        (
            "EXECUTE q",
            "42601 wrong number of parameters for prepared statement \"q\" | Expected 1 parameters but got 0.",
        ),
        ("DEALLOCATE q; EXECUTE q (1)", "26000 prepared statement \"q\" does not exist"),
        ("BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id", "BEGIN DECLARE CURSOR"),
        ("FETCH 2 FROM c", "(1) (2) FETCH 2"),
        ("FETCH ALL FROM c", "(3) FETCH 1"),
        ("COMMIT; FETCH c", "34000 cursor \"c\" does not exist"),
    ]);
}

#[test]
fn extended_protocol_runs_portals_in_parts() {
    let place = place();
    block_on(async {
        let mut session = open(&place);
        run(&mut session, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)").await;
        session.prepare("s", "SELECT id FROM t WHERE id > $1 ORDER BY id", &[]).await.unwrap();
        let (types, columns) = session.describe_statement("s").unwrap();
        assert_eq!((types, columns.unwrap().len()), (vec![basalt_types::DataType::Int4], 1));
        session.bind("", "s", &[Some(b"0")], &[], &[]).unwrap();
        let mut seen = Vec::new();
        loop {
            let Outcome::Rows(mut rows) = session.execute("", 2).await.unwrap() else { panic!("rows") };
            let mut count = 0;
            while let Some(batch) = rows.next(&mut session).await.unwrap() {
                count += batch.num_rows();
            }
            seen.push(count);
            if !rows.suspended() {
                break;
            }
        }
        assert_eq!(seen, [2, 1]);
        session.sync().await.unwrap();
        let error = session.prepare("bad", "SELECT nothing FROM t", &[]).await.unwrap_err();
        assert_eq!(error.sqlstate, "42703");
        session.sync().await.unwrap();
        assert_eq!(session.status(), TransactionStatus::Idle);
    });
}

#[test]
fn a_running_statement_can_be_ended() {
    let place = place();
    block_on(async {
        let (mut holder, mut waiter) = (open(&place), open(&place));
        run(&mut holder, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").await;
        run(&mut holder, "BEGIN; UPDATE t SET id = 1").await;
        run(&mut waiter, "SET statement_timeout = 50").await;
        let waited = run(&mut waiter, "DELETE FROM t WHERE id = 1").await;
        assert_eq!(waited, "57014 canceling statement due to statement timeout");
        run(&mut waiter, "SET statement_timeout = 0").await;
        let (pid, secret) = waiter.backend_key();
        let (ended, ()) = tokio::join!(run(&mut waiter, "DELETE FROM t WHERE id = 1"), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            place.db.cancel(pid, secret.wrapping_add(1));
            place.db.cancel(pid, secret);
        });
        assert_eq!(ended, "57014 canceling statement due to user request");
        run(&mut waiter, "SET lock_timeout = 50").await;
        assert!(run(&mut waiter, "DELETE FROM t WHERE id = 1").await.starts_with("55P03"));
        run(&mut holder, "COMMIT").await;
        assert_eq!(run(&mut waiter, "DELETE FROM t WHERE id = 1").await, "DELETE 1");
    });
}

#[test]
fn explain_takes_parameters_of_the_types_that_were_given() {
    let place = place();
    block_on(async {
        let mut session = open(&place);
        run(&mut session, "CREATE TABLE t (id int PRIMARY KEY)").await;
        session.prepare("s", "EXPLAIN SELECT * FROM t WHERE id = $1", &[21]).await.unwrap();
        session.bind("", "s", &[Some(&[0, 1])], &[1], &[]).unwrap();
        let Outcome::Rows(mut rows) = session.execute("", 0).await.unwrap() else { panic!("rows") };
        assert!(rows.next(&mut session).await.unwrap().is_some_and(|batch| batch.num_rows() > 0));
    });
}

#[test]
fn errors_point_at_their_place_and_tell_what_was_perhaps_meant() {
    let place = place();
    let cases = [
        ("SELECT othr FROM t", 8, Some("Perhaps you meant to reference the column \"t.other\"."), "42703"),
        (
            "SELECT x.unique3 FROM t x",
            8,
            Some("Perhaps you meant to reference the column \"x.unique1\" or the column \"x.unique2\"."),
            "42703",
        ),
        ("SELECT t.other FROM t x", 8, Some("Perhaps you meant to reference the table alias \"x\"."), "42P01"),
        (
            "SELECT 1 FROM t, (SELECT t.other) s",
            26,
            Some("There is an entry for table \"t\", but it cannot be referenced from this part of the query."),
            "42P01",
        ),
        (
            "SELECT 1 FROM t, (SELECT other) s",
            26,
            Some(
                "There is a column named \"other\" in table \"t\", but it cannot be referenced from this part of the \
                 query.",
            ),
            "42703",
        ),
        ("SELECT nothing_like_it FROM t", 8, None, "42703"),
        ("SELECT CASE WHEN true THEN 1 ELSE 'x' END", 35, None, "22P02"),
        ("SELECT 1 UNION SELECT 'x'", 23, None, "22P02"),
        ("SELECT 1, 2 UNION SELECT 3", 26, None, "42601"),
        ("SELECT sum(sum(other)) FROM t", 12, None, "42803"),
        ("SELECT 1 = (SELECT 1, 2)", 12, None, "42601"),
        ("SELECT other IN (SELECT 1, 2) FROM t", 14, None, "42601"),
        ("SELECT 2 ^-1", 10, None, "42883"),
        ("SELECT sum(other) OVER (ORDER BY other ROWS 1 FOLLOWING) FROM t", 45, None, "42P20"),
        ("CREATE TABLE u (a int, b nothing)", 26, None, "42704"),
        ("CREATE TABLE u (a int PRIMARY KEY, b int PRIMARY KEY)", 42, None, "42P16"),
        ("INSERT INTO t (unique1, unique2) VALUES (1)", 25, None, "42601"),
    ];
    block_on(async {
        let mut session = open(&place);
        run(&mut session, "CREATE TABLE t (unique1 int, unique2 int, other int)").await;
        for (sql, position, hint, sqlstate) in cases {
            let error = match session.prepare("", sql, &[]).await {
                Err(error) => error,
                Ok(()) => {
                    session.bind("", "", &[], &[], &[]).unwrap();
                    session.execute("", 0).await.err().unwrap()
                }
            };
            session.sync().await.unwrap();
            assert_eq!((error.position, error.sqlstate), (Some(position), sqlstate), "{sql}: {error}");
            if hint.is_some() || sqlstate == "42703" {
                assert_eq!(error.hint.as_deref(), hint, "{sql}");
            }
        }
    });
}

/// Rows as text.
#[derive(Default)]
struct Told {
    rows: Vec<Vec<String>>,
    cell: Vec<u8>,
}

impl Told {
    fn put(&mut self, cell: String) {
        self.rows.last_mut().expect("a row was begun").push(cell);
    }
}

impl crate::row::RowSink for Told {
    fn describe(&mut self, _: &[ResultColumn]) {}

    fn mark(&self) -> usize {
        self.rows.len()
    }

    fn back_to(&mut self, mark: usize) {
        self.rows.truncate(mark);
    }

    fn begin_row(&mut self, _: usize) {
        self.rows.push(Vec::new());
    }

    fn begin_cell(&mut self) -> &mut Vec<u8> {
        self.cell.clear();
        &mut self.cell
    }

    fn end_cell(&mut self) -> Result<()> {
        let cell = String::from_utf8_lossy(&self.cell).into_owned();
        self.put(cell);
        Ok(())
    }

    fn null(&mut self) {
        self.put("null".into());
    }

    fn end_row(&mut self) -> Result<()> {
        Ok(())
    }

    fn drop_row(&mut self) {
        self.rows.pop();
    }
}

#[test]
fn what_hardly_waits_runs_where_its_message_is_read() {
    block_on(async {
        let place = place();
        let mut session = open(&place);
        for sql in [
            "CREATE TABLE t (id int PRIMARY KEY, v int, n serial)",
            "INSERT INTO t VALUES (1, 1)",
            "CREATE TABLE parent (id int PRIMARY KEY)",
            "CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent)",
            "INSERT INTO parent VALUES (1)",
        ] {
            run(&mut session, sql).await;
        }
        for (sql, expected) in [
            ("SELECT 1, 2 + 3", Some("1,5")),
            ("SELECT repeat('x', 3 + pg_backend_pid() * 0)", None),
            ("SELECT v FROM t WHERE id = 1", Some("1")),
            ("SELECT v FROM t WHERE id = 1 FOR UPDATE", Some("1")),
            ("SELECT v FROM t ORDER BY v FOR UPDATE", None),
            ("INSERT INTO t VALUES (10, 1)", Some("")),
            ("INSERT INTO t VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + 6 RETURNING v", Some("7")),
            ("INSERT INTO t SELECT 10, 1", None),
            ("UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v, null::int", Some("2,null")),
            ("UPDATE t SET v = v + 1 WHERE v = 1", None),
            ("UPDATE t SET v = length(set_config('a.b', 'c', true)) WHERE id = 1", None),
            ("DELETE FROM t WHERE id = 1", Some("")),
            ("DELETE FROM parent WHERE id = 2", None),
            ("INSERT INTO child VALUES (1, 1)", None),
        ] {
            session.prepare("s", sql, &[]).await.unwrap();
            run(&mut session, "BEGIN").await;
            session.bind("", "s", &[], &[], &[]).unwrap();
            drop(session.execute("", 0).await.unwrap());
            run(&mut session, "ROLLBACK").await;
            run(&mut session, "BEGIN").await;
            session.bind("", "s", &[], &[], &[]).unwrap();
            let mut told = Told::default();
            let ended = session.execute_inline("", &mut told).transpose().unwrap();
            let told = told.rows.iter().map(|row| row.join(",")).collect::<Vec<_>>().join(" ");
            assert_eq!(ended.map(|_| told).as_deref(), expected, "{sql}");
            run(&mut session, "ROLLBACK").await;
            session.close_statement("s");
        }
        for verb in ["BEGIN", "START TRANSACTION"] {
            session.prepare("", &format!("{verb} ISOLATION LEVEL SERIALIZABLE"), &[]).await.unwrap();
            session.bind("", "", &[], &[], &[]).unwrap();
            let ended = session.execute_inline("", &mut Told::default()).unwrap().unwrap();
            assert_eq!((ended.verb, ended.rows), (verb, None));
            assert_eq!(run(&mut session, "SHOW transaction_isolation").await, "(serializable) SHOW");
            // It warns, and is left to who does that.
            session.bind("", "", &[], &[], &[]).unwrap();
            assert!(session.execute_inline("", &mut Told::default()).is_none());
            run(&mut session, "ROLLBACK").await;
        }
    });
}

#[test]
fn known_texts_are_written_where_their_message_is_read() {
    block_on(async {
        let place = place();
        let mut session = open(&place);
        for sql in [
            "CREATE TABLE t (id int PRIMARY KEY, v int, n numeric(8, 2), w varchar(4))",
            "CREATE TABLE parent (id int PRIMARY KEY)",
            "CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent)",
            "INSERT INTO parent VALUES (2)",
        ] {
            run(&mut session, sql).await;
        }
        // The first comes by itself, of the second the text is learnt, the third is known.
        for (texts, expected) in [
            (["INSERT INTO t VALUES (1, 1, 1.5, 'a')", "INSERT INTO t VALUES (2, 1, 1.25, 'b')"], Some("INSERT 0 1: ")),
            (
                [
                    "INSERT INTO t (id, v) VALUES (11, 1), (12, -2) RETURNING id",
                    "INSERT INTO t (id, v) VALUES (13, 1), (14, -2) RETURNING id",
                ],
                Some("INSERT 0 2: 13 14"),
            ),
            (["UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE t SET v = v + 2 WHERE id = 1"], Some("UPDATE 1: ")),
            (
                [
                    "UPDATE t SET v = -v * 15, w = 'x' WHERE id = 1 AND v > 0 RETURNING v, w",
                    "UPDATE t SET v = -v * 20, w = 'yz' WHERE id = 1 AND v > 1 RETURNING v, w",
                ],
                Some("UPDATE 1: -40,yz"),
            ),
            (
                [
                    "SELECT v, w FROM t WHERE id = 11 AND v < 2 FOR UPDATE NOWAIT",
                    "SELECT v, w FROM t WHERE id = 13 AND v < 3 FOR UPDATE NOWAIT",
                ],
                Some("SELECT 1: 1,null"),
            ),
            (["DELETE FROM t WHERE id = 98", "DELETE FROM t WHERE id = 1"], Some("DELETE 1: ")),
            // What fails is told elsewhere.
            (["INSERT INTO t VALUES (3, 1, 1.5, 'a')", "INSERT INTO t VALUES (3, 1, 1.5, 'a')"], None),
            (["UPDATE t SET w = 'fits' WHERE id = 2", "UPDATE t SET w = 'too long' WHERE id = 2"], None),
            (["UPDATE t SET v = 1 WHERE v = 1", "UPDATE t SET v = 2 WHERE v = 1"], None),
            (["SELECT v + 1 FROM t WHERE id = 1 FOR UPDATE", "SELECT v + 2 FROM t WHERE id = 2 FOR UPDATE"], None),
            (
                [
                    "SELECT pg_try_advisory_lock(id) FROM t WHERE id = 1 FOR UPDATE",
                    "SELECT pg_try_advisory_lock(id) FROM t WHERE id = 2 FOR UPDATE",
                ],
                None,
            ),
            (["SELECT v FROM t WHERE v = 1 FOR UPDATE", "SELECT v FROM t WHERE v = 2 FOR UPDATE"], None),
            (["INSERT INTO child VALUES (1, 2)", "INSERT INTO child VALUES (2, 2)"], None),
            (["UPDATE t SET v = length('a') WHERE id = 1", "UPDATE t SET v = length('ab') WHERE id = 1"], None),
        ] {
            let [before, text] = texts;
            for _ in 0..2 {
                run(&mut session, "BEGIN").await;
                let inline = session.query_inline(before, &mut Told::default());
                if inline.is_none() {
                    run(&mut session, before).await;
                }
                run(&mut session, "ROLLBACK").await;
            }
            if text == before {
                run(&mut session, before).await;
            }
            let mut told = Told::default();
            let done = session.query_inline(text, &mut told);
            let rows = told.rows.iter().map(|row| row.join(",")).collect::<Vec<_>>().join(" ");
            let ended = done.as_ref().map(|done| done.ended.as_ref().unwrap());
            let said = ended.map(|ended| format!("{} {}: {rows}", ended.verb, ended.rows.unwrap()));
            assert_eq!(said.as_deref(), expected, "{text}");
            assert_eq!(done.is_some_and(|done| done.commits), expected.is_some(), "{text}");
            if expected.is_none() {
                assert!(told.rows.is_empty(), "{text}");
                // Nothing has happened, and it can be run.
                let _ = try_run(&mut session, text).await;
            }
            session.finish_simple().await.unwrap();
            if text.contains("t VALUES (2") {
                run(&mut session, "INSERT INTO t VALUES (1, 0, 1.5, 'a')").await;
            }
        }
        assert_eq!(run(&mut session, "SELECT sum(id * 100 + v) FROM t").await, "(3204) SELECT 1");
    });
}

#[test]
fn no_plan_of_the_row_engine_outlives_its_setting() {
    block_on(async {
        let place = place();
        let mut session = open(&place);
        run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, v int)").await;
        run(&mut session, "INSERT INTO t VALUES (1, 1)").await;
        let texts =
            ["SELECT v FROM t WHERE id = 1", "SELECT v FROM t WHERE id = 1 FOR UPDATE", "DELETE FROM t WHERE id = 2"];
        for sql in texts {
            session.prepare(sql, sql, &[]).await.unwrap();
        }
        for enabled in ["on", "off", "on", "off"] {
            run(&mut session, &format!("SET basalt.enable_row_engine = {enabled}")).await;
            for sql in texts {
                let mut inline = Vec::new();
                for _ in 0..2 {
                    session.bind("", sql, &[], &[], &[]).unwrap();
                    inline.push(session.execute_inline("", &mut Told::default()).is_some());
                    if inline.ends_with(&[false]) {
                        drop(session.execute("", 0).await.unwrap());
                    }
                    session.sync().await.unwrap();
                }
                assert_eq!(inline, [false, enabled == "on"], "{sql}, {enabled}");
            }
            // A text is planned when it comes for the second time.
            session.query_inline(texts[0], &mut Told::default());
            let known = session.query_inline(texts[0], &mut Told::default()).and_then(|done| done.ended.unwrap().rows);
            assert_eq!(known, (enabled == "on").then_some(1), "{enabled}");
        }
    });
}
