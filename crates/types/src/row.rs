//! Rows as bytes: in hot pages, in log records and in row files.
//!
//! ```text
//! column count varint | null bitmap ⌈n/8⌉ bytes (bit set = null) | values in column order
//! ```
//!
//! Values are little-endian at their physical width; `Bytes` carries a varint length. A row holds every
//! column that its table had when it was written, in column-id order, dropped ones as nulls. A row with
//! fewer columns than the table reads the missing ones from [`crate::ColumnDef::missing`].

use crate::{Datum, PhysType, varint};

/// Appends a row. `values` is in column-id order, one per column of `types`.
///
/// # Panics
/// If a value is not of its column's physical type: the caller has checked types.
pub fn encode(types: &[PhysType], values: &[Datum], out: &mut Vec<u8>) {
    assert_eq!(types.len(), values.len(), "a row has one value per column");
    encode_as(types.iter().copied(), values, out);
}

/// The same for types that are not kept together: one per value.
pub fn encode_as(types: impl Iterator<Item = PhysType>, values: &[Datum], out: &mut Vec<u8>) {
    out.reserve(encoded_bytes(values));
    varint::put(out, values.len() as u64);
    let bitmap = out.len();
    out.resize(bitmap + values.len().div_ceil(8), 0);
    for (i, (value, ty)) in values.iter().zip(types).enumerate() {
        match value {
            Datum::Null => out[bitmap + i / 8] |= 1 << (i % 8),
            value => {
                assert_eq!(value.phys(), Some(ty), "column {i} holds another type");
                encode_value(value, out);
            }
        }
    }
}

/// About as many bytes as [`encode`] appends, and not fewer but for columns and texts beyond 2 MiB.
pub fn encoded_bytes(values: &[Datum]) -> usize {
    let of_value = |value: &Datum| match value {
        Datum::Null => 0,
        Datum::Bool(_) => 1,
        Datum::I16(_) => 2,
        Datum::I32(_) | Datum::F32(_) => 4,
        Datum::I64(_) | Datum::F64(_) => 8,
        Datum::I128(_) | Datum::Fixed16(_) => 16,
        Datum::Bytes(bytes) => 3 + bytes.len(),
    };
    3 + values.len().div_ceil(8) + values.iter().map(of_value).sum::<usize>()
}

/// Appends a row of as many columns that all have this value.
pub fn encode_repeated(value: &Datum, columns: usize, out: &mut Vec<u8>) {
    varint::put(out, columns as u64);
    let bitmap = out.len();
    let is_null = matches!(value, Datum::Null);
    out.resize(bitmap + columns.div_ceil(8), if is_null { u8::MAX } else { 0 });
    if is_null && !columns.is_multiple_of(8) {
        out[bitmap + columns / 8] = u8::MAX >> (8 - columns % 8);
    }
    let mut bytes = Vec::new();
    encode_value(value, &mut bytes);
    out.extend(bytes.repeat(columns));
}

/// Appends what stands before the values of a row: how many there are, and which of them are null.
pub fn put_header(columns: usize, is_null: impl Fn(usize) -> bool, out: &mut Vec<u8>) {
    varint::put(out, columns as u64);
    let bitmap = out.len();
    out.resize(bitmap + columns.div_ceil(8), 0);
    for column in (0..columns).filter(|column| is_null(*column)) {
        out[bitmap + column / 8] |= 1 << (column % 8);
    }
}

fn encode_value(value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::I16(value) => out.extend(value.to_le_bytes()),
        Datum::I32(value) => out.extend(value.to_le_bytes()),
        Datum::I64(value) => out.extend(value.to_le_bytes()),
        Datum::I128(value) => out.extend(value.to_le_bytes()),
        Datum::F32(value) => out.extend(value.to_le_bytes()),
        Datum::F64(value) => out.extend(value.to_le_bytes()),
        Datum::Bytes(value) => varint::put_slice(out, value),
        Datum::Fixed16(value) => out.extend_from_slice(value),
    }
}

/// One column of a row, borrowed. `bytes` is the value alone (without its length prefix).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field<'a> {
    Null,
    Value(&'a [u8]),
}

/// A borrowed row, walked from its first column on.
#[derive(Clone, Copy)]
pub struct RowRef<'a> {
    count: usize,
    nulls: &'a [u8],
    values: &'a [u8],
}

impl<'a> RowRef<'a> {
    /// `None` if the header does not fit the bytes.
    #[inline]
    pub fn new(mut bytes: &'a [u8]) -> Option<RowRef<'a>> {
        let count = usize::try_from(varint::take(&mut bytes)?).ok()?;
        let nulls = varint::take_bytes(&mut bytes, count.div_ceil(8))?;
        Some(RowRef { count, nulls, values: bytes })
    }

    /// Columns that the row holds; a table may have more by now.
    #[inline]
    pub fn column_count(&self) -> usize {
        self.count
    }

    /// The values side by side, if none is null.
    #[inline]
    pub fn values_without_nulls(&self) -> Option<&'a [u8]> {
        self.nulls.iter().all(|bits| *bits == 0).then_some(self.values)
    }

    /// The columns in order. Ends early (with `None` inside) only on damaged bytes.
    pub fn fields(&self, types: &'a [PhysType]) -> impl Iterator<Item = Option<Field<'a>>> + 'a {
        let (nulls, mut rest) = (self.nulls, self.values);
        types.iter().take(self.count).enumerate().map(move |(i, ty)| {
            if nulls[i / 8] >> (i % 8) & 1 == 1 {
                return Some(Field::Null);
            }
            Some(Field::Value(take_field(&mut rest, *ty)?))
        })
    }

    /// Calls `visit` with the fields at some positions, which ascend, as far as the row holds them. `ty` knows the type of
    /// a column. `None`: the bytes are damaged, or `visit` says so.
    #[inline]
    pub fn each(
        &self,
        ty: impl Fn(usize) -> PhysType,
        positions: impl Iterator<Item = usize>,
        mut visit: impl FnMut(Field<'a>) -> Option<()>,
    ) -> Option<()> {
        let has_nulls = self.nulls.iter().any(|bits| *bits != 0);
        let is_null = |at: usize| has_nulls && self.nulls[at / 8] >> (at % 8) & 1 == 1;
        let mut rest = self.values;
        let mut at = 0;
        for position in positions.take_while(|position| *position < self.count) {
            debug_assert!(at <= position, "positions ascend");
            while at < position {
                if !is_null(at) {
                    take_field(&mut rest, ty(at))?;
                }
                at += 1;
            }
            visit(if is_null(at) { Field::Null } else { Field::Value(take_field(&mut rest, ty(at))?) })?;
            at += 1;
        }
        Some(())
    }

    /// All columns of the row as values, `missing` (one per column of the table) filling its end.
    pub fn to_datums(&self, types: &[PhysType], missing: &[Datum]) -> Option<Vec<Datum>> {
        if self.count > types.len() {
            return None;
        }
        let mut out = Vec::with_capacity(types.len());
        for (field, ty) in self.fields(types).zip(types) {
            out.push(match field? {
                Field::Null => Datum::Null,
                Field::Value(bytes) => decode_value(*ty, bytes)?,
            });
        }
        out.extend_from_slice(&missing[out.len()..]);
        Some(out)
    }
}

/// The bytes of a value, off the front.
#[inline]
fn take_field<'a>(rest: &mut &'a [u8], ty: PhysType) -> Option<&'a [u8]> {
    match ty.fixed_width() {
        Some(width) => varint::take_bytes(rest, width),
        None => varint::take_slice(rest),
    }
}

/// Reads a value from exactly its bytes.
#[inline]
pub fn decode_value(ty: PhysType, bytes: &[u8]) -> Option<Datum> {
    Some(match ty {
        PhysType::Bool => match bytes {
            [0] => Datum::Bool(false),
            [1] => Datum::Bool(true),
            _ => return None,
        },
        PhysType::I16 => Datum::I16(i16::from_le_bytes(bytes.try_into().ok()?)),
        PhysType::I32 => Datum::I32(i32::from_le_bytes(bytes.try_into().ok()?)),
        PhysType::I64 => Datum::I64(i64::from_le_bytes(bytes.try_into().ok()?)),
        PhysType::I128 => Datum::I128(i128::from_le_bytes(bytes.try_into().ok()?)),
        PhysType::F32 => Datum::F32(f32::from_le_bytes(bytes.try_into().ok()?)),
        PhysType::F64 => Datum::F64(f64::from_le_bytes(bytes.try_into().ok()?)),
        PhysType::Bytes => Datum::Bytes(bytes.into()),
        PhysType::Fixed16 => Datum::Fixed16(bytes.try_into().ok()?),
    })
}

/// Appends a standalone value with a one-byte tag, for records and footers. See [`take_datum`].
pub fn put_datum(value: &Datum, out: &mut Vec<u8>) {
    match value.phys() {
        None => out.push(0xff),
        Some(ty) => {
            out.push(ty as u8);
            encode_value(value, out);
        }
    }
}

/// Takes what [`put_datum`] wrote.
pub fn take_datum(input: &mut &[u8]) -> Option<Datum> {
    let tag = varint::take_bytes(input, 1)?[0];
    if tag == 0xff {
        return Some(Datum::Null);
    }
    let ty = PhysType::from_u8(tag)?;
    let bytes = match ty.fixed_width() {
        Some(width) => varint::take_bytes(input, width)?,
        None => varint::take_slice(input)?,
    };
    decode_value(ty, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Vec<PhysType>, Vec<Datum>) {
        use PhysType::*;
        let types = vec![Bool, I16, I32, I64, I128, F32, F64, Bytes, Fixed16, Bytes];
        let values = vec![
            Datum::Bool(true),
            Datum::I16(-2),
            Datum::I32(7),
            Datum::Null,
            Datum::I128(-1),
            Datum::F32(1.5),
            Datum::F64(-0.25),
            Datum::text("basalt"),
            Datum::Fixed16([9; 16]),
            Datum::text(""),
        ];
        (types, values)
    }

    #[test]
    fn rows_round_trip_and_missing_columns_read_their_default() {
        let (mut types, mut values) = sample();
        let mut bytes = Vec::new();
        encode(&types, &values, &mut bytes);
        types.push(PhysType::I32);
        let mut missing = vec![Datum::Null; types.len()];
        missing[types.len() - 1] = Datum::I32(42);
        values.push(Datum::I32(42));
        assert_eq!(RowRef::new(&bytes).unwrap().to_datums(&types, &missing), Some(values));
    }

    #[test]
    fn truncated_rows_are_noticed() {
        let (types, values) = sample();
        let missing = vec![Datum::Null; types.len()];
        let mut bytes = Vec::new();
        encode(&types, &values, &mut bytes);
        let each = |bytes, positions: &[usize]| {
            let mut found = Vec::new();
            let visited = RowRef::new(bytes)?.each(
                |at| types[at],
                positions.iter().copied(),
                |field| {
                    found.push(field);
                    Some(())
                },
            );
            visited.map(|()| found)
        };
        let all: Vec<Field<'_>> = RowRef::new(&bytes).unwrap().fields(&types).map(Option::unwrap).collect();
        for positions in [&[][..], &[0], &[3], &[9], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[2, 3, 7, 8], &[4, 9, 10, 12]] {
            let expected: Vec<Field<'_>> = positions.iter().filter_map(|at| all.get(*at).copied()).collect();
            assert_eq!(each(&bytes, positions), Some(expected), "{positions:?}");
            assert_eq!(each(&bytes[..bytes.len() - 1], positions).is_none(), positions.contains(&9), "{positions:?}");
        }
        for cut in 0..bytes.len() {
            let got = RowRef::new(&bytes[..cut]).and_then(|row| row.to_datums(&types, &missing));
            assert_eq!(got, None, "cut at {cut}");
        }
    }
}
