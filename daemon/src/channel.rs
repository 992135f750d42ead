//! Channels to other daemons: addresses from configuration, tried in turn.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _};
use proto::{Transport, TransportError};
use tonic::{
    body::Body,
    transport::{Channel, Endpoint},
};
use tower::{Service, ServiceExt as _};

/// How long a connection may take to open before the next address is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Keep-alive ping on an idle connection: a dead peer is noticed within two of them.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Why the addresses of a peer are not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// No address was given.
    #[error("needs at least one address")]
    None,
    /// The text is not an address.
    #[error("{0} is not an address such as http://127.0.0.1:7400")]
    Address(String),
}

/// A transport to whichever of `addresses` answers: the last good one first, then the others in turn. A call moves on
/// to the next address only while nothing of it was sent, so no call is ever carried out twice.
pub fn connect(addresses: &[String]) -> Result<Transport, ChannelError> {
    if addresses.is_empty() {
        return Err(ChannelError::None);
    }
    let channels = addresses
        .iter()
        .map(|address| {
            let endpoint =
                Endpoint::from_shared(address.clone()).map_err(|_| ChannelError::Address(address.clone()))?;
            Ok(endpoint
                .connect_timeout(CONNECT_TIMEOUT)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_while_idle(true)
                .tcp_nodelay(true)
                .connect_lazy())
        })
        .collect::<Result<Vec<_>, ChannelError>>()?;
    Ok(Transport::over(InTurn { channels: channels.into(), good: Arc::default() }))
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
            let first = good.load(Ordering::Relaxed);
            let mut last: TransportError = "no address".into();
            for step in 0..channels.len() {
                let index = (first + step) % channels.len();
                let Some(channel) = channels.get(index) else { break };
                let mut channel = channel.clone();
                match channel.ready().await {
                    Ok(ready) => {
                        good.store(index, Ordering::Relaxed);
                        return ready.call(request).await.map_err(Into::into);
                    }
                    Err(error) => last = error.into(),
                }
            }
            Err(last)
        }
        .boxed()
    }
}
