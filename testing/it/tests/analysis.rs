//! Analytic queries by chance, compared with PostgreSQL. `BASALT_ANALYZE` says how many, `BASALT_SEED` which.
//! With `BASALT_HISTORIES=folder` each difference leaves the statements that led to it there; with `BASALT_WRITERS=1`
//! others write meanwhile what changes no answer.

use anyhow::Result;
use basalt_it::analysis::{Options, run};
use basalt_it::chance::{ended, number};
use basalt_it::engines::Engines;
use std::process::ExitCode;

/// As many as fit into a minute or two.
const STATEMENTS: u64 = 1000;

fn main() -> ExitCode {
    ended(compared())
}

/// Whether no difference was found.
fn compared() -> Result<bool> {
    let seed = number("BASALT_SEED", 1)?;
    let options = Options {
        statements: number("BASALT_ANALYZE", STATEMENTS)? as usize,
        seed,
        differences_max: number("BASALT_DIFFERENCES", 40)? as usize,
        histories: std::env::var_os("BASALT_HISTORIES").map(Into::into),
        writers: number("BASALT_WRITERS", 0)? > 0,
        engines: Engines::asked()?,
    };
    println!("BASALT_SEED={seed}");
    Ok(run(&options)?.differences.is_empty())
}
