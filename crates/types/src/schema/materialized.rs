//! Materialized views (PostgreSQL manual 41.3): tables that keep the query whose rows they hold.

use super::TableDef;

/// The query of a table that is a materialized view.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Materialized {
    /// SQL text, which names what it reads by identity, as a view's.
    pub sql: String,
    /// Whether its rows are those of the query at some time. If not, there are none, and it cannot be read.
    pub populated: bool,
}

impl TableDef {
    /// As messages call it.
    pub fn kind_word(&self) -> &'static str {
        if self.materialized.is_some() { "materialized view" } else { "table" }
    }

    /// Whether it may be read.
    pub fn is_populated(&self) -> bool {
        self.materialized.as_ref().is_none_or(|kept| kept.populated)
    }
}
