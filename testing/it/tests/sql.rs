//! Runs `slt/**/*.slt` and prints what differs from PostgreSQL. `BASALT_SLT=a,b` takes the files whose path
//! contains one of these; `BASALT_ENGINES=chosen,columns,fallback` runs them with some of these, and not with all;
//! `BASALT_SHAPES=1` lists the shapes that are not always equal. The other arguments of `cargo test` are not looked at.

#![allow(clippy::disallowed_methods)]

use anyhow::{Result, anyhow};
use basalt_it::engines::Engines;
use basalt_it::servers::Postgres;
use basalt_it::slt::{Outcome, Words, run_file};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files that run at once, each on servers of its own.
const AT_ONCE_MAX: usize = 4;

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

/// The number of failures.
fn run_all() -> Result<usize> {
    let root = basalt_it::own_path("slt");
    let pattern = std::env::var("BASALT_SLT").unwrap_or_default();
    let mut files = Vec::new();
    scripts(&root, &mut files)?;
    files.retain(|file| pattern.split(',').any(|part| file.display().to_string().contains(part)));
    files.sort();
    let asked = Engines::asked()?;
    let runs: Vec<(&Path, Engines)> =
        files.iter().flat_map(|file| asked.iter().map(|engines| (file.as_path(), *engines))).collect();
    let at_once = std::thread::available_parallelism()?.get().min(AT_ONCE_MAX).min(runs.len().max(1));
    let servers = (0..at_once).map(|_| Postgres::start()).collect::<Result<Vec<Postgres>>>()?;
    let all = Runs { root: &root, runs: &runs, next: AtomicUsize::new(0), tally: Mutex::default() };
    servers[0].empty_database()?;
    let words = Words::load(&mut servers[0].connect()?)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = servers.iter().map(|postgres| scope.spawn(|| all.run(postgres, &words))).collect();
        let ended = threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a run has panicked"))?);
        ended.collect::<Result<Vec<()>>>()
    })?;
    Ok(all.tally.into_inner()?.tell())
}

/// What there is to run, and what came of it so far.
struct Runs<'a> {
    root: &'a Path,
    runs: &'a [(&'a Path, Engines)],
    next: AtomicUsize,
    tally: Mutex<Tally>,
}

impl Runs<'_> {
    /// Takes one after the other until there is none.
    fn run(&self, postgres: &Postgres, words: &Words) -> Result<()> {
        while let Some((file, engines)) = self.runs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            postgres.empty_database()?;
            let outcome = run_file(file, postgres, *engines)
                .unwrap_or_else(|error| Outcome { failures: vec![format!("{error:#}\n")], ..Outcome::default() });
            let name = file.strip_prefix(self.root).unwrap_or(file).display().to_string();
            let folder = format!("{}/", self.root.display());
            let mut tally = self.tally.lock().map_err(|_| anyhow!("another run has panicked"))?;
            tally.add(&name, *engines, &outcome, &folder);
            for (sql, same) in outcome.statements.iter().filter(|_| *engines == Engines::Chosen) {
                *tally.shapes.entry(words.shape(sql)).or_insert(true) &= same;
            }
        }
        Ok(())
    }
}

/// What became of the files with each choice of engines.
#[derive(Default)]
struct Tally {
    of: BTreeMap<Engines, Count>,
    /// Of statements whose engines the planner chose.
    shapes: BTreeMap<String, bool>,
}

#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
    compared: usize,
    passed_over: usize,
}

impl Tally {
    fn add(&mut self, name: &str, engines: Engines, outcome: &Outcome, folder: &str) {
        let (count, how) = (self.of.entry(engines).or_default(), engines.name());
        count.compared += outcome.compared;
        count.passed_over += outcome.passed_over;
        if outcome.failures.is_empty() {
            count.passed += 1;
            println!("ok      {name} {how} ({} answers)", outcome.compared);
            return;
        }
        count.failed += 1;
        let mut text = String::new();
        outcome.failures.iter().for_each(|failure| text.push_str(&format!("{}\n", failure.replace(folder, ""))));
        let failed = outcome.failures.len();
        println!("{text}FAILED  {name} {how} ({failed} of {} answers)", outcome.compared);
    }

    /// Gives the number of failures.
    fn tell(&self) -> usize {
        if std::env::var_os("BASALT_SHAPES").is_some() {
            self.shapes.iter().filter(|(_, same)| !**same).for_each(|(shape, _)| println!("differs  {shape}"));
        }
        for (engines, count) in &self.of {
            let Count { passed, failed, compared, passed_over } = count;
            let how = engines.name();
            println!("{how}: {passed} passed, {failed} failed; {compared} answers compared, {passed_over} passed over");
        }
        let same = self.shapes.values().filter(|same| **same).count();
        println!("{} statement shapes, {same} of them always equal", self.shapes.len());
        self.of.values().map(|count| count.failed).sum()
    }
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
