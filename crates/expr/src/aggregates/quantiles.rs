//! `mode` and the percentiles of values whose order is that of 64-bit integers. They take rows in any order and have
//! partial states, so that workers share the work; where a value stands is found by selection, without sorting all.

use super::GroupsAccumulator;
use super::ordered::{Kind, each_fraction};
use crate::error::{Error, Result};
use crate::eval::vector::{VectorBuilder, value_at};
use crate::functions::arg::mismatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray};
use basalt_types::batch::to_stored;
use basalt_types::{DataType, Datum, PhysType, floats};

/// Whether values of a type are kept as integers of the same order.
pub(super) fn holds(ty: &DataType) -> bool {
    use DataType::*;
    matches!(ty, Int2 | Int4 | Int8 | Float4 | Float8 | Date | Time | Timestamp | TimestampTz)
}

/// Types of a partial state: the direct argument, if there is one, and the values.
pub(super) fn state_types(args: &[DataType]) -> Vec<DataType> {
    match args.split_last() {
        Some((value, direct)) if holds(value) => direct.iter().cloned().chain([DataType::Bytea]).collect(),
        _ => Vec::new(),
    }
}

pub(super) struct Quantiles {
    /// Of the direct argument, if there is one.
    direct: Option<DataType>,
    value: DataType,
    phys: PhysType,
    ty: DataType,
    kind: Kind,
    descending: bool,
    groups: Vec<Group>,
    /// Of all groups together.
    words: usize,
}

#[derive(Default)]
struct Group {
    /// The direct argument.
    direct: Option<Datum>,
    /// The values that are not null, as integers of the same order.
    words: Vec<i64>,
}

impl Quantiles {
    /// `None` for values of other types.
    pub fn new(args: &[DataType], ty: &DataType, kind: Kind, descending: bool) -> Option<Quantiles> {
        let (value, direct) = args.split_last().filter(|(value, _)| holds(value))?;
        let (direct, value, phys) = (direct.first().cloned(), value.clone(), value.phys()?);
        Some(Quantiles { direct, value, phys, ty: ty.clone(), kind, descending, groups: Vec::new(), words: 0 })
    }

    fn make_room(&mut self, total_groups: usize) {
        if self.groups.len() < total_groups {
            self.groups.resize_with(total_groups, Group::default);
        }
    }

    fn datum(&self, word: i64) -> Datum {
        match self.phys {
            PhysType::I16 => Datum::I16(word as i16),
            PhysType::I32 => Datum::I32(word as i32),
            PhysType::F32 => Datum::F32(floats::of_word(word) as f32),
            PhysType::F64 => Datum::F64(floats::of_word(word)),
            _ => Datum::I64(word),
        }
    }

    fn percentile(&self, fraction: f64, words: &mut [i64]) -> Result<Datum> {
        let last = words.len() - 1;
        let mut at = |row: usize| {
            let row = if self.descending { last - row.min(last) } else { row.min(last) };
            *words.select_nth_unstable(row).1
        };
        if self.kind == Kind::Discrete {
            let row = (fraction * (last + 1) as f64).ceil() as usize;
            return Ok(self.datum(at(row.saturating_sub(1))));
        }
        let place = fraction * last as f64;
        let first = floats::of_word(at(place.floor() as usize));
        if place.floor() == place.ceil() {
            return Ok(Datum::F64(first));
        }
        let second = floats::of_word(at(place.ceil() as usize));
        Ok(Datum::F64(first + (place - place.floor()) * (second - first)))
    }

    /// The most frequent value; of several the first.
    fn mode(&self, words: &mut [i64]) -> Datum {
        words.sort_unstable();
        let mut best: Option<(i64, usize)> = None;
        for same in words.chunk_by(|a, b| a == b) {
            let is_better = best.is_none_or(|(_, most)| same.len() > most || self.descending && same.len() == most);
            if is_better {
                best = Some((same[0], same.len()));
            }
        }
        best.map_or(Datum::Null, |(word, _)| self.datum(word))
    }

    fn result(&self, group: &mut Group) -> Result<Datum> {
        if self.kind == Kind::Mode {
            return Ok(self.mode(&mut group.words));
        }
        let (Some(ty), Some(direct)) = (&self.direct, &group.direct) else { return Ok(Datum::Null) };
        let words = &mut group.words;
        each_fraction(ty, direct, &self.ty, words.is_empty(), &mut |fraction| self.percentile(fraction, words))
    }
}

/// Calls `each` with the values that count, as integers of the same order, and their groups.
fn each_word(
    phys: PhysType,
    values: &ArrayRef,
    counts: impl Fn(usize) -> bool,
    each: &mut dyn FnMut(usize, i64),
) -> Result<()> {
    macro_rules! each_of {
        ($ty:ty, $word:expr) => {
            for (row, value) in values.as_primitive::<$ty>().values().iter().enumerate() {
                if counts(row) {
                    each(row, $word(*value));
                }
            }
        };
    }
    match phys {
        PhysType::I16 => each_of!(Int16Type, i64::from),
        PhysType::I32 => each_of!(Int32Type, i64::from),
        PhysType::I64 => each_of!(Int64Type, i64::from),
        PhysType::F32 => each_of!(Float32Type, |value| floats::ordered(f64::from(value))),
        PhysType::F64 => each_of!(Float64Type, floats::ordered),
        _ => return Err(Error::internal("values that are no integers of the same order")),
    }
    Ok(())
}

impl GroupsAccumulator for Quantiles {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.make_room(total_groups);
        let filter = filter.map(crate::eval::is_true);
        let Some((values, direct)) = args.split_last() else { return Err(mismatch(&self.value, &"arguments")) };
        let passes = |row: usize| filter.as_ref().is_none_or(|filter| filter.value(row));
        if let (Some(column), Some(ty)) = (direct.first(), &self.direct) {
            for (row, group) in groups.iter().enumerate() {
                let known = &mut self.groups[*group as usize].direct;
                if known.is_none() && passes(row) {
                    *known = Some(value_at(ty, column.as_ref(), row));
                }
            }
        }
        let stored = to_stored(&self.value, values);
        let nulls = stored.nulls().cloned();
        let counts = |row: usize| passes(row) && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let (all, words) = (&mut self.groups, &mut self.words);
        each_word(self.phys, &stored, counts, &mut |row, word| {
            all[groups[row] as usize].words.push(word);
            *words += 1;
        })
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.make_room(total_groups);
        let Some((values, direct)) = states.split_last() else { return Err(mismatch(&self.value, &"states")) };
        let values = to_stored(&DataType::Bytea, values);
        let values = values.as_binary_view();
        for (row, group) in groups.iter().enumerate() {
            let group = &mut self.groups[*group as usize];
            if let (None, Some(column), Some(ty)) = (&group.direct, direct.first(), &self.direct) {
                let known = value_at(ty, column.as_ref(), row);
                group.direct = (!known.is_null()).then_some(known);
            }
            if values.is_valid(row) {
                let (words, _) = values.value(row).as_chunks::<8>();
                group.words.extend(words.iter().map(|word| i64::from_le_bytes(*word)));
                self.words += words.len();
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let groups = std::mem::take(&mut self.groups);
        self.words = 0;
        let mut states = Vec::with_capacity(2);
        if let Some(ty) = &self.direct {
            let mut out = VectorBuilder::new(ty, groups.len());
            groups.iter().try_for_each(|group| out.push(group.direct.as_ref().unwrap_or(&Datum::Null)))?;
            states.push(out.finish()?);
        }
        let mut out = VectorBuilder::new(&DataType::Bytea, groups.len());
        for group in groups {
            if group.words.len() > STATE_BYTES_MAX / 8 {
                return Err(Error::new("54000", "too many values for the state of an ordered-set aggregate"));
            }
            let bytes: Vec<u8> = group.words.iter().flat_map(|word| word.to_le_bytes()).collect();
            out.push(&Datum::Bytes(bytes.into()))?;
        }
        states.push(out.finish()?);
        Ok(states)
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut groups = std::mem::take(&mut self.groups);
        let mut out = VectorBuilder::new(&self.ty, groups.len());
        let results = groups.iter_mut().try_for_each(|group| out.push(&self.result(group)?));
        self.groups = groups;
        results?;
        out.finish()
    }

    fn size_bytes(&self) -> usize {
        // Vectors grow by doubling.
        self.words * 12 + self.groups.capacity() * size_of::<Group>()
    }
}

/// Bytes of one value that a vector holds.
const STATE_BYTES_MAX: usize = i32::MAX as usize;

#[cfg(test)]
mod tests;
