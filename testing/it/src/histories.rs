//! Histories of transactions, checked for what their isolation level forbids.
//!
//! The idea is Elle's (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations",
//! VLDB 2020, section 4): every key holds a list, a write appends a value that is never appended twice, so a list that
//! was read tells which writes came before it, and in which order. From that follow the dependencies between
//! transactions ([`dependencies`]), and a cycle of them that a level forbids ([`cycles`], [`check`]) is an anomaly in
//! the sense of Adya, Liskov and O'Neil ("Generalized Isolation Level Definitions", ICDE 2000). [`run`] makes
//! histories with clients of a real server.
//!
//! Keys belong to groups of [`GROUP_KEYS`]; a key without a row reads as the empty list, so a read of a whole group
//! depends on rows that are not there yet.

pub mod check;
mod cycles;
mod dependencies;
pub mod run;
mod show;
mod versions;

pub use check::{Anomaly, Kind, check};
pub use show::render;

/// Keys of a group are adjacent: group `g` has the keys from `g * GROUP_KEYS` on.
pub const GROUP_KEYS: u32 = 8;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Value(pub u32);

/// What a level promises, in the order of strength; REPEATABLE READ is snapshot isolation, as in PostgreSQL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// Which transactions must be ordered as they were run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// None: dependencies are all.
    Free,
    /// Those of one client.
    Sessions,
    /// Each before all that began after it had ended.
    RealTime,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Committed,
    Aborted,
    /// Nobody was told: it has committed if a committed transaction has read a value of it.
    Unknown,
}

/// Which version of a row a statement reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// That of a snapshot: the statement's at READ COMMITTED, else the transaction's.
    Snapshot,
    /// That which its row lock protects until the transaction ends: at READ COMMITTED perhaps a newer one.
    Locked,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    Append {
        key: Key,
        value: Value,
    },
    Read {
        key: Key,
        list: Vec<Value>,
    },
    /// Of the keys `first..=last` those that have rows, ascending.
    Range {
        first: Key,
        last: Key,
        lists: Vec<(Key, Vec<Value>)>,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Counted within the transaction, never descending: operations of one statement share a snapshot.
    pub statement: u32,
    pub reading: Reading,
    pub step: Step,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    pub client: u32,
    /// Nanoseconds since the history began, on one clock for all clients: before its first message was sent.
    pub began_ns: u64,
    /// When the answer to the last message had come.
    pub ended_ns: u64,
    pub fate: Fate,
    pub operations: Vec<Operation>,
}

/// Every transaction that may have written; what was rolled back to a savepoint is an aborted transaction of its own.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct History {
    pub transactions: Vec<Transaction>,
}

/// A list that one operation has read, of one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen<'a> {
    statement: u32,
    reading: Reading,
    key: Key,
    list: &'a [Value],
    /// By a condition that other keys could come to meet.
    by_range: bool,
}

impl Operation {
    /// What it has read, absent keys of a range included.
    fn seen(&self) -> Vec<Seen<'_>> {
        let seen = |key, list, by_range| Seen { statement: self.statement, reading: self.reading, key, list, by_range };
        match &self.step {
            Step::Append { .. } => Vec::new(),
            Step::Read { key, list } => vec![seen(*key, list.as_slice(), false)],
            Step::Range { first, last, lists } => {
                let mut present = lists.iter().peekable();
                let list_of = |key: u32| match present.next_if(|(present, _)| present.0 == key) {
                    Some((_, list)) => seen(Key(key), list.as_slice(), true),
                    None => seen(Key(key), &[], true),
                };
                (first.0..=last.0).map(list_of).collect()
            }
        }
    }
}

impl Transaction {
    fn appends(&self) -> impl Iterator<Item = (Key, Value)> {
        self.operations.iter().filter_map(|operation| match operation.step {
            Step::Append { key, value } => Some((key, value)),
            _ => None,
        })
    }
}
