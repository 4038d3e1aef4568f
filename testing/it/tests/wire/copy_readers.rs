//! A million rows by COPY while others read: every reader sees all of them or none.

use anyhow::{Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ROWS: usize = 1_000_000;

#[test]
fn readers_see_a_copy_whole_or_not_at_all() -> Result<()> {
    let server = Basalt::start_with(BasaltOptions::default())?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE c (id int PRIMARY KEY, g int, x text) WITH (tablets = 4)")?;
    wire.run("INSERT INTO c VALUES (-1, 0, 'before')")?;
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (done, mut wire) = (done.clone(), server.connect()?);
            Ok(std::thread::spawn(move || -> Result<(usize, usize)> {
                let (mut before, mut after) = (0, 0);
                loop {
                    let last = done.load(Ordering::SeqCst);
                    let reply = wire.run("SELECT count(*), sum(g::bigint), count(DISTINCT g) FROM c")?;
                    match reply.text(0, 0).unwrap_or_default().parse::<usize>()? {
                        1 => before += 1,
                        count => {
                            ensure!(count == ROWS + 1, "a reader saw {count} rows");
                            ensure!(reply.text(0, 1) == Some("499999500000"), "{:?}", reply.text(0, 1));
                            after += 1;
                        }
                    }
                    let point = wire.run("SELECT count(*) FROM c WHERE id IN (0, 500000, 999999)")?;
                    let count = point.text(0, 0).unwrap_or_default();
                    ensure!(count == "0" || count == "3", "a reader saw {count} of 3 rows");
                    ensure!(after == 0 || count == "3", "rows were seen and then not");
                    if last {
                        return Ok((before, after));
                    }
                }
            }))
        })
        .collect::<Result<_>>()?;
    let mut data = String::with_capacity(ROWS * 24);
    for id in 0..ROWS {
        data.push_str(&format!("{id},{id},row {}\n", id % 1000));
    }
    let answer = wire.simple("COPY c FROM STDIN (FORMAT csv)", Some(data.as_bytes()))?;
    done.store(true, Ordering::SeqCst);
    assert_eq!(answer.last().tag.as_deref(), Some("COPY 1000000"), "{:?}", answer.error());
    for reader in readers {
        let (before, after) = reader.join().expect("the reader lives")?;
        println!("a reader looked {before} times before and {after} times after");
        ensure!(before > 0 && after > 0, "it looked {before} times before, {after} after");
    }
    // Once more, failing at the last row: nothing of it stays.
    let mut again = data.replace("row", "again");
    again = again.lines().enumerate().map(|(i, line)| format!("{},{line}\n", i + 2 * ROWS)).take(100_000).collect();
    let again = again.lines().map(|line| line.rsplit_once(',').map_or("", |(head, _)| head).to_string() + "\n");
    let again: String = again.chain(["0,0,0\n".to_string()]).collect();
    let answer = wire.simple("COPY c FROM STDIN (FORMAT csv)", Some(again.as_bytes()))?;
    assert_eq!(answer.sqlstate(), Some("23505"));
    assert_eq!(wire.run("SELECT count(*) FROM c")?.text(0, 0), Some("1000001"));
    Ok(())
}
