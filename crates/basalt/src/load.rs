//! `basalt load`: files into a table over the wire, in one transaction.
//!
//! A thread reads and encodes; the connection sends. Ctrl-C, an error or a lost connection leave the table
//! as it was.

mod source;

use crate::cli::LoadArgs;
use crate::connect::{self, describe};
use anyhow::{Context, Result, anyhow, bail};
use basalt_ingest::FileColumn;
use basalt_sched::Os;
use basalt_types::DataType;
use futures::SinkExt;
use indicatif::{ProgressBar, ProgressStyle};
use source::{Piece, Source};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

/// Pieces that are ready to be sent: bounds the memory of a slow connection.
const PIECES_WAITING: usize = 8;

pub fn run(args: LoadArgs) -> Result<()> {
    let os = Os::real();
    let sources = args.files.iter().map(|path| Source::open(&*os.fs, path, &args)).collect::<Result<Vec<_>>>()?;
    connect::runtime()?.block_on(async {
        let client = connect::connect(&args.connect).await?;
        let began = os.clock.monotonic();
        let progress = Progress::new(&os, sources.iter().map(Source::bytes).sum());
        let loaded = tokio::select! {
            loaded = load(&client, &args, sources, &progress) => loaded,
            _ = tokio::signal::ctrl_c() => {
                // The transaction ends with the connection; canceling only makes it end sooner.
                let _ = client.cancel_token().cancel_query(NoTls).await;
                Err(anyhow!("interrupted"))
            }
        };
        progress.bar.finish_and_clear();
        let rows = loaded.context("nothing was loaded")?;
        let took = (os.clock.monotonic() - began).as_secs_f64();
        // As the server knows it.
        let table = quote_table(&args.table).replace('"', "");
        println!("{rows} rows loaded into {table} in {took:.1} s ({:.0} rows/s)", rows as f64 / took.max(1e-3));
        Ok(())
    })
}

struct Progress {
    bar: ProgressBar,
    os: Os,
    began: Duration,
}

impl Progress {
    fn new(os: &Os, bytes: u64) -> Progress {
        let template = "{wide_bar} {percent:>3} %  {msg}  {eta} left";
        let style = ProgressStyle::with_template(template).expect("the template is constant");
        let bar = ProgressBar::new(bytes).with_style(style);
        Progress { bar, os: os.clone(), began: os.clock.monotonic() }
    }

    fn add(&self, bytes: u64, rows: u64) {
        let seconds = (self.os.clock.monotonic() - self.began).as_secs_f64();
        self.bar.set_message(format!("{rows} rows, {:.0} rows/s", rows as f64 / seconds.max(1e-3)));
        self.bar.inc(bytes);
    }
}

async fn load(client: &Client, args: &LoadArgs, sources: Vec<Source>, progress: &Progress) -> Result<u64> {
    let table = quote_table(&args.table);
    execute(client, "BEGIN").await?;
    if args.create {
        let columns = sources[0].columns()?;
        execute(client, &create_table(&table, &columns, &args.primary_key)?).await?;
    }
    let target = table_columns(client, &table).await?;
    let (mut rows, mut seen) = (0, 0);
    for source in sources {
        rows += copy(client, &table, &target, source, progress, &mut seen).await?;
    }
    execute(client, "COMMIT").await?;
    Ok(rows)
}

async fn execute(client: &Client, sql: &str) -> Result<()> {
    client.batch_execute(sql).await.map_err(|error| anyhow!("{}", describe(&error)))
}

/// Names and types of the table's columns, as the server tells them.
async fn table_columns(client: &Client, table: &str) -> Result<Vec<(String, DataType)>> {
    let statement =
        client.prepare(&format!("SELECT * FROM {table}")).await.map_err(|error| anyhow!("{}", describe(&error)))?;
    let columns = statement.columns().iter().map(|column| {
        let ty = basalt_ingest::column::type_of_oid(column.type_().oid()).ok_or_else(|| {
            anyhow!("column \"{}\" has type {}, which cannot be loaded", column.name(), column.type_())
        })?;
        Ok((column.name().to_string(), ty))
    });
    columns.collect()
}

/// Sends one file; returns its rows.
async fn copy(
    client: &Client,
    table: &str,
    target: &[(String, DataType)],
    source: Source,
    progress: &Progress,
    seen: &mut u64,
) -> Result<u64> {
    let path = source.path().display().to_string();
    let chosen = source.match_columns(target)?;
    let sql = source.copy_statement(table, chosen.as_deref());
    let sink = client.copy_in(&sql).await.map_err(|error| anyhow!("{path}: {}", describe(&error)))?;
    let mut sink = std::pin::pin!(sink);
    let (pieces, mut received) = tokio::sync::mpsc::channel::<basalt_ingest::Result<Piece>>(PIECES_WAITING);
    std::thread::spawn(move || source.read_into(chosen.unwrap_or_default(), &pieces));
    while let Some(piece) = received.recv().await {
        let piece = piece?;
        *seen += piece.rows;
        progress.add(piece.progress_bytes, *seen);
        if let Err(error) = sink.send(piece.bytes).await {
            // What the server objects to comes with the end of the copy.
            let reason = sink.finish().await.err().unwrap_or(error);
            bail!("{path}: {}", describe(&reason));
        }
    }
    sink.finish().await.map_err(|error| anyhow!("{path}: {}", describe(&error)))
}

fn create_table(table: &str, columns: &[FileColumn], primary_key: &[String]) -> Result<String> {
    let mut parts: Vec<String> = columns
        .iter()
        .map(|column| {
            let not_null = if column.nullable { "" } else { " NOT NULL" };
            format!("{} {}{not_null}", quote(&column.name), column.ty.sql_name())
        })
        .collect();
    if !primary_key.is_empty() {
        if let Some(missing) = primary_key.iter().find(|key| !columns.iter().any(|column| column.name == **key)) {
            bail!("--primary-key {missing}: the file has no such column");
        }
        let key: Vec<String> = primary_key.iter().map(|column| quote(column)).collect();
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    Ok(format!("CREATE TABLE IF NOT EXISTS {table} ({})", parts.join(", ")))
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// As SQL reads it: parts without quotes are in lower case.
fn quote_table(table: &str) -> String {
    let parts = table.split('.').map(|part| match part.starts_with('"') {
        true => part.to_string(),
        false => quote(&part.to_lowercase()),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// A file's column and the table's that it goes to.
pub struct Chosen {
    pub position: usize,
    pub name: String,
    pub ty: DataType,
}

/// Finds each of the file's columns in the table, if need be in another case.
fn match_columns(path: &str, names: &[String], target: &[(String, DataType)]) -> Result<Vec<Chosen>> {
    let find = |name: &String| {
        let exact = target.iter().find(|(column, _)| column == name);
        exact.or_else(|| target.iter().find(|(column, _)| column.eq_ignore_ascii_case(name)))
    };
    let chosen = names.iter().enumerate().map(|(position, name)| match find(name) {
        Some((name, ty)) => Ok(Chosen { position, name: name.clone(), ty: ty.clone() }),
        None => Err(anyhow!("{path}: the table has no column \"{name}\"")),
    });
    chosen.collect()
}

/// Shared by threads that only read.
type Pieces = tokio::sync::mpsc::Sender<basalt_ingest::Result<Piece>>;
type SharedOptions = Arc<basalt_ingest::CsvOptions>;

#[cfg(test)]
mod tests;
