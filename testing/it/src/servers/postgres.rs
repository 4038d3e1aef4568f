//! PostgreSQL 15 in a temporary directory, without fsync, with a superuser named as Basalt's. Text
//! compares by bytes there too; upper and lower know all letters.

use super::free_addr;
use crate::wire::Wire;
use anyhow::{Context, Result, bail, ensure};
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(60);

pub struct Postgres {
    child: Child,
    pub addr: SocketAddr,
    dir: tempfile::TempDir,
}

impl Postgres {
    pub fn start() -> Result<Postgres> {
        let bin = PathBuf::from(std::env::var("PG_BIN").unwrap_or_else(|_| "/usr/lib/postgresql/15/bin".into()));
        ensure!(bin.join("initdb").exists(), "PostgreSQL 15 is not in {} (make deps-test)", bin.display());
        let dir = tempfile::Builder::new().prefix("basalt-it-pg-").tempdir()?;
        let owner = owner(dir.path())?;
        let data = dir.path().join("data");
        let made = command(&bin.join("initdb"), owner)
            .args([
                "-U",
                "basalt",
                "-A",
                "trust",
                "--locale=C",
                "--lc-ctype=C.UTF-8",
                "--encoding=UTF8",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .current_dir(dir.path())
            .output()?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let addr = free_addr()?;
        let log = std::fs::File::create(dir.path().join("log"))?;
        let child = command(&bin.join("postgres"), owner)
            .arg("-D")
            .arg(&data)
            .args(["-h", "127.0.0.1", "-p", &addr.port().to_string()])
            .args(["-c", "fsync=off", "-c", "unix_socket_directories=", "-c", "timezone=UTC"])
            .args(["-c", "autovacuum=off", "-c", "log_timezone=UTC", "-c", "temp_file_limit=2GB"])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting postgres")?;
        let mut server = Postgres { child, addr, dir };
        let until = Instant::now() + START_TIMEOUT;
        loop {
            if Wire::connect(addr, "basalt", "postgres").is_ok() {
                break;
            }
            if Instant::now() > until || server.child.try_wait()?.is_some() {
                let log = std::fs::read_to_string(server.dir.path().join("log")).unwrap_or_default();
                bail!("postgres did not start:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// An empty database `basalt`, whatever was in it before.
    pub fn empty_database(&self) -> Result<()> {
        let mut wire = Wire::connect(self.addr, "basalt", "postgres")?;
        wire.run("DROP DATABASE IF EXISTS basalt WITH (FORCE)")?;
        let roles = wire.run("SELECT rolname FROM pg_roles WHERE rolname <> 'basalt' AND rolname !~ '^pg_'")?;
        for row in 0..roles.rows.len() {
            wire.run(&format!("DROP ROLE {}", roles.text(row, 0).unwrap_or_default()))?;
        }
        wire.run("CREATE DATABASE basalt")?;
        Ok(())
    }

    pub fn connect(&self) -> Result<Wire> {
        Wire::connect(self.addr, "basalt", "basalt")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGQUIT ends the whole family of processes at once, which SIGKILL of the parent does not.
        let stopped = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        if !stopped.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// PostgreSQL refuses to run as root: then it runs as `postgres`, who gets the directory.
fn owner(dir: &Path) -> Result<Option<(u32, u32)>> {
    use std::os::unix::fs::MetadataExt;
    if std::fs::metadata(dir)?.uid() != 0 {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("postgres:")).context("there is no user postgres")?;
    let mut ids = line.split(':').skip(2).map(str::parse);
    let (Some(Ok(uid)), Some(Ok(gid))) = (ids.next(), ids.next()) else { bail!("/etc/passwd: {line}") };
    chown(dir, Some(uid), Some(gid))?;
    Ok(Some((uid, gid)))
}

fn command(program: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = owner {
        command.uid(uid).gid(gid);
    }
    command.env("LC_ALL", "C").env_remove("PGDATA");
    command
}
