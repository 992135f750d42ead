//! What every request passes through, outermost first: request id and headers, counting, time limit, shedding.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use domain::{ErrorCode, Refusal};
use http::{
    HeaderName, HeaderValue, Method,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS},
};
use tracing::Instrument as _;

use crate::{problem::Problem, state::Gateway};

/// Longest request: three platform calls at their own limits.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// For the page at `/docs`: its own scripts and styles, calls to this origin, nothing else. Swagger UI sets styles from
/// script and draws its icons from data URLs.
pub(crate) const CSP_DOCS: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// For everything else: nothing may be loaded by an answer of the API.
const CSP_API: &str = "default-src 'none'; frame-ancestors 'none'";
/// Longest path segment in the log, in bytes: the longest id.
const SEGMENT_LOGGED_MAX: usize = 128;
/// Segments of a path in the log: the longest route has fewer.
const SEGMENTS_LOGGED_MAX: usize = 16;
/// Names one request in answers and logs; always ours, never the client's.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Request id, log span, security headers.
pub(crate) async fn frame(State(gateway): State<Arc<Gateway>>, request: Request, next: Next) -> Response {
    let request_id = gateway.ids.hex_id();
    let is_docs = request.uri().path().starts_with("/docs");
    let span =
        tracing::info_span!("request", %request_id, method = %request.method(), path = loggable(request.uri().path()));
    let mut response = next.run(request).instrument(span).await;
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::try_from(request_id) {
        headers.insert(REQUEST_ID, value);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let policy = if is_docs { gateway.docs_policy.clone() } else { HeaderValue::from_static(CSP_API) };
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    if !is_docs {
        // A picture's ETag lets a client ask whether it changed; everything else is not kept at all.
        let kept = headers.contains_key(http::header::ETAG);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(if kept { "private, no-cache" } else { "no-store" }));
    }
    response
}

/// A path for the log: a segment longer than any id is left out. It may be a token that somebody pasted in the wrong place.
fn loggable(path: &str) -> String {
    let shown = |segment: &str| if segment.len() > SEGMENT_LOGGED_MAX { "…".to_owned() } else { segment.to_owned() };
    path.split('/').take(SEGMENTS_LOGGED_MAX).map(shown).collect::<Vec<_>>().join("/")
}

/// Counts, times and logs.
pub(crate) async fn count(State(gateway): State<Arc<Gateway>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    gateway.metering.answered(method.as_str(), &route, status, took);
    if route.starts_with("/v1/") {
        tracing::info!(route, status, took_ms = took.as_millis(), "answered");
    }
    response
}

/// Sheds what is too much at once, and cuts what takes too long. `/healthz` and `/metrics` always answer: they ask nobody
/// else, and what is shed should be seen.
///
/// An action, once begun, goes on to its end and its audit row even when the client is gone: nobody shall be able to act
/// and leave no trace by hanging up. So it runs apart from the connection.
pub(crate) async fn bound(State(gateway): State<Arc<Gateway>>, request: Request, next: Next) -> Response {
    if matches!(request.uri().path(), "/healthz" | "/metrics") {
        return next.run(request).await;
    }
    let Ok(slot) = Arc::clone(&gateway.slots).try_acquire_owned() else {
        let refusal =
            Refusal::new(ErrorCode::Unavailable, "the gateway has too many requests in hand; nothing was done");
        return Problem::from(refusal).into_response();
    };
    let is_action = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    let answer = async move {
        let _slot = slot;
        tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await
    };
    let answered = if is_action {
        match tokio::spawn(answer.in_current_span()).await {
            Ok(answered) => answered,
            Err(error) => {
                tracing::error!(%error, "an action was cut short");
                return Problem::from(Refusal::internal()).into_response();
            }
        }
    } else {
        answer.await
    };
    let Ok(response) = answered else {
        let message = "no answer in time, the outcome is unknown; repeat with the same tracking_id";
        return Problem::from(Refusal::new(ErrorCode::DeadlineExceeded, message)).into_response();
    };
    response
}
