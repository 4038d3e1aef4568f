//! A server over an engine on a temporary directory, and clients of all manners.

use super::*;
use basalt_engine::{Engine, EngineConfig};
use basalt_query::DatabaseConfig;
use basalt_sched::Os;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::{NoTls, SimpleQueryMessage};

struct Running {
    server: Server,
    db: Arc<Database>,
    _dir: tempfile::TempDir,
}

async fn start(change: impl FnOnce(&mut ServerConfig, &mut DatabaseConfig)) -> Running {
    let dir = tempfile::tempdir().unwrap();
    let os = Os::real();
    let mut database = DatabaseConfig::new(dir.path().join("tmp"));
    let mut config = ServerConfig::new("127.0.0.1:0".parse().unwrap());
    config.http = Some("127.0.0.1:0".parse().unwrap());
    change(&mut config, &mut database);
    let engine = Engine::open(os.clone(), EngineConfig::new(dir.path()), &|_| {}).unwrap();
    let db = Database::new(engine, os, database).unwrap();
    let server = Server::start(db.clone(), config).await.unwrap();
    Running { server, db, _dir: dir }
}

impl Running {
    async fn client(&self) -> tokio_postgres::Client {
        self.try_client("").await.unwrap()
    }

    async fn try_client(&self, more: &str) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
        let port = self.server.addr().port();
        let params = format!("host=127.0.0.1 port={port} user=basalt dbname=basalt {more}");
        let (client, connection) = tokio_postgres::connect(&params, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    async fn raw(&self) -> TcpStream {
        TcpStream::connect(self.server.addr()).await.unwrap()
    }

    /// Sends bytes, and reads until the server hangs up.
    async fn answer(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.raw().await;
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.expect("the server hangs up");
        answer
    }
}

fn startup() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0basalt\0database\0basalt\0\0";
    let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
    packet.extend_from_slice(body);
    packet
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![tag];
    message.extend((body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// The tags of the messages in an answer.
fn tags(mut bytes: &[u8]) -> String {
    let mut tags = String::new();
    while let [tag, a, b, c, d, ..] = bytes {
        tags.push(*tag as char);
        bytes = &bytes[1 + u32::from_be_bytes([*a, *b, *c, *d]) as usize..];
    }
    tags
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_protocols_answer() {
    let running = start(|_, _| {}).await;
    let client = running.client().await;
    let messages = client.simple_query("SELECT 1 AS a; SELECT 'x' AS b").await.unwrap();
    let rows: Vec<_> = messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
            _ => None,
        })
        .collect();
    assert_eq!(rows, ["1", "x"]);
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text)").await.unwrap();
    client.execute("INSERT INTO t VALUES ($1, $2)", &[&1i32, &"one"]).await.unwrap();
    let row = client.query_one("SELECT id, name FROM t WHERE id = $1", &[&1i32]).await.unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, &str>(1)), (1, "one"));
    let error = client.query("SELECT * FROM missing", &[]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42P01");
    assert!(client.query("SELECT 1", &[]).await.is_ok(), "an error does not end the connection");
    running.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_goes_in_and_comes_out() {
    let running = start(|_, _| {}).await;
    let client = running.client().await;
    client.batch_execute("CREATE TABLE t (id int, name text)").await.unwrap();
    let sink = client.copy_in("COPY t FROM STDIN (FORMAT csv)").await.unwrap();
    let mut sink = std::pin::pin!(sink);
    for piece in ["1,o", "ne\n2,t", "wo\n"] {
        futures::SinkExt::send(&mut sink, bytes::Bytes::from(piece)).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), 2);
    let out = client.copy_out("COPY t TO STDOUT").await.unwrap();
    let pieces: Vec<bytes::Bytes> = futures::TryStreamExt::try_collect(out).await.unwrap();
    assert_eq!(pieces.concat(), b"1\tone\n2\ttwo\n");
    let sink = client.copy_in("COPY t FROM STDIN (FORMAT csv)").await.unwrap();
    let mut sink = std::pin::pin!(sink);
    futures::SinkExt::send(&mut sink, bytes::Bytes::from("x,y\n")).await.unwrap();
    assert_eq!(sink.finish().await.unwrap_err().code().unwrap().code(), "22P02");
    assert_eq!(client.query("SELECT * FROM t", &[]).await.unwrap().len(), 2);
    running.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_stops_at_its_first_error_and_goes_on_after_sync() {
    let running = start(|_, _| {}).await;
    let mut bytes = startup();
    let bind = message(b'B', b"\0\0\0\0\0\0\0\0");
    let execute = message(b'E', b"\0\0\0\0\0");
    bytes.extend(message(b'P', b"\0SELEC\0\0\0"));
    bytes.extend(&bind);
    bytes.extend(&execute);
    bytes.extend(message(b'S', b""));
    bytes.extend(message(b'P', b"\0SELECT 1\0\0\0"));
    bytes.extend(&bind);
    bytes.extend(message(b'D', b"P\0"));
    bytes.extend(&execute);
    bytes.extend(message(b'S', b""));
    bytes.extend(message(b'X', b""));
    let answer = running.answer(&bytes).await;
    let tags = tags(&answer);
    assert!(tags.ends_with("ZEZ12TDCZ"), "{tags}");
    running.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portal_with_a_row_limit_is_suspended_and_resumed() {
    let running = start(|_, _| {}).await;
    let mut bytes = startup();
    bytes.extend(message(b'P', b"\0SELECT * FROM (VALUES (1), (2), (3)) AS v\0\0\0"));
    bytes.extend(message(b'B', b"p\0\0\0\0\0\0\0\0"));
    bytes.extend(message(b'E', b"p\0\0\0\0\x02"));
    bytes.extend(message(b'E', b"p\0\0\0\0\x02"));
    bytes.extend(message(b'S', b""));
    bytes.extend(message(b'X', b""));
    let tags = tags(&running.answer(&bytes).await);
    assert!(tags.ends_with("Z12DDsDCZ"), "{tags}");
    running.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_bytes_leave_the_server_serving() {
    let running = start(|config, _| config.authentication_timeout = Duration::from_millis(300)).await;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..100usize {
        let mut bytes = if round % 2 == 0 { startup() } else { Vec::new() };
        for _ in 0..round * 7 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            bytes.push((state >> 56) as u8);
        }
        let mut stream = running.raw().await;
        let _ = stream.write_all(&bytes).await;
    }
    for bad in [
        &b"\0\0\0\x08"[..],
        b"\x7f\xff\xff\xff\0\x03\0\0",
        b"\0\0\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
    ] {
        running.answer(bad).await;
    }
    for bad in [&b"Q\xff\xff\xff\xff"[..], b"Q\0\0\0\x02", b"\0\0\0\0\0", b"B\0\0\0\x05\0", b"d\x7f\xff\xff\xff"] {
        let answer = running.answer(&[&startup(), bad].concat()).await;
        assert!(contains(&answer, "C08P01"), "{}", bad.escape_ascii());
    }
    assert!(running.client().await.simple_query("SELECT 1").await.is_ok());
    running.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_asked_for_where_there_are_some() {
    let running = start(|_, _| {}).await;
    running.client().await.batch_execute("CREATE ROLE ann LOGIN PASSWORD 'pencil'").await.unwrap();
    assert!(running.try_client("user=ann password=pencil").await.is_ok());
    let error = running.try_client("user=ann password=pen").await.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "28P01");
    let error = running.try_client("user=nobody").await.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "28000");
    let error = running.try_client("dbname=nowhere").await.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "3D000");
    running.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_machines_need_a_superuser_with_a_password() {
    let running = start(|_, _| {}).await;
    let config = ServerConfig::new("0.0.0.0:0".parse().unwrap());
    assert!(matches!(Server::start(running.db.clone(), config.clone()).await, Err(Error::NoPassword { .. })));
    running.client().await.batch_execute("ALTER ROLE basalt PASSWORD 'secret'").await.unwrap();
    let open = Server::start(running.db.clone(), config).await.unwrap();
    open.shutdown().await;
    running.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_beyond_the_limit_are_told_at_once() {
    let running = start(|_, database| {
        database.connections_max = 2;
        database.superuser_reserved_connections = 1;
    })
    .await;
    let first = running.client().await;
    first.batch_execute("CREATE ROLE ann LOGIN").await.unwrap();
    let error = running.try_client("user=ann").await.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "53300");
    let _second = running.client().await;
    let error = running.try_client("").await.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "53300");
    running.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_tells_idle_clients() {
    let running = start(|_, _| {}).await;
    let mut idle = running.raw().await;
    idle.write_all(&startup()).await.unwrap();
    let mut greeting = [0; 1];
    idle.read_exact(&mut greeting).await.unwrap();
    running.server.shutdown().await;
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert!(contains(&rest, "C57P01"));
}

#[tokio::test(flavor = "multi_thread")]
async fn http_tells_health_and_metrics_and_runs_sql() {
    let running = start(|_, _| {}).await;
    let http = running.server.http_addr().unwrap();
    let ask = async |request: String| {
        let mut stream = TcpStream::connect(http).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(ask("GET /health HTTP/1.0\r\n\r\n".into()).await.contains("\"status\":\"ok\""));
    assert!(ask("GET /metrics HTTP/1.0\r\n\r\n".into()).await.contains("\nbasalt_statements_total "));
    assert!(ask("GET /metrics HTTP/1.0\r\n\r\n".into()).await.contains("\nbasalt_background_failing 0\n"));
    let post = |kind: &str, more: &str, sql: &str| {
        let len = sql.len();
        format!(
            "POST /sql HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n{more}Content-Length: {len}\r\n\r\n{sql}"
        )
    };
    let sql = async |sql: &str| ask(post("application/sql", "", sql)).await;
    let expect = |answer: String, status: u16, evidence: &str| {
        assert!(answer.starts_with(&format!("HTTP/1.0 {status} ")) && answer.contains(evidence), "{answer}");
    };
    let values = "\"rows\":[[1,\"x\",null,true]],\"tag\":\"SELECT 1\"}";
    expect(sql("SELECT 1 AS a, 'x' AS b, NULL AS c, true AS d").await, 200, values);
    let json = "application/json; charset=utf-8";
    expect(ask(post(json, "", "{\"sql\": \"SELECT 7\"}")).await, 200, "[[7]]");
    expect(ask(post(json, "", "SELECT 7")).await, 400, "{\\\"sql\\\": ");
    let missing = sql("SELECT * FROM missing").await;
    expect(missing.clone(), 400, "\"sqlstate\":\"42P01\"");
    expect(missing, 400, "\"position\":15");
    // The columns are known before the first row fails: they are not sent.
    let failed = sql("SELECT 1 / (a - 3) FROM generate_series(1, 3) a").await;
    assert!(!failed.contains("columns"), "{failed}");
    expect(failed, 400, "\"sqlstate\":\"22012\"");
    for verb in ["BEGIN", "COMMIT", "SAVEPOINT a"] {
        expect(sql(verb).await, 400, "\"hint\":\"A request is one transaction");
    }
    // Pages can send these.
    for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
        expect(ask(post(kind, "", "SELECT 1")).await, 415, "application/sql");
    }
    running.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_asks_for_the_password_of_a_role_that_has_one() {
    use base64::Engine as _;
    let running = start(|_, _| {}).await;
    let client = running.client().await;
    client.batch_execute("CREATE USER ann PASSWORD 's\u{e9}cret: x'; CREATE USER bob").await.unwrap();
    let http = running.server.http_addr().unwrap();
    let ask = async |query: &str, credentials: Option<&str>| {
        let credentials = credentials.map_or(String::new(), |credentials| {
            let encoded = base64::engine::general_purpose::STANDARD.encode(credentials);
            format!("Authorization: Basic {encoded}\r\n")
        });
        let request = format!(
            "POST /sql{query} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/sql\r\n{credentials}\
             Content-Length: 19\r\n\r\nSELECT current_user"
        );
        let mut stream = TcpStream::connect(http).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    for (query, credentials, status, evidence) in [
        ("", Some("ann:s\u{e9}cret: x"), 200, "[[\"ann\"]]"),
        ("?user=ann", Some("ann:s\u{e9}cret: x"), 200, "[[\"ann\"]]"),
        ("?user=bob", None, 200, "[[\"bob\"]]"),
        ("", Some("bob:"), 200, "[[\"bob\"]]"),
        ("?user=ann", None, 401, "ann"),
        ("", Some("ann:wrong"), 401, "ann"),
        ("", Some("ann:"), 401, "ann"),
        ("", Some("bob:guess"), 401, "bob"),
        ("", Some("nobody:guess"), 401, "nobody"),
        ("", Some("no colon"), 401, "Basic"),
        ("?user=nobody", None, 401, "nobody"),
        ("?user=bob", Some("ann:s\u{e9}cret: x"), 400, "different users"),
    ] {
        let answer = ask(query, credentials).await;
        let right = answer.starts_with(&format!("HTTP/1.0 {status} ")) && answer.contains(evidence);
        assert!(right, "{query} {credentials:?}: {answer}");
        assert_eq!(status == 401, answer.to_lowercase().contains("www-authenticate: basic"), "{answer}");
    }
    running.server.shutdown().await;
}
