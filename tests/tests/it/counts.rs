//! What a dry run counts is what the run handles, for every trigger there is.

use std::collections::BTreeSet;

use domain::DtoType;
use proto::records::v1 as records;
use serde_json::{Value, json};
use tests::{
    data::{Shelf, layout},
    topology::{START_LIMIT, Topology},
    wait::until,
};

const TENANT: &str = "acme";

/// Two stores; in the first, labels of two models, of a design, one that has both, and some at a second access point.
async fn frozen(topology: &Topology) {
    let one = Shelf::write_studio_store(&topology.doors, TENANT, "store-1", &[("poster", 5), ("band", 2)]).await;
    let two = Shelf::write_studio_store(&topology.doors, TENANT, "store-2", &[("poster", 4)]).await;
    let mut puts = vec![one.design("poster", 1), two.design("band", 1)];
    let access_point = records::AccessPoint { driver: "folder".to_owned(), address: String::new() };
    puts.push(one.put(DtoType::AccessPoint, "ap-2", &access_point));
    for (model, labels) in [("alpha", 7), ("beta", 3)] {
        puts.push(one.model(model, layout(model, 1)));
        for number in 0..labels {
            let id = format!("{model}-{number:04}");
            puts.extend([one.item(&id, "1.99"), one.esl(&id), one.link(&id, model, 1)]);
        }
    }
    one.import(&topology.doors, puts).await;
    let mut puts = vec![one.studio_link("alpha-0000", "poster")];
    puts.extend(["alpha-0001", "beta-0001", "poster-0001"].map(|id| {
        let record = records::StoreEsl {
            esltype_id: "panel".to_owned(),
            accesspoint_id: "ap-2".to_owned(),
            hardware_address: format!("hw-{id}"),
        };
        one.put(DtoType::StoreEsl, id, &record)
    }));
    one.import(&topology.doors, puts).await;
    topology.quiet().await;
}

/// Every trigger with what it is about, and the labels that are meant.
fn requests() -> [(&'static str, Value, i64); 7] {
    let store = || json!({"store_id": "store-1"});
    [
        ("model-refresh", json!({"store_id": "store-1", "model_id": "alpha"}), 7),
        // Five and the one with both links in the first store, four in the second.
        ("design-refresh", json!({"design_id": "poster"}), 10),
        ("ecc-store-rerender", store(), 10),
        ("studio-store-rerender", store(), 8),
        // A label with both pictures shows one.
        ("store-reexport", store(), 17),
        ("access-point-reexport", json!({"store_id": "store-1", "access_point_id": "ap-2"}), 3),
        ("label-reexport", json!({"store_id": "store-1", "label_id": "alpha-0003"}), 1),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_counts_what_the_run_handles_for_every_trigger() {
    let topology = Topology::in_process().await;
    frozen(&topology).await;
    let operator = topology.operator(&[TENANT]);
    let listed = operator.get_json("/v1/triggers").await;
    let listed = listed["triggers"].as_array().expect("triggers").iter();
    let known: BTreeSet<&str> = listed
        .filter(|trigger| trigger["starts_operation"] == true)
        .map(|trigger| trigger["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(known, requests().iter().map(|(trigger, ..)| *trigger).collect(), "none is left out here");

    for (trigger, about, labels) in requests() {
        let asked = |dry_run: bool| {
            let mut body = about.clone();
            body["tenant_id"] = TENANT.into();
            body["reason"] = "CHG-140: count".into();
            body["tracking_id"] = trigger.into();
            body["dry_run"] = dry_run.into();
            body
        };
        let path = format!("/v1/triggers/{trigger}");
        let dry = operator.post(&path, &asked(true)).await.json(200);
        assert_eq!(dry["labels"], labels, "{trigger}: {dry}");
        let by_store = dry["stores"].as_array().expect("stores").iter().filter_map(|store| store["labels"].as_i64());
        assert_eq!(by_store.sum::<i64>(), labels, "{trigger}: {dry}");
        let run = operator.post(&path, &asked(false)).await.json(202);
        assert_eq!(run["labels"], labels, "{trigger}: {run}");
        let done = until(&format!("{trigger} is done"), START_LIMIT, || async {
            let shown = operator.get_json(&format!("/v1/tenants/{TENANT}/operations/{trigger}")).await;
            if shown["state"] == "SUCCEEDED" { Ok(shown) } else { Err(shown.to_string()) }
        })
        .await;
        let first =
            done["stages"].as_array().expect("stages").iter().find(|stage| stage["service"] == dry["would_run_on"]);
        let first = first.unwrap_or_else(|| panic!("no {} in {done}", dry["would_run_on"]));
        let counts = &first["labels"];
        assert_eq!(
            (&counts["received"], &counts["done"], &counts["coalesced"], &done["summary"]["labels"]),
            (&json!(labels), &json!(labels), &json!(0), &json!(labels)),
            "{trigger}: {done}"
        );
        // What it wrote is under way no longer before the next one counts.
        topology.quiet().await;
    }
    topology.assert_exact().await;
    topology.stop().await;
}
