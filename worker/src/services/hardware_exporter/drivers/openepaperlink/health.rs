//! How an access point is: the report it sends to whoever listens on its WebSocket.
//!
//! One report is awaited, then the connection ends: as long as someone listens, many an access point makes its tags check
//! in every 40 s, which empties their batteries in days.

use std::time::Duration;

use daemon::outbound::{Outbound, OutboundError, Peer};
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// Reports come every 5 s; two of them may be missed.
const WITHIN: Duration = Duration::from_secs(15);
/// Longest answer to the greeting, in bytes.
const HEAD_BYTES_MAX: usize = 4_096;
/// Longest frame; a report has about 300 bytes, a tag's record 800.
const FRAME_BYTES_MAX: usize = 65_536;
/// Frames looked through for a report; others tell of tags.
const FRAMES_MAX: usize = 256;
/// The protocol wants 16 bytes that differ from connection to connection only to keep caches out; none is in between.
const KEY: &str = "bGFiZWwtcGljdHVyZXM9PQ==";
/// "Run" among the states of an access point.
const STATE_RUN: u8 = 2;

/// What an access point says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Health {
    /// Seconds since it booted. Less than before: it booted in between.
    #[serde(rename = "uptime")]
    pub(crate) uptime_s: u64,
    /// Free flash, in bytes; at 31,000 or less it prepares no pictures.
    #[serde(rename = "littlefsfree", default)]
    pub(crate) flash_free: u64,
    #[serde(rename = "runstate", default)]
    run_state: u8,
}

#[derive(Deserialize)]
struct Report {
    sys: Option<Health>,
}

impl Health {
    /// Whether it takes pictures.
    pub(crate) const fn is_running(&self) -> bool {
        self.run_state == STATE_RUN
    }
}

/// Listens for one report.
pub(super) async fn health(outbound: &Outbound, peer: &Peer) -> Result<Health, OutboundError> {
    let stream = outbound.connect(peer).await?;
    let host = peer.to_string();
    match timeout(WITHIN, listen(stream, &host)).await {
        Ok(Ok(health)) => Ok(health),
        Ok(Err(cause)) => Err(OutboundError::Broken { host, cause }),
        Err(_) => Err(OutboundError::TimedOut { host, after: WITHIN }),
    }
}

async fn listen(mut stream: TcpStream, host: &str) -> Result<Health, String> {
    let text = |error: std::io::Error| error.to_string();
    let greeting = format!(
        "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
    );
    stream.write_all(greeting.as_bytes()).await.map_err(text)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_BYTES_MAX {
            return Err("a greeting without end".to_owned());
        }
        head.push(stream.read_u8().await.map_err(text)?);
    }
    if !head.starts_with(b"HTTP/1.1 101") {
        return Err("it offers no WebSocket".to_owned());
    }
    for _ in 0..FRAMES_MAX {
        let frame = read_frame(&mut stream).await?;
        // Some put a word in front of the object.
        let object = frame.iter().position(|byte| *byte == b'{').and_then(|at| frame.get(at..)).unwrap_or_default();
        if let Ok(Report { sys: Some(health) }) = serde_json::from_slice(object) {
            // Whoever leaves without a word leaves too: the report is what counts.
            let _farewell = stream.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await;
            return Ok(health);
        }
    }
    Err("it talks of everything but itself".to_owned())
}

async fn read_frame(stream: &mut TcpStream) -> Result<Vec<u8>, String> {
    let text = |error: std::io::Error| error.to_string();
    let _kind = stream.read_u8().await.map_err(text)?;
    let length = match stream.read_u8().await.map_err(text)? & 0x7F {
        126 => usize::from(stream.read_u16().await.map_err(text)?),
        127 => usize::try_from(stream.read_u64().await.map_err(text)?).unwrap_or(usize::MAX),
        short => usize::from(short),
    };
    if length > FRAME_BYTES_MAX {
        return Err(format!("a frame of {length} bytes"));
    }
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame).await.map_err(text)?;
    Ok(frame)
}
