//! Window functions over sorted rows: `expr` computes them, here partitions and peers are told apart.

use super::sort::{Form, KeyValues};
use crate::error::{Error, Result};
use crate::gather::joined;
use crate::program::{Field, logical};
use crate::stop::{ROWS, check, pieces};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Int64Array};
use basalt_expr::Error as ExprError;
use basalt_expr::aggregates::{GroupsAccumulator, ResolvedAggregate};
use basalt_expr::context::EvalContext;
use basalt_expr::window::{
    Bound, Edge, Exclude, FrameSpec, Frames, Offset, RangeKey, Ranking, Rows, Units, edge_value, going_on, nth_value,
    ntile, over_frames, ranking, shifted,
};
use basalt_types::DataType;
use basalt_types::batch::to_stored;
use basalt_types::vector::Vector;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What is computed of sorted columns.
#[derive(Debug)]
pub(super) struct Spec {
    /// Columns that go on; those that follow are only computed from.
    pub passed: usize,
    /// Of all sorted columns.
    pub fields: Vec<Field>,
    /// Columns that are the same in all rows of a partition, and in all peers of a row.
    pub partition: Vec<(usize, Form)>,
    pub order: Vec<(usize, Form)>,
    /// What the offsets of RANGE are measured along.
    pub along: Option<Along>,
    pub calls: Vec<Call>,
}

/// The only column that rows are ordered by.
pub(super) struct Along {
    pub column: usize,
    pub descending: bool,
    pub nulls_first: bool,
    /// Of the execution: a day is not everywhere as long.
    pub ctx: EvalContext,
}

impl fmt::Debug for Along {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "along column {}", self.column)
    }
}

#[derive(Debug)]
pub(super) struct Call {
    pub function: Function,
    pub ty: DataType,
    pub frame: Option<Frame>,
}

#[derive(Debug)]
pub(super) struct Frame {
    pub spec: FrameSpec,
    pub offsets: [Option<Offset>; 2],
}

/// Arguments are sorted columns.
#[derive(Debug)]
pub(super) enum Function {
    Ranking(Ranking),
    Ntile(usize),
    Shifted { value: usize, offset: Option<usize>, default: Option<usize>, lead: bool },
    Edge(Edge, usize),
    NthValue(usize, usize),
    Aggregate { resolved: ResolvedAggregate, args: Vec<usize>, filter: Option<usize> },
}

impl Spec {
    /// The columns that go on, then one per call.
    pub fn leaving(&self) -> Vec<Field> {
        let calls = self.calls.iter().map(|call| Field::new(call.ty.clone(), true));
        self.fields[..self.passed].iter().cloned().chain(calls).collect()
    }

    /// Where sorted rows may be cut, so that a piece and what came before it are all that its rows need.
    pub fn cuts(&self) -> Cuts {
        let calls = self.calls.iter().map(Call::cuts);
        match calls.max().unwrap_or(Cuts::Anywhere) {
            // All rows of a partition are peers.
            Cuts::Peers if self.order.is_empty() => Cuts::Partitions,
            cuts => cuts,
        }
    }

    /// The same, of whole partitions.
    pub fn apply(&self, columns: Vec<Vector>, rows: usize) -> Result<Vec<Vector>> {
        self.computed(columns, rows, None)
    }

    /// The same of rows that were cut where [`Spec::cuts`] says: `carried` is what came out of those before. Whether the
    /// first partition is the last of theirs, and the last one goes on behind these.
    pub fn apply_on(
        &self,
        columns: Vec<Vector>,
        rows: usize,
        carried: &mut Carried,
        [goes_on, is_to_go_on]: [bool; 2],
    ) -> Result<Vec<Vector>> {
        if !goes_on {
            *carried = Carried::default();
        }
        let is_cut = goes_on || is_to_go_on;
        self.computed(columns, rows, is_cut.then_some(carried))
    }

    fn computed(&self, mut columns: Vec<Vector>, rows: usize, carried: Option<&mut Carried>) -> Result<Vec<Vector>> {
        if rows == 0 {
            return Ok(Vec::new());
        }
        let keys = |keys: &[(usize, Form)]| -> Result<Vec<KeyValues>> {
            keys.iter().map(|(at, form)| KeyValues::of(columns[*at].clone(), *form)).collect()
        };
        let (partition, order) = (keys(&self.partition)?, keys(&self.order)?);
        let differs = |keys: &[KeyValues], row: usize| row > 0 && keys.iter().any(|key| !key.is_same(row - 1, row));
        let look = || check().map_err(|_| ExprError::new("57014", "canceling statement due to user request"));
        let begins = |row: usize| (differs(&partition, row), differs(&order, row));
        let sorted = Rows::new(rows, begins, &look).map_err(stopped)?;
        let column = |at: usize| in_pieces(rows, |piece| logical(&part(&columns[at], piece), &self.fields[at].held()));
        let along = match &self.along {
            Some(along) => Some((along, self.fields[along.column].held(), column(along.column)?)),
            None => None,
        };
        let range = along.as_ref().map(|(along, ty, values)| RangeKey {
            ty: ty.clone(),
            values,
            descending: along.descending,
            nulls_first: along.nulls_first,
            ctx: &along.ctx,
        });
        let mut results = Vec::with_capacity(self.calls.len());
        let mut carried = carried.map(|carried| (std::mem::take(carried), carried));
        for call in &self.calls {
            let values = match (&mut carried, &call.function) {
                (Some((before, after)), Function::Aggregate { .. }) => {
                    let state = before.states.pop_front();
                    let (values, state) = call.going_on(&sorted, &column, state)?;
                    after.states.extend(state);
                    values
                }
                (Some((before, _)), Function::Ranking(ranking)) => {
                    let base = if *ranking == Ranking::DenseRank { before.groups } else { before.rows };
                    raised(&call.values(&sorted, range.as_ref(), &column)?, sorted.first_end() as usize, base)
                }
                _ => call.values(&sorted, range.as_ref(), &column)?,
            };
            let stored = in_pieces(rows, |piece| to_stored(&call.ty, &values.slice(piece.start, piece.len())))?;
            results.push(Vector::measured(stored));
        }
        if let Some((before, after)) = carried {
            let (rows, groups, is_only) = sorted.last_partition();
            (after.rows, after.groups) = (i64::from(rows), groups as i64);
            if is_only {
                (after.rows, after.groups) = (after.rows + before.rows, after.groups + before.groups);
            }
        }
        columns.truncate(self.passed);
        columns.extend(results);
        Ok(columns)
    }
}

/// Where sorted rows may be cut: the further down, the less often.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Cuts {
    Anywhere,
    /// Where a group of peers ends.
    Peers,
    Partitions,
}

/// Of a partition whose rows come in several pieces, what has been computed so far.
#[derive(Default)]
pub(super) struct Carried {
    rows: i64,
    /// Of peers.
    groups: i64,
    /// By aggregate.
    states: VecDeque<Box<dyn GroupsAccumulator>>,
}

/// Columns of an aggregate's arguments, and of its filter.
fn taken_in(
    args: &[usize],
    filter: Option<usize>,
    column: &dyn Fn(usize) -> Result<ArrayRef>,
) -> Result<(Vec<ArrayRef>, Option<BooleanArray>)> {
    let args = args.iter().map(|arg| column(*arg)).collect::<Result<Vec<ArrayRef>>>()?;
    let filter = filter.map(column).transpose()?;
    Ok((args, filter.map(|filter| filter.as_boolean().clone())))
}

/// Ranks of which the first ones are so much higher.
fn raised(ranks: &ArrayRef, first: usize, by: i64) -> ArrayRef {
    let ranks = ranks.as_primitive::<Int64Type>().values();
    let raised = ranks.iter().enumerate().map(|(row, rank)| if row < first { rank + by } else { *rank });
    Arc::new(Int64Array::from_iter_values(raised))
}

fn stopped(error: ExprError) -> Error {
    if check().is_err() { Error::Stopped } else { Error::Expr(error) }
}

/// What is computed of each row alone, of all rows.
fn in_pieces(rows: usize, of: impl Fn(Range<usize>) -> ArrayRef) -> Result<ArrayRef> {
    if rows <= 2 * ROWS {
        return Ok(of(0..rows));
    }
    joined(&pieces(rows).map(|piece| piece.map(&of)).collect::<Result<Vec<ArrayRef>>>()?)
}

fn part(column: &Vector, rows: Range<usize>) -> Vector {
    if rows.len() == column.len() {
        return column.clone();
    }
    column.take(&(rows.start as u32..rows.end as u32).collect::<Vec<u32>>())
}

impl Call {
    fn cuts(&self) -> Cuts {
        match (&self.function, &self.frame) {
            (Function::Ranking(Ranking::RowNumber), _) => Cuts::Anywhere,
            (Function::Ranking(Ranking::Rank | Ranking::DenseRank), _) => Cuts::Peers,
            (Function::Aggregate { resolved, .. }, Some(Frame { spec, .. }))
                if spec.start == Bound::UnboundedPreceding
                    && spec.end == Bound::CurrentRow
                    && spec.exclude == Exclude::NoOthers
                    && resolved.is_bounded() =>
            {
                if spec.units == Units::Rows {
                    Cuts::Anywhere
                } else {
                    Cuts::Peers
                }
            }
            _ => Cuts::Partitions,
        }
    }

    /// Of an aggregate whose frames begin with their partition.
    fn going_on(
        &self,
        rows: &Rows<'_>,
        column: &dyn Fn(usize) -> Result<ArrayRef>,
        state: Option<Box<dyn GroupsAccumulator>>,
    ) -> Result<(ArrayRef, Option<Box<dyn GroupsAccumulator>>)> {
        let (Function::Aggregate { resolved, args, filter }, Some(frame)) = (&self.function, &self.frame) else {
            panic!("an aggregate has a frame")
        };
        let frames = Frames::new(rows, frame.spec, [None, None], None).map_err(stopped)?;
        let (args, filter) = taken_in(args, *filter, column)?;
        going_on(rows, &frames, resolved, &args, filter.as_ref(), state).map_err(stopped)
    }

    fn values(
        &self,
        rows: &Rows<'_>,
        range: Option<&RangeKey<'_>>,
        column: &dyn Fn(usize) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        let frame = |frame: &Frame| Frames::new(rows, frame.spec, frame.offsets.each_ref().map(Option::as_ref), range);
        let frames = self.frame.as_ref().map(frame).transpose().map_err(stopped)?;
        let values = match (&self.function, frames) {
            (Function::Ranking(function), _) => ranking(rows, *function),
            (Function::Ntile(buckets), _) => ntile(rows, &column(*buckets)?),
            (Function::Shifted { value, offset, default, lead }, _) => {
                let (offset, default) = (offset.map(column).transpose()?, default.map(column).transpose()?);
                shifted(rows, &column(*value)?, offset.as_ref(), default.as_ref(), *lead)
            }
            (Function::Edge(edge, value), Some(frames)) => edge_value(rows, &frames, &column(*value)?, *edge),
            (Function::NthValue(value, nth), Some(frames)) => {
                nth_value(rows, &frames, &column(*value)?, &column(*nth)?)
            }
            (Function::Aggregate { resolved, args, filter }, Some(frames)) => {
                let (args, filter) = taken_in(args, *filter, column)?;
                over_frames(rows, &frames, resolved, &args, filter.as_ref())
            }
            (_, None) => panic!("functions of a frame have one"),
        };
        values.map_err(stopped)
    }
}
