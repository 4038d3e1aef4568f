//! What uses a type: who goes along when it is dropped, and whether stored values bear a change.

use crate::bind::{self, ParamTypes};
use crate::error::{ErrorObject, Result, SqlError};
use crate::run::RunContext;
use crate::session::Session;
use crate::session::names::quote_identifier;
use crate::syntax::parse_query_text;
use basalt_engine::{Catalog, CatalogEdit, TableLock, TypeDef, TypeKind, TypeUser};
use basalt_types::usertype::row_type_oid;
use basalt_types::{ColumnId, DataType, ObjectId, TableDef};
use std::sync::Arc;

/// What a domain newly asks of its values.
pub(crate) enum TypeUse {
    NotNull,
    /// SQL of a condition over `VALUE`.
    Condition(String),
}

/// `table.column` of a column whose values are made of a type.
pub(crate) fn stored_column(catalog: &Catalog, oid: u32) -> Option<String> {
    let mut columns = catalog.tables.values().flat_map(|table| table.live_columns().map(move |column| (table, column)));
    let (table, column) = columns.find(|(_, column)| Catalog::mentions(&column.ty, oid))?;
    Some(format!("{}.{}", table.name, column.name))
}

/// `table.column` of a column in a key or an index whose values are made of a type: the bytes of keys have a part for
/// each of its attributes.
fn keyed_column(catalog: &Catalog, oid: u32) -> Option<String> {
    let of_table = |table: &Arc<TableDef>| {
        let is_keyed = |column: ColumnId| {
            let primary = table.primary_key.iter().any(|key| key.columns.contains(&column));
            primary
                || table.indexes.iter().any(|index| index.plain_columns().is_none_or(|plain| plain.contains(&column)))
        };
        let mut columns = table.live_columns().filter(|column| Catalog::mentions(&column.ty, oid));
        let column = columns.find(|column| is_keyed(column.id))?;
        Some(format!("{}.{}", table.name, column.name))
    };
    catalog.tables.values().find_map(of_table)
}

/// 0A000 while keys hold values of a composite type that is to have other attributes.
pub(crate) fn check_keys(catalog: &Catalog, oid: u32, what: &str) -> Result<()> {
    match keyed_column(catalog, oid) {
        None => Ok(()),
        Some(user) => {
            Err(SqlError::not_supported(format!("cannot alter {what} because a key holds column \"{user}\""))
                .with_hint("Drop the constraint or index, and make it again afterwards."))
        }
    }
}

/// Looks through all columns of a domain, and of domains over it: 23502 or 23514 for a value that would not do,
/// 0A000 where the domain is part of a stored value.
pub(crate) async fn check_stored(session: &mut Session, oid: u32, domain: &str, wanted: TypeUse) -> Result<()> {
    let plan = |_: &mut Session, catalog: &Arc<Catalog>| {
        let columns = columns_over(catalog, oid, domain)?;
        let tables = columns.iter().map(|(table, _)| table.id).collect();
        Ok(((catalog.clone(), columns), tables))
    };
    let (catalog, columns) = session.lock_planned(TableLock::Share, plan).await?;
    for (table, column) in columns {
        let schema = catalog.namespaces.get(&table.namespace).map(|namespace| namespace.name.clone());
        let from = format!(
            "(SELECT {} AS value FROM {}.{}) t",
            quote_identifier(&column),
            quote_identifier(schema.as_deref().unwrap_or_default()),
            quote_identifier(&table.name)
        );
        let (condition, error) = match &wanted {
            TypeUse::NotNull => (
                "value IS NULL".to_string(),
                SqlError::new("23502", format!("column \"{column}\" of table \"{}\" contains null values", table.name)),
            ),
            TypeUse::Condition(sql) => (
                format!("NOT ({sql})"),
                SqlError::new(
                    "23514",
                    format!(
                        "column \"{column}\" of table \"{}\" contains values that violate the new constraint",
                        table.name
                    ),
                ),
            ),
        };
        if has_rows(session, &catalog, &format!("SELECT 1 FROM {from} WHERE {condition} LIMIT 1")).await? {
            return Err(error.with_object(ErrorObject {
                schema,
                table: Some(table.name.clone()),
                column: Some(column),
                ..ErrorObject::default()
            }));
        }
    }
    Ok(())
}

/// Columns of a domain, or of one over it. 0A000 for one that has it within its type.
fn columns_over(catalog: &Catalog, oid: u32, domain: &str) -> Result<Vec<(Arc<TableDef>, String)>> {
    let mut columns = Vec::new();
    for table in catalog.tables.values() {
        for column in table.live_columns().filter(|column| Catalog::mentions(&column.ty, oid)) {
            if !is_over(&column.ty, oid) {
                let message =
                    format!("cannot alter type \"{domain}\" because column \"{}.{}\" uses it", table.name, column.name);
                return Err(SqlError::not_supported(message));
            }
            columns.push((table.clone(), column.name.clone()));
        }
    }
    Ok(columns)
}

/// Whether a type is a domain, or a domain over it, and so on.
fn is_over(ty: &DataType, oid: u32) -> bool {
    matches!(ty, DataType::Domain(domain) if domain.oid == oid || is_over(&domain.base, oid))
}

/// Whether a query has rows as everything is now: also of those who had the locks of its tables before.
async fn has_rows(session: &mut Session, catalog: &Arc<Catalog>, sql: &str) -> Result<bool> {
    let eval = session.eval_context(Vec::new(), catalog);
    let query = parse_query_text(sql)?;
    let query =
        bind::bind_query(&session.bind_context(catalog, &Arc::from(sql), &eval), &query, &mut ParamTypes::none())?;
    let read = session.txn()?.latest();
    let ctx = RunContext { read, ..session.run_context(&eval)? };
    let mut batches = session.db.runtime().run(Arc::new(query), ctx);
    while let Some(batch) = batches.next().await? {
        if batch.num_rows() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What goes along with types.
#[derive(Default)]
pub(crate) struct Along {
    /// Domains and materialized views that go, and composite types that have fewer attributes.
    pub edits: Vec<CatalogEdit>,
    /// Columns of tables that stay.
    pub columns: Vec<(ObjectId, ColumnId)>,
    /// What each of all these is called.
    pub names: Vec<String>,
}

/// What uses the types that `edits` drop. The types of dropped tables' and views' rows go with them.
pub(crate) fn cascade(catalog: &Catalog, edits: &[CatalogEdit]) -> Along {
    let mut gone: Vec<ObjectId> = Vec::new();
    let mut types: Vec<u32> = Vec::new();
    for edit in edits {
        match edit {
            CatalogEdit::DropTable(id) | CatalogEdit::DropView(id) => {
                gone.push(*id);
                types.push(row_type_oid(*id));
            }
            CatalogEdit::DropType(id) => {
                gone.push(*id);
                types.push(id.0);
            }
            _ => {}
        }
    }
    let mut composites: Vec<TypeDef> = Vec::new();
    let mut along = Along::default();
    while let Some(oid) = types.pop() {
        for user in catalog.users_of(oid) {
            match user {
                TypeUser::Column(id, at) if !gone.contains(&id) => {
                    let Some(table) = catalog.tables.get(&id) else { continue };
                    if table.materialized.is_some() {
                        // Its query has the column, and no longer gives it.
                        gone.push(id);
                        along.names.push(format!("materialized view {}", table.name));
                        along.edits.push(CatalogEdit::DropTable(id));
                        types.push(row_type_oid(id));
                        continue;
                    }
                    let column = &table.columns[at];
                    along.names.push(format!("column {} of table {}", column.name, table.name));
                    along.columns.push((id, column.id));
                }
                TypeUser::Attribute(id, at) if !gone.contains(&id) => {
                    let Some(known) = catalog.types.get(&id) else { continue };
                    if !composites.iter().any(|def| def.id == id) {
                        composites.push(TypeDef::clone(known));
                    }
                    let def = composites.iter_mut().find(|def| def.id == id);
                    if let Some(TypeDef { name, kind: TypeKind::Composite(attributes), .. }) = def {
                        along.names.push(format!("column {} of composite type {name}", attributes[at].name));
                        attributes[at].dropped = true;
                    }
                }
                TypeUser::Domain(id) if !gone.contains(&id) => {
                    let Some(def) = catalog.types.get(&id) else { continue };
                    along.names.push(format!("type {}", def.name));
                    gone.push(id);
                    types.push(id.0);
                    along.edits.push(CatalogEdit::DropType(id));
                }
                _ => {}
            }
        }
    }
    along.columns.retain(|(table, _)| !gone.contains(table));
    let composites = composites.into_iter().filter(|def| !gone.contains(&def.id));
    along.edits.extend(composites.map(|def| CatalogEdit::PutType(Arc::new(def))));
    along
}
