//! Byte strings of a page: lengths, restarts, bytes.
//!
//! `lengths frame | (unless all are equal) start of every 128th value, u32 each | bytes`. Compressed pages
//! have the same form over codes, behind `decoded bytes varint`.

use super::fsst::{SPARE_BYTES, Symbols};
use super::linear::{self, Linear};
use super::{Damage, Decoded, RESTART, take, take_varint};
use arrow_array::builder::make_view;
use basalt_types::varint;
use std::borrow::Cow;

/// Stored strings; [`Strings`] adds what decodes them.
#[derive(Clone, Copy)]
struct Slices<'a> {
    lengths: Linear<'a>,
    /// Empty if all lengths are equal.
    starts: &'a [u8],
    data: &'a [u8],
}

impl<'a> Slices<'a> {
    fn parse(input: &mut &'a [u8], count: usize) -> Decoded<Slices<'a>> {
        let lengths = Linear::parse(input, count)?;
        let restarts = if lengths.is_constant() { 0 } else { count.div_ceil(RESTART) };
        let starts = take(input, restarts * 4, "starts of strings")?;
        Ok(Slices { lengths, starts, data: std::mem::take(input) })
    }

    fn get(&self, index: usize) -> Decoded<&'a [u8]> {
        let length = self.lengths.get(index) as u64 as usize;
        let start = if self.starts.is_empty() {
            index.checked_mul(length)
        } else {
            let restart = index / RESTART;
            let start = u32::from_le_bytes(self.starts[restart * 4..][..4].try_into().expect("4 bytes"));
            Some((start as usize).wrapping_add(self.lengths.sum(restart * RESTART..index) as usize))
        };
        let end = start.and_then(|start| start.checked_add(length));
        start.zip(end).and_then(|(start, end)| self.data.get(start..end)).ok_or(Damage("a string beyond its page"))
    }

    fn for_each(&self, mut sink: impl FnMut(&'a [u8]) -> Decoded<()>) -> Decoded<()> {
        let mut lengths = Vec::<i64>::new();
        self.lengths.decode(&mut lengths);
        let mut rest = self.data;
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
    compressed: Option<(&'a Symbols, usize)>,
}

impl<'a> Strings<'a> {
    pub fn parse(input: &mut &'a [u8], count: usize, symbols: Option<&'a Symbols>) -> Decoded<Strings<'a>> {
        let compressed = match symbols {
            None => None,
            Some(symbols) => {
                let bytes = take_varint(input, "decoded size")?;
                // A code stands for at most 8 bytes.
                let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes / 8 <= input.len());
                Some((symbols, bytes.ok_or(Damage("a decoded size beyond what the codes can hold"))?))
            }
        };
        Ok(Strings { slices: Slices::parse(input, count)?, compressed })
    }

    /// # Panics
    /// If `index` is not below the count.
    pub fn get(&self, index: usize) -> Decoded<Cow<'a, [u8]>> {
        let stored = self.slices.get(index)?;
        match self.compressed {
            None => Ok(Cow::Borrowed(stored)),
            Some((symbols, _)) => Ok(Cow::Owned(symbols.decode(stored)?)),
        }
    }

    /// Decodes all strings to one buffer, and a view of each into it, as buffer number `buffer`.
    pub fn decode(&self, buffer: u32, views: &mut Vec<u128>) -> Decoded<Vec<u8>> {
        views.reserve(self.slices.lengths.count);
        match self.compressed {
            None => {
                let mut at = 0;
                self.slices.for_each(|string| {
                    views.push(make_view(string, buffer, at));
                    at += string.len() as u32;
                    Ok(())
                })?;
                Ok(self.slices.data.to_vec())
            }
            Some((symbols, bytes)) => {
                let mut out = Vec::with_capacity(bytes + SPARE_BYTES);
                self.slices.for_each(|string| {
                    let at = out.len();
                    symbols.append(string, &mut out)?;
                    views.push(make_view(&out[at..], buffer, at as u32));
                    Ok(())
                })?;
                if out.len() != bytes {
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
    put_lengths(&lengths, out);
    out.reserve(lengths.iter().sum::<i64>() as usize);
    strings.iter().for_each(|string| out.extend_from_slice(string));
}

/// Appends compressed strings. `ends` are the ends of their codes, `decoded_bytes` their size in the clear.
pub(crate) fn encode_compressed(decoded_bytes: usize, codes: &[u8], ends: &[u64], out: &mut Vec<u8>) {
    varint::put(out, decoded_bytes as u64);
    let starts = std::iter::once(&0).chain(ends);
    let lengths: Vec<i64> = starts.zip(ends).map(|(start, end)| (end - start) as i64).collect();
    put_lengths(&lengths, out);
    out.extend_from_slice(codes);
}

fn put_lengths(lengths: &[i64], out: &mut Vec<u8>) {
    linear::encode_any(lengths, out);
    if lengths.iter().all(|length| *length == lengths[0]) {
        return;
    }
    let mut start = 0u32;
    for run in lengths.chunks(RESTART) {
        out.extend_from_slice(&start.to_le_bytes());
        start += run.iter().sum::<i64>() as u32;
    }
}
