//! The words that every other crate speaks: identities, versions, types, rows, keys, column batches.
//!
//! Nothing here does I/O, reads a clock, spawns a thread or knows what SQL means. A change to a layout
//! in [`row`], [`key`], [`jsonb`] or [`numeric`] changes bytes on disk: see `docs/format/`.

pub mod array;
pub mod automaton;
pub mod batch;
pub mod datatype;
pub mod datum;
pub mod error;
mod float_text;
pub mod floats;
pub mod ids;
pub mod jsonb;
pub mod key;
pub mod names;
pub mod numeric;
pub mod predicate;
pub mod prefetch;
pub mod range;
mod revision;
pub mod row;
pub mod schema;
pub mod span;
pub mod stamp;
pub mod text;
pub mod usertype;
pub mod varint;

pub mod vector;
pub mod widest;

pub use batch::ColumnBuilder;
pub use datatype::{DataType, PhysType};
pub use datum::Datum;
pub use error::ErrorKind;
pub use ids::*;
pub use key::Key;
pub use predicate::{ColumnPredicate, CompareOp};
pub use range::RangeKind;
pub use revision::Revision;
pub use schema::{ColumnDef, TableDef};
pub use stamp::{ReadAt, Snapshot, Stamp, TxnId, TxnState, TxnStates, Version};
pub use usertype::{Attribute, CompositeDef, DomainCheck, DomainDef, EnumDef, EnumLabel};
