//! Frame clauses.

use super::super::binder::Binder;
use super::super::position;
use super::super::scope::{Clause, WindowDef};
use super::windowing;
use crate::error::{Result, SqlError};
use crate::syntax::exclude_marker;
use basalt_expr::cast::CastContext;
use basalt_expr::tree::Expr;
use basalt_expr::window::in_range::offset_type;
use basalt_expr::window::{Bound, Exclude, Units};
use basalt_types::DataType;
use sqlparser::ast::{self, WindowFrame, WindowFrameBound, WindowFrameUnits};

/// The order of a window, and the exclusion of its frame that the reader has put behind it.
pub(super) fn exclusion(order_by: &[ast::OrderByExpr]) -> (&[ast::OrderByExpr], Exclude) {
    match order_by.split_last() {
        Some((last, rest)) => match exclude_marker(&last.expr) {
            Some(exclude) => (rest, exclude),
            None => (order_by, Exclude::NoOthers),
        },
        None => (order_by, Exclude::NoOthers),
    }
}

impl Binder<'_> {
    pub(super) fn window_frame(
        &mut self,
        frame: &WindowFrame,
        exclude: Exclude,
        window: &mut WindowDef,
        place: Option<u32>,
    ) -> Result<()> {
        let units = match frame.units {
            WindowFrameUnits::Rows => Units::Rows,
            WindowFrameUnits::Range => Units::Range,
            WindowFrameUnits::Groups => Units::Groups,
        };
        let (start, start_offset) = bound_of(&frame.start_bound);
        let (end, end_offset) = match &frame.end_bound {
            Some(bound) => bound_of(bound),
            None => (Bound::CurrentRow, None),
        };
        check_bounds(start, end, frame.end_bound.is_none())
            .map_err(|(message, of_start)| windowing(message).at(self.bound_place(frame, place, of_start)))?;
        if units == Units::Groups && window.order_by.is_empty() {
            return Err(windowing("GROUPS mode requires an ORDER BY clause").at(place));
        }
        let has_offset = start_offset.is_some() || end_offset.is_some();
        if units == Units::Range && has_offset && window.order_by.len() != 1 {
            return Err(
                windowing("RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column").at(place)
            );
        }
        let ordering = window.order_by.first().map(|key| key.expr.ty());
        let mut offsets = [None, None];
        for (place, offset) in offsets.iter_mut().zip([start_offset, end_offset]) {
            *place = offset.map(|offset| self.frame_offset(offset, units, ordering.as_ref())).transpose()?;
        }
        window.frame = basalt_expr::window::FrameSpec { units, start, end, exclude };
        window.offsets = offsets;
        window.has_frame = true;
        Ok(())
    }

    /// Where a bound of the frame stands whose window begins at `place`.
    fn bound_place(&self, frame: &WindowFrame, place: Option<u32>, of_start: bool) -> Option<u32> {
        let sql = &self.ctx.sql;
        let units = position::of_word(sql, place?, &frame.units.to_string())?.1;
        if frame.end_bound.is_none() {
            return Some(units);
        }
        let start = position::of_word(sql, units - 1, "between")?.1;
        if of_start { Some(start) } else { Some(position::of_word(sql, start, "and")?.1) }
    }

    fn frame_offset(&mut self, expr: &ast::Expr, units: Units, ordering: Option<&DataType>) -> Result<Expr> {
        let name = match units {
            Units::Rows => "ROWS",
            Units::Range => "RANGE",
            Units::Groups => "GROUPS",
        };
        let place = position::of_expr(&self.ctx.sql, expr);
        let bound = self.in_clause(Clause::WindowFrame(units), |binder| binder.expr(expr))?;
        let ty = bound.ty();
        let bound = match (units, ordering) {
            (Units::Range, Some(ordering)) => {
                let wanted = offset_type(ordering, &ty).map_err(|error| SqlError::from(error).at(place))?;
                self.coerce(bound, &wanted, CastContext::Implicit).map_err(|error| error.at(place))?
            }
            _ => {
                self.coerce(bound, &DataType::Int8, CastContext::Assignment).map_err(|error| match error.sqlstate {
                    "42846" => {
                        let message =
                            format!("argument of {name} must be type bigint, not type {}", ty.base().sql_name());
                        SqlError::new("42804", message).at(place)
                    }
                    _ => error.at(place),
                })?
            }
        };
        let scope = self.scope();
        if bound.any(&mut |node| matches!(node, Expr::Hole { id, .. } if scope.defines(*id))) {
            return Err(SqlError::new("42P10", format!("argument of {name} must not contain variables")).at(place));
        }
        Ok(bound)
    }
}

fn bound_of(bound: &WindowFrameBound) -> (Bound, Option<&ast::Expr>) {
    match bound {
        WindowFrameBound::CurrentRow => (Bound::CurrentRow, None),
        WindowFrameBound::Preceding(None) => (Bound::UnboundedPreceding, None),
        WindowFrameBound::Following(None) => (Bound::UnboundedFollowing, None),
        WindowFrameBound::Preceding(Some(expr)) => (Bound::Preceding, Some(expr)),
        WindowFrameBound::Following(Some(expr)) => (Bound::Following, Some(expr)),
    }
}

/// An error says whether it is about the start.
fn check_bounds(start: Bound, end: Bound, end_is_implied: bool) -> Result<(), (&'static str, bool)> {
    let message = match (start, end) {
        (Bound::UnboundedFollowing, _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (_, Bound::UnboundedPreceding) => "frame end cannot be UNBOUNDED PRECEDING",
        (Bound::CurrentRow, Bound::Preceding) => "frame starting from current row cannot have preceding rows",
        (Bound::Following, Bound::CurrentRow) if end_is_implied => {
            "frame starting from following row cannot end with current row"
        }
        (Bound::Following, Bound::Preceding | Bound::CurrentRow) => {
            "frame starting from following row cannot have preceding rows"
        }
        _ => return Ok(()),
    };
    Err((message, start == Bound::UnboundedFollowing))
}
