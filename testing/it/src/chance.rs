//! What tests that draw their statements are told by the environment, and how they end.

use anyhow::{Context, Result};
use std::process::ExitCode;

/// A number of the environment, or what it is without one.
pub fn number(name: &str, default: u64) -> Result<u64> {
    match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name}={text}")),
        Err(_) => Ok(default),
    }
}

/// Fails if there was a difference, or nothing could be compared.
pub fn ended(is_equal: Result<bool>) -> ExitCode {
    match is_equal {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
