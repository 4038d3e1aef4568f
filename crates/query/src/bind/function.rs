//! Calls: functions, aggregates, and the keywords that look like calls.

use super::binder::Binder;
use super::scope::Clause;
use super::{names, position};
use crate::error::{Result, SqlError};
use crate::syntax::forms;
use basalt_expr::cast::CastContext;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use sqlparser::ast::{self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArguments};

/// The arguments of a call, taken apart.
#[derive(Default)]
pub(super) struct CallArgs<'a> {
    pub exprs: Vec<&'a ast::Expr>,
    /// `name => value`, behind the others.
    pub named: Vec<(String, &'a ast::Expr)>,
    /// The last argument is an array of arguments.
    pub variadic: bool,
    pub star: bool,
    pub distinct: bool,
    pub order_by: &'a [ast::OrderByExpr],
}

impl Binder<'_> {
    /// A call of a function by name with arguments that are still syntax.
    pub fn named_call(&mut self, name: &str, args: &[&ast::Expr]) -> Result<Expr> {
        let args = args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        self.call(name, args)
    }

    pub fn call(&mut self, name: &str, args: Vec<Expr>) -> Result<Expr> {
        // `name(value)` may stand for `value.name`.
        if let [value] = args.as_slice()
            && let Some((at, _)) = value.ty().composite().and_then(|composite| composite.attribute_named(name))
            && self.registry().resolve_function(name, &[value.ty()]).is_err()
        {
            return Ok(basalt_expr::functions::structures::field(value.clone(), at));
        }
        let expr = resolve::call(self.registry(), name, args, &self.ctx.eval)?;
        Ok(self.done(expr))
    }

    pub fn function(&mut self, function: &ast::Function) -> Result<Expr> {
        if let Some(value) = self.pinned_value(function) {
            return value;
        }
        let bound = self.function_as_named(function);
        bound.map_err(|error| match (error.sqlstate, names::parts(&function.name).as_deref()) {
            ("42883", Ok([.., name])) => super::unbuilt::function_refused(name).unwrap_or(error),
            _ => error,
        })
    }

    fn function_as_named(&mut self, function: &ast::Function) -> Result<Expr> {
        let parts = names::parts(&function.name)?;
        let (name, schema) = match parts.as_slice() {
            [name] => (name.as_str(), None),
            [schema, name] => (name.as_str(), Some(schema.as_str())),
            [.., schema, name] => (name.as_str(), Some(schema.as_str())),
            [] => return Err(SqlError::syntax("a function name is expected")),
        };
        if let FunctionArguments::Subquery(query) = &function.args
            && name == "array"
        {
            return self.array_subquery(query);
        }
        if schema.is_none() && name == "row" {
            return self.row_constructor(function);
        }
        let args = take_args(function)?;
        if let Some(schema) = schema
            && !self.schema_has_functions(schema)
        {
            if self.ctx.namespace(schema).is_none() {
                return Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist")));
            }
            return Err(self.no_such_function(&parts.join("."), &args));
        }
        if function.over.is_some() {
            return self.window_function(name, function, &args);
        }
        if super::window::is_window_function(name) && function.within_group.is_empty() {
            let is_hypothetical = self.registry().is_aggregate(name) && !args.exprs.is_empty();
            if !is_hypothetical {
                return Err(self.no_window(name, &args));
            }
        }
        if self.registry().is_aggregate(name) {
            return self.aggregate_function(name, function, &args);
        }
        if name == "grouping" && schema.is_none() && args.exprs.is_empty() {
            return Err(SqlError::syntax("syntax error at or near \")\""));
        }
        if name == "grouping" && schema.is_none() {
            return self.grouping(function, &args);
        }
        if let Some(what) = only_for_aggregates(function, &args) {
            // A function that does not exist says so first.
            let keys = function.within_group.iter().map(|key| &key.expr);
            let bound = args.exprs.iter().copied().chain(keys).map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
            self.call(name, bound)?;
            let what = what.replace("{name}", name);
            return Err(SqlError::new("42809", format!("{what} specified, but {name} is not an aggregate function")));
        }
        if args.variadic && matches!(name, "coalesce" | "greatest" | "least" | "nullif" | "row") {
            return Err(SqlError::syntax("syntax error at or near \"variadic\""));
        }
        if schema.is_none()
            && let Some(expr) = self.keyword_call(name, &function.args, &args.exprs)?
        {
            return Ok(expr);
        }
        if !args.named.is_empty() {
            let expr = self.call_by_name(name, &args)?;
            self.check_set_returning(&expr)?;
            return Ok(expr);
        }
        let bound = args.exprs.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        let expr = match args.variadic {
            true => {
                let place = args.exprs.last().map(|last| position::of_start(&self.ctx.sql, last));
                let call = self.variadic_call(name, bound);
                call.map_err(|error| if error.sqlstate == "42804" { error.at(place.flatten()) } else { error })?
            }
            false => self.call_with_defaults(name, bound)?,
        };
        self.check_set_returning(&expr)?;
        Ok(expr)
    }

    fn schema_has_functions(&self, schema: &str) -> bool {
        matches!(schema, "pg_catalog" | "information_schema" | "basalt")
    }

    /// A window function without OVER, or none at all with these arguments.
    fn no_window(&mut self, name: &str, args: &CallArgs) -> SqlError {
        let fits = match name {
            "lag" | "lead" => (1..=3).contains(&args.exprs.len()),
            "nth_value" => args.exprs.len() == 2,
            "ntile" | "first_value" | "last_value" => args.exprs.len() == 1,
            _ => args.exprs.is_empty(),
        };
        match fits {
            true => SqlError::new("42809", format!("window function {name} requires an OVER clause")),
            false => self.no_such_function(name, args),
        }
    }

    pub(super) fn no_such_function(&mut self, name: &str, args: &CallArgs) -> SqlError {
        let mut types = Vec::with_capacity(args.exprs.len());
        for arg in &args.exprs {
            match self.expr(arg) {
                Ok(expr) => types.push(expr.ty().base().sql_name()),
                Err(error) => return error,
            }
        }
        SqlError::new("42883", format!("function {name}({}) does not exist", types.join(", "))).with_hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        )
    }

    /// Grammar that is spelled like a function.
    fn keyword_call(&mut self, name: &str, syntax: &FunctionArguments, args: &[&ast::Expr]) -> Result<Option<Expr>> {
        let without_parens = matches!(syntax, FunctionArguments::None);
        let syntax_args = args;
        let now_as = |binder: &mut Self, ty: DataType| {
            let now = binder.call("now", Vec::new())?;
            binder.coerce(now, &ty, CastContext::Explicit)
        };
        Ok(Some(match (name, args) {
            ("coalesce", [_, ..]) => {
                let sets = self.scope().sets;
                let args = args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
                self.refuse_sets_since(sets, "COALESCE")?;
                let given = args.clone();
                let expr = resolve::coalesce(args, &self.ctx.eval)
                    .map_err(|error| self.placed_among("COALESCE", &given, syntax_args, error.into()))?;
                self.done(expr)
            }
            ("greatest" | "least", [_, ..]) => {
                let args = args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
                let given = args.clone();
                let expr = resolve::extreme(args, name == "greatest", &self.ctx.eval)
                    .map_err(|error| self.placed_among("", &given, syntax_args, error.into()))?;
                self.done(expr)
            }
            ("nullif", [left, right]) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let expr = resolve::nullif(self.registry(), left, right, &self.ctx.eval)?;
                self.done(expr)
            }
            ("current_timestamp" | "transaction_timestamp", []) if without_parens || name != "current_timestamp" => {
                self.call("now", Vec::new())?
            }
            ("current_timestamp" | "localtimestamp" | "current_time" | "localtime", [precision]) => {
                let (ty, length) = match name {
                    "localtimestamp" => (DataType::Timestamp, "timestamp"),
                    "current_time" => (DataType::TimeTz, "timetz"),
                    "localtime" => (DataType::Time, "time"),
                    _ => (DataType::TimestampTz, "timestamptz"),
                };
                let (now, precision) = (now_as(self, ty)?, self.expr(precision)?);
                self.call(length, vec![now, precision])?
            }
            ("normalize", [text, form]) => {
                let form = match form {
                    ast::Expr::Identifier(ident) if is_normal_form(&ident.value) => Expr::text(&ident.value),
                    other => return Err(SqlError::syntax(format!("syntax error at or near \"{other}\""))),
                };
                let text = self.expr(text)?;
                self.call("normalize", vec![text, form])?
            }
            ("pg_collation_for", [arg]) => self.collation_for(arg)?,
            ("current_date", []) if without_parens => now_as(self, DataType::Date)?,
            ("localtimestamp", []) if without_parens => now_as(self, DataType::Timestamp)?,
            ("localtime", []) if without_parens => now_as(self, DataType::Time)?,
            ("current_time", []) if without_parens => now_as(self, DataType::TimeTz)?,
            ("user", []) if without_parens => self.call("current_user", Vec::new())?,
            ("current_role", []) => self.call("current_user", Vec::new())?,
            ("current_catalog", []) if without_parens => self.call("current_database", Vec::new())?,
            _ => return Ok(None),
        }))
    }

    /// `COLLATION FOR (…)`: null for literals, which have none of their own.
    fn collation_for(&mut self, arg: &ast::Expr) -> Result<Expr> {
        let bound = self.expr(arg)?;
        let mut inner = arg;
        while let ast::Expr::Nested(nested) = inner {
            inner = nested;
        }
        if let ast::Expr::Collate { collation, .. } = inner {
            let name = names::parts(collation)?.pop().unwrap_or_default();
            return Ok(Expr::text(&format!("\"{name}\"")));
        }
        match bound.ty().base() {
            DataType::Unknown => Ok(Expr::null(DataType::Text)),
            DataType::Text | DataType::Varchar(_) | DataType::Bpchar(_) => Ok(Expr::text("\"default\"")),
            DataType::Name => Ok(Expr::text("\"C\"")),
            other => Err(SqlError::new("42804", format!("collations are not supported by type {}", other.sql_name()))),
        }
    }

    /// 0A000 for a set where its clause takes none; in FROM, for one that is not a call of its own.
    fn check_set_returning(&mut self, expr: &Expr) -> Result<()> {
        let Expr::Call { function, args, .. } = expr else { return Ok(()) };
        if !function.returns_set {
            return Ok(());
        }
        self.scope().sets += 1;
        let is_set = |node: &Expr| matches!(node, Expr::Call { function, .. } if function.returns_set);
        match self.scope().clause {
            Clause::Select | Clause::OrderBy | Clause::GroupBy | Clause::Window => Ok(()),
            Clause::FromFunction if args.iter().any(|arg| arg.any(&mut |node| is_set(node))) => {
                Err(SqlError::not_supported("set-returning functions must appear at top level of FROM"))
            }
            Clause::FromFunction => Ok(()),
            clause => {
                Err(SqlError::not_supported(format!("set-returning functions are not allowed in {}", clause.name())))
            }
        }
    }

    /// 0A000 if a set-returning call was bound at this level since there were `before`.
    pub fn refuse_sets_since(&mut self, before: usize, place: &str) -> Result<()> {
        if self.scope().sets == before {
            return Ok(());
        }
        Err(SqlError::not_supported(format!("set-returning functions are not allowed in {place}"))
            .with_hint("You might be able to move the set-returning function into a LATERAL FROM item."))
    }
}

/// What a call has that only aggregates may have.
fn only_for_aggregates(function: &ast::Function, args: &CallArgs) -> Option<&'static str> {
    if args.star {
        Some("{name}(*)")
    } else if args.distinct {
        Some("DISTINCT")
    } else if !function.within_group.is_empty() {
        Some("WITHIN GROUP")
    } else if !args.order_by.is_empty() {
        Some("ORDER BY")
    } else {
        function.filter.as_ref().map(|_| "FILTER")
    }
}

fn is_normal_form(name: &str) -> bool {
    ["NFC", "NFD", "NFKC", "NFKD"].iter().any(|form| form.eq_ignore_ascii_case(name))
}

pub(super) fn take_args(function: &ast::Function) -> Result<CallArgs<'_>> {
    if function.null_treatment.is_some() {
        return Err(SqlError::syntax("syntax error at or near \"nulls\""));
    }
    let FunctionArguments::List(list) = &function.args else {
        return match &function.args {
            FunctionArguments::Subquery(_) => {
                Err(SqlError::syntax("a subquery as an argument needs parentheses of its own"))
            }
            _ => Ok(CallArgs::default()),
        };
    };
    let mut args =
        CallArgs { distinct: list.duplicate_treatment == Some(DuplicateTreatment::Distinct), ..CallArgs::default() };
    for arg in &list.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(_)) if !args.named.is_empty() => {
                return Err(SqlError::syntax("positional argument cannot follow named argument"));
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => args.exprs.push(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => args.star = true,
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } if name.value == forms::VARIADIC => {
                args.exprs.push(expr);
                args.variadic = true;
            }
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                args.named.push((names::fold(name), expr));
            }
            FunctionArg::ExprNamed { name: ast::Expr::Identifier(name), arg: FunctionArgExpr::Expr(expr), .. } => {
                if name.value == forms::VARIADIC {
                    args.exprs.push(expr);
                    args.variadic = true;
                } else {
                    args.named.push((names::fold(name), expr));
                }
            }
            _ => return Err(SqlError::not_supported("named arguments are not supported")),
        }
    }
    for clause in &list.clauses {
        match clause {
            ast::FunctionArgumentClause::OrderBy(keys) => args.order_by = keys,
            ast::FunctionArgumentClause::IgnoreOrRespectNulls(_) => {
                return Err(SqlError::syntax("syntax error at or near \"nulls\""));
            }
            other => return Err(SqlError::not_supported(format!("{other} is not supported in a call"))),
        }
    }
    Ok(args)
}
