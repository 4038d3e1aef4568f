//! Bound expressions as SQL, as PostgreSQL writes them (`ruleutils`): every cast that decides a type shows, and
//! every operation stands in parentheses, unless the text is to be pretty.
//!
//! What binding has turned into something else than was written (`CASE x WHEN …`, `position(a IN b)`) shows as what
//! it became; what has no text of its own gives `None`.

use super::names::{self, Scope};
use super::{SystemContext, definitions, functions};
use crate::session::names::quote_identifier;
use basalt_expr::functions::Function;
use basalt_expr::functions::structures;
use basalt_expr::tree::{Expr, Truth};
use basalt_types::{DataType, Datum};
use std::collections::HashMap;
use std::sync::LazyLock;

const INDENT: usize = 4;

/// Operators by the address of their function.
static SYMBOLS: LazyLock<HashMap<usize, (&'static str, bool)>> = LazyLock::new(|| {
    let operators = functions::registry().all_operators();
    operators
        .map(|operator| (address(operator.function), (operator.symbol.as_str(), operator.left.is_none())))
        .collect()
});

fn address(function: &'static Function) -> usize {
    std::ptr::from_ref(function).addr()
}

/// Names that are functions' and keywords at once, and are quoted in calls.
const QUOTED: [&str; 12] = [
    "bit",
    "char",
    "interval",
    "left",
    "normalize",
    "overlay",
    "position",
    "right",
    "substring",
    "time",
    "timestamp",
    "values",
];

/// What an expression is an operand of, which decides whether a pretty text keeps its parentheses.
#[derive(Clone, Copy)]
enum Parent<'a> {
    /// Nothing, or something with parentheses or commas of its own.
    Open,
    Operator {
        symbol: &'a str,
        is_first: bool,
    },
    Not,
    And,
    Or,
    /// A cast or a test.
    Tight,
}

pub(super) struct Deparser<'a> {
    pub system: &'a SystemContext,
    /// Columns by their places in a row, as they are written.
    pub columns: &'a [String],
    /// The text that was bound: tells `CURRENT_DATE` and its kin from calls.
    pub source: &'a str,
    pub pretty: bool,
}

/// An expression for readers: without the parentheses and casts that go without saying. `columns`: what its columns are
/// called.
pub(crate) fn expression_text(system: &SystemContext, columns: &[String], expr: &Expr) -> Option<String> {
    Deparser { system, columns, source: "", pretty: true }.text(expr)
}

impl Deparser<'_> {
    /// `None` for what has no text.
    pub fn text(&self, expr: &Expr) -> Option<String> {
        self.node(expr, false, 0)
    }

    /// An operand: in parentheses of its own where a pretty text needs them. `implicit`: casts that were not written
    /// show too.
    fn operand(&self, expr: &Expr, parent: Parent, implicit: bool, indent: usize) -> Option<String> {
        let text = self.node(expr, implicit, indent)?;
        Some(if self.pretty && !self.is_simple(expr, parent, implicit) { format!("({text})") } else { text })
    }

    fn list(&self, exprs: &[Expr], indent: usize) -> Option<String> {
        let texts: Option<Vec<String>> = exprs.iter().map(|expr| self.node(expr, true, indent)).collect();
        Some(texts?.join(", "))
    }

    /// An operation: in parentheses unless the text is pretty.
    fn wrapped(&self, text: String) -> String {
        if self.pretty { text } else { format!("({text})") }
    }

    fn node(&self, expr: &Expr, implicit: bool, indent: usize) -> Option<String> {
        Some(match expr {
            Expr::Column { index, .. } => self.columns.get(*index)?.clone(),
            Expr::Const { value, ty } => self.constant(value, ty, true)?,
            Expr::Cast { expr, to, explicit } => {
                let from = expr.ty();
                if !explicit && (!implicit || from.base() == to.base()) {
                    return self.operand(expr, Parent::Tight, implicit, indent);
                }
                if let Some(word) = self.keyword(expr, Some(to)) {
                    return Some(word.to_string());
                }
                let to = if *explicit { to.clone() } else { to.base() };
                self.cast(expr, &to, indent)?
            }
            Expr::And(args) => self.logic(args, " AND ", Parent::And, indent)?,
            Expr::Or(args) => self.logic(args, " OR ", Parent::Or, indent)?,
            Expr::Not(inner) => self.wrapped(format!("NOT {}", self.operand(inner, Parent::Not, false, indent)?)),
            Expr::IsNull(inner) => self.test(inner, "IS NULL", indent)?,
            Expr::IsNotNull(inner) => self.test(inner, "IS NOT NULL", indent)?,
            Expr::BoolTest { expr, truth, negated } => {
                let word = match truth {
                    Truth::True => "TRUE",
                    Truth::False => "FALSE",
                    Truth::Unknown => "UNKNOWN",
                };
                self.test(expr, &format!("IS {}{word}", if *negated { "NOT " } else { "" }), indent)?
            }
            Expr::IsDistinct { left, right, negated, .. } => {
                let left = self.operand(left, Parent::Tight, true, indent)?;
                let right = self.operand(right, Parent::Tight, true, indent)?;
                let text = self.wrapped(format!("{left} IS DISTINCT FROM {right}"));
                match (negated, self.pretty) {
                    (false, _) => text,
                    (true, true) => format!("NOT ({text})"),
                    (true, false) => format!("(NOT {text})"),
                }
            }
            Expr::NullIf { left, right, .. } => {
                let left = self.node(left, true, indent)?;
                format!("NULLIF({left}, {})", self.node(right, true, indent)?)
            }
            Expr::Coalesce { args, .. } => format!("COALESCE({})", self.list(args, indent)?),
            Expr::Extreme { args, greatest, .. } => {
                format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, self.list(args, indent)?)
            }
            Expr::Case { branches, otherwise, .. } => {
                let inner = indent + INDENT;
                let line = |indent: usize| format!("\n{}", " ".repeat(indent));
                let mut text = format!("{}CASE", line(indent));
                for (condition, value) in branches {
                    let condition = self.node(condition, false, inner)?;
                    let value = self.node(value, true, inner)?;
                    text.push_str(&format!("{}WHEN {condition} THEN {value}", line(inner)));
                }
                let otherwise = match otherwise {
                    Some(otherwise) => self.node(otherwise, true, inner)?,
                    None => self.constant(&Datum::Null, &expr.ty(), true)?,
                };
                text.push_str(&format!("{}ELSE {otherwise}{}END", line(inner), line(indent)));
                text
            }
            Expr::InList { expr, list, equal, negated } => self.in_list(expr, list, equal, *negated, indent)?,
            Expr::ArrayLiteral { elements, ty } if elements.is_empty() => format!("ARRAY[]::{}", self.type_name(ty)?),
            Expr::ArrayLiteral { elements, .. } => format!("ARRAY[{}]", self.list(elements, indent)?),
            Expr::AnyAll { left, function, array, all } => {
                let (symbol, _) = SYMBOLS.get(&address(function))?;
                let left = self.operand(left, Parent::Tight, true, indent)?;
                let array = self.operand(array, Parent::Open, true, indent)?;
                self.wrapped(format!("{left} {symbol} {} ({array})", if *all { "ALL" } else { "ANY" }))
            }
            Expr::Call { function, args, .. } => self.call(function, args, expr, indent)?,
            Expr::Param { .. } | Expr::Hole { .. } => return None,
        })
    }

    fn logic(&self, args: &[Expr], word: &str, own: Parent, indent: usize) -> Option<String> {
        let args: Option<Vec<String>> = args.iter().map(|arg| self.operand(arg, own, false, indent)).collect();
        Some(self.wrapped(args?.join(word)))
    }

    fn test(&self, inner: &Expr, words: &str, indent: usize) -> Option<String> {
        Some(self.wrapped(format!("{} {words}", self.operand(inner, Parent::Tight, true, indent)?)))
    }

    fn cast(&self, inner: &Expr, to: &DataType, indent: usize) -> Option<String> {
        let name = self.type_name(to)?;
        let text = match inner {
            Expr::Const { value, ty } if ty.base() == to.base() => self.constant(value, ty, false)?,
            inner => {
                let inner = self.operand(inner, Parent::Tight, false, indent)?;
                if self.pretty { inner } else { format!("({inner})") }
            }
        };
        Some(format!("{text}::{name}"))
    }

    /// `IN` is a comparison with the elements of an array.
    fn in_list(
        &self,
        expr: &Expr,
        list: &[Expr],
        equal: &'static Function,
        negated: bool,
        indent: usize,
    ) -> Option<String> {
        let is_plain = |item: &Expr| !item.any(&mut |node| matches!(node, Expr::Column { .. }));
        if list.len() < 2 || !list.iter().all(is_plain) {
            return None;
        }
        let (symbol, _) = SYMBOLS.get(&address(equal))?;
        let left = self.operand(expr, Parent::Tight, true, indent)?;
        // Literals beside a varchar are of its type before they are compared as text.
        let from = match expr {
            Expr::Cast { expr, explicit: false, .. } => expr.ty(),
            other => other.ty(),
        };
        let varchar = matches!(from, DataType::Varchar(_));
        let array = match varchar && list.iter().all(|item| matches!(item, Expr::Const { ty: DataType::Text, .. })) {
            true => {
                let element = |item: &Expr| match item {
                    Expr::Const { value, .. } => self.constant(value, &DataType::Varchar(None), true),
                    _ => None,
                };
                let elements: Option<Vec<String>> = list.iter().map(element).collect();
                let array = format!("ARRAY[{}]", elements?.join(", "));
                if self.pretty { format!("{array}::text[]") } else { format!("({array})::text[]") }
            }
            false => format!("ARRAY[{}]", self.list(list, indent)?),
        };
        Some(self.wrapped(match negated {
            false => format!("{left} {symbol} ANY ({array})"),
            true => format!("{left} <> ALL ({array})"),
        }))
    }

    fn call(&self, function: &'static Function, args: &[Expr], whole: &Expr, indent: usize) -> Option<String> {
        if let Some((symbol, is_prefix)) = SYMBOLS.get(&address(function)) {
            let operand = |arg, is_first| self.operand(arg, Parent::Operator { symbol, is_first }, true, indent);
            return Some(match args {
                // The minus of a number is part of it.
                [Expr::Const { value: Datum::I32(value), .. }] if *symbol == "-" => {
                    format!("'{}'::integer", -i64::from(*value))
                }
                [arg] if *is_prefix => self.wrapped(format!("{symbol} {}", operand(arg, false)?)),
                [left, right] => self.wrapped(format!("{} {symbol} {}", operand(left, true)?, operand(right, false)?)),
                _ => return None,
            });
        }
        if let Some(fields) = structures::row_fields(whole) {
            return Some(format!("ROW({})", self.list(fields, indent)?));
        }
        if let Some(word) = self.keyword(whole, None) {
            return Some(word.to_string());
        }
        match (function.name.as_str(), args) {
            ("array_subscript" | "jsonb_subscript", [array, subscripts @ ..]) if function.oid == 0 => {
                let array_text = self.node(array, true, indent)?;
                let mut text =
                    if matches!(array, Expr::Column { .. }) { array_text } else { format!("({array_text})") };
                for subscript in subscripts {
                    text.push_str(&format!("[{}]", self.node(subscript, false, indent)?));
                }
                Some(text)
            }
            ("row_field", [row, Expr::Const { value: Datum::I32(at), .. }]) if function.oid == 0 => {
                let name = &row.ty().composite()?.attributes.get(*at as usize)?.name.clone();
                Some(format!("({}).{}", self.node(row, true, indent)?, quote_identifier(name)))
            }
            _ if function.oid == 0 => None,
            ("extract", [Expr::Const { value: Datum::Bytes(field), .. }, source]) => {
                let field = String::from_utf8_lossy(field);
                Some(format!("EXTRACT({field} FROM {})", self.node(source, true, indent)?))
            }
            ("timezone", [zone, moment]) => {
                let zone = self.operand(zone, Parent::Tight, true, indent)?;
                Some(format!("({} AT TIME ZONE {zone})", self.operand(moment, Parent::Tight, true, indent)?))
            }
            ("timestamp" | "timestamptz" | "time" | "timetz" | "interval", [_, Expr::Const { .. }]) => None,
            ("position", [text, part]) => {
                let (text, part) = (self.node(text, true, indent)?, self.node(part, true, indent)?);
                Some(format!("POSITION(({part}) IN ({text}))"))
            }
            (name, args) => {
                let name = if QUOTED.contains(&name) { format!("\"{name}\"") } else { quote_identifier(name) };
                Some(format!("{name}({})", self.list(args, indent)?))
            }
        }
    }

    /// A value that a keyword stands for, if the text had the keyword.
    fn keyword(&self, expr: &Expr, to: Option<&DataType>) -> Option<&'static str> {
        let Expr::Call { function, args, .. } = expr else { return None };
        let word = match (function.name.as_str(), to) {
            _ if !args.is_empty() => return None,
            ("now", None) => "CURRENT_TIMESTAMP",
            ("now", Some(DataType::Date)) => "CURRENT_DATE",
            ("now", Some(DataType::Timestamp)) => "LOCALTIMESTAMP",
            ("now", Some(DataType::Time)) => "LOCALTIME",
            ("now", Some(DataType::TimeTz)) => "CURRENT_TIME",
            ("current_user", None) => "CURRENT_USER",
            ("session_user", None) => "SESSION_USER",
            _ => return None,
        };
        self.source.to_ascii_uppercase().contains(word).then_some(word)
    }

    fn type_name(&self, ty: &DataType) -> Option<String> {
        let inner = ty.element().filter(|_| matches!(ty, DataType::Array(_))).unwrap_or(ty);
        match inner {
            DataType::Composite(_) | DataType::Enum(_) | DataType::Domain(_) => {
                names::format_type(Scope::of(self.system), ty.oid(), None)
            }
            DataType::Bpchar(None) => Some(ty.sql_name().replace("character", "bpchar")),
            DataType::Bit(None) => Some(ty.sql_name().replace("bit", "\"bit\"")),
            _ => Some(ty.sql_name()),
        }
    }

    /// A constant, with its type unless that goes without saying or `label` is false.
    fn constant(&self, value: &Datum, ty: &DataType, label: bool) -> Option<String> {
        let base = ty.base();
        if value.is_null() {
            let show = label && *ty != DataType::Unknown;
            return Some(if show { format!("NULL::{}", self.type_name(&base)?) } else { "NULL".to_string() });
        }
        let text = self.value_text(value, ty)?;
        let looks_like_float = text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['e', 'E', '.']);
        // An integer that was written as one, beside numerics.
        let is_integer =
            matches!(ty, DataType::Numeric(Some((_, 0)))) && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_integer && label {
            return Some(if self.pretty { format!("{text}::numeric") } else { format!("({text})::numeric") });
        }
        let (text, needs_label) = match base {
            DataType::Int4 if !text.starts_with('-') => (text, false),
            DataType::Numeric(_) if looks_like_float => (text, false),
            DataType::Bool => ((if text == "t" { "true" } else { "false" }).to_string(), false),
            DataType::Unknown => (quoted(&text), false),
            _ => (quoted(&text), true),
        };
        Some(if label && needs_label { format!("{text}::{}", self.type_name(&base)?) } else { text })
    }

    fn value_text(&self, value: &Datum, ty: &DataType) -> Option<String> {
        if let (DataType::Regclass | DataType::Regtype | DataType::Regnamespace, Datum::I64(oid)) = (ty, value) {
            return names::name_of(Scope::of(self.system), ty, *oid as u32);
        }
        let mut out = Vec::new();
        basalt_expr::io::text::format(ty, value, &definitions::eval(self.system), &mut out).ok()?;
        let text = String::from_utf8(out).ok()?;
        Some(if matches!(ty, DataType::Bpchar(_)) { text.trim_end_matches(' ').to_string() } else { text })
    }

    /// Whether an operand needs no parentheses in a pretty text.
    fn is_simple(&self, expr: &Expr, parent: Parent, implicit: bool) -> bool {
        match expr {
            Expr::Cast { expr, explicit, .. } if !explicit && !implicit => self.is_simple(expr, parent, implicit),
            Expr::Call { function, .. } => match SYMBOLS.get(&address(function)) {
                Some((symbol, _)) => match parent {
                    Parent::Operator { symbol: outer, is_first } => binds_tighter(symbol, outer, is_first),
                    Parent::Tight => false,
                    _ => true,
                },
                None => true,
            },
            Expr::And(_) => matches!(parent, Parent::Open | Parent::And | Parent::Or),
            Expr::Or(_) => matches!(parent, Parent::Open | Parent::Or),
            Expr::Not(_) => matches!(parent, Parent::Open | Parent::And | Parent::Or),
            Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::BoolTest { .. } | Expr::IsDistinct { .. } => {
                matches!(parent, Parent::Open | Parent::And | Parent::Or | Parent::Not)
            }
            Expr::InList { .. } | Expr::AnyAll { .. } => matches!(parent, Parent::Open),
            _ => true,
        }
    }
}

/// Whether an operation inside another needs no parentheses: PostgreSQL knows the ranks of `+ - * / %` alone.
fn binds_tighter(symbol: &str, outer: &str, is_first: bool) -> bool {
    let rank = |symbol: &str| match symbol {
        "+" | "-" => Some(1),
        "*" | "/" | "%" => Some(2),
        _ => None,
    };
    match (rank(symbol), rank(outer)) {
        (Some(own), Some(other)) => own > other || own == other && is_first,
        _ => false,
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
