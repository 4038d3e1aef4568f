//! Expressions: syntax to typed trees. Columns and subqueries become holes.

use super::binder::Binder;
use super::row::{is_row, row_of_fields};
use super::{names, position, precedence, types};
use crate::error::{Result, SqlError};
use crate::syntax::forms;
use basalt_expr::bits;
use basalt_expr::cast::CastContext;
use basalt_expr::interval::{IntervalFields, parse_interval};
use basalt_expr::resolve;
use basalt_expr::tree::{Expr, Truth};
use basalt_types::{DataType, Datum, DomainDef};
use sqlparser::ast::{self, BinaryOperator, CeilFloorKind, DateTimeField, TrimWhereField, UnaryOperator};

impl Binder<'_> {
    /// Binds one expression. Its type may still be unknown (a literal or parameter).
    pub fn expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let bound = self.deeper_expr(expr);
        let bound = bound.map_err(|error| match error.position {
            Some(_) => error,
            None => {
                let place = position::of_error(&self.ctx.sql, expr, &error);
                error.at(place)
            }
        })?;
        Ok(self.done(bound))
    }

    fn deeper_expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as Ast;
        match expr {
            Ast::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default") => {
                Err(SqlError::syntax("DEFAULT is not allowed in this context"))
            }
            Ast::Identifier(ident) => self.column(std::slice::from_ref(ident)),
            Ast::CompoundIdentifier(parts) => self.column(parts),
            Ast::Nested(inner) => self.expr(inner),
            Ast::Value(value) => self.literal(&value.value),
            Ast::TypedString(typed) => {
                let text = self.literal(&typed.value.value)?;
                self.cast_to(text, &typed.data_type, &types::resolve(self.ctx, &typed.data_type)?)
            }
            Ast::Interval(interval) => self.interval(interval),
            Ast::UnaryOp { op: UnaryOperator::Not, .. }
            | Ast::IsDistinctFrom(..)
            | Ast::IsNotDistinctFrom(..)
            | Ast::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }
                if precedence::swallows(expr) =>
            {
                let turned = precedence::distinct_inside(expr);
                self.expr(&turned)
            }
            Ast::BinaryOp { left, op, right } => self.binary(left, op, right),
            Ast::UnaryOp { op, expr } => self.unary(op, expr),
            Ast::AnyOp { left, compare_op, right, .. } => self.any_all(left, compare_op, right, false),
            Ast::AllOp { left, compare_op, right } => self.any_all(left, compare_op, right, true),
            Ast::IsTrue(inner) => self.truth(inner, Truth::True, false),
            Ast::IsNotTrue(inner) => self.truth(inner, Truth::True, true),
            Ast::IsFalse(inner) => self.truth(inner, Truth::False, false),
            Ast::IsNotFalse(inner) => self.truth(inner, Truth::False, true),
            Ast::IsUnknown(inner) => self.truth(inner, Truth::Unknown, false),
            Ast::IsNotUnknown(inner) => self.truth(inner, Truth::Unknown, true),
            Ast::IsNull(inner) => self.null_test(inner, true),
            Ast::IsNotNull(inner) => self.null_test(inner, false),
            Ast::IsDistinctFrom(left, right) => self.distinct(left, right, false),
            Ast::IsNotDistinctFrom(left, right) => self.distinct(left, right, true),
            Ast::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Ast::InSubquery { expr, subquery, negated } => self.in_subquery(expr, subquery, *negated),
            Ast::Between { expr, negated, low, high } => self.between(expr, low, high, *negated),
            Ast::Like { negated, expr, pattern, escape_char, any: false } => {
                self.like(expr, pattern, escape_char.as_ref(), if *negated { "!~~" } else { "~~" })
            }
            Ast::ILike { negated, expr, pattern, escape_char, any: false } => {
                self.like(expr, pattern, escape_char.as_ref(), if *negated { "!~~*" } else { "~~*" })
            }
            Ast::Like { negated, expr, pattern, escape_char: None, any: true } => {
                self.any_all(expr, &like_operator(*negated, ""), pattern, false)
            }
            Ast::ILike { negated, expr, pattern, escape_char: None, any: true } => {
                self.any_all(expr, &like_operator(*negated, "*"), pattern, false)
            }
            Ast::SimilarTo { negated, expr, pattern, escape_char } => {
                self.similar(expr, pattern, escape_char.as_ref(), *negated)
            }
            Ast::Cast { expr: inner, data_type, .. } => {
                let ty = types::resolve(self.ctx, data_type)
                    .map_err(|error| error.at_with(|| Some(position::of_cast(&self.ctx.sql, expr)?.1)))?;
                self.cast(inner, data_type, &ty).map_err(|error| match error.sqlstate {
                    "42846" => error.at_with(|| Some(position::of_cast(&self.ctx.sql, expr)?.0)),
                    _ => error,
                })
            }
            Ast::AtTimeZone { timestamp, time_zone } => self.named_call("timezone", &[time_zone, timestamp]),
            Ast::Extract { field, expr, .. } => {
                let value = self.expr(expr)?;
                self.call("extract", vec![Expr::text(&extract_field(field)), value])
            }
            Ast::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                self.named_call("ceil", &[expr])
            }
            Ast::Floor { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                self.named_call("floor", &[expr])
            }
            Ast::Position { expr, r#in } => self.named_call("position", &[r#in, expr]),
            Ast::Substring { expr, substring_from, substring_for, shorthand, .. } => {
                // `substr` has no forms with patterns.
                let name = if *shorthand { "substr" } else { "substring" };
                self.substring(name, expr, substring_from.as_deref(), substring_for.as_deref())
            }
            Ast::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    Some(TrimWhereField::Both) | None => "btrim",
                };
                let what = trim_what.as_deref().or(trim_characters.as_ref().and_then(|list| list.first()));
                match what {
                    Some(what) => self.named_call(name, &[expr, what]),
                    None => self.named_call(name, &[expr]),
                }
            }
            Ast::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut args: Vec<&ast::Expr> = vec![expr, overlay_what, overlay_from];
                args.extend(overlay_for.as_deref());
                self.named_call("overlay", &args)
            }
            Ast::Collate { expr: inner, collation } => {
                self.check_collation(collation)?;
                let value = self.expr(inner)?;
                let ty = value.ty();
                if !is_collatable(ty.element().unwrap_or(&ty)) {
                    let message = format!("collations are not supported by type {}", ty.base().sql_name());
                    let place = position::behind(&self.ctx.sql, inner, "collate");
                    return Err(SqlError::new("42804", message).at(place));
                }
                Ok(value)
            }
            Ast::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Ast::Function(function) => self.function(function),
            Ast::Exists { subquery, negated } => self.exists(subquery, *negated),
            Ast::Subquery(query) => self.scalar_subquery(query),
            Ast::Array(array) => self.array(&array.elem, None),
            Ast::CompoundFieldAccess { root, access_chain } => self.accesses(root, access_chain),
            Ast::Prefixed { prefix, value } => {
                let ty = types::named(self.ctx, prefix)?;
                let text = self.expr(value)?;
                self.coerce(text, &ty, CastContext::Explicit)
            }
            Ast::IsNormalized { expr, form, negated } => {
                let mut args = vec![self.expr(expr)?];
                args.extend(form.map(|form| Expr::text(&form.to_string())));
                let test = self.call("is_normalized", args)?;
                Ok(negate(test, *negated))
            }
            Ast::Tuple(items) => {
                let fields = items.iter().map(|item| self.expr(item)).collect::<Result<Vec<_>>>()?;
                Ok(row_of_fields(fields))
            }
            other => Err(SqlError::not_supported(format!("expression {other} is not supported"))),
        }
    }

    pub fn literal(&mut self, value: &ast::Value) -> Result<Expr> {
        use ast::Value;
        Ok(match value {
            Value::Number(text, _) => self.number(text)?,
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
                Expr::unknown(text)
            }
            Value::NationalStringLiteral(text) => Expr::Const { value: Datum::text(text), ty: DataType::Bpchar(None) },
            Value::DollarQuotedString(quoted) => Expr::unknown(&quoted.value),
            Value::SingleQuotedByteStringLiteral(digits) => bit_literal(bits::from_binary(digits)?),
            Value::HexStringLiteral(digits) => bit_literal(bits::from_hexadecimal(digits)?),
            Value::Boolean(value) => Expr::bool(*value),
            Value::Null => Expr::null(DataType::Unknown),
            Value::Placeholder(name) => {
                let number: Option<usize> = name.strip_prefix('$').and_then(|digits| digits.parse().ok());
                let index = number
                    .and_then(|number| number.checked_sub(1))
                    .ok_or_else(|| SqlError::new("42P02", format!("there is no parameter {name}")))?;
                Expr::Param { index, ty: self.params.get(index)? }
            }
            other => return Err(SqlError::not_supported(format!("literal {other} is not supported"))),
        })
    }

    fn number(&mut self, text: &str) -> Result<Expr> {
        if text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit()) {
            if let Ok(value) = text.parse::<i32>() {
                return Ok(Expr::int4(value));
            }
            if let Ok(value) = text.parse::<i64>() {
                return Ok(Expr::int8(value));
            }
        }
        self.coerce(Expr::unknown(text), &DataType::Numeric(None), CastContext::Explicit)
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<Expr> {
        let value = self.expr(&interval.value)?;
        let Expr::Const { value: Datum::Bytes(_), ty: DataType::Unknown } = &value else {
            return Err(SqlError::syntax("an interval literal takes a string"));
        };
        let names = match (&interval.leading_field, &interval.last_field) {
            (Some(first), Some(last)) => format!("{first} TO {last}"),
            (Some(first), None) => first.to_string(),
            _ => String::new(),
        };
        let fields = types::named_fields(&names);
        let decimals = interval.fractional_seconds_precision.or(interval.leading_precision);
        let decimals = decimals.map(|decimals| decimals.min(6) as i32);
        let value = self.interval_literal(value, fields)?;
        match (fields, decimals) {
            (None, None) => Ok(value),
            _ => self.call("interval", vec![value, Expr::int4(types::interval_modifier(fields, decimals))]),
        }
    }

    /// A literal as an interval, whose fields say what numbers without a unit are.
    fn interval_literal(&mut self, value: Expr, fields: Option<IntervalFields>) -> Result<Expr> {
        match (&value, fields) {
            (Expr::Const { value: Datum::Bytes(bytes), ty: DataType::Unknown }, Some(fields)) => {
                let text = String::from_utf8_lossy(bytes);
                let (text, number) = self.ctx.eval.numbered(&text);
                let style = self.ctx.eval.literal_style.unwrap_or_else(|| self.ctx.eval.style()).interval_style;
                let value = Datum::Fixed16(parse_interval(text, fields, style)?.to_bytes());
                if let Some(number) = number {
                    self.ctx.eval.note_literal(number, &DataType::Interval, &value);
                }
                Ok(Expr::Const { value, ty: DataType::Interval })
            }
            _ => self.coerce(value, &DataType::Interval, CastContext::Explicit),
        }
    }

    /// An explicit cast to a type as it was written, with the decimals of dates and times.
    fn cast_to(&mut self, value: Expr, syntax: &ast::DataType, ty: &DataType) -> Result<Expr> {
        let fields = match syntax {
            ast::DataType::Interval { fields: Some(fields), .. } => types::interval_fields(fields),
            _ => None,
        };
        let cast = match fields {
            Some(_) => self.interval_literal(value, fields)?,
            None => self.coerce(value, ty, CastContext::Explicit)?,
        };
        self.fitted(cast, syntax, ty)
    }

    /// A value of a date or time type, or an array of such, cut to the modifier of the type as it was written.
    fn fitted(&mut self, cast: Expr, syntax: &ast::DataType, ty: &DataType) -> Result<Expr> {
        match types::time_modifier(Some(self.ctx), syntax) {
            Some(modifier) if ty.element().is_some() => {
                let domain = DomainDef {
                    oid: 0,
                    schema: String::new(),
                    name: String::new(),
                    base: ty.clone(),
                    not_null: false,
                    checks: Vec::new(),
                    default: None,
                    time_modifier: Some(modifier),
                };
                let fitted = Expr::Cast { expr: Box::new(cast), to: DataType::Domain(domain.into()), explicit: true };
                Ok(Expr::Cast { expr: Box::new(fitted), to: ty.clone(), explicit: true })
            }
            Some(modifier) => self.call(&super::typname(ty), vec![cast, Expr::int4(modifier)]),
            None => Ok(cast),
        }
    }

    fn binary(&mut self, left: &ast::Expr, op: &BinaryOperator, right: &ast::Expr) -> Result<Expr> {
        if let Some((array, all)) = crate::syntax::quantified(right) {
            return self.any_all(left, op, array, all);
        }
        match op {
            BinaryOperator::And | BinaryOperator::Or => {
                let (place, is_and) = if *op == BinaryOperator::And { ("AND", true) } else { ("OR", false) };
                let operands = vec![self.condition(place, left)?, self.condition(place, right)?];
                return Ok(if is_and {
                    Expr::And(flatten(operands, true))
                } else {
                    Expr::Or(flatten(operands, false))
                });
            }
            BinaryOperator::Overlaps => {
                if let (ast::Expr::Tuple(left), ast::Expr::Tuple(right)) = (left, right) {
                    let args: Vec<&ast::Expr> = left.iter().chain(right).collect();
                    return self.named_call("overlaps", &args);
                }
            }
            _ => {}
        }
        if is_comparison(op)
            && let ast::Expr::BinaryOp { op: inner, .. } = left
            && is_comparison(inner)
        {
            return Err(SqlError::syntax(format!("syntax error at or near \"{op}\"")));
        }
        if let BinaryOperator::PGCustomBinaryOperator(parts) = op
            && let [schema, ..] = parts.as_slice()
            && parts.len() > 1
            && schema != "pg_catalog"
        {
            if self.ctx.namespace(schema).is_none() {
                return Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist")));
            }
            let name = parts.join(".");
            return Err(SqlError::new("42883", format!("operator does not exist: {name}")));
        }
        if let Some(prefixed) = precedence::prefix_outside(left, op, right) {
            return self.expr(&prefixed);
        }
        let symbol = symbol(op);
        if is_row(left)
            && let Some(query) = super::subquery::query_of(right)
            && let Some(row) = self.row_items(left)?
        {
            return self.row_subquery(row, &symbol, query);
        }
        if is_row(left)
            && is_row(right)
            && let (Some(left), Some(right)) = (self.row_items(left)?, self.row_items(right)?)
        {
            return self.row_comparison(left, &symbol, right);
        }
        let (a, b) = (self.expr(left)?, self.expr(right)?);
        self.check_same_collation(left, right)?;
        let is_literal = |bound: &Expr| matches!(bound, Expr::Const { ty: DataType::Unknown, .. });
        let literals = [is_literal(&a).then_some(left), is_literal(&b).then_some(right)];
        self.operator(&symbol, Some(a), b).map_err(|error| match error.sqlstate.starts_with("22") {
            true => {
                error.at(literals.into_iter().flatten().find_map(|literal| position::of_expr(&self.ctx.sql, literal)))
            }
            false => error,
        })
    }

    pub fn operator(&mut self, symbol: &str, left: Option<Expr>, right: Expr) -> Result<Expr> {
        let expr = resolve::operator(self.registry(), symbol, left, right, &self.ctx.eval)?;
        Ok(self.done(expr))
    }

    fn unary(&mut self, op: &UnaryOperator, expr: &ast::Expr) -> Result<Expr> {
        if let Some(powers) = precedence::sign_inside(op, expr) {
            return self.expr(&powers);
        }
        // A minus before a number is part of it: -2147483648 is an integer, -(-2147483648) is none.
        if *op == UnaryOperator::Minus
            && let Some((text, negative)) = signed_number(expr)
        {
            return self.number(&if negative { text.to_string() } else { format!("-{text}") });
        }
        let symbol = match op {
            UnaryOperator::Not => return Ok(Expr::Not(Box::new(self.condition("NOT", expr)?))),
            UnaryOperator::Minus => "-",
            UnaryOperator::Plus => "+",
            UnaryOperator::BitwiseNot => "~",
            UnaryOperator::PGAbs => "@",
            UnaryOperator::PGSquareRoot => "|/",
            UnaryOperator::PGCubeRoot => "||/",
            other => return Err(SqlError::not_supported(format!("operator {other} is not supported"))),
        };
        let operand = self.expr(expr)?;
        self.operator(symbol, None, operand)
    }

    fn truth(&mut self, inner: &ast::Expr, truth: Truth, negated: bool) -> Result<Expr> {
        let place = match (truth, negated) {
            (Truth::True, false) => "IS TRUE",
            (Truth::True, true) => "IS NOT TRUE",
            (Truth::False, false) => "IS FALSE",
            (Truth::False, true) => "IS NOT FALSE",
            (Truth::Unknown, false) => "IS UNKNOWN",
            (Truth::Unknown, true) => "IS NOT UNKNOWN",
        };
        Ok(Expr::BoolTest { expr: Box::new(self.condition(place, inner)?), truth, negated })
    }

    fn distinct(&mut self, left: &ast::Expr, right: &ast::Expr, negated: bool) -> Result<Expr> {
        if is_row(left)
            && is_row(right)
            && let (Some(left), Some(right)) = (self.row_items(left)?, self.row_items(right)?)
        {
            return self.row_distinct(left, right, negated);
        }
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let expr = resolve::distinct(self.registry(), left, right, negated, &self.ctx.eval)?;
        Ok(self.done(expr))
    }

    fn in_list(&mut self, expr: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Expr> {
        if is_row(expr) && list.iter().all(is_row) {
            let mut terms = Vec::with_capacity(list.len());
            let row = self.row_items(expr)?.unwrap_or_default();
            for item in list {
                let item = self.row_items(item)?.unwrap_or_default();
                terms.push(self.row_comparison(row.clone(), "=", item)?);
            }
            return Ok(negate(or(terms), negated));
        }
        let probe = self.expr(expr)?;
        let bound = list.iter().map(|item| self.expr(item)).collect::<Result<Vec<_>>>()?;
        let literal = bound.iter().position(|item| matches!(item, Expr::Const { ty: DataType::Unknown, .. }));
        let has_columns = |item: &Expr| self.uses_own_columns(item);
        let tested = resolve::in_list(self.registry(), probe, bound, &has_columns, negated, &self.ctx.eval);
        let tested = tested.map_err(|error| {
            let error = SqlError::from(error);
            match error.sqlstate.starts_with("22") {
                true => error.at(literal.and_then(|at| position::of_start(&self.ctx.sql, &list[at]))),
                false => error.at(position::behind(&self.ctx.sql, expr, if negated { "not" } else { "in" })),
            }
        })?;
        Ok(self.done(tested))
    }

    fn between(&mut self, expr: &ast::Expr, low: &ast::Expr, high: &ast::Expr, negated: bool) -> Result<Expr> {
        let value = self.expr(expr)?;
        if let Some(low) = forms::symmetric_bound(low) {
            let (low, high) = (self.expr(&low)?, self.expr(high)?);
            let ways = [(low.clone(), high.clone()), (high, low)];
            let ways = ways.map(|(low, high)| self.between_bounds(value.clone(), low, high, negated));
            let ways = ways.into_iter().collect::<Result<Vec<_>>>()?;
            return Ok(if negated { Expr::And(ways) } else { Expr::Or(ways) });
        }
        let (low, high) = (self.expr(low)?, self.expr(high)?);
        self.between_bounds(value, low, high, negated)
    }

    fn between_bounds(&mut self, value: Expr, low: Expr, high: Expr, negated: bool) -> Result<Expr> {
        let (first, second) = if negated { ("<", ">") } else { (">=", "<=") };
        let operands = vec![self.operator(first, Some(value.clone()), low)?, self.operator(second, Some(value), high)?];
        Ok(if negated { Expr::Or(operands) } else { Expr::And(operands) })
    }

    fn like(
        &mut self,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        symbol: &str,
    ) -> Result<Expr> {
        let value = self.expr(expr)?;
        let mut pattern = self.expr(pattern)?;
        if let Some(escape) = escape {
            let escape = self.literal(&escape.value)?;
            pattern = self.call("like_escape", vec![pattern, escape])?;
        }
        self.operator(symbol, Some(value), pattern)
    }

    fn similar(
        &mut self,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        negated: bool,
    ) -> Result<Expr> {
        let value = self.expr(expr)?;
        let mut args = vec![self.expr(pattern)?];
        if let Some(escape) = escape {
            args.push(self.literal(&escape.value)?);
        }
        let pattern = self.call("similar_to_escape", args)?;
        self.operator(if negated { "!~" } else { "~" }, Some(value), pattern)
    }

    fn cast(&mut self, expr: &ast::Expr, syntax: &ast::DataType, ty: &DataType) -> Result<Expr> {
        if let (ast::Expr::Array(array), Some(element)) = (expr, ty.element()) {
            let array = self.array(&array.elem, Some(element.clone()))?;
            let array = self.coerce(array, ty, CastContext::Explicit)?;
            return self.fitted(array, syntax, ty);
        }
        let value = self.expr(expr)?;
        self.cast_to(value, syntax, ty)
    }

    fn array(&mut self, elements: &[ast::Expr], element: Option<DataType>) -> Result<Expr> {
        let mut bound = Vec::with_capacity(elements.len());
        let is_bare = |part: &ast::Expr| matches!(part, ast::Expr::Array(array) if !array.named);
        let nested = elements.iter().any(is_bare);
        if nested && !elements.iter().all(is_bare) {
            let at = elements.iter().position(|part| is_bare(part) != is_bare(&elements[0])).unwrap_or(0);
            let place = position::of_start(&self.ctx.sql, &elements[at]);
            let text = if is_bare(&elements[at]) { "[".to_string() } else { elements[at].to_string() };
            return Err(SqlError::syntax(format!("syntax error at or near \"{text}\"")).at(place));
        }
        for part in elements {
            bound.push(match part {
                ast::Expr::Array(array) => self.array(&array.elem, element.clone())?,
                other => self.expr(other)?,
            });
        }
        // The parts of an array of arrays are arrays of the elements' type.
        let element = match element {
            Some(element) if nested || bound.iter().any(|part| part.ty().element().is_some()) => {
                Some(DataType::Array(Box::new(element)))
            }
            element => element,
        };
        let parts = bound.clone();
        let bound = resolve::array_literal(bound, element, &self.ctx.eval).map_err(|error| {
            let syntax: Vec<&ast::Expr> = elements.iter().collect();
            self.placed_among("ARRAY", &parts, &syntax, error.into())
        })?;
        Ok(self.done(bound))
    }

    fn substring(
        &mut self,
        name: &str,
        expr: &ast::Expr,
        from: Option<&ast::Expr>,
        length: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let mut args = vec![self.expr(expr)?];
        match (from, length) {
            (Some(from), _) => args.push(self.expr(from)?),
            (None, Some(_)) => args.push(Expr::int4(1)),
            (None, None) => {}
        }
        if let Some(length) = length {
            args.push(self.expr(length)?);
        }
        self.call(name, args)
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        else_result: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let sets = self.scope().sets;
        let operand = operand.map(|operand| self.expr(operand)).transpose()?;
        let mut branches = Vec::with_capacity(conditions.len());
        for branch in conditions {
            let condition = match &operand {
                Some(operand) => {
                    let condition = self.expr(&branch.condition)?;
                    resolve::case_condition(self.registry(), Some(operand), condition, &self.ctx.eval)?
                }
                None => self.condition("CASE/WHEN", &branch.condition)?,
            };
            branches.push((condition, self.expr(&branch.result)?));
        }
        let otherwise = else_result.map(|otherwise| self.expr(otherwise)).transpose()?;
        self.refuse_sets_since(sets, "CASE")?;
        // ELSE is looked at first.
        let results = otherwise.iter().chain(branches.iter().map(|(_, result)| result)).cloned().collect::<Vec<_>>();
        let bound = resolve::case(branches, otherwise, &self.ctx.eval).map_err(|error| {
            let syntax = else_result.into_iter().chain(conditions.iter().map(|branch| &branch.result));
            self.placed_among("CASE", &results, &syntax.collect::<Vec<_>>(), error.into())
        })?;
        Ok(self.done(bound))
    }

    /// 42P21 where both sides of an operator name collations, and not the same.
    fn check_same_collation(&self, left: &ast::Expr, right: &ast::Expr) -> Result<()> {
        let (ast::Expr::Collate { collation: a, .. }, ast::Expr::Collate { expr, collation: b }) = (left, right) else {
            return Ok(());
        };
        let (a, b) = (names::parts(a)?, names::parts(b)?);
        match (a.last(), b.last()) {
            (Some(a), Some(b)) if a != b => {
                let message = format!("collation mismatch between explicit collations \"{a}\" and \"{b}\"");
                Err(SqlError::new("42P21", message).at(position::behind(&self.ctx.sql, expr, "collate")))
            }
            _ => Ok(()),
        }
    }

    /// An error of values that have no type in common, or of a literal among them, at the value that it is about.
    pub(super) fn placed_among(&self, what: &str, bound: &[Expr], syntax: &[&ast::Expr], error: SqlError) -> SqlError {
        let at = match error.sqlstate.starts_with("22") {
            true => bound
                .iter()
                .position(|value| matches!(value, Expr::Const { value: Datum::Bytes(_), ty: DataType::Unknown })),
            false => (1..=bound.len()).find(|count| resolve::common_type(what, bound[..*count].iter()).is_err()),
        };
        let at = at.map(|at| if error.sqlstate.starts_with("22") { at } else { at - 1 });
        error.at(at.and_then(|at| position::of_start(&self.ctx.sql, syntax.get(at)?)))
    }

    fn check_collation(&self, collation: &ast::ObjectName) -> Result<()> {
        let parts = names::parts(collation)?;
        match parts.last().map(String::as_str) {
            Some("default" | "C" | "POSIX" | "ucs_basic") => Ok(()),
            _ => Err(SqlError::new(
                "42704",
                format!("collation \"{}\" for encoding \"UTF8\" does not exist", parts.join(".")),
            )
            .with_hint("Text sorts by its bytes: use the collations \"default\" or \"C\".")),
        }
    }
}

fn is_collatable(ty: &DataType) -> bool {
    matches!(
        ty.underlying(),
        DataType::Text | DataType::Varchar(_) | DataType::Bpchar(_) | DataType::Name | DataType::Unknown
    )
}

/// Operators that do not chain: `1 < 2 < 3` is a syntax error.
fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn like_operator(negated: bool, suffix: &str) -> BinaryOperator {
    BinaryOperator::Custom(format!("{}~~{suffix}", if negated { "!" } else { "" }))
}

pub(super) fn or(mut terms: Vec<Expr>) -> Expr {
    if terms.len() == 1 { terms.remove(0) } else { Expr::Or(terms) }
}

pub(super) fn negate(expr: Expr, negated: bool) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

/// A bit string as `B'…'` and `X'…'` write it.
fn bit_literal(bits: String) -> Expr {
    Expr::Const { value: Datum::text(&bits), ty: DataType::Bit(None) }
}

/// `a AND b AND c` as one node.
fn flatten(operands: Vec<Expr>, is_and: bool) -> Vec<Expr> {
    let mut out = Vec::with_capacity(operands.len());
    for operand in operands {
        match operand {
            Expr::And(inner) if is_and => out.extend(inner),
            Expr::Or(inner) if !is_and => out.extend(inner),
            other => out.push(other),
        }
    }
    out
}

/// The operator's name in the catalogue.
pub(super) fn symbol(op: &BinaryOperator) -> String {
    match op {
        BinaryOperator::PGCustomBinaryOperator(parts) => parts.last().cloned().unwrap_or_default(),
        BinaryOperator::Custom(symbol) => symbol.clone(),
        other => other.to_string(),
    }
}

fn extract_field(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(ident) => ident.value.to_lowercase(),
        other => other.to_string().to_lowercase(),
    }
}

/// The digits of a number, and whether a minus stands before it.
fn signed_number(expr: &ast::Expr) -> Option<(&str, bool)> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(text, _) => Some((text, false)),
            _ => None,
        },
        ast::Expr::Nested(inner) => signed_number(inner),
        ast::Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            signed_number(expr).map(|(text, negative)| (text, !negative))
        }
        _ => None,
    }
}
