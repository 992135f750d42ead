//! `/ws`: whoever listens hears how the access point is, at once and then every few seconds.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, StatusCode, header};
use hyper_util::rt::TokioIo;
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Shared;

/// From the protocol (RFC 6455): what the client's key is hashed with.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Time between two reports.
const REPORT_EVERY: Duration = Duration::from_secs(5);

pub(super) async fn listen(State(shared): State<Arc<Shared>>, mut request: Request) -> Response {
    let Some(key) = request.headers().get(header::SEC_WEBSOCKET_KEY).cloned() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let accept = STANDARD.encode(Sha1::digest([key.as_bytes(), GUID.as_bytes()].concat()));
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(stream) = upgrade.await else { return };
        let mut stream = TokioIo::new(stream);
        let _listening = Listening::new(&shared);
        loop {
            let report = shared.station().system_json().to_string();
            if stream.write_all(&frame(&report)).await.is_err() {
                return;
            }
            // Anything from the client ends it: nothing is expected but its farewell.
            let mut byte = [0];
            if tokio::time::timeout(REPORT_EVERY, stream.read(&mut byte)).await.is_ok() {
                return;
            }
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

/// A whole text frame, not masked: it comes from the server.
fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u16::try_from(text.len()) {
        Ok(length @ 0..=125) => frame.extend(length.to_be_bytes().iter().skip(1)),
        Ok(length) => {
            frame.push(126);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(127);
            frame.extend((text.len() as u64).to_be_bytes());
        }
    }
    frame.extend(text.as_bytes());
    frame
}

struct Listening(Arc<Shared>);

impl Listening {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.station().listeners += 1;
        Self(Arc::clone(shared))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut station = self.0.station();
        station.listeners = station.listeners.saturating_sub(1);
    }
}
