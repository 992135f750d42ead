//! The accept loop: bounds that do not depend on the client. (`axum::serve` sets no header time limit.)

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use daemon::shutdown::Shutdown;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore};

/// Longest wait for a request's head, idle keep-alive included: a slow client holds a connection no longer.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Connections at once; more wait in the kernel's backlog. Each costs at most [`BUFFER_MAX_BYTES`] and a little more.
const CONNECTIONS_MAX: usize = 1_024;
/// Headers of one request.
const HEADERS_MAX: usize = 64;
/// Head of a request, in bytes: an 8 KiB token with room.
const BUFFER_MAX_BYTES: usize = 32 * 1024;
/// Pause after a failed accept (out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` on `listener` until `shutdown.soft`, then finishes what is in hand until `shutdown.hard`.
pub async fn serve(listener: TcpListener, router: Router, shutdown: Shutdown) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let slot = Arc::clone(&slots).acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|(stream, _)| (stream, slot))
        };
        let (stream, slot) = tokio::select! {
            () = shutdown.soft.cancelled() => break,
            accepted = accepted => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        // Small answers go out at once.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "nodelay not set");
        }
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_headers(HEADERS_MAX)
            .max_buf_size(BUFFER_MAX_BYTES)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let connection = graceful.watch(connection);
        let hard = shutdown.hard.clone();
        shutdown.tasks.spawn(async move {
            let _slot = slot;
            tokio::select! {
                () = hard.cancelled() => {}
                served = connection => {
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
