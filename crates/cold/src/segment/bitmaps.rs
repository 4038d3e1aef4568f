//! Bitmaps of columns: which rows of a file hold which values (Krypton, section 6: equality and range bitmaps).
//!
//! For each column that an index asks for, a file has the different values in ascending order, and for each of them the rows
//! that hold it, packed or as a Roaring bitmap, whichever is smaller. Values and rows come in pages, of which a search reads
//! one or two; the rows of neighbours lie side by side, so a range of values is one run of them. Conditions on such columns,
//! and on several of them together, name rows before anything of a column is read.
//!
//! What they say is exact: a row that they leave out does not satisfy the condition, and one that they leave does.

mod build;
mod wanted;

pub(super) use build::BitmapsBuilder;

use super::{SegmentColumn, SegmentSchema};
use crate::Result;
use crate::cache::{CachedBlock, Slot};
use crate::encoding::bytes::Strings;
use crate::encoding::dictionary::{Shared, SharedKind};
use crate::encoding::ints::Ints;
use crate::encoding::{Damage, Decoded, first_where, take_array};
use crate::frame::{Extent, FramedFile, SECTION_BITMAPS, Section, take_u32};
use arrow_buffer::{BooleanBuffer, Buffer};
use basalt_types::{ColumnId, ColumnPredicate};
use roaring::RoaringBitmap;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use wanted::{Key, Wanted};

/// Rows of the file for each byte of lists that are read for a column, beside others, and alone: more of them take as long
/// as to ask the condition of all rows.
const ROWS_PER_BYTE: usize = 24;
const ROWS_PER_BYTE_ALONE: usize = 96;
/// So many bytes of lists are read in any case.
const BUDGET_MIN: usize = 4 << 10;
/// What a list costs besides its bytes.
const LIST_COST: usize = 32;
/// Rows are named where no more than one in so many is wanted. Otherwise conditions find them as fast, where columns rest.
const ROWS_SHARE: usize = 128;

/// A list is one ordinal; or begins with what follows: ordinals as integers, or a Roaring bitmap in the portable format.
const ONE_BYTES: usize = 4;
const PACKED: u8 = 0;
const ROARING: u8 = 1;

/// Whether a column's values have an order that its bytes tell.
pub(super) fn are_possible(column: &SegmentColumn) -> bool {
    column.order.has_bounds() && column.id != super::HIDDEN_KEY
}

/// The rows of a file that satisfy predicates.
#[derive(Debug)]
pub struct ChosenRows {
    /// A bit for each row of the file.
    pub rows: BooleanBuffer,
    pub count: usize,
    /// Of each predicate, whether the rows are those that satisfy it. Others have not been asked.
    pub told: Arc<[bool]>,
}

/// The bitmaps of one column of an open file.
pub(super) struct Bitmaps {
    column: SegmentColumn,
    /// Where its directory is; `None` if its values were too large for one.
    at: Option<Extent>,
    directory: OnceLock<Directory>,
}

/// Where values and their rows are.
struct Directory {
    /// The first value of each page.
    fences: Shared,
    pages: Vec<Page>,
    /// The rows without a value.
    nulls: Option<Extent>,
}

struct Page {
    count: usize,
    values: (Extent, Slot<CachedBlock>),
    lists: (Extent, Slot<CachedBlock>),
}

/// A value's place: its page, and where it is there.
type Place = (usize, usize);

impl Bitmaps {
    /// Those of a file. Of columns that the file lacks there are none.
    pub fn all(sections: &[Section], schema: &SegmentSchema) -> Decoded<Vec<Bitmaps>> {
        let known = sections.iter().filter(|section| section.kind == SECTION_BITMAPS);
        let with_column = known.filter_map(|section| {
            let column = schema.columns.iter().find(|column| column.id.0 == section.column)?;
            Some((section, *column))
        });
        with_column.map(|(section, column)| Bitmaps::new(section, column)).collect()
    }

    fn new(section: &Section, column: SegmentColumn) -> Decoded<Bitmaps> {
        const WHAT: &str = "the place of a column's bitmaps";
        let mut rest = section.extra.as_slice();
        let at = match take_array(&mut rest, WHAT)? {
            [0] => None,
            [1] => Some(Extent::take(&mut rest)?),
            _ => return Err(Damage(WHAT)),
        };
        match rest.is_empty() {
            true => Ok(Bitmaps { column, at, directory: OnceLock::new() }),
            false => Err(Damage(WHAT)),
        }
    }

    pub fn column(&self) -> ColumnId {
        self.column.id
    }

    fn directory(&self, file: &FramedFile) -> Result<Option<&Directory>> {
        let Some(at) = self.at else { return Ok(None) };
        if let Some(directory) = self.directory.get() {
            return Ok(Some(directory));
        }
        let block = file.read_checked(at)?;
        let directory = Directory::parse(&block).map_err(|damage| file.damaged(at.offset, damage))?;
        Ok(Some(self.directory.get_or_init(|| directory)))
    }

    /// The rows that satisfy the predicates that are wanted; `None` if they are too many, or nothing is known.
    fn rows(&self, file: &FramedFile, rows: u32, wanted: &Wanted, mut budget: usize) -> Result<Option<RowSet>> {
        let Some(directory) = self.directory(file)? else { return Ok(None) };
        let mut found = RowSet::new(rows);
        if wanted.null {
            if let Some(nulls) = directory.nulls.filter(|_| !wanted.is_by_value()) {
                if nulls.bytes as usize > budget {
                    return Ok(None);
                }
                let block = file.block(nulls)?;
                add_list(&block, &mut found).map_err(|damage| file.damaged(nulls.offset, damage))?;
            }
            return Ok(Some(found));
        }
        let search = Search { directory, file };
        for range in search.places(wanted)? {
            if !search.add(range, &mut found, &mut budget)? {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Reads all of them past the cache.
    pub fn verify(&self, file: &FramedFile, rows: u32) -> Result<()> {
        let Some(directory) = self.directory(file)? else { return Ok(()) };
        let mut all = RowSet::new(rows);
        if let Some(nulls) = directory.nulls {
            let block = file.read_checked(nulls)?;
            add_list(&block, &mut all).map_err(|damage| file.damaged(nulls.offset, damage))?;
        }
        for (at, page) in directory.pages.iter().enumerate() {
            let (values_at, lists_at) = (page.values.0, page.lists.0);
            let values = Shared::parse(directory.fences.kind, file.read_checked(values_at)?);
            let sound = values.and_then(|values| {
                let (values, fences) = (Ascending::of(&values)?, Ascending::of(&directory.fences)?);
                let begins = values.count == page.count && values.is_equal(0, &fences, at)?;
                let goes_on =
                    begins && (at + 1 == fences.count || values.is_below(values.count - 1, &fences, at + 1)?);
                Ok(goes_on && values.is_ascending()?)
            });
            if !sound.map_err(|damage| file.damaged(values_at.offset, damage))? {
                return Err(file.damaged(values_at.offset, Damage("values of bitmaps out of order")));
            }
            let lists = file.read_checked(lists_at)?;
            let read = Lists::parse(&lists, page.count).and_then(|lists| {
                (0..page.count).try_for_each(|value| add_list(lists.bytes(value..value + 1)?, &mut all))
            });
            read.map_err(|damage| file.damaged(lists_at.offset, damage))?;
        }
        let different: usize = all.words.iter().map(|word| word.count_ones() as usize).sum();
        match all.count == rows as usize && different == all.count {
            true => Ok(()),
            false => Err(file.damaged(0, Damage("bitmaps that miss or repeat rows"))),
        }
    }
}

/// The rows of a file that satisfy predicates over the columns that are given, by the bitmaps of these. `None`: too many to
/// be worth it, or nothing is known.
pub(super) fn chosen(
    bitmaps: &[Bitmaps],
    file: &FramedFile,
    rows: u32,
    predicates: &[ColumnPredicate],
    columns: &[ColumnId],
) -> Result<Option<ChosenRows>> {
    let asked: Vec<(&Bitmaps, Wanted)> = bitmaps
        .iter()
        .filter(|bitmaps| columns.contains(&bitmaps.column()))
        .map(|bitmaps| (bitmaps, Wanted::of(&bitmaps.column, predicates)))
        .filter(|(_, wanted)| !wanted.told.is_empty())
        .collect();
    let budget = rows as usize / if asked.len() == 1 { ROWS_PER_BYTE_ALONE } else { ROWS_PER_BYTE } + BUDGET_MIN;
    let mut told = vec![false; predicates.len()];
    let mut all: Option<RowSet> = None;
    for (of_column, wanted) in asked {
        let Some(own) = of_column.rows(file, rows, &wanted, budget)? else { continue };
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

/// Rows of a file.
struct RowSet {
    /// A bit for each.
    words: Vec<u64>,
    count: usize,
    rows: u32,
    scratch: Vec<u32>,
}

impl RowSet {
    fn new(rows: u32) -> RowSet {
        RowSet { words: vec![0; rows.div_ceil(64) as usize], count: 0, rows, scratch: Vec::new() }
    }

    /// Adds rows, of which none is there yet.
    fn add(&mut self, ordinals: impl Iterator<Item = u32>) -> Decoded<()> {
        for ordinal in ordinals {
            if ordinal >= self.rows {
                return Err(Damage("bitmaps with rows beyond their file"));
            }
            self.words[ordinal as usize / 64] |= 1 << (ordinal % 64);
            self.count += 1;
        }
        Ok(())
    }

    /// Leaves those that are also in the other.
    fn retain(&mut self, other: &RowSet) {
        self.count = 0;
        for (own, other) in self.words.iter_mut().zip(&other.words) {
            *own &= other;
            self.count += own.count_ones() as usize;
        }
    }
}

/// Adds the rows of a list.
fn add_list(list: &[u8], found: &mut RowSet) -> Decoded<()> {
    const WHAT: &str = "a list of rows";
    if let Ok(one) = <[u8; ONE_BYTES]>::try_from(list) {
        return found.add(std::iter::once(u32::from_le_bytes(one)));
    }
    match list {
        [PACKED, rest @ ..] => {
            let mut rest = rest;
            let count = take_u32(&mut rest, WHAT)?;
            if count > found.rows {
                return Err(Damage(WHAT));
            }
            let ordinals = Ints::parse(&mut rest, count as usize)?;
            let mut scratch = std::mem::take(&mut found.scratch);
            scratch.clear();
            ordinals.decode(&mut scratch)?;
            found.add(scratch.iter().copied())?;
            found.scratch = scratch;
            if rest.is_empty() { Ok(()) } else { Err(Damage(WHAT)) }
        }
        [ROARING, bitmap @ ..] => found.add(RoaringBitmap::deserialize_from(bitmap).map_err(|_| Damage(WHAT))?.iter()),
        _ => Err(Damage(WHAT)),
    }
}

impl Directory {
    /// `pages varint | of each: values varint, two extents | 0, or 1 and the extent of nulls | kind u8 | fences`.
    fn parse(block: &bytes::Bytes) -> Decoded<Directory> {
        const WHAT: &str = "a directory of bitmaps";
        let mut rest = block.as_ref();
        let count = take_u32(&mut rest, WHAT)?;
        let mut pages = Vec::new();
        for _ in 0..count {
            let count = take_u32(&mut rest, WHAT)? as usize;
            let (values, lists) = (Extent::take(&mut rest)?, Extent::take(&mut rest)?);
            pages.push(Page { count, values: (values, Slot::default()), lists: (lists, Slot::default()) });
        }
        let nulls = match take_array(&mut rest, WHAT)? {
            [0] => None,
            [1] => Some(Extent::take(&mut rest)?),
            _ => return Err(Damage(WHAT)),
        };
        let [kind] = take_array(&mut rest, WHAT)?;
        let kind = SharedKind::from_u8(kind).filter(|kind| matches!(kind, SharedKind::Ints | SharedKind::Strings));
        let fences = Shared::parse(kind.ok_or(Damage(WHAT))?, block.slice(block.len() - rest.len()..))?;
        match fences.count == pages.len() && pages.iter().all(|page| page.count > 0) {
            true => Ok(Directory { fences, pages, nulls }),
            false => Err(Damage(WHAT)),
        }
    }
}

struct Search<'s> {
    directory: &'s Directory,
    file: &'s FramedFile,
}

impl Search<'_> {
    fn damaged(&self, offset: u64, damage: Damage) -> crate::Error {
        self.file.damaged(offset, damage)
    }

    /// Calls with the values of a page.
    fn with_values<T>(&self, page: usize, ask: impl FnOnce(&Ascending<'_>) -> Decoded<T>) -> Result<T> {
        let (at, slot) = &self.directory.pages[page].values;
        let block = self.file.block_of(slot, *at)?;
        let values = Shared::parse(self.directory.fences.kind, block.bytes().clone());
        let asked = values.and_then(|values| match values.count == self.directory.pages[page].count {
            true => ask(&Ascending::of(&values)?),
            false => Err(Damage("a page of bitmaps with another number of values")),
        });
        asked.map_err(|damage| self.damaged(at.offset, damage))
    }

    /// The first place of a value that is not below the key, or above it; whether the value is the key.
    fn first(&self, key: &Key, above: bool) -> Result<(Place, bool)> {
        let fences = Ascending::of(&self.directory.fences).map_err(|damage| self.damaged(0, damage))?;
        // The last page that begins no later.
        let behind = fences.first(key, true).map_err(|damage| self.damaged(0, damage))?;
        let Some(page) = behind.checked_sub(1) else { return Ok(((0, 0), false)) };
        let (at, is_key) = self.with_values(page, |values| {
            let at = values.first(key, above)?;
            Ok((at, at < values.count && values.compare(at, key)?.is_eq()))
        })?;
        Ok(((page, at), is_key))
    }

    /// Where the values are that are wanted, in ascending ranges.
    fn places(&self, wanted: &Wanted) -> Result<Vec<Range<Place>>> {
        let mut range = (0, 0)..(self.directory.pages.len(), 0);
        for (key, including) in &wanted.least {
            range.start = range.start.max(self.first(key, !*including)?.0);
        }
        for (key, including) in &wanted.most {
            range.end = range.end.min(self.first(key, *including)?.0);
        }
        if range.start >= range.end {
            return Ok(Vec::new());
        }
        let Some((first, others)) = wanted.among.split_first() else { return Ok(vec![range]) };
        let places = |keys: &[Key]| -> Result<Vec<Place>> {
            let mut places = Vec::with_capacity(keys.len());
            for key in keys {
                let (place, is_key) = self.first(key, false)?;
                places.extend(is_key.then_some(place));
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
        Ok(found.into_iter().map(|(page, at)| (page, at)..(page, at + 1)).collect())
    }

    /// Adds the rows of the values in a range; whether the lists of these are within the budget.
    fn add(&self, range: Range<Place>, found: &mut RowSet, budget: &mut usize) -> Result<bool> {
        let (first, last) = (range.start, range.end);
        let inner = self.directory.pages.get(first.0 + 1..last.0).unwrap_or_default();
        if inner.iter().map(|page| page.lists.0.bytes as usize).sum::<usize>() > *budget {
            return Ok(false);
        }
        for page in first.0..self.directory.pages.len().min(last.0 + 1) {
            let Page { count, lists: (at, slot), .. } = &self.directory.pages[page];
            let from = if page == first.0 { first.1 } else { 0 };
            let to = if page == last.0 { last.1 } else { *count };
            if from >= to {
                continue;
            }
            let block = self.file.block_of(slot, *at)?;
            let added = Lists::parse(&block, *count).and_then(|lists| {
                let bytes = lists.bytes(from..to)?.len();
                // Lists of one row cost little besides.
                let is_ones = bytes == ONE_BYTES * (to - from);
                let cost = bytes + if is_ones { bytes } else { LIST_COST * (to - from) };
                if cost > *budget {
                    return Ok(false);
                }
                *budget -= cost;
                (from..to).try_for_each(|value| add_list(lists.bytes(value..value + 1)?, found))?;
                Ok(true)
            });
            if !added.map_err(|damage| self.damaged(at.offset, damage))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Values that ascend.
struct Ascending<'v> {
    count: usize,
    values: Form<'v>,
}

enum Form<'v> {
    Ints(Ints<'v>),
    Strings(Strings<'v>),
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

    fn key(&self, place: usize) -> Decoded<Key> {
        Ok(match &self.values {
            Form::Ints(ints) => Key::Int(ints.get(place)),
            Form::Strings(strings) => Key::Bytes(strings.get(place)?.into_owned()),
        })
    }

    fn is_equal(&self, place: usize, other: &Ascending<'_>, at: usize) -> Decoded<bool> {
        Ok(self.compare(place, &other.key(at)?)?.is_eq())
    }

    fn is_below(&self, place: usize, other: &Ascending<'_>, at: usize) -> Decoded<bool> {
        Ok(self.compare(place, &other.key(at)?)?.is_lt())
    }

    fn is_ascending(&self) -> Decoded<bool> {
        let mut ascending = true;
        for place in 1..self.count {
            ascending &= self.is_below(place - 1, self, place)?;
        }
        Ok(ascending)
    }
}

/// The rows of a page's values.
struct Lists<'b> {
    /// Where each value's list ends.
    ends: Ints<'b>,
    content: &'b [u8],
}

impl<'b> Lists<'b> {
    fn parse(mut input: &'b [u8], values: usize) -> Decoded<Lists<'b>> {
        let ends = Ints::parse(&mut input, values)?;
        Ok(Lists { ends, content: input })
    }

    /// The lists of some values.
    fn bytes(&self, values: Range<usize>) -> Decoded<&'b [u8]> {
        let end = |values: usize| usize::try_from(if values == 0 { 0 } else { self.ends.get(values - 1) }).ok();
        let range = end(values.start).zip(end(values.end));
        range.and_then(|(from, to)| self.content.get(from..to)).ok_or(Damage("rows of bitmaps beyond their block"))
    }
}

#[cfg(test)]
mod tests;
