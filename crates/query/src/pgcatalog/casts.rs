//! `pg_cast`: PostgreSQL 15's casts between types that Basalt has. `casts.txt` has one per line:
//! `oid source target function context method`.

use super::rows::{Rows, oid, text};
use super::{Fill, SystemContext};
use crate::error::SqlError;

const CASTS: &str = include_str!("casts.txt");

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    (name == "pg_cast").then_some(pg_cast as Fill)
}

fn pg_cast(_: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    for line in CASTS.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [own, source, target, function, context, method] = words.as_slice() else {
            return Err(SqlError::internal(format!("a cast is told as {line:?}")));
        };
        let number = |word: &str| word.parse::<u32>().map_err(|error| SqlError::internal(format!("{line:?}: {error}")));
        rows.push([
            ("oid", oid(number(own)?)),
            ("castsource", oid(number(source)?)),
            ("casttarget", oid(number(target)?)),
            ("castfunc", oid(number(function)?)),
            ("castcontext", text(context)),
            ("castmethod", text(method)),
        ])?;
    }
    Ok(())
}
