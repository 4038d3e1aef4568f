//! The engine as a whole, on a real directory: what a session does, and what is left after a restart.

use crate::*;
use basalt_sched::Os;
use basalt_types::schema::{Distribution, OnCommit, PartitionDef, PrimaryKey};
use basalt_types::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

mod batches;
mod clustering;
mod evict;
mod failures;
mod identifiers;
mod indexes;
mod large;
mod locator;
mod many;
mod mirror;
mod moves;
mod orientation;
mod protocols;
mod read_ahead;
mod savepoints;
mod sequences;
mod serializable;
mod statistics;
mod walks;

struct Fixture {
    dir: TempDir,
    engine: Arc<Engine>,
}

fn config(dir: &TempDir) -> EngineConfig {
    EngineConfig {
        background: false,
        bulk_rows_min: 100,
        segment_rows: 1000,
        log_file_bytes: 1 << 20,
        memory_bytes_max: 64 << 20,
        ..EngineConfig::new(dir.path())
    }
}

/// All tests hold in whatever order files are: `make test` runs them a second time in this one.
fn clustered_by() -> Option<(String, String)> {
    std::env::var("BASALT_TEST_CLUSTERING").ok().map(|columns| ("clustering_key".to_string(), columns))
}

impl Fixture {
    fn new() -> Fixture {
        Fixture::configured(|config| config)
    }

    fn configured(change: impl FnOnce(EngineConfig) -> EngineConfig) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(Os::real(), change(config(&dir)), &|_| {}).unwrap();
        Fixture { dir, engine }
    }

    /// As after `kill -9`: nothing is checkpointed, the log is not closed by the engine.
    fn reopen(self) -> Fixture {
        let Fixture { dir, engine } = self;
        drop(engine);
        let engine = Engine::open(Os::real(), config(&dir), &|_| {}).unwrap();
        Fixture { dir, engine }
    }

    fn begin(&self) -> Txn {
        self.begin_at(false)
    }

    fn begin_at(&self, repeatable_read: bool) -> Txn {
        self.begin_with(if repeatable_read { Isolation::RepeatableRead } else { Isolation::ReadCommitted })
    }

    fn begin_with(&self, isolation: Isolation) -> Txn {
        let options =
            TxnOptions { isolation, synchronous_commit: true, session_version: self.engine.published(), session: 0 };
        self.engine.begin(options)
    }

    async fn create_table(&self, tablets: u32, keyed: bool) -> Arc<TableDef> {
        let columns = [("id", DataType::Int8), ("v", DataType::Text)];
        let column = |(i, (name, ty)): (usize, (&str, DataType))| ColumnDef::new(ColumnId::from_position(i), name, ty);
        let primary_key = keyed.then(|| PrimaryKey {
            constraint_id: self.engine.next_object_id(),
            constraint_name: "t_pkey".into(),
            columns: vec![ColumnId(1)],
            include: Vec::new(),
        });
        let tablets = (0..tablets).map(|_| self.engine.next_tablet_id()).collect();
        let table = Arc::new(TableDef {
            id: self.engine.next_object_id(),
            namespace: catalog::PUBLIC,
            name: "t".into(),
            owner: "basalt".into(),
            columns: columns.into_iter().enumerate().map(column).collect(),
            primary_key,
            partitions: vec![PartitionDef { name: "t".into(), tablets }],
            distribution: Distribution::Hash(vec![ColumnId(1)]),
            options: clustered_by().into_iter().collect(),
            comment: None,
            checks: Vec::new(),
            on_commit: OnCommit::PreserveRows,
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            materialized: None,
            revision: Revision::NEW,
        });
        let mut txn = self.begin();
        txn.edit_catalog(vec![CatalogEdit::PutTable(table.clone())]).unwrap();
        txn.commit().await.unwrap();
        self.engine.catalog().table(table.id).unwrap().clone()
    }

    /// Of an engine that has been shut down.
    fn assert_sound(self) {
        let Fixture { dir, engine } = self;
        drop(engine);
        let report = check(&Os::real(), dir.path(), &mut |_| {}).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
    }

    fn table(&self) -> Arc<TableDef> {
        self.engine.catalog().table_named(catalog::PUBLIC, "t").unwrap().clone()
    }
}

fn row(id: i64, v: &str) -> Vec<Datum> {
    vec![Datum::I64(id), Datum::text(v)]
}

fn scan(read: &ReadContext, table: &Arc<TableDef>) -> Result<Vec<TabletScan>> {
    let spec = ScanSpec {
        table: table.clone(),
        columns: vec![ColumnId(2), ColumnId(1)],
        predicates: Vec::new(),
        with_identity: false,
    };
    Ok(read.scan(spec)?.0)
}

/// All rows, by id. Panics if an id comes twice, or if blocks have others: of several scans, which may have left
/// something for the next one.
fn contents(read: &ReadContext, table: &Arc<TableDef>) -> BTreeMap<i64, String> {
    let found = contents_of_batches(read, table);
    for scan in 0..3 {
        assert!(contents_of_blocks(read, table) == found, "blocks of scan {scan} have other rows");
    }
    found
}

fn contents_of_blocks(read: &ReadContext, table: &Arc<TableDef>) -> BTreeMap<i64, String> {
    use arrow_array::cast::AsArray;
    let mut found = BTreeMap::new();
    for mut part in scan(read, table).unwrap() {
        while let Some(mut block) = part.next_block().unwrap() {
            let visible = block.visible().cloned();
            let text = block.vector(0).unwrap().to_array(PhysType::Bytes);
            let ids = block.vector(1).unwrap().to_array(PhysType::I64);
            let (text, ids) = (text.as_binary_view(), ids.as_primitive::<arrow_array::types::Int64Type>());
            for row in (0..block.rows()).filter(|row| visible.as_ref().is_none_or(|visible| visible.value(*row))) {
                let text = String::from_utf8(text.value(row).to_vec()).unwrap();
                assert_eq!(found.insert(ids.value(row), text), None, "row {} came twice", ids.value(row));
            }
        }
    }
    found
}

fn contents_of_batches(read: &ReadContext, table: &Arc<TableDef>) -> BTreeMap<i64, String> {
    contents_of_parts(scan(read, table).unwrap())
}

fn contents_of_parts(parts: Vec<TabletScan>) -> BTreeMap<i64, String> {
    use arrow_array::cast::AsArray;
    let mut found = BTreeMap::new();
    for mut part in parts {
        while let Some(batch) = part.next_batch().unwrap() {
            let text = batch.columns[0].as_string_view();
            let ids = batch.columns[1].as_primitive::<arrow_array::types::Int64Type>();
            for i in 0..batch.rows {
                let twice = found.insert(ids.value(i), text.value(i).to_string());
                assert_eq!(twice, None, "row {} came twice", ids.value(i));
            }
        }
    }
    found
}

/// Compares without printing thousands of rows.
fn assert_rows(found: &BTreeMap<i64, String>, expected: &BTreeMap<i64, String>) {
    let missing: Vec<_> = expected.iter().filter(|(id, v)| found.get(id) != Some(v)).take(5).collect();
    let extra: Vec<_> = found.iter().filter(|(id, _)| !expected.contains_key(id)).take(5).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing or changed {missing:?}, extra {extra:?}");
}

fn now(f: &Fixture) -> BTreeMap<i64, String> {
    contents(&f.engine.read(Version::ZERO), &f.table())
}

async fn insert(f: &Fixture, rows: impl IntoIterator<Item = i64>, v: &str) {
    let table = f.table();
    let mut txn = f.begin();
    for id in rows {
        assert_eq!(txn.insert(&table, &row(id, v)).await.unwrap(), Inserted::Done);
    }
    txn.commit().await.unwrap();
}

/// A row of a walk as values; those of columns that the walk was not asked for may be null.
fn values_of(table: &TableDef, row: SeenRow<'_>) -> Vec<Datum> {
    match row {
        SeenRow::Encoded(bytes) => crate::rows::decode(table, bytes).unwrap(),
        SeenRow::Values(values) => values.to_vec(),
    }
}

fn key(table: &TableDef, id: i64) -> Key {
    table.key_of(&row(id, "")).unwrap()
}

fn tablet_of(f: &Fixture, table: &TableDef, id: i64) -> TabletId {
    f.engine.route_row(table, &row(id, ""))
}

async fn locked(f: &Fixture, txn: &mut Txn, id: i64) -> Result<Locked> {
    let table = f.table();
    let (tablet, key) = (tablet_of(f, &table, id), key(&table, id));
    txn.lock_row(&table, tablet, &key, RowLock::Update, WaitPolicy::Wait(None)).await
}

async fn update(f: &Fixture, txn: &mut Txn, id: i64, v: &str) {
    let Locked::Row(current) = locked(f, txn, id).await.unwrap() else { panic!("row {id} is gone") };
    txn.update(&f.table(), &current, &row(id, v)).await.unwrap();
}

async fn delete(f: &Fixture, txn: &mut Txn, id: i64) {
    let Locked::Row(current) = locked(f, txn, id).await.unwrap() else { panic!("row {id} is gone") };
    txn.delete(&f.table(), &current).await.unwrap();
}

fn columns(ids: std::ops::Range<i64>, v: &str) -> Vec<arrow_array::ArrayRef> {
    let mut id = ColumnBuilder::new(PhysType::I64, 0);
    let mut text = ColumnBuilder::new(PhysType::Bytes, 0);
    for i in ids {
        assert!(id.push(&Datum::I64(i)) && text.push(&Datum::text(v)));
    }
    vec![id.finish(), text.finish()]
}

#[tokio::test]
async fn rows_survive_a_restart_wherever_they_rest() {
    for (tablets, keyed) in [(1, true), (4, true), (1, false)] {
        let mut f = Fixture::new();
        let table = f.create_table(tablets, keyed).await;
        insert(&f, 0..50, "hot").await;
        let mut txn = f.begin();
        let mut bulk = txn.bulk_insert(&table).unwrap();
        bulk.push(&columns(1000..4000, "bulk")).await.unwrap();
        assert_eq!(bulk.finish().await.unwrap(), 3000);
        txn.commit().await.unwrap();
        let mut expected: BTreeMap<i64, String> =
            (0..50).map(|id| (id, "hot".into())).chain((1000..4000).map(|id| (id, "bulk".into()))).collect();
        assert_rows(&now(&f), &expected);
        f = f.reopen();
        assert_rows(&now(&f), &expected);
        f.engine.freeze_table(table.id).unwrap();
        assert_eq!(f.engine.stats().hot_rows, 0);
        assert_rows(&now(&f), &expected);
        if keyed {
            let mut txn = f.begin();
            update(&f, &mut txn, 7, "changed").await;
            update(&f, &mut txn, 1007, "changed").await;
            delete(&f, &mut txn, 8).await;
            delete(&f, &mut txn, 1008).await;
            txn.commit().await.unwrap();
            expected.insert(7, "changed".into());
            expected.insert(1007, "changed".into());
            expected.remove(&8);
            expected.remove(&1008);
        }
        assert_rows(&now(&f), &expected);
        f = f.reopen();
        assert_rows(&now(&f), &expected);
        f.engine.checkpoint().unwrap();
        insert(&f, 5000..5010, "late").await;
        expected.extend((5000..5010).map(|id| (id, "late".into())));
        f = f.reopen();
        assert_rows(&now(&f), &expected);
        f.engine.compact_table(table.id).unwrap();
        assert_rows(&now(&f), &expected);
        f = f.reopen();
        assert_rows(&now(&f), &expected);
        f.engine.shutdown().unwrap();
        let report = check(&Os::real(), f.dir.path(), &mut |_| {});
        assert!(matches!(report, Err(Error::DirectoryInUse { .. })));
        f.assert_sound();
    }
}

#[tokio::test]
async fn an_old_snapshot_sees_its_rows_through_freeze_and_compaction() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..300, "one").await;
    let old = f.engine.read(Version::ZERO);
    let before = contents(&old, &table);
    for round in 0..3 {
        let mut txn = f.begin();
        for id in (0..300).step_by(3) {
            update(&f, &mut txn, id, &format!("two {round}")).await;
        }
        if round == 1 {
            delete(&f, &mut txn, 1).await;
        }
        txn.commit().await.unwrap();
        let current = now(&f);
        f.engine.freeze_table(table.id).unwrap();
        assert_rows(&contents(&old, &table), &before);
        assert_rows(&now(&f), &current);
        f.engine.compact_table(table.id).unwrap();
        assert_rows(&contents(&old, &table), &before);
        assert_rows(&now(&f), &current);
    }
    drop(old);
    f.engine.compact_table(table.id).unwrap();
    assert_eq!(f.engine.file_list().iter().map(|file| file.rows - file.deleted).sum::<u64>(), 299);
}

/// Garbage collection goes on without a reader that is too old, and tells it so.
#[tokio::test]
async fn a_snapshot_that_is_too_old_keeps_nothing_and_reads_nothing() {
    for age_max in [None, Some(Duration::ZERO)] {
        let f = Fixture::configured(|config| EngineConfig { snapshot_age_max: age_max, ..config });
        let table = f.create_table(1, true).await;
        insert(&f, 0..300, "one").await;
        let (old, mut other) = (f.begin_at(true), f.begin());
        let before = contents(&old.read(), &table);
        let mut begun = scan(&old.read(), &table).unwrap();
        let mut txn = f.begin();
        for id in 0..300 {
            update(&f, &mut txn, id, "two").await;
        }
        txn.commit().await.unwrap();
        let tablet = f.engine.tablets().into_iter().find(|tablet| tablet.hot.rows() > 0).unwrap();
        assert!(f.engine.kept_bytes() > 300 * 8);
        f.engine.sweep(&tablet);
        if age_max.is_none() {
            assert!(f.engine.kept_bytes() > 300 * 8);
            assert_rows(&contents(&old.read(), &table), &before);
            continue;
        }
        assert!(f.engine.kept_bytes() < 300 * 8, "{} bytes are kept", f.engine.kept_bytes());
        assert!(matches!(old.check_age(), Err(Error::SnapshotTooOld)));
        assert!(matches!(scan(&old.read(), &table), Err(Error::SnapshotTooOld)));
        assert!(matches!(begun[0].next_batch(), Err(Error::SnapshotTooOld)));
        // One with a snapshot for each statement goes on.
        assert!(matches!(other.check_age(), Err(Error::SnapshotTooOld)));
        other.next_statement();
        assert_rows(&contents(&other.read(), &table), &now(&f));
    }
}

#[tokio::test]
async fn rolled_back_changes_leave_nothing() {
    let f = Fixture::new();
    let table = f.create_table(4, true).await;
    insert(&f, 0..100, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    let expected = now(&f);
    let mut txn = f.begin();
    update(&f, &mut txn, 3, "x").await;
    delete(&f, &mut txn, 4).await;
    let mark = txn.savepoint();
    txn.insert(&table, &row(500, "kept")).await.unwrap();
    let inner = txn.savepoint();
    txn.insert(&table, &row(501, "dropped")).await.unwrap();
    delete(&f, &mut txn, 5).await;
    let mut bulk = txn.bulk_insert(&table).unwrap();
    bulk.push(&columns(600..1600, "bulk")).await.unwrap();
    bulk.finish().await.unwrap();
    f.engine.compact_table(table.id).unwrap();
    txn.rollback_to(inner).unwrap();
    txn.next_statement();
    let seen = contents(&txn.read(), &table);
    assert_eq!(seen.get(&500).map(String::as_str), Some("kept"));
    assert_eq!(seen.len(), 100);
    txn.rollback_to(mark).unwrap();
    txn.rollback();
    assert_rows(&now(&f), &expected);
    let f = f.reopen();
    assert_rows(&now(&f), &expected);
}

#[tokio::test]
async fn a_savepoint_undone_in_the_log_stays_undone_after_a_restart() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut txn = f.begin();
    txn.insert(&table, &row(1, "kept")).await.unwrap();
    let mark = txn.savepoint();
    txn.insert(&table, &row(2, "undone")).await.unwrap();
    txn.rollback_to(mark).unwrap();
    txn.insert(&table, &row(3, "kept")).await.unwrap();
    txn.commit().await.unwrap();
    let f = f.reopen();
    assert_eq!(now(&f).into_keys().collect::<Vec<_>>(), [1, 3]);
}

#[tokio::test]
async fn a_key_is_given_once() {
    let f = Fixture::new();
    let table = f.create_table(4, true).await;
    insert(&f, 0..200, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    insert(&f, 200..210, "hot").await;
    let mut txn = f.begin();
    for id in [0, 205] {
        assert!(matches!(txn.insert(&table, &row(id, "x")).await.unwrap(), Inserted::Duplicate { .. }));
    }
    for ids in [190..390, 209..409, 0..5] {
        let mark = txn.savepoint();
        let outcome = async {
            let mut bulk = txn.bulk_insert(&table)?;
            bulk.push(&columns(ids.clone(), "bulk")).await?;
            bulk.finish().await
        }
        .await;
        assert!(matches!(outcome, Err(Error::DuplicateKey { .. })), "{ids:?}: {outcome:?}");
        txn.rollback_to(mark).unwrap();
    }
    // Within one batch too.
    let mark = txn.savepoint();
    let outcome = async {
        let mut bulk = txn.bulk_insert(&table)?;
        bulk.push(&columns(1000..1500, "bulk")).await?;
        bulk.push(&columns(1200..1300, "bulk")).await?;
        bulk.finish().await
    }
    .await;
    assert!(matches!(outcome, Err(Error::DuplicateKey { .. })), "{outcome:?}");
    txn.rollback_to(mark).unwrap();
    delete(&f, &mut txn, 0).await;
    assert_eq!(txn.insert(&table, &row(0, "again")).await.unwrap(), Inserted::Done);
    txn.commit().await.unwrap();
    assert_eq!(now(&f).len(), 210);
    assert_eq!(now(&f)[&0], "again");
}

#[tokio::test]
async fn a_single_writer_waits_for_an_undecided_batch() {
    for commit in [true, false] {
        let f = Arc::new(Fixture::new());
        let table = f.create_table(1, true).await;
        let mut batch = f.begin();
        let mut bulk = batch.bulk_insert(&table).unwrap();
        bulk.push(&columns(0..500, "bulk")).await.unwrap();
        bulk.finish().await.unwrap();
        let single = {
            let (f, table) = (f.clone(), table.clone());
            tokio::spawn(async move {
                let mut txn = f.begin();
                let outcome = txn.insert(&table, &row(42, "single")).await.unwrap();
                txn.commit().await.unwrap();
                outcome
            })
        };
        while f.engine.stats().lock_waiters == 0 {
            tokio::task::yield_now().await;
        }
        if commit {
            batch.commit().await.map(|_| ()).unwrap()
        } else {
            batch.rollback()
        }
        let outcome = single.await.unwrap();
        assert_eq!(matches!(outcome, Inserted::Duplicate { .. }), commit);
        assert_eq!(now(&f).len(), if commit { 500 } else { 1 });
    }
}

#[tokio::test]
async fn read_committed_rechecks_and_repeatable_read_refuses() {
    let f = Arc::new(Fixture::new());
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    for repeatable_read in [false, true] {
        let mut second = f.begin_at(repeatable_read);
        contents(&second.read(), &table);
        let mut first = f.begin();
        update(&f, &mut first, 5, "first").await;
        let waiting = {
            let f = f.clone();
            tokio::spawn(async move {
                let outcome = locked(&f, &mut second, 5).await;
                drop(second);
                outcome
            })
        };
        while f.engine.stats().lock_waiters == 0 {
            tokio::task::yield_now().await;
        }
        first.commit().await.unwrap();
        match waiting.await.unwrap() {
            Ok(Locked::Row(current)) => {
                assert!(!repeatable_read);
                assert_eq!(current.values, row(5, "first"));
            }
            Err(Error::Serialization(_)) => assert!(repeatable_read),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn statements_see_own_rows_of_earlier_statements_only() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut txn = f.begin();
    txn.next_statement();
    txn.insert(&table, &row(1, "one")).await.unwrap();
    assert_eq!(contents(&txn.read(), &table).len(), 0);
    txn.next_statement();
    assert_eq!(contents(&txn.read(), &table).len(), 1);
    assert_eq!(now(&f).len(), 0);
    txn.commit().await.unwrap();
    assert_eq!(now(&f).len(), 1);
}

#[tokio::test]
async fn tables_come_and_go_with_their_transactions() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::DropTable(table.id)]).unwrap();
    assert!(txn.catalog().table_named(catalog::PUBLIC, "t").is_none());
    txn.rollback();
    assert_eq!(now(&f).len(), 10);
    let emptied = TableDef {
        partitions: vec![PartitionDef { name: "t".into(), tablets: vec![f.engine.next_tablet_id()] }],
        ..(*table).clone()
    };
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::PutTable(Arc::new(emptied.clone()))]).unwrap();
    txn.insert(&Arc::new(emptied), &row(99, "new")).await.unwrap();
    txn.commit().await.unwrap();
    assert_eq!(now(&f).into_keys().collect::<Vec<_>>(), [99]);
    let f = f.reopen();
    assert_eq!(now(&f).into_keys().collect::<Vec<_>>(), [99]);
    f.engine.checkpoint().unwrap();
    let f = f.reopen();
    assert_eq!(now(&f).into_keys().collect::<Vec<_>>(), [99]);
}

#[tokio::test]
async fn a_checkpoint_under_an_open_transaction_keeps_what_it_commits_later() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    let mut open = f.begin();
    update(&f, &mut open, 3, "late").await;
    delete(&f, &mut open, 4).await;
    open.insert(&table, &row(100, "late")).await.unwrap();
    insert(&f, 20..30, "two").await;
    f.engine.checkpoint().unwrap();
    f.engine.freeze_table(table.id).unwrap();
    f.engine.compact_table(table.id).unwrap();
    open.commit().await.unwrap();
    let expected = now(&f);
    assert_eq!(expected.len(), 20);
    let f = f.reopen();
    assert_rows(&now(&f), &expected);
}

#[tokio::test]
async fn unused_files_are_deleted() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    for round in 0..4 {
        let mut txn = f.begin();
        let mut bulk = txn.bulk_insert(&table).unwrap();
        bulk.push(&columns(round * 500..(round + 1) * 500, "bulk")).await.unwrap();
        bulk.finish().await.unwrap();
        txn.commit().await.unwrap();
    }
    f.engine.checkpoint().unwrap();
    f.engine.compact_table(table.id).unwrap();
    insert(&f, 10_000..10_001, "x").await;
    f.engine.checkpoint().unwrap();
    insert(&f, 10_001..10_002, "x").await;
    f.engine.checkpoint().unwrap();
    let listed = f.engine.file_list().len();
    let on_disk = f.engine.os().fs.list(&f.dir.path().join("files")).unwrap().len();
    // Listed segments, the row file of hot rows, the checkpoint itself.
    assert_eq!(on_disk, listed + 2);
}

#[tokio::test]
async fn commits_that_do_not_wait_become_durable_soon() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let options = TxnOptions {
        isolation: Isolation::ReadCommitted,
        synchronous_commit: false,
        session_version: Version::ZERO,
        session: 0,
    };
    let mut txn = f.engine.begin(options);
    txn.insert(&table, &row(1, "soon")).await.unwrap();
    let version = txn.commit().await.unwrap();
    for _ in 0..1000 {
        if f.engine.published() >= version {
            return;
        }
        f.engine.os().clock.sleep(std::time::Duration::from_millis(1));
    }
    panic!("version {version} is not durable after a second");
}

/// A snapshot sees the row that others deleted; with a new row of that key it would see two.
#[tokio::test]
async fn repeatable_read_does_not_reuse_a_key_that_it_still_sees() {
    for (frozen, bulk) in [(false, false), (true, false), (false, true), (true, true)] {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        insert(&f, 0..200, "seen").await;
        if frozen {
            f.engine.freeze_table(table.id).unwrap();
        }
        let mut reader = f.begin_at(true);
        let mut other = f.begin();
        delete(&f, &mut other, 7).await;
        other.commit().await.unwrap();
        let refused = match bulk {
            false => reader.insert(&table, &row(7, "second")).await.map(drop),
            true => {
                let mut load = reader.bulk_insert(&table).unwrap();
                load.push(&columns(7..8, "second")).await.unwrap();
                load.push(&columns(1000..1200, "more")).await.unwrap();
                load.finish().await.map(drop)
            }
        };
        assert!(matches!(refused, Err(Error::Serialization(_))), "{frozen} {bulk}: {refused:?}");
        reader.rollback();
        insert(&f, 7..8, "again").await;
    }
}

#[tokio::test]
async fn a_recheck_follows_a_changed_key() {
    let f = Arc::new(Fixture::new());
    let table = f.create_table(4, true).await;
    insert(&f, 0..10, "one").await;
    let mut second = f.begin();
    contents(&second.read(), &table);
    let mut first = f.begin();
    let Locked::Row(current) = locked(&f, &mut first, 5).await.unwrap() else { panic!() };
    assert_eq!(first.update(&table, &current, &row(500, "moved")).await.unwrap(), Inserted::Done);
    let waiting = {
        let f = f.clone();
        tokio::spawn(async move {
            let found = locked(&f, &mut second, 5).await.unwrap();
            (found, second)
        })
    };
    while f.engine.stats().lock_waiters == 0 {
        tokio::task::yield_now().await;
    }
    first.commit().await.unwrap();
    let (found, second) = waiting.await.unwrap();
    let Locked::Row(current) = found else { panic!("{found:?}") };
    assert_eq!(current.values, row(500, "moved"));
    drop(second);
    // A snapshot taken after the change does not follow.
    let mut third = f.begin();
    assert!(matches!(locked(&f, &mut third, 5).await.unwrap(), Locked::Gone));
}

fn only_tablet(f: &Fixture, table: &TableDef) -> Arc<crate::tablet::Tablet> {
    f.engine.tablet(table.tablets().next().unwrap()).unwrap()
}
