use super::*;
use std::sync::Arc;

const KEY: AdvisoryKey = AdvisoryKey { database: 1, high: 0, low: 7, is_pair: false };
const OTHER: AdvisoryKey = AdvisoryKey { low: 8, ..KEY };

fn asks(pid: i32, exclusive: bool) -> AdvisoryRequest {
    AdvisoryRequest { pid, exclusive, transactional: false }
}

fn wait(limit: Option<Duration>, is_over: &(dyn Fn() -> bool + Sync)) -> AdvisoryWait<'_> {
    AdvisoryWait { limit, deadlock_timeout: Duration::from_secs(1), is_over, elsewhere: &|_| Vec::new() }
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
