//! The accept loop of a gRPC server: connections bounded, TLS spoken, silent ones given up.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, future::BoxFuture};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::Sleep,
};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected;

use crate::{
    admission::{Admitted, Busy, ConnectionLimits, Connections},
    tls::{ServerTls, SpiffeId},
};

/// Connections at once: workers and gateways hold one or two each. Half may be one address's.
const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 1_024, per_peer: 512 };
/// Longest TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may take to say what it is.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of the HTTP/2 connection preface; before them nothing is a connection yet.
const PREFACE_BYTES: usize = 24;
/// Pause after a failed accept (out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Accepted connections that wait for the server to take them.
const ACCEPTED_MAX: usize = 64;

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub struct PeerInfo {
    /// Its address.
    pub address: IpAddr,
    /// What its certificate says, where one was shown and verified.
    pub identity: Option<SpiffeId>,
    /// What came of the tokens it showed.
    pub tokens: Arc<ShownTokens>,
}

/// What came of the service tokens that one connection showed.
#[derive(Debug, Default)]
pub struct ShownTokens {
    right: AtomicBool,
    wrong: AtomicBool,
}

impl ShownTokens {
    /// Notes that a token was right, or that one was not.
    pub fn note(&self, token: TokenWas) {
        match token {
            TokenWas::Right => self.right.store(true, Ordering::Relaxed),
            TokenWas::Wrong => self.wrong.store(true, Ordering::Relaxed),
        }
    }

    /// Whether one was right and none ever wrong: whoever is there is no guesser.
    pub fn only_right(&self) -> bool {
        self.right.load(Ordering::Relaxed) && !self.wrong.load(Ordering::Relaxed)
    }
}

/// What a token turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenWas {
    /// A service's.
    Right,
    /// Nobody's.
    Wrong,
}

/// Connections to `listener` until `stop`. The task that accepts ends with it, or when nobody takes them any more.
pub(super) fn incoming(
    listener: TcpListener,
    tls: Option<ServerTls>,
    stop: CancellationToken,
) -> impl Stream<Item = io::Result<PeerStream>> {
    let (accepted, taken) = mpsc::channel(ACCEPTED_MAX);
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = accepted.closed() => {}
            () = accept(&listener, tls, &accepted) => {}
        }
    });
    futures::stream::unfold(taken, |mut taken| async { taken.recv().await.map(|stream| (Ok(stream), taken)) })
}

async fn accept(listener: &TcpListener, tls: Option<ServerTls>, accepted: &mpsc::Sender<PeerStream>) {
    let connections = Connections::new(CONNECTIONS);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let address = peer.ip().to_canonical();
        let Some(admitted) = connections.admit(address) else {
            tracing::debug!(%peer, "a connection too many");
            continue;
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "nodelay not set");
        }
        let (tls, accepted) = (tls.clone(), accepted.clone());
        tokio::spawn(async move {
            let gives_way = admitted.clone();
            let opened = tokio::select! {
                () = gives_way.must_close() => return,
                opened = tokio::time::timeout(HANDSHAKE_TIMEOUT, open(stream, tls)) => opened,
            };
            match opened {
                Ok(Ok((io, identity))) => {
                    let stream = PeerStream::new(io, PeerInfo { address, identity, tokens: Arc::default() }, admitted);
                    // Nobody takes it when the server has ended.
                    accepted.send(stream).await.ok();
                }
                Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS"),
                Err(_) => tracing::debug!(%peer, "no TLS in time"),
            }
        });
    }
}

async fn open(stream: TcpStream, tls: Option<ServerTls>) -> io::Result<(Io, Option<SpiffeId>)> {
    let Some(tls) = tls else { return Ok((Io::Plain(stream), None)) };
    let stream = tls.acceptor().accept(stream).await?;
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    // A certificate without exactly one id names nobody; its holder may still show a token.
    let identity = shown.and_then(|certificate| match SpiffeId::of_certificate(certificate) {
        Ok(identity) => Some(identity),
        Err(error) => {
            tracing::warn!(%error, "a client certificate names no service");
            None
        }
    });
    Ok((Io::Tls(Box::new(stream)), identity))
}

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that is ended when its peer does not say what it is in time.
pub(super) struct PeerStream {
    io: Io,
    peer: PeerInfo,
    admitted: Admitted,
    waiting: Option<Waiting>,
    busy: Option<Busy>,
}

struct Waiting {
    bytes: usize,
    deadline: Pin<Box<Sleep>>,
    gives_way: BoxFuture<'static, ()>,
}

impl PeerStream {
    fn new(io: Io, peer: PeerInfo, admitted: Admitted) -> Self {
        let own = admitted.clone();
        let waiting = Waiting {
            bytes: 0,
            deadline: Box::pin(tokio::time::sleep(PREFACE_TIMEOUT)),
            gives_way: Box::pin(async move { own.must_close().await }),
        };
        Self { io, peer, admitted, waiting: Some(waiting), busy: None }
    }

    fn io(&mut self) -> Pin<&mut (dyn Duplex + 'static)> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream),
            Io::Tls(stream) => Pin::new(&mut **stream),
        }
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

impl AsyncRead for PeerStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(waiting) = &mut self.waiting
            && (waiting.deadline.as_mut().poll(cx).is_ready() || waiting.gives_way.as_mut().poll(cx).is_ready())
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buf.filled().len();
        let read = self.io().poll_read(cx, buf);
        if let Some(waiting) = &mut self.waiting {
            waiting.bytes += buf.filled().len() - before;
            if waiting.bytes >= PREFACE_BYTES {
                self.waiting = None;
                self.busy = Some(self.admitted.busy());
            }
        }
        read
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.io().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.io {
            Io::Plain(stream) => stream.is_write_vectored(),
            Io::Tls(stream) => stream.is_write_vectored(),
        }
    }
}

impl Connected for PeerStream {
    type ConnectInfo = PeerInfo;

    fn connect_info(&self) -> PeerInfo {
        self.peer.clone()
    }
}
