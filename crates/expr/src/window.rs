//! Window functions over sorted rows: PostgreSQL manual 4.2.8, 7.2.5 and 9.22.
//!
//! Whoever runs a window sorts rows by partition and order, and hands over [`Rows`]: whole partitions, with
//! the places where partitions and peer groups begin. [`frames`] says which rows each row's frame has;
//! [`rank`], [`values`] and [`moving`] compute one vector of results each. Nothing here knows where rows
//! come from.

mod frames;
pub mod in_range;
mod moving;
mod prefix;
mod rank;
mod tree;
mod values;

pub use frames::{Bound, Exclude, FrameSpec, Frames, Offset, RangeKey, Units};
pub use moving::{going_on, over_frames};
pub use rank::{ntile, ranking};
pub use values::{Edge, edge_value, nth_value, shifted};

use crate::error::{Error, Result};
use std::ops::Range;

/// Called now and then in long loops; its error ends them.
pub type Check<'a> = &'a (dyn Fn() -> Result<()> + Sync);

/// Rows after which one asks whether the work is still wanted.
const CHECKED_ROWS: usize = 4096;

/// Functions of a row's place among its partition's rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ranking {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

/// Whole partitions in window order.
pub struct Rows<'a> {
    rows: u32,
    /// Where each partition begins, and the number of rows.
    partitions: Vec<u32>,
    /// Where each group of peers begins, and the number of rows. Every partition begins one.
    groups: Vec<u32>,
    check: Check<'a>,
}

impl<'a> Rows<'a> {
    /// `begins` tells of each row whether it begins a partition, and whether it begins a group of peers. 54000 for
    /// more rows than are counted.
    pub fn new(rows: usize, begins: impl Fn(usize) -> (bool, bool), check: Check<'a>) -> Result<Rows<'a>> {
        let total = u32::try_from(rows)
            .map_err(|_| Error::new("54000", format!("a window partition of {rows} rows is too large")))?;
        let (mut partitions, mut groups) = (Vec::new(), Vec::new());
        for row in 0..rows {
            if row.is_multiple_of(CHECKED_ROWS) {
                check()?;
            }
            let (partition, group) = begins(row);
            if partition || row == 0 {
                partitions.push(row as u32);
            }
            if partition || group || row == 0 {
                groups.push(row as u32);
            }
        }
        partitions.push(total);
        groups.push(total);
        Ok(Rows { rows: total, partitions, groups, check })
    }

    pub fn len(&self) -> usize {
        self.rows as usize
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many rows, and how many groups of peers, the last partition has; and whether it is the only one.
    pub fn last_partition(&self) -> (u32, usize, bool) {
        let [.., from, to] = self.partitions.as_slice() else { return (0, 0, true) };
        let groups = self.groups.len() - 1 - self.groups.partition_point(|group| group < from);
        (to - from, groups, self.partitions.len() == 2)
    }

    /// Where the first partition ends.
    pub fn first_end(&self) -> u32 {
        self.partitions.get(1).copied().unwrap_or(0)
    }

    fn partitions(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.partitions.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// Groups of peers with the partition that they are in.
    fn peer_groups(&self) -> impl Iterator<Item = (Range<u32>, Range<u32>)> + '_ {
        let mut partitions = self.partitions().peekable();
        self.groups.windows(2).filter_map(move |pair| {
            while partitions.peek().is_some_and(|partition| partition.end <= pair[0]) {
                partitions.next();
            }
            partitions.peek().map(|partition| (pair[0]..pair[1], partition.clone()))
        })
    }

    /// Fails if the work is no longer wanted; asks once in some thousand rows.
    fn check_at(&self, row: usize) -> Result<()> {
        if row.is_multiple_of(CHECKED_ROWS) { (self.check)() } else { Ok(()) }
    }

    /// So many rows, some at a time; fails if the work is no longer wanted.
    fn pieces(&self, rows: Range<u32>) -> impl Iterator<Item = Result<Range<u32>>> + '_ {
        let end = rows.end;
        let pieces =
            rows.step_by(CHECKED_ROWS).map(move |from| from..end.min(from.saturating_add(CHECKED_ROWS as u32)));
        pieces.map(|piece| self.check_at(0).map(|()| piece))
    }

    /// Appends a value for each row of a range.
    fn fill<T>(&self, rows: Range<u32>, out: &mut Vec<T>, value: impl Fn(u32) -> T) -> Result<()> {
        // Most ranges are short.
        if rows.len() < CHECKED_ROWS {
            self.check_if_passed(&rows)?;
            out.extend(rows.map(value));
            return Ok(());
        }
        for piece in self.pieces(rows) {
            out.extend(piece?.map(&value));
        }
        Ok(())
    }

    /// Asks where a short range goes over a place where one is asked.
    fn check_if_passed(&self, rows: &Range<u32>) -> Result<()> {
        const ROWS: u32 = CHECKED_ROWS as u32;
        if rows.start / ROWS != rows.end / ROWS { (self.check)() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
