//! What SQL that rests in the catalog names: defaults, conditions, expressions of indexes, bodies of views. Such a text
//! means the same objects for ever, whatever they are called later, as PostgreSQL's parse trees do; so it names them
//! by identity, in names and literals that hold a NUL, which no statement can contain:
//!
//! | written | is |
//! |---|---|
//! | `"␀r16400"`, or `"␀r16400␀schema"` where it had no alias, in FROM | relation 16400 |
//! | `AS t ("a␀1", "c␀3")` behind it | its columns 1 and 3, as the text names them; others are not seen |
//! | `"␀row"` | the row of the table whose condition it is |
//! | `"␀t16500"` | type 16500 |
//! | `(x)."␀f16500.2"` | the second attribute of composite type 16500 |
//! | `"␀v"(16500, 'f…')` | a value of type 16500 as it rests: `f` a number's bits, `b` bytes, hexadecimal |
//! | `'16400'::regclass`, `regtype`, `regnamespace` | the object |
//! | `'2024-07-01 16:00:00+00'`, read as a moment | the moment, whatever settings it was written under: ISO, in UTC |
//!
//! What a literal is read as, and whose field a name is, only binding tells: so each gets a number behind a NUL, the
//! text is bound, and binding notes by number what it took it for. `pgcatalog::readable` turns all of it back.

mod tags;

pub(crate) use tags::reg_name;

use super::binder::Binder;
use super::scope::ScopeColumn;
use super::{BindContext, names, types};
use crate::error::{Result, SqlError};
use crate::syntax::WHOLE_ROW;
use basalt_expr::tree::Expr;
use basalt_types::usertype::array_oid;
use basalt_types::{CompositeDef, DataType, Datum, ObjectId, TableDef};
use sqlparser::ast::{self, Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor, VisitMut, VisitorMut};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

pub(crate) const MARK: char = '\0';
pub(crate) const ROW: &str = "\0row";
const VALUE: &str = "\0v";

/// Fields that were found while a text was bound: the number, the composite type's oid, and the attribute's position.
pub type FieldNotes = Arc<Mutex<Vec<(usize, u32, usize)>>>;

/// Binds an expression as the statement that keeps it does.
pub type BindOnce<'a> = &'a dyn Fn(&BindContext, &ast::Expr) -> Result<()>;

/// The text under which an expression is kept; `table`: over whose columns it is. 0A000 for names of roles, which other
/// databases may drop.
pub fn expression(ctx: &BindContext, table: Option<&TableDef>, expr: &ast::Expr, bind: BindOnce) -> Result<String> {
    let mut expr = expr;
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    let mut expr = expr.clone();
    let _ = expr.visit(&mut Namer { ctx, table, ctes: Vec::new() });
    tags::resolve(ctx, &mut expr, &|ctx, expr| bind(ctx, expr))?;
    Ok(expr.to_string())
}

/// The text under which a view's body is kept.
pub fn query(ctx: &BindContext, query: &ast::Query) -> Result<String> {
    let mut query = query.clone();
    let _ = query.visit(&mut Namer { ctx, table: None, ctes: Vec::new() });
    let bind = |ctx: &BindContext, query: &ast::Query| {
        super::bind_query(ctx, query, &mut super::ParamTypes::none()).map(|_| ())
    };
    tags::resolve(ctx, &mut query, &bind)?;
    Ok(query.to_string())
}

/// The types that a column list behind a function in FROM declares.
pub(crate) fn declared_types(factor: &mut TableFactor) -> impl Iterator<Item = &mut ast::DataType> {
    let alias = match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. } => alias.as_mut(),
        _ => None,
    };
    alias.into_iter().flat_map(|alias| &mut alias.columns).filter_map(|column| column.data_type.as_mut())
}

fn quoted(text: String) -> Ident {
    Ident::with_quote('"', text)
}

fn one_name(ident: Ident) -> ObjectName {
    ObjectName(vec![ObjectNamePart::Identifier(ident)])
}

/// Writes relations and types by identity.
struct Namer<'a> {
    ctx: &'a BindContext,
    table: Option<&'a TableDef>,
    /// Names of WITH queries in sight.
    ctes: Vec<Vec<String>>,
}

impl Namer<'_> {
    fn ty(&self, ty: &mut ast::DataType) {
        match ty {
            ast::DataType::Array(
                ast::ArrayElemTypeDef::SquareBracket(element, _)
                | ast::ArrayElemTypeDef::AngleBracket(element)
                | ast::ArrayElemTypeDef::Parenthesis(element),
            ) => self.ty(element),
            ast::DataType::Custom(..) => {
                let is_defined = |ty: &DataType| match ty.element().unwrap_or(ty) {
                    DataType::Composite(composite) => !composite.is_anonymous(),
                    DataType::Enum(_) | DataType::Domain(_) => true,
                    _ => false,
                };
                if let Some(found) = types::resolve(self.ctx, ty).ok().filter(is_defined) {
                    *ty = ast::DataType::Custom(one_name(quoted(format!("{MARK}t{}", found.oid()))), Vec::new());
                }
            }
            _ => {}
        }
    }

    fn relation(&self, name: &mut ObjectName, alias: &mut Option<TableAlias>) {
        let Ok(parts) = names::parts(name) else { return };
        if let [only] = parts.as_slice()
            && (only.starts_with(MARK) || self.ctes.iter().flatten().any(|cte| cte == only))
        {
            return;
        }
        let (id, namespace, columns): (ObjectId, ObjectId, Vec<(String, i16)>) = match self.ctx.relation(name) {
            Ok(names::Relation::Table(table)) => {
                let columns = table.live_columns().map(|column| (column.name.clone(), column.id.0 as i16));
                (table.id, table.namespace, columns.collect())
            }
            Ok(names::Relation::View(view)) => {
                (view.id, view.namespace, (1..).zip(&view.columns).map(|(at, (name, _))| (name.clone(), at)).collect())
            }
            Ok(names::Relation::Sequence(sequence)) => {
                let columns = crate::pgcatalog::SEQUENCE_COLUMNS.iter().map(|(name, ..)| (*name).to_string());
                (sequence.id, sequence.namespace, columns.zip(1..).collect())
            }
            _ => return,
        };
        let schema = self.ctx.catalog.namespaces.get(&namespace).map(|schema| schema.name.clone()).unwrap_or_default();
        let marker = match alias {
            Some(_) => format!("{MARK}r{}", id.0),
            None => format!("{MARK}r{}{MARK}{schema}", id.0),
        };
        let given = alias.as_ref().map(|alias| alias.columns.clone()).unwrap_or_default();
        let own = alias.as_ref().map(|alias| alias.name.clone());
        if given.len() > columns.len() || given.iter().any(|column| column.data_type.is_some()) {
            return;
        }
        let listed = columns.into_iter().enumerate().map(|(at, (column, number))| {
            let shown = given.get(at).map_or(column, |column| names::fold(&column.name));
            ast::TableAliasColumnDef { name: quoted(format!("{shown}{MARK}{number}")), data_type: None }
        });
        *alias = Some(TableAlias {
            explicit: true,
            name: own.unwrap_or_else(|| quoted(parts.last().cloned().unwrap_or_default())),
            columns: listed.collect(),
            at: None,
        });
        *name = one_name(quoted(marker));
    }
}

impl VisitorMut for Namer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        let mut seen: Vec<String> = Vec::new();
        if let Some(with) = &mut query.with {
            let own: Vec<String> = with.cte_tables.iter().map(|cte| names::fold(&cte.alias.name)).collect();
            for (at, cte) in with.cte_tables.iter_mut().enumerate() {
                // Without RECURSIVE a query sees those before it.
                self.ctes.push(if with.recursive { own.clone() } else { own[..at].to_vec() });
                let _ = cte.query.visit(self);
                self.ctes.pop();
            }
            seen = own;
        }
        self.ctes.push(seen);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.ctes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => self.relation(name, alias),
            call => declared_types(call).for_each(|ty| self.ty(ty)),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Cast { data_type, .. } => self.ty(data_type),
            ast::Expr::TypedString(typed) => self.ty(&mut typed.data_type),
            ast::Expr::Prefixed { prefix, value } => {
                let mut data_type = ast::DataType::Custom(one_name(prefix.clone()), Vec::new());
                self.ty(&mut data_type);
                let expr_inside = std::mem::replace(&mut **value, ast::Expr::Value(ast::Value::Null.into()));
                *expr = ast::Expr::Cast {
                    kind: ast::CastKind::DoubleColon,
                    expr: Box::new(expr_inside),
                    data_type,
                    array: false,
                    format: None,
                };
            }
            ast::Expr::CompoundIdentifier(parts)
                if self.table.is_some() && parts.last().is_some_and(|last| last.value == WHOLE_ROW) =>
            {
                *expr = ast::Expr::Identifier(quoted(ROW.to_string()));
            }
            ast::Expr::CompoundIdentifier(parts) => {
                let known =
                    |ident: &Ident| self.table.is_some_and(|table| table.column_named(&names::fold(ident)).is_some());
                if let Some(last) = parts.last().filter(|last| known(last)) {
                    *expr = ast::Expr::Identifier(last.clone());
                }
            }
            ast::Expr::Identifier(ident) => {
                if let Some(table) = self.table
                    && names::fold(ident) == table.name
                    && table.column_named(&table.name).is_none()
                {
                    *ident = quoted(ROW.to_string());
                }
            }
            ast::Expr::CompoundFieldAccess { access_chain, .. } => tags::keep_fields(access_chain),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether a kept text names the object with this oid.
pub(crate) fn names_object(sql: &str, oid: u32) -> bool {
    let in_literal = |kind: &str| sql.contains(&format!("'{oid}'::{kind}"));
    let marked = [format!("\0r{oid}\""), format!("\0r{oid}\0"), format!("\0t{oid}\""), format!("\0f{oid}.")];
    marked.iter().any(|mark| sql.contains(mark))
        || sql.contains(&format!("{VALUE}\"({oid},"))
        || ["regclass", "REGCLASS", "regtype", "regnamespace"].into_iter().any(in_literal)
}

/// The relations that a kept query reads.
pub(crate) fn relations_in(query: &ast::Query) -> BTreeSet<ObjectId> {
    let mut found = BTreeSet::new();
    let _ = ast::visit_relations(query, |name| {
        found.extend(relation_of(name));
        ControlFlow::<()>::Continue(())
    });
    found
}

/// The relation that a name in FROM means by identity.
pub fn relation_of(name: &ObjectName) -> Option<ObjectId> {
    relation_marked(&names::parts(name).ok()?).map(|(id, _)| id)
}

/// The same of a name's parts, with the schema that qualifies its columns.
pub(super) fn relation_marked(parts: &[String]) -> Option<(ObjectId, Option<&str>)> {
    let [only] = parts else { return None };
    let rest = only.strip_prefix("\0r")?;
    let (oid, schema) = match rest.split_once(MARK) {
        Some((oid, schema)) => (oid, Some(schema)),
        None => (rest, None),
    };
    Some((ObjectId(oid.parse().ok()?), schema))
}

/// The type that a name means by identity.
pub(crate) fn type_oid(name: &str) -> Option<u32> {
    name.strip_prefix("\0t")?.parse().ok()
}

pub(crate) fn is_row(name: &str) -> bool {
    name == ROW
}

/// The composite type and the position of an attribute that a name means by identity.
pub(crate) fn field_of(name: &str) -> Option<(u32, usize)> {
    let (oid, number) = name.strip_prefix("\0f")?.split_once('.')?;
    Some((oid.parse().ok()?, number.parse::<usize>().ok()?.checked_sub(1)?))
}

/// The attribute of a composite type that a name means by identity.
pub(super) fn attribute(composite: &CompositeDef, name: &str) -> Option<usize> {
    let (_, at) = field_of(name)?;
    composite.attributes.get(at).filter(|attribute| !attribute.dropped).map(|_| at)
}

/// A name without its number, and the number.
pub(super) fn split_number(name: &str) -> (&str, Option<usize>) {
    match name.split_once(MARK) {
        Some((name, number)) if !name.is_empty() => (name, number.parse().ok()),
        _ => (name, None),
    }
}

/// Whether a column of a relation is not seen under any name.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with(MARK)
}

/// Whether an alias lists columns by identity.
pub(crate) fn lists_columns(alias: &TableAlias) -> bool {
    alias.columns.first().is_some_and(|column| column.name.value.contains(MARK))
}

/// Name and number of each column that an alias lists by identity.
pub(crate) fn listed_columns(alias: &TableAlias) -> Vec<(String, i16)> {
    let column = |column: &ast::TableAliasColumnDef| {
        let (name, number) = column.name.value.rsplit_once(MARK)?;
        Some((name.to_string(), number.parse().ok()?))
    };
    alias.columns.iter().filter_map(column).collect()
}

/// Gives columns the names under which an alias lists them by identity; others cannot be named.
pub(super) fn rename(columns: &mut [ScopeColumn], alias: &TableAlias) {
    let listed = listed_columns(alias);
    for (at, column) in columns.iter_mut().enumerate() {
        let number = if column.column_no != 0 { column.column_no } else { at as i16 + 1 };
        column.name = match listed.iter().find(|(_, known)| *known == number) {
            Some((name, _)) => name.clone(),
            None => format!("{MARK}{}", column.id),
        };
    }
}

/// The value that a call means by identity, with its type's oid; `None` for any other call.
pub(crate) fn value_of(function: &ast::Function) -> Option<(u32, Datum)> {
    let is_value = matches!(function.name.0.as_slice(),
        [ObjectNamePart::Identifier(ident)] if ident.value == VALUE);
    let ast::FunctionArguments::List(list) = &function.args else { return None };
    let text = |arg: &ast::FunctionArg| match arg {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value))) => match &value.value {
            ast::Value::Number(text, _) | ast::Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    let [oid, value] = list.args.as_slice() else { return None };
    if !is_value {
        return None;
    }
    let value = text(value)?;
    let (kind, digits) = value.split_at_checked(1)?;
    let datum = match kind {
        "f" => Datum::F64(f64::from_bits(u64::from_str_radix(digits, 16).ok()?)),
        "b" => {
            let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
            let bytes: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
            Datum::Bytes(bytes?.into())
        }
        _ => return None,
    };
    Some((text(oid)?.parse().ok()?, datum))
}

/// The call that means a value by identity; `None` for what labels have no part in.
fn value_call(ty: &DataType, value: &Datum) -> Option<ast::Expr> {
    let text = match value {
        Datum::F64(position) => format!("f{:016x}", position.to_bits()),
        Datum::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("b{digits}")
        }
        _ => return None,
    };
    if !holds_labels(ty) {
        return None;
    }
    super::parse_expr(&format!("\"{VALUE}\"({}, '{text}')", ty.oid())).ok()
}

/// Whether values of a type are, or hold, labels of an enum.
fn holds_labels(ty: &DataType) -> bool {
    match ty {
        DataType::Enum(_) => true,
        DataType::Array(element) => holds_labels(element),
        DataType::Composite(composite) => composite.live().any(|(_, attribute)| holds_labels(&attribute.ty)),
        DataType::Domain(domain) => holds_labels(&domain.base),
        _ => false,
    }
}

impl BindContext {
    /// The relation with this id, if it is there.
    pub(super) fn relation_by_id(&self, id: ObjectId) -> Result<names::Relation> {
        let table = self.catalog.table(id).cloned().map(names::Relation::Table);
        let view = || self.catalog.views.get(&id).cloned().map(names::Relation::View);
        let sequence = || self.catalog.sequences.get(&id).cloned().map(names::Relation::Sequence);
        let missing = || SqlError::new("42P01", format!("relation with OID {} does not exist", id.0));
        table.or_else(view).or_else(sequence).ok_or_else(missing)
    }
}

impl Binder<'_> {
    /// The value that a call means by identity, if it does. An index of a table that its transaction has just made is
    /// bound before the catalog knows the types: the table's columns do.
    pub(super) fn pinned_value(&self, function: &ast::Function) -> Option<Result<Expr>> {
        let (oid, value) = value_of(function)?;
        let missing = || SqlError::new("42704", format!("type with OID {oid} does not exist"));
        let relations = || self.scopes.iter().flat_map(|scope| &scope.relations);
        let of_columns =
            || relations().flat_map(|relation| &relation.columns).find_map(|column| inside(&column.ty, oid));
        let ty = self.ctx.catalog.type_of_oid(oid).or_else(of_columns);
        Some(ty.ok_or_else(missing).map(|ty| Expr::Const { value, ty }))
    }
}

/// The type with this oid that a type is, is made of, or is the element of.
fn inside(ty: &DataType, oid: u32) -> Option<DataType> {
    if ty.oid() == oid {
        return Some(ty.clone());
    }
    if matches!(ty, DataType::Enum(_) | DataType::Domain(_)) && array_oid(ty.oid()) == oid {
        return Some(DataType::Array(Box::new(ty.clone())));
    }
    match ty {
        DataType::Array(element) => inside(element, oid),
        DataType::Composite(composite) => composite.live().find_map(|(_, attribute)| inside(&attribute.ty, oid)),
        DataType::Domain(domain) => inside(&domain.base, oid),
        _ => None,
    }
}
