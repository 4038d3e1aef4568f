//! Bit-packing.
//!
//! Full blocks of 1,024 values are interleaved so that plain loops over lanes become vector instructions:
//! with widths up to 32, value `i` belongs to lane `i % 32`, and word `k` of lane `l` is the 32-bit word
//! `k * 32 + l` of the block; with wider values, 16 lanes of 64-bit words. A lane's values lie in its words
//! one after the other, least significant bits first. What remains below 1,024 values is one plain bit
//! stream, least significant bits first. Any value is found by arithmetic alone.

mod pick;

pub(crate) use pick::pick;

use basalt_types::prefetch::Ahead;
use basalt_types::widest;
use std::ops::Range;

pub(crate) const BLOCK: usize = 1024;
const LANES_32: usize = 32;
const LANES_64: usize = 16;

/// Bits that hold every value up to `max`.
pub(crate) fn width_of(max: u64) -> u8 {
    (u64::BITS - max.leading_zeros()) as u8
}

/// The greatest value of so many bits.
pub(crate) fn greatest(width: u8) -> u64 {
    u64::MAX.checked_shr(64 - u32::from(width)).unwrap_or(0)
}

/// Bytes that `count` values of `width` bits take.
pub(crate) fn packed_bytes(count: usize, width: u8) -> usize {
    let width = usize::from(width);
    count / BLOCK * (BLOCK * width / 8) + (count % BLOCK * width).div_ceil(8)
}

macro_rules! block_codec {
    (
        $word:ty, $bits:literal, $lanes:ident, $pack:ident, $unpack:ident, $unpack_row:ident, $test:ident, $test_row:ident:
        $($row:literal)*
    ) => {
        fn $pack<const W: usize>(values: &[u64; BLOCK], out: &mut Vec<u8>) {
            let mut words = [[0 as $word; $lanes]; W];
            for (row, values) in values.chunks_exact($lanes).enumerate() {
                let (word, shift) = (row * W / $bits, row * W % $bits);
                if W == 0 {
                    return;
                }
                for (lane, value) in words[word].iter_mut().zip(values) {
                    *lane |= (*value as $word) << shift;
                }
                if shift + W > $bits {
                    for (lane, value) in words[word + 1].iter_mut().zip(values) {
                        *lane |= (*value as $word) >> ($bits - shift);
                    }
                }
            }
            for word in words.iter().flatten() {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }

        #[inline(always)]
        fn $unpack_row<const W: usize>(words: &[[[u8; $bits / 8]; $lanes]; W], row: usize, out: &mut [$word; $lanes]) {
            let mask = <$word>::MAX >> ($bits - W);
            let (word, shift) = (row * W / $bits, row * W % $bits);
            // Loops in the open: a closure handed to an iterator would be compiled apart, without wide vectors.
            if shift + W > $bits {
                for ((out, low), high) in out.iter_mut().zip(&words[word]).zip(&words[word + 1]) {
                    let (low, high) = (<$word>::from_le_bytes(*low), <$word>::from_le_bytes(*high));
                    *out = (low >> shift | high << ($bits - shift)) & mask;
                }
            } else {
                for (out, low) in out.iter_mut().zip(&words[word]) {
                    *out = <$word>::from_le_bytes(*low) >> shift & mask;
                }
            }
        }

        widest! {
        fn $unpack[const W](packed: &[u8], out: &mut [$word; BLOCK]) {
            if W == 0 {
                out.fill(0);
                return;
            }
            let words = packed.as_chunks::<{ $bits / 8 }>().0.as_chunks::<$lanes>().0;
            let words: &[_; W] = words.try_into().expect("a whole block");
            let (rows, _) = out.as_chunks_mut::<$lanes>();
            if const { usize::is_multiple_of($bits, W) } {
                // Without a value that lies in two words, a loop over rows would be vectorized across rows, which
                // scatters; rows with shifts that the compiler knows are not.
                $($unpack_row::<W>(words, $row, &mut rows[$row]);)*
            } else {
                for (row, out) in rows.iter_mut().enumerate() {
                    $unpack_row::<W>(words, row, out);
                }
            }
        }
        }

        widest! {
        fn $test[const W](packed: &[u8], span: PackedSpan<$word>, mask: &mut [u8; BLOCK]) {
            let words = packed.as_chunks::<{ $bits / 8 }>().0.as_chunks::<$lanes>().0;
            let words: &[_; W] = words.try_into().expect("a whole block");
            let (rows, _) = mask.as_chunks_mut::<$lanes>();
            // Rows one by one, with shifts that the compiler knows.
            $($test_row::<W>(words, $row, span, &mut rows[$row]);)*
        }
        }

        #[inline(always)]
        fn $test_row<const W: usize>(
            words: &[[[u8; $bits / 8]; $lanes]; W],
            row: usize,
            span: PackedSpan<$word>,
            mask: &mut [u8; $lanes],
        ) {
            // A row of values stays in registers.
            let mut values = [0; $lanes];
            if W > 0 {
                $unpack_row::<W>(words, row, &mut values);
            }
            for (mask, value) in mask.iter_mut().zip(&values) {
                *mask &= u8::from((value.wrapping_sub(span.low) <= span.width) == span.inside);
            }
        }
    };
}

/// Packed values from `low` to `low + width`, or all others.
#[derive(Clone, Copy)]
pub(crate) struct PackedSpan<T> {
    pub low: T,
    pub width: T,
    pub inside: bool,
}

impl PackedSpan<u64> {
    /// The same for values of up to 32 bits.
    fn narrow(self) -> PackedSpan<u32> {
        PackedSpan { low: self.low as u32, width: self.width as u32, inside: self.inside }
    }

    fn clear(self, value: u64, mask: &mut u8) {
        *mask &= u8::from((value.wrapping_sub(self.low) <= self.width) == self.inside);
    }
}

block_codec!(u32, 32, LANES_32, pack_32, unpack_32, unpack_row_32, test_32, test_row_32:
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
block_codec!(u64, 64, LANES_64, pack_64, unpack_64, unpack_row_64, test_64, test_row_64:
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);

/// A table of a const-generic function for the widths listed.
macro_rules! by_width {
    ($function:ident: $($width:literal)*) => { [$($function::<$width>),*] };
}

type Pack = fn(&[u64; BLOCK], &mut Vec<u8>);
type Unpack<T> = fn(&[u8], &mut [T; BLOCK]);
type Test<T> = fn(&[u8], PackedSpan<T>, &mut [u8; BLOCK]);

const PACK_32: [Pack; 33] =
    by_width!(pack_32: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
const UNPACK_32: [Unpack<u32>; 33] =
    by_width!(unpack_32: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
const PACK_64: [Pack; 32] = by_width!(pack_64: 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55
    56 57 58 59 60 61 62 63 64);
const UNPACK_64: [Unpack<u64>; 32] = by_width!(unpack_64: 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52
    53 54 55 56 57 58 59 60 61 62 63 64);

const TEST_32: [Test<u32>; 33] =
    by_width!(test_32: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
const TEST_64: [Test<u64>; 32] = by_width!(test_64: 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54
    55 56 57 58 59 60 61 62 63 64);

/// Appends `values`, each below 2^width.
pub(crate) fn pack(values: &[u64], width: u8, out: &mut Vec<u8>) {
    out.reserve(packed_bytes(values.len(), width));
    let (blocks, tail) = values.as_chunks::<BLOCK>();
    let pack = if width <= 32 { PACK_32[usize::from(width)] } else { PACK_64[usize::from(width) - 33] };
    blocks.iter().for_each(|block| pack(block, out));
    let (mut pending, mut bits) = (0u128, 0u32);
    for value in tail {
        pending |= u128::from(*value) << bits;
        bits += u32::from(width);
        while bits >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(pending as u8);
    }
}

/// Value `index` of `count`; `packed` has exactly [`packed_bytes`] of them.
#[inline]
pub(crate) fn get(packed: &[u8], count: usize, width: u8, index: usize) -> u64 {
    debug_assert!(index < count && packed.len() == packed_bytes(count, width));
    let width = usize::from(width);
    if width == 0 {
        return 0;
    }
    let block_bytes = BLOCK * width / 8;
    let (block, at) = (index / BLOCK, index % BLOCK);
    let packed = &packed[block * block_bytes..];
    if (block + 1) * BLOCK > count {
        return get_bits(packed, at * width, width);
    }
    if width <= 32 {
        let (row, lane) = (at / LANES_32, at % LANES_32);
        let (word, shift) = (row * width / 32, row * width % 32);
        let low = u64::from(word_32(packed, word * LANES_32 + lane));
        let high = if shift + width > 32 { u64::from(word_32(packed, (word + 1) * LANES_32 + lane)) } else { 0 };
        return (high << 32 | low) >> shift & mask(width);
    }
    let (row, lane) = (at / LANES_64, at % LANES_64);
    let (word, shift) = (row * width / 64, row * width % 64);
    let low = u128::from(word_64(packed, word * LANES_64 + lane));
    let high = if shift + width > 64 { u128::from(word_64(packed, (word + 1) * LANES_64 + lane)) } else { 0 };
    ((high << 64 | low) >> shift) as u64 & mask(width)
}

/// The sum of values `range`, modulo 2^64. Values of one row of lanes lie side by side, so this costs far
/// less than as many calls of [`get`].
pub(crate) fn sum(packed: &[u8], count: usize, width: u8, range: Range<usize>) -> u64 {
    debug_assert!(range.end <= count && packed.len() == packed_bytes(count, width));
    let bits = usize::from(width);
    if range.is_empty() || bits == 0 {
        return 0;
    }
    let in_blocks = range.start.min(in_blocks(count))..range.end.min(in_blocks(count));
    if bits > 32 || in_blocks.is_empty() {
        return range.map(|index| get(packed, count, width, index)).fold(0, u64::wrapping_add);
    }
    let mut total = 0u64;
    let mut index = in_blocks.start;
    while index < in_blocks.end {
        let (block, row, lane) = (index / BLOCK, index % BLOCK / LANES_32, index % LANES_32);
        let lanes = (LANES_32 - lane).min(in_blocks.end - index);
        let (word, shift) = (row * bits / 32, row * bits % 32);
        let words = &packed[block * (BLOCK * bits / 8) + (word * LANES_32 + lane) * 4..];
        let low = words.as_chunks::<4>().0[..lanes].iter().map(|word| u32::from_le_bytes(*word));
        total = total.wrapping_add(if shift + bits > 32 {
            let high = words[LANES_32 * 4..].as_chunks::<4>().0[..lanes].iter().map(|word| u32::from_le_bytes(*word));
            let both =
                low.zip(high).map(|(low, high)| u64::from((low >> shift | high << (32 - shift)) & mask_32(bits)));
            both.sum::<u64>()
        } else {
            low.map(|low| u64::from(low >> shift & mask_32(bits))).sum::<u64>()
        });
        index += lanes;
    }
    let tail = in_blocks.end.max(range.start)..range.end;
    tail.map(|index| get(packed, count, width, index)).fold(total, u64::wrapping_add)
}

fn mask_32(width: usize) -> u32 {
    u32::MAX >> (32 - width)
}

fn mask(width: usize) -> u64 {
    u64::MAX >> (64 - width)
}

fn word_32(packed: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(packed[index * 4..][..4].try_into().expect("4 bytes"))
}

fn word_64(packed: &[u8], index: usize) -> u64 {
    u64::from_le_bytes(packed[index * 8..][..8].try_into().expect("8 bytes"))
}

fn get_bits(stream: &[u8], bit: usize, width: usize) -> u64 {
    let from = &stream[bit / 8..];
    let bytes = from.first_chunk().copied().unwrap_or_else(|| {
        let mut bytes = [0; 16];
        bytes[..from.len()].copy_from_slice(from);
        bytes
    });
    (u128::from_le_bytes(bytes) >> (bit % 8)) as u64 & mask(width)
}

/// How many of so many values lie in whole blocks.
pub(crate) fn in_blocks(count: usize) -> usize {
    count / BLOCK * BLOCK
}

/// The values of a whole block, which have up to 32 bits.
#[inline]
pub(crate) fn unpack_block(packed: &[u8], width: u8, block: usize, out: &mut [u32; BLOCK]) {
    let block_bytes = BLOCK * usize::from(width) / 8;
    UNPACK_32[usize::from(width)](&packed[block * block_bytes..][..block_bytes], out);
}

/// Hands all values to `sink` in order, in runs of up to 1,024, as 32-bit or 64-bit words by width.
pub(crate) fn unpack((packed, ahead): (&[u8], Ahead<'_>), count: usize, width: u8, mut sink: impl FnMut(Unpacked<'_>)) {
    let block_bytes = BLOCK * usize::from(width) / 8;
    let blocks = count / BLOCK;
    if width <= 32 {
        let mut block = [0u32; BLOCK];
        for i in 0..blocks {
            ahead.part(i, blocks);
            UNPACK_32[usize::from(width)](&packed[i * block_bytes..][..block_bytes], &mut block);
            sink(Unpacked::Narrow(&block));
        }
    } else {
        let mut block = [0u64; BLOCK];
        for i in 0..blocks {
            ahead.part(i, blocks);
            UNPACK_64[usize::from(width) - 33](&packed[i * block_bytes..][..block_bytes], &mut block);
            sink(Unpacked::Wide(&block));
        }
    }
    if !count.is_multiple_of(BLOCK) {
        let mut values = [0u64; BLOCK];
        let tail = &mut values[..count % BLOCK];
        unpack_tail(&packed[blocks * block_bytes..], width, tail);
        sink(Unpacked::Wide(tail));
    }
}

/// The values behind the last whole block.
fn unpack_tail(stream: &[u8], width: u8, values: &mut [u64]) {
    if width > 0 {
        for (i, value) in values.iter_mut().enumerate() {
            *value = get_bits(stream, i * usize::from(width), usize::from(width));
        }
    }
}

/// Clears the mask, a byte per value, where the value is none of the span. Values are compared as they are unpacked, and
/// stand nowhere else.
pub(crate) fn test((packed, ahead): (&[u8], Ahead<'_>), width: u8, span: PackedSpan<u64>, mask: &mut [u8]) {
    let block_bytes = BLOCK * usize::from(width) / 8;
    let (masks, mask_of_tail) = mask.as_chunks_mut::<BLOCK>();
    let (blocks, stream) = packed.split_at(masks.len() * block_bytes);
    let parts = masks.len();
    for (at, mask) in masks.iter_mut().enumerate() {
        ahead.part(at, parts);
        let block = &blocks[at * block_bytes..][..block_bytes];
        match width {
            ..=32 => TEST_32[usize::from(width)](block, span.narrow(), mask),
            _ => TEST_64[usize::from(width) - 33](block, span, mask),
        }
    }
    if mask_of_tail.is_empty() {
        return;
    }
    let mut values = [0u64; BLOCK];
    let tail = &mut values[..mask_of_tail.len()];
    unpack_tail(stream, width, tail);
    tail.iter().zip(mask_of_tail).for_each(|(value, mask)| span.clear(*value, mask));
}

pub(crate) enum Unpacked<'a> {
    Narrow(&'a [u32]),
    Wide(&'a [u64]),
}

impl Unpacked<'_> {
    pub fn len(&self) -> usize {
        match self {
            Unpacked::Narrow(values) => values.len(),
            Unpacked::Wide(values) => values.len(),
        }
    }
}
