//! FSST: strings as one-byte codes for substrings of up to eight bytes (Boncz, Neumann, Leis, VLDB 2020).
//!
//! `n u8 | lengths n × u8 | symbols, one after the other`. Code 255 escapes one literal byte. Training and
//! compression are the crate `fsst`'s; decoding is ours, since it must survive damaged input.

use super::{Damage, Decoded, take, take_array};
use fsst::{Compressor, Symbol};

const ESCAPE: u8 = 255;

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

    /// Decodes one string into `out` from `at` on; returns where it ends. `out` has 8 spare bytes.
    #[inline]
    pub fn decode_into(&self, codes: &[u8], out: &mut [u8], mut at: usize) -> Decoded<usize> {
        const FULL: Damage = Damage("a compressed string is longer than its page says");
        let mut codes = codes.iter();
        while let Some(&code) = codes.next() {
            if code == ESCAPE {
                let literal = codes.next().ok_or(Damage("a compressed string ends in an escape"))?;
                *out.get_mut(at).ok_or(FULL)? = *literal;
                at += 1;
            } else {
                let slot = out.get_mut(at..at + 8).ok_or(FULL)?;
                slot.copy_from_slice(&self.values[usize::from(code)].to_le_bytes());
                at += usize::from(self.lengths[usize::from(code)]);
            }
        }
        Ok(at)
    }

    pub fn decode(&self, codes: &[u8]) -> Decoded<Vec<u8>> {
        let mut out = vec![0; codes.len() * 8 + 8];
        let end = self.decode_into(codes, &mut out, 0)?;
        out.truncate(end);
        Ok(out)
    }
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
