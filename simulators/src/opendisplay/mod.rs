//! A tag of the OpenDisplay protocol on the local network: a TCP server that answers for every step, the refresh of the
//! panel included.
//!
//! Frames are a length (two bytes, low first) and that many bytes: an opcode of two bytes, then its content. Opcodes
//! nobody knows get no answer. One client is served at a time; another is shown the door.

mod packing;

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{Clock, Timestamp};
use picture::{Digest, Palette, Picture};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Longest frame, in bytes.
const FRAME_BYTES_MAX: u16 = 4_096;
/// Refreshes remembered.
const SHOWN_MAX: usize = 1_024;

const OPCODE_START: u8 = 0x70;
const OPCODE_DATA: u8 = 0x71;
const OPCODE_END: u8 = 0x72;
const OPCODE_REFRESHED: u8 = 0x73;
const OPCODE_REFRESH_TIMED_OUT: u8 = 0x74;
const OPCODE_PARTIAL: u8 = 0x76;

/// A tag.
#[derive(Clone)]
pub struct TagSettings {
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Where to listen; port 0 for a free one.
    pub listen: SocketAddr,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Its inks; not [`Palette::Grey4`], whose packing is not known.
    pub palette: Palette,
}

/// What may go wrong; each holds for one picture, but [`Control::Offline`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The network to it goes (`true`) or comes back.
    Offline(bool),
    /// It takes the picture and reports that the panel did not refresh in time.
    RefreshTimesOut,
    /// It refuses the frame with this opcode.
    Refuses(u8),
    /// It hangs up instead of answering the frame with this opcode, having done what it says.
    HangsUpAfter(u8),
    /// It does not answer the frame with this opcode, and goes on listening.
    IsSilentOn(u8),
}

/// A refresh of the panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// When.
    pub at: Timestamp,
    /// With what.
    pub digest: Digest,
    /// The tag's mark for it, as the client gave it.
    pub etag: u32,
}

/// A running tag. It stops when this is dropped.
pub struct Tag {
    shared: Arc<Shared>,
    address: SocketAddr,
    server: JoinHandle<()>,
}

struct Shared {
    settings: TagSettings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    offline: bool,
    busy: bool,
    faults: VecDeque<Control>,
    screen: Option<Picture>,
    shown: Vec<Shown>,
    partials: u64,
}

impl std::fmt::Debug for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tag").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Tag {
    /// Listens and serves.
    pub async fn start(settings: TagSettings) -> io::Result<Self> {
        let tcp = TcpListener::bind(settings.listen).await?;
        let address = tcp.local_addr()?;
        let shared = Arc::new(Shared { settings, state: Mutex::default() });
        let server = tokio::spawn(serve(tcp, Arc::clone(&shared)));
        Ok(Self { shared, address, server })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the panel shows.
    pub fn screen(&self) -> Option<Picture> {
        self.shared.state().screen.clone()
    }

    /// What the panel was refreshed with, oldest first; the newest 1,024.
    pub fn shown(&self) -> Vec<Shown> {
        self.shared.state().shown.clone()
    }

    /// How many partial updates were asked for. They erase the rest of some panels and are acknowledged all the same.
    pub fn partials(&self) -> u64 {
        self.shared.state().partials
    }

    /// How many of the faults are still to come.
    pub fn faults(&self) -> usize {
        self.shared.state().faults.len()
    }

    /// Makes something go wrong.
    pub fn control(&self, control: Control) {
        let mut state = self.shared.state();
        match control {
            Control::Offline(offline) => state.offline = offline,
            fault => state.faults.push_back(fault),
        }
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault that is next, if it concerns this frame; then it is over.
    fn fault(&self, opcode: u8) -> Option<Control> {
        let mut state = self.state();
        let concerns = match state.faults.front()? {
            Control::Refuses(which) | Control::HangsUpAfter(which) | Control::IsSilentOn(which) => *which == opcode,
            Control::RefreshTimesOut => opcode == OPCODE_END,
            Control::Offline(_) => false,
        };
        if concerns { state.faults.pop_front() } else { None }
    }

    fn refresh(&self, picture: Picture, etag: u32) {
        let mut state = self.state();
        if state.shown.len() == SHOWN_MAX {
            state.shown.remove(0);
        }
        state.shown.push(Shown { at: self.settings.clock.now(), digest: picture.digest(), etag });
        state.screen = Some(picture);
    }
}

async fn serve(tcp: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = tcp.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        {
            let mut state = shared.state();
            if state.offline || state.busy {
                continue;
            }
            state.busy = true;
        }
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A client that breaks off ends only its own connection.
            if let Err(error) = converse(stream, &shared).await {
                tracing::debug!(%error, "a client of a simulated tag broke off");
            }
            shared.state().busy = false;
        });
    }
}

async fn converse(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut arriving: Option<Vec<u8>> = None;
    loop {
        let length = stream.read_u16_le().await?;
        if length == 0 || length > FRAME_BYTES_MAX {
            return Ok(());
        }
        let mut frame = vec![0; usize::from(length)];
        stream.read_exact(&mut frame).await?;
        let Some(([0, opcode], content)) = frame.split_first_chunk() else { continue };
        let fault = shared.fault(*opcode);
        if let Some(Control::Refuses(_)) = fault {
            say(&mut stream, [0xFF, *opcode]).await?;
            continue;
        }
        let answers = answers(*opcode, content, &mut arriving, shared, fault == Some(Control::RefreshTimesOut));
        match fault {
            Some(Control::HangsUpAfter(_)) => return Ok(()),
            Some(Control::IsSilentOn(_)) => {}
            _ => {
                for answer in answers {
                    say(&mut stream, answer).await?;
                }
            }
        }
    }
}

fn answers(
    opcode: u8,
    content: &[u8],
    arriving: &mut Option<Vec<u8>>,
    shared: &Shared,
    times_out: bool,
) -> Vec<[u8; 2]> {
    let settings = &shared.settings;
    let taken = [0x00, opcode];
    let refused = [0xFF, opcode];
    match opcode {
        OPCODE_START => {
            *arriving = Some(Vec::new());
            vec![taken]
        }
        OPCODE_DATA => match arriving {
            Some(bytes) if bytes.len() + content.len() <= packing::bytes(settings) => {
                bytes.extend_from_slice(content);
                vec![taken]
            }
            _ => vec![refused],
        },
        OPCODE_END => {
            let (Some(bytes), Some(([_mode, e3, e2, e1, e0], _))) = (arriving.take(), content.split_first_chunk())
            else {
                return vec![refused];
            };
            let Some(picture) = packing::decode(&bytes, settings) else { return vec![refused] };
            if times_out {
                return vec![taken, [0x00, OPCODE_REFRESH_TIMED_OUT]];
            }
            shared.refresh(picture, u32::from_be_bytes([*e3, *e2, *e1, *e0]));
            vec![taken, [0x00, OPCODE_REFRESHED]]
        }
        OPCODE_PARTIAL => {
            shared.state().partials += 1;
            vec![taken]
        }
        _ => Vec::new(),
    }
}

async fn say(stream: &mut TcpStream, answer: [u8; 2]) -> io::Result<()> {
    let [high, low] = answer;
    stream.write_all(&[2, 0, high, low]).await
}
