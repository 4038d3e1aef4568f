//! What PostgreSQL calls a result column that has no alias (`FigureColname`).

use super::names;
use crate::syntax::WHOLE_ROW;
use sqlparser::ast::{self, Expr, FunctionArguments, TrimWhereField};

pub fn output_name(expr: &Expr) -> String {
    named(expr).map_or_else(|| "?column?".to_string(), |(name, _)| name)
}

/// What a column of an index is called that is this expression (`FigureIndexColname`).
pub fn index_column_name(expr: &Expr) -> String {
    named(expr).map_or_else(|| "expr".to_string(), |(name, _)| name)
}

/// The name and how strong a claim it has: 2 for columns and functions, 1 for types and constructs that
/// give way to a better one inside.
fn named(expr: &Expr) -> Option<(String, u8)> {
    let strong = |name: &str| Some((name.to_string(), 2));
    let weak = |name: &str| Some((name.to_string(), 1));
    match expr {
        Expr::Identifier(ident) => Some((names::fold(ident), 2)),
        Expr::CompoundIdentifier(parts) => {
            let name = parts.iter().rev().find(|ident| ident.value != WHOLE_ROW);
            name.map(|ident| (names::fold(ident), 2))
        }
        Expr::Nested(inner) => named(inner),
        Expr::Collate { expr, .. } => named(expr),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                ast::AccessExpr::Dot(Expr::Identifier(ident)) => Some((names::fold(ident), 2)),
                _ => None,
            });
            field.or_else(|| named(root))
        }
        Expr::Function(function) => {
            let parts = names::parts(&function.name).ok()?;
            let name = parts.last()?.clone();
            match &function.args {
                FunctionArguments::Subquery(_) => weak("array"),
                _ => Some((name, 2)),
            }
        }
        Expr::Cast { expr, data_type, .. } => match named(expr) {
            Some((name, 2)) => Some((name, 2)),
            _ => Some((type_name(data_type)?, 1)),
        },
        Expr::TypedString(typed) => Some((type_name(&typed.data_type)?, 1)),
        Expr::Interval(_) => weak("interval"),
        Expr::Prefixed { prefix, .. } => weak(&type_name(&ast::DataType::Custom(prefix.clone().into(), Vec::new()))?),
        Expr::IsNormalized { negated: false, .. } => strong("is_normalized"),
        Expr::BinaryOp { op: ast::BinaryOperator::Overlaps, .. } => strong("overlaps"),
        Expr::Value(value) if matches!(value.value, ast::Value::NationalStringLiteral(_)) => weak("bpchar"),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(named) {
            Some((name, 2)) => Some((name, 2)),
            _ => weak("case"),
        },
        Expr::Exists { negated: false, .. } => strong("exists"),
        Expr::Array(_) => strong("array"),
        Expr::Subquery(query) => subquery_name(&query.body),
        Expr::Extract { .. } => strong("extract"),
        Expr::Substring { shorthand, .. } => strong(if *shorthand { "substr" } else { "substring" }),
        Expr::Position { .. } => strong("position"),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Trim { trim_where, .. } => match trim_where {
            Some(TrimWhereField::Leading) => strong("ltrim"),
            Some(TrimWhereField::Trailing) => strong("rtrim"),
            _ => strong("btrim"),
        },
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Tuple(_) => strong("row"),
        _ => None,
    }
}

fn subquery_name(body: &ast::SetExpr) -> Option<(String, u8)> {
    match body {
        ast::SetExpr::Select(select) => match select.projection.first()? {
            ast::SelectItem::ExprWithAlias { alias, .. } => Some((names::fold(alias), 2)),
            ast::SelectItem::UnnamedExpr(expr) => Some((output_name(expr), 2)),
            _ => None,
        },
        ast::SetExpr::SetOperation { left, .. } => subquery_name(left),
        ast::SetExpr::Values(_) => Some(("column1".to_string(), 2)),
        ast::SetExpr::Query(query) => subquery_name(&query.body),
        _ => None,
    }
}

/// `pg_type.typname`.
fn type_name(ty: &ast::DataType) -> Option<String> {
    if let Some(ty) = super::types::built_in(ty) {
        return Some(typname(&ty));
    }
    match ty {
        ast::DataType::Custom(name, _) => names::parts(name).ok()?.pop(),
        ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) => type_name(element),
        _ => None,
    }
}

/// The catalog's name of a type, as in `int4` and `_text`.
pub fn typname(ty: &basalt_types::DataType) -> String {
    use basalt_types::DataType;
    match ty {
        DataType::Bool => "bool",
        DataType::Int2 => "int2",
        DataType::Int4 => "int4",
        DataType::Int8 => "int8",
        DataType::Float4 => "float4",
        DataType::Float8 => "float8",
        DataType::Numeric(_) => "numeric",
        DataType::Varchar(_) => "varchar",
        DataType::Bpchar(_) => "bpchar",
        DataType::Time => "time",
        DataType::TimeTz => "timetz",
        DataType::Bit(_) => "bit",
        DataType::Varbit(_) => "varbit",
        DataType::Timestamp => "timestamp",
        DataType::TimestampTz => "timestamptz",
        DataType::Char => "char",
        DataType::Array(element) => return typname(element),
        DataType::Composite(composite) => &composite.name,
        DataType::Enum(definition) => &definition.name,
        DataType::Domain(domain) => &domain.name,
        other => return other.sql_name(),
    }
    .to_string()
}
