//! COPY, in the form with options in parentheses and in the two older ones that clients still send.

use super::{Name, Reader};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CopyFormat {
    #[default]
    Text,
    Csv,
    Binary,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HeaderChoice {
    #[default]
    No,
    Yes,
    /// The first line must name the columns.
    Match,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ForceColumns {
    #[default]
    None,
    All,
    Some(Vec<String>),
}

impl ForceColumns {
    pub fn has(&self, name: &str) -> bool {
        match self {
            ForceColumns::None => false,
            ForceColumns::All => true,
            ForceColumns::Some(names) => names.iter().any(|other| other == name),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyOptions {
    pub format: CopyFormat,
    pub delimiter: u8,
    pub null: String,
    pub header: HeaderChoice,
    pub quote: u8,
    pub escape: u8,
    pub force_quote: ForceColumns,
    pub force_not_null: ForceColumns,
    pub force_null: ForceColumns,
}

#[derive(Clone, Debug)]
pub enum CopySource {
    Table { name: Name, columns: Option<Vec<String>> },
    Query(Box<ast::Query>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyTarget {
    /// STDIN or STDOUT.
    Client,
    File(String),
}

#[derive(Clone, Debug)]
pub struct CopyStatement {
    pub source: CopySource,
    /// FROM, else TO.
    pub from: bool,
    pub target: CopyTarget,
    pub options: CopyOptions,
    /// Rows that do not satisfy it are left out.
    pub filter: Option<ast::Expr>,
}

/// What the options say before defaults of the format are known.
#[derive(Default)]
struct Given {
    format: Option<CopyFormat>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<HeaderChoice>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<ForceColumns>,
    force_not_null: Option<ForceColumns>,
    force_null: Option<ForceColumns>,
}

/// Whether the first SELECT says INTO.
fn selects_into(body: &ast::SetExpr) -> bool {
    match body {
        ast::SetExpr::Select(select) => select.into.is_some(),
        ast::SetExpr::SetOperation { left, .. } => selects_into(left),
        ast::SetExpr::Query(query) => selects_into(&query.body),
        _ => false,
    }
}

pub(super) fn parse(reader: &mut Reader<'_>) -> Result<CopyStatement> {
    reader.word("binary");
    let source = if reader.token(&Token::LParen) {
        let changes = ["insert", "update", "delete"].iter().any(|verb| reader.sees(verb));
        let query = if changes { changed_rows(reader)? } else { reader.query()? };
        if selects_into(&query.body) {
            return Err(SqlError::not_supported("COPY (SELECT INTO) is not supported"));
        }
        reader.expect_token(&Token::RParen)?;
        CopySource::Query(query)
    } else {
        let name = reader.object_name()?;
        let columns = if matches!(reader.peek(), Token::LParen) { Some(reader.names_in_parens()?) } else { None };
        CopySource::Table { name, columns }
    };
    let from = reader.word("from");
    if !from {
        reader.expect_word("to")?;
    }
    if from && matches!(source, CopySource::Query(_)) {
        return Err(SqlError::syntax("syntax error at or near \"from\"").at(reader.position()));
    }
    if reader.word("program") {
        return Err(SqlError::not_supported("COPY … PROGRAM is not supported")
            .with_hint("Run the program on the client and pipe it through COPY … STDIN."));
    }
    let target = match reader.one_of(&["stdin", "stdout"]) {
        Some(_) => CopyTarget::Client,
        None => CopyTarget::File(reader.string()?),
    };
    let given = options(reader)?;
    let filter = if reader.word("where") { Some(reader.expr()?) } else { None };
    if filter.is_some() && !from {
        return Err(SqlError::syntax("WHERE clause not allowed with COPY TO"));
    }
    Ok(CopyStatement { source, from, target, options: settle(given, from)?, filter })
}

/// A statement that changes rows, as the query over what it returns.
fn changed_rows(reader: &mut Reader<'_>) -> Result<Box<ast::Query>> {
    let statement = reader.statement()?;
    let returns = match &statement {
        ast::Statement::Insert(insert) => insert.returning.is_some(),
        ast::Statement::Update(update) => update.returning.is_some(),
        ast::Statement::Delete(delete) => delete.returning.is_some(),
        _ => false,
    };
    if !returns {
        return Err(SqlError::not_supported("COPY query must have a RETURNING clause"));
    }
    let text = format!("WITH copied AS ({statement}) SELECT * FROM copied");
    Reader::new(super::tokens(&text)?, &text).query()
}

fn options(reader: &mut Reader<'_>) -> Result<Given> {
    let mut given = Given::default();
    if reader.word("using") {
        reader.expect_word("delimiters")?;
        given.delimiter = Some(reader.string()?);
    } else if reader.word("delimiters") {
        given.delimiter = Some(reader.string()?);
    }
    reader.word("with");
    if reader.token(&Token::LParen) {
        loop {
            option(reader, &mut given)?;
            if !reader.token(&Token::Comma) {
                break;
            }
        }
        reader.expect_token(&Token::RParen)?;
        return Ok(given);
    }
    while !reader.at_end() && !reader.sees("where") {
        old_option(reader, &mut given)?;
    }
    Ok(given)
}

fn option(reader: &mut Reader<'_>, given: &mut Given) -> Result<()> {
    let name = reader.ident()?;
    match name.as_str() {
        "format" => {
            let format = match reader.string_opt() {
                Some(format) => format,
                None => reader.ident()?,
            };
            let format = match format.as_str() {
                "text" => CopyFormat::Text,
                "csv" => CopyFormat::Csv,
                "binary" => CopyFormat::Binary,
                other => return Err(SqlError::new("22023", format!("COPY format \"{other}\" not recognized"))),
            };
            once(&mut given.format, format)
        }
        "freeze" => flag(reader).map(|_| ()),
        "delimiter" => once(&mut given.delimiter, reader.string()?),
        "null" => once(&mut given.null, reader.string()?),
        "header" => {
            let header = if reader.word("match") {
                HeaderChoice::Match
            } else if flag(reader)? {
                HeaderChoice::Yes
            } else {
                HeaderChoice::No
            };
            once(&mut given.header, header)
        }
        "quote" => once(&mut given.quote, reader.string()?),
        "escape" => once(&mut given.escape, reader.string()?),
        "force_quote" => once(&mut given.force_quote, force_columns(reader)?),
        "force_not_null" => once(&mut given.force_not_null, force_list(reader, "force_not_null")?),
        "force_null" => once(&mut given.force_null, force_list(reader, "force_null")?),
        "encoding" => encoding(reader),
        other => Err(SqlError::syntax(format!("option \"{other}\" not recognized"))),
    }
}

fn once<T>(slot: &mut Option<T>, value: T) -> Result<()> {
    match slot.replace(value) {
        Some(_) => Err(SqlError::syntax("conflicting or redundant options")),
        None => Ok(()),
    }
}

fn flag(reader: &mut Reader<'_>) -> Result<bool> {
    let text = match reader.peek() {
        Token::Comma | Token::RParen => return Ok(true),
        _ => match reader.string_opt().or_else(|| reader.number_opt()) {
            Some(text) => text,
            None => reader.ident()?,
        },
    };
    crate::settings::value::bool_of(&text)
        .ok_or_else(|| SqlError::syntax(format!("a COPY option requires a Boolean value, not \"{text}\"")))
}

fn force_columns(reader: &mut Reader<'_>) -> Result<ForceColumns> {
    if reader.token(&Token::Mul) { Ok(ForceColumns::All) } else { Ok(ForceColumns::Some(reader.names_in_parens()?)) }
}

/// The same where `*` is not taken.
fn force_list(reader: &mut Reader<'_>, option: &str) -> Result<ForceColumns> {
    match reader.peek() {
        Token::LParen => force_columns(reader),
        _ => {
            let message = format!("argument to option \"{option}\" must be a list of column names");
            Err(SqlError::new("22023", message).at(reader.position()))
        }
    }
}

/// What names of PostgreSQL's other encodings begin with.
const ENCODINGS: [&str; 19] = [
    "abc",
    "alt",
    "big5",
    "euc",
    "gb18030",
    "gbk",
    "iso8859",
    "johab",
    "koi8",
    "latin",
    "muleinternal",
    "mskanji",
    "shiftjis",
    "sjis",
    "sqlascii",
    "tcvn",
    "uhc",
    "win",
    "vscii",
];

fn encoding(reader: &mut Reader<'_>) -> Result<()> {
    let name = reader.string()?;
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_lowercase().as_str() {
        "utf8" | "unicode" => Ok(()),
        plain if ENCODINGS.iter().any(|known| plain.starts_with(known)) => {
            Err(SqlError::not_supported(format!("encoding \"{name}\" is not supported in COPY"))
                .with_hint("Basalt reads and writes UTF8."))
        }
        _ => Err(SqlError::new(
            "22023",
            format!("argument to option \"encoding\" must be a valid encoding name: \"{name}\""),
        )
        .with_hint("Basalt reads and writes UTF8.")),
    }
}

/// The options of PostgreSQL before 9.0, without parentheses.
fn old_option(reader: &mut Reader<'_>, given: &mut Given) -> Result<()> {
    let word = reader.one_of(&[
        "binary",
        "csv",
        "freeze",
        "delimiter",
        "delimiters",
        "null",
        "header",
        "quote",
        "escape",
        "force",
        "encoding",
    ]);
    match word {
        Some("binary") => once(&mut given.format, CopyFormat::Binary),
        Some("csv") => once(&mut given.format, CopyFormat::Csv),
        Some("freeze") => {
            let _ = reader.one_of(&["on", "off", "true", "false"]);
            Ok(())
        }
        Some("header") => once(&mut given.header, HeaderChoice::Yes),
        Some("encoding") => encoding(reader),
        Some("force") if reader.word("quote") => {
            let columns = old_force(reader)?;
            once(&mut given.force_quote, columns)
        }
        Some("force") if reader.words(&["not", "null"]) => {
            let columns = old_force(reader)?;
            once(&mut given.force_not_null, columns)
        }
        Some("force") => {
            reader.expect_word("null")?;
            let columns = old_force(reader)?;
            once(&mut given.force_null, columns)
        }
        Some(word) => {
            reader.word("as");
            let text = reader.string()?;
            match word {
                "null" => once(&mut given.null, text),
                "quote" => once(&mut given.quote, text),
                "escape" => once(&mut given.escape, text),
                _ => once(&mut given.delimiter, text),
            }
        }
        None => Err(reader.error_here()),
    }
}

fn old_force(reader: &mut Reader<'_>) -> Result<ForceColumns> {
    if reader.token(&Token::Mul) { Ok(ForceColumns::All) } else { Ok(ForceColumns::Some(reader.list(Reader::ident)?)) }
}

/// Fills in defaults and checks what PostgreSQL checks.
fn settle(given: Given, from: bool) -> Result<CopyOptions> {
    let format = given.format.unwrap_or_default();
    let csv = format == CopyFormat::Csv;
    let only_csv = |present: bool, what: &str| match present && !csv {
        true => Err(SqlError::not_supported(format!("COPY {what} available only in CSV mode"))),
        false => Ok(()),
    };
    if format == CopyFormat::Binary {
        for (present, what) in [
            (given.delimiter.is_some(), "DELIMITER"),
            (given.null.is_some(), "NULL"),
            (given.header.is_some(), "HEADER"),
        ] {
            let message = format!("cannot specify {what} in BINARY mode");
            match (present, what) {
                (false, _) => {}
                (true, "HEADER") => return Err(SqlError::not_supported(message)),
                (true, _) => return Err(SqlError::syntax(message)),
            }
        }
    }
    only_csv(given.quote.is_some(), "quote")?;
    only_csv(given.escape.is_some(), "escape")?;
    only_csv(given.force_quote.is_some(), "force quote")?;
    only_csv(given.force_not_null.is_some(), "force not null")?;
    only_csv(given.force_null.is_some(), "force null")?;
    if given.force_quote.is_some() && from {
        return Err(SqlError::not_supported("COPY force quote only available using COPY TO"));
    }
    if (given.force_not_null.is_some() || given.force_null.is_some()) && !from {
        return Err(SqlError::not_supported("COPY force not null and force null only available using COPY FROM"));
    }
    if given.header == Some(HeaderChoice::Match) && !from {
        return Err(SqlError::not_supported("cannot use \"match\" with HEADER in COPY TO"));
    }
    let quote = one_byte(given.quote.as_deref().unwrap_or("\""), "quote")?;
    let options = CopyOptions {
        format,
        delimiter: one_byte(given.delimiter.as_deref().unwrap_or(if csv { "," } else { "\t" }), "delimiter")?,
        null: given.null.unwrap_or_else(|| if csv { String::new() } else { "\\N".to_string() }),
        header: given.header.unwrap_or_default(),
        quote,
        escape: match &given.escape {
            Some(escape) => one_byte(escape, "escape")?,
            None => quote,
        },
        force_quote: given.force_quote.unwrap_or_default(),
        force_not_null: given.force_not_null.unwrap_or_default(),
        force_null: given.force_null.unwrap_or_default(),
    };
    check_bytes(&options)?;
    Ok(options)
}

fn one_byte(text: &str, what: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(SqlError::not_supported(format!("COPY {what} must be a single one-byte character"))),
    }
}

fn check_bytes(options: &CopyOptions) -> Result<()> {
    let csv = options.format == CopyFormat::Csv;
    let invalid = |message: &str| Err(SqlError::new("22023", message));
    if matches!(options.delimiter, b'\n' | b'\r') {
        return invalid("COPY delimiter cannot be newline or carriage return");
    }
    if options.null.contains(['\n', '\r']) {
        return invalid("COPY null representation cannot use newline or carriage return");
    }
    if !csv
        && (options.delimiter.is_ascii_lowercase()
            || options.delimiter.is_ascii_digit()
            || b"\\.".contains(&options.delimiter))
    {
        return Err(SqlError::new("22023", format!("COPY delimiter cannot be \"{}\"", char::from(options.delimiter))));
    }
    if csv && options.delimiter == options.quote {
        return invalid("COPY delimiter and quote must be different");
    }
    if options.null.as_bytes().contains(&options.delimiter) {
        return Err(SqlError::not_supported("COPY delimiter must not appear in the NULL specification"));
    }
    if csv && options.null.as_bytes().contains(&options.quote) {
        return Err(SqlError::not_supported("CSV quote character must not appear in the NULL specification"));
    }
    Ok(())
}
