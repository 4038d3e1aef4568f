//! Declared types as PostgreSQL's catalog spells them, and what they accept.

use super::TypePattern;
use basalt_types::{Attribute, CompositeDef, DataType, RangeKind};
use std::sync::Arc;

impl TypePattern {
    /// Reads a `pg_type.typname`.
    pub fn parse(name: &str) -> Option<TypePattern> {
        Some(match name {
            "anyelement" => TypePattern::AnyElement,
            "anyarray" => TypePattern::AnyArray,
            "anynonarray" => TypePattern::AnyNonArray,
            "anyenum" => TypePattern::AnyEnum,
            "anyrange" => TypePattern::AnyRange,
            "anymultirange" => TypePattern::AnyMultirange,
            "anycompatible" => TypePattern::AnyCompatible,
            "anycompatiblearray" => TypePattern::AnyCompatibleArray,
            "anycompatiblenonarray" => TypePattern::AnyCompatibleNonArray,
            "any" => TypePattern::Any,
            name => TypePattern::Exact(type_named(name)?),
        })
    }

    pub fn exact(&self) -> Option<&DataType> {
        match self {
            TypePattern::Exact(ty) => Some(ty),
            _ => None,
        }
    }

    pub fn is_polymorphic(&self) -> bool {
        !matches!(self, TypePattern::Exact(_))
    }
}

/// A type by its `pg_type.typname`; `record(name:type,…)` for a function's OUT parameters.
pub fn type_named(name: &str) -> Option<DataType> {
    use DataType::*;
    if let Some(element) = name.strip_prefix('_') {
        return Some(Array(Box::new(type_named(element)?)));
    }
    if let "int2vector" | "oidvector" = name {
        return DataType::vector(if name == "int2vector" { 22 } else { 30 });
    }
    if let Some(columns) = name.strip_prefix("record(").and_then(|rest| rest.strip_suffix(')')) {
        let attribute = |column: &str| {
            let (name, ty) = column.split_once(':')?;
            Some(Attribute::new(name, type_named(ty)?))
        };
        let attributes = columns.split(',').map(attribute).collect::<Option<Vec<_>>>()?;
        return Some(Composite(Arc::new(CompositeDef::anonymous(attributes))));
    }
    Some(match name {
        "bool" => Bool,
        "int2" => Int2,
        "int4" => Int4,
        "int8" => Int8,
        "float4" => Float4,
        "float8" => Float8,
        "numeric" => Numeric(None),
        "text" => Text,
        "varchar" => Varchar(None),
        "bpchar" => Bpchar(None),
        "bytea" => Bytea,
        "date" => Date,
        "time" => Time,
        "timestamp" => Timestamp,
        "timestamptz" => TimestampTz,
        "interval" => Interval,
        "timetz" => TimeTz,
        "bit" => Bit(None),
        "varbit" => Varbit(None),
        "money" => Money,
        "uuid" => Uuid,
        "inet" => Inet,
        "cidr" => Cidr,
        "macaddr" => Macaddr,
        "macaddr8" => Macaddr8,
        "json" => Json,
        "jsonb" => Jsonb,
        "jsonpath" => JsonPath,
        "name" => Name,
        "char" => Char,
        "oid" => Oid,
        "regclass" => Regclass,
        "regtype" => Regtype,
        "regproc" => Regproc,
        "regnamespace" => Regnamespace,
        "regrole" => Regrole,
        "regprocedure" => Regprocedure,
        "regoper" => Regoper,
        "regoperator" => Regoperator,
        "regcollation" => Regcollation,
        "pg_lsn" => PgLsn,
        "xid8" => Xid8,
        "xid" => Xid,
        "pg_snapshot" => PgSnapshot,
        "txid_snapshot" => TxidSnapshot,
        "record" => Record,
        "unknown" => Unknown,
        "void" => Void,
        name => {
            let of = |kind: &RangeKind| match () {
                () if kind.range_name() == name => Some(Range(*kind)),
                () if kind.multirange_name() == name => Some(Multirange(*kind)),
                () => None,
            };
            return RangeKind::ALL.iter().find_map(of);
        }
    })
}
