//! The optimizer: from the bound plan to a tree for the column engine.
//!
//! The way of a query: [`convert`] makes its own tree ([`node`]) of the plan, joins of its subqueries ([`subquery`],
//! [`pull`], [`domain`]) and unions of its grouping sets ([`grouping`]); [`place`] puts conditions where their columns
//! come from and, region by region ([`region`]), joins in the order that is expected to be cheapest ([`graph`],
//! [`dphyp`], [`greedy`], [`assemble`]); [`prune`] leaves out what nobody reads, [`reduce`] groups that nobody asks for.
//! What it knows of the data are [`facts`]; what it expects of rows on the way are [`profile`]s.
//!
//! It refuses whatever it does not understand, and what must not be computed out of turn (volatile calls, subqueries
//! inside CASE): such queries run as they are bound. Errors of expressions may come out of turn: a query that fails
//! before its first row is run again as it is bound.

mod assemble;
mod classes;
pub mod columns;
mod conjuncts;
mod convert;
mod domain;
mod dphyp;
pub mod facts;
mod graph;
mod greedy;
mod grouping;
mod keys;
pub mod node;
mod place;
mod profile;
mod prune;
mod pull;
pub mod reduce;
mod region;
mod selectivity;
mod subquery;

use crate::plan::Query;
use columns::{ColSet, free_columns, output};
use facts::Statistics;
use node::Node;
use place::Placement;

/// The tree of a query, or why there is none. Its columns are those of [`Query::columns`], perhaps with others, in any
/// order.
pub fn optimize(query: &Query, statistics: &Statistics) -> Result<Node, &'static str> {
    let mut converter = convert::Converter::new(query, statistics).ok_or("columns that a cursor asks for")?;
    let node = converter.query().ok_or_else(|| converter.refusal().unwrap_or("a subquery that no join stands for"))?;
    let columns = query.columns.iter().map(|column| column.id).collect();
    finish(node, columns, statistics).ok_or("joins in no order that can be found")
}

/// A converted tree with conditions and joins in their places, for readers of these columns.
fn finish(node: Node, columns: ColSet, statistics: &Statistics) -> Option<Node> {
    let mut node = Placement { statistics }.place(node, Vec::new())?.node;
    prune::prune(&mut node, &columns);
    reduce::reduce(&mut node);
    let is_whole = free_columns(&node).is_empty() && columns.is_subset(&output(&node));
    is_whole.then_some(node)
}

#[cfg(test)]
mod tests;
