//! The accept loop: bounds that do not depend on the client. (`axum::serve` sets no header time limit.)

use std::{
    convert::Infallible,
    io,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::Request,
    response::Response,
};
use daemon::{
    admission::{Admitted, Busy, ConnectionLimits, Connections},
    shutdown::Shutdown,
    tls::ServerTls,
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tower::Service as _;

/// Longest wait for a request's head, idle keep-alive included: a slow client holds a connection no longer.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections at once. Each costs at most [`BUFFER_MAX_BYTES`] and a little more. Half may be one address's: a proxy is
/// one address, and so is one attacker.
const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 1_024, per_peer: 512 };
/// Headers of one request.
const HEADERS_MAX: usize = 64;
/// Head of a request, in bytes: an 8 KiB token with room.
const BUFFER_MAX_BYTES: usize = 32 * 1024;
/// Pause after a failed accept (out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The address a request came from: that of a proxy, where one is in front. Headers never say it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Serves `router` on `listener` until `shutdown.soft`, then finishes what is in hand until `shutdown.hard`.
pub async fn serve(listener: TcpListener, router: Router, shutdown: Shutdown) -> io::Result<()> {
    serve_over(listener, router, None, shutdown).await
}

/// As [`serve`]; with `tls` nothing but TLS is spoken.
pub async fn serve_over(
    listener: TcpListener,
    router: Router,
    tls: Option<ServerTls>,
    shutdown: Shutdown,
) -> io::Result<()> {
    let connections = Connections::new(CONNECTIONS);
    let graceful = GracefulShutdown::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = shutdown.soft.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let Some(admitted) = connections.admit(peer.ip().to_canonical()) else {
            tracing::debug!(%peer, "a connection too many");
            continue;
        };
        // Small answers go out at once.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "nodelay not set");
        }
        let connection = Connection { router: router.clone(), admitted, peer: peer.ip(), watcher: graceful.watcher() };
        let (hard, tls) = (shutdown.hard.clone(), tls.clone());
        shutdown.tasks.spawn(async move {
            let admitted = connection.admitted.clone();
            tokio::select! {
                () = hard.cancelled() => {}
                () = admitted.must_close() => tracing::debug!(%peer, "a waiting connection gives way"),
                served = connection.run(stream, tls) => {
                    if let Err(error) = served {
                        tracing::debug!(%error, "connection ended");
                    }
                }
            }
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = shutdown.hard.cancelled() => {}
    }
    Ok(())
}

struct Connection {
    router: Router,
    admitted: Admitted,
    peer: IpAddr,
    watcher: hyper_util::server::graceful::Watcher,
}

impl Connection {
    async fn run(
        self,
        stream: TcpStream,
        tls: Option<ServerTls>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match tls {
            None => Ok(self.speak(stream).await?),
            Some(tls) => {
                let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.acceptor().accept(stream)).await??;
                Ok(self.speak(stream).await?)
            }
        }
    }

    async fn speak<S>(self, stream: S) -> Result<(), hyper::Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Self { router, admitted, peer, watcher } = self;
        let service = service_fn(move |request: Request<Incoming>| {
            let (mut router, busy) = (router.clone(), admitted.busy());
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(PeerAddress(peer));
            async move {
                let answer: Result<Response, Infallible> = router.call(request).await;
                answer.map(|response| response.map(|body| HeldBody { body, _busy: busy }))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_headers(HEADERS_MAX)
            .max_buf_size(BUFFER_MAX_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        watcher.watch(connection).await
    }
}

/// An answer that keeps its connection busy until it is sent.
struct HeldBody {
    body: Body,
    _busy: Busy,
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}
