//! Values between the wire's forms and datums, and the text of values in error details.

use crate::bind::ParamTypes;
use crate::error::{Result, SqlError};
use basalt_engine::Catalog;
use basalt_expr::EvalContext;
use basalt_expr::context::LiteralStyle;
use basalt_expr::io::{binary, text};
use basalt_types::{DataType, Datum};

/// Values of a statement's parameters, and their types; none of a statement that was not prepared.
#[derive(Clone, Default)]
pub(crate) struct Given {
    pub values: Vec<Datum>,
    pub types: Vec<DataType>,
    /// What literals were read by when it was prepared.
    pub style: Option<LiteralStyle>,
}

impl Given {
    pub fn param_types(&self) -> ParamTypes {
        ParamTypes::fixed(self.types.clone(), self.style)
    }
}

/// A type that a client may declare for a parameter; 0 leaves it open. 42704 for unknown oids.
pub(crate) fn type_of_oid(catalog: &Catalog, oid: u32) -> Result<DataType> {
    if oid == 0 {
        return Ok(DataType::Unknown);
    }
    catalog.type_of_oid(oid).ok_or_else(|| {
        SqlError::new("42704", format!("type with OID {oid} does not exist"))
            .with_hint("Send the parameter as text, with type 0.")
    })
}

/// One format per value: none given means text, one means that for all.
#[derive(Clone, Copy)]
pub(crate) enum Formats<'a> {
    All(i16),
    Each(&'a [i16]),
}

impl<'a> Formats<'a> {
    /// Of so many values; `what` they are, for messages.
    pub fn of(formats: &'a [i16], count: usize, what: &str) -> Result<Formats<'a>> {
        if let Some(bad) = formats.iter().find(|format| !matches!(format, 0 | 1)) {
            return Err(SqlError::new("22023", format!("unsupported format code: {bad}")));
        }
        match formats {
            [] => Ok(Formats::All(0)),
            [one] => Ok(Formats::All(*one)),
            all if all.len() == count => Ok(Formats::Each(all)),
            all => {
                let message = format!("bind message has {} {what} formats but {count} are needed", all.len());
                Err(SqlError::new("08P01", message))
            }
        }
    }

    /// Of a value by its place.
    pub fn get(self, at: usize) -> i16 {
        match self {
            Formats::All(format) => format,
            Formats::Each(formats) => formats[at],
        }
    }
}

/// A parameter's value.
pub(crate) fn decode(ty: &DataType, value: Option<&[u8]>, format: i16, eval: &EvalContext) -> Result<Datum> {
    let Some(bytes) = value else { return Ok(Datum::Null) };
    if format == 1 {
        return Ok(binary::parse(ty, bytes, eval)?);
    }
    let text =
        std::str::from_utf8(bytes).map_err(|error| basalt_expr::Error::invalid_utf8(bytes, error.valid_up_to()))?;
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(basalt_expr::Error::invalid_utf8(bytes, at).into());
    }
    Ok(text::parse(ty, text, eval)?)
}

/// A value as text, for details of errors.
pub(crate) fn show(ty: &DataType, value: &Datum, eval: &EvalContext) -> String {
    let mut out = Vec::new();
    match text::format(ty, value, eval, &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => "?".to_string(),
    }
}
