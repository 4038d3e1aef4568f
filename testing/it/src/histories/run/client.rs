//! One client: random transactions, and the record of what it was told.

use super::statement::{self, Statement, Target};
use super::{Shared, lists_of};
use crate::histories::{Fate, Key, Level, Operation, Reading, Step, Transaction, Value};
use crate::wire::{Answer, Reply, Wire};
use anyhow::{Result, anyhow, bail};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::Duration;

const OPERATIONS_MAX: u32 = 6;
const PAUSE_MAX: Duration = Duration::from_micros(1500);
/// Serialization failure, deadlock, duplicate key, NOWAIT: another transaction was in the way.
const CONFLICTS: [&str; 4] = ["40001", "40P01", "23505", "55P03"];

pub(super) struct Client<'a> {
    id: u32,
    wire: Wire,
    random: StdRng,
    shared: &'a Shared,
    /// Names of prepared statements by their text.
    prepared: HashMap<String, String>,
    records: Vec<Transaction>,
    counts: BTreeMap<String, usize>,
}

/// What a transaction has done so far.
#[derive(Default)]
struct Open {
    operations: Vec<Operation>,
    statements: u32,
}

enum Failure {
    /// By a conflict.
    Refused,
    /// Nothing that may happen.
    Broken(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Broken(error)
    }
}

impl<'a> Client<'a> {
    pub fn new(id: u32, wire: Wire, shared: &'a Shared) -> Client<'a> {
        let random = StdRng::seed_from_u64(shared.options.seed * 1000 + u64::from(id));
        let (prepared, records, counts) = (HashMap::new(), Vec::new(), BTreeMap::new());
        Client { id, wire, random, shared, prepared, records, counts }
    }

    pub fn work(mut self) -> Result<(Vec<Transaction>, BTreeMap<String, usize>)> {
        while !self.shared.is_over() {
            match self.random.random_range(0..100) {
                0..12 => self.message(1)?,
                12..22 => {
                    let count = self.random.random_range(2..=OPERATIONS_MAX);
                    self.message(count)?;
                }
                22..32 => self.block("BEGIN READ ONLY", true)?,
                _ => self.block("BEGIN", false)?,
            }
        }
        Ok((self.records, self.counts))
    }

    /// Statements of one message are one transaction, without BEGIN.
    fn message(&mut self, count: u32) -> Result<()> {
        let (mut open, mut statements) = (Open::default(), Vec::new());
        for _ in 0..count {
            let group = self.shared.choose_group(&mut self.random);
            let statement = if self.random.random_range(0..100) < 55 {
                self.read(group)
            } else {
                let key = statement::choose_key(group, &mut self.random);
                statement::upsert(key, self.shared.next_value(), &mut self.random)
            };
            statements.push(statement);
        }
        let began_ns = self.shared.now_ns();
        let answer = match &statements[..] {
            [statement] => self.send(statement)?,
            all => self.wire.simple(&all.iter().map(literal_sql).collect::<Vec<_>>().join("; "), None)?,
        };
        let is_done = self.is_done(&answer, &statements[0].sql);
        for (at, statement) in statements.iter().enumerate() {
            self.count(statement.form);
            let place = open.operations.len();
            self.note_appends(&mut open, statement);
            if let (true, Some(reply)) = (is_done.is_ok(), answer.replies.get(at)) {
                self.note_reply(&mut open, place, statement, reply)?;
            }
            open.statements += 1;
        }
        match is_done {
            Ok(()) => self.record(began_ns, Fate::Committed, open.operations),
            Err(Failure::Refused) => self.record(began_ns, Fate::Aborted, open.operations),
            Err(Failure::Broken(error)) => return Err(error),
        }
        Ok(())
    }

    fn block(&mut self, begin: &str, is_read_only: bool) -> Result<()> {
        let mut open = Open::default();
        let began_ns = self.shared.now_ns();
        let done = self.operations(began_ns, begin, is_read_only, &mut open);
        let fate = match done {
            Ok(()) if self.random.random_range(0..100) >= 10 => {
                let answer = self.wire.simple("COMMIT", None)?;
                match self.is_done(&answer, "COMMIT") {
                    Ok(()) if answer.last().tag.as_deref() == Some("COMMIT") => Fate::Committed,
                    Ok(()) => bail!("COMMIT answered {:?}", answer.last().tag),
                    Err(Failure::Refused) => Fate::Aborted,
                    Err(Failure::Broken(error)) => return Err(error),
                }
            }
            Ok(()) | Err(Failure::Refused) => {
                self.wire.run("ROLLBACK")?;
                Fate::Aborted
            }
            Err(Failure::Broken(error)) => return Err(error),
        };
        self.record(began_ns, fate, open.operations);
        Ok(())
    }

    fn operations(&mut self, began_ns: u64, begin: &str, read_only: bool, open: &mut Open) -> Result<(), Failure> {
        self.command(begin)?;
        for _ in 0..self.random.random_range(1..=OPERATIONS_MAX) {
            if self.random.random_range(0..4) == 0 {
                std::thread::sleep(self.random.random_range(Duration::ZERO..PAUSE_MAX));
            }
            if self.random.random_range(0..100) < 6 && !read_only {
                self.savepoint(began_ns, open)?;
            } else {
                self.operation(read_only, open)?;
            }
        }
        Ok(())
    }

    /// An operation that may be taken back, and is if it fails.
    fn savepoint(&mut self, began_ns: u64, open: &mut Open) -> Result<(), Failure> {
        self.command("SAVEPOINT s")?;
        let mark = open.operations.len();
        match self.operation(false, open) {
            Ok(()) if self.random.random() => return self.command("RELEASE s"),
            Ok(()) | Err(Failure::Refused) => {}
            Err(broken) => return Err(broken),
        }
        self.command("ROLLBACK TO s")?;
        self.count("rolled back to a savepoint");
        let undone = open.operations.split_off(mark);
        self.record(began_ns, Fate::Aborted, undone);
        Ok(())
    }

    fn operation(&mut self, read_only: bool, open: &mut Open) -> Result<(), Failure> {
        let group = self.shared.choose_group(&mut self.random);
        if read_only || self.random.random_range(0..100) < 50 {
            // At READ COMMITTED it may see a newer version than the statement's, which is not held fast either.
            let is_held = self.shared.options.level != Level::ReadCommitted;
            let statement = match self.random.random_range(0..32) {
                0..4 if !read_only => statement::locked_read(group, &mut self.random),
                4 if !read_only && is_held => statement::key_shared_read(group, &mut self.random),
                _ => self.read(group),
            };
            return self.perform(open, &statement).map(drop);
        }
        let key = statement::choose_key(group, &mut self.random);
        let value = self.shared.next_value();
        self.append(key, value, open)
    }

    fn read(&mut self, group: u32) -> Statement {
        let other = self.shared.choose_group(&mut self.random);
        statement::any_read(group, other, &mut self.random)
    }

    fn append(&mut self, key: Key, value: Value, open: &mut Open) -> Result<(), Failure> {
        if self.random.random_range(0..100) < self.shared.options.client_writes {
            self.perform(open, &statement::read_key(key))?;
            return self.append_to_known(key, value, open);
        }
        match self.random.random_range(0..11) {
            0..3 => {
                let update = statement::update(key, value, &mut self.random);
                self.or_insert(open, update, key, value)
            }
            3..6 => {
                let upsert = statement::upsert(key, value, &mut self.random);
                self.perform(open, &upsert).map(drop)
            }
            6 => {
                let update = statement::update_many(key.0 / super::GROUP_KEYS, value, &mut self.random);
                self.perform(open, &update).map(drop)
            }
            7 => {
                self.perform(open, &statement::lock_key(key))?;
                let update = statement::update(key, value, &mut self.random);
                self.or_insert(open, update, key, value)
            }
            8 => {
                if self.perform(open, &statement::lock_key(key))? == 0 {
                    return self.perform(open, &statement::insert(key, value)).map(drop);
                }
                self.append_to_known(key, value, open)
            }
            9 => self.append_batch(key.0 / super::GROUP_KEYS, value, open),
            _ => {
                self.perform(open, &statement::delete(key))?;
                let known = last_list(open, key);
                self.perform(open, &statement::insert_list(key, &known, value)).map(drop)
            }
        }
    }

    /// Rows that come together, for keys that are not there or for all.
    fn append_batch(&mut self, group: u32, value: Value, open: &mut Open) -> Result<(), Failure> {
        if self.random.random() {
            self.perform(open, &statement::read_group(group))?;
            let read = open.operations.last().map(|operation| operation.seen()).unwrap_or_default();
            let absent: Vec<Key> = read.iter().filter(|seen| seen.list.is_empty()).map(|seen| seen.key).collect();
            if !absent.is_empty() {
                let batch = statement::batch(&absent, value, &mut self.random);
                return self.perform(open, &batch).map(drop);
            }
        }
        let upsert = statement::upsert_many(group, value, &mut self.random);
        self.perform(open, &upsert).map(drop)
    }

    /// Writes back what the transaction has read last.
    fn append_to_known(&mut self, key: Key, value: Value, open: &mut Open) -> Result<(), Failure> {
        let known = last_list(open, key);
        if known.is_empty() {
            return self.perform(open, &statement::insert(key, value)).map(drop);
        }
        let rows = self.perform(open, &statement::set(key, &known, value))?;
        // At READ COMMITTED another client may delete the row, to insert it again.
        if rows == 0 {
            open.operations.pop();
        }
        Ok(())
    }

    fn or_insert(&mut self, open: &mut Open, update: Statement, key: Key, value: Value) -> Result<(), Failure> {
        let place = open.operations.len();
        if self.perform(open, &update)? > 0 {
            return Ok(());
        }
        open.operations.truncate(place);
        // At READ COMMITTED, a row that was deleted and inserted again while this one waited is not met.
        if self.shared.options.level != Level::ReadCommitted {
            let step = Step::Read { key, list: Vec::new() };
            let statement = open.statements - 1;
            open.operations.push(Operation { statement, reading: Reading::Snapshot, step });
        }
        self.perform(open, &statement::insert(key, value)).map(drop)
    }

    /// How many rows came or were changed.
    fn perform(&mut self, open: &mut Open, statement: &Statement) -> Result<usize, Failure> {
        self.count(statement.form);
        let place = open.operations.len();
        self.note_appends(open, statement);
        let answer = self.send(statement)?;
        self.is_done(&answer, &statement.sql)?;
        let reply = answer.last();
        self.note_reply(open, place, statement, reply)?;
        open.statements += 1;
        let tag = reply.tag.as_deref().unwrap_or_default();
        let count = tag.rsplit(' ').next().and_then(|count| count.parse().ok());
        count.ok_or_else(|| Failure::Broken(anyhow!("{}: tag {tag}", statement.sql)))
    }

    fn command(&mut self, sql: &str) -> Result<(), Failure> {
        let answer = self.wire.simple(sql, None)?;
        self.is_done(&answer, sql)
    }

    fn send(&mut self, statement: &Statement) -> Result<Answer> {
        let values: Vec<String> = statement.params.iter().map(statement::Param::text).collect();
        if let Some(data) = &statement.data {
            return self.wire.simple(&statement.sql, Some(data.as_bytes()));
        }
        match self.random.random_range(0..10) {
            0..5 => self.wire.simple(&literal_sql(statement), None),
            5..7 => self.wire.with_values(&statement.sql, &values),
            _ => {
                if let Some(name) = self.prepared.get(&statement.sql) {
                    return self.wire.execute(name, &values);
                }
                let name = format!("s{}", self.prepared.len());
                let answer = self.wire.prepare(&name, &statement.sql)?;
                if answer.error().is_some() {
                    return Ok(answer);
                }
                self.prepared.insert(statement.sql.clone(), name.clone());
                self.wire.execute(&name, &values)
            }
        }
    }

    fn is_done(&mut self, answer: &Answer, sql: &str) -> Result<(), Failure> {
        let Some(error) = answer.error() else { return Ok(()) };
        if !CONFLICTS.contains(&error.sqlstate()) {
            return Err(Failure::Broken(anyhow!("{sql}: {} {}", error.sqlstate(), error.message())));
        }
        self.count(&format!("refused with {}", error.sqlstate()));
        Err(Failure::Refused)
    }

    fn note_appends(&mut self, open: &mut Open, statement: &Statement) {
        for (key, value) in &statement.appends {
            self.shared.note_append(*key);
            let step = Step::Append { key: *key, value: *value };
            open.operations.push(Operation { statement: open.statements, reading: Reading::Locked, step });
        }
    }

    /// What the rows tell. The statement's own appends stand from `place` on.
    fn note_reply(&mut self, open: &mut Open, place: usize, statement: &Statement, reply: &Reply) -> Result<()> {
        let number = open.statements;
        let reading = statement.reading;
        let operation = |step| Operation { statement: number, reading, step };
        // A locking statement of READ COMMITTED may miss rows that were changed while it waited.
        let is_partial = reading == Reading::Locked && self.shared.options.level == Level::ReadCommitted;
        let mut lists = match statement.target {
            Target::Nothing => return Ok(()),
            _ => lists_of(reply)?,
        };
        match &statement.target {
            Target::Keys(keys) if !is_partial => {
                let read = |key: &Key| Step::Read { key: *key, list: lists.remove(key).unwrap_or_default() };
                open.operations.extend(keys.iter().map(read).map(operation));
            }
            Target::Ranges(ranges) if !is_partial => {
                for (first, last) in ranges {
                    let within: Vec<Key> = lists.range(first..=last).map(|(key, _)| *key).collect();
                    let lists = within.iter().filter_map(|key| lists.remove_entry(key)).collect();
                    open.operations.push(operation(Step::Range { first: *first, last: *last, lists }));
                }
            }
            _ => {
                if matches!(statement.target, Target::Returned) {
                    // Rows that are not there were not appended to.
                    let mut at = 0;
                    open.operations.retain(|one| {
                        at += 1;
                        at <= place || matches!(one.step, Step::Append { key, .. } if lists.contains_key(&key))
                    });
                }
                let rows = std::mem::take(&mut lists).into_iter();
                open.operations.extend(rows.map(|(key, list)| operation(Step::Read { key, list })));
            }
        }
        if !lists.is_empty() {
            bail!("{} also returned {lists:?}", literal_sql(statement));
        }
        Ok(())
    }

    fn record(&mut self, began_ns: u64, fate: Fate, operations: Vec<Operation>) {
        let ended_ns = self.shared.now_ns();
        if fate == Fate::Committed {
            self.shared.committed.fetch_add(1, Ordering::Relaxed);
        }
        self.records.push(Transaction { client: self.id, began_ns, ended_ns, fate, operations });
    }

    fn count(&mut self, what: &str) {
        match self.counts.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(what.to_string(), 1)),
        }
    }
}

/// What the transaction knows a key's list to be.
fn last_list(open: &Open, key: Key) -> Vec<Value> {
    let mut known = Vec::new();
    for operation in &open.operations {
        match &operation.step {
            Step::Read { key: read, list } if *read == key => known.clone_from(list),
            Step::Append { key: to, value } if *to == key => known.push(*value),
            _ => {}
        }
    }
    known
}

/// With literals in place of the parameters.
fn literal_sql(statement: &Statement) -> String {
    let params = statement.params.iter().enumerate().rev();
    params.fold(statement.sql.clone(), |sql, (at, param)| sql.replace(&format!("${}", at + 1), &param.literal()))
}
