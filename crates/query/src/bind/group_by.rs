//! GROUP BY: which expressions, in which grouping sets (PostgreSQL manual 7.2.3 and 7.2.4).

use super::binder::Binder;
use super::query::{Constant, bad_ordinal, constant};
use super::scope::Clause;
use super::select::Item;
use super::{names, position};
use crate::error::{Result, SqlError};
use crate::syntax::{EMPTY_SET, GROUP_BY_DISTINCT, GROUPING_SETS, marked};
use basalt_expr::tree::Expr;
use sqlparser::ast::{self, GroupByExpr};

const SETS_MAX: usize = 4096;
const CUBE_ELEMENTS_MAX: usize = 12;

/// The expressions that are grouped by, and the sets of them, by position; `None`: all of them.
pub(super) struct Groups {
    pub exprs: Vec<Expr>,
    pub sets: Option<Vec<Vec<usize>>>,
}

impl Groups {
    /// Without GROUP BY, or grouped into one group of all rows.
    fn all(exprs: Vec<Expr>) -> Groups {
        Groups { exprs, sets: None }
    }

    fn place(&mut self, expr: Expr) -> usize {
        match self.exprs.iter().position(|known| *known == expr) {
            Some(place) => place,
            None => {
                self.exprs.push(expr);
                self.exprs.len() - 1
            }
        }
    }
}

impl Binder<'_> {
    /// `None` without GROUP BY.
    pub(super) fn group_by(&mut self, group_by: &GroupByExpr, items: &[Item]) -> Result<Option<Groups>> {
        let items_of = match group_by {
            GroupByExpr::Expressions(exprs, modifiers) if modifiers.is_empty() => exprs.as_slice(),
            _ => return Err(SqlError::syntax("syntax error at or near \"ALL\"")),
        };
        if items_of.is_empty() {
            return Ok(None);
        }
        let mut groups = Groups::all(Vec::new());
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        let mut distinct = false;
        self.in_clause(Clause::GroupBy, |binder| {
            for item in items_of {
                if marked(item, GROUP_BY_DISTINCT).is_some() {
                    distinct = true;
                    continue;
                }
                let own = binder.group_item(item, items, &mut groups)?;
                if sets.len().saturating_mul(own.len()) > SETS_MAX {
                    return Err(too_many_sets());
                }
                sets = sets.iter().flat_map(|set| own.iter().map(|own| union(set, own))).collect();
            }
            Ok(())
        })?;
        if distinct {
            let mut kept: Vec<Vec<usize>> = Vec::with_capacity(sets.len());
            for set in sets {
                if !kept.iter().any(|known| is_same_set(known, &set)) {
                    kept.push(set);
                }
            }
            sets = kept;
        }
        for expr in &groups.exprs {
            super::query::check_groupable(expr)?;
        }
        groups.sets = match sets.as_slice() {
            [one] => {
                // One set: columns of no set at all are not there.
                let kept = one.iter().map(|place| groups.exprs[*place].clone()).collect();
                return Ok(Some(Groups::all(kept)));
            }
            _ => Some(sets),
        };
        Ok(Some(groups))
    }

    /// The grouping sets of one item of the list.
    fn group_item(&mut self, item: &ast::Expr, items: &[Item], groups: &mut Groups) -> Result<Vec<Vec<usize>>> {
        let place = position::of_expr(&self.ctx.sql, item);
        if marked(item, EMPTY_SET).is_some() {
            return Ok(vec![Vec::new()]);
        }
        if let Some(sets) = marked(item, GROUPING_SETS) {
            if sets.is_empty() {
                return Err(SqlError::syntax("syntax error at or near \")\""));
            }
            let mut out = Vec::new();
            for set in sets {
                out.extend(self.deeper(|binder| binder.group_item(set, items, groups))?);
                if out.len() > SETS_MAX {
                    return Err(too_many_sets());
                }
            }
            return Ok(out);
        }
        if let Some((is_cube, elements)) = rollup_or_cube(item) {
            if elements.is_empty() {
                return Err(SqlError::syntax("syntax error at or near \")\"").at(place));
            }
            if is_cube && elements.len() > CUBE_ELEMENTS_MAX {
                let message = format!("CUBE is limited to {CUBE_ELEMENTS_MAX} elements");
                return Err(SqlError::new("54011", message).at(place));
            }
            let mut places = Vec::with_capacity(elements.len());
            for element in elements {
                let mut own = Vec::new();
                for expr in element {
                    own.extend(self.group_places(expr, items, groups)?);
                }
                places.push(own);
            }
            return Ok(if is_cube { cube(&places) } else { rollup(&places) });
        }
        Ok(vec![self.group_places(item, items, groups)?])
    }

    /// An expression, or a list of them in parentheses.
    fn group_places(&mut self, expr: &ast::Expr, items: &[Item], groups: &mut Groups) -> Result<Vec<usize>> {
        if let ast::Expr::Tuple(parts) = expr {
            let mut out = Vec::with_capacity(parts.len());
            for part in parts {
                out.extend(self.group_places(part, items, groups)?);
            }
            return Ok(out);
        }
        let mut bound = self.group_expr(expr, items)?;
        self.unify(&groups.exprs, std::iter::once(&mut bound));
        Ok(vec![groups.place(bound)])
    }

    /// An ordinal, a column of the input, an output name or an expression, in this order of preference.
    fn group_expr(&mut self, expr: &ast::Expr, items: &[Item]) -> Result<Expr> {
        let place = position::of_expr(&self.ctx.sql, expr);
        match constant(expr) {
            Some(Constant::Integer(number)) => {
                let item = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                let item = item.and_then(|index| items.get(index));
                let item = item.ok_or_else(|| bad_ordinal("GROUP BY", number).at(place))?;
                self.refuse_computed(&item.expr).map_err(|error| error.at(place))?;
                return Ok(item.expr.clone());
            }
            Some(Constant::Other) => return Err(SqlError::syntax("non-integer constant in GROUP BY").at(place)),
            None => {}
        }
        if let ast::Expr::Identifier(ident) = expr {
            let name = names::fold(ident);
            let is_column = self.scope().visible.iter().any(|column| column.name == name);
            let mut matches = items.iter().filter(|item| item.name == name);
            if !is_column && let Some(item) = matches.next() {
                if matches.any(|other| other.expr != item.expr) {
                    return Err(SqlError::new("42702", format!("GROUP BY \"{name}\" is ambiguous")).at(place));
                }
                self.refuse_computed(&item.expr).map_err(|error| error.at(place))?;
                return Ok(item.expr.clone());
            }
        }
        let bound = self.expr(expr)?;
        self.known(bound)
    }

    /// An item of the select list that is computed from the groups cannot make them.
    fn refuse_computed(&mut self, expr: &Expr) -> Result<()> {
        let mut used = Vec::new();
        self.columns_of(expr, &mut used);
        let scope = self.scope();
        if scope.aggregates.iter().any(|(id, _)| used.contains(id)) {
            return Err(SqlError::new("42803", "aggregate functions are not allowed in GROUP BY"));
        }
        if scope.windows.iter().any(|(id, _)| used.contains(id)) {
            return Err(SqlError::new("42P20", "window functions are not allowed in GROUP BY"));
        }
        if scope.groupings.iter().any(|(id, ..)| used.contains(id)) {
            return Err(SqlError::new("42803", "grouping operations are not allowed in GROUP BY"));
        }
        Ok(())
    }
}

fn too_many_sets() -> SqlError {
    SqlError::new("54001", format!("too many grouping sets present (maximum {SETS_MAX})"))
}

/// The elements of ROLLUP or CUBE, each one or several expressions.
fn rollup_or_cube(item: &ast::Expr) -> Option<(bool, Vec<Vec<&ast::Expr>>)> {
    match item {
        ast::Expr::Rollup(elements) => Some((false, elements.iter().map(|element| element.iter().collect()).collect())),
        ast::Expr::Cube(elements) => Some((true, elements.iter().map(|element| element.iter().collect()).collect())),
        // Inside of GROUPING SETS they are read as calls.
        ast::Expr::Function(function) => {
            let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
            let is_cube = match names::fold(name).as_str() {
                "cube" => true,
                "rollup" => false,
                _ => return None,
            };
            let ast::FunctionArguments::List(list) = &function.args else { return None };
            let elements = list.args.iter().map(|arg| match arg {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Tuple(parts))) => {
                    Some(parts.iter().collect())
                }
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(vec![expr]),
                _ => None,
            });
            Some((is_cube, elements.collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// All elements, all but the last, …, none.
fn rollup(elements: &[Vec<usize>]) -> Vec<Vec<usize>> {
    (0..=elements.len()).rev().map(|count| merged(elements[..count].iter())).collect()
}

fn cube(elements: &[Vec<usize>]) -> Vec<Vec<usize>> {
    (0..1usize << elements.len())
        .rev()
        .map(|mask| merged(elements.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, set)| set)))
        .collect()
}

fn merged<'a>(sets: impl Iterator<Item = &'a Vec<usize>>) -> Vec<usize> {
    sets.fold(Vec::new(), |all, set| union(&all, set))
}

fn union(a: &[usize], b: &[usize]) -> Vec<usize> {
    let mut out = a.to_vec();
    for place in b {
        if !out.contains(place) {
            out.push(*place);
        }
    }
    out
}

fn is_same_set(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().all(|place| b.contains(place))
}
