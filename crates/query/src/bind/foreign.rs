//! Clauses of other dialects that sqlparser reads: a syntax error here, never passed over.

use crate::error::{Result, SqlError};
use sqlparser::ast::{Distinct, Query, Select, SelectFlavor};

fn refused(found: &[(&str, bool)]) -> Result<()> {
    match found.iter().find(|(_, there)| *there) {
        Some((clause, _)) => Err(SqlError::syntax(format!("syntax error at or near \"{clause}\""))),
        None => Ok(()),
    }
}

pub(super) fn refuse_in_select(select: &Select) -> Result<()> {
    if select.projection.is_empty() && matches!(select.distinct, Some(Distinct::Distinct)) {
        return Err(SqlError::syntax("SELECT DISTINCT must have at least one column"));
    }
    refused(&[
        ("TOP", select.top.is_some()),
        ("EXCLUDE", select.exclude.is_some()),
        ("LATERAL VIEW", !select.lateral_views.is_empty()),
        ("PREWHERE", select.prewhere.is_some()),
        ("CONNECT BY", !select.connect_by.is_empty()),
        ("CLUSTER BY", !select.cluster_by.is_empty()),
        ("DISTRIBUTE BY", !select.distribute_by.is_empty()),
        ("SORT BY", !select.sort_by.is_empty()),
        ("QUALIFY", select.qualify.is_some()),
        ("AS", select.value_table_mode.is_some()),
        ("FROM", !matches!(select.flavor, SelectFlavor::Standard)),
    ])
}

pub(super) fn refuse_in_query(query: &Query) -> Result<()> {
    refused(&[
        ("FOR", query.for_clause.is_some()),
        ("SETTINGS", query.settings.is_some()),
        ("FORMAT", query.format_clause.is_some()),
        ("|>", !query.pipe_operators.is_empty()),
    ])
}
