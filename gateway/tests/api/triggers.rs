//! Triggers: dry run, start, replay, conflict, touch, and who writes the audit row.

use domain::{ErrorCode, Refusal, Timestamp};
use http::StatusCode;
use proto::cqs::v1::AuditOutcome;
use serde_json::{Value, json};

use crate::{
    fakes::Fault,
    harness::{NOW, World},
};

const REFRESH: &str = "/v1/triggers/model-refresh";
const TOUCH: &str = "/v1/triggers/touch";

fn refresh(dry_run: bool) -> Value {
    json!({
        "tenant_id": "acme", "store_id": "s1", "model_id": "M",
        "reason": "CHG-118: font fixed", "tracking_id": "CHG-118", "dry_run": dry_run
    })
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

#[tokio::test]
async fn a_dry_run_counts_and_starts_nothing() {
    let world = World::new();
    let answer = world.post_json(&world.token(), REFRESH, &refresh(true)).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let body = answer.json();
    assert_eq!(body["dry_run"], true);
    assert_eq!(body["labels"], 2);
    assert_eq!(body["sample_label_ids"], json!(["E1", "E2"]));
    assert_eq!(body["stores"], json!([{"store_id": "s1", "labels": 2}]));
    assert_eq!(body["would_run_on"], "ecc-image-render-service");
    assert!(!answer.headers.contains_key("location"));
    assert!(world.triggers.state().accepted.is_empty());
    assert_eq!(world.audit_rows(), 0);
}

#[tokio::test]
async fn a_start_is_accepted_and_its_repetition_replayed() {
    let world = World::new();
    let first = world.post_json(&world.token(), REFRESH, &refresh(false)).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text());
    let path = "/v1/tenants/acme/operations/CHG-118";
    assert_eq!(first.headers["location"], path);
    assert!(first.headers.contains_key("retry-after"));
    let body = first.json();
    assert_eq!(body["operation"], path);
    assert_eq!((&body["labels"], &body["items_enqueued"], &body["replayed"]), (&json!(2), &json!(1), &json!(false)));
    assert_eq!(body["sla_timestamp"], "2026-06-01T04:00:00.000Z");

    // A minute later the computed default differs, the request does not.
    world.clock.advance_ms(60_000);
    let again = world.post_json(&world.token(), REFRESH, &refresh(false)).await;
    assert_eq!(again.status, StatusCode::OK);
    let mut expected = body.clone();
    expected["replayed"] = json!(true);
    assert_eq!(again.json(), expected);
    assert_eq!(world.triggers.state().accepted.len(), 1);
    assert_eq!(world.audit_rows(), 0, "acceptance is written down by CQS");
}

#[tokio::test]
async fn another_request_under_the_same_id_conflicts_naming_the_field() {
    let world = World::new();
    assert_eq!(world.post_json(&world.token(), REFRESH, &refresh(false)).await.status, StatusCode::ACCEPTED);
    for (field, value) in
        [("reason", json!("another")), ("model_id", json!("N")), ("sla_timestamp", json!("2026-06-02T00:00:00Z"))]
    {
        let before = world.audit_rows();
        let answer = world.post_json(&world.token(), REFRESH, &with(refresh(false), field, value)).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{field}");
        assert_eq!(answer.problem(), ("ALREADY_EXISTS".to_owned(), field.to_owned()));
        assert_eq!(world.audit_rows() - before, 1, "{field}: one row");
        assert_eq!(world.cqs.state().audit.last().unwrap().service, "svc:ecc-image-render-service");
    }
}

#[tokio::test]
async fn the_operator_comes_from_the_token_and_the_sla_from_the_request_or_the_allowance() {
    let world = World::new();
    let token = world.token();
    world.post_json(&token, REFRESH, &refresh(true)).await;
    let asked = with(refresh(true), "sla_timestamp", json!("2026-06-01T02:30:00+02:00"));
    world.post_json(&token, REFRESH, &asked).await;
    let forged = world.post_json(&token, REFRESH, &with(refresh(true), "operator_subject", json!("mallory"))).await;
    assert_eq!(forged.problem(), ("INVALID_ARGUMENT".to_owned(), "operator_subject".to_owned()));
    let state = world.triggers.state();
    let [first, second] = state.seen.as_slice() else { panic!("{:?}", state.seen) };
    assert_eq!(first.operator_subject, "ada@acme.example");
    let sla = |at: &Option<prost_types::Timestamp>| proto::timestamp_from_wire("sla", at.as_ref().unwrap()).unwrap();
    assert_eq!(sla(&first.sla_timestamp), NOW.plus_ms(4 * 60 * 60 * 1000));
    assert!(first.sla_is_default);
    assert_eq!(sla(&second.sla_timestamp), Timestamp::from_ms(NOW.as_ms() + 30 * 60 * 1000));
    assert!(!second.sla_is_default);
}

#[tokio::test]
async fn an_unknown_model_looks_like_another_tenants() {
    let world = World::new();
    let token = world.token();
    let unknown = world.post_json(&token, REFRESH, &with(refresh(false), "model_id", json!("nothing"))).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(unknown.problem(), ("NOT_FOUND".to_owned(), "model_id".to_owned()));
    assert_eq!(world.audit_rows(), 1, "written down by the service");
    let other = world.post_json(&token, REFRESH, &with(refresh(false), "tenant_id", json!("rival"))).await;
    assert_eq!(other.bytes, unknown.bytes);
    assert_eq!(world.audit_rows(), 2, "written down by the gateway");
    let row = world.cqs.state().audit.last().unwrap().clone();
    assert_eq!(row.service, "svc:operator-gateway");
    assert_eq!(row.tenant_id, "", "another tenant's log shows nothing of it");
    assert_eq!((row.tracking_id.as_str(), row.reason.as_str()), ("CHG-118", "CHG-118: font fixed"));
    assert_eq!(row.outcome(), AuditOutcome::Refused);
    assert_eq!(row.error_code, "NOT_FOUND");
    assert_eq!(row.request_digest.len(), 64);
}

#[tokio::test]
async fn a_refusal_of_the_service_is_written_down_once_by_the_service() {
    let world = World::new();
    for code in [ErrorCode::InvalidArgument, ErrorCode::FailedPrecondition, ErrorCode::ResourceExhausted] {
        world.triggers.state().fault = Some(Fault::Refusal(Refusal::new(code, "no").at("store_id")));
        let before = world.audit_rows();
        let answer = world.post_json(&world.token(), REFRESH, &refresh(false)).await;
        assert_eq!(answer.problem(), (code.to_string(), "store_id".to_owned()));
        assert_eq!(world.audit_rows() - before, 1, "{code}");
    }
}

#[tokio::test]
async fn a_refusal_stands_when_its_row_cannot_be_written() {
    let world = World::new();
    world.cqs.state().fault = Some(Fault::Status(tonic::Code::Unavailable));
    let answer = world.post_json(&world.token(), REFRESH, &with(refresh(false), "reason", json!(""))).await;
    assert_eq!(answer.problem(), ("INVALID_ARGUMENT".to_owned(), "reason".to_owned()));
    world.cqs.state().fault = None;
    assert_eq!(world.audit_rows(), 0);
}

const DESIGN: &str = "/v1/triggers/design-refresh";

fn design_refresh(dry_run: bool) -> Value {
    json!({
        "tenant_id": "acme", "design_id": "D", "reason": "CHG-121: new logo", "tracking_id": "CHG-121", "dry_run": dry_run
    })
}

#[tokio::test]
async fn a_design_is_counted_by_store_and_started_like_a_model() {
    let world = World::new();
    let token = world.token();
    let dry = world.post_json(&token, DESIGN, &design_refresh(true)).await;
    assert_eq!(dry.status, StatusCode::OK, "{}", dry.text());
    let body = dry.json();
    assert_eq!(body["labels"], 2);
    assert_eq!(body["stores"], json!([{"store_id": "s1", "labels": 1}, {"store_id": "s2", "labels": 1}]));
    assert_eq!(body["would_run_on"], "studio-renderer");
    assert!(body.get("next_page_token").is_none());
    assert!(world.triggers.state().accepted.is_empty());

    let first = world.post_json(&token, DESIGN, &design_refresh(false)).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text());
    assert_eq!(first.headers["location"], "/v1/tenants/acme/operations/CHG-121");
    assert_eq!(first.json()["sla_timestamp"], "2026-06-01T04:00:00.000Z");
    assert_eq!(world.triggers.state().accepted[0].0.scope, "t/acme/designs/D");
    let again = world.post_json(&token, DESIGN, &design_refresh(false)).await;
    assert_eq!((again.status, again.json()["replayed"].clone()), (StatusCode::OK, json!(true)));
    let other = world.post_json(&token, DESIGN, &with(design_refresh(false), "design_id", json!("E"))).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(other.problem().1, "design_id");
}

#[tokio::test]
async fn a_breakdown_of_many_stores_comes_in_pages_of_200() {
    let world = World::new();
    for store in 0..250 {
        let link = proto::records::v1::StudioLink { item_id: "I".to_owned(), design_id: "E".to_owned() };
        world.dtoflow.put(domain::DtoType::StudioLink, &format!("t/acme/s/n{store:03}/studiolinks/L"), &link);
    }
    let token = world.token();
    let asked = with(design_refresh(true), "design_id", json!("E"));
    let first = world.post_json(&token, DESIGN, &asked).await.json();
    assert_eq!((first["labels"].clone(), first["stores"].as_array().unwrap().len()), (json!(250), 200));
    let rest =
        world.post_json(&token, DESIGN, &with(asked, "page_token", first["next_page_token"].clone())).await.json();
    assert_eq!((rest["labels"].clone(), rest["stores"].as_array().unwrap().len()), (json!(250), 50));
    assert_eq!(rest["stores"][0]["store_id"], "n200");
    assert!(rest.get("next_page_token").is_none());

    let live = with(design_refresh(false), "page_token", json!("at-200"));
    let refused = world.post_json(&token, DESIGN, &live).await;
    assert_eq!(refused.problem(), ("INVALID_ARGUMENT".to_owned(), "page_token".to_owned()));
    let strange = with(design_refresh(true), "page_token", json!("nonsense"));
    assert_eq!(world.post_json(&token, DESIGN, &strange).await.problem().1, "page_token");
}

#[tokio::test]
async fn a_store_is_rendered_again_by_each_renderer_apart() {
    let world = World::new();
    let token = world.token();
    for (path, service, labels) in
        [("ecc-store-rerender", "ecc-image-render-service", 3), ("studio-store-rerender", "studio-renderer", 1)]
    {
        let path = format!("/v1/triggers/{path}");
        let asked = |store: &str, dry_run: bool| json!({"tenant_id": "acme", "store_id": store, "reason": "r", "tracking_id": service, "dry_run": dry_run});
        let dry = world.post_json(&token, &path, &asked("s1", true)).await.json();
        assert_eq!((&dry["labels"], &dry["would_run_on"]), (&json!(labels), &json!(service)));
        assert_eq!(dry["stores"], json!([{"store_id": "s1", "labels": labels}]));
        assert_eq!(world.post_json(&token, &path, &asked("s1", false)).await.status, StatusCode::ACCEPTED);
        let other = world.post_json(&token, &path, &asked("s2", false)).await;
        assert_eq!((other.status, other.problem().1), (StatusCode::CONFLICT, "store_id".to_owned()));
        let unknown = world.post_json(&token, &path, &asked("nowhere", true)).await;
        assert_eq!((unknown.status, unknown.problem().1), (StatusCode::NOT_FOUND, "store_id".to_owned()));
    }
}

#[tokio::test]
async fn a_store_an_access_point_and_a_label_are_exported_again() {
    let world = World::new();
    let token = world.token();
    for (name, field, value, labels, allowance) in [
        ("store-reexport", "store_id", "s1", 1, 3_600),
        ("access-point-reexport", "access_point_id", "ap-1", 3, 3_600),
        ("label-reexport", "label_id", "E1", 1, 0),
    ] {
        let path = format!("/v1/triggers/{name}");
        let asked = |value: &str, dry_run: bool| {
            let asked =
                json!({"tenant_id": "acme", "store_id": "s1", "reason": "r", "tracking_id": name, "dry_run": dry_run});
            with(asked, field, json!(value))
        };
        let dry = world.post_json(&token, &path, &asked(value, true)).await.json();
        assert_eq!((&dry["labels"], &dry["would_run_on"]), (&json!(labels), &json!("hardware-exporter")), "{name}");
        let unknown = world.post_json(&token, &path, &asked("nothing", true)).await;
        assert_eq!((unknown.status, unknown.problem().1), (StatusCode::NOT_FOUND, field.to_owned()), "{name}");
        assert_eq!(world.post_json(&token, &path, &asked(value, false)).await.status, StatusCode::ACCEPTED, "{name}");
        assert_eq!(world.post_json(&token, &path, &asked(value, false)).await.json()["replayed"], true, "{name}");
        let trigger: domain::Trigger = name.parse().unwrap();
        assert_eq!(trigger.bulk_allowance_ms(), allowance * 1_000, "{name}");
    }
}

fn touch(records: &[(&str, &str)], dry_run: bool) -> Value {
    let records: Vec<Value> =
        records.iter().map(|(dto_type, dto_id)| json!({"dto_type": dto_type, "dto_id": dto_id})).collect();
    json!({"records": records, "reason": "again", "tracking_id": "T-1", "dry_run": dry_run})
}

/// Types and URNs.
type Records = Vec<(&'static str, &'static str)>;

const TWO_TYPES: &[(&str, &str)] = &[
    ("eccmodel.v1", "t/acme/s/s1/eccmodels/M"),
    ("ecclink.v1", "t/acme/s/s1/ecclinks/E1"),
    ("ecclink.v1", "t/acme/s/s1/ecclinks/missing"),
];

#[tokio::test]
async fn a_touch_announces_what_exists_and_names_what_does_not() {
    let world = World::new();
    let counted = world.post_json(&world.token(), TOUCH, &touch(TWO_TYPES, true)).await;
    assert_eq!(counted.status, StatusCode::OK, "{}", counted.text());
    assert_eq!(
        counted.json(),
        json!({"tracking_id": "T-1", "dry_run": true, "touched": 0, "would_touch": 2,
               "missing": ["t/acme/s/s1/ecclinks/missing"]})
    );
    assert!(world.dtoflow.state().touched.is_empty());
    assert_eq!(world.audit_rows(), 0);

    let done = world.post_json(&world.token(), TOUCH, &touch(TWO_TYPES, false)).await;
    assert_eq!(
        done.json(),
        json!({"tracking_id": "T-1", "dry_run": false, "touched": 2, "missing": ["t/acme/s/s1/ecclinks/missing"]})
    );
    assert_eq!(world.dtoflow.state().touched.len(), 2);
    let audit = world.cqs.state().audit.clone();
    let [row] = audit.as_slice() else { panic!("one row, not {audit:?}") };
    assert_eq!((row.outcome(), row.action.as_str()), (AuditOutcome::Accepted, "touch"));
    assert_eq!((row.tenant_id.as_str(), row.operator_subject.as_str()), ("acme", "ada@acme.example"));
}

#[tokio::test]
async fn a_touch_that_fails_half_way_says_so_and_leaves_one_row() {
    let world = World::new();
    world.dtoflow.state().touch_calls_left = Some(1);
    let answer = world.post_json(&world.token(), TOUCH, &touch(TWO_TYPES, false)).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    let touched = world.dtoflow.state().touched.len();
    assert!(answer.json()["detail"].as_str().unwrap().contains(&format!("{touched} records were touched before")));
    assert_eq!(world.audit_rows(), 1);
}

#[tokio::test]
async fn refused_touches_name_the_record_and_leave_one_row_each() {
    let world = World::new();
    let many: Records = vec![("eccmodel.v1", "t/acme/s/s1/eccmodels/M"); 1_001];
    let cases: Vec<(Records, StatusCode, &str)> = vec![
        (vec![], StatusCode::BAD_REQUEST, "records"),
        (many, StatusCode::BAD_REQUEST, "records"),
        (vec![("nothing.v1", "t/acme/esltypes/X")], StatusCode::BAD_REQUEST, "records[0].dto_type"),
        (vec![("eccmodel.v1", "t/acme/s/s1")], StatusCode::BAD_REQUEST, "records[0].dto_id"),
        (vec![("eccmodel.v1", "t/acme/s/s1/ecclinks/E1")], StatusCode::BAD_REQUEST, "records[0].dto_id"),
        (vec![TWO_TYPES[0], TWO_TYPES[0]], StatusCode::BAD_REQUEST, "records[1].dto_id"),
        (vec![TWO_TYPES[0], ("eccmodel.v1", "t/rival/s/s1/eccmodels/M")], StatusCode::NOT_FOUND, "records[1].dto_id"),
        (vec![("eccmodel.v1", "t/rival/s/s1/eccmodels/M")], StatusCode::NOT_FOUND, "records[0].dto_id"),
    ];
    for (records, status, field) in cases {
        let before = world.audit_rows();
        let answer = world.post_json(&world.token(), TOUCH, &touch(&records, false)).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.problem().1, field);
        assert_eq!(world.audit_rows() - before, 1, "{field}");
    }
    let both = world.token_with(|claims| claims.tenants.push("rival".parse().unwrap()));
    let mixed = touch(&[TWO_TYPES[0], ("eccmodel.v1", "t/rival/s/s1/eccmodels/M")], false);
    let answer = world.post_json(&both, TOUCH, &mixed).await;
    assert_eq!((answer.status, answer.problem().1.as_str()), (StatusCode::BAD_REQUEST, "records[1].dto_id"));
    assert!(world.dtoflow.state().touched.is_empty());
}

/// The bounds of a touch agree: its body holds as many records as it may name, of the longest names.
#[tokio::test]
async fn a_touch_of_the_most_and_longest_records_fits() {
    let world = World::new();
    let (id, store) = ("x".repeat(59), "s".repeat(64));
    let urns: Vec<String> =
        (0..1_000).map(|number| format!("t/acme/s/{store}/studioeslimages/{id}-{number:04}")).collect();
    let records: Vec<Value> = urns.iter().map(|urn| json!({"dto_type": "studioeslimage.v1", "dto_id": urn})).collect();
    let mut body =
        json!({"records": records, "reason": "ä".repeat(500), "tracking_id": "t".repeat(128), "dry_run": true});
    let answer = world.post_json(&world.token(), TOUCH, &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.json()["missing"].as_array().unwrap().len(), 1_000);
    body["reason"] = json!("x".repeat(384 * 1024));
    assert_eq!(world.post_json(&world.token(), TOUCH, &body).await.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_touch_under_an_operations_id_conflicts() {
    let world = World::new();
    let denied = Refusal::new(ErrorCode::PermissionDenied, "belongs to an operation").at("tracking_id");
    world.dtoflow.state().fault = Some(Fault::Refusal(denied));
    let answer = world.post_json(&world.token(), TOUCH, &touch(TWO_TYPES, false)).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.problem(), ("ALREADY_EXISTS".to_owned(), "tracking_id".to_owned()));
    assert_eq!(world.audit_rows(), 1);
}
