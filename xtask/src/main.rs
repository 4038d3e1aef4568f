//! House rules that the compiler does not check: `cargo run -p xtask -- tidy`.
//!
//! - Imports between crates point one way (the map in ARCHITECTURE.md), siblings never import each other.
//! - Each heavy dependency has one owner.
//! - A crate root says what the crate is for; a file opens with what it is for.
//! - A source file stays under 1,000 lines, tests included (tables of cases apart); no ignored tests.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Which of our crates each crate may import.
const IMPORTS: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("expr", &["types"]),
    ("sched", &["types"]),
    ("wal", &["types", "sched"]),
    ("hot", &["types", "sched"]),
    ("cold", &["types", "sched"]),
    ("meta", &["types", "sched"]),
    ("engine", &["types", "expr", "sched", "wal", "hot", "cold", "meta"]),
    ("exec", &["types", "expr", "sched", "engine"]),
    ("query", &["types", "expr", "sched", "engine", "exec"]),
    ("ingest", &["types", "expr", "sched", "engine", "exec", "query"]),
    ("server", &["types", "expr", "sched", "engine", "exec", "query", "ingest"]),
    ("basalt", &["types", "expr", "sched", "engine", "exec", "query", "ingest", "server"]),
];

/// Heavy dependencies and who may name them in `[dependencies]`.
const OWNERS: &[(&str, &[&str])] = &[
    ("datafusion", &["query"]),
    ("sqlparser", &["query"]),
    ("pgwire", &["server"]),
    ("hyper", &["server"]),
    ("rustls", &["server"]),
    ("parquet", &["ingest"]),
    ("object_store", &["cold", "engine"]),
    ("fsst-rs", &["cold"]),
    ("ratatui", &["basalt"]),
];

const FILE_LINES_MAX: usize = 1000;

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(),
        other => bail!("usage: cargo run -p xtask -- tidy (got {other:?})"),
    }
}

fn tidy() -> Result<()> {
    // Clones may share a target folder: what Cargo says now, not what it said at the build.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").context("run it by cargo run -p xtask")?;
    let root = Path::new(&own).parent().context("xtask lies in the workspace")?;
    let mut problems = Vec::new();
    check_imports(root, &mut problems)?;
    for dir in ["crates", "testing", "xtask", "bench"] {
        for file in rust_files(&root.join(dir))? {
            check_file(root, &file, &mut problems)?;
        }
    }
    if problems.is_empty() {
        println!("tidy: nothing to complain about");
        return Ok(());
    }
    problems.iter().for_each(|problem| eprintln!("tidy: {problem}"));
    bail!("{} problem(s)", problems.len())
}

fn check_imports(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    let allowed: BTreeMap<&str, &[&str]> = IMPORTS.iter().copied().collect();
    for entry in fs::read_dir(root.join("crates"))? {
        let dir = entry?.path();
        let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
        let Some(allowed) = allowed.get(name.as_str()) else {
            problems.push(format!("crates/{name} is not on the map of imports"));
            continue;
        };
        for dependency in dependencies(&dir.join("Cargo.toml"))? {
            if let Some(ours) = dependency.strip_prefix("basalt-")
                && !allowed.contains(&ours)
            {
                problems.push(format!("crates/{name} must not import {dependency}"));
            }
            let owners = OWNERS.iter().find(|(heavy, _)| *heavy == dependency);
            if let Some((heavy, owners)) = owners
                && !owners.contains(&name.as_str())
            {
                problems.push(format!("crates/{name} imports {heavy}, which belongs to {owners:?}"));
            }
        }
    }
    Ok(())
}

/// Names under `[dependencies]` (development ones are free).
fn dependencies(manifest: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
    let section = text.split("\n[").find(|section| section.starts_with("dependencies]"));
    let names = section.into_iter().flat_map(str::lines).skip(1).filter_map(|line| {
        let name: String = line.chars().take_while(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
        (!name.is_empty()).then_some(name)
    });
    Ok(names.collect())
}

fn rust_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !dir.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn check_file(root: &Path, path: &Path, problems: &mut Vec<String>) -> Result<()> {
    let text = fs::read_to_string(path)?;
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let lines = text.lines().count();
    // Tables of cases checked against PostgreSQL are data.
    if lines > FILE_LINES_MAX && !name.ends_with("/cases.rs") {
        problems.push(format!("{name} has {lines} lines: two rooms would be better than one"));
    }
    let is_tests = name.ends_with("tests.rs") || name.contains("/tests/");
    if !is_tests && lines > 60 && !text.starts_with("//!") {
        problems.push(format!("{name} does not say what it is for"));
    }
    if name.ends_with("src/lib.rs") && !text.starts_with("//!") {
        problems.push(format!("{name}: a crate root says what the crate is for"));
    }
    // Spelt apart so that this file passes its own check.
    for banned in [concat!("#[", "ignore"), concat!("to", "do!("), concat!("unimple", "mented!(")] {
        if text.contains(banned) {
            problems.push(format!("{name} contains {banned}"));
        }
    }
    Ok(())
}
