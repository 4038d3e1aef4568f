//! Conditions simple enough for storage: one column against constants. Scans use them to skip row groups
//! and to drop rows early; they never replace the full condition above.

use crate::{ColumnId, Datum};
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareOp {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl CompareOp {
    /// Whether it is true of two values in this order.
    #[inline]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            CompareOp::Eq => order.is_eq(),
            CompareOp::NotEq => order.is_ne(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::LtEq => order.is_le(),
            CompareOp::Gt => order.is_gt(),
            CompareOp::GtEq => order.is_ge(),
        }
    }

    /// The same comparison with its sides exchanged.
    pub fn mirrored(self) -> CompareOp {
        match self {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::LtEq => CompareOp::GtEq,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::GtEq => CompareOp::LtEq,
            CompareOp::Eq | CompareOp::NotEq => self,
        }
    }
}

/// A conjunct over one column. The constants are of the column's physical type, not null.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnPredicate {
    Compare {
        column: ColumnId,
        op: CompareOp,
        value: Datum,
    },
    In {
        column: ColumnId,
        values: Vec<Datum>,
    },
    /// One of many integers, which ascend: the keys that a join has on its other side.
    Among {
        column: ColumnId,
        values: Arc<[i64]>,
    },
    IsNull {
        column: ColumnId,
    },
    IsNotNull {
        column: ColumnId,
    },
}

impl ColumnPredicate {
    pub fn column(&self) -> ColumnId {
        match self {
            ColumnPredicate::Compare { column, .. }
            | ColumnPredicate::In { column, .. }
            | ColumnPredicate::Among { column, .. }
            | ColumnPredicate::IsNull { column }
            | ColumnPredicate::IsNotNull { column } => *column,
        }
    }
}
