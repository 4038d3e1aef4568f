//! What is read is what was written, and whoever writes too much or reads something else is told so.

use super::*;
use crate::memory::Memory;
use crate::program::{Field, logical};
use crate::spill::hash::{KeyHash, PARTS, part_of};
use crate::spill::scatter::{Rows as Written, Scatter};
use crate::testing::Rows;
use basalt_sched::Os;
use basalt_types::DataType;
use basalt_types::vector::{IntValues, Ints};

struct Endless;

impl Memory for Endless {
    fn grow(&self, _: usize) -> bool {
        true
    }

    fn shrink(&self, _: usize) {}
}

fn space(dir: &Path, bytes_max: u64) -> (Arc<TempSpace>, Arc<Account>) {
    (TempSpace::open(Os::real().fs, dir, bytes_max).unwrap(), Account::new(Arc::new(Endless)))
}

fn same(a: &[Vector], b: &[Vector], fields: &[Field]) -> bool {
    let arrays = |vectors: &[Vector]| -> Vec<_> {
        vectors.iter().zip(fields).map(|(vector, field)| logical(vector, &field.held())).collect()
    };
    arrays(a) == arrays(b)
}

#[test]
fn blocks_are_read_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let (space, account) = space(dir.path(), u64::MAX);
    let file = space.file(&account).unwrap();
    for count in [0, 1, 7, 64, 1000] {
        let mut rows = Rows::new(count);
        // Distances of every width, and beyond 64 bits.
        for bits in [0, 1, 8, 9, 16, 31, 33, 63, 64, 65, 120] {
            let values: Vec<i128> = (0..count as i128).map(|row| (row % 3 - 1) << bits).collect();
            let ints = Ints::measured(IntValues::I128(values.into()), None);
            rows.vectors.push(Vector::Ints(ints));
            rows.fields.push(Field::new(DataType::Numeric(Some((38, 0))), false));
        }
        for values in [i64::MIN, i64::MAX] {
            let values = (0..count).map(|row| if row % 2 == 0 { values } else { 5 }).collect();
            rows.vectors.push(Vector::Ints(Ints::measured(IntValues::I64(values), None)));
            rows.fields.push(Field::new(DataType::Int8, false));
        }
        let block = file.write(&rows.vectors, count).unwrap();
        let read = file.read(&block).unwrap();
        assert!(same(&rows.vectors, &read, &rows.fields), "{count} rows");
        for (vector, field) in read.iter().zip(&rows.fields) {
            let Vector::Ints(ints) = vector else { continue };
            for row in 0..count {
                assert!((ints.min..=ints.max).contains(&ints.values.get(row)), "{field:?}");
            }
        }
    }
    assert_eq!(account.spilled_bytes(), space.bytes());
    assert!(space.bytes() > 0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "an open file has no name");
    drop(file);
    assert_eq!(space.bytes(), 0);
}

#[test]
fn rows_of_one_key_are_in_one_part_whatever_form_it_has() {
    use crate::aggregate::keys::Form;
    let rows = Rows::new(2000);
    let hash = KeyHash::new();
    let (codes, texts) = (&rows.vectors[5], Vector::Flat(rows.vectors[5].to_array(basalt_types::PhysType::Bytes)));
    let form = Form::of(&rows.fields[5]).unwrap();
    let of = |key: &Vector, form| hash.of(std::slice::from_ref(key), &[form], key.len()).unwrap();
    assert_eq!(of(codes, form), of(&texts, form));
    let few = codes.take(&[3, 1]);
    assert_eq!(of(&few, form), [3, 1].map(|row| of(codes, form)[row]), "a dictionary that is larger than the rows");
    let narrow = Ints::measured(IntValues::I32(vec![-3, 7, 0].into()), None);
    let wide = Ints::measured(IntValues::I128(vec![-3, 7, 0].into()), None);
    assert_eq!(of(&Vector::Ints(narrow), Form::Integers), of(&Vector::Ints(wide), Form::Integers));
    let distinct: std::collections::BTreeSet<u64> = of(&rows.vectors[1], Form::Integers).into_iter().collect();
    for level in 0..4 {
        let parts: std::collections::BTreeSet<usize> = distinct.iter().map(|hash| part_of(*hash, level)).collect();
        assert_eq!(parts.len(), PARTS, "level {level}");
    }
}

#[test]
fn scattered_rows_are_all_there() {
    let dir = tempfile::tempdir().unwrap();
    let (space, account) = space(dir.path(), u64::MAX);
    let file = space.file(&account).unwrap();
    let rows = Rows::new(5000);
    let hashes: Vec<u64> = (0..5000).map(|row: u64| row * row).collect();
    let mut scatter = Scatter::new(&file, rows.fields.clone().into(), 0);
    scatter.add(&rows.vectors, &hashes).unwrap();
    let parts: Vec<Written> = scatter.finish().unwrap();
    for (at, part) in parts.iter().enumerate() {
        let wanted: Vec<u32> = (0..5000u32).filter(|row| part_of(hashes[*row as usize], 0) == at).collect();
        assert_eq!(part.rows, wanted.len());
        let mut from = 0;
        for block in 0..part.blocks() {
            let (columns, count) = part.read(block).unwrap();
            let wanted: Vec<Vector> =
                rows.vectors.iter().map(|vector| vector.take(&wanted[from..from + count])).collect();
            assert!(same(&columns, &wanted, &rows.fields), "part {at}");
            from += count;
        }
    }
}

#[test]
fn a_limit_of_the_disk_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (space, account) = space(dir.path(), 10_000);
    let file = space.file(&account).unwrap();
    let rows = Rows::new(1000);
    assert!(matches!(file.write(&rows.vectors, 1000), Err(Error::TempLimit { bytes_max: 10_000 })));
    drop(file);
    assert_eq!(space.bytes(), 0);
}

#[test]
#[allow(clippy::disallowed_methods)]
fn what_is_left_behind_goes_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("spill-7"), b"rows").unwrap();
    std::fs::write(dir.path().join("another"), b"file").unwrap();
    space(dir.path(), 1);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["another"]);
}

#[test]
fn damage_is_told() {
    let rows = Rows::new(100);
    let bytes = encode::encode(&rows.vectors, 100);
    assert_eq!(encode::decode(&bytes, 100).map(|columns| columns.len()), Some(rows.vectors.len()));
    for end in 0..bytes.len() {
        let cut = encode::decode(&bytes[..end], 100);
        assert!(cut.is_none_or(|columns| columns.len() < rows.vectors.len()), "{end} bytes");
    }
}
