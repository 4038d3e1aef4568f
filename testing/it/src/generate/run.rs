//! Runs generated statements on both servers.

use super::catalog::Catalog;
use super::compare::{OTHER_ORDER, Verdict, compare, may_be_order};
use super::literals::simple;
use super::node::Node;
use super::schema::{MOODS, Table};
use super::types::Types;
use super::{Generator, Statement};
use crate::engines::Engines;
use crate::servers::{Basalt, Postgres};
use crate::wire::{Answer, Wire};
use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

/// Statements between one set of tables and the next.
const STATEMENTS_PER_SCHEMA: usize = 150;
/// Attempts at making one failing statement smaller.
const SHRINK_STEPS_MAX: usize = 400;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
const SETTINGS: [&str; 4] = [
    "SET statement_timeout = '20s'",
    "SET TimeZone = 'Europe/Berlin'",
    "SET client_min_messages = 'error'",
    "SET extra_float_digits = 1",
];

#[derive(Clone, Debug)]
pub struct Options {
    pub statements: usize,
    pub seed: u64,
    /// Stop after so many different differences.
    pub differences_max: usize,
    /// Differences that are known: part of the statement or of what is told.
    pub known: Vec<String>,
    /// Where to put, for each difference, the statements that led to it: one file each.
    pub histories: Option<PathBuf>,
    /// What statements run with.
    pub engines: Vec<Engines>,
}

#[derive(Default, Debug)]
pub struct Report {
    pub statements: usize,
    /// In PostgreSQL.
    pub succeeded: usize,
    pub order_of_evaluation: usize,
    pub known: usize,
    /// Why statements failed in PostgreSQL: SQLSTATE and message without values, and how often.
    pub failed: BTreeMap<String, usize>,
    /// Readable, each with the smallest statement found.
    pub differences: Vec<String>,
    /// What was exercised by statements that succeeded, and how often.
    pub covered: BTreeMap<String, usize>,
    /// What could have been and was not.
    pub not_covered: Vec<String>,
}

pub fn run(options: &Options) -> Result<Report> {
    let server = Postgres::start()?;
    server.empty_database()?;
    let mut both = Both {
        basalt_wire: None,
        postgres: server.connect()?,
        basalt: Basalt::start()?,
        report: Report::default(),
        seen: HashSet::new(),
        options: options.clone(),
        used: Vec::new(),
        failed_block: false,
        prepared: String::new(),
        history: Vec::new(),
        engines: Engines::default(),
    };
    for setting in SETTINGS {
        both.postgres.run(setting)?;
    }
    let mut types = Types::builtin();
    types.add_enum("mood", &MOODS);
    let mut basalt = both.basalt.connect()?;
    let mut catalog = Catalog::load(&mut types, &mut both.postgres, &mut basalt)?;
    drop(basalt);
    let mut seed = StdRng::seed_from_u64(options.seed);
    while both.report.statements < options.statements && both.report.differences.len() < options.differences_max {
        let used = both.epoch(&types, &catalog, seed.random())?;
        used.into_iter().for_each(|(label, good)| catalog.note(&label, good));
        both.progress();
    }
    let report = &mut both.report;
    let labels: HashSet<&str> = catalog.labels().collect();
    let mut missed: Vec<String> =
        labels.into_iter().filter(|label| !report.covered.contains_key(*label)).map(str::to_string).collect();
    missed.sort();
    report.not_covered = missed;
    Ok(both.report)
}

struct Both {
    basalt: Basalt,
    basalt_wire: Option<Wire>,
    postgres: Wire,
    report: Report,
    /// Kinds of differences that were told already.
    seen: HashSet<String>,
    options: Options,
    /// Labels of what this epoch's statements used, and whether they succeeded.
    used: Vec<(String, bool)>,
    /// Whether PostgreSQL waits for the end of a block that failed.
    failed_block: bool,
    /// The last PREPARE.
    prepared: String,
    /// What changed the tables of this epoch, in order.
    history: Vec<String>,
    engines: Engines,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Checked {
    Succeeded,
    /// On both.
    Failed,
    Different,
}

impl Both {
    /// One set of tables and the statements over it. What the statements used, and whether they succeeded.
    fn epoch(&mut self, types: &Types, catalog: &Catalog, seed: u64) -> Result<Vec<(String, bool)>> {
        let rng = StdRng::seed_from_u64(seed);
        let mut generator = Generator { types, catalog, rng, tables: Vec::new(), next_id: HashMap::new(), aliases: 0 };
        self.used.clear();
        self.fresh_schema()?;
        self.history.clear();
        self.with(Engines::drawn(&self.options.engines, &mut generator.rng))?;
        for sql in generator.new_schema() {
            self.history.push(sql.clone());
            self.postgres.run(&sql)?;
            let answer = self.on_basalt(&sql)?;
            if let Some(error) = answer.error() {
                self.tell(&sql, &sql, &format!("Basalt fails with {} ({})", error.sqlstate(), error.message()))?;
                return Ok(std::mem::take(&mut self.used));
            }
        }
        let end = (self.report.statements + STATEMENTS_PER_SCHEMA).min(self.options.statements);
        while self.report.statements < end {
            if self.step(types, &mut generator)? == Checked::Different {
                // What the servers hold may differ from here on.
                break;
            }
        }
        Ok(std::mem::take(&mut self.used))
    }

    fn step(&mut self, types: &Types, generator: &mut Generator) -> Result<Checked> {
        match generator.rng.random_range(0..100) {
            0..=71 => {
                let select = generator.select(3);
                let statement = Statement { node: select.node, ordered: select.ordered, changes: None };
                // A query changes nothing: the next one may be run whatever came of it.
                self.check(types, &statement)?;
                Ok(Checked::Succeeded)
            }
            72 | 73 => {
                let engines = Engines::drawn(&self.options.engines, &mut generator.rng);
                self.with(engines)?;
                Ok(Checked::Succeeded)
            }
            74..=86 => {
                let statement = generator.change();
                self.check(types, &statement)
            }
            87..=90 => self.transaction(types, generator),
            91..=94 => {
                for statement in generator.prepared() {
                    if statement.node.sql().starts_with("PREPARE") {
                        self.prepared = statement.node.sql();
                    }
                    if self.check(types, &statement)? == Checked::Different {
                        return Ok(Checked::Different);
                    }
                }
                Ok(Checked::Succeeded)
            }
            95 | 96 => {
                let (statement, after) = generator.definition();
                let checked = self.check(types, &statement)?;
                if checked == Checked::Succeeded {
                    generator.tables = after;
                }
                Ok(checked)
            }
            97 => self.vacuum("VACUUM"),
            98 => {
                let tables: Vec<&Table> = generator.tables.iter().filter(|table| table.writable).collect();
                let table = tables.get(generator.rng.random_range(0..tables.len().max(1)));
                let orientation = ["column", "row", "row,column"][generator.rng.random_range(0..3)];
                if let Some(table) = table {
                    let sql = format!("ALTER TABLE {} SET (orientation = '{orientation}')", table.name);
                    self.on_basalt(&sql)?;
                }
                self.vacuum("VACUUM FULL")
            }
            _ => self.restart(),
        }
    }

    /// A few changes in one transaction, with a savepoint, that ends either way.
    fn transaction(&mut self, types: &Types, generator: &mut Generator) -> Result<Checked> {
        let fixed = |sql: &str| {
            let node = Node::fixed(sql).uses(format!("statement {sql}"));
            Statement { node, ordered: false, changes: None }
        };
        let level = ["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"][generator.rng.random_range(0..2)];
        let mut statements = vec![fixed(level), generator.change(), fixed("SAVEPOINT s"), generator.change()];
        statements.push(fixed(["ROLLBACK TO s", "RELEASE s"][generator.rng.random_range(0..2)]));
        statements.push(generator.change());
        statements.push(fixed(["COMMIT", "ROLLBACK"][generator.rng.random_range(0..2)]));
        for statement in &statements {
            let sql = statement.node.sql();
            let goes_on = ["ROLLBACK", "COMMIT"].iter().any(|end| sql.starts_with(end));
            if self.failed_block && !goes_on {
                continue;
            }
            if self.check(types, statement)? == Checked::Different {
                return Ok(Checked::Different);
            }
        }
        let text = statements.iter().map(|statement| statement.node.sql()).collect::<Vec<_>>().join(";\n    ");
        for table in statements.iter().filter_map(|statement| statement.changes.as_ref()) {
            if self.holds_other_rows(table, &text)? {
                return Ok(Checked::Different);
            }
        }
        Ok(Checked::Succeeded)
    }

    /// Whether a table's rows differ after `sql`; tells of it.
    fn holds_other_rows(&mut self, table: &str, sql: &str) -> Result<bool> {
        let rows = format!("SELECT * FROM {table} ORDER BY id");
        let (ours, theirs) = (self.on_basalt(&rows)?, self.postgres.simple(&rows, None)?);
        match compare(&ours, &theirs, true) {
            Verdict::Different(what) => {
                self.tell(sql, sql, &format!("{table} afterwards: {what}"))?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Runs a statement on both servers, and looks at the table that it changed.
    fn check(&mut self, types: &Types, statement: &Statement) -> Result<Checked> {
        let sql = statement.node.sql();
        if !sql.starts_with("SELECT") {
            self.history.push(sql.clone());
        }
        let postgres = self.postgres.simple(&sql, None).with_context(|| format!("PostgreSQL: {sql}"))?;
        if matches!(postgres.sqlstate(), Some("57014" | "53400")) {
            // Too much work to be worth a comparison; PostgreSQL's tables are as before, so Basalt's must stay.
            return Ok(Checked::Failed);
        }
        self.failed_block = postgres.status == b'E';
        let basalt = self.on_basalt(&sql)?;
        self.report.statements += 1;
        let succeeded = postgres.error().is_none();
        self.report.succeeded += usize::from(succeeded);
        if let Some(error) = postgres.error() {
            let why = format!("{} {}", error.sqlstate(), shape(error.message()));
            *self.report.failed.entry(why).or_default() += 1;
        }
        for label in statement.node.all_uses() {
            self.used.push((label.to_string(), succeeded));
            if succeeded {
                *self.report.covered.entry(label.to_string()).or_default() += 1;
            }
        }
        match compare(&basalt, &postgres, statement.ordered) {
            Verdict::Same => {}
            Verdict::OrderOfEvaluation => self.report.order_of_evaluation += 1,
            Verdict::Different(what) => {
                let order_only = may_be_order(&basalt, &postgres);
                self.differs(types, statement, &what, order_only)?;
                return Ok(Checked::Different);
            }
        }
        if let (Some(table), b'I') = (&statement.changes, postgres.status)
            && self.holds_other_rows(table, &sql)?
        {
            return Ok(Checked::Different);
        }
        Ok(if succeeded { Checked::Succeeded } else { Checked::Failed })
    }

    /// Shrinks a statement that differs, and tells of it.
    /// `order_only` says whether one side alone met a failing row.
    fn differs(&mut self, types: &Types, statement: &Statement, what: &str, mut order_only: bool) -> Result<()> {
        let sql = statement.node.sql();
        if self.seen.contains(&kind(what)) && self.seen.len() > 200 {
            return Ok(());
        }
        // The statement has to run on what it met: inside of a block that is gone.
        for ended in [true, false] {
            let wire = if ended { Some(&mut self.postgres) } else { self.basalt_wire.as_mut() };
            if let Some(wire) = wire {
                wire.simple("ROLLBACK", None)?;
            }
        }
        let (mut node, mut what) = (statement.node.clone(), what.to_string());
        let mut steps = 0;
        'smaller: loop {
            for candidate in node.smaller(&|ty| simple(types, ty)) {
                steps += 1;
                // What takes too long takes as long in every form.
                if steps > SHRINK_STEPS_MAX || what.contains(" 57014 ") {
                    break 'smaller;
                }
                let ordered = statement.ordered && candidate.all_uses().contains(&"clause ORDER BY");
                let found = self.attempt(&candidate, ordered)?;
                if let Some((found, order)) = found.filter(|(found, _)| kind(found) == kind(&what)) {
                    (node, what) = (candidate, found);
                    order_only = order;
                    continue 'smaller;
                }
            }
            break;
        }
        let small = node.sql();
        let doubtful = [
            "WHERE",
            "AND",
            "OR",
            "JOIN",
            "LIMIT",
            "coalesce",
            "CASE",
            "EXISTS",
            "INTERSECT",
            "EXCEPT",
            "IN",
            "ANY",
            "ALL",
            "FILTER",
            "FETCH",
            "OFFSET",
            "HAVING",
            "first_value",
            "last_value",
            "nth_value",
            "lead",
            "lag",
            "EXCLUDE",
            "FOLLOWING",
            "PRECEDING",
        ];
        let shown = if small.starts_with("EXECUTE") { &self.prepared } else { &small };
        let words: HashSet<&str> = shown.split(|c: char| !c.is_ascii_alphabetic() && c != '_').collect();
        // What a subquery in FROM or WITH computes from constants PostgreSQL may compute while it plans.
        let nested = words.contains("WITH") || shown.contains("FROM (") || shown.contains("(SELECT");
        if order_only && (nested || doubtful.iter().any(|word| words.contains(word))) {
            self.report.order_of_evaluation += 1;
            return Ok(());
        }
        self.tell(&sql, &small, &what)
    }

    /// What a smaller statement shows, if it differs still. Leaves no trace.
    /// With it, whether one side alone met a failing row.
    fn attempt(&mut self, node: &Node, ordered: bool) -> Result<Option<(String, bool)>> {
        let sql = node.sql();
        self.postgres.simple("BEGIN", None)?;
        let postgres = self.postgres.simple(&sql, None)?;
        self.postgres.simple("ROLLBACK", None)?;
        self.on_basalt("BEGIN")?;
        let basalt = self.on_basalt(&sql)?;
        self.on_basalt("ROLLBACK")?;
        let verdict = compare(&basalt, &postgres, ordered);
        let Verdict::Different(what) = verdict else { return Ok(None) };
        Ok(Some((what, may_be_order(&basalt, &postgres))))
    }

    fn tell(&mut self, sql: &str, small: &str, what: &str) -> Result<()> {
        let prepared = if small.starts_with("EXECUTE") { self.prepared.as_str() } else { "" };
        let known = |known: &String| {
            [small, what, prepared].iter().any(|text| known.split(" … ").all(|part| text.contains(part)))
        };
        // PostgreSQL takes columns that a condition makes equal (to another, to a constant) for equal where a grouping
        // set has a null in the place of one.
        let contains = |words: &[&str]| words.iter().any(|word| small.contains(word));
        let has_sets = contains(&["CUBE", "ROLLUP", "GROUPING SETS"]) && contains(&["JOIN", "WHERE"]);
        let other_rows = what.starts_with(OTHER_ORDER) || what.starts_with("row ") && contains(&["LIMIT", "OFFSET"]);
        let forgets_nulls = has_sets && small.contains("ORDER BY") && other_rows;
        if forgets_nulls || self.options.known.iter().any(known) {
            self.report.known += 1;
            return Ok(());
        }
        if !self.seen.insert(format!("{} {}", kind(what), shape(small))) {
            return Ok(());
        }
        self.seen.insert(kind(what));
        let mut text = format!("{what}\n    {small}");
        if small.starts_with("EXECUTE") {
            text.push_str(&format!("\n    of: {}", self.prepared));
        }
        if sql != small && sql.len() < 1500 {
            text.push_str(&format!("\n    shrunk from: {sql}"));
        }
        println!("DIFFERENCE ({}) {text}", self.engines.name());
        if let Some(folder) = &self.options.histories {
            let path = folder.join(format!("{}.sql", self.report.differences.len() + 1));
            std::fs::write(&path, self.history.join(";\n") + ";\n").with_context(|| path.display().to_string())?;
        }
        self.report.differences.push(text);
        Ok(())
    }

    /// What follows runs with these.
    fn with(&mut self, engines: Engines) -> Result<()> {
        self.engines = engines;
        for sql in engines.statements() {
            self.on_basalt(&sql)?;
            self.history.push(sql);
        }
        Ok(())
    }

    /// Runs on Basalt. A connection that breaks is a difference like any other, told with the server's last words.
    fn on_basalt(&mut self, sql: &str) -> Result<Answer> {
        if self.basalt_wire.is_none() {
            let mut wire = self.basalt.connect()?;
            wire.set_read_timeout(ANSWER_TIMEOUT)?;
            for setting in SETTINGS {
                wire.run(setting)?;
            }
            for setting in self.engines.statements() {
                wire.run(&setting)?;
            }
            // What PostgreSQL does within its time Basalt shall do, too, but both share the machine.
            wire.run("SET statement_timeout = '60s'")?;
            self.basalt_wire = Some(wire);
        }
        let wire = self.basalt_wire.as_mut().context("a connection")?;
        wire.simple(sql, None).with_context(|| format!("Basalt: {sql}\n{}", self.basalt.log_tail()))
    }

    fn fresh_schema(&mut self) -> Result<()> {
        const NEW: &str = "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public";
        self.postgres.simple("ROLLBACK", None)?;
        self.postgres.run(NEW)?;
        self.postgres.run("DEALLOCATE ALL")?;
        self.basalt_wire = None;
        let answer = self.on_basalt(NEW)?;
        anyhow::ensure!(answer.error().is_none(), "{NEW}: {:?}", answer.error());
        Ok(())
    }

    fn vacuum(&mut self, sql: &str) -> Result<Checked> {
        self.on_basalt(sql)?;
        Ok(Checked::Succeeded)
    }

    /// Prepared statements go with their session, on both sides.
    fn restart(&mut self) -> Result<Checked> {
        self.basalt_wire = None;
        self.basalt.kill_and_start()?;
        Ok(Checked::Succeeded)
    }

    fn progress(&self) {
        let report = &self.report;
        println!(
            "{} statements, {} succeeded in PostgreSQL, {} differences, {} known, {} by order of evaluation, {} things covered",
            report.statements,
            report.succeeded,
            report.differences.len(),
            report.known,
            report.order_of_evaluation,
            report.covered.len(),
        );
    }
}

/// What kind of difference it is: its words without values.
fn kind(what: &str) -> String {
    let head: String = what.chars().take_while(|c| *c != '(').collect();
    head.split_whitespace()
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit()) || word.len() == 5)
        .take(6)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A statement without its values and its names.
fn shape(sql: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for c in sql.chars() {
        match c {
            '\'' => quoted = !quoted,
            c if quoted || c.is_ascii_digit() => {}
            c => out.push(c),
        }
    }
    out
}
