//! Expressions without kernels here: `expr` evaluates them, over the columns that they name.

use super::{Field, Place};
use crate::Error;
use arrow_array::{Array, ArrayRef};
use basalt_expr::context::EvalContext;
use basalt_expr::pattern::Sought;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use basalt_types::batch::{to_logical, to_stored};
use basalt_types::vector::Vector;

/// An expression whose columns are counted in a list of its own.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct General {
    expr: Expr,
    /// Which columns of the program those are.
    pub places: Vec<Place>,
    /// In which types they are given.
    held: Vec<DataType>,
    ty: DataType,
    /// What it asks of its only column, if that is something that storage can tell.
    pub sought: Option<Sought>,
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
        General { ty: own.ty(), sought: Sought::of(&own), expr: own, places, held }
    }

    /// Whether it fails for no value.
    pub fn is_total(&self) -> bool {
        self.expr.is_total()
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
