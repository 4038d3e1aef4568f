//! What a database should hold: committed tables, and what an open transaction makes of them.

use crate::table::{Row, as_read};
use basalt_types::{TableDef, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub type Name = Vec<u8>;
pub type Rows = BTreeMap<Name, Row>;

/// One committed table. Cloning is cheap: pinned readers keep whole states.
#[derive(Clone)]
pub struct TableState {
    pub def: Arc<TableDef>,
    pub rows: Arc<Rows>,
    /// When each row was last changed or deleted.
    pub changed: Arc<BTreeMap<Name, Version>>,
}

#[derive(Clone, Default)]
pub struct State {
    pub slots: Vec<Option<TableState>>,
}

/// What an open transaction has done.
#[derive(Clone, Default)]
pub struct Overlay {
    pub defs: BTreeMap<usize, Option<Arc<TableDef>>>,
    /// Tables whose committed rows are gone.
    pub reset: BTreeSet<usize>,
    pub writes: BTreeMap<usize, BTreeMap<Name, Option<Row>>>,
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        self.defs.is_empty() && self.writes.values().all(BTreeMap::is_empty)
    }

    pub fn write(&mut self, slot: usize, name: Name, row: Option<Row>) {
        self.writes.entry(slot).or_default().insert(name, row);
    }

    pub fn reset(&mut self, slot: usize, def: Option<Arc<TableDef>>) {
        self.defs.insert(slot, def);
        self.reset.insert(slot);
        self.writes.remove(&slot);
    }
}

impl State {
    pub fn empty(slots: usize) -> State {
        State { slots: vec![None; slots] }
    }

    pub fn def(&self, slot: usize, overlay: &Overlay) -> Option<Arc<TableDef>> {
        match overlay.defs.get(&slot) {
            Some(def) => def.clone(),
            None => self.slots[slot].as_ref().map(|table| table.def.clone()),
        }
    }

    /// What a reader of this state sees of the table that `def` defines now: nothing of an earlier one.
    pub fn rows_as(&self, slot: usize, def: &TableDef) -> Rows {
        match &self.slots[slot] {
            Some(table) if table.def.partitions == def.partitions => {
                table.rows.iter().map(|(name, row)| (name.clone(), as_read(def, row))).collect()
            }
            _ => Rows::new(),
        }
    }

    /// The same with a transaction's own changes.
    pub fn rows_with(&self, slot: usize, def: &TableDef, overlay: &Overlay) -> Rows {
        let mut rows = match overlay.reset.contains(&slot) {
            true => Rows::new(),
            false => self.rows_as(slot, def),
        };
        for (name, row) in overlay.writes.get(&slot).into_iter().flatten() {
            match row {
                Some(row) => rows.insert(name.clone(), as_read(def, row)),
                None => rows.remove(name),
            };
        }
        rows
    }

    pub fn commit(&mut self, overlay: Overlay, version: Version) {
        for (slot, def) in overlay.defs {
            let reset = overlay.reset.contains(&slot);
            self.slots[slot] = match (def, self.slots[slot].take()) {
                (None, _) => None,
                (Some(def), Some(table)) if !reset => Some(TableState { def, ..table }),
                (Some(def), _) => Some(TableState { def, rows: Arc::default(), changed: Arc::default() }),
            };
        }
        for (slot, writes) in overlay.writes {
            let Some(table) = &mut self.slots[slot] else { continue };
            let (rows, changed) = (Arc::make_mut(&mut table.rows), Arc::make_mut(&mut table.changed));
            for (name, row) in writes {
                match row {
                    Some(row) => rows.insert(name.clone(), row),
                    None => rows.remove(&name),
                };
                changed.insert(name, version);
            }
        }
    }
}
