//! An ordinary change that fails is seen at the label, with its stage and cause, until it is corrected.

use serde_json::json;
use tests::{data::Shelf, topology::Topology};

const TENANT: &str = "acme";
const LABEL: &str = "alpha-0001";
const VIEW: &str = "/v1/tenants/acme/stores/store-1/labels/alpha-0001";

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_cannot_be_shown_is_told_at_the_label_until_it_is_corrected() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 3)]).await;
    topology.quiet().await;
    let operator = topology.operator(&[TENANT]);
    let good = operator.get_json(VIEW).await;
    assert_eq!((&good["pending"], &good["failures"]), (&json!([]), &json!([])), "{good}");

    shelf.import(&topology.doors, vec![shelf.item(LABEL, "123456789012345678901234567890.99")]).await;
    topology.quiet().await;
    let bad = operator.get_json(VIEW).await;
    let [failure] = bad["failures"].as_array().expect("a list").as_slice() else { panic!("one failure: {bad}") };
    assert_eq!((&failure["stage"], &failure["service"]), (&json!("rendered"), &json!("ecc-image-render-service")));
    assert_eq!(failure["record"], format!("t/{TENANT}/s/store-1/ecclinks/{LABEL}"));
    assert!(failure["cause"].as_str().is_some_and(|cause| cause.contains("price")), "the cause names it: {failure}");
    assert_eq!(bad["picture"], good["picture"], "the label keeps its last picture");
    let neighbour = operator.get_json(&VIEW.replace("0001", "0002")).await;
    assert_eq!(neighbour["failures"], json!([]), "only this label's");

    shelf.import(&topology.doors, vec![shelf.item(LABEL, "2.49")]).await;
    topology.quiet().await;
    let corrected = operator.get_json(VIEW).await;
    assert_eq!(corrected["failures"], json!([]), "{corrected}");
    assert_ne!(corrected["picture"]["digest"], good["picture"]["digest"]);
    topology.assert_exact().await;
}
