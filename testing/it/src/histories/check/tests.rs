//! Histories written by hand, each with one anomaly or none.

use super::super::{Fate, History, Key, Level, Operation, Order, Reading, Step, Transaction, Value};
use super::{Kind, check};

/// A transaction per line: its fate, then its statements; `a1=7` appends 7 to key 1, `r1=7,8` reads key 1, `l1=` with
/// a row lock, `g0..3:1=7;2=8` reads the keys 0 to 3 by a range. Statements that are joined by `+` are one. Each line
/// is a client of its own, and all run at the same time unless the fate says `@from-to`.
fn history(text: &str) -> History {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    History { transactions: lines.enumerate().map(|(client, line)| transaction(client as u32, line)).collect() }
}

fn transaction(client: u32, line: &str) -> Transaction {
    let mut words = line.split_whitespace();
    let fate = words.next().expect("a fate");
    let (fate, times) = fate.split_once('@').unwrap_or((fate, "0-1000"));
    let (began, ended) = times.split_once('-').expect("from and to");
    let fate = match fate {
        "ok" => Fate::Committed,
        "rolled-back" => Fate::Aborted,
        _ => Fate::Unknown,
    };
    let statements = words.enumerate();
    let operations = statements.flat_map(|(statement, word)| {
        word.split('+').map(move |one| operation(statement as u32, one)).collect::<Vec<_>>()
    });
    Transaction {
        client,
        began_ns: began.parse().expect("a time"),
        ended_ns: ended.parse().expect("a time"),
        fate,
        operations: operations.collect(),
    }
}

fn operation(statement: u32, word: &str) -> Operation {
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let one = |text: &str| {
        let (key, list) = text.split_once('=').expect("key=values");
        let values = list.split(',').filter(|value| !value.is_empty());
        (Key(number(key)), values.map(|value| Value(number(value))).collect::<Vec<_>>())
    };
    let rest = &word[1..];
    let step = match &word[..1] {
        "a" => {
            let (key, values) = one(rest);
            Step::Append { key, value: values[0] }
        }
        "g" => {
            let (range, lists) = rest.split_once(':').expect("range:lists");
            let (first, last) = range.split_once("..").expect("from..to");
            let lists = lists.split(';').filter(|list| !list.is_empty()).map(one).collect();
            Step::Range { first: Key(number(first)), last: Key(number(last)), lists }
        }
        _ => {
            let (key, list) = one(rest);
            Step::Read { key, list }
        }
    };
    let reading = if word.starts_with('l') { Reading::Locked } else { Reading::Snapshot };
    Operation { statement, reading, step }
}

fn kinds(text: &str, level: Level, order: Order) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = check(&history(text), level, order).iter().map(|anomaly| anomaly.kind).collect();
    kinds.dedup();
    kinds
}

/// What each of the three levels forbids of it.
fn assert_kinds(text: &str, expected: [&[Kind]; 3]) {
    let levels = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    for (level, expected) in levels.into_iter().zip(expected) {
        assert_eq!(kinds(text, level, Order::RealTime), expected, "{level:?}:{text}");
    }
}

#[test]
fn a_serial_history_is_clean() {
    let serial = "
        ok@0-1 a1=1 a2=1
        ok@2-3 r1=1 r2=1 a1=2
        rolled-back@4-5 a1=3
        ok@6-7 g0..7:1=1,2;2=1 a3=4 r3=4
        ok@8-9 r1=1,2 l3=4 a3=5 g0..7:1=1,2;2=1;3=4,5";
    assert_kinds(serial, [&[], &[], &[]]);
}

#[test]
fn writes_in_different_orders_are_g0() {
    let dirty = "
        ok a1=1 a2=1
        ok a1=2 a2=2
        ok r1=1,2 r2=2,1";
    let circle = &[Kind::DirtyWrite][..];
    assert_kinds(dirty, [circle, circle, circle]);
}

#[test]
fn a_read_of_what_was_rolled_back_is_g1a() {
    let aborted = "
        rolled-back a1=1
        ok r1=1
        ok r2=";
    assert_kinds(aborted, [&[Kind::AbortedRead]; 3]);
}

#[test]
fn a_list_that_ends_within_a_transaction_is_g1b() {
    let intermediate = "
        ok a1=1 a1=2
        ok r1=1
        ok@2000-3000 r1=1,2";
    for level in [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable] {
        assert!(kinds(intermediate, level, Order::Free).contains(&Kind::IntermediateRead), "{level:?}");
    }
}

#[test]
fn reads_of_each_others_writes_are_g1c() {
    let circular = "
        ok a1=1 r2=1
        ok a2=1 r1=1";
    assert_kinds(circular, [&[Kind::CircularFlow]; 3]);
}

#[test]
fn read_skew_is_g_single() {
    let skew = "
        ok a1=1 a2=1
        ok r1= r2=1
        ok@2000-3000 r1=1 r2=1";
    assert_kinds(skew, [&[], &[Kind::GSingle], &[Kind::GSingle]]);
}

#[test]
fn a_read_skew_within_one_statement_is_one_at_read_committed_too() {
    let torn = "
        ok a1=1 a2=1
        ok g0..7:2=1
        ok@2000-3000 r1=1 r2=1";
    assert_kinds(torn, [&[Kind::TornStatement], &[Kind::GSingle], &[Kind::GSingle]]);
    let backwards = "
        ok a1=1 a2=1
        ok r1=1 r2=
        ok@2000-3000 r1=1 r2=1";
    assert_kinds(backwards, [&[Kind::TornStatement], &[Kind::GSingle], &[Kind::GSingle]]);
}

#[test]
fn two_appends_to_one_version_are_a_lost_update() {
    let lost = "
        ok r1= a1=1
        ok r1= a1=2
        ok@2000-3000 r1=1,2";
    let expected = &[Kind::GSingle, Kind::LostUpdate][..];
    assert_kinds(lost, [&[], expected, expected]);
}

#[test]
fn an_append_that_another_overwrote_is_lost() {
    let overwritten = "
        ok@0-1 a1=1
        ok@5-20 r1=1 a1=2
        ok@5-21 r1=1 a1=3
        ok@30-31 r1=1,3";
    assert_kinds(
        overwritten,
        [&[Kind::LostAppend], &[Kind::LostUpdate, Kind::LostAppend], &[Kind::LostUpdate, Kind::LostAppend]],
    );
}

#[test]
fn two_readers_that_disagree_on_an_order_are_a_long_fork() {
    let fork = "
        ok a1=1
        ok a2=1
        ok r1=1 r2=
        ok r2=1 r1=";
    // Statements of READ COMMITTED may see the one before the other, and not the other way round as well.
    assert_kinds(fork, [&[Kind::TornStatement], &[Kind::LongFork], &[Kind::LongFork]]);
    let statements = "
        ok a1=1
        ok a2=1
        ok r1= r2=1
        ok r2= r1=1";
    assert_kinds(statements, [&[], &[Kind::LongFork], &[Kind::LongFork]]);
}

#[test]
fn write_skew_is_g2_item() {
    let skew = "
        ok r1= r2= a1=1
        ok r1= r2= a2=1
        ok@2000-3000 r1=1 r2=1";
    assert_kinds(skew, [&[], &[], &[Kind::G2Item]]);
}

#[test]
fn write_skew_through_rows_that_are_not_there_is_g2() {
    let phantoms = "
        ok g0..7: a1=1
        ok g0..7: a2=1
        ok@2000-3000 g0..7:1=1;2=1";
    assert_kinds(phantoms, [&[], &[], &[Kind::G2]]);
}

/// The reader makes the anomaly: without it the writers are serializable (Fekete, O'Neil and O'Neil, "A Read-Only
/// Transaction Anomaly Under Snapshot Isolation", SIGMOD Record 2004).
#[test]
fn a_reader_may_be_what_makes_a_history_not_serializable() {
    let writers = "
        ok@0-9 r1= r2= a1=1
        ok@1-3 r2= a2=1";
    assert_kinds(writers, [&[], &[], &[]]);
    let reader = format!("{writers}\n ok@4-5 r1= r2=1\n ok@10-11 r1=1 r2=1");
    assert_kinds(&reader, [&[], &[], &[Kind::G2Item]]);
}

#[test]
fn a_transaction_sees_its_own_appends() {
    assert_kinds("ok a1=1 r1=", [&[Kind::Internal]; 3]);
    let twice = "
        ok a1=1
        ok r1= r1=1";
    let expected = &[Kind::GSingle, Kind::Internal][..];
    assert_kinds(twice, [&[], expected, expected]);
    // Behind its own append the row is locked, and so it is by FOR UPDATE.
    let locked = "
        ok a1=1
        ok a1=3
        ok l1=1 r1=1,3";
    assert!(kinds(locked, Level::ReadCommitted, Order::Free).contains(&Kind::Internal));
}

#[test]
fn lists_that_contradict_each_other_are_told() {
    let orders = "
        ok a1=1
        ok a1=2
        ok r1=1,2
        ok r1=2";
    for level in [Level::ReadCommitted, Level::Serializable] {
        assert!(kinds(orders, level, Order::RealTime).contains(&Kind::IncompatibleOrder), "{level:?}");
    }
    assert_kinds("ok a1=1\n ok r1=1,1", [&[Kind::DoubledAppend]; 3]);
    assert_kinds("ok r1=5", [&[Kind::UnknownValue]; 3]);
}

#[test]
fn an_old_snapshot_is_an_anomaly_in_real_time_only() {
    let old = "
        ok@0-1 a1=1
        ok@2-3 r1=
        ok@4-5 r1=1";
    assert_kinds(old, [&[Kind::TornStatement], &[Kind::GSingle], &[Kind::GSingle]]);
    for level in [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable] {
        assert_eq!(kinds(old, level, Order::Free), [], "{level:?}");
        assert_eq!(kinds(old, level, Order::Sessions), [], "{level:?}");
    }
    let session = History {
        transactions: history(old).transactions.into_iter().map(|one| Transaction { client: 1, ..one }).collect(),
    };
    assert_eq!(check(&session, Level::RepeatableRead, Order::Sessions).len(), 1);
}

#[test]
fn an_unknown_transaction_counts_if_it_was_seen() {
    let seen = "
        unknown a1=1 r2=1
        ok a2=1 r1=1";
    assert_kinds(seen, [&[Kind::CircularFlow]; 3]);
    let unseen = "
        unknown a1=1 r2=1
        ok a2=1 r1=";
    assert_kinds(unseen, [&[]; 3]);
}

#[test]
fn an_explanation_names_edges_and_operations() {
    let skew = history("ok r1= a2=1\n ok r2= a1=1\n ok@2000-3000 r1=1 r2=1");
    let found = check(&skew, Level::Serializable, Order::RealTime);
    let text = found[0].explain(&skew);
    for part in ["G2-item", "T0 →rw T1: T0 read key 1 without 1, which T1 appended next", "read 1 []; append 1 to 2"]
    {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}
