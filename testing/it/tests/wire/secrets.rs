//! What a role may not read, or set, is neither told nor done by the way.

use anyhow::Result;
use basalt_it::servers::Basalt;
use basalt_it::wire::Wire;

/// A superuser's session, and one of a role that may do nothing yet.
fn two(server: &Basalt) -> Result<(Wire, Wire)> {
    let mut admin = server.connect()?;
    admin.run("CREATE ROLE eve LOGIN")?;
    let eve = Wire::connect(server.addr, "eve", "basalt")?;
    Ok((admin, eve))
}

#[test]
fn errors_show_what_their_reader_may_read() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut eve) = two(&server)?;
    admin.run("CREATE TABLE s (id int PRIMARY KEY, secret text UNIQUE, b int NOT NULL CHECK (b > 0))")?;
    admin.run("INSERT INTO s VALUES (1, 'topsecret', 1), (2, 'other', 1)")?;
    admin.run("CREATE TABLE c (secret text REFERENCES s (secret))")?;
    admin.run("INSERT INTO c VALUES ('topsecret')")?;
    admin.run("GRANT UPDATE, DELETE ON s TO eve")?;
    let failing = [
        "UPDATE s SET b = NULL",
        "UPDATE s SET b = -1",
        "UPDATE s SET id = 1",
        "UPDATE s SET secret = 'same'",
        "DELETE FROM s",
    ];
    for sql in failing {
        let answer = eve.simple(sql, None)?;
        let error = answer.error().expect("it fails");
        assert!(!format!("{error:?}").contains("topsecret"), "{sql}: {error:?}");
        let of_admin = admin.simple(sql, None)?;
        assert_eq!(of_admin.sqlstate(), Some(error.sqlstate()), "{sql}");
        assert!(!of_admin.error().expect("it fails").get(b'D').is_empty(), "{sql}");
    }
    admin.run("GRANT SELECT (id) ON s TO eve")?;
    let answer = eve.simple("UPDATE s SET b = NULL WHERE id = 2", None)?;
    assert_eq!(answer.error().map(|error| error.get(b'D')), Some("Failing row contains (id) = (2)."));
    let of_admin = admin.simple("UPDATE s SET b = NULL WHERE id = 2", None)?;
    assert_eq!(of_admin.error().map(|error| error.get(b'D')), Some("Failing row contains (2, other, null)."));
    Ok(())
}

#[test]
fn a_barrier_is_one() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut eve) = two(&server)?;
    admin.run("CREATE TABLE docs (id int PRIMARY KEY, owner text, secret text)")?;
    admin.run("INSERT INTO docs VALUES (1, 'eve', '17'), (2, 'bob', 'topsecret')")?;
    for option in ["security_barrier", "security_barrier = TRUE"] {
        admin.run(&format!(
            "CREATE VIEW v WITH ({option}) AS SELECT id, secret FROM docs WHERE lower(owner) = current_user"
        ))?;
        admin.run("GRANT SELECT, UPDATE, DELETE ON v TO eve")?;
        for _ in 0..3 {
            assert_eq!(eve.run("SELECT id FROM v WHERE secret::int > 3")?.text(0, 0), Some("1"));
            let joined = "SELECT count(*) FROM v JOIN v w USING (id) WHERE v.secret::int > 3 AND w.secret::int > 3";
            assert_eq!(eve.run(joined)?.text(0, 0), Some("1"));
            let below = "SELECT (SELECT count(*) FROM v WHERE v.id = x AND secret::int > 3) \
                         FROM generate_series(1, 2) x ORDER BY x";
            assert_eq!(eve.run(below)?.text(1, 0), Some("0"));
        }
        assert_eq!(eve.simple("DELETE FROM v WHERE secret::int > 3", None)?.sqlstate(), Some("0A000"));
        admin.run("DROP VIEW v")?;
    }
    Ok(())
}

#[test]
fn a_refresh_sets_nothing_for_who_asks_for_it() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut eve) = two(&server)?;
    admin.run("CREATE SCHEMA evil AUTHORIZATION eve")?;
    eve.run("CREATE MATERIALIZED VIEW evil.m AS SELECT set_config('search_path', 'evil', false) WITH NO DATA")?;
    eve.run("CREATE MATERIALIZED VIEW evil.r AS SELECT set_config('role', 'eve', false) WITH NO DATA")?;
    let before = admin.run("SHOW search_path")?;
    for view in ["m", "r"] {
        let _ = admin.simple(&format!("REFRESH MATERIALIZED VIEW evil.{view}"), None)?;
    }
    assert_eq!(admin.run("SHOW search_path")?.text(0, 0), before.text(0, 0));
    assert_eq!(admin.run("SELECT current_user")?.text(0, 0), Some("basalt"));
    Ok(())
}

#[test]
fn what_superusers_have_set_for_a_role_stays() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut eve) = two(&server)?;
    admin.run("ALTER ROLE eve SET log_statement = 'all'")?;
    admin.run("ALTER ROLE eve SET work_mem = '5MB'")?;
    for change in ["RESET log_statement", "SET log_statement TO DEFAULT", "SET log_statement FROM CURRENT"] {
        assert_eq!(eve.simple(&format!("ALTER ROLE eve {change}"), None)?.sqlstate(), Some("42501"), "{change}");
    }
    eve.run("ALTER ROLE eve RESET ALL")?;
    let left = admin.run("SELECT array_to_string(setconfig, ',') FROM pg_db_role_setting")?;
    assert_eq!(left.text(0, 0), Some("log_statement=all"));
    Ok(())
}

#[test]
fn schemas_are_given_to_roles_that_their_maker_is_in() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut eve) = two(&server)?;
    admin.run("GRANT CREATE ON DATABASE basalt TO eve")?;
    assert_eq!(eve.simple("CREATE SCHEMA x AUTHORIZATION basalt", None)?.sqlstate(), Some("42501"));
    eve.run("CREATE SCHEMA x AUTHORIZATION eve")?;
    let addr =
        eve.run("SELECT count(*) FROM pg_stat_activity WHERE usename = 'basalt' AND backend_start IS NOT NULL")?;
    assert_eq!(addr.text(0, 0), Some("0"));
    let costly = "ALTER ROLE eve PASSWORD 'SCRAM-SHA-256$4294967295:c2FsdA==$\
                  AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='";
    eve.run(costly)?;
    let kept = admin.run("SELECT rolpassword FROM pg_authid WHERE rolname = 'eve'")?;
    assert!(kept.text(0, 0).is_some_and(|kept| kept.starts_with("SCRAM-SHA-256$4096:")), "{kept:?}");
    Ok(())
}
