//! Columns of a row group, page by page, as engines compute on them.
//!
//! A [`ChunkReader`] knows which pages will be wanted, so that neighbours that the cache lacks come in one read. Pages whose
//! texts are codes are given as codes; a dictionary is decoded once for all pages, and a small one is kept with the
//! segment.

use super::PAGE_ROWS;
use super::column::{ColumnDecoder, decode_ints, pick_ints};
use super::directory::{PageEntry, page_rows};
use super::elements::{Elements, Wanted, all_null};
use super::page::{Page, PageValues, Validity};
use super::reader::Segment;
use super::zone::ZoneMap;
use crate::Result;
use crate::cache::CachedBlock;
use crate::encoding::dictionary::{Shared, SharedKind};
use crate::encoding::entries::{Chosen, Entries};
use crate::encoding::linear::Word;
use crate::encoding::search::Sought;
use crate::encoding::{Damage, Decoded, ints};
use arrow_array::{Array, ArrayRef, BinaryViewArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use basalt_types::automaton::Automaton;
use basalt_types::prefetch::prefetch;
use basalt_types::span::{Span, Verdict};
use basalt_types::text::LengthUnit;
use basalt_types::vector::{ArrayElements, Codes, IntValues, Ints, Vector, take_nulls};
use basalt_types::widest;
use basalt_types::{ColumnId, PhysType};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of pages that are read before they are asked for.
const AHEAD_BYTES_MAX: u64 = 1 << 20;

/// One column of one row group, whose pages are asked for in ascending order.
pub struct ChunkReader {
    row_group: usize,
    /// The column's place in the schema.
    at: usize,
    /// Pages that will be asked for.
    wanted: Vec<bool>,
    /// Number and block of pages, ascending.
    at_hand: VecDeque<(usize, Arc<CachedBlock>)>,
    shared: Option<Arc<Shared>>,
    dictionary: Option<Arc<BinaryViewArray>>,
    /// What is sought, over this chunk's symbols.
    sought: Sought,
    /// The same of this chunk's dictionary.
    entries: Entries,
    /// The page that was asked for last.
    last: Option<usize>,
    bytes_read: u64,
}

impl Segment {
    /// A column at some rows, counted inside the row group. `None` for a column that the file lacks: the caller fills in
    /// its default.
    ///
    /// # Panics
    /// If there is no such row group or row.
    pub fn chunk(&self, row_group: usize, column: ColumnId, rows: &[Range<u32>]) -> Result<Option<ChunkReader>> {
        let Some(at) = self.layout.position(column) else { return Ok(None) };
        let entry = &self.directory(row_group)?.chunks[at];
        let mut wanted = vec![false; entry.pages.len()];
        for rows in rows.iter().filter(|rows| !rows.is_empty()) {
            let pages = (rows.start / PAGE_ROWS) as usize..rows.end.div_ceil(PAGE_ROWS) as usize;
            wanted[pages].fill(true);
        }
        let shared = self.shared(entry)?;
        Ok(Some(ChunkReader {
            row_group,
            at,
            wanted,
            at_hand: VecDeque::new(),
            shared,
            dictionary: None,
            sought: Sought::default(),
            entries: Entries::default(),
            last: None,
            bytes_read: 0,
        }))
    }
}

impl Segment {
    /// Adds the least and the greatest value of each of the pages of some rows, in a column of integers; whether all are
    /// known, and no value is null.
    pub fn page_bounds(
        &self,
        row_group: usize,
        column: ColumnId,
        rows: &[Range<u32>],
        out: &mut Vec<(i64, i64)>,
    ) -> Result<bool> {
        let Some(at) = self.layout.position(column) else { return Ok(false) };
        if !self.chunk_type(at).is_integer() {
            return Ok(false);
        }
        let pages = &self.directory(row_group)?.chunks[at].pages;
        for rows in rows.iter().filter(|rows| !rows.is_empty()) {
            for page in &pages[(rows.start / PAGE_ROWS) as usize..rows.end.div_ceil(PAGE_ROWS) as usize] {
                match page.zone.int_bounds() {
                    Some(bounds) if page.zone.nulls == 0 => out.push(bounds),
                    _ => return Ok(false),
                }
            }
        }
        Ok(true)
    }
}

impl Segment {
    /// Begins to bring close to the processor what leads to the blocks of some columns at some rows of a row group.
    pub fn approach(&self, row_group: usize, columns: &[ColumnId], rows: &Range<u32>) -> Result<()> {
        let directory = self.directory(row_group)?;
        let pages = (rows.start / PAGE_ROWS) as usize..rows.end.div_ceil(PAGE_ROWS) as usize;
        for at in columns.iter().filter_map(|column| self.layout.position(*column)) {
            directory.chunks[at].pages[pages.clone()].iter().for_each(|page| page.slot.approach());
        }
        Ok(())
    }
}

impl ChunkReader {
    /// The values of a page; with `rows`, which ascend, of these alone.
    ///
    /// # Panics
    /// If `segment` is not the one that gave this, or there is no such page or row.
    pub fn vector(&mut self, segment: &Segment, page: usize, rows: Option<&[u32]>) -> Result<Vector> {
        let is_new = self.reach(segment, page)?;
        let PageEntry { extent, zone, .. } = &segment.directory(self.row_group)?.chunks[self.at].pages[page];
        let ty = segment.chunk_type(self.at);
        let count = page_rows(segment.layout.row_groups[self.row_group].rows, page as u32) as usize;
        let to_come = self.wanted[page..].iter().filter(|wanted| **wanted).count();
        let parsed = parsed(&self.at_hand, is_new, ty, count, self.shared.as_deref());
        let dictionary = &mut self.dictionary;
        let elements = self.shared.as_ref().and_then(|shared| shared.elements()).and_then(|(_, shared)| shared);
        if dictionary.is_none()
            && let Some(shared) = elements.filter(|shared| shared.kind == SharedKind::Strings)
            && rows.is_none_or(|rows| rows.len() * 4 * to_come >= shared.count)
        {
            // Whoever puts arrays together finds it as long as it is here.
            *dictionary = Some(segment.sound(extent.offset, shared.dictionary())?);
        }
        let vector = parsed.and_then(|page| values_of(ty, &page, rows, bounds(zone), (dictionary, to_come)));
        segment.sound(extent.offset, vector)
    }

    /// As what the elements of this chunk's arrays rest, if they lie side by side.
    pub fn elements_type(&self) -> Option<PhysType> {
        self.shared.as_ref().and_then(|shared| shared.elements()).map(|(ty, _)| ty)
    }

    /// The element at a place, counted from 0, of each row's array, null where there is none; with `rows`, which ascend, of
    /// these rows alone. `None` if elements do not lie side by side.
    ///
    /// # Panics
    /// If `segment` is not the one that gave this, or there is no such page or row.
    pub fn element(
        &mut self,
        segment: &Segment,
        page: usize,
        place: u32,
        rows: Option<&[u32]>,
    ) -> Result<Option<Vector>> {
        self.apart(segment, page, |mut arrays| {
            let many = rows.map_or(arrays.page.rows, <[u32]>::len);
            let wanted = match arrays.elements {
                Some(elements) => Wanted::at(place, &elements.counts()?, rows),
                None => None,
            };
            let Some(wanted) = wanted else { return Ok(all_null(arrays.element, many)) };
            let vector = arrays.values(Some(&wanted.places))?;
            Ok(match wanted.valid {
                Some(valid) => vector.with_nulls(&NullBuffer::new(valid)),
                None => vector,
            })
        })
    }

    /// How many elements each row's array has, none where there is no array; as above.
    ///
    /// # Panics
    /// As above.
    pub fn counts(&mut self, segment: &Segment, page: usize, rows: Option<&[u32]>) -> Result<Option<Ints>> {
        self.apart(segment, page, |arrays| {
            let counts = arrays.counts()?;
            let counts: ScalarBuffer<i32> = match rows {
                None => counts.into_iter().map(|count| count as i32).collect(),
                Some(rows) => rows.iter().map(|row| counts[*row as usize] as i32).collect(),
            };
            Ok(Ints::measured(IntValues::I32(counts), arrays.nulls(rows)))
        })
    }

    /// All elements of the arrays of some rows, which ascend, each once, or of all rows; as above.
    ///
    /// # Panics
    /// As above.
    pub fn elements(&mut self, segment: &Segment, page: usize, rows: Option<&[u32]>) -> Result<Option<ArrayElements>> {
        self.apart(segment, page, |mut arrays| {
            let (counts, nulls) = (arrays.counts()?, arrays.nulls(rows));
            let Some(rows) = rows else {
                return Ok(ArrayElements { counts, nulls, values: arrays.values(None)? });
            };
            let all = counts.iter().sum::<u32>() as usize;
            let (counts, places) = Wanted::of(&counts, rows);
            let values = match places.len() * 2 < all {
                true => arrays.values(Some(&places))?,
                false => arrays.values(None)?.take(&places),
            };
            Ok(ArrayElements { counts, nulls, values })
        })
    }

    /// What is made of a page of arrays whose elements lie side by side, if they do.
    fn apart<T>(
        &mut self,
        segment: &Segment,
        page: usize,
        make: impl FnOnce(Arrays<'_, '_>) -> Decoded<T>,
    ) -> Result<Option<T>> {
        let Some(element) = self.elements_type() else { return Ok(None) };
        let is_new = self.reach(segment, page)?;
        let count = page_rows(segment.layout.row_groups[self.row_group].rows, page as u32) as usize;
        let to_come = self.wanted[page..].iter().filter(|wanted| **wanted).count();
        let parsed = parsed(&self.at_hand, is_new, PhysType::Bytes, count, self.shared.as_deref());
        let dictionary = &mut self.dictionary;
        let made = parsed.and_then(|page| {
            let elements = if let PageValues::Elements(elements) = &page.values { Some(elements) } else { None };
            make(Arrays { page: &page, elements, element, dictionary, to_come })
        });
        let extent = segment.directory(self.row_group)?.chunks[self.at].pages[page].extent;
        segment.sound(extent.offset, made).map(Some)
    }

    /// How many texts the codes of this chunk stand for; `None` if it has no codes of texts.
    pub fn dictionary_len(&self) -> Option<usize> {
        self.shared.as_ref().filter(|shared| shared.kind == SharedKind::Strings).map(|shared| shared.count)
    }

    /// Clears the mask, a byte per row of the page, where the value is null or outside of the span, without decoding any;
    /// whether the page's form allows it.
    ///
    /// # Panics
    /// If `segment` is not the one that gave this, or there is no such page.
    pub fn test(&mut self, segment: &Segment, page: usize, span: Span, mask: &mut [u8]) -> Result<bool> {
        let ty = segment.chunk_type(self.at);
        let PageEntry { extent, zone, .. } = &segment.directory(self.row_group)?.chunks[self.at].pages[page];
        let rows = page_rows(segment.layout.row_groups[self.row_group].rows, page as u32) as usize;
        if !ty.is_integer() || mask.len() != rows {
            return Ok(false);
        }
        let verdict = bounds(zone).map_or(Verdict::Depends, |bounds| span.verdict(bounds));
        match verdict {
            Verdict::None => mask.fill(0),
            Verdict::All if zone.nulls == 0 => {}
            Verdict::All | Verdict::Depends => {
                let is_new = self.reach(segment, page)?;
                let parsed = parsed(&self.at_hand, is_new, ty, rows, self.shared.as_deref());
                let tested = parsed.and_then(|page| tested(&page, span, mask));
                if is_new && matches!(tested, Ok(false)) {
                    self.at_hand.get(1).into_iter().for_each(|(_, next)| prefetch(next));
                }
                return segment.sound(extent.offset, tested);
            }
        }
        Ok(true)
    }

    /// Clears the mask, a byte per row of the page, where the value is null or not in a set of texts, or is in it if that is
    /// `negated`, without decoding any; whether the page's form allows it.
    ///
    /// # Panics
    /// If `segment` is not the one that gave this, or there is no such page.
    pub fn search(
        &mut self,
        segment: &Segment,
        page: usize,
        (texts, negated): (&Arc<Automaton>, bool),
        mask: &mut [u8],
    ) -> Result<bool> {
        let ty = segment.chunk_type(self.at);
        let rows = page_rows(segment.layout.row_groups[self.row_group].rows, page as u32) as usize;
        let is_searched = match self.shared.as_deref() {
            None => true,
            Some(Shared { kind: SharedKind::Symbols, .. }) => true,
            // A few rows are not worth a look at all entries, nor at some if they tell where the others are.
            Some(Shared { kind: SharedKind::Strings, count, .. }) => {
                let worth = if texts.runs().is_some() { 64 } else { 4 };
                self.entries.knows(texts) || mask.iter().filter(|counts| **counts != 0).count() * worth >= *count
            }
            Some(_) => false,
        };
        if ty != PhysType::Bytes || mask.len() != rows || !is_searched {
            return Ok(false);
        }
        let is_new = self.reach(segment, page)?;
        let parsed = parsed(&self.at_hand, is_new, ty, rows, self.shared.as_deref());
        let searched = parsed.and_then(|page| match &page.values {
            PageValues::Strings(strings) => {
                clear_nulls(&page, mask);
                strings.search((texts, negated), &mut self.sought, mask)
            }
            PageValues::StringCodes(codes, shared) => match self.entries.of(texts, || Chosen::among(shared, texts))? {
                Some(entries) => {
                    clear_nulls(&page, mask);
                    entries.test(codes, negated, mask)?;
                    Ok(true)
                }
                None => Ok(false),
            },
            PageValues::None => {
                mask.fill(0);
                Ok(true)
            }
            _ => Ok(false),
        });
        let extent = segment.directory(self.row_group)?.chunks[self.at].pages[page].extent;
        segment.sound(extent.offset, searched)
    }

    /// How long the texts of a page are, without decoding any; with `rows`, which ascend, of these alone. `None` if the page
    /// has a form that does not tell, or few texts that come again and again.
    ///
    /// # Panics
    /// If `segment` is not the one that gave this, or there is no such page or row.
    pub fn lengths(
        &mut self,
        segment: &Segment,
        page: usize,
        unit: LengthUnit,
        rows: Option<&[u32]>,
    ) -> Result<Option<Ints>> {
        let ty = segment.chunk_type(self.at);
        if ty != PhysType::Bytes || self.dictionary_len().is_some() {
            return Ok(None);
        }
        let is_new = self.reach(segment, page)?;
        let count = page_rows(segment.layout.row_groups[self.row_group].rows, page as u32) as usize;
        let parsed = parsed(&self.at_hand, is_new, ty, count, self.shared.as_deref());
        let lengths = parsed.and_then(|page| {
            let PageValues::Strings(strings) = &page.values else { return Ok(None) };
            let mut lengths = Vec::new();
            if !strings.lengths(unit, rows, &mut lengths)? {
                return Ok(None);
            }
            let nulls = match rows {
                None => nulls(&page),
                Some(rows) => take_nulls(nulls(&page).as_ref(), rows),
            };
            Ok(Some(Ints::measured(IntValues::I32(lengths.into()), nulls)))
        });
        let extent = segment.directory(self.row_group)?.chunks[self.at].pages[page].extent;
        segment.sound(extent.offset, lengths)
    }

    /// Encoded, of the pages that were asked for.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Makes a page the first at hand; whether it was not so before. What the cache lacks is read with the wanted pages
    /// that follow.
    fn reach(&mut self, segment: &Segment, page: usize) -> Result<bool> {
        let is_new = self.last.replace(page) != Some(page);
        let pages = &segment.directory(self.row_group)?.chunks[self.at].pages;
        if is_new {
            self.bytes_read += u64::from(pages[page].extent.bytes);
        }
        while self.at_hand.front().is_some_and(|(at_hand, _)| *at_hand < page) {
            self.at_hand.pop_front();
        }
        if self.at_hand.front().is_some_and(|(at_hand, _)| *at_hand == page) {
            return Ok(is_new);
        }
        let (mut end, mut bytes) = (page + 1, u64::from(pages[page].extent.bytes));
        while self.wanted.get(end) == Some(&true) && bytes + u64::from(pages[end].extent.bytes) <= AHEAD_BYTES_MAX {
            bytes += u64::from(pages[end].extent.bytes);
            end += 1;
        }
        let extents: Vec<_> = pages[page..end].iter().map(|page| page.extent).collect();
        let slots: Vec<_> = pages[page..end].iter().map(|page| &page.slot).collect();
        let blocks = segment.file.blocks_of(&slots, &extents)?;
        prefetch(&blocks[0]);
        self.at_hand = (page..end).zip(blocks).collect();
        Ok(is_new)
    }
}

/// A page of arrays.
struct Arrays<'p, 'a> {
    page: &'p Page<'a>,
    /// `None` if no row has an array.
    elements: Option<&'p Elements<'a>>,
    element: PhysType,
    /// The chunk's, and pages that are still to come.
    dictionary: &'p mut Option<Arc<BinaryViewArray>>,
    to_come: usize,
}

impl Arrays<'_, '_> {
    fn counts(&self) -> Decoded<Vec<u32>> {
        self.elements.map_or(Ok(vec![0; self.page.rows]), Elements::counts)
    }

    fn nulls(&self, rows: Option<&[u32]>) -> Option<NullBuffer> {
        match rows {
            None => nulls(self.page),
            Some(rows) => take_nulls(nulls(self.page).as_ref(), rows),
        }
    }

    /// The elements, or those at some places, which ascend.
    fn values(&mut self, places: Option<&[u32]>) -> Decoded<Vector> {
        match self.elements {
            Some(elements) => values_of(self.element, &elements.page, places, None, (self.dictionary, self.to_come)),
            None => Ok(all_null(self.element, 0)),
        }
    }
}

/// The values of a page, or of some of its rows, which ascend; of codes with the chunk's dictionary, if it has been decoded,
/// and the number of pages that are still to come.
fn values_of(
    ty: PhysType,
    page: &Page<'_>,
    rows: Option<&[u32]>,
    bounds: Option<(i128, i128)>,
    (dictionary, to_come): (&mut Option<Arc<BinaryViewArray>>, usize),
) -> Decoded<Vector> {
    match &page.values {
        // A few strings of a large dictionary are decoded one by one, unless as many of each page to come are more.
        PageValues::StringCodes(codes, shared)
            if dictionary.is_some() || rows.is_none_or(|rows| rows.len() * 4 * to_come >= shared.count) =>
        {
            let dictionary = match dictionary {
                Some(dictionary) => dictionary.clone(),
                None => dictionary.insert(shared.dictionary()?).clone(),
            };
            let codes = texts(codes, page, dictionary)?;
            Ok(Vector::Codes(match rows {
                None => codes,
                Some(rows) => codes.take(rows),
            }))
        }
        PageValues::Ints(_) | PageValues::IntCodes(..) if ty.is_integer() => {
            integers(ty, page, rows, bounds).map(Vector::Ints)
        }
        _ => flat(ty, page, rows).map(Vector::measured),
    }
}

/// The first page at hand, and the second asked of memory if the first is looked at for the first time.
fn parsed<'a>(
    at_hand: &'a VecDeque<(usize, Arc<CachedBlock>)>,
    is_new: bool,
    ty: PhysType,
    rows: usize,
    shared: Option<&'a Shared>,
) -> Decoded<Page<'a>> {
    let mut page = Page::parse(&at_hand[0].1, ty, rows, shared)?;
    if let Some((_, next)) = at_hand.get(1).filter(|_| is_new) {
        page.followed_by(next);
    }
    Ok(page)
}

widest! {
    fn greatest(codes: &[u32]) -> u32 {
        let mut greatest = 0;
        for code in codes {
            greatest = greatest.max(*code);
        }
        greatest
    }
}

fn texts(codes: &ints::Ints<'_>, page: &Page<'_>, dictionary: Arc<BinaryViewArray>) -> Decoded<Codes> {
    let mut all = Vec::<u32>::with_capacity(page.rows);
    codes.decode(&mut all)?;
    if !all.is_empty() && greatest(&all) as usize >= dictionary.len() {
        return Err(Damage("a code beyond its dictionary"));
    }
    Ok(Codes { codes: all.into(), nulls: nulls(page), dictionary })
}

/// Of integers in up to 64 bits.
fn bounds(zone: &ZoneMap) -> Option<(i128, i128)> {
    zone.int_bounds().map(|(min, max)| (i128::from(min), i128::from(max)))
}

fn tested(page: &Page<'_>, span: Span, mask: &mut [u8]) -> Decoded<bool> {
    let done = match &page.values {
        PageValues::Ints(ints) => ints.test(span, mask)?,
        PageValues::IntCodes(codes, shared) => codes.test(shared.codes_within(span)?, mask)?,
        _ => false,
    };
    if done {
        clear_nulls(page, mask);
    }
    Ok(done)
}

fn clear_nulls(page: &Page<'_>, mask: &mut [u8]) {
    if let Validity::Bits(bits) = page.validity {
        mask.iter_mut().enumerate().for_each(|(row, mask)| *mask &= bits[row / 8] >> (row % 8) & 1);
    }
}

/// In 32 bits if the type or bounds allow. Slots of nulls lie within these, too ([`super::chunk`]).
fn integers(ty: PhysType, page: &Page<'_>, rows: Option<&[u32]>, bounds: Option<(i128, i128)>) -> Decoded<Ints> {
    let nulls = match rows {
        None => nulls(page),
        Some(rows) => take_nulls(nulls(page).as_ref(), rows),
    };
    let narrow = ty.fixed_width().is_some_and(|width| width <= 4);
    let narrow = narrow || bounds.is_some_and(|(min, max)| i32::try_from(min).is_ok() && i32::try_from(max).is_ok());
    let values = match narrow {
        true => IntValues::I32(ints_of::<i32>(page, rows)?.into()),
        false => IntValues::I64(ints_of::<i64>(page, rows)?.into()),
    };
    Ok(match bounds {
        Some((min, max)) => Ints { values, nulls, min, max },
        None => Ints::measured(values, nulls),
    })
}

fn ints_of<T: Word>(page: &Page<'_>, rows: Option<&[u32]>) -> Decoded<Vec<T>> {
    let mut values = Vec::with_capacity(rows.map_or(page.rows, <[u32]>::len));
    match rows {
        None => decode_ints(page, &mut values)?,
        Some(rows) => pick_ints(page, rows, &mut values)?,
    }
    Ok(values)
}

pub(super) fn flat(ty: PhysType, page: &Page<'_>, rows: Option<&[u32]>) -> Decoded<ArrayRef> {
    let mut decoder = ColumnDecoder::new(ty, rows.map_or(page.rows, <[u32]>::len));
    match rows {
        None => decoder.append_page(page)?,
        Some(rows) => decoder.append_rows(page, rows)?,
    }
    decoder.finish()
}

pub(super) fn nulls(page: &Page<'_>) -> Option<NullBuffer> {
    match page.validity {
        Validity::NoNulls => None,
        Validity::AllNull => Some(NullBuffer::new_null(page.rows)),
        Validity::Bits(bits) => Some(NullBuffer::new(BooleanBuffer::new(Buffer::from(bits), 0, page.rows))),
    }
}
