//! Channels to other daemons: addresses from configuration, tried in turn.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _};
use http::Uri;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use proto::{Transport, TransportError};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tonic::{
    body::Body,
    transport::{Channel, Endpoint},
};
use tower::{Service, ServiceExt as _};

use crate::tls::{ClientTls, ClientTlsConfig, TlsError};

/// How long a connection may take to open before the next address is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Keep-alive ping on a connection, idle or not, and how long its answer may take: a peer that is dead or hangs is noticed
/// within both together, and the next call goes to another address.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// See [`KEEP_ALIVE`].
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(10);

/// Why the addresses of a peer are not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// No address was given.
    #[error("needs at least one address")]
    None,
    /// The text is not an address.
    #[error("{0} is not an address such as http://127.0.0.1:7400")]
    Address(String),
    /// An `https://` address where TLS is not set up.
    #[error("https addresses need to know whom to trust")]
    Untrusted,
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Whom to trust behind `https://` addresses, and what to show them. Paths are relative to `folder`.
#[derive(Debug, Clone, Copy)]
pub struct PeerTrust<'a> {
    /// Authorities and the own certificate.
    pub tls: &'a ClientTlsConfig,
    /// Where the configuration file lies.
    pub folder: &'a Path,
}

/// As [`connect_over`], to `http://` addresses only.
pub fn connect(addresses: &[String]) -> Result<Transport, ChannelError> {
    transport(addresses, &mut || Err(ChannelError::Untrusted))
}

/// A transport to whichever of `addresses` answers: the last good one first, then the others in turn. A call moves on
/// to the next address only when the connection itself could not be made, so no call is ever carried out twice; after a
/// call that had no answer the next one begins with the next address.
/// Calls are unary throughout the platform; a streaming request would be gathered first.
pub fn connect_over(addresses: &[String], trust: PeerTrust<'_>) -> Result<Transport, ChannelError> {
    let mut made: Option<ClientTls> = None;
    transport(addresses, &mut || match &made {
        Some(tls) => Ok(tls.clone()),
        None => Ok(made.insert(ClientTls::new(trust.tls, trust.folder, &[b"h2"])?).clone()),
    })
}

fn transport(
    addresses: &[String],
    tls: &mut dyn FnMut() -> Result<ClientTls, ChannelError>,
) -> Result<Transport, ChannelError> {
    if addresses.is_empty() {
        return Err(ChannelError::None);
    }
    let channels = addresses
        .iter()
        .map(|address| {
            let wrong = || ChannelError::Address(address.clone());
            let uri: Uri = address.parse().map_err(|_| wrong())?;
            let secure = match (uri.scheme_str(), uri.host()) {
                (Some("https"), Some(_)) => true,
                (Some("http"), Some(_)) => false,
                _ => return Err(wrong()),
            };
            let endpoint = Endpoint::from_shared(address.clone()).map_err(|_| wrong())?;
            let endpoint = endpoint
                .connect_timeout(CONNECT_TIMEOUT)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE_ANSWER)
                .keep_alive_while_idle(true)
                .tcp_nodelay(true);
            if !secure {
                return Ok(endpoint.connect_lazy());
            }
            // tonic would wrap its own TLS around an https address; ours reads its files again when they change.
            let inner = address.replacen("https://", "http://", 1);
            let endpoint = Endpoint::from_shared(inner)
                .map_err(|_| wrong())?
                .connect_timeout(CONNECT_TIMEOUT)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE_ANSWER)
                .keep_alive_while_idle(true)
                .origin(uri.clone());
            Ok(endpoint.connect_with_connector_lazy(Dial { tls: tls()?, uri }))
        })
        .collect::<Result<Vec<_>, ChannelError>>()?;
    Ok(Transport::over(InTurn { channels: channels.into(), good: Arc::default() }))
}

/// Opens connections to one address over our own TLS.
struct Dial {
    tls: ClientTls,
    uri: Uri,
}

impl Service<Uri> for Dial {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (tls, uri) = (self.tls.clone(), self.uri.clone());
        async move {
            let host = uri.host().unwrap_or_default();
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            let stream = TcpStream::connect((bare, uri.port_u16().unwrap_or(443))).await?;
            stream.set_nodelay(true)?;
            tls.connect(host, stream).await.map(TokioIo::new)
        }
        .boxed()
    }
}

#[derive(Clone)]
struct InTurn {
    channels: Arc<[Channel]>,
    good: Arc<AtomicUsize>,
}

impl Service<http::Request<Body>> for InTurn {
    type Response = http::Response<Body>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // Readiness is awaited per address, in `call`.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let channels = Arc::clone(&self.channels);
        let good = Arc::clone(&self.good);
        async move {
            let (head, body) = request.into_parts();
            // Gathered so that it can be sent again; bounded by the client's own encoding limit.
            let body = body.collect().await?.to_bytes();
            let first = good.load(Ordering::Relaxed);
            let mut last: TransportError = "no address".into();
            for step in 0..channels.len() {
                let index = (first + step) % channels.len();
                let Some(mut channel) = channels.get(index).cloned() else { break };
                let attempt = http::Request::from_parts(head.clone(), Body::new(Full::new(body.clone())));
                let unanswered = Unanswered { good: &good, index, count: channels.len() };
                let answer = match channel.ready().await {
                    Ok(ready) => ready.call(attempt).await,
                    Err(error) => Err(error),
                };
                match answer {
                    Ok(response) => {
                        std::mem::forget(unanswered);
                        good.store(index, Ordering::Relaxed);
                        return Ok(response);
                    }
                    Err(error) if never_connected(&error) => last = error.into(),
                    Err(error) => return Err(error.into()),
                }
            }
            Err(last)
        }
        .boxed()
    }
}

/// Dropped where a call had no answer, also because its caller waited no longer: the next call begins with the next
/// address. A peer that accepts connections and says nothing so costs each caller one call.
struct Unanswered<'g> {
    good: &'g AtomicUsize,
    index: usize,
    count: usize,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let next = (self.index + 1) % self.count.max(1);
        // Somebody else may have moved on already.
        let _ = self.good.compare_exchange(self.index, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Whether nothing of the call can have reached the peer.
fn never_connected(error: &tonic::transport::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
