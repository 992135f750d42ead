//! How the platform stands, for people and for Prometheus.

use http::StatusCode;
use proto::cqs::v1 as cqs;
use serde_json::json;

use crate::{fakes::Fault, harness::World};

/// An exporter's queue that is twelve seconds late with a price, and an operation that is held.
fn late(world: &World) -> cqs::Overview {
    use domain::Clock as _;
    let now = world.clock.now();
    let at = |ago_ms: i64| Some(proto::timestamp_to_wire(now.plus_ms(-ago_ms)));
    cqs::Overview {
        queues: vec![cqs::QueueOverview {
            queue_name: "hardware-exporter".to_owned(),
            polled_at: at(3_000),
            ordinary: Some(cqs::QueueLoad { ready: 7, delayed: 2, leased: 96, first_sla: at(12_500) }),
            operations: Some(cqs::QueueLoad { ready: 4_000, first_sla: at(-3_600_000), ..cqs::QueueLoad::default() }),
            fan_out: None,
            failed: 3,
        }],
        operations: Some(cqs::OperationTally { held: 1, running: 2, ..cqs::OperationTally::default() }),
        brake: Some(cqs::Brake { on: None }),
    }
}

#[tokio::test]
async fn what_is_late_is_told_and_what_is_not_due_is_not_late() {
    let world = World::new();
    let overview = late(&world);
    world.cqs.state().overview = overview;
    let answer = world.get(&world.token(), "/v1/status").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let status = answer.json();
    assert_eq!(status["brake"], json!({"on": false, "by": null}));
    assert_eq!(
        status["operations"],
        json!({"cancelling": 0, "awaiting_approval": 0, "held": 1, "paused": 0, "running": 2})
    );
    let service = &status["services"][0];
    assert_eq!((&service["service"], &service["failed"]), (&json!("hardware-exporter"), &json!(3)));
    assert_eq!(service["changes"], json!({"ready": 7, "delayed": 2, "leased": 96, "late_s": 12}));
    assert_eq!(service["operations"], json!({"ready": 4_000, "delayed": 0, "leased": 0, "late_s": 0}));
    assert_eq!(service["fan_out"], json!({"ready": 0, "delayed": 0, "leased": 0, "late_s": 0}));
}

/// The value of a series, by how its line begins.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(series)).unwrap_or_else(|| panic!("no {series} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[expect(clippy::float_cmp, reason = "whole numbers and halves are exact")]
#[tokio::test]
async fn gauges_say_the_same_and_cost_one_look_in_five_seconds() {
    let world = World::new();
    let overview = late(&world);
    world.cqs.state().overview = overview;
    let text = world.get("", "/metrics").await.text();
    let ordinary = "{service=\"hardware-exporter\",work=\"changes\"}";
    assert_eq!(value(&text, "reshelf_platform_up"), 1.0);
    assert_eq!(value(&text, "reshelf_brake_on"), 0.0);
    assert_eq!(value(&text, "reshelf_operations{state=\"held\"}"), 1.0);
    assert_eq!(value(&text, &format!("reshelf_work_ready{ordinary}")), 7.0);
    assert_eq!(value(&text, &format!("reshelf_work_leased{ordinary}")), 96.0);
    assert_eq!(value(&text, &format!("reshelf_work_late_seconds{ordinary}")), 12.5);
    assert_eq!(value(&text, "reshelf_work_failed{service=\"hardware-exporter\"}"), 3.0);
    assert_eq!(value(&text, "reshelf_work_asked_seconds{service=\"hardware-exporter\"}"), 3.0);

    world.cqs.state().overview.queues.clear();
    world.clock.advance_ms(4_999);
    assert!(world.get("", "/metrics").await.text().contains("reshelf_work_ready{"), "not asked again yet");
    world.clock.advance_ms(1);
    assert!(!world.get("", "/metrics").await.text().contains("reshelf_work_ready{"), "asked again");
}

#[expect(clippy::float_cmp, reason = "0 is exact")]
#[tokio::test]
async fn a_platform_that_does_not_answer_shows_as_down_and_not_as_it_was() {
    let world = World::new();
    let overview = late(&world);
    world.cqs.state().overview = overview;
    world.get("", "/metrics").await;
    world.cqs.state().fault = Some(Fault::Status(tonic::Code::Unavailable));
    world.clock.advance_ms(5_000);
    let text = world.get("", "/metrics").await.text();
    assert_eq!(value(&text, "reshelf_platform_up"), 0.0);
    assert!(!text.contains("reshelf_work_ready{") && text.contains("reshelf_http_requests_total"));
    let answer = world.get(&world.token(), "/v1/status").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
}
