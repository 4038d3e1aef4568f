//! What a file says of one column, and SQL types for Arrow's.

use arrow_schema::DataType as ArrowType;
use basalt_types::DataType;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileColumn {
    pub name: String,
    pub ty: DataType,
    pub nullable: bool,
}

/// The SQL type that holds every value of an Arrow type; `None` for those without one.
pub fn sql_type(ty: &ArrowType) -> Option<DataType> {
    Some(match ty {
        ArrowType::Boolean => DataType::Bool,
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::UInt8 => DataType::Int2,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::Int4,
        ArrowType::Int64 | ArrowType::UInt32 => DataType::Int8,
        ArrowType::UInt64 => DataType::Numeric(Some((20, 0))),
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float4,
        ArrowType::Float64 => DataType::Float8,
        ArrowType::Decimal32(p, s) | ArrowType::Decimal64(p, s) | ArrowType::Decimal128(p, s)
            if *s >= 0 && i16::from(*s) <= i16::from(*p) =>
        {
            DataType::Numeric(Some((u16::from(*p), i16::from(*s))))
        }
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::Text,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            DataType::Bytea
        }
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz,
        ArrowType::Dictionary(_, values) => sql_type(values)?,
        ArrowType::List(item) | ArrowType::LargeList(item) => {
            DataType::Array(Box::new(sql_type(item.data_type()).filter(|ty| !matches!(ty, DataType::Array(_)))?))
        }
        _ => return None,
    })
}

/// The type with this oid, without modifier; `None` for types that a COPY cannot carry.
pub fn type_of_oid(oid: u32) -> Option<DataType> {
    use DataType::*;
    let carried = |ty: &DataType| !ty.is_reg() && !matches!(ty, Unknown | Void);
    DataType::from_oid(oid).filter(|ty| match ty {
        Array(element) => carried(element),
        ty => carried(ty),
    })
}
