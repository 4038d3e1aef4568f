//! Rows of one tablet whose keys begin alike: the way from an index's entries to rows.

use super::walk::{Direction, KeyRange, WalkSpec, WalkedRow};
use super::{ReadContext, SeenRow};
use crate::{Error, Result, rows};
use basalt_types::{ColumnId, Datum, Key, TableDef, TabletId};
use std::sync::Arc;

impl ReadContext {
    /// Calls `each` with every row that this reader sees and whose key begins with `prefix`, in key order, until it
    /// says false. Values come in column-id order; those of other columns than `columns` may be null.
    pub(crate) fn with_prefix(
        &self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        prefix: &Key,
        columns: &[ColumnId],
        each: &mut dyn FnMut(&[u8], Vec<Datum>) -> bool,
    ) -> Result<()> {
        let spec = WalkSpec {
            table,
            tablets: &[tablet],
            range: KeyRange::of_prefix(prefix.as_bytes()),
            direction: Direction::Ascending,
            columns,
            reading: self.reading(),
            stamped: false,
            keyed: true,
            rows_hint: 0,
            looks_max: usize::MAX,
        };
        let Some(mut walk) = self.engine.walk(spec)? else {
            return Err(Error::Internal(format!("there is too much to look at in {}", table.name)));
        };
        while let Some(WalkedRow { key, row, .. }) = walk.next_row()? {
            let values = match row {
                SeenRow::Encoded(bytes) => {
                    let damaged =
                        || Error::Corrupt(format!("row {:?} of {} does not fit its table", Key::from(key), table.name));
                    rows::decode(table, bytes).ok_or_else(damaged)?
                }
                SeenRow::Values(values) => values.to_vec(),
            };
            if !each(key, values) {
                break;
            }
        }
        Ok(())
    }
}
