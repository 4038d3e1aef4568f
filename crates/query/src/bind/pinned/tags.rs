//! Numbers behind literals and names of fields, and what binding found them to be.

use super::super::BindContext;
use super::{MARK, quoted, value_call};
use crate::error::{Result, SqlError};
use crate::syntax::all_fields_mark;
use basalt_expr::EvalContext;
use basalt_expr::context::LiteralNote;
use basalt_types::{DataType, Datum};
use sqlparser::ast::{self, AccessExpr, Expr, Ident, Value, VisitMut, VisitorMut};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

/// So many texts are bound once more for each of their literals and fields if they cannot be bound with all at once.
const ALONE_MAX: usize = 200;
/// Stands before a field's name until it has its number.
const FIELD: &str = "\0n";

/// Marks names of fields, so that nobody takes them for columns.
pub fn keep_fields(chain: &mut [AccessExpr]) {
    for access in chain {
        if let AccessExpr::Dot(Expr::Identifier(ident)) = access
            && *ident != all_fields_mark()
            && !ident.value.starts_with(MARK)
        {
            *ident = quoted(format!("{FIELD}{}", super::names::fold(ident)));
        }
    }
}

/// Writes literals and fields by identity.
pub fn resolve<T: VisitMut + Clone>(
    ctx: &BindContext,
    node: &mut T,
    bind: &dyn Fn(&BindContext, &T) -> Result<()>,
) -> Result<()> {
    let mut numbered = node.clone();
    let mut tagger = Tagger { only: None, next: 0 };
    let _ = numbered.visit(&mut tagger);
    let count = tagger.next;
    let mut found = Found::default();
    if count > 0 && !found.collect(ctx, &numbered, bind) && count <= ALONE_MAX {
        found = Found::default();
        for number in 0..count {
            let mut alone = node.clone();
            let _ = alone.visit(&mut Tagger { only: Some(number), next: 0 });
            found.collect(ctx, &alone, bind);
        }
    }
    if found.literals.iter().any(|note| note.ty == DataType::Regrole) {
        return Err(SqlError::not_supported("constant of the type regrole cannot be used here"));
    }
    let _ = numbered.visit(&mut Writer { found });
    *node = numbered;
    Ok(())
}

#[derive(Default)]
struct Found {
    literals: Vec<LiteralNote>,
    /// Number, oid of the composite type, position of the attribute.
    fields: Vec<(usize, u32, usize)>,
}

impl Found {
    /// Whether the text could be bound.
    fn collect<T>(&mut self, ctx: &BindContext, node: &T, bind: &dyn Fn(&BindContext, &T) -> Result<()>) -> bool {
        let (literals, fields) = (Arc::<Mutex<Vec<LiteralNote>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let eval = EvalContext { literals: Some(literals.clone()), ..EvalContext::clone(&ctx.eval) };
        let noting = BindContext {
            eval: Arc::new(eval),
            fields: Some(fields.clone()),
            warnings: Arc::default(),
            needs: None,
            ..ctx.clone()
        };
        let is_bound = bind(&noting, node).is_ok();
        if is_bound {
            self.literals.append(&mut literals.lock().unwrap_or_else(PoisonError::into_inner));
            self.fields.append(&mut fields.lock().unwrap_or_else(PoisonError::into_inner));
        }
        is_bound
    }

    /// What a literal was read as, if always the same.
    fn literal(&self, number: usize) -> Option<&LiteralNote> {
        let mut notes = self.literals.iter().filter(|note| note.number == number);
        let first = notes.next()?;
        notes.all(|other| other.ty == first.ty).then_some(first)
    }
}

/// The text of a literal that binding reads by its context.
fn text_of(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
            Some(text)
        }
        Value::DollarQuotedString(quoted) => Some(&mut quoted.value),
        _ => None,
    }
}

/// The name of a field in an access, less its mark.
fn field_of(access: &mut AccessExpr) -> Option<(&mut Ident, String)> {
    let AccessExpr::Dot(Expr::Identifier(ident)) = access else { return None };
    let name = ident.value.strip_prefix(FIELD)?.to_string();
    Some((ident, name))
}

/// A text less the number behind it, and the number.
fn numbered(text: &str) -> Option<(String, usize)> {
    let (text, number) = text.rsplit_once(MARK)?;
    Some((text.to_string(), number.parse().ok()?))
}

struct Tagger {
    only: Option<usize>,
    next: usize,
}

impl Tagger {
    fn number(&mut self) -> Option<usize> {
        let number = self.next;
        self.next += 1;
        self.only.is_none_or(|only| only == number).then_some(number)
    }
}

impl VisitorMut for Tagger {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Value(value) | Expr::TypedString(ast::TypedString { value, .. }) => {
                if let Some(text) = text_of(&mut value.value)
                    && let Some(number) = self.number()
                {
                    text.push_str(&format!("{MARK}{number}"));
                }
            }
            Expr::CompoundFieldAccess { access_chain, .. } => {
                for access in access_chain {
                    let Some((ident, name)) = field_of(access) else { continue };
                    ident.value = match self.number() {
                        Some(number) => format!("{name}{MARK}{number}"),
                        None => name,
                    };
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Takes the numbers off again.
struct Writer {
    found: Found,
}

impl VisitorMut for Writer {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Value(value) | Expr::TypedString(ast::TypedString { value, .. }) => {
                let Some(text) = text_of(&mut value.value) else { return ControlFlow::Continue(()) };
                let Some((own, number)) = numbered(text) else { return ControlFlow::Continue(()) };
                *text = own;
                let Some(note) = self.found.literal(number) else { return ControlFlow::Continue(()) };
                if let Some(moment) = moment(&note.ty, &note.value) {
                    value.value = Value::SingleQuotedString(moment);
                } else if let Some(pinned) = pinned(&note.ty, &note.value, text) {
                    *expr = pinned;
                }
            }
            Expr::CompoundFieldAccess { access_chain, .. } => {
                for access in access_chain {
                    let AccessExpr::Dot(Expr::Identifier(ident)) = access else { continue };
                    let Some((name, number)) = numbered(&ident.value) else { continue };
                    let note = self.found.fields.iter().find(|(known, ..)| *known == number);
                    *ident = match note {
                        Some((_, oid, at)) => quoted(format!("{MARK}f{oid}.{}", at + 1)),
                        None => quoted(name),
                    };
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// `'t'::regclass::regclass` was one cast.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Cast { expr: inner, data_type, .. } = expr
            && let Expr::Cast { expr: literal, data_type: own, .. } = inner.as_ref()
            && matches!(**literal, Expr::Value(_))
            && reg_name(own).is_some_and(|name| data_type.to_string().eq_ignore_ascii_case(name))
        {
            *expr = Expr::clone(inner);
        }
        ControlFlow::Continue(())
    }
}

/// The text of a value that is read by the time, zone and styles of a session, as every session reads it; `None` for
/// values of other types, and those that are kept by identity.
fn moment(ty: &DataType, value: &Datum) -> Option<String> {
    if !holds_time(ty) || super::holds_labels(ty) {
        return None;
    }
    let mut text = Vec::new();
    // ISO in UTC; intervals with all their signs.
    basalt_expr::io::text::format(ty, value, &EvalContext::at(0), &mut text).ok()?;
    String::from_utf8(text).ok()
}

/// Whether values of a type are, or hold, dates, times or intervals.
fn holds_time(ty: &DataType) -> bool {
    match ty {
        DataType::Date
        | DataType::Time
        | DataType::TimeTz
        | DataType::Timestamp
        | DataType::TimestampTz
        | DataType::Interval => true,
        DataType::Range(kind) | DataType::Multirange(kind) => holds_time(&kind.subtype()),
        DataType::Array(element) => holds_time(element),
        DataType::Composite(composite) => composite.live().any(|(_, attribute)| holds_time(&attribute.ty)),
        DataType::Domain(domain) => holds_time(&domain.base),
        _ => false,
    }
}

/// A literal by identity; `None` for one that means itself.
fn pinned(ty: &DataType, value: &Datum, text: &str) -> Option<Expr> {
    let name = match ty {
        DataType::Regclass => "regclass",
        DataType::Regtype => "regtype",
        DataType::Regnamespace => "regnamespace",
        _ => return value_call(ty, value),
    };
    let Datum::I64(oid) = value else { return None };
    if *oid == 0 || text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Expr::Cast {
        kind: ast::CastKind::DoubleColon,
        expr: Box::new(Expr::Value(Value::SingleQuotedString(oid.to_string()).into())),
        // As PostgreSQL prints it, in lower case.
        data_type: ast::DataType::Custom(super::one_name(Ident::new(name)), Vec::new()),
        array: false,
        format: None,
    })
}

/// The name of a type whose literals are names of objects.
pub fn reg_name(ty: &ast::DataType) -> Option<&'static str> {
    let ast::DataType::Custom(name, modifiers) = ty else {
        return matches!(ty, ast::DataType::Regclass).then_some("regclass");
    };
    let parts = super::names::parts(name).ok().filter(|_| modifiers.is_empty())?;
    ["regclass", "regtype", "regnamespace"].into_iter().find(|known| parts.last().is_some_and(|last| last == known))
}
