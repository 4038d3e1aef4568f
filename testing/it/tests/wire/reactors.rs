//! Connections that go from one reactor to another take everything with them.

use crate::damage::get;
use anyhow::{Context, Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions, free_addr};
use basalt_it::wire::Wire;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const CLIENTS: usize = 2;
const CONNECTIONS: usize = 8;
/// How long a busy machine may take until a connection moves.
const PATIENCE: Duration = Duration::from_secs(60);

fn moves(http: SocketAddr) -> Result<u64> {
    let page = get(http, "/metrics")?;
    let line = page.lines().find_map(|line| line.strip_prefix("basalt_connection_moves_total "));
    Ok(line.context("no count of moves")?.parse()?)
}

/// A connection in the middle of everything: settings, a prepared statement, a table of its own, a transaction that
/// holds a row.
fn begin(server: &Basalt, number: usize) -> Result<Wire> {
    let mut wire = server.connect()?;
    wire.run(&format!("SET application_name = 'client {number}'"))?;
    wire.run(&format!("CREATE TEMP TABLE mine AS SELECT {number} AS n"))?;
    wire.run(&format!("LISTEN news_{number}"))?;
    wire.prepare("get", "SELECT v + $1 FROM t WHERE id = $2")?;
    wire.run("BEGIN")?;
    wire.run(&format!("UPDATE t SET v = -v WHERE id = {number}"))?;
    Ok(wire)
}

fn check(wire: &mut Wire, number: usize, other: &mut Wire) -> Result<()> {
    assert_eq!(wire.run("SHOW application_name")?.text(0, 0), Some(format!("client {number}").as_str()));
    assert_eq!(wire.run("SELECT n FROM mine")?.text(0, 0), Some(number.to_string().as_str()));
    wire.run("COMMIT")?;
    other.run(&format!("NOTIFY news_{number}, 'all of them'"))?;
    let heard = wire.next_notified()?;
    ensure!(heard.payload == "all of them", "{}", heard.payload);
    Ok(())
}

#[test]
fn connections_that_move_keep_all_they_have() -> Result<()> {
    if std::thread::available_parallelism()?.get() == 1 {
        // There is one reactor then.
        return Ok(());
    }
    let http = free_addr()?;
    let server = Basalt::start_with(BasaltOptions::default().arg("--http").arg(&http.to_string()))?;
    let mut admin = server.connect()?;
    admin.run("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)")?;
    admin.run("INSERT INTO t SELECT g, 1000 * g FROM generate_series(0, 15) g")?;
    let began = Instant::now();
    let work = |client: usize| -> Result<()> {
        let numbers = || (client..CLIENTS * CONNECTIONS).step_by(CLIENTS);
        let mut wires = numbers().map(|number| begin(&server, number)).collect::<Result<Vec<_>>>()?;
        for round in 0.. {
            for (wire, number) in wires.iter_mut().zip(numbers()) {
                wire.send_execute("get", &[round.to_string(), number.to_string()])?;
            }
            for (wire, number) in wires.iter_mut().zip(numbers()) {
                let answer = wire.answer(None)?;
                let expected = round - 1000 * number as i64;
                assert_eq!(answer.last().text(0, 0), Some(expected.to_string().as_str()), "client {number}");
            }
            if round % 1000 == 999 && moves(http)? > 0 {
                break;
            }
            ensure!(began.elapsed() < PATIENCE, "nobody moved in {round} rounds");
        }
        let mut other = server.connect()?;
        wires.iter_mut().zip(numbers()).try_for_each(|(wire, number)| check(wire, number, &mut other))
    };
    std::thread::scope(|scope| {
        let work = &work;
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || work(client))).collect();
        clients.into_iter().try_for_each(|client| client.join().expect("a client lives"))
    })?;
    assert_eq!(admin.run("SELECT sum(v) FROM t")?.text(0, 0), Some("-120000"));
    Ok(())
}
