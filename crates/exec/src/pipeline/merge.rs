//! Sorted runs on disk, read as one: a tournament of their first rows (Knuth, volume 3, 5.4.1).

use super::sort::{At, KeyValues, Order, interleaved, run_rows};
use super::window::{self, Cuts};
use crate::error::{Error, Result};
use crate::memory::Reservation;
use crate::spill::scatter::Rows;
use crate::spill::{SPILL_BYTES_MIN, SpillFile, bytes_of};
use crate::stop::Stop;
use arrow_array::{Array, ArrayRef};
use basalt_types::vector::Vector;
use std::cmp::Ordering;
use std::sync::Arc;

/// Runs that are read at once.
const RUNS_MAX: usize = if cfg!(test) { 8 } else { 64 };
/// Rows that leave together.
const ROWS: usize = 8192;

/// What a sort, or the sort of a window, has left.
pub(super) struct Runs {
    order: Arc<Order>,
    runs: Vec<Rows>,
    window: Option<Arc<window::Spec>>,
    /// Rows that leave.
    pub rows: usize,
}

impl Runs {
    /// Merges runs into fewer until they can be read at once.
    pub fn new(
        order: Arc<Order>,
        mut runs: Vec<Rows>,
        window: Option<Arc<window::Spec>>,
        file: &Arc<SpillFile>,
        stop: &Stop,
    ) -> Result<Runs> {
        runs.retain(|run| run.rows > 0);
        while runs.len() > RUNS_MAX {
            // Those that follow each other, so that rows that are equal stay as they came.
            let mut fewer = Vec::with_capacity(runs.len().div_ceil(RUNS_MAX));
            for some in runs.chunks(RUNS_MAX) {
                fewer.push(merged(&order, some, file, stop)?);
            }
            runs = fewer;
        }
        let all = runs.iter().map(|run| run.rows).sum::<usize>();
        let rows = all.saturating_sub(order.offset).min(order.limit.unwrap_or(usize::MAX));
        Ok(Runs { order, runs, window, rows })
    }
}

/// Several runs as one.
fn merged(order: &Arc<Order>, runs: &[Rows], file: &Arc<SpillFile>, stop: &Stop) -> Result<Rows> {
    let mut tournament = Tournament::new(order, runs)?;
    let mut out = Rows::new(file);
    // No more are asked for by anybody.
    let mut left = order.limit.map_or(usize::MAX, |limit| limit.saturating_add(order.offset));
    let mut rows_max = 64;
    while left > 0 {
        if stop.is_set() {
            return Err(Error::Stopped);
        }
        let Some(piece) = tournament.next(rows_max.min(left), None)? else { break };
        out.write(&piece.columns, piece.rows)?;
        left -= piece.rows;
        rows_max = run_rows(piece.columns.iter().map(bytes_of).sum(), piece.rows);
    }
    Ok(out)
}

/// One run and where it is.
struct Cursor {
    run: Rows,
    block: usize,
    keys: Vec<KeyValues>,
    /// Its block among those that the next piece is made of.
    source: usize,
    row: usize,
    rows: usize,
}

/// Rows of all runs in order, some at a time.
struct Tournament {
    order: Arc<Order>,
    cursors: Vec<Cursor>,
    /// At each inner node of a tree over the cursors the loser of its match; at 0 the winner of all.
    losers: Vec<usize>,
    /// Blocks that rows of the next piece are in.
    sources: Vec<Vec<ArrayRef>>,
    source_bytes: usize,
    /// Whether the next row is of the partition of the last that was given.
    goes_on: bool,
}

/// Rows that are the same in so many of the first keys leave together, if there is room for them.
struct Whole<'h> {
    /// `None`: any row may be the last.
    keys: Option<usize>,
    /// Keys of partitions.
    partition: usize,
    held: &'h mut Reservation,
}

impl Whole<'_> {
    fn reach(&mut self, bytes: usize) -> Result<()> {
        // As blocks, together, and what is computed of them.
        let bytes = bytes * 3;
        match self.held.reach(bytes) || bytes < SPILL_BYTES_MIN {
            true => Ok(()),
            false => Err(Error::Beyond("rows of a window that belong together and are more than memory holds")),
        }
    }
}

/// Sorted rows, with columns of keys that are none of theirs behind them.
struct Piece {
    columns: Vec<Vector>,
    rows: usize,
}

impl Tournament {
    fn new(order: &Arc<Order>, runs: &[Rows]) -> Result<Tournament> {
        let cursor = |run: &Rows| Cursor { run: run.clone(), block: 0, keys: Vec::new(), source: 0, row: 0, rows: 0 };
        let cursors: Vec<Cursor> = runs.iter().map(cursor).collect();
        let losers = vec![usize::MAX; cursors.len().max(1)];
        let (sources, source_bytes, goes_on) = (Vec::new(), 0, false);
        let mut own = Tournament { order: order.clone(), cursors, losers, sources, source_bytes, goes_on };
        for at in 0..own.cursors.len() {
            own.load(at)?;
        }
        (0..own.cursors.len()).rev().for_each(|at| own.enter(at));
        Ok(own)
    }

    /// The next block of a run.
    fn load(&mut self, at: usize) -> Result<()> {
        let cursor = &mut self.cursors[at];
        (cursor.row, cursor.rows) = (0, 0);
        if cursor.block == cursor.run.blocks() {
            return Ok(());
        }
        let (columns, rows) = cursor.run.read(cursor.block)?;
        cursor.block += 1;
        self.source_bytes += columns.iter().map(bytes_of).sum::<usize>();
        let width = self.order.fields.len();
        let mut beside = columns[width..].iter();
        cursor.keys.clear();
        for key in &self.order.keys {
            let column = match key.column {
                Some(column) => &columns[column],
                None => beside.next().ok_or(Error::Beyond("a run without its keys"))?,
            };
            cursor.keys.push(KeyValues::of(column.clone(), key.form)?);
        }
        (cursor.rows, cursor.source) = (rows, self.sources.len());
        self.sources.push(self.stored(columns));
        Ok(())
    }

    fn stored(&self, columns: Vec<Vector>) -> Vec<ArrayRef> {
        let beside = self.order.keys_beside().map(|(_, key)| key.form.stored());
        let types = self.order.fields.iter().map(|field| field.held().phys().expect("columns are storable"));
        columns.iter().zip(types.chain(beside)).map(|(column, ty)| column.to_array(ty)).collect()
    }

    /// Whether one cursor's row comes before another's; one without rows comes behind all.
    fn is_before(&self, a: usize, b: usize) -> bool {
        let (one, other) = (&self.cursors[a], &self.cursors[b]);
        match (one.row < one.rows, other.row < other.rows) {
            (true, true) => {
                let order = self.order.compare((&one.keys, one.row), (&other.keys, other.row));
                order.then(a.cmp(&b)) == Ordering::Less
            }
            (one, other) => one && !other,
        }
    }

    /// A cursor's row plays its way up, as far as it wins.
    fn enter(&mut self, at: usize) {
        let mut winner = at;
        let mut node = (at + self.cursors.len()) / 2;
        while node > 0 {
            match self.losers[node] {
                // Nobody has come here yet: who did waits for the other.
                usize::MAX => {
                    self.losers[node] = winner;
                    return;
                }
                waiting if self.is_before(waiting, winner) => {
                    self.losers[node] = winner;
                    winner = waiting;
                }
                _ => {}
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }

    /// So many rows, or fewer at the end, where `None` follows. More of them if `whole` says that the last ones belong
    /// together with the next.
    fn next(&mut self, rows_max: usize, mut whole: Option<Whole<'_>>) -> Result<Option<Piece>> {
        self.forget();
        self.goes_on = false;
        let mut rows: Vec<At> = Vec::with_capacity(rows_max);
        while let Some(at) = self.winner() {
            let (source, row) = (self.cursors[at].source, self.cursors[at].row);
            rows.push((source, row));
            self.cursors[at].row += 1;
            let block_ends = !self.cursors[at].has_row();
            // The keys of a row are looked at once more when the next one is known.
            let gone = if block_ends { Some(std::mem::take(&mut self.cursors[at].keys)) } else { None };
            if block_ends {
                self.load(at)?;
                // Those that leave together anyway are few.
                match whole.as_mut().filter(|whole| whole.keys.is_some() && rows.len() >= rows_max) {
                    Some(whole) => whole.reach(self.source_bytes)?,
                    None => self.source_bytes = 0,
                }
            }
            self.enter(at);
            if rows.len() < rows_max {
                continue;
            }
            let (Some(whole), Some(next)) = (&whole, self.winner()) else { break };
            let keys = gone.as_deref().unwrap_or(&self.cursors[at].keys);
            let next = &self.cursors[next];
            let is_same = |count: usize| self.order.is_same((keys, row), (&next.keys, next.row), count);
            if whole.keys.is_none_or(|count| !is_same(count)) {
                self.goes_on = is_same(whole.partition);
                break;
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let width = self.sources[0].len();
        let column = |at: usize| {
            let values: Vec<&dyn Array> = self.sources.iter().map(|source| &*source[at]).collect();
            interleaved(&values, &rows).map(Vector::measured)
        };
        let columns = (0..width).map(column).collect::<Result<Vec<Vector>>>()?;
        Ok(Some(Piece { columns, rows: rows.len() }))
    }

    /// Whose row is next.
    fn winner(&self) -> Option<usize> {
        self.losers.first().copied().filter(|at| self.cursors.get(*at).is_some_and(Cursor::has_row))
    }

    /// Lets go of blocks that no row is left of.
    fn forget(&mut self) {
        let mut kept = Vec::with_capacity(self.cursors.len());
        for cursor in self.cursors.iter_mut().filter(|cursor| cursor.has_row()) {
            kept.push(std::mem::take(&mut self.sources[cursor.source]));
            cursor.source = kept.len() - 1;
        }
        self.sources = kept;
        self.source_bytes = 0;
    }
}

impl Cursor {
    fn has_row(&self) -> bool {
        self.row < self.rows
    }
}

/// One reader of runs.
pub(super) struct Merge {
    tournament: Tournament,
    window: Option<Arc<window::Spec>>,
    /// Of the partition that goes on.
    carried: window::Carried,
    /// Rows that are still to be passed over, and to be given.
    offset: usize,
    left: usize,
    held: Reservation,
}

impl Merge {
    pub fn new(of: &Runs, held: Reservation) -> Result<Merge> {
        let tournament = Tournament::new(&of.order, &of.runs)?;
        let (window, carried) = (of.window.clone(), window::Carried::default());
        Ok(Merge { tournament, window, carried, offset: of.order.offset, left: of.rows, held })
    }

    pub fn next(&mut self, stop: &Stop) -> Result<Option<(Vec<Vector>, usize)>> {
        while self.left > 0 {
            if stop.is_set() {
                return Err(Error::Stopped);
            }
            let Some((columns, rows)) = self.piece()? else { return Ok(None) };
            let from = self.offset.min(rows);
            self.offset -= from;
            let count = self.left.min(rows - from);
            self.left -= count;
            if count == rows {
                return Ok(Some((columns, rows)));
            }
            if count > 0 {
                let some: Vec<u32> = (from as u32..(from + count) as u32).collect();
                return Ok(Some((columns.iter().map(|column| column.take(&some)).collect(), count)));
            }
        }
        Ok(None)
    }

    fn piece(&mut self) -> Result<Option<(Vec<Vector>, usize)>> {
        let width = self.tournament.order.fields.len();
        let goes_on = self.tournament.goes_on;
        let whole = self.window.as_ref().map(|window| {
            let partition = window.partition.len();
            let keys = match window.cuts() {
                Cuts::Anywhere => None,
                Cuts::Peers => Some(partition + window.order.len()),
                Cuts::Partitions => Some(partition),
            };
            Whole { keys, partition, held: &mut self.held }
        });
        let Some(Piece { mut columns, rows }) = self.tournament.next(ROWS, whole)? else { return Ok(None) };
        columns.truncate(width);
        if let Some(window) = &self.window {
            columns = window.apply_on(columns, rows, &mut self.carried, [goes_on, self.tournament.goes_on])?;
            self.held.shrink_to(0);
        }
        Ok(Some((columns, rows)))
    }
}
