//! Plans and previews as far as the gateway alone decides them.

use gateway::OperatorPolicy;
use http::StatusCode;
use serde_json::{Value, json};

use crate::harness::{Changes, World};

const REFRESH: &str = "/v1/triggers/model-refresh";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn refresh(dry_run: bool) -> Value {
    json!({
        "tenant_id": "acme", "store_id": "s1", "model_id": "M",
        "reason": "CHG-118: font fixed", "tracking_id": "CHG-118", "dry_run": dry_run
    })
}

#[tokio::test]
async fn a_plan_ends_after_a_day_but_a_repetition_is_still_answered() {
    let world = World::new();
    let dry = world.post_json(&world.token(), REFRESH, &refresh(true)).await.json();
    assert_eq!(dry["plan_expires_at"], "2026-06-02T00:00:00.000Z");
    let mut planned = refresh(false);
    planned["plan_id"] = dry["plan_id"].clone();
    world.clock.advance_ms(DAY_MS - 1);
    assert_eq!(world.post_json(&world.token(), REFRESH, &planned).await.status, StatusCode::ACCEPTED);
    world.clock.advance_ms(1);
    let again = world.post_json(&world.token(), REFRESH, &planned).await;
    assert_eq!((again.status, &again.json()["replayed"]), (StatusCode::OK, &json!(true)));

    planned["tracking_id"] = json!("CHG-119");
    for dry_run in [true, false] {
        planned["dry_run"] = json!(dry_run);
        let before = world.audit_rows();
        let late = world.post_json(&world.token(), REFRESH, &planned).await;
        assert_eq!((late.status, late.problem().1), (StatusCode::CONFLICT, "plan_id".to_owned()));
        assert_eq!(world.audit_rows() - before, 1, "written down by the gateway");
    }
    assert_eq!(world.triggers.state().accepted.len(), 1);
}

#[tokio::test]
async fn a_dry_run_says_whether_a_second_operator_is_needed() {
    let policy = OperatorPolicy { approval_above_labels: 1 };
    let world = World::with(Changes { policy, ..Changes::default() });
    let two = world.post_json(&world.token(), REFRESH, &refresh(true)).await.json();
    assert_eq!(two["approval"], json!({"needed": true, "above_labels": 1}));
    let started = world.post_json(&world.token(), REFRESH, &refresh(false)).await;
    assert_eq!((started.status, &started.json()["awaits_approval"]), (StatusCode::ACCEPTED, &json!(true)));
    let approval = world.triggers.state().accepted[0].0.approval.unwrap();
    assert_eq!(approval.label_count, 2);
    let ends = proto::timestamp_from_wire("expires_at", approval.expires_at.as_ref().unwrap()).unwrap();
    assert_eq!(ends.as_ms() - domain::Clock::now(&*world.clock).as_ms(), DAY_MS);
    let mut asked = refresh(true);
    asked["model_id"] = json!("N");
    asked["tracking_id"] = json!("CHG-119");
    let one = world.post_json(&world.token(), REFRESH, &asked).await.json();
    assert_eq!(one["approval"], json!({"needed": false, "above_labels": 1}));
}

#[tokio::test]
async fn a_preview_shows_three_pictures_of_what_changes_and_the_cause_of_what_fails() {
    let world = World::new();
    let asked = json!({"tenant_id": "acme", "store_id": "s1", "model_id": "M"});
    let answer = world.post_json(&world.token(), "/v1/triggers/model-refresh/preview", &asked).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let body = answer.json();
    let counts = ["labels", "sampled", "changed", "unchanged", "failed"].map(|name| body[name].as_i64().unwrap());
    assert_eq!(counts, [2, 2, 1, 0, 1]);
    let [changed, failed] = body["previews"].as_array().unwrap().as_slice() else { panic!("{body}") };
    assert_eq!((&changed["outcome"], &changed["pixels_changed"]), (&json!("CHANGED"), &json!(16)));
    for picture in ["current", "new", "difference"] {
        let png = changed[picture]["png_base64"].as_str().unwrap();
        assert!(png.starts_with("iVBORw0KGgo"), "{picture} is a PNG: {png}");
    }
    assert_eq!((&failed["outcome"], &failed["cause"]), (&json!("FAILED"), &json!("price does not fit")));
    assert_eq!((&failed["new"], &failed["difference"]), (&Value::Null, &Value::Null));
    assert_eq!(world.audit_rows(), 0, "a preview does nothing");
}
