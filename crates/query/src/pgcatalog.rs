//! Virtual tables: pg_catalog, information_schema and schema basalt; and the functions that ask the same
//! questions.
//!
//! What columns a table has is a fact of PostgreSQL 15 (`shapes.txt`); what rows it has is computed when it
//! is scanned, from the catalog that the statement sees. A table without code for its rows is empty: nothing
//! that it could list exists here. Types that Basalt lacks take their nearest relative: `pg_node_tree`
//! and `aclitem` are text, `xid` is `int8`.

mod acls;
mod activity;
mod basalt;
mod casts;
mod class;
mod cluster;
mod definitions;
mod deparse;
mod depends;
mod descriptions;
mod functions;
mod indexes;
mod information;
mod listings;
mod locks;
pub(crate) mod names;
mod procs;
mod ranges;
mod readable;
mod relations;
mod rewrite;
mod rows;
mod shapes;
mod signatures;
mod time_modifiers;
mod typing;
mod user_types;
mod view_columns;

pub(crate) use definitions::index as index_text;
pub(crate) use deparse::expression_text;
pub use functions::registry;
pub(crate) use functions::sequences::{COLUMNS as SEQUENCE_COLUMNS, next_of_identity};

use crate::error::SqlError;
use crate::system::SystemContext;
use arrow_array::ArrayRef;
use basalt_types::DataType;
use rows::Rows;
use std::fmt;

/// A column's name and how to make its type.
pub type ColumnShape = (&'static str, fn() -> DataType);

/// A table whose rows are computed from the catalog and the running system.
pub struct VirtualTable {
    pub schema: &'static str,
    pub name: &'static str,
    pub oid: u32,
    pub columns: &'static [ColumnShape],
    /// A view in PostgreSQL.
    pub is_view: bool,
    fill: Fill,
}

/// Puts a table's rows in.
type Fill = fn(&SystemContext, &mut Rows) -> Result<(), SqlError>;

impl VirtualTable {
    /// One array per column.
    pub fn rows(&'static self, system: &SystemContext) -> Result<Vec<ArrayRef>, SqlError> {
        let mut rows = Rows::new(self);
        (self.fill)(system, &mut rows)?;
        Ok(rows.finish())
    }
}

impl fmt::Debug for VirtualTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// The virtual table of a name.
pub fn find(schema: &str, name: &str) -> Option<&'static VirtualTable> {
    shapes::all().by_name(schema, name)
}

/// Every virtual table, by schema and name.
pub fn tables() -> &'static [VirtualTable] {
    shapes::all().tables()
}

/// The code behind a table's rows.
fn fill_of(schema: &str, name: &str) -> Option<Fill> {
    match schema {
        "pg_catalog" => class::fill_of(name)
            .or_else(|| cluster::fill_of(name))
            .or_else(|| acls::fill_of(name))
            .or_else(|| casts::fill_of(name))
            .or_else(|| typing::fill_of(name))
            .or_else(|| ranges::fill_of(name))
            .or_else(|| user_types::fill_of(name))
            .or_else(|| procs::fill_of(name))
            .or_else(|| depends::fill_of(name))
            .or_else(|| rewrite::fill_of(name))
            .or_else(|| descriptions::fill_of(name))
            .or_else(|| listings::fill_of(name))
            .or_else(|| activity::fill_of(name)),
        "information_schema" => information::fill_of(name).or_else(|| acls::fill_of_information(name)),
        _ => basalt::fill_of(name),
    }
}

#[cfg(test)]
mod tests;
