//! One client: what it does, and what it was promised.

use super::{CLIENT_KEYS, COUNTER_TABLE, COUNTERS, TABLES, TOKENS, options, table_named};
use crate::table::*;
use basalt_engine::{
    CatalogEdit, Engine, Error, FoundRow, Inserted, LargeUpdate, Locked, Result, RowLock, TableLock, Txn, WaitPolicy,
};
use basalt_sim::{Machine, Rng};
use basalt_types::{DataType, Datum, Key, TableDef, TabletId, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows by table and name. A client's own table is entered under `(OWN, [])` with its description.
pub type Content = BTreeMap<(usize, Vec<u8>), Row>;
type Effects = BTreeMap<(usize, Vec<u8>), Option<Row>>;

/// The table that a client makes, alters, empties and drops.
pub const OWN: usize = TABLES.len();

const WAIT: WaitPolicy = WaitPolicy::Wait(None);
const KEYS: u64 = 150;

pub fn own_name(client: usize) -> String {
    format!("own{client}")
}

/// What of a definition transactions change.
pub fn description(table: &TableDef) -> Row {
    let tablet = table.partitions[0].tablets[0];
    vec![Datum::I64(i64::from(table.id.0)), Datum::I64(table.columns.len() as i64), Datum::I64(i64::from(tablet.0))]
}

pub struct Client {
    number: usize,
    synchronous: bool,
    /// Its session's version, of this start of the engine.
    last: Version,
    next_k: i64,
    acknowledged: Content,
    acknowledged_count: u64,
    /// Its commit was asked for and not answered.
    in_flight: Option<Effects>,
}

fn apply(content: &mut Content, effects: &Effects) {
    for (name, row) in effects {
        match row {
            Some(row) => content.insert(name.clone(), row.clone()),
            None => content.remove(name),
        };
    }
}

impl Client {
    pub fn new(number: usize, early_acknowledgement: bool) -> Client {
        Client {
            number,
            synchronous: !early_acknowledgement,
            last: Version::ZERO,
            next_k: KEYS as i64,
            acknowledged: Content::new(),
            acknowledged_count: 0,
            in_flight: None,
        }
    }

    /// Takes what was found after a restart. Says how many commits had been acknowledged since the last
    /// one, and whether the one in flight (if any) survived.
    pub fn settle(
        &mut self,
        found: Content,
        tables: &[Arc<TableDef>],
    ) -> std::result::Result<(u64, Option<bool>), String> {
        let own = tables.iter().find(|table| table.name == own_name(self.number));
        let read = |content: &Content| -> Content {
            let table_of = |index: usize| match index {
                OWN => own,
                index => tables.iter().find(|table| table.name == TABLES[index].0),
            };
            let row = |((index, name), row): (&(usize, Vec<u8>), &Row)| {
                let row = match table_of(*index) {
                    Some(table) if !name.is_empty() => as_read(table, row),
                    _ => row.clone(),
                };
                ((*index, name.clone()), row)
            };
            content.iter().map(row).collect()
        };
        let without = read(&self.acknowledged);
        let mut with = self.acknowledged.clone();
        apply(&mut with, self.in_flight.as_ref().unwrap_or(&Effects::new()));
        let with = read(&with);
        let survived = match self.in_flight.take() {
            _ if found == without => false,
            Some(_) if found == with => true,
            in_flight => return Err(self.loss(&without, &with, &found, in_flight)),
        };
        let count = std::mem::take(&mut self.acknowledged_count);
        let was_in_flight = with != without;
        self.acknowledged = found;
        self.last = Version::ZERO;
        Ok((count, was_in_flight.then_some(survived)))
    }

    fn loss(&self, without: &Content, with: &Content, found: &Content, in_flight: Option<Effects>) -> String {
        let by_name = |content: &Content| -> BTreeMap<Vec<u8>, Row> {
            let name = |(index, name): &(usize, Vec<u8>)| [&[*index as u8], name.as_slice()].concat();
            let table = |index: usize| TABLES.get(index).map_or("own", |(name, _)| *name);
            let labelled = |index: usize, row: &Row| [&[Datum::text(table(index))], row.as_slice()].concat();
            content.iter().map(|(key, row)| (name(key), labelled(key.0, row))).collect()
        };
        let compare = |expected: &Content| difference(&by_name(expected), &by_name(found)).unwrap_or_default();
        let in_flight = in_flight.map_or(0, |effects| effects.len());
        format!(
            "client {} has neither what was acknowledged ({}), nor that and the transaction in flight of {in_flight} rows ({})",
            self.number,
            compare(without),
            compare(with)
        )
    }

    /// Works until the power fails or time is up.
    pub fn run(
        &mut self,
        engine: &Arc<Engine>,
        machine: &Machine,
        rng: &mut Rng,
        stop: &AtomicBool,
    ) -> std::result::Result<(), String> {
        let runtime = crate::runtime();
        while !stop.load(Ordering::Acquire) {
            match runtime.block_on(self.transaction(engine, rng)) {
                Ok(()) => {}
                Err(_) if !machine.fs.is_powered() => return Ok(()),
                Err(error) => return Err(format!("client {}: {error:?}", self.number)),
            }
        }
        Ok(())
    }

    async fn transaction(&mut self, engine: &Arc<Engine>, rng: &mut Rng) -> Result<()> {
        let txn = engine.begin(options(self.synchronous, self.last));
        let mut work = Work { client: self, engine, txn, effects: Effects::new() };
        match rng.below(18) {
            0..5 => work.change_row(rng).await?,
            5..8 => work.change_rows(rng).await?,
            8..11 => work.batch(rng).await?,
            11..13 => work.token(rng).await?,
            13 => work.thin_out(rng).await?,
            14..16 => work.change_many(rng).await?,
            _ => work.change_own_table(rng).await?,
        }
        let Work { txn, effects, .. } = work;
        if rng.one_in(12) {
            txn.rollback();
            return Ok(());
        }
        self.in_flight = Some(effects);
        self.last = txn.commit().await?;
        apply(&mut self.acknowledged, &self.in_flight.take().expect("just set"));
        self.acknowledged_count += 1;
        Ok(())
    }
}

/// A transaction under way.
struct Work<'a> {
    client: &'a mut Client,
    engine: &'a Arc<Engine>,
    txn: Txn,
    effects: Effects,
}

impl Work<'_> {
    async fn table(&mut self, index: usize) -> Result<Arc<TableDef>> {
        let name = if index == OWN { own_name(self.client.number) } else { TABLES[index].0.to_string() };
        let table = table_named(self.engine, &name).expect("made before");
        self.txn.lock_table(table.id, TableLock::RowExclusive, WAIT).await?;
        self.txn.next_statement();
        Ok(table)
    }

    fn current(&self, name: &(usize, Vec<u8>)) -> Option<&Row> {
        match self.effects.get(name) {
            Some(row) => row.as_ref(),
            None => self.client.acknowledged.get(name),
        }
    }

    fn random_k(&mut self, shape: Shape, rng: &mut Rng) -> i64 {
        let base = CLIENT_KEYS * (self.client.number as i64 + 1);
        if shape.is_keyed() {
            return base + rng.below(KEYS) as i64;
        }
        self.client.next_k += 1;
        base + self.client.next_k
    }

    async fn change_row(&mut self, rng: &mut Rng) -> Result<()> {
        let index = rng.below(4) as usize;
        let table = self.table(index).await?;
        let shape = TABLES[index].1;
        if !shape.is_keyed() && rng.one_in(2) {
            return self.change_known(index, &table, rng).await;
        }
        let k = self.random_k(shape, rng);
        let row = random_row(&table, k, rng);
        let name = (index, name_of(&table, &row));
        match self.current(&name).cloned() {
            None => self.expect_inserted(&table, &row).await?,
            Some(old) => {
                let current = self.lock(&table, &old).await?;
                if rng.one_in(3) {
                    self.txn.delete(&table, &current).await?;
                    self.effects.insert(name, None);
                    return Ok(());
                }
                self.txn.update(&table, &current, &row).await?;
            }
        }
        self.effects.insert(name, Some(row));
        Ok(())
    }

    /// Updates or deletes a row that was there before this transaction.
    async fn change_known(&mut self, index: usize, table: &Arc<TableDef>, rng: &mut Rng) -> Result<()> {
        let known: Vec<_> = self.client.acknowledged.range((index, Vec::new())..(index + 1, Vec::new())).collect();
        if known.is_empty() {
            return Ok(());
        }
        let (name, old) = *rng.pick(&known);
        let (name, old) = (name.clone(), old.clone());
        if self.effects.contains_key(&name) {
            return Ok(());
        }
        let current = self.lock(table, &old).await?;
        let Datum::I64(k) = old[0] else { panic!("c1 is an int8") };
        match rng.one_in(2) {
            true => {
                self.txn.delete(table, &current).await?;
                self.effects.insert(name, None);
            }
            false => {
                let row = random_row(table, k, rng);
                self.txn.update(table, &current, &row).await?;
                self.effects.insert(name, Some(row));
            }
        }
        Ok(())
    }

    async fn change_rows(&mut self, rng: &mut Rng) -> Result<()> {
        for _ in 0..2 + rng.below(8) {
            let (savepoint, effects) = (self.txn.savepoint(), self.effects.clone());
            self.change_row(rng).await?;
            if rng.one_in(6) {
                self.txn.rollback_to(savepoint)?;
                self.effects = effects;
            }
        }
        Ok(())
    }

    /// Rows of new keys over four tablets, in one go.
    async fn batch(&mut self, rng: &mut Rng) -> Result<()> {
        let index = 1 + rng.below(3) as usize;
        let table = self.table(index).await?;
        let count = *rng.pick(&[5, 40, 120, 300]);
        let rows: Vec<Row> = (0..count)
            .map(|_| {
                let k = self.random_k(Shape::Keyless, rng);
                random_row(&table, k, rng)
            })
            .collect();
        self.bulk(index, &table, rows).await
    }

    async fn bulk(&mut self, index: usize, table: &Arc<TableDef>, rows: Vec<Row>) -> Result<()> {
        let mut bulk = self.txn.bulk_insert(table)?;
        bulk.push(&stored_columns(table, &rows)).await?;
        bulk.finish().await?;
        self.effects.extend(rows.into_iter().map(|row| ((index, name_of(table, &row)), Some(row))));
        Ok(())
    }

    /// Deletes many rows of one table, so that it does not grow for ever.
    async fn thin_out(&mut self, rng: &mut Rng) -> Result<()> {
        let index = rng.below(4) as usize;
        let table = self.table(index).await?;
        let known = self.client.acknowledged.range((index, Vec::new())..(index + 1, Vec::new()));
        let known: Vec<_> = known.map(|(name, row)| (name.clone(), row.clone())).collect();
        let places: BTreeMap<Vec<u8>, (TabletId, Key)> = match table.primary_key {
            Some(_) => BTreeMap::new(),
            None => scan(&self.txn.read(), &table, &[])
                .map_err(Error::Corrupt)?
                .into_iter()
                .map(|found| (name_of(&table, &found.row), (found.tablet, found.key)))
                .collect(),
        };
        for (name, row) in known {
            if rng.one_in(3) {
                continue;
            }
            let current = match places.get(&name.1) {
                Some((tablet, key)) => self.lock_at(&table, *tablet, key, &row).await?,
                None => self.lock(&table, &row).await?,
            };
            self.txn.delete(&table, &current).await?;
            self.effects.insert(name, None);
        }
        Ok(())
    }

    /// Updates or deletes many rows in the large way, perhaps taken back, perhaps again.
    async fn change_many(&mut self, rng: &mut Rng) -> Result<()> {
        let index = rng.below(4) as usize;
        for _ in 0..1 + rng.below(2) {
            let (savepoint, effects) = (self.txn.savepoint(), self.effects.clone());
            self.change_together(index, rng).await?;
            if rng.one_in(4) {
                self.txn.rollback_to(savepoint)?;
                self.effects = effects;
            }
        }
        Ok(())
    }

    async fn change_together(&mut self, index: usize, rng: &mut Rng) -> Result<()> {
        let table = self.table(index).await?;
        let deletes = rng.one_in(4);
        let mut by_tablet: BTreeMap<TabletId, Vec<(Found, Row)>> = BTreeMap::new();
        for found in scan(&self.txn.read(), &table, &[]).map_err(Error::Corrupt)? {
            let own = self.current(&(index, name_of(&table, &found.row))).cloned();
            if let Some(own) = own.filter(|_| !rng.one_in(5)) {
                by_tablet.entry(found.tablet).or_default().push((found, own));
            }
        }
        let mut update = LargeUpdate::new(&table);
        for (tablet, rows) in by_tablet {
            let found: Vec<FoundRow> =
                rows.iter().map(|(found, _)| FoundRow { key: found.key.as_bytes(), stamp: found.stamp }).collect();
            let done = self.txn.delete_resting(tablet, &found).await?;
            let (mut keys, mut together) = (Vec::new(), Vec::new());
            for ((found, own), done) in rows.iter().zip(done) {
                let Datum::I64(k) = own[0] else { panic!("c1 is an int8") };
                let new = (!deletes).then(|| random_row(&table, k, rng));
                if !done {
                    let current = self.lock_at(&table, tablet, &found.key, own).await?;
                    match &new {
                        Some(row) => drop(self.txn.update(&table, &current, row).await?),
                        None => self.txn.delete(&table, &current).await?,
                    }
                } else if let Some(row) = &new {
                    keys.push(found.key.as_bytes());
                    together.push(row.clone());
                }
                self.effects.insert((index, name_of(&table, own)), new);
            }
            if !together.is_empty() {
                let columns = stored_columns(&table, &together);
                update.push(&self.txn, tablet, keys.into_iter(), columns).await?;
            }
        }
        update.finish(&mut self.txn).await
    }

    /// A row and an increment that belong together; counters are everybody's.
    async fn token(&mut self, rng: &mut Rng) -> Result<()> {
        let (tokens, counters) = (self.table(TOKENS).await?, self.table(COUNTER_TABLE).await?);
        let mut key_row = vec![Datum::Null; counters.columns.len()];
        key_row[0] = Datum::I64(rng.below(COUNTERS as u64) as i64);
        let (tablet, key) = locate(&self.txn.read(), &counters, &key_row).map_err(Error::Corrupt)?;
        let Locked::Row(current) = self.txn.lock_row(&counters, tablet, &key, RowLock::Update, WAIT).await? else {
            return Err(Error::Corrupt(format!("counter {key:?} is gone")));
        };
        let mut row = current.values.clone();
        let Datum::I32(count) = &mut row[2] else { panic!("c3 is an int4") };
        *count += 1;
        self.txn.update(&counters, &current, &row).await?;
        let k = self.random_k(Shape::Keyless, rng);
        let token = random_row(&tokens, k, rng);
        self.expect_inserted(&tokens, &token).await?;
        self.effects.insert((TOKENS, name_of(&tokens, &token)), Some(token));
        Ok(())
    }

    async fn change_own_table(&mut self, rng: &mut Rng) -> Result<()> {
        let name = own_name(self.client.number);
        let Some(table) = table_named(self.engine, &name) else {
            let table = define(self.engine, Shape::KeyedHash4, &name);
            return self.put_own_table(table, true, rng).await;
        };
        self.txn.lock_table(table.id, TableLock::AccessExclusive, WAIT).await?;
        self.txn.next_statement();
        match rng.below(4) {
            0 => {
                self.forget_own_rows();
                self.effects.insert((OWN, Vec::new()), None);
                self.txn.edit_catalog(vec![CatalogEdit::DropTable(table.id)])
            }
            1 => {
                self.forget_own_rows();
                let table = truncated(self.engine, &table);
                self.put_own_table(table, true, rng).await
            }
            _ => {
                let mut wider = (*table).clone();
                let position = wider.columns.len();
                let missing = Datum::I32(rng.below(100) as i32);
                wider.columns.push(column(position, &format!("c{}", position + 1), DataType::Int4, missing));
                orient(&mut wider, rng.below(ORIENTATIONS));
                self.put_own_table(Arc::new(wider), false, rng).await
            }
        }
    }

    fn forget_own_rows(&mut self) {
        let own = self.client.acknowledged.range((OWN, Vec::new())..);
        self.effects.extend(own.map(|(name, _)| (name.clone(), None)));
    }

    async fn put_own_table(&mut self, table: Arc<TableDef>, is_empty: bool, rng: &mut Rng) -> Result<()> {
        self.effects.insert((OWN, Vec::new()), Some(description(&table)));
        self.txn.edit_catalog(vec![CatalogEdit::PutTable(table.clone())])?;
        self.txn.next_statement();
        let first = if is_empty { 0 } else { self.client.next_k };
        let count = *rng.pick(&[0, 3, 150]);
        let base = CLIENT_KEYS * (self.client.number as i64 + 1);
        let rows: Vec<Row> = (first..first + count).map(|k| random_row(&table, base + k, rng)).collect();
        self.client.next_k += count;
        if rows.is_empty() {
            return Ok(());
        }
        self.bulk(OWN, &table, rows).await
    }

    async fn expect_inserted(&mut self, table: &Arc<TableDef>, row: &[Datum]) -> Result<()> {
        match self.txn.insert(table, row).await? {
            Inserted::Done => Ok(()),
            other => Err(Error::Corrupt(format!("{}: a row that is not there is {other:?}", table.name))),
        }
    }

    async fn lock(&mut self, table: &Arc<TableDef>, row: &[Datum]) -> Result<basalt_engine::CurrentRow> {
        let (tablet, key) = locate(&self.txn.read(), table, row).map_err(Error::Corrupt)?;
        self.lock_at(table, tablet, &key, row).await
    }

    async fn lock_at(
        &mut self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        key: &Key,
        row: &[Datum],
    ) -> Result<basalt_engine::CurrentRow> {
        match self.txn.lock_row(table, tablet, key, RowLock::Update, WAIT).await? {
            Locked::Row(current) if as_read(table, &current.values) == as_read(table, row) => Ok(current),
            other => Err(Error::Corrupt(format!("{}: locked {other:?}, expected {}", table.name, brief(row)))),
        }
    }
}
