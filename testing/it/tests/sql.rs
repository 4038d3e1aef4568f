//! Runs `slt/**/*.slt` and prints what differs from PostgreSQL. `BASALT_SLT=a,b` takes the files whose path
//! contains one of these; `BASALT_SHAPES=1` lists the shapes that are not always equal. The other arguments of
//! `cargo test` are not looked at.

#![allow(clippy::disallowed_methods)]

use anyhow::Result;
use basalt_it::servers::Postgres;
use basalt_it::slt::{Words, run_file};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run_all() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The number of files that failed.
fn run_all() -> Result<usize> {
    let root = basalt_it::own_path("slt");
    let pattern = std::env::var("BASALT_SLT").unwrap_or_default();
    let mut files = Vec::new();
    scripts(&root, &mut files)?;
    files.retain(|file| pattern.split(',').any(|part| file.display().to_string().contains(part)));
    files.sort();
    let postgres = Postgres::start()?;
    postgres.empty_database()?;
    let words = Words::load(&mut postgres.connect()?)?;
    let mut shapes: BTreeMap<String, bool> = BTreeMap::new();
    let (mut passed, mut failed, mut compared) = (0, 0, 0);
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        postgres.empty_database()?;
        let (count, mut failures) = match run_file(&file, &postgres) {
            Ok(outcome) => {
                for (sql, same) in outcome.statements {
                    *shapes.entry(words.shape(&sql)).or_insert(true) &= same;
                }
                (outcome.compared, outcome.failures)
            }
            Err(error) => (0, vec![format!("{error:#}\n")]),
        };
        compared += count;
        if failures.is_empty() {
            passed += 1;
            println!("ok      {name} ({count} answers)");
            continue;
        }
        failed += 1;
        failures.iter_mut().for_each(|failure| println!("{}", failure.replace(&format!("{}/", root.display()), "")));
        println!("FAILED  {name} ({} of {count} answers)", failures.len());
    }
    let same = shapes.values().filter(|same| **same).count();
    if std::env::var_os("BASALT_SHAPES").is_some() {
        shapes.iter().filter(|(_, same)| !**same).for_each(|(shape, _)| println!("differs  {shape}"));
    }
    println!(
        "{passed} passed, {failed} failed; {compared} answers compared; {} statement shapes, {same} of them always equal",
        shapes.len()
    );
    Ok(failed)
}

fn scripts(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            scripts(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "slt") {
            found.push(path);
        }
    }
    Ok(())
}
