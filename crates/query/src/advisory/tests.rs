use super::*;
use std::sync::Arc;

const KEY: AdvisoryKey = AdvisoryKey { database: 1, high: 0, low: 7, is_pair: false };
const OTHER: AdvisoryKey = AdvisoryKey { low: 8, ..KEY };

fn asks(pid: i32, exclusive: bool) -> AdvisoryRequest {
    AdvisoryRequest { pid, exclusive, transactional: false }
}

fn wait(limit: Option<Duration>, is_over: &(dyn Fn() -> bool + Sync)) -> AdvisoryWait<'_> {
    AdvisoryWait { is_over, ..looking(limit, &Vec::new) }
}

/// Looks for circles at every turn.
fn looking(limit: Option<Duration>, elsewhere: &(dyn Fn() -> Vec<LockWaiter> + Sync)) -> AdvisoryWait<'_> {
    let deadlock_timeout = Duration::from_millis(1);
    AdvisoryWait { limit, deadlock_timeout, is_over: &|| false, elsewhere, name_of: &|object| object.to_string() }
}

/// A session waits for a table that others have.
fn waits(session: i32, blocked_by: &[i32]) -> LockWaiter {
    let object = LockObject::Table(basalt_types::ObjectId(7));
    LockWaiter { session, object, mode: "ShareLock", blocked_by: blocked_by.to_vec() }
}

#[tokio::test]
async fn a_lock_is_free_when_every_hold_was_given_back() {
    let locks = AdvisoryLocks::default();
    assert!(locks.try_lock(KEY, asks(1, true)) && locks.try_lock(KEY, asks(1, true)));
    assert!(!locks.try_lock(KEY, asks(2, false)));
    assert!(locks.unlock(KEY, asks(1, true)));
    assert!(!locks.try_lock(KEY, asks(2, false)));
    assert!(locks.unlock(KEY, asks(1, true)) && !locks.unlock(KEY, asks(1, true)));
    assert!(locks.try_lock(KEY, asks(2, false)) && locks.try_lock(KEY, asks(3, false)));
    assert!(!locks.try_lock(KEY, asks(2, true)));
}

#[tokio::test]
async fn a_waiter_is_served_in_turn_and_a_transaction_gives_back_its_own() {
    let locks = Arc::new(AdvisoryLocks::default());
    let transactional = AdvisoryRequest { pid: 1, exclusive: true, transactional: true };
    assert!(locks.try_lock(KEY, transactional));
    let waiting = tokio::spawn({
        let locks = locks.clone();
        async move { locks.lock(KEY, asks(2, true), wait(None, &|| false)).await }
    });
    while locks.table.lock().entries[&KEY].queue.is_empty() {
        tokio::task::yield_now().await;
    }
    // Who comes later does not overtake the one that waits.
    locks.release_since(1, 0);
    assert!(!locks.try_lock(KEY, asks(3, false)));
    waiting.await.expect("runs").expect("is granted");
    locks.release_session(2);
    assert!(locks.table.lock().entries.is_empty());
}

#[tokio::test]
async fn who_closes_a_circle_is_refused() {
    let locks = Arc::new(AdvisoryLocks::default());
    assert!(locks.try_lock(KEY, asks(1, true)) && locks.try_lock(OTHER, asks(2, true)));
    let waiting = tokio::spawn({
        let locks = locks.clone();
        async move { locks.lock(OTHER, asks(1, true), wait(None, &|| false)).await }
    });
    while locks.table.lock().entries[&OTHER].queue.is_empty() {
        tokio::task::yield_now().await;
    }
    let refused = locks.lock(KEY, asks(2, true), wait(None, &|| false)).await;
    assert_eq!(refused.expect_err("a circle").sqlstate, "40P01");
    locks.release_session(2);
    waiting.await.expect("runs").expect("is granted");
    let late = locks.lock(KEY, asks(3, true), wait(Some(Duration::from_millis(20)), &|| false)).await;
    assert_eq!(late.expect_err("held by 1").sqlstate, "55P03");
    assert_eq!(locks.lock(KEY, asks(3, true), wait(None, &|| true)).await.expect_err("over").sqlstate, "57014");
}

#[tokio::test]
async fn a_circle_through_other_locks_is_refused_if_it_stays() {
    let locks = AdvisoryLocks::default();
    assert!(locks.try_lock(KEY, asks(1, true)));
    // 2 waits here for 1, which waits elsewhere for 3, which waits for 2.
    let circle = || vec![waits(1, &[0, 3]), waits(3, &[2]), waits(4, &[1, 2, 3])];
    let refused = locks.lock(KEY, asks(2, true), looking(None, &circle)).await.expect_err("a circle");
    assert_eq!(refused.sqlstate, "40P01");
    let told = refused.detail.expect("is told");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], format!("Process 2 waits for ExclusiveLock on {KEY}; blocked by process 1."));
    assert_eq!(lines[1], "Process 1 waits for ShareLock on relation o7; blocked by process 3.");
    assert_eq!(lines[2], "Process 3 waits for ShareLock on relation o7; blocked by process 2.");
    assert!(locks.table.lock().entries[&KEY].queue.is_empty());
    // One that is there at every other look is none, nor is one that 2 is not part of.
    let looks = AtomicUsize::new(0);
    let now_and_then = || match looks.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => circle(),
        _ => vec![waits(1, &[3]), waits(3, &[1])],
    };
    let limit = Some(Duration::from_millis(400));
    let late = locks.lock(KEY, asks(2, true), looking(limit, &now_and_then)).await.expect_err("held by 1");
    assert_eq!(late.sqlstate, "55P03");
    assert!(looks.load(Ordering::Relaxed) > 3);
}

/// 2 waits here for 1, which waits here for 3, which waits elsewhere for 2: two look, and one of them is refused.
#[tokio::test]
async fn one_of_those_in_a_circle_is_refused() {
    let locks = Arc::new(AdvisoryLocks::default());
    assert!(locks.try_lock(KEY, asks(1, true)) && locks.try_lock(OTHER, asks(3, true)));
    let waiting = [(2, KEY, 3), (1, OTHER, 1)].map(|(pid, key, then_ends)| {
        let locks = locks.clone();
        tokio::spawn(async move {
            let got = locks.lock(key, asks(pid, true), looking(None, &|| vec![waits(3, &[2])])).await;
            if got.is_err() {
                tokio::time::sleep(Duration::from_millis(300)).await;
                locks.release_session(then_ends);
            }
            got.map_err(|error| error.sqlstate)
        })
    });
    let mut ended = Vec::new();
    for waiting in waiting {
        ended.push(waiting.await.expect("runs"));
    }
    ended.sort();
    assert_eq!(ended, [Ok(()), Err("40P01")]);
}

#[test]
fn queues_are_followed_from_one_to_the_next() {
    let mut entry = Entry::default();
    for (ticket, exclusive) in [true, false, false, true, true].into_iter().enumerate() {
        entry.queue.push_back(Waiter { ticket: ticket as u64, pid: ticket as i32 + 10, exclusive });
    }
    entry.holders.push(Holder { pid: 1, counts: [[1, 0], [0, 0]] });
    let nearest = |entry: &Entry, at: usize| {
        let mut met = Vec::new();
        entry.nearest_blockers(at, |pid| met.push(pid));
        met
    };
    // Shared locks go with the holder's, and with each other.
    assert_eq!([0, 1, 2].map(|at| nearest(&entry, at)), [vec![1], vec![10], vec![10]]);
    assert_eq!([3, 4].map(|at| nearest(&entry, at)), [vec![1, 12, 11, 10], vec![1, 13]]);
    // Who holds the lock waits for nobody in the queue: others do not stop at it.
    entry.holders.push(Holder { pid: 13, counts: [[1, 0], [0, 0]] });
    assert_eq!(nearest(&entry, 3), [1]);
    assert_eq!(nearest(&entry, 4), [1, 13, 13, 12, 11, 10]);
}
