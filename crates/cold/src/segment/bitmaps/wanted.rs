//! What predicates ask of a column, in the form and order in which its values are kept.

use crate::segment::SegmentColumn;
use crate::segment::zone::comparable;
use basalt_types::floats::ordered;
use basalt_types::{ColumnPredicate, CompareOp, Datum, PhysType};

/// Values of a list that are looked for.
const VALUES_MAX: usize = 1024;

/// The order of floats by their bits as that of integers: -0 is 0, and there is one NaN, which is greatest.
pub(super) fn float_order(ty: PhysType) -> Option<fn(i64) -> i64> {
    match ty {
        PhysType::F32 => Some(|bits| ordered(f64::from(f32::from_bits(bits as u32)))),
        PhysType::F64 => Some(|bits| ordered(f64::from_bits(bits as u64))),
        _ => None,
    }
}

/// The order of wide integers as that of bytes.
pub(super) fn wide_order(value: i128) -> [u8; 16] {
    (value as u128 ^ 1 << 127).to_be_bytes()
}

/// A constant as values are kept.
pub(super) enum Key {
    Int(i64),
    Bytes(Vec<u8>),
}

/// `None` if it is not one of the column's values.
fn key_of(column: &SegmentColumn, value: &Datum) -> Option<Key> {
    Some(match (column.ty, value) {
        (PhysType::Bool, Datum::Bool(value)) => Key::Int(i64::from(*value)),
        (PhysType::I16, Datum::I16(value)) => Key::Int(i64::from(*value)),
        (PhysType::I32, Datum::I32(value)) => Key::Int(i64::from(*value)),
        (PhysType::I64, Datum::I64(value)) => Key::Int(*value),
        (PhysType::F32, Datum::F32(value)) => Key::Int(ordered(f64::from(*value))),
        (PhysType::F64, Datum::F64(value)) => Key::Int(ordered(*value)),
        (PhysType::I128, Datum::I128(value)) => Key::Bytes(wide_order(*value).to_vec()),
        (PhysType::Fixed16, Datum::Fixed16(value)) => Key::Bytes(value.to_vec()),
        (PhysType::Bytes, Datum::Bytes(value)) => Key::Bytes(comparable(column.order, value)?.to_vec()),
        _ => return None,
    })
}

/// What predicates over one column ask for.
#[derive(Default)]
pub(super) struct Wanted {
    /// The predicates that it is made of.
    pub told: Vec<usize>,
    /// Null alone.
    pub null: bool,
    /// Of values, at least, and at most; whether these belong to it.
    pub least: Vec<(Key, bool)>,
    pub most: Vec<(Key, bool)>,
    /// Each list is one of which the value has to be.
    pub among: Vec<Vec<Key>>,
}

impl Wanted {
    pub fn of(column: &SegmentColumn, predicates: &[ColumnPredicate]) -> Wanted {
        let mut wanted = Wanted::default();
        let own = predicates.iter().enumerate().filter(|(_, predicate)| predicate.column() == column.id);
        for (at, predicate) in own {
            let is_told = match predicate {
                ColumnPredicate::IsNull { .. } => {
                    wanted.null = true;
                    true
                }
                ColumnPredicate::IsNotNull { .. } => false,
                ColumnPredicate::Compare { op, value, .. } => {
                    key_of(column, value).is_some_and(|key| wanted.compare(*op, key))
                }
                ColumnPredicate::In { values, .. } => {
                    // Nothing equals a null.
                    let values = values.iter().filter(|value| !value.is_null());
                    wanted.among(values.map(|value| key_of(column, value)).take(VALUES_MAX + 1).collect())
                }
                ColumnPredicate::Among { values, .. } => {
                    let is_int = matches!(column.ty, PhysType::I16 | PhysType::I32 | PhysType::I64);
                    let keys = values.iter().map(|value| is_int.then_some(Key::Int(*value)));
                    wanted.among(keys.take(VALUES_MAX + 1).collect())
                }
            };
            wanted.told.extend(is_told.then_some(at));
        }
        wanted
    }

    /// Whether it is a matter of values' order.
    fn compare(&mut self, op: CompareOp, key: Key) -> bool {
        match op {
            CompareOp::Eq => self.among.push(vec![key]),
            CompareOp::Lt => self.most.push((key, false)),
            CompareOp::LtEq => self.most.push((key, true)),
            CompareOp::Gt => self.least.push((key, false)),
            CompareOp::GtEq => self.least.push((key, true)),
            CompareOp::NotEq => return false,
        }
        true
    }

    /// Whether they are known, and not too many.
    fn among(&mut self, keys: Option<Vec<Key>>) -> bool {
        let keys = keys.filter(|keys| keys.len() <= VALUES_MAX);
        let is_told = keys.is_some();
        self.among.extend(keys);
        is_told
    }

    /// Whether values are asked for.
    pub fn is_by_value(&self) -> bool {
        !self.least.is_empty() || !self.most.is_empty() || !self.among.is_empty()
    }
}
