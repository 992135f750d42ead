//! The routes. None asks who calls.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, Form, Path, Query, Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tokio::task::JoinError;

use super::{
    Mac, Shared, mishaps, multipart,
    station::{Station, hex, md5},
    websocket,
};

/// Largest upload that is read, in bytes.
const BODY_BYTES_MAX: usize = 2 << 20;

/// Where pictures are uploaded to.
const UPLOAD: &str = "/imgupload";

type Here = State<Arc<Shared>>;
type Query_ = Query<BTreeMap<String, String>>;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    let counted = middleware::from_fn_with_state(Arc::clone(&shared), count);
    Router::new()
        .route(UPLOAD, post(upload))
        .route("/get_db", get(records))
        .route("/backup_db", get(backup))
        .route("/tag_cmd", post(command))
        .route("/sysinfo", get(system))
        .route("/getdata", get(queued))
        .route("/check_file", get(check_file))
        .route("/current/{file}", get(current))
        .route_layer(counted)
        .route("/ws", get(websocket::listen))
        .merge(mishaps::router())
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(shared)
}

/// Counts the request and gives it the set pace. The connection ends with the answer, as it does there, whatever was asked
/// for: no second request comes over it.
async fn count(State(shared): Here, request: Request, next: Next) -> Response {
    let _serving = shared.serving(request.uri().path() == UPLOAD);
    shared.station().traffic.requests += 1;
    let delay = shared.answer_delay();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let mut answer = next.run(request).await;
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Asks the station, which may have pictures to convert first: beside the other access points, each a machine of its own.
async fn station<R: Send + 'static>(shared: Arc<Shared>, ask: impl FnOnce(&mut Station) -> R + Send + 'static) -> R {
    match tokio::task::spawn_blocking(move || ask(&mut shared.station())).await.map_err(JoinError::try_into_panic) {
        Ok(answer) => answer,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The process ends.
        Err(Err(_)) => std::future::pending().await,
    }
}

fn answer(status: u16, text: impl Into<Body>) -> Response {
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), text.into()).into_response()
}

async fn upload(State(shared): Here, headers: HeaderMap, body: Bytes) -> Response {
    let boundary = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once("boundary="))
        .map(|(_, boundary)| boundary.trim_matches('"').to_owned());
    // A body without its length is not read as parts at all.
    let (Some(boundary), true) = (boundary, headers.contains_key(header::CONTENT_LENGTH)) else {
        return answer(200, "");
    };
    let delay = shared.upload_delay();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let (parameters, file) = multipart::read(&body, &boundary);
    let (status, text) = station(shared, move |station| match file {
        Some(file) => station.upload(&parameters, file),
        None => station.status(None),
    })
    .await;
    answer(status, text)
}

async fn records(State(shared): Here, Query(query): Query_) -> Response {
    let found = station(shared, move |station| match (query.get("mac"), query.get("pos")) {
        (Some(mac), _) => mac
            .parse::<Mac>()
            .map_or_else(|_| json!({ "error": "malformatted parameter" }), |mac| station.record_json(mac)),
        (None, position) => station.page_json(position.and_then(|digits| digits.parse().ok()).unwrap_or(0)),
    });
    json_answer(&found.await)
}

fn json_answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

async fn backup(State(shared): Here) -> Response {
    json_answer(&station(shared, |station| station.backup_json()).await)
}

async fn system(State(_): Here) -> Response {
    json_answer(
        &json!({ "alias": "simulated", "env": "simulated", "psramsize": 8_388_608, "ap_version": 1, "hasC6": 1 }),
    )
}

async fn command(State(shared): Here, Form(form): Form<BTreeMap<String, String>>) -> Response {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    match shared.station().command(field("mac"), field("cmd")) {
        Some((status, text)) => answer(status, text),
        None => answer(501, ""),
    }
}

async fn queued(State(shared): Here, Query(query): Query_) -> Response {
    let field = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let found = field("mac").parse::<Mac>().ok().and_then(|mac| shared.station().queued(mac, field("md5")));
    found.map_or_else(|| answer(404, "File not found"), |bytes| answer(200, bytes))
}

async fn check_file(State(shared): Here, Query(query): Query_) -> Response {
    let path = query.get("path").map(String::as_str).unwrap_or_default();
    let station = shared.station();
    json_answer(&station.files.get(path).map_or_else(
        || json!({ "filesize": 0, "md5": "" }),
        |bytes| json!({ "filesize": bytes.len(), "md5": hex(md5(bytes)) }),
    ))
}

async fn current(State(shared): Here, Path(file): Path<String>) -> Response {
    let found = shared.station().files.get(&format!("/current/{file}")).cloned();
    found.map_or_else(|| answer(404, ""), |bytes| ([(header::CACHE_CONTROL, "max-age=604800")], bytes).into_response())
}
