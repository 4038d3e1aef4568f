//! WITH: each query is bound once, where it is defined; references read its rows under ids of their own
//! (PostgreSQL manual 7.8). A recursive one is a base, a step that refers to the rows before, and a UNION.

use super::binder::{Binder, Bound, CteDef, Slot};
use super::{names, position};
use super::{recursion, search_cycle};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, Cte, OutputColumn, Plan, SetColumn};
use crate::syntax::clauses_of;
use basalt_expr::cast::CastContext;
use basalt_expr::resolve;
use basalt_types::DataType;
use sqlparser::ast::{self, CteAsMaterialized, SetExpr, SetQuantifier};

impl Binder<'_> {
    /// Adds the queries of a WITH to those in sight; the caller takes them away again.
    /// `top`: it is the statement's, which may change rows.
    pub fn with(&mut self, with: &ast::With, top: bool) -> Result<()> {
        let names: Vec<String> = with.cte_tables.iter().map(|cte| names::fold(&cte.alias.name)).collect();
        for (index, cte) in with.cte_tables.iter().enumerate() {
            if names[..index].contains(&names[index]) {
                let message = format!("WITH query name \"{}\" specified more than once", names[index]);
                return Err(SqlError::new("42712", message).at(position::of_ident(&self.ctx.sql, &cte.alias.name)));
            }
        }
        let order = match with.recursive {
            true => recursion::order(&with.cte_tables, &names, &self.ctx.sql)?,
            false => (0..names.len()).collect(),
        };
        for index in order {
            let (cte, name) = (&with.cte_tables[index], &names[index]);
            let is_write = super::dml::is_write(&cte.query.body);
            let recurses = with.recursive && recursion::mentions(&cte.query, name);
            if let Some(from) = &cte.from {
                match clauses_of(from) {
                    Some(_) if recurses => {}
                    Some(_) => {
                        let place = position::of_ident(&self.ctx.sql, from);
                        return Err(SqlError::syntax("WITH query is not recursive").at(place));
                    }
                    None => return Err(SqlError::syntax("syntax error at or near \"FROM\"")),
                }
            }
            if recurses && !is_write {
                self.recursive(cte, name)?;
            } else if is_write {
                if with.recursive && recursion::reads(&cte.query, name) {
                    let message = format!("recursive query \"{name}\" must not contain data-modifying statements");
                    let place = position::of_ident(&self.ctx.sql, &cte.alias.name);
                    return Err(SqlError::new("42P19", message).at(place));
                }
                let (slot, columns) = self.write_cte(cte, top)?;
                self.define_slot(cte, slot, columns)?;
            } else if top {
                let outer = self.begin_apart();
                let bound = self.query(&cte.query)?;
                match self.end_apart(outer, bound) {
                    Ok((slot, columns)) => self.define_slot(cte, slot, columns)?,
                    Err(bound) => self.define(cte, *bound)?,
                }
            } else {
                let bound = self.query(&cte.query)?;
                self.define(cte, bound)?;
            }
        }
        Ok(())
    }

    fn define_slot(&mut self, cte: &ast::Cte, slot: Slot, mut columns: Vec<OutputColumn>) -> Result<()> {
        let name = names::fold(&cte.alias.name);
        if slot.gives_rows {
            rename(&name, &mut columns, &cte.alias.columns, position::of_ident(&self.ctx.sql, &cte.alias.name))?;
        }
        self.ctes.push(CteDef { name, id: 0, columns, is_working: false, slot: Some(slot) });
        Ok(())
    }

    /// Behind all that it reads, whose numbers are less.
    fn define(&mut self, cte: &ast::Cte, mut bound: Bound) -> Result<()> {
        let name = names::fold(&cte.alias.name);
        rename(&name, &mut bound.columns, &cte.alias.columns, position::of_ident(&self.ctx.sql, &cte.alias.name))?;
        let materialized = matches!(cte.materialized, Some(CteAsMaterialized::Materialized));
        let id = self.share(&name, bound.plan, &bound.columns, materialized);
        self.ctes.push(CteDef { name, id, columns: bound.columns, is_working: false, slot: None });
        Ok(())
    }

    /// A reference to a WITH query, or inside of a step to the rows before.
    pub fn cte(&mut self, index: usize) -> Result<Bound> {
        let CteDef { name, id, columns, is_working, slot } = &self.ctes[index];
        if slot.is_some_and(|slot| !slot.gives_rows) {
            let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
            return Err(SqlError::not_supported(message));
        }
        let (cte, is_working, slot, mut columns) = (*id, *is_working, *slot, columns.clone());
        if is_working {
            let ids = self.renew(&mut columns);
            return Ok(Bound { plan: Plan::Working { cte, columns: ids }, columns });
        }
        if let Some(slot) = slot {
            let ids = self.renew(&mut columns);
            columns.iter_mut().for_each(|column| (column.table_oid, column.column_no) = (0, 0));
            return Ok(Bound { plan: Plan::Given { slot: slot.number, columns: ids }, columns });
        }
        Ok(self.shared_rows(cte, columns))
    }

    /// Keeps a query whose rows may be read several times; gives its id.
    pub(super) fn share(&mut self, name: &str, plan: Plan, columns: &[OutputColumn], materialized: bool) -> ColId {
        let id = self.fresh();
        let columns = columns.iter().map(|column| (column.id, column.ty.clone())).collect();
        self.shared.insert(id, Cte { name: name.to_string(), plan, columns, references: 0, materialized });
        id
    }

    /// The rows of such a query, under ids of their own.
    pub(super) fn shared_rows(&mut self, cte: ColId, mut columns: Vec<OutputColumn>) -> Bound {
        if let Some(shared) = self.shared.get_mut(&cte) {
            shared.references += 1;
        }
        let ids = self.renew(&mut columns);
        Bound { plan: Plan::Shared { cte, columns: ids }, columns }
    }

    /// Gives columns ids of their own.
    fn renew(&mut self, columns: &mut [OutputColumn]) -> Vec<(ColId, DataType)> {
        let mut ids = Vec::with_capacity(columns.len());
        for column in columns {
            column.id = self.fresh();
            self.set_typmod(column.id, column.typmod);
            ids.push((column.id, column.ty.clone()));
        }
        ids
    }

    fn recursive(&mut self, cte: &ast::Cte, name: &str) -> Result<()> {
        recursion::check(&cte.query, name, &self.ctx.sql)?;
        let known = self.ctes.len();
        if let Some(with) = &cte.query.with {
            self.with(with, false)?;
        }
        let bound = self.deeper(|binder| binder.recursive_union(cte, name));
        self.ctes.truncate(known);
        self.define(cte, bound?)
    }

    fn recursive_union(&mut self, cte: &ast::Cte, name: &str) -> Result<Bound> {
        let Some((base, set_quantifier, step)) = recursion::parts(&cte.query.body) else {
            return Err(recursion::bad_form(name));
        };
        let id = self.fresh();
        let mut base = self.body(base, true)?;
        let place = position::of_ident(&self.ctx.sql, &cte.alias.name);
        let mut columns: Vec<OutputColumn> =
            base.columns.iter().map(|column| OutputColumn { table_oid: 0, column_no: 0, ..column.clone() }).collect();
        for column in columns.iter_mut().filter(|column| column.ty == DataType::Unknown) {
            column.ty = DataType::Text;
        }
        // A step may give more decimals than what the base happens to be computed in.
        for column in columns.iter_mut().filter(|column| column.typmod == -1) {
            column.ty = column.ty.base();
        }
        rename(name, &mut columns, &cte.alias.columns, place)?;
        let clauses = cte.from.as_ref().and_then(clauses_of).transpose()?;
        let clauses_place = cte.from.as_ref().and_then(|from| position::of_ident(&self.ctx.sql, from));
        if let Some(clauses) = &clauses {
            search_cycle::check(clauses, &cte.query, name, &columns, clauses_place)?;
        }
        self.ctes.push(CteDef { name: name.to_string(), id, columns: columns.clone(), is_working: true, slot: None });
        let step = self.body(step, true);
        self.ctes.pop();
        let mut step = step?;
        if base.columns.len() != step.columns.len() {
            return Err(SqlError::syntax("each UNION query must have the same number of columns"));
        }
        let mut pairs = Vec::with_capacity(columns.len());
        for (index, column) in columns.iter_mut().enumerate() {
            let types = [base.columns[index].ty.clone(), step.columns[index].ty.clone()];
            let ty = match types.iter().all(|ty| *ty == DataType::Unknown) {
                true => DataType::Text,
                false => resolve::resolve_common_type("UNION", &types)?,
            };
            self.refuse_other_type(name, index, column, &ty, step.columns[index].typmod)
                .map_err(|error| error.at(recursion::place_of_column(&self.ctx.sql, &cte.query, index)))?;
            self.retype(&mut base, index, &column.ty, CastContext::Implicit)?;
            self.retype(&mut step, index, &column.ty, CastContext::Implicit)?;
            column.id = self.fresh();
            self.set_typmod(column.id, column.typmod);
            let (left, right) = (base.columns[index].id, step.columns[index].id);
            pairs.push(SetColumn { id: column.id, left, right, ty: column.ty.clone() });
        }
        if let Some(clauses) = &clauses {
            let sides = (&mut base, &mut step);
            self.add_search_and_cycle(clauses, id, sides, &mut pairs, &mut columns, clauses_place)?;
        }
        let plan = Plan::Recursive {
            cte: id,
            base: Box::new(base.plan),
            step: Box::new(step.plan),
            distinct: !matches!(set_quantifier, SetQuantifier::All),
            columns: pairs,
        };
        Ok(Bound { plan, columns })
    }

    /// 42804 where the step would change a column's type or its modifier.
    fn refuse_other_type(
        &self,
        name: &str,
        index: usize,
        column: &OutputColumn,
        ty: &DataType,
        step_typmod: i32,
    ) -> Result<()> {
        let same_base = column.ty.base() == ty.base();
        let overall = if same_base && column.typmod == step_typmod { column.typmod } else { -1 };
        if same_base && overall == column.typmod {
            return Ok(());
        }
        let before = if column.typmod == -1 { column.ty.base() } else { column.ty.clone() };
        let message = format!(
            "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
            index + 1,
            before.sql_name(),
            ty.base().sql_name(),
        );
        Err(SqlError::new("42804", message).with_hint("Cast the output of the non-recursive term to the correct type."))
    }
}

/// `WITH name (a, b)`: renames the first columns.
fn rename(
    name: &str,
    columns: &mut [OutputColumn],
    given: &[ast::TableAliasColumnDef],
    place: Option<u32>,
) -> Result<()> {
    if given.len() > columns.len() {
        let (there, wanted) = (columns.len(), given.len());
        let message = format!("WITH query \"{name}\" has {there} columns available but {wanted} columns specified");
        return Err(SqlError::new("42P10", message).at(place));
    }
    for (column, given) in columns.iter_mut().zip(given) {
        column.name = names::fold(&given.name);
    }
    Ok(())
}

/// A query of one set operation, without what may stand around it in parentheses.
pub(super) fn unwrapped(body: &SetExpr) -> &SetExpr {
    match body {
        SetExpr::Query(query)
            if query.with.is_none()
                && query.order_by.is_none()
                && query.limit_clause.is_none()
                && query.fetch.is_none()
                && query.locks.is_empty() =>
        {
            unwrapped(&query.body)
        }
        other => other,
    }
}
