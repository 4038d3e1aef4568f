//! A path as PostgreSQL prints it: keys quoted, operators in parentheses where they nest.

use super::*;
use crate::io::json::write_string;

pub(super) fn path(path: &JsonPath) -> String {
    let mut out = Vec::new();
    if !path.lax {
        out.extend_from_slice(b"strict ");
    }
    expr(&path.expr, true, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// How tightly an operator binds; what is none binds most.
fn priority_of_predicate(predicate: &Predicate) -> u8 {
    match predicate {
        Predicate::Or(..) => 0,
        Predicate::And(..) => 1,
        Predicate::Compare(..) | Predicate::StartsWith(..) => 2,
        _ => 6,
    }
}

fn priority(expr: &Expr) -> u8 {
    match &expr.head {
        Head::Predicate(predicate) => priority_of_predicate(predicate),
        Head::Arithmetic(ArithmeticOp::Add | ArithmeticOp::Sub, ..) => 3,
        Head::Arithmetic(..) => 4,
        Head::Negate(_) | Head::Plus(_) => 5,
        _ => 6,
    }
}

fn expr(item: &Expr, brackets: bool, out: &mut Vec<u8>) {
    match &item.head {
        Head::Root => out.push(b'$'),
        Head::Current => out.push(b'@'),
        Head::Last => out.extend_from_slice(b"last"),
        Head::Null => out.extend_from_slice(b"null"),
        Head::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Head::Number(value) => {
            let nested = !item.steps.is_empty();
            if nested {
                out.push(b'(');
            }
            value.write_text(out);
            if nested {
                out.push(b')');
            }
        }
        Head::String(text) => write_string(text, out),
        Head::Variable(name) => {
            out.push(b'$');
            write_string(name, out);
        }
        Head::Negate(operand) | Head::Plus(operand) => {
            open(brackets, out);
            out.push(if let Head::Negate(_) = item.head { b'-' } else { b'+' });
            expr(operand, priority(operand) <= priority(item), out);
            close(brackets, out);
        }
        Head::Arithmetic(op, left, right) => {
            open(brackets, out);
            expr(left, priority(left) <= priority(item), out);
            out.extend_from_slice(format!(" {} ", op.symbol()).as_bytes());
            expr(right, priority(right) <= priority(item), out);
            close(brackets, out);
        }
        Head::Predicate(inner) => predicate(inner, brackets, out),
    }
    item.steps.iter().for_each(|next| step(next, out));
}

fn open(brackets: bool, out: &mut Vec<u8>) {
    if brackets {
        out.push(b'(');
    }
}

fn close(brackets: bool, out: &mut Vec<u8>) {
    if brackets {
        out.push(b')');
    }
}

fn predicate(item: &Predicate, brackets: bool, out: &mut Vec<u8>) {
    let own = priority_of_predicate(item);
    match item {
        Predicate::And(left, right) | Predicate::Or(left, right) => {
            open(brackets, out);
            predicate(left, priority_of_predicate(left) <= own, out);
            out.extend_from_slice(if let Predicate::And(..) = item { b" && " } else { b" || " });
            predicate(right, priority_of_predicate(right) <= own, out);
            close(brackets, out);
        }
        Predicate::Compare(op, left, right) => {
            open(brackets, out);
            expr(left, priority(left) <= own, out);
            out.extend_from_slice(format!(" {} ", op.symbol()).as_bytes());
            expr(right, priority(right) <= own, out);
            close(brackets, out);
        }
        Predicate::StartsWith(left, right) => {
            open(brackets, out);
            expr(left, priority(left) <= own, out);
            out.extend_from_slice(b" starts with ");
            expr(right, priority(right) <= own, out);
            close(brackets, out);
        }
        Predicate::LikeRegex(left, pattern) => {
            open(brackets, out);
            expr(left, priority(left) <= own, out);
            out.extend_from_slice(b" like_regex ");
            write_string(&pattern.text, out);
            let flags = [
                (pattern.insensitive, b'i'),
                (pattern.dot_all, b's'),
                (pattern.multi_line, b'm'),
                (pattern.expanded, b'x'),
                (pattern.literal, b'q'),
            ];
            if flags.iter().any(|(set, _)| *set) {
                out.extend_from_slice(b" flag \"");
                out.extend(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag));
                out.push(b'"');
            }
            close(brackets, out);
        }
        Predicate::Not(inner) => {
            out.extend_from_slice(b"!(");
            predicate(inner, false, out);
            out.push(b')');
        }
        Predicate::IsUnknown(inner) => {
            out.push(b'(');
            predicate(inner, false, out);
            out.extend_from_slice(b") is unknown");
        }
        Predicate::Exists(inner) => {
            out.extend_from_slice(b"exists (");
            expr(inner, false, out);
            out.push(b')');
        }
    }
}

fn step(step: &Step, out: &mut Vec<u8>) {
    match step {
        Step::Key(key) => {
            out.push(b'.');
            write_string(key, out);
        }
        Step::AnyKey => out.extend_from_slice(b".*"),
        Step::AnyElement => out.extend_from_slice(b"[*]"),
        Step::Elements(list) => {
            out.push(b'[');
            for (at, (from, to)) in list.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                expr(from, false, out);
                if let Some(to) = to {
                    out.extend_from_slice(b" to ");
                    expr(to, false, out);
                }
            }
            out.push(b']');
        }
        Step::Descendants { from, to } => {
            let level = |level: &Option<u32>| level.map_or("last".to_string(), |level| level.to_string());
            let text = match (from, to) {
                (Some(0), None) => ".**".to_string(),
                (from, to) if from == to => format!(".**{{{}}}", level(from)),
                (from, to) => format!(".**{{{} to {}}}", level(from), level(to)),
            };
            out.extend_from_slice(text.as_bytes());
        }
        Step::Filter(filter) => {
            out.extend_from_slice(b"?(");
            predicate(filter, false, out);
            out.push(b')');
        }
        Step::Method(method) => out.extend_from_slice(format!(".{}()", method.name()).as_bytes()),
        Step::DateTime(template) => {
            out.extend_from_slice(b".datetime(");
            if let Some(template) = template {
                write_string(template, out);
            }
            out.push(b')');
        }
    }
}
