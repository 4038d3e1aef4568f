//! FROM: tables, views, derived tables, functions and joins.

use super::binder::{Binder, Bound};
use super::function_columns::{self, one_row};
use super::names::{self, Relation};
use super::near::invalid_reference;
use super::position;
use super::scope::{Clause, ScopeColumn, ScopeRelation, WholeRow};
use crate::error::{Result, SqlError};
use crate::plan::{JoinKind, Plan};
use crate::syntax::{LockingClause, columns_of_item, forms, is_unnamed};
use basalt_engine::{SequenceDef, ViewDef, privilege};
use basalt_expr::cast::CastContext;
use basalt_expr::functions::structures;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum, TableDef};
use sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, Ident, JoinConstraint, JoinOperator, TableAlias, TableFactor,
};
use std::sync::Arc;

/// The calls of one function item of FROM, each with the name of its column.
struct FunctionCalls<'f> {
    name: String,
    calls: Vec<(String, Expr)>,
    alias: Option<&'f TableAlias>,
    with_ordinality: bool,
}

/// A bound piece of FROM.
pub(super) struct FromItem {
    pub plan: Plan,
    pub relations: Vec<ScopeRelation>,
    pub visible: Vec<ScopeColumn>,
}

impl Binder<'_> {
    /// The whole FROM list, put into the current scope piece by piece so that LATERAL sees what is left of it.
    pub fn table_list(&mut self, from: &[ast::TableWithJoins]) -> Result<Plan> {
        let mut plan: Option<Plan> = None;
        for item in from {
            let bound = self.joined(item, plan.take())?;
            self.check_names(&bound.relations)?;
            let scope = self.scope();
            scope.relations.extend(bound.relations);
            scope.visible.extend(bound.visible);
            plan = Some(bound.plan);
        }
        Ok(plan.unwrap_or(Plan::Unit))
    }

    fn check_names(&mut self, relations: &[ScopeRelation]) -> Result<()> {
        for (index, relation) in relations.iter().enumerate() {
            let same = |other: &ScopeRelation| other.name == relation.name && may_be_confused(other, relation);
            let known = self.scope().relations.iter().any(same) || relations[..index].iter().any(same);
            if known && !relation.hidden && !relation.name.is_empty() {
                return Err(SqlError::new(
                    "42712",
                    format!("table name \"{}\" specified more than once", relation.name),
                ));
            }
        }
        Ok(())
    }

    /// One item of the list with its joins; `left` is what stands before it.
    fn joined(&mut self, item: &ast::TableWithJoins, left: Option<Plan>) -> Result<FromItem> {
        let mut bound = self.factor_beside(&item.relation, left)?;
        for join in &item.joins {
            bound = self.join(bound, join)?;
        }
        Ok(bound)
    }

    /// A factor crossed with the plan to its left, which it may refer to if it is lateral.
    fn factor_beside(&mut self, factor: &TableFactor, left: Option<Plan>) -> Result<FromItem> {
        if let Some(options) = options_table(factor)? {
            return self.factor_beside(&options, left);
        }
        if let TableFactor::Table { args: Some(_), sample: Some(_), .. } = factor {
            return Err(SqlError::syntax("syntax error at or near \"TABLESAMPLE\""));
        }
        if is_function(factor) {
            return self.function_factor(factor, left.unwrap_or(Plan::Unit), false);
        }
        let mut bound = self.factor(factor)?;
        if let Some(left) = left {
            let lateral = self.is_lateral_beside(factor, &bound.plan, &left);
            bound.plan = join_plan(left, bound.plan, JoinKind::Inner, None, lateral);
        }
        Ok(bound)
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<FromItem> {
        match factor {
            TableFactor::Table { name, alias, args: None, sample: None, .. } => self.table_factor(name, alias.as_ref()),
            TableFactor::Derived { sample: Some(_), .. } => {
                Err(SqlError::syntax("syntax error at or near \"TABLESAMPLE\""))
            }
            TableFactor::Table { name, alias, args: None, sample: Some(sample), .. } => {
                let item = self.table_factor(name, alias.as_ref())?;
                self.sampled(item, name, sample)
            }
            TableFactor::Derived { lateral, subquery, alias, sample: None } => {
                let name = alias.as_ref().map(|alias| names::fold(&alias.name)).unwrap_or_default();
                let locking = self.locking_of(&name);
                let bound = self.derived(*lateral, subquery, locking)?;
                if alias.is_none() {
                    let place = position::of_query(&self.ctx.sql, subquery);
                    return Err(SqlError::syntax("subquery in FROM must have an alias")
                        .at(place)
                        .with_hint("For example, FROM (SELECT ...) [AS] foo."));
                }
                self.relation_of(name, bound, alias.as_ref())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let mut bound = self.joined(table_with_joins, None)?;
                if let Some(alias) = alias {
                    self.refuse_to_lock(&names::fold(&alias.name), "a join")?;
                    for relation in &mut bound.relations {
                        relation.hidden = true;
                    }
                    let columns = renamed(&bound.visible, alias)?;
                    bound.relations.push(relation_named(names::fold(&alias.name), columns.clone()));
                    bound.visible = columns;
                }
                Ok(bound)
            }
            factor if is_function(factor) => self.function_factor(factor, Plan::Unit, false),
            other => Err(SqlError::not_supported(format!("FROM item {other} is not supported"))),
        }
    }

    /// A query's rows as a relation. Outputs that are the same are columns apart: grouping sets tell them apart.
    fn relation_of(&mut self, name: String, mut bound: Bound, alias: Option<&TableAlias>) -> Result<FromItem> {
        let mut own = Vec::new();
        for at in 1..bound.columns.len() {
            let (before, rest) = bound.columns.split_at_mut(at);
            let column = &mut rest[0];
            if before.iter().any(|other| other.id == column.id) {
                let id = self.fresh();
                self.set_typmod(id, column.typmod);
                own.push((id, Expr::Hole { id: column.id, ty: column.ty.clone() }));
                column.id = id;
            }
        }
        if !own.is_empty() {
            let passed = bound.plan.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
            let exprs = passed.chain(own).collect();
            bound.plan = Plan::Project { input: Box::new(bound.plan), exprs };
        }
        let columns = bound.columns.into_iter().map(|column| ScopeColumn {
            name: column.name,
            id: column.id,
            ty: column.ty,
            typmod: column.typmod,
            table_oid: column.table_oid,
            column_no: column.column_no,
        });
        let columns = rename_all(columns.collect(), alias)?;
        Ok(FromItem { plan: bound.plan, relations: vec![relation_named(name, columns.clone())], visible: columns })
    }

    /// A derived table: sees nothing of its siblings unless it is lateral.
    fn derived(&mut self, lateral: bool, query: &ast::Query, locking: Option<LockingClause>) -> Result<Bound> {
        self.next_locking.extend(locking);
        if lateral {
            return self.in_clause(Clause::FromSubquery, |binder| binder.query(query));
        }
        self.scope().disappear(Clause::Select);
        let bound = self.query(query);
        self.scope().reappear();
        bound
    }

    fn table_factor(&mut self, name: &ast::ObjectName, alias: Option<&TableAlias>) -> Result<FromItem> {
        let parts = names::parts(name)?;
        if let [cte_name] = parts.as_slice()
            && let Some(index) = self.ctes.iter().rposition(|cte| cte.name == *cte_name)
        {
            let shown = alias.map_or_else(|| cte_name.clone(), |alias| names::fold(&alias.name));
            self.refuse_to_lock(&shown, "a WITH query")?;
            self.scope().is_step |= self.ctes[index].is_working;
            let bound = self.cte(index)?;
            return self.relation_of(shown, bound, alias);
        }
        let shown = alias.map_or_else(|| parts.last().cloned().unwrap_or_default(), |alias| names::fold(&alias.name));
        self.check_schema(&parts, position::of_name(&self.ctx.sql, name))?;
        let relation = self.ctx.relation(name)?;
        let mut bound = match relation {
            Relation::Table(table) => {
                let locking = self.locking_of(&shown);
                if locking.is_some() && table.materialized.is_some() {
                    let message = format!("cannot lock rows in materialized view \"{}\"", table.name);
                    return Err(SqlError::new("42809", message));
                }
                let mut item = self.base_table(&table, shown, alias)?;
                if let Plan::Scan { terms, .. } = &mut item.plan {
                    *terms = super::index_terms::of_table(self.ctx, &table);
                }
                let columns = item.visible.iter().map(|column| (column.id, column.column_no));
                let lock = if locking.is_some() { privilege::UPDATE } else { 0 };
                self.need(table.id, privilege::SELECT | lock, columns);
                self.lock_scan(&mut item.plan, locking);
                item
            }
            Relation::View(view) => {
                let locking = self.locking_of(&shown);
                let lock = if locking.is_some() { privilege::UPDATE } else { 0 };
                self.next_locking.extend(locking);
                let bound = self.view(&view)?;
                let mut item = self.relation_of(shown, bound, alias)?;
                let columns = (1..).zip(&item.visible).map(|(number, column)| (column.id, number));
                self.need(view.id, privilege::SELECT | lock, columns);
                item.relations[0].oid = view.id.0;
                item
            }
            Relation::Sequence(sequence) => {
                self.refuse_to_lock(&shown, "a sequence")?;
                self.need(sequence.id, privilege::SELECT, std::iter::empty());
                self.sequence_state(&sequence, shown, alias)?
            }
            Relation::Virtual(table) => {
                let mut columns = Vec::with_capacity(table.columns.len());
                let mut ids = Vec::with_capacity(table.columns.len());
                for (index, (name, ty)) in table.columns.iter().enumerate() {
                    let id = self.fresh();
                    ids.push((id, index));
                    columns.push(ScopeColumn {
                        name: (*name).to_string(),
                        id,
                        ty: ty(),
                        typmod: -1,
                        table_oid: table.oid,
                        column_no: index as i16 + 1,
                    });
                }
                let columns = rename_all(columns, alias)?;
                let mut relation = relation_named(shown, columns.clone());
                relation.oid = table.oid;
                FromItem {
                    plan: Plan::VirtualScan { table, columns: ids },
                    relations: vec![relation],
                    visible: columns,
                }
            }
        };
        if let Some((_, schema)) = super::pinned::relation_marked(&parts) {
            bound.relations[0].schema = schema.map(str::to_string);
            bound.visible.retain(|column| !super::pinned::is_hidden(&column.name));
        }
        if alias.is_none() {
            bound.relations[0].schema = match parts.as_slice() {
                [.., schema, _] => Some(schema.clone()),
                _ => self.schema_of(&bound.plan),
            };
        }
        Ok(bound)
    }

    fn schema_of(&self, plan: &Plan) -> Option<String> {
        match plan {
            Plan::Scan { table, .. } => {
                self.ctx.catalog.namespaces.get(&table.namespace).map(|namespace| namespace.name.clone())
            }
            Plan::VirtualScan { table, .. } => Some(table.schema.to_string()),
            _ => None,
        }
    }

    pub fn base_table(&mut self, table: &Arc<TableDef>, shown: String, alias: Option<&TableAlias>) -> Result<FromItem> {
        self.tables.push(table.id);
        let mut columns = Vec::new();
        let mut ids = Vec::new();
        let indexed = table
            .indexes
            .iter()
            .find(|index| index.constraint.is_some_and(|constraint| constraint.primary && !constraint.deferrable));
        let mut key_ids = Vec::new();
        for column in table.live_columns() {
            let id = self.fresh();
            ids.push((id, column.id));
            if table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column.id))
                || indexed.is_some_and(|key| key.plain_columns().is_some_and(|of| of.contains(&column.id)))
            {
                key_ids.push(id);
            }
            columns.push(ScopeColumn {
                name: column.name.clone(),
                id,
                ty: column.ty.clone(),
                typmod: column.typmod(),
                table_oid: table.id.0,
                column_no: column.id.0 as i16,
            });
        }
        if shown != table.name {
            let shown: Arc<str> = shown.as_str().into();
            self.aliases.extend(ids.iter().map(|(id, _)| (*id, shown.clone())));
        }
        let columns = rename_all(columns, alias)?;
        let mut relation = relation_named(shown, columns.clone());
        relation.oid = table.id.0;
        relation.key = key_ids;
        Ok(FromItem {
            plan: Plan::Scan { table: table.clone(), columns: ids, identity: None, terms: Arc::default() },
            relations: vec![relation],
            visible: columns,
        })
    }

    /// A sequence read as a table: one row of functions over its state.
    fn sequence_state(
        &mut self,
        sequence: &SequenceDef,
        shown: String,
        alias: Option<&TableAlias>,
    ) -> Result<FromItem> {
        let (mut exprs, mut columns) = (Vec::new(), Vec::new());
        for (at, (name, ty, function)) in crate::pgcatalog::SEQUENCE_COLUMNS.iter().enumerate() {
            let oid = Datum::I64(i64::from(sequence.id.0));
            let value = self.call(function, vec![Expr::Const { value: oid, ty: DataType::Regclass }])?;
            let id = self.fresh();
            exprs.push((id, value));
            columns.push(ScopeColumn {
                name: (*name).to_string(),
                id,
                ty: ty.clone(),
                typmod: -1,
                table_oid: sequence.id.0,
                column_no: at as i16 + 1,
            });
        }
        let columns = rename_all(columns, alias)?;
        let mut relation = relation_named(shown, columns.clone());
        relation.oid = sequence.id.0;
        let plan = Plan::Project { input: Box::new(Plan::Unit), exprs };
        Ok(FromItem { plan, relations: vec![relation], visible: columns })
    }

    /// A view's body sees neither the scopes nor the CTEs around its use.
    fn view(&mut self, view: &Arc<ViewDef>) -> Result<Bound> {
        let bound = self.inside_view(view, |binder| {
            let query = super::parse_query(&view.sql)?;
            binder.query(&query)
        });
        let mut bound = bound.map_err(|mut error| {
            error.position = None;
            error
        })?;
        // `SELECT *` of a table that has got more columns since.
        bound.columns.truncate(view.columns.len());
        for (column, (name, _)) in bound.columns.iter_mut().zip(&view.columns) {
            column.name.clone_from(name);
            column.table_oid = 0;
            column.column_no = 0;
        }
        Ok(if view.is_barrier() { self.fenced(&view.name, bound) } else { bound })
    }

    /// The same rows, computed before anything that is asked of them: nobody's conditions get between its own.
    fn fenced(&mut self, name: &str, bound: Bound) -> Bound {
        let cte = self.share(name, bound.plan, &bound.columns, true);
        self.shared_rows(cte, bound.columns)
    }

    /// A set-returning (or any) function in FROM: its rows beside each row of `input`.
    fn function_factor(&mut self, factor: &TableFactor, input: Plan, keep_empty: bool) -> Result<FromItem> {
        let FunctionCalls { name, calls, alias, with_ordinality } = self.function_calls(factor)?;
        let mut columns = Vec::with_capacity(calls.len());
        let mut sets = Vec::new();
        let mut plain = Vec::new();
        let mut fields = Vec::new();
        let mut row = WholeRow::Columns;
        let single = calls.len() == 1;
        for (own_name, call) in calls {
            let id = self.fresh();
            let ty = call.ty();
            match ty.composite() {
                Some(composite) => {
                    for (at, attribute) in composite.live() {
                        let field = self.fresh();
                        let mut value = structures::field(Expr::Hole { id, ty: ty.clone() }, at);
                        if let Some(modifier) = attribute.time_modifier {
                            value = self.call(&super::typname(&attribute.ty), vec![value, Expr::int4(modifier)])?;
                        }
                        fields.push((field, value));
                        columns.push(scope_column(attribute.name.clone(), field, attribute.ty.clone()));
                    }
                    if single && !composite.is_anonymous() && !with_ordinality {
                        row = WholeRow::Named(composite.clone());
                    }
                }
                None => {
                    let column_name = match (function_columns::value_name(&call), alias) {
                        (Some(name), _) => name.to_string(),
                        (None, Some(alias)) if single && !is_unnamed(alias) => names::fold(&alias.name),
                        _ => own_name,
                    };
                    columns.push(scope_column(column_name, id, ty));
                    if single && !with_ordinality {
                        row = WholeRow::Value;
                    }
                }
            }
            match &call {
                Expr::Call { function, .. } if function.returns_set => sets.push((id, call)),
                _ => plain.push((id, call)),
            }
        }
        let mut plan = input;
        if !plain.is_empty() {
            let passed = plan.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
            let exprs = passed.chain(plain).collect();
            plan = Plan::Project { input: Box::new(plan), exprs };
        }
        // Where an outer join has no row of the function, there is no ordinality either.
        let may_be_missing = keep_empty && !sets.is_empty();
        let ordinality = (with_ordinality || may_be_missing).then(|| self.fresh());
        if let Some(id) = ordinality.filter(|_| with_ordinality) {
            columns.push(scope_column("ordinality".into(), id, DataType::Int8));
        }
        plan = Plan::ProjectSet { input: Box::new(plan), sets, ordinality, keep_empty };
        let marker = ordinality.filter(|_| may_be_missing).map(|ordinality| (ordinality, self.fresh()));
        if let Some((ordinality, marker)) = marker {
            let has_row = Expr::IsNotNull(Box::new(Expr::Hole { id: ordinality, ty: DataType::Int8 }));
            let branches = vec![(has_row, Expr::bool(true))];
            fields.push((marker, Expr::Case { branches, otherwise: None, ty: DataType::Bool }));
        }
        if !fields.is_empty() {
            let passed = plan.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
            let exprs = passed.chain(fields).collect();
            plan = Plan::Project { input: Box::new(plan), exprs };
        }
        let shown = alias.filter(|alias| !is_unnamed(alias)).map_or(name, |alias| names::fold(&alias.name));
        self.refuse_to_lock(&shown, "a function")?;
        let columns = rename_all(columns, alias)?;
        let mut relation = relation_named(shown, columns.clone());
        relation.row = row;
        relation.marker = marker.map(|(_, marker)| marker);
        Ok(FromItem { plan, relations: vec![relation], visible: columns })
    }

    fn function_calls<'f>(&mut self, factor: &'f TableFactor) -> Result<FunctionCalls<'f>> {
        let (name, args, alias, with_ordinality): (_, &[FunctionArg], _, _) = match factor {
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
                (name, &args.args, alias, *with_ordinality)
            }
            TableFactor::Function { name, args, alias, with_ordinality, .. } => (name, args, alias, *with_ordinality),
            TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
                let given = alias.as_ref().and_then(function_columns::given);
                let calls =
                    self.in_clause(Clause::FromFunction, |binder| binder.unnested(array_exprs, given.as_deref()))?;
                let (name, alias) = ("unnest".to_string(), alias.as_ref());
                return Ok(FunctionCalls { name, calls, alias, with_ordinality: *with_ordinality });
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                let shown = function_name(name)?;
                let call = self.in_clause(Clause::FromFunction, |binder| binder.expr(&keyword(name)))?;
                let calls = vec![(shown.clone(), call)];
                return Ok(FunctionCalls { name: shown, calls, alias: alias.as_ref(), with_ordinality: false });
            }
            TableFactor::TableFunction { expr: ast::Expr::Function(function), alias } => {
                let name = function_name(&function.name)?;
                let call = self.in_clause(Clause::FromFunction, |binder| binder.function(function))?;
                let calls = vec![(name.clone(), call)];
                return Ok(FunctionCalls { name, calls, alias: alias.as_ref(), with_ordinality: false });
            }
            other => return Err(SqlError::not_supported(format!("FROM item {other} is not supported"))),
        };
        let alias = alias.as_ref();
        if let [ast::ObjectNamePart::Identifier(only)] = name.0.as_slice()
            && only.value == forms::ROWS_FROM
        {
            let calls = self.in_clause(Clause::FromFunction, |binder| {
                let items = plain_args(args)?;
                let mut calls = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    if columns_of_item(item).is_some() {
                        continue;
                    }
                    let given = items.get(at + 1).and_then(|next| columns_of_item(next));
                    if let ast::Expr::Function(function) = item
                        && let ast::FunctionArguments::List(list) = &function.args
                        && is_unnest_of_several(&function.name, &list.args)
                    {
                        calls.extend(binder.unnested(plain_args(&list.args)?, given.as_deref())?);
                        continue;
                    }
                    let (name, call) = binder.row_source(item)?;
                    let of_alias = || alias.and_then(function_columns::given).filter(|_| items.len() == 1);
                    let given = given.or_else(of_alias);
                    calls.push((name, binder.with_columns(call, given.as_deref())?));
                }
                Ok(calls)
            })?;
            let calls = match calls.len() {
                1 => calls,
                _ => calls.into_iter().map(|(name, call)| (name, one_row(call))).collect(),
            };
            let name = calls.first().map(|(name, _)| name.clone()).unwrap_or_default();
            return Ok(FunctionCalls { name, calls, alias, with_ordinality });
        }
        let shown = function_name(name)?;
        if is_unnest_of_several(name, args) {
            let (arrays, given) = (plain_args(args)?, alias.and_then(function_columns::given));
            let calls = self.in_clause(Clause::FromFunction, |binder| binder.unnested(arrays, given.as_deref()))?;
            return Ok(FunctionCalls { name: shown, calls, alias, with_ordinality });
        }
        let list = ast::FunctionArgumentList { duplicate_treatment: None, args: args.to_vec(), clauses: Vec::new() };
        let call = ast::Function {
            name: name.clone(),
            uses_odbc_syntax: false,
            parameters: ast::FunctionArguments::None,
            args: ast::FunctionArguments::List(list),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: Vec::new(),
        };
        let given = alias.and_then(function_columns::given);
        if given.is_some() && with_ordinality {
            return Err(SqlError::syntax("WITH ORDINALITY cannot be used with a column definition list")
                .with_hint("Put the column definition list inside ROWS FROM()."));
        }
        let call = self.in_clause(Clause::FromFunction, |binder| {
            let call = binder.function(&call)?;
            binder.with_columns(call, given.as_deref())
        })?;
        Ok(FunctionCalls { name: shown.clone(), calls: vec![(shown, call)], alias, with_ordinality })
    }

    /// `unnest` of several arrays: so many calls side by side. 42601 if these have a column definition list.
    fn unnested<'e>(
        &mut self,
        arrays: impl IntoIterator<Item = &'e ast::Expr, IntoIter: ExactSizeIterator>,
        given: Option<&[(ast::Ident, ast::DataType)]>,
    ) -> Result<Vec<(String, Expr)>> {
        let arrays = arrays.into_iter();
        if given.is_some() && arrays.len() > 1 {
            let message = "UNNEST() with multiple arguments cannot have a column definition list";
            return Err(SqlError::syntax(message));
        }
        let call = |array| {
            let call = self.named_call("unnest", &[array])?;
            Ok(("unnest".to_string(), self.with_columns(call, given)?))
        };
        arrays.map(call).collect()
    }

    /// One item of ROWS FROM.
    fn row_source(&mut self, call: &ast::Expr) -> Result<(String, Expr)> {
        match call {
            ast::Expr::Function(function) => Ok((function_name(&function.name)?, self.function(function)?)),
            other => Err(SqlError::syntax(format!("ROWS FROM takes calls of functions, not {other}"))),
        }
    }

    fn join(&mut self, left: FromItem, join: &ast::Join) -> Result<FromItem> {
        let (kind, constraint) = match &join.join_operator {
            JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) | JoinOperator::CrossJoin(constraint) => {
                (JoinKind::Inner, constraint)
            }
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (JoinKind::Left, constraint),
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (JoinKind::Right, constraint),
            JoinOperator::FullOuter(constraint) => (JoinKind::Full, constraint),
            _ => return Err(SqlError::not_supported("this kind of join is not supported")),
        };
        if matches!(constraint, JoinConstraint::None) && !matches!(join.join_operator, JoinOperator::CrossJoin(_)) {
            return Err(SqlError::syntax("syntax error: a join needs ON or USING"));
        }
        let FromItem { plan: left_plan, relations: mut left_relations, visible: left_visible } = left;
        // What stands left is visible to a lateral right side.
        let marks = self.push_visible(&left_relations, &left_visible);
        let right = if is_function(&join.relation) {
            self.function_join(&join.relation, left_plan, kind, constraint)
        } else {
            self.factor(&join.relation).map(|right| (right, Some(left_plan)))
        };
        self.pop_visible(marks);
        let (mut right, left_plan) = right?;
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            self.may_be_missing(&mut right.relations);
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            self.may_be_missing(&mut left_relations);
        }
        let lateral = left_plan.as_ref().is_some_and(|left| self.is_lateral_beside(&join.relation, &right.plan, left));
        if lateral && matches!(kind, JoinKind::Right | JoinKind::Full) {
            return Err(self.refused_lateral(&left_relations));
        }
        let mut relations = left_relations;
        self.check_names(&right.relations)?;
        relations.extend(right.relations);
        let Some(left_plan) = left_plan else {
            let visible = left_visible.into_iter().chain(right.visible).collect();
            return Ok(FromItem { plan: right.plan, relations, visible });
        };
        let mut alias = None;
        let names: Vec<Ident> = match constraint {
            JoinConstraint::Using(names) => names
                .iter()
                .filter(|name| match name.0.as_slice() {
                    [ast::ObjectNamePart::Identifier(mark), ast::ObjectNamePart::Identifier(given)]
                        if mark.value == forms::USING_ALIAS =>
                    {
                        alias = Some(names::fold(given));
                        false
                    }
                    _ => true,
                })
                .filter_map(|name| match name.0.last() {
                    Some(ast::ObjectNamePart::Identifier(ident)) => Some(ident.clone()),
                    _ => None,
                })
                .collect(),
            JoinConstraint::Natural => left_visible
                .iter()
                .filter(|column| right.visible.iter().any(|other| other.name == column.name))
                .map(|column| Ident::with_quote('"', column.name.clone()))
                .collect(),
            JoinConstraint::On(condition) => {
                let visible: Vec<ScopeColumn> = left_visible.into_iter().chain(right.visible).collect();
                let condition = self.join_condition(condition, &relations, &visible)?;
                let plan = join_plan(left_plan, right.plan, kind, Some(condition), lateral);
                return Ok(FromItem { plan, relations, visible });
            }
            JoinConstraint::None => {
                let visible = left_visible.into_iter().chain(right.visible).collect();
                return Ok(FromItem {
                    plan: join_plan(left_plan, right.plan, kind, None, lateral),
                    relations,
                    visible,
                });
            }
        };
        let mut item =
            self.using(left_plan, left_visible, right.plan, right.visible, kind, lateral, &names, relations)?;
        if let Some(alias) = alias {
            let merged = item.visible[..names.len()].to_vec();
            let relation = relation_named(alias, merged);
            if item.relations.iter().any(|other| other.name == relation.name && !other.hidden) {
                let message = format!("table name \"{}\" specified more than once", relation.name);
                return Err(SqlError::new("42712", message));
            }
            item.relations.push(relation);
        }
        Ok(item)
    }

    /// Whether a piece of FROM refers to what stands left of it.
    fn is_lateral_beside(&self, factor: &TableFactor, plan: &Plan, left: &Plan) -> bool {
        let may_be = is_lateral(factor) || is_function(factor) || matches!(factor, TableFactor::NestedJoin { .. });
        if !may_be {
            return false;
        }
        let columns: ahash::AHashSet<crate::plan::ColId> = left.columns().into_iter().map(|(id, _)| id).collect();
        self.plan_uses(plan, &|id| columns.contains(&id))
    }

    /// 42P10 for a reference to the side of a join that may have no row.
    fn refused_lateral(&mut self, left: &[ScopeRelation]) -> SqlError {
        let has = |relation: &&ScopeRelation, id| relation.columns.iter().any(|column| column.id == id);
        let seen = self.scope().seen.clone();
        let used = seen.iter().rev().find_map(|(id, span)| Some((left.iter().find(|known| has(known, *id))?, *span)));
        let error = match used {
            Some((relation, span)) => {
                invalid_reference("42P10", &relation.name).at(position::of_span(&self.ctx.sql, span))
            }
            None => SqlError::new("42P10", "invalid reference to FROM-clause entry"),
        };
        error.with_detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
    }

    fn may_be_missing(&mut self, relations: &mut [ScopeRelation]) {
        for relation in relations {
            relation.marker.get_or_insert_with(|| self.fresh());
        }
    }

    /// `JOIN function(…) ON true`, whose arguments may refer to the left.
    fn function_join(
        &mut self,
        factor: &TableFactor,
        left: Plan,
        kind: JoinKind,
        constraint: &JoinConstraint,
    ) -> Result<(FromItem, Option<Plan>)> {
        let trivial = match constraint {
            JoinConstraint::None => true,
            JoinConstraint::On(ast::Expr::Value(value)) => value.value == ast::Value::Boolean(true),
            _ => false,
        };
        if trivial && matches!(kind, JoinKind::Inner | JoinKind::Left) {
            return Ok((self.function_factor(factor, left, kind == JoinKind::Left)?, None));
        }
        Ok((self.function_factor(factor, Plan::Unit, false)?, Some(left)))
    }

    fn push_visible(&mut self, relations: &[ScopeRelation], visible: &[ScopeColumn]) -> (usize, usize) {
        let scope = self.scope();
        let marks = (scope.relations.len(), scope.visible.len());
        scope.relations.extend_from_slice(relations);
        scope.visible.extend_from_slice(visible);
        marks
    }

    fn pop_visible(&mut self, marks: (usize, usize)) {
        let scope = self.scope();
        scope.relations.truncate(marks.0);
        scope.visible.truncate(marks.1);
    }

    /// ON sees the two sides of its join only.
    fn join_condition(
        &mut self,
        condition: &ast::Expr,
        relations: &[ScopeRelation],
        visible: &[ScopeColumn],
    ) -> Result<Expr> {
        let scope = self.scope();
        scope.disappear(Clause::FromOn);
        scope.relations = relations.to_vec();
        scope.visible = visible.to_vec();
        let bound = self.condition("JOIN/ON", condition);
        self.scope().reappear();
        bound
    }

    #[allow(clippy::too_many_arguments)]
    fn using(
        &mut self,
        left_plan: Plan,
        mut left: Vec<ScopeColumn>,
        right_plan: Plan,
        mut right: Vec<ScopeColumn>,
        kind: JoinKind,
        lateral: bool,
        names: &[Ident],
        relations: Vec<ScopeRelation>,
    ) -> Result<FromItem> {
        let mut conditions = Vec::with_capacity(names.len());
        let mut merged = Vec::with_capacity(names.len());
        let mut computed = Vec::new();
        for (index, ident) in names.iter().enumerate() {
            let name = names::fold(ident);
            if names[..index].iter().any(|earlier| names::fold(earlier) == name) {
                let message = format!("column name \"{name}\" appears more than once in USING clause");
                return Err(SqlError::new("42701", message));
            }
            let a = take_column(&mut left, &name, "left")?;
            let b = take_column(&mut right, &name, "right")?;
            let (left_expr, right_expr) = (self.column_expr(&a), self.column_expr(&b));
            conditions.push(self.operator("=", Some(left_expr.clone()), right_expr.clone())?);
            merged.push(match kind {
                JoinKind::Inner | JoinKind::Left if a.ty == b.ty => a,
                JoinKind::Right if a.ty == b.ty => b,
                _ => {
                    let expr = match kind {
                        JoinKind::Full => basalt_expr::resolve::coalesce(vec![left_expr, right_expr], &self.ctx.eval)?,
                        _ => {
                            let types = [left_expr.ty(), right_expr.ty()];
                            let ty = basalt_expr::resolve::resolve_common_type("JOIN/USING", &types)?;
                            let takes_right = match kind {
                                JoinKind::Right => true,
                                JoinKind::Inner => left_expr.ty() != ty && right_expr.ty() == ty,
                                JoinKind::Left | JoinKind::Full => false,
                            };
                            let side = if takes_right { right_expr } else { left_expr };
                            self.coerce(side, &ty, CastContext::Implicit)?
                        }
                    };
                    let id = self.fresh();
                    let column = scope_column(name, id, expr.ty());
                    computed.push((id, expr));
                    column
                }
            });
        }
        let condition = (!conditions.is_empty()).then(|| Expr::and(conditions));
        let mut plan = join_plan(left_plan, right_plan, kind, condition, lateral);
        if !computed.is_empty() {
            let passed = plan.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
            let exprs = passed.chain(computed).collect();
            plan = Plan::Project { input: Box::new(plan), exprs };
        }
        let visible = merged.into_iter().chain(left).chain(right).collect();
        Ok(FromItem { plan, relations, visible })
    }
}

fn take_column(columns: &mut Vec<ScopeColumn>, name: &str, side: &str) -> Result<ScopeColumn> {
    let mut found = columns.iter().enumerate().filter(|(_, column)| column.name == name).map(|(index, _)| index);
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => {
            Err(SqlError::new("42702", format!("common column name \"{name}\" appears more than once in {side} table")))
        }
        (Some(index), None) => Ok(columns.remove(index)),
        (None, _) => Err(SqlError::new(
            "42703",
            format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
        )),
    }
}

fn join_plan(left: Plan, right: Plan, kind: JoinKind, condition: Option<Expr>, lateral: bool) -> Plan {
    if matches!(left, Plan::Unit) && kind == JoinKind::Inner && condition.is_none() {
        return right;
    }
    Plan::Join { left: Box::new(left), right: Box::new(right), kind, condition, lateral }
}

/// Whether the names of two relations are not told apart by their schemas.
pub(super) fn may_be_confused(a: &ScopeRelation, b: &ScopeRelation) -> bool {
    match (&a.schema, &b.schema) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}

fn is_lateral(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Derived { lateral: true, .. })
}

/// Functions that are called without parentheses, in FROM as elsewhere.
fn is_keyword(name: &ast::ObjectName) -> bool {
    const WORDS: [&str; 10] = [
        "current_date",
        "current_time",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "current_role",
        "current_user",
        "session_user",
        "user",
        "current_catalog",
    ];
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(ident)] if ident.quote_style.is_none() => {
            WORDS.iter().any(|word| ident.value.eq_ignore_ascii_case(word))
        }
        _ => false,
    }
}

fn keyword(name: &ast::ObjectName) -> ast::Expr {
    ast::Expr::Function(ast::Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::None,
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// `pg_options_to_table(array)`, as the query that it is: `name=value` texts as two columns.
fn options_table(factor: &TableFactor) -> Result<Option<TableFactor>> {
    let (name, args, alias) = match factor {
        TableFactor::Table { name, alias, args: Some(args), .. } => (name, &args.args, alias),
        TableFactor::Function { name, alias, args, .. } => (name, args, alias),
        _ => return Ok(None),
    };
    let ([FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))], Ok("pg_options_to_table")) =
        (args.as_slice(), function_name(name).as_deref())
    else {
        return Ok(None);
    };
    let sql = format!(
        "SELECT split_part(o, '=', 1) AS option_name, \
         CASE WHEN strpos(o, '=') > 0 THEN substr(o, strpos(o, '=') + 1) END AS option_value FROM unnest({arg}) AS u (o)"
    );
    let own = TableAlias { explicit: true, name: Ident::new("pg_options_to_table"), columns: Vec::new(), at: None };
    let subquery = Box::new(super::parse_query(&sql)?);
    let alias = Some(alias.clone().unwrap_or(own));
    Ok(Some(TableFactor::Derived { lateral: true, subquery, alias, sample: None }))
}

fn is_function(factor: &TableFactor) -> bool {
    if let TableFactor::Table { name, args: None, .. } = factor {
        return is_keyword(name);
    }
    matches!(
        factor,
        TableFactor::Table { args: Some(_), .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::TableFunction { .. }
    )
}

fn function_name(name: &ast::ObjectName) -> Result<String> {
    match names::parts(name)?.as_slice() {
        [name] => Ok(name.clone()),
        [schema, name] if schema == "pg_catalog" => Ok(name.clone()),
        [schema, name] if schema == "information_schema" && name.starts_with("_pg_") => Ok(name.clone()),
        parts => Err(SqlError::new("42883", format!("function {} does not exist", parts.join(".")))),
    }
}

/// Which only the name alone is, without a schema.
fn is_unnest_of_several(name: &ast::ObjectName, args: &[FunctionArg]) -> bool {
    let is_unnest =
        matches!(name.0.as_slice(), [ast::ObjectNamePart::Identifier(name)] if names::fold(name) == "unnest");
    is_unnest && args.len() > 1
}

fn plain_args(args: &[FunctionArg]) -> Result<Vec<&ast::Expr>> {
    args.iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
            _ => Err(SqlError::not_supported("named arguments are not supported")),
        })
        .collect()
}

pub(super) fn scope_column(name: String, id: crate::plan::ColId, ty: DataType) -> ScopeColumn {
    ScopeColumn { name, id, ty, typmod: -1, table_oid: 0, column_no: 0 }
}

fn relation_named(name: String, columns: Vec<ScopeColumn>) -> ScopeRelation {
    let row = WholeRow::Columns;
    ScopeRelation { name, schema: None, oid: 0, columns, key: Vec::new(), hidden: false, marker: None, row }
}

fn renamed(columns: &[ScopeColumn], alias: &TableAlias) -> Result<Vec<ScopeColumn>> {
    rename_all(columns.to_vec(), Some(alias))
}

/// `AS t (a, b)`: renames the first columns.
pub(super) fn rename_all(mut columns: Vec<ScopeColumn>, alias: Option<&TableAlias>) -> Result<Vec<ScopeColumn>> {
    let Some(alias) = alias else { return Ok(columns) };
    if super::pinned::lists_columns(alias) {
        super::pinned::rename(&mut columns, alias);
        return Ok(columns);
    }
    if alias.columns.len() > columns.len() {
        return Err(SqlError::new(
            "42P10",
            format!(
                "table \"{}\" has {} columns available but {} columns specified",
                names::fold(&alias.name),
                columns.len(),
                alias.columns.len()
            ),
        ));
    }
    for (column, given) in columns.iter_mut().zip(&alias.columns) {
        column.name = names::fold(&given.name);
    }
    Ok(columns)
}
