//! Sequence functions (PostgreSQL manual 9.17), and what a sequence shows when it is read as a table.

use super::{oid_arg, system, text_arg};
use crate::pgcatalog::names::{self, Scope};
use crate::session::names::quote_identifier;
use crate::system::SystemContext;
use basalt_engine::privilege::{self, AclKey, ObjectClass, Privileges};
use basalt_engine::{SequenceDef, SequenceState, SequenceValue};
use basalt_expr::functions::{CallInfo, Function, ScalarKernel, Volatility};
use basalt_expr::tree::Expr;
use basalt_expr::{Error, Result};
use basalt_types::{DataType, Datum, ObjectId};
use std::sync::{Arc, LazyLock};

/// Columns of a sequence, and the internal functions that compute them from its oid.
pub(crate) const COLUMNS: [(&str, DataType, &str); 3] = [
    ("last_value", DataType::Int8, "pg_sequence_state_last_value"),
    ("log_cnt", DataType::Int8, "pg_sequence_state_log_cnt"),
    ("is_called", DataType::Bool, "pg_sequence_state_is_called"),
];

pub(super) fn bind(name: &str, args: &str) -> Option<ScalarKernel> {
    Some(match name {
        "nextval" => |args, info| {
            refuse_if_read_only(system(info)?, "nextval()")?;
            let (system, sequence) = named(args, info)?;
            require(system, &sequence, privilege::USAGE | privilege::UPDATE)?;
            next(system, sequence).map(Datum::I64)
        },
        "currval" => |args, info| {
            let (system, sequence) = named(args, info)?;
            require(system, &sequence, privilege::USAGE | privilege::SELECT)?;
            system.sequences.current(sequence.id).map(Datum::I64).ok_or_else(|| {
                let message = format!("currval of sequence \"{}\" is not yet defined in this session", sequence.name);
                Error::new("55000", message)
            })
        },
        "lastval" => |_, info| {
            let system = system(info)?;
            let last = system.sequences.last();
            let last = last.and_then(|(id, value)| Some((system.catalog.sequences.get(&id)?, value)));
            let undefined = || Error::new("55000", "lastval is not yet defined in this session");
            let (sequence, value) = last.ok_or_else(undefined)?;
            require(system, sequence, privilege::USAGE | privilege::SELECT)?;
            Ok(Datum::I64(value))
        },
        "setval" => set,
        "pg_sequence_last_value" => |args, info| {
            let (system, sequence) = named(args, info)?;
            let state = system.engine.sequence_state(&sequence);
            let called = state.filter(|state| state.value.is_called);
            Ok(called.map_or(Datum::Null, |state| Datum::I64(state.value.last)))
        },
        "pg_get_serial_sequence" if args == "text,text" => serial_sequence,
        _ => return None,
    })
}

/// What reading a sequence as a table calls: they have no place in PostgreSQL's catalog.
pub(super) fn of_state() -> Vec<Function> {
    fn state(args: &[Datum], info: &CallInfo) -> Result<SequenceState> {
        let (system, sequence) = named(args, info)?;
        let begins = SequenceState { value: sequence.begins, leased: 0 };
        Ok(system.engine.sequence_state(&sequence).unwrap_or(begins))
    }
    let read: [ScalarKernel; 3] = [
        |args, info| Ok(Datum::I64(state(args, info)?.value.last)),
        |args, info| Ok(Datum::I64(state(args, info)?.leased)),
        |args, info| Ok(Datum::Bool(state(args, info)?.value.is_called)),
    ];
    let functions = COLUMNS.iter().zip(read).map(|((_, ty, name), kernel)| Function {
        volatility: Volatility::Volatile,
        ..Function::custom(name, &[DataType::Regclass], ty.clone(), kernel)
    });
    functions.collect()
}

/// 42501 unless the user has one of these privileges on a sequence.
fn require(system: &SystemContext, sequence: &SequenceDef, one_of: Privileges) -> Result<()> {
    let key = AclKey::of(ObjectClass::Sequence, sequence.id);
    match system.catalog.privileges(&system.user, key, &sequence.owner).0 & one_of {
        0 => Err(Error::new("42501", format!("permission denied for sequence {}", sequence.name))),
        _ => Ok(()),
    }
}

fn refuse_if_read_only(system: &SystemContext, what: &str) -> Result<()> {
    match system.read_only {
        true => Err(Error::new("25006", format!("cannot execute {what} in a read-only transaction"))),
        false => Ok(()),
    }
}

/// The sequence of an argument of type regclass, as the statement's catalog has it.
fn named<'a>(args: &[Datum], info: &'a CallInfo) -> Result<(&'a SystemContext, Arc<SequenceDef>)> {
    let system = system(info)?;
    Ok((system, of_oid(system, oid_arg(args, 0)?)?))
}

fn of_oid(system: &SystemContext, oid: u32) -> Result<Arc<SequenceDef>> {
    if let Some(sequence) = system.catalog.sequences.get(&ObjectId(oid)) {
        return Ok(sequence.clone());
    }
    Err(match crate::pgcatalog::relations::by_oid(&system.catalog, oid) {
        Some(relation) => Error::new("42809", format!("\"{}\" is not a sequence", relation.name())),
        None => Error::new("42P01", format!("could not open relation with OID {oid}")),
    })
}

fn failed(error: basalt_engine::Error) -> Error {
    crate::error::SqlError::from(error).into()
}

/// The call that gives an identity column its value. What is asked of who inserts is the table's business, so it needs
/// no privilege on the sequence; and so no statement can name it.
pub(crate) fn next_of_identity(sequence: ObjectId) -> Expr {
    static NEXT: LazyLock<Function> = LazyLock::new(|| {
        let next = |args: &[Datum], info: &CallInfo| {
            let (system, sequence) = named(args, info)?;
            next(system, sequence).map(Datum::I64)
        };
        Function {
            // Of `nextval`, as which it is shown.
            oid: 1574,
            volatility: Volatility::Volatile,
            ..Function::custom("nextval", &[DataType::Regclass], DataType::Int8, next)
        }
    });
    let sequence = Expr::Const { value: Datum::I64(i64::from(sequence.0)), ty: DataType::Regclass };
    Expr::Call { function: &NEXT, args: vec![sequence], ty: DataType::Int8 }
}

fn next(system: &SystemContext, mut sequence: Arc<SequenceDef>) -> Result<i64> {
    if let Some(value) = system.sequences.next_ahead(&sequence) {
        return Ok(value);
    }
    let drawn = match system.engine.draw(&sequence) {
        // Restarted by another session since the statement began.
        Err(basalt_engine::Error::TableGone(_)) => {
            let now = system.engine.catalog();
            sequence =
                now.sequences.get(&sequence.id).cloned().ok_or_else(|| {
                    Error::new("42P01", format!("could not open relation with OID {}", sequence.id.0))
                })?;
            system.engine.draw(&sequence)
        }
        drawn => drawn,
    };
    let Some(drawn) = drawn.map_err(failed)? else {
        let (what, bound) = match sequence.increment > 0 {
            true => ("maximum", sequence.max),
            false => ("minimum", sequence.min),
        };
        let message = format!("nextval: reached {what} value of sequence \"{}\" ({bound})", sequence.name);
        return Err(Error::new("2200H", message));
    };
    system.sequences.note_drawn(&sequence, drawn.first, drawn.last, drawn.logged);
    Ok(drawn.first)
}

fn set(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let (system, sequence) = named(args, info)?;
    require(system, &sequence, privilege::UPDATE)?;
    refuse_if_read_only(system, "setval()")?;
    let Some(Datum::I64(value)) = args.get(1) else {
        return Err(Error::internal(format!("setval was called with {args:?}")));
    };
    let is_called = !matches!(args.get(2), Some(Datum::Bool(false)));
    if !(sequence.min..=sequence.max).contains(value) {
        let (name, min, max) = (&sequence.name, sequence.min, sequence.max);
        let message = format!("setval: value {value} is out of bounds for sequence \"{name}\" ({min}..{max})");
        return Err(Error::new("22003", message));
    }
    let logged = system.engine.set_sequence(&sequence, SequenceValue { last: *value, is_called }).map_err(failed)?;
    system.sequences.note_set(sequence.id, is_called.then_some(*value), logged);
    Ok(Datum::I64(*value))
}

/// The name of the sequence that a column owns, for `nextval`.
fn serial_sequence(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let system = system(info)?;
    let oid = names::oid_of(Scope::of(system), &DataType::Regclass, text_arg(args, 0)?)?;
    let column = text_arg(args, 1)?;
    let Some(table) = system.catalog.table(ObjectId(oid)) else {
        return Err(Error::new("42809", format!("\"{}\" is not a table", text_arg(args, 0)?)));
    };
    let Some(column) = table.column_named(column) else {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
        return Err(Error::new("42703", message));
    };
    let owned = |sequence: &&Arc<SequenceDef>| sequence.owned_by.is_some_and(|owner| owner.column == column.id);
    let Some(sequence) = system.catalog.sequences_of(table.id).find(owned) else { return Ok(Datum::Null) };
    let schema = system.catalog.namespaces.get(&sequence.namespace).map_or("", |namespace| &namespace.name);
    Ok(Datum::text(&format!("{}.{}", quote_identifier(schema), quote_identifier(&sequence.name))))
}
