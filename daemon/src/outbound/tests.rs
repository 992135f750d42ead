use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

fn permits(entries: &[&str], host: &str, address: &str) -> bool {
    AllowList::parse(entries).unwrap().permits(host, address.parse().unwrap())
}

#[test]
fn networks_permit_what_they_hold_and_an_empty_list_nothing() {
    assert!(permits(&["10.20.0.0/16"], "10.20.3.4", "10.20.3.4"));
    assert!(!permits(&["10.20.0.0/16"], "10.21.3.4", "10.21.3.4"));
    assert!(permits(&["0.0.0.0/0"], "8.8.8.8", "8.8.8.8"));
    assert!(permits(&["192.168.1.7"], "ap", "192.168.1.7"));
    assert!(!permits(&["192.168.1.7"], "ap", "192.168.1.8"));
    assert!(permits(&["fd12::/16"], "ap", "fd12::7"));
    assert!(permits(&["10.0.0.0/8"], "ap", "::ffff:10.1.2.3"));
    assert!(!permits(&[], "ap", "10.0.0.1"));
}

#[test]
fn metadata_and_link_local_addresses_are_never_reached() {
    for address in [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "192.0.0.192",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "fe80::1",
        "fd00:ec2::254",
        "::",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "::169.254.169.254",
    ] {
        assert!(!permits(&["0.0.0.0/0", "::/0", "meta.example.com"], "meta.example.com", address), "{address}");
    }
}

#[test]
fn a_host_name_opens_public_addresses_only() {
    assert!(permits(&["hooks.example.com"], "hooks.example.com", "93.184.216.34"));
    assert!(permits(&["hooks.example.com"], "HOOKS.example.com.", "93.184.216.34"));
    assert!(!permits(&["hooks.example.com"], "other.example.com", "93.184.216.34"));
    assert!(permits(&["*.example.com"], "other.example.com", "93.184.216.34"));
    assert!(!permits(&["*.example.com"], "example.com", "93.184.216.34"));
    assert!(!permits(&["*.example.com"], "badexample.com", "93.184.216.34"));
    for inside in ["127.0.0.1", "10.0.0.1", "192.168.0.1", "100.64.0.1", "::1", "fd00::1"] {
        assert!(!permits(&["hooks.example.com"], "hooks.example.com", inside), "{inside}");
    }
    assert!(permits(&["hooks.example.com", "10.0.0.0/8"], "hooks.example.com", "10.0.0.1"));
}

#[test]
fn entries_that_mean_nothing_are_refused() {
    for entry in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0", "10.0.0.0/+8", "http://ap", "a b", "*", "*.", "fd12::/129"]
    {
        assert!(AllowList::parse([entry]).is_err(), "{entry:?}");
    }
}

#[test]
fn an_address_is_a_host_and_a_port_and_nothing_else() {
    let parse = |address| Peer::parse(address, 80).map(|peer| peer.to_string());
    assert_eq!(parse("Ap.local").unwrap(), "ap.local:80");
    assert_eq!(parse("10.0.0.1:8080").unwrap(), "10.0.0.1:8080");
    assert_eq!(parse("[fd00::1]:81").unwrap(), "[fd00::1]:81");
    for wrong in ["", "ap/path", "user@ap", "ap:0", "ap:99999", "ap:", "http://ap", "ap?x", "ap\r\nX: y", "a b"] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}

fn outbound() -> Outbound {
    Outbound::new(AllowList::loopback())
}

async fn one_answer(answer: &'static str) -> Peer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = Peer::parse(&listener.local_addr().unwrap().to_string(), 80).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    peer
}

fn get(peer: &Peer) -> HttpCall<'_> {
    HttpCall {
        peer,
        method: Method::GET,
        path: "/",
        headers: Vec::new(),
        body: Bytes::new(),
        within: Duration::from_secs(20),
        answer_bytes_max: 100,
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let peer = one_answer("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(outbound().http(get(&peer)).await.unwrap().status, StatusCode::FOUND);
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_no_http_is_broken() {
    let long = one_answer("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n").await;
    assert!(outbound().http(get(&long)).await.unwrap_err().may_have_arrived());
    let garbage = one_answer("what?\r\n\r\n").await;
    assert!(outbound().http(get(&garbage)).await.unwrap_err().may_have_arrived());
}

#[tokio::test]
async fn what_is_not_on_the_list_is_not_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = Peer::parse(&format!("localhost:{}", listener.local_addr().unwrap().port()), 80).unwrap();
    let nothing = Outbound::new(AllowList::parse(["10.0.0.0/8", "localhost"]).unwrap());
    let refused = nothing.http(get(&peer)).await.unwrap_err();
    assert!(matches!(refused, OutboundError::NotAllowed { .. }) && refused.is_permanent(), "{refused}");
    assert!(futures::FutureExt::now_or_never(listener.accept()).is_none(), "nobody connected");
}
