//! The second look at a row that changed before it was locked: each relation of the query has one row or
//! none, so filters, projections and joins are computed value by value. A query with subqueries in its
//! expressions is left to a plan.

use crate::error::Result;
use crate::plan::{ColId, JoinKind, LockRows, Plan};
use ahash::AHashMap;
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::Datum;

/// A query over single rows. Every column of it has a place among the values that are computed with.
pub(in crate::statement) struct SecondLook {
    root: Node,
    places: AHashMap<ColId, usize>,
    outputs: Vec<usize>,
}

enum Node {
    /// One row, or none where the place says so.
    Relation {
        presence: Option<usize>,
    },
    Project {
        input: Box<Node>,
        exprs: Vec<(usize, Expr)>,
    },
    Filter {
        input: Box<Node>,
        condition: Expr,
    },
    Join(Box<Join>),
}

struct Join {
    left: Node,
    right: Node,
    kind: JoinKind,
    condition: Option<Expr>,
    left_columns: Vec<usize>,
    right_columns: Vec<usize>,
}

impl SecondLook {
    /// `None` if it takes a plan.
    pub fn of(step: &LockRows) -> Option<SecondLook> {
        let mut builder = Builder { places: AHashMap::new(), step };
        let root = builder.node(&step.input)?;
        let outputs = step.columns.iter().map(|(id, _)| builder.places.get(id).copied()).collect::<Option<_>>()?;
        Some(SecondLook { root, places: builder.places, outputs })
    }

    /// The result's row, if there still is one; `values` are those of the relations' columns.
    pub fn row(&self, values: AHashMap<ColId, Datum>, eval: &EvalContext) -> Result<Option<Vec<Datum>>> {
        let mut row = vec![Datum::Null; self.places.len()];
        for (id, value) in values {
            if let Some(place) = self.places.get(&id) {
                row[*place] = value;
            }
        }
        let passes = self.root.run(&mut row, eval)?;
        Ok(passes.then(|| self.outputs.iter().map(|place| row[*place].clone()).collect()))
    }
}

struct Builder<'a> {
    places: AHashMap<ColId, usize>,
    step: &'a LockRows,
}

impl Builder<'_> {
    fn node(&mut self, plan: &Plan) -> Option<Node> {
        Some(match plan {
            relation if self.step.presence_of(relation).is_some() => self.relation(relation),
            Plan::Project { input, exprs } => {
                let input = Box::new(self.node(input)?);
                // What passes through is in its place already.
                let passes = |id: &ColId, expr: &Expr| matches!(expr, Expr::Hole { id: of, .. } if of == id);
                if exprs.iter().any(|(id, expr)| passes(id, expr) && !self.places.contains_key(id)) {
                    return None;
                }
                let computed = exprs.iter().filter(|(id, expr)| !passes(id, expr));
                let computed = computed.map(|(id, expr)| Some((*id, self.expr(expr)?))).collect::<Option<Vec<_>>>()?;
                let exprs = computed.into_iter().map(|(id, expr)| (self.place(id), expr)).collect();
                Node::Project { input, exprs }
            }
            Plan::Filter { input, condition } => {
                let input = Box::new(self.node(input)?);
                Node::Filter { input, condition: self.expr(condition)? }
            }
            Plan::Sort { input, .. } | Plan::Limit { input, .. } => self.node(input)?,
            Plan::Join { left, right, kind, condition, .. } => {
                let (left_node, right_node) = (self.node(left)?, self.node(right)?);
                let condition = match condition {
                    Some(condition) => Some(self.expr(condition)?),
                    None => None,
                };
                let mut columns = |side: &Plan| side.columns().into_iter().map(|(id, _)| self.place(id)).collect();
                let (left_columns, right_columns) = (columns(left), columns(right));
                let (left, right, kind) = (left_node, right_node, *kind);
                Node::Join(Box::new(Join { left, right, kind, condition, left_columns, right_columns }))
            }
            leaf => self.relation(leaf),
        })
    }

    fn relation(&mut self, plan: &Plan) -> Node {
        for (id, _) in plan.columns() {
            self.place(id);
        }
        Node::Relation { presence: self.step.presence_of(plan).map(|id| self.place(id)) }
    }

    fn place(&mut self, id: ColId) -> usize {
        let next = self.places.len();
        *self.places.entry(id).or_insert(next)
    }

    /// `None` if something other than a column stands in it: a subquery.
    fn expr(&self, expr: &Expr) -> Option<Expr> {
        let over_row = expr.clone().rewrite(&mut |node| match node {
            Expr::Hole { id, ty } => match self.places.get(&id) {
                Some(index) => Expr::Column { index: *index, ty },
                None => Expr::Hole { id, ty },
            },
            other => other,
        });
        (!over_row.any(&mut |node| matches!(node, Expr::Hole { .. }))).then_some(over_row)
    }
}

impl Node {
    /// Whether there is a row; its values are then at their places.
    fn run(&self, row: &mut [Datum], eval: &EvalContext) -> Result<bool> {
        match self {
            Node::Relation { presence } => Ok(presence.is_none_or(|place| row[place] == Datum::Bool(true))),
            Node::Project { input, exprs } => {
                if !input.run(row, eval)? {
                    return Ok(false);
                }
                for (place, expr) in exprs {
                    row[*place] = expr.eval_scalar(row, eval)?;
                }
                Ok(true)
            }
            Node::Filter { input, condition } => Ok(input.run(row, eval)? && is_true(condition, row, eval)?),
            Node::Join(join) => join.run(row, eval),
        }
    }
}

impl Join {
    fn run(&self, row: &mut [Datum], eval: &EvalContext) -> Result<bool> {
        let left = self.left.run(row, eval)?;
        let right = self.right.run(row, eval)?;
        let meet = left && right && self.condition.as_ref().map_or(Ok(true), |on| is_true(on, row, eval))?;
        let (null_left, null_right) = self.kind.nullable();
        let missing = match () {
            () if meet => return Ok(true),
            () if left && null_right => &self.right_columns,
            () if right && null_left => &self.left_columns,
            () => return Ok(false),
        };
        for place in missing {
            row[*place] = Datum::Null;
        }
        Ok(true)
    }
}

fn is_true(condition: &Expr, row: &[Datum], eval: &EvalContext) -> Result<bool> {
    Ok(condition.eval_scalar(row, eval)? == Datum::Bool(true))
}
