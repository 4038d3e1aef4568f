//! Damaged files: said precisely, never served, never a crash.

use anyhow::{Context, Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions, free_addr};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Result<Home> {
        Ok(Home { dir: tempfile::tempdir()? })
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn start(&self) -> Result<Basalt> {
        Basalt::start_on(&self.data(), &self.dir.path().join("log"), BasaltOptions::default())
    }

    /// The start fails; what it said.
    fn refusal(&self) -> Result<String> {
        match self.start() {
            Ok(_) => anyhow::bail!("it starts on a damaged directory"),
            Err(error) => Ok(format!("{error:#}")),
        }
    }
}

fn flip(path: &Path, at: usize) -> Result<()> {
    let mut bytes = std::fs::read(path)?;
    ensure!(at < bytes.len(), "{} has {} bytes", path.display(), bytes.len());
    bytes[at] ^= 0x20;
    Ok(std::fs::write(path, bytes)?)
}

fn files(dir: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if extension.is_empty() || path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A page of the HTTP port.
pub fn get(http: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(http)?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

#[test]
fn a_damaged_root_is_named() -> Result<()> {
    let home = Home::new()?;
    home.start()?.terminate(Duration::from_secs(20))?;
    let root = home.data().join("root");
    flip(&root, 20)?;
    let said = home.refusal()?;
    ensure!(said.contains("root") && said.contains("checksum"), "{said}");
    flip(&root, 20)?;
    home.start()?.connect()?.run("SELECT 1")?;
    Ok(())
}

#[test]
fn a_newer_format_is_refused_by_name() -> Result<()> {
    let home = Home::new()?;
    home.start()?.terminate(Duration::from_secs(20))?;
    let root = home.data().join("root");
    let mut bytes = std::fs::read(&root)?;
    bytes[8] = 99;
    std::fs::write(&root, bytes)?;
    let said = home.refusal()?;
    ensure!(said.contains("newer") && said.contains("99"), "{said}");
    Ok(())
}

#[test]
fn a_damaged_checkpoint_is_named() -> Result<()> {
    let home = Home::new()?;
    let mut server = home.start()?;
    server.connect()?.run("CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 1000) g")?;
    server.terminate(Duration::from_secs(20))?;
    let checkpoints = files(&home.data().join("files"), "ckpt")?;
    let newest = checkpoints.last().context("there is no checkpoint")?;
    flip(newest, 30)?;
    let said = home.refusal()?;
    let name = newest.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    ensure!(said.contains(name) || said.contains("checksum"), "{said}");
    Ok(())
}

/// A bad record with good ones behind it is damage; a cut end is what a power cut leaves.
#[test]
fn a_damaged_log_is_not_taken_for_its_end() -> Result<()> {
    let home = Home::new()?;
    let mut server = home.start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, x text)")?;
    for id in 0..300 {
        wire.run(&format!("INSERT INTO t VALUES ({id}, repeat('marker{id}', 20))"))?;
    }
    server.kill()?;
    let logs = files(&home.data().join("log"), "")?;
    let needle = b"marker150marker150";
    let mut hit = None;
    for log in &logs {
        let bytes = std::fs::read(log)?;
        if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle) {
            hit = Some((log.clone(), at));
        }
    }
    let (log, at) = hit.context("the row is not in the log")?;
    flip(&log, at + 3)?;
    let said = home.refusal()?;
    let name = log.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
    ensure!(said.contains(&name) || said.contains("log"), "{said}");
    flip(&log, at + 3)?;
    let server = home.start()?;
    assert_eq!(server.connect()?.run("SELECT count(*) FROM t")?.text(0, 0), Some("300"));
    Ok(())
}

#[test]
fn a_damaged_segment_fails_its_query_alone() -> Result<()> {
    let home = Home::new()?;
    let mut server = home.start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, x text)")?;
    wire.run("INSERT INTO t SELECT g, 'value ' || md5(g::text) FROM generate_series(1, 50000) g")?;
    wire.run("CREATE TABLE fine (id int PRIMARY KEY)")?;
    wire.run("INSERT INTO fine VALUES (1)")?;
    wire.run("VACUUM t")?;
    server.terminate(Duration::from_secs(20))?;
    let segments = files(&home.data().join("files"), "seg")?;
    ensure!(!segments.is_empty(), "nothing was frozen");
    for segment in &segments {
        // Somewhere in the pages of the text column.
        let length = std::fs::metadata(segment)?.len() as usize;
        for part in 2..8 {
            flip(segment, length * part / 10)?;
        }
    }
    let http = free_addr()?;
    let options = BasaltOptions::default().arg("--http").arg(&http.to_string());
    // Either the start names the file, or the query does.
    let mut server = match Basalt::start_on(&home.data(), &home.dir.path().join("log"), options) {
        Ok(server) => server,
        Err(error) => {
            let said = format!("{error:#}");
            ensure!(said.contains(".seg"), "{said}");
            return Ok(());
        }
    };
    let mut wire = server.connect()?;
    let answer = wire.simple("SELECT count(*), max(x), sum(length(x)) FROM t", None)?;
    let error = answer.error().context("a damaged file was read without an error")?;
    assert_eq!(error.sqlstate(), "XX001", "{}", error.message());
    ensure!(error.message().contains(".seg"), "{}", error.message());
    assert_eq!(wire.run("SELECT id FROM fine")?.text(0, 0), Some("1"));
    assert!(server.is_running());
    let log = server.log_tail();
    let logged = log.lines().any(|line| line.contains("ERROR") && line.contains("damaged") && line.contains(".seg"));
    ensure!(logged, "{log}");
    let health = get(http, "/health")?;
    ensure!(health.contains("\"degraded\"") && health.contains(".seg"), "{health}");
    let metrics = get(http, "/metrics")?;
    ensure!(metrics.contains("\nbasalt_corruption_errors_total 1\n"), "{metrics}");
    Ok(())
}
