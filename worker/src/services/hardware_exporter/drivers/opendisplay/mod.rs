//! The `opendisplay` driver: tags of the OpenDisplay protocol on the local network, each a TCP server of its own.
//!
//! A label's hardware address is the tag's `host` or `host:port`; the access point stands for the network and has no
//! address. The tag answers for every step, the refresh of its panel included, so a picture is confirmed as displayed.
//!
//! Invariants
//! - Whole pictures only. A partial update erases the rest of some panels and is acknowledged all the same.
//! - Confirmed is only what the tag reported as refreshed. When it falls silent after the picture was taken, nobody knows;
//!   the picture is sent again, which does no harm.
//!
//! Deliberately not here: encrypted sessions, compressed transfer, the tag's configuration (which panel it has is the
//! label's type), the pull profile.

mod packing;

use std::time::Duration;

use daemon::outbound::{Outbound, Peer};
use futures::{FutureExt as _, future::BoxFuture};
use proto::records::v1::Evidence;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{Delivered, Delivery, Driver, Fence, Manner, Shipment};

/// The port tags listen on.
const PORT: u16 = 2446;
/// Pixel bytes of a frame: what the protocol's own tools send over a network.
const CHUNK_BYTES: usize = 1_000;
/// How long a tag may take for a step. Unknown opcodes get no answer at all, so silence must end.
const STEP: Duration = Duration::from_secs(10);
/// How long the panel may take to refresh: the tag itself gives up after about 60 s.
const REFRESH: Duration = Duration::from_secs(75);
/// Answers that are passed over while one is awaited: late ones of the step before.
const STRAYS_MAX: usize = 16;
/// A picture of 200 kB takes 200 steps of some ms; a tag that needs longer for all of it is stuck.
const CALL_LIMIT: Duration = Duration::from_secs(150);
/// Tags of one network served at once: each is a server of its own, the network carries far more.
const AT_ONCE: usize = 8;

const START: u8 = 0x70;
const DATA: u8 = 0x71;
const END: u8 = 0x72;
const REFRESHED: u8 = 0x73;
const REFRESH_TIMED_OUT: u8 = 0x74;
/// Full refresh; fast ones leave ghosts and pale colours.
const MODE_FULL: u8 = 0;

/// The driver.
pub(crate) struct OpenDisplayDriver {
    outbound: Outbound,
}

impl OpenDisplayDriver {
    /// Reaches tags through `outbound`.
    pub(crate) const fn new(outbound: Outbound) -> Self {
        Self { outbound }
    }

    async fn send_one(&self, delivery: &Delivery) -> Delivered {
        let peer = match Peer::parse(&delivery.hardware_address, PORT) {
            Ok(peer) => peer,
            Err(error) => return Delivered::Permanent { cause: error.to_string() },
        };
        let pixels = match packing::pixels(&delivery.picture) {
            Ok(pixels) => pixels,
            Err(cause) => return Delivered::Permanent { cause },
        };
        let stream = match self.outbound.connect(&peer).await {
            Ok(stream) => stream,
            Err(error) => return Delivered::without_answer(&error),
        };
        let [e0, e1, e2, e3, ..] = *delivery.digest.as_bytes();
        let mut session = Session { stream };
        match session.show(&pixels, [e0, e1, e2, e3]).await {
            Ok(()) => Delivered::Confirmed {
                evidence: Evidence::Displayed,
                proof: "the tag reported that its panel was refreshed".to_owned(),
            },
            Err(Failure::Gone(cause)) => Delivered::Unreachable { cause: format!("{peer} {cause}") },
            Err(Failure::Refused(cause)) => Delivered::Retryable { cause: format!("{peer} {cause}") },
        }
    }
}

impl Driver for OpenDisplayDriver {
    fn name(&self) -> &'static str {
        "opendisplay"
    }

    fn manner(&self) -> Manner {
        Manner {
            per_call: 1,
            at_once: AT_ONCE,
            pause: Duration::ZERO,
            call_limit: CALL_LIMIT,
            looks: None,
            fence: Fence::Exporter,
        }
    }

    fn send(&self, shipment: Shipment) -> BoxFuture<'_, Vec<Delivered>> {
        async move {
            let mut answers = Vec::with_capacity(shipment.deliveries.len());
            for delivery in &shipment.deliveries {
                answers.push(self.send_one(delivery).await);
            }
            answers
        }
        .boxed()
    }
}

enum Failure {
    /// No answer: before the picture was taken, the tag counts as not reached.
    Gone(String),
    /// It answered, but not that it shows the picture.
    Refused(String),
}

struct Session {
    stream: TcpStream,
}

impl Session {
    async fn show(&mut self, pixels: &[u8], etag: [u8; 4]) -> Result<(), Failure> {
        self.step(START, &[]).await?;
        for chunk in pixels.chunks(CHUNK_BYTES) {
            self.step(DATA, chunk).await?;
        }
        let [e0, e1, e2, e3] = etag;
        self.step(END, &[MODE_FULL, e0, e1, e2, e3]).await?;
        let unknown = |failure| match failure {
            Failure::Gone(cause) => Failure::Refused(format!("took the picture, then {cause}")),
            refused @ Failure::Refused(_) => refused,
        };
        self.answer(END, &[REFRESHED, REFRESH_TIMED_OUT], REFRESH).await.map_err(unknown).and_then(|answer| {
            if answer == REFRESHED {
                Ok(())
            } else {
                Err(Failure::Refused("took the picture and reports that its panel did not refresh in time".to_owned()))
            }
        })
    }

    /// Sends a frame and waits for its acknowledgement.
    async fn step(&mut self, opcode: u8, content: &[u8]) -> Result<(), Failure> {
        let length =
            u16::try_from(content.len() + 2).map_err(|_| Failure::Refused("would get too long a frame".to_owned()))?;
        let mut frame = Vec::with_capacity(content.len() + 4);
        frame.extend(length.to_le_bytes());
        frame.extend([0x00, opcode]);
        frame.extend_from_slice(content);
        match timeout(STEP, self.stream.write_all(&frame)).await {
            Ok(Ok(())) => self.answer(opcode, &[opcode], STEP).await.map(|_| ()),
            Ok(Err(error)) => Err(Failure::Gone(format!("broke off: {error}"))),
            Err(_) => Err(Failure::Gone("takes nothing any more".to_owned())),
        }
    }

    /// Waits for one of the wanted opcodes; a refusal of `asked` ends it.
    async fn answer(&mut self, asked: u8, wanted: &[u8], within: Duration) -> Result<u8, Failure> {
        let read = async {
            for _ in 0..STRAYS_MAX {
                let length =
                    self.stream.read_u16_le().await.map_err(|error| Failure::Gone(format!("broke off: {error}")))?;
                if !(2..=4_096).contains(&length) {
                    return Err(Failure::Refused(format!("answered a frame of {length} bytes")));
                }
                let mut frame = vec![0; usize::from(length)];
                self.stream
                    .read_exact(&mut frame)
                    .await
                    .map_err(|error| Failure::Gone(format!("broke off: {error}")))?;
                match frame.first_chunk() {
                    Some([0x00, opcode]) if wanted.contains(opcode) => return Ok(*opcode),
                    Some([0xFF, opcode]) if *opcode == asked => {
                        return Err(Failure::Refused(format!("refused the frame {opcode:02X}")));
                    }
                    _ => {}
                }
            }
            Err(Failure::Refused("answers everything but what it was asked".to_owned()))
        };
        timeout(within, read)
            .await
            .unwrap_or_else(|_| Err(Failure::Gone(format!("did not answer {asked:02X} within {} s", within.as_secs()))))
    }
}

#[cfg(test)]
mod tests;
