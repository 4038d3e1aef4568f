//! CREATE, ALTER and DROP SEQUENCE (PostgreSQL manual, SQL commands; 9.17).

use super::define::{exists, skipping};
use super::drop;
use super::resolve::{self, Relation, no_relation};
use crate::bind;
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{AlterAction, Name, SequenceOptions};
use basalt_engine::{Catalog, CatalogEdit, SequenceDef, SequenceOwner, SequenceValue, TableLock};
use basalt_types::{DataType, ObjectId, Revision, TableDef};
use std::sync::Arc;

pub(crate) async fn create(
    session: &mut Session,
    name: &Name,
    if_not_exists: bool,
    temporary: bool,
    options: &SequenceOptions,
    sql: &Arc<str>,
) -> Result<()> {
    for locked in [false, true] {
        let namespace = resolve::creation_namespace_of(session, name, temporary)?;
        if session.txn()?.catalog().relation_exists(namespace.id, &name.name) {
            if if_not_exists {
                skipping(session, "42P07", format!("relation \"{}\" already exists", name.name));
                return Ok(());
            }
            return Err(exists("42P07", "relation", &name.name));
        }
        if !locked {
            lock_owner(session, options).await?;
        }
    }
    let namespace = resolve::creation_namespace_of(session, name, temporary)?;
    let catalog = session.txn()?.catalog();
    let mut sequence = new(session, namespace.id, &name.name, options, sql)?;
    set_owner(session, &catalog, &mut sequence, options)?;
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutSequence(sequence)])?)
}

/// A sequence that nobody owns yet, with checked parameters.
pub(crate) fn new(
    session: &Session,
    namespace: ObjectId,
    name: &str,
    options: &SequenceOptions,
    sql: &Arc<str>,
) -> Result<SequenceDef> {
    let engine = session.db.engine();
    let mut sequence = SequenceDef {
        id: engine.next_object_id(),
        namespace,
        name: name.to_string(),
        owner: session.user.clone(),
        ty: DataType::Int8,
        start: 1,
        min: 1,
        max: i64::MAX,
        increment: 1,
        cache: 1,
        cycle: false,
        owned_by: None,
        state: engine.next_object_id(),
        begins: SequenceValue { last: 1, is_called: false },
        comment: None,
        revision: Revision::NEW,
    };
    parameters(session, &mut sequence, options, true, sql)?;
    sequence.begins = SequenceValue { last: sequence.start, is_called: false };
    if let Some(restart) = options.restart {
        sequence.begins.last = restart.unwrap_or(sequence.start);
    }
    check_value(&sequence, sequence.begins.last, "RESTART", options.restart.is_some())?;
    Ok(sequence)
}

/// The least and greatest value of a sequence's type.
fn bounds(ty: &DataType) -> (i64, i64) {
    match ty {
        DataType::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new("22023", message)
}

/// Takes over what the options say of the parameters, and checks them together.
fn parameters(
    session: &Session,
    sequence: &mut SequenceDef,
    options: &SequenceOptions,
    is_new: bool,
    sql: &Arc<str>,
) -> Result<()> {
    let before = sequence.ty.clone();
    if let Some(ty) = &options.ty {
        let catalog = session.catalog_now();
        let eval = session.eval_context(Vec::new(), &catalog);
        let ty = bind::bind_type(&session.bind_context(&catalog, sql, &eval), ty)?;
        if !matches!(ty, DataType::Int2 | DataType::Int4 | DataType::Int8) {
            let what = if options.name.is_some() { "identity column" } else { "sequence" };
            return Err(invalid(format!("{what} type must be smallint, integer, or bigint")));
        }
        sequence.ty = ty;
    }
    if let Some(increment) = options.increment {
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero".into()));
        }
        sequence.increment = increment;
    }
    sequence.cycle = options.cycle.unwrap_or(sequence.cycle);
    let ascending = sequence.increment > 0;
    let ((least, greatest), (old_least, old_greatest)) = (bounds(&sequence.ty), bounds(&before));
    // Bounds that were the old type's become the new type's.
    let retyped = before != sequence.ty;
    let (at_max, at_min) = (retyped && sequence.max == old_greatest, retyped && sequence.min == old_least);
    match options.max {
        Some(Some(max)) => sequence.max = max,
        Some(None) => sequence.max = if ascending { greatest } else { -1 },
        None if is_new || (at_max && ascending) => sequence.max = if ascending { greatest } else { -1 },
        None => {}
    }
    match options.min {
        Some(Some(min)) => sequence.min = min,
        Some(None) => sequence.min = if ascending { 1 } else { least },
        None if is_new || (at_min && !ascending) => sequence.min = if ascending { 1 } else { least },
        None => {}
    }
    let type_name = sequence.ty.sql_name();
    if sequence.max > greatest || sequence.max < least {
        return Err(invalid(format!("MAXVALUE ({}) is out of range for sequence data type {type_name}", sequence.max)));
    }
    if sequence.min < least || sequence.min > greatest {
        return Err(invalid(format!("MINVALUE ({}) is out of range for sequence data type {type_name}", sequence.min)));
    }
    if sequence.min >= sequence.max {
        let (min, max) = (sequence.min, sequence.max);
        return Err(invalid(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})")));
    }
    match options.start {
        Some(start) => sequence.start = start,
        None if is_new => sequence.start = if ascending { sequence.min } else { sequence.max },
        None => {}
    }
    check_value(sequence, sequence.start, "START", true)?;
    if let Some(cache) = options.cache {
        if cache <= 0 {
            return Err(invalid(format!("CACHE ({cache}) must be greater than zero")));
        }
        sequence.cache = cache;
    }
    Ok(())
}

/// 22023 for a value out of bounds.
fn check_value(sequence: &SequenceDef, value: i64, what: &str, given: bool) -> Result<()> {
    let what = if given { what } else { "RESTART" };
    if value < sequence.min {
        return Err(invalid(format!("{what} value ({value}) cannot be less than MINVALUE ({})", sequence.min)));
    }
    if value > sequence.max {
        return Err(invalid(format!("{what} value ({value}) cannot be greater than MAXVALUE ({})", sequence.max)));
    }
    Ok(())
}

/// OWNED BY.
fn set_owner(
    session: &Session,
    catalog: &Catalog,
    sequence: &mut SequenceDef,
    options: &SequenceOptions,
) -> Result<()> {
    let Some(owned_by) = &options.owned_by else { return Ok(()) };
    if sequence.owned_by.is_some_and(|owner| owner.internal) {
        let owner = sequence.owned_by.and_then(|owner| catalog.table(owner.table).cloned());
        let table = owner.map(|table| table.name.clone()).unwrap_or_default();
        return Err(SqlError::not_supported("cannot change ownership of identity sequence")
            .with_detail(format!("Sequence \"{}\" is linked to table \"{table}\".", sequence.name)));
    }
    let Some((name, column)) = owned_by else {
        sequence.owned_by = None;
        return Ok(());
    };
    let table: Arc<TableDef> = match resolve::find(session, catalog, name)? {
        Some(Relation::Table(table)) if table.materialized.is_none() => table,
        Some(Relation::View(view)) => {
            return Err(SqlError::not_supported(format!("sequence cannot be owned by view \"{}\"", view.name))
                .with_hint("Let a table's column own it."));
        }
        Some(_) => {
            return Err(SqlError::new("42809", format!("sequence cannot be owned by relation \"{}\"", name.name)));
        }
        None => return Err(no_relation("relation", name)),
    };
    if table.owner != sequence.owner {
        return Err(SqlError::new("55000", "sequence must have same owner as table it is linked to"));
    }
    if table.namespace != sequence.namespace {
        return Err(SqlError::new("55000", "sequence must be in same schema as table it is linked to"));
    }
    let Some(column) = table.column_named(column) else {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
        return Err(SqlError::new("42703", message));
    };
    sequence.owned_by = Some(SequenceOwner { table: table.id, column: column.id, internal: false });
    Ok(())
}

/// The sequence of a name, locked. `None` if there is none and that is no error.
async fn locked(
    session: &mut Session,
    name: &Name,
    if_exists: bool,
    lock: TableLock,
) -> Result<Option<Arc<SequenceDef>>> {
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let sequence = match resolve::find(session, catalog, name)? {
            Some(Relation::Sequence(sequence)) => sequence,
            Some(_) => return Err(SqlError::new("42809", format!("\"{}\" is not a sequence", name.name))),
            None if if_exists => {
                skipping(session, "00000", format!("relation \"{name}\" does not exist"));
                return Ok((None, Vec::new()));
            }
            None => return Err(no_relation("relation", name)),
        };
        resolve::require_owner(session, "sequence", &sequence.name, &sequence.owner)?;
        let wanted = vec![sequence.id];
        Ok((Some(sequence), wanted))
    };
    session.lock_planned(lock, plan).await
}

/// Locks the table of OWNED BY, so that nobody takes it away before the sequence is its.
async fn lock_owner(session: &mut Session, options: &SequenceOptions) -> Result<()> {
    let Some(Some((name, _))) = &options.owned_by else { return Ok(()) };
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let wanted = match resolve::find(session, catalog, name)? {
            Some(Relation::Table(table)) => vec![table.id],
            _ => Vec::new(),
        };
        Ok(((), wanted))
    };
    session.lock_planned(TableLock::AccessShare, plan).await
}

pub(crate) async fn alter(
    session: &mut Session,
    name: &Name,
    if_exists: bool,
    options: &SequenceOptions,
    sql: &Arc<str>,
) -> Result<()> {
    let Some(before) = locked(session, name, if_exists, TableLock::ShareRowExclusive).await? else { return Ok(()) };
    lock_owner(session, options).await?;
    let catalog = session.txn()?.catalog();
    let mut sequence = changed(session, &before, options, sql)?;
    set_owner(session, &catalog, &mut sequence, options)?;
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutSequence(sequence)])?)
}

/// The sequence with other parameters; RESTART gives it a new state.
pub(crate) fn changed(
    session: &Session,
    before: &SequenceDef,
    options: &SequenceOptions,
    sql: &Arc<str>,
) -> Result<SequenceDef> {
    let mut sequence = before.clone();
    parameters(session, &mut sequence, options, false, sql)?;
    let engine = session.db.engine();
    let value = engine.sequence_state(before).map_or(before.begins, |state| state.value);
    match options.restart {
        Some(restart) => {
            let last = restart.unwrap_or(sequence.start);
            check_value(&sequence, last, "RESTART", true)?;
            sequence.state = engine.next_object_id();
            sequence.begins = SequenceValue { last, is_called: false };
        }
        None => check_value(&sequence, value.last, "RESTART", true)?,
    }
    session.sequences.forget_cached(sequence.id);
    Ok(sequence)
}

/// The same sequence, begun again: TRUNCATE … RESTART IDENTITY.
pub(crate) fn restarted(session: &Session, sequence: &SequenceDef) -> SequenceDef {
    let mut sequence = sequence.clone();
    sequence.state = session.db.engine().next_object_id();
    sequence.begins = SequenceValue { last: sequence.start, is_called: false };
    session.sequences.forget_cached(sequence.id);
    sequence
}

/// ALTER SEQUENCE (or TABLE) … RENAME TO, OWNER TO, SET SCHEMA.
pub(crate) async fn alter_object(
    session: &mut Session,
    name: &Name,
    if_exists: bool,
    action: &AlterAction,
) -> Result<()> {
    let Some(before) = locked(session, name, if_exists, TableLock::AccessExclusive).await? else { return Ok(()) };
    let catalog = session.txn()?.catalog();
    let mut sequence = SequenceDef::clone(&before);
    let owned = |what: &str| {
        let owner = before.owned_by.and_then(|owner| catalog.table(owner.table));
        match owner {
            Some(table) => Err(SqlError::not_supported(what)
                .with_detail(format!("Sequence \"{}\" is linked to table \"{}\".", before.name, table.name))),
            None => Ok(()),
        }
    };
    match action {
        AlterAction::RenameTo(new) => {
            if catalog.relation_exists(sequence.namespace, new) {
                return Err(exists("42P07", "relation", new));
            }
            resolve::require_create_in(session, &catalog, sequence.namespace)?;
            sequence.name = new.clone();
        }
        AlterAction::OwnerTo(owner) => {
            owned("cannot change owner of sequence")?;
            sequence.owner = resolve::new_owner(session, &catalog, owner, Some(sequence.namespace))?;
        }
        AlterAction::SetSchema(schema) => {
            owned("cannot move an owned sequence into another schema")?;
            let namespace = resolve::new_schema(session, &catalog, sequence.namespace, schema)?;
            if namespace != sequence.namespace && catalog.relation_exists(namespace, &sequence.name) {
                let message = format!("relation \"{}\" already exists in schema \"{schema}\"", sequence.name);
                return Err(SqlError::new("42P07", message));
            }
            sequence.namespace = namespace;
        }
        AlterAction::Nothing => {}
        _ => return Err(SqlError::new("42809", format!("\"{}\" is not a table", before.name))),
    }
    drop::replace(session, CatalogEdit::PutSequence(sequence), &format!("alter sequence {}", name.name))
}
