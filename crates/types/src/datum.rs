//! One value at rest, without its SQL type.

use crate::PhysType;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A value in its physical form; the column's [`crate::DataType`] says what it means.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub enum Datum {
    Null,
    Bool(bool),
    I16(i16),
    I32(i32),
    I64(i64),
    I128(i128),
    F32(#[serde(with = "crate::float_text::single")] f32),
    F64(#[serde(with = "crate::float_text::double")] f64),
    Bytes(Box<[u8]>),
    Fixed16([u8; 16]),
}

/// Bytes that are written out one by one.
const BYTES_SHOWN_MAX: usize = 256;

/// Two that differ are written differently, or next to certainly so: long ones by their hash.
impl fmt::Debug for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Null => f.write_str("Null"),
            Datum::Bool(value) => write!(f, "Bool({value:?})"),
            Datum::I16(value) => write!(f, "I16({value:?})"),
            Datum::I32(value) => write!(f, "I32({value:?})"),
            Datum::I64(value) => write!(f, "I64({value:?})"),
            Datum::I128(value) => write!(f, "I128({value:?})"),
            Datum::F32(value) => write!(f, "F32({value:?})"),
            Datum::F64(value) => write!(f, "F64({value:?})"),
            Datum::Bytes(bytes) if bytes.len() > BYTES_SHOWN_MAX => {
                let mut hasher = DefaultHasher::new();
                bytes.hash(&mut hasher);
                write!(f, "Bytes({} of them, {:x})", bytes.len(), hasher.finish())
            }
            Datum::Bytes(bytes) => write!(f, "Bytes({bytes:?})"),
            Datum::Fixed16(bytes) => write!(f, "Fixed16({bytes:?})"),
        }
    }
}

/// Whether two are the same value, not whether SQL's `=` holds: floats go by their bits.
impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Null, Datum::Null) => true,
            (Datum::Bool(a), Datum::Bool(b)) => a == b,
            (Datum::I16(a), Datum::I16(b)) => a == b,
            (Datum::I32(a), Datum::I32(b)) => a == b,
            (Datum::I64(a), Datum::I64(b)) => a == b,
            (Datum::I128(a), Datum::I128(b)) => a == b,
            (Datum::F32(a), Datum::F32(b)) => a.to_bits() == b.to_bits(),
            (Datum::F64(a), Datum::F64(b)) => a.to_bits() == b.to_bits(),
            (Datum::Bytes(a), Datum::Bytes(b)) => a == b,
            (Datum::Fixed16(a), Datum::Fixed16(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Datum {}

impl Datum {
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    pub fn phys(&self) -> Option<PhysType> {
        Some(match self {
            Datum::Null => return None,
            Datum::Bool(_) => PhysType::Bool,
            Datum::I16(_) => PhysType::I16,
            Datum::I32(_) => PhysType::I32,
            Datum::I64(_) => PhysType::I64,
            Datum::I128(_) => PhysType::I128,
            Datum::F32(_) => PhysType::F32,
            Datum::F64(_) => PhysType::F64,
            Datum::Bytes(_) => PhysType::Bytes,
            Datum::Fixed16(_) => PhysType::Fixed16,
        })
    }

    pub fn text(text: &str) -> Datum {
        Datum::Bytes(text.as_bytes().into())
    }
}
