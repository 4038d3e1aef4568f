use super::Sought;
use crate::context::EvalContext;
use crate::functions::Registry;
use crate::resolve;
use crate::tree::Expr;
use arrow_array::{ArrayRef, StringViewArray};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

fn ctx() -> EvalContext {
    EvalContext::at(0)
}

fn column() -> Expr {
    Expr::Column { index: 0, ty: DataType::Text }
}

fn int(value: i32) -> Expr {
    Expr::Const { value: Datum::I32(value), ty: DataType::Int4 }
}

fn op(symbol: &str, left: Expr, right: &str) -> Expr {
    resolve::operator(Registry::builtin(), symbol, Some(left), Expr::text(right), &ctx()).unwrap()
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    resolve::call(Registry::builtin(), name, args, &ctx()).unwrap()
}

/// Automata say of every text what the expression does.
#[test]
fn what_is_sought_is_what_passes() {
    let texts = ["", "a", "ab", "abc", "ab%", "xab", "üb", "ü", "übx", "a\\b", "special requests", "requests special"];
    let prefix = |length| call("substring", vec![column(), int(1), int(length)]);
    let cases = [
        op("~~", column(), "ab%"),
        op("~~", column(), "%ab"),
        op("~~", column(), "%special%requests%"),
        op("!~~", column(), "%special%requests%"),
        op("~~", column(), "a%c"),
        op("~~", column(), "a\\%"),
        op("~~", column(), "ab\\%"),
        op("~~", column(), ""),
        op("=", column(), "ab"),
        op("<>", column(), "ab"),
        op("=", prefix(2), "ab"),
        op("=", prefix(2), "a"),
        op("<>", prefix(2), "abc"),
        op("=", prefix(2), "üb"),
        op("=", prefix(0), ""),
        op("=", call("left", vec![column(), int(1)]), "ü"),
    ];
    let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
    for expr in cases {
        let sought = Sought::of(&expr).unwrap_or_else(|| panic!("{expr:?} is known"));
        let passing = expr.filter_indices(std::slice::from_ref(&values), texts.len(), &ctx()).unwrap();
        for (row, text) in texts.iter().enumerate() {
            let found = sought.texts.matches(text.as_bytes()) != sought.negated;
            assert_eq!(found, passing.contains(&(row as u32)), "{text:?} by {expr:?}");
        }
    }
}

#[test]
fn others_are_left_to_expressions() {
    let cases = [
        op("~~", column(), "a_c"),
        op("~~*", column(), "ab%"),
        op("~~", column(), "ab\\"),
        op("~", column(), "ab"),
        op("<", column(), "ab"),
        op("=", call("substring", vec![column(), int(2), int(2)]), "ab"),
        op("=", call("left", vec![column(), int(-1)]), "ab"),
        op("=", call("lower", vec![column()]), "ab"),
    ];
    for expr in cases {
        assert!(Sought::of(&expr).is_none(), "{expr:?}");
    }
}
