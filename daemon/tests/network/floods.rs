//! HTTP/2 and gRPC abused: a flood ends its own connection and nobody else's, and what is no message within the bounds is the
//! caller's mistake, told before it is unpacked.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tonic::{Code, Status, body::Body};
use tower::{Service as _, ServiceExt as _};

use super::{World, channel, who, world};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Types of frames (RFC 9113, 6).
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// Flag of a head that is whole.
const END_HEADERS: u8 = 4;
/// What a peer is told that asks too much.
const ENHANCE_YOUR_CALM: u32 = 11;
/// What each flood sends of its kind: far beyond any bound.
const ROUNDS: u32 = 4_000;
/// Longest wait for the server to end a connection: shorter than unanswered pings would.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// More than what two sockets hold between them, several times over.
const UNREAD_MAX: usize = 96 << 20;
/// How long nothing of it may be taken before it counts as left alone.
const LEFT_ALONE: Duration = Duration::from_secs(2);
/// Any RPC of the server.
const PATH: &str = "/ecc_image_render.v1.EccImageRenderTriggers/TriggerModelRefresh";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request's head, in literals without an index (RFC 7541).
fn head() -> Vec<u8> {
    let mut block = vec![0x83, 0x86, 0x04, u8::try_from(PATH.len()).unwrap()];
    block.extend_from_slice(PATH.as_bytes());
    block.extend_from_slice(b"\x01\x01a\x0f\x10\x10application/grpc");
    block
}

/// Sends `round` again and again, and says with which code the server ended the connection.
async fn flooded(world: &World, round: impl Fn(u32) -> Vec<u8>) -> Option<u32> {
    let (mut reader, mut writer) = TcpStream::connect(world.address).await.unwrap().into_split();
    let all: Vec<u8> = (0..ROUNDS).flat_map(round).collect();
    let write = async {
        // The server may have ended it long before.
        let _ = writer.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[]), &all].concat()).await;
    };
    let read = async {
        let mut code = None;
        let mut start = [0; 9];
        while reader.read_exact(&mut start).await.is_ok() {
            let length = usize::from(start[0]) << 16 | usize::from(start[1]) << 8 | usize::from(start[2]);
            let mut payload = vec![0; length];
            if reader.read_exact(&mut payload).await.is_err() {
                break;
            }
            if start[3] == GOAWAY {
                code = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
            }
        }
        code
    };
    // Fails when the server does not end it.
    tokio::time::timeout(WAIT_MAX, async { tokio::join!(write, read).1 }).await.unwrap()
}

#[tokio::test]
async fn floods_end_their_own_connection_only() {
    let world = world(false, &[]).await;
    let odd = |number: u32| number * 2 + 1;
    // A request, taken back at once.
    let resets = |number| {
        let cancel = 8_u32.to_be_bytes();
        [frame(HEADERS, END_HEADERS, odd(number), &head()), frame(RST_STREAM, 0, odd(number), &cancel)].concat()
    };
    // A request that the server must take back: its window would be larger than any may be.
    let made_resets = |number| {
        let most = 0x7fff_ffff_u32.to_be_bytes();
        [frame(HEADERS, END_HEADERS, odd(number), &head()), frame(WINDOW_UPDATE, 0, odd(number), &most)].concat()
    };
    // A head that never ends.
    let heads = |number| match number {
        0 => frame(HEADERS, 0, 1, &head()),
        _ => frame(CONTINUATION, 0, 1, b"\x00\x01x\x01y"),
    };
    assert_eq!(flooded(&world, resets).await, Some(ENHANCE_YOUR_CALM), "resets");
    assert_eq!(flooded(&world, made_resets).await, Some(ENHANCE_YOUR_CALM), "resets that the server is made to send");
    assert_eq!(flooded(&world, heads).await, Some(ENHANCE_YOUR_CALM), "continuations");
    let plain = channel::connect(&[format!("http://{}", world.address)]).unwrap();
    assert_eq!(who(world.credentials().attach(plain)).await.as_deref(), Ok("svc:operator-gateway"));
}

/// Sends `asking` again and again without ever reading an answer; whether the server stopped to read.
async fn left_alone(world: &World, asking: Vec<u8>) -> bool {
    let mut unread = TcpStream::connect(world.address).await.unwrap();
    unread.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();
    let chunk = asking.repeat((64 << 10) / asking.len());
    let mut sent = 0;
    while sent < UNREAD_MAX {
        match tokio::time::timeout(LEFT_ALONE, unread.write_all(&chunk)).await {
            Ok(Ok(())) => sent += chunk.len(),
            // Not taken any more, or ended.
            Ok(Err(_)) | Err(_) => return true,
        }
    }
    false
}

/// Each of them asks for an answer: answers that nobody takes would fill the memory.
#[tokio::test]
async fn whoever_reads_no_answers_is_not_read_either() {
    let world = world(false, &[]).await;
    let pings = left_alone(&world, frame(PING, 0, 0, &[7; 8]));
    let settings = left_alone(&world, frame(SETTINGS, 0, 0, &[]));
    assert_eq!(tokio::join!(pings, settings), (true, true), "pings, settings");
    let plain = channel::connect(&[format!("http://{}", world.address)]).unwrap();
    assert_eq!(who(world.credentials().attach(plain)).await.as_deref(), Ok("svc:operator-gateway"));
}

/// The status of a call with these bytes for a message.
async fn sent(world: &World, encoding: Option<&str>, bytes: &[u8]) -> Code {
    let plain = channel::connect(&[format!("http://{}", world.address)]).unwrap();
    let mut transport = world.credentials().attach(plain);
    let mut request = http::Request::post(PATH).header("content-type", "application/grpc").header("te", "trailers");
    if let Some(encoding) = encoding {
        request = request.header("grpc-encoding", encoding);
    }
    let request = request.body(Body::new(Full::new(Bytes::copy_from_slice(bytes)))).unwrap();
    let answer = transport.ready().await.unwrap().call(request).await.unwrap();
    if let Some(status) = Status::from_header_map(answer.headers()) {
        return status.code();
    }
    let body = answer.into_body().collect().await.unwrap();
    Status::from_header_map(body.trailers().unwrap()).unwrap().code()
}

/// A gRPC message: whether it is compressed, how long it says it is, and bytes.
fn message(flag: u8, length: u32, bytes: &[u8]) -> Vec<u8> {
    [&[flag], &length.to_be_bytes()[..], bytes].concat()
}

#[tokio::test]
async fn what_is_no_message_is_the_callers_mistake() {
    let world = world(false, &[]).await;
    // An empty message is one.
    assert_eq!(sent(&world, None, &message(0, 0, b"")).await, Code::Ok);
    for (name, encoding, bytes, code) in [
        ("compressed, as nobody may", Some("gzip"), message(1, 3, b"\x1f\x8b\x08"), Code::Unimplemented),
        ("compressed without saying how", None, message(1, 3, b"\x1f\x8b\x08"), Code::InvalidArgument),
        ("neither compressed nor not", None, message(2, 0, b""), Code::InvalidArgument),
        ("4 GiB announced", None, message(0, u32::MAX, b""), Code::OutOfRange),
        ("cut off", None, message(0, 9, b"\x0a"), Code::InvalidArgument),
        ("half a start", None, b"\0\0".to_vec(), Code::InvalidArgument),
        ("nothing", None, Vec::new(), Code::InvalidArgument),
    ] {
        assert_eq!(sent(&world, encoding, &bytes).await, code, "{name}");
    }
}
