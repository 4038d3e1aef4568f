//! Expressions without kernels here: `expr` evaluates them, over the columns that they name.

use super::{Field, Place};
use crate::Error;
use arrow_array::{Array, ArrayRef};
use basalt_expr::context::EvalContext;
use basalt_expr::pattern::Sought;
use basalt_expr::tree::Expr;
use basalt_types::batch::{to_logical, to_stored};
use basalt_types::floats::ordered;
use basalt_types::span::Span;
use basalt_types::vector::Vector;
use basalt_types::{DataType, Datum};
use std::sync::OnceLock;

/// An expression whose columns are counted in a list of its own.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct General {
    /// Over the columns of the program, as it was given.
    over: Expr,
    expr: Expr,
    /// Which columns of the program those are.
    pub places: Vec<Place>,
    /// In which types they are given.
    held: Vec<DataType>,
    ty: DataType,
    sought: Lazily<Sought>,
    floats: Lazily<Span>,
}

/// What an expression asks of its only column, if that is something that storage or a kernel can tell. Few are ever asked.
#[derive(Clone, Debug)]
struct Lazily<T>(OnceLock<Option<T>>);

impl<T> Default for Lazily<T> {
    fn default() -> Lazily<T> {
        Lazily(OnceLock::new())
    }
}

/// It follows from the expression.
impl<T> PartialEq for Lazily<T> {
    fn eq(&self, _: &Lazily<T>) -> bool {
        true
    }
}

impl General {
    pub fn new(expr: &Expr, fields: &[Field]) -> General {
        let (mut places, mut held) = (Vec::new(), Vec::new());
        let own = expr.clone().rewrite(&mut |node| match node {
            Expr::Column { index, ty } => {
                let at = places.iter().position(|place| *place == index).unwrap_or_else(|| {
                    places.push(index);
                    held.push(fields[index].held());
                    places.len() - 1
                });
                let column = Expr::Column { index: at, ty: held[at].clone() };
                match fields[index].scale {
                    None => column,
                    Some(_) => Expr::Cast { expr: Box::new(column), to: ty, explicit: false },
                }
            }
            other => other,
        });
        let (sought, floats) = (Lazily::default(), Lazily::default());
        General { over: expr.clone(), ty: own.ty(), sought, floats, expr: own, places, held }
    }

    /// The expression over columns of the program.
    pub fn over(&self) -> &Expr {
        &self.over
    }

    /// Whether it fails for no value.
    pub fn is_total(&self) -> bool {
        self.expr.is_total()
    }

    /// What its constants take.
    pub fn constant_bytes(&self) -> usize {
        let mut bytes = 0;
        self.expr.any(&mut |node| {
            if let Expr::Const { value: Datum::Bytes(value), .. } = node {
                bytes += value.len();
            }
            false
        });
        bytes
    }

    /// As a set of texts, if it is one.
    pub fn sought(&self) -> Option<&Sought> {
        self.sought.0.get_or_init(|| Sought::of(&self.expr)).as_ref()
    }

    /// As a comparison of a column of floats with a constant, if it is one: which of their integers in order pass.
    pub fn floats(&self) -> Option<Span> {
        *self.floats.0.get_or_init(|| {
            let Expr::Call { function, args, .. } = &self.expr else { return None };
            let [held] = self.held.as_slice() else { return None };
            matches!(held.underlying(), DataType::Float4 | DataType::Float8).then_some(())?;
            let op = function.comparison()?;
            let (op, constant) = match args.as_slice() {
                [Expr::Column { .. }, Expr::Const { value, .. }] => (op, value),
                [Expr::Const { value, .. }, Expr::Column { .. }] => (op.mirrored(), value),
                _ => return None,
            };
            let constant = match constant {
                Datum::F32(value) => f64::from(*value),
                Datum::F64(value) => *value,
                _ => return None,
            };
            Some(Span::compared(op, ordered(constant).into()))
        })
    }

    /// One value per row.
    pub fn eval(&self, columns: &[&Vector], rows: usize, ctx: &EvalContext) -> Result<Vector, Error> {
        let values = self.expr.eval(&self.logical(columns), rows, ctx)?;
        Ok(Vector::measured(to_stored(&self.ty, &values)))
    }

    /// Positions of the rows for which it is true.
    pub fn filter(&self, columns: &[&Vector], rows: usize, ctx: &EvalContext) -> Result<Vec<u32>, Error> {
        Ok(self.expr.filter_indices(&self.logical(columns), rows, ctx)?)
    }

    /// The same over values of its only column.
    pub fn filter_values(&self, values: &ArrayRef, ctx: &EvalContext) -> Result<Vec<u32>, Error> {
        let rows = values.len();
        Ok(self.expr.filter_indices(&[to_logical(&self.held[0], values)], rows, ctx)?)
    }

    fn logical(&self, columns: &[&Vector]) -> Vec<ArrayRef> {
        columns.iter().zip(&self.held).map(|(column, held)| logical(column, held)).collect()
    }
}

/// A column as `expr` takes it.
pub(crate) fn logical(column: &Vector, held: &DataType) -> ArrayRef {
    to_logical(held, &column.to_array(held.phys().expect("columns are storable")))
}
