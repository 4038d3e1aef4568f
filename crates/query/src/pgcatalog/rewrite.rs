//! `pg_rewrite`: the rule that each view and materialized view is in PostgreSQL, and what its query reads.

use super::rows::{Rows, oid, text, yes};
use super::{Fill, SystemContext, relations};
use crate::bind::pinned;
use crate::error::SqlError;
use basalt_engine::ViewDef;
use basalt_types::ObjectId;
use std::collections::BTreeSet;

pub(super) const PG_REWRITE: u32 = 2618;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    (name == "pg_rewrite").then_some(pg_rewrite as Fill)
}

fn pg_rewrite(system: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    for view in relations::kept_queries(system) {
        rows.push([
            ("oid", oid(rule_oid(&view))),
            ("rulename", text("_RETURN")),
            ("ev_class", oid(view.id.0)),
            ("ev_type", text("1")),
            ("ev_enabled", text("O")),
            ("is_instead", yes(true)),
        ])?;
    }
    Ok(())
}

/// The view's own: oids are unique within a catalog.
pub(super) fn rule_oid(view: &ViewDef) -> u32 {
    view.id.0
}

/// Tables, views and sequences that a view's query reads.
pub(super) fn relations_of(view: &ViewDef) -> BTreeSet<ObjectId> {
    crate::bind::parse_query(&view.sql).map(|query| pinned::relations_in(&query)).unwrap_or_default()
}
