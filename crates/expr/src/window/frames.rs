//! Frames: the rows that a window function looks at from each row (PostgreSQL manual 4.2.8).
//!
//! Starts and ends are positions in [`Rows`], the end one past the last row. RANGE offsets move both ends
//! forward only, from the partition's first row on, so that a partition takes one pass.

use super::Rows;
use super::in_range::InRange;
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::eval::vector::value_at;
use arrow_array::ArrayRef;
use basalt_types::{DataType, Datum};
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Units {
    Rows,
    Range,
    Groups,
}

/// Where a frame starts or ends. What is preceding or following by how much comes as an [`Offset`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    UnboundedPreceding,
    Preceding,
    CurrentRow,
    Following,
    UnboundedFollowing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exclude {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameSpec {
    pub units: Units,
    pub start: Bound,
    pub end: Bound,
    pub exclude: Exclude,
}

impl FrameSpec {
    /// 22004 and 22013 for offsets that are null or negative. A negative RANGE offset is found when it is used.
    pub fn check_offsets(self, offsets: [Option<&Datum>; 2]) -> Result<()> {
        check_offset(offsets[0], self.units, "starting")?;
        check_offset(offsets[1], self.units, "ending")
    }
}

/// The value of a bound's offset, of a type that [`super::in_range::offset_type`] gave, or bigint.
#[derive(Clone, Debug)]
pub struct Offset {
    pub value: Datum,
    pub ty: DataType,
}

/// What RANGE offsets are measured along: the only ORDER BY column.
pub struct RangeKey<'a> {
    pub ty: DataType,
    pub values: &'a ArrayRef,
    pub descending: bool,
    pub nulls_first: bool,
    pub ctx: &'a EvalContext,
}

/// The frames of all rows.
pub struct Frames {
    pub(super) start: Vec<u32>,
    pub(super) end: Vec<u32>,
    pub(super) exclude: Exclude,
    /// Peers of each row; only with an exclusion.
    peers: Vec<Range<u32>>,
    /// Every frame is its whole partition.
    pub(super) whole: bool,
    /// Every frame starts with its partition, and none excludes rows.
    pub(super) growing: bool,
}

impl Frames {
    /// 22004 and 22013 for offsets that are null or negative.
    pub fn new(
        rows: &Rows,
        spec: FrameSpec,
        offsets: [Option<&Offset>; 2],
        range: Option<&RangeKey>,
    ) -> Result<Frames> {
        if !rows.is_empty() {
            spec.check_offsets(offsets.map(|offset| offset.map(|offset| &offset.value)))?;
        }
        let start = ends(rows, spec.units, spec.start, offsets[0], range, true)?;
        let end = ends(rows, spec.units, spec.end, offsets[1], range, false)?;
        let plain = spec.exclude == Exclude::NoOthers;
        let mut peers = Vec::new();
        if !plain {
            peers.reserve(rows.len());
            for (group, _) in rows.peer_groups() {
                peers.extend(group.clone().map(|_| group.clone()));
            }
        }
        let from_first = plain && spec.start == Bound::UnboundedPreceding;
        Ok(Frames {
            start,
            end,
            exclude: spec.exclude,
            peers,
            whole: from_first && spec.end == Bound::UnboundedFollowing,
            growing: from_first,
        })
    }

    /// The rows of one row's frame: up to three ranges, ascending, some of them empty.
    pub(super) fn ranges(&self, row: usize) -> [Range<u32>; 3] {
        let (start, end) = (self.start[row], self.end[row].max(self.start[row]));
        let at = row as u32;
        let (hole, kept) = match self.exclude {
            Exclude::NoOthers => return [start..end, end..end, end..end],
            Exclude::CurrentRow => (at..at + 1, at..at),
            Exclude::Group => (self.peers[row].clone(), at..at),
            Exclude::Ties => (self.peers[row].clone(), at..at + 1),
        };
        let clip = |value: u32| value.clamp(start, end);
        [start..clip(hole.start), clip(kept.start)..clip(kept.end), clip(hole.end)..end]
    }

    pub(super) fn size(&self, row: usize) -> u64 {
        self.ranges(row).iter().map(|range| u64::from(range.end - range.start)).sum()
    }

    /// Whether a row's frame is that of the row before it.
    pub(super) fn is_repeated(&self, row: usize) -> bool {
        row > 0
            && self.exclude == Exclude::NoOthers
            && self.start[row] == self.start[row - 1]
            && self.end[row] == self.end[row - 1]
    }
}

fn check_offset(offset: Option<&Datum>, units: Units, which: &str) -> Result<()> {
    match offset {
        Some(Datum::Null) => Err(Error::new("22004", format!("frame {which} offset must not be null"))),
        Some(Datum::I64(value)) if *value < 0 && units != Units::Range => {
            Err(Error::new("22013", format!("frame {which} offset must not be negative")))
        }
        _ => Ok(()),
    }
}

/// One end of every frame.
fn ends(
    rows: &Rows,
    units: Units,
    bound: Bound,
    offset: Option<&Offset>,
    range: Option<&RangeKey>,
    is_start: bool,
) -> Result<Vec<u32>> {
    let mut out = Vec::with_capacity(rows.len());
    match (bound, units) {
        (Bound::UnboundedPreceding, _) => {
            for partition in rows.partitions() {
                let start = partition.start;
                rows.fill(partition, &mut out, |_| start)?;
            }
        }
        (Bound::UnboundedFollowing, _) => {
            for partition in rows.partitions() {
                let end = partition.end;
                rows.fill(partition, &mut out, |_| end)?;
            }
        }
        (Bound::CurrentRow, Units::Rows) => rows.fill(0..rows.rows, &mut out, |row| row + u32::from(!is_start))?,
        (Bound::CurrentRow, _) => {
            for (group, _) in rows.peer_groups() {
                let end = if is_start { group.start } else { group.end };
                rows.fill(group, &mut out, |_| end)?;
            }
        }
        (Bound::Preceding | Bound::Following, Units::Rows) => {
            let shift = shift_of(bound, offset)?;
            for partition in rows.partitions() {
                rows.fill(partition.clone(), &mut out, |row| {
                    let place = i128::from(row) + shift + i128::from(!is_start);
                    place.clamp(i128::from(partition.start), i128::from(partition.end)) as u32
                })?;
            }
        }
        (Bound::Preceding | Bound::Following, Units::Groups) => {
            groups_away(rows, shift_of(bound, offset)?, is_start, &mut out)?;
        }
        (Bound::Preceding | Bound::Following, Units::Range) => {
            let (Some(offset), Some(key)) = (offset, range) else {
                return Err(Error::internal("a RANGE offset without a column to measure along"));
            };
            values_away(rows, bound == Bound::Preceding, offset, key, is_start, &mut out)?;
        }
    }
    Ok(out)
}

/// Rows or groups to move by: negative for what precedes.
fn shift_of(bound: Bound, offset: Option<&Offset>) -> Result<i128> {
    match offset.map(|offset| &offset.value) {
        Some(Datum::I64(value)) if bound == Bound::Preceding => Ok(-i128::from(*value)),
        Some(Datum::I64(value)) => Ok(i128::from(*value)),
        other => Err(Error::internal(format!("a frame offset is {other:?}"))),
    }
}

fn groups_away(rows: &Rows, shift: i128, is_start: bool, out: &mut Vec<u32>) -> Result<()> {
    // Numbers of the partition's first group and of the one behind its last.
    let (mut first, mut behind) = (0, 0);
    for (number, (group, partition)) in rows.peer_groups().enumerate() {
        if group.start == partition.start {
            first = number;
            behind = rows.groups.partition_point(|start| *start < partition.end);
        }
        let wanted = number as i128 + shift + i128::from(!is_start);
        let wanted = wanted.clamp(first as i128, behind as i128) as usize;
        let place = rows.groups[wanted];
        rows.fill(group, out, |_| place)?;
    }
    Ok(())
}

/// A bound at a distance along the ordering column.
fn values_away(
    rows: &Rows,
    preceding: bool,
    offset: &Offset,
    key: &RangeKey,
    is_start: bool,
    out: &mut Vec<u32>,
) -> Result<()> {
    // Downwards, what precedes is greater.
    let subtract = preceding != key.descending;
    let less = is_start == key.descending;
    let within = InRange::new(&key.ty, offset, subtract, less, key.ctx)?;
    let mut place = 0;
    let mut at_place = Datum::Null;
    let mut known = None;
    for (group, partition) in rows.peer_groups() {
        rows.check_at(group.start as usize)?;
        if group.start == partition.start {
            place = partition.start;
        }
        let current = value_at(&key.ty, key.values.as_ref(), group.start as usize);
        while place < partition.end {
            if known != Some(place) {
                at_place = value_at(&key.ty, key.values.as_ref(), place as usize);
                known = Some(place);
            }
            let stay = if at_place.is_null() || current.is_null() {
                match (is_start, key.nulls_first) {
                    (true, true) => !at_place.is_null() || current.is_null(),
                    (true, false) => at_place.is_null() || !current.is_null(),
                    (false, true) => !at_place.is_null(),
                    (false, false) => !current.is_null(),
                }
            } else {
                within.holds(&at_place, &current)? == is_start
            };
            if stay {
                break;
            }
            place += 1;
        }
        out.extend(group.map(|_| place));
    }
    Ok(())
}
