//! Constraints that need an index or another table: PRIMARY KEY, UNIQUE, FOREIGN KEY and REFERENCES, in CREATE TABLE and
//! ALTER TABLE (PostgreSQL manual, CREATE TABLE, "table_constraint" and "column_constraint").

use super::{Name, Reader};
use crate::error::{Result, SqlError};
use basalt_types::schema::ReferentialAction;
use sqlparser::tokenizer::Token;

/// When a constraint is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deferral {
    pub deferrable: bool,
    pub initially_deferred: bool,
}

/// `UNIQUE (…)`, and `PRIMARY KEY (…)`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UniqueClause {
    pub constraint: Option<String>,
    pub primary: bool,
    pub columns: Vec<String>,
    pub include: Vec<String>,
    pub nulls_not_distinct: bool,
    pub options: Vec<(String, String)>,
    pub deferral: Deferral,
    /// `USING INDEX name`, instead of columns.
    pub using_index: Option<String>,
    /// In the statement.
    pub place: Option<u32>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ForeignKeyClause {
    pub constraint: Option<String>,
    /// Empty in a column's clause: that column.
    pub columns: Vec<String>,
    pub parent: Name,
    /// Empty: the primary key's.
    pub parent_columns: Vec<String>,
    pub match_full: bool,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
    pub set_columns: Vec<String>,
    pub deferral: Deferral,
    pub not_valid: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub enum KeyConstraint {
    Unique(UniqueClause),
    ForeignKey(ForeignKeyClause),
}

/// A table's constraint of one of these kinds, if it is next.
pub(super) fn table_constraint_opt(reader: &mut Reader<'_>) -> Result<Option<KeyConstraint>> {
    let at = if reader.sees("constraint") { 2 } else { 0 };
    let known = [("unique", None), ("primary", Some("key")), ("foreign", Some("key"))];
    let sees = |(first, second): &(&str, Option<&str>)| {
        reader.sees_nth(at, first) && second.is_none_or(|second| reader.sees_nth(at + 1, second))
    };
    if !known.iter().any(sees) {
        return Ok(None);
    }
    let place = reader.position();
    let constraint = constraint_name(reader)?;
    if reader.words(&["foreign", "key"]) {
        let columns = reader.names_in_parens()?;
        reader.expect_word("references")?;
        return Ok(Some(KeyConstraint::ForeignKey(references(reader, constraint, columns, true)?)));
    }
    let primary = reader.words(&["primary", "key"]);
    if !primary {
        reader.expect_word("unique")?;
    }
    let mut clause = UniqueClause { constraint, primary, place, ..UniqueClause::default() };
    if reader.words(&["using", "index"]) {
        clause.using_index = Some(reader.name()?);
    } else {
        clause.nulls_not_distinct = !primary && nulls_not_distinct(reader);
        clause.columns = reader.names_in_parens()?;
        if reader.word("include") {
            clause.include = reader.names_in_parens()?;
        }
        index_parameters(reader, &mut clause)?;
    }
    clause.deferral = deferral(reader, &mut |_| false)?;
    Ok(Some(KeyConstraint::Unique(clause)))
}

/// A column's UNIQUE, PRIMARY KEY or REFERENCES, if it is next.
pub(super) fn column_constraint_opt(reader: &mut Reader<'_>, column: &str) -> Result<Option<KeyConstraint>> {
    let at = if reader.sees("constraint") { 2 } else { 0 };
    let primary = reader.sees_nth(at, "primary");
    if !primary && !reader.sees_nth(at, "unique") && !reader.sees_nth(at, "references") {
        return Ok(None);
    }
    let place = reader.position();
    let constraint = constraint_name(reader)?;
    if reader.word("references") {
        return Ok(Some(KeyConstraint::ForeignKey(references(reader, constraint, vec![column.to_string()], false)?)));
    }
    reader.skip();
    if primary {
        reader.expect_word("key")?;
    }
    let columns = vec![column.to_string()];
    let mut clause = UniqueClause { constraint, primary, columns, place, ..UniqueClause::default() };
    clause.nulls_not_distinct = !primary && nulls_not_distinct(reader);
    index_parameters(reader, &mut clause)?;
    clause.deferral = deferral(reader, &mut |_| false)?;
    Ok(Some(KeyConstraint::Unique(clause)))
}

fn constraint_name(reader: &mut Reader<'_>) -> Result<Option<String>> {
    match reader.word("constraint") {
        true => Ok(Some(reader.name()?)),
        false => Ok(None),
    }
}

/// `NULLS [NOT] DISTINCT`.
pub(super) fn nulls_not_distinct(reader: &mut Reader<'_>) -> bool {
    if reader.words(&["nulls", "not", "distinct"]) {
        return true;
    }
    reader.words(&["nulls", "distinct"]);
    false
}

fn index_parameters(reader: &mut Reader<'_>, clause: &mut UniqueClause) -> Result<()> {
    if reader.word("with") {
        clause.options = super::index::index_options(reader)?;
    }
    if reader.words(&["using", "index", "tablespace"]) {
        super::index::tablespace(reader)?;
    }
    Ok(())
}

/// `[NOT] DEFERRABLE`, `INITIALLY …`, in any order; `other` may take further words.
pub(super) fn deferral(reader: &mut Reader<'_>, other: &mut dyn FnMut(&mut Reader<'_>) -> bool) -> Result<Deferral> {
    let (mut deferrable, mut deferred) = (None, None);
    loop {
        let place = reader.position();
        // NOT may also begin the NOT NULL or the NOT VALID that follows.
        let said = if reader.words(&["not", "deferrable"]) {
            Some(false)
        } else if reader.word("deferrable") {
            Some(true)
        } else {
            None
        };
        if let Some(said) = said {
            if deferrable.replace(said).is_some() {
                let message = "multiple DEFERRABLE/NOT DEFERRABLE clauses not allowed";
                return Err(SqlError::syntax(message).at(place));
            }
        } else if reader.word("initially") {
            let said = match reader.one_of(&["deferred", "immediate"]) {
                Some(word) => word == "deferred",
                None => return Err(reader.error_here()),
            };
            if deferred.replace(said).is_some() {
                let message = "multiple INITIALLY IMMEDIATE/DEFERRED clauses not allowed";
                return Err(SqlError::syntax(message).at(place));
            }
        } else if !other(reader) {
            break;
        }
        if deferred == Some(true) && deferrable == Some(false) {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            return Err(SqlError::syntax(message).at(place));
        }
    }
    let initially_deferred = deferred == Some(true);
    Ok(Deferral { deferrable: deferrable.unwrap_or(initially_deferred), initially_deferred })
}

/// What follows REFERENCES.
fn references(
    reader: &mut Reader<'_>,
    constraint: Option<String>,
    columns: Vec<String>,
    may_be_invalid: bool,
) -> Result<ForeignKeyClause> {
    let parent = reader.object_name()?;
    let parent_columns = match reader.peek() {
        Token::LParen => reader.names_in_parens()?,
        _ => Vec::new(),
    };
    let mut clause = ForeignKeyClause {
        constraint,
        columns,
        parent,
        parent_columns,
        match_full: false,
        on_delete: ReferentialAction::NoAction,
        on_update: ReferentialAction::NoAction,
        set_columns: Vec::new(),
        deferral: Deferral::default(),
        not_valid: false,
    };
    if reader.word("match") {
        match reader.one_of(&["full", "simple", "partial"]) {
            Some("full") => clause.match_full = true,
            Some("partial") => return Err(SqlError::not_supported("MATCH PARTIAL not yet implemented")),
            Some(_) => {}
            None => return Err(reader.error_here()),
        }
    }
    let (mut deleted, mut updated) = (false, false);
    while reader.sees("on") {
        let place = reader.position();
        if !deleted && reader.words(&["on", "delete"]) {
            deleted = true;
            clause.on_delete = action(reader)?;
            let sets = matches!(clause.on_delete, ReferentialAction::SetNull | ReferentialAction::SetDefault);
            if sets && matches!(reader.peek(), Token::LParen) {
                clause.set_columns = reader.names_in_parens()?;
            }
        } else if !updated && reader.words(&["on", "update"]) {
            updated = true;
            clause.on_update = action(reader)?;
            if matches!(reader.peek(), Token::LParen) {
                return Err(SqlError::not_supported(
                    "a column list with SET NULL is only supported for ON DELETE actions",
                )
                .at(place));
            }
        } else {
            return Err(reader.error_here());
        }
    }
    let mut not_valid = false;
    clause.deferral = deferral(reader, &mut |reader| {
        let found = may_be_invalid && reader.words(&["not", "valid"]);
        not_valid |= found;
        found
    })?;
    clause.not_valid = not_valid;
    Ok(clause)
}

fn action(reader: &mut Reader<'_>) -> Result<ReferentialAction> {
    if reader.words(&["no", "action"]) {
        Ok(ReferentialAction::NoAction)
    } else if reader.word("restrict") {
        Ok(ReferentialAction::Restrict)
    } else if reader.word("cascade") {
        Ok(ReferentialAction::Cascade)
    } else if reader.words(&["set", "null"]) {
        Ok(ReferentialAction::SetNull)
    } else if reader.words(&["set", "default"]) {
        Ok(ReferentialAction::SetDefault)
    } else {
        Err(reader.error_here())
    }
}
