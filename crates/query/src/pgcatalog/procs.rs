//! `pg_proc`, `pg_operator` and their kin: what the function registry holds, and the input and output
//! functions that drivers look up by type.

use super::rows::{Rows, float4, int2, oid, oid_vector, text, yes};
use super::{Fill, SystemContext, functions, typing};
use crate::error::SqlError;
use basalt_engine::catalog::{INFORMATION_SCHEMA, PG_CATALOG, SUPERUSER};
use basalt_expr::functions::{TypePattern, Volatility};
use basalt_types::{DataType, Datum};
use std::collections::HashMap;
use std::sync::LazyLock;

type Result = std::result::Result<(), SqlError>;

const INTERNAL_LANGUAGE: u32 = 12;
const CSTRING: u32 = 2275;
const INTERNAL: u32 = 2281;

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "pg_proc" => pg_proc,
        "pg_aggregate" => pg_aggregate,
        "pg_operator" => pg_operator,
        "pg_language" => pg_language,
        "pg_am" => pg_am,
        _ => return None,
    })
}

/// A function of any kind, as `pg_proc` tells it.
pub(super) struct Proc {
    pub oid: u32,
    pub name: &'static str,
    /// `f`, `a` or `w`.
    kind: &'static str,
    strict: bool,
    pub set: bool,
    volatility: &'static str,
    pub args: Vec<u32>,
    /// The type of the last argument's elements if it may repeat.
    pub variadic: Option<u32>,
    defaults: usize,
    pub ret: u32,
}

static PROCS: LazyLock<Vec<Proc>> = LazyLock::new(|| {
    let mut procs: Vec<Proc> = registered().chain(aggregates()).chain(type_functions()).collect();
    procs.sort_by_key(|proc| proc.oid);
    procs.dedup_by_key(|proc| proc.oid);
    procs
});

static BY_OID: LazyLock<HashMap<u32, &'static Proc>> =
    LazyLock::new(|| PROCS.iter().map(|proc| (proc.oid, proc)).collect());

fn registered() -> impl Iterator<Item = Proc> {
    let functions = functions::registry().all_functions().filter(|function| function.oid != 0);
    functions.map(|function| Proc {
        oid: function.oid,
        name: &function.name,
        kind: "f",
        strict: function.strict,
        set: function.returns_set,
        volatility: match function.volatility {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        },
        args: function.args.iter().map(typing::pattern_oid).collect(),
        variadic: function.variadic.then(|| function.args.last().map_or(0, element_oid)),
        defaults: function.optional,
        ret: typing::pattern_oid(&function.ret),
    })
}

fn element_oid(pattern: &TypePattern) -> u32 {
    match pattern {
        TypePattern::Exact(DataType::Array(element)) => element.oid(),
        TypePattern::AnyArray => typing::pattern_oid(&TypePattern::AnyElement),
        TypePattern::AnyCompatibleArray => typing::pattern_oid(&TypePattern::AnyCompatible),
        other => typing::pattern_oid(other),
    }
}

fn aggregates() -> impl Iterator<Item = Proc> {
    let aggregates = functions::registry().all_aggregates();
    aggregates.map(|aggregate| Proc {
        oid: aggregate.oid,
        name: &aggregate.name,
        kind: "a",
        strict: false,
        set: false,
        volatility: "i",
        args: aggregate.args.iter().map(typing::pattern_oid).collect(),
        variadic: None,
        defaults: 0,
        ret: typing::pattern_oid(&aggregate.ret),
    })
}

/// Input, output, receive and send functions that read settings or the catalog.
const STABLE: &str = "
    anyarray_out anyarray_recv anyarray_send anycompatiblearray_out anycompatiblearray_recv
    anycompatiblearray_send anycompatiblemultirange_in anycompatiblemultirange_out anycompatiblerange_in
    anycompatiblerange_out anyenum_out anymultirange_in anymultirange_out anyrange_in anyrange_out array_in
    array_out array_recv array_send bpcharrecv bpcharsend cash_in cash_out cstring_recv cstring_send date_in
    date_out domain_in domain_recv enum_in enum_out enum_recv enum_send interval_in interval_out multirange_in
    multirange_out multirange_recv multirange_send namerecv namesend range_in range_out range_recv range_send
    record_in record_out record_recv record_send regclassin regclassout regcollationin regcollationout
    regnamespacein regnamespaceout regoperatorin regoperatorout regoperin regoperout regprocedurein
    regprocedureout regprocin regprocout regrolein regroleout regtypein regtypeout textrecv textsend time_in
    timestamp_in timestamp_out timestamptz_in timestamptz_out timetz_in varcharrecv varcharsend
";

/// Input, output, receive and send functions: they cannot be called, but drivers join types with them.
fn type_functions() -> impl Iterator<Item = Proc> {
    typing::types().iter().flat_map(|fact| {
        let [input, output, receive, send, ..] = fact.functions;
        let of = |(oid, name): (u32, &'static str), args: Vec<u32>, ret: u32| Proc {
            oid,
            name,
            kind: "f",
            strict: true,
            set: false,
            volatility: if STABLE.split_whitespace().any(|stable| stable == name) { "s" } else { "i" },
            args,
            variadic: None,
            defaults: 0,
            ret,
        };
        let has_modifier = fact.functions[4].0 != 0;
        let taken = |form: u32, name: &str| [vec![form], told_of_type(name, has_modifier)].concat();
        let procs = [
            of(input, taken(CSTRING, input.1), fact.oid),
            of(output, vec![fact.oid], CSTRING),
            of(receive, taken(INTERNAL, receive.1), fact.oid),
            of(send, vec![fact.oid], DataType::Bytea.oid()),
        ];
        procs.into_iter().filter(|proc| proc.oid != 0)
    })
}

/// What an input or receive function takes beside the value: the type that is asked for, where it serves many, and its
/// modifier.
fn told_of_type(name: &str, has_modifier: bool) -> Vec<u32> {
    let serves_many = name.starts_with("array_") || name.starts_with("record_") || name.contains("range_");
    match has_modifier || serves_many {
        true => vec![DataType::Oid.oid(), DataType::Int4.oid()],
        false => Vec::new(),
    }
}

pub(super) fn by_oid(oid: u32) -> Option<&'static Proc> {
    BY_OID.get(&oid).copied()
}

pub(super) fn name_of(oid: u32) -> Option<&'static str> {
    by_oid(oid).map(|proc| proc.name)
}

/// The oids of all functions of a name.
pub(super) fn named(name: &str) -> Vec<u32> {
    PROCS.iter().filter(|proc| proc.name == name).map(|proc| proc.oid).collect()
}

/// The function of a name that takes arguments of these types.
pub(super) fn with_args(name: &str, args: &[u32]) -> Option<u32> {
    PROCS.iter().find(|proc| proc.name == name && proc.args == args).map(|proc| proc.oid)
}

fn pg_proc(_: &SystemContext, rows: &mut Rows) -> Result {
    for proc in PROCS.iter() {
        rows.push([
            ("oid", oid(proc.oid)),
            ("proname", text(proc.name)),
            ("pronamespace", oid(if proc.name.starts_with("_pg_") { INFORMATION_SCHEMA.0 } else { PG_CATALOG.0 })),
            ("proowner", oid(SUPERUSER.0)),
            ("prolang", oid(INTERNAL_LANGUAGE)),
            ("procost", float4(1.0)),
            ("prorows", float4(if proc.set { 1000.0 } else { 0.0 })),
            ("provariadic", oid(proc.variadic.unwrap_or(0))),
            ("prosupport", oid(0)),
            ("prokind", text(proc.kind)),
            ("prosecdef", yes(false)),
            ("proleakproof", yes(false)),
            ("proisstrict", yes(proc.strict)),
            ("proretset", yes(proc.set)),
            ("provolatile", text(proc.volatility)),
            ("proparallel", text("s")),
            ("pronargs", int2(proc.args.len() as i16)),
            ("pronargdefaults", int2(proc.defaults as i16)),
            ("prorettype", oid(proc.ret)),
            ("proargtypes", oid_vector(proc.args.iter().copied())),
            ("prosrc", text(proc.name)),
        ])?;
    }
    Ok(())
}

fn pg_aggregate(_: &SystemContext, rows: &mut Rows) -> Result {
    for aggregate in functions::registry().all_aggregates() {
        rows.push([
            ("aggfnoid", oid(aggregate.oid)),
            ("aggkind", text("n")),
            ("aggnumdirectargs", int2(0)),
            ("aggfinalextra", yes(false)),
            ("aggmfinalextra", yes(false)),
        ])?;
    }
    Ok(())
}

fn pg_operator(_: &SystemContext, rows: &mut Rows) -> Result {
    for operator in functions::registry().all_operators() {
        let code = named(&operator.function.name).first().copied().unwrap_or(0);
        let equality = operator.symbol == "=";
        rows.push([
            ("oid", oid(operator.oid)),
            ("oprname", text(&operator.symbol)),
            ("oprnamespace", oid(PG_CATALOG.0)),
            ("oprowner", oid(SUPERUSER.0)),
            ("oprkind", text(if operator.left.is_some() { "b" } else { "l" })),
            ("oprcanmerge", yes(equality)),
            ("oprcanhash", yes(equality)),
            ("oprleft", oid(operator.left.as_ref().map_or(0, typing::pattern_oid))),
            ("oprright", oid(typing::pattern_oid(&operator.right))),
            ("oprresult", oid(typing::pattern_oid(&operator.function.ret))),
            ("oprcom", oid(0)),
            ("oprnegate", oid(0)),
            ("oprcode", oid(code)),
            ("oprrest", oid(0)),
            ("oprjoin", oid(0)),
        ])?;
    }
    Ok(())
}

fn pg_language(_: &SystemContext, rows: &mut Rows) -> Result {
    for (id, name, trusted) in [(INTERNAL_LANGUAGE, "internal", false), (14, "sql", true)] {
        rows.push([
            ("oid", oid(id)),
            ("lanname", text(name)),
            ("lanowner", oid(SUPERUSER.0)),
            ("lanispl", yes(false)),
            ("lanpltrusted", yes(trusted)),
            ("lanplcallfoid", oid(0)),
            ("laninline", oid(0)),
            ("lanvalidator", oid(0)),
            ("lanacl", Datum::Null),
        ])?;
    }
    Ok(())
}

fn pg_am(_: &SystemContext, rows: &mut Rows) -> Result {
    use super::class::{HEAP, METHODS};
    let indexes = METHODS.into_iter().map(|(id, name)| (id, name, "i"));
    for (id, name, kind) in std::iter::once((HEAP, "heap", "t")).chain(indexes) {
        rows.push([("oid", oid(id)), ("amname", text(name)), ("amhandler", oid(0)), ("amtype", text(kind))])?;
    }
    Ok(())
}
