//! HTTP/1.1 on one port: `/health`, `/metrics` (Prometheus), `/sql`.

mod admit;
mod metrics;
mod sql;

use crate::listen::{Shared, Stage, reached};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A client that has not sent its headers after this long is disconnected.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Body = BoxBody<Bytes, Infallible>;

/// Serves until the server drains.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut stage = shared.stage.clone();
    let mut connections = JoinSet::new();
    let slots = Arc::new(Semaphore::new(shared.config.http_connections_max));
    loop {
        let accepted = tokio::select! {
            _ = reached(&mut stage, Stage::Draining) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match slots.clone().try_acquire_owned() {
                Ok(permit) => {
                    let shared = shared.clone();
                    connections.spawn(async move {
                        serve_connection(stream, peer, shared).await;
                        drop(permit);
                    });
                }
                Err(_) => refuse(&stream),
            },
            Err(error) => {
                tracing::warn!("cannot accept an HTTP connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    reached(&mut stage, Stage::Stopped).await;
}

/// At once, without reading what the client wants and without waiting for it.
fn refuse(stream: &TcpStream) {
    let answer = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    if let Err(error) = stream.try_write(answer) {
        tracing::debug!("cannot refuse an HTTP connection: {error}");
    }
}

async fn serve_connection(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) {
    let mut stage = shared.stage.clone();
    let service = service_fn(|request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(request, peer, shared).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        _ = reached(&mut stage, Stage::Draining) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%peer, "HTTP connection lost: {error}");
    }
}

async fn answer(request: Request<Incoming>, peer: SocketAddr, shared: Arc<Shared>) -> Response<Body> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/health") => health(&shared),
        (&Method::GET, "/metrics") => {
            full(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics::render(&shared))
        }
        (&Method::POST, "/sql") => sql::answer(request, peer, shared).await,
        (_, "/health" | "/metrics") => method_not_allowed("GET"),
        (_, "/sql") => method_not_allowed("POST"),
        _ => full(StatusCode::NOT_FOUND, TEXT, "no such page: there are /health, /metrics and POST /sql\n".into()),
    }
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

fn health(shared: &Shared) -> Response<Body> {
    let serving = *shared.stage.borrow() == Stage::Serving;
    let engine = shared.db.engine();
    let failure = engine.failure().map(|error| error.to_string());
    let failing: Vec<String> = engine.background().status().failing.iter().map(ToString::to_string).collect();
    let damage = shared.db.damage();
    // Failing background work is tried again while all else goes on; a stopped log takes a restart.
    let (status, word) = match (serving, &failure) {
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        (true, Some(_)) => (StatusCode::SERVICE_UNAVAILABLE, "failed"),
        (true, None) if !failing.is_empty() || damage.is_some() => (StatusCode::OK, "degraded"),
        (true, None) => (StatusCode::OK, "ok"),
    };
    let body = serde_json::json!({
        "status": word,
        "failure": failure,
        "failing": failing,
        "damage": damage,
        "version": env!("CARGO_PKG_VERSION"),
        "connections": shared.db.session_count(),
        "published": engine.published().0,
    });
    full(status, JSON, format!("{body}\n"))
}

fn full(status: StatusCode, content_type: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn method_not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = full(StatusCode::METHOD_NOT_ALLOWED, TEXT, format!("use {allowed}\n"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
