//! The client's command line. The last line of standard output is one JSON object, for bench/oltp.py.

use anyhow::Result;
use basalt_bench::address::Address;
use basalt_bench::{terminals, tpcc, ycsb};
use clap::{Args, Parser, Subcommand};
use serde_json::Value;

#[derive(Parser)]
#[command(about = "A light client for TPC-C and YCSB")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes the tables anew and fills them
    #[command(subcommand)]
    Load(LoadCommand),
    /// Runs transactions and says how many and how quickly
    #[command(subcommand)]
    Run(RunCommand),
    /// Checks what must hold whatever has run
    #[command(subcommand)]
    Check(CheckCommand),
}

#[derive(Args)]
struct Server {
    /// postgresql://user@host:port/database, of a server that asks for no password
    #[arg(long)]
    url: Address,
}

#[derive(Subcommand)]
enum LoadCommand {
    /// TPC-C's nine tables and CH-benCHmark's three
    Tpcc {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        options: tpcc::load::Options,
    },
    /// One table of ten fields
    Ycsb {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        options: ycsb::Options,
    },
}

#[derive(Subcommand)]
enum RunCommand {
    /// The five transactions, terminals without think time
    Tpcc {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        load: terminals::Load,
        /// Send together what waits for no answer, as drivers that pipeline do
        #[arg(long, conflicts_with = "by_statement")]
        pipelined: bool,
    },
    /// One of the core workloads, or W
    Ycsb {
        #[command(flatten)]
        server: Server,
        #[arg(long, value_enum, ignore_case = true)]
        workload: ycsb::Workload,
        /// Of the keys, where it is not the workload's own
        #[arg(long, value_enum)]
        distribution: Option<ycsb::Distribution>,
        #[command(flatten)]
        load: terminals::Load,
    },
}

#[derive(Subcommand)]
enum CheckCommand {
    /// Consistency conditions 1 to 12 (clause 3.3.2)
    Tpcc {
        #[command(flatten)]
        server: Server,
    },
}

fn main() -> Result<()> {
    let (result, failed) = match Cli::parse().command {
        Command::Load(LoadCommand::Tpcc { server, options }) => (tpcc::load::load(&server.url, &options)?, false),
        Command::Load(LoadCommand::Ycsb { server, options }) => (ycsb::load(&server.url, &options)?, false),
        Command::Run(RunCommand::Tpcc { server, load, pipelined }) => {
            (tpcc::run(&server.url, &load, pipelined)?, false)
        }
        Command::Run(RunCommand::Ycsb { server, workload, distribution, load }) => {
            (ycsb::run(&server.url, workload, distribution, &load)?, false)
        }
        Command::Check(CheckCommand::Tpcc { server }) => tpcc::check::check(&server.url)?,
    };
    println!("{}", Value::Object(result));
    std::process::exit(i32::from(failed));
}
