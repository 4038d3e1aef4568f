//! Executions that have no room write to disk and give what those give that have.

use super::*;
use crate::plan::{AggregateCall, JoinKey, JoinKind, Plan, SortKey, WindowCall, WindowFrame, WindowFunction};
use crate::testing::{Rows, op};
use basalt_engine::{Engine, EngineConfig};
use basalt_expr::functions::Registry;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_expr::window::{Bound, Exclude, FrameSpec, Ranking, Units};
use basalt_sched::os::hooked::{Hooks, hooked};
use basalt_sched::{File, FileSystem, Os};
use basalt_types::batch::{datum_at, to_stored};
use basalt_types::{DataType, Datum, Version};
use std::io;

mod stopping;

/// With jobs that are shared, by two threads.
fn finished(execution: &mut Execution, running: &Running) -> Result<()> {
    while !execution.finish(running)? {
        let all = || -> Result<()> {
            while running.help()? {}
            Ok(())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(all);
            all().and(other.join().unwrap())
        })?;
    }
    Ok(())
}

/// Memory of so many bytes.
struct Limited {
    bytes_max: usize,
    bytes: AtomicUsize,
}

impl Memory for Limited {
    fn grow(&self, bytes: usize) -> bool {
        let grown = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if grown > self.bytes_max {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        grown <= self.bytes_max
    }

    fn shrink(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A disk that is full after so many bytes.
struct FullDisk {
    left: AtomicUsize,
}

impl Hooks for FullDisk {
    fn write_at(&self, file: &dyn File, buf: &[u8], offset: u64) -> io::Result<()> {
        let fits = |left: usize| left.checked_sub(buf.len());
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => file.write_at(buf, offset),
            Err(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

/// What executions run on.
struct Machine {
    dir: tempfile::TempDir,
    read: ReadContext,
}

/// An execution that ended well, or why not; and what it wrote.
type Ended = (Result<Vec<Vec<Datum>>>, u64);

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(Os::real(), EngineConfig::new(dir.path().join("data")), &|_| {}).unwrap();
        Machine { read: engine.read(Version::ZERO), dir }
    }

    fn run(&self, plan: &Plan, bytes_max: usize) -> Ended {
        self.run_on(plan, bytes_max, Os::real().fs)
    }

    fn tmp(&self) -> std::path::PathBuf {
        self.dir.path().join("tmp")
    }

    fn around(&self, memory: Arc<Limited>, fs: Arc<dyn FileSystem>) -> Surroundings {
        Surroundings {
            read: self.read.clone(),
            ctx: Arc::new(EvalContext::at(0)),
            stop: Stop::default(),
            memory,
            temp: TempSpace::open(fs, &self.tmp(), u64::MAX).unwrap(),
            clock: Os::real().clock,
        }
    }

    fn run_on(&self, plan: &Plan, bytes_max: usize, fs: Arc<dyn FileSystem>) -> Ended {
        let memory = Arc::new(Limited { bytes_max, bytes: AtomicUsize::new(0) });
        let around = self.around(memory.clone(), fs);
        let (temp, tmp) = (around.temp.clone(), self.tmp());
        let mut execution = Execution::new(plan, around).expect("a plan for the engine");
        let rows = rows_of(&mut execution);
        let spilled = execution.spilled_bytes();
        drop(execution);
        assert_eq!(memory.bytes.load(Ordering::Relaxed), 0, "all memory is given back");
        assert_eq!(temp.bytes(), 0, "nothing is left on disk");
        assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0);
        (rows, spilled)
    }

    /// The rows of a plan in memory, once it has been seen that they are the same from disk.
    fn check(&self, what: &str, plan: &Plan, in_order: bool) -> Vec<Vec<Datum>> {
        let sorted = |mut rows: Vec<Vec<Datum>>| {
            rows.sort_by_cached_key(|row| format!("{row:?}"));
            rows
        };
        let (wanted, spilled) = self.run(plan, usize::MAX);
        let wanted = wanted.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(spilled, 0, "{what}: there is room");
        for bytes_max in [0, 64 << 10] {
            let (rows, spilled) = self.run(plan, bytes_max);
            let rows = rows.unwrap_or_else(|error| panic!("{what} in {bytes_max} bytes: {error}"));
            assert!(spilled > 0 || bytes_max > 0, "{what}: it did spill");
            match in_order {
                true => assert!(rows == wanted, "{what} in {bytes_max} bytes: other rows, or another order"),
                false => {
                    let (rows, wanted) = (sorted(rows), sorted(wanted.clone()));
                    assert_eq!(rows.len(), wanted.len(), "{what} in {bytes_max} bytes");
                    assert!(rows == wanted, "{what} in {bytes_max} bytes: other rows");
                }
            }
        }
        wanted
    }
}

/// Two workers in turn.
fn rows_of(execution: &mut Execution) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Vec::new();
    while let Some(running) = execution.start()? {
        let gives = running.stage.cut.is_none() && matches!(running.pipeline.sink, Sink::Give { .. });
        let types: Vec<DataType> = match &running.pipeline.sink {
            Sink::Give { columns, .. } => {
                columns.iter().map(|place| running.pipeline.program.fields[*place].ty.clone()).collect()
            }
            _ => Vec::new(),
        };
        // What may fail late runs twice.
        let before = rows.len();
        for pass in 0..1 + usize::from(gives && running.may_fail_late()) {
            let running = if pass == 0 { running.clone() } else { execution.start()?.expect("the same again") };
            rows.truncate(before);
            let mut workers: Vec<Worker> = (0..running.parallelism(2)).map(|_| running.worker()).collect();
            while !workers.is_empty() {
                let mut open = Vec::new();
                for mut worker in workers {
                    match worker.step()? {
                        Progress::Done => continue,
                        Progress::More(None) => {}
                        Progress::More(Some((columns, count))) => {
                            let stored: Vec<ArrayRef> =
                                columns.iter().zip(&types).map(|(column, ty)| to_stored(ty, column)).collect();
                            let value = |row: usize, at: usize| {
                                datum_at(types[at].phys().expect("a stored type"), &stored[at], row)
                            };
                            rows.extend((0..count).map(|row| (0..types.len()).map(|at| value(row, at)).collect()));
                        }
                    }
                    open.push(worker);
                }
                workers = open;
            }
            if pass == usize::from(gives && running.may_fail_late()) {
                finished(execution, &running)?;
            }
        }
    }
    Ok(rows)
}

/// Rows of [`Rows`] and, as column 8, their numbers.
fn values(count: usize) -> (Plan, Vec<Field>) {
    let mut rows = Rows::new(count);
    let numbers = (0..count as i32).collect::<Vec<i32>>();
    rows.vectors.push(Vector::measured(Arc::new(arrow_array::Int32Array::from(numbers))));
    rows.fields.push(Field::new(DataType::Int4, false));
    let stored = |(vector, field): (&Vector, &Field)| (field.ty.clone(), vector.to_array(field.ty.phys().unwrap()));
    let columns = rows.vectors.iter().zip(&rows.fields).map(stored).collect();
    (Plan::Values { columns, rows: count }, rows.fields)
}

fn column(fields: &[Field], index: usize) -> Expr {
    Expr::Column { index, ty: fields[index].ty.clone() }
}

fn aggregate(name: &str, arg: Option<Expr>, distinct: bool) -> AggregateCall {
    let ctx = EvalContext::at(0);
    let (resolved, args) = resolve::aggregate(Registry::builtin(), name, arg.into_iter().collect(), &ctx).unwrap();
    AggregateCall { resolved, args, filter: None, distinct, heeds_order: false }
}

fn grouped(input: Plan, fields: &[Field], keys: &[usize], distinct: bool) -> Plan {
    let own = |index| Some(column(fields, index));
    let mut calls = vec![
        aggregate("count", None, false),
        aggregate("count", own(3), false),
        aggregate("sum", own(0), false),
        aggregate("sum", own(1), false),
        aggregate("avg", own(3), false),
        aggregate("min", own(4), false),
        aggregate("max", own(1), false),
        aggregate("max", own(6), false),
        aggregate("bool_or", own(7), false),
        aggregate("stddev", own(0), false),
    ];
    if distinct {
        calls.push(aggregate("count", own(6), true));
        calls.push(aggregate("sum", own(4 - 1), true));
        calls.push(aggregate("count", own(8), true));
    }
    let groups = keys.iter().map(|key| column(fields, *key)).collect();
    Plan::Aggregate { input: Box::new(input), groups, dependent: Vec::new(), calls }
}

#[test]
fn groups_are_the_same_from_disk() {
    let machine = Machine::new();
    let (input, fields) = values(12_000);
    for keys in [vec![8], vec![1], vec![4, 6], vec![6, 4, 7], vec![1, 3, 5]] {
        // Of one group, that of nulls, there are too many values to be held.
        for distinct in if keys.contains(&1) { vec![false] } else { vec![false, true] } {
            let plan = grouped(input.clone(), &fields, &keys, distinct);
            let rows = machine.check(&format!("by {keys:?}, distinct {distinct}"), &plan, false);
            assert!(rows.len() > 500);
        }
    }
}

/// Two workers have so many groups each that whoever reads them puts them together, part by part.
#[test]
fn very_many_groups_are_put_together_by_their_readers() {
    const ROWS: usize = 600_000;
    let machine = Machine::new();
    let (input, fields) = values(ROWS);
    let of = |at: usize| Expr::Cast { expr: Box::new(column(&fields, at)), to: DataType::Text, explicit: true };
    let twice = crate::testing::op("/", column(&fields, 8), Expr::int4(2));
    let groups = vec![of(8), twice];
    let calls = vec![aggregate("count", None, false), aggregate("sum", Some(column(&fields, 8)), false)];
    let plan = Plan::Aggregate { input: Box::new(input), groups, dependent: Vec::new(), calls };
    let memory = Arc::new(Limited { bytes_max: usize::MAX, bytes: AtomicUsize::new(0) });
    let mut execution = Execution::new(&plan, machine.around(memory, Os::real().fs)).expect("a plan for the engine");
    let first = execution.start().unwrap().expect("groups are made first");
    let mut workers: Vec<Worker> = (0..2).map(|_| first.worker()).collect();
    while !workers.is_empty() {
        workers.retain_mut(|worker| matches!(worker.step().unwrap(), Progress::More(_)));
    }
    finished(&mut execution, &first).unwrap();
    assert!(matches!(&*execution.made[0].0, Held::PartedGroups(..)));
    let rows = rows_of(&mut execution).unwrap();
    let text = |number: usize| Datum::Bytes(number.to_string().into_bytes().into());
    let mut found: Vec<usize> = rows
        .iter()
        .map(|row| {
            let Datum::I64(number) = row[3] else { panic!("{row:?}") };
            assert_eq!((&row[0], &row[2]), (&text(number as usize), &Datum::I64(1)));
            assert_eq!(row[1], Datum::I32(number as i32 / 2));
            number as usize
        })
        .collect();
    found.sort_unstable();
    assert!(found.into_iter().eq(0..ROWS));
    let reported = execution.report()[0].sink.rows;
    assert_eq!(reported, Some(ROWS as u64), "each is counted once, though what may fail late runs twice");
}

#[test]
fn columns_that_keys_decide_are_the_same_from_disk() {
    let machine = Machine::new();
    let (input, fields) = values(30_000);
    let groups = vec![column(&fields, 6), column(&fields, 8), column(&fields, 2)];
    let calls = vec![aggregate("count", None, false)];
    let plan = Plan::Aggregate { input: Box::new(input), groups, dependent: vec![0, 2], calls };
    assert_eq!(machine.check("decided", &plan, false).len(), 30_000);
}

/// Values of groups that are on disk already come when their parts are put together.
#[test]
fn decided_columns_stay_beside_values_that_come_later() {
    let machine = Machine::new();
    let (input, fields) = values(120_000);
    let groups = vec![column(&fields, 6), column(&fields, 8), column(&fields, 2)];
    let calls = vec![aggregate("count", None, false), aggregate("count", Some(column(&fields, 6)), true)];
    let plan = Plan::Aggregate { input: Box::new(input), groups, dependent: vec![0, 2], calls };
    assert_eq!(machine.check("decided beside values", &plan, false).len(), 120_000);
}

#[test]
fn groups_are_cut_again_where_a_part_has_no_room() {
    let machine = Machine::new();
    let (input, fields) = values(120_000);
    // More than 32 times what is held without being asked for.
    let plan = grouped(input, &fields, &[8, 6], false);
    assert_eq!(machine.check("many groups", &plan, false).len(), 120_000);
}

fn joined(left: &Plan, right: &Plan, fields: &[Field], keys: &[usize], kind: JoinKind, how: How) -> Plan {
    let key =
        |key: &usize| JoinKey { left: column(fields, *key), right: column(fields, *key), null_safe: how.null_safe };
    let width = fields.len();
    let larger = op("<", column(fields, 2), Expr::Column { index: width + 1, ty: fields[2].ty.clone() });
    Plan::Join {
        left: Box::new(left.clone()),
        right: Box::new(right.clone()),
        kind,
        keys: keys.iter().map(key).collect(),
        payload: if kind.gives_partners() || how.residual { vec![8, 2, 6] } else { Vec::new() },
        hold_left: how.hold_left,
        residual: if how.residual { vec![larger] } else { Vec::new() },
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct How {
    null_safe: bool,
    hold_left: bool,
    residual: bool,
}

#[test]
fn joins_are_the_same_from_disk() {
    let machine = Machine::new();
    let ((left, fields), (right, _)) = (values(2500), values(2000));
    let mark = JoinKind::Mark { null_aware: false };
    for keys in [vec![8], vec![4], vec![1], vec![4, 6], vec![5, 2]] {
        for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti, mark] {
            for (null_safe, residual) in [(false, false), (false, true), (true, false)] {
                // Too many nulls that are equal.
                if null_safe && keys == [1] {
                    continue;
                }
                let what = format!("{kind:?} by {keys:?}, residual {residual}, null safe {null_safe}");
                let how = How { null_safe, residual, hold_left: false };
                machine.check(&what, &joined(&left, &right, &fields, &keys, kind, how), false);
                if let JoinKind::Semi | JoinKind::Anti = kind {
                    let how = How { hold_left: true, ..how };
                    let plan = joined(&left, &right, &fields, &keys, kind, how);
                    machine.check(&format!("{what}, left held"), &plan, false);
                }
            }
        }
    }
}

#[test]
fn joins_that_know_nulls_look_at_all_parts() {
    let machine = Machine::new();
    let ((left, fields), (right, _)) = (values(4000), values(3000));
    let valued = |input: &Plan, key: usize| Plan::Filter {
        input: Box::new(input.clone()),
        conditions: vec![Expr::IsNotNull(Box::new(column(&fields, key)))],
        watch: None,
    };
    for kind in [JoinKind::NullAwareAnti, JoinKind::Mark { null_aware: true }] {
        for (what, right) in [("nulls", right.clone()), ("no nulls", valued(&right, 1))] {
            let plan = joined(&left, &right, &fields, &[1], kind, How::default());
            let rows = machine.check(&format!("{kind:?}, {what}"), &plan, false);
            assert_eq!(rows.is_empty(), kind == JoinKind::NullAwareAnti && what == "nulls");
        }
    }
}

#[test]
fn one_partner_is_found_where_there_is_one() {
    let machine = Machine::new();
    let ((left, fields), (right, _)) = (values(4000), values(3000));
    let plan = joined(&left, &right, &fields, &[8], JoinKind::Single, How::default());
    assert_eq!(machine.check("single", &plan, false).len(), 4000);
    let plan = joined(&left, &right, &fields, &[0], JoinKind::Single, How::default());
    let (rows, _) = machine.run(&plan, 0);
    assert!(matches!(rows, Err(Error::Beyond(_))), "several partners");
}

#[test]
fn sides_are_cut_again_where_a_part_has_no_room() {
    let machine = Machine::new();
    let ((left, fields), (right, _)) = (values(40_000), values(60_000));
    for (kind, hold_left) in [(JoinKind::Inner, false), (JoinKind::Left, false), (JoinKind::Anti, true)] {
        let how = How { hold_left, ..How::default() };
        machine.check(&format!("{kind:?}"), &joined(&left, &right, &fields, &[8], kind, how), false);
    }
}

#[test]
fn rows_of_one_key_that_have_no_room_are_left_to_another_engine() {
    let machine = Machine::new();
    let ((left, fields), (right, _)) = (values(100), values(40_000));
    let plan = joined(&left, &right, &fields, &[7], JoinKind::Inner, How::default());
    assert!(matches!(machine.run(&plan, 0).0, Err(Error::Beyond(_))));
}

#[test]
fn a_pipeline_is_broken_at_each_table_on_disk() {
    let machine = Machine::new();
    let (input, fields) = values(3000);
    let first = joined(&input, &input, &fields, &[4], JoinKind::Inner, How { residual: true, ..How::default() });
    // With what the first join found, and a column that is computed from it.
    let wide: Vec<Field> = fields.iter().cloned().chain([8, 2, 6].map(|at: usize| fields[at].clone())).collect();
    let larger = op(">", op("+", column(&wide, 9), column(&wide, 0)), Expr::int4(100));
    let filtered = Plan::Filter { input: Box::new(first), conditions: vec![larger], watch: None };
    let key = JoinKey { left: column(&wide, 9), right: column(&fields, 8), null_safe: false };
    let second = Plan::Join {
        left: Box::new(filtered),
        right: Box::new(input.clone()),
        kind: JoinKind::Left,
        keys: vec![key],
        payload: vec![6, 1],
        hold_left: false,
        residual: Vec::new(),
    };
    machine.check("two joins", &second, false);
    let groups = vec![column(&wide, 11), column(&wide, 8)];
    let calls = vec![aggregate("sum", Some(op("*", column(&wide, 10), column(&wide, 0))), false)];
    let plan = Plan::Aggregate { input: Box::new(second), groups, dependent: Vec::new(), calls };
    machine.check("groups of two joins", &plan, false);
}

/// Parts do not keep an order, and who asked for one gets it, from another engine.
#[test]
fn rows_in_order_are_not_cut() {
    let machine = Machine::new();
    let (input, fields) = values(3000);
    let keys = vec![sort_key(&fields, 8, true, false)];
    let sorted = Plan::Sort { input: Box::new(input.clone()), keys };
    for kind in [JoinKind::Left, JoinKind::Semi] {
        let plan = joined(&sorted, &input, &fields, &[8], kind, How::default());
        let (rows, _) = machine.run(&plan, usize::MAX);
        let numbers = rows.unwrap().into_iter().map(|row| row[8].clone());
        assert!(numbers.eq((0..3000).rev().map(Datum::I32)), "{kind:?}");
        assert!(matches!(machine.run(&plan, 0).0, Err(Error::Beyond(_))), "{kind:?}");
        let again = Plan::Sort { input: Box::new(plan), keys: vec![sort_key(&fields, 8, false, false)] };
        machine.check("an order of its own", &again, true);
    }
}

fn sort_key(fields: &[Field], index: usize, descending: bool, nulls_first: bool) -> SortKey {
    SortKey { expr: column(fields, index), descending, nulls_first }
}

#[test]
fn sorted_rows_are_in_order_from_disk() {
    let machine = Machine::new();
    let (input, fields) = values(30_000);
    for (first, descending, nulls_first) in
        [(0, false, false), (1, true, true), (3, false, true), (5, true, false), (6, false, false), (7, true, true)]
    {
        let keys = vec![sort_key(&fields, first, descending, nulls_first), sort_key(&fields, 8, true, false)];
        let plan = Plan::Sort { input: Box::new(input.clone()), keys };
        machine.check(&format!("by {first}"), &plan, true);
        let exprs = vec![column(&fields, 2), column(&fields, 6)];
        let narrow = Plan::Limit { input: Box::new(plan), offset: 700, limit: Some(25_000) };
        machine.check(&format!("by {first}, limited"), &Plan::Project { input: Box::new(narrow), exprs }, true);
    }
}

#[test]
fn keys_that_do_not_leave_are_kept_with_runs() {
    let machine = Machine::new();
    let (input, fields) = values(30_000);
    let negated = op("-", Expr::int4(0), column(&fields, 8));
    let text = crate::testing::call("upper", vec![column(&fields, 5)]);
    let keys = [text, negated].map(|expr| SortKey { expr, descending: false, nulls_first: true });
    let plan = Plan::Sort { input: Box::new(input), keys: keys.to_vec() };
    machine.check("by expressions", &plan, true);
}

#[test]
fn more_runs_than_are_read_at_once_are_merged_first() {
    let machine = Machine::new();
    let (input, fields) = values(100_000);
    let plan = Plan::Sort { input: Box::new(input), keys: vec![sort_key(&fields, 8, true, false)] };
    let (rows, spilled) = machine.run(&plan, 0);
    let numbers: Vec<Datum> = rows.unwrap().into_iter().map(|mut row| row.swap_remove(8)).collect();
    assert!(numbers.into_iter().eq((0..100_000).rev().map(Datum::I32)));
    assert!(spilled > 0);
}

#[test]
fn windows_are_the_same_from_disk() {
    let machine = Machine::new();
    let (input, fields) = values(30_000);
    let call = |function, frame| WindowCall { function, ty: DataType::Int8, frame };
    let frame = WindowFrame {
        spec: FrameSpec {
            units: Units::Range,
            start: Bound::UnboundedPreceding,
            end: Bound::CurrentRow,
            exclude: Exclude::NoOthers,
        },
        offsets: [None, None],
    };
    let calls = vec![
        call(WindowFunction::Ranking(Ranking::RowNumber), None),
        call(WindowFunction::Ranking(Ranking::Rank), None),
        call(WindowFunction::Aggregate(aggregate("count", Some(column(&fields, 3)), false)), Some(frame.clone())),
        call(WindowFunction::Ranking(Ranking::DenseRank), None),
        call(WindowFunction::Aggregate(aggregate("max", Some(column(&fields, 8)), false)), Some(frame.clone())),
    ];
    let window = |partition: Vec<usize>| Plan::Window {
        input: Box::new(input.clone()),
        partition: partition.iter().map(|key| column(&fields, *key)).collect(),
        order: vec![sort_key(&fields, 6, false, false)],
        arrival: vec![sort_key(&fields, 8, false, false)],
        calls: calls.clone(),
    };
    machine.check("by two columns", &window(vec![4, 5]), true);
    // Where all workers may read it, parts of it: partitions of one row, some, and most rows.
    for keys in [vec![4, 5], vec![8], vec![1, 4], vec![2, 6], vec![6, 3], vec![5], vec![1]] {
        let plan = window(keys.clone());
        let sort = Plan::Sort { input: Box::new(plan.clone()), keys: vec![sort_key(&fields, 8, true, false)] };
        let mut whole = machine.run(&plan, usize::MAX).0.unwrap();
        let number = |row: &Vec<Datum>| if let Datum::I32(number) = row[8] { number } else { panic!("{row:?}") };
        whole.sort_by_key(|row| std::cmp::Reverse(number(row)));
        let parted = machine.run(&sort, usize::MAX).0.unwrap();
        assert!(whole == parted, "by {keys:?}");
        let memory = Arc::new(Limited { bytes_max: usize::MAX, bytes: AtomicUsize::new(0) });
        let mut execution =
            Execution::new(&sort, machine.around(memory, Os::real().fs)).expect("a plan for the engine");
        let first = execution.start().unwrap().expect("rows are sorted first");
        let mut worker = first.worker();
        while matches!(worker.step().unwrap(), Progress::More(_)) {}
        finished(&mut execution, &first).unwrap();
        let Held::PartedWindow(window, _) = &*execution.made[0].0 else { panic!("there are parts by {keys:?}") };
        assert!(window.parts() > 2 && window.rows() == 30_000, "by {keys:?}: {}", window.parts());
    }
    let parted = Plan::Sort { input: Box::new(window(vec![4, 5])), keys: vec![sort_key(&fields, 8, true, false)] };
    machine.check("sorted", &parted, true);
    // Partitions that have no room, of which each row needs only what came before.
    let mut one = window(vec![]);
    let Plan::Window { order, .. } = &mut one else { panic!("it is a window") };
    *order = vec![sort_key(&fields, 8, true, false)];
    machine.check("one partition", &one, true);
    let mut whole = window(vec![1]);
    let Plan::Window { calls, .. } = &mut whole else { panic!("it is a window") };
    calls.truncate(1);
    let spec = FrameSpec { units: Units::Rows, ..frame.spec };
    for name in ["count", "min"] {
        let counted = WindowFunction::Aggregate(aggregate(name, Some(column(&fields, 8)), false));
        calls.push(call(counted, Some(WindowFrame { spec, ..frame.clone() })));
    }
    machine.check("cut anywhere", &whole, true);
    let mut whole = window(vec![]);
    let Plan::Window { calls, .. } = &mut whole else { panic!("it is a window") };
    calls.push(WindowCall { function: WindowFunction::Ranking(Ranking::CumeDist), ty: DataType::Float8, frame: None });
    let (rows, _) = machine.run(&whole, 0);
    assert!(matches!(rows, Err(Error::Beyond(_))), "one partition that has no room, and all of which is needed");
}

#[test]
fn held_rows_are_the_same_from_disk() {
    let machine = Machine::new();
    let (input, fields) = values(30_000);
    let shared = Plan::Shared { number: 1, plan: Arc::new(grouped(input.clone(), &fields, &[8], false)) };
    let plain = |at: usize| Plan::Project {
        input: Box::new(input.clone()),
        exprs: vec![column(&fields, at), column(&fields, 6)],
    };
    machine.check("a union", &Plan::Union { inputs: vec![plain(8), plain(0)] }, true);
    let (ids, count) = (vec![0usize], 30_000);
    let key =
        |at: &usize| JoinKey { left: column(&fields[8..], *at), right: column(&fields[8..], *at), null_safe: false };
    let join = Plan::Join {
        left: Box::new(shared.clone()),
        right: Box::new(shared),
        kind: JoinKind::Inner,
        keys: ids.iter().map(key).collect(),
        payload: vec![1, 3],
        hold_left: false,
        residual: Vec::new(),
    };
    assert_eq!(machine.check("a query that is read twice", &join, false).len(), count);
}

/// Numbers that are reached from the first ones in steps along a table that has no room; with a row for each way there, or
/// for each number.
fn reached(distinct: bool, input: impl Fn(Plan) -> Plan) -> Plan {
    let count = 30_000;
    let ints = |of: &dyn Fn(i32) -> i32| -> (DataType, ArrayRef) {
        (DataType::Int4, Arc::new(arrow_array::Int32Array::from_iter_values((0..count).map(of))))
    };
    let edges = Plan::Values { columns: vec![ints(&|i| i), ints(&|i| (i * 7 + 3) % 30_000)], rows: count as usize };
    let int4 = |index| Expr::Column { index, ty: DataType::Int4 };
    let base = Plan::Filter {
        input: Box::new(edges.clone()),
        conditions: vec![op("<", int4(0), Expr::int4(4000))],
        watch: None,
    };
    let key = JoinKey { left: int4(0), right: int4(0), null_safe: false };
    let join = Plan::Join {
        left: Box::new(Plan::Working { number: 1 }),
        right: Box::new(edges),
        kind: JoinKind::Inner,
        keys: vec![key],
        payload: vec![1],
        hold_left: false,
        residual: Vec::new(),
    };
    let few = Plan::Filter { input: Box::new(join), conditions: vec![op("<", int4(1), Expr::int4(4))], watch: None };
    let next = vec![int4(2), op("+", int4(1), Expr::int4(1))];
    let step = Plan::Project { input: Box::new(few), exprs: next };
    let base = Plan::Project { input: Box::new(base), exprs: vec![int4(0), Expr::int4(0)] };
    input(Plan::Recursive { number: 1, base: Box::new(base), step: Box::new(step), distinct })
}

#[test]
fn recursions_are_the_same_from_disk() {
    let machine = Machine::new();
    let int4 = |index| Expr::Column { index, ty: DataType::Int4 };
    let counted = |input: Plan| {
        let calls = vec![aggregate("count", None, false), aggregate("sum", Some(int4(0)), false)];
        Plan::Aggregate { input: Box::new(input), groups: vec![int4(1)], dependent: Vec::new(), calls }
    };
    let plan = reached(false, |plan| plan);
    assert_eq!(machine.check("rows of each round", &plan, false).len(), 20_000);
    assert_eq!(machine.check("rows of all rounds", &reached(false, counted), false).len(), 5);
    // Those that may not come twice are in memory.
    for plan in [reached(true, |plan| plan), reached(true, counted)] {
        let rows = machine.run(&plan, usize::MAX).0.unwrap().len();
        assert!(rows == 20_000 || rows == 5, "{rows} rows");
        assert!(matches!(machine.run(&plan, 0).0, Err(Error::Beyond(_))));
        assert_eq!(machine.run(&plan, 8 << 20).0.unwrap().len(), rows);
    }
    // What is computed of a row may fail: it is computed twice, but leaves once.
    let tenth = |input| Plan::Project {
        input: Box::new(input),
        exprs: vec![op("/", Expr::int4(10), op("+", int4(1), Expr::int4(1)))],
    };
    assert_eq!(machine.run(&reached(true, tenth), usize::MAX).0.unwrap().len(), 20_000);
}

#[test]
fn a_full_disk_is_told_and_nothing_stays() {
    let machine = Machine::new();
    let (input, fields) = values(30_000);
    let plans = [
        grouped(input.clone(), &fields, &[8], true),
        Plan::Sort { input: Box::new(input.clone()), keys: vec![sort_key(&fields, 6, false, false)] },
        joined(&input, &input, &fields, &[8], JoinKind::Left, How::default()),
        joined(&input, &input, &fields, &[8], JoinKind::Semi, How { hold_left: true, ..How::default() }),
    ];
    for plan in plans {
        let (rows, all) = machine.run(&plan, 0);
        rows.unwrap();
        for left in [0, all / 3, all / 10 * 9] {
            let disk = FullDisk { left: AtomicUsize::new(left as usize) };
            let (rows, _) = machine.run_on(&plan, 0, hooked(disk));
            match rows {
                Err(Error::Temp(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
                other => panic!("{left} of {all} bytes: {other:?}"),
            }
        }
    }
}
