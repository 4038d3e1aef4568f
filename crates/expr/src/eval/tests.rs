use crate::context::EvalContext;
use crate::eval::vector::{from_values, value_at};
use crate::functions::Registry;
use crate::resolve;
use crate::tree::{Expr, Truth};
use arrow_array::ArrayRef;
use basalt_types::{DataType, Datum};

fn ctx() -> EvalContext {
    EvalContext::at(0)
}

fn ints(values: &[Option<i32>]) -> ArrayRef {
    let values: Vec<Datum> = values.iter().map(|value| value.map_or(Datum::Null, Datum::I32)).collect();
    from_values(&DataType::Int4, values.iter(), values.len()).unwrap()
}

fn column(index: usize) -> Expr {
    Expr::Column { index, ty: DataType::Int4 }
}

fn op(symbol: &str, left: Expr, right: Expr) -> Expr {
    resolve::operator(Registry::builtin(), symbol, Some(left), right, &ctx()).unwrap()
}

/// Both ways, which must agree row by row.
fn run(expr: &Expr, columns: &[ArrayRef]) -> Vec<Datum> {
    let (ty, rows) = (expr.ty(), columns[0].len());
    let array = expr.eval(columns, rows, &ctx()).unwrap();
    assert_eq!(array.len(), rows);
    (0..rows)
        .map(|row| {
            let values: Vec<Datum> =
                columns.iter().map(|column| value_at(&DataType::Int4, column.as_ref(), row)).collect();
            let value = value_at(&ty, array.as_ref(), row);
            assert_eq!(expr.eval_scalar(&values, &ctx()).unwrap(), value, "row {row}");
            value
        })
        .collect()
}

#[test]
fn case_never_divides_where_it_does_not_look() {
    let branches = vec![(op("<>", column(0), Expr::int4(0)), op("/", Expr::int4(12), column(0)))];
    let guarded = resolve::case(branches, Some(Expr::int4(-1)), &ctx()).unwrap();
    let got = run(&guarded, &[ints(&[Some(3), Some(0), None, Some(4), Some(0)])]);
    assert_eq!(got, [4, -1, -1, 3, -1].map(Datum::I32));
}

#[test]
fn and_stops_at_false_and_or_at_true() {
    let divides = op(">", op("/", Expr::int4(12), column(0)), Expr::int4(3));
    let all = [ints(&[Some(3), Some(0), None, Some(12), Some(0), Some(0), Some(0), Some(0), Some(0)])];
    let guarded = Expr::And(vec![op("<>", column(0), Expr::int4(0)), divides.clone()]);
    let got = run(&guarded, &all);
    assert_eq!(got[..4], [Datum::Bool(true), Datum::Bool(false), Datum::Null, Datum::Bool(false)]);
    let guarded = Expr::Or(vec![op("=", column(0), Expr::int4(0)), divides.clone()]);
    let got = run(&guarded, &all);
    assert_eq!(got[..4], [Datum::Bool(true), Datum::Bool(true), Datum::Null, Datum::Bool(false)]);
    assert_eq!(guarded.filter_indices(&all, 9, &ctx()).unwrap(), [0, 1, 4, 5, 6, 7, 8]);
    assert_eq!(divides.eval(&all, 9, &ctx()).unwrap_err().sqlstate, "22012");
}

#[test]
fn logic_is_three_valued() {
    let values = [Some(true), Some(false), None];
    for a in values {
        for b in values {
            let constant =
                |value: Option<bool>| Expr::Const { value: value.map_or(Datum::Null, Datum::Bool), ty: DataType::Bool };
            let and = match (a, b) {
                (Some(false), _) | (_, Some(false)) => Datum::Bool(false),
                (Some(true), Some(true)) => Datum::Bool(true),
                _ => Datum::Null,
            };
            assert_eq!(run(&Expr::And(vec![constant(a), constant(b)]), &[ints(&[None, Some(1)])]), [and.clone(), and]);
        }
    }
}

#[test]
fn coalesce_nullif_and_tests_of_null() {
    let columns = [ints(&[Some(1), None, None]), ints(&[Some(1), Some(5), None])];
    let coalesce = resolve::coalesce(vec![column(0), column(1), Expr::int4(9)], &ctx()).unwrap();
    assert_eq!(run(&coalesce, &columns), [1, 5, 9].map(Datum::I32));
    let nullif = resolve::nullif(Registry::builtin(), column(1), Expr::int4(1), &ctx()).unwrap();
    assert_eq!(run(&nullif, &columns), [Datum::Null, Datum::I32(5), Datum::Null]);
    let distinct = resolve::distinct(Registry::builtin(), column(0), column(1), false, &ctx()).unwrap();
    assert_eq!(run(&distinct, &columns), [false, true, false].map(Datum::Bool));
    let least = resolve::extreme(vec![column(0), column(1), Expr::int4(3)], false, &ctx()).unwrap();
    assert_eq!(run(&least, &columns), [1, 3, 3].map(Datum::I32));
    let unknown =
        Expr::BoolTest { expr: Box::new(op("=", column(0), Expr::int4(1))), truth: Truth::Unknown, negated: true };
    assert_eq!(run(&unknown, &columns), [true, false, false].map(Datum::Bool));
}

#[test]
fn in_lists_and_any_know_nulls() {
    let columns = [ints(&[Some(1), Some(4), None])];
    let list = |values: Vec<Expr>, negated| {
        resolve::in_list(Registry::builtin(), column(0), values, &|_| false, negated, &ctx()).unwrap()
    };
    let plain = list(vec![Expr::int4(1), Expr::int4(2)], false);
    assert_eq!(run(&plain, &columns), [Datum::Bool(true), Datum::Bool(false), Datum::Null]);
    let with_null = list(vec![Expr::int4(1), Expr::null(DataType::Unknown)], true);
    assert_eq!(run(&with_null, &columns), [Datum::Bool(false), Datum::Null, Datum::Null]);
    let array = resolve::array_literal(vec![Expr::int4(4), Expr::int4(7)], None, &ctx()).unwrap();
    let any = resolve::any_all(Registry::builtin(), column(0), "=", array.clone(), false, &ctx()).unwrap();
    assert_eq!(run(&any, &columns), [Datum::Bool(false), Datum::Bool(true), Datum::Null]);
    let all = resolve::any_all(Registry::builtin(), column(0), "<", array, true, &ctx()).unwrap();
    assert_eq!(run(&all, &columns), [Datum::Bool(true), Datum::Bool(false), Datum::Null]);
}

#[test]
fn folding_leaves_errors_to_the_row_that_reaches_them() {
    let sum = op("+", Expr::int4(1), op("*", Expr::int4(2), Expr::int4(3)));
    assert_eq!(sum.fold(&ctx(), false), Expr::int4(7));
    let failing = op("/", Expr::int4(1), Expr::int4(0));
    assert_eq!(failing.clone().fold(&ctx(), false), failing);
    let random = resolve::call(Registry::builtin(), "random", Vec::new(), &ctx()).unwrap();
    assert_eq!(random.clone().fold(&ctx(), true), random);
}

#[test]
fn narrowed_products_beyond_38_digits_ask_for_the_wide_form() {
    let ty = DataType::Numeric(Some((20, 2)));
    let huge = Datum::I128(99_999_999_999_999_999_999);
    let columns = [from_values(&ty, [huge.clone(), huge].iter(), 2).unwrap()];
    let column = Expr::Column { index: 0, ty };
    let square = op("*", column.clone(), column.clone());
    assert_eq!(square.ty(), DataType::Numeric(None));
    let value = value_at(&square.ty(), square.eval(&columns, 2, &ctx()).unwrap().as_ref(), 0);
    let mut text = Vec::new();
    crate::io::text::format(&square.ty(), &value, &ctx(), &mut text).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "999999999999999999980000000000000000.0001");
    let narrow = square.narrow().unwrap();
    assert_eq!(narrow.ty(), DataType::Numeric(Some((38, 4))));
    assert_eq!(narrow.eval(&columns, 2, &ctx()).unwrap_err().sqlstate, resolve::decimal::TOO_WIDE);
    let small = [from_values(&DataType::Numeric(Some((20, 2))), [Datum::I128(150)].iter(), 1).unwrap()];
    let value = value_at(&narrow.ty(), narrow.eval(&small, 1, &ctx()).unwrap().as_ref(), 0);
    assert_eq!(value, Datum::I128(22_500));
    assert!(op("+", column.clone(), column).narrow().is_none(), "its bound proves that it fits");
}
