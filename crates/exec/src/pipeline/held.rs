//! What a pipeline made for others, in memory or on disk.

use super::HELD_ROWS;
use super::Ran;
use super::merge::Runs;
use super::reading::{Cut, Given, Pair};
use super::sort::{PartedWindow, Sorted, Windowed};
use crate::aggregate::Finished;
use crate::aggregate::rows::Parted;
use crate::aggregate::spill as groups;
use crate::error::Result;
use crate::join::{self, Marks};
use crate::spill::scatter::Rows;
use basalt_types::vector::Vector;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) enum Held {
    Nothing,
    Groups(Arc<Finished>),
    Table(Arc<join::Table>),
    Marks(Marks),
    Columns(Vec<Vector>, usize),
    Sorted(Sorted),
    Windowed(Windowed),
    /// The same in parts that are computed when they are read, by so many workers at once at most.
    PartedWindow(PartedWindow, usize),
    /// Groups of several workers that are put together part by part.
    PartedGroups(Parted, Counted),
    /// The same of groups on disk.
    SpilledGroups(groups::Spilled, Counted),
    /// A table that is built part by part.
    SpilledTable(Arc<join::spill::Spilled>),
    /// Rows that look for partners in such a table, by part, to mark them.
    SpilledMarks(Cut, Vec<Arc<Pair>>),
    /// Rows in their order.
    SpilledRows(Rows),
    /// Those of all rounds of a recursion.
    Rounds(Vec<Arc<Held>>),
    Runs(Runs),
}

/// Rows of a pipeline that are counted when their part is read for the first time.
pub(super) struct Counted {
    ran: Arc<Ran>,
    parts: Vec<AtomicBool>,
}

impl Counted {
    pub fn new(ran: &Arc<Ran>, parts: usize) -> Counted {
        Counted { ran: ran.clone(), parts: std::iter::repeat_with(AtomicBool::default).take(parts).collect() }
    }

    /// What counts the rows of a part that is about to be read, unless it has been read before.
    pub fn begin(&self, part: usize) -> Option<Arc<Ran>> {
        (!self.parts[part].swap(true, Ordering::Relaxed)).then(|| self.ran.clone())
    }
}

impl Held {
    /// What readers take one after the other.
    pub fn each(self: &Arc<Held>) -> &[Arc<Held>] {
        match &**self {
            Held::Rounds(rounds) => rounds,
            _ => std::slice::from_ref(self),
        }
    }

    /// As far as that is known.
    pub fn rows(&self) -> usize {
        match self {
            Held::Nothing | Held::Marks(_) | Held::SpilledMarks(..) => 0,
            Held::PartedGroups(..) | Held::SpilledGroups(..) => 0,
            Held::Groups(groups) => groups.groups(),
            Held::Table(table) => table.rows,
            Held::Columns(_, rows) => *rows,
            Held::Sorted(sorted) => sorted.rows(),
            Held::Windowed(windowed) => windowed.rows,
            Held::PartedWindow(window, _) => window.rows(),
            Held::SpilledTable(table) => table.rows,
            Held::SpilledRows(rows) => rows.rows,
            Held::Rounds(rounds) => rounds.iter().map(|held| held.rows()).sum(),
            Held::Runs(runs) => runs.rows,
        }
    }

    /// In how many parts workers take it.
    pub fn parts(&self) -> usize {
        match self {
            Held::PartedGroups(groups, _) => groups.parts(),
            Held::SpilledGroups(groups, _) => groups.parts.len(),
            Held::SpilledRows(rows) => rows.blocks(),
            Held::Windowed(windowed) => windowed.parts(),
            Held::PartedWindow(window, _) => window.parts(),
            Held::Runs(_) => 1,
            held => held.rows().div_ceil(HELD_ROWS),
        }
    }

    /// Whether something of it is computed when it is read.
    pub fn is_put_together(&self) -> bool {
        let of_groups = matches!(self, Held::Groups(_) | Held::PartedGroups(..) | Held::SpilledGroups(..));
        of_groups || matches!(self, Held::PartedWindow(..) | Held::Runs(_))
    }

    /// The rows of a part, of what is not put together part by part.
    pub fn part(&self, at: usize) -> Result<Given> {
        let (from, to) = (at * HELD_ROWS, self.rows().min((at + 1) * HELD_ROWS));
        let taken = |columns: &[Vector]| {
            let rows: Vec<u32> = (from as u32..to as u32).collect();
            columns.iter().map(|column| column.take(&rows)).collect()
        };
        let columns = match self {
            Held::Table(table) => taken(&table.payload),
            Held::Columns(columns, _) => taken(columns),
            Held::Sorted(sorted) => sorted.columns(from..to)?,
            Held::Groups(groups) => return Ok(Given::Groups(groups.clone(), from..to)),
            Held::Windowed(windowed) => {
                let (columns, rows) = windowed.part(at);
                return Ok(Given::Columns(columns, rows));
            }
            Held::SpilledRows(rows) => {
                let (columns, rows) = rows.read(at)?;
                return Ok(Given::Columns(columns, rows));
            }
            _ => Vec::new(),
        };
        Ok(Given::Columns(columns, to - from))
    }

    /// What it takes of memory.
    pub fn bytes(&self) -> usize {
        match self {
            Held::Groups(groups) => groups.bytes(),
            // Those that are open have their room, too.
            Held::PartedGroups(groups, counted) => groups.bytes() + groups.open_bytes(counted.ran.workers()),
            Held::Table(table) => table.bytes(),
            Held::Marks(marks) => marks.bytes(),
            Held::Columns(columns, _) => columns.iter().map(crate::spill::bytes_of).sum(),
            Held::Sorted(sorted) => sorted.bytes(),
            Held::Windowed(windowed) => windowed.bytes(),
            Held::PartedWindow(window, open) => window.bytes() + window.open_bytes(*open),
            _ => 0,
        }
    }
}
