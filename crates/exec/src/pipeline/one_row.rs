//! Rows that all see one row of another table, as those do that are compared with the only value of a subquery. Its values
//! are constants once they are known: storage can tell what a filter asks then, and skips by it.

use super::prune;
use super::{Pipeline, Start, Step};
use crate::batch::{Batch, Work};
use crate::error::Result;
use crate::join::Table;
use crate::program::{Condition, Def, Place, Program, fused, logical};
use basalt_expr::context::EvalContext;
use basalt_expr::eval::vector::value_at;
use basalt_expr::tree::Expr;
use basalt_types::span::Span;
use basalt_types::vector::Vector;
use basalt_types::{ColumnPredicate, DataType, Datum};
use std::sync::Arc;

impl Pipeline {
    /// The same with constants in its filters for what they ask of tables that show one row alone.
    pub(super) fn with_constants(
        self: &Arc<Pipeline>,
        tables: &[Arc<Table>],
        ctx: &Arc<EvalContext>,
    ) -> Result<Arc<Pipeline>> {
        let joins: Vec<usize> = self.steps.iter().filter_map(|step| one_row_of(step, tables)).collect();
        if joins.is_empty() {
            return Ok(self.clone());
        }
        let mut constants = Constants::new(self, tables, &joins, ctx);
        let mut pipeline = Pipeline::clone(self);
        let mut program = Program::clone(&self.program);
        let mut is_new = false;
        for step in &mut pipeline.steps {
            let conditions = match step {
                Step::Filter(conditions) => conditions,
                Step::Probe(probe) if probe.shows_one_row(&tables[probe.join]) => &mut probe.residual,
                _ => continue,
            };
            for condition in conditions.iter_mut() {
                if let Some(known) = constants.put_into(condition, &mut program) {
                    (*condition, is_new) = (known, true);
                }
            }
            *conditions = fused(std::mem::take(conditions));
        }
        pipeline.program = Arc::new(program);
        Ok(if is_new { Arc::new(pipeline) } else { self.clone() })
    }

    /// What storage can skip by of filters behind tables that show one row.
    pub(super) fn predicates_behind_one_row(&self, tables: &[Arc<Table>]) -> Vec<ColumnPredicate> {
        let Start::Table(spec) = &self.start else { return Vec::new() };
        let (mut found, mut is_behind) = (Vec::new(), false);
        for step in &self.steps {
            let conditions = match step {
                Step::Filter(conditions) => conditions,
                Step::Probe(probe) if probe.shows_one_row(&tables[probe.join]) => {
                    is_behind = true;
                    &probe.residual
                }
                _ => break,
            };
            if !conditions.iter().all(Condition::is_total) {
                break;
            }
            let of = |condition| prune::predicates(condition, &self.program, spec);
            found.extend(conditions.iter().filter(|_| is_behind).flat_map(of));
        }
        found
    }
}

/// The join of a step after which each row sees the same row of another table.
fn one_row_of(step: &Step, tables: &[Arc<Table>]) -> Option<usize> {
    match step {
        Step::Probe(probe) if probe.shows_one_row(&tables[probe.join]) => Some(probe.join),
        _ => None,
    }
}

/// A row of which nothing is known but what all rows see.
struct Constants<'p> {
    pipeline: &'p Pipeline,
    joins: &'p [usize],
    work: Work,
    row: Batch<'static>,
}

impl<'p> Constants<'p> {
    fn new(pipeline: &'p Pipeline, tables: &[Arc<Table>], joins: &'p [usize], ctx: &Arc<EvalContext>) -> Constants<'p> {
        let work = Work::new(pipeline.program.clone(), ctx.clone(), tables.to_vec());
        let mut row = Batch::of_vectors(&[], 1, &work);
        joins.iter().for_each(|join| row.set_matches(*join, vec![0]));
        Constants { pipeline, joins, work, row }
    }

    /// Whether a column is the same for all rows.
    fn is_constant(&self, place: Place) -> bool {
        match self.pipeline.program.defs.get(place) {
            Some(Def::Payload { join, .. }) => self.joins.contains(join),
            Some(Def::Given(_) | Def::Mark { .. } | Def::Element { .. }) | None => false,
            Some(def) => {
                let places = def.places();
                !places.is_empty() && places.into_iter().all(|place| self.is_constant(place))
            }
        }
    }

    /// Its value; `None` where it is not the same, or fails.
    fn vector(&mut self, place: Place) -> Option<Vector> {
        self.is_constant(place).then(|| self.row.vector(place, &mut self.work).ok()).flatten()
    }

    fn integer(&mut self, place: Place) -> Option<Option<i128>> {
        let Vector::Ints(ints) = self.vector(place)? else { return None };
        let is_null = ints.nulls.as_ref().is_some_and(|nulls| nulls.is_null(0));
        Some((!is_null).then(|| ints.values.get(0)))
    }

    /// A condition with constants where it asks for them; `None` if it does not.
    fn put_into(&mut self, condition: &Condition, program: &mut Program) -> Option<Condition> {
        match condition {
            Condition::CompareColumns(op, left, right) => {
                let (column, op, value) = match (self.integer(*left), self.integer(*right)) {
                    (None, Some(value)) => (*left, *op, value),
                    (Some(value), None) => (*right, op.mirrored(), value),
                    _ => return None,
                };
                Some(match value {
                    Some(value) => Condition::Within(column, Span::compared(op, value)),
                    // Nothing compares with null.
                    None => Condition::Any(Vec::new()),
                })
            }
            Condition::General(general) => {
                let constant: Vec<Place> =
                    general.places.iter().copied().filter(|place| self.is_constant(*place)).collect();
                if constant.is_empty() || constant.len() == general.places.len() {
                    return None;
                }
                let mut values = Vec::with_capacity(constant.len());
                for place in constant {
                    let held = self.pipeline.program.fields[place].held();
                    let array = logical(&self.vector(place)?, &held);
                    values.push((place, value_at(&held, array.as_ref(), 0), held));
                }
                let expr = general.over().clone().rewrite(&mut |node| match node {
                    Expr::Column { index, ty } => match values.iter().find(|(place, ..)| *place == index) {
                        Some((_, value, held)) => constant_of(value.clone(), held, ty),
                        None => Expr::Column { index, ty },
                    },
                    node => node,
                });
                Some(program.condition(&expr, &self.work.ctx))
            }
            Condition::All(all) => self.put_into_each(all, program).map(|all| Condition::All(fused(all))),
            Condition::Any(any) => self.put_into_each(any, program).map(Condition::Any),
            Condition::Within(..) | Condition::Null(..) | Condition::Text(_) => None,
        }
    }

    fn put_into_each(&mut self, conditions: &[Condition], program: &mut Program) -> Option<Vec<Condition>> {
        let known: Vec<Option<Condition>> =
            conditions.iter().map(|condition| self.put_into(condition, program)).collect();
        known.iter().any(Option::is_some).then(|| {
            let each = known.into_iter().zip(conditions);
            each.map(|(known, condition)| known.unwrap_or_else(|| condition.clone())).collect()
        })
    }
}

/// A value of the type that it is held in, as one of the type that is asked for.
fn constant_of(value: Datum, held: &DataType, ty: DataType) -> Expr {
    let constant = Expr::Const { value, ty: held.clone() };
    match *held == ty {
        true => constant,
        false => Expr::Cast { expr: Box::new(constant), to: ty, explicit: false },
    }
}
