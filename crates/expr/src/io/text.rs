//! The text form of every type, both ways.

use super::column::{Cells, LogicalBuilder, utf8};
use super::{array, bytea, datum_at, fit_bpchar, fit_varchar, float, json, parts, range, record};
use crate::bits;
use crate::byte_char;
use crate::context::EvalContext;
use crate::datetime::*;
use crate::error::{Error, Result};
use crate::inet::{self, Inet};
use crate::interval::{Interval, IntervalFields, parse_interval, write_interval};
use crate::jsonpath;
use crate::macaddr;
use crate::money;
use crate::numeric::{self, Numeric};
use crate::txid_snapshot::Snapshot;
use crate::unsigned;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use basalt_types::{DataType, Datum, EnumDef};

/// `name` holds 63 bytes.
const NAME_BYTES_MAX: usize = 63;

/// Reads a value, applying the type's length or precision as an assignment does.
pub fn parse(ty: &DataType, text: &str, ctx: &EvalContext) -> Result<Datum> {
    let bytes = text.as_bytes();
    Ok(match ty {
        DataType::Bool => Datum::Bool(parts::parse_bool(bytes)?),
        DataType::Int2 => Datum::I16(parts::parse_i16(bytes)?),
        DataType::Int4 => Datum::I32(parts::parse_i32(bytes)?),
        DataType::Int8 => Datum::I64(parts::parse_i64(bytes)?),
        DataType::Float4 => Datum::F32(float::parse_f32(bytes)?),
        DataType::Float8 => Datum::F64(float::parse_f64(bytes)?),
        DataType::Numeric(_) => Numeric::parse(text)?.to_datum(ty)?,
        DataType::Text | DataType::Unknown => Datum::text(text),
        DataType::Varchar(limit) => Datum::text(fit_varchar(text, *limit, false)?),
        DataType::Bpchar(length) => Datum::text(&fit_bpchar(text, *length, false)?),
        DataType::Name => Datum::text(cut_name(text)),
        DataType::Char => Datum::text(&byte_char::parse(text)),
        DataType::Bytea => Datum::Bytes(bytea::parse(bytes)?.into()),
        DataType::Date => Datum::I32(parse_date(text, ctx)?),
        DataType::Time => Datum::I64(parse_time(text, ctx)?),
        DataType::Timestamp => Datum::I64(parse_timestamp(text, ctx)?),
        DataType::TimestampTz => Datum::I64(parse_timestamptz(text, ctx)?),
        DataType::Interval => Datum::Fixed16(parse_interval(text, IntervalFields::All, ctx.interval_style)?.to_bytes()),
        DataType::TimeTz => Datum::Fixed16(parse_timetz(text, ctx)?.to_bytes()),
        DataType::Bit(_) | DataType::Varbit(_) => Datum::text(&bits::fit(&bits::parse(text)?, ty, false)?),
        DataType::Money => Datum::I64(money::parse(text)?),
        DataType::Uuid => Datum::Fixed16(parts::parse_uuid(bytes)?),
        DataType::Inet => Datum::Bytes(inet::parse_inet(text)?.encode().into()),
        DataType::Cidr => Datum::Bytes(inet::parse_cidr(text)?.encode().into()),
        DataType::Macaddr => Datum::I64(macaddr::parse_six(text)?),
        DataType::Macaddr8 => Datum::I64(macaddr::parse_eight(text)?),
        DataType::Json => {
            json::validate(text)?;
            Datum::text(text)
        }
        DataType::Jsonb => Datum::text(&json::canonical(text)?),
        DataType::JsonPath => Datum::text(&jsonpath::canonical(text)?),
        DataType::Oid => Datum::I64(i64::from(parts::parse_oid(bytes)?)),
        DataType::PgLsn => Datum::I64(unsigned::parse_lsn(text)?),
        DataType::Xid8 => Datum::I64(unsigned::stored(unsigned::parse_number(text))),
        DataType::Xid => Datum::I64(i64::from(unsigned::parse_number(text) as u32)),
        DataType::PgSnapshot | DataType::TxidSnapshot => Datum::text(&Snapshot::parse(text)?.print()),
        DataType::Regclass
        | DataType::Regtype
        | DataType::Regproc
        | DataType::Regnamespace
        | DataType::Regrole
        | DataType::Regprocedure
        | DataType::Regoper
        | DataType::Regoperator
        | DataType::Regcollation => Datum::I64(i64::from(parse_named_oid(ty, text, ctx)?)),
        DataType::Array(element) => array::parse(element, text, ctx)?,
        DataType::Range(kind) => range::parse(*kind, text, ctx)?,
        DataType::Multirange(kind) => range::parse_multirange(*kind, text, ctx)?,
        DataType::Composite(composite) => record::parse(composite, text, ctx)?,
        DataType::Enum(definition) => parse_label(definition, text)?,
        DataType::Domain(domain) if ty.is_vector() => array::parse_vector(&domain.base, text, ctx)?,
        DataType::Domain(domain) => {
            let value = parse(crate::domain::bottom(domain), text, ctx)?;
            crate::domain::fit(domain, ty, value, ctx)?
        }
        DataType::Record => return Err(record::no_input()),
        DataType::Void => {
            return Err(Error::not_supported(format!("input of type {} is not supported", ty.sql_name())));
        }
    })
}

fn cut_name(text: &str) -> &str {
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn parse_named_oid(ty: &DataType, text: &str, ctx: &EvalContext) -> Result<u32> {
    // Of operators it is a name.
    let is_operator = matches!(ty, DataType::Regoper | DataType::Regoperator);
    if text == "-" && !is_operator {
        return Ok(0);
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return parts::parse_oid(text.as_bytes());
    }
    match &ctx.names {
        Some(names) => names.oid_of(ty, text),
        None => Err(Error::not_supported(format!("{} by name needs a catalog: \"{text}\"", ty.sql_name()))),
    }
}

/// Appends the text form. Null has none: the caller writes what stands for it.
pub fn format(ty: &DataType, value: &Datum, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    if let (true, Datum::Bytes(bytes)) = (ty.is_vector(), value) {
        return array::format_vector(ty, bytes, ctx, out);
    }
    let ty = ty.underlying();
    match (ty, value) {
        (_, Datum::Null) => {}
        (DataType::Range(_) | DataType::Multirange(_), value) => range::format(ty, value, ctx, out)?,
        (DataType::Composite(composite), value) => record::format(composite, value, ctx, out)?,
        (DataType::Enum(definition), Datum::F64(position)) => {
            out.extend_from_slice(label(definition, *position)?.as_bytes());
        }
        (_, Datum::Bool(value)) => out.push(if *value { b't' } else { b'f' }),
        (_, Datum::I16(value)) => put_integer(*value, out),
        (DataType::Date, Datum::I32(value)) => write_date(*value, ctx, out),
        (_, Datum::I32(value)) => put_integer(*value, out),
        (_, Datum::I64(value)) => format_i64(ty, *value, ctx, out),
        (_, Datum::I128(value)) => numeric::write_scaled(*value, decimal_scale(ty), out),
        (_, Datum::F32(value)) => float::write_f32(*value, ctx.extra_float_digits, out),
        (_, Datum::F64(value)) => float::write_f64(*value, ctx.extra_float_digits, out),
        (_, Datum::Bytes(value)) => format_bytes(ty, value, ctx, out)?,
        (DataType::Interval, Datum::Fixed16(value)) => {
            write_interval(Interval::from_bytes(*value), ctx.interval_style, out);
        }
        (DataType::TimeTz, Datum::Fixed16(value)) => write_timetz(TimeTz::from_bytes(*value), out),
        (_, Datum::Fixed16(value)) => parts::write_uuid(value, out),
    }
    Ok(())
}

fn decimal_scale(ty: &DataType) -> usize {
    ty.decimal().map_or(0, |(_, scale)| scale as usize)
}

fn put_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn format_i64(ty: &DataType, value: i64, ctx: &EvalContext, out: &mut Vec<u8>) {
    match ty {
        DataType::Time => write_time(value, out),
        DataType::Money => money::write(value, out),
        DataType::Macaddr => macaddr::write(&macaddr::six(value), out),
        DataType::Macaddr8 => macaddr::write(&macaddr::eight(value), out),
        DataType::Timestamp => write_timestamp(value, ctx, out),
        DataType::TimestampTz => write_timestamptz(value, ctx, out),
        DataType::Numeric(_) => numeric::write_scaled(i128::from(value), decimal_scale(ty), out),
        DataType::PgLsn => unsigned::write_lsn(value, out),
        DataType::Xid8 => put_integer(unsigned::number(value), out),
        ty if ty.is_reg() => {
            let name = ctx.names.as_ref().and_then(|names| names.name_of(ty, value as u32));
            match (name, value) {
                (Some(name), _) => out.extend_from_slice(name.as_bytes()),
                (None, 0) if !matches!(ty, DataType::Regoper | DataType::Regoperator) => out.push(b'-'),
                (None, value) => put_integer(value, out),
            }
        }
        _ => put_integer(value, out),
    }
}

fn format_bytes(ty: &DataType, value: &[u8], ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    match ty {
        DataType::Numeric(_) => numeric::write_stored(value, out)?,
        DataType::Bytea => bytea::write(value, ctx.bytea_output, out),
        DataType::Char => byte_char::write(value, out),
        DataType::Inet => out.extend_from_slice(Inet::decode(value)?.print().as_bytes()),
        DataType::Cidr => out.extend_from_slice(Inet::decode(value)?.with_length().as_bytes()),
        DataType::Array(element) => array::format(element, value, ctx, out)?,
        _ => out.extend_from_slice(value),
    }
    Ok(())
}

/// Reads an enum's label.
fn parse_label(definition: &EnumDef, text: &str) -> Result<Datum> {
    match definition.label_named(text) {
        Some(label) => Ok(Datum::F64(label.position)),
        None => Err(Error::new(
            "22P02",
            format!(
                "invalid input value for enum {}: \"{text}\"",
                DataType::Enum(definition.clone().into()).sql_name()
            ),
        )),
    }
}

/// The label of an enum value; XX001 if there is none.
pub fn label(definition: &EnumDef, position: f64) -> Result<&str> {
    match definition.label_at(position) {
        Some(label) => Ok(&label.label),
        None => Err(Error::new("XX001", format!("enum {} has no label at {position}", definition.name))),
    }
}

/// Reads a field of COPY into the builder, which is of this type. `text` is not null.
#[inline]
pub fn parse_into(text: &[u8], builder: &mut LogicalBuilder, ctx: &EvalContext) -> Result<()> {
    let (ty, cells) = builder.split();
    match (ty, cells) {
        (DataType::Int2, Cells::Int2(cells)) => cells.append_value(parts::parse_i16(text)?),
        (DataType::Int4, Cells::Int4(cells)) => cells.append_value(parts::parse_i32(text)?),
        (DataType::Int8, Cells::Int8(cells)) => cells.append_value(parts::parse_i64(text)?),
        (DataType::Numeric(Some((precision, scale))), Cells::Decimal(cells)) => {
            match numeric::parse_small(text).and_then(|(value, from)| fit_decimal(value, from, *precision, *scale)) {
                Some(value) => cells.append_value(value),
                None => return parse_slowly(text, builder, ctx),
            }
        }
        (DataType::Text, Cells::Text(cells)) => cells.append_value(utf8(text)?),
        (DataType::Varchar(limit), Cells::Text(cells)) => cells.append_value(fit_varchar(utf8(text)?, *limit, false)?),
        (DataType::Bpchar(length), Cells::Text(cells)) => cells.append_value(fit_bpchar(utf8(text)?, *length, false)?),
        (DataType::Date, Cells::Date(cells)) => cells.append_value(parse_date(utf8(text)?, ctx)?),
        (DataType::Timestamp, Cells::Timestamp(cells)) => cells.append_value(parse_timestamp(utf8(text)?, ctx)?),
        (DataType::Bool, Cells::Bool(cells)) => cells.append_value(parts::parse_bool(text)?),
        (DataType::Float8, Cells::Float8(cells)) => cells.append_value(float::parse_f64(text)?),
        (DataType::Float4, Cells::Float4(cells)) => cells.append_value(float::parse_f32(text)?),
        _ => return parse_slowly(text, builder, ctx),
    }
    Ok(())
}

/// A scaled integer at the column's scale, if it keeps its value and has no more digits than allowed.
#[inline]
fn fit_decimal(value: i128, from: u16, precision: u16, scale: i16) -> Option<i128> {
    let fitted = if i32::from(from) == i32::from(scale) {
        value
    } else {
        numeric::rescale_i128(value, from.into(), scale.into())?
    };
    (fitted.unsigned_abs() < numeric::power_of_ten(u32::from(precision))?.unsigned_abs()).then_some(fitted)
}

#[cold]
#[inline(never)]
fn parse_slowly(text: &[u8], builder: &mut LogicalBuilder, ctx: &EvalContext) -> Result<()> {
    let value = parse(builder.ty(), utf8(text)?, ctx)?;
    builder.push(&value)
}

/// Appends the text of one cell of a logical array; false, and nothing written, if it is null.
///
/// # Panics
/// If the array is not of the type's Arrow form.
pub fn format_cell(ty: &DataType, array: &dyn Array, row: usize, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<bool> {
    if array.is_null(row) {
        return Ok(false);
    }
    match ty.underlying() {
        _ if ty.is_vector() => array::format_vector(ty, array.as_binary_view().value(row), ctx, out)?,
        DataType::Bool => out.push(if array.as_boolean().value(row) { b't' } else { b'f' }),
        DataType::Int2 => put_integer(array.as_primitive::<Int16Type>().value(row), out),
        DataType::Int4 => put_integer(array.as_primitive::<Int32Type>().value(row), out),
        DataType::Int8 | DataType::Oid => put_integer(array.as_primitive::<Int64Type>().value(row), out),
        DataType::Float4 => {
            float::write_f32(array.as_primitive::<Float32Type>().value(row), ctx.extra_float_digits, out);
        }
        DataType::Float8 => {
            float::write_f64(array.as_primitive::<Float64Type>().value(row), ctx.extra_float_digits, out);
        }
        DataType::Numeric(_) => match ty.decimal() {
            Some((_, scale)) => {
                numeric::write_scaled(array.as_primitive::<Decimal128Type>().value(row), scale as usize, out);
            }
            None => numeric::write_stored(array.as_binary_view().value(row), out)?,
        },
        DataType::Text
        | DataType::Varchar(_)
        | DataType::Bpchar(_)
        | DataType::Json
        | DataType::Jsonb
        | DataType::JsonPath
        | DataType::Name
        | DataType::Bit(_)
        | DataType::Varbit(_)
        | DataType::PgSnapshot
        | DataType::TxidSnapshot
        | DataType::Unknown
        | DataType::Void => out.extend_from_slice(array.as_string_view().value(row).as_bytes()),
        DataType::Bytea => bytea::write(array.as_binary_view().value(row), ctx.bytea_output, out),
        DataType::Date => write_date(array.as_primitive::<Date32Type>().value(row), ctx, out),
        DataType::Timestamp => {
            write_timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row), ctx, out);
        }
        DataType::TimestampTz => {
            write_timestamptz(array.as_primitive::<TimestampMicrosecondType>().value(row), ctx, out);
        }
        ty => format(ty, &datum_at(ty, array, row), ctx, out)?,
    }
    Ok(true)
}
