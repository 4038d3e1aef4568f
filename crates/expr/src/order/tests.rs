use crate::cast::CastContext;
use crate::context::EvalContext;
use crate::functions::Registry;
use crate::resolve;
use crate::tree::Expr;
use basalt_types::{DataType, Datum};

fn ctx() -> EvalContext {
    EvalContext::at(0)
}

fn column(ty: DataType) -> Expr {
    Expr::Column { index: 0, ty }
}

fn op(symbol: &str, left: Expr, right: Expr) -> Expr {
    resolve::operator(Registry::builtin(), symbol, Some(left), right, &ctx()).unwrap()
}

fn as_int(expr: Expr) -> Expr {
    resolve::coerce(expr, &DataType::Int4, CastContext::Explicit, &ctx()).unwrap()
}

#[test]
fn comparisons_cannot_fail_and_cost_one_call() {
    for ty in [DataType::Int4, DataType::Int8, DataType::Text, DataType::Date, DataType::Numeric(None)] {
        let expr = op("<=", column(ty.clone()), column(ty));
        assert!(expr.is_total());
        assert_eq!(expr.cost(), 1.0);
    }
    assert!(op("<", column(DataType::Date), column(DataType::Timestamp)).is_total());
    assert!(op("~~", column(DataType::Text), Expr::text("a%")).is_total());
    assert!(!op("~~", column(DataType::Text), Expr::text("a\\")).is_total());
    let padded = |text: &str| Expr::Const { value: Datum::text(text), ty: DataType::Bpchar(None) };
    let list = vec![padded("a"), padded("b")];
    let probe = column(DataType::Bpchar(Some(10)));
    let listed = resolve::in_list(Registry::builtin(), probe, list, &|_| false, false, &ctx());
    assert!(listed.unwrap().is_total(), "char(n) loses its length and nothing else");
}

#[test]
fn divisions_sums_and_texts_that_are_read_may_fail() {
    let int = || column(DataType::Int4);
    assert!(!op("=", op("/", Expr::int4(1), int()), Expr::int4(1)).is_total());
    assert!(!op("=", op("+", Expr::int4(1), int()), Expr::int4(1)).is_total());
    let read = op(">", as_int(column(DataType::Text)), Expr::int4(1));
    assert!(!read.is_total());
    assert_eq!(read.cost(), 3.0);
    assert!(
        !op(
            "=",
            column(DataType::Array(Box::new(DataType::Jsonb))),
            column(DataType::Array(Box::new(DataType::Jsonb)))
        )
        .is_total()
    );
}

#[test]
fn conditions_are_the_parts_of_and_and_of_negated_or() {
    let is = |index: usize| Expr::Column { index, ty: DataType::Bool };
    let not = |expr: Expr| Expr::Not(Box::new(expr));
    let whole = Expr::And(vec![is(0), not(Expr::Or(vec![is(1), not(is(2))])), not(Expr::And(vec![is(3), is(4)]))]);
    let parts = vec![is(0), not(is(1)), is(2), not(Expr::And(vec![is(3), is(4)]))];
    assert_eq!(whole.conditions(), parts);
    assert_eq!(not(Expr::And(vec![not(is(0)), is(1)])).conditions(), vec![Expr::Or(vec![is(0), not(is(1))])]);
}

#[test]
fn cheap_conditions_come_before_dear_ones() {
    let equal = op("=", column(DataType::Int4), Expr::int4(1));
    let divided = op(">", op("/", Expr::int4(10), column(DataType::Int4)), Expr::int4(1));
    assert!(equal.cost() < divided.cost());
    let list = |count: i32| Expr::InList {
        expr: Box::new(column(DataType::Int4)),
        list: (0..count).map(Expr::int4).collect(),
        equal: match op("=", column(DataType::Int4), Expr::int4(1)) {
            Expr::Call { function, .. } => function,
            other => panic!("{other:?} is no call"),
        },
        negated: false,
    };
    assert_eq!([1, 2, 4, 8, 9, 100].map(|count| list(count).cost()), [1.0, 1.0, 2.0, 4.0, 2.0, 2.0]);
}

#[test]
fn substrings_of_known_length_cannot_fail() {
    let substring = |args: Vec<Expr>| resolve::call(Registry::builtin(), "substring", args, &ctx()).unwrap();
    let text = || column(DataType::Text);
    assert!(substring(vec![text(), Expr::int4(1), Expr::int4(2)]).is_total());
    assert!(!substring(vec![text(), Expr::int4(1), Expr::int4(-2)]).is_total());
    assert!(!substring(vec![text(), Expr::text("(")]).is_total());
}

#[test]
fn what_all_operands_of_or_ask_for_comes_first() {
    let is = |index: usize| Expr::Column { index, ty: DataType::Bool };
    let or = Expr::Or(vec![
        Expr::And(vec![is(0), is(1), is(2)]),
        Expr::And(vec![is(3), is(0)]),
        Expr::And(vec![is(0), is(4), is(0)]),
    ]);
    let rest = Expr::Or(vec![Expr::And(vec![is(1), is(2)]), is(3), is(4)]);
    assert_eq!(or.conditions(), vec![is(0), rest]);
    // One that asks for nothing else decides.
    assert_eq!(Expr::Or(vec![is(0), Expr::And(vec![is(1), is(0)])]).conditions(), vec![is(0)]);
    let none = Expr::Or(vec![is(0), is(1)]);
    assert_eq!(none.clone().conditions(), vec![none]);
}
