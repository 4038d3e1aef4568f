//! COPY: which table or query, which columns, from or to whom.

use super::copy_in::{self, CopyFeed};
use super::resolve::{self, Relation, no_relation};
use crate::bind::ParamTypes;
use crate::copy::writer::{CopyWriter, WriterColumn};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::names::quote_identifier;
use crate::session::outcome::{CopyIn, CopyOut, Outcome, RowSource, RowStream, StreamSource};
use crate::session::prepared::Bound;
use crate::syntax::{
    CopyFormat, CopySource, CopyStatement, CopyTarget, ForceColumns, Name, Statement, parse_query_text,
};
use basalt_engine::TableLock;
use basalt_sched::OpenMode;
use basalt_types::{ColumnId, TableDef};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) async fn run(session: &mut Session, copy: &CopyStatement, sql: &Arc<str>) -> Result<Outcome> {
    if let CopyTarget::File(_) = copy.target {
        let verb = if copy.from { "from" } else { "to" };
        let message = format!("must be superuser to COPY {verb} a file");
        session.require_superuser(&message).map_err(|error| {
            error.with_hint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.")
        })?;
    }
    session.next_statement()?;
    if copy.from { copy_from(session, copy, sql).await } else { copy_to(session, copy, sql).await }
}

async fn copy_from(session: &mut Session, copy: &CopyStatement, sql: &Arc<str>) -> Result<Outcome> {
    session.refuse_if_read_only("COPY FROM")?;
    let CopySource::Table { name, columns } = &copy.source else {
        return Err(SqlError::internal("COPY FROM has no table"));
    };
    // Nobody waits for a table that he may not write to.
    let catalog = session.txn()?.catalog();
    if let Some(resolve::Relation::Table(table)) = resolve::find(session, &catalog, name)? {
        let named = columns_of(&table, columns.as_deref())?;
        let numbers: Vec<i16> = named.iter().map(|id| id.0 as i16).collect();
        session.require_on(table.id, basalt_engine::privilege::INSERT, &numbers)?;
    }
    let table = match resolve::lock_table(session, name, TableLock::RowExclusive, false).await {
        Err(error) if error.sqlstate == "42809" => {
            return Err(SqlError::new("42809", format!("cannot copy to view \"{}\"", name.name)));
        }
        other => other?,
    };
    if table.materialized.is_some() {
        return Err(SqlError::new("42809", format!("cannot copy to materialized view \"{}\"", table.name)));
    }
    let columns = columns_of(&table, columns.as_deref())?;
    let numbers: Vec<i16> = columns.iter().map(|id| id.0 as i16).collect();
    session.require_on(table.id, basalt_engine::privilege::INSERT, &numbers)?;
    for (force, clause) in [(&copy.options.force_not_null, "FORCE_NOT_NULL"), (&copy.options.force_null, "FORCE_NULL")]
    {
        check_force(&table, &columns, force, clause)?;
    }
    let feed = copy_in::start(session, &table, &columns, copy, sql)?;
    match &copy.target {
        CopyTarget::Client => {
            let format = i16::from(copy.options.format == CopyFormat::Binary);
            Ok(Outcome::CopyIn(CopyIn { format, columns: columns.len(), feed }))
        }
        CopyTarget::File(path) => {
            let rows = read_file(session, feed, PathBuf::from(path)).await?;
            Ok(Outcome::Command { tag: format!("COPY {rows}") })
        }
    }
}

/// The columns that a list names; without one, all.
fn columns_of(table: &TableDef, names: Option<&[String]>) -> Result<Vec<ColumnId>> {
    let Some(names) = names else {
        let own = table.live_columns().filter(|column| column.generated.is_none());
        return Ok(own.map(|column| column.id).collect());
    };
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let Some(column) = table.column_named(name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            return Err(SqlError::new("42703", message));
        };
        if column.generated.is_some() {
            return Err(SqlError::new("42P10", format!("column \"{name}\" is a generated column"))
                .with_detail("Generated columns cannot be used in COPY."));
        }
        if columns.contains(&column.id) {
            return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
        }
        columns.push(column.id);
    }
    Ok(columns)
}

fn check_force(table: &TableDef, columns: &[ColumnId], force: &ForceColumns, clause: &str) -> Result<()> {
    let ForceColumns::Some(names) = force else { return Ok(()) };
    for name in names {
        if table.column_named(name).is_none() {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            return Err(SqlError::new("42703", message));
        }
        let named = columns.iter().any(|id| table.column(*id).name == *name);
        if !named {
            return Err(SqlError::new("42P10", format!("{clause} column \"{name}\" not referenced by COPY")));
        }
    }
    Ok(())
}

async fn copy_to(session: &mut Session, copy: &CopyStatement, sql: &Arc<str>) -> Result<Outcome> {
    let (query, text) = match &copy.source {
        CopySource::Query(query) => (query.clone(), sql.clone()),
        CopySource::Table { name, columns } => {
            let text = select_text(session, name, columns.as_deref())?;
            (parse_query_text(&text)?, Arc::from(text))
        }
    };
    let statement = Statement::Query(query);
    session.check_writes(&statement)?;
    let (bound, eval, _) = session.plan(&statement, &text, Vec::new(), ParamTypes::none()).await?;
    let Some(columns) = bound.columns() else {
        return Err(SqlError::not_supported("COPY query must have a RETURNING clause"));
    };
    let columns: Vec<WriterColumn> = columns
        .iter()
        .map(|column| WriterColumn {
            name: column.name.clone(),
            ty: column.ty.clone(),
            force_quote: copy.options.force_quote.has(&column.name),
        })
        .collect();
    if let ForceColumns::Some(names) = &copy.options.force_quote
        && let Some(name) = names.iter().find(|name| !columns.iter().any(|column| column.name == **name))
    {
        return Err(SqlError::new("42P10", format!("FORCE_QUOTE column \"{name}\" not referenced by COPY")));
    }
    let count = columns.len();
    let writer = CopyWriter::new(columns, copy.options.clone(), eval.clone());
    let mut source = match &bound {
        Bound::Query(query) => super::lock_rows::rows(session, query, &eval).await?,
        command => match session.run_bound(command, &eval).await? {
            Outcome::Rows(RowStream { source: StreamSource::Own(source), .. }) => source,
            _ => return Err(SqlError::internal("RETURNING gives no rows")),
        },
    };
    match &copy.target {
        CopyTarget::Client => {
            let format = i16::from(copy.options.format == CopyFormat::Binary);
            Ok(Outcome::CopyOut(CopyOut { format, columns: count, rows: 0, source, writer: Some(writer) }))
        }
        CopyTarget::File(path) => {
            let rows = write_file(session, &mut source, writer, Path::new(path)).await?;
            Ok(Outcome::Command { tag: format!("COPY {rows}") })
        }
    }
}

/// `COPY table TO` as the query that it means.
fn select_text(session: &mut Session, name: &Name, columns: Option<&[String]>) -> Result<String> {
    let catalog = session.txn()?.catalog();
    let table = match resolve::find(session, &catalog, name)? {
        Some(Relation::Table(table)) if table.materialized.is_some() => {
            return Err(SqlError::new("42809", format!("cannot copy from materialized view \"{}\"", table.name))
                .with_hint("Try the COPY (SELECT ...) TO variant."));
        }
        Some(Relation::Table(table)) => table,
        Some(Relation::View(view)) => {
            return Err(SqlError::new("42809", format!("cannot copy from view \"{}\"", view.name))
                .with_hint("Try the COPY (SELECT ...) TO variant."));
        }
        Some(Relation::Sequence(sequence)) => {
            return Err(SqlError::new("42809", format!("cannot copy from sequence \"{}\"", sequence.name)));
        }
        None => return Err(no_relation("relation", name)),
    };
    let namespace =
        catalog.namespaces.get(&table.namespace).map(|namespace| namespace.name.clone()).unwrap_or_default();
    let columns = columns_of(&table, columns)?;
    let names: Vec<String> = columns.iter().map(|id| quote_identifier(&table.column(*id).name)).collect();
    Ok(format!("SELECT {} FROM {}.{}", names.join(", "), quote_identifier(&namespace), quote_identifier(&table.name)))
}

fn file_error(verb: &str, path: &Path, error: &std::io::Error) -> SqlError {
    let sqlstate = match error.kind() {
        std::io::ErrorKind::NotFound => "58P01",
        std::io::ErrorKind::PermissionDenied => "42501",
        _ => "58030",
    };
    SqlError::new(sqlstate, format!("could not {verb} file \"{}\": {error}", path.display()))
}

fn require_absolute(path: &Path) -> Result<()> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(SqlError::new("42602", "relative path not allowed for COPY to or from a file"))
}

/// Bytes of one read or write of a server-side file.
const FILE_CHUNK_BYTES: usize = 1 << 20;

async fn read_file(session: &mut Session, mut feed: CopyFeed, path: PathBuf) -> Result<u64> {
    require_absolute(&path)?;
    let fs = session.db.os().fs.clone();
    let opened = fs.open(&path, OpenMode::Read);
    let file = opened.map_err(|error| file_error("open", &path, &error))?;
    let mut offset = 0;
    loop {
        let file = file.clone();
        let read = session.db.runtime().handle().spawn_blocking(move || {
            let mut chunk = vec![0; FILE_CHUNK_BYTES];
            let count = file.read_at(&mut chunk, offset)?;
            chunk.truncate(count);
            Ok::<_, std::io::Error>(chunk)
        });
        let chunk = read.await.map_err(|error| SqlError::internal(error.to_string()))?;
        let chunk = chunk.map_err(|error| file_error("read", &path, &error))?;
        if chunk.is_empty() {
            return feed.finish(session).await;
        }
        offset += chunk.len() as u64;
        feed.push(session, chunk.into()).await?;
    }
}

async fn write_file(session: &mut Session, source: &mut RowSource, mut writer: CopyWriter, path: &Path) -> Result<u64> {
    require_absolute(path)?;
    let fs = session.db.os().fs.clone();
    match fs.remove(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(file_error("open", path, &error)),
        _ => {}
    }
    let file = fs.open(path, OpenMode::CreateNew).map_err(|error| file_error("open", path, &error))?;
    let (mut offset, mut rows) = (0, 0);
    let mut write = |bytes: &[u8]| -> Result<()> {
        file.write_at(bytes, offset).map_err(|error| file_error("write", path, &error))?;
        offset += bytes.len() as u64;
        Ok(())
    };
    while let Some(batch) = source.next(usize::MAX).await? {
        rows += batch.num_rows() as u64;
        write(writer.rows(&batch)?.bytes())?;
    }
    write(writer.finish().bytes())?;
    Ok(rows)
}
