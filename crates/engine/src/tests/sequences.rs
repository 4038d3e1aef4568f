//! Values of sequences: given once, whatever happens.

use super::Fixture;
use crate::catalog::PUBLIC;
use crate::{CatalogEdit, Engine, Error, LEASE_VALUES, SequenceDef, SequenceValue};
use basalt_types::{DataType, Revision};

fn sequence(engine: &Engine, min: i64, max: i64, increment: i64) -> SequenceDef {
    let start = if increment > 0 { min } else { max };
    SequenceDef {
        id: engine.next_object_id(),
        namespace: PUBLIC,
        name: "s".into(),
        owner: "basalt".into(),
        ty: DataType::Int8,
        start,
        min,
        max,
        increment,
        cache: 1,
        cycle: false,
        owned_by: None,
        state: engine.next_object_id(),
        begins: SequenceValue { last: start, is_called: false },
        comment: None,
        revision: Revision::NEW,
    }
}

async fn create(f: &Fixture, sequence: &SequenceDef) {
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::PutSequence(sequence.clone())]).unwrap();
    txn.commit().await.unwrap();
}

fn next(f: &Fixture, sequence: &SequenceDef) -> Option<i64> {
    f.engine.draw(sequence).unwrap().map(|drawn| drawn.first)
}

fn leased(f: &Fixture, sequence: &SequenceDef) -> i64 {
    f.engine.sequence_state(sequence).unwrap().leased
}

#[tokio::test]
async fn a_restart_goes_on_behind_every_value_whose_lease_is_durable() {
    let f = Fixture::new();
    let s = sequence(&f.engine, 1, i64::MAX, 1);
    create(&f, &s).await;
    assert_eq!((next(&f, &s), leased(&f, &s)), (Some(1), LEASE_VALUES));
    assert_eq!((next(&f, &s), leased(&f, &s)), (Some(2), LEASE_VALUES - 1));
    let logged = f.engine.draw(&s).unwrap().unwrap().logged;
    f.engine.wait_logged(logged).await.unwrap();
    let f = f.reopen();
    assert_eq!(next(&f, &s), Some(LEASE_VALUES + 2));
    let logged = f.engine.draw(&s).unwrap().unwrap().logged;
    f.engine.wait_logged(logged).await.unwrap();
    f.engine.checkpoint().unwrap();
    let f = f.reopen();
    assert_eq!(next(&f, &s), Some(2 * LEASE_VALUES + 3));
}

#[tokio::test]
async fn a_shutdown_leaves_no_gap() {
    let f = Fixture::new();
    let s = sequence(&f.engine, 1, i64::MAX, 1);
    create(&f, &s).await;
    assert_eq!([next(&f, &s), next(&f, &s)], [Some(1), Some(2)]);
    f.engine.shutdown().unwrap();
    let f = f.reopen();
    assert_eq!([next(&f, &s), next(&f, &s)], [Some(3), Some(4)]);
}

#[tokio::test]
async fn what_setval_said_is_found_again_whichever_way_it_went() {
    let f = Fixture::new();
    let s = sequence(&f.engine, 1, 1000, 1);
    create(&f, &s).await;
    let given: Vec<_> = (0..50).filter_map(|_| next(&f, &s)).collect();
    assert_eq!(given, (1..=50).collect::<Vec<_>>());
    let logged = f.engine.set_sequence(&s, SequenceValue { last: 7, is_called: false }).unwrap();
    f.engine.wait_logged(logged).await.unwrap();
    let f = f.reopen();
    assert_eq!(next(&f, &s), Some(7));
}

#[tokio::test]
async fn sequences_end_or_go_around() {
    let f = Fixture::new();
    let mut s = sequence(&f.engine, 1, 3, 2);
    create(&f, &s).await;
    assert_eq!([next(&f, &s), next(&f, &s), next(&f, &s)], [Some(1), Some(3), None]);
    s.cycle = true;
    assert_eq!([next(&f, &s), next(&f, &s)], [Some(1), Some(3)]);
    s.increment = -1;
    assert_eq!([next(&f, &s), next(&f, &s), next(&f, &s)], [Some(2), Some(1), Some(3)]);
    let mut edge = sequence(&f.engine, i64::MIN, i64::MAX, i64::MIN);
    edge.name = "edge".into();
    create(&f, &edge).await;
    assert_eq!([next(&f, &edge), next(&f, &edge), next(&f, &edge)], [Some(i64::MAX), Some(-1), None]);
}

#[tokio::test]
async fn a_cache_takes_values_together_up_to_the_end() {
    let f = Fixture::new();
    let mut s = sequence(&f.engine, 1, 25, 1);
    s.cache = 10;
    create(&f, &s).await;
    let drawn = |f: &Fixture| f.engine.draw(&s).unwrap().map(|drawn| (drawn.first, drawn.last));
    assert_eq!([drawn(&f), drawn(&f), drawn(&f), drawn(&f)], [Some((1, 10)), Some((11, 20)), Some((21, 25)), None]);
}

#[tokio::test]
async fn a_rolled_back_restart_leaves_the_old_state() {
    let f = Fixture::new();
    let s = sequence(&f.engine, 1, 1000, 1);
    create(&f, &s).await;
    let given: Vec<_> = (0..5).filter_map(|_| next(&f, &s)).collect();
    assert_eq!(given, [1, 2, 3, 4, 5]);
    let s = SequenceDef::clone(&f.engine.catalog().sequences[&s.id]);
    let restarted = SequenceDef { state: f.engine.next_object_id(), ..s.clone() };
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::PutSequence(restarted.clone())]).unwrap();
    assert_eq!(next(&f, &restarted), Some(1));
    txn.rollback();
    assert_eq!(next(&f, &s), Some(6));
    assert!(matches!(f.engine.draw(&restarted), Err(Error::TableGone(_))));
    create(&f, &restarted).await;
    assert_eq!(next(&f, &restarted), Some(1));
    assert!(matches!(f.engine.draw(&s), Err(Error::TableGone(_))));
}

/// Records of a state that was lost say nothing of a later one.
#[tokio::test]
async fn the_state_of_a_restart_that_is_lost_is_nobody_elses() {
    let f = Fixture::new();
    let s = sequence(&f.engine, 1, 1000, 1);
    create(&f, &s).await;
    f.engine.checkpoint().unwrap();
    let s = SequenceDef::clone(&f.engine.catalog().sequences[&s.id]);
    let lost = SequenceDef { state: f.engine.next_object_id(), ..s.clone() };
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::PutSequence(lost.clone())]).unwrap();
    let logged = f.engine.draw(&lost).unwrap().unwrap().logged;
    f.engine.wait_logged(logged).await.unwrap();
    txn.rollback();
    let f = f.reopen();
    let begins = SequenceValue { last: 500, is_called: false };
    let s = SequenceDef::clone(&f.engine.catalog().sequences[&s.id]);
    let restarted = SequenceDef { state: f.engine.next_object_id(), begins, ..s };
    create(&f, &restarted).await;
    let f = f.reopen();
    assert_eq!(next(&f, &restarted), Some(500));
}

/// What was leased by the old ones may lie beyond the new ones.
#[tokio::test]
async fn other_bounds_or_steps_begin_behind_the_last_value() {
    type Alter = fn(SequenceDef) -> SequenceDef;
    let alters: [(Alter, i64); 2] =
        [(|s| SequenceDef { max: 10, ..s }, 6), (|s| SequenceDef { increment: 100, ..s }, 105)];
    for (alter, expected) in alters {
        let f = Fixture::new();
        let s = sequence(&f.engine, 1, 1000, 1);
        create(&f, &s).await;
        let s = SequenceDef::clone(&f.engine.catalog().sequences[&s.id]);
        let altered = alter(s.clone());
        let mut txn = f.begin();
        txn.edit_catalog(vec![CatalogEdit::PutSequence(altered.clone())]).unwrap();
        // Others go on as before until it is committed.
        let given: Vec<_> = (0..5).filter_map(|_| next(&f, &s)).collect();
        assert_eq!(given, [1, 2, 3, 4, 5]);
        txn.commit().await.unwrap();
        assert_eq!(leased(&f, &altered), 0);
        let f = f.reopen();
        assert_eq!(next(&f, &altered), Some(expected));
        let logged = f.engine.draw(&altered).unwrap().unwrap().logged;
        f.engine.wait_logged(logged).await.unwrap();
        let f = f.reopen();
        assert!(next(&f, &altered).is_none_or(|next| next > expected), "values come once");
    }
}
