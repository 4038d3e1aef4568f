//! Indexes as the catalogs see them: a primary key's, which the table itself is, and secondary ones.

use super::SystemContext;
use super::definitions::{check_text, value_text};
use super::relations::user_tables;
use super::typing;
use crate::session::names::quote_identifier;
use basalt_engine::Catalog;
use basalt_types::schema::{ForeignKey, IndexColumn, IndexDef, IndexSource, IndexState, PrimaryKey};
use basalt_types::{ColumnId, DataType, TableDef};
use std::sync::Arc;

#[derive(Clone, Copy)]
pub(super) enum Index<'a> {
    Primary(&'a PrimaryKey),
    Secondary(&'a Arc<IndexDef>),
}

/// A UNIQUE or PRIMARY KEY constraint, which is the index's.
pub(super) struct KeyConstraint {
    pub oid: u32,
    pub primary: bool,
    pub deferrable: bool,
    pub deferred: bool,
}

/// Every index of the session's database, with its table.
pub(super) fn all(system: &SystemContext) -> impl Iterator<Item = (&Arc<TableDef>, Index<'_>)> {
    user_tables(system).flat_map(|table| of(table).map(move |index| (table, index)))
}

pub(super) fn of(table: &TableDef) -> impl Iterator<Item = Index<'_>> {
    let secondary = table.indexes.iter().map(Index::Secondary);
    table.primary_key.iter().map(Index::Primary).chain(secondary)
}

impl<'a> Index<'a> {
    pub fn oid(self) -> u32 {
        match self {
            Index::Primary(key) => key.constraint_id.0,
            Index::Secondary(index) => index.id.0,
        }
    }

    pub fn name(self) -> &'a str {
        match self {
            Index::Primary(key) => &key.constraint_name,
            Index::Secondary(index) => &index.name,
        }
    }

    pub fn is_unique(self) -> bool {
        match self {
            Index::Primary(_) => true,
            Index::Secondary(index) => index.unique,
        }
    }

    pub fn state(self) -> IndexState {
        match self {
            Index::Primary(_) => IndexState::Valid,
            Index::Secondary(index) => index.state,
        }
    }

    pub fn nulls_not_distinct(self) -> bool {
        matches!(self, Index::Secondary(index) if index.nulls_not_distinct)
    }

    pub fn method(self) -> &'a str {
        match self {
            Index::Primary(_) => "btree",
            Index::Secondary(index) => &index.method,
        }
    }

    pub fn rests_in_files(self) -> bool {
        matches!(self, Index::Secondary(index) if index.rests_in_files())
    }

    pub fn predicate(self) -> Option<&'a str> {
        match self {
            Index::Primary(_) => None,
            Index::Secondary(index) => index.predicate.as_deref(),
        }
    }

    pub fn options(self) -> &'a [(String, String)] {
        match self {
            Index::Primary(_) => &[],
            Index::Secondary(index) => &index.options,
        }
    }

    pub fn key_columns(self) -> usize {
        match self {
            Index::Primary(key) => key.columns.len(),
            Index::Secondary(index) => index.columns.len(),
        }
    }

    pub fn constraint(self) -> Option<KeyConstraint> {
        match self {
            Index::Primary(key) => {
                Some(KeyConstraint { oid: key.constraint_id.0, primary: true, deferrable: false, deferred: false })
            }
            Index::Secondary(index) => index.constraint.map(|constraint| KeyConstraint {
                oid: constraint.id.0,
                primary: constraint.primary,
                deferrable: constraint.deferrable,
                deferred: constraint.initially_deferred,
            }),
        }
    }

    /// Name and type of each column, included ones last.
    pub fn columns(self, table: &'a TableDef) -> Vec<(&'a str, DataType)> {
        let of_table = |id: &ColumnId| {
            let column = table.column(*id);
            (column.name.as_str(), column.ty.clone())
        };
        match self {
            Index::Primary(key) => key.columns.iter().chain(&key.include).map(of_table).collect(),
            Index::Secondary(index) => {
                let own = index.columns.iter().map(|column| (column.name.as_str(), column.ty.clone()));
                own.chain(index.include.iter().map(of_table)).collect()
            }
        }
    }

    /// Numbers of the table's columns, 0 for expressions, included ones last.
    pub fn numbers(self) -> Vec<i16> {
        match self {
            Index::Primary(key) => key.columns.iter().chain(&key.include).map(|id| id.0 as i16).collect(),
            Index::Secondary(index) => {
                let own = index.columns.iter().map(|column| match &column.source {
                    IndexSource::Column(id) => id.0 as i16,
                    IndexSource::Expression(_) => 0,
                });
                own.chain(index.include.iter().map(|id| id.0 as i16)).collect()
            }
        }
    }

    /// `indoption`: 1 descending, 2 nulls first.
    pub fn sort_options(self) -> Vec<i16> {
        match self {
            Index::Primary(key) => vec![0; key.columns.len()],
            Index::Secondary(index) => {
                let option = |column: &IndexColumn| i16::from(column.descending) | i16::from(column.nulls_first) << 1;
                index.columns.iter().map(option).collect()
            }
        }
    }

    /// The expressions among its columns, as they are kept.
    pub fn expressions(self) -> Vec<&'a str> {
        let Index::Secondary(index) = self else { return Vec::new() };
        let texts = (index.columns.iter()).filter_map(|column| match &column.source {
            IndexSource::Column(_) => None,
            IndexSource::Expression(sql) => Some(sql.as_str()),
        });
        texts.collect()
    }

    pub fn collations(self, table: &TableDef) -> Vec<u32> {
        let columns = self.columns(table);
        let keys = columns.iter().take(self.key_columns());
        keys.map(|(_, ty)| typing::fact(ty.oid()).map_or(0, |fact| fact.collation)).collect()
    }

    /// `CREATE INDEX`.
    pub fn definition(self, system: &SystemContext, table: &Arc<TableDef>, qualified: bool, pretty: bool) -> String {
        let catalog: &Catalog = &system.catalog;
        let schema = catalog.namespaces.get(&table.namespace).filter(|_| qualified);
        let schema = schema.map_or(String::new(), |namespace| format!("{}.", quote_identifier(&namespace.name)));
        let unique = if self.is_unique() { "UNIQUE " } else { "" };
        let (name, table_name) = (quote_identifier(self.name()), quote_identifier(&table.name));
        let mut text = format!(
            "CREATE {unique}INDEX {name} ON {schema}{table_name} USING {} ({})",
            self.method(),
            self.elements(system, table, pretty).join(", ")
        );
        text.push_str(&self.include_clause(table));
        if self.nulls_not_distinct() {
            text.push_str(" NULLS NOT DISTINCT");
        }
        text.push_str(&options_clause(self.options()));
        if let Some(predicate) = self.predicate() {
            text.push_str(&format!(" WHERE {}", check_text(system, table, predicate, pretty)));
        }
        text
    }

    fn include_clause(self, table: &TableDef) -> String {
        let include = match self {
            Index::Primary(key) => &key.include,
            Index::Secondary(index) => &index.include,
        };
        if include.is_empty() {
            return String::new();
        }
        let names = include.iter().map(|id| quote_identifier(&table.column(*id).name));
        format!(" INCLUDE ({})", names.collect::<Vec<_>>().join(", "))
    }

    fn elements(self, system: &SystemContext, table: &Arc<TableDef>, pretty: bool) -> Vec<String> {
        match self {
            Index::Primary(key) => key.columns.iter().map(|id| quote_identifier(&table.column(*id).name)).collect(),
            Index::Secondary(index) => index
                .columns
                .iter()
                .map(|column| {
                    let mut text = self.element(system, table, column, pretty);
                    if let Some(collation) = &column.collation {
                        text.push_str(&format!(" COLLATE \"{collation}\""));
                    }
                    if let Some(opclass) = &column.opclass {
                        text.push_str(&format!(" {opclass}"));
                    }
                    text.push_str(if column.descending { " DESC" } else { "" });
                    text.push_str(match (column.descending, column.nulls_first) {
                        (true, false) => " NULLS LAST",
                        (false, true) => " NULLS FIRST",
                        _ => "",
                    });
                    text
                })
                .collect(),
        }
    }

    fn element(self, system: &SystemContext, table: &Arc<TableDef>, column: &IndexColumn, pretty: bool) -> String {
        match &column.source {
            IndexSource::Column(id) => quote_identifier(&table.column(*id).name),
            IndexSource::Expression(sql) => {
                let text = value_text(system, table, sql, pretty);
                match is_call(&text) {
                    true => text,
                    false => format!("({text})"),
                }
            }
        }
    }

    /// One column from 1, as `pg_get_indexdef` gives it.
    pub fn column_definition(
        self,
        system: &SystemContext,
        table: &Arc<TableDef>,
        number: usize,
        pretty: bool,
    ) -> String {
        let key = match self {
            Index::Secondary(index) => {
                index.columns.get(number - 1).map(|column| self.element(system, table, column, pretty))
            }
            Index::Primary(_) => None,
        };
        let columns = self.columns(table);
        key.or_else(|| columns.get(number - 1).map(|(name, _)| quote_identifier(name))).unwrap_or_default()
    }

    /// The constraint, as `pg_get_constraintdef` gives it.
    pub fn constraint_definition(self, table: &TableDef) -> Option<String> {
        let constraint = self.constraint()?;
        let columns = self.columns(table);
        let names: Vec<String> =
            columns.iter().take(self.key_columns()).map(|(name, _)| quote_identifier(name)).collect();
        let mut text = match constraint.primary {
            true => "PRIMARY KEY".to_string(),
            false if self.nulls_not_distinct() => "UNIQUE NULLS NOT DISTINCT".to_string(),
            false => "UNIQUE".to_string(),
        };
        text.push_str(&format!(" ({})", names.join(", ")));
        text.push_str(&self.include_clause(table));
        text.push_str(deferral(constraint.deferrable, constraint.deferred));
        Some(text)
    }
}

fn options_clause(options: &[(String, String)]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let options = options.iter().map(|(name, value)| format!("{name}='{value}'"));
    format!(" WITH ({})", options.collect::<Vec<_>>().join(", "))
}

fn deferral(deferrable: bool, deferred: bool) -> &'static str {
    match (deferrable, deferred) {
        (true, true) => " DEFERRABLE INITIALLY DEFERRED",
        (true, false) => " DEFERRABLE",
        _ => "",
    }
}

/// Whether a text is one call of a function.
fn is_call(text: &str) -> bool {
    let name = text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '.').count();
    if name == 0 || !text[name..].starts_with('(') || !text.ends_with(')') {
        return false;
    }
    closes_at_end(&text[name..])
}

/// Whether the parenthesis that a text begins with closes at its end.
fn closes_at_end(text: &str) -> bool {
    let (mut depth, mut quoted) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + c.len_utf8() == text.len();
        }
    }
    false
}

pub(super) fn in_parens(text: &str) -> String {
    match text.starts_with('(') && closes_at_end(text) {
        true => text.to_string(),
        false => format!("({text})"),
    }
}

/// `pg_get_constraintdef` of a foreign key.
pub(super) fn foreign_key(
    catalog: &Catalog,
    table: &TableDef,
    key: &ForeignKey,
    is_visible: impl Fn(u32) -> bool,
) -> String {
    let names = |table: &TableDef, ids: &[ColumnId]| {
        let names = ids.iter().map(|id| quote_identifier(&table.column(*id).name));
        names.collect::<Vec<_>>().join(", ")
    };
    let Some(parent) = catalog.table(key.parent) else { return String::new() };
    let schema = catalog.namespaces.get(&parent.namespace).filter(|_| !is_visible(parent.id.0));
    let schema = schema.map_or(String::new(), |namespace| format!("{}.", quote_identifier(&namespace.name)));
    let mut text = format!(
        "FOREIGN KEY ({}) REFERENCES {schema}{}({})",
        names(table, &key.columns),
        quote_identifier(&parent.name),
        names(parent, &key.parent_columns)
    );
    if key.match_full {
        text.push_str(" MATCH FULL");
    }
    for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if action != basalt_types::schema::ReferentialAction::NoAction {
            text.push_str(&format!(" ON {event} {}", action.sql()));
        }
    }
    if !key.set_columns.is_empty() {
        text.push_str(&format!(" ({})", names(table, &key.set_columns)));
    }
    text.push_str(deferral(key.deferrable, key.initially_deferred));
    text.push_str(if key.validated { "" } else { " NOT VALID" });
    text
}
