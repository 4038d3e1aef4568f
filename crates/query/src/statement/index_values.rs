//! What the engine asks for to write entries of indexes with expressions or conditions: their values for a row.
//! Bound once per definition of an index; what they say is immutable, so settings of sessions play no part.

use crate::bind::{BindContext, IndexTerms, bind_index};
use crate::error::SqlError;
use basalt_engine::Engine;
use basalt_expr::EvalContext;
use basalt_expr::functions::Registry;
use basalt_types::{Datum, ObjectId, TableDef};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Bound indexes that are kept; beyond, all are bound anew.
const KEPT_MAX: usize = 1_000;

struct Bound {
    table: Arc<TableDef>,
    terms: IndexTerms,
}

/// Teaches the engine to evaluate.
pub(crate) fn install(engine: &Arc<Engine>, registry: &Arc<Registry>) {
    let (weak, registry) = (Arc::downgrade(engine), registry.clone());
    let bound: Mutex<HashMap<ObjectId, Arc<Bound>>> = Mutex::default();
    let eval = Arc::new(EvalContext::at(0));
    let context_eval = eval.clone();
    engine.set_index_values(Box::new(move |table, index, row| {
        let known = bound.lock().get(&index.id).cloned();
        let current = |bound: &Arc<Bound>| Arc::ptr_eq(&bound.terms.index, index) && Arc::ptr_eq(&bound.table, table);
        let bound_now = match known.filter(current) {
            Some(known) => known,
            None => {
                let engine = weak.upgrade().ok_or(basalt_engine::Error::ShuttingDown)?;
                let ctx = BindContext {
                    catalog: engine.catalog(),
                    database: basalt_engine::catalog::DEFAULT_DATABASE,
                    search_path: Vec::new(),
                    registry: registry.clone(),
                    eval: context_eval.clone(),
                    sql: Arc::from(""),
                    warnings: Arc::default(),
                    needs: None,
                    fields: None,
                    current: None,
                };
                let terms = bind_index(&ctx, table, index).map_err(to_engine)?;
                let new = Arc::new(Bound { table: table.clone(), terms });
                let mut kept = bound.lock();
                if kept.len() >= KEPT_MAX {
                    kept.clear();
                }
                kept.insert(index.id, new.clone());
                new
            }
        };
        values(&bound_now.terms, row, &eval).map_err(basalt_engine::Error::Expression)
    }));
}

fn to_engine(error: SqlError) -> basalt_engine::Error {
    basalt_engine::Error::Expression(error.into())
}

fn values(terms: &IndexTerms, row: &[Datum], eval: &EvalContext) -> Result<Option<Vec<Datum>>, basalt_expr::Error> {
    if let Some(predicate) = &terms.predicate
        && predicate.eval_scalar(row, eval)? != Datum::Bool(true)
    {
        return Ok(None);
    }
    terms.columns.iter().map(|column| column.eval_scalar(row, eval)).collect::<Result<Vec<Datum>, _>>().map(Some)
}
