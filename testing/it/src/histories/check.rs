//! Which anomalies of a history its level forbids.
//!
//! A level is a graph of moments whose edges say "before". Each transaction has a commit, and snapshots before it: one
//! per transaction at REPEATABLE READ, one per statement at READ COMMITTED. Dependencies lie between them:
//!
//! | | ww | wr | rw | in real time |
//! |---|---|---|---|---|
//! | READ COMMITTED | commit → commit | commit → statement's snapshot | statement's snapshot → commit | commit → first snapshot |
//! | REPEATABLE READ | commit → snapshot | commit → snapshot | snapshot → commit | commit → snapshot |
//! | SERIALIZABLE | all from one transaction to the other: it has one moment | | | |
//!
//! A cycle is an anomaly. At REPEATABLE READ that are the cycles without two anti-dependencies in a row, for behind an
//! rw edge stands a commit, and the next one begins at a snapshot (Cerone and Gotsman, "Analysing Snapshot Isolation",
//! PODC 2016, theorem 4.1). At READ COMMITTED a cycle through an rw edge means that one statement has seen a part of
//! what was committed before it; the other ones are Adya's G0 and G1c. Rows that a statement locks may be newer than
//! its snapshot there: their edges stand at the commit, until which they cannot change.

use super::cycles::{Edge, Graph, PLAIN};
use super::dependencies::{By, Dependency, dependencies};
use super::show::{name, transaction_text};
use super::versions::Versions;
use super::{Fate, History, Level, Order, Step};
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// Of one kind, as many are told.
const ANOMALIES_MAX: usize = 20;
/// Edges of one component that a short cycle is looked for through.
const TRIED_MAX: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// G0: writes of two transactions in different orders.
    DirtyWrite,
    /// G1a.
    AbortedRead,
    /// G1b.
    IntermediateRead,
    /// G1c: a cycle of writes and reads of what was written.
    CircularFlow,
    /// One statement at READ COMMITTED has seen a part of what was committed, or a row lock did not hold.
    TornStatement,
    /// A cycle with one anti-dependency, such as a lost update or a read skew.
    GSingle,
    /// A cycle with several, none of which follows another: a long fork.
    LongFork,
    /// A cycle with two in a row: write skew.
    G2Item,
    /// One of these reads was by a range.
    G2,
    LostUpdate,
    /// A transaction did not see its own appends or its own snapshot.
    Internal,
    /// Two lists of one key, neither of which is the other's head.
    IncompatibleOrder,
    UnknownValue,
    DoubledAppend,
    /// Committed, and seen by nobody.
    LostAppend,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::DirtyWrite => "G0, dirty write",
            Kind::AbortedRead => "G1a, aborted read",
            Kind::IntermediateRead => "G1b, intermediate read",
            Kind::CircularFlow => "G1c, circular information flow",
            Kind::TornStatement => "a statement that saw no snapshot",
            Kind::GSingle => "G-single, read skew",
            Kind::LongFork => "G-nonadjacent, long fork",
            Kind::G2Item => "G2-item, write skew",
            Kind::G2 => "G2, write skew through a range",
            Kind::LostUpdate => "lost update",
            Kind::Internal => "internal inconsistency",
            Kind::IncompatibleOrder => "incompatible orders",
            Kind::UnknownValue => "a value out of nowhere",
            Kind::DoubledAppend => "an append that happened twice",
            Kind::LostAppend => "a lost append",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Anomaly {
    pub kind: Kind,
    /// Places in the history.
    pub transactions: Vec<usize>,
    /// Why it is one: a line, or a line for each edge of the cycle.
    pub why: String,
}

impl Anomaly {
    pub(super) fn new(kind: Kind, transactions: Vec<usize>, why: String) -> Anomaly {
        Anomaly { kind, transactions, why }
    }

    /// With what its transactions did.
    pub fn explain(&self, history: &History) -> String {
        let mut text = format!("{}:\n", self.kind.name());
        self.why.lines().for_each(|line| text.push_str(&format!("    {line}\n")));
        for at in &self.transactions {
            text.push_str(&format!("  {}\n", transaction_text(*at, &history.transactions[*at])));
        }
        text
    }
}

/// What the level forbids, the plainest kinds first, up to a number of each kind.
pub fn check(history: &History, level: Level, order: Order) -> Vec<Anomaly> {
    let versions = Versions::new(history);
    let mut found = versions.anomalies(level, order);
    let checked = Checked { history, alive: &versions.alive, dependencies: dependencies(&versions), order };
    found.extend(checked.cycles(Moments::One, By::Ww));
    found.extend(checked.cycles(Moments::One, By::Wr));
    let snapshots = if level == Level::ReadCommitted { Moments::Statements } else { Moments::Two };
    let skewed = checked.cycles(snapshots, By::Rw);
    let is_skewed = !skewed.is_empty();
    found.extend(skewed);
    if level == Level::Serializable {
        let all = checked.cycles(Moments::One, By::Rw).into_iter();
        found.extend(all.filter(|one| matches!(one.kind, Kind::G2 | Kind::G2Item) || !is_skewed));
    }
    let mut count: BTreeMap<Kind, usize> = BTreeMap::new();
    found.retain(|one| {
        let count = count.entry(one.kind).or_default();
        *count += 1;
        *count <= ANOMALIES_MAX
    });
    found.sort_by_key(|one| one.kind);
    found
}

/// Which moments a transaction consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moments {
    One,
    /// Snapshot and commit.
    Two,
    /// The snapshot of each statement that reads one, and the commit.
    Statements,
}

struct Checked<'a> {
    history: &'a History,
    alive: &'a [bool],
    dependencies: Vec<Dependency>,
    order: Order,
}

/// The nodes of a graph of moments.
struct Places {
    /// By transaction: its first moment; `first[at + 1]` is behind its last one.
    first: Vec<u32>,
    /// By transaction, for [`Moments::Statements`]: which statements have a snapshot.
    statements: Vec<Vec<u32>>,
}

impl Places {
    fn of(history: &History, moments: Moments) -> Places {
        let mut places = Places { first: vec![0], statements: Vec::new() };
        for transaction in &history.transactions {
            let reads = transaction.operations.iter().filter(|one| !matches!(one.step, Step::Append { .. }));
            let mut statements: Vec<u32> = match moments {
                Moments::Statements => reads.map(|one| one.statement).collect(),
                _ => Vec::new(),
            };
            statements.dedup();
            let count = match moments {
                Moments::One => 1,
                Moments::Two => 2,
                Moments::Statements => statements.len() as u32 + 1,
            };
            places.first.push(places.first[places.first.len() - 1] + count);
            places.statements.push(statements);
        }
        places
    }

    fn count(&self) -> u32 {
        self.first[self.first.len() - 1]
    }

    fn commit(&self, at: usize) -> u32 {
        self.first[at + 1] - 1
    }

    /// That of a statement, where statements have their own.
    fn snapshot(&self, at: usize, statement: u32) -> u32 {
        let place = self.statements[at].binary_search(&statement).unwrap_or(0);
        self.first[at] + place as u32
    }
}

impl Checked<'_> {
    /// Short cycles through edges of this kind, with nothing stronger in them.
    fn cycles(&self, moments: Moments, by: By) -> Vec<Anomaly> {
        let places = Places::of(self.history, moments);
        let graph = self.graph(&places, moments, by);
        let component = graph.components();
        let mut tried: BTreeMap<u32, usize> = BTreeMap::new();
        let mut found = Vec::new();
        for (label, dependency) in self.dependencies.iter().enumerate().filter(|(_, one)| one.by == by) {
            let (from, to) = self.ends(&places, moments, dependency);
            let Some(inside) = component[from as usize].filter(|_| component[from as usize] == component[to as usize])
            else {
                continue;
            };
            let tried = tried.entry(inside).or_default();
            if *tried < TRIED_MAX
                && found.len() < 2 * ANOMALIES_MAX
                && let Some(way) = graph.way(to, from, &component)
            {
                *tried += 1;
                found.push(self.cycle(moments, label as u32, &way));
            }
        }
        found
    }

    fn graph(&self, places: &Places, moments: Moments, strongest: By) -> Graph {
        let transactions = &self.history.transactions;
        // In real time, one more moment for each transaction: its begin.
        let mut graph = Graph::new(places.count() as usize + transactions.len());
        for at in (0..transactions.len()).filter(|at| self.alive[*at]) {
            for moment in places.first[at]..places.commit(at) {
                graph.add(moment, moment + 1, PLAIN);
            }
        }
        for (label, dependency) in self.dependencies.iter().enumerate().filter(|(_, one)| one.by <= strongest) {
            let (from, to) = self.ends(places, moments, dependency);
            graph.add(from, to, label as u32);
        }
        let mut begun: Vec<usize> = (0..transactions.len()).filter(|at| self.alive[*at]).collect();
        begun.sort_by_key(|at| transactions[*at].began_ns);
        match self.order {
            Order::Free => {}
            Order::Sessions => {
                let mut last: BTreeMap<u32, usize> = BTreeMap::new();
                for at in begun {
                    if let Some(before) = last.insert(transactions[at].client, at) {
                        graph.add(places.commit(before), places.first[at], PLAIN);
                    }
                }
            }
            Order::RealTime => self.add_clock(places, &begun, &mut graph),
        }
        graph
    }

    /// Begins are a chain, and a transaction that ends stands before the first begin after that.
    fn add_clock(&self, places: &Places, begun: &[usize], graph: &mut Graph) {
        let transactions = &self.history.transactions;
        let clock = |place: usize| places.count() + place as u32;
        for (place, at) in begun.iter().enumerate() {
            if place > 0 {
                graph.add(clock(place - 1), clock(place), PLAIN);
            }
            graph.add(clock(place), places.first[*at], PLAIN);
            let ended = transactions[*at].ended_ns;
            let next = begun.partition_point(|other| transactions[*other].began_ns <= ended);
            if next < begun.len() && transactions[*at].fate == Fate::Committed {
                graph.add(places.commit(*at), clock(next), PLAIN);
            }
        }
    }

    /// Between which moments a dependency lies.
    fn ends(&self, places: &Places, moments: Moments, dependency: &Dependency) -> (u32, u32) {
        let Dependency { by, from, to, statement, locked, .. } = *dependency;
        match (moments, by) {
            (Moments::One, _) | (Moments::Two, By::Ww | By::Wr) => (places.commit(from), places.first[to]),
            (Moments::Two, By::Rw) => (places.first[from], places.commit(to)),
            (Moments::Statements, By::Ww) => (places.commit(from), places.commit(to)),
            (Moments::Statements, By::Wr) if locked => (places.commit(from), places.commit(to)),
            (Moments::Statements, By::Wr) => (places.commit(from), places.snapshot(to, statement)),
            (Moments::Statements, By::Rw) if locked => (places.commit(from), places.commit(to)),
            (Moments::Statements, By::Rw) => (places.snapshot(from, statement), places.commit(to)),
        }
    }

    fn cycle(&self, moments: Moments, first: u32, way: &[Edge]) -> Anomaly {
        let labels = [first].into_iter().chain(way.iter().map(|edge| edge.label)).filter(|label| *label != PLAIN);
        let cycle: Vec<&Dependency> = labels.map(|label| &self.dependencies[label as usize]).collect();
        let mut why = Vec::new();
        let mut transactions = Vec::new();
        for (dependency, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
            why.push(dependency.why());
            transactions.extend([dependency.from, dependency.to]);
            if dependency.to != next.from {
                let (ended, began) = (name(dependency.to), name(next.from));
                why.push(format!("{ended} → {began}: {ended} had ended when {began} began"));
            }
        }
        transactions.sort();
        transactions.dedup();
        Anomaly::new(kind(moments, &cycle), transactions, why.join("\n"))
    }
}

fn kind(moments: Moments, cycle: &[&Dependency]) -> Kind {
    let pairs = || cycle.iter().zip(cycle.iter().cycle().skip(1));
    let is_pair = |a: &Dependency, b: &Dependency| (a.by, b.by, a.to) == (By::Rw, By::Rw, b.from);
    let count = cycle.iter().filter(|one| one.by == By::Rw).count();
    if count == 0 {
        return if cycle.iter().any(|one| one.by == By::Wr) { Kind::CircularFlow } else { Kind::DirtyWrite };
    }
    if moments == Moments::Statements {
        return Kind::TornStatement;
    }
    if cycle.len() > 1 && pairs().any(|(a, b)| is_pair(a, b)) {
        let is_ranged = cycle.iter().any(|one| one.by == By::Rw && one.by_range);
        return if is_ranged { Kind::G2 } else { Kind::G2Item };
    }
    if count == 1 { Kind::GSingle } else { Kind::LongFork }
}
