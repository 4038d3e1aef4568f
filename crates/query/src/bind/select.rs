//! One SELECT: FROM, WHERE, grouping, the select list, DISTINCT, ORDER BY.

use super::binder::{Binder, Bound};
use super::group::Grouping;
use super::group_by::Groups;
use super::names;
use super::output_name::output_name;
use super::pinned;
use super::position;
use super::query::{Constant, bad_ordinal, check_groupable, check_sortable, constant, sort_key, using_operator};
use super::scope::{Clause, Scope};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, OutputColumn, Plan, SortKey};
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use sqlparser::ast::{self, Distinct, SelectItem, SelectItemQualifiedWildcardKind, Spanned};

/// An entry of the select list.
#[derive(Clone)]
pub(super) struct Item {
    pub expr: Expr,
    pub name: String,
    /// Table and column number of a plain column.
    pub source: (u32, i16),
}

/// A list of expressions computed over one input, each under an id.
struct Outputs {
    input: Vec<(ColId, DataType)>,
    exprs: Vec<(ColId, Expr)>,
}

impl Outputs {
    /// The id under which `expr` leaves the projection. Input columns keep theirs.
    fn add(&mut self, binder: &mut Binder, expr: Expr) -> ColId {
        // Each call of a volatile function gives a value of its own, and each literal is read as what its place wants.
        let repeats = expr.volatility() < basalt_expr::Volatility::Volatile && expr.ty() != DataType::Unknown;
        if let Some((id, _)) = self.exprs.iter().find(|(_, known)| repeats && *known == expr) {
            return *id;
        }
        self.push(binder, expr)
    }

    /// The same for what sorts or tells groups apart: what equals an output is that output, volatile or not.
    fn add_key(&mut self, binder: &mut Binder, expr: Expr) -> ColId {
        match self.exprs.iter().find(|(_, known)| *known == expr) {
            Some((id, _)) => *id,
            None => self.push(binder, expr),
        }
    }

    fn push(&mut self, binder: &mut Binder, expr: Expr) -> ColId {
        let id = match &expr {
            Expr::Hole { id, .. } if self.input.iter().any(|(known, _)| known == id) => *id,
            _ => binder.fresh(),
        };
        self.exprs.push((id, expr));
        id
    }
}

/// Whether an expression calls a function that returns a set.
pub(super) fn has_set(expr: &Expr) -> bool {
    expr.any(&mut |node| matches!(node, Expr::Call { function, .. } if function.returns_set))
}

impl Binder<'_> {
    pub fn select(&mut self, select: &ast::Select, order_by: &[ast::OrderByExpr], keep_unknown: bool) -> Result<Bound> {
        if select.into.is_some() {
            let place = select.into.as_ref().map(|into| into.name.span());
            let place = place.and_then(|span| position::of_span(&self.ctx.sql, span));
            return Err(SqlError::syntax("SELECT ... INTO is not allowed here").at(place));
        }
        super::foreign::refuse_in_select(select)?;
        let locking = std::mem::take(&mut self.next_locking);
        self.scopes.push(Scope { locking, ..Scope::new(Clause::Select) });
        let bound = self.select_in_scope(select, order_by, keep_unknown);
        self.last_scope = self.scopes.pop();
        bound
    }

    fn select_in_scope(
        &mut self,
        select: &ast::Select,
        order_by: &[ast::OrderByExpr],
        keep_unknown: bool,
    ) -> Result<Bound> {
        let mut plan = self.table_list(&select.from)?;
        self.check_locked_names()?;
        self.named_windows(&select.named_window)?;
        let mut items = self.items(&select.projection, keep_unknown)?;
        if let Some(filter) = &select.selection {
            let condition = self.in_clause(Clause::Where, |binder| binder.condition("WHERE", filter))?;
            plan = Plan::Filter { input: Box::new(plan), condition };
        }
        let mut having = match &select.having {
            Some(having) => Some(self.in_clause(Clause::Having, |binder| binder.condition("HAVING", having))?),
            None => None,
        };
        let mut keys = self.in_clause(Clause::OrderBy, |binder| binder.order_keys(order_by, &items))?;
        let mut groups = self.group_by(&select.group_by, &items)?;
        let mut distinct_on = match &select.distinct {
            Some(Distinct::On(exprs)) if exprs.is_empty() => {
                return Err(SqlError::syntax("syntax error at or near \")\""));
            }
            Some(Distinct::On(exprs)) => Some(self.distinct_on(exprs, &items)?),
            _ => None,
        };
        let rest = items.iter_mut().map(|item| &mut item.expr).chain(&mut having);
        self.unify(
            groups.as_ref().map_or(&[], |groups| groups.exprs.as_slice()),
            rest.chain(keys.iter_mut().map(|key| &mut key.expr)).chain(distinct_on.iter_mut().flatten()),
        );
        if let Some(on) = &distinct_on {
            let rest = items.iter_mut().map(|item| &mut item.expr);
            self.unify(on, rest.chain(keys.iter_mut().map(|key| &mut key.expr)));
        }
        if matches!(select.distinct, Some(Distinct::Distinct)) {
            let given: Vec<Expr> = items.iter().map(|item| item.expr.clone()).collect();
            self.unify(&given, keys.iter_mut().map(|key| &mut key.expr));
        }
        self.check_lockable(select, &items, having.is_some())?;
        self.mark_rows(&mut plan);
        let aggregates = std::mem::take(&mut self.scope().aggregates);
        if !aggregates.is_empty() && self.scope().is_step {
            let message = "aggregate functions are not allowed in a recursive query's recursive term";
            return Err(SqlError::new("42P19", message));
        }
        let mut groupings = std::mem::take(&mut self.scope().groupings);
        if let Some(groups) = &groups {
            self.unify(&groups.exprs, groupings.iter_mut().flat_map(|(_, args, _)| args));
        }
        if groups.is_some() || !aggregates.is_empty() || !groupings.is_empty() || having.is_some() {
            if let Some(groups) = &mut groups {
                plan = self.grouped_sets(plan, &mut groups.exprs, &mut items, &mut keys);
            }
            let exprs = items
                .iter_mut()
                .map(|item| &mut item.expr)
                .chain(&mut having)
                .chain(keys.iter_mut().map(|key| &mut key.expr))
                .chain(distinct_on.iter_mut().flatten());
            let groups = groups.unwrap_or(Groups { exprs: Vec::new(), sets: None });
            plan = self.aggregate_plan(plan, Grouping { groups, aggregates, groupings }, exprs)?;
        }
        if let Some(condition) = having {
            plan = Plan::Filter { input: Box::new(plan), condition };
        }
        let mut windows = std::mem::take(&mut self.scope().windows);
        if !windows.is_empty() {
            plan = self.window_sets(plan, &mut windows);
            plan = Plan::Window { input: Box::new(plan), calls: windows };
        }
        let distinct = matches!(select.distinct, Some(Distinct::Distinct));
        let in_order = !distinct && distinct_on.is_none();
        plan = self.set_calls(plan, &mut items, &mut keys, distinct_on.as_deref_mut().unwrap_or_default(), in_order);
        self.project(plan, items, keys, distinct, distinct_on).map_err(|error| {
            let first = |exprs: &mut dyn Iterator<Item = &ast::Expr>| {
                exprs.next().and_then(|expr| position::of_expr(&self.ctx.sql, expr))
            };
            error.at_with(|| match &select.distinct {
                Some(Distinct::On(exprs)) => first(&mut exprs.iter()),
                _ => None,
            })
        })
    }

    /// The select list, `*` expanded.
    pub fn items(&mut self, projection: &[SelectItem], keep_unknown: bool) -> Result<Vec<Item>> {
        let mut items = Vec::with_capacity(projection.len());
        for item in projection {
            match item {
                item if crate::syntax::is_nothing(item) => {}
                SelectItem::UnnamedExpr(expr) => match self.all_fields(expr)? {
                    Some(fields) => {
                        items.extend(fields.into_iter().map(|(expr, name)| Item { expr, name, source: (0, 0) }));
                    }
                    None => items.push(self.item(expr, output_name(expr), keep_unknown)?),
                },
                SelectItem::ExprWithAlias { alias, .. } if alias.quote_style == Some('\'') => {
                    return Err(SqlError::syntax(format!("syntax error at or near {alias}")));
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    items.push(self.item(expr, names::fold(alias), keep_unknown)?);
                }
                SelectItem::Wildcard(_) => {
                    if self.scope().relations.is_empty() {
                        return Err(SqlError::syntax("SELECT * with no tables specified is not valid"));
                    }
                    let columns = self.scope().visible.clone();
                    for column in columns.into_iter().filter(|column| !pinned::is_hidden(&column.name)) {
                        let expr = self.column_expr(&column);
                        items.push(Item { expr, name: column.name, source: (column.table_oid, column.column_no) });
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    self.relation_items(name, &mut items)?;
                }
                other => return Err(SqlError::not_supported(format!("{other} is not supported in a select list"))),
            }
        }
        Ok(items)
    }

    fn item(&mut self, expr: &ast::Expr, name: String, keep_unknown: bool) -> Result<Item> {
        let mut bound = self.expr(expr)?;
        if !keep_unknown {
            bound = self.known(bound)?;
        }
        let source = match &bound {
            Expr::Hole { id, .. } => self.source_of(*id),
            _ => (0, 0),
        };
        Ok(Item { expr: bound, name, source })
    }

    fn source_of(&mut self, id: ColId) -> (u32, i16) {
        let scope = self.scope();
        let mut columns = scope.relations.iter().flat_map(|relation| &relation.columns);
        columns.find(|column| column.id == id).map_or((0, 0), |column| (column.table_oid, column.column_no))
    }

    pub fn relation_items(&mut self, name: &ast::ObjectName, items: &mut Vec<Item>) -> Result<()> {
        let parts = names::parts(name)?;
        let (relation, schema) = match parts.as_slice() {
            [relation] => (relation, None),
            [.., schema, relation] => (relation, Some(schema)),
            [] => return Err(SqlError::syntax("a relation name is expected before .*")),
        };
        let found = self.scopes.iter().rev().find_map(|scope| {
            scope.relations.iter().find(|candidate| {
                candidate.name == *relation
                    && !candidate.hidden
                    && schema.is_none_or(|schema| candidate.schema.as_ref() == Some(schema))
            })
        });
        let Some(found) = found else {
            let error = self.no_such_entry(schema.map(String::as_str), relation);
            return Err(error.at(position::of_name(&self.ctx.sql, name)));
        };
        for column in found.columns.clone().into_iter().filter(|column| !pinned::is_hidden(&column.name)) {
            let expr = self.column_expr(&column);
            items.push(Item { expr, name: column.name, source: (column.table_oid, column.column_no) });
        }
        Ok(())
    }

    /// ORDER BY: ordinals, output names, then expressions over the input.
    fn order_keys(&mut self, order_by: &[ast::OrderByExpr], items: &[Item]) -> Result<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(order_by.len());
        for key in order_by {
            if let Some(symbol) = using_operator(key) {
                return Err(self.no_ordering(symbol, keys.last()));
            }
            let expr = self.item_or_expr("ORDER BY", &key.expr, items)?;
            check_sortable(&expr)?;
            keys.push(sort_key(expr, &key.options));
        }
        Ok(keys)
    }

    fn item_or_expr(&mut self, place: &str, expr: &ast::Expr, items: &[Item]) -> Result<Expr> {
        let at = position::of_expr(&self.ctx.sql, expr);
        match constant(expr) {
            Some(Constant::Integer(number)) => {
                let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                let item = index.and_then(|index| items.get(index));
                return item.map(|item| item.expr.clone()).ok_or_else(|| bad_ordinal(place, number).at(at));
            }
            Some(Constant::Other) => return Err(SqlError::syntax(format!("non-integer constant in {place}")).at(at)),
            None => {}
        }
        if let ast::Expr::Identifier(ident) = expr {
            let name = names::fold(ident);
            let mut matches = items.iter().filter(|item| item.name == name);
            if let Some(first) = matches.next() {
                if matches.any(|other| other.expr != first.expr) {
                    return Err(SqlError::new("42702", format!("{place} \"{name}\" is ambiguous")).at(at));
                }
                return Ok(first.expr.clone());
            }
        }
        let bound = self.expr(expr)?;
        self.known(bound)
    }

    fn distinct_on(&mut self, exprs: &[ast::Expr], items: &[Item]) -> Result<Vec<Expr>> {
        self.in_clause(Clause::OrderBy, |binder| {
            exprs.iter().map(|expr| binder.item_or_expr("DISTINCT ON", expr, items)).collect()
        })
    }

    /// The select list over its input, then DISTINCT and ORDER BY.
    fn project(
        &mut self,
        input: Plan,
        items: Vec<Item>,
        keys: Vec<SortKey>,
        distinct: bool,
        distinct_on: Option<Vec<Expr>>,
    ) -> Result<Bound> {
        let mut outputs = Outputs { input: input.columns(), exprs: Vec::with_capacity(items.len()) };
        let mut columns = Vec::with_capacity(items.len());
        for item in items {
            let (ty, typmod) = (item.expr.ty(), self.typmod(&item.expr));
            let id = outputs.add(self, item.expr);
            self.set_typmod(id, typmod);
            let (table_oid, column_no) = item.source;
            columns.push(OutputColumn { id, name: item.name, ty, typmod, table_oid, column_no });
        }
        let visible = outputs.exprs.len();
        let mut sorted = Vec::with_capacity(keys.len());
        for key in keys {
            let ty = key.expr.ty();
            let id = outputs.add_key(self, key.expr);
            sorted.push(SortKey { expr: Expr::Hole { id, ty }, ..key });
        }
        if distinct && outputs.exprs.len() > visible {
            return Err(SqlError::new("42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list"));
        }
        let mut on = None;
        if let Some(exprs) = distinct_on {
            let mut holes = Vec::with_capacity(exprs.len());
            for expr in exprs {
                let ty = expr.ty();
                holes.push(Expr::Hole { id: outputs.add_key(self, expr), ty });
            }
            // Keys of ORDER BY come first as long as they are among the expressions, and then all of them are.
            let leading = sorted.iter().take_while(|key| holes.contains(&key.expr)).count();
            let matched = holes.iter().all(|hole| sorted[..leading].iter().any(|key| key.expr == *hole));
            if leading < sorted.len() && !matched {
                return Err(SqlError::new(
                    "42P10",
                    "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                ));
            }
            on = Some(holes);
        }
        if distinct {
            outputs.exprs.iter().try_for_each(|(_, expr)| check_groupable(expr))?;
        }
        let mut plan = Plan::Project { input: Box::new(input), exprs: outputs.exprs };
        if distinct {
            plan = Plan::Distinct { input: Box::new(plan), on: None };
        }
        if !sorted.is_empty() {
            plan = Plan::Sort { input: Box::new(plan), keys: sorted };
        }
        if on.is_some() {
            plan = Plan::Distinct { input: Box::new(plan), on };
        }
        Ok(Bound { plan, columns })
    }
}
