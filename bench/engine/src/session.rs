//! Statements of one terminal, as a session would run them with its plans at hand: a snapshot, a table lock, a look or a
//! walk by the primary key or an index, a row lock, a write.

use crate::tables::{Mode, Table, begin};
use anyhow::{Context as _, Result, anyhow, bail};
use basalt_engine::{
    CurrentRow, Direction, Engine, Error, Inserted, KeyRange, Locked, Reading, RowLock, SeenRow, TableLock, Txn,
    WaitPolicy, WalkSpec, behind_prefix,
};
use basalt_types::row::{Field, RowRef, decode_value};
use basalt_types::schema::{IndexDef, encode_values, prefix_key};
use basalt_types::{ColumnId, Datum, Key, TableDef, TabletId, Version};
use std::collections::HashMap;
use std::sync::Arc;

/// What a walk may look at: all of it.
const LOOKS_MAX: usize = usize::MAX - 1;
/// Columns of an index's hidden table that lead to the row.
const PLACE: [ColumnId; 3] = [ColumnId(1), ColumnId(2), ColumnId(3)];

/// A row's place.
pub type Place = (TabletId, Key);

pub struct Session<'a> {
    pub engine: &'a Arc<Engine>,
    pub tables: &'a HashMap<&'static str, Arc<Table>>,
    pub mode: Mode,
    pub synchronous_commit: bool,
    /// The greatest version met.
    met: Version,
}

/// An open transaction.
pub struct Open<'s> {
    txn: Txn,
    engine: &'s Engine,
    mode: Mode,
}

impl<'a> Session<'a> {
    pub fn new(
        engine: &'a Arc<Engine>,
        tables: &'a HashMap<&'static str, Arc<Table>>,
        mode: Mode,
        synchronous_commit: bool,
    ) -> Session<'a> {
        Session { engine, tables, mode, synchronous_commit, met: Version::ZERO }
    }

    pub fn begin(&self) -> Open<'a> {
        Open { txn: begin(self.engine, self.synchronous_commit, self.met), engine: self.engine, mode: self.mode }
    }

    pub async fn commit(&mut self, open: Open<'_>) -> Result<()> {
        self.met = self.met.max(open.txn.commit().await?);
        Ok(())
    }
}

impl Open<'_> {
    /// Begins a statement on a table.
    pub async fn statement(&mut self, table: &Table, lock: TableLock) -> Result<()> {
        self.txn.next_statement();
        if !self.txn.try_lock_table(table.def.id, lock)? {
            self.txn.lock_table(table.def.id, lock, WaitPolicy::Wait(None)).await?;
        }
        Ok(())
    }

    fn reading(&self) -> Reading<'static> {
        Reading { at: self.txn.read_at(), noted: None }
    }

    /// Where the row with this primary key is at the statement's snapshot.
    fn place(&self, table: &Table, key: &[i32]) -> Result<Option<Place>> {
        let Some(index) = &table.key_index else {
            let key = Key::from(&table.key_bytes(key)[..]);
            let tablet = self.engine.tablet_of(&table.def, key.as_bytes()).context("a table of one tablet")?;
            return Ok(Some((tablet, key)));
        };
        let entry = prefix_key(&encode_values(&index.columns, &ints(key)), true);
        let look = |row: SeenRow<'_>| cells(&index.entries, &PLACE, row);
        let found = self.engine.look(&index.entries, index.tablet(), entry.as_bytes(), self.reading(), &PLACE, look)?;
        found.map(|values| IndexDef::base_of(&values?).context("an entry leads nowhere")).transpose()
    }

    fn cells_at(&self, table: &Table, place: &Place, columns: &[ColumnId]) -> Result<Option<Vec<Datum>>> {
        let look = |row: SeenRow<'_>| cells(&table.def, columns, row);
        let found = self.engine.look(&table.def, place.0, place.1.as_bytes(), self.reading(), columns, look)?;
        found.transpose()
    }

    /// Columns, which ascend, of the row with this primary key.
    pub fn get(&self, table: &Table, key: &[i32], columns: &[ColumnId]) -> Result<Option<Vec<Datum>>> {
        match self.place(table, key)? {
            Some(place) => self.cells_at(table, &place, columns),
            None => Ok(None),
        }
    }

    /// Places and columns of rows in key order whose primary key begins with `prefix`, the next column of it from `low` on
    /// and below `high`.
    pub fn range(
        &self,
        table: &Table,
        prefix: &[i32],
        bounds: Option<(i32, i32)>,
        rows_max: usize,
        columns: &[ColumnId],
    ) -> Result<Vec<(Place, Vec<Datum>)>> {
        let with = |last: i32| [prefix, &[last]].concat();
        let bytes = |key: &[i32]| match &table.key_index {
            None => table.key_bytes(key),
            Some(index) => prefix_key(&encode_values(&index.columns, &ints(key)), false).0.into(),
        };
        let range = match bounds {
            None => KeyRange::of_prefix(&bytes(prefix)),
            Some((low, high)) => KeyRange { from: bytes(&with(low)), to: Some(bytes(&with(high))) },
        };
        if let Some(index) = &table.key_index {
            let mut found = Vec::new();
            for place in self.entries(index, range, Direction::Ascending, rows_max)? {
                let row = self.cells_at(table, &place, columns)?.context("an entry's row is not there")?;
                found.push((place, row));
            }
            return Ok(found);
        }
        let tablets: Vec<TabletId> = table.def.tablets().collect();
        let spec = spec(&table.def, &tablets, range, Direction::Ascending, columns, self.reading(), rows_max);
        walk(self.engine, spec, rows_max, |tablet, key, row| {
            Ok(((tablet, Key::from(key)), cells(&table.def, columns, row)?))
        })
    }

    /// Places of rows whose entries of an index begin with these values, in their order.
    pub fn by_index(
        &self,
        index: &IndexDef,
        values: &[Datum],
        direction: Direction,
        rows_max: usize,
    ) -> Result<Vec<Place>> {
        let prefix = prefix_key(&encode_values(&index.columns, values), false);
        self.entries(index, KeyRange::of_prefix(prefix.as_bytes()), direction, rows_max)
    }

    fn entries(&self, index: &IndexDef, range: KeyRange, direction: Direction, rows_max: usize) -> Result<Vec<Place>> {
        let tablets = [index.tablet()];
        let spec = spec(&index.entries, &tablets, range, direction, &PLACE, self.reading(), rows_max);
        walk(self.engine, spec, rows_max, |_, _, row| {
            IndexDef::base_of(&cells(&index.entries, &PLACE, row)?).context("an entry leads nowhere")
        })
    }

    /// Columns of a row that an index has led to.
    pub fn cells_of(&self, table: &Table, place: &Place, columns: &[ColumnId]) -> Result<Vec<Datum>> {
        self.cells_at(table, place, columns)?.context("an entry's row is not there")
    }

    fn lock_mode(&self) -> RowLock {
        // Who deletes a row may not leave it to those who refer to it.
        if self.mode == Mode::OutOfPlace { RowLock::Update } else { RowLock::NoKeyUpdate }
    }

    /// Locks the row with this primary key for an update; begins the statement again where it has moved meanwhile.
    pub async fn lock(&mut self, table: &Table, key: &[i32]) -> Result<CurrentRow> {
        loop {
            let Some(place) = self.place(table, key)? else { bail!("{} has no row {key:?}", table.def.name) };
            match self.lock_at(table, &place).await? {
                Some(row) => return Ok(row),
                None if table.key_index.is_some() => self.txn.next_statement(),
                None => bail!("{} has no row {key:?}", table.def.name),
            }
        }
    }

    /// The row at a place, if it is still there.
    pub async fn lock_at(&mut self, table: &Table, place: &Place) -> Result<Option<CurrentRow>> {
        let mode = self.lock_mode();
        let locked = self.txn.lock_row(&table.def, place.0, &place.1, mode, WaitPolicy::Wait(None)).await?;
        Ok(match locked {
            Locked::Row(row) => Some(row),
            Locked::Gone | Locked::Skipped => None,
        })
    }

    /// An update of a locked row, in place or not.
    pub async fn update(
        &mut self,
        table: &Table,
        mut row: CurrentRow,
        change: impl FnOnce(&mut [Datum]),
    ) -> Result<()> {
        let mut values = std::mem::take(&mut row.values);
        if self.mode == Mode::OutOfPlace {
            row.values = values.clone();
            change(&mut values);
            self.txn.delete(&table.def, &row).await?;
            return self.insert(table, &values).await;
        }
        // What indexes ask is whether their columns differ.
        if !table.def.indexes.is_empty() {
            row.values = values.clone();
        }
        change(&mut values);
        taken(table, self.txn.update(&table.def, &row, &values).await?)
    }

    pub async fn insert(&mut self, table: &Table, values: &[Datum]) -> Result<()> {
        taken(table, self.txn.insert(&table.def, values).await?)
    }

    pub async fn delete(&mut self, table: &Table, row: &CurrentRow) -> Result<()> {
        Ok(self.txn.delete(&table.def, row).await?)
    }

    pub fn rollback(self) {
        self.txn.rollback();
    }
}

fn taken(table: &Table, inserted: Inserted) -> Result<()> {
    match inserted {
        Inserted::Done => Ok(()),
        Inserted::Duplicate { key, .. } => Err(anyhow!("{} has a row {key:?} already", table.def.name)),
    }
}

/// Whether a transaction that failed so is to be tried again.
pub fn is_conflict(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Deadlock(_) | Error::Serialization(_)))
}

fn ints(values: &[i32]) -> Vec<Datum> {
    values.iter().map(|value| Datum::I32(*value)).collect()
}

fn spec<'a>(
    table: &'a TableDef,
    tablets: &'a [TabletId],
    range: KeyRange,
    direction: Direction,
    columns: &'a [ColumnId],
    reading: Reading<'a>,
    rows_hint: usize,
) -> WalkSpec<'a> {
    let rows_hint = if rows_hint == usize::MAX { 0 } else { rows_hint };
    WalkSpec {
        table,
        tablets,
        range,
        direction,
        columns,
        reading,
        stamped: false,
        keyed: true,
        rows_hint,
        looks_max: LOOKS_MAX,
    }
}

fn walk<R>(
    engine: &Engine,
    spec: WalkSpec<'_>,
    rows_max: usize,
    mut take: impl FnMut(TabletId, &[u8], SeenRow<'_>) -> Result<R>,
) -> Result<Vec<R>> {
    let mut walk = engine.walk(spec)?.context("a file is not in key order")?;
    let mut found = Vec::new();
    while found.len() < rows_max
        && let Some(row) = walk.next_row()?
    {
        found.push(take(row.tablet, row.key, row.row)?);
    }
    Ok(found)
}

/// Columns of a row, which ascend.
pub fn cells(table: &TableDef, columns: &[ColumnId], row: SeenRow<'_>) -> Result<Vec<Datum>> {
    let bytes = match row {
        SeenRow::Values(values) => return Ok(columns.iter().map(|id| values[id.position()].clone()).collect()),
        SeenRow::Encoded(bytes) => bytes,
    };
    let mut found = Vec::with_capacity(columns.len());
    let each = RowRef::new(bytes).and_then(|row| {
        row.each(
            |at| table.phys_type(at),
            columns.iter().map(|id| id.position()),
            |field| {
                found.push(match field {
                    Field::Value(bytes) => decode_value(table.phys_type(columns[found.len()].position()), bytes)?,
                    Field::Null => Datum::Null,
                });
                Some(())
            },
        )
    });
    each.with_context(|| format!("a row of {} does not fit it", table.name))?;
    Ok(found)
}

/// All rows of a table, at what is published.
pub fn all(engine: &Arc<Engine>, table: &Table, columns: &[ColumnId], mut take: impl FnMut(&[Datum])) -> Result<()> {
    let read = engine.read(Version::ZERO);
    let tablets: Vec<TabletId> = table.def.tablets().collect();
    let range = KeyRange { from: Vec::new(), to: behind_prefix(&[]) };
    let spec = spec(&table.def, &tablets, range, Direction::Ascending, columns, read.reading(), usize::MAX);
    let mut walk = engine.walk(spec)?.context("a file is not in key order")?;
    while let Some(row) = walk.next_row()? {
        take(&cells(&table.def, columns, row.row)?);
    }
    Ok(())
}
