//! Grouping: expressions above an aggregation see its groups and results, nothing else of its input.

use super::binder::Binder;
use super::group_by::Groups;
use super::position;
use crate::error::{Result, SqlError};
use crate::plan::{AggregateCall, ColId, GroupingSets, Plan, SubqueryKind};
use basalt_expr::tree::Expr;

pub(super) struct Grouping {
    pub groups: Groups,
    pub aggregates: Vec<(ColId, AggregateCall)>,
    pub groupings: Vec<(ColId, Vec<Expr>, Option<u32>)>,
}

/// What expressions above an aggregation may refer to.
struct Above {
    /// Columns of its input.
    input: Vec<ColId>,
    groups: Vec<(ColId, Expr)>,
    /// Columns that the groups determine.
    determined: Vec<ColId>,
    /// Those of them that are used.
    needed: Vec<(ColId, Expr)>,
    /// GROUPING calls that are always 0.
    zeros: Vec<ColId>,
}

impl Binder<'_> {
    /// Puts the aggregation over `input` and rewrites `exprs` to stand above it. 42803 for a column that is
    /// neither grouped nor inside an aggregate, unless a grouped primary key determines it.
    pub fn aggregate_plan<'e>(
        &mut self,
        input: Plan,
        grouping: Grouping,
        exprs: impl Iterator<Item = &'e mut Expr>,
    ) -> Result<Plan> {
        let available: Vec<ColId> = input.columns().into_iter().map(|(id, _)| id).collect();
        let Groups { exprs: group_exprs, sets } = grouping.groups;
        let mut groups: Vec<(ColId, Expr)> = Vec::with_capacity(group_exprs.len());
        for expr in group_exprs {
            let id = match &expr {
                Expr::Hole { id, .. } if available.contains(id) => *id,
                other => {
                    let typmod = self.typmod(other);
                    let id = self.fresh();
                    self.set_typmod(id, typmod);
                    id
                }
            };
            groups.push((id, expr));
        }
        let groupings = grouped_arguments(&groups, grouping.groupings)?;
        let zeros = if sets.is_none() { groupings.iter().map(|(id, _)| *id).collect() } else { Vec::new() };
        let determined = self.determined_columns(&groups, sets.as_deref());
        let mut above = Above { input: available, groups, determined, needed: Vec::new(), zeros };
        for expr in exprs {
            self.lift(expr, &mut above)?;
        }
        let mut windows = std::mem::take(&mut self.scope().windows);
        for (_, call) in &mut windows {
            for expr in call.exprs_mut() {
                self.lift(expr, &mut above)?;
            }
        }
        self.scope().windows = windows;
        for (_, call) in &grouping.aggregates {
            // Arguments that are no column of the order must be grouped.
            let direct = call.args.len() - call.resolved.orders.len();
            for arg in call.args[..direct].iter().filter(|_| !call.resolved.orders.is_empty()) {
                self.lift(&mut arg.clone(), &mut above).map_err(|error| match error.sqlstate {
                    "42803" => {
                        error.with_detail("Direct arguments of an ordered-set aggregate must use only grouped columns.")
                    }
                    _ => error,
                })?;
            }
        }
        let Above { mut groups, needed, .. } = above;
        let given = groups.len();
        // Subqueries that are grouped by are computed below.
        let mut input = input;
        let is_subquery = |node: &Expr| matches!(node, Expr::Hole { id, .. } if self.subqueries.contains_key(id));
        let mut computed = Vec::new();
        for (id, expr) in &mut groups {
            if expr.any(&mut |node| is_subquery(node)) {
                let ty = expr.ty();
                computed.push((*id, std::mem::replace(expr, Expr::Hole { id: *id, ty })));
            }
        }
        if !computed.is_empty() {
            let passed = input.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
            let exprs = passed.chain(computed).collect();
            input = Plan::Project { input: Box::new(input), exprs };
        }
        groups.extend(needed);
        let sets = sets.map(|sets| {
            let all = sets.into_iter().map(|set| set.into_iter().chain(given..groups.len()).collect()).collect();
            GroupingSets { sets: all, groupings }
        });
        Ok(Plan::Aggregate { input: Box::new(input), groups, aggregates: grouping.aggregates, sets })
    }

    /// Columns of relations whose whole primary key is grouped, in every set.
    fn determined_columns(&mut self, groups: &[(ColId, Expr)], sets: Option<&[Vec<usize>]>) -> Vec<ColId> {
        let everywhere = |at: usize| sets.is_none_or(|sets| sets.iter().all(|set| set.contains(&at)));
        let grouped = |id: &ColId| {
            let mut groups = groups.iter().enumerate();
            groups.any(|(at, (_, expr))| matches!(expr, Expr::Hole { id: known, .. } if known == id) && everywhere(at))
        };
        let relations = self.scope().relations.iter();
        relations
            .filter(|relation| !relation.key.is_empty() && relation.key.iter().all(grouped))
            .flat_map(|relation| relation.columns.iter().map(|column| column.id))
            .collect()
    }

    fn lift(&mut self, expr: &mut Expr, above: &mut Above) -> Result<()> {
        if let Some((id, group)) = above.groups.iter().find(|(_, group)| group == expr) {
            *expr = Expr::Hole { id: *id, ty: group.ty() };
            return Ok(());
        }
        if let Expr::Hole { id, .. } = expr {
            let id = *id;
            if above.zeros.contains(&id) {
                *expr = Expr::int4(0);
            } else if above.input.contains(&id) {
                self.determined(id, expr, above, false)?;
            } else if self.subqueries.contains_key(&id) {
                self.lift_subquery(id, above)?;
            }
            return Ok(());
        }
        for child in expr.children_mut() {
            self.lift(child, above)?;
        }
        Ok(())
    }

    /// A column of the input, which is not grouped itself.
    fn determined(&mut self, id: ColId, expr: &Expr, above: &mut Above, in_subquery: bool) -> Result<()> {
        if !above.determined.contains(&id) {
            return Err(self.not_grouped(id, in_subquery));
        }
        if !above.needed.iter().any(|(known, _)| *known == id) {
            above.needed.push((id, expr.clone()));
        }
        Ok(())
    }

    /// What a subquery compares with stands above; what it uses inside must be grouped columns.
    fn lift_subquery(&mut self, id: ColId, above: &mut Above) -> Result<()> {
        if let Some(subquery) = self.subqueries.get(&id) {
            let mut kind = subquery.kind.clone();
            if let SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } = &mut kind {
                self.lift(condition, above)?;
            }
            if let Some(subquery) = self.subqueries.get_mut(&id) {
                subquery.kind = kind;
            }
        }
        for (id, ty) in self.outer_columns(id) {
            let grouped = above.groups.iter().any(|(known, _)| *known == id);
            if !grouped && above.input.contains(&id) {
                self.determined(id, &Expr::Hole { id, ty }, above, true)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn not_grouped(&mut self, id: ColId, in_subquery: bool) -> SqlError {
        let scope = self.scope();
        let span = scope.seen.iter().find(|(known, _)| *known == id).map(|(_, span)| *span);
        let named = scope.relations.iter().find_map(|relation| {
            let column = relation.columns.iter().find(|column| column.id == id)?;
            Some(format!("{}.{}", relation.name, column.name))
        });
        let named = named.unwrap_or_default();
        let message = match in_subquery {
            true => format!("subquery uses ungrouped column \"{named}\" from outer query"),
            false => {
                format!("column \"{named}\" must appear in the GROUP BY clause or be used in an aggregate function")
            }
        };
        SqlError::new("42803", message).at(span.and_then(|span| position::of_span(&self.ctx.sql, span)))
    }
}

/// The places among the groups that GROUPING calls ask about.
fn grouped_arguments(
    groups: &[(ColId, Expr)],
    calls: Vec<(ColId, Vec<Expr>, Option<u32>)>,
) -> Result<Vec<(ColId, Vec<usize>)>> {
    let mut out = Vec::with_capacity(calls.len());
    for (id, args, place) in calls {
        let places = args.iter().map(|arg| groups.iter().position(|(_, group)| group == arg));
        let places = places.collect::<Option<Vec<usize>>>().ok_or_else(|| {
            let message = "arguments to GROUPING must be grouping expressions of the associated query level";
            SqlError::new("42803", message).at(place)
        })?;
        out.push((id, places));
    }
    Ok(out)
}
