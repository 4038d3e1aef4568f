//! What the column engine is given: operators over columns that are counted, with expressions of `expr`.

use arrow_array::ArrayRef;
use basalt_engine::ScanSpec;
use basalt_expr::aggregates::ResolvedAggregate;
use basalt_expr::tree::Expr;
use basalt_expr::window::{Edge, FrameSpec, Offset, Ranking, Units};
use basalt_types::DataType;
use std::fmt;
use std::sync::Arc;

/// An operator and what it reads. [`Expr::Column`] counts the input's columns.
#[derive(Clone, Debug)]
pub enum Plan {
    /// The columns of the spec, in its order.
    Scan {
        spec: ScanSpec,
    },
    /// Rows that are known, in stored form.
    Values {
        columns: Vec<(DataType, ArrayRef)>,
        rows: usize,
    },
    /// `watch`: over a scan, who learns how many rows satisfied the conditions.
    Filter {
        input: Box<Plan>,
        conditions: Vec<Expr>,
        watch: Option<Watch>,
    },
    Project {
        input: Box<Plan>,
        exprs: Vec<Expr>,
    },
    /// Pairs of a left and a right row for which the keys are equal, type by type, and the residual is true. Its columns
    /// are the left ones and, but for those kinds that only choose among left rows, the right ones, or the mark; the
    /// residual counts both. The right side is held, or, of `Semi` and `Anti` with `hold_left`, the left one.
    Join {
        left: Box<Plan>,
        right: Box<Plan>,
        kind: JoinKind,
        keys: Vec<JoinKey>,
        /// The right columns that are kept.
        payload: Vec<usize>,
        hold_left: bool,
        residual: Vec<Expr>,
    },
    /// Keys, then calls. Without keys there is one group, even of no rows.
    ///
    /// `dependent`: of the groups, by position, those that the others decide.
    Aggregate {
        input: Box<Plan>,
        groups: Vec<Expr>,
        dependent: Vec<usize>,
        calls: Vec<AggregateCall>,
    },
    /// The input's columns, then one per set-returning call and, with `ordinality`, the number of the value: a row for
    /// each value of the longest set, the others filled with nulls. A row whose sets are empty goes, unless `keep_empty`.
    ProjectSet {
        input: Box<Plan>,
        calls: Vec<Expr>,
        ordinality: bool,
        keep_empty: bool,
    },
    Sort {
        input: Box<Plan>,
        keys: Vec<SortKey>,
    },
    Limit {
        input: Box<Plan>,
        offset: usize,
        limit: Option<usize>,
    },
    /// An operator with a number, by which who made the plan knows it again in a [`crate::pipeline::Report`].
    Noted {
        input: Box<Plan>,
        note: usize,
    },
    /// The input's columns, then one per call, in the order of the window.
    Window {
        input: Box<Plan>,
        partition: Vec<Expr>,
        order: Vec<SortKey>,
        /// How rows come that `order` does not tell apart; they are peers all the same.
        arrival: Vec<SortKey>,
        calls: Vec<WindowCall>,
    },
    /// The rows of all, those of the first one first. Their columns are of the same types.
    Union {
        inputs: Vec<Plan>,
    },
    /// What several places of a plan read, which all have the same number. It is computed once.
    Shared {
        number: usize,
        plan: Arc<Plan>,
    },
    /// The rows of `base`, then those of `step` over the rows that came last, until there are none. With `distinct` no row
    /// comes twice. Both have columns of the same types.
    Recursive {
        number: usize,
        base: Box<Plan>,
        step: Box<Plan>,
        distinct: bool,
    },
    /// Inside of the step of the recursion with this number: the rows that came last.
    Working {
        number: usize,
    },
}

/// Is told for how many of a table's rows conditions held, by an execution that has asked all of them.
#[derive(Clone)]
pub struct Watch(pub Arc<dyn Fn(u64) + Send + Sync>);

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Watch")
    }
}

impl Plan {
    pub fn noted(self, note: usize) -> Plan {
        Plan::Noted { input: Box::new(self), note }
    }

    pub fn without_note(self) -> Plan {
        match self {
            Plan::Noted { input, .. } => input.without_note(),
            plan => plan,
        }
    }

    /// The operator, and its number if it has one.
    pub(crate) fn unnoted(&self) -> (&Plan, Option<usize>) {
        match self {
            Plan::Noted { input, note } => (input.unnoted().0, Some(*note)),
            plan => (plan, None),
        }
    }
}

/// What is equal of a left and a right row.
#[derive(Clone, Debug)]
pub struct JoinKey {
    pub left: Expr,
    pub right: Expr,
    /// A null equals a null, and not nothing.
    pub null_safe: bool,
}

pub use crate::join::Kind as JoinKind;

#[derive(Clone, Debug)]
pub struct AggregateCall {
    pub resolved: ResolvedAggregate,
    pub args: Vec<Expr>,
    pub filter: Option<Expr>,
    /// Each value of its only argument counts once per group; of all values that are equal any one.
    pub distinct: bool,
    /// Whether its result shows in which order rows came: they come as the plan below gives them.
    pub heeds_order: bool,
}

#[derive(Clone, Debug)]
pub struct WindowCall {
    pub function: WindowFunction,
    pub ty: DataType,
    /// Of aggregates, edges and n-th values.
    pub frame: Option<WindowFrame>,
}

#[derive(Clone, Debug)]
pub enum WindowFunction {
    Ranking(Ranking),
    Ntile(Expr),
    Shifted { value: Expr, offset: Option<Expr>, default: Option<Expr>, lead: bool },
    Edge(Edge, Expr),
    NthValue(Expr, Expr),
    Aggregate(AggregateCall),
}

/// Offsets of RANGE are measured along the only column of the window's order.
#[derive(Clone, Debug)]
pub struct WindowFrame {
    pub spec: FrameSpec,
    pub offsets: [Option<Offset>; 2],
}

impl WindowCall {
    /// Whether its frame begins or ends at some distance along a column.
    pub(crate) fn measures(&self) -> bool {
        let measures =
            |frame: &WindowFrame| frame.spec.units == Units::Range && frame.offsets.iter().any(Option::is_some);
        self.frame.as_ref().is_some_and(measures)
    }
}

#[derive(Clone, Debug)]
pub struct SortKey {
    pub expr: Expr,
    pub descending: bool,
    pub nulls_first: bool,
}
