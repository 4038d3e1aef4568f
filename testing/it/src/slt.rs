//! SQL scripts that Basalt and PostgreSQL run side by side, and whose answers must be the same.
//!
//! A script is paragraphs separated by empty lines; a line that starts with `#` is a comment. A paragraph is
//! a statement, sent as it is to both servers. Compared are column names, type oids, values as text (in order
//! where the statement has an ORDER BY of its own, else sorted), command tag, SQLSTATE of the error or the
//! notices, notifications, and the transaction status. Queries are run once more in the extended protocol with binary
//! results. Lines that start with `@` say what is special about the paragraph, or stand alone:
//!
//! | directive | meaning |
//! |---|---|
//! | `@only basalt` | Basalt alone; what it must answer follows a line `----` |
//! | `@only postgres` | PostgreSQL alone, its answer is not looked at |
//! | `@differs "reason"` | both run it, Basalt must answer what follows `----`, and PostgreSQL something else |
//! | `@shape` | columns, types, tag and number of rows are compared, values are not |
//! | `@text` | no second run in the extended protocol |
//! | `@engines chosen` | the answer tells of engines, and is looked at only where the planner chooses them |
//! | `@binary COPY` | the bytes of COPY are hexadecimal digits |
//! | `@connection NAME` | from here on statements go to this session |
//! | `@send NAME` | the statement is sent on that session and not waited for |
//! | `@blocked NAME` | what was sent is still waiting |
//! | `@wait NAME` | its answer is taken and compared |
//! | `@freeze`, `@compact` | VACUUM, VACUUM FULL on Basalt |
//! | `@restart` | kill -9 of Basalt, and a start on the same directory |
//! | `@sleep MS` | on both |
//! | `@states` | everything below is queries: run on hot rows, after a freeze, a restart, a compaction, in row files |
//!
//! A script runs several times, with the engines that the planner chooses, without the row engine, and on the fallback
//! ([`crate::engines`]). Plans that EXPLAIN tells of Basalt alone are as with `@engines chosen`.
//!
//! After `----` stand the data of a COPY FROM STDIN, or the expected answer in the form that failures print.

mod parse;
mod render;
mod run;
mod shapes;

pub use parse::{Step, parse};
pub use render::{render, render_expected};
pub use run::{Outcome, run_file};
pub use shapes::Words;
