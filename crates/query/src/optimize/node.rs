//! The optimizer's tree: relational algebra whose joins carry equality keys, without subqueries and lateral joins.
//!
//! Columns keep the ids that they have in the bound plan; new ones continue after its greatest. Expressions refer to
//! the columns of their node's inputs as [`Expr::Hole`]. No id is defined twice, except that a node may pass a column
//! on under its own id.

use crate::plan::{AggregateCall, ColId, CteId, SetColumn, SortKey, WindowCall};
use basalt_expr::functions::Function;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, DataType, TableDef};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Node {
    pub op: Op,
    /// How many rows are expected; 0 before [`super::place`] has been here.
    pub rows: f64,
}

#[derive(Clone, Debug)]
pub enum Op {
    Scan {
        table: Arc<TableDef>,
        columns: Vec<(ColId, ColumnId)>,
        /// Conjuncts over these columns.
        filter: Vec<Expr>,
    },
    /// Rows of constants. One row without columns stands where a query has no FROM.
    Values {
        columns: Vec<(ColId, DataType)>,
        rows: Vec<Vec<Expr>>,
    },
    /// A WITH query that is computed once, however many such nodes name it.
    Shared {
        cte: CteId,
        plan: Arc<Node>,
        columns: Vec<SharedColumn>,
    },
    /// WITH RECURSIVE: the rows of `base`, then those of `step` over the rows that came last. Both are ready to run, and
    /// depend on no outer rows.
    Recursive {
        cte: CteId,
        base: Box<Node>,
        step: Box<Node>,
        distinct: bool,
        columns: Vec<SetColumn>,
    },
    /// Inside of a step: the rows that came last.
    Working {
        cte: CteId,
        columns: Vec<(ColId, DataType)>,
    },
    Filter {
        input: Box<Node>,
        conjuncts: Vec<Expr>,
    },
    /// An expression that is its own id passes a column on.
    Project {
        input: Box<Node>,
        exprs: Vec<(ColId, Expr)>,
    },
    Join {
        left: Box<Node>,
        right: Box<Node>,
        kind: JoinKind,
        keys: Vec<Key>,
        /// What else has to be true of two rows that match.
        residual: Vec<Expr>,
        build: Side,
    },
    /// Without aggregates it is DISTINCT. Without groups it has one row, whatever its input.
    Aggregate {
        input: Box<Node>,
        groups: Vec<(ColId, Expr)>,
        /// Of the groups those, by position, that the others decide: they need not be compared.
        dependent: Vec<usize>,
        aggregates: Vec<(ColId, AggregateCall)>,
    },
    /// The input's columns and one per call.
    Window {
        input: Box<Node>,
        calls: Vec<(ColId, WindowCall)>,
    },
    /// The input's columns, one per set-returning call and the ordinality: a row for each value of the longest set. A row
    /// whose sets are empty goes, unless `keep_empty`.
    ProjectSet {
        input: Box<Node>,
        sets: Vec<(ColId, Expr)>,
        ordinality: Option<ColId>,
        keep_empty: bool,
    },
    Sort {
        input: Box<Node>,
        keys: Vec<SortKey>,
    },
    Limit {
        input: Box<Node>,
        limit: Option<Expr>,
        offset: Option<Expr>,
    },
    /// The rows of both, the left ones first.
    UnionAll {
        left: Box<Node>,
        right: Box<Node>,
        columns: Vec<SetColumn>,
    },
}

/// A column of a WITH query, under an id of one reference.
#[derive(Clone, Debug)]
pub struct SharedColumn {
    pub id: ColId,
    /// What it is in the shared plan.
    pub source: ColId,
    pub ty: DataType,
}

/// Rows match where all keys and the residual are true. Unless said otherwise a join gives the columns of both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinKind {
    Inner,
    /// Every left row, with nulls beside it if none matches.
    Left,
    Full,
    /// Left rows that have a match. Left columns.
    Semi,
    /// Left rows without a match. Left columns.
    Anti,
    /// `NOT IN`: left rows for which the first key is false with every right row that the other keys and the residual
    /// are true of. So a left null goes unless there is no such row, and a null among them takes all. Left columns.
    NullAwareAnti,
    /// Every left row with the boolean `id`: whether there is a match. If `null_aware`, it is null where there is none,
    /// but the first key is null with a row that the other keys and the residual are true of. Left columns and `id`.
    Mark {
        id: ColId,
        null_aware: bool,
    },
    /// As Left; 21000 if a left row has two matches.
    Single,
}

impl JoinKind {
    /// Whether the right side's columns leave the join.
    pub fn gives_right(self) -> bool {
        matches!(self, JoinKind::Inner | JoinKind::Left | JoinKind::Full | JoinKind::Single)
    }
}

/// The side that is better held in memory, as far as the kind of join lets one choose. Of an inner join always the
/// right one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Left,
    Right,
}

/// `left = right`, over the left and the right side's columns; both of the same type.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    pub left: Expr,
    pub right: Expr,
    pub equal: &'static Function,
    /// `IS NOT DISTINCT FROM`: a null matches a null.
    pub null_safe: bool,
}

impl Key {
    /// For a join whose sides are the other way round.
    pub fn swapped(self) -> Key {
        Key { left: self.right, right: self.left, ..self }
    }
}

impl Node {
    pub fn new(op: Op) -> Node {
        Node { op, rows: 0.0 }
    }

    /// One row without columns.
    pub fn unit() -> Node {
        Node::new(Op::Values { columns: Vec::new(), rows: vec![Vec::new()] })
    }

    /// The input where all conjuncts hold.
    pub fn filter(self, conjuncts: Vec<Expr>) -> Node {
        match conjuncts.is_empty() {
            true => self,
            false => Node::new(Op::Filter { input: Box::new(self), conjuncts }),
        }
    }

    pub fn project(self, exprs: Vec<(ColId, Expr)>) -> Node {
        Node::new(Op::Project { input: Box::new(self), exprs })
    }

    /// A join whose whole condition is still residual.
    pub fn join(self, right: Node, kind: JoinKind, condition: Vec<Expr>) -> Node {
        let (left, right) = (Box::new(self), Box::new(right));
        Node::new(Op::Join { left, right, kind, keys: Vec::new(), residual: condition, build: Side::Right })
    }

    pub fn aggregate(self, groups: Vec<(ColId, Expr)>, aggregates: Vec<(ColId, AggregateCall)>) -> Node {
        Node::new(Op::Aggregate { input: Box::new(self), groups, dependent: Vec::new(), aggregates })
    }

    /// Ids and types of the output.
    pub fn columns(&self) -> Vec<(ColId, DataType)> {
        let typed = |exprs: &[(ColId, Expr)]| exprs.iter().map(|(id, expr)| (*id, expr.ty())).collect::<Vec<_>>();
        match &self.op {
            Op::Scan { table, columns, .. } => {
                columns.iter().map(|(id, column)| (*id, table.column(*column).ty.clone())).collect()
            }
            Op::Values { columns, .. } | Op::Working { columns, .. } => columns.clone(),
            Op::Shared { columns, .. } => columns.iter().map(|column| (column.id, column.ty.clone())).collect(),
            Op::Project { exprs, .. } => typed(exprs),
            Op::Filter { input, .. } | Op::Sort { input, .. } | Op::Limit { input, .. } => input.columns(),
            Op::Join { left, right, kind, .. } => {
                let mut out = left.columns();
                if kind.gives_right() {
                    out.extend(right.columns());
                }
                if let JoinKind::Mark { id, .. } = kind {
                    out.push((*id, DataType::Bool));
                }
                out
            }
            Op::Aggregate { groups, aggregates, .. } => {
                let mut out = typed(groups);
                out.extend(aggregates.iter().map(|(id, call)| (*id, call.resolved.ty.clone())));
                out
            }
            Op::Window { input, calls } => {
                let mut out = input.columns();
                out.extend(calls.iter().map(|(id, call)| (*id, call.ty.clone())));
                out
            }
            Op::ProjectSet { input, sets, ordinality, .. } => {
                let mut out = input.columns();
                out.extend(typed(sets));
                out.extend(ordinality.map(|id| (id, DataType::Int8)));
                out
            }
            Op::UnionAll { columns, .. } | Op::Recursive { columns, .. } => {
                columns.iter().map(|column| (column.id, column.ty.clone())).collect()
            }
        }
    }

    /// Whether rows of a recursion leave before all of them are there.
    pub fn gives_by_rounds(&self) -> bool {
        match &self.op {
            Op::Recursive { .. } => true,
            Op::Sort { .. } | Op::Aggregate { .. } | Op::Window { .. } => false,
            Op::Shared { plan, .. } => plan.gives_by_rounds(),
            _ => self.inputs().into_iter().any(Node::gives_by_rounds),
        }
    }

    pub fn inputs(&self) -> Vec<&Node> {
        match &self.op {
            Op::Scan { .. } | Op::Values { .. } | Op::Shared { .. } | Op::Recursive { .. } | Op::Working { .. } => {
                Vec::new()
            }
            Op::Filter { input, .. }
            | Op::Project { input, .. }
            | Op::Aggregate { input, .. }
            | Op::Window { input, .. }
            | Op::ProjectSet { input, .. }
            | Op::Sort { input, .. }
            | Op::Limit { input, .. } => vec![input],
            Op::Join { left, right, .. } | Op::UnionAll { left, right, .. } => vec![left, right],
        }
    }

    pub fn inputs_mut(&mut self) -> Vec<&mut Node> {
        match &mut self.op {
            Op::Scan { .. } | Op::Values { .. } | Op::Shared { .. } | Op::Recursive { .. } | Op::Working { .. } => {
                Vec::new()
            }
            Op::Filter { input, .. }
            | Op::Project { input, .. }
            | Op::Aggregate { input, .. }
            | Op::Window { input, .. }
            | Op::ProjectSet { input, .. }
            | Op::Sort { input, .. }
            | Op::Limit { input, .. } => vec![input],
            Op::Join { left, right, .. } | Op::UnionAll { left, right, .. } => vec![left, right],
        }
    }

    /// The expressions of this node.
    pub fn exprs(&self) -> Vec<&Expr> {
        match &self.op {
            Op::Shared { .. } | Op::UnionAll { .. } | Op::Recursive { .. } | Op::Working { .. } => Vec::new(),
            Op::Scan { filter: exprs, .. } | Op::Filter { conjuncts: exprs, .. } => exprs.iter().collect(),
            Op::Values { rows, .. } => rows.iter().flatten().collect(),
            Op::Project { exprs, .. } | Op::ProjectSet { sets: exprs, .. } => {
                exprs.iter().map(|(_, expr)| expr).collect()
            }
            Op::Join { keys, residual, .. } => {
                keys.iter().flat_map(|key| [&key.left, &key.right]).chain(residual).collect()
            }
            Op::Aggregate { groups, aggregates, .. } => {
                let groups = groups.iter().map(|(_, expr)| expr);
                groups.chain(aggregates.iter().flat_map(|(_, call)| exprs_of(call))).collect()
            }
            Op::Window { calls, .. } => calls.iter().flat_map(|(_, call)| call.exprs()).collect(),
            Op::Sort { keys, .. } => keys.iter().map(|key| &key.expr).collect(),
            Op::Limit { limit, offset, .. } => limit.iter().chain(offset).collect(),
        }
    }

    /// As [`Node::exprs`], for changing them.
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.op {
            Op::Shared { .. } | Op::UnionAll { .. } | Op::Recursive { .. } | Op::Working { .. } => Vec::new(),
            Op::Scan { filter: exprs, .. } | Op::Filter { conjuncts: exprs, .. } => exprs.iter_mut().collect(),
            Op::Values { rows, .. } => rows.iter_mut().flatten().collect(),
            Op::Project { exprs, .. } | Op::ProjectSet { sets: exprs, .. } => {
                exprs.iter_mut().map(|(_, expr)| expr).collect()
            }
            Op::Join { keys, residual, .. } => {
                keys.iter_mut().flat_map(|key| [&mut key.left, &mut key.right]).chain(residual).collect()
            }
            Op::Aggregate { groups, aggregates, .. } => {
                let groups = groups.iter_mut().map(|(_, expr)| expr);
                groups.chain(aggregates.iter_mut().flat_map(|(_, call)| call.exprs_mut())).collect()
            }
            Op::Window { calls, .. } => calls.iter_mut().flat_map(|(_, call)| call.exprs_mut()).collect(),
            Op::Sort { keys, .. } => keys.iter_mut().map(|key| &mut key.expr).collect(),
            Op::Limit { limit, offset, .. } => limit.iter_mut().chain(offset).collect(),
        }
    }
}

/// Every expression inside a call.
pub fn exprs_of(call: &AggregateCall) -> impl Iterator<Item = &Expr> {
    call.args.iter().chain(&call.filter).chain(call.order_by.iter().map(|key| &key.expr))
}
