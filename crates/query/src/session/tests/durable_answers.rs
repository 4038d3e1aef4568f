//! What a client is told of others' commits, while nothing becomes durable.

use super::*;
use basalt_sched::os::File;
use basalt_sched::os::hooked::{Hooks, hooked};
use parking_lot::RwLock;
use std::io;
use tokio::time::timeout;

/// A file system in which nothing is synced while the gate is held.
struct HeldFs {
    gate: Arc<RwLock<()>>,
}

impl Hooks for HeldFs {
    fn sync(&self, file: &dyn File) -> io::Result<()> {
        let _open = self.gate.read();
        file.sync()
    }
}

#[test]
fn errors_are_told_when_what_they_rest_on_is_durable() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Arc::<RwLock<()>>::default());
    let os = Os { fs: hooked(HeldFs { gate: gate.clone() }), ..Os::real() };
    let engine = Engine::open(os.clone(), EngineConfig::new(dir.path().join("data")), &|_| {}).unwrap();
    let db = Database::new(engine, os, DatabaseConfig::new(dir.path().join("tmp"))).unwrap();
    let place = Place { db, _dir: dir };
    block_on(async {
        let mut session = open(&place);
        run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, v int)").await;
        run(&mut session, "CREATE TABLE c (id int REFERENCES t)").await;
        run(&mut session, "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await;
    });
    for (writes, fails, sqlstate) in [
        ("INSERT INTO t VALUES (4, 4)", "INSERT INTO t VALUES (4, 5)", "23505"),
        ("DELETE FROM t WHERE id = 1", "INSERT INTO c VALUES (1)", "23503"),
        ("UPDATE t SET v = 9 WHERE id = 2", "UPDATE t SET v = 8 WHERE id = 2", "40001"),
    ] {
        let mut session = open(&place);
        block_on(async {
            if sqlstate == "40001" {
                run(&mut session, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM t").await;
            }
        });
        let held = gate.write();
        let mut writer = open(&place);
        let writer = std::thread::spawn(move || block_on(async { run(&mut writer, writes).await }));
        // Until it waits for its sync.
        block_on(async { tokio::time::sleep(Duration::from_millis(300)).await });
        assert!(!writer.is_finished(), "{writes}");
        block_on(async {
            let told = run_into(&mut session, fails, &mut String::new()).await.unwrap_err();
            assert_eq!(told.sqlstate, sqlstate, "{}", told.message);
            session.fail();
            let mut answer = std::pin::pin!(session.settle_answers());
            assert!(timeout(Duration::from_millis(200), &mut answer).await.is_err(), "{sqlstate} is told at once");
            drop(held);
            timeout(Duration::from_secs(5), &mut answer).await.unwrap();
        });
        writer.join().unwrap();
    }
}
