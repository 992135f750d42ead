//! Too much of everything: connections, requests, tokens. The next honest one is served.

use std::net::SocketAddr;

use daemon::shutdown::Shutdown;
use gateway::{Rule, Rules};
use http::StatusCode;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::harness::{Changes, World};

async fn listening(world: &World) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(gateway::serve(listener, world.router.clone(), Shutdown::default()));
    address
}

/// Status line and headers of the answer to `GET path`.
async fn get(address: SocketAddr, token: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// More half-open requests than there are places: the oldest give way.
#[tokio::test]
async fn half_open_requests_give_way() {
    let world = World::new();
    let address = listening(&world).await;
    let mut half_open = Vec::new();
    for number in 0..1_100_usize {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = b"GET /v1/me HTTP/1.1\r\nhost: x\r\nx-slow: ";
        // Some say nothing at all.
        stream.write_all(&head[..number % 2 * head.len()]).await.unwrap();
        half_open.push(stream);
        if number % 100 == 0 {
            assert!(get(address, &world.token(), "/v1/me").await.starts_with("HTTP/1.1 200"), "after {number}");
        }
    }
    assert!(get(address, &world.token(), "/v1/me").await.starts_with("HTTP/1.1 200"));
}

/// 260 bodies of one operator that do not come: that operator is told to wait, others are served.
#[tokio::test]
async fn stalled_bodies_of_one_operator_do_not_shut_out_others() {
    let world = World::new();
    let address = listening(&world).await;
    let (token, other) =
        (world.token(), world.token_with(|claims| claims.subject = "bob@acme.example".parse().unwrap()));
    let mut stalled = Vec::new();
    for _ in 0..260 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /v1/triggers/model-refresh HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stalled.push(stream);
    }
    // The last one is answered at once: its operator has enough in hand.
    let mut head = [0_u8; 12];
    stalled.last_mut().unwrap().read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 429");
    assert!(get(address, &other, "/v1/me").await.starts_with("HTTP/1.1 200"));
}

/// Wrong tokens are refused before they are looked at; tokens that were right lately pass, also from that address.
#[tokio::test]
async fn guessing_tokens_is_limited_before_cryptography() {
    let world = World::with(Changes {
        rules: Some(Rules { failures: Rule { burst: 5, interval_ms: 60_000 }, ..Rules::default() }),
        ..Changes::default()
    });
    let address = listening(&world).await;
    let good = world.token();
    assert!(get(address, &good, "/v1/me").await.starts_with("HTTP/1.1 200"));
    for _ in 0..5 {
        assert!(get(address, &format!("{good}x"), "/v1/me").await.starts_with("HTTP/1.1 401"));
    }
    let limited = get(address, "guess", "/v1/me").await;
    assert!(limited.starts_with("HTTP/1.1 429") && limited.contains("retry-after: 6"), "{limited}");
    assert!(get(address, &good, "/v1/me").await.starts_with("HTTP/1.1 200"), "known as right");
    world.clock.advance_ms(61_000);
    assert!(get(address, "guess", "/v1/me").await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn operators_and_tenants_have_rates_and_are_told_when_to_come_again() {
    let rules = Rules {
        reads: Rule { burst: 3, interval_ms: 2_000 },
        actions: Rule { burst: 4, interval_ms: 2_000 },
        tenant_actions: Rule { burst: 6, interval_ms: 2_000 },
        failures: Rule { burst: 1, interval_ms: 1 },
    };
    let world = World::with(Changes { rules: Some(rules), ..Changes::default() });
    let bob = world.token_with(|claims| claims.subject = "bob@acme.example".parse().unwrap());
    let ada = world.token();
    for expected in [200, 200, 200, 429] {
        let answer = world.get(&ada, "/v1/me").await;
        assert_eq!(answer.status, expected);
        if expected == 429 {
            assert_eq!(answer.problem().0, "RESOURCE_EXHAUSTED");
            assert_eq!(answer.headers["retry-after"], "3");
        }
    }
    assert_eq!(world.get(&bob, "/v1/me").await.status, StatusCode::OK, "another operator");
    let dry_run = json!({"tenant_id": "acme", "store_id": "s1", "model_id": "M", "reason": "r", "tracking_id": "t",
        "dry_run": true});
    let post = async |token: &str| world.post_json(token, "/v1/triggers/model-refresh", &dry_run).await;
    for expected in [200, 200, 200, 200, 429] {
        assert_eq!(post(&ada).await.status, expected);
    }
    // Bob has actions left, the tenant has not.
    for expected in [200, 200, 429] {
        assert_eq!(post(&bob).await.status, expected);
    }
    let refused = world.audit_rows();
    assert_eq!(post(&bob).await.problem().0, "RESOURCE_EXHAUSTED");
    assert_eq!(world.audit_rows() - refused, 1, "an action refused for its tenant leaves its row");
    world.clock.advance_ms(2_000);
    assert_eq!(world.get(&ada, "/v1/me").await.status, StatusCode::OK);
    assert_eq!(post(&ada).await.status, StatusCode::OK);
}
