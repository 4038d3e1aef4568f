//! What PostgreSQL has and Basalt has not built: types and functions that are refused by name, so that nobody takes
//! them for a slip of the pen.

use crate::error::SqlError;

const TEXT_SEARCH: &str = "Use LIKE or regular expressions.";
const GEOMETRY: &str = "Keep coordinates in columns of double precision.";
const XML: &str = "Keep the document as text, or as jsonb.";
const LARGE_OBJECTS: &str = "Keep the bytes in a column of bytea.";
const SYSTEM: &str = "It describes the inside of PostgreSQL's storage.";
const CATALOG: &str = "Read the privileges with has_table_privilege and its kin.";

/// Types, with what to do instead.
const TYPES: &[(&str, &[&str])] = &[
    (TEXT_SEARCH, &["tsvector", "tsquery", "gtsvector", "regconfig", "regdictionary"]),
    (GEOMETRY, &["point", "line", "lseg", "box", "path", "polygon", "circle"]),
    (XML, &["xml"]),
    (SYSTEM, &["cid", "tid", "refcursor", "cstring", "int2vector", "oidvector", "pg_node_tree"]),
    (CATALOG, &["aclitem"]),
];

/// Functions by how their names begin.
const PREFIXES: &[(&str, &[&str])] = &[
    (TEXT_SEARCH, &["ts_", "tsvector_", "tsquery_", "tsmatch", "to_ts", "phraseto_", "plainto_", "websearch_to_"]),
    (XML, &["xml", "xpath", "table_to_xml", "query_to_xml", "cursor_to_xml", "schema_to_xml", "database_to_xml"]),
    (LARGE_OBJECTS, &["lo_"]),
    (
        SYSTEM,
        &[
            "pg_walfile",
            "pg_wal_replay",
            "pg_switch_wal",
            "pg_current_xact",
            "pg_current_snapshot",
            "pg_xact_",
            "txid_current_",
            "txid_status",
            "pg_replication_",
            "pg_logical_",
            "pg_create_",
            "pg_backup_",
            "pg_export_",
        ],
    ),
];

const FUNCTIONS: &[(&str, &[&str])] = &[
    (
        TEXT_SEARCH,
        &[
            "setweight",
            "strip",
            "numnode",
            "querytree",
            "array_to_tsvector",
            "json_to_tsvector",
            "jsonb_to_tsvector",
            "get_current_ts_config",
        ],
    ),
    (
        GEOMETRY,
        &[
            "area",
            "bound_box",
            "box",
            "center",
            "circle",
            "diagonal",
            "diameter",
            "height",
            "isclosed",
            "isopen",
            "line",
            "lseg",
            "npoints",
            "path",
            "pclose",
            "point",
            "polygon",
            "popen",
            "radius",
            "slope",
            "width",
        ],
    ),
    (LARGE_OBJECTS, &["loread", "lowrite"]),
    (CATALOG, &["acldefault", "aclexplode", "makeaclitem"]),
];

fn hint_of(name: &str, list: &[(&'static str, &[&str])], fits: impl Fn(&str, &str) -> bool) -> Option<&'static str> {
    list.iter().find(|(_, names)| names.iter().any(|known| fits(name, known))).map(|(hint, _)| *hint)
}

/// 0A000 for a type of PostgreSQL's that is not built.
pub(super) fn type_refused(name: &str) -> Option<SqlError> {
    let hint = hint_of(name, TYPES, |name, known| name == known)?;
    Some(SqlError::not_supported(format!("type {name} is not supported")).with_hint(hint))
}

/// The same for a function.
pub(super) fn function_refused(name: &str) -> Option<SqlError> {
    let hint = hint_of(name, FUNCTIONS, |name, known| name == known)
        .or_else(|| hint_of(name, PREFIXES, |name, known| name.starts_with(known)))?;
    Some(SqlError::not_supported(format!("function {name} is not supported")).with_hint(hint))
}
