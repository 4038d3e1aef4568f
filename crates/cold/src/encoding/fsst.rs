//! FSST: strings as one-byte codes for substrings of up to eight bytes (Boncz, Neumann, Leis, VLDB 2020).
//!
//! `n u8 | lengths n × u8 | symbols, one after the other`. Code 255 escapes one literal byte. Training and
//! compression are the crate `fsst`'s; decoding is ours, since it must survive damaged input.

use super::{Damage, Decoded, take, take_array};
use basalt_types::text::LengthUnit;
use fsst::{Compressor, Symbol};
use memchr::memchr;

pub(crate) const ESCAPE: u8 = 255;

pub(crate) struct Symbols {
    values: [u64; 256],
    lengths: [u8; 256],
}

impl Symbols {
    pub fn parse(input: &mut &[u8]) -> Decoded<Box<Symbols>> {
        let [count] = take_array(input, "number of symbols")?;
        let count = usize::from(count);
        let lengths = take(input, count, "symbol lengths")?;
        let mut symbols = Box::new(Symbols { values: [0; 256], lengths: [0; 256] });
        for (code, &length) in lengths.iter().enumerate() {
            if !(1..=8).contains(&length) {
                return Err(Damage("a symbol of no or more than 8 bytes"));
            }
            let mut value = [0; 8];
            let length_bytes = usize::from(length);
            value[..length_bytes].copy_from_slice(take(input, length_bytes, "symbols")?);
            symbols.values[code] = u64::from_le_bytes(value);
            symbols.lengths[code] = length;
        }
        Ok(symbols)
    }

    /// What a code stands for, and how many bytes of it count: none of a code that stands for nothing.
    pub fn symbol(&self, code: u8) -> ([u8; 8], usize) {
        let code = usize::from(code);
        (self.values[code].to_le_bytes(), usize::from(self.lengths[code]))
    }

    /// Appends what codes stand for. Nothing beyond the capacity of `out` is written, of which so much has to be spare
    /// behind the last byte: [`SPARE_BYTES`].
    #[inline]
    pub fn append(&self, mut codes: &[u8], out: &mut Vec<u8>) -> Decoded<()> {
        let (mut at, room) = (out.len(), out.capacity());
        let start = out.as_mut_ptr();
        let put = |at: usize, value: u64| {
            debug_assert!(at + 8 <= room);
            // SAFETY: whoever calls has seen that eight bytes from there on are within the capacity.
            #[allow(unsafe_code)]
            unsafe {
                start.add(at).cast::<u64>().write_unaligned(value.to_le());
            }
        };
        while let Some((code, rest)) = codes.split_first() {
            if let Some((some, rest)) = codes.split_first_chunk::<4>()
                && at + SPARE_BYTES <= room
                && !has_escape(*some)
            {
                // Each is of no more than eight bytes, so four of them are no more than what is spare.
                for code in some {
                    put(at, self.values[usize::from(*code)]);
                    at += usize::from(self.lengths[usize::from(*code)]);
                }
                codes = rest;
                continue;
            }
            if at + 8 > room {
                return Err(Damage("a compressed string is longer than its page says"));
            }
            codes = rest;
            if *code == ESCAPE {
                let (literal, rest) = codes.split_first().ok_or(Damage("a compressed string ends in an escape"))?;
                put(at, u64::from(*literal));
                at += 1;
                codes = rest;
            } else {
                put(at, self.values[usize::from(*code)]);
                at += usize::from(self.lengths[usize::from(*code)]);
            }
        }
        // SAFETY: it is within the capacity, and each byte before it was written: a code's eight bytes from where the one
        // before it ended.
        #[allow(unsafe_code)]
        unsafe {
            out.set_len(at);
        }
        Ok(())
    }

    /// How long what each code stands for is; 0 for the escape.
    pub fn lengths(&self, unit: LengthUnit) -> [u8; 256] {
        std::array::from_fn(|code| {
            let (bytes, length) = self.symbol(code as u8);
            unit.count(&bytes[..length]) as u8
        })
    }

    pub fn decode(&self, codes: &[u8]) -> Decoded<Vec<u8>> {
        let mut out = Vec::with_capacity(codes.len() * 8 + SPARE_BYTES);
        self.append(codes, &mut out)?;
        Ok(out)
    }
}

/// How long what codes stand for is. `lengths`: of what each stands for ([`Symbols::lengths`]).
#[inline]
pub(crate) fn decoded_length(codes: &[u8], lengths: &[u8; 256], unit: LengthUnit) -> Decoded<usize> {
    let mut length: usize = codes.iter().map(|code| usize::from(lengths[usize::from(*code)])).sum();
    let mut rest = codes;
    while let Some(escape) = memchr(ESCAPE, rest) {
        // The byte behind it was counted as a code, and stands for itself.
        let literal = rest.get(escape + 1).ok_or(Damage("a compressed string ends in an escape"))?;
        length = length - usize::from(lengths[usize::from(*literal)]) + unit.count(&[*literal]);
        rest = &rest[escape + 2..];
    }
    Ok(length)
}

/// What four codes may write.
pub(crate) const SPARE_BYTES: usize = 32;

#[inline]
fn has_escape(codes: [u8; 4]) -> bool {
    // A byte of which all bits are set is 0 in the complement: the lowest such borrows from its highest bit.
    let inverse = !u32::from_le_bytes(codes);
    inverse.wrapping_sub(0x0101_0101) & !inverse & 0x8080_8080 != 0
}

/// Appends a trained table.
pub(crate) fn put_symbols(compressor: &Compressor, out: &mut Vec<u8>) {
    let (symbols, lengths) = (compressor.symbol_table(), compressor.symbol_lengths());
    out.push(symbols.len() as u8);
    out.extend_from_slice(lengths);
    for (symbol, length) in symbols.iter().zip(lengths) {
        out.extend_from_slice(&Symbol::to_u64(*symbol).to_le_bytes()[..usize::from(*length)]);
    }
}
