//! Who holds which lock, and who waits for whom.
//!
//! Locks of tables, rows and transactions are the engine's, advisory ones the sessions' own. As in PostgreSQL, a row's
//! lock is told only while somebody waits for the row; it has no page and no place in it. Reads by the row engine take
//! no table locks.

use super::SystemContext;
use super::rows::{Rows, int2, int4, oid, text, yes};
use crate::advisory::mode_name;
use crate::error::SqlError;
use basalt_engine::{LockObject, LockReport};
use basalt_types::Datum;
use std::collections::BTreeMap;

pub(super) fn pg_locks(system: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    let of_virtual = |pid: i32| format!("{pid}/0");
    // What every running transaction holds: its own virtual transaction.
    for session in system.db.sessions().into_iter().filter(|session| session.transaction_micros.is_some()) {
        let transaction = of_virtual(session.pid);
        rows.push([
            ("locktype", text("virtualxid")),
            ("virtualxid", text(&transaction)),
            ("virtualtransaction", text(&transaction)),
            ("pid", int4(session.pid)),
            ("mode", text("ExclusiveLock")),
            ("granted", yes(true)),
            ("fastpath", yes(true)),
        ])?;
    }
    // The engine's own transactions are nobody's.
    let is_told = |lock: &LockReport| {
        // Its own is told above, and who has waited for a transaction's end has it no more.
        let own = matches!((&lock.object, lock.mode), (LockObject::Owner(_), _) | (LockObject::Txn(_), "ShareLock"));
        lock.owner.session != 0 && !(lock.granted && own)
    };
    for lock in system.engine.lock_report().into_iter().filter(is_told) {
        push_engine_lock(system, rows, &lock, &of_virtual(lock.owner.session))?;
    }
    for lock in system.db.advisory().report() {
        rows.push([
            ("locktype", text("advisory")),
            ("database", oid(lock.key.database)),
            ("classid", oid(lock.key.high)),
            ("objid", oid(lock.key.low)),
            ("objsubid", int2(if lock.key.is_pair { 2 } else { 1 })),
            ("virtualtransaction", text(&of_virtual(lock.pid))),
            ("pid", int4(lock.pid)),
            ("mode", text(mode_name(lock.exclusive))),
            ("granted", yes(lock.granted)),
            ("fastpath", yes(false)),
        ])?;
    }
    Ok(())
}

fn push_engine_lock(
    system: &SystemContext,
    rows: &mut Rows,
    lock: &LockReport,
    transaction: &str,
) -> Result<(), SqlError> {
    let catalog = &system.catalog;
    let table = match &lock.object {
        LockObject::Table(table) => catalog.tables.get(table),
        // Of an index's entry, the index.
        LockObject::Row(tablet, _) => catalog.table_of(*tablet),
        LockObject::Values(index, _) => catalog.index_of(*index).map(|(_, index)| &index.entries),
        LockObject::Txn(_) | LockObject::Owner(_) => None,
    };
    let relation = table.map(|table| table.id);
    let namespace = table.and_then(|table| catalog.namespaces.get(&table.namespace));
    let database = namespace.map(|namespace| namespace.database);
    let virtual_of = match &lock.object {
        LockObject::Owner(owner) => Some(format!("{}/0", owner.session)),
        _ => None,
    };
    let transaction_id = match &lock.object {
        LockObject::Txn(txn) => Datum::I64(i64::from(txn.0 as u32)),
        _ => Datum::Null,
    };
    rows.push([
        ("locktype", text(kind_of(&lock.object))),
        ("database", database.map_or(Datum::Null, |id| oid(id.0))),
        ("relation", relation.map_or(Datum::Null, |id| oid(id.0))),
        ("virtualxid", virtual_of.map_or(Datum::Null, |id| text(&id))),
        ("transactionid", transaction_id),
        ("virtualtransaction", text(transaction)),
        ("pid", int4(lock.owner.session)),
        ("mode", text(lock.mode)),
        ("granted", yes(lock.granted)),
        ("fastpath", yes(false)),
    ])
}

/// `pg_locks.locktype`, and `pg_stat_activity.wait_event` of who waits for it.
fn kind_of(object: &LockObject) -> &'static str {
    match object {
        LockObject::Table(_) => "relation",
        LockObject::Row(..) | LockObject::Values(..) => "tuple",
        LockObject::Txn(_) => "transactionid",
        LockObject::Owner(_) => "virtualxid",
    }
}

/// What each session waits for, if it waits for a lock.
pub(super) fn wait_events(system: &SystemContext) -> BTreeMap<i32, &'static str> {
    let of_engine = system.engine.lock_waits().into_iter().map(|(session, object)| (session, kind_of(&object)));
    of_engine.chain(system.db.advisory().waiting().into_iter().map(|pid| (pid, "advisory"))).collect()
}

/// `pg_blocking_pids`.
pub(super) fn blockers(system: &SystemContext, pid: i32) -> Vec<i32> {
    let mut blockers = system.engine.lock_blockers(pid);
    blockers.extend(system.db.advisory().blockers(pid));
    blockers.retain(|blocker| *blocker != 0);
    blockers.sort_unstable();
    blockers.dedup();
    blockers
}
