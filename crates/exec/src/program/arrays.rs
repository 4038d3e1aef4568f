//! What is asked of arrays that storage may have taken apart: an element, or how many there are.

use super::{Def, Field, General, Place, Program};
use basalt_expr::context::EvalContext;
use basalt_expr::functions::ElementTest;
use basalt_expr::tree::Expr;
use basalt_types::Datum;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) enum ArrayPart {
    /// The element with a subscript of an array of one dimension that begins at 1, counted from 0.
    Element(u32),
    Count,
    /// The same, null of an array without elements.
    Length,
    /// Whether elements meet a condition.
    Test(Arc<ElementTest>),
}

impl Program {
    /// An expression over columns of this program, in which parameters and what is constant are computed now, and what is
    /// asked of given arrays is a column of its own.
    pub(super) fn folded(&mut self, expr: &Expr, ctx: &EvalContext) -> Expr {
        let expr = expr.clone().fold(ctx, true);
        let mut asks = false;
        expr.any(&mut |node| {
            asks |= self.array_part(node).is_some();
            asks
        });
        if !asks {
            return expr;
        }
        expr.rewrite(&mut |node| match self.array_part(&node) {
            Some((part, of)) => Expr::Column { index: self.of_array(part, of, &node), ty: node.ty() },
            None => node,
        })
    }

    /// What an expression asks of an array, and of which.
    fn array_part(&self, expr: &Expr) -> Option<(ArrayPart, Place)> {
        if let Some((test, of)) = ElementTest::of(expr) {
            // What may fail is asked of no row that need not be asked.
            let is_column = matches!(self.defs[of], Def::Given(_)) && test.is_total();
            return is_column.then(|| (ArrayPart::Test(Arc::new(test)), of));
        }
        let Expr::Call { function, args, ty } = expr else { return None };
        let (Expr::Column { index: of, ty: arrays }, rest) = args.split_first()? else { return None };
        let element = arrays.element()?;
        let constant = |expr: &Expr| match expr {
            Expr::Const { value: Datum::I32(value), .. } => Some(*value),
            _ => None,
        };
        let part = match (function.name.as_str(), rest) {
            ("array_subscript", [at]) if element.phys().is_some() && element.phys() == ty.phys() => {
                // A lower one may be that of an array that begins there.
                ArrayPart::Element(u32::try_from(constant(at)?.checked_sub(1)?).ok()?)
            }
            ("array_length" | "array_upper", [dimension]) if constant(dimension)? == 1 => ArrayPart::Length,
            ("cardinality", []) => ArrayPart::Count,
            _ => return None,
        };
        matches!(self.defs[*of], Def::Given(_)).then_some((part, *of))
    }

    fn of_array(&mut self, part: ArrayPart, of: Place, expr: &Expr) -> Place {
        let general = General::new(expr, &self.fields);
        let same = |def: &Def| matches!(def, Def::OfArray { general: other, .. } if *other == general);
        if let Some(place) = self.defs.iter().position(same) {
            return place;
        }
        let nullable = !matches!(part, ArrayPart::Count) || self.fields[of].nullable;
        self.push(Def::OfArray { part, of, general }, Field::new(expr.ty(), nullable))
    }
}
