//! Approvals: of what a trigger asks for over more labels than an operator may start alone, and one that nobody gives.

use daemon::SystemClock;
use domain::{Clock as _, OperatorScope, ServiceName};
use gateway::token::OperatorClaims;
use proto::cqs::v1::{ApprovalRequired, SelfEnqueueRequest};
use serde_json::json;
use tests::{
    data::{Shelf, layout},
    topology::{START_LIMIT, Topology},
    wait::until,
};

use crate::{
    control::{changed_shelf, large},
    model_refresh::{MODEL_REFRESH, refresh},
};

const PATH: &str = "/v1/tenants/acme/operations/forgotten";
/// A trigger's request asks for a day; the renderer could ask for less, as here.
const EXPIRES_AFTER_MS: i64 = 1_500;

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_nobody_approves_in_time_is_cancelled_and_says_so() {
    let topology = Topology::in_process().await;
    let shelf = changed_shelf(&topology, 3).await;
    let asked = large(&shelf, "forgotten");
    let expires_at = proto::timestamp_to_wire(SystemClock.now().plus_ms(EXPIRES_AFTER_MS));
    let approval = asked.approval.map(|approval| ApprovalRequired { expires_at: Some(expires_at), ..approval });
    let asked = SelfEnqueueRequest { approval, ..asked };
    let mut renderer = topology.doors.cqs(ServiceName::EccImageRender);
    renderer.self_enqueue(asked).await.unwrap_or_else(|status| panic!("{status}"));

    let operator = topology.operator(&["acme"]);
    let expired = until("nobody approved in time", START_LIMIT, || async {
        let shown = operator.get_json(PATH).await;
        if shown["state"] == "CANCELLED" { Ok(shown) } else { Err(shown.to_string()) }
    })
    .await;
    assert_eq!(expired["controls"]["approval"]["state"], "EXPIRED", "{expired}");
    assert_eq!(expired["stages"][0]["parents"]["cancelled"], 1, "nothing of it began: {expired}");
    assert_eq!(expired["summary"]["labels"], 0, "{expired}");

    // Too late for everybody, for a second operator and for broken glass.
    let claims = topology.claims(&["acme"], &[OperatorScope::OperationsApprove, OperatorScope::OperationsRead]);
    let second = topology.operator_as(&OperatorClaims { subject: "second@test".parse().expect("a subject"), ..claims });
    let late = json!({"reason": "CHG-121: agreed", "labels": 118_204, "plan": expired["plan"]});
    second.post(&format!("{PATH}/approve"), &late).await.problem(409);
    let mut glass = late;
    glass["break_glass"] = true.into();
    operator.post(&format!("{PATH}/approve"), &glass).await.problem(409);
    assert_eq!(operator.get_json(PATH).await["state"], "CANCELLED");
    topology.quiet().await;
    topology.assert_exact().await;
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_over_more_labels_than_one_may_start_alone_waits_for_a_second_operator() {
    let topology = Topology::in_process_approving_above(5).await;
    let shelf = Shelf::write(&topology.doors, "acme", &[("alpha", 6), ("beta", 5)]).await;
    topology.quiet().await;
    let models = ["alpha", "beta"].map(|model| shelf.model(model, layout(model, 2)));
    shelf.import(&topology.doors, models.to_vec()).await;
    topology.quiet().await;
    let requester = topology.operator(&["acme"]);
    let claims = topology.claims(&["acme"], &[OperatorScope::OperationsApprove, OperatorScope::OperationsRead]);
    let second = topology.operator_as(&OperatorClaims { subject: "second@test".parse().expect("a subject"), ..claims });

    // At the bound one operator is enough; the dry run says so beforehand.
    let dry = requester.post(MODEL_REFRESH, &refresh(&shelf, "beta", "small", true)).await.json(200);
    assert_eq!((&dry["labels"], &dry["approval"]["needed"]), (&json!(5), &json!(false)), "{dry}");
    let small = requester.post(MODEL_REFRESH, &refresh(&shelf, "beta", "small", false)).await.json(202);
    assert_eq!(small["awaits_approval"], false, "{small}");
    topology.finished("acme", "small", START_LIMIT).await;

    let dry = requester.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "large", true)).await.json(200);
    assert_eq!((&dry["labels"], &dry["approval"]["needed"]), (&json!(6), &json!(true)), "{dry}");
    let mut planned = refresh(&shelf, "alpha", "large", false);
    planned["plan_id"] = dry["plan_id"].clone();
    let accepted = requester.post(MODEL_REFRESH, &planned).await.json(202);
    assert_eq!(accepted["awaits_approval"], true, "{accepted}");
    let path = "/v1/tenants/acme/operations/large";
    let waits = second.get_json(path).await;
    assert_eq!((&waits["state"], &waits["controls"]["approval"]["labels"]), (&json!("AWAITING_APPROVAL"), &json!(6)));

    let agreed = json!({"reason": "CHG-121: agreed", "labels": 6, "plan": waits["plan"]});
    requester.post(&format!("{path}/approve"), &agreed).await.problem(403);
    second.post(&format!("{path}/approve"), &agreed).await.json(200);
    topology.finished("acme", "large", START_LIMIT).await;
    assert_eq!(topology.assert_pictures(Some("acme")).await.equal, 11);
    topology.assert_exact().await;
    topology.stop().await;
}
