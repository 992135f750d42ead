//! Bodies, paths, parameters and headers that are wrong, each with the exact answer.

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::harness::World;

const REFRESH: &str = "/v1/triggers/model-refresh";

fn good() -> Value {
    json!({
        "tenant_id": "acme", "store_id": "s1", "model_id": "M", "reason": "r", "tracking_id": "t-1", "dry_run": false
    })
}

fn without(field: &str) -> String {
    let mut body = good();
    body.as_object_mut().unwrap().remove(field);
    body.to_string()
}

fn with(field: &str, value: Value) -> String {
    let mut body = good();
    body[field] = value;
    body.to_string()
}

/// Every one: 4xx naming the field, nothing passed on, exactly one audit row.
#[tokio::test]
async fn bad_bodies_name_their_field() {
    let long = "x".repeat(200);
    let deep = format!("{{\"reason\": {}1{}}}", "[".repeat(500), "]".repeat(500));
    let duplicate = good().to_string().replacen('{', "{\"reason\": \"first\",", 1);
    let cases: Vec<(String, &str)> = vec![
        (without("tenant_id"), "tenant_id"),
        (without("store_id"), "store_id"),
        (without("model_id"), "model_id"),
        (without("reason"), "reason"),
        (without("tracking_id"), "tracking_id"),
        (without("dry_run"), "dry_run"),
        (with("dry_run", json!(null)), "dry_run"),
        (with("dry_run", json!("true")), "dry_run"),
        (with("dry_run", json!(0)), "dry_run"),
        (with("reason", json!("")), "reason"),
        (with("reason", json!("   ")), "reason"),
        (with("reason", json!(7)), "reason"),
        (with("reason", json!("a\nb")), "reason"),
        (with("reason", json!("a\u{202e}b")), "reason"),
        (with("reason", json!("nul\u{0}")), "reason"),
        (with("reason", json!("y".repeat(501))), "reason"),
        (with("tracking_id", json!("")), "tracking_id"),
        (with("tracking_id", json!("a b")), "tracking_id"),
        (with("tracking_id", json!("../x")), "tracking_id"),
        (with("tracking_id", json!("ä")), "tracking_id"),
        (with("tracking_id", json!(long)), "tracking_id"),
        (with("tenant_id", json!("a/b")), "tenant_id"),
        (with("tenant_id", json!("..")), "tenant_id"),
        (with("store_id", json!("s1/eccmodels")), "store_id"),
        (with("store_id", json!(["s1"])), "store_id"),
        (with("model_id", json!("M\u{0}")), "model_id"),
        (with("model_id", json!("*")), "model_id"),
        (with("sla_timestamp", json!("tomorrow")), "sla_timestamp"),
        (with("sla_timestamp", json!(1_700_000_000)), "sla_timestamp"),
        (with("sla_timestamp", json!("Mon, 01 Jun 2026 00:00:00 GMT")), "sla_timestamp"),
        (with("sla_timestamp", json!("0000-01-01T00:00:00Z")), "sla_timestamp"),
        (with("queue_name", json!("hardware-exporter")), "queue_name"),
        (with("state", json!("done")), "state"),
        (with("priority", json!({})), "priority"),
        (duplicate, "reason"),
        (deep, "reason"),
        (String::new(), "body"),
        ("null".to_owned(), "body"),
        ("[]".to_owned(), "body"),
        ("7".to_owned(), "body"),
        ("{".to_owned(), "body"),
        (format!("{} x", good()), "body"),
        (format!("\u{feff}{}", good()), "body"),
        ("{\"reason\": \"\\ud800\"}".to_owned(), "body"),
    ];
    let world = World::new();
    for (body, field) in cases {
        let before = world.audit_rows();
        let answer = world.post(&world.token(), REFRESH, body.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}: {}", answer.text());
        assert_eq!(answer.problem(), ("INVALID_ARGUMENT".to_owned(), field.to_owned()), "{body}: {}", answer.text());
        assert_eq!(world.audit_rows() - before, 1, "{body}");
        assert_eq!(answer.headers["cache-control"], "no-store");
    }
    assert!(world.triggers.state().seen.is_empty());
}

/// Nobody shall believe that a parameter was read which the request does not have, least of all a `dry_run` behind an action.
#[tokio::test]
async fn parameters_that_a_request_does_not_have_are_refused_by_name() {
    let world = World::new();
    let token = world.token();
    let document: Value = serde_json::from_str(&gateway::openapi_json()).unwrap();
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if !path.starts_with("/v1/") {
            continue;
        }
        let path = path.replace("{tenant}", "acme").replace("{store}", "s1").replace("{label}", "L1");
        let path = path.replace("{tracking_id}", "t-1") + "?dry_run=true";
        for method in item.as_object().unwrap().keys() {
            let request = Request::builder()
                .method(method.to_uppercase().as_str())
                .uri(&path)
                .header("authorization", format!("Bearer {token}"))
                .header("content-type", "application/json")
                .body(Body::from(good().to_string()))
                .unwrap();
            let before = world.audit_rows();
            let answer = world.raw(request).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{method} {path}: {}", answer.text());
            assert_eq!(answer.problem(), ("INVALID_ARGUMENT".to_owned(), "dry_run".to_owned()), "{method} {path}");
            let audited = usize::from(method != "get" && !path.contains("/preview"));
            assert_eq!(world.audit_rows() - before, audited, "{method} {path}");
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried} operations were tried");
    assert!(world.triggers.state().seen.is_empty());
}

#[tokio::test]
async fn the_bare_address_leads_to_the_page_and_nothing_else_does() {
    let world = World::new();
    let bare = world.get(&world.token(), "/").await;
    assert_eq!((bare.status, &bare.headers["location"]), (StatusCode::SEE_OTHER, &"/docs/".parse().unwrap()));
    assert_eq!(world.post(&world.token(), "/", "{}".to_owned()).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_valid_of_a_bad_body_stands_in_its_audit_row() {
    let world = World::new();
    world.post(&world.token(), REFRESH, with("store_id", json!("/"))).await;
    world.post(&world.token(), REFRESH, with("tracking_id", json!("a\nb"))).await;
    let audit = world.cqs.state().audit.clone();
    assert_eq!((audit[0].tenant_id.as_str(), audit[0].tracking_id.as_str()), ("acme", "t-1"));
    assert_eq!(audit[0].action, "trigger model-refresh");
    assert!(audit[0].detail.starts_with("store_id: "));
    assert_eq!((audit[1].tracking_id.as_str(), audit[1].reason.as_str()), ("", "r"));
}

#[tokio::test]
async fn size_and_media_type_are_bounded() {
    let world = World::new();
    let token = world.token();
    let padded = |bytes: usize| {
        let body = good().to_string();
        format!("{body}{}", " ".repeat(bytes - body.len()))
    };
    assert_eq!(world.post(&token, REFRESH, padded(64 * 1024)).await.status, StatusCode::ACCEPTED);
    let large = world.post(&token, REFRESH, padded(64 * 1024 + 1)).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(large.problem(), ("PAYLOAD_TOO_LARGE".to_owned(), "body".to_owned()));
    assert_eq!(world.audit_rows(), 1);
    for (kind, encoding, expected) in [
        (None, None, Some("content-type")),
        (Some("text/plain"), None, Some("content-type")),
        (Some("application/json; charset=utf-16"), None, Some("content-type")),
        (Some("application/json"), Some("gzip"), Some("content-encoding")),
        (Some("Application/JSON; charset=UTF-8"), None, None),
    ] {
        let before = world.audit_rows();
        let mut request = Request::post(REFRESH).header("authorization", format!("Bearer {token}"));
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        if let Some(encoding) = encoding {
            request = request.header("content-encoding", encoding);
        }
        let answer = world.raw(request.body(Body::from(good().to_string())).unwrap()).await;
        match expected {
            Some(field) => {
                assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind:?}");
                assert_eq!(answer.problem().1, field);
                assert_eq!(world.audit_rows() - before, 1);
            }
            None => assert_eq!(answer.status, StatusCode::OK, "{}", answer.text()),
        }
    }
}

#[tokio::test]
async fn bad_paths_and_parameters_name_their_part() {
    let world = World::new();
    let token = world.token();
    for (path, status, field) in [
        ("/v1/tenants/a%2Fb/stores", 400, "tenant"),
        ("/v1/tenants/%2e%2e/stores", 400, "tenant"),
        ("/v1/tenants/a%00/stores", 400, "tenant"),
        ("/v1/tenants/%ff/stores", 400, "path"),
        ("/v1/tenants/acme/stores/s%201/labels", 400, "store"),
        ("/v1/tenants/acme/stores/s1/labels/%F0%9F%98%80", 400, "label"),
        ("/v1/tenants/acme/operations/a%20b", 400, "tracking_id"),
        ("/v1/tenants/acme/stores/nowhere/labels", 404, ""),
        ("/v1/tenants/acme/stores/nowhere/models", 404, ""),
        ("/v1/tenants/acme/stores/s1/labels/nothing", 404, ""),
        ("/v1/tenants/acme/stores/s1/labels/E2/image.png", 404, ""),
        ("/v1/tenants/acme/operations/nothing", 404, ""),
        ("/v1/operations?page_size=0", 400, "page_size"),
        ("/v1/operations?page_size=-1", 400, "page_size"),
        ("/v1/operations?page_size=201", 400, "page_size"),
        ("/v1/operations?page_size=9223372036854775808", 400, "page_size"),
        ("/v1/operations?page_size=ten", 400, "page_size"),
        ("/v1/operations?page_size=1&page_size=2", 400, "page_size"),
        ("/v1/operations?page_token=forged", 400, "page_token"),
        ("/v1/operations?page_token=Zm9yZ2Vk", 400, "page_token"),
        ("/v1/operations?sort=reason", 400, "sort"),
        ("/v1/operations?state=", 400, "state"),
        ("/v1/operations?state=RUNNING,", 400, "state"),
        ("/v1/operations?state=UNSPECIFIED", 400, "state"),
        ("/v1/tenants/acme/operations?state=running", 400, "state"),
        ("/v1/tenants?page_token=%21", 400, "page_token"),
        ("/v1/audit?tenant=a%20b", 400, "tenant"),
        ("/v1/audit?tracking_id=a%20b", 400, "tracking_id"),
        ("/v1/audit?tenant=rival", 404, ""),
        ("/nothing", 404, ""),
        ("/v1/queues", 404, ""),
        ("/v1//me", 404, ""),
    ] {
        let answer = world.get(&token, path).await;
        assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.text());
        assert_eq!(answer.problem().1, field, "{path}: {}", answer.text());
    }
    assert_eq!(world.audit_rows(), 0, "reads are not control actions");
}

#[tokio::test]
async fn wrong_methods_are_refused_as_problems() {
    let world = World::new();
    for (method, path) in
        [("POST", "/v1/me"), ("DELETE", "/v1/operations"), ("GET", REFRESH), ("TRACE", "/v1/me"), ("OPTIONS", "/v1/me")]
    {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let answer = world.raw(request).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        assert_eq!(answer.problem().1, "method");
        assert!(answer.headers.contains_key("allow"));
    }
}

/// serde would take the values of an array by position, so without their names.
#[tokio::test]
async fn an_array_is_no_record_of_a_touch() {
    let world = World::new();
    let touch = |record: serde_json::Value| json!({ "records": [record], "reason": "r", "tracking_id": "t-1", "dry_run": true });
    let urn = "t/acme/s/s1/eccmodels/M";
    let named = touch(json!({ "dto_type": "eccmodel.v1", "dto_id": urn }));
    assert_eq!(world.post_json(&world.token(), "/v1/triggers/touch", &named).await.status, StatusCode::OK);
    for (record, field) in [
        (json!(["eccmodel.v1", urn]), "records[0]"),
        (json!({ "dto_type": "eccmodel.v1" }), "records[0].dto_id"),
        (json!({ "dto_type": "eccmodel.v1", "dto_id": urn, "queue": "x" }), "records[0].queue"),
    ] {
        let before = world.audit_rows();
        let answer = world.post_json(&world.token(), "/v1/triggers/touch", &touch(record)).await;
        assert_eq!(answer.problem(), ("INVALID_ARGUMENT".to_owned(), field.to_owned()), "{}", answer.text());
        assert_eq!(world.audit_rows() - before, 1, "{field}");
    }
}
