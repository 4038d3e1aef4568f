//! The extended protocol: prepare, bind, describe, execute, close, sync.

use super::outcome::{Columns, Outcome, ResultColumn, RowStream, StreamSource};
use super::params::{self, Formats};
use super::prepared::{Body, Portal, Prepared};
use super::{Scope, Session, no_portal, spent_portal};
use crate::error::{Result, SqlError};
use crate::statement::utility;
use crate::syntax::{Statement, TransactionVerb, Utility};
use basalt_expr::EvalContext;
use basalt_types::DataType;
use parking_lot::Mutex;
use std::sync::Arc;

/// Prepared statements of one session.
const STATEMENTS_MAX: usize = 100_000;

fn no_statement(name: &str) -> SqlError {
    match name {
        "" => SqlError::new("26000", "unnamed prepared statement does not exist"),
        name => SqlError::new("26000", format!("prepared statement \"{name}\" does not exist")),
    }
}

/// Whether no value of a type is written by the moment, as `today` is.
fn is_timeless(ty: &DataType) -> bool {
    use DataType::*;
    matches!(
        ty,
        Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric(_) | Text | Varchar(_) | Bpchar(_) | Bytea | Uuid
    )
}

impl Session {
    /// Parse. Oids of 0 (or none given) leave a parameter's type to its context.
    pub async fn prepare(&mut self, name: &str, sql: &str, param_oids: &[u32]) -> Result<()> {
        let result = self.prepare_inner(name, sql, param_oids);
        self.extended(result, sql)
    }

    /// An error ends the message's work: the transaction fails.
    pub(super) fn extended<T>(&mut self, result: Result<T>, sql: &str) -> Result<T> {
        result.inspect_err(|error| self.never_ran(sql, error))
    }

    fn prepare_inner(&mut self, name: &str, sql: &str, param_oids: &[u32]) -> Result<()> {
        if name.is_empty() {
            self.statements.remove("");
        } else if self.statements.contains_key(name) {
            return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        let around = self.surroundings(&self.db.engine().catalog());
        let prepared = self.parse_one(name, sql, param_oids)?;
        self.add_statement(prepared)?;
        if name.is_empty() {
            self.note_parsed(sql, param_oids, around);
        }
        Ok(())
    }

    /// Parses the one statement of a text, and binds it once to learn types and columns.
    pub(super) fn parse_one(&mut self, name: &str, sql: &str, param_oids: &[u32]) -> Result<Prepared> {
        let mut parsed = crate::syntax::parse(sql)?;
        let first = parsed.pop();
        if !parsed.is_empty() {
            return Err(SqlError::syntax("cannot insert multiple commands into a prepared statement"));
        }
        let catalog = self.current_catalog();
        let types = param_oids.iter().map(|oid| params::type_of_oid(&catalog, *oid)).collect::<Result<Vec<_>>>()?;
        match first {
            Some(parsed) => self.prepared(name, parsed.sql, Some(parsed.statement), types, false),
            None => self.prepared(name, sql.into(), None, types, false),
        }
    }

    /// Binds a statement once to learn types and columns.
    pub(crate) fn prepared(
        &mut self,
        name: &str,
        sql: Arc<str>,
        statement: Option<Statement>,
        types: Vec<DataType>,
        from_sql: bool,
    ) -> Result<Prepared> {
        let ends_block = matches!(
            statement,
            None | Some(Statement::Transaction(
                TransactionVerb::Commit { .. } | TransactionVerb::Rollback { .. } | TransactionVerb::RollbackTo(_)
            ))
        );
        if !ends_block {
            self.refuse_if_failed()?;
        }
        let (types, columns) = match &statement {
            Some(statement) => self.describe(statement, &sql, types)?,
            None => (types, None),
        };
        let own = self.edits_catalog();
        let types_of = super::prepared::types_of(&self.current_catalog(), own, &types, columns.as_ref());
        Ok(Prepared {
            name: name.to_string(),
            sql,
            body: statement.map_or(Body::Nothing, Body::Parsed),
            types_of,
            types,
            style: Some(self.literal_style()),
            columns,
            plan: Mutex::new(None),
            from_sql,
            made_micros: self.statement_micros,
        })
    }

    /// Keeps a statement under its name.
    pub(crate) fn add_statement(&mut self, prepared: Prepared) -> Result<()> {
        if self.statements.len() >= STATEMENTS_MAX {
            return Err(SqlError::new("53400", format!("a session may keep {STATEMENTS_MAX} prepared statements"))
                .with_hint("Close those that are no longer needed (DEALLOCATE)."));
        }
        self.statements.insert(prepared.name.clone(), Arc::new(prepared));
        Ok(())
    }

    pub(crate) fn statement_named(&self, name: &str) -> Result<Arc<Prepared>> {
        self.statements.get(name).cloned().ok_or_else(|| no_statement(name))
    }

    /// The same with types as they are defined now: labels may have been added, attributes dropped.
    pub(crate) fn statement_of_now(&mut self, name: &str) -> Result<Arc<Prepared>> {
        let prepared = self.statement_named(name)?;
        if let Some(Statement::Utility(utility)) = prepared.statement()
            && matches!(**utility, Utility::Fetch { .. } | Utility::Execute { .. })
        {
            // What it gives is another statement's, which may be another since.
            let columns = utility::columns(self, utility).unwrap_or_default();
            return Ok(match columns == prepared.columns {
                true => prepared,
                false => Arc::new(prepared.giving(columns)),
            });
        }
        let Some(version) = prepared.types_of else { return Ok(prepared) };
        let (catalog, own) = (self.current_catalog(), self.edits_catalog());
        if !own && catalog.version == version {
            return Ok(prepared);
        }
        let fresh = Arc::new(prepared.redefined(&catalog, own));
        self.statements.insert(fresh.name.clone(), fresh.clone());
        Ok(fresh)
    }

    /// Parameter types and result columns (`None`: no rows).
    pub fn describe_statement(&mut self, name: &str) -> Result<(Vec<DataType>, Option<Columns>)> {
        let prepared = self.statement_of_now(name)?;
        Ok((prepared.types.clone(), prepared.columns.clone()))
    }

    /// Formats: none (all text), one (for all), or one each.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        params: &[Option<&[u8]>],
        param_formats: &[i16],
        result_formats: &[i16],
    ) -> Result<()> {
        let result = self.bind_inner(portal, statement, params, param_formats, result_formats);
        result.or_else(|error| {
            let sql = self.statements.get(statement).map(|prepared| prepared.sql.clone());
            self.extended(Err(error), sql.as_deref().unwrap_or_default())
        })
    }

    fn bind_inner(
        &mut self,
        portal: &str,
        statement: &str,
        params: &[Option<&[u8]>],
        param_formats: &[i16],
        result_formats: &[i16],
    ) -> Result<()> {
        let prepared = self.statement_of_now(statement)?;
        let ends_block = matches!(prepared.body, Body::Nothing | Body::Parsed(Statement::Transaction(_)));
        if !ends_block {
            self.refuse_if_failed()?;
        }
        if params.len() != prepared.types.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {}",
                params.len(),
                prepared.types.len()
            );
            return Err(SqlError::new("08P01", message));
        }
        if !portal.is_empty() && self.portals.contains(portal) {
            return Err(SqlError::new("42P03", format!("cursor \"{portal}\" already exists")));
        }
        let mut values = Vec::with_capacity(params.len());
        if !params.is_empty() {
            let formats = Formats::of(param_formats, params.len(), "parameter")?;
            let catalog = self.current_catalog();
            let around = self.surroundings(&catalog);
            let mut of_now = None;
            let eval = match prepared.types.iter().all(is_timeless) {
                true => &around.eval,
                false => {
                    // Between transactions this may be the message that begins one.
                    let (now_micros, statement_micros) = match self.block.scope {
                        Scope::None => [self.db.os().clock.unix_micros(); 2].into(),
                        _ => self.moments(),
                    };
                    &*of_now.insert(EvalContext { now_micros, statement_micros, ..around.eval.clone() })
                }
            };
            for (at, (value, ty)) in params.iter().zip(&prepared.types).enumerate() {
                let decoded = params::decode(ty, *value, formats.get(at), eval);
                values.push(decoded.map_err(|error| match error.sqlstate {
                    "22P03" => {
                        SqlError::new("22P03", format!("incorrect binary data format in bind parameter {}", at + 1))
                    }
                    _ => error,
                })?);
            }
        }
        let columns = match &prepared.columns {
            Some(columns) => {
                let formats = Formats::of(result_formats, columns.len(), "result")?;
                match (0..columns.len()).all(|at| formats.get(at) == 0) {
                    true => Some(columns.clone()),
                    false => {
                        let formatted = columns.iter().enumerate();
                        let formatted =
                            formatted.map(|(at, column)| ResultColumn { format: formats.get(at), ..column.clone() });
                        Some(formatted.collect())
                    }
                }
            }
            None => None,
        };
        let verb = "SELECT";
        let new = Portal {
            prepared,
            params: values,
            columns,
            rows: None,
            verb,
            done: false,
            hold: false,
            savepoints: self.block.savepoint_count(),
            made_micros: self.db.os().clock.unix_micros(),
            cursor: None,
        };
        self.portals.insert(portal, new);
        Ok(())
    }

    pub fn describe_portal(&self, portal: &str) -> Result<Option<Columns>> {
        self.portals.get(portal).map(|portal| portal.columns.clone()).ok_or_else(|| no_portal(portal))
    }

    /// Runs a portal, or resumes it; `max_rows` 0 means all.
    pub async fn execute(&mut self, portal: &str, max_rows: usize) -> Result<Outcome> {
        let Some(found) = self.portals.get_mut(portal) else {
            let error = no_portal(portal);
            self.statement_failed(&error);
            return Err(error);
        };
        let rows_max = if max_rows == 0 { usize::MAX } else { max_rows };
        let (prepared, columns) = (found.prepared.clone(), found.columns.clone());
        if found.rows.is_some() {
            let columns = columns.unwrap_or_default();
            let (source, verb) = (StreamSource::Portal(portal.to_string()), found.verb);
            self.statement_begins(&prepared.sql);
            // It may have been made before the savepoint that the transaction has failed behind.
            self.refuse_if_failed().inspect_err(|error| self.statement_failed(error))?;
            return Ok(Outcome::Rows(RowStream {
                leaves_rest: true,
                ..RowStream::of(columns, source, verb, rows_max)
            }));
        }
        if found.done {
            let error = spent_portal(portal);
            self.statement_failed(&error);
            return Err(error);
        }
        found.done = true;
        let params = std::mem::take(&mut found.params);
        self.statement_begins(&prepared.sql);
        let result = match &prepared.body {
            Body::Known(text) => match self.parse_known(portal, &prepared) {
                Ok(parsed) => {
                    let around = self.surroundings(&self.db.engine().catalog());
                    let result = self.dispatch_prepared(&parsed, params).await;
                    if result.is_ok() {
                        self.note_known(&text.known, &parsed, &prepared.sql, around);
                    }
                    result
                }
                Err(error) => Err(error),
            },
            _ => self.dispatch_prepared(&prepared, params).await,
        };
        match self.note_end(result)? {
            Outcome::Rows(stream) => {
                let parked = self.park(portal, stream, columns, rows_max).await;
                parked.map(Outcome::Rows).inspect_err(|error| self.statement_failed(error))
            }
            other => Ok(other),
        }
    }

    /// Leaves the rows with the portal where they may be asked for in parts.
    async fn park(
        &mut self,
        name: &str,
        mut stream: RowStream,
        columns: Option<Columns>,
        rows_max: usize,
    ) -> Result<RowStream> {
        if let Some(columns) = columns {
            let types = columns.iter().map(|column| &column.ty);
            let is_same =
                Arc::ptr_eq(&columns, &stream.columns) || types.eq(stream.columns.iter().map(|column| &column.ty));
            if !is_same {
                return Err(SqlError::not_supported("cached plan must not change result type"));
            }
            stream.columns = columns;
        }
        if rows_max >= stream.rows_max {
            return Ok(stream);
        }
        let (columns, verb) = (stream.columns.clone(), stream.verb);
        let rows = match stream.source {
            StreamSource::Own(rows) => rows,
            // What FETCH takes of a cursor is the portal's from now on.
            StreamSource::Portal(_) => stream.read(self).await?,
        };
        let savepoints = self.block.savepoint_count();
        let source = match self.portals.get_mut(name) {
            Some(portal) => {
                portal.rows = Some(rows);
                portal.verb = verb;
                // It goes with its locks, which it has taken just now.
                portal.savepoints = savepoints;
                StreamSource::Portal(name.to_string())
            }
            None => StreamSource::Own(rows),
        };
        Ok(RowStream { leaves_rest: true, ..RowStream::of(columns, source, verb, rows_max) })
    }

    pub fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Ends an implicit transaction of the extended protocol: commits it, or rolls it back after an error.
    pub async fn sync(&mut self) -> Result<()> {
        self.end_implicit().await.inspect_err(|error| self.commit_failed(error))?;
        self.sync_inline();
        Ok(())
    }

    /// [`Session::sync`] if there is nothing to commit, to roll back or to wait for.
    pub fn sync_inline(&mut self) -> bool {
        let waits = self.block.scope == Scope::Implicit || self.block.undoing.is_some();
        if !waits && self.block.scope == Scope::None {
            self.portals.retain(|portal| portal.hold);
        }
        !waits
    }

    pub(super) fn commit_failed(&self, error: &SqlError) {
        self.db.note_error(error, "COMMIT");
    }
}
