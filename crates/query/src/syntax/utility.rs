//! Transaction control, settings, prepared statements, cursors and maintenance.

use super::{Name, Parsed, Reader, SetConstraints, Statement};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

pub use basalt_engine::Isolation;

/// What BEGIN and SET TRANSACTION may say; `None`: as before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionModes {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransactionVerb {
    Begin {
        modes: TransactionModes,
        start: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    /// `session`: for the transactions to come.
    SetModes {
        modes: TransactionModes,
        session: bool,
    },
}

impl TransactionVerb {
    pub fn tag(&self) -> &'static str {
        match self {
            TransactionVerb::Begin { start: false, .. } => "BEGIN",
            TransactionVerb::Begin { start: true, .. } => "START TRANSACTION",
            TransactionVerb::Commit { .. } => "COMMIT",
            TransactionVerb::Rollback { .. } | TransactionVerb::RollbackTo(_) => "ROLLBACK",
            TransactionVerb::Savepoint(_) => "SAVEPOINT",
            TransactionVerb::Release(_) => "RELEASE",
            TransactionVerb::SetModes { .. } => "SET",
        }
    }
}

/// What SET assigns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetValue {
    Default,
    /// Several for lists such as `search_path`.
    Items(Vec<String>),
}

/// Which rows FETCH gives, and where it and MOVE leave the cursor. A negative `Forward` goes backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchRows {
    Forward(i64),
    ForwardAll,
    BackwardAll,
    Absolute(i64),
    Relative(i64),
}

#[derive(Clone, Debug)]
pub struct Declare {
    pub name: String,
    pub binary: bool,
    /// `None`: neither SCROLL nor NO SCROLL.
    pub scroll: Option<bool>,
    pub insensitive: bool,
    pub hold: bool,
    pub query: Box<ast::Query>,
}

#[derive(Clone, Debug)]
pub enum Utility {
    Set {
        name: String,
        value: SetValue,
        local: bool,
    },
    Show(String),
    ShowAll,
    Reset(String),
    ResetAll,
    Discard(&'static str),
    Prepare {
        name: String,
        types: Vec<ast::DataType>,
        statement: Statement,
    },
    Execute {
        name: String,
        args: Vec<ast::Expr>,
    },
    /// `None`: all.
    Deallocate(Option<String>),
    Declare(Declare),
    Fetch {
        cursor: String,
        rows: FetchRows,
        only_move: bool,
    },
    /// `None`: all.
    Close(Option<String>),
    Listen(String),
    /// `None`: all.
    Unlisten(Option<String>),
    Notify {
        channel: String,
        payload: String,
    },
    SetConstraints(SetConstraints),
    Lock {
        tables: Vec<Name>,
        mode: basalt_engine::TableLock,
        nowait: bool,
    },
    Vacuum {
        tables: Vec<TableColumns>,
        full: bool,
        analyze: bool,
    },
    Analyze {
        tables: Vec<TableColumns>,
    },
    Checkpoint,
    AlterSystem {
        name: String,
        value: SetValue,
    },
    AlterSystemResetAll,
}

/// A table of VACUUM and ANALYZE; no columns means all.
#[derive(Clone, Debug)]
pub struct TableColumns {
    pub name: Name,
    pub columns: Vec<String>,
}

impl Utility {
    /// The query of a cursor.
    pub fn query(&self) -> Option<&ast::Query> {
        match self {
            Utility::Declare(declared) => Some(&declared.query),
            _ => None,
        }
    }

    pub fn tag(&self) -> &'static str {
        match self {
            Utility::Set { .. } => "SET",
            Utility::Show(_) | Utility::ShowAll => "SHOW",
            Utility::Reset(_) | Utility::ResetAll => "RESET",
            Utility::Discard("ALL") => "DISCARD ALL",
            Utility::Discard("PLANS") => "DISCARD PLANS",
            Utility::Discard("SEQUENCES") => "DISCARD SEQUENCES",
            Utility::Discard(_) => "DISCARD TEMP",
            Utility::Prepare { .. } => "PREPARE",
            Utility::Execute { .. } => "EXECUTE",
            Utility::Deallocate(Some(_)) => "DEALLOCATE",
            Utility::Deallocate(None) => "DEALLOCATE ALL",
            Utility::Declare(_) => "DECLARE CURSOR",
            Utility::Fetch { only_move: false, .. } => "FETCH",
            Utility::Fetch { only_move: true, .. } => "MOVE",
            Utility::Close(Some(_)) => "CLOSE CURSOR",
            Utility::Close(None) => "CLOSE CURSOR ALL",
            Utility::Listen(_) => "LISTEN",
            Utility::Unlisten(_) => "UNLISTEN",
            Utility::Notify { .. } => "NOTIFY",
            Utility::SetConstraints(_) => "SET CONSTRAINTS",
            Utility::Lock { .. } => "LOCK TABLE",
            Utility::Vacuum { .. } => "VACUUM",
            Utility::Analyze { .. } => "ANALYZE",
            Utility::Checkpoint => "CHECKPOINT",
            Utility::AlterSystem { .. } | Utility::AlterSystemResetAll => "ALTER SYSTEM",
        }
    }
}

pub(super) fn parse_transaction(reader: &mut Reader<'_>) -> Result<Option<TransactionVerb>> {
    let verb = if reader.word("begin") {
        optional_noise(reader);
        TransactionVerb::Begin { modes: modes(reader)?, start: false }
    } else if reader.words(&["start", "transaction"]) {
        TransactionVerb::Begin { modes: modes(reader)?, start: true }
    } else if reader.word("commit") || reader.word("end") {
        if reader.word("prepared") {
            return Err(no_prepared(&reader.string()?));
        }
        optional_noise(reader);
        TransactionVerb::Commit { chain: chain(reader)? }
    } else if reader.word("rollback") || reader.word("abort") {
        if reader.word("prepared") {
            return Err(no_prepared(&reader.string()?));
        }
        optional_noise(reader);
        if reader.word("to") {
            reader.word("savepoint");
            TransactionVerb::RollbackTo(reader.name()?)
        } else {
            TransactionVerb::Rollback { chain: chain(reader)? }
        }
    } else if reader.word("savepoint") {
        TransactionVerb::Savepoint(reader.name()?)
    } else if reader.word("release") {
        reader.word("savepoint");
        TransactionVerb::Release(reader.name()?)
    } else if reader.words(&["prepare", "transaction"]) {
        return Err(two_phase());
    } else if reader.words(&["set", "transaction"])
        || reader.words(&["set", "session", "transaction"])
        || reader.words(&["set", "local", "transaction"])
    {
        TransactionVerb::SetModes { modes: some_modes(reader)?, session: false }
    } else if reader.words(&["set", "session", "characteristics", "as", "transaction"]) {
        TransactionVerb::SetModes { modes: some_modes(reader)?, session: true }
    } else {
        return Ok(None);
    };
    Ok(Some(verb))
}

/// Nothing prepares transactions.
fn no_prepared(identifier: &str) -> SqlError {
    SqlError::new("42704", format!("prepared transaction with identifier \"{identifier}\" does not exist"))
}

fn two_phase() -> SqlError {
    SqlError::not_supported("two-phase commit is not supported").with_hint("Use COMMIT.")
}

fn optional_noise(reader: &mut Reader<'_>) {
    let _ = reader.word("work") || reader.word("transaction");
}

fn chain(reader: &mut Reader<'_>) -> Result<bool> {
    if !reader.word("and") {
        return Ok(false);
    }
    let no = reader.word("no");
    reader.expect_word("chain")?;
    Ok(!no)
}

fn some_modes(reader: &mut Reader<'_>) -> Result<TransactionModes> {
    if reader.at_end() { Err(reader.error_here()) } else { modes(reader) }
}

fn modes(reader: &mut Reader<'_>) -> Result<TransactionModes> {
    let mut modes = TransactionModes::default();
    while !reader.at_end() {
        if reader.words(&["isolation", "level"]) {
            modes.isolation = Some(if reader.word("serializable") {
                Isolation::Serializable
            } else if reader.words(&["repeatable", "read"]) {
                Isolation::RepeatableRead
            } else if reader.words(&["read", "committed"]) || reader.words(&["read", "uncommitted"]) {
                Isolation::ReadCommitted
            } else {
                return Err(reader.error_here());
            });
        } else if reader.words(&["read", "only"]) {
            modes.read_only = Some(true);
        } else if reader.words(&["read", "write"]) {
            modes.read_only = Some(false);
        } else if reader.words(&["not", "deferrable"]) || reader.word("deferrable") {
        } else {
            return Err(reader.error_here());
        }
        reader.token(&Token::Comma);
    }
    Ok(modes)
}

pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Option<Utility>> {
    let Some(verb) = reader.one_of(&[
        "set",
        "show",
        "reset",
        "discard",
        "prepare",
        "execute",
        "deallocate",
        "declare",
        "fetch",
        "move",
        "close",
        "lock",
        "vacuum",
        "analyze",
        "analyse",
        "checkpoint",
        "listen",
        "unlisten",
        "notify",
        "cluster",
        "reindex",
        "grant",
        "revoke",
        "do",
        "call",
        "merge",
        "security",
        "import",
        "load",
    ]) else {
        return Ok(None);
    };
    Ok(Some(match verb {
        "set" if reader.word("constraints") => Utility::SetConstraints(super::index::set_constraints(reader)?),
        "set" => set(reader)?,
        "show" => show(reader)?,
        "reset" => match setting_name(reader)? {
            name if name == "all" => Utility::ResetAll,
            name => Utility::Reset(name),
        },
        "discard" => {
            let what = reader.one_of(&["all", "plans", "sequences", "temporary", "temp"]);
            Utility::Discard(match what {
                Some("all") => "ALL",
                Some("plans") => "PLANS",
                Some("sequences") => "SEQUENCES",
                Some(_) => "TEMP",
                None => return Err(reader.error_here()),
            })
        }
        "prepare" => prepare(reader)?,
        "execute" => execute(reader)?,
        "deallocate" => {
            reader.word("prepare");
            Utility::Deallocate(name_or_all(reader)?)
        }
        "declare" => declare(reader)?,
        "fetch" => fetch(reader, false)?,
        "move" => fetch(reader, true)?,
        "close" => Utility::Close(name_or_all(reader)?),
        "unlisten" => Utility::Unlisten(match reader.token(&Token::Mul) {
            true => None,
            false => Some(reader.ident()?),
        }),
        "load" => {
            let path = reader.string()?;
            return Err(SqlError::new("58P01", format!("could not access file \"{path}\": No such file or directory"))
                .with_hint("Basalt has what it has built in, and loads no libraries."));
        }
        "security" => return Err(security_label(reader)?),
        "listen" => Utility::Listen(reader.ident()?),
        "notify" => {
            let channel = reader.ident()?;
            let payload = match reader.token(&Token::Comma) {
                true => reader.string()?,
                false => String::new(),
            };
            Utility::Notify { channel, payload }
        }
        "lock" => lock(reader)?,
        "vacuum" => vacuum(reader)?,
        "analyze" | "analyse" => {
            options_in_parens(reader, "ANALYZE", &["verbose", "skip_locked"])?;
            reader.word("verbose");
            Utility::Analyze { tables: tables(reader)? }
        }
        "checkpoint" => Utility::Checkpoint,
        other => return Err(unsupported(other)),
    }))
}

/// Behind SECURITY: nothing provides labels. 22023.
fn security_label(reader: &mut Reader<'_>) -> Result<SqlError> {
    reader.expect_word("label")?;
    let provider = match reader.word("for") {
        true => Some(reader.string_opt().map_or_else(|| reader.ident(), Ok)?),
        false => None,
    };
    reader.expect_word("on")?;
    while !reader.at_end() && !reader.word("is") {
        reader.skip();
    }
    if !reader.word("null") {
        reader.string()?;
    }
    reader.expect_end()?;
    Ok(SqlError::new(
        "22023",
        match provider {
            Some(provider) => format!("security label provider \"{provider}\" is not loaded"),
            None => "no security label providers have been loaded".to_string(),
        },
    ))
}

fn unsupported(verb: &str) -> SqlError {
    let error = SqlError::not_supported(format!("{} is not supported", verb.to_uppercase()));
    match verb {
        "do" | "call" => error.with_hint("Run the statements from the client."),
        "cluster" | "reindex" => error.with_hint("Use VACUUM FULL."),
        "merge" => error.with_hint("Use INSERT … ON CONFLICT."),
        _ => error,
    }
}

/// `name` or `class.name`, folded; the two-word names of the grammar as their one-word settings.
pub(super) fn setting_name(reader: &mut Reader<'_>) -> Result<String> {
    if reader.words(&["time", "zone"]) {
        return Ok("timezone".to_string());
    }
    if reader.words(&["session", "authorization"]) {
        return Ok("session_authorization".to_string());
    }
    if reader.words(&["transaction", "isolation", "level"]) {
        return Ok("transaction_isolation".to_string());
    }
    let mut name = reader.ident()?;
    while reader.token(&Token::Period) {
        name.push('.');
        name.push_str(&reader.ident()?);
    }
    Ok(name)
}

fn show(reader: &mut Reader<'_>) -> Result<Utility> {
    Ok(match setting_name(reader)? {
        name if name == "all" => Utility::ShowAll,
        name => Utility::Show(name),
    })
}

fn set(reader: &mut Reader<'_>) -> Result<Utility> {
    let local = reader.word("local");
    if !local && reader.sees("session") && !reader.sees_nth(1, "authorization") {
        reader.skip();
    }
    if reader.words(&["time", "zone"]) {
        let interval = reader.word("interval");
        let value = match reader.one_of(&["local", "default"]) {
            Some(_) => SetValue::Default,
            None => SetValue::Items(vec![item(reader)?]),
        };
        if interval && reader.word("hour") && reader.word("to") {
            reader.expect_word("minute")?;
        }
        let value = match value {
            SetValue::Items(items) if interval => SetValue::Items(items.iter().map(|text| offset_zone(text)).collect()),
            value => value,
        };
        return Ok(Utility::Set { name: "timezone".to_string(), value, local });
    }
    if reader.word("names") {
        let value = match reader.word("default") || reader.at_end() {
            true => SetValue::Default,
            false => SetValue::Items(vec![item(reader)?]),
        };
        return Ok(Utility::Set { name: "client_encoding".to_string(), value, local });
    }
    if reader.sees("role") && !reader.nth_is_eq(1) && !reader.sees_nth(1, "to") {
        reader.skip();
        return Ok(Utility::Set { name: "role".to_string(), value: SetValue::Items(vec![item(reader)?]), local });
    }
    if reader.words(&["session", "authorization"]) {
        let value = if reader.word("default") { SetValue::Default } else { SetValue::Items(vec![item(reader)?]) };
        return Ok(Utility::Set { name: "session_authorization".to_string(), value, local });
    }
    let name = setting_name(reader)?;
    Ok(Utility::Set { name, value: assigned(reader)?, local })
}

/// An interval of hours and minutes as the zone of that offset.
fn offset_zone(text: &str) -> String {
    let (sign, digits) = match text.trim().strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', text.trim().trim_start_matches('+')),
    };
    format!("<{sign}{digits}>")
}

/// `TO value, …` or `= value, …`.
pub(super) fn assigned(reader: &mut Reader<'_>) -> Result<SetValue> {
    if !reader.word("to") {
        reader.expect_token(&Token::Eq)?;
    }
    if reader.word("default") {
        return Ok(SetValue::Default);
    }
    Ok(SetValue::Items(reader.list(item)?))
}

/// A literal or a bare word, as text.
fn item(reader: &mut Reader<'_>) -> Result<String> {
    if let Some(text) = reader.string_opt() {
        return Ok(text);
    }
    if let Some(number) = reader.number_opt() {
        return Ok(number);
    }
    reader.ident()
}

fn name_or_all(reader: &mut Reader<'_>) -> Result<Option<String>> {
    Ok(if reader.word("all") { None } else { Some(reader.ident()?) })
}

fn prepare(reader: &mut Reader<'_>) -> Result<Utility> {
    let name = reader.name()?;
    let mut types = Vec::new();
    if reader.token(&Token::LParen) {
        types = reader.list(Reader::data_type)?;
        reader.expect_token(&Token::RParen)?;
    }
    reader.expect_word("as")?;
    let statement = super::parse_statement(reader)?;
    match statement {
        statement if statement.has_plan() => Ok(Utility::Prepare { name, types, statement }),
        other => Err(SqlError::syntax(format!("syntax error at or near \"{}\"", other.verb()))),
    }
}

fn execute(reader: &mut Reader<'_>) -> Result<Utility> {
    let (name, args) = execution(reader)?;
    Ok(Utility::Execute { name, args })
}

/// Behind EXECUTE: a prepared statement's name and its arguments.
pub(super) fn execution(reader: &mut Reader<'_>) -> Result<(String, Vec<ast::Expr>)> {
    let name = reader.ident()?;
    let mut args = Vec::new();
    if reader.token(&Token::LParen) && !reader.token(&Token::RParen) {
        args = reader.list(Reader::expr)?;
        reader.expect_token(&Token::RParen)?;
    }
    Ok((name, args))
}

fn declare(reader: &mut Reader<'_>) -> Result<Utility> {
    let name = reader.ident()?;
    let (mut binary, mut insensitive, mut asensitive) = (false, false, false);
    let (mut scroll, mut no_scroll) = (false, false);
    loop {
        if reader.words(&["no", "scroll"]) {
            no_scroll = true;
            continue;
        }
        match reader.one_of(&["binary", "insensitive", "asensitive", "scroll"]) {
            Some("binary") => binary = true,
            Some("insensitive") => insensitive = true,
            Some("asensitive") => asensitive = true,
            Some(_) => scroll = true,
            None => break,
        }
    }
    let both = |a: &str, b: &str| SqlError::new("42P11", format!("cannot specify both {a} and {b}"));
    reader.expect_word("cursor")?;
    let hold = reader.words(&["with", "hold"]);
    reader.words(&["without", "hold"]);
    reader.expect_word("for")?;
    let query = reader.query()?;
    if scroll && no_scroll {
        return Err(both("SCROLL", "NO SCROLL"));
    }
    if insensitive && asensitive {
        return Err(both("ASENSITIVE", "INSENSITIVE"));
    }
    let scroll = (scroll || no_scroll).then_some(scroll);
    Ok(Utility::Declare(Declare { name, binary, scroll, insensitive, hold, query }))
}

fn fetch(reader: &mut Reader<'_>, only_move: bool) -> Result<Utility> {
    let is_count = |reader: &Reader<'_>| matches!(reader.peek(), Token::Number(..) | Token::Minus | Token::Plus);
    let named = |reader: &Reader<'_>| {
        // A cursor may have the name of a direction: something else must follow the word.
        reader.nth_is_end(1)
    };
    let rows = if is_count(reader) {
        FetchRows::Forward(fetch_count(reader)?)
    } else if named(reader) {
        FetchRows::Forward(1)
    } else {
        match reader.one_of(&["next", "prior", "first", "last", "absolute", "relative", "all", "forward", "backward"]) {
            Some("prior") => FetchRows::Forward(-1),
            Some("first") => FetchRows::Absolute(1),
            Some("last") => FetchRows::Absolute(-1),
            Some("absolute") => FetchRows::Absolute(fetch_count(reader)?),
            Some("relative") => FetchRows::Relative(fetch_count(reader)?),
            Some("all") => FetchRows::ForwardAll,
            Some(direction @ ("forward" | "backward")) => {
                let back = direction == "backward";
                if is_count(reader) {
                    let count = fetch_count(reader)?;
                    FetchRows::Forward(if back { -count } else { count })
                } else if reader.sees("all") && !reader.nth_is_end(1) {
                    reader.skip();
                    if back { FetchRows::BackwardAll } else { FetchRows::ForwardAll }
                } else {
                    FetchRows::Forward(if back { -1 } else { 1 })
                }
            }
            _ => FetchRows::Forward(1),
        }
    };
    let _ = reader.word("from") || reader.word("in");
    Ok(Utility::Fetch { cursor: reader.name()?, rows, only_move })
}

/// A signed 32-bit number of rows.
fn fetch_count(reader: &mut Reader<'_>) -> Result<i64> {
    let error = reader.error_here();
    let count = reader.number_opt().and_then(|text| text.parse::<i32>().ok());
    count.map(i64::from).ok_or(error)
}

fn lock(reader: &mut Reader<'_>) -> Result<Utility> {
    use basalt_engine::TableLock::*;
    reader.word("table");
    let tables = reader.list(|reader| {
        reader.word("only");
        reader.object_name()
    })?;
    let mut mode = AccessExclusive;
    if reader.word("in") {
        mode = if reader.words(&["access", "share"]) {
            AccessShare
        } else if reader.words(&["row", "share"]) {
            RowShare
        } else if reader.words(&["row", "exclusive"]) {
            RowExclusive
        } else if reader.words(&["share", "update", "exclusive"]) {
            ShareUpdateExclusive
        } else if reader.words(&["share", "row", "exclusive"]) {
            ShareRowExclusive
        } else if reader.word("share") {
            Share
        } else if reader.words(&["access", "exclusive"]) {
            AccessExclusive
        } else if reader.word("exclusive") {
            Exclusive
        } else {
            return Err(reader.error_here());
        };
        reader.expect_word("mode")?;
    }
    Ok(Utility::Lock { tables, mode, nowait: reader.word("nowait") })
}

fn vacuum(reader: &mut Reader<'_>) -> Result<Utility> {
    const KNOWN: [&str; 10] = [
        "full",
        "freeze",
        "verbose",
        "analyze",
        "disable_page_skipping",
        "skip_locked",
        "index_cleanup",
        "process_toast",
        "truncate",
        "parallel",
    ];
    let options = options_in_parens(reader, "VACUUM", &KNOWN)?;
    let on = |name: &str| options.iter().any(|(option, on)| option == name && *on);
    let (mut full, mut analyze) = (on("full"), on("analyze"));
    loop {
        if reader.word("full") {
            full = true;
        } else if reader.word("analyze") || reader.word("analyse") {
            analyze = true;
        } else if !reader.word("freeze") && !reader.word("verbose") {
            break;
        }
    }
    let tables = tables(reader)?;
    if !analyze && tables.iter().any(|table| !table.columns.is_empty()) {
        let message = "ANALYZE option must be specified when a column list is provided";
        return Err(SqlError::not_supported(message));
    }
    Ok(Utility::Vacuum { tables, full, analyze })
}

fn options_in_parens(reader: &mut Reader<'_>, verb: &str, known: &[&str]) -> Result<Vec<(String, bool)>> {
    let mut options = Vec::new();
    if !reader.token(&Token::LParen) {
        return Ok(options);
    }
    loop {
        let place = reader.position();
        let name = reader.ident()?;
        if !known.contains(&name.as_str()) {
            return Err(SqlError::syntax(format!("unrecognized {verb} option \"{name}\"")).at(place));
        }
        let value = match reader.peek() {
            Token::Comma | Token::RParen => "on".to_string(),
            _ => item(reader)?,
        };
        options.push((name, crate::settings::value::bool_of(&value).unwrap_or(true)));
        if !reader.token(&Token::Comma) {
            break;
        }
    }
    reader.expect_token(&Token::RParen)?;
    Ok(options)
}

/// Tables with optional column lists; none means all.
fn tables(reader: &mut Reader<'_>) -> Result<Vec<TableColumns>> {
    if reader.at_end() {
        return Ok(Vec::new());
    }
    reader.list(|reader| {
        let name = reader.object_name()?;
        let columns = match reader.peek() {
            Token::LParen => reader.names_in_parens()?,
            _ => Vec::new(),
        };
        Ok(TableColumns { name, columns })
    })
}

/// After `ALTER SYSTEM`.
pub(super) fn alter_system(reader: &mut Reader<'_>) -> Result<Utility> {
    if reader.word("reset") {
        return Ok(match setting_name(reader)? {
            name if name == "all" => Utility::AlterSystemResetAll,
            name => Utility::AlterSystem { name, value: SetValue::Default },
        });
    }
    reader.expect_word("set")?;
    let name = setting_name(reader)?;
    Ok(Utility::AlterSystem { name, value: assigned(reader)? })
}

/// Parses a text that must be one query: view bodies.
pub fn parse_query_text(sql: &str) -> Result<Box<ast::Query>> {
    let mut statements = super::parse_kept(sql)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(Parsed { statement: Statement::Query(query), .. }), true) => Ok(query),
        _ => Err(SqlError::internal(format!("not a query: {sql}"))),
    }
}

/// Parses a text that must be one expression: defaults.
pub fn parse_expr_text(text: &str) -> Result<ast::Expr> {
    let tokens = super::tokens(text)?;
    super::chains::check(&tokens)?;
    let mut reader = Reader::new(tokens, text);
    let expr = reader.expr()?;
    reader.expect_end()?;
    Ok(expr)
}
