//! Type names: syntax to types.

use super::BindContext;
use crate::error::{Result, Severity, SqlError};
use basalt_expr::functions::pattern_types::type_named;
use basalt_expr::interval::IntervalFields;
use basalt_types::DataType;
use sqlparser::ast::{self, ArrayElemTypeDef, CharacterLength, ExactNumberInfo, TimezoneInfo};

/// Of seconds.
const DECIMALS_MAX: u64 = 6;
const PRECISION_MAX: u64 = 1000;
const LENGTH_MAX: u64 = 10_485_760;
const BITS_MAX: u64 = 83_886_080;

/// The type that a type name means. 42704 if there is none of the name, 22023 for a bad modifier.
pub fn resolve(ctx: &BindContext, ty: &ast::DataType) -> Result<DataType> {
    resolve_in(Some(ctx), ty)
}

/// The built-in type that a type name means, if there is one.
pub fn built_in(ty: &ast::DataType) -> Option<DataType> {
    resolve_in(None, ty).ok()
}

fn resolve_in(ctx: Option<&BindContext>, ty: &ast::DataType) -> Result<DataType> {
    use ast::DataType as Ast;
    Ok(match ty {
        Ast::Bool | Ast::Boolean => DataType::Bool,
        Ast::Int2(Some(_)) => return Err(no_modifier("int2")),
        Ast::Int4(Some(_)) => return Err(no_modifier("int4")),
        Ast::Int8(Some(_)) => return Err(no_modifier("int8")),
        Ast::Int2(_) | Ast::SmallInt(_) => DataType::Int2,
        Ast::Int(_) | Ast::Int4(_) | Ast::Integer(_) => DataType::Int4,
        Ast::Int8(_) | Ast::BigInt(_) => DataType::Int8,
        Ast::Float4 | Ast::Real => DataType::Float4,
        Ast::Float8 | Ast::DoublePrecision | Ast::Double(_) => DataType::Float8,
        Ast::Float(info) => float(info)?,
        Ast::Numeric(info) | Ast::Decimal(info) | Ast::Dec(info) => numeric(info)?,
        Ast::Text => DataType::Text,
        Ast::Varchar(length) | Ast::CharacterVarying(length) | Ast::CharVarying(length) => {
            DataType::Varchar(character_length("varchar", length.as_ref())?)
        }
        Ast::Char(length) | Ast::Character(length) => {
            DataType::Bpchar(Some(character_length("char", length.as_ref())?.unwrap_or(1)))
        }
        Ast::Bytea => DataType::Bytea,
        Ast::Date => DataType::Date,
        Ast::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Time,
        Ast::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Timestamp,
        Ast::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => DataType::TimestampTz,
        Ast::Time(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => DataType::TimeTz,
        Ast::Bit(length) => DataType::Bit(Some(bit_length("bit", *length)?.unwrap_or(1))),
        Ast::BitVarying(length) | Ast::VarBit(length) => DataType::Varbit(bit_length("varbit", *length)?),
        Ast::Interval { .. } => DataType::Interval,
        Ast::Uuid => DataType::Uuid,
        Ast::JSON => DataType::Json,
        Ast::JSONB => DataType::Jsonb,
        Ast::Regclass => DataType::Regclass,
        Ast::Array(ArrayElemTypeDef::SquareBracket(element, _)) => array_of(resolve_in(ctx, element)?),
        Ast::Array(ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::Parenthesis(element)) => {
            array_of(resolve_in(ctx, element)?)
        }
        Ast::Custom(name, modifiers) => custom(ctx, name, modifiers)?,
        other => {
            return Err(SqlError::not_supported(format!("type {} is not supported", other.to_string().to_lowercase())));
        }
    })
}

/// The modifier of a date or time type, which its length function takes (`atttypmod`): decimals of seconds, and
/// of an interval its fields. Other types carry theirs.
pub(super) fn time_modifier(ctx: Option<&BindContext>, ty: &ast::DataType) -> Option<i32> {
    use ast::DataType as Ast;
    let zoned = |zone: &TimezoneInfo| matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz);
    let (name, suffix) = match ty {
        Ast::Time(_, zone) => ("TIME", if zoned(zone) { " WITH TIME ZONE" } else { "" }),
        Ast::Timestamp(_, zone) => ("TIMESTAMP", if zoned(zone) { " WITH TIME ZONE" } else { "" }),
        Ast::Interval { .. } => ("INTERVAL", ""),
        Ast::Custom(name, _) => match custom(None, name, &[]) {
            Ok(DataType::Time) => ("TIME", ""),
            Ok(DataType::TimeTz) => ("TIME", " WITH TIME ZONE"),
            Ok(DataType::TimestampTz) => ("TIMESTAMP", " WITH TIME ZONE"),
            _ => ("TIMESTAMP", ""),
        },
        _ => ("", ""),
    };
    let decimals = |precision: &u64| {
        if *precision > DECIMALS_MAX
            && let Some(ctx) = ctx
        {
            let message = format!("{name}({precision}){suffix} precision reduced to maximum allowed, {DECIMALS_MAX}");
            ctx.warnings.lock().push(SqlError::notice(Severity::Warning, "22023", message));
        }
        (*precision).min(DECIMALS_MAX) as i32
    };
    match ty {
        Ast::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => time_modifier(ctx, element),
        Ast::Time(precision, _) | Ast::Timestamp(precision, _) => precision.as_ref().map(decimals),
        Ast::Interval { fields: None, precision: None } => None,
        Ast::Interval { fields, precision } => {
            Some(interval_modifier(fields.as_ref().and_then(interval_fields), precision.as_ref().map(decimals)))
        }
        Ast::Custom(name, modifiers) => {
            let is_time = matches!(
                custom(None, name, &[]),
                Ok(DataType::Time | DataType::TimeTz | DataType::Timestamp | DataType::TimestampTz)
            );
            modifiers.first().filter(|_| is_time)?.parse::<u64>().ok().as_ref().map(decimals)
        }
        _ => None,
    }
}

/// `INTERVAL`'s typmod: the mask of its fields, and decimals.
pub(super) fn interval_modifier(fields: Option<IntervalFields>, decimals: Option<i32>) -> i32 {
    let [month, year, day, hour, minute, second] = [1, 2, 3, 10, 11, 12].map(|bit| 1 << bit);
    use IntervalFields::*;
    let range = match fields {
        None | Some(All) => 0x7fff,
        Some(Year) => year,
        Some(Month) => month,
        Some(YearToMonth) => year | month,
        Some(Day) => day,
        Some(DayToHour) => day | hour,
        Some(DayToMinute) => day | hour | minute,
        Some(DayToSecond) => day | hour | minute | second,
        Some(Hour) => hour,
        Some(HourToMinute) => hour | minute,
        Some(HourToSecond) => hour | minute | second,
        Some(Minute) => minute,
        Some(MinuteToSecond) => minute | second,
        Some(Second) => second,
    };
    range << 16 | decimals.unwrap_or(0xffff)
}

/// The fields of an interval's type.
pub(super) fn interval_fields(fields: &ast::IntervalFields) -> Option<IntervalFields> {
    named_fields(&fields.to_string())
}

/// Fields by their names, as in `DAY TO SECOND`.
pub(super) fn named_fields(names: &str) -> Option<IntervalFields> {
    use IntervalFields::*;
    Some(match names.to_ascii_uppercase().as_str() {
        "YEAR" => Year,
        "MONTH" => Month,
        "YEAR TO MONTH" => YearToMonth,
        "DAY" => Day,
        "DAY TO HOUR" => DayToHour,
        "DAY TO MINUTE" => DayToMinute,
        "DAY TO SECOND" => DayToSecond,
        "HOUR" => Hour,
        "HOUR TO MINUTE" => HourToMinute,
        "HOUR TO SECOND" => HourToSecond,
        "MINUTE" => Minute,
        "MINUTE TO SECOND" => MinuteToSecond,
        "SECOND" => Second,
        _ => return None,
    })
}

/// PostgreSQL's arrays have any number of dimensions under one type.
fn array_of(element: DataType) -> DataType {
    match element {
        DataType::Array(_) => element,
        element => DataType::Array(Box::new(element)),
    }
}

fn custom(ctx: Option<&BindContext>, name: &ast::ObjectName, modifiers: &[String]) -> Result<DataType> {
    let parts: Vec<String> = super::names::parts(name)?;
    let (last, schema) = match parts.as_slice() {
        [last] => (last, None),
        [schema, last] => (last, Some(schema.as_str())),
        [_, schema, last] => (last, Some(schema.as_str())),
        _ => return Err(unknown_type(name)),
    };
    if let Some(oid) = super::pinned::type_oid(last) {
        let missing = || SqlError::new("42704", format!("type with OID {oid} does not exist"));
        return ctx.and_then(|ctx| ctx.catalog.type_of_oid(oid)).ok_or_else(missing);
    }
    if schema.is_some_and(|schema| schema != "pg_catalog") {
        return of_user(ctx, schema, last, modifiers).ok_or_else(|| unknown_type(name))?;
    }
    let quoted = matches!(name.0.last(), Some(ast::ObjectNamePart::Identifier(ident)) if ident.quote_style.is_some());
    if last == "char" && !quoted && schema.is_none() {
        return Ok(DataType::Bpchar(Some(1)));
    }
    let alias = match last.as_str() {
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "real" => "float4",
        "boolean" => "bool",
        "decimal" => "numeric",
        other => other,
    };
    let Some(ty) = type_named(alias) else {
        let none = || super::unbuilt::type_refused(last).unwrap_or_else(|| unknown_type(name));
        return of_user(ctx, schema, last, modifiers).ok_or_else(none)?;
    };
    let numbers: Vec<u64> = modifiers.iter().filter_map(|text| text.parse().ok()).collect();
    Ok(match (ty, numbers.as_slice()) {
        (DataType::Varchar(_), [length]) => DataType::Varchar(Some(checked_length("varchar", *length)?)),
        (DataType::Bpchar(_), [length]) => DataType::Bpchar(Some(checked_length("char", *length)?)),
        (DataType::Numeric(_), [precision]) => numeric(&ExactNumberInfo::Precision(*precision))?,
        (DataType::Numeric(_), [precision, scale]) => {
            numeric(&ExactNumberInfo::PrecisionAndScale(*precision, *scale as i64))?
        }
        (
            ty @ (DataType::Bit(_)
            | DataType::Varbit(_)
            | DataType::Time
            | DataType::TimeTz
            | DataType::Timestamp
            | DataType::TimestampTz
            | DataType::Interval),
            _,
        ) => ty,
        (ty, _) if modifiers.is_empty() => ty,
        _ => return Err(no_modifier(alias)),
    })
}

fn no_modifier(name: &str) -> SqlError {
    SqlError::syntax(format!("type modifier is not allowed for type \"{name}\""))
}

/// The type of a name that stands before a literal.
pub(super) fn named(ctx: &BindContext, name: &ast::Ident) -> Result<DataType> {
    custom(Some(ctx), &ast::ObjectName::from(vec![name.clone()]), &[])
}

/// A type that a user defined, or that of a relation's rows.
fn of_user(
    ctx: Option<&BindContext>,
    schema: Option<&str>,
    name: &str,
    modifiers: &[String],
) -> Option<Result<DataType>> {
    let ctx = ctx?;
    let named = |schema: &str| ctx.catalog.type_named(ctx.namespace(schema)?.id, name);
    let found = match schema {
        Some(schema) => named(schema),
        None => ctx.search_path.iter().find_map(|schema| named(schema)),
    }?;
    if !modifiers.is_empty() {
        let message = format!("type modifier is not allowed for type \"{name}\"");
        return Some(Err(SqlError::new("42601", message)));
    }
    Some(Ok(found))
}

fn unknown_type(name: &ast::ObjectName) -> SqlError {
    SqlError::new("42704", format!("type \"{}\" does not exist", name.to_string().replace('"', "")))
}

fn float(info: &ExactNumberInfo) -> Result<DataType> {
    match info {
        ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => Ok(DataType::Float8),
        ExactNumberInfo::Precision(1..=24) => Ok(DataType::Float4),
        ExactNumberInfo::Precision(0) => Err(invalid("precision for type float must be at least 1 bit")),
        _ => Err(invalid("precision for type float must be less than 54 bits")),
    }
}

fn numeric(info: &ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(DataType::Numeric(None)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if !(1..=PRECISION_MAX).contains(&precision) {
        return Err(invalid(format!("NUMERIC precision {precision} must be between 1 and {PRECISION_MAX}")));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(invalid(format!("NUMERIC scale {scale} must be between -1000 and 1000")));
    }
    Ok(DataType::Numeric(Some((precision as u16, scale as i16))))
}

fn character_length(type_name: &str, length: Option<&CharacterLength>) -> Result<Option<u32>> {
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Ok(Some(checked_length(type_name, *length)?)),
        _ => Ok(None),
    }
}

fn bit_length(type_name: &str, length: Option<u64>) -> Result<Option<u32>> {
    match length {
        None => Ok(None),
        Some(0) => Err(invalid(format!("length for type {type_name} must be at least 1"))),
        Some(length @ 1..=BITS_MAX) => Ok(Some(length as u32)),
        Some(_) => Err(invalid(format!("length for type {type_name} cannot exceed {BITS_MAX}"))),
    }
}

fn checked_length(type_name: &str, length: u64) -> Result<u32> {
    match length {
        0 => Err(invalid(format!("length for type {type_name} must be at least 1"))),
        1..=LENGTH_MAX => Ok(length as u32),
        _ => Err(invalid(format!("length for type {type_name} cannot exceed {LENGTH_MAX}"))),
    }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new("22023", message)
}

/// The default of a domain: SQL text.
pub fn domain_default(ty: &DataType) -> Option<&str> {
    match ty {
        DataType::Domain(domain) => domain.default.as_deref(),
        _ => None,
    }
}
