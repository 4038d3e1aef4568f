//! What SQL means: values' text and wire forms, casts, operators, functions and aggregates, as PostgreSQL
//! 15 defines them. No plans, no I/O; every engine calls the same code.
//!
//! A value is a [`basalt_types::Datum`] alone, or a cell of an Arrow array of
//! [`basalt_types::DataType::to_arrow`]; both carry no SQL type, so every entry takes it beside them.

pub mod aggregates;
pub mod array_value;
pub mod bits;
pub mod byte_char;
pub mod cast;
pub mod context;
pub mod datetime;
pub mod domain;
pub mod error;
pub mod eval;
mod fold;
pub mod functions;
pub mod inet;
pub mod interval;
pub mod io;
pub mod jsonpath;
pub mod macaddr;
pub mod money;
pub mod numeric;
pub mod operators;
mod order;
pub mod pattern;
pub mod random;
pub mod range_value;
pub mod record_value;
pub mod resolve;
pub mod tree;
pub mod txid_snapshot;
pub mod unsigned;
pub mod window;
pub mod words;

pub use context::EvalContext;
pub use error::{Error, Result};
pub use functions::{Function, Registry, Volatility};
pub use interval::Interval;
pub use numeric::Numeric;
pub use tree::{Expr, Truth};
