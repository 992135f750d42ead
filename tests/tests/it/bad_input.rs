//! Bad input through the REST API: a 4xx problem that names the field, nothing enqueued, one audit entry once the
//! operator is known.

use domain::{DtoType, OperatorScope, ServiceName};
use proto::dtoflow::v1::{PutItem, PutManyRequest};
use serde_json::{Value, json};
use tests::{
    data::Shelf,
    grpc::refusal,
    rest::Rest,
    topology::{OPERATION_LIMIT, Topology, stage},
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

const TENANT: &str = "acme";
const TOUCH: &str = "/v1/triggers/touch";

/// One thing done wrong, and what must be said about it.
struct Case {
    name: &'static str,
    body: Vec<u8>,
    status: u16,
    code: &'static str,
    field: &'static str,
}

fn case(name: &'static str, body: &Value, (status, code, field): (u16, &'static str, &'static str)) -> Case {
    Case { name, body: body.to_string().into_bytes(), status, code, field }
}

/// `base` with one field replaced, or left out where `value` is null.
fn with(base: &Value, field: &str, value: Value) -> Value {
    let mut body = base.clone();
    let object = body.as_object_mut().expect("an object");
    if value.is_null() {
        object.remove(field);
    } else {
        object.insert(field.to_owned(), value);
    }
    body
}

const fn wrong(field: &'static str) -> (u16, &'static str, &'static str) {
    (400, "INVALID_ARGUMENT", field)
}

fn refresh_cases(base: &Value) -> Vec<Case> {
    let unknown = (404, "NOT_FOUND", "model_id");
    let mut cases = vec![
        case("unknown field", &with(base, "urgent", json!(true)), wrong("urgent")),
        case("missing reason", &with(base, "reason", Value::Null), wrong("reason")),
        case("empty reason", &with(base, "reason", json!("")), wrong("reason")),
        case("blank reason", &with(base, "reason", json!("   ")), wrong("reason")),
        case("control character", &with(base, "reason", json!("a\nb")), wrong("reason")),
        case("NUL", &with(base, "reason", json!("a\u{0}b")), wrong("reason")),
        case("right-to-left override", &with(base, "reason", json!("a\u{202e}b")), wrong("reason")),
        case("reason too long", &with(base, "reason", json!("x".repeat(501))), wrong("reason")),
        case("reason of another type", &with(base, "reason", json!(7)), wrong("reason")),
        case("missing dry_run", &with(base, "dry_run", Value::Null), wrong("dry_run")),
        case("dry_run as text", &with(base, "dry_run", json!("false")), wrong("dry_run")),
        case("missing tracking id", &with(base, "tracking_id", Value::Null), wrong("tracking_id")),
        case("empty tracking id", &with(base, "tracking_id", json!("")), wrong("tracking_id")),
        case("tracking id with a space", &with(base, "tracking_id", json!("a b")), wrong("tracking_id")),
        case("tracking id with an umlaut", &with(base, "tracking_id", json!("ä")), wrong("tracking_id")),
        case("tracking id too long", &with(base, "tracking_id", json!("x".repeat(129))), wrong("tracking_id")),
        case("tenant with a slash", &with(base, "tenant_id", json!("acme/s/x")), wrong("tenant_id")),
        case("empty tenant", &with(base, "tenant_id", json!("")), wrong("tenant_id")),
        case("store that climbs", &with(base, "store_id", json!("..")), wrong("store_id")),
        case("store with a percent sign", &with(base, "store_id", json!("a%2fb")), wrong("store_id")),
        case("model with a slash", &with(base, "model_id", json!("alpha/x")), wrong("model_id")),
        case("model with a line break", &with(base, "model_id", json!("alpha\n")), wrong("model_id")),
        case("missing model", &with(base, "model_id", Value::Null), wrong("model_id")),
        case("sla that is no time", &with(base, "sla_timestamp", json!("tomorrow")), wrong("sla_timestamp")),
        case("unknown model", &with(base, "model_id", json!("nobody")), unknown),
        case("unknown store", &with(base, "store_id", json!("nowhere")), unknown),
        case("other tenant", &with(base, "tenant_id", json!("other")), unknown),
        case("array", &json!([base]), wrong("body")),
    ];
    let raw = |name, text: &str, expected: (u16, &'static str, &'static str)| Case {
        name,
        body: text.as_bytes().to_vec(),
        status: expected.0,
        code: expected.1,
        field: expected.2,
    };
    cases.push(raw("not JSON", "{", wrong("body")));
    cases.push(raw("nothing", "", wrong("body")));
    cases.push(raw("twice", &base.to_string().replacen('{', "{\"dry_run\":true,", 1), wrong("dry_run")));
    cases.push(raw("something after it", &format!("{base} {{}}"), wrong("body")));
    let long = with(base, "reason", json!("x".repeat(64 * 1024)));
    cases.push(case("body over 64 KiB", &long, (413, "PAYLOAD_TOO_LARGE", "body")));
    cases
}

fn touch_cases(shelf: &Shelf) -> Vec<Case> {
    let record = |dto_type: &str, dto_id: &str| json!({"dto_type": dto_type, "dto_id": dto_id});
    let item = shelf.urn(DtoType::StoreItemValues, "alpha-0000");
    let base = json!({
        "records": [record("storeitemvalues.v1", &item)],
        "reason": "CHG-1", "tracking_id": "bad-touch", "dry_run": false,
    });
    let records = |list: Vec<Value>| with(&base, "records", Value::Array(list));
    let many: Vec<Value> = (0..1_001).map(|n| record("esltype.v1", &format!("t/acme/esltypes/{n}"))).collect();
    let foreign = "t/other/s/store-1/items/x";
    vec![
        case("no records", &records(Vec::new()), wrong("records")),
        case("1,001 records", &records(many), wrong("records")),
        case("unknown type", &records(vec![record("nothing.v1", &item)]), wrong("records[0].dto_type")),
        case("URN of another type", &records(vec![record("ecclink.v1", &item)]), wrong("records[0].dto_id")),
        case("no URN", &records(vec![record("ecclink.v1", "alpha")]), wrong("records[0].dto_id")),
        case("a parent", &records(vec![record("ecclink.v1", "t/acme/s/store-1")]), wrong("records[0].dto_id")),
        case(
            "other tenant",
            &records(vec![record("storeitemvalues.v1", foreign)]),
            (404, "NOT_FOUND", "records[0].dto_id"),
        ),
        case(
            "a tenant's own and another's",
            &records(vec![record("storeitemvalues.v1", &item), record("storeitemvalues.v1", foreign)]),
            (404, "NOT_FOUND", "records[1].dto_id"),
        ),
        case("missing reason", &with(&base, "reason", Value::Null), wrong("reason")),
        case("missing dry_run", &with(&base, "dry_run", Value::Null), wrong("dry_run")),
        case("missing tracking id", &with(&base, "tracking_id", Value::Null), wrong("tracking_id")),
        case("unknown field", &with(&base, "urn", json!("x")), wrong("urn")),
    ]
}

async fn refuse(topology: &Topology, operator: &Rest, path: &str, case: Case) {
    let mut tables = topology.tables().await;
    let before = (tables.notifications_ever().await, tables.operations().await, tables.audit_entries().await);
    let answer = operator.post_bytes(path, case.body).await;
    assert_eq!(answer.status, case.status, "{}: {}", case.name, answer.text());
    let problem = answer.problem(case.status);
    assert_eq!((problem.code.as_str(), problem.field.as_str()), (case.code, case.field), "{}: {problem:?}", case.name);
    assert!(!problem.detail.is_empty(), "{}: it says why", case.name);
    let mut tables = topology.tables().await;
    let after = (tables.notifications_ever().await, tables.operations().await);
    assert_eq!(after, (before.0, before.1), "{}: nothing is enqueued", case.name);
    let audited = tables.audit_after(before.2).await;
    let [entry] = audited.as_slice() else { panic!("{}: one audit entry, not {audited:#?}", case.name) };
    assert_eq!((entry.outcome.as_str(), entry.error_code.as_str()), ("refused", case.code), "{}", case.name);
    assert_eq!(entry.operator_subject, "operator@test", "{}", case.name);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_by_field_and_audited_once() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 2)]).await;
    Shelf::write(&topology.doors, "other", &[("alpha", 1)]).await;
    topology.quiet().await;
    let operator = topology.operator(&[TENANT]);
    for case in refresh_cases(&refresh(&shelf, "alpha", "bad-1", false)) {
        refuse(&topology, &operator, MODEL_REFRESH, case).await;
    }
    for case in touch_cases(&shelf) {
        refuse(&topology, &operator, TOUCH, case).await;
    }
    // A dry run is as strict.
    for case in refresh_cases(&refresh(&shelf, "alpha", "bad-2", true)) {
        refuse(&topology, &operator, MODEL_REFRESH, case).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_model_and_an_unknown_one_give_the_same_answer() {
    let topology = Topology::in_process().await;
    let foreign = Shelf::write(&topology.doors, "other", &[("alpha", 1)]).await;
    let operator = topology.operator(&[TENANT]);
    let there = operator.post(MODEL_REFRESH, &refresh(&foreign, "alpha", "same-1", true)).await;
    let nowhere = operator.post(MODEL_REFRESH, &refresh(&foreign, "nobody", "same-1", true)).await;
    assert_eq!((there.status, there.text()), (nowhere.status, nowhere.text()));
    for path in
        ["/v1/tenants/other/stores", "/v1/tenants/other/operations/x", "/v1/tenants/other/stores/store-1/models"]
    {
        let foreign = operator.get(path).await;
        let unknown = operator.get(&path.replace("other", "nobody")).await;
        assert_eq!(foreign.status, 404, "{path}");
        assert_eq!((foreign.status, foreign.text()), (unknown.status, unknown.text()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_decide_before_bodies_do() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 2)]).await;
    topology.quiet().await;
    let body = refresh(&shelf, "alpha", "token-1", false);
    let audited = topology.tables().await.audit_entries().await;
    let mut expired = topology.claims(&[TENANT], OperatorScope::ALL);
    expired.issued_at = expired.issued_at.plus_ms(-7_200_000);
    let good = topology.operator(&[TENANT]);
    let cut = good.token().expect("a token").rsplit_once('.').map(|(head, _)| format!("{head}.AAAA"));
    for client in [topology.anonymous(), topology.operator_as(&expired), good.with_token(cut.as_deref())] {
        let problem = client.post(MODEL_REFRESH, &body).await.problem(401);
        assert_eq!(problem.code, "UNAUTHENTICATED");
    }
    let service = topology.operator(&[]).with_token(Some("not.a.token"));
    assert_eq!(service.get("/v1/me").await.status, 401);
    assert_eq!(topology.tables().await.audit_entries().await, audited, "nobody is not written down");

    // A token without the scope is somebody: refused and written down.
    let reader = topology.operator_as(&topology.claims(&[TENANT], &[OperatorScope::LabelsRead]));
    let problem = reader.post(MODEL_REFRESH, &body).await.problem(403);
    assert_eq!(problem.code, "PERMISSION_DENIED");
    let new = topology.tables().await.audit_after(audited).await;
    let [entry] = new.as_slice() else { panic!("one audit entry, not {new:#?}") };
    assert_eq!((entry.error_code.as_str(), entry.tracking_id.as_str()), ("PERMISSION_DENIED", "token-1"));

    // Not declared as JSON: the operator is known, so it is written down too.
    let answer = reqwest_text(good.base(), good.token().expect("a token"), &body).await;
    assert_eq!(answer, 415);
    assert!(topology.operation(TENANT, "token-1").await.is_none());
}

async fn reqwest_text(base: &str, token: &str, body: &Value) -> u16 {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let request = client.post(format!("{base}{MODEL_REFRESH}")).bearer_auth(token).header("content-type", "text/plain");
    request.body(body.to_string()).send().await.expect("an answer").status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_be_parsed_fails_its_labels_and_no_others() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 5), ("beta", 5)]).await;
    topology.quiet().await;
    let broken = shelf.model("alpha", "{\"ecc\": 1, \"variants\"".to_owned());
    let beta = shelf.model("beta", tests::data::layout("beta", 2));
    shelf.import(&topology.doors, vec![broken, beta]).await;
    topology.quiet().await;
    let operator = topology.operator(&[TENANT]);
    operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "broken-1", false)).await.json(202);
    operator.post(MODEL_REFRESH, &refresh(&shelf, "beta", "fine-1", false)).await.json(202);
    let broken = topology.finished(TENANT, "broken-1", OPERATION_LIMIT).await;
    assert_eq!(broken.state().as_str_name(), "OPERATION_STATE_FINISHED_WITH_FAILURES");
    let ecc = stage(&broken, ServiceName::EccImageRender);
    assert_eq!((ecc.enqueued, ecc.failed, ecc.done), (5, 5, 0), "{broken:#?}");
    let [group] = broken.failures.as_slice() else { panic!("one cause, not {:#?}", broken.failures) };
    assert_eq!(group.count, 5);
    assert!(group.cause.contains("layout cannot be read"), "the cause is the parser's: {}", group.cause);
    let view = operator.get_json(&format!("/v1/tenants/{TENANT}/operations/broken-1")).await;
    assert_eq!(view["state"], "FINISHED_WITH_FAILURES", "{view}");
    assert!(view.to_string().contains("layout cannot be read"), "{view}");

    let fine = topology.finished(TENANT, "fine-1", OPERATION_LIMIT).await;
    assert_eq!(fine.state().as_str_name(), "OPERATION_STATE_SUCCEEDED");
    let compared = topology.assert_pictures(Some(TENANT)).await;
    assert_eq!((compared.equal, compared.unrenderable), (5, 5));
    topology.assert_exact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_their_record_are_refused() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 1)]).await;
    topology.quiet().await;
    let notifications = topology.tables().await.notifications_ever().await;
    let before = topology.tables().await.records(None).await;
    let good = shelf.item("alpha-0000", "9.99");
    let put = |dto_type: DtoType, id: &str, payload: &[u8]| PutItem {
        dto_type: dto_type.to_string(),
        dto_id: shelf.urn(dto_type, id),
        payload: payload.to_vec().into(),
        ..PutItem::default()
    };
    let cases = [
        ("no message at all", put(DtoType::EccLink, "alpha-0000", &[0xff; 9])),
        ("cut short", put(DtoType::EccModel, "alpha", &[0x0a, 0x7f, b'x'])),
        ("without required fields", put(DtoType::EccLink, "alpha-0000", &[])),
        ("a text that is not UTF-8", put(DtoType::EccModel, "alpha", &[0x0a, 0x02, 0xc3, 0x28])),
    ];
    for (name, bad) in cases {
        let request = PutManyRequest { items: vec![good.clone(), bad], lease: None };
        let refused = refusal(topology.doors.dtoflow(ServiceName::RecordImport).put_many(request).await);
        assert!(refused.starts_with("INVALID_ARGUMENT items[1].payload"), "{name}: {refused}");
        assert_eq!(topology.tables().await.records(None).await, before, "{name}: nothing is written");
        assert_eq!(topology.tables().await.notifications_ever().await, notifications, "{name}: nothing is announced");
    }
}
