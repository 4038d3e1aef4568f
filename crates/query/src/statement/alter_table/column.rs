//! What ALTER TABLE does to one column.

use super::{Change, rewrite};
use crate::bind::{self, BindContext, ParamTypes};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::statement::columns::{Columns, check_default, check_generated};
use crate::statement::comment::PG_CLASS;
use crate::statement::define::skipping;
use crate::statement::{checks, drop, foreign_key, sequence, table_options};
use crate::syntax::{ColumnClause, IdentityClause, KeyClause, SequenceOptions};
use basalt_engine::CatalogEdit;
use basalt_engine::privilege::{AclKey, ObjectClass};
use basalt_expr::cast::CastContext;
use basalt_expr::functions::{Volatility, fit_time};
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::schema::{Distribution, Identity, IndexSource};
use basalt_types::{ColumnId, DataType, Datum, TableDef};
use sqlparser::ast;
use std::sync::Arc;

impl Change {
    pub(super) fn context(&self, session: &Session) -> Result<BindContext> {
        let catalog = session.catalog_now();
        let eval = session.eval_context(Vec::new(), &catalog);
        Ok(session.bind_context(&catalog, &self.sql, &eval))
    }

    /// 42703 without such a column.
    pub(super) fn column(&self, name: &str) -> Result<ColumnId> {
        match self.table.column_named(name) {
            Some(column) => Ok(column.id),
            None => Err(SqlError::new(
                "42703",
                format!("column \"{name}\" of relation \"{}\" does not exist", self.table.name),
            )),
        }
    }

    fn shown(&self, name: &str) -> String {
        format!("column \"{name}\" of relation \"{}\"", self.table.name)
    }

    pub(super) async fn add_column(
        &mut self,
        session: &mut Session,
        clause: &ColumnClause,
        if_not_exists: bool,
    ) -> Result<()> {
        let name = &clause.name;
        if self.table.column_named(name).is_some() {
            let message = format!("{} already exists", self.shown(name));
            if if_not_exists {
                skipping(session, "42701", message);
                return Ok(());
            }
            return Err(SqlError::new("42701", message));
        }
        let catalog = session.txn()?.catalog();
        let sql = self.sql.clone();
        let mut columns = Columns { session, catalog: &catalog, sql: &sql, sequences: Vec::new() };
        let id = columns.push(&mut self.table, clause)?;
        columns.set_defaults(&mut self.table, [clause])?;
        let made = std::mem::take(&mut columns.sequences);
        let ctx = columns.context();
        let column = self.table.column(id).clone();
        let value = if let Some(expr) = &clause.generated {
            let text = check_generated(&ctx, &self.table, id, expr)?;
            self.table.columns[id.position()].generated = Some(text);
            self.complete = true;
            None
        } else if column.identity.is_some() {
            Some(bind::identity_value(&column, &ctx.eval)?)
        } else {
            let default = column.default.as_deref().map(crate::syntax::parse_expr_text).transpose()?;
            default.map(|expr| bind::bind_default(&ctx, &expr, name, &column.ty)).transpose()?
        };
        self.edits.extend(made);
        let is_constant = value.as_ref().is_none_or(|value| value.volatility() < Volatility::Volatile);
        let missing = match &value {
            Some(value) if is_constant => value.eval_scalar(&[], &ctx.eval)?,
            _ => Datum::Null,
        };
        let missing = match column.time_modifier {
            Some(modifier) => fit_time(&column.ty, modifier, missing)?,
            None => missing,
        };
        let needs_values = column.not_null || clause.primary_key.is_some();
        let before = self.before.clone();
        let filled = (!is_constant || clause.generated.is_some() || (needs_values && missing.is_null()))
            && !rewrite::is_empty(session, &before).await?;
        if filled && is_constant && clause.generated.is_none() {
            return Err(super::contains_nulls(&self.table.name, name));
        }
        if filled {
            self.moves = true;
            self.complete |= needs_values || column.time_modifier.is_some();
        }
        match value {
            Some(value) if !is_constant && filled => self.values.push((id, value)),
            _ => self.table.columns[id.position()].missing = missing,
        }
        for check in &clause.checks {
            let check = checks::add(session, &ctx, &mut self.table, check)?;
            if check.validated {
                self.validate.push(check);
            }
        }
        for constraint in &clause.constraints {
            self.add_constraint(session, constraint).await?;
        }
        match &clause.primary_key {
            Some(constraint) => {
                let (columns, include) = (vec![name.clone()], Vec::new());
                let key = KeyClause { constraint: constraint.clone(), columns, include, place: None };
                self.add_new_key(session, &key)
            }
            None => Ok(()),
        }
    }

    pub(super) fn drop_column(
        &mut self,
        session: &mut Session,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        if if_exists && self.table.column_named(name).is_none() {
            skipping(session, "00000", format!("{} does not exist", self.shown(name)));
            return Ok(());
        }
        let id = self.column(name)?;
        self.what = format!("drop column {name} of table {}", self.table.name);
        if let Distribution::Hash(columns) = &self.table.distribution
            && columns.contains(&id)
            && self.table.option("distribution_key").is_some()
        {
            return Err(SqlError::not_supported(format!("column \"{name}\" is in the table's distribution key"))
                .with_hint("Set another distribution_key first."));
        }
        let ctx = self.context(session)?;
        self.drop_generated_from(session, &ctx, id, name, cascade)?;
        if self.table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&id) || key.include.contains(&id)) {
            self.table.primary_key = None;
            self.moves = true;
        }
        self.drop_indexes_of(&ctx, id)?;
        if self.table.clustering_key().contains(&id) {
            self.table.options.retain(|(option, _)| option != "clustering_key");
        }
        self.table.foreign_keys.retain(|key| !key.columns.contains(&id));
        let shared = Arc::new(self.table.clone());
        let mut kept = Vec::new();
        for check in std::mem::take(&mut self.table.checks) {
            let bound = bind::bind_check(&ctx, &shared, &crate::syntax::parse_expr_text(&check.sql)?)?;
            if !bind::columns_of(&bound).contains(&id) {
                kept.push(check);
            }
        }
        self.table.checks = kept;
        let catalog = session.txn()?.catalog();
        let owned = catalog.sequences_of(self.table.id);
        let owned = owned.filter(|sequence| sequence.owned_by.is_some_and(|owner| owner.column == id));
        self.edits.extend(owned.map(|sequence| CatalogEdit::DropSequence(sequence.id)));
        let column = &mut self.table.columns[id.position()];
        column.dropped = true;
        column.not_null = false;
        (column.default, column.identity, column.generated) = (None, None, None);
        if catalog.comments.get(PG_CLASS, self.table.id, i32::from(id.0)).is_some() {
            self.forget_comment(id);
        }
        // Else a right on a column that is gone would be one on some column.
        let key = AclKey { class: ObjectClass::Column, object: self.table.id, column: id.0 as i16 };
        if catalog.acls.get(key).is_some() {
            self.edits.push(CatalogEdit::SetAcl { key, items: None });
        }
        Ok(())
    }

    /// Indexes go with any column that they read.
    fn drop_indexes_of(&mut self, ctx: &BindContext, id: ColumnId) -> Result<()> {
        let shared = Arc::new(self.table.clone());
        let mut kept = Vec::new();
        for index in std::mem::take(&mut self.table.indexes) {
            let mut reads = index.uses(id);
            let expressions = index.columns.iter().filter_map(|column| match &column.source {
                IndexSource::Column(_) => None,
                IndexSource::Expression(sql) => Some(sql),
            });
            for sql in expressions.chain(&index.predicate) {
                let syntax = crate::syntax::parse_expr_text(sql)?;
                let bound = bind::bind_row_expr(ctx, &shared, &syntax, None, &mut ParamTypes::none())?;
                reads |= bind::columns_of(&bound).contains(&id);
            }
            if !reads {
                kept.push(index);
            }
        }
        self.table.indexes = kept;
        Ok(())
    }

    /// Generated columns depend on those that they are computed from. 2BP01 unless `cascade`.
    fn drop_generated_from(
        &mut self,
        session: &mut Session,
        ctx: &BindContext,
        id: ColumnId,
        name: &str,
        cascade: bool,
    ) -> Result<()> {
        let shared = Arc::new(self.table.clone());
        for column in shared.live_columns() {
            let Some(text) = &column.generated else { continue };
            let expr = crate::syntax::parse_expr_text(text)?;
            let bound = bind::bind_generated(ctx, &shared, &column.name, &column.ty, &expr)?;
            if !bind::columns_of(&bound).contains(&id) {
                continue;
            }
            let table = &self.table.name;
            if !cascade {
                let message = format!("cannot drop column {name} of table {table} because other objects depend on it");
                let detail =
                    format!("column {} of table {table} depends on column {name} of table {table}", column.name);
                return Err(SqlError::new("2BP01", message)
                    .with_detail(detail)
                    .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
            self.along.push(format!("column {} of table {table}", column.name));
            self.drop_column(session, &column.name.clone(), false, true)?;
        }
        Ok(())
    }

    pub(super) fn drop_not_null(&mut self, name: &str) -> Result<()> {
        let id = self.column(name)?;
        if self.table.column(id).identity.is_some() {
            return Err(SqlError::syntax(format!("{} is an identity column", self.shown(name))));
        }
        let deferrable = crate::statement::unique::indexed_primary_key(&self.table);
        if self.table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&id))
            || deferrable.is_some_and(|key| key.uses(id))
        {
            return Err(SqlError::new("42P16", format!("column \"{name}\" is in a primary key")));
        }
        self.table.columns[id.position()].not_null = false;
        Ok(())
    }

    /// 42601 for columns whose values come from elsewhere.
    fn refuse_own_default(&self, name: &str, id: ColumnId, verb: &str) -> Result<()> {
        let column = self.table.column(id);
        if column.identity.is_some() {
            let error = SqlError::syntax(format!("{} is an identity column", self.shown(name)));
            return Err(match verb {
                "drop" => error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."),
                _ => error,
            });
        }
        if column.generated.is_some() {
            let error = SqlError::syntax(format!("{} is a generated column", self.shown(name)));
            return Err(match verb {
                "drop" => error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."),
                _ => error,
            });
        }
        Ok(())
    }

    pub(super) fn set_default(&mut self, session: &Session, name: &str, expr: &ast::Expr) -> Result<()> {
        let id = self.column(name)?;
        self.refuse_own_default(name, id, "set")?;
        let ty = self.table.column(id).ty.clone();
        let text = check_default(&self.context(session)?, expr, name, &ty)?;
        self.table.columns[id.position()].default = text;
        Ok(())
    }

    pub(super) fn drop_default(&mut self, name: &str) -> Result<()> {
        let id = self.column(name)?;
        self.refuse_own_default(name, id, "drop")?;
        self.table.columns[id.position()].default = None;
        Ok(())
    }

    pub(super) fn set_type(
        &mut self,
        session: &mut Session,
        name: &str,
        ty: &ast::DataType,
        using: Option<&ast::Expr>,
    ) -> Result<()> {
        let id = self.column(name)?;
        let ctx = self.context(session)?;
        let (to, time_modifier) = bind::bind_column_type(&ctx, ty)?;
        if to.phys().is_none() {
            return Err(SqlError::new("42P16", format!("column \"{name}\" has pseudo-type {}", to.sql_name())));
        }
        self.what = format!("alter type of column {name} of table {}", self.table.name);
        let column = self.table.column(id).clone();
        self.refuse_users(&ctx, id, name)?;
        self.refuse_views(session, id, name)?;
        let catalog = session.txn()?.catalog();
        if let Some(user) = super::type_users::stored_column(&catalog, super::row_type_oid(self.table.id)) {
            let message =
                format!("cannot alter table \"{}\" because column \"{user}\" uses its row type", self.table.name);
            return Err(SqlError::not_supported(message));
        }
        let own = Expr::Column { index: id.position(), ty: column.ty.clone() };
        let given = match using {
            Some(expr) if column.generated.is_some() => {
                let _ = expr;
                return Err(SqlError::new("42611", "cannot specify USING when altering type of generated column")
                    .with_detail(format!("Column \"{name}\" is a generated column.")));
            }
            Some(expr) => bind::bind_transform(&ctx, &self.before, expr)?,
            None => own,
        };
        let automatic = |expr: Expr, message: String, hint: String| {
            resolve::coerce(expr, &to, CastContext::Assignment, &ctx.eval).map_err(|error| match error.sqlstate {
                "42846" => SqlError::new("42804", message).with_hint(hint),
                _ => SqlError::from(error),
            })
        };
        let type_name = to.sql_name();
        let value = match using {
            Some(_) => automatic(
                given,
                format!(
                    "result of USING clause for column \"{name}\" cannot be cast automatically to type {type_name}"
                ),
                "You might need to add an explicit cast.".into(),
            )?,
            None => automatic(
                given,
                format!("column \"{name}\" cannot be cast automatically to type {type_name}"),
                format!("You might need to specify \"USING {name}::{type_name}\"."),
            )?,
        };
        if let Some(default) = &column.default {
            let default = crate::syntax::parse_expr_text(default)?;
            // A literal is of the column's type, all else of its own: casts to the column's are made anew.
            let own = match &default {
                ast::Expr::Value(literal)
                    if !matches!(literal.value, ast::Value::Number(..) | ast::Value::Boolean(_)) =>
                {
                    bind::bind_default(&ctx, &default, name, &column.ty)
                        .or_else(|_| bind::bind_default(&ctx, &default, name, &column.ty.base()))?
                }
                other => bind::bind_scalar(&ctx, other, None, &mut ParamTypes::none())?,
            };
            if resolve::coerce(own, &to, CastContext::Assignment, &ctx.eval)
                .is_err_and(|error| error.sqlstate == "42846")
            {
                let message = format!("default for column \"{name}\" cannot be cast automatically to type {type_name}");
                return Err(SqlError::new("42804", message));
            }
            if let (ast::Expr::Value(literal), true) = (&default, is_moment(&column.ty) && column.ty != to) {
                // It stays the moment that it was: another type would read its text anew.
                let kept = format!("{literal}::{}", column.ty.sql_name());
                self.table.columns[id.position()].default = Some(kept);
            }
        }
        self.retype_identity(session, id, &to)?;
        let is_wider = time_modifier.is_none() || time_modifier == column.time_modifier;
        let stays = using.is_none() && is_wider && reads_as(&column.ty, &to);
        let changed = &mut self.table.columns[id.position()];
        (changed.ty, changed.time_modifier) = (to, time_modifier);
        if !stays {
            changed.missing = Datum::Null;
            self.moves = true;
            self.complete = true;
            self.values.push((id, value));
        }
        if column.generated.is_some() {
            self.complete = true;
        }
        let catalog = session.txn()?.catalog();
        foreign_key::check_retyped(&catalog, &self.table, id, &column.ty, using.is_none())?;
        // Conditions and keys must have a meaning for the new type.
        self.retype_indexes(&ctx, id)?;
        self.rebind(&ctx)
    }

    /// 0A000 where something else was made of the column's type.
    fn refuse_users(&self, ctx: &BindContext, id: ColumnId, name: &str) -> Result<()> {
        for column in self.table.live_columns() {
            let Some(text) = &column.generated else { continue };
            let expr = crate::syntax::parse_expr_text(text)?;
            let bound = bind::bind_generated(ctx, &self.before, &column.name, &column.ty, &expr)?;
            if column.id != id && bind::columns_of(&bound).contains(&id) {
                return Err(SqlError::not_supported("cannot alter type of a column used by a generated column")
                    .with_detail(format!("Column \"{name}\" is used by generated column \"{}\".", column.name)));
            }
        }
        Ok(())
    }

    /// 0A000 where a view reads the column: its own columns are of that type.
    fn refuse_views(&self, session: &Session, id: ColumnId, name: &str) -> Result<()> {
        let catalog = session.catalog_now();
        let mut without = TableDef::clone(&self.before);
        without.columns[id.position()].dropped = true;
        without.primary_key = None;
        without.indexes.clear();
        without.foreign_keys.clear();
        let after = catalog.apply(&[CatalogEdit::PutTable(Arc::new(without))]).map_err(basalt_engine::Error::from)?;
        let after = Arc::new(after);
        for view in catalog.kept_queries() {
            let before = drop::width(session, &catalog, &view);
            if before.is_some() && before != drop::width(session, &after, &view) {
                let view = drop::shown(session, &catalog, view.namespace, &view.name);
                return Err(SqlError::not_supported("cannot alter type of a column used by a view or rule")
                    .with_detail(format!("rule _RETURN on view {view} depends on column \"{name}\"")));
            }
        }
        Ok(())
    }

    /// Indexes on a column whose type changes, or on expressions, which may read it, are made anew: entries are of the
    /// types of what they are over.
    fn retype_indexes(&mut self, ctx: &BindContext, id: ColumnId) -> Result<()> {
        let shared = Arc::new(self.table.clone());
        for index in &mut self.table.indexes {
            let has_sql = index.predicate.is_some() || index.plain_columns().is_none();
            if !has_sql && !index.uses(id) {
                continue;
            }
            let terms = bind::bind_index(ctx, &shared, index)?;
            // Others have not changed.
            let reads = |term: &&Expr| bind::columns_of(term).contains(&id);
            crate::statement::index::check_immutable(
                terms.columns.iter().filter(reads),
                terms.predicate.as_ref().filter(reads),
            )?;
            let changed = Arc::make_mut(index);
            for (column, term) in changed.columns.iter_mut().zip(terms.columns) {
                let ty = match column.source {
                    IndexSource::Column(of) => shared.column(of).ty.clone(),
                    IndexSource::Expression(_) => term.ty(),
                };
                if ty != column.ty {
                    crate::statement::index::check_indexable(&ty, &changed.method)?;
                    column.ty = ty;
                }
            }
            if !self.rebuild.contains(&changed.id) {
                self.rebuild.push(changed.id);
            }
        }
        Ok(())
    }

    fn rebind(&self, ctx: &BindContext) -> Result<()> {
        let shared = Arc::new(self.table.clone());
        bind::bind_row_rules(ctx, &shared)?;
        table_options::check_clustering(&self.table)?;
        for id in self.table.primary_key.iter().flat_map(|key| &key.columns) {
            let column = self.table.column(*id);
            if let DataType::Json = column.ty {
                return Err(SqlError::new("42704", "data type json has no default operator class for a key"));
            }
            if crate::statement::unique::names_no_rows(&column.ty) {
                let message = format!("a primary key cannot become one of type {}", column.ty.sql_name());
                return Err(SqlError::not_supported(message)
                    .with_hint("Drop the primary key, change the type, and add it again."));
            }
        }
        Ok(())
    }

    /// An identity column's sequence is of the column's type.
    fn retype_identity(&mut self, session: &Session, id: ColumnId, to: &DataType) -> Result<()> {
        let Some(identity) = self.table.column(id).identity else { return Ok(()) };
        let syntax = match to {
            DataType::Int2 => ast::DataType::Int2(None),
            DataType::Int4 => ast::DataType::Int4(None),
            DataType::Int8 => ast::DataType::Int8(None),
            _ => return Err(SqlError::new("22023", "identity column type must be smallint, integer, or bigint")),
        };
        let options = SequenceOptions { ty: Some(syntax), ..SequenceOptions::default() };
        self.change_sequence(session, identity, &options)
    }

    fn change_sequence(&mut self, session: &Session, identity: Identity, options: &SequenceOptions) -> Result<()> {
        let catalog = session.catalog_now();
        let Some(before) = catalog.sequences.get(&identity.sequence) else {
            return Err(SqlError::internal("an identity column has no sequence"));
        };
        let changed = sequence::changed(session, before, options, &self.sql)?;
        self.edits.push(CatalogEdit::PutSequence(changed));
        Ok(())
    }

    pub(super) fn add_identity(&mut self, session: &Session, name: &str, clause: &IdentityClause) -> Result<()> {
        let id = self.column(name)?;
        let column = self.table.column(id);
        if !matches!(column.ty, DataType::Int2 | DataType::Int4 | DataType::Int8) {
            return Err(SqlError::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        if !column.not_null {
            return Err(SqlError::new(
                "55000",
                format!("{} must be declared NOT NULL before identity can be added", self.shown(name)),
            ));
        }
        if column.identity.is_some() {
            return Err(SqlError::new("55000", format!("{} is already an identity column", self.shown(name))));
        }
        if column.default.is_some() {
            return Err(SqlError::new("55000", format!("{} already has a default value", self.shown(name))));
        }
        let catalog = session.catalog_now();
        let sql = self.sql.clone();
        let mut columns = Columns { session, catalog: &catalog, sql: &sql, sequences: Vec::new() };
        columns.identify(&mut self.table, id, clause)?;
        self.edits.extend(columns.sequences);
        Ok(())
    }

    fn identity(&self, name: &str) -> Result<(ColumnId, Option<Identity>)> {
        let id = self.column(name)?;
        Ok((id, self.table.column(id).identity))
    }

    fn no_identity(&self, name: &str) -> String {
        format!("{} is not an identity column", self.shown(name))
    }

    pub(super) fn set_identity(
        &mut self,
        session: &Session,
        name: &str,
        always: Option<bool>,
        options: &SequenceOptions,
    ) -> Result<()> {
        let (id, Some(identity)) = self.identity(name)? else {
            return Err(SqlError::new("55000", self.no_identity(name)));
        };
        if !options.is_empty() {
            self.change_sequence(session, identity, options)?;
        }
        let always = always.unwrap_or(identity.always);
        self.table.columns[id.position()].identity = Some(Identity { always, ..identity });
        Ok(())
    }

    pub(super) fn drop_identity(&mut self, session: &mut Session, name: &str, if_exists: bool) -> Result<()> {
        match self.identity(name)? {
            (id, Some(identity)) => {
                self.table.columns[id.position()].identity = None;
                self.edits.push(CatalogEdit::DropSequence(identity.sequence));
                Ok(())
            }
            (_, None) if if_exists => {
                skipping(session, "00000", self.no_identity(name));
                Ok(())
            }
            (_, None) => Err(SqlError::new("55000", self.no_identity(name))),
        }
    }

    pub(super) fn drop_expression(&mut self, session: &mut Session, name: &str, if_exists: bool) -> Result<()> {
        let id = self.column(name)?;
        if self.table.columns[id.position()].generated.take().is_some() {
            return Ok(());
        }
        let message = format!("{} is not a stored generated column", self.shown(name));
        if if_exists {
            skipping(session, "00000", message);
            return Ok(());
        }
        Err(SqlError::new("55000", message))
    }

    pub(super) fn rename_column(&mut self, old: &str, new: &str) -> Result<()> {
        let Some(id) = self.table.column_named(old).map(|column| column.id) else {
            return Err(SqlError::new("42703", format!("column \"{old}\" does not exist")));
        };
        if self.table.column_named(new).is_some() {
            return Err(SqlError::new("42701", format!("{} already exists", self.shown(new))));
        }
        for column in &mut self.table.columns {
            if let Some(text) = &column.generated {
                column.generated = Some(bind::rename_column(text, old, new)?);
            }
        }
        for check in &mut self.table.checks {
            check.sql = bind::rename_column(&check.sql, old, new)?;
        }
        for index in &mut self.table.indexes {
            let changed = Arc::make_mut(index);
            if let Some(predicate) = &mut changed.predicate {
                *predicate = bind::rename_column(predicate, old, new)?;
            }
            for column in &mut changed.columns {
                match &mut column.source {
                    IndexSource::Column(of) if *of == id => column.name = new.to_string(),
                    IndexSource::Column(_) => {}
                    IndexSource::Expression(sql) => *sql = bind::rename_column(sql, old, new)?,
                }
            }
        }
        for (option, value) in &mut self.table.options {
            if matches!(option.as_str(), "distribution_key" | "clustering_key") {
                let names = basalt_types::names::names_of(value).unwrap_or_default();
                let names = names.iter().map(|name| if name == old { new } else { name.as_str() });
                *value = names.map(crate::session::names::quote_identifier).collect::<Vec<_>>().join(",");
            }
        }
        self.table.columns[id.position()].name = new.to_string();
        Ok(())
    }
}

/// Whether values kept as one type are values of the other as they are.
fn reads_as(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        _ if from == to => true,
        (DataType::Varchar(_) | DataType::Text, DataType::Text | DataType::Varchar(None)) => true,
        (DataType::Varchar(Some(from)), DataType::Varchar(Some(to))) => to >= from,
        (DataType::Numeric(Some((from, scale))), DataType::Numeric(Some((to, to_scale)))) => {
            to >= from
                && scale == to_scale
                && DataType::phys(&DataType::Numeric(Some((*from, *scale))))
                    == DataType::phys(&DataType::Numeric(Some((*to, *to_scale))))
        }
        _ => false,
    }
}

fn is_moment(ty: &DataType) -> bool {
    use DataType::{Date, Interval, Time, TimeTz, Timestamp, TimestampTz};
    matches!(ty, Date | Interval | Time | TimeTz | Timestamp | TimestampTz)
}
