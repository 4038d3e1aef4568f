//! The session and the server: who, where, which settings.

use super::{Other, system, text_arg, text_or_null};
use crate::notify::Notification;
use crate::pgcatalog::names::Scope;
use crate::pgcatalog::{locks, rows};
use crate::session::interrupt::Interrupt;
use crate::session::names::TEMP_PREFIX;
use crate::settings::{Settings, is_identity};
use crate::statement::role::{Signal, check_may_signal};
use crate::statement::set::{self, of_transaction};
use basalt_expr::functions::{CallInfo, Kernel, ScalarKernel, SetKernel};
use basalt_expr::unsigned::stored;
use basalt_expr::{Error, Result, array_value};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

pub(super) fn bind(name: &str, args: &str) -> Option<ScalarKernel> {
    Some(match (name, args) {
        ("current_user", _) => |_, info| Ok(Datum::text(&system(info)?.user)),
        ("session_user" | "getpgusername", _) => |_, info| Ok(Datum::text(&system(info)?.session_user)),
        ("current_database", _) => |_, info| Ok(Datum::text(&system(info)?.database)),
        ("current_schema", _) => |_, info| Ok(text_or_null(system(info)?.search_path.first())),
        ("current_query", _) => |_, info| {
            let system = system(info)?;
            let own = system.db.sessions().into_iter().find(|session| session.pid == system.backend_pid);
            Ok(own.map_or(Datum::Null, |session| Datum::text(&session.query)))
        },
        // Nothing was compiled, no trigger runs.
        ("pg_jit_available", _) => |_, _| Ok(Datum::Bool(false)),
        ("pg_trigger_depth", _) => |_, _| Ok(Datum::I32(0)),
        ("pg_notification_queue_usage", _) => |_, info| Ok(Datum::F64(system(info)?.db.notifications().usage())),
        ("pg_notify", _) => |args, info| {
            let text = |at: usize| if args.get(at) == Some(&Datum::Null) { Ok("") } else { text_arg(args, at) };
            let system = system(info)?;
            let said = Notification::new(system.backend_pid, text(0)?, text(1)?);
            let said = said.and_then(|notification| system.outgoing.say(notification));
            said?;
            Ok(Datum::text(""))
        },
        ("pg_column_compression", _) => |_, _| Ok(Datum::Null),
        ("pg_safe_snapshot_blocking_pids", _) => |_, _| array_value::encode(&DataType::Int4, &[]),
        ("pg_encoding_max_length", _) => |args, _| {
            Ok(match args.first() {
                Some(Datum::I32(0 | 8)) => Datum::I32(1),
                Some(Datum::I32(6)) => Datum::I32(4),
                _ => Datum::Null,
            })
        },
        ("version", _) => |_, _| Ok(Datum::text(&version())),
        ("pg_backend_pid", _) => |_, info| Ok(Datum::I32(system(info)?.backend_pid)),
        ("pg_client_encoding" | "getdatabaseencoding", _) => |_, _| Ok(Datum::text("UTF8")),
        ("pg_is_in_recovery" | "pg_is_wal_replay_paused" | "pg_is_in_backup" | "pg_is_other_temp_schema", _) => {
            |_, _| Ok(Datum::Bool(false))
        }
        ("pg_my_temp_schema", _) => |_, info| {
            let system = system(info)?;
            let own = system.lookup_path.iter().find(|schema| schema.starts_with(TEMP_PREFIX));
            let database = system.catalog.database_named(&system.database).map(|database| database.id);
            let own = own.zip(database).and_then(|(name, id)| system.catalog.namespace_named(id, name));
            Ok(Datum::I64(own.map_or(0, |namespace| i64::from(namespace.id.0))))
        },
        ("pg_postmaster_start_time" | "pg_conf_load_time", _) => {
            |_, info| Ok(Datum::I64(system(info)?.db.started_micros()))
        }
        ("inet_client_addr", _) => |_, info| Ok(rows::inet(system(info)?.client_addr.map(|addr| addr.ip()))),
        ("inet_server_addr", _) => |_, _| Ok(Datum::Null),
        ("inet_client_port", _) => |_, info| {
            let port = system(info)?.client_addr.map(|addr| i32::from(addr.port()));
            Ok(port.map_or(Datum::Null, Datum::I32))
        },
        ("inet_server_port", _) => |_, info| {
            let system = system(info)?;
            let port = system.settings.show("port").ok().and_then(|port| port.parse().ok());
            Ok(port.filter(|_| system.client_addr.is_some()).map_or(Datum::Null, Datum::I32))
        },
        ("current_setting", _) => current_setting,
        ("set_config", _) => set_config,
        ("pg_cancel_backend", _) => |args, info| {
            let found = backend(args, info, Signal::Cancel)?;
            Ok(Datum::Bool(found.is_some_and(|interrupt| {
                interrupt.cancel();
                true
            })))
        },
        ("pg_terminate_backend", _) => |args, info| {
            if !matches!(args.get(1), None | Some(Datum::I64(0))) {
                return Err(Error::not_supported("pg_terminate_backend with a timeout is not supported")
                    .with_hint("Leave the timeout out, and look into pg_stat_activity."));
            }
            let found = backend(args, info, Signal::Terminate)?;
            Ok(Datum::Bool(found.is_some_and(|interrupt| {
                interrupt.terminate();
                true
            })))
        },
        // Versions count commits as transaction ids count transactions.
        ("txid_current", _) => |_, info| {
            let next = system(info)?.engine.published().0 + 1;
            Ok(Datum::I64(i64::try_from(next).unwrap_or(i64::MAX)))
        },
        ("pg_current_wal_insert_lsn", _) => |_, info| Ok(Datum::I64(stored(system(info)?.engine.log_end().0))),
        ("pg_current_wal_lsn" | "pg_current_wal_flush_lsn", _) => {
            |_, info| Ok(Datum::I64(stored(system(info)?.engine.log_durable().0)))
        }
        // No log comes from elsewhere.
        ("pg_last_wal_receive_lsn" | "pg_last_wal_replay_lsn", _) => |_, _| Ok(Datum::Null),
        ("txid_current_if_assigned", _) => |_, _| Ok(Datum::Null),
        ("pg_blocking_pids", _) => |args, info| {
            let Some(Datum::I32(pid)) = args.first() else {
                return Err(Error::internal(format!("no process id: {args:?}")));
            };
            let blockers: Vec<Datum> = locks::blockers(system(info)?, *pid).into_iter().map(Datum::I32).collect();
            array_value::encode(&DataType::Int4, &blockers)
        },
        _ => return None,
    })
}

/// `pg_listening_channels`.
pub(super) fn listening(name: &str) -> Option<Kernel> {
    let channels: SetKernel = |_, info| {
        let system = system(info)?;
        let channels = system.db.notifications().channels(system.backend_pid);
        Ok(Box::new(channels.into_iter().map(|channel| Ok(Datum::text(&channel)))))
    };
    (name == "pg_listening_channels").then_some(Kernel::Set(channels))
}

pub(super) fn others() -> Vec<Other> {
    use DataType::{Array, Bool, Name};
    vec![(1403, "current_schemas", vec![Bool], Array(Box::new(Name)), |args, info| {
        let system = system(info)?;
        let names: Vec<Datum> = match args {
            [Datum::Bool(true)] => Scope::of(system).path().map(Datum::text).collect(),
            _ => system.search_path.iter().map(|schema| Datum::text(schema)).collect(),
        };
        array_value::encode(&Name, &names)
    })]
}

/// The session of a process id. 42501 for those that the user has no say over.
fn backend(args: &[Datum], info: &CallInfo, signal: Signal) -> Result<Option<Arc<Interrupt>>> {
    let Some(Datum::I32(pid)) = args.first() else {
        return Err(Error::internal(format!("no process id: {args:?}")));
    };
    let system = system(info)?;
    let Some((interrupt, user)) = system.db.backend(*pid) else { return Ok(None) };
    check_may_signal(&system.catalog, &system.user, &user, signal)?;
    Ok(Some(interrupt))
}

/// As `SELECT version()` tells it; drivers read the number after the first word.
fn version() -> String {
    format!(
        "PostgreSQL {} on {}-{}, compiled by rustc, 64-bit",
        crate::settings::SERVER_VERSION,
        std::env::consts::ARCH,
        std::env::consts::OS
    )
}

/// With a second argument that is true, an unknown name is null.
fn current_setting(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let missing_ok = matches!(args.get(1), Some(Datum::Bool(true)));
    let (system, name) = (system(info)?, text_arg(args, 0)?);
    if let Some(value) = of_transaction(name, system.isolation, system.read_only) {
        return Ok(Datum::text(value));
    }
    match system.settings.show(name) {
        Ok(value) => Ok(Datum::text(&value)),
        Err(error) if missing_ok && error.sqlstate == "42704" => Ok(Datum::Null),
        Err(error) => Err(error.into()),
    }
}

/// Asks the session to set a value when the statement has run; gives the value that it will have.
fn set_config(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let system = system(info)?;
    let Some(Datum::Bytes(_)) = args.first() else {
        return Err(Error::new("22004", "SET requires parameter name"));
    };
    let (name, local) = (text_arg(args, 0)?, matches!(args.get(2), Some(Datum::Bool(true))));
    let value = if matches!(args.get(1), Some(Datum::Null)) { "" } else { text_arg(args, 1)? };
    let key = Settings::name_of(name);
    if is_identity(&key) {
        let value = if value.is_empty() && key == "role" { "none" } else { value };
        set::check_user(&system.catalog, &system.session_user, &system.login, &key, value)?;
        system.ask_to_set(&key, value, local);
        return Ok(Datum::text(value));
    }
    let superuser = system.catalog.role_named(&system.user).is_some_and(|role| role.superuser);
    let mut settings = system.settings.clone();
    let set = settings.set(name, value, local, superuser).and_then(|()| settings.show(name));
    let shown = set?;
    system.ask_to_set(name, value, local);
    Ok(Datum::text(&shown))
}
