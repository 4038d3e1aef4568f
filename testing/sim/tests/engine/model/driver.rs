//! Runs operations on an engine and on the model, and compares what both say.

use super::ops::{Op, PINS, SLOTS, TXNS};
use super::state::{Name, Overlay, Rows, State};
use crate::table::*;
use basalt_engine::{
    CatalogEdit, CurrentRow, Engine, EngineConfig, Error, Inserted, Isolation, Locked, ReadContext, RowLock, Savepoint,
    TableLock, Txn, TxnOptions, WaitPolicy,
};
use basalt_sched::Os;
use basalt_sim::{Machine, Rng};
use basalt_types::{DataType, Datum, TableDef, Version};
use std::collections::{BTreeSet, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// An operation that nothing blocks ends well within this.
const UNBLOCKED: Duration = Duration::from_secs(20);
/// An operation that is blocked is still there after this.
const BLOCKED: Duration = Duration::from_millis(5);

pub type Outcome<T = ()> = Result<T, String>;

/// What the engine runs on.
#[derive(Clone)]
pub enum Host {
    Simulated(Machine),
    Real,
}

struct OpenTxn {
    txn: Txn,
    repeatable_read: bool,
    synchronous: bool,
    /// What a repeatable-read transaction sees.
    base: State,
    snapshot: Version,
    overlay: Overlay,
    saves: Vec<(Savepoint, Overlay, Held)>,
    held: Held,
}

/// What a transaction keeps from others.
#[derive(Clone, Default)]
struct Held {
    /// Rows that it has surely locked, and rows that it may have.
    locks: HashSet<(usize, Name)>,
    touched: HashSet<(usize, Name)>,
    /// Tables locked, for use and for change.
    used: BTreeSet<usize>,
    altered: BTreeSet<usize>,
    /// Tables of which only options are changed, beside those who use them.
    oriented: BTreeSet<usize>,
}

struct PinnedReader {
    read: ReadContext,
    state: State,
}

/// Longest time that a thread of a dropped engine may take to end.
const ENDED_WITHIN_MS: u64 = 10_000;

pub struct Driver {
    host: Host,
    config: EngineConfig,
    engine: Option<Arc<Engine>>,
    runtime: tokio::runtime::Runtime,
    committed: State,
    last: Version,
    txns: Vec<Option<OpenTxn>>,
    pins: Vec<Option<PinnedReader>>,
    next_k: i64,
    pub done: Counts,
}

/// What has happened: a test that does nothing proves nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub commits: u64,
    pub rows_written: u64,
    pub conflicts: u64,
    pub blocked: u64,
    pub duplicates: u64,
    /// Keys that were only locked, by others.
    pub stood: u64,
    pub checks: u64,
    pub rows_compared: u64,
    pub restarts: u64,
}

fn fail<T>(what: impl Into<String>) -> Outcome<T> {
    Err(what.into())
}

fn context<T>(what: &str, result: basalt_engine::Result<T>) -> Outcome<T> {
    result.map_err(|error| format!("{what}: {error:?}"))
}

impl Driver {
    pub fn new(host: Host, config: EngineConfig) -> Outcome<Driver> {
        let mut driver = Driver {
            host,
            config,
            engine: None,
            runtime: crate::runtime(),
            committed: State::empty(SLOTS),
            last: Version::ZERO,
            txns: (0..=TXNS).map(|_| None).collect(),
            pins: (0..PINS).map(|_| None).collect(),
            next_k: 1 << 40,
            done: Counts::default(),
        };
        driver.start()?;
        Ok(driver)
    }

    fn start(&mut self) -> Outcome {
        let os = match &self.host {
            Host::Simulated(machine) => machine.os(),
            Host::Real => Os::real(),
        };
        // An encoder that a failed batch left behind holds the engine, and with it the directory, until it ends.
        let mut opened = crate::open(os.clone(), self.config.clone());
        for _ in 0..ENDED_WITHIN_MS {
            if !matches!(opened, Err(Error::DirectoryInUse { .. })) {
                break;
            }
            os.clock.sleep(Duration::from_millis(1));
            opened = crate::open(os.clone(), self.config.clone());
        }
        self.engine = Some(context("open", opened)?);
        Ok(())
    }

    fn engine(&self) -> Arc<Engine> {
        self.engine.clone().expect("started")
    }

    pub fn run(&mut self, ops: &[Op]) -> Outcome {
        for (i, op) in ops.iter().enumerate() {
            self.step(op).map_err(|error| format!("operation {i}, {op:?}: {error}"))?;
        }
        self.txns.iter_mut().for_each(|txn| *txn = None);
        self.pins.iter_mut().for_each(|pin| *pin = None);
        context("shutdown", self.engine().shutdown())
    }

    fn step(&mut self, op: &Op) -> Outcome {
        match *op {
            Op::Begin { txn, repeatable_read, synchronous } => {
                if self.txns[txn].is_none() {
                    self.txns[txn] = Some(self.begin(repeatable_read, synchronous));
                }
                Ok(())
            }
            Op::Insert { txn, slot, k, seed } => {
                self.in_txn(txn, slot, |driver, open, def| driver.insert(open, slot, def, k, &mut Rng::new(seed)))
            }
            Op::InsertWritten { txn, pick, seed } => match self.written_by_others(txn, pick) {
                Some((slot, k)) => self.step(&Op::Insert { txn, slot, k, seed }),
                None => Ok(()),
            },
            Op::Update { txn, slot, pick, seed } => self
                .in_txn(txn, slot, |driver, open, def| driver.update(open, slot, def, pick, None, &mut Rng::new(seed))),
            Op::UpdateKey { txn, slot, pick, k, seed } => self.in_txn(txn, slot, |driver, open, def| {
                driver.update(open, slot, def, pick, Some(k), &mut Rng::new(seed))
            }),
            Op::Delete { txn, slot, pick } => {
                self.in_txn(txn, slot, |driver, open, def| driver.delete(open, slot, def, pick))
            }
            Op::Bulk { txn, slot, k, step, rows, seed } => self.in_txn(txn, slot, |driver, open, def| {
                let ks: Vec<i64> = (0..rows).map(|i| k + i * step).collect();
                driver.bulk(open, slot, def, &ks, &mut Rng::new(seed))
            }),
            Op::Savepoint { txn } => {
                if let Some(open) = &mut self.txns[txn] {
                    let savepoint = open.txn.savepoint();
                    open.saves.push((savepoint, open.overlay.clone(), open.held.clone()));
                }
                Ok(())
            }
            Op::RollbackTo { txn, pick } => self.rollback_to(txn, pick),
            Op::Commit { txn } => match self.txns[txn].take() {
                Some(open) => self.commit(open),
                None => Ok(()),
            },
            Op::Abort { txn } => {
                if let Some(open) = self.txns[txn].take() {
                    open.txn.rollback();
                }
                Ok(())
            }
            Op::Create { txn, slot } => self.alter(txn, slot, |driver, open, def| {
                let None = def else { return Ok(()) };
                let def = define(&driver.engine(), SHAPES[slot], &format!("t{slot}"));
                open.overlay.reset(slot, Some(def.clone()));
                edit(open, CatalogEdit::PutTable(def))
            }),
            Op::Drop { txn, slot } => self.alter(txn, slot, |_, open, def| {
                let Some(def) = def else { return Ok(()) };
                open.overlay.reset(slot, None);
                edit(open, CatalogEdit::DropTable(def.id))
            }),
            Op::Truncate { txn, slot } => self.alter(txn, slot, |driver, open, def| {
                let Some(def) = def else { return Ok(()) };
                let def = truncated(&driver.engine(), &def);
                open.overlay.reset(slot, Some(def.clone()));
                edit(open, CatalogEdit::PutTable(def))
            }),
            Op::AddColumn { txn, slot, seed } => self.alter(txn, slot, |_, open, def| {
                let Some(def) = def.filter(|def| def.columns.len() < 40) else { return Ok(()) };
                let mut def = (*def).clone();
                let (ty, missing) = match seed % 4 {
                    0 => (DataType::Int4, Datum::Null),
                    1 => (DataType::Int4, Datum::I32(seed as i32)),
                    2 => (DataType::Text, Datum::text("default")),
                    _ => (DataType::Text, Datum::Null),
                };
                let position = def.columns.len();
                def.columns.push(column(position, &format!("c{}", position + 1), ty, missing));
                let def = Arc::new(def);
                open.overlay.defs.insert(slot, Some(def.clone()));
                edit(open, CatalogEdit::PutTable(def))
            }),
            Op::DropColumn { txn, slot, pick } => self.alter(txn, slot, |_, open, def| {
                let Some(def) = def else { return Ok(()) };
                let mut def = (*def).clone();
                let mut live: Vec<_> = def.columns.iter_mut().skip(3).filter(|column| !column.dropped).collect();
                if live.is_empty() {
                    return Ok(());
                }
                let at = (pick % live.len() as u64) as usize;
                live[at].dropped = true;
                let def = Arc::new(def);
                open.overlay.defs.insert(slot, Some(def.clone()));
                edit(open, CatalogEdit::PutTable(def))
            }),
            Op::Orient { txn, slot, pick } => {
                self.alter_under(TableLock::ShareUpdateExclusive, txn, slot, |_, open, def| {
                    let Some(def) = def else { return Ok(()) };
                    let mut def = (*def).clone();
                    orient(&mut def, pick);
                    let def = Arc::new(def);
                    open.overlay.defs.insert(slot, Some(def.clone()));
                    edit(open, CatalogEdit::PutTable(def))
                })
            }
            Op::Pin { pin } => {
                let read = self.engine().read(self.last);
                self.pins[pin] = Some(PinnedReader { read, state: self.committed.clone() });
                Ok(())
            }
            Op::Unpin { pin } => {
                let Some(pinned) = self.pins[pin].take() else { return Ok(()) };
                self.check_read(&pinned.read, &pinned.state, &Overlay::default(), &mut Rng::new(1), "released pin")
            }
            Op::Freeze { slot } => match &self.committed.slots[slot] {
                Some(table) => context("freeze", self.engine().freeze_table(table.def.id)),
                None => Ok(()),
            },
            Op::Evict { slot } => match &self.committed.slots[slot] {
                Some(table) => context("evict", self.engine().evict_table(table.def.id)),
                None => Ok(()),
            },
            Op::Compact { slot } => match &self.committed.slots[slot] {
                Some(table) => context("compact", self.engine().compact_table(table.def.id)),
                None => Ok(()),
            },
            Op::Checkpoint => context("checkpoint", self.engine().checkpoint()),
            Op::Reopen => self.restart(None),
            Op::Crash { seed } => self.restart(Some(seed)),
            Op::Check { seed } => self.check(&mut Rng::new(seed)),
        }
    }

    /// Closes, or cuts the power, and opens again. Everything acknowledged is there, nothing else.
    fn restart(&mut self, cut: Option<u64>) -> Outcome {
        self.txns.iter_mut().for_each(|txn| *txn = None);
        self.pins.iter_mut().for_each(|pin| *pin = None);
        let engine = self.engine.take().expect("started");
        match (&mut self.host, cut) {
            (Host::Simulated(machine), Some(seed)) => *machine = machine.power_cut(seed),
            (Host::Real, Some(_)) => {}
            (_, None) => context("shutdown", engine.shutdown())?,
        }
        drop(engine);
        self.start()?;
        self.done.restarts += 1;
        self.check(&mut Rng::new(7))
    }

    fn begin(&self, repeatable_read: bool, synchronous: bool) -> OpenTxn {
        let isolation = if repeatable_read { Isolation::RepeatableRead } else { Isolation::ReadCommitted };
        let options = TxnOptions { isolation, synchronous_commit: synchronous, session_version: self.last, session: 0 };
        let txn = self.engine().begin(options);
        OpenTxn {
            snapshot: txn.read().at().snapshot,
            txn,
            repeatable_read,
            synchronous,
            base: self.committed.clone(),
            overlay: Overlay::default(),
            saves: Vec::new(),
            held: Held::default(),
        }
    }

    /// Runs a change of a table's rows in a transaction, its own if that one is not open.
    fn in_txn(
        &mut self,
        txn: usize,
        slot: usize,
        work: impl FnOnce(&mut Driver, &mut OpenTxn, Arc<TableDef>) -> Outcome<Next>,
    ) -> Outcome {
        let own = self.txns[txn].is_none();
        let mut open = self.txns[txn].take().unwrap_or_else(|| self.begin(false, true));
        let Some(def) = self.committed.def(slot, &open.overlay) else {
            return self.put_back(txn, own, open, Next::Continue);
        };
        open.txn.next_statement();
        let locked = self.lock_table(&mut open, def.id, TableLock::RowExclusive);
        let taken = self.others(txn).any(|other| other.held.altered.contains(&slot));
        if taken {
            self.expect_locked(locked)?;
            return self.put_back(txn, own, open, Next::Continue);
        }
        context("lock table", locked)?;
        open.held.used.insert(slot);
        let found = by_id(&open.txn.catalog(), def.id);
        if found.as_ref() != Some(&def) {
            return fail(format!("the catalog has {found:?}, expected {def:?}"));
        }
        open.txn.next_statement();
        let next = work(self, &mut open, def)?;
        self.put_back(txn, own, open, next)
    }

    fn put_back(&mut self, txn: usize, own: bool, open: OpenTxn, next: Next) -> Outcome {
        match next {
            Next::RolledBack => open.txn.rollback(),
            Next::Continue if own => return self.commit(open),
            Next::Continue => self.txns[txn] = Some(open),
        }
        Ok(())
    }

    /// Changes the catalog in a transaction, with the table alone.
    fn alter(
        &mut self,
        txn: usize,
        slot: usize,
        work: impl FnOnce(&mut Driver, &mut OpenTxn, Option<Arc<TableDef>>) -> Outcome,
    ) -> Outcome {
        self.alter_under(TableLock::AccessExclusive, txn, slot, work)
    }

    fn alter_under(
        &mut self,
        mode: TableLock,
        txn: usize,
        slot: usize,
        work: impl FnOnce(&mut Driver, &mut OpenTxn, Option<Arc<TableDef>>) -> Outcome,
    ) -> Outcome {
        let own = self.txns[txn].is_none();
        let mut open = self.txns[txn].take().unwrap_or_else(|| self.begin(false, true));
        let def = self.committed.def(slot, &open.overlay);
        let alone = mode == TableLock::AccessExclusive;
        let altered =
            self.others(txn).any(|other| other.held.altered.contains(&slot) || other.held.oriented.contains(&slot));
        let used = alone && self.others(txn).any(|other| other.held.used.contains(&slot));
        if let Some(def) = &def {
            open.txn.next_statement();
            let locked = self.lock_table(&mut open, def.id, mode);
            if altered || used {
                self.expect_locked(locked)?;
                return self.put_back(txn, own, open, Next::Continue);
            }
            context("lock table", locked)?;
        } else if altered {
            return self.put_back(txn, own, open, Next::Continue);
        }
        match alone {
            true => open.held.altered.insert(slot),
            false => open.held.oriented.insert(slot),
        };
        open.txn.next_statement();
        let catalog = open.txn.catalog();
        // As it is read there: a change of it says from what it was made.
        let def = def.map(|def| by_id(&catalog, def.id).filter(|found| *found == def).ok_or(def)).transpose();
        let def = def.or_else(|def| fail(format!("the catalog does not have {def:?}")))?;
        work(self, &mut open, def)?;
        self.put_back(txn, own, open, Next::Continue)
    }

    fn lock_table(
        &self,
        open: &mut OpenTxn,
        table: basalt_types::ObjectId,
        mode: TableLock,
    ) -> basalt_engine::Result<()> {
        self.runtime.block_on(open.txn.lock_table(table, mode, WaitPolicy::Fail))
    }

    fn expect_locked<T>(&mut self, result: basalt_engine::Result<T>) -> Outcome {
        self.done.conflicts += 1;
        match result {
            Err(Error::LockNotAvailable(_)) => Ok(()),
            Err(error) => fail(format!("expected a lock conflict, got {error:?}")),
            Ok(_) => fail("expected a lock conflict, got the lock"),
        }
    }

    fn others(&self, txn: usize) -> impl Iterator<Item = &OpenTxn> {
        self.txns.iter().enumerate().filter(move |(i, _)| *i != txn).filter_map(|(_, open)| open.as_ref())
    }

    /// Table and c1 of a row that another open transaction has inserted, updated or deleted.
    fn written_by_others(&self, txn: usize, pick: u64) -> Option<(usize, i64)> {
        let tables = self.others(txn).flat_map(|open| &open.overlay.writes);
        let keyed = tables.filter(|(slot, _)| SHAPES[**slot].is_keyed());
        let places = keyed.flat_map(|(slot, writes)| writes.iter().map(move |(name, row)| (*slot, name, row)));
        let written: Vec<(usize, i64)> = places
            .filter_map(|(slot, name, row)| {
                let row = row.as_ref().or_else(|| self.committed.slots[slot].as_ref()?.rows.get(name))?;
                if let Datum::I64(k) = row[0] { Some((slot, k)) } else { None }
            })
            .collect();
        (!written.is_empty()).then(|| written[(pick % written.len() as u64) as usize])
    }

    /// What another open transaction has of a row. The current one is not in `txns` while it works.
    fn claim_on(&self, slot: usize, name: &Name) -> Claim {
        let claimed = (slot, name.clone());
        let mut claim = Claim::None;
        for open in self.txns.iter().flatten() {
            if open.held.locks.contains(&claimed) {
                let changed = open.overlay.writes.get(&slot).is_some_and(|writes| writes.contains_key(name));
                let stands = self.committed.slots[slot].as_ref().is_some_and(|table| table.rows.contains_key(name));
                return if stands && !changed { Claim::OnlyLocked } else { Claim::Locked };
            }
            if open.held.touched.contains(&claimed) {
                claim = Claim::Unclear;
            }
        }
        claim
    }

    /// The newest version of a row: own or committed.
    fn newest(&self, open: &OpenTxn, slot: usize, name: &Name) -> bool {
        if let Some(written) = open.overlay.writes.get(&slot).and_then(|writes| writes.get(name)) {
            return written.is_some();
        }
        let reset = open.overlay.reset.contains(&slot);
        !reset && self.committed.slots[slot].as_ref().is_some_and(|table| table.rows.contains_key(name))
    }

    /// A repeatable-read transaction cannot reuse a key whose row it sees and others have deleted. Where it
    /// never saw the row, the engine may or may not remember that there was one.
    fn reuse(&self, open: &OpenTxn, slot: usize, name: &Name) -> Reuse {
        let own = open.overlay.writes.get(&slot).is_some_and(|writes| writes.contains_key(name));
        let (Some(table), true) = (&self.committed.slots[slot], open.repeatable_read) else { return Reuse::Free };
        let changed = table.changed.get(name).is_some_and(|version| *version > open.snapshot);
        if own || !changed || open.overlay.reset.contains(&slot) {
            return Reuse::Free;
        }
        // A newer row is there again: a duplicate, if the engine does not meet the deleted one first.
        if table.rows.contains_key(name) {
            return Reuse::Unclear;
        }
        match open.base.rows_as(slot, &table.def).contains_key(name) {
            true => Reuse::Refused,
            false => Reuse::Unclear,
        }
    }

    fn visible(&self, open: &OpenTxn, slot: usize, def: &TableDef) -> Rows {
        let base = if open.repeatable_read { &open.base } else { &self.committed };
        base.rows_with(slot, def, &open.overlay)
    }

    fn unblocked<T>(
        &self,
        what: &str,
        future: impl Future<Output = basalt_engine::Result<T>>,
    ) -> Outcome<basalt_engine::Result<T>> {
        let timed = self.runtime.block_on(async { tokio::time::timeout(UNBLOCKED, future).await });
        timed.map_err(|_| format!("{what} waits although nobody is in its way"))
    }

    /// The future must wait; it is dropped, as a cancel does.
    fn blocked<T: std::fmt::Debug>(&mut self, what: &str, future: impl Future<Output = T>) -> Outcome {
        self.done.blocked += 1;
        match self.runtime.block_on(async { tokio::time::timeout(BLOCKED, future).await }) {
            Err(_) => Ok(()),
            Ok(got) => fail(format!("{what} did not wait for the other transaction: {got:?}")),
        }
    }

    fn insert(&mut self, open: &mut OpenTxn, slot: usize, def: Arc<TableDef>, k: i64, rng: &mut Rng) -> Outcome<Next> {
        let k = if SHAPES[slot].is_keyed() { k } else { self.fresh_k() };
        let row = random_row(&def, k, rng);
        let name = name_of(&def, &row);
        match self.claim_on(slot, &name) {
            Claim::Locked => {
                self.blocked("insert", open.txn.insert(&def, &row))?;
                return Ok(Next::Continue);
            }
            Claim::OnlyLocked => {
                let inserted = self.unblocked("insert of a key that stands", open.txn.insert(&def, &row))?;
                return self.expect_duplicate(inserted);
            }
            Claim::Unclear => return Ok(Next::Continue),
            Claim::None => {}
        }
        let taken = self.newest(open, slot, &name);
        let reuse = self.reuse(open, slot, &name);
        let inserted = self.unblocked("insert", open.txn.insert(&def, &row))?;
        let Some(inserted) = self.unless_refused(reuse, inserted)? else { return Ok(Next::RolledBack) };
        if SHAPES[slot].is_keyed() {
            open.held.locks.insert((slot, name.clone()));
        }
        match (inserted, taken) {
            (Inserted::Done, false) => {
                open.overlay.write(slot, name, Some(row));
                self.done.rows_written += 1;
            }
            (Inserted::Duplicate { .. }, true) => self.done.duplicates += 1,
            (inserted, _) => return fail(format!("insert of {}: {inserted:?}, but taken = {taken}", brief(&row))),
        }
        Ok(Next::Continue)
    }

    /// A live row has the key, and whoever has locked it has not changed it: nothing to wait for.
    fn expect_duplicate(&mut self, got: basalt_engine::Result<Inserted>) -> Outcome<Next> {
        self.done.stood += 1;
        match got {
            Ok(Inserted::Duplicate { .. }) => Ok(Next::Continue),
            other => fail(format!("expected a duplicate of a row that is only locked, got {other:?}")),
        }
    }

    /// `None`: refused, as may or must be.
    fn unless_refused<T: std::fmt::Debug>(
        &mut self,
        reuse: Reuse,
        got: basalt_engine::Result<T>,
    ) -> Outcome<Option<T>> {
        match (reuse, got) {
            (Reuse::Refused | Reuse::Unclear, Err(Error::Serialization(_))) => {
                self.done.conflicts += 1;
                Ok(None)
            }
            (Reuse::Refused, got) => fail(format!("a key whose row is seen and deleted was given: {got:?}")),
            (_, got) => context("write", got).map(Some),
        }
    }

    fn fresh_k(&mut self) -> i64 {
        self.next_k += 1;
        self.next_k
    }

    /// Locks a row that the transaction sees. `None`: not possible, which is as it should be.
    fn lock_row(
        &mut self,
        open: &mut OpenTxn,
        slot: usize,
        def: &Arc<TableDef>,
        pick: u64,
        mode: RowLock,
    ) -> Outcome<Result<(CurrentRow, Name), Next>> {
        let visible = self.visible(open, slot, def);
        if visible.is_empty() {
            return Ok(Err(Next::Continue));
        }
        let (name, row) = visible.iter().nth((pick % visible.len() as u64) as usize).expect("in range");
        let claim = self.claim_on(slot, name);
        if claim == Claim::Unclear {
            return Ok(Err(Next::Continue));
        }
        let (tablet, key) = locate(&open.txn.read(), def, row)?;
        let future = open.txn.lock_row(def, tablet, &key, mode, WaitPolicy::Fail);
        let locked = self.unblocked("lock row", future)?;
        if matches!(claim, Claim::Locked | Claim::OnlyLocked) {
            self.expect_locked(locked)?;
            return Ok(Err(Next::Continue));
        }
        let own = open.overlay.writes.get(&slot).is_some_and(|writes| writes.contains_key(name));
        let table = self.committed.slots[slot].as_ref();
        let changed = table.and_then(|table| table.changed.get(name)).copied().unwrap_or(Version::ZERO);
        if open.repeatable_read && !own && !open.overlay.reset.contains(&slot) && changed > open.snapshot {
            self.done.conflicts += 1;
            return match locked {
                Err(Error::Serialization(_)) => Ok(Err(Next::RolledBack)),
                other => fail(format!(
                    "row {} changed at {changed}, after the snapshot {}: {other:?}",
                    brief(row),
                    open.snapshot
                )),
            };
        }
        open.held.locks.insert((slot, name.clone()));
        match context("lock row", locked)? {
            Locked::Row(current) if as_read(def, &current.values) == *row && current.key == key => {
                Ok(Ok((current, name.clone())))
            }
            other => fail(format!("locked {other:?}, expected {}", brief(row))),
        }
    }

    fn update(
        &mut self,
        open: &mut OpenTxn,
        slot: usize,
        def: Arc<TableDef>,
        pick: u64,
        new_k: Option<i64>,
        rng: &mut Rng,
    ) -> Outcome<Next> {
        let mode = if new_k.is_some() { RowLock::Update } else { RowLock::NoKeyUpdate };
        let (current, name) = match self.lock_row(open, slot, &def, pick, mode)? {
            Ok(found) => found,
            Err(next) => return Ok(next),
        };
        let Datum::I64(k) = current.values[0] else { return fail(format!("c1 of {}", brief(&current.values))) };
        let k = new_k.filter(|_| SHAPES[slot].is_keyed()).unwrap_or(k);
        let row = random_row(&def, k, rng);
        let new_name = name_of(&def, &row);
        if new_name != name {
            match self.claim_on(slot, &new_name) {
                Claim::Locked => {
                    self.blocked("update", open.txn.update(&def, &current, &row))?;
                    return Ok(Next::Continue);
                }
                Claim::OnlyLocked => {
                    let future = open.txn.update(&def, &current, &row);
                    let updated = self.unblocked("update to a key that stands", future)?;
                    return self.expect_duplicate(updated);
                }
                Claim::Unclear => return Ok(Next::Continue),
                Claim::None => {}
            }
        }
        let taken = new_name != name && self.newest(open, slot, &new_name);
        let reuse = if new_name == name { Reuse::Free } else { self.reuse(open, slot, &new_name) };
        let updated = self.unblocked("update", open.txn.update(&def, &current, &row))?;
        let Some(updated) = self.unless_refused(reuse, updated)? else { return Ok(Next::RolledBack) };
        open.held.locks.insert((slot, new_name.clone()));
        match (updated, taken) {
            (Inserted::Done, false) => {
                open.overlay.write(slot, name, None);
                open.overlay.write(slot, new_name, Some(row));
                self.done.rows_written += 1;
            }
            (Inserted::Duplicate { .. }, true) => self.done.duplicates += 1,
            (updated, _) => return fail(format!("update to {}: {updated:?}, but taken = {taken}", brief(&row))),
        }
        Ok(Next::Continue)
    }

    fn delete(&mut self, open: &mut OpenTxn, slot: usize, def: Arc<TableDef>, pick: u64) -> Outcome<Next> {
        let (current, name) = match self.lock_row(open, slot, &def, pick, RowLock::Update)? {
            Ok(found) => found,
            Err(next) => return Ok(next),
        };
        context("delete", self.unblocked("delete", open.txn.delete(&def, &current))?)?;
        open.overlay.write(slot, name, None);
        self.done.rows_written += 1;
        Ok(Next::Continue)
    }

    fn bulk(
        &mut self,
        open: &mut OpenTxn,
        slot: usize,
        def: Arc<TableDef>,
        ks: &[i64],
        rng: &mut Rng,
    ) -> Outcome<Next> {
        let keyed = SHAPES[slot].is_keyed();
        let mut rows = Vec::new();
        for k in ks {
            let k = if keyed { *k } else { self.fresh_k() };
            rows.push(random_row(&def, k, rng));
        }
        let names: Vec<Name> = rows.iter().map(|row| name_of(&def, row)).collect();
        if keyed && names.iter().any(|name| self.claim_on(slot, name) != Claim::None) {
            return Ok(Next::Continue);
        }
        let distinct: BTreeSet<&Name> = names.iter().collect();
        let taken = keyed && (distinct.len() < names.len() || names.iter().any(|name| self.newest(open, slot, name)));
        let reuses: Vec<Reuse> = names.iter().map(|name| self.reuse(open, slot, name)).collect();
        let before = open.txn.position();
        let half = rows.len() / 2;
        let outcome = {
            let load = async {
                let mut bulk = open.txn.bulk_insert(&def)?;
                bulk.push(&stored_columns(&def, &rows[..half])).await?;
                bulk.push(&stored_columns(&def, &rows[half..])).await?;
                bulk.finish().await
            };
            self.unblocked("bulk insert", load)?
        };
        if keyed {
            open.held.touched.extend(names.iter().map(|name| (slot, name.clone())));
        }
        let must_refuse = !taken && reuses.contains(&Reuse::Refused);
        match outcome {
            Err(Error::Serialization(_)) if reuses.iter().any(|reuse| *reuse != Reuse::Free) => {
                self.done.conflicts += 1;
                Ok(Next::RolledBack)
            }
            Ok(count) if must_refuse => fail(format!("bulk insert of {count} rows reused a key whose row is seen")),
            Ok(count) if !taken && count == rows.len() as u64 => {
                self.done.rows_written += count;
                for (name, row) in names.into_iter().zip(rows) {
                    open.overlay.write(slot, name, Some(row));
                }
                Ok(Next::Continue)
            }
            Err(Error::DuplicateKey { .. }) if taken => {
                self.done.duplicates += 1;
                context("rollback of the statement", open.txn.undo_to(before))?;
                Ok(Next::Continue)
            }
            other => fail(format!("bulk insert of {} rows: {other:?}, but taken = {taken}", rows.len())),
        }
    }

    fn rollback_to(&mut self, txn: usize, pick: u64) -> Outcome {
        let Some(open) = &mut self.txns[txn] else { return Ok(()) };
        if open.saves.is_empty() {
            return Ok(());
        }
        open.saves.truncate((pick % open.saves.len() as u64) as usize + 1);
        let (savepoint, overlay, held) = open.saves.last().expect("just seen");
        // Locks taken since are given back, so that others are not blocked by them.
        (open.overlay, open.held) = (overlay.clone(), held.clone());
        context("rollback to savepoint", open.txn.rollback_to(*savepoint))
    }

    fn commit(&mut self, open: OpenTxn) -> Outcome {
        let OpenTxn { txn, overlay, synchronous, .. } = open;
        let version = context("commit", self.unblocked("commit", txn.commit())?)?;
        if overlay.is_empty() {
            return Ok(());
        }
        if version <= self.last {
            return fail(format!("commit at {version} after {}", self.last));
        }
        self.committed.commit(overlay, version);
        self.last = version;
        self.done.commits += 1;
        let engine = self.engine();
        if synchronous && engine.published() < version {
            return fail(format!("commit at {version} is acknowledged, published is {}", engine.published()));
        }
        for _ in 0..1000 {
            if engine.published() >= version {
                return Ok(());
            }
            engine.os().clock.sleep(Duration::from_millis(1));
        }
        fail(format!("commit at {version} without waiting is not durable after a second"))
    }

    fn check(&mut self, rng: &mut Rng) -> Outcome {
        let read = self.engine().read(self.last);
        let committed = self.committed.clone();
        self.check_read(&read, &committed, &Overlay::default(), rng, "current")?;
        let pins = std::mem::take(&mut self.pins);
        for pinned in pins.iter().flatten() {
            self.check_read(&pinned.read, &pinned.state, &Overlay::default(), rng, "pinned")?;
        }
        self.pins = pins;
        let mut txns = std::mem::take(&mut self.txns);
        for open in txns.iter_mut().flatten() {
            open.txn.next_statement();
            let base = if open.repeatable_read { &open.base } else { &committed };
            let what = if open.repeatable_read { "repeatable read" } else { "read committed" };
            self.check_read(&open.txn.read(), base, &open.overlay, rng, what)?;
        }
        self.txns = txns;
        Ok(())
    }

    /// Compares all tables that exist now, as one reader sees them.
    fn check_read(&mut self, read: &ReadContext, base: &State, overlay: &Overlay, rng: &mut Rng, who: &str) -> Outcome {
        self.done.checks += 1;
        for slot in 0..SLOTS {
            let Some(def) = self.committed.def(slot, overlay) else { continue };
            let expected = base.rows_with(slot, &def, overlay);
            self.done.rows_compared += expected.len() as u64;
            let at = format!("{who} reader at {:?}, {}", read.at(), def.name);
            let got = contents(read, &def, &[]).map_err(|error| format!("{at}: {error}"))?;
            if let Some(difference) = difference(&expected, &got) {
                return fail(format!("{at}: {difference}"));
            }
            let predicates: Vec<_> = (0..1 + rng.below(2)).map(|_| random_predicate(&def, rng)).collect();
            let fits = |row: &Row| predicates.iter().all(|predicate| fulfils(&def, row, predicate));
            let filter = |mut rows: Rows| {
                rows.retain(|_, row| fits(row));
                rows
            };
            if let Some(difference) = difference(&filter(expected.clone()), &filter(contents(read, &def, &predicates)?))
            {
                return fail(format!("{at}, where {predicates:?}: {difference}"));
            }
            self.check_gets(read, &def, &expected, rng).map_err(|error| format!("{at}: {error}"))?;
        }
        Ok(())
    }

    fn check_gets(&self, read: &ReadContext, def: &Arc<TableDef>, expected: &Rows, rng: &mut Rng) -> Outcome {
        for _ in 0..6 {
            let row = match rng.below(3) {
                _ if expected.is_empty() || (def.primary_key.is_some() && rng.one_in(3)) => {
                    random_row(def, rng.below(400) as i64, rng)
                }
                _ => expected.values().nth(rng.below(expected.len() as u64) as usize).expect("in range").clone(),
            };
            if def.primary_key.is_none() && !expected.contains_key(&name_of(def, &row)) {
                continue;
            }
            let (tablet, key) = locate(read, def, &row)?;
            let got = context("get", read.get(def, tablet, &key))?.map(|found| as_read(def, &found.values));
            let wanted = expected.get(&name_of(def, &row));
            if got.as_ref() != wanted {
                return fail(format!("get {key:?} of {tablet}: {got:?}, expected {wanted:?}"));
            }
        }
        Ok(())
    }
}

fn edit(open: &mut OpenTxn, edit: CatalogEdit) -> Outcome {
    context("catalog edit", open.txn.edit_catalog(vec![edit]))
}

/// What becomes of the transaction after an operation.
enum Next {
    Continue,
    RolledBack,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    None,
    /// Changed, too, or there is no row of this name.
    Locked,
    /// There is a row, and it is as it was.
    OnlyLocked,
    Unclear,
}

/// Whether a key that somebody deleted can be used again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reuse {
    Free,
    Refused,
    Unclear,
}
