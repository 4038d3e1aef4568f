//! Arguments by name, defaults, and VARIADIC (PostgreSQL manual 4.3 and 38.5.6).

use super::binder::Binder;
use super::function::CallArgs;
use super::position;
use crate::error::{Result, SqlError};
use basalt_expr::cast::CastContext;
use basalt_expr::functions::pattern_types::type_named;
use basalt_expr::functions::ranges::multirange_of_array;
use basalt_expr::functions::spread::{fixed_args, spread};
use basalt_expr::tree::Expr;
use basalt_types::DataType;

/// Built-in functions whose parameters have names; `name=default` may be left out.
const FUNCTIONS: [(&str, &str); 33] = [
    ("make_interval", "years=0 months=0 weeks=0 days=0 hours=0 mins=0 secs=0.0"),
    ("make_date", "year month day"),
    ("make_time", "hour min sec"),
    ("make_timestamp", "year month mday hour min sec"),
    ("make_timestamptz", "year month mday hour min sec timezone=current_setting('timezone')"),
    ("parse_ident", "str strict=true"),
    ("json_array_element", "from_json element_index"),
    ("json_array_element_text", "from_json element_index"),
    ("json_array_elements", "from_json"),
    ("json_array_elements_text", "from_json"),
    ("json_each", "from_json"),
    ("json_each_text", "from_json"),
    ("json_populate_record", "base from_json use_json_as_text=false"),
    ("json_populate_recordset", "base from_json use_json_as_text=false"),
    ("json_object_field", "from_json field_name"),
    ("json_object_field_text", "from_json field_name"),
    ("jsonb_array_element", "from_json element_index"),
    ("jsonb_array_element_text", "from_json element_index"),
    ("jsonb_array_elements", "from_json"),
    ("jsonb_array_elements_text", "from_json"),
    ("jsonb_each", "from_json"),
    ("jsonb_each_text", "from_json"),
    ("jsonb_object_field", "from_json field_name"),
    ("jsonb_object_field_text", "from_json field_name"),
    ("jsonb_insert", "jsonb_in path replacement insert_after=false"),
    ("jsonb_set", "jsonb_in path replacement create_if_missing=true"),
    ("jsonb_set_lax", "jsonb_in path replacement create_if_missing=true null_value_treatment='use_json_null'"),
    ("jsonb_path_exists", "target path vars='{}' silent=false"),
    ("jsonb_path_match", "target path vars='{}' silent=false"),
    ("jsonb_path_query", "target path vars='{}' silent=false"),
    ("jsonb_path_query_array", "target path vars='{}' silent=false"),
    ("jsonb_path_query_first", "target path vars='{}' silent=false"),
    ("jsonb_path_query_tz", "target path vars='{}' silent=false"),
];

/// Name and default of each parameter.
fn parameters(function: &str) -> Option<Vec<(&'static str, Option<&'static str>)>> {
    let (_, list) = FUNCTIONS.iter().find(|(name, _)| *name == function)?;
    let parameter = |text: &'static str| match text.split_once('=') {
        Some((name, default)) => (name, Some(default)),
        None => (text, None),
    };
    Some(list.split(' ').map(parameter).collect())
}

impl Binder<'_> {
    /// A call that names some of its arguments.
    pub(super) fn call_by_name(&mut self, name: &str, args: &CallArgs) -> Result<Expr> {
        let mut bound = Vec::with_capacity(args.exprs.len() + args.named.len());
        for arg in &args.exprs {
            bound.push(self.expr(arg)?);
        }
        let mut named: Vec<(&str, Expr)> = Vec::with_capacity(args.named.len());
        for (given, arg) in &args.named {
            if named.iter().any(|(known, _)| known == given) {
                let message = format!("argument name \"{given}\" used more than once");
                return Err(SqlError::syntax(message).at(position::of_expr(&self.ctx.sql, arg)));
            }
            named.push((given, self.expr(arg)?));
        }
        let Some(parameters) = parameters(name) else { return Err(no_such(name, &bound, &named)) };
        let fits = named.iter().all(|(given, _)| {
            parameters.iter().position(|(known, _)| known == given).is_some_and(|at| at >= bound.len())
        });
        if !fits || bound.len() > parameters.len() {
            return Err(no_such(name, &bound, &named));
        }
        let mut all = bound.clone();
        for (parameter, default) in &parameters[bound.len()..] {
            all.push(match (named.iter().find(|(given, _)| given == parameter), default) {
                (Some((_, value)), _) => value.clone(),
                (None, Some(default)) => self.expr(&super::parse_expr(default)?)?,
                (None, None) => return Err(no_such(name, &bound, &named)),
            });
        }
        self.call(name, all)
    }

    /// A call by position, whose last arguments may be left out where they have defaults.
    pub(super) fn call_with_defaults(&mut self, name: &str, bound: Vec<Expr>) -> Result<Expr> {
        let Some(parameters) = parameters(name).filter(|parameters| parameters.len() > bound.len()) else {
            return self.call(name, bound);
        };
        let error = match self.call(name, bound.clone()) {
            Ok(expr) => return Ok(expr),
            Err(error) => error,
        };
        let defaults: Option<Vec<&str>> = parameters[bound.len()..].iter().map(|(_, default)| *default).collect();
        let Some(defaults) = defaults.filter(|_| error.sqlstate == "42883") else { return Err(error) };
        let mut all = bound;
        for default in defaults {
            all.push(self.expr(&super::parse_expr(default)?)?);
        }
        self.call(name, all).map_err(|_| error)
    }

    /// `f(a, VARIADIC array)`: the array's elements are the arguments.
    pub(super) fn variadic_call(&mut self, name: &str, mut bound: Vec<Expr>) -> Result<Expr> {
        let Some(last) = bound.pop() else { return Err(SqlError::syntax("VARIADIC takes an array")) };
        if let (Some(DataType::Multirange(kind)), []) = (type_named(name), bound.as_slice()) {
            let ranges = DataType::Array(Box::new(DataType::Range(kind)));
            let array = self.coerce(last, &ranges, CastContext::Implicit)?;
            return Ok(multirange_of_array(array, kind));
        }
        // A function that takes any arguments has the array in the place of all of them.
        let before = match name {
            name if matches!(type_named(name), Some(DataType::Multirange(_))) => 0,
            "json_extract_path"
            | "json_extract_path_text"
            | "jsonb_extract_path"
            | "jsonb_extract_path_text"
            | "jsonb_delete" => 1,
            name => fixed_args(name).unwrap_or(usize::MAX),
        };
        if bound.len() != before {
            bound.push(last);
            return Err(no_such(name, &bound, &[]));
        }
        let json = if name.starts_with("jsonb") { DataType::Jsonb } else { DataType::Json };
        if let ([value], true) = (bound.as_mut_slice(), name.contains("_path") || name == "jsonb_delete") {
            let taken = std::mem::replace(value, Expr::bool(false));
            *value = self.coerce(taken, &json, CastContext::Implicit)?;
        }
        if fixed_args(name).is_some() {
            if last.ty().underlying().element().is_none() {
                return Err(SqlError::new("42804", "VARIADIC argument must be an array"));
            }
            if let [value] = bound.as_mut_slice() {
                let taken = std::mem::replace(value, Expr::bool(false));
                *value = self.coerce(taken, &DataType::Text, CastContext::Implicit)?;
            }
            let plain = last.ty().underlying().clone();
            bound.push(self.coerce(last, &plain, CastContext::Implicit)?);
            let call = spread(name, bound).ok_or_else(|| SqlError::internal("a VARIADIC function is missing"))?;
            return Ok(self.done(call));
        }
        if let Expr::ArrayLiteral { elements, .. } = last {
            return self.call(name, bound.into_iter().chain(elements).collect());
        }
        if !matches!(last.ty(), DataType::Array(_) | DataType::Unknown) {
            return Err(SqlError::new("42804", "VARIADIC argument must be an array"));
        }
        match (name, bound.as_slice()) {
            ("json_extract_path" | "jsonb_extract_path", [value]) => self.operator("#>", Some(value.clone()), last),
            ("json_extract_path_text" | "jsonb_extract_path_text", [value]) => {
                self.operator("#>>", Some(value.clone()), last)
            }
            ("jsonb_delete", [value]) => self.operator("-", Some(value.clone()), last),
            _ => Err(no_such(name, &[bound, vec![last]].concat(), &[])),
        }
    }
}

fn no_such(name: &str, positional: &[Expr], named: &[(&str, Expr)]) -> SqlError {
    let shown = |expr: &Expr| expr.ty().base().sql_name().to_string();
    let named = named.iter().map(|(name, value)| format!("{name} => {}", shown(value)));
    let types: Vec<String> = positional.iter().map(shown).chain(named).collect();
    SqlError::new("42883", format!("function {name}({}) does not exist", types.join(", ")))
        .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}
