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

/// PostgreSQL 15's words that cannot be names of everything (manual, appendix C: all but the non-reserved), sorted.
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
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
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
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
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
