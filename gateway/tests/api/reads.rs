//! What operators read: labels, pictures, operations, audit, pages.

use axum::body::Body;
use domain::DtoType;
use http::{Request, StatusCode};
use proto::cqs::v1::{RecordFate, RecordFateState};
use serde_json::{Value, json};

use crate::harness::{World, small_picture};

#[tokio::test]
async fn me_says_what_the_token_says() {
    let world = World::new();
    let me = world.get(&world.store_token(), "/v1/me").await.json();
    assert_eq!(me["subject"], "ada@acme.example");
    assert_eq!(me["tenants"], json!([{"tenant_id": "acme", "stores": ["s1"]}]));
    assert_eq!(me["expires_at"], "2026-06-01T01:00:00.000Z");
    assert_eq!(me["scopes"].as_array().unwrap().len(), domain::OperatorScope::ALL.len());
    let whole = world.get(&world.token(), "/v1/me").await.json();
    assert_eq!(whole["tenants"], json!([{"tenant_id": "acme"}]));
}

#[tokio::test]
async fn every_trigger_is_listed_with_its_path() {
    let world = World::new();
    let list = world.get(&world.token(), "/v1/triggers").await.json();
    let document: Value = serde_json::from_str(&gateway::openapi_json()).unwrap();
    let triggers = list["triggers"].as_array().unwrap();
    assert_eq!(triggers.len(), domain::Trigger::ALL.len() + 1);
    for trigger in triggers {
        let path = trigger["path"].as_str().unwrap();
        let reference = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            .as_str()
            .unwrap_or_else(|| panic!("{path} is not in the document"));
        let schema = &document["components"]["schemas"][reference.rsplit('/').next().unwrap()];
        let mut documented: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let parameters = trigger["parameters"].as_array().unwrap();
        let mut listed: Vec<&str> = parameters.iter().map(|p| p["name"].as_str().unwrap()).collect();
        documented.sort();
        listed.sort_unstable();
        assert_eq!(listed, documented, "{path}");
        for parameter in parameters {
            let required = schema["required"].as_array().unwrap().contains(&parameter["name"]);
            assert_eq!(parameter["required"], required, "{path} {}", parameter["name"]);
        }
    }
    assert_eq!(triggers[0]["bulk_allowance_seconds"], 14_400);
}

#[tokio::test]
async fn stores_models_and_labels_are_counted_and_paged() {
    let world = World::new();
    let token = world.token();
    assert_eq!(world.get(&token, "/v1/tenants").await.json(), json!({"tenants": [{"tenant_id": "acme", "labels": 4}]}));
    let stores = world.get(&token, "/v1/tenants/acme/stores").await.json();
    assert_eq!(stores, json!({"stores": [{"store_id": "s1", "labels": 3}, {"store_id": "s2", "labels": 1}]}));
    let models = world.get(&token, "/v1/tenants/acme/stores/s1/models").await.json();
    assert_eq!(models["models"][0]["model_id"], "M");
    assert_eq!((&models["models"][0]["labels"], &models["models"][1]["labels"]), (&json!(2), &json!(1)));
    assert_eq!(models["models"][0]["name"], "model M");
    let access_points = world.get(&token, "/v1/tenants/acme/stores/s1/access-points").await;
    assert!(!access_points.text().contains("secret"), "addresses are not shown: {}", access_points.text());
    let listed = &access_points.json()["access_points"][0];
    assert_eq!((&listed["access_point_id"], &listed["driver"]), (&json!("ap-1"), &json!("folder")));
    assert_eq!(listed["labels"], 3);
    let designs = world.get(&token, "/v1/tenants/acme/designs?page_size=1").await.json();
    let listed = &designs["designs"][0];
    assert_eq!(
        (&listed["design_id"], &listed["name"], &listed["labels"]),
        (&json!("D"), &json!("design D"), &json!(2))
    );
    let next = designs["next_page_token"].as_str().unwrap();
    let rest = world.get(&token, &format!("/v1/tenants/acme/designs?page_size=1&page_token={next}")).await.json();
    assert_eq!((&rest["designs"][0]["design_id"], &rest["designs"][0]["labels"]), (&json!("E"), &json!(0)));

    let mut seen = Vec::new();
    let mut path = "/v1/tenants/acme/stores/s1/labels?page_size=2".to_owned();
    for _ in 0..2 {
        let page = world.get(&token, &path).await.json();
        for label in page["labels"].as_array().unwrap() {
            seen.push(label["label_id"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next_page_token"].as_str() else { break };
        path = format!("/v1/tenants/acme/stores/s1/labels?page_size=2&page_token={next}");
    }
    assert_eq!(seen, ["E1", "E2", "E3"]);
    let first = world.get(&token, "/v1/tenants/acme/stores/s1/labels").await.json()["labels"][0].clone();
    assert_eq!((&first["model_id"], &first["item_id"]), (&json!("M"), &json!("I1")));
    assert_eq!(first["delivery_state"], "CONFIRMED");
}

#[tokio::test]
async fn lists_of_the_token_itself_are_paged_too() {
    let world = World::new();
    let tenants: Vec<String> = (0..5).map(|number| format!("tenant-{number}")).collect();
    let token =
        world.token_with(|claims| claims.tenants = tenants.iter().map(|tenant| tenant.parse().unwrap()).collect());
    let mut seen = Vec::new();
    let mut path = "/v1/tenants?page_size=2".to_owned();
    for _ in 0..5 {
        let page = world.get(&token, &path).await.json();
        seen.extend(page["tenants"].as_array().unwrap().iter().map(|t| t["tenant_id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_page_token"].as_str() else { break };
        path = format!("/v1/tenants?page_size=2&page_token={next}");
    }
    assert_eq!(seen, tenants);
}

#[tokio::test]
async fn a_label_shows_hardware_panel_item_picture_and_delivery() {
    let world = World::new();
    let label = world.get(&world.token(), "/v1/tenants/acme/stores/s1/labels/E1").await.json();
    assert_eq!(label["hardware"]["hardware_address"], "hw-E1");
    assert_eq!(label["panel"], json!({"name": "small", "width": 8, "height": 4, "palette": "BW", "rotation": 0}));
    assert_eq!(label["item"], json!({"item_id": "I1", "values": {"name": "Äpfel"}}));
    assert_eq!(label["model_id"], "M");
    let hex = small_picture().digest().to_string();
    assert_eq!(label["picture"]["digest"], hex);
    assert_eq!(label["picture"]["source"], "ECC");
    assert_eq!((&label["delivery"]["state"], &label["delivery"]["evidence"]), (&json!("CONFIRMED"), &json!("WRITTEN")));
    assert_eq!(label["delivery"]["confirmed_digest"], hex);

    assert_eq!((&label["pending"], &label["failures"]), (&json!([]), &json!([])), "at rest");

    let bare = world.get(&world.token(), "/v1/tenants/acme/stores/s1/labels/E2").await.json();
    assert_eq!((&bare["model_id"], &bare["design_id"]), (&json!("M"), &json!("D")), "linked twice");
    assert_eq!(bare["item"]["item_id"], "I2", "that of the link that will win");
    assert!(bare.get("picture").is_none() && bare.get("delivery").is_none());
}

#[tokio::test]
async fn a_label_whose_type_and_item_are_gone_is_still_shown() {
    let world = World::new();
    world
        .dtoflow
        .state()
        .records
        .retain(|(dto_type, _), _| !matches!(dto_type, DtoType::EslType | DtoType::StoreItemValues));
    let label = world.get(&world.token(), "/v1/tenants/acme/stores/s1/labels/E1").await;
    assert_eq!(label.status, StatusCode::OK);
    assert!(label.json().get("panel").is_none());
    assert_eq!(label.json()["item"], json!({"item_id": "I1"}));
}

#[tokio::test]
async fn the_image_is_the_picture_as_png_with_its_digest_as_etag() {
    let world = World::new();
    let token = world.token();
    let path = world.get(&token, "/v1/tenants/acme/stores/s1/labels/E1").await.json()["picture"]["image"].clone();
    let path = path.as_str().unwrap();
    let image = world.get(&token, path).await;
    assert_eq!(image.status, StatusCode::OK);
    assert_eq!(image.headers["content-type"], "image/png");
    assert_eq!(image.headers["x-content-type-options"], "nosniff");
    assert_eq!(image.bytes, small_picture().to_png().unwrap());
    let etag = image.headers["etag"].to_str().unwrap().to_owned();
    for (known, status) in [
        (etag.clone(), StatusCode::NOT_MODIFIED),
        (format!("\"other\", W/{etag}"), StatusCode::NOT_MODIFIED),
        ("*".to_owned(), StatusCode::NOT_MODIFIED),
        ("\"other\"".to_owned(), StatusCode::OK),
    ] {
        let request = Request::get(path)
            .header("authorization", format!("Bearer {token}"))
            .header("if-none-match", &known)
            .body(Body::empty())
            .unwrap();
        let answer = world.raw(request).await;
        assert_eq!(answer.status, status, "{known}");
        assert_eq!(answer.headers["etag"], etag);
        assert_eq!(answer.bytes.is_empty(), status == StatusCode::NOT_MODIFIED);
    }
}

#[tokio::test]
async fn a_record_that_does_not_decode_is_a_fault_of_ours_and_hides_its_bytes() {
    let world = World::new();
    let key = (DtoType::EccEslImage, "t/acme/s/s1/ecceslimages/E1".to_owned());
    world.dtoflow.state().records.insert(key, b"\xff\xffsecret".to_vec());
    let answer = world.get(&world.token(), "/v1/tenants/acme/stores/s1/labels/E1/image.png").await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(answer.problem().0, "INTERNAL");
    assert!(!answer.text().contains("secret"));
}

#[tokio::test]
async fn an_operation_shows_its_stages_and_never_hides_failures() {
    let world = World::new();
    let token = world.token();
    let running = world.get(&token, "/v1/tenants/acme/operations/op-1").await;
    assert!(running.headers.contains_key("retry-after"));
    let body = running.json();
    assert_eq!(body["state"], "RUNNING");
    assert_eq!(
        body["summary"],
        json!({"labels": 9, "rendered": 5, "unchanged": 4, "exported": 2, "confirmed": 2, "failed": 0})
    );
    let stages = body["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|stage| (&stage["stage"], &stage["service"])).collect();
    assert_eq!(names[0], (&json!("rendered"), &json!("ecc-image-render-service")));
    assert_eq!(names[1], (&json!("exported"), &json!("hardware-exporter")));
    for stage in stages {
        for counts in [&stage["labels"], &stage["parents"]] {
            let number = |name: &str| counts[name].as_i64().unwrap();
            let parts = ["done", "failed", "coalesced", "cancelled", "waiting", "leased"];
            assert_eq!(number("received"), parts.iter().map(|name| number(name)).sum::<i64>(), "{counts}");
        }
    }
    let failed = world.get(&token, "/v1/tenants/acme/operations/op-2").await;
    assert!(!failed.headers.contains_key("retry-after"));
    let body = failed.json();
    assert_eq!(body["state"], "FINISHED_WITH_FAILURES");
    assert_eq!(body["summary"]["failed"], 1);
    assert_eq!(body["failures"][0]["cause"], "price does not fit");
    assert_eq!(body["failures"][0]["stage"], "rendered");
}

#[tokio::test]
async fn operations_and_audit_are_paged_and_stay_within_the_token() {
    let world = World::new();
    let token = world.token();
    let first = world.get(&token, "/v1/operations?page_size=1").await.json();
    assert_eq!(first["operations"][0]["tracking_id"], "op-1");
    let next = first["next_page_token"].as_str().unwrap();
    let second = world.get(&token, &format!("/v1/operations?page_size=1&page_token={next}")).await.json();
    assert_eq!(second["operations"][0]["tracking_id"], "op-2");
    assert!(second.get("next_page_token").is_none());
    let both = world.token_with(|claims| claims.tenants = vec!["acme".parse().unwrap(), "rival".parse().unwrap()]);
    assert_eq!(world.get(&both, "/v1/operations").await.json()["operations"].as_array().unwrap().len(), 4);

    for tenant in ["acme", "rival"] {
        let body = json!({"tenant_id": tenant, "store_id": "s1", "model_id": "M", "reason": "", "tracking_id": format!("of-{tenant}"), "dry_run": true});
        world.post_json(&both, "/v1/triggers/model-refresh", &body).await;
    }
    let entries = |list: Value| list["entries"].as_array().unwrap().clone();
    assert_eq!(entries(world.get(&token, "/v1/audit").await.json()).len(), 1);
    assert_eq!(entries(world.get(&both, "/v1/audit").await.json()).len(), 2);
    let one = entries(world.get(&both, "/v1/audit?tenant=rival").await.json());
    assert_eq!(one[0]["tracking_id"], "of-rival");
    assert_eq!((&one[0]["outcome"], &one[0]["error_code"]), (&json!("REFUSED"), &json!("INVALID_ARGUMENT")));
    assert_eq!(one[0]["operator"], "ada@acme.example");
    assert!(entries(world.get(&both, "/v1/audit?tracking_id=nothing").await.json()).is_empty());
}

#[tokio::test]
async fn a_label_shows_what_waits_and_what_failed() {
    let world = World::new();
    let fate = |dto_id: &str, state: RecordFateState| RecordFate {
        dto_id: dto_id.to_owned(),
        queue_name: "ecc-image-render-service".to_owned(),
        state: state.into(),
        attempts: 2,
        tracking_id: "load-1".to_owned(),
        ..RecordFate::default()
    };
    let waiting = RecordFate {
        cause: "dtoflow does not answer".to_owned(),
        due_at: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 }),
        ..fate("t/acme/s/s1/items/I1", RecordFateState::Waiting)
    };
    let failed = RecordFate {
        cause: "price does not fit".to_owned(),
        failed_at: Some(prost_types::Timestamp { seconds: 1_700_000_001, nanos: 0 }),
        ..fate("t/acme/s/s1/ecclinks/E1", RecordFateState::Failed)
    };
    let another = fate("t/acme/s/s1/ecclinks/E2", RecordFateState::Leased);
    world.cqs.state().fates = vec![waiting, failed, another];
    let label = world.get(&world.token(), "/v1/tenants/acme/stores/s1/labels/E1").await.json();
    let pending = json!([{
        "stage": "rendered", "service": "ecc-image-render-service", "record": "t/acme/s/s1/items/I1", "state": "WAITING",
        "cause": "dtoflow does not answer", "due_at": "2023-11-14T22:13:20.000Z", "attempts": 2, "tracking_id": "load-1"
    }]);
    assert_eq!(label["pending"], pending);
    let failures = json!([{
        "stage": "rendered", "service": "ecc-image-render-service", "record": "t/acme/s/s1/ecclinks/E1",
        "cause": "price does not fit", "attempts": 2, "failed_at": "2023-11-14T22:13:21.000Z", "tracking_id": "load-1"
    }]);
    assert_eq!(label["failures"], failures);
}
