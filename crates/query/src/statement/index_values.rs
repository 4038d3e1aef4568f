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
    terms: Arc<IndexTerms>,
}

/// Teaches the engine to evaluate.
pub(crate) fn install(engine: &Arc<Engine>, registry: &Arc<Registry>) {
    let (weak, registry) = (Arc::downgrade(engine), registry.clone());
    let bound: Mutex<HashMap<ObjectId, Arc<Bound>>> = Mutex::default();
    let eval = Arc::new(EvalContext::at(0));
    let context_eval = eval.clone();
    engine.set_index_values(Box::new(move |table, index, row| {
        let evaluated = |terms: &IndexTerms| values(terms, row, &eval).map_err(basalt_engine::Error::Expression);
        let known = bound.lock().get(&index.id).filter(|known| Arc::ptr_eq(&known.terms.index, index)).cloned();
        if let Some(known) = known.as_ref().filter(|known| Arc::ptr_eq(&known.table, table)) {
            return evaluated(&known.terms);
        }
        // Who began before ALTER TABLE … SET (option) and who began behind it have different definitions of the same columns.
        let terms = match known.filter(|known| known.table.columns == table.columns) {
            Some(known) => known.terms.clone(),
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
                Arc::new(bind_index(&ctx, table, index).map_err(to_engine)?)
            }
        };
        {
            let mut kept = bound.lock();
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(index.id, Arc::new(Bound { table: table.clone(), terms: terms.clone() }));
        }
        evaluated(&terms)
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
