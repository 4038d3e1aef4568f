//! Columns whose values are not the writer's: generated ones, and identity columns ALWAYS (428C9); and OVERRIDING, which
//! says otherwise for the latter (PostgreSQL manual, INSERT).

use crate::error::{Result, SqlError};
use basalt_types::ColumnDef;
use sqlparser::ast;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::bind) enum Overriding {
    #[default]
    Nothing,
    /// OVERRIDING SYSTEM VALUE: what is given counts.
    System,
    /// OVERRIDING USER VALUE: what is given for an identity column does not.
    User,
}

impl Overriding {
    /// As `syntax::dml` writes it.
    pub fn of(insert: &ast::Insert) -> Overriding {
        // USER is a keyword of its own, so sqlparser makes a call of it.
        let word = insert.partitioned.as_ref().and_then(|words| words.first()).map(ast::Expr::to_string);
        Overriding::named(word.map(|word| word.to_ascii_lowercase()).as_deref())
    }

    pub fn named(word: Option<&str>) -> Overriding {
        match word {
            Some("system") => Overriding::System,
            Some("user") => Overriding::User,
            _ => Overriding::Nothing,
        }
    }

    /// Whether INSERT takes a value that is given for the column; otherwise the column's own is used. 428C9.
    pub fn takes(self, column: &ColumnDef) -> Result<bool> {
        let refuse = || {
            let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
            SqlError::new("428C9", message).with_detail(why(column))
        };
        match (column.identity, self) {
            _ if column.generated.is_some() => Err(refuse()),
            (Some(_), Overriding::User) => Ok(false),
            (Some(identity), Overriding::Nothing) if identity.always => {
                Err(refuse().with_hint("Use OVERRIDING SYSTEM VALUE to override."))
            }
            _ => Ok(true),
        }
    }
}

/// Whether UPDATE may only say DEFAULT.
pub(in crate::bind) fn has_own_values(column: &ColumnDef) -> bool {
    column.generated.is_some() || column.identity.is_some_and(|identity| identity.always)
}

/// 428C9 of UPDATE.
pub(in crate::bind) fn only_default(column: &ColumnDef) -> SqlError {
    let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
    SqlError::new("428C9", message).with_detail(why(column))
}

fn why(column: &ColumnDef) -> String {
    match column.generated {
        Some(_) => format!("Column \"{}\" is a generated column.", column.name),
        None => format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name),
    }
}
