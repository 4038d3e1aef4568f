//! The log of a running server: lines on standard error, as text or as JSON.

use crate::cli::LogFormat;
use anyhow::{Context, Result};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging; `levels` as in "info,basalt_server=debug".
pub fn init(levels: &str, format: LogFormat) -> Result<()> {
    let filter = EnvFilter::try_new(levels).with_context(|| format!("cannot read the log levels \"{levels}\""))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}
