//! SQL types as PostgreSQL names them, and the few physical forms that they rest in.

use crate::range::RangeKind;
use crate::usertype::{self, CompositeDef, DomainDef, EnumDef};
use arrow_schema::{DataType as ArrowType, TimeUnit};
use std::sync::{Arc, LazyLock};

/// PostgreSQL's `anyarray`: what arrays without an oid of their own answer with.
const ANY_ARRAY_OID: u32 = 2277;
const RECORD_ARRAY_OID: u32 = 2287;

/// A PostgreSQL type with its modifier.
#[derive(Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum DataType {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    /// Precision and scale, or unconstrained. `p ≤ 18` rests as scaled i64, `p ≤ 38` as i128, anything
    /// else in the variable form of [`crate::numeric`].
    Numeric(Option<(u16, i16)>),
    Text,
    /// At most this many characters.
    Varchar(Option<u32>),
    /// Blank-padded to this many characters.
    Bpchar(Option<u32>),
    Bytea,
    /// Days since 1970-01-01 (as Arrow counts; the wire format's 2000-01-01 is `server`'s business);
    /// `i32::MIN` and `i32::MAX` are the infinities.
    Date,
    /// Microseconds since midnight.
    Time,
    /// Microseconds since 1970-01-01; `i64::MIN` and `i64::MAX` are the infinities.
    Timestamp,
    /// As `Timestamp`, in UTC.
    TimestampTz,
    /// Months i32, days i32, microseconds i64, little-endian, in 16 bytes.
    Interval,
    /// `time with time zone`: microseconds of the day in UTC (beyond the day where the zone says so), then
    /// seconds west of Greenwich, big-endian with the sign bit flipped, in 16 bytes that sort as values do.
    TimeTz,
    /// Exactly this many bits, as characters `0` and `1`, which sort as values do.
    Bit(Option<u32>),
    /// At most this many bits, likewise.
    Varbit(Option<u32>),
    /// Hundredths of the currency's unit.
    Money,
    Uuid,
    /// An address and the length of its network, in bytes that compare as values do (`expr/src/inet.rs`).
    Inet,
    /// A network, likewise.
    Cidr,
    /// Six bytes as an integer.
    Macaddr,
    /// Eight bytes as an integer, the first bit flipped.
    Macaddr8,
    /// A position in the log, and the number of a transaction: 64 bits, the first one flipped.
    PgLsn,
    Xid8,
    /// The last 32 bits of a transaction's number.
    Xid,
    /// As `expr/src/txid_snapshot.rs` says, the next one too.
    PgSnapshot,
    TxidSnapshot,
    Json,
    Jsonb,
    /// A path of SQL/JSON, as PostgreSQL prints it.
    JsonPath,
    /// PostgreSQL's catalog types, for `pg_catalog`.
    Name,
    /// One byte, as the character of that number (`expr/src/byte_char.rs`).
    Char,
    Oid,
    Regclass,
    Regtype,
    Regproc,
    Regnamespace,
    Regrole,
    Regprocedure,
    Regoper,
    Regoperator,
    Regcollation,
    Array(Box<DataType>),
    /// Values are as [`crate::range`] says, those of the next too.
    Range(RangeKind),
    Multirange(RangeKind),
    /// Any composite value: what functions that take all of them declare. Values are [`DataType::Composite`].
    Record,
    /// A composite type, a table's row type, or the type of a row constructor.
    Composite(Arc<CompositeDef>),
    Enum(Arc<EnumDef>),
    Domain(Arc<DomainDef>),
    /// A literal or NULL whose type is still open.
    Unknown,
    Void,
}

/// How values of a type rest in rows, pages and segments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum PhysType {
    Bool = 0,
    I16 = 1,
    I32 = 2,
    I64 = 3,
    I128 = 4,
    F32 = 5,
    F64 = 6,
    /// Text (valid UTF-8), bytea, json, variable numeric, encoded arrays.
    Bytes = 7,
    /// Uuid, interval.
    Fixed16 = 8,
}

impl PhysType {
    pub fn from_u8(raw: u8) -> Option<PhysType> {
        use PhysType::*;
        [Bool, I16, I32, I64, I128, F32, F64, Bytes, Fixed16].get(usize::from(raw)).copied()
    }

    /// Width in a row, or `None` for `Bytes`.
    #[inline]
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            PhysType::Bool => Some(1),
            PhysType::I16 => Some(2),
            PhysType::I32 | PhysType::F32 => Some(4),
            PhysType::I64 | PhysType::F64 => Some(8),
            PhysType::I128 | PhysType::Fixed16 => Some(16),
            PhysType::Bytes => None,
        }
    }

    /// Whether values rest as integers, as those of dates and of numerics with a modifier do.
    pub fn is_integer(self) -> bool {
        matches!(self, PhysType::I16 | PhysType::I32 | PhysType::I64 | PhysType::I128)
    }

    /// The Arrow type in which stored columns leave `cold` and `hot`, before [`DataType::to_arrow`].
    pub fn to_arrow(self) -> ArrowType {
        match self {
            PhysType::Bool => ArrowType::Boolean,
            PhysType::I16 => ArrowType::Int16,
            PhysType::I32 => ArrowType::Int32,
            PhysType::I64 => ArrowType::Int64,
            PhysType::I128 => ArrowType::Decimal128(38, 0),
            PhysType::F32 => ArrowType::Float32,
            PhysType::F64 => ArrowType::Float64,
            PhysType::Bytes => ArrowType::BinaryView,
            PhysType::Fixed16 => ArrowType::FixedSizeBinary(16),
        }
    }
}

impl DataType {
    /// How values rest. `None` for types that no column can have.
    pub fn phys(&self) -> Option<PhysType> {
        use DataType::*;
        Some(match self {
            Bool => PhysType::Bool,
            Int2 => PhysType::I16,
            Int4 | Date => PhysType::I32,
            Int8 | Time | Timestamp | TimestampTz | Money | Macaddr | Macaddr8 => PhysType::I64,
            PgLsn | Xid8 | Xid => PhysType::I64,
            Oid | Regclass | Regtype | Regproc | Regnamespace | Regrole | Regprocedure | Regoper | Regoperator
            | Regcollation => PhysType::I64,
            Float4 => PhysType::F32,
            Float8 => PhysType::F64,
            Numeric(_) => match self.decimal() {
                Some((p, _)) if p <= 18 => PhysType::I64,
                Some(_) => PhysType::I128,
                None => PhysType::Bytes,
            },
            Text | Varchar(_) | Bpchar(_) | Bytea | Json | Jsonb | JsonPath | Name | Char | Array(_) | Bit(_)
            | Varbit(_) | Composite(_) | Range(_) | Multirange(_) | Inet | Cidr | PgSnapshot | TxidSnapshot => {
                PhysType::Bytes
            }
            Enum(_) => PhysType::F64,
            Domain(domain) => return domain.base.phys(),
            Interval | Uuid | TimeTz => PhysType::Fixed16,
            Record | Unknown | Void => return None,
        })
    }

    /// Precision and scale if values are scaled integers: `0 ≤ scale ≤ precision ≤ 38`.
    pub fn decimal(&self) -> Option<(u8, i8)> {
        match self {
            DataType::Numeric(Some((p, s))) if *p <= 38 && *s >= 0 && *s as u16 <= *p => Some((*p as u8, *s as i8)),
            DataType::Domain(domain) => domain.base.decimal(),
            _ => None,
        }
    }

    /// The Arrow type of vectors of this type between operators. [`crate::batch::to_logical`] turns a
    /// stored column into it, without copying except for 64-bit decimals.
    pub fn to_arrow(&self) -> ArrowType {
        use DataType::*;
        match self {
            Bool => ArrowType::Boolean,
            Int2 => ArrowType::Int16,
            Int4 => ArrowType::Int32,
            Int8 | Money | Macaddr | Macaddr8 | PgLsn | Xid8 | Xid => ArrowType::Int64,
            Float4 => ArrowType::Float32,
            Float8 => ArrowType::Float64,
            Numeric(_) => match self.decimal() {
                Some((p, s)) => ArrowType::Decimal128(p, s),
                None => ArrowType::BinaryView,
            },
            Text | Varchar(_) | Bpchar(_) | Json | Jsonb | JsonPath | Name | Char | Unknown | Bit(_) | Varbit(_)
            | PgSnapshot | TxidSnapshot => ArrowType::Utf8View,
            Bytea | Inet | Cidr => ArrowType::BinaryView,
            Date => ArrowType::Date32,
            Time => ArrowType::Time64(TimeUnit::Microsecond),
            Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Interval | Uuid | TimeTz => ArrowType::FixedSizeBinary(16),
            Oid | Regclass | Regtype | Regproc | Regnamespace | Regrole | Regprocedure | Regoper | Regoperator
            | Regcollation => ArrowType::Int64,
            // As they rest.
            Array(_) | Record | Composite(_) | Range(_) | Multirange(_) => ArrowType::BinaryView,
            Enum(_) => ArrowType::Float64,
            Domain(domain) => domain.base.to_arrow(),
            // The empty string: a function that returns nothing returns something not null.
            Void => ArrowType::Utf8View,
        }
    }

    /// Every type but arrays and records, without modifiers.
    const SCALARS: [DataType; 59] = {
        use DataType::*;
        [
            Bool,
            Int2,
            Int4,
            Int8,
            Float4,
            Float8,
            Numeric(None),
            Text,
            Varchar(None),
            Bpchar(None),
            Bytea,
            Date,
            Time,
            Timestamp,
            TimestampTz,
            Interval,
            TimeTz,
            Bit(None),
            Varbit(None),
            Money,
            Uuid,
            Inet,
            Cidr,
            Macaddr,
            Macaddr8,
            PgLsn,
            Xid8,
            Xid,
            PgSnapshot,
            TxidSnapshot,
            Json,
            Jsonb,
            JsonPath,
            Name,
            Char,
            Oid,
            Regclass,
            Regtype,
            Regproc,
            Regnamespace,
            Regrole,
            Regprocedure,
            Regoper,
            Regoperator,
            Regcollation,
            Unknown,
            Void,
            Range(RangeKind::Int4),
            Range(RangeKind::Int8),
            Range(RangeKind::Numeric),
            Range(RangeKind::Date),
            Range(RangeKind::Timestamp),
            Range(RangeKind::TimestampTz),
            Multirange(RangeKind::Int4),
            Multirange(RangeKind::Int8),
            Multirange(RangeKind::Numeric),
            Multirange(RangeKind::Date),
            Multirange(RangeKind::Timestamp),
            Multirange(RangeKind::TimestampTz),
        ]
    };

    /// The type that has this [`oid`](DataType::oid), without modifiers; no pseudo-type but `unknown` and `void`.
    pub fn from_oid(oid: u32) -> Option<DataType> {
        if oid == ANY_ARRAY_OID {
            return None;
        }
        let arrays = DataType::SCALARS.into_iter().map(|element| DataType::Array(Box::new(element)));
        DataType::SCALARS.into_iter().chain(arrays).find(|ty| ty.oid() == oid)
    }

    /// PostgreSQL's oid in `pg_type`.
    pub fn oid(&self) -> u32 {
        use DataType::*;
        match self {
            Bool => 16,
            Bytea => 17,
            Char => 18,
            Name => 19,
            Int8 => 20,
            Int2 => 21,
            Int4 => 23,
            Regproc => 24,
            Text => 25,
            Oid => 26,
            Xid => 28,
            Json => 114,
            Cidr => 650,
            Float4 => 700,
            Float8 => 701,
            Unknown => 705,
            Macaddr8 => 774,
            Macaddr => 829,
            Inet => 869,
            Bpchar(_) => 1042,
            Varchar(_) => 1043,
            Date => 1082,
            Time => 1083,
            Timestamp => 1114,
            TimestampTz => 1184,
            Interval => 1186,
            TimeTz => 1266,
            Bit(_) => 1560,
            Varbit(_) => 1562,
            Money => 790,
            Numeric(_) => 1700,
            Regclass => 2205,
            Regtype => 2206,
            Regprocedure => 2202,
            Regoper => 2203,
            Regoperator => 2204,
            TxidSnapshot => 2970,
            PgLsn => 3220,
            Regcollation => 4191,
            PgSnapshot => 5038,
            Xid8 => 5069,
            Record => usertype::RECORD_OID,
            Composite(composite) => composite.oid,
            Enum(definition) => definition.oid,
            Domain(domain) => domain.oid,
            Void => 2278,
            Uuid => 2950,
            Jsonb => 3802,
            JsonPath => 4072,
            Regnamespace => 4089,
            Regrole => 4096,
            Range(kind) => kind.oids()[0],
            Multirange(kind) => kind.oids()[2],
            Array(element) => match &**element {
                Range(kind) => kind.oids()[1],
                Multirange(kind) => kind.oids()[3],
                Cidr => 651,
                Macaddr8 => 775,
                Bool => 1000,
                Bytea => 1001,
                Char => 1002,
                Name => 1003,
                Int2 => 1005,
                Int4 => 1007,
                Text => 1009,
                Bpchar(_) => 1014,
                Varchar(_) => 1015,
                Int8 => 1016,
                Float4 => 1021,
                Float8 => 1022,
                Oid => 1028,
                Macaddr => 1040,
                Inet => 1041,
                Timestamp => 1115,
                Date => 1182,
                Time => 1183,
                TimestampTz => 1185,
                Interval => 1187,
                TimeTz => 1270,
                Bit(_) => 1561,
                Varbit(_) => 1563,
                Money => 791,
                Numeric(_) => 1231,
                Uuid => 2951,
                Json => 199,
                Jsonb => 3807,
                JsonPath => 4073,
                Regclass => 2210,
                Regtype => 2211,
                Regproc => 1008,
                Xid => 1011,
                Xid8 => 271,
                Regprocedure => 2207,
                Regoper => 2208,
                Regoperator => 2209,
                TxidSnapshot => 2949,
                PgLsn => 3221,
                Regnamespace => 4090,
                Regrole => 4097,
                Regcollation => 4192,
                PgSnapshot => 5039,
                Record => RECORD_ARRAY_OID,
                Composite(composite) if composite.is_anonymous() => RECORD_ARRAY_OID,
                Composite(_) | Enum(_) | Domain(_) => usertype::array_oid(element.oid()),
                _ => ANY_ARRAY_OID,
            },
        }
    }

    /// PostgreSQL's `atttypmod`: -1 without a modifier; an array has its elements'.
    pub fn typmod(&self) -> i32 {
        match self {
            DataType::Numeric(Some((p, s))) => ((i32::from(*p) << 16) | (i32::from(*s) & 0x7ff)) + 4,
            DataType::Varchar(Some(n)) | DataType::Bpchar(Some(n)) => *n as i32 + 4,
            DataType::Bit(Some(n)) | DataType::Varbit(Some(n)) => *n as i32,
            DataType::Array(element) => element.typmod(),
            _ => -1,
        }
    }

    /// `typlen`: bytes, or -1 for variable length.
    pub fn pg_len(&self) -> i16 {
        use DataType::*;
        match self {
            Bool | Char => 1,
            Int2 => 2,
            Int4 | Float4 | Date | Oid | Xid | Void => 4,
            ty if ty.is_reg() => 4,
            Macaddr => 6,
            Int8 | Float8 | Time | Timestamp | TimestampTz | Money | Macaddr8 | PgLsn | Xid8 => 8,
            TimeTz => 12,
            Interval | Uuid => 16,
            Enum(_) => 4,
            Domain(domain) => domain.base.pg_len(),
            Name => 64,
            Unknown => -2,
            _ => -1,
        }
    }

    /// The name that PostgreSQL prints (`format_type`).
    pub fn sql_name(&self) -> String {
        use DataType::*;
        let plain = match self {
            Bool => "boolean",
            Int2 => "smallint",
            Int4 => "integer",
            Int8 => "bigint",
            Float4 => "real",
            Float8 => "double precision",
            Numeric(Some((p, s))) => return format!("numeric({p},{s})"),
            Numeric(None) => "numeric",
            Text => "text",
            Varchar(Some(n)) => return format!("character varying({n})"),
            Varchar(None) => "character varying",
            Bpchar(Some(n)) => return format!("character({n})"),
            Bpchar(None) => "character",
            Bytea => "bytea",
            Date => "date",
            Time => "time without time zone",
            Timestamp => "timestamp without time zone",
            TimestampTz => "timestamp with time zone",
            Interval => "interval",
            TimeTz => "time with time zone",
            Bit(Some(n)) => return format!("bit({n})"),
            Bit(None) => "bit",
            Varbit(Some(n)) => return format!("bit varying({n})"),
            Varbit(None) => "bit varying",
            Money => "money",
            Uuid => "uuid",
            Inet => "inet",
            Cidr => "cidr",
            Macaddr => "macaddr",
            Macaddr8 => "macaddr8",
            Json => "json",
            Jsonb => "jsonb",
            JsonPath => "jsonpath",
            Name => "name",
            Char => "\"char\"",
            Oid => "oid",
            Regclass => "regclass",
            Regtype => "regtype",
            Regproc => "regproc",
            Regnamespace => "regnamespace",
            Regrole => "regrole",
            Regprocedure => "regprocedure",
            Regoper => "regoper",
            Regoperator => "regoperator",
            Regcollation => "regcollation",
            PgLsn => "pg_lsn",
            Xid8 => "xid8",
            Xid => "xid",
            PgSnapshot => "pg_snapshot",
            TxidSnapshot => "txid_snapshot",
            Range(kind) => kind.range_name(),
            Multirange(kind) => kind.multirange_name(),
            Array(element) => return format!("{}[]", element.sql_name()),
            Record => "record",
            Composite(composite) => return quoted_name(&composite.name),
            Enum(definition) => return quoted_name(&definition.name),
            Domain(domain) => return quoted_name(&domain.name),
            Unknown => "unknown",
            Void => "void",
        };
        plain.to_string()
    }

    /// The same type without its modifier, as functions and operators are resolved.
    pub fn base(&self) -> DataType {
        match self {
            DataType::Numeric(_) => DataType::Numeric(None),
            DataType::Varchar(_) => DataType::Varchar(None),
            DataType::Bpchar(_) => DataType::Bpchar(None),
            DataType::Bit(_) => DataType::Bit(None),
            DataType::Varbit(_) => DataType::Varbit(None),
            DataType::Array(element) => DataType::Array(Box::new(element.base())),
            other => other.clone(),
        }
    }

    /// Whether values are oids that print as the names of what they stand for.
    pub fn is_reg(&self) -> bool {
        use DataType::*;
        matches!(
            self,
            Regclass | Regtype | Regproc | Regnamespace | Regrole | Regprocedure | Regoper | Regoperator | Regcollation
        )
    }

    /// Whether values that are equal are the same in every way, and rest as the same bytes. Numerics that are equal may
    /// print differently, and so may intervals; zeros of floats differ by their sign.
    pub fn is_one_by_bytes(&self) -> bool {
        use DataType::*;
        matches!(
            self.underlying(),
            Bool | Int2 | Int4 | Int8 | Oid | Text | Varchar(_) | Bytea | Date | Time | Timestamp | TimestampTz | Uuid
        )
    }

    /// The type that a domain is over; any other type is its own. Values are of the same form.
    pub fn underlying(&self) -> &DataType {
        match self {
            DataType::Domain(domain) => domain.base.underlying(),
            other => other,
        }
    }

    /// Fields of a composite type, of a domain over one too.
    pub fn composite(&self) -> Option<&Arc<CompositeDef>> {
        match self.underlying() {
            DataType::Composite(composite) => Some(composite),
            _ => None,
        }
    }

    /// `int2vector` or `oidvector` by its oid: an array of the catalogs that counts from 0 and prints as `1 2`. It
    /// behaves as a domain over the array that it holds.
    pub fn vector(oid: u32) -> Option<DataType> {
        static VECTORS: LazyLock<[Arc<DomainDef>; 2]> = LazyLock::new(|| {
            let vector = |oid, name: &str, element| {
                let (schema, name, base) = ("pg_catalog".into(), name.into(), DataType::Array(Box::new(element)));
                let (checks, default, time_modifier) = (Vec::new(), None, None);
                DomainDef { oid, schema, name, base, not_null: false, checks, default, time_modifier }.into()
            };
            [vector(22, "int2vector", DataType::Int2), vector(30, "oidvector", DataType::Oid)]
        });
        VECTORS.iter().find(|domain| domain.oid == oid).map(|domain| DataType::Domain(domain.clone()))
    }

    /// Whether this is a [`vector`](DataType::vector).
    pub fn is_vector(&self) -> bool {
        matches!(self, DataType::Domain(domain) if matches!(domain.oid, 22 | 30))
    }

    /// The elements' type of an array, of a domain over one too.
    pub fn element(&self) -> Option<&DataType> {
        match self.underlying() {
            DataType::Array(element) => Some(element),
            _ => None,
        }
    }
}

/// An identifier as it must be written: quoted unless it is plain.
fn quoted_name(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let starts = name.bytes().next().is_some_and(plain);
    if starts && name.bytes().all(|byte| plain(byte) || byte.is_ascii_digit() || byte == b'$') {
        return name.to_string();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests;
