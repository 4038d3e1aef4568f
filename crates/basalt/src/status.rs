//! `basalt status`: what a running server says of itself, over HTTP and SQL.

use crate::cli::StatusArgs;
use crate::connect;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::SimpleQueryMessage;

const TIMEOUT: Duration = Duration::from_secs(5);
/// An answer of /health or /metrics is far shorter.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

pub fn run(args: StatusArgs) -> Result<()> {
    let mut out = String::new();
    let told = connect::runtime()?.block_on(tell(&args, &mut out));
    match std::io::stdout().write_all(out.as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.context("cannot print")?,
    }
    told
}

/// Writes down what is known, as far as the server answers.
async fn tell(args: &StatusArgs, out: &mut String) -> Result<()> {
    let health = get(&args.http, "/health").await?;
    let health: serde_json::Value = serde_json::from_str(&health).context("/health gave no JSON")?;
    let mut told = BTreeSet::new();
    for (name, value) in health.as_object().into_iter().flatten() {
        told.insert(name.clone());
        // What is well goes without saying.
        if value.is_null() || value.as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        writeln!(out, "{:<24} {value}", name.replace('_', " "))?;
    }
    let metrics = get(&args.http, "/metrics").await?;
    for line in metrics.lines().filter(|line| line.starts_with("basalt_")) {
        if let Some((name, value)) = line.rsplit_once(' ') {
            let name = name.trim_start_matches("basalt_").trim_end_matches("_total");
            if told.insert(name.to_string()) {
                writeln!(out, "{:<24} {value}", name.replace('_', " "))?;
            }
        }
    }
    let client = connect::connect(&args.connect).await?;
    tables(&client, out).await
}

async fn tables(client: &tokio_postgres::Client, out: &mut String) -> Result<()> {
    let sql = "SELECT t.schema_name, t.table_name, sum(t.hot_rows), coalesce(sum(f.rows), 0), \
               pg_size_pretty(coalesce(sum(f.bytes), 0)) \
               FROM (SELECT schema_name, table_name, table_oid, sum(hot_rows) hot_rows FROM basalt.tablets \
                     GROUP BY 1, 2, 3) t \
               LEFT JOIN (SELECT table_oid, sum(rows) rows, sum(bytes) bytes FROM basalt.files GROUP BY 1) f \
               USING (table_oid) GROUP BY 1, 2 ORDER BY 1, 2";
    let messages = client.simple_query(sql).await.map_err(|error| anyhow!("{}", connect::describe(&error)))?;
    writeln!(out, "\ntables:")?;
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let cell = |at: usize| row.get(at).unwrap_or("?");
            let name = format!("{}.{}", cell(0), cell(1));
            writeln!(out, "  {name:<30} {} rows hot, {} in files of {}", cell(2), cell(3), cell(4))?;
        }
    }
    Ok(())
}

/// The body of a page. HTTP/1.0, so that the server ends it by closing.
async fn get(host: &str, path: &str) -> Result<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(host).await?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(TIMEOUT, exchange)
        .await
        .map_err(|_| anyhow!("http://{host}{path}: no answer within {TIMEOUT:?}"))?
        .with_context(|| format!("cannot reach http://{host}{path}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| anyhow!("http://{host}{path}: no HTTP answer"))?;
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") && path != "/health" {
        bail!("http://{host}{path}: {status}");
    }
    Ok(body.to_string())
}
