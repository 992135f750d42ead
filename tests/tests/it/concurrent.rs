//! Operations and live changes over the same labels at once: everything ends right, and every count is exact.

use domain::ServiceName;
use proto::cqs::v1::OperationState;
use tests::{
    data::{Shelf, layout},
    topology::{START_LIMIT, Topology, stage},
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

const TENANT: &str = "acme";
const LABELS: usize = 120;

#[tokio::test(flavor = "multi_thread")]
async fn two_operations_and_live_changes_end_right_and_exact() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", LABELS)]).await;
    topology.quiet().await;
    shelf.import(&topology.doors, vec![shelf.model("alpha", layout("alpha", 2))]).await;
    let operator = topology.operator(&[TENANT]);
    for tracking_id in ["both-1", "both-2"] {
        operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", tracking_id, false)).await.json(202);
    }
    // Prices change under the hands of both, in small writes as a till system makes them.
    let changed = shelf.labels["alpha"].iter().step_by(3);
    for (number, id) in changed.enumerate() {
        shelf.import(&topology.doors, vec![shelf.item(id, &format!("{}.49", number + 2))]).await;
    }

    let mut newly_rendered = 0;
    for tracking_id in ["both-1", "both-2"] {
        let operation = topology.finished_exactly(TENANT, tracking_id, START_LIMIT).await;
        assert_eq!(operation.state(), OperationState::Succeeded, "{operation:#?}");
        let ecc = stage(&operation, ServiceName::EccImageRender);
        let labels = i64::try_from(LABELS).expect("few labels");
        assert_eq!((ecc.enqueued, ecc.done, ecc.parents_done), (labels, labels, 1), "{operation:#?}");
        newly_rendered += ecc.done - ecc.unchanged;
    }
    // A label is at version 2 after its first rendering, whoever made it: an operation or a price change. Only a price
    // change lets it be rendered to yet another picture.
    let (least, most) = (LABELS - LABELS / 3, LABELS + LABELS / 3);
    let newly_rendered = usize::try_from(newly_rendered).expect("a count");
    assert!((least..=most).contains(&newly_rendered), "{newly_rendered} of {LABELS} were rendered by operations");

    topology.quiet().await;
    let compared = topology.assert_pictures(Some(TENANT)).await;
    assert_eq!((compared.equal, compared.unrenderable), (LABELS, 0));
    topology.assert_exact().await;
    assert_eq!(topology.tables().await.dead().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_comparison_of_pictures_sees_a_wrong_one() {
    let topology = Topology::in_process().await;
    Shelf::write(&topology.doors, TENANT, &[("alpha", 2)]).await;
    topology.quiet().await;
    let records = topology.tables().await.records(Some(TENANT)).await;
    let compare = || tests::pictures::compare(&records, |key| topology.png_of(key));
    assert_eq!(compare().map(|compared| compared.equal), Ok(2));
    let keys: Vec<_> = records.of("ecclink.v1").map(|(key, _)| topology.png_of(key)).collect();
    let [one, other] = keys.as_slice() else { panic!("two labels, not {keys:?}") };
    std::fs::copy(one, other).expect("a wrong picture");
    assert_eq!(compare().map_err(|wrong| wrong.len()), Err(1));
    std::fs::remove_file(one).expect("a missing picture");
    assert_eq!(compare().map_err(|wrong| wrong.len()), Err(2));
}
