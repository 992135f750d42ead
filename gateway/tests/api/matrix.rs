//! Every operation of the document × who asks × what for. Fails when an operation has no policy row.
//!
//! Who: nobody; a token that is over; one for another audience; one without the scope; one that may only read; the right
//! one; one of another tenant; one of another store. What for: one's own, another tenant's, one that is unknown there, one that is unknown, one
//! that was deleted.

use http::StatusCode;
use serde_json::{Value, json};

use crate::harness::{Answer, World};
use domain::OperatorScope;

/// What an operation needs and how to ask for it.
struct Policy {
    id: &'static str,
    /// None: any valid token. Public operations have no row of tokens at all.
    scope: Option<OperatorScope>,
    public: bool,
    /// Asks for something of the named tenant; lists over the whole token ignore it.
    ask: fn(tenant: &str) -> (String, Option<Value>),
    /// Whether the tenant stands in the request.
    names_tenant: bool,
}

fn policies() -> Vec<Policy> {
    let mut all = reading_policies();
    all.extend(trigger_policies());
    all
}

/// What shows and controls.
fn reading_policies() -> Vec<Policy> {
    use OperatorScope as S;
    let read = |id, scope, ask| Policy { id, scope: Some(scope), public: false, ask, names_tenant: true };
    let over_token = |id, scope, ask| Policy { id, scope, public: false, ask, names_tenant: false };
    let public = |id, ask| Policy { id, scope: None, public: true, ask, names_tenant: false };
    vec![
        public("get_health", |_| ("/healthz".to_owned(), None)),
        public("get_readiness", |_| ("/readyz".to_owned(), None)),
        public("get_metrics", |_| ("/metrics".to_owned(), None)),
        over_token("get_me", None, |_| ("/v1/me".to_owned(), None)),
        over_token("list_triggers", None, |_| ("/v1/triggers".to_owned(), None)),
        over_token("list_tenants", Some(S::LabelsRead), |_| ("/v1/tenants".to_owned(), None)),
        over_token("list_operations", Some(S::OperationsRead), |_| ("/v1/operations".to_owned(), None)),
        over_token("list_audit", Some(S::AuditRead), |_| ("/v1/audit".to_owned(), None)),
        read("list_tenant_operations", S::OperationsRead, |t| (format!("/v1/tenants/{t}/operations"), None)),
        read("get_operation", S::OperationsRead, |t| (format!("/v1/tenants/{t}/operations/op-1"), None)),
        read("get_operation_events", S::OperationsRead, |t| (format!("/v1/tenants/{t}/operations/op-2/events"), None)),
        read("pause_operation", S::OperationsControl, |t| control(t, "POST", "/pause")),
        read("resume_operation", S::OperationsControl, |t| control(t, "POST", "/resume")),
        read("cancel_operation", S::OperationsControl, |t| control(t, "POST", "/cancel")),
        read("set_operation_limits", S::OperationsControl, |t| control(t, "PATCH", "")),
        read("decline_operation", S::OperationsApprove, |t| control(t, "POST", "/decline")),
        read("approve_operation", S::OperationsApprove, |t| {
            let (path, _) = control(t, "POST", "/approve");
            (path, Some(json!({"reason": "r", "labels": 10})))
        }),
        read("list_failures", S::OperationsRead, |t| (format!("/v1/tenants/{t}/operations/op-1/failures"), None)),
        read("retry_failures", S::OperationsControl, |t| {
            let (path, _) = control(t, "POST", "/retry-failed");
            (path, Some(json!({"reason": "r", "tracking_id": "matrix"})))
        }),
        over_token("get_status", Some(S::OperationsRead), |_| ("/v1/status".to_owned(), None)),
        over_token("get_brake", Some(S::OperationsRead), |_| ("/v1/brake".to_owned(), None)),
        over_token("set_brake", Some(S::OperationsBrake), |_| {
            ("PUT /v1/brake".to_owned(), Some(json!({"on": true, "reason": "r"})))
        }),
        read("list_stores", S::LabelsRead, |t| (format!("/v1/tenants/{t}/stores"), None)),
        read("list_designs", S::LabelsRead, |t| (format!("/v1/tenants/{t}/designs"), None)),
        read("list_models", S::LabelsRead, |t| (format!("/v1/tenants/{t}/stores/s1/models"), None)),
        read("list_access_points", S::LabelsRead, |t| (format!("/v1/tenants/{t}/stores/s1/access-points"), None)),
        read("list_labels", S::LabelsRead, |t| (format!("/v1/tenants/{t}/stores/s1/labels"), None)),
        read("get_label", S::LabelsRead, |t| (format!("/v1/tenants/{t}/stores/s1/labels/E1"), None)),
        read("list_label_history", S::LabelsRead, |t| (format!("/v1/tenants/{t}/stores/s1/labels/E1/history"), None)),
        read("get_label_image", S::LabelsRead, |t| (format!("/v1/tenants/{t}/stores/s1/labels/E1/image.png"), None)),
    ]
}

/// What starts something, or shows what it would do.
fn trigger_policies() -> Vec<Policy> {
    use OperatorScope as S;
    let read = |id, scope, ask| Policy { id, scope: Some(scope), public: false, ask, names_tenant: true };
    vec![
        read("trigger_model_refresh", S::TriggerModelRefresh, |t| {
            let body = json!({
                "tenant_id": t, "store_id": "s1", "model_id": "M", "reason": "r", "tracking_id": "matrix", "dry_run": false
            });
            ("/v1/triggers/model-refresh".to_owned(), Some(body))
        }),
        read("trigger_design_refresh", S::TriggerDesignRefresh, |t| {
            let body = json!({
                "tenant_id": t, "design_id": "D", "reason": "r", "tracking_id": "matrix", "dry_run": false
            });
            ("/v1/triggers/design-refresh".to_owned(), Some(body))
        }),
        read("trigger_ecc_store_rerender", S::TriggerEccStoreRerender, |t| {
            let body =
                json!({"tenant_id": t, "store_id": "s1", "reason": "r", "tracking_id": "matrix", "dry_run": false});
            ("/v1/triggers/ecc-store-rerender".to_owned(), Some(body))
        }),
        read("trigger_studio_store_rerender", S::TriggerStudioStoreRerender, |t| {
            let body =
                json!({"tenant_id": t, "store_id": "s1", "reason": "r", "tracking_id": "matrix", "dry_run": false});
            ("/v1/triggers/studio-store-rerender".to_owned(), Some(body))
        }),
        read("preview_model_refresh", S::TriggerModelRefresh, |t| {
            let body = json!({"tenant_id": t, "store_id": "s1", "model_id": "M"});
            ("/v1/triggers/model-refresh/preview".to_owned(), Some(body))
        }),
        read("preview_design_refresh", S::TriggerDesignRefresh, |t| {
            let body = json!({"tenant_id": t, "design_id": "D"});
            ("/v1/triggers/design-refresh/preview".to_owned(), Some(body))
        }),
        read("trigger_store_reexport", S::TriggerStoreReexport, |t| {
            let body =
                json!({"tenant_id": t, "store_id": "s1", "reason": "r", "tracking_id": "matrix", "dry_run": false});
            ("/v1/triggers/store-reexport".to_owned(), Some(body))
        }),
        read("trigger_access_point_reexport", S::TriggerAccessPointReexport, |t| {
            let body = json!({
                "tenant_id": t, "store_id": "s1", "access_point_id": "ap-1", "reason": "r", "tracking_id": "matrix",
                "dry_run": false
            });
            ("/v1/triggers/access-point-reexport".to_owned(), Some(body))
        }),
        read("trigger_label_reexport", S::TriggerLabelReexport, |t| {
            let body = json!({
                "tenant_id": t, "store_id": "s1", "label_id": "E1", "reason": "r", "tracking_id": "matrix",
                "dry_run": false
            });
            ("/v1/triggers/label-reexport".to_owned(), Some(body))
        }),
        read("touch_records", S::TriggerTouch, |t| {
            let record = json!({"dto_type": "eccmodel.v1", "dto_id": format!("t/{t}/s/s1/eccmodels/M")});
            let body = json!({"records": [record], "reason": "r", "tracking_id": "matrix", "dry_run": false});
            ("/v1/triggers/touch".to_owned(), Some(body))
        }),
    ]
}

/// A control action on op-1 of a tenant.
fn control(tenant: &str, method: &str, action: &str) -> (String, Option<Value>) {
    (format!("{method} /v1/tenants/{tenant}/operations/op-1{action}"), Some(json!({"reason": "r"})))
}

async fn ask(world: &World, token: Option<&str>, (path, body): (String, Option<Value>)) -> Answer {
    use axum::body::Body;
    // A path may say its method, where it is neither of the usual two.
    let (method, path) = match path.split_once(' ') {
        Some((method, path)) => (method.to_owned(), path.to_owned()),
        None => (if body.is_some() { "POST" } else { "GET" }.to_owned(), path),
    };
    let builder = http::Request::builder().method(method.as_str()).uri(path);
    let builder = builder.header("content-type", "application/json");
    let builder = match token {
        Some(token) => builder.header("authorization", format!("Bearer {token}")),
        None => builder,
    };
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    world.raw(builder.body(body).unwrap()).await
}

/// operationId → the scopes its security requirement names; none for public ones.
fn documented() -> Vec<(String, Option<Vec<String>>)> {
    let document: Value = serde_json::from_str(&gateway::openapi_json()).unwrap();
    let mut all = Vec::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let security = operation["security"][0].as_object().unwrap();
            let scopes = security.get("operator").map(|scopes| {
                scopes.as_array().unwrap().iter().map(|scope| scope.as_str().unwrap().to_owned()).collect()
            });
            all.push((operation["operationId"].as_str().unwrap().to_owned(), scopes));
        }
    }
    all
}

#[test]
fn every_operation_has_a_policy_row_and_documents_it() {
    let policies = policies();
    let documented = documented();
    for (id, scopes) in &documented {
        let policy = policies.iter().find(|policy| policy.id == id);
        let policy = policy.unwrap_or_else(|| panic!("{id} has no policy row: say who may call it"));
        let expected = (!policy.public).then(|| policy.scope.iter().map(ToString::to_string).collect::<Vec<String>>());
        assert_eq!(scopes, &expected, "{id}");
    }
    assert_eq!(documented.len(), policies.len(), "a policy row names no operation");
}

/// The same request about another object of the kind that it names below its tenant; none where it names a tenant only.
fn about((path, body): &(String, Option<Value>), id: &str) -> Option<(String, Option<Value>)> {
    if let Some(mut body) = body.clone() {
        let named = ["label_id", "access_point_id", "model_id", "design_id", "store_id"];
        if let Some(field) = named.into_iter().find(|field| body[*field].is_string()) {
            body[field] = json!(id);
            return Some((path.clone(), Some(body)));
        }
        if let Some((parent, _)) = body["records"][0]["dto_id"].as_str().and_then(|urn| urn.rsplit_once('/')) {
            body["records"][0]["dto_id"] = json!(format!("{parent}/{id}"));
            return Some((path.clone(), Some(body)));
        }
    }
    let segments = ["/labels/", "/operations/", "/stores/"];
    let (before, rest) = segments.into_iter().find_map(|segment| {
        let at = path.find(segment)? + segment.len();
        Some((path.get(..at)?, path.get(at..)?))
    })?;
    let below = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default();
    Some((format!("{before}{id}{below}"), body.clone()))
}

/// What a token can do that may only look.
const READING: &[OperatorScope] = &[OperatorScope::OperationsRead, OperatorScope::LabelsRead, OperatorScope::AuditRead];

/// What the world would remember of anything that was done.
fn done(world: &World) -> (usize, usize, usize, bool) {
    let cqs = world.cqs.state();
    let (controlled, brake) = (cqs.controlled.len(), cqs.brake.on.is_some());
    drop(cqs);
    let (seen, touched) = (world.triggers.state().seen.len(), world.dtoflow.state().touched.len());
    (controlled, seen, touched, brake)
}

#[tokio::test]
async fn the_matrix_holds() {
    for policy in policies() {
        let world = World::new();
        if policy.public {
            let answer = ask(&world, None, (policy.ask)("acme")).await;
            assert!(answer.status.is_success(), "{} without a token", policy.id);
            continue;
        }
        unauthenticated_callers(&world, &policy).await;
        callers_without_the_scope(&world, &policy).await;
        if policy.names_tenant {
            objects(&world, &policy).await;
            tokens_of_another_store(&world, &policy).await;
        } else {
            let elsewhere = world.token_with(|claims| claims.tenants = vec!["nobody".parse().unwrap()]);
            let answer = ask(&world, Some(&elsewhere), (policy.ask)("acme")).await;
            assert!(answer.status.is_success(), "{} for a tenant without anything", policy.id);
            assert!(!answer.text().contains("acme\""), "{} shows another tenant: {}", policy.id, answer.text());
        }
        let only_that: Vec<OperatorScope> = policy.scope.into_iter().collect();
        let least = world.token_with(|claims| claims.scopes = only_that);
        let answer = ask(&world, Some(&least), (policy.ask)("acme")).await;
        assert!(answer.status.is_success(), "{} with the right token: {} {}", policy.id, answer.status, answer.text());
    }
}

async fn unauthenticated_callers(world: &World, policy: &Policy) {
    let id = policy.id;
    let nobody = ask(world, None, (policy.ask)("acme")).await;
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED, "{id} without a token");
    assert_eq!(nobody.headers["www-authenticate"], "Bearer");
    let expired = world.token_with(|claims| claims.lifetime_s = -3_600);
    for (what, token) in [("an expired token", expired), ("a token for another audience", world.token_for("elsewhere"))]
    {
        let answer = ask(world, Some(&token), (policy.ask)("acme")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{id} with {what}");
        assert_eq!(answer.bytes, nobody.bytes, "{id} with {what}: one fixed body for every 401");
    }
}

async fn callers_without_the_scope(world: &World, policy: &Policy) {
    let (id, before) = (policy.id, done(world));
    let Some(scope) = policy.scope else { return };
    let without = world.token_with(|claims| claims.scopes.retain(|known| *known != scope));
    let reading = world.token_with(|claims| claims.scopes = READING.to_vec());
    let tokens = [("every other scope", without), ("scopes that read", reading)];
    for (what, token) in
        tokens.into_iter().filter(|(what, _)| *what == "every other scope" || !READING.contains(&scope))
    {
        let answer = ask(world, Some(&token), (policy.ask)("acme")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{id} with {what}");
        assert_eq!(answer.problem().0, "PERMISSION_DENIED");
        assert!(answer.json()["detail"].as_str().unwrap().contains(scope.as_str()), "{id} does not name {scope}");
    }
    assert_eq!(done(world), before, "{id} did something for a token that may not");
}

async fn objects(world: &World, policy: &Policy) {
    let (id, token) = (policy.id, world.token());
    let nowhere = ask(world, Some(&token), (policy.ask)("nobody")).await;
    let mut others = vec![("another tenant's", (policy.ask)("rival"))];
    // What is one's own and not there is told of a touch, whose answer counts what is.
    let told = id == "touch_records";
    if let Some(unknown) = about(&(policy.ask)("acme"), "nothing") {
        others.push(("one unknown at another tenant", about(&(policy.ask)("rival"), "nothing").unwrap()));
        if told {
            missing_records_are_told_alike(world, unknown).await;
        } else {
            others.push(("an unknown", unknown));
            others.push(("a deleted", about(&(policy.ask)("acme"), "gone").unwrap()));
        }
    } else {
        let answer = ask(world, Some(&token), (policy.ask)("acme")).await;
        assert!(!answer.text().contains("gone"), "{id} lists what was deleted: {}", answer.text());
    }
    for (what, request) in others {
        let answer = ask(world, Some(&token), request).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{id}, {what}: {}", answer.text());
        assert_eq!(answer.text(), nowhere.text(), "{id}: {what} and one of an unknown tenant must look the same");
        assert_eq!(names(&answer), names(&nowhere), "{id}, {what}: the headers");
    }
}

/// Lists of a tenant: for a token of some stores they are those stores'.
const LISTS: &[&str] = &["list_stores", "list_tenant_operations"];

/// Whatever it may do, and to whatever of the tenant: a token of another store finds nothing there.
async fn tokens_of_another_store(world: &World, policy: &Policy) {
    let (id, before) = (policy.id, done(world));
    let elsewhere = world.token_with(|claims| {
        claims.stores = Some(vec![("acme".parse().unwrap(), "s9".parse().unwrap())]);
    });
    let answer = ask(world, Some(&elsewhere), (policy.ask)("acme")).await;
    if LISTS.contains(&id) {
        assert!(answer.status.is_success(), "{id} of no store: {}", answer.text());
        let shown = answer.text();
        assert!(!["\"s1\"", "\"s2\"", "op-1", "op-2"].iter().any(|other| shown.contains(other)), "{id} shows {shown}");
    } else {
        let nowhere = ask(world, Some(&elsewhere), (policy.ask)("nobody")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{id} of another store: {}", answer.text());
        assert_eq!(
            answer.text(),
            nowhere.text(),
            "{id}: another store's and one of an unknown tenant must look the same"
        );
        assert_eq!(names(&answer), names(&nowhere), "{id} of another store: the headers");
    }
    assert_eq!(done(world), before, "{id} did something at another store");
}

async fn missing_records_are_told_alike(world: &World, unknown: (String, Option<Value>)) {
    let deleted = about(&unknown, "gone").unwrap();
    let token = world.token();
    let (unknown, deleted) = (ask(world, Some(&token), unknown).await, ask(world, Some(&token), deleted).await);
    assert!(unknown.status.is_success(), "{}", unknown.text());
    assert_eq!(unknown.text().replace("nothing", "gone"), deleted.text());
}

/// Which headers an answer has; some values are of the moment.
fn names(answer: &Answer) -> Vec<String> {
    answer.headers.keys().map(ToString::to_string).collect()
}

/// A token narrowed to store s1: what lies in s2 or at the tenant's level does not exist for it.
#[tokio::test]
async fn a_token_for_one_store_reaches_no_other() {
    let world = World::new();
    let token = world.store_token();
    for path in [
        "/v1/tenants/acme/stores/s2/models",
        "/v1/tenants/acme/stores/s2/access-points",
        "/v1/tenants/acme/stores/s2/labels",
        "/v1/tenants/acme/stores/s2/labels/F1",
        "/v1/tenants/acme/stores/s2/labels/F1/image.png",
        "/v1/tenants/acme/operations/op-2",
        "/v1/tenants/acme/designs",
        "/v1/audit?tenant=acme",
    ] {
        let other = world.get(&token, path).await;
        assert_eq!(other.status, StatusCode::NOT_FOUND, "{path}");
        let unknown = world.get(&token, "/v1/tenants/acme/stores/nowhere/labels").await;
        assert_eq!(other.bytes, unknown.bytes, "{path}");
    }
    let mut asked = json!({"tenant_id": "acme", "design_id": "D", "reason": "r", "tracking_id": "t", "dry_run": true});
    let tenants = world.post_json(&token, "/v1/triggers/design-refresh", &asked).await;
    asked["design_id"] = json!("nothing");
    let unknown = world.post_json(&world.token(), "/v1/triggers/design-refresh", &asked).await;
    assert_eq!(tenants.status, StatusCode::NOT_FOUND);
    assert_eq!(tenants.bytes, unknown.bytes, "a design is the whole tenant's");
    for (store, status) in [("s1", StatusCode::OK), ("s2", StatusCode::NOT_FOUND)] {
        let asked = json!({"tenant_id": "acme", "store_id": store, "reason": "r", "tracking_id": "t", "dry_run": true});
        for path in ["/v1/triggers/ecc-store-rerender", "/v1/triggers/studio-store-rerender"] {
            assert_eq!(world.post_json(&token, path, &asked).await.status, status, "{path} of {store}");
        }
    }
    let touch = |urn: &str, dto_type: &str| json!({"records": [{"dto_type": dto_type, "dto_id": urn}], "reason": "r", "tracking_id": "t", "dry_run": true});
    for (urn, dto_type, status) in [
        ("t/acme/s/s1/eccmodels/M", "eccmodel.v1", StatusCode::OK),
        ("t/acme/s/s2/eccmodels/M", "eccmodel.v1", StatusCode::NOT_FOUND),
        ("t/acme/esltypes/X", "esltype.v1", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(world.post_json(&token, "/v1/triggers/touch", &touch(urn, dto_type)).await.status, status, "{urn}");
    }
    let stores = world.get(&token, "/v1/tenants/acme/stores").await.json();
    assert_eq!(stores["stores"], json!([{"store_id": "s1", "labels": 3}]));
    assert_eq!(world.get(&token, "/v1/tenants").await.json()["tenants"][0]["labels"], 3);
    let operations = world.get(&token, "/v1/operations").await.json();
    assert_eq!(operations["operations"].as_array().unwrap().len(), 1);
    assert_eq!(operations["operations"][0]["tracking_id"], "op-1");
}
