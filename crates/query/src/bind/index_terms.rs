//! What an index is over, as expressions over a row of its table (`Expr::Column` is the position in column-id order).

use super::{BindContext, ParamTypes, bind_row_expr};
use crate::error::Result;
use crate::syntax::parse_expr_text;
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::TableDef;
use basalt_types::schema::{IndexDef, IndexSource};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct IndexTerms {
    pub index: Arc<IndexDef>,
    /// One per key column.
    pub columns: Vec<Expr>,
    /// Which rows have entries; `None`: all.
    pub predicate: Option<Expr>,
}

/// Binds the definition of an index. It is kept by identity and immutable: neither names nor settings decide.
pub fn bind_index(ctx: &BindContext, table: &Arc<TableDef>, index: &Arc<IndexDef>) -> Result<IndexTerms> {
    let expr = |sql: &str| bind_row_expr(ctx, table, &parse_expr_text(sql)?, None, &mut ParamTypes::none());
    let columns = index.columns.iter().map(|column| match &column.source {
        IndexSource::Column(id) => Ok(Expr::Column { index: id.position(), ty: column.ty.clone() }),
        IndexSource::Expression(sql) => expr(sql),
    });
    let columns = columns.collect::<Result<Vec<Expr>>>()?;
    let predicate = index.predicate.as_deref().map(expr).transpose()?;
    Ok(IndexTerms { index: index.clone(), columns, predicate })
}

/// Those indexes of a table that are over more than columns of all rows, for who looks for ways to rows. One whose
/// definition cannot be bound is no way.
pub(super) fn of_table(ctx: &BindContext, table: &Arc<TableDef>) -> Arc<[IndexTerms]> {
    let has_terms = |index: &&Arc<IndexDef>| index.predicate.is_some() || index.plain_columns().is_none();
    if !table.valid_indexes().any(|index| has_terms(&index)) {
        return Arc::default();
    }
    let ctx = BindContext {
        search_path: Vec::new(),
        eval: Arc::new(EvalContext::at(0)),
        sql: Arc::from(""),
        // Whoever may read the columns need not know of indexes.
        warnings: Arc::default(),
        needs: None,
        fields: None,
        current: None,
        ..ctx.clone()
    };
    table.valid_indexes().filter(has_terms).filter_map(|index| bind_index(&ctx, table, index).ok()).collect()
}
