//! Start and stop: in order, twice, where it must not.

use anyhow::{Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions, free_addr};
use std::path::Path;
use std::time::{Duration, Instant};

/// Starts a server that must refuse: its exit code and what it wrote.
fn refused(dir: &Path, options: &BasaltOptions) -> Result<String> {
    let mut child = Basalt::command(dir, free_addr()?, options)?;
    let mut child = child.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn()?;
    let until = Instant::now() + Duration::from_secs(30);
    while child.try_wait()?.is_none() {
        if Instant::now() > until {
            child.kill()?;
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.code() == Some(1), "it ended with {}:\n{text}", output.status);
    ensure!(!text.contains("panicked"), "{text}");
    Ok(text)
}

#[test]
fn sigterm_lets_running_statements_finish() -> Result<()> {
    let mut server = Basalt::start()?;
    let (mut busy, mut idle, mut open) = (server.connect()?, server.connect()?, server.connect()?);
    busy.run("CREATE TABLE t (id int PRIMARY KEY)")?;
    open.run("BEGIN")?;
    open.run("INSERT INTO t VALUES (1)")?;
    busy.send_simple("SELECT 'done', count(*) FROM generate_series(1, 10000) a, generate_series(1, 1500) b")?;
    std::thread::sleep(Duration::from_millis(200));
    let reader = std::thread::spawn(move || (busy.answer(None), busy.receive().ok()));
    let status = server.terminate(Duration::from_secs(20))?;
    assert!(status.success(), "{status}: {}", server.log_tail());
    let (answer, _) = reader.join().expect("the reader lives");
    assert_eq!(answer?.last().text(0, 0), Some("done"));
    let (kind, body) = idle.receive()?;
    assert_eq!((kind, basalt_it::wire::fields(&body)?.sqlstate()), (b'E', "57P01"));
    server.start_again()?;
    let mut wire = server.connect()?;
    assert_eq!(wire.run("SELECT count(*) FROM t")?.text(0, 0), Some("0"));
    wire.run("INSERT INTO t VALUES (2)")?;
    server.terminate(Duration::from_secs(20))?;
    server.start_again()?;
    assert_eq!(server.connect()?.run("SELECT id FROM t")?.text(0, 0), Some("2"));
    Ok(())
}

#[test]
fn sigterm_ends_a_statement_that_does_not_end_by_itself() -> Result<()> {
    let mut server = Basalt::start()?;
    let mut busy = server.connect()?;
    busy.send_simple(
        "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 1000000) b WHERE (a + b) % 7 = 8",
    )?;
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    let reader = std::thread::spawn(move || {
        loop {
            let (kind, body) = busy.receive()?;
            if kind == b'E' {
                return Ok::<_, anyhow::Error>(basalt_it::wire::fields(&body)?.sqlstate().to_string());
            }
        }
    });
    // Statements have ten seconds to end by themselves.
    let status = server.terminate(Duration::from_secs(20))?;
    assert!(status.success(), "{status}: {}", server.log_tail());
    assert!(began.elapsed() < Duration::from_secs(12), "it took {:?} to end", began.elapsed());
    assert_eq!(reader.join().expect("the reader lives")?, "57P01");
    Ok(())
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() -> Result<()> {
    let mut server = Basalt::start()?;
    let said = refused(&server.dir, &BasaltOptions::default())?;
    ensure!(said.contains("in use") && said.contains(&server.dir.display().to_string()), "{said}");
    assert!(server.is_running());
    server.connect()?.run("SELECT 1")?;
    // A kill leaves nothing behind that would keep the next one out.
    server.kill_and_start()?;
    server.connect()?.run("SELECT 1")?;
    Ok(())
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() -> Result<()> {
    // As root every directory can be written, except where no file system allows it.
    let said = refused(Path::new("/proc/basalt-data"), &BasaltOptions::default())?;
    ensure!(said.contains("/proc/basalt-data"), "{said}");
    let file = tempfile::NamedTempFile::new()?;
    let said = refused(file.path(), &BasaltOptions::default())?;
    ensure!(said.contains(&file.path().display().to_string()), "{said}");
    Ok(())
}

#[test]
fn bad_settings_and_addresses_are_refused_in_one_line() -> Result<()> {
    let dir = tempfile::tempdir()?;
    for (setting, evidence) in [("nosuch=1", "nosuch"), ("basalt.memory_limit=much", "much"), ("novalue", "novalue")] {
        let said = refused(&dir.path().join("d"), &BasaltOptions::default().set(setting))?;
        ensure!(said.contains(evidence) && said.trim().lines().count() == 1, "{setting}: {said}");
    }
    // Everywhere, with a superuser that has no password.
    let everywhere = BasaltOptions::default();
    let mut command = Basalt::command(&dir.path().join("d"), "0.0.0.0:0".parse()?, &everywhere)?;
    let output = command.output()?;
    ensure!(output.status.code() == Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[test]
fn a_start_that_is_refused_leaves_no_directory_behind() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("d");
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let output = Basalt::command(&data, taken.local_addr()?, &BasaltOptions::default())?.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && said.matches("in use").count() == 1, "{said}");
    let tls = BasaltOptions::default().arg("--tls-cert").arg("/nosuch.pem").arg("--tls-key").arg("/nosuch.key");
    let said = refused(&data, &tls)?;
    ensure!(said.contains("/nosuch.pem") && said.matches("No such file").count() == 1, "{said}");
    let said = refused(&data, &BasaltOptions::default().arg("--log").arg("nonsense"))?;
    ensure!(said.contains("nonsense") && said.contains("trace"), "{said}");
    ensure!(!data.exists(), "a refused start made {}", data.display());
    Ok(())
}
