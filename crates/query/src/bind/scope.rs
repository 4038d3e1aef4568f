//! What names mean at one level of a query: the relations of its FROM, and their columns.

use crate::plan::{AggregateCall, ColId, SortKey, WindowCall};
use crate::syntax::LockingClause;
use basalt_expr::tree::Expr;
use basalt_expr::window::{Bound, Exclude, FrameSpec, Units};
use basalt_types::{CompositeDef, DataType};
use sqlparser::tokenizer::Span;
use std::sync::Arc;

/// A column that an expression can name.
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    pub name: String,
    pub id: ColId,
    pub ty: DataType,
    /// -1 where the type's modifier is only physical.
    pub typmod: i32,
    pub table_oid: u32,
    pub column_no: i16,
}

/// One item of FROM, by the name that qualifies its columns.
#[derive(Clone, Debug)]
pub struct ScopeRelation {
    pub name: String,
    /// Set for tables that are not aliased: `schema.table.column` is allowed.
    pub schema: Option<String>,
    pub oid: u32,
    pub columns: Vec<ScopeColumn>,
    /// Key columns if it is a table with a primary key and they are all visible: grouping by them
    /// determines every other column.
    pub key: Vec<ColId>,
    /// Hidden behind an aliased join; its columns can only be reached through that alias.
    pub hidden: bool,
    /// A column that is null where an outer join has no row of the relation, once it is asked for.
    pub marker: Option<ColId>,
    pub row: WholeRow,
}

/// What the name of a relation stands for as a value.
#[derive(Clone, Debug)]
pub enum WholeRow {
    /// A row of its columns: of the relation's row type if it has one, else anonymous.
    Columns,
    /// A row of its columns, of the composite type that a function returns.
    Named(Arc<CompositeDef>),
    /// What a function returns that is no row: its only column.
    Value,
}

/// Where an expression stands; decides what may be in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clause {
    Select,
    FromOn,
    FromFunction,
    /// A lateral subquery of FROM.
    FromSubquery,
    Where,
    GroupBy,
    Having,
    OrderBy,
    Limit,
    Values,
    Default,
    Check,
    Generated,
    Transform,
    Update,
    Returning,
    MergeWhen,
    Filter,
    /// PARTITION BY and ORDER BY of a window.
    Window,
    WindowFrame(Units),
}

impl Clause {
    pub fn allows_aggregates(self) -> bool {
        matches!(self, Clause::Select | Clause::Having | Clause::OrderBy | Clause::Window)
    }

    pub fn allows_windows(self) -> bool {
        matches!(self, Clause::Select | Clause::OrderBy)
    }

    /// As PostgreSQL names it in `aggregate functions are not allowed in …`.
    pub fn name(self) -> &'static str {
        match self {
            Clause::Select => "SELECT",
            Clause::FromOn => "JOIN conditions",
            Clause::FromFunction => "functions in FROM",
            Clause::FromSubquery => "FROM clause of their own query level",
            Clause::Where => "WHERE",
            Clause::GroupBy => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::OrderBy => "ORDER BY",
            Clause::Limit => "LIMIT",
            Clause::Values => "VALUES",
            Clause::Default => "DEFAULT expressions",
            Clause::Check => "check constraints",
            Clause::Generated => "column generation expressions",
            Clause::Transform => "transform expressions",
            Clause::Update => "UPDATE",
            Clause::Returning => "RETURNING",
            Clause::MergeWhen => "MERGE WHEN conditions",
            Clause::Filter => "FILTER",
            Clause::Window => "window definitions",
            Clause::WindowFrame(Units::Rows) => "window ROWS",
            Clause::WindowFrame(Units::Range) => "window RANGE",
            Clause::WindowFrame(Units::Groups) => "window GROUPS",
        }
    }

    /// As PostgreSQL names it in `window functions are not allowed in …`.
    pub fn name_for_windows(self) -> &'static str {
        match self {
            Clause::WindowFrame(_) => "window definitions",
            other => other.name(),
        }
    }
}

/// What a window function is over.
#[derive(Clone, Debug)]
pub struct WindowDef {
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<SortKey>,
    pub frame: FrameSpec,
    pub offsets: [Option<Expr>; 2],
    /// The frame is spelled out.
    pub has_frame: bool,
}

impl Default for WindowDef {
    fn default() -> WindowDef {
        let frame = FrameSpec {
            units: Units::Range,
            start: Bound::UnboundedPreceding,
            end: Bound::CurrentRow,
            exclude: Exclude::NoOthers,
        };
        WindowDef { partition_by: Vec::new(), order_by: Vec::new(), frame, offsets: [None, None], has_frame: false }
    }
}

/// One query level.
#[derive(Debug)]
pub struct Scope {
    pub relations: Vec<ScopeRelation>,
    /// Named by the statement at this level, but not to be referred to yet.
    pub out_of_sight: Vec<ScopeRelation>,
    /// The whole level, where this is a part of its FROM that does not see the rest.
    pub behind: Option<Box<Scope>>,
    /// What unqualified names and `*` see, in order: columns merged by USING stand once, first.
    pub visible: Vec<ScopeColumn>,
    pub clause: Clause,
    /// Aggregate calls met so far.
    pub aggregates: Vec<(ColId, AggregateCall)>,
    pub windows: Vec<(ColId, WindowCall)>,
    /// Named windows of the level.
    pub named_windows: Vec<(String, WindowDef)>,
    /// GROUPING calls met so far, with their places.
    pub groupings: Vec<(ColId, Vec<Expr>, Option<u32>)>,
    /// FROM has the recursive query whose step this is.
    pub is_step: bool,
    /// Set-returning calls met so far.
    pub sets: usize,
    /// Locking clauses of the level.
    pub locking: Vec<LockingClause>,
    /// Where columns were named, for grouping errors.
    pub seen: Vec<(ColId, Span)>,
    /// Markers that were asked for, each with a column of its relation.
    pub markers: Vec<(ColId, ColId)>,
}

impl Scope {
    pub fn new(clause: Clause) -> Scope {
        Scope {
            relations: Vec::new(),
            out_of_sight: Vec::new(),
            behind: None,
            visible: Vec::new(),
            clause,
            aggregates: Vec::new(),
            windows: Vec::new(),
            named_windows: Vec::new(),
            groupings: Vec::new(),
            is_step: false,
            sets: 0,
            locking: Vec::new(),
            seen: Vec::new(),
            markers: Vec::new(),
        }
    }

    /// A level that sees nothing of this one, which it replaces until [`Scope::reappear`].
    pub fn disappear(&mut self, clause: Clause) {
        let whole = std::mem::replace(self, Scope::new(clause));
        self.behind = Some(Box::new(whole));
    }

    pub fn reappear(&mut self) {
        if let Some(whole) = self.behind.take() {
            *self = *whole;
        }
    }

    pub fn defines(&self, id: ColId) -> bool {
        self.visible.iter().any(|column| column.id == id)
            || self.relations.iter().any(|relation| relation.columns.iter().any(|column| column.id == id))
    }
}
