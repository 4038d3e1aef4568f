//! What LIMIT and OFFSET say.

use crate::error::{Result, SqlError};
use basalt_types::Datum;

/// Which of them, and what is wrong with a negative one.
pub type CountPlace = (&'static str, &'static str);

pub const LIMIT: CountPlace = ("2201W", "LIMIT must not be negative");
pub const OFFSET: CountPlace = ("2201X", "OFFSET must not be negative");

/// A row count; `None` for null, which says nothing.
pub fn row_count(value: &Datum, (sqlstate, message): CountPlace) -> Result<Option<u64>> {
    match value {
        Datum::Null => Ok(None),
        Datum::I64(count) => u64::try_from(*count).map(Some).map_err(|_| SqlError::new(sqlstate, message)),
        other => Err(SqlError::internal(format!("a row count is {other:?}"))),
    }
}
