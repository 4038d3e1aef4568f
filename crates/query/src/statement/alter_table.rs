//! ALTER TABLE. All actions of one statement make one new definition, in PostgreSQL's order: what goes first, then
//! types, then new columns, then constraints and the rest. Changes that rows cannot be read through write the rows into
//! new tablets (`rewrite`).

mod column;
pub(super) mod narrowed;
mod rewrite;

use super::comment::PG_CLASS;
use super::create_table::{many_keys, set_key};
use super::define::{exists, skipping};
use super::resolve::{self, Relation, no_relation};
use super::{
    checks, cursor, drop, foreign_key, index, sequence, table_options, truncate, type_users, types, unique, view,
};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{AlterAction, Deferral, KeyClause, KeyConstraint, Name, ObjectKind, UniqueClause};
use basalt_engine::{Catalog, CatalogEdit, CommentKey, SequenceDef, TableLock};
use basalt_expr::tree::Expr;
use basalt_types::schema::{CheckDef, ForeignKey, IndexConstraint, IndexDef};
use basalt_types::usertype::row_type_oid;
use basalt_types::{ColumnId, ObjectId, TableDef};
use rewrite::{Rewrite, Source};
use std::sync::Arc;

pub(crate) async fn run(
    session: &mut Session,
    name: &Name,
    if_exists: bool,
    kind: ObjectKind,
    actions: &[AlterAction],
    sql: &Arc<str>,
) -> Result<()> {
    let catalog = session.txn()?.catalog();
    if if_exists && resolve::missing_schema(session, &catalog, name).is_some() {
        skipping(session, "00000", format!("relation \"{}\" does not exist", name.name));
        return Ok(());
    }
    let found = resolve::find(session, &catalog, name)?;
    let materialized = matches!(&found, Some(Relation::Table(table)) if table.materialized.is_some());
    if kind == ObjectKind::MaterializedView && !materialized {
        let other = found.is_some() || index::find(session, &catalog, name)?.is_some();
        if other {
            return Err(SqlError::new("42809", format!("\"{}\" is not a materialized view", name.name)));
        }
    }
    match (found, actions) {
        (Some(Relation::Table(table)), actions) if table.materialized.is_some() => {
            let of_tables = |action: &&AlterAction| !fits_materialized(action);
            if let Some(action) = actions.iter().find(of_tables) {
                let message =
                    format!("ALTER action {} cannot be performed on relation \"{}\"", verb(action), name.name);
                return Err(SqlError::new("42809", message)
                    .with_detail("This operation is not supported for materialized views."));
            }
        }
        (Some(Relation::View(_)), [AlterAction::RenameTo(_) | AlterAction::OwnerTo(_) | AlterAction::SetSchema(_)]) => {
            return view::alter(session, name, if_exists, actions).await;
        }
        (Some(Relation::View(_)), [AlterAction::RenameColumn(..) | AlterAction::SetDefault(..)]) => {
            return view::alter(session, name, if_exists, actions).await;
        }
        (Some(Relation::View(_)), [action, ..]) => {
            return Err(SqlError::new(
                "42809",
                format!("ALTER action {} cannot be performed on relation \"{}\"", verb(action), name.name),
            )
            .with_detail("This operation is not supported for views."));
        }
        (
            Some(Relation::Sequence(_)),
            [action @ (AlterAction::RenameTo(_) | AlterAction::OwnerTo(_) | AlterAction::SetSchema(_))],
        ) => return sequence::alter_object(session, name, if_exists, action).await,
        (None, [_, ..])
            if index::find(session, &catalog, name)?.is_some()
                || index::primary_key_named(session, &catalog, name).is_some() =>
        {
            return index::alter(session, name, if_exists, actions, sql).await;
        }
        (Some(Relation::Sequence(_)), [action, ..]) => {
            return Err(SqlError::new(
                "42809",
                format!("ALTER action {} cannot be performed on relation \"{}\"", verb(action), name.name),
            )
            .with_detail("This operation is not supported for sequences."));
        }
        _ => {}
    }
    resolve::require_own_table(session, name)?;
    let lock = lock_of(actions);
    let Some(before) = resolve::try_lock_table(session, name, lock, false).await? else {
        if if_exists {
            skipping(session, "00000", format!("relation \"{}\" does not exist", name.name));
            return Ok(());
        }
        return Err(no_relation("relation", name));
    };
    if before.materialized.is_some() != materialized {
        // Another one has the name behind the wait.
        return Box::pin(run(session, name, if_exists, kind, actions, sql)).await;
    }
    resolve::require_owner(session, before.kind_word(), &before.name, &before.owner)?;
    let names = |action: &AlterAction| {
        use AlterAction::{RenameColumn, RenameConstraint, RenameTo, SetSchema};
        matches!(action, RenameTo(_) | RenameColumn(..) | RenameConstraint(..) | SetSchema(_))
    };
    if !actions.iter().all(names) {
        cursor::refuse_in_use(session, &before, "ALTER TABLE")?;
        session.refuse_pending(&before, "ALTER TABLE").await?;
    }
    let mut change = Change::of(&before, sql);
    let mut ordered: Vec<&AlterAction> = actions.iter().collect();
    ordered.sort_by_key(|action| pass(action));
    for action in ordered {
        change.action(session, action).await?;
    }
    if change.moves && lock != TableLock::AccessExclusive {
        return Err(SqlError::internal("rows would have to move beside those who write them"));
    }
    change.finish(session).await
}

/// What goes beside those who read and write the table, and what needs it alone.
fn lock_of(actions: &[AlterAction]) -> TableLock {
    let goes_beside = |action: &AlterAction| match action {
        AlterAction::SetOptions(options) => !options.iter().any(|(name, _)| table_options::spreads(name)),
        AlterAction::ResetOptions(names) => !names.iter().any(|name| table_options::spreads(name)),
        AlterAction::Hint(_) => true,
        _ => false,
    };
    match !actions.is_empty() && actions.iter().all(goes_beside) {
        true => TableLock::ShareUpdateExclusive,
        false => TableLock::AccessExclusive,
    }
}

/// PostgreSQL's order of actions.
fn pass(action: &AlterAction) -> u8 {
    match action {
        AlterAction::DropColumn { .. }
        | AlterAction::DropConstraint { .. }
        | AlterAction::DropNotNull(_)
        | AlterAction::DropDefault(_) => 0,
        AlterAction::SetType { .. } => 1,
        AlterAction::AddColumn { .. } => 2,
        AlterAction::DropExpression { .. } => 3,
        AlterAction::AddCheck(_) => 4,
        AlterAction::SetDefault(..)
        | AlterAction::SetNotNull(_)
        | AlterAction::AddIdentity(..)
        | AlterAction::SetIdentity { .. }
        | AlterAction::DropIdentity { .. } => 5,
        AlterAction::AddKey(_) | AlterAction::AddConstraint(KeyConstraint::Unique(_)) => 6,
        _ => 7,
    }
}

/// Whether an action is one of ALTER MATERIALIZED VIEW.
fn fits_materialized(action: &AlterAction) -> bool {
    matches!(
        action,
        AlterAction::RenameTo(_)
            | AlterAction::RenameColumn(..)
            | AlterAction::SetSchema(_)
            | AlterAction::OwnerTo(_)
            | AlterAction::SetOptions(_)
            | AlterAction::ResetOptions(_)
            | AlterAction::Hint(_)
            | AlterAction::Nothing
    )
}

/// The action as PostgreSQL's messages name it.
fn verb(action: &AlterAction) -> &'static str {
    match action {
        AlterAction::AddColumn { .. } => "ADD COLUMN",
        AlterAction::DropColumn { .. } => "DROP COLUMN",
        AlterAction::AddKey(_) | AlterAction::AddCheck(_) | AlterAction::AddConstraint(_) => "ADD CONSTRAINT",
        AlterAction::ValidateConstraint(_) => "VALIDATE CONSTRAINT",
        AlterAction::DropConstraint { .. } => "DROP CONSTRAINT",
        AlterAction::SetNotNull(_) => "ALTER COLUMN ... SET NOT NULL",
        AlterAction::DropNotNull(_) => "ALTER COLUMN ... DROP NOT NULL",
        AlterAction::SetDefault(..) | AlterAction::DropDefault(_) => "ALTER COLUMN ... SET/DROP DEFAULT",
        AlterAction::SetType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        AlterAction::AddIdentity(..) => "ALTER COLUMN ... ADD IDENTITY",
        AlterAction::SetIdentity { .. } => "ALTER COLUMN ... SET",
        AlterAction::DropIdentity { .. } => "ALTER COLUMN ... DROP IDENTITY",
        AlterAction::DropExpression { .. } => "ALTER COLUMN ... DROP EXPRESSION",
        AlterAction::Hint(_) => "ALTER COLUMN ... SET STATISTICS",
        AlterAction::AllTriggers { enable: true } | AlterAction::Trigger(_) => "ENABLE TRIGGER",
        AlterAction::AllTriggers { enable: false } => "DISABLE TRIGGER",
        _ => "SET",
    }
}

/// The new definition while it is made.
struct Change {
    before: Arc<TableDef>,
    table: TableDef,
    sql: Arc<str>,
    /// What else changes: sequences, comments.
    edits: Vec<CatalogEdit>,
    /// Rows must move to new tablets.
    moves: bool,
    /// Values that rows get then, over their old ones.
    values: Vec<(ColumnId, Expr)>,
    /// Rows have to be looked at by generated columns and constraints while they move.
    complete: bool,
    /// Constraints that the rows have to satisfy.
    validate: Vec<CheckDef>,
    /// Columns that must hold no null.
    not_null: Vec<ColumnId>,
    /// Indexes that have to be filled.
    rebuild: Vec<ObjectId>,
    /// Foreign keys that the rows have to satisfy.
    references: Vec<Arc<ForeignKey>>,
    cascade: Option<bool>,
    /// Columns that go with others, as messages name them.
    along: Vec<String>,
    /// For errors: what cannot be done because something depends on it.
    what: String,
}

fn no_constraint(name: &str, table: &str) -> SqlError {
    SqlError::new("42704", format!("constraint \"{name}\" of relation \"{table}\" does not exist"))
}

fn contains_nulls(table: &str, column: &str) -> SqlError {
    SqlError::new("23502", format!("column \"{column}\" of relation \"{table}\" contains null values"))
}

impl Change {
    fn of(before: &Arc<TableDef>, sql: &Arc<str>) -> Change {
        Change {
            table: TableDef::clone(before),
            before: before.clone(),
            sql: sql.clone(),
            edits: Vec::new(),
            moves: false,
            values: Vec::new(),
            complete: false,
            validate: Vec::new(),
            not_null: Vec::new(),
            rebuild: Vec::new(),
            references: Vec::new(),
            cascade: None,
            along: Vec::new(),
            what: format!("alter {} {}", before.kind_word(), before.name),
        }
    }

    async fn action(&mut self, session: &mut Session, action: &AlterAction) -> Result<()> {
        let catalog = session.txn()?.catalog();
        if matches!(action, AlterAction::AddColumn { .. } | AlterAction::DropColumn { .. }) {
            let what = format!("table \"{}\"", self.table.name);
            type_users::check_keys(&catalog, row_type_oid(self.table.id), &what)?;
        }
        match action {
            AlterAction::AddColumn { column, if_not_exists } => self.add_column(session, column, *if_not_exists).await,
            AlterAction::DropColumn { name, if_exists, cascade } => {
                self.cascade = Some(*cascade);
                self.drop_column(session, name, *if_exists, *cascade)
            }
            AlterAction::SetNotNull(name) => {
                let id = self.column(name)?;
                self.not_null.push(id);
                self.table.columns[id.position()].not_null = true;
                Ok(())
            }
            AlterAction::DropNotNull(name) => self.drop_not_null(name),
            AlterAction::SetDefault(name, expr) => self.set_default(session, name, expr),
            AlterAction::DropDefault(name) => self.drop_default(name),
            AlterAction::SetType { name, ty, using } => self.set_type(session, name, ty, using.as_ref()),
            AlterAction::AddIdentity(name, clause) => self.add_identity(session, name, clause),
            AlterAction::SetIdentity { name, always, options } => self.set_identity(session, name, *always, options),
            AlterAction::DropIdentity { name, if_exists } => self.drop_identity(session, name, *if_exists),
            AlterAction::DropExpression { name, if_exists } => self.drop_expression(session, name, *if_exists),
            AlterAction::Hint(name) => self.column(name).map(|_| ()),
            AlterAction::AddKey(key) => self.add_new_key(session, key),
            AlterAction::AddConstraint(constraint) => self.add_constraint(session, constraint).await,
            AlterAction::AddCheck(clause) => {
                let ctx = self.context(session)?;
                let check = checks::add(session, &ctx, &mut self.table, clause)?;
                if check.validated {
                    self.validate.push(check);
                }
                Ok(())
            }
            AlterAction::ValidateConstraint(name) => self.validate_constraint(name),
            AlterAction::DropConstraint { name, if_exists, cascade } => {
                self.cascade = Some(*cascade);
                self.drop_constraint(session, name, *if_exists)
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
                self.table.owner = resolve::new_owner(session, &catalog, owner, Some(self.table.namespace))?;
                for owned in catalog.sequences_of(self.table.id) {
                    let owner = self.table.owner.clone();
                    self.edits.push(CatalogEdit::PutSequence(SequenceDef { owner, ..SequenceDef::clone(owned) }));
                }
                Ok(())
            }
            AlterAction::RenameColumn(old, new) => self.rename_column(old, new),
            AlterAction::AlterConstraint(name, deferral) => self.alter_constraint(name, *deferral),
            AlterAction::RenameConstraint(old, new) => self.rename_constraint(&catalog, old, new),
            AlterAction::RenameTo(new) => {
                if catalog.relation_exists(self.table.namespace, new) {
                    return Err(exists("42P07", "relation", new));
                }
                types::check_relation_name(&catalog, self.table.namespace, new)?;
                resolve::require_create_in(session, &catalog, self.table.namespace)?;
                self.table.name = new.clone();
                Ok(())
            }
            AlterAction::SetSchema(schema) => self.set_schema(session, schema),
            AlterAction::AllTriggers { enable } => self.all_triggers(&catalog, *enable),
            AlterAction::Trigger(name) => {
                let table = &self.table.name;
                Err(SqlError::new("42704", format!("trigger \"{name}\" for table \"{table}\" does not exist")))
            }
            AlterAction::Nothing => Ok(()),
        }
    }

    /// Foreign keys are always checked. 0A000 where somebody wants them not to be.
    fn all_triggers(&self, catalog: &Catalog, enable: bool) -> Result<()> {
        if enable || (self.table.foreign_keys.is_empty() && !catalog.is_referenced(self.table.id)) {
            return Ok(());
        }
        Err(SqlError::not_supported("disabling the checks of foreign keys is not supported")
            .with_hint("Add the foreign keys after the rows, or have them deferred."))
    }

    fn set_schema(&mut self, session: &mut Session, schema: &str) -> Result<()> {
        let catalog = session.txn()?.catalog();
        let namespace = resolve::new_schema(session, &catalog, self.table.namespace, schema)?;
        if namespace == self.table.namespace {
            return Ok(());
        }
        // What goes along has names, too.
        let key = self.table.primary_key.iter().map(|key| &key.constraint_name);
        let indexes = self.table.indexes.iter().map(|index| &index.name);
        let sequences = catalog.sequences_of(self.table.id).map(|sequence| &sequence.name);
        for name in std::iter::once(&self.table.name).chain(key).chain(indexes).chain(sequences) {
            if catalog.relation_exists(namespace, name) {
                let message = format!("relation \"{name}\" already exists in schema \"{schema}\"");
                return Err(SqlError::new("42P07", message));
            }
        }
        types::check_relation_name(&catalog, namespace, &self.table.name)?;
        self.table.namespace = namespace;
        for owned in catalog.sequences_of(self.table.id) {
            let moved = SequenceDef { namespace, ..SequenceDef::clone(owned) };
            self.edits.push(CatalogEdit::PutSequence(moved));
        }
        Ok(())
    }

    fn options(&mut self, options: &[(String, String)]) -> Result<()> {
        self.table.options = table_options::check(options)?;
        let spread = table_options::distribution(&self.table)?;
        let tablets = self.table.tablets().count();
        if spread != self.table.distribution || table_options::tablet_count(&self.table.options) as usize != tablets {
            self.moves = true;
        }
        Ok(())
    }

    /// Whether a relation has the name, other than what this statement has taken away.
    fn is_name_taken(&self, catalog: &Catalog, name: &str) -> bool {
        let mine = |table: &TableDef| {
            table.primary_key.as_ref().is_some_and(|key| key.constraint_name == name)
                || table.indexes.iter().any(|index| index.name == name)
        };
        match mine(&self.before) && !mine(&self.table) {
            true => false,
            false => catalog.relation_exists(self.table.namespace, name),
        }
    }

    /// Of a key whose index is not there yet.
    fn add_new_key(&mut self, session: &mut Session, key: &KeyClause) -> Result<()> {
        let catalog = session.txn()?.catalog();
        match key.constraint.as_ref().filter(|name| self.is_name_taken(&catalog, name)) {
            Some(name) if !checks::has_constraint(&self.table, name) => Err(exists("42P07", "relation", name)),
            _ => self.add_key(session, key),
        }
    }

    fn add_key(&mut self, session: &mut Session, key: &KeyClause) -> Result<()> {
        if unique::has_primary_key(&self.table) {
            return Err(many_keys(&self.table.name));
        }
        let mut key = key.clone();
        match &key.constraint {
            Some(name) if checks::has_constraint(&self.table, name) => return Err(self.constraint_exists(name)),
            Some(_) => {}
            None => {
                let catalog = session.txn()?.catalog();
                let others = catalog
                    .tables
                    .values()
                    .filter(|table| table.namespace == self.table.namespace && table.id != self.table.id);
                let taken = |name: &str| {
                    others.clone().any(|table| checks::has_constraint(table, name))
                        || checks::has_constraint(&self.table, name)
                        || self.is_name_taken(&catalog, name)
                };
                key.constraint = Some(super::columns::free_name(&self.table.name, None, "pkey", taken));
            }
        }
        if unique::is_kept_by_index(&self.table, &key.columns) {
            let catalog = session.txn()?.catalog();
            let made = unique::declare(session, &catalog, &mut self.table, &unique::clause_of(&key))?;
            self.rebuild.extend(made.map(|index| index.id));
        } else {
            set_key(&mut self.table, &key, session.db.engine().next_object_id())?;
            self.moves = true;
        }
        for name in &key.columns {
            let id = self.column(name)?;
            self.not_null.push(id);
        }
        Ok(())
    }

    async fn add_constraint(&mut self, session: &mut Session, constraint: &KeyConstraint) -> Result<()> {
        match constraint {
            KeyConstraint::Unique(clause) => match &clause.using_index {
                Some(index) => self.use_index(session, clause, index),
                None => {
                    let catalog = session.txn()?.catalog();
                    let made = unique::declare(session, &catalog, &mut self.table, clause)?;
                    for name in clause.columns.iter().filter(|_| clause.primary) {
                        let id = self.column(name)?;
                        self.not_null.push(id);
                    }
                    self.rebuild.extend(made.map(|index| index.id));
                    Ok(())
                }
            },
            KeyConstraint::ForeignKey(clause) => {
                let key = foreign_key::declare(session, &mut self.table, clause).await?;
                if key.validated {
                    self.references.push(key);
                }
                Ok(())
            }
        }
    }

    /// `ADD CONSTRAINT … USING INDEX`: the index takes the constraint's name.
    fn use_index(&mut self, session: &mut Session, clause: &UniqueClause, name: &str) -> Result<()> {
        let catalog = session.txn()?.catalog();
        let index = unique::index_for(&self.table, &catalog, name)?;
        let new = clause.constraint.clone().unwrap_or_else(|| index.name.clone());
        if checks::has_constraint(&self.table, &new) {
            return Err(self.constraint_exists(&new));
        }
        if new != index.name {
            let notice =
                format!("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{}\" to \"{new}\"", index.name);
            session.notice(SqlError::notice(crate::error::Severity::Notice, "00000", notice));
        }
        let columns = index.plain_columns().unwrap_or_default();
        let names: Vec<String> = columns.iter().map(|id| self.table.column(*id).name.clone()).collect();
        if clause.primary && !clause.deferral.deferrable && !unique::is_kept_by_index(&self.table, &names) {
            if new != index.name && self.is_name_taken(&catalog, &new) {
                return Err(exists("42P07", "relation", &new));
            }
            self.table.indexes.retain(|other| other.id != index.id);
            let include = index.include.iter().map(|id| self.table.column(*id).name.clone()).collect();
            return self.add_key(session, &KeyClause { constraint: Some(new), columns: names, include, place: None });
        }
        let constraint = IndexConstraint {
            id: session.db.engine().next_object_id(),
            deferrable: clause.deferral.deferrable,
            initially_deferred: clause.deferral.initially_deferred,
            primary: clause.primary,
        };
        if clause.primary {
            if unique::has_primary_key(&self.table) {
                return Err(many_keys(&self.table.name));
            }
            for id in index.plain_columns().unwrap_or_default() {
                self.table.columns[id.position()].not_null = true;
                self.not_null.push(id);
            }
        }
        for other in self.table.indexes.iter_mut().filter(|other| other.id == index.id) {
            *other = Arc::new(IndexDef { name: new.clone(), constraint: Some(constraint), ..IndexDef::clone(other) });
        }
        if constraint.deferrable {
            // Its entries are of another kind.
            self.rebuild.push(index.id);
        }
        Ok(())
    }

    fn constraint_exists(&self, name: &str) -> SqlError {
        let table = &self.table.name;
        SqlError::new("42710", format!("constraint \"{name}\" for relation \"{table}\" already exists"))
    }

    fn validate_constraint(&mut self, name: &str) -> Result<()> {
        if let Some(key) = self.table.foreign_keys.iter_mut().find(|key| key.name == name) {
            if !key.validated {
                Arc::make_mut(key).validated = true;
                self.references.push(key.clone());
            }
            return Ok(());
        }
        let Some(check) = self.table.checks.iter_mut().find(|check| check.name == name) else {
            if checks::has_constraint(&self.table, name) {
                let table = &self.table.name;
                let message =
                    format!("constraint \"{name}\" of relation \"{table}\" is not a foreign key or check constraint");
                return Err(SqlError::new("42809", message));
            }
            return Err(no_constraint(name, &self.table.name));
        };
        if !std::mem::replace(&mut check.validated, true) {
            self.validate.push(check.clone());
        }
        Ok(())
    }

    fn drop_constraint(&mut self, session: &mut Session, name: &str, if_exists: bool) -> Result<()> {
        let count = |table: &TableDef| table.checks.len() + table.foreign_keys.len() + table.indexes.len();
        let before = count(&self.table);
        self.table.checks.retain(|check| check.name != name);
        self.table.foreign_keys.retain(|key| key.name != name);
        self.table.indexes.retain(|index| index.constraint.is_none() || index.name != name);
        if count(&self.table) < before {
            self.what = format!("drop constraint {name} on table {}", self.table.name);
            return Ok(());
        }
        match &self.table.primary_key {
            Some(key) if key.constraint_name == name => {
                self.what = format!("drop constraint {name} on table {}", self.table.name);
                self.table.primary_key = None;
                self.moves = true;
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

    /// Whether a foreign key can be deferred.
    fn alter_constraint(&mut self, name: &str, deferral: Deferral) -> Result<()> {
        let table = self.table.name.clone();
        if let Some(key) = self.table.foreign_keys.iter_mut().find(|key| key.name == name) {
            let key = Arc::make_mut(key);
            (key.deferrable, key.initially_deferred) = (deferral.deferrable, deferral.initially_deferred);
            self.what = format!("alter constraint {name} on table {table}");
            return Ok(());
        }
        Err(match checks::has_constraint(&self.table, name) {
            true => {
                let message = format!("constraint \"{name}\" of relation \"{table}\" is not a foreign key constraint");
                SqlError::new("42809", message)
            }
            false => no_constraint(name, &table),
        })
    }

    fn rename_constraint(&mut self, catalog: &Catalog, old: &str, new: &str) -> Result<()> {
        if !checks::has_constraint(&self.table, old) {
            return Err(SqlError::new(
                "42704",
                format!("constraint \"{old}\" for table \"{}\" does not exist", self.table.name),
            ));
        }
        let is_index = self.table.indexes.iter().any(|index| index.constraint.is_some() && index.name == old)
            || self.table.primary_key.as_ref().is_some_and(|key| key.constraint_name == old);
        let taken = |index: &Arc<IndexDef>| index.name == new;
        if is_index && (self.table.indexes.iter().any(taken) || self.is_name_taken(catalog, new)) {
            return Err(exists("42P07", "relation", new));
        }
        if checks::has_constraint(&self.table, new) {
            return Err(self.constraint_exists(new));
        }
        if let Some(key) = self.table.primary_key.as_mut().filter(|key| key.constraint_name == old) {
            key.constraint_name = new.to_string();
        }
        if let Some(key) = self.table.foreign_keys.iter_mut().find(|key| key.name == old) {
            Arc::make_mut(key).name = new.to_string();
        }
        let is_constraint = |index: &&mut Arc<IndexDef>| index.constraint.is_some() && index.name == old;
        if let Some(index) = self.table.indexes.iter_mut().find(is_constraint) {
            Arc::make_mut(index).name = new.to_string();
        }
        if let Some(check) = self.table.checks.iter_mut().find(|check| check.name == old) {
            check.name = new.to_string();
            self.table.checks.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(())
    }

    /// Tablets that rows move to.
    fn make_tablets(&mut self, session: &Session) -> Result<()> {
        let table = &mut self.table;
        table.distribution = table_options::distribution(table)?;
        let count = table_options::tablet_count(&table.options) as usize;
        if let Some(partition) = table.partitions.first_mut() {
            partition.tablets = (0..count).map(|_| session.db.engine().next_tablet_id()).collect();
        }
        truncate::empty_indexes(session, table);
        Ok(())
    }

    /// Puts the definition in place.
    async fn finish(mut self, session: &mut Session) -> Result<()> {
        if self.moves {
            self.make_tablets(session)?;
        }
        let Change {
            before,
            mut table,
            sql,
            mut edits,
            moves,
            values,
            complete,
            validate,
            not_null,
            cascade,
            along,
            what,
            ..
        } = self;
        let (rebuild, references) = (self.rebuild, self.references);
        // Values of rows that move are looked at as they move; otherwise where they are.
        let complete = moves && (complete || !validate.is_empty() || !not_null.is_empty());
        let of = table.clone();
        for index in table.indexes.iter_mut().filter(|index| !moves && rebuild.contains(&index.id)) {
            *index = index::emptied(session, &of, index);
        }
        let table = Arc::new(table);
        if !complete {
            for id in not_null {
                rewrite::refuse_nulls(session, &before, id).await?;
            }
            for check in &validate {
                checks::refuse_violations(session, &table, check, &sql).await?;
            }
        }
        let rows = if moves { Some(Source::start(session, &before)?) } else { None };
        edits.push(CatalogEdit::PutTable(table.clone()));
        drop::apply_along(session, edits, &what, cascade, along).await?;
        session.next_statement()?;
        if let Some(rows) = rows {
            rows.write(session, table.clone(), Rewrite { values, complete }).await?;
        } else {
            for index in table.indexes.iter().filter(|index| rebuild.contains(&index.id)) {
                index::fill(session, &table, index).await?;
            }
        }
        for key in &references {
            foreign_key::validate(session, &table, key).await?;
        }
        Ok(())
    }

    fn forget_comment(&mut self, id: ColumnId) {
        let key = CommentKey { class: PG_CLASS, object: self.table.id, part: i32::from(id.0) };
        self.edits.push(CatalogEdit::SetComment { key, text: None });
    }
}
