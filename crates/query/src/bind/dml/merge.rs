//! MERGE: the data source joined to the target, and a choice among WHEN clauses for each row of that
//! (PostgreSQL manual, MERGE).
//!
//! The choice and the values of every action are outputs of the search, each computed for the rows that chose it. A
//! row of the target that is not there is one of an outer join.

use super::super::binder::Binder;
use super::super::locking::expose;
use super::super::scope::{Clause, Scope};
use super::assign::null_of;
use super::modify::{Searching, factor_name};
use super::own_values::Overriding;
use super::target::{Target, Verb};
use super::{Action, BoundModify, SearchKind};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, JoinKind, Plan};
use basalt_engine::privilege;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, DataType};
use sqlparser::ast::{self, MergeAction, MergeClauseKind, MergeInsertKind};

/// A WHEN clause, bound.
struct When {
    matched: bool,
    condition: Option<Expr>,
    action: WhenAction,
}

enum WhenAction {
    Update(Vec<(ColumnId, Expr)>),
    Delete,
    Insert(Vec<Expr>),
    Nothing,
}

impl Binder<'_> {
    pub fn merge(&mut self, merge: &ast::Merge) -> Result<BoundModify> {
        if merge.output.is_some() {
            return Err(SqlError::syntax("syntax error at or near \"RETURNING\""));
        }
        if merge.clauses.is_empty() {
            return Err(SqlError::syntax("syntax error at end of input"));
        }
        let Some((name, alias)) = factor_name(&merge.table) else {
            return Err(SqlError::syntax("a table name is expected"));
        };
        let target = self.target(name, alias, Verb::Merge)?;
        let out_of_sight = vec![target.relation.clone()];
        self.scopes.push(Scope { out_of_sight, ..Scope::new(Clause::FromFunction) });
        let source = ast::TableWithJoins { relation: merge.source.clone(), joins: Vec::new() };
        let source_plan = self.table_list(std::slice::from_ref(&source))?;
        if self.scope().relations.iter().any(|other| other.name == target.relation.name && !other.hidden) {
            return Err(SqlError::new("42712", format!("name \"{}\" specified more than once", target.relation.name))
                .with_detail("The name is used both as MERGE target table and data source."));
        }
        let source_scope = (self.scope().relations.clone(), self.scope().visible.clone());
        target.enter(self.scope());
        self.scope().clause = Clause::FromOn;
        let on = self.condition("JOIN/ON", &merge.on)?;
        let both_scope = (self.scope().relations.clone(), self.scope().visible.clone());
        let mut whens = Vec::with_capacity(merge.clauses.len());
        for clause in &merge.clauses {
            let matched = match clause.clause_kind {
                MergeClauseKind::Matched => true,
                MergeClauseKind::NotMatched => false,
                _ => return Err(SqlError::syntax("syntax error at or near \"BY\"")),
            };
            if whens.iter().any(|when: &When| when.matched == matched && when.condition.is_none()) {
                return Err(SqlError::syntax("unreachable WHEN clause specified after unconditional WHEN clause"));
            }
            let (relations, visible) = if matched { both_scope.clone() } else { source_scope.clone() };
            let scope = self.scope();
            (scope.relations, scope.visible) = (relations, visible);
            scope.out_of_sight = if matched { Vec::new() } else { vec![target.relation.clone()] };
            whens.push(self.when(&target, clause, matched)?);
        }
        self.scopes.pop();
        let outer = whens.iter().any(|when| !when.matched);
        let identity = [self.fresh(), self.fresh(), self.fresh()];
        let mut input = Plan::Join {
            left: Box::new(source_plan),
            right: Box::new(target.plan(Some(identity))),
            kind: if outer { JoinKind::Left } else { JoinKind::Inner },
            condition: Some(on),
            lateral: false,
        };
        let mut presence = Vec::new();
        self.mark_presence(&mut input, false, &mut presence);
        // The target's is the last: it stands right of all others.
        let present = presence.last().copied().filter(|_| outer);
        if let Some(id) = present {
            expose(&mut input, id);
        }
        self.chosen(target, input, identity, presence, present, whens)
    }

    fn when(&mut self, target: &Target, clause: &ast::MergeClause, matched: bool) -> Result<When> {
        self.scope().clause = Clause::MergeWhen;
        let condition = match &clause.predicate {
            Some(predicate) => Some(self.condition("WHEN", predicate)?),
            None => None,
        };
        let action = match &clause.action {
            MergeAction::Delete { .. } => {
                self.need_more(privilege::DELETE, std::iter::empty());
                WhenAction::Delete
            }
            MergeAction::Update(update) => {
                if update.update_predicate.is_some() || update.delete_predicate.is_some() {
                    return Err(SqlError::syntax("syntax error at or near \"WHERE\""));
                }
                match crate::syntax::is_merge_nothing(&clause.action) {
                    true => WhenAction::Nothing,
                    false => {
                        self.scope().clause = Clause::Update;
                        let set = self.assignments(target, &update.assignments)?;
                        self.need_more(privilege::UPDATE, set.iter().map(|(column, _)| column.0 as i16));
                        WhenAction::Update(set)
                    }
                }
            }
            MergeAction::Insert(_) if crate::syntax::is_merge_nothing(&clause.action) => WhenAction::Nothing,
            MergeAction::Insert(insert) => {
                self.scope().clause = Clause::Values;
                WhenAction::Insert(self.merge_insert(target, insert)?)
            }
        };
        Ok(When { matched, condition, action })
    }

    fn merge_insert(&mut self, target: &Target, insert: &ast::MergeInsertExpr) -> Result<Vec<Expr>> {
        let columns = self.insert_targets(target, &insert.columns)?;
        let filled = |width: usize| columns.iter().take(width).map(|column| column.id.0 as i16);
        if crate::syntax::is_merge_default_values(insert) {
            self.need_more(privilege::INSERT, filled(0));
            return self.default_row(target, &[]);
        }
        let MergeInsertKind::Values(values) = &insert.kind else {
            return Err(SqlError::syntax("INSERT takes VALUES"));
        };
        let [row] = values.rows.as_slice() else {
            return Err(SqlError::syntax("syntax error at or near \",\""));
        };
        let named = !insert.columns.is_empty();
        let (row, overriding) = crate::syntax::merge_values(&row.content);
        self.need_more(privilege::INSERT, filled(row.len()));
        let mut rows = self.insert_rows(target, Overriding::named(overriding), &columns, named, &[row])?;
        rows.pop().ok_or_else(|| SqlError::internal("a row of VALUES is gone"))
    }

    /// Adds the choice and the actions' values to the join.
    fn chosen(
        &mut self,
        target: Target,
        input: Plan,
        identity: [ColId; 3],
        presence: Vec<ColId>,
        present: Option<ColId>,
        whens: Vec<When>,
    ) -> Result<BoundModify> {
        let missing = |matched: bool| {
            let hole = |id| Box::new(Expr::Hole { id, ty: DataType::Bool });
            match (present, matched) {
                (Some(id), true) => Expr::IsNull(hole(id)),
                (Some(id), false) => Expr::IsNotNull(hole(id)),
                (None, matched) => Expr::bool(!matched),
            }
        };
        let mut branches = Vec::with_capacity(whens.len());
        let mut bound_actions = Vec::with_capacity(whens.len());
        for when in whens {
            let holds = Expr::Case {
                branches: vec![(missing(when.matched), Expr::bool(false))],
                otherwise: Some(Box::new(when.condition.unwrap_or_else(|| Expr::bool(true)))),
                ty: DataType::Bool,
            };
            let number = i32::try_from(bound_actions.len()).unwrap_or(i32::MAX);
            let number = match when.action {
                WhenAction::Nothing => null_of(&DataType::Int4),
                _ => Expr::int4(number),
            };
            branches.push((holds, number));
            if !matches!(when.action, WhenAction::Nothing) {
                bound_actions.push(when.action);
            }
        }
        let otherwise = Some(Box::new(null_of(&DataType::Int4)));
        let choice = match branches.is_empty() {
            true => null_of(&DataType::Int4),
            false => Expr::Case { branches, otherwise, ty: DataType::Int4 },
        };
        let id = self.fresh();
        let passed = input.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
        let exprs = passed.chain([(id, choice)]).collect();
        let input = Plan::Project { input: Box::new(input), exprs };
        let chosen = Expr::Hole { id, ty: DataType::Int4 };
        let mut searching = Searching { input, outputs: Vec::new(), identity, presence, present };
        let choice = Some(searching.output(id, chosen.clone()));
        let mut actions = Vec::with_capacity(bound_actions.len());
        for (number, action) in bound_actions.into_iter().enumerate() {
            let number = Expr::int4(i32::try_from(number).unwrap_or(i32::MAX));
            let is_chosen = self.operator("=", Some(chosen.clone()), number)?;
            let mut guarded = |binder: &mut Self, value: Expr| {
                let ty = value.ty();
                let otherwise = Some(Box::new(null_of(&ty)));
                let value = Expr::Case { branches: vec![(is_chosen.clone(), value)], otherwise, ty };
                let id = binder.fresh();
                searching.output(id, value)
            };
            actions.push(match action {
                WhenAction::Delete => Action::Delete,
                WhenAction::Nothing => return Err(SqlError::internal("DO NOTHING has a number")),
                WhenAction::Update(set) => {
                    Action::Update(set.into_iter().map(|(column, value)| (column, guarded(self, value))).collect())
                }
                WhenAction::Insert(row) => Action::Insert(row.into_iter().map(|value| guarded(self, value)).collect()),
            });
        }
        let search = self.search(&target, searching, SearchKind::Merge, choice, actions, true);
        self.finish_search(target, search, None, Vec::new())
    }
}
