//! Functions and operators of `pg_lsn`, `xid8`, `xid` and snapshots (manual 9.27.10 and 9.27.3).

use super::arg::*;
use super::{CallInfo, Kernel};
use crate::error::{Error, Result};
use crate::txid_snapshot::Snapshot;
use crate::unsigned::{lsn_at, lsn_bytes, number, stored};
use basalt_types::Datum;

/// Functions of `pg_proc`, by name and argument types.
pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("pg_lsn", "numeric") => kernel!(|bytes: Num| -> I8 { lsn_at(&bytes) }),
        ("pg_wal_lsn_diff", "pg_lsn,pg_lsn") => return operator("pg_lsn_mi"),
        ("xid", "xid8") => kernel!(|number: I8| -> I8 { Ok(i64::from(self::number(number) as u32)) }),
        ("pg_snapshot_xmin", _) => kernel!(|snapshot: Txt| -> I8 { Ok(stored(read(snapshot)?.least)) }),
        ("pg_snapshot_xmax", _) => kernel!(|snapshot: Txt| -> I8 { Ok(stored(read(snapshot)?.end)) }),
        ("pg_snapshot_xip", _) => Kernel::Set(|args, info| {
            let running = running(args, info)?;
            Ok(Box::new(running.into_iter().map(|number| Ok(Datum::I64(stored(number))))))
        }),
        ("pg_visible_in_snapshot", _) => {
            kernel!(|transaction: I8, snapshot: Txt| -> Bit { Ok(read(snapshot)?.shows(number(transaction))) })
        }
        ("txid_snapshot_xmin", _) => kernel!(|snapshot: Txt| -> I8 { Ok(read(snapshot)?.least as i64) }),
        ("txid_snapshot_xmax", _) => kernel!(|snapshot: Txt| -> I8 { Ok(read(snapshot)?.end as i64) }),
        ("txid_snapshot_xip", _) => Kernel::Set(|args, info| {
            let running = running(args, info)?;
            Ok(Box::new(running.into_iter().map(|number| Ok(Datum::I64(number as i64)))))
        }),
        ("txid_visible_in_snapshot", _) => {
            kernel!(|transaction: I8, snapshot: Txt| -> Bit { Ok(read(snapshot)?.shows(transaction as u64)) })
        }
        _ => return None,
    })
}

fn read(text: &str) -> Result<Snapshot> {
    Snapshot::parse(text)
}

fn running(args: &[Datum], info: &CallInfo) -> Result<Vec<u64>> {
    Ok(read(Txt::of(&args[0], &info.arg_types[0])?)?.running)
}

/// What an operator's function does.
pub(crate) fn operator(function: &str) -> Option<Kernel> {
    Some(match function {
        "pg_lsn_mi" => kernel!(|a: I8, b: I8| -> Num { lsn_bytes(a).sub(&lsn_bytes(b)) }),
        "pg_lsn_pli" => kernel!(|position: I8, bytes: Num| -> I8 { moved(position, &bytes, "add NaN to") }),
        "numeric_pl_pg_lsn" => kernel!(|bytes: Num, position: I8| -> I8 { moved(position, &bytes, "add NaN to") }),
        "pg_lsn_mii" => kernel!(|position: I8, bytes: Num| -> I8 {
            let back = crate::numeric::Numeric::from(0).sub(&bytes)?;
            moved(position, &back, "subtract NaN from")
        }),
        _ => return None,
    })
}

fn moved(position: i64, bytes: &crate::numeric::Numeric, what: &str) -> Result<i64> {
    if bytes.is_nan() {
        return Err(Error::not_supported(format!("cannot {what} pg_lsn")));
    }
    lsn_at(&lsn_bytes(position).add(bytes)?)
}
