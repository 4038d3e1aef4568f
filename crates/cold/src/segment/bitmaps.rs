//! Bitmaps of columns: which rows of a row group hold which values (Krypton, section 6: equality and range bitmaps).
//!
//! A row group has, for each column that an index asks for, its different values in ascending order, and for each of
//! them the rows that hold it: their places, or a bit for each row where they are many. The rows of neighbours lie side
//! by side, so a range of values is one run of them. Conditions on such columns, and on several of them together, name
//! rows before anything of a column is read.
//!
//! What they say is exact: a row that they leave out does not satisfy the condition, and one that they leave does.

use super::values::{Values, validity};
use super::zone::comparable;
use super::{SegmentColumn, SegmentSchema};
use crate::Result;
use crate::cache::{CachedBlock, Slot};
use crate::encoding::dictionary::{Shared, SharedKind, encode_ints as put_ints, encode_strings as put_strings};
use crate::encoding::ints::{self, Ints};
use crate::encoding::{Damage, Decoded, first_where, take, take_array};
use crate::frame::{Extent, FramedFile, SECTION_BITMAPS, Section, write_block};
use crate::store::FileSink;
use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer};
use basalt_types::{ColumnId, ColumnPredicate, CompareOp, Datum, PhysType};
use hashbrown::HashMap;
use std::cmp::Ordering;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

/// Places that take as much as a bit for each row.
const DENSE_UNITS: usize = 1 << 12;
/// Of a bit for each row.
const WORDS: usize = 1 << 10;
/// A row group whose different values take more has no bitmaps of the column.
const VALUE_BYTES_MAX: usize = 8 << 20;
/// Values of a list that are looked for.
const VALUES_MAX: usize = 1024;
/// A column of which more than one row in so many may be wanted is left to its condition: to find them costs about as
/// much as to ask it.
const ROWS_SHARE_OF_COLUMN: usize = 2;
/// Likewise of all columns together.
const ROWS_SHARE: usize = 4;

/// Whether a column's values have an order that its bytes tell.
pub(super) fn are_possible(column: &SegmentColumn) -> bool {
    column.order.has_bounds() && column.id != super::HIDDEN_KEY
}

/// Collects what a file's sections say. Values and lists follow their row group's pages.
pub(super) struct BitmapsBuilder {
    columns: Vec<ColumnBuilder>,
}

struct ColumnBuilder {
    /// Its place in the schema.
    at: usize,
    /// Of all row groups so far.
    parts: Vec<u8>,
}

impl BitmapsBuilder {
    pub fn new(schema: &SegmentSchema, asked: &[ColumnId]) -> BitmapsBuilder {
        let wanted = |(_, column): &(usize, &SegmentColumn)| asked.contains(&column.id) && are_possible(column);
        let columns = schema.columns.iter().enumerate().filter(wanted);
        BitmapsBuilder { columns: columns.map(|(at, _)| ColumnBuilder { at, parts: Vec::new() }).collect() }
    }

    /// Writes those of the row group whose pages have just been written.
    pub fn add(&mut self, schema: &SegmentSchema, pieces: &[Vec<ArrayRef>], sink: &mut FileSink) -> Result<()> {
        for column in &mut self.columns {
            let Some(built) = Built::of(&schema.columns[column.at], &pieces[column.at]) else {
                column.parts.push(0);
                continue;
            };
            column.parts.push(built.kind as u8);
            write_block(sink, &built.values)?.put(&mut column.parts);
            write_block(sink, &built.lists)?.put(&mut column.parts);
        }
        Ok(())
    }

    /// A section per column.
    pub fn finish(self, schema: &SegmentSchema, sink: &mut FileSink) -> Result<Vec<Section>> {
        let write = |column: ColumnBuilder| {
            let section = Section::write(sink, SECTION_BITMAPS, 1, &[], column.parts)?;
            Ok(section.of_column(schema.columns[column.at].id.0))
        };
        self.columns.into_iter().map(write).collect()
    }
}

struct Built {
    kind: SharedKind,
    values: Vec<u8>,
    lists: Vec<u8>,
}

impl Built {
    fn of(column: &SegmentColumn, pieces: &[ArrayRef]) -> Option<Built> {
        let valid = validity(pieces);
        let valid = valid.as_ref();
        let mut values = Vec::new();
        let (kind, lists) = match Values::gather(column.ty, pieces) {
            Values::Ints(mut ints) => {
                if let Some(order) = float_order(column.ty) {
                    ints.iter_mut().for_each(|bits| *bits = order(*bits));
                }
                let (distinct, ranks) = ranks(&ints, valid);
                put_ints(&distinct, &mut values);
                (SharedKind::Ints, lists(&ranks, distinct.len()))
            }
            Values::Wide(wide) => {
                let wide: Vec<[u8; 16]> = wide.into_iter().map(wide_order).collect();
                Built::strings(&wide, valid, &mut values)?
            }
            Values::Fixed16(fixed) => Built::strings(&fixed, valid, &mut values)?,
            Values::Strings(strings) => {
                let comparable = |value| comparable(column.order, value).expect("only such columns have bitmaps");
                let strings: Vec<&[u8]> = strings.into_iter().map(comparable).collect();
                Built::strings(&strings, valid, &mut values)?
            }
        };
        Some(Built { kind, values, lists })
    }

    fn strings<T: AsRef<[u8]> + Copy + Ord + Hash>(
        rows: &[T],
        valid: Option<&BooleanBuffer>,
        values: &mut Vec<u8>,
    ) -> Option<(SharedKind, Vec<u8>)> {
        let (distinct, ranks) = ranks(rows, valid);
        let distinct: Vec<&[u8]> = distinct.iter().map(AsRef::as_ref).collect();
        if distinct.iter().map(|value| value.len()).sum::<usize>() > VALUE_BYTES_MAX {
            return None;
        }
        put_strings(&distinct, values);
        Some((SharedKind::Strings, lists(&ranks, distinct.len())))
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

/// Which rows have each of so many values, and which are null.
fn lists(ranks: &[u32], values: usize) -> Vec<u8> {
    let mut starts = vec![0usize; values + 2];
    ranks.iter().for_each(|rank| starts[*rank as usize + 1] += 1);
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut rows = vec![0u16; ranks.len()];
    let mut next = starts.clone();
    for (row, rank) in ranks.iter().enumerate() {
        let place = &mut next[*rank as usize];
        rows[*place] = row as u16;
        *place += 1;
    }
    let (mut dense, mut ends, mut content, mut end) = (Vec::new(), Vec::with_capacity(values + 1), Vec::new(), 0);
    for (value, range) in starts.windows(2).map(|ends| ends[0]..ends[1]).enumerate() {
        let of_value = &rows[range];
        if of_value.len() < DENSE_UNITS {
            of_value.iter().for_each(|row| content.extend_from_slice(&row.to_le_bytes()));
            end += of_value.len();
        } else {
            let mut words = [0u64; WORDS];
            of_value.iter().for_each(|row| set(&mut words, *row));
            words.iter().for_each(|word| content.extend_from_slice(&word.to_le_bytes()));
            end += DENSE_UNITS;
            dense.push(value as u32);
        }
        ends.push(end as i64);
    }
    let mut out = vec![dense.len() as u8];
    dense.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
    ints::encode(&ends, &mut out);
    out.append(&mut content);
    out
}

fn set(words: &mut [u64], row: u16) {
    words[usize::from(row >> 6)] |= 1 << (row & 63);
}

/// The order of floats by their bits as that of integers: -0 is 0, and there is one NaN, which is greatest.
fn float_order(ty: PhysType) -> Option<fn(i64) -> i64> {
    match ty {
        PhysType::F32 => Some(|bits| order_of_double(f64::from(f32::from_bits(bits as u32)))),
        PhysType::F64 => Some(|bits| order_of_double(f64::from_bits(bits as u64))),
        _ => None,
    }
}

fn order_of_double(value: f64) -> i64 {
    let canonical = match value {
        _ if value.is_nan() => f64::NAN.abs(),
        _ if value == 0.0 => 0.0,
        value => value,
    };
    let bits = canonical.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The order of wide integers as that of bytes.
fn wide_order(value: i128) -> [u8; 16] {
    (value as u128 ^ 1 << 127).to_be_bytes()
}

/// A constant as values are kept.
enum Key {
    Int(i64),
    Bytes(Vec<u8>),
}

/// `None` if it is not one of the column's values.
fn key_of(column: &SegmentColumn, value: &Datum) -> Option<Key> {
    Some(match (column.ty, value) {
        (PhysType::Bool, Datum::Bool(value)) => Key::Int(i64::from(*value)),
        (PhysType::I16, Datum::I16(value)) => Key::Int(i64::from(*value)),
        (PhysType::I32, Datum::I32(value)) => Key::Int(i64::from(*value)),
        (PhysType::I64, Datum::I64(value)) => Key::Int(*value),
        (PhysType::F32, Datum::F32(value)) => Key::Int(order_of_double(f64::from(*value))),
        (PhysType::F64, Datum::F64(value)) => Key::Int(order_of_double(*value)),
        (PhysType::I128, Datum::I128(value)) => Key::Bytes(wide_order(*value).to_vec()),
        (PhysType::Fixed16, Datum::Fixed16(value)) => Key::Bytes(value.to_vec()),
        (PhysType::Bytes, Datum::Bytes(value)) => Key::Bytes(comparable(column.order, value)?.to_vec()),
        _ => return None,
    })
}

/// The rows of a row group that satisfy predicates.
#[derive(Clone, Debug)]
pub struct ChosenRows {
    pub rows: BooleanBuffer,
    /// How many they are.
    pub count: usize,
    /// Of each predicate, whether the rows are those that satisfy it. Others have not been asked.
    pub told: Arc<[bool]>,
}

/// The bitmaps of one column of an open file.
pub(super) struct Bitmaps {
    column: SegmentColumn,
    /// By row group; `None` where it has none.
    parts: Vec<Option<Part>>,
}

struct Part {
    kind: SharedKind,
    values: (Extent, Slot<CachedBlock>),
    lists: (Extent, Slot<CachedBlock>),
}

impl Bitmaps {
    /// Those of a file. Of columns that the file lacks there are none.
    pub fn all(sections: &[Section], schema: &SegmentSchema, row_groups: usize) -> Decoded<Vec<Bitmaps>> {
        let known = sections.iter().filter(|section| section.kind == SECTION_BITMAPS);
        let with_column = known.filter_map(|section| {
            let column = schema.columns.iter().find(|column| column.id.0 == section.column)?;
            Some((section, *column))
        });
        with_column.map(|(section, column)| Bitmaps::new(section, column, row_groups)).collect()
    }

    fn new(section: &Section, column: SegmentColumn, row_groups: usize) -> Decoded<Bitmaps> {
        const WHAT: &str = "places of a column's bitmaps";
        let mut rest = section.extra.as_slice();
        let mut parts = Vec::with_capacity(row_groups);
        for _ in 0..row_groups {
            let [kind] = take_array(&mut rest, WHAT)?;
            parts.push(match SharedKind::from_u8(kind) {
                None if kind == 0 => None,
                Some(kind @ (SharedKind::Ints | SharedKind::Strings)) => {
                    let (values, lists) = (Extent::take(&mut rest)?, Extent::take(&mut rest)?);
                    Some(Part { kind, values: (values, Slot::default()), lists: (lists, Slot::default()) })
                }
                _ => return Err(Damage("unknown kind of bitmaps")),
            });
        }
        if rest.is_empty() { Ok(Bitmaps { column, parts }) } else { Err(Damage(WHAT)) }
    }

    pub fn column(&self) -> ColumnId {
        self.column.id
    }

    /// The rows of a row group that satisfy those of the predicates that are about this column and its values; `None` if
    /// they are too many, or nothing is known.
    fn rows(&self, file: &FramedFile, (row_group, rows): (usize, u32), wanted: &Wanted) -> Result<Option<RowSet>> {
        let Some(part) = self.parts[row_group].as_ref().filter(|_| !wanted.told.is_empty()) else { return Ok(None) };
        let (values_at, lists_at) = (part.values.0, part.lists.0);
        let values = file.block_of(&part.values.1, values_at)?;
        let values = Shared::parse(part.kind, values.bytes().clone());
        let values = values.map_err(|damage| file.damaged(values_at.offset, damage))?;
        let places = wanted.places(&values).map_err(|damage| file.damaged(values_at.offset, damage))?;
        let lists = file.block_of(&part.lists.1, lists_at)?;
        let found = Lists::parse(&lists, values.count).and_then(|lists| lists.rows(&places, rows));
        found.map_err(|damage| file.damaged(lists_at.offset, damage))
    }

    /// Reads all of them past the cache.
    pub fn verify(&self, file: &FramedFile, rows: impl Fn(usize) -> u32) -> Result<()> {
        for (row_group, part) in self.parts.iter().enumerate() {
            let Some(part) = part else { continue };
            let (values_at, lists_at) = (part.values.0, part.lists.0);
            let values = Shared::parse(part.kind, file.read_checked(values_at)?);
            let values = values.and_then(|values| Ok((values.count, is_ascending(&values)?)));
            let (count, ascending) = values.map_err(|damage| file.damaged(values_at.offset, damage))?;
            if !ascending {
                return Err(file.damaged(values_at.offset, Damage("values of bitmaps out of order")));
            }
            let lists = file.read_checked(lists_at)?;
            let checked = Lists::parse(&lists, count).and_then(|lists| lists.check(rows(row_group)));
            checked.map_err(|damage| file.damaged(lists_at.offset, damage))?;
        }
        Ok(())
    }
}

fn is_ascending(values: &Shared) -> Decoded<bool> {
    match values.kind {
        SharedKind::Ints => {
            let ints = values.ints()?;
            Ok((1..values.count).all(|at| ints.get(at - 1) < ints.get(at)))
        }
        _ => {
            let strings = values.strings()?;
            let mut ascending = true;
            for at in 1..values.count {
                ascending &= strings.get(at - 1)? < strings.get(at)?;
            }
            Ok(ascending)
        }
    }
}

/// The rows of a row group that satisfy predicates over the columns that are given, by the bitmaps of these.
/// `None`: too many to be worth it, or nothing is known.
pub(super) fn chosen(
    bitmaps: &[Bitmaps],
    file: &FramedFile,
    (row_group, rows): (usize, u32),
    predicates: &[ColumnPredicate],
    columns: &[ColumnId],
) -> Result<Option<ChosenRows>> {
    let mut told = vec![false; predicates.len()];
    let mut all: Option<RowSet> = None;
    for of_column in bitmaps.iter().filter(|bitmaps| columns.contains(&bitmaps.column())) {
        let wanted = Wanted::of(&of_column.column, predicates);
        let Some(own) = of_column.rows(file, (row_group, rows), &wanted)? else { continue };
        wanted.told.iter().for_each(|at| told[*at] = true);
        match &mut all {
            None => all = Some(own),
            Some(all) => all.retain(&own),
        }
    }
    let Some(all) = all.filter(|all| all.count <= rows as usize / ROWS_SHARE) else { return Ok(None) };
    let (count, words) = (all.count, Buffer::from_vec(all.words));
    Ok(Some(ChosenRows { rows: BooleanBuffer::new(words, 0, rows as usize), count, told: told.into() }))
}

/// Rows of a row group.
struct RowSet {
    /// A bit for each.
    words: Vec<u64>,
    count: usize,
}

impl RowSet {
    /// Leaves those that are also in the other.
    fn retain(&mut self, other: &RowSet) {
        self.count = 0;
        for (own, other) in self.words.iter_mut().zip(&other.words) {
            *own &= other;
            self.count += own.count_ones() as usize;
        }
    }
}

/// What predicates over one column ask for.
#[derive(Default)]
struct Wanted {
    /// The predicates that it is made of.
    told: Vec<usize>,
    /// Null alone.
    null: bool,
    /// Of values, at least, and at most; whether these belong to it.
    least: Vec<(Key, bool)>,
    most: Vec<(Key, bool)>,
    /// Each list is one of which the value has to be.
    among: Vec<Vec<Key>>,
}

impl Wanted {
    fn of(column: &SegmentColumn, predicates: &[ColumnPredicate]) -> Wanted {
        let mut wanted = Wanted::default();
        let own = predicates.iter().enumerate().filter(|(_, predicate)| predicate.column() == column.id);
        for (at, predicate) in own {
            let is_told = match predicate {
                ColumnPredicate::IsNull { .. } => {
                    wanted.null = true;
                    true
                }
                ColumnPredicate::IsNotNull { .. } => false,
                ColumnPredicate::Compare { op, value, .. } => {
                    key_of(column, value).is_some_and(|key| wanted.compare(*op, key))
                }
                ColumnPredicate::In { values, .. } => {
                    // Nothing equals a null.
                    let values = values.iter().filter(|value| !value.is_null());
                    wanted.among(values.map(|value| key_of(column, value)).take(VALUES_MAX + 1).collect())
                }
                ColumnPredicate::Among { values, .. } => {
                    let is_int = matches!(column.ty, PhysType::I16 | PhysType::I32 | PhysType::I64);
                    let keys = values.iter().map(|value| is_int.then_some(Key::Int(*value)));
                    wanted.among(keys.take(VALUES_MAX + 1).collect())
                }
            };
            wanted.told.extend(is_told.then_some(at));
        }
        wanted
    }

    /// Whether it is a matter of values' order.
    fn compare(&mut self, op: CompareOp, key: Key) -> bool {
        match op {
            CompareOp::Eq => self.among.push(vec![key]),
            CompareOp::Lt => self.most.push((key, false)),
            CompareOp::LtEq => self.most.push((key, true)),
            CompareOp::Gt => self.least.push((key, false)),
            CompareOp::GtEq => self.least.push((key, true)),
            CompareOp::NotEq => return false,
        }
        true
    }

    /// Whether they are known, and not too many.
    fn among(&mut self, keys: Option<Vec<Key>>) -> bool {
        let keys = keys.filter(|keys| keys.len() <= VALUES_MAX);
        let is_told = keys.is_some();
        self.among.extend(keys);
        is_told
    }

    /// Their places among a row group's values, in ascending ranges.
    fn places(&self, values: &Shared) -> Decoded<Vec<Range<usize>>> {
        let by_value = !self.least.is_empty() || !self.most.is_empty() || !self.among.is_empty();
        if self.null {
            let nulls = values.count..values.count + 1;
            return Ok(if by_value { Vec::new() } else { vec![nulls] });
        }
        let values = Ascending::of(values)?;
        let mut range = 0..values.count;
        for (key, including) in &self.least {
            range.start = range.start.max(values.first(key, !*including)?);
        }
        for (key, including) in &self.most {
            range.end = range.end.min(values.first(key, *including)?);
        }
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let Some((first, others)) = self.among.split_first() else { return Ok(vec![range]) };
        let places = |keys: &[Key]| -> Decoded<Vec<usize>> {
            let mut places = Vec::with_capacity(keys.len());
            for key in keys {
                let place = values.first(key, false)?;
                if place < values.count && values.compare(place, key)?.is_eq() {
                    places.push(place);
                }
            }
            places.sort_unstable();
            places.dedup();
            Ok(places)
        };
        let mut found = places(first)?;
        found.retain(|place| range.contains(place));
        for other in others {
            let other = places(other)?;
            found.retain(|place| other.binary_search(place).is_ok());
        }
        Ok(found.into_iter().map(|place| place..place + 1).collect())
    }
}

/// The values of a row group.
struct Ascending<'v> {
    count: usize,
    values: Form<'v>,
}

enum Form<'v> {
    Ints(Ints<'v>),
    Strings(crate::encoding::bytes::Strings<'v>),
}

impl<'v> Ascending<'v> {
    fn of(values: &'v Shared) -> Decoded<Ascending<'v>> {
        let form = match values.kind {
            SharedKind::Ints => Form::Ints(values.ints()?),
            _ => Form::Strings(values.strings()?),
        };
        Ok(Ascending { count: values.count, values: form })
    }

    fn compare(&self, place: usize, key: &Key) -> Decoded<Ordering> {
        match (&self.values, key) {
            (Form::Ints(ints), Key::Int(key)) => Ok(ints.get(place).cmp(key)),
            (Form::Strings(strings), Key::Bytes(key)) => Ok(strings.get(place)?.as_ref().cmp(key.as_slice())),
            _ => Err(Damage("bitmaps of another type than their column")),
        }
    }

    /// The first place of a value that is not below the key; or above it.
    fn first(&self, key: &Key, above: bool) -> Decoded<usize> {
        first_where(self.count, |place| {
            let order = self.compare(place, key)?;
            Ok(if above { order.is_gt() } else { order.is_ge() })
        })
    }
}

/// Which rows have which values.
struct Lists<'b> {
    values: usize,
    /// Values with a bit for each row, in ascending order.
    dense: Vec<usize>,
    /// Where each value's list ends, in units of two bytes. The last is that of nulls.
    ends: Ints<'b>,
    content: &'b [u8],
}

impl<'b> Lists<'b> {
    fn parse(mut input: &'b [u8], values: usize) -> Decoded<Lists<'b>> {
        const WHAT: &str = "rows of bitmaps";
        let [dense] = take_array(&mut input, WHAT)?;
        let dense = take(&mut input, usize::from(dense) * 4, WHAT)?.as_chunks::<4>().0;
        let dense = dense.iter().map(|value| u32::from_le_bytes(*value) as usize).collect();
        let ends = Ints::parse(&mut input, values + 1)?;
        Ok(Lists { values, dense, ends, content: input })
    }

    /// Where the lists of some values are, in units.
    fn units(&self, values: &Range<usize>) -> Decoded<Range<usize>> {
        let end = |values: usize| if values == 0 { 0 } else { self.ends.get(values - 1) };
        let (from, to) = (end(values.start), end(values.end));
        match usize::try_from(from).ok().zip(usize::try_from(to).ok()) {
            Some((from, to)) if from <= to && to <= self.content.len() / 2 => Ok(from..to),
            _ => Err(Damage("rows of bitmaps beyond their block")),
        }
    }

    /// The rows of the values at these places, unless they are too many.
    fn rows(&self, places: &[Range<usize>], rows: u32) -> Decoded<Option<RowSet>> {
        let most = rows as usize / ROWS_SHARE_OF_COLUMN;
        let mut found = RowSet { words: vec![0; WORDS], count: 0 };
        for range in places {
            let mut from = range.start;
            let first_dense = self.dense.partition_point(|value| *value < range.start);
            let dense = self.dense[first_dense..].iter().take_while(|value| **value < range.end);
            for end in dense.copied().chain([range.end]) {
                let listed = self.listed(from..end)?;
                found.count += listed.len();
                if found.count > most {
                    return Ok(None);
                }
                listed.iter().for_each(|row| set(&mut found.words, u16::from_le_bytes(*row)));
                if end < range.end {
                    found.count += self.add_dense(end, &mut found.words)?;
                }
                from = end + 1;
            }
        }
        let last = (rows as usize).div_ceil(64);
        let beyond = (last.max(1) - 1..WORDS).any(|at| found.words[at] & !bits_below(rows, at) != 0);
        match beyond {
            true => Err(Damage("bitmaps with rows beyond their row group")),
            false => Ok((found.count <= most).then_some(found)),
        }
    }

    /// The lists of values of which none has a bit for each row.
    fn listed(&self, values: Range<usize>) -> Decoded<&'b [[u8; 2]]> {
        let units = self.units(&values)?;
        Ok(&self.content.as_chunks().0[units])
    }

    /// How many rows have the value.
    fn add_dense(&self, value: usize, words: &mut [u64]) -> Decoded<usize> {
        let units = self.units(&(value..value + 1))?;
        let (own, rest) = self.content[units.start * 2..units.end * 2].as_chunks::<8>();
        if own.len() != WORDS || !rest.is_empty() {
            return Err(Damage("a bitmap of another size than its row group's"));
        }
        let mut count = 0;
        for (word, own) in words.iter_mut().zip(own) {
            let own = u64::from_le_bytes(*own);
            count += own.count_ones() as usize;
            *word |= own;
        }
        Ok(count)
    }

    /// Whether each row is in one list.
    fn check(&self, rows: u32) -> Decoded<()> {
        let mut all = [0u64; WORDS];
        let mut repeats = false;
        for value in 0..=self.values {
            if self.dense.contains(&value) {
                let mut own = [0u64; WORDS];
                self.add_dense(value, &mut own)?;
                repeats |= all.iter().zip(&own).any(|(all, own)| all & own != 0);
                all.iter_mut().zip(&own).for_each(|(all, own)| *all |= own);
                continue;
            }
            for row in self.listed(value..value + 1)? {
                let row = u16::from_le_bytes(*row);
                repeats |= all[usize::from(row >> 6)] >> (row & 63) & 1 != 0;
                set(&mut all, row);
            }
        }
        let whole = all.iter().enumerate().all(|(at, word)| *word == bits_below(rows, at));
        if whole && !repeats { Ok(()) } else { Err(Damage("bitmaps that miss or repeat rows")) }
    }
}

/// Of a word of so many rows' bits, those that are rows.
fn bits_below(rows: u32, word: usize) -> u64 {
    match (rows as usize).saturating_sub(word * 64) {
        0 => 0,
        left if left >= 64 => u64::MAX,
        left => (1 << left) - 1,
    }
}

#[cfg(test)]
mod tests;
