//! What only a running server shows: drivers, sessions, hostile bytes, faults of files, crashes, TPC-H.

#![allow(clippy::disallowed_methods)]

mod at_once;
mod conflicts;
mod copy_messages;
mod copy_readers;
mod crash_points;
mod damage;
mod driver;
mod dump;
mod explain;
mod fairness;
mod full_disk;
mod hostile;
mod indexes_in_files;
mod large_changes;
mod lifecycle;
mod limits;
mod login;
mod long_statements;
mod notifications;
mod online_indexes;
mod orientation;
mod overload;
mod parameters;
mod portals;
mod query_groups;
mod reactors;
mod row_locks;
mod secrets;
mod serving;
mod shell;
mod spill;
mod terminate;
mod torture;
mod tpcc;
mod tpch;
mod unnamed_texts;
mod waits;
