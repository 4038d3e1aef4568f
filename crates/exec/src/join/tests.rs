//! Joins give the pairs that comparing every row with every other gives.

use super::assembly::Next;
use super::*;
use crate::program::{Program, logical};
use crate::testing::{Rows, op};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Float64Array};
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use basalt_types::vector::{IntValues, Ints};

/// Rows with their own number as the last column.
fn numbered(count: usize, step: usize) -> Rows {
    let mut rows = Rows::new(count * step);
    let at: Vec<u32> = (0..rows.count as u32).step_by(step).collect();
    rows.vectors = rows.vectors.iter().map(|vector| vector.take(&at)).collect();
    rows.count = at.len();
    rows.vectors.push(Vector::Ints(Ints::measured(IntValues::I32((0..count as i32).collect()), None)));
    rows.fields.push(Field::new(DataType::Int4, false));
    rows
}

/// The same in the order of their first column, in which so many follow each other.
fn ordered(count: usize, run: usize) -> Rows {
    let mut rows = numbered(count, 3);
    let values = (0..count).map(|row| (row / run) as i32 - 10).collect();
    rows.vectors[0] = Vector::Ints(Ints::measured(IntValues::I32(values), None));
    rows
}

const ID: usize = 8;
const FLOAT: usize = 9;

/// Pairs of numbers of rows; -1 for no partner.
type Pairs = Vec<(i32, i32)>;

fn joined(left: &Rows, right: &Rows, keys: &[(usize, usize)], residual: bool, kind: Kind) -> Result<Pairs> {
    joined_by(left, right, keys, false, residual, kind)
}

/// Marks stand in the place of partners: 1, 0, or -1 for null.
fn joined_by(
    left: &Rows,
    right: &Rows,
    keys: &[(usize, usize)],
    null_safe: bool,
    residual: bool,
    kind: Kind,
) -> Result<Pairs> {
    let [pairs, between] =
        [false, true].map(|is_ordered| joined_as(left, right, keys, null_safe, (residual, is_ordered), kind));
    match (&pairs, &between) {
        (Ok(pairs), Ok(between)) => assert_eq!(between, pairs, "{kind:?}, {keys:?}"),
        (pairs, between) => assert_eq!(between.is_err(), pairs.is_err(), "{kind:?}, {keys:?}"),
    }
    pairs
}

/// At once, or job by job.
fn finished(built: Building, shared: bool) -> Result<Table> {
    if !shared {
        return built.finish();
    }
    let mut assembly = built.assembly()?;
    loop {
        while assembly.work()? {}
        match assembly.next()? {
            Next::Table(table) => return Ok(*table),
            Next::Jobs(next) => assembly = next,
        }
    }
}

/// With the rows of a key in the order of what the residual compares, or without.
fn joined_as(
    left: &Rows,
    right: &Rows,
    keys: &[(usize, usize)],
    null_safe: bool,
    (residual, is_ordered): (bool, bool),
    kind: Kind,
) -> Result<Pairs> {
    let mut program = Program::new(right.fields.clone());
    let of = |place: usize| (place, right.fields[place].clone());
    let held_keys = keys.iter().map(|(_, key)| of(*key)).collect();
    let mut spec = Spec::new(held_keys, vec![null_safe; keys.len()], vec![of(ID), of(1)]).unwrap();
    spec.ordered_by = is_ordered.then_some(1);
    let mut work = Work::new(Arc::new(program.clone()), right.ctx.clone(), Vec::new());
    let spec = Arc::new(spec);
    // Two workers, and batches of any size.
    let mut workers = [Building::new(&spec), Building::new(&spec)];
    for (at, from) in (0..right.count).step_by(61).enumerate() {
        let part: Vec<u32> = (from as u32..(from + 61).min(right.count) as u32).collect();
        let vectors: Vec<Vector> = right.vectors.iter().map(|vector| vector.take(&part)).collect();
        let mut batch = Batch::of_vectors(&vectors, part.len(), &work);
        workers[at % 2].add(&mut batch, &mut work)?;
    }
    let [mut built, other] = workers;
    built.merge(other);
    let table = Arc::new(finished(built, residual)?);

    program = Program::new(left.fields.clone());
    let partner = program.payload(0, 0, right.fields[ID].clone());
    let value = program.payload(0, 1, right.fields[1].clone());
    let mark = program.mark(0, true);
    let larger = op(">", Expr::Column { index: value, ty: DataType::Int8 }, left.column(1));
    let condition = program.condition(&larger, &left.ctx);
    let residual = if residual { vec![condition] } else { Vec::new() };
    let between = Between::of(&residual, &program, 0).filter(|_| is_ordered);
    assert_eq!(between.is_some(), is_ordered && !residual.is_empty());
    let keys = keys.iter().map(|(key, _)| *key).collect();
    let probe = Probe { join: 0, kind, keys, residual, between, read: vec![1] };
    let few = program.condition(&op(">", left.column(2), Expr::int4(100)), &left.ctx);
    let mut work = Work::new(Arc::new(program), left.ctx.clone(), vec![table]);
    let mut batch = Batch::of_vectors(&left.vectors, left.count, &work);
    batch.filter(&[few], &mut work)?;
    probe.apply(&mut batch, &mut work)?;
    batch.compact();
    let ids = |batch: &mut Batch<'_>, place: usize, work: &mut Work| -> Result<Vec<Option<i32>>> {
        let array = logical(&batch.vector(place, work)?, &DataType::Int4);
        Ok(array.as_primitive::<Int32Type>().iter().collect())
    };
    let own = ids(&mut batch, ID, &mut work)?;
    let partners = match kind {
        Kind::Mark { .. } => {
            let marks = logical(&batch.vector(mark, &mut work)?, &DataType::Bool);
            marks.as_boolean().iter().map(|mark| mark.map(i32::from)).collect()
        }
        _ if kind.gives_partners() => ids(&mut batch, partner, &mut work)?,
        _ => vec![None; own.len()],
    };
    let mut pairs: Pairs =
        own.iter().zip(partners).map(|(own, partner)| (own.unwrap(), partner.unwrap_or(-1))).collect();
    pairs.sort_unstable();
    Ok(pairs)
}

/// The same for semi and anti joins with the left side held.
fn marked(left: &Rows, right: &Rows, keys: &[(usize, usize)], residual: bool, kind: Kind) -> Result<Pairs> {
    marked_by(left, right, keys, false, residual, kind)
}

fn marked_by(
    left: &Rows,
    right: &Rows,
    keys: &[(usize, usize)],
    null_safe: bool,
    residual: bool,
    kind: Kind,
) -> Result<Pairs> {
    let mut program = Program::new(left.fields.clone());
    let few = program.condition(&op(">", left.column(2), Expr::int4(100)), &left.ctx);
    let of = |place: usize| (place, left.fields[place].clone());
    let held_keys = keys.iter().map(|(key, _)| of(*key)).collect();
    let spec = Arc::new(Spec::new(held_keys, vec![null_safe; keys.len()], vec![of(ID), of(1)]).unwrap());
    let mut work = Work::new(Arc::new(program), left.ctx.clone(), Vec::new());
    let mut built = Building::new(&spec);
    let mut batch = Batch::of_vectors(&left.vectors, left.count, &work);
    batch.filter(&[few], &mut work)?;
    batch.compact();
    built.add(&mut batch, &mut work)?;
    let table = Arc::new(finished(built, !residual)?);

    let mut program = Program::new(right.fields.clone());
    let value = program.payload(0, 1, left.fields[1].clone());
    let larger = op(">", right.column(1), Expr::Column { index: value, ty: DataType::Int8 });
    let condition = program.condition(&larger, &left.ctx);
    let residual = if residual { vec![condition] } else { Vec::new() };
    let keys = keys.iter().map(|(_, key)| *key).collect();
    let probe = Probe { join: 0, kind: Kind::Inner, keys, residual, between: None, read: vec![1] };
    let mut work = Work::new(Arc::new(program), left.ctx.clone(), vec![table.clone()]);
    let mut marks = [Marks::new(&table), Marks::new(&table)];
    for (at, from) in (0..right.count).step_by(61).enumerate() {
        let part: Vec<u32> = (from as u32..(from + 61).min(right.count) as u32).collect();
        let vectors: Vec<Vector> = right.vectors.iter().map(|vector| vector.take(&part)).collect();
        let mut batch = Batch::of_vectors(&vectors, part.len(), &work);
        marks[at % 2].add(&probe, &mut batch, &mut work)?;
    }
    let [mut marks, others] = marks;
    marks.merge(&others);
    let Vector::Ints(ids) = &table.payload[0] else { panic!("numbers of rows") };
    let chosen = marks.chosen(&table, kind == Kind::Semi).unwrap();
    let mut pairs: Pairs = chosen.iter().map(|row| (ids.values.get(*row as usize) as i32, -1)).collect();
    pairs.sort_unstable();
    Ok(pairs)
}

/// `None` where a row would have two partners.
fn expected(left: &Rows, right: &Rows, keys: &[(usize, usize)], residual: bool, kind: Kind) -> Option<Pairs> {
    expected_by(left, right, keys, false, residual, kind)
}

fn expected_by(
    left: &Rows,
    right: &Rows,
    keys: &[(usize, usize)],
    null_safe: bool,
    residual: bool,
    kind: Kind,
) -> Option<Pairs> {
    let arrays = |rows: &Rows| -> Vec<ArrayRef> {
        rows.vectors.iter().zip(&rows.fields).map(|(vector, field)| logical(vector, &field.held())).collect()
    };
    let (lefts, rights) = (arrays(left), arrays(right));
    let width = lefts.len();
    let of_right = |index: usize| Expr::Column { index: index + width, ty: right.fields[index].ty.clone() };
    let equal = keys.iter().map(|(a, b)| match (null_safe, op("=", left.column(*a), of_right(*b))) {
        (true, Expr::Call { function, .. }) => {
            let (left, right) = (Box::new(left.column(*a)), Box::new(of_right(*b)));
            Expr::IsDistinct { left, right, equal: function, negated: true }
        }
        (_, equal) => equal,
    });
    let larger = residual.then(|| op(">", of_right(1), left.column(1)));
    let condition = Expr::and(equal.chain(larger).collect());
    let few = op(">", left.column(2), Expr::int4(100)).filter_indices(&lefts, left.count, &left.ctx).unwrap();
    let mut pairs = Vec::new();
    for row in few {
        let repeated = lefts.iter().map(|column| {
            arrow_select::take::take(column, &arrow_array::UInt32Array::from(vec![row; right.count]), None).unwrap()
        });
        let columns: Vec<ArrayRef> = repeated.chain(rights.iter().cloned()).collect();
        let partners = condition.filter_indices(&columns, right.count, &left.ctx).unwrap();
        let row = row as i32;
        match kind {
            Kind::Semi => pairs.extend((!partners.is_empty()).then_some((row, -1))),
            Kind::Anti => pairs.extend(partners.is_empty().then_some((row, -1))),
            Kind::Mark { .. } => pairs.push((row, i32::from(!partners.is_empty()))),
            Kind::Single if partners.len() > 1 => return None,
            _ => {
                pairs.extend(partners.iter().map(|partner| (row, *partner as i32)));
                pairs.extend((kind != Kind::Inner && partners.is_empty()).then_some((row, -1)));
            }
        }
    }
    pairs.sort_unstable();
    Some(pairs)
}

#[test]
fn pairs_are_those_of_nested_loops() {
    let left = numbered(300, 1);
    for right in [numbered(200, 3), ordered(200, 9), ordered(200, 1), numbered(1, 1), numbered(0, 1)] {
        for keys in
            [vec![(0, 0)], vec![(4, 4)], vec![(ID, ID)], vec![(1, 1)], vec![(5, 6)], vec![(0, 0), (5, 5)], vec![]]
        {
            let mark = Kind::Mark { null_aware: false };
            for kind in [Kind::Inner, Kind::Left, Kind::Semi, Kind::Anti, Kind::Single, mark] {
                for residual in [false, true] {
                    let what = format!("{kind:?} by {keys:?}, {} rows, residual {residual}", right.count);
                    let wanted = expected(&left, &right, &keys, residual, kind);
                    if let (Kind::Semi | Kind::Anti, Some(wanted)) = (kind, &wanted) {
                        assert_eq!(&marked(&left, &right, &keys, residual, kind).unwrap(), wanted, "{what}, held left");
                    }
                    match (joined(&left, &right, &keys, residual, kind), wanted) {
                        (Ok(pairs), Some(wanted)) => assert_eq!(pairs, wanted, "{what}"),
                        (Err(Error::Beyond(_)), None) => {}
                        (got, wanted) => panic!("{what}: {got:?}, not {wanted:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn rows_of_a_key_are_where_they_follow_each_other() {
    let Ok(Matches::Several { starts, rows, .. }) = Matches::new(vec![1, 1, 2, 3, 3, 3]) else {
        panic!("several rows")
    };
    assert_eq!((starts, rows), (vec![0, 0, 2, 3, 6], vec![0, 1, 2, 3, 4, 5]));
    let Ok(Matches::Several { starts, rows, .. }) = Matches::new(vec![1, 1, 3, 2, 0, 3]) else {
        panic!("several rows")
    };
    assert_eq!((starts, rows), (vec![0, 1, 3, 4, 6], vec![4, 0, 1, 3, 2, 5]));
    assert!(!follow_each_other(&[1, 3]) && !follow_each_other(&[0, 1]) && !follow_each_other(&[1, 2, 1]));
    assert!(matches!(Matches::new(vec![1, 2, 3]), Ok(Matches::Unique(None))));
}

#[test]
fn not_in_knows_nulls() {
    let left = numbered(200, 1);
    let count = |right: &Rows| joined(&left, right, &[(1, 1)], false, Kind::NullAwareAnti).unwrap().len();
    let all = joined(&left, &numbered(0, 1), &[(1, 1)], false, Kind::Semi).unwrap().len();
    assert_eq!(all, 0);
    let passing = joined(&left, &numbered(0, 1), &[(ID, ID)], false, Kind::Anti).unwrap().len();
    assert_eq!(count(&numbered(0, 1)), passing, "of no rows nothing is a member");
    let mut right = numbered(50, 1);
    assert!(right.vectors[1].nulls().is_some());
    assert_eq!(count(&right), 0, "whether a null is the same nobody knows");
    let valued: Vec<u32> = (0..50).filter(|row| right.vectors[1].nulls().unwrap().is_valid(*row as usize)).collect();
    right.vectors = right.vectors.iter().map(|vector| vector.take(&valued)).collect();
    right.count = valued.len();
    let anti = joined(&left, &right, &[(1, 1)], false, Kind::Anti).unwrap();
    let nulls = left.vectors[1].nulls().unwrap();
    let without_null = anti.iter().filter(|(row, _)| nulls.is_valid(*row as usize)).count();
    assert!(without_null < anti.len());
    assert_eq!(count(&right), without_null, "nor of a null");
}

#[test]
fn nulls_are_equal_where_they_are_asked_to_be() {
    let left = numbered(300, 1);
    for right in [numbered(200, 3), numbered(3, 1), numbered(0, 1)] {
        // Integers, codes, texts of two forms, several; with nulls on both sides, on one and on none.
        for keys in [
            vec![(1, 1)],
            vec![(5, 5)],
            vec![(6, 5)],
            vec![(7, 7)],
            vec![(0, 0), (3, 3)],
            vec![(ID, 1)],
            vec![(ID, ID)],
        ] {
            for kind in [Kind::Inner, Kind::Left, Kind::Semi, Kind::Anti, Kind::Mark { null_aware: false }] {
                for residual in [false, true] {
                    let what = format!("{kind:?} by {keys:?}, {} rows, residual {residual}", right.count);
                    // Of two types.
                    if left.fields[keys[0].0].ty != right.fields[keys[0].1].ty {
                        continue;
                    }
                    let wanted = expected_by(&left, &right, &keys, true, residual, kind).unwrap();
                    let pairs = joined_by(&left, &right, &keys, true, residual, kind).unwrap();
                    assert_eq!(pairs, wanted, "{what}");
                    if let Kind::Semi | Kind::Anti = kind {
                        let pairs = marked_by(&left, &right, &keys, true, residual, kind).unwrap();
                        assert_eq!(pairs, wanted, "{what}, held left");
                    }
                }
            }
        }
    }
}

/// Those of `IN`: true, false, or null where nobody knows.
#[test]
fn marks_know_nulls() {
    let left = numbered(200, 1);
    let passing = joined(&left, &numbered(0, 1), &[(ID, ID)], false, Kind::Anti).unwrap();
    let marks = |right: &Rows| joined(&left, right, &[(1, 1)], false, Kind::Mark { null_aware: true }).unwrap();
    assert!(marks(&numbered(0, 1)).iter().all(|(_, mark)| *mark == 0), "of no rows nothing is a member");
    let mut right = numbered(200, 1);
    let first: Vec<u32> = (0..50).collect();
    right.vectors = right.vectors.iter().map(|vector| vector.take(&first)).collect();
    right.count = 50;
    let semi = |right: &Rows| -> Vec<i32> {
        joined(&left, right, &[(1, 1)], false, Kind::Semi).unwrap().into_iter().map(|(row, _)| row).collect()
    };
    let members = semi(&right);
    assert!(!members.is_empty() && members.len() < passing.len());
    let wanted: Pairs = passing.iter().map(|(row, _)| (*row, if members.contains(row) { 1 } else { -1 })).collect();
    assert_eq!(marks(&right), wanted, "whether a null is the same nobody knows");
    let valued: Vec<u32> = (0..50).filter(|row| right.vectors[1].nulls().unwrap().is_valid(*row as usize)).collect();
    right.vectors = right.vectors.iter().map(|vector| vector.take(&valued)).collect();
    right.count = valued.len();
    let nulls = left.vectors[1].nulls().unwrap();
    let mark = |row: i32| match nulls.is_valid(row as usize) {
        true => i32::from(members.contains(&row)),
        false => -1,
    };
    let wanted: Pairs = passing.iter().map(|(row, _)| (*row, mark(*row))).collect();
    assert_eq!(marks(&right), wanted, "nor of a null");
}

#[test]
fn integer_keys_are_told_in_their_order() {
    let rows = numbered(300, 3);
    let table = |keys: &[usize]| {
        let of = |place: usize| (place, rows.fields[place].clone());
        let spec = Spec::new(keys.iter().map(|key| of(*key)).collect(), vec![false; keys.len()], Vec::new()).unwrap();
        let mut work = Work::new(Arc::new(Program::new(rows.fields.clone())), rows.ctx.clone(), Vec::new());
        let mut built = Building::new(&Arc::new(spec));
        built.add(&mut Batch::of_vectors(&rows.vectors, rows.count, &work), &mut work).unwrap();
        built.finish().unwrap()
    };
    let (mut ranked, mut hashed) = (0, 0);
    for (at, vector) in rows.vectors.iter().enumerate() {
        let Vector::Ints(ints) = vector else { continue };
        let valued = (0..rows.count).filter(|row| ints.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row)));
        let mut expected: Vec<i128> = valued.map(|row| ints.values.get(row)).collect();
        expected.sort_unstable();
        expected.dedup();
        let table = table(&[at]);
        let found = table.integer_keys(rows.count).map(|keys| keys.into_iter().map(i128::from).collect::<Vec<_>>());
        match &table.lookup {
            Lookup::Ranked(..) => ranked += 1,
            Lookup::Packed { .. } => hashed += 1,
            Lookup::Found { .. } => {
                assert_eq!(found, None);
                continue;
            }
        }
        assert_eq!(found, Some(expected), "of column {at}");
        assert_eq!(table.integer_keys(1), None);
    }
    assert!(ranked > 0, "{ranked} ranked, {hashed} hashed");
    assert_eq!(table(&[ID, 0]).integer_keys(rows.count), None);
}

#[test]
fn both_zeros_are_one_key() {
    let with_floats = |mut rows: Rows, zero: f64| {
        let values = (0..rows.count).map(|at| [zero, 1.5, f64::NAN, -0.25][at % 4]);
        rows.vectors.push(Vector::Flat(Arc::new(Float64Array::from_iter_values(values))));
        rows.fields.push(Field::new(DataType::Float8, false));
        rows
    };
    let keys = [(FLOAT, FLOAT)];
    for (one, other) in [(0.0, -0.0), (-0.0, 0.0), (-0.0, -0.0)] {
        let (left, right) = (with_floats(numbered(90, 2), one), with_floats(numbered(40, 3), other));
        for kind in [Kind::Inner, Kind::Semi, Kind::Anti] {
            let wanted = expected(&left, &right, &keys, false, kind).unwrap();
            assert_eq!(joined(&left, &right, &keys, false, kind).unwrap(), wanted, "{kind:?} of {one:?} and {other:?}");
        }
    }
}
