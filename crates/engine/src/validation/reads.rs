//! What a serializable transaction has read.

use crate::Result;
use crate::read::{KeyRange, ReadContext};
use basalt_sched::failpoint::is_weakened;
use basalt_types::{ColumnId, ColumnPredicate, CompareOp, DataType, Datum, Key, TableDef, TabletId, key};
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::mem::discriminant;
use std::sync::Arc;

/// Keys and ranges of one tablet that are kept apart, and scans; with more, all of the tablet counts as read.
const KEYS_MAX: usize = 16 << 10;
const SCANS_MAX: usize = 64;

/// Predicates: what meets one of them would have been read, or would be read now.
#[derive(Default)]
pub struct ReadSet {
    tablets: Mutex<HashMap<TabletId, Reads>>,
}

#[derive(Default)]
struct Reads {
    all: bool,
    keys: HashSet<Key>,
    ranges: Vec<KeyRange>,
    scans: Vec<Arc<ScanRead>>,
}

/// Rows of a table that meet conditions.
pub(crate) struct ScanRead {
    pub table: Arc<TableDef>,
    /// What was read of them.
    pub columns: Vec<ColumnId>,
    pub predicates: Vec<ColumnPredicate>,
}

impl ReadSet {
    /// A key was looked for.
    pub(crate) fn note_key(&self, tablet: TabletId, key: &[u8]) {
        self.note(tablet, |reads| {
            reads.keys.insert(Key::from(key));
        });
    }

    /// All keys of a range were looked at.
    pub(crate) fn note_range(&self, tablet: TabletId, range: KeyRange) {
        self.note(tablet, |reads| reads.ranges.push(range));
    }

    /// All rows were looked at that meet some conditions.
    pub(crate) fn note_scan(&self, scan: ScanRead) {
        let scan = Arc::new(scan);
        for tablet in scan.table.tablets() {
            self.note(tablet, |reads| {
                if !reads.scans.iter().any(|known| known.covers(&scan)) {
                    reads.scans.push(scan.clone());
                }
            });
        }
    }

    /// A tablet that is no more, and that nobody else has known.
    pub(crate) fn forget(&self, tablet: TabletId) {
        self.tablets.lock().remove(&tablet);
    }

    /// All of a table counts as read.
    pub(crate) fn note_all(&self, table: &TableDef) {
        for tablet in table.tablets() {
            self.note(tablet, |reads| *reads = Reads { all: true, ..Reads::default() });
        }
    }

    fn note(&self, tablet: TabletId, note: impl FnOnce(&mut Reads)) {
        let mut tablets = self.tablets.lock();
        let reads = tablets.entry(tablet).or_default();
        if reads.all {
            return;
        }
        note(reads);
        if reads.keys.len() + reads.ranges.len() > KEYS_MAX || reads.scans.len() > SCANS_MAX {
            *reads = Reads { all: true, ..Reads::default() };
        }
    }

    /// What was read so far, in a form in which it is quickly found.
    pub(super) fn settled(&self) -> SettledReads {
        let settled = |reads: &Reads| {
            let mut ranges = reads.ranges.clone();
            ranges.sort_unstable_by(|a, b| a.from.cmp(&b.from));
            // One range from where the other is going on is no other range.
            ranges.dedup_by(|next, last| {
                let joins = last.to.as_ref().is_none_or(|to| next.from <= *to);
                if joins && last.to.as_ref().zip(next.to.as_ref()).is_none_or(|(last, next)| last < next) {
                    last.to = last.to.take().and(next.to.take());
                }
                joins
            });
            let scans = reads.scans.iter().map(|scan| SettledScan::of(scan)).collect();
            Settled { all: reads.all, keys: reads.keys.clone(), ranges, scans }
        };
        SettledReads { tablets: self.tablets.lock().iter().map(|(tablet, reads)| (*tablet, settled(reads))).collect() }
    }
}

impl ScanRead {
    /// Whether everything that meets the other is met by this one.
    fn covers(&self, other: &ScanRead) -> bool {
        self.predicates.iter().all(|predicate| other.predicates.contains(predicate))
            && other.columns.iter().all(|column| self.columns.contains(column))
    }
}

/// What a transaction has read until it commits.
pub(crate) struct SettledReads {
    tablets: HashMap<TabletId, Settled>,
}

struct Settled {
    all: bool,
    keys: HashSet<Key>,
    /// Ascending, apart from each other.
    ranges: Vec<KeyRange>,
    scans: Vec<SettledScan>,
}

struct SettledScan {
    table: Arc<TableDef>,
    /// Those that were read, and those of conditions.
    columns: Vec<ColumnId>,
    conditions: Vec<Condition>,
}

/// On one column.
struct Condition {
    column: ColumnId,
    ty: DataType,
    test: Test,
}

enum Test {
    IsNull,
    IsNotNull,
    Compare(CompareOp, Constant),
    In(Vec<Constant>),
}

struct Constant {
    value: Datum,
    /// As a key: keys are in the order of values.
    key: Vec<u8>,
}

impl SettledReads {
    pub fn tablets(&self) -> impl Iterator<Item = TabletId> {
        self.tablets.keys().copied()
    }

    /// Whether a row that was changed has been read, or would be read as it is now.
    pub fn meets_row(&self, tablet: TabletId, key: &Key, before: &ReadContext, now: &ReadContext) -> Result<bool> {
        let Some(reads) = self.tablets.get(&tablet) else { return Ok(false) };
        let is_read = |check: &str, met: bool| met && !is_weakened(check);
        if reads.all
            || is_read("validation-keys", reads.keys.contains(key))
            || is_read("validation-ranges", reads.has_in_ranges(key.as_bytes(), key.as_bytes()))
        {
            return Ok(true);
        }
        let Some(first) = reads.scans.first().filter(|_| !is_weakened("validation-scans")) else { return Ok(false) };
        let values = |read: &ReadContext| -> Result<Option<Vec<Datum>>> {
            Ok(read.get(&first.table, tablet, key)?.map(|row| row.values))
        };
        let (before, now) = (values(before)?, values(now)?);
        Ok(reads.scans.iter().any(|scan| scan.tells_apart(before.as_deref(), now.as_deref())))
    }

    /// The same of new rows; their keys lie between two, if they are known.
    pub fn meets_keys(&self, tablet: TabletId, keys: Option<&(Key, Key)>) -> bool {
        let Some(reads) = self.tablets.get(&tablet).filter(|_| !is_weakened("validation-batches")) else {
            return false;
        };
        let Some((least, greatest)) = keys else { return true };
        reads.all
            || !reads.scans.is_empty()
            || reads.keys.iter().any(|key| least <= key && key <= greatest)
            || reads.has_in_ranges(least.as_bytes(), greatest.as_bytes())
    }
}

impl Settled {
    fn has_in_ranges(&self, least: &[u8], greatest: &[u8]) -> bool {
        let behind = self.ranges.partition_point(|range| &range.from[..] <= greatest);
        // They are apart: the last that begins early enough ends last.
        behind.checked_sub(1).is_some_and(|last| self.ranges[last].overlaps(least, greatest))
    }
}

impl SettledScan {
    fn of(scan: &ScanRead) -> SettledScan {
        let conditions = scan.predicates.iter().filter_map(|predicate| {
            let column = predicate.column();
            let ty = scan.table.column(column).ty.clone();
            let constant = |value: &Datum| Constant { key: key_of(&ty, value), value: value.clone() };
            let test = match predicate {
                // Which keys a join has depends on other rows.
                ColumnPredicate::Among { .. } => return None,
                ColumnPredicate::IsNull { .. } => Test::IsNull,
                ColumnPredicate::IsNotNull { .. } => Test::IsNotNull,
                ColumnPredicate::Compare { op, value, .. } => Test::Compare(*op, constant(value)),
                ColumnPredicate::In { values, .. } => Test::In(values.iter().map(constant).collect()),
            };
            Some(Condition { column, test, ty })
        });
        let conditions: Vec<Condition> = conditions.collect();
        let columns = scan.columns.iter().copied().chain(conditions.iter().map(|condition| condition.column)).collect();
        SettledScan { table: scan.table.clone(), columns, conditions }
    }

    /// Whether the scan would find something else if a row were this instead of that.
    fn tells_apart(&self, before: Option<&[Datum]>, now: Option<&[Datum]>) -> bool {
        let finds = |row: Option<&[Datum]>| row.is_some_and(|row| self.conditions.iter().all(|one| one.may_hold(row)));
        let same = match (before, now) {
            (Some(before), Some(now)) => {
                self.columns.iter().all(|column| before.get(column.position()) == now.get(column.position()))
            }
            (before, now) => before == now,
        };
        !same && (finds(before) || finds(now))
    }
}

impl Condition {
    /// False: it does not hold for the row.
    fn may_hold(&self, row: &[Datum]) -> bool {
        let Some(value) = row.get(self.column.position()) else { return true };
        match &self.test {
            Test::IsNull => value.is_null(),
            Test::IsNotNull => !value.is_null(),
            _ if value.is_null() => false,
            Test::Compare(op, with) => self.order(value, with).is_none_or(|order| op.holds(order)),
            Test::In(values) => values.iter().any(|with| self.order(value, with).is_none_or(Ordering::is_eq)),
        }
    }

    /// `None`: the value has another form than the constant.
    fn order(&self, value: &Datum, with: &Constant) -> Option<Ordering> {
        (discriminant(value) == discriminant(&with.value)).then(|| key_of(&self.ty, value).cmp(&with.key))
    }
}

fn key_of(ty: &DataType, value: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    if !value.is_null() {
        key::encode_column(ty, value, &mut out);
    }
    out
}
