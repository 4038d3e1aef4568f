//! Trees of the optimizer: their shapes, and that they give what the query gives as it is bound.

mod answers;
mod database;
mod eager;
mod interpret;
mod random;
mod shapes;
mod show;
mod speed;
mod tpch;
mod work;
