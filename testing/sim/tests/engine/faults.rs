//! Failing syncs, full disks and damaged files: what is promised stays true, and errors say what happened.

use crate::table::*;
use basalt_engine::{CatalogEdit, Engine, Error, Isolation, Result, TxnOptions};
use basalt_sim::{Fault, Machine, Op, Rng, SimFs};
use basalt_types::{ErrorKind, TableDef, Version};
use std::path::Path;
use std::sync::Arc;

fn options() -> TxnOptions {
    TxnOptions {
        isolation: Isolation::ReadCommitted,
        synchronous_commit: true,
        session_version: Version::ZERO,
        session: 0,
    }
}

fn start(machine: &Machine) -> (Arc<Engine>, Arc<TableDef>) {
    start_oriented(machine, 0)
}

/// With a table of an orientation by number.
fn start_oriented(machine: &Machine, number: u64) -> (Arc<Engine>, Arc<TableDef>) {
    let engine = crate::open(machine.os(), crate::small_config("/data")).expect("an empty disk");
    let mut table = (*define(&engine, Shape::Keyed, "t")).clone();
    orient(&mut table, number);
    let table = Arc::new(table);
    let mut txn = engine.begin(options());
    txn.edit_catalog(vec![CatalogEdit::PutTable(table.clone())]).expect("a fresh table");
    crate::runtime().block_on(txn.commit()).expect("a sound disk");
    (engine, table)
}

fn insert(engine: &Arc<Engine>, table: &Arc<TableDef>, ks: std::ops::Range<i64>) -> Result<Version> {
    crate::runtime().block_on(async {
        let mut txn = engine.begin(options());
        for k in ks {
            txn.insert(table, &random_row(table, k, &mut Rng::new(k as u64))).await?;
        }
        txn.commit().await
    })
}

fn rows(engine: &Arc<Engine>, table: &Arc<TableDef>) -> std::result::Result<usize, String> {
    contents(&engine.read(Version::ZERO), table, &[]).map(|rows| rows.len())
}

#[test]
fn a_failing_sync_stops_the_log_and_nothing_is_acknowledged() {
    for seed in 0..10 {
        let machine = Machine::new(seed);
        let (engine, table) = start(&machine);
        insert(&engine, &table, 0..10).expect("a sound disk");
        // Every sync: a single fault might hit the preparation of the next log file, which may fail.
        machine.fs.inject(Fault::every(Op::Sync).on("/log/"));
        let refused = insert(&engine, &table, 10..20);
        assert!(matches!(refused, Err(Error::LogFailed(_))), "{refused:?}");
        let again = insert(&engine, &table, 20..30);
        assert!(matches!(again, Err(Error::LogFailed(_))), "the log must stay stopped: {again:?}");
        let after = machine.power_cut(seed);
        let engine = crate::open(after.os(), crate::small_config("/data")).expect("what was synced is sound");
        let found = rows(&engine, &table).expect("readable");
        assert!(found == 10 || found == 20, "{found} rows");
    }
}

#[test]
fn a_full_disk_refuses_writes_and_takes_them_again_later() {
    let machine = Machine::new(1);
    let (engine, table) = start(&machine);
    let mut next = 0;
    machine.fs.set_capacity(Some(machine.fs.used_bytes() + (100 << 10)));
    let error = loop {
        match insert(&engine, &table, next..next + 10) {
            Ok(_) => next += 10,
            Err(error) => break error,
        }
        assert!(next < 100_000, "the disk never got full");
    };
    assert!(matches!(error, Error::NoSpace { .. }) && error.kind() == ErrorKind::Limit, "{error:?}");
    let frozen = engine.freeze_table(table.id);
    if let Err(error) = &frozen {
        assert_eq!(error.kind(), ErrorKind::Limit, "{error:?}");
    }
    assert_eq!(rows(&engine, &table), Ok(next as usize), "what was refused is not seen");
    machine.fs.set_capacity(None);
    let mut taken = Err(error);
    for _ in 0..500 {
        taken = insert(&engine, &table, next..next + 10);
        if taken.is_ok() {
            break;
        }
        engine.os().clock.sleep(std::time::Duration::from_millis(10));
    }
    taken.expect("there is room again");
    engine.freeze_table(table.id).expect("there is room again");
    engine.checkpoint().expect("there is room again");
    let after = machine.power_cut(1);
    let engine = crate::open(after.os(), crate::small_config("/data")).expect("sound");
    assert_eq!(rows(&engine, &table), Ok(next as usize + 10));
}

#[test]
fn half_a_pair_is_nothing_and_goes() {
    let machine = Machine::new(1);
    let (engine, table) = start_oriented(&machine, 2);
    insert(&engine, &table, 0..300).expect("a sound disk");
    let data_files = || {
        let names = machine.fs.files().into_iter().map(|(path, _)| path.to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".seg") || name.ends_with(".row")).count()
    };
    for half in [".row", ".seg"] {
        machine.fs.inject(Fault::every(Op::Rename).on(half));
        for _ in 0..3 {
            let failed = engine.freeze_table(table.id);
            assert!(matches!(failed, Err(Error::Io(_))), "{half}: {failed:?}");
        }
        assert_eq!(rows(&engine, &table), Ok(300));
        machine.fs.clear_faults();
        engine.checkpoint().expect("a sound disk");
        // What the checkpoint has of hot rows.
        assert_eq!(data_files(), 1, "{half}: {:?}", machine.fs.files());
    }
    engine.freeze_table(table.id).expect("a sound disk");
    engine.checkpoint().expect("a sound disk");
    assert_eq!((rows(&engine, &table), data_files()), (Ok(300), 2));
}

/// Flips a bit somewhere in each kind of file: either the error names the file, or nothing was lost.
#[test]
fn flipped_bits_are_noticed_in_every_kind_of_file() {
    flip_bits(0, &["/root", ".ckpt", ".seg", ".row", ".log"]);
    flip_bits(1, &[".row"]);
    flip_bits(2, &[".seg", ".row"]);
    flip_bits(3, &[".seg"]);
}

fn flip_bits(orientation: u64, kinds: &[&str]) {
    let seed = crate::seed();
    let mut rng = Rng::new(seed);
    let machine = Machine::new(seed);
    let (engine, table) = start_oriented(&machine, orientation);
    insert(&engine, &table, 0..300).expect("a sound disk");
    engine.freeze_table(table.id).expect("a sound disk");
    insert(&engine, &table, 300..340).expect("a sound disk");
    engine.checkpoint().expect("a sound disk");
    insert(&engine, &table, 340..360).expect("a sound disk");
    let disk = machine.fs.copy();
    drop(engine);
    for kind in kinds {
        let files: Vec<_> =
            disk.files().into_iter().filter(|(path, _)| path.to_string_lossy().ends_with(*kind)).collect();
        assert!(!files.is_empty(), "no file ends with {kind}: {:?}", disk.files());
        let mut noticed = 0;
        for _ in 0..40 {
            let (path, bytes) = rng.pick(&files);
            let copy = disk.copy();
            let (byte, bit) = (rng.below(*bytes), rng.below(8));
            copy.flip(path, byte, 1 << bit).expect("in range");
            noticed += u64::from(is_noticed(copy, &table, path, byte));
        }
        println!("{kind}: {noticed} of 40 flipped bits noticed");
        assert!(noticed > 0 || *kind == ".log", "{kind}: no damage is ever noticed");
    }
}

/// True if there is an error that names the file; false if all is read as written. A log may lose what no
/// later block vouches for: then what is left is a prefix.
fn is_noticed(fs: Arc<SimFs>, table: &Arc<TableDef>, path: &Path, byte: u64) -> bool {
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    let read = crate::open(Machine::with_disk(fs, 1).os(), crate::small_config("/data"))
        .map_err(|error| {
            assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid | ErrorKind::Internal), "{error:?}");
            error.to_string()
        })
        .and_then(|engine| {
            let found = contents(&engine.read(Version::ZERO), table, &[]);
            for k in 0..if found.is_ok() { 340 } else { 0 } {
                let row = random_row(table, k, &mut Rng::new(k as u64));
                let (tablet, key) = locate(&engine.read(Version::ZERO), table, &row)?;
                let got = engine.read(Version::ZERO).get(table, tablet, &key).map_err(|error| error.to_string())?;
                assert_eq!(got.map(|got| got.values), Some(row), "{name}, byte {byte}: wrong row {k}");
            }
            found
        });
    match read {
        Err(error) => {
            let stem = name.split('.').next().unwrap_or(&name);
            assert!(error.contains(stem), "{name}, byte {byte}: the error does not say where: {error}");
            true
        }
        Ok(rows) => {
            let count = rows.len();
            assert!(count == 360 || (name.ends_with(".log") && count == 340), "{name}, byte {byte}: {count} rows");
            for (i, row) in rows.values().enumerate() {
                let expected = random_row(table, i as i64, &mut Rng::new(i as u64));
                assert_eq!(*row, expected, "{name}, byte {byte}: damage is read as data");
            }
            false
        }
    }
}
