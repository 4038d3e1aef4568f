//! Which columns expressions and nodes refer to, and what stands for them elsewhere.

use super::node::{Node, Op};
use crate::plan::ColId;
use ahash::{AHashMap, AHashSet};
use basalt_expr::tree::Expr;
use basalt_types::DataType;

pub type ColSet = AHashSet<ColId>;

/// Expressions that columns stand for.
pub type Definitions = AHashMap<ColId, Expr>;

pub fn hole(id: ColId, ty: DataType) -> Expr {
    Expr::Hole { id, ty }
}

/// The column that an expression is.
pub fn column(expr: &Expr) -> Option<ColId> {
    match expr {
        Expr::Hole { id, .. } => Some(*id),
        _ => None,
    }
}

/// The columns that an expression refers to.
pub fn columns_of(expr: &Expr) -> ColSet {
    let mut out = ColSet::new();
    add_columns_of(expr, &mut out);
    out
}

pub fn add_columns_of(expr: &Expr, out: &mut ColSet) {
    expr.walk(&mut |node| {
        if let Expr::Hole { id, .. } = node {
            out.insert(*id);
        }
        true
    });
}

/// Whether an expression refers to one of these columns.
pub fn refers(expr: &Expr, columns: &ColSet) -> bool {
    expr.any(&mut |node| matches!(node, Expr::Hole { id, .. } if columns.contains(id)))
}

/// Whether it refers to no others.
pub fn within(expr: &Expr, columns: &ColSet) -> bool {
    !expr.any(&mut |node| matches!(node, Expr::Hole { id, .. } if !columns.contains(id)))
}

pub fn output(node: &Node) -> ColSet {
    node.columns().into_iter().map(|(id, _)| id).collect()
}

/// Puts expressions in the place of columns.
pub fn substitute(expr: Expr, definitions: &Definitions) -> Expr {
    if definitions.is_empty() {
        return expr;
    }
    expr.rewrite(&mut |node| match node {
        Expr::Hole { id, ty } => definitions.get(&id).cloned().unwrap_or(Expr::Hole { id, ty }),
        other => other,
    })
}

/// Columns that a tree refers to and does not define: those of outer queries.
pub fn free_columns(node: &Node) -> ColSet {
    let (mut used, mut defined) = (ColSet::new(), ColSet::new());
    collect(node, &mut used, &mut defined);
    used.retain(|id| !defined.contains(id));
    used
}

fn collect(node: &Node, used: &mut ColSet, defined: &mut ColSet) {
    node.exprs().into_iter().for_each(|expr| add_columns_of(expr, used));
    // What merely passes a column on does not define it.
    let passes = |id: ColId, expr: &Expr| matches!(expr, Expr::Hole { id: own, .. } if *own == id);
    match &node.op {
        Op::Project { exprs, .. } => {
            defined.extend(exprs.iter().filter(|(id, expr)| !passes(*id, expr)).map(|(id, _)| *id));
        }
        Op::Aggregate { groups, aggregates, .. } => {
            defined.extend(groups.iter().filter(|(id, expr)| !passes(*id, expr)).map(|(id, _)| *id));
            defined.extend(aggregates.iter().map(|(id, _)| *id));
        }
        Op::Scan { .. }
        | Op::Values { .. }
        | Op::Shared { .. }
        | Op::UnionAll { .. }
        | Op::Recursive { .. }
        | Op::Working { .. } => {
            defined.extend(node.columns().into_iter().map(|(id, _)| id));
        }
        Op::Window { calls, .. } => defined.extend(calls.iter().map(|(id, _)| *id)),
        Op::ProjectSet { sets, ordinality, .. } => {
            defined.extend(sets.iter().map(|(id, _)| *id).chain(*ordinality));
        }
        Op::Join { kind: super::node::JoinKind::Mark { id, .. }, .. } => {
            defined.insert(*id);
        }
        Op::Join { .. } | Op::Filter { .. } | Op::Sort { .. } | Op::Limit { .. } => {}
    }
    node.inputs().into_iter().for_each(|input| collect(input, used, defined));
}

/// A copy of a tree under ids of its own, and which id each of its columns has there.
pub fn copied(node: &Node, next_id: &mut ColId) -> (Node, AHashMap<ColId, ColId>) {
    let (mut used, mut defined) = (ColSet::new(), ColSet::new());
    collect(node, &mut used, &mut defined);
    let mut names = AHashMap::with_capacity(defined.len());
    for id in defined {
        names.insert(id, *next_id);
        *next_id += 1;
    }
    let mut copy = node.clone();
    rename(&mut copy, &names);
    (copy, names)
}

fn rename(node: &mut Node, names: &AHashMap<ColId, ColId>) {
    let change = |id: &mut ColId| *id = names.get(id).copied().unwrap_or(*id);
    for expr in node.exprs_mut() {
        let taken = std::mem::replace(expr, Expr::bool(false));
        *expr = taken.rewrite(&mut |mut node| {
            if let Expr::Hole { id, .. } = &mut node {
                change(id);
            }
            node
        });
    }
    match &mut node.op {
        Op::Scan { columns, .. } => columns.iter_mut().for_each(|(id, _)| change(id)),
        Op::Values { columns, .. } | Op::Working { columns, .. } => columns.iter_mut().for_each(|(id, _)| change(id)),
        Op::Shared { columns, .. } => columns.iter_mut().for_each(|column| change(&mut column.id)),
        // Its parts are read by nobody else.
        Op::Recursive { columns, .. } => columns.iter_mut().for_each(|column| change(&mut column.id)),
        Op::Project { exprs, .. } => exprs.iter_mut().for_each(|(id, _)| change(id)),
        Op::Aggregate { groups, aggregates, .. } => {
            groups.iter_mut().for_each(|(id, _)| change(id));
            aggregates.iter_mut().for_each(|(id, _)| change(id));
        }
        Op::Window { calls, .. } => calls.iter_mut().for_each(|(id, _)| change(id)),
        Op::ProjectSet { sets, ordinality, .. } => {
            sets.iter_mut().map(|(id, _)| id).chain(ordinality).for_each(change);
        }
        Op::Join { kind: super::node::JoinKind::Mark { id, .. }, .. } => change(id),
        Op::UnionAll { columns, .. } => columns.iter_mut().for_each(|column| {
            [&mut column.id, &mut column.left, &mut column.right].into_iter().for_each(change);
        }),
        Op::Join { .. } | Op::Filter { .. } | Op::Sort { .. } | Op::Limit { .. } => {}
    }
    node.inputs_mut().into_iter().for_each(|input| rename(input, names));
}
