//! The process killed at random in both stages of a design refresh: each link is enqueued once, each label ends right,
//! the ledger is exact.
//!
//! `scripts/kill-two-stage.sh` runs it in full: fifty kills over 100,000 labels.

use std::time::Duration;

use domain::{IdSource, SeededIds, ServiceName};
use proto::cqs::v1::{Operation, OperationState};
use serde_json::{Value, json};
use tests::{
    data::Shelf,
    topology::{DevOptions, START_LIMIT, Topology, stage},
    wait::{moment, until},
};

use crate::{
    kill::{kill, number},
    two_stage::{DESIGN_REFRESH, refresh},
};

/// Kills, stores, and labels of each store; the environment asks for more.
const KILLS: u64 = 5;
const STORES: u64 = 2;
const LABELS: u64 = 500;
const TENANT: &str = "acme";
const TRACKING_ID: &str = "two-stage";
/// Latest moment of a kill in stage one, in milliseconds after the request: it splits a handful of parents.
const STAGE_ONE_MS: u64 = 60;
/// Latest moment of a kill in stage two, in milliseconds after so many labels are done: a few batches.
const STAGE_TWO_MS: u64 = 150;

/// How long that many labels may take, on a machine that does other things too: 20 ms each.
fn limit(labels: u64) -> Duration {
    START_LIMIT + Duration::from_millis(20 * labels)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_both_stages_each_link_is_enqueued_once() {
    let kills = number("RESHELF_TWO_STAGE_KILLS", KILLS);
    let stores = number("RESHELF_TWO_STAGE_STORES", STORES);
    let labels = number("RESHELF_TWO_STAGE_LABELS", LABELS);
    let (all, seed) = (stores * labels, number("RESHELF_KILL_SEED", 42));
    let random = SeededIds::new(seed);
    // In full it is more than an operator may start alone by default.
    let approval_above = Some(u32::try_from(all).expect("few"));
    let mut topology = Topology::dev(DevOptions { demo: false, approval_above, ..DevOptions::default() }).await;
    let shelf = written(&topology, stores, usize::try_from(labels).expect("few")).await;
    topology.quiet_within(limit(all)).await;
    shelf.import(&topology.doors, vec![shelf.design("poster", 2)]).await;

    let mut under_way = 0;
    for round in 0..kills {
        // The first fifth hits stage one, the others stage two, spread over its labels.
        let stage_one = round < kills.div_ceil(5);
        let from = if stage_one { 0 } else { all * round / (kills + 1) };
        let after = random.below(if stage_one { STAGE_ONE_MS } else { STAGE_TWO_MS });
        let accepted = topology.operation(TENANT, TRACKING_ID).await.is_some();
        tokio::join!(ask(&topology, accepted), async {
            done(&topology, from, limit(all)).await;
            moment(Duration::from_millis(after)).await;
            kill(&topology).await;
        });
        // While it is dead, so that it gets no further meanwhile.
        topology.assert_exact().await;
        topology.restart().await;
        let operation = topology.operation(TENANT, TRACKING_ID).await;
        under_way += u64::from(operation.as_ref().is_none_or(|operation| operation.state() == OperationState::Running));
        let counted = operation.as_ref().map_or_else(|| "not accepted".to_owned(), counted);
        println!("seed {seed}, kill {round}: {after} ms after {from} labels; {counted}");
    }
    // Whoever had no answer asks again under the same id: done once, whatever the kills cut off.
    until("the repeated request to be accepted", START_LIMIT, || async {
        let answer = topology.operator(&[TENANT]).try_post(DESIGN_REFRESH, &request()).await.ok_or("no answer")?;
        if [200, 202].contains(&answer.status) { Ok(()) } else { Err("refused") }
    })
    .await;
    assert!(under_way > kills / 2, "seed {seed}: only {under_way} of {kills} kills met the operation under way");

    let operation = topology.finished(TENANT, TRACKING_ID, limit(all)).await;
    topology.quiet_within(limit(all)).await;
    assert_eq!(operation.state(), OperationState::Succeeded, "seed {seed}: {operation:#?}");
    let studio = stage(&operation, ServiceName::StudioRenderer);
    let once = (signed(1 + stores), signed(all), 0);
    assert_eq!((studio.parents_done, studio.enqueued, studio.coalesced), once, "seed {seed}: {operation:#?}");
    let compared = topology.assert_pictures(Some(TENANT)).await;
    assert_eq!((compared.equal as u64, compared.unrenderable), (all, 0), "seed {seed}");
    topology.assert_exact().await;
    assert_eq!(topology.tables().await.dead().await, 0, "nothing is in the dead letter");
    topology.stop().await;
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("few")
}

/// The stores with their labels, at version 1 of the design. Gives the last.
async fn written(topology: &Topology, stores: u64, labels: usize) -> Shelf {
    let mut last = None;
    for number in 1..=stores {
        let store = format!("store-{number:03}");
        let shelf = Shelf::write_studio_store(&topology.doors, TENANT, &store, &[("poster", labels)]).await;
        if number == 1 {
            shelf.import(&topology.doors, vec![shelf.design("poster", 1)]).await;
        }
        last = Some(shelf);
    }
    last.expect("a store")
}

/// Asks for the refresh unless it is accepted; an answer that the kill cuts off does not count.
async fn ask(topology: &Topology, accepted: bool) {
    if !accepted {
        topology.operator(&[TENANT]).try_post(DESIGN_REFRESH, &request()).await;
    }
}

fn request() -> Value {
    let mut request = refresh(TENANT, "poster", TRACKING_ID, false);
    // Due now, so that it meets the design's own fan-out.
    request["sla_timestamp"] = json!("2020-01-01T00:00:00Z");
    request
}

/// Waits until so many labels of the operation are handled, or all of it is.
async fn done(topology: &Topology, labels: u64, limit: Duration) {
    if labels == 0 {
        return;
    }
    until(&format!("{labels} labels to be handled"), limit, || async {
        let operation = topology.operation(TENANT, TRACKING_ID).await.ok_or("there is no operation")?;
        let handled = stage(&operation, ServiceName::StudioRenderer).done;
        if handled >= signed(labels) || operation.state() != OperationState::Running { Ok(()) } else { Err("not yet") }
    })
    .await;
}

fn counted(operation: &Operation) -> String {
    let studio = stage(operation, ServiceName::StudioRenderer);
    format!(
        "{} of {} parents split, {} labels enqueued, {} done",
        studio.parents_done, studio.parents_enqueued, studio.enqueued, studio.done
    )
}
