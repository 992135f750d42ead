//! One tracking id finds everything that was done for it, in the logs of all processes.

use domain::ServiceName;
use serde_json::Value;
use tests::{
    data::Shelf,
    topology::{OPERATION_LIMIT, Topology},
    wait::until,
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

const TENANT: &str = "acme";
const TRACKING_ID: &str = "CHG-118:trace.1";
const REASON: &str = "CHG-118: accents were cut";
const LABEL: &str = "alpha-0003";

/// A step of the flow: its name, the module that logs it, and what else must stand in the line.
struct Step {
    name: &'static str,
    target: &'static str,
    fields: Vec<(&'static str, String)>,
}

fn steps() -> Vec<Step> {
    let handled = |name, service: ServiceName| Step {
        name,
        target: "worker",
        fields: vec![("queue", service.to_string()), ("urn", format!("/{LABEL}"))],
    };
    vec![
        Step { name: "gateway", target: "gateway", fields: vec![("reason", REASON.to_owned())] },
        Step { name: "trigger", target: "worker::triggers", fields: vec![("reason", REASON.to_owned())] },
        Step { name: "CQS", target: "cqs", fields: Vec::new() },
        handled("render", ServiceName::EccImageRender),
        handled("merge", ServiceName::EslImageMerger),
        handled("export", ServiceName::HardwareExporter),
    ]
}

fn is(step: &Step, line: &Value) -> bool {
    let text = |key: &str| line[key].as_str().unwrap_or_default();
    text("tracking_id") == TRACKING_ID
        && text("target").starts_with(step.target)
        && step.fields.iter().all(|(key, value)| text(key).ends_with(value.as_str()))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tracking_id_finds_every_step_of_a_label() {
    let topology = Topology::three().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 5)]).await;
    topology.quiet().await;
    shelf.import(&topology.doors, vec![shelf.model("alpha", tests::data::layout("alpha", 2))]).await;
    topology.quiet().await;
    let operator = topology.operator(&[TENANT]);
    let mut request = refresh(&shelf, "alpha", TRACKING_ID, false);
    request["reason"] = REASON.into();
    operator.post(MODEL_REFRESH, &request).await.json(202);
    topology.finished(TENANT, TRACKING_ID, OPERATION_LIMIT).await;

    // A line is written after the work it tells of, so the last ones may still be on their way.
    until("a log line of every step", OPERATION_LIMIT, || async {
        let lines = topology.log_lines();
        let missing: Vec<&str> =
            steps().iter().filter(|step| !lines.iter().any(|line| is(step, line))).map(|step| step.name).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let found: Vec<&Value> = lines.iter().filter(|line| line["tracking_id"] == TRACKING_ID).collect();
        Err(format!("no line of {missing:?} among {found:#?}"))
    })
    .await;

    let entries = topology.tables().await.audit_of(TRACKING_ID).await;
    let [entry, finish] = entries.as_slice() else { panic!("the request and its end, not {entries:#?}") };
    assert_eq!((entry.action.as_str(), finish.action.as_str()), ("SelfEnqueue", "finish"));
    assert_eq!((entry.reason.as_str(), entry.operator_subject.as_str()), (REASON, "operator@test"));
    let audit = operator.get_json(&format!("/v1/audit?tracking_id={TRACKING_ID}")).await;
    assert!(audit.to_string().contains(REASON), "{audit}");
    topology.stop().await;
}
