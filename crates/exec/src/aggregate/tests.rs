//! Groups and results are those of `expr`'s accumulators over the same rows, however many workers shared them.

use super::rows::Parted;
use super::*;
use crate::testing::{Rows, decimal, op};
use arrow_array::Array;
use basalt_expr::context::EvalContext;
use basalt_expr::functions::Registry;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use std::collections::BTreeMap;

fn resolved(name: &str, arg: Option<Expr>, ctx: &EvalContext) -> (ResolvedAggregate, Vec<Expr>) {
    resolve::aggregate(Registry::builtin(), name, arg.into_iter().collect(), ctx).unwrap()
}

/// An aggregate, what it takes and which rows, and whether equal values count once.
struct Asked(&'static str, Option<Expr>, Option<Expr>, bool);

/// Groups with distinct values are not put together part by part.
fn calls(rows: &Rows, together: Together) -> Vec<Asked> {
    let all = calls_of_all(rows).into_iter().map(|(name, arg, filter)| Asked(name, arg, filter, false));
    let distinct = if matches!(together, Together::AtOnce) { calls_of_distinct(rows) } else { Vec::new() };
    all.chain(distinct.into_iter().map(|(name, arg, filter)| Asked(name, arg, filter, true))).collect()
}

fn calls_of_distinct(rows: &Rows) -> Vec<(&'static str, Option<Expr>, Option<Expr>)> {
    let column = |index| Some(rows.column(index));
    let positive = || Some(op(">", rows.column(0), Expr::int4(0)));
    vec![
        ("count", column(0), None),
        ("sum", column(0), None),
        ("count", column(5), None),
        ("count", column(5), positive()),
        ("count", column(6), None),
        ("count", column(7), None),
        ("avg", column(3), positive()),
        ("max", column(4), positive()),
        ("sum", column(1), None),
        ("sum", Some(op("*", rows.column(0), rows.column(3))), None),
        ("avg", Some(op("/", rows.column(0), Expr::int4(3))), None),
        ("bool_and", column(7), None),
    ]
}

fn calls_of_all(rows: &Rows) -> Vec<(&'static str, Option<Expr>, Option<Expr>)> {
    let column = |index| Some(rows.column(index));
    let positive = || Some(op(">", rows.column(0), Expr::int4(0)));
    // Sums of these print two digits behind the point, or none.
    let sometimes = |most: i32| {
        let branches = vec![(op("<", rows.column(0), Expr::int4(most)), rows.column(2))];
        resolve::case(branches, Some(Expr::int4(0)), &rows.ctx).ok()
    };
    vec![
        ("count", None, None),
        ("count", column(3), None),
        ("count", column(5), positive()),
        ("sum", column(0), None),
        ("sum", column(1), positive()),
        ("sum", column(2), None),
        // Of these the column's own sum tells.
        ("sum", Some(op("+", rows.column(0), Expr::int4(7))), None),
        ("avg", Some(op("-", Expr::int4(7), op("*", Expr::int4(3), rows.column(0)))), positive()),
        ("sum", Some(op("*", op("-", rows.column(3), decimal(350)), Expr::int4(-2))), None),
        ("sum", Some(op("*", rows.column(1), Expr::int4(0))), None),
        ("avg", Some(op("+", rows.column(2), decimal(12_345))), positive()),
        ("avg", column(3), None),
        ("avg", column(0), positive()),
        ("sum", Some(op("*", rows.column(2), rows.column(3))), None),
        ("sum", sometimes(-8), None),
        ("avg", sometimes(-9), positive()),
        ("avg", sometimes(0), None),
        ("max", sometimes(-9), None),
        ("min", column(4), None),
        ("max", column(1), None),
        ("max", column(3), positive()),
        ("min", column(6), None),
        ("bool_or", column(7), None),
    ]
}

fn shown(vector: &Vector, field: &Field, ctx: &EvalContext) -> Vec<String> {
    let array = logical(vector, &field.held());
    let array = basalt_expr::cast::cast_array(&field.held(), &DataType::Text, &array, true, ctx).unwrap();
    let texts = arrow_array::cast::AsArray::as_string_view(&*array);
    texts.iter().map(|text| text.map_or("NULL".to_string(), str::to_string)).collect()
}

/// How workers' groups come together.
#[derive(Clone, Copy, Debug)]
enum Together {
    AtOnce,
    PartByPart,
}

/// Keys and results of each group.
fn grouped(
    rows: &Rows,
    keys: &[usize],
    dependent: &[usize],
    workers: usize,
    together: Together,
) -> BTreeMap<Vec<String>, Vec<String>> {
    let mut program = Program::new(rows.fields.clone());
    let mut compiled = Vec::new();
    for Asked(name, arg, filter, distinct) in calls(rows, together) {
        let (resolved, args) = resolved(name, arg, &rows.ctx);
        let (args, digits) = match (name, args.as_slice()) {
            ("sum" | "avg", [arg]) if !distinct => {
                let (place, digits) = program.define_summand(arg, &rows.ctx);
                (vec![place], digits)
            }
            (_, args) => (args.iter().map(|arg| program.define(arg, &rows.ctx)).collect(), None),
        };
        let filter = filter.map(|filter| program.condition(&filter, &rows.ctx));
        compiled.push(Call { resolved, args, digits, filter, distinct, counts: None });
    }
    let spec = Arc::new(Spec::new(&program, keys, dependent, compiled).unwrap());
    let mut work = Work::new(Arc::new(program), rows.ctx.clone(), Vec::new());
    let mut all: Vec<Aggregation> = (0..workers).map(|_| Aggregation::new(&spec)).collect();
    for (at, from) in (0..rows.count).step_by(170).enumerate() {
        let part: Vec<u32> = (from as u32..(from + 170).min(rows.count) as u32).collect();
        let vectors: Vec<Vector> = rows.vectors.iter().map(|vector| vector.take(&part)).collect();
        let mut batch = Batch::of_vectors(&vectors, part.len(), &work);
        all[at % workers].add(&mut batch, &mut work).unwrap();
    }
    let parts = match together {
        Together::AtOnce => {
            let mut one = all.remove(0);
            all.into_iter().for_each(|other| one.merge(other).unwrap());
            vec![one.finish().unwrap()]
        }
        Together::PartByPart => {
            let parted = Parted::new(all.into_iter().map(|own| own.into_rows().unwrap().dealt().unwrap()).collect());
            (0..parted.parts()).map(|part| parted.open(part).unwrap()).collect()
        }
    };
    let mut groups = BTreeMap::new();
    for done in parts {
        let columns = columns_of(&done);
        let texts: Vec<Vec<String>> =
            columns.iter().zip(spec.fields()).map(|(column, field)| shown(column, &field, &rows.ctx)).collect();
        for at in 0..done.groups() {
            let row: Vec<String> = texts.iter().map(|column| column[at].clone()).collect();
            let other = groups.insert(row[..keys.len()].to_vec(), row[keys.len()..].to_vec());
            assert_eq!(other, None, "a group is in one part");
        }
    }
    groups
}

/// The same by `expr` alone, group by group.
fn expected(rows: &Rows, keys: &[usize], together: Together) -> BTreeMap<Vec<String>, Vec<String>> {
    let arrays: Vec<ArrayRef> =
        rows.vectors.iter().zip(&rows.fields).map(|(vector, field)| logical(vector, &field.held())).collect();
    let key_texts: Vec<Vec<String>> =
        keys.iter().map(|key| shown(&rows.vectors[*key], &rows.fields[*key], &rows.ctx)).collect();
    let mut groups: BTreeMap<Vec<String>, u32> = BTreeMap::new();
    let of_row: Vec<u32> = (0..rows.count)
        .map(|row| {
            let next = groups.len() as u32;
            *groups.entry(key_texts.iter().map(|column| column[row].clone()).collect()).or_insert(next)
        })
        .collect();
    let mut results = vec![Vec::new(); groups.len()];
    for Asked(name, arg, filter, distinct) in calls(rows, together) {
        let (resolved, args) = resolved(name, arg, &rows.ctx);
        let args: Vec<ArrayRef> = args.iter().map(|arg| arg.eval(&arrays, rows.count, &rows.ctx).unwrap()).collect();
        let filter = filter.map(|filter| filter.eval(&arrays, rows.count, &rows.ctx).unwrap());
        let filter = filter.as_deref().map(arrow_array::cast::AsArray::as_boolean);
        let first = distinct.then(|| first_of_each(&of_row, &args[0], &resolved.arg_types[0], filter, &rows.ctx));
        let filter = first.as_ref().or(filter);
        let mut accumulator = resolved.accumulator();
        accumulator.update(&of_row, &args, filter, groups.len()).unwrap();
        let values = accumulator.evaluate().unwrap();
        let values = basalt_expr::cast::cast_array(&resolved.ty, &DataType::Text, &values, true, &rows.ctx).unwrap();
        let texts = arrow_array::cast::AsArray::as_string_view(&*values);
        texts.iter().zip(&mut results).for_each(|(text, out)| out.push(text.unwrap_or("NULL").to_string()));
    }
    groups.into_iter().map(|(key, group)| (key, results[group as usize].clone())).collect()
}

/// Of rows that pass, the first with its group and value.
fn first_of_each(
    groups: &[u32],
    values: &ArrayRef,
    ty: &DataType,
    filter: Option<&BooleanArray>,
    ctx: &EvalContext,
) -> BooleanArray {
    let texts = basalt_expr::cast::cast_array(ty, &DataType::Text, values, true, ctx).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let pairs = groups.iter().zip(arrow_array::cast::AsArray::as_string_view(&*texts)).enumerate();
    let mut first = |(row, (group, text)): (usize, (&u32, Option<&str>))| {
        let passes = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        Some(passes && seen.insert((*group, text.map(str::to_string))))
    };
    pairs.map(&mut first).collect()
}

#[test]
fn results_are_those_of_accumulators() {
    let rows = Rows::new(1000);
    for keys in [vec![], vec![5], vec![0], vec![5, 0], vec![6, 5], vec![1], vec![4, 6], vec![3, 0]] {
        for together in [Together::AtOnce, Together::PartByPart] {
            let expected = expected(&rows, &keys, together);
            for workers in [1, 3] {
                // Without keys there are no parts.
                if !keys.is_empty() || matches!(together, Together::AtOnce) {
                    let groups = grouped(&rows, &keys, &[], workers, together);
                    assert_eq!(groups, expected, "by {keys:?}, {workers} workers, {together:?}");
                }
            }
        }
    }
}

#[test]
fn without_keys_no_rows_are_a_group() {
    let rows = Rows::new(0);
    let all = grouped(&rows, &[], &[], 2, Together::AtOnce);
    assert_eq!(all.len(), 1);
    assert_eq!(all[&Vec::new()][..4], ["0", "0", "0", "NULL"].map(str::to_string));
    for together in [Together::AtOnce, Together::PartByPart] {
        assert!(grouped(&rows, &[5], &[], 2, together).is_empty());
    }
}

#[test]
fn what_keys_decide_comes_from_any_row_of_the_group() {
    let mut rows = Rows::new(1000);
    // Texts and amounts that the first column decides.
    let of = |row: usize| (rows.column_values(0)[row] + 10) as u32;
    let decided: Vec<u32> = (0..1000).map(of).collect();
    rows.vectors[5] = rows.vectors[5].take(&decided);
    rows.vectors[2] = rows.vectors[2].take(&decided);
    for (workers, together) in [(1, Together::AtOnce), (3, Together::AtOnce), (3, Together::PartByPart)] {
        let groups = grouped(&rows, &[5, 0, 2], &[0, 2], workers, together);
        assert_eq!(groups, expected(&rows, &[5, 0, 2], together), "{workers} workers, {together:?}");
    }
}

/// Keys and values.
type Page = Vec<(i64, i64)>;

/// Pages of keys that ascend, in order, and the keys that two of them may share. These have the greatest values, of which
/// no page has all.
fn pages() -> (Vec<Page>, Arc<[i64]>) {
    let rows: Vec<(i64, i64)> = (0..40_000).map(|row| (row / 10, 1)).collect();
    let mut pages: Vec<Page> = rows.chunks(3003).map(<[(i64, i64)]>::to_vec).collect();
    let mut shared: Vec<i64> = pages.iter().flat_map(|page| [page[0].0, page[page.len() - 1].0]).collect();
    shared.dedup();
    let is_shared = |key: i64| shared.binary_search(&key).is_ok();
    pages.iter_mut().flatten().filter(|(key, _)| is_shared(*key)).for_each(|(_, value)| *value = 100);
    (pages, shared.into())
}

fn summed(least: i64) -> (Arc<Spec>, Arc<Program>, Arc<EvalContext>) {
    let ctx = Arc::new(EvalContext::at(0));
    let fields = vec![Field::new(DataType::Int8, false), Field::new(DataType::Int8, false)];
    let mut program = Program::new(fields);
    let (resolved, args) = resolved("sum", Some(Expr::Column { index: 1, ty: DataType::Int8 }), &ctx);
    let args = args.iter().map(|arg| program.define(arg, &ctx)).collect();
    let call = Call { resolved, args, digits: None, filter: None, distinct: false, counts: None };
    let mut spec = Spec::new(&program, &[0], &[], vec![call]).unwrap();
    let mut having = Program::new(spec.fields());
    let sum = Expr::Column { index: 1, ty: having.fields[1].ty.clone() };
    let condition = op(">", sum, Expr::int4(least as i32));
    let condition = having.condition(&condition, &ctx);
    spec.have(&having, &[condition]);
    (Arc::new(spec), Arc::new(program), ctx)
}

/// All columns, of which those of some groups are the same.
fn columns_of(groups: &Finished) -> Vec<Vector> {
    let fields = groups.spec.fields().into_iter().enumerate();
    let columns = fields.map(|(at, field)| {
        let all = groups.column(at, 0..groups.groups()).unwrap();
        let ty = field.held().phys().unwrap();
        let from = groups.groups() / 3;
        let rows: Vec<u32> = (0..(groups.groups() - from) as u32).step_by(3).collect();
        let some = groups.column_at(at, from, &rows).unwrap().to_array(ty);
        let expected: Vec<u32> = rows.iter().map(|row| row + from as u32).collect();
        assert_eq!(&some, &all.take(&expected).to_array(ty));
        all
    });
    columns.collect()
}

fn sums(groups: Aggregation) -> BTreeMap<i64, i128> {
    sums_of(&groups.finish().unwrap())
}

fn sums_of(groups: &Finished) -> BTreeMap<i64, i128> {
    let columns = columns_of(groups);
    let value = |column: &Vector, row| match column {
        Vector::Ints(ints) => ints.values.get(row),
        Vector::Flat(_) | Vector::Codes(_) => panic!("integers"),
    };
    (0..groups.groups()).map(|row| (value(&columns[0], row) as i64, value(&columns[1], row))).collect()
}

/// Of two workers that take pages in turn: none of the groups that pass is missing or less than whole.
fn check_early(pages: &[Page], shared: &Arc<[i64]>) {
    let mut expected = BTreeMap::new();
    pages.iter().flatten().for_each(|(key, value)| *expected.entry(*key).or_insert(0i128) += i128::from(*value));
    for (least, leaves) in [(900, true), (-1, false), (100_000, true)] {
        let (spec, program, ctx) = summed(least);
        let mut workers = [Aggregation::new(&spec), Aggregation::new(&spec)];
        workers.iter_mut().for_each(|groups| groups.leave_early(shared.clone(), &ctx));
        let mut work = Work::new(program, ctx.clone(), Vec::new());
        for (at, page) in pages.iter().enumerate() {
            let column = |of: fn(&(i64, i64)) -> i64| {
                let values = IntValues::I64(page.iter().map(of).collect());
                Vector::Ints(Ints::measured(values, None))
            };
            let columns = [column(|row| row.0), column(|row| row.1)];
            let mut batch = Batch::of_vectors(&columns, page.len(), &work);
            workers[at / 2 % 2].add(&mut batch, &mut work).unwrap();
        }
        let left = workers.iter().map(Aggregation::left_early).sum::<usize>();
        assert_eq!(left > 0, leaves, "least {least}");
        let [mut all, other] = workers;
        all.merge(other).unwrap();
        let found = sums(all);
        // A key between two workers is counted by both.
        assert!(found.len() + left >= expected.len() && (!leaves || found.len() < expected.len() / 4));
        let passing = expected.iter().filter(|(_, sum)| **sum > i128::from(least));
        passing.for_each(|(key, sum)| assert_eq!(found.get(key), Some(sum), "{key}: it passes"));
        found.iter().for_each(|(key, sum)| assert_eq!(expected[key], *sum, "{key}"));
    }
}

/// Rows in the order of their keys, and then some more of them from the front, again and again, as hot rows come behind
/// those of files.
#[test]
fn keys_that_begin_anew_are_put_together_with_those_before() {
    let (spec, program, ctx) = summed(-1);
    for (again, workers) in [(1, 1), (1, 2), (2, 3), (6, 2)] {
        let mut all: Vec<Aggregation> = (0..workers).map(|_| Aggregation::new(&spec)).collect();
        let mut work = Work::new(program.clone(), ctx.clone(), Vec::new());
        let mut expected = BTreeMap::new();
        for turn in 0..=again {
            let step = if turn == 0 { 1 } else { 3 + turn };
            let rows: Vec<(i64, i64)> = (0..60_000).step_by(step).map(|row| (row as i64 / 2, row as i64 % 7)).collect();
            for (at, page) in rows.chunks(5000).enumerate() {
                page.iter().for_each(|(key, value)| *expected.entry(*key).or_insert(0i128) += i128::from(*value));
                let column = |of: fn(&(i64, i64)) -> i64| {
                    Vector::Ints(Ints::measured(IntValues::I64(page.iter().map(of).collect()), None))
                };
                let columns = [column(|row| row.0), column(|row| row.1)];
                all[at % workers].add(&mut Batch::of_vectors(&columns, page.len(), &work), &mut work).unwrap();
            }
        }
        assert!(
            all.iter().all(|groups| groups.strands.len() == again.min(strands::STRANDS_MAX)),
            "they are kept apart"
        );
        let mut workers = all.into_iter();
        let mut groups = workers.next().unwrap();
        workers.for_each(|worker| groups.merge(worker).unwrap());
        let done = groups.finish().unwrap();
        assert_eq!(done.groups(), expected.len(), "each key is there once");
        assert_eq!(sums_of(&done), expected, "{again} times again");
    }
}

#[test]
fn groups_that_a_condition_rules_out_leave_with_their_page() {
    let (pages, shared) = pages();
    check_early(&pages, &shared);
}

/// Control: where it is not told which keys pages share, some leave before they are whole.
#[test]
#[should_panic(expected = "it passes")]
fn groups_that_leave_too_soon_are_found() {
    let (pages, _) = pages();
    check_early(&pages, &Arc::from([]));
}
