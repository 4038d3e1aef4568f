//! Identifiers as text.

pub use basalt_expr::words::quote_ident as quote_identifier;

/// Temporary objects of a session live in a schema of its own.
pub const TEMP_PREFIX: &str = "pg_temp_";

/// Schemas in the order of search: the session's temporary one and `pg_catalog` come first unless they are listed.
pub fn searched(path: &[String]) -> impl Iterator<Item = &str> {
    let implicit = (!path.iter().any(|schema| schema == "pg_catalog")).then_some("pg_catalog");
    let own = path.first().filter(|first| first.starts_with(TEMP_PREFIX)).map(String::as_str);
    let rest = if own.is_some() { &path[1..] } else { path };
    own.into_iter().chain(implicit).chain(rest.iter().map(String::as_str))
}

/// The schema that a name means where `path` is searched: `pg_temp` is the session's own.
pub fn named_schema<'a>(path: &'a [String], name: &'a str) -> &'a str {
    let own = || path.iter().find(|schema| schema.starts_with(TEMP_PREFIX)).map(String::as_str);
    match name {
        "pg_temp" => own().unwrap_or(name),
        name => name,
    }
}
