//! Tables one after the other: for each row of the first those of the second, and so on. What comes out is passed on,
//! sorted, or added up.

use super::access::{Access, Part, Places};
use super::covered::Covered;
use super::shape::{Lens, Shape};
use super::totals::{Adding, Totals};
use super::{RowOut, RowRun, Tried};
use crate::error::{Result, SqlError};
use crate::plan::row_count::{LIMIT, OFFSET, row_count};
use basalt_engine::{
    Direction, Engine, KeyRange, Reading, SeenRow, SeenRows, Walk, WalkSpec, WalkedRow, blocks_brought,
};
use basalt_expr::EvalContext;
use basalt_expr::operators::{SortOrder, compare_rows};
use basalt_expr::tree::Expr;
use basalt_sched::threads;
use basalt_types::schema::{ENTRY_ROW, ENTRY_TABLET, IndexDef};
use basalt_types::{ColumnId, DataType, Datum, Key, Stamp, TableDef, TabletId};
use cpu_time::ThreadTime;
use smallvec::SmallVec;
use std::time::Duration;

/// What a run takes at most; what takes more is for the column engine. Keys (of tables and of indexes) that are looked
/// at, bytes of the rows found, and time by the clock; behind it, as others may have had the
/// processor meanwhile, some of the thread's own.
const LOOKS_MAX: usize = 16 << 10;
const BYTES_MAX: usize = 4 << 20;
const TIME_MAX: Duration = Duration::from_millis(5);
const TIME_MORE: Duration = Duration::from_millis(2);
/// A run that has read so many blocks into memory, some 50 µs each, takes less time when it is begun again.
const BLOCKS_MANY: u64 = 16;
/// A run that was out of time when it had looked at no more keys than these was held up by something else.
const LOOKS_FEW: usize = 1 << 10;
/// Rows between two looks at the clock.
const ROWS_PER_TIME: usize = 32;
/// Tablet, key and stamp.
const IDENTITY: usize = 3;
/// Keys that are looked up together.
const KEYS_TOGETHER: usize = 256;
/// A longer row is copied before it is written, as in [`super::get`].
const LOOK_BYTES_MAX: usize = 16 << 10;

#[derive(PartialEq, Debug)]
pub(super) struct Nested {
    pub steps: Vec<Step>,
    pub top: Top,
    /// Length of the frame: the columns of all tables.
    pub registers: usize,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    /// Whether constants may fail, whatever rows there are.
    pub checks_constants: bool,
}

/// One table. Expressions are over the frame.
#[derive(PartialEq, Debug)]
pub(super) struct Step {
    pub access: Access,
    pub lens: Lens,
    /// Of an index's entries: where their rows are.
    entries: Option<Lens>,
    /// They have all that is needed of the rows.
    covered: Option<Covered>,
    /// Where its columns begin in the frame.
    pub base: usize,
    /// Behind them come the tablet, the key and the stamp of the row.
    pub identified: bool,
    /// The other side of a left join.
    optional: bool,
    /// Which rows match, of such a side.
    pub matches: Option<Expr>,
    /// Which rows go on.
    pub passes: Option<Expr>,
}

#[derive(PartialEq, Debug)]
pub(super) enum Top {
    /// Rows of the only table.
    Direct(Shape),
    Rows {
        outputs: Vec<Expr>,
        types: Vec<DataType>,
        /// What they are sorted by, if anything.
        keys: Vec<Expr>,
        key_types: Vec<DataType>,
        orders: Vec<SortOrder>,
    },
    Totals(Totals),
}

impl Step {
    pub fn new(
        access: Access,
        lens: Lens,
        base: usize,
        optional: bool,
        matches: Option<Expr>,
        passes: Option<Expr>,
    ) -> Option<Step> {
        let entries = match &access.index {
            Some(index) => Some(Lens::new(index.entries.clone(), vec![ENTRY_TABLET, ENTRY_ROW])?),
            None => None,
        };
        Some(Step { access, lens, entries, covered: None, base, identified: false, optional, matches, passes })
    }

    /// Its registers.
    fn width(&self) -> usize {
        self.lens.columns.len() + if self.identified { IDENTITY } else { 0 }
    }

    /// Whether an index's entries are all that is read.
    pub fn is_covered(&self) -> bool {
        self.covered.is_some()
    }
}

/// Of a row that nobody looks at: who asks for its identity needs it.
const NO_PLACE: (TabletId, &[u8], Option<Stamp>) = (TabletId(0), &[], None);

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    /// There are as many rows as are wanted.
    Enough,
    /// It takes too long.
    TooLong,
}

impl Nested {
    /// What was given is nothing if it gave up.
    pub fn run(&self, run: RowRun<'_>, out: &mut RowOut<'_>) -> Result<Tried> {
        let RowRun { engine, reading, eval, .. } = run;
        let count = |expr: &Option<Expr>, place| match expr {
            Some(expr) => row_count(&expr.eval_scalar(&[], eval)?, place),
            None => Ok(None),
        };
        if self.checks_constants {
            // Errors of constants come before all rows.
            self.exprs().into_iter().try_for_each(|expr| expr.check_constants(eval))?;
        }
        // As PostgreSQL, which looks at OFFSET first.
        let skip = count(&self.offset, OFFSET)?.unwrap_or(0);
        let left = count(&self.limit, LIMIT)?.unwrap_or(u64::MAX);
        let adding = match &self.top {
            Top::Totals(totals) => Some(totals.begin()),
            _ => None,
        };
        let wanted = match left.checked_add(skip) {
            _ if matches!(&self.top, Top::Totals(totals) if totals.first_is_all) => 1,
            Some(wanted) if left < u64::MAX => usize::try_from(wanted).unwrap_or(usize::MAX),
            // Nobody knows.
            _ => 0,
        };
        if skip > LOOKS_MAX as u64 {
            return Ok(Tried::TooMuch);
        }
        let mut visit = Visit {
            nested: self,
            engine,
            reading,
            eval,
            out,
            wanted,
            looks_left: LOOKS_MAX,
            bytes_left: BYTES_MAX,
            begun: threads::now(),
            brought: blocks_brought(),
            spent: None,
            out_of_time: false,
            seen: 0,
            skip,
            left,
            rows: 0,
            held: Vec::new(),
            adding,
        };
        let mut frame = vec![Datum::Null; self.registers];
        let flow = if left == 0 { Flow::Enough } else { visit.step(0, &mut frame)? };
        if flow == Flow::TooLong {
            let is_cold = blocks_brought() - visit.brought >= BLOCKS_MANY;
            let begins_again = visit.out_of_time && (is_cold || visit.looks_left >= LOOKS_MAX - LOOKS_FEW);
            return Ok(if begins_again && !self.is_range() { Tried::Cold } else { Tried::TooMuch });
        }
        visit.finish()?;
        Ok(Tried::Done(visit.rows))
    }

    /// A range of one table, of which other engines read little more than what is in it.
    fn is_range(&self) -> bool {
        let is_range = |Access { index, whole, prefix, .. }: &Access| {
            index.is_none() && !whole && !prefix.iter().any(|part| matches!(part, Part::Many(_)))
        };
        matches!(&self.steps[..], [step] if is_range(&step.access))
    }
}

struct Visit<'a, 'o, 'w> {
    nested: &'a Nested,
    engine: &'a Engine,
    reading: Reading<'a>,
    eval: &'a EvalContext,
    out: &'o mut RowOut<'w>,
    /// Rows that are enough; 0 if nobody knows.
    wanted: usize,
    looks_left: usize,
    bytes_left: usize,
    /// By the clock, which is there to be read.
    begun: Duration,
    /// Blocks that the thread had read.
    brought: u64,
    /// What the thread had taken when that time was over: to ask is a call into the kernel.
    spent: Option<ThreadTime>,
    out_of_time: bool,
    /// Rows found.
    seen: usize,
    skip: u64,
    left: u64,
    /// Given.
    rows: u64,
    /// Rows to be sorted: keys and outputs.
    held: Vec<(Vec<Datum>, Vec<Datum>)>,
    adding: Option<Adding>,
}

impl<'a> Visit<'a, '_, '_> {
    /// Goes through the rows of a step, and for each through the steps behind it.
    fn step(&mut self, at: usize, frame: &mut Vec<Datum>) -> Result<Flow> {
        let nested = self.nested;
        let Some(step) = nested.steps.get(at) else { return self.arrive(frame) };
        let mut matched = false;
        match step.access.places(frame, self.eval, &mut self.looks_left)? {
            Places::TooMany => return Ok(Flow::TooLong),
            Places::Keys(keys) if keys.len() > 1 && step.access.index.is_none() => {
                let flow = self.by_keys(at, &keys, frame, &mut matched)?;
                if flow != Flow::On {
                    return Ok(flow);
                }
            }
            Places::Keys(keys) => {
                for key in &keys {
                    let flow = match &step.access.index {
                        None => self.by_key(at, key, frame, &mut matched)?,
                        Some(index) => self.by_entry(at, index, key, frame, &mut matched)?,
                    };
                    if flow != Flow::On {
                        return Ok(flow);
                    }
                }
            }
            Places::Ranges(ranges) => {
                for range in ranges {
                    let flow = match &step.access.index {
                        None => self.by_range(at, range, frame, &mut matched)?,
                        Some(index) => self.by_entries(at, index, range, frame, &mut matched)?,
                    };
                    if flow != Flow::On {
                        return Ok(flow);
                    }
                }
            }
        }
        if !step.optional || matched {
            return Ok(Flow::On);
        }
        frame[step.base..][..step.width()].fill(Datum::Null);
        if !self.holds(&step.passes, frame)? {
            return Ok(Flow::On);
        }
        self.step(at + 1, frame)
    }

    fn holds(&self, condition: &Option<Expr>, frame: &[Datum]) -> Result<bool> {
        match condition {
            Some(condition) => Ok(condition.eval_scalar(frame, self.eval)? == Datum::Bool(true)),
            None => Ok(true),
        }
    }

    /// Takes from what may be looked at. False: there is too little left.
    fn looks(&mut self, count: usize) -> bool {
        self.looks_left = self.looks_left.saturating_sub(count);
        self.looks_left > 0
    }

    /// A row was found. False: that is too much, or takes too long.
    fn may_go_on(&mut self, bytes: usize) -> bool {
        self.seen += 1;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if self.bytes_left == 0 || !self.seen.is_multiple_of(ROWS_PER_TIME) {
            return self.bytes_left > 0;
        }
        if threads::now().saturating_sub(self.begun) >= TIME_MAX {
            self.out_of_time = self.spent.get_or_insert_with(ThreadTime::now).elapsed() >= TIME_MORE;
        }
        !self.out_of_time
    }

    /// The row of a whole primary key.
    fn by_key(&mut self, at: usize, key: &[u8], frame: &mut Vec<Datum>, matched: &mut bool) -> Result<Flow> {
        let table = &self.nested.steps[at].lens.table;
        let tablets: SmallVec<[TabletId; 1]> = match self.engine.tablet_of(table, key) {
            Some(tablet) => SmallVec::from_buf([tablet]),
            None => table.tablets().collect(),
        };
        for tablet in tablets {
            let flow = self.by_place(at, tablet, key, frame, matched)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    /// The rows of several whole primary keys, which ascend.
    fn by_keys(&mut self, at: usize, keys: &[Vec<u8>], frame: &mut Vec<Datum>, matched: &mut bool) -> Result<Flow> {
        let nested = self.nested;
        let lens = &nested.steps[at].lens;
        let mut rows = SeenRows::default();
        let mut values = vec![Datum::Null; lens.table.columns.len()];
        let together = if self.wanted == 0 { KEYS_TOGETHER } else { self.wanted.min(KEYS_TOGETHER) };
        for keys in keys.chunks(together) {
            if !self.looks(keys.len()) {
                return Ok(Flow::TooLong);
            }
            for (tablet, keys) in by_tablet(self.engine, &lens.table, keys) {
                self.engine.look_many(&lens.table, tablet, &keys, self.reading, &lens.columns, &mut rows)?;
                for (position, key) in keys.iter().enumerate() {
                    let Some(row) = rows.get(position, &lens.table, &lens.columns, &mut values) else { continue };
                    let flow = self.row(at, (tablet, key, None), &row, frame, matched)?;
                    if flow != Flow::On {
                        return Ok(flow);
                    }
                }
            }
        }
        Ok(Flow::On)
    }

    /// A row of the step was found, and is kept by the caller.
    fn row(
        &mut self,
        at: usize,
        place: (TabletId, &[u8], Option<Stamp>),
        row: &SeenRow<'_>,
        frame: &mut Vec<Datum>,
        matched: &mut bool,
    ) -> Result<Flow> {
        let nested = self.nested;
        let Step { lens, base, .. } = &nested.steps[at];
        if let Top::Direct(shape) = &nested.top {
            return self.direct(shape, row);
        }
        lens.read(row, &mut frame[*base..][..lens.columns.len()])?;
        match self.may_go_on(weight(row)) {
            true => self.go_on(at, place, frame, matched),
            false => Ok(Flow::TooLong),
        }
    }

    fn by_place(
        &mut self,
        at: usize,
        tablet: TabletId,
        key: &[u8],
        frame: &mut Vec<Datum>,
        matched: &mut bool,
    ) -> Result<Flow> {
        if !self.looks(1) {
            return Ok(Flow::TooLong);
        }
        let nested = self.nested;
        let Step { lens, base, .. } = &nested.steps[at];
        let (engine, reading) = (self.engine, self.reading);
        if let Top::Direct(shape) = &nested.top {
            let copies = shape.computes || self.skip > 0 || matches!(self.out, RowOut::Batches(_));
            let seen = engine.look(&lens.table, tablet, key, reading, &lens.columns, |row| match row {
                SeenRow::Encoded(bytes) if copies || bytes.len() > LOOK_BYTES_MAX => Err(bytes.to_vec()),
                row => Ok(self.direct(shape, &row)),
            });
            return match seen? {
                Some(Ok(flow)) => flow,
                Some(Err(bytes)) => self.direct(shape, &SeenRow::Encoded(&bytes)),
                None => Ok(Flow::On),
            };
        }
        let slots = &mut frame[*base..][..lens.columns.len()];
        let read = |row: SeenRow<'_>| lens.read(&row, slots).map(|()| weight(&row));
        match engine.look(&lens.table, tablet, key, reading, &lens.columns, read)?.transpose()? {
            Some(bytes) if self.may_go_on(bytes) => self.go_on(at, (tablet, key, None), frame, matched),
            Some(_) => Ok(Flow::TooLong),
            None => Ok(Flow::On),
        }
    }

    /// A row of the step is in the frame.
    fn go_on(
        &mut self,
        at: usize,
        (tablet, key, stamp): (TabletId, &[u8], Option<Stamp>),
        frame: &mut Vec<Datum>,
        matched: &mut bool,
    ) -> Result<Flow> {
        let nested = self.nested;
        let step = &nested.steps[at];
        if step.identified {
            let stamp = match stamp {
                Some(stamp) => Some(stamp),
                None => self.engine.stamp_of(tablet, key, self.reading.at)?,
            };
            let stamp = stamp.ok_or_else(|| SqlError::internal("a row is gone within one snapshot"))?;
            let identity = [Datum::I64(i64::from(tablet.0)), Datum::Bytes(key.into()), Datum::I64(stamp.raw() as i64)];
            frame[step.base + step.lens.columns.len()..][..IDENTITY].clone_from_slice(&identity);
        }
        if !self.holds(&step.matches, frame)? {
            return Ok(Flow::On);
        }
        *matched = true;
        if !self.holds(&step.passes, frame)? {
            return Ok(Flow::On);
        }
        self.step(at + 1, frame)
    }

    fn by_range(&mut self, at: usize, range: KeyRange, frame: &mut Vec<Datum>, matched: &mut bool) -> Result<Flow> {
        let nested = self.nested;
        let Step { lens, access, identified, .. } = &nested.steps[at];
        let tablets: SmallVec<[TabletId; 4]> = lens.table.tablets().collect();
        let walk = self.walk(lens, &tablets, range, access.direction, *identified)?;
        let Some(mut walk) = walk else { return Ok(Flow::TooLong) };
        while let Some(WalkedRow { tablet, key, stamp, row }) = walk.next_row()? {
            let flow = self.row(at, (tablet, key, stamp), &row, frame, matched)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        self.walked(&walk)
    }

    /// The rows of a range, one after the other. `None`: there is too much to look at.
    fn walk<'t>(
        &self,
        lens: &'t Lens,
        tablets: &'t [TabletId],
        range: KeyRange,
        direction: Direction,
        stamped: bool,
    ) -> Result<Option<Walk<'t>>>
    where
        'a: 't,
    {
        let spec = WalkSpec {
            table: &lens.table,
            tablets,
            range,
            direction,
            columns: &lens.columns,
            reading: self.reading,
            stamped,
            // Who locks a row asks for both.
            keyed: stamped,
            rows_hint: self.wanted,
            looks_max: self.looks_left,
        };
        Ok(self.engine.walk(spec)?)
    }

    /// Whether a walk that gives no more rows has come to its end.
    fn walked(&mut self, walk: &Walk<'_>) -> Result<Flow> {
        Ok(if self.looks(walk.looked()) && !walk.is_spent() { Flow::On } else { Flow::TooLong })
    }

    /// The row of a unique index's entry.
    fn by_entry(
        &mut self,
        at: usize,
        index: &IndexDef,
        key: &[u8],
        frame: &mut Vec<Datum>,
        matched: &mut bool,
    ) -> Result<Flow> {
        if !self.looks(1) {
            return Ok(Flow::TooLong);
        }
        let nested = self.nested;
        if let Some(covered) = &nested.steps[at].covered {
            let read = |entry: SeenRow<'_>| covered.row(&entry);
            let table = &covered.lens.table;
            let seen = self.engine.look(table, index.tablet(), key, self.reading, &covered.lens.columns, read)?;
            return match seen.transpose()? {
                Some(values) => self.row(at, NO_PLACE, &SeenRow::Values(&values), frame, matched),
                None => Ok(Flow::On),
            };
        }
        let Some(entries) = &nested.steps[at].entries else { return Err(no_entries(index)) };
        let read = |row: SeenRow<'_>| base_of(entries, &row, index);
        let seen = self.engine.look(&entries.table, index.tablet(), key, self.reading, &entries.columns, read)?;
        match seen.transpose()? {
            Some((tablet, key)) => self.by_place(at, tablet, key.as_bytes(), frame, matched),
            None => Ok(Flow::On),
        }
    }

    fn by_entries(
        &mut self,
        at: usize,
        index: &IndexDef,
        range: KeyRange,
        frame: &mut Vec<Datum>,
        matched: &mut bool,
    ) -> Result<Flow> {
        let nested = self.nested;
        let covered = nested.steps[at].covered.as_ref();
        let entries = covered.map(|covered| &covered.lens).or(nested.steps[at].entries.as_ref());
        let Some(entries) = entries else { return Err(no_entries(index)) };
        let (tablets, direction) = ([index.tablet()], nested.steps[at].access.direction);
        let walk = self.walk(entries, &tablets, range, direction, false)?;
        let Some(mut walk) = walk else { return Ok(Flow::TooLong) };
        while let Some(WalkedRow { row, .. }) = walk.next_row()? {
            let flow = match covered {
                Some(covered) => {
                    let values = covered.row(&row)?;
                    self.row(at, NO_PLACE, &SeenRow::Values(&values), frame, matched)?
                }
                None => {
                    let (tablet, key) = base_of(entries, &row, index)?;
                    self.by_place(at, tablet, key.as_bytes(), frame, matched)?
                }
            };
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        self.walked(&walk)
    }

    /// A row of the only table.
    fn direct(&mut self, shape: &Shape, row: &SeenRow<'_>) -> Result<Flow> {
        if !self.may_go_on(weight(row)) {
            return Ok(Flow::TooLong);
        }
        if self.skip > 0 {
            if shape.skip(row, self.eval)? {
                self.skip -= 1;
            }
            return Ok(Flow::On);
        }
        match shape.write(row, self.eval, self.out)? {
            true => Ok(self.given()),
            false => Ok(Flow::On),
        }
    }

    /// One more row was given.
    fn given(&mut self) -> Flow {
        self.rows += 1;
        if self.rows == self.left { Flow::Enough } else { Flow::On }
    }

    /// A row has come through all steps.
    fn arrive(&mut self, frame: &[Datum]) -> Result<Flow> {
        let (outputs, keys) = match &self.nested.top {
            Top::Rows { outputs, keys, .. } => (outputs, keys),
            Top::Totals(totals) => {
                let adding = self.adding.as_mut();
                let goes_on = adding.map_or(Ok(true), |adding| totals.add(adding, frame, self.eval))?;
                return Ok(if goes_on { Flow::On } else { Flow::Enough });
            }
            Top::Direct(_) => return Ok(Flow::On),
        };
        let computed = |exprs: &[Expr]| {
            let values = exprs.iter().map(|expr| Ok(expr.eval_scalar(frame, self.eval)?));
            values.collect::<Result<Vec<Datum>>>()
        };
        if !keys.is_empty() {
            let row = (computed(keys)?, computed(outputs)?);
            self.held.push(row);
            return Ok(Flow::On);
        }
        let values = computed(outputs)?;
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(Flow::On);
        }
        self.give(&values)?;
        Ok(self.given())
    }

    fn give(&mut self, values: &[Datum]) -> Result<()> {
        let types = match &self.nested.top {
            Top::Rows { types, .. } => types,
            Top::Totals(totals) => &totals.types,
            Top::Direct(_) => return Err(SqlError::internal("rows of one table go straight to the client")),
        };
        self.out.push(types, values, self.eval)
    }

    fn finish(&mut self) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        let mut rows = std::mem::take(&mut self.held);
        if let Top::Rows { key_types, orders, .. } = &self.nested.top {
            rows.sort_by(|(a, _), (b, _)| compare_rows(key_types, orders, a, b));
        }
        if let (Top::Totals(totals), Some(adding)) = (&self.nested.top, self.adding.take()) {
            rows.push((Vec::new(), totals.end(adding, self.eval)?));
        }
        for (_, values) in rows {
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            if self.rows == self.left {
                break;
            }
            self.give(&values)?;
            self.rows += 1;
        }
        Ok(())
    }
}

impl Nested {
    /// Lets steps read entries alone where these have all that anybody looks at.
    pub fn cover(&mut self) {
        let mut used = std::collections::BTreeSet::new();
        let mut use_of = |expr: &Expr| {
            expr.walk(&mut |node| {
                if let Expr::Column { index, .. } = node {
                    used.insert(*index);
                }
                true
            });
        };
        let shown: Option<Vec<ColumnId>> = match &self.top {
            Top::Direct(shape) => Some(shape.lens.columns.clone()),
            Top::Rows { outputs, keys, .. } => {
                outputs.iter().chain(keys).for_each(&mut use_of);
                None
            }
            Top::Totals(totals) => {
                totals.arguments().for_each(&mut use_of);
                None
            }
        };
        for step in &self.steps {
            let conditions = step.matches.iter().chain(&step.passes);
            step.access.exprs().into_iter().chain(conditions).for_each(&mut use_of);
        }
        for step in self.steps.iter_mut().filter(|step| !step.identified) {
            let Some(index) = &step.access.index else { continue };
            let columns = match &shown {
                Some(columns) => columns.clone(),
                None => {
                    let columns = step.lens.columns.iter().enumerate();
                    columns.filter(|(at, _)| used.contains(&(step.base + at))).map(|(_, column)| *column).collect()
                }
            };
            step.covered = Covered::of(index, &step.lens.table, &columns);
        }
    }

    /// Constants are computed in this order.
    pub fn exprs(&self) -> Vec<&Expr> {
        let mut out = Vec::new();
        match &self.top {
            Top::Direct(shape) => out.extend(shape.exprs()),
            Top::Rows { outputs, keys, .. } => out.extend(outputs.iter().chain(keys)),
            Top::Totals(totals) => out.extend(totals.exprs()),
        }
        for step in &self.steps {
            out.extend(step.access.exprs());
            out.extend(step.matches.iter().chain(&step.passes));
        }
        out.extend(self.limit.iter().chain(&self.offset));
        out
    }
}

/// Keys by the tablets where their rows are, or may be.
fn by_tablet<'k>(engine: &Engine, table: &TableDef, keys: &'k [Vec<u8>]) -> Vec<(TabletId, Vec<&'k [u8]>)> {
    let all = || keys.iter().map(Vec::as_slice).collect();
    let mut tablets: Vec<(TabletId, Vec<&[u8]>)> = table.tablets().map(|tablet| (tablet, Vec::new())).collect();
    if let [(_, of_only)] = tablets.as_mut_slice() {
        *of_only = all();
        return tablets;
    }
    for key in keys {
        let tablet = engine.tablet_of(table, key);
        // Its rows may be anywhere.
        let Some(tablet) = tablet else { return table.tablets().map(|tablet| (tablet, all())).collect() };
        if let Some((_, of_this)) = tablets.iter_mut().find(|(id, _)| *id == tablet) {
            of_this.push(key);
        }
    }
    tablets.retain(|(_, keys)| !keys.is_empty());
    tablets
}

/// Bytes of a row, about.
fn weight(row: &SeenRow<'_>) -> usize {
    match row {
        SeenRow::Encoded(bytes) => bytes.len(),
        SeenRow::Values(values) => values
            .iter()
            .map(|value| match value {
                Datum::Bytes(bytes) => bytes.len(),
                _ => size_of::<u64>(),
            })
            .sum(),
    }
}

/// Where the row of an entry is.
fn base_of(entries: &Lens, row: &SeenRow<'_>, index: &IndexDef) -> Result<(TabletId, Key)> {
    let mut values = [Datum::Null, Datum::Null, Datum::Null];
    entries.read(row, &mut values[ENTRY_TABLET.position()..])?;
    IndexDef::base_of(&values).ok_or_else(|| no_entries(index))
}

fn no_entries(index: &IndexDef) -> SqlError {
    SqlError::internal(format!("index {} has an entry without a row", index.name))
}
