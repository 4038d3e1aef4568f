//! What storage can skip by: conditions over one column of a table and constants, and the keys that joins have on their
//! other sides.

use super::{Pipeline, Sink, Start, Step};
use crate::join::{Kind, Probe};
use crate::program::{Condition, Def, Place, Program};
use crate::scan::Scan;
use basalt_engine::ScanSpec;
use basalt_expr::context::EvalContext;
use basalt_expr::pattern::{Rest, beginning_of, next_beginning};
use basalt_expr::tree::Expr;
use basalt_types::span::Span;
use basalt_types::{ColumnId, ColumnPredicate, CompareOp, DataType, Datum, PhysType};

/// What a condition says about one column of the table, if it does.
pub(super) fn predicates(condition: &Condition, program: &Program, spec: &ScanSpec) -> Vec<ColumnPredicate> {
    match condition {
        Condition::Within(place, span) => within(*place, *span, program, spec),
        other => predicate(other, program, spec).into_iter().collect(),
    }
}

fn within(place: Place, span: Span, program: &Program, spec: &ScanSpec) -> Vec<ColumnPredicate> {
    let Some(column) = column_of(place, program, spec) else { return Vec::new() };
    let compare = |op, value| {
        let value = datum_of(spec.table.column(column).ty.phys()?, value)?;
        Some(ColumnPredicate::Compare { column, op, value })
    };
    match span.inside {
        false => compare(CompareOp::NotEq, span.low).filter(|_| span.low == span.high).into_iter().collect(),
        true if span.low == span.high => compare(CompareOp::Eq, span.low).into_iter().collect(),
        true => {
            let low = (span.low > i128::MIN).then(|| compare(CompareOp::GtEq, span.low)).flatten();
            let high = (span.high < i128::MAX).then(|| compare(CompareOp::LtEq, span.high)).flatten();
            low.into_iter().chain(high).collect()
        }
    }
}

/// The predicates that say of a row's own columns what a condition says, neither more nor less; `None` if there are none.
fn saying(
    condition: &Condition,
    program: &Program,
    spec: &ScanSpec,
    ctx: &EvalContext,
) -> Option<Vec<ColumnPredicate>> {
    match condition {
        Condition::Within(place, span) if span.inside => {
            let is_one = span.low == span.high;
            let bounds = usize::from(span.low > i128::MIN) + usize::from(span.high < i128::MAX && !is_one);
            // A bound beyond the column's type has no predicate.
            Some(within(*place, *span, program, spec)).filter(|all| bounds > 0 && all.len() == bounds)
        }
        Condition::Null(_, true) | Condition::Any(_) => predicate(condition, program, spec).map(|only| vec![only]),
        Condition::Text(general) | Condition::General(general) => {
            let (predicates, is_all) = plain_predicates(general.over(), program, spec, ctx)?;
            is_all.then_some(predicates)
        }
        Condition::All(all) => {
            let each: Option<Vec<_>> = all.iter().map(|condition| saying(condition, program, spec, ctx)).collect();
            each.map(|each| each.into_iter().flatten().collect())
        }
        Condition::Within(..) | Condition::Null(..) | Condition::CompareColumns(..) => None,
    }
}

impl Pipeline {
    /// Of each condition of the filter that rows of the table come to first, the scan's predicates that together say the
    /// same; none where there are no such.
    pub(super) fn told_by(&self, scan: &Scan, ctx: &EvalContext) -> Vec<Vec<usize>> {
        let (Start::Table(spec), Some(Step::Filter(conditions))) = (&self.start, self.steps.first()) else {
            return Vec::new();
        };
        let place = |predicate: &ColumnPredicate| scan.predicates().iter().position(|known| known == predicate);
        let told_by = |condition: &Condition| {
            let predicates = saying(condition, &self.program, spec, ctx)?;
            predicates.iter().map(place).collect::<Option<Vec<usize>>>()
        };
        conditions.iter().map(|condition| told_by(condition).unwrap_or_default()).collect()
    }

    /// Columns of the scanned table whose values have to be among the keys of a pipeline's table, or their rows go
    /// nowhere.
    pub(super) fn sought(&self) -> Vec<(ColumnId, usize)> {
        let Start::Table(spec) = &self.start else { return Vec::new() };
        let needs_partner = |probe: &&Probe| matches!(probe.kind, Kind::Inner | Kind::Semi);
        let of_steps = self.steps.iter().filter_map(|step| match step {
            Step::Probe(probe) => Some(probe),
            Step::Filter(_) | Step::Sets(_) => None,
        });
        let of_sink = if let Sink::Mark(probe) = &self.sink { Some(probe) } else { None };
        let sought = of_steps.chain(of_sink).filter(needs_partner).filter_map(|probe| {
            let [key] = probe.keys.as_slice() else { return None };
            let column = column_of(*key, &self.program, spec)?;
            let ty = spec.table.column(column).ty.phys();
            let is_integer = matches!(ty, Some(PhysType::I16 | PhysType::I32 | PhysType::I64));
            is_integer.then_some((column, self.tables[probe.join]))
        });
        sought.collect()
    }
}

/// The table's column in a place.
fn column_of(place: Place, program: &Program, spec: &ScanSpec) -> Option<ColumnId> {
    match program.defs[place] {
        Def::Given(at) => Some(spec.columns[at]),
        _ => None,
    }
}

fn predicate(condition: &Condition, program: &Program, spec: &ScanSpec) -> Option<ColumnPredicate> {
    let column_of = |place| column_of(place, program, spec);
    let datum = |column: ColumnId, value: i128| datum_of(spec.table.column(column).ty.phys()?, value);
    match condition {
        Condition::Null(place, true) => Some(ColumnPredicate::IsNull { column: column_of(*place)? }),
        Condition::Null(place, false) => Some(ColumnPredicate::IsNotNull { column: column_of(*place)? }),
        Condition::Any(conditions) => {
            let equal = |condition: &Condition| match condition {
                Condition::Within(place, span) if span.inside && span.low == span.high => {
                    Some((column_of(*place)?, span.low))
                }
                _ => None,
            };
            let equals: Vec<(ColumnId, i128)> = conditions.iter().map(equal).collect::<Option<_>>()?;
            let column = equals.first()?.0;
            equals.iter().all(|(other, _)| *other == column).then_some(())?;
            // A constant beyond the type equals nothing.
            let values = equals.iter().filter_map(|(_, value)| datum(column, *value)).collect();
            Some(ColumnPredicate::In { column, values })
        }
        Condition::Within(..)
        | Condition::Text(_)
        | Condition::CompareColumns(..)
        | Condition::All(_)
        | Condition::General(_) => None,
    }
}

/// The same of a comparison of texts, UUIDs, floats or booleans with one constant or some, which has no form of its own
/// among conditions; whether this is all that it says.
pub(super) fn plain_predicates(
    expr: &Expr,
    program: &Program,
    spec: &ScanSpec,
    ctx: &EvalContext,
) -> Option<(Vec<ColumnPredicate>, bool)> {
    let column_of = |expr: &Expr| column_of(stored(expr)?, program, spec);
    let is = |column: ColumnId, value: bool| {
        let is_bool = *spec.table.column(column).ty.underlying() == DataType::Bool;
        let value = Datum::Bool(value);
        is_bool.then_some((vec![ColumnPredicate::Compare { column, op: CompareOp::Eq, value }], true))
    };
    let constant = |column: ColumnId, expr: &Expr| match expr {
        Expr::Const { value, ty } => stored_constant(&spec.table.column(column).ty, (ty, value), ctx),
        _ => None,
    };
    match expr.clone().fold(ctx, true) {
        expr @ (Expr::Column { .. } | Expr::Cast { .. }) => is(column_of(&expr)?, true),
        Expr::Not(inner) => is(column_of(&inner)?, false),
        Expr::Call { function, args, .. } => {
            let [left, right] = args.as_slice() else { return None };
            let column = column_of(left)?;
            let value = constant(column, right).filter(|value| *value != Datum::Null)?;
            match function.comparison() {
                Some(op) => Some((vec![ColumnPredicate::Compare { column, op, value }], true)),
                None => beginning(column, &function.name, &value),
            }
        }
        Expr::InList { expr, list, equal, negated: false } if equal.comparison() == Some(CompareOp::Eq) => {
            let column = column_of(&expr)?;
            let values = list.iter().map(|value| constant(column, value)).collect::<Option<Vec<_>>>()?;
            // Nothing equals a null.
            let values = values.into_iter().filter(|value| *value != Datum::Null).collect();
            Some((vec![ColumnPredicate::In { column, values }], true))
        }
        _ => None,
    }
}

/// The column of a table that an expression is, under casts that change neither values nor their order.
fn stored(expr: &Expr) -> Option<Place> {
    match expr {
        Expr::Column { index, .. } => Some(*index),
        Expr::Cast { expr, to, .. } => {
            let of = expr.ty();
            let is_kept = match (of.underlying(), to) {
                (DataType::Varchar(_) | DataType::Text, DataType::Text | DataType::Varchar(None)) => true,
                (DataType::Float4, DataType::Float8) => true,
                (of, to) => of == to,
            };
            is_kept.then(|| stored(expr)).flatten()
        }
        _ => None,
    }
}

/// A constant that a column is compared with, as the column has its values; `None` if it has none that is equal to it.
fn stored_constant(column: &DataType, (ty, value): (&DataType, &Datum), ctx: &EvalContext) -> Option<Datum> {
    let is_text = crate::aggregate::keys::is_text;
    let is_plain = match (column.underlying(), ty.underlying()) {
        (DataType::Bpchar(_), DataType::Bpchar(_)) => true,
        (DataType::Float4, DataType::Float8) => {
            return match value {
                Datum::F64(double) => Some(*double as f32)
                    .filter(|single| f64::from(*single) == *double || single.is_nan() && double.is_nan()),
                _ => None,
            }
            .map(Datum::F32);
        }
        (DataType::Numeric(_), DataType::Numeric(_)) if column.decimal().is_none() && ty.decimal().is_some() => {
            let constant = Box::new(Expr::Const { value: value.clone(), ty: ty.clone() });
            let cast = Expr::Cast { expr: constant, to: DataType::Numeric(None), explicit: false };
            return match cast.fold(ctx, true) {
                Expr::Const { value, .. } => Some(value),
                _ => None,
            };
        }
        (DataType::Numeric(_), DataType::Numeric(_)) => column.decimal() == ty.decimal(),
        (
            own @ (DataType::Uuid
            | DataType::Bool
            | DataType::Int2
            | DataType::Int4
            | DataType::Int8
            | DataType::Float4
            | DataType::Float8
            | DataType::Bytea
            | DataType::Date
            | DataType::Time
            | DataType::Timestamp
            | DataType::TimestampTz
            | DataType::Enum(_)),
            other,
        ) => own == other,
        (own, other) => is_text(own) && is_text(other),
    };
    is_plain.then(|| value.clone())
}

/// Texts with a beginning lie between it and the next text that does not begin so.
fn beginning(column: ColumnId, function: &str, constant: &Datum) -> Option<(Vec<ColumnPredicate>, bool)> {
    let Datum::Bytes(constant) = constant else { return None };
    let (beginning, rest) = beginning_of(function, std::str::from_utf8(constant).ok()?)?;
    if rest == Rest::Failure {
        return None;
    }
    let compare = |op, text: &[u8]| ColumnPredicate::Compare { column, op, value: Datum::Bytes(text.into()) };
    if rest == Rest::Nothing {
        return Some((vec![compare(CompareOp::Eq, beginning.as_bytes())], true));
    }
    let mut predicates = vec![compare(CompareOp::GtEq, beginning.as_bytes())];
    predicates.extend(next_beginning(&beginning).map(|next| compare(CompareOp::Lt, next.as_bytes())));
    Some((predicates, rest == Rest::Anything))
}

fn datum_of(ty: PhysType, value: i128) -> Option<Datum> {
    match ty {
        PhysType::I16 => i16::try_from(value).ok().map(Datum::I16),
        PhysType::I32 => i32::try_from(value).ok().map(Datum::I32),
        PhysType::I64 => i64::try_from(value).ok().map(Datum::I64),
        PhysType::I128 => Some(Datum::I128(value)),
        _ => None,
    }
}
