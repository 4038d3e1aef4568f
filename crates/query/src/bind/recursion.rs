//! What WITH RECURSIVE may look like: the order in which its queries depend on each other, and the places where
//! one may refer to itself (PostgreSQL manual 7.8.2; the rules and messages are those of its parser).

use super::with::unwrapped;
use super::{names, position};
use crate::error::{Result, SqlError};
use sqlparser::ast::{
    self, JoinOperator, LimitClause, Query, SetExpr, SetOperator, SetQuantifier, TableFactor, Visit, Visitor,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The queries in an order in which each stands after those that it reads. 0A000 if there is none.
pub(super) fn order(ctes: &[ast::Cte], names: &[String], sql: &str) -> Result<Vec<usize>> {
    let reads: Vec<BTreeSet<usize>> = ctes
        .iter()
        .enumerate()
        .map(|(own, cte)| {
            let free = free_names(&cte.query);
            (0..names.len()).filter(|other| *other != own && free.contains(&names[*other])).collect()
        })
        .collect();
    let mut order: Vec<usize> = Vec::with_capacity(ctes.len());
    while order.len() < ctes.len() {
        let ready = (0..ctes.len())
            .find(|index| !order.contains(index) && reads[*index].iter().all(|other| order.contains(other)));
        match ready {
            Some(index) => order.push(index),
            None => {
                let stuck = (0..ctes.len()).find(|index| !order.contains(index));
                let place = stuck.and_then(|index| position::of_ident(sql, &ctes[index].alias.name));
                let message = "mutual recursion between WITH items is not implemented";
                return Err(SqlError::not_supported(message).at(place));
            }
        }
    }
    Ok(order)
}

/// Whether a query reads from a relation of this name that none of its own WITH queries hides.
pub(super) fn mentions(query: &Query, name: &str) -> bool {
    free_names(query).contains(name)
}

/// The same for a command that changes rows: what it writes to is not read.
pub(super) fn reads(query: &Query, name: &str) -> bool {
    let mut found = FreeNames::default();
    let _ = match &*query.body {
        SetExpr::Insert(ast::Statement::Insert(insert)) => insert.source.visit(&mut found),
        SetExpr::Update(ast::Statement::Update(update)) => {
            let _ = update.from.visit(&mut found);
            let _ = update.assignments.visit(&mut found);
            update.selection.visit(&mut found)
        }
        SetExpr::Delete(ast::Statement::Delete(delete)) => {
            let _ = delete.using.visit(&mut found);
            delete.selection.visit(&mut found)
        }
        _ => ControlFlow::Continue(()),
    };
    found.found.contains(name)
}

/// Relations that a query names without a schema, less those that its own WITH queries define.
fn free_names(query: &Query) -> BTreeSet<String> {
    let mut names = FreeNames::default();
    let _ = query.visit(&mut names);
    names.found
}

#[derive(Default)]
struct FreeNames {
    hidden: Vec<Vec<String>>,
    found: BTreeSet<String>,
}

impl FreeNames {
    fn note(&mut self, relation: &ast::ObjectName) {
        let Ok(parts) = names::parts(relation) else { return };
        if let [name] = parts.as_slice()
            && !self.hidden.iter().flatten().any(|hidden| hidden == name)
        {
            self.found.insert(name.clone());
        }
    }
}

impl Visitor for FreeNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let own = query.with.iter().flat_map(|with| &with.cte_tables);
        self.hidden.push(own.map(|cte| names::fold(&cte.alias.name)).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.hidden.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ast::ObjectName) -> ControlFlow<()> {
        self.note(relation);
        ControlFlow::Continue(())
    }
}

/// Base, UNION's quantifier and step of a recursive query's body.
pub(super) fn parts(body: &SetExpr) -> Option<(&SetExpr, SetQuantifier, &SetExpr)> {
    match unwrapped(body) {
        SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } => {
            Some((left, *set_quantifier, right))
        }
        _ => None,
    }
}

pub(super) fn bad_form(name: &str) -> SqlError {
    invalid(format!("recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"))
}

fn invalid(message: String) -> SqlError {
    SqlError::new("42P19", message)
}

/// Where the base gives a column, if that can be told from the syntax.
pub(super) fn place_of_column(sql: &str, query: &Query, index: usize) -> Option<u32> {
    let (base, _, _) = parts(&query.body)?;
    match unwrapped(base) {
        SetExpr::Select(select) => match select.projection.get(index)? {
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                position::of_expr(sql, expr)
            }
            _ => None,
        },
        SetExpr::Values(values) => position::of_expr(sql, values.rows.first()?.content.get(index)?),
        _ => None,
    }
}

/// 42P19 and 0A000 for a recursive query that PostgreSQL does not take.
pub(super) fn check(query: &Query, name: &str, sql: &str) -> Result<()> {
    let Some((base, _, step)) = parts(&query.body) else {
        if matches!(&*query.body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)) {
            return Err(invalid(format!("recursive query \"{name}\" must not contain data-modifying statements")));
        }
        return Err(bad_form(name));
    };
    let mut walk = Walk { name, sql, place: Place::Base, found: 0 };
    walk.body(base)?;
    walk.place = Place::Allowed;
    walk.body(step)?;
    if walk.found == 0 {
        walk.place = Place::Subquery;
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            walk.query(&cte.query)?;
        }
        return Err(bad_form(name));
    }
    let not_there = |what: &str| SqlError::not_supported(format!("{what} in a recursive query is not implemented"));
    if query.order_by.is_some() {
        return Err(not_there("ORDER BY"));
    }
    if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
        if offset.is_some() {
            return Err(not_there("OFFSET"));
        }
        if limit.is_some() {
            return Err(not_there("LIMIT"));
        }
    }
    if query.fetch.is_some() {
        return Err(not_there("LIMIT"));
    }
    if !query.locks.is_empty() {
        return Err(not_there("FOR UPDATE/SHARE"));
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Allowed,
    Base,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

struct Walk<'a> {
    name: &'a str,
    sql: &'a str,
    place: Place,
    found: usize,
}

impl Walk<'_> {
    fn within(&mut self, place: Place, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let outer = match self.place {
            Place::Allowed => std::mem::replace(&mut self.place, place),
            other => other,
        };
        let result = work(self);
        self.place = outer;
        result
    }

    fn reference(&mut self, relation: &ast::ObjectName) -> Result<()> {
        let parts = names::parts(relation)?;
        if parts.len() != 1 || parts[0] != self.name {
            return Ok(());
        }
        let what = match self.place {
            Place::Allowed => {
                self.found += 1;
                if self.found == 1 {
                    return Ok(());
                }
                "more than once"
            }
            Place::Base => "within its non-recursive term",
            Place::Subquery => "within a subquery",
            Place::OuterJoin => "within an outer join",
            Place::Intersect => "within INTERSECT",
            Place::Except => "within EXCEPT",
        };
        let message = format!("recursive reference to query \"{}\" must not appear {what}", self.name);
        Err(invalid(message).at(position::of_name(self.sql, relation)))
    }

    fn query(&mut self, query: &Query) -> Result<()> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.query(&cte.query)?;
            if names::fold(&cte.alias.name) == self.name {
                return Ok(());
            }
        }
        self.body(&query.body)?;
        self.subqueries_in(&query.order_by)?;
        self.subqueries_in(&query.limit_clause)
    }

    fn body(&mut self, body: &SetExpr) -> Result<()> {
        match body {
            SetExpr::Select(select) => {
                for item in &select.from {
                    self.joined(item)?;
                }
                self.subqueries_in(&select.projection)?;
                self.subqueries_in(&select.selection)?;
                self.subqueries_in(&select.group_by)?;
                self.subqueries_in(&select.having)
            }
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                let all = matches!(set_quantifier, SetQuantifier::All);
                match op {
                    SetOperator::Union => {
                        self.body(left)?;
                        self.body(right)
                    }
                    SetOperator::Intersect if all => self.within(Place::Intersect, |walk| {
                        walk.body(left)?;
                        walk.body(right)
                    }),
                    SetOperator::Intersect => {
                        self.body(left)?;
                        self.body(right)
                    }
                    SetOperator::Except | SetOperator::Minus => {
                        match all {
                            true => self.within(Place::Except, |walk| walk.body(left))?,
                            false => self.body(left)?,
                        }
                        self.within(Place::Except, |walk| walk.body(right))
                    }
                }
            }
            SetExpr::Values(values) => self.subqueries_in(values),
            other => self.subqueries_in(other),
        }
    }

    fn joined(&mut self, item: &ast::TableWithJoins) -> Result<()> {
        let mut left_place = Place::Allowed;
        for join in &item.joins {
            if let JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_) =
                join.join_operator
            {
                left_place = Place::OuterJoin;
            }
        }
        self.within(left_place, |walk| walk.factor(&item.relation))?;
        for (index, join) in item.joins.iter().enumerate() {
            let later_outer = item.joins[index + 1..].iter().any(|later| {
                let op = &later.join_operator;
                matches!(op, JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_))
            });
            let own_outer = matches!(
                join.join_operator,
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) | JoinOperator::FullOuter(_)
            );
            let place = if own_outer || later_outer { Place::OuterJoin } else { Place::Allowed };
            self.within(place, |walk| walk.factor(&join.relation))?;
            self.subqueries_in(&join.join_operator)?;
        }
        Ok(())
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<()> {
        match factor {
            TableFactor::Table { name, args: None, .. } => self.reference(name),
            TableFactor::Derived { subquery, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.joined(table_with_joins),
            other => self.subqueries_in(other),
        }
    }

    /// Any reference inside of a subquery of an expression is an error.
    fn subqueries_in(&mut self, syntax: &impl Visit) -> Result<()> {
        let mut queries = Subqueries { walk: self, error: None };
        let _ = syntax.visit(&mut queries);
        queries.error.map_or(Ok(()), Err)
    }
}

/// Walks the outermost queries of an expression.
struct Subqueries<'w, 'a> {
    walk: &'w mut Walk<'a>,
    error: Option<SqlError>,
}

impl Visitor for Subqueries<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        match self.walk.within(Place::Subquery, |walk| walk.query(query)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}
