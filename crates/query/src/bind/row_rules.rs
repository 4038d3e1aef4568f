//! What a table asks of its rows beyond their types, bound once per statement and applied to every new or changed
//! row by `statement::row_path`: generated columns, then NOT NULL, then CHECK (PostgreSQL manual 5.3, 5.4).
//!
//! Whoever adds a rule adds it here, in [`Binder::row_rules`], and to what [`RowPath`] does with it: every statement
//! that writes (INSERT, UPDATE, ON CONFLICT, MERGE, COPY, CREATE TABLE AS) takes its rules from here.
//!
//! [`RowPath`]: crate::statement::row_path::RowPath

use super::binder::Binder;
use super::stored::StoredKind;
use super::{BindContext, ParamTypes};
use crate::error::Result;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, TableDef};
use std::sync::Arc;

/// The rules of one table. Expressions are over a row in column-id order.
#[derive(Clone, Default, Debug)]
pub struct RowRules {
    /// Generated columns, each computed from the row without them. Values are of the columns' types.
    pub generated: Vec<(ColumnId, Expr)>,
    /// Columns whose values are cut as they are stored (`timestamp(3)`): position and modifier.
    pub cut: Vec<(usize, i32)>,
    /// In the order in which they are checked: by name.
    pub checks: Vec<RowCheck>,
    /// CHECK OPTION of the views that the statement writes through, by the view's name: true of every new row.
    pub view_checks: Vec<RowCheck>,
}

/// A CHECK constraint: violated by a row for which it is false.
#[derive(Clone, Debug)]
pub struct RowCheck {
    pub name: String,
    pub condition: Expr,
}

/// The rules of a table that a statement without a plan writes to (COPY, CREATE TABLE AS).
pub fn bind_row_rules(ctx: &BindContext, table: &Arc<TableDef>) -> Result<Arc<RowRules>> {
    Binder::new(ctx, &mut ParamTypes::none()).row_rules(table)
}

impl RowRules {
    /// What the types of columns ask for, and nothing else.
    pub fn of_types(table: &TableDef) -> RowRules {
        let cut = table.live_columns().filter_map(|column| Some((column.id.position(), column.time_modifier?)));
        RowRules { cut: cut.collect(), ..RowRules::default() }
    }
}

impl Binder<'_> {
    pub fn row_rules(&mut self, table: &Arc<TableDef>) -> Result<Arc<RowRules>> {
        let mut rules = RowRules::of_types(table);
        for column in table.live_columns() {
            let Some(sql) = &column.generated else { continue };
            let target = Some((column.name.as_str(), &column.ty));
            let expr = self.over_table(table, StoredKind::Generated, &super::parse_expr(sql)?, target)?;
            rules.generated.push((column.id, expr));
        }
        for check in &table.checks {
            let condition = self.over_table(table, StoredKind::Check, &super::parse_expr(&check.sql)?, None)?;
            rules.checks.push(RowCheck { name: check.name.clone(), condition });
        }
        Ok(Arc::new(rules))
    }
}
