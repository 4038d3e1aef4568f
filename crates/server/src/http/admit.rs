//! Who may POST /sql, and in which form the statement comes.
//!
//! Only this machine is served: HTTP is not encrypted here. A role with a password proves it with Basic
//! authentication (RFC 7617); a role without one is trusted, as by the PostgreSQL protocol, but a password sent for
//! it is refused, since it cannot be checked.
//!
//! A browser on this machine must not be talked into a statement by somebody's page, so the content type is one
//! that pages cannot send on their own, and the host is named by an address or `localhost`.

use super::sql::Refusal;
use crate::listen::Shared;
use basalt_query::scram;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName};
use hyper::{Request, StatusCode};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Returns the user.
pub async fn admit(request: &Request<Incoming>, peer: SocketAddr, shared: &Arc<Shared>) -> Result<String, Refusal> {
    if !peer.ip().to_canonical().is_loopback() {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "/sql serves clients on this machine only"));
    }
    let host = header(request, HOST);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
    if host != "localhost" && host.parse::<IpAddr>().is_err() {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "name the host by its address or as localhost"));
    }
    let unauthorized = |message: String| Refusal::new(StatusCode::UNAUTHORIZED, message);
    let named = parameter(request, "user");
    let (user, password) = match request.headers().get(AUTHORIZATION) {
        None => (named.unwrap_or_else(|| "basalt".into()), None),
        Some(value) => {
            let (user, password) = value
                .to_str()
                .ok()
                .and_then(basic)
                .ok_or_else(|| unauthorized("the Authorization header is not of the form Basic".into()))?;
            if named.is_some_and(|named| named != user) {
                let message = "the query string and the Authorization header name different users";
                return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
            }
            (user, Some(password))
        }
    };
    let role = shared.db.role(&user);
    let now = shared.db.os().clock.unix_micros();
    let expired = role.as_ref().is_some_and(|role| !role.password_is_valid(now));
    let verifier = role.and_then(|role| role.password);
    let admitted = match (verifier, password) {
        (Some(_), Some(_)) if expired => false,
        (Some(verifier), Some(password)) => {
            // Hashing takes milliseconds: other connections' threads are not for that.
            let check = tokio::task::spawn_blocking(move || scram::is_password(&password, &verifier));
            check.await.unwrap_or(false)
        }
        (Some(_), None) => return Err(unauthorized(format!("role \"{user}\" has a password: send it"))),
        (None, Some(password)) => password.is_empty(),
        (None, None) => true,
    };
    if !admitted {
        tracing::warn!(user, "password authentication failed over HTTP");
        return Err(unauthorized(format!("password authentication failed for user \"{user}\"")));
    }
    Ok(user)
}

/// User and password.
fn basic(value: &str) -> Option<(String, String)> {
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = BASE64.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((user.to_string(), password.to_string()))
}

/// A value of the query string.
pub fn parameter(request: &Request<Incoming>, name: &str) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value.map(str::to_string)
}

fn header(request: &Request<Incoming>, name: HeaderName) -> &str {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// What the body is.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// The statement itself.
    Sql,
    /// `{"sql": "…"}`
    Json,
}

pub fn content_of(request: &Request<Incoming>) -> Result<Content, Refusal> {
    let kind = header(request, CONTENT_TYPE);
    let name = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match name.as_str() {
        "application/sql" => Ok(Content::Sql),
        "application/json" => Ok(Content::Json),
        _ => {
            let message = format!("a statement does not come as \"{kind}\"");
            let mut refusal = Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
            refusal.hint = Some("Send it with the header Content-Type: application/sql (curl -H).");
            Err(refusal)
        }
    }
}

impl Content {
    pub fn statement(self, body: &Bytes) -> Result<String, String> {
        let text = std::str::from_utf8(body).map_err(|_| "the statement is not UTF-8 text".to_string())?;
        if matches!(self, Content::Sql) {
            return Ok(text.to_string());
        }
        let form = "the body is not of the form {\"sql\": \"…\"}";
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| format!("{form}: {error}"))?;
        let object = value.as_object().filter(|object| object.len() == 1);
        let sql = object.and_then(|object| object.get("sql")?.as_str());
        sql.map(str::to_string).ok_or_else(|| form.to_string())
    }
}
