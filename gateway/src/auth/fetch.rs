//! One bounded GET of a JSON document: no redirects, no proxies, no second address, a limit on every part.

use std::{fmt, io, time::Duration};

use axum::body::Bytes;
use daemon::tls::ClientTls;
use http::{
    HeaderValue, Request, StatusCode, Uri,
    header::{ACCEPT, HOST, USER_AGENT},
};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
};

/// Longest wait for the whole answer: somebody's request may be waiting for it.
const FETCH_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest document, in bytes: discovery documents and key sets of the large providers are below 16 KiB.
const DOCUMENT_MAX_BYTES: usize = 256 * 1024;
/// Head of an answer, in bytes.
const HEAD_MAX_BYTES: usize = 32 * 1024;

/// Where a document is: `https`, or `http` on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentUri(Uri);

impl DocumentUri {
    /// Parses an address; says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| format!("{text:?} is not an address"))?;
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let host = uri.host().unwrap_or_default();
        let here = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => here,
            _ => false,
        };
        if host.is_empty() || authority.contains('@') || !secure {
            return Err(format!("{text:?} must be https://…, or http://… on this machine"));
        }
        Ok(Self(uri))
    }

    /// Host and port.
    pub(super) fn place(&self) -> (&str, u16) {
        let port = if self.is_secure() { 443 } else { 80 };
        (self.0.host().unwrap_or_default(), self.0.port_u16().unwrap_or(port))
    }

    fn is_secure(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }
}

impl fmt::Display for DocumentUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why no document came.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("no answer within {} seconds", FETCH_TIMEOUT.as_secs())]
    Timeout,
    #[error("no connection: {0}")]
    Connect(#[from] io::Error),
    #[error("no HTTP answer: {0}")]
    Http(#[from] hyper::Error),
    #[error("answered {0}; redirects are not followed")]
    Status(StatusCode),
    #[error("longer than {DOCUMENT_MAX_BYTES} bytes")]
    TooLong,
    #[error("cut short")]
    Body,
}

/// The document at `uri`.
pub(super) async fn get(uri: &DocumentUri, tls: &ClientTls) -> Result<Bytes, FetchError> {
    let fetched = async {
        let (host, port) = uri.place();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((bare, port)).await?;
        if uri.is_secure() {
            exchange(uri, tls.connect(host, stream).await?).await
        } else {
            exchange(uri, stream).await
        }
    };
    tokio::time::timeout(FETCH_TIMEOUT, fetched).await.map_err(|_| FetchError::Timeout)?
}

async fn exchange<S>(uri: &DocumentUri, stream: S) -> Result<Bytes, FetchError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(HEAD_MAX_BYTES).handshake(TokioIo::new(stream)).await?;
    // Dropped with this call, and the connection with it.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let path = uri.0.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = Uri::try_from(path).unwrap_or_default();
    let headers = request.headers_mut();
    let authority = uri.0.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    headers.insert(HOST, HeaderValue::try_from(authority).unwrap_or(HeaderValue::from_static("localhost")));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static("reshelf-gateway"));
    let answer = sender.send_request(request).await?;
    if answer.status() != StatusCode::OK {
        return Err(FetchError::Status(answer.status()));
    }
    match Limited::new(answer.into_body(), DOCUMENT_MAX_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(FetchError::TooLong),
        Err(_) => Err(FetchError::Body),
    }
}
