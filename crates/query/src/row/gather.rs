//! A plan of joins, filters and projections as what it comes to: tables, conditions, and which table comes after which.

use super::access::{Access, Edge, KeyList, KeyPart, ListValues, Part};
use crate::bind::point::{is_column, is_comparable, is_exact};
use crate::plan::{ColId, JoinKind, Plan, SortKey};
use basalt_engine::Direction;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::schema::IndexDef;
use basalt_types::{ColumnId, CompareOp, DataType, TableDef};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A table of the plan.
pub(super) struct Relation {
    pub table: Arc<TableDef>,
    pub columns: Vec<(ColId, ColumnId)>,
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
            Plan::Scan { table, columns, identity } => {
                let (columns, identity) = (columns.clone(), *identity);
                self.relations.push(Relation { table: table.clone(), columns, identity, optional: None });
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

/// The kind of an access that looks at all rows.
const UNBOUNDED: u8 = 4;

/// A way to a relation's rows.
pub(super) struct Way {
    pub rank: Rank,
    pub access: Access,
    /// Which conditions it makes true.
    pub settled: Vec<usize>,
    /// Columns of its key, in order.
    pub key: Vec<ColId>,
}

impl Relation {
    pub fn defines(&self, id: ColId) -> bool {
        self.columns.iter().any(|(known, _)| *known == id) || self.identity.iter().flatten().any(|known| *known == id)
    }

    /// The ways to the rows, given the columns of tables before it.
    pub fn ways(&self, conditions: &[Expr], known: &BTreeSet<ColId>) -> Vec<Way> {
        let keys = self.table.primary_key.iter().map(|key| (None, key.columns.clone()));
        let plain = |index: &&Arc<IndexDef>| index.predicate.is_none();
        let indexes = self.table.indexes.iter().filter(plain);
        let indexes = indexes.filter_map(|index| Some((Some(index), index.plain_columns()?)));
        let ways = keys.chain(indexes);
        ways.map(|(index, columns)| self.way_by(index.cloned(), &columns, conditions, known)).collect()
    }

    fn way_by(
        &self,
        index: Option<Arc<IndexDef>>,
        columns: &[ColumnId],
        conditions: &[Expr],
        known: &BTreeSet<ColId>,
    ) -> Way {
        let mut finder = Finder { conditions, known, settled: Vec::new() };
        let (mut prefix, mut key, mut many) = (Vec::new(), Vec::new(), 0);
        let (mut lower, mut upper) = (None, None);
        let mut complete = true;
        for column in columns {
            let ty = &self.table.column(*column).ty;
            // Nobody reads it: no condition names it either.
            let Some((id, _)) = self.columns.iter().find(|(_, known)| known == column) else {
                complete = false;
                break;
            };
            key.push(*id);
            if let Some(part) = finder.one(*id, ty) {
                prefix.push(Part::One(part));
            } else if let Some(list) = finder.many(*id, ty) {
                many += 1;
                prefix.push(Part::Many(list));
            } else {
                lower = finder.edge(*id, ty, [CompareOp::Gt, CompareOp::GtEq]);
                upper = finder.edge(*id, ty, [CompareOp::Lt, CompareOp::LtEq]);
                complete = false;
                break;
            }
        }
        let whole = complete && index.as_ref().is_none_or(|index| index.unique && !index.is_deferrable());
        let bounds = usize::from(lower.is_some()) + usize::from(upper.is_some());
        let by_index = index.is_some();
        let rank = match (whole, many) {
            (true, 0) => (0, 0, by_index),
            (true, _) => (1, 0, by_index),
            // More is better, wherever it is.
            (false, _) if !prefix.is_empty() => (2, 64 - (2 * prefix.len() + bounds).min(64), by_index),
            (false, _) if bounds > 0 => (3, 2 - bounds, by_index),
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
        let mut columns = relation.key_columns(self.access.index.as_deref()).into_iter().skip(fixed);
        let mut direction = None;
        for key in keys {
            let Expr::Hole { id, .. } = &key.expr else { return false };
            if self.key.iter().take(fixed).any(|fixed| fixed == id) {
                continue;
            }
            let Some(column) = columns.next() else {
                if alone && self.access.index.is_none() {
                    // The whole of a unique key: nothing is left to order.
                    break;
                }
                return false;
            };
            let is_it = relation.columns.iter().any(|(known, of)| known == id && *of == column);
            let no_nulls = self.access.index.is_none() || relation.table.column(column).not_null;
            let nulls_fit = no_nulls || key.nulls_first == key.descending;
            let wanted = if key.descending { Direction::Descending } else { Direction::Ascending };
            if !is_it || !nulls_fit || *direction.get_or_insert(wanted) != wanted {
                return false;
            }
            if !sorts_as_bytes(&relation.table.column(column).ty) {
                return false;
            }
        }
        self.access.direction = direction.unwrap_or(Direction::Ascending);
        true
    }
}

impl Relation {
    fn key_columns(&self, index: Option<&IndexDef>) -> Vec<ColumnId> {
        match index {
            None => self.table.primary_key.iter().flat_map(|key| key.columns.clone()).collect(),
            Some(index) => index.plain_columns().unwrap_or_default(),
        }
    }
}

/// Whether keys of the type are in the order of its values.
fn sorts_as_bytes(ty: &DataType) -> bool {
    is_exact(ty, ty)
}

/// Looks for conditions over one column.
struct Finder<'c> {
    conditions: &'c [Expr],
    known: &'c BTreeSet<ColId>,
    settled: Vec<usize>,
}

impl Finder<'_> {
    fn one(&mut self, id: ColId, ty: &DataType) -> Option<KeyPart> {
        self.compared(id, ty, &[CompareOp::Eq]).map(|(part, _)| part)
    }

    fn edge(&mut self, id: ColId, ty: &DataType, ops: [CompareOp; 2]) -> Option<Edge> {
        let (part, op) = self.compared(id, ty, &ops)?;
        Some(Edge { part, inclusive: matches!(op, CompareOp::LtEq | CompareOp::GtEq) })
    }

    /// The value that the column is compared with by one of these.
    fn compared(&mut self, id: ColId, ty: &DataType, ops: &[CompareOp]) -> Option<(KeyPart, CompareOp)> {
        self.conditions.iter().enumerate().find_map(|(at, condition)| {
            let Expr::Call { function, args, .. } = condition else { return None };
            let [left, right] = args.as_slice() else { return None };
            let op = function.comparison()?;
            let (value, op) = match (is_column(left, id, ty), is_column(right, id, ty)) {
                (true, false) => (right, op),
                (false, true) => (left, mirrored(op)),
                _ => return None,
            };
            if !ops.contains(&op) || self.settled.contains(&at) {
                return None;
            }
            let exactly = op != CompareOp::Eq;
            let part = KeyPart { value: self.fitting(value, ty, exactly)?, ty: ty.clone() };
            self.settled.push(at);
            Some((part, op))
        })
    }

    fn many(&mut self, id: ColId, ty: &DataType) -> Option<KeyList> {
        self.conditions.iter().enumerate().find_map(|(at, condition)| {
            let values = match condition {
                Expr::InList { expr, list, equal, negated: false }
                    if is_column(expr, id, ty) && equal.is_equality() =>
                {
                    ListValues::Each(list.iter().map(|value| self.fitting(value, ty, false)).collect::<Option<_>>()?)
                }
                Expr::AnyAll { left, function, array, all: false }
                    if is_column(left, id, ty) && function.comparison() == Some(CompareOp::Eq) =>
                {
                    let DataType::Array(element) = array.ty() else { return None };
                    let fits = self.is_fixed(array) && is_comparable(&element, ty);
                    ListValues::Array(fits.then(|| (**array).clone())?, (*element).clone())
                }
                _ => return None,
            };
            self.settled.push(at);
            Some(KeyList { values, ty: ty.clone() })
        })
    }

    /// A value that the column's rows do not decide. `exactly`: the column's type holds every value of its type.
    fn fitting(&self, value: &Expr, ty: &DataType, exactly: bool) -> Option<Expr> {
        let fits = if exactly { is_exact(&value.ty(), ty) } else { is_comparable(&value.ty(), ty) };
        (fits && self.is_fixed(value)).then(|| value.clone())
    }

    fn is_fixed(&self, value: &Expr) -> bool {
        value.volatility() < Volatility::Volatile && needs(value).is_subset(self.known)
    }
}

/// The same comparison with its sides changed.
fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::LtEq => CompareOp::GtEq,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::GtEq => CompareOp::LtEq,
        op => op,
    }
}
