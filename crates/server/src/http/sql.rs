//! POST /sql: one statement in, one JSON document out, written as the rows come.
//!
//! ```text
//! {"columns":[{"name":"a","type":"integer"}],"rows":[[1],[2]],"tag":"SELECT 2"}
//! {"error":{"sqlstate":"42P01","message":"relation \"t\" does not exist","position":15}}
//! ```
//!
//! A request is one transaction. What fails before the first piece of the answer has gone out has a status that
//! says so; an error after it stands at the end of the document, beside the rows. Numbers, booleans and JSON are
//! written as such, everything else as PostgreSQL's text.
//!
//! [`admit`](super::admit) says who may ask. As many requests as may be are served at once; the next hears so (503).

use super::admit::{admit, content_of, parameter};
use super::{Body, JSON, full};
use crate::listen::Shared;
use arrow_array::RecordBatch;
use basalt_expr::{EvalContext, io::text};
use basalt_query::syntax::Statement;
use basalt_query::{Outcome, ResultColumn, RowStream, Session, SqlError, StartupParams};
use basalt_types::DataType;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::timeout;

const STATEMENT_BYTES_MAX: usize = 16 << 20;
/// How long a client may take to send them.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// A piece of the answer is sent when it is at least this long.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_WAITING: usize = 2;

/// Why a request is not run.
pub struct Refusal {
    pub status: StatusCode,
    pub message: String,
    pub hint: Option<&'static str>,
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into(), hint: None }
    }

    fn response(self) -> Response<Body> {
        let mut error = serde_json::json!({ "message": self.message });
        if let Some(hint) = self.hint {
            error["hint"] = hint.into();
        }
        with_challenge(full(self.status, JSON, format!("{}\n", serde_json::json!({ "error": error }))))
    }
}

fn with_challenge(mut response: Response<Body>) -> Response<Body> {
    if response.status() == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Basic realm=\"basalt\", charset=\"UTF-8\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

pub async fn answer(request: Request<Incoming>, peer: SocketAddr, shared: Arc<Shared>) -> Response<Body> {
    let Ok(permit) = shared.http_requests.clone().try_acquire_owned() else {
        let mut refusal =
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many statements are being served over HTTP");
        refusal.hint = Some("Try again later, or use the PostgreSQL protocol.");
        return refusal.response();
    };
    match accept(request, peer, &shared).await {
        Ok((params, sql)) => respond(shared, params, sql, permit).await,
        Err(refusal) => refusal.response(),
    }
}

/// Who asks, and what.
async fn accept(
    request: Request<Incoming>,
    peer: SocketAddr,
    shared: &Arc<Shared>,
) -> Result<(StartupParams, String), Refusal> {
    let user = admit(&request, peer, shared).await?;
    let content = content_of(&request)?;
    let params = StartupParams {
        user,
        database: parameter(&request, "database").unwrap_or_else(|| "basalt".into()),
        options: vec![("application_name".into(), "http".into())],
        client_addr: Some(peer),
    };
    let bad = |message: String| Refusal::new(StatusCode::BAD_REQUEST, message);
    let body = Limited::new(request.into_body(), STATEMENT_BYTES_MAX).collect();
    let body = timeout(STATEMENT_TIMEOUT, body).await;
    let late = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the statement did not come in time");
    let body = body.map_err(late)?.map_err(|error| bad(format!("cannot read the statement: {error}")))?.to_bytes();
    Ok((params, content.statement(&body).map_err(bad)?))
}

async fn respond(
    shared: Arc<Shared>,
    params: StartupParams,
    sql: String,
    permit: OwnedSemaphorePermit,
) -> Response<Body> {
    let (pieces, received) = mpsc::channel(PIECES_WAITING);
    let (head, status) = oneshot::channel();
    let document = Document { text: b"{".to_vec(), pieces, head: Some(head) };
    tokio::spawn(async move {
        run(shared, params, sql, document).await;
        drop(permit);
    });
    // Without a status there is no document either.
    let status = status.await.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let stream = futures::stream::unfold(received, |mut received| async move {
        let piece: Bytes = received.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(piece)), received))
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(stream)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    with_challenge(response)
}

/// 4xx: the request will fail again as it is; 5xx: the server is at fault, or short of something.
fn status_of(error: &SqlError) -> StatusCode {
    match error.sqlstate.get(..2).unwrap_or_default() {
        "28" => StatusCode::UNAUTHORIZED,
        "53" => StatusCode::SERVICE_UNAVAILABLE,
        _ if error.sqlstate.starts_with("57P0") => StatusCode::SERVICE_UNAVAILABLE,
        "58" | "XX" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// Nobody listens any more.
struct Gone;

/// The document as far as it is written.
struct Document {
    text: Vec<u8>,
    pieces: mpsc::Sender<Bytes>,
    /// Until the first piece goes out.
    head: Option<oneshot::Sender<StatusCode>>,
}

impl Document {
    async fn flush(&mut self) -> Result<(), Gone> {
        if let Some(head) = self.head.take() {
            head.send(StatusCode::OK).map_err(|_| Gone)?;
        }
        let piece = std::mem::take(&mut self.text);
        self.pieces.send(piece.into()).await.map_err(|_| Gone)
    }

    fn json(&mut self, value: &serde_json::Value) {
        self.text.extend_from_slice(value.to_string().as_bytes());
    }
}

async fn run(shared: Arc<Shared>, params: StartupParams, sql: String, mut document: Document) {
    match run_in_session(&shared, params, &sql, &mut document).await {
        Ok(Ok(tag)) => {
            document.text.extend_from_slice(b"\"tag\":");
            document.json(&tag.into());
        }
        Ok(Err(error)) => write_error(&mut document, &error),
        Err(Gone) => return,
    }
    document.text.extend_from_slice(b"}\n");
    // The last piece: whether somebody takes it is up to the client.
    let _ = document.flush().await;
}

async fn run_in_session(
    shared: &Arc<Shared>,
    params: StartupParams,
    sql: &str,
    document: &mut Document,
) -> Result<Result<String, SqlError>, Gone> {
    let mut session = match Session::open(&shared.db, params) {
        Ok(session) => session,
        Err(error) => return Ok(Err(error)),
    };
    let result = statement(&mut session, sql, document).await?;
    if result.is_err() {
        session.fail();
        // Rolls back; the statement's own error is what the client must hear.
        let _ = session.finish_simple().await;
        session.settle_answers().await;
    }
    Ok(result)
}

fn write_error(document: &mut Document, error: &SqlError) {
    // As long as nothing has gone out the error is all there is.
    if let Some(head) = document.head.take() {
        document.text = b"{".to_vec();
        // Nobody listens any more: the last piece will find out.
        let _ = head.send(status_of(error));
    }
    let fields = [("detail", &error.detail), ("hint", &error.hint), ("context", &error.context)];
    let mut object = serde_json::json!({ "sqlstate": error.sqlstate, "message": error.message });
    for (name, value) in fields {
        if let Some(value) = value {
            object[name] = value.as_str().into();
        }
    }
    if let Some(position) = error.position {
        object["position"] = position.into();
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
            [statement] if matches!(statement.statement(), Statement::Transaction(_)) => {
                let message = format!("{} cannot be sent over HTTP", statement.statement().verb());
                Err(SqlError::not_supported(message)
                    .with_hint("A request is one transaction; for longer ones use the PostgreSQL protocol."))
            }
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
