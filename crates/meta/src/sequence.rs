//! Sequences as the catalog knows them: their parameters, and where their state begins.
//!
//! The state itself (the last value given) is no part of the catalog: it changes outside of transactions
//! (`engine::sequence`). What a transaction can take back, RESTART and TRUNCATE … RESTART IDENTITY, names a
//! new state instead.

use basalt_types::{ColumnId, DataType, ObjectId, Revision};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SequenceDef {
    pub id: ObjectId,
    pub namespace: ObjectId,
    pub name: String,
    pub owner: String,
    /// `int2`, `int4` or `int8`.
    pub ty: DataType,
    pub start: i64,
    pub min: i64,
    pub max: i64,
    /// Not zero.
    pub increment: i64,
    /// Values that a session takes at once, at least 1.
    pub cache: i64,
    pub cycle: bool,
    pub owned_by: Option<SequenceOwner>,
    /// Names the state that values come from.
    pub state: ObjectId,
    /// What that state was when it was made.
    pub begins: SequenceValue,
    pub comment: Option<String>,
    #[serde(skip, default = "Revision::kept")]
    pub revision: Revision,
}

/// The column that a sequence is dropped with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SequenceOwner {
    pub table: ObjectId,
    pub column: ColumnId,
    /// An identity column's: it cannot be dropped or given away alone.
    pub internal: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SequenceValue {
    pub last: i64,
    /// Whether `last` was given; otherwise it is the next value.
    pub is_called: bool,
}
