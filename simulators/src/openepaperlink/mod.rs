//! An access point of the OpenEPaperLink protocol with its tags.
//!
//! Reading order: `settings` (what one is made of, and what can go wrong), `station` (what it does over time), `tag`,
//! `sprite` (JPEG to inks), `buffer` (inks to bytes and back), `http` (its routes), `multipart`, `websocket`, `meter` (what it
//! was busy with), `mishaps` (what can be made to happen over HTTP).

mod buffer;
mod events;
mod http;
mod json;
mod mac;
mod meter;
mod mishaps;
mod multipart;
mod settings;
mod sprite;
mod station;
mod tag;
mod websocket;

pub use self::mac::{Mac, MacError};
pub use self::settings::{
    AccessPointSettings, Control, StatusBehaviour, StatusFault, TagSettings, Traffic, TransferFault,
};
pub use self::tag::Shown;

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::Clock;
use picture::Picture;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use self::{
    meter::{Meter, Serving},
    station::Station,
};

/// A running access point. It stops when this is dropped.
pub struct AccessPoint {
    shared: Arc<Shared>,
    address: SocketAddr,
    server: JoinHandle<()>,
}

/// What the routes share.
pub(crate) struct Shared {
    clock: Arc<dyn Clock>,
    station: Mutex<Station>,
    offline: AtomicBool,
    answer_delay_us: AtomicU64,
    upload_delay_us: AtomicU64,
    meter: Meter,
}

impl std::fmt::Debug for AccessPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessPoint").field("address", &self.address).finish_non_exhaustive()
    }
}

impl AccessPoint {
    /// Listens and serves.
    pub async fn start(settings: AccessPointSettings) -> io::Result<Self> {
        let tcp = TcpListener::bind(settings.listen).await?;
        let address = tcp.local_addr()?;
        let clock = Arc::clone(&settings.clock);
        let shared = Arc::new(Shared {
            station: Mutex::new(Station::new(settings)),
            clock,
            offline: AtomicBool::new(false),
            answer_delay_us: AtomicU64::new(0),
            upload_delay_us: AtomicU64::new(0),
            meter: Meter::default(),
        });
        let door = Door { tcp, shared: Arc::clone(&shared) };
        let router = http::router(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(door, router).await {
                tracing::warn!(%error, "a simulated access point ended");
            }
        });
        Ok(Self { shared, address, server })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the tag's panel shows now; nothing before its first picture, or when the bytes it got make none.
    pub fn screen(&self, tag: Mac) -> Option<Picture> {
        self.shared.station().tag(tag).and_then(|tag| tag.screen().cloned())
    }

    /// Everything the tag's panel was refreshed with, oldest first; the newest 1,024.
    pub fn shown(&self, tag: Mac) -> Vec<Shown> {
        self.shared.station().tag(tag).map(|tag| tag.shown().to_vec()).unwrap_or_default()
    }

    /// Its tags.
    pub fn tags(&self) -> Vec<Mac> {
        self.shared.station().macs()
    }

    /// What it complained of, oldest first; the newest 1,024.
    pub fn errors(&self) -> Vec<String> {
        self.shared.station().errors()
    }

    /// What was asked of it.
    pub fn traffic(&self) -> Traffic {
        let counted = self.shared.station().traffic();
        let read = self.shared.meter.readings();
        let (uploads_span, busy_in_span) = read.between_uploads();
        Traffic {
            most_at_once: read.most_at_once,
            busy: read.busy,
            uploading: read.uploading,
            uploads_span,
            busy_in_span,
            longest_gap: read.longest_gap,
            ..counted
        }
    }

    /// How many listen on its WebSocket.
    pub fn listeners(&self) -> usize {
        self.shared.station().listeners
    }

    /// Makes something happen to it, now.
    pub fn control(&self, control: Control) {
        match control {
            Control::Offline(offline) => {
                drop(self.shared.station());
                self.shared.offline.store(offline, Ordering::SeqCst);
            }
            Control::AnswerDelay(delay) => {
                self.shared.answer_delay_us.store(micros(delay), Ordering::SeqCst);
            }
            Control::UploadDelay(delay) => self.shared.upload_delay_us.store(micros(delay), Ordering::SeqCst),
            other => self.shared.station().control(other),
        }
    }
}

impl Drop for AccessPoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    /// The station as it is now: whatever was due has happened.
    pub(crate) fn station(&self) -> MutexGuard<'_, Station> {
        let mut station = self.station.lock().unwrap_or_else(PoisonError::into_inner);
        station.advance(self.clock.now());
        station
    }

    /// Whether it has power. What is due does not happen for that: whoever only connects makes it do nothing.
    fn has_power(&self) -> bool {
        self.station.lock().unwrap_or_else(PoisonError::into_inner).has_power()
    }

    pub(crate) fn answer_delay(&self) -> Duration {
        Duration::from_micros(self.answer_delay_us.load(Ordering::SeqCst))
    }

    pub(crate) fn upload_delay(&self) -> Duration {
        Duration::from_micros(self.upload_delay_us.load(Ordering::SeqCst))
    }

    /// Counts a request from now until the guard goes.
    pub(crate) fn serving(&self, is_upload: bool) -> Serving<'_> {
        self.meter.serving(is_upload)
    }
}

fn micros(delay: Duration) -> u64 {
    u64::try_from(delay.as_micros()).unwrap_or(u64::MAX)
}

/// Takes connections, and drops them at once while the access point is offline or without power.
struct Door {
    tcp: TcpListener,
    shared: Arc<Shared>,
}

impl axum::serve::Listener for Door {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.tcp.accept().await {
                Ok(connection) if !self.shared.offline.load(Ordering::SeqCst) && self.shared.has_power() => {
                    return connection;
                }
                Ok(_) => {}
                // Out of file handles, most likely: others must run to give some back.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}
