//! Sequences, and the options that identity columns share with them.

use super::{Name, Reader};
use crate::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

/// What a list of options says; `None`: nothing.
#[derive(Clone, Debug, Default)]
pub struct SequenceOptions {
    pub ty: Option<ast::DataType>,
    pub increment: Option<i64>,
    /// `Some(None)`: NO MINVALUE.
    pub min: Option<Option<i64>>,
    pub max: Option<Option<i64>>,
    pub start: Option<i64>,
    /// `Some(None)`: where it started.
    pub restart: Option<Option<i64>>,
    pub cache: Option<i64>,
    pub cycle: Option<bool>,
    /// `Some(None)`: OWNED BY NONE.
    pub owned_by: Option<Option<(Name, String)>>,
    /// `SEQUENCE NAME`, of identity columns.
    pub name: Option<Name>,
}

impl SequenceOptions {
    /// Whether anything is said.
    pub fn is_empty(&self) -> bool {
        self.ty.is_none()
            && self.increment.is_none()
            && self.min.is_none()
            && self.max.is_none()
            && self.start.is_none()
            && self.restart.is_none()
            && self.cache.is_none()
            && self.cycle.is_none()
            && self.owned_by.is_none()
            && self.name.is_none()
    }
}

fn once<T>(slot: &mut Option<T>, value: T, place: Option<u32>) -> Result<()> {
    match slot.replace(value) {
        Some(_) => Err(SqlError::syntax("conflicting or redundant options").at(place)),
        None => Ok(()),
    }
}

/// 22003 for a number that is no bigint.
fn number(reader: &mut Reader<'_>) -> Result<i64> {
    let error = reader.error_here();
    let Some(text) = reader.number_opt() else { return Err(error) };
    match text.parse() {
        Ok(value) => Ok(value),
        Err(_) if text.contains(['.', 'e', 'E']) => Err(error),
        Err(_) => Err(SqlError::new("22003", format!("value \"{text}\" is out of range for type bigint"))),
    }
}

/// Takes options as long as there are any.
pub(super) fn options(reader: &mut Reader<'_>) -> Result<SequenceOptions> {
    let mut options = SequenceOptions::default();
    while option(reader, &mut options)? {}
    Ok(options)
}

/// Takes one option if there is one.
pub(super) fn option(reader: &mut Reader<'_>, options: &mut SequenceOptions) -> Result<bool> {
    let place = reader.position();
    let word = reader.one_of(&[
        "as",
        "increment",
        "minvalue",
        "maxvalue",
        "no",
        "start",
        "restart",
        "cache",
        "cycle",
        "owned",
        "sequence",
    ]);
    match word {
        Some("as") => once(&mut options.ty, reader.data_type()?, place)?,
        Some("increment") => {
            reader.word("by");
            once(&mut options.increment, number(reader)?, place)?;
        }
        Some("minvalue") => once(&mut options.min, Some(number(reader)?), place)?,
        Some("maxvalue") => once(&mut options.max, Some(number(reader)?), place)?,
        Some("no") => match reader.one_of(&["minvalue", "maxvalue", "cycle"]) {
            Some("minvalue") => once(&mut options.min, None, place)?,
            Some("maxvalue") => once(&mut options.max, None, place)?,
            Some(_) => once(&mut options.cycle, false, place)?,
            None => return Err(reader.error_here()),
        },
        Some("start") => {
            reader.word("with");
            once(&mut options.start, number(reader)?, place)?;
        }
        Some("restart") => {
            let with = reader.word("with");
            let value = match reader.peek() {
                Token::Number(..) | Token::Minus | Token::Plus => Some(number(reader)?),
                _ if with => return Err(reader.error_here()),
                _ => None,
            };
            once(&mut options.restart, value, place)?;
        }
        Some("cache") => once(&mut options.cache, number(reader)?, place)?,
        Some("cycle") => once(&mut options.cycle, true, place)?,
        Some("owned") => {
            reader.expect_word("by")?;
            once(&mut options.owned_by, owner(reader)?, place)?;
        }
        Some(_) => {
            reader.expect_word("name")?;
            once(&mut options.name, reader.object_name()?, place)?;
        }
        None => return Ok(false),
    }
    Ok(true)
}

fn owner(reader: &mut Reader<'_>) -> Result<Option<(Name, String)>> {
    let mut parts = vec![reader.ident()?];
    while reader.token(&Token::Period) {
        parts.push(reader.ident()?);
    }
    let column = parts.pop().unwrap_or_default();
    match parts.pop() {
        None if column == "none" => Ok(None),
        None => {
            Err(SqlError::syntax("invalid OWNED BY option")
                .with_hint("Specify OWNED BY table.column or OWNED BY NONE."))
        }
        Some(name) => Ok(Some((Name { schema: parts.pop(), name }, column))),
    }
}
