//! Foreign keys, as the catalog has them (PostgreSQL manual 5.4.5).

use crate::{ColumnId, ObjectId};

#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ForeignKey {
    pub id: ObjectId,
    pub name: String,
    /// Of the table that has the constraint.
    pub columns: Vec<ColumnId>,
    /// The referenced table, and its columns in the order of `columns`.
    pub parent: ObjectId,
    pub parent_columns: Vec<ColumnId>,
    /// The referenced table's primary key constraint, or the unique index, that the columns are those of.
    pub parent_index: ObjectId,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
    /// `ON DELETE SET NULL | DEFAULT (columns)`; empty: all of `columns`.
    pub set_columns: Vec<ColumnId>,
    /// `MATCH FULL`; otherwise SIMPLE.
    pub match_full: bool,
    pub deferrable: bool,
    pub initially_deferred: bool,
    /// Whether rows that were there before it have been checked.
    pub validated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum ReferentialAction {
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

impl ReferentialAction {
    pub fn sql(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
        }
    }

    /// As `pg_constraint` codes it.
    pub fn code(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "a",
            ReferentialAction::Restrict => "r",
            ReferentialAction::Cascade => "c",
            ReferentialAction::SetNull => "n",
            ReferentialAction::SetDefault => "d",
        }
    }
}
