//! The main job: an operator renders every label of a model again, from one command.

use domain::{DtoType, ServiceName};
use proto::cqs::v1::OperationState;
use serde_json::{Value, json};
use tests::{
    data::{Shelf, layout},
    tables::Records,
    topology::{OPERATION_LIMIT, Topology, split_through, stage, through},
};

/// The trigger.
pub(crate) const MODEL_REFRESH: &str = "/v1/triggers/model-refresh";

/// A request for a refresh.
pub(crate) fn refresh(shelf: &Shelf, model: &str, tracking_id: &str, dry_run: bool) -> Value {
    json!({
        "tenant_id": shelf.tenant.as_str(),
        "store_id": shelf.store.as_str(),
        "model_id": model,
        "reason": "CHG-118: accents were cut",
        "tracking_id": tracking_id,
        "dry_run": dry_run,
    })
}

/// What rendering, merging and exporting wrote of labels whose id begins with `prefix`.
fn outputs(records: &Records, prefix: &str) -> Vec<(String, String, i64, i64)> {
    ["ecceslimage.v1", "eslimage.v1", "storeeslstatus.v1"]
        .iter()
        .flat_map(|dto_type| {
            records
                .of(dto_type)
                .filter(|(key, _)| key.id.starts_with(prefix))
                .map(|(key, record)| ((*dto_type).to_owned(), key.id.clone(), record.version, record.updated_at))
        })
        .collect()
}

/// The whole main job on a product that runs; the same for every topology.
pub(crate) async fn main_job(topology: &Topology, tenant: &str) {
    let shelf = Shelf::write(&topology.doors, tenant, &[("alpha", 25), ("beta", 10)]).await;
    topology.quiet().await;
    assert_eq!(topology.assert_pictures(Some(tenant)).await.equal, shelf.label_count());
    let version_1 = topology.tables().await.records(Some(tenant)).await;
    assert_eq!(outputs(&version_1, "").len(), 3 * shelf.label_count());

    // A model change only evicts.
    shelf.import(&topology.doors, vec![shelf.model("alpha", layout("alpha", 2))]).await;
    topology.quiet().await;
    let evicted = topology.tables().await.records(Some(tenant)).await;
    assert_eq!(outputs(&evicted, ""), outputs(&version_1, ""), "a model change renders nothing");

    // A dry run counts, and does nothing else.
    let operator = topology.operator(&[tenant]);
    let dry = operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "refresh-1", true)).await.json(200);
    assert_eq!(dry["labels"], 25, "{dry}");
    assert!(topology.operation(tenant, "refresh-1").await.is_none(), "a dry run reserves no tracking id");
    assert!(topology.tables().await.rows_by_queue().await.is_empty(), "a dry run enqueues nothing");
    operator.get(&format!("/v1/tenants/{tenant}/operations/refresh-1")).await.problem(404);

    // The run under the very same tracking id.
    let answer = operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "refresh-1", false)).await;
    let path = format!("/v1/tenants/{tenant}/operations/refresh-1");
    let body = answer.json(202);
    assert_eq!(answer.header("location"), Some(path.as_str()));
    assert_eq!(body["operation"], path.as_str(), "{body}");
    assert_eq!(body["labels"], dry["labels"], "the run counts what the dry run counted: {body}");
    let operation = topology.finished_exactly(tenant, "refresh-1", OPERATION_LIMIT).await;
    assert_eq!(operation.state(), OperationState::Succeeded);
    assert!(operation.expansion_complete);
    assert_eq!(operation.items_enqueued, 1);
    let ecc = ServiceName::EccImageRender;
    assert_eq!(stage(&operation, ecc), split_through(ecc, 25, 0));
    for service in [ServiceName::EslImageMerger, ServiceName::HardwareExporter] {
        assert_eq!(stage(&operation, service), through(service, 25, 0));
    }
    assert_eq!(topology.assert_pictures(Some(tenant)).await.equal, shelf.label_count());
    let version_2 = topology.tables().await.records(Some(tenant)).await;
    assert_eq!(outputs(&version_2, "beta-"), outputs(&version_1, "beta-"), "no label of another model is touched");
    for (old, new) in outputs(&version_1, "alpha-").iter().zip(outputs(&version_2, "alpha-")) {
        assert!(new.2 > old.2, "{old:?} was rendered, merged and exported again: {new:?}");
    }
    rest_reports_the_same(topology, &shelf, "refresh-1").await;

    // Pasted again under a new id: as many labels, all unchanged, nothing exported.
    let again = operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "refresh-2", false)).await.json(202);
    assert_eq!(again["labels"], dry["labels"]);
    let operation = topology.finished_exactly(tenant, "refresh-2", OPERATION_LIMIT).await;
    assert_eq!(operation.state(), OperationState::Succeeded);
    assert_eq!(stage(&operation, ecc), split_through(ecc, 25, 25));
    for service in [ServiceName::EslImageMerger, ServiceName::HardwareExporter] {
        assert_eq!(stage(&operation, service), through(service, 0, 0), "nothing goes on");
    }
    let unchanged = topology.tables().await.records(Some(tenant)).await;
    assert_eq!(outputs(&unchanged, ""), outputs(&version_2, ""));
    topology.assert_exact().await;
    same_id_again(topology, &shelf).await;
}

/// The REST view of a finished operation.
async fn rest_reports_the_same(topology: &Topology, shelf: &Shelf, tracking_id: &str) {
    let tenant = shelf.tenant.as_str();
    let operator = topology.operator(&[tenant]);
    let operation = operator.get_json(&format!("/v1/tenants/{tenant}/operations/{tracking_id}")).await;
    assert_eq!(operation["state"], "SUCCEEDED", "{operation}");
    assert_eq!(operation["tracking_id"], tracking_id);
    let summary = json!({"labels": 25, "rendered": 25, "unchanged": 0, "exported": 25, "confirmed": 25, "failed": 0});
    assert_eq!(operation["summary"], summary, "{operation}");
    // Folders: a file was written, and nobody looked at a panel.
    let by = json!({"written": 25, "transferred": 0, "displayed": 0, "none": 0});
    assert_eq!(operation["funnel"][4]["confirmed_by"], by, "{operation}");
    let list = operator.get_json("/v1/operations").await;
    assert!(list.to_string().contains(tracking_id), "{list}");
    let label = shelf.labels["alpha"].first().expect("a label");
    let path = format!("/v1/tenants/{tenant}/stores/{}/labels/{label}/image.png", shelf.store);
    let image = operator.get(&path).await;
    assert_eq!(image.status, 200);
    assert_eq!(image.header("content-type"), Some("image/png"));
    let key = tests::tables::RecordKey { tenant: tenant.to_owned(), store: shelf.store.to_string(), id: label.clone() };
    assert_eq!(image.bytes, std::fs::read(topology.png_of(&key)).expect("the exported PNG"));
}

/// The same request again is answered, not done; another request under the id is refused.
async fn same_id_again(topology: &Topology, shelf: &Shelf) {
    let operator = topology.operator(&[shelf.tenant.as_str()]);
    let request = refresh(shelf, "alpha", "refresh-1", false);
    let replay = operator.post(MODEL_REFRESH, &request).await.json(200);
    assert_eq!(replay["replayed"], true, "{replay}");
    let mut other = request.clone();
    other["model_id"] = "beta".into();
    let problem = operator.post(MODEL_REFRESH, &other).await.problem(409);
    assert_eq!((problem.code.as_str(), problem.field.as_str()), ("ALREADY_EXISTS", "model_id"));
    let mut other = request;
    other["reason"] = "something else".into();
    let problem = operator.post(MODEL_REFRESH, &other).await.problem(409);
    assert_eq!((problem.code.as_str(), problem.field.as_str()), ("ALREADY_EXISTS", "reason"));
    assert!(topology.tables().await.rows_by_queue().await.is_empty(), "nothing was enqueued");
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_in_one_process() {
    let topology = Topology::in_process().await;
    main_job(&topology, "acme").await;
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_in_one_process_on_postgres() {
    let topology = Topology::in_process_on_postgres().await;
    main_job(&topology, "acme").await;
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_as_three_processes_on_postgres() {
    let topology = Topology::three_on_postgres().await;
    main_job(&topology, "acme").await;
    crate::gates::strangers_are_unauthenticated(&topology).await;
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job_as_three_processes() {
    let topology = Topology::three().await;
    main_job(&topology, "acme").await;
    crate::gates::strangers_are_unauthenticated(&topology).await;
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_picture_is_the_one_a_link_change_gives() {
    let topology = Topology::in_process().await;
    let tenant = "acme";
    let shelf = Shelf::write(&topology.doors, tenant, &[("alpha", 3)]).await;
    topology.quiet().await;
    shelf.import(&topology.doors, vec![shelf.model("alpha", layout("alpha", 2))]).await;
    topology.quiet().await;

    // One label is rendered because its link changes …
    shelf.import(&topology.doors, vec![shelf.link("alpha-0000", "alpha", 2)]).await;
    topology.quiet().await;
    let by_change = topology.tables().await.records(Some(tenant)).await;
    let image = |records: &Records, label: &str| {
        records.get("ecceslimage.v1", tenant, shelf.store.as_str(), label).expect("an image").to_vec()
    };

    // … and then all are, by force: the same bytes for that one, so it is unchanged.
    let operator = topology.operator(&[tenant]);
    operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "force-1", false)).await.json(202);
    let operation = topology.finished(tenant, "force-1", OPERATION_LIMIT).await;
    let ecc = ServiceName::EccImageRender;
    assert_eq!(stage(&operation, ecc), split_through(ecc, 3, 1));
    let by_force = topology.tables().await.records(Some(tenant)).await;
    assert_eq!(image(&by_change, "alpha-0000"), image(&by_force, "alpha-0000"));
    assert_ne!(image(&by_change, "alpha-0001"), image(&by_force, "alpha-0001"), "the others were still at version 1");

    // The other way round: a label that was rendered by force is unchanged when its link changes.
    shelf.import(&topology.doors, vec![shelf.link("alpha-0001", "alpha", 2)]).await;
    topology.quiet().await;
    let after = topology.tables().await.records(Some(tenant)).await;
    assert_eq!(image(&by_force, "alpha-0001"), image(&after, "alpha-0001"));
    let version = |records: &Records| {
        records.of(DtoType::EccEslImage.as_str()).map(|(_, record)| record.version).collect::<Vec<_>>()
    };
    assert_eq!(version(&by_force), version(&after));
    topology.stop().await;
}
