//! Encodes one column of one row group: chooses between a dictionary, symbols and plain values for the
//! chunk from samples, and the form of each page from its values.

use super::directory::{ChunkEntry, PageEntry, page_rows};
use super::elements::{self, Apart};
use super::values::{Values, fill_nulls, float_bits, validity};
use super::zone::ZoneMap;
use super::{PAGE_ROWS, SegmentColumn, sketches};
use crate::encoding::dictionary::{self, SharedKind};
use crate::encoding::{blocks, bytes, floats, fsst as symbols, ints};
use crate::frame::{Extent, write_block};
use crate::sketch::{Sketch, bytes_hash};
use crate::store::FileSink;
use crate::{Error, Result};
use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use basalt_types::PhysType;
use fsst::Compressor;
use hashbrown::{HashMap, HashTable};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Page flags.
pub(super) const HAS_NULLS: u8 = 1;
pub(super) const ALL_NULL: u8 = 2;
/// Forms of 16-byte values.
pub(super) const SIXTEEN_PLAIN: u8 = 0;
pub(super) const SIXTEEN_CONSTANT: u8 = 1;
pub(super) const SIXTEEN_NARROW: u8 = 2;

/// Chunks below this many string bytes are not worth a symbol table.
const SYMBOLS_BYTES_MIN: usize = 8 << 10;
const SAMPLE_STRINGS: usize = 256;
/// A table is kept for the next chunk while it compresses at most this much worse than when it was trained.
const REUSE_LOSS_MAX: f64 = 1.02;
/// Compression to more than this is not worth decoding.
const SYMBOLS_RATIO_MAX: f64 = 0.9;
const INT_DICTIONARY_MAX: usize = 1 << 12;
/// Of so many strings one is an entry, at most.
const REPEATED_MIN: usize = 2;
/// Strings after which a dictionary without enough repetition is given up.
const DICTIONARY_TRIAL: usize = 1 << 12;
/// The same as a part of all.
const DICTIONARY_TRIALS: usize = 16;
const DICTIONARY_BYTES_MAX: usize = 1 << 28;
/// Decoded strings of one page.
const PAGE_BYTES_MAX: u64 = 1 << 30;

/// The symbol table in use by consecutive chunks.
#[derive(Default)]
pub(super) struct Texts(Option<Trained>);

struct Trained {
    compressor: Compressor,
    /// Compressed to plain bytes when it was trained.
    ratio: f64,
    table: Vec<u8>,
}

impl Texts {
    /// The table for these strings: the previous chunk's while it does, else a new one. `None` if symbols do not pay.
    pub fn table_for(&mut self, values: &Vec<&[u8]>) -> Option<&[u8]> {
        let plain_bytes: usize = values.iter().map(|value| value.len()).sum();
        if plain_bytes < SYMBOLS_BYTES_MIN {
            return None;
        }
        let step = values.len().div_ceil(SAMPLE_STRINGS);
        let sample: Vec<&[u8]> = values.iter().step_by(step).copied().collect();
        let fits =
            |trained: &Trained| compression_ratio(&trained.compressor, &sample) <= trained.ratio * REUSE_LOSS_MAX;
        if !self.0.as_ref().is_some_and(fits) {
            let compressor = Compressor::train(values);
            let ratio = compression_ratio(&compressor, &sample);
            if ratio > SYMBOLS_RATIO_MAX {
                self.0 = None;
                return None;
            }
            let mut table = Vec::new();
            symbols::put_symbols(&compressor, &mut table);
            self.0 = Some(Trained { compressor, ratio, table });
        }
        self.0.as_ref().map(|trained| trained.table.as_slice())
    }

    /// Appends strings as symbols.
    ///
    /// # Panics
    /// Before a table was found for them.
    pub fn compress(&self, strings: &[&[u8]], out: &mut Vec<u8>) {
        let trained = self.0.as_ref().expect("strings are compressed by a table that was found for them");
        let (mut codes, mut ends) = (Vec::new(), Vec::new());
        trained.compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(strings, &mut codes, &mut ends);
        let decoded_bytes = strings.iter().map(|string| string.len()).sum();
        bytes::encode_compressed(decoded_bytes, &codes, &ends, out);
    }
}

/// Encodes the chunks of one column, one row group after the other.
pub(super) struct ChunkEncoder {
    column: SegmentColumn,
    texts: Texts,
    /// The shared block written last, so that an equal one is not written again.
    shared: Option<(SharedKind, Vec<u8>, Extent)>,
    /// Of all chunks so far, if the column has one.
    pub sketch: Option<Sketch>,
    /// Strings that repeat too seldom for a dictionary rest in blocks of zstd.
    blocks: bool,
}

impl ChunkEncoder {
    pub fn new(column: SegmentColumn, sketch: Option<Sketch>, blocks: bool) -> ChunkEncoder {
        ChunkEncoder { column, texts: Texts::default(), shared: None, sketch, blocks }
    }

    /// Writes shared block and pages. `pieces` hold the rows of the row group.
    pub fn encode(&mut self, pieces: &[ArrayRef], sink: &mut FileSink) -> Result<ChunkEntry> {
        let nulls = validity(pieces);
        match Values::gather(self.column.ty, pieces) {
            Values::Ints(values) => self.encode_ints(values, nulls, sink),
            Values::Wide(values) => {
                self.encode_fixed(values, nulls, sink, put_wide, |value: i128| bytes_hash(&value.to_le_bytes()))
            }
            Values::Fixed16(values) => {
                self.encode_fixed(values, nulls, sink, put_fixed16, |value: [u8; 16]| bytes_hash(&value))
            }
            Values::Strings(values) => self.encode_strings(values, nulls, sink),
        }
    }

    fn encode_ints(
        &mut self,
        mut values: Vec<i64>,
        nulls: Option<BooleanBuffer>,
        sink: &mut FileSink,
    ) -> Result<ChunkEntry> {
        let pages = Pages::new(&self.column, values.len(), nulls);
        pages.fill_nulls(&mut values);
        let zones = pages.zones(|zone, rows| zone.bound_ints(self.column.ty, &values[rows]));
        let floats = float_bits(self.column.ty).map(|bits| floats::Encoder::new(bits, &values));
        let encode = |values: &[i64], out: &mut Vec<u8>| match &floats {
            Some(floats) => floats.encode(values, out),
            None => ints::encode(values, out),
        };
        let dictionary = int_dictionary(self.column.ty, &values, encode);
        if let Some(sketch) = &mut self.sketch {
            match &dictionary {
                // Rows without a value refer to an entry, but for those of pages that have none.
                Some((dictionary, _)) if !zones.iter().any(ZoneMap::all_null) => {
                    sketches::add_int_entries(sketch, self.column.ty, dictionary);
                }
                _ => sketches::add_ints(sketch, self.column.ty, &values, &zones),
            }
        }
        let Some((dictionary, codes)) = dictionary else {
            return pages.write(sink, None, zones, |rows, out| encode(&values[rows], out));
        };
        let mut block = Vec::new();
        dictionary::encode_ints(&dictionary, &mut block);
        let shared = self.write_shared(SharedKind::Ints, block, sink)?;
        pages.write(sink, Some(shared), zones, |rows, out| ints::encode(&codes[rows], out))
    }

    fn encode_fixed<T: Copy + PartialEq>(
        &mut self,
        mut values: Vec<T>,
        nulls: Option<BooleanBuffer>,
        sink: &mut FileSink,
        put: fn(&[T], &mut Vec<u8>),
        hash: fn(T) -> u64,
    ) -> Result<ChunkEntry>
    where
        ZoneMap: BoundFixed<T>,
    {
        let pages = Pages::new(&self.column, values.len(), nulls);
        pages.fill_nulls(&mut values);
        let zones = pages.zones(|zone, rows| zone.bound_fixed(&values[rows]));
        if let Some(sketch) = &mut self.sketch {
            sketches::add_fixed(sketch, &values, &zones, hash);
        }
        pages.write(sink, None, zones, |rows, out| put(&values[rows], out))
    }

    fn encode_strings(
        &mut self,
        mut values: Vec<&[u8]>,
        nulls: Option<BooleanBuffer>,
        sink: &mut FileSink,
    ) -> Result<ChunkEntry> {
        let pages = Pages::new(&self.column, values.len(), nulls);
        pages.fill_nulls(&mut values);
        pages.check_bytes(&values, sink)?;
        let order = self.column.order;
        let dictionary = string_dictionary(&values, REPEATED_MIN);
        let apart = match self.column.elements {
            Some(element) if !self.blocks || element != PhysType::Bytes => self.taken_apart(&values, &pages, element),
            _ => None,
        };
        let dictionary = match &apart {
            Some(apart) => {
                dictionary.filter(|(entries, codes)| whole_bytes(entries, codes, &apart.fullest) <= apart.bytes)
            }
            None => dictionary,
        };
        if let Some((dictionary, codes)) = dictionary {
            let zones = pages.zones(|zone, rows| {
                let mut used: Vec<i64> = codes[rows].to_vec();
                used.sort_unstable();
                used.dedup();
                zone.bound_strings(order, used.into_iter().map(|code| dictionary[code as usize]));
            });
            match &mut self.sketch {
                Some(sketch) if zones.iter().any(ZoneMap::all_null) => {
                    sketches::add_strings(sketch, &self.column, &values, &zones);
                }
                Some(sketch) => sketches::add_entries(sketch, &self.column, &dictionary),
                None => {}
            }
            let mut block = Vec::new();
            dictionary::encode_strings(&dictionary, &mut block);
            let shared = self.write_shared(SharedKind::Strings, block, sink)?;
            return pages.write(sink, Some(shared), zones, |rows, out| ints::encode(&codes[rows], out));
        }
        let zones = pages.zones(|zone, rows| zone.bound_strings(order, values[rows].iter().copied()));
        if let Some(sketch) = &mut self.sketch {
            sketches::add_strings(sketch, &self.column, &values, &zones);
        }
        if let Some(TakenApart { encoder, shared, .. }) = apart {
            let shared = self.write_shared(SharedKind::Elements, shared, sink)?;
            return pages.write(sink, Some(shared), zones, |rows, out| encoder.encode(rows, &self.texts, out));
        }
        if self.blocks {
            let shared = self.write_shared(SharedKind::Blocks, dictionary::BLOCKS.to_vec(), sink)?;
            let path = sink.path().to_string();
            let failed = |source| Error::Compression { path: path.clone(), source };
            let mut encoder = blocks::Encoder::new().map_err(failed)?;
            let mut failure = None;
            let chunk = pages.write(sink, Some(shared), zones, |rows, out| {
                failure = bytes::encode_blocks(&values[rows], &mut encoder, out).err().or(failure.take());
            })?;
            return failure.map_or(Ok(chunk), |error| Err(failed(error)));
        }
        let Some(table) = self.texts.table_for(&values).map(<[u8]>::to_vec) else {
            return pages.write(sink, None, zones, |rows, out| bytes::encode(&values[rows], out));
        };
        let shared = self.write_shared(SharedKind::Symbols, table, sink)?;
        pages.write(sink, Some(shared), zones, |rows, out| self.texts.compress(&values[rows], out))
    }

    /// Arrays as their elements; `None` if they have no such form.
    fn taken_apart<'v>(&mut self, arrays: &[&'v [u8]], pages: &Pages, element: PhysType) -> Option<TakenApart<'v>> {
        let (encoder, shared) = Apart::of(arrays, pages.nulls.as_ref(), element)?.encoder(&mut self.texts);
        // Of the page with the most elements: others may have none.
        let fullest = pages.ranges().max_by_key(|rows| encoder.count(rows))?;
        let (count, all) = (encoder.count(&fullest).max(1), encoder.count(&(0..pages.rows)));
        let mut page = Vec::new();
        encoder.encode(fullest.clone(), &self.texts, &mut page);
        let bytes = shared.len() + (page.len() as u64 * all as u64 / count as u64) as usize;
        Some(TakenApart { encoder, shared, bytes, fullest })
    }

    fn write_shared(&mut self, kind: SharedKind, block: Vec<u8>, sink: &mut FileSink) -> Result<(SharedKind, Extent)> {
        match &self.shared {
            Some((last_kind, last, extent)) if *last_kind == kind && *last == block => Ok((kind, *extent)),
            _ => {
                let extent = write_block(sink, &block)?;
                self.shared = Some((kind, block, extent));
                Ok((kind, extent))
            }
        }
    }
}

/// Arrays of a chunk whose elements are to lie side by side.
struct TakenApart<'v> {
    encoder: elements::Encoder<'v>,
    shared: Vec<u8>,
    /// About what they take: as much for each element as in one of the pages.
    bytes: usize,
    /// Rows of that page, which has the most elements.
    fullest: Range<usize>,
}

/// About what whole arrays take, each different one once, and codes as many for each page as for one of them.
fn whole_bytes(entries: &[&[u8]], codes: &[i64], page: &Range<usize>) -> usize {
    // Half of an entry, as a rule, is what its symbols take.
    let of_entries: usize = entries.iter().map(|entry| entry.len() / 2 + 1).sum();
    let mut of_page = Vec::new();
    ints::encode(&codes[page.clone()], &mut of_page);
    of_entries + of_page.len() * codes.len().div_ceil(PAGE_ROWS as usize)
}

/// Bounds of values of one fixed-width form.
pub(super) trait BoundFixed<T> {
    fn bound_fixed(&mut self, values: &[T]);
}

fn compression_ratio(compressor: &Compressor, sample: &[&[u8]]) -> f64 {
    let (mut codes, mut ends) = (Vec::new(), Vec::new());
    compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(sample, &mut codes, &mut ends);
    let plain: usize = sample.iter().map(|value| value.len()).sum();
    codes.len() as f64 / plain.max(1) as f64
}

/// The pages of a chunk: their rows and validity.
struct Pages {
    rows: usize,
    nulls: Option<BooleanBuffer>,
    has_zone: bool,
}

impl Pages {
    fn new(column: &SegmentColumn, rows: usize, nulls: Option<BooleanBuffer>) -> Pages {
        Pages { rows, nulls, has_zone: column.order.has_bounds() }
    }

    fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.rows;
        (0..rows).step_by(PAGE_ROWS as usize).map(move |start| start..(start + PAGE_ROWS as usize).min(rows))
    }

    fn valid(&self, rows: &Range<usize>) -> Option<BooleanBuffer> {
        let nulls = self.nulls.as_ref()?.slice(rows.start, rows.len());
        (nulls.count_set_bits() < rows.len()).then_some(nulls)
    }

    /// Gives nulls the value before them, which costs the least in every form.
    fn fill_nulls<T: Copy>(&self, values: &mut [T]) {
        for rows in self.ranges() {
            if let Some(valid) = self.valid(&rows) {
                fill_nulls(&mut values[rows], &valid);
            }
        }
    }

    /// Strings of a page must stay addressable by Arrow's views.
    fn check_bytes(&self, strings: &[&[u8]], sink: &FileSink) -> Result<()> {
        for rows in self.ranges() {
            let bytes: u64 = strings[rows].iter().map(|string| string.len() as u64).sum();
            if bytes > PAGE_BYTES_MAX {
                return Err(Error::TooLarge { path: sink.path().to_string(), bytes, bytes_max: PAGE_BYTES_MAX });
            }
        }
        Ok(())
    }

    fn zones(&self, mut bound: impl FnMut(&mut ZoneMap, Range<usize>)) -> Vec<ZoneMap> {
        let zone = |rows: Range<usize>| {
            let mut zone = ZoneMap::new(page_rows(self.rows as u32, (rows.start as u32) / PAGE_ROWS));
            zone.nulls = self.valid(&rows).map_or(0, |valid| (valid.len() - valid.count_set_bits()) as u32);
            if self.has_zone && !zone.all_null() {
                bound(&mut zone, rows);
            }
            zone
        };
        self.ranges().map(zone).collect()
    }

    fn write(
        self,
        sink: &mut FileSink,
        shared: Option<(SharedKind, Extent)>,
        zones: Vec<ZoneMap>,
        mut encode: impl FnMut(Range<usize>, &mut Vec<u8>),
    ) -> Result<ChunkEntry> {
        let mut pages = Vec::with_capacity(zones.len());
        let mut out = Vec::new();
        for (rows, zone) in self.ranges().zip(zones) {
            out.clear();
            match self.valid(&rows) {
                None => out.push(0),
                Some(_) if zone.all_null() => out.push(ALL_NULL),
                Some(valid) => {
                    out.push(HAS_NULLS);
                    out.extend_from_slice(&valid.sliced()[..rows.len().div_ceil(8)]);
                }
            }
            if !zone.all_null() {
                encode(rows, &mut out);
            }
            pages.push(PageEntry::new(write_block(sink, &out)?, zone));
        }
        Ok(ChunkEntry::new(shared, pages))
    }
}

pub(super) fn put_wide(values: &[i128], out: &mut Vec<u8>) {
    let min = values.iter().copied().min().unwrap_or(0);
    let max = values.iter().copied().max().unwrap_or(0);
    if i64::try_from(max.wrapping_sub(min)).is_ok_and(|span| span >= 0) {
        out.push(SIXTEEN_NARROW);
        out.extend_from_slice(&min.to_le_bytes());
        let distances: Vec<i64> = values.iter().map(|value| value.wrapping_sub(min) as i64).collect();
        return ints::encode(&distances, out);
    }
    out.push(SIXTEEN_PLAIN);
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

pub(super) fn put_fixed16(values: &[[u8; 16]], out: &mut Vec<u8>) {
    if values.iter().all(|value| *value == values[0]) {
        out.push(SIXTEEN_CONSTANT);
        return out.extend_from_slice(&values[0]);
    }
    out.push(SIXTEEN_PLAIN);
    values.iter().for_each(|value| out.extend_from_slice(value));
}

/// Ascending distinct values and a code for each value, if that is much smaller than the values as they are encoded.
pub(super) fn int_dictionary(
    ty: PhysType,
    values: &[i64],
    encode: impl Fn(&[i64], &mut Vec<u8>),
) -> Option<(Vec<i64>, Vec<i64>)> {
    if !matches!(ty, PhysType::I32 | PhysType::I64 | PhysType::F32 | PhysType::F64) || values.len() < 1024 {
        return None;
    }
    let mut sample: Vec<i64> = values.iter().step_by(values.len() / 512).copied().collect();
    sample.sort_unstable();
    let span = sample[sample.len() - 1].wrapping_sub(sample[0]) as u64;
    sample.dedup();
    let code_bits = sample.len().ilog2() + 1;
    if sample.len() > 256 || span.max(1).ilog2() + 1 < code_bits * 2 {
        return None;
    }
    let mut codes_by_value = HashMap::with_capacity(sample.len() * 2);
    for value in values {
        codes_by_value.entry(*value).or_insert(0i64);
        if codes_by_value.len() > INT_DICTIONARY_MAX {
            return None;
        }
    }
    let mut dictionary: Vec<i64> = codes_by_value.keys().copied().collect();
    dictionary.sort_unstable();
    for (code, value) in dictionary.iter().enumerate() {
        codes_by_value.insert(*value, code as i64);
    }
    let codes: Vec<i64> = values.iter().map(|value| codes_by_value[value]).collect();
    let page = ..values.len().min(PAGE_ROWS as usize);
    let (mut as_codes, mut as_values) = (Vec::new(), Vec::new());
    ints::encode(&codes[page], &mut as_codes);
    encode(&values[page], &mut as_values);
    let pages = values.len().div_ceil(PAGE_ROWS as usize);
    (as_codes.len() * pages + dictionary.len() * 8 < as_values.len() * pages * 7 / 10).then_some((dictionary, codes))
}

/// Ascending distinct strings and a code for each string, if each comes so often, on the average.
pub(super) fn string_dictionary<'a>(values: &[&'a [u8]], repeated_min: usize) -> Option<(Vec<&'a [u8]>, Vec<i64>)> {
    let mut table = HashTable::<u32>::new();
    let mut distinct: Vec<&[u8]> = Vec::new();
    let mut distinct_bytes = 0;
    let trial = DICTIONARY_TRIAL.max(values.len() / DICTIONARY_TRIALS);
    let mut codes: Vec<i64> = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        if i > 0 && values[i - 1] == *value {
            codes.push(codes[i - 1]);
            continue;
        }
        let entry = table.entry(
            xxh3_64(value),
            |code| distinct[*code as usize] == *value,
            |code| xxh3_64(distinct[*code as usize]),
        );
        let code = match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let code = distinct.len() as u32;
                entry.insert(code);
                distinct.push(value);
                distinct_bytes += value.len();
                code
            }
        };
        codes.push(i64::from(code));
        // Repeated too seldom so far: the strings themselves are smaller.
        if i >= trial && distinct.len() * repeated_min > i
            || distinct_bytes > DICTIONARY_BYTES_MAX
            || distinct.len() > dictionary::COUNT_MAX as usize
        {
            return None;
        }
    }
    if distinct.len() * repeated_min > values.len() && distinct.len() > 1 {
        return None;
    }
    let mut order: Vec<u32> = (0..distinct.len() as u32).collect();
    order.sort_unstable_by_key(|code| distinct[*code as usize]);
    let mut rank = vec![0i64; distinct.len()];
    for (new, old) in order.iter().enumerate() {
        rank[*old as usize] = new as i64;
    }
    codes.iter_mut().for_each(|code| *code = rank[*code as usize]);
    Some((order.into_iter().map(|old| distinct[old as usize]).collect(), codes))
}
