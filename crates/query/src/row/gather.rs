//! A plan of joins, filters and projections as what it comes to: tables, conditions, and which table comes after which.

use super::access::{Access, Edge, KeyList, KeyPart, ListValues, Part};
use super::covered;
use super::implied::implies;
use crate::bind::IndexTerms;
use crate::bind::key_values::{Fitting, compared_as, comparison, fitting, sorts_as_keys};
use crate::plan::{ColId, JoinKind, Plan, SortKey};
use basalt_engine::Direction;
use basalt_expr::functions::Volatility;
use basalt_expr::pattern::{Rest, beginning_of, next_beginning};
use basalt_expr::tree::Expr;
use basalt_types::schema::{IndexColumn, IndexDef};
use basalt_types::{ColumnId, CompareOp, DataType, Datum, TableDef};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A table of the plan.
pub(super) struct Relation {
    pub table: Arc<TableDef>,
    pub columns: Vec<(ColId, ColumnId)>,
    /// Of its indexes those with expressions or a condition.
    pub terms: Arc<[IndexTerms]>,
    /// Tablet, key and stamp of the row, for who will change or lock it.
    pub identity: Option<[ColId; 3]>,
    /// Of the nullable side of a left join: what has to hold for a row to match.
    pub optional: Option<Vec<Expr>>,
}

#[derive(Default)]
pub(super) struct Gathered {
    pub relations: Vec<Relation>,
    /// All have to hold.
    pub conditions: Vec<Expr>,
    /// What projections define.
    computed: BTreeMap<ColId, Expr>,
}

impl Gathered {
    /// `None`: there is more to the plan.
    pub fn of(plan: &Plan) -> Option<Gathered> {
        let mut gathered = Gathered::default();
        gathered.add(plan)?;
        let computed = std::mem::take(&mut gathered.computed);
        let conditions = std::mem::take(&mut gathered.conditions);
        gathered.conditions = conditions.into_iter().map(|condition| over_tables(condition, &computed)).collect();
        for relation in &mut gathered.relations {
            let conditions = relation.optional.take();
            relation.optional =
                conditions.map(|all| all.into_iter().map(|condition| over_tables(condition, &computed)).collect());
        }
        gathered.computed = computed;
        Some(gathered)
    }

    /// An expression over the plan's output as one over columns of tables.
    pub fn over_tables(&self, expr: Expr) -> Expr {
        over_tables(expr, &self.computed)
    }

    fn add(&mut self, plan: &Plan) -> Option<()> {
        match plan {
            Plan::Scan { table, columns, identity, terms } => {
                let (columns, identity, terms) = (columns.clone(), *identity, terms.clone());
                self.relations.push(Relation { table: table.clone(), columns, terms, identity, optional: None });
            }
            // One row of nothing.
            Plan::Unit => {}
            Plan::Filter { input, condition } => {
                self.conditions.extend(condition.clone().split_and());
                self.add(input)?;
            }
            // What is volatile is computed for each row, read or not.
            Plan::Project { exprs, .. } if !are_repeatable(exprs) => return None,
            Plan::Project { input, exprs } => {
                for (id, expr) in exprs {
                    if !matches!(expr, Expr::Hole { id: passed, .. } if passed == id) {
                        self.computed.insert(*id, expr.clone());
                    }
                }
                self.add(input)?;
            }
            Plan::Join { left, right, kind: JoinKind::Inner, condition, .. } => {
                self.conditions.extend(condition.iter().flat_map(|condition| condition.clone().split_and()));
                self.add(left)?;
                self.add(right)?;
            }
            Plan::Join { left, right, kind: JoinKind::Left, condition, .. } => {
                self.add(left)?;
                let mut side = Gathered::default();
                side.add(right)?;
                // What a projection computes there would have to be null where nothing matches.
                let passes = side.computed.values().all(|expr| matches!(expr, Expr::Hole { .. }));
                let relation = side.relations.pop().filter(|relation| relation.optional.is_none() && passes)?;
                if !side.relations.is_empty() {
                    return None;
                }
                let own = condition.iter().flat_map(|condition| condition.clone().split_and());
                let optional = Some(own.chain(side.conditions).collect());
                self.computed.extend(side.computed);
                self.relations.push(Relation { optional, ..relation });
            }
            _ => return None,
        }
        Some(())
    }
}

/// Whether it makes no difference how often they are computed.
pub(super) fn are_repeatable(exprs: &[(ColId, Expr)]) -> bool {
    exprs.iter().all(|(_, expr)| expr.volatility() < Volatility::Volatile)
}

fn over_tables(expr: Expr, computed: &BTreeMap<ColId, Expr>) -> Expr {
    expr.rewrite(&mut |node| match node {
        Expr::Hole { id, ty } => match computed.get(&id) {
            Some(of) => over_tables(of.clone(), computed),
            None => Expr::Hole { id, ty },
        },
        other => other,
    })
}

/// Columns (or other holes) that an expression needs.
pub(super) fn needs(expr: &Expr) -> BTreeSet<ColId> {
    let mut ids = BTreeSet::new();
    expr.walk(&mut |node| {
        if let Expr::Hole { id, .. } = node {
            ids.insert(*id);
        }
        true
    });
    ids
}

/// How well an access finds its rows: less is better. The kind of it, what is left open, whether by an index.
pub(super) type Rank = (u8, usize, bool);

/// The kinds of accesses that look at a range, and at all rows.
const RANGE: u8 = 3;
const UNBOUNDED: u8 = 4;

/// What a key is made of: a column of the relation or an expression over its columns.
#[derive(Clone)]
pub(super) struct Term {
    pub expr: Expr,
    pub ty: DataType,
}

impl Term {
    /// Whether an expression is just this.
    fn is(&self, expr: &Expr) -> bool {
        match (&self.expr, expr) {
            (Expr::Hole { id, .. }, Expr::Hole { id: other, .. }) => id == other,
            (own, expr) => own == expr,
        }
    }

    /// As which type an expression compares that is this, perhaps cast.
    fn compared_as(&self, expr: &Expr) -> Option<DataType> {
        compared_as(expr, &|expr| self.is(expr))
    }
}

/// A way to a relation's rows.
pub(super) struct Way {
    pub rank: Rank,
    pub access: Access,
    /// Which conditions it makes true.
    pub settled: Vec<usize>,
    /// What its key is made of, in order, up to the first that nobody reads.
    key: Vec<Term>,
}

impl Relation {
    pub fn defines(&self, id: ColId) -> bool {
        self.columns.iter().any(|(known, _)| *known == id) || self.identity.iter().flatten().any(|known| *known == id)
    }

    /// The ways to the rows, given the columns of tables before it.
    pub fn ways(&self, conditions: &[Expr], known: &BTreeSet<ColId>) -> Vec<Way> {
        let mut ways = Vec::new();
        if let Some(key) = &self.table.primary_key {
            ways.push(self.way_by(
                None,
                &key.columns.iter().map(|id| self.column(*id)).collect::<Vec<_>>(),
                conditions,
                known,
            ));
        }
        for index in self.table.valid_indexes() {
            let terms = self.terms.iter().find(|terms| terms.index.id == index.id);
            let key: Vec<Option<Term>> = match (index.plain_columns(), terms) {
                (Some(columns), _) => columns.iter().map(|id| self.column(*id)).collect(),
                (None, Some(terms)) => {
                    // Entries are of the types that the index says.
                    if terms.columns.iter().zip(&index.columns).any(|(of, column)| of.ty() != column.ty) {
                        continue;
                    }
                    let term = |(of, column): (&Expr, &IndexColumn)| {
                        Some(Term { expr: self.over_columns(of)?, ty: column.ty.clone() })
                    };
                    terms.columns.iter().zip(&index.columns).map(term).collect()
                }
                (None, None) => continue,
            };
            let is_all = match (&index.predicate, terms.and_then(|terms| terms.predicate.as_ref())) {
                (None, _) => true,
                (Some(_), Some(predicate)) => {
                    let implied = |part: Expr| self.over_columns(&part).is_some_and(|part| implies(conditions, &part));
                    predicate.clone().split_and().into_iter().all(implied)
                }
                (Some(_), None) => false,
            };
            if is_all {
                ways.push(self.way_by(Some(index.clone()), &key, conditions, known));
            }
        }
        ways
    }

    /// `None`: nobody reads it, so no condition names it either.
    fn column(&self, column: ColumnId) -> Option<Term> {
        let (id, _) = self.columns.iter().find(|(_, known)| *known == column)?;
        let ty = self.table.column(column).ty.clone();
        Some(Term { expr: Expr::Hole { id: *id, ty: ty.clone() }, ty })
    }

    /// An expression over the table's row as one over the relation's columns, if it has them.
    fn over_columns(&self, expr: &Expr) -> Option<Expr> {
        let mut complete = true;
        let over = expr.clone().rewrite(&mut |node| match node {
            Expr::Column { index, ty } => match self.column(ColumnId::from_position(index)) {
                Some(term) => term.expr,
                None => {
                    complete = false;
                    Expr::Column { index, ty }
                }
            },
            other => other,
        });
        complete.then_some(over)
    }

    fn way_by(
        &self,
        index: Option<Arc<IndexDef>>,
        terms: &[Option<Term>],
        conditions: &[Expr],
        known: &BTreeSet<ColId>,
    ) -> Way {
        let mut finder = Finder { conditions, known, settled: Vec::new() };
        let (mut prefix, mut key, mut many) = (Vec::new(), Vec::new(), 0);
        let (mut lower, mut upper) = (None, None);
        let mut complete = true;
        for term in terms {
            let Some(term) = term else {
                complete = false;
                break;
            };
            key.push(term.clone());
            if !complete {
                continue;
            }
            if let Some(part) = finder.one(term) {
                prefix.push(Part::One(part));
            } else if let Some(list) = finder.many(term) {
                many += 1;
                prefix.push(Part::Many(list));
            } else {
                lower = finder.edge(term, [CompareOp::Gt, CompareOp::GtEq]);
                upper = finder.edge(term, [CompareOp::Lt, CompareOp::LtEq]);
                if lower.is_none() && upper.is_none() {
                    (lower, upper) = finder.beginning(term);
                }
                complete = false;
            }
        }
        let whole = complete && index.as_ref().is_none_or(|index| index.unique && !index.is_deferrable());
        // The condition of an index bounds it, too.
        let partial = index.as_ref().is_some_and(|index| index.predicate.is_some());
        let bounds = [lower.is_some(), upper.is_some(), partial].into_iter().filter(|is| *is).count();
        let by_index = index.is_some();
        let rank = match (whole, many) {
            (true, 0) => (0, 0, by_index),
            (true, _) => (1, 0, by_index),
            // More is better, wherever it is.
            (false, _) if !prefix.is_empty() => (2, 64 - (2 * prefix.len() + bounds).min(64), by_index),
            (false, _) if bounds > 0 => (RANGE, 3 - bounds, by_index),
            (false, _) => (UNBOUNDED, 0, by_index),
        };
        let settled = finder.settled;
        let access = Access { index, prefix, whole, lower, upper, direction: Direction::Ascending };
        Way { rank, access, settled, key }
    }
}

impl Way {
    /// It names its rows by whole keys.
    pub fn is_whole(&self) -> bool {
        self.access.whole
    }

    /// It looks at a part of the table only.
    pub fn is_bounded(&self) -> bool {
        self.rank.0 < UNBOUNDED
    }

    /// Whether rows come in this order, if the way is gone in some direction, which it then is. `alone`: no other
    /// table is joined.
    pub fn order_as(&mut self, keys: &[SortKey], relation: &Relation, alone: bool) -> bool {
        let Some(fixed) = self.access.fixed_columns() else { return false };
        let (known, rest) = self.key.split_at(fixed.min(self.key.len()));
        let mut rest = rest.iter();
        let mut direction = None;
        for key in keys {
            if known.iter().any(|known| known.expr == key.expr) {
                continue;
            }
            let Some(term) = rest.next() else {
                let is_one = alone && self.access.index.is_none() && self.key.len() == relation.key_len();
                // The whole of a unique key leaves nothing to order; but an expression may fail.
                if is_one && keys.iter().all(SortKey::is_column) {
                    break;
                }
                return false;
            };
            let no_nulls = self.access.index.is_none() || relation.is_never_null(&term.expr);
            let nulls_fit = no_nulls || key.nulls_first == key.descending;
            let wanted = if key.descending { Direction::Descending } else { Direction::Ascending };
            if term.expr != key.expr || !nulls_fit || *direction.get_or_insert(wanted) != wanted {
                return false;
            }
            if !sorts_as_keys(&term.ty) {
                return false;
            }
        }
        self.access.direction = direction.unwrap_or(Direction::Ascending);
        true
    }
}

impl Relation {
    /// Whether a way's index has all columns, so that no row is looked at.
    pub fn is_covered(&self, way: &Way) -> bool {
        let columns = self.columns.iter().map(|(_, column)| *column);
        self.identity.is_none()
            && way.access.index.as_ref().is_some_and(|index| covered::has_all(index, &self.table, columns))
    }

    /// Columns of the primary key.
    fn key_len(&self) -> usize {
        self.table.primary_key.as_ref().map_or(0, |key| key.columns.len())
    }

    /// Of a column of the table.
    fn is_never_null(&self, expr: &Expr) -> bool {
        let Expr::Hole { id, .. } = expr else { return false };
        self.columns.iter().any(|(known, column)| known == id && self.table.column(*column).not_null)
    }
}

/// Looks for conditions over one term.
struct Finder<'c> {
    conditions: &'c [Expr],
    known: &'c BTreeSet<ColId>,
    settled: Vec<usize>,
}

impl Finder<'_> {
    fn one(&mut self, term: &Term) -> Option<KeyPart> {
        self.compared(term, &[CompareOp::Eq]).map(|(part, _)| part)
    }

    fn edge(&mut self, term: &Term, ops: [CompareOp; 2]) -> Option<Edge> {
        let (part, op) = self.compared(term, &ops)?;
        Some(Edge { part, inclusive: matches!(op, CompareOp::LtEq | CompareOp::GtEq) })
    }

    /// The texts that begin as a constant pattern does. The pattern stays to be matched.
    fn beginning(&self, term: &Term) -> (Option<Edge>, Option<Edge>) {
        let beginning = self.conditions.iter().find_map(|condition| {
            let Expr::Call { function, args, .. } = condition else { return None };
            let [text, Expr::Const { value: Datum::Bytes(pattern), .. }] = args.as_slice() else { return None };
            term.compared_as(text)?;
            if !matches!(term.ty.underlying(), DataType::Text | DataType::Varchar(_)) {
                return None;
            }
            beginning_of(&function.name, std::str::from_utf8(pattern).ok()?)
        });
        let Some((beginning, rest)) = beginning else { return (None, None) };
        let edge = |text: &str, inclusive| {
            let part = KeyPart { value: Expr::text(text), ty: term.ty.clone() };
            Some(Edge { part, inclusive })
        };
        let upper = match rest {
            Rest::Nothing | Rest::Failure => edge(&beginning, true),
            Rest::Anything | Rest::Something => next_beginning(&beginning).and_then(|next| edge(&next, false)),
        };
        (edge(&beginning, true), upper)
    }

    /// The value that the term is compared with by one of these.
    fn compared(&mut self, term: &Term, ops: &[CompareOp]) -> Option<(KeyPart, CompareOp)> {
        let ty = &term.ty;
        self.conditions.iter().enumerate().find_map(|(at, condition)| {
            if let Some(value) = flag_of(term, condition).filter(|_| ops.contains(&CompareOp::Eq)) {
                self.settled.push(at);
                return Some((KeyPart { value: Expr::bool(value), ty: ty.clone() }, CompareOp::Eq));
            }
            let Expr::Call { function, args, .. } = condition else { return None };
            let [left, right] = args.as_slice() else { return None };
            let op = comparison(function)?;
            let (value, op, compared) = match (term.compared_as(left), term.compared_as(right)) {
                (Some(compared), None) => (right, op, compared),
                (None, Some(compared)) => (left, op.mirrored(), compared),
                _ => return None,
            };
            if !ops.contains(&op) || self.settled.contains(&at) {
                return None;
            }
            let asked = if op == CompareOp::Eq { Fitting::Equality } else { Fitting::Order };
            let part = KeyPart { value: self.fitting(value, &compared, ty, asked)?, ty: ty.clone() };
            self.settled.push(at);
            Some((part, op))
        })
    }

    fn many(&mut self, term: &Term) -> Option<KeyList> {
        let ty = &term.ty;
        self.conditions.iter().enumerate().find_map(|(at, condition)| {
            let values = match condition {
                Expr::InList { expr, list, equal, negated: false } if comparison(equal) == Some(CompareOp::Eq) => {
                    let compared = term.compared_as(expr)?;
                    let value = |value| self.fitting(value, &compared, ty, Fitting::Equality);
                    ListValues::Each(list.iter().map(value).collect::<Option<_>>()?)
                }
                Expr::AnyAll { left, function, array, all: false } if comparison(function) == Some(CompareOp::Eq) => {
                    let compared = term.compared_as(left)?;
                    let DataType::Array(element) = array.ty() else { return None };
                    let fits = self.is_fixed(array) && fitting(&element, &compared, ty).is_some();
                    ListValues::Array(fits.then(|| (**array).clone())?, (*element).clone())
                }
                _ => return None,
            };
            self.settled.push(at);
            Some(KeyList { values, ty: ty.clone() })
        })
    }

    /// A value that the column's rows do not decide, and that keys can be compared with.
    fn fitting(&self, value: &Expr, compared: &DataType, ty: &DataType, asked: Fitting) -> Option<Expr> {
        let fits = fitting(&value.ty(), compared, ty).is_some_and(|fitting| fitting >= asked);
        (fits && self.is_fixed(value)).then(|| value.clone())
    }

    fn is_fixed(&self, value: &Expr) -> bool {
        value.volatility() < Volatility::Volatile && needs(value).is_subset(self.known)
    }
}

/// `flag` or `NOT flag`: what a boolean term has to be.
fn flag_of(term: &Term, condition: &Expr) -> Option<bool> {
    match condition {
        Expr::Not(flag) if term.ty.underlying() == &DataType::Bool && term.is(flag) => Some(false),
        flag if term.ty.underlying() == &DataType::Bool && term.is(flag) => Some(true),
        _ => None,
    }
}
