//! Functions, operators, aggregates and casts that both servers have, as their catalogs tell.
//!
//! What fails often where it is used is chosen less often: most statements must succeed.

use super::types::{Ty, Types};
use crate::wire::{Reply, Wire};
use anyhow::{Context, Result};
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    Exact(Ty),
    Element,
    Array,
}

#[derive(Clone, Debug)]
pub struct Callable {
    pub name: String,
    pub args: Vec<Pattern>,
    pub ret: Pattern,
    pub kind: Kind,
    /// What its coverage is counted under.
    pub label: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Function,
    SetFunction,
    Aggregate,
    Prefix,
    Infix,
    Cast,
}

/// A callable with its types settled.
pub struct Chosen<'a> {
    pub callable: &'a Callable,
    pub args: Vec<Ty>,
}

pub struct Catalog {
    callables: Vec<Callable>,
    by_result: HashMap<(bool, Ty), Vec<usize>>,
    /// By label: how often the statement around it succeeded, and failed.
    record: HashMap<String, (u32, u32)>,
}

/// Their results depend on the session, the clock, or the place of a row; or they take the server's files, locks
/// and time.
const LEFT_OUT: [&str; 17] = [
    "pg_",
    "has_",
    "txid_",
    "current_",
    "to_reg",
    "set_",
    "inet_",
    "obj_description",
    "col_description",
    "shobj_description",
    "row_security",
    "lo_",
    "query_to",
    "table_to",
    "schema_to",
    "database_to",
    "cursor_to",
];
const LEFT_OUT_WHOLE: [&str; 25] = [
    // Inner parts of indexes.
    "tsrange_subdiff",
    "tstzrange_subdiff",
    // They take rows, which no expression here has.
    "json_populate_record",
    "jsonb_populate_record",
    "json_populate_recordset",
    "jsonb_populate_recordset",
    "convert",
    "hashtext",
    "hashtextextended",
    "timeofday",
    "format_type",
    "getdatabaseencoding",
    "version",
    "in_range",
    "age_now",
    "like_escape",
    "satisfies_hash_partition",
    "oid",
    // Names that the grammar keeps for its own forms.
    "extract",
    "overlay",
    "position",
    "normalize",
    "is_normalized",
    "xmlexists",
    "timezone",
];

impl Catalog {
    pub fn load(types: &mut Types, postgres: &mut Wire, basalt: &mut Wire) -> Result<Catalog> {
        let known = oids(&basalt.run("SELECT oid FROM pg_type")?)?;
        types.retain(|oid| known.contains(&oid));
        let mut catalog = Catalog { callables: Vec::new(), by_result: HashMap::new(), record: HashMap::new() };
        let known = oids(&basalt.run("SELECT oid FROM pg_proc")?)?;
        let functions = postgres.run(
            "SELECT p.oid, p.proname, array_to_string(p.proargtypes::oid[], ','), p.prorettype, p.proretset, p.prokind
             FROM pg_proc p LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid
             WHERE p.provolatile IN ('i', 's') AND p.pronargs > 0 AND p.provariadic = 0 AND p.prokind IN ('f', 'a')
               AND p.pronamespace = 'pg_catalog'::regnamespace AND coalesce(a.aggkind, 'n') = 'n'
               AND p.oid NOT IN (SELECT oprcode FROM pg_operator) AND p.oid NOT IN (SELECT amproc FROM pg_amproc)
               AND p.oid NOT IN (SELECT aggtransfn FROM pg_aggregate) AND p.oid NOT IN (SELECT aggfinalfn FROM pg_aggregate)
               AND p.oid NOT IN (SELECT castfunc FROM pg_cast) AND p.prosrc <> 'aggregate_dummy' OR p.prokind = 'a'
               AND p.pronargs > 0 AND a.aggkind = 'n'
             ORDER BY p.oid",
        )?;
        for row in 0..functions.rows.len() {
            let text = |column| functions.text(row, column).unwrap_or_default();
            if !known.contains(&text(0).parse()?) || left_out(text(1)) {
                continue;
            }
            let kind = match (text(5), text(4)) {
                ("a", _) => Kind::Aggregate,
                (_, "t") => Kind::SetFunction,
                _ => Kind::Function,
            };
            catalog.add(types, text(1), text(2), text(3), kind)?;
        }
        let known = oids(&basalt.run("SELECT oid FROM pg_operator")?)?;
        let operators = postgres.run(
            "SELECT oid, oprname, CASE oprleft WHEN 0 THEN oprright::text ELSE oprleft || ',' || oprright END,
               oprresult, oprleft = 0 FROM pg_operator WHERE oprresult <> 0 ORDER BY oid",
        )?;
        for row in 0..operators.rows.len() {
            let text = |column| operators.text(row, column).unwrap_or_default();
            if known.contains(&text(0).parse()?) {
                let kind = if text(4) == "t" { Kind::Prefix } else { Kind::Infix };
                catalog.add(types, text(1), text(2), text(3), kind)?;
            }
        }
        let casts = postgres.run("SELECT castsource, casttarget FROM pg_cast ORDER BY oid")?;
        for row in 0..casts.rows.len() {
            let text = |column| casts.text(row, column).unwrap_or_default();
            if text(0) != text(1) {
                catalog.add(types, "cast", text(0), text(1), Kind::Cast)?;
            }
        }
        let usable: Vec<Ty> = types.usable().collect();
        for source in usable {
            let oid = types.info(source).oid.to_string();
            catalog.add(types, "cast", &oid, "25", Kind::Cast)?;
        }
        catalog.index(types);
        Ok(catalog)
    }

    /// Nothing where a type is not among ours.
    fn add(&mut self, types: &Types, name: &str, args: &str, ret: &str, kind: Kind) -> Result<()> {
        const POLYMORPHIC: [&str; 2] = ["3831", "4537"];
        if args.split(',').chain([ret]).any(|oid| POLYMORPHIC.contains(&oid)) {
            // One each of the range types, whose bounds are what anyelement is.
            for (range, multirange, element) in [("3904", "4451", "23"), ("3906", "4532", "1700")] {
                let of = |oid: &str| match oid {
                    "3831" => range.to_string(),
                    "4537" => multirange.to_string(),
                    "2283" => element.to_string(),
                    other => other.to_string(),
                };
                let args = args.split(',').map(of).collect::<Vec<_>>().join(",");
                self.add(types, name, &args, &of(ret), kind)?;
            }
            return Ok(());
        }
        let pattern = |oid: &str| -> Result<Option<Pattern>> {
            Ok(match oid.parse::<u32>().with_context(|| format!("{name}: type {oid}"))? {
                2283 | 2776 | 5077 | 5079 | 2276 => Some(Pattern::Element),
                // anyenum, which the one enum stands for.
                3500 => types.usable().find(|ty| !types.info(*ty).labels.is_empty()).map(Pattern::Exact),
                2277 | 5078 => Some(Pattern::Array),
                oid => types.with_oid(oid).map(Pattern::Exact),
            })
        };
        let Some(ret) = pattern(ret)? else { return Ok(()) };
        let mut settled = Vec::new();
        for arg in args.split(',') {
            match pattern(arg)? {
                Some(pattern) => settled.push(pattern),
                None => return Ok(()),
            }
        }
        let shown = |pattern: &Pattern| match pattern {
            Pattern::Exact(ty) => types.name(*ty).to_string(),
            Pattern::Element => "any".into(),
            Pattern::Array => "any[]".into(),
        };
        let args = settled.iter().map(shown).collect::<Vec<_>>().join(", ");
        let label = match kind {
            Kind::Function => format!("function {name}({args})"),
            Kind::SetFunction => format!("set function {name}({args})"),
            Kind::Aggregate => format!("aggregate {name}({args})"),
            Kind::Prefix => format!("operator {name} {args}"),
            Kind::Infix => format!("operator {}", args.replacen(", ", &format!(" {name} "), 1)),
            Kind::Cast => format!("cast {args} to {}", shown(&ret)),
        };
        self.callables.push(Callable { name: name.into(), args: settled, ret, kind, label });
        Ok(())
    }

    fn index(&mut self, types: &Types) {
        for (index, callable) in self.callables.iter().enumerate() {
            let results: Vec<Ty> = match callable.ret {
                Pattern::Exact(ty) => vec![ty],
                Pattern::Element => types.usable().filter(|ty| types.info(*ty).element.is_none()).collect(),
                Pattern::Array => types.usable().filter(|ty| types.info(*ty).element.is_some()).collect(),
            };
            for ty in results {
                let aggregate = callable.kind == Kind::Aggregate;
                self.by_result.entry((aggregate, ty)).or_default().push(index);
            }
        }
    }

    /// Something that gives `ty`: an aggregate or one of the others, set-returning ones left out.
    pub fn choose(&self, types: &Types, ty: Ty, aggregate: bool, rng: &mut StdRng) -> Option<Chosen<'_>> {
        let candidates = self.by_result.get(&(aggregate, ty))?;
        for _ in 0..12 {
            let callable = &self.callables[candidates[rng.random_range(0..candidates.len())]];
            if callable.kind == Kind::SetFunction || !rng.random_bool(self.success(&callable.label)) {
                continue;
            }
            let Some(element) = element_of(callable, types, ty, rng) else { continue };
            if let Some(args) = settle(callable, types, element) {
                return Some(Chosen { callable, args });
            }
        }
        None
    }

    /// A set-returning function of any result.
    pub fn choose_set(&self, types: &Types, rng: &mut StdRng) -> Option<(Chosen<'_>, Ty)> {
        let sets: Vec<&Callable> =
            self.callables.iter().filter(|callable| callable.kind == Kind::SetFunction).collect();
        if sets.is_empty() {
            return None;
        }
        let callable = sets[rng.random_range(0..sets.len())];
        let elements: Vec<Ty> = types.usable().filter(|ty| types.info(*ty).element.is_none()).collect();
        let element = elements[rng.random_range(0..elements.len())];
        let args = settle(callable, types, element)?;
        let ty = match callable.ret {
            Pattern::Exact(ty) => ty,
            Pattern::Element => element,
            Pattern::Array => types.array_of(element)?,
        };
        Some((Chosen { callable, args }, ty))
    }

    /// The share of statements around it that succeeded, sharpened: a rare success is a rare choice.
    fn success(&self, label: &str) -> f64 {
        let (good, bad) = self.record.get(label).copied().unwrap_or_default();
        let share = f64::from(good + 2) / f64::from(good + bad + 2);
        share.powi(3).clamp(0.01, 1.0)
    }

    pub fn note(&mut self, label: &str, succeeded: bool) {
        let entry = self.record.entry(label.to_string()).or_default();
        match succeeded {
            true => entry.0 += 1,
            false => entry.1 += 1,
        }
    }

    /// Labels of all that could be chosen.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.callables.iter().map(|callable| callable.label.as_str())
    }
}

/// What a polymorphic argument stands for, so that the result is `ty`.
fn element_of(callable: &Callable, types: &Types, ty: Ty, rng: &mut StdRng) -> Option<Ty> {
    match callable.ret {
        Pattern::Element => Some(ty),
        Pattern::Array => types.info(ty).element,
        Pattern::Exact(_) => {
            let elements: Vec<Ty> =
                types.usable().filter(|ty| types.info(*ty).element.is_none() && types.info(*ty).sorts).collect();
            Some(elements[rng.random_range(0..elements.len())])
        }
    }
}

fn settle(callable: &Callable, types: &Types, element: Ty) -> Option<Vec<Ty>> {
    let arg = |pattern: &Pattern| match pattern {
        Pattern::Exact(ty) => Some(*ty),
        Pattern::Element => Some(element),
        Pattern::Array => types.array_of(element),
    };
    callable.args.iter().map(arg).collect()
}

fn left_out(name: &str) -> bool {
    LEFT_OUT.iter().any(|prefix| name.starts_with(prefix)) && !matches!(name, "set_bit" | "set_byte")
        || name.ends_with("send")
        || LEFT_OUT_WHOLE.contains(&name)
        || name.starts_with("json_to_record")
        || name.starts_with("jsonb_to_record")
}

fn oids(reply: &Reply) -> Result<HashSet<u32>> {
    (0..reply.rows.len()).map(|row| Ok(reply.text(row, 0).context("an oid")?.parse()?)).collect()
}
