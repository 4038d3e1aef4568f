//! From the scene's source into the server: a thread generates at the asked rate, a connection sends.
//!
//! Each batch is one transaction. Between the two stands a short queue: if the server is slower than the rate,
//! the generator waits, and freshness tells.

use super::figures::Shared;
use super::scene::{Batch, Source};
use crate::connect::describe;
use anyhow::{Context, Result, anyhow};
use basalt_sched::Os;
use futures::SinkExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_postgres::Client;

/// So many transactions per second, if the rate and the source let it.
const BATCHES_PER_SECOND: u64 = 20;
const BATCH_ROWS_MAX: u64 = 10_000;
const BATCHES_WAITING: usize = 2;
const PAUSE_POLL: Duration = Duration::from_millis(20);
/// Whoever is behind by more does not try to catch up.
const BEHIND_MAX: Duration = Duration::from_secs(1);

/// A row on its way, for whoever measures how long it takes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Probe {
    pub key: i64,
    /// Monotonic time at which the generation of its batch began.
    pub generated: Duration,
}

/// From [`generate`] to [`send`].
pub fn queue() -> (mpsc::Sender<Batch>, mpsc::Receiver<Batch>) {
    mpsc::channel(BATCHES_WAITING)
}

/// Generates until the demonstration stops or the source fails.
pub fn generate(
    os: &Os,
    shared: &Shared,
    mut source: Box<dyn Source>,
    rate: u64,
    batches: mpsc::Sender<Batch>,
    probes: watch::Sender<Probe>,
) {
    let rows_wanted = if rate == 0 { BATCH_ROWS_MAX } else { (rate / BATCHES_PER_SECOND).clamp(1, BATCH_ROWS_MAX) };
    let mut due = os.clock.monotonic();
    while !shared.stopped() {
        let now = os.clock.monotonic();
        if shared.paused() {
            os.clock.sleep(PAUSE_POLL);
            due = now;
            continue;
        }
        if now < due {
            os.clock.sleep((due - now).min(PAUSE_POLL));
            continue;
        }
        if now > due + BEHIND_MAX {
            due = now;
        }
        let batch = match source.next_batch(rows_wanted) {
            Ok(batch) => batch,
            Err(error) => return shared.fail(&error),
        };
        if let Some(nanos) = (batch.rows() * 1_000_000_000).checked_div(rate) {
            due += Duration::from_nanos(nanos);
        }
        probes.send_replace(Probe { key: batch.key, generated: now });
        if batches.blocking_send(batch).is_err() {
            return;
        }
    }
}

/// Sends what is generated until there is no more.
pub async fn send(shared: Arc<Shared>, client: Client, mut batches: mpsc::Receiver<Batch>) {
    while let Some(batch) = batches.recv().await {
        if let Err(error) = send_batch(&client, &batch).await {
            return shared.fail(&error.context("the stream ended"));
        }
        let mut figures = shared.figures();
        figures.rows_in += batch.rows();
        figures.transactions += 1;
        figures.key = figures.key.max(batch.key);
        figures.round = batch.round;
    }
}

async fn send_batch(client: &Client, batch: &Batch) -> Result<()> {
    let failed = |error: tokio_postgres::Error| anyhow!("{}", describe(&error));
    client.batch_execute("BEGIN").await.map_err(failed)?;
    for copy in &batch.copies {
        let sink = client.copy_in(copy.sql).await.map_err(failed)?;
        let mut sink = std::pin::pin!(sink);
        if let Err(error) = sink.send(copy.bytes.clone()).await {
            // What the server objects to comes with the end of the copy.
            let reason = sink.finish().await.err().unwrap_or(error);
            return Err(failed(reason)).context(copy.sql);
        }
        sink.finish().await.map_err(failed).context(copy.sql)?;
    }
    client.batch_execute("COMMIT").await.map_err(failed)
}
