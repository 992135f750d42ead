//! One HTTP/1.1 request over a connection of its own.
//!
//! Not a general client: access points are small and serve one connection at a time best, and a redirect is never
//! followed because nothing here knows how.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use super::{Outbound, OutboundError, Peer};
use crate::tls::ClientTls;

/// A request.
#[derive(Debug, Clone)]
pub struct HttpCall<'a> {
    /// Where to.
    pub peer: &'a Peer,
    /// How.
    pub method: Method,
    /// Path and query, beginning with `/`.
    pub path: &'a str,
    /// Header fields beside `Host`, `Connection` and `Content-Length`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The whole body; its length is announced, never chunked.
    pub body: Bytes,
    /// How long the answer may take, from the connection on.
    pub within: Duration,
    /// Longest answer, in bytes.
    pub answer_bytes_max: usize,
}

/// An answer, whole.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    /// Its status; redirects included.
    pub status: StatusCode,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Outbound {
    /// Sends the request and reads the whole answer.
    pub async fn http(&self, call: HttpCall<'_>) -> Result<HttpAnswer, OutboundError> {
        let host = call.peer.to_string();
        let stream = self.connect(call.peer).await?;
        let after = call.within;
        let exchanged = timeout(after, exchange(stream, call, &host)).await;
        exchanged.unwrap_or(Err(OutboundError::TimedOut { host, after }))
    }
}

impl Outbound {
    /// The same over TLS: `tls` says whom to trust; the name checked is the peer's host.
    pub async fn https(&self, tls: &ClientTls, call: HttpCall<'_>) -> Result<HttpAnswer, OutboundError> {
        let host = call.peer.to_string();
        let stream = self.connect(call.peer).await?;
        let after = call.within;
        let name = call.peer.host().to_owned();
        let exchanged = timeout(after, async {
            let stream = tls
                .connect(&name, stream)
                .await
                .map_err(|error| OutboundError::Connect { host: host.clone(), cause: error.to_string() })?;
            exchange(stream, call, &host).await
        });
        exchanged.await.unwrap_or(Err(OutboundError::TimedOut { host: name, after }))
    }
}

async fn exchange<S>(stream: S, call: HttpCall<'_>, host: &str) -> Result<HttpAnswer, OutboundError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |cause: String| OutboundError::Broken { host: host.to_owned(), cause };
    let mut request = Request::new(Full::new(call.body.clone()));
    *request.method_mut() = call.method;
    *request.uri_mut() = call
        .path
        .parse()
        .map_err(|_| OutboundError::Address { address: call.path.to_owned(), wanted: "a path that begins with /" })?;
    let headers = request.headers_mut();
    headers.extend(call.headers);
    headers.insert(header::HOST, HeaderValue::from_str(host).map_err(|error| broken(error.to_string()))?);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(call.body.len()));
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(error.to_string()))?;
    let answered = async {
        let answer = sender.send_request(request).await.map_err(|error| broken(error.to_string()))?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, call.answer_bytes_max)
            .collect()
            .await
            .map_err(|error| broken(error.to_string()))?
            .to_bytes();
        Ok(HttpAnswer { status: parts.status, headers: parts.headers, body })
    };
    // Both in this task: when the caller gives up, the connection goes with it.
    tokio::pin!(answered);
    tokio::pin!(connection);
    let mut closed = false;
    loop {
        tokio::select! {
            answer = &mut answered => return answer,
            _ = &mut connection, if !closed => closed = true,
        }
    }
}
