//! Random statements compared with PostgreSQL. `BASALT_GENERATE` says how many, `BASALT_SEED`
//! which. With `BASALT_HISTORIES=folder` each difference leaves the changes that led to it there.

use anyhow::Result;
use basalt_it::chance::{ended, number};
use basalt_it::engines::Engines;
use basalt_it::generate::{Options, run};
use std::process::ExitCode;

/// As many as fit into some minutes.
const STATEMENTS: u64 = 4000;

fn main() -> ExitCode {
    ended(compared())
}

/// Whether no unlisted difference was found.
fn compared() -> Result<bool> {
    let seed = number("BASALT_SEED", 1)?;
    let known = std::fs::read_to_string(basalt_it::own_path("generated_known.txt"))?;
    let known = known.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let options = Options {
        statements: number("BASALT_GENERATE", STATEMENTS)? as usize,
        seed,
        differences_max: number("BASALT_DIFFERENCES", 40)? as usize,
        known: known.map(str::to_string).collect(),
        histories: std::env::var_os("BASALT_HISTORIES").map(Into::into),
        engines: Engines::asked()?,
    };
    println!("BASALT_SEED={seed}");
    let report = run(&options)?;
    for (label, count) in &report.covered {
        println!("covered {count:>6} {label}");
    }
    let mut failed: Vec<_> = report.failed.iter().collect();
    failed.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (why, count) in failed.iter().take(30) {
        println!("failed {count:>6} {why}");
    }
    println!("not covered: {}", report.not_covered.join("; "));
    let share = report.succeeded as f64 * 100.0 / report.statements.max(1) as f64;
    println!(
        "{} statements, {share:.1}% succeeded in PostgreSQL, {} differences, {} known, {} by order of evaluation; {} things covered",
        report.statements,
        report.differences.len(),
        report.known,
        report.order_of_evaluation,
        report.covered.len(),
    );
    Ok(report.differences.is_empty())
}
