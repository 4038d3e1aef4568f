//! SEARCH and CYCLE of recursive queries (PostgreSQL manual 7.8.2.1 and 7.8.2.2): columns that the recursion computes
//! beside its own, from those of the row that a row was made of. As in the manual's equivalents, an order of depth is
//! an array of the rows on the way, one of breadth the depth and the row; a cycle's path is such an array, and its mark
//! says whether the row is on it already. From a marked row no step is made.

use super::binder::{Binder, Bound};
use super::locking::expose;
use super::recursion;
use super::row::row_of_fields;
use super::scope::{Clause, Scope};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, CteId, OutputColumn, Plan, SetColumn};
use crate::syntax::{CycleClause, RecursionClauses};
use basalt_expr::cast::CastContext;
use basalt_expr::functions::structures;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use sqlparser::ast::{self, SetExpr, TableFactor};

/// A column that the clauses add: its first value, and the one that follows from the column's value before.
struct Added {
    name: String,
    first: Expr,
    before: ColId,
    next: Expr,
}

/// Shows where the clauses stand.
type Place = Option<u32>;

fn wrong(message: String, place: Place) -> SqlError {
    SqlError::syntax(message).at(place)
}

/// 42601, 42701 and 0A000 for clauses that do not fit the query.
pub(super) fn check(
    clauses: &RecursionClauses,
    query: &ast::Query,
    name: &str,
    columns: &[OutputColumn],
    place: Place,
) -> Result<()> {
    let misplaced = |what: &str| {
        let message = format!("with a SEARCH or CYCLE clause, the {what}");
        Err(SqlError::not_supported(message))
    };
    if let Some((base, _, step)) = recursion::parts(&query.body) {
        if matches!(super::with::unwrapped(base), SetExpr::SetOperation { .. }) {
            return misplaced("left side of the UNION must be a SELECT");
        }
        match super::with::unwrapped(step) {
            SetExpr::Select(select) => {
                let of_item = |item: &ast::TableWithJoins| {
                    names_it(&item.relation, name) || item.joins.iter().any(|join| names_it(&join.relation, name))
                };
                if !select.from.iter().any(of_item) {
                    return misplaced(&format!(
                        "recursive reference to WITH query \"{name}\" must be at the top level of its right-hand SELECT"
                    ));
                }
            }
            _ => return misplaced("right side of the UNION must be a SELECT"),
        }
    }
    let known = |name: &str| columns.iter().any(|column| column.name == name);
    let listed = |kind: &str, wanted: &[String]| -> Result<()> {
        for (at, column) in wanted.iter().enumerate() {
            if !known(column) {
                return Err(wrong(format!("{kind} column \"{column}\" not in WITH query column list"), place));
            }
            if wanted[..at].contains(column) {
                let message = format!("{kind} column \"{column}\" specified more than once");
                return Err(SqlError::new("42701", message).at(place));
            }
        }
        Ok(())
    };
    let free = |what: &str, name: &str| match known(name) {
        true => Err(wrong(format!("{what} column name \"{name}\" already used in WITH query column list"), place)),
        false => Ok(()),
    };
    if let Some(search) = &clauses.search {
        listed("search", &search.columns)?;
        free("search sequence", &search.sequence)?;
    }
    let Some(cycle) = &clauses.cycle else { return Ok(()) };
    listed("cycle", &cycle.columns)?;
    free("cycle mark", &cycle.mark)?;
    free("cycle path", &cycle.path)?;
    if cycle.mark == cycle.path {
        return Err(wrong("cycle mark column name and cycle path column name are the same".into(), place));
    }
    let Some(search) = &clauses.search else { return Ok(()) };
    for (what, name) in [("mark", &cycle.mark), ("path", &cycle.path)] {
        if search.sequence == *name {
            let message = format!("search sequence column name and cycle {what} column name are the same");
            return Err(wrong(message, place));
        }
    }
    Ok(())
}

fn names_it(factor: &TableFactor, name: &str) -> bool {
    match factor {
        TableFactor::Table { name: found, args: None, .. } => {
            super::names::parts(found).is_ok_and(|parts| parts.len() == 1 && parts[0] == name)
        }
        TableFactor::NestedJoin { table_with_joins, .. } => {
            names_it(&table_with_joins.relation, name)
                || table_with_joins.joins.iter().any(|join| names_it(&join.relation, name))
        }
        _ => false,
    }
}

impl Binder<'_> {
    /// Adds the columns of the clauses to base and step, and to what the recursion gives.
    pub(super) fn add_search_and_cycle(
        &mut self,
        clauses: &RecursionClauses,
        cte: CteId,
        (base, step): (&mut Bound, &mut Bound),
        pairs: &mut Vec<SetColumn>,
        columns: &mut Vec<OutputColumn>,
        place: Place,
    ) -> Result<()> {
        let (added, stop) = self.added(clauses, pairs, columns, place)?;
        let Some(working) = working_of(&mut step.plan, cte) else {
            return Err(SqlError::internal("a step does not read the rows before"));
        };
        working.extend(added.iter().map(|column| (column.before, column.first.ty())));
        let reached = added.iter().all(|column| expose(&mut step.plan, column.before));
        if !reached {
            return Err(SqlError::not_supported("SEARCH and CYCLE of a grouped or distinct step are not supported"));
        }
        if let Some(condition) = stop {
            let input = Box::new(std::mem::replace(&mut step.plan, Plan::Unit));
            step.plan = Plan::Filter { input, condition };
        }
        let (mut first, mut next) = (passed(&base.plan), passed(&step.plan));
        for column in added {
            let ty = column.first.ty();
            let (left, right, id) = (self.fresh(), self.fresh(), self.fresh());
            first.push((left, column.first));
            next.push((right, column.next));
            pairs.push(SetColumn { id, left, right, ty: ty.clone() });
            columns.push(OutputColumn { id, name: column.name, ty, typmod: -1, table_oid: 0, column_no: 0 });
        }
        for (bound, exprs) in [(base, first), (step, next)] {
            let input = Box::new(std::mem::replace(&mut bound.plan, Plan::Unit));
            bound.plan = Plan::Project { input, exprs };
        }
        Ok(())
    }

    /// The columns, and the condition under which a row before is gone on from.
    fn added(
        &mut self,
        clauses: &RecursionClauses,
        pairs: &[SetColumn],
        columns: &[OutputColumn],
        place: Place,
    ) -> Result<(Vec<Added>, Option<Expr>)> {
        let fields = |wanted: &[String], side: fn(&SetColumn) -> ColId| -> Vec<Expr> {
            let at = wanted.iter().filter_map(|name| columns.iter().position(|column| column.name == *name));
            at.map(|at| Expr::Hole { id: side(&pairs[at]), ty: pairs[at].ty.clone() }).collect()
        };
        let (mut added, mut stop) = (Vec::new(), None);
        if let Some(search) = &clauses.search {
            let (mut first, mut next) =
                (fields(&search.columns, |pair| pair.left), fields(&search.columns, |pair| pair.right));
            let before = self.fresh();
            let name = search.sequence.clone();
            if search.breadth {
                first.insert(0, Expr::int8(0));
                let first = row_of_fields(first);
                let depth = structures::field(Expr::Hole { id: before, ty: first.ty() }, 0);
                next.insert(0, self.operator("+", Some(depth), Expr::int8(1))?);
                added.push(Added { name, first, before, next: row_of_fields(next) });
            } else {
                added.push(self.way(name, before, row_of_fields(first), row_of_fields(next))?);
            }
        }
        if let Some(cycle) = &clauses.cycle {
            let (first, next) = (fields(&cycle.columns, |pair| pair.left), fields(&cycle.columns, |pair| pair.right));
            let (first, next) = (row_of_fields(first), row_of_fields(next));
            let (before_mark, before_path) = (self.fresh(), self.fresh());
            let (met, unmet) = self.mark_values(cycle, place)?;
            let path = self.way(cycle.path.clone(), before_path, first, next.clone())?;
            let way = Expr::Hole { id: before_path, ty: path.first.ty() };
            let again = resolve::any_all(self.registry(), next, "=", way, false, &self.ctx.eval)?;
            let mark = Expr::Hole { id: before_mark, ty: met.ty() };
            stop = Some(self.operator("<>", Some(mark), met.clone())?);
            let next = Expr::Case {
                branches: vec![(again, met.clone())],
                otherwise: Some(Box::new(unmet.clone())),
                ty: met.ty(),
            };
            added.push(Added { name: cycle.mark.clone(), first: unmet, before: before_mark, next });
            added.push(path);
        }
        Ok((added, stop))
    }

    /// An array of the rows on the way.
    fn way(&mut self, name: String, before: ColId, first: Expr, next: Expr) -> Result<Added> {
        let ty = DataType::Array(Box::new(first.ty()));
        let first = Expr::ArrayLiteral { elements: vec![first], ty: ty.clone() };
        let next = self.call("array_append", vec![Expr::Hole { id: before, ty: ty.clone() }, next])?;
        let next = self.coerce(next, &ty, CastContext::Implicit)?;
        Ok(Added { name, first, before, next })
    }

    /// What the mark is where a row was met again, and where not, of one type.
    fn mark_values(&mut self, cycle: &CycleClause, place: Place) -> Result<(Expr, Expr)> {
        let Some((met, unmet)) = &cycle.values else { return Ok((Expr::bool(true), Expr::bool(false))) };
        self.scopes.push(Scope::new(Clause::Values));
        let bound = self.expr(met).and_then(|met| Ok((met, self.expr(unmet)?)));
        self.scopes.pop();
        let (met, unmet) = bound.map_err(|error| SqlError { position: place, ..error })?;
        let ty = resolve::resolve_common_type("CYCLE", &[met.ty(), unmet.ty()])
            .map_err(|error| SqlError::from(error).at(place))?;
        let met = self.coerce(met, &ty, CastContext::Implicit)?;
        Ok((met, self.coerce(unmet, &ty, CastContext::Implicit)?))
    }
}

fn passed(plan: &Plan) -> Vec<(ColId, Expr)> {
    plan.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty })).collect()
}

/// The columns of the place where a step reads the rows before.
fn working_of(plan: &mut Plan, wanted: CteId) -> Option<&mut Vec<(ColId, DataType)>> {
    let found = matches!(plan, Plan::Working { cte, .. } if *cte == wanted);
    match plan {
        Plan::Working { columns, .. } => Some(columns).filter(|_| found),
        other => other.inputs_mut().into_iter().find_map(|input| working_of(input, wanted)),
    }
}
