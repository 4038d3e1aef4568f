//! PostgreSQL's hash functions (`hashtext`, `hashint8`, …), which applications spread rows and advisory locks by.
//!
//! The function is Bob Jenkins's lookup3 (public domain, <https://burtleburtle.net/bob/hash/doobs.html>) with
//! PostgreSQL's starting value. The extended ones mix a seed in and give 64 bits.

use super::arg::*;
use super::{CallInfo, Kernel};
use crate::byte_char;
use crate::error::{Error, Result};
use crate::inet::Inet;
use crate::macaddr;
use crate::numeric::Numeric;
use crate::unsigned;
use basalt_types::{DataType, Datum};

/// Added to lookup3's starting value.
const START: u32 = 3_923_095;
const GOLDEN: u32 = 0x9e37_79b9;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    let plain = args.strip_suffix(",int8").unwrap_or(args);
    const NAMES: [&str; 19] = [
        "hashtext",
        "hashint2",
        "hashint4",
        "hashint8",
        "hashoid",
        "hashchar",
        "hashfloat4",
        "hashfloat8",
        "hashbpchar",
        "hashname",
        "hash_numeric",
        "time_hash",
        "timestamp_hash",
        "uuid_hash",
        "interval_hash",
        "hashinet",
        "pg_lsn_hash",
        "hashmacaddr",
        "hashmacaddr8",
    ];
    let base = name.strip_suffix("extended").map_or(name, |base| base.trim_end_matches('_'));
    let is_known = NAMES.contains(&base);
    if !is_known || plain == "-" || plain.contains(',') {
        return None;
    }
    Some(match name.ends_with("extended") {
        true => scalar!(|args, info| match &args[1] {
            Datum::I64(seed) => {
                let Words { b, c } = hash(&args[0], info, *seed as u64)?;
                Ok(Datum::I64((u64::from(b) << 32 | u64::from(c)) as i64))
            }
            other => Err(Error::internal(format!("no seed: {other:?}"))),
        }),
        false => scalar!(|args, info| Ok(Datum::I32(hash(&args[0], info, 0)?.c as i32))),
    })
}

/// The last two words of the state.
struct Words {
    b: u32,
    c: u32,
}

fn hash(value: &Datum, info: &CallInfo, seed: u64) -> Result<Words> {
    Ok(match (&info.arg_types[0], value) {
        (DataType::Int2, Datum::I16(value)) => of_word(i32::from(*value) as u32, seed),
        (DataType::Char, Datum::Bytes(value)) => {
            let byte = byte_char::byte(value);
            of_word(i32::from(byte as i8) as u32, seed)
        }
        (_, Datum::I32(value)) => of_word(*value as u32, seed),
        (DataType::Oid, Datum::I64(value)) => of_word(*value as u32, seed),
        (DataType::Numeric(_), value) => return of_numeric(value, info, seed),
        // Equal numbers of fewer bits have equal hashes.
        (DataType::Timestamp, Datum::I64(value)) => {
            of_long(value.saturating_sub(crate::datetime::POSTGRES_EPOCH_MICROS), seed)
        }
        (DataType::Macaddr, Datum::I64(value)) => of_bytes(&macaddr::six(*value), seed),
        (DataType::Macaddr8, Datum::I64(value)) => of_bytes(&macaddr::eight(*value), seed),
        (DataType::PgLsn, Datum::I64(value)) => of_long(unsigned::number(*value) as i64, seed),
        (_, Datum::I64(value)) => of_long(*value, seed),
        (_, Datum::F32(value)) => of_float(f64::from(*value), seed),
        (_, Datum::F64(value)) => of_float(*value, seed),
        (DataType::Interval, Datum::Fixed16(bytes)) => of_long(basalt_types::key::interval_span(bytes) as i64, seed),
        (_, Datum::Fixed16(bytes)) => of_bytes(bytes, seed),
        (DataType::Bpchar(_), Datum::Bytes(bytes)) => of_bytes(basalt_types::key::unpadded(bytes), seed),
        (DataType::Inet, Datum::Bytes(bytes)) => of_bytes(&Inet::decode(bytes)?.hash_bytes(), seed),
        (_, Datum::Bytes(bytes)) => of_bytes(bytes, seed),
        (ty, other) => return Err(mismatch(ty, other)),
    })
}

fn of_long(value: i64, seed: u64) -> Words {
    let (low, high) = (value as u32, (value >> 32) as u32);
    of_word(low ^ if value >= 0 { high } else { !high }, seed)
}

fn of_float(value: f64, seed: u64) -> Words {
    if value == 0.0 {
        // Both zeros; the seed is the hash.
        return Words { b: (seed >> 32) as u32, c: seed as u32 };
    }
    let value = if value.is_nan() { f64::NAN } else { value };
    of_bytes(&value.to_bits().to_le_bytes(), seed)
}

/// Digits without zeros at either end, then the weight; of special values only that.
fn of_numeric(value: &Datum, info: &CallInfo, seed: u64) -> Result<Words> {
    let number = Numeric::from_datum(value, &info.arg_types[0])?;
    if number.is_nan() || number.is_infinite() {
        return Ok(Words { b: (seed >> 32) as u32, c: seed as u32 });
    }
    let (weight, digits) = number.base_10000();
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    let trailing = digits.iter().rev().take_while(|digit| **digit == 0).count();
    if leading == digits.len() {
        let nothing = seed.wrapping_sub(1);
        return Ok(Words { b: (nothing >> 32) as u32, c: nothing as u32 });
    }
    let kept: Vec<u8> = digits[leading..digits.len() - trailing].iter().flat_map(|digit| digit.to_le_bytes()).collect();
    let Words { b, c } = of_bytes(&kept, seed);
    let weight = i64::from(weight) - leading as i64;
    let mixed = (u64::from(b) << 32 | u64::from(c)) ^ weight as u64;
    Ok(Words { b: (mixed >> 32) as u32, c: mixed as u32 })
}

struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn new(length: usize, seed: u64) -> State {
        let start = GOLDEN.wrapping_add(length as u32).wrapping_add(START);
        let mut state = State { a: start, b: start, c: start };
        if seed != 0 {
            state.a = state.a.wrapping_add((seed >> 32) as u32);
            state.b = state.b.wrapping_add(seed as u32);
            state.mix();
        }
        state
    }

    fn mix(&mut self) {
        let State { a, b, c } = self;
        macro_rules! turn {
            ($x:ident, $y:ident, $z:ident, $bits:literal) => {
                *$x = $x.wrapping_sub(*$z) ^ $z.rotate_left($bits);
                *$z = $z.wrapping_add(*$y);
            };
        }
        turn!(a, b, c, 4);
        turn!(b, c, a, 6);
        turn!(c, a, b, 8);
        turn!(a, b, c, 16);
        turn!(b, c, a, 19);
        turn!(c, a, b, 4);
    }

    fn finish(mut self) -> Words {
        let State { a, b, c } = &mut self;
        macro_rules! turn {
            ($x:ident, $y:ident, $bits:literal) => {
                *$x = (*$x ^ *$y).wrapping_sub($y.rotate_left($bits));
            };
        }
        turn!(c, b, 14);
        turn!(a, c, 11);
        turn!(b, a, 25);
        turn!(c, b, 16);
        turn!(a, c, 4);
        turn!(b, a, 14);
        turn!(c, b, 24);
        Words { b: self.b, c: self.c }
    }
}

fn of_word(word: u32, seed: u64) -> Words {
    let mut state = State::new(4, seed);
    state.a = state.a.wrapping_add(word);
    state.finish()
}

fn of_bytes(bytes: &[u8], seed: u64) -> Words {
    let mut state = State::new(bytes.len(), seed);
    let blocks = bytes.chunks_exact(12);
    let rest = blocks.remainder();
    let word = |bytes: &[u8]| {
        bytes.iter().take(4).enumerate().fold(0u32, |word, (at, byte)| word | u32::from(*byte) << (8 * at))
    };
    let part = |block: &[u8], at: usize| word(block.get(at..).unwrap_or_default());
    for block in blocks {
        state.a = state.a.wrapping_add(part(block, 0));
        state.b = state.b.wrapping_add(part(block, 4));
        state.c = state.c.wrapping_add(part(block, 8));
        state.mix();
    }
    state.a = state.a.wrapping_add(part(rest, 0));
    state.b = state.b.wrapping_add(part(rest, 4));
    // The lowest byte is the length's.
    state.c = state.c.wrapping_add(part(rest, 8) << 8);
    state.finish()
}
