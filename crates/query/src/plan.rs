//! The bound plan: what a statement means, with every name, type and coercion settled.
//!
//! Columns are known by ids that are unique in the whole statement, never by names. An expression refers
//! to a column, an aggregate's result or a subquery as [`Expr::Hole`] with that id; a hole that no input
//! of its node defines belongs to an outer query (or to [`Query::subqueries`]). A node outputs the columns
//! that [`Plan::columns`] lists, in that order.

pub(crate) mod arrival;
mod failing;
mod faults;
mod inline;
mod kept;
mod late;
mod lift;
mod prune;
pub mod row_count;
mod timeless;

pub use failing::{can_fail, never_fails};
pub use inline::is_volatile;
pub use kept::Kept;

use crate::bind::IndexTerms;
use crate::column::KeptPlan;
use crate::pgcatalog::VirtualTable;
use crate::row::RowPlan;
use arrow_array::RecordBatch;
use basalt_engine::RowLock;
use basalt_expr::aggregates::ResolvedAggregate;
use basalt_expr::tree::Expr;
use basalt_expr::window::{Edge, FrameSpec, Ranking};
use basalt_types::{ColumnId, DataType, ObjectId, TableDef};
use datafusion::execution::memory_pool::MemoryReservation;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names one column (or subquery) of a statement.
pub type ColId = usize;

/// Names one WITH query of a statement.
pub type CteId = usize;

/// A whole query.
#[derive(Clone, Debug)]
pub struct Query {
    pub plan: Plan,
    /// What the client gets, in order.
    pub columns: Vec<OutputColumn>,
    /// Subqueries inside expressions, by the hole that stands for them.
    pub subqueries: BTreeMap<ColId, Subquery>,
    /// WITH queries that are computed once, by the number that [`Plan::Shared`] names.
    pub ctes: BTreeMap<CteId, Cte>,
    /// Tables that are read, for locks and revalidation.
    pub tables: Vec<ObjectId>,
    /// What tables are called by the text, where that is not their name, by each of their columns: for EXPLAIN.
    pub aliases: BTreeMap<ColId, Arc<str>>,
    /// Tables among them whose rows a [`Plan::LockRows`] locks, in the order of the text.
    pub row_locks: Vec<(ObjectId, RowLock)>,
    /// What the row engine runs, if it can.
    pub(crate) row: Kept<Option<RowPlan>>,
    /// What the column engine runs.
    pub(crate) columnar: KeptPlan,
}

/// A result column as a client is told of it.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputColumn {
    pub id: ColId,
    pub name: String,
    pub ty: DataType,
    /// -1 for computed values, whatever physical precision `ty` carries.
    pub typmod: i32,
    /// Where a plain column comes from; 0 otherwise.
    pub table_oid: u32,
    pub column_no: i16,
}

impl OutputColumn {
    /// A column without a name that comes from no table.
    pub fn computed(id: ColId, ty: DataType) -> OutputColumn {
        OutputColumn { id, name: String::new(), ty, typmod: -1, table_oid: 0, column_no: 0 }
    }
}

/// A WITH query: its rows are computed at most once, as far as they are asked for.
#[derive(Clone, Debug)]
pub struct Cte {
    pub name: String,
    pub plan: Plan,
    /// What references read, in order.
    pub columns: Vec<(ColId, DataType)>,
    /// How often it is referred to.
    pub references: usize,
    /// `MATERIALIZED`: never part of the query that refers to it.
    pub materialized: bool,
}

#[derive(Clone, Debug)]
pub struct Subquery {
    pub kind: SubqueryKind,
    pub plan: Plan,
}

#[derive(Clone, Debug)]
pub enum SubqueryKind {
    /// The value of the only column of at most one row (21000 if there are more).
    Scalar {
        column: ColId,
        ty: DataType,
    },
    Exists,
    /// `… op ANY (…)`, `IN`: the condition compares the outer operands with the subquery's columns.
    Any {
        columns: Vec<ColId>,
        condition: Expr,
    },
    /// `op ALL`: true if the condition holds for all rows.
    All {
        columns: Vec<ColId>,
        condition: Expr,
    },
}

#[derive(Clone, Debug)]
pub enum Plan {
    /// One row without columns.
    Unit,
    Scan {
        table: Arc<TableDef>,
        columns: Vec<(ColId, ColumnId)>,
        /// Tablet, key and stamp of each row.
        identity: Option<[ColId; 3]>,
        /// Of the table's indexes those with expressions or a condition.
        terms: Arc<[IndexTerms]>,
    },
    VirtualScan {
        table: &'static VirtualTable,
        columns: Vec<(ColId, usize)>,
    },
    Values {
        columns: Vec<(ColId, DataType)>,
        rows: Vec<Vec<Expr>>,
    },
    /// An expression that is its own id passes a column through.
    Project {
        input: Box<Plan>,
        exprs: Vec<(ColId, Expr)>,
    },
    /// The input's columns and one per set-returning call: one row per element, the shorter sets filled
    /// with nulls. A row whose sets are empty goes, unless `keep_empty`.
    ProjectSet {
        input: Box<Plan>,
        sets: Vec<(ColId, Expr)>,
        ordinality: Option<ColId>,
        keep_empty: bool,
    },
    Filter {
        input: Box<Plan>,
        condition: Expr,
    },
    /// TABLESAMPLE: a share of a scan's rows, chosen by the seed and the row's place.
    Sample {
        /// A [`Plan::Scan`] with this identity.
        input: Box<Plan>,
        identity: [ColId; 3],
        percent: Expr,
        seed: Option<Expr>,
    },
    Join {
        left: Box<Plan>,
        right: Box<Plan>,
        kind: JoinKind,
        condition: Option<Expr>,
        lateral: bool,
    },
    Aggregate {
        input: Box<Plan>,
        groups: Vec<(ColId, Expr)>,
        aggregates: Vec<(ColId, AggregateCall)>,
        /// Groups several times, each time by some of `groups`; the others are null then.
        sets: Option<GroupingSets>,
    },
    Window {
        input: Box<Plan>,
        calls: Vec<(ColId, WindowCall)>,
    },
    Sort {
        input: Box<Plan>,
        keys: Vec<SortKey>,
    },
    Limit {
        input: Box<Plan>,
        limit: Option<Expr>,
        offset: Option<Expr>,
        /// Rows that equal the last one by the input's order go along.
        ties: bool,
    },
    /// With `on`, the first row of each group in the input's order.
    Distinct {
        input: Box<Plan>,
        on: Option<Vec<Expr>>,
    },
    SetOp {
        op: SetOp,
        all: bool,
        left: Box<Plan>,
        right: Box<Plan>,
        columns: Vec<SetColumn>,
    },
    /// FOR UPDATE and its kin. The session runs these before the rest, and puts [`Plan::Rows`] in their place.
    LockRows(Box<LockRows>),
    /// Rows that the statement comes by before this is run; the session puts [`Plan::Rows`] in its place. A slot is
    /// that of a command in WITH, or [`Plan::WRITTEN`].
    Given {
        slot: usize,
        columns: Vec<(ColId, DataType)>,
    },
    /// Rows at hand, in order.
    Rows {
        columns: Vec<(ColId, DataType)>,
        rows: HeldRows,
    },
    /// The rows of a WITH query, all its columns in order under ids of this reference.
    Shared {
        cte: CteId,
        columns: Vec<(ColId, DataType)>,
    },
    /// WITH RECURSIVE: the rows of `base`, then those of `step` over the rows that came last, until there are
    /// none. With `distinct` no row comes twice.
    Recursive {
        cte: CteId,
        base: Box<Plan>,
        step: Box<Plan>,
        distinct: bool,
        columns: Vec<SetColumn>,
    },
    /// Inside a step: the rows that came last.
    Working {
        cte: CteId,
        columns: Vec<(ColId, DataType)>,
    },
}

/// Rows at hand, and the part of the queries' memory that they take.
#[derive(Clone, Debug)]
pub struct HeldRows {
    pub batches: Vec<RecordBatch>,
    /// Given back with the last copy.
    pub memory: Option<Arc<MemoryReservation>>,
}

/// A query some of whose rows are locked as they leave it.
#[derive(Clone, Debug)]
pub struct LockRows {
    /// The whole SELECT, sorted, without its LIMIT; gives all columns named below.
    pub input: Plan,
    pub columns: Vec<(ColId, DataType)>,
    pub targets: Vec<LockTarget>,
    /// Columns of the other relations that a re-check needs, those of `presence` among them.
    pub kept: Vec<(ColId, DataType)>,
    /// Columns that are true where a relation on the nullable side of a join has a row: each is defined by the
    /// projection right above its relation.
    pub presence: Vec<ColId>,
    /// Count locked rows.
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    /// What finds the rows at first, and how many of them.
    pub first: Kept<(Option<u64>, Arc<Query>)>,
}

impl LockRows {
    /// What finds the rows gives: outputs, then the identity of each row to be locked, then the kept columns.
    pub fn found_columns(&self) -> impl Iterator<Item = (ColId, DataType)> {
        let types = [DataType::Int8, DataType::Bytea, DataType::Int8];
        let identities = self.targets.iter().flat_map(move |target| target.identity.into_iter().zip(types.clone()));
        self.columns.iter().cloned().chain(identities).chain(self.kept.iter().cloned())
    }

    /// The column of `presence` that a projection defines, and does not merely pass on.
    pub fn presence_of(&self, plan: &Plan) -> Option<ColId> {
        let Plan::Project { exprs, .. } = plan else { return None };
        let mut defined = exprs.iter().filter(|(_, expr)| !matches!(expr, Expr::Hole { .. })).map(|(id, _)| *id);
        defined.find(|id| self.presence.contains(id))
    }
}

/// A scan whose rows are locked.
#[derive(Clone, Debug)]
pub struct LockTarget {
    pub table: Arc<TableDef>,
    pub columns: Vec<(ColId, ColumnId)>,
    /// Of the scan: tablet, key and stamp.
    pub identity: [ColId; 3],
    pub strength: RowLock,
    pub on_locked: OnLocked,
}

/// What a locking clause does about rows that others have locked; the later wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OnLocked {
    Wait,
    /// `SKIP LOCKED`.
    Skip,
    /// `NOWAIT`.
    Fail,
}

impl Plan {
    /// The slot of rows that were just written, for RETURNING and ON CONFLICT.
    pub const WRITTEN: usize = usize::MAX;

    /// Puts rows in the place of every [`Plan::Given`] whose slot has some.
    pub fn give<'r>(&mut self, find: &impl Fn(usize) -> Option<&'r HeldRows>) {
        if let Plan::Given { slot, columns } = self
            && let Some(rows) = find(*slot)
        {
            *self = Plan::Rows { columns: std::mem::take(columns), rows: rows.clone() };
        }
        self.inputs_mut().into_iter().for_each(|input| input.give(find));
    }

    /// Whether it has one row, whatever it reads.
    pub fn is_one_row(&self) -> bool {
        match self {
            Plan::Aggregate { groups, sets: None, .. } => groups.is_empty(),
            Plan::Project { input, .. } => input.is_one_row(),
            _ => false,
        }
    }

    pub fn inputs(&self) -> Vec<&Plan> {
        match self {
            Plan::Unit
            | Plan::Scan { .. }
            | Plan::VirtualScan { .. }
            | Plan::Values { .. }
            | Plan::Given { .. }
            | Plan::Rows { .. }
            | Plan::Shared { .. }
            | Plan::Working { .. } => Vec::new(),
            Plan::Recursive { base, step, .. } => vec![base, step],
            Plan::LockRows(rows) => vec![&rows.input],
            Plan::Project { input, .. }
            | Plan::ProjectSet { input, .. }
            | Plan::Filter { input, .. }
            | Plan::Sample { input, .. }
            | Plan::Aggregate { input, .. }
            | Plan::Window { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Limit { input, .. }
            | Plan::Distinct { input, .. } => vec![input],
            Plan::Join { left, right, .. } | Plan::SetOp { left, right, .. } => vec![left, right],
        }
    }

    pub fn inputs_mut(&mut self) -> Vec<&mut Plan> {
        match self {
            Plan::Unit
            | Plan::Scan { .. }
            | Plan::VirtualScan { .. }
            | Plan::Values { .. }
            | Plan::Given { .. }
            | Plan::Rows { .. }
            | Plan::Shared { .. }
            | Plan::Working { .. } => Vec::new(),
            Plan::Recursive { base, step, .. } => vec![base, step],
            Plan::LockRows(rows) => vec![&mut rows.input],
            Plan::Project { input, .. }
            | Plan::ProjectSet { input, .. }
            | Plan::Filter { input, .. }
            | Plan::Sample { input, .. }
            | Plan::Aggregate { input, .. }
            | Plan::Window { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Limit { input, .. }
            | Plan::Distinct { input, .. } => vec![input],
            Plan::Join { left, right, .. } | Plan::SetOp { left, right, .. } => vec![left, right],
        }
    }

    /// The expressions of this node.
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Plan::Unit
            | Plan::Scan { .. }
            | Plan::VirtualScan { .. }
            | Plan::SetOp { .. }
            | Plan::Given { .. }
            | Plan::Rows { .. }
            | Plan::Shared { .. }
            | Plan::Recursive { .. }
            | Plan::Working { .. } => Vec::new(),
            Plan::LockRows(rows) => rows.limit.iter_mut().chain(&mut rows.offset).collect(),
            Plan::Values { rows, .. } => rows.iter_mut().flatten().collect(),
            Plan::Project { exprs, .. } | Plan::ProjectSet { sets: exprs, .. } => {
                exprs.iter_mut().map(|(_, expr)| expr).collect()
            }
            Plan::Filter { condition, .. } => vec![condition],
            Plan::Sample { percent, seed, .. } => std::iter::once(percent).chain(seed).collect(),
            Plan::Join { condition, .. } => condition.iter_mut().collect(),
            Plan::Aggregate { groups, aggregates, .. } => {
                let groups = groups.iter_mut().map(|(_, expr)| expr);
                groups.chain(aggregates.iter_mut().flat_map(|(_, call)| call.exprs_mut())).collect()
            }
            Plan::Window { calls, .. } => calls.iter_mut().flat_map(|(_, call)| call.exprs_mut()).collect(),
            Plan::Sort { keys, .. } => keys.iter_mut().map(|key| &mut key.expr).collect(),
            Plan::Limit { limit, offset, .. } => limit.iter_mut().chain(offset).collect(),
            Plan::Distinct { on, .. } => on.iter_mut().flatten().collect(),
        }
    }

    /// Rebuilds every expression of this node and of those below.
    pub fn rewrite_exprs(&mut self, change: &mut impl FnMut(Expr) -> Expr) {
        for expr in self.exprs_mut() {
            let taken = std::mem::replace(expr, Expr::bool(false));
            *expr = taken.rewrite(change);
        }
        for input in self.inputs_mut() {
            input.rewrite_exprs(change);
        }
    }

    /// Ids and types of the output, in order.
    pub fn columns(&self) -> Vec<(ColId, DataType)> {
        let typed = |exprs: &[(ColId, Expr)]| exprs.iter().map(|(id, expr)| (*id, expr.ty())).collect::<Vec<_>>();
        match self {
            Plan::Unit => Vec::new(),
            Plan::Scan { table, columns, identity, .. } => {
                let stored = columns.iter().map(|(id, column)| (*id, table.column(*column).ty.clone()));
                let identity = identity.iter().flat_map(|[tablet, key, stamp]| {
                    [(*tablet, DataType::Int8), (*key, DataType::Bytea), (*stamp, DataType::Int8)]
                });
                stored.chain(identity).collect()
            }
            Plan::VirtualScan { table, columns } => {
                columns.iter().map(|(id, index)| (*id, table.columns[*index].1())).collect()
            }
            Plan::Values { columns, .. }
            | Plan::Given { columns, .. }
            | Plan::Rows { columns, .. }
            | Plan::Shared { columns, .. }
            | Plan::Working { columns, .. } => columns.clone(),
            Plan::LockRows(rows) => rows.columns.clone(),
            Plan::Project { exprs, .. } => typed(exprs),
            Plan::ProjectSet { input, sets, ordinality, .. } => {
                let mut out = input.columns();
                out.extend(typed(sets));
                out.extend(ordinality.map(|id| (id, DataType::Int8)));
                out
            }
            Plan::Filter { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Limit { input, .. }
            | Plan::Distinct { input, .. } => input.columns(),
            Plan::Sample { input, identity, .. } => {
                input.columns().into_iter().filter(|(id, _)| !identity.contains(id)).collect()
            }
            Plan::Join { left, right, .. } => {
                let mut out = left.columns();
                out.extend(right.columns());
                out
            }
            Plan::Aggregate { groups, aggregates, sets, .. } => {
                let mut out = typed(groups);
                out.extend(aggregates.iter().map(|(id, call)| (*id, call.resolved.ty.clone())));
                let groupings = sets.iter().flat_map(|sets| &sets.groupings);
                out.extend(groupings.map(|(id, _)| (*id, DataType::Int4)));
                out
            }
            Plan::Window { input, calls } => {
                let mut out = input.columns();
                out.extend(calls.iter().map(|(id, call)| (*id, call.ty.clone())));
                out
            }
            Plan::SetOp { columns, .. } | Plan::Recursive { columns, .. } => {
                columns.iter().map(|column| (column.id, column.ty.clone())).collect()
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

/// A column of a set operation: both inputs are already of its type.
#[derive(Clone, Debug)]
pub struct SetColumn {
    pub id: ColId,
    pub left: ColId,
    pub right: ColId,
    pub ty: DataType,
}

#[derive(Clone, PartialEq, Debug)]
pub struct SortKey {
    pub expr: Expr,
    pub descending: bool,
    pub nulls_first: bool,
}

impl SortKey {
    /// Nothing is computed for it.
    pub fn is_column(&self) -> bool {
        matches!(self.expr, Expr::Hole { .. })
    }
}

/// Groups by position.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupingSets {
    pub sets: Vec<Vec<usize>>,
    /// `GROUPING(…)`: one bit per argument, the last one lowest, set where the row's grouping set lacks it.
    pub groupings: Vec<(ColId, Vec<usize>)>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct AggregateCall {
    pub resolved: ResolvedAggregate,
    /// Already cast to the resolved argument types.
    pub args: Vec<Expr>,
    pub distinct: bool,
    pub filter: Option<Expr>,
    pub order_by: Vec<SortKey>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum WindowFunction {
    Ranking(Ranking),
    Ntile(Expr),
    Lag {
        value: Expr,
        offset: Option<Expr>,
        default: Option<Expr>,
        lead: bool,
    },
    /// `first_value` and `last_value`.
    Edge(Edge, Expr),
    NthValue(Expr, Expr),
    Aggregate(AggregateCall),
}

#[derive(Clone, PartialEq, Debug)]
pub struct WindowCall {
    pub function: WindowFunction,
    pub ty: DataType,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<SortKey>,
    /// How rows come that `order_by` does not tell apart; they are peers all the same.
    pub arrival: Vec<SortKey>,
    pub frame: FrameSpec,
    /// Of the frame's start and end: one value per execution.
    pub offsets: [Option<Expr>; 2],
}

impl WindowCall {
    /// Every expression inside.
    pub fn exprs(&self) -> Vec<&Expr> {
        let mut out: Vec<&Expr> = Vec::new();
        match &self.function {
            WindowFunction::Ranking(_) => {}
            WindowFunction::Ntile(expr) | WindowFunction::Edge(_, expr) => out.push(expr),
            WindowFunction::NthValue(value, nth) => out.extend([value, nth]),
            WindowFunction::Lag { value, offset, default, .. } => {
                out.push(value);
                out.extend(offset);
                out.extend(default);
            }
            WindowFunction::Aggregate(call) => {
                out.extend(call.exprs());
            }
        }
        out.extend(&self.partition_by);
        out.extend(self.order_by.iter().chain(&self.arrival).map(|key| &key.expr));
        out.extend(self.offsets.iter().flatten());
        out
    }

    /// Every expression inside, for rewriting.
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        let mut out: Vec<&mut Expr> = Vec::new();
        match &mut self.function {
            WindowFunction::Ranking(_) => {}
            WindowFunction::Ntile(expr) | WindowFunction::Edge(_, expr) => out.push(expr),
            WindowFunction::NthValue(value, nth) => out.extend([value, nth]),
            WindowFunction::Lag { value, offset, default, .. } => {
                out.push(value);
                out.extend(offset);
                out.extend(default);
            }
            WindowFunction::Aggregate(call) => out.extend(call.exprs_mut()),
        }
        out.extend(&mut self.partition_by);
        out.extend(self.order_by.iter_mut().chain(&mut self.arrival).map(|key| &mut key.expr));
        out.extend(self.offsets.iter_mut().flatten());
        out
    }
}

impl AggregateCall {
    /// Every expression inside.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.args.iter().chain(&self.filter).chain(self.order_by.iter().map(|key| &key.expr))
    }

    /// Every expression inside, for rewriting.
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        let keys = self.order_by.iter_mut().map(|key| &mut key.expr);
        self.args.iter_mut().chain(&mut self.filter).chain(keys).collect()
    }
}
