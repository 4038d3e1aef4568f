//! What lists tell before dependencies are looked at: which transactions have happened, the order in which each key's
//! values came, and the anomalies that one list, or two of one key, prove.

use super::check::{Anomaly, Kind};
use super::show::{list_text, name};
use super::{Fate, History, Key, Level, Order, Reading, Seen, Step, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) struct Versions<'a> {
    pub history: &'a History,
    /// By transaction: whether it has committed.
    pub alive: Vec<bool>,
    /// Which transaction has appended a value.
    pub writer: HashMap<(Key, Value), usize>,
    /// The longest list of each key: its values in the order in which they came.
    pub order: BTreeMap<Key, &'a [Value]>,
}

impl<'a> Versions<'a> {
    pub fn new(history: &'a History) -> Versions<'a> {
        let mut writer = HashMap::new();
        for (at, transaction) in history.transactions.iter().enumerate() {
            writer.extend(transaction.appends().map(|append| (append, at)));
        }
        let mut versions = Versions { history, alive: alive(history, &writer), writer, order: BTreeMap::new() };
        for (_, seen) in versions.reads() {
            let longest = versions.order.entry(seen.key).or_default();
            if seen.list.len() > longest.len() {
                *longest = seen.list;
            }
        }
        versions
    }

    /// All that committed transactions have read.
    pub fn reads(&self) -> Vec<(usize, Seen<'a>)> {
        let committed = self.history.transactions.iter().enumerate().filter(|(at, _)| self.alive[*at]);
        let operations = committed.flat_map(|(at, transaction)| transaction.operations.iter().map(move |op| (at, op)));
        operations.flat_map(|(at, operation)| operation.seen().into_iter().map(move |seen| (at, seen))).collect()
    }

    /// Whether the list holds a value that the reader has appended itself.
    pub fn is_own(&self, reader: usize, seen: &Seen) -> bool {
        seen.list.iter().rev().any(|value| self.writer.get(&(seen.key, *value)) == Some(&reader))
    }

    pub fn anomalies(&self, level: Level, order: Order) -> Vec<Anomaly> {
        let mut found = Vec::new();
        let mut is_said = HashSet::new();
        let last_appends = self.last_appends();
        for (at, seen) in self.reads() {
            self.look_at_list(at, &seen, &mut is_said, &mut found);
            self.look_at_end(at, &seen, &last_appends, &mut found);
        }
        for at in (0..self.alive.len()).filter(|at| self.alive[*at]) {
            self.look_inside(at, level, &mut found);
        }
        if order == Order::RealTime {
            self.look_for_lost_appends(&mut found);
        }
        if level >= Level::RepeatableRead {
            self.look_for_lost_updates(&mut found);
        }
        found
    }

    /// Values that must not be in it, and an order that others have seen differently.
    fn look_at_list(&self, at: usize, seen: &Seen<'a>, is_said: &mut HashSet<(Key, Value)>, found: &mut Vec<Anomaly>) {
        let order = self.order[&seen.key];
        let key = seen.key.0;
        // What is a head of the longest list has nothing but what that has.
        if order.starts_with(seen.list) && order.len() != seen.list.len() {
            return;
        }
        let list = list_text(seen.list);
        let reader = name(at);
        if !order.starts_with(seen.list) {
            let text = format!("{reader} read key {key} as {list}, and another {}", list_text(order));
            found.push(Anomaly::new(Kind::IncompatibleOrder, vec![at], text));
        }
        let mut before = HashSet::new();
        for value in seen.list {
            let problem = match self.writer.get(&(seen.key, *value)) {
                None => Some((Kind::UnknownValue, "nobody appended it".to_string())),
                Some(writer) if !self.alive[*writer] => {
                    Some((Kind::AbortedRead, format!("{} appended it and was rolled back", name(*writer))))
                }
                Some(_) if !before.insert(*value) => Some((Kind::DoubledAppend, "it is there twice".to_string())),
                Some(_) => None,
            };
            if let Some((kind, why)) = problem
                && is_said.insert((seen.key, *value))
            {
                let writer = self.writer.get(&(seen.key, *value)).copied();
                let text = format!("{reader} read {} in key {key}, and {why}: {list}", value.0);
                found.push(Anomaly::new(kind, [Some(at), writer].into_iter().flatten().collect(), text));
            }
        }
    }

    /// A list that ends in the middle of a transaction's appends.
    fn look_at_end(&self, at: usize, seen: &Seen, last: &HashMap<(usize, Key), Value>, found: &mut Vec<Anomaly>) {
        let Some(value) = seen.list.last() else { return };
        let Some(writer) = self.writer.get(&(seen.key, *value)).copied() else { return };
        let last = last.get(&(writer, seen.key)).copied().unwrap_or(*value);
        if writer != at && self.alive[writer] && last != *value {
            let (reader, writer_name) = (name(at), name(writer));
            let text = format!(
                "{reader} read key {} up to {}, but {writer_name} appended {} to it as well: {}",
                seen.key.0,
                value.0,
                last.0,
                list_text(seen.list)
            );
            found.push(Anomaly::new(Kind::IntermediateRead, vec![at, writer], text));
        }
    }

    fn last_appends(&self) -> HashMap<(usize, Key), Value> {
        let transactions = self.history.transactions.iter().enumerate();
        transactions.flat_map(|(at, transaction)| transaction.appends().map(move |(key, v)| ((at, key), v))).collect()
    }

    /// A transaction sees what it has appended itself, where its locks or its snapshot keep everything else away.
    fn look_inside(&self, at: usize, level: Level, found: &mut Vec<Anomaly>) {
        let mut own: HashMap<Key, Vec<Value>> = HashMap::new();
        let mut known: HashMap<Key, Vec<Value>> = HashMap::new();
        for operation in &self.history.transactions[at].operations {
            if let Step::Append { key, value } = operation.step {
                own.entry(key).or_default().push(value);
                known.entry(key).and_modify(|list| list.push(value));
            }
            for seen in operation.seen() {
                let appended = own.get(&seen.key).map_or(&[][..], Vec::as_slice);
                let expected = known.get(&seen.key);
                if !seen.list.ends_with(appended) || expected.is_some_and(|list| list != seen.list) {
                    let text = format!(
                        "{} read key {} as {}, but must have read {}",
                        name(at),
                        seen.key.0,
                        list_text(seen.list),
                        expected.map_or_else(|| format!("… and its own {}", list_text(appended)), |l| list_text(l))
                    );
                    found.push(Anomaly::new(Kind::Internal, vec![at], text));
                }
                // At READ COMMITTED, others may append until the row is locked.
                let is_locked = !appended.is_empty() || seen.reading == Reading::Locked && !seen.list.is_empty();
                if level >= Level::RepeatableRead || is_locked {
                    known.insert(seen.key, seen.list.to_vec());
                }
            }
        }
    }

    /// Appends that are in no list, though somebody has read the key who began after they were acknowledged.
    fn look_for_lost_appends(&self, found: &mut Vec<Anomaly>) {
        let transactions = &self.history.transactions;
        let mut last_reader: HashMap<Key, usize> = HashMap::new();
        for (at, seen) in self.reads() {
            let last = last_reader.entry(seen.key).or_insert(at);
            if transactions[at].began_ns > transactions[*last].began_ns {
                *last = at;
            }
        }
        for (at, transaction) in transactions.iter().enumerate().filter(|(_, one)| one.fate == Fate::Committed) {
            for (key, value) in transaction.appends() {
                let Some(reader) = last_reader.get(&key).copied() else { continue };
                let order = self.order[&key];
                if transactions[reader].began_ns > transaction.ended_ns && !order.contains(&value) {
                    let text = format!(
                        "{} appended {} to key {} and committed before {} began, but the key's longest list is {}",
                        name(at),
                        value.0,
                        key.0,
                        name(reader),
                        list_text(order)
                    );
                    found.push(Anomaly::new(Kind::LostAppend, vec![at, reader], text));
                }
            }
        }
    }

    /// Two transactions that have read the same version of a key, and both appended to it.
    fn look_for_lost_updates(&self, found: &mut Vec<Anomaly>) {
        let transactions = &self.history.transactions;
        let mut readers: BTreeMap<(Key, usize), Vec<usize>> = BTreeMap::new();
        for (at, seen) in self.reads() {
            let is_head = self.order[&seen.key].starts_with(seen.list);
            if is_head && !self.is_own(at, &seen) && transactions[at].appends().any(|(key, _)| key == seen.key) {
                readers.entry((seen.key, seen.list.len())).or_default().push(at);
            }
        }
        for ((key, length), mut readers) in readers {
            readers.dedup();
            if readers.len() > 1 {
                let names: Vec<String> = readers.iter().map(|at| name(*at)).collect();
                let list = list_text(&self.order[&key][..length]);
                let text = format!("{} read key {} as {list}, and each appended to it", names.join(" and "), key.0);
                found.push(Anomaly::new(Kind::LostUpdate, readers, text));
            }
        }
    }
}

/// A transaction of unknown fate has committed if one that has committed saw it.
fn alive(history: &History, writer: &HashMap<(Key, Value), usize>) -> Vec<bool> {
    let mut alive: Vec<bool> = history.transactions.iter().map(|one| one.fate == Fate::Committed).collect();
    let mut to_read: Vec<usize> = (0..alive.len()).filter(|at| alive[*at]).collect();
    while let Some(at) = to_read.pop() {
        for seen in history.transactions[at].operations.iter().flat_map(|operation| operation.seen()) {
            for writer in seen.list.iter().filter_map(|value| writer.get(&(seen.key, *value))) {
                if history.transactions[*writer].fate == Fate::Unknown && !alive[*writer] {
                    alive[*writer] = true;
                    to_read.push(*writer);
                }
            }
        }
    }
    alive
}
