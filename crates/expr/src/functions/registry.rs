//! Where functions, operators and aggregates are found by name.

use super::{Function, Kernel, TypePattern, Volatility};
use crate::aggregates::{self, Aggregate};
use ahash::{AHashMap, AHashSet};
use basalt_types::DataType;
use std::sync::LazyLock;

/// One row of `pg_operator`: a symbol over a function.
pub struct Operator {
    pub oid: u32,
    pub symbol: String,
    /// `None` for prefix operators.
    pub left: Option<TypePattern>,
    pub right: TypePattern,
    pub function: &'static Function,
}

/// A set of functions and operators. Starts as the built-in ones; a crate above may add its own before it
/// shares the registry. Entries live as long as the process, so that plans can point at them.
#[derive(Clone)]
pub struct Registry {
    functions: AHashMap<String, Vec<&'static Function>>,
    operators: AHashMap<String, Vec<&'static Operator>>,
    aggregates: AHashMap<String, Vec<&'static Aggregate>>,
}

static BUILTIN: LazyLock<Registry> = LazyLock::new(Registry::load);

impl Registry {
    /// What this crate implements.
    pub fn builtin() -> &'static Registry {
        &BUILTIN
    }

    /// Adds a function. It stays for the life of the process: register at start, not per session.
    pub fn register(&mut self, function: Function) -> &'static Function {
        let function: &'static Function = Box::leak(Box::new(function));
        self.functions.entry(function.name.clone()).or_default().push(function);
        function
    }

    /// Adds the functions of PostgreSQL's catalog that `bind` has code for, by name and argument type names,
    /// and that are not there yet. As [`Registry::register`]: for start, not per session.
    pub fn bind_facts(&mut self, bind: impl Fn(&str, &str) -> Option<Kernel>) {
        let known: AHashSet<u32> = self.all_functions().map(|function| function.oid).collect();
        for line in include_str!("facts.txt").lines() {
            if let Some(function) = read_function(line, &bind)
                && !known.contains(&function.oid)
            {
                self.register(function);
            }
        }
    }

    /// All functions of a name.
    pub fn functions(&self, name: &str) -> &[&'static Function] {
        self.functions.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn operators(&self, symbol: &str) -> &[&'static Operator] {
        self.operators.get(symbol).map_or(&[], Vec::as_slice)
    }

    pub fn aggregates(&self, name: &str) -> &[&'static Aggregate] {
        self.aggregates.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn is_aggregate(&self, name: &str) -> bool {
        self.aggregates.contains_key(name)
    }

    /// For catalog views: everything there is, in no order.
    pub fn all_functions(&self) -> impl Iterator<Item = &'static Function> + '_ {
        self.functions.values().flatten().copied()
    }

    pub fn all_operators(&self) -> impl Iterator<Item = &'static Operator> + '_ {
        self.operators.values().flatten().copied()
    }

    pub fn all_aggregates(&self) -> impl Iterator<Item = &'static Aggregate> + '_ {
        self.aggregates.values().flatten().copied()
    }

    fn load() -> Registry {
        let mut registry =
            Registry { functions: AHashMap::new(), operators: AHashMap::new(), aggregates: AHashMap::new() };
        for line in include_str!("facts.txt").lines() {
            if let Some(function) = read_function(line, &super::bind) {
                registry.register(function);
            }
        }
        for function in aggregates::json::functions() {
            registry.register(function);
        }
        for line in include_str!("../operators/facts.txt").lines() {
            if let Some(operator) = read_operator(line) {
                let operator: &'static Operator = Box::leak(Box::new(operator));
                registry.operators.entry(operator.symbol.clone()).or_default().push(operator);
            }
        }
        for line in include_str!("../aggregates/facts.txt").lines() {
            if let Some(aggregate) = aggregates::read_aggregate(line) {
                let aggregate: &'static Aggregate = Box::leak(Box::new(aggregate));
                registry.aggregates.entry(aggregate.name.clone()).or_default().push(aggregate);
            }
        }
        registry
    }
}

/// `oid name arg,arg|- [setof:]result flags`; flags: volatility `i s v`, `s` strict or `n`, `v` variadic,
/// number of defaulted arguments.
fn read_function(line: &str, bind: &dyn Fn(&str, &str) -> Option<Kernel>) -> Option<Function> {
    let mut words = line.split(' ');
    let (oid, name, args, ret, flags) = (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let kernel = bind(name, args)?;
    Some(Function {
        oid: oid.parse().ok()?,
        name: name.to_string(),
        args: read_args(args)?,
        variadic: flags[2..].starts_with('v'),
        optional: flags.trim_start_matches(char::is_alphabetic).parse().ok()?,
        returns_set: ret.starts_with("setof:"),
        ret: TypePattern::parse(ret.trim_start_matches("setof:"))?,
        strict: flags[1..].starts_with('s'),
        volatility: read_volatility(flags)?,
        kernel,
    })
}

/// `-`, or type names with commas between.
pub(crate) fn read_args(args: &str) -> Option<Vec<TypePattern>> {
    if args == "-" {
        return Some(Vec::new());
    }
    args.split(',').map(TypePattern::parse).collect()
}

fn read_volatility(flags: &str) -> Option<Volatility> {
    Some(match flags.as_bytes().first()? {
        b'i' => Volatility::Immutable,
        b's' => Volatility::Stable,
        b'v' => Volatility::Volatile,
        _ => return None,
    })
}

/// `oid symbol left|- right result function volatility`.
fn read_operator(line: &str) -> Option<Operator> {
    let mut words = line.split(' ');
    let (oid, symbol, left, right) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (ret, name, volatility) = (words.next()?, words.next()?, words.next()?);
    let (kernel, strict) = crate::operators::bind(symbol, name, left, right)?;
    let left = if left == "-" { None } else { Some(TypePattern::parse(left)?) };
    let right = TypePattern::parse(right)?;
    let function = Function {
        oid: 0,
        name: name.to_string(),
        args: left.iter().cloned().chain([right.clone()]).collect(),
        variadic: false,
        optional: 0,
        ret: TypePattern::parse(ret)?,
        returns_set: false,
        strict,
        volatility: read_volatility(volatility)?,
        kernel,
    };
    let function: &'static Function = Box::leak(Box::new(function));
    Some(Operator { oid: oid.parse().ok()?, symbol: symbol.to_string(), left, right, function })
}

impl Function {
    /// A function of another crate, with PostgreSQL's usual properties: strict, stable.
    pub fn custom(
        name: &str,
        args: &[DataType],
        ret: DataType,
        call: impl Fn(&[basalt_types::Datum], &super::CallInfo) -> crate::Result<basalt_types::Datum>
        + Send
        + Sync
        + 'static,
    ) -> Function {
        Function {
            oid: 0,
            name: name.to_string(),
            args: args.iter().cloned().map(TypePattern::Exact).collect(),
            variadic: false,
            optional: 0,
            ret: TypePattern::Exact(ret),
            returns_set: false,
            strict: true,
            volatility: Volatility::Stable,
            kernel: Kernel::Custom(std::sync::Arc::new(call)),
        }
    }
}
