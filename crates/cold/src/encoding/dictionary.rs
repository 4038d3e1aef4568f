//! What the pages of a chunk share: a symbol table, or a dictionary whose codes the pages hold.
//!
//! ```text
//! symbols   the table
//! strings   compressed u8 | (table) | count u32 | strings in ascending order
//! integers  count u32 | integers in ascending order
//! blocks    0 u8: strings of the pages are in blocks of zstd, without a dictionary of its
//! elements  type u8 | kind u8 | what elements of arrays share: one of the first three, or nothing
//! ```

use super::fsst::{Symbols, put_symbols};
use super::ints::{self, Ints};
use super::{Damage, Decoded, bytes, bytes::Strings, first_where, take_array};
use crate::cache::Slot;
use ::bytes::Bytes;
use arrow_array::BinaryViewArray;
use basalt_types::PhysType;
use basalt_types::span::Span;
use fsst::Compressor;
use std::sync::{Arc, OnceLock};

/// Entries of a dictionary: a chunk has no more rows.
pub(crate) const COUNT_MAX: u32 = 1 << 16;
/// Dictionaries below this many bytes are not worth a symbol table.
const COMPRESS_BYTES_MIN: usize = 2048;
/// Decoded dictionaries up to this many bytes stay with their segment.
const KEPT_BYTES_MAX: usize = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum SharedKind {
    Symbols = 1,
    Strings = 2,
    Ints = 3,
    Blocks = 4,
    Elements = 5,
}

impl SharedKind {
    pub fn from_u8(raw: u8) -> Option<SharedKind> {
        use SharedKind::*;
        [Symbols, Strings, Ints, Blocks, Elements].into_iter().find(|kind| *kind as u8 == raw)
    }
}

/// A parsed shared block.
pub(crate) struct Shared {
    pub kind: SharedKind,
    pub symbols: Option<Box<Symbols>>,
    pub count: usize,
    /// As what elements of arrays rest, and what they share.
    elements: Option<(PhysType, Option<Box<Shared>>)>,
    values: Bytes,
    /// Decoded, if it is small.
    kept: OnceLock<Arc<BinaryViewArray>>,
    /// Decoded, as long as somebody has it.
    lent: Slot<BinaryViewArray>,
}

impl Shared {
    pub fn parse(kind: SharedKind, block: Bytes) -> Decoded<Shared> {
        let mut rest = block.as_ref();
        let mut elements = None;
        let symbols = match kind {
            SharedKind::Symbols => Some(Symbols::parse(&mut rest)?),
            SharedKind::Strings => match take_array(&mut rest, "form of a dictionary")? {
                [0] => None,
                [1] => Some(Symbols::parse(&mut rest)?),
                _ => return Err(Damage("unknown form of a dictionary")),
            },
            SharedKind::Ints => None,
            SharedKind::Blocks => match take_array(&mut rest, "form of blocks")? {
                [0] if rest.is_empty() => None,
                _ => return Err(Damage("unknown form of blocks")),
            },
            SharedKind::Elements => {
                elements = Some(Shared::parse_elements(&block)?);
                None
            }
        };
        let count = match kind {
            SharedKind::Symbols | SharedKind::Blocks | SharedKind::Elements => 0,
            _ => u32::from_le_bytes(take_array(&mut rest, "size of a dictionary")?),
        };
        if count > COUNT_MAX {
            return Err(Damage("a dictionary larger than its chunk"));
        }
        let values = block.slice(block.len() - rest.len()..);
        let (kept, lent) = (OnceLock::new(), Slot::default());
        Ok(Shared { kind, symbols, count: count as usize, elements, values, kept, lent })
    }

    fn parse_elements(block: &Bytes) -> Decoded<(PhysType, Option<Box<Shared>>)> {
        const WHAT: Damage = Damage("what elements share");
        let [ty, kind] = take_array(&mut block.as_ref(), WHAT.0)?;
        let ty = PhysType::from_u8(ty).ok_or(WHAT)?;
        let shared = match SharedKind::from_u8(kind) {
            None if kind == 0 && block.len() == 2 => None,
            Some(SharedKind::Elements | SharedKind::Blocks) | None => return Err(WHAT),
            Some(kind) => Some(Box::new(Shared::parse(kind, block.slice(2..))?)),
        };
        Ok((ty, shared))
    }

    /// Of arrays whose elements lie side by side.
    pub fn elements(&self) -> Option<(PhysType, Option<&Shared>)> {
        self.elements.as_ref().map(|(ty, shared)| (*ty, shared.as_deref()))
    }

    pub fn strings(&self) -> Decoded<Strings<'_>> {
        Strings::parse(&mut self.values.as_ref(), self.count, self.symbols.as_deref())
    }

    /// All strings, decoded.
    pub fn dictionary(&self) -> Decoded<Arc<BinaryViewArray>> {
        if let Some(dictionary) = self.kept.get().cloned().or_else(|| self.lent.get()) {
            return Ok(dictionary);
        }
        let mut views = Vec::new();
        let buffer = self.strings()?.decode(0, &mut views)?;
        let bytes = buffer.len() + size_of_val(views.as_slice());
        // SAFETY: decoding makes each view of a string that it has put into this buffer, at that place.
        #[allow(unsafe_code)]
        let values = unsafe { BinaryViewArray::new_unchecked(views.into(), vec![buffer.into()], None) };
        let dictionary = Arc::new(values);
        if bytes <= KEPT_BYTES_MAX {
            return Ok(self.kept.get_or_init(|| dictionary).clone());
        }
        self.lent.put(&dictionary);
        Ok(dictionary)
    }

    pub fn ints(&self) -> Decoded<Ints<'_>> {
        Ints::parse(&mut self.values.as_ref(), self.count)
    }

    /// The codes of the integers within a span, as a span.
    pub fn codes_within(&self, span: Span) -> Decoded<Span> {
        let ints = self.ints()?;
        let value = |code: usize| i128::from(ints.get(code));
        let low = first_where(self.count, |code| Ok(value(code) >= span.low))?;
        let behind = first_where(self.count, |code| Ok(value(code) > span.high))?;
        Ok(Span { low: low as i128, high: behind as i128 - 1, inside: span.inside })
    }

    /// A code that a page holds, as an index into the dictionary.
    pub fn index(&self, code: i64) -> Decoded<usize> {
        usize::try_from(code).ok().filter(|code| *code < self.count).ok_or(Damage("a code beyond its dictionary"))
    }
}

/// Says that strings are in blocks.
pub(crate) const BLOCKS: &[u8] = &[0];

/// Appends a dictionary of ascending strings.
pub(crate) fn encode_strings(strings: &Vec<&[u8]>, out: &mut Vec<u8>) {
    let decoded_bytes: usize = strings.iter().map(|string| string.len()).sum();
    let count = (strings.len() as u32).to_le_bytes();
    if decoded_bytes >= COMPRESS_BYTES_MIN {
        let compressor = Compressor::train(strings);
        let (mut codes, mut ends, mut table) = (Vec::new(), Vec::new(), Vec::new());
        compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(strings, &mut codes, &mut ends);
        put_symbols(&compressor, &mut table);
        if codes.len() + table.len() < decoded_bytes {
            out.push(1);
            out.append(&mut table);
            out.extend_from_slice(&count);
            return bytes::encode_compressed(decoded_bytes, &codes, &ends, out);
        }
    }
    encode_plain_strings(strings, out);
}

/// The same without symbols, which take long to find.
pub(crate) fn encode_plain_strings(strings: &[&[u8]], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&(strings.len() as u32).to_le_bytes());
    bytes::encode(strings, out);
}

/// Appends a dictionary of ascending integers.
pub(crate) fn encode_ints(values: &[i64], out: &mut Vec<u8>) {
    out.extend_from_slice(&(values.len() as u32).to_le_bytes());
    ints::encode(values, out);
}
