//! `basalt sql`: a small client that prints results. Ctrl-C cancels the running statement.

mod copy;
mod describe;
mod input;
mod lines;
mod print;
mod session;
mod tap;

use crate::cli::SqlArgs;
use crate::connect::{self, describe_in};
use anyhow::{Context, Result, anyhow, bail};
use basalt_sched::Os;
use describe::Meta;
use futures::TryStreamExt;
use input::{CopyData, Statements};
use lines::Lines;
use print::{Printer, Style};
use session::Session;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tap::State;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio_postgres::SimpleQueryMessage;

/// Statements that take longer than this say how long they took.
const WORTH_TELLING: Duration = Duration::from_millis(100);

pub fn run(args: SqlArgs) -> Result<()> {
    match run_all(args) {
        // Whoever reads has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        result => result,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run_all(args: SqlArgs) -> Result<()> {
    let os = Os::real();
    let mut inputs = Vec::new();
    for text in &args.command {
        inputs.push((Lines::of_text(text), true));
    }
    for path in &args.file {
        let bytes = os.fs.read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let text = String::from_utf8(bytes).map_err(|_| anyhow!("{} is not UTF-8 text", path.display()))?;
        inputs.push((Lines::of_text(&text), false));
    }
    let style = if args.csv { Style::Csv } else { Style::Aligned };
    connect::runtime()?.block_on(async {
        let session = Session::open(&os, &args.connect).await?;
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
        let mut shell = Shell { session, os, style, interrupt, timing: false };
        if inputs.is_empty() {
            return shell.run(&mut Lines::of_input(), false).await;
        }
        for (mut lines, is_command) in inputs {
            shell.run(&mut lines, is_command).await?;
        }
        Ok(())
    })
}

struct Shell {
    session: Session,
    os: Os,
    style: Style,
    interrupt: Signal,
    timing: bool,
}

impl Shell {
    /// Runs statements as their lines come. Where they are typed it goes on after an error. `is_command`: they are
    /// an argument, and data of a COPY may come from standard input.
    async fn run(&mut self, lines: &mut Lines, is_command: bool) -> Result<()> {
        let typed = lines.are_typed();
        if typed {
            println!("Basalt {}. \\? for help.", env!("CARGO_PKG_VERSION"));
        }
        let mut statements = Statements::default();
        loop {
            if typed {
                print!("{}", self.prompt(statements.is_pending()));
                std::io::stdout().flush()?;
            }
            let line = tokio::select! {
                line = lines.next() => line?,
                _ = self.interrupt.recv(), if typed => {
                    statements = Statements::default();
                    println!();
                    continue;
                }
            };
            let Some(line) = line else { break };
            if !statements.is_pending()
                && let Some(meta) = Meta::parse(&line)
            {
                match meta {
                    Meta::Leave => return Ok(()),
                    meta => self.meta(meta).await?.or_else(|error| complain(error, typed))?,
                }
                continue;
            }
            statements.push(&line);
            // Only a semicolon can have completed a statement: a long one is not looked at for every line.
            if line.contains(';') {
                for statement in statements.by_ref() {
                    self.execute(&statement, lines, is_command).await?.or_else(|error| complain(error, typed))?;
                }
            }
        }
        match statements.rest() {
            Some(statement) => {
                self.execute(&statement, lines, is_command).await?.or_else(|error| complain(error, typed))
            }
            None => Ok(()),
        }
    }

    /// As psql's: `*` in a transaction, `!` in one that has failed.
    fn prompt(&self, pending: bool) -> String {
        let state = match self.session.heard.state() {
            State::Idle => "",
            State::InTransaction => "*",
            State::Failed => "!",
        };
        format!("basalt{}{state}> ", if pending { '-' } else { '=' })
    }

    /// The inner error is the command's own.
    async fn meta(&mut self, meta: Meta) -> Result<Result<(), String>> {
        match meta {
            Meta::Query(sql) => {
                let result = self.execute(&sql, &mut Lines::of_text(""), false).await?;
                // Where it went wrong in a statement that the user has not written is of no use.
                Ok(result.map_err(|error| error.lines().next().unwrap_or_default().to_string()))
            }
            Meta::Timing => {
                self.timing = !self.timing;
                say(&format!("Timing is {}.\n", if self.timing { "on" } else { "off" }))?;
                Ok(Ok(()))
            }
            Meta::Help => {
                say(describe::HELP)?;
                Ok(Ok(()))
            }
            Meta::Unknown(error) => Ok(Err(error)),
            Meta::Leave => Ok(Ok(())),
        }
    }

    /// Runs one statement and prints what it gives. The inner error is the statement's own.
    async fn execute(&mut self, sql: &str, lines: &mut Lines, is_command: bool) -> Result<Result<(), String>> {
        let sql = sql.trim();
        let began = self.os.clock.monotonic();
        let canceler = self.session.canceler();
        let mut printer = Printer::new(self.style);
        let result = {
            let stop = Notify::new();
            if is_command {
                lines.read_on_from_input();
            }
            let mut run = std::pin::pin!(run_statement(&self.session, sql, &mut printer, lines, &stop));
            loop {
                tokio::select! {
                    result = &mut run => break result,
                    _ = self.interrupt.recv() => {
                        stop.notify_one();
                        canceler.cancel().await;
                    }
                }
            }
        };
        let took = self.os.clock.monotonic() - began;
        match result {
            Ok(()) => {
                printer.finish()?;
                if self.timing || took >= WORTH_TELLING && std::io::stdout().is_terminal() {
                    say(&format!("Time: {:.1} ms\n", took.as_secs_f64() * 1000.0))?;
                }
                Ok(Ok(()))
            }
            Err(Failed::Statement(error)) if self.session.client.is_closed() => Err(anyhow!("{error}")),
            Err(Failed::Statement(error)) => {
                printer.abandon()?;
                Ok(Err(error))
            }
            Err(Failed::Print(error)) => Err(error.into()),
        }
    }
}

/// `println!` panics if nobody reads any more.
fn say(text: &str) -> std::io::Result<()> {
    std::io::stdout().write_all(text.as_bytes())
}

fn complain(error: String, go_on: bool) -> Result<()> {
    match go_on {
        true => eprintln!("{error}"),
        false => bail!("{error}"),
    }
    Ok(())
}

enum Failed {
    Statement(String),
    Print(std::io::Error),
}

async fn run_statement(
    session: &Session,
    sql: &str,
    printer: &mut Printer,
    lines: &mut Lines,
    stop: &Notify,
) -> Result<(), Failed> {
    match input::copy_data(sql) {
        None => stream(session, sql, printer).await,
        Some(CopyData::Out) => copy::in_block(session, copy::copy_out(session, sql, printer)).await,
        Some(CopyData::In) => {
            let rows = copy::in_block(session, copy::copy_in(session, sql, lines, stop)).await?;
            printer.complete(&format!("COPY {rows}")).map_err(Failed::Print)
        }
    }
}

async fn stream(session: &Session, sql: &str, printer: &mut Printer) -> Result<(), Failed> {
    let failed = |error: tokio_postgres::Error| Failed::Statement(describe_in(&error, sql));
    let mut messages = std::pin::pin!(session.client.simple_query_raw(sql).await.map_err(failed)?);
    while let Some(message) = messages.try_next().await.map_err(failed)? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                printer.begin(columns.iter().map(|column| column.name().to_string()).collect());
            }
            SimpleQueryMessage::Row(row) => {
                let cells = (0..row.len()).map(|column| row.get(column).map(str::to_string)).collect();
                printer.row(cells).map_err(Failed::Print)?;
            }
            SimpleQueryMessage::CommandComplete(_) => {
                printer.complete(&session.heard.tag()).map_err(Failed::Print)?;
            }
            _ => {}
        }
    }
    Ok(())
}
