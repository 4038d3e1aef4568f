//! Functions of a row's place: `row_number`, `rank`, `dense_rank`, `percent_rank`, `cume_dist`, `ntile`.

use super::{Ranking, Rows};
use crate::error::{Error, Result};
use crate::functions::arg::{Arg, I4};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array};
use basalt_types::DataType;
use std::sync::Arc;

/// bigint, or double precision for the relative ones.
pub fn ranking(rows: &Rows, function: Ranking) -> Result<ArrayRef> {
    Ok(match function {
        Ranking::RowNumber => {
            let mut out = Vec::with_capacity(rows.len());
            for partition in rows.partitions() {
                let first = partition.start;
                rows.fill(partition, &mut out, |row| i64::from(row - first) + 1)?;
            }
            Arc::new(Int64Array::from(out))
        }
        Ranking::Rank => {
            let mut out = Vec::with_capacity(rows.len());
            for (group, partition) in rows.peer_groups() {
                let rank = i64::from(group.start - partition.start) + 1;
                rows.fill(group, &mut out, |_| rank)?;
            }
            Arc::new(Int64Array::from(out))
        }
        Ranking::DenseRank => {
            let mut out = Vec::with_capacity(rows.len());
            let mut rank = 0;
            for (group, partition) in rows.peer_groups() {
                rank = if group.start == partition.start { 1 } else { rank + 1 };
                rows.fill(group, &mut out, |_| rank)?;
            }
            Arc::new(Int64Array::from(out))
        }
        Ranking::PercentRank => {
            let mut out = Vec::with_capacity(rows.len());
            for (group, partition) in rows.peer_groups() {
                let others = f64::from(partition.end - partition.start) - 1.0;
                let before = f64::from(group.start - partition.start);
                let share = if others > 0.0 { before / others } else { 0.0 };
                rows.fill(group, &mut out, |_| share)?;
            }
            Arc::new(Float64Array::from(out))
        }
        Ranking::CumeDist => {
            let mut out = Vec::with_capacity(rows.len());
            for (group, partition) in rows.peer_groups() {
                let share = f64::from(group.end - partition.start) / f64::from(partition.end - partition.start);
                rows.fill(group, &mut out, |_| share)?;
            }
            Arc::new(Float64Array::from(out))
        }
    })
}

/// `ntile(buckets)`: the number of buckets is that of the first row of the partition that has one; rows before
/// have no bucket. 22014 unless it is positive.
pub fn ntile(rows: &Rows, buckets: &ArrayRef) -> Result<ArrayRef> {
    let counts = I4::column(buckets, &DataType::Int4)?;
    let mut out = Int32Array::builder(rows.len());
    for partition in rows.partitions() {
        let total = partition.end - partition.start;
        let Some(first) = partition.clone().find(|row| buckets.is_valid(*row as usize)) else {
            partition.for_each(|_| out.append_null());
            continue;
        };
        (partition.start..first).for_each(|_| out.append_null());
        let count = u32::try_from(counts[first as usize]).ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| Error::new("22014", "argument of ntile must be greater than zero"))?;
        let (small, larger) = (total / count, total % count);
        for place in 0..partition.end - first {
            rows.check_at(place as usize)?;
            // The first `larger` buckets have one row more.
            let in_larger = larger * (small + 1);
            let bucket =
                if place < in_larger { place / (small + 1) } else { larger + (place - in_larger) / small.max(1) };
            out.append_value(bucket as i32 + 1);
        }
    }
    Ok(Arc::new(out.finish()))
}
