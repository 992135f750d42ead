//! `reshelf dev --hardware sim` as a newcomer meets it: deliveries by radio, mishaps made on purpose, recovery, all seen
//! through REST and the command line.

use std::time::Duration;

use domain::DtoType;
use proto::{dtoflow::v1::PutItem, records::v1 as records};
use serde_json::{Value, json};
use tests::{
    cli::Shell,
    data::{Shelf, layout},
    rest::Rest,
    topology::{DevOptions, Topology},
    wait::until,
};

const TENANT: &str = "acme";
/// How long a delivery may take, with whatever goes wrong by chance: an access point may be off the network for 30 s, and
/// takes 30 s to boot.
const DELIVERY_LIMIT: Duration = Duration::from_mins(3);
/// How long `dev` may take to print its lines.
const PRINT_LIMIT: Duration = Duration::from_secs(10);
/// Labels: as many as can be watched.
const LABELS: usize = 4;

/// The address of the simulated access point of a demo shop, as `dev` prints it.
async fn printed_access_point(topology: &Topology, store: &str) -> String {
    until("dev prints its simulated access points", PRINT_LIMIT, || async {
        let printed = topology.printed();
        let line = printed.lines().find(|line| line.contains(&format!("access point of {store}"))).map(str::to_owned);
        let address =
            line.and_then(|line| line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned));
        address.ok_or(printed)
    })
    .await
}

/// Address of the shop's tag of that number: a 2.9 inch panel in white, black and red.
fn tag(number: usize) -> String {
    format!("02DE3000{number:04X}")
}

/// Hangs the labels on the simulated access point.
fn hung(shelf: &Shelf, labels: &[String], access_point: &str) -> Vec<PutItem> {
    let address = access_point.trim_start_matches("http://").to_owned();
    let record = records::AccessPoint { driver: "openepaperlink".to_owned(), address };
    let mut puts = vec![shelf.put(DtoType::AccessPoint, "sim", &record)];
    puts.extend(labels.iter().enumerate().map(|(number, label)| {
        let esl = records::StoreEsl {
            esltype_id: "panel".to_owned(),
            accesspoint_id: "sim".to_owned(),
            hardware_address: tag(number),
        };
        shelf.put(DtoType::StoreEsl, label, &esl)
    }));
    puts
}

/// The operator at the labels of the store.
struct Aisle {
    operator: Rest,
    access_point: Rest,
}

impl Aisle {
    async fn label(&self, label: &str) -> Value {
        self.operator.get_json(&format!("/v1/tenants/{TENANT}/stores/store-1/labels/{label}")).await
    }

    /// Waits until the label's delivery is as wanted; the delivery.
    async fn delivery(&self, label: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{label} {what}"), DELIVERY_LIMIT, || async {
            let label = self.label(label).await;
            if wanted(&label) { Ok(label["delivery"].clone()) } else { Err(label["delivery"].to_string()) }
        })
        .await
    }

    /// Waits until the label has confirmed the picture that it shall show.
    async fn confirmed(&self, label: &str) -> Value {
        self.delivery(label, "is confirmed", |label| {
            let (delivery, picture) = (&label["delivery"], &label["picture"]);
            delivery["state"] == "CONFIRMED"
                && delivery["evidence"] == "TRANSFERRED"
                && delivery["confirmed_digest"] == picture["digest"]
        })
        .await
    }

    /// Makes something happen to the simulated access point.
    async fn mishap(&self, what: &str) {
        let answer = self.access_point.post(&format!("/simulated/{what}"), &Value::Null).await;
        assert_eq!(answer.status, 204, "{what}: {}", answer.text());
    }
}

fn went_through(delivery: &Value, state: &str) -> bool {
    delivery["steps"].as_array().into_iter().flatten().any(|step| step["state"] == state)
}

/// `dev` with its simulated hardware, and labels that hang on one of its access points.
async fn store() -> (Topology, Shelf, Aisle) {
    let options = DevOptions { demo: false, simulated_hardware: true, ..DevOptions::default() };
    let topology = Topology::dev(options).await;
    let access_point = printed_access_point(&topology, "berlin").await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", LABELS)]).await;
    shelf.import(&topology.doors, hung(&shelf, &shelf.labels["alpha"], &access_point)).await;
    let aisle = Aisle { operator: topology.operator(&[TENANT]), access_point: Rest::new(&access_point, None) };
    (topology, shelf, aisle)
}

/// One of the pictures that the access point took is fetched late by its tag: all are exported before all are confirmed.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_access_point_took_is_exported_before_it_is_confirmed() {
    let (topology, shelf, aisle) = store().await;
    for label in &shelf.labels["alpha"] {
        aisle.confirmed(label).await;
    }
    for _ in 0..2 {
        aisle.mishap(&format!("late?mac={}", tag(2))).await;
    }
    shelf.import(&topology.doors, vec![shelf.model("alpha", layout("alpha", 2))]).await;
    let shell = Shell::new(&aisle.operator, topology.folder());
    let refresh = ["trigger", "model-refresh", "--store", "store-1", "--model", "alpha", "--tenant", TENANT];
    shell.run(&[&refresh[..], &["--reason", "CHG-8: new font", "--tracking-id", "CHG-8"]].concat()).await.ended(0);
    let wait = ["operations", "wait", "CHG-8", "--tenant", TENANT, "-o", "json", "--until"];
    let exported = shell.run(&[&wait[..], &["exported", "--timeout", "3m"]].concat()).await.ended(0).json();
    let count = |name: &str| exported["summary"][name].as_u64().and_then(|count| usize::try_from(count).ok());
    assert!(count("exported") == Some(LABELS) && count("confirmed") < Some(LABELS), "{exported}");
    shell.run(&[&wait[..], &["confirmed", "--timeout", "1s"]].concat()).await.ended(124);
    let confirmed = shell.run(&[&wait[..], &["confirmed", "--timeout", "3m"]].concat()).await.ended(0).json();
    assert_eq!(confirmed["summary"]["confirmed"], LABELS, "{confirmed}");
    let by = json!({"written": 0, "transferred": LABELS, "displayed": 0, "none": 0});
    assert_eq!(confirmed["funnel"][4]["confirmed_by"], by, "{confirmed}");
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_losses_and_reboots_of_simulated_hardware_are_seen_and_made_good() {
    let (topology, shelf, aisle) = store().await;
    let (labels, operator) = (&shelf.labels["alpha"], &aisle.operator);

    // Delivered, step by step.
    for label in labels {
        let delivery = aisle.confirmed(label).await;
        for state in ["SENT", "CONFIRMED"] {
            assert!(went_through(&delivery, state), "{state}: {delivery}");
        }
    }

    // A loss: the next transfer breaks off, and the picture is sent again.
    let lost = &labels[0];
    aisle.mishap(&format!("lose?mac={}", tag(0))).await;
    shelf.import(&topology.doors, vec![shelf.item(lost, "2.49")]).await;
    aisle.delivery(lost, "is seen as lost", |label| went_through(&label["delivery"], "LOST")).await;
    aisle.confirmed(lost).await;

    // A reboot while a picture waits for its tag: nothing but that is sent again, and everything ends right.
    let waiting = &labels[1];
    aisle.mishap(&format!("late?mac={}", tag(1))).await;
    shelf.import(&topology.doors, vec![shelf.item(waiting, "3.49")]).await;
    aisle
        .delivery(waiting, "waits", |label| {
            ["ACCEPTED", "QUEUED"].iter().any(|state| label["delivery"]["state"] == *state)
        })
        .await;
    aisle.mishap("reboot").await;
    let made_good = aisle.confirmed(waiting).await;
    assert!(went_through(&made_good, "LOST"), "{made_good}");
    let reset = until("the reset is audited", DELIVERY_LIMIT, || async {
        let path = format!("/v1/audit?tenant={TENANT}&action=announce%20after%20reset");
        let listed = operator.get_json(&path).await;
        listed["entries"].as_array().and_then(|rows| rows.first().cloned()).ok_or(listed.to_string())
    })
    .await;
    assert!(reset["reason"].as_str().is_some_and(|reason| reason.contains("was reset: up since")), "{reset}");

    // The same on the command line.
    let shell = Shell::new(operator, topology.folder());
    for label in labels {
        aisle.confirmed(label).await;
        let shown = shell.run(&["labels", "show", label, "--store", "store-1", "--tenant", TENANT]).await.ended(0);
        assert!(shown.out.contains("CONFIRMED") && shown.out.contains("TRANSFERRED"), "{shown:?}");
    }
    let listed = shell.run(&["labels", "list", "--store", "store-1", "--tenant", TENANT]).await.ended(0);
    assert_eq!(listed.out.matches("CONFIRMED").count(), LABELS, "{listed:?}");
    topology.stop().await;
}
