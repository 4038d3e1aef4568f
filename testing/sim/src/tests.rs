//! Each fault happens, and what was synced never suffers.

use crate::{Fault, Machine, Op, SimFs};
use basalt_sched::Clock;
use basalt_sched::os::{File, FileSystem, OpenMode};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CUTS: u64 = 200;

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn create(fs: &SimFs, name: &str) -> Arc<dyn File> {
    fs.open(path(name), OpenMode::CreateNew).unwrap()
}

fn durable(fs: &SimFs, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = create(fs, name);
    file.write_at(bytes, 0).unwrap();
    file.sync().unwrap();
    fs.sync_dir(path("/")).unwrap();
    file
}

/// How many of `CUTS` cuts leave each state, by what `look` says.
fn outcomes(prepare: impl Fn(&SimFs), look: impl Fn(&SimFs) -> String) -> std::collections::BTreeMap<String, u64> {
    let mut seen = std::collections::BTreeMap::new();
    for seed in 0..CUTS {
        let fs = SimFs::new(seed);
        prepare(&fs);
        *seen.entry(look(&fs.power_cut(seed))).or_default() += 1;
    }
    seen
}

fn names(fs: &SimFs) -> String {
    fs.list(path("/")).unwrap().into_iter().map(|entry| entry.name).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_was_synced_survives_every_cut() {
    let seen =
        outcomes(|fs| drop(durable(fs, "/a", b"kept")), |fs| String::from_utf8(fs.read(path("/a")).unwrap()).unwrap());
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen["kept"], CUTS);
}

#[test]
fn unsynced_bytes_are_kept_dropped_or_torn() {
    let seen = outcomes(
        |fs| {
            let file = durable(fs, "/a", &[b'o'; 8192]);
            file.write_at(&[b'x'; 8192], 0).unwrap();
            file.write_at(&[b'y'; 512], 512).unwrap();
        },
        |fs| {
            let bytes = fs.read(path("/a")).unwrap();
            bytes
                .chunks(512)
                .map(|sector| if sector.iter().all(|b| *b == sector[0]) { sector[0] as char } else { '?' })
                .collect()
        },
    );
    assert!(seen.contains_key("oooooooooooooooo") && seen.contains_key("xyxxxxxxxxxxxxxx"), "{seen:?}");
    assert!(seen.keys().any(|state| state.starts_with("xx")), "an intermediate state may have been written: {seen:?}");
    assert!(seen.len() > 20 && !seen.keys().any(|state| state.contains('?')), "{seen:?}");
}

#[test]
fn unsynced_lengths_come_and_go() {
    let seen = outcomes(
        |fs| {
            let file = durable(fs, "/a", b"ab");
            file.set_len(1).unwrap();
            file.allocate(6).unwrap();
        },
        |fs| format!("{:?}", fs.read(path("/a")).unwrap()),
    );
    let expected = ["[97, 0, 0, 0, 0, 0]", "[97, 98]", "[97]"];
    assert_eq!(seen.keys().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>(), "{seen:?}");
}

#[test]
fn unsynced_names_survive_each_for_itself() {
    let prepare = |fs: &SimFs| {
        durable(fs, "/old", b"1");
        create(fs, "/new");
        fs.rename(path("/old"), path("/moved")).unwrap();
    };
    let seen = outcomes(prepare, names);
    let expected = ["moved", "moved new", "new old", "old"];
    assert_eq!(seen.keys().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>(), "{seen:?}");
    let removed = outcomes(
        |fs| {
            durable(fs, "/a", b"1");
            fs.remove(path("/a")).unwrap();
        },
        names,
    );
    assert_eq!(removed.len(), 2, "{removed:?}");
}

#[test]
fn a_rename_replaces_whole_contents() {
    let seen = outcomes(
        |fs| {
            fs.write_atomically(path("/a"), b"old").unwrap();
            let file = create(fs, "/a.tmp");
            file.write_at(b"new", 0).unwrap();
            file.sync().unwrap();
            fs.rename(path("/a.tmp"), path("/a")).unwrap();
        },
        |fs| String::from_utf8(fs.read(path("/a")).unwrap()).unwrap(),
    );
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["new", "old"], "{seen:?}");
}

#[test]
fn a_move_between_directories_can_be_in_either_or_both() {
    let seen = outcomes(
        |fs| {
            fs.create_dir_all(path("/t")).unwrap();
            durable(fs, "/a", b"1");
            fs.rename(path("/a"), path("/t/a")).unwrap();
        },
        |fs| format!("{:?}", (fs.exists(path("/a")).unwrap(), fs.exists(path("/t/a")).unwrap())),
    );
    assert!(seen.len() >= 3, "{seen:?}");
}

#[test]
fn a_failed_sync_is_not_made_up_for_by_the_next() {
    let seen = outcomes(
        |fs| {
            let file = durable(fs, "/a", &[b'o'; 512]);
            file.write_at(&[b'x'; 512], 0).unwrap();
            fs.inject(Fault::nth(Op::Sync, 0));
            assert!(file.sync().is_err());
            file.sync().unwrap();
            assert_eq!(fs.read(path("/a")).unwrap()[0], b'x', "the page cache still has it");
        },
        |fs| String::from_utf8(fs.read(path("/a")).unwrap()[..1].to_vec()).unwrap(),
    );
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["o", "x"], "{seen:?}");
}

#[test]
fn lying_syncs_lose_what_they_promised() {
    let seen = outcomes(
        |fs| {
            fs.lie_about_sync(true);
            drop(durable(fs, "/a", b"1"));
        },
        names,
    );
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["", "a"], "{seen:?}");
}

#[test]
fn the_chosen_operation_fails_and_no_other() {
    let fs = SimFs::new(1);
    let file = create(&fs, "/log-1");
    fs.inject(Fault::nth(Op::Write, 1).on("log"));
    fs.inject(Fault { error: io::ErrorKind::StorageFull, ..Fault::nth(Op::Rename, 0) });
    file.write_at(b"1", 0).unwrap();
    create(&fs, "/other").write_at(b"1", 0).unwrap();
    assert!(file.write_at(b"2", 1).unwrap_err().to_string().contains("Write of /log-1"));
    file.write_at(b"3", 2).unwrap();
    let error = fs.rename(path("/log-1"), path("/x")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    fs.rename(path("/log-1"), path("/x")).unwrap();
    assert_eq!((fs.counts().writes, fs.counts().renames), (4, 2));
}

#[test]
fn a_full_disk_refuses_until_there_is_room() {
    let fs = SimFs::new(1);
    fs.set_capacity(Some(1000));
    let a = create(&fs, "/a");
    a.allocate(600).unwrap();
    a.write_at(&[1; 600], 0).unwrap();
    let b = create(&fs, "/b");
    assert_eq!(b.write_at(&[1; 500], 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs.free_bytes(path("/")).unwrap(), 400);
    fs.set_capacity(Some(1100));
    b.write_at(&[1; 500], 0).unwrap();
    fs.remove(path("/a")).unwrap();
    assert_eq!(fs.used_bytes(), 500);
    b.set_len(100).unwrap();
    assert_eq!(fs.used_bytes(), 100);
}

#[test]
fn power_fails_at_the_chosen_change_and_stays_off() {
    let fs = SimFs::new(1);
    let file = create(&fs, "/a");
    fs.power_off_after(3);
    file.write_at(b"1", 0).unwrap();
    file.sync().unwrap();
    assert!(file.sync().is_err());
    assert!(!fs.is_powered());
    assert!(file.len().is_err() && fs.open(path("/a"), OpenMode::Read).is_err());
    assert!(fs.power_cut(1).is_powered());
}

#[test]
fn flipped_bits_stay_flipped() {
    let fs = SimFs::new(1);
    durable(&fs, "/a", b"abc");
    fs.flip(path("/a"), 1, 1).unwrap();
    assert_eq!(fs.read(path("/a")).unwrap(), b"acc");
    assert_eq!(fs.power_cut(3).read(path("/a")).unwrap(), b"acc");
    assert!(fs.flip(path("/a"), 3, 1).is_err());
}

#[test]
fn slow_syncs_take_real_time_and_locks_exclude() {
    let fs = SimFs::new(1);
    fs.set_sync_delay(Duration::from_millis(20));
    let clock = basalt_sched::os::real::RealClock::new();
    durable(&fs, "/a", b"1");
    assert!(clock.monotonic() >= Duration::from_millis(20));
    let guard = fs.lock(path("/LOCK")).unwrap();
    assert_eq!(fs.lock(path("/LOCK")).err().unwrap().kind(), io::ErrorKind::WouldBlock);
    drop(guard);
    assert!(fs.lock(path("/LOCK")).is_ok());
}

#[test]
fn clock_and_random_follow_the_seed() {
    let read = |seed| {
        let os = Machine::new(seed).os();
        os.clock.sleep(Duration::from_secs(3600));
        (os.clock.monotonic(), os.clock.unix_micros(), os.random.next_u64(), os.random.next_u64())
    };
    assert_eq!(read(1), read(1));
    assert_ne!(read(1).2, read(2).2);
    assert!(read(1).0 > Duration::from_secs(3600));
}

#[test]
fn a_copy_has_what_was_written_and_is_apart() {
    let fs = SimFs::new(1);
    let file = create(&fs, "/a");
    file.write_at(b"1", 0).unwrap();
    let copy = fs.copy();
    file.write_at(b"2", 0).unwrap();
    assert_eq!(copy.power_cut(9).read(path("/a")).unwrap(), b"1");
}
