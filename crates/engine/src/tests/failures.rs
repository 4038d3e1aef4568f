//! Panics: background work is tried again, a commit or move that is cut short stops the engine.

use super::*;
use basalt_sched::failpoint;
use basalt_sched::os::hooked::{Hooks, hooked};
use basalt_sched::os::real::RealFs;
use basalt_sched::os::{FileSystem, OpenMode};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A file system whose data files cannot be made: trying to panics. Or whose root cannot be replaced.
struct PanickingFs {
    armed: Arc<AtomicBool>,
    root_fails: Arc<AtomicBool>,
}

impl PanickingFs {
    fn real(armed: &Arc<AtomicBool>, root_fails: &Arc<AtomicBool>) -> Os {
        let fs = hooked(PanickingFs { armed: armed.clone(), root_fails: root_fails.clone() });
        Os { fs, ..Os::real() }
    }
}

impl Hooks for PanickingFs {
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let made = to.components().any(|part| part.as_os_str() == "files");
        assert!(!(made && self.armed.load(Ordering::Acquire)), "no files today");
        if to.ends_with("root") && self.root_fails.load(Ordering::Acquire) {
            return Err(io::Error::other("no root today"));
        }
        RealFs.rename(from, to)
    }
}

async fn eventually(f: &Fixture, what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: {:?}", f.engine.background().status());
}

#[tokio::test]
async fn background_work_that_panics_is_shown_and_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let armed = Arc::new(AtomicBool::new(false));
    let os = PanickingFs::real(&armed, &Arc::default());
    let config = EngineConfig {
        background: true,
        cool_after: Duration::ZERO,
        freeze_rows_min: 1,
        checkpoint_interval: Duration::ZERO,
        ..config(&dir)
    };
    let engine = Engine::open(os, config, &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    f.create_table(1, true).await;
    armed.store(true, Ordering::Release);
    insert(&f, 0..10, "one").await;
    let failing = |what: &str| {
        let failing = f.engine.background().status().failing;
        failing
            .iter()
            .any(|task| task.what.starts_with(what) && task.times > 1 && task.cause.contains("no files today"))
    };
    eventually(&f, "both fail", || failing("freeze") && failing("checkpoint")).await;
    assert!(f.engine.background().status().panics >= 4);
    // Whoever commits meanwhile is not concerned.
    insert(&f, 10..20, "two").await;
    armed.store(false, Ordering::Release);
    eventually(&f, "both work again", || {
        let status = f.engine.background().status();
        status.failing.is_empty() && status.frozen_rows >= 20 && status.checkpoints > 0
    })
    .await;
    assert_eq!(now(&f).len(), 20);
    f.engine.shutdown().unwrap();
}

#[tokio::test]
async fn a_commit_cut_short_by_a_panic_stops_the_engine() {
    let f = Arc::new(Fixture::new());
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    let mut txn = f.begin();
    update(&f, &mut txn, 3, "cut short").await;
    let waiting = {
        let f = f.clone();
        tokio::spawn(async move {
            let mut txn = f.begin();
            locked(&f, &mut txn, 3).await.map(drop)
        })
    };
    while f.engine.stats().lock_waiters == 0 {
        tokio::task::yield_now().await;
    }
    let panicked = tokio::spawn(async move {
        failpoint::panic_at("commit-appended");
        txn.commit().await
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert!(matches!(waiting.await.unwrap(), Err(Error::LogFailed(_))), "its holder will never let go");
    let refused = f.engine.checkpoint();
    assert!(
        matches!(&refused, Err(Error::LogFailed(why)) if why.contains("a panic cut a commit short")),
        "{refused:?}"
    );
    let mut txn = f.begin();
    let refused = txn.insert(&table, &row(100, "late")).await;
    assert!(matches!(refused, Err(Error::LogFailed(_))), "{refused:?}");
    assert!(f.engine.failure().is_some());
    assert_eq!(now(&f).len(), 10, "reads go on");
    drop(txn);
    let f = Arc::into_inner(f).expect("nobody else has it").reopen();
    assert_eq!(now(&f).len(), 10);
    insert(&f, 100..101, "again").await;
}

/// A table whose hot rows are frozen by the next compaction, or whose two files are merged by it; and its rows.
async fn about_to_move(merge: bool) -> (Fixture, Arc<TableDef>, BTreeMap<i64, String>) {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..300, "one").await;
    if merge {
        f.engine.freeze_table(table.id).unwrap();
        insert(&f, 300..600, "one").await;
        f.engine.freeze_table(table.id).unwrap();
    }
    let before = now(&f);
    (f, table, before)
}

#[tokio::test]
async fn a_move_cut_short_by_a_panic_stops_the_engine() {
    for (place, merge) in [("freeze-appended", false), ("compact-appended", true)] {
        let (f, table, before) = about_to_move(merge).await;
        let cut = catch_unwind(AssertUnwindSafe(|| {
            failpoint::panic_at(place);
            f.engine.compact_table(table.id)
        }));
        assert!(cut.is_err(), "{place}");
        assert!(matches!(f.engine.checkpoint(), Err(Error::LogFailed(_))), "{place}");
        let mut txn = f.begin();
        assert!(matches!(txn.insert(&table, &row(9999, "late")).await, Err(Error::LogFailed(_))), "{place}");
        drop(txn);
        let f = f.reopen();
        assert_rows(&now(&f), &before);
    }
}

/// What was given up in the unwinding is named by a record that a restart reads.
#[tokio::test]
async fn files_of_a_move_that_a_panic_cuts_short_stay() {
    for (place, merge) in [("freeze-appended", false), ("compact-appended", true)] {
        let (f, table, before) = about_to_move(merge).await;
        let engine = f.engine.clone();
        let cut = catch_unwind(AssertUnwindSafe(|| {
            failpoint::call_at(place, move || {
                engine.log.wait_durable_blocking(engine.log.end()).unwrap();
                panic!("behind the record");
            });
            f.engine.compact_table(table.id)
        }));
        assert!(cut.is_err(), "{place}");
        f.engine.collect_files();
        let f = f.reopen();
        assert_rows(&now(&f), &before);
    }
}

#[tokio::test]
async fn checkpoints_whose_root_cannot_be_written_leave_no_files_behind() {
    let dir = tempfile::tempdir().unwrap();
    let root_fails = Arc::new(AtomicBool::new(false));
    let engine = Engine::open(PanickingFs::real(&Arc::default(), &root_fails), config(&dir), &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    f.engine.checkpoint().unwrap();
    let files = || f.engine.os().fs.list(&f.dir.path().join("files")).unwrap().len();
    let before = files();
    root_fails.store(true, Ordering::Release);
    let mut doubtful = None;
    for id in 10..15 {
        insert(&f, id..id + 1, "two").await;
        assert!(f.engine.checkpoint().is_err());
        assert!(files() > before, "a power cut may bring either root back");
        assert_eq!(files(), *doubtful.get_or_insert_with(files), "one checkpoint is enough to try with");
    }
    root_fails.store(false, Ordering::Release);
    insert(&f, 20..21, "three").await;
    f.engine.checkpoint().unwrap();
    assert_eq!(files(), before);
    let f = f.reopen();
    assert_eq!(now(&f).len(), 16);
}

#[tokio::test]
async fn files_that_a_panic_leaves_are_collected() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..300, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    insert(&f, 300..600, "two").await;
    let panics_at = |step: &'static str, work: &dyn Fn() -> Result<()>| {
        let cut = catch_unwind(AssertUnwindSafe(|| {
            failpoint::panic_at(step);
            work()
        }));
        assert!(cut.is_err(), "{step} was not reached");
    };
    panics_at("freeze-file-durable", &|| f.engine.freeze_table(table.id));
    panics_at("evict-file-durable", &|| f.engine.evict_table(table.id));
    f.engine.freeze_table(table.id).unwrap();
    panics_at("compact-files-durable", &|| f.engine.compact_table(table.id));
    f.engine.collect_files();
    let files = f.engine.os().fs.list(&f.dir.path().join("files")).unwrap().len();
    assert_eq!(files as u64, f.engine.stats().files);
    assert_eq!(now(&f).len(), 600);
}

/// A table of 600 rows, of which `mark` deletes one, in a file that a merge has written since.
async fn mark_carried_on<T>(mark: impl AsyncFnOnce(&Fixture, &mut Txn) -> T) -> (Fixture, Arc<TableDef>, Txn, T) {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    for first in [0, 300] {
        insert(&f, first..first + 300, "one").await;
        f.engine.freeze_table(table.id).unwrap();
    }
    let mut txn = f.begin();
    let marked = mark(&f, &mut txn).await;
    f.engine.compact_table(table.id).unwrap();
    (f, table, txn, marked)
}

/// Does `work` while no file can be read.
async fn without_files<T>(f: &Fixture, table: &Arc<TableDef>, work: impl AsyncFnOnce() -> T) -> T {
    let (dir, fs) = (f.dir.path().join("files"), f.engine.os().fs.clone());
    let found = fs.list(&dir).unwrap().into_iter().map(|entry| dir.join(entry.name));
    let files: Vec<_> = found.map(|path| (fs.read(&path).unwrap(), path)).collect();
    let open = |path: &std::path::Path| fs.open(path, OpenMode::Write).unwrap();
    for (_, path) in &files {
        open(path).set_len(0).unwrap();
    }
    let done = work().await;
    let read = scan(&f.engine.read(Version::ZERO), table).and_then(|mut parts| parts[0].next_batch());
    assert!(read.is_err(), "files cannot be read");
    for (bytes, path) in files {
        open(&path).write_at(&bytes, 0).unwrap();
    }
    done
}

/// All rows are there, and one that was marked before is deleted once.
async fn all_are_left(f: Fixture, table: &TableDef) {
    assert_eq!(now(&f).len(), 600);
    let mut txn = f.begin();
    delete(&f, &mut txn, 5).await;
    txn.commit().await.unwrap();
    insert(&f, 5..6, "again").await;
    let left = now(&f);
    assert_eq!(left.len(), 600);
    f.engine.compact_table(table.id).unwrap();
    f.engine.checkpoint().unwrap();
    let f = f.reopen();
    assert_rows(&now(&f), &left);
}

#[tokio::test]
async fn a_rollback_whose_mark_cannot_be_looked_for_leaves_none() {
    let (f, table, txn, ()) = mark_carried_on(async |f, txn| delete(f, txn, 5).await).await;
    without_files(&f, &table, async || txn.rollback()).await;
    all_are_left(f, &table).await;
}

#[tokio::test]
async fn a_rollback_to_a_savepoint_whose_mark_cannot_be_looked_for_leaves_a_whole_one() {
    let (f, table, mut txn, savepoint) = mark_carried_on(async |f, txn| {
        delete(f, txn, 7).await;
        let savepoint = txn.savepoint();
        delete(f, txn, 5).await;
        savepoint
    })
    .await;
    let back = without_files(&f, &table, async || txn.rollback_to(savepoint)).await;
    assert!(back.is_err(), "{back:?}");
    assert!(txn.rollback_to(savepoint).is_err());
    assert!(txn.commit().await.is_err());
    all_are_left(f, &table).await;
}

/// What it deleted stays deleted, though one of its marks still says whose it is.
#[tokio::test]
async fn a_commit_whose_mark_cannot_be_looked_for_stays_one() {
    let (f, table, txn, ()) = mark_carried_on(async |f, txn| delete(f, txn, 5).await).await;
    without_files(&f, &table, async || txn.commit().await.unwrap()).await;
    let left = now(&f);
    assert_eq!((left.len(), left.get(&5)), (599, None));
    f.engine.compact_table(table.id).unwrap();
    assert_rows(&now(&f), &left);
    f.engine.checkpoint().unwrap();
    let f = f.reopen();
    assert_rows(&now(&f), &left);
}
