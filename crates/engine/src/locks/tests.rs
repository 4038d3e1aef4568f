use super::*;
use std::sync::Arc;

const WAIT: WaitPolicy = WaitPolicy::Wait(None);

fn row(key: u8) -> Object {
    Object::row(TabletId(1), &Key(Box::new([key])))
}

fn owner(number: u64) -> Owner {
    Owner::new(number, number as i32)
}

async fn take(locks: &Locks, number: u64, object: &Object, mode: RowLock) -> Result<Acquired> {
    locks.acquire(owner(number), object, mode.into(), WAIT).await
}

#[tokio::test]
async fn shared_modes_share_and_exclusive_ones_wait() {
    let locks = Arc::new(Locks::new(100));
    assert_eq!(take(&locks, 1, &row(1), RowLock::Share).await.unwrap(), Acquired::Granted);
    assert_eq!(take(&locks, 2, &row(1), RowLock::KeyShare).await.unwrap(), Acquired::Granted);
    let writer = {
        let locks = locks.clone();
        tokio::spawn(async move { take(&locks, 3, &row(1), RowLock::Update).await })
    };
    while locks.waiting_count() == 0 {
        tokio::task::yield_now().await;
    }
    // Fair: a reader that comes after the waiting writer does not overtake it.
    let refused = locks.acquire(owner(4), &row(1), RowLock::Share.into(), WaitPolicy::Fail).await;
    assert!(matches!(refused, Err(Error::LockNotAvailable(_))));
    locks.release_all(owner(1));
    locks.release_all(owner(2));
    assert_eq!(writer.await.unwrap().unwrap(), Acquired::Waited);
    locks.release_all(owner(3));
    assert_eq!(locks.held_count(), 0);
    assert!(locks.table.lock().entries.is_empty());
}

#[tokio::test]
async fn the_youngest_of_a_cycle_is_refused() {
    for youngest_last in [true, false] {
        let locks = Arc::new(Locks::new(100));
        take(&locks, 1, &row(1), RowLock::Update).await.unwrap();
        take(&locks, 2, &row(2), RowLock::Update).await.unwrap();
        let (first, second) = if youngest_last { (1, 2) } else { (2, 1) };
        let object = |owner: u64| row(3 - owner as u8);
        let waiting = {
            let (locks, object) = (locks.clone(), object(first));
            tokio::spawn(async move { take(&locks, first, &object, RowLock::Update).await })
        };
        while locks.waiting_count() == 0 {
            tokio::task::yield_now().await;
        }
        let closing = {
            let (locks, object) = (locks.clone(), object(second));
            tokio::spawn(async move { take(&locks, second, &object, RowLock::Update).await })
        };
        let (victim, survivor) = if youngest_last { (closing, waiting) } else { (waiting, closing) };
        assert!(matches!(victim.await.unwrap(), Err(Error::Deadlock(_))));
        locks.release_all(owner(2));
        assert_eq!(survivor.await.unwrap().unwrap(), Acquired::Waited);
    }
}

#[tokio::test]
async fn two_upgrades_deadlock_and_one_survives() {
    let locks = Arc::new(Locks::new(100));
    take(&locks, 1, &row(1), RowLock::Share).await.unwrap();
    take(&locks, 2, &row(1), RowLock::Share).await.unwrap();
    let first = {
        let locks = locks.clone();
        tokio::spawn(async move { take(&locks, 1, &row(1), RowLock::Update).await })
    };
    while locks.waiting_count() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(take(&locks, 2, &row(1), RowLock::Update).await, Err(Error::Deadlock(_))));
    locks.release_all(owner(2));
    assert_eq!(first.await.unwrap().unwrap(), Acquired::Held);
}

#[tokio::test]
async fn a_dropped_wait_leaves_the_queue_and_a_late_one_times_out() {
    let locks = Locks::new(100);
    take(&locks, 1, &row(1), RowLock::Update).await.unwrap();
    let limit = Duration::from_millis(5);
    let late = locks.acquire(owner(2), &row(1), RowLock::Update.into(), WaitPolicy::Wait(Some(limit))).await;
    assert!(matches!(late, Err(Error::LockTimeout(_))));
    assert_eq!(locks.waiting_count(), 0);
    let skipped = locks.acquire(owner(2), &row(1), RowLock::Update.into(), WaitPolicy::Skip).await.unwrap();
    assert_eq!(skipped, Acquired::Skipped);
    locks.release_all(owner(1));
    assert_eq!(take(&locks, 2, &row(1), RowLock::Update).await.unwrap(), Acquired::Granted);
}

#[tokio::test]
async fn the_number_of_locks_is_bounded() {
    let locks = Locks::new(2);
    take(&locks, 1, &row(1), RowLock::Update).await.unwrap();
    take(&locks, 1, &row(2), RowLock::Update).await.unwrap();
    take(&locks, 1, &row(2), RowLock::Share).await.unwrap();
    assert!(matches!(take(&locks, 1, &row(3), RowLock::Update).await, Err(Error::TooManyLocks { limit: 2 })));
}

#[test]
fn table_modes_conflict_as_in_the_manual() {
    use TableLock::*;
    let modes = [
        AccessShare,
        RowShare,
        RowExclusive,
        ShareUpdateExclusive,
        Share,
        ShareRowExclusive,
        Exclusive,
        AccessExclusive,
    ];
    for a in modes {
        for b in modes {
            let conflict = Mode::from(a).conflicts_with(b.into());
            assert_eq!(conflict, Mode::from(b).conflicts_with(a.into()), "{a:?} {b:?}");
        }
        assert!(Mode::from(AccessExclusive).covers(a.into()));
    }
    assert!(!Mode::from(Share).conflicts_with(Share.into()));
    assert!(Mode::from(RowExclusive).conflicts_with(Share.into()));
    assert!(!Mode::from(RowExclusive).conflicts_with(RowExclusive.into()));
    assert!(!Mode::from(RowExclusive).covers(Share.into()));
}

#[tokio::test]
async fn whoever_nothing_stands_in_the_way_of_is_granted_when_a_waiter_gives_up() {
    let locks = Arc::new(Locks::new(100));
    take(&locks, 1, &row(1), RowLock::Share).await.unwrap();
    let mut waiting = Vec::new();
    for (owner, mode) in [(2, RowLock::NoKeyUpdate), (3, RowLock::Update), (4, RowLock::KeyShare)] {
        let before = locks.waiting_count();
        let task = locks.clone();
        waiting.push(tokio::spawn(async move { take(&task, owner, &row(1), mode).await }));
        while locks.waiting_count() == before {
            tokio::task::yield_now().await;
        }
    }
    // 4 waits only for 3, which gives up; 2 still waits for 1.
    waiting[1].abort();
    let granted = tokio::time::timeout(Duration::from_secs(5), &mut waiting[2]).await;
    assert_eq!(granted.expect("nothing is in the way").unwrap().unwrap(), Acquired::Waited);
    assert_eq!(locks.waiting_count(), 1);
    locks.release_all(owner(1));
    assert_eq!(waiting.remove(0).await.unwrap().unwrap(), Acquired::Waited);
}

/// 1 has a weak lock and 2 waits for it; 3 has nothing against 1's, but does not overtake 2.
#[tokio::test]
async fn a_cycle_through_somebody_ahead_in_a_queue_is_found() {
    let locks = Arc::new(Locks::new(100));
    take(&locks, 1, &row(1), RowLock::KeyShare).await.unwrap();
    take(&locks, 3, &row(2), RowLock::Update).await.unwrap();
    let wait = |owner: u64, key: u8, mode: RowLock| {
        let locks = locks.clone();
        tokio::spawn(async move { take(&locks, owner, &row(key), mode).await })
    };
    let ahead = wait(2, 1, RowLock::Update);
    while locks.waiting_count() < 1 {
        tokio::task::yield_now().await;
    }
    let holder = wait(1, 2, RowLock::Update);
    while locks.waiting_count() < 2 {
        tokio::task::yield_now().await;
    }
    let closing = wait(3, 1, RowLock::KeyShare);
    assert!(matches!(closing.await.unwrap(), Err(Error::Deadlock(_))), "3 is the youngest");
    locks.release_all(owner(3));
    assert_eq!(holder.await.unwrap().unwrap(), Acquired::Waited);
    locks.release_all(owner(1));
    assert_eq!(ahead.await.unwrap().unwrap(), Acquired::Waited);
}

/// A search that looks at everybody's queue once per waiter takes hours here.
#[tokio::test]
async fn thousands_may_wait_for_one_row() {
    let locks = Arc::new(Locks::new(100_000));
    take(&locks, 0, &row(1), RowLock::Update).await.unwrap();
    let waiting: Vec<_> = (1..=8000)
        .map(|number| {
            let locks = locks.clone();
            tokio::spawn(async move {
                let taken = take(&locks, number, &row(1), RowLock::Update).await;
                locks.release_all(owner(number));
                taken
            })
        })
        .collect();
    while locks.waiting_count() < 8000 {
        tokio::task::yield_now().await;
    }
    locks.release_all(owner(0));
    for waited in waiting {
        assert_eq!(waited.await.unwrap().unwrap(), Acquired::Waited);
    }
}

#[tokio::test]
async fn foreign_locks_are_told_whatever_their_number() {
    let locks = Locks::new(100_000);
    let key = |i: u32| Key(i.to_be_bytes().into());
    for i in 0..5000u32 {
        let object = Object::row(TabletId(1 + i % 2), &key(i));
        locks.acquire(owner(1 + u64::from(i % 3)), &object, RowLock::Update.into(), WAIT).await.unwrap();
    }
    let expected: Vec<Key> = (0..5000).filter(|i| i % 2 == 0 && i % 3 != 0).map(key).collect();
    assert_eq!(locks.foreign_row_locks(owner(1), TabletId(1)), expected);
    for number in 1..=3 {
        locks.release_all(owner(number));
    }
    assert_eq!(locks.held_count(), 0);
    assert!(locks.table.lock().entries.is_empty());
}

/// Reads without locks are off while somebody has a table alone or asks for it, and no longer.
#[tokio::test]
async fn who_asked_for_a_table_alone_in_vain_keeps_nobody_out() {
    let locks = Arc::new(Locks::new(100));
    let (table, other) = (Object::Table(ObjectId(7)), Object::Table(ObjectId(8)));
    let alone = || Mode::from(TableLock::AccessExclusive);
    let ask = |number, object: &Object, policy| {
        let (locks, object) = (locks.clone(), object.clone());
        async move { locks.acquire(owner(number), &object, alone(), policy).await }
    };
    assert!(locks.try_acquire(owner(1), &table, TableLock::AccessShare.into()).unwrap());
    assert!(!locks.is_table_excluded());
    assert!(ask(2, &table, WaitPolicy::Fail).await.is_err());
    assert_eq!(ask(2, &table, WaitPolicy::Skip).await.unwrap(), Acquired::Skipped);
    assert!(ask(2, &table, WaitPolicy::Wait(Some(Duration::from_millis(5)))).await.is_err());
    assert!(!locks.is_table_excluded());
    {
        let mut waits = pin!(ask(2, &table, WAIT));
        assert!(futures::poll!(waits.as_mut()).is_pending());
        assert!(locks.is_table_excluded(), "a reader comes behind who waits");
    }
    assert!(!locks.is_table_excluded(), "it was cancelled");
    // What is held counts until the end, whatever is refused besides.
    assert_eq!(ask(2, &other, WAIT).await.unwrap(), Acquired::Granted);
    assert!(ask(2, &table, WaitPolicy::Fail).await.is_err());
    assert!(locks.is_table_excluded());
    locks.release_all(owner(2));
    assert!(!locks.is_table_excluded());
    assert_eq!(ask(3, &other, WAIT).await.unwrap(), Acquired::Granted);
    locks.release_all(owner(3));
    locks.release_all(owner(1));
    assert!(!locks.is_table_excluded() && locks.held_count() == 0);
}

/// Who holds what, who waits, and for whom; rows that nobody waits for are left out.
#[tokio::test]
async fn waits_are_told() {
    let locks = Arc::new(Locks::new(100));
    let table = Object::Table(ObjectId(7));
    locks.acquire(owner(1), &table, TableLock::RowExclusive.into(), WAIT).await.unwrap();
    take(&locks, 1, &row(1), RowLock::NoKeyUpdate).await.unwrap();
    take(&locks, 1, &row(2), RowLock::Update).await.unwrap();
    let waits = |number, mode| {
        let locks = locks.clone();
        tokio::spawn(async move { take(&locks, number, &row(1), mode).await })
    };
    // Goes with the first.
    take(&locks, 3, &row(1), RowLock::KeyShare).await.unwrap();
    let second = waits(2, RowLock::Update);
    while locks.waiting_count() < 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(locks.waits(), [(2, row(1))]);
    assert_eq!(locks.blockers(2), [1, 3]);
    assert_eq!(locks.blockers(1), [] as [i32; 0]);
    let waiter = LockWaiter { session: 2, object: row(1), mode: "AccessExclusiveLock", blocked_by: vec![1, 3] };
    assert_eq!(locks.waiters(), [waiter]);
    let told = |reports: Vec<LockReport>| -> Vec<(i32, Object, &'static str, bool)> {
        reports.into_iter().map(|told| (told.owner.session, told.object, told.mode, told.granted)).collect()
    };
    let expected = [
        (1, table, "RowExclusiveLock", true),
        (1, row(1), "ExclusiveLock", true),
        (2, row(1), "AccessExclusiveLock", false),
        (3, row(1), "AccessShareLock", true),
    ];
    assert_eq!(told(locks.report()), expected);
    locks.release_all(owner(1));
    locks.release_all(owner(3));
    second.await.unwrap().unwrap();
    assert_eq!(locks.waits(), []);
    assert_eq!(told(locks.report()), []);
}

#[tokio::test]
async fn a_deadlock_tells_its_circle_from_the_refused_one_on() {
    let locks = Arc::new(Locks::new(100));
    for number in 1..=3 {
        take(&locks, number, &row(number as u8), RowLock::Update).await.unwrap();
    }
    let waits = |number, key| {
        let locks = locks.clone();
        tokio::spawn(async move { take(&locks, number, &row(key), RowLock::Share).await })
    };
    let (first, third) = (waits(1, 2), waits(3, 1));
    while locks.waiting_count() < 2 {
        tokio::task::yield_now().await;
    }
    let second = waits(2, 3);
    let Err(Error::Deadlock(circle)) = third.await.unwrap() else { panic!("the youngest is refused") };
    let told: Vec<String> = circle.iter().map(ToString::to_string).collect();
    let expected = [(3, 1), (1, 2), (2, 3)].map(|(session, by)| {
        format!("Process {session} waits for RowShareLock on row in tablet t1; blocked by process {by}.")
    });
    assert_eq!(told, expected);
    locks.release_all(owner(3));
    second.await.unwrap().unwrap();
    locks.release_all(owner(2));
    first.await.unwrap().unwrap();
}

fn modes(locks: &Locks, number: u64, object: &Object) -> Option<Mode> {
    let table = locks.table.lock();
    let holders = table.entries.get(object).map(|entry| entry.holders.clone()).unwrap_or_default();
    holders.iter().find(|(holder, _)| *holder == owner(number)).map(|(_, mode)| *mode)
}

#[tokio::test]
async fn what_was_taken_since_a_mark_is_given_back_and_the_rest_is_held_as_before() {
    let locks = Locks::new(100);
    let (txn, table) = (Object::Txn(TxnId(7)), Object::Table(ObjectId(1)));
    take(&locks, 1, &row(1), RowLock::KeyShare).await.unwrap();
    take(&locks, 1, &row(2), RowLock::Update).await.unwrap();
    let outer = locks.position(owner(1));
    take(&locks, 1, &row(1), RowLock::Share).await.unwrap();
    take(&locks, 1, &row(3), RowLock::Update).await.unwrap();
    let inner = locks.position(owner(1));
    take(&locks, 1, &row(1), RowLock::Update).await.unwrap();
    take(&locks, 1, &row(4), RowLock::KeyShare).await.unwrap();
    take(&locks, 1, &row(4), RowLock::Update).await.unwrap();
    locks.acquire_new(owner(1), &txn, Mode::RUNNING).unwrap();
    locks.acquire(owner(1), &table, TableLock::AccessExclusive.into(), WAIT).await.unwrap();
    locks.release_since(owner(1), inner);
    let both = |a: RowLock, b: RowLock| Some(Mode::from(a).with(b.into()));
    assert_eq!(modes(&locks, 1, &row(1)), both(RowLock::KeyShare, RowLock::Share));
    assert_eq!((modes(&locks, 1, &row(4)), modes(&locks, 1, &table)), (None, None));
    assert!(locks.holds(owner(1), &txn) && locks.holds(owner(1), &row(3)));
    locks.release_since(owner(1), inner);
    assert!(locks.holds(owner(1), &txn) && locks.holds(owner(1), &row(3)));

    locks.release_since(owner(1), outer);
    assert_eq!(modes(&locks, 1, &row(1)), Some(RowLock::KeyShare.into()));
    assert_eq!(modes(&locks, 1, &row(2)), Some(RowLock::Update.into()));
    assert_eq!(modes(&locks, 1, &row(3)), None);
    assert_eq!((locks.held_count(), locks.held_by(owner(1))), (3, 3));
    assert!(locks.is_table_excluded(), "counted to the end");
    locks.release_all(owner(1));
    assert_eq!((locks.held_count(), locks.is_table_excluded()), (0, false));
    assert!(locks.table.lock().entries.is_empty() && locks.table.lock().held.is_empty());
}

#[tokio::test]
async fn who_waits_is_granted_what_is_given_back() {
    let locks = Arc::new(Locks::new(10_000));
    take(&locks, 1, &row(1), RowLock::KeyShare).await.unwrap();
    let mark = locks.position(owner(1));
    // More than one hold of the table gives back.
    for key in 0..3 * CHUNK_LOCKS as u64 {
        let object = Object::row(TabletId(2), &Key::from(&key.to_be_bytes()[..]));
        take(&locks, 1, &object, RowLock::Update).await.unwrap();
    }
    take(&locks, 1, &row(1), RowLock::Update).await.unwrap();
    take(&locks, 1, &row(2), RowLock::Update).await.unwrap();
    let waiters = [(2, row(1), RowLock::NoKeyUpdate), (3, row(2), RowLock::Share)].map(|(number, object, mode)| {
        let locks = locks.clone();
        tokio::spawn(async move { take(&locks, number, &object, mode).await })
    });
    let waits_for_the_end = {
        let locks = locks.clone();
        tokio::spawn(async move { locks.wait_for_end(owner(4), owner(1), WAIT).await })
    };
    while locks.waiting_count() < 3 {
        tokio::task::yield_now().await;
    }
    locks.release_since(owner(1), mark);
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().unwrap(), Acquired::Waited);
    }
    assert_eq!(locks.held_by(owner(1)), 2, "the row that it had before, and what stands for it");
    assert!(!waits_for_the_end.is_finished());
    // Still held as before.
    let refused = locks.acquire(owner(5), &row(1), RowLock::Update.into(), WaitPolicy::Fail).await;
    assert!(matches!(refused, Err(Error::LockNotAvailable(_))));
    locks.release_all(owner(1));
    waits_for_the_end.await.unwrap().unwrap();
}
