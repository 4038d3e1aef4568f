//! Window functions: `f(…) OVER (…)`, the WINDOW clause, frames (PostgreSQL manual 4.2.8 and SELECT, "WINDOW
//! Clause").

mod frame;

use super::binder::Binder;
use super::function::CallArgs;
use super::names;
use super::position;
use super::scope::{Clause, WindowDef};
use crate::error::{Result, SqlError};
use crate::plan::{WindowCall, WindowFunction};
use basalt_expr::cast::CastContext;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_expr::window::{Edge, Ranking};
use basalt_types::DataType;
use sqlparser::ast::{self, NamedWindowDefinition, NamedWindowExpr, WindowSpec, WindowType};

/// Window functions that are no aggregates.
pub(super) fn is_window_function(name: &str) -> bool {
    let plain = ["row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"];
    plain.contains(&name) || ranking(name).is_some()
}

fn ranking(name: &str) -> Option<(Ranking, DataType)> {
    Some(match name {
        "row_number" => (Ranking::RowNumber, DataType::Int8),
        "rank" => (Ranking::Rank, DataType::Int8),
        "dense_rank" => (Ranking::DenseRank, DataType::Int8),
        "percent_rank" => (Ranking::PercentRank, DataType::Float8),
        "cume_dist" => (Ranking::CumeDist, DataType::Float8),
        _ => return None,
    })
}

#[cold]
fn windowing(message: impl Into<String>) -> SqlError {
    SqlError::new("42P20", message)
}

impl Binder<'_> {
    /// The WINDOW clause of the current level, each window of which may build on an earlier one.
    pub fn named_windows(&mut self, definitions: &[NamedWindowDefinition]) -> Result<()> {
        for NamedWindowDefinition(ident, definition) in definitions {
            let name = names::fold(ident);
            if self.scope().named_windows.iter().any(|(known, _)| *known == name) {
                let place = self.over_place(position::of_ident(&self.ctx.sql, ident), "as");
                return Err(windowing(format!("window \"{name}\" is already defined")).at(place));
            }
            let NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(SqlError::syntax("a window definition stands in parentheses"));
            };
            let place = self.over_place(position::of_ident(&self.ctx.sql, ident), "as");
            let window = self.window_definition(spec, place)?;
            self.scope().named_windows.push((name, window));
        }
        Ok(())
    }

    fn named_window(&mut self, ident: &ast::Ident) -> Result<WindowDef> {
        let name = names::fold(ident);
        let found = self.scope().named_windows.iter().find(|(known, _)| *known == name);
        found.map(|(_, window)| window.clone()).ok_or_else(|| {
            let place = position::of_ident(&self.ctx.sql, ident);
            SqlError::new("42704", format!("window \"{name}\" does not exist")).at(place)
        })
    }

    /// The parenthesis of a window that is defined behind `from` and OVER or AS.
    fn over_place(&self, from: Option<u32>, word: &str) -> Option<u32> {
        position::of_word(&self.ctx.sql, from?, word).map(|(_, next)| next)
    }

    /// `place`: of its parenthesis.
    fn window_definition(&mut self, spec: &WindowSpec, place: Option<u32>) -> Result<WindowDef> {
        let base = spec.window_name.as_ref().map(|name| self.named_window(name)).transpose()?;
        let (order_by, exclude) = frame::exclusion(&spec.order_by);
        let order_by = self.in_clause(Clause::Window, |binder| binder.sort_keys(order_by))?;
        for key in &order_by {
            super::query::check_sortable(&key.expr)?;
        }
        let mut partition_by = Vec::with_capacity(spec.partition_by.len());
        for expr in &spec.partition_by {
            let bound = self.in_clause(Clause::Window, |binder| binder.expr(expr))?;
            let bound = self.known(bound)?;
            super::query::check_sortable(&bound)?;
            partition_by.push(bound);
        }
        let mut window = WindowDef { partition_by, order_by, ..WindowDef::default() };
        if let (Some(base), Some(name)) = (base, &spec.window_name) {
            let named = names::fold(name);
            let refused =
                |what: &str| windowing(format!("cannot override {what} clause of window \"{named}\"")).at(place);
            if !spec.partition_by.is_empty() {
                return Err(refused("PARTITION BY"));
            }
            if !window.order_by.is_empty() && !base.order_by.is_empty() {
                return Err(refused("ORDER BY"));
            }
            if base.has_frame {
                let error =
                    windowing(format!("cannot copy window \"{named}\" because it has a frame clause")).at(place);
                let bare = spec.order_by.is_empty() && spec.window_frame.is_none();
                return Err(match bare {
                    true => error.with_hint("Omit the parentheses in this OVER clause."),
                    false => error,
                });
            }
            window.partition_by = base.partition_by;
            if window.order_by.is_empty() {
                window.order_by = base.order_by;
            }
        }
        if let Some(frame) = &spec.window_frame {
            self.window_frame(frame, exclude, &mut window, place)?;
        }
        Ok(window)
    }

    pub fn window_function(&mut self, name: &str, function: &ast::Function, args: &CallArgs) -> Result<Expr> {
        let place = position::of_name(&self.ctx.sql, &function.name);
        let clause = self.scope().clause;
        if !clause.allows_windows() {
            let message = format!("window functions are not allowed in {}", clause.name_for_windows());
            return Err(windowing(message).at(place));
        }
        let sets = self.scope().sets;
        let (kind, ty) = self.window_kind(name, function, args).map_err(|error| error.at_with(|| place))?;
        if self.scope().sets > sets {
            let message = "window function calls cannot contain set-returning function calls";
            let hint = "You might be able to move the set-returning function into a LATERAL FROM item.";
            return Err(SqlError::not_supported(message).with_hint(hint).at(place));
        }
        let window = match function.over.as_ref() {
            Some(WindowType::NamedWindow(name)) => self.named_window(name)?,
            Some(WindowType::WindowSpec(spec)) => {
                let over = self.over_place(place, "over");
                self.window_definition(spec, over)?
            }
            None => return Err(SqlError::internal("a window function without OVER")),
        };
        let call = WindowCall {
            function: kind,
            ty: ty.clone(),
            partition_by: window.partition_by,
            order_by: window.order_by,
            arrival: Vec::new(),
            frame: window.frame,
            offsets: window.offsets,
        };
        self.check_not_nested(&call).map_err(|error| error.at(place))?;
        Ok(self.window_result(call, place))
    }

    fn window_result(&mut self, mut call: WindowCall, place: Option<u32>) -> Expr {
        if let WindowFunction::Lag { offset, default, lead, .. } = &mut call.function
            && let Some(own) = default.take_if(|default| !matches!(default, Expr::Hole { .. } | Expr::Const { .. }))
        {
            // A default is computed for the rows that take it: those without a row so far away.
            let (offset, lead) = (offset.clone(), *lead);
            let function = WindowFunction::Lag { value: Expr::bool(true), offset: offset.clone(), default: None, lead };
            let there = self.window_result(WindowCall { function, ty: DataType::Bool, ..call.clone() }, place);
            let ty = call.ty.clone();
            let found = self.window_result(call, place);
            let mut missing = vec![Expr::IsNull(Box::new(there))];
            missing.extend(offset.map(|offset| Expr::IsNotNull(Box::new(offset))));
            let branches = vec![(Expr::And(missing), own)];
            return Expr::Case { branches, otherwise: Some(Box::new(found)), ty };
        }
        let ty = call.ty.clone();
        if let Some((id, _)) = self.scope().windows.iter().find(|(_, known)| *known == call) {
            return Expr::Hole { id: *id, ty };
        }
        let id = self.fresh();
        self.set_typmod(id, -1);
        self.call_places.insert(id, place);
        self.scope().windows.push((id, call));
        Expr::Hole { id, ty }
    }

    fn check_not_nested(&mut self, call: &WindowCall) -> Result<()> {
        let mut used = Vec::new();
        for expr in call.clone().exprs_mut() {
            self.columns_of(expr, &mut used);
        }
        let windows = &self.scope().windows;
        match windows.iter().any(|(id, _)| used.contains(id)) {
            true => Err(windowing("window function calls cannot be nested")),
            false => Ok(()),
        }
    }

    fn window_kind(
        &mut self,
        name: &str,
        function: &ast::Function,
        args: &CallArgs,
    ) -> Result<(WindowFunction, DataType)> {
        if let (Some((ranking, ty)), true) = (ranking(name), args.exprs.is_empty() && function.within_group.is_empty())
        {
            self.check_plain(name, function, args)?;
            return Ok((WindowFunction::Ranking(ranking), ty));
        }
        if is_window_function(name) && ranking(name).is_none() {
            self.check_plain(name, function, args)?;
            return self.value_function(name, args);
        }
        if !self.registry().is_aggregate(name) {
            let bound = args.exprs.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
            // A function that does not exist says so first.
            self.call(name, bound)?;
            let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
            return Err(SqlError::new("42809", message));
        }
        if args.distinct {
            return Err(SqlError::not_supported("DISTINCT is not implemented for window functions"));
        }
        if super::ordered_set::is_ordered_set(name) {
            let counted = super::ordered_set::has_arguments(name, args.exprs.len());
            if function.within_group.is_empty() && !counted {
                return Err(self.no_such_function(name, args));
            }
            return Err(match function.within_group.is_empty() {
                true => SqlError::new("42809", format!("WITHIN GROUP is required for ordered-set aggregate {name}")),
                false => SqlError::not_supported(format!("OVER is not supported for ordered-set aggregate {name}")),
            });
        }
        if !args.order_by.is_empty() {
            return Err(SqlError::not_supported("aggregate ORDER BY is not implemented for window functions"));
        }
        // Not inside an aggregate: its arguments may be aggregates of the groups that the window is over.
        let call = self.aggregate_parts(name, function, args)?;
        let ty = call.resolved.ty.clone();
        Ok((WindowFunction::Aggregate(call), ty))
    }

    /// What only aggregates may have.
    fn check_plain(&mut self, name: &str, function: &ast::Function, args: &CallArgs) -> Result<()> {
        if args.star && ranking(name).is_none() {
            return Err(self.no_such_function(name, &CallArgs::default()));
        }
        if args.distinct {
            return Err(SqlError::not_supported("DISTINCT is not implemented for window functions"));
        }
        if !function.within_group.is_empty() {
            return Err(SqlError::new("42809", format!("window function {name} cannot have WITHIN GROUP")));
        }
        if !args.order_by.is_empty() {
            return Err(SqlError::not_supported("aggregate ORDER BY is not implemented for window functions"));
        }
        if function.filter.is_some() {
            return Err(SqlError::not_supported("FILTER is not implemented for non-aggregate window functions"));
        }
        Ok(())
    }

    fn value_function(&mut self, name: &str, args: &CallArgs) -> Result<(WindowFunction, DataType)> {
        let fits = match name {
            "lag" | "lead" => (1..=3).contains(&args.exprs.len()),
            "nth_value" => args.exprs.len() == 2,
            _ => args.exprs.len() == 1,
        };
        if !fits {
            return Err(self.no_such_function(name, args));
        }
        let mut bound = args.exprs.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?.into_iter();
        let first = bound.next().expect("at least one argument");
        if name == "ntile" {
            return Ok((WindowFunction::Ntile(self.int4_argument(first, name, args)?), DataType::Int4));
        }
        let ty = first.ty();
        if ty == DataType::Unknown && args.exprs.len() < 3 {
            let message = "could not determine polymorphic type because input has type unknown";
            return Err(SqlError::new("42804", message));
        }
        let number = bound.next().map(|number| self.int4_argument(number, name, args)).transpose()?;
        Ok(match (name, number) {
            ("first_value", _) => (WindowFunction::Edge(Edge::First, first), ty),
            ("last_value", _) => (WindowFunction::Edge(Edge::Last, first), ty),
            ("nth_value", Some(nth)) => (WindowFunction::NthValue(first, nth), ty),
            (_, offset) => {
                let (value, default, ty) = match bound.next() {
                    None => (first, None, ty),
                    Some(default) => {
                        let ty = match resolve::resolve_common_type("", &[ty, default.ty()]) {
                            Ok(ty) => ty,
                            Err(_) => return Err(self.no_such_function(name, args)),
                        };
                        let value = self.coerce(first, &ty, CastContext::Implicit)?;
                        (value, Some(self.coerce(default, &ty, CastContext::Implicit)?), ty)
                    }
                };
                (WindowFunction::Lag { value, offset, default, lead: name == "lead" }, ty)
            }
        })
    }

    fn int4_argument(&mut self, expr: Expr, name: &str, args: &CallArgs) -> Result<Expr> {
        match self.coerce(expr, &DataType::Int4, CastContext::Implicit) {
            Err(error) if matches!(error.sqlstate, "42846" | "42804") => Err(self.no_such_function(name, args)),
            coerced => coerced,
        }
    }
}
