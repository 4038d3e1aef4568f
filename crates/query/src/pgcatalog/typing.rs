//! `pg_type`, from PostgreSQL's facts about the types that Basalt has (`types.txt`), and type names.
//!
//! A line: `oid name length byval kind category preferred relation element array`, then oid and name of
//! input, output, receive, send, typmod in, typmod out, then `align storage collation`, then oid and name
//! of the subscript function.

use super::rows::{Rows, int2, int4, oid, opt_text, text, yes};
use super::{Fill, SystemContext, time_modifiers};
use crate::error::SqlError;
use crate::session::names::quote_identifier;
use basalt_engine::catalog::{PG_CATALOG, SUPERUSER};
use basalt_expr::functions::TypePattern;
use basalt_expr::functions::pattern_types::type_named;
use basalt_types::{DataType, Datum};
use std::collections::HashMap;
use std::sync::LazyLock;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "pg_type" => pg_type,
        "pg_collation" => pg_collation,
        _ => return None,
    })
}

/// What PostgreSQL's catalog says of a type.
pub(super) struct TypeFact {
    pub oid: u32,
    pub name: &'static str,
    pub len: i16,
    pub by_value: bool,
    kind: &'static str,
    pub category: &'static str,
    preferred: bool,
    element: u32,
    array: u32,
    /// Oid and name of input, output, receive, send, typmod in, typmod out.
    pub functions: [(u32, &'static str); 6],
    pub align: &'static str,
    pub storage: &'static str,
    pub collation: u32,
    subscript: u32,
}

static TYPES: LazyLock<Vec<TypeFact>> = LazyLock::new(|| include_str!("types.txt").lines().filter_map(read).collect());

static BY_OID: LazyLock<HashMap<u32, &'static TypeFact>> =
    LazyLock::new(|| TYPES.iter().map(|fact| (fact.oid, fact)).collect());

fn read(line: &'static str) -> Option<TypeFact> {
    let words: Vec<&'static str> = line.split(' ').collect();
    let number = |index: usize| words.get(index)?.parse::<u32>().ok();
    let function = |index: usize| Some((number(index)?, *words.get(index + 1)?));
    Some(TypeFact {
        oid: number(0)?,
        name: words.get(1)?,
        len: words.get(2)?.parse().ok()?,
        by_value: *words.get(3)? == "t",
        kind: words.get(4)?,
        category: words.get(5)?,
        preferred: *words.get(6)? == "t",
        element: number(8)?,
        array: number(9)?,
        functions: [function(10)?, function(12)?, function(14)?, function(16)?, function(18)?, function(20)?],
        align: words.get(22)?,
        storage: words.get(23)?,
        collation: number(24)?,
        subscript: number(25)?,
    })
}

pub(super) fn types() -> &'static [TypeFact] {
    &TYPES
}

pub(super) fn fact(oid: u32) -> Option<&'static TypeFact> {
    BY_OID.get(&oid).copied()
}

/// The oid of a declared type, pseudo-types included.
pub(super) fn pattern_oid(pattern: &TypePattern) -> u32 {
    match pattern {
        TypePattern::Exact(ty) => ty.oid(),
        TypePattern::AnyElement => 2283,
        TypePattern::AnyArray => 2277,
        TypePattern::AnyNonArray => 2776,
        TypePattern::AnyEnum => 3500,
        TypePattern::AnyRange => 3831,
        TypePattern::AnyMultirange => 4537,
        TypePattern::AnyCompatible => 5077,
        TypePattern::AnyCompatibleArray => 5078,
        TypePattern::AnyCompatibleNonArray => 5079,
        TypePattern::Any => 2276,
    }
}

/// `format_type`: the name of a type by its oid, with its modifier if one is given (-1: given, but none).
pub(super) fn format_type(oid: u32, typmod: Option<i32>) -> Option<String> {
    let fact = fact(oid)?;
    let is_vector = DataType::vector(oid).is_some();
    if fact.category == "A" && fact.element != 0 && !is_vector {
        return Some(format!("{}[]", format_type(fact.element, typmod)?));
    }
    if oid == DataType::Bpchar(None).oid() && typmod == Some(-1) {
        return Some("bpchar".to_string());
    }
    Some(match (type_named(fact.name), typmod.unwrap_or(-1)) {
        (Some(ty), typmod) => time_modifiers::name(&ty, typmod).unwrap_or_else(|| with_typmod(ty, typmod).sql_name()),
        (None, _) => quote_identifier(fact.name),
    })
}

fn with_typmod(ty: DataType, typmod: i32) -> DataType {
    if let (DataType::Bit(_) | DataType::Varbit(_), Ok(length)) = (&ty, u32::try_from(typmod)) {
        return if matches!(ty, DataType::Bit(_)) {
            DataType::Bit(Some(length))
        } else {
            DataType::Varbit(Some(length))
        };
    }
    let Ok(modifier) = u32::try_from(typmod - 4) else { return ty };
    match ty {
        DataType::Varchar(_) => DataType::Varchar(Some(modifier)),
        DataType::Bpchar(_) => DataType::Bpchar(Some(modifier)),
        DataType::Numeric(_) => {
            // The scale is an 11-bit signed number.
            let scale = ((modifier & 0x7ff) ^ 1024) as i16 - 1024;
            DataType::Numeric(Some(((modifier >> 16) as u16, scale)))
        }
        other => other,
    }
}

/// The type that text names: its catalog name or its SQL name, as an array with `[]`, modifiers ignored.
pub(super) fn oid_of(text: &str) -> Option<u32> {
    let folded = text.trim().to_ascii_lowercase();
    let name = folded.strip_prefix("pg_catalog.").unwrap_or(&folded);
    if let Some(element) = name.strip_suffix("[]") {
        return fact(oid_of(element)?).map(|fact| fact.array).filter(|array| *array != 0);
    }
    let name = match name.split_once('(') {
        // `timestamp(3) with time zone`
        Some((before, rest)) => {
            let after = rest.split_once(')')?.1;
            format!("{}{after}", before.trim_end())
        }
        None => name.to_string(),
    };
    let name = match name.as_str() {
        "int" => "int4",
        "decimal" => "numeric",
        "float" => "float8",
        "char" => "bpchar",
        "\"char\"" => "char",
        other => other,
    };
    let found = TYPES
        .iter()
        .find(|fact| fact.name == name || (fact.element == 0 && format_type(fact.oid, None).as_deref() == Some(name)));
    found.map(|fact| fact.oid)
}

fn pg_type(system: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    super::user_types::types(system, rows)?;
    for fact in TYPES.iter() {
        let [input, output, receive, send, modin, modout] = fact.functions.map(|(id, _)| oid(id));
        rows.push([
            ("oid", oid(fact.oid)),
            ("typname", text(fact.name)),
            ("typnamespace", oid(PG_CATALOG.0)),
            ("typowner", oid(SUPERUSER.0)),
            ("typlen", int2(fact.len)),
            ("typbyval", yes(fact.by_value)),
            ("typtype", text(fact.kind)),
            ("typcategory", text(fact.category)),
            ("typispreferred", yes(fact.preferred)),
            ("typisdefined", yes(true)),
            ("typdelim", text(",")),
            ("typrelid", oid(0)),
            ("typsubscript", oid(fact.subscript)),
            ("typelem", oid(fact.element)),
            ("typarray", oid(fact.array)),
            ("typinput", input),
            ("typoutput", output),
            ("typreceive", receive),
            ("typsend", send),
            ("typmodin", modin),
            ("typmodout", modout),
            ("typanalyze", oid(0)),
            ("typalign", text(fact.align)),
            ("typstorage", text(fact.storage)),
            ("typnotnull", yes(false)),
            ("typbasetype", oid(0)),
            ("typtypmod", int4(-1)),
            ("typndims", int4(0)),
            ("typcollation", oid(fact.collation)),
            ("typdefaultbin", Datum::Null),
        ])?;
    }
    Ok(())
}

/// Oid, name, provider and locale.
const COLLATIONS: [(u32, &str, &str, Option<&str>); 3] =
    [(100, "default", "d", None), (950, "C", "c", Some("C")), (951, "POSIX", "c", Some("POSIX"))];

pub(super) fn collation_name(oid: u32) -> Option<&'static str> {
    COLLATIONS.iter().find(|(id, ..)| *id == oid).map(|(_, name, ..)| *name)
}

pub(super) fn collation_named(name: &str) -> Option<u32> {
    COLLATIONS.iter().find(|(_, known, ..)| *known == name).map(|(id, ..)| *id)
}

fn pg_collation(_: &SystemContext, rows: &mut Rows) -> Result<(), SqlError> {
    for (id, name, provider, locale) in COLLATIONS {
        rows.push([
            ("oid", oid(id)),
            ("collname", text(name)),
            ("collnamespace", oid(PG_CATALOG.0)),
            ("collowner", oid(SUPERUSER.0)),
            ("collprovider", text(provider)),
            ("collisdeterministic", yes(true)),
            ("collencoding", int4(-1)),
            ("collcollate", opt_text(locale)),
            ("collctype", opt_text(locale)),
        ])?;
    }
    Ok(())
}
