//! What a client is told when a statement fails, and the one place where error kinds become SQLSTATEs.

use basalt_expr::error::RefusedBy;
use basalt_types::ErrorKind;
use datafusion::error::DataFusionError;
use std::fmt;
use std::sync::Arc;

pub type Result<T, E = SqlError> = std::result::Result<T, E>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Error,
    Fatal,
}

impl Severity {
    /// As the protocol spells it.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Debug => "DEBUG",
            Severity::Log => "LOG",
            Severity::Info => "INFO",
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
        }
    }
}

/// An error or notice with PostgreSQL's fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SqlError {
    pub sqlstate: &'static str,
    pub severity: Severity,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// Character of the statement, counted from 1.
    pub position: Option<u32>,
    /// `CONTEXT`: where in the data it happened.
    pub context: Option<String>,
    /// Which object a constraint error is about.
    pub object: Option<Box<ErrorObject>>,
    /// PostgreSQL's function, where drivers tell errors of one SQLSTATE apart by it.
    pub routine: Option<&'static str>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ErrorObject {
    pub schema: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    /// A domain.
    pub datatype: Option<String>,
    pub constraint: Option<String>,
}

impl From<RefusedBy> for ErrorObject {
    fn from(refused: RefusedBy) -> ErrorObject {
        let RefusedBy { schema, domain, constraint } = refused;
        ErrorObject { schema: Some(schema), datatype: Some(domain), constraint, ..ErrorObject::default() }
    }
}

impl SqlError {
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
        SqlError {
            sqlstate,
            severity: Severity::Error,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            object: None,
            routine: None,
        }
    }

    pub fn notice(severity: Severity, sqlstate: &'static str, message: impl Into<String>) -> SqlError {
        SqlError { severity, ..SqlError::new(sqlstate, message) }
    }

    pub fn fatal(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
        SqlError::notice(Severity::Fatal, sqlstate, message)
    }

    /// XX000: a broken invariant of Basalt's own.
    /// Whether it says that the machine or somebody has stopped a statement, whatever is in it.
    pub fn is_of_resources(&self) -> bool {
        ["53", "57", "58"].iter().any(|class| self.sqlstate.starts_with(class))
    }

    /// Whether it comes of the values that something was computed from.
    pub fn is_of_data(&self) -> bool {
        self.sqlstate.starts_with("22")
    }

    pub fn internal(message: impl Into<String>) -> SqlError {
        SqlError::new("XX000", message)
    }

    /// 0A000.
    pub fn not_supported(what: impl Into<String>) -> SqlError {
        SqlError::new("0A000", what)
    }

    /// 42601.
    pub fn syntax(message: impl Into<String>) -> SqlError {
        SqlError::new("42601", message)
    }

    pub fn canceled() -> SqlError {
        SqlError::new("57014", "canceling statement due to user request")
    }

    pub fn with_detail_if(self, detail: Option<String>) -> SqlError {
        SqlError { detail, ..self }
    }

    pub fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.detail = Some(detail.into());
        self
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the position unless one is known already: the innermost is the most exact.
    pub fn at(mut self, position: Option<u32>) -> SqlError {
        self.position = self.position.or(position);
        self
    }

    /// The same for a position that takes looking for.
    pub fn at_with(self, position: impl FnOnce() -> Option<u32>) -> SqlError {
        match self.position {
            Some(_) => self,
            None => self.at(position()),
        }
    }

    pub fn with_routine(mut self, routine: &'static str) -> SqlError {
        self.routine = Some(routine);
        self
    }

    pub fn with_context(mut self, context: impl Into<String>) -> SqlError {
        self.context = Some(context.into());
        self
    }

    pub fn with_object(mut self, object: ErrorObject) -> SqlError {
        self.object = Some(Box::new(object));
        self
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.severity.name(), self.message, self.sqlstate)
    }
}

impl std::error::Error for SqlError {}

impl From<basalt_expr::Error> for SqlError {
    fn from(error: basalt_expr::Error) -> SqlError {
        let basalt_expr::Error { sqlstate, message, detail, hint, refused_by } = error;
        let object = refused_by.map(|refused| Box::new(ErrorObject::from(*refused)));
        SqlError { detail, hint, object, ..SqlError::new(sqlstate, message) }
    }
}

/// Where a function of an expression has run something of the session. An expression knows no position.
impl From<SqlError> for basalt_expr::Error {
    fn from(error: SqlError) -> basalt_expr::Error {
        let SqlError { sqlstate, message, detail, hint, object, .. } = error;
        let refused_by = object.and_then(|object| {
            let ErrorObject { schema, datatype, constraint, .. } = *object;
            Some(Box::new(RefusedBy { schema: schema?, domain: datatype?, constraint }))
        });
        basalt_expr::Error { sqlstate, message, detail, hint, refused_by }
    }
}

impl From<basalt_exec::Error> for SqlError {
    fn from(error: basalt_exec::Error) -> SqlError {
        match error {
            basalt_exec::Error::Storage(error) => error.into(),
            basalt_exec::Error::Expr(error) => error.into(),
            basalt_exec::Error::Stopped => SqlError::canceled(),
            basalt_exec::Error::Temp(error) => from_io(&error),
            basalt_exec::Error::TempLimit { .. } => temp_limit(),
            basalt_exec::Error::TempDamaged { .. } => SqlError::new("XX001", error.to_string()),
            // Where rows have left, no other engine can run the query.
            basalt_exec::Error::Beyond(what) => SqlError::new("54000", format!("the column engine met {what}")),
        }
    }
}

impl From<basalt_engine::Error> for SqlError {
    fn from(error: basalt_engine::Error) -> SqlError {
        use basalt_engine::Error;
        if let Error::Expression(error) = error {
            return error.into();
        }
        let sqlstate = match &error {
            Error::Serialization(_) => "40001",
            Error::Dependencies => {
                return SqlError::new("40001", error.to_string())
                    .with_detail("What the transaction has read was changed since.")
                    .with_hint("The transaction might succeed if retried.");
            }
            Error::Deadlock(waits) => {
                let waits: Vec<String> = waits.iter().map(ToString::to_string).collect();
                return SqlError::new("40P01", error.to_string())
                    .with_detail(waits.join("\n"))
                    .with_hint("The transaction might succeed if retried.");
            }
            Error::SnapshotTooOld => "72000",
            Error::LockNotAvailable(_) | Error::LockTimeout(_) => "55P03",
            Error::TooManyLocks { .. } => "53200",
            Error::NoSpace { .. } => "53100",
            Error::TooLarge(_) => "54000",
            Error::Memory(_) => "53200",
            Error::DuplicateKey { .. } => "23505",
            Error::TableGone(_) => "42P01",
            Error::Corrupt(_) => "XX001",
            Error::DirectoryInUse { .. } => "55006",
            Error::LogFailed(_) | Error::Io(_) | Error::Directory(_) => "58030",
            Error::ShuttingDown => "57P01",
            // Made by two transactions side by side: who commits second is told.
            Error::Catalog(basalt_engine::CatalogError::Exists { what, .. }) => match *what {
                "relation" => "42P07",
                "schema" => "42P06",
                "database" => "42P04",
                _ => "42710",
            },
            Error::Catalog(_) | Error::Expression(_) | Error::Internal(_) => match error.kind() {
                ErrorKind::Conflict => "40001",
                ErrorKind::Retry => "55P03",
                // A type within types within types.
                ErrorKind::Limit => "54001",
                ErrorKind::Corrupt => "XX001",
                ErrorKind::Invalid | ErrorKind::Fenced | ErrorKind::Internal => "XX000",
            },
        };
        SqlError::new(sqlstate, error.to_string())
    }
}

impl From<DataFusionError> for SqlError {
    /// Finds the error that Basalt's own code put into DataFusion's; otherwise maps DataFusion's kinds.
    fn from(error: DataFusionError) -> SqlError {
        match error {
            DataFusionError::IoError(error) => from_io(&error),
            DataFusionError::External(inner) => match inner.downcast::<SqlError>() {
                Ok(error) => *error,
                Err(inner) => match inner.downcast::<DataFusionError>() {
                    Ok(error) => SqlError::from(*error),
                    Err(inner) => SqlError::internal(inner.to_string()),
                },
            },
            DataFusionError::Shared(shared) => from_shared(&shared),
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => SqlError::from(*inner),
            DataFusionError::ResourcesExhausted(message) => SqlError::new("53200", "out of memory")
                .with_detail(message)
                .with_hint("Raise basalt.query_memory_limit, or let the query read less at once."),
            DataFusionError::NotImplemented(message) => SqlError::not_supported(message),
            DataFusionError::ArrowError(inner, _) => match *inner {
                datafusion::arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<SqlError>() {
                    Ok(error) => *error,
                    Err(inner) => SqlError::internal(inner.to_string()),
                },
                datafusion::arrow::error::ArrowError::IoError(_, error) => from_io(&error),
                datafusion::arrow::error::ArrowError::DivideByZero => SqlError::new("22012", "division by zero"),
                other => SqlError::internal(other.to_string()),
            },
            DataFusionError::Collection(mut errors) if !errors.is_empty() => SqlError::from(errors.swap_remove(0)),
            other => SqlError::internal(other.to_string()),
        }
    }
}

/// An operator could not write or read what it spilled.
fn from_io(error: &std::io::Error) -> SqlError {
    if error.to_string().contains("used disk space during the spilling") {
        return temp_limit();
    }
    match error.kind() {
        std::io::ErrorKind::StorageFull => SqlError::new("53100", format!("cannot write a temporary file: {error}")),
        _ => SqlError::new("58030", format!("cannot use a temporary file: {error}")),
    }
}

fn temp_limit() -> SqlError {
    SqlError::new("53400", "temporary files of queries exceed basalt.temp_limit")
        .with_hint("Let the query read less at once, or raise basalt.temp_limit.")
}

/// One error that several consumers of a stream see.
fn from_shared(shared: &Arc<DataFusionError>) -> SqlError {
    if let DataFusionError::External(inner) = shared.find_root()
        && let Some(error) = inner.downcast_ref::<SqlError>()
    {
        return error.clone();
    }
    match shared.find_root() {
        DataFusionError::ResourcesExhausted(message) => {
            SqlError::from(DataFusionError::ResourcesExhausted(message.clone()))
        }
        DataFusionError::IoError(error) => from_io(error),
        DataFusionError::ArrowError(inner, _) => match &**inner {
            datafusion::arrow::error::ArrowError::IoError(_, error) => from_io(error),
            other => SqlError::internal(other.to_string()),
        },
        other => SqlError::internal(other.to_string()),
    }
}

impl From<SqlError> for DataFusionError {
    fn from(error: SqlError) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

#[cfg(test)]
mod tests;
