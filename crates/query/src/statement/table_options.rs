//! `WITH (…)` of tables: what may be said, and what it means for tablets.

use crate::error::{Result, SqlError};
use crate::statement::index::check_indexable;
use crate::statement::unique;
use basalt_types::names::names_of;
use basalt_types::schema::{Distribution, Orientation};
use basalt_types::{ColumnId, TableDef};

/// Tablets of one table.
pub(crate) const TABLETS_MAX: u32 = 1024;

/// Whether an option says which tablet a row is in: to change it is to write all rows anew. Others say how files are made.
pub(crate) fn spreads(name: &str) -> bool {
    matches!(name, "tablets" | "distribution_key")
}

/// Checks options and gives them in canonical order. 22023 for unknown names and wrong values.
pub(crate) fn check(options: &[(String, String)]) -> Result<Vec<(String, String)>> {
    let mut checked: Vec<(String, String)> = Vec::new();
    for (name, value) in options {
        if checked.iter().any(|(other, _)| other == name) {
            return Err(SqlError::new("42601", format!("parameter \"{name}\" specified more than once")));
        }
        check_one(name, value)?;
        checked.push((name.clone(), value.clone()));
    }
    checked.sort();
    Ok(checked)
}

fn check_one(name: &str, value: &str) -> Result<()> {
    let wrong = |hint: &str| {
        Err(SqlError::new("22023", format!("invalid value for option \"{name}\": \"{value}\"")).with_hint(hint))
    };
    match name {
        "tablets" => match value.parse::<u32>() {
            Ok(count) if (1..=TABLETS_MAX).contains(&count) => Ok(()),
            _ => wrong("It is a number from 1 to 1024."),
        },
        "orientation" => match Orientation::named(value) {
            Some(_) => Ok(()),
            None => wrong("It is 'row', 'column' or 'row,column'."),
        },
        "compression" => match value.to_ascii_lowercase().as_str() {
            "zstd" | "none" => Ok(()),
            _ => wrong("It is 'zstd' or 'none'."),
        },
        "distribution_key" | "clustering_key" => match names_of(value) {
            Some(names) if !names.is_empty() => Ok(()),
            _ => wrong("It lists columns, as in 'a,b'."),
        },
        "fillfactor" => match value.parse::<i64>() {
            Ok(10..=100) => Ok(()),
            Ok(_) => Err(SqlError::new("22023", format!("value {value} out of bounds for option \"fillfactor\""))
                .with_detail("Valid values are between \"10\" and \"100\".")),
            Err(_) => Err(SqlError::new("22023", format!("invalid value for integer option \"fillfactor\": {value}"))),
        },
        "oids" => match is_boolean(value) {
            Some(false) => Ok(()),
            _ => Err(SqlError::not_supported("tables declared WITH OIDS are not supported")),
        },
        "autovacuum_enabled" | "toast.autovacuum_enabled" | "user_catalog_table" if is_boolean(value).is_none() => {
            Err(SqlError::new("22023", format!("invalid value for boolean option \"{name}\": {value}")))
        }
        // PostgreSQL's knobs for its own vacuum and storage have no meaning here.
        _ if name.starts_with("autovacuum_") || name.starts_with("toast.") => Ok(()),
        "toast_tuple_target"
        | "parallel_workers"
        | "log_autovacuum_min_duration"
        | "vacuum_truncate"
        | "vacuum_index_cleanup"
        | "user_catalog_table" => Ok(()),
        _ => Err(SqlError::new("22023", format!("unrecognized parameter \"{name}\"")).with_hint(
            "Known are tablets, distribution_key, clustering_key, orientation, compression and fillfactor.",
        )),
    }
}

fn is_boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" | "t" | "y" => Some(true),
        "false" | "off" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// How many tablets the options ask for.
pub(crate) fn tablet_count(options: &[(String, String)]) -> u32 {
    let count = options.iter().find(|(name, _)| name == "tablets").and_then(|(_, value)| value.parse().ok());
    count.unwrap_or(1)
}

/// How rows find their tablet. Several tablets are filled by hash: of the distribution key, which must be
/// part of the primary key, or of the primary key.
pub(crate) fn distribution(table: &TableDef) -> Result<Distribution> {
    let named = match table.option("distribution_key") {
        Some(text) => Some(columns(table, "distribution_key", text)?),
        None => None,
    };
    if let Some(text) = table.option("clustering_key") {
        let columns = columns(table, "clustering_key", text)?;
        if let Some(at) = (1..columns.len()).find(|at| columns[..*at].contains(&columns[*at])) {
            let name = &table.column(columns[at]).name;
            return Err(SqlError::new("42701", format!("column \"{name}\" appears twice in clustering_key")));
        }
        check_clustering(table)?;
    }
    let key = table.primary_key.as_ref().map(|key| key.columns.clone());
    if let (Some(named), Some(key)) = (&named, &key)
        && !named.iter().all(|id| key.contains(id))
    {
        return Err(SqlError::new("42P16", "the distribution key must be part of the primary key")
            .with_detail("One tablet decides whether a key is unique."));
    }
    let several = tablet_count(&table.options) > 1;
    match (named, key) {
        (Some(named), _) => Ok(Distribution::Hash(named)),
        (None, Some(key)) if several => Ok(Distribution::Hash(key)),
        (None, None) if several => Err(SqlError::new("42P16", "a table with several tablets needs a key")
            .with_hint("Declare a primary key, or set distribution_key.")),
        (None, _) => Ok(Distribution::Range),
    }
}

/// 42704 and 0A000 for columns in the clustering key that rows cannot be ordered by.
pub(crate) fn check_clustering(table: &TableDef) -> Result<()> {
    for id in table.clustering_key() {
        let ty = &table.column(id).ty;
        check_indexable(ty, "btree")?;
        if unique::names_no_rows(ty) {
            return Err(SqlError::not_supported(format!("clustering by type {} is not supported", ty.sql_name())));
        }
    }
    Ok(())
}

fn columns(table: &TableDef, option: &str, text: &str) -> Result<Vec<ColumnId>> {
    let names = names_of(text).unwrap_or_default();
    let find = |name: &String| match table.column_named(name) {
        Some(column) => Ok(column.id),
        None => Err(SqlError::new("42703", format!("column \"{name}\" named in {option} does not exist"))),
    };
    names.iter().map(find).collect()
}
