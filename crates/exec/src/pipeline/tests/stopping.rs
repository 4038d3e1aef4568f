//! An execution looks at the stop flag all the time, and ends wherever it finds it set.

use super::*;
use crate::stop::gaps;

/// Processor time between two looks, of the least of some rounds: twice of what is promised, since a processor that
/// others share is slow now and then.
const GAP_MAX: Duration = Duration::from_millis(20);
const ROUNDS: usize = 2;
const ROWS: usize = 300_000;

/// A clock that ends every worker's turn after one block: however long that took, each execution shares blocks out alike,
/// and looks as often.
#[derive(Default)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn monotonic(&self) -> Duration {
        STEPS_TIME * self.0.fetch_add(1, Ordering::Relaxed) as u32
    }

    fn unix_micros(&self) -> i64 {
        0
    }

    fn sleep(&self, _: Duration) {}
}

/// All rows, of which nobody keeps any; and how long nobody looked at the flag.
fn run(machine: &Machine, plan: &Plan, stop: &Stop) -> (Result<()>, Duration) {
    let memory = Arc::new(Limited { bytes_max: usize::MAX, bytes: AtomicUsize::new(0) });
    let around = Surroundings {
        read: machine.read.clone(),
        ctx: Arc::new(EvalContext::at(0)),
        stop: stop.clone(),
        memory: memory.clone(),
        temp: TempSpace::open(Os::real().fs, &machine.dir.path().join("tmp"), u64::MAX).unwrap(),
        clock: Arc::new(Ticks::default()),
    };
    let mut execution = Execution::new(plan, around).expect("a plan for the engine");
    let mut ended = Ok(());
    let longest = gaps::longest(|| ended = to_end(&mut execution));
    drop(execution);
    assert_eq!(memory.bytes.load(Ordering::Relaxed), 0, "all memory is given back");
    (ended, longest)
}

fn to_end(execution: &mut Execution) -> Result<()> {
    while let Some(running) = execution.start()? {
        let mut workers: Vec<Worker> = (0..running.parallelism(2)).map(|_| running.worker()).collect();
        while !workers.is_empty() {
            let mut open = Vec::new();
            for mut worker in workers {
                match worker.steps()? {
                    Progress::Done => {}
                    Progress::More(_) => open.push(worker),
                }
            }
            workers = open;
        }
        while !execution.finish(&running)? {
            while running.help()? {}
        }
    }
    Ok(())
}

/// Rows of [`values`] and, as column 9, texts that differ.
fn many() -> (Plan, Vec<Field>) {
    let (input, mut fields) = values(ROWS);
    let text = Expr::Cast { expr: Box::new(column(&fields, 8)), to: DataType::Text, explicit: true };
    let mut exprs: Vec<Expr> = (0..fields.len()).map(|at| column(&fields, at)).collect();
    exprs.push(crate::testing::call("md5", vec![text]));
    fields.push(Field::new(DataType::Text, false));
    (Plan::Project { input: Box::new(input), exprs }, fields)
}

/// Whether a look comes often enough, and whether the execution ends at each of some looks.
fn check(what: &str, plan: &Plan) {
    let machine = Machine::new();
    let round = |_| {
        let (ended, longest) = run(&machine, plan, &Stop::default());
        ended.unwrap();
        longest
    };
    let longest = (0..ROUNDS).map(round).min().unwrap_or_default();
    println!("{what}: {longest:?} without a look, {} looks", gaps::looks());
    assert!(longest < GAP_MAX, "{what}: {longest:?} without a look");
    let looks = gaps::looks();
    for part in [5, 14, 19] {
        let stop = Stop::default();
        gaps::set_after(looks * part / 20, &stop);
        let (ended, _) = run(&machine, plan, &stop);
        assert!(matches!(ended, Err(Error::Stopped)), "{what}: stopped at {part} of 20");
    }
}

#[test]
fn sorts_end_when_they_are_told_to() {
    let (input, fields) = many();
    let by = |keys: &[usize]| Plan::Sort {
        input: Box::new(input.clone()),
        keys: keys.iter().map(|key| sort_key(&fields, *key, *key == 1, false)).collect(),
    };
    check("a sort by integers", &by(&[1, 4]));
    check("a sort by texts", &by(&[9]));
    check("a sort by equal texts", &by(&[6, 9]));
    check("a sort of sorted rows", &by(&[8]));
    let limited = Plan::Limit { input: Box::new(by(&[9])), offset: 10, limit: Some(ROWS / 2) };
    check("the first half of a sort", &limited);
}

#[test]
fn windows_end_when_they_are_told_to() {
    let (input, fields) = many();
    let call = |function, frame| WindowCall { function, ty: DataType::Int8, frame };
    let frame = |units| WindowFrame {
        spec: FrameSpec { units, start: Bound::UnboundedPreceding, end: Bound::CurrentRow, exclude: Exclude::NoOthers },
        offsets: [None, None],
    };
    let count = |units| {
        call(WindowFunction::Aggregate(aggregate("count", Some(column(&fields, 3)), false)), Some(frame(units)))
    };
    let calls = vec![
        call(WindowFunction::Ranking(Ranking::RowNumber), None),
        call(WindowFunction::Ranking(Ranking::Rank), None),
        count(Units::Rows),
        count(Units::Range),
    ];
    for (what, partition) in [("one partition", vec![]), ("partitions", vec![4]), ("small partitions", vec![8])] {
        let plan = Plan::Window {
            input: Box::new(input.clone()),
            partition: partition.into_iter().map(|key: usize| column(&fields, key)).collect(),
            order: vec![sort_key(&fields, 9, false, false)],
            arrival: vec![sort_key(&fields, 8, false, false)],
            calls: calls.clone(),
        };
        check(&format!("a window over {what}"), &plan);
    }
}

#[test]
fn groups_end_when_they_are_told_to() {
    let (input, fields) = many();
    // Those whose states `expr` has are computed for all groups at once.
    let calls =
        [("count", None), ("sum", Some(0)), ("sum", Some(1)), ("min", Some(4)), ("max", Some(1)), ("max", Some(6))];
    let calls = calls.map(|(name, arg)| aggregate(name, arg.map(|at| column(&fields, at)), false));
    for keys in [vec![8], vec![1], vec![9], vec![2, 9]] {
        let groups = keys.iter().map(|key| column(&fields, *key)).collect();
        let input = Box::new(input.clone());
        let plan = Plan::Aggregate { input, groups, dependent: Vec::new(), calls: calls.to_vec() };
        check(&format!("groups by {keys:?}"), &plan);
    }
    let distinct = Plan::Aggregate {
        input: Box::new(input),
        groups: vec![column(&fields, 0)],
        dependent: Vec::new(),
        calls: [1, 9].map(|at| aggregate("count", Some(column(&fields, at)), true)).to_vec(),
    };
    check("distinct values", &distinct);
}

#[test]
fn joins_end_when_they_are_told_to() {
    let ((input, fields), (few, _)) = (many(), values(1000));
    let count = |input: Plan| Plan::Aggregate {
        input: Box::new(input),
        groups: Vec::new(),
        dependent: Vec::new(),
        calls: vec![aggregate("count", None, false)],
    };
    let table = |keys: &[usize]| {
        let key = |key: &usize| JoinKey { left: column(&fields, *key), right: column(&fields, *key), null_safe: false };
        let left = Plan::Limit { input: Box::new(input.clone()), offset: 0, limit: Some(100) };
        Plan::Join {
            left: Box::new(left),
            right: Box::new(input.clone()),
            kind: JoinKind::Inner,
            keys: keys.iter().map(key).collect(),
            payload: vec![8, 9, 1],
            hold_left: false,
            residual: Vec::new(),
        }
    };
    for keys in [vec![8], vec![1], vec![9], vec![2, 8], vec![9, 2]] {
        check(&format!("a table by {keys:?}"), &count(table(&keys)));
    }
    let how = How { hold_left: true, ..How::default() };
    check("marks", &count(joined(&input, &few, &fields[..9], &[8], JoinKind::Anti, how)));
}
