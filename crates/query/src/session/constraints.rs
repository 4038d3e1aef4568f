//! When constraints are checked: at the end of each statement, or (SET CONSTRAINTS, INITIALLY DEFERRED) of the
//! transaction. What statements leave to be checked comes from the engine; what it means, from
//! `statement::references`.

use super::{Scope, Session};
use crate::bind;
use crate::error::{Result, Severity, SqlError};
use crate::statement::references::{Enforcer, constraint_of};
use crate::statement::row_path::RowPath;
use crate::syntax::{Name, SetConstraints, parse_expr_text};
use basalt_engine::{Catalog, Consequence, TableLock};
use basalt_types::schema::ReferentialAction;
use basalt_types::{ObjectId, TableDef};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// As many values are checked on the connection's thread.
const CHECKED_INLINE_MAX: usize = 8;

/// What a transaction has said about its constraints, and what it has left for its end.
#[derive(Clone, Default)]
pub(crate) struct Constraints {
    /// `SET CONSTRAINTS ALL`.
    all: Option<bool>,
    named: HashMap<ObjectId, bool>,
    pending: Vec<Consequence>,
}

/// Which checks are made, and beside whom.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    /// Those that are not deferred.
    Immediate,
    All,
    /// All, of a table that nobody else writes to until the transaction ends.
    Alone,
}

/// A constraint that can be deferred.
struct Deferrable {
    id: ObjectId,
    initially_deferred: bool,
}

impl Constraints {
    fn is_deferred(&self, constraint: &Deferrable) -> bool {
        let said = self.named.get(&constraint.id).copied().or(self.all);
        said.unwrap_or(constraint.initially_deferred)
    }
}

fn deferrable_of(table: &TableDef) -> impl Iterator<Item = Deferrable> {
    let keys = table.foreign_keys.iter().filter(|key| key.deferrable);
    let keys = keys.map(|key| Deferrable { id: key.id, initially_deferred: key.initially_deferred });
    let unique = table.indexes.iter().filter_map(|index| index.constraint).filter(|constraint| constraint.deferrable);
    keys.chain(unique.map(|of| Deferrable { id: of.id, initially_deferred: of.initially_deferred }))
}

impl Session {
    /// Checks what the statement that has just run leaves to be checked now, and acts on it.
    pub(crate) async fn after_statement(&mut self) -> Result<()> {
        let Some(txn) = self.block.txn.as_mut() else { return Ok(()) };
        let left = txn.take_consequences();
        if left.is_empty() {
            return Ok(());
        }
        let later = self.enforce(left, Checks::Immediate).await?;
        self.block.constraints.pending.extend(later);
        Ok(())
    }

    /// The same after an index was filled, or rows have moved: what is there must be unique now. What the rows refer to has
    /// been checked before.
    pub(crate) async fn after_build(&mut self) -> Result<()> {
        let mut left = self.txn()?.take_consequences();
        left.retain(|consequence| matches!(consequence, Consequence::Unique { .. }));
        self.enforce(left, Checks::Alone).await.map(|_| ())
    }

    /// 55006 for a table to which something is to be done while checks of it wait for the transaction's end. Values that are
    /// unique by now wait for nothing: of them PostgreSQL would have no event.
    pub(crate) async fn refuse_pending(&mut self, table: &TableDef, what: &str) -> Result<()> {
        let refused = || {
            let message = format!("cannot {what} \"{}\" because it has pending trigger events", table.name);
            SqlError::new("55006", message)
        };
        let catalog = self.txn()?.catalog();
        let pending = &self.block.constraints.pending;
        if pending.iter().any(|consequence| is_event_of(&catalog, consequence, table.id)) {
            return Err(refused());
        }
        let values = pending.iter().filter(|consequence| is_unique_of(consequence, table.id)).cloned().collect();
        match self.enforce(values, Checks::All).await {
            Ok(_) => {}
            Err(error) if error.sqlstate == "23505" => return Err(refused()),
            Err(error) => return Err(error),
        }
        self.block.constraints.pending.retain(|consequence| !is_unique_of(consequence, table.id));
        Ok(())
    }

    /// Before COMMIT: what was deferred.
    pub(crate) async fn before_commit(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.block.constraints.pending);
        if pending.is_empty() || self.block.txn.is_none() {
            return Ok(());
        }
        self.next_statement()?;
        self.enforce(pending, Checks::All).await.map(|_| ())
    }

    /// Gives back what is deferred.
    async fn enforce(&mut self, left: Vec<Consequence>, checks: Checks) -> Result<Vec<Consequence>> {
        if left.is_empty() {
            return Ok(left);
        }
        let catalog = self.txn()?.catalog();
        let reached = Reached::by(&catalog, &left);
        for (table, mode) in &reached.locks {
            self.lock_table(*table, *mode, false).await?;
        }
        let enforcer = self.enforcer(&reached, checks)?;
        let short = left.len() <= CHECKED_INLINE_MAX
            && left.iter().all(|consequence| !matches!(consequence, Consequence::Parent { .. }));
        if short {
            return enforcer.run(self.txn()?, left).await;
        }
        self.off_thread(move |txn| Box::pin(async move { enforcer.run(txn, left).await })).await
    }

    fn enforcer(&mut self, reached: &Reached, checks: Checks) -> Result<Enforcer> {
        let catalog = self.txn()?.catalog();
        let eval = self.eval_context(Vec::new(), &catalog);
        let ctx = self.bind_context(&catalog, &Arc::from(""), &eval);
        let (mut paths, mut defaults) = (HashMap::new(), HashMap::new());
        for id in &reached.written {
            let Some(table) = catalog.table(*id) else { continue };
            let rules = bind::bind_row_rules(&ctx, table)?;
            paths.insert(table.id, RowPath::new(table, &rules, &catalog, &eval));
            for column in table.foreign_keys.iter().flat_map(|key| &key.columns) {
                let column = table.column(*column);
                if let Some(text) = &column.default {
                    let syntax = parse_expr_text(text)?;
                    let bound = bind::bind_default(&ctx, &syntax, &column.name, &column.ty)?;
                    defaults.insert((table.id, column.id), bound);
                }
            }
        }
        let mut deferred = HashSet::new();
        if checks == Checks::Immediate {
            let tables = reached.tables.iter().filter_map(|id| catalog.table(*id));
            let waiting = tables.flat_map(|table| deferrable_of(table));
            deferred.extend(waiting.filter(|of| self.block.constraints.is_deferred(of)).map(|of| of.id));
        }
        Ok(Enforcer {
            catalog,
            eval,
            paths,
            defaults,
            deferred,
            alone: checks == Checks::Alone,
            wait: self.wait_policy(),
            repeatable_read: self.block.isolation.has_one_snapshot(),
        })
    }

    /// SET CONSTRAINTS. What becomes immediate is checked now.
    pub(crate) async fn set_constraints(&mut self, set: &SetConstraints) -> Result<()> {
        if self.block.scope != Scope::Explicit {
            let warning = "SET CONSTRAINTS can only be used in transaction blocks";
            self.notice(SqlError::notice(Severity::Warning, "25P01", warning));
            return Ok(());
        }
        self.next_command()?;
        let catalog = self.txn()?.catalog();
        let said = match &set.names {
            None => {
                self.block.constraints.all = Some(set.deferred);
                self.block.constraints.named.clear();
                None
            }
            Some(names) => {
                let mut ids = HashSet::new();
                for name in names {
                    ids.extend(self.deferrable_named(&catalog, name)?);
                }
                self.block.constraints.named.extend(ids.iter().map(|id| (*id, set.deferred)));
                Some(ids)
            }
        };
        if set.deferred {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.block.constraints.pending);
        let is_meant = |consequence: &Consequence| match &said {
            None => true,
            Some(ids) => constraint_of(&catalog, consequence).is_none_or(|id| ids.contains(&id)),
        };
        let (now, later): (Vec<_>, Vec<_>) = pending.into_iter().partition(is_meant);
        self.block.constraints.pending = later;
        if now.is_empty() {
            return Ok(());
        }
        self.next_statement()?;
        let deferred = self.enforce(now, Checks::Immediate).await?;
        self.block.constraints.pending.extend(deferred);
        Ok(())
    }

    /// 42704, or 42809 for one that cannot be deferred.
    fn deferrable_named(&self, catalog: &Catalog, name: &Name) -> Result<Vec<ObjectId>> {
        let schemas = match &name.schema {
            Some(schema) => vec![schema.clone()],
            None => self.lookup_path(catalog),
        };
        for schema in schemas {
            let Some(namespace) = catalog.namespace_named(self.database.id, &schema) else { continue };
            let tables = catalog.tables.values().filter(|table| table.namespace == namespace.id);
            let (mut found, mut ids) = (false, Vec::new());
            for table in tables {
                let keys = table.foreign_keys.iter().filter(|key| key.name == name.name);
                let keys = keys.map(|key| (key.id, key.deferrable));
                let unique = table.indexes.iter().filter(|index| index.name == name.name);
                let unique = unique.filter_map(|index| index.constraint).map(|of| (of.id, of.deferrable));
                for (id, deferrable) in keys.chain(unique) {
                    found = true;
                    ids.extend(deferrable.then_some(id));
                }
                let plain = table.primary_key.as_ref().is_some_and(|key| key.constraint_name == name.name)
                    || table.checks.iter().any(|check| check.name == name.name);
                found |= plain;
            }
            if found && ids.is_empty() {
                return Err(SqlError::new("42809", format!("constraint \"{}\" is not deferrable", name.name)));
            }
            if found {
                return Ok(ids);
            }
        }
        Err(SqlError::new("42704", format!("constraint \"{}\" does not exist", name.name)))
    }
}

fn is_unique_of(consequence: &Consequence, of: ObjectId) -> bool {
    matches!(consequence, Consequence::Unique { table, .. } if *table == of)
}

/// Whether a reference waits to be checked of which this table has the row that was written.
fn is_event_of(catalog: &Catalog, consequence: &Consequence, of: ObjectId) -> bool {
    let key = |table: ObjectId, id: ObjectId| catalog.table(table)?.foreign_keys.iter().find(|key| key.id == id);
    match consequence {
        Consequence::Unique { .. } => false,
        Consequence::Reference { table, foreign_key, .. } => *table == of && key(*table, *foreign_key).is_some(),
        Consequence::Parent { table, foreign_key, .. } => key(*table, *foreign_key).is_some_and(|key| key.parent == of),
    }
}

/// The tables that consequences can come to.
struct Reached {
    tables: BTreeSet<ObjectId>,
    /// Of these, whose rows actions may write.
    written: BTreeSet<ObjectId>,
    locks: Vec<(ObjectId, TableLock)>,
}

impl Reached {
    fn by(catalog: &Catalog, left: &[Consequence]) -> Reached {
        let mut reached = Reached { tables: BTreeSet::new(), written: BTreeSet::new(), locks: Vec::new() };
        let mut open = Vec::new();
        for consequence in left {
            match consequence {
                Consequence::Unique { table, .. } | Consequence::Reference { table, .. } => {
                    reached.tables.insert(*table);
                }
                Consequence::Parent { table, foreign_key, .. } => {
                    reached.tables.insert(*table);
                    let key = catalog
                        .table(*table)
                        .and_then(|table| table.foreign_keys.iter().find(|key| key.id == *foreign_key));
                    if key.is_some_and(|key| writes(key.on_delete) || writes(key.on_update)) {
                        open.push(*table);
                    }
                }
            }
        }
        while let Some(table) = open.pop() {
            if !reached.written.insert(table) {
                continue;
            }
            for (child, key) in catalog.references_to(table) {
                reached.tables.insert(child.id);
                if writes(key.on_delete) || writes(key.on_update) {
                    open.push(child.id);
                }
            }
        }
        let parents = |id: &ObjectId| {
            let table = catalog.table(*id);
            table.into_iter().flat_map(|table| table.foreign_keys.iter().map(|key| key.parent)).collect::<Vec<_>>()
        };
        let shared: BTreeSet<ObjectId> =
            reached.tables.iter().flat_map(|id| parents(id).into_iter().chain([*id])).collect();
        reached.locks.extend(shared.iter().map(|id| (*id, TableLock::RowShare)));
        reached.locks.extend(reached.written.iter().map(|id| (*id, TableLock::RowExclusive)));
        reached
    }
}

fn writes(action: ReferentialAction) -> bool {
    matches!(action, ReferentialAction::Cascade | ReferentialAction::SetNull | ReferentialAction::SetDefault)
}
