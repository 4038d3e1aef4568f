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
pub use moving::over_frames;
pub use rank::{ntile, ranking};
pub use values::{Edge, edge_value, nth_value, shifted};

use crate::error::{Error, Result};
use std::ops::Range;

/// Called now and then in long loops; its error ends them.
pub type Check<'a> = &'a (dyn Fn() -> Result<()> + Sync);

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
        if row.is_multiple_of(4096) { (self.check)() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
