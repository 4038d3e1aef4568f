//! POST /sql: one statement in, one JSON document out, written as the rows come.
//!
//! ```text
//! {"columns":[{"name":"a","type":"integer"}],"rows":[[1],[2]],"tag":"SELECT 2"}
//! {"error":{"sqlstate":"42P01","message":"relation \"t\" does not exist"}}
//! ```
//!
//! An error after the first rows stands at the end of the document, beside them.

use super::{Body, JSON, TEXT, full};
use crate::listen::Shared;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use std::net::SocketAddr;
use std::sync::Arc;

pub async fn answer(request: Request<Incoming>, peer: SocketAddr, shared: Arc<Shared>) -> Response<Body> {
    let _ = (request, peer, shared, JSON);
    full(StatusCode::NOT_IMPLEMENTED, TEXT, "not yet\n".into())
}
