//! Type categories and the preferred type of each (`pg_type.typcategory`, `typispreferred`).

use basalt_types::DataType;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Category {
    Boolean,
    Numeric,
    String,
    DateTime,
    Timespan,
    User,
    Array,
    Composite,
    Enum,
    Range,
    Unknown,
    Pseudo,
    Internal,
    BitString,
    Network,
}

pub fn category(ty: &DataType) -> Category {
    use DataType::*;
    match ty {
        Bool => Category::Boolean,
        Int2 | Int4 | Int8 | Float4 | Float8 | Numeric(_) | Oid | Regclass | Regtype | Regproc | Regnamespace
        | Regrole | Regprocedure | Regoper | Regoperator | Regcollation | Money => Category::Numeric,
        Text | Varchar(_) | Bpchar(_) | Name => Category::String,
        Date | Time | TimeTz | Timestamp | TimestampTz => Category::DateTime,
        Interval => Category::Timespan,
        Bit(_) | Varbit(_) => Category::BitString,
        Inet | Cidr => Category::Network,
        Bytea | Uuid | Macaddr | Macaddr8 | PgLsn | Xid8 | Xid | PgSnapshot | TxidSnapshot | Json | Jsonb
        | JsonPath => Category::User,
        Char => Category::Internal,
        Array(_) => Category::Array,
        Unknown => Category::Unknown,
        Composite(composite) if composite.is_anonymous() => Category::Pseudo,
        Composite(_) => Category::Composite,
        Enum(_) => Category::Enum,
        Range(_) | Multirange(_) => Category::Range,
        Domain(domain) => category(&domain.base),
        Record | Void => Category::Pseudo,
    }
}

pub fn is_preferred(ty: &DataType) -> bool {
    use DataType::*;
    matches!(ty, Bool | Float8 | Oid | Text | TimestampTz | Interval | Varbit(_) | Inet)
}
