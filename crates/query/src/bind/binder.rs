//! The state of binding one statement.

use super::dml::Write;
use super::scope::{Clause, Scope, ScopeColumn};
use super::{BindContext, ParamTypes, names, position};
use crate::column::KeptPlan;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, Cte, CteId, Kept, LockTarget, OutputColumn, Plan, Query, Subquery};
use crate::syntax::LockingClause;
use crate::syntax::WHOLE_ROW;
use ahash::AHashMap;
use basalt_expr::cast::CastContext;
use basalt_expr::functions::Registry;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, ObjectId};
use sqlparser::ast::{self, Ident};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Views in views in views, and subqueries in subqueries, as deep as this (54001).
const DEPTH_MAX: usize = 64;

/// A WITH query in sight.
pub(super) struct CteDef {
    pub name: String,
    pub id: CteId,
    /// What a reference outputs, under ids of its own.
    pub columns: Vec<OutputColumn>,
    /// Inside of its own step: a reference means the rows before.
    pub is_working: bool,
    /// What is computed apart from the statement's queries, as a command that changes rows is.
    pub slot: Option<Slot>,
}

/// Of a WITH query whose rows are given when its readers run.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub number: usize,
    /// False of a command without RETURNING.
    pub gives_rows: bool,
}

pub(super) struct Binder<'a> {
    pub ctx: &'a BindContext,
    pub params: &'a mut ParamTypes,
    next_id: ColId,
    pub subqueries: BTreeMap<ColId, Subquery>,
    /// How subqueries were written, with the level at which they stood.
    pub subquery_texts: Vec<(ColId, String)>,
    pub tables: Vec<ObjectId>,
    pub aliases: BTreeMap<ColId, Arc<str>>,
    /// Scans that a locking clause has met and no [`Plan::LockRows`] has taken yet.
    pub lock_targets: Vec<LockTarget>,
    /// Locking clauses for the SELECT, view or derived table that is bound next.
    pub next_locking: Vec<LockingClause>,
    /// Innermost last.
    pub scopes: Vec<Scope>,
    /// Of the SELECT that was bound last: LIMIT must not use its columns.
    pub last_scope: Option<Scope>,
    /// Innermost and latest last.
    pub ctes: Vec<CteDef>,
    /// The WITH queries of the statement.
    pub shared: BTreeMap<CteId, Cte>,
    /// The WITH that is met next is the statement's own: it may hold commands that change rows.
    pub takes_writes: bool,
    /// Those commands so far.
    pub writes: Vec<Write>,
    /// Modifiers of columns whose type carries a physical one.
    typmods: AHashMap<ColId, i32>,
    depth: usize,
    /// The owner of the view whose body is bound.
    pub acting: Option<Arc<str>>,
    /// Tells the statement and the bodies of its views apart, and how many there are.
    pub level: u32,
    pub levels: u32,
    /// Where aggregate and window calls stand.
    pub call_places: AHashMap<ColId, Option<u32>>,
}

/// A bound query body: its plan and what it outputs.
pub(super) struct Bound {
    pub plan: Plan,
    pub columns: Vec<OutputColumn>,
}

impl<'a> Binder<'a> {
    pub fn new(ctx: &'a BindContext, params: &'a mut ParamTypes) -> Binder<'a> {
        Binder {
            ctx,
            params,
            next_id: 1,
            subqueries: BTreeMap::new(),
            subquery_texts: Vec::new(),
            tables: Vec::new(),
            aliases: BTreeMap::new(),
            lock_targets: Vec::new(),
            next_locking: Vec::new(),
            scopes: Vec::new(),
            last_scope: None,
            ctes: Vec::new(),
            shared: BTreeMap::new(),
            takes_writes: false,
            writes: Vec::new(),
            typmods: AHashMap::new(),
            depth: 0,
            acting: None,
            level: 0,
            levels: 0,
            call_places: AHashMap::new(),
        }
    }

    pub fn registry(&self) -> &'a Registry {
        &self.ctx.registry
    }

    pub fn fresh(&mut self) -> ColId {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    pub fn finish(mut self, bound: Bound) -> Query {
        self.take_query(bound.plan, bound.columns)
    }

    /// A query out of what was bound since the last one, with the WITH queries that it reads.
    pub fn take_query(&mut self, plan: Plan, columns: Vec<OutputColumn>) -> Query {
        let mut query = self.take_whole_query(plan, columns);
        query.prune();
        query.lift_columns();
        query.pass_orders_on();
        query
    }

    /// [`Self::take_query`] with all columns of its parts, for one that others are still asked of.
    pub fn take_whole_query(&mut self, plan: Plan, columns: Vec<OutputColumn>) -> Query {
        let mut tables = std::mem::take(&mut self.tables);
        tables.sort_unstable();
        tables.dedup();
        let subqueries = std::mem::take(&mut self.subqueries);
        let (ctes, row, columnar) = (self.shared.clone(), Kept::default(), KeptPlan::default());
        let aliases = std::mem::take(&mut self.aliases);
        let mut query =
            Query { plan, columns, subqueries, ctes, tables, aliases, row_locks: Vec::new(), row, columnar };
        query.count_references();
        query.inline_ctes();
        query.delay_volatile();
        query.row_locks = query.locked_tables();
        query
    }

    pub fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("expressions are bound inside a scope")
    }

    /// Runs `work` one level deeper; 54001 beyond the limit.
    pub fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_MAX {
            return Err(SqlError::new("54001", "stack depth limit exceeded")
                .with_detail(format!("Queries and views are nested more than {DEPTH_MAX} deep.")));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    /// Binds `expr` as if it stood in another clause of the same level.
    pub fn in_clause<T>(&mut self, clause: Clause, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = std::mem::replace(&mut self.scope().clause, clause);
        let result = work(self);
        self.scope().clause = outer;
        result
    }

    pub fn column_expr(&mut self, column: &ScopeColumn) -> Expr {
        if column.typmod != column.ty.typmod() {
            self.typmods.insert(column.id, column.typmod);
        }
        self.note_used(column.id);
        Expr::Hole { id: column.id, ty: column.ty.clone() }
    }

    pub fn set_typmod(&mut self, id: ColId, typmod: i32) {
        self.typmods.insert(id, typmod);
    }

    /// The modifier that a client is told.
    pub fn typmod(&self, expr: &Expr) -> i32 {
        expr.typmod(&|id| self.typmods.get(&id).copied())
    }

    /// A condition: WHERE, ON, HAVING, FILTER.
    pub fn condition(&mut self, place: &str, expr: &ast::Expr) -> Result<Expr> {
        let bound = self.expr(expr)?;
        if bound.any(&mut |node| matches!(node, Expr::Call { function, .. } if function.returns_set)) {
            let message = format!("argument of {place} must not return a set");
            return Err(SqlError::new("42804", message).at(position::of_expr(&self.ctx.sql, expr)));
        }
        let bound = resolve::build::boolean(place, bound, &self.ctx.eval)
            .map_err(|error| SqlError::from(error).at(position::of_expr(&self.ctx.sql, expr)))?;
        Ok(self.done(bound))
    }

    /// Settles open parameters that now have a type, and folds what does not depend on the statement.
    pub fn done(&mut self, expr: Expr) -> Expr {
        if self.params.are_open() {
            let params = &mut *self.params;
            expr.walk(&mut |node| {
                if let Expr::Param { index, ty } = node
                    && *ty != DataType::Unknown
                {
                    params.settle(*index, ty);
                }
                true
            });
        }
        expr
    }

    /// A value that leaves the query: what is still of unknown type becomes text.
    pub fn known(&mut self, expr: Expr) -> Result<Expr> {
        if expr.ty() != DataType::Unknown {
            return Ok(expr);
        }
        self.coerce(expr, &DataType::Text, CastContext::Implicit)
    }

    pub fn coerce(&mut self, expr: Expr, ty: &DataType, strength: CastContext) -> Result<Expr> {
        let expr = resolve::coerce(expr, ty, strength, &self.ctx.eval)?;
        Ok(self.done(expr))
    }

    /// What an unqualified or qualified column name means, innermost level first.
    pub fn column(&mut self, parts: &[Ident]) -> Result<Expr> {
        let folded: Vec<String> = parts.iter().map(names::fold).collect();
        match self.find_column(&folded) {
            Ok(Some(expr)) => {
                if let Expr::Hole { id, .. } = &expr {
                    let id = *id;
                    if let Some(scope) = self.scopes.iter_mut().rev().find(|scope| scope.defines(id)) {
                        scope.seen.push((id, parts[0].span));
                    }
                }
                Ok(expr)
            }
            Ok(None) => Err(self.no_column(&folded).at(position::of_ident(&self.ctx.sql, &parts[0]))),
            Err(error) => Err(error.at(position::of_ident(&self.ctx.sql, &parts[0]))),
        }
    }

    fn find_column(&mut self, parts: &[String]) -> Result<Option<Expr>> {
        if let [before @ .., relation, star] = parts
            && star == WHOLE_ROW
        {
            return self.whole_row(before.last().map(String::as_str), relation);
        }
        for level in (0..self.scopes.len()).rev() {
            let found = match parts {
                [name] => self.unqualified(level, name)?,
                [relation, name] => self.qualified(level, None, relation, name)?,
                [schema, relation, name] => self.qualified(level, Some(schema), relation, name)?,
                [_, schema, relation, name] => self.qualified(level, Some(schema), relation, name)?,
                _ => {
                    return Err(SqlError::syntax(format!(
                        "improper qualified name (too many dotted names): {}",
                        parts.join(".")
                    )));
                }
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        match parts {
            [name] => self.whole_row(None, name),
            _ => Ok(None),
        }
    }

    fn unqualified(&mut self, level: usize, name: &str) -> Result<Option<Expr>> {
        let mut matches = self.scopes[level].visible.iter().filter(|column| column.name == name);
        match (matches.next(), matches.next()) {
            (Some(_), Some(_)) => Err(SqlError::new("42702", format!("column reference \"{name}\" is ambiguous"))),
            (Some(column), None) => {
                let column = column.clone();
                Ok(Some(self.column_expr(&column)))
            }
            (None, _) => match (name, self.scopes[level].relations.as_slice()) {
                ("tableoid", [relation]) if relation.oid != 0 => Ok(Some(oid_const(relation.oid))),
                _ => Ok(None),
            },
        }
    }

    fn qualified(&mut self, level: usize, schema: Option<&str>, relation: &str, name: &str) -> Result<Option<Expr>> {
        let mut found = self.scopes[level].relations.iter().filter(|candidate| {
            candidate.name == relation
                && !candidate.hidden
                && schema.is_none_or(|schema| candidate.schema.as_deref() == Some(schema))
        });
        let (Some(found), others) = (found.next(), found.next()) else { return Ok(None) };
        if others.is_some() {
            return Err(SqlError::new("42P09", format!("table reference \"{relation}\" is ambiguous")));
        }
        let mut matches = found.columns.iter().filter(|column| column.name == name);
        match (matches.next(), matches.next()) {
            (Some(_), Some(_)) => Err(SqlError::new("42702", format!("column reference \"{name}\" is ambiguous"))),
            (Some(column), None) => {
                let column = column.clone();
                Ok(Some(self.column_expr(&column)))
            }
            (None, _) if name == "tableoid" && found.oid != 0 => Ok(Some(oid_const(found.oid))),
            (None, _) => Err(self.no_such_column(Some(relation), name)),
        }
    }

    fn no_column(&self, parts: &[String]) -> SqlError {
        match parts {
            [name] => self.no_such_column(None, name),
            [relation, _] => self.no_such_entry(None, relation),
            [.., schema, relation, _] => self.no_such_entry(Some(schema), relation),
            [] => SqlError::internal("a column without a name"),
        }
    }
}

fn oid_const(oid: u32) -> Expr {
    Expr::Const { value: basalt_types::Datum::I64(i64::from(oid)), ty: DataType::Oid }
}
