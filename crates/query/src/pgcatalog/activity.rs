//! Who is connected and with which settings.

use super::rows::{Rows, inet, int4, int8, micros, oid, oids, opt_text, text, texts, yes};
use super::{Fill, SystemContext};
use super::{locks, relations};
use crate::error::SqlError;
use crate::statement::set::of_transaction;
use basalt_types::Datum;

type Result = std::result::Result<(), SqlError>;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "pg_stat_activity" => pg_stat_activity,
        "pg_stat_database" => pg_stat_database,
        "pg_settings" => pg_settings,
        "pg_cursors" => pg_cursors,
        "pg_prepared_statements" => pg_prepared_statements,
        "pg_locks" => locks::pg_locks,
        _ => return None,
    })
}

/// Statements of others are shown to superusers alone.
fn pg_stat_activity(system: &SystemContext, rows: &mut Rows) -> Result {
    let superuser = system.catalog.role_named(&system.user).is_some_and(|role| role.superuser);
    let lock_waits = locks::wait_events(system);
    for session in system.db.sessions() {
        let database = system.catalog.database_named(&session.database).map_or(0, |database| database.id.0);
        let client = session.client_addr;
        let visible = superuser || session.user == system.user;
        let shown = |value: Datum| if visible { value } else { Datum::Null };
        let waits = match lock_waits.get(&session.pid) {
            _ if !visible => None,
            Some(lock) => Some(("Lock", *lock)),
            None => (session.queries_queued > 0).then_some(("QueryGroup", "Admission")),
        };
        rows.push([
            ("datid", oid(database)),
            ("datname", text(&session.database)),
            ("pid", int4(session.pid)),
            ("usesysid", oid(relations::role_oid(&system.catalog, &session.user))),
            ("usename", text(&session.user)),
            ("application_name", text(&session.application_name)),
            ("client_addr", shown(inet(client.map(|addr| addr.ip())))),
            ("client_port", shown(int4(client.map_or(-1, |addr| i32::from(addr.port()))))),
            ("backend_start", shown(Datum::I64(session.started_micros))),
            ("xact_start", shown(micros(session.transaction_micros))),
            ("query_start", shown(micros(session.statement_micros))),
            ("state_change", shown(micros(session.statement_micros))),
            ("wait_event_type", opt_text(waits.map(|(kind, _)| kind))),
            ("wait_event", opt_text(waits.map(|(_, event)| event))),
            ("state", shown(text(session.state))),
            ("query", text(if visible { &session.query } else { "<insufficient privilege>" })),
            ("backend_type", text("client backend")),
        ])?;
    }
    Ok(())
}

fn pg_stat_database(system: &SystemContext, rows: &mut Rows) -> Result {
    let sessions = system.db.sessions();
    for database in system.catalog.databases.values() {
        let connected = sessions.iter().filter(|session| session.database == database.name).count();
        rows.push([
            ("datid", oid(database.id.0)),
            ("datname", text(&database.name)),
            ("numbackends", int4(connected as i32)),
        ])?;
    }
    Ok(())
}

fn pg_settings(system: &SystemContext, rows: &mut Rows) -> Result {
    for setting in system.settings.rows() {
        let of_transaction = of_transaction(&setting.name, system.isolation, system.read_only);
        rows.push([
            ("name", text(&setting.name)),
            ("setting", text(of_transaction.unwrap_or(&setting.setting))),
            ("unit", opt_text(setting.unit)),
            ("category", text(setting.category)),
            ("short_desc", text(setting.description)),
            ("context", text(setting.context)),
            ("vartype", text(setting.vartype)),
            ("source", text(setting.source)),
            ("min_val", opt_text(setting.min.as_deref())),
            ("max_val", opt_text(setting.max.as_deref())),
            ("enumvals", setting.enum_values.map_or(Datum::Null, texts)),
            ("boot_val", opt_text(setting.boot.as_deref())),
            ("reset_val", text(&setting.reset)),
            ("pending_restart", yes(system.db.is_pending(&system.catalog, &setting.name))),
        ])?;
    }
    Ok(())
}

fn pg_prepared_statements(system: &SystemContext, rows: &mut Rows) -> Result {
    for prepared in &system.prepared {
        rows.push([
            ("name", text(&prepared.name)),
            ("statement", text(&prepared.sql)),
            ("prepare_time", micros(Some(prepared.made_micros))),
            ("parameter_types", oids(prepared.types.iter().copied())),
            ("from_sql", yes(prepared.from_sql)),
            ("generic_plans", int8(0)),
            ("custom_plans", int8(0)),
        ])?;
    }
    Ok(())
}

fn pg_cursors(system: &SystemContext, rows: &mut Rows) -> Result {
    for cursor in &system.cursors {
        rows.push([
            ("name", text(&cursor.name)),
            ("statement", text(&cursor.sql)),
            ("is_holdable", yes(cursor.holds)),
            ("is_binary", yes(cursor.binary)),
            ("is_scrollable", yes(cursor.scrolls)),
            ("creation_time", micros(Some(cursor.made_micros))),
        ])?;
    }
    Ok(())
}
