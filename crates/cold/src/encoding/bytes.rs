//! Byte strings of a page: lengths, restarts, bytes.
//!
//! `spans | bytes` ([`super::spans`]). Compressed pages
//! have the same form over codes, behind `decoded bytes varint`. Where the bytes rest in blocks of zstd ([`super::blocks`]),
//! lengths and starts are those of the strings.

use super::blocks::{self, Blocks, OpenBlock};
use super::fsst::{SPARE_BYTES, Symbols, decoded_length};
use super::search::{CodeAutomaton, Sought};
use super::spans::{self, Spans};
use super::{Damage, Decoded, take, take_varint};
use basalt_types::automaton::Automaton;
use basalt_types::text::LengthUnit;
use basalt_types::varint;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

const BEYOND: Damage = Damage("a string beyond its page");
/// Of so many strings one is looked up by itself, and not with all others.
const FEW_PLACES: usize = 32;

/// Stored strings; [`Strings`] adds what decodes them.
#[derive(Clone, Copy)]
struct Slices<'a> {
    spans: Spans<'a>,
    data: &'a [u8],
}

impl<'a> Slices<'a> {
    fn parse(input: &mut &'a [u8], count: usize) -> Decoded<Slices<'a>> {
        Ok(Slices { spans: Spans::parse(input, count)?, data: std::mem::take(input) })
    }

    fn count(&self) -> usize {
        self.spans.lengths.count
    }

    fn range(&self, index: usize) -> Decoded<Range<usize>> {
        self.spans.range(index).ok_or(BEYOND)
    }

    fn get(&self, index: usize) -> Decoded<&'a [u8]> {
        self.data.get(self.range(index)?).ok_or(BEYOND)
    }

    fn for_each(&self, sink: impl FnMut(&'a [u8]) -> Decoded<()>) -> Decoded<()> {
        self.for_each_in(self.data, sink)
    }

    fn for_each_in<'d>(&self, data: &'d [u8], mut sink: impl FnMut(&'d [u8]) -> Decoded<()>) -> Decoded<()> {
        let mut lengths = Vec::<i64>::new();
        self.spans.lengths.decode(&mut lengths);
        let mut rest = data;
        for length in lengths {
            let length = usize::try_from(length).map_err(|_| Damage("a negative length"))?;
            sink(take(&mut rest, length, "strings beyond their page")?)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(Damage("bytes behind the last string")) }
    }
}

/// The strings of a page or dictionary.
pub(crate) struct Strings<'a> {
    slices: Slices<'a>,
    form: Form<'a>,
}

enum Form<'a> {
    Plain,
    /// Codes, and the size of what they stand for.
    Symbols(&'a Symbols, usize),
    Blocks(Blocks<'a>),
}

impl<'a> Strings<'a> {
    pub fn parse(input: &mut &'a [u8], count: usize, symbols: Option<&'a Symbols>) -> Decoded<Strings<'a>> {
        let form = match symbols {
            None => Form::Plain,
            Some(symbols) => {
                let bytes = take_varint(input, "decoded size")?;
                // A code stands for at most 8 bytes.
                let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes / 8 <= input.len());
                Form::Symbols(symbols, bytes.ok_or(Damage("a decoded size beyond what the codes can hold"))?)
            }
        };
        Ok(Strings { slices: Slices::parse(input, count)?, form })
    }

    /// Strings whose bytes rest in blocks.
    pub fn parse_blocks(input: &mut &'a [u8], count: usize) -> Decoded<Strings<'a>> {
        let mut slices = Slices::parse(input, count)?;
        let blocks = Blocks::parse(&mut std::mem::take(&mut slices.data))?;
        Ok(Strings { slices, form: Form::Blocks(blocks) })
    }

    /// # Panics
    /// If `index` is not below the count.
    pub fn get(&self, index: usize) -> Decoded<Cow<'a, [u8]>> {
        match &self.form {
            Form::Plain => Ok(Cow::Borrowed(self.slices.get(index)?)),
            Form::Symbols(symbols, _) => Ok(Cow::Owned(symbols.decode(self.slices.get(index)?)?)),
            Form::Blocks(blocks) => Ok(Cow::Owned(OpenBlock::new(blocks).get(self.slices.range(index)?)?.to_vec())),
        }
    }

    /// Gives the strings at ascending places. A block that several of them are in is decoded once.
    pub fn visit(&self, places: &[u32], mut sink: impl FnMut(&[u8]) -> Decoded<()>) -> Decoded<()> {
        let Form::Blocks(blocks) = &self.form else {
            return places.iter().try_for_each(|place| sink(&self.get(*place as usize)?));
        };
        let mut open = OpenBlock::new(blocks);
        places.iter().try_for_each(|place| sink(open.get(self.slices.range(*place as usize)?)?))
    }

    /// Clears the mask, a byte per string, where one is not in a set, or where it is if that is `negated`; whether they rest
    /// in a form that is searched. What is made for that is kept for other strings of the same symbols. Damage that only
    /// shows once strings are decoded is not looked for.
    pub fn search(
        &self,
        (texts, negated): (&Arc<Automaton>, bool),
        kept: &mut Sought,
        mask: &mut [u8],
    ) -> Decoded<bool> {
        let symbols = match self.form {
            Form::Symbols(symbols, _) => Some(symbols),
            Form::Plain => None,
            Form::Blocks(_) => return Ok(false),
        };
        let data = self.slices.data;
        let codes = kept.of(texts, || Ok(CodeAutomaton::new(texts, symbols, data)))?;
        // Where no first byte decides, bytes are sought faster than they are gone through.
        if symbols.is_none() && !codes.ends_soon() {
            return Ok(false);
        }
        let mut lengths = Vec::<i64>::new();
        self.slices.spans.lengths.decode(&mut lengths);
        codes.search(data, &lengths, negated, mask)?;
        Ok(true)
    }

    /// Appends how long the strings at ascending places are, of which some may come several times (`None`: all of them), and
    /// decodes none; whether they rest in a form that tells. Damage that only shows once strings are decoded is not looked for.
    pub fn lengths(&self, unit: LengthUnit, places: Option<&[u32]>, out: &mut Vec<i32>) -> Decoded<bool> {
        let symbols = match (&self.form, unit) {
            (Form::Symbols(symbols, _), _) => Some(symbols.lengths(unit)),
            (Form::Plain, _) | (Form::Blocks(_), LengthUnit::Bytes) => None,
            (Form::Blocks(_), LengthUnit::Chars) => return Ok(false),
        };
        let length_of = |string: &[u8]| {
            let length = match &symbols {
                Some(symbols) => decoded_length(string, symbols, unit)?,
                None => unit.count(string),
            };
            i32::try_from(length).map_err(|_| BEYOND)
        };
        let is_stored = symbols.is_none() && unit == LengthUnit::Bytes;
        match places {
            Some(places) if places.len() * FEW_PLACES <= self.slices.count() => {
                for place in places {
                    let range = self.slices.range(*place as usize)?;
                    let length = match is_stored {
                        true => i32::try_from(range.len()).map_err(|_| BEYOND)?,
                        false => length_of(self.slices.data.get(range).ok_or(BEYOND)?)?,
                    };
                    out.push(length);
                }
            }
            _ => {
                let mut all = Vec::with_capacity(self.slices.count());
                if is_stored {
                    let mut stored = Vec::<i64>::new();
                    self.slices.spans.lengths.decode(&mut stored);
                    let known = |length: &i64| i32::try_from(*length).ok().filter(|length| *length >= 0).ok_or(BEYOND);
                    stored.iter().try_for_each(|length| known(length).map(|length| all.push(length)))?;
                } else {
                    self.slices.for_each(|string| length_of(string).map(|length| all.push(length)))?;
                }
                match places {
                    None => out.append(&mut all),
                    Some(places) => out.extend(places.iter().map(|place| all[*place as usize])),
                }
            }
        }
        Ok(true)
    }

    /// Decodes all strings to one buffer, and a view of each into it, as buffer number `buffer`.
    pub fn decode(&self, buffer: u32, views: &mut Vec<u128>) -> Decoded<Vec<u8>> {
        views.reserve(self.slices.count());
        match &self.form {
            Form::Plain => {
                let mut at = 0;
                self.slices.for_each(|string| {
                    views.push(basalt_types::text::view(string, buffer, at));
                    at += string.len() as u32;
                    Ok(())
                })?;
                Ok(self.slices.data.to_vec())
            }
            Form::Blocks(blocks) => {
                let (out, mut at) = (blocks.decode_all()?, 0);
                self.slices.for_each_in(&out, |string| {
                    views.push(basalt_types::text::view(string, buffer, at));
                    at += string.len() as u32;
                    Ok(())
                })?;
                Ok(out)
            }
            Form::Symbols(symbols, bytes) => {
                let mut out = Vec::with_capacity(bytes + SPARE_BYTES);
                self.slices.for_each(|string| {
                    let at = out.len();
                    symbols.append(string, &mut out)?;
                    views.push(basalt_types::text::view(&out[at..], buffer, at as u32));
                    Ok(())
                })?;
                if out.len() != *bytes {
                    return Err(Damage("strings decode to another size than their page says"));
                }
                Ok(out)
            }
        }
    }
}

/// Appends strings as they are.
pub(crate) fn encode(strings: &[&[u8]], out: &mut Vec<u8>) {
    let lengths: Vec<i64> = strings.iter().map(|string| string.len() as i64).collect();
    spans::encode(&lengths, out);
    out.reserve(lengths.iter().sum::<i64>() as usize);
    strings.iter().for_each(|string| out.extend_from_slice(string));
}

/// Appends strings in blocks of zstd.
pub(crate) fn encode_blocks(
    strings: &[&[u8]],
    encoder: &mut blocks::Encoder,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let lengths: Vec<i64> = strings.iter().map(|string| string.len() as i64).collect();
    spans::encode(&lengths, out);
    encoder.encode(strings, out)
}

/// Appends compressed strings. `ends` are the ends of their codes, `decoded_bytes` their size in the clear.
pub(crate) fn encode_compressed(decoded_bytes: usize, codes: &[u8], ends: &[u64], out: &mut Vec<u8>) {
    varint::put(out, decoded_bytes as u64);
    let starts = std::iter::once(&0).chain(ends);
    let lengths: Vec<i64> = starts.zip(ends).map(|(start, end)| (end - start) as i64).collect();
    spans::encode(&lengths, out);
    out.extend_from_slice(codes);
}
