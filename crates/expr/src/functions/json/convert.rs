//! SQL values as JSON: what `to_json`, the builders and the aggregates write.
//!
//! `json` is written compactly, as it comes; `jsonb` canonically.

use super::invalid;
use crate::array_value::{self, ArrayValue};
use crate::context::{DateFormat, EvalContext};
use crate::error::Result;
use crate::eval::room::check_longer;
use crate::functions::arg::*;
use crate::io;
use crate::io::json::{is_number, write_string};
use crate::record_value;
use basalt_types::{CompositeDef, DataType, Datum};
use std::cell::OnceCell;

/// Writes values for one call.
pub(crate) struct JsonWriter<'a> {
    ctx: &'a EvalContext,
    /// The session's settings with dates as ISO 8601 has them, where they are others.
    iso: OnceCell<Box<EvalContext>>,
    canonical: bool,
}

impl<'a> JsonWriter<'a> {
    /// For results of type `json` or `jsonb`.
    pub fn new(ty: &DataType, ctx: &'a EvalContext) -> JsonWriter<'a> {
        JsonWriter { ctx, iso: OnceCell::new(), canonical: *ty == DataType::Jsonb }
    }

    fn iso(&self) -> &EvalContext {
        if self.ctx.date_format == DateFormat::Iso {
            return self.ctx;
        }
        self.iso.get_or_init(|| Box::new(EvalContext { date_format: DateFormat::Iso, ..self.ctx.clone() }))
    }

    /// Appends a value. 54000 if that becomes too long.
    pub fn write(&self, value: &Datum, ty: &DataType, out: &mut Vec<u8>) -> Result<()> {
        if let Datum::Bytes(bytes) = value {
            check_longer(out.len(), bytes.len())?;
        }
        match (value, ty) {
            (Datum::Null, _) => out.extend_from_slice(b"null"),
            (Datum::Bool(value), _) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            (value, DataType::Jsonb) => out.extend_from_slice(Txt::of(value, ty)?.as_bytes()),
            (value, DataType::Json) => {
                let text = Txt::of(value, ty)?;
                match self.canonical {
                    true => out.extend_from_slice(io::json::canonical(text)?.as_bytes()),
                    false => out.extend_from_slice(text.as_bytes()),
                }
            }
            (value, DataType::Domain(domain)) => self.write(value, &domain.base, out)?,
            (Datum::Bytes(bytes), DataType::Array(element)) => {
                let comma = if self.canonical { ", " } else { "," };
                self.write_array_with(&array_value::decode(element, bytes)?, element, comma, out)?;
            }
            (value, DataType::Composite(composite)) => self.write_row(value, composite, ",", out)?,
            (value, ty) => {
                let text = self.text(value, ty)?;
                if is_numeric(ty) && is_number(&text) {
                    // A document's numbers are numeric: without exponents and negative zeros.
                    let written = match self.canonical && matches!(ty, DataType::Float4 | DataType::Float8) {
                        true => io::json::canonical(&text)?,
                        false => text,
                    };
                    out.extend_from_slice(written.as_bytes());
                } else {
                    write_string(&text, out);
                }
            }
        }
        Ok(())
    }

    /// An array, each dimension as arrays of the next; `comma` stands between those of the first.
    pub fn write_array_with(
        &self,
        array: &ArrayValue,
        element: &DataType,
        comma: &str,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let lengths: Vec<usize> = array.dimensions.iter().map(|dimension| dimension.length as usize).collect();
        self.write_level(&array.elements, &lengths, element, comma, out)
    }

    fn write_level(
        &self,
        elements: &[Datum],
        lengths: &[usize],
        element: &DataType,
        comma: &str,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let inner = lengths.get(1..).unwrap_or_default();
        let size = inner.iter().product::<usize>().max(1);
        let plain = if self.canonical { ", " } else { "," };
        out.push(b'[');
        for (at, part) in elements.chunks(size).enumerate() {
            if at > 0 {
                out.extend_from_slice(comma.as_bytes());
            }
            match inner {
                [] => self.write(&part[0], element, out)?,
                inner => self.write_level(part, inner, element, plain, out)?,
            }
        }
        out.push(b']');
        Ok(())
    }

    /// A composite value as an object, `comma` between its members; `json` keeps the order of the attributes.
    pub fn write_row(&self, value: &Datum, composite: &CompositeDef, comma: &str, out: &mut Vec<u8>) -> Result<()> {
        let fields = record_value::decode(composite, value)?;
        let mut object = vec![b'{'];
        for (nth, (at, attribute)) in composite.live().enumerate() {
            if nth > 0 {
                object.extend_from_slice(comma.as_bytes());
            }
            write_string(&attribute.name, &mut object);
            object.push(b':');
            self.write(&fields[at], &attribute.ty, &mut object)?;
        }
        object.push(b'}');
        match self.canonical {
            true => out.extend_from_slice(io::json::canonical(&super::text_from(object)?)?.as_bytes()),
            false => out.extend_from_slice(&object),
        }
        Ok(())
    }

    /// A value as the key of a member. 22023 for values that are no scalars.
    pub fn key(&self, value: &Datum, ty: &DataType) -> Result<String> {
        match (value, ty) {
            (_, DataType::Json | DataType::Jsonb | DataType::Array(_) | DataType::Record | DataType::Composite(_)) => {
                Err(invalid("key value must be scalar, not array, composite, or json"))
            }
            (Datum::Bool(value), _) => Ok(value.to_string()),
            (value, ty) => self.text(value, ty),
        }
    }

    /// The text form, with dates and times as XML Schema has them.
    fn text(&self, value: &Datum, ty: &DataType) -> Result<String> {
        let mut out = Vec::new();
        io::text::format(ty, value, self.iso(), &mut out)?;
        let mut text = super::text_from(out)?;
        if matches!(ty, DataType::Timestamp | DataType::TimestampTz)
            && let Some(blank) = text.find(' ')
        {
            text.replace_range(blank..=blank, "T");
            // An offset always has minutes.
            let end = text.find(' ').unwrap_or(text.len());
            if *ty == DataType::TimestampTz
                && text[..end].rfind(['+', '-']).is_some_and(|sign| sign > blank && end - sign == 3)
            {
                text.insert_str(end, ":00");
            }
        }
        Ok(text)
    }
}

fn is_numeric(ty: &DataType) -> bool {
    use DataType::*;
    matches!(ty, Int2 | Int4 | Int8 | Float4 | Float8 | Numeric(_))
}
