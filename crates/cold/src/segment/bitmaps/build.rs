//! Makes the bitmaps of a file: row group by row group which rows hold which values, and all of them together at the end.

use super::wanted::{float_order, wide_order};
use super::{PACKED, ROARING, are_possible};
use crate::Result;
use crate::encoding::dictionary::{COUNT_MAX, SharedKind, encode_ints, encode_plain_strings};
use crate::encoding::ints;
use crate::frame::{Extent, SECTION_BITMAPS, Section, write_block};
use crate::segment::values::{Values, validity};
use crate::segment::zone::comparable;
use crate::segment::{ROW_GROUP_ROWS, SegmentColumn, SegmentSchema};
use crate::store::FileSink;
use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use basalt_types::{ColumnId, varint};
use hashbrown::HashMap;
use roaring::RoaringBitmap;
use std::hash::Hash;

/// A page is full with so many values, or bytes of values or of lists.
const PAGE_VALUES: usize = 1 << 12;
const PAGE_BYTES: usize = 32 << 10;
/// What is held of a file's columns until it ends. Beyond that the one with the most goes without bitmaps.
const HELD_BYTES_MAX: usize = 256 << 20;
/// A column with a longer value has no bitmaps in the file, nor one whose different values are longer on average: they
/// would take as much room as the column.
const VALUE_LEN_MAX: usize = 8 << 10;
const VALUE_LEN_MEAN_MAX: usize = 256;
/// Fewer rows take less as integers.
const ROARING_ROWS_MIN: usize = 256;

/// Collects what a file's sections say.
pub(in crate::segment) struct BitmapsBuilder {
    columns: Vec<ColumnBuilder>,
}

struct ColumnBuilder {
    /// Its place in the schema.
    at: usize,
    /// `None`: its values are too long, or too many.
    groups: Option<Vec<Group>>,
    held_bytes: usize,
}

/// The values of a row group.
struct Group {
    values: Distinct,
    /// Where the rows of each end among all.
    ends: Vec<u32>,
    /// Value by value, those without one last.
    rows: Vec<u16>,
}

/// Ascending.
enum Distinct {
    Ints(Vec<i64>),
    Strings(Vec<Box<[u8]>>),
}

impl BitmapsBuilder {
    pub fn new(schema: &SegmentSchema, asked: &[ColumnId]) -> BitmapsBuilder {
        let wanted = |(_, column): &(usize, &SegmentColumn)| asked.contains(&column.id) && are_possible(column);
        let columns = schema.columns.iter().enumerate().filter(wanted);
        let column = |(at, _)| ColumnBuilder { at, groups: Some(Vec::new()), held_bytes: 0 };
        BitmapsBuilder { columns: columns.map(column).collect() }
    }

    /// Adds the next row group.
    pub fn add(&mut self, schema: &SegmentSchema, pieces: &[Vec<ArrayRef>]) {
        for column in &mut self.columns {
            let Some(groups) = &mut column.groups else { continue };
            match Group::of(&schema.columns[column.at], &pieces[column.at]) {
                Some(group) => {
                    column.held_bytes += group.held_bytes();
                    groups.push(group);
                }
                None => column.give_up(),
            }
        }
        while self.columns.iter().map(|column| column.held_bytes).sum::<usize>() > HELD_BYTES_MAX
            && let Some(largest) = self.columns.iter_mut().max_by_key(|column| column.held_bytes)
        {
            largest.give_up();
        }
    }

    /// Writes them, and a section per column.
    pub fn finish(self, schema: &SegmentSchema, sink: &mut FileSink) -> Result<Vec<Section>> {
        let mut sections = Vec::with_capacity(self.columns.len());
        for column in self.columns {
            let directory = column.groups.map(|groups| write(&groups, sink)).transpose()?.flatten();
            let mut place = vec![u8::from(directory.is_some())];
            directory.iter().for_each(|extent| extent.put(&mut place));
            let section = Section::write(sink, SECTION_BITMAPS, 1, &[], place)?;
            sections.push(section.of_column(schema.columns[column.at].id.0));
        }
        Ok(sections)
    }
}

impl ColumnBuilder {
    fn give_up(&mut self) {
        (self.groups, self.held_bytes) = (None, 0);
    }
}

impl Group {
    /// `None`: its values are too long.
    fn of(column: &SegmentColumn, pieces: &[ArrayRef]) -> Option<Group> {
        let valid = validity(pieces);
        let valid = valid.as_ref();
        Some(match Values::gather(column.ty, pieces) {
            Values::Ints(mut ints) => {
                if let Some(order) = float_order(column.ty) {
                    ints.iter_mut().for_each(|bits| *bits = order(*bits));
                }
                Group::listed(&ints, valid, Distinct::Ints)
            }
            Values::Wide(wide) => {
                let wide: Vec<[u8; 16]> = wide.into_iter().map(wide_order).collect();
                Group::listed(&wide, valid, Distinct::strings)
            }
            Values::Fixed16(fixed) => Group::listed(&fixed, valid, Distinct::strings),
            Values::Strings(strings) => {
                let comparable = |value| comparable(column.order, value).expect("only such columns have bitmaps");
                let strings: Vec<&[u8]> = strings.into_iter().map(comparable).collect();
                let is_value = |(row, _): &(usize, &&[u8])| valid.is_none_or(|valid| valid.value(*row));
                let longest = strings.iter().enumerate().filter(is_value).map(|(_, value)| value.len()).max();
                if longest.is_some_and(|longest| longest > VALUE_LEN_MAX) {
                    return None;
                }
                let group = Group::listed(&strings, valid, Distinct::strings);
                return Some(group).filter(Group::is_short);
            }
        })
    }

    fn listed<T: Copy + Ord + Hash>(
        values: &[T],
        valid: Option<&BooleanBuffer>,
        keep: impl FnOnce(Vec<T>) -> Distinct,
    ) -> Group {
        let (distinct, ranks) = ranks(values, valid);
        let mut ends = vec![0u32; distinct.len() + 1];
        ranks.iter().for_each(|rank| ends[*rank as usize] += 1);
        let mut next: Vec<u32> = Vec::with_capacity(ends.len());
        let mut end = 0;
        for count in &mut ends {
            next.push(end);
            end += *count;
            *count = end;
        }
        let mut rows = vec![0u16; ranks.len()];
        for (row, rank) in ranks.iter().enumerate() {
            let place = &mut next[*rank as usize];
            rows[*place as usize] = row as u16;
            *place += 1;
        }
        Group { values: keep(distinct), ends, rows }
    }

    fn held_bytes(&self) -> usize {
        let values = match &self.values {
            Distinct::Ints(ints) => size_of_val(ints.as_slice()),
            Distinct::Strings(strings) => strings.iter().map(|string| string.len() + 2 * size_of::<Box<[u8]>>()).sum(),
        };
        // Each value has a place when all are put in order.
        values
            + self.ends.len() * (size_of::<u32>() + size_of::<(&[u8], u32, u32)>())
            + size_of_val(self.rows.as_slice())
    }

    fn is_short(&self) -> bool {
        match &self.values {
            Distinct::Ints(_) => true,
            Distinct::Strings(strings) => {
                let bytes: usize = strings.iter().map(|string| string.len()).sum();
                bytes <= strings.len() * VALUE_LEN_MEAN_MAX
            }
        }
    }

    fn strings(&self) -> Vec<&[u8]> {
        match &self.values {
            Distinct::Strings(strings) => strings.iter().map(|string| &**string).collect(),
            Distinct::Ints(_) => Vec::new(),
        }
    }

    fn ints(&self) -> Vec<i64> {
        match &self.values {
            Distinct::Ints(ints) => ints.clone(),
            Distinct::Strings(_) => Vec::new(),
        }
    }

    /// The rows of a value; behind the last value, those without one.
    fn rows(&self, value: usize) -> &[u16] {
        let from = value.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[from as usize..self.ends[value] as usize]
    }
}

impl Distinct {
    fn strings<T: AsRef<[u8]>>(values: Vec<T>) -> Distinct {
        Distinct::Strings(values.into_iter().map(|value| value.as_ref().into()).collect())
    }
}

/// The different values in ascending order, and for each row the place of its own among them; that of nulls is behind them.
fn ranks<T: Copy + Ord + Hash>(rows: &[T], valid: Option<&BooleanBuffer>) -> (Vec<T>, Vec<u32>) {
    let is_null = |row: usize| valid.is_some_and(|valid| !valid.value(row));
    let mut known: HashMap<T, u32> = HashMap::new();
    let mut seen: Vec<T> = Vec::new();
    let mut ranks: Vec<u32> = Vec::with_capacity(rows.len());
    for (row, value) in rows.iter().enumerate() {
        ranks.push(match is_null(row) {
            true => u32::MAX,
            false => *known.entry(*value).or_insert_with(|| {
                seen.push(*value);
                seen.len() as u32 - 1
            }),
        });
    }
    let mut order: Vec<u32> = (0..seen.len() as u32).collect();
    order.sort_unstable_by_key(|id| seen[*id as usize]);
    let mut rank_of = vec![0; seen.len()];
    order.iter().enumerate().for_each(|(rank, id)| rank_of[*id as usize] = rank as u32);
    for rank in &mut ranks {
        *rank = rank_of.get(*rank as usize).copied().unwrap_or(seen.len() as u32);
    }
    (order.into_iter().map(|id| seen[id as usize]).collect(), ranks)
}

/// Writes the pages of a column and their directory. `None`: there would be too many pages.
fn write(groups: &[Group], sink: &mut FileSink) -> Result<Option<Extent>> {
    let mut pages = Pages::default();
    let mut fences = Vec::new();
    let kind = match groups.first().map(|group| &group.values) {
        Some(Distinct::Strings(_)) => {
            let encode = |strings: &Vec<&[u8]>, out: &mut Vec<u8>| encode_plain_strings(strings, out);
            let firsts = pages.write(groups, Group::strings, |string: &&[u8]| string.len(), encode, sink)?;
            encode_plain_strings(&firsts, &mut fences);
            SharedKind::Strings
        }
        _ => {
            let encode = |ints: &Vec<i64>, out: &mut Vec<u8>| encode_ints(ints, out);
            let firsts = pages.write(groups, Group::ints, |_: &i64| size_of::<i64>(), encode, sink)?;
            encode_ints(&firsts, &mut fences);
            SharedKind::Ints
        }
    };
    if pages.count > COUNT_MAX as usize {
        return Ok(None);
    }
    let nulls = (0..).zip(groups).flat_map(|(at, group)| ordinals(at, group.rows(group.ends.len() - 1)));
    let nulls: Vec<u32> = nulls.collect();
    let mut directory = Vec::new();
    varint::put(&mut directory, pages.count as u64);
    directory.append(&mut pages.entries);
    directory.push(u8::from(!nulls.is_empty()));
    if !nulls.is_empty() {
        let mut list = Vec::new();
        put_rows(&nulls, &mut list);
        write_block(sink, &list)?.put(&mut directory);
    }
    directory.push(kind as u8);
    directory.append(&mut fences);
    write_block(sink, &directory).map(Some)
}

fn ordinals(group: u32, rows: &[u16]) -> impl Iterator<Item = u32> {
    rows.iter().map(move |row| group * ROW_GROUP_ROWS + u32::from(*row))
}

/// What has been written of a column.
#[derive(Default)]
struct Pages {
    count: usize,
    /// Of each, as the directory has it.
    entries: Vec<u8>,
}

impl Pages {
    /// Writes all values of all row groups, with their rows; the first value of each page.
    fn write<'g, T: Copy + Ord>(
        &mut self,
        groups: &'g [Group],
        of: impl Fn(&'g Group) -> Vec<T>,
        size: impl Fn(&T) -> usize,
        encode: impl Fn(&Vec<T>, &mut Vec<u8>),
        sink: &mut FileSink,
    ) -> Result<Vec<T>> {
        let mut all: Vec<(T, u32, u32)> = Vec::new();
        for (at, group) in (0..).zip(groups) {
            all.extend((0..).zip(of(group)).map(|(value, own)| (own, at, value)));
        }
        all.sort_unstable();
        let (mut values, mut value_bytes, mut ends, mut lists, mut firsts) =
            (Vec::new(), 0, Vec::new(), Vec::new(), Vec::new());
        let mut same = all.chunk_by(|a, b| a.0 == b.0).peekable();
        while let Some(of_value) = same.next() {
            values.push(of_value[0].0);
            value_bytes += size(&of_value[0].0);
            put_list(groups, of_value.iter().map(|(_, group, value)| (*group, *value)), &mut lists);
            ends.push(lists.len() as i64);
            let is_full = values.len() >= PAGE_VALUES || value_bytes.max(lists.len()) >= PAGE_BYTES;
            if is_full || same.peek().is_none() {
                firsts.push(values[0]);
                let (mut values_block, mut lists_block) = (Vec::new(), Vec::new());
                encode(&values, &mut values_block);
                ints::encode(&ends, &mut lists_block);
                lists_block.append(&mut lists);
                varint::put(&mut self.entries, values.len() as u64);
                write_block(sink, &values_block)?.put(&mut self.entries);
                write_block(sink, &lists_block)?.put(&mut self.entries);
                self.count += 1;
                values.clear();
                ends.clear();
                value_bytes = 0;
            }
        }
        Ok(firsts)
    }
}

/// Appends the rows of a value, which is given with its place in each row group that has it.
fn put_list(groups: &[Group], places: impl Iterator<Item = (u32, u32)>, out: &mut Vec<u8>) {
    let rows = |(group, value): (u32, u32)| ordinals(group, groups[group as usize].rows(value as usize));
    put_rows(&places.flat_map(rows).collect::<Vec<u32>>(), out);
}

/// Appends a list of rows, which ascend, in the smaller form.
pub(super) fn put_rows(rows: &[u32], out: &mut Vec<u8>) {
    if let [only] = rows {
        return out.extend_from_slice(&only.to_le_bytes());
    }
    let from = out.len();
    out.push(PACKED);
    varint::put(out, rows.len() as u64);
    ints::encode(&rows.iter().map(|row| i64::from(*row)).collect::<Vec<i64>>(), out);
    // A list of four bytes is one row.
    let is_one = out.len() - from == super::ONE_BYTES;
    if rows.len() >= ROARING_ROWS_MIN || is_one {
        let mut bitmap = RoaringBitmap::from_sorted_iter(rows.iter().copied()).expect("rows ascend");
        bitmap.optimize();
        if bitmap.serialized_size() + 1 < out.len() - from || is_one {
            out.truncate(from);
            out.push(ROARING);
            bitmap.serialize_into(out).expect("memory takes all bytes");
        }
    }
}
