//! LISTEN and NOTIFY: idle clients hear at once, busy ones between statements, slow ones hold nobody up.

use anyhow::{Result, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::Wire;
use futures::StreamExt;
use std::time::{Duration, Instant};
use tokio_postgres::{AsyncMessage, NoTls};

const PROMPT: Duration = Duration::from_secs(5);

fn listener(server: &Basalt, channel: &str) -> Result<Wire> {
    let mut wire = server.connect()?;
    wire.run(&format!("LISTEN {channel}"))?;
    Ok(wire)
}

#[test]
fn an_idle_client_hears_at_once_who_said_what() -> Result<()> {
    let server = Basalt::start()?;
    let mut idle = listener(&server, "news")?;
    let mut other = listener(&server, "other")?;
    let mut speaker = server.connect()?;
    let said = Instant::now();
    speaker.run("NOTIFY news, 'first'")?;
    let heard = idle.next_notified()?;
    ensure!(said.elapsed() < PROMPT, "after {:?}", said.elapsed());
    assert_eq!((heard.channel.as_str(), heard.payload.as_str(), heard.pid), ("news", "first", speaker.key.0));
    speaker.run("SELECT pg_notify('news', 'p' || i) FROM generate_series(1, 100) i")?;
    for at in 1..=100 {
        assert_eq!(idle.next_notified()?.payload, format!("p{at}"));
    }
    other.set_read_timeout(Duration::from_millis(300))?;
    ensure!(other.receive().is_err(), "nobody spoke on that channel");
    Ok(())
}

#[test]
fn a_client_in_a_transaction_hears_at_its_end() -> Result<()> {
    let server = Basalt::start()?;
    let mut busy = listener(&server, "news")?;
    let mut speaker = server.connect()?;
    busy.run("BEGIN")?;
    speaker.run("NOTIFY news, 'a'")?;
    speaker.run("NOTIFY news, 'b'")?;
    let inside = busy.simple("SELECT 1", None)?;
    ensure!(inside.replies.iter().all(|reply| reply.notifications.is_empty()), "told inside of a transaction");
    let end = busy.simple("COMMIT", None)?;
    let payloads: Vec<&str> =
        end.replies.iter().flat_map(|reply| &reply.notifications).map(|one| one.payload.as_str()).collect();
    assert_eq!(payloads, ["a", "b"]);
    Ok(())
}

#[test]
fn messages_come_in_the_order_of_commits() -> Result<()> {
    let server = Basalt::start()?;
    let mut idle = listener(&server, "turns")?;
    server.connect()?.run("CREATE TABLE turns (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, said text)")?;
    let addr = server.addr;
    let speakers: Vec<_> = (0..4)
        .map(|who| {
            std::thread::spawn(move || -> Result<()> {
                let mut wire = Wire::connect(addr, "basalt", "basalt")?;
                for at in 0..25 {
                    wire.run(&format!(
                        "BEGIN; LOCK TABLE turns IN EXCLUSIVE MODE; INSERT INTO turns (said) VALUES ('{who}-{at}');
                         NOTIFY turns, '{who}-{at}'; COMMIT"
                    ))?;
                }
                Ok(())
            })
        })
        .collect();
    let mut heard = Vec::new();
    for _ in 0..100 {
        heard.push(idle.next_notified()?.payload);
    }
    for speaker in speakers {
        speaker.join().expect("a speaker panicked")?;
    }
    let rows = server.connect()?.run("SELECT said FROM turns ORDER BY id")?;
    let committed: Vec<&str> = (0..100).filter_map(|row| rows.text(row, 0)).collect();
    assert_eq!(heard, committed);
    Ok(())
}

#[test]
fn a_client_that_reads_nothing_holds_nobody_up_and_is_disconnected() -> Result<()> {
    let server = Basalt::start()?;
    let mut slow = listener(&server, "flood")?;
    slow.run("BEGIN")?;
    let mut speaker = server.connect()?;
    let mut terminated = false;
    for round in 0..40 {
        let said = Instant::now();
        speaker.run(&format!(
            "SELECT pg_notify('flood', repeat('x', 7900) || i) FROM generate_series({round}000, {round}499) i"
        ))?;
        ensure!(said.elapsed() < PROMPT, "a commit took {:?}", said.elapsed());
        let usage = speaker.run("SELECT pg_notification_queue_usage() BETWEEN 0 AND 1")?;
        assert_eq!(usage.text(0, 0), Some("t"));
        let sessions = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {}", slow.key.0);
        terminated = speaker.run(&sessions)?.text(0, 0) == Some("0");
        if terminated {
            break;
        }
    }
    ensure!(terminated, "messages for a listener have no bound");
    let (kind, body) = slow.receive()?;
    let text = String::from_utf8_lossy(&body).into_owned();
    ensure!(kind == b'E' && text.contains("FATAL") && text.contains("C53400"), "{text}");
    assert_eq!(speaker.run("SELECT pg_notification_queue_usage()")?.text(0, 0), Some("0"));
    Ok(())
}

#[test]
fn what_a_client_says_before_it_dies_is_heard_if_it_committed() -> Result<()> {
    let server = Basalt::start()?;
    let mut idle = listener(&server, "last")?;
    let mut speaker = server.connect()?;
    speaker.run("BEGIN; NOTIFY last, 'never'")?;
    drop(speaker);
    let mut speaker = server.connect()?;
    speaker.send_simple("NOTIFY last, 'words'")?;
    assert_eq!(idle.next_notified()?.payload, "words");
    // A listener that is gone is nobody.
    drop(idle);
    for at in 0..10 {
        server.connect()?.run(&format!("NOTIFY last, 'n{at}'"))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_hears_while_it_waits_and_while_it_asks() -> Result<()> {
    let server = Basalt::start()?;
    let config = format!("host=127.0.0.1 port={} user=basalt dbname=basalt", server.addr.port());
    let (client, mut connection) = tokio_postgres::connect(&config, NoTls).await?;
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(one) = message {
                let _ = sender.send((one.channel().to_string(), one.payload().to_string()));
            }
        }
    });
    let (speaker, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("LISTEN a; LISTEN \"B c\"").await?;
    let channels = client.query("SELECT * FROM pg_listening_channels() ORDER BY 1", &[]).await?;
    assert_eq!(channels.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["B c", "a"]);
    speaker.execute("SELECT pg_notify($1, $2)", &[&"B c", &"typed ä"]).await?;
    let next = async |heard: &mut tokio::sync::mpsc::UnboundedReceiver<(String, String)>| {
        tokio::time::timeout(PROMPT, heard.recv()).await.ok().flatten()
    };
    assert_eq!(next(&mut heard).await, Some(("B c".into(), "typed ä".into())));
    let slow = client.query("SELECT pg_sleep(0.5)", &[]);
    let (slow, said) = tokio::join!(slow, speaker.batch_execute("NOTIFY a, 'meanwhile'"));
    slow?;
    said?;
    assert_eq!(next(&mut heard).await, Some(("a".into(), "meanwhile".into())));
    client.batch_execute("UNLISTEN *").await?;
    speaker.batch_execute("NOTIFY a, 'unheard'").await?;
    client.batch_execute("LISTEN a; NOTIFY a, 'own'").await?;
    assert_eq!(next(&mut heard).await, Some(("a".into(), "own".into())));
    Ok(())
}
