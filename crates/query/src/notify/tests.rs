use super::*;

fn speaker(pid: i32, database: u32) -> Speaker {
    Speaker { pid, database: ObjectId(database), arrival: Arc::default(), interrupt: Arc::default() }
}

fn said(pid: i32, texts: &[(&str, &str)]) -> Outgoing {
    let pending = Pending::default();
    for (channel, payload) in texts {
        pending.say(Notification::new(pid, channel, payload).unwrap()).unwrap();
    }
    pending.take()
}

fn listen(notifications: &Notifications, of: &Speaker, changes: &[Change]) {
    notifications.publish(of, &Outgoing { changes: changes.to_vec(), ..Outgoing::default() });
}

fn taken(notifications: &Notifications, pid: i32) -> Vec<(String, String)> {
    let all = notifications.take(pid);
    all.iter().map(|one| (one.channel.clone(), one.payload.clone())).collect()
}

#[test]
fn messages_reach_listeners_of_their_channel_and_database() {
    let notifications = Notifications::default();
    let (a, b, c) = (speaker(1, 5), speaker(2, 5), speaker(3, 6));
    for of in [&a, &b, &c] {
        listen(&notifications, of, &[Change::Listen("x".into())]);
    }
    listen(&notifications, &b, &[Change::Listen("y".into()), Change::Unlisten("x".into())]);
    notifications.publish(&a, &said(1, &[("x", "1"), ("y", "2"), ("x", "1")]));
    assert_eq!(taken(&notifications, 1), [("x".to_string(), "1".to_string())]);
    assert_eq!(taken(&notifications, 2), [("y".to_string(), "2".to_string())]);
    assert_eq!(taken(&notifications, 3), []);
    assert_eq!(taken(&notifications, 1), []);
}

#[test]
fn what_is_said_after_a_mark_is_forgotten_and_may_be_said_again() {
    let pending = Pending::default();
    let say = |payload| pending.say(Notification::new(1, "x", payload).unwrap()).unwrap();
    say("a");
    let mark = pending.mark();
    say("a");
    say("b");
    pending.change(Change::UnlistenAll);
    pending.back_to(mark);
    say("b");
    let outgoing = pending.take();
    let payloads: Vec<&str> = outgoing.said.iter().map(|one| one.payload.as_str()).collect();
    assert_eq!((payloads, outgoing.changes.len()), (vec!["a", "b"], 0));
    assert!(pending.take().is_empty());
}

#[test]
fn a_full_inbox_ends_its_session_and_holds_nobody_up() {
    let notifications = Notifications::default();
    let of = speaker(1, 5);
    listen(&notifications, &of, &[Change::Listen("x".into())]);
    let payload = "p".repeat(PAYLOAD_BYTES_MAX - 1);
    let one = said(2, &[("x", &payload)]);
    for _ in 0..WAITING_BYTES_MAX / PAYLOAD_BYTES_MAX + 2 {
        notifications.publish(&speaker(2, 5), &one);
    }
    assert!(of.interrupt.is_terminated());
    assert!(notifications.usage() > 0.9 && notifications.usage() <= 1.0);
    notifications.leave(&of);
    assert_eq!(notifications.usage(), 0.0);
}

#[test]
fn a_session_that_has_left_listens_to_nothing() {
    let notifications = Notifications::default();
    let of = speaker(1, 5);
    notifications.leave(&of);
    // Its transaction commits all the same.
    listen(&notifications, &of, &[Change::Listen("x".into())]);
    assert!(notifications.channels(1).is_empty());
}

#[test]
fn names_and_payloads_have_bounds() {
    let error = |channel: &str, payload: &str| Notification::new(1, channel, payload).unwrap_err().message;
    assert_eq!(error("", ""), "channel name cannot be empty");
    assert_eq!(error(&"c".repeat(64), ""), "channel name too long");
    assert_eq!(error("c", &"p".repeat(8000)), "payload string too long");
    assert!(Notification::new(1, &"c".repeat(63), &"p".repeat(7999)).is_ok());
}

#[test]
fn a_transaction_may_not_say_more_than_may_wait() {
    let pending = Pending::default();
    let payload = "p".repeat(7900);
    let result = (0..20_000).try_for_each(|at| pending.say(Notification::new(1, "x", &format!("{at}{payload}"))?));
    assert_eq!(result.unwrap_err().sqlstate, "54000");
}
