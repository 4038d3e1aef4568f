use super::contains;
use crate::context::EvalContext;
use crate::error::Result;
use crate::functions::Registry;
use crate::functions::json::set_path::{Change, set_path};
use crate::io::json::{DEPTH_MAX, canonical, check_depth};
use crate::resolve;
use crate::tree::Expr;
use basalt_types::{DataType, Datum};

/// As much as the threads have that run statements.
const STACK_BYTES: usize = 32 << 20;

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

fn objects(depth: usize) -> String {
    "{\"a\": ".repeat(depth) + "1" + &"}".repeat(depth)
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    result.expect_err("it is too deep").sqlstate
}

fn on_a_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).unwrap().join().unwrap();
}

fn jsonb(text: &str) -> (&str, DataType) {
    (text, DataType::Jsonb)
}

/// A call over constants of type `jsonb` and text.
fn call(name: &str, args: &[(&str, DataType)]) -> Result<Datum> {
    let ctx = EvalContext::at(0);
    let args = args.iter().map(|(text, ty)| Expr::Const { value: Datum::text(text), ty: ty.clone() }).collect();
    resolve::call(Registry::builtin(), name, args, &ctx)?.eval_scalar(&[], &ctx)
}

#[test]
fn depth_is_counted_as_the_parser_counts_it() {
    on_a_stack(|| {
        for make in [nested, objects] {
            let (deepest, deeper) = (make(DEPTH_MAX), make(DEPTH_MAX + 1));
            assert_eq!(check_depth(deepest.as_bytes()), Ok(()));
            assert_eq!(canonical(&deepest).unwrap(), deepest);
            let error = check_depth(deeper.as_bytes()).unwrap_err();
            assert_eq!(canonical(&deeper).unwrap_err(), error);
            assert_eq!((error.sqlstate, error.message.as_str()), ("54001", "stack depth limit exceeded"));
        }
        let wide = format!("[{}]", vec!["[]"; 2_000].join(", "));
        assert_eq!(check_depth(wide.as_bytes()), Ok(()));
        let quoted = format!("[{}\"\\\"{}\", []]", "[], ".repeat(1_500), "[".repeat(1_500));
        assert_eq!(check_depth(quoted.as_bytes()), Ok(()));
    });
}

#[test]
fn builders_refuse_what_becomes_too_deep() {
    let (deepest, below) = (nested(DEPTH_MAX), nested(DEPTH_MAX - 1));
    for name in ["jsonb_build_array", "json_build_array"] {
        assert_eq!(code(call(name, &[jsonb(&deepest)])), "54001");
        assert_eq!(call(name, &[jsonb(&below)]), Ok(Datum::text(&deepest)));
    }
    for name in ["jsonb_build_object", "json_build_object"] {
        assert_eq!(code(call(name, &[("key", DataType::Text), jsonb(&deepest)])), "54001");
        assert!(call(name, &[("key", DataType::Text), jsonb(&below)]).is_ok());
    }
    let concat = |left: &str, right: &str| call("jsonb_concat", &[jsonb(left), jsonb(right)]);
    assert_eq!(code(concat("1", &objects(DEPTH_MAX))), "54001");
    assert_eq!(concat("[]", &deepest), Ok(Datum::text(&deepest)));
}

#[test]
fn changes_of_one_place_refuse_what_becomes_too_deep() {
    on_a_stack(|| {
        let steps = |count: usize| vec![Some("a".to_string()); count];
        assert_eq!(code(set_path("{}", &steps(1), &objects(DEPTH_MAX), Change::Create)), "54001");
        assert!(set_path("{}", &steps(1), &objects(DEPTH_MAX - 1), Change::Create).is_ok());
        assert_eq!(code(set_path("{}", &steps(DEPTH_MAX + 1), "1", Change::Assign)), "54001");
        assert!(set_path("{}", &steps(DEPTH_MAX), "1", Change::Assign).is_ok());
        // Stored before depth was checked.
        assert_eq!(code(set_path(&objects(1_500), &steps(1_200), "1", Change::Delete)), "54001");
    });
    let far = |count: usize| vec![Some("2147483647".to_string()); count];
    assert_eq!(code(set_path("[]", &far(1), "1", Change::Assign)), "54000");
    assert_eq!(code(set_path("[]", &far(2), "1", Change::Assign)), "54000");
}

#[test]
fn containment_refuses_what_is_too_deep() {
    on_a_stack(|| {
        for make in [nested, objects] {
            assert_eq!(contains(&make(DEPTH_MAX), &make(DEPTH_MAX)), Ok(true));
            // Stored before depth was checked.
            let deep = make(20 * DEPTH_MAX);
            assert_eq!(code(contains(&deep, &deep)), "54001");
        }
    });
}
