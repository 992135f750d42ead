//! A label's history, through the REST API and the command line: which picture it was to show, how deliveries ended, and
//! which operation, who and why.

use domain::OperatorScope;
use proto::dtoflow::v1::PutItem;
use serde_json::{Value, json};
use tests::{cli::Shell, data::Shelf, rest::Rest, topology::Topology};

use crate::{
    control::changed_shelf,
    model_refresh::{MODEL_REFRESH, refresh},
};

const LABEL: &str = "alpha-0001";
const PATH: &str = "/v1/tenants/acme/stores/store-1/labels/alpha-0001/history";

/// All of it, newest first, in pages of that size.
async fn history(operator: &Rest, size: usize) -> Vec<Value> {
    let (mut entries, mut token) = (Vec::new(), String::new());
    loop {
        let page = operator.get_json(&format!("{PATH}?page_size={size}&page_token={token}")).await;
        entries.extend(page["entries"].as_array().expect("a list").clone());
        match page["next_page_token"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => return entries,
        }
    }
}

fn events(entries: &[Value]) -> Vec<(&str, &str)> {
    entries.iter().map(|entry| (entry["event"].as_str().unwrap_or(""), entry["cause"].as_str().unwrap_or(""))).collect()
}

/// A label whose model is refreshed, whose price changes, and which is exported again.
async fn lived(topology: &Topology, operator: &Rest) -> Shelf {
    let shelf = changed_shelf(topology, 3).await;
    operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "CHG-1", false)).await.json(202);
    topology.quiet().await;
    let priced = PutItem { tracking_id: "import-7".to_owned(), ..shelf.item(LABEL, "3.49") };
    shelf.import(&topology.doors, vec![priced]).await;
    topology.quiet().await;
    let again = json!({"tenant_id": "acme", "store_id": "store-1", "reason": "INC-2: power cut", "tracking_id": "INC-2",
                       "dry_run": false});
    operator.post("/v1/triggers/store-reexport", &again).await.json(202);
    topology.quiet().await;
    shelf
}

#[tokio::test(flavor = "multi_thread")]
async fn a_labels_history_says_what_happened_who_asked_and_why() {
    let topology = Topology::in_process().await;
    let operator = topology.operator(&["acme"]);
    let shelf = lived(&topology, &operator).await;
    let entries = history(&operator, 200).await;
    assert_eq!(
        events(&entries),
        [
            ("CONFIRMED", "OPERATION"),
            ("LOST", "OPERATION"),
            ("CONFIRMED", "CHANGE"),
            ("PICTURE", "CHANGE"),
            ("CONFIRMED", "OPERATION"),
            ("PICTURE", "OPERATION"),
            ("CONFIRMED", "CHANGE"),
            ("PICTURE", "CHANGE"),
        ],
        "{entries:#?}"
    );
    assert_eq!(history(&operator, 3).await, entries, "in pages it is the same");

    // The refresh: another picture, which was confirmed.
    let [changed, confirmed] = [&entries[5], &entries[4]];
    let operation = &changed["operation"];
    assert_eq!(
        (&operation["operation"], &operation["trigger"], &operation["operator"], &operation["state"]),
        (
            &json!("/v1/tenants/acme/operations/CHG-1"),
            &json!("model-refresh"),
            &json!("operator@test"),
            &json!("SUCCEEDED")
        ),
        "{changed}"
    );
    let asked = operator.get_json("/v1/tenants/acme/operations/CHG-1").await;
    assert_eq!((&operation["reason"], &operation["scope"]), (&asked["reason"], &asked["scope"]));
    assert_eq!((&changed["tracking_id"], &changed["service"]), (&json!("CHG-1"), &json!("esl-image-merger")));
    assert_eq!((&changed["old_digest"], &changed["new_digest"]), (&entries[7]["new_digest"], &confirmed["new_digest"]));
    assert_eq!(
        (&confirmed["service"], &confirmed["evidence"], &confirmed["operation"]["reason"]),
        (&json!("hardware-exporter"), &json!("WRITTEN"), &asked["reason"])
    );
    assert!(confirmed["at"].as_str() >= changed["at"].as_str(), "{confirmed} {changed}");
    assert!(entries[7].get("old_digest").is_none(), "the first picture replaced none: {}", entries[7]);

    // The price: nobody asked, the import's own id stands there.
    let priced = &entries[3];
    assert_eq!((&priced["tracking_id"], priced.get("operation")), (&json!("import-7"), None), "{priced}");
    let label = operator.get_json(PATH.trim_end_matches("/history")).await;
    assert_eq!(priced["new_digest"], label["picture"]["digest"]);

    // The re-export: the same picture was lost, and confirmed again.
    let lost = &entries[1];
    assert_eq!(lost["operation"]["reason"], "INC-2: power cut", "{lost}");
    assert_eq!((&lost["old_digest"], &entries[0]["new_digest"]), (&priced["new_digest"], &priced["new_digest"]));

    by_command_line(&Shell::new(&operator, topology.folder()), &entries).await;
    who_sees_it(&topology, &shelf).await;
    topology.stop().await;
}

async fn by_command_line(shell: &Shell, entries: &[Value]) {
    let line = ["labels", "history", LABEL, "--store", "store-1"];
    let listed = shell.run(&[&line[..], &["-o", "json"]].concat()).await.ended(0).json();
    assert_eq!(listed.as_array().map(Vec::as_slice), Some(entries), "JSON is the gateway's own answer");
    let few = shell.run(&[&line[..], &["-o", "json", "--limit", "2"]].concat()).await.ended(0).json();
    assert_eq!(few.as_array().map(Vec::as_slice), entries.get(..2));
    let table = shell.run(&line).await.ended(0);
    let beginning = entries[5]["new_digest"].as_str().and_then(|digest| digest.get(..12)).expect("a digest");
    for word in ["model-refresh by operator@test", "INC-2: power cut", "ordinary change", "import-7", "LOST", beginning]
    {
        assert!(table.out.contains(word), "{word}: {table:?}");
    }
    shell.run(&["labels", "history", "none", "--store", "store-1"]).await.ended(7);
}

/// Another store's operator sees nothing of it; this store's sees the label's history, and of operations those it may see.
async fn who_sees_it(topology: &Topology, shelf: &Shelf) {
    let of_store = |store: &str| {
        let mut claims = topology.claims(&["acme"], OperatorScope::ALL);
        claims.stores = Some(vec![("acme".parse().expect("a tenant id"), store.parse().expect("a store id"))]);
        topology.operator_as(&claims)
    };
    of_store("store-2").get(PATH).await.problem(404);
    let seen = history(&of_store(shelf.store.as_str()), 200).await;
    assert_eq!(seen[5]["operation"]["trigger"], "model-refresh", "the operation is of this store: {}", seen[5]);
    topology.operator(&["globex"]).get(PATH).await.problem(404);
    let unknown = PATH.replace(LABEL, "none");
    topology.operator(&["acme"]).get(&unknown).await.problem(404);
}
