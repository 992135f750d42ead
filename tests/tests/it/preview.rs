//! Previews: what a refresh would draw, without drawing it.

use serde_json::{Value, json};
use tests::{
    data::{Shelf, layout},
    topology::{OPERATION_LIMIT, Topology},
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

const MODEL_PREVIEW: &str = "/v1/triggers/model-refresh/preview";
const DESIGN_PREVIEW: &str = "/v1/triggers/design-refresh/preview";

/// The bytes of a picture of the answer.
fn png(picture: &Value) -> Vec<u8> {
    let text = picture["png_base64"].as_str().expect("a PNG");
    // The alphabet of RFC 4648 §4, as the document says.
    let value = |byte: u8| {
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".iter().position(|known| *known == byte)
    };
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0_u32);
    for sextet in text.bytes().filter_map(value) {
        bits = (bits << 6) | u32::try_from(sextet).expect("6 bits");
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).expect("8 bits"));
        }
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_shows_what_the_refresh_then_does_and_writes_nothing() {
    let topology = Topology::in_process().await;
    let tenant = "acme";
    let shelf = Shelf::write(&topology.doors, tenant, &[("alpha", 40), ("beta", 1)]).await;
    topology.quiet().await;
    let operator = topology.operator(&[tenant]);
    let asked = json!({"tenant_id": tenant, "store_id": shelf.store.as_str(), "model_id": "alpha"});

    let same = operator.post(MODEL_PREVIEW, &asked).await.json(200);
    let counts =
        |answer: &Value| ["labels", "sampled", "changed", "unchanged", "failed"].map(|name| answer[name].as_i64());
    assert_eq!(counts(&same), [40, 24, 0, 24, 0].map(Some), "nothing has changed yet");

    shelf.import(&topology.doors, vec![shelf.model("alpha", layout("alpha", 2))]).await;
    topology.quiet().await;
    let before = topology.tables().await.records(Some(tenant)).await;
    let changed = operator.post(MODEL_PREVIEW, &asked).await.json(200);
    assert_eq!(counts(&changed), [40, 24, 24, 0, 0].map(Some), "the model's text has changed in every picture");
    assert_eq!(operator.post(MODEL_PREVIEW, &asked).await.json(200), changed, "the same sample again");
    let few = operator
        .post(
            MODEL_PREVIEW,
            &json!({"sample": 3, "tenant_id": tenant, "store_id": shelf.store.as_str(), "model_id": "alpha"}),
        )
        .await
        .json(200);
    assert_eq!(counts(&few), [40, 3, 3, 0, 0].map(Some));
    let after = topology.tables().await.records(Some(tenant)).await;
    assert_eq!(format!("{before:?}"), format!("{after:?}"), "a preview writes nothing");
    assert!(topology.tables().await.rows_by_queue().await.is_empty(), "and enqueues nothing");

    // The present picture is the one on the label, the new one the one that the refresh brings.
    let first = &changed["previews"][0];
    let label = first["label_id"].as_str().expect("a label").to_owned();
    let image = format!("/v1/tenants/{tenant}/stores/{}/labels/{label}/image.png", shelf.store);
    assert_eq!(png(&first["current"]), operator.get(&image).await.bytes);
    assert!(first["pixels_changed"].as_u64().is_some_and(|pixels| pixels > 0), "{first}");
    assert_eq!(first["difference"]["width"], first["new"]["width"]);
    operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "after-preview", false)).await.json(202);
    topology.finished(tenant, "after-preview", OPERATION_LIMIT).await;
    assert_eq!(png(&first["new"]), operator.get(&image).await.bytes, "the refresh drew what the preview showed");

    // A model that cannot be read fails every label, and says why.
    shelf.import(&topology.doors, vec![shelf.model("alpha", "{".to_owned())]).await;
    topology.quiet().await;
    let broken = operator.post(MODEL_PREVIEW, &asked).await.json(200);
    assert_eq!(counts(&broken), [40, 24, 0, 0, 24].map(Some));
    assert!(broken["previews"][0]["cause"].as_str().is_some_and(|cause| cause.contains("alpha")), "{broken}");

    for (field, value, status) in [
        ("sample", json!(25), 400),
        ("sample", json!(0), 400),
        ("model_id", json!("gone"), 404),
        ("model_id", json!("a/b"), 400),
    ] {
        let mut wrong = asked.clone();
        wrong[field] = value;
        operator.post(MODEL_PREVIEW, &wrong).await.problem(status);
    }
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_designs_sample_comes_from_several_stores() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write_studio_store(&topology.doors, "acme", "store-1", &[("poster", 9)]).await;
    for store in ["store-2", "store-3"] {
        Shelf::write_studio_store(&topology.doors, "acme", store, &[("poster", 9)]).await;
    }
    shelf.import(&topology.doors, vec![shelf.design("poster", 1)]).await;
    topology.quiet().await;
    shelf
        .import(
            &topology.doors,
            vec![shelf.put(
                domain::DtoType::EslType,
                "panel",
                &proto::records::v1::EslType { width: 296, height: 128, palette: 1, rotation: 0, name: String::new() },
            )],
        )
        .await;
    let operator = topology.operator(&["acme"]);
    let preview = operator
        .post(DESIGN_PREVIEW, &json!({"tenant_id": "acme", "design_id": "poster", "sample": 6}))
        .await
        .json(200);
    assert_eq!(
        (&preview["labels"], &preview["sampled"], &preview["changed"]),
        (&json!(27), &json!(6), &json!(6)),
        "{preview}"
    );
    let stores: std::collections::BTreeSet<&str> =
        preview["previews"].as_array().expect("a sample").iter().filter_map(|one| one["store_id"].as_str()).collect();
    assert_eq!(stores.len(), 3, "two labels of each store");
    // Other inks: no pixel can be compared.
    assert_eq!(preview["previews"][0]["difference"], Value::Null, "{preview}");
    topology.stop().await;
}
