use super::*;
use arrow_array::Int64Array;
use basalt_types::DataType;

fn column(index: usize) -> Expr {
    Expr::Column { index, ty: DataType::Int8 }
}

fn values(of: Vec<i64>, note: usize) -> Plan {
    let rows = of.len();
    let plan = Plan::Values { columns: vec![(DataType::Int8, Arc::new(Int64Array::from(of)))], rows };
    plan.noted(note)
}

fn join(left: Plan, right: Plan) -> Plan {
    let keys = vec![JoinKey { left: column(0), right: column(0), null_safe: false }];
    let (payload, residual) = (vec![0], Vec::new());
    let (left, right) = (Box::new(left), Box::new(right));
    Plan::Join { left, right, kind: JoinKind::Inner, keys, payload, hold_left: false, residual }
}

#[test]
fn equal_sides_are_built_once() {
    let ctx = EvalContext::at(0);
    let built = |plan: Plan| {
        let (pipelines, _) = pipelines(&plan, &ctx).unwrap();
        pipelines.iter().filter(|pipeline| matches!(pipeline.sink, Sink::Build(_))).count()
    };
    let twice = join(join(values(vec![1, 2], 1), values(vec![2, 3], 2)), values(vec![2, 3], 3));
    assert_eq!(built(twice), 1);
    let others = join(join(values(vec![1, 2], 1), values(vec![2, 3], 2)), values(vec![2, 4], 3));
    assert_eq!(built(others), 2);
    // What is built of equal tables is equal, too.
    let side = |note| join(values(vec![2, 3], note), values(vec![5], note + 1));
    let deep = join(join(values(vec![1, 2], 1), side(2)), side(4));
    assert_eq!(built(deep), 2);
}
