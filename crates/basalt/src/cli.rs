//! The command line.

use crate::demo::DemoArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// One SQL database for data that is written, served and analysed at the same time.
///
/// Rows arrive hot and row-shaped; when they cool they set into columns. Any PostgreSQL client connects.
#[derive(Parser)]
#[command(name = "basalt", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Start a server on a data directory (made if it does not exist)
    Start(StartArgs),
    /// Watch rows stream into a server while queries run over them: a git history, or TPC-H
    Demo(DemoArgs),
    /// Run SQL: interactively, from -c, from files, or from standard input
    Sql(SqlArgs),
    /// Load CSV or Parquet files into a table, all or nothing
    Load(LoadArgs),
    /// Show how a running server is doing
    Status(StatusArgs),
    /// Verify a data directory that no server has open
    Check(CheckArgs),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Each option can also be given as an environment variable (BASALT_ and its name, as in BASALT_LISTEN) or
/// in the configuration file. So can every setting of `SHOW ALL`: `--set basalt.memory_limit=8GB`,
/// `BASALT_MEMORY_LIMIT=8GB`, `memory_limit = "8GB"` in the file's table `[basalt]`. What comes first
/// wins: flag, environment variable, ALTER SYSTEM SET, configuration file, default.
#[derive(Args, Debug)]
pub struct StartArgs {
    /// Where the data is kept [default: ./basalt-data]
    #[arg(long, env = "BASALT_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where PostgreSQL clients connect [default: 127.0.0.1:5433]
    #[arg(long, env = "BASALT_LISTEN", value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Where HTTP clients connect (/health, /metrics, /sql); "off" for none [default: 127.0.0.1:5480]
    #[arg(long, env = "BASALT_HTTP", value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// Also listen on a Unix socket in this directory
    #[arg(long, env = "BASALT_SOCKET", value_name = "DIR")]
    pub socket: Option<PathBuf>,
    /// Configuration file (TOML)
    #[arg(long, env = "BASALT_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set a setting; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// Certificate chain (PEM); with --tls-key, encrypted connections are offered
    #[arg(long, env = "BASALT_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, env = "BASALT_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// What to log: error, warn, info, debug or trace, also per module as in "info,basalt_server=debug" [default: info]
    #[arg(long, env = "BASALT_LOG", value_name = "LEVEL")]
    pub log: Option<String>,
    /// Shape of log lines [default: text]
    #[arg(long, env = "BASALT_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

#[derive(Args, Clone, Debug)]
pub struct ConnectArgs {
    /// The server, as a connection string (the password may also be in PGPASSWORD)
    #[arg(long, env = "BASALT_URL", value_name = "URL", default_value = "postgresql://basalt@127.0.0.1:5433/basalt")]
    pub url: String,
}

#[derive(Args, Debug)]
pub struct SqlArgs {
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Run these statements and exit; may be repeated
    #[arg(short, long, value_name = "SQL")]
    pub command: Vec<String>,
    /// Run the statements of this file and exit; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Print rows as CSV with a header
    #[arg(long)]
    pub csv: bool,
}

#[derive(Args, Debug)]
pub struct LoadArgs {
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// The table, with its schema if it is not on the search path
    pub table: String,
    /// Files to load: CSV (.csv, .tsv, .tbl, .txt) or Parquet (.parquet, .pq); columns are matched by name
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Create the table if it does not exist, with the columns and types of the first file
    #[arg(long)]
    pub create: bool,
    /// Columns of the created table's primary key
    #[arg(long, value_name = "COLUMN,…", requires = "create", value_delimiter = ',')]
    pub primary_key: Vec<String>,
    /// CSV: what separates fields [default: tab for .tsv, | for .tbl, comma otherwise]
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<char>,
    /// CSV: the files have no header line
    #[arg(long)]
    pub no_header: bool,
    /// CSV: what stands for null
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub null: String,
}

#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// The server's HTTP address
    #[arg(long, env = "BASALT_HTTP", value_name = "HOST:PORT", default_value = "127.0.0.1:5480")]
    pub http: String,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The data directory
    #[arg(long, env = "BASALT_DATA_DIR", value_name = "DIR", default_value = "basalt-data")]
    pub data_dir: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
