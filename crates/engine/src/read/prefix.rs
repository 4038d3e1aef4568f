//! Rows of one tablet whose keys begin alike: the way from an index's entries to rows.

use super::ReadContext;
use crate::Result;
use crate::freeze::as_bytes;
use basalt_hot::{Reader, Rows};
use basalt_types::{Datum, Key, TableDef, TabletId};
use std::ops::Bound;
use std::sync::Arc;

/// Rows looked at between two looks at `each`'s answer.
const CHUNK_ROWS: u32 = 256;

impl ReadContext {
    /// Calls `each` with every row that this reader sees and whose key begins with `prefix`, in no order, until it says
    /// false. Values come in column-id order.
    pub(crate) fn with_prefix(
        &self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        prefix: &Key,
        each: &mut dyn FnMut(&[u8], Vec<Datum>) -> bool,
    ) -> Result<()> {
        let tablet = self.engine.tablet(tablet)?;
        let view = tablet.view();
        let txns = &*self.engine.txns;
        let end = successor(prefix.as_bytes());
        let to = end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(end.as_bytes()));
        let reader = Reader { at: self.at, view: view.number, txns };
        let mut from = Bound::Included(prefix.clone());
        let mut rows = Rows::new();
        loop {
            rows.clear();
            let last = tablet.hot.scan(as_bytes(&from), to, &reader, CHUNK_ROWS as usize, &mut rows);
            for row in rows.iter() {
                if !each(row.key, crate::txn::decode_row(table, row.row, &tablet, &Key::from(row.key))?) {
                    return Ok(());
                }
            }
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => break,
            }
        }
        for file in &view.files {
            let beyond = |greatest: &Key| greatest.as_bytes() < prefix.as_bytes();
            let before = |least: &Key| end.as_ref().is_some_and(|end| least >= end);
            if file.data.key_range().is_none_or(|(least, greatest)| beyond(greatest) || before(least)) {
                continue;
            }
            let mut at = file.data.lower_bound(prefix.as_bytes())?;
            'file: while at < file.data.rows() {
                let until = file.data.rows().min(at + CHUNK_ROWS);
                for (ordinal, key) in (at..).zip(file.data.keys(at..until)?.iter()) {
                    if !key.starts_with(prefix.as_bytes()) {
                        break 'file;
                    }
                    let seen = file.sees_row(ordinal, &self.at, txns)?;
                    if seen
                        && !file.deletes.is_deleted(ordinal, &self.at, txns)
                        && !each(key, file.data.row_at(table, ordinal)?)
                    {
                        return Ok(());
                    }
                }
                at = until;
            }
        }
        Ok(())
    }
}

/// The least key that is greater than all that begin with `prefix`; `None` if there is none.
fn successor(prefix: &[u8]) -> Option<Key> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(Key(next.into()))
}
