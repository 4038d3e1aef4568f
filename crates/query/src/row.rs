//! The row engine: statements that reach few rows, each through a key or an index (DESIGN.md 7, engine 1).
//!
//! A plan is compiled once for a bound statement and kept with it ([`RowPlan::of`]). It runs on the thread of its
//! connection without waiting, and its rows go cell by cell into the connection's send buffer ([`RowSink`]): no
//! batches, no tasks, nothing allocated for a row that is only passed on. It means what the other engines mean: the
//! same expressions of `expr`, the same errors.
//!
//! How many rows a statement reaches is known only when it has reached them. So every statement whose conditions name a
//! key, or the beginning of one, has a row plan; one that turns out to take too much gives up, and the column
//! engine answers ([`RowPlan::is_promising`]).

mod access;
mod compile;
mod covered;
mod explained;
mod gather;
mod get;
mod implied;
mod nested;
mod shape;
mod sink;
mod totals;

pub(crate) use explained::point_get;
pub use sink::RowSink;

use crate::error::Result;
use crate::statement::rows::RowsBuilder;
use crate::system::SystemContext;
use basalt_engine::{Engine, Reading};
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum, ObjectId};
use get::Get;
use nested::{Nested, Top};
use shape::{Output, cell, ended};
use std::sync::atomic::{AtomicU32, Ordering};

/// Executions that do not try again after one that took too much: none after the first, twice as many each time.
const RUNS_SKIPPED_MAX: u32 = 63;

/// Whether the planner may use the row engine at all. Plans are kept for one set of settings, so that none outlives a
/// change of it.
pub(crate) fn is_enabled(eval: &EvalContext) -> bool {
    SystemContext::of(eval).is_none_or(|system| system.settings.effective().row_engine)
}

/// A compiled statement.
#[derive(Debug)]
pub(crate) struct RowPlan {
    /// The tables it reads.
    pub tables: Vec<ObjectId>,
    /// Nothing in it depends on the moment: it needs no transaction of its own.
    pub timeless: bool,
    /// It reads through indexes other than primary keys.
    pub indexed: bool,
    body: Body,
    /// Executions left that will not try, and how many it were last.
    skips: AtomicU32,
    skipped: AtomicU32,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tried<T = u64> {
    /// With its rows, or their number.
    Done(T),
    /// There is too much to look at, it takes too long, or another engine knows better whether it fails.
    TooMuch,
    /// Its time was over, though it had looked at little: it went into reading blocks that were not in memory and now
    /// are, or to somebody else.
    Cold,
}

#[derive(PartialEq, Debug)]
enum Body {
    Get(Get),
    Nested(Box<Nested>),
}

/// What a run may use again.
#[derive(Default)]
pub(crate) struct Scratch {
    key: Vec<u8>,
}

/// How a run reads, and what it computes with.
pub(crate) struct RowRun<'a> {
    pub engine: &'a Engine,
    /// Its snapshot is kept pinned by the caller.
    pub reading: Reading<'a>,
    pub eval: &'a EvalContext,
    pub scratch: &'a mut Scratch,
}

/// Where rows go.
pub(crate) enum RowOut<'a> {
    Cells(Cells<'a>),
    Batches(&'a mut RowsBuilder),
}

pub(crate) struct Cells<'a> {
    pub sink: &'a mut dyn RowSink,
    /// One per output: 0 text, 1 binary.
    pub formats: &'a [i16],
}

impl RowOut<'_> {
    /// One row of values of these types.
    pub fn push(&mut self, types: &[DataType], values: &[Datum], eval: &EvalContext) -> Result<()> {
        match self {
            RowOut::Batches(builder) => builder.push(values),
            RowOut::Cells(Cells { sink, formats }) => {
                sink.begin_row(values.len());
                let mut cells = types.iter().zip(values).zip(*formats);
                let written = cells.try_for_each(|((ty, value), format)| cell(ty, value, *format, eval, &mut **sink));
                ended(written, &mut **sink)
            }
        }
    }
}

/// What an expression of a plan is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A part of a key, or a number of rows.
    Value,
    Condition,
    Output,
}

impl RowPlan {
    fn new(tables: Vec<ObjectId>, body: Body) -> RowPlan {
        let indexed = match &body {
            Body::Get(_) => false,
            Body::Nested(nested) => nested.steps.iter().any(|step| step.access.index.is_some()),
        };
        RowPlan { tables, timeless: false, indexed, body, skips: AtomicU32::new(0), skipped: AtomicU32::new(0) }
    }

    /// Gives the rows to `out`; what was given is nothing unless it is done. After an error nothing of the row at hand is
    /// left in `out`.
    pub fn run(&self, run: RowRun<'_>, out: &mut RowOut<'_>) -> Result<Tried> {
        // A null, true or false that is known when a statement is planned spares its neighbours: who plans with the
        // parameters knows better.
        let spares = run.eval.params.iter().any(Datum::is_null);
        self.run_as_compiled(run, out).or_else(|error| match spares || error.is_of_data() {
            true => Ok(Tried::TooMuch),
            false => Err(error),
        })
    }

    fn run_as_compiled(&self, run: RowRun<'_>, out: &mut RowOut<'_>) -> Result<Tried> {
        match &self.body {
            Body::Get(get) => get.run(run, out).map(Tried::Done),
            Body::Nested(nested) => {
                let tried = nested.run(run, out)?;
                self.learn(tried);
                Ok(tried)
            }
        }
    }

    /// Notes how a run ended, for those to come.
    fn learn(&self, tried: Tried) {
        let skipped = self.skipped.load(Ordering::Relaxed);
        match tried {
            Tried::Done(_) if skipped == 0 => {}
            Tried::Done(_) => self.skipped.store(skipped / 2, Ordering::Relaxed),
            Tried::TooMuch => {
                self.skips.store(skipped, Ordering::Relaxed);
                self.skipped.store((2 * skipped + 1).min(RUNS_SKIPPED_MAX), Ordering::Relaxed);
            }
            Tried::Cold => {}
        }
    }

    /// It was tried again and again, and is still [`Tried::Cold`].
    pub fn stays_cold(&self) {
        self.learn(Tried::TooMuch);
    }

    /// Whether it is worth trying: runs of late did not take too much.
    pub fn is_promising(&self) -> bool {
        let skips = self.skips.load(Ordering::Relaxed);
        if skips > 0 {
            self.skips.store(skips - 1, Ordering::Relaxed);
        }
        skips == 0
    }

    /// Whether both do the same, expression by expression.
    pub fn is_same(&self, other: &RowPlan) -> bool {
        self.tables == other.tables && self.body == other.body
    }

    pub fn exprs(&self) -> Vec<&Expr> {
        self.parts().into_iter().map(|(_, expr)| expr).collect()
    }

    pub fn parts(&self) -> Vec<(Role, &Expr)> {
        let mut out = Vec::new();
        let shape = match &self.body {
            Body::Get(get) => {
                out.extend(get.key.iter().map(|part| (Role::Value, &part.value)));
                Some(&get.shape)
            }
            Body::Nested(nested) => {
                for step in &nested.steps {
                    out.extend(step.access.exprs().into_iter().map(|expr| (Role::Value, expr)));
                    let conditions = step.matches.iter().chain(&step.passes);
                    out.extend(conditions.map(|expr| (Role::Condition, expr)));
                }
                out.extend(nested.limit.iter().chain(&nested.offset).map(|expr| (Role::Value, expr)));
                match &nested.top {
                    Top::Direct(shape) => Some(shape),
                    Top::Rows { outputs, keys, .. } => {
                        out.extend(outputs.iter().chain(keys).map(|expr| (Role::Output, expr)));
                        None
                    }
                    Top::Totals(totals) => {
                        out.extend(totals.exprs().map(|expr| (Role::Output, expr)));
                        None
                    }
                }
            }
        };
        if let Some(shape) = shape {
            out.extend(shape.filter.iter().map(|expr| (Role::Condition, expr)));
            out.extend(shape.outputs.iter().filter_map(Output::computed).map(|expr| (Role::Output, expr)));
        }
        out
    }

    /// The same plan with other expressions.
    pub fn rewrite(&mut self, change: &mut impl FnMut(Expr) -> Expr) {
        let shape = match &mut self.body {
            Body::Get(get) => {
                get.key.iter_mut().for_each(|part| replace(&mut part.value, change));
                Some(&mut get.shape)
            }
            Body::Nested(nested) => {
                for step in &mut nested.steps {
                    step.access.exprs_mut().into_iter().for_each(|expr| replace(expr, change));
                    step.matches.iter_mut().chain(&mut step.passes).for_each(|expr| replace(expr, change));
                }
                nested.limit.iter_mut().chain(&mut nested.offset).for_each(|expr| replace(expr, change));
                match &mut nested.top {
                    Top::Direct(shape) => Some(shape),
                    Top::Rows { outputs, keys, .. } => {
                        outputs.iter_mut().chain(keys).for_each(|expr| replace(expr, change));
                        None
                    }
                    Top::Totals(totals) => {
                        totals.exprs_mut().for_each(|expr| replace(expr, change));
                        None
                    }
                }
            }
        };
        if let Some(shape) = shape {
            shape.filter.iter_mut().for_each(|expr| replace(expr, change));
            shape.outputs_mut().for_each(|expr| replace(expr, change));
        }
    }
}

fn replace(expr: &mut Expr, change: &mut impl FnMut(Expr) -> Expr) {
    let taken = std::mem::replace(expr, Expr::bool(false));
    *expr = change(taken);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> RowPlan {
        let top = Top::Rows {
            outputs: Vec::new(),
            types: Vec::new(),
            keys: Vec::new(),
            key_types: Vec::new(),
            orders: Vec::new(),
        };
        let nested =
            Nested { steps: Vec::new(), top, registers: 0, limit: None, offset: None, checks_constants: false };
        RowPlan::new(Vec::new(), Body::Nested(Box::new(nested)))
    }

    #[test]
    fn one_that_takes_too_much_is_tried_less_often_and_one_that_reads_from_disk_is_not() {
        let plan = plan();
        for skipped in [0, 1, 3, 7] {
            plan.learn(Tried::Cold);
            assert!(plan.is_promising());
            plan.learn(Tried::TooMuch);
            (0..skipped).for_each(|_| assert!(!plan.is_promising()));
            assert!(plan.is_promising());
        }
        plan.stays_cold();
        assert!(!plan.is_promising());
    }
}
