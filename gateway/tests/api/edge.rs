//! Headers, CORS, the page, metrics, and the accept loop over real sockets.

use std::time::Duration;

use axum::body::Body;
use daemon::shutdown::Shutdown;
use http::{Request, StatusCode};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::harness::{Changes, World};

#[tokio::test]
async fn every_answer_has_its_own_request_id_and_the_security_headers() {
    let world = World::new();
    let mut ids = std::collections::BTreeSet::new();
    for path in ["/v1/me", "/nothing", "/healthz", "/openapi.json"] {
        let request = Request::get(path).header("x-request-id", "forged").body(Body::empty()).unwrap();
        let answer = world.raw(request).await;
        assert!(ids.insert(answer.headers["x-request-id"].clone()), "{path}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["cache-control"], "no-store");
        assert!(answer.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    }
    assert!(ids.iter().all(|id| id != "forged"));
}

#[tokio::test]
async fn the_page_is_served_offline_and_offers_to_authorise() {
    let world = World::new();
    let page = world.get("", "/docs/").await;
    assert_eq!(page.status, StatusCode::OK);
    let policy = page.headers["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("script-src 'self';"), "{policy}");
    let html = page.text();
    assert!(!html.contains("https://") && !html.contains("http://"), "the page loads something from elsewhere");
    assert!(!html.contains("<script>"), "an inline script would not run under the policy");
    let settings = world.get("", "/docs/swagger-initializer.js").await.text();
    assert!(settings.contains("/openapi.json"), "{settings}");
    assert!(settings.contains("\"persistAuthorization\": false"), "{settings}");
    let document = world.get("", "/openapi.json").await.json();
    assert_eq!(document["components"]["securitySchemes"]["operator"]["scheme"], "bearer");
    let committed: serde_json::Value = serde_json::from_str(&gateway::openapi_json()).unwrap();
    assert_eq!(document, committed);
}

/// With a login the page knows the provider's flow and may call its token endpoint; the committed document stays as it is.
#[tokio::test]
async fn the_page_can_log_in_at_a_provider() {
    let login = gateway::Login {
        client_id: "console".to_owned(),
        authorization_url: "https://id.example/auth".to_owned(),
        token_url: "https://tokens.example/token".to_owned(),
        parameters: [("audience".to_owned(), "reshelf".to_owned())].into(),
    };
    let world = World::with(Changes { login: Some(login), ..Changes::default() });
    let document = world.get("", "/openapi.json").await.json();
    let flow = &document["components"]["securitySchemes"]["login"]["flows"]["authorizationCode"];
    assert_eq!(flow["tokenUrl"], "https://tokens.example/token");
    let me = &document["paths"]["/v1/me"]["get"]["security"];
    assert_eq!((&me[0]["operator"], &me[1]["login"]), (&serde_json::json!([]), &serde_json::json!([])));
    let trigger = &document["paths"]["/v1/triggers/model-refresh"]["post"]["security"];
    assert_eq!(trigger[1]["login"], serde_json::json!(["trigger:model-refresh"]));
    assert_eq!(document["paths"]["/healthz"]["get"]["security"].as_array().unwrap().len(), 1);
    let page = world.get("", "/docs/").await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("connect-src 'self' https://tokens.example;"), "{policy}");
    let script = world.get("", "/docs/swagger-initializer.js").await.text();
    assert!(script.contains("usePkceWithAuthorizationCodeGrant") && script.contains("\"console\""), "{script}");
    assert!(!gateway::openapi_json().contains("authorizationCode"));
}

#[tokio::test]
async fn other_origins_are_refused_unless_listed() {
    let preflight = |origin: &str| {
        Request::options("/v1/me")
            .header("origin", origin)
            .header("access-control-request-method", "GET")
            .header("access-control-request-headers", "authorization")
            .body(Body::empty())
            .unwrap()
    };
    let closed = World::new();
    assert!(!closed.raw(preflight("https://ops.example")).await.headers.contains_key("access-control-allow-origin"));
    let open = World::with(Changes { cors: vec!["https://ops.example"], ..Changes::default() });
    let allowed = open.raw(preflight("https://ops.example")).await;
    assert_eq!(allowed.headers["access-control-allow-origin"], "https://ops.example");
    assert!(!allowed.headers.contains_key("access-control-allow-credentials"));
    for origin in ["https://evil.example", "null", "https://ops.example.evil"] {
        let answer = open.raw(preflight(origin)).await;
        assert!(!answer.headers.contains_key("access-control-allow-origin"), "{origin}");
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_not_by_path() {
    let world = World::new();
    let token = world.token();
    for label in ["E1", "E2", "nothing"] {
        world.get(&token, &format!("/v1/tenants/acme/stores/s1/labels/{label}")).await;
    }
    world.get(&token, "/nothing-like-this").await;
    let text = world.get("", "/metrics").await.text();
    let count = |status: &str| {
        let line = text.lines().find(|line| {
            line.starts_with("reshelf_http_requests_total")
                && line.contains("/v1/tenants/{tenant}/stores/{store}/labels/{label}\"")
                && line.contains(&format!("status=\"{status}\""))
        });
        line.unwrap_or_else(|| panic!("{text}")).rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!((count("200"), count("404")), ("2".to_owned(), "1".to_owned()));
    assert!(text.contains("route=\"unmatched\""));
    assert!(text.contains("reshelf_http_request_seconds_bucket"));
    assert!(!text.contains("E1") && !text.contains("nothing-like-this"));
}

/// A gateway on a real socket; ends with the test.
async fn listening(world: &World) -> (std::net::SocketAddr, Shutdown, tokio::task::JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = Shutdown::default();
    let served = tokio::spawn(gateway::serve(listener, world.router.clone(), shutdown.clone()));
    (address, shutdown, served)
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    tokio::time::timeout(Duration::from_mins(1), stream.read_to_end(&mut text)).await.unwrap().unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn it_serves_and_stops_when_asked() {
    let world = World::new();
    let (address, shutdown, served) = listening(&world).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut head = [0_u8; 15];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    // The idle keep-alive connection does not hold the drain up.
    shutdown.stop().await;
    served.await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "it listens no more");
}

#[tokio::test]
async fn heads_are_bounded() {
    let world = World::new();
    let (address, _shutdown, _served) = listening(&world).await;
    let huge = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(64 * 1024));
    let many = format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(100));
    for request in [huge, many] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may close before it has taken everything.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut head = [0_u8; 12];
        if stream.read_exact(&mut head).await.is_ok() {
            assert_eq!(&head, b"HTTP/1.1 431");
        }
    }
    for bad in
        ["GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", "nonsense\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bad.as_bytes()).await.unwrap();
        assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 400"), "{bad}");
    }
}

/// A client that never finishes its head is cut off by the server, not waited for.
#[tokio::test(start_paused = true)]
async fn a_slow_head_is_cut_off() {
    let world = World::new();
    let (address, _shutdown, _served) = listening(&world).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: ").await.unwrap();
    let mut rest = Vec::new();
    // Paused time moves on by itself once everything waits; the read then ends because the server closed.
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
}

/// A body that stops coming is a refusal like any other: told as one, with its row, not as an unknown outcome.
#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_is_refused_and_audited() {
    let world = World::new();
    let (address, _shutdown, _served) = listening(&world).await;
    let token = world.token();
    for (length, sent) in [("content-length: 100", "{\"tenant_id\":"), ("transfer-encoding: chunked", "2\r\n{}\r\n")] {
        let before = world.audit_rows();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /v1/triggers/model-refresh HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
            content-type: application/json\r\nconnection: close\r\n{length}\r\n\r\n{sent}"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // Paused time moves on by itself once everything waits.
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("\"field\":\"body\""), "{answer}");
        assert_eq!(world.audit_rows() - before, 1, "{length}");
    }
}
