//! Columns as CREATE TABLE and ALTER TABLE make them: types, defaults, and where serial and identity columns get their
//! values from (PostgreSQL manual 5.2, 5.3, 8.1.4).

use super::sequence;
use crate::bind::{self, BindContext, pinned};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{ColumnClause, IdentityClause, SequenceOptions};
use basalt_engine::{Catalog, CatalogEdit, SequenceDef, SequenceOwner};
use basalt_types::schema::Identity;
use basalt_types::{ColumnDef, ColumnId, DataType, ObjectId, TableDef};
use sqlparser::ast;
use std::sync::Arc;

/// Longest name of an object, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// `first_second_label`, the longer parts cut so that it fits, as PostgreSQL makes names.
pub(crate) fn object_name(first: &str, second: Option<&str>, label: &str) -> String {
    let overhead = label.len() + 1 + usize::from(second.is_some());
    let room = NAME_BYTES_MAX.saturating_sub(overhead);
    let (mut first_len, mut second_len) = (first.len(), second.map_or(0, str::len));
    while first_len + second_len > room {
        match first_len > second_len {
            true => first_len -= 1,
            false => second_len -= 1,
        }
    }
    let first = &first[..first.floor_char_boundary(first_len)];
    match second {
        Some(second) => format!("{first}_{}_{label}", &second[..second.floor_char_boundary(second_len)]),
        None => format!("{first}_{label}"),
    }
}

/// The first of `name`, `name1`, `name2`, … that is free.
pub(crate) fn free_name(first: &str, second: Option<&str>, label: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = object_name(first, second, label);
    let mut pass = 0;
    while taken(&name) {
        pass += 1;
        name = object_name(first, second, &format!("{label}{pass}"));
    }
    name
}

/// What a table's columns bring along: sequences, which are made with the table.
pub(crate) struct Columns<'a> {
    pub session: &'a Session,
    pub catalog: &'a Arc<Catalog>,
    pub sql: &'a Arc<str>,
    /// Edits that make the sequences.
    pub sequences: Vec<CatalogEdit>,
}

impl Columns<'_> {
    pub fn context(&self) -> BindContext {
        let eval = self.session.eval_context(Vec::new(), self.catalog);
        self.session.bind_context(self.catalog, self.sql, &eval)
    }

    /// The same where the sequences are there already: defaults may name them.
    fn context_with_sequences(&self) -> Result<BindContext> {
        if self.sequences.is_empty() {
            return Ok(self.context());
        }
        let catalog = self.catalog.apply(&self.sequences).map_err(basalt_engine::Error::from)?;
        let catalog = Arc::new(catalog);
        let eval = self.session.eval_context(Vec::new(), &catalog);
        Ok(self.session.bind_context(&catalog, self.sql, &eval))
    }

    /// Gives columns their defaults, when all sequences of their statement are made.
    pub fn set_defaults<'c>(
        &self,
        table: &mut TableDef,
        clauses: impl IntoIterator<Item = &'c ColumnClause>,
    ) -> Result<()> {
        let mut ctx = None;
        for clause in clauses {
            let Some(expr) = &clause.default else { continue };
            let Some(id) = table.column_named(&clause.name).map(|column| column.id) else { continue };
            let ctx = match &ctx {
                Some(ctx) => ctx,
                None => ctx.insert(self.context_with_sequences()?),
            };
            let default = check_default(ctx, expr, &clause.name, &table.column(id).ty)?;
            table.columns[id.position()].default = default;
        }
        Ok(())
    }

    /// Appends the column of a clause to the table, all but its default, keys, checks and generation expression.
    pub fn push(&mut self, table: &mut TableDef, clause: &ColumnClause) -> Result<ColumnId> {
        let ctx = self.context();
        let serial = serial_type(&clause.ty);
        if let ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) = &clause.ty
            && serial_type(element).is_some()
        {
            return Err(SqlError::not_supported("array of serial is not implemented"));
        }
        let (ty, time_modifier) = match &serial {
            Some(ty) => (ty.clone(), None),
            None => bind::bind_column_type(&ctx, &clause.ty).map_err(|error| error.at(clause.ty_place))?,
        };
        let twice = |both: &str| {
            let name = (&clause.name, &table.name);
            Err(SqlError::syntax(format!("{both} specified for column \"{}\" of table \"{}\"", name.0, name.1)))
        };
        match (&serial, &clause.default, &clause.identity) {
            (Some(_), Some(_), _) => return twice("multiple default values"),
            (Some(_), None, Some(_)) => return twice("both default and identity"),
            (Some(_), None, None) if clause.generated.is_some() => {
                return twice("both default and generation expression");
            }
            _ => {}
        }
        if serial.is_some() && clause.null {
            let (column, table) = (&clause.name, &table.name);
            let message =
                format!("conflicting NULL/NOT NULL declarations for column \"{column}\" of table \"{table}\"");
            return Err(SqlError::syntax(message));
        }
        let not_null = clause.not_null || serial.is_some();
        super::create_table::push_column(table, &clause.name, ty.clone(), not_null, None)?;
        let id = ColumnId::from_position(table.columns.len() - 1);
        table.columns[id.position()].time_modifier = time_modifier;
        if serial.is_some() {
            let options = SequenceOptions { ty: Some(syntax_of(&ty)), ..SequenceOptions::default() };
            let sequence = self.own_sequence(table, id, &options, false)?;
            table.columns[id.position()].default = Some(format!("nextval('{}'::regclass)", sequence.0));
        }
        if let Some(identity) = &clause.identity {
            self.identify(table, id, identity)?;
        }
        Ok(id)
    }

    /// Makes a column an identity column. 22023 for other types than integers.
    pub fn identify(&mut self, table: &mut TableDef, id: ColumnId, clause: &IdentityClause) -> Result<()> {
        let ty = table.column(id).ty.clone();
        if !matches!(ty, DataType::Int2 | DataType::Int4 | DataType::Int8) {
            return Err(SqlError::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        let mut options = clause.options.clone();
        options.ty.get_or_insert_with(|| syntax_of(&ty));
        let sequence = self.own_sequence(table, id, &options, true)?;
        let column = &mut table.columns[id.position()];
        column.identity = Some(Identity { always: clause.always, sequence });
        column.not_null = true;
        Ok(())
    }

    fn own_sequence(
        &mut self,
        table: &TableDef,
        id: ColumnId,
        options: &SequenceOptions,
        internal: bool,
    ) -> Result<ObjectId> {
        let column = &table.column(id).name;
        let made = |name: &str| {
            self.sequences.iter().any(|edit| matches!(edit, CatalogEdit::PutSequence(other) if other.name == name))
        };
        let taken =
            |name: &str| name == table.name || made(name) || self.catalog.relation_exists(table.namespace, name);
        let name = match &options.name {
            Some(name) => name.name.clone(),
            None => free_name(&table.name, Some(column), "seq", taken),
        };
        let mut sequence = sequence::new(self.session, table.namespace, &name, options, self.sql)?;
        sequence.owner = table.owner.clone();
        sequence.owned_by = Some(SequenceOwner { table: table.id, column: id, internal });
        let id = sequence.id;
        self.sequences.push(CatalogEdit::PutSequence(sequence));
        Ok(id)
    }

    /// A copy of another identity column's sequence: `LIKE … INCLUDING IDENTITY`.
    pub fn copy_identity(&mut self, table: &mut TableDef, id: ColumnId, of: &SequenceDef, always: bool) -> Result<()> {
        let options = SequenceOptions {
            increment: Some(of.increment),
            min: Some(Some(of.min)),
            max: Some(Some(of.max)),
            start: Some(of.start),
            cache: Some(of.cache),
            cycle: Some(of.cycle),
            ..SequenceOptions::default()
        };
        self.identify(table, id, &IdentityClause { always, options })
    }
}

/// The integer type behind `serial` and its kin.
pub(crate) fn serial_type(ty: &ast::DataType) -> Option<DataType> {
    let ast::DataType::Custom(name, modifiers) = ty else { return None };
    let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
    if !modifiers.is_empty() || ident.quote_style.is_some() {
        return None;
    }
    Some(match ident.value.to_ascii_lowercase().as_str() {
        "serial" | "serial4" => DataType::Int4,
        "bigserial" | "serial8" => DataType::Int8,
        "smallserial" | "serial2" => DataType::Int2,
        _ => return None,
    })
}

fn syntax_of(ty: &DataType) -> ast::DataType {
    match ty {
        DataType::Int2 => ast::DataType::Int2(None),
        DataType::Int4 => ast::DataType::Int4(None),
        _ => ast::DataType::Int8(None),
    }
}

/// The text of a default that binds to the column's type; none for NULL, which every column has anyway, unless it
/// hides the default of a domain.
pub(crate) fn check_default(
    ctx: &BindContext,
    expr: &ast::Expr,
    column: &str,
    ty: &DataType,
) -> Result<Option<String>> {
    // A literal that the column's length or precision refuses is refused when a row takes it.
    let bound = bind::bind_default(ctx, expr, column, ty).map(|_| ty.clone());
    let is_literal = matches!(expr, ast::Expr::Value(value) if value.value.clone().into_string().is_some());
    let ty = &match bound {
        Err(error) if is_literal && ["22001", "22003", "22026"].contains(&error.sqlstate) && ty.base() != *ty => {
            ty.base()
        }
        bound => bound?,
    };
    bind::bind_default(ctx, expr, column, ty)?;
    let is_null = matches!(expr, ast::Expr::Value(value) if value.value == ast::Value::Null);
    let again = |ctx: &BindContext, expr: &ast::Expr| bind::bind_default(ctx, expr, column, ty).map(|_| ());
    let is_needless = is_null && bind::domain_default(ty).is_none();
    (!is_needless).then(|| pinned::expression(ctx, None, expr, &again)).transpose()
}

/// The text of a generation expression that may stand there. 42P17, 42804 and the errors of its parts.
pub(crate) fn check_generated(ctx: &BindContext, table: &TableDef, id: ColumnId, expr: &ast::Expr) -> Result<String> {
    let column: &ColumnDef = table.column(id);
    let shared = Arc::new(table.clone());
    bind::bind_generated(ctx, &shared, &column.name, &column.ty, expr)?;
    let again = |ctx: &BindContext, expr: &ast::Expr| {
        bind::bind_generated(ctx, &shared, &column.name, &column.ty, expr).map(|_| ())
    };
    pinned::expression(ctx, Some(table), expr, &again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_the_end_of_their_longer_part() {
        assert_eq!(object_name("t", Some("a"), "seq"), "t_a_seq");
        assert_eq!(object_name("t", None, "check"), "t_check");
        let (long, other) = ("x".repeat(60), "y".repeat(40));
        let name = object_name(&long, Some(&other), "seq");
        assert_eq!(name, format!("{}_{}_seq", "x".repeat(29), "y".repeat(29)));
        assert_eq!(object_name(&"é".repeat(40), None, "check").len(), 62);
        let taken = ["t_a_seq", "t_a_seq1"];
        assert_eq!(free_name("t", Some("a"), "seq", |name| taken.contains(&name)), "t_a_seq2");
    }
}
