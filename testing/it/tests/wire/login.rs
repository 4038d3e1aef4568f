//! Passwords and encryption, through libpq's own client.

use anyhow::{Context, Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use std::path::Path;
use std::process::{Command, Output};

fn psql(server: &Basalt, connection: &str, password: &str, sql: &str) -> Result<Output> {
    let connection = format!("host=127.0.0.1 port={} dbname=basalt {connection}", server.addr.port());
    let mut command = Command::new("psql");
    command.args(["-X", "-A", "-t", "-v", "VERBOSITY=verbose", "-d", &connection, "-c", sql]);
    command.env("PGPASSWORD", password).env("PGCONNECT_TIMEOUT", "10").output().context("psql")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_with_a_password_needs_it() -> Result<()> {
    let server = Basalt::start()?;
    server.connect()?.run("CREATE USER guarded PASSWORD 'sécret pass'")?;
    let login = async |password: &str| {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(server.addr.port()).user("guarded").dbname("basalt").password(password);
        config.connect(tokio_postgres::NoTls).await
    };
    let (client, connection) = login("sécret pass").await?;
    tokio::spawn(connection);
    let user: String = client.query_one("SELECT current_user::text", &[]).await?.get(0);
    assert_eq!(user, "guarded");
    for wrong in ["secret", "", "sécret pass "] {
        let error = login(wrong).await.err().context("a wrong password was let in")?;
        // An empty password ends in the driver, before the server can refuse it.
        assert_eq!(error.code().map_or("28P01", |code| code.code()), "28P01", "{wrong:?}: {error}");
    }
    server.connect()?.run("ALTER USER guarded PASSWORD 'new'")?;
    assert!(login("sécret pass").await.is_err());
    drop(login("new").await?);
    let output = psql(&server, "user=guarded", "new", "SELECT 42")?;
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "42");
    Ok(())
}

#[test]
fn names_that_do_not_exist_are_refused() -> Result<()> {
    let server = Basalt::start()?;
    let refusal = |user: &str, database: &str| -> Result<String> {
        let wire = basalt_it::wire::Wire::try_connect(server.addr, user, database)?;
        Ok(wire.refused.map(|error| error.sqlstate().to_string()).unwrap_or_default())
    };
    assert_eq!(refusal("basalt", "nosuch")?, "3D000");
    assert_eq!(refusal("nosuch", "basalt")?, "28000");
    Ok(())
}

#[test]
fn encrypted_connections_are_offered_with_a_certificate() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    make_certificate(&certificate, &key)?;
    let options = BasaltOptions::default()
        .arg("--tls-cert")
        .arg(&certificate.display().to_string())
        .arg("--tls-key")
        .arg(&key.display().to_string());
    let server = Basalt::start_with(options)?;
    server.connect()?.run("CREATE USER guarded PASSWORD 'x'")?;
    for mode in ["require", "disable"] {
        let output = psql(&server, &format!("user=guarded sslmode={mode}"), "x", "SELECT repeat('y', 100000)")?;
        ensure!(output.stdout.len() == 100_001, "sslmode={mode}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let verified = format!("user=guarded sslmode=verify-ca sslrootcert={}", certificate.display());
    let output = psql(&server, &verified, "x", "SELECT 1")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plain = Basalt::start()?;
    let output = psql(&plain, "user=basalt sslmode=require", "", "SELECT 1")?;
    ensure!(!output.status.success(), "a server without certificate cannot encrypt");
    Ok(())
}

fn make_certificate(certificate: &Path, key: &Path) -> Result<()> {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-out")
        .arg(certificate)
        .arg("-keyout")
        .arg(key)
        .output()
        .context("openssl")?;
    ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}
