//! Expressions without kernels here: `expr` evaluates them, over the columns that they name.

use super::{Field, Place};
use crate::Error;
use arrow_array::{Array, ArrayRef};
use basalt_expr::context::EvalContext;
use basalt_expr::pattern::Sought;
use basalt_expr::tree::Expr;
use basalt_types::batch::{to_logical, to_stored};
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
    sought: Lazily,
}

/// What an expression asks of its only column, if that is something that storage can tell. Few are ever asked.
#[derive(Clone, Default, Debug)]
struct Lazily(OnceLock<Option<Sought>>);

/// It follows from the expression.
impl PartialEq for Lazily {
    fn eq(&self, _: &Lazily) -> bool {
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
        General { over: expr.clone(), ty: own.ty(), sought: Lazily::default(), expr: own, places, held }
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
