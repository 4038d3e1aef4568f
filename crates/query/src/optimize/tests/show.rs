//! Trees as text: one node per line, inputs indented below it, columns by the names that they have in their tables.

use crate::optimize::node::{JoinKind, Node, Op, Side};
use crate::plan::ColId;
use ahash::AHashMap;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};

pub fn show(node: &Node) -> String {
    let mut names = AHashMap::new();
    name(node, &mut names);
    let mut out = String::new();
    lines(node, 0, &names, &mut out);
    out
}

type Names = AHashMap<ColId, String>;

fn name(node: &Node, names: &mut Names) {
    if let Op::Scan { table, columns, .. } = &node.op {
        let name = |column| format!("{}.{}", table.name, table.column(column).name);
        names.extend(columns.iter().map(|(id, column)| (*id, name(*column))));
    }
    node.inputs().into_iter().for_each(|input| name(input, names));
}

fn lines(node: &Node, depth: usize, names: &Names, out: &mut String) {
    let line = match &node.op {
        Op::Scan { table, filter, .. } => format!("Scan {}{}", table.name, list(" where ", filter, names)),
        Op::Values { rows, .. } => format!("Values {}", rows.len()),
        Op::Shared { cte, .. } => format!("Shared {cte}"),
        Op::Recursive { cte, .. } => format!("Recursive {cte}"),
        Op::Working { cte, .. } => format!("Working {cte}"),
        Op::Filter { conjuncts, .. } => format!("Filter{}", list(" ", conjuncts, names)),
        Op::Project { exprs, .. } => {
            let computed = exprs.iter().filter(|(_, expr)| !matches!(expr, Expr::Hole { .. }));
            let computed: Vec<Expr> = computed.map(|(_, expr)| expr.clone()).collect();
            format!("Project{}", list(" ", &computed, names))
        }
        Op::Join { kind, keys, residual, build, .. } => {
            let key = |key: &crate::optimize::node::Key| {
                let equal = if key.null_safe { "<=>" } else { "=" };
                format!("{} {equal} {}", text(&key.left, names), text(&key.right, names))
            };
            let kind = match kind {
                JoinKind::Mark { null_aware, .. } => format!("{}Mark", if *null_aware { "NullAware" } else { "" }),
                kind => format!("{kind:?}"),
            };
            let keys: Vec<String> = keys.iter().map(key).collect();
            let on = if keys.is_empty() { String::new() } else { format!(" on {}", keys.join(", ")) };
            let build = if *build == Side::Left { " build left" } else { "" };
            format!("{kind}{on}{}{build}", list(" where ", residual, names))
        }
        Op::Aggregate { groups, dependent, aggregates, .. } => {
            let compared = groups.iter().enumerate().filter(|(at, _)| !dependent.contains(at));
            let compared: Vec<Expr> = compared.map(|(_, (_, expr))| expr.clone()).collect();
            let decided = dependent.iter().map(|at| groups[*at].1.clone()).collect::<Vec<Expr>>();
            let calls: Vec<&str> = aggregates.iter().map(|(_, call)| call.resolved.aggregate.name.as_str()).collect();
            let calls = if calls.is_empty() { String::new() } else { format!(" {}", calls.join(", ")) };
            format!("Aggregate{calls}{}{}", list(" by ", &compared, names), list(" with ", &decided, names))
        }
        Op::Sort { keys, .. } => {
            let exprs: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
            format!("Sort{}", list(" ", &exprs, names))
        }
        Op::Window { .. } => "Window".to_string(),
        Op::ProjectSet { sets, .. } => {
            let calls: Vec<Expr> = sets.iter().map(|(_, call)| call.clone()).collect();
            format!("ProjectSet{}", list(" ", &calls, names))
        }
        Op::Limit { .. } => "Limit".to_string(),
        Op::UnionAll { .. } => "UnionAll".to_string(),
    };
    out.push_str(&format!("{:indent$}{line} ~{:.0}\n", "", node.rows, indent = depth * 2));
    node.inputs().into_iter().for_each(|input| lines(input, depth + 1, names, out));
    if let Op::Shared { plan, .. } = &node.op {
        lines(plan, depth + 1, names, out);
    }
}

fn list(start: &str, exprs: &[Expr], names: &Names) -> String {
    let texts: Vec<String> = exprs.iter().map(|expr| text(expr, names)).collect();
    if texts.is_empty() { String::new() } else { format!("{start}{}", texts.join(", ")) }
}

fn text(expr: &Expr, names: &Names) -> String {
    let inner = |expr: &Expr| text(expr, names);
    let all = |exprs: &[Expr], between: &str| exprs.iter().map(inner).collect::<Vec<_>>().join(between);
    match expr {
        Expr::Hole { id, .. } => names.get(id).cloned().unwrap_or_else(|| format!("#{id}")),
        Expr::Const { value, ty } => constant(value, ty),
        Expr::Call { function, args, .. } => format!("{}({})", function.name, all(args, ", ")),
        Expr::Cast { expr, .. } => inner(expr),
        Expr::And(args) => format!("({})", all(args, " and ")),
        Expr::Or(args) => format!("({})", all(args, " or ")),
        Expr::Not(arg) => format!("not {}", inner(arg)),
        Expr::InList { expr, list, .. } => format!("{} in ({})", inner(expr), all(list, ", ")),
        Expr::IsDistinct { left, right, negated: true, .. } => format!("{} is {}", inner(left), inner(right)),
        other => {
            let kind = format!("{other:?}");
            let kind = kind.split([' ', '(']).next().unwrap_or_default().to_string();
            format!("{kind}({})", other.children().into_iter().map(inner).collect::<Vec<_>>().join(", "))
        }
    }
}

fn constant(value: &Datum, ty: &DataType) -> String {
    match value {
        Datum::Null => "null".into(),
        Datum::Bytes(bytes) if !matches!(ty, DataType::Numeric(_)) => {
            format!("'{}'", String::from_utf8_lossy(bytes))
        }
        Datum::Bool(value) => value.to_string(),
        Datum::I16(value) => value.to_string(),
        Datum::I32(value) => value.to_string(),
        Datum::I64(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}
