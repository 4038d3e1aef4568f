//! Typed expressions: what a binder builds, folds and hands to an engine.
//!
//! Every node knows its type. Operands are already cast to what their function takes, so evaluation
//! resolves nothing. A `Const`, `Param` or `Column` holds values in the physical form of its type; for
//! `Numeric` that form depends on the modifier, which is why arithmetic keeps a *physical* precision and
//! scale in its type (see [`crate::resolve::decimal_result_type`]). What a client is told is [`Expr::typmod`].

use crate::functions::{Function, Volatility};
use basalt_types::{DataType, Datum};
use smallvec::{SmallVec, smallvec};

/// What `IS [NOT] …` asks of a boolean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Truth {
    True,
    False,
    Unknown,
}

/// Of an expression; few have more than four.
pub type Children<'e> = SmallVec<[&'e Expr; 4]>;

#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// Position among the vectors (or row values) that evaluation is given.
    Column {
        index: usize,
        ty: DataType,
    },
    /// Counted from 0; the value comes with the [`EvalContext`].
    Param {
        index: usize,
        ty: DataType,
    },
    Const {
        value: Datum,
        ty: DataType,
    },
    Call {
        function: &'static Function,
        args: Vec<Expr>,
        ty: DataType,
    },
    Cast {
        expr: Box<Expr>,
        to: DataType,
        explicit: bool,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    IsNull(Box<Expr>),
    IsNotNull(Box<Expr>),
    BoolTest {
        expr: Box<Expr>,
        truth: Truth,
        negated: bool,
    },
    /// `IS [NOT] DISTINCT FROM`; `equal` compares the two operands as they are.
    IsDistinct {
        left: Box<Expr>,
        right: Box<Expr>,
        equal: &'static Function,
        negated: bool,
    },
    /// `CASE WHEN … THEN …`; the form with an operand is bound to comparisons.
    Case {
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
        ty: DataType,
    },
    Coalesce {
        args: Vec<Expr>,
        ty: DataType,
    },
    NullIf {
        left: Box<Expr>,
        right: Box<Expr>,
        equal: &'static Function,
    },
    /// `GREATEST` or `LEAST`; the arguments are of type `ty`.
    Extreme {
        args: Vec<Expr>,
        greatest: bool,
        ty: DataType,
    },
    InList {
        expr: Box<Expr>,
        list: Vec<Expr>,
        equal: &'static Function,
        negated: bool,
    },
    /// `ARRAY[…]`; `ty` is the array type, the elements are of its element type.
    ArrayLiteral {
        elements: Vec<Expr>,
        ty: DataType,
    },
    /// `left op ANY (array)`, or `ALL`.
    AnyAll {
        left: Box<Expr>,
        function: &'static Function,
        array: Box<Expr>,
        all: bool,
    },
    /// Filled in by the planner (subqueries, outer references, aggregates); never evaluated.
    Hole {
        id: usize,
        ty: DataType,
    },
}

impl Expr {
    pub fn null(ty: DataType) -> Expr {
        Expr::Const { value: Datum::Null, ty }
    }

    pub fn bool(value: bool) -> Expr {
        Expr::Const { value: Datum::Bool(value), ty: DataType::Bool }
    }

    pub fn int4(value: i32) -> Expr {
        Expr::Const { value: Datum::I32(value), ty: DataType::Int4 }
    }

    pub fn int8(value: i64) -> Expr {
        Expr::Const { value: Datum::I64(value), ty: DataType::Int8 }
    }

    pub fn text(value: &str) -> Expr {
        Expr::Const { value: Datum::text(value), ty: DataType::Text }
    }

    /// A string literal whose type the context decides.
    pub fn unknown(value: &str) -> Expr {
        Expr::Const { value: Datum::text(value), ty: DataType::Unknown }
    }

    pub fn ty(&self) -> DataType {
        match self {
            Expr::Column { ty, .. }
            | Expr::Param { ty, .. }
            | Expr::Const { ty, .. }
            | Expr::Call { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::Coalesce { ty, .. }
            | Expr::Extreme { ty, .. }
            | Expr::ArrayLiteral { ty, .. }
            | Expr::Hole { ty, .. } => ty.clone(),
            Expr::Cast { to, .. } => to.clone(),
            Expr::NullIf { left, .. } => left.ty(),
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::BoolTest { .. }
            | Expr::IsDistinct { .. }
            | Expr::InList { .. }
            | Expr::AnyAll { .. } => DataType::Bool,
        }
    }

    /// The type modifier that PostgreSQL reports for this expression; -1 for computed values, whose
    /// physical precision and scale are nobody's business. `known` tells those of holes that are not in their types.
    pub fn typmod(&self, known: &dyn Fn(usize) -> Option<i32>) -> i32 {
        match self {
            Expr::Hole { id, ty } => known(*id).unwrap_or_else(|| ty.typmod()),
            Expr::Column { ty, .. } => ty.typmod(),
            Expr::Cast { to, explicit: true, .. } => to.typmod(),
            // Of a constant cast where it stands; a number's is how it is stored.
            Expr::Const { ty, .. } => {
                let is_text = |ty: &DataType| {
                    matches!(ty, DataType::Bpchar(_) | DataType::Varchar(_) | DataType::Bit(_) | DataType::Varbit(_))
                };
                if is_text(ty.element().unwrap_or(ty)) { ty.typmod() } else { -1 }
            }
            // Length functions of date and time types, by which values are cast to types with a modifier.
            Expr::Call { function, args, .. } => match args.as_slice() {
                [value, Expr::Const { value: Datum::I32(modifier), .. }]
                    if ["timestamp", "timestamptz", "time", "timetz", "interval"].contains(&function.name.as_str())
                        && value.ty() == self.ty() =>
                {
                    *modifier
                }
                _ => -1,
            },
            Expr::NullIf { left, .. } => left.typmod(known),
            Expr::Case { branches, otherwise, .. } => {
                let mut all = branches.iter().map(|(_, value)| value).chain(otherwise.as_deref());
                same_typmod(&mut all, known)
            }
            Expr::Coalesce { args, .. } | Expr::Extreme { args, .. } => same_typmod(&mut args.iter(), known),
            _ => -1,
        }
    }

    /// Direct operands, in the order of evaluation.
    pub fn children(&self) -> Children<'_> {
        match self {
            Expr::Column { .. } | Expr::Param { .. } | Expr::Const { .. } | Expr::Hole { .. } => Children::new(),
            Expr::Call { args, .. }
            | Expr::And(args)
            | Expr::Or(args)
            | Expr::Coalesce { args, .. }
            | Expr::Extreme { args, .. }
            | Expr::ArrayLiteral { elements: args, .. } => args.iter().collect(),
            Expr::Cast { expr, .. }
            | Expr::Not(expr)
            | Expr::IsNull(expr)
            | Expr::IsNotNull(expr)
            | Expr::BoolTest { expr, .. } => smallvec![&**expr],
            Expr::IsDistinct { left, right, .. } | Expr::NullIf { left, right, .. } => smallvec![&**left, &**right],
            Expr::AnyAll { left, array, .. } => smallvec![&**left, &**array],
            Expr::Case { branches, otherwise, .. } => {
                let pairs = branches.iter().flat_map(|(condition, value)| [condition, value]);
                pairs.chain(otherwise.as_deref()).collect()
            }
            Expr::InList { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
        }
    }

    /// As [`Expr::children`], for changing them.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Column { .. } | Expr::Param { .. } | Expr::Const { .. } | Expr::Hole { .. } => Vec::new(),
            Expr::Call { args, .. }
            | Expr::And(args)
            | Expr::Or(args)
            | Expr::Coalesce { args, .. }
            | Expr::Extreme { args, .. }
            | Expr::ArrayLiteral { elements: args, .. } => args.iter_mut().collect(),
            Expr::Cast { expr, .. }
            | Expr::Not(expr)
            | Expr::IsNull(expr)
            | Expr::IsNotNull(expr)
            | Expr::BoolTest { expr, .. } => vec![expr],
            Expr::IsDistinct { left, right, .. } | Expr::NullIf { left, right, .. } => vec![left, right],
            Expr::AnyAll { left, array, .. } => vec![left, array],
            Expr::Case { branches, otherwise, .. } => {
                let pairs = branches.iter_mut().flat_map(|(condition, value)| [condition, value]);
                pairs.chain(otherwise.as_deref_mut()).collect()
            }
            Expr::InList { expr, list, .. } => std::iter::once(&mut **expr).chain(list).collect(),
        }
    }

    /// Visits this node and everything below it, parents first. Stops descending where `visit` is false.
    pub fn walk(&self, visit: &mut impl FnMut(&Expr) -> bool) {
        if visit(self) {
            self.children().into_iter().for_each(|child| child.walk(visit));
        }
    }

    /// Rebuilds the tree bottom-up.
    pub fn rewrite(mut self, change: &mut impl FnMut(Expr) -> Expr) -> Expr {
        for child in self.children_mut() {
            let taken = std::mem::replace(child, Expr::Hole { id: usize::MAX, ty: DataType::Void });
            *child = taken.rewrite(change);
        }
        change(self)
    }

    /// Whether any node answers to `test`.
    pub fn any(&self, test: &mut impl FnMut(&Expr) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// The greatest volatility of anything inside.
    pub fn volatility(&self) -> Volatility {
        let own = match self {
            Expr::Call { function, .. } | Expr::AnyAll { function, .. } => function.volatility,
            Expr::IsDistinct { equal, .. } | Expr::NullIf { equal, .. } | Expr::InList { equal, .. } => {
                equal.volatility
            }
            Expr::Cast { expr, to, .. } => cast_volatility(&expr.ty(), to),
            _ => Volatility::Immutable,
        };
        self.children().into_iter().map(Expr::volatility).fold(own, Volatility::max)
    }

    /// No columns, no holes, no parameters, nothing volatile: one value per statement.
    pub fn is_const(&self) -> bool {
        self.volatility() < Volatility::Volatile
            && !self.any(&mut |node| matches!(node, Expr::Column { .. } | Expr::Hole { .. } | Expr::Param { .. }))
    }

    /// The same expression with sums and products of scaled numerics in 38 digits, where only their bounds
    /// do not prove that they fit; `None` if that changes nothing of its type. Evaluation gives
    /// [`crate::resolve::decimal::TOO_WIDE`] for a value that does not fit.
    pub fn narrow(&self) -> Option<Expr> {
        if self.ty() != DataType::Numeric(None) {
            return None;
        }
        let narrowed = self.clone().rewrite(&mut |mut node| {
            if let Expr::Call { function, args, ty } = &mut node
                && *ty == DataType::Numeric(None)
                && let [left, right] = args.as_slice()
                && let Some(scaled) = crate::resolve::decimal::narrowed_type(function, &left.ty(), &right.ty())
            {
                *ty = scaled;
            }
            node
        });
        (narrowed.ty() != DataType::Numeric(None)).then_some(narrowed)
    }

    pub fn is_null_const(&self) -> bool {
        matches!(self, Expr::Const { value: Datum::Null, .. })
    }

    /// The conjuncts of a condition.
    pub fn split_and(self) -> Vec<Expr> {
        match self {
            Expr::And(args) => args.into_iter().flat_map(Expr::split_and).collect(),
            other => vec![other],
        }
    }

    /// All of `args`, which may be none.
    pub fn and(mut args: Vec<Expr>) -> Expr {
        match args.len() {
            0 => Expr::bool(true),
            1 => args.remove(0),
            _ => Expr::And(args),
        }
    }
}

fn same_typmod(args: &mut dyn Iterator<Item = &Expr>, known: &dyn Fn(usize) -> Option<i32>) -> i32 {
    let mut found = None;
    for arg in args.filter(|arg| !arg.is_null_const()) {
        match (found, arg.typmod(known)) {
            (None, typmod) => found = Some((arg.ty().base(), typmod)),
            (Some((ty, typmod)), other) if typmod == other && ty == arg.ty().base() => found = Some((ty, typmod)),
            _ => return -1,
        }
    }
    found.map_or(-1, |(_, typmod)| typmod)
}

/// Casts that read the session's time zone or its style of dates and intervals, or the clock (`'now'::timestamp`): as
/// volatile as the input and output functions that PostgreSQL casts by (`pg_proc`).
pub(crate) fn cast_volatility(from: &DataType, to: &DataType) -> Volatility {
    use DataType::*;
    let textual = |ty: &DataType| matches!(ty, Text | Varchar(_) | Bpchar(_) | Unknown | Name);
    match (from, to) {
        // What a domain or a composite type asks of its values may change.
        (Domain(_), Domain(_)) | (_, Domain(_) | Composite(_)) => Volatility::Stable,
        (Array(from), Array(to)) => cast_volatility(from, to),
        (TimestampTz, Date | Time | Timestamp | TimeTz) | (Date | Timestamp, TimestampTz) | (Time, TimeTz) => {
            Volatility::Stable
        }
        (
            TimestampTz | Timestamp | Date | Interval | Money | Array(_) | Range(_) | Multirange(_) | Composite(_)
            | Enum(_),
            to,
        ) if textual(to) => Volatility::Stable,
        (
            from,
            Date | Time | TimeTz | Timestamp | TimestampTz | Interval | Money | Array(_) | Range(_) | Multirange(_)
            | Enum(_),
        ) if textual(from) => Volatility::Stable,
        (from, to) if (textual(from) && to.is_reg()) || (from.is_reg() && textual(to)) => Volatility::Stable,
        _ => Volatility::Immutable,
    }
}
