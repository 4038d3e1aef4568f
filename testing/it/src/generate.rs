//! Random schemas, rows and statements that Basalt and PostgreSQL must agree on.
//!
//! A [`Generator`] makes statements as trees ([`node`]) out of what both catalogs list ([`catalog`]), so that every
//! function that Basalt learns is tried without being named here. [`run`] runs them on both servers, on rows that
//! are hot, frozen, merged and read back after a kill, compares ([`compare`]), and shrinks what differs.

pub mod catalog;
mod change;
pub(crate) mod compare;
mod expr;
mod fitting;
mod literals;
pub(crate) mod node;
mod query;
mod run;
mod schema;
pub(crate) mod types;

pub use run::{Options, Report, run};

use catalog::Catalog;
use node::Node;
use rand::rngs::StdRng;
use schema::Table;
use std::collections::HashMap;
use types::Types;

/// Makes statements; what it knows of the tables is what both servers have.
pub struct Generator<'a> {
    types: &'a Types,
    catalog: &'a Catalog,
    rng: StdRng,
    tables: Vec<Table>,
    /// By table: an id that no row has.
    next_id: HashMap<String, usize>,
    aliases: u32,
}

#[derive(Clone, Debug)]
pub struct Statement {
    node: Node,
    /// Whether the order of its rows is told.
    ordered: bool,
    /// The table that it changes.
    changes: Option<String>,
}
