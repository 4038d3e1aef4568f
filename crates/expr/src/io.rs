//! Values in and out: PostgreSQL's text and binary forms of every type.
//!
//! Two levels each. A [`basalt_types::Datum`] at a time, for literals and parameters; and a field straight
//! into a [`LogicalBuilder`] or out of an Arrow array, without allocation per field, for COPY and results.
//! A field of COPY or of a query's parameter is assigned: lengths and precisions of the type apply.

mod array;
pub mod binary;
mod bytea;
mod column;
pub(crate) mod float;
pub mod json;
mod parts;
mod range;
mod record;
#[cfg(test)]
mod tests;
pub mod text;

pub use column::{LogicalBuilder, datum_at};
pub(crate) use float::parse_f64;
pub use float::{write_f32, write_f64};
pub(crate) use parts::{fit_bpchar, fit_varchar};

/// An integer argument that came as text.
pub(crate) fn parse_width(text: &str) -> crate::Result<i64> {
    parts::parse_i32(text.as_bytes()).map(i64::from)
}
