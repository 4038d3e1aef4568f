//! Identifiers as text.

/// As PostgreSQL prints a name: quoted unless it is a plain lower-case word that is no reserved one.
pub fn quote_identifier(name: &str) -> String {
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain && RESERVED.binary_search(&name).is_err() {
        name.to_string()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

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

/// PostgreSQL 15's reserved words (manual, appendix C), sorted.
static RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_needed() {
        assert!(RESERVED.windows(2).all(|pair| pair[0] < pair[1]));
        for (name, quoted) in
            [("a_1", "a_1"), ("A", "\"A\""), ("select", "\"select\""), ("a\"b", "\"a\"\"b\""), ("", "\"\"")]
        {
            assert_eq!(quote_identifier(name), quoted);
        }
    }
}
