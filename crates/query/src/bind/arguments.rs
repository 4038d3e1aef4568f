//! Arguments by name, and arrays in the place of variadic arguments (manual 4.3).

use super::binder::Binder;
use super::function::CallArgs;
use super::names;
use crate::error::{Result, SqlError};
use basalt_expr::functions::parameters::{Parameter, parameters};
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use sqlparser::ast::{FunctionArg, FunctionArgExpr, Ident};

/// The name under which the parser finds the argument behind VARIADIC.
const VARIADIC: &str = "\u{1}variadic";

/// How an argument is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Given {
    InOrder,
    ByName(String),
    Variadic,
}

/// An argument that is not given in order.
pub(super) fn named(arg: &FunctionArg) -> Option<(Given, &FunctionArgExpr)> {
    let given = |name: &Ident| match name.value.as_str() {
        VARIADIC => Given::Variadic,
        _ => Given::ByName(names::fold(name)),
    };
    match arg {
        FunctionArg::Named { name, arg, .. } => Some((given(name), arg)),
        _ => None,
    }
}

impl Binder<'_> {
    /// A call of a function with arguments in order, by name, or with VARIADIC. 42601 for an order of arguments
    /// that cannot be, 42883 if no function has such parameters.
    pub(super) fn call_given(&mut self, name: &str, args: &CallArgs) -> Result<Expr> {
        let bound = args.exprs.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        let Some(first) = args.given.iter().position(|given| *given != Given::InOrder) else {
            return self.call(name, bound);
        };
        if args.given[first] == Given::Variadic {
            if first + 1 < bound.len() {
                return Err(SqlError::syntax("VARIADIC argument must be the last one"));
            }
            let expr = resolve::call_variadic(self.registry(), name, bound, &self.ctx.eval)?;
            return Ok(self.done(expr));
        }
        let mut given = Vec::with_capacity(bound.len() - first);
        for how in &args.given[first..] {
            match how {
                Given::ByName(name) if given.contains(&name.as_str()) => {
                    return Err(SqlError::syntax(format!("argument name \"{name}\" used more than once")));
                }
                Given::ByName(name) => given.push(name.as_str()),
                Given::InOrder => {
                    return Err(SqlError::syntax("positional argument cannot follow named argument"));
                }
                Given::Variadic => return Err(SqlError::not_supported("VARIADIC beside named arguments")),
            }
        }
        let functions = self.registry().functions(name);
        let places = functions.iter().find_map(|function| placed(parameters(function.oid)?, first, &given));
        let Some(places) = places else {
            let types = bound.iter().enumerate().map(|(at, arg)| {
                let ty = arg.ty().base().sql_name();
                at.checked_sub(first).map_or(ty.clone(), |at| format!("{} => {ty}", given[at]))
            });
            let message = format!("function {name}({}) does not exist", types.collect::<Vec<_>>().join(", "));
            return Err(SqlError::new("42883", message).with_hint(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            ));
        };
        let mut bound: Vec<Option<Expr>> = bound.into_iter().map(Some).collect();
        let in_order = places
            .into_iter()
            .map(|place| match place {
                Place::Given(at) => bound[at].take().unwrap_or_else(|| Expr::unknown("")),
                Place::Default(text) => Expr::unknown(text),
            })
            .collect();
        self.call(name, in_order)
    }
}

/// Where the value of a parameter comes from.
enum Place {
    /// The argument of this number.
    Given(usize),
    Default(&'static str),
}

/// The parameters up to the last one given; `None` if these names are not among them, or one has no value.
fn placed(parameters: &'static [Parameter], in_order: usize, names: &[&str]) -> Option<Vec<Place>> {
    let mut given: Vec<Option<usize>> = (0..parameters.len()).map(|at| (at < in_order).then_some(at)).collect();
    if in_order > parameters.len() {
        return None;
    }
    for (at, name) in names.iter().enumerate() {
        let slot = parameters.iter().position(|parameter| parameter.name == *name)?;
        if given[slot].replace(in_order + at).is_some() {
            return None;
        }
    }
    let count = given.iter().rposition(Option::is_some)? + 1;
    let places = given[..count].iter().zip(parameters);
    places.map(|(given, parameter)| given.map(Place::Given).or_else(|| parameter.default.map(Place::Default))).collect()
}
