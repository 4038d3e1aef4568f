//! Strings in blocks that are compressed one by one (zstd, RFC 8878), for tables that ask for it.
//!
//! `blocks varint | frame of ends, decoded | frame of ends, as stored | blocks`. A block holds whole strings of
//! [`BLOCK_BYTES_MAX`] at most, or one longer string alone, so that one string costs one such block. A block that zstd
//! does not make smaller is stored as it is: its two sizes are equal.

use super::linear::{self, Linear};
use super::{Damage, Decoded, take_varint};
use basalt_types::varint;
use std::cell::RefCell;
use std::ops::Range;
use zstd::bulk::{Compressor, Decompressor};

pub(crate) const BLOCK_BYTES_MAX: usize = 16 << 10;
/// zstd's own default: higher levels gain little in so small blocks.
const LEVEL: i32 = 3;
/// Strings of a page are no more than this together.
const DECODED_BYTES_MAX: usize = 1 << 30;

const DAMAGED: Damage = Damage("a block of zstd");
const BEYOND: Damage = Damage("a string beyond its block");

std::thread_local! {
    // What a context holds is large beside a block, and costs more to make than a block to decode.
    static CONTEXT: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

#[derive(Clone, Copy)]
pub(crate) struct Blocks<'a> {
    ends: Linear<'a>,
    stored: Linear<'a>,
    data: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// Takes all of the input.
    pub fn parse(input: &mut &'a [u8]) -> Decoded<Blocks<'a>> {
        let count = take_varint(input, "number of blocks")?;
        let count = usize::try_from(count).ok().filter(|count| *count <= input.len()).ok_or(DAMAGED)?;
        let ends = Linear::parse(input, count)?;
        let stored = Linear::parse(input, count)?;
        Ok(Blocks { ends, stored, data: std::mem::take(input) })
    }

    /// Where a block is in what is decoded, and in what is stored.
    fn place(&self, block: usize) -> Decoded<(Range<usize>, Range<usize>)> {
        let range = |ends: &Linear<'_>| {
            let start = if block == 0 { 0 } else { usize::try_from(ends.get(block - 1)).ok()? };
            Some(start..usize::try_from(ends.get(block)).ok()?)
        };
        let (decoded, stored) = range(&self.ends).zip(range(&self.stored)).ok_or(DAMAGED)?;
        let is_sound = decoded.start <= decoded.end && decoded.end <= DECODED_BYTES_MAX;
        if is_sound && stored.start <= stored.end { Ok((decoded, stored)) } else { Err(DAMAGED) }
    }

    fn decode(&self, block: usize, out: &mut Vec<u8>) -> Decoded<Range<usize>> {
        let (decoded, stored) = self.place(block)?;
        let bytes = self.data.get(stored).ok_or(DAMAGED)?;
        out.clear();
        if bytes.len() == decoded.len() {
            out.extend_from_slice(bytes);
            return Ok(decoded);
        }
        out.reserve_exact(decoded.len());
        CONTEXT.with_borrow_mut(|context| {
            if context.is_none() {
                *context = Decompressor::new().ok();
            }
            let context = context.as_mut().ok_or(Damage("no memory for a context of zstd"))?;
            // Its own checks keep what it writes within the capacity.
            context.decompress_to_buffer(bytes, out).map_err(|_| DAMAGED)
        })?;
        if out.len() == decoded.len() { Ok(decoded) } else { Err(DAMAGED) }
    }

    /// The block that a byte of what is decoded lies in.
    fn block_of(&self, byte: usize) -> Decoded<usize> {
        let (mut from, mut to) = (0, self.ends.count);
        while from < to {
            let middle = from.midpoint(to);
            if self.ends.get(middle) > byte as i64 { to = middle } else { from = middle + 1 }
        }
        if from < self.ends.count { Ok(from) } else { Err(Damage("a string beyond its blocks")) }
    }

    /// Decodes all blocks.
    pub fn decode_all(&self) -> Decoded<Vec<u8>> {
        let (mut out, mut block) = (Vec::new(), Vec::new());
        for at in 0..self.ends.count {
            if self.decode(at, &mut block)?.start != out.len() || out.len() + block.len() > DECODED_BYTES_MAX {
                return Err(DAMAGED);
            }
            out.extend_from_slice(&block);
        }
        Ok(out)
    }
}

/// The block that was decoded last.
pub(crate) struct OpenBlock<'b> {
    blocks: &'b Blocks<'b>,
    place: Range<usize>,
    bytes: Vec<u8>,
}

impl<'b> OpenBlock<'b> {
    pub fn new(blocks: &'b Blocks<'b>) -> OpenBlock<'b> {
        OpenBlock { blocks, place: 0..0, bytes: Vec::new() }
    }

    /// A string, by where it is in what is decoded.
    pub fn get(&mut self, string: Range<usize>) -> Decoded<&[u8]> {
        if string.is_empty() {
            return Ok(&[]);
        }
        if !self.place.contains(&string.start) {
            let block = self.blocks.block_of(string.start)?;
            // None is open if that one cannot be.
            self.place = 0..0;
            self.place = self.blocks.decode(block, &mut self.bytes)?;
        }
        let start = string.start.checked_sub(self.place.start).ok_or(BEYOND)?;
        self.bytes.get(start..start + string.len()).ok_or(BEYOND)
    }
}

/// Compresses the strings of pages.
pub(crate) struct Encoder(Compressor<'static>);

impl Encoder {
    pub fn new() -> std::io::Result<Encoder> {
        Compressor::new(LEVEL).map(Encoder)
    }

    /// Appends strings in blocks.
    pub fn encode(&mut self, strings: &[&[u8]], out: &mut Vec<u8>) -> std::io::Result<()> {
        let (mut ends, mut stored) = (Vec::new(), Vec::new());
        let (mut block, mut data, mut decoded) = (Vec::new(), Vec::new(), 0i64);
        for (at, string) in strings.iter().enumerate() {
            block.extend_from_slice(string);
            let next = strings.get(at + 1).map(|next| block.len() + next.len());
            if block.is_empty() || next.is_some_and(|bytes| bytes <= BLOCK_BYTES_MAX) {
                continue;
            }
            let compressed = self.0.compress(&block)?;
            data.extend_from_slice(if compressed.len() < block.len() { &compressed } else { &block });
            decoded += block.len() as i64;
            ends.push(decoded);
            stored.push(data.len() as i64);
            block.clear();
        }
        varint::put(out, ends.len() as u64);
        linear::encode_any(&ends, out);
        linear::encode_any(&stored, out);
        out.append(&mut data);
        Ok(())
    }
}
