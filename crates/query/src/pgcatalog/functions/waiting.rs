//! Functions that wait: advisory locks (manual 9.27.10) and `pg_sleep` (9.9.5).
//!
//! They block their thread, whose other work the runtime moves elsewhere meanwhile.

use super::system;
use crate::advisory::{AdvisoryKey, AdvisoryRequest, AdvisoryWait};
use crate::error::{Severity, SqlError};
use crate::system::SystemContext;
use basalt_expr::functions::{CallInfo, ScalarKernel};
use basalt_expr::{Error, Interval, Result, datetime};
use basalt_sched::fair;
use basalt_types::Datum;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Longest time between two looks at whether the statement has ended.
const NAP: Duration = Duration::from_millis(20);

pub(super) fn bind(name: &str, _: &str) -> Option<ScalarKernel> {
    Some(match name {
        "pg_advisory_lock" => |args, info| lock(args, info, true, false),
        "pg_advisory_lock_shared" => |args, info| lock(args, info, false, false),
        "pg_advisory_xact_lock" => |args, info| lock(args, info, true, true),
        "pg_advisory_xact_lock_shared" => |args, info| lock(args, info, false, true),
        "pg_try_advisory_lock" => |args, info| try_lock(args, info, true, false),
        "pg_try_advisory_lock_shared" => |args, info| try_lock(args, info, false, false),
        "pg_try_advisory_xact_lock" => |args, info| try_lock(args, info, true, true),
        "pg_try_advisory_xact_lock_shared" => |args, info| try_lock(args, info, false, true),
        "pg_advisory_unlock" => |args, info| unlock(args, info, true),
        "pg_advisory_unlock_shared" => |args, info| unlock(args, info, false),
        "pg_advisory_unlock_all" => |_, info| {
            let system = system(info)?;
            system.db.advisory().release_session(system.backend_pid);
            Ok(Datum::text(""))
        },
        "pg_sleep" => |args, info| match args {
            [Datum::F64(seconds)] => sleep(*seconds, info),
            other => Err(Error::internal(format!("no seconds: {other:?}"))),
        },
        "pg_sleep_for" => |args, info| match args {
            [Datum::Fixed16(bytes)] => {
                let now = (info.ctx.clock)();
                let until = datetime::timestamptz_add(now, Interval::from_bytes(*bytes), &info.ctx.timezone)?;
                sleep(until.saturating_sub(now) as f64 / 1e6, info)
            }
            other => Err(Error::internal(format!("no interval: {other:?}"))),
        },
        "pg_sleep_until" => |args, info| match args {
            [Datum::I64(until)] => sleep(until.saturating_sub((info.ctx.clock)()) as f64 / 1e6, info),
            other => Err(Error::internal(format!("no moment: {other:?}"))),
        },
        _ => return None,
    })
}

fn key(args: &[Datum], system: &SystemContext) -> Result<AdvisoryKey> {
    let database = system.catalog.database_named(&system.database).map_or(0, |database| database.id.0);
    match args {
        [Datum::I64(number)] => {
            Ok(AdvisoryKey { database, high: (*number >> 32) as u32, low: *number as u32, is_pair: false })
        }
        [Datum::I32(high), Datum::I32(low)] => {
            Ok(AdvisoryKey { database, high: *high as u32, low: *low as u32, is_pair: true })
        }
        other => Err(Error::internal(format!("no key of a lock: {other:?}"))),
    }
}

/// Drives `work` on this thread; 0A000 where that would stop everything else.
fn block_on<T>(work: impl Future<Output = std::result::Result<T, SqlError>>) -> Result<T> {
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            Ok(fair::wait(|| tokio::task::block_in_place(|| handle.block_on(work)))?)
        }
        _ => Err(Error::not_supported("waiting is not supported here")),
    }
}

fn lock(args: &[Datum], info: &CallInfo, exclusive: bool, transactional: bool) -> Result<Datum> {
    let system = system(info)?;
    let key = key(args, system)?;
    let request = AdvisoryRequest { pid: system.backend_pid, exclusive, transactional };
    if !system.db.advisory().try_lock(key, request) {
        let started = system.failures();
        let effective = system.settings.effective();
        let wait = AdvisoryWait {
            limit: effective.lock_timeout,
            deadlock_timeout: effective.deadlock_timeout,
            is_over: &|| system.failures() != started,
            elsewhere: &|| system.engine.lock_waiters(),
            name_of: &|object| system.engine.name_of(object),
        };
        block_on(system.db.advisory().lock(key, request, wait))?;
    }
    Ok(Datum::text(""))
}

fn try_lock(args: &[Datum], info: &CallInfo, exclusive: bool, transactional: bool) -> Result<Datum> {
    let system = system(info)?;
    let request = AdvisoryRequest { pid: system.backend_pid, exclusive, transactional };
    Ok(Datum::Bool(system.db.advisory().try_lock(key(args, system)?, request)))
}

fn unlock(args: &[Datum], info: &CallInfo, exclusive: bool) -> Result<Datum> {
    let system = system(info)?;
    let request = AdvisoryRequest { pid: system.backend_pid, exclusive, transactional: false };
    let had = system.db.advisory().unlock(key(args, system)?, request);
    if !had {
        let mode = if exclusive { "ExclusiveLock" } else { "ShareLock" };
        let message = format!("you don't own a lock of type {mode}");
        system.notices.lock().push(SqlError::notice(Severity::Warning, "01000", message));
    }
    Ok(Datum::Bool(had))
}

/// Waits so many seconds, in naps: the statement may end meanwhile.
fn sleep(seconds: f64, info: &CallInfo) -> Result<Datum> {
    let system = system(info)?;
    let clock = &system.db.os().clock;
    let until = clock.monotonic() + Duration::try_from_secs_f64(seconds.clamp(0.0, 1e12)).unwrap_or(Duration::ZERO);
    let started = system.failures();
    let wait = || loop {
        let rest = until.saturating_sub(clock.monotonic());
        if rest.is_zero() {
            return Ok(Datum::text(""));
        }
        if system.failures() != started {
            return Err(SqlError::canceled().into());
        }
        clock.sleep(rest.min(NAP));
    };
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            fair::wait(|| tokio::task::block_in_place(wait))
        }
        _ => wait(),
    }
}
