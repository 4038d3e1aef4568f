//! What goes on beside the clients: rows are moved, indexes come and go, tables are altered, memory is used up.

use super::{FILLER_ID, HEAVY_ROWS, Rest, Shared};
use crate::wire::Wire;
use anyhow::{Result, bail};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::time::Duration;

/// Of a table `@`, in any order; what an earlier one has made or not decides whether it does something.
const MOVES: [&str; 6] = [
    "VACUUM @",
    "VACUUM @",
    "VACUUM FULL @",
    "ALTER TABLE @ SET (orientation = 'row')",
    "ALTER TABLE @ SET (orientation = 'row,column')",
    "ALTER TABLE @ SET (orientation = 'column')",
];
const CHANGES: [&str; 25] = [
    "VACUUM @",
    "VACUUM @",
    "VACUUM FULL @",
    "CHECKPOINT",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS @_grp ON @ (grp)",
    "DROP INDEX CONCURRENTLY IF EXISTS @_grp",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS @_note ON @ (note, id)",
    "DROP INDEX IF EXISTS @_note",
    "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS @_both ON @ (grp, code)",
    "DROP INDEX CONCURRENTLY IF EXISTS @_both",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS @_part ON @ (note) WHERE grp >= 0",
    "DROP INDEX CONCURRENTLY IF EXISTS @_part",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS @_expr ON @ ((grp * 2 + 1))",
    "DROP INDEX CONCURRENTLY IF EXISTS @_expr",
    "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS @_cover ON @ (code) INCLUDE (id, l)",
    "DROP INDEX IF EXISTS @_cover",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS @_group ON @ (grp) INCLUDE (l, id)",
    "DROP INDEX CONCURRENTLY IF EXISTS @_group",
    "REINDEX TABLE CONCURRENTLY @",
    "ALTER TABLE @ ADD COLUMN IF NOT EXISTS more int",
    "ALTER TABLE @ ADD COLUMN IF NOT EXISTS most text DEFAULT 'some'",
    "ALTER TABLE @ DROP COLUMN IF EXISTS more",
    "ALTER TABLE @ DROP COLUMN IF EXISTS most",
    "ALTER TABLE @ SET (orientation = 'row')",
    "ALTER TABLE @ SET (orientation = 'column')",
];
/// Rows that were written lately push out those that were not.
const WEIGHTS: [&str; 5] = [
    "UPDATE @ SET note = note WHERE id >= $1 AND id < $1 + 200",
    "UPDATE @ SET note = note WHERE id >= $1 AND id < $1 + 200",
    "CHECKPOINT",
    "ALTER TABLE @ SET (orientation = 'row')",
    "ALTER TABLE @ SET (orientation = 'column')",
];
/// It gives way to the clients: lock timeout, deadlock, conflict.
const GIVEN_UP: [&str; 3] = ["55P03", "40P01", "40001"];

/// How often what was done.
pub fn disturb(wire: &mut Wire, shared: &Shared) -> Result<BTreeMap<String, usize>> {
    let (statements, pause_ms_max) = match shared.options.rest {
        Rest::Hot => return Ok(BTreeMap::new()),
        Rest::Cold => (&MOVES[..], 15),
        Rest::Mixed => (&CHANGES[..], 60),
        Rest::Pressed => (&WEIGHTS[..], 30),
    };
    // PostgreSQL has no orientations.
    let statements: Vec<&str> =
        statements.iter().copied().filter(|sql| !(shared.options.is_postgres && sql.contains("orientation"))).collect();
    let mut random = StdRng::seed_from_u64(shared.options.seed);
    let mut counts = BTreeMap::new();
    wire.run("SET lock_timeout = '200ms'")?;
    wire.run("SET client_min_messages = 'error'")?;
    while !shared.is_over() {
        let sql = statements[random.random_range(0..statements.len())];
        let table = ["lists0", "lists1"][random.random_range(0..2)];
        let filler = FILLER_ID + 1 + random.random_range(0..HEAVY_ROWS);
        let answer = wire.simple(&sql.replace('@', table).replace("$1", &filler.to_string()), None);
        let outcome = match answer?.error() {
            None => "",
            Some(error) if GIVEN_UP.contains(&error.sqlstate()) => ", given up",
            Some(error) => bail!("{sql}: {} {}", error.sqlstate(), error.message()),
        };
        *counts.entry(format!("{sql}{outcome}")).or_default() += 1;
        std::thread::sleep(Duration::from_millis(random.random_range(0..pause_ms_max)));
    }
    Ok(counts)
}
