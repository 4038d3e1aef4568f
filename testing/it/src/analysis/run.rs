//! Runs analytic queries on both servers, while rows of Basalt's change their places, and shrinks what differs.

use super::Generator;
use super::expr::{LITERAL, MAY_FAIL};
use super::kinds::Kind;
use super::writers::Writers;
use crate::engines::Engines;
use crate::generate::compare::{Verdict, compare, may_be_order};
use crate::generate::node::{Node, Piece, Role};
use crate::servers::{Basalt, BasaltOptions, Postgres};
use crate::wire::{Answer, Wire};
use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const STATEMENTS_PER_SCHEMA: usize = 200;
const SHRINK_STEPS_MAX: usize = 600;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// What takes longer, and longer than in PostgreSQL, is told of.
const SLOW: Duration = Duration::from_secs(1);
/// Tables of each set: most are small, for the sake of speed.
const TABLES: [usize; 8] = [6, 4, 4, 5, 4, 4, 4, 4];

#[derive(Clone, Debug)]
pub struct Options {
    pub statements: usize,
    pub seed: u64,
    /// Stop after so many differences.
    pub differences_max: usize,
    /// Where to put, for each difference, the statements that led to it: one file each.
    pub histories: Option<PathBuf>,
    /// Whether others write meanwhile what changes no answer.
    pub writers: bool,
    /// What statements run with.
    pub engines: Vec<Engines>,
}

#[derive(Default, Debug)]
pub struct Report {
    pub statements: usize,
    /// In PostgreSQL.
    pub succeeded: usize,
    /// That one of both took too long for.
    pub given_up: usize,
    pub order_of_evaluation: usize,
    pub explained: usize,
    /// Readable, each with the smallest statement found.
    pub differences: Vec<String>,
}

pub fn run(options: &Options) -> Result<Report> {
    let server = Postgres::start()?;
    server.empty_database()?;
    let mut both = Both {
        postgres: server.connect()?,
        basalt_wire: None,
        basalt: Basalt::start_with(BasaltOptions::default())?,
        report: Report::default(),
        options: options.clone(),
        history: Vec::new(),
        engines: Engines::default(),
    };
    both.postgres.run("SET TimeZone = 'Europe/Berlin'")?;
    both.postgres.run("SET jit = off")?;
    let mut seed = options.seed;
    while both.report.statements < options.statements && both.report.differences.len() < options.differences_max {
        both.epoch(seed).with_context(|| format!("BASALT_SEED={seed}"))?;
        seed += 1;
    }
    Ok(both.report)
}

struct Both {
    postgres: Wire,
    basalt: Basalt,
    basalt_wire: Option<Wire>,
    report: Report,
    options: Options,
    /// What changed the tables of this epoch, in order.
    history: Vec<String>,
    engines: Engines,
}

impl Both {
    /// One set of tables and the statements over it.
    fn epoch(&mut self, seed: u64) -> Result<()> {
        let mut generator = Generator { rng: StdRng::seed_from_u64(seed), tables: Vec::new(), aliases: 0 };
        self.fresh_schema()?;
        for sql in generator.new_schema(TABLES[(seed % TABLES.len() as u64) as usize]) {
            self.apply(&sql)?;
        }
        self.with(Engines::drawn(&self.options.engines, &mut generator.rng))?;
        self.postgres.run("ANALYZE")?;
        self.postgres.run("SET statement_timeout = '2s'")?;
        let begun = Instant::now();
        let end = (self.report.statements + STATEMENTS_PER_SCHEMA).min(self.options.statements);
        let writers = self.options.writers.then(|| Writers::start(self.basalt.addr, &generator.tables, seed));
        while self.report.statements < end && self.report.differences.len() < self.options.differences_max {
            match generator.rng.random_range(0..40) {
                0 if writers.is_none() => {
                    let table = generator.tables.choose(&mut generator.rng).expect("tables").clone();
                    for sql in generator.change(&table) {
                        self.apply(&sql)?;
                    }
                }
                1 => {
                    let sql = *["VACUUM", "VACUUM FULL", "CHECKPOINT"].choose(&mut generator.rng).expect("some");
                    self.apply(&format!("/*basalt {sql}*/"))?;
                }
                2 => {
                    let engines = Engines::drawn(&self.options.engines, &mut generator.rng);
                    self.with(engines)?;
                }
                _ => {
                    let (node, ordered) = generator.statement();
                    self.check(&node, ordered, generator.rng.random_ratio(1, 5))?;
                    if generator.rng.random_ratio(1, 5) {
                        self.check_prepared(&node, ordered)?;
                    }
                }
            }
        }
        if let Some(writers) = writers {
            writers.stop()?;
        }
        let report = &self.report;
        println!(
            "seed {seed}: {:.0?}; {} statements, {} succeeded in PostgreSQL, {} given up, {} explained, {} by order of evaluation, {} differences",
            begun.elapsed(),
            report.statements,
            report.succeeded,
            report.given_up,
            report.explained,
            report.order_of_evaluation,
            report.differences.len(),
        );
        Ok(())
    }

    /// What follows runs with these.
    fn with(&mut self, engines: Engines) -> Result<()> {
        self.engines = engines;
        engines.statements().iter().try_for_each(|sql| self.apply(&format!("/*basalt {sql}*/")))
    }

    /// A definition or a change, on both; what stands in `/*basalt …*/` on Basalt alone.
    fn apply(&mut self, sql: &str) -> Result<()> {
        let own = sql.replace("/*basalt ", "").replace("*/", "");
        self.history.push(own.clone());
        if !sql.starts_with("/*") {
            let answer = self.postgres.simple(sql, None)?;
            let basalt = self.on_basalt(&own)?;
            if answer.sqlstate() != basalt.sqlstate() && answer.sqlstate() != Some("57014") {
                let message = basalt.error().or(answer.error()).map_or("", |fields| fields.message()).to_string();
                self.tell(sql, sql, &format!("one of both fails with {message}"))?;
            }
            return Ok(());
        }
        self.on_basalt(&own)?;
        Ok(())
    }

    fn check(&mut self, node: &Node, ordered: bool, explain: bool) -> Result<()> {
        let sql = node.sql();
        let begun = Instant::now();
        let postgres = self.postgres.simple(&sql, None).with_context(|| format!("PostgreSQL: {sql}"))?;
        let taken = begun.elapsed();
        self.report.statements += 1;
        if postgres.sqlstate() == Some("57014") {
            self.report.given_up += 1;
            return Ok(());
        }
        let begun = Instant::now();
        let basalt = self.on_basalt(&sql)?;
        if begun.elapsed() > SLOW && begun.elapsed() > taken * 4 {
            println!("SLOW {:.1?} beside {taken:.1?}: {sql}", begun.elapsed());
        }
        if basalt.sqlstate() == Some("57014") {
            self.report.given_up += 1;
            return Ok(());
        }
        self.report.succeeded += usize::from(postgres.error().is_none());
        match compare(&basalt, &postgres, ordered) {
            Verdict::Same => {}
            Verdict::OrderOfEvaluation => self.report.order_of_evaluation += 1,
            Verdict::Different(what) => {
                let nested = sql.matches("SELECT").count() > 1;
                let promised = postgres.error().is_none() && !nested && !node.all_uses().contains(&MAY_FAIL);
                if may_be_order(&basalt, &postgres) && !promised && basalt.sqlstate() != Some("0A000") {
                    self.report.order_of_evaluation += 1;
                    return Ok(());
                }
                return self.differs(node, ordered, &what);
            }
        }
        if explain && basalt.error().is_none() {
            self.explain(&sql)?;
        }
        Ok(())
    }

    /// The same with parameters for its constants, twice.
    fn check_prepared(&mut self, node: &Node, ordered: bool) -> Result<()> {
        let (mut node, mut values) = (node.clone(), Vec::new());
        with_parameters(&mut node, &mut values);
        if values.is_empty() {
            return Ok(());
        }
        let prepare = format!("PREPARE q AS {}", node.sql());
        let execute = format!("EXECUTE q({})", values.join(", "));
        for sql in [&prepare, &execute, &execute, "DEALLOCATE q"] {
            let (basalt, postgres) = (self.on_basalt(sql)?, self.postgres.simple(sql, None)?);
            self.report.statements += 1;
            if [&basalt, &postgres].iter().any(|answer| answer.sqlstate() == Some("57014")) {
                self.report.given_up += 1;
                continue;
            }
            self.report.succeeded += usize::from(postgres.error().is_none());
            if let Verdict::Different(what) = compare(&basalt, &postgres, ordered)
                && !may_be_order(&basalt, &postgres)
            {
                self.tell(sql, &format!("{prepare};\n{execute}"), &what)?;
            }
        }
        Ok(())
    }

    /// EXPLAIN of what succeeds succeeds, and what it says is JSON.
    fn explain(&mut self, sql: &str) -> Result<()> {
        let explain = format!("EXPLAIN (ANALYZE, FORMAT JSON) {sql}");
        let answer = self.on_basalt(&explain)?;
        self.report.explained += 1;
        if let Some(error) = answer.error() {
            let what = format!("EXPLAIN fails with {} {}", error.sqlstate(), error.message());
            return self.tell(&explain, &explain, &what);
        }
        let lines: Vec<&str> = (0..answer.last().rows.len()).filter_map(|row| answer.last().text(row, 0)).collect();
        let document = lines.join("\n").replace('\'', "''");
        let parsed = self.postgres.simple(&format!("SELECT '{document}'::json"), None)?;
        match parsed.error() {
            Some(error) => self.tell(&explain, &explain, &format!("EXPLAIN is no JSON: {}", error.message())),
            None => Ok(()),
        }
    }

    /// Shrinks a statement that differs, and tells of it.
    fn differs(&mut self, node: &Node, ordered: bool, what: &str) -> Result<()> {
        let (sql, mut node, mut what, mut steps) = (node.sql(), node.clone(), what.to_string(), 0);
        'smaller: loop {
            for candidate in node.smaller(&|ty| Kind::of(ty).literal(1)) {
                steps += 1;
                if steps > SHRINK_STEPS_MAX || what.contains(" 57014 ") {
                    break 'smaller;
                }
                let postgres = self.postgres.simple(&candidate.sql(), None)?;
                if postgres.sqlstate() == Some("57014") {
                    continue;
                }
                let basalt = self.on_basalt(&candidate.sql())?;
                if let Verdict::Different(found) = compare(&basalt, &postgres, ordered)
                    && kind(&found) == kind(&what)
                {
                    (node, what) = (candidate, found);
                    continue 'smaller;
                }
            }
            break;
        }
        self.tell(&sql, &node.sql(), &what)
    }

    fn tell(&mut self, sql: &str, small: &str, what: &str) -> Result<()> {
        let mut text = format!("{what}\n    {small}");
        if sql != small && sql.len() < 3000 {
            text.push_str(&format!("\n    shrunk from: {sql}"));
        }
        println!("DIFFERENCE {} ({}): {text}", self.report.differences.len() + 1, self.engines.name());
        if let Some(folder) = &self.options.histories {
            let path = folder.join(format!("{}.sql", self.report.differences.len() + 1));
            let all = format!("{};\n{small};\n", self.history.join(";\n"));
            std::fs::write(&path, all).with_context(|| path.display().to_string())?;
        }
        self.report.differences.push(text);
        Ok(())
    }

    fn on_basalt(&mut self, sql: &str) -> Result<Answer> {
        if self.basalt_wire.is_none() {
            let mut wire = self.basalt.connect()?;
            wire.set_read_timeout(ANSWER_TIMEOUT)?;
            wire.run("SET TimeZone = 'Europe/Berlin'")?;
            wire.run("SET statement_timeout = '15s'")?;
            self.basalt_wire = Some(wire);
        }
        let wire = self.basalt_wire.as_mut().context("a connection")?;
        let answer = wire.simple(sql, None);
        answer.with_context(|| format!("Basalt: {sql}\n{}", self.basalt.log_tail()))
    }

    fn fresh_schema(&mut self) -> Result<()> {
        const NEW: &str = "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public";
        self.history.clear();
        self.postgres.run("SET statement_timeout = 0")?;
        self.postgres.run(NEW)?;
        let answer = self.on_basalt(NEW)?;
        anyhow::ensure!(answer.error().is_none(), "{NEW}: {:?}", answer.error());
        Ok(())
    }
}

/// Puts parameters into the place of constants.
fn with_parameters(node: &mut Node, values: &mut Vec<String>) {
    if let (Role::Expr(ty), true) = (&node.role, node.uses.iter().any(|of| of == LITERAL)) {
        values.push(node.sql());
        let parameter = format!("${}::{}", values.len(), Kind::of(*ty).name());
        node.pieces = vec![Piece::Text(parameter)];
        return;
    }
    for piece in &mut node.pieces {
        if let Piece::Node(node) = piece {
            with_parameters(node, values);
        }
    }
}

/// What kind of difference it is: its words without values.
fn kind(what: &str) -> String {
    let words = what.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()) || word.len() == 5);
    let head: String = what.chars().take_while(|c| *c != '(').collect();
    if what.starts_with("row") {
        "row".into()
    } else if head.len() < what.len() {
        head
    } else {
        words.take(6).collect::<Vec<_>>().join(" ")
    }
}
