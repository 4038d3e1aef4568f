//! The `basalt` binary: one file per command, and the configuration and telemetry that they share.

mod allocator;
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
            eprintln!("basalt: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes; a message that already tells its cause is not followed by it.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[derive(Debug)]
    struct Telling(std::io::Error);

    impl std::fmt::Display for Telling {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "cannot read f: {}", self.0)
        }
    }

    impl std::error::Error for Telling {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_are_told_once() {
        let cause = || std::io::Error::other("no such file");
        let error = Err::<(), _>(Telling(cause())).context("nothing was loaded").unwrap_err();
        assert_eq!(chain(&error), "nothing was loaded: cannot read f: no such file");
        let error = Err::<(), _>(cause()).context("cannot listen").unwrap_err();
        assert_eq!(chain(&error), "cannot listen: no such file");
    }
}
