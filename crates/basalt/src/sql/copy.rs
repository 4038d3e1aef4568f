//! COPY with its data in the lines that follow the statement, or on standard output.

use super::lines::Lines;
use super::session::Session;
use super::tap::State;
use super::{Failed, Printer};
use crate::connect::describe_in;
use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use std::io::Write;
use tokio::sync::Notify;

/// Lines go to the server in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;
const END: &str = "\\.";

/// The driver runs COPY in the extended protocol, where a commit comes after its answer: what fails then would not
/// be heard of. In a block of its own the commit has an answer.
pub async fn in_block<T>(session: &Session, run: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    let execute = async |sql: &str| {
        session.client.batch_execute(sql).await.map_err(|error| Failed::Statement(describe_in(&error, sql)))
    };
    let own = session.heard.state() == State::Idle;
    if own {
        execute("BEGIN").await?;
    }
    let result = run.await;
    match (&result, own) {
        (Ok(_), true) => execute("COMMIT").await?,
        // The error of the COPY is what must be heard.
        (Err(_), true) => _ = execute("ROLLBACK").await,
        // So that what the server says at the end has been heard.
        (_, false) => _ = execute("").await,
    }
    result
}

/// Sends lines up to `\.` or the end of the input, unless it is stopped; returns the number of rows.
pub async fn copy_in(session: &Session, sql: &str, lines: &mut Lines, stop: &Notify) -> Result<u64, Failed> {
    let failed = |error: tokio_postgres::Error| Failed::Statement(describe_in(&error, sql));
    let sink = session.client.copy_in::<_, Bytes>(sql).await.map_err(failed)?;
    let mut sink = std::pin::pin!(sink);
    let typed = lines.are_typed();
    if typed {
        println!(
            "Enter data to be copied followed by a newline.\nEnd with a backslash and a period on a line by itself."
        );
    }
    let mut piece = Vec::new();
    let mut refused = None;
    loop {
        if typed {
            print!(">> ");
            std::io::stdout().flush().map_err(Failed::Print)?;
        }
        let line = tokio::select! {
            line = lines.next() => line.map_err(|error| Failed::Statement(format!("{error:#}")))?,
            // The sink is dropped, which fails the copy.
            () = stop.notified() => return Err(Failed::Statement("\nCOPY canceled: no row was taken".into())),
        };
        let line = line.filter(|line| line.trim_end_matches(['\n', '\r']) != END);
        let ended = line.is_none();
        piece.extend(line.unwrap_or_default().into_bytes());
        // What follows an error is still data, not SQL.
        if refused.is_none() && (ended || piece.len() >= PIECE_BYTES) && !piece.is_empty() {
            refused = sink.send(std::mem::take(&mut piece).into()).await.err();
        }
        if refused.is_some() {
            piece.clear();
        }
        if ended {
            break;
        }
    }
    // What the server objects to comes with the end of the copy.
    match (sink.finish().await, refused) {
        (Ok(_), Some(error)) | (Err(error), _) => Err(failed(error)),
        (Ok(rows), None) => Ok(rows),
    }
}

/// Prints the data as it is.
pub async fn copy_out(session: &Session, sql: &str, printer: &mut Printer) -> Result<(), Failed> {
    let failed = |error: tokio_postgres::Error| Failed::Statement(describe_in(&error, sql));
    let data = session.client.copy_out(sql).await.map_err(failed)?;
    let mut data = std::pin::pin!(data);
    while let Some(bytes) = data.try_next().await.map_err(failed)? {
        printer.raw(&bytes).map_err(Failed::Print)?;
    }
    Ok(())
}
