//! Window functions: `f(…) OVER (…)`.

use super::binder::Binder;
use super::function::CallArgs;
use super::names;
use crate::error::{Result, SqlError};
use crate::plan::{FrameBound, FrameUnits, WindowCall, WindowFunction};
use basalt_expr::cast::CastContext;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use sqlparser::ast::{self, NamedWindowExpr, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType};

/// Functions that have no meaning without OVER.
pub(super) fn is_only_window(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
        "lag",
        "lead",
        "first_value",
        "last_value",
        "nth_value",
    ];
    NAMES.contains(&name)
}

impl Binder<'_> {
    pub fn window_function(&mut self, name: &str, function: &ast::Function, args: &CallArgs) -> Result<Expr> {
        let clause = self.scope().clause;
        if !clause.allows_windows() || self.scope().inside_aggregate {
            return Err(SqlError::new("42P20", format!("window functions are not allowed in {}", clause.name())));
        }
        if std::mem::replace(&mut self.scope().inside_window, true) {
            return Err(SqlError::new("42P20", "window function calls cannot be nested"));
        }
        let call = self.window_call(name, function, args);
        self.scope().inside_window = false;
        let call = call?;
        let ty = call.ty.clone();
        if let Some((id, _)) = self.scope().windows.iter().find(|(_, known)| *known == call) {
            return Ok(Expr::Hole { id: *id, ty });
        }
        let id = self.fresh();
        self.set_typmod(id, -1);
        self.scope().windows.push((id, call));
        Ok(Expr::Hole { id, ty })
    }

    fn window_call(&mut self, name: &str, function: &ast::Function, args: &CallArgs) -> Result<WindowCall> {
        let window = function.over.as_ref().expect("checked by the caller");
        let spec = self.window_spec(window, 0)?;
        let (function, ty) = self.window_kind(name, function, args)?;
        let partition_by = spec
            .partition_by
            .iter()
            .map(|expr| self.expr(expr).and_then(|expr| self.known(expr)))
            .collect::<Result<Vec<_>>>()?;
        let order_by = self.sort_keys(&spec.order_by)?;
        let (units, start, end) = match &spec.window_frame {
            None => (FrameUnits::Range, FrameBound::UnboundedPreceding, FrameBound::CurrentRow),
            Some(frame) => {
                let units = match frame.units {
                    WindowFrameUnits::Rows => FrameUnits::Rows,
                    WindowFrameUnits::Range => FrameUnits::Range,
                    WindowFrameUnits::Groups => FrameUnits::Groups,
                };
                let start = self.frame_bound(&frame.start_bound, units)?;
                let end = match &frame.end_bound {
                    Some(bound) => self.frame_bound(bound, units)?,
                    None => FrameBound::CurrentRow,
                };
                (units, start, end)
            }
        };
        Ok(WindowCall { function, ty, partition_by, order_by, units, start, end })
    }

    /// The specification behind OVER, a named window it builds on merged in.
    fn window_spec(&mut self, window: &WindowType, depth: usize) -> Result<WindowSpec> {
        let (base, own) = match window {
            WindowType::NamedWindow(name) => (Some(name), None),
            WindowType::WindowSpec(spec) => (spec.window_name.as_ref(), Some(spec)),
        };
        let base = match base {
            None => None,
            Some(name) => {
                let wanted = names::fold(name);
                let named = self.scope().named_windows.iter().find(|named| names::fold(&named.0) == wanted).cloned();
                let Some(named) = named.filter(|_| depth < 16) else {
                    return Err(SqlError::new("42704", format!("window \"{wanted}\" does not exist")));
                };
                let next = match named.1 {
                    NamedWindowExpr::NamedWindow(name) => WindowType::NamedWindow(name),
                    NamedWindowExpr::WindowSpec(spec) => WindowType::WindowSpec(spec),
                };
                Some(self.window_spec(&next, depth + 1)?)
            }
        };
        Ok(match (base, own) {
            (Some(base), Some(own)) => WindowSpec {
                window_name: None,
                partition_by: base.partition_by,
                order_by: if own.order_by.is_empty() { base.order_by } else { own.order_by.clone() },
                window_frame: own.window_frame.clone(),
            },
            (Some(base), None) => base,
            (None, Some(own)) => own.clone(),
            (None, None) => return Err(SqlError::syntax("a window is expected after OVER")),
        })
    }

    fn frame_bound(&mut self, bound: &WindowFrameBound, units: FrameUnits) -> Result<FrameBound> {
        let mut offset = |expr: &ast::Expr| {
            if units == FrameUnits::Range {
                return Err(SqlError::not_supported("RANGE frames with an offset are not supported yet"));
            }
            let bound = self.expr(expr)?;
            self.coerce(bound, &DataType::Int8, CastContext::Implicit)
        };
        Ok(match bound {
            WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
            WindowFrameBound::Preceding(None) => FrameBound::UnboundedPreceding,
            WindowFrameBound::Following(None) => FrameBound::UnboundedFollowing,
            WindowFrameBound::Preceding(Some(expr)) => FrameBound::Preceding(offset(expr)?),
            WindowFrameBound::Following(Some(expr)) => FrameBound::Following(offset(expr)?),
        })
    }

    fn window_kind(
        &mut self,
        name: &str,
        function: &ast::Function,
        args: &CallArgs,
    ) -> Result<(WindowFunction, DataType)> {
        let plain = match (name, args.exprs.len()) {
            ("row_number", 0) => Some((WindowFunction::RowNumber, DataType::Int8)),
            ("rank", 0) => Some((WindowFunction::Rank, DataType::Int8)),
            ("dense_rank", 0) => Some((WindowFunction::DenseRank, DataType::Int8)),
            ("percent_rank", 0) => Some((WindowFunction::PercentRank, DataType::Float8)),
            ("cume_dist", 0) => Some((WindowFunction::CumeDist, DataType::Float8)),
            _ => None,
        };
        if let Some(found) = plain {
            return Ok(found);
        }
        let with_value = matches!(
            (name, args.exprs.len()),
            ("lag" | "lead", 1..=3) | ("first_value" | "last_value", 1) | ("nth_value", 2) | ("ntile", 1)
        );
        if !with_value {
            if !self.registry().is_aggregate(name) {
                return Err(SqlError::new(
                    "42809",
                    format!("OVER specified, but {name} is not a window function nor an aggregate function"),
                ));
            }
            if args.distinct {
                return Err(SqlError::not_supported("DISTINCT is not implemented for window functions"));
            }
            // Not inside an aggregate: its arguments may be aggregates of the groups that the window is over.
            let call = self.aggregate_parts(name, function, args)?;
            let ty = call.resolved.ty.clone();
            return Ok((WindowFunction::Aggregate(call), ty));
        }
        let mut bound = args.exprs.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?.into_iter();
        let first = bound.next().expect("at least one argument");
        let first = self.known(first)?;
        let ty = first.ty();
        Ok(match name {
            "ntile" => {
                (WindowFunction::Ntile(self.coerce(first, &DataType::Int4, CastContext::Implicit)?), DataType::Int4)
            }
            "first_value" => (WindowFunction::FirstValue(first), ty),
            "last_value" => (WindowFunction::LastValue(first), ty),
            "nth_value" => {
                let nth = bound.next().expect("two arguments");
                let nth = self.coerce(nth, &DataType::Int4, CastContext::Implicit)?;
                (WindowFunction::NthValue(first, nth), ty)
            }
            _ => {
                let offset = bound.next();
                let offset =
                    offset.map(|offset| self.coerce(offset, &DataType::Int4, CastContext::Implicit)).transpose()?;
                let (value, default, ty) = match bound.next() {
                    None => (first, None, ty),
                    Some(default) => {
                        let ty = resolve::resolve_common_type("", &[ty, default.ty()])?;
                        let value = self.coerce(first, &ty, CastContext::Implicit)?;
                        (value, Some(self.coerce(default, &ty, CastContext::Implicit)?), ty)
                    }
                };
                (WindowFunction::Lag { value, offset, default, lead: name == "lead" }, ty)
            }
        })
    }
}
