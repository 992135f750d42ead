//! Plans: a run is held to what its dry run counted, and a dry run refuses whatever the live call would.

use domain::OperatorScope;
use gateway::token::OperatorClaims;
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};
use tests::{
    data::Shelf,
    rest::{Answer, Rest},
    topology::{OPERATION_LIMIT, Topology},
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

/// Requests of the property test. Each is asked twice, over HTTP, in one process: a few seconds in all.
const CASES: u32 = 300;
/// Requests of one operator: twice as many are asked, below the burst of 200 actions.
const CASES_OF_ONE: u32 = 60;

fn with(mut body: Value, fields: &[(&str, Value)]) -> Value {
    for (name, value) in fields {
        body[*name] = value.clone();
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_held_to_its_plan() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, "acme", &[("alpha", 120), ("beta", 3)]).await;
    topology.quiet().await;
    let operator = topology.operator(&["acme"]);
    let asked = |id: &str, dry_run: bool| refresh(&shelf, "alpha", id, dry_run);

    let dry = operator.post(MODEL_REFRESH, &asked("plan-1", true)).await.json(200);
    assert_eq!((&dry["labels"], &dry["store_count"]), (&json!(120), &json!(1)), "{dry}");
    assert_eq!(dry["stores"], json!([{"store_id": "store-1", "labels": 120}]));
    assert_eq!(dry["approval"], json!({"needed": false, "above_labels": 50_000}));
    assert_eq!((&dry["would_replay"], &dry["estimate"]["seconds"]), (&json!(false), &Value::Null));
    assert!(dry["estimate"]["reason"].is_string(), "no run was measured yet: {dry}");
    let plan = dry["plan_id"].clone();

    // What was planned is what is run: no drift.
    let planned = with(asked("plan-1", false), &[("plan_id", plan.clone())]);
    let run = operator.post(MODEL_REFRESH, &planned).await.json(202);
    assert_eq!(run["labels"], dry["labels"]);
    assert_eq!(run["drift"], json!({"planned": 120, "now": 120, "added": 0, "removed": 0, "stores_changed": 0}));
    let operation = topology.finished(shelf.tenant.as_str(), "plan-1", OPERATION_LIMIT).await;
    assert_eq!(operation.queues[0].enqueued, 120, "the dry run's count is the run's, exactly");
    let replayed = operator.post(MODEL_REFRESH, &planned).await.json(200);
    assert_eq!(replayed["replayed"], true);

    // Now one was measured.
    let dry = operator.post(MODEL_REFRESH, &asked("plan-2", true)).await.json(200);
    assert_eq!(dry["estimate"]["measured_on"], "plan-1", "{dry}");
    assert!(dry["estimate"]["seconds"].as_i64().is_some_and(|seconds| seconds >= 1), "{dry}");

    // Two labels come, one goes to another model.
    shelf
        .import(
            &topology.doors,
            vec![
                shelf.item("new-1", "1.99"),
                shelf.esl("new-1"),
                shelf.link("new-1", "alpha", 1),
                shelf.link("alpha-0000", "beta", 1),
                shelf.item("new-2", "1.99"),
                shelf.esl("new-2"),
                shelf.link("new-2", "alpha", 1),
            ],
        )
        .await;
    topology.quiet().await;
    for dry_run in [true, false] {
        let stale = with(asked("plan-2", dry_run), &[("plan_id", plan.clone())]);
        let problem = operator.post(MODEL_REFRESH, &stale).await.problem(409);
        assert_eq!((problem.code.as_str(), problem.field.as_str()), ("FAILED_PRECONDITION", "max_drift"));
        assert!(problem.detail.contains("120 labels were planned and 121"), "{}", problem.detail);
    }
    let allowed = [("plan_id", plan.clone()), ("max_drift", json!(1))];
    let dry = operator.post(MODEL_REFRESH, &with(asked("plan-2", true), &allowed)).await.json(200);
    let run = operator.post(MODEL_REFRESH, &with(asked("plan-2", false), &allowed)).await.json(202);
    assert_eq!(dry["drift"], json!({"planned": 120, "now": 121, "added": 1, "removed": 0, "stores_changed": 1}));
    assert_eq!(run["drift"], dry["drift"]);

    // A plan is of one scope.
    let elsewhere = with(refresh(&shelf, "beta", "plan-3", false), &[("plan_id", plan)]);
    let problem = operator.post(MODEL_REFRESH, &elsewhere).await.problem(400);
    assert_eq!((problem.code.as_str(), problem.field.as_str()), ("INVALID_ARGUMENT", "plan_id"));
    topology.stop().await;
}

/// What of a request is drawn at random; each list holds what is right and what is wrong in some way.
fn requests() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let text = |texts: &[&str]| proptest::sample::select(texts.iter().map(|text| json!(text)).collect::<Vec<_>>());
    let id = prop_oneof![
        4 => (0..1_000_000_u32).prop_map(|n| json!(format!("fresh-{n}"))),
        2 => Just(json!("taken")),
        1 => text(&["", "a b"]),
    ];
    let sla = proptest::option::of(text(&["2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z", "tomorrow"]));
    let plan = proptest::option::of(text(&["PLAN alpha", "PLAN beta", "PLAN before", "forged"]));
    let drift = proptest::option::of(proptest::sample::select(vec![json!(-1), json!(0), json!(9), json!("1%")]));
    (
        text(&["acme", "acme", "acme", "rival", "a/b"]),
        text(&["store-1", "store-1", "store-1", "nowhere", ""]),
        text(&["alpha", "alpha", "beta", "gone"]),
        text(&["CHG-118: accents were cut", "CHG-118: accents were cut", "another", ""]),
        id,
        (sla, plan, drift),
    )
        .prop_map(|(tenant, store, model, reason, id, (sla, plan, drift))| {
            let mut fields = vec![
                ("tenant_id", tenant),
                ("store_id", store),
                ("model_id", model),
                ("reason", reason),
                ("tracking_id", id),
            ];
            fields.extend(sla.map(|sla| ("sla_timestamp", sla)));
            fields.extend(plan.map(|plan| ("plan_id", plan)));
            fields.extend(drift.map(|drift| ("max_drift", drift)));
            fields
        })
}

/// The problem's status, code, field and text; none when it was not refused.
fn refusal(answer: &Answer) -> Option<(u16, String, String, String)> {
    if answer.status < 300 {
        return None;
    }
    let problem = answer.problem(answer.status);
    Some((answer.status, problem.code, problem.field, problem.detail))
}

async fn plan_of(operator: &Rest, shelf: &Shelf, model: &str) -> Value {
    operator.post(MODEL_REFRESH, &refresh(shelf, model, "planning", true)).await.json(200)["plan_id"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_of_the_live_call_is_one_of_the_dry_run() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, "acme", &[("alpha", 4), ("beta", 2)]).await;
    Shelf::write(&topology.doors, "rival", &[("alpha", 1)]).await;
    topology.quiet().await;
    let all = topology.operator(&["acme"]);
    let scopes: Vec<OperatorScope> =
        OperatorScope::ALL.iter().copied().filter(|scope| *scope != OperatorScope::TriggerModelRefresh).collect();
    let without_scope = topology.operator_as(&topology.claims(&["acme"], &scopes));
    let before = plan_of(&all, &shelf, "alpha").await;
    shelf
        .import(&topology.doors, vec![shelf.item("new", "1.99"), shelf.esl("new"), shelf.link("new", "alpha", 1)])
        .await;
    let (alpha, beta) = (plan_of(&all, &shelf, "alpha").await, plan_of(&all, &shelf, "beta").await);
    all.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "taken", false)).await.json(202);

    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = requests();
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for case in 0..CASES {
        let mut fields = strategy.new_tree(&mut runner).expect("a request").current();
        for (_, value) in &mut fields {
            match value.as_str() {
                Some("PLAN alpha") => *value = alpha.clone(),
                Some("PLAN beta") => *value = beta.clone(),
                Some("PLAN before") => *value = before.clone(),
                _ => {}
            }
        }
        let operator = if case % 16 == 0 {
            without_scope.clone()
        } else {
            // Enough operators that none meets its rate limit.
            let subject = format!("operator-{}@test", case / CASES_OF_ONE).parse().expect("a subject");
            topology.operator_as(&OperatorClaims { subject, ..topology.claims(&["acme"], OperatorScope::ALL) })
        };
        let body = |dry_run: bool| with(json!({"dry_run": dry_run}), &fields);
        let dry = operator.post(MODEL_REFRESH, &body(true)).await;
        let live = operator.post(MODEL_REFRESH, &body(false)).await;
        let (dry_refused, live_refused) = (refusal(&dry), refusal(&live));
        assert_eq!(dry_refused, live_refused, "{fields:?}");
        if dry_refused.is_none() {
            let (dry, live) = (dry.json(200), live.json(live.status));
            assert_eq!((&dry["labels"], &dry["would_replay"]), (&live["labels"], &live["replayed"]), "{fields:?}");
        }
        let kind = live_refused.map_or("accepted".to_owned(), |(_, code, field, _)| format!("{code} {field}"));
        *seen.entry(kind).or_default() += 1;
    }
    // The random requests met what there is to meet.
    for kind in [
        "accepted",
        "ALREADY_EXISTS model_id",
        "ALREADY_EXISTS reason",
        "ALREADY_EXISTS sla_timestamp",
        "FAILED_PRECONDITION max_drift",
        "INVALID_ARGUMENT max_drift",
        "INVALID_ARGUMENT plan_id",
        "INVALID_ARGUMENT reason",
        "INVALID_ARGUMENT sla_timestamp",
        "INVALID_ARGUMENT tracking_id",
        "NOT_FOUND model_id",
        "PERMISSION_DENIED ",
    ] {
        assert!(seen.contains_key(kind), "no request was refused with {kind}: {seen:?}");
    }
    topology.stop().await;
}
