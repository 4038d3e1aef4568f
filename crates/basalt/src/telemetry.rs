//! The log of a running server: lines on standard error, as text or as JSON.

use crate::cli::LogFormat;
use anyhow::{Context, Result, bail};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging; `levels` as in "info,basalt_server=debug".
pub fn init(levels: &str, format: LogFormat) -> Result<()> {
    check_levels(levels)?;
    let filter = EnvFilter::try_new(levels).with_context(|| format!("cannot read the log levels \"{levels}\""))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}

const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace", "off"];

/// A filter takes any word for the name of a module, of which everything is to be logged.
fn check_levels(levels: &str) -> Result<()> {
    for part in levels.split(',').map(str::trim) {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        if !LEVELS.iter().any(|known| level.eq_ignore_ascii_case(known)) {
            bail!("log: \"{level}\" is no level: use {}, or MODULE=LEVEL", LEVELS.join(", "));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_levels_are_taken_for_levels() {
        for good in ["info", "WARN", "info,basalt_server=debug", "off, basalt=trace"] {
            assert!(check_levels(good).is_ok(), "{good}");
        }
        for bad in ["nonsense", "", "info,", "basalt_server=loud"] {
            assert!(check_levels(bad).is_err(), "{bad}");
        }
    }
}
