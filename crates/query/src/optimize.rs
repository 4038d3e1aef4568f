//! The optimizer: from the bound plan to a tree for the column engine.
//!
//! The way of a query: [`convert`] makes its own tree ([`node`]) of the plan, joins of its subqueries ([`subquery`],
//! [`pull`], [`domain`]) and unions of its grouping sets ([`grouping`]); [`place`] puts conditions where their columns
//! come from and, region by region ([`region`]), joins in the order that is expected to be cheapest ([`graph`],
//! [`dphyp`], [`greedy`], [`linear`], [`assemble`]), with groups made below joins that leave them as they are
//! ([`eager`]); [`prune`] leaves out what nobody reads, [`reduce`] groups that nobody asks for. What it knows of the data
//! are [`facts`]; what it expects of rows on the way are [`profile`]s.
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
mod eager;
pub mod facts;
mod graph;
mod greedy;
mod group_exprs;
mod grouping;
mod having;
mod keys;
mod limits;
mod linear;
pub mod node;
mod place;
mod profile;
mod prune;
mod pull;
pub mod reduce;
mod region;
mod selectivity;
mod subquery;

use crate::plan::{ColId, Query};
use columns::{ColSet, free_columns, output};
use facts::Statistics;
use node::Node;
use place::Placement;
use std::cell::Cell;

/// The tree of a query, or why there is none. Its columns are those of [`Query::columns`], perhaps with others, in any
/// order.
pub fn optimize(query: &Query, statistics: &Statistics) -> Result<Node, &'static str> {
    let mut converter = convert::Converter::new(query, statistics).ok_or("columns that a cursor asks for")?;
    let node = converter.query().ok_or_else(|| converter.refusal().unwrap_or("a subquery that no join stands for"))?;
    let columns = query.columns.iter().map(|column| column.id).collect();
    finish(node, columns, statistics, &mut converter.next_id).ok_or("joins in no order that can be found")
}

/// A converted tree with conditions and joins in their places, for readers of these columns.
fn finish(node: Node, columns: ColSet, statistics: &Statistics, next_id: &mut ColId) -> Option<Node> {
    let placement = Placement { statistics, next_id: Cell::new(*next_id) };
    let mut node = placement.place(node, Vec::new())?.node;
    *next_id = placement.next_id.get();
    prune::prune(&mut node, &columns);
    keys::settle_nulls(&mut node);
    reduce::reduce(&mut node);
    let is_whole = free_columns(&node).is_empty() && columns.is_subset(&output(&node));
    is_whole.then_some(node)
}

#[cfg(test)]
mod tests;
