//! The `basalt` binary: one file per command, and the configuration and telemetry that they share.

mod check;
mod cli;
mod config;
mod connect;
mod demo;
mod load;
mod sql;
mod start;
mod status;
mod telemetry;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Start(args) => start::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Sql(args) => sql::run(args),
        Command::Load(args) => load::run(args),
        Command::Status(args) => status::run(args),
        Command::Check(args) => check::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("basalt: {error:#}");
            ExitCode::FAILURE
        }
    }
}
