//! ALTER TABLE. All actions of one statement make one new definition; adding a primary key to a filled
//! table writes its rows into new tablets.

use super::batch::Block;
use super::create_table::{check_default, column_parts, many_keys, push_column, set_key};
use super::define::{exists, skipping};
use super::resolve::{self, no_relation};
use super::row_path::RowPath;
use super::{drop, table_options};
use crate::bind::{self, ParamTypes};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{AlterAction, ColumnClause, KeyClause, Name};
use arrow_array::{Array, ArrayRef, new_null_array};
use basalt_engine::{Catalog, CatalogEdit, ScanBatch, ScanSpec, TableLock};
use basalt_exec::{Scan, Stop};
use basalt_expr::functions::Volatility;
use basalt_types::{ColumnId, ColumnPredicate, Datum, TableDef, batch as types_batch};
use std::sync::Arc;

pub(crate) async fn run(
    session: &mut Session,
    name: &Name,
    if_exists: bool,
    actions: &[AlterAction],
    sql: &Arc<str>,
) -> Result<()> {
    let Some(before) = resolve::try_lock_table(session, name, TableLock::AccessExclusive, false).await? else {
        if if_exists {
            skipping(session, "00000", format!("relation \"{}\" does not exist", name.name));
            return Ok(());
        }
        return Err(no_relation("relation", name));
    };
    resolve::require_owner(session, "table", &before.name, &before.owner)?;
    let mut change = Change { table: TableDef::clone(&before), rewrite: false, cascade: None };
    for action in actions {
        change.action(session, &before, action, sql).await?;
    }
    let Change { mut table, rewrite, cascade } = change;
    let what = format!("alter table {}", before.name);
    if !rewrite {
        return drop::apply(session, vec![CatalogEdit::PutTable(Arc::new(table))], &what, cascade);
    }
    table.distribution = table_options::distribution(&table)?;
    let count = table_options::tablet_count(&table.options) as usize;
    if let Some(partition) = table.partitions.first_mut() {
        partition.tablets = (0..count).map(|_| session.db.engine().next_tablet_id()).collect();
    }
    rewrite_rows(session, &before, Arc::new(table), &what, cascade).await
}

struct Change {
    table: TableDef,
    /// Rows must move to new tablets.
    rewrite: bool,
    cascade: Option<bool>,
}

impl Change {
    async fn action(
        &mut self,
        session: &mut Session,
        before: &Arc<TableDef>,
        action: &AlterAction,
        sql: &Arc<str>,
    ) -> Result<()> {
        let catalog = session.txn()?.catalog();
        match action {
            AlterAction::AddColumn { column, if_not_exists } => {
                self.add_column(session, before, column, *if_not_exists, sql).await
            }
            AlterAction::DropColumn { name, if_exists, cascade } => {
                self.cascade = Some(*cascade);
                self.drop_column(session, name, *if_exists)
            }
            AlterAction::AddKey(key) => self.add_key(session, before, key).await,
            AlterAction::DropConstraint { name, if_exists } => self.drop_constraint(session, name, *if_exists),
            AlterAction::SetNotNull(name) => {
                let id = self.column(name)?;
                refuse_nulls(session, before, id).await?;
                self.table.columns[id.position()].not_null = true;
                Ok(())
            }
            AlterAction::DropNotNull(name) => {
                let id = self.column(name)?;
                if self.table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&id)) {
                    return Err(SqlError::new("42P16", format!("column \"{name}\" is in a primary key")));
                }
                self.table.columns[id.position()].not_null = false;
                Ok(())
            }
            AlterAction::SetDefault(name, expr) => {
                let id = self.column(name)?;
                let eval = session.eval_context(Vec::new(), &catalog);
                let ctx = session.bind_context(&catalog, sql, &eval);
                let text = check_default(&ctx, expr, &self.table.columns[id.position()].ty)?;
                self.table.columns[id.position()].default = Some(text);
                Ok(())
            }
            AlterAction::DropDefault(name) => {
                let id = self.column(name)?;
                self.table.columns[id.position()].default = None;
                Ok(())
            }
            AlterAction::SetOptions(options) => {
                let given = options.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
                let kept = self.table.options.iter().filter(|(name, _)| !given.contains(&name.as_str()));
                let all: Vec<_> = kept.chain(options).cloned().collect();
                self.options(&all)
            }
            AlterAction::ResetOptions(names) => {
                let kept: Vec<_> =
                    self.table.options.iter().filter(|(name, _)| !names.contains(name)).cloned().collect();
                self.options(&kept)
            }
            AlterAction::OwnerTo(owner) => {
                if catalog.role_named(owner).is_none() {
                    return Err(SqlError::new("42704", format!("role \"{owner}\" does not exist")));
                }
                self.table.owner = owner.clone();
                Ok(())
            }
            AlterAction::RenameColumn(old, new) => {
                let id = self.column(old)?;
                if self.table.column_named(new).is_some() {
                    let table = &self.table.name;
                    let message = format!("column \"{new}\" of relation \"{table}\" already exists");
                    return Err(SqlError::new("42701", message));
                }
                self.table.columns[id.position()].name = new.clone();
                Ok(())
            }
            AlterAction::RenameConstraint(old, new) => match &mut self.table.primary_key {
                Some(key) if key.constraint_name == *old => {
                    key.constraint_name = new.clone();
                    Ok(())
                }
                _ => Err(no_constraint(old, &self.table.name)),
            },
            AlterAction::RenameTo(new) => {
                if catalog.relation_exists(self.table.namespace, new) {
                    return Err(exists("42P07", "relation", new));
                }
                self.table.name = new.clone();
                Ok(())
            }
            AlterAction::SetSchema(schema) => {
                let namespace = resolve::namespace(session, &catalog, schema)?;
                if resolve::is_system(namespace) {
                    return Err(SqlError::new("42501", format!("permission denied for schema {schema}")));
                }
                if catalog.relation_exists(namespace.id, &self.table.name) {
                    let message = format!("relation \"{}\" already exists in schema \"{schema}\"", self.table.name);
                    return Err(SqlError::new("42P07", message));
                }
                self.table.namespace = namespace.id;
                Ok(())
            }
            AlterAction::Nothing => Ok(()),
        }
    }

    fn column(&self, name: &str) -> Result<ColumnId> {
        match self.table.column_named(name) {
            Some(column) => Ok(column.id),
            None => Err(SqlError::new(
                "42703",
                format!("column \"{name}\" of relation \"{}\" does not exist", self.table.name),
            )),
        }
    }

    fn options(&mut self, options: &[(String, String)]) -> Result<()> {
        self.table.options = table_options::check(options)?;
        let spread = table_options::distribution(&self.table)?;
        let tablets = self.table.tablets().count();
        if spread != self.table.distribution || table_options::tablet_count(&self.table.options) as usize != tablets {
            self.rewrite = true;
        }
        Ok(())
    }

    async fn add_column(
        &mut self,
        session: &mut Session,
        before: &Arc<TableDef>,
        clause: &ColumnClause,
        if_not_exists: bool,
        sql: &Arc<str>,
    ) -> Result<()> {
        let name = &clause.name;
        if self.table.column_named(name).is_some() {
            let message = format!("column \"{name}\" of relation \"{}\" already exists", self.table.name);
            if if_not_exists {
                skipping(session, "42701", message);
                return Ok(());
            }
            return Err(SqlError::new("42701", message));
        }
        let catalog = session.txn()?.catalog();
        let (ty, default) = column_parts(session, clause, &catalog, sql)?;
        let missing = match &clause.default {
            Some(expr) => constant_default(session, &catalog, expr, &ty, sql)?,
            None => Datum::Null,
        };
        let not_null = clause.not_null || clause.primary_key.is_some();
        if not_null && missing.is_null() && !is_empty(session, before).await? {
            return Err(contains_nulls(&self.table.name, name));
        }
        push_column(&mut self.table, name, ty, clause.not_null, default)?;
        if let Some(column) = self.table.columns.last_mut() {
            column.missing = missing;
        }
        match &clause.primary_key {
            Some(constraint) => {
                let key = KeyClause { constraint: constraint.clone(), columns: vec![name.clone()] };
                self.add_key(session, before, &key).await
            }
            None => Ok(()),
        }
    }

    fn drop_column(&mut self, session: &mut Session, name: &str, if_exists: bool) -> Result<()> {
        if if_exists && self.table.column_named(name).is_none() {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", self.table.name);
            skipping(session, "00000", message);
            return Ok(());
        }
        let id = self.column(name)?;
        let in_key = self.table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&id));
        let in_distribution = match &self.table.distribution {
            basalt_types::schema::Distribution::Hash(columns) => columns.contains(&id),
            basalt_types::schema::Distribution::Range => false,
        };
        if in_key || in_distribution {
            return Err(SqlError::not_supported(format!(
                "column \"{name}\" is in the table's key and cannot be dropped"
            ))
            .with_hint("Copy the table with CREATE TABLE … AS."));
        }
        let column = &mut self.table.columns[id.position()];
        column.dropped = true;
        column.not_null = false;
        column.default = None;
        Ok(())
    }

    async fn add_key(&mut self, session: &mut Session, before: &Arc<TableDef>, key: &KeyClause) -> Result<()> {
        if self.table.primary_key.is_some() {
            return Err(many_keys(&self.table.name));
        }
        set_key(&mut self.table, key, session.db.engine().next_object_id())?;
        for name in &key.columns {
            if before.column_named(name).is_some() {
                refuse_nulls(session, before, self.column(name)?).await?;
            }
        }
        self.rewrite = true;
        Ok(())
    }

    fn drop_constraint(&mut self, session: &mut Session, name: &str, if_exists: bool) -> Result<()> {
        match &self.table.primary_key {
            Some(key) if key.constraint_name == name => {
                self.table.primary_key = None;
                self.rewrite = true;
                Ok(())
            }
            _ if if_exists => {
                let table = &self.table.name;
                let message = format!("constraint \"{name}\" of relation \"{table}\" does not exist");
                skipping(session, "00000", message);
                Ok(())
            }
            _ => Err(no_constraint(name, &self.table.name)),
        }
    }
}

fn no_constraint(name: &str, table: &str) -> SqlError {
    SqlError::new("42704", format!("constraint \"{name}\" of relation \"{table}\" does not exist"))
}

fn contains_nulls(table: &str, column: &str) -> SqlError {
    SqlError::new("23502", format!("column \"{column}\" of relation \"{table}\" contains null values"))
}

/// What rows that exist already read of a new column: its default, which must be one value for all.
fn constant_default(
    session: &Session,
    catalog: &Arc<Catalog>,
    expr: &sqlparser::ast::Expr,
    ty: &basalt_types::DataType,
    sql: &Arc<str>,
) -> Result<Datum> {
    let eval = session.eval_context(Vec::new(), catalog);
    let ctx = session.bind_context(catalog, sql, &eval);
    let bound = bind::bind_scalar(&ctx, expr, Some(ty), &mut ParamTypes::none())?;
    if bound.volatility() == Volatility::Volatile {
        return Err(SqlError::not_supported("a new column cannot have a volatile default")
            .with_hint("Add the column without a default, UPDATE it, then SET DEFAULT."));
    }
    Ok(bound.eval_scalar(&[], &eval)?)
}

/// Whether a batch of the table's rows, read beside the connection's thread, is as `wanted`.
async fn any_batch(
    session: &mut Session,
    table: &Arc<TableDef>,
    columns: Vec<ColumnId>,
    predicates: Vec<ColumnPredicate>,
    wanted: fn(&ScanBatch) -> bool,
) -> Result<bool> {
    let spec = ScanSpec { table: table.clone(), columns, predicates, with_identity: false };
    let read = session.txn()?.read();
    let stop = Stop::default();
    let scan = Scan::start(&read, spec, stop.clone())?;
    let search = session.db.runtime().spawn_blocking(stop, move || {
        let mut worker = scan.worker();
        while let Some(batch) = worker.next_batch()? {
            if wanted(&batch) {
                return Ok(true);
            }
        }
        Ok(false)
    });
    search.wait().await
}

async fn is_empty(session: &mut Session, table: &Arc<TableDef>) -> Result<bool> {
    Ok(!any_batch(session, table, Vec::new(), Vec::new(), |batch| batch.rows > 0).await?)
}

/// 23502 if a column has nulls.
async fn refuse_nulls(session: &mut Session, table: &Arc<TableDef>, id: ColumnId) -> Result<()> {
    if table.columns.len() <= id.position() || table.column(id).not_null {
        return Ok(());
    }
    let is_null = vec![ColumnPredicate::IsNull { column: id }];
    let has_null = |batch: &ScanBatch| batch.columns.iter().any(|column| column.null_count() > 0);
    match any_batch(session, table, vec![id], is_null, has_null).await? {
        true => Err(contains_nulls(&table.name, &table.column(id).name)),
        false => Ok(()),
    }
}

/// Puts the new definition in place and writes every row of the old one into its tablets.
async fn rewrite_rows(
    session: &mut Session,
    before: &Arc<TableDef>,
    after: Arc<TableDef>,
    what: &str,
    cascade: Option<bool>,
) -> Result<()> {
    let columns = before.live_columns().map(|column| column.id).collect();
    let spec = ScanSpec { table: before.clone(), columns, predicates: Vec::new(), with_identity: false };
    // What the old definition's tablets hold at this snapshot, whatever the new one does to them.
    let stop = Stop::default();
    let scan = Scan::start(&session.txn()?.read(), spec, stop.clone())?;
    drop::apply(session, vec![CatalogEdit::PutTable(after.clone())], what, cascade)?;
    session.next_statement()?;
    let catalog = session.txn()?.catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    // The rows are in the table already: the batch writes them as they are.
    let path = RowPath::new(&after, &Arc::default(), &catalog, &eval);
    let sender = session.start_batch(&path)?;
    let (source, target) = (before.clone(), after.clone());
    let reader = session.db.runtime().spawn_blocking(stop, move || -> Result<()> {
        let mut worker = scan.worker();
        while let Some(batch) = worker.next_batch()? {
            let rows = widen(&source, &target, &batch.columns, batch.rows);
            if sender.blocking_send(Block::Rows(rows)).is_err() {
                return Ok(());
            }
        }
        let _ = sender.blocking_send(Block::End);
        Ok(())
    });
    let read = reader.wait().await;
    let written = session.finish_batch().await;
    read?;
    match written {
        Ok(_) => Ok(()),
        Err(error) if error.sqlstate == "23505" => {
            let constraint = after.primary_key.as_ref().map_or("", |key| key.constraint_name.as_str());
            let detail = error.detail.clone().map(|detail| detail.replace("already exists", "is duplicated"));
            Err(SqlError { message: format!("could not create unique index \"{constraint}\""), detail, ..error })
        }
        Err(error) => Err(error),
    }
}

/// Live columns of the old definition as all columns of the new one, in stored form.
fn widen(before: &TableDef, after: &TableDef, columns: &[ArrayRef], rows: usize) -> Vec<ArrayRef> {
    let mut live = before.live_columns().zip(columns).peekable();
    let column_of = |column: &basalt_types::ColumnDef| {
        let phys = column.ty.phys().expect("a column's type is storable");
        match live.peek() {
            Some((source, _)) if source.id == column.id => {
                let (source, array) = live.next().expect("peeked");
                match column.dropped {
                    true => new_null_array(&phys.to_arrow(), rows),
                    false => types_batch::to_stored(&source.ty, array),
                }
            }
            _ => repeat(&column.missing, phys, rows),
        }
    };
    after.columns.iter().map(column_of).collect()
}

fn repeat(value: &Datum, phys: basalt_types::PhysType, rows: usize) -> ArrayRef {
    if value.is_null() {
        return new_null_array(&phys.to_arrow(), rows);
    }
    let mut builder = basalt_types::ColumnBuilder::new(phys, rows);
    for _ in 0..rows {
        assert!(builder.push(value), "a column's missing value is of its type");
    }
    builder.finish()
}
