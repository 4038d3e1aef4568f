//! What a user of the database would see: each query again and again, how fresh it is, and where rows rest.
//!
//! Each watcher has its own connection, as users have, so that none waits for another.

use super::figures::{Answer, Shared, Storage};
use super::scene::Query;
use super::stream::Probe;
use crate::connect::describe;
use anyhow::{Result, anyhow};
use basalt_sched::Os;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_postgres::{Client, SimpleQueryMessage};

const INTERVAL: Duration = Duration::from_secs(1);
/// Between two measurements of freshness, and between two looks for the same row.
const PROBE_INTERVAL: Duration = Duration::from_millis(150);
const PROBE_POLL: Duration = Duration::from_millis(1);

const STORAGE: &str = "SELECT \
    (SELECT coalesce(sum(hot_rows), 0) FROM basalt.tablets), (SELECT coalesce(sum(hot_bytes), 0) FROM basalt.tablets), \
    (SELECT coalesce(sum(rows - deleted_rows), 0) FROM basalt.files), (SELECT count(*) FROM basalt.files), \
    (SELECT coalesce(sum(bytes), 0) FROM basalt.files)";

/// Asks the scene's query at position `at` each second.
pub async fn ask(os: Os, shared: Arc<Shared>, client: Client, query: Query, at: usize) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    while !shared.stopped() {
        ticks.tick().await;
        let last_key = shared.figures().key;
        if last_key == 0 && query.sql.contains("{key}") {
            continue;
        }
        let key = some_key(&os, last_key);
        let sql = query.sql.replace("{key}", &key.to_string());
        let began = os.clock.monotonic();
        let result = rows(&client, &sql).await;
        let latency = os.clock.monotonic() - began;
        if shared.stopped() {
            return;
        }
        shared.figures().answers[at] = match result {
            Ok((columns, rows)) => Answer { latency: Some(latency), columns, rows, error: None },
            Err(error) => Answer { error: Some(format!("{error:#}")), ..Answer::default() },
        };
    }
}

/// Any of the keys that are visible: keys of what `{key}` is used for have no gaps.
fn some_key(os: &Os, last_key: i64) -> i64 {
    1 + (os.random.next_u64() % last_key.max(1) as u64) as i64
}

async fn rows(client: &Client, sql: &str) -> Result<(Vec<String>, Vec<Vec<String>>)> {
    let messages = client.simple_query(sql).await.map_err(|error| anyhow!("{}", describe(&error)))?;
    let (mut columns, mut rows) = (Vec::new(), Vec::new());
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(description) => {
                columns = description.iter().map(|column| column.name().to_string()).collect();
            }
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|at| row.get(at).unwrap_or("null").to_string()).collect());
            }
            _ => {}
        }
    }
    Ok((columns, rows))
}

/// Takes a row when it is generated and looks for it until a query sees it.
pub async fn freshness(
    os: Os,
    shared: Arc<Shared>,
    client: Client,
    sql: &'static str,
    mut probes: watch::Receiver<Probe>,
) {
    let failed = |error: tokio_postgres::Error| anyhow!("{}", describe(&error)).context("measuring freshness");
    let statement = match client.prepare(sql).await {
        Ok(statement) => statement,
        Err(error) => return shared.fail(&failed(error)),
    };
    while probes.changed().await.is_ok() {
        let probe = *probes.borrow_and_update();
        loop {
            match client.query_opt(&statement, &[&probe.key]).await {
                Ok(Some(_)) => break,
                Ok(None) => tokio::time::sleep(PROBE_POLL).await,
                Err(error) => return shared.fail(&failed(error)),
            }
            if shared.stopped() {
                return;
            }
        }
        let freshness = os.clock.monotonic() - probe.generated;
        shared.figures().add_freshness(freshness);
        tokio::time::sleep(PROBE_INTERVAL).await;
        // What was generated meanwhile is no longer new.
        probes.borrow_and_update();
    }
}

/// Each second: the rate, and where rows rest.
pub async fn storage(shared: Arc<Shared>, client: Client) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.tick().await;
    while !shared.stopped() {
        ticks.tick().await;
        shared.figures().end_of_second();
        match storage_now(&client).await {
            Ok(storage) => shared.figures().storage = storage,
            Err(error) => return shared.fail(&error.context("asking for the state of the storage")),
        }
    }
}

async fn storage_now(client: &Client) -> Result<Storage> {
    let (_, rows) = rows(client, STORAGE).await?;
    let number = |at: usize| rows.first().and_then(|row| row.get(at)?.parse().ok());
    let numbers: Option<Vec<u64>> = (0..5).map(number).collect();
    let [hot_rows, hot_bytes, cold_rows, files, file_bytes] = numbers
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| anyhow!("expected five numbers, found {rows:?}"))?;
    Ok(Storage { hot_rows, hot_bytes, cold_rows, files, file_bytes })
}
