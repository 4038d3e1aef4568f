//! POST /sql: one statement in, one JSON document out, written as the rows come.
//!
//! ```text
//! {"columns":[{"name":"a","type":"integer"}],"rows":[[1],[2]],"tag":"SELECT 2"}
//! {"error":{"sqlstate":"42P01","message":"relation \"t\" does not exist"}}
//! ```
//!
//! An error after the first rows stands at the end of the document, beside them. Numbers, booleans and
//! JSON are written as such, everything else as PostgreSQL's text.
//!
//! The user is in the query string (`/sql?user=ann&database=shop`). Only roles without a password, from
//! this machine, are served: there is no way to prove one here. A browser on this machine must not be
//! talked into it by somebody's page, so the content type is one that pages cannot send on their own, and
//! the host is named by an address or `localhost`.

use super::{Body, JSON, TEXT, full};
use crate::listen::Shared;
use arrow_array::RecordBatch;
use basalt_expr::{EvalContext, io::text};
use basalt_query::{Outcome, ResultColumn, RowStream, Session, SqlError, StartupParams};
use basalt_types::DataType;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::mpsc;

const STATEMENT_BYTES_MAX: usize = 16 << 20;
/// A piece of the answer is sent when it is at least this long.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_WAITING: usize = 2;

pub async fn answer(request: Request<Incoming>, peer: SocketAddr, shared: Arc<Shared>) -> Response<Body> {
    if let Err(reason) = admit(&request, peer, &shared) {
        return full(StatusCode::FORBIDDEN, TEXT, format!("{reason}\n"));
    }
    let params = StartupParams {
        user: parameter(&request, "user"),
        database: parameter(&request, "database"),
        options: vec![("application_name".into(), "http".into())],
        client_addr: Some(peer),
    };
    let body = match Limited::new(request.into_body(), STATEMENT_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return full(StatusCode::BAD_REQUEST, TEXT, format!("cannot read the statement: {error}\n")),
    };
    let Ok(sql) = String::from_utf8(body.into()) else {
        return full(StatusCode::BAD_REQUEST, TEXT, "the statement is not UTF-8 text\n".into());
    };
    let (pieces, received) = mpsc::channel(PIECES_WAITING);
    tokio::spawn(run(shared, params, sql, pieces));
    let stream = futures::stream::unfold(received, |mut received| async move {
        let piece: Bytes = received.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(piece)), received))
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(stream)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// A value of the query string, `basalt` if it is not there.
fn parameter(request: &Request<Incoming>, name: &str) -> String {
    let query = request.uri().query().unwrap_or_default();
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or("basalt").to_string()
}

fn admit(request: &Request<Incoming>, peer: SocketAddr, shared: &Shared) -> Result<(), &'static str> {
    if !peer.ip().to_canonical().is_loopback() {
        return Err("/sql serves clients on this machine only");
    }
    if shared.db.role(&parameter(request, "user")).is_some_and(|role| role.password.is_some()) {
        return Err("this role has a password: use the PostgreSQL protocol");
    }
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !matches!(header(CONTENT_TYPE), "application/sql" | "application/json") {
        return Err("send the statement with Content-Type: application/sql");
    }
    let host = header(HOST);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
    match host == "localhost" || host.parse::<IpAddr>().is_ok() {
        true => Ok(()),
        false => Err("name the host by its address or as localhost"),
    }
}

/// Nobody listens any more.
struct Gone;

/// The document as far as it is written.
struct Document {
    text: Vec<u8>,
    pieces: mpsc::Sender<Bytes>,
}

impl Document {
    async fn flush(&mut self) -> Result<(), Gone> {
        let piece = std::mem::take(&mut self.text);
        self.pieces.send(piece.into()).await.map_err(|_| Gone)
    }

    fn json(&mut self, value: &serde_json::Value) {
        self.text.extend_from_slice(value.to_string().as_bytes());
    }
}

async fn run(shared: Arc<Shared>, params: StartupParams, sql: String, pieces: mpsc::Sender<Bytes>) {
    let mut document = Document { text: b"{".to_vec(), pieces };
    let mut session = match Session::open(&shared.db, params) {
        Ok(session) => session,
        Err(error) => {
            write_error(&mut document, &error);
            document.text.extend_from_slice(b"}\n");
            let _ = document.flush().await;
            return;
        }
    };
    let Ok(result) = statement(&mut session, &sql, &mut document).await else { return };
    match result {
        Ok(tag) => {
            document.text.extend_from_slice(b"\"tag\":");
            document.json(&tag.into());
        }
        Err(error) => {
            session.fail();
            // Rolls back; the statement's own error is what the client must hear.
            let _ = session.finish_simple().await;
            write_error(&mut document, &error);
        }
    }
    document.text.extend_from_slice(b"}\n");
    // The last piece: whether somebody takes it is up to the client.
    let _ = document.flush().await;
}

fn write_error(document: &mut Document, error: &SqlError) {
    let fields = [("detail", &error.detail), ("hint", &error.hint), ("context", &error.context)];
    let mut object = serde_json::json!({ "sqlstate": error.sqlstate, "message": error.message });
    for (name, value) in fields {
        if let Some(value) = value {
            object[name] = value.as_str().into();
        }
    }
    document.text.extend_from_slice(b"\"error\":");
    document.json(&object);
}

/// Runs and commits the statement; writes its rows. The outer error: the client has gone.
async fn statement(
    session: &mut Session,
    sql: &str,
    document: &mut Document,
) -> Result<Result<String, SqlError>, Gone> {
    let outcome = async {
        let statements = session.parse_simple(sql)?;
        match statements.as_slice() {
            [statement] => session.run_simple(statement).await,
            _ => Err(SqlError::syntax("send exactly one statement")),
        }
    };
    let tag = match outcome.await {
        Ok(Outcome::Empty) => String::new(),
        Ok(Outcome::Command { tag }) => tag,
        Ok(Outcome::Rows(rows)) => match write_rows(session, rows, document).await? {
            Ok(tag) => tag,
            Err(error) => return Ok(Err(error)),
        },
        Ok(Outcome::CopyIn(_) | Outcome::CopyOut(_)) => {
            return Ok(Err(SqlError::not_supported("COPY needs the PostgreSQL protocol")));
        }
        Err(error) => return Ok(Err(error)),
    };
    Ok(session.finish_simple().await.map(|()| tag))
}

async fn write_rows(
    session: &mut Session,
    mut rows: RowStream,
    document: &mut Document,
) -> Result<Result<String, SqlError>, Gone> {
    let columns = rows.columns.iter();
    let columns = columns.map(|column| serde_json::json!({ "name": column.name, "type": column.ty.sql_name() }));
    document.text.extend_from_slice(b"\"columns\":");
    document.json(&columns.collect());
    document.text.extend_from_slice(b",\"rows\":[");
    let mut first = true;
    let result = loop {
        let batch = match rows.next(session).await {
            Ok(Some(batch)) => batch,
            Ok(None) => break Ok(rows.tag()),
            Err(error) => break Err(error),
        };
        let context = session.formats();
        for row in 0..batch.num_rows() {
            if !std::mem::take(&mut first) {
                document.text.push(b',');
            }
            write_row(&batch, &rows.columns, row, &context, &mut document.text);
            if document.text.len() >= PIECE_BYTES {
                document.flush().await?;
            }
        }
    };
    document.text.extend_from_slice(b"],");
    Ok(result)
}

fn write_row(batch: &RecordBatch, columns: &[ResultColumn], row: usize, context: &EvalContext, out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, (column, array)) in columns.iter().zip(batch.columns()).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let at = out.len();
        match text::format_cell(&column.ty, array, row, context, out) {
            Ok(true) => as_json(&column.ty, at, out),
            // Text that cannot be written is no text: null.
            Ok(false) | Err(_) => {
                out.truncate(at);
                out.extend_from_slice(b"null");
            }
        }
    }
    out.push(b']');
}

/// Turns the text from `at` on into a JSON value in place.
fn as_json(ty: &DataType, at: usize, out: &mut Vec<u8>) {
    match ty {
        DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Oid | DataType::Json | DataType::Jsonb => {}
        // NaN and the infinities are no JSON numbers.
        DataType::Float4 | DataType::Float8 | DataType::Numeric(_)
            if out[at..].iter().all(|byte| byte.is_ascii_digit() || b"+-.e".contains(byte)) => {}
        DataType::Bool => {
            let value = out[at] == b't';
            out.truncate(at);
            out.extend_from_slice(if value { b"true" } else { b"false" });
        }
        _ => {
            let text = String::from_utf8_lossy(&out[at..]).into_owned();
            out.truncate(at);
            out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
        }
    }
}
