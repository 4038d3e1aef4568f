//! `basalt sql`: a small client that prints results. Ctrl-C cancels the running statement.

mod input;
mod print;

use crate::cli::SqlArgs;
use crate::connect::{self, describe};
use anyhow::{Context, Result, anyhow, bail};
use basalt_sched::Os;
use futures::TryStreamExt;
use input::Statements;
use print::{Printer, Style};
use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Statements that take longer than this say how long they took.
const WORTH_TELLING: Duration = Duration::from_millis(100);

const HELP: &str = "\
Statements end with a semicolon and may span lines. Ctrl-C cancels, Ctrl-D leaves.
  \\d          list tables and views
  \\d NAME     describe a table or view
  \\l          list databases
  \\timing     tell how long every statement takes, or stop telling
  \\q          leave
";

pub fn run(args: SqlArgs) -> Result<()> {
    let os = Os::real();
    let mut texts = args.command.clone();
    for path in &args.file {
        let bytes = os.fs.read(path).with_context(|| format!("cannot read {}", path.display()))?;
        texts.push(String::from_utf8(bytes).map_err(|_| anyhow!("{} is not UTF-8 text", path.display()))?);
    }
    let style = if args.csv { Style::Csv } else { Style::Aligned };
    connect::runtime()?.block_on(async {
        let client = connect::connect(&args.connect).await?;
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
        let mut shell = Shell { client, os, style, interrupt, timing: false };
        match texts.is_empty() {
            false => shell.run_texts(&texts).await,
            true => shell.run_input().await,
        }
    })
}

struct Shell {
    client: Client,
    os: Os,
    style: Style,
    interrupt: Signal,
    timing: bool,
}

impl Shell {
    /// Stops at the first error.
    async fn run_texts(&mut self, texts: &[String]) -> Result<()> {
        for text in texts {
            let mut statements = Statements::default();
            statements.push(text);
            let mut all: Vec<String> = statements.by_ref().collect();
            all.extend(statements.rest());
            for statement in all {
                if let Err(error) = self.execute(&statement).await? {
                    bail!("{error}");
                }
            }
        }
        Ok(())
    }

    /// Reads statements from standard input; at a terminal, goes on after an error.
    async fn run_input(&mut self) -> Result<()> {
        let interactive = std::io::stdin().is_terminal();
        let (lines, mut received) = tokio::sync::mpsc::channel(16);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                if lines.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        if interactive {
            println!("Basalt {}. \\? for help.", env!("CARGO_PKG_VERSION"));
        }
        let mut statements = Statements::default();
        loop {
            if interactive {
                print!("{}", if statements.is_pending() { "basalt-> " } else { "basalt=> " });
                std::io::stdout().flush()?;
            }
            let line = tokio::select! {
                line = received.recv() => line,
                _ = self.interrupt.recv() => {
                    statements = Statements::default();
                    println!();
                    continue;
                }
            };
            let Some(line) = line else { break };
            let line = line.context("cannot read standard input")?;
            if !statements.is_pending() && line.trim_start().starts_with('\\') {
                match self.meta(line.trim()).await? {
                    true => continue,
                    false => return Ok(()),
                }
            }
            statements.push(&line);
            statements.push("\n");
            for statement in statements.by_ref() {
                if let Err(error) = self.execute(&statement).await? {
                    match interactive {
                        true => eprintln!("{error}"),
                        false => bail!("{error}"),
                    }
                }
            }
        }
        match statements.rest() {
            Some(statement) => self.execute(&statement).await?.map_err(|error| anyhow!("{error}")),
            None => Ok(()),
        }
    }

    /// False: leave.
    async fn meta(&mut self, command: &str) -> Result<bool> {
        let (verb, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let sql = match verb {
            "\\q" => return Ok(false),
            "\\timing" => {
                self.timing = !self.timing;
                println!("Timing is {}.", if self.timing { "on" } else { "off" });
                return Ok(true);
            }
            "\\d" | "\\dt" if argument.is_empty() => {
                "SELECT table_schema AS schema, table_name AS name, table_type AS type FROM information_schema.tables \
                 WHERE table_schema NOT IN ('pg_catalog', 'information_schema', 'basalt') ORDER BY 1, 2"
                    .to_string()
            }
            "\\d" => format!(
                "SELECT column_name AS \"column\", data_type AS type, is_nullable AS nullable, \
                 column_default AS \"default\" FROM information_schema.columns WHERE table_name = '{}' \
                 ORDER BY ordinal_position",
                argument.trim().trim_matches('"').replace('\'', "''")
            ),
            "\\l" => "SELECT datname AS name FROM pg_catalog.pg_database ORDER BY 1".to_string(),
            _ => {
                print!("{HELP}");
                return Ok(true);
            }
        };
        if let Err(error) = self.execute(&sql).await? {
            eprintln!("{error}");
        }
        Ok(true)
    }

    /// Runs one statement and prints what it gives. The inner error is the statement's own.
    async fn execute(&mut self, sql: &str) -> Result<Result<(), String>> {
        let began = self.os.clock.monotonic();
        let cancel = self.client.cancel_token();
        let mut printer = Printer::new(self.style);
        let result = {
            let mut run = std::pin::pin!(stream(&self.client, sql, &mut printer));
            loop {
                tokio::select! {
                    result = &mut run => break result,
                    _ = self.interrupt.recv() => {
                        // If it cannot be canceled it is about to end anyway.
                        let _ = cancel.cancel_query(NoTls).await;
                    }
                }
            }
        };
        let took = self.os.clock.monotonic() - began;
        match result {
            Ok(()) => {
                printer.finish()?;
                if self.timing || took >= WORTH_TELLING && std::io::stdout().is_terminal() {
                    println!("Time: {:.1} ms", took.as_secs_f64() * 1000.0);
                }
                Ok(Ok(()))
            }
            Err(Failed::Statement(error)) if self.client.is_closed() => Err(anyhow!("{error}")),
            Err(Failed::Statement(error)) => {
                printer.abandon()?;
                Ok(Err(error))
            }
            Err(Failed::Print(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
            Err(Failed::Print(error)) => Err(error.into()),
        }
    }
}

enum Failed {
    Statement(String),
    Print(std::io::Error),
}

async fn stream(client: &Client, sql: &str, printer: &mut Printer) -> Result<(), Failed> {
    let failed = |error: tokio_postgres::Error| Failed::Statement(describe(&error));
    let mut messages = std::pin::pin!(client.simple_query_raw(sql).await.map_err(failed)?);
    while let Some(message) = messages.try_next().await.map_err(failed)? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                printer.begin(columns.iter().map(|column| column.name().to_string()).collect());
            }
            SimpleQueryMessage::Row(row) => {
                let cells = (0..row.len()).map(|column| row.get(column).map(str::to_string)).collect();
                printer.row(cells).map_err(Failed::Print)?;
            }
            SimpleQueryMessage::CommandComplete(rows) => printer.complete(rows).map_err(Failed::Print)?,
            _ => {}
        }
    }
    Ok(())
}
