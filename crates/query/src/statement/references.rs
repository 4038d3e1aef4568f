//! What statements leave to be done about their rows' references and unique values (PostgreSQL manual 5.4.3, 5.4.5;
//! CREATE TABLE, "REFERENCES"). Works off [`Consequence`]s, in sets: all values of one constraint at a time.
//!
//! Checks read what is committed now, durable or not, and lock what they rely on FOR KEY SHARE. A row that refers
//! needs that lock on its parent; whoever deletes the parent, or changes its key, has excluded it before his own check
//! looks for children. So of the two, the second sees the first. Actions are writes of the same transaction, and have
//! consequences of their own.

mod actions;
mod children;

use super::foreign_key::are_compatible;
use super::row_path::RowPath;
use super::rows;
use crate::error::{ErrorObject, Result, SqlError};
use crate::session::interrupt::Pace;
use crate::session::params;
use basalt_engine::{Catalog, Consequence, Error, Locked, ReadContext, RowLock, ScanSpec, Txn, WaitPolicy};
use basalt_expr::EvalContext;
use basalt_expr::cast::cast_datum;
use basalt_types::schema::{ForeignKey, encode_values};
use basalt_types::{ColumnId, Datum, Key, ObjectId, TableDef, TabletId, key};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) use children::Children;

/// What checks and actions need of their session.
pub(crate) struct Enforcer {
    pub catalog: Arc<Catalog>,
    pub eval: Arc<EvalContext>,
    /// Tables whose rows actions may write.
    pub paths: HashMap<ObjectId, Arc<RowPath>>,
    /// Their columns' defaults, for SET DEFAULT.
    pub defaults: HashMap<(ObjectId, ColumnId), basalt_expr::tree::Expr>,
    /// Constraints whose checks wait for the transaction's end.
    pub deferred: HashSet<ObjectId>,
    /// Nobody else writes to the table.
    pub alone: bool,
    pub wait: WaitPolicy,
    pub repeatable_read: bool,
}

/// The constraint that decides when something is checked: that of a unique index, or the foreign key.
pub(crate) fn constraint_of(catalog: &Catalog, consequence: &Consequence) -> Option<ObjectId> {
    match consequence {
        Consequence::Unique { index, .. } => catalog.index_of(*index)?.1.constraint.map(|constraint| constraint.id),
        Consequence::Reference { foreign_key, .. } | Consequence::Parent { foreign_key, .. } => Some(*foreign_key),
    }
}

impl Enforcer {
    /// Checks and acts until nothing is left. Gives back what waits for the transaction's end.
    pub async fn run(&self, txn: &mut Txn, first: Vec<Consequence>) -> Result<Vec<Consequence>> {
        let (mut queue, mut later) = (first, Vec::new());
        while !queue.is_empty() {
            let mut now = Vec::new();
            for consequence in std::mem::take(&mut queue) {
                match self.can_wait(&consequence) {
                    true => later.push(consequence),
                    false => now.push(consequence),
                }
            }
            let mut pace = Pace::default();
            for (table, key, changes) in self.parents(&now) {
                actions::apply(self, txn, &table, &key, &changes).await?;
                pace.step().await;
            }
            // Actions may have mended what would be found wrong now, and made what has to be looked at.
            queue = txn.take_consequences();
            if queue.is_empty() {
                self.check(txn, &now).await?;
            } else {
                queue.extend(now.into_iter().filter(|consequence| !self.is_done(consequence)));
            }
        }
        Ok(later)
    }

    fn key(&self, table: ObjectId, id: ObjectId) -> Option<(&Arc<TableDef>, &Arc<ForeignKey>)> {
        let table = self.catalog.table(table)?;
        Some((table, table.foreign_keys.iter().find(|key| key.id == id)?))
    }

    fn can_wait(&self, consequence: &Consequence) -> bool {
        let waits = constraint_of(&self.catalog, consequence).is_some_and(|id| self.deferred.contains(&id));
        waits && !self.has_action(consequence)
    }

    /// Whether a row's end leads to anything but the check that can be deferred.
    fn has_action(&self, consequence: &Consequence) -> bool {
        use basalt_types::schema::ReferentialAction::NoAction;
        let Consequence::Parent { table, foreign_key, new, .. } = consequence else { return false };
        let Some((_, key)) = self.key(*table, *foreign_key) else { return false };
        let action = if new.is_some() { key.on_update } else { key.on_delete };
        action != NoAction
    }

    /// Actions were taken, and are not taken again.
    fn is_done(&self, consequence: &Consequence) -> bool {
        self.has_action(consequence)
    }

    /// Changes of referenced rows by foreign key, in the order of the constraints' first.
    fn parents(&self, now: &[Consequence]) -> Vec<(Arc<TableDef>, Arc<ForeignKey>, Vec<Change>)> {
        let mut groups: Vec<(Arc<TableDef>, Arc<ForeignKey>, Vec<Change>)> = Vec::new();
        for consequence in now.iter().filter(|consequence| self.has_action(consequence)) {
            let Consequence::Parent { table, foreign_key, old, new } = consequence else { continue };
            let Some((table, key)) = self.key(*table, *foreign_key) else { continue };
            let change = Change { old: old.clone(), new: new.clone() };
            match groups.iter_mut().find(|(_, other, _)| other.id == key.id) {
                Some((_, _, changes)) => changes.push(change),
                None => groups.push((table.clone(), key.clone(), vec![change])),
            }
        }
        // What refuses goes first.
        groups.sort_by_key(|(_, key, changes)| !changes.iter().any(|change| change.is_restricted(key)));
        groups
    }

    async fn check(&self, txn: &mut Txn, now: &[Consequence]) -> Result<()> {
        let mut removed: Vec<(Arc<TableDef>, Arc<ForeignKey>, Vec<Change>)> = Vec::new();
        let mut pace = Pace::default();
        for consequence in now {
            match consequence {
                Consequence::Unique { table, index, values } => self.check_unique(txn, *table, *index, values).await?,
                Consequence::Reference { table, foreign_key, values } => {
                    let Some((table, key)) = self.key(*table, *foreign_key) else { continue };
                    check_reference(txn, self, table, key, values).await?;
                }
                Consequence::Parent { table, foreign_key, old, new } if !self.has_action(consequence) => {
                    let Some((table, key)) = self.key(*table, *foreign_key) else { continue };
                    let change = Change { old: old.clone(), new: new.clone() };
                    match removed.iter_mut().find(|(_, other, _)| other.id == key.id) {
                        Some((_, _, changes)) => changes.push(change),
                        None => removed.push((table.clone(), key.clone(), vec![change])),
                    }
                }
                Consequence::Parent { .. } => {}
            }
            pace.step().await;
        }
        for (table, key, changes) in removed {
            self.refuse_children(txn, &table, &key, &changes, true).await?;
        }
        Ok(())
    }

    async fn check_unique(&self, txn: &mut Txn, table: ObjectId, index: ObjectId, values: &[Datum]) -> Result<()> {
        let Some((table, index)) = self.catalog.table(table).and_then(|table| Some((table, table.index(index)?)))
        else {
            return Ok(());
        };
        let encoded = encode_values(&index.columns, values);
        let unique = match self.alone {
            true => txn.is_unique_alone(index, &encoded)?,
            false => txn.is_unique(table, index, &encoded).await?,
        };
        if unique {
            return Ok(());
        }
        let values: Vec<Option<Datum>> = values.iter().cloned().map(Some).collect();
        Err(rows::duplicate_in(table, index, &values, &self.catalog, &self.eval))
    }

    /// NO ACTION and RESTRICT: 23503 if a row still refers to a key that is gone. `forgives`: unless another row has
    /// the key by now.
    async fn refuse_children(
        &self,
        txn: &mut Txn,
        table: &Arc<TableDef>,
        key: &Arc<ForeignKey>,
        changes: &[Change],
        forgives: bool,
    ) -> Result<()> {
        let Some(parent) = self.catalog.table(key.parent).cloned() else { return Ok(()) };
        let mut gone = Vec::new();
        for change in changes {
            if !forgives || find_parent(&txn.latest(), &parent, key, &change.old)?.is_none() {
                gone.push(change.clone());
            }
        }
        let children = Children::find(txn, self, table, key, &gone).await?;
        for child in children.rows {
            let locked = txn.lock_row(table, child.tablet, &child.key, RowLock::KeyShare, self.wait).await;
            let row = match locked {
                // What was locked may be as the snapshot has it.
                Ok(Locked::Row(_)) if self.repeatable_read => txn.latest().get(table, child.tablet, &child.key)?,
                Ok(locked) => locked.row(),
                // The snapshot does not know the row, but it is there.
                Err(Error::Serialization(_)) if self.repeatable_read => {
                    let row = txn.latest().get(table, child.tablet, &child.key)?;
                    Some(row.ok_or(Error::Serialization("delete"))?)
                }
                Err(error) => return Err(error.into()),
            };
            let refers = row.is_some_and(|row| children.keys.position(key, &row.values) == Some(child.of));
            if refers {
                return Err(still_referenced(self, &parent, table, key, &gone[child.of].old));
            }
        }
        Ok(())
    }
}

/// A referenced row's key before, and after if it is there still.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub old: Vec<Datum>,
    pub new: Option<Vec<Datum>>,
}

impl Change {
    fn action(&self, key: &ForeignKey) -> basalt_types::schema::ReferentialAction {
        if self.new.is_some() { key.on_update } else { key.on_delete }
    }

    fn is_restricted(&self, key: &ForeignKey) -> bool {
        self.action(key) == basalt_types::schema::ReferentialAction::Restrict
    }
}

/// Values of a child's columns as its parent's columns have them. None: no parent can have them.
fn as_parent(
    table: &TableDef,
    parent: &TableDef,
    key: &ForeignKey,
    values: &[Datum],
    eval: &EvalContext,
) -> Option<Vec<Datum>> {
    let columns = key.columns.iter().zip(&key.parent_columns).zip(values);
    let converted = columns.map(|((child, parent_column), value)| {
        let (from, to) = (&table.column(*child).ty, &parent.column(*parent_column).ty);
        convert(from, to, value, eval)
    });
    converted.collect()
}

/// A value as one of another type that it can be equal to; of the type's full range, without its modifier.
fn convert(
    from: &basalt_types::DataType,
    to: &basalt_types::DataType,
    value: &Datum,
    eval: &EvalContext,
) -> Option<Datum> {
    if from == to || (from.base() == to.base() && from.phys() == to.phys() && from.decimal() == to.decimal()) {
        return Some(value.clone());
    }
    if !are_compatible(from, to) && !are_compatible(to, from) {
        return None;
    }
    let there = cast_datum(from, to, value, false, eval).ok()?;
    // A narrower type may have rounded it.
    let back = cast_datum(to, from, &there, false, eval).ok()?;
    let bytes = |value: &Datum| {
        let mut out = Vec::new();
        if !value.is_null() {
            key::encode_column(from, value, &mut out);
        }
        out
    };
    (bytes(&back) == bytes(value)).then_some(there)
}

/// Where the row with these values in the referenced columns is, for a reader.
fn find_parent(
    read: &ReadContext,
    parent: &Arc<TableDef>,
    key: &ForeignKey,
    values: &[Datum],
) -> Result<Option<(TabletId, Key)>> {
    let value_of = |id: &ColumnId| {
        let at = key.parent_columns.iter().position(|column| column == id);
        at.map_or(Datum::Null, |at| values[at].clone())
    };
    if let Some(primary) = parent.primary_key.as_ref().filter(|primary| primary.constraint_id == key.parent_index) {
        let mut row = vec![Datum::Null; parent.columns.len()];
        for id in &primary.columns {
            row[id.position()] = value_of(id);
        }
        let Some(row_key) = parent.key_of(&row) else { return Ok(None) };
        let tablets: Vec<TabletId> = match read.tablet_of(parent, &row_key) {
            Some(tablet) => vec![tablet],
            None => parent.tablets().collect(),
        };
        for tablet in tablets {
            if read.get_columns(parent, tablet, &row_key, &[])?.is_some() {
                return Ok(Some((tablet, row_key)));
            }
        }
        return Ok(None);
    }
    let Some(index) = parent.index(key.parent_index) else { return Ok(None) };
    let columns = index.plain_columns().unwrap_or_default();
    let values: Vec<Datum> = columns.iter().map(value_of).collect();
    Ok(read.rows_by_entry(index, &encode_values(&index.columns, &values))?.into_iter().next())
}

/// 23503 unless a row with the referenced values is there; it is then kept from going.
async fn check_reference(
    txn: &mut Txn,
    enforcer: &Enforcer,
    table: &Arc<TableDef>,
    key: &Arc<ForeignKey>,
    values: &[Datum],
) -> Result<()> {
    let (catalog, eval) = (&enforcer.catalog, &enforcer.eval);
    let Some(parent) = catalog.table(key.parent).cloned() else { return Ok(()) };
    if values.iter().any(Datum::is_null) {
        // Noted only where MATCH FULL minds it.
        return match Children::any_with(txn, table, key, values)? {
            true => Err(mixed_nulls(table, key, catalog)),
            false => Ok(()),
        };
    }
    let Some(wanted) = as_parent(table, &parent, key, values, eval) else {
        return not_present(txn, enforcer, table, &parent, key, values);
    };
    // A parent's key that changes is looked for again.
    for _ in 0..TRIES_MAX {
        let Some((tablet, row_key)) = current_parent(txn, enforcer, &parent, key, &wanted)? else {
            if enforcer.repeatable_read {
                // That there is none is what was read.
                find_parent(&txn.seen_and_noted(), &parent, key, &wanted)?;
            }
            return not_present(txn, enforcer, table, &parent, key, values);
        };
        let locked = txn.lock_row(&parent, tablet, &row_key, RowLock::KeyShare, enforcer.wait).await?;
        let Locked::Row(row) = locked else { continue };
        let same = key.parent_columns.iter().zip(&wanted).all(|(column, value)| {
            let ty = &parent.column(*column).ty;
            let bytes = |value: &Datum| {
                let mut out = Vec::new();
                if !value.is_null() {
                    key::encode_column(ty, value, &mut out);
                }
                out
            };
            bytes(&row.values[column.position()]) == bytes(value)
        });
        if same {
            return Ok(());
        }
    }
    not_present(txn, enforcer, table, &parent, key, values)
}

/// Where the row is that a new reference is to. An index that is younger than the one snapshot of a transaction has no
/// entries for it: the row is then looked for as it is now, and must be there for the snapshot, too.
fn current_parent(
    txn: &mut Txn,
    enforcer: &Enforcer,
    parent: &Arc<TableDef>,
    key: &ForeignKey,
    wanted: &[Datum],
) -> Result<Option<(TabletId, Key)>> {
    if !enforcer.repeatable_read {
        return find_parent(&txn.latest(), parent, key, wanted);
    }
    if parent.index(key.parent_index).is_none() || txn.sees_indexes(&enforcer.catalog) {
        return find_parent(&txn.seen_now(), parent, key, wanted);
    }
    let Some((tablet, row_key)) = find_parent(&txn.latest(), parent, key, wanted)? else { return Ok(None) };
    let seen = txn.seen_now().get_columns(parent, tablet, &row_key, &[])?;
    Ok(seen.map(|_| (tablet, row_key)))
}

/// Times that a row is looked for which others change meanwhile.
const TRIES_MAX: usize = 100;

/// The row that made the reference may be gone, or refer to something else by now.
fn not_present(
    txn: &mut Txn,
    enforcer: &Enforcer,
    table: &Arc<TableDef>,
    parent: &TableDef,
    key: &ForeignKey,
    values: &[Datum],
) -> Result<()> {
    if !Children::any_with(txn, table, key, values)? {
        return Ok(());
    }
    Err(missing_parent(table, parent, key, values, &enforcer.catalog, &enforcer.eval))
}

/// Without its values for who may not read them.
fn shown(table: &TableDef, columns: &[ColumnId], values: &[Datum], eval: &EvalContext) -> String {
    if !rows::may_show_all(table, columns, eval) {
        return "Key".to_string();
    }
    let names: Vec<&str> = columns.iter().map(|id| table.column(*id).name.as_str()).collect();
    let values: Vec<String> = (columns.iter().zip(values))
        .map(|(id, value)| match value {
            Datum::Null => "null".to_string(),
            value => params::show(&table.column(*id).ty, value, eval),
        })
        .collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}

fn of_key(table: &TableDef, key: &ForeignKey, catalog: &Catalog) -> ErrorObject {
    ErrorObject { constraint: Some(key.name.clone()), ..rows::object_of(table, catalog) }
}

fn violates(table: &TableDef, key: &ForeignKey, catalog: &Catalog) -> SqlError {
    let message =
        format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", table.name, key.name);
    SqlError::new("23503", message).with_object(of_key(table, key, catalog))
}

fn missing_parent(
    table: &TableDef,
    parent: &TableDef,
    key: &ForeignKey,
    values: &[Datum],
    catalog: &Catalog,
    eval: &EvalContext,
) -> SqlError {
    let key_shown = shown(table, &key.columns, values, eval);
    violates(table, key, catalog).with_detail(format!("{key_shown} is not present in table \"{}\".", parent.name))
}

fn mixed_nulls(table: &TableDef, key: &ForeignKey, catalog: &Catalog) -> SqlError {
    violates(table, key, catalog).with_detail("MATCH FULL does not allow mixing of null and nonnull key values.")
}

fn still_referenced(
    enforcer: &Enforcer,
    parent: &TableDef,
    table: &TableDef,
    key: &ForeignKey,
    values: &[Datum],
) -> SqlError {
    let message = format!(
        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
        parent.name, key.name, table.name
    );
    let key_shown = shown(parent, &key.parent_columns, values, &enforcer.eval);
    SqlError::new("23503", message)
        .with_detail(format!("{key_shown} is still referenced from table \"{}\".", table.name))
        .with_object(of_key(table, key, &enforcer.catalog))
}

/// Every row of a table against a new constraint: distinct values first, then one look at the parent for each.
pub(crate) async fn check_all(
    txn: &mut Txn,
    catalog: &Catalog,
    table: &Arc<TableDef>,
    key: &Arc<ForeignKey>,
    eval: &EvalContext,
) -> Result<()> {
    let parent = if key.parent == table.id { Some(table) } else { catalog.table(key.parent) };
    let Some(parent) = parent.cloned() else { return Ok(()) };
    let read = txn.latest();
    let spec =
        ScanSpec { table: table.clone(), columns: key.columns.clone(), predicates: Vec::new(), with_identity: false };
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    for mut part in read.scan(spec)?.0 {
        while let Some(batch) = part.next_batch()? {
            for values in children::values_of(table, &key.columns, &batch) {
                let nulls = values.iter().filter(|value| value.is_null()).count();
                if nulls == values.len() || (nulls > 0 && !key.match_full) {
                    continue;
                }
                if nulls > 0 {
                    return Err(mixed_nulls(table, key, catalog));
                }
                if !seen.insert(children::encode(table, &key.columns, &values)) {
                    continue;
                }
                let wanted = as_parent(table, &parent, key, &values, eval);
                let found = wanted.map(|wanted| find_parent(&read, &parent, key, &wanted)).transpose()?.flatten();
                if found.is_none() {
                    return Err(missing_parent(table, &parent, key, &values, catalog, eval));
                }
            }
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}
